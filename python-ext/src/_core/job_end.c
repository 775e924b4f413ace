/* SPDX-License-Identifier: MIT
 *
 * How a Job ends. In a handler release, fail and delete only note what shall become of it (rule
 * D3); after Queue.reserve() they act at once.
 */
#include "core.h"

core_job *core_job_living(core_job *self)
{
    if (!self->job) {
        core_raise_logic("the job has ended");
        return NULL;
    }
    return self;
}

bool core_job_enter(core_job *self, bool locked)
{
    if (locked && !core_queue_enter(self->queue)) {
        return false;
    }
    if (core_job_living(self)) { /* it may have ended while we waited for the handle */
        return true;
    }
    if (locked) {
        core_queue_leave(self->queue);
    }
    return false;
}

/* The first of release, fail, delete (done, retry) wins. */
static bool is_open(core_job *self, const char *method)
{
    if (!core_job_living(self)) {
        return false;
    }
    if (self->kind == CORE_EVENT) {
        core_raise_logic("%s(): a job of an event cannot be settled", method);
        return false;
    }
    if (self->lost) {
        core_raise_lease_lost(self->state);
        return false;
    }
    if (self->decided) {
        core_raise_logic("%s(): the job's end is decided already (%s)", method,
                         jobq_ending_word(self->decision));
        return false;
    }
    return true;
}

static PyObject *decide(core_job *self, jobq_ending ending, int64_t delay_ms)
{
    int rc = 0;
    if (self->kind == CORE_RESERVED) {
        rc = JOBQ_ENOMEM;
        CORE_JOB_CALL(self, true, rc, jobq_job_settle(self->job, ending, delay_ms));
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (rc < 0) {
        self->lost = jobq_error_code(jobq_error_last()) == JOBQ_ELEASE;
        return core_raise_last(self->state);
    }
    self->decided = true;
    self->decision = ending;
    self->delay_ms = delay_ms;
    Py_RETURN_NONE;
}

PyObject *core_job_release(core_job *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"delay", NULL};
    PyObject *delay = NULL;
    int64_t ms = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O:release", names, &delay) ||
        (delay && !core_seconds(delay, "delay", &ms)) || !is_open(self, "release")) {
        return NULL;
    }
    return decide(self, JOBQ_ENDED_RELEASED, ms);
}

/* (class, message, where, trace) of an exception, or a text alone, into the job's record. */
static bool note_error(core_job *self, PyObject *error)
{
    const char *part[4] = {NULL, NULL, NULL, NULL};
    Py_ssize_t n[4] = {0, 0, 0, 0};
    PyObject *record;
    if (PyUnicode_Check(error)) {
        record = Py_BuildValue("(sOss)", "", error, "", "");
    } else {
        record =
            PyObject_CallFunctionObjArgs(core_get(self->state, CORE_RECORD_FAULT), error, NULL);
    }
    if (!record) {
        return false;
    }
    for (Py_ssize_t i = 0; i < 4; i++) {
        PyObject *text = PyTuple_GetItem(record, i);
        PyObject *bytes =
            text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
        if (!bytes || PyTuple_SetItem(record, i, bytes) < 0) {
            Py_DECREF(record);
            return false;
        }
        part[i] = PyBytes_AsString(bytes);
        n[i] = PyBytes_Size(bytes);
    }
    jobq_job_set_error(self->job, n[0] ? part[0] : NULL, (size_t)n[0], part[1], (size_t)n[1],
                       n[2] ? part[2] : NULL, (size_t)n[2], n[3] ? part[3] : NULL, (size_t)n[3]);
    Py_DECREF(record);
    return true;
}

PyObject *core_job_set_error(core_job *self, PyObject *error)
{
    if (!core_job_living(self) || !note_error(self, error)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static bool is_error(PyObject *value)
{
    return PyExceptionInstance_Check(value);
}

PyObject *core_job_fail(core_job *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"reason", NULL};
    PyObject *reason;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O:fail", names, &reason)) {
        return NULL;
    }
    if (!PyUnicode_Check(reason) && !is_error(reason)) {
        return core_raise_type("fail(): reason must be a string or an exception");
    }
    if (!is_open(self, "fail") || !note_error(self, reason)) {
        return NULL;
    }
    return decide(self, JOBQ_ENDED_FAILED_BY_HANDLER, -1);
}

PyObject *core_job_delete(core_job *self, PyObject *unused)
{
    (void)unused;
    return is_open(self, "delete") ? decide(self, JOBQ_ENDED_DONE, -1) : NULL;
}

static bool reserved_only(core_job *self, const char *method)
{
    if (!is_open(self, method)) {
        return false;
    }
    if (self->kind != CORE_RESERVED) {
        core_raise_logic("%s() is for jobs of Queue.reserve(); a handler returns, raises, or calls "
                         "release(), fail() or delete()",
                         method);
        return false;
    }
    return true;
}

PyObject *core_job_done(core_job *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"result", NULL};
    PyObject *result = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O:done", names, &result) ||
        !reserved_only(self, "done") || !core_job_keep_result(self, result)) {
        return NULL;
    }
    return decide(self, JOBQ_ENDED_DONE, -1);
}

PyObject *core_job_retry(core_job *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"delay", "error", NULL};
    PyObject *delay = Py_None, *error = Py_None;
    int64_t ms = -1;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OO:retry", names, &delay, &error) ||
        (delay != Py_None && !core_seconds(delay, "delay", &ms))) {
        return NULL;
    }
    if (error != Py_None && !is_error(error)) {
        return core_raise_type("retry(): error must be an exception or None");
    }
    if (!reserved_only(self, "retry") || (error != Py_None && !note_error(self, error))) {
        return NULL;
    }
    return decide(self, JOBQ_ENDED_FAILED, ms);
}
