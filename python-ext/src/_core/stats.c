/* SPDX-License-Identifier: MIT
 *
 * Queue.stats, all_stats and queues (rule N1), and capacity (rule B4).
 */
#include "core.h"

#include <limits.h>

/* ---- minutes --------------------------------------------------------------------------------- */

/* {"up_to": seconds or None, "count": n}, of those that have any. */
static PyObject *make_runs(const jobq_minute_stats *minute)
{
    PyObject *runs = PyList_New(0);
    for (int i = 0; runs && i < JOBQ_RUN_BUCKETS; i++) {
        if (minute->runs[i] == 0) {
            continue;
        }
        PyObject *up_to = i == JOBQ_RUN_BUCKETS - 1
                              ? Py_NewRef(Py_None)
                              : PyFloat_FromDouble((double)((int64_t)1 << i) / 1000.0);
        PyObject *one =
            up_to ? Py_BuildValue("{sNsL}", "up_to", up_to, "count", (long long)minute->runs[i])
                  : NULL;
        if (!one || PyList_Append(runs, one) < 0) {
            Py_CLEAR(runs);
        }
        Py_XDECREF(one);
    }
    return runs;
}

static PyObject *make_minute(core_state *state, const jobq_minute_stats *minute)
{
    PyObject *one = PyDict_New();
    bool good = one && core_add(one, "at", core_time_from_ms(state, minute->at_ms));
    for (int i = 0; good && i < JOBQ_MINUTE_FIELDS; i++) {
        good = core_add(one, jobq_minute_word((jobq_minute_field)i),
                        PyLong_FromLongLong(minute->counts[i]));
    }
    if (!good || !core_add(one, "runs", make_runs(minute))) {
        Py_CLEAR(one);
    }
    return one;
}

static PyObject *make_minutes(core_queue *self, const char *name, size_t n, int minutes)
{
    jobq_minute_stats *list = NULL;
    size_t count = 0;
    int rc = 0;
    if (minutes > 0) {
        CORE_CALL(self, rc, jobq_queue_minutes(self->queue, name, n, minutes, &list, &count));
    }
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    PyObject *made = PyList_New(0);
    for (size_t i = 0; made && i < count; i++) {
        PyObject *one = make_minute(self->state, &list[i]);
        if (!one || PyList_Append(made, one) < 0) {
            Py_CLEAR(made);
        }
        Py_XDECREF(one);
    }
    jobq_minutes_free(list);
    return made;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static PyObject *make_age(int64_t ms)
{
    return ms < 0 ? Py_NewRef(Py_None) : PyFloat_FromDouble((double)ms / 1000.0);
}

static PyObject *make_stats(core_queue *self, const char *name, size_t n, int minutes)
{
    int64_t v[JOBQ_STATS];
    int rc = 0;
    CORE_CALL(self, rc, jobq_queue_stats(self->queue, name, n, v));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    PyObject *per_minute = make_minutes(self, name, n, minutes);
    PyObject *age = per_minute ? make_age(v[JOBQ_STAT_OLDEST_READY_AGE_MS]) : NULL;
    if (!age) {
        Py_XDECREF(per_minute);
        return NULL;
    }
    return PyObject_CallFunction(core_get(self->state, CORE_STATS), "s#LLLLLNOLN", name,
                                 (Py_ssize_t)n, (long long)v[JOBQ_STAT_READY],
                                 (long long)v[JOBQ_STAT_DELAYED], (long long)v[JOBQ_STAT_RESERVED],
                                 (long long)v[JOBQ_STAT_DEAD], (long long)v[JOBQ_STAT_BACKLOG], age,
                                 v[JOBQ_STAT_PAUSED] ? Py_True : Py_False,
                                 (long long)v[JOBQ_STAT_CAPACITY], per_minute);
}

static bool are_minutes(long long minutes)
{
    enum { DAY = 1440 };
    if (minutes < 0 || minutes > DAY) {
        core_raise_usage("minutes must be between 0 and %d, %lld given", DAY, minutes);
        return false;
    }
    return true;
}

PyObject *core_queue_stats(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", "minutes", NULL};
    core_word name = {.name = "queue"};
    core_whole minutes = {"minutes", 60};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&|O&:stats", keys, core_word_read, &name,
                                     core_whole_read, &minutes) ||
        !are_minutes(minutes.is)) {
        return NULL;
    }
    return make_stats(self, name.p, name.n, (int)minutes.is);
}

/* A list of names, or name -> Stats. */
static PyObject *list_queues(core_queue *self, bool stats, int minutes)
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
        PyObject *value =
            name && stats ? make_stats(self, names[i], strlen(names[i]), minutes) : NULL;
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

PyObject *core_queue_all_stats(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"minutes", NULL};
    core_whole minutes = {"minutes", 0};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O&:all_stats", keys, core_whole_read,
                                     &minutes) ||
        !are_minutes(minutes.is)) {
        return NULL;
    }
    return list_queues(self, true, (int)minutes.is);
}

PyObject *core_queue_queues(core_queue *self, PyObject *unused)
{
    (void)unused;
    return list_queues(self, false, 0);
}

/* ---- capacity -------------------------------------------------------------------------------- */

PyObject *core_queue_capacity(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", "n", NULL};
    core_word name = {.name = "queue"};
    core_whole n = {"n", 0};
    int rc = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&O&:capacity", keys, core_word_read, &name,
                                     core_whole_read, &n)) {
        return NULL;
    }
    if (n.is < 0 || n.is == LLONG_MAX) {
        return core_raise_usage("capacity(): n must be 0 (no limit) or more");
    }
    CORE_CALL(self, rc, jobq_queue_set_capacity(self->queue, name.p, name.n, n.is));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}
