/* SPDX-License-Identifier: MIT
 *
 * A dead job's failed hook (rule F6): one line to PHP's error log, the event job.failed, then the
 * handler's own hook: its option `failed`, or the method failed() of its class. The hook is an
 * attempt of its own, with the dead job's time limit; when it throws it is tried again, and line
 * and event are not repeated for that.
 */
#include "php_jobqueue.h"

enum { CRASHES = 2 }; /* tries after which the payload is suspected */

typedef struct {
    php_jobq_attempt attempt; /* first: the guarded steps take it for one */
    const jobq_info *dead;
    zval info, exception; /* what a hook is given */
    zval callable;
} hook;

/* ---- what it is given ------------------------------------------------------------------------ */

static void make_values(void *argument)
{
    hook *h = argument;
    if (jobq_job_get(h->attempt.job, JOBQ_JOB_CRASHES) < CRASHES) {
        php_jobq_job_info_make(&h->info, h->dead);
    } else { /* the last try: it may have been the payload that ended the process each time */
        php_jobq_job_info_make_bare(&h->info, h->dead);
    }
    php_jobq_recorded_make(&h->exception, h->dead);
}

static void release_values(void *argument)
{
    hook *h = argument;
    zval *values[] = {&h->callable, &h->info, &h->exception};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        zval_ptr_dtor(values[i]);
        ZVAL_UNDEF(values[i]);
    }
}

/* ---- the line and the event ------------------------------------------------------------------ */

static void log_death(const jobq_info *dead)
{
    const char *message = NULL;
    jobq_info_error(dead, NULL, &message, NULL, NULL);
    php_jobq_report("Queue job %s %s failed permanently: %.2000s",
                    jobq_info_text(dead, JOBQ_INFO_NAME, NULL),
                    jobq_info_text(dead, JOBQ_INFO_ID, NULL),
                    message && *message ? message : jobq_info_text(dead, JOBQ_INFO_REASON, NULL));
}

static bool fire(hook *h)
{
    php_jobq_worker *worker = h->attempt.worker;
    size_t queue_n;
    int status = 0;
    const char *queue = jobq_info_text(h->dead, JOBQ_INFO_QUEUE, &queue_n);
    const char *connection =
        jobq_queue_connection(php_jobq_queue_from(Z_OBJ(worker->queue))->queue);
    zval data;
    if (!php_jobq_listeners(&worker->listeners, ZEND_STRL("job.failed"))) {
        return true;
    }
    array_init_size(&data, 4);
    add_assoc_string(&data, "id", jobq_info_text(h->dead, JOBQ_INFO_ID, NULL));
    add_assoc_string(&data, "reason", jobq_info_text(h->dead, JOBQ_INFO_REASON, NULL));
    Z_TRY_ADDREF(h->info);
    add_assoc_zval(&data, "info", &h->info);
    Z_TRY_ADDREF(h->exception);
    add_assoc_zval(&data, "exception", &h->exception);
    php_jobq_outcome outcome = php_jobq_fire(&worker->listeners, "job.failed", NULL, queue, queue_n,
                                             connection, &data, false, &status);
    zval_ptr_dtor(&data);
    return php_jobq_attempt_conclude(&h->attempt, outcome, status);
}

/* ---- the hook -------------------------------------------------------------------------------- */

static bool has_failed(zend_class_entry *ce)
{
    const zend_function *method =
        ce ? zend_hash_str_find_ptr(&ce->function_table, ZEND_STRL("failed")) : NULL;
    return method && (method->common.fn_flags & ZEND_ACC_PUBLIC) &&
           !(method->common.fn_flags & ZEND_ACC_ABSTRACT);
}

static void call_method_failed(hook *h, zval *object)
{
    array_init_size(&h->callable, 2);
    Z_ADDREF_P(object);
    add_next_index_zval(&h->callable, object);
    add_next_index_string(&h->callable, "failed");
}

/* The object whose method a callable is, NULL: it is none's. */
static zval *object_of(zval *callable)
{
    if (Z_TYPE_P(callable) == IS_ARRAY) {
        zval *first = zend_hash_index_find(Z_ARRVAL_P(callable), 0);
        return first && Z_TYPE_P(first) == IS_OBJECT ? first : NULL;
    }
    return Z_TYPE_P(callable) == IS_OBJECT ? callable : NULL;
}

