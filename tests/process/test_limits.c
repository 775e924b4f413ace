/* SPDX-License-Identifier: MIT
 *
 * Time limits from outside (rules I1, I2; cases B050, B074, B078).
 */
#include "harness/stores.h"
#include "process/pool.h"

#include "util/clock.h"

/* The exception comes at T, also out of a sleep: SIGURG ends it. */
static void test_soft(void **state)
{
    pool *p = *state;
    const int64_t start_ms = jobq__clock_mono_ms();
    char nap[129], sleepy[129];

    strcpy(nap, pool_push(p, "nap", 30000, "timeout=0.3 backoff=100"));
    strcpy(sleepy, pool_push(p, "sleepy", 30, "timeout=0.3 backoff=100"));
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1 timeout_grace=20"), 0);
    assert_true(jobq__clock_mono_ms() - start_ms < 15000);
    assert_string_equal(pool_job(p, nap), "delayed 1 0 1");
    assert_string_equal(pool_job(p, sleepy), "delayed 1 0 1");
    assert_true(pool_said(p, "Timed out: "));
    assert_false(pool_said(p, "by signal"));
}

/* Deaf: killed when it could not be delivered within min(1 s, grace); the next job runs. */
static void test_hard(void **state)
{
    pool *p = *state;
    const int64_t start_ms = jobq__clock_mono_ms();
    char deaf[129];

    strcpy(deaf, pool_push(p, "deaf", 60000, "timeout=0.3 backoff=100"));
    pool_push_many(p, "note", 0, NULL, 5);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1 timeout_grace=30"), 0);
    assert_true(jobq__clock_mono_ms() - start_ms >= 1300);
    assert_true(jobq__clock_mono_ms() - start_ms < 20000);
    assert_string_equal(pool_job(p, deaf), "delayed 1 0 1");
    assert_int_equal(pool_ledger(p, "end note"), 5);
    assert_true(pool_said(p, "Timed out: "));
}

/* Delivered and swallowed: the full grace, then the kill. */
static void test_swallowed(void **state)
{
    pool *p = *state;
    const int64_t start_ms = jobq__clock_mono_ms();
    char id[129];

    strcpy(id, pool_push(p, "stubborn", 60000, "timeout=0.2 backoff=100"));
    assert_int_equal(pool_run(p, "stop_when_empty=1 timeout_grace=1.5"), 0);
    assert_true(jobq__clock_mono_ms() - start_ms >= 1700);
    assert_int_equal(pool_ledger(p, "swallowed"), 1); /* asked once */
    assert_string_equal(pool_job(p, id), "delayed 1 0 1");
}

/* Rule I2: it returned normally within the grace: done. */
static void test_finished_within_grace(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "stubborn", 600, "timeout=0.2"));
    assert_int_equal(pool_run(p, "stop_when_empty=1 timeout_grace=30"), 0);
    assert_string_equal(pool_job(p, id), "gone");
    assert_int_equal(pool_ledger(p, "end stubborn"), 1);
}

/* Case B050: the processes it started go with it, before the job can run again. */
static void test_group_is_killed(void **state)
{
    pool *p = *state;

    pool_push(p, "program", 60000, "timeout=0.3 backoff=100");
    assert_int_equal(pool_run(p, "stop_when_empty=1 timeout_grace=0.2"), 0);
    assert_int_equal(pool_ledger(p, "end program"), 0);
    wait_until(kill(-pool_runner(p, "program program"), 0) != 0, 10); /* nobody left in its group */
}

static void test_fail_on_timeout(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "deaf", 60000, "timeout=0.1"));
    assert_int_equal(pool_run(p, "stop_when_empty=1 timeout_grace=0.1 fail_on_timeout=1"), 0);
    assert_string_equal(pool_job(p, id), "dead 1 0 1");
}

/* Case B074, short: a pool of four whose jobs all overrun keeps its size and ends. */
static void test_all_overrun(void **state)
{
    pool *p = *state;

    pool_push_many(p, "deaf", 60000, "timeout=0.02 tries=1", 100);
    pool_push_many(p, "stubborn", 60000, "timeout=0.02 tries=1", 100);
    pool_start(p, "processes=4 stop_when_empty=1 timeout_grace=0.05");
    assert_int_equal(pool_wait(p, 120), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 200);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_ledger(p, "begin"), 200);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_soft),
        STORE_TEST(test_hard),
        STORE_TEST(test_swallowed),
        STORE_TEST(test_finished_within_grace),
        STORE_TEST(test_group_is_killed),
        STORE_TEST(test_fail_on_timeout),
    };
    /* the store plays no part in these */
    const struct CMUnitTest others[] = {
        cmocka_unit_test_setup_teardown(test_all_overrun, pool_set_up, pool_tear_down),
    };
    const int failed = stores_run_all("process/limits", tests, sizeof(tests) / sizeof(tests[0]),
                                      pool_set_up, pool_tear_down);

    return failed + cmocka_run_group_tests_name("process/limits", others, NULL, NULL);
}
