/* SPDX-License-Identifier: MIT
 *
 * A worker's run: the step API, and what the interpreter needs round a fork.
 *
 * The master gives the interpreter's lock up for the whole life of the pool and takes it only to
 * fork, so that other threads of the application go on; children give it up in each step.
 */
#include "core.h"

#include <signal.h>

/* ---- round the fork -------------------------------------------------------------------------- */

/* From here on other threads may ask and stop it. */
static void begun(core_worker *self)
{
    self->starting = false;
    if (self->stop_wanted) {
        self->stop_wanted = false;
        jobq_worker_stop(self->worker);
    }
}

/* A pool's start takes as long as the pool: it has begun when the first process is to be made. */
static void before_fork(void *payload)
{
    core_worker *self = payload;
    PyEval_RestoreThread(self->parted);
    begun(self);
    PyOS_BeforeFork();
}

static void after_fork_parent(void *payload)
{
    core_worker *self = payload;
    PyOS_AfterFork_Parent();
    self->parted = PyEval_SaveThread();
}

static void after_fork_child(void *payload)
{
    core_worker *self = payload;
    PyOS_AfterFork_Child();
    self->parted = NULL; /* the lock is held from here on */
}

/* In a signal handler: sets the interpreter's flag, which it looks at in the main thread. */
static void interrupt(void *payload)
{
    (void)payload;
    PyErr_SetInterruptEx(SIGURG);
}

/* A child of a pool keeps no lock in its steps: what it does there touches no handle. */
static void idle_enter(void *payload)
{
    core_worker *self = payload;
    if (!self->in_pool) {
        core_queue_part(self->queue, self->worker);
    }
}

static void idle_leave(void *payload)
{
    core_worker *self = payload;
    if (!self->in_pool) {
        core_queue_rejoin(self->queue);
    }
}

/* One call without the interpreter's lock; inline the handle is this thread's meanwhile, but for
 * the waits (above). */
#define WORKER_CALL(self, result, call)                                        \
    do {                                                                       \
        const bool locked_ = !(self)->in_pool;                                 \
        if (!locked_ || core_queue_enter((self)->queue)) {                     \
            Py_BEGIN_ALLOW_THREADS result = (call);                            \
            Py_END_ALLOW_THREADS if (locked_) core_queue_leave((self)->queue); \
        }                                                                      \
    } while (0)

