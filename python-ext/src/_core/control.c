/* SPDX-License-Identifier: MIT
 *
 * Queue.pause, resume, restart_workers, cancel and clear (rules L1 to L3), and prune.
 */
#include "core.h"

static PyObject *answer_none(core_queue *self, int64_t rc)
{
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

static PyObject *answer_count(core_queue *self, int64_t rc)
{
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    return PyLong_FromLongLong(rc);
}

PyObject *core_queue_pause(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", "ttl", NULL};
    core_word name = {.name = "queue", .optional = true};
    PyObject *ttl = NULL;
    int64_t ttl_ms = 0;
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O&O:pause", keys, core_word_read, &name,
                                     &ttl) ||
        (ttl && !core_seconds(ttl, "ttl", &ttl_ms))) {
        return NULL;
    }
    CORE_CALL(self, rc, jobq_queue_pause(self->queue, name.p, name.n, ttl_ms));
    return answer_none(self, rc);
}

PyObject *core_queue_resume(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", NULL};
    core_word name = {.name = "queue", .optional = true};
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O&:resume", keys, core_word_read, &name)) {
        return NULL;
    }
    CORE_CALL(self, rc, jobq_queue_resume(self->queue, name.p, name.n));
    return answer_none(self, rc);
}

PyObject *core_queue_restart_workers(core_queue *self, PyObject *unused)
{
    int rc = 0;
    (void)unused;
    CORE_CALL(self, rc, jobq_queue_restart_workers(self->queue));
    return answer_none(self, rc);
}

/* The number of restarts asked for so far, -1 when the store cannot be asked: for the console. */
PyObject *core_queue_generation(core_queue *self, PyObject *unused)
{
    int64_t generation = -1;
    (void)unused;
    CORE_CALL(self, generation, jobq_queue_generation(self->queue));
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(generation < 0 ? -1 : generation);
}

PyObject *core_queue_cancel(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"id", "hard", NULL};
    core_word id = {.name = "id"};
    core_flag hard = {"hard", false};
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&|O&:cancel", keys, core_word_read, &id,
                                     core_flag_read, &hard)) {
        return NULL;
    }
    CORE_CALL(self, rc, jobq_queue_cancel(self->queue, id.p, id.n, hard.is));
    if (!PyErr_Occurred() && rc == JOBQ_ENOTFOUND) {
        Py_RETURN_FALSE;
    }
    PyObject *done = answer_none(self, rc);
    Py_XDECREF(done);
    return done ? Py_NewRef(Py_True) : NULL;
}

PyObject *core_queue_clear(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", NULL};
    core_word name = {.name = "queue"};
    int64_t cleared = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&:clear", keys, core_word_read, &name)) {
        return NULL;
    }
    CORE_CALL(self, cleared, jobq_queue_clear(self->queue, name.p, name.n, NULL, NULL));
    return answer_count(self, cleared);
}

/* Without older_than no dead job is old enough. */
PyObject *core_queue_prune(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"dry_run", "older_than", NULL};
    core_flag dry_run = {"dry_run", false};
    PyObject *older_than = Py_None;
    jobq_filter filter = {.size = sizeof(filter)};
    int64_t pruned = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O&O:prune", keys, core_flag_read, &dry_run,
                                     &older_than) ||
        (older_than != Py_None && !core_seconds(older_than, "older_than", &filter.older_than_ms))) {
        return NULL;
    }
    CORE_CALL(self, pruned,
              jobq_queue_prune(self->queue, older_than == Py_None ? NULL : &filter, dry_run.is,
                               NULL, NULL));
    return answer_count(self, pruned);
}
