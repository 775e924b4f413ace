/* SPDX-License-Identifier: MIT
 *
 * Conversations with a server that are interrupted at any byte, delayed, frozen or refused: what
 * the call says is what became of the data, the connection is never read on half-way, the next call
 * works (rules B5, K2).
 */
#include "harness/proxy.h"
#include "harness/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"
#include "util/clock.h"

#define TEXT(s) jobq__slice((s), strlen(s))

typedef struct {
    store_kind kind;
    server *server;
    proxy *proxy;
    jobq__store *direct, *via; /* past the proxy and through it */
} bench;

static jobq__store *open_store(const char *dsn)
{
    jobq__store *store = NULL;

    assert_ok(jobq__store_new(dsn, NULL, &store));
    return store;
}

static int set_up(void **state)
{
    static bench b;
    const char *dsn;

    b.kind = *(store_kind *)*state;
    b.server = server_start(store_word(b.kind), false);
    b.proxy = proxy_start(server_port(b.server), NULL);
    b.direct = open_store(server_dsn(b.server));
    dsn = proxy_dsn(b.proxy, server_dsn(b.server), server_port(b.server));
    b.via = open_store(store_option(dsn, "read_timeout=0.5&connect_timeout=0.5"));
    assert_ok(jobq__store_schema(b.direct));
    assert_ok(jobq__store_schema(b.via));
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    bench *b = *state;

    jobq__store_free(b->direct);
    jobq__store_free(b->via);
    proxy_stop(b->proxy);
    server_remove(b->server);
    return 0;
}

/* ---- small words ----------------------------------------------------------------------------- */

static jobq_push job(const char *id, const char *queue)
{
    return (jobq_push){.id = TEXT(id),
                       .queue = TEXT(queue),
                       .name = TEXT("test"),
                       .body = TEXT("the body of a job"),
                       .version = 1};
}

static void push(jobq__store *store, const char *id, const char *queue)
{
    jobq_push item = job(id, queue);

    assert_ok(jobq__store_push(store, &item, 1));
    assert_int_equal(item.result, 0);
}

/* State of a job, -1: there is none. */
static int state_of(bench *b, const char *id)
{
    jobq_batch out = {0};
    const int rc = jobq__store_find(b->direct, (jobq_slice){0}, TEXT(id), &out);
    const int state = rc == 0 ? out.first->state : -1;

    if (rc != JOBQ_ENOTFOUND)
        assert_ok(rc);
    jobq__batch_free(&out);
    return state;
}

static jobq_settlement reserve(jobq__store *store, const char *worker, const char *queue,
                               jobq_batch *out)
{
    jobq_slice q = TEXT(queue);
    jobq_exchange x = {.worker = TEXT(worker),
                       .lease_ms = 60000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 1,
                       .out = out};

    assert_ok(jobq__store_exchange(store, &x));
    assert_non_null(out->last);
    return (jobq_settlement){.token = out->last->token,
                             .id = out->last->id,
                             .queue = out->last->queue,
                             .op = JOBQ_OP_DONE};
}

static bool is_outage(int rc)
{
    return rc == JOBQ_EIO || rc == JOBQ_ECONNECT || rc == JOBQ_ETIMEOUT;
}

/* A clear failure, which may be tried again, or an answer that was lost, after which nothing may be
 * sent again blindly (rule B5); never about jobs. */
static void check_failure(int rc)
{
    if (!is_outage(rc) && rc != JOBQ_EUNKNOWN)
        fail_msg("%s: %s", jobq_error_word(rc), jobq_error_message(jobq_error_last()));
    assert_int_equal(jobq_error_code(jobq_error_last()), rc);
    assert_int_equal(jobq_error_is_retryable(jobq_error_last()), rc != JOBQ_EUNKNOWN);
    assert_null(strchr(jobq_error_message(jobq_error_last()), '\n'));
}

/* ---- cuts ------------------------------------------------------------------------------------ */

typedef struct {
    proxy_way way;
    bool half;
    int64_t at;
} cut;

enum { POINTS = 7, CUTS = 2 * POINTS * 2 };

/* The k-th of all cuts of a conversation that carries so many bytes each way. */
static cut nth_cut(int k, const int64_t carried[2])
{
    const proxy_way way = k % 2 ? TO_CLIENT : TO_SERVER;
    const int point = k / 2 % POINTS;

    return (cut){.way = way, .half = k / 2 / POINTS, .at = carried[way] * point / POINTS};
}

