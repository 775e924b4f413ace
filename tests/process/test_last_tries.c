/* SPDX-License-Identifier: MIT
 *
 * Many jobs that may run only once more (rule C5): each is handed out once, none begins twice
 * whatever is killed, the one that did the damage is blamed, and those that never began are not.
 */
#include "harness/stores.h"
#include "process/crowd.h"

#include <sys/stat.h>
#include <time.h>

#include "util/clock.h"

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

/* What a worker has held for 2 s, or for a quarter of one when none began for a second, goes back
 * for other workers and is handed out once more. */
enum { MANY = 1500, HELD_FOR_LONG_MS = 1900, NONE_BEGAN_MS = 900 };

/* Runs so many to their end. Was the machine quick enough for none to go back? */
static bool run_quickly(pool *p, const char *options, int jobs)
{
    int64_t first_ms = 0, last_ms = 0, longest_ms = 0, now_ms;
    int begun = 0, n;

    pool_start(p, options);
    for (; begun < jobs; usleep(5000)) {
        n = pool_ledger(p, "begin");
        now_ms = jobq__clock_mono_ms();
        if (begun > 0 && now_ms - last_ms > longest_ms)
            longest_ms = now_ms - last_ms;
        if (n > begun)
            last_ms = now_ms;
        if (begun == 0)
            first_ms = now_ms;
        begun = n;
        assert_true(now_ms - first_ms < 60000);
    }
    assert_int_equal(pool_wait(p, 60), 0);
    print_message("%d began in %d ms, none for %d ms\n", jobs, (int)(last_ms - first_ms),
                  (int)longest_ms);
    return last_ms - first_ms < HELD_FOR_LONG_MS && longest_ms < NONE_BEGAN_MS;
}

/* Rule C4: as many hand-outs as attempts. */
static void check_deliveries(int64_t deliveries, int jobs, bool quickly)
{
    print_message("%d jobs, %d hand-outs\n", jobs, (int)deliveries);
    if (quickly)
        assert_int_equal(deliveries, jobs);
    else
        assert_in_range(deliveries, jobs, 2 * jobs);
}

static void run_all_once(pool *p, const char *options, const char *name, int jobs)
{
    const bool quickly = run_quickly(p, options, jobs);
    const dead_sum sum = add_dead(p->queue, NULL, name);

    assert_int_equal(sum.count, jobs);
    assert_int_equal(pool_ledger(p, "begin"), jobs);
    check_deliveries(sum.deliveries, jobs, quickly);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

static void test_c5_handed_out_once(void **state)
{
    pool *p = *state;

    pool_push_many(p, "fail", 0, "tries=1", MANY);
    run_all_once(p, "processes=1 stop_when_empty=1", "fail", MANY);
}

static void test_c5_handed_out_once_by_four(void **state)
{
    pool *p = *state;

    pool_push_many(p, "fail", 0, "tries=1", MANY);
    run_all_once(p, "processes=4 stop_when_empty=1", "fail", MANY);
}

/* Slower handlers, and more prefetched than they run in a quarter of a second. */
static void test_c5_slow_ones(void **state)
{
    pool *p = *state;

    pool_push_many(p, "spoil", 5, "tries=1", 200);
    run_all_once(p, "processes=1 prefetch=100 stop_when_empty=1", "spoil", 200);
}

/* The last crash that is allowed goes the same way. */
static void test_c5_last_crash(void **state)
{
    pool *p = *state;

    pool_push_many(p, "gives_up", 0, "tries=0", MANY);
    run_all_once(p, "processes=2 max_crashes=1 stop_when_empty=1", "gives_up", MANY);
}

/* Beside others, which are not held up by them. */
static void test_c5_mixed(void **state)
{
    pool *p = *state;
    bool quickly;

    for (int i = 0; i < 5; i++) {
        pool_push_many(p, "fail", 0, "tries=1", 100);
        pool_push_many(p, "note", 0, NULL, 100);
    }
    quickly = run_quickly(p, "processes=2 stop_when_empty=1", 1000);
    assert_int_equal(pool_ledger(p, "end note"), 500);
    assert_int_equal(pool_ledger(p, "begin note"), 500);
    check_deliveries(add_dead(p->queue, NULL, "fail").deliveries, 500, quickly);
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

/* How long ago the ledger got its last line. */
static int64_t quiet_ms(const pool *p)
{
    struct timespec now;
    struct stat st;

    assert_int_equal(stat(p->ledger, &st), 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - st.st_mtim.tv_sec) * 1000 + (now.tv_nsec - st.st_mtim.tv_nsec) / 1000000;
}

enum { SHORT_ONES = 60, ROUNDS = 10, IN_TIME_MS = 800 };

/* One that takes long among short ones. Was it seen alone in the record in time? What waits behind
 * one for a second is taken back in any case. */
static bool is_alone_in_time(pool *p, int round)
{
    bool in_time;

    pool_push_many(p, "note", 0, "tries=1", SHORT_ONES);
    pool_push(p, "deaf", 60000, "tries=1");
    pool_push_many(p, "note", 0, "tries=1", SHORT_ONES);
    pool_start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "begin deaf") == round, 30);
    while (!(in_time = count_listed(p) == 1) && quiet_ms(p) < IN_TIME_MS)
        ;
    in_time = in_time && quiet_ms(p) < IN_TIME_MS;
    wait_until(count_listed(p) == 1, 10);
    return in_time;
}

/* Those that were announced behind one are struck off as soon as it takes long: the worker that
 * vanishes then leaves them as they were, and they run. */
static void test_c5_struck_off(void **state)
{
    pool *p = *state;
    bool in_time = false;
    dead_sum sum;

    for (int round = 1; !in_time; round++) {
        assert_in_range(round, 1, ROUNDS);
        in_time = is_alone_in_time(p, round);
        kill_all(p);
        pool_start(p, "processes=1 lease=1");
        wait_until(pool_ledger(p, "end note") == 2 * SHORT_ONES * round, 30);
        wait_until(pool_stat(p, JOBQ_STAT_DEAD) == round, 30);
        pool_signal(p, SIGTERM);
        assert_int_equal(pool_wait(p, 20), 0);
        assert_int_equal(pool_ledger(p, "begin note"), 2 * SHORT_ONES * round);
        assert_int_equal(pool_ledger(p, "begin deaf"), round);
        sum = add_dead(p->queue, p, "deaf");
        assert_int_equal(sum.crashed, round);
    }
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
        STORE_TEST(test_c5_handed_out_once),
        STORE_TEST(test_c5_handed_out_once_by_four),
        STORE_TEST(test_c5_slow_ones),
        STORE_TEST(test_c5_last_crash),
        STORE_TEST(test_c5_mixed),
        STORE_TEST(test_c5_child_dies),
        STORE_TEST(test_c5_worker_vanishes),
        STORE_TEST(test_c5_struck_off),
        STORE_TEST(test_c5_slow_worker_vanishes),
        STORE_TEST(test_c5_never_twice),
    };

    return stores_run_all("process/last_tries", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          pool_tear_down);
}
