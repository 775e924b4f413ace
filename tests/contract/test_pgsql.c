/* SPDX-License-Identifier: MIT
 *
 * The contract on PostgreSQL, and what only a server of its kind can show: the view, pushes in SQL,
 * rights, terminated backends, poolers, other people's transactions.
 */
#include "contract/contract.h"

#include <libpq-fe.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/server.h"
#include "payload/envelope.h"
#include "util/clock.h"

static server *postgres;
static char dsn[400], schema[32];
static int schemas;
static int64_t shifted_ms;

static const char *fresh_dsn(void)
{
    if (!postgres)
        postgres = server_start("postgres", true);
    if (shifted_ms) /* each store begins with the right time */
        server_shift(postgres, -shifted_ms);
    shifted_ms = 0;
    snprintf(schema, sizeof(schema), "jobs_%d", ++schemas);
    snprintf(dsn, sizeof(dsn), "%s?read_timeout=20&schema=%s", server_dsn(postgres), schema);
    return dsn;
}

static void shift(int64_t ms)
{
    server_shift(postgres, ms);
    shifted_ms += ms;
}

/* ---- another client -------------------------------------------------------------------------- */

static PGconn *connect_client(void)
{
    PGconn *client = PQconnectdb(server_dsn(postgres));
    char sql[128];

    if (PQstatus(client) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(client));
    snprintf(sql, sizeof(sql), "SET client_min_messages = error; SET search_path = %s, public",
             schema);
    PQclear(PQexec(client, sql));
    return client;
}

