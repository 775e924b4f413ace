/* SPDX-License-Identifier: MIT
 *
 * Failed hooks (rule F6): however a job dies, its hook runs after the death is stored, in a living
 * child of a worker that knows its name, normally once, within the job's time limit, and counts
 * nowhere. What ran stands in a ledger outside of the store.
 */
#include "harness/stores.h"
#include "process/pool.h"

#include <sys/wait.h>

#include "util/clock.h"

static int set_up(void **state)
{
    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    pool_set_up(state);
    ((pool *)*state)->start_mode = "hooks";
    return 0;
}

static int hooks_of(const pool *p, const char *reason, const char *id)
{
    char prefix[300];

    snprintf(prefix, sizeof(prefix), "hook %s %s ", reason, id);
    return pool_ledger(p, prefix);
}

static int64_t counter(const jobq_worker *worker, const char *wanted)
{
    const char *name;

    for (size_t i = 0; jobq_worker_counter(worker, i, &name), name; i++)
        if (strcmp(name, wanted) == 0)
            return jobq_worker_counter(worker, i, NULL);
    return -1;
}

/* Exactly one hook in the whole ledger, for that job and with that reason. */
static void check_one(const pool *p, const char *reason, const char *id)
{
    if (hooks_of(p, reason, id) != 1 || pool_ledger(p, "hook ") != 1 ||
        pool_ledger(p, "hooked default ") != 1)
        pool_show(p);
    assert_int_equal(hooks_of(p, reason, id), 1);
    assert_int_equal(pool_ledger(p, "hook "), 1);
    assert_int_equal(pool_ledger(p, "hooked default "), 1);
}

/* Dies in a worker that stops when it is empty: which waits for the hook. */
static void check_death(pool *p, const char *name, int arg, const char *options, const char *reason)
{
    const char *id = pool_push(p, name, arg, options);

    if (pool_run(p, "processes=2 stop_when_empty=1 timeout_grace=0.5") != 0)
        pool_show(p);
    check_one(p, reason, id);
    assert_true(pool_said(p, "Nothing left to do"));
}

static void test_exhausted(void **state)
{
    check_death(*state, "fail", 0, "tries=1", "attempts_exhausted");
    assert_true(pool_said(*state, "Ran 1 job\n"));
}

/* The record is durable before the hook runs, and two tries are one death. */
static void test_last_of_two_tries(void **state)
{
    check_death(*state, "fail", 0, "tries=2 backoff=0", "attempts_exhausted");
    assert_true(pool_said(*state, "Ran 2 jobs\n"));
}

static void test_crashed(void **state)
{
    check_death(*state, "crash", SIGSEGV, "tries=1", "crashed");
}

static void test_exited(void **state)
{
    check_death(*state, "exit", 3, "tries=1", "attempts_exhausted");
}

static void test_timed_out(void **state)
{
    check_death(*state, "nap", 30000, "tries=1 timeout=0.2", "timed_out");
}

static void test_killed_at_its_limit(void **state)
{
    check_death(*state, "deaf", 30000, "tries=1 timeout=0.2", "timed_out");
}

static void test_expired(void **state)
{
    check_death(*state, "note", 0, "expires=@1", "expired");
    assert_int_equal(pool_ledger(*state, "begin"), 0);
    assert_true(pool_said(*state, "Ran 0 jobs\n"));
}

/* What is dropped does not die. */
static void test_dropped(void **state)
{
    pool *p = *state;

    pool_push(p, "note", 0, "expires=@1 on_expire=drop");
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "hook"), 0);
}

/* Nobody but a worker is there: the next one runs it. */
static void test_cancelled(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "note", 0, "delay=3600");

    assert_int_equal(assert_ok(jobq_queue_cancel(p->queue, id, strlen(id), false)), JOBQ_CANCELLED);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    check_one(p, "cancelled", id);
}

/* An idle worker is woken by the death of a job that somebody else had. */
static void test_reserved_by_hand(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "note", 0, NULL);
    jobq_job *job = NULL;
    int64_t at_ms;

    assert_int_equal(assert_ok(jobq_queue_reserve(p->queue, NULL, 0, 30000, &job)), 1);
    pool_start(p, "processes=1");
    wait_until(pool_said(p, "Worker"), 10);
    jobq_job_set_error(job, "Trouble", 7, "by hand", 7, NULL, 0, NULL, 0);
    assert_ok(jobq_job_fail(job));
    at_ms = jobq__clock_mono_ms();
    jobq_job_free(job);
    wait_until(pool_ledger(p, "hooked") == 1, 20);
    assert_true(jobq__clock_mono_ms() - at_ms < 5000);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    check_one(p, "failed_by_handler", id);
}

