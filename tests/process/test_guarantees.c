/* SPDX-License-Identifier: MIT
 *
 * What a careful owner relies on, with many processes at it and kills among them; a ledger outside
 * of the store is the judge (rules B4, B6, N1, N5). On SQLite and on each server store.
 */
#include "harness/stores.h"
#include "process/crowd.h"

#include <fcntl.h>
#include <sys/file.h>

#include "util/clock.h"

static int set_up(void **state)
{
    static pool p;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    pool_open(&p);
    *state = &p;
    return 0;
}

/* Counted, not locked: pushes that are under way may pass (rule B4). */
static bool is_exact(void)
{
    return store_under_test() == STORE_SQLITE || store_under_test() == STORE_REDIS;
}

static void end_worker(pool *p)
{
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
}

/* ---- handlers -------------------------------------------------------------------------------- */

static const pool *site; /* in the worker's processes */

/* Held while the handler of that key runs, and let go by whatever ends its process. */
static int take_lock(const jobq_job *job)
{
    char path[300];
    int fd;

    snprintf(path, sizeof(path), "%s.key%d", site->ledger, pool_argument(job));
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
        pool_note("clash", jobq_job_name(job, NULL), jobq_job_id(job));
    return fd;
}

/* By the job's name; "any" ends in each way, by its id. */
static int end_of(jobq_job *job)
{
    const char *name = jobq_job_name(job, NULL), *id = jobq_job_id(job);
    const int way = (int)(id[strlen(id) - 1] + jobq_job_get(job, JOBQ_JOB_DELIVERIES)) % 6;

    if (strcmp(name, "any") != 0)
        return JOBQ_ENDED_DONE;
    if (way == 0)
        return JOBQ_ENDED_FAILED;
    if (way == 1)
        return JOBQ_ENDED_RELEASED;
    if (way == 2)
        return JOBQ_ENDED_FAILED_BY_HANDLER;
    if (way == 3)
        raise(SIGKILL);
    return JOBQ_ENDED_DONE;
}

/* Rule B6, until_started: its key is free when it starts, at the first time and at each retry. */
static int push_again(const jobq_job *job)
{
    const int left = pool_argument(job);
    char id[129], options[64];
    pool here = *site;
    int rc;

    if (left > 0) {
        snprintf(options, sizeof(options), "unique=again unique_scope=until_started backoff=0");
        rc = crowd_push(&here, "again", left - 1, options, id);
        if (rc < 0 || (rc == 1 && strcmp(id, jobq_job_id(job)) == 0))
            pool_note("held", "again", jobq_job_id(job));
        pool_note(rc == 0 ? "stored" : "kept", "again", id);
    }
    return jobq_job_get(job, JOBQ_JOB_FAILURES) == 0 && left % 3 == 0 ? JOBQ_ENDED_FAILED
                                                                      : JOBQ_ENDED_DONE;
}

static int handle(jobq_job *job, void *payload)
{
    const bool again = strcmp(jobq_job_name(job, NULL), "again") == 0;
    const int fd = again ? -1 : take_lock(job); /* of these several may run */
    char value[16];
    int ending;

    (void)payload;
    snprintf(value, sizeof(value), "%d", pool_argument(job));
    pool_note("run", value, jobq_job_id(job));
    usleep(2000 + 1000 * (useconds_t)(jobq_job_get(job, JOBQ_JOB_FENCE) % 5));
    ending = again ? push_again(job) : end_of(job);
    if (fd >= 0)
        close(fd);
    pool_note(jobq_ending_word((jobq_ending)ending), value, jobq_job_id(job));
    return ending;
}

