/* SPDX-License-Identifier: MIT
 *
 * Statements: the application's own that go with a push or a held job (rules B7, O1), and the
 * store's that the application carries out in its own transaction (rules B8, O1).
 */
#include "core.h"

/* ---- the application's ----------------------------------------------------------------------- */

static bool refuse(const char *what, Py_ssize_t i, const char *why, PyObject *value)
{
    PyObject *type = PyType_GetName(Py_TYPE(value));
    if (type) {
        core_raise_type("%s: parameter %zd: %s, %U given", what, i + 1, why, type);
        Py_DECREF(type);
    }
    return false;
}

static bool read_int(jobq_param *param, PyObject *value, const char *what, Py_ssize_t i)
{
    int overflow = 0;
    param->type = JOBQ_PARAM_INT;
    param->integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) {
        core_raise_usage("%s: parameter %zd: an integer beyond 64 bits", what, i + 1);
        return false;
    }
    return !PyErr_Occurred();
}

static bool read_str(jobq_param *param, PyObject *value, const char *what, Py_ssize_t i)
{
    Py_ssize_t n;
    param->type = JOBQ_PARAM_TEXT;
    param->bytes.p = PyUnicode_AsUTF8AndSize(value, &n);
    if (!param->bytes.p) {
        PyErr_Clear();
        core_raise_usage("%s: parameter %zd: a lone surrogate cannot be used here", what, i + 1);
        return false;
    }
    param->bytes.n = (size_t)n;
    return true;
}

static bool read_bytes(jobq_param *param, PyObject *value)
{
    char *p;
    Py_ssize_t n;
    param->type = JOBQ_PARAM_BYTES;
    if (PyBytes_AsStringAndSize(value, &p, &n) < 0) {
        return false;
    }
    param->bytes = (jobq_slice){p, (size_t)n};
    return true;
}

/* Texts and bytes stay the object's. */
static bool read_param(jobq_param *param, PyObject *value, const char *what, Py_ssize_t i)
{
    if (value == Py_None) {
        param->type = JOBQ_PARAM_NULL;
        return true;
    }
    if (PyLong_Check(value)) { /* bool is one */
        return read_int(param, value, what, i);
    }
    if (PyFloat_Check(value)) {
        param->type = JOBQ_PARAM_DOUBLE;
        param->real = PyFloat_AsDouble(value);
        return true;
    }
    if (PyUnicode_Check(value)) {
        return read_str(param, value, what, i);
    }
    if (PyBytes_Check(value)) {
        return read_bytes(param, value);
    }
    return refuse(what, i, "None, bool, int, float, str or bytes is expected", value);
}

static bool read_text(core_statement *out, PyObject *text, const char *what)
{
    Py_ssize_t n;
    if (!PyUnicode_Check(text)) {
        core_raise_type("%s: a statement's text must be a string", what);
        return false;
    }
    const char *p = PyUnicode_AsUTF8AndSize(text, &n);
    if (!p) {
        PyErr_Clear();
        core_raise_usage("%s: a lone surrogate cannot be used here", what);
        return false;
    }
    out->statement.text = (jobq_slice){p, (size_t)n};
    out->text = Py_NewRef(text);
    return true;
}

static bool read_params(core_statement *out, PyObject *params, const char *what)
{
    if (!PyList_Check(params) && !PyTuple_Check(params)) {
        core_raise_type("%s: a statement's parameters must be a list or a tuple", what);
        return false;
    }
    out->values = PySequence_Tuple(params);
    const Py_ssize_t n = out->values ? PyTuple_Size(out->values) : -1;
    out->params = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof(*out->params));
    if (!out->params) {
        return n < 0 ? false : (PyErr_NoMemory(), false);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!read_param(&out->params[i], PyTuple_GetItem(out->values, i), what, i)) {
            return false;
        }
    }
    out->statement.params = out->params;
    out->statement.param_count = (size_t)n;
    return true;
}

static bool read_pair(core_statement *out, PyObject *pair, const char *what)
{
    const Py_ssize_t n = PyTuple_Check(pair) || PyList_Check(pair) ? PySequence_Size(pair) : 0;
    if (n < 1 || n > 2) {
        core_raise_type("%s: a statement is a text, or [text, parameters]", what);
        return false;
    }
    PyObject *text = PySequence_GetItem(pair, 0);
    PyObject *params = n == 2 ? PySequence_GetItem(pair, 1) : NULL;
    const bool done =
        text && read_text(out, text, what) && (!params || read_params(out, params, what));
    Py_XDECREF(text);
    Py_XDECREF(params);
    return done;
}

bool core_statement_read(core_statement *out, PyObject *value, const char *what)
{
    memset(out, 0, sizeof(*out));
    if (PyUnicode_Check(value) ? read_text(out, value, what) : read_pair(out, value, what)) {
        return true;
    }
    core_statement_free(out);
    return false;
}

void core_statement_free(core_statement *statement)
{
    PyMem_Free(statement->params);
    Py_XDECREF(statement->text);
    Py_XDECREF(statement->values);
    memset(statement, 0, sizeof(*statement));
}

/* ---- the store's ----------------------------------------------------------------------------- */

PyObject *core_param_make(const jobq_param *param)
{
    const Py_ssize_t n = (Py_ssize_t)param->bytes.n;
    switch (param->type) {
    case JOBQ_PARAM_INT:
        return PyLong_FromLongLong(param->integer);
    case JOBQ_PARAM_DOUBLE:
        return PyFloat_FromDouble(param->real);
    case JOBQ_PARAM_TEXT: /* of a store whose texts are no UTF-8 */
        return PyUnicode_DecodeUTF8(param->bytes.p, n, "surrogateescape");
    case JOBQ_PARAM_BYTES:
        return PyBytes_FromStringAndSize(param->bytes.p, n);
    default:
        Py_RETURN_NONE;
    }
}

PyObject *core_statement_make(const jobq_statement *statement)
{
    PyObject *params = PyTuple_New((Py_ssize_t)statement->param_count);
    for (size_t i = 0; params && i < statement->param_count; i++) {
        PyObject *one = core_param_make(&statement->params[i]);
        if (!one || PyTuple_SetItem(params, (Py_ssize_t)i, one) < 0) {
            Py_CLEAR(params);
        }
    }
    return params ? Py_BuildValue("(s#N)", statement->text.p, (Py_ssize_t)statement->text.n, params)
                  : NULL;
}

/* Without a word: as the usual client of that store has it (sqlite3; psycopg, PyMySQL). */
int core_paramstyle(PyObject *style, const char *driver)
{
    static const struct {
        const char *word;
        int placeholders;
    } styles[] = {{"qmark", JOBQ_PLACEHOLDER_QUESTION},
                  {"format", JOBQ_PLACEHOLDER_FORMAT},
                  {"numeric", JOBQ_PLACEHOLDER_DOLLAR}};
    if (!style || style == Py_None) {
        return strcmp(driver, "sqlite") == 0 ? JOBQ_PLACEHOLDER_QUESTION : JOBQ_PLACEHOLDER_FORMAT;
    }
    if (!PyUnicode_Check(style)) {
        core_raise_type("paramstyle must be a string or None");
        return -1;
    }
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(style, styles[i].word) == 0) {
            return styles[i].placeholders;
        }
    }
    core_raise_usage("paramstyle must be qmark (?), format (%%s) or numeric ($1)");
    return -1;
}
