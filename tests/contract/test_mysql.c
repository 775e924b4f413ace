/* SPDX-License-Identifier: MIT
 *
 * The contract on MariaDB, and what only a server of its kind can show: collations, sessions set up
 * otherwise, locks and deadlocks, killed connections, packets that are too large, rights.
 */
#include "contract/contract.h"

#include <mysql.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/mysql/mysql.h"
#include "harness/server.h"
#include "util/alloc.h"
#include "util/clock.h"

static server *mariadb;
static char dsn[400], database[64];
static int64_t shifted_ms;

/* ---- another client's look ------------------------------------------------------------------- */

static MYSQL *connect_client(const char *db)
{
    MYSQL *client = mysql_init(NULL);

    mysql_options(client, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!mysql_real_connect(client, NULL, "jobqueue", NULL, db, 0, server_socket(mariadb), 0))
        fail_msg("%s", mysql_error(client));
    return client;
}

static void say(MYSQL *client, const char *sql)
{
    MYSQL_RES *rows;

    if (mysql_query(client, sql))
        fail_msg("%s: %s", sql, mysql_error(client));
    rows = mysql_store_result(client);
    mysql_free_result(rows);
}

static int64_t ask_client(MYSQL *client, const char *sql)
{
    MYSQL_RES *rows;
    MYSQL_ROW row;
    int64_t value = -1;

    if (mysql_query(client, sql))
        fail_msg("%s: %s", sql, mysql_error(client));
    rows = mysql_store_result(client);
    row = rows ? mysql_fetch_row(rows) : NULL;
    if (row && row[0])
        value = strtoll(row[0], NULL, 10);
    mysql_free_result(rows);
    return value;
}

static int64_t ask(const char *sql)
{
    MYSQL *client = connect_client(database[0] ? database : NULL);
    int64_t value = ask_client(client, sql);

    mysql_close(client);
    return value;
}

static void execute(const char *sql)
{
    MYSQL *client = connect_client(NULL);

    say(client, sql);
    mysql_close(client);
}

#define KILL_OTHERS                                                  \
    "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; " \
    "FOR r IN (SELECT id FROM information_schema.processlist "       \
    "WHERE id<>CONNECTION_ID() AND user='jobqueue') DO KILL r.id; END FOR; END"

static const char *fresh_dsn(void)
{
    static int databases;
    char sql[128];

    if (!mariadb)
        mariadb = server_start("mariadb", true);
    if (shifted_ms) /* each store begins with the right time */
        server_shift(mariadb, -shifted_ms);
    shifted_ms = 0;
    if (databases) {
        execute(KILL_OTHERS); /* a failed test may have left locks */
        snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS %s", database);
        execute(sql);
    }
    snprintf(database, sizeof(database), "jobs_%d", ++databases);
    snprintf(sql, sizeof(sql), "CREATE DATABASE %s", database);
    execute(sql);
    snprintf(dsn, sizeof(dsn), "mysql://jobqueue@127.0.0.1:%d/%s?read_timeout=10",
             server_port(mariadb), database);
    return dsn;
}

static void shift(int64_t ms)
{
    server_shift(mariadb, ms);
    shifted_ms += ms;
}

/* A store like the one of the test, as another user or with other options. */
static jobq__store *open_other(const char *user, const char *db, const char *options)
{
    char text[400];

    snprintf(text, sizeof(text), "mysql://%s@127.0.0.1:%d/%s?%s", user, server_port(mariadb), db,
             options);
    return contract_open(text);
}

/* Every row's columns agree on where the job stands. */
static void check_places(void)
{
    static const char sql[] =
        "SELECT COUNT(*) FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.worker=j.place "
        "WHERE (place BETWEEN 5 AND 15) OR (place>=16 AND w.worker IS NULL) OR "
        "(place>=16)<>(nonce<>0) OR (place=2)<>(IFNULL(due, -1) BETWEEN 0 AND 1<<60) OR "
        "(place=3)<>(IFNULL(due, -1)>=1<<61) OR (place=4)<>(IFNULL(due, 0)<0) OR "
        "(place=4)<>(died_at IS NOT NULL) OR (place=1 AND j.taken=0) OR "
        "IFNULL(holds, 0)<>(unique_key IS NOT NULL AND place NOT IN (3, 4)) OR "
        "ranking NOT BETWEEN 0 AND 9";

    if (ask("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=DATABASE() "
            "AND table_name='jobqueue_job'"))
        assert_int_equal(ask(sql), 0);
}

/* ---- the server's version -------------------------------------------------------------------- */

