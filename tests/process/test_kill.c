/* SPDX-License-Identifier: MIT
 *
 * Kill -9 of each kind of process, and handlers that take their own down: exactly the running job
 * is blamed, nothing is lost, nothing runs twice (rules C5, D4, D5, D7, H3; cases B052, B072,
 * B074).
 */
#include "harness/stores.h"
#include "process/pool.h"

#include "util/clock.h"

static int set_up(void **state)
{
    static pool p;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    pool_open(&p);
    *state = &p;
    return 0;
}

/* Rule C5: the running one is a crash, its neighbours run elsewhere, uncounted. */
static void test_child_killed(void **state)
{
    pool *p = *state;
    char victim[129];

    strcpy(victim, pool_push(p, "deaf", 60000, "backoff=100"));
    pool_push_many(p, "nap", 50, NULL, 20);
    pool_start(p, "processes=2 stop_when_empty=1");
    wait_until(pool_ledger(p, "end nap") >= 2, 20);
    assert_true(pool_kill(pool_runner(p, "begin deaf")));
    assert_int_equal(pool_wait(p, 30), 0);
    assert_string_equal(pool_job(p, victim), "delayed 0 1 1");
    assert_int_equal(pool_ledger(p, "begin nap"), 20);
    assert_int_equal(pool_ledger(p, "end nap"), 20);
    assert_true(pool_said(p, "Crashed: "));
    assert_true(pool_said(p, "by signal 9"));
}

/* Rule G3: jobs that went back to the store for want of a living child are work left. */
static void test_empty_after_give_back(void **state)
{
    pool *p = *state;

    p->start_mode = "slow";
    pool_push(p, "deaf", 60000, "timeout=0.5 backoff=100");
    pool_push_many(p, "note", 0, NULL, 12);
    assert_int_equal(pool_run(p, "processes=1 prefetch=20 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 12);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 0);
}

/* An idle child is killed: nobody is blamed, the pool is filled up again (case B074). */
static void test_idle_child_killed(void **state)
{
    pool *p = *state;
    pid_t children[8];

    pool_start(p, "processes=2");
    wait_until(pool_children(p, children, 8) == 2, 10);
    for (int i = 0; i < 3; i++) {
        pool_push(p, "note", 0, NULL);
        wait_until(pool_ledger(p, "end note") == i + 1, 10);
        wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 10); /* the child is through with it */
        assert_int_equal(kill(children[0], SIGKILL), 0);
        wait_until(kill(children[0], 0) != 0, 10);
        wait_until(pool_children(p, children, 8) == 2, 10);
    }
    pool_push_many(p, "note", 0, NULL, 10);
    wait_until(pool_ledger(p, "end note") == 13, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 13);
}

/* Another dispatcher takes over what the first had handed out: nothing lost, nothing doubled. */
static void test_dispatcher_killed(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 20, NULL, 100);
    pool_start(p, "processes=2 stop_when_empty=1");
    for (int i = 1; i <= 3; i++) {
        wait_until(pool_ledger(p, "end nap") >= i * 10, 20);
        wait_until(pool_kill(pool_dispatcher(p)), 10);
    }
    assert_int_equal(pool_wait(p, 60), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 100);
    assert_int_equal(pool_ledger(p, "end nap"), 100);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
    assert_true(pool_said(p, "the dispatcher died (killed by signal 9"));
}

/* A stopped dispatcher breaks its promise and is replaced. */
static void test_dispatcher_hangs(void **state)
{
    pool *p = *state;
    const char *patience = strstr(p->dsn, "read_timeout=10");
    pid_t first;

    /* The longer a call may take, the later a dispatcher is held to hang. */
    if (patience)
        snprintf(p->worker_dsn, sizeof(p->worker_dsn), "%.*sread_timeout=1%s",
                 (int)(patience - p->dsn), p->dsn, patience + strlen("read_timeout=10"));
    pool_push_many(p, "nap", 5, NULL, 10);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "end nap") == 10, 20);
    first = pool_dispatcher(p);
    assert_int_equal(kill(first, SIGSTOP), 0);
    /* It may have been stopped while it had SQLite's lock: then nobody pushes until it is gone. */
    wait_until(pool_try_push_many(p, "nap", 5, NULL, 10) == 10, 60);
    wait_until(pool_ledger(p, "end nap") == 20, 120); /* twice the time a call may take, and more */
    assert_int_not_equal(pool_dispatcher(p), first);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 20);
    assert_true(pool_said(p, "the dispatcher hangs"));
}