static void arm(bench *b, const cut *c)
{
    if (c->half)
        proxy_half_close(b->proxy, c->way, c->at);
    else
        proxy_cut(b->proxy, c->way, c->at);
}

/* Bytes of both ways that `act` takes on a warm connection. */
static void measure(bench *b, int (*act)(bench *, int), int64_t carried[2])
{
    int64_t before[2];

    assert_ok(act(b, 900)); /* warm: statements prepared, scripts loaded */
    for (int way = 0; way < 2; way++)
        before[way] = proxy_carried(b->proxy, (proxy_way)way);
    assert_ok(act(b, 901));
    for (int way = 0; way < 2; way++) {
        carried[way] = proxy_carried(b->proxy, (proxy_way)way) - before[way];
        assert_true(carried[way] > 0);
    }
}

static int push_numbered(bench *b, int k)
{
    char id[16];
    jobq_push item;
    int rc;

    snprintf(id, sizeof(id), "push-%d", k);
    item = job(id, "q");
    rc = jobq__store_push(b->via, &item, 1);
    assert_int_equal(item.result, rc);
    return rc;
}

/* Rule B5, case B045: stored, not stored, or unknown; never the wrong one of them. */
static void test_b5_push_cut(void **state)
{
    bench *b = *state;
    int64_t carried[2];
    int rc[CUTS], unknown = 0, clear = 0;
    char id[16];

    measure(b, push_numbered, carried);
    for (int k = 0; k < CUTS; k++) {
        const cut c = nth_cut(k, carried);

        assert_ok(jobq__store_now(b->via, &(int64_t){0})); /* connected again */
        arm(b, &c);
        rc[k] = push_numbered(b, k);
        if (rc[k] < 0)
            check_failure(rc[k]);
        proxy_pass(b->proxy);
    }
    usleep(100000); /* what the server had in hand when it was cut off */
    for (int k = 0; k < CUTS; k++) {
        snprintf(id, sizeof(id), "push-%d", k);
        unknown += rc[k] == JOBQ_EUNKNOWN;
        clear += is_outage(rc[k]);
        if (rc[k] == 0)
            assert_int_equal(state_of(b, id), 0);
        else if (is_outage(rc[k]))
            assert_int_equal(state_of(b, id), -1);
    }
    print_message("%d cuts: %d unknown, %d clearly not stored\n", proxy_cuts(b->proxy), unknown,
                  clear);
    assert_true(proxy_cuts(b->proxy) >= CUTS / 2 && unknown > 0);
}

/* Settles job done-K, reserved before, and reserves job next-K. */
static int exchange_numbered(bench *b, int k)
{
    static jobq_batch held, out;
    char id[2][16], queue[2][16];
    jobq_settlement s;
    jobq_slice q;
    int rc;

    for (int i = 0; i < 2; i++) {
        snprintf(id[i], sizeof(id[0]), "%s-%d", i ? "next" : "done", k);
        snprintf(queue[i], sizeof(queue[0]), "%s-%d", i ? "qn" : "qd", k);
        push(b->direct, id[i], queue[i]);
    }
    jobq__batch_reset(&held);
    jobq__batch_reset(&out);
    s = reserve(b->direct, "w", queue[0], &held);
    q = TEXT(queue[1]);
    {
        jobq_exchange x = {.worker = TEXT("w"),
                           .lease_ms = 60000,
                           .settle = &s,
                           .settle_count = 1,
                           .queues = &q,
                           .queue_count = 1,
                           .want = 1,
                           .out = &out};

        rc = jobq__store_exchange(b->via, &x);
        assert_int_equal(out.count, rc == 0); /* a failed call hands out nothing */
        if (rc < 0)
            check_failure(rc);
        usleep(is_outage(rc) ? 20000 : 0);
        if (x.settled && rc < 0)
            assert_int_equal(state_of(b, id[0]), -1);
        else if (is_outage(rc))
            assert_int_equal(state_of(b, id[0]), 2);
        if (rc == 0)
            assert_int_equal(s.result, 0);
    }
    return rc;
}