/* case B102. */
static void test_b102_versions(void **state)
{
    static const struct {
        const char *version;
        bool enough;
    } rows[] = {
        {"5.5.5-10.11.6-MariaDB-0+deb12u1", true},
        {"10.11.19-MariaDB-0+deb12u1", true},
        {"10.6.0-MariaDB", true},
        {"11.4.2-MariaDB-ubu2404", true},
        {"5.5.5-10.5.21-MariaDB", false},
        {"10.3.39-MariaDB", false},
        {"5.5.68-MariaDB", false},
        {"8.0.36", true},
        {"8.0.mysql_aurora.3.05", true},
        {"9.1.0", true},
        {"5.7.44-log", false},
        {"8.0.36-28.1 Percona", true},
        {"", false},
        {"unknown", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (jobq__mysql_is_new_enough(rows[i].version) != rows[i].enough)
            fail_msg("version \"%s\"", rows[i].version);
    assert_code(jobq__mysql_check_server("5.7.44"), JOBQ_ECONF);
    assert_said("SKIP LOCKED");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
}

/* ---- opening --------------------------------------------------------------------------------- */

static void expect_refusal(const char *user, const char *db, const char *options, int code,
                           const char *text)
{
    jobq__store *other = open_other(user, db, options);
    int64_t now_ms;

    assert_code(jobq__store_now(other, &now_ms), code);
    assert_said(text);
    assert_int_equal(jobq_error_is_fatal(jobq_error_last()), code == JOBQ_ECONF);
    assert_int_equal(jobq_error_is_retryable(jobq_error_last()), code != JOBQ_ECONF);
    assert_null(strstr(jobq_error_message(jobq_error_last()), "sesame"));
    jobq__store_free(other);
}

/* rule P2, J1: what is wrong in the DSN is said in one line, without the password. */
static void test_bad_dsns(void **state)
{
    static const char nobody[] = "mysql://jobqueue@127.0.0.1:1/x?connect_timeout=1";
    jobq__store *other;
    int64_t now_ms;

    (void)state;
    execute("CREATE OR REPLACE USER poor@'%' IDENTIFIED BY 'sesame'");
    expect_refusal("poor:open-sesame", database, "", JOBQ_ECONF, "Access denied");
    expect_refusal("poor:sesame", database, "", JOBQ_ECONF, "Access denied");
    expect_refusal("jobqueue", "no_such_database", "", JOBQ_ECONF, "no_such_database");
    expect_refusal("jobqueue", "", "", JOBQ_ECONF, "names no database");
    expect_refusal("jobqueue", database, "tls=perhaps", JOBQ_ECONF, "tls");
    other = contract_open(nobody);
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONNECT);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    jobq__store_free(other);
    assert_int_equal(jobq__store_new("mysql://h/d?charset=latin1", NULL, &other), JOBQ_ECONF);
}

static void test_by_socket(void **state)
{
    char text[400];
    jobq__store *other;

    (void)state;
    push_job("a", "q");
    snprintf(text, sizeof(text), "mariadb://jobqueue@/%s?socket=%s", database,
             server_socket(mariadb));
    other = contract_open(text);
    assert_int_equal(mend_job(other, JOBQ_MEND_FORGET, "a", true), JOBQ_ENOTFOUND);
    jobq__store_free(other);
}

/* A user without the right to make tables, on tables that exist and on none. */
static void test_rights(void **state)
{
    char sql[200];

    (void)state;
    push_job("a", "q");
    execute("CREATE OR REPLACE USER poor@'%' IDENTIFIED BY 'sesame'");
    snprintf(sql, sizeof(sql), "GRANT SELECT, INSERT, UPDATE, DELETE ON %s.* TO poor@'%%'",
             database);
    execute(sql);
    {
        jobq__store *other = open_other("poor:sesame", database, "migrate=true");
        jobq_push item = job_item("b", "q");

        assert_ok(jobq__store_push(other, &item, 1));
        jobq__store_free(other);
    }
    jobq__store_disconnect(store);
    snprintf(sql, sizeof(sql), "DROP TABLE %s.jobqueue_schema", database);
    execute(sql);
    expect_refusal("poor:sesame", database, "", JOBQ_ECONF, "denied");
}

static void test_too_many_connections(void **state)
{
    jobq__store *other;
    int64_t now_ms;
    char sql[200];

    (void)state;
    push_job("a", "q");
    snprintf(sql, sizeof(sql), "CREATE OR REPLACE USER poor@'%%' WITH MAX_USER_CONNECTIONS 1");
    execute(sql);
    snprintf(sql, sizeof(sql), "GRANT ALL ON %s.* TO poor@'%%'", database);
    execute(sql);
    other = open_other("poor", database, "");
    assert_ok(jobq__store_now(other, &now_ms));
    expect_refusal("poor", database, "", JOBQ_ECONNECT, "max_user_connections");
    jobq__store_free(other);
}

/* rule K3: a read-only server refuses the push, clearly and for now. */
static void test_k3_read_only(void **state)
{
    jobq_push item = job_item("b", "q");
    jobq__store *other;
    char sql[200];

    (void)state;
    push_job("a", "q");
    execute("CREATE OR REPLACE USER poor@'%'");
    snprintf(sql, sizeof(sql), "GRANT ALL ON %s.* TO poor@'%%'", database);
    execute(sql);
    other = open_other("poor", database, "");
    execute("SET GLOBAL read_only=1");
    assert_code(jobq__store_push(other, &item, 1), JOBQ_EIO);
    execute("SET GLOBAL read_only=0");
    assert_said("read-only");
    assert_ok(jobq__store_push(other, &item, 1));
    jobq__store_free(other);
    assert_int_equal(count_jobs("q").ready, 2);
}

/* ---- the schema ------------------------------------------------------------------------------ */

static void test_migrate_false(void **state)
{
    jobq__store *other;
    int64_t now_ms;

    (void)state;
    other = open_other("jobqueue", database, "migrate=false");
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
    char sql[200];

    (void)state;
    push_job("a", "q");
    jobq__store_disconnect(store);
    snprintf(sql, sizeof(sql), "UPDATE %s.jobqueue_schema SET version=999", database);
    execute(sql);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("schema version 999 is newer than this library's");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
}

/* A migration that broke off in the middle is done again from its beginning. */
static void test_migration_again(void **state)
{
    char sql[200];

    (void)state;
    push_job("a", "q");
    jobq__store_disconnect(store);
    snprintf(sql, sizeof(sql), "DELETE FROM %s.jobqueue_schema", database);
    execute(sql);
    snprintf(sql, sizeof(sql), "DROP TABLE %s.jobqueue_worker", database);
    execute(sql);
    reserve_one("w", "q", "a");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
}

static int cancel_one(const char *id)
{
    jobq_cancelling c = {.id = TEXT(id), .reason = 11};

    assert_ok(jobq__store_cancel(store, &c));
    return c.result;
}

/* Makes of the tables what version 1 had: what is in them stays. */
static void go_back_to_version_1(void)
{
    static const char *const steps[] = {
        "DROP VIEW jobqueue_jobs",
        "DROP TABLE jobqueue_control, jobqueue_pause",
        "ALTER TABLE jobqueue_job DROP COLUMN cancel, MODIFY queue VARBINARY(128) NOT NULL",
        "UPDATE jobqueue_schema SET version=1",
    };
    MYSQL *client = connect_client(database);

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        say(client, steps[i]);
    mysql_close(client);
}

/* rules L1, L3: a database of an older library is brought up to date, with all that stands in it,
 * also when the first attempt broke off half-way. */
static void test_older_schema(void **state)
{
    jobq_push item = job_item("hook", "\x01q");

    (void)state;
    push_job("held", "q");
    begin_worker("w", 30000);
    reserve_one("w", "q", "held");
    push_job("waiting", "q");
    for (int i = 0; i < 2; i++) {
        go_back_to_version_1();
        jobq__store_disconnect(store);
        if (i == 1) {
            MYSQL *client = connect_client(database);

            say(client, "ALTER TABLE jobqueue_job ADD COLUMN cancel TINYINT NOT NULL DEFAULT 0");
            mysql_close(client);
        }
        assert_int_equal(count_jobs("q").ready, 1);
        assert_int_equal(ask("SELECT version FROM jobqueue_schema"), 2);
    }
    assert_int_equal(cancel_one("held"), JOBQ_EEXISTS);
    assert_int_equal(cancel_one("waiting"), 0);
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_jobs"), 1);
}

/* Two databases of one server know nothing of each other. */
static void test_side_by_side(void **state)
{
    jobq_push item = job_item("a", "q");
    jobq__store *other;

    (void)state;
    push_job("a", "q");
    execute("CREATE OR REPLACE DATABASE beside");
    other = open_other("jobqueue", "beside", "");
    assert_ok(jobq__store_push(other, &item, 1));
    assert_int_equal(item.result, 0);
    jobq__store_free(other);
    reserve_one("w", "q", "a");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_int_equal(ask("SELECT COUNT(*) FROM beside.jobqueue_job"), 1);
    execute("DROP DATABASE beside");
}

/* ---- what people see ------------------------------------------------------------------------- */

static int64_t count_shown(const char *where)
{
    char sql[500];

    snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM jobqueue_jobs WHERE %s", where);
    return ask(sql);
}

/* rule N6. */
static void test_n6_view(void **state)
{
    jobq_push json = job_item("json", "mail");

    (void)state;
    json.body = TEXT("{\"a\":\"\xf0\x9f\x98\x80\"}");
    json.unique = TEXT("key");
    store_one_of_each(&json);
    assert_int_equal(count_shown("id='json' AND state='ready' AND queue='mail' AND "
                                 "JSON_VALUE(payload, '$.a')='\xf0\x9f\x98\x80' AND "
                                 "enqueued_at > UTC_TIMESTAMP() - INTERVAL 1 MINUTE AND "
                                 "enqueued_at < UTC_TIMESTAMP() + INTERVAL 1 MINUTE"),
                     1);
    assert_int_equal(count_shown("id='later' AND state='delayed' AND payload='626F6479' AND "
                                 "available_at > UTC_TIMESTAMP() + INTERVAL 1 MINUTE"),
                     1);
    assert_int_equal(count_shown("state='reserved' AND reserved_by='worker-1' AND deliveries=1"),
                     1);
    assert_int_equal(
        count_shown("state='dead' AND reason='attempts_exhausted' AND died_at IS NOT NULL"), 1);
    assert_int_equal(count_shown("queue='Mail'"), 0);
}

/* rule N6 */
static void test_n6_reasons_in_the_view(void **state)
{
    (void)state;
    expect_reason_words(count_shown);
}

/* rules N6, F6: what stands in a hidden queue is not shown, whatever the length of its name. */
static void test_n6_hidden_queues(void **state)
{
    char name[129 + 1] = {0};
    jobq_push item;

    (void)state;
    memset(name, 'q', 129);
    name[0] = '\x01';
    item = job_item("hook", name);
    assert_int_equal(push_item(&item), 0);
    push_job("a", name + 1);
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_jobs"), 1);
    assert_int_equal(count_shown("id='a'"), 1);
    assert_int_equal(count_jobs(name + 1).ready, 1);
    reserve_one("w", name, "hook");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    reserve_one("w", name + 1, "a");
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_queue"), 1);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* case B006: bytes decide, in names, ids and unique keys alike. */
static void test_b006_bytes_decide(void **state)
{
    static const char *const texts[] = {"Mail",
                                        "mail",
                                        "m\xc3\xa4il",
                                        "ma\xcc\x88il",
                                        "mail ",
                                        "\xf0\x9f\x98\x80",
                                        "\xf0\x9f\x98\x81",
                                        "stra\xc3\x9f"
                                        "e",
                                        "strasse"};
    enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        jobq_push item = job_item(texts[i], texts[i]), second = job_item("other", "one");

        item.name = TEXT(texts[i]);
        assert_int_equal(push_item(&item), 0);
        second.id = jobq__slice(&texts[i], sizeof(texts[i])); /* any bytes */
        second.unique = TEXT(texts[i]);
        assert_int_equal(push_item(&second), 0);
    }
    for (size_t i = 0; i < TEXTS; i++) {
        const jobq_record *r;

        assert_int_equal(count_jobs(texts[i]).ready, 1);
        r = find_job(texts[i]);
        assert_true(jobq__slice_equal(r->name, TEXT(texts[i])));
        assert_true(jobq__slice_equal(r->queue, TEXT(texts[i])));
    }
    assert_int_equal(count_jobs("one").ready, TEXTS);
}

/* case B115: bodies about the size where another way of fetching them begins. */
static void test_b115_body_sizes(void **state)
{
    static const size_t sizes[] = {0, 1, 8191, 8192, 8193, 65535, 65536, 4 << 20};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    char *body = jobq__alloc(4 << 20), id[16];
    const jobq_record *r;

    (void)state;
    for (size_t i = 0; i < 4 << 20; i++)
        body[i] = (char)(i * 31 >> 3);
    for (size_t i = 0; i < SIZES; i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "j%zu", i);
        item = job_item(id, "q");
        item.body = jobq__slice(body, sizes[i]);
        assert_int_equal(push_item(&item), 0);
    }
    assert_int_equal(reserve_jobs("w", "q", 20), SIZES);
    r = got.first;
    for (size_t i = 0; i < SIZES; i++, r = r->next)
        assert_true(jobq__slice_equal(r->body, jobq__slice(body, sizes[i])));
    jobq__free(body);
}