static bool try_say(PGconn *client, const char *sql)
{
    PGresult *res = PQexec(client, sql);
    ExecStatusType status = PQresultStatus(res);

    PQclear(res);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static void say(PGconn *client, const char *sql)
{
    if (!try_say(client, sql))
        fail_msg("%s: %s", sql, PQerrorMessage(client));
}

/* The first cell, borrowed until the next call. */
static const char *ask_text(PGconn *client, const char *sql)
{
    static char text[512];
    PGresult *res = PQexec(client, sql);

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(client));
    snprintf(text, sizeof(text), "%s", PQntuples(res) ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    return text;
}

static int64_t ask(const char *sql)
{
    PGconn *client = connect_client();
    int64_t value = atoll(ask_text(client, sql));

    PQfinish(client);
    return value;
}

static void execute(const char *sql)
{
    PGconn *client = connect_client();

    say(client, sql);
    PQfinish(client);
}

/* Every live job stands in exactly one place, and every place belongs to a live job. */
static void check_places(void)
{
    static const char sql[] =
        "WITH live AS (SELECT seq FROM job WHERE state = 0), "
        "place AS (SELECT seq FROM ready UNION ALL SELECT seq FROM taken "
        "UNION ALL SELECT seq FROM delayed UNION ALL SELECT seq FROM held) "
        "SELECT abs((SELECT count(*) FROM place) - (SELECT count(*) FROM live)) + "
        "(SELECT count(*) FROM place WHERE seq NOT IN (SELECT seq FROM live)) + "
        "(SELECT count(*) - count(DISTINCT seq) FROM place) + "
        "(SELECT count(*) FROM trace WHERE seq NOT IN (SELECT seq FROM job)) + "
        "(SELECT count(*) FROM held WHERE worker NOT IN (SELECT key FROM worker))";

    assert_int_equal(ask(sql), 0);
}

/* ---- the view -------------------------------------------------------------------------------- */

static int64_t count_shown(const char *where)
{
    char sql[400];

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM jobqueue_jobs WHERE %s", where);
    return ask(sql);
}

/* rule N6. */
static void test_n6_view(void **state)
{
    jobq_push json = job_item("json", "mail");

    (void)state;
    json.body = TEXT("{\"a\":1}");
    json.unique = TEXT("k\xc3\xa4y");
    store_one_of_each(&json);
    assert_int_equal(count_shown("id = 'json' AND state = 'ready' AND queue = 'mail' AND "
                                 "payload->'a' = '1' AND unique_key = 'k\xc3\xa4y' AND "
                                 "enqueued_at > now() - interval '1 day'"),
                     1);
    assert_int_equal(count_shown("id = 'later' AND state = 'delayed' AND "
                                 "payload = '\"626f6479\"'"),
                     1);
    assert_int_equal(
        count_shown("state = 'reserved' AND reserved_by = 'worker-1' AND deliveries = 1"), 1);
    assert_int_equal(count_shown("state = 'dead' AND reason = 'attempts_exhausted' AND "
                                 "died_at IS NOT NULL"),
                     1);
}

/* rule N6 */
static void test_n6_reasons_in_the_view(void **state)
{
    (void)state;
    expect_reason_words(count_shown);
}

/* ---- pushing in SQL -------------------------------------------------------------------------- */

/* rule B8: what the function writes is what the library writes, byte for byte. */
static void test_b8_header_is_the_librarys(void **state)
{
    jobq__pair context[] = {{TEXT("trace"), TEXT("abc")}, {TEXT("u"), TEXT("\xc3\xa4")}};
    jobq__header h = {.format = JOBQ_FORMAT_JSON,
                      .has_tries = true,
                      .tries = 300,
                      .has_timeout = true,
                      .timeout_ms = 60000,
                      .has_backoff = true,
                      .backoff_count = 3,
                      .backoff_ms = {10000, 60000, 100},
                      .has_retry_until = true,
                      .retry_until_ms = 1900000000500,
                      .has_expires = true,
                      .expires_relative = true,
                      .expires_ms = 90000,
                      .drop_expired = true,
                      .context = context,
                      .context_count = 2};
    jobq__buf bytes = {0};
    const jobq_record *r;

    (void)state;
    assert_int_equal(count_jobs("mail").ready, 0);
    execute("SELECT push('mail', 'invoice.send', '{\"n\": 9223372036854775807}', "
            "'{\"id\": \"from-sql\", \"tries\": 300, \"timeout\": 60, \"priority\": 3, "
            "\"version\": 7, \"backoff\": [10, \"60\", 0.1], \"retry_until\": \"@1900000000.5\", "
            "\"expires\": 90, \"on_expire\": \"drop\", "
            "\"context\": {\"trace\": \"abc\", \"u\": \"\xc3\xa4\"}}')");
    r = find_job("from-sql");
    assert_non_null(r);
    assert_int_equal(jobq__envelope_write(&bytes, &h), 0);
    /* the order of two keys of a jsonb object is the server's */
    assert_int_equal(r->header.n, bytes.n);
    {
        jobq__arena arena = {0};
        jobq__header read;

        assert_int_equal(jobq__envelope_read(r->header, &arena, &read), 0);
        assert_int_equal(read.format, JOBQ_FORMAT_JSON);
        assert_int_equal(read.tries, 300);
        assert_int_equal(read.timeout_ms, 60000);
        assert_int_equal(read.backoff_count, 3);
        assert_int_equal(read.backoff_ms[2], 100);
        assert_int_equal(read.retry_until_ms, 1900000000500);
        assert_false(read.retry_until_relative);
        assert_true(read.expires_relative && read.expires_ms == 90000 && read.drop_expired);
        assert_int_equal(read.context_count, 2);
        jobq__arena_free(&arena);
    }
    assert_true(jobq__slice_equal(r->body, TEXT("{\"n\": 9223372036854775807}")));
    assert_int_equal(r->priority, 3);
    assert_int_equal(r->version, 7);
    jobq__buf_free(&bytes);
    r = reserve_one("w", "mail", "from-sql");
    assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
}

/* rule B8, cases B039, B121: rolled back = never existed; a held key is an answer, the transaction
 * goes on. */
static void test_b8_transactions(void **state)
{
    PGconn *client;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    client = connect_client();
    say(client, "BEGIN");
    say(client, "SELECT push('q', 'n', '1', '{\"id\": \"gone\"}')");
    say(client, "ROLLBACK");
    assert_null(find_job("gone"));
    say(client, "BEGIN");
    assert_string_equal(ask_text(client, "SELECT result FROM push('q', 'n', '1', '{\"id\": \"a\", "
                                         "\"unique\": \"k\"}')"),
                        "stored");
    assert_string_equal(ask_text(client, "SELECT id || ' ' || result FROM push('q', 'n', '2', "
                                         "'{\"unique\": \"k\"}')"),
                        "a held");
    assert_string_equal(ask_text(client, "SELECT id || ' ' || result FROM push('q', 'n', '2', "
                                         "'{\"id\": \"a\"}')"),
                        "a duplicate");
    assert_string_equal(ask_text(client, "SELECT result FROM push('q', 'n', '\\x81a161c0'::bytea, "
                                         "'{\"id\": \"packed\", \"delay\": 0}')"),
                        "stored");
    assert_null(find_job("a"));
    say(client, "COMMIT");
    PQfinish(client);
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    expect_ids("a packed");
    assert_null(got.last->header.p);
    assert_true(jobq__slice_equal(got.last->body, TEXT("\x81\xa1"
                                                       "a\xc0")));
}

static void test_b8_refusals(void **state)
{
    static const struct {
        const char *arguments, *said;
    } rows[] = {
        {"'q', 'n', '1', '{\"tires\": 3}'", "unknown option \"tires\" (allowed: delay, at"},
        {"'q', 'n', '1', '{\"tries\": -1}'", "tries must be"},
        {"'q', 'n', '1', '{\"delay\": \"soon\"}'", "delay must be"},
        {"'q', 'n', '1', '{\"delay\": 1, \"at\": 5}'", "at must be"},
        {"'q', 'n', '1', '{\"priority\": 10}'", "priority must be"},
        {"'q', 'n', '1', '{\"backoff\": \"exponential:1\"}'", "backoff must be"},
        {"'q', 'n', '1', '{\"backoff\": \"exponential:5,1\"}'", "backoff must be"},
        {"'q', 'n', '1', '{\"at\": \"2030-02-30T00:00:00Z\"}'", "at must be"},
        {"'q', 'n', '1', '{\"at\": 1e300}'", "at must be"},
        {"'q', 'n', '1', '{\"at\": -5}'", "at must be"},
        {"'q', 'n', '1', '{\"expires\": \"2030-01-01T25:00:00Z\"}'", "expires must be"},
        {"'q', 'n', '1', '{\"unique\": [1]}'", "unique must be"},
        {"'q', 'n', '1', '{\"context\": {\"a\": 1}}'", "context must be"},
        {"'q', 'n', '1', '{\"id\": \"a b\"}'", "id must be"},
        {"'q', 'n', '1', '[]'", "options must be"},
        {"' q', 'n', '1'", "queue must be"},
        {"'q,r', 'n', '1'", "queue must be"},
        {"'q', '', '1'", "name must be"},
        {"'q', 'n', '18446744073709551616'", "payload must be"},
        {"'q', 'n', (repeat('9', 400) || '.5')::jsonb", "payload must be"},
        {"'q', 'n', '{\"$bytes\": 5}'", "payload must be"},
        {"'q', 'n', '{\"$time\": \"2030-02-30T00:00:00Z\"}'", "payload must be"},
        {"'q', 'n', (repeat('[', 65) || repeat(']', 65))::jsonb", "payload must be"},
    };
    PGconn *client;
    char sql[300];

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    client = connect_client();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(sql, sizeof(sql), "SELECT push(%s)", rows[i].arguments);
        if (try_say(client, sql))
            fail_msg("%s was taken", sql);
        if (!strstr(PQerrorMessage(client), rows[i].said))
            fail_msg("%s: %s", sql, PQerrorMessage(client));
    }
    PQfinish(client);
    assert_int_equal(count_jobs("q").ready, 0);
}

