/* SPDX-License-Identifier: MIT
 *
 * The contract on Redis, and what only a server of its kind can show.
 */
#include "contract/on_redis.h"
#include "contract/traffic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/redis/redis.h"
#include "harness/server.h"
#include "harness/stores.h"

static server *redis;
static char dsn[400], prefix[32];
static int prefixes;
static int64_t shifted_ms;

static const char *fresh_dsn(void)
{
    if (!redis)
        redis = server_start("redis", true);
    if (shifted_ms) /* each store begins with the right time */
        server_shift(redis, -shifted_ms);
    shifted_ms = 0;
    snprintf(prefix, sizeof(prefix), "test%d", ++prefixes);
    snprintf(dsn, sizeof(dsn), "%s?read_timeout=20&prefix=%s", server_dsn(redis), prefix);
    return dsn;
}

static void shift(int64_t ms)
{
    server_shift(redis, ms);
    shifted_ms += ms;
}

/* A command in the shell's words; what redis-cli printed. */
static const char *tell(const char *fmt, ...) JOBQ_PRINTF(1, 2);
static const char *tell(const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return store_admin(redis, STORE_REDIS, text);
}

static int64_t total(const char *queue)
{
    jobq_counts c = count_jobs(queue);

    return c.ready + c.delayed + c.reserved + c.dead;
}

/* ---- at maxmemory ---------------------------------------------------------------------------- */

static jobq_settlement next_settlement(const char *queue, int op)
{
    static char entry[] = "entry";
    jobq_settlement s = settlement(reserve_one("w", queue, NULL), op);

    s.error = s.history = TEXT(entry);
    return s;
}

/* Everything but a push goes on. */
static void work_without_memory(void)
{
    jobq_settlement s;

    begin_worker("w", 10000);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE), 0);
    s = next_settlement("q", JOBQ_OP_DEAD);
    assert_int_equal(settle_with("w", &s), 0);
    s = next_settlement("q", JOBQ_OP_BACK);
    s.delay_ms = 5000;
    assert_int_equal(settle_with("w", &s), 0);
    s = next_settlement("q", JOBQ_OP_BACK);
    assert_int_equal(settle_with("w", &s), 0);
    s = next_settlement("q", JOBQ_OP_DONE);
    s.keep_ms = 60000;
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "f"), JOBQ_OP_GIVE_BACK), 0);
    reserve_one("w", "q", "f");
    pass_time(11000, 11000);
    assert_int_equal(maintain_all().handled, 2); /* promoted, and taken back */
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "b", false), 0);
}

/* rule K3, case B030. */
static void test_k3_maxmemory(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    jobq_push items[2] = {job_item("x", "q"), job_item("y", "other")};

    (void)state;
    for (size_t i = 0; i < 6; i++)
        push_job(ids[i], "q");
    tell("config set maxmemory 1");
    items[1].unique = TEXT("key");
    for (int pass = 0; pass < 2; pass++) { /* by the script and without */
        items[0].fresh_id = items[1].fresh_id = pass;
        assert_code(jobq__store_push(store, items, 2), JOBQ_EIO);
        assert_said("maxmemory");
        assert_true(jobq_error_is_retryable(jobq_error_last()));
        assert_code(jobq__store_push(store, items, 1), JOBQ_EIO);
    }
    work_without_memory();
    tell("config set maxmemory 0");
    assert_int_equal(total("q"), 4); /* b c d f; e is done and kept */
    assert_int_equal(total("other"), 0);
    assert_int_equal(push_item(&items[1]), 0); /* its key was not left behind */
    assert_int_equal(reserve_jobs("w2", "q", 9), 4);
    expect_ids("f d c b");
}

/* ---- control --------------------------------------------------------------------------------- */

static int cancel_now(const char *id)
{
    jobq_cancelling c = {.id = TEXT(id), .reason = 11};

    assert_ok(jobq__store_cancel(store, &c));
    return c.result;
}

/* Rule C6: what was cancelled behind the last job handed out does not look like a job. */
static void test_l3_cancelled_is_not_ready(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {.queues = &q, .queue_count = 1, .timeout_ms = 50, .poll_ms = 10, .wake_fd = -1};

    (void)state;
    push_job("held", "q");
    push_job("cancelled", "q");
    reserve_one("w", "q", "held");
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    assert_int_equal(cancel_now("cancelled"), 0);
    assert_int_equal(reserve_jobs("w", "q", 1), 0);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    assert_int_equal(count_jobs("q").ready, 0);
}

/* Of what was cleared nothing stays: no index, no unique key, no texts, no due time. */
static void test_clear_leaves_no_trace(void **state)
{
    static const char *const gone[] = {":q}:ids'",  ":q}:unique'", ":q}:trace'",
                                       ":q}:rest'", ":q}:taken'",  ":q}:delayed'"};
    jobq_push item = job_item("later", "q");
    jobq_clearing c = {.queue = TEXT("q"), .limit = 100};
    jobq_settlement s;

    (void)state;
    push_job("released", "q");
    s = next_settlement("q", JOBQ_OP_BACK);
    assert_int_equal(settle_with("w", &s), 0);
    push_job("given back", "q");
    item.delay_ms = 60000;
    item.unique = TEXT("key");
    assert_int_equal(push_item(&item), 0);
    item.id = TEXT("unique");
    item.delay_ms = 0;
    item.unique = TEXT("key 2");
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(settle_op("w", reserve_one("w", "q", NULL), JOBQ_OP_GIVE_BACK), 0);
    assert_ok(jobq__store_clear(store, &c));
    assert_int_equal(c.cleared, 4);
    assert_false(c.more);
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        assert_int_equal(atoi(tell("exists '{%s%s", prefix, gone[i])), 0);
    assert_int_equal(atoi(tell("xlen '{%s:q}:p0'", prefix)), 0);
    assert_int_equal(total("q"), 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* case B091. */
static void test_b091_scripts_are_loaded_again(void **state)
{
    (void)state;
    push_job("a", "q");
    tell("script flush");
    push_job("b", "q");
    tell("script flush");
    assert_int_equal(reserve_jobs("w", "q", 2), 2); /* several scripts in one trip */
    tell("script flush");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(total("q"), 2);
}

/* rule K2, case B096: cut while nothing was under way, it is only opened anew. */
static void test_k2_cut_when_idle(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {.queues = &q, .queue_count = 1, .timeout_ms = 10, .poll_ms = 10, .wake_fd = -1};

    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    tell("client kill type normal");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    tell("client kill type normal");
    w.timeout_ms = 60000;
    push_job("b", "q");
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
}

/* The reasons a server gives that no repetition cures. */
static void test_refusals_are_fatal(void **state)
{
    static const struct {
        const char *scheme, *path, *said;
    } rows[] = {
        {"redis://user:secret@", "/0", "WRONGPASS"},
        {"redis://:secret@", "/0", "AUTH"},
        {"redis://", "/99", "DB index"},
        {"redis://", "/none", "not a number"},
        {"redis-sentinel://", "", "no sentinels and master"},
        {"redis-cluster://", "", "not part of a Redis Cluster"}, /* case B143 */
    };
    char address[64], text[160];

    (void)state;
    snprintf(address, sizeof(address), "127.0.0.1:%d", server_port(redis));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq__store *other = NULL;
        int64_t now_ms;

        snprintf(text, sizeof(text), "%s%s%s", rows[i].scheme, address, rows[i].path);
        assert_ok(jobq__store_new(text, NULL, &other));
        assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
        assert_true(jobq_error_is_fatal(jobq_error_last()));
        assert_said(rows[i].said);
        assert_null(strstr(jobq_error_message(jobq_error_last()), "secret"));
        jobq__store_free(other);
    }
}

/* An account that lacks a right hears so, and what is needed: nothing looks empty or lost
 * because of it. */
static void test_missing_rights_are_named(void **state)
{
    static const struct {
        const char *right;
        bool push; /* it is the push that lacks it */
    } rows[] = {{"-xgroup", true}, {"-script|load", true}, {"-xpending", false}, {"-time", false}};
    char text[300];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq_slice q = TEXT("q");
        jobq_exchange x = {
            .worker = TEXT("w"), .lease_ms = 10000, .want = 1, .queues = &q, .queue_count = 1};
        jobq_push item = job_item("a", "q");

        tell("flushall");
        tell("script flush");
        if (!rows[i].push)
            push_job("b", "q");
        tell("acl setuser app reset on nopass '~{%s*' +@read +@write +@scripting +@connection "
             "+@transaction +info +time '%s'",
             prefix, rows[i].right);
        snprintf(text, sizeof(text), "redis://app:x@127.0.0.1:%d?prefix=%s", server_port(redis),
                 prefix);
        jobq__store_free(store);
        store = NULL;
        assert_ok(jobq__store_new(text, NULL, &store));
        jobq__batch_reset(&got);
        x.out = &got;
        assert_code(rows[i].push ? jobq__store_push(store, &item, 1)
                                 : jobq__store_exchange(store, &x),
                    JOBQ_ECONF);
        assert_said("an account needs");
        assert_true(jobq_error_is_fatal(jobq_error_last()));
        jobq__store_free(store);
        store = contract_open(dsn);
    }
    tell("acl deluser app");
}

