/* SPDX-License-Identifier: MIT
 *
 * One job from hand-out to settle:
 *
 *     decode -> find -> job.processing -> build, middleware, handler -> event of the end ->
 * cleanups
 *            -> free what the handler made -> settle
 *
 * Each step that runs user code stands under php_jobq_guard; conclude() is the only judge of how it
 * went.
 */
#include "php_jobqueue.h"

#include <main/php_output.h>

/* ---- how it ended ---------------------------------------------------------------------------- */

static void end(php_jobq_attempt *a, jobq_ending ending, int64_t delay_ms)
{
    a->ending = ending;
    a->delay_ms = delay_ms;
}

/* Worker and handler option dont_retry, by class name, and the application's NotRetryable. */
static bool is_not_retryable(php_jobq_attempt *a, zend_class_entry *thrown)
{
    const char *name;
    if (instanceof_function(thrown, php_jobq_ce_not_retryable)) {
        return true;
    }
    for (size_t i = 0; (name = jobq_worker_dont_retry(a->worker->worker, a->job, i)); i++) {
        zend_string *text = zend_string_init(name, strlen(name), 0);
        zend_class_entry *ce = zend_lookup_class_ex(text, NULL, ZEND_FETCH_CLASS_NO_AUTOLOAD);
        zend_string_release(text);
        if (ce && instanceof_function(thrown, ce)) {
            return true;
        }
    }
    return false;
}

/* Ours, or wrapped into another by a library in between. */
static bool is_timeout(zend_object *exception)
{
    for (int i = 0; exception && i < 16; i++) {
        zval rv;
        if (exception->ce == php_jobq_ce_timeout) {
            return true;
        }
        zend_class_entry *base = instanceof_function(exception->ce, zend_ce_exception)
                                     ? zend_ce_exception
                                     : zend_ce_error;
        zval *previous =
            zend_read_property_ex(base, exception, ZSTR_KNOWN(ZEND_STR_PREVIOUS), true, &rv);
        exception = Z_TYPE_P(previous) == IS_OBJECT ? Z_OBJ_P(previous) : NULL;
    }
    return false;
}

static int64_t retry_after(zend_object *exception)
{
    zval rv;
    zval *seconds = zend_read_property(php_jobq_ce_retry_after, exception, "seconds",
                                       sizeof("seconds") - 1, true, &rv);
    double value = zval_get_double(seconds);
    return value >= 0 && value < 1e12 ? (int64_t)(value * 1000.0 + 0.5) : -1;
}

static void end_by_exception(php_jobq_attempt *a, zend_object *exception)
{
    if (a->misfit) {
        end(a, JOBQ_ENDED_UNDECODABLE, -1);
    } else if (a->interrupt == JOBQ_INTERRUPT_TIMEOUT && is_timeout(exception)) {
        end(a, JOBQ_ENDED_TIMED_OUT, -1);
    } else if (a->interrupt == JOBQ_INTERRUPT_STOP && exception->ce == php_jobq_ce_stop) {
        end(a, JOBQ_ENDED_STOPPED, -1);
    } else if (is_not_retryable(a, exception->ce)) {
        end(a, JOBQ_ENDED_NOT_RETRYABLE, -1);
    } else if (instanceof_function(exception->ce, php_jobq_ce_retry_after)) {
        end(a, JOBQ_ENDED_FAILED, retry_after(exception));
    } else {
        end(a, JOBQ_ENDED_FAILED, -1);
    }
}

static php_jobq_job *job_of(php_jobq_attempt *a)
{
    return Z_TYPE(a->object) == IS_OBJECT ? php_jobq_job_from(Z_OBJ(a->object)) : NULL;
}

/* release(), fail() and delete() stand, whatever comes after them (rule D3). */
static bool take_decision(php_jobq_attempt *a)
{
    php_jobq_job *job = job_of(a);
    if (!job || !job->decided) {
        return false;
    }
    end(a, job->decision, job->delay_ms);
    a->decided = true;
    return true;
}