/* rule B8: whatever the database's settings are; old applications want their backslashes so. */
static void test_b8_backslashes(void **state)
{
    PGconn *client;

    (void)state;
    execute("ALTER DATABASE jobqueue SET standard_conforming_strings = off");
    jobq__store_disconnect(store);
    fresh_dsn();
    client = connect_client();
    jobq__store_free(store);
    store = contract_open(dsn);
    assert_int_equal(count_jobs("q").ready, 0); /* the schema is made under that setting */
    say(client, "SELECT push('q', 'n', '{\"a\": 1.5}', '{\"tries\": 5, \"delay\": \"0.5\"}')");
    say(client, "SELECT push('q', 'n', decode('c0', 'hex'), '{\"id\": \"b\", \"tries\": 5}')");
    PQfinish(client);
    execute("ALTER DATABASE jobqueue RESET standard_conforming_strings");
    assert_int_equal(ask("SELECT count(*) FROM job WHERE header = decode('016a81a17405', 'hex')"),
                     1);
    assert_int_equal(ask("SELECT count(*) FROM job WHERE header = decode('016d81a17405', 'hex')"),
                     1);
}

/* rule B8: the commit wakes an idle worker. */
static void test_b8_commit_wakes(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 20000, .wake_fd = -1};
    PGconn *client;
    int64_t began;
    pid_t pid;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    pid = fork();
    if (pid == 0) {
        client = connect_client();
        say(client, "BEGIN; SELECT push('q', 'n', '1')");
        usleep(400000); /* the worker goes idle meanwhile */
        say(client, "COMMIT");
        _exit(0);
    }
    began = jobq__clock_mono_ms();
    usleep(100000);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    assert_true(jobq__clock_mono_ms() - began < 5000);
    assert_int_equal(reserve_jobs("w", "q", 1), 1);
    waitpid(pid, NULL, 0);
}