/* case B115, rule B3: what is too large for the server is refused, nothing is cut, and the others
 * of the call are stored. */
static void test_b115_small_packets(void **state)
{
    size_t n = 1 << 20;
    char *body = jobq__alloc(n);
    jobq_push items[3] = {job_item("a", "q"), job_item("b", "q"), job_item("c", "q")};

    (void)state;
    memset(body, 'x', n);
    execute("SET GLOBAL max_allowed_packet=1048576");
    items[1].body = jobq__slice(body, n - 1000);
    assert_code(jobq__store_push(store, items + 1, 1), JOBQ_ELIMIT);
    assert_said("max_allowed_packet");
    assert_said("1047576 bytes");
    assert_false(jobq_error_is_retryable(jobq_error_last()));
    assert_ok(jobq__store_push(store, items, 3));
    execute("SET GLOBAL max_allowed_packet=16777216");
    assert_int_equal(items[0].result, 0);
    assert_int_equal(items[1].result, JOBQ_ELIMIT);
    assert_int_equal(items[2].result, 0);
    assert_int_equal(reserve_jobs("w", "q", 3), 2);
    for (int i = 0; i < 3; i++) {
        items[i] = job_item(i == 0 ? "d" : i == 1 ? "e" : "f", "q");
        items[i].body = jobq__slice(body, 700000); /* each fits, all together do not */
    }
    assert_ok(jobq__store_push(store, items, 3));
    assert_int_equal(reserve_jobs("w", "q", 3), 3);
    jobq__free(body);
}

