/* SPDX-License-Identifier: MIT
 *
 * Queue::jobs and dead, which list, and retry, forget and flush, which mend dead jobs (rule F4).
 */
#include "php_jobqueue.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/* One list of the store, to be read page by page. */
typedef struct {
    php_jobq_queue *queue;
    const char *name; /* NULL: dead jobs by filter */
    size_t name_n;
    jobq_state state;
    jobq_filter filter;
} source;

static zend_result fetch(const source *s, size_t limit, const char *after, jobq_list **out)
{
    int rc = s->name
                 ? jobq_queue_jobs(s->queue->queue, s->name, s->name_n, s->state, limit, after, out)
                 : jobq_queue_dead(s->queue->queue, &s->filter, limit, after, out);
    if (rc < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

static zend_string *place_key(const source *s, const char *id)
{
    return strpprintf(0, "%d %s", s->name ? (int)s->state : JOBQ_STATES, id);
}

static void forget_oldest(HashTable *places)
{
    zend_string *oldest;
    ZEND_HASH_FOREACH_STR_KEY(places, oldest)
    {
        zend_hash_del(places, oldest);
        break;
    }
    ZEND_HASH_FOREACH_END();
}

/* The store pages by cursors, PHP by the last id seen: what the two have to do with each other is
 * kept for the pages given out lately, for a job may have left the list by the next call. */
static void remember(const source *s, const jobq_list *list)
{
    enum { PLACES = 256 };
    const char *last = jobq_list_last(list), *id;
    zval *places = &s->queue->places, value;
    if (!last) {
        return;
    }
    if (Z_TYPE_P(places) != IS_ARRAY) {
        array_init(places);
    }
    id = jobq_info_text(jobq_list_get(list, jobq_list_count(list) - 1), JOBQ_INFO_ID, NULL);
    zend_string *key = place_key(s, id ? id : "");
    ZVAL_STRING(&value, last);
    zend_hash_del(Z_ARRVAL_P(places), key); /* it is the newest again */
    if (zend_hash_num_elements(Z_ARRVAL_P(places)) >= PLACES) {
        forget_oldest(Z_ARRVAL_P(places));
    }
    zend_hash_add_new(Z_ARRVAL_P(places), key, &value);
    zend_string_release(key);
}

/* Where that id stands in the page; -1: nowhere. */
static zend_long position(const jobq_list *list, const char *id)
{
    for (size_t i = 0; i < jobq_list_count(list); i++) {
        const char *other = jobq_info_text(jobq_list_get(list, i), JOBQ_INFO_ID, NULL);
        if (other && strcmp(other, id) == 0) {
            return (zend_long)i;
        }
    }
    return -1;
}

static zend_string *text_of(const char *cursor)
{
    return cursor ? zend_string_init(cursor, strlen(cursor), 0) : ZSTR_EMPTY_ALLOC();
}

/* An id that no page of ours ended with: walk there. The cursor behind it, or NULL: thrown. */
static zend_string *walk_to(const source *s, const char *id)
{
    enum { PAGE = 1000 };
    zend_string *cursor = NULL, *found = NULL;
    do {
        jobq_list *list = NULL;
        if (fetch(s, PAGE, cursor ? ZSTR_VAL(cursor) : NULL, &list) == FAILURE) {
            break;
        }
        zend_long at = position(list, id);
        zend_string *next = text_of(jobq_list_next(list));
        jobq_list_free(list);
        if (at >= 0 &&
            fetch(s, (size_t)at + 1, cursor ? ZSTR_VAL(cursor) : NULL, &list) == SUCCESS) {
            found = text_of(jobq_list_last(list));
            jobq_list_free(list);
        }
        if (cursor) {
            zend_string_release(cursor);
        }
        cursor = next;
    } while (!found && !EG(exception) && ZSTR_LEN(cursor) > 0);
    if (cursor) {
        zend_string_release(cursor);
    }
    if (!found && !EG(exception)) {
        php_jobq_throw_usage("after: the list has no job with the id \"%s\"", id);
    }
    return found;
}

static zend_string *cursor_of(const source *s, const char *id)
{
    zval *places = &s->queue->places;
    zend_string *key = place_key(s, id);
    zval *known = Z_TYPE_P(places) == IS_ARRAY ? zend_hash_find(Z_ARRVAL_P(places), key) : NULL;
    zend_string_release(key);
    return known ? zend_string_copy(Z_STR_P(known)) : walk_to(s, id);
}

static void return_page(const source *s, zend_long limit, const char *after, zval *return_value)
{
    jobq_list *list = NULL;
    zend_string *cursor = after ? cursor_of(s, after) : NULL;
    if (EG(exception)) {
        return;
    }
    array_init(return_value);
    if (cursor && ZSTR_LEN(cursor) == 0) {
        return; /* all of them have left meanwhile */
    }
    if (fetch(s, (size_t)limit, cursor ? ZSTR_VAL(cursor) : NULL, &list) == SUCCESS) {
        for (size_t i = 0; i < jobq_list_count(list); i++) {
            zval info;
            php_jobq_job_info_make(&info, jobq_list_get(list, i));
            add_next_index_zval(return_value, &info);
        }
        remember(s, list);
        jobq_list_free(list);
    }
    if (cursor) {
        zend_string_release(cursor);
    }
}

static bool check_limit(zend_long limit)
{
    if (limit < 1 || limit > 1000) {
        php_jobq_throw_usage("limit must be between 1 and 1000, " ZEND_LONG_FMT " given", limit);
        return false;
    }
    return true;
}

ZEND_METHOD(JobQueue_Queue, jobs)
{
    zend_string *name;
    zval *state_object;
    zend_long limit = 50;
    char *after = NULL;
    size_t after_n;
    source s = {0};
    ZEND_PARSE_PARAMETERS_START(2, 4)
        Z_PARAM_STR(name)
        Z_PARAM_OBJECT_OF_CLASS(state_object, php_jobq_ce_state)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(limit)
        Z_PARAM_PATH_OR_NULL(after, after_n)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue || !check_limit(limit)) {
        RETURN_THROWS();
    }
    s.queue = queue;
    s.name = ZSTR_VAL(name);
    s.name_n = ZSTR_LEN(name);
    if (!php_jobq_state_value(Z_OBJ_P(state_object), &s.state)) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    return_page(&s, limit, after, return_value);
}

/* ---- filters --------------------------------------------------------------------------------- */

typedef struct {
    char *queue, *name, *reason;
    double older_than;
    bool no_age;
} filter_arguments;

static zend_result make_filter(const filter_arguments *a, jobq_filter *out)
{
    memset(out, 0, sizeof(*out));
    out->size = sizeof(*out);
    out->queue = a->queue;
    out->name = a->name;
    out->reason = a->reason;
    return a->no_age ? SUCCESS : php_jobq_seconds(a->older_than, "olderThan", &out->older_than_ms);
}

ZEND_METHOD(JobQueue_Queue, dead)
{
    filter_arguments a = {.no_age = true};
    size_t queue_n, name_n, reason_n, after_n;
    zend_long limit = 50;
    char *after = NULL;
    source s = {0};
    ZEND_PARSE_PARAMETERS_START(0, 6)
        Z_PARAM_OPTIONAL
        Z_PARAM_PATH_OR_NULL(a.queue, queue_n)
        Z_PARAM_PATH_OR_NULL(a.name, name_n)
        Z_PARAM_PATH_OR_NULL(a.reason, reason_n)
        Z_PARAM_DOUBLE_OR_NULL(a.older_than, a.no_age)
        Z_PARAM_LONG(limit)
        Z_PARAM_PATH_OR_NULL(after, after_n)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue || !check_limit(limit) || make_filter(&a, &s.filter) == FAILURE) {
        RETURN_THROWS();
    }
    s.queue = queue;
    return_page(&s, limit, after, return_value);
}