/* Somebody's objects in front of the search path are not reached. */
static void test_b8_search_path(void **state)
{
    PGconn *client;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    client = connect_client();
    say(client, "DROP SCHEMA IF EXISTS evil CASCADE; CREATE SCHEMA evil; "
                "CREATE FUNCTION evil.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS "
                "'BEGIN RAISE EXCEPTION ''trapped''; END'; "
                "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, PROCEDURE = evil.trap); "
                "CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS "
                "'BEGIN RAISE EXCEPTION ''trapped''; END'; "
                "CREATE TABLE evil.job(); CREATE TABLE evil.queue(); "
                "SET search_path = evil, pg_catalog");
    assert_false(try_say(client, "SELECT 'a'::text = 'b'::text"));
    {
        char sql[128];

        snprintf(sql, sizeof(sql), "SELECT result FROM %s.push('q', 'n', '1')", schema);
        assert_string_equal(ask_text(client, sql), "stored");
    }
    say(client, "DROP SCHEMA evil CASCADE");
    PQfinish(client);
    assert_int_equal(count_jobs("q").ready, 1);
}

/* ---- schema and rights ----------------------------------------------------------------------- */

static jobq__store *open_with(const char *more)
{
    char text[600];

    snprintf(text, sizeof(text), "%s&%s", dsn, more);
    return contract_open(text);
}

static void test_migrate_false(void **state)
{
    jobq__store *other;
    int64_t now_ms;

    (void)state;
    other = open_with("migrate=false");
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
    assert_said("jobqueue migrate");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
    assert_ok(jobq__store_schema(other)); /* asked for by name it is made */
    assert_ok(jobq__store_now(other, &now_ms));
    jobq__store_free(other);
}

static void test_newer_schema(void **state)
{
    jobq_push item = job_item("b", "q");

    (void)state;
    push_job("a", "q");
    jobq__store_disconnect(store);
    execute("UPDATE meta SET version = 999");
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("schema version 999 is newer than this library's");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
    execute("UPDATE meta SET version = 1");
    assert_ok(jobq__store_push(store, &item, 1));
}

static void test_schemas_side_by_side(void **state)
{
    jobq__store *other;
    jobq_batch out = {0};
    jobq_push item = job_item("a", "q");

    (void)state;
    push_job("a", "q");
    other = contract_open(contract_fresh_dsn());
    assert_int_equal(jobq__store_find(other, TEXT("a"), &out), JOBQ_ENOTFOUND);
    assert_ok(jobq__store_push(other, &item, 1));
    assert_int_equal(item.result, 0);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE), 0);
    assert_ok(jobq__store_find(other, TEXT("a"), &out));
    jobq__batch_free(&out);
    jobq__store_free(other);
}

/* A user with the rights that doc/stores/postgresql.md names works; one without is told. */
static void test_rights(void **state)
{
    static const char *const grants[] = {
        "USAGE ON SCHEMA", "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA",
        "USAGE ON ALL SEQUENCES IN SCHEMA", "EXECUTE ON ALL FUNCTIONS IN SCHEMA"};
    jobq_push item = job_item("a", "q");
    jobq__store *other;
    char sql[200], text[500];

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    execute("DO $$ BEGIN CREATE ROLE worker LOGIN; EXCEPTION WHEN duplicate_object THEN END $$");
    snprintf(text, sizeof(text), "%s&user=worker&migrate=false", dsn);
    other = contract_open(text);
    assert_code(jobq__store_push(other, &item, 1), JOBQ_ECONF);
    assert_said("permission denied");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
    for (size_t i = 0; i < sizeof(grants) / sizeof(grants[0]); i++) {
        snprintf(sql, sizeof(sql), "GRANT %s %s TO worker", grants[i], schema);
        execute(sql);
    }
    assert_ok(jobq__store_push(other, &item, 1));
    assert_int_equal(item.result, 0);
    jobq__store_free(store);
    store = other;
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DEAD), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "a", false), 0);
    maintain_all();
    execute("DROP OWNED BY worker");
}

