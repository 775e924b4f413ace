/* SPDX-License-Identifier: MIT
 *
 * Queue::pause, resume, restartWorkers, cancel and clear (rules L1 to L3), and prune.
 */
#include "php_jobqueue.h"

#include <jobqueue/control.h>

/* ---- pause, resume, restart ------------------------------------------------------------------ */

static void return_nothing(int64_t rc)
{
    if (rc < 0) {
        php_jobq_throw_last();
    }
}

ZEND_METHOD(JobQueue_Queue, pause)
{
    zend_string *name = NULL;
    double ttl = 0;
    int64_t ttl_ms;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR_OR_NULL(name)
        Z_PARAM_DOUBLE(ttl)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue || php_jobq_seconds(ttl, "ttl", &ttl_ms) == FAILURE) {
        RETURN_THROWS();
    }
    return_nothing(jobq_queue_pause(queue->queue, name ? ZSTR_VAL(name) : NULL,
                                    name ? ZSTR_LEN(name) : 0, ttl_ms));
}

ZEND_METHOD(JobQueue_Queue, resume)
{
    zend_string *name = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR_OR_NULL(name)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    return_nothing(
        jobq_queue_resume(queue->queue, name ? ZSTR_VAL(name) : NULL, name ? ZSTR_LEN(name) : 0));
}

ZEND_METHOD(JobQueue_Queue, restartWorkers)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    return_nothing(jobq_queue_restart_workers(queue->queue));
}

/* ---- cancel, clear, prune -------------------------------------------------------------------- */

ZEND_METHOD(JobQueue_Queue, cancel)
{
    zend_string *id;
    bool hard = false;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_STR(id)
        Z_PARAM_OPTIONAL
        PHP_JOBQ_PARAM_FLAG(hard)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    int rc = jobq_queue_cancel(queue->queue, ZSTR_VAL(id), ZSTR_LEN(id), hard);
    if (rc == JOBQ_ENOTFOUND) {
        RETURN_FALSE;
    }
    return_nothing(rc);
    RETURN_TRUE;
}

ZEND_METHOD(JobQueue_Queue, clear)
{
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    int64_t cleared = jobq_queue_clear(queue->queue, ZSTR_VAL(name), ZSTR_LEN(name), NULL, NULL);
    return_nothing(cleared);
    RETURN_LONG((zend_long)cleared);
}

/* Without olderThan no dead job is old enough. */
ZEND_METHOD(JobQueue_Queue, prune)
{
    bool dry_run = false, no_age = true;
    double older_than = 0;
    jobq_filter filter = {.size = sizeof(filter)};
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        PHP_JOBQ_PARAM_FLAG(dry_run)
        Z_PARAM_DOUBLE_OR_NULL(older_than, no_age)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue ||
        (!no_age && php_jobq_seconds(older_than, "olderThan", &filter.older_than_ms) == FAILURE)) {
        RETURN_THROWS();
    }
    int64_t pruned = jobq_queue_prune(queue->queue, no_age ? NULL : &filter, dry_run, NULL, NULL);
    return_nothing(pruned);
    RETURN_LONG((zend_long)pruned);
}
