/* SPDX-License-Identifier: MIT
 *
 * Inline mode: the worker in the calling process (rules D3, D4, E, F3, G3, G8, I1) on the reference
 * store. The clock is moved, never waited for.
 */
#include "harness/harness.h"

#include <jobqueue/jobqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "util/clock.h"

typedef struct {
    jobq_queue *queue;
    jobq_worker *worker;
    jobq_conf *conf;
    char id[64];
} fixture;

static int set_up(void **state)
{
    static fixture f;

    memset(&f, 0, sizeof(f));
    assert_ok(jobq_queue_new("memory:", NULL, &f.queue));
    f.conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    assert_ok(jobq_conf_set(f.conf, "output", "quiet", 5));
    assert_ok(jobq_conf_set(f.conf, "memory", "0", 1));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    jobq_worker_free(f->worker);
    jobq_conf_free(f->conf);
    jobq_queue_free(f->queue);
    return 0;
}

static void option(fixture *f, const char *name, const char *value)
{
    assert_ok(jobq_conf_set(f->conf, name, value, strlen(value)));
}

/* options: "tries=1 delay=5" */
static const char *push(fixture *f, const char *name, const char *options)
{
    jobq_message *m = jobq_message_new();
    char text[128], *rest = text;
    const char *word;

    snprintf(text, sizeof(text), "%s", options);
    assert_ok(jobq_message_set_name(m, name, strlen(name)));
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char *value = strchr(word, '=');

        *value++ = '\0';
        assert_ok(jobq_conf_set(jobq_message_options(m), word, value, strlen(value)));
    }
    assert_ok(jobq_queue_push(f->queue, m));
    snprintf(f->id, sizeof(f->id), "%s", jobq_message_id(m));
    jobq_message_free(m);
    return f->id;
}

static void make_worker(fixture *f, const char *handler)
{
    assert_ok(jobq_worker_new(f->queue, f->conf, &f->worker));
    assert_ok(jobq_worker_handle(f->worker, handler, strlen(handler), 1, NULL));
}

static void start(fixture *f)
{
    int code = -1;

    assert_int_equal(assert_ok(jobq_worker_start(f->worker, NULL, 0, NULL, &code)),
                     JOBQ_ROLE_INLINE);
}

static jobq_job *next_job(fixture *f)
{
    jobq_job *job = NULL;
    jobq_event *event = NULL;

    assert_int_equal(assert_ok(jobq_worker_next(f->worker, &job, &event)), JOBQ_STEP_JOB);
    return job;
}

static int next_step(fixture *f)
{
    jobq_job *job = NULL;
    jobq_event *event = NULL;

    return (int)assert_ok(jobq_worker_next(f->worker, &job, &event));
}

static int64_t stat_of(fixture *f, jobq_stat which)
{
    int64_t values[JOBQ_STATS];

    assert_ok(jobq_queue_stats(f->queue, "default", 7, values));
    return values[which];
}

static const char *reason_of(fixture *f, const char *id)
{
    static char reason[64];
    jobq_info *info = NULL;

    assert_ok(jobq_queue_find(f->queue, id, strlen(id), &info));
    snprintf(reason, sizeof(reason), "%s",
             jobq_info_text(info, JOBQ_INFO_REASON, NULL)
                 ? jobq_info_text(info, JOBQ_INFO_REASON, NULL)
                 : "");
    jobq_info_free(info);
    return reason;
}

static int64_t number_of(fixture *f, const char *id, jobq_info_number_field which)
{
    jobq_info *info = NULL;
    int64_t value;

    assert_ok(jobq_queue_find(f->queue, id, strlen(id), &info));
    value = jobq_info_number(info, which);
    jobq_info_free(info);
    return value;
}