/* case B095: what will never work is said at once, in one line, without a password. */
static void test_bad_addresses(void **state)
{
    static const struct {
        const char *before; /* of the port; NULL = port 1, where nobody is */
        const char *after;
        int code;
        const char *said;
    } rows[] = {
        {"", "/nowhere", JOBQ_ECONF, "does not exist"},
        {"", "/jobqueue?user=nobody", JOBQ_ECONF, "does not exist"},
        {NULL, "/jobqueue?x=1", 0, "unknown option"},
        {NULL, "/jobqueue?options=-cgeqo=on", JOBQ_ECONNECT, "refused"},
        {"", "/jobqueue?sslmode=require", JOBQ_ECONNECT, "SSL"},
        {"1,127.0.0.1:", "/jobqueue", 0, NULL}, /* the second host answers */
        {"", "/jobqueue?application_name=mine", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq__store *other = NULL;
        char text[300];
        int64_t now_ms;
        int rc;

        snprintf(text, sizeof(text), "postgresql://jobqueue:secret@127.0.0.1:%s%d%s",
                 rows[i].before ? rows[i].before : "", rows[i].before ? server_port(postgres) : 1,
                 rows[i].after);
        rc = jobq__store_new(text, NULL, &other);
        if (rc == 0)
            rc = jobq__store_now(other, &now_ms);
        if (rows[i].said ? rc >= 0 : rc < 0)
            fail_msg("%s: %d %s", text, rc, jobq_error_message(jobq_error_last()));
        if (rc < 0) {
            if (!strstr(jobq_error_message(jobq_error_last()), rows[i].said) ||
                strstr(jobq_error_message(jobq_error_last()), "secret") ||
                (rows[i].code && rc != rows[i].code))
                fail_msg("%s: %d %s", text, rc, jobq_error_message(jobq_error_last()));
        }
        jobq__store_free(other);
    }
}

static void test_refused_password(void **state)
{
    char path[300], text[300];
    jobq__store *other;
    int64_t now_ms;
    FILE *f;

    (void)state;
    execute("DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; "
            "EXCEPTION WHEN duplicate_object THEN END $$");
    snprintf(path, sizeof(path), "%s/data/pg_hba.conf", server_folder(postgres));
    f = fopen(path, "r+");
    assert_non_null(f);
    {
        static char old[20000];
        size_t n = fread(old, 1, sizeof(old), f);

        rewind(f);
        fputs("host all locked 127.0.0.1/32 scram-sha-256\n", f);
        fwrite(old, 1, n, f);
    }
    fclose(f);
    execute("SELECT pg_reload_conf()");
    snprintf(text, sizeof(text), "postgresql://locked:wrong@127.0.0.1:%d/jobqueue",
             server_port(postgres));
    other = contract_open(text);
    wait_until(jobq__store_now(other, &now_ms) == JOBQ_ECONF &&
                   strstr(jobq_error_message(jobq_error_last()), "password"),
               10);
    assert_true(jobq_error_is_fatal(jobq_error_last()));
    assert_null(strstr(jobq_error_message(jobq_error_last()), "wrong"));
    jobq__store_free(other);
}

/* ---- outages --------------------------------------------------------------------------------- */

#define OTHERS                                                 \
    "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND " \
    "application_name = 'jobqueue'"

/* rule K2: a connection that ended while idle is noticed before anything is sent. */
static void test_k2_terminated_while_idle(void **state)
{
    (void)state;
    push_job("a", "q");
    for (int i = 0; i < 3; i++) {
        char id[8];

        execute("SELECT pg_terminate_backend(pid) " OTHERS);
        wait_until(ask("SELECT count(*) " OTHERS) == 0, 10);
        snprintf(id, sizeof(id), "b%d", i);
        push_job(id, "q");
    }
    reserve_one("w", "q", "a");
    execute("SELECT pg_terminate_backend(pid) " OTHERS);
    wait_until(ask("SELECT count(*) " OTHERS) == 0, 10);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0); /* the token still holds */
    assert_int_equal(count_jobs("q").ready, 3);
}

/* Ends the store's connection as soon as it waits for the lock that `client` holds. */
static pid_t terminate_when_blocked(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        wait_until(ask("SELECT count(*) " OTHERS " AND wait_event_type = 'Lock'") == 1, 20);
        execute("SELECT pg_terminate_backend(pid) " OTHERS " AND wait_event_type = 'Lock'");
        _exit(0);
    }
    return pid;
}

