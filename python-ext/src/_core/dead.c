/* SPDX-License-Identifier: MIT
 *
 * Queue.jobs and dead, which list, and retry, forget and flush, which mend dead jobs (rule F4).
 */
#include "core.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/* One list of the store, to be read page by page. */
typedef struct {
    core_queue *queue;
    const char *name; /* NULL: dead jobs by filter */
    size_t name_n;
    jobq_state state;
    jobq_filter filter;
} source;

/* NULL: raised. */
static jobq_list *fetch(const source *s, size_t limit, const char *after)
{
    jobq_list *list = NULL;
    jobq_queue *handle = s->queue->queue;
    int rc = 0;
    if (s->name) {
        CORE_CALL(s->queue, rc,
                  jobq_queue_jobs(handle, s->name, s->name_n, s->state, limit, after, &list));
    } else {
        CORE_CALL(s->queue, rc, jobq_queue_dead(handle, &s->filter, limit, after, &list));
    }
    if (!PyErr_Occurred() && rc < 0) {
        core_raise_last(s->queue->state);
    }
    return PyErr_Occurred() ? NULL : list;
}

/* The store pages by cursors, people by the last id seen: what the two have to do with each other
 * is kept for the pages given out lately, for a job may have left the list by the next call. */
static PyObject *place_key(const source *s, const char *id)
{
    return PyUnicode_FromFormat("%d %s", s->name ? (int)s->state : JOBQ_STATES, id);
}

static bool forget_oldest(PyObject *places)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    return !PyDict_Next(places, &at, &key, &value) || PyDict_DelItem(places, key) == 0;
}

static bool remember(const source *s, const jobq_list *list)
{
    enum { PLACES = 256 };
    core_queue *queue = s->queue;
    const char *last = jobq_list_last(list);
    if (!last) {
        return true;
    }
    const char *id =
        jobq_info_text(jobq_list_get(list, jobq_list_count(list) - 1), JOBQ_INFO_ID, NULL);
    PyObject *key = place_key(s, id ? id : ""), *value = PyUnicode_FromString(last);
    bool done = key && value && (queue->places || (queue->places = PyDict_New()));
    if (done && PyDict_Contains(queue->places, key) == 1) {
        done = PyDict_DelItem(queue->places, key) == 0; /* it is the newest again */
    }
    done = done && (PyDict_Size(queue->places) < PLACES || forget_oldest(queue->places)) &&
           PyDict_SetItem(queue->places, key, value) == 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return done;
}

/* Where that id stands in the page; -1: nowhere. */
static Py_ssize_t position(const jobq_list *list, const char *id)
{
    for (size_t i = 0; i < jobq_list_count(list); i++) {
        const char *other = jobq_info_text(jobq_list_get(list, i), JOBQ_INFO_ID, NULL);
        if (other && strcmp(other, id) == 0) {
            return (Py_ssize_t)i;
        }
    }
    return -1;
}

static PyObject *cursor_text(const char *cursor)
{
    return PyUnicode_FromString(cursor ? cursor : "");
}

/* One page of the walk. *next_out is where the next begins, "" at the end; the answer is the cursor
 * behind the id, None when it is not in this page, NULL with an exception. */
static PyObject *look_in_page(const source *s, const char *id, const char *from,
                              PyObject **next_out)
{
    enum { PAGE = 1000 };
    jobq_list *list = fetch(s, PAGE, from);
    if (!list) {
        return NULL;
    }
    const Py_ssize_t at = position(list, id);
    *next_out = cursor_text(jobq_list_next(list));
    jobq_list_free(list);
    if (at < 0) {
        return *next_out ? Py_NewRef(Py_None) : NULL;
    }
    list = fetch(s, (size_t)at + 1, from);
    PyObject *found = list ? cursor_text(jobq_list_last(list)) : NULL;
    jobq_list_free(list);
    return found;
}

/* An id that no page of ours ended with: walk there. */
static PyObject *walk_to(const source *s, const char *id)
{
    PyObject *from = cursor_text(NULL), *found = NULL;
    for (bool first = true; from; first = false) {
        PyObject *next = NULL;
        const char *text = PyUnicode_AsUTF8AndSize(from, NULL);
        if (!text || (!first && !*text)) {
            break;
        }
        found = look_in_page(s, id, first ? NULL : text, &next);
        Py_DECREF(from);
        from = next;
        if (found != Py_None) {
            break;
        }
        Py_CLEAR(found);
    }
    Py_XDECREF(from);
    if (!found && !PyErr_Occurred()) {
        core_raise_usage("after: the list has no job with the id \"%s\"", id);
    }
    return found;
}

