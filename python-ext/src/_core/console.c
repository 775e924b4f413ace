/* SPDX-License-Identifier: MIT
 *
 * The library's command line with Python handlers behind `work`; jobqueue/console.py loads the
 * application.
 */
#include "core.h"

#include <jobqueue/console.h>

typedef struct {
    PyObject *work; /* work(source, dsn, queues, over) -> exit code */
    PyThreadState *parted;
} console_call;

static PyObject *queue_list(const char *const *queues, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *name = core_text_or_none(queues[i]);
        if (!name || PyList_Append(list, name) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(name);
    }
    return list;
}

/* With the interpreter's lock. The exit code, or -1 with an exception raised. */
static int call_work(const console_call *call, const char *source, const char *dsn,
                     const char *const *queues, size_t count, const jobq_conf *over)
{
    int code = -1;
    PyObject *list = queue_list(queues, count);
    PyObject *capsule = PyCapsule_New((void *)over, CORE_CONF_CAPSULE, NULL);
    PyObject *result = list && capsule
                           ? PyObject_CallFunction(call->work, "zzOO", source, dsn, list, capsule)
                           : NULL;
    if (result) {
        code = (int)PyLong_AsLong(result);
    }
    Py_XDECREF(result);
    Py_XDECREF(list);
    Py_XDECREF(capsule);
    return PyErr_Occurred() ? -1 : code;
}

static int work(void *payload, const char *source, const char *dsn, const char *const *queues,
                size_t count, const jobq_conf *over)
{
    console_call *call = payload;
    PyEval_RestoreThread(call->parted);
    const int code = call_work(call, source, dsn, queues, count, over);
    call->parted = PyEval_SaveThread();
    return code < 0 ? JOBQ_ECALLBACK : code;
}

/* The texts of a list, borrowed from it. */
static char **read_argv(PyObject *list, int *argc_out)
{
    const Py_ssize_t n = PyList_Size(list);
    char **argv = PyMem_Calloc((size_t)n + 1, sizeof(*argv));
    for (Py_ssize_t i = 0; argv && i < n; i++) {
        argv[i] = (char *)core_text(PyList_GetItem(list, i), "argv");
        if (!argv[i]) {
            PyMem_Free(argv);
            return NULL;
        }
    }
    *argc_out = (int)n;
    return argv;
}

static bool set_ready(core_state *state, PyObject *worker, jobq_console *console)
{
    if (worker == Py_None) {
        console->source_option = "app";
        console->source_meaning = "MODULE:ATTR: where a jobqueue.Worker is, like shop.jobs:worker";
        return true;
    }
    if (PyObject_IsInstance(worker, (PyObject *)state->worker_type) != 1) {
        core_raise_type("worker: a Worker is expected");
        return false;
    }
    console->ready_worker = ((core_worker *)worker)->worker;
    return true;
}

/* console([argument], Worker's core or None, work, runtime) -> exit code */
PyObject *core_console(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *list, *worker;
    console_call call = {0};
    jobq_console console = {.size = sizeof(console), .payload = &call, .work = work};
    int argc = 0, code;
    if (!PyArg_ParseTuple(args, "O!OOs:console", &PyList_Type, &list, &worker, &call.work,
                          &console.runtime) ||
        !set_ready(state, worker, &console)) {
        return NULL;
    }
    char **argv = read_argv(list, &argc);
    if (!argv) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    console.program = argc > 0 && *argv[0] ? argv[0] : "jobqueue";
    call.parted = PyEval_SaveThread();
    code = jobq_console_main(&console, argc, argv);
    PyEval_RestoreThread(call.parted);
    PyMem_Free(argv);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(code);
}

/* Under `work --reload`: would it help to know which files the program is made of? */
PyObject *core_console_reloads(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(jobq_console_reloads());
}

PyObject *core_console_loaded(PyObject *module, PyObject *path)
{
    Py_ssize_t n;
    (void)module;
    const char *text = PyUnicode_AsUTF8AndSize(path, &n);
    if (!text) {
        return NULL;
    }
    jobq_console_loaded(text, (size_t)n);
    Py_RETURN_NONE;
}
