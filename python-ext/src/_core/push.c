/* SPDX-License-Identifier: MIT
 *
 * Queue.push, push_statement, and the chunks of push_many (rule B3). A message is filled with the
 * interpreter's lock (message.c) and sent without it; the queue keeps one for the next call.
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

static bool tell(core_queue *self, const jobq_message *m, PyObject *name)
{
    PyObject *unused = PyObject_CallFunction(self->on_pushed, "sOs", jobq_message_id(m), name,
                                             jobq_message_queue(m, self->queue));
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
    if (core_message_fill(self->state, m, name, payload, options, true)) {
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

/* ---- in the caller's transaction ------------------------------------------------------------- */

/* Taken out of a copy of the options; *style_out is borrowed from the caller's. False: raised. */
static bool take_style(PyObject *options, PyObject **copy_out, PyObject **style_out)
{
    *style_out = options ? PyDict_GetItemString(options, "paramstyle") : NULL;
    *copy_out = options ? PyDict_Copy(options) : PyDict_New();
    return *copy_out && (!*style_out || PyDict_DelItemString(*copy_out, "paramstyle") == 0);
}

static PyObject *make_statement(core_queue *self, jobq_message *m, int placeholders)
{
    const jobq_statement *statement = NULL;
    int rc = 0;
    CORE_CALL(self, rc, jobq_queue_push_statement(self->queue, m, placeholders, &statement));
    if (PyErr_Occurred() || rc < 0) {
        return PyErr_Occurred() ? NULL : core_raise_last(self->state);
    }
    return core_statement_make(statement);
}

PyObject *core_queue_push_statement(core_queue *self, PyObject *args, PyObject *options)
{
    PyObject *name = NULL, *payload = NULL, *style, *plain = NULL, *made = NULL;
    jobq_message *m = NULL;
    if (!read_arguments(args, options, &name, &payload) || !core_queue_is_made(self)) {
        return NULL;
    }
    if (take_style(options, &plain, &style)) {
        const int placeholders = core_paramstyle(style, jobq_queue_driver(self->queue));
        m = placeholders < 0 ? NULL : take_message(self);
        if (m && core_message_fill(self->state, m, name, payload, plain, true)) {
            made = make_statement(self, m, placeholders);
        }
    }
    if (m) {
        give_message(self, m);
    }
    Py_XDECREF(plain);
    return made;
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
    return core_message_fill(self->state, m, name, payload, options, false);
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
        e->error = core_error_take();
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
    if (rc == JOBQ_EINVAL && n == 1 && jobq_message_result(c->sent[0]) == rc) {
        return true; /* a mistake in the only one (a guard's SQL) is its result, as among many */
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
    return core_error_make(c->queue->state, jobq_message_error(e->message));
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

/* [item] -> [id or the exception that push() raises] */
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
