/* SPDX-License-Identifier: MIT
 *
 * The module: its state, what it takes from Python files, its functions and constants.
 */
#include "core.h"

#include <dlfcn.h>

static struct PyModuleDef definition;

/* ---- what C makes of Python's --------------------------------------------------------------- */

static const struct {
    const char *module, *name;
} imports[CORE_IMPORTS] = {
    [CORE_QUEUE_ERROR] = {"jobqueue.errors", "QueueError"},
    [CORE_STORE_ERROR] = {"jobqueue.errors", "StoreError"},
    [CORE_OUTCOME_UNKNOWN] = {"jobqueue.errors", "OutcomeUnknown"},
    [CORE_DUPLICATE_JOB] = {"jobqueue.errors", "DuplicateJob"},
    [CORE_LEASE_LOST] = {"jobqueue.errors", "LeaseLost"},
    [CORE_PAYLOAD_ERROR] = {"jobqueue.errors", "PayloadError"},
    [CORE_NOT_FOUND] = {"jobqueue.errors", "NotFound"},
    [CORE_QUEUE_FULL] = {"jobqueue.errors", "QueueFull"},
    [CORE_GUARD_REFUSED] = {"jobqueue.errors", "GuardRefused"},
    [CORE_JOB_DEAD] = {"jobqueue.errors", "JobDead"},
    [CORE_WAIT_TIMEOUT] = {"jobqueue.errors", "WaitTimeout"},
    [CORE_JOB_TIMEOUT] = {"jobqueue.errors", "JobTimeout"},
    [CORE_JOB_STOP] = {"jobqueue.errors", "JobStop"},
    [CORE_STATE] = {"jobqueue.records", "State"},
    [CORE_JOB_INFO] = {"jobqueue.records", "JobInfo"},
    [CORE_STATS] = {"jobqueue.records", "Stats"},
    [CORE_RECORD_FAULT] = {"jobqueue.faults", "record"},
    [CORE_LEAVE_FORK] = {"jobqueue.faults", "leave_fork"},
    [CORE_DATETIME] = {"datetime", "datetime"},
    [CORE_TIMEDELTA] = {"datetime", "timedelta"},
    [CORE_UTC] = {"jobqueue.records", "UTC"},
    [CORE_EPOCH] = {"jobqueue.records", "EPOCH"},
    [CORE_ENUM] = {"enum", "Enum"},
    [CORE_GETSIGNAL] = {"_signal", "getsignal"}, /* signal.getsignal makes an Enum of what it can */
};

static int import_all(core_state *state)
{
    for (size_t i = 0; i < CORE_IMPORTS; i++) {
        PyObject *module = PyImport_ImportModule(imports[i].module);
        state->imports[i] = module ? PyObject_GetAttrString(module, imports[i].name) : NULL;
        Py_XDECREF(module);
        if (!state->imports[i]) {
            return -1;
        }
    }
    return 0;
}

core_state *core_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* A subclass made in Python belongs to no module: its base does. */
core_state *core_state_of_type(PyTypeObject *type)
{
    for (PyTypeObject *t = type; t; t = PyType_GetSlot(t, Py_tp_base)) {
        PyObject *module = PyType_GetModule(t);
        if (module && PyModule_GetDef(module) == &definition) {
            return PyModule_GetState(module);
        }
        PyErr_Clear();
    }
    core_raise_logic("jobqueue: a type of another module");
    return NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

static PyObject *encode(PyObject *module, PyObject *value)
{
    core_state *state = core_state_of(module);
    const void *p;
    size_t n;
    PyObject *bytes = NULL;
    jobq_writer *w = jobq_writer_new((size_t)64 << 20);
    if (!w) {
        return core_raise_last(state);
    }
    if (core_encode(state, w, value, "payload")) {
        if (jobq_writer_finish(w, &p, &n) < 0) {
            core_raise_last(state);
        } else {
            bytes = PyBytes_FromStringAndSize(p, (Py_ssize_t)n);
        }
    }
    jobq_writer_free(w);
    return bytes;
}

static PyObject *decode(PyObject *module, PyObject *bytes)
{
    char *p;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(bytes, &p, &n) < 0) {
        return NULL;
    }
    return core_decode(core_state_of(module), JOBQ_FORMAT_MSGPACK, p, (size_t)n, NULL);
}