/* Rule D1: the handler returns, the job is gone; rule G3: stop_when_empty. */
static void done_is_gone(void **state)
{
    fixture *f = *state;

    push(f, "a", "");
    push(f, "a", "");
    option(f, "stop_when_empty", "1");
    make_worker(f, "a");
    start(f);
    assert_ok(jobq_job_done(next_job(f)));
    assert_ok(jobq_job_done(next_job(f)));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(stat_of(f, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(jobq_worker_jobs_run(f->worker), 2);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "Nothing left to do");
}

static int64_t counter_of(const fixture *f, const char *wanted)
{
    const char *name = "";
    int64_t n = 0;

    for (size_t i = 0; name && strcmp(name, wanted) != 0; i++)
        n = jobq_worker_counter(f->worker, i, &name);
    return n;
}

/* Rule N2: how old the last job was, by the store's clock. */
static void age_of_the_last_job(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "");
    option(f, "once", "1");
    make_worker(f, "a");
    assert_int_equal(counter_of(f, "last_job_age_ms"), 0);
    jobq__clock_shift(70000, 0);
    start(f);
    job = next_job(f);
    assert_in_range(counter_of(f, "last_job_age_ms"), 70000, 99000);
    assert_ok(jobq_job_done(job));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
}

/* Rules H1, N2: `drain` seconds after the first stop signal. */
static void drain_ends_patience(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "");
    option(f, "drain", "0.5");
    make_worker(f, "a");
    start(f);
    job = next_job(f);
    raise(SIGTERM);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE);
    assert_int_equal(counter_of(f, "drain_expired"), 0);
    jobq__clock_shift(600, 600);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_STOP);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_STOPPED, -1));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(counter_of(f, "drain_expired"), 1);
    assert_int_equal(stat_of(f, JOBQ_STAT_READY), 1);
}

/* Rule H1: the same when the handler asked for the stop itself. */
static void drain_after_own_stop(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "");
    option(f, "drain", "0.5");
    make_worker(f, "a");
    start(f);
    job = next_job(f);
    jobq_worker_stop(f->worker);
    assert_true(jobq_job_is_stopping(job));
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE);
    jobq__clock_shift(600, 600);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_STOP);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_STOPPED, -1));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(counter_of(f, "drain_expired"), 1);
    assert_int_equal(stat_of(f, JOBQ_STAT_READY), 1);
}

static volatile sig_atomic_t interrupts;

static void count_interrupt(void *payload)
{
    (void)payload;
    interrupts++;
}

/* ... and the handler hears of it without asking: the timer's signal comes. */
static void own_stop_starts_the_timer(void **state)
{
    fixture *f = *state;
    jobq_worker_hooks hooks = {.size = sizeof(hooks), .interrupt = count_interrupt};
    jobq_job *job;

    push(f, "a", "");
    option(f, "drain", "0.05");
    make_worker(f, "a");
    assert_ok(jobq_worker_set_hooks(f->worker, &hooks));
    start(f);
    job = next_job(f);
    interrupts = 0;
    jobq_worker_stop(f->worker);
    wait_until(interrupts > 0, 10);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_STOP);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_STOPPED, -1));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
}

/* Rules E1, F2: failures wait, the last one kills. */
static void fails_until_dead(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "tries=2 backoff=10");
    option(f, "once", "1");
    option(f, "jitter", "0");
    make_worker(f, "a");
    start(f);
    job = next_job(f);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), 1);
    jobq_job_set_error(job, "Boom", 4, "no\0pe", 5, "x.php:1", 7, NULL, 0);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_FAILED, -1));
    assert_code(jobq_job_done(job), JOBQ_EINVAL);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(stat_of(f, JOBQ_STAT_DELAYED), 1);
    jobq__clock_shift(11000, 11000);
    start(f);
    job = next_job(f);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), 2);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_FAILED, -1));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(reason_of(f, f->id), "attempts_exhausted");
}

/* Rule D3, case B140: a release costs nothing. */
static void release_is_free(void **state)
{
    fixture *f = *state;

    push(f, "a", "tries=1");
    option(f, "max_jobs", "3");
    make_worker(f, "a");
    start(f);
    assert_ok(jobq_job_release(next_job(f), 0));
    assert_ok(jobq_job_release(next_job(f), 0));
    assert_ok(jobq_job_release(next_job(f), 5000));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(stat_of(f, JOBQ_STAT_DELAYED), 1);
    assert_int_equal(number_of(f, f->id, JOBQ_INFO_RELEASES), 3);
    assert_int_equal(number_of(f, f->id, JOBQ_INFO_FAILURES), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "ran 3 jobs");
}

