/* SPDX-License-Identifier: MIT
 *
 * Error codes to exceptions: the one table, and the only file that raises what the library
 * reports. Usage errors are ValueError and TypeError, everything else a QueueError with the
 * library's stable word as its error_code.
 */
#include "core.h"

#include <stdarg.h>

/* Which class stands for which code; anything not listed is a plain QueueError. */
static const struct {
    int code;
    core_import which;
    const char *subject; /* the attribute that holds what the error is about */
} error_classes[] = {
    {JOBQ_ECONNECT, CORE_STORE_ERROR, NULL},     {JOBQ_EIO, CORE_STORE_ERROR, NULL},
    {JOBQ_ETIMEOUT, CORE_STORE_ERROR, NULL},     {JOBQ_EBUSY, CORE_STORE_ERROR, NULL},
    {JOBQ_EPROTO, CORE_STORE_ERROR, NULL},       {JOBQ_EINTR, CORE_STORE_ERROR, NULL},
    {JOBQ_EUNKNOWN, CORE_OUTCOME_UNKNOWN, "id"}, {JOBQ_EEXISTS, CORE_DUPLICATE_JOB, "id"},
    {JOBQ_ELEASE, CORE_LEASE_LOST, NULL},        {JOBQ_EPAYLOAD, CORE_PAYLOAD_ERROR, "path"},
    {JOBQ_ELIMIT, CORE_PAYLOAD_ERROR, "path"},   {JOBQ_ENOTFOUND, CORE_NOT_FOUND, NULL},
    {JOBQ_EFULL, CORE_QUEUE_FULL, "queue"},      {JOBQ_EGUARD, CORE_GUARD_REFUSED, NULL},
    {JOBQ_EDEAD, CORE_JOB_DEAD, "id"},           {JOBQ_EPENDING, CORE_WAIT_TIMEOUT, "id"},
};

static PyObject *class_of(core_state *state, const jobq_error *err, const char **subject_out)
{
    const int code = jobq_error_code(err);
    *subject_out = NULL;
    if (code == JOBQ_EINVAL) { /* also when the store found it: a guard's SQL, a value */
        return PyExc_ValueError;
    }
    if (code == JOBQ_ECONF) {
        /* said by a store (refused password, newer schema): no mistake in the call */
        return *jobq_error_driver(err) ? core_get(state, CORE_STORE_ERROR) : PyExc_ValueError;
    }
    if (code == JOBQ_ENOMEM) {
        return PyExc_MemoryError;
    }
    for (size_t i = 0; i < sizeof(error_classes) / sizeof(error_classes[0]); i++) {
        if (error_classes[i].code == code) {
            *subject_out = error_classes[i].subject;
            return core_get(state, error_classes[i].which);
        }
    }
    return core_get(state, CORE_QUEUE_ERROR);
}