static PyObject *cursor_of(const source *s, const char *id)
{
    PyObject *key = place_key(s, id);
    PyObject *known =
        key && s->queue->places ? PyDict_GetItemWithError(s->queue->places, key) : NULL;
    Py_XDECREF(key);
    if (known || PyErr_Occurred()) {
        return known ? Py_NewRef(known) : NULL;
    }
    return walk_to(s, id);
}

static PyObject *make_page(const source *s, size_t limit, const char *cursor)
{
    jobq_list *list = fetch(s, limit, cursor);
    PyObject *page = list ? PyList_New(0) : NULL;
    for (size_t i = 0; page && i < jobq_list_count(list); i++) {
        PyObject *info = core_info_make(s->queue->state, jobq_list_get(list, i));
        if (!info || PyList_Append(page, info) < 0) {
            Py_CLEAR(page);
        }
        Py_XDECREF(info);
    }
    if (page && !remember(s, list)) {
        Py_CLEAR(page);
    }
    jobq_list_free(list);
    return page;
}

static PyObject *page_of(const source *s, long long limit, const char *after)
{
    if (limit < 1 || limit > 1000) {
        return core_raise_usage("limit must be between 1 and 1000, %lld given", limit);
    }
    if (!after) {
        return make_page(s, (size_t)limit, NULL);
    }
    PyObject *cursor = cursor_of(s, after), *page = NULL;
    const char *text = cursor ? PyUnicode_AsUTF8AndSize(cursor, NULL) : NULL;
    if (text) { /* empty: all of them have left meanwhile */
        page = *text ? make_page(s, (size_t)limit, text) : PyList_New(0);
    }
    Py_XDECREF(cursor);
    return page;
}

PyObject *core_queue_jobs(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", "state", "limit", "after", NULL};
    core_word queue = {.name = "queue"}, state = {.name = "state"};
    core_word after = {.name = "after", .optional = true};
    core_whole limit = {"limit", 50};
    source s = {.queue = self};
    if (!core_queue_is_made(self) ||
        !PyArg_ParseTupleAndKeywords(args, named, "O&O&|O&O&:jobs", keys, core_word_read, &queue,
                                     core_word_read, &state, core_whole_read, &limit,
                                     core_word_read, &after)) {
        return NULL;
    }
    s.name = queue.p;
    s.name_n = queue.n;
    if (jobq_state_parse(state.p, &s.state) < 0) {
        return core_raise_last(self->state);
    }
    return page_of(&s, limit.is, after.p);
}

/* ---- filters --------------------------------------------------------------------------------- */

static bool read_age(PyObject *older_than, jobq_filter *filter)
{
    filter->size = sizeof(*filter);
    return older_than == Py_None || core_seconds(older_than, "older_than", &filter->older_than_ms);
}

typedef struct {
    core_word queue, name, reason;
} filter_words;

#define FILTER_WORDS                                                             \
    {                                                                            \
        {.name = "queue", .optional = true}, {.name = "name", .optional = true}, \
            {.name = "reason", .optional = true},                                \
    }

static void take_words(const filter_words *words, jobq_filter *filter)
{
    filter->queue = words->queue.p;
    filter->name = words->name.p;
    filter->reason = words->reason.p;
}

static bool read_filter(const filter_words *words, PyObject *older_than, jobq_filter *filter)
{
    take_words(words, filter);
    return read_age(older_than, filter);
}

PyObject *core_queue_dead(core_queue *self, PyObject *args, PyObject *named)
{
    static char *keys[] = {"queue", "name", "reason", "older_than", "limit", "after", NULL};
    filter_words words = FILTER_WORDS;
    core_word after = {.name = "after", .optional = true};
    PyObject *older_than = Py_None;
    core_whole limit = {"limit", 50};
    source s = {.queue = self};
    if (!core_queue_is_made(self) ||
        !PyArg_ParseTupleAndKeywords(args, named, "|O&O&O&OO&O&:dead", keys, core_word_read,
                                     &words.queue, core_word_read, &words.name, core_word_read,
                                     &words.reason, &older_than, core_whole_read, &limit,
                                     core_word_read, &after) ||
        !read_filter(&words, older_than, &s.filter)) {
        return NULL;
    }
    return page_of(&s, limit.is, after.p);
}

/* ---- retry, forget --------------------------------------------------------------------------- */

typedef struct {
    core_queue *queue;
    int what;
    jobq_filter filter;
    PyObject *older_than;
    core_names ids;
    int *results;
    core_flag all, dry_run;
    bool by_ids;
} mend;