static void conclude_throw(php_jobq_attempt *a)
{
    ZVAL_OBJ_COPY(&a->exception, EG(exception));
    if (take_decision(a)) {
        php_jobq_report_exception("the handler, after it had decided the job's end,");
        return;
    }
    php_jobq_fault_set(a->job, EG(exception));
    end_by_exception(a, EG(exception));
    zend_clear_exception();
}

static void conclude_exit(php_jobq_attempt *a, int status)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "the handler called exit(%d)", status);
    a->exited = true;
    a->worker->exit_status = status;
    jobq_worker_retire(a->worker->worker, text, (size_t)n);
    if (!take_decision(a)) {
        php_jobq_fault_text(a->job, NULL, text, (size_t)n);
        end(a, JOBQ_ENDED_EXITED, -1);
    }
}

/* True: go on with the next step. */
static bool conclude(php_jobq_attempt *a, php_jobq_outcome outcome, int status)
{
    switch (outcome) {
    case PHP_JOBQ_RETURNED:
        return true;
    case PHP_JOBQ_THREW:
        conclude_throw(a);
        return false;
    case PHP_JOBQ_EXITED:
        conclude_exit(a, status);
        return false;
    case PHP_JOBQ_FATAL:
        php_jobq_fatal(a->worker);
        return false;
    }
    return false;
}