/* rule C6: a body that was stored before max_allowed_packet was lowered runs like any other, is
 * shown like any other, and holds up nobody. */
static void test_c6_packets_lowered_later(void **state)
{
    enum { SIZE = (3 << 20) + 17 };
    char *body = jobq__alloc(SIZE);
    jobq_push items[3] = {job_item("a", "q"), job_item("large", "q"), job_item("b", "q")};
    jobq_listing l = {.queue = TEXT("q"), .limit = 10, .out = &got};
    const jobq_record *r;

    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)(i * 31 >> 3);
    items[1].body = jobq__slice(body, SIZE);
    assert_ok(jobq__store_push(store, items, 3));
    execute("SET GLOBAL max_allowed_packet=1048576");
    jobq__store_disconnect(store); /* a session keeps what it began with */
    assert_true(jobq__slice_equal(find_job("large")->body, items[1].body));
    jobq__batch_reset(&got);
    assert_ok(jobq__store_list(store, &l));
    assert_int_equal(got.count, 3);
    assert_true(jobq__slice_equal(got.first->next->body, items[1].body));
    assert_int_equal(reserve_jobs("w", "q", 10), 3);
    r = got.first->next;
    assert_true(jobq__slice_equal(r->body, items[1].body));
    assert_int_equal(settle_op("w", r, JOBQ_OP_BACK), 0);
    execute("SET GLOBAL max_allowed_packet=16777216");
    jobq__free(body);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* rule B9: the store's clock is right whatever the server's configuration makes of a session. */
static void test_b9_odd_sessions(void **state)
{
    static const char *const odd[] = {
        "time_zone='+05:45'",
        "time_zone='-11:00'",
        "sql_mode=''",
        "sql_mode='ANSI,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE'",
        "sql_mode='ORACLE'",
        "autocommit=0",
        "completion_type=2",
        "tx_isolation='SERIALIZABLE'",
        "tx_isolation='REPEATABLE-READ'",
        "sql_select_limit=1",
        "character_set_client=latin1",
        "init_connect='SET NAMES latin1'",
    };
    static const char *const names[] = {
        "time_zone",    "sql_mode",         "autocommit",           "completion_type",
        "tx_isolation", "sql_select_limit", "character_set_client", "init_connect"};
    char sql[200], id[16];

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        jobq_push later;

        snprintf(sql, sizeof(sql), "SET GLOBAL %s", odd[i]);
        execute(sql);
        jobq__store_disconnect(store);
        snprintf(id, sizeof(id), "later-%zu", i);
        later = job_item(id, "q");
        later.delay_ms = 60000;
        assert_int_equal(push_item(&later), 0);
        assert_true(llabs(store_now() - jobq__clock_wall_ms()) < 30000);
        assert_true(llabs(find_job(id)->available_at_ms - 60000 - store_now()) < 30000);
        push_job("a", "r");
        push_job("b", "r");
        assert_int_equal(reserve_jobs("w", "r", 5), 2);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
        assert_int_equal(settle_op("w", got.last, JOBQ_OP_DONE), 0);
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            snprintf(sql, sizeof(sql), "SET GLOBAL %s=%s", names[k],
                     strcmp(names[k], "init_connect") == 0           ? "''"
                     : strcmp(names[k], "time_zone") == 0            ? "'SYSTEM'"
                     : strcmp(names[k], "character_set_client") == 0 ? "utf8mb4"
                                                                     : "DEFAULT");
            execute(sql);
        }
    }
    assert_int_equal(count_jobs("q").delayed, sizeof(odd) / sizeof(odd[0]));
}