/* rule K2: terminated in the middle of a call: said to be not done, and it is not. */
static void test_k2_terminated_in_the_middle(void **state)
{
    jobq_push item = job_item("b", "q");
    jobq_settlement s;
    PGconn *client;
    pid_t pid;

    (void)state;
    push_job("a", "q");
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    client = connect_client();
    for (int round = 0; round < 2; round++) {
        jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = &s, .settle_count = 1};

        say(client, "BEGIN; LOCK TABLE job IN ACCESS EXCLUSIVE MODE");
        pid = terminate_when_blocked();
        assert_code(round ? jobq__store_exchange(store, &x) : jobq__store_push(store, &item, 1),
                    JOBQ_EIO);
        assert_true(jobq_error_is_retryable(jobq_error_last()));
        assert_said("57P01");
        say(client, "COMMIT");
        waitpid(pid, NULL, 0);
        if (round == 0)
            assert_null(find_job("b"));
    }
    PQfinish(client);
    assert_ok(jobq__store_push(store, &item, 1));
    assert_int_equal(item.result, 0);
    assert_int_equal(settle_with("w", &s), 0);
}

/* rule K2: a call that was given up hands out nothing once the next one has been asked. */
/* Rule C6: what a foreign transaction has locked does not make the queue look empty, nor a worker
 * spin. */
static void look_at_locked(jobq__store *where, bool ask)
{
    const jobq_slice queue = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = &queue,
                       .queue_count = 1,
                       .want = 5,
                       .ask_passed_by = ask,
                       .out = &got};
    const jobq_wait w = {
        .queues = &queue, .queue_count = 1, .timeout_ms = 1000, .poll_ms = 200, .wake_fd = -1};
    const int64_t end_ms = jobq__clock_mono_ms() + 1500;
    int rounds = 0;

    for (; jobq__clock_mono_ms() < end_ms; rounds++) {
        assert_ok(jobq__store_exchange(where, &x));
        assert_int_equal(x.passed_by, ask);
        assert_false(ask && x.exhausted);
        assert_true(jobq__store_wait(where, &w) >= 0);
    }
    if (rounds >= 50)
        fail_msg("%d rounds in 1.5 s", rounds);
}

static void test_c6_locked_is_not_empty(void **state)
{
    jobq__store *pooled = open_with("listen=false");
    PGconn *client;

    (void)state;
    push_job("a", "q");
    client = connect_client();
    say(client, "BEGIN");
    say(client, "SELECT * FROM ready FOR UPDATE");
    look_at_locked(store, true);
    look_at_locked(store, false);
    look_at_locked(pooled, true);
    look_at_locked(pooled, false);
    PQfinish(client);
    jobq__store_free(pooled);
    reserve_one("w", "q", "a");
}

static void test_k2_given_up_call(void **state)
{
    jobq_slice q = TEXT("q");
    jobq__store *hasty;
    jobq_batch held = {0};
    PGconn *client;
    char text[500];

    (void)state;
    push_job("a", "q");
    snprintf(text, sizeof(text), "%s?schema=%s&read_timeout=0.5", server_dsn(postgres), schema);
    hasty = contract_open(text);
    client = connect_client();
    for (int round = 0; round < 3; round++) {
        jobq_exchange x = {.worker = TEXT("w"),
                           .lease_ms = 30000,
                           .queues = &q,
                           .queue_count = 1,
                           .want = 1,
                           .out = &got};

        say(client, "BEGIN; LOCK TABLE ready IN ACCESS EXCLUSIVE MODE");
        assert_code(jobq__store_exchange(hasty, &x), JOBQ_ETIMEOUT);
        assert_ok(jobq__store_held(hasty, TEXT("w"), &held));
        assert_null(held.first);
        say(client, "COMMIT");
        wait_until(ask("SELECT count(*) " OTHERS " AND wait_event_type = 'Lock'") == 0, 10);
        wait_until(ask("SELECT count(*) " OTHERS " AND state = 'active'") == 0, 10);
        assert_int_equal(ask("SELECT count(*) FROM held"), 0);
    }
    PQfinish(client);
    jobq__store_free(hasty);
    reserve_one("w", "q", "a");
}