static int loop(jobq_worker *worker)
{
    static const char *const names[] = {"any", "plain", "value", "again"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (jobq_worker_handle(worker, names[i], strlen(names[i]), 1, NULL) < 0)
            return -1;
    return jobq_worker_run(worker, NULL, 0, handle, NULL);
}

static void start(pool *p, const char *options)
{
    site = p;
    p->loop = loop;
    pool_start(p, options);
}

/* ---- capacity (rule B4) ---------------------------------------------------------------------- */

enum { CAPACITY = 30, PUSHERS = 4 };

static void push_until_stopped(pool *p, int number)
{
    (void)number;
    while (!crowd_is_stopped(p)) {
        const int rc = crowd_push(p, "plain", 0, "backoff=0 tries=0", NULL);

        if (rc == 0)
            pool_write(p, "accepted");
        else if (rc == JOBQ_EFULL)
            pool_write(p, "full");
        else
            crowd_must(rc);
    }
}

static int64_t count_all(pool *p)
{
    int64_t values[JOBQ_STATS];

    assert_ok(jobq_queue_stats(p->queue, "default", 7, values));
    return values[JOBQ_STAT_BACKLOG] + values[JOBQ_STAT_DEAD];
}

/* Nobody drains: exactly as many fit in as are allowed. Then a worker drains while they go on. */
static void test_b4_capacity(void **state)
{
    const int64_t most = CAPACITY + (is_exact() ? 0 : PUSHERS);
    pool *p = *state;
    int64_t seen = 0;
    crowd c;

    assert_ok(jobq_queue_set_capacity(p->queue, "default", 7, CAPACITY));
    crowd_start(&c, p, PUSHERS, push_until_stopped);
    wait_until(pool_ledger(p, "full") >= 20, 30);
    assert_in_range(count_all(p), CAPACITY, most);
    wait_until(pool_ledger(p, "accepted") == count_all(p), 30); /* they write it after the push */
    start(p, "processes=2");
    for (int i = 0; pool_ledger(p, "done") < 10 * CAPACITY; i++) {
        const int64_t now = count_all(p);

        seen = now > seen ? now : seen;
        assert_true(i < 20000);
    }
    crowd_kill_children(p, 11, 600, 100, true);
    crowd_stop(p);
    crowd_wait(&c, 30);
    wait_until(count_all(p) == 0, 30);
    end_worker(p);
    assert_true(seen <= most);
    /* nothing was trimmed, nothing stored that was refused */
    assert_int_equal(crowd_count_ids(p, "done"), pool_ledger(p, "accepted"));
    assert_int_equal(crowd_push(p, "plain", 0, NULL, NULL), 0);
}

/* ---- unique keys (rule B6) ------------------------------------------------------------------- */

enum { KEYS = 5, CHAOS_MS = 2500 }; /* k0 to k4 */

static void push_keyed(pool *p, int number)
{
    unsigned seed = 100u + (unsigned)number;
    char options[96];

    while (!crowd_is_stopped(p)) {
        const int key = (int)(rand_r(&seed) % KEYS);

        snprintf(options, sizeof(options), "unique=k%d backoff=0 tries=3 delay=%s", key,
                 rand_r(&seed) % 3 ? "0" : "0.03");
        crowd_must(crowd_push(p, "any", key, options, NULL));
        usleep(rand_r(&seed) % 4000);
    }
}

static void cancel_one(pool *p, jobq_state state)
{
    jobq_list *list;
    const char *id;

    assert_ok(jobq_queue_jobs(p->queue, "default", 7, state, 1, NULL, &list));
    if (jobq_list_count(list) > 0) {
        id = jobq_info_text(jobq_list_get(list, 0), JOBQ_INFO_ID, NULL);
        jobq_queue_cancel(p->queue, id, strlen(id), false);
    }
    jobq_list_free(list);
}

/* Everything by which people end and revive jobs. */
static void mend(pool *p, int number)
{
    unsigned seed = 200u + (unsigned)number;

    while (!crowd_is_stopped(p)) {
        switch (rand_r(&seed) % 6) {
        case 0:
            cancel_one(p, JOBQ_READY);
            break;
        case 1:
            cancel_one(p, JOBQ_RESERVED);
            break;
        case 2:
            assert_ok(jobq_queue_clear(p->queue, "default", 7, NULL, NULL));
            break;
        case 3:
            assert_ok(jobq_queue_mend(p->queue, JOBQ_DEAD_FORGET, NULL, false, NULL, NULL, NULL));
            break;
        default:
            assert_ok(jobq_queue_mend(p->queue, JOBQ_DEAD_RETRY, NULL, false, NULL, NULL, NULL));
        }
        usleep(5000 + rand_r(&seed) % 10000);
    }
}

/* Rule N5: while all that goes on, every job stands in one state and no key is two's. */
static void watch(pool *p, int number)
{
    while (!crowd_is_stopped(p)) {
        if (crowd_count_pairs(p, number > 0) > 0)
            pool_write(p, "pair");
        if (crowd_audit(p) > 0)
            pool_write(p, "stray");
        pool_write(p, "audited");
        usleep(20000);
    }
}

static void run_chaos_process(pool *p, int number)
{
    if (number < 2)
        push_keyed(p, number);
    else if (number == 2)
        mend(p, number);
    else
        watch(p, 0);
}

/* Each key can be had again when all is over: none has leaked. */
static void check_keys_are_free(pool *p, const char *const *keys)
{
    for (int i = 0; keys[i]; i++)
        assert_int_equal(crowd_push(p, "plain", 90 + i, keys[i], NULL), 0);
}

/* Kills, retries, releases, deaths, cancels, clears, forgets and replays, and pushes of the same
 * keys all the time. */
static void test_b6_unique_under_kills(void **state)
{
    static const char *const keys[] = {"unique=k0", "unique=k1", "unique=k2",
                                       "unique=k3", "unique=k4", NULL};
    pool *p = *state;
    crowd c;

    start(p, "processes=3 max_crashes=4");
    crowd_start(&c, p, 4, run_chaos_process);
    crowd_kill_children(p, 4711, CHAOS_MS, 150, true);
    crowd_stop(p);
    crowd_wait(&c, 30);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    check_keys_are_free(p, keys);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    end_worker(p);
    print_message("%d runs of %d jobs, %d audits\n", pool_ledger(p, "run"),
                  crowd_count_ids(p, "run"), pool_ledger(p, "audited"));
    assert_int_equal(pool_ledger(p, "clash"), 0);
    assert_int_equal(pool_ledger(p, "pair"), 0);
    assert_int_equal(pool_ledger(p, "stray"), 0);
    assert_true(crowd_count_ids(p, "run") > KEYS);
    assert_int_equal(crowd_audit(p), 0);
}

/* ---- debounce (rule B6) ---------------------------------------------------------------------- */

#define DEBOUNCED "unique=d on_duplicate=replace max_wait=0.2 backoff=0 tries=0 delay=0.01"

static void replace_until_stopped(pool *p, int number)
{
    for (int i = 1; !crowd_is_stopped(p); i++) {
        crowd_must(crowd_push(p, "value", number * 100000 + i, DEBOUNCED, NULL));
        pool_write(p, "pushed");
        usleep(1000);
    }
}

/* Whoever comes last is run last, with its own payload; one waits at most, one runs. */
static void test_b6_debounce(void **state)
{
    const int64_t end_ms = jobq__clock_mono_ms() + 30000;
    pool *p = *state;
    int64_t most = 0;
    crowd c;

    start(p, "processes=2 max_crashes=0");
    crowd_start(&c, p, 3, replace_until_stopped);
    /* max_wait: not put off for ever */
    while (crowd_count_ids(p, "done") < 4 && jobq__clock_mono_ms() < end_ms) {
        const int64_t now = pool_stat(p, JOBQ_STAT_BACKLOG);

        most = now > most ? now : most;
        crowd_kill_children(p, (unsigned)end_ms, 1, 60, false);
    }
    crowd_stop(p);
    crowd_wait(&c, 30);
    assert_true(crowd_push(p, "value", 999999, DEBOUNCED, NULL) >= 0);
    wait_until(pool_ledger(p, "done 999999 ") == 1, 30);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    end_worker(p);
    print_message("%d pushes, %d jobs\n", pool_ledger(p, "pushed"), crowd_count_ids(p, "done"));
    assert_true(most <= 2);
    assert_true(crowd_count_ids(p, "done") < pool_ledger(p, "pushed"));
    assert_true(crowd_count_ids(p, "done") >= 4);
    check_keys_are_free(p, (const char *const[]){"unique=d", NULL});
}

/* ---- until_started (rule B6) ----------------------------------------------------------------- */

enum { AGAIN = 60 };

static void watch_fresh(pool *p, int number)
{
    watch(p, number + 1);
}

/* Freed before the first start, by a write that holds: the handler itself finds it free. A retry
 * does not take it from the one that has it by then. */
static void test_b6_until_started(void **state)
{
    pool *p = *state;
    crowd c;

    start(p, "processes=2 max_crashes=0");
    crowd_start(&c, p, 1, watch_fresh);
    assert_int_equal(
        crowd_push(p, "again", AGAIN, "unique=again unique_scope=until_started backoff=0", NULL),
        0);
    pool_push_many(p, "plain", 1, NULL, 20);
    for (int i = 0; pool_ledger(p, "done 0 ") == 0 && pool_ledger(p, "held") == 0; i++) {
        const int stored = pool_ledger(p, "stored");

        assert_true(i < 600);
        crowd_kill_children(p, 7 + (unsigned)i, 100, 50, false);
        if (i % 4 == 3)
            pool_kill(pool_dispatcher(p));
        /* also on a busy machine, where none would begin between two kills */
        wait_until(pool_ledger(p, "stored") > stored || pool_ledger(p, "done 0 ") > 0 ||
                       pool_ledger(p, "held") > 0,
                   30);
    }
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    crowd_stop(p);
    crowd_wait(&c, 30);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "held"), 0);
    assert_int_equal(pool_ledger(p, "pair"), 0);
    assert_int_equal(pool_ledger(p, "stray"), 0);
    assert_true(pool_ledger(p, "stored") >= AGAIN);
    check_keys_are_free(p, (const char *const[]){"unique=again", NULL});
}