/* How servers of all ages say that an account lacks a right, and how scripts say it: without the
 * hash of a script of ours. */
static void test_refused_in_all_versions(void **state)
{
#define PLACE " script: 4a357d66708b647b92ad1d7c5ecb6788f4387917, on @user_script:1."
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"NOPERM this user has no permissions to run the 'time' command", "run the 'time' command"},
        {"NOPERM User app has no permissions to run the 'time' command", "run the 'time' command"},
        {"ERR The user executing the script can't run this command or subcommand" PLACE,
         "can't run this command or subcommand ("},
        {"ERR ACL failure in script: User app has no permissions to run the 'xpending' "
         "command" PLACE,
         "run the 'xpending' command ("},
        {"ERR ACL failure in script: No permissions to access a key" PLACE, "access a key ("},
    };
    rds_store fake = {.link = {.fd = -1}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const rds_value value = {.type = RDS_ERROR, .p = rows[i].text, .n = strlen(rows[i].text)};

        assert_code(jobq__redis_refused(&fake, &value), JOBQ_ECONF);
        assert_true(jobq_error_is_fatal(jobq_error_last()));
        assert_said(rows[i].said);
        assert_said("an account needs");
    }
#undef PLACE
}

/* Servers of this protocol, as each tells of itself: what it is called, and which DSN it wants. */
static void test_servers_of_the_protocol(void **state)
{
    static const struct {
        const char *info, *name, *refused; /* by a store of one server; NULL = welcome */
    } rows[] = {
        {"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n", "Redis 7.0.15", NULL},
        {"# Server\r\nredis_version:6.0.16\r\nredis_mode:standalone\r\n", "Redis 6.0.16",
         "version 6.0 (needed: 6.2 or newer)"},
        {"# Server\r\nredis_version:8.0.2\r\nredis_mode:cluster\r\n", "Redis 8.0.2",
         "is part of a Redis Cluster"},
        {"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n"
         "server_mode:standalone\r\n",
         "Valkey 8.1.1", NULL},
        {"# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\nserver_mode:cluster\r\n",
         "Valkey 8.1.1", "is part of a Redis Cluster"},
        {"# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\nserver_mode:sentinel\r\n",
         "Valkey 8.1.1", "is a Sentinel"},
    };
    rds_store fake = {.link = {.fd = -1}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const rds_value info = {.type = RDS_TEXT, .p = rows[i].info, .n = strlen(rows[i].info)};
        const rds_value nothing = {.type = RDS_LIST};
        char name[64];
        int rc = jobq__redis_check_server(&fake, &info, &nothing);

        jobq__redis_name_server(rows[i].info, name, sizeof(name));
        assert_string_equal(name, rows[i].name);
        assert_int_equal(rc, rows[i].refused ? JOBQ_ECONF : 0);
        if (rows[i].refused)
            assert_said(rows[i].refused);
    }
}

static void test_unix_socket(void **state)
{
    char text[300];

    (void)state;
    snprintf(text, sizeof(text), "redis+unix://%s?db=3&prefix=x", server_socket(redis));
    jobq__store_free(store);
    store = contract_open(text);
    push_job("a", "q");
    assert_string_equal(tell("-n 3 exists '{x:q}:p0'"), "1\n");
    tell("-n 3 flushdb");
}

/* ---- looking at how it is set up ------------------------------------------------------------- */

static long long memory_of(const server *s)
{
    const char *line = strstr(store_admin(s, STORE_REDIS, "info memory"), "used_memory:");

    return line ? strtoll(line + strlen("used_memory:"), NULL, 10) : 0;
}

/* The grade of a check and whether its text has these words; -1: there is no such check. */
static int grade_of(const char *check, const char *words)
{
    static jobq_batch remarks;
    jobq_examination e = {.out = &remarks};

    jobq__batch_reset(&remarks);
    assert_ok(jobq__store_examine(store, &e));
    for (const jobq_remark *r = e.remarks; r; r = r->next)
        if (strcmp(r->check, check) == 0) {
            if (!strstr(r->text, words))
                fail_msg("%s: \"%s\" has no \"%s\"", check, r->text, words);
            return r->grade;
        }
    return -1;
}

/* ---- Sentinel -------------------------------------------------------------------------------- */

