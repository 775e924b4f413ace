/* SPDX-License-Identifier: MIT
 *
 * The contract on PostgreSQL, and what only a server of its kind can show: the view, pushes in SQL,
 * rights, terminated backends, poolers, other people's transactions.
 */
#include "contract/on_pgsql.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/pgsql/pgsql.h"
#include "harness/server.h"
#include "payload/envelope.h"
#include "util/alloc.h"
#include "util/clock.h"

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

/* What follows a death is not shown and not counted (rule F6). */
static void test_f6_hidden_from_people(void **state)
{
    (void)state;
    push_job("a", "q");
    push_job("hook", "\x01q");
    assert_int_equal(count_shown("true"), 1);
    assert_int_equal(count_shown("id = 'hook'"), 0);
    assert_int_equal(count_jobs("q").ready, 1);
    reserve_one("w", "\x01q", "hook");
    assert_int_equal(count_shown("true"), 1);
    assert_int_equal(count_jobs("q").reserved, 0);
}

static void test_b7_guard_amid_a_call(void **state)
{
    char view[100];

    (void)state;
    snprintf(view, sizeof(view), "%s.jobqueue_jobs", schema);
    expect_guard_amid_a_call(view);
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

/* Words that newer servers (16 to 18) keep for themselves are no names of parameters: there the
 * function could not be made. */
static void test_words_of_newer_servers(void **state)
{
    char sql[512];

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM pg_proc p, unnest(p.proargnames) name "
             "WHERE p.pronamespace = '%s'::regnamespace AND name IN ('json', 'json_array', "
             "'json_arrayagg', 'json_exists', 'json_object', 'json_objectagg', 'json_query', "
             "'json_scalar', 'json_serialize', 'json_table', 'json_value', 'merge_action', "
             "'system_user')",
             schema);
    assert_int_equal(ask(sql), 0);
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

static int pause_all(jobq__store *where)
{
    jobq_batch out = {0};
    jobq_control c = {.what = JOBQ_CONTROL_PAUSE, .out = &out};
    int rc = jobq__store_control(where, &c);

    jobq__batch_free(&out);
    return rc;
}

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

    char back[64];

    (void)state;
    push_job("a", "q");
    snprintf(back, sizeof(back), "UPDATE meta SET version = %d",
             (int)ask("SELECT version FROM meta"));
    jobq__store_disconnect(store);
    execute("UPDATE meta SET version = 999");
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("schema version 999 is newer than this library's");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
    execute(back);
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
    assert_int_equal(jobq__store_find(other, (jobq_slice){0}, TEXT("a"), &out), JOBQ_ENOTFOUND);
    assert_ok(jobq__store_push(other, &item, 1));
    assert_int_equal(item.result, 0);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE), 0);
    assert_ok(jobq__store_find(other, (jobq_slice){0}, TEXT("a"), &out));
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

/* ---- an older schema ------------------------------------------------------------------------- */