/* ---- minutes (rule N1) ----------------------------------------------------------------------- */

static void add_minutes(pool *p, jobq_minute_stats *sum)
{
    jobq_minute_stats *list;
    size_t count;

    assert_ok(jobq_queue_minutes(p->queue, "default", 7, 10, &list, &count));
    memset(sum, 0, sizeof(*sum));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list[i].at_ms % 60000, 0);
        for (int k = 0; k < JOBQ_MINUTE_FIELDS; k++)
            sum->counts[k] += list[i].counts[k];
        for (int k = 0; k < JOBQ_RUN_BUCKETS; k++)
            sum->runs[k] += list[i].runs[k];
    }
    jobq_minutes_free(list);
}

static int64_t add_runs(const jobq_minute_stats *sum)
{
    int64_t n = 0;

    for (int k = 0; k < JOBQ_RUN_BUCKETS; k++)
        n += sum->runs[k];
    return n;
}

enum { ANY = 60, PLAIN = 200, LATE = 20 };

static void push_some(pool *p, int number)
{
    (void)number;
    for (int i = 0; i < ANY / 2; i++)
        crowd_must(crowd_push(p, "any", 1000 * number + i, "backoff=0 tries=4", NULL));
    pool_push_many(p, "plain", 1, NULL, PLAIN / 2);
}

