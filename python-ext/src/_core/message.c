/* SPDX-License-Identifier: MIT
 *
 * What is to be pushed, into a message of the library: name, payload, options, context, guard.
 */
#include "core.h"

/* ---- filling --------------------------------------------------------------------------------- */

static bool set_name(core_state *state, jobq_message *m, PyObject *name)
{
    Py_ssize_t n;
    if (!PyUnicode_Check(name)) {
        core_raise_type("a job's name must be a string");
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(name, &n);
    if (!text) {
        PyErr_Clear();
        core_raise_usage("a job's name holds a lone surrogate");
        return false;
    }
    if (jobq_message_set_name(m, text, (size_t)n) < 0) {
        core_raise_last(state);
        return false;
    }
    return true;
}

static bool add_pair(core_state *state, jobq_message *m, PyObject *key, PyObject *value)
{
    Py_ssize_t key_n, value_n;
    if (!PyUnicode_Check(key) || !PyUnicode_Check(value)) {
        core_raise_type("context: keys and values must be strings");
        return false;
    }
    const char *k = PyUnicode_AsUTF8AndSize(key, &key_n);
    const char *v = k ? PyUnicode_AsUTF8AndSize(value, &value_n) : NULL;
    if (!v) {
        PyErr_Clear();
        core_raise_usage("context: a lone surrogate cannot be used here");
        return false;
    }
    if (jobq_message_add_context(m, k, (size_t)key_n, v, (size_t)value_n) < 0) {
        core_raise_last(state);
        return false;
    }
    return true;
}

static bool set_context(core_state *state, jobq_message *m, PyObject *context)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    if (context == Py_None) {
        return true;
    }
    if (!PyDict_Check(context)) {
        core_raise_type("context must be a dict of strings");
        return false;
    }
    while (PyDict_Next(context, &at, &key, &value)) {
        if (!add_pair(state, m, key, value)) {
            return false;
        }
    }
    return true;
}

static bool set_guard(core_state *state, jobq_message *m, PyObject *value)
{
    core_statement guard;
    if (value == Py_None) {
        return true;
    }
    if (!core_statement_read(&guard, value, "guard")) {
        return false;
    }
    const int rc = jobq_message_set_guard(m, &guard.statement); /* copies */
    core_statement_free(&guard);
    if (rc < 0) {
        core_raise_last(state);
    }
    return rc >= 0;
}

static bool is_word(PyObject *name, const char *word)
{
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, word) == 0;
}

/* Guard and context are no options of the library's table. */
static bool set_option(core_state *state, jobq_message *m, PyObject *name, PyObject *value)
{
    if (is_word(name, "context")) {
        return set_context(state, m, value);
    }
    if (is_word(name, "guard")) {
        return set_guard(state, m, value);
    }
    return core_conf_named(state, jobq_message_options(m), name, value);
}

/* What is given beside the options by name. */
static bool is_parameter(PyObject *name)
{
    return is_word(name, "name") || is_word(name, "payload");
}

static bool set_options(core_state *state, jobq_message *m, PyObject *options, bool parameters)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (options && PyDict_Next(options, &at, &name, &value)) {
        if (!(parameters && is_parameter(name)) && !set_option(state, m, name, value)) {
            return false;
        }
    }
    return true;
}

bool core_message_fill(core_state *state, jobq_message *m, PyObject *name, PyObject *payload,
                       PyObject *options, bool parameters)
{
    if (!set_name(state, m, name)) {
        return false;
    }
    if (payload && payload != Py_None) {
        jobq_writer *w = jobq_message_payload(m);
        if (!w) {
            core_raise_last(state);
            return false;
        }
        if (!core_encode(state, w, payload, "payload")) {
            return false;
        }
    }
    return set_options(state, m, options, parameters);
}

/* ---- judging before -------------------------------------------------------------------------- */

PyObject *core_judge(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *name, *push, *handler;
    if (!PyArg_ParseTuple(args, "OO!O!:judge", &name, &PyDict_Type, &push, &PyDict_Type,
                          &handler)) {
        return NULL;
    }
    jobq_message *m = jobq_message_new();
    jobq_conf *conf = m ? jobq_conf_new(JOBQ_SCOPE_HANDLER, JOBQ_STYLE_SNAKE) : NULL;
    if (!conf) {
        core_raise_last(state);
    }
    const bool good = conf && set_name(state, m, name) &&
                      core_conf_all(state, jobq_message_options(m), push) &&
                      core_conf_all(state, conf, handler);
    jobq_conf_free(conf);
    jobq_message_free(m);
    if (!good) {
        return NULL;
    }
    Py_RETURN_NONE;
}
