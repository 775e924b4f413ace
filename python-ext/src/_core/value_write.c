/* SPDX-License-Identifier: MIT
 *
 * Python values to payload (rules A3 and A4), straight into the library's writer. What cannot
 * travel is refused with the path to it.
 *
 * An Enum's value and a dataclass's fields may run code of the application, so whatever is being
 * written is held by a reference of its own.
 */
#include "core.h"

/* Where we are: a chain on the C stack, made into text only when something is refused. */
typedef struct path {
    const struct path *up;
    PyObject *container; /* the value round this one, to notice one that contains itself */
    PyObject *key;       /* NULL: index */
    Py_ssize_t index;
    unsigned depth; /* containers round this value */
} path;

typedef struct {
    core_state *state;
    jobq_writer *w;
    const char *root; /* what paths begin with */
} writer;

static bool write_value(writer *to, PyObject *value, const path *at);

/* ---- refusing -------------------------------------------------------------------------------- */

/* A key as it can be shown: no control characters, no lone surrogates, not endless. Steals. */
static PyObject *show(PyObject *text)
{
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    Py_XDECREF(text);
    Py_ssize_t n;
    char *p;
    if (!bytes || PyBytes_AsStringAndSize(bytes, &p, &n) < 0) {
        Py_XDECREF(bytes);
        return NULL;
    }
    char shown[201];
    Py_ssize_t used = 0;
    for (; used < n && used < 200; used++) {
        shown[used] = (unsigned char)p[used] < ' ' || p[used] == 127 ? '?' : p[used];
    }
    Py_DECREF(bytes);
    return PyUnicode_DecodeUTF8(shown, used, "ignore");
}

static PyObject *path_text(const writer *to, const path *at)
{
    if (!at->up) {
        return PyUnicode_FromString(to->root);
    }
    PyObject *before = path_text(to, at->up);
    PyObject *own =
        !at->key ? PyUnicode_FromFormat("%zd", at->index)
                 : show(PyUnicode_Check(at->key) ? Py_NewRef(at->key) : PyObject_Repr(at->key));
    PyObject *text = before && own ? PyUnicode_FromFormat("%U.%U", before, own) : NULL;
    Py_XDECREF(before);
    Py_XDECREF(own);
    return text;
}

/* Steals what. */
static bool refuse_object(writer *to, const path *at, PyObject *what)
{
    PyObject *where = path_text(to, at);
    PyObject *message = where && what ? PyUnicode_FromFormat("%U: %U", where, what) : NULL;
    if (message) {
        core_raise_payload(to->state, where, message);
    }
    Py_XDECREF(where);
    Py_XDECREF(message);
    Py_XDECREF(what);
    return false;
}

static bool refuse(writer *to, const path *at, const char *what)
{
    return refuse_object(to, at, PyUnicode_FromString(what));
}

static bool refuse_type(writer *to, const path *at, const char *fmt, PyObject *value)
{
    PyObject *name = PyType_GetQualName(Py_TYPE(value));
    PyObject *what = name ? PyUnicode_FromFormat(fmt, name) : NULL;
    Py_XDECREF(name);
    return refuse_object(to, at, what);
}

static inline bool check(writer *to, int rc, const path *at)
{
    static const char prefix[] = "payload: "; /* the path says it, too */
    if (rc >= 0) {
        return true;
    }
    const char *text = jobq_error_message(jobq_error_last());
    return refuse(to, at, text + (strncmp(text, prefix, sizeof(prefix) - 1) == 0) * strlen(prefix));
}

/* ---- scalars --------------------------------------------------------------------------------- */

static bool write_str(writer *to, PyObject *value, const path *at)
{
    Py_ssize_t n;
    const char *p = PyUnicode_AsUTF8AndSize(value, &n);
    if (!p) {
        PyErr_Clear();
        return refuse(to, at, "a string with a lone surrogate cannot be queued");
    }
    return check(to, jobq_writer_str(to->w, p, (size_t)n), at);
}

static bool write_bytes(writer *to, PyObject *value, const path *at)
{
    char *p;
    Py_ssize_t n;
    return PyBytes_AsStringAndSize(value, &p, &n) == 0 &&
           check(to, jobq_writer_bytes(to->w, p, (size_t)n), at);
}

