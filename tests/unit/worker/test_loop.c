/* SPDX-License-Identifier: MIT
 *
 * When `looping` and `idle` are due (rule M1), on a clock of the test's own.
 */
#include "harness/harness.h"

#include <jobqueue/jobqueue.h>

#include "worker/worker.h"

enum { SLEEP_MS = 1000 }; /* the option's default */

static jobq_worker *worker;
static jobq_event event, *said;
static int64_t now_ms;

static int set_up(void **state)
{
    jobq_queue *queue;

    assert_ok(jobq_queue_new("memory:", NULL, &queue));
    *state = queue;
    assert_ok(jobq_worker_new(queue, NULL, &worker));
    worker->run_conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq__loop_listen(worker, "looping");
    jobq__loop_listen(worker, "idle");
    now_ms = 1000000;
    return 0;
}

static int tear_down(void **state)
{
    jobq_worker_free(worker);
    jobq_queue_free(*state);
    return 0;
}

static bool asks_before_job(void)
{
    return jobq__loop_before_job(worker, &event, now_ms, &said) == JOBQ_STEP_EVENT;
}

static bool asks_by_time(void)
{
    return jobq__loop_by_time(worker, &event, now_ms, &said) == JOBQ_STEP_EVENT;
}

static bool tells_idle(void)
{
    return jobq__loop_idle(worker, &event, &said) == JOBQ_STEP_EVENT;
}

/* rule M1: asked before each job, once; what was answered for one is no answer for the next. */
static void test_m1_before_each_job(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(asks_before_job());
        assert_string_equal(said->name, "looping");
        assert_false(asks_before_job());
        jobq__loop_begun(worker);
    }
}

/* rule M1: a job that comes while listeners of idle are busy is one more question: the answer
 * before was about another moment. */
static void test_m1_after_idle(void **state)
{
    (void)state;
    assert_true(asks_by_time());
    assert_true(tells_idle());
    assert_string_equal(said->name, "idle");
    assert_false(tells_idle());
    assert_true(asks_before_job());
    jobq__loop_begun(worker);
    assert_true(tells_idle());
}

/* rule M1: every `sleep` while there is no job. */
static void test_m1_by_time(void **state)
{
    (void)state;
    assert_true(asks_by_time());
    now_ms += SLEEP_MS - 1;
    assert_false(asks_by_time());
    assert_int_equal(jobq__loop_wait_ms(worker, now_ms, 60000), 1);
    now_ms++;
    assert_true(asks_by_time());
}

/* rule M1: a veto holds until the next question; nobody is told that there is nothing to do. */
static void test_m1_veto(void **state)
{
    (void)state;
    assert_true(asks_by_time());
    jobq_worker_veto(worker);
    assert_true(worker->loop.vetoed);
    assert_false(tells_idle());
    now_ms += SLEEP_MS;
    assert_true(asks_by_time());
    assert_false(worker->loop.vetoed);
}

/* Nobody listens: nothing is asked. */
static void test_m1_nobody_listens(void **state)
{
    (void)state;
    worker->loop.asks = worker->loop.tells = false;
    assert_false(asks_before_job());
    assert_false(asks_by_time());
    assert_false(tells_idle());
    assert_int_equal(jobq__loop_wait_ms(worker, now_ms, 60000), 60000);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_m1_before_each_job), ROW(test_m1_after_idle),
        ROW(test_m1_by_time),         ROW(test_m1_veto),
        ROW(test_m1_nobody_listens),
    };

    return cmocka_run_group_tests_name("worker/loop", tests, NULL, NULL);
}
