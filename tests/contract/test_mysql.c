/* SPDX-License-Identifier: MIT
 *
 * The contract on MariaDB, and what only a server of its kind can show: collations, sessions set up
 * otherwise, locks and deadlocks, killed connections, packets that are too large, rights.
 */
#include "contract/contract.h"
#include "contract/guarantees.h"
#include "contract/traffic.h"

#include <arpa/inet.h>
#include <locale.h>
#include <mysql.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
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
        "WHERE (place BETWEEN 6 AND 15) OR (place>=16 AND w.worker IS NULL) OR "
        "(place>=16)<>(nonce<>0) OR (place=2)<>(IFNULL(due, -1) BETWEEN 0 AND 1<<60) OR "
        "(place=3)<>(IFNULL(due, -1)>=1<<61) OR (place=4)<>(IFNULL(due, 0)<0) OR "
        "(place=4)<>(died_at IS NOT NULL) OR (place=1 AND j.taken=0) OR "
        "(holds IS NOT NULL AND (unique_key IS NULL OR place IN (3, 4))) OR "
        "(IFNULL(holds, 0)=2)<>(place=5) OR "
        "(place=5 AND NOT EXISTS(SELECT 1 FROM jobqueue_job h WHERE h.queue=j.queue AND "
        "h.unique_key=j.unique_key AND h.holds=1 AND h.followed=1)) OR "
        "(place=4 AND keep_until IS NOT NULL)<>EXISTS(SELECT 1 FROM jobqueue_keep k "
        "WHERE k.seq=j.seq AND k.keep_until=j.keep_until) OR "
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

/* A proxy that takes one client and passes all on, but what the server says of MariaDB's own
 * abilities in its greeting: its plain ones stand behind version, session and salt. */
static void relay_without_arrays(int listener)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
    static unsigned char piece[65536];
    const int client = accept(listener, NULL, NULL), up = socket(AF_UNIX, SOCK_STREAM, 0);
    ssize_t n;
    size_t at;

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", server_socket(mariadb));
    if (client < 0 || connect(up, (struct sockaddr *)&to, sizeof(to)))
        _exit(1);
    n = read(up, piece, sizeof(piece));
    at = 5 + strlen((const char *)piece + 5) + 1 + 4 + 8 + 1;
    piece[at] |= CLIENT_MYSQL;
    memset(piece + at + 15, 0, 4);
    ends[0].fd = client;
    ends[1].fd = up;
    for (int from = 1;;) {
        if (n <= 0 || write(ends[!from].fd, piece, (size_t)n) != n)
            _exit(0);
        poll(ends, 2, -1);
        from = ends[1].revents != 0;
        n = read(ends[from].fd, piece, sizeof(piece));
    }
}

/* rule B3: a large call goes through where the server's arrays of rows are not to be had, and what
 * is refused in it is refused alone. */
