/* SPDX-License-Identifier: MIT
 *
 * Queue::pushMany (rule B3): any iterable, in bounded chunks, each item judged singly. A
 * generator's exception comes up after the items before it are stored.
 */
#include "php_jobqueue.h"

#include <ext/spl/spl_iterators.h>

typedef struct {
    php_jobq_queue *queue;
    jobq_message **messages; /* made as needed, reused from chunk to chunk */
    uint32_t made, used;
    zval names[JOBQ_PUSH_CHUNK]; /* what messages[i] was made from, for listeners */
    struct {
        uint32_t message; /* index, when error is undefined */
        zval error;
    } items[JOBQ_PUSH_CHUNK];
    uint32_t count;
    size_t bytes;
    zval *on_chunk; /* NULL: everything is gathered in `results` */
    zval results;
} bulk;

/* ---- one chunk ------------------------------------------------------------------------------- */

static void add_result(bulk *b, zval *list, uint32_t i)
{
    zval value;
    if (Z_TYPE(b->items[i].error) != IS_UNDEF) {
        ZVAL_COPY_VALUE(&value, &b->items[i].error);
        ZVAL_UNDEF(&b->items[i].error);
    } else if (jobq_message_result(b->messages[b->items[i].message]) < 0) {
        php_jobq_error_make(&value, jobq_message_error(b->messages[b->items[i].message]));
    } else {
        ZVAL_STRING(&value, jobq_message_id(b->messages[b->items[i].message]));
    }
    add_next_index_zval(list, &value);
}

static void forget_chunk(bulk *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        zval_ptr_dtor(&b->items[i].error);
        ZVAL_UNDEF(&b->items[i].error);
    }
    for (uint32_t i = 0; i < b->used; i++) {
        zval_ptr_dtor(&b->names[i]);
        ZVAL_UNDEF(&b->names[i]);
    }
    b->count = b->used = 0;
    b->bytes = 0;
}

static void deliver(bulk *b)
{
    zval fresh;
    zval *list = &b->results;
    if (b->on_chunk) {
        array_init_size(&fresh, b->count);
        list = &fresh;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        add_result(b, list, i);
    }
    for (uint32_t i = 0; i < b->used && !EG(exception); i++) {
        if (jobq_message_result(b->messages[i]) == 0) {
            php_jobq_fire_pushed(b->queue, b->messages[i], &b->names[i]);
        }
    }
    forget_chunk(b);
    if (b->on_chunk) {
        if (!EG(exception)) {
            php_jobq_call(b->on_chunk, 1, &fresh, NULL);
        }
        zval_ptr_dtor(&fresh);
    }
}

static void flush(bulk *b)
{
    if (b->count == 0) {
        return;
    }
    int rc = b->used ? jobq_queue_push_many(b->queue->queue, b->messages, b->used) : 0;
    if (rc == JOBQ_EINVAL && b->used == 1 && jobq_message_result(b->messages[0]) == rc) {
        rc = 0; /* a mistake in the only one (a guard's SQL) is its result, as among many */
    }
    if (rc < 0) {
        php_jobq_throw_last();
        forget_chunk(b);
        return;
    }
    deliver(b);
}

/* ---- one item -------------------------------------------------------------------------------- */

/* ['name', payload, 'queue' => ..., 'context' => ...] */
static zend_result fill_from_array(php_jobq_queue *queue, jobq_message *m, HashTable *item)
{
    zval *name = zend_hash_index_find(item, 0), *payload = zend_hash_index_find(item, 1), *value;
    zend_string *key;
    zend_ulong index;
    if (php_jobq_message_fill(m, name, payload) == FAILURE ||
        php_jobq_extras_begin(queue) == FAILURE) {
        return FAILURE;
    }
    ZEND_HASH_FOREACH_KEY_VAL (item, index, key, value) {
        ZVAL_DEREF(value);
        if (key ? php_jobq_message_option(queue, m, key, value) == FAILURE : index > 1) {
            if (!EG(exception)) {
                php_jobq_throw_usage("a job to push is [name, payload, option: value ...]; nothing "
                                     "is known of element " ZEND_LONG_FMT,
                                     (zend_long)index);
            }
            return FAILURE;
        }
    }
    ZEND_HASH_FOREACH_END();
    return php_jobq_extras_end(queue, m);
}

static zend_result fill_item(php_jobq_queue *queue, jobq_message *m, zval *item)
{
    if (Z_TYPE_P(item) == IS_ARRAY) {
        return fill_from_array(queue, m, Z_ARRVAL_P(item));
    }
    return php_jobq_message_fill(m, item, NULL);
}

