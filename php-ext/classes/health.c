/* SPDX-License-Identifier: MIT
 *
 * Queue::workers and doctor (rules N4, N5): who works on the store, and what is wrong with it.
 */
#include "php_jobqueue.h"

/* ---- workers --------------------------------------------------------------------------------- */

static void add_text(zval *to, const char *key, const char *text)
{
    if (text) {
        add_assoc_string(to, key, text);
    } else {
        add_assoc_null(to, key);
    }
}

static void add_texts(zval *to, const char *key, const jobq_workers *workers, size_t i,
                      const char *(*next)(const jobq_workers *workers, size_t i, size_t k))
{
    zval list;
    const char *text;
    array_init(&list);
    for (size_t k = 0; (text = next(workers, i, k)); k++) {
        add_next_index_string(&list, text);
    }
    add_assoc_zval(to, key, &list);
}

static void add_time(zval *to, const char *key, int64_t ms)
{
    zval time;
    if (ms <= 0) {
        add_assoc_null(to, key);
        return;
    }
    php_jobq_time_from_ms(&time, ms);
    add_assoc_zval(to, key, &time);
}

static void add_worker(zval *list, const jobq_workers *workers, size_t i)
{
    static const struct {
        const char *key;
        jobq_workers_number_field field;
    } numbers[] = {{"pid", JOBQ_WORKERS_PID},
                   {"processes", JOBQ_WORKERS_PROCESSES},
                   {"running", JOBQ_WORKERS_RUNNING},
                   {"held", JOBQ_WORKERS_HELD}};
    zval one;
    array_init(&one);
    add_text(&one, "id", jobq_workers_text(workers, i, JOBQ_WORKERS_ID));
    add_text(&one, "host", jobq_workers_text(workers, i, JOBQ_WORKERS_HOST));
    add_text(&one, "name", jobq_workers_text(workers, i, JOBQ_WORKERS_LABEL));
    add_texts(&one, "queues", workers, i, jobq_workers_queue);
    add_texts(&one, "names", workers, i, jobq_workers_name);
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        add_assoc_long(&one, numbers[k].key,
                       (zend_long)jobq_workers_number(workers, i, numbers[k].field));
    }
    add_time(&one, "startedAt", jobq_workers_number(workers, i, JOBQ_WORKERS_STARTED_AT_MS));
    add_time(&one, "aliveUntil", jobq_workers_number(workers, i, JOBQ_WORKERS_ALIVE_UNTIL_MS));
    add_assoc_double(&one, "lease",
                     (double)jobq_workers_number(workers, i, JOBQ_WORKERS_LEASE_MS) / 1000.0);
    add_next_index_zval(list, &one);
}

ZEND_METHOD(JobQueue_Queue, workers)
{
    jobq_workers *workers = NULL;
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    if (jobq_queue_workers(queue->queue, &workers) < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    array_init(return_value);
    for (size_t i = 0; i < jobq_workers_count(workers); i++) {
        add_worker(return_value, workers, i);
    }
    jobq_workers_free(workers);
}

/* ---- doctor ---------------------------------------------------------------------------------- */

typedef struct {
    zval *list;
    bool broken; /* the memory ended */
} findings;

static void add_finding(zval *list, const jobq_finding *finding)
{
    static const char *const grades[] = {"ok", "note", "problem"};
    zval one;
    array_init(&one);
    add_assoc_string(&one, "grade", grades[finding->grade]);
    add_assoc_string(&one, "check", finding->check);
    add_assoc_string(&one, "text", finding->text);
    add_text(&one, "advice", finding->advice);
    add_next_index_zval(list, &one);
}

/* A fatal error waits until the library has returned: unwinding must not cross its frames. */
static void take_finding(void *payload, const jobq_finding *finding)
{
    findings *f = payload;
    if (f->broken) {
        return;
    }
    zend_try
    {
        add_finding(f->list, finding);
    }
    zend_catch
    {
        f->broken = true;
    }
    zend_end_try();
}

/* A store that cannot be used is one of the findings. */
ZEND_METHOD(JobQueue_Queue, doctor)
{
    findings f = {.list = return_value};
    bool audit = false;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        PHP_JOBQ_PARAM_FLAG(audit)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        RETURN_THROWS();
    }
    array_init(return_value);
    int64_t problems = jobq_queue_doctor(queue->queue, take_finding, &f);
    if (problems >= 0 && audit && !f.broken) {
        problems = jobq_queue_audit(queue->queue, take_finding, NULL, &f);
    }
    if (f.broken) {
        zend_bailout();
    }
    if (problems < 0 && zend_hash_num_elements(Z_ARRVAL_P(return_value)) == 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
}