static void test_b3_without_arrays(void **state)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(here);
    jobq_push items[700];
    char ids[700][16], text[400];
    pid_t relay;

    (void)state;
    push_job("job-333", "q");
    assert_int_equal(bind(listener, (struct sockaddr *)&here, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    relay = fork();
    if (relay == 0)
        relay_without_arrays(listener);
    close(listener);
    jobq__store_free(store);
    snprintf(text, sizeof(text), "mysql://jobqueue@127.0.0.1:%d/%s", ntohs(here.sin_port),
             database);
    store = contract_open(text);
    for (int i = 0; i < 700; i++) {
        snprintf(ids[i], sizeof(ids[i]), "job-%d", i);
        items[i] = job_item(ids[i], "q");
    }
    assert_ok(jobq__store_push(store, items, 700));
    for (int i = 0; i < 700; i++)
        assert_int_equal(items[i].result, i == 333 ? JOBQ_EEXISTS : 0);
    assert_int_equal(count_jobs("q").ready, 700);
    jobq__store_disconnect(store);
    assert_int_equal(waitpid(relay, NULL, 0), relay);
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
        "DROP TABLE jobqueue_control, jobqueue_pause, jobqueue_keep, jobqueue_limit, "
        "jobqueue_room, jobqueue_minute",
        "ALTER TABLE jobqueue_job DROP COLUMN cancel, DROP COLUMN outcome, "
        "DROP COLUMN keep_until, DROP COLUMN followed, MODIFY queue VARBINARY(128) NOT NULL",
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
        assert_int_equal(ask("SELECT version FROM jobqueue_schema"), 3);
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
    assert_ok(jobq__store_now(store, &now_ms)); /* the tables are there */
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

/* One job at a time is two statements: one that takes it, one that settles it; also of one that
 * has a unique key. */
static void test_one_trip_each(void **state)
{
    MYSQL *client = connect_client(database);

    (void)state;
    for (int i = 0; i < 3; i++) { /* the first time makes what the connection keeps */
        jobq_push item = job_item("a", "q");
        int64_t counts[3];

        item.unique = i == 2 ? TEXT("key") : item.unique;
        assert_int_equal(push_item(&item), 0);
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

/* ---- statements of the store's, said by another client --------------------------------------- */

static jobq_batch statements;
static char answered[300]; /* the row of the last one: its columns with blanks between */

static void bind_param(MYSQL_BIND *bind, const jobq_param *p)
{
    if (p->type == JOBQ_PARAM_INT) {
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = (void *)&p->integer;
    } else if (p->type == JOBQ_PARAM_NULL) {
        bind->buffer_type = MYSQL_TYPE_NULL;
    } else {
        bind->buffer_type = p->type == JOBQ_PARAM_TEXT ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
        bind->buffer = (void *)p->bytes.p;
        bind->buffer_length = p->bytes.n;
    }
}

/* NULL, or what the server said against it. */
static const char *carry_out(MYSQL *client, const jobq_statement *s)
{
    static char failed[300], columns[2][150];
    MYSQL_STMT *stmt = mysql_stmt_init(client);
    MYSQL_BIND in[20] = {0}, out[2] = {0};
    unsigned long lengths[2] = {0, 0};
    bool bad;

    for (size_t i = 0; i < s->param_count; i++)
        bind_param(&in[i], &s->params[i]);
    bad = mysql_stmt_prepare(stmt, s->text.p, s->text.n) || mysql_stmt_bind_param(stmt, in) ||
          mysql_stmt_execute(stmt);
    for (int i = 0; i < 2; i++) {
        out[i].buffer_type = MYSQL_TYPE_STRING;
        out[i].buffer = columns[i];
        out[i].buffer_length = sizeof(columns[i]);
        out[i].length = &lengths[i];
    }
    bad = bad || mysql_stmt_bind_result(stmt, out) || mysql_stmt_store_result(stmt) ||
          mysql_stmt_fetch(stmt) != 0;
    snprintf(answered, sizeof(answered), "%.*s %.*s", (int)lengths[0], columns[0], (int)lengths[1],
             columns[1]);
    snprintf(failed, sizeof(failed), "%s", mysql_stmt_error(stmt));
    mysql_stmt_close(stmt);
    return bad ? failed : NULL;
}

static void expect_remark(int grade, const char *text)
{
    const char *said = contract_remarks(grade);

    if (!strstr(said, text))
        fail_msg("no remark \"%s\" in: %s", text, said);
}

/* ---- an older library's tables --------------------------------------------------------------- */

/* What the library of that schema version left behind, in the test's database. */
static void make_old_tables(int version)
{
    const char *root = getenv("JOBQ_SRCDIR");
    MYSQL *client = connect_client(database);
    char name[300], *sql = calloc(1, 65536);
    FILE *f;

    snprintf(name, sizeof(name), "%s/tests/contract/old/mysql-%d.sql", root ? root : "..", version);
    f = fopen(name, "r");
    assert_non_null(f);
    assert_non_null(sql);
    assert_true(fread(sql, 1, 65535, f) > 0);
    fclose(f);
    for (char *p = sql, *end; *p; p = end + (*end != '\0')) { /* one on each line */
        end = strchr(p, '\n');
        end = end ? end : p + strlen(p);
        if (p == end || (p[0] == '-' && p[1] == '-'))
            continue;
        if (mysql_real_query(client, p, (unsigned long)(end - p - 1)))
            fail_msg("%s", mysql_error(client));
    }
    mysql_close(client);
    free(sql);
}

/* Everything of version 2 stands where it stood, and has all that is new. */
static void test_f4_old_tables(void **state)
{
    jobq_push item = job_item("next", "q");
    jobq_control pauses = {.out = &statements};
    jobq__store *strict, *mine = store;

    (void)state;
    make_old_tables(2);
    strict = open_other("jobqueue", database, "migrate=false");
    assert_code(jobq__store_push(strict, &item, 1), JOBQ_ECONF);
    assert_said("jobqueue migrate");
    store = strict;
    expect_remark(JOBQ_REMARK_PROBLEM, "schema: "); /* rule N5 */
    store = mine;
    jobq__store_free(strict);
    assert_ok(jobq__store_schema(store));
    assert_int_equal(ask("SELECT version FROM jobqueue_schema"), 3);
    assert_int_equal(find_job("held")->state, 2);
    assert_int_equal(find_job("delayed")->state, 1);
    assert_int_equal(find_job("done")->state, 3);
    assert_int_equal(find_job("dead")->state, 4);
    assert_int_equal(find_job("dead")->keep_until_ms, 0);
    assert_int_equal(find_job("dead")->history_count, 1);
    item.unique = TEXT("key-ready");
    assert_int_equal(push_item(&item), 1);
    item.unique = TEXT("key-held");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(push_item(&item), 2);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead", false), 0);
    jobq__batch_reset(&statements);
    assert_ok(jobq__store_control(store, &pauses));
    assert_non_null(pauses.pauses);
    jobq__batch_reset(&got);
    assert_ok(jobq__store_held(store, TEXT("w"), &got));
    assert_int_equal(got.count, 1);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_int_equal(reserve_jobs("w", "q", 9), 3); /* ready, the one replayed, the follower */
    assert_string_equal(contract_strays("q"), "");
}

/* ---- capacity -------------------------------------------------------------------------------- */

static void limit_queue(const char *queue, int64_t value)
{
    jobq_limit l = {.queue = TEXT(queue), .value = value};

    assert_ok(jobq__store_capacity(store, &l));
}

/* Longer than a push relies on its last look at the limits (push.c). */
static void let_a_look_grow_old(void)
{
    usleep(20000);
}

/* rule B4: a limit that another process has set holds for the next push of this one, and so do its
 * change and its end. */
static void test_b4_set_elsewhere(void **state)
{
    jobq__store *other = open_other("jobqueue", database, "");
    jobq_limit l = {.queue = TEXT("q"), .value = 2};
    jobq_push item = job_item("c", "q");

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    assert_ok(jobq__store_capacity(other, &l));
    let_a_look_grow_old();
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    push_job("free", "p");
    l.value = 3;
    assert_ok(jobq__store_capacity(other, &l));
    assert_int_equal(push_item(&item), 0);
    item.id = TEXT("d");
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    l.value = 0;
    assert_ok(jobq__store_capacity(other, &l));
    let_a_look_grow_old();
    assert_int_equal(push_item(&item), 0);
    jobq__store_free(other);
}

/* rules B4, B6: a follower takes room like any other, also where the limit was set elsewhere. */
static void test_b4_follower_set_elsewhere(void **state)
{
    jobq__store *other = open_other("jobqueue", database, "");
    jobq_limit l = {.queue = TEXT("q"), .value = 1};
    jobq_push item = job_item("first", "q");

    (void)state;
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(push_item(&item), 0);
    reserve_one("w", "q", "first");
    assert_ok(jobq__store_capacity(other, &l));
    item.id = TEXT("second");
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    assert_null(find_job("second"));
    l.value = 2;
    assert_ok(jobq__store_capacity(other, &l));
    assert_int_equal(push_item(&item), 2);
    jobq__store_free(other);
}

/* rule B4: queues without one pay nothing: a push is one statement, as it was. */
static void test_b4_no_limit_no_cost(void **state)
{
    MYSQL *client = connect_client(database);
    int64_t before;

    (void)state;
    limit_queue("limited", 5);
    for (int i = 0; i < 3; i++) { /* the first times make what the connection keeps */
        char id[16];

        let_a_look_grow_old();
        before = count_statements(client);
        snprintf(id, sizeof(id), "job-%d", i);
        push_job(id, "q");
    }
    assert_int_equal(count_statements(client) - before - 1, 1);
    mysql_close(client);
}

enum { PUSHERS = 6, CAPACITY = 150 };

/* In a process of its own: one after the other, or by sevens, until the queue is full. */
static void push_until_full(int me, bool many)
{
    static char ids[7][32];
    jobq_push items[7];
    const size_t n = many ? 7 : 1;
    int full = 0;

    store = contract_open(dsn);
    for (int k = 0; full < 3; k++) {
        for (size_t i = 0; i < n; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%d-%d-%d-%zu", (int)getpid(), me, k, i);
            items[i] = job_item(ids[i], "q");
        }
        if (jobq__store_push(store, items, n) < 0)
            _exit(1);
        full += items[n - 1].result == JOBQ_EFULL;
    }
    jobq__store_free(store);
    _exit(0);
}

/* How many jobs are in the queue after all of them found it full, but one that was killed. */
static int64_t crowd_queue(bool many)
{
    pid_t pids[PUSHERS];
    int status;

    for (int i = 0; i < PUSHERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            push_until_full(i, many);
    }
    usleep(1000 * (unsigned)(ask("SELECT COUNT(*) FROM jobqueue_job") % 97)); /* at any moment */
    kill(pids[0], SIGKILL);
    for (int i = 0; i < PUSHERS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(status == 0 || i == 0);
    }
    wait_until(ask("SELECT COUNT(*) FROM information_schema.processlist "
                   "WHERE user='jobqueue' AND id<>CONNECTION_ID()") <= 1,
               20); /* what was under way is stored, or not */
    return ask("SELECT COUNT(*) FROM jobqueue_job WHERE queue='q'");
}

/* rule B4: exact up to the pushes in flight: each of the others may have one under way (seven, when
 * they push by sevens), and again after some have gone. Nobody finds it full before it is. */
static void test_b4_many_pushers(void **state)
{
    int64_t count;

    (void)state;
    limit_queue("q", CAPACITY);
    for (int round = 0; round < 4; round++) {
        const int in_flight = (PUSHERS - 1) * (round % 2 ? 7 : 1);

        count = crowd_queue(round % 2);
        if (count < CAPACITY || count > CAPACITY + in_flight)
            fail_msg("%lld jobs in round %d", (long long)count, round);
        assert_int_equal(count_jobs("q").ready, count);
        while (count_jobs("q").ready > CAPACITY - 40) {
            const jobq_record *r = reserve_jobs("w", "q", 1) ? got.first : NULL;

            assert_non_null(r);
            assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
        }
    }
    assert_true(ask("SELECT COUNT(*) FROM jobqueue_room") < 400); /* they are folded */
}

/* ---- unique keys that replace ---------------------------------------------------------------- */

static int push_replacing(const char *id, const char *body)
{
    jobq_push item = job_item(id, "q");

    item.unique = TEXT("key");
    item.body = TEXT(body);
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    return push_item(&item);
}

static void end_simply(jobq_record *r)
{
    assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
}

static void end_among_many(jobq_record *r)
{
    jobq_settlement s[20];
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = s, .settle_count = 20};
    static char ids[19][16];

    for (int i = 0; i < 20; i++)
        s[i] = settlement(r, JOBQ_OP_DONE);
    for (int i = 0; i < 19; i++) {
        snprintf(ids[i], sizeof(ids[i]), "with-%d", i);
        push_job(ids[i], "r");
    }
    assert_int_equal(reserve_jobs("w", "r", 19), 19);
    r = got.first;
    for (int i = 0; i < 19; i++, r = r->next)
        s[i] = settlement(r, JOBQ_OP_DONE);
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(s[19].result, 0);
}

static void end_kept(jobq_record *r)
{
    jobq_settlement s = settlement(r, JOBQ_OP_DONE);

    s.keep_ms = 60000;
    assert_int_equal(settle_with("w", &s), 0);
}

static void end_dead(jobq_record *r)
{
    assert_int_equal(settle_op("w", r, JOBQ_OP_DEAD), 0);
}

static void end_given_up(jobq_record *r)
{
    assert_int_equal(settle_op("w", r, JOBQ_OP_FREE_KEY), 0);
    assert_int_equal(settle_op("w", r, JOBQ_OP_FREE_KEY), 0); /* it may be said again */
}

static void end_cancelled(jobq_record *r)
{
    char id[16];

    snprintf(id, sizeof(id), "%s", (const char *)r->id.p);
    assert_int_equal(settle_op("w", r, JOBQ_OP_BACK), 0);
    assert_int_equal(cancel_one(id), 0);
}

/* The oldest goes, which is the holder. */
static void end_cleared(jobq_record *r)
{
    jobq_clearing c = {.queue = TEXT("q"), .limit = 1};

    assert_int_equal(settle_op("w", r, JOBQ_OP_GIVE_BACK), 0);
    assert_ok(jobq__store_clear(store, &c));
    assert_int_equal(c.cleared, 1);
}

static void end_by_statement(jobq_record *r)
{
    jobq_settlement s = settlement(r, JOBQ_OP_DONE);
    jobq_request request = {.worker = TEXT("w"), .done = &s, .out = &statements};
    MYSQL *client = connect_client(database);

    jobq__batch_reset(&statements);
    assert_ok(jobq__store_request(store, &request));
    assert_null(carry_out(client, &request.statement));
    mysql_close(client);
}

/* rule B6: however the holder ends, in the same step the follower has the key and waits for its
 * own time; the next push sees it as the holder. */
static void test_b6_every_end(void **state)
{
    static void (*const ends[])(jobq_record *) = {end_simply,  end_among_many,  end_kept,
                                                  end_dead,    end_given_up,    end_cancelled,
                                                  end_cleared, end_by_statement};
    enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

    (void)state;
    begin_worker("w", 60000);
    for (int i = 0; i < ENDS; i++) {
        char first[16], second[16];

        snprintf(first, sizeof(first), "first-%d", i);
        snprintf(second, sizeof(second), "second-%d", i);
        assert_int_equal(push_replacing(first, "1"), 0);
        reserve_one("w", "q", first);
        assert_int_equal(push_replacing(second, "2"), 2);
        assert_int_equal(push_replacing("third", "3"), 2);
        ends[i](got.first);
        check_places();
        assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_job WHERE place=5"), 0);
        assert_int_equal(push_replacing("fourth", "4"), 2);
        maintain_all();
        assert_memory_equal(reserve_one("w", "q", second)->body.p, "4", 1);
        end_simply(got.first);
    }
    assert_string_equal(contract_strays("q"), "");
}

/* In a process of its own. */
static void debounce(int me)
{
    char id[32], body[32];
    jobq_push item;

    store = contract_open(dsn);
    for (int k = 0; k < 120; k++) {
        snprintf(id, sizeof(id), "%d-%03d", me, k);
        snprintf(body, sizeof(body), "%d-%03d", me, k);
        item = job_item(id, "q");
        item.unique = TEXT("key");
        item.body = TEXT(body);
        item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
        if (jobq__store_push(store, &item, 1) < 0 || item.result < 0) {
            fprintf(stderr, "%d %s\n", item.result, jobq_error_message(jobq_error_last()));
            _exit(1);
        }
    }
    jobq__store_free(store);
    _exit(0);
}

/* rule B6: no push is lost, whatever the holder does meanwhile: each process's last one is carried
 * out, or replaced by one that came after it; and nobody waits for a key that nobody has. */
static void test_b6_debounce_race(void **state)
{
    enum { PROCESSES = 3 };
    pid_t pids[PROCESSES];
    char last[32] = "";
    int running = PROCESSES, ran = 0, status;

    (void)state;
    begin_worker("w", 60000);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            debounce(i);
    }
    for (bool more = true; running > 0 || more;) {
        more = reserve_jobs("w", "q", 1) > 0;
        if (more) {
            snprintf(last, sizeof(last), "%.*s", (int)got.first->body.n,
                     (const char *)got.first->body.p);
            assert_int_equal(settle_op("w", got.first, ran++ % 3 ? JOBQ_OP_DONE : JOBQ_OP_DEAD), 0);
        }
        maintain_all();
        for (int i = 0; i < PROCESSES; i++)
            if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                assert_int_equal(status, 0);
                pids[i] = 0;
                running--;
                more = true;
            }
    }
    assert_true(ran > 1);
    assert_string_equal(last + 2, "119");
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_job WHERE place<>4"), 0);
}

/* In a process of its own, until it is killed. */
static void replace_all_the_time(int me)
{
    char id[32];

    store = contract_open(dsn);
    for (int k = 0;; k++) {
        jobq_push item;

        snprintf(id, sizeof(id), "%d-%d", me, k);
        item = job_item(id, "q");
        item.unique = TEXT("key");
        item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
        item.delay_ms = 10;
        item.max_wait_ms = 200;
        if (jobq__store_push(store, &item, 1) < 0 || item.result < 0)
            _exit(1);
    }
}

/* rules B6, C6: who replaces a job without a pause does not keep it from being run: due after
 * max_wait at the latest, it is soon taken, although claims pass by what is locked. */
static void test_b6_replaced_all_the_time(void **state)
{
    enum { PROCESSES = 3, SOON_MS = 5000 };
    pid_t pids[PROCESSES];

    (void)state;
    begin_worker("w", 60000);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            replace_all_the_time(i);
    }
    for (int runs = 0; runs < 8; runs++) {
        int64_t late_ms;

        wait_until(maintain_all().handled + 1 > 0 && reserve_jobs("w", "q", 1) == 1, 30);
        late_ms = store_now() - got.first->base_at_ms - 200;
        if (late_ms > SOON_MS)
            fail_msg("started %lld ms after it was due", (long long)late_ms);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], NULL, WNOHANG), 0);
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