/* Runs in the folder until it is killed by its pid. */
static void start_sentinel(const char *folder, int port, int master)
{
    char text[600];

    snprintf(text, sizeof(text),
             "cd '%s' && printf 'port %d\\nbind 127.0.0.1\\ndir .\\npidfile %s/pid\\n"
             "sentinel monitor jobs 127.0.0.1 %d 1\\nsentinel down-after-milliseconds jobs 500\\n"
             "sentinel failover-timeout jobs 3000\\n' >conf && "
             "(timeout -s KILL 120 redis-server conf --sentinel >log 2>&1 &)",
             folder, port, folder, master);
    assert_int_equal(system(text), 0);
}

static void end_sentinel(const char *folder)
{
    char text[200];

    snprintf(text, sizeof(text), "kill -9 \"$(cat '%s/pid')\"", folder);
    assert_int_equal(system(text), 0);
}

static bool push_works(const char *id)
{
    jobq_push item = job_item(id, "q");
    int rc = jobq__store_push(store, &item, 1);

    if (rc < 0 && rc != JOBQ_EUNKNOWN)
        assert_true(jobq_error_is_retryable(jobq_error_last()));
    return rc == 0;
}

/* Replication is asynchronous, and Sentinel learns of a replica only by asking: before both are
 * there, a master that dies takes its jobs with it. */
static bool is_replicated(server *replica, int sentinel)
{
    char text[200];

    snprintf(text, sizeof(text), "redis-cli -p %d sentinel replicas jobs | grep -qx '127.0.0.1:%d'",
             sentinel, server_port(replica));
    return system(text) == 0 &&
           strcmp(store_admin(replica, STORE_REDIS, "-n 2 xlen '{jobqueue:q}:p0'"), "1\n") == 0;
}

/* rule K2: the sentinels are asked for the master; when another one takes over, it is found. */
static void test_k2_sentinel(void **state)
{
    const char *folder = jobq_test_folder();
    server *first = server_start("redis", false), *second = server_start("redis", false);
    int port = server_free_port();
    char text[300];

    (void)state;
    jobq__store_free(store);
    snprintf(text, sizeof(text), "replicaof 127.0.0.1 %d", server_port(first));
    store_admin(second, STORE_REDIS, text);
    wait_until(strstr(store_admin(second, STORE_REDIS, "info replication"),
                      "master_link_status:up") != NULL,
               30);
    start_sentinel(folder, port, server_port(first));
    snprintf(text, sizeof(text),
             "redis-sentinel://127.0.0.1:1,127.0.0.1:%d/jobs/2?connect_timeout=2&read_timeout=2",
             port);
    store = contract_open(text);
    wait_until(push_works("a"), 20);
    assert_string_equal(store_admin(first, STORE_REDIS, "-n 2 xlen '{jobqueue:q}:p0'"), "1\n");
    wait_until(is_replicated(second, port), 30);
    assert_int_equal(grade_of("sentinel", "1 of 2"), JOBQ_REMARK_NOTE); /* rule N5 */
    assert_int_equal(grade_of("replicas", "min-replicas-to-write"), JOBQ_REMARK_NOTE);
    server_kill(first);
    assert_false(push_works("b"));
    wait_until(push_works("c"), 30);
    assert_true(find_job("a") != NULL);
    end_sentinel(folder);
    server_remove(first);
    server_remove(second);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A certificate for "localhost" that vouches for itself. */
/* 0 when a call over it succeeds, else the code. */
static int try_tls(const char *options, const char *ca, const char *host, int port)
{
    jobq__store *other = NULL;
    char text[400];
    int64_t now_ms;
    int rc;

    snprintf(text, sizeof(text), "rediss://%s:%d?prefix=tls%s%s%s", host, port, options,
             ca ? "&ca=" : "", ca ? ca : "");
    assert_ok(jobq__store_new(text, NULL, &other));
    rc = jobq__store_now(other, &now_ms);
    jobq__store_free(other);
    return rc;
}

/* rule P2: chain and name are verified by default. */
static void test_p2_tls(void **state)
{
    const char *folder = jobq_test_folder();
    int port = server_free_port();
    char text[512], ca[128];
    server *own;

    (void)state;
    server_make_certificate(folder);
    snprintf(text, sizeof(text),
             "--tls-port %d --tls-cert-file %s/cert.pem --tls-key-file %s/key.pem "
             "--tls-ca-cert-file %s/cert.pem --tls-auth-clients no",
             port, folder, folder, folder);
    own = server_start_with("redis", false, text);
    snprintf(ca, sizeof(ca), "%s/cert.pem", folder);
    assert_int_equal(try_tls("", ca, "localhost", port), 0);
    assert_int_equal(try_tls("&verify=false", NULL, "127.0.0.1", port), 0);
    assert_int_equal(try_tls("", NULL, "localhost", port), JOBQ_ECONF);
    assert_said("not trusted");
    assert_int_equal(try_tls("", ca, "127.0.0.1", port), JOBQ_ECONF);
    assert_said("IP address mismatch");
    assert_int_equal(try_tls("", "/no/such/none.pem", "localhost", port), JOBQ_ECONF);
    assert_said("none.pem");
    assert_int_equal(
        try_tls("&connect_timeout=1&verify=false", NULL, "127.0.0.1", server_port(own)),
        JOBQ_ECONNECT); /* it speaks no TLS */
    snprintf(dsn, sizeof(dsn), "rediss://localhost:%d?ca=%s/cert.pem&prefix=tls", port, folder);
    jobq__store_free(store);
    store = contract_open(dsn);
    for (int i = 0; i < 20; i++) {
        static char body[1 << 20];
        char id[16];
        jobq_push item;

        snprintf(id, sizeof(id), "big%d", i);
        item = job_item(id, "q");
        item.body = jobq__slice(body, sizeof(body));
        assert_int_equal(push_item(&item), 0);
    }
    assert_int_equal(reserve_jobs("w", "q", 20), 20);
    assert_int_equal(got.last->body.n, 1 << 20);
    server_remove(own);
}

/* rule C5: nothing is taken back before one lease after the server's own start. */
static void test_c5_grace_after_a_restart(void **state)
{
    server *own = server_start_with("redis", true, "--appendonly yes --appendfsync always");
    jobq_maintenance m = {.limit = 100, .loss_cap = 10, .take_back = true};

    (void)state;
    jobq__store_free(store);
    store = contract_open(server_dsn(own));
    begin_worker("w", 10000);
    push_job("a", "q");
    reserve_one("w", "q", "a");
    server_shift(own, 60000);
    server_restart(own);
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 0);
    assert_true(m.next_due_ms > m.now_ms && m.next_due_ms <= m.now_ms + 11000);
    server_shift(own, 12000);
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 1);
    server_remove(own);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* case B141: two prefixes side by side, whose names run into each other. */
