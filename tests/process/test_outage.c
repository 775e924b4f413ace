/* SPDX-License-Identifier: MIT
 *
 * The store is away or somebody else's: rules K1, K2, D6, J1; and what the dispatcher does with a
 * child that is free (C5), with what it holds while paused (H2) and with large bodies.
 */
#include "process/pool.h"

#include <sqlite3.h>

static sqlite3 *lock_store(const pool *p)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(p->db, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void unlock_store(sqlite3 *db)
{
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Rules D6, K1: the store is locked when jobs end; their results are settled when it is back. */
static void test_results_survive_an_outage(void **state)
{
    pool *p = *state;
    sqlite3 *db;

    pool_push_many(p, "nap", 300, NULL, 2);
    pool_start(p, "processes=2 stop_when_empty=1 max_reserve_failures=0");
    wait_until(pool_ledger(p, "begin nap") == 2, 10);
    db = lock_store(p);
    wait_until(pool_ledger(p, "end nap") == 2, 10);
    wait_until(pool_said(p, "error: could not reserve a job: "), 30);
    unlock_store(db);
    assert_int_equal(pool_wait(p, 60), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 2);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

static void break_store(const pool *p)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(p->db, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, "DROP TABLE jobqueue_ready", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Rule K1: a store that renews leases but hands out nothing is unreadable: with a short lease there
 * is a renewal between any two attempts. */
static void test_renewals_are_no_comfort(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 5, NULL, 500);
    pool_start(p, "processes=2 max_reserve_failures=3 lease=1");
    wait_until(pool_ledger(p, "end nap") >= 4, 10);
    break_store(p);
    assert_int_equal(pool_wait(p, 60), 1);
    assert_true(pool_said(p, "Stopping: the queue has been unreadable 3 times running"));
}

/* Rule K1: given up after so many failures, exit 1; lost results are said and come back by
 * lease. */
static void test_gives_up(void **state)
{
    pool *p = *state;
    sqlite3 *db;

    pool_push(p, "nap", 300, NULL);
    pool_start(p, "processes=1 max_reserve_failures=1 lease=3");
    wait_until(pool_ledger(p, "begin nap") == 1, 10);
    db = lock_store(p);
    assert_int_equal(pool_wait(p, 60), 1);
    assert_true(pool_said(p, "Stopping: the queue has been unreadable 1 time running"));
    assert_true(pool_said(p, "Result lost: nap"));
    unlock_store(db);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED) + pool_stat(p, JOBQ_STAT_READY), 1);
}

/* Rules H1, J2: a stop request is heard while the store is unreadable. */
static void test_term_while_away(void **state)
{
    pool *p = *state;
    sqlite3 *db;

    pool_push_many(p, "note", 0, NULL, 5);
    pool_start(p, "processes=1 max_reserve_failures=0");
    wait_until(pool_ledger(p, "end note") == 5, 10);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 10);
    pool_push(p, "nap", 100, NULL);
    wait_until(pool_ledger(p, "begin nap") == 1, 10);
    db = lock_store(p);
    wait_until(pool_said(p, "error: could not reserve a job: "), 30);
    pool_signal(p, SIGTERM);
    unlock_store(db);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* Architecture: short jobs do not wait behind a long one while a child is free. */
static void test_short_beside_long(void **state)
{
    pool *p = *state;

    pool_push_many(p, "note", 0, NULL, 200);
    pool_push(p, "nap", 4000, NULL);
    pool_push_many(p, "note", 0, NULL, 200);
    pool_start(p, "processes=2 stop_when_empty=1");
    wait_until(pool_ledger(p, "begin nap") == 1, 10);
    wait_until(pool_ledger(p, "end note") == 400, 3);
    assert_int_equal(pool_ledger(p, "end nap"), 0);
    assert_int_equal(pool_wait(p, 30), 0);
}

/* Jobs prefetched behind a long one go back to the store, for other workers. */
static void test_nothing_hoarded_behind_long(void **state)
{
    pool *p = *state;

    pool_push_many(p, "note", 0, NULL, 100);
    pool_push(p, "nap", 6000, NULL);
    pool_push_many(p, "note", 0, NULL, 50);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 1, 10);
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) == 1, 5);
    assert_int_equal(pool_ledger(p, "end nap"), 0);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    assert_int_equal(pool_ledger(p, "begin note") + (int)pool_stat(p, JOBQ_STAT_READY), 150);
}