/* rule B6: a holder that went by other hands, those of an older library that is still at work or of
 * somebody with a client: its follower does not wait for ever. */
static void test_b6_orphans(void **state)
{
    MYSQL *client;

    (void)state;
    begin_worker("w", 60000);
    assert_int_equal(push_replacing("first", "1"), 0);
    reserve_one("w", "q", "first");
    assert_int_equal(push_replacing("second", "2"), 2);
    client = connect_client(database);
    say(client, "DELETE FROM jobqueue_job WHERE id='first'");
    assert_string_equal(contract_strays("q"), "second/0 ");
    maintain_all();
    assert_string_equal(contract_strays("q"), "");
    reserve_one("w", "q", "second");
    mysql_close(client);
}

/* ---- retention ------------------------------------------------------------------------------- */

/* rule N7: an outcome that the server cannot take is refused alone, and the job stays held. */
static void test_n7_large_outcome(void **state)
{
    enum { SIZE = 17 << 20 };
    char *body = calloc(1, SIZE);
    jobq_settlement s[2];
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = s, .settle_count = 2};

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    begin_worker("w", 60000);
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    s[0] = settlement(got.first, JOBQ_OP_DONE);
    s[1] = settlement(got.last, JOBQ_OP_DONE);
    s[0].keep_ms = s[1].keep_ms = 60000;
    s[0].outcome = jobq__slice(body, SIZE);
    s[1].outcome = TEXT("small");
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(s[0].result, JOBQ_EINVAL);
    assert_int_equal(s[1].result, 0);
    assert_int_equal(find_job("a")->state, 2);
    s[0].outcome.n = 12 << 20;
    assert_int_equal(settle_with("w", s), 0);
    assert_int_equal(find_job("a")->outcome.n, 12 << 20);
    free(body);
}