static void test_b141_prefixes(void **state)
{
    static const char *const prefixes_of[] = {"p", "p:a", "{p}", "p%3Aa", "p}:a"};
    jobq__store *stores[5];
    char text[300];

    (void)state;
    jobq__store_free(store);
    for (size_t i = 0; i < 5; i++) {
        snprintf(text, sizeof(text), "%s?prefix=%s", server_dsn(redis),
                 i == 3 ? "p%253Aa" : prefixes_of[i]);
        stores[i] = store = contract_open(text);
        push_job("a", "a:b");
        push_job("b", "b");
        push_job("c", "a:queues");
    }
    for (size_t i = 0; i < 5; i++) {
        store = stores[i];
        assert_int_equal(count_jobs("b").ready, 1);
        assert_int_equal(settle_op("w", reserve_one("w", "b", "b"), JOBQ_OP_DONE), 0);
        assert_int_equal(total("a:b"), 1);
        assert_int_equal(total("a:queues"), 1);
        if (i > 0)
            jobq__store_free(stores[i]);
    }
    store = stores[0];
}

static void some_of_everything(void)
{
    jobq_push item = job_item("delayed", "q:}{");

    push_job("a", "q:}{");
    push_job("b", "q:}{");
    item.unique = TEXT("key");
    item.delay_ms = 1000;
    push_item(&item);
    begin_worker("w", 1000);
    assert_int_equal(settle_op("w", reserve_one("w", "q:}{", "a"), JOBQ_OP_DEAD), 0);
    reserve_one("w", "q:}{", "b");
    pass_time(5000, 5000);
    maintain_all();
}

/* Nothing outside the prefix is touched, and hardly anything stays of jobs that are gone. */
static void test_only_its_own_keys(void **state)
{
    char *line, *text;

    (void)state;
    tell("flushall");
    tell("set canary alive");
    some_of_everything();
    text = strdup(tell("keys '*'"));
    for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "{test", 5) != 0)
            assert_string_equal(line, "canary");
    free(text);
    assert_string_equal(tell("get canary"), "alive\n");
    assert_int_equal(reserve_jobs("w2", "q:}{", 9), 2);
    for (const jobq_record *r = got.first; r; r = r->next)
        assert_int_equal(settle_op("w2", r, JOBQ_OP_DONE), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "a", false), 0);
    for (int i = 0; i < 7; i++) {
        static const char *const parts[] = {"rest",  "dead",  "delayed", "unique",
                                            "taken", "trace", "ids"};

        assert_string_equal(tell("exists '{%s:q%%3A%%7D%%7B}:%s'", prefix, parts[i]), "0\n");
    }
}

/* rule C6, case B031: entries that are not ours are kept byte for byte and block nothing. */
static void test_b031_foreign_entries(void **state)
{
    (void)state;
    push_job("before", "q");
    tell("xadd '{%s:q}:p0' '*' hello world", prefix);
    tell("xadd '{%s:q}:p0' '*' j ''", prefix);
    push_job("behind", "q");
    assert_int_equal(reserve_jobs("w", "q", 9), 4);
    assert_string_equal(got.last->id.p, "behind");
    assert_memory_equal(got.first->next->name.p, "malformed", 9);
    assert_true(memmem(got.first->next->body.p, got.first->next->body.n, "world", 5) != NULL);
    for (const jobq_record *r = got.first; r; r = r->next)
        assert_int_equal(settle_op("w", r, r == got.first->next ? JOBQ_OP_DEAD : JOBQ_OP_BACK), 0);
    assert_int_equal(count_jobs("q").dead, 1);
    assert_int_equal(reserve_jobs("w", "q", 9), 3);
}

/* case B054: records that somebody has deleted. */
static void test_b054_lost_records(void **state)
{
    (void)state;
    push_job("a", "q");
    begin_worker("w", 10000);
    reserve_one("w", "q", "a");
    tell("del '{%s:q}:workers' '{%s:q}:w:w'", prefix, prefix);
    maintain_all();
    pass_time(31000, 31000);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(settle_op("v", reserve_one("v", "q", "a"), JOBQ_OP_BACK), 0);
    tell("del '{%s:q}:p0' ", prefix); /* the stream with its group */
    assert_int_equal(reserve_jobs("v", "q", 9), 0);
    push_job("b", "q");
    reserve_one("v", "q", "b");
}

/* case B054: what lists jobs was deleted, the jobs are still there. */
static void test_b054_lost_lists(void **state)
{
    jobq_push item = job_item("later", "q");

    (void)state;
    item.delay_ms = 60000;
    assert_int_equal(push_item(&item), 0);
    push_job("a", "q");
    push_job("d", "q2");
    assert_int_equal(settle_op("w", reserve_one("w", "q2", "d"), JOBQ_OP_DEAD), 0);
    tell("del '{%s:q}:prios' '{%s:q}:delayed' '{%s:q2}:dead' '{%s:q2}:workers'", prefix, prefix,
         prefix, prefix);
    tell("hset '{%s:q}:rest' foreign bytes", prefix);
    assert_int_equal(count_jobs("q").ready + count_jobs("q").delayed + count_jobs("q2").dead, 0);
    maintain_all();
    assert_int_equal(count_jobs("q").ready, 1);
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_int_equal(count_jobs("q2").dead, 1);
    assert_int_equal(settle_op("v", reserve_one("v", "q", "a"), JOBQ_OP_DONE), 0);
    pass_time(61000, 61000);
    assert_int_equal(maintain_all().handled, 1);
    reserve_one("v", "q", "later");
}

/* case B054: a scan of many jobs goes on where it ended. */
static void test_b054_lost_list_of_many(void **state)
{
    static char ids[2500][8];

    (void)state;
    for (int i = 0; i < 2500; i++) {
        jobq_push item;

        snprintf(ids[i], sizeof(ids[i]), "j%d", i);
        item = job_item(ids[i], "q");
        item.delay_ms = 60000;
        assert_int_equal(push_item(&item), 0);
    }
    tell("del '{%s:q}:delayed'", prefix);
    for (int i = 0; i < 5 && count_jobs("q").delayed < 2500; i++) {
        maintain_all();
        jobq__store_free(store);
        store = contract_open(dsn); /* looks at once, not after a minute */
    }
    assert_int_equal(count_jobs("q").delayed, 2500);
}

/* rule C5: entries that somebody has deleted hide none of those behind them. */
static void test_c5_deleted_entries_hide_none(void **state)
{
    jobq_maintenance m = {.limit = 1, .loss_cap = 10, .take_back = true};
    int rounds = 0;

    (void)state;
    for (const char *id = "abcd"; *id; id++)
        push_job((char[]){*id, '\0'}, "q");
    begin_worker("w", 10000);
    assert_int_equal(reserve_jobs("w", "q", 4), 4);
    tell("eval \"local e = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 2) "
         "return redis.call('XDEL', KEYS[1], e[1][1], e[2][1])\" 1 '{%s:q}:p0'",
         prefix);
    pass_time(11000, 11000);
    do
        assert_ok(jobq__store_maintain(store, &m));
    while (m.more && ++rounds < 10);
    assert_int_equal(reserve_jobs("v", "q", 9), 2);
    expect_ids("c d");
}

