/* SPDX-License-Identifier: MIT
 *
 * A worker with children on each server store while that is stopped, killed, frozen, cut off and
 * thrown out: a ledger outside of the store says that nothing is lost and nothing done twice but
 * what was reported (rules C2, C5, D6, H2, J1, K1, K2).
 */
#include "harness/proxy.h"
#include "harness/stores.h"
#include "process/pool.h"

#include <time.h>

#include "util/clock.h"

typedef struct {
    store_kind kind;
    server *server;
    proxy *proxy;
    pool pool;
} site;

/* Short deadlines, so that an outage is noticed while the test runs. */
#define HASTY "read_timeout=1&connect_timeout=1"

static int set_up(void **state)
{
    static site s;
    const char *dsn;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    s.kind = *(store_kind *)*state;
    s.server = store_start_durable(s.kind, true);
    s.proxy = proxy_start(server_port(s.server), NULL);
    dsn = proxy_dsn(s.proxy, server_dsn(s.server), server_port(s.server));
    pool_open_at(&s.pool, server_dsn(s.server), store_option(dsn, HASTY));
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    site *s = *state;

    pool_close(&s->pool);
    proxy_stop(s->proxy);
    server_remove(s->server);
    return 0;
}

/* ---- the ledger ------------------------------------------------------------------------------ */

static int count_said(const pool *p, const char *text)
{
    FILE *f = fopen(p->output, "r");
    char line[1024];
    int n = 0;

    while (f && fgets(line, sizeof(line), f))
        n += strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return n;
}

/* What the worker said of anything but jobs done, and which jobs began twice. */
static void show_trouble(const pool *p)
{
    char line[1200];

    snprintf(line, sizeof(line),
             "grep -v 'Processed: ' '%s' | tail -40 >&2; grep ^begin '%s' | cut -d' ' -f3 | sort | "
             "uniq -d | while read id; do grep \"$id\" '%s' '%s' >&2; done",
             p->output, p->ledger, p->ledger, p->output);
    if (system(line) != 0)
        fprintf(stderr, "no shell\n");
}

/* All of so many jobs ran, and a second time only those that the worker said it lost hold of. */
static void check_ledger(pool *p, const char *name, int jobs)
{
    char begin[64], end[64];
    int reported = count_said(p, "Outcome unknown: ") + count_said(p, "Lease lost: ") +
                   count_said(p, "Result lost: ");

    snprintf(begin, sizeof(begin), "begin %s", name);
    snprintf(end, sizeof(end), "end %s", name);
    if (pool_ledger(p, end) < jobs || pool_ledger(p, begin) > jobs + reported) {
        show_trouble(p);
        fail_msg("%d jobs, %d begun, %d ended, %d reported", jobs, pool_ledger(p, begin),
                 pool_ledger(p, end), reported);
    }
    print_message("%d jobs, %d begun, %d reported\n", jobs, pool_ledger(p, begin), reported);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
}

/* ---- stopped --------------------------------------------------------------------------------- */

/* Rules D6, K1, K2: jobs end while the store is away; settled when it is back, under their
 * tokens. */
static void test_d6_results_survive(void **state)
{
    site *s = *state;
    pool *p = &s->pool;

    pool_push_many(p, "nap", 1200, NULL, 2);
    pool_start(p, "processes=2 stop_when_empty=1 max_reserve_failures=0");
    wait_until(pool_ledger(p, "begin nap") == 2, 20);
    server_stop(s->server);
    wait_until(pool_ledger(p, "end nap") == 2, 20);
    wait_until(pool_said(p, "error: could not reserve a job: "), 30);
    server_restart(s->server);
    assert_int_equal(pool_wait(p, 60), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 2);
    check_ledger(p, "nap", 2);
}

/* Leaves a result larger than a ring when the test lets it go. */
static const pool *outage_pool;
static int leave_result(jobq_job *job, void *payload)
{
    const size_t n = (size_t)pool_argument(job);
    char *body = malloc(n);
    int rc;

    (void)payload;
    memset(body, 'r', n);
    body[0] = body[n - 1] = '"';
    pool_note("begin", "leaves_result", jobq_job_id(job));
    while (pool_ledger(outage_pool, "said go") == 0)
        usleep(5000);
    rc = jobq_job_set_result(job, JOBQ_FORMAT_JSON, body, n);
    free(body);
    pool_note("end", "leaves_result", jobq_job_id(job));
    return rc < 0 ? rc : JOBQ_ENDED_DONE;
}