/* repr() of a huge integer is slow, or refused by the interpreter itself. */
static bool refuse_int(writer *to, const path *at, bool negative)
{
    return refuse(to, at,
                  negative ? "an integer below -2^63 cannot be queued"
                           : "an integer above 2^64-1 cannot be queued");
}

static bool write_int(writer *to, PyObject *value, const path *at)
{
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) {
        return !PyErr_Occurred() && check(to, jobq_writer_int(to->w, number), at);
    }
    if (overflow < 0) {
        return refuse_int(to, at, true);
    }
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return refuse_int(to, at, false);
    }
    return check(to, jobq_writer_uint(to->w, large), at);
}

static bool write_float(writer *to, PyObject *value, const path *at)
{
    const double number = PyFloat_AsDouble(value);
    return !PyErr_Occurred() && check(to, jobq_writer_double(to->w, number), at);
}

static bool write_time(writer *to, PyObject *value, const path *at)
{
    int64_t seconds;
    uint32_t microseconds;
    if (!core_time_read(to->state, value, &seconds, &microseconds)) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) {
            return false;
        }
        PyErr_Clear();
        return refuse(to, at, "a naive datetime cannot be queued: give it a time zone");
    }
    return check(to, jobq_writer_time(to->w, seconds, microseconds * 1000), at);
}

static bool write_enum(writer *to, PyObject *value, const path *at)
{
    PyObject *inner = PyObject_GetAttrString(value, "value");
    const bool done = inner && write_value(to, inner, at);
    Py_XDECREF(inner);
    return done;
}