/* Where version 1 differed from what came after, besides the tables. */
static const char version_1[] =
    "CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'; "
    "CREATE FUNCTION ring(queue_name text, due bigint, now_ms bigint) RETURNS void LANGUAGE sql "
    "AS ''; "
    "CREATE FUNCTION queue_key(queue_name text) RETURNS int LANGUAGE sql AS 'SELECT 1'; "
    "CREATE FUNCTION push_one(job_queue int, job_id text, job_name text, job_version int, "
    "job_rank smallint, due bigint, now_ms bigint, key bytea, job_header bytea, job_body bytea, "
    "OUT result int, OUT holder text) LANGUAGE sql AS 'SELECT 0, NULL::text'; "
    "CREATE FUNCTION push_single(job_id text, queue_name text, job_name text, job_version bigint, "
    "job_rank bigint, due bigint, key bytea, job_header bytea, job_body bytea, "
    "OUT result int, OUT holder text) LANGUAGE sql AS 'SELECT 0, NULL::text'; "
    "CREATE FUNCTION take(queue_id int, worker_key int, new_nonce bigint, floor_at bigint[], "
    "floor_seq bigint[], room bigint, room_back bigint, room_bytes bigint, OUT seqs bigint[], "
    "OUT bytes bigint, OUT back bigint) LANGUAGE sql "
    "AS 'SELECT NULL::bigint[], 0::bigint, 0::bigint'; "
    "CREATE FUNCTION exchange(worker_id text, lease_ms bigint, done_seq bigint[], "
    "done_nonce bigint[], others bigint[], errors bytea[], histories bytea[], queues text[], "
    "floors bigint[], want bigint, want_back bigint, want_bytes bigint, new_nonce bigint, "
    "due_floor bigint, idle_key bigint) RETURNS TABLE(meta bigint[], queue_at int) LANGUAGE sql "
    "AS 'SELECT NULL::bigint[], 1'; "
    "CREATE FUNCTION renew(worker_id text, lease_ms bigint, run_seq bigint[], run_nonce bigint[], "
    "its_host text, its_pid bigint, its_queues text, its_names text, its_processes bigint, "
    "OUT now_ms bigint, OUT held bigint, OUT was_taken boolean) LANGUAGE sql "
    "AS 'SELECT 0::bigint, 0::bigint, false'; "
    "CREATE FUNCTION look(queues text[], floors bigint[], idle_key bigint, idle_ms bigint, "
    "due_floor bigint, OUT now_ms bigint, OUT ready boolean, OUT due bigint, OUT us bigint) "
    "LANGUAGE sql AS 'SELECT 0::bigint, false, 0::bigint, 0::bigint'; "
    "CREATE VIEW jobqueue_jobs AS SELECT j.id, q.name AS queue FROM job j "
    "JOIN queue q ON q.id = j.queue; ";

/* One waits, one is delayed, one is with a worker, one is dead. */
static const char version_1_rows[] =
    "UPDATE meta SET version = 1; "
    "INSERT INTO queue(name, rewinds) VALUES ('mail', 3), ('Mail', 0); "
    "INSERT INTO job(available_at, enqueued_at, queue, version, rank, id, name, body, unique_key, "
    "state, reason, died_at) SELECT 5, 5, q.id, 1, 9, u.id, 'n', 'x', u.key, u.state, u.state / 4, "
    "CASE u.state WHEN 4 THEN 5 END "
    "FROM queue q, (VALUES ('ready', NULL::bytea, 0), ('later', 'k', 0), ('held', NULL, 0), "
    "('dead', NULL, 4)) u(id, key, state) WHERE q.name = 'mail' ORDER BY u.id; "
    "INSERT INTO ready SELECT available_at, seq, queue, 1, rank FROM job WHERE id = 'ready'; "
    "UPDATE job SET available_at = 4000000000000 WHERE id = 'later'; "
    "INSERT INTO delayed SELECT available_at, seq, queue, 1, rank FROM job WHERE id = 'later'; "
    "INSERT INTO worker(id, alive_until, lease, started_at) VALUES ('w', 4000000000000, 60000, 5); "
    "INSERT INTO held SELECT j.seq, 7, w.key, j.queue FROM job j, worker w WHERE j.id = 'held'; ";

static void make_version_1(void)
{
    pgsql_store names = {0};
    char sql[600], *tables;
    PGconn *client = connect_client();

    snprintf(names.schema, sizeof(names.schema), "%s", schema);
    snprintf(sql, sizeof(sql), "CREATE SCHEMA %s", schema);
    say(client, sql);
    tables = jobq__pgsql_expand(&names, jobq__pgsql_tables_1);
    say(client, tables);
    jobq__free(tables);
    say(client, version_1);
    say(client, version_1_rows);
    say(client,
        "DO $$ BEGIN CREATE ROLE worker LOGIN; EXCEPTION WHEN duplicate_object THEN END $$");
    snprintf(sql, sizeof(sql),
             "GRANT USAGE ON SCHEMA %s TO worker; "
             "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO worker; "
             "GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO worker; "
             "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA %s FROM PUBLIC; "
             "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %s TO worker",
             schema, schema, schema, schema, schema);
    say(client, sql);
    PQfinish(client);
}