bool php_jobq_attempt_conclude(php_jobq_attempt *a, php_jobq_outcome outcome, int status)
{
    return conclude(a, outcome, status);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void decode_body(void *argument)
{
    php_jobq_attempt *a = argument;
    size_t n;
    int format;
    const void *body = jobq_job_body(a->job, &n, &format);
    a->decoded = php_jobq_decode(
        format, body, n, jobq_worker_maps_as_objects(a->worker->worker, a->job), &a->payload);
}

/* No user code, but a large payload may exhaust the memory: a crash like any other (rule D5). */
static bool decode(php_jobq_attempt *a)
{
    int status = 0;
    php_jobq_outcome outcome = php_jobq_guard(decode_body, a, &status);
    if (!conclude(a, outcome, status)) {
        return false;
    }
    if (a->decoded >= 0) {
        return true;
    }
    const char *text = jobq_error_message(jobq_error_last());
    char copy[1024]; /* set_error clears the record this text lives in */
    snprintf(copy, sizeof(copy), "%s", text);
    php_jobq_fault_text(a->job, "JobQueue\\PayloadException", copy, strlen(copy));
    end(a, a->decoded == JOBQ_ENOMEM ? JOBQ_ENDED_FAILED : JOBQ_ENDED_UNDECODABLE, -1);
    return false;
}

static void find_body(void *argument)
{
    php_jobq_handler_find(argument);
}

static bool knows_name(php_jobq_worker *worker, jobq_job *job)
{
    size_t n;
    const char *name = jobq_job_name(job, &n);
    for (uint32_t i = 0; i < worker->handler_count; i++) {
        if (zend_string_equals_cstr(worker->handlers[i].name, name, n)) {
            return true;
        }
    }
    return false;
}

static bool find(php_jobq_attempt *a)
{
    int status = 0;
    php_jobq_outcome outcome = php_jobq_guard(find_body, a, &status);
    if (!conclude(a, outcome, status)) {
        return false;
    }
    if (!a->has_handler) {
        end(a,
            knows_name(a->worker, a->job) ? JOBQ_ENDED_UNSUPPORTED_VERSION
                                          : JOBQ_ENDED_UNKNOWN_NAME,
            -1);
    }
    return a->has_handler;
}

static php_jobq_outcome fire(php_jobq_attempt *a, const char *name, zval *data, bool strict,
                             int *status)
{
    size_t n;
    const char *queue = jobq_job_queue(a->job, &n);
    const char *connection =
        jobq_queue_connection(php_jobq_queue_from(Z_OBJ(a->worker->queue))->queue);
    return php_jobq_fire(&a->worker->listeners, name, &a->object, queue, n, connection, data,
                         strict, status);
}

static void handler_body(void *argument)
{
    php_jobq_attempt *a = argument;
    if (php_jobq_handler_build(a) == SUCCESS) {
        php_jobq_handler_run(a);
    }
}

static void run_handler(php_jobq_attempt *a)
{
    int status = 0;
    php_jobq_job_make(&a->object, a->job, PHP_JOBQ_HANDLER, &a->payload);
    Z_TRY_ADDREF(a->payload); /* one for the object, one for the call */
    php_jobq_outcome outcome = fire(a, "job.processing", NULL, true, &status);
    if (!conclude(a, outcome, status)) {
        return;
    }
    outcome = php_jobq_guard(handler_body, a, &status);
    if (conclude(a, outcome, status)) {
        take_decision(a);
    }
}

/* A return or a throw is a decision, too: listeners, cleanups and destructors that call release(),
 * fail() or delete() are told so instead of being passed over (rule D3). */
static void seal(php_jobq_attempt *a)
{
    php_jobq_job *job = job_of(a);
    if (job) {
        job->decided = true;
        job->decision = a->ending;
    }
}

/* Which event tells of the end, and with which data. */
static void fire_end(php_jobq_attempt *a)
{
    zval data;
    const char *name = a->ending == JOBQ_ENDED_RELEASED ? "job.released"
                       : a->ending == JOBQ_ENDED_DONE   ? "job.processed"
                                                        : NULL;
    if (Z_TYPE(a->worker->listeners) != IS_ARRAY) {
        return;
    }
    name = Z_TYPE(a->exception) == IS_OBJECT && !a->decided ? "job.exception" : name;
    if (!name) {
        return;
    }
    array_init(&data);
    if (Z_TYPE(a->exception) == IS_OBJECT) {
        Z_ADDREF(a->exception);
        add_assoc_zval(&data, "exception", &a->exception);
        add_assoc_string(&data, "outcome", jobq_outcome_word(a->ending));
    }
    if (a->ending == JOBQ_ENDED_RELEASED) {
        add_assoc_double(&data, "delay", (double)MAX(a->delay_ms, 0) / 1000.0);
    }
    int status = 0;
    php_jobq_outcome outcome = fire(a, name, &data, false, &status);
    zval_ptr_dtor(&data);
    if (outcome == PHP_JOBQ_FATAL) {
        php_jobq_fatal(a->worker);
    } else if (outcome == PHP_JOBQ_EXITED) {
        a->exited = true;
        a->worker->exit_status = status;
        jobq_worker_retire(a->worker->worker, ZEND_STRL("a listener called exit()"));
    }
}

/* ---- cleanups, freeing ----------------------------------------------------------------------- */

static void cleanup_body(void *argument)
{
    php_jobq_call(argument, 0, NULL, NULL);
}

/* A cleanup that fails is a failure of the job, unless that has ended worse already. */
static void conclude_cleanup(php_jobq_attempt *a, php_jobq_outcome outcome, int status)
{
    if (outcome == PHP_JOBQ_FATAL) {
        php_jobq_fatal(a->worker);
    }
    if (outcome == PHP_JOBQ_THREW) {
        php_jobq_fault_set(a->job, EG(exception));
        php_jobq_report_exception("a deferred cleanup");
    } else {
        char text[64];
        int n = snprintf(text, sizeof(text), "a deferred cleanup called exit(%d)", status);
        php_jobq_fault_text(a->job, NULL, text, (size_t)n);
    }
    a->exited |= outcome == PHP_JOBQ_EXITED;
    a->worker->exit_status = status;
    jobq_worker_retire(a->worker->worker, ZEND_STRL("a deferred cleanup failed"));
    if (a->ending == JOBQ_ENDED_DONE || a->ending == JOBQ_ENDED_RELEASED ||
        a->ending == JOBQ_ENDED_FAILED) {
        end(a, JOBQ_ENDED_CLEANUP_FAILED, -1);
    }
}

/* The last one given runs first; one may give another. */
static void run_cleanups(php_jobq_attempt *a)
{
    php_jobq_job *job = job_of(a);
    while (job && Z_TYPE(job->defers) == IS_ARRAY &&
           zend_hash_num_elements(Z_ARRVAL(job->defers)) > 0) {
        HashTable *list = Z_ARRVAL(job->defers);
        zend_ulong last = list->nNextFreeElement - 1;
        zval cleanup, *found = zend_hash_index_find(list, last);
        int status = 0;
        ZVAL_COPY(&cleanup, found);
        zend_hash_index_del(list, last);
        list->nNextFreeElement = (zend_long)last;
        php_jobq_outcome outcome = php_jobq_guard(cleanup_body, &cleanup, &status);
        if (outcome != PHP_JOBQ_RETURNED) {
            conclude_cleanup(a, outcome, status);
        }
        zval_ptr_dtor(&cleanup);
    }
}

/* Destructors and output callbacks are user code, too. */
static void release_body(void *argument)
{
    php_jobq_attempt *a = argument;
    while (php_output_get_level() > a->output_level && php_output_end() == SUCCESS) {
    }
    zval *values[] = {&a->handler, &a->spec, &a->payload, &a->exception};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        zval value;
        ZVAL_COPY_VALUE(&value, values[i]);
        ZVAL_UNDEF(values[i]);
        zval_ptr_dtor(&value);
    }
}

