/* SPDX-License-Identifier: MIT
 *
 * Signals (rules H1, H2, H3; cases B083, B085).
 */
#include "harness/stores.h"
#include "process/pool.h"

#include <sys/wait.h>

#include "util/clock.h"
#include "worker/worker.h"

static void start_idle(pool *p, const char *options)
{
    pid_t children[8];

    pool_start(p, options);
    wait_until(pool_children(p, children, 8) >= 1, 10);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 1, 20);
}

static void test_idle(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

    (void)state;
    for (int i = 0; i < 4; i++) {
        pool p;
        int64_t start_ms;

        pool_open(&p);
        start_idle(&p, "processes=2");
        start_ms = jobq__clock_mono_ms();
        pool_signal(&p, numbers[i]);
        assert_int_equal(pool_wait(&p, 20), 0);
        assert_true(jobq__clock_mono_ms() - start_ms < 8000);
        assert_true(pool_said(&p, "Stopping: asked to shut down"));
        assert_true(pool_is_all_gone(&p));
        pool_close(&p);
    }
}

/* Case B083: the first TERM lets running jobs finish and gives back the rest uncounted. */
static void test_during_job(void **state)
{
    pool *p = *state;
    char last[129];

    pool_push_many(p, "nap", 1000, NULL, 2);
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "begin nap") == 2, 20);
    pool_push_many(p, "note", 0, NULL, 30);
    strcpy(last, pool_push(p, "note", 0, NULL));
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 2);
    assert_int_equal(pool_ledger(p, "begin note"), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 31);
    assert_int_equal(strncmp(pool_job(p, last), "ready 0 0", 9), 0);
}

/* What a child holds behind its running job, it has not begun: given back, whole and uncounted. */
static void test_prefetched_are_given_back(void **state)
{
    pool *p = *state;

    pool_push(p, "nap", 800, NULL);
    pool_push_many(p, "nap", 10, NULL, 20);
    pool_start(p, "processes=1 prefetch=20");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 1);
    assert_int_equal(pool_ledger(p, "begin nap"), 1);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 20);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED), 0);
}

/* The second one ends them: StopException, given back uncounted. */
static void test_twice(void **state)
{
    pool *p = *state;
    char nap[129], deaf[129];

    strcpy(nap, pool_push(p, "nap", 60000, NULL));
    strcpy(deaf, pool_push(p, "deaf", 60000, NULL));
    pool_start(p, "processes=2 timeout_grace=0.5");
    wait_until(pool_ledger(p, "begin") == 2, 20);
    pool_signal(p, SIGTERM);
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) == 2, 10);
    pool_signal(p, SIGINT);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(strncmp(pool_job(p, nap), "ready 0 0", 9), 0);
    assert_int_equal(strncmp(pool_job(p, deaf), "ready 0 0", 9), 0);
}

