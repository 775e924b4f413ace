/* SPDX-License-Identifier: MIT
 *
 * A pool at work: everything runs once, limits end it exactly, children are replaced without a gap.
 */
#include "harness/stores.h"
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

/* What the ledger's lines say, in their order: "begin note", "born child", ... */
static int read_ledger(const pool *p, char lines[][32], pid_t *pids, int most)
{
    FILE *f = fopen(p->ledger, "r");
    char what[16], name[16], id[160];
    int n = 0, pid;

    while (f && n < most && fscanf(f, "%15s %15s %159s %d", what, name, id, &pid) == 4) {
        snprintf(lines[n], 32, "%.12s %.12s", what, name);
        pids[n++] = pid;
    }
    if (f)
        fclose(f);
    return n;
}

/* Rule G7: children take 700 ms to start. The successor is there when the fourth job ends, which is
 * the last one of the first child, and waits for that: with one process no two jobs run at once. */
static void test_g7_no_gap(void **state)
{
    static const char *const order[] = {"born child", "begin note", "end note",   "begin note",
                                        "end note",   "begin note", "end note",   "begin deaf",
                                        "born child", "end deaf",   "begin note", "end note"};
    pool *p = *state;
    char lines[32][32];
    pid_t pids[32];
    int n;

    p->start_mode = "slow";
    pool_push_many(p, "note", 0, NULL, 3);
    pool_push(p, "deaf", 2500, NULL);
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=1 recycle_jobs=4 stop_when_empty=1"), 0);
    n = read_ledger(p, lines, pids, 32);
    assert_in_range(n, 12, 12);
    for (int i = 0; i < n; i++)
        assert_string_equal(lines[i], order[i]);
    assert_int_equal(pids[10], pids[8]);
    assert_int_not_equal(pids[10], pids[7]);
}

/* Rule G1: however short the jobs are, no child runs more of them than it may. */
static void test_g1_recycle_exactly(void **state)
{
    pool *p = *state;
    char lines[400][32];
    pid_t pids[400];
    int n;

    pool_push_many(p, "note", 0, NULL, 60);
    assert_int_equal(pool_run(p, "processes=2 recycle_jobs=5 stop_when_empty=1"), 0);
    n = read_ledger(p, lines, pids, 400);
    assert_int_equal(pool_ledger(p, "end note"), 60);
    for (int i = 0; i < n; i++) {
        int same = 0;

        for (int k = 0; k < n; k++)
            same += pids[k] == pids[i] && strcmp(lines[k], "begin note") == 0;
        assert_in_range(same, 1, 5);
    }
}

/* Rules G1, G7: an idle child is replaced, too, when its time is over. */
static void test_g1_recycle_idle(void **state)
{
    pool *p = *state;
    pid_t before = 0, now = 0;

    pool_start(p, "processes=1 recycle_time=0.3");
    wait_until(pool_children(p, &before, 1) == 1, 10);
    wait_until(pool_children(p, &now, 1) == 1 && kill(before, 0) != 0, 20);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 1, 10);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_false(pool_said(p, "error: "));
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

/* Rule G7: children that come through their start and die before their first job follow each other
 * ever more slowly; when the cause is gone the pool works. */
static void test_g7_crash_loop(void **state)
{
    pool *p = *state;
    const int64_t began_ms = jobq__clock_mono_ms();
    char path[300];
    int64_t took_ms;

    p->start_mode = "dies";
    snprintf(path, sizeof(path), "%s.deadly", p->ledger);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "died child") >= 6, 30);
    took_ms = jobq__clock_mono_ms() - began_ms;
    assert_true(took_ms >= 50 + 100 + 200 + 400 + 800);
    assert_true(pool_said(p, "error: a child died before its first job: killed by signal 9"));
    unlink(path);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_true(pool_said(p, "Ran 1 job"));
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
    wait_until(pool_kill(pool_dispatcher(p)), 10);
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

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_every_job_once),
        STORE_TEST(test_once),
        STORE_TEST(test_once_waits_for_none),
        STORE_TEST(test_max_jobs_exact),
        STORE_TEST(test_max_time),
        STORE_TEST(test_recycle),
        STORE_TEST(test_g7_no_gap),
        STORE_TEST(test_g1_recycle_exactly),
        STORE_TEST(test_g1_recycle_idle),
        STORE_TEST(test_recycle_time),
        STORE_TEST(test_recycle_memory),
        STORE_TEST(test_bodies),
        STORE_TEST(test_last_try_behind_long_job),
        STORE_TEST(test_stop_from_handler),
        STORE_TEST(test_second_run),
    };
    /* the store plays no part in these */
    const struct CMUnitTest others[] = {
        cmocka_unit_test_setup_teardown(test_open_file_refused, pool_set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_output_descriptor, pool_set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_output_function_refused, pool_set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_no_child_survives, pool_set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_retired_at_start, pool_set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_memory_at_start, pool_set_up, pool_tear_down),
        cmocka_unit_test_setup_teardown(test_g7_crash_loop, pool_set_up, pool_tear_down),
    };
    const int failed = stores_run_all("process/pool", tests, sizeof(tests) / sizeof(tests[0]),
                                      pool_set_up, pool_tear_down);

    return failed + cmocka_run_group_tests_name("process/pool", others, NULL, NULL);
}