static void release(php_jobq_attempt *a)
{
    int status = 0;
    php_jobq_outcome outcome = php_jobq_guard(release_body, a, &status);
    if (outcome == PHP_JOBQ_FATAL) {
        php_jobq_fatal(a->worker);
    } else if (outcome == PHP_JOBQ_THREW) {
        php_jobq_report_exception("a destructor");
    } else if (outcome == PHP_JOBQ_EXITED) {
        a->exited = true;
        a->worker->exit_status = status;
        jobq_worker_retire(a->worker->worker, ZEND_STRL("a destructor called exit()"));
    }
}

static void settle(php_jobq_attempt *a)
{
    php_jobq_job *job = job_of(a);
    a->settled = true;
    if (jobq_job_settle(a->job, a->ending, a->delay_ms) < 0) {
        php_jobq_report("jobqueue: job %s could not be settled as %s: %s", jobq_job_id(a->job),
                        jobq_ending_word(a->ending), jobq_error_message(jobq_error_last()));
    }
    if (job) {
        php_jobq_job_detach(job);
    }
    zval_ptr_dtor(&a->object);
}

/* set_time_limit() in a handler must not end the next job (rule D7): its clock runs on. */
static void restore_time_limit(zend_long seconds)
{
    if (EG(timeout_seconds) == seconds) {
        return;
    }
    zend_string *name = ZSTR_INIT_LITERAL("max_execution_time", false);
    zend_string *value = zend_long_to_str(seconds);
    zend_alter_ini_entry(name, value, PHP_INI_USER, PHP_INI_STAGE_RUNTIME);
    zend_string_release(value);
    zend_string_release(name);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void php_jobq_attempt_begin(php_jobq_attempt *a, php_jobq_worker *worker, jobq_job *job)
{
    *a = (php_jobq_attempt){.worker = worker, .job = job, .outer = JQG(attempt)};
    a->output_level = php_output_get_level();
    a->time_limit = EG(timeout_seconds);
    end(a, JOBQ_ENDED_DONE, -1);
    JQG(attempt) = a;
}

php_jobq_outcome php_jobq_attempt_finish(php_jobq_attempt *a)
{
    release(a);
    restore_time_limit(a->time_limit);
    php_jobq_folder_restore(a);
    php_jobq_output_reopen();
    JQG(attempt) = a->outer;
    settle(a);
    fflush(stdout);
    return a->exited ? PHP_JOBQ_EXITED : PHP_JOBQ_RETURNED;
}

php_jobq_outcome php_jobq_attempt_run(php_jobq_worker *worker, jobq_job *job)
{
    php_jobq_attempt a;
    php_jobq_attempt_begin(&a, worker, job);
    if (decode(&a) && find(&a)) {
        run_handler(&a);
        seal(&a);
        fire_end(&a);
        run_cleanups(&a);
    }
    return php_jobq_attempt_finish(&a);
}

void php_jobq_attempt_interrupt(php_jobq_attempt *a)
{
    int kind = a->settled ? JOBQ_INTERRUPT_NONE : jobq_job_interrupted(a->job);
    if (kind != JOBQ_INTERRUPT_NONE) {
        a->interrupt = kind;
        php_jobq_throw_interrupt(kind, a->job);
    }
}