/* Nothing stays behind after everything that can happen to jobs, in any order. */
static void test_traffic_leaves_no_rows(void **state)
{
    const char *seed = getenv("JOBQUEUE_TEST_SEED");

    (void)state;
    traffic_run(seed ? (unsigned)atoi(seed) : 7, 600);
    pass_time(100000, 100000);
    maintain_all();
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_job"), 0);
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_keep"), 0);
    assert_true(ask("SELECT COUNT(*) FROM jobqueue_room") <= 200);
}

/* rule N1: kept for a day, whoever books. */
static void test_n1_day(void **state)
{
    const int64_t now = store_now() / 60000;
    jobq_minute booked[] = {{.queue = TEXT("q"), .minute = now - 1441, .counts = {1}},
                            {.queue = TEXT("q"), .minute = now - 1439, .counts = {2}},
                            {.queue = TEXT("q"), .minute = now, .counts = {3}}};
    jobq_minutes m = {.queue = TEXT("q"), .out = &statements};

    (void)state;
    assert_ok(jobq__store_book(store, booked, 3));
    jobq__batch_reset(&statements);
    assert_ok(jobq__store_minutes(store, &m));
    assert_int_equal(m.minutes->counts[0], 2);
    assert_int_equal(m.minutes->next->counts[0], 3);
    assert_null(m.minutes->next->next);
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_minute"), 2);
}

/* rule F4: collected in bounded steps, as soon as it is due, and nothing else with it. */
static void test_f4_collected(void **state)
{
    enum { DEAD = 30 };
    jobq_maintenance m = {.limit = 8, .take_back = true, .loss_cap = 10};
    jobq_cancelling c = {.id = TEXT("waits"), .reason = 11, .keep_ms = 20000};
    char id[16];

    (void)state;
    begin_worker("w", 3600000);
    for (int i = 0; i < DEAD; i++) {
        jobq_settlement s;

        snprintf(id, sizeof(id), "dead-%02d", i);
        push_job(id, "q");
        s = settlement(reserve_one("w", "q", id), JOBQ_OP_DEAD);
        s.keep_ms = i < DEAD / 2 ? 10000 : 0;
        assert_int_equal(settle_with("w", &s), 0);
    }
    push_job("waits", "q");
    assert_ok(jobq__store_cancel(store, &c));
    assert_int_equal(find_job("waits")->keep_until_ms, find_job("waits")->died_at_ms + 20000);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "dead-00", false), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead-01", false), 0);
    {
        char sql[200];

        snprintf(sql, sizeof(sql), "DELETE FROM %s.jobqueue_job WHERE id='dead-02'", database);
        execute(sql); /* somebody's own doing: the list must not keep us busy for ever */
    }
    shift(11000);
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 8);
    assert_true(m.more);
    while (m.more)
        assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_job WHERE place=4"), DEAD / 2 + 1);
    assert_non_null(find_job("dead-01"));
    assert_true(m.next_due_ms > m.now_ms && m.next_due_ms <= m.now_ms + 10000);
    shift(10000);
    assert_int_equal(maintain_all().handled, 1);
    assert_null(find_job("waits"));
    assert_int_equal(ask("SELECT COUNT(*) FROM jobqueue_keep"), 0);
}

/* ---- guards ---------------------------------------------------------------------------------- */

static int push_guarded(const char *id, const char *sql, const jobq_param *params, size_t n)
{
    const jobq_statement guard = {.text = TEXT(sql), .params = params, .param_count = n};
    jobq_push item = job_item(id, "q");
    int rc;

    item.guard = &guard;
    rc = jobq__store_push(store, &item, 1);
    return rc < 0 ? rc : item.result;
}

/* rule B7: values keep their types, and what is true is as the contract says. */
static void test_b7_values(void **state)
{
    static const struct {
        const char *sql;
        bool is_true;
    } rows[] = {{"SELECT 1", true},
                {"SELECT 0", false},
                {"SELECT NULL", false},
                {"SELECT ''", false},
                {"SELECT '0'", true},
                {"SELECT 0.00", false},
                {"SELECT 0.5", true},
                {"SELECT 0e0", false},
                {"SELECT 1e-3", true},
                {"SELECT SUM(0)", false},
                {"SELECT 1 FROM jobqueue_job WHERE 1=0", false},
                {"(SELECT 2)", true},
                {"WITH x AS (SELECT 3 AS n) SELECT n FROM x", true},
                {"/* why */ SELECT 1", true}};
    const jobq_param params[] = {{.type = JOBQ_PARAM_INT, .integer = INT64_MIN},
                                 {.type = JOBQ_PARAM_DOUBLE, .real = 0.1},
                                 {.type = JOBQ_PARAM_TEXT, .bytes = TEXT("m\xc3\xa4il")},
                                 {.type = JOBQ_PARAM_BYTES, .bytes = {"\xff\0x", 3}},
                                 {.type = JOBQ_PARAM_NULL},
                                 {.type = JOBQ_PARAM_TEXT, .bytes = {"", 0}}};
    char id[16];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(id, sizeof(id), "job-%zu", i);
        if (push_guarded(id, rows[i].sql, NULL, 0) != (rows[i].is_true ? 0 : JOBQ_EGUARD))
            fail_msg("%s", rows[i].sql);
        assert_int_equal(find_job(id) != NULL, rows[i].is_true);
    }
    assert_int_equal(push_guarded("values",
                                  "SELECT ?=-9223372036854775808 AND ?=0.1e0 AND "
                                  "CHAR_LENGTH(?)=4 AND HEX(?)='FF0078' AND ? IS NULL AND ?=''",
                                  params, 6),
                     0);
    assert_int_equal(push_guarded("few", "SELECT ? AND ?", params, 1), JOBQ_EINVAL);
    assert_said("takes 2 values, got 1");
    assert_int_equal(push_guarded("ddl", "DROP TABLE jobqueue_job", NULL, 0), JOBQ_EINVAL);
    assert_said("SELECT, WITH, VALUES");
    assert_int_equal(push_guarded("two", "SELECT 1; DELETE FROM jobqueue_job", NULL, 0),
                     JOBQ_EINVAL);
    assert_int_equal(push_guarded("none", "SELECT x FROM no_such_table", NULL, 0), JOBQ_EINVAL);
    assert_said("the guard is refused");
    assert_said("no_such_table");
    assert_null(strstr(jobq_error_message(jobq_error_last()), "migrate"));
    assert_null(find_job("none"));
    assert_int_equal(push_guarded("more", "SELECT (SELECT 1 UNION SELECT 2)", NULL, 0),
                     JOBQ_EINVAL);
}