/* case B093: a waiting worker's connection dies; the next wait hears again. */
static void test_b093_listens_again(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 20000, .wake_fd = -1};
    int64_t began;
    pid_t pid;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    pid = fork();
    if (pid == 0) {
        usleep(300000);
        execute("SELECT pg_terminate_backend(pid) " OTHERS);
        _exit(0);
    }
    assert_code(jobq__store_wait(store, &w), JOBQ_EIO);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    waitpid(pid, NULL, 0);
    pid = fork();
    if (pid == 0) {
        jobq__store *mine = contract_open(dsn);
        jobq_push item = job_item("a", "q");

        usleep(500000);
        _exit(jobq__store_push(mine, &item, 1) < 0);
    }
    began = jobq__clock_mono_ms();
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    assert_true(jobq__clock_mono_ms() - began < 5000);
    waitpid(pid, NULL, 0);
}

/* rule K3. */
static void test_k3_read_only(void **state)
{
    jobq_push item = job_item("b", "q");
    PGconn *client;

    (void)state;
    push_job("a", "q");
    execute("ALTER DATABASE jobqueue SET default_transaction_read_only = on");
    jobq__store_disconnect(store);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EIO);
    assert_said("read-only");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    client = connect_client();
    say(client, "SET default_transaction_read_only = off");
    say(client, "ALTER DATABASE jobqueue RESET default_transaction_read_only");
    PQfinish(client);
    assert_ok(jobq__store_push(store, &item, 1));
    assert_int_equal(count_jobs("q").ready, 2);
}

/* A value that the server refuses concerns that call alone. */
static void test_refused_value(void **state)
{
    jobq_push item = job_item("a", "q");

    (void)state;
    item.name = jobq__slice("a\0b", 3);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
    push_job("a", "q");
}

static void test_silent_server(void **state)
{
    jobq_push item = job_item("b", "q");
    jobq__store *hasty;
    char text[500];
    int64_t began;

    (void)state;
    snprintf(text, sizeof(text), "%s?schema=%s&read_timeout=0.5&connect_timeout=0.5",
             server_dsn(postgres), schema);
    hasty = contract_open(text);
    assert_ok(jobq__store_push(hasty, &item, 1));
    item = job_item("c", "q");
    server_freeze(postgres);
    began = jobq__clock_mono_ms();
    assert_code(jobq__store_push(hasty, &item, 1), JOBQ_EUNKNOWN);
    assert_code(jobq__store_push(hasty, &item, 1), JOBQ_ECONNECT);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_true(jobq__clock_mono_ms() - began < 5000);
    server_thaw(postgres);
    assert_ok(jobq__store_push(hasty, &item, 1));
    jobq__store_free(hasty);
}

/* ---- other people's transactions ------------------------------------------------------------- */

/* rule C1: what another worker gives back stands before everything that this one has passed. */
static void test_c1_given_back_by_another(void **state)
{
    jobq__store *mine = store, *other = contract_open(dsn);
    jobq_record first;

    (void)state;
    for (char c = 'a'; c <= 'f'; c++) {
        const char id[2] = {c, 0};

        push_job(id, "q");
    }
    shift(5000); /* so that they count as passed */
    store = other;
    first = *reserve_one("w2", "q", "a");
    first.id = TEXT("a");
    store = mine;
    reserve_one("w1", "q", "b");
    reserve_one("w1", "q", "c");
    store = other;
    assert_int_equal(settle_op("w2", &first, JOBQ_OP_GIVE_BACK), 0);
    store = mine;
    reserve_one("w1", "q", "a");
    reserve_one("w1", "q", "d");
    jobq__store_free(other);
}

/* A push whose transaction committed late is found, although later ones have been passed. */
static void test_late_commit(void **state)
{
    PGconn *client;
    char id[8];

    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    client = connect_client();
    say(client, "BEGIN; SELECT push('q', 'n', '1', '{\"id\": \"late\"}')");
    shift(5000);
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof(id), "b%d", i);
        push_job(id, "q");
    }
    shift(5000);
    reserve_one("w", "q", "b0");
    reserve_one("w", "q", "b1");
    say(client, "COMMIT");
    PQfinish(client);
    usleep(2100000); /* the line is read from its start now and then */
    reserve_one("w", "q", "late");
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    expect_ids("b2 b3");
}

/* ---- poolers --------------------------------------------------------------------------------- */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0), port;

    assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
    getsockname(fd, (struct sockaddr *)&address, &n);
    port = ntohs(address.sin_port);
    close(fd);
    return port;
}