/* Rule H1: `drain` seconds after taking jobs ended. */
static void test_drain(void **state)
{
    pool *p = *state;
    const int64_t start_ms = jobq__clock_mono_ms();
    char deaf[129];

    strcpy(deaf, pool_push(p, "deaf", 60000, NULL));
    pool_start(p, "processes=1 drain=0.5 timeout_grace=0.3");
    wait_until(pool_ledger(p, "begin") == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_true(jobq__clock_mono_ms() - start_ms >= 800);
    assert_int_equal(strncmp(pool_job(p, deaf), "ready 0 0", 9), 0);
}

/* Case B085: everybody in the pool gets TERM, several times even; the result is as if only the
 * master did, and a program that a handler started is not touched by us. */
static void test_everybody(void **state)
{
    pool *p = *state;
    pid_t children[8];
    size_t n;

    pool_push_many(p, "nap", 1200, NULL, 3);
    pool_push(p, "program", 1000, NULL);
    pool_start(p, "processes=4");
    wait_until(pool_ledger(p, "begin nap") == 3 && pool_ledger(p, "program") == 1, 20);
    n = pool_children(p, children, 8);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        kill(children[i], SIGTERM);
    kill(-p->pid, SIGTERM); /* master and dispatcher */
    for (size_t i = 0; i < n; i++)
        kill(children[i], SIGCONT);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 3);
    assert_int_equal(pool_ledger(p, "end program"), 1);
    assert_int_equal(pool_ledger(p, "broken"), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_true(pool_is_all_gone(p));
}

/* Rule H2: USR2 pauses and gives back, CONT resumes, USR1 shows every child. */
static void test_pause_and_show(void **state)
{
    pool *p = *state;

    pool_push(p, "nap", 700, NULL);
    start_idle(p, "processes=2");
    pool_signal(p, SIGUSR1);
    wait_until(pool_said(p, "child "), 10);
    pool_signal(p, SIGUSR2);
    wait_until(pool_ledger(p, "end nap") == 1, 20);
    wait_until(pool_said(p, "Paused"), 10);
    pool_push_many(p, "note", 0, NULL, 5);
    for (int i = 0; i < 30; i++) {
        usleep(10000);
        assert_int_equal(pool_ledger(p, "begin note"), 1);
    }
    pool_signal(p, SIGCONT);
    wait_until(pool_ledger(p, "end note") == 6, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

/* Rule H2: USR1 says of every child what it runs, for how long and how long it may, and why nothing
 * is taken; a pause gives back within a second what no child has begun. */
static void test_h2_every_child(void **state)
{
    pool *p = *state;
    int64_t paused_ms;
    char line[300];

    pool_push(p, "deaf", 5000, "timeout=0");
    pool_push(p, "deaf", 5000, "timeout=30");
    pool_start(p, "processes=3 prefetch=6");
    wait_until(pool_ledger(p, "begin deaf") == 2, 20);
    snprintf(line, sizeof(line), "child %d: runs deaf ", (int)pool_runner(p, "begin deaf"));
    /* the third child may still be starting */
    wait_until(
        (pool_signal(p, SIGUSR1), pool_said(p, ": idle; 0 jobs so far") && pool_said(p, line)), 10);
    assert_true(pool_said(p, " s, no limit; 0 jobs before"));
    assert_true(pool_said(p, " s, limit 30.0 s; 0 jobs before"));
    assert_true(pool_said(p, ": ready, 2 jobs in children, 0 jobs run"));
    pool_push(p, "deaf", 5000, NULL);
    wait_until(pool_ledger(p, "begin deaf") == 3, 20);
    pool_push_many(p, "note", 0, NULL, 4);
    pool_signal(p, SIGUSR2);
    paused_ms = jobq__clock_mono_ms();
    wait_until(pool_stat(p, JOBQ_STAT_READY) == 4 && pool_stat(p, JOBQ_STAT_RESERVED) == 3, 10);
    assert_true(jobq__clock_mono_ms() - paused_ms < 4500);
    /* the dispatcher hears of it a moment later */
    wait_until((pool_signal(p, SIGUSR1), pool_said(p, ": paused by USR2, 3 jobs in children")), 10);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "end deaf"), 3);
    assert_int_equal(pool_ledger(p, "begin note"), 0);
}

/* A worker started under nohup goes on without its terminal. */
static void test_nohup(void **state)
{
    pool *p = *state;

    p->start_mode = "ignore-hup";
    start_idle(p, "processes=1");
    pool_signal(p, SIGHUP);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 2, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

static int seen;

static void count(int number)
{
    seen = number;
}

/* Rule H3: our handlers are gone afterwards, the old ones and the mask are back. */
static void test_restored(void **state)
{
    sigset_t mask, after;

    (void)state;
    signal(SIGTERM, count);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    assert_ok(jobq__signals_install(true));
    assert_code(jobq__signals_install(true), JOBQ_EINVAL);
    raise(SIGTERM);
    raise(SIGUSR1);
    raise(SIGTERM);
    assert_int_equal(jobq__fd_wait(jobq__signals_fd(), 1000), 1);
    assert_int_equal(jobq__signals_next(), SIGTERM);
    assert_int_equal(jobq__signals_next(), SIGUSR1);
    assert_int_equal(jobq__signals_next(), SIGTERM);
    assert_int_equal(jobq__signals_next(), 0);
    jobq__signals_restore();
    assert_int_equal(seen, 0);
    raise(SIGTERM);
    assert_int_equal(seen, SIGTERM);
    sigprocmask(SIG_SETMASK, NULL, &after);
    assert_true(sigismember(&after, SIGUSR1));
    signal(SIGTERM, SIG_DFL);
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Rule D7: what a handler forked is no part of the worker: a signal does to it what it does to
 * anybody. */
static void test_forked_by_handler(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    assert_ok(jobq__signals_install(false));
    if ((pid = fork()) == 0) {
        raise(SIGTERM);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(jobq__signals_next(), 0);
    jobq__signals_restore();
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_idle),
        STORE_TEST(test_during_job),
        STORE_TEST(test_prefetched_are_given_back),
        STORE_TEST(test_twice),
        STORE_TEST(test_drain),
        STORE_TEST(test_everybody),
        STORE_TEST(test_pause_and_show),
        STORE_TEST(test_nohup),
        STORE_TEST(test_h2_every_child),
    };
    /* the store plays no part in these */
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_restored),
        cmocka_unit_test(test_forked_by_handler),
    };
    const int failed = stores_run_all("process/signals", tests, sizeof(tests) / sizeof(tests[0]),
                                      pool_set_up, pool_tear_down);

    return failed + cmocka_run_group_tests_name("process/signals", others, NULL, NULL);
}
