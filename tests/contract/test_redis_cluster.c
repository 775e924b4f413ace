/* SPDX-License-Identifier: MIT
 *
 * The contract on a Redis Cluster of three masters, and what only one can show.
 */
#include "contract/on_redis.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/redis/redis.h"
#include "harness/cluster.h"
#include "harness/stores.h"

enum { NEVER_MS = 1000000000 };

static cluster redis;
static bool started;
static char dsn[400];
static int prefixes;
static int64_t shifted_ms;

static const char *fresh_dsn(void)
{
    if (!started)
        cluster_start(&redis, true, NEVER_MS, "");
    started = true;
    if (shifted_ms) /* each store begins with the right time */
        cluster_shift(&redis, -shifted_ms);
    shifted_ms = 0;
    snprintf(dsn, sizeof(dsn), "%s?read_timeout=20&prefix=test%d", redis.dsn, ++prefixes);
    return dsn;
}

static void shift(int64_t ms)
{
    cluster_shift(&redis, ms);
    shifted_ms += ms;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void test_slots(void **state)
{
    static const struct {
        const char *key;
        int slot;
    } rows[] = {{"123456789", 0x31c3 % RDS_SLOTS}, {"{a}b", 15495}, {"a", 15495}, {"{}a", -1}};
    static const char command[] = "*4\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n1\r\n$5\r\n{p:q}\r\n";
    jobq_slice key = jobq__redis_key_of(command, sizeof(command) - 1);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].slot >= 0)
            assert_int_equal(jobq__redis_slot(rows[i].key, strlen(rows[i].key)), rows[i].slot);
    assert_int_equal(key.n, 5);
    assert_memory_equal(key.p, "{p:q}", 5);
    assert_null(jobq__redis_key_of("*1\r\n$4\r\nTIME\r\n", 14).p);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(jobq__redis_slot(rows[i].key, strlen(rows[i].key)),
                         cluster_slot(&redis, rows[i].key));
}

/* The slot and the server of a queue of the store under test. */
static int slot_of(const char *queue)
{
    char key[64];

    snprintf(key, sizeof(key), "{test%d:%s}", prefixes, queue);
    return cluster_slot(&redis, key);
}

static size_t owner_of(const char *queue)
{
    return cluster_owner(&redis, slot_of(queue));
}

/* A queue that another server has than those of `but` (bits). */
static const char *queue_elsewhere(unsigned but)
{
    static char names[8][8];
    static int next;
    char *name = names[next++ % 8];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(names[0]), "s%d", i);
        if (!(but >> owner_of(name) & 1))
            return name;
    }
    fail_msg("every queue is on the same servers");
    return NULL;
}

/* case B143: whatever a queue is called, all its keys share a slot. */
static void test_b143_names(void **state)
{
    static const char *const names[] = {"default", "{a}b", "x{y", "}z{", "{}", "\xc3\xa4:%7B"};
    char braces[500];
    jobq__store *first = store;

    (void)state;
    snprintf(braces, sizeof(braces), "%s{}x{", dsn);
    store = contract_open(braces);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        jobq_clearing c = {.queue = TEXT(names[i]), .limit = 10};
        jobq_push later = job_item("later", names[i]);
        char ids[4][16];

        for (int k = 0; k < 4; k++)
            snprintf(ids[k], sizeof(ids[k]), "j%zu-%d", i, k);
        later.id = TEXT(ids[3]);
        later.delay_ms = 60000;
        later.unique = TEXT("key");
        push_job(ids[0], names[i]);
        push_job(ids[1], names[i]);
        push_job(ids[2], names[i]);
        assert_int_equal(push_item(&later), 0);
        later.id = TEXT("other");
        assert_int_equal(push_item(&later), 1);
        reserve_one("w", names[i], ids[0]);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
        reserve_one("w", names[i], ids[1]);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DEAD), 0);
        assert_int_equal(count_jobs(names[i]).dead, 1);
        assert_int_equal(count_jobs(names[i]).ready, 2);
        assert_int_equal(count_jobs(names[i]).delayed, 1);
        assert_ok(jobq__store_clear(store, &c));
        assert_int_equal(c.cleared, 3);
        assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, ids[1], false), 0);
        reserve_one("w", names[i], ids[1]);
    }
    jobq__store_free(store);
    store = first;
}

