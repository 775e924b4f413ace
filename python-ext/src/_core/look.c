/* SPDX-License-Identifier: MIT
 *
 * Queue.reserve, and what looks at one job: find and wait.
 */
#include "core.h"

#include <time.h>

/* ---- taking ---------------------------------------------------------------------------------- */

/* Kept byte for byte as a dead job (rule A7); the caller goes on with the next one. */
static bool bury(core_queue *self, jobq_job *job)
{
    int rc = 0;
    PyObject *exception = core_exception_take();
    PyObject *message = exception ? PyObject_Str(exception) : NULL;
    PyObject *bytes =
        message ? PyUnicode_AsEncodedString(message, "utf-8", "backslashreplace") : NULL;
    Py_XDECREF(exception);
    Py_XDECREF(message);
    if (bytes) {
        static const char name[] = "jobqueue.PayloadError";
        jobq_job_set_error(job, name, sizeof(name) - 1, PyBytes_AsString(bytes),
                           (size_t)PyBytes_Size(bytes), NULL, 0, NULL, 0);
        CORE_CALL(self, rc, jobq_job_settle(job, JOBQ_ENDED_UNDECODABLE, -1));
        (void)rc; /* lost meanwhile: then it is somebody else's to bury */
    }
    Py_XDECREF(bytes);
    jobq_job_free(job);
    return !PyErr_Occurred();
}

static PyObject *reserve(core_queue *self, const core_names *names, int64_t lease_ms)
{
    for (;;) {
        jobq_job *job = NULL;
        size_t n;
        int format, rc = 0;
        bool problem = false;
        CORE_CALL(self, rc,
                  jobq_queue_reserve(self->queue, names->names, names->count, lease_ms, &job));
        if (PyErr_Occurred() || rc < 0) {
            return PyErr_Occurred() ? NULL : core_raise_last(self->state);
        }
        if (rc == 0) {
            Py_RETURN_NONE;
        }
        const void *body = jobq_job_body(job, &n, &format);
        PyObject *payload = core_decode(self->state, format, body, n, &problem);
        if (payload) {
            PyObject *made = core_job_make(self, job, CORE_RESERVED, payload);
            if (!made) {
                jobq_job_free(job);
            }
            return made;
        }
        if (!problem) { /* not the body's fault: the lease gives it back, as after a crash */
            jobq_job_free(job);
            return NULL;
        }
        if (!bury(self, job)) {
            return NULL;
        }
    }
}

PyObject *core_queue_reserve(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queues", "lease", NULL};
    PyObject *list = NULL, *lease = NULL;
    int64_t lease_ms = 30000;
    core_names names;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OO:reserve", keys, &list, &lease) ||
        (lease && !core_seconds(lease, "lease", &lease_ms)) ||
        !core_names_read(&names, list, "queues")) {
        return NULL;
    }
    PyObject *job = reserve(self, &names, lease_ms);
    core_names_free(&names);
    return job;
}

/* ---- looking --------------------------------------------------------------------------------- */

static int64_t counter(const void *queue, size_t i, const char **name)
{
    return jobq_queue_counter(queue, i, name);
}

PyObject *core_queue_counters(core_queue *self, PyObject *unused)
{
    (void)unused;
    return core_queue_is_made(self) ? core_counters(counter, self->queue) : NULL;
}

PyObject *core_queue_find(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"id", NULL};
    core_word id = {.name = "id"};
    jobq_info *info = NULL;
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&:find", keys, core_word_read, &id)) {
        return NULL;
    }
    CORE_CALL(self, rc, jobq_queue_find(self->queue, id.p, id.n, &info));
    if (PyErr_Occurred() || (rc < 0 && rc != JOBQ_ENOTFOUND)) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    if (rc == JOBQ_ENOTFOUND) {
        Py_RETURN_NONE;
    }
    PyObject *made = core_info_make(self->state, info);
    jobq_info_free(info);
    return made;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A signal whose handler raises nothing does not end the wait. */
static int wait_through_signals(core_queue *self, const char *id, size_t n, int64_t timeout_ms,
                                jobq_info **info_out)
{
    const int64_t end = now_ms() + timeout_ms;
    for (;;) {
        const int64_t left = end - now_ms();
        int rc = 0;
        CORE_CALL(self, rc, jobq_queue_wait(self->queue, id, n, left > 0 ? left : 0, info_out));
        if (PyErr_Occurred() || rc != JOBQ_EINTR || PyErr_CheckSignals() < 0) {
            return rc;
        }
    }
}

/* JobDead knows the job as it lies. */
static PyObject *raise_dead(core_queue *self, const jobq_info *info)
{
    PyObject *exception = core_error_make(self->state, NULL);
    PyObject *made = exception && info ? core_info_make(self->state, info) : NULL;
    PyObject *reason =
        made ? core_text_or_none(jobq_info_text(info, JOBQ_INFO_REASON, NULL)) : NULL;
    if (exception && (!info || (reason && PyObject_SetAttrString(exception, "info", made) == 0 &&
                                PyObject_SetAttrString(exception, "reason", reason) == 0))) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_XDECREF(exception);
    Py_XDECREF(made);
    Py_XDECREF(reason);
    return NULL;
}

static PyObject *raise_unknown(core_queue *self, PyObject *id)
{
    PyObject *exception = core_error_make(self->state, NULL);
    PyObject *ids = exception ? Py_BuildValue("[O]", id) : NULL;
    if (ids && PyObject_SetAttrString(exception, "ids", ids) == 0) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_XDECREF(ids);
    Py_XDECREF(exception);
    return NULL;
}

/* The result; one that could not be kept, or cannot be read, is a PayloadError. */
static PyObject *result_of(core_queue *self, const jobq_info *info)
{
    size_t n;
    int format;
    const char *refusal = NULL;
    const void *body = jobq_info_result(info, &n, &format, &refusal);
    if (body) {
        return core_decode(self->state, format, body, n, NULL);
    }
    if (!refusal) {
        Py_RETURN_NONE;
    }
    PyObject *message = core_text_or_none(refusal), *path = PyUnicode_FromString("result");
    if (message && path) {
        core_raise_payload(self->state, path, message);
    }
    Py_XDECREF(message);
    Py_XDECREF(path);
    return NULL;
}

PyObject *core_queue_wait(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"id", "timeout", NULL};
    PyObject *id, *timeout, *result = NULL;
    int64_t timeout_ms;
    jobq_info *info = NULL;
    Py_ssize_t n;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO:wait", keys, &id, &timeout) ||
        !core_seconds(timeout, "timeout", &timeout_ms) || !core_text(id, "id")) {
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(id, &n);
    const int rc = wait_through_signals(self, text, (size_t)n, timeout_ms, &info);
    if (PyErr_Occurred()) {
        /* said already */
    } else if (rc >= 0) {
        result = result_of(self, info);
    } else if (rc == JOBQ_EDEAD) {
        raise_dead(self, info);
    } else if (rc == JOBQ_ENOTFOUND) {
        raise_unknown(self, id);
    } else {
        core_raise_last(self->state);
    }
    jobq_info_free(info);
    return result;
}