static PyObject *events(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && jobq_event_list(i); i++) {
        PyObject *name = PyUnicode_FromString(jobq_event_list(i));
        if (!name || PyList_Append(list, name) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *drivers(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && jobq_driver_name(i); i++) {
        PyObject *name = PyUnicode_FromString(jobq_driver_name(i));
        if (!name || PyList_Append(list, name) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *event_nearest(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = core_text(name, "event");
    return text ? core_text_or_none(jobq_event_nearest(text)) : NULL;
}

static PyObject *outcome_word(PyObject *module, PyObject *ending)
{
    (void)module;
    const long value = PyLong_AsLong(ending);
    return PyErr_Occurred() ? NULL : PyUnicode_FromString(jobq_outcome_word((jobq_ending)value));
}

/* True: nothing else runs a worker in this process, and from now on we do. */
static PyObject *claim(PyObject *module, PyObject *unused)
{
    core_state *state = core_state_of(module);
    (void)unused;
    const bool got = !state->running;
    state->running = true;
    return PyBool_FromLong(got);
}

static PyObject *unclaim(PyObject *module, PyObject *unused)
{
    (void)unused;
    core_state_of(module)->running = false;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"encode", encode, METH_O, "encode(value, /)\n--\n\nA payload's bytes."},
    {"decode", decode, METH_O, "decode(body, /)\n--\n\nThe value of a payload's bytes."},
    {"events", events, METH_NOARGS, "events()\n--\n\nThe names of all events."},
    {"drivers", drivers, METH_NOARGS, "drivers()\n--\n\nThe stores that are built in."},
    {"event_nearest", event_nearest, METH_O, NULL},
    {"refuse_type", core_refuse_argument, METH_VARARGS, NULL},
    {"outcome_word", outcome_word, METH_O, NULL},
    {"judge", core_judge, METH_VARARGS, NULL},
    {"claim", claim, METH_NOARGS, NULL},
    {"unclaim", unclaim, METH_NOARGS, NULL},
    {"interrupt", core_interrupt, METH_VARARGS, NULL},
    {"interrupt_handler", core_interrupt_handler, METH_NOARGS, NULL},
    {"console", core_console, METH_VARARGS, NULL},
    {"console_reloads", core_console_reloads, METH_NOARGS, NULL},
    {"console_loaded", core_console_loaded, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ------------------------------------------------------------------------------ */

#define ENDING(name, word) {#name, name},
static const struct {
    const char *name;
    int value;
} constants[] = {
    JOBQ_ENDING_LIST(ENDING){"ROLE_MASTER", JOBQ_ROLE_MASTER},
    {"ROLE_CHILD", JOBQ_ROLE_CHILD},
    {"ROLE_INLINE", JOBQ_ROLE_INLINE},
    {"STEP_STOP", JOBQ_STEP_STOP},
    {"STEP_JOB", JOBQ_STEP_JOB},
    {"STEP_EVENT", JOBQ_STEP_EVENT},
    {"STEP_HOOK", JOBQ_STEP_HOOK},
    {"STEP_WAIT", JOBQ_STEP_WAIT},
    {"INTERRUPT_TIMEOUT", JOBQ_INTERRUPT_TIMEOUT},
    {"INTERRUPT_STOP", JOBQ_INTERRUPT_STOP},
    {"PUSH_CHUNK", JOBQ_PUSH_CHUNK},
};

static int add_constants(PyObject *module)
{
    static const char prefix[] = "JOBQ_";
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        const char *name = constants[i].name;
        name += strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
        if (PyModule_AddIntConstant(module, name, constants[i].value) < 0) {
            return -1;
        }
    }
    return PyModule_AddStringConstant(module, "version", jobq_version());
}

/* What the loader finds may be another library than the one at compile time: it looks into
 * /usr/local/lib first. A newer one of the same soname keeps the interface, an older one may lack
 * what is called here. */
static bool library_is_old(void)
{
    Dl_info where = {0};
    if (jobq_version_number() >= JOBQ_VERSION_NUMBER) {
        return false;
    }
    dladdr((void *)(uintptr_t)jobq_version, &where);
    PyErr_Format(PyExc_ImportError,
                 "jobqueue: this is the package of %s, and the libjobqueue that was loaded is "
                 "older: %s (%s); remove that one, or install libjobqueue %s there",
                 JOBQ_VERSION, jobq_version(), where.dli_fname ? where.dli_fname : "?",
                 JOBQ_VERSION);
    return true;
}

static int execute(PyObject *module)
{
    core_state *state = core_state_of(module);
    if (library_is_old()) {
        return -1;
    }
    core_fork_startup();
    if (import_all(state) < 0 || !(state->queue_type = core_queue_type(module)) ||
        !(state->worker_type = core_worker_type(module)) ||
        !(state->job_type = core_job_type(module)) ||
        PyModule_AddType(module, state->queue_type) < 0 ||
        PyModule_AddType(module, state->worker_type) < 0 ||
        PyModule_AddType(module, state->job_type) < 0) {
        return -1;
    }
    return add_constants(module);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = core_state_of(module);
    for (size_t i = 0; i < CORE_IMPORTS; i++) {
        Py_VISIT(state->imports[i]);
    }
    Py_VISIT((PyObject *)state->queue_type);
    Py_VISIT((PyObject *)state->worker_type);
    Py_VISIT((PyObject *)state->job_type);
    Py_VISIT(state->cancel);
    return 0;
}

static int clear(PyObject *module)
{
    core_state *state = core_state_of(module);
    for (size_t i = 0; i < CORE_IMPORTS; i++) {
        Py_CLEAR(state->imports[i]);
    }
    Py_CLEAR(state->queue_type);
    Py_CLEAR(state->worker_type);
    Py_CLEAR(state->job_type);
    Py_CLEAR(state->cancel);
    return 0;
}

static void release(void *module)
{
    core_state *state = core_state_of(module);
    clear(module);
    if (state->reader) { /* else nothing of the library is called, it may be an old one */
        jobq_reader_free(state->reader);
        state->reader = NULL;
    }
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "jobqueue._core",
    .m_doc = "The job queue's core; use it through the package jobqueue.",
    .m_size = sizeof(core_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
