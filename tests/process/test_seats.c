/* SPDX-License-Identifier: MIT
 *
 * Several running jobs in one child (rules C5, D1, G1, H1, I1): a child's loop over the step API
 * that has many open at once, as an event loop has. On SQLite and on each server store.
 */
#include "harness/stores.h"
#include "process/pool.h"

#include <poll.h>

#include "util/clock.h"

/* ---- the child ------------------------------------------------------------------------------- */

enum { OPEN_MAX_JOBS = 300 };

/* nap: ends done, or as an interrupt says. stubborn: hears none. soils, fail: ends so. */
typedef struct {
    jobq_job *job; /* NULL = free */
    int64_t end_ms;
    bool hears;
    jobq_ending ending;
} open_job;

static open_job jobs[OPEN_MAX_JOBS];
static int open_count;

static bool is_named(const jobq_job *job, const char *name)
{
    return strcmp(jobq_job_name(job, NULL), name) == 0;
}

/* What happens at once, and to all that are open. */
static void do_harm(const jobq_job *job)
{
    if (is_named(job, "crash"))
        raise(pool_argument(job));
    if (is_named(job, "exit"))
        _exit(pool_argument(job));
    if (is_named(job, "deaf")) /* blocks the whole loop */
        usleep((useconds_t)pool_argument(job) * 1000);
}

static void open_one(jobq_job *job)
{
    char count[16];
    int i = 0;

    while (jobs[i].job)
        i++;
    jobs[i] = (open_job){.job = job,
                         .end_ms = jobq__clock_mono_ms() + pool_argument(job),
                         .hears = is_named(job, "nap"),
                         .ending = is_named(job, "soils")  ? JOBQ_ENDED_CLEANUP_FAILED
                                   : is_named(job, "fail") ? JOBQ_ENDED_FAILED
                                                           : JOBQ_ENDED_DONE};
    if (!is_named(job, "nap") && !is_named(job, "stubborn"))
        jobs[i].end_ms = 0;
    snprintf(count, sizeof(count), "%d", ++open_count);
    pool_note("begin", jobq_job_name(job, NULL), jobq_job_id(job));
    pool_note("open", count, jobq_job_id(job));
    do_harm(job);
}

static void close_one(open_job *one, jobq_ending ending)
{
    jobq_job *job = one->job;

    if (ending == JOBQ_ENDED_DONE)
        pool_note("end", jobq_job_name(job, NULL), jobq_job_id(job));
    if (ending == JOBQ_ENDED_TIMED_OUT)
        pool_note("overdue", jobq_job_name(job, NULL), jobq_job_id(job));
    one->job = NULL;
    open_count--;
    jobq_job_settle(job, ending, -1);
}

static void look_at(open_job *one)
{
    const int kind = one->hears ? jobq_job_interrupted(one->job) : JOBQ_INTERRUPT_NONE;

    if (kind == JOBQ_INTERRUPT_TIMEOUT)
        close_one(one, JOBQ_ENDED_TIMED_OUT);
    else if (kind == JOBQ_INTERRUPT_STOP)
        close_one(one, JOBQ_ENDED_STOPPED);
    else if (jobq__clock_mono_ms() >= one->end_ms)
        close_one(one, one->ending);
}

static void look_at_all(void)
{
    for (int i = 0; i < OPEN_MAX_JOBS; i++)
        if (jobs[i].job)
            look_at(&jobs[i]);
}

/* Idle it is woken by the descriptor alone. */
static void wait_for(jobq_worker *worker)
{
    struct pollfd fd = {.fd = jobq_worker_fd(worker), .events = POLLIN};

    if (fd.fd < 0)
        pool_note("no", "descriptor", "-");
    if (poll(&fd, 1, open_count ? 5 : 5000) == 0 && open_count == 0)
        pool_note("slept", "long", "-");
}

