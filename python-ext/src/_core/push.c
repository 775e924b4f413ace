/* SPDX-License-Identifier: MIT
 *
 * Queue.push, and the chunks of push_many (rule B3). A message is filled with the interpreter's
 * lock and sent without it; the queue keeps one for the next call.
 */
#include "core.h"

static jobq_message *take_message(core_queue *self)
{
    jobq_message *m = self->message;
    self->message = NULL;
    if (m) {
        jobq_message_reset(m);
    } else if (!(m = jobq_message_new())) {
        core_raise_last(self->state);
    }
    return m;
}

static void give_message(core_queue *self, jobq_message *m)
{
    if (self->message) {
        jobq_message_free(m);
    } else {
        self->message = m;
    }
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool set_name(core_queue *self, jobq_message *m, PyObject *name)
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
        core_raise_last(self->state);
        return false;
    }
    return true;
}

static bool add_pair(core_queue *self, jobq_message *m, PyObject *key, PyObject *value)
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
        core_raise_last(self->state);
        return false;
    }
    return true;
}

static bool set_context(core_queue *self, jobq_message *m, PyObject *context)
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
        if (!add_pair(self, m, key, value)) {
            return false;
        }
    }
    return true;
}

static bool is_word(PyObject *name, const char *word)
{
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, word) == 0;
}

static bool set_options(core_queue *self, jobq_message *m, PyObject *options, bool parameters)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (options && PyDict_Next(options, &at, &name, &value)) {
        if (parameters && (is_word(name, "name") || is_word(name, "payload"))) {
            continue;
        }
        if (is_word(name, "context")
                ? !set_context(self, m, value)
                : !core_conf_named(self->state, jobq_message_options(m), name, value)) {
            return false;
        }
    }
    return true;
}

static bool fill(core_queue *self, jobq_message *m, PyObject *name, PyObject *payload,
                 PyObject *options, bool parameters)
{
    if (!set_name(self, m, name)) {
        return false;
    }
    if (payload && payload != Py_None) {
        jobq_writer *w = jobq_message_payload(m);
        if (!w) {
            core_raise_last(self->state);
            return false;
        }
        if (!core_encode(self->state, w, payload)) {
            return false;
        }
    }
    return set_options(self, m, options, parameters);
}

static bool tell(core_queue *self, const jobq_message *m, PyObject *name)
{
    PyObject *id = PyUnicode_FromString(jobq_message_id(m));
    PyObject *unused = id ? PyObject_CallFunctionObjArgs(self->on_pushed, id, name, NULL) : NULL;
    Py_XDECREF(id);
    Py_XDECREF(unused);
    return unused != NULL;
}

/* ---- one ------------------------------------------------------------------------------------- */

/* Positional or by name, as the signature says. False: raised. */
static bool read_arguments(PyObject *args, PyObject *options, PyObject **name, PyObject **payload)
{
    if (!PyArg_ParseTuple(args, "|OO:push", name, payload)) {
        return false;
    }
    PyObject *named = options ? PyDict_GetItemString(options, "name") : NULL;
    if (named && *name) {
        core_raise_type("push() got multiple values for argument 'name'");
        return false;
    }
    *name = *name ? *name : named;
    named = options ? PyDict_GetItemString(options, "payload") : NULL;
    if (named && *payload) {
        core_raise_type("push() got multiple values for argument 'payload'");
        return false;
    }
    *payload = *payload ? *payload : named;
    if (!*name) {
        core_raise_type("push() missing the argument 'name'");
    }
    return *name != NULL;
}

PyObject *core_queue_push(core_queue *self, PyObject *args, PyObject *options)
{
    PyObject *name = NULL, *payload = NULL, *id = NULL;
    jobq_message *m;
    int rc = 0;
    if (!read_arguments(args, options, &name, &payload) || !core_queue_is_made(self) ||
        !(m = take_message(self))) {
        return NULL;
    }
    if (fill(self, m, name, payload, options, true)) {
        CORE_CALL(self, rc, jobq_queue_push(self->queue, m));
        if (PyErr_Occurred()) {
            rc = -1;
        } else if (rc < 0) {
            core_raise_last(self->state);
        } else if (rc > 0 || !self->on_pushed || tell(self, m, name)) {
            id = PyUnicode_FromString(jobq_message_id(m));
        }
    }
    give_message(self, m);
    return id;
}

/* ---- a chunk --------------------------------------------------------------------------------- */

/* One item is (name,), (name, payload) or (name, payload, {option: value}). */
typedef struct {
    jobq_message *message; /* NULL: refused, error says why */
    PyObject *error;
} entry;