static int leave_results(jobq_worker *worker)
{
    const int rc = jobq_worker_handle(worker, "leaves_result", 13, 1, NULL);

    return rc < 0 ? rc : jobq_worker_run(worker, NULL, 0, leave_result, NULL);
}

static void check_result(pool *p, const char *id, size_t size)
{
    jobq_info *info;
    size_t n = 0;

    assert_ok(jobq_queue_wait(p->queue, id, strlen(id), 60000, &info));
    assert_non_null(jobq_info_result(info, &n, NULL, NULL));
    assert_int_equal(n, size);
    jobq_info_free(info);
}

/* Rules D6, N7: results of any size wait for the store, too; a second large one of the same child
 * waits for the first one's place. */
static void test_d6_large_results_survive(void **state)
{
    site *s = *state;
    pool *p = &s->pool;

    outage_pool = p;
    p->loop = leave_results;
    pool_push(p, "leaves_result", 300000, "id=first track=true");
    pool_push(p, "leaves_result", 900000, "id=second track=true");
    pool_push(p, "leaves_result", 20, "id=third track=true");
    pool_start(p, "processes=1 prefetch=4 max_reserve_failures=0");
    wait_until(pool_ledger(p, "begin leaves_result") == 1, 20);
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) == 3, 20);
    server_stop(s->server);
    pool_write(p, "said go");
    wait_until(pool_ledger(p, "end leaves_result") >= 2, 20);
    wait_until(pool_said(p, "error: could not reserve a job: "), 30);
    server_restart(s->server);
    check_result(p, "first", 300000);
    check_result(p, "second", 900000);
    check_result(p, "third", 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    assert_int_equal(pool_ledger(p, "begin leaves_result"), 3);
}

/* Rules K1, J1: given up after so many failures in a row; what is lost with it is said. */
static void test_k1_gives_up(void **state)
{
    site *s = *state;
    pool *p = &s->pool;

    pool_push(p, "nap", 1500, NULL);
    pool_start(p, "processes=1 max_reserve_failures=2 lease=2");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    server_stop(s->server);
    assert_int_equal(pool_wait(p, 60), 1);
    assert_true(count_said(p, "error: could not reserve a job: ") >= 2);
    assert_true(pool_said(p, "Stopping: the queue has been unreadable 2 times running"));
    /* on a connection that broke under the exchange nobody can know */
    assert_true(pool_said(p, "Result lost: nap") || pool_said(p, "Outcome unknown: nap"));
    server_restart(s->server);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED) + pool_stat(p, JOBQ_STAT_READY), 1);
}

/* The worker has nothing to do and says nothing: it sleeps in its wait. */
static void wait_until_idle(site *s)
{
    int64_t before = -1, since_ms = 0;
    const int64_t end_ms = jobq__clock_mono_ms() + 30000;

    while (since_ms == 0 || jobq__clock_mono_ms() - since_ms < 300) {
        const int64_t carried = proxy_carried(s->proxy, TO_SERVER);

        if (carried != before)
            since_ms = jobq__clock_mono_ms();
        before = carried;
        assert_true(jobq__clock_mono_ms() < end_ms);
        usleep(20000);
    }
}

static int64_t ms_to_end(pool *p)
{
    const int64_t began_ms = jobq__clock_mono_ms();

    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    return jobq__clock_mono_ms() - began_ms;
}

/* Rule H2: in an outage, refused or silent, a stop request is heard, and what is left to do does
 * not wait for the store's return. Wide budgets; the figures are printed. */
static void test_h2_term_in_an_outage(void **state)
{
    site *s = *state;
    pool *p = &s->pool;
    int64_t refused_ms, silent_ms;

    pool_push(p, "note", 0, NULL);
    pool_start(p, "processes=1 max_reserve_failures=0");
    wait_until(count_said(p, "Processed: note") == 1, 20);
    wait_until_idle(s); /* in an exchange it would not know what it was given */
    proxy_refuse(s->proxy);
    wait_until(pool_said(p, "error: could not reserve a job: "), 30);
    refused_ms = ms_to_end(p);
    proxy_pass(s->proxy);
    pool_start(p, "processes=1 max_reserve_failures=0");
    pool_push(p, "note", 0, NULL);
    wait_until(count_said(p, "Processed: note") == 2, 20);
    wait_until_idle(s);
    proxy_freeze(s->proxy);
    silent_ms = ms_to_end(p);
    proxy_pass(s->proxy);
    print_message("ended %lld ms after TERM when refused, %lld ms when silent\n",
                  (long long)refused_ms, (long long)silent_ms);
    assert_true(refused_ms < 4000); /* there is nothing to lose, and nothing to give back */
    assert_true(silent_ms < 9000);
}

