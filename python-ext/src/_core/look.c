/* SPDX-License-Identifier: MIT
 *
 * Queue.reserve, and what looks at a store: counts, names, one job.
 */
#include "core.h"

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
            PyObject *module = PyType_GetModule(self->state->queue_type);
            PyObject *made = core_job_make(self->state, module, job, CORE_RESERVED, payload);
            if (made) {
                ((core_job *)made)->queue = (core_queue *)Py_NewRef((PyObject *)self);
            } else {
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
        (lease && !core_seconds(lease, "lease", &lease_ms)) || !core_names_read(&names, list)) {
        return NULL;
    }
    PyObject *job = reserve(self, &names, lease_ms);
    core_names_free(&names);
    return job;
}

/* ---- looking --------------------------------------------------------------------------------- */

static PyObject *make_stats(core_queue *self, const char *name, size_t n)
{
    int64_t values[JOBQ_STATS];
    int rc = 0;
    CORE_CALL(self, rc, jobq_queue_stats(self->queue, name, n, values));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    PyObject *age =
        values[JOBQ_STAT_OLDEST_READY_AGE_MS] < 0
            ? Py_NewRef(Py_None)
            : PyFloat_FromDouble((double)values[JOBQ_STAT_OLDEST_READY_AGE_MS] / 1000.0);
    return age ? PyObject_CallFunction(
                     core_get(self->state, CORE_STATS), "s#LLLLLNO", name, (Py_ssize_t)n,
                     (long long)values[JOBQ_STAT_READY], (long long)values[JOBQ_STAT_DELAYED],
                     (long long)values[JOBQ_STAT_RESERVED], (long long)values[JOBQ_STAT_DEAD],
                     (long long)values[JOBQ_STAT_BACKLOG], age,
                     values[JOBQ_STAT_PAUSED] ? Py_True : Py_False)
               : NULL;
}

PyObject *core_queue_stats(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", NULL};
    const char *name;
    Py_ssize_t n;
    if (!PyArg_ParseTupleAndKeywords(args, named, "s#:stats", keys, &name, &n)) {
        return NULL;
    }
    return make_stats(self, name, (size_t)n);
}

/* A list of names, or name -> Stats. */
static PyObject *list_queues(core_queue *self, bool stats)
{
    char **names = NULL;
    size_t count = 0;
    int rc = 0;
    CORE_CALL(self, rc, jobq_queue_names(self->queue, &names, &count));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    PyObject *all = stats ? PyDict_New() : PyList_New(0);
    for (size_t i = 0; all && i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        PyObject *value = name && stats ? make_stats(self, names[i], strlen(names[i])) : NULL;
        const bool done = name && (!stats ? PyList_Append(all, name) == 0
                                          : value && PyDict_SetItem(all, name, value) == 0);
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (!done) {
            Py_CLEAR(all);
        }
    }
    jobq_names_free(names, count);
    return all;
}

PyObject *core_queue_all_stats(core_queue *self, PyObject *unused)
{
    (void)unused;
    return list_queues(self, true);
}

PyObject *core_queue_queues(core_queue *self, PyObject *unused)
{
    (void)unused;
    return list_queues(self, false);
}

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
    const char *id;
    Py_ssize_t n;
    jobq_info *info = NULL;
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "s#:find", keys, &id, &n)) {
        return NULL;
    }
    CORE_CALL(self, rc, jobq_queue_find(self->queue, id, (size_t)n, &info));
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