/* What the store holds for a worker that does not know of it is given back with its tokens. */
static int give_back_all(bench *b, const char *worker)
{
    jobq_batch held = {0};
    int n = 0;

    assert_ok(jobq__store_held(b->via, TEXT(worker), &held));
    for (const jobq_record *r = held.first; r; r = r->next, n++) {
        jobq_settlement s = {
            .token = r->token, .id = r->id, .queue = r->queue, .op = JOBQ_OP_GIVE_BACK};
        jobq_exchange x = {
            .worker = TEXT(worker), .lease_ms = 60000, .settle = &s, .settle_count = 1};

        assert_ok(jobq__store_exchange(b->via, &x));
        assert_int_equal(s.result, 0);
    }
    jobq__batch_free(&held);
    return n;
}

/* Rules K2, D6: the exchange is cut anywhere; afterwards the store says what it holds, and all of
 * it can be given back: no job is lost, none is in two states. */
static void test_k2_exchange_cut(void **state)
{
    bench *b = *state;
    int64_t carried[2];
    int unknown = 0, failed = 0;
    char id[16];

    measure(b, exchange_numbered, carried);
    give_back_all(b, "w");
    for (int k = 0; k < CUTS; k++) {
        const cut c = nth_cut(k, carried);
        int rc;

        assert_ok(jobq__store_now(b->via, &(int64_t){0}));
        arm(b, &c);
        rc = exchange_numbered(b, k);
        proxy_pass(b->proxy);
        unknown += rc == JOBQ_EUNKNOWN;
        failed += rc < 0;
    }
    usleep(100000);
    give_back_all(b, "w");
    for (int k = 0; k < CUTS; k++) {
        int done;

        snprintf(id, sizeof(id), "done-%d", k);
        done = state_of(b, id);
        assert_true(done == -1 || done == 0);
        snprintf(id, sizeof(id), "next-%d", k);
        assert_int_equal(state_of(b, id), 0);
    }
    assert_int_equal(give_back_all(b, "w"), 0);
    print_message("%d cuts: %d failed, %d of them unknown\n", proxy_cuts(b->proxy), failed,
                  unknown);
    assert_true(proxy_cuts(b->proxy) >= CUTS / 2);
}

/* ---- everything else ------------------------------------------------------------------------- */

static int act_now(jobq__store *s)
{
    return jobq__store_now(s, &(int64_t){0});
}

static int act_renew(jobq__store *s)
{
    jobq_renewal r = {.worker = TEXT("w"), .lease_ms = 60000};

    return jobq__store_renew(s, &r);
}

static int act_maintain(jobq__store *s)
{
    jobq_maintenance m = {.limit = 100, .loss_cap = 10, .take_back = true};

    return jobq__store_maintain(s, &m);
}

static int act_find(jobq__store *s)
{
    static jobq_batch out;

    jobq__batch_reset(&out);
    return jobq__store_find(s, (jobq_slice){0}, TEXT("waiting"), &out);
}

static int act_list(jobq__store *s)
{
    static jobq_batch out;
    jobq_listing l = {.queue = TEXT("calm"), .limit = 10, .out = &out};
    int rc;

    jobq__batch_reset(&out);
    rc = jobq__store_list(s, &l);
    if (rc == 0)
        assert_int_equal(out.count, 1);
    return rc;
}

static int act_counts(jobq__store *s)
{
    jobq_counts c = {0};
    const int rc = jobq__store_counts(s, TEXT("calm"), &c);

    if (rc == 0)
        assert_int_equal(c.ready, 1);
    return rc;
}

static int act_queues(jobq__store *s)
{
    static jobq_batch out;
    int rc;

    jobq__batch_reset(&out);
    rc = jobq__store_queues(s, &out);
    if (rc == 0)
        assert_true(out.count >= 1);
    return rc;
}

static int act_held(jobq__store *s)
{
    static jobq_batch out;
    int rc;

    jobq__batch_reset(&out);
    rc = jobq__store_held(s, TEXT("holder"), &out);
    if (rc == 0)
        assert_int_equal(out.count, 1);
    return rc;
}

static int act_workers(jobq__store *s)
{
    static jobq_batch out;
    int rc;

    jobq__batch_reset(&out);
    rc = jobq__store_workers(s, &out);
    if (rc == 0)
        assert_non_null(out.first_worker);
    return rc;
}

