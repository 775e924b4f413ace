/* SPDX-License-Identifier: MIT
 *
 * Queue: the object, and what looks at a store or takes from it. Pushing: push.c, push_many.c; dead
 * jobs: dead.c.
 */
#include "php_jobqueue.h"

#include <zend_attributes.h>

#include "queue_arginfo.h"

zend_class_entry *php_jobq_ce_queue;
static zend_object_handlers handlers;

static zend_object *create_queue(zend_class_entry *ce)
{
    php_jobq_queue *queue = zend_object_alloc(sizeof(*queue), ce);
    zend_object_std_init(&queue->std, ce);
    object_properties_init(&queue->std, ce);
    queue->std.handlers = &handlers;
    queue->next = JQG(queues);
    queue->link = &JQG(queues);
    if (queue->next) {
        queue->next->link = &queue->next;
    }
    JQG(queues) = queue;
    return &queue->std;
}

static void free_queue(zend_object *object)
{
    php_jobq_queue *queue = php_jobq_queue_from(object);
    *queue->link = queue->next;
    if (queue->next) {
        queue->next->link = queue->link;
    }
    jobq_message_free(queue->message);
    jobq_conf_free(queue->extras);
    jobq_queue_free(queue->queue);
    zval_ptr_dtor(&queue->listeners);
    zval_ptr_dtor(&queue->places);
    zend_object_std_dtor(object);
}

static HashTable *get_gc(zend_object *object, zval **table, int *n)
{
    *table = &php_jobq_queue_from(object)->listeners;
    *n = 1;
    return NULL;
}

void php_jobq_queues_disconnect(void)
{
    for (php_jobq_queue *queue = JQG(queues); queue; queue = queue->next) {
        if (queue->queue && strcmp(jobq_queue_driver(queue->queue), "memory") != 0) {
            jobq_queue_disconnect(queue->queue);
        }
    }
}

php_jobq_queue *php_jobq_queue_get(zval *object)
{
    php_jobq_queue *queue = php_jobq_queue_from(Z_OBJ_P(object));
    if (UNEXPECTED(!queue->queue)) {
        zend_throw_error(NULL, "the Queue's constructor was not called");
        return NULL;
    }
    return queue;
}

ZEND_METHOD(JobQueue_Queue, __construct)
{
    char *dsn = NULL;
    size_t dsn_n = 0;
    HashTable *options = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_PATH_OR_NULL(dsn, dsn_n)
        Z_PARAM_ARRAY_HT(options)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_from(Z_OBJ_P(ZEND_THIS));
    if (queue->queue) {
        zend_throw_error(NULL, "the Queue is constructed already");
        RETURN_THROWS();
    }
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_CAMEL);
    if (!conf || !(queue->message = queue->message ? queue->message : jobq_message_new())) {
        php_jobq_throw_last();
    } else if (php_jobq_conf_all(conf, options) == SUCCESS &&
               jobq_queue_new(dsn, conf, &queue->queue) < 0) {
        php_jobq_throw_last();
    }
    jobq_conf_free(conf);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static zend_result decode_reserved(jobq_job *job, zval *payload)
{
    size_t n;
    int format;
    const void *body = jobq_job_body(job, &n, &format);
    int rc = php_jobq_decode(format, body, n, false, payload);
    if (rc >= 0) {
        return SUCCESS;
    }
    if (rc == JOBQ_ENOMEM) { /* not the body's fault: the lease gives it back, as after a crash */
        if (!EG(exception)) {
            php_jobq_throw_last();
        }
        jobq_job_free(job);
        return FAILURE;
    }
    /* kept byte for byte as a dead job (rule A7); the caller goes on with the next one */
    const char *text = jobq_error_message(jobq_error_last());
    char copy[1024];
    size_t length = (size_t)snprintf(copy, sizeof(copy), "%s", text);
    php_jobq_fault_text(job, "JobQueue\\PayloadException", copy, MIN(length, sizeof(copy) - 1));
    jobq_job_settle(job, JOBQ_ENDED_UNDECODABLE, -1);
    jobq_job_free(job);
    return FAILURE;
}