/* They add up to what really happened, and are told while the worker runs and at its end. Hidden
 * hooks count nowhere. */
static void test_n1_minutes(void **state)
{
    pool *p = *state;
    jobq_minute_stats sum;
    int crashed;
    crowd c;

    start(p, "processes=3");
    crowd_start(&c, p, 2, push_some);
    crowd_wait(&c, 30);
    wait_until((add_minutes(p, &sum), sum.counts[JOBQ_MINUTE_DONE] > 0), 30);
    pool_push_many(p, "plain", 1, NULL, LATE); /* told at the end */
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    end_worker(p);
    add_minutes(p, &sum);
    crashed = pool_ledger(p, "run") - pool_ledger(p, "done") - pool_ledger(p, "failed") -
              pool_ledger(p, "released");
    assert_int_equal(sum.counts[JOBQ_MINUTE_PUSHED], ANY + PLAIN + LATE);
    assert_int_equal(sum.counts[JOBQ_MINUTE_DONE], pool_ledger(p, "done"));
    assert_int_equal(sum.counts[JOBQ_MINUTE_FAILED], pool_ledger(p, "failed"));
    assert_int_equal(sum.counts[JOBQ_MINUTE_RELEASED], pool_ledger(p, "released"));
    assert_int_equal(sum.counts[JOBQ_MINUTE_CRASHED], crashed);
    assert_int_equal(sum.counts[JOBQ_MINUTE_TIMED_OUT], 0);
    assert_int_equal(add_runs(&sum), pool_ledger(p, "run"));
    assert_true(sum.counts[JOBQ_MINUTE_RETRIED] > 0);
    assert_true(crashed > 0);
    assert_int_equal(sum.counts[JOBQ_MINUTE_FAILED] + crashed,
                     sum.counts[JOBQ_MINUTE_RETRIED] + pool_stat(p, JOBQ_STAT_DEAD));
}

/* ---- retention (rule F4) --------------------------------------------------------------------- */

static void check_kept(jobq_queue *queue, const char *id, const char *reason, int64_t seconds)
{
    jobq_info *info;

    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_REASON, NULL), reason);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_KEPT_UNTIL_MS) -
                         jobq_info_number(info, JOBQ_INFO_DIED_AT_MS),
                     seconds * 1000);
    jobq_info_free(info);
}