static int act_leave(jobq__store *s)
{
    return jobq__store_leave(s, TEXT("nobody"));
}

static int act_mend(jobq__store *s)
{
    jobq_slice id = TEXT("waiting");
    int result = 0;
    jobq_mending m = {.what = JOBQ_MEND_RETRY, .ids = &id, .count = 1, .results = &result};

    return jobq__store_mend(s, &m);
}

static int act_settle_nothing(jobq__store *s)
{
    jobq_slice q = TEXT("no such queue");
    static jobq_batch out;
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 60000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 5,
                       .out = &out};

    return jobq__store_exchange(s, &x);
}

static const struct {
    const char *name;
    int (*run)(jobq__store *s);
} acts[] = {
    {"now", act_now},       {"renew", act_renew}, {"maintain", act_maintain},
    {"find", act_find},     {"list", act_list},   {"counts", act_counts},
    {"queues", act_queues}, {"held", act_held},   {"workers", act_workers},
    {"leave", act_leave},   {"mend", act_mend},   {"reserve", act_settle_nothing},
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* Job "waiting" on queue "calm", another one held by worker "holder". */
static void furnish(bench *b)
{
    jobq_batch out = {0};

    push(b->direct, "waiting", "calm");
    push(b->direct, "held", "busy");
    reserve(b->direct, "holder", "busy", &out);
    jobq__batch_free(&out);
}

/* An outage is never "no job", "no worker" or half of a list; the next call works. */
static void test_k2_every_operation_cut(void **state)
{
    bench *b = *state;
    int failed = 0;

    furnish(b);
    for (size_t a = 0; a < ACTS; a++) {
        int64_t before = 0, length;

        assert_ok(acts[a].run(b->via));
        before = proxy_carried(b->proxy, TO_CLIENT);
        assert_ok(acts[a].run(b->via));
        length = proxy_carried(b->proxy, TO_CLIENT) - before;
        for (int k = 0; k < 5; k++) {
            const cut c = {.way = k == 4 ? TO_SERVER : TO_CLIENT,
                           .half = k == 3,
                           .at = k == 4 ? 1 : length * k / 4};
            int rc;

            arm(b, &c);
            rc = acts[a].run(b->via);
            if (rc != 0)
                check_failure(rc);
            failed += rc != 0;
            proxy_pass(b->proxy);
            rc = acts[a].run(b->via);
            if (rc != 0)
                fail_msg("%s after a cut at byte %lld of the answer: %s", acts[a].name,
                         (long long)c.at, jobq_error_message(jobq_error_last()));
        }
    }
    print_message("%d operations, %d failures by cuts\n", ACTS, failed);
    assert_true(failed > ACTS);
}

/* Each call ends by its deadlines (connect and read: half a second each), for the right reason. */
static void expect_late(bench *b, const char *what)
{
    for (size_t a = 0; a < ACTS; a++) {
        const int64_t began_ms = jobq__clock_mono_ms();
        const int rc = acts[a].run(b->via);

        if (rc == 0)
            fail_msg("%s answers while the server is %s", acts[a].name, what);
        check_failure(rc);
        if (jobq__clock_mono_ms() - began_ms > 2500)
            fail_msg("%s takes %lld ms while the server is %s", acts[a].name,
                     (long long)(jobq__clock_mono_ms() - began_ms), what);
    }
}

static void expect_well(bench *b)
{
    for (size_t a = 0; a < ACTS; a++)
        if (acts[a].run(b->via) != 0)
            fail_msg("%s: %s", acts[a].name, jobq_error_message(jobq_error_last()));
}

static void test_k2_frozen_server(void **state)
{
    bench *b = *state;

    furnish(b);
    expect_well(b);
    server_freeze(b->server);
    expect_late(b, "frozen");
    server_thaw(b->server);
    expect_well(b);
    assert_int_equal(state_of(b, "waiting"), 0);
}

static void test_k2_network_swallows(void **state)
{
    bench *b = *state;

    furnish(b);
    expect_well(b);
    proxy_swallow(b->proxy, TO_CLIENT);
    expect_late(b, "not to be heard");
    proxy_pass(b->proxy);
    expect_well(b);
}

static void test_k2_refused(void **state)
{
    bench *b = *state;

    furnish(b);
    expect_well(b);
    proxy_refuse(b->proxy);
    acts[0].run(b->via); /* the old connection's end */
    for (size_t a = 0; a < ACTS; a++)
        assert_code(acts[a].run(b->via), JOBQ_ECONNECT);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_false(jobq_error_is_fatal(jobq_error_last()));
    proxy_pass(b->proxy);
    expect_well(b);
}

/* Rule K2: an idle connection that a firewall has forgotten costs no failure of a read, and a write
 * is either done or says what it is. */
static void test_k2_idle_connection_reset(void **state)
{
    bench *b = *state;

    furnish(b);
    for (int i = 0; i < 3; i++) {
        int rc;

        assert_ok(act_now(b->via));
        proxy_drop(b->proxy);
        rc = push_numbered(b, i);
        if (rc != 0)
            check_failure(rc);
        assert_ok(act_find(b->via));
    }
}

/* Answers that come in slow pieces are put together; with the usual deadline, for several trips
 * through such a network on a busy machine may take longer than half a second. */
static void test_k2_slow_network(void **state)
{
    bench *b = *state;
    const char *dsn = proxy_dsn(b->proxy, server_dsn(b->server), server_port(b->server));

    jobq__store_free(b->via);
    b->via = open_store(dsn);
    furnish(b);
    proxy_delay(b->proxy, TO_SERVER, 20);
    proxy_delay(b->proxy, TO_CLIENT, 20);
    expect_well(b);
    assert_ok(push_numbered(b, 1));
    assert_int_equal(state_of(b, "push-1"), 0);
}

/* An answer that comes after its call was given up is never taken for the next call's. */
static void test_k2_late_answer(void **state)
{
    bench *b = *state;
    jobq_batch out = {0};
    char id[16];

    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof(id), "late-%d", i);
        push(b->direct, id, "q");
    }
    for (int i = 0; i < 3; i++) {
        assert_ok(act_now(b->via));
        proxy_delay(b->proxy, TO_CLIENT, 800);
        snprintf(id, sizeof(id), "late-%d", i);
        check_failure(jobq__store_find(b->via, (jobq_slice){0}, TEXT(id), &out));
        proxy_pass(b->proxy);
        snprintf(id, sizeof(id), "late-%d", i + 1);
        jobq__batch_reset(&out);
        assert_ok(jobq__store_find(b->via, (jobq_slice){0}, TEXT(id), &out));
        assert_string_equal(out.first->id.p, id);
        jobq__batch_reset(&out);
    }
    jobq__batch_free(&out);
}