static void reserve(php_jobq_queue *queue, zval *self, const php_jobq_names *names,
                    int64_t lease_ms, zval *return_value)
{
    for (;;) {
        jobq_job *job = NULL;
        zval payload;
        int rc = jobq_queue_reserve(queue->queue, names->names, names->count, lease_ms, &job);
        if (rc < 0) {
            php_jobq_throw_last();
            return;
        }
        if (rc == 0) {
            return;
        }
        if (decode_reserved(job, &payload) == SUCCESS) {
            php_jobq_job_make(return_value, job, PHP_JOBQ_RESERVED, &payload);
            ZVAL_COPY(&php_jobq_job_from(Z_OBJ_P(return_value))->queue, self);
            return;
        }
        if (EG(exception)) {
            return;
        }
    }
}

ZEND_METHOD(JobQueue_Queue, reserve)
{
    HashTable *list = (HashTable *)&zend_empty_array;
    zend_string *text = NULL;
    double lease = 30;
    int64_t lease_ms;
    php_jobq_names names;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT_OR_STR(list, text)
        Z_PARAM_DOUBLE(lease)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue || php_jobq_seconds(lease, "lease", &lease_ms) == FAILURE ||
        php_jobq_names_read(&names, list, text) == FAILURE) {
        RETURN_THROWS();
    }
    reserve(queue, ZEND_THIS, &names, lease_ms, return_value);
    php_jobq_names_free(&names);
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool check_minutes(zend_long minutes)
{
    if (minutes < 0 || minutes > 1440) {
        php_jobq_throw_usage("minutes must be between 0 and 1440, " ZEND_LONG_FMT " given",
                             minutes);
        return false;
    }
    return true;
}

static zend_result make_stats(php_jobq_queue *queue, const char *name, size_t n, zend_long minutes,
                              zval *out)
{
    int64_t values[JOBQ_STATS];
    jobq_minute_stats *list = NULL;
    size_t count = 0;
    if (jobq_queue_stats(queue->queue, name, n, values) < 0 ||
        (minutes > 0 && jobq_queue_minutes(queue->queue, name, n, minutes, &list, &count) < 0)) {
        php_jobq_throw_last();
        return FAILURE;
    }
    php_jobq_stats_make(out, name, n, values, list, count);
    jobq_minutes_free(list);
    return SUCCESS;
}

ZEND_METHOD(JobQueue_Queue, stats)
{
    zend_string *name;
    zend_long minutes = 60;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_STR(name)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(minutes)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (queue && check_minutes(minutes)) {
        make_stats(queue, ZSTR_VAL(name), ZSTR_LEN(name), minutes, return_value);
    }
}

/* A list of names (minutes < 0), or name => Stats. */
static void return_queues(php_jobq_queue *queue, zend_long minutes, zval *return_value)
{
    char **names;
    size_t count;
    if (jobq_queue_names(queue->queue, &names, &count) < 0) {
        php_jobq_throw_last();
        return;
    }
    array_init_size(return_value, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        zval value;
        if (minutes < 0) {
            add_next_index_string(return_value, names[i]);
        } else if (make_stats(queue, names[i], strlen(names[i]), minutes, &value) == SUCCESS) {
            zend_symtable_str_update(Z_ARRVAL_P(return_value), names[i], strlen(names[i]), &value);
        } else {
            break;
        }
    }
    jobq_names_free(names, count);
}

ZEND_METHOD(JobQueue_Queue, allStats)
{
    zend_long minutes = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(minutes)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (queue && check_minutes(minutes)) {
        return_queues(queue, minutes, return_value);
    }
}

ZEND_METHOD(JobQueue_Queue, queues)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (queue) {
        return_queues(queue, -1, return_value);
    }
}

static int64_t counter(const void *queue, size_t i, const char **name)
{
    return jobq_queue_counter(queue, i, name);
}

ZEND_METHOD(JobQueue_Queue, counters)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    php_jobq_counters(return_value, counter, queue->queue);
}