/* ---- retry, forget --------------------------------------------------------------------------- */

static zend_result read_ids(HashTable *list, const char **ids)
{
    zval *id;
    size_t i = 0;
    ZEND_HASH_FOREACH_VAL (list, id) {
        ZVAL_DEREF(id);
        if (Z_TYPE_P(id) != IS_STRING) {
            php_jobq_throw_type("ids: a list of strings is expected, %s in it",
                                zend_zval_type_name(id));
            return FAILURE;
        }
        ids[i++] = Z_STRVAL_P(id);
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

/* Ids of that result, the first of them in *first_out. */
static uint32_t left_over(const char *const *ids, size_t n, const int *results, int result,
                          zval *list, const char **first_out)
{
    array_init(list);
    for (size_t i = 0; i < n; i++) {
        if (results[i] == result) {
            *first_out = *first_out ? *first_out : ids[i];
            add_next_index_string(list, ids[i]);
        }
    }
    return zend_hash_num_elements(Z_ARRVAL_P(list));
}

static void throw_skipped(php_jobq_queue *queue, const char *id, uint32_t count)
{
    char holder[129] = "";
    jobq_queue_key_holder(queue->queue, id, strlen(id), holder);
    php_jobq_throw_duplicate(holder, "job \"%s\" skipped: its unique key is held by %s%s%s%s", id,
                             *holder ? "job \"" : "another job", holder, *holder ? "\"" : "",
                             count > 1 ? " (and others)" : "");
}

/* The known ones are done by now; the others are named (rules B6, F4). */
static void throw_left_over(php_jobq_queue *queue, const char *const *ids, size_t n,
                            const int *results)
{
    zval unknown, held;
    const char *first_unknown = NULL, *first_held = NULL;
    uint32_t unknowns = left_over(ids, n, results, JOBQ_ENOTFOUND, &unknown, &first_unknown);
    uint32_t helds = left_over(ids, n, results, JOBQ_EEXISTS, &held, &first_held);
    if (unknowns > 0) {
        php_jobq_throw_not_found(&unknown, "no dead job has the id \"%s\"%s%s%s%s", first_unknown,
                                 unknowns > 1 ? " (and others)" : "",
                                 helds ? "; skipped, since its unique key is held: \"" : "",
                                 helds ? first_held : "", helds ? "\"" : "");
    } else if (helds > 0) {
        throw_skipped(queue, first_held, helds);
    }
    zval_ptr_dtor(&unknown);
    zval_ptr_dtor(&held);
}

static void mend_ids(php_jobq_queue *queue, int what, HashTable *list, bool dry_run,
                     zval *return_value)
{
    size_t n = zend_hash_num_elements(list);
    const char **ids = safe_emalloc(n, sizeof(*ids), 0);
    int *results = safe_emalloc(n, sizeof(*results), 0);
    if (read_ids(list, ids) == SUCCESS) {
        int64_t done = jobq_queue_mend_ids(queue->queue, what, ids, n, dry_run, results);
        if (done < 0) {
            php_jobq_throw_last();
        } else {
            RETVAL_LONG((zend_long)done);
            throw_left_over(queue, ids, n, results);
        }
    }
    efree(ids);
    efree(results);
}

static void mend_filtered(php_jobq_queue *queue, int what, const filter_arguments *a, bool all,
                          bool dry_run, zval *return_value)
{
    jobq_filter filter;
    if (make_filter(a, &filter) == FAILURE) {
        return;
    }
    if (!all && !a->queue && !a->name && !a->reason && a->no_age) {
        php_jobq_throw_usage("give ids, a filter (queue, name, reason, olderThan), or all: true");
        return;
    }
    int64_t done = jobq_queue_mend(queue->queue, what, &filter, dry_run, NULL, NULL, NULL);
    if (done < 0) {
        php_jobq_throw_last();
        return;
    }
    RETVAL_LONG((zend_long)done);
}

static void mend(INTERNAL_FUNCTION_PARAMETERS, int what, bool all)
{
    filter_arguments a = {.no_age = true};
    size_t queue_n, name_n, reason_n;
    HashTable *list = NULL;
    zend_string *one = NULL;
    bool given_all = false, dry_run = false;
    ZEND_PARSE_PARAMETERS_START(0, 7)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT_OR_STR_OR_NULL(list, one)
        Z_PARAM_PATH_OR_NULL(a.queue, queue_n)
        Z_PARAM_PATH_OR_NULL(a.name, name_n)
        Z_PARAM_PATH_OR_NULL(a.reason, reason_n)
        Z_PARAM_DOUBLE_OR_NULL(a.older_than, a.no_age)
        PHP_JOBQ_PARAM_FLAG(given_all)
        PHP_JOBQ_PARAM_FLAG(dry_run)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    zval single;
    if (!queue) {
        RETURN_THROWS();
    }
    ZVAL_UNDEF(&single);
    if (one) {
        array_init(&single);
        add_next_index_str(&single, zend_string_copy(one));
        list = Z_ARRVAL(single);
    }
    bool by_id = list != NULL;
    if (by_id && zend_hash_num_elements(list) == 0) {
        php_jobq_throw_usage("ids: the list is empty; leave it out to go by a filter or all: true");
    } else if (by_id && (given_all || a.queue || a.name || a.reason || !a.no_age)) {
        php_jobq_throw_usage("give either ids or a filter, not both");
    } else if (by_id) {
        mend_ids(queue, what, list, dry_run, return_value);
    } else {
        mend_filtered(queue, what, &a, all || given_all, dry_run, return_value);
    }
    zval_ptr_dtor(&single);
}

ZEND_METHOD(JobQueue_Queue, retry)
{
    mend(INTERNAL_FUNCTION_PARAM_PASSTHRU, JOBQ_DEAD_RETRY, false);
}

ZEND_METHOD(JobQueue_Queue, forget)
{
    mend(INTERNAL_FUNCTION_PARAM_PASSTHRU, JOBQ_DEAD_FORGET, false);
}

/* All that the filter lets through; without one, all. */
ZEND_METHOD(JobQueue_Queue, flush)
{
    mend(INTERNAL_FUNCTION_PARAM_PASSTHRU, JOBQ_DEAD_FORGET, true);
}