/* ---- many jobs ------------------------------------------------------------------------------- */

/* How often the server has run a command since `config resetstat`. */
static long calls_of(const char *command)
{
    char word[40];
    const char *line;

    snprintf(word, sizeof(word), "cmdstat_%s:calls=", command);
    line = strstr(tell("info commandstats"), word);
    return line ? strtol(line + strlen(word), NULL, 10) : 0;
}

/* States of records. */
enum { DELAYED = 1, DEAD = 4 };

static void push_many(int jobs, bool fresh, int64_t at_ms)
{
    enum { CHUNK = 500 };
    static jobq_push items[CHUNK];
    static char ids[CHUNK][40];
    int64_t now = store_now();

    for (int done = 0; done < jobs; done += CHUNK) {
        for (int i = 0; i < CHUNK; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%08llx-%04llx-7000-8000-%012x",
                     (unsigned long long)(now >> 16), (unsigned long long)(now & 0xffff), done + i);
            items[i] = job_item(ids[i], "q");
            items[i].fresh_id = fresh;
            items[i].at_ms = at_ms;
        }
        assert_ok(jobq__store_push(store, items, CHUNK));
    }
}

/* Jobs of one instant in pages: each is shown once, and a page costs what it shows, wherever it
 * stands. */
static void check_pages(jobq_listing l, int jobs)
{
    jobq_batch page = {0};
    char cursor[200], last[40] = "";
    int seen = 0;

    tell("config resetstat");
    do {
        jobq__batch_reset(&page);
        l.out = &page;
        assert_ok(jobq__store_list(store, &l));
        for (const jobq_record *r = page.first; r; r = r->next) {
            int order = strcmp(r->id.p, last);

            assert_true(!*last || (l.state == DEAD ? order < 0 : order > 0));
            snprintf(last, sizeof(last), "%s", (const char *)r->id.p);
            seen++;
        }
        if (l.next.p) {
            memcpy(cursor, l.next.p, l.next.n);
            l.after = jobq__slice(cursor, l.next.n);
        }
    } while (l.next.p);
    jobq__batch_free(&page);
    assert_int_equal(seen, jobs);
    assert_true(calls_of("hget") <= 2 * jobs);
}

static void test_pages_of_one_instant(void **state)
{
    enum { JOBS = 3000 };
    jobq_listing l = {.queue = TEXT("q"), .limit = 50, .state = DELAYED};

    (void)state;
    push_many(JOBS, false, store_now() + 1000000);
    check_pages(l, JOBS);
    pass_time(1000000, 1000000);
    tell("rename '{%s:q}:delayed' '{%s:q}:dead'", prefix, prefix);
    l.state = DEAD;
    check_pages(l, JOBS);
}

/* rule B5: a push with a UUIDv7 that its caller made looks for it among a bounded number of jobs,
 * however many wait. */
static void test_b5_searches_are_bounded(void **state)
{
    char id[40] = "";
    int64_t now = store_now();
    jobq_push item = job_item(id, "q");

    (void)state;
    push_many(10000, true, 0);
    snprintf(id, sizeof(id), "%08llx-%04llx-7000-8000-ffffffffffff",
             (unsigned long long)(now >> 16), (unsigned long long)(now & 0xffff));
    item.id = TEXT(id);
    tell("config resetstat");
    assert_int_equal(push_item(&item), 0);
    assert_true(calls_of("xrange") <= 4);
    assert_int_equal(push_item(&item), JOBQ_EEXISTS);
}

/* ---- ids made by the library ----------------------------------------------------------------- */

/* Jobs whose id was made for the push are in no index: found by the time in it (rule B5). */
static void test_b5_fresh_ids_are_found(void **state)
{
    char id[40] = "", old[] = "00000000-0000-7000-8000-000000000001";
    int64_t now = store_now();
    jobq_push item = job_item(id, "q"), again;

    (void)state;
    snprintf(id, sizeof(id), "%08llx-%04llx-7000-8000-000000000001",
             (unsigned long long)(now >> 16), (unsigned long long)(now & 0xffff));
    item.id = TEXT(id);
    item.fresh_id = true;
    push_job("other", "another");
    assert_int_equal(push_item(&item), 0);
    assert_string_equal(tell("hlen '{%s:another}:ids'", prefix), "1\n");
    assert_int_equal(find_job(id)->state, 0);
    again = item;
    again.fresh_id = false;
    again.queue = TEXT("another");
    assert_int_equal(push_item(&again), JOBQ_EEXISTS);
    again.id = TEXT(old);
    assert_int_equal(push_item(&again), 0);
    reserve_one("w", "q", id);
    assert_int_equal(find_job(id)->state, 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(find_job(id)->state, 0);
    reserve_one("w", "q", id);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_null(find_job(id));
    assert_string_equal(tell("hlen '{%s:another}:ids'", prefix), "2\n");
}

/* ---- costs ----------------------------------------------------------------------------------- */

static long long used_memory(void)
{
    return memory_of(redis);
}

/* At most 200 bytes beside a body of 120. */
static void test_memory_of_a_waiting_job(void **state)
{
    enum { JOBS = 100000, CHUNK = 500 };
    static jobq_push items[CHUNK];
    static char ids[CHUNK][40], body[120];
    long long before = used_memory(), each;

    (void)state;
    for (int done = 0; done < JOBS; done += CHUNK) {
        for (int i = 0; i < CHUNK; i++) {
            snprintf(ids[i], sizeof(ids[i]), "0190e0a1-0000-7000-8000-%012x", done + i);
            items[i] = job_item(ids[i], "q");
            items[i].fresh_id = true;
            items[i].body = jobq__slice(body, sizeof(body));
        }
        assert_ok(jobq__store_push(store, items, CHUNK));
    }
    each = (used_memory() - before) / JOBS - (long long)sizeof(body);
    print_message("%lld bytes for a waiting job beside its body of 120\n", each);
    assert_true(each > 0 && each <= 200);
    tell("del '{%s:q}:p0'", prefix);
}

/* ---- capacity, keys, retention on this layout ------------------------------------------------ */

static void limit_queue(int64_t value)
{
    jobq_limit l = {.queue = TEXT("q"), .value = value};

    assert_ok(jobq__store_capacity(store, &l));
}

static int push_replacing(const char *id)
{
    jobq_push item = job_item(id, "q");

    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    return push_item(&item);
}

/* Rules K3, B4, B6, N7, F4: without memory a push is refused, and all that ends a job goes on. */
static void test_k3_maxmemory_with_guarantees(void **state)
{
    jobq_push item = job_item("more", "q");
    jobq_settlement s;
    jobq_minute minute = {.queue = TEXT("q"), .minute = store_now() / 60000, .counts = {1}};

    (void)state;
    limit_queue(10);
    push_job("a", "q");
    push_job("b", "q");
    push_job("c", "q");
    assert_int_equal(push_replacing("holder"), 0);
    reserve_one("w", "q", "a");
    tell("config set maxmemory 1");
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EIO);
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EIO);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    s = settlement(got.first, JOBQ_OP_PROGRESS);
    s.outcome = TEXT("half");
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK),
                     0); /* to the end of a closed stream */
    s = settlement(reserve_one("w", "q", "b"), JOBQ_OP_DEAD);
    s.keep_ms = 1000;
    assert_int_equal(settle_with("w", &s), 0);
    assert_ok(jobq__store_book(store, &minute, 1));
    tell("config set maxmemory 0");
    assert_int_equal(reserve_jobs("w", "q", 9), 3);
    expect_ids("c holder a");
    assert_int_equal(push_replacing("follower"), 2);
    tell("config set maxmemory 1");
    assert_int_equal(settle_op("w", got.first->next, JOBQ_OP_DONE), 0);
    reserve_one("w", "q", "follower");
    assert_memory_equal(find_job("a")->outcome.p, "half", 4);
    tell("config set maxmemory 0");
}