ZEND_METHOD(JobQueue_Queue, find)
{
    zend_string *id;
    jobq_info *info = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(id)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    int rc = jobq_queue_find(queue->queue, ZSTR_VAL(id), ZSTR_LEN(id), &info);
    if (rc == JOBQ_ENOTFOUND) {
        RETURN_NULL();
    }
    if (rc < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    php_jobq_job_info_make(return_value, info);
    jobq_info_free(info);
}

/* Signal handlers and time limits of PHP's, which else run between two instructions. */
static void run_interrupts(zend_execute_data *execute_data)
{
    if (!zend_atomic_bool_load_ex(&EG(vm_interrupt))) {
        return;
    }
    zend_atomic_bool_store_ex(&EG(vm_interrupt), false);
    if (zend_atomic_bool_load_ex(&EG(timed_out))) {
        zend_timeout();
    } else if (zend_interrupt_function) {
        zend_interrupt_function(execute_data);
    }
}

/* In steps, since a signal may come just before the wait begins. */
static int wait_for(php_jobq_queue *queue, zend_string *id, int64_t timeout_ms,
                    zend_execute_data *execute_data, jobq_info **info_out)
{
    const double end = php_jobq_now() + (double)timeout_ms / 1000.0;
    for (;;) {
        double left = end - php_jobq_now();
        int64_t step_ms = left <= 0 ? 0 : left > 1 ? 1000 : (int64_t)(left * 1000) + 1;
        int rc = jobq_queue_wait(queue->queue, ZSTR_VAL(id), ZSTR_LEN(id), step_ms, info_out);
        if ((rc != JOBQ_EPENDING || left <= 0) && rc != JOBQ_EINTR) {
            return rc;
        }
        run_interrupts(execute_data);
        if (EG(exception)) {
            return JOBQ_EINTR;
        }
    }
}

static void return_result(const jobq_info *info, zval *return_value)
{
    size_t n;
    int format;
    const char *refusal = NULL;
    const void *body = jobq_info_result(info, &n, &format, &refusal);
    if (refusal) {
        php_jobq_throw_payload(ZSTR_EMPTY_ALLOC(), "the result could not be kept: %s", refusal);
    } else if (body && php_jobq_decode(format, body, n, false, return_value) < 0) {
        php_jobq_throw_last();
    }
}

/* The library knows only the last step of the wait. */
static void name_whole_wait(const zend_string *id, double timeout)
{
    zend_string *message = zend_strpprintf_unchecked(0, "job \"%s\" had not ended after %.3H s",
                                                     ZSTR_VAL(id), timeout);
    zend_update_property_str(zend_ce_exception, EG(exception), ZEND_STRL("message"), message);
    zend_string_release(message);
}

ZEND_METHOD(JobQueue_Queue, wait)
{
    zend_string *id;
    double timeout;
    int64_t timeout_ms;
    jobq_info *info = NULL;
    ZEND_PARSE_PARAMETERS_START(2, 2)
        Z_PARAM_STR(id)
        Z_PARAM_DOUBLE(timeout)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue || php_jobq_seconds(timeout, "timeout", &timeout_ms) == FAILURE) {
        RETURN_THROWS();
    }
    int rc = wait_for(queue, id, timeout_ms, execute_data, &info);
    if (rc < 0 && !EG(exception)) {
        php_jobq_throw_wait(rc, ZSTR_VAL(id), info);
        if (rc == JOBQ_EPENDING) {
            name_whole_wait(id, timeout);
        }
    } else if (rc == 0) {
        return_result(info, return_value);
    }
    jobq_info_free(info);
}

ZEND_METHOD(JobQueue_Queue, capacity)
{
    zend_string *name;
    zend_long capacity;
    ZEND_PARSE_PARAMETERS_START(2, 2)
        Z_PARAM_STR(name)
        Z_PARAM_LONG(capacity)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (queue && jobq_queue_set_capacity(queue->queue, ZSTR_VAL(name), ZSTR_LEN(name),
                                         (int64_t)capacity) < 0) {
        php_jobq_throw_last();
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

ZEND_METHOD(JobQueue_Queue, on)
{
    zend_string *event;
    zend_fcall_info fci;
    zend_fcall_info_cache fcc;
    ZEND_PARSE_PARAMETERS_START(2, 2)
        Z_PARAM_STR(event)
        Z_PARAM_FUNC(fci, fcc)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue || php_jobq_listen(&queue->listeners, event, &fci.function_name, true) == FAILURE) {
        RETURN_THROWS();
    }
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

ZEND_METHOD(JobQueue_Queue, migrate)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (queue && jobq_queue_migrate(queue->queue) < 0) {
        php_jobq_throw_last();
    }
}

ZEND_METHOD(JobQueue_Queue, ping)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    int64_t microseconds = jobq_queue_ping(queue->queue);
    if (microseconds < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    RETURN_DOUBLE((double)microseconds / 1e6);
}

void php_jobq_register_queue(void)
{
    php_jobq_ce_queue = register_class_JobQueue_Queue();
    php_jobq_ce_queue->create_object = create_queue;
    memcpy(&handlers, &std_object_handlers, sizeof(handlers));
    handlers.offset = offsetof(php_jobq_queue, std);
    handlers.free_obj = free_queue;
    handlers.get_gc = get_gc;
    handlers.clone_obj = NULL;
}