/* Stamped by whoever buries, whatever it died of. */
static void test_f4_stamped(void **state)
{
    static const struct {
        const char *name, *options, *reason;
        int arg;
    } deaths[] = {
        {"fail", "tries=1", "attempts_exhausted", 0},
        {"crash", "tries=1", "crashed", SIGKILL},
        {"gives_up", NULL, "failed_by_handler", 0},
        {"hopeless", NULL, "not_retryable", 0},
        {"sleepy", "timeout=0.1 tries=1", "timed_out", 60},
        {"note", "expires=0.001 delay=0.05", "expired", 0},
        {"lets_go", "backoff=0", "released_too_often", 9},
    };
    enum { DEATHS = sizeof(deaths) / sizeof(deaths[0]), KEPT_S = 50 };
    pool *p = *state;
    char ids[DEATHS][129];

    for (int i = 0; i < DEATHS; i++)
        assert_int_equal(crowd_push(p, deaths[i].name, deaths[i].arg, deaths[i].options, ids[i]),
                         0);
    pool_start(p, "processes=2 dead_retention=50 max_releases=2");
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == DEATHS, 30);
    end_worker(p);
    for (int i = 0; i < DEATHS; i++)
        check_kept(p->queue, ids[i], deaths[i].reason, KEPT_S);
}

/* A connection's own: for what is cancelled by it, for jobs it took itself, and for workers that
 * have no other. */
static void test_f4_of_a_connection(void **state)
{
    pool *p = *state, other;
    char waits[129], taken[129], fails[129], own[129];
    jobq_job *job;

    pool_open_at(&other, store_option(p->dsn, "dead_retention=50"), NULL);
    crowd_push(p, "note", 0, "delay=1000", waits);
    assert_ok(jobq_queue_cancel(other.queue, waits, strlen(waits), false));
    check_kept(p->queue, waits, "cancelled", 50);
    crowd_push(p, "note", 0, NULL, taken);
    assert_int_equal(assert_ok(jobq_queue_reserve(other.queue, NULL, 0, 30000, &job)), 1);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    check_kept(p->queue, taken, "failed_by_handler", 50);
    crowd_push(p, "fail", 0, "tries=1", fails);
    assert_int_equal(pool_run(&other, "processes=1 stop_when_empty=1"), 0);
    check_kept(p->queue, fails, "attempts_exhausted", 50);
    crowd_push(p, "fail", 0, "tries=1", own);
    assert_int_equal(pool_run(&other, "processes=1 dead_retention=70 stop_when_empty=1"), 0);
    check_kept(p->queue, own, "attempts_exhausted", 70);
    pool_close(&other);
}

/* When it is over workers collect them, and make room under a capacity. */
static void test_f4_collected(void **state)
{
    pool *p = *state;

    assert_ok(jobq_queue_set_capacity(p->queue, "default", 7, 20));
    for (int i = 0; i < 20; i++)
        assert_int_equal(crowd_push(p, "fail", 0, "tries=1", NULL), 0);
    pool_start(p, "processes=1 dead_retention=1.5 lease=1");
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == 20, 30);
    if (is_exact())
        assert_code(crowd_push(p, "fail", 0, NULL, NULL), JOBQ_EFULL);
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == 0, 30);
    wait_until(crowd_push(p, "note", 0, NULL, NULL) == 0, 30);
    wait_until(pool_ledger(p, "end note") == 1, 30);
    end_worker(p);
}

/* Also by a worker that starts while its only queue is paused. */
static void test_f4_collected_while_paused(void **state)
{
    pool *p = *state;

    for (int i = 0; i < 3; i++)
        assert_int_equal(crowd_push(p, "fail", 0, "tries=1", NULL), 0);
    assert_int_equal(pool_run(p, "processes=1 dead_retention=1.5 stop_when_empty=1"), 0);
    assert_ok(jobq_queue_pause(p->queue, "default", 7, 0));
    pool_start(p, "processes=1 lease=120");
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == 0, 30);
    end_worker(p);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_b4_capacity),        STORE_TEST(test_b6_unique_under_kills),
        STORE_TEST(test_b6_debounce),        STORE_TEST(test_b6_until_started),
        STORE_TEST(test_n1_minutes),         STORE_TEST(test_f4_stamped),
        STORE_TEST(test_f4_collected),       STORE_TEST(test_f4_collected_while_paused),
        STORE_TEST(test_f4_of_a_connection),
    };

    return stores_run_all("process/guarantees", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          pool_tear_down);
}
