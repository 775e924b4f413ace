/* SPDX-License-Identifier: MIT
 *
 * Queue: the object and its lock. Its methods: look.c, stats.c, push.c, dead.c (lists, too),
 * health.c, control.c; sugar and asyncio: jobqueue/queue.py.
 */
#include "core.h"

#include "queue_doc.h"

/* ---- one thread at a time -------------------------------------------------------------------- */

bool core_queue_is_made(core_queue *self)
{
    if (!self->queue) {
        core_raise_logic("the Queue's constructor was not called");
        return false;
    }
    return true;
}

/* A thread of the parent's may have held it when this process was forked: nobody will release it
 * here. */
static bool renew_lock(core_queue *self)
{
    self->lock = PyThread_allocate_lock();
    self->generation = core_fork_generation();
    self->owner = 0;
    self->depth = 0;
    self->sleeper = NULL;
    if (!self->lock) {
        PyErr_NoMemory();
    }
    return self->lock != NULL;
}

static void own(core_queue *self)
{
    self->owner = PyThread_get_thread_ident();
    self->depth = 1;
}

bool core_queue_enter(core_queue *self)
{
    if (!core_queue_is_made(self) ||
        (self->generation != core_fork_generation() && !renew_lock(self))) {
        return false;
    }
    if (self->owner == PyThread_get_thread_ident()) {
        self->depth++;
        return true;
    }
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(self->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    own(self);
    return true;
}

/* Of a call that has come through a fork nothing is held here. */
void core_queue_leave(core_queue *self)
{
    if (self->generation != core_fork_generation() || self->owner != PyThread_get_thread_ident() ||
        --self->depth > 0) {
        return;
    }
    if (self->sleeper) {
        jobq_worker_wake(self->sleeper);
    }
    self->owner = 0;
    PyThread_release_lock(self->lock);
}

void core_queue_part(core_queue *self, jobq_worker *sleeper)
{
    self->sleeper = sleeper;
    self->owner = 0;
    PyThread_release_lock(self->lock);
}

void core_queue_rejoin(core_queue *self)
{
    PyThread_acquire_lock(self->lock, WAIT_LOCK);
    own(self);
    self->sleeper = NULL;
}

void core_queues_disconnect(core_state *state)
{
    for (core_queue *queue = state->queues; queue; queue = queue->next) {
        if (queue->queue && strcmp(jobq_queue_driver(queue->queue), "memory") != 0 &&
            core_queue_enter(queue)) {
            jobq_queue_disconnect(queue->queue);
            core_queue_leave(queue);
        }
    }
}

/* ---- the object ------------------------------------------------------------------------------ */

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)args;
    (void)named;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    core_queue *self = (core_queue *)alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->state = core_state_of_type(type);
    if (!self->state || !renew_lock(self)) {
        Py_DECREF(self);
        return NULL;
    }
    self->next = self->state->queues;
    self->link = &self->state->queues;
    if (self->next) {
        self->next->link = &self->next;
    }
    self->state->queues = self;
    return (PyObject *)self;
}

static int queue_init(core_queue *self, PyObject *args, PyObject *named)
{
    PyObject *dsn = Py_None;
    const char *text = NULL;
    if (self->queue) {
        core_raise_logic("the Queue is constructed already");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "|O:Queue", &dsn) ||
        (dsn != Py_None && !(text = core_text(dsn, "dsn")))) {
        return -1;
    }
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    if (!conf) {
        core_raise_last(self->state);
    } else if (core_conf_all(self->state, conf, named) &&
               jobq_queue_new(text, conf, &self->queue) < 0) {
        core_raise_last(self->state);
    }
    jobq_conf_free(conf);
    return PyErr_Occurred() ? -1 : 0;
}

static int queue_traverse(core_queue *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->on_pushed);
    Py_VISIT(self->places);
    return 0;
}

static int queue_clear(core_queue *self)
{
    Py_CLEAR(self->on_pushed);
    Py_CLEAR(self->places);
    return 0;
}