/* case B096: the server ends a connection that was idle; the next call has another one. */
static void test_b096_idle_connection_ended(void **state)
{
    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    execute(KILL_OTHERS);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_null(find_job("a"));
}

/* rule K2. */
static void test_k2_server_restarts(void **state)
{
    jobq_push item = job_item("b", "q");

    (void)state;
    execute("SET GLOBAL innodb_flush_log_at_trx_commit=2"); /* survives the kill */
    push_job("a", "q");
    reserve_one("w", "q", "a");
    server_kill(mariadb);
    wait_until(jobq__store_push(store, &item, 1) == JOBQ_ECONNECT, 10);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    server_restart(mariadb);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    push_job("b", "q");
}

/* rule C5: nothing is taken back before one lease after the server's start. */
static void test_c5_grace_after_a_start(void **state)
{
    jobq_maintenance m;

    (void)state;
    begin_worker("w", 20000);
    push_job("a", "q");
    reserve_one("w", "q", "a");
    server_stop(mariadb);
    shift(60000);
    server_restart(mariadb);
    m = maintain_all();
    assert_int_equal(m.handled, 0);
    assert_true(m.next_due_ms > m.now_ms + 10000); /* nobody spins meanwhile */
    shift(21000);
    assert_int_equal(maintain_all().handled, 1);
}

/* rule B5: an answer that does not come. */
static void test_b5_frozen_server(void **state)
{
    jobq__store *hasty = open_other("jobqueue", database, "read_timeout=0.3");
    jobq_push item = job_item("b", "q"), more[2] = {job_item("c", "q"), job_item("d", "q")};
    int64_t now_ms, began;

    (void)state;
    wait_until(jobq__store_now(hasty, &now_ms) == 0, 20);
    server_freeze(mariadb);
    began = jobq__clock_mono_ms();
    assert_code(jobq__store_push(hasty, &item, 1), JOBQ_EUNKNOWN);
    server_thaw(mariadb);
    assert_true(jobq__clock_mono_ms() - began < 5000);
    wait_until(jobq__store_now(hasty, &now_ms) == 0, 20); /* it has to come to its senses */
    server_freeze(mariadb);
    assert_code(jobq__store_push(hasty, more, 2), JOBQ_ETIMEOUT); /* nothing was committed */
    assert_code(jobq__store_now(hasty, &now_ms), JOBQ_ECONNECT);
    server_thaw(mariadb);
    wait_until(jobq__store_now(hasty, &now_ms) == 0, 20);
    assert_null(find_job("c"));
    jobq__store_free(hasty);
}

/* ---- locks ----------------------------------------------------------------------------------- */

#define FOREIGN_PUSH                                                                       \
    "INSERT INTO jobqueue_job(id, queue, name, body, available_at, enqueued_at, base_at) " \
    "VALUES('foreign', 'q', 'test', 'body', 1, 1, 1)"

/* One of everything that writes, beside a transaction of somebody else's. */
static void do_everything(void)
{
    jobq_push item = job_item("later", "q"),
              many[5] = {job_item("m1", "m"), job_item("m2", "m"), job_item("m3", "m"),
                         job_item("m4", "m"), job_item("m5", "m")};
    jobq_settlement s;

    push_job("a", "q");
    item.delay_ms = 5000;
    push_item(&item);
    assert_ok(jobq__store_push(store, many, 5));
    begin_worker("w", 60000);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_GIVE_BACK), 0);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_BACK), 0);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DEAD);
    s.error = s.history = TEXT("text");
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "a", false), 0);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    s.keep_ms = 1000;
    assert_int_equal(settle_with("w", &s), 0);
    begin_worker("gone", 10000);
    assert_int_equal(reserve_jobs("gone", "m", 2), 2);
    shift(15000);
    assert_int_equal(maintain_all().handled, 4); /* later, a, two taken back */
    assert_int_equal(settle_op("w", reserve_one("w", "q", "later"), JOBQ_OP_DONE), 0);
    assert_int_equal(reserve_jobs("w", "m", 9), 5);
}

/* A push that stays uncommitted for long holds nobody up, and is seen when it is committed. */
static void test_foreign_push_open(void **state)
{
    MYSQL *client;
    int64_t began = jobq__clock_mono_ms();

    (void)state;
    push_job("first", "other");
    client = connect_client(database);
    say(client, "START TRANSACTION");
    say(client, FOREIGN_PUSH);
    do_everything();
    assert_true(jobq__clock_mono_ms() - began < 5000); /* no lock was waited for */
    assert_int_equal(count_jobs("q").ready, 0);
    say(client, "COMMIT");
    mysql_close(client);
    reserve_one("w", "q", "foreign");
}