/* A database of version 1 is brought up to date with its jobs and the rights on it. */
static void test_version_1(void **state)
{
    jobq_push item = job_item("new", "mail");
    jobq__store *owner = store;
    jobq_batch queues = {0};
    char text[500];

    (void)state;
    make_version_1();
    assert_int_equal(count_jobs("mail").ready, 1);
    assert_int_equal(count_jobs("mail").delayed, 1);
    assert_int_equal(count_jobs("mail").reserved, 1);
    assert_int_equal(count_jobs("mail").dead, 1);
    assert_int_equal(count_jobs("Mail").ready, 0);
    assert_int_equal(count_shown("queue = 'mail'"), 4);
    assert_ok(jobq__store_queues(store, &queues));
    assert_int_equal(queues.count, 2);
    jobq__batch_free(&queues);
    item.unique = TEXT("k");
    snprintf(text, sizeof(text), "%s&user=worker&migrate=false", dsn);
    store = contract_open(text);
    assert_int_equal(push_item(&item), 1);
    assert_string_equal(item.holder, "later");
    assert_int_equal(settle_op("w2", reserve_one("w2", "mail", "ready"), JOBQ_OP_DONE), 0);
    {
        jobq_batch held = {0};

        assert_ok(jobq__store_held(store, TEXT("w"), &held));
        assert_int_equal(held.count, 1);
        assert_int_equal(settle_op("w", held.first, JOBQ_OP_DONE), 0);
        jobq__batch_free(&held);
    }
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead", false), 0);
    reserve_one("w2", "mail", "dead");
    assert_int_equal(pause_all(store), 0);
    jobq__store_free(store);
    store = owner;
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
    say(client, "ROLLBACK");
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
    snprintf(text, sizeof(text), "%s?schema=%s&read_timeout=1", server_dsn(postgres), schema);
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
    int64_t began, now_ms;

    (void)state;
    snprintf(text, sizeof(text), "%s?schema=%s&read_timeout=1&connect_timeout=1",
             server_dsn(postgres), schema);
    hasty = contract_open(text);
    assert_ok(jobq__store_push(hasty, &item, 1));
    item = job_item("b2", "q");
    assert_ok(jobq__store_push(hasty, &item, 1)); /* prepared from here on */
    item = job_item("c", "q");
    server_freeze(postgres);
    began = jobq__clock_mono_ms();
    assert_code(jobq__store_push(hasty, &item, 1), JOBQ_EUNKNOWN);
    assert_code(jobq__store_push(hasty, &item, 1), JOBQ_ECONNECT);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_true(jobq__clock_mono_ms() - began < 10000);
    server_thaw(postgres);
    wait_until(jobq__store_now(hasty, &now_ms) == 0, 20);
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

/* ---- single pushes --------------------------------------------------------------------------- */

/* The short way of a push with an id of its own (rules B1, C1): delays, priorities, order, and what
 * becomes of an id that exists after all. */
static void test_b1_push_with_a_fresh_id(void **state)
{
    jobq_push item = job_item("a", "q");
    jobq_batch queues = {0};

    (void)state;
    item.fresh_id = true;
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(push_item(&item), JOBQ_EEXISTS);
    item = job_item("later", "q");
    item.fresh_id = true;
    item.delay_ms = 60000;
    assert_int_equal(push_item(&item), 0);
    item = job_item("past", "q");
    item.fresh_id = true;
    item.at_ms = 1000;
    item.priority = 5;
    item.version = 3;
    item.header = jobq__slice(NULL, 0);
    assert_int_equal(push_item(&item), 0);
    item = job_item("key", "q");
    item.fresh_id = true;
    item.unique = TEXT("k");
    assert_int_equal(push_item(&item), 0);
    item.id = TEXT("other");
    assert_int_equal(push_item(&item), 1);
    assert_string_equal(item.holder, "key");
    assert_int_equal(count_jobs("q").ready, 3);
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_int_equal(reserve_one("w", "q", "past")->version, 3);
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    expect_ids("a key");
    pass_time(61000, 61000);
    assert_int_equal(find_job("later")->state, 0);
    assert_ok(jobq__store_queues(store, &queues));
    assert_int_equal(queues.count, 1);
    jobq__batch_free(&queues);
    assert_int_equal(ask("SELECT count(*) FROM queue"), 1);
}

/* ---- names of queues ------------------------------------------------------------------------- */

/* rule B8: somebody who pushes to a new queue in a long transaction keeps nobody from pushing to
 * it. */
static void test_b8_new_queue_in_a_long_transaction(void **state)
{
    jobq_push items[2];
    jobq_batch queues = {0};
    PGconn *client;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    client = connect_client();
    say(client, "BEGIN; SELECT push('new', 'n', '1', '{\"id\": \"late\"}')");
    push_job("single", "new");
    items[0] = job_item("many-1", "new");
    items[1] = job_item("many-2", "new");
    assert_ok(jobq__store_push(store, items, 2));
    reserve_one("w", "new", "single");
    say(client, "COMMIT");
    PQfinish(client);
    assert_int_equal(count_jobs("new").ready, 3);
    assert_ok(jobq__store_queues(store, &queues));
    assert_int_equal(queues.count, 1);
    assert_true(jobq__slice_equal(queues.first->queue, TEXT("new")));
    jobq__batch_free(&queues);
}

/* Two such in opposite order do not wait for each other. */
static void test_b8_new_queues_crosswise(void **state)
{
    jobq_batch queues = {0};
    PGconn *left, *right;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    left = connect_client();
    right = connect_client();
    say(left, "SET lock_timeout = '2s'; BEGIN; SELECT push('a', 'n', '1')");
    say(right, "SET lock_timeout = '2s'; BEGIN; SELECT push('b', 'n', '1')");
    say(left, "SELECT push('b', 'n', '2')");
    say(right, "SELECT push('a', 'n', '2')");
    say(right, "COMMIT");
    say(left, "COMMIT");
    PQfinish(left);
    PQfinish(right);
    assert_int_equal(count_jobs("a").ready, 2);
    assert_int_equal(count_jobs("b").ready, 2);
    assert_ok(jobq__store_queues(store, &queues));
    assert_int_equal(queues.count, 2);
    jobq__batch_free(&queues);
}

/* ---- what people ask of workers -------------------------------------------------------------- */

/* How long until the wait of `where`, which is under way when another asks, says so. */
static int64_t wait_for_control(jobq__store *where)
{
    jobq_slice q = TEXT("q");
    jobq_batch out = {0};
    jobq_control c = {.what = JOBQ_CONTROL_READ, .out = &out};
    jobq_wait w = {.queues = &q,
                   .queue_count = 1,
                   .timeout_ms = 20000,
                   .poll_ms = 20000,
                   .wake_fd = -1,
                   .control = &c.control};
    int64_t began;
    pid_t pid;

    assert_ok(jobq__store_control(where, &c));
    jobq__batch_free(&out);
    pid = fork();
    if (pid == 0) {
        jobq__store *mine = contract_open(dsn);

        usleep(500000); /* the wait is under way, behind the looks after its begin */
        _exit(pause_all(mine) < 0);
    }
    began = jobq__clock_mono_ms();
    assert_int_equal(jobq__store_wait(where, &w), JOBQ_WAIT_CONTROL);
    began = jobq__clock_mono_ms() - began - 500;
    waitpid(pid, NULL, 0);
    return began;
}

/* rule L1: an idle worker is told at once, and looks within a second where it cannot be told. */
static void test_l1_idle_worker_is_told(void **state)
{
    jobq__store *pooled = open_with("listen=false");

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    assert_true(wait_for_control(store) < 1000);
    assert_true(wait_for_control(store) < 1000);
    assert_true(wait_for_control(pooled) < 2000);
    jobq__store_free(pooled);
}

/* rule L3: cancelling waits for whoever is just taking the job, and then finds it taken; rule F6:
 * what follows is stored with the death alone. */
static void test_l3_cancel_and_what_follows(void **state)
{
    jobq_push follow = job_item("hook", "\x01q");
    jobq_cancelling c = {.id = TEXT("a"), .reason = 11, .follow = &follow};
    PGconn *client;
    pid_t pid;

    (void)state;
    push_job("a", "q");
    client = connect_client();
    say(client, "BEGIN; WITH t AS (DELETE FROM ready RETURNING seq), "
                "w AS (INSERT INTO worker(id, alive_until, lease, started_at) "
                "VALUES ('w', 4000000000000, 60000, 0) RETURNING key) "
                "INSERT INTO held(seq, nonce, worker, queue) SELECT t.seq, 5, w.key, 'q' "
                "FROM t, w");
    pid = fork();
    if (pid == 0) {
        jobq__store *mine = contract_open(dsn);

        _exit(jobq__store_cancel(mine, &c) < 0 || c.result != JOBQ_EEXISTS);
    }
    wait_until(ask("SELECT count(*) " OTHERS " AND wait_event_type = 'Lock'") == 1, 20);
    say(client, "COMMIT");
    PQfinish(client);
    {
        int status;

        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
    assert_null(find_job("hook"));
    push_job("b", "q");
    c.id = TEXT("b");
    assert_ok(jobq__store_cancel(store, &c));
    assert_int_equal(c.result, 0);
    assert_int_equal(find_job("b")->state, 4);
    reserve_one("v", "\x01q", "hook");
}

/* An exchange that found nothing saves the look of the next wait, also when that waits for hidden
 * queues too. */
static void test_empty_is_trusted(void **state)
{
    const jobq_slice queues[] = {TEXT("q"), TEXT("\x01q")};
    const jobq_wait w = {
        .queues = queues, .queue_count = 2, .timeout_ms = 300, .poll_ms = 50, .wake_fd = -1};
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = queues,
                       .queue_count = 1,
                       .want = 1,
                       .want_taken_back = 1,
                       .out = &got};

    (void)state;
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT); /* it is registered now */
    assert_ok(jobq__store_exchange(store, &x));
    assert_true(x.exhausted);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    assert_int_equal(ask("SELECT count(*) " OTHERS " AND query LIKE '%exchange(%'"), 1);
    push_job("hook", "\x01q"); /* and is heard of all the same */
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
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

/* rules B7, O1: transactions of several statements. */
static void work_with_statements(void)
{
    const jobq_statement guard = {.text =
                                      TEXT("SELECT current_setting('search_path') LIKE '%public'")};
    jobq_push item = job_item("guarded", "statements");
    jobq_effect e = {.worker = TEXT("w"), .statement = {.text = TEXT("SELECT 5")}, .out = &got};

    item.guard = &guard;
    assert_int_equal(push_item(&item), 0);
    e.token = reserve_one("w", "statements", "guarded")->token;
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, 0);
    assert_int_equal(e.value.integer, 5);
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
    work_with_statements();
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
                    JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_DUE_ORDER |
                    JOBQ_FEATURE_EFFECT | JOBQ_FEATURE_REQUEST,
        .shift = shift,
        .check = check_places,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_n6_view),
        cmocka_unit_test(test_n6_reasons_in_the_view),
        cmocka_unit_test(test_f6_hidden_from_people),
        cmocka_unit_test(test_b7_guard_amid_a_call),
        cmocka_unit_test(test_b8_header_is_the_librarys),
        cmocka_unit_test(test_b8_transactions),
        cmocka_unit_test(test_b8_refusals),
        cmocka_unit_test(test_b8_backslashes),
        cmocka_unit_test(test_b8_commit_wakes),
        cmocka_unit_test(test_b8_search_path),
        cmocka_unit_test(test_words_of_newer_servers),
        cmocka_unit_test(test_migrate_false),
        cmocka_unit_test(test_newer_schema),
        cmocka_unit_test(test_schemas_side_by_side),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_version_1),
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
        cmocka_unit_test(test_b1_push_with_a_fresh_id),
        cmocka_unit_test(test_b8_new_queue_in_a_long_transaction),
        cmocka_unit_test(test_b8_new_queues_crosswise),
        cmocka_unit_test(test_l1_idle_worker_is_told),
        cmocka_unit_test(test_empty_is_trusted),
        cmocka_unit_test(test_l3_cancel_and_what_follows),
        cmocka_unit_test(test_pooler),
        cmocka_unit_test(test_listen_false),
    };

    return contract_main(&driver, own, sizeof(own) / sizeof(own[0]));
}
