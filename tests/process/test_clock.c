/* SPDX-License-Identifier: MIT
 *
 * Hosts whose clocks are wrong: only the store's clock counts (rules B9, C10, C12, E3, N3; case of
 * five jobs that each take as long as their delay and then throw, worked by two hosts).
 */
#include "harness/stores.h"
#include "process/pool.h"

#include "util/clock.h"

enum { HOUR_MS = 3600000 };

typedef struct {
    store_kind kind;
    server *server;
    pool ahead, behind; /* two hosts, an hour each from the right time, in opposite directions */
} site;

static int set_up(void **state)
{
    static site s;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    s.kind = *(store_kind *)*state;
    s.server = server_start(store_word(s.kind), false);
    pool_open_at(&s.ahead, server_dsn(s.server), NULL);
    pool_open_at(&s.behind, server_dsn(s.server), NULL);
    s.ahead.clock_wrong_ms = HOUR_MS;
    s.behind.clock_wrong_ms = -HOUR_MS;
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    site *s = *state;

    pool_close(&s->ahead);
    pool_close(&s->behind);
    server_remove(s->server);
    return 0;
}

static int both(const site *s, const char *prefix)
{
    return pool_ledger(&s->ahead, prefix) + pool_ledger(&s->behind, prefix);
}

static void stop(pool *p)
{
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

/* Delay, run time and backoff are as long as each other (a second here), the lease shorter than
 * all of them together: what one host thinks of the time must not make the other take anything. */
static void test_two_hosts(void **state)
{
    enum { JOBS = 5, TRIES = 3 };
    site *s = *state;
    char ids[JOBS][129], line[800];
    const int64_t began_ms = jobq__clock_mono_ms();

    pool_start(&s->ahead, "processes=2 lease=2 jitter=0");
    pool_start(&s->behind, "processes=2 lease=2 jitter=0");
    for (int i = 0; i < JOBS; i++)
        strcpy(ids[i], pool_push(&s->ahead, "spoil", 1000, "delay=1 tries=3 backoff=1"));
    assert_int_equal(pool_stat(&s->ahead, JOBQ_STAT_DELAYED), JOBS);
    wait_until(both(s, "begin spoil") > 0, 10);
    assert_true(jobq__clock_mono_ms() - began_ms >= 1000);
    wait_until(pool_stat(&s->ahead, JOBQ_STAT_DEAD) == JOBS, 40);
    print_message("%lld ms (nothing in the way: 6000 to 12000)\n",
                  (long long)(jobq__clock_mono_ms() - began_ms));
    stop(&s->ahead);
    stop(&s->behind);
    for (int i = 0; i < JOBS; i++) {
        snprintf(line, sizeof(line), "begin spoil %s", ids[i]);
        assert_int_equal(both(s, line), TRIES);
        assert_string_equal(pool_job(&s->ahead, ids[i]), "dead 3 0 3");
    }
    assert_int_equal(pool_stat(&s->ahead, JOBQ_STAT_BACKLOG), 0);
    assert_false(pool_said(&s->ahead, "Lease lost") || pool_said(&s->behind, "Lease lost"));
}

/* One worker with a wrong clock: nothing expires early, nothing is delayed. */
static void check_wrong_worker(site *s, pool *p)
{
    int64_t pushed_ms;
    char retried[129];

    pool_start(p, "processes=2");
    pool_push(p, "note", 0, "expires=60");
    strcpy(retried, pool_push(p, "fail", 0, "retry_until=60 tries=2 backoff=0"));
    wait_until(pool_ledger(p, "end note") == 1, 5);                  /* at once, and not expired */
    wait_until(strncmp(pool_job(p, retried), "dead 2", 6) == 0, 10); /* tried again, in its time */
    pushed_ms = jobq__clock_mono_ms();
    pool_push(p, "deaf", 1, "delay=1");
    wait_until(pool_ledger(p, "begin deaf") == 1, 10);
    assert_in_range(jobq__clock_mono_ms() - pushed_ms, 1000, 4000);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 10);
    stop(p);
    assert_false(pool_said(p, "expired"));
    (void)s;
}

static void test_clock_ahead(void **state)
{
    site *s = *state;

    check_wrong_worker(s, &s->ahead);
}

static void test_clock_behind(void **state)
{
    site *s = *state;

    check_wrong_worker(s, &s->behind);
}

/* Rule C10, case B127: neither takes from the other what runs longer than a lease. */
static void test_leases_between_clocks(void **state)
{
    site *s = *state;

    pool_push_many(&s->ahead, "nap", 4000, NULL, 2);
    pool_start(&s->ahead, "processes=1 lease=2 prefetch=0");
    wait_until(pool_ledger(&s->ahead, "begin nap") == 1, 10);
    pool_start(&s->behind, "processes=2 lease=2 prefetch=0");
    wait_until(both(s, "end nap") == 2, 20);
    wait_until(pool_stat(&s->ahead, JOBQ_STAT_BACKLOG) == 0, 10);
    stop(&s->ahead);
    stop(&s->behind);
    assert_int_equal(both(s, "begin nap"), 2);
}

/* Rules A1, B9, N3, case B127: a producer with a wrong clock, which its ids carry. */
static void test_wrong_producer(void **state)
{
    site *s = *state;
    char id[129], delayed[129];

    for (int way = -1; way <= 1; way += 2) {
        jobq__clock_shift((int64_t)way * HOUR_MS, 0);
        strcpy(id, pool_push(&s->ahead, "note", 0, NULL));
        strcpy(delayed, pool_push(&s->ahead, "note", 0, "delay=600"));
        jobq__clock_shift((int64_t)-way * HOUR_MS, 0);
        assert_string_equal(pool_job(&s->ahead, id), "ready 0 0 0");
        assert_string_equal(pool_job(&s->ahead, delayed), "delayed 0 0 0");
    }
    assert_int_equal(pool_stat(&s->ahead, JOBQ_STAT_READY), 2);
    assert_int_equal(pool_stat(&s->ahead, JOBQ_STAT_DELAYED), 2);
    assert_int_equal(pool_run(&s->ahead, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(&s->ahead, "end note"), 2);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_two_hosts),      STORE_TEST(test_clock_ahead),
        STORE_TEST(test_clock_behind),   STORE_TEST(test_leases_between_clocks),
        STORE_TEST(test_wrong_producer),
    };

    return stores_run("process/clock", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