/* Mechanisms, blame: every job on its last try is announced first; all of them run all the same. */
static void test_last_tries(void **state)
{
    pool *p = *state;

    pool_push_many(p, "note", 0, "tries=1", 60);
    pool_push_many(p, "note", 0, NULL, 200);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 260);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* Architecture: a killed dispatcher is replaced, nothing is lost or run twice. */
static void test_dispatcher_killed_under_load(void **state)
{
    pool *p = *state;

    pool_push_many(p, "note", 0, NULL, 8000);
    pool_start(p, "processes=2 stop_when_empty=1");
    for (int i = 1; i <= 5; i++) {
        pid_t dispatcher = 0;

        wait_until(pool_ledger(p, "end note") >= i * 1000 || pool_ledger(p, "end note") == 8000,
                   20);
        wait_until((dispatcher = pool_dispatcher(p)) != 0, 10);
        kill(dispatcher, SIGKILL);
    }
    assert_int_equal(pool_wait(p, 60), 0);
    assert_int_equal(pool_ledger(p, "end note"), 8000);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
}

static pid_t stop_dispatcher(pool *p)
{
    pid_t dispatcher = pool_dispatcher(p);

    assert_true(dispatcher > 0);
    kill(dispatcher, SIGSTOP);
    return dispatcher;
}

/* Rules C3, C5, C11: a worker that slept through its lease loses its jobs; its result is
 * refused. */
static void test_lease_lost(void **state)
{
    pool *p = *state;
    jobq_job *job = NULL;
    pid_t dispatcher;

    pool_push(p, "nap", 4000, "backoff=0");
    pool_start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "begin nap") == 1, 10);
    usleep(1500000); /* long enough to be listed as running */
    dispatcher = stop_dispatcher(p);
    wait_until(assert_ok(jobq_queue_reserve(p->queue, NULL, 0, 30000, &job)) == 1, 15);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_CRASHES), 1);
    kill(dispatcher, SIGCONT);
    wait_until(pool_said(p, "Lease lost: nap"), 15);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

static void make_anew(pool *p)
{
    char wal[300], shm[300];

    snprintf(wal, sizeof(wal), "%s-wal", p->db);
    snprintf(shm, sizeof(shm), "%s-shm", p->db);
    jobq_queue_disconnect(p->queue);
    unlink(p->db);
    unlink(wal);
    unlink(shm);
}

/* Rule K2: an idle worker whose file vanished finds the new one, not only at its next renewal. */
static void test_file_replaced(void **state)
{
    pool *p = *state;

    pool_push(p, "note", 0, NULL);
    pool_start(p, "processes=1 lease=600");
    wait_until(pool_ledger(p, "end note") == 1, 10);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 10);
    make_anew(p);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 2, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 10), 0);
}

/* Rule H2. */
static void test_pause_gives_back(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 25, NULL, 200);
    pool_start(p, "processes=1 prefetch=20");
    wait_until(pool_ledger(p, "end nap") >= 10, 10);
    pool_signal(p, SIGUSR2);
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) == 0, 2);
    assert_true(pool_stat(p, JOBQ_STAT_READY) > 0);
    pool_signal(p, SIGCONT);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 10), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 200);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pool_set_up, pool_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_results_survive_an_outage),
        TEST(test_gives_up),
        TEST(test_renewals_are_no_comfort),
        TEST(test_term_while_away),
        TEST(test_short_beside_long),
        TEST(test_nothing_hoarded_behind_long),
        TEST(test_last_tries),
        TEST(test_dispatcher_killed_under_load),
        TEST(test_lease_lost),
        TEST(test_pause_gives_back),
        TEST(test_file_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
