/* SPDX-License-Identifier: MIT
 *
 * Many jobs that may run only once more (rule C5): each is handed out once, none begins twice
 * whatever is killed, the one that did the damage is blamed, and those that never began are not.
 */
#include "harness/stores.h"
#include "process/crowd.h"

static int set_up(void **state)
{
    static pool p;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    pool_open(&p);
    *state = &p;
    return 0;
}

/* ---- what can be seen afterwards ------------------------------------------------------------- */

enum { DEAD_MOST = 5000 };

typedef struct {
    int count, crashed, begun; /* dead ones; for a crash; whose handler had begun */
    int64_t deliveries;
} dead_sum;

static void add_one(const pool *p, const jobq_info *info, const char *name, dead_sum *sum)
{
    char line[200];

    snprintf(line, sizeof(line), "begin %s %s ", name, jobq_info_text(info, JOBQ_INFO_ID, NULL));
    sum->count++;
    sum->crashed += strcmp(jobq_info_text(info, JOBQ_INFO_REASON, NULL), "crashed") == 0;
    sum->begun += p && pool_ledger(p, line) > 0;
    sum->deliveries += jobq_info_number(info, JOBQ_INFO_DELIVERIES);
}

/* p NULL: nobody asks whether they began. */
static dead_sum add_dead(jobq_queue *queue, const pool *p, const char *name)
{
    const char *next = NULL;
    dead_sum sum = {0};
    char after[300];
    jobq_list *list;

    do {
        assert_ok(jobq_queue_dead(queue, NULL, 1000, next, &list));
        for (size_t i = 0; i < jobq_list_count(list); i++)
            if (strcmp(jobq_info_text(jobq_list_get(list, i), JOBQ_INFO_NAME, NULL), name) == 0)
                add_one(p, jobq_list_get(list, i), name, &sum);
        next = jobq_list_next(list);
        if (next)
            next = strncpy(after, next, sizeof(after) - 1);
        jobq_list_free(list);
    } while (next && sum.count < DEAD_MOST);
    return sum;
}

/* How many stand as running in the record of the one worker there is. */
static int64_t count_listed(pool *p)
{
    jobq_workers *list;
    int64_t n = -1;

    assert_ok(jobq_queue_workers(p->queue, &list));
    if (jobq_workers_count(list) == 1)
        n = jobq_workers_number(list, 0, JOBQ_WORKERS_RUNNING);
    jobq_workers_free(list);
    return n;
}

/* The host is gone: nobody is left to settle anything. */
static void kill_all(pool *p)
{
    const pid_t dispatcher = pool_dispatcher(p);
    pid_t pids[10] = {p->pid, dispatcher};
    const size_t n = 2 + pool_children(p, pids + 2, 8);

    for (size_t i = 0; i < n; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGSTOP);
    for (size_t i = n; i-- > 0;)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    assert_int_equal(pool_wait(p, 20), 1000 + SIGKILL);
    wait_until(pool_is_all_gone(p), 10);
}

/* ---- handed out once ------------------------------------------------------------------------- */

enum { MANY = 1500 };

/* Rule C4: as many hand-outs as attempts. Where the machine stood still for long some go back
 * once. */
static void check_hand_outs(pool *p, const char *name, int jobs)
{
    const dead_sum sum = add_dead(p->queue, NULL, name);

    assert_int_equal(sum.count, jobs);
    assert_int_equal(pool_ledger(p, "begin"), jobs);
    assert_in_range(sum.deliveries, jobs, jobs + jobs / 2);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

static void test_c5_handed_out_once(void **state)
{
    pool *p = *state;

    pool_push_many(p, "fail", 0, "tries=1", MANY);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    check_hand_outs(p, "fail", MANY);
}

static void test_c5_handed_out_once_by_four(void **state)
{
    pool *p = *state;

    pool_push_many(p, "fail", 0, "tries=1", MANY);
    assert_int_equal(pool_run(p, "processes=4 stop_when_empty=1"), 0);
    check_hand_outs(p, "fail", MANY);
}

/* Slower handlers, and more prefetched than they run in a quarter of a second. */
static void test_c5_slow_ones(void **state)
{
    pool *p = *state;

    pool_push_many(p, "spoil", 5, "tries=1", 200);
    assert_int_equal(pool_run(p, "processes=1 prefetch=100 stop_when_empty=1"), 0);
    check_hand_outs(p, "spoil", 200);
}

/* The last crash that is allowed goes the same way. */
static void test_c5_last_crash(void **state)
{
    pool *p = *state;

    pool_push_many(p, "gives_up", 0, "tries=0", MANY);
    assert_int_equal(pool_run(p, "processes=2 max_crashes=1 stop_when_empty=1"), 0);
    check_hand_outs(p, "gives_up", MANY);
}

/* Beside others, which are not held up by them. */
static void test_c5_mixed(void **state)
{
    pool *p = *state;

    for (int i = 0; i < 5; i++) {
        pool_push_many(p, "fail", 0, "tries=1", 100);
        pool_push_many(p, "note", 0, NULL, 100);
    }
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 500);
    assert_int_equal(pool_ledger(p, "begin note"), 500);
    assert_in_range(add_dead(p->queue, NULL, "fail").deliveries, 500, 750);
}