/* Rule E3. */
static void expired_never_starts(void **state)
{
    fixture *f = *state;
    char id[64];

    snprintf(id, sizeof(id), "%s", push(f, "a", "expires=5"));
    push(f, "a", "expires=5 on_expire=drop");
    jobq__clock_shift(6000, 6000);
    option(f, "stop_when_empty", "1");
    make_worker(f, "a");
    start(f);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(reason_of(f, id), "expired");
    assert_int_equal(stat_of(f, JOBQ_STAT_DEAD), 1);
    assert_int_equal(stat_of(f, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(jobq_worker_jobs_run(f->worker), 0);
}

/* Rule F3, case B059: put aside, and dead after unknown_for; the job behind it runs. */
static void unknown_names_wait(void **state)
{
    fixture *f = *state;
    char id[64];

    snprintf(id, sizeof(id), "%s", push(f, "App\\Jobs\\Gone", ""));
    push(f, "a", "");
    option(f, "stop_when_empty", "1");
    option(f, "unknown_for", "60");
    make_worker(f, "a");
    start(f);
    assert_ok(jobq_job_done(next_job(f)));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(stat_of(f, JOBQ_STAT_DELAYED), 1);
    assert_int_equal(number_of(f, id, JOBQ_INFO_FAILURES), 0);
    jobq__clock_shift(61000, 61000);
    start(f);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(reason_of(f, id), "unknown_name");
}

/* Rule D4 inline: exit() is recorded at shutdown; a fatal error at once, as a crash (D5). */
static void fatal_is_settled_at_once(void **state)
{
    fixture *f = *state;

    push(f, "a", "tries=3");
    make_worker(f, "a");
    start(f);
    next_job(f);
    jobq_worker_fatal(f->worker, "Allowed memory size exhausted", 29);
    assert_int_equal(number_of(f, f->id, JOBQ_INFO_CRASHES), 1);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
}

static void left_without_a_word(void **state)
{
    fixture *f = *state;

    push(f, "a", "tries=1");
    make_worker(f, "a");
    start(f);
    next_job(f);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(reason_of(f, f->id), "attempts_exhausted");
}

static volatile sig_atomic_t interrupts;

static void interrupt(void *payload)
{
    (void)payload;
    interrupts++;
}

static void set_interrupt(fixture *f)
{
    jobq_worker_hooks hooks = {.size = sizeof(hooks), .interrupt = interrupt};

    interrupts = 0;
    assert_ok(jobq_worker_set_hooks(f->worker, &hooks));
}

/* Rule I1 inline: the time limit interrupts and is told once. */
static void time_limit_interrupts(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "timeout=0.05 tries=1");
    option(f, "once", "1");
    make_worker(f, "a");
    set_interrupt(f);
    start(f);
    job = next_job(f);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE);
    wait_until(interrupts > 0, 10);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_TIMEOUT);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_TIMED_OUT, -1));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(reason_of(f, f->id), "timed_out");
}

/* Rule H1: the first TERM lets the job finish, the second ends it; stopped is given back
 * uncounted. */
static void second_term_stops(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "");
    make_worker(f, "a");
    set_interrupt(f);
    start(f);
    job = next_job(f);
    assert_false(jobq_job_is_stopping(job));
    raise(SIGTERM);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE);
    assert_true(jobq_job_is_stopping(job));
    raise(SIGTERM);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_STOP);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_STOPPED, -1));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(stat_of(f, JOBQ_STAT_READY), 1);
    assert_int_equal(number_of(f, f->id, JOBQ_INFO_FAILURES), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "asked to shut down");
}

/* Rule C9: the wait ends at once on a signal. */
static void signal_ends_the_wait(void **state)
{
    fixture *f = *state;
    struct itimerval soon = {.it_value = {0, 50000}};
    int64_t before = jobq__clock_mono_ms();

    option(f, "sleep", "30");
    make_worker(f, "a");
    start(f);
    signal(SIGALRM, SIG_IGN);
    if (fork() == 0) {
        usleep(50000);
        kill(getppid(), SIGTERM);
        _exit(0);
    }
    (void)soon;
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_true(jobq__clock_mono_ms() - before < 5000);
}