/* What was there before a capacity came keeps its place and its tokens; a plain push fails at the
 * stream itself, whoever sends it. */
static void test_b4_closed_streams(void **state)
{
    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    reserve_one("w", "q", "a");
    limit_queue(3);
    tell("xadd '{%s:q}:p0' nomkstream '*' j foreign", prefix);
    assert_int_equal(total("q"), 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    expect_ids("b a");
    limit_queue(0);
    tell("xadd '{%s:q}:p0' nomkstream '*' j foreign", prefix);
    assert_int_equal(total("q"), 3);
}

/* A closed stream outlives a restart, from a rewritten append-only file as from a snapshot. */
static void test_b4_closed_streams_outlive_a_restart(void **state)
{
    server *own = server_start_with("redis", false,
                                    "--appendonly yes --appendfsync always "
                                    "--aof-use-rdb-preamble no");
    jobq_push item = job_item("e", "q");

    (void)state;
    jobq__store_free(store);
    store = contract_open(server_dsn(own));
    for (const char *id = "abc"; *id; id++)
        push_job((char[]){*id, '\0'}, "q");
    reserve_one("w", "q", "a");
    limit_queue(4);
    for (int pass = 0; pass < 2; pass++) {
        store_admin(own, STORE_REDIS,
                    pass ? "config set aof-use-rdb-preamble yes"
                         : "config set aof-use-rdb-preamble no");
        store_admin(own, STORE_REDIS, "bgrewriteaof");
        wait_until(strstr(store_admin(own, STORE_REDIS, "info persistence"),
                          "aof_rewrite_in_progress:0") != NULL,
                   30);
        server_restart(own);
        item.fresh_id = false;
        item.id = TEXT(pass ? "f" : "e");
        wait_until(jobq__store_push(store, &item, 1) == 0, 30);
        assert_int_equal(item.result, pass ? JOBQ_EFULL : 0);
        item.fresh_id = true;
        assert_int_equal(push_item(&item), JOBQ_EFULL);
        assert_int_equal(total("q"), 4);
    }
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(reserve_jobs("w", "q", 9), 4);
    expect_ids("b c e a");
    server_remove(own);
}

/* case B054: what makes a queue limited was deleted; the limit itself is in the store. */
static void test_b4_lost_records(void **state)
{
    jobq_push item = job_item("c", "q");

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    reserve_one("w", "q", "a");
    limit_queue(2);
    tell("hdel '{%s:q}:limit' 0", prefix);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    expect_ids("b a");
    for (const jobq_record *r = got.first; r; r = r->next)
        assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
    tell("hdel '{%s:q}:limit' 0", prefix);
    push_job("a", "q");
    push_job("b", "q");
    tell("del '{%s:q}:prios'", prefix);
    assert_int_equal(push_item(&item), JOBQ_EFULL); /* the push itself sees to it */
    tell("del '{%s:q}:prios'", prefix);
    maintain_all();
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    tell("set '{%s:q}:prios' 0", prefix);
    item.fresh_id = true;
    item.unique = TEXT("key");
    assert_int_equal(push_item(&item), 0); /* not seen until maintenance has been by */
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE), 0);
    jobq__store_free(store);
    store = contract_open(dsn); /* looks at once, not after a minute */
    maintain_all();
    item = job_item("c", "q");
    tell("del '{%s:q}:p0'", prefix); /* made again by whoever looks for jobs */
    assert_int_equal(reserve_jobs("w", "q", 9), 0);
    push_job("d", "q");
    push_job("e", "q");
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    item.fresh_id = true;
    assert_int_equal(push_item(&item), JOBQ_EFULL);
}

/* case B054: a follower whose key was deleted is found and put back in. */
static void test_b6_lost_key(void **state)
{
    (void)state;
    push_replacing("holder");
    reserve_one("w", "q", "holder");
    assert_int_equal(push_replacing("follower"), 2);
    tell("del '{%s:q}:unique'", prefix);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    maintain_all();
    assert_int_equal(settle_op("w", reserve_one("w", "q", "follower"), JOBQ_OP_DONE), 0);
    assert_int_equal(atoi(tell("exists '{%s:q}:unique' '{%s:q}:next'", prefix, prefix)), 0);
}