typedef struct {
    core_queue *queue;
    PyObject *items; /* a list */
    entry *entries;
    jobq_message **sent; /* of the entries from first on that have a message */
    Py_ssize_t first, count, n;
    size_t bytes;
} chunk;

static bool fill_item(core_queue *self, jobq_message *m, PyObject *item)
{
    PyObject *name, *payload = NULL, *options = NULL;
    if (!PyTuple_Check(item)) {
        core_raise_type("a job to push is a tuple (name, payload, {option: value})");
        return false;
    }
    if (!PyArg_ParseTuple(item, "O|OO!;a job to push is (name, payload, {option: value})", &name,
                          &payload, &PyDict_Type, &options)) {
        return false;
    }
    return fill(self, m, name, payload, options, false);
}

static bool add_item(chunk *c, PyObject *item)
{
    const void *body;
    size_t n = 0;
    entry *e = &c->entries[c->count];
    jobq_message *m = take_message(c->queue);
    if (!m) {
        return false;
    }
    if (!fill_item(c->queue, m, item)) {
        give_message(c->queue, m);
        e->error = core_error_take(c->queue->state);
        c->count++;
        return e->error != NULL;
    }
    if (jobq_writer_finish(jobq_message_payload(m), &body, &n) < 0) {
        n = 1; /* an untouched writer: nil */
    }
    e->message = m;
    c->bytes += n;
    c->count++;
    return true;
}

/* Stores what has gathered since `first`. An error of the whole step is raised. */
static bool send(chunk *c)
{
    size_t n = 0;
    int rc = 0;
    for (Py_ssize_t i = c->first; i < c->count; i++) {
        if (c->entries[i].message) {
            c->sent[n++] = c->entries[i].message;
        }
    }
    c->first = c->count;
    c->bytes = 0;
    if (n == 0) {
        return true;
    }
    CORE_CALL(c->queue, rc, jobq_queue_push_many(c->queue->queue, c->sent, n));
    if (PyErr_Occurred()) {
        return false;
    }
    if (rc < 0) {
        core_raise_last(c->queue->state);
    }
    return rc >= 0;
}

static bool gather(chunk *c)
{
    for (Py_ssize_t i = 0; i < c->n; i++) {
        if (!add_item(c, PyList_GetItem(c->items, i)) ||
            (c->bytes >= JOBQ_PUSH_CHUNK_BYTES && !send(c))) {
            return false;
        }
    }
    return send(c);
}

static PyObject *result_of(chunk *c, entry *e)
{
    if (!e->message) {
        return Py_NewRef(e->error);
    }
    if (jobq_message_result(e->message) >= 0) {
        return PyUnicode_FromString(jobq_message_id(e->message));
    }
    PyObject *exception = core_error_make(c->queue->state, jobq_message_error(e->message));
    if (exception) { /* a usage error among many is a result like the others */
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
        exception = core_error_take(c->queue->state);
    }
    return exception;
}

static PyObject *results_of(chunk *c)
{
    PyObject *results = PyList_New(0);
    for (Py_ssize_t i = 0; results && i < c->n; i++) {
        entry *e = &c->entries[i];
        PyObject *result = result_of(c, e);
        bool good = result && PyList_Append(results, result) == 0;
        Py_XDECREF(result);
        if (good && c->queue->on_pushed && e->message && jobq_message_result(e->message) == 0) {
            PyObject *name = PyTuple_GetItem(PyList_GetItem(c->items, i), 0);
            good = name && tell(c->queue, e->message, name);
        }
        if (!good) {
            Py_CLEAR(results);
        }
    }
    return results;
}

static void forget(chunk *c)
{
    for (Py_ssize_t i = 0; c->entries && i < c->n; i++) {
        if (c->entries[i].message) {
            give_message(c->queue, c->entries[i].message);
        }
        Py_XDECREF(c->entries[i].error);
    }
    PyMem_Free(c->entries);
    PyMem_Free(c->sent);
}

/* [item] -> [id or QueueError] */
PyObject *core_queue_push_chunk(core_queue *self, PyObject *items)
{
    chunk c = {.queue = self, .items = items};
    if (!core_queue_is_made(self) || !PyList_Check(items)) {
        return PyErr_Occurred() ? NULL : core_raise_type("a list of jobs is expected");
    }
    c.n = PyList_Size(items);
    c.entries = PyMem_Calloc((size_t)c.n + 1, sizeof(*c.entries));
    c.sent = PyMem_Calloc((size_t)c.n + 1, sizeof(jobq_message *));
    PyObject *results = NULL;
    if (!c.entries || !c.sent) {
        PyErr_NoMemory();
    } else if (gather(&c)) {
        results = results_of(&c);
    }
    forget(&c);
    return results;
}
