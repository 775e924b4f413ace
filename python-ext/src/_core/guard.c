/* SPDX-License-Identifier: MIT
 *
 * Calling the application's code so that a time limit or hard stop can end it, and nothing else.
 *
 * The library's signal handler trips the interpreter's own flag for SIGURG; between two
 * instructions (or out of a sleep, a lock, a read) the interpreter then calls core_interrupt. That
 * one raises only while we are inside of core_guard_call: our own Python code is never hit, and
 * what was handed out before or after is none of its business.
 */
#include "core.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Raised in each forked child: asking for the pid is a system call, six a job. */
static uint64_t generation;

static void count_fork(void)
{
    generation++;
}

void core_fork_startup(void)
{
    static bool done;
    if (!done) {
        done = true;
        pthread_atfork(NULL, NULL, count_fork);
    }
}

uint64_t core_fork_generation(void)
{
    return generation;
}

/* Inline that asks the store now and then. -1: raised. */
static int asked_to_end(core_state *state)
{
    core_queue *handle = state->handle;
    if (!state->job || (handle && !core_queue_enter(handle))) {
        return state->job ? -1 : JOBQ_INTERRUPT_NONE;
    }
    const int kind = jobq_job_interrupted(state->job);
    if (handle) {
        core_queue_leave(handle);
    }
    return kind;
}

int core_interrupt_take(core_state *state)
{
    const int kind = asked_to_end(state);
    if (kind <= JOBQ_INTERRUPT_NONE) {
        return kind < 0 ? -1 : 0;
    }
    state->interrupt = kind;
    if (state->cancel) {
        PyObject *unused = PyObject_CallFunctionObjArgs(state->cancel, NULL);
        Py_XDECREF(unused);
        return unused ? 0 : -1;
    }
    core_raise_interrupt(state, kind, state->job);
    return -1;
}

/* What signal.signal(SIGURG) is given: (number, frame) -> None. */
PyObject *core_interrupt(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    (void)args;
    if (state->armed && core_interrupt_take(state) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* What is set for SIGURG just now: asked before each job. */
PyObject *core_interrupt_handler(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyObject_CallFunction(core_get(core_state_of(module), CORE_GETSIGNAL), "i", SIGURG);
}

/* A process that the application's code forked off does not come back from here. */
static PyObject *leave(core_state *state, PyObject *exception)
{
    PyObject *unused = PyObject_CallFunctionObjArgs(core_get(state, CORE_LEAVE_FORK),
                                                    exception ? exception : Py_None, NULL);
    Py_XDECREF(unused);
    _exit(1);
}

/* call(function, args, kwargs) -> (True, result) or (False, exception) */
PyObject *core_guard_call(core_worker *self, PyObject *args)
{
    core_state *state = self->state;
    PyObject *function, *positional, *named = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO!|O:call", &function, &PyTuple_Type, &positional, &named)) {
        return NULL;
    }
    const uint64_t born = generation;
    state->armed++;
    if (core_interrupt_take(state) == 0) {
        result = PyObject_Call(function, positional, named == Py_None ? NULL : named);
    }
    state->armed--;
    PyObject *exception = result ? NULL : core_exception_take();
    if (generation != born) {
        leave(state, exception);
    }
    if (result) {
        return Py_BuildValue("(ON)", Py_True, result);
    }
    return exception ? Py_BuildValue("(ON)", Py_False, exception) : PyErr_NoMemory();
}

/* While it is set, an interrupt calls it instead of raising; None: no longer. */
PyObject *core_guard_cancel(core_worker *self, PyObject *callable)
{
    PyObject *before = self->state->cancel;
    self->state->cancel = callable == Py_None ? NULL : Py_NewRef(callable);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}
