/* SPDX-License-Identifier: MIT
 *
 * Worker::run and runNext: the step API's loop, what PHP needs round a fork, and how a process
 * ends.
 */
#include "php_jobqueue.h"

#include <SAPI.h>
#include <ext/random/php_random.h>
#include <ext/standard/basic_functions.h>
#include <main/php_output.h>

#include <unistd.h>

/* ---- round the fork -------------------------------------------------------------------------- */

/* Text in output buffers would come out once per process. */
static void before_fork(void *payload)
{
    (void)payload;
    fflush(NULL);
}

static void after_fork_child(void *payload)
{
    uint32_t seed;
    (void)payload;
#if PHP_VERSION_ID < 80400
    RANDOM_G(combined_lcg_seeded) = false;
#endif
    if (php_random_bytes_silent(&seed, sizeof(seed)) == SUCCESS) {
        php_mt_srand(seed);
    }
}

/* In a signal handler: the pointer was taken outside, so no thread-local lookup happens here. */
static void interrupt(void *payload)
{
    zend_atomic_bool_store_ex((zend_atomic_bool *)payload, true);
}

zend_result php_jobq_run_hooks(jobq_worker *worker)
{
    const jobq_worker_hooks hooks = {
        .size = sizeof(hooks),
        .payload = &EG(vm_interrupt),
        .before_fork = before_fork,
        .after_fork_child = after_fork_child,
        .interrupt = interrupt,
    };
    if (jobq_worker_set_hooks(worker, &hooks) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    jobq_worker_set_failed(worker, true);
    return SUCCESS;
}

/* ---- ends ------------------------------------------------------------------------------------ */

ZEND_COLD void php_jobq_fatal(php_jobq_worker *worker)
{
    char text[4096];
    size_t n = php_jobq_last_error(text, sizeof(text));
    worker->muted = true;
    jobq_worker_fatal(worker->worker, text, n);
    JQG(attempt) = NULL;
    if (!worker->child) {
        zend_bailout();
    }
    php_call_shutdown_functions();
    php_jobq_leave(255);
}

static const char *connection_of(php_jobq_worker *worker)
{
    return jobq_queue_connection(php_jobq_queue_from(Z_OBJ(worker->queue))->queue);
}

/* Events without a job. Exit in a listener: true. */
static bool fire(php_jobq_worker *worker, const char *name, zval *data)
{
    int status = 0;
    php_jobq_outcome outcome = php_jobq_fire(&worker->listeners, name, NULL, NULL, 0,
                                             connection_of(worker), data, false, &status);
    if (outcome == PHP_JOBQ_FATAL) {
        php_jobq_fatal(worker);
    }
    return outcome == PHP_JOBQ_EXITED;
}

static void fire_stopping(php_jobq_worker *worker, int code)
{
    zval data;
    const char *reason = jobq_worker_stop_reason(worker->worker);
    if (Z_TYPE(worker->listeners) != IS_ARRAY) {
        return;
    }
    array_init_size(&data, 3);
    add_assoc_string(&data, "reason", reason ? reason : "");
    add_assoc_long(&data, "code", code);
    add_assoc_long(&data, "jobs", (zend_long)jobq_worker_jobs_run(worker->worker));
    fire(worker, "worker.stopping", &data);
    zval_ptr_dtor(&data);
}

/* ---- events decided elsewhere ---------------------------------------------------------------- */

static void event_data(const jobq_event *event, zval *out)
{
    const char *key, *text;
    double number;
    bool is_number;
    array_init(out);
    for (size_t i = 0; jobq_event_data(event, i, &key, &text, &number, &is_number); i++) {
        char spelled[64];
        zval value;
        if (is_number && number == (double)(zend_long)number) {
            ZVAL_LONG(&value, (zend_long)number);
        } else if (is_number) {
            ZVAL_DOUBLE(&value, number);
        } else {
            ZVAL_STRING(&value, text ? text : "");
        }
        zend_hash_str_update(Z_ARRVAL_P(out), spelled,
                             php_jobq_camel(key, spelled, sizeof(spelled)), &value);
    }
}

static void event_job(jobq_job *job, zval *out)
{
    zval payload;
    size_t n;
    int format;
    ZVAL_NULL(out);
    if (job) {
        const void *body = jobq_job_body(job, &n, &format);
        php_jobq_decode(format, body, n, false, &payload); /* unreadable: null */
        php_jobq_job_make(out, job, PHP_JOBQ_EVENT, &payload);
    }
}

static void conclude_event(php_jobq_worker *worker, php_jobq_outcome outcome)
{
    if (outcome == PHP_JOBQ_FATAL) {
        php_jobq_fatal(worker);
    } else if (outcome == PHP_JOBQ_EXITED) {
        jobq_worker_retire(worker->worker, ZEND_STRL("a listener called exit()"));
    }
}

/* A listener of `looping` that returns false wants no job to begin here. */
static void ask_to_loop(php_jobq_worker *worker)
{
    bool vetoed = false;
    int status = 0;
    conclude_event(worker, php_jobq_ask(&worker->listeners, "looping", connection_of(worker),
                                        &vetoed, &status));
    if (vetoed) {
        jobq_worker_veto(worker->worker);
    }
}

static void deliver_event(php_jobq_worker *worker, jobq_event *event)
{
    zval data, object;
    const char *queue, *name = jobq_event_name(event);
    size_t queue_n = 0;
    int status = 0;
    jobq_job *job = jobq_event_job(event);
    if (strcmp(name, "looping") == 0) {
        ask_to_loop(worker);
        return;
    }
    if (!php_jobq_listeners(&worker->listeners, name, strlen(name))) {
        return;
    }
    queue = jobq_event_queue(event, &queue_n);
    event_data(event, &data);
    event_job(job, &object);
    conclude_event(worker, php_jobq_fire(&worker->listeners, name, &object, queue, queue_n,
                                         connection_of(worker), &data, false, &status));
    if (Z_TYPE(object) == IS_OBJECT) {
        php_jobq_job_detach(php_jobq_job_from(Z_OBJ(object)));
    }
    zval_ptr_dtor(&object);
    zval_ptr_dtor(&data);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Negative: the library's error. Inline, exit() in user code ends it: *exited_out. */
static int loop(php_jobq_worker *worker, bool *exited_out, int64_t *jobs_out)
{
    for (;;) {
        jobq_job *job = NULL;
        jobq_event *event = NULL;
        int step = jobq_worker_next(worker->worker, &job, &event);
        if (worker->broken) {
            php_jobq_fatal(worker);
        }
        if (step == JOBQ_STEP_EVENT) {
            deliver_event(worker, event);
            continue;
        }
        if (step != JOBQ_STEP_JOB && step != JOBQ_STEP_HOOK) {
            return step;
        }
        *jobs_out += step == JOBQ_STEP_JOB;
        php_jobq_outcome outcome = step == JOBQ_STEP_JOB ? php_jobq_attempt_run(worker, job)
                                                         : php_jobq_failed_run(worker, job);
        php_jobq_reload_report();
        if (outcome == PHP_JOBQ_EXITED && !worker->child) {
            *exited_out = true;
            return 0;
        }
    }
}

static void live(php_jobq_worker *worker)
{
    bool exited = false;
    int64_t jobs = 0;
    if (fire(worker, "child.started", NULL)) {
        jobq_worker_retire(worker->worker, ZEND_STRL("a listener of child.started called exit()"));
    }
    php_jobq_reload_report();
    loop(worker, &exited, &jobs);
    fire(worker, "child.stopping", NULL);
}

/* exit() in PHP comes back to us. Whoever ends the process past that, as Zend does when the system
 * has no more memory, or a C extension, has no decision of the handler's behind it (rule D5). */
static void left_past_us(int status, void *payload)
{
    const php_jobq_attempt *a = JQG(attempt);
    char text[160];
    (void)payload;
    if (!a || a->settled) {
        return;
    }
    int n = snprintf(text, sizeof(text),
                     "PHP or an extension ended the process with exit(%d), as PHP does when the "
                     "system has no more memory",
                     status);
    jobq_worker_fatal(a->worker->worker, text, (size_t)n);
    _exit(status);
}

/* A fatal error outside of user code, say when memory ends while an event is made, ends the child
 * like one inside: PHP's own shutdown is its master's. */
static ZEND_COLD void live_as_child(php_jobq_worker *worker)
{
    zend_execute_data *frame = EG(current_execute_data);
    worker->child = true;
    on_exit(left_past_us, NULL); /* first of all: what is registered before is the master's */
    php_jobq_end_output();
    zend_try
    {
        live(worker);
    }
    zend_catch
    {
        EG(current_execute_data) = frame;
        php_jobq_fatal(worker);
    }
    zend_end_try();
    php_jobq_end_output();
    jobq_worker_finish(worker->worker);
    php_jobq_leave(0); /* not reached: finish does not return in a child */
}

/* exit(3) in an inline handler: the job is settled, now the process ends as the handler wanted. */
static int rethrow_exit(int status)
{
    EG(exit_status) = status;
    zend_throw_unwind_exit();
    return -1;
}

static int run_inline(php_jobq_worker *worker, bool silent, int64_t *jobs_out)
{
    bool exited = false;
    if (worker->broken) {
        php_jobq_fatal(worker);
    }
    if (!silent || !worker->started) {
        worker->started = true;
        exited = fire(worker, "child.started", NULL);
        worker->exit_status = EG(exit_status);
    }
    php_jobq_reload_report();
    int rc = exited ? 0 : loop(worker, &exited, jobs_out);
    int status = worker->exit_status;
    if (rc < 0) {
        php_jobq_throw_last();
    }
    if (!silent) {
        zend_object *pending = EG(exception);
        EG(exception) = NULL;
        fire(worker, "child.stopping", NULL);
        EG(exception) = pending;
    }
    int code = jobq_worker_finish(worker->worker);
    if (worker->broken) {
        php_jobq_fatal(worker);
    }
    if (EG(exception)) {
        return -1;
    }
    if (code < 0) {
        php_jobq_throw_last();
        return -1;
    }
    return exited ? rethrow_exit(status) : code;
}

/* PHP would end a handler in the middle because nobody reads its output (case B149). */
static bool outlive_output(bool ignore)
{
    bool before = PG(ignore_user_abort);
    PG(ignore_user_abort) = ignore;
    return before;
}

/* ---- entrances ------------------------------------------------------------------------------- */

static bool may_run(void)
{
    if (strcmp(sapi_module.name, "cli") != 0 && strcmp(sapi_module.name, "phpdbg") != 0) {
        php_jobq_throw_unsupported(
            "a worker runs from the command line only, not under the SAPI \"%s\"",
            sapi_module.name);
        return false;
    }
    if (JQG(running)) {
        php_jobq_throw_logic("a worker is running in this process already");
        return false;
    }
    return true;
}

static void flush_output(void)
{
    if (php_output_get_level() > 0) {
        php_output_flush_all();
    }
    sapi_flush();
}

static int run_role(php_jobq_worker *worker, int role, int code)
{
    int64_t jobs = 0;
    switch (role) {
    case JOBQ_ROLE_CHILD:
        live_as_child(worker);
        return 0;
    case JOBQ_ROLE_INLINE:
        return run_inline(worker, false, &jobs);
    case JOBQ_ROLE_MASTER:
        return code;
    default:
        php_jobq_throw_last();
        return -1;
    }
}

/* The output is in place. -1 with an exception pending. */
static int run_with_output(php_jobq_worker *worker, const char *const *queues, size_t count,
                           const jobq_conf *over)
{
    int code = 0, status = EG(exit_status);
    JQG(running) = true;
    if (fire(worker, "worker.starting", NULL)) {
        JQG(running) = false;
        return rethrow_exit(EG(exit_status));
    }
    php_jobq_queues_disconnect();
    int role = jobq_worker_start(worker->worker, queues, count, over, &code);
    code = run_role(worker, role, code);
    JQG(running) = false;
    if (role >= 0 && !EG(exception)) {
        fire_stopping(worker, code);
        EG(exit_status) = status;
    }
    return code;
}

int php_jobq_run(php_jobq_worker *worker, const char *const *queues, size_t count,
                 const jobq_conf *over, zval *output)
{
    if (!may_run()) {
        return -1;
    }
    flush_output();
    if (EG(exception) ||
        php_jobq_output_apply(worker, Z_TYPE_P(output) == IS_UNDEF ? &worker->output : output) ==
            FAILURE) {
        return -1;
    }
    bool ignored = outlive_output(true);
    int code = run_with_output(worker, queues, count, over);
    outlive_output(ignored);
    php_jobq_output_release(worker);
    return code;
}

int php_jobq_run_next(php_jobq_worker *worker, const char *const *queues, size_t count)
{
    int64_t jobs = 0;
    int status = EG(exit_status);
    if (!may_run()) {
        return -1;
    }
    if (jobq_worker_start_one(worker->worker, queues, count) < 0) {
        php_jobq_throw_last();
        return -1;
    }
    JQG(running) = true;
    bool ignored = outlive_output(true);
    int code = run_inline(worker, true, &jobs);
    outlive_output(ignored);
    JQG(running) = false;
    if (code < 0) {
        return -1;
    }
    EG(exit_status) = status;
    return jobs > 0;
}