static void queue_dealloc(core_queue *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_UnTrack(self);
    if (self->link) {
        *self->link = self->next;
        if (self->next) {
            self->next->link = self->link;
        }
    }
    queue_clear(self);
    jobq_message_free(self->message);
    if (self->queue) {
        Py_BEGIN_ALLOW_THREADS jobq_queue_free(self->queue);
        Py_END_ALLOW_THREADS
    }
    if (self->lock) {
        PyThread_free_lock(self->lock);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *queue_repr(core_queue *self)
{
    return PyUnicode_FromFormat("<Queue %s>",
                                self->queue ? jobq_queue_dsn(self->queue) : "not constructed");
}

/* ---- the rest -------------------------------------------------------------------------------- */

static PyObject *queue_migrate(core_queue *self, PyObject *unused)
{
    int rc = 0;
    (void)unused;
    CORE_CALL(self, rc, jobq_queue_migrate(self->queue));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

static PyObject *queue_ping(core_queue *self, PyObject *unused)
{
    int64_t microseconds = 0;
    (void)unused;
    CORE_CALL(self, microseconds, jobq_queue_ping(self->queue));
    if (PyErr_Occurred() || microseconds < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    return PyFloat_FromDouble((double)microseconds / 1e6);
}

static PyObject *queue_close(core_queue *self, PyObject *unused)
{
    int rc = 0;
    (void)unused;
    CORE_CALL(self, rc, (jobq_queue_disconnect(self->queue), 0));
    (void)rc;
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

core_queue *core_queue_make_twin(core_queue *self)
{
    if (!core_queue_is_made(self)) {
        return NULL;
    }
    core_queue *twin = (core_queue *)queue_new(self->state->queue_type, NULL, NULL);
    if (twin && jobq_queue_twin(self->queue, &twin->queue) < 0) {
        core_raise_last(self->state);
        Py_CLEAR(twin);
    }
    return twin;
}

/* For a call that takes long. */
static PyObject *queue_twin(core_queue *self, PyObject *unused)
{
    (void)unused;
    return (PyObject *)core_queue_make_twin(self);
}

static PyObject *queue_on_pushed(core_queue *self, PyObject *callable)
{
    PyObject *before = self->on_pushed;
    self->on_pushed = callable == Py_None ? NULL : Py_NewRef(callable);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* ---- the type -------------------------------------------------------------------------------- */

static PyObject *queue_dsn(core_queue *self, void *unused)
{
    (void)unused;
    return core_queue_is_made(self) ? PyUnicode_FromString(jobq_queue_dsn(self->queue)) : NULL;
}

static PyObject *queue_connection(core_queue *self, void *unused)
{
    (void)unused;
    return core_queue_is_made(self) ? PyUnicode_FromString(jobq_queue_connection(self->queue))
                                    : NULL;
}

static PyObject *queue_driver(core_queue *self, void *unused)
{
    (void)unused;
    return core_queue_is_made(self) ? PyUnicode_FromString(jobq_queue_driver(self->queue)) : NULL;
}

static PyGetSetDef getters[] = {
    {"dsn", (getter)queue_dsn, NULL, "where the store is, its password masked", NULL},
    {"connection", (getter)queue_connection, NULL, "its name, \"default\" without one", NULL},
    {"driver", (getter)queue_driver, NULL, "\"sqlite\", \"redis\", ...", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define F(function) ((PyCFunction)(void (*)(void))(function))
#define NAMED METH_VARARGS | METH_KEYWORDS
static PyMethodDef methods[] = {
    {"push", F(core_queue_push), NAMED, DOC_PUSH},
    {"push_statement", F(core_queue_push_statement), NAMED, DOC_PUSH_STATEMENT},
    {"_push_chunk", F(core_queue_push_chunk), METH_O, NULL},
    {"_on_pushed", F(queue_on_pushed), METH_O, NULL},
    {"reserve", F(core_queue_reserve), NAMED, DOC_RESERVE},
    {"stats", F(core_queue_stats), NAMED, DOC_STATS},
    {"all_stats", F(core_queue_all_stats), NAMED, DOC_ALL_STATS},
    {"capacity", F(core_queue_capacity), NAMED, DOC_CAPACITY},
    {"queues", F(core_queue_queues), METH_NOARGS, DOC_QUEUES},
    {"counters", F(core_queue_counters), METH_NOARGS, DOC_COUNTERS},
    {"find", F(core_queue_find), NAMED, DOC_FIND},
    {"_wait", F(core_queue_wait), NAMED, NULL},
    {"_twin", F(queue_twin), METH_NOARGS, NULL},
    {"jobs", F(core_queue_jobs), NAMED, DOC_JOBS},
    {"dead", F(core_queue_dead), NAMED, DOC_DEAD},
    {"retry", F(core_queue_retry), NAMED, DOC_RETRY},
    {"forget", F(core_queue_forget), NAMED, DOC_FORGET},
    {"flush", F(core_queue_forget), NAMED, DOC_FLUSH},
    {"prune", F(core_queue_prune), NAMED, DOC_PRUNE},
    {"pause", F(core_queue_pause), NAMED, DOC_PAUSE},
    {"resume", F(core_queue_resume), NAMED, DOC_RESUME},
    {"restart_workers", F(core_queue_restart_workers), METH_NOARGS, DOC_RESTART_WORKERS},
    {"cancel", F(core_queue_cancel), NAMED, DOC_CANCEL},
    {"clear", F(core_queue_clear), NAMED, DOC_CLEAR},
    {"_generation", F(core_queue_generation), METH_NOARGS, NULL},
    {"workers", F(core_queue_workers), METH_NOARGS, DOC_WORKERS},
    {"doctor", F(core_queue_doctor), NAMED, DOC_DOCTOR},
    {"migrate", F(queue_migrate), METH_NOARGS, DOC_MIGRATE},
    {"ping", F(queue_ping), METH_NOARGS, DOC_PING},
    {"close", F(queue_close), METH_NOARGS,
     "close($self, /)\n--\n\nCloses the connection; the next call opens it again."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, DOC_QUEUE},     {Py_tp_new, queue_new},
    {Py_tp_init, queue_init},   {Py_tp_traverse, queue_traverse},
    {Py_tp_clear, queue_clear}, {Py_tp_dealloc, queue_dealloc},
    {Py_tp_repr, queue_repr},   {Py_tp_methods, methods},
    {Py_tp_getset, getters},    {0, NULL},
};

static PyType_Spec spec = {
    .name = "jobqueue._core.Queue",
    .basicsize = sizeof(core_queue),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

PyTypeObject *core_queue_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