/* Rules C11, G8: the lease covers the time limit; past it extend says that it is lost. */
static void lease_covers_the_limit(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "timeout=100");
    option(f, "once", "1");
    option(f, "lease", "2");
    make_worker(f, "a");
    start(f);
    job = next_job(f);
    jobq__clock_shift(90000, 90000);
    assert_ok(jobq_job_extend(job));
    assert_false(jobq_job_is_cancelled(job));
    assert_ok(jobq_job_done(job));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(stat_of(f, JOBQ_STAT_BACKLOG), 0);
}

/* Rule G2: run_next. */
static void one_at_a_time(void **state)
{
    fixture *f = *state;

    push(f, "a", "");
    make_worker(f, "a");
    assert_ok(jobq_worker_start_one(f->worker, NULL, 0));
    assert_ok(jobq_job_done(next_job(f)));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(jobq_worker_jobs_run(f->worker), 1);
    assert_ok(jobq_worker_start_one(f->worker, NULL, 0));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_int_equal(jobq_worker_jobs_run(f->worker), 0);
}

/* Rule M1: what is decided after the handler reaches listeners as events of their own. */
static void events_arrive(void **state)
{
    fixture *f = *state;
    jobq_job *job = NULL;
    jobq_event *event = NULL;
    const char *key, *text;
    double number;
    bool is_number;

    push(f, "a", "tries=2 backoff=7");
    option(f, "jitter", "0");
    option(f, "max_jobs", "2");
    make_worker(f, "a");
    assert_ok(jobq_worker_listen(f->worker, "job.retrying"));
    assert_code(jobq_worker_listen(f->worker, "job.vanished"), JOBQ_EINVAL);
    start(f);
    assert_ok(jobq_job_settle(next_job(f), JOBQ_ENDED_FAILED, -1));
    assert_int_equal(assert_ok(jobq_worker_next(f->worker, &job, &event)), JOBQ_STEP_EVENT);
    assert_string_equal(jobq_event_name(event), "job.retrying");
    assert_string_equal(jobq_job_id(jobq_event_job(event)), f->id);
    assert_true(jobq_event_data(event, 0, &key, &text, &number, &is_number));
    assert_string_equal(key, "attempt");
    assert_true(is_number && number == 1);
    assert_true(jobq_event_data(event, 2, &key, &text, &number, &is_number));
    assert_string_equal(key, "delay");
    assert_true(is_number && number == 7);
    jobq_worker_stop(f->worker);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
}

/* Rule L3, inline: noticed when the handler asks; force is the exception alone. */
static void cancel_is_noticed(void **state)
{
    fixture *f = *state;
    char soft[64], hard[64], waits[64];
    jobq_job *job;

    strcpy(soft, push(f, "a", ""));
    strcpy(hard, push(f, "a", ""));
    strcpy(waits, push(f, "a", "delay=60"));
    make_worker(f, "a");
    start(f);
    job = next_job(f);
    assert_false(jobq_job_is_cancelled(job));
    assert_ok(jobq_queue_cancel(f->queue, soft, strlen(soft), false));
    jobq__clock_shift(1000, 1000);
    assert_true(jobq_job_is_cancelled(job));
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_FAILED, -1));
    job = next_job(f);
    assert_string_equal(reason_of(f, soft), "cancelled");
    assert_ok(jobq_queue_cancel(f->queue, hard, strlen(hard), true));
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE); /* not yet asked again */
    jobq__clock_shift(1000, 1000);
    assert_ok(jobq_job_extend(job));
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_STOP);
    assert_int_equal(jobq_job_interrupted(job), JOBQ_INTERRUPT_NONE); /* once */
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_STOPPED, -1));
    assert_ok(jobq_queue_cancel(f->queue, waits, strlen(waits), false));
    jobq_worker_stop(f->worker);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(reason_of(f, hard), "cancelled");
    assert_string_equal(reason_of(f, waits), "cancelled");
}