static int loop(jobq_worker *worker)
{
    int code = 0, rc = jobq_worker_start(worker, NULL, 0, NULL, &code);
    jobq_event *event;
    jobq_job *job;

    if (rc < 0 || rc == JOBQ_ROLE_MASTER)
        return rc < 0 ? rc : code;
    while ((rc = jobq_worker_poll(worker, &job, &event)) > 0 || (rc == 0 && open_count > 0)) {
        if (rc == JOBQ_STEP_JOB)
            open_one(job);
        else
            wait_for(worker);
        look_at_all();
    }
    if (rc < 0)
        pool_note("refused", jobq_error_message(jobq_error_last()), "-");
    return jobq_worker_finish(worker);
}

/* ---- the test's side ------------------------------------------------------------------------- */

static int set_up(void **state)
{
    static pool p;

    pool_open(&p);
    p.loop = loop;
    p.handler_options = "async_concurrency=50";
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    pool_close(*state);
    return 0;
}

static void end_worker(pool *p)
{
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
}

/* "crashed shared", "timed_out": how its i-th attempt ended. */
static const char *attempt(pool *p, const char *id, size_t i)
{
    static char text[64];
    const char *word = "none";
    jobq_info *info = NULL;

    assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
    jobq_info_attempt(info, i, NULL, NULL, NULL, &word, NULL, NULL);
    snprintf(text, sizeof(text), "%s%s", word, jobq_info_attempt_shared(info, i) ? " shared" : "");
    jobq_info_free(info);
    return text;
}

static int64_t took_ms(pool *p, const char *options)
{
    const int64_t start_ms = jobq__clock_mono_ms();

    assert_int_equal(pool_run(p, options), 0);
    return jobq__clock_mono_ms() - start_ms;
}

/* 100 naps of half a second: one after the other 50 s, 50 at a time one or two. */
static void test_g1_fifty_at_once(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 500, NULL, 100);
    assert_true(took_ms(p, "processes=1 stop_when_empty=1") < 10000);
    assert_int_equal(pool_ledger(p, "end nap"), 100);
    assert_true(pool_ledger(p, "open 50 ") >= 1);
    assert_int_equal(pool_ledger(p, "open 51 "), 0);
    assert_int_equal(pool_ledger(p, "no descriptor"), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY) + pool_stat(p, JOBQ_STAT_RESERVED), 0);
}

/* The last try of each, which the store is told of before: still many at once. */
static void test_g1_last_tries(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 300, "tries=1", 60);
    assert_true(took_ms(p, "processes=1 stop_when_empty=1") < 10000);
    assert_int_equal(pool_ledger(p, "end nap"), 60);
    assert_true(pool_ledger(p, "open 20 ") >= 1);
}

/* An idle child, and one that has some open, is woken by its descriptor. */
static void test_g1_woken(void **state)
{
    pool *p = *state;
    const int64_t start_ms = jobq__clock_mono_ms();

    pool_push(p, "nap", 4000, NULL);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    for (int i = 1; i <= 3; i++) {
        pool_push(p, "note", 0, NULL);
        wait_until(pool_ledger(p, "end note") == i, 3);
    }
    wait_until(pool_ledger(p, "end nap") == 1, 20);
    assert_true(jobq__clock_mono_ms() - start_ms < 15000);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 4, 3);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "slept long"), 0);
}

/* A handler without the option runs alone in its child, and none is kept from running. */
static void test_g1_alone(void **state)
{
    pool *p = *state;

    p->plain = "note";
    for (int i = 0; i < 40; i++)
        pool_push(p, i % 4 == 3 ? "note" : "nap", 50, NULL);
    pool_start(p, "processes=1 stop_when_empty=1");
    assert_int_equal(pool_wait(p, 60), 0);
    assert_int_equal(pool_ledger(p, "end note"), 10);
    assert_int_equal(pool_ledger(p, "end nap"), 30);
    assert_true(pool_ledger(p, "open 2 ") >= 1);
}