/* Nothing stays of jobs that had a key, a follower, progress, a result, an end of their time. */
static void test_guarantees_leave_no_trace(void **state)
{
    static const char *const parts[] = {"rest",  "dead",   "delayed", "unique", "taken",
                                        "trace", "cancel", "ids",     "next",   "done"};
    jobq_settlement s;

    (void)state;
    begin_worker("w", 3600000);
    for (int i = 0; i < 4; i++) {
        static const int ops[] = {JOBQ_OP_DONE, JOBQ_OP_DONE, JOBQ_OP_DEAD, JOBQ_OP_BACK};
        char holder[8], follower[8];

        snprintf(holder, sizeof(holder), "h%d", i);
        snprintf(follower, sizeof(follower), "f%d", i);
        push_replacing(holder);
        s = settlement(reserve_one("w", "q", holder), JOBQ_OP_PROGRESS);
        s.outcome = TEXT("half");
        assert_int_equal(settle_with("w", &s), 0);
        assert_int_equal(push_replacing(follower), 2);
        assert_int_equal(push_replacing("another"), 2);
        s.op = (uint8_t)ops[i];
        s.keep_ms = i ? 1000 : 0;
        assert_int_equal(settle_with("w", &s), 0);
        if (i == 3)
            assert_int_equal(settle_op("w", reserve_one("w", "q", holder), JOBQ_OP_DONE), 0);
        assert_int_equal(settle_op("w", reserve_one("w", "q", follower), JOBQ_OP_DONE), 0);
    }
    pass_time(2000, 2000);
    maintain_all();
    assert_int_equal(total("q"), 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        assert_string_equal(tell("exists '{%s:q}:%s'", prefix, parts[i]), "0\n");
}

/* The same after everything that can happen to jobs, in any order. */
static void test_traffic_leaves_no_trace(void **state)
{
    static const char *const parts[] = {"rest",  "dead",   "delayed", "unique", "taken",
                                        "trace", "cancel", "ids",     "next",   "done"};
    const char *seed = getenv("JOBQUEUE_TEST_SEED");

    (void)state;
    traffic_run(seed ? (unsigned)atoi(seed) : 7, 600);
    for (size_t q = 0; q < 2; q++)
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            if (atoi(tell("exists '{%s:%s}:%s'", prefix, q ? "qb" : "qa", parts[i])))
                fail_msg("%s is left", parts[i]);
}

/* Rule N1: the minutes of a day, and no longer. */
static void test_n1_minutes_go_by_themselves(void **state)
{
    jobq_minute booked = {.queue = TEXT("q"), .minute = store_now() / 60000, .counts = {3}};
    jobq_minutes m = {.queue = TEXT("q"), .out = &got};

    (void)state;
    jobq__batch_reset(&got);
    assert_ok(jobq__store_book(store, &booked, 1));
    pass_time(23 * 3600000, 23 * 3600000);
    assert_ok(jobq__store_minutes(store, &m));
    assert_int_equal(m.minutes->counts[0], 3);
    pass_time(3600000 + 120000, 3600000 + 120000);
    assert_ok(jobq__store_minutes(store, &m));
    assert_null(m.minutes);
    wait_until(strcmp(tell("keys '{%s:q}:m:*'", prefix), "\n") == 0, 20);
}

/* Given its queue, a job is found by one script, however many queues there are. */
static void test_find_asks_one_queue(void **state)
{
    jobq_batch found = {0};

    (void)state;
    for (int i = 0; i < 50; i++) {
        char queue[8];

        snprintf(queue, sizeof(queue), "q%d", i);
        push_job(queue, queue);
    }
    tell("config resetstat");
    assert_ok(jobq__store_find(store, TEXT("q7"), TEXT("q7"), &found));
    assert_int_equal(found.count, 1);
    jobq__batch_free(&found);
    assert_int_equal(calls_of("evalsha"), 1);
    assert_int_equal(calls_of("smembers"), 0);
}

/* A job that uses nothing of it costs the commands it did before: one to push, and no more than
 * these to be reserved and settled. */
static void test_plain_jobs_cost_what_they_did(void **state)
{
    enum { JOBS = 50 };
    char id[40];
    jobq_push item;

    (void)state;
    push_job("first", "q");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DONE), 0);
    tell("config resetstat");
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof(id), "0190e0a1-0000-7000-8000-%012x", i);
        item = job_item(id, "q");
        item.fresh_id = true;
        assert_int_equal(push_item(&item), 0);
    }
    assert_int_equal(calls_of("xadd"), JOBS);
    assert_int_equal(calls_of("evalsha"), 0);
    assert_int_equal(reserve_jobs("w", "q", JOBS), JOBS);
    for (const jobq_record *r = got.first; r; r = r->next)
        assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
    assert_true(calls_of("evalsha") <= JOBS + 2);
    assert_true(calls_of("exists") <= JOBS + 2);
    assert_int_equal(calls_of("xack"), JOBS);
    assert_int_equal(calls_of("hdel"), 0);
    assert_int_equal(calls_of("hget"), 0);
}

/* ---- the layout of before -------------------------------------------------------------------- */

/* Version 2 had less and nothing else: it becomes 3 by `migrate`, its jobs stay. */
static void test_layout_2_becomes_3(void **state)
{
    jobq_push item = job_item("c", "q");
    char text[500];

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    reserve_one("w", "q", "a");
    tell("set '{%s}:schema' 2", prefix);
    jobq__store_free(store);
    snprintf(text, sizeof(text), "%s&migrate=false", dsn);
    store = contract_open(text);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("version 2");
    assert_said("migrate");
    assert_int_equal(grade_of("schema", "version 2"), JOBQ_REMARK_PROBLEM); /* rule N5 */
    assert_ok(jobq__store_schema(store));
    assert_string_equal(tell("get '{%s}:schema'", prefix), "3\n");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    tell("set '{%s}:schema' 4", prefix);
    jobq__store_free(store);
    store = contract_open(dsn);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("update the library");
    tell("set '{%s}:schema' 2", prefix);
    jobq__store_free(store);
    store = contract_open(dsn); /* by itself where it may */
    assert_int_equal(push_item(&item), 0);
}

/* Rule N5: a server that is set up as it should be, and what is wrong with others. */
static void test_n5_examined(void **state)
{
    server *own = server_start_with("redis", false, "--appendonly yes --appendfsync everysec");
    char text[300];

    (void)state;
    jobq__store_free(store);
    store = contract_open(server_dsn(own));
    push_job("a", "q");
    assert_int_equal(grade_of("eviction", "noeviction"), JOBQ_REMARK_OK);
    assert_int_equal(grade_of("durability", "everysec"), JOBQ_REMARK_OK);
    assert_int_equal(grade_of("memory", "not set"), JOBQ_REMARK_OK);
    assert_int_equal(
        grade_of("version", strstr(tell("info server"), "valkey_") ? "Valkey " : "Redis "),
        JOBQ_REMARK_OK);
    assert_int_equal(grade_of("rights", ""), JOBQ_REMARK_OK);
    assert_int_equal(grade_of("schema", "3"), JOBQ_REMARK_OK);
    assert_int_equal(grade_of("replicas", "no replica"), JOBQ_REMARK_OK);
    assert_int_equal(grade_of("sentinel", ""), -1);
    store_admin(own, STORE_REDIS, "config set maxmemory-policy allkeys-lru");
    assert_int_equal(grade_of("eviction", "allkeys-lru"), JOBQ_REMARK_PROBLEM);
    store_admin(own, STORE_REDIS, "config set maxmemory-policy noeviction");
    store_admin(own, STORE_REDIS, "config set appendfsync no");
    assert_int_equal(grade_of("durability", "power cut"), JOBQ_REMARK_NOTE);
    store_admin(own, STORE_REDIS, "config set appendonly no");
    assert_int_equal(grade_of("durability", "append-only"), JOBQ_REMARK_PROBLEM);
    store_admin(own, STORE_REDIS, "config set maxmemory 1");
    assert_int_equal(grade_of("memory", "is reached"), JOBQ_REMARK_PROBLEM);
    snprintf(text, sizeof(text), "config set maxmemory %lld", memory_of(own) * 106 / 100);
    store_admin(own, STORE_REDIS, text);
    assert_int_equal(grade_of("memory", "soon"), JOBQ_REMARK_NOTE);
    store_admin(own, STORE_REDIS, "config set maxmemory 0");
    store_admin(own, STORE_REDIS,
                "acl setuser app reset on nopass '~{*' +@read +@write +@scripting +@connection "
                "+@transaction +info +time -xsetid -hscan");
    snprintf(text, sizeof(text), "redis://app:x@127.0.0.1:%d", server_port(own));
    jobq__store_free(store);
    store = contract_open(text);
    assert_int_equal(grade_of("rights", "XSETID"), JOBQ_REMARK_PROBLEM);
    assert_int_equal(grade_of("rights", "HSCAN"), JOBQ_REMARK_PROBLEM);
    store_admin(own, STORE_REDIS, "replicaof 127.0.0.1 1");
    assert_int_equal(grade_of("replicas", "replica"), JOBQ_REMARK_PROBLEM);
    server_remove(own);
}