/* Rule H3: everybody dies with the master, the jobs come back by lease. */
static void test_master_killed(void **state)
{
    pool *p = *state;
    pid_t children[8];
    size_t n;

    pool_push_many(p, "deaf", 60000, "backoff=0", 2);
    pool_push_many(p, "note", 0, NULL, 10);
    pool_start(p, "processes=2 lease=1");
    wait_until(pool_ledger(p, "begin deaf") == 2, 20);
    n = pool_children(p, children, 8);
    assert_int_equal(n, 2);
    pool_dispatcher(p);
    pool_signal(p, SIGKILL);
    assert_int_equal(pool_wait(p, 10), 1000 + SIGKILL);
    wait_until(pool_is_all_gone(p), 10);
    pool_start(p, "processes=4 lease=1");
    wait_until(pool_ledger(p, "end note") == 10, 30);
    wait_until(pool_ledger(p, "begin deaf") == 4, 30);
    pool_signal(p, SIGKILL);
    pool_wait(p, 10);
    wait_until(pool_is_all_gone(p), 10);
}

/* Kills at random, of children and of the dispatcher: every job comes through, and only as many
 * begin again as were hit. */
static void test_random_kills(void **state)
{
    pool *p = *state;
    unsigned seed = 4711;
    int kills = 0;

    pool_push_many(p, "nap", 8, "backoff=0 tries=0", 300);
    pool_start(p, "processes=3 max_crashes=0 stop_when_empty=1");
    for (int i = 0; i < 12; i++) {
        const int ended = pool_ledger(p, "end nap");
        pid_t children[8];
        size_t n;

        /* on a busy machine they may be through before the kills are */
        wait_until(pool_ledger(p, "end nap") >= (ended + 15 < 300 ? ended + 15 : 300), 30);
        n = pool_children(p, children, 8);
        if (n && rand_r(&seed) % 3)
            kills += kill(children[(size_t)rand_r(&seed) % n], SIGKILL) == 0;
        else
            pool_kill(pool_dispatcher(p));
    }
    assert_int_equal(pool_wait(p, 60), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
    assert_true(pool_ledger(p, "end nap") >= 300);
    assert_true(pool_ledger(p, "begin nap") <= 300 + kills);
}

/* How often it was handed out until it began is not what is asked: on a busy machine, where it
 * takes long until a child is there again, it may have gone back. */
static void check_job(pool *p, const char *id, const char *state_and_counts)
{
    char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)strlen(state_and_counts), pool_job(p, id));
    assert_string_equal(text, state_and_counts);
}

/* Rule D4, D5, case B072: what is known stands in the record; the worker goes on. */
static void test_handlers_that_die(void **state)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGKILL, SIGXCPU};
    pool *p = *state;
    char ids[5][129], exits[129], text[64];

    for (int i = 0; i < 5; i++)
        strcpy(ids[i], pool_push(p, "crash", signals[i], "tries=1"));
    strcpy(exits, pool_push(p, "exit", 3, "backoff=100"));
    pool_push_many(p, "note", 0, NULL, 10);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 10);
    assert_int_equal(pool_ledger(p, "begin crash"), 5);
    assert_int_equal(pool_ledger(p, "begin exit"), 1);
    for (int i = 0; i < 5; i++) {
        check_job(p, ids[i], "dead 0 1 ");
        snprintf(text, sizeof(text), "by signal %d", signals[i]);
        assert_true(pool_said(p, text));
    }
    check_job(p, exits, "delayed 1 0 "); /* a failure, no crash */
    assert_true(pool_said(p, "the handler called exit(3)"));
}

/* Rule M1: in the next free child, once, with the job it is about. */
static void test_events(void **state)
{
    pool *p = *state;
    char line[256];

    p->start_mode = "listen";
    snprintf(line, sizeof(line), "event job.crashed %s",
             pool_push(p, "crash", SIGKILL, "backoff=100"));
    pool_push(p, "fail", 0, "backoff=100");
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, line) == 1, 20);
    wait_until(pool_ledger(p, "event job.retrying") >= 1, 20);
    wait_until(pool_ledger(p, "begin") == 2, 20); /* the one that crashed is retried, too */
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, line), 1);
    assert_int_equal(pool_ledger(p, "begin"), 2);
}

/* Rule C5: a poison job does not circle for ever, also when tries is unlimited. */
static void test_poison(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "crash", SIGSEGV, "tries=0 backoff=0"));
    pool_start(p, "processes=2");
    wait_until(strcmp(pool_job(p, id), "dead 0 3 3") == 0, 30);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