/* The widest only: each handler's own number holds. */
static void test_g1_own_number(void **state)
{
    pool *p = *state;

    p->handler_options = "async_concurrency=3";
    pool_push_many(p, "nap", 100, NULL, 20);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 20);
    assert_true(pool_ledger(p, "open 3 ") >= 1);
    assert_int_equal(pool_ledger(p, "open 4 "), 0);
    assert_int_equal(pool_runners(p, "begin nap"), 2);
}

/* Rule C5: the child dies; each that ran has crashed, and says that it was not alone. */
static void test_c5_crash_is_shared(void **state)
{
    pool *p = *state;
    char ids[2][64];

    for (int i = 0; i < 2; i++)
        strcpy(ids[i], pool_push(p, "nap", 60000, "backoff=300"));
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 2, 20);
    pool_push(p, "crash", SIGKILL, "tries=1");
    for (int i = 0; i < 2; i++) {
        wait_until(strcmp(attempt(p, ids[i], 0), "crashed shared") == 0, 20);
        assert_string_equal(pool_job(p, ids[i]), "delayed 0 1 1");
    }
    end_worker(p);
}

/* Rule D4 does not hold: whose _exit it was nobody knows. */
static void test_c5_exit_is_shared(void **state)
{
    pool *p = *state;
    char nap[64], leaver[64];

    strcpy(nap, pool_push(p, "nap", 60000, "backoff=300"));
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    strcpy(leaver, pool_push(p, "exit", 3, "backoff=300"));
    wait_until(strcmp(attempt(p, leaver, 0), "crashed shared") == 0, 20);
    assert_string_equal(attempt(p, nap, 0), "crashed shared");
    end_worker(p);
}

/* Alone in its child it is as ever. */
static void test_c5_crash_alone(void **state)
{
    pool *p = *state;
    char id[64];

    strcpy(id, pool_push(p, "crash", SIGSEGV, "backoff=300"));
    pool_start(p, "processes=1");
    wait_until(strcmp(attempt(p, id, 0), "crashed") == 0, 20);
    end_worker(p);
}

/* Rule I1: one is over its limit and gives in; the others go on. */
static void test_i1_one_gives_in(void **state)
{
    pool *p = *state;
    char id[64];

    pool_push(p, "nap", 2500, NULL);
    strcpy(id, pool_push(p, "nap", 60000, "timeout=0.5 backoff=300"));
    pool_push(p, "nap", 2500, NULL);
    pool_start(p, "processes=1");
    wait_until(strcmp(attempt(p, id, 0), "timed_out") == 0, 20);
    assert_string_equal(pool_job(p, id), "delayed 1 0 1");
    wait_until(pool_ledger(p, "end nap") == 2, 20);
    assert_int_equal(pool_runners(p, "begin nap"), 1);
    end_worker(p);
}

/* It hears nothing and is killed; the others are given back, and nothing is counted against
 * them. */
static void test_i1_kill_spares_others(void **state)
{
    pool *p = *state;
    char deaf[64], other[64];

    strcpy(other, pool_push(p, "nap", 5000, "backoff=300"));
    strcpy(deaf, pool_push(p, "stubborn", 60000, "timeout=0.5 backoff=300"));
    pool_start(p, "processes=1");
    wait_until(strcmp(attempt(p, deaf, 0), "timed_out") == 0, 20);
    wait_until(pool_ledger(p, "begin nap") == 2, 20);
    assert_string_equal(pool_job(p, deaf), "delayed 1 0 1");
    assert_string_equal(pool_job(p, other), "reserved 0 0 2");
    wait_until(pool_ledger(p, "end nap") == 1, 20);
    end_worker(p);
}

/* Rule H1: what runs is waited for, nothing else begins. */
static void test_h1_drain(void **state)
{
    pool *p = *state;

    p->handler_options = "async_concurrency=10";
    pool_push_many(p, "nap", 2000, NULL, 30);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 10, 20);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "end nap"), 10);
    assert_int_equal(pool_ledger(p, "begin nap"), 10);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 20);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED), 0);
}

