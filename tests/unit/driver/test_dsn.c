/* SPDX-License-Identifier: MIT
 *
 * Reading DSNs (rule P2: no password in any message), and which store is meant by what.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

static jobq__arena arena;
static char options[512];

static int note_option(void *payload, const char *name, const char *value, size_t n)
{
    size_t used = strlen(options);

    (void)payload;
    snprintf(options + used, sizeof(options) - used, "%s=%.*s;", name, (int)n, value);
    return 0;
}

static void expect_slice(jobq_slice s, const char *text, const char *dsn)
{
    if (s.n != strlen(text) || (s.n && memcmp(s.p, text, s.n) != 0))
        fail_msg("%s: got \"%.*s\", wanted \"%s\"", dsn, (int)s.n, (const char *)s.p, text);
}

static void test_parts(void **state)
{
    static const struct {
        const char *dsn, *scheme, *user, *password, *host, *path;
        int port;
        const char *options;
    } rows[] = {
        {"sqlite:queue.db", "sqlite", "", "", "", "queue.db", 0, ""},
        {"sqlite:a/b c.db", "sqlite", "", "", "", "a/b c.db", 0, ""},
        {"sqlite:/abs/q.db", "sqlite", "", "", "", "/abs/q.db", 0, ""},
        {"sqlite:///var/lib/q.db?synchronous=normal&queue=m%26m", "sqlite", "", "", "",
         "/var/lib/q.db", 0, "synchronous=normal;queue=m&m;"},
        {"sqlite:///a%20b%3F.db", "sqlite", "", "", "", "/a b?.db", 0, ""},
        {"sqlite:///srv/a@b/q.db", "sqlite", "", "", "", "/srv/a@b/q.db", 0, ""},
        {"memory:", "memory", "", "", "", "", 0, ""},
        {"redis://127.0.0.1", "redis", "", "", "127.0.0.1", "", 0, ""},
        {"redis://user:p%40ss@host:6379/2?prefix=x", "redis", "user", "p@ss", "host", "2", 6379,
         "prefix=x;"},
        {"redis://:secret@host/0", "redis", "", "secret", "host", "0", 0, ""},
        {"redis://u:p@ss@host/0", "redis", "u", "p@ss", "host", "0", 0, ""},
        {"redis+unix:///run/redis.sock", "redis+unix", "", "", "", "/run/redis.sock", 0, ""},
        {"redis-sentinel://h1:26379,h2:26379/MASTER/1", "redis-sentinel", "", "",
         "h1:26379,h2:26379", "MASTER/1", 0, ""},
        {"redis-cluster://h1:7000,h2:7001", "redis-cluster", "", "", "h1:7000,h2:7001", "", 0, ""},
        {"rediss://[::1]:6380/0", "rediss", "", "", "::1", "0", 6380, ""},
        {"postgresql://u@/db?host=/run/postgresql", "postgresql", "u", "", "", "db", 0,
         "host=/run/postgresql;"},
        {"mysql://user:pass@host:3306/database", "mysql", "user", "pass", "host", "database", 3306,
         ""},
        {"SQLite:Queue.DB", "sqlite", "", "", "", "Queue.DB", 0, ""},
        {"MEMORY:", "memory", "", "", "", "", 0, ""},
        {"Redis://User:P@Host:6379/2", "redis", "User", "P", "Host", "2", 6379, ""},
        {"REDIS+UNIX:///run/Redis.sock", "redis+unix", "", "", "", "/run/Redis.sock", 0, ""},
        {"Rediss-Cluster://h1,h2:7000", "rediss-cluster", "", "", "h1,h2:7000", "", 0, ""},
        {"PostgreSQL://u@/Db", "postgresql", "u", "", "", "Db", 0, ""},
        {"MariaDB://u@h/Db", "mariadb", "u", "", "h", "Db", 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq_driver_config config;

        options[0] = '\0';
        assert_ok(jobq__dsn_parse(rows[i].dsn, &arena, &config, note_option, NULL));
        assert_string_equal(config.scheme, rows[i].scheme);
        expect_slice(config.user, rows[i].user, rows[i].dsn);
        expect_slice(config.password, rows[i].password, rows[i].dsn);
        expect_slice(config.host, rows[i].host, rows[i].dsn);
        expect_slice(config.path, rows[i].path, rows[i].dsn);
        assert_int_equal(config.port, rows[i].port);
        assert_string_equal(options, rows[i].options);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *dsn, *said;
    } rows[] = {
        {"", "no scheme"},
        {":x", "no scheme"},
        {"queue.db", "no scheme"},
        {"/var/lib/q.db", "no scheme"},
        {"sql ite:x", "no scheme"},
        {"redis://h:0/", "port"},
        {"redis://h:65536/", "port"},
        {"redis://h:x/", "port"},
        {"redis://h:/", "port"},
        {"redis://[::1/", "port"},
        {"redis://u:hunter2%zz@h/", "%XX"},
        {"sqlite:a%0", "%XX"},
        {"sqlite:a%00b", "%XX"},
        {"sqlite:x?y", "name=value"},
        {"sqlite:x?=1", "name=value"},
        {"sqlite:x?a=%f", "%XX"},
        {"sqlite:x?a=1&a=1", "twice"},
        {"sqlite:x?a=1&ab=2&b=3&a=4", "twice"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq_driver_config config;

        assert_code(jobq__dsn_parse(rows[i].dsn, &arena, &config, note_option, NULL), JOBQ_ECONF);
        assert_said(rows[i].said);
        assert_null(strstr(jobq_error_message(jobq_error_last()), "hunter2"));
    }
}

/* rule P2. */
static void test_p2_mask(void **state)
{
    static const char *const rows[][2] = {
        {"sqlite:queue.db", "sqlite:queue.db"},
        {"sqlite:///srv/a@b/q.db", "sqlite:///srv/a@b/q.db"},
        {"redis://user:hunter2@host:6379/0", "redis://user:***@host:6379/0"},
        {"redis://:hunter2@host", "redis://:***@host"},
        {"redis://u:hun/ter2@host/0", "redis://u:***@host/0"},
        {"redis://u:hun?ter2@host/0", "redis://u:***@host/0"},
        {"redis://u:h@nter2@host/0", "redis://u:***@host/0"},
        {"postgresql://host/db?user=u&password=hunter2&sslmode=require",
         "postgresql://host/db?user=u&password=***&sslmode=require"},
        {"redis:u:hunter2@host", "redis:u:***@host"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(jobq__dsn_mask(rows[i][0], &arena), rows[i][1]);
}

static void expect_refusal(const char *dsn, const char *said)
{
    jobq__store *store = NULL;

    assert_code(jobq__store_new(dsn, NULL, &store), JOBQ_ECONF);
    assert_said(said);
    assert_string_equal(jobq_error_driver(jobq_error_last()), ""); /* no store has said it */
    assert_false(jobq_error_is_retryable(jobq_error_last()));
    assert_null(strstr(jobq_error_message(jobq_error_last()), "hunter2"));
    assert_null(store);
}

static void test_stores_refused(void **state)
{
    (void)state;
    unsetenv("JOBQUEUE_DSN_REDIS");
    expect_refusal("redis", "JOBQUEUE_DSN_REDIS");
    expect_refusal("sqlite:", "names no file");
    expect_refusal("sqlite://relative.db", "names a host");
    expect_refusal("sqlite::memory:", "memory:");
    expect_refusal("sqlite:q.db?synchronus=full", "synchronous");
    expect_refusal("u:hunter2@host", "");
    expect_refusal("sqlite:q.db?nope=1",
                   "unknown option \"nope\" (allowed: queue, max_payload, capacity, migrate, "
                   "read_timeout, synchronous, dead_retention)");
    expect_refusal("sqlite:q.db?Track=1", "option \"track\" belongs to push");
    expect_refusal("sqlite:q.db?BUSY_TIMEOUT=-1", "unknown option \"BUSY_TIMEOUT\" (allowed: ");
    expect_refusal("sqlite:q.db?READ_TIMOUT=-1", "did you mean \"read_timeout\"?");
    expect_refusal("sqlite:q.db?cap=-1", "did you mean \"capacity\"?");
    expect_refusal("sqlite:q.db?MIGRATE=0", "did you mean \"migrate\"?");
}

static bool has_driver(const char *name)
{
    const char *built = NULL;

    for (size_t i = 0; (built = jobq_driver_name(i)) != NULL; i++)
        if (strcmp(built, name) == 0)
            return true;
    return false;
}

/* rule P2: what a server's DSN may be mistyped to; names that other libraries use. */
static void test_p2_servers_refused(void **state)
{
    static const struct {
        const char *driver, *dsn, *said;
    } rows[] = {
        {"memory", "pgsql://u:hunter2@h/d", "\"postgresql\""},
        {"memory", "valkey://:hunter2@h", "\"redis\""},
        {"memory", "sqlite3:q.db", "\"sqlite\""},
        {"redis", "redis:u:hunter2@h", "lacks \"//\""},
        {"redis", "redis://u:hunter2/x@h", "%2F"},
        {"redis", "redis://u:hunter2?x@h", "%3F"},
        {"redis", "redis://h?dbb=1", "\"db\""},
        {"redis", "redis://h?conect_timeout=1", "\"connect_timeout\""},
        {"redis", "redis://h?processes=1", "belongs to the worker"},
        {"postgresql", "postgresql:u:hunter2@h/d", "lacks \"//\""},
        {"postgresql", "postgresql://h/d?sslmod=require", "\"sslmode\""},
        {"postgresql", "postgresql://h/d?timeout=1", "belongs to"},
        {"mysql", "mysql:u:hunter2@h/d", "lacks \"//\""},
        {"mysql", "mysql://h/d?sockett=/x", "\"socket\""},
        {"mysql", "mysql://h/d?tsl=on", "\"tls\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (has_driver(rows[i].driver))
            expect_refusal(rows[i].dsn, rows[i].said);
}

static void test_which_store(void **state)
{
    jobq__store *store = NULL;

    (void)state;
    unsetenv("JOBQUEUE_DSN");
    assert_ok(jobq__store_new(NULL, NULL, &store));
    assert_string_equal(jobq__store_shown_dsn(store), "sqlite:jobqueue.db");
    assert_string_equal(jobq__store_connection(store), "default");
    assert_int_equal(jobq__store_file(store)[0], '/'); /* a later chdir leads nowhere else */
    jobq__store_free(store);
    setenv("JOBQUEUE_DSN", "memory:", 1);
    assert_ok(jobq__store_new(NULL, NULL, &store));
    assert_string_equal(jobq__store_driver(store)->name, "memory");
    assert_null(jobq__store_file(store));
    jobq__store_free(store);
    setenv("JOBQUEUE_DSN_MY_REDIS", "sqlite:///tmp/named.db", 1);
    assert_ok(jobq__store_new("my-redis", NULL, &store));
    assert_string_equal(jobq__store_connection(store), "my-redis");
    assert_string_equal(jobq__store_file(store), "/tmp/named.db");
    jobq__store_free(store);
}

/* Options that were given win over those of the query string. */
static void test_given_options_win(void **state)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    jobq__store *store = NULL;

    (void)state;
    assert_ok(jobq_conf_set(conf, "queue", "mail", 4));
    assert_ok(jobq__store_new("memory:?queue=other&max_payload=1000", conf, &store));
    assert_string_equal(conf->s.queue, "mail");
    assert_int_equal(conf->s.max_payload, 1000);
    jobq__store_free(store);
    jobq_conf_free(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_p2_mask),
        cmocka_unit_test(test_stores_refused),
        cmocka_unit_test(test_which_store),
        cmocka_unit_test(test_given_options_win),
        cmocka_unit_test(test_p2_servers_refused),
    };
    int failed = cmocka_run_group_tests_name("dsn", tests, NULL, NULL);

    jobq__arena_free(&arena);
    return failed;
}