/* What is no job at all is a mistake in the program, not of one item. */
static bool is_job(zval *item)
{
    if (Z_TYPE_P(item) == IS_OBJECT) {
        return php_jobq_as_job_of(Z_OBJCE_P(item)) != NULL;
    }
    if (Z_TYPE_P(item) == IS_STRING ||
        (Z_TYPE_P(item) == IS_ARRAY && zend_hash_index_find(Z_ARRVAL_P(item), 0))) {
        return true;
    }
    php_jobq_throw_type("a job to push is [name, payload, option: value ...] or a job object, %s "
                        "given",
                        Z_TYPE_P(item) == IS_ARRAY ? "an array without a name"
                                                   : zend_zval_type_name(item));
    return false;
}

static jobq_message *next_message(bulk *b)
{
    if (b->used == b->made) {
        jobq_message *m = jobq_message_new();
        if (!m) {
            php_jobq_throw_last();
            return NULL;
        }
        b->messages[b->made++] = m;
    }
    jobq_message_reset(b->messages[b->used]);
    return b->messages[b->used];
}

static void add_item(bulk *b, zval *item)
{
    const void *body;
    size_t n = 0;
    ZVAL_DEREF(item);
    jobq_message *m = is_job(item) ? next_message(b) : NULL;
    if (!m) {
        return;
    }
    if (fill_item(b->queue, m, item) == FAILURE) {
        if (zend_is_unwind_exit(EG(exception))) {
            return;
        }
        php_jobq_error_take(&b->items[b->count].error);
    } else {
        zval *name = Z_TYPE_P(item) == IS_ARRAY ? zend_hash_index_find(Z_ARRVAL_P(item), 0) : item;
        ZVAL_COPY_DEREF(&b->names[b->used], name);
        if (jobq_writer_finish(jobq_message_payload(m), &body, &n) < 0) {
            n = 1; /* an untouched writer: nil */
        }
        b->items[b->count].message = b->used++;
    }
    b->count++;
    b->bytes += n;
    if (b->count == JOBQ_PUSH_CHUNK || b->bytes >= JOBQ_PUSH_CHUNK_BYTES) {
        flush(b);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int apply_item(zend_object_iterator *iterator, void *argument)
{
    zval *item = iterator->funcs->get_current_data(iterator);
    if (EG(exception) || !item) {
        return ZEND_HASH_APPLY_STOP;
    }
    add_item(argument, item);
    return EG(exception) ? ZEND_HASH_APPLY_STOP : ZEND_HASH_APPLY_KEEP;
}

static void add_all(bulk *b, zval *jobs)
{
    if (Z_TYPE_P(jobs) == IS_OBJECT) {
        spl_iterator_apply(jobs, apply_item, b);
        return;
    }
    zval *item;
    ZEND_HASH_FOREACH_VAL (Z_ARRVAL_P(jobs), item) {
        add_item(b, item);
        if (EG(exception)) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void finish(bulk *b, zval *out)
{
    zend_object *pending = EG(exception);
    bool unwinding = pending && zend_is_unwind_exit(pending);
    if (!unwinding) {
        EG(exception) = NULL;
        flush(b);
        if (pending && EG(exception)) {
            zend_exception_set_previous(EG(exception), pending);
        } else if (pending) {
            EG(exception) = pending;
        }
    }
    forget_chunk(b);
    for (uint32_t i = 0; i < b->made; i++) {
        jobq_message_free(b->messages[i]);
    }
    ZVAL_COPY_VALUE(out, &b->results);
    efree(b->messages);
    efree(b);
}

ZEND_METHOD(JobQueue_Queue, pushMany)
{
    zval *jobs;
    zend_fcall_info fci = empty_fcall_info;
    zend_fcall_info_cache fcc = empty_fcall_info_cache;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_ITERABLE(jobs)
        Z_PARAM_OPTIONAL
        Z_PARAM_FUNC_OR_NULL(fci, fcc)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    bulk *b = ecalloc(1, sizeof(*b));
    b->queue = queue;
    b->messages = safe_emalloc(JOBQ_PUSH_CHUNK, sizeof(*b->messages), 0);
    b->on_chunk = ZEND_FCI_INITIALIZED(fci) ? &fci.function_name : NULL;
    array_init(&b->results);
    add_all(b, jobs);
    finish(b, return_value);
}