/* ---- under load ------------------------------------------------------------------------------ */

enum { LOAD = 200 };

static void start_load(pool *p)
{
    pool_push_many(p, "nap", 10, NULL, LOAD);
    pool_start(p, "processes=3 stop_when_empty=1 max_reserve_failures=0");
}

/* More jobs have ended: the worker has got over what was done to it. */
static void wait_for_progress(pool *p, int share)
{
    wait_until(pool_ledger(p, "end nap") >= LOAD * share / 100, 60);
}

static void test_k2_restarts(void **state)
{
    site *s = *state;

    start_load(&s->pool);
    for (int i = 1; i <= 2; i++) {
        wait_for_progress(&s->pool, 30 * i);
        server_restart(s->server);
    }
    assert_int_equal(pool_wait(&s->pool, 60), 0);
    check_ledger(&s->pool, "nap", LOAD);
}

/* SIGKILL: what was confirmed is on the disk. */
static void test_k2_killed(void **state)
{
    site *s = *state;

    start_load(&s->pool);
    wait_for_progress(&s->pool, 40);
    server_kill(s->server);
    server_restart(s->server);
    assert_int_equal(pool_wait(&s->pool, 60), 0);
    check_ledger(&s->pool, "nap", LOAD);
}

static void test_k2_frozen(void **state)
{
    site *s = *state;

    start_load(&s->pool);
    wait_for_progress(&s->pool, 30);
    server_freeze(s->server);
    wait_until(pool_said(&s->pool, "error: could not reserve a job: "), 20);
    server_thaw(s->server);
    assert_int_equal(pool_wait(&s->pool, 60), 0);
    check_ledger(&s->pool, "nap", LOAD);
}

/* Cut after a random number of bytes, either way, again and again. */
static void test_k2_cut(void **state)
{
    site *s = *state;
    unsigned seed = (unsigned)time(NULL);

    print_message("seed %u\n", seed);
    start_load(&s->pool);
    for (int i = 1; i <= 5; i++) {
        const proxy_way way = rand_r(&seed) % 2 ? TO_SERVER : TO_CLIENT;

        wait_for_progress(&s->pool, 14 * i);
        if (i % 4 == 0)
            proxy_half_close(s->proxy, way, (int64_t)(rand_r(&seed) % 600));
        else
            proxy_cut(s->proxy, way, (int64_t)(rand_r(&seed) % 600));
    }
    assert_int_equal(pool_wait(&s->pool, 60), 0);
    check_ledger(&s->pool, "nap", LOAD);
    assert_true(proxy_cuts(s->proxy) >= 2);
}

/* An answer that never comes: the call's deadline, not a reset, is what ends it. */
static void test_k2_answers_swallowed(void **state)
{
    site *s = *state;

    start_load(&s->pool);
    wait_for_progress(&s->pool, 30);
    proxy_swallow(s->proxy, TO_CLIENT);
    wait_until(pool_said(&s->pool, "error: could not reserve a job: "), 20);
    proxy_pass(s->proxy);
    proxy_drop(s->proxy);
    assert_int_equal(pool_wait(&s->pool, 60), 0);
    check_ledger(&s->pool, "nap", LOAD);
}

/* `FATAL: terminating connection`, 2006 and 2013, CLIENT KILL, and scripts that are gone. */
static void throw_everybody_out(const site *s)
{
    char text[64], *rest, *id;

    switch (s->kind) {
    case STORE_REDIS:
        store_admin(s->server, s->kind, "SCRIPT FLUSH");
        store_admin(s->server, s->kind, "CLIENT KILL TYPE normal SKIPME yes");
        store_admin(s->server, s->kind, "CLIENT KILL TYPE pubsub");
        break;
    case STORE_POSTGRES:
        store_admin(s->server, s->kind,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
        break;
    default:
        rest = strdup(store_admin(s->server, s->kind,
                                  "SELECT id FROM information_schema.processlist "
                                  "WHERE user = 'jobqueue' AND id <> connection_id()"));
        for (char *list = rest; (id = strtok_r(list, "\n", &list));) {
            snprintf(text, sizeof(text), "KILL SOFT %s", id);
            store_admin_try(s->server, s->kind, text); /* it may have gone by itself meanwhile */
        }
        free(rest);
    }
}

static void test_k2_thrown_out(void **state)
{
    site *s = *state;

    start_load(&s->pool);
    for (int i = 1; i <= 2; i++) {
        wait_for_progress(&s->pool, 30 * i);
        throw_everybody_out(s);
    }
    assert_int_equal(pool_wait(&s->pool, 60), 0);
    check_ledger(&s->pool, "nap", LOAD);
}

/* Thrown out while it waits: it is back before the next job, and no failure ends it. */
static void test_k2_thrown_out_idle(void **state)
{
    site *s = *state;
    pool *p = &s->pool;

    pool_start(p, "processes=1 max_reserve_failures=3");
    for (int i = 1; i <= 3; i++) {
        pool_push(p, "note", 0, NULL);
        wait_until(pool_ledger(p, "end note") == i, 30);
        wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 10);
        throw_everybody_out(s);
        jobq_queue_disconnect(p->queue);
    }
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 3);
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* Rule C2, case B104: renewals that hang for less than a lease lose nothing, whoever else is
 * looking. */
