/* SPDX-License-Identifier: MIT
 *
 * Keyword arguments to the library's options. Ranges, defaults and scopes are the library's table;
 * here only kinds of values are told apart.
 */
#include "core.h"

#include <limits.h>

static bool answer(core_state *state, int rc)
{
    if (rc < 0) {
        core_raise_last(state);
        return false;
    }
    return true;
}

/* For values that never reach the library: the name is judged first. */
static bool check_option(core_state *state, jobq_conf *conf, const char *name)
{
    return answer(state, jobq_conf_check(conf, name));
}

/* ---- refusing -------------------------------------------------------------------------------- */

static const char *type_name(PyObject *value, PyObject **holder)
{
    *holder = PyType_GetName(Py_TYPE(value));
    const char *text = *holder ? PyUnicode_AsUTF8AndSize(*holder, NULL) : NULL;
    return text ? text : "?";
}

bool core_refuse_type(const char *name, PyObject *value, const char *what)
{
    PyObject *holder;
    const char *type = type_name(value, &holder);
    core_raise_type("%s: %s, %s given", name, what, type);
    Py_XDECREF(holder);
    return false;
}

PyObject *core_refuse_argument(PyObject *module, PyObject *args)
{
    const char *name, *what;
    PyObject *value;
    (void)module;
    if (PyArg_ParseTuple(args, "sOs:refuse_type", &name, &value, &what)) {
        core_refuse_type(name, value, what);
    }
    return NULL;
}

/* Takes the option values of that kind? What the command line may say in text, "no" or "3", is no
 * bool and no number here. An unknown name is for the setter to refuse. */
static bool check_kind(jobq_conf *conf, const char *name, int kind, PyObject *value)
{
    char text[96];
    const char *given = kind == JOBQ_VALUE_TEXT ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    const char *expected = jobq_conf_expects(conf, name, kind, given);
    PyErr_Clear(); /* a lone surrogate, which the setter refuses */
    if (!expected) {
        return true;
    }
    snprintf(text, sizeof(text), "%s is expected", expected);
    return core_refuse_type(name, value, text);
}

/* Text of a str, number or, for dont_retry, an exception's class: "shop.errors.NoStock". */
static PyObject *text_of(const char *name, PyObject *value)
{
    if (PyUnicode_Check(value)) {
        return Py_NewRef(value);
    }
    if ((PyLong_Check(value) && !PyBool_Check(value)) || PyFloat_Check(value)) {
        return PyObject_Repr(value);
    }
    if (PyType_Check(value)) {
        PyObject *module = PyObject_GetAttrString(value, "__module__");
        PyObject *called = PyType_GetQualName((PyTypeObject *)value);
        PyObject *text = NULL;
        if (module && called) {
            text =
                PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "builtins") == 0
                    ? Py_NewRef(called)
                    : PyUnicode_FromFormat("%S.%U", module, called);
        }
        Py_XDECREF(module);
        Py_XDECREF(called);
        return text;
    }
    core_refuse_type(name, value, "a list of strings or numbers is expected");
    return NULL;
}

static bool set_text(core_state *state, jobq_conf *conf, const char *name,
                     int (*set)(jobq_conf *, const char *, const char *, size_t), PyObject *value)
{
    Py_ssize_t n;
    PyObject *text = text_of(name, value);
    const char *p = text ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
    const bool done = p && answer(state, set(conf, name, p, (size_t)n));
    if (text && !p) {
        PyErr_Clear();
        core_raise_usage("%s: a lone surrogate cannot be used here", name);
    }
    Py_XDECREF(text);
    return done;
}

static bool set_list(core_state *state, jobq_conf *conf, const char *name, PyObject *list)
{
    if (!check_option(state, conf, name)) {
        return false;
    }
    const Py_ssize_t n = PySequence_Size(list);
    if (n <= 0) {
        core_raise_usage("%s: the list is empty; leave the option out for its default", name);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        const bool done = item && set_text(state, conf, name, jobq_conf_add, item);
        Py_XDECREF(item);
        if (!done) {
            return false;
        }
    }
    return true;
}

