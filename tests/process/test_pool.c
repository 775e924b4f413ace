/* SPDX-License-Identifier: MIT
 *
 * A pool at work: everything runs once, limits end it exactly, children are replaced without a gap.
 */
#include "process/pool.h"

#include <fcntl.h>

#include "util/clock.h"

static void test_every_job_once(void **state)
{
    pool *p = *state;

    pool_push_many(p, "note", 0, NULL, 500);
    assert_int_equal(pool_run(p, "processes=3 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 500);
    assert_int_equal(pool_ledger(p, "end note"), 500);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_true(pool_said(p, "watching default (3 processes)"));
    assert_true(pool_said(p, "Stopping: Nothing left to do"));
    assert_true(pool_said(p, "Ran 500 jobs"));
    assert_true(pool_is_all_gone(p));
}

/* Rule G3. */
static void test_once(void **state)
{
    pool *p = *state;

    pool_push_many(p, "note", 0, NULL, 20);
    assert_int_equal(pool_run(p, "processes=3 once=1"), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 1);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 19);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED), 0);
}

static void test_once_waits_for_none(void **state)
{
    pool *p = *state;

    assert_int_equal(pool_run(p, "once=1"), 0);
    assert_int_equal(pool_ledger(p, "begin"), 0);
}

/* Rule G3: never exceeded, with children enough to run many at once. */
static void test_max_jobs_exact(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 3, NULL, 60);
    assert_int_equal(pool_run(p, "processes=4 max_jobs=17"), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 17);
    assert_int_equal(pool_ledger(p, "end nap"), 17);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 43);
    assert_true(pool_said(p, "Stopping: ran 17 jobs"));
    assert_true(pool_said(p, "Ran 17 jobs"));
}

static void test_max_time(void **state)
{
    pool *p = *state;
    const int64_t start_ms = jobq__clock_mono_ms();

    assert_int_equal(pool_run(p, "processes=2 max_time=1"), 0);
    assert_true(jobq__clock_mono_ms() - start_ms >= 1000);
    assert_true(pool_said(p, "Stopping: been going for 1s"));
}

/* Rule G7: each child runs three jobs; while one leaves its successor is there already. */
static void test_recycle(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 5, NULL, 60);
    assert_int_equal(pool_run(p, "processes=2 recycle_jobs=3 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 60);
    assert_int_equal(pool_ledger(p, "end nap"), 60);
    assert_true(pool_runners(p, "begin nap") >= 20);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
}

static void test_recycle_time(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 60, NULL, 10);
    assert_int_equal(pool_run(p, "recycle_time=0.1 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 10);
    assert_true(pool_runners(p, "begin nap") >= 4);
}

/* Rule G1: too much private memory after a job; looked at four times a second. */
static void test_recycle_memory(void **state)
{
    pool *p = *state;

    for (int i = 0; i < 3; i++) {
        pool_push(p, "grow", 40, NULL);
        pool_push(p, "nap", 300, NULL);
    }
    assert_int_equal(pool_run(p, "memory=20 prefetch=0 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end grow"), 3);
    assert_int_equal(pool_ledger(p, "end nap"), 3);
    assert_true(pool_runners(p, "begin") >= 3);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
}

/* Rule A5: small bodies travel in the ring, large ones by the slot's area; both arrive as they
 * were. */
static void test_bodies(void **state)
{
    static const int sizes[] = {3, 100, 65535, 65536, 65537, 70000, 300000, 1000000};
    pool *p = *state;

    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            pool_push(p, "body", sizes[i], "tries=1");
    pool_push_many(p, "body", 3000, "tries=1", 400); /* more than a ring holds */
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end body"), 440);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* A job on its last try waits for an idle child; one that waited too long behind a long job goes
 * back to the store and must come out again when the child is free. */
static void test_last_try_behind_long_job(void **state)
{
    pool *p = *state;

    pool_push(p, "nap", 2500, NULL);
    pool_push_many(p, "note", 0, "tries=1", 3);
    pool_start(p, "processes=1 stop_when_empty=1");
    assert_int_equal(pool_wait(p, 30), 0);
    assert_int_equal(pool_ledger(p, "end note"), 3);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* Rule G7, J1: the reason is told and the code is 1. */
static void test_no_child_survives(void **state)
{
    pool *p = *state;

    p->start_mode = "exit";
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=2"), 1);
    assert_true(pool_said(p, "Stopping: no child survives its start"));
    assert_true(pool_said(p, "error: no child survives its start: exit status 7"));
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 1);
    assert_true(pool_is_all_gone(p));
}

/* Rule G7: nor does one that asks to be replaced at its start, again and again. */
static void test_retired_at_start(void **state)
{
    pool *p = *state;

    p->start_mode = "retire";
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=2"), 1);
    assert_true(pool_said(p, "error: no child survives its start: a listener gave up"));
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 1);
}

/* Rule G1: over its memory before its first job is an error of the start. */
static void test_memory_at_start(void **state)
{
    pool *p = *state;

    p->start_mode = "fat";
    assert_int_equal(pool_run(p, "memory=10"), 1);
    assert_true(pool_said(p, "MB of private memory before its first job; memory allows 10"));
}

/* Case B083, rule G5: a handler asks through the API; it and its neighbours finish, nothing more
 * begins. */
static void test_stop_from_handler(void **state)
{
    pool *p = *state;

    pool_push(p, "stops", 200, NULL);
    pool_push_many(p, "nap", 300, NULL, 20);
    assert_int_equal(pool_run(p, "processes=2"), 0);
    assert_int_equal(pool_ledger(p, "end stops"), 1);
    assert_int_equal(pool_ledger(p, "begin nap"), pool_ledger(p, "end nap"));
    assert_true(pool_ledger(p, "begin nap") <= 2);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED), 0);
    assert_true(pool_said(p, "Stopping: asked to shut down"));
}