/* Rule H1: patience over, all of them are given back. */
static void test_h1_hard_stop(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 60000, NULL, 10);
    pool_start(p, "processes=1 drain=1");
    wait_until(pool_ledger(p, "begin nap") == 10, 20);
    end_worker(p);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 10);
    assert_int_equal(pool_ledger(p, "end nap"), 0);
}

/* Rule D1: a child whose cleanup failed lets the others end and takes nothing more; the job waits
 * until it is gone. */
static void test_d1_retiring_child(void **state)
{
    pool *p = *state;

    pool_push(p, "nap", 2000, NULL);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    pool_push(p, "soils", 0, "tries=2 backoff=0");
    wait_until(pool_ledger(p, "begin soils") == 2, 20);
    assert_int_equal(pool_ledger(p, "end nap"), 1);
    assert_int_equal(pool_runners(p, "begin"), 2);
    end_worker(p);
}

/* A loop that one of them blocks is given nothing more; what it has not begun goes elsewhere. */
static void test_blocked_loop(void **state)
{
    pool *p = *state;

    pool_push(p, "deaf", 6000, NULL);
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "begin deaf") == 1, 20);
    pool_push_many(p, "nap", 10, NULL, 60);
    wait_until(pool_ledger(p, "end nap") == 60, 5);
    assert_int_equal(pool_ledger(p, "end deaf"), 0);
    end_worker(p);
}

/* What is listed as running is renewed for each of them. */
static void test_long_runs_are_listed(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 4000, NULL, 5);
    pool_start(p, "processes=1 lease=2");
    wait_until(pool_ledger(p, "end nap") == 5, 20);
    assert_int_equal(pool_ledger(p, "begin nap"), 5);
    end_worker(p);
}

/* Rule C5: the next dispatcher knows of each of them. */
static void test_dispatcher_dies(void **state)
{
    pool *p = *state;
    pid_t dispatcher;

    pool_push_many(p, "nap", 3000, NULL, 20);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 20, 20);
    dispatcher = pool_dispatcher(p);
    kill(dispatcher, SIGKILL);
    wait_until(pool_ledger(p, "end nap") == 20, 20);
    pool_push_many(p, "nap", 100, NULL, 20);
    wait_until(pool_ledger(p, "end nap") == 40, 30);
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) == 0, 20);
    assert_int_equal(pool_ledger(p, "begin nap"), 40);
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 0);
    end_worker(p);
}

/* Rule L3: one of them is cancelled by force; its neighbours do not hear of it. */
static void test_l3_cancels_one(void **state)
{
    pool *p = *state;
    char id[64];

    pool_push(p, "nap", 3000, NULL);
    strcpy(id, pool_push(p, "nap", 60000, NULL));
    pool_push(p, "nap", 3000, NULL);
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin nap") == 3, 20);
    assert_int_equal(assert_ok(jobq_queue_cancel(p->queue, id, strlen(id), true)), 1);
    wait_until(strncmp(pool_job(p, id), "dead", 4) == 0, 20);
    wait_until(pool_ledger(p, "end nap") == 2, 20);
    assert_int_equal(pool_runners(p, "begin nap"), 1);
    end_worker(p);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_g1_fifty_at_once),
        STORE_TEST(test_g1_last_tries),
        STORE_TEST(test_g1_woken),
        STORE_TEST(test_g1_alone),
        STORE_TEST(test_g1_own_number),
        STORE_TEST(test_c5_crash_is_shared),
        STORE_TEST(test_c5_exit_is_shared),
        STORE_TEST(test_c5_crash_alone),
        STORE_TEST(test_i1_one_gives_in),
        STORE_TEST(test_i1_kill_spares_others),
        STORE_TEST(test_h1_drain),
        STORE_TEST(test_h1_hard_stop),
        STORE_TEST(test_d1_retiring_child),
        STORE_TEST(test_blocked_loop),
        STORE_TEST(test_long_runs_are_listed),
        STORE_TEST(test_dispatcher_dies),
        STORE_TEST(test_l3_cancels_one),
    };

    return stores_run_all("process/seats", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          tear_down);
}
