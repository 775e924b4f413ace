/* SPDX-License-Identifier: MIT
 *
 * Queue.workers and doctor (rules N4, N5): who works on the store, and what is wrong with it.
 */
#include "core.h"

/* ---- workers --------------------------------------------------------------------------------- */

static PyObject *make_texts(const jobq_workers *workers, size_t i,
                            const char *(*next)(const jobq_workers *workers, size_t i, size_t k))
{
    const char *text;
    PyObject *list = PyList_New(0);
    for (size_t k = 0; list && (text = next(workers, i, k)); k++) {
        PyObject *one = core_text_or_none(text);
        if (!one || PyList_Append(list, one) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *make_time(core_state *state, int64_t ms)
{
    return core_time_from_ms(state, ms > 0 ? ms : 0);
}

static bool add_numbers(PyObject *one, const jobq_workers *workers, size_t i)
{
    static const struct {
        const char *key;
        jobq_workers_number_field field;
    } numbers[] = {{"pid", JOBQ_WORKERS_PID},
                   {"processes", JOBQ_WORKERS_PROCESSES},
                   {"running", JOBQ_WORKERS_RUNNING},
                   {"held", JOBQ_WORKERS_HELD}};
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        const int64_t value = jobq_workers_number(workers, i, numbers[k].field);
        if (!core_add(one, numbers[k].key, PyLong_FromLongLong(value))) {
            return false;
        }
    }
    return true;
}

static PyObject *make_worker(core_state *state, const jobq_workers *workers, size_t i)
{
    PyObject *one = PyDict_New();
    const int64_t started = jobq_workers_number(workers, i, JOBQ_WORKERS_STARTED_AT_MS);
    const int64_t alive = jobq_workers_number(workers, i, JOBQ_WORKERS_ALIVE_UNTIL_MS);
    const int64_t lease = jobq_workers_number(workers, i, JOBQ_WORKERS_LEASE_MS);
    if (!one || !core_add_text(one, "id", jobq_workers_text(workers, i, JOBQ_WORKERS_ID)) ||
        !core_add_text(one, "host", jobq_workers_text(workers, i, JOBQ_WORKERS_HOST)) ||
        !core_add(one, "queues", make_texts(workers, i, jobq_workers_queue)) ||
        !core_add(one, "names", make_texts(workers, i, jobq_workers_name)) ||
        !add_numbers(one, workers, i) || !core_add(one, "started_at", make_time(state, started)) ||
        !core_add(one, "alive_until", make_time(state, alive)) ||
        !core_add(one, "lease", PyFloat_FromDouble((double)lease / 1000.0))) {
        Py_CLEAR(one);
    }
    return one;
}

PyObject *core_queue_workers(core_queue *self, PyObject *unused)
{
    jobq_workers *workers = NULL;
    int rc = 0;
    (void)unused;
    CORE_CALL(self, rc, jobq_queue_workers(self->queue, &workers));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < jobq_workers_count(workers); i++) {
        PyObject *one = make_worker(self->state, workers, i);
        if (!one || PyList_Append(list, one) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(one);
    }
    jobq_workers_free(workers);
    return list;
}

/* ---- doctor ---------------------------------------------------------------------------------- */

/* Called while the interpreter's lock is given up. */
static void take_finding(void *list, const jobq_finding *finding)
{
    static const char *const grades[] = {"ok", "note", "problem"};
    PyGILState_STATE held = PyGILState_Ensure();
    if (!PyErr_Occurred()) {
        PyObject *one = PyDict_New();
        if (one && core_add_text(one, "grade", grades[finding->grade]) &&
            core_add_text(one, "check", finding->check) &&
            core_add_text(one, "text", finding->text) &&
            core_add_text(one, "advice", finding->advice)) {
            PyList_Append(list, one);
        }
        Py_XDECREF(one);
    }
    PyGILState_Release(held);
}

static int64_t examine(core_queue *self, PyObject *list, bool audit)
{
    int64_t problems = 0;
    CORE_CALL(self, problems, jobq_queue_doctor(self->queue, take_finding, list));
    if (audit && problems >= 0 && !PyErr_Occurred()) {
        CORE_CALL(self, problems, jobq_queue_audit(self->queue, take_finding, NULL, list));
        return problems < 0 ? -2 : problems;
    }
    return problems;
}

/* A store that cannot be used is one of the findings; an audit that could not be ended is none. */
PyObject *core_queue_doctor(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"audit", NULL};
    core_flag audit = {"audit", false};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O&:doctor", keys, core_flag_read, &audit)) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    if (!list) {
        return NULL;
    }
    const int64_t problems = examine(self, list, audit.is);
    if (!PyErr_Occurred() && (problems == -2 || (problems < 0 && PyList_Size(list) == 0))) {
        core_raise_last(self->state);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(list);
    }
    return list;
}