/* ---- the audit ------------------------------------------------------------------------------- */

/* The strays of all pages: "id states" each. */
static const char *audit_queue(const char *queue)
{
    static char said[400], cursor[100];
    static jobq_batch page;
    jobq_audit a = {.queue = TEXT(queue), .limit = 3, .out = &page};

    said[0] = '\0';
    do {
        jobq__batch_reset(&page);
        assert_ok(jobq__store_audit(store, &a));
        for (const jobq_stray *s = a.strays; s; s = s->next)
            snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%.*s %x%s",
                     *said ? ", " : "", (int)s->id.n, (const char *)s->id.p, s->states,
                     s->ownerless ? " nobody's" : "");
        if (a.next.p) {
            memcpy(cursor, a.next.p, a.next.n);
            a.after = jobq__slice(cursor, a.next.n);
        }
    } while (a.next.p);
    return said;
}

static void some_jobs(void)
{
    jobq_push later = job_item("later", "q");

    tell("flushall");
    later.delay_ms = 1000000;
    begin_worker("w", 3600000);
    push_job("dead", "q");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "dead"), JOBQ_OP_DEAD), 0);
    push_replacing("holder");
    reserve_one("w", "q", "holder");
    push_replacing("follower");
    assert_int_equal(push_item(&later), 0);
    for (int i = 0; i < 5; i++)
        push_job((char[]){(char)('a' + i), '\0'}, "q");
}

/* Rules N5, F1: what hands have broken is found, and nothing else. */
static void test_n5_audit_finds(void **state)
{
    static const struct {
        const char *script, *strays;
    } rows[] = {
        {"return 1", ""},
        /* an entry of a job that stands elsewhere; two entries; one of a dead job */
        {"local e = c('XRANGE', q .. 'p0', '-', '+') c('XADD', q .. 'p0', '*', 'j', e[2][2][2])",
         "a 1"},
        {"c('ZADD', q .. 'dead', 1, 'later')", "later 12"},
        {"c('XADD', q .. 'p0', '*', 'j', c('HGET', q .. 'rest', 'dead'):sub(109))", "dead 11"},
        /* lists without jobs, jobs without lists */
        {"c('ZREM', q .. 'delayed', 'later')", "later 0"},
        {"c('HDEL', q .. 'rest', 'dead')", "dead 10, dead 0"},
        {"c('XDEL', q .. 'p0', c('HGET', q .. 'ids', 'b'):sub(3))", "b 0"},
        /* a follower of nobody; a hand-out of nobody */
        {"c('HDEL', q .. 'unique', 'key')", "follower 0"},
        {"c('DEL', q .. 'workers', q .. 'w:w')", "holder 4 nobody's"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        some_jobs();
        tell("eval \"local c, q = redis.call, KEYS[1] %s\" 1 '{%s:q}:'", rows[i].script, prefix);
        assert_string_equal(audit_queue("q"), rows[i].strays);
    }
}

/* A page looks at so many jobs as were asked for, not at the whole queue. */
static void test_n5_audit_is_bounded(void **state)
{
    jobq_audit a = {.queue = TEXT("q"), .limit = 100, .out = &got};

    (void)state;
    push_many(10000, true, 0);
    jobq__batch_reset(&got);
    tell("config resetstat");
    assert_ok(jobq__store_audit(store, &a));
    assert_int_equal(a.seen[0], 100);
    assert_non_null(a.next.p);
    assert_true(calls_of("xrange") <= 12);
    a.after = jobq__slice("0.1-1 x", 7);
    assert_code(jobq__store_audit(store, &a), JOBQ_EINVAL);
}

int main(void)
{
    static const contract_driver driver = {
        .name = "contract: redis",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |
                    JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_EFFECT,
        .shift = shift,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_k3_maxmemory),
        cmocka_unit_test(test_l3_cancelled_is_not_ready),
        cmocka_unit_test(test_clear_leaves_no_trace),
        cmocka_unit_test(test_b091_scripts_are_loaded_again),
        cmocka_unit_test(test_k2_cut_when_idle),
        cmocka_unit_test(test_refusals_are_fatal),
        cmocka_unit_test(test_missing_rights_are_named),
        cmocka_unit_test(test_refused_in_all_versions),
        cmocka_unit_test(test_servers_of_the_protocol),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_k2_sentinel),
        cmocka_unit_test(test_p2_tls),
        cmocka_unit_test(test_c5_grace_after_a_restart),
        cmocka_unit_test(test_b141_prefixes),
        cmocka_unit_test(test_only_its_own_keys),
        cmocka_unit_test(test_b031_foreign_entries),
        cmocka_unit_test(test_b054_lost_records),
        cmocka_unit_test(test_b054_lost_lists),
        cmocka_unit_test(test_b054_lost_list_of_many),
        cmocka_unit_test(test_c5_deleted_entries_hide_none),
        cmocka_unit_test(test_pages_of_one_instant),
        cmocka_unit_test(test_b5_searches_are_bounded),
        cmocka_unit_test(test_b5_fresh_ids_are_found),
        cmocka_unit_test(test_memory_of_a_waiting_job),
        cmocka_unit_test(test_k3_maxmemory_with_guarantees),
        cmocka_unit_test(test_b4_closed_streams),
        cmocka_unit_test(test_b4_closed_streams_outlive_a_restart),
        cmocka_unit_test(test_b4_lost_records),
        cmocka_unit_test(test_b6_lost_key),
        cmocka_unit_test(test_guarantees_leave_no_trace),
        cmocka_unit_test(test_traffic_leaves_no_trace),
        cmocka_unit_test(test_n1_minutes_go_by_themselves),
        cmocka_unit_test(test_find_asks_one_queue),
        cmocka_unit_test(test_plain_jobs_cost_what_they_did),
        cmocka_unit_test(test_layout_2_becomes_3),
        cmocka_unit_test(test_n5_examined),
        cmocka_unit_test(test_n5_audit_finds),
        cmocka_unit_test(test_n5_audit_is_bounded),
        ON_REDIS_TESTS,
    };

    return contract_main(&driver, own, sizeof(own) / sizeof(own[0]));
}