/* Closes it and waits until its transaction is rolled back. */
static void end_client(MYSQL *client)
{
    char sql[128];

    snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM information_schema.processlist WHERE id=%lu",
             mysql_thread_id(client));
    mysql_close(client);
    wait_until(ask(sql) == 0, 10);
}

/* The other way round: rows that somebody is reserving are passed by, pushes go on. */
static void test_foreign_reserve_open(void **state)
{
    MYSQL *client;
    int64_t began = jobq__clock_mono_ms();

    (void)state;
    push_job("x", "q");
    push_job("y", "q");
    client = connect_client(database);
    say(client, "SET SESSION tx_isolation='READ-COMMITTED'");
    say(client, "START TRANSACTION");
    assert_int_equal(ask_client(client, "SELECT id='x' FROM jobqueue_job WHERE place=0 AND "
                                        "queue='q' ORDER BY ranking, available_at, seq LIMIT 1 "
                                        "FOR UPDATE SKIP LOCKED"),
                     1);
    settle_op("w", reserve_one("w", "q", "y"), JOBQ_OP_DONE);
    do_everything();
    assert_true(jobq__clock_mono_ms() - began < 5000);
    end_client(client);
    reserve_one("w", "q", "x");
}

/* rules C6, C7: what somebody has locked is not taken for nothing, and asking for it again has
 * pauses. */
static void test_c6_locked_is_not_empty(void **state)
{
    const jobq_slice queue = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = &queue,
                       .queue_count = 1,
                       .want = 5,
                       .out = &got};
    const jobq_wait w = {
        .queues = &queue, .queue_count = 1, .timeout_ms = 5000, .poll_ms = 200, .wake_fd = -1};
    int64_t end_ms;
    MYSQL *client;
    int rounds = 0;

    (void)state;
    push_job("a", "q");
    client = connect_client(database);
    say(client, "START TRANSACTION");
    say(client, "SELECT * FROM jobqueue_job FOR UPDATE");
    for (end_ms = jobq__clock_mono_ms() + 1500; jobq__clock_mono_ms() < end_ms; rounds++) {
        assert_ok(jobq__store_exchange(store, &x));
        assert_true(x.passed_by);
        assert_false(x.exhausted);
        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    }
    assert_true(rounds < 50);
    end_client(client);
    reserve_one("w", "q", "a");
    assert_ok(jobq__store_exchange(store, &x));
    assert_false(x.passed_by);
}

/* Does somebody wait for a row's lock? */
static bool is_waited_for(void)
{
    return ask("SELECT variable_value FROM information_schema.global_status "
               "WHERE variable_name='Innodb_row_lock_current_waits'") > 0;
}

/* A lock that does not go away: said after a while, and for now. */
static void test_lock_held_for_long(void **state)
{
    jobq__store *hasty = open_other("jobqueue", database, "read_timeout=2"), *patient = store;
    MYSQL *client;
    int64_t began;

    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    client = connect_client(database);
    say(client, "START TRANSACTION");
    say(client, "SELECT * FROM jobqueue_job FOR UPDATE");
    {
        jobq_settlement s = settlement(got.first, JOBQ_OP_DONE);
        jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = &s, .settle_count = 1};

        began = jobq__clock_mono_ms();
        assert_code(jobq__store_exchange(hasty, &x), JOBQ_EBUSY);
        assert_true(jobq_error_is_retryable(jobq_error_last()));
        assert_false(x.settled);
        assert_true(jobq__clock_mono_ms() - began < 10000);
    }
    end_client(client);
    assert_ptr_equal(patient, store);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    jobq__store_free(hasty);
}

/* In a process of its own: locks b, waits until the store waits for it, and goes for a. Its
 * transaction has written more, so that the store's is the one that is rolled back. */
static void cross_locks(int ready_fd)
{
    MYSQL *client = connect_client(database);
    char sql[100];

    say(client, "CREATE TABLE heavy(n INT)");
    say(client, "START TRANSACTION");
    for (int i = 0; i < 50; i++) {
        snprintf(sql, sizeof(sql), "INSERT INTO heavy VALUES(%d)", i);
        say(client, sql);
    }
    say(client, "SELECT * FROM jobqueue_job WHERE id='b' FOR UPDATE");
    if (write(ready_fd, "x", 1) != 1)
        _exit(1);
    for (int i = 0; !is_waited_for(); i++)
        if (i > 2000)
            _exit(2);
    say(client, "SELECT * FROM jobqueue_job WHERE id='a' FOR UPDATE");
    say(client, "COMMIT");
    _exit(0);
}

/* rule K2: a deadlock is the driver's own affair. */
static void test_k2_deadlock(void **state)
{
    static const char count[] = "SELECT variable_value FROM information_schema.global_status "
                                "WHERE variable_name='Innodb_deadlocks'";
    int64_t before = ask(count);
    jobq_settlement s[2];
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = s, .settle_count = 2};
    int fds[2], status = -1;
    char byte;
    pid_t pid;

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    s[0] = settlement(got.first, JOBQ_OP_BACK);
    s[1] = settlement(got.last, JOBQ_OP_BACK);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0)
        cross_locks(fds[1]);
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(s[0].result, 0);
    assert_int_equal(s[1].result, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(fds[0]);
    assert_true(ask(count) > before);
    assert_int_equal(count_jobs("q").ready, 2);
}

/* The connection is killed in the middle of a call: whether that was before its end or behind it,
 * who can tell; and the next call finds out. */