/* rule B7: a host program's locale with a decimal comma changes nothing. */
static void test_b7_values_in_a_comma_locale(void **state)
{
    if (!jobq_test_comma_locale())
        skip();
    test_b7_values(state);
    setlocale(LC_ALL, "C");
}

/* In a process of its own. */
static void push_while_few(int me)
{
    char id[32];
    int refused = 0;

    store = contract_open(dsn);
    for (int k = 0; refused < 2; k++) {
        int rc;

        snprintf(id, sizeof(id), "%d-%d", me, k);
        rc = push_guarded(id, "SELECT COUNT(*)<10 FROM jobqueue_job WHERE queue='q'", NULL, 0);
        if (rc < 0 && rc != JOBQ_EGUARD && rc != JOBQ_EBUSY)
            _exit(1);
        refused += rc == JOBQ_EGUARD;
    }
    jobq__store_free(store);
    _exit(0);
}

static void test_b7_guard_amid_a_call(void **state)
{
    (void)state;
    expect_guard_amid_a_call("jobqueue_jobs");
}

/* rule B7: what the guard has read stays so until the job is stored. */
static void test_b7_same_step(void **state)
{
    pid_t pids[4];
    int status;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            push_while_few(i);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_jobs("q").ready, 10);
}

/* ---- effects --------------------------------------------------------------------------------- */

static int run_effect(const jobq_record *r, const char *worker, const char *sql,
                      const jobq_param *params, size_t n, jobq_param *value)
{
    jobq_effect e = {.worker = TEXT(worker),
                     .id = r->id,
                     .queue = TEXT("q"),
                     .token = r->token,
                     .statement = {.text = TEXT(sql), .params = params, .param_count = n},
                     .out = &statements};
    int rc;

    jobq__batch_reset(&statements);
    rc = jobq__store_effect(store, &e);
    if (value)
        *value = e.value;
    return rc < 0 ? rc : e.result;
}

/* rule O1: with the token that is current, and with no other; what fails leaves nothing. */
static void test_o1_effect_is_fenced(void **state)
{
    const jobq_param n = {.type = JOBQ_PARAM_INT, .integer = 7};
    jobq_batch first = {0};
    jobq_record old;
    jobq_param value;
    char sql[200];

    (void)state;
    push_job("a", "q");
    snprintf(sql, sizeof(sql), "CREATE TABLE %s.work(n INT PRIMARY KEY, t VARCHAR(9))", database);
    execute(sql);
    begin_worker("w", 30000);
    begin_worker("v", 30000);
    old = *reserve_one("w", "q", "a");
    old.id = jobq_batch_copy(&first, old.id.p, old.id.n);
    assert_int_equal(run_effect(&old, "w", "INSERT INTO work(n) VALUES(?)", &n, 1, &value), 0);
    assert_int_equal(value.type, JOBQ_PARAM_INT);
    assert_int_equal(value.integer, 1);
    assert_int_equal(run_effect(&old, "v", "INSERT INTO work(n) VALUES(8)", NULL, 0, NULL),
                     JOBQ_ELEASE);
    /* Some rows in, then a refusal: none is left. */
    assert_int_equal(
        run_effect(&old, "w", "INSERT INTO work(n) VALUES(9), (10), (7)", NULL, 0, NULL),
        JOBQ_EINVAL);
    assert_said("the effect is refused");
    assert_int_equal(run_effect(&old, "w", "ALTER TABLE work ADD COLUMN x INT", NULL, 0, NULL),
                     JOBQ_EINVAL);
    assert_int_equal(settle_op("w", &old, JOBQ_OP_BACK), 0);
    assert_int_equal(run_effect(&old, "w", "INSERT INTO work(n) VALUES(11)", NULL, 0, NULL),
                     JOBQ_ELEASE);
    reserve_one("w", "q", "a");
    assert_int_equal(run_effect(&old, "w", "INSERT INTO work(n) VALUES(12)", NULL, 0, NULL),
                     JOBQ_ELEASE);
    assert_int_equal(run_effect(got.first, "w", "UPDATE work SET t='x' WHERE n=?", &n, 1, &value),
                     0);
    assert_int_equal(value.integer, 1);
    assert_int_equal(run_effect(got.first, "w", "SELECT t, n FROM work", NULL, 0, &value), 0);
    assert_int_equal(value.type, JOBQ_PARAM_TEXT);
    assert_memory_equal(value.bytes.p, "x", 2);
    assert_int_equal(ask("SELECT GROUP_CONCAT(n) FROM work"), 7);
    jobq__batch_free(&first);
}

/* rule O1: a procedure may do it; one that ends the transaction is told of, and what the
 * connection was left with is not used again. */
static void test_o1_effect_by_procedure(void **state)
{
    MYSQL *client;
    jobq_param value;

    (void)state;
    push_job("a", "q");
    client = connect_client(database);
    say(client, "CREATE TABLE work(n INT)");
    say(client, "CREATE PROCEDURE good(x INT) BEGIN INSERT INTO work VALUES(x); SELECT x+1; "
                "SELECT 'more'; END");
    say(client, "CREATE PROCEDURE bad() BEGIN COMMIT; INSERT INTO work VALUES(99); "
                "SET autocommit=0; END");
    begin_worker("w", 30000);
    reserve_one("w", "q", "a");
    assert_int_equal(run_effect(got.first, "w", "CALL good(5)", NULL, 0, &value), 0);
    assert_int_equal(value.integer, 6);
    assert_int_equal(run_effect(got.first, "w", "CALL bad()", NULL, 0, NULL), JOBQ_EINVAL);
    assert_said("has ended its transaction");
    push_job("b", "q");
    assert_int_equal(ask_client(client, "SELECT COUNT(*) FROM jobqueue_job"), 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    mysql_close(client);
}

/* rule O1: nobody comes between: whoever would take the job away waits until it is done. */
static void test_o1_nobody_between(void **state)
{
    MYSQL *client;
    jobq__store *other = open_other("jobqueue", database, "read_timeout=2");
    jobq_settlement s;
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = &s, .settle_count = 1};
    pid_t pid;
    int status;

    (void)state;
    push_job("a", "q");
    client = connect_client(database);
    say(client, "CREATE TABLE work(n INT)");
    begin_worker("w", 30000);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    pid = fork();
    if (pid == 0) {
        store = contract_open(dsn);
        _exit(run_effect(got.first, "w", "INSERT INTO work SELECT SLEEP(3)", NULL, 0, NULL) != 0);
    }
    wait_until(ask_client(client, "SELECT COUNT(*) FROM information_schema.processlist "
                                  "WHERE state='User sleep'") == 1,
               10);
    assert_code(jobq__store_exchange(other, &x), JOBQ_EBUSY);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_ok(jobq__store_exchange(other, &x));
    assert_int_equal(s.result, 0);
    assert_int_equal(ask_client(client, "SELECT COUNT(*) FROM work"), 1);
    mysql_close(client);
    jobq__store_free(other);
}