/* The worker's host is gone in the job's last try: the death is found by who takes the job over. */
static void test_killed_worker(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "deaf", 20000, "tries=1");

    pool_start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "begin") == 1, 20);
    kill(-p->pid, SIGKILL); /* master and dispatcher at once; children die with them */
    pool_wait(p, 20);
    assert_int_equal(pool_ledger(p, "hook"), 0);
    pool_start(p, "processes=2 lease=1");
    wait_until(pool_ledger(p, "hooked") == 1, 30);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    check_one(p, "crashed", id);
    assert_int_equal(pool_ledger(p, "begin"), 1);
}

/* The worker is gone while the hook runs: another one runs it again when the lease is over. */
static void test_killed_in_the_hook(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "fail", POOL_HOOK_NAPS, "tries=1");

    pool_start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "hook ") == 1, 20);
    kill(-p->pid, SIGKILL);
    pool_wait(p, 20);
    pool_start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "hook ") == 2, 30);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(hooks_of(p, "attempts_exhausted", id), 2);
}

/* Three tries, then it is given up with an error line, and none of it is counted. */
static void test_hook_that_fails(void **state)
{
    pool *p = *state;
    char line[300];
    const char *id = pool_push(p, "fail", POOL_HOOK_FAILS, "tries=1");

    snprintf(line, sizeof(line),
             "error: the failed hook of job %s (\"fail\") is given up after 3 tries: it went wrong",
             id);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(hooks_of(p, "attempts_exhausted", id), 3);
    assert_true(pool_said(p, line));
    assert_true(pool_said(p, "Ran 1 job\n"));
    assert_false(pool_said(p, "Processed"));
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 1);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

static void test_hook_that_crashes(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "fail", POOL_HOOK_CRASHES, "tries=1");

    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(hooks_of(p, "attempts_exhausted", id), 3);
    assert_true(pool_said(p, "is given up after 3 tries: killed by signal 11"));
    assert_false(pool_said(p, "Crashed:"));
}

/* The dead job's time limit, which was pushed with it, is the hook's. */
static void test_hook_over_its_limit(void **state)
{
    pool *p = *state;

    pool_push(p, "fail", POOL_HOOK_HANGS, "tries=1 timeout=0.3");
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1 timeout_grace=0.5"), 0);
    assert_int_equal(pool_ledger(p, "hook "), 3);
    assert_true(pool_said(p, "is given up after 3 tries: "));
}

/* Killed each time, and waited for all the same. */
static void test_hook_that_is_killed(void **state)
{
    pool *p = *state;

    pool_push(p, "fail", POOL_HOOK_IS_DEAF, "tries=1 timeout=0.2");
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1 timeout_grace=0.2"), 0);
    assert_int_equal(pool_ledger(p, "hook "), 3);
    assert_true(pool_said(p, "is given up after 3 tries: over its time limit of 0.2 s"));
}

/* Of several that were put back at different times each is waited for, not only the first to
 * come. */
static void check_each(pool *p, const char *options)
{
    enum { HOOKS = 5 };

    for (int i = 0; i < HOOKS; i++)
        pool_push(p, "fail", POOL_HOOK_RECOVERS, "tries=1");
    assert_int_equal(pool_run(p, options), 0);
    if (pool_ledger(p, "hooked ") != HOOKS)
        pool_show(p);
    assert_int_equal(pool_ledger(p, "hook "), 2 * HOOKS);
    assert_int_equal(pool_ledger(p, "hooked "), HOOKS);
}

static void test_hooks_that_recover(void **state)
{
    check_each(*state, "processes=1 stop_when_empty=1");
}

static void test_hooks_that_recover_in_time(void **state)
{
    check_each(*state, "processes=1 stop_when_empty_for=0.1");
}

static void test_hooks_that_recover_after_the_last(void **state)
{
    check_each(*state, "processes=1 max_jobs=5");
}

/* Rule D7: a handler or hook that closes its child's descriptors does not disturb the next hook. */
static void test_closed_descriptors(void **state)
{
    pool *p = *state;

    pool_push(p, "fail", POOL_HOOK_CLOSES, "tries=1 timeout=20");
    pool_push(p, "fail", 0, "tries=1 timeout=20 delay=0.3");
    pool_push(p, "closes", 0, "delay=0.6");
    pool_push(p, "fail", 0, "tries=1 timeout=20 delay=0.9");
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "hooked") == 3, 15);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "hook "), 3);
}

