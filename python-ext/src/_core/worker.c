/* SPDX-License-Identifier: MIT
 *
 * Worker: the object under jobqueue/worker.py, registration of handlers, and what can be asked of a
 * worker. Its run: run.c.
 */
#include "core.h"

/* ---- the object ------------------------------------------------------------------------------ */

static PyObject *worker_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)args;
    (void)named;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    core_worker *self = (core_worker *)alloc(type, 0);
    if (self && !(self->state = core_state_of_type(type))) {
        Py_CLEAR(self);
    }
    if (self) {
        self->module = Py_NewRef(PyType_GetModule(self->state->worker_type));
    }
    return (PyObject *)self;
}

/* The worker on a handle of its own; raises what goes wrong. */
static void make(core_worker *self, core_queue *queue, const jobq_conf *conf)
{
    const bool shared = strcmp(jobq_queue_driver(queue->queue), "memory") != 0;
    core_queue *handle =
        shared ? core_queue_make_twin(queue) : (core_queue *)Py_NewRef((PyObject *)queue);
    int rc = -1;
    if (!handle) {
        return;
    }
    self->queue = handle;
    self->given = (core_queue *)Py_NewRef((PyObject *)queue);
    CORE_CALL(handle, rc, jobq_worker_new(handle->queue, conf, &self->worker)); /* asks the store */
    if (PyErr_Occurred() || rc < 0) {
        if (!PyErr_Occurred()) {
            core_raise_last(self->state);
        }
        return;
    }
    jobq_worker_set_failed(self->worker, true);
    core_run_hooks(self);
}

/* Worker(queue, {option: value}) */
static int worker_init(core_worker *self, PyObject *args, PyObject *named)
{
    PyObject *queue, *options;
    (void)named;
    if (self->queue) {
        core_raise_logic("the Worker is constructed already");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "OO!:Worker", &queue, &PyDict_Type, &options)) {
        return -1;
    }
    if (!PyObject_TypeCheck(queue, self->state->queue_type)) {
        core_refuse_type("queue", queue, "a jobqueue.Queue is expected");
        return -1;
    }
    if (!core_queue_is_made((core_queue *)queue)) {
        return -1;
    }
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    if (!conf) {
        core_raise_last(self->state);
    } else if (core_conf_all(self->state, conf, options)) {
        make(self, (core_queue *)queue, conf);
    }
    jobq_conf_free(conf);
    return PyErr_Occurred() ? -1 : 0;
}

static int worker_traverse(core_worker *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->module);
    Py_VISIT((PyObject *)self->queue);
    Py_VISIT((PyObject *)self->given);
    Py_VISIT(self->line);
    Py_VISIT(self->job);
    return 0;
}

static int worker_clear(core_worker *self)
{
    Py_CLEAR(self->job);
    return 0;
}

