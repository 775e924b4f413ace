/* SPDX-License-Identifier: MIT
 *
 * What a held job can do in the store (rules N7, O1, O2): progress, result, effect, the statement
 * that ends it in the caller's own transaction, fingerprint.
 */
#include "core.h"

/* One that is held: not of an event, not ended. */
static core_job *held(core_job *self, const char *method)
{
    if (!core_job_living(self)) {
        return NULL;
    }
    if (self->kind == CORE_EVENT) {
        core_raise_logic("%s(): the job of an event is only to be looked at", method);
        return NULL;
    }
    if (self->kind == CORE_RESERVED && self->decided) {
        core_raise_logic("%s(): the job has ended", method);
        return NULL;
    }
    return self;
}

static PyObject *answer(core_job *self, int rc)
{
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

PyObject *core_job_progress(core_job *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"percent", "note", NULL};
    PyObject *percent;
    PyObject *text = Py_None;
    const char *note = NULL;
    Py_ssize_t n = 0;
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|O:progress", names, &percent, &text)) {
        return NULL;
    }
    if (text != Py_None && !PyUnicode_Check(text)) {
        return core_raise_type("progress(): note must be a string or None");
    }
    if (text != Py_None && !(note = PyUnicode_AsUTF8AndSize(text, &n))) {
        return NULL;
    }
    if (PyBool_Check(percent) || (!PyLong_Check(percent) && !PyFloat_Check(percent))) {
        return core_raise_type("progress(): percent must be a number from 0 to 100");
    }
    const double value = PyFloat_AsDouble(percent);
    if (PyErr_Occurred() || !held(self, "progress")) {
        return NULL;
    }
    CORE_JOB_CALL(self, false, rc, jobq_job_progress(self->job, value, note, (size_t)n));
    return answer(self, rc);
}

PyObject *core_job_effect(core_job *self, PyObject *value)
{
    core_statement statement;
    jobq_param found = {.type = JOBQ_PARAM_NULL};
    int rc = 0;
    if (!held(self, "effect") || !core_statement_read(&statement, value, "effect")) {
        return NULL;
    }
    self->reached = true;
    CORE_JOB_CALL(self, true, rc, jobq_job_effect(self->job, &statement.statement, &found));
    core_statement_free(&statement);
    PyObject *none = answer(self, rc);
    Py_XDECREF(none);
    return none ? core_param_make(&found) : NULL;
}

PyObject *core_job_done_statement(core_job *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"paramstyle", "result", NULL};
    PyObject *style = NULL, *result = Py_None;
    const jobq_statement *statement = NULL;
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OO:done_statement", names, &style, &result) ||
        !held(self, "done_statement")) {
        return NULL;
    }
    const int placeholders = core_paramstyle(style, jobq_queue_driver(self->queue->queue));
    if (placeholders < 0 || !core_job_keep_result(self, result)) {
        return NULL;
    }
    self->reached = true;
    CORE_JOB_CALL(self, true, rc, jobq_job_done_statement(self->job, placeholders, &statement));
    PyObject *none = answer(self, rc);
    Py_XDECREF(none);
    return none ? core_statement_make(statement) : NULL;
}

PyObject *core_job_fingerprint(core_job *self, PyObject *unused)
{
    (void)unused;
    if (!core_job_living(self)) {
        return NULL;
    }
    const char *text = jobq_job_fingerprint(self->job);
    return text ? PyUnicode_FromString(text) : core_raise_last(self->state);
}

/* ---- results --------------------------------------------------------------------------------- */

bool core_job_keep_result(core_job *self, PyObject *value)
{
    const void *p;
    size_t n;
    if (value == Py_None || !jobq_job_is_kept(self->job)) {
        return true;
    }
    jobq_writer *w = jobq_writer_new((size_t)64 << 20);
    if (!w) {
        core_raise_last(self->state);
        return false;
    }
    bool good = core_encode(self->state, w, value, "result");
    if (good && (jobq_writer_finish(w, &p, &n) < 0 ||
                 jobq_job_set_result(self->job, JOBQ_FORMAT_MSGPACK, p, n) < 0)) {
        core_raise_last(self->state);
        good = false;
    }
    jobq_writer_free(w);
    return good;
}

static void refuse_result(core_job *self, PyObject *error)
{
    PyObject *text = PyObject_Str(error);
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
    PyErr_Clear();
    jobq_job_refuse_result(self->job, bytes ? PyBytes_AsString(bytes) : "",
                           bytes ? (size_t)PyBytes_Size(bytes) : 0);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
}

/* What the handler has returned: None, or the exception that says why it cannot be kept. The job is
 * done all the same, and those who ask for its result are told. */
PyObject *core_job_take_result(core_job *self, PyObject *value)
{
    if (!core_job_living(self)) {
        return NULL;
    }
    if (core_job_keep_result(self, value)) {
        Py_RETURN_NONE;
    }
    PyObject *error = core_exception_take();
    if (!error) {
        return PyErr_NoMemory();
    }
    refuse_result(self, error);
    return error;
}