static void test_c2_heartbeat_through_a_freeze(void **state)
{
    site *s = *state;
    pool *p = &s->pool, other;

    pool_open_at(&other, p->dsn, NULL);
    pool_push(p, "nap", 6000, NULL);
    pool_start(p, "processes=1 lease=4 max_reserve_failures=0");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    pool_start(&other, "processes=1 lease=4 max_reserve_failures=0");
    usleep(500000);
    proxy_freeze(s->proxy); /* of the first one only */
    usleep(1500000);
    proxy_pass(s->proxy);
    proxy_drop(s->proxy);
    wait_until(pool_ledger(p, "end nap") == 1, 20);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 20);
    assert_int_equal(pool_ledger(p, "begin nap"), 1);
    assert_int_equal(pool_ledger(&other, "begin nap"), 0);
    pool_signal(&other, SIGTERM);
    assert_int_equal(pool_wait(&other, 20), 0);
    pool_close(&other);
}

/* A worker whose lease is over by the store's clock, and another that looks for work. With
 * `restart` the store has just started. */
static void lapse(site *s, pool *other, bool restart)
{
    pool *p = &s->pool;

    pool_open_at(other, p->dsn, NULL);
    pool_push(p, "nap", 4000, "backoff=0");
    pool_start(p, "processes=1 lease=60 max_reserve_failures=0");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    if (restart)
        server_stop(s->server);
    server_shift(s->server, 90000);
    if (restart)
        server_restart(s->server);
    pool_start(other, "processes=1 lease=60");
}

static void end_other(pool *other)
{
    pool_signal(other, SIGTERM);
    assert_int_equal(pool_wait(other, 20), 0);
    pool_close(other);
}

/* Rule C5: nobody takes back before one lease after the store's own start. */
static void test_c5_grace_after_start(void **state)
{
    site *s = *state;
    pool other;

    lapse(s, &other, true);
    wait_until(pool_ledger(&s->pool, "end nap") == 1, 20);
    wait_until(pool_stat(&s->pool, JOBQ_STAT_BACKLOG) == 0, 20);
    assert_int_equal(pool_ledger(&other, "begin nap"), 0);
    assert_false(pool_said(&s->pool, "Lease lost"));
    end_other(&other);
}

/* Rules C3, C5: without a restart it is taken back at once, and the first one's result refused. */
static void test_c5_taken_back_at_once(void **state)
{
    site *s = *state;
    pool other;

    lapse(s, &other, false);
    wait_until(pool_ledger(&other, "begin nap") == 1, 3);
    assert_int_equal(pool_ledger(&s->pool, "end nap"), 0);
    wait_until(pool_said(&s->pool, "Lease lost: nap"), 20);
    wait_until(pool_ledger(&other, "end nap") == 1, 20);
    wait_until(pool_stat(&s->pool, JOBQ_STAT_BACKLOG) == 0, 20);
    end_other(&other);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_d6_results_survive),
        STORE_TEST(test_d6_large_results_survive),
        STORE_TEST(test_k1_gives_up),
        STORE_TEST(test_h2_term_in_an_outage),
        STORE_TEST(test_k2_restarts),
        STORE_TEST(test_k2_killed),
        STORE_TEST(test_k2_frozen),
        STORE_TEST(test_k2_cut),
        STORE_TEST(test_k2_answers_swallowed),
        STORE_TEST(test_k2_thrown_out),
        STORE_TEST(test_k2_thrown_out_idle),
        STORE_TEST(test_c2_heartbeat_through_a_freeze),
        STORE_TEST(test_c5_grace_after_start),
        STORE_TEST(test_c5_taken_back_at_once),
    };

    return stores_run("process/stores", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