bool core_run_hooks(core_worker *self)
{
    const jobq_worker_hooks hooks = {
        .size = sizeof(hooks),
        .payload = self,
        .before_fork = before_fork,
        .after_fork_parent = after_fork_parent,
        .after_fork_child = after_fork_child,
        .interrupt = interrupt,
        .idle_enter = idle_enter,
        .idle_leave = idle_leave,
    };
    if (jobq_worker_set_hooks(self->worker, &hooks) < 0) {
        core_raise_last(self->state);
        return false;
    }
    return true;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Called inside of the library, without the interpreter's lock. */
static void deliver_line(void *payload, const char *text, size_t n)
{
    core_worker *self = payload;
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    PyObject *unused = line ? PyObject_CallFunctionObjArgs(self->line, line, NULL) : NULL;
    if (!unused) {
        PyErr_WriteUnraisable(self->line);
    }
    Py_XDECREF(line);
    Py_XDECREF(unused);
    PyGILState_Release(held);
}

/* A descriptor, a callable that gets each line (inline only), or None: as the options say. */
PyObject *core_worker_output(core_worker *self, PyObject *value)
{
    int rc;
    if (PyLong_Check(value)) {
        rc = jobq_worker_set_output_fd(self->worker, (int)PyLong_AsLong(value));
    } else if (value == Py_None) {
        rc = jobq_worker_set_output_fd(self->worker, -1);
        Py_CLEAR(self->line);
    } else {
        Py_XDECREF(self->line);
        self->line = Py_NewRef(value);
        rc = jobq_worker_set_output_line(self->worker, deliver_line, self, NULL);
    }
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Options of the run: a dict, the console's conf in a capsule, or None. The answer is the caller's
 * to free when *own_out. */
static jobq_conf *over_of(core_state *state, PyObject *over, bool *own_out)
{
    *own_out = false;
    if (PyCapsule_IsValid(over, CORE_CONF_CAPSULE)) {
        return PyCapsule_GetPointer(over, CORE_CONF_CAPSULE);
    }
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    if (!conf) {
        core_raise_last(state);
    } else if (over != Py_None && !core_conf_all(state, conf, over)) {
        jobq_conf_free(conf);
        conf = NULL;
    }
    *own_out = conf != NULL;
    return conf;
}

static int start(core_worker *self, const core_names *names, const jobq_conf *over, bool one,
                 int *code_out)
{
    int role;
    if (!one) { /* none may be open across a fork */
        core_queues_disconnect(self->state);
    }
    self->in_pool = self->finishing = self->stop_wanted = false;
    self->starting = true;
    self->parted = PyEval_SaveThread();
    role = one ? jobq_worker_start_one(self->worker, names->names, names->count)
               : jobq_worker_start(self->worker, names->names, names->count, over, code_out);
    if (self->parted) {
        PyThreadState *thread = self->parted;
        self->parted = NULL;
        PyEval_RestoreThread(thread);
    }
    begun(self);
    self->in_pool = !one && role == JOBQ_ROLE_CHILD;
    return one && role >= 0 ? JOBQ_ROLE_INLINE : role;
}

/* start(queues, over, one) -> (role, exit code) */
PyObject *core_worker_start(core_worker *self, PyObject *args)
{
    PyObject *queues, *over;
    core_names names;
    bool own;
    int one, code = 0, role = -1;
    if (!PyArg_ParseTuple(args, "OOp:start", &queues, &over, &one) ||
        !core_names_read(&names, queues, "queues")) {
        return NULL;
    }
    jobq_conf *conf = over_of(self->state, over, &own);
    if (conf) {
        role = start(self, &names, conf, one != 0, &code);
        if (role < 0) {
            core_raise_last(self->state);
        }
    }
    if (own) {
        jobq_conf_free(conf);
    }
    core_names_free(&names);
    return role < 0 ? NULL : Py_BuildValue("(ii)", role, code);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static PyObject *event_data(const jobq_event *event)
{
    const char *key, *text;
    double number;
    bool is_number;
    PyObject *data = PyDict_New();
    for (size_t i = 0; data && jobq_event_data(event, i, &key, &text, &number, &is_number); i++) {
        PyObject *value = !is_number                            ? core_text_or_none(text)
                          : number == (double)(long long)number ? PyLong_FromDouble(number)
                                                                : PyFloat_FromDouble(number);
        if (!core_add(data, key, value)) {
            Py_CLEAR(data);
        }
    }
    return data;
}

/* Of an event: an unreadable payload is None. */
static PyObject *event_job(core_worker *self, jobq_job *job)
{
    size_t n;
    int format;
    bool problem = false;
    if (!job) {
        Py_RETURN_NONE;
    }
    const void *body = jobq_job_body(job, &n, &format);
    PyObject *payload = core_decode(self->state, format, body, n, &problem);
    if (!payload && problem) {
        PyErr_Clear();
        payload = Py_NewRef(Py_None);
    }
    return payload ? core_job_make(self->queue, job, CORE_EVENT, payload) : NULL;
}

static PyObject *give_event(core_worker *self, const jobq_event *event)
{
    PyObject *job = event_job(self, jobq_event_job(event));
    PyObject *data = job ? event_data(event) : NULL;
    if (!data) {
        Py_XDECREF(job);
        return NULL;
    }
    if (job != Py_None) {
        self->job = Py_NewRef(job);
    }
    size_t n = 0;
    const char *queue = jobq_event_queue(event, &n);
    return Py_BuildValue("(isNz#N)", JOBQ_STEP_EVENT, jobq_event_name(event), job, queue,
                         (Py_ssize_t)n, data);
}

static void take_in_hand(core_worker *self, PyObject *made, jobq_job *job)
{
    ((core_job *)made)->locks = !self->in_pool;
    self->job = Py_NewRef(made);
    self->state->job = job;
    self->state->handle = self->in_pool ? NULL : self->queue;
    self->state->interrupt = JOBQ_INTERRUPT_NONE;
}

/* (STEP_JOB, Job, number of its handler or -1, None or what is wrong with its payload) */
static PyObject *give_job(core_worker *self, jobq_job *job)
{
    size_t n;
    int format;
    bool problem = false;
    const void *body = jobq_job_body(job, &n, &format);
    PyObject *payload = core_decode(self->state, format, body, n, &problem);
    PyObject *wrong = payload ? Py_NewRef(Py_None) : core_exception_take();
    if (!payload) {
        payload = Py_NewRef(Py_None);
    }
    PyObject *made = wrong ? core_job_make(self->queue, job, CORE_HANDLER, payload) : NULL;
    if (!made) {
        Py_XDECREF(wrong);
        return NULL;
    }
    take_in_hand(self, made, job);
    return Py_BuildValue("(iNiN)", JOBQ_STEP_JOB, made, jobq_worker_find(self->worker, job), wrong);
}

/* (STEP_HOOK, Job, number of its handler or -1, JobInfo): the job is the hook's own hand-out. */
static PyObject *give_hook(core_worker *self, jobq_job *job)
{
    const jobq_info *dead = jobq_worker_dead(self->worker);
    PyObject *info = dead ? core_info_make(self->state, dead) : core_text_or_none(NULL);
    PyObject *made =
        info ? core_job_make(self->queue, job, CORE_HANDLER, core_text_or_none(NULL)) : NULL;
    if (!made) {
        Py_XDECREF(info);
        return NULL;
    }
    take_in_hand(self, made, job);
    return Py_BuildValue("(iNiN)", JOBQ_STEP_HOOK, made, jobq_worker_find(self->worker, job), info);
}

/* What the last step gave is over. */
static void forget_step(core_worker *self)
{
    if (self->job) {
        core_job_detach((core_job *)self->job);
        Py_CLEAR(self->job);
    }
    self->state->job = NULL;
    self->state->handle = NULL;
}

static PyObject *give_step(core_worker *self, int step, jobq_job *job, jobq_event *event)
{
    if (PyErr_Occurred() || step < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    switch (step) {
    case JOBQ_STEP_EVENT:
        return give_event(self, event);
    case JOBQ_STEP_JOB:
        return give_job(self, job);
    case JOBQ_STEP_HOOK:
        return give_hook(self, job);
    default:
        return Py_BuildValue("(i)", step);
    }
}

PyObject *core_worker_next(core_worker *self, PyObject *unused)
{
    jobq_job *job = NULL;
    jobq_event *event = NULL;
    int step = -1;
    (void)unused;
    forget_step(self);
    WORKER_CALL(self, step, jobq_worker_next(self->worker, &job, &event));
    return give_step(self, step, job, event);
}

/* ---- several at once ------------------------------------------------------------------------- */

/* Like next, but (STEP_WAIT,) instead of waiting. */
PyObject *core_worker_poll(core_worker *self, PyObject *unused)
{
    jobq_job *job = NULL;
    jobq_event *event = NULL;
    int step = -1;
    (void)unused;
    forget_step(self);
    WORKER_CALL(self, step, jobq_worker_poll(self->worker, &job, &event));
    return give_step(self, step, job, event);
}

/* Readable when poll() is worth a call; -1: there is none. */
PyObject *core_worker_fd(core_worker *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(jobq_worker_fd(self->worker));
}

/* The job in hand runs beside others: later steps leave it alone, it is settled by settle_job, and
 * nothing is thrown into it from a signal. */
PyObject *core_worker_let_go(core_worker *self, PyObject *unused)
{
    (void)unused;
    if (self->job) {
        ((core_job *)self->job)->together = true;
    }
    Py_CLEAR(self->job);
    self->state->job = NULL;
    Py_RETURN_NONE;
}

/* The one that was let go, NULL with an error raised. */
static core_job *let_go(core_worker *self, PyObject *object)
{
    if (Py_TYPE(object) != self->state->job_type || !((core_job *)object)->together ||
        !((core_job *)object)->job) {
        core_raise_logic("no job that runs beside others");
        return NULL;
    }
    return (core_job *)object;
}

/* A child's job that has used the queue's handle leaves it here, and threads of the handler's may
 * be in it: locked. */
static int settle(core_worker *self, const core_job *object, jobq_job *job, int ending,
                  int64_t delay_ms)
{
    int rc = -1;
    if (self->in_pool && object && object->reached) {
        CORE_CALL(self->queue, rc, jobq_job_settle(job, (jobq_ending)ending, delay_ms));
    } else {
        WORKER_CALL(self, rc, jobq_job_settle(job, (jobq_ending)ending, delay_ms));
    }
    return rc;
}

static PyObject *settled(core_worker *self, int rc)
{
    if (rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    Py_RETURN_NONE;
}

/* settle_job(Job, ending, delay in ms or -1) */
PyObject *core_worker_settle_job(core_worker *self, PyObject *args)
{
    int ending, rc;
    long long delay_ms;
    PyObject *object;
    if (!PyArg_ParseTuple(args, "OiL:settle_job", &object, &ending, &delay_ms)) {
        return NULL;
    }
    core_job *job = let_go(self, object);
    if (!job) {
        return NULL;
    }
    rc = settle(self, job, job->job, ending, delay_ms);
    core_job_detach(job);
    return settled(self, rc);
}

/* Is it to end? None, or for the first time the exception that says why. */
PyObject *core_worker_interrupted_job(core_worker *self, PyObject *object)
{
    core_job *job = let_go(self, object);
    const int kind = job ? jobq_job_interrupted(job->job) : JOBQ_INTERRUPT_NONE;
    if (!job) {
        return NULL;
    }
    if (kind == JOBQ_INTERRUPT_NONE) {
        Py_RETURN_NONE;
    }
    job->interrupt = kind;
    core_raise_interrupt(self->state, kind, job->job);
    PyObject *error = core_exception_take();
    return error ? error : PyErr_NoMemory();
}

/* settle(ending, delay in ms or -1): of the job in hand */
PyObject *core_worker_settle(core_worker *self, PyObject *args)
{
    int ending, rc;
    long long delay_ms;
    jobq_job *job = self->state->job;
    if (!PyArg_ParseTuple(args, "iL:settle", &ending, &delay_ms)) {
        return NULL;
    }
    if (!job) {
        return core_raise_logic("there is no job to settle");
    }
    rc = settle(self, (core_job *)self->job, job, ending, delay_ms);
    forget_step(self);
    return settled(self, rc);
}

/* The exit code; a child does not return. */
PyObject *core_worker_finish(core_worker *self, PyObject *unused)
{
    int code = -1;
    (void)unused;
    forget_step(self);
    self->finishing = true;
    WORKER_CALL(self, code, jobq_worker_finish(self->worker));
    if (PyErr_Occurred() || code < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    return PyLong_FromLong(code);
}