/* `once` and max_jobs: the one job's hook is waited for, and is no job. */
static void test_once(void **state)
{
    pool *p = *state;
    char id[129];

    snprintf(id, sizeof(id), "%s", pool_push(p, "fail", 0, "tries=1"));
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=1 once=1"), 0);
    check_one(p, "attempts_exhausted", id);
    assert_true(pool_said(p, "Ran 1 job\n"));
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 1);
}

/* Rule D1: its death is stored when its process is gone, after it was counted. */
static void test_once_with_a_failed_cleanup(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "soils", 0, "tries=1");

    assert_int_equal(pool_run(p, "processes=1 once=1"), 0);
    check_one(p, "attempts_exhausted", id);
}

static void test_max_jobs(void **state)
{
    pool *p = *state;

    for (int i = 0; i < 3; i++)
        pool_push(p, "fail", 0, "tries=1");
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=2 max_jobs=3"), 0);
    assert_int_equal(pool_ledger(p, "hooked"), 3);
    assert_int_equal(pool_ledger(p, "begin"), 3);
    assert_true(pool_said(p, "Ran 3 jobs\n"));
}

/* Many deaths: one hook each, though everybody is busy with jobs all the time. */
static void test_many(void **state)
{
    pool *p = *state;

    pool_push_many(p, "fail", 0, "tries=1", 300);
    pool_push_many(p, "note", 0, NULL, 3000);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "hooked"), 300);
    assert_int_equal(pool_ledger(p, "end note"), 3000);
    assert_true(pool_said(p, "Ran 3300 jobs\n"));
}

/* After TERM it stays in the store, for the next worker. */
static void test_stopped(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "fail", POOL_HOOK_HANGS, "tries=1 timeout=0");

    for (int i = 1; i <= 4; i++) { /* oftener than it has tries: none is counted */
        pool_start(p, "processes=1 drain=0.1");
        wait_until(hooks_of(p, "attempts_exhausted", id) == i, 20);
        pool_signal(p, SIGTERM);
        assert_int_equal(pool_wait(p, 20), 0);
    }
    assert_false(pool_said(p, "given up"));
}

/* A pause is for jobs: hooks run all the same, while the only queue is paused. */
static void test_paused_queue(void **state)
{
    pool *p = *state;
    char id[129];

    snprintf(id, sizeof(id), "%s", pool_push(p, "note", 0, NULL));
    pool_push(p, "note", 0, NULL);
    assert_ok(jobq_queue_pause(p->queue, "default", 7, 0));
    assert_ok(jobq_queue_cancel(p->queue, id, strlen(id), false));
    pool_start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "hooked") == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    check_one(p, "cancelled", id);
    assert_int_equal(pool_ledger(p, "begin"), 0);
}

/* Put back by hand before the hook came: it still hears of the death. */
static void test_put_back_meanwhile(void **state)
{
    pool *p = *state;
    char id[129];
    const char *ids[] = {id};
    jobq_job *job = NULL;

    snprintf(id, sizeof(id), "%s", pool_push(p, "note", 0, NULL));
    assert_int_equal(assert_ok(jobq_queue_reserve(p->queue, NULL, 0, 30000, &job)), 1);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    assert_int_equal(assert_ok(jobq_queue_mend_ids(p->queue, JOBQ_DEAD_RETRY, ids, 1, false, NULL)),
                     1);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    check_one(p, "failed_by_handler", id);
    assert_int_equal(pool_ledger(p, "end note"), 1);
}

static void test_forgotten_meanwhile(void **state)
{
    pool *p = *state;
    char id[129];
    const char *ids[] = {id};
    jobq_job *job = NULL;

    snprintf(id, sizeof(id), "%s", pool_push(p, "note", 0, NULL));
    assert_int_equal(assert_ok(jobq_queue_reserve(p->queue, NULL, 0, 30000, &job)), 1);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    assert_int_equal(
        assert_ok(jobq_queue_mend_ids(p->queue, JOBQ_DEAD_FORGET, ids, 1, false, NULL)), 1);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    check_one(p, "failed_by_handler", id);
}

/* A name that this worker does not know: put aside like a job, and given up after unknown_for. */
static void test_unknown_name(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "stranger", 0, NULL);
    jobq_job *job = NULL;
    char line[300];

    assert_int_equal(assert_ok(jobq_queue_reserve(p->queue, NULL, 0, 30000, &job)), 1);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    snprintf(line, sizeof(line), "the failed hook of job %s (\"stranger\") is given up: no worker",
             id);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1 unknown_for=0"), 0);
    assert_true(pool_said(p, line));
    assert_int_equal(pool_ledger(p, "hook"), 0);
}