/* rule C1: queues on several servers are served in the order given, as many as are wanted. */
static void test_c1_over_servers(void **state)
{
    const char *names[4];
    jobq_slice queues[4];
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = queues,
                       .queue_count = 4,
                       .want = 3,
                       .out = &got};

    (void)state;
    names[0] = queue_elsewhere(0);
    names[1] = queue_elsewhere(1u << owner_of(names[0]));
    names[2] = queue_elsewhere(1u << owner_of(names[0]) | 1u << owner_of(names[1]));
    names[3] = "last";
    for (int i = 3; i >= 0; i--) {
        char id[2][8];

        queues[i] = TEXT(names[i]);
        for (int k = 0; k < 2; k++) {
            snprintf(id[k], sizeof(id[k]), "%d%c", i, 'a' + k);
            push_job(id[k], names[i]);
        }
    }
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("0a 0b 1a");
    assert_false(x.exhausted);
    jobq__batch_reset(&got);
    x.want = 10;
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("1b 2a 2b 3a 3b");
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(got.count, 0);
    assert_true(x.exhausted);
}

/* rule C7, C9: one wait over queues of several servers, ended by a push into any of them, or by a
 * change of control. */
static void test_c9_wait_over_servers(void **state)
{
    const char *names[3];
    jobq_slice queues[3];
    int64_t control = 0;
    jobq_wait w = {.queues = queues,
                   .queue_count = 3,
                   .timeout_ms = 20000,
                   .poll_ms = 20000,
                   .wake_fd = -1,
                   .control = &control};

    (void)state;
    names[0] = queue_elsewhere(0);
    names[1] = queue_elsewhere(1u << owner_of(names[0]));
    names[2] = queue_elsewhere(1u << owner_of(names[0]) | 1u << owner_of(names[1]));
    for (int i = 0; i < 3; i++)
        queues[i] = TEXT(names[i]);
    for (int i = 0; i < 4; i++) {
        jobq_control c = {.what = JOBQ_CONTROL_RESTART, .out = &got};
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            jobq_push item = job_item("job", names[i % 3]);

            poll(NULL, 0, 100);
            _exit(i < 3 ? jobq__store_push(store, &item, 1) : jobq__store_control(store, &c));
        }
        assert_int_equal(jobq__store_wait(store, &w), i < 3 ? JOBQ_WAIT_JOBS : JOBQ_WAIT_CONTROL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        if (i < 3)
            assert_int_equal(settle_op("w", reserve_one("w", names[i], "job"), JOBQ_OP_DONE), 0);
    }
}

/* ---- a slot that moves ----------------------------------------------------------------------- */

enum { MOVED_JOBS = 400 };

/* Every second one by a script; a pause after each, so that they go on all the time. */
static void push_on(void)
{
    for (int i = 0; i < MOVED_JOBS; i++) {
        char id[32];
        jobq_push item;

        snprintf(id, sizeof(id), "moved-%d", i);
        item = job_item(id, "q");
        item.fresh_id = i % 2;
        if (jobq__store_push(store, &item, 1) != 0 || item.result != 0) {
            fprintf(stderr, "push: %s\n", jobq_error_message(jobq_error_last()));
            _exit(1);
        }
        poll(NULL, 0, 3);
    }
    _exit(0);
}

static pid_t begin(void (*run)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        run();
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Reserves and settles until every job was seen; each must come once. */
static void work_on(void)
{
    static bool seen[MOVED_JOBS];
    jobq_slice q = TEXT("q");
    int done = 0;

    while (done < MOVED_JOBS) {
        jobq_wait w = {
            .queues = &q, .queue_count = 1, .timeout_ms = 5000, .poll_ms = 100, .wake_fd = -1};

        if (reserve_jobs("w", "q", 7) == 0 && jobq__store_wait(store, &w) < 0) {
            fprintf(stderr, "wait: %s\n", jobq_error_message(jobq_error_last()));
            _exit(2);
        }
        for (const jobq_record *r = got.first; r; r = r->next) {
            int number = atoi((const char *)r->id.p + strlen("moved-"));

            if (seen[number] || settle_op("w", r, JOBQ_OP_DONE) != 0)
                _exit(3);
            seen[number] = true;
            done++;
        }
    }
    _exit(0);
}

/* Its keys are here and there for a while. */
static void move_slowly(int slot, size_t from, size_t to)
{
    cluster_announce(&redis, slot, from, to);
    poll(NULL, 0, 100);
    cluster_send_keys(&redis, slot, from, to, 1);
    poll(NULL, 0, 200);
    while (cluster_send_keys(&redis, slot, from, to, 100) > 0)
        ;
    poll(NULL, 0, 100);
    cluster_conclude(&redis, slot, to);
    poll(NULL, 0, 200);
}

static void expect_end(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* rule K2, case B143: MOVED, ASK and TRYAGAIN cost a moment: no call fails, no job is lost or comes
 * twice. */
static void test_k2_moving_slot(void **state)
{
    pid_t pusher, worker;
    int slot;

    (void)state;
    push_job("first", "q");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DONE), 0);
    slot = slot_of("q");
    pusher = begin(push_on);
    worker = begin(work_on);
    for (int i = 0; i < 4; i++) {
        size_t from = cluster_owner(&redis, slot);

        move_slowly(slot, from, (from + 1) % CLUSTER_MASTERS);
    }
    expect_end(pusher);
    expect_end(worker);
    assert_int_equal(count_jobs("q").ready + count_jobs("q").reserved, 0); /* a table of before */
}