/* Steals the value. */
static bool set_attribute(PyObject *object, const char *name, PyObject *value)
{
    const bool done = value && PyObject_SetAttrString(object, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

static PyObject *readable(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* Steals the message. */
static PyObject *make(PyObject *class, PyObject *message)
{
    PyObject *exception = message ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
    Py_XDECREF(message);
    return exception;
}

/* What it is about, and for programs the word and whether to try again. */
static bool describe(PyObject *exception, const jobq_error *err, const char *subject)
{
    const char *about = jobq_error_subject(err);
    const int code = jobq_error_code(err);
    if (subject && strcmp(subject, "path") == 0 && !*about) {
        about = "payload";
    }
    return set_attribute(exception, "error_code", PyUnicode_FromString(jobq_error_word(code))) &&
           set_attribute(exception, "_retryable", PyBool_FromLong(jobq_error_is_retryable(err))) &&
           (!subject || set_attribute(exception, subject, readable(about))) &&
           (code != JOBQ_EFULL ||
            set_attribute(exception, "capacity", PyLong_FromLongLong(jobq_error_native(err))));
}

PyObject *core_error_make(core_state *state, const jobq_error *err)
{
    const char *subject;
    err = err ? err : jobq_error_last();
    PyObject *class = class_of(state, err, &subject);
    PyObject *exception = make(class, readable(jobq_error_message(err)));
    const bool plain = class == PyExc_ValueError || class == PyExc_MemoryError;
    if (exception && !plain && !describe(exception, err, subject)) {
        Py_CLEAR(exception);
    }
    return exception;
}

/* Steals the exception. */
static PyObject *raise_made(PyObject *exception)
{
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

/* A signal that ended the call speaks first: Ctrl-C is no error of the store. */
PyObject *core_raise_last(core_state *state)
{
    PyObject *exception = core_error_make(state, NULL);
    if (exception && PyErr_CheckSignals() < 0) {
        Py_DECREF(exception);
        return NULL;
    }
    return raise_made(exception);
}

#define RAISE(class)                 \
    va_list args;                    \
    va_start(args, fmt);             \
    PyErr_FormatV(class, fmt, args); \
    va_end(args);                    \
    return NULL

PyObject *core_raise_usage(const char *fmt, ...)
{
    RAISE(PyExc_ValueError);
}

PyObject *core_raise_type(const char *fmt, ...)
{
    RAISE(PyExc_TypeError);
}

PyObject *core_raise_logic(const char *fmt, ...)
{
    RAISE(PyExc_RuntimeError);
}

/* Borrows the message. */
static PyObject *make_word(core_state *state, core_import which, const char *word,
                           PyObject *message)
{
    Py_XINCREF(message);
    PyObject *exception = make(core_get(state, which), message);
    if (exception && !set_attribute(exception, "error_code", PyUnicode_FromString(word))) {
        Py_CLEAR(exception);
    }
    return exception;
}

static PyObject *raise_about(core_state *state, core_import which, int code, const char *attribute,
                             PyObject *about, PyObject *message)
{
    PyObject *exception = make_word(state, which, jobq_error_word(code), message);
    if (exception && PyObject_SetAttrString(exception, attribute, about) < 0) {
        Py_CLEAR(exception);
    }
    return raise_made(exception);
}

PyObject *core_raise_payload(core_state *state, PyObject *path, PyObject *message)
{
    return raise_about(state, CORE_PAYLOAD_ERROR, JOBQ_EPAYLOAD, "path", path, message);
}

PyObject *core_raise_not_found(core_state *state, PyObject *ids, PyObject *message)
{
    return raise_about(state, CORE_NOT_FOUND, JOBQ_ENOTFOUND, "ids", ids, message);
}

static PyObject *raise_text(core_state *state, core_import which, const char *word,
                            const char *text)
{
    PyObject *message = PyUnicode_FromString(text);
    PyObject *exception = make_word(state, which, word, message);
    Py_XDECREF(message);
    return raise_made(exception);
}

PyObject *core_raise_interrupt(core_state *state, int kind, jobq_job *job)
{
    char text[128];
    const bool over = kind == JOBQ_INTERRUPT_TIMEOUT;
    if (over) { /* not as snprintf: the program's locale may have a comma */
        const double limit = (double)jobq_job_get(job, JOBQ_JOB_TIMEOUT_MS) / 1000.0;
        char *number = PyOS_double_to_string(limit, 'g', 6, 0, NULL);
        if (!number) {
            return NULL;
        }
        snprintf(text, sizeof(text), "the job is over its time limit of %s s", number);
        PyMem_Free(number);
    } else {
        snprintf(text, sizeof(text), "the worker stops and cannot wait for the job");
    }
    return raise_text(state, over ? CORE_JOB_TIMEOUT : CORE_JOB_STOP,
                      over ? "timed_out" : "stopped", text);
}

PyObject *core_raise_lease_lost(core_state *state)
{
    return raise_text(state, CORE_LEASE_LOST, jobq_error_word(JOBQ_ELEASE),
                      "the lease of the job is lost: its result will be refused");
}

PyObject *core_raise_cancelled(core_state *state)
{
    return raise_text(state, CORE_JOB_STOP, "cancelled", "the job was cancelled");
}

PyObject *core_exception_take(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace && value) {
        PyException_SetTraceback(value, trace);
    }
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

PyObject *core_error_take(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
        return NULL;
    }
    PyObject *error = core_exception_take();
    return error ? error : PyErr_NoMemory();
}