/* PgBouncer in transaction mode; 0: it is not installed. */
static pid_t start_pooler(int port)
{
    char folder[200], path[256], log[256];
    FILE *f;
    pid_t pid;

    if (access("/usr/sbin/pgbouncer", X_OK) < 0)
        return 0;
    snprintf(folder, sizeof(folder), "/tmp/jobqueue-pooler-%d", (int)getpid());
    mkdir(folder, 0755);
    snprintf(path, sizeof(path), "%s/pgbouncer.ini", folder);
    snprintf(log, sizeof(log), "%s/log", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "[databases]\njobqueue = host=127.0.0.1 port=%d dbname=jobqueue user=jobqueue\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
            server_port(postgres), port);
    fclose(f);
    pid = fork();
    if (pid == 0) {
        if (freopen(log, "w", stdout))
            dup2(1, 2);
        execl("/usr/sbin/pgbouncer", "pgbouncer", "-u", "nobody", path, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void stop_pooler(pid_t pid)
{
    char command[200];

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(command, sizeof(command), "rm -rf /tmp/jobqueue-pooler-%d", (int)getpid());
    if (system(command) != 0)
        print_message("%s failed\n", command);
}

static void work_through_pooler(const char *address)
{
    jobq__store *direct = store, *stores[4];
    int64_t now_ms;
    char id[16];

    for (int i = 0; i < 4; i++) {
        stores[i] = contract_open(address);
        wait_until(jobq__store_now(stores[i], &now_ms) == 0, 20);
    }
    for (int i = 0; i < 40; i++) {
        store = stores[i % 4];
        snprintf(id, sizeof(id), "p%d", i);
        push_job(id, "q");
    }
    for (int i = 0; i < 40; i++) {
        store = stores[i % 4];
        snprintf(id, sizeof(id), "p%d", i);
        reserve_one("w", "q", id);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    }
    store = stores[0];
    {
        jobq_slice q = TEXT("q");
        jobq_wait w = {
            .queues = &q, .queue_count = 1, .timeout_ms = 200, .poll_ms = 50, .wake_fd = -1};

        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
        push_job("last", "q");
        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    }
    store = direct;
    for (int i = 0; i < 4; i++)
        jobq__store_free(stores[i]);
}

/* Four handles share two connections: detected, so nothing is kept in a session. */
static void test_pooler(void **state)
{
    int port = free_port();
    char address[300];
    pid_t pid;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    pid = start_pooler(port);
    if (pid == 0)
        skip_because("pgbouncer is not installed");
    snprintf(address, sizeof(address),
             "postgresql://jobqueue@127.0.0.1:%d/jobqueue?schema=%s&read_timeout=20", port, schema);
    work_through_pooler(address);
    stop_pooler(pid);
}

static void test_listen_false(void **state)
{
    jobq__store *direct = store;
    jobq_slice q = TEXT("q");
    jobq_wait w = {.queues = &q, .queue_count = 1, .timeout_ms = 100, .poll_ms = 50, .wake_fd = -1};

    (void)state;
    push_job("a", "q");
    store = open_with("listen=false");
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE), 0);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    assert_int_equal(ask("SELECT count(*) FROM idle"), 0);
    jobq__store_free(direct);
}

int main(void)
{
    static const contract_driver driver = {
        .name = "contract: postgresql",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |
                    JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_DUE_ORDER,
        .shift = shift,
        .check = check_places,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_n6_view),
        cmocka_unit_test(test_n6_reasons_in_the_view),
        cmocka_unit_test(test_b8_header_is_the_librarys),
        cmocka_unit_test(test_b8_transactions),
        cmocka_unit_test(test_b8_refusals),
        cmocka_unit_test(test_b8_backslashes),
        cmocka_unit_test(test_b8_commit_wakes),
        cmocka_unit_test(test_b8_search_path),
        cmocka_unit_test(test_migrate_false),
        cmocka_unit_test(test_newer_schema),
        cmocka_unit_test(test_schemas_side_by_side),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_refused_password),
        cmocka_unit_test(test_k2_terminated_while_idle),
        cmocka_unit_test(test_k2_terminated_in_the_middle),
        cmocka_unit_test(test_c6_locked_is_not_empty),
        cmocka_unit_test(test_k2_given_up_call),
        cmocka_unit_test(test_b093_listens_again),
        cmocka_unit_test(test_k3_read_only),
        cmocka_unit_test(test_refused_value),
        cmocka_unit_test(test_silent_server),
        cmocka_unit_test(test_c1_given_back_by_another),
        cmocka_unit_test(test_late_commit),
        cmocka_unit_test(test_pooler),
        cmocka_unit_test(test_listen_false),
    };

    return contract_main(&driver, own, sizeof(own) / sizeof(own[0]));
}
