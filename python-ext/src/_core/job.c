/* SPDX-License-Identifier: MIT
 *
 * Job: what the handler gets, or Queue.reserve() gives out. In a handler release, fail and delete
 * only note what shall become of the job (rule D3); after reserve they act at once.
 */
#include "core.h"

#include <stddef.h>
#include <structmember.h>

static const jobq_job_number numbers[CORE_JOB_NUMBERS] = {
    JOBQ_JOB_VERSION,  JOBQ_JOB_ATTEMPT,    JOBQ_JOB_FAILURES, JOBQ_JOB_CRASHES,
    JOBQ_JOB_RELEASES, JOBQ_JOB_DELIVERIES, JOBQ_JOB_LOSSES,   JOBQ_JOB_FENCE};

/* ---- the object ------------------------------------------------------------------------------ */

static bool pair(const void *job, size_t i, const char **key, size_t *key_n, const char **value,
                 size_t *value_n)
{
    return jobq_job_context(job, i, key, key_n, value, value_n);
}

PyObject *core_job_make(core_queue *queue, jobq_job *job, core_job_kind kind, PyObject *payload)
{
    size_t n;
    core_state *state = queue->state;
    core_job *self = PyObject_GC_New(core_job, state->job_type);
    if (!self) {
        Py_XDECREF(payload);
        return NULL;
    }
    memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
    self->state = state;
    self->module = Py_NewRef(PyType_GetModule(state->job_type));
    self->queue = (core_queue *)Py_NewRef((PyObject *)queue);
    self->job = job;
    self->kind = kind;
    self->locks = kind == CORE_RESERVED;
    self->delay_ms = -1;
    self->payload = payload;
    self->id = PyUnicode_FromString(jobq_job_id(job));
    const char *text = jobq_job_name(job, &n);
    self->name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    text = jobq_job_queue(job, &n);
    self->queue_name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    self->context = core_context(pair, job);
    for (size_t i = 0; i < CORE_JOB_NUMBERS; i++) {
        self->numbers[i] = jobq_job_get(job, numbers[i]);
    }
    self->enqueued_at_ms = jobq_job_get(job, JOBQ_JOB_ENQUEUED_AT_MS);
    PyObject_GC_Track(self);
    if (!self->payload || !self->id || !self->name || !self->queue_name || !self->context) {
        self->kind = CORE_EVENT; /* the job stays the caller's */
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

void core_job_detach(core_job *job)
{
    if (job->kind == CORE_RESERVED) {
        jobq_job_free(job->job);
    }
    job->job = NULL;
}

static int job_traverse(core_job *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->module);
    Py_VISIT(self->payload);
    Py_VISIT(self->context);
    Py_VISIT(self->defers);
    Py_VISIT((PyObject *)self->queue);
    return 0;
}

static int job_clear(core_job *self)
{
    Py_CLEAR(self->payload);
    Py_CLEAR(self->context);
    Py_CLEAR(self->defers);
    return 0;
}

static void job_dealloc(core_job *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_UnTrack(self);
    core_job_detach(self);
    job_clear(self);
    Py_XDECREF(self->id);
    Py_XDECREF(self->name);
    Py_XDECREF(self->queue_name);
    Py_XDECREF((PyObject *)self->queue);
    Py_XDECREF(self->module);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *job_repr(core_job *self)
{
    return PyUnicode_FromFormat("<Job %U %U, attempt %lld>", self->name, self->id,
                                (long long)self->numbers[1]);
}

/* ---- while it runs --------------------------------------------------------------------------- */

static PyObject *job_defer(core_job *self, PyObject *callable)
{
    if (!core_job_living(self)) {
        return NULL;
    }
    if (self->kind != CORE_HANDLER) {
        return core_raise_logic("defer() is for handlers");
    }
    if (!PyCallable_Check(callable)) {
        return core_raise_type("defer(): a callable is expected");
    }
    if ((!self->defers && !(self->defers = PyList_New(0))) ||
        PyList_Append(self->defers, callable) < 0) {
        return NULL;
    }
    return Py_NewRef(callable);
}

static PyObject *job_extend(core_job *self, PyObject *unused)
{
    int rc = 0;
    (void)unused;
    if (!core_job_living(self)) {
        return NULL;
    }
    CORE_JOB_CALL(self, false, rc, jobq_job_extend(self->job));
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (rc < 0) {
        return core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

/* Inline and after reserve it asks the store now and then. -1: raised. */
static int ask_cancelled(core_job *self)
{
    bool cancelled = false;
    if (!core_job_living(self)) {
        return -1;
    }
    CORE_JOB_CALL(self, false, cancelled, jobq_job_is_cancelled(self->job));
    return PyErr_Occurred() ? -1 : cancelled;
}

static PyObject *job_is_cancelled(core_job *self, PyObject *unused)
{
    (void)unused;
    const int cancelled = ask_cancelled(self);
    return cancelled < 0 ? NULL : PyBool_FromLong(cancelled);
}

static PyObject *job_is_stopping(core_job *self, PyObject *unused)
{
    (void)unused;
    return core_job_living(self) ? PyBool_FromLong(jobq_job_is_stopping(self->job)) : NULL;
}

static PyObject *job_checkpoint(core_job *self, PyObject *unused)
{
    (void)unused;
    const int cancelled = ask_cancelled(self);
    if (cancelled) {
        return cancelled < 0                 ? NULL
               : jobq_job_is_lost(self->job) ? core_raise_lease_lost(self->state)
                                             : core_raise_cancelled(self->state);
    }
    const int kind = self->together ? jobq_job_interrupted(self->job) : JOBQ_INTERRUPT_NONE;
    if (kind != JOBQ_INTERRUPT_NONE) {
        self->interrupt = kind;
        return core_raise_interrupt(self->state, kind, self->job);
    }
    if (self->state->job == self->job && self->state->armed &&
        core_interrupt_take(self->state) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *job_age(core_job *self, PyObject *unused)
{
    (void)unused;
    return core_job_living(self)
               ? PyFloat_FromDouble((double)jobq_job_get(self->job, JOBQ_JOB_AGE_MS) / 1000.0)
               : NULL;
}

static PyObject *job_remaining(core_job *self, PyObject *unused)
{
    (void)unused;
    if (!core_job_living(self)) {
        return NULL;
    }
    const int64_t ms = jobq_job_get(self->job, JOBQ_JOB_REMAINING_MS);
    if (ms < 0) {
        Py_RETURN_NONE;
    }
    return PyFloat_FromDouble((double)ms / 1000.0);
}

/* ---- for worker.py --------------------------------------------------------------------------- */

static PyObject *job_decision(core_job *self, void *unused)
{
    (void)unused;
    if (!self->decided) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(iL)", (int)self->decision, (long long)self->delay_ms);
}

/* A return or a throw is a decision, too: listeners and cleanups that call release(), fail() or
 * delete() are told so instead of being passed over (rule D3). */
static PyObject *job_seal(core_job *self, PyObject *ending)
{
    const long value = PyLong_AsLong(ending);
    if (PyErr_Occurred()) {
        return NULL;
    }
    self->decided = true;
    self->decision = (jobq_ending)value;
    Py_RETURN_NONE;
}

static PyObject *job_next_defer(core_job *self, PyObject *unused)
{
    (void)unused;
    const Py_ssize_t n = self->defers ? PyList_Size(self->defers) : 0;
    if (n == 0) {
        Py_RETURN_NONE;
    }
    PyObject *last = Py_NewRef(PyList_GetItem(self->defers, n - 1));
    if (PyList_SetSlice(self->defers, n - 1, n, NULL) < 0) {
        Py_CLEAR(last);
    }
    return last;
}

static PyObject *job_number(core_job *self, void *which)
{
    return PyLong_FromLongLong(self->numbers[(intptr_t)which]);
}

static PyObject *job_interrupt(core_job *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->interrupt);
}

static PyObject *job_enqueued_at(core_job *self, void *unused)
{
    (void)unused;
    return core_time_from_ms(self->state, self->enqueued_at_ms ? self->enqueued_at_ms : 1);
}

/* ---- the type -------------------------------------------------------------------------------- */

#define NAMED METH_VARARGS | METH_KEYWORDS
static PyMethodDef methods[] = {
    {"release", (PyCFunction)(void (*)(void))core_job_release, NAMED,
     "release($self, /, delay=0)\n--\n\nBack on the queue after so many seconds; no failure."},
    {"fail", (PyCFunction)(void (*)(void))core_job_fail, NAMED,
     "fail($self, /, reason)\n--\n\nDead at once, for this reason: a text or an exception."},
    {"delete", (PyCFunction)core_job_delete, METH_NOARGS,
     "delete($self, /)\n--\n\nDone, whatever the handler does from here on."},
    {"done", (PyCFunction)(void (*)(void))core_job_done, NAMED,
     "done($self, /, result=None)\n--\n\n"
     "Done (jobs of Queue.reserve only). The result is kept of a job with track or keep_done; one\n"
     "that cannot be queued raises PayloadError, and the job is still held. LeaseLost: it is\n"
     "somebody else's by now."},
    {"retry", (PyCFunction)(void (*)(void))core_job_retry, NAMED,
     "retry($self, /, delay=None, error=None)\n--\n\n"
     "A failure (jobs of Queue.reserve only): back after the delay, or what the backoff says."},
    {"defer", (PyCFunction)job_defer, METH_O,
     "defer($self, cleanup, /)\n--\n\n"
     "Runs cleanup() when the handler has ended, however it did; the last one given runs first."},
    {"extend", (PyCFunction)job_extend, METH_NOARGS,
     "extend($self, /)\n--\n\n"
     "Renews the lease (after reserve() and inline) or checks it; LeaseLost: it is over."},
    {"is_cancelled", (PyCFunction)job_is_cancelled, METH_NOARGS,
     "is_cancelled($self, /)\n--\n\nIs the lease lost, or was the job cancelled?"},
    {"is_stopping", (PyCFunction)job_is_stopping, METH_NOARGS,
     "is_stopping($self, /)\n--\n\nWas the worker asked to stop?"},
    {"checkpoint", (PyCFunction)job_checkpoint, METH_NOARGS,
     "checkpoint($self, /)\n--\n\n"
     "Raises LeaseLost, JobTimeout or JobStop when the job should not go on."},
    {"age", (PyCFunction)job_age, METH_NOARGS,
     "age($self, /)\n--\n\nSeconds since the first enqueue, by the store's clock."},
    {"remaining", (PyCFunction)job_remaining, METH_NOARGS,
     "remaining($self, /)\n--\n\nSeconds until the time limit, None without one."},
    {"progress", (PyCFunction)(void (*)(void))core_job_progress, NAMED,
     "progress($self, /, percent, note=None)\n--\n\n"
     "How far it is, 0 to 100, with a note of at most 1024 bytes, for Queue.find() to show. In a\n"
     "worker the newest one goes to the store about once a second. LeaseLost after reserve()."},
    {"effect", (PyCFunction)core_job_effect, METH_O,
     "effect($self, statement, /)\n--\n\n"
     "Runs [SQL or script, parameters] in the store if the lease still holds, with nobody between\n"
     "check and statement; else LeaseLost and nothing is done. Returns the first column of the\n"
     "first row, else the number of rows changed. Parameters: None, bool, int, float, str, bytes."},
    {"done_statement", (PyCFunction)(void (*)(void))core_job_done_statement, NAMED,
     "done_statement($self, /, paramstyle=None, result=None)\n--\n\n"
     "(SQL, parameters) that end the job as done within the caller's own transaction, which fails\n"
     "when the lease is lost; PostgreSQL, MariaDB, SQLite. The handler returns as ever\n"
     "afterwards. paramstyle: as of Queue.push_statement(). The result is kept of a job with\n"
     "track or keep_done; what the handler returns comes too late for that."},
    {"fingerprint", (PyCFunction)core_job_fingerprint, METH_NOARGS,
     "fingerprint($self, /)\n--\n\n"
     "SHA-256 of name, version and payload in hexadecimal digits: equal for equal work,\n"
     "whatever the id."},
    {"_take_result", (PyCFunction)core_job_take_result, METH_O, NULL},
    {"_set_error", (PyCFunction)core_job_set_error, METH_O, NULL},
    {"_seal", (PyCFunction)job_seal, METH_O, NULL},
    {"_next_defer", (PyCFunction)job_next_defer, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"id", T_OBJECT_EX, offsetof(core_job, id), READONLY, "the job's id"},
    {"name", T_OBJECT_EX, offsetof(core_job, name), READONLY, "what is to be done"},
    {"queue", T_OBJECT_EX, offsetof(core_job, queue_name), READONLY, "the queue it came from"},
    {"payload", T_OBJECT_EX, offsetof(core_job, payload), READONLY, "as it was pushed"},
    {"context", T_OBJECT_EX, offsetof(core_job, context), READONLY, "texts beside the payload"},
    {NULL, 0, 0, 0, NULL},
};

#define NUMBER(i) ((void *)(intptr_t)(i))
static PyGetSetDef getters[] = {
    {"version", (getter)job_number, NULL, "version of the payload's form", NUMBER(0)},
    {"attempt", (getter)job_number, NULL, "failures + crashes + 1", NUMBER(1)},
    {"failures", (getter)job_number, NULL, "attempts that failed", NUMBER(2)},
    {"crashes", (getter)job_number, NULL, "attempts in which the process died", NUMBER(3)},
    {"releases", (getter)job_number, NULL, "times it released itself", NUMBER(4)},
    {"deliveries", (getter)job_number, NULL, "times it was handed out", NUMBER(5)},
    {"losses", (getter)job_number, NULL, "leases lost in a row", NUMBER(6)},
    {"fence", (getter)job_number, NULL, "grows with every hand-out", NUMBER(7)},
    {"enqueued_at", (getter)job_enqueued_at, NULL, "when it was first pushed", NULL},
    {"_decision", (getter)job_decision, NULL, NULL, NULL},
    {"_interrupt", (getter)job_interrupt, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A job in hand; given to handlers and by Queue.reserve()."},
    {Py_tp_traverse, job_traverse},
    {Py_tp_clear, job_clear},
    {Py_tp_dealloc, job_dealloc},
    {Py_tp_repr, job_repr},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "jobqueue.Job",
    .basicsize = sizeof(core_job),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

PyTypeObject *core_job_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