static void test_killed_in_the_middle(void **state)
{
    MYSQL *client;
    pid_t pid;
    int status;
    jobq_settlement s;
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = &s, .settle_count = 1};

    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    s = settlement(got.first, JOBQ_OP_DONE);
    client = connect_client(database);
    say(client, "START TRANSACTION");
    say(client, "SELECT * FROM jobqueue_job FOR UPDATE");
    pid = fork();
    if (pid == 0) {
        char sql[64];

        for (int i = 0; !is_waited_for(); i++)
            if (i > 2000)
                _exit(2);
        snprintf(sql, sizeof(sql), "KILL %lld",
                 (long long)ask("SELECT id FROM information_schema.processlist "
                                "WHERE command='Execute' AND id<>CONNECTION_ID()"));
        execute(sql);
        _exit(0);
    }
    assert_int_equal(jobq__store_exchange(store, &x), JOBQ_EUNKNOWN);
    assert_false(x.settled);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    end_client(client);
    assert_int_equal(find_job("a")->state, 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
}

/* rule K2: an exchange that was given up is over on the server before anything else is asked there:
 * it settles nothing behind the back of whoever asks what he holds. */
static void test_k2_given_up_exchange(void **state)
{
    jobq__store *hasty = open_other("jobqueue", database, "read_timeout=0.5"), *patient = store;
    jobq_batch held = {0};
    jobq_settlement s;
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = &s, .settle_count = 1};
    MYSQL *client;

    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    s = settlement(got.first, JOBQ_OP_DONE);
    client = connect_client(database);
    say(client, "START TRANSACTION");
    say(client, "SELECT * FROM jobqueue_job FOR UPDATE");
    assert_code(jobq__store_exchange(hasty, &x), JOBQ_EUNKNOWN);
    assert_true(is_waited_for()); /* the server goes on with it */
    assert_ok(jobq__store_held(hasty, TEXT("w"), &held));
    assert_int_equal(held.count, 1);
    jobq__batch_free(&held);
    assert_false(is_waited_for());
    end_client(client);
    assert_ptr_equal(patient, store);
    assert_int_equal(find_job("a")->state, 2);
    assert_ok(jobq__store_exchange(hasty, &x));
    assert_int_equal(s.result, 0);
    jobq__store_free(hasty);
}

/* Statements that clients have said so far. */
static int64_t count_statements(MYSQL *client)
{
    return ask_client(client, "SELECT variable_value FROM information_schema.global_status "
                              "WHERE variable_name='Questions'");
}

/* One job at a time is two statements: one that takes it, one that settles it. */
static void test_one_trip_each(void **state)
{
    MYSQL *client = connect_client(database);

    (void)state;
    for (int i = 0; i < 2; i++) { /* the first time makes what the connection keeps */
        int64_t counts[3];

        push_job("a", "q");
        counts[0] = count_statements(client);
        reserve_one("w", "q", "a");
        counts[1] = count_statements(client);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
        counts[2] = count_statements(client);
        for (int k = 0; k < 2 && i; k++)
            assert_int_equal(counts[k + 1] - counts[k] - 1, 1); /* our own question */
    }
    mysql_close(client);
}

/* A worker's record goes an hour after its lease, but not while an exchange stands on it, however
 * long that has stood still. */
static void test_old_records(void **state)
{
    static const char records[] = "SELECT COUNT(*) FROM jobqueue_worker WHERE id='w'";
    jobq_push item = job_item("later", "q");
    MYSQL *client;

    (void)state;
    begin_worker("w", 30000);
    client = connect_client(database);
    say(client, "START TRANSACTION");
    say(client, "SELECT * FROM jobqueue_worker LOCK IN SHARE MODE");
    item.delay_ms = 60000; /* makes maintenance look about */
    push_item(&item);
    shift(7200000);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(ask(records), 1);
    end_client(client);
    item.id = TEXT("again");
    push_item(&item);
    shift(61000);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(ask(records), 0);
}

/* In a process of its own: holds up an exchange on job a while the worker's record goes. */
static void sweep_meanwhile(int ready_fd)
{
    MYSQL *client = connect_client(database), *sweeper = connect_client(database);

    say(client, "START TRANSACTION");
    say(client, "SELECT * FROM jobqueue_job WHERE id='a' FOR UPDATE");
    if (write(ready_fd, "x", 1) != 1)
        _exit(1);
    for (int i = 0; !is_waited_for(); i++)
        if (i > 2000)
            _exit(2);
    say(sweeper, "DELETE FROM jobqueue_worker WHERE id='w'");
    say(client, "COMMIT");
    mysql_close(sweeper);
    mysql_close(client);
    _exit(0);
}

/* A worker that stood still for so long inside an exchange that its record was swept: what it takes
 * stands on a new one, so that it can be lost to others in time. */
static void test_swept_meanwhile(void **state)
{
    const jobq_slice queue = TEXT("q");
    jobq_batch out = {0}, held = {0};
    jobq_settlement s;
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .settle = &s,
                       .settle_count = 1,
                       .queues = &queue,
                       .queue_count = 1,
                       .want = 1,
                       .out = &out};
    int fds[2], status = -1;
    char byte;
    pid_t pid;

    (void)state;
    push_job("a", "q");
    reserve_one("w", "q", "a");
    push_job("b", "q");
    s = settlement(got.first, JOBQ_OP_BACK);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0)
        sweep_meanwhile(fds[1]);
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(fds[0]);
    assert_int_equal(s.result, JOBQ_ELEASE);
    assert_int_equal(out.count, 1);
    assert_ok(jobq__store_held(store, TEXT("w"), &held));
    assert_int_equal(held.count, 1);
    assert_memory_equal(held.first->id.p, "b", 1);
    jobq__batch_free(&out);
    jobq__batch_free(&held);
    ask("DELETE FROM jobqueue_job WHERE id='a' RETURNING 1"); /* nobody's: the test's own doing */
}