/* The library may say its last lines while it is freed. */
static void worker_dealloc(core_worker *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_UnTrack(self);
    if (self->worker) { /* an inline run that was left in the middle is ended there */
        int rc = 0;
        CORE_CALL(self->queue, rc, (jobq_worker_free(self->worker), 0));
        (void)rc;
    }
    worker_clear(self);
    Py_XDECREF(self->line);
    Py_XDECREF((PyObject *)self->queue);
    Py_XDECREF((PyObject *)self->given);
    Py_XDECREF(self->module);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static bool is_made(core_worker *self)
{
    if (!self->worker) {
        core_raise_logic("the Worker's constructor was not called");
    }
    return self->worker != NULL;
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* handle(name, version, {option: value}): handlers are numbered from 0 in the order given */
static PyObject *worker_handle(core_worker *self, PyObject *args)
{
    core_word name = {.name = "name"};
    core_whole version = {"version", 1};
    PyObject *options;
    if (!PyArg_ParseTuple(args, "O&O&O!:handle", core_word_read, &name, core_whole_read, &version,
                          &PyDict_Type, &options) ||
        !is_made(self)) {
        return NULL;
    }
    if (version.is < 1 || version.is > INT32_MAX) {
        return core_raise_usage("version must be between 1 and 2147483647, %lld given", version.is);
    }
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_HANDLER, JOBQ_STYLE_SNAKE);
    if (!conf) {
        return core_raise_last(self->state);
    }
    if (core_conf_all(self->state, conf, options) &&
        jobq_worker_handle(self->worker, name.p, name.n, (int)version.is, conf) < 0) {
        core_raise_last(self->state);
    }
    jobq_conf_free(conf);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *worker_set_resolver(core_worker *self, PyObject *has)
{
    if (!is_made(self)) {
        return NULL;
    }
    jobq_worker_set_resolver(self->worker, PyObject_IsTrue(has) == 1);
    Py_RETURN_NONE;
}

/* What Queue._generation() said before the application was loaded. */
static PyObject *worker_set_generation(core_worker *self, PyObject *generation)
{
    const long long value = PyLong_AsLongLong(generation);
    if (PyErr_Occurred() || !is_made(self)) {
        return NULL;
    }
    jobq_worker_set_generation(self->worker, value);
    Py_RETURN_NONE;
}

static PyObject *worker_listen(core_worker *self, PyObject *event)
{
    const char *name = is_made(self) ? core_text(event, "event") : NULL;
    if (!name) {
        return NULL;
    }
    if (jobq_worker_listen(self->worker, name) < 0) {
        return core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

/* The names of exceptions after which the job in hand, or this one, is dead at once. */
static PyObject *worker_dont_retry(core_worker *self, PyObject *args)
{
    const char *name;
    PyObject *object = NULL;
    if (!PyArg_ParseTuple(args, "|O!:dont_retry", self->state->job_type, &object)) {
        return NULL;
    }
    const jobq_job *job = object ? ((core_job *)object)->job : self->state->job;
    PyObject *names = is_made(self) ? PyList_New(0) : NULL;
    for (size_t i = 0; names && job && (name = jobq_worker_dont_retry(self->worker, job, i)); i++) {
        PyObject *text = core_text_or_none(name);
        if (!text || PyList_Append(names, text) < 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF(text);
    }
    return names;
}

/* ---- asking and telling ---------------------------------------------------------------------- */

/* This child must not run another job; what is known goes into the record should it die. */
static PyObject *worker_retire(core_worker *self, PyObject *text)
{
    Py_ssize_t n;
    const char *p = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
    if (!p) {
        PyErr_Clear();
        n = 0;
    }
    if (!is_made(self)) {
        return NULL;
    }
    jobq_worker_retire(self->worker, p, (size_t)n);
    Py_RETURN_NONE;
}

/* In answer to the event `looping`: no job begins in this process until it is asked again. */
static PyObject *worker_veto(core_worker *self, PyObject *unused)
{
    (void)unused;
    if (!is_made(self)) {
        return NULL;
    }
    jobq_worker_veto(self->worker);
    Py_RETURN_NONE;
}

static PyObject *worker_stop(core_worker *self, PyObject *unused)
{
    (void)unused;
    if (!is_made(self)) {
        return NULL;
    }
    if (self->starting) {
        self->stop_wanted = true;
    } else if (
        !self->finishing) { /* the interpreter's lock is held: it cannot begin to meanwhile */
        jobq_worker_stop(self->worker);
    }
    Py_RETURN_NONE;
}

static PyObject *worker_ready(core_worker *self, PyObject *unused)
{
    (void)unused;
    if (!is_made(self)) {
        return NULL;
    }
    return PyBool_FromLong(!self->starting && jobq_worker_ready(self->worker));
}

static PyObject *worker_id(core_worker *self, PyObject *unused)
{
    (void)unused;
    return is_made(self) ? core_text_or_none(jobq_worker_id(self->worker)) : NULL;
}

/* What the application pushed is counted by the handle it has. */
static int64_t counter(const void *of, size_t i, const char **name)
{
    const core_worker *self = of;
    const int64_t own = self->starting ? jobq_queue_counter(self->queue->queue, i, name)
                                       : jobq_worker_counter(self->worker, i, name);
    const int64_t other =
        self->given == self->queue ? 0 : jobq_queue_counter(self->given->queue, i, NULL);
    const size_t n = *name ? strlen(*name) : 0;
    if (n > 3 && strcmp(*name + n - 3, "_ms") == 0) { /* a span is no count */
        return own ? own : other;
    }
    return own + other;
}

static PyObject *worker_statistics(core_worker *self, PyObject *unused)
{
    (void)unused;
    return is_made(self) ? core_counters(counter, self) : NULL;
}

/* (reason, jobs run), when the pool has ended */
static PyObject *worker_ended(core_worker *self, PyObject *unused)
{
    (void)unused;
    if (!is_made(self)) {
        return NULL;
    }
    const char *reason = jobq_worker_stop_reason(self->worker);
    return Py_BuildValue("(sL)", reason ? reason : "",
                         (long long)jobq_worker_jobs_run(self->worker));
}

/* What was thrown into the job in hand: 0 nothing, else INTERRUPT_... */
static PyObject *worker_interrupted(core_worker *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(self->state->interrupt);
}

/* What was thrown into it, or would have been, as an exception. */
static PyObject *worker_interrupt_error(core_worker *self, PyObject *unused)
{
    core_state *state = self->state;
    (void)unused;
    if (!state->job || state->interrupt == JOBQ_INTERRUPT_NONE) {
        return core_raise_logic("nothing was thrown into the job");
    }
    core_raise_interrupt(state, state->interrupt, state->job);
    PyObject *error = core_exception_take();
    return error ? error : PyErr_NoMemory();
}

/* ---- the type -------------------------------------------------------------------------------- */

#define F(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef methods[] = {
    {"handle", F(worker_handle), METH_VARARGS, NULL},
    {"set_resolver", F(worker_set_resolver), METH_O, NULL},
    {"set_generation", F(worker_set_generation), METH_O, NULL},
    {"listen", F(worker_listen), METH_O, NULL},
    {"dont_retry", F(worker_dont_retry), METH_VARARGS, NULL},
    {"start", F(core_worker_start), METH_VARARGS, NULL},
    {"next", F(core_worker_next), METH_NOARGS, NULL},
    {"poll", F(core_worker_poll), METH_NOARGS, NULL},
    {"fd", F(core_worker_fd), METH_NOARGS, NULL},
    {"let_go", F(core_worker_let_go), METH_NOARGS, NULL},
    {"settle_job", F(core_worker_settle_job), METH_VARARGS, NULL},
    {"interrupted_job", F(core_worker_interrupted_job), METH_O, NULL},
    {"call", F(core_guard_call), METH_VARARGS, NULL},
    {"cancel_by", F(core_guard_cancel), METH_O, NULL},
    {"settle", F(core_worker_settle), METH_VARARGS, NULL},
    {"finish", F(core_worker_finish), METH_NOARGS, NULL},
    {"output", F(core_worker_output), METH_O, NULL},
    {"retire", F(worker_retire), METH_O, NULL},
    {"veto", F(worker_veto), METH_NOARGS, NULL},
    {"interrupted", F(worker_interrupted), METH_NOARGS, NULL},
    {"interrupt_error", F(worker_interrupt_error), METH_NOARGS, NULL},
    {"ended", F(worker_ended), METH_NOARGS, NULL},
    {"stop", F(worker_stop), METH_NOARGS, NULL},
    {"ready", F(worker_ready), METH_NOARGS, NULL},
    {"id", F(worker_id), METH_NOARGS, NULL},
    {"statistics", F(worker_statistics), METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What jobqueue.Worker stands on; not for direct use."},
    {Py_tp_new, worker_new},
    {Py_tp_init, worker_init},
    {Py_tp_traverse, worker_traverse},
    {Py_tp_clear, worker_clear},
    {Py_tp_dealloc, worker_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "jobqueue._core.Worker",
    .basicsize = sizeof(core_worker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyTypeObject *core_worker_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