/* ---- the application's own transactions ------------------------------------------------------ */

static const char *push_by_statement(MYSQL *client, jobq_push *item)
{
    jobq_request r = {.push = item, .out = &statements};
    const char *failed;

    jobq__batch_reset(&statements);
    assert_ok(jobq__store_request(store, &r));
    failed = carry_out(client, &r.statement);
    return failed ? failed : answered;
}

/* rule B8, for each isolation that a client may have. */
static void push_in_a_transaction(const char *isolation)
{
    jobq_push item = job_item("a", "q");
    MYSQL *client = connect_client(NULL); /* of no database, or another one */
    char sql[100];

    snprintf(sql, sizeof(sql), "SET SESSION tx_isolation='%s'", isolation);
    say(client, sql);
    item.unique = TEXT("key");
    item.delay_ms = 60000;
    item.body = (jobq_slice){"\xff\0\x80'\\", 5};
    say(client, "START TRANSACTION");
    assert_string_equal(push_by_statement(client, &item), "a stored");
    assert_null(find_job("a"));
    say(client, "ROLLBACK");
    assert_null(find_job("a"));
    say(client, "START TRANSACTION");
    assert_string_equal(push_by_statement(client, &item), "a stored");
    item.id = TEXT("b");
    assert_string_equal(push_by_statement(client, &item), "a held");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    item.delay_ms = 30000;
    assert_string_equal(push_by_statement(client, &item), "a replaced");
    item = job_item("c", "full");
    assert_string_equal(push_by_statement(client, &item), "c full");
    item = job_item("d", "q");
    assert_string_equal(push_by_statement(client, &item), "d stored");
    assert_string_equal(push_by_statement(client, &item), "d duplicate");
    item.idempotent = true;
    assert_string_equal(push_by_statement(client, &item), "d held");
    say(client, "COMMIT");
    mysql_close(client);
    assert_int_equal(find_job("a")->state, 1);
    assert_true(find_job("a")->available_at_ms < store_now() + 40000);
    assert_memory_equal(find_job("a")->body.p, "\xff\0\x80'\\", 5);
    assert_null(find_job("b"));
    assert_null(find_job("c"));
    assert_int_equal(settle_op("w", reserve_one("w", "q", "d"), JOBQ_OP_DONE), 0);
    assert_int_equal(cancel_one("a"), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "a", false), 0);
}

static void test_b8_push_in_a_transaction(void **state)
{
    static const char *const isolations[] = {"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE",
                                             "READ-UNCOMMITTED"};

    (void)state;
    push_job("first", "full");
    limit_queue("full", 1);
    for (size_t i = 0; i < sizeof(isolations) / sizeof(isolations[0]); i++)
        push_in_a_transaction(isolations[i]);
}

/* rule B8: while the holder runs the next one follows it, in a queue that never had a capacity, one
 * whose capacity was taken away, and one with room. */
static void replace_in_a_transaction(MYSQL *client)
{
    jobq_push item = job_item("a", "q");

    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    item.delay_ms = 60000;
    item.max_wait_ms = 100000;
    say(client, "START TRANSACTION");
    assert_string_equal(push_by_statement(client, &item), "a stored");
    item.id = TEXT("b");
    item.body = TEXT("later");
    item.delay_ms = 90000000;
    assert_string_equal(push_by_statement(client, &item), "a replaced");
    say(client, "COMMIT");
    assert_memory_equal(find_job("a")->body.p, "later", 5);
    assert_true(find_job("a")->available_at_ms <= find_job("a")->enqueued_at_ms + 100000);
    item.delay_ms = 0;
    assert_string_equal(push_by_statement(client, &item), "a replaced");
    reserve_one("w", "q", "a");
    say(client, "START TRANSACTION");
    assert_string_equal(push_by_statement(client, &item), "b replaced");
    say(client, "ROLLBACK");
    assert_null(find_job("b"));
    say(client, "START TRANSACTION");
    assert_string_equal(push_by_statement(client, &item), "b replaced");
    item.id = TEXT("c");
    item.body = TEXT("last");
    assert_string_equal(push_by_statement(client, &item), "b replaced");
    say(client, "COMMIT");
    assert_null(find_job("c"));
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_string_equal(contract_strays("q"), "");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    maintain_all();
    assert_memory_equal(reserve_one("w", "q", "b")->body.p, "last", 4);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
}

static void test_b8_replace_in_a_transaction(void **state)
{
    MYSQL *client;

    (void)state;
    begin_worker("w", 3600000);
    client = connect_client(NULL);
    replace_in_a_transaction(client);
    limit_queue("q", 0);
    replace_in_a_transaction(client);
    limit_queue("q", 2);
    replace_in_a_transaction(client);
    mysql_close(client);
}

/* MariaDB 11.6.2 and newer, unless told otherwise: what was changed since the snapshot is an error,
 * for which the application begins its transaction anew. */
static bool isolate_snapshots(MYSQL *client, bool on)
{
    if (ask_client(client, "SELECT COUNT(*) FROM information_schema.system_variables WHERE "
                           "variable_name='innodb_snapshot_isolation'") == 0)
        return !on;
    say(client,
        on ? "SET SESSION innodb_snapshot_isolation=1" : "SET SESSION innodb_snapshot_isolation=0");
    return true;
}

static void push_under_old_snapshot(bool isolated)
{
    jobq_push item = job_item("new", "q");
    MYSQL *client = connect_client(database);

    if (!isolate_snapshots(client, isolated)) {
        mysql_close(client);
        return;
    }
    item.unique = TEXT("key");
    assert_int_equal(push_item(&item), 0);
    say(client, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "new"), JOBQ_OP_DONE), 0);
    item.id = TEXT("next");
    assert_string_equal(push_by_statement(client, &item), "next stored");
    say(client, "COMMIT");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "next"), JOBQ_OP_DONE), 0);
    say(client, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    assert_int_equal(push_item(&item), 0);
    item.id = TEXT("later");
    if (isolated) {
        assert_non_null(strstr(push_by_statement(client, &item), "Record has changed"));
        say(client, "ROLLBACK");
        say(client, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    }
    assert_string_equal(push_by_statement(client, &item), "next held");
    say(client, "COMMIT");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "next"), JOBQ_OP_DONE), 0);
    mysql_close(client);
}

/* rule B8: a snapshot that is older than the key's end, or than its beginning, deceives nobody. */
static void test_b8_old_snapshot(void **state)
{
    (void)state;
    push_under_old_snapshot(false);
    push_under_old_snapshot(true);
}

/* rule B8: until it is committed nobody sees it and nobody is held up: not by the push, not by the
 * answer that a key is held. */
static void test_b8_holds_nobody_up(void **state)
{
    jobq_push item = job_item("mine", "q");
    int64_t began = jobq__clock_mono_ms();
    MYSQL *client;

    (void)state;
    item.unique = TEXT("key");
    assert_int_equal(push_item(&item), 0);
    client = connect_client(NULL);
    say(client, "SET SESSION tx_isolation='READ-COMMITTED'");
    say(client, "START TRANSACTION");
    item.id = TEXT("other");
    assert_string_equal(push_by_statement(client, &item), "mine held");
    item = job_item("free", "q");
    assert_string_equal(push_by_statement(client, &item), "free stored");
    settle_op("w", reserve_one("w", "q", "mine"), JOBQ_OP_DONE);
    limit_queue("q", 5);
    assert_int_equal(count_jobs("q").ready, 0);
    do_everything();
    assert_true(jobq__clock_mono_ms() - began < 8000);
    say(client, "COMMIT");
    mysql_close(client);
    reserve_one("w", "q", "free");
}

