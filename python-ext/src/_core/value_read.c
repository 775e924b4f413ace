/* SPDX-License-Identifier: MIT
 *
 * Payload to Python values (rule A3), built directly from the reader's tokens, and the times of
 * both directions. Runs no user code.
 */
#include "core.h"

/* ---- times ----------------------------------------------------------------------------------- */

bool core_is_datetime(core_state *state, PyObject *value)
{
    return PyObject_IsInstance(value, core_get(state, CORE_DATETIME)) == 1;
}

static bool read_number(PyObject *of, const char *name, long long *out)
{
    PyObject *value = PyObject_GetAttrString(of, name);
    *out = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return !PyErr_Occurred();
}

bool core_time_read(core_state *state, PyObject *value, int64_t *seconds_out,
                    uint32_t *microseconds_out)
{
    long long days, seconds, microseconds;
    PyObject *offset = PyObject_CallMethod(value, "utcoffset", NULL);
    if (!offset) {
        return false;
    }
    const bool naive = offset == Py_None;
    Py_DECREF(offset);
    if (naive) {
        PyErr_SetString(PyExc_ValueError, "a naive datetime");
        return false;
    }
    PyObject *since = PyNumber_Subtract(value, core_get(state, CORE_EPOCH));
    const bool done = since && read_number(since, "days", &days) &&
                      read_number(since, "seconds", &seconds) &&
                      read_number(since, "microseconds", &microseconds);
    Py_XDECREF(since);
    if (done) {
        *seconds_out = days * 86400 + seconds;
        *microseconds_out = (uint32_t)microseconds;
    }
    return done;
}

PyObject *core_time_make(core_state *state, int64_t seconds, uint32_t microseconds)
{
    const int64_t days = seconds / 86400 - (seconds % 86400 < 0);
    PyObject *since =
        PyObject_CallFunction(core_get(state, CORE_TIMEDELTA), "LLI", (long long)days,
                              (long long)(seconds - days * 86400), (unsigned)microseconds);
    PyObject *time = since ? PyNumber_Add(core_get(state, CORE_EPOCH), since) : NULL;
    Py_XDECREF(since);
    return time;
}

PyObject *core_time_from_ms(core_state *state, int64_t ms)
{
    if (ms == 0) {
        Py_RETURN_NONE;
    }
    const int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    return core_time_make(state, seconds, (uint32_t)(ms - seconds * 1000) * 1000);
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct {
    core_state *state;
    jobq_reader *reader;
    bool problem; /* the body, not the memory, is to blame */
} decoder;

static PyObject *read_value(decoder *d, const jobq_token *token);

static bool next_token(decoder *d, jobq_token *token)
{
    const int rc = jobq_reader_next(d->reader, token);
    if (rc > 0) {
        return true;
    }
    d->problem = rc != JOBQ_ENOMEM;
    core_raise_last(d->state);
    return false;
}

static PyObject *read_list(decoder *d, size_t count)
{
    jobq_token token;
    PyObject *list = PyList_New(0); /* grows: the count is a claim of the body */
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = next_token(d, &token) ? read_value(d, &token) : NULL;
        if (!item || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *read_map(decoder *d, size_t count)
{
    jobq_token token;
    PyObject *map = PyDict_New();
    for (size_t i = 0; map && i < count; i++) {
        PyObject *key = next_token(d, &token) ? read_value(d, &token) : NULL;
        PyObject *item = key && next_token(d, &token) ? read_value(d, &token) : NULL;
        if (!item || PyDict_SetItem(map, key, item) < 0) {
            Py_CLEAR(map);
        }
        Py_XDECREF(key);
        Py_XDECREF(item);
    }
    return map;
}

/* Python's times end with the year 9999, the wire's do not. */
static PyObject *read_time(decoder *d, int64_t seconds, uint32_t nanoseconds)
{
    PyObject *time = core_time_make(d->state, seconds, nanoseconds / 1000);
    if (!time && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyObject *path = PyUnicode_FromString("payload");
        PyObject *message = PyUnicode_FromString(
            "payload: a timestamp outside of the years 1 to 9999, which are all a datetime holds");
        if (path && message) {
            core_raise_payload(d->state, path, message);
        }
        Py_XDECREF(path);
        Py_XDECREF(message);
        d->problem = true;
    }
    return time;
}

static PyObject *read_value(decoder *d, const jobq_token *token)
{
    switch (token->kind) {
    case JOBQ_NIL:
        Py_RETURN_NONE;
    case JOBQ_BOOL:
        return PyBool_FromLong(token->as.boolean);
    case JOBQ_INT:
        return PyLong_FromLongLong(token->as.integer);
    case JOBQ_UINT:
        return PyLong_FromUnsignedLongLong(token->as.unsigned_integer);
    case JOBQ_DOUBLE:
        return PyFloat_FromDouble(token->as.number);
    case JOBQ_STR:
        return PyUnicode_DecodeUTF8(token->as.text.n ? token->as.text.p : "",
                                    (Py_ssize_t)token->as.text.n, NULL);
    case JOBQ_BYTES:
        return PyBytes_FromStringAndSize(token->as.text.n ? token->as.text.p : "",
                                         (Py_ssize_t)token->as.text.n);
    case JOBQ_TIME:
        return read_time(d, token->as.time.seconds, token->as.time.nanoseconds);
    case JOBQ_LIST:
        return read_list(d, token->as.count);
    case JOBQ_MAP:
        return read_map(d, token->as.count);
    }
    return PyErr_Format(PyExc_SystemError, "jobqueue: a token of unknown kind");
}

PyObject *core_decode(core_state *state, int format, const void *p, size_t n, bool *problem_out)
{
    jobq_token token;
    decoder d = {state, state->reader, false};
    state->reader = NULL; /* should a finalizer of the application decode in between */
    if (!d.reader && !(d.reader = jobq_reader_new())) {
        return PyErr_NoMemory();
    }
    jobq_reader_open(d.reader, format, p, n);
    PyObject *value = next_token(&d, &token) ? read_value(&d, &token) : NULL;
    if (value && jobq_reader_next(d.reader, &token) != 0) { /* 0: whole, nothing trails */
        Py_CLEAR(value);
        d.problem = true;
        core_raise_last(state);
    }
    if (state->reader) {
        jobq_reader_free(d.reader);
    } else {
        state->reader = d.reader;
    }
    if (problem_out) {
        *problem_out = !value && d.problem;
    }
    return value;
}