/* A wait that stands while the slot goes elsewhere hears of what is pushed there. */
static void wait_for_one(void)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 20000, .wake_fd = -1};

    while (reserve_jobs("w", "q", 1) == 0)
        if (jobq__store_wait(store, &w) != JOBQ_WAIT_JOBS)
            _exit(1);
    _exit(settle_op("w", got.first, JOBQ_OP_DONE));
}

static void test_k2_moving_slot_wakes(void **state)
{
    int slot;
    size_t from;
    pid_t waiter;

    (void)state;
    push_job("first", "q");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DONE), 0);
    slot = slot_of("q");
    from = cluster_owner(&redis, slot);
    waiter = begin(wait_for_one);
    poll(NULL, 0, 300);
    move_slowly(slot, from, (from + 1) % CLUSTER_MASTERS);
    push_job("second", "q");
    expect_end(waiter);
}

/* ---- servers that are gone ------------------------------------------------------------------- */

static int push_result(const char *id, const char *queue)
{
    jobq_push item = job_item(id, queue);
    int rc = jobq__store_push(store, &item, 1);

    return rc < 0 ? rc : item.result;
}

/* rule K2: a master that is killed is an outage for its queues, then CLUSTERDOWN for all; when it
 * is back everything goes on. */
static void test_k2_lost_master(void **state)
{
    static cluster own;
    char where[300];
    jobq__store *first = store;
    int tries = 0;
    bool down = false;

    (void)state;
    cluster_start(&own, false, 1000, "--appendonly yes --appendfsync always");
    snprintf(where, sizeof(where), "%s?read_timeout=5&prefix=own", own.dsn);
    store = contract_open(where);
    push_job("a", "q");
    reserve_one("w", "q", "a");
    size_t lost = cluster_owner(&own, cluster_slot(&own, "{own:q}"));
    server_kill(own.nodes[lost]);
    assert_true(push_result("b", "q") < 0);
    while (!down && tries++ < 200) {
        assert_true(push_result("b", "q") < 0);
        assert_true(jobq_error_is_retryable(jobq_error_last()));
        down = strstr(cluster_tell(&own, (lost + 1) % CLUSTER_MASTERS, "cluster info"),
                      "cluster_state:fail") != NULL;
        poll(NULL, 0, 50);
    }
    assert_true(down);
    assert_true(push_result("c", "s1") < 0); /* whoever has it */
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    server_restart(own.nodes[lost]);
    cluster_await(&own);
    tries = 0;
    while (push_result("b", "q") < 0 && tries++ < 100)
        poll(NULL, 0, 50);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0); /* its token still holds */
    reserve_one("w", "q", "b");
    jobq__store_free(store);
    store = first;
    cluster_remove(&own);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refusal(const char *where, const char *why)
{
    jobq__store *other = contract_open(where);
    int64_t now_ms;

    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
    assert_said(why);
    jobq__store_free(other);
}

static void test_refusals(void **state)
{
    char where[300];

    (void)state;
    expect_refusal(server_dsn(redis.nodes[0]), "redis-cluster://");
    snprintf(where, sizeof(where), "%s/1", redis.dsn);
    expect_refusal(where, "no other database than 0");
    for (size_t i = 0; i < CLUSTER_MASTERS; i++)
        cluster_tell(&redis, i, "config set requirepass secret");
    jobq__store_disconnect(store);
    expect_refusal(redis.dsn, "NOAUTH");
    snprintf(where, sizeof(where), "redis-cluster://:secret@%s?prefix=secret",
             redis.dsn + strlen("redis-cluster://"));
    jobq__store *other = contract_open(where);
    jobq_push item = job_item("a", "q");

    assert_int_equal(jobq__store_push(other, &item, 1), 0);
    jobq__store_free(other);
    for (size_t i = 0; i < CLUSTER_MASTERS; i++)
        cluster_tell(&redis, i, "-a secret config set requirepass ''");
}