/* Rule F6: whoever knows the name runs it, also for a version that nobody knew. */
static void test_unsupported_version(void **state)
{
    pool *p = *state;
    char id[129];

    snprintf(id, sizeof(id), "%s", pool_push(p, "note", 0, "version=2"));
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1 unknown_for=0"), 0);
    check_one(p, "unsupported_version", id);
}

/* A C program that runs none: nothing is left behind for the next one. */
static void test_no_hooks(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "note", 0, "delay=3600");

    assert_ok(jobq_queue_cancel(p->queue, id, strlen(id), false));
    pool_push(p, "fail", 0, "tries=1");
    p->start_mode = NULL;
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    p->start_mode = "hooks";
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "hook"), 0);
}

/* Inline (G8): in the same process, one after the other, and no counter moves for a hook. */
static void test_inline(void **state)
{
    pool *p = *state;
    const char *id = pool_push(p, "fail", POOL_HOOK_FAILS, "tries=1");
    int runs = 0, hooks = 0, code = 0, rc;
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_worker *worker;
    jobq_event *event;
    jobq_job *job;

    assert_ok(jobq_conf_set(conf, "memory", "0", 1)); /* a sanitizer needs more than a worker may */
    assert_ok(jobq_worker_new(p->queue, conf, &worker));
    assert_ok(jobq_worker_handle(worker, "fail", 4, 1, NULL));
    jobq_worker_set_failed(worker, true);
    assert_int_equal(assert_ok(jobq_worker_start_one(worker, NULL, 0)), JOBQ_ROLE_INLINE);
    while ((rc = jobq_worker_next(worker, &job, &event)) > 0) {
        runs += rc == JOBQ_STEP_JOB;
        hooks += rc == JOBQ_STEP_HOOK;
        if (rc == JOBQ_STEP_HOOK) {
            assert_string_equal(jobq_info_text(jobq_worker_dead(worker), JOBQ_INFO_ID, NULL), id);
            assert_int_equal(jobq_info_number(jobq_worker_dead(worker), JOBQ_INFO_STATE),
                             JOBQ_DEAD);
            assert_string_equal(jobq_job_queue(job, NULL), "default");
        }
        assert_ok(jobq_job_settle(job, hooks == 1 ? JOBQ_ENDED_DONE : JOBQ_ENDED_FAILED, -1));
    }
    assert_int_equal(rc, JOBQ_STEP_STOP);
    assert_null(jobq_worker_dead(worker));
    code = jobq_worker_finish(worker);
    assert_int_equal(code, 0);
    assert_int_equal(runs, 1);
    assert_int_equal(hooks, 1);
    assert_int_equal(jobq_worker_jobs_run(worker), 1);
    assert_int_equal(counter(worker, "received"), 1);
    assert_int_equal(counter(worker, "done"), 0);
    assert_int_equal(counter(worker, "dead"), 1);
    jobq_worker_free(worker);
    jobq_conf_free(conf);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_exhausted),
        STORE_TEST(test_last_of_two_tries),
        STORE_TEST(test_crashed),
        STORE_TEST(test_exited),
        STORE_TEST(test_timed_out),
        STORE_TEST(test_killed_at_its_limit),
        STORE_TEST(test_expired),
        STORE_TEST(test_dropped),
        STORE_TEST(test_cancelled),
        STORE_TEST(test_reserved_by_hand),
        STORE_TEST(test_killed_worker),
        STORE_TEST(test_killed_in_the_hook),
        STORE_TEST(test_hook_that_fails),
        STORE_TEST(test_hook_that_crashes),
        STORE_TEST(test_hook_over_its_limit),
        STORE_TEST(test_hook_that_is_killed),
        STORE_TEST(test_hooks_that_recover),
        STORE_TEST(test_hooks_that_recover_in_time),
        STORE_TEST(test_hooks_that_recover_after_the_last),
        STORE_TEST(test_closed_descriptors),
        STORE_TEST(test_once),
        STORE_TEST(test_once_with_a_failed_cleanup),
        STORE_TEST(test_max_jobs),
        STORE_TEST(test_many),
        STORE_TEST(test_stopped),
        STORE_TEST(test_paused_queue),
        STORE_TEST(test_put_back_meanwhile),
        STORE_TEST(test_forgotten_meanwhile),
        STORE_TEST(test_unknown_name),
        STORE_TEST(test_unsupported_version),
        STORE_TEST(test_no_hooks),
        STORE_TEST(test_inline),
    };

    return stores_run_all("hooks", tests, sizeof(tests) / sizeof(tests[0]), set_up, pool_tear_down);
}