/* The wait ends when its connection does; a server that says nothing does not make it spin. */
static void test_wait_cut(void **state)
{
    bench *b = *state;
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 500, .wake_fd = -1};
    const int64_t began_ms = jobq__clock_mono_ms();
    int rc;
    pid_t pid;

    push(b->direct, "else", "other");
    w.timeout_ms = 100;
    assert_int_equal(assert_ok(jobq__store_wait(b->via, &w)), JOBQ_WAIT_TIMEOUT);
    w.timeout_ms = 20000;
    pid = fork();
    if (pid == 0) {
        usleep(200000);
        proxy_refuse(b->proxy);
        _exit(0);
    }
    rc = jobq__store_wait(b->via, &w);
    assert_true(rc == JOBQ_WAIT_JOBS || is_outage(rc));
    assert_true(jobq__clock_mono_ms() - began_ms < 10000);
    wait_until(waitpid(pid, NULL, WNOHANG) == pid, 10);
    proxy_pass(b->proxy);
    push(b->direct, "now", "q");
    if ((rc = jobq__store_wait(b->via, &w)) < 0) /* the first call may learn of the end */
        rc = jobq__store_wait(b->via, &w);
    assert_int_equal(rc, JOBQ_WAIT_JOBS);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_b5_push_cut),
        STORE_TEST(test_k2_exchange_cut),
        STORE_TEST(test_k2_every_operation_cut),
        STORE_TEST(test_k2_frozen_server),
        STORE_TEST(test_k2_network_swallows),
        STORE_TEST(test_k2_refused),
        STORE_TEST(test_k2_idle_connection_reset),
        STORE_TEST(test_k2_slow_network),
        STORE_TEST(test_k2_late_answer),
        STORE_TEST(test_wait_cut),
    };

    return stores_run("process/cuts", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