/* Case B099: the file is open elsewhere in this process. */
static void test_open_file_refused(void **state)
{
    pool *p = *state;
    int fd = open(p->db, O_RDWR);

    assert_int_equal(pool_run(p, "once=1"), 100 - JOBQ_EUNSUPPORTED);
    assert_true(pool_said(p, "open elsewhere"));
    close(fd);
}

static void test_second_run(void **state)
{
    pool *p = *state;

    for (int i = 1; i <= 2; i++) {
        pool_push(p, "note", 0, NULL);
        assert_int_equal(pool_run(p, "stop_when_empty=1"), 0);
        assert_int_equal(pool_ledger(p, "end note"), i);
    }
}

/* Rule G4: a descriptor as output, for the master, the dispatcher and the one that replaces it. */
static void test_output_descriptor(void **state)
{
    pool *p = *state;

    p->start_mode = "descriptor";
    pool_start(p, "processes=1 max_jobs=2");
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "[") == 1, 20); /* "[time] Processed: ..." */
    assert_int_equal(kill(pool_dispatcher(p), SIGKILL), 0);
    wait_until(pool_said(p, "another takes over"), 20); /* errors stay on stderr */
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "["), 2);
    assert_int_equal(pool_ledger(p, "Worker "), 1);
    assert_int_equal(pool_ledger(p, "Stopping: ran 2 jobs"), 1);
    assert_int_equal(pool_ledger(p, "Ran 2 jobs"), 1);
    assert_false(pool_said(p, "Processed") || pool_said(p, "Ran "));
}

static void take_line(void *payload, const char *text, size_t n)
{
    (void)payload, (void)text, (void)n;
}

static void count_destroy(void *payload)
{
    ++*(int *)payload;
}

/* Rule G4: a function as output is for inline workers; its payload is given back once. */
static void test_output_function_refused(void **state)
{
    pool *p = *state;
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_worker *worker = NULL;
    int code = 0, destroyed = 0, fds[2];

    assert_ok(jobq_conf_set(conf, "processes", "1", 1));
    assert_ok(jobq_worker_new(p->queue, conf, &worker));
    assert_ok(jobq_worker_set_output_line(worker, take_line, &destroyed, count_destroy));
    assert_code(jobq_worker_start(worker, NULL, 0, NULL, &code), JOBQ_ECONF);
    assert_said("output");
    assert_said("processes = 0");
    assert_string_equal(jobq_error_subject(jobq_error_last()), "output");
    assert_int_equal(destroyed, 0);
    assert_code(jobq_worker_set_output_line(worker, NULL, &destroyed, count_destroy), JOBQ_EINVAL);
    assert_int_equal(destroyed, 1); /* the refused one's */
    assert_int_equal(pipe(fds), 0);
    assert_code(jobq_worker_set_output_fd(worker, fds[0]), JOBQ_EINVAL);
    assert_said("not open for writing");
    assert_ok(jobq_worker_set_output_fd(worker, fds[1]));
    assert_int_equal(destroyed, 2);
    close(fds[0]);
    close(fds[1]);
    assert_code(jobq_worker_set_output_fd(worker, fds[1]), JOBQ_EINVAL);
    assert_said("output: descriptor");
    assert_ok(jobq_worker_set_output_line(worker, take_line, &destroyed, count_destroy));
    jobq_worker_free(worker);
    assert_int_equal(destroyed, 3);
    jobq_conf_free(conf);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_set_up, pool_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_job_once),
        TEST(test_once),
        TEST(test_once_waits_for_none),
        TEST(test_max_jobs_exact),
        TEST(test_max_time),
        TEST(test_recycle),
        TEST(test_recycle_time),
        TEST(test_recycle_memory),
        TEST(test_bodies),
        TEST(test_last_try_behind_long_job),
        TEST(test_no_child_survives),
        TEST(test_retired_at_start),
        TEST(test_memory_at_start),
        TEST(test_stop_from_handler),
        TEST(test_open_file_refused),
        TEST(test_second_run),
        TEST(test_output_descriptor),
        TEST(test_output_function_refused),
    };

    return cmocka_run_group_tests_name("process/pool", tests, NULL, NULL);
}