/* Where a job of the following test stands in the order to serve. */
static int place_of(const jobq_record *r)
{
    const int n = atoi((const char *)r->id.p + 2);

    assert_int_equal(r->queue.n, n % 2 ? 5 : 6);
    return (n % 2) * 1000 + (r->priority ? 0 : 500) + n;
}

/* Small exchanges over several queues keep order and limits, also where they take more than fits
 * into one statement (rules C1, C3). */
static void test_short_way_and_long_way(void **state)
{
    enum { JOBS = 40, ONE = 2 };
    static char ids[JOBS][16];
    const jobq_slice queues[] = {TEXT("second"), TEXT("first")};
    jobq_exchange x = {
        .worker = TEXT("w"), .lease_ms = 30000, .queues = queues, .queue_count = 2, .out = &got};

    (void)state;
    for (int round = 0; round < 4; round++) {
        size_t left = JOBS;

        for (int i = 0; i < JOBS; i++) {
            jobq_push item;

            snprintf(ids[i], sizeof(ids[i]), "%d-%02d", round, i);
            item = job_item(ids[i], i % 2 ? "first" : "second");
            item.priority = (uint8_t)(i % 4 == 0);
            assert_int_equal(push_item(&item), 0);
        }
        x.want = round < ONE ? 100 : 3;
        x.want_bytes = round == 3 ? 1 : 0;
        for (int last = -1; left > 0;) {
            jobq__batch_reset(&got);
            assert_ok(jobq__store_exchange(store, &x));
            assert_int_equal(got.count, round < ONE ? JOBS : round == 3 || left == 1 ? 1 : 3);
            assert_true(x.exhausted ? left == got.count : round >= ONE);
            for (const jobq_record *r = got.first; r; last = place_of(r), r = r->next)
                assert_true(place_of(r) > last);
            for (const jobq_record *r = got.first; r; r = r->next)
                assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
            left -= got.count;
        }
    }
}

/* A claim under load starts behind what was taken before, and still loses nothing. */
static void test_hints_lose_nothing(void **state)
{
    enum { JOBS = 600 };
    static jobq_push items[JOBS];
    static char ids[JOBS + 2][16];
    jobq_settlement s;
    size_t total = 0, n;

    (void)state;
    for (int i = 0; i < JOBS; i++) {
        snprintf(ids[i], sizeof(ids[i]), "job-%03d", i);
        items[i] = job_item(ids[i], "q");
    }
    assert_ok(jobq__store_push(store, items, JOBS));
    assert_int_equal(reserve_jobs("w", "q", 100), 100);
    s = settlement(got.first, JOBQ_OP_GIVE_BACK); /* its own */
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(reserve_jobs("w", "q", 100), 100);
    assert_memory_equal(got.first->id.p, "job-000", 7);
    {
        jobq_push urgent = job_item("urgent", "q"), slow = job_item("slow", "q");

        urgent.priority = 5;
        push_item(&urgent);
        assert_int_equal(reserve_jobs("w", "q", 100), 100);
        assert_memory_equal(got.first->id.p, "urgent", 6);
        push_item(&slow);
    }
    for (total = 100 - 1 + 100 + 100; (n = reserve_jobs("w", "q", 100)) > 0;)
        total += n;
    assert_int_equal(total, JOBS + 2);
}

int main(void)
{
    static const contract_driver driver = {
        .name = "contract: mysql",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_PRIORITY | JOBQ_FEATURE_UNIQUE |
                    JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_DUE_ORDER,
        .shift = shift,
        .check = check_places,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_b102_versions),
        cmocka_unit_test(test_bad_dsns),
        cmocka_unit_test(test_by_socket),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_too_many_connections),
        cmocka_unit_test(test_k3_read_only),
        cmocka_unit_test(test_migrate_false),
        cmocka_unit_test(test_newer_schema),
        cmocka_unit_test(test_migration_again),
        cmocka_unit_test(test_older_schema),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_n6_view),
        cmocka_unit_test(test_n6_reasons_in_the_view),
        cmocka_unit_test(test_n6_hidden_queues),
        cmocka_unit_test(test_b006_bytes_decide),
        cmocka_unit_test(test_b115_body_sizes),
        cmocka_unit_test(test_b115_small_packets),
        cmocka_unit_test(test_c6_packets_lowered_later),
        cmocka_unit_test(test_b9_odd_sessions),
        cmocka_unit_test(test_b096_idle_connection_ended),
        cmocka_unit_test(test_k2_server_restarts),
        cmocka_unit_test(test_c5_grace_after_a_start),
        cmocka_unit_test(test_b5_frozen_server),
        cmocka_unit_test(test_foreign_push_open),
        cmocka_unit_test(test_foreign_reserve_open),
        cmocka_unit_test(test_c6_locked_is_not_empty),
        cmocka_unit_test(test_lock_held_for_long),
        cmocka_unit_test(test_k2_deadlock),
        cmocka_unit_test(test_killed_in_the_middle),
        cmocka_unit_test(test_k2_given_up_exchange),
        cmocka_unit_test(test_one_trip_each),
        cmocka_unit_test(test_short_way_and_long_way),
        cmocka_unit_test(test_old_records),
        cmocka_unit_test(test_swept_meanwhile),
        cmocka_unit_test(test_hints_lose_nothing),
    };

    return contract_main(&driver, own, sizeof(own) / sizeof(own[0]));
}