/* The known ones are done by now; the others are named. */
static PyObject *raise_left_over(const mend *m)
{
    PyObject *list = PyList_New(0), *message = NULL;
    const char *first = NULL;
    int why = 0;
    for (size_t i = 0; list && i < m->ids.count; i++) {
        if (m->results[i] >= 0) {
            continue;
        }
        why = first ? why : m->results[i];
        first = first ? first : m->ids.names[i];
        if (PyList_Append(list, PyList_GetItem(m->ids.list, (Py_ssize_t)i)) < 0) {
            Py_CLEAR(list);
        }
    }
    if (list && first) {
        message = PyUnicode_FromFormat("%s \"%s\"%s",
                                       why == JOBQ_EEXISTS
                                           ? "another job holds the unique key of dead job"
                                       : why == JOBQ_ELIMIT ? "dead_retention is over of dead job"
                                                            : "no dead job has the id",
                                       first, PyList_Size(list) > 1 ? " (and others)" : "");
        if (message) {
            core_raise_not_found(m->queue->state, list, message);
        }
    }
    Py_XDECREF(message);
    Py_XDECREF(list);
    return NULL;
}

static PyObject *mend_ids(mend *m)
{
    int64_t done = 0;
    m->results = PyMem_Calloc(m->ids.count, sizeof(*m->results));
    if (!m->results) {
        return PyErr_NoMemory();
    }
    CORE_CALL(m->queue, done,
              jobq_queue_mend_ids(m->queue->queue, m->what, m->ids.names, m->ids.count,
                                  m->dry_run.is, m->results));
    if (!PyErr_Occurred() && done < 0) {
        core_raise_last(m->queue->state);
    } else if (!PyErr_Occurred()) {
        raise_left_over(m);
    }
    PyMem_Free(m->results);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(done);
}

static bool has_filter(const mend *m)
{
    return m->filter.queue || m->filter.name || m->filter.reason || m->older_than != Py_None;
}

static PyObject *mend_filtered(mend *m)
{
    int64_t done = 0;
    if (!m->all.is && !has_filter(m)) {
        return core_raise_usage(
            "give ids, a filter (queue, name, reason, older_than), or all=True");
    }
    if (!read_age(m->older_than, &m->filter)) {
        return NULL;
    }
    CORE_CALL(
        m->queue, done,
        jobq_queue_mend(m->queue->queue, m->what, &m->filter, m->dry_run.is, NULL, NULL, NULL));
    if (!PyErr_Occurred() && done < 0) {
        core_raise_last(m->queue->state);
    }
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(done);
}

/* One id, or any iterable of them. None: by a filter. */
static bool read_ids(mend *m, PyObject *ids)
{
    PyObject *list = NULL;
    m->by_ids = ids && ids != Py_None;
    if (!m->by_ids) {
        return true;
    }
    if (PyUnicode_Check(ids)) {
        list = PyList_New(0);
        if (!list || PyList_Append(list, ids) < 0) {
            Py_XDECREF(list);
            return false;
        }
        ids = list;
    }
    const bool done = core_names_read(&m->ids, ids, "ids");
    Py_XDECREF(list);
    return done;
}

static PyObject *mend_any(mend *m, PyObject *args, PyObject *named)
{
    static char *keys[] = {"ids", "queue", "name", "reason", "older_than", "all", "dry_run", NULL};
    filter_words words = FILTER_WORDS;
    PyObject *ids = NULL, *done = NULL;
    m->older_than = Py_None;
    m->all.name = "all";
    m->dry_run.name = "dry_run";
    if (!core_queue_is_made(m->queue) ||
        !PyArg_ParseTupleAndKeywords(args, named, "|O$O&O&O&OO&O&", keys, &ids, core_word_read,
                                     &words.queue, core_word_read, &words.name, core_word_read,
                                     &words.reason, &m->older_than, core_flag_read, &m->all,
                                     core_flag_read, &m->dry_run) ||
        !read_ids(m, ids)) {
        return NULL;
    }
    take_words(&words, &m->filter);
    if (!m->by_ids) {
        done = mend_filtered(m);
    } else if (m->ids.count == 0) {
        core_raise_usage("ids: the list is empty; leave it out to go by a filter or all=True");
    } else if (m->all.is || has_filter(m)) {
        core_raise_usage("give either ids or a filter, not both");
    } else {
        done = mend_ids(m);
    }
    core_names_free(&m->ids);
    return done;
}

PyObject *core_queue_retry(core_queue *self, PyObject *args, PyObject *named)
{
    mend m = {.queue = self, .what = JOBQ_DEAD_RETRY};
    return mend_any(&m, args, named);
}

PyObject *core_queue_forget(core_queue *self, PyObject *args, PyObject *named)
{
    mend m = {.queue = self, .what = JOBQ_DEAD_FORGET};
    return mend_any(&m, args, named);
}