/* rule O1: the application's writes and the job's end commit together, or neither does. */
static void test_o1_done_in_a_transaction(void **state)
{
    jobq_settlement s;
    jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &statements};
    jobq_batch out = {0};
    MYSQL *client;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    for (int i = 0; i < 10; i++) {
        s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_BACK);
        s.history = TEXT(i ? "later" : "first");
        assert_int_equal(settle_with("w", &s), 0);
    }
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    s.keep_ms = 60000;
    s.outcome = TEXT("result");
    s.keep_bare = true;
    s.history = TEXT("eleventh");
    r.out = &out;
    assert_ok(jobq__store_request(store, &r));
    client = connect_client(database);
    say(client, "CREATE TABLE work(n INT)");
    say(client, "START TRANSACTION");
    say(client, "INSERT INTO work VALUES(1)");
    assert_null(carry_out(client, &r.statement));
    say(client, "ROLLBACK");
    assert_int_equal(find_job("a")->state, 2);
    say(client, "START TRANSACTION");
    say(client, "INSERT INTO work VALUES(2)");
    assert_null(carry_out(client, &r.statement));
    say(client, "COMMIT");
    assert_int_equal(find_job("a")->state, 3);
    assert_memory_equal(find_job("a")->outcome.p, "result", 6);
    assert_int_equal(find_job("a")->body.n, 0);
    assert_true(find_job("a")->keep_until_ms > store_now());
    assert_int_equal(find_job("a")->history_count, 10);
    assert_memory_equal(find_job("a")->history[0].p, "later", 5);
    assert_memory_equal(find_job("a")->history[9].p, "eleventh", 8);
    assert_int_equal(settle_with("w", &s), JOBQ_ELEASE);
    say(client, "START TRANSACTION");
    say(client, "INSERT INTO work VALUES(3)");
    assert_non_null(strstr(carry_out(client, &r.statement), "the lease of the job is lost"));
    say(client, "ROLLBACK");
    assert_int_equal(ask_client(client, "SELECT SUM(n) FROM work"), 2);
    mysql_close(client);
    jobq__batch_free(&out);
}

/* Users who may not make functions: all else goes, and what does not go says what to do. */
static void test_b8_no_routines(void **state)
{
    jobq_push item = job_item("a", "q");
    jobq_request r = {.push = &item, .out = &statements};
    jobq__store *poor;

    (void)state;
    execute("CREATE OR REPLACE USER poor@'%'");
    execute("CREATE OR REPLACE DATABASE plain");
    execute("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, CREATE VIEW "
            "ON plain.* TO poor@'%'");
    poor = open_other("poor", "plain", "");
    assert_ok(jobq__store_push(poor, &item, 1));
    jobq__batch_reset(&statements);
    assert_code(jobq__store_request(poor, &r), JOBQ_ECONF);
    assert_said("jobqueue_push");
    assert_said("CREATE ROUTINE");
    {
        jobq__store *mine = store;

        store = poor;
        assert_non_null(strstr(contract_remarks(JOBQ_REMARK_NOTE), "routines: "));
        store = mine;
    }
    execute("GRANT CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON plain.* TO poor@'%'");
    jobq__store_disconnect(poor);
    assert_ok(jobq__store_request(poor, &r)); /* made now that it may be */
    jobq__store_free(poor);
    execute("DROP FUNCTION plain.jobqueue_push");
    poor = open_other("poor", "plain", "migrate=false");
    assert_code(jobq__store_request(poor, &r), JOBQ_ECONF);
    assert_ok(jobq__store_schema(poor)); /* `jobqueue migrate` */
    assert_ok(jobq__store_request(poor, &r));
    jobq__store_free(poor);
    execute("DROP DATABASE plain");
}

/* ---- what is wrong --------------------------------------------------------------------------- */

/* In a process of its own: jobs come and go until it is killed. */
static void make_traffic(int me)
{
    char worker[16], id[32];

    store = contract_open(dsn);
    snprintf(worker, sizeof(worker), "worker-%d", me);
    for (int k = 0;; k++) {
        jobq_push item;
        jobq_settlement s;

        snprintf(id, sizeof(id), "%d-%d", me, k);
        item = job_item(id, "q");
        item.delay_ms = k % 5 == 0 ? 20 : 0;
        if (k % 3 == 0) {
            item.unique = TEXT("key");
            item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
        }
        push_item(&item);
        for (size_t n = reserve_jobs(worker, "q", 2); n > 0; n--) {
            s = settlement(got.first, k % 4 == 0   ? JOBQ_OP_BACK
                                      : k % 7 == 0 ? JOBQ_OP_DEAD
                                                   : JOBQ_OP_DONE);
            s.keep_ms = k % 2 ? 5000 : 0;
            settle_with(worker, &s);
            got.first = got.first->next;
        }
        if (k % 10 == 0)
            maintain_all();
    }
}

/* rule N5: the audit names what is broken, and nothing else, while jobs come and go. */
static void test_n5_audit_amid_traffic(void **state)
{
    static const char *const breaks[] = {
        "UPDATE jobqueue_job SET place=7 WHERE id='none'",
        "UPDATE jobqueue_job SET place=999999999, nonce=1 WHERE id='nobody'",
        "UPDATE jobqueue_job SET due=NULL WHERE id='never'",
        "UPDATE jobqueue_job SET due=-5 WHERE id='both'",
        "UPDATE jobqueue_job SET place=5 WHERE id='follows'",
    };
    static const char *const wrong[] = {"none/0 ", "nobody/4! ", "never/0 ", "both/17 ",
                                        "follows/0 "};
    pid_t pids[3];
    jobq_push later = job_item("never", "q");
    MYSQL *client;

    (void)state;
    push_job("none", "p");
    push_job("nobody", "p");
    push_job("both", "p");
    push_job("follows", "p");
    push_job("right", "p");
    later.queue = TEXT("p");
    later.delay_ms = 600000;
    push_item(&later);
    for (int i = 0; i < 3; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            make_traffic(i);
    }
    wait_until(ask("SELECT COUNT(*) FROM jobqueue_worker") == 3, 20);
    for (int i = 0; i < 40; i++)
        assert_string_equal(contract_strays("q"), "");
    assert_string_equal(contract_strays("p"), "");
    client = connect_client(database);
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++)
        say(client, breaks[i]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_non_null(strstr(contract_strays("p"), wrong[i]));
    assert_null(strstr(contract_strays("p"), "right"));
    assert_string_equal(contract_strays("q"), "");
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    wait_until(ask("SELECT COUNT(*) FROM information_schema.processlist "
                   "WHERE user='jobqueue' AND id<>CONNECTION_ID()") <= 2,
               20);
    assert_string_equal(contract_strays("q"), "");
    say(client, "DELETE FROM jobqueue_job WHERE queue='p'");
    mysql_close(client);
}