static bool is_enum(const writer *to, PyObject *value)
{
    return PyObject_IsInstance(value, core_get(to->state, CORE_ENUM)) == 1;
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool may_enter(writer *to, PyObject *container, const path *at)
{
    if (at->depth >= JOBQ_MAX_DEPTH) {
        return refuse(to, at, "more than 64 containers inside one another cannot be queued");
    }
    for (const path *up = at; up->up; up = up->up) {
        if (up->container == container) {
            return refuse(to, at, "a value that contains itself cannot be queued");
        }
    }
    return true;
}

static bool write_sequence(writer *to, PyObject *value, const path *at)
{
    const Py_ssize_t n = PySequence_Size(value);
    path inner = {at, value, NULL, 0, at->depth + 1};
    if (n < 0 || !may_enter(to, value, at) || !check(to, jobq_writer_list(to->w, (size_t)n), at)) {
        return false;
    }
    for (; inner.index < n; inner.index++) {
        PyObject *item = PySequence_GetItem(value, inner.index);
        const bool done = item && write_value(to, item, &inner);
        Py_XDECREF(item);
        if (!done) {
            return false;
        }
    }
    return true;
}

static bool write_key(writer *to, PyObject *key, const path *at)
{
    if (PyUnicode_CheckExact(key)) {
        return write_str(to, key, at);
    }
    if (is_enum(to, key)) {
        PyObject *inner = PyObject_GetAttrString(key, "value");
        const bool done = inner && !is_enum(to, inner) && write_key(to, inner, at);
        Py_XDECREF(inner);
        return done;
    }
    if (PyUnicode_Check(key)) {
        return write_str(to, key, at);
    }
    if (PyLong_Check(key) && !PyBool_Check(key)) {
        return write_int(to, key, at);
    }
    return refuse_type(to, at, "a key of type %U cannot be queued: keys are strings or integers",
                       key);
}

/* 123 and "123" in one map: PHP could not tell them apart (rule A2). */
static bool is_twin(PyObject *map, PyObject *key)
{
    PyObject *digits = PyLong_Check(key) ? PyObject_Str(key) : NULL;
    const int has = digits ? PyDict_Contains(map, digits) : 0;
    Py_XDECREF(digits);
    PyErr_Clear();
    return has == 1;
}

static bool write_pair(writer *to, PyObject *map, PyObject *key, PyObject *value, const path *at)
{
    const path inner = {at, map, key, 0, at->depth + 1};
    Py_INCREF(key);
    Py_INCREF(value);
    const bool done = !PyUnicode_CheckExact(key) && is_twin(map, key)
                          ? refuse(to, &inner,
                                   "an integer key and a string key of the same digits "
                                   "cannot be queued")
                          : write_key(to, key, &inner) && write_value(to, value, &inner);
    Py_DECREF(key);
    Py_DECREF(value);
    return done;
}

static bool write_dict(writer *to, PyObject *value, const path *at)
{
    const Py_ssize_t n = PyDict_Size(value);
    Py_ssize_t position = 0, written = 0;
    PyObject *key, *item;
    if (n < 0 || !may_enter(to, value, at) || !check(to, jobq_writer_map(to->w, (size_t)n), at)) {
        return false;
    }
    while (written < n && PyDict_Next(value, &position, &key, &item)) {
        if (!write_pair(to, value, key, item, at)) {
            return false;
        }
        written++;
    }
    if (written < n || PyDict_Size(value) != n) {
        return refuse(to, at, "a dict that changes while it is being queued cannot be queued");
    }
    return true;
}

/* A class's own fields: ClassVar and InitVar ones are listed with them and are none. */
static int is_field(PyObject *field)
{
    PyObject *kind = field ? PyObject_GetAttrString(field, "_field_type") : NULL;
    PyObject *called = kind ? PyObject_GetAttrString(kind, "name") : NULL;
    const int real = !called ? -1 : PyUnicode_CompareWithASCIIString(called, "_FIELD") == 0;
    Py_XDECREF(called);
    Py_XDECREF(kind);
    return real;
}

/* In the order in which they were declared. */
static bool gather_fields(PyObject *value, PyObject *fields, PyObject *map)
{
    Py_ssize_t at = 0;
    PyObject *name, *field;
    while (PyDict_Next(fields, &at, &name, &field)) {
        const int real = is_field(field);
        PyObject *item = real > 0 ? PyObject_GetAttr(value, name) : NULL;
        const bool done = real == 0 || (item && PyDict_SetItem(map, name, item) == 0);
        Py_XDECREF(item);
        if (!done) {
            return false;
        }
    }
    return true;
}

static bool write_fields(writer *to, PyObject *value, PyObject *fields, const path *at)
{
    const path inner = {at->up, value, at->key, at->index, at->depth};
    PyObject *map = PyDict_New();
    const bool done = map && gather_fields(value, fields, map) && write_dict(to, map, &inner);
    Py_XDECREF(map);
    return done;
}

/* ---- any value ------------------------------------------------------------------------------- */

static bool write_other(writer *to, PyObject *value, const path *at)
{
    if (PyTuple_Check(value) || PyList_Check(value)) {
        return write_sequence(to, value, at);
    }
    if (core_is_datetime(to->state, value)) {
        return write_time(to, value, at);
    }
    PyObject *fields = PyType_Check(value) ? NULL
                                           : PyObject_GetAttrString((PyObject *)Py_TYPE(value),
                                                                    "__dataclass_fields__");
    if (fields) {
        const bool done =
            PyDict_Check(fields) && may_enter(to, value, at) && write_fields(to, value, fields, at);
        Py_DECREF(fields);
        return done;
    }
    PyErr_Clear();
    return refuse_type(to, at, "a value of type %U cannot be queued", value);
}

static bool write_value(writer *to, PyObject *value, const path *at)
{
    if (value == Py_None) {
        return check(to, jobq_writer_nil(to->w), at);
    }
    if (PyUnicode_CheckExact(value)) {
        return write_str(to, value, at);
    }
    if (PyBool_Check(value)) {
        return check(to, jobq_writer_bool(to->w, value == Py_True), at);
    }
    if (PyLong_CheckExact(value)) {
        return write_int(to, value, at);
    }
    if (PyFloat_CheckExact(value)) {
        return write_float(to, value, at);
    }
    if (PyDict_CheckExact(value)) {
        return write_dict(to, value, at);
    }
    if (PyList_CheckExact(value)) {
        return write_sequence(to, value, at);
    }
    if (is_enum(to, value)) {
        return write_enum(to, value, at);
    }
    if (PyUnicode_Check(value)) {
        return write_str(to, value, at);
    }
    if (PyLong_Check(value)) {
        return write_int(to, value, at);
    }
    if (PyFloat_Check(value)) {
        return write_float(to, value, at);
    }
    if (PyBytes_Check(value)) {
        return write_bytes(to, value, at);
    }
    return PyDict_Check(value) ? write_dict(to, value, at) : write_other(to, value, at);
}

bool core_encode(core_state *state, jobq_writer *w, PyObject *value, const char *root)
{
    writer to = {state, w, root};
    const path top = {NULL, NULL, NULL, 0, 0};
    return write_value(&to, value, &top);
}