/* Instants travel as RFC 3339 text in UTC with milliseconds. Whatever lies before 1970 is past. */
static bool set_time(core_state *state, jobq_conf *conf, const char *name, PyObject *value)
{
    int64_t seconds;
    uint32_t microseconds;
    PyObject *when = NULL, *text = NULL;
    if (!check_option(state, conf, name)) {
        return false;
    }
    if (!core_time_read(state, value, &seconds, &microseconds)) {
        if (PyErr_ExceptionMatches(PyExc_ValueError)) {
            PyErr_Clear();
            core_raise_usage("%s: a naive datetime cannot be used here: give it a time zone", name);
        }
        return false;
    }
    if (seconds < 0) {
        seconds = microseconds = 0;
    }
    when = core_time_make(state, seconds, microseconds);
    text = when ? PyObject_CallMethod(when, "isoformat", "ss", "T", "milliseconds") : NULL;
    const bool done = text && set_text(state, conf, name, jobq_conf_set, text);
    Py_XDECREF(text);
    Py_XDECREF(when);
    return done;
}

static bool set_int(core_state *state, jobq_conf *conf, const char *name, PyObject *value)
{
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) {
        return set_text(state, conf, name, jobq_conf_set, value);
    }
    return !PyErr_Occurred() && answer(state, jobq_conf_set_int(conf, name, number));
}

static bool is_timedelta(core_state *state, PyObject *value)
{
    return PyObject_IsInstance(value, core_get(state, CORE_TIMEDELTA)) == 1;
}

static bool set_double(core_state *state, jobq_conf *conf, const char *name, PyObject *value)
{
    const double number = PyFloat_AsDouble(value);
    return !PyErr_Occurred() && answer(state, jobq_conf_set_double(conf, name, number));
}

static bool set_timedelta(core_state *state, jobq_conf *conf, const char *name, PyObject *value)
{
    PyObject *seconds = PyObject_CallMethod(value, "total_seconds", NULL);
    const bool done = seconds && set_double(state, conf, name, seconds);
    Py_XDECREF(seconds);
    return done;
}

static bool set_bool(core_state *state, jobq_conf *conf, const char *name, bool value)
{
    return answer(state, jobq_conf_set_bool(conf, name, value));
}

/* JOBQ_VALUE_*, -1: none. */
static int kind_of(core_state *state, PyObject *value)
{
    if (PyBool_Check(value)) {
        return JOBQ_VALUE_BOOL;
    }
    if (PyLong_Check(value) || PyFloat_Check(value)) {
        return JOBQ_VALUE_NUMBER;
    }
    if (PyUnicode_Check(value)) {
        return JOBQ_VALUE_TEXT;
    }
    if (PyList_Check(value) || PyTuple_Check(value) || PyExceptionClass_Check(value)) {
        return JOBQ_VALUE_LIST;
    }
    if (is_timedelta(state, value)) {
        return JOBQ_VALUE_NUMBER;
    }
    return core_is_datetime(state, value) ? JOBQ_VALUE_TIME : -1;
}

bool core_conf_set(core_state *state, jobq_conf *conf, const char *name, PyObject *value)
{
    if (value == Py_None) { /* the default; still, the name must be one that is allowed here */
        return check_option(state, conf, name);
    }
    const int kind = kind_of(state, value);
    if (kind >= 0 && !check_kind(conf, name, kind, value)) {
        return false;
    }
    switch (kind) {
    case JOBQ_VALUE_BOOL:
        return set_bool(state, conf, name, value == Py_True);
    case JOBQ_VALUE_NUMBER:
        return PyLong_Check(value)    ? set_int(state, conf, name, value)
               : PyFloat_Check(value) ? set_double(state, conf, name, value)
                                      : set_timedelta(state, conf, name, value);
    case JOBQ_VALUE_TEXT:
        return set_text(state, conf, name, jobq_conf_set, value);
    case JOBQ_VALUE_LIST:
        return PyType_Check(value) ? set_text(state, conf, name, jobq_conf_add, value)
                                   : set_list(state, conf, name, value);
    case JOBQ_VALUE_TIME:
        return set_time(state, conf, name, value);
    default:
        return check_option(state, conf, name) &&
               core_refuse_type(name, value,
                                "a number, a string, a list, a time or None is expected");
    }
}

bool core_conf_named(core_state *state, jobq_conf *conf, PyObject *name, PyObject *value)
{
    const char *text = core_text(name, "an option's name");
    return text && core_conf_set(state, conf, text, value);
}

bool core_conf_all(core_state *state, jobq_conf *conf, PyObject *options)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (options && PyDict_Next(options, &at, &name, &value)) {
        if (!core_conf_named(state, conf, name, value)) {
            return false;
        }
    }
    return true;
}