/* rule N5: a server that was set up carelessly, table by table and word by word. */
static void test_n5_misconfigured(void **state)
{
    static const char *const careless[] = {
        "SET GLOBAL innodb_flush_log_at_trx_commit=0",
        "SET GLOBAL lock_wait_timeout=1",
        "SET GLOBAL max_allowed_packet=1048576",
        "ALTER TABLE jobqueue_job DROP KEY jobqueue_job_line, ADD KEY jobqueue_job_line(place)",
        "ALTER TABLE jobqueue_worker DROP KEY jobqueue_worker_id",
        "ALTER TABLE jobqueue_minute ENGINE=Aria",
        "ALTER TABLE jobqueue_pause DEFAULT CHARSET=latin1"};
    MYSQL *client;

    (void)state;
    push_job("a", "q");
    execute("SET GLOBAL innodb_flush_log_at_trx_commit=1");
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "");
    client = connect_client(database);
    for (size_t i = 0; i < sizeof(careless) / sizeof(careless[0]); i++)
        say(client, careless[i]);
    expect_remark(JOBQ_REMARK_PROBLEM, "durability: innodb_flush_log_at_trx_commit is 0");
    expect_remark(JOBQ_REMARK_PROBLEM, "max_allowed_packet: ");
    expect_remark(JOBQ_REMARK_PROBLEM, "index: the index jobqueue_job_line of jobqueue_job");
    expect_remark(JOBQ_REMARK_PROBLEM, "index: the index jobqueue_worker_id of jobqueue_worker");
    expect_remark(JOBQ_REMARK_PROBLEM, "engine: the table jobqueue_minute");
    expect_remark(JOBQ_REMARK_NOTE, "charset: the table jobqueue_pause");
    expect_remark(JOBQ_REMARK_NOTE, "lock_wait_timeout: ");
    expect_remark(JOBQ_REMARK_NOTE, "doublewrite: ");
    say(client, "SET GLOBAL lock_wait_timeout=DEFAULT");
    say(client, "SET GLOBAL max_allowed_packet=16777216");
    /* What it advises mends it. */
    say(client, "ALTER TABLE jobqueue_job DROP KEY jobqueue_job_line");
    say(client, "ALTER TABLE jobqueue_job ADD KEY jobqueue_job_line(place, queue, ranking, "
                "available_at, seq)");
    say(client, "ALTER TABLE jobqueue_worker ADD UNIQUE KEY jobqueue_worker_id(id)");
    say(client, "ALTER TABLE jobqueue_minute ENGINE=InnoDB");
    say(client, "SET GLOBAL innodb_flush_log_at_trx_commit=1");
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "");
    say(client, "SET GLOBAL innodb_flush_log_at_trx_commit=0");
    mysql_close(client);
}

/* rule N5: a user who may read only. */
static void test_n5_rights(void **state)
{
    jobq__store *poor, *mine = store;
    char sql[200];

    (void)state;
    push_job("a", "q");
    execute("CREATE OR REPLACE USER poor@'%'");
    snprintf(sql, sizeof(sql), "GRANT SELECT ON %s.* TO poor@'%%'", database);
    execute(sql);
    poor = open_other("poor", database, "");
    store = poor;
    expect_remark(JOBQ_REMARK_PROBLEM, "rights: this user lacks INSERT");
    expect_remark(JOBQ_REMARK_PROBLEM, "rights: this user lacks DELETE");
    store = mine;
    jobq__store_free(poor);
}

/* rules B8, N5: a server with the binary log, as replicas need it: what a user without all rights
 * may make there, and what is said of its settings. */
static void test_n5_binary_log(void **state)
{
    server *logging =
        server_start_with("mariadb", false, "--log-bin=log --server-id=1 --sync-binlog=0");
    jobq_push item = job_item("a", "q");
    jobq_request r = {.push = &item, .out = &statements};
    jobq__store *mine = store;
    MYSQL *client = mysql_init(NULL);
    char text[200];

    (void)state;
    assert_non_null(
        mysql_real_connect(client, NULL, "jobqueue", NULL, NULL, 0, server_socket(logging), 0));
    say(client, "CREATE DATABASE q");
    say(client, "CREATE USER poor@'%'");
    say(client, "GRANT ALL ON q.* TO poor@'%'");
    snprintf(text, sizeof(text), "mysql://poor@127.0.0.1:%d/q", server_port(logging));
    store = contract_open(text);
    push_job("a", "q");
    jobq__batch_reset(&statements);
    assert_code(jobq__store_request(store, &r), JOBQ_ECONF);
    assert_said("log_bin_trust_function_creators");
    expect_remark(JOBQ_REMARK_NOTE, "routines: ");
    say(client, "SET GLOBAL log_bin_trust_function_creators=1");
    assert_ok(jobq__store_request(store, &r));
    say(client, "SET GLOBAL innodb_flush_log_at_trx_commit=1");
    expect_remark(JOBQ_REMARK_NOTE, "durability: sync_binlog is 0");
    say(client, "SET GLOBAL binlog_format=STATEMENT");
    expect_remark(JOBQ_REMARK_PROBLEM, "binlog: ");
    jobq__store_free(store);
    store = mine;
    mysql_close(client);
    server_remove(logging);
}

int main(void)
{
    static const contract_driver driver = {
        .name = "contract: mysql",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_PRIORITY | JOBQ_FEATURE_UNIQUE |
                    JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_DUE_ORDER | JOBQ_FEATURE_EFFECT |
                    JOBQ_FEATURE_REQUEST,
        .shift = shift,
        .check = check_places,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_b102_versions),
        cmocka_unit_test(test_bad_dsns),
        cmocka_unit_test(test_by_socket),
        cmocka_unit_test(test_b3_without_arrays),
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
        cmocka_unit_test(test_f4_old_tables),
        cmocka_unit_test(test_b4_set_elsewhere),
        cmocka_unit_test(test_b4_follower_set_elsewhere),
        cmocka_unit_test(test_b4_no_limit_no_cost),
        cmocka_unit_test(test_b4_many_pushers),
        cmocka_unit_test(test_b6_every_end),
        cmocka_unit_test(test_b6_debounce_race),
        cmocka_unit_test(test_b6_replaced_all_the_time),
        cmocka_unit_test(test_b6_orphans),
        cmocka_unit_test(test_n7_large_outcome),
        cmocka_unit_test(test_traffic_leaves_no_rows),
        cmocka_unit_test(test_n1_day),
        cmocka_unit_test(test_f4_collected),
        cmocka_unit_test(test_b7_values),
        cmocka_unit_test(test_b7_values_in_a_comma_locale),
        cmocka_unit_test(test_b7_guard_amid_a_call),
        cmocka_unit_test(test_b7_same_step),
        cmocka_unit_test(test_o1_effect_is_fenced),
        cmocka_unit_test(test_o1_effect_by_procedure),
        cmocka_unit_test(test_o1_nobody_between),
        cmocka_unit_test(test_b8_push_in_a_transaction),
        cmocka_unit_test(test_b8_replace_in_a_transaction),
        cmocka_unit_test(test_b8_old_snapshot),
        cmocka_unit_test(test_b8_holds_nobody_up),
        cmocka_unit_test(test_o1_done_in_a_transaction),
        cmocka_unit_test(test_b8_no_routines),
        cmocka_unit_test(test_n5_audit_amid_traffic),
        cmocka_unit_test(test_n5_misconfigured),
        cmocka_unit_test(test_n5_rights),
        cmocka_unit_test(test_n5_binary_log),
    };

    return contract_main(&driver, own, sizeof(own) / sizeof(own[0]));
}