/* Rule L2: by the number that was read when the worker was made; run_next is its caller's loop. */
static void restart_ends_it(void **state)
{
    fixture *f = *state;
    jobq_job *job;

    push(f, "a", "");
    push(f, "a", "");
    make_worker(f, "a");
    start(f);
    job = next_job(f);
    assert_ok(jobq_queue_restart_workers(f->queue));
    assert_ok(jobq_job_done(job));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "restart requested");
    assert_int_equal(stat_of(f, JOBQ_STAT_READY), 1);
    start(f); /* the same old code */
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "restart requested");
    assert_ok(jobq_worker_start_one(f->worker, NULL, 0));
    assert_ok(jobq_job_done(next_job(f)));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    jobq_worker_free(f->worker);
    push(f, "a", "");
    make_worker(f, "a"); /* made afterwards */
    start(f);
    assert_ok(jobq_job_done(next_job(f)));
    jobq_worker_stop(f->worker);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "asked to shut down");
    jobq_worker_set_generation(f->worker, 0); /* read before the application was loaded */
    start(f);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "restart requested");
}

/* Rule L2: a store that was emptied begins anew; its next restart is heard all the same. */
static void restart_after_the_store_was_emptied(void **state)
{
    fixture *f = *state;

    push(f, "a", "");
    make_worker(f, "a");
    jobq_worker_set_generation(f->worker, 1000);
    start(f);
    assert_ok(jobq_job_done(next_job(f)));
    assert_ok(jobq_queue_restart_workers(f->queue));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "restart requested");
}

/* Rules L1, G3. */
static void paused_is_empty(void **state)
{
    fixture *f = *state;

    push(f, "a", "");
    option(f, "stop_when_empty", "1");
    assert_ok(jobq_queue_pause(f->queue, NULL, 0, 5000));
    make_worker(f, "a");
    start(f);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "Nothing left to do (paused: default)");
    assert_ok(jobq_worker_start_one(f->worker, NULL, 0));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    jobq__clock_shift(5001, 5001);
    start(f);
    assert_ok(jobq_job_done(next_job(f)));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "Nothing left to do");
}

typedef struct {
    jobq_worker *worker;
    char text[512];
} heard;

static void hear(void *payload, const char *text, size_t n)
{
    heard *h = payload;

    strncat(h->text, text, n < 9 ? n : 9);
    strcat(h->text, "\n");
    if (memmem(text, n, "Processed", 9))
        jobq_worker_stop(h->worker);
}

/* Rule G4: inline a function gets each line, whatever the options say but those of the start; it
 * may stop the worker. */
static void lines_to_a_function(void **state)
{
    fixture *f = *state;
    jobq_conf *over = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    heard h = {0};
    int code;

    make_worker(f, "a");
    h.worker = f->worker;
    assert_ok(jobq_worker_set_output_line(f->worker, hear, &h, NULL));
    push(f, "a", "");
    start(f);
    assert_memory_equal(h.text, "Worker ", 7); /* the first line, at once */
    assert_code(jobq_worker_set_output_fd(f->worker, 1), JOBQ_EINVAL);
    assert_said("while the worker runs");
    assert_ok(jobq_job_done(next_job(f)));
    assert_int_equal(next_step(f), JOBQ_STEP_STOP); /* the line about it asked for it */
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_non_null(strstr(h.text, "Stopping:\nRan 1 job\n"));

    h.text[0] = '\0';
    assert_ok(jobq_conf_set(over, "output", "quiet", 5));
    assert_int_equal(assert_ok(jobq_worker_start(f->worker, NULL, 0, over, &code)),
                     JOBQ_ROLE_INLINE);
    jobq_worker_stop(f->worker);
    assert_int_equal(next_step(f), JOBQ_STEP_STOP);
    assert_int_equal(jobq_worker_finish(f->worker), 0);
    assert_string_equal(h.text, "");
    jobq_conf_free(over);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(done_is_gone),
        TEST(age_of_the_last_job),
        TEST(drain_ends_patience),
        TEST(drain_after_own_stop),
        TEST(own_stop_starts_the_timer),
        TEST(fails_until_dead),
        TEST(release_is_free),
        TEST(expired_never_starts),
        TEST(unknown_names_wait),
        TEST(fatal_is_settled_at_once),
        TEST(left_without_a_word),
        TEST(time_limit_interrupts),
        TEST(second_term_stops),
        TEST(signal_ends_the_wait),
        TEST(lease_covers_the_limit),
        TEST(one_at_a_time),
        TEST(cancel_is_noticed),
        TEST(restart_ends_it),
        TEST(restart_after_the_store_was_emptied),
        TEST(paused_is_empty),
        TEST(events_arrive),
        TEST(lines_to_a_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