/* rule P2: with TLS, to a Cluster of one that knows no name of its own. */
static void test_p2_tls(void **state)
{
    char folder[] = "/tmp/jobqueue-tls-XXXXXX", text[500];
    int port = server_free_port(), tries = 0;
    jobq_push item = job_item("a", "q");
    jobq__store *other;
    int64_t now_ms;
    server *own;

    (void)state;
    while (port > 50000) /* the nodes' own port is 10000 above */
        port = server_free_port();
    assert_non_null(mkdtemp(folder));
    server_make_certificate(folder);
    snprintf(text, sizeof(text),
             "--cluster-enabled yes --tls-cluster yes --tls-port %d --tls-cert-file %s/cert.pem "
             "--tls-key-file %s/key.pem --tls-ca-cert-file %s/cert.pem --tls-auth-clients no",
             port, folder, folder, folder);
    own = server_start_with("redis", false, text);
    store_admin(own, STORE_REDIS, "cluster addslotsrange 0 16383");
    while (!strstr(store_admin(own, STORE_REDIS, "cluster info"), "cluster_state:ok") &&
           tries++ < 200)
        poll(NULL, 0, 50);
    snprintf(text, sizeof(text), "rediss-cluster://localhost:%d?ca=%s/cert.pem", port, folder);
    other = contract_open(text);
    assert_int_equal(jobq__store_push(other, &item, 1), 0);
    assert_int_equal(item.result, 0);
    jobq__store_free(other);
    snprintf(text, sizeof(text), "rediss-cluster://127.0.0.1:%d?ca=%s/cert.pem", port, folder);
    other = contract_open(text);
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
    assert_said("IP address mismatch");
    jobq__store_free(other);
    server_remove(own);
    snprintf(text, sizeof(text), "rm -r '%s'", folder);
    assert_int_equal(system(text), 0);
}

/* ---- the caller's texts ---------------------------------------------------------------------- */

/* Rules B7, O1: keys of the queue's slot only; others are refused before they are touched, even
 * when the same server happens to have them. */
static void test_b7_keys_of_the_slot(void **state)
{
    static const char *const names[] = {"other", "another", "x", "y", "z"};
    jobq_push item = job_item("a", "q");
    jobq_effect e = {.worker = TEXT("w"), .id = TEXT("b"), .queue = TEXT("q"), .out = &got};
    jobq_param params[1] = {{.type = JOBQ_PARAM_TEXT}};
    jobq_statement guard = {
        .text = TEXT("redis.call('SET', ARGV[1], 1) return 1"), .params = params, .param_count = 1};
    char own[64];

    (void)state;
    snprintf(own, sizeof(own), "{test%d:q}mine", prefixes);
    item.guard = &guard;
    for (size_t i = 0; i < 5; i++) {
        params[0].bytes = TEXT(names[i]);
        assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
        assert_said("slot");
        assert_null(find_job("a"));
    }
    params[0].bytes = TEXT(own);
    assert_int_equal(push_item(&item), 0);
    push_job("b", "q");
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    e.token = got.last->token;
    e.statement = guard;
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, 0);
    params[0].bytes = TEXT("other");
    assert_code(jobq__store_effect(store, &e), JOBQ_EINVAL);
    assert_said("slot");
}

/* Rule N5: every master is looked at. */
static void test_n5_examined(void **state)
{
    jobq_examination e = {.out = &got};
    int bad = 0, masters = 0, slots = 0;

    (void)state;
    push_job("a", "q");
    cluster_tell(&redis, 1, "config set maxmemory-policy allkeys-lru");
    jobq__batch_reset(&got);
    assert_ok(jobq__store_examine(store, &e));
    cluster_tell(&redis, 1, "config set maxmemory-policy noeviction");
    for (const jobq_remark *r = e.remarks; r; r = r->next) {
        masters += strcmp(r->check, "eviction") == 0;
        slots += strcmp(r->check, "cluster") == 0 && r->grade == JOBQ_REMARK_OK;
        bad += strcmp(r->check, "eviction") == 0 && r->grade == JOBQ_REMARK_PROBLEM;
    }
    assert_int_equal(masters, CLUSTER_MASTERS);
    assert_int_equal(slots, CLUSTER_MASTERS);
    assert_int_equal(bad, 1);
}

int main(void)
{
    static const contract_driver driver = {
        .name = "contract: redis-cluster",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |
                    JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_EFFECT,
        .shift = shift,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_slots),           cmocka_unit_test(test_b143_names),
        cmocka_unit_test(test_c1_over_servers), cmocka_unit_test(test_c9_wait_over_servers),
        cmocka_unit_test(test_k2_moving_slot),  cmocka_unit_test(test_k2_moving_slot_wakes),
        cmocka_unit_test(test_k2_lost_master),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_p2_tls),          cmocka_unit_test(test_b7_keys_of_the_slot),
        cmocka_unit_test(test_n5_examined),     ON_REDIS_TESTS,
    };

    return contract_main(&driver, own, sizeof(own) / sizeof(own[0]));
}