/* ---- blame ----------------------------------------------------------------------------------- */

/* A child's death is its job's, however many waited in that child. */
static void test_c5_child_dies(void **state)
{
    pool *p = *state;

    for (int i = 0; i < 4; i++) {
        pool_push_many(p, "note", 0, "tries=1", 100);
        pool_push(p, "crash", SIGSEGV, "tries=1");
    }
    pool_push_many(p, "note", 0, "tries=1", 100);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 500);
    assert_int_equal(pool_ledger(p, "begin note"), 500);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 4);
    assert_int_equal(add_dead(p->queue, NULL, "crash").crashed, 4);
}

/* Short ones are announced a few ahead, but not for long: when the whole worker vanishes, only what
 * ran is blamed for it. */
static void test_c5_worker_vanishes(void **state)
{
    pool *p = *state;
    dead_sum sum;

    pool_push_many(p, "note", 0, "tries=1", 300);
    pool_push_many(p, "deaf", 60000, "tries=1", 2);
    pool_push_many(p, "note", 0, "tries=1", 300);
    pool_start(p, "processes=2 lease=1");
    wait_until(pool_ledger(p, "begin deaf") == 2, 30);
    wait_until(count_listed(p) == 2, 10);
    kill_all(p);
    pool_start(p, "processes=2 lease=1");
    wait_until(pool_ledger(p, "end note") == 600, 30);
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == 2, 30);
    assert_int_equal(pool_ledger(p, "begin note"), 600);
    assert_int_equal(pool_ledger(p, "begin deaf"), 2);
    sum = add_dead(p->queue, p, "deaf");
    assert_int_equal(sum.crashed, 2);
    assert_int_equal(sum.begun, 2);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

/* Where each takes a while nobody is announced ahead at all. */
static void test_c5_slow_worker_vanishes(void **state)
{
    pool *p = *state;
    dead_sum sum;

    pool_push_many(p, "nap", 40, "tries=1", 60);
    pool_start(p, "processes=2 lease=1");
    wait_until(pool_ledger(p, "end nap") >= 10, 30);
    kill_all(p);
    assert_int_equal(pool_run(p, "processes=4 lease=1 stop_when_empty_for=2.5"), 0);
    sum = add_dead(p->queue, p, "nap");
    assert_int_equal(pool_ledger(p, "begin nap"), 60 - (sum.count - sum.begun));
    assert_in_range(sum.count, 0,
                    2); /* what ran; what had just been told of and did not come to it */
    assert_int_equal(sum.crashed, sum.count);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* Never twice: whatever is killed whenever, none of them begins again. */
static void test_c5_never_twice(void **state)
{
    enum { JOBS = 3000, KILLS = 4 };
    pool *p = *state;
    dead_sum sum;

    pool_push_many(p, "note", 0, "tries=1", JOBS);
    for (int i = 0; i < KILLS; i++) {
        const int until = pool_ledger(p, "begin note") + 200;

        pool_start(p, "processes=2 lease=1");
        wait_until(pool_ledger(p, "begin note") >= until || pool_stat(p, JOBQ_STAT_BACKLOG) == 0,
                   30);
        if (i % 2)
            pool_kill(pool_dispatcher(p));
        kill_all(p);
    }
    assert_int_equal(pool_run(p, "processes=2 lease=1 stop_when_empty_for=2.5"), 0);
    sum = add_dead(p->queue, NULL, "note");
    print_message("%d dead of %d, of which %d did not begin\n", sum.count, JOBS,
                  JOBS - pool_ledger(p, "begin note"));
    assert_int_equal(crowd_count_ids(p, "begin"), pool_ledger(p, "begin note"));
    assert_true(pool_ledger(p, "begin note") + sum.count >= JOBS);
    assert_int_equal(sum.crashed, sum.count);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_c5_handed_out_once), STORE_TEST(test_c5_handed_out_once_by_four),
        STORE_TEST(test_c5_slow_ones),       STORE_TEST(test_c5_last_crash),
        STORE_TEST(test_c5_mixed),           STORE_TEST(test_c5_child_dies),
        STORE_TEST(test_c5_worker_vanishes), STORE_TEST(test_c5_slow_worker_vanishes),
        STORE_TEST(test_c5_never_twice),
    };

    return stores_run_all("process/last_tries", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          pool_tear_down);
}