bool core_seconds(PyObject *value, const char *what, int64_t *ms_out)
{
    double seconds = -1;
    PyObject *holder = NULL;
    if (!PyBool_Check(value) && (PyLong_Check(value) || PyFloat_Check(value))) {
        seconds = PyFloat_AsDouble(value);
    } else if ((holder = PyObject_CallMethod(value, "total_seconds", NULL))) {
        seconds = PyFloat_AsDouble(holder);
        Py_DECREF(holder);
    } else {
        PyErr_Clear();
        return core_refuse_type(what, value, "a number of seconds is expected");
    }
    PyErr_Clear();
    if (!(seconds >= 0) || seconds > 1e12) {
        core_raise_usage("%s must be a number of seconds, 0 or more", what);
        return false;
    }
    *ms_out = (int64_t)(seconds * 1000.0 + 0.5);
    if (*ms_out == 0 && seconds > 0)
        *ms_out = 1; /* zero would mean "off" or "for ever" */
    return true;
}

int core_flag_read(PyObject *value, void *flag)
{
    core_flag *out = flag;
    if (!PyBool_Check(value)) {
        return core_refuse_type(out->name, value, "True or False is expected");
    }
    out->is = value == Py_True;
    return 1;
}

const char *core_text(PyObject *value, const char *what)
{
    Py_ssize_t n;
    if (!PyUnicode_Check(value)) {
        core_refuse_type(what, value, "a string is expected");
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(value, &n);
    if (!text) {
        PyErr_Clear();
        core_raise_usage("%s: a lone surrogate cannot be used here", what);
    } else if (strlen(text) != (size_t)n) {
        core_raise_usage("%s holds a NUL byte", what);
        text = NULL;
    }
    return text;
}

int core_word_read(PyObject *value, void *word)
{
    core_word *out = word;
    if (out->optional && value == Py_None) {
        return 1;
    }
    out->p = core_text(value, out->name);
    out->n = out->p ? strlen(out->p) : 0;
    return out->p != NULL;
}

int core_whole_read(PyObject *value, void *whole)
{
    core_whole *out = whole;
    int overflow = 0;
    if (PyBool_Check(value) || !PyIndex_Check(value)) {
        return core_refuse_type(out->name, value, "a whole number is expected");
    }
    PyObject *number = PyNumber_Index(value);
    if (number) { /* far out of range either way */
        out->is = PyLong_AsLongLongAndOverflow(number, &overflow);
        out->is = overflow ? (overflow > 0 ? LLONG_MAX : LLONG_MIN) : out->is;
        Py_DECREF(number);
    }
    return number != NULL;
}

/* ---- names of queues ------------------------------------------------------------------------- */

/* "high, default" as a list; blanks round the commas are no part of a name. */
static PyObject *split_names(PyObject *text)
{
    PyObject *comma = PyUnicode_FromString(",");
    PyObject *parts = comma ? PyUnicode_Split(text, comma, -1) : NULL;
    Py_XDECREF(comma);
    for (Py_ssize_t i = 0; parts && i < PyList_Size(parts); i++) {
        PyObject *bare = PyObject_CallMethod(PyList_GetItem(parts, i), "strip", "s", " ");
        if (!bare || PyList_SetItem(parts, i, bare) < 0) {
            Py_CLEAR(parts);
        }
    }
    return parts;
}

static bool read_names(core_names *names, const char *what)
{
    const Py_ssize_t n = PyList_Size(names->list);
    names->names = PyMem_Calloc((size_t)n + 1, sizeof(char *));
    if (!names->names) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *text = core_text(PyList_GetItem(names->list, i), what);
        if (text && !*text) {
            core_raise_usage("%s: a name has 1 to 128 bytes and no control characters", what);
            text = NULL;
        }
        if (!text) {
            return false;
        }
        names->names[names->count++] = text;
    }
    return true;
}

bool core_names_read(core_names *names, PyObject *value, const char *what)
{
    memset(names, 0, sizeof(*names));
    if (value && value != Py_None && !PyType_GetSlot(Py_TYPE(value), Py_tp_iter) &&
        !PySequence_Check(value)) {
        return core_refuse_type(what, value, "a string or an iterable of strings is expected");
    }
    if (!value || value == Py_None) {
        names->list = PyList_New(0);
    } else {
        names->list = PyUnicode_Check(value) ? split_names(value) : PySequence_List(value);
    }
    if (names->list && read_names(names, what)) {
        return true;
    }
    core_names_free(names);
    return false;
}

void core_names_free(core_names *names)
{
    PyMem_Free(names->names);
    Py_XDECREF(names->list);
    memset(names, 0, sizeof(*names));
}