/* Case B052: completed when the parent's handler returns, once; the forked ones disturb nobody. */
static void test_handler_forks(void **state)
{
    pool *p = *state;

    pool_push_many(p, "forks", 50, NULL, 10);
    pool_push_many(p, "note", 0, NULL, 20);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "waited forks"), 10);
    assert_int_equal(pool_ledger(p, "end note"), 20);
    assert_int_equal(pool_ledger(p, "begin forks"), 10);
    assert_true(pool_said(p, "Ran 30 jobs"));
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* Rule D7: all descriptors closed, their numbers used by the handler's own file. */
static void test_handler_closes(void **state)
{
    pool *p = *state;
    char path[300];
    FILE *f;

    pool_push_many(p, "closes", 0, NULL, 3);
    pool_push_many(p, "note", 0, NULL, 30);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end closes"), 3);
    assert_int_equal(pool_ledger(p, "end note"), 30);
    snprintf(path, sizeof(path), "%s.reused", p->ledger);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fgetc(f), EOF); /* nobody wrote into it */
    fclose(f);
}

/* Rule D7: a handler that takes the soft stop's signal away does it to itself only. */
static void test_handler_mutes(void **state)
{
    pool *p = *state;
    char id[129];

    pool_push(p, "mutes", 0, NULL); /* the next one begins at once */
    strcpy(id, pool_push(p, "sleepy", 60, "timeout=0.3 backoff=100"));
    assert_int_equal(pool_run(p, "processes=1 timeout_grace=20 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end mutes"), 1);
    assert_int_equal(pool_runners(p, "begin"), 1); /* no other child was needed */
    assert_string_equal(pool_job(p, id), "delayed 1 0 1");
    assert_true(pool_said(p, "Timed out: sleepy"));
    assert_false(pool_said(p, "was killed"));
}

/* Rule C5: what a child does not begin runs elsewhere, whatever keeps the child (stopped from
 * outside here): within 50 ms of being noticed. */
static void test_idle_child_stopped(void **state)
{
    pool *p = *state;
    pid_t children[8];

    pool_start(p, "processes=2");
    wait_until(pool_children(p, children, 8) == 2, 10);
    pool_push_many(p, "note", 0, NULL, 10);
    wait_until(pool_ledger(p, "end note") == 10, 10);
    assert_int_equal(kill(children[0], SIGSTOP), 0);
    pool_push_many(p, "note", 0, NULL, 10);
    wait_until(pool_ledger(p, "end note") == 20, 10);
    pool_push_many(p, "note", 0, "tries=1", 5);
    wait_until(pool_ledger(p, "end note") == 25, 10);
    assert_int_equal(kill(children[0], SIGCONT), 0);
    pool_push_many(p, "nap", 200, NULL, 6);
    wait_until(pool_runners(p, "begin nap") == 2, 20); /* it serves again */
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 25);
}

/* Rules M1, C5, H1: a listener that takes long holds up no job, and no end for longer than
 * patience. */
static void test_slow_listener(void **state)
{
    pool *p = *state;

    p->start_mode = "listen";
    pool_push(p, "exit", 3, "backoff=100");
    pool_start(p, "processes=1 timeout_grace=1");
    wait_until(pool_ledger(p, "event job.retrying") == 1, 20);
    pool_push_many(p, "note", 0, NULL, 10);
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) > 0 || pool_stat(p, JOBQ_STAT_READY) == 10, 10);
    wait_until(pool_stat(p, JOBQ_STAT_READY) == 10, 10); /* for other workers */
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 8), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 10);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_child_killed),
        STORE_TEST(test_empty_after_give_back),
        STORE_TEST(test_idle_child_killed),
        STORE_TEST(test_dispatcher_killed),
        STORE_TEST(test_dispatcher_hangs),
        STORE_TEST(test_master_killed),
        STORE_TEST(test_handlers_that_die),
        STORE_TEST(test_events),
        STORE_TEST(test_poison),
        STORE_TEST(test_random_kills),
        STORE_TEST(test_handler_forks),
        STORE_TEST(test_idle_child_stopped),
        STORE_TEST(test_slow_listener),
    };
    /* the store plays no part in these */
    const struct CMUnitTest others[] = {
        cmocka_unit_test_setup_teardown(test_handler_closes, set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_handler_mutes, set_up, pool_tear_down),
    };
    const int failed = stores_run_all("process/kill", tests, sizeof(tests) / sizeof(tests[0]),
                                      set_up, pool_tear_down);

    return failed + cmocka_run_group_tests_name("process/kill", others, NULL, NULL);
}