/* A class's object is made only where it is needed; a container knows names that are no classes. */
static bool needs_building(const php_jobq_attempt *a)
{
    if (a->as_job) {
        return has_failed(a->as_job);
    }
    if (Z_TYPE(a->spec) != IS_STRING || zend_is_callable((zval *)&a->spec, 0, NULL)) {
        return false;
    }
    zend_class_entry *ce = zend_lookup_class(Z_STR(a->spec));
    return !EG(exception) && (!ce || has_failed(ce));
}

/* A job object comes from its payload; one that is gone or does not fit makes none. */
static bool decode(hook *h)
{
    php_jobq_attempt *a = &h->attempt;
    size_t n;
    int format;
    const void *body = jobq_info_body(h->dead, &n, &format);
    if (!a->as_job) {
        return true;
    }
    if (jobq_info_check(h->dead) < 0 || php_jobq_decode(format, body, n, false, &a->payload) < 0) {
        php_jobq_report("jobqueue: %s::failed() is not called: %s", ZSTR_VAL(a->as_job->name),
                        jobq_error_message(jobq_error_last()));
        return false;
    }
    return true;
}

static void build(hook *h)
{
    php_jobq_attempt *a = &h->attempt;
    if (!decode(h)) {
        return;
    }
    if (php_jobq_handler_build(a) == FAILURE) {
        if (a->misfit) {
            a->misfit = false;
            php_jobq_report_exception("a failed() method is not called: rebuilding its job");
        }
        return;
    }
    zval *object = object_of(&a->handler);
    if (object && has_failed(Z_OBJCE_P(object))) {
        call_method_failed(h, object);
    }
}

static void find_hook(hook *h)
{
    php_jobq_attempt *a = &h->attempt;
    int index = jobq_worker_find(a->worker->worker, a->job);
    zval *object = object_of(&a->spec);
    if (index >= 0 && (uint32_t)index < a->worker->handler_count &&
        Z_TYPE(a->worker->handlers[index].failed) != IS_UNDEF) {
        ZVAL_COPY(&h->callable, &a->worker->handlers[index].failed);
    } else if (object && has_failed(Z_OBJCE_P(object))) {
        call_method_failed(h, object);
    } else if (needs_building(a)) {
        build(h);
    }
}

static void run_body(void *argument)
{
    hook *h = argument;
    zval arguments[2];
    find_hook(h);
    if (EG(exception) || Z_TYPE(h->callable) == IS_UNDEF) {
        return;
    }
    ZVAL_COPY_VALUE(&arguments[0], &h->info);
    ZVAL_COPY_VALUE(&arguments[1], &h->exception);
    php_jobq_call(&h->callable, 2, arguments, NULL);
}

static void find_body(void *argument)
{
    hook *h = argument;
    php_jobq_handler_find(&h->attempt);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool guarded(hook *h, void (*body)(void *argument))
{
    int status = 0;
    php_jobq_outcome outcome = php_jobq_guard(body, h, &status);
    return php_jobq_attempt_conclude(&h->attempt, outcome, status);
}

/* The first try, or the one before took its process with it: nobody may have heard of the death. */
static bool is_news(const jobq_job *job)
{
    return jobq_job_get(job, JOBQ_JOB_FAILURES) == 0;
}

/* An interrupt that a listener has swallowed ends it all the same. */
static bool is_interrupted(php_jobq_attempt *a)
{
    if (a->interrupt == JOBQ_INTERRUPT_NONE) {
        return false;
    }
    a->ending = a->interrupt == JOBQ_INTERRUPT_STOP ? JOBQ_ENDED_STOPPED : JOBQ_ENDED_TIMED_OUT;
    return true;
}

static void run(hook *h)
{
    php_jobq_attempt *a = &h->attempt;
    if (!guarded(h, find_body)) {
        return;
    }
    if (!a->has_handler) {
        a->ending = JOBQ_ENDED_UNKNOWN_NAME;
        return;
    }
    if (is_news(a->job)) {
        log_death(h->dead);
    }
    if (!guarded(h, make_values) || (is_news(a->job) && !fire(h)) || is_interrupted(a)) {
        return;
    }
    guarded(h, run_body);
}

php_jobq_outcome php_jobq_failed_run(php_jobq_worker *worker, jobq_job *job)
{
    hook h = {.dead = jobq_worker_dead(worker->worker)};
    int status = 0;
    php_jobq_attempt_begin(&h.attempt, worker, job);
    run(&h);
    php_jobq_outcome outcome = php_jobq_guard(release_values, &h, &status);
    if (outcome != PHP_JOBQ_RETURNED) {
        php_jobq_attempt_conclude(&h.attempt, outcome, status);
    }
    return php_jobq_attempt_finish(&h.attempt);
}
