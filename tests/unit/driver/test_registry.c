/* SPDX-License-Identifier: MIT
 *
 * Which stores this build has, what it says about those it lacks, and options that a store does
 * not have. Connects to nothing.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "util/str.h"

static bool is_built(const char *name)
{
    for (size_t i = 0; jobq_driver_name(i); i++)
        if (strcmp(jobq_driver_name(i), name) == 0)
            return true;
    return false;
}

static void expect_refusal(const char *dsn, const char *said)
{
    jobq__store *store = NULL;

    assert_code(jobq__store_new(dsn, NULL, &store), JOBQ_ECONF);
    assert_said(said);
    assert_false(jobq_error_is_retryable(jobq_error_last()));
    assert_null(strstr(jobq_error_message(jobq_error_last()), "hunter2"));
    assert_null(store);
}

static const struct {
    const char *name, *dsn, *packages;
} known[] = {
    {"sqlite", "sqlite:q.db", "(Debian: libsqlite3-dev)"},
    {"redis", "redis://u:hunter2@h/0", "(Debian: libhiredis-dev libssl-dev)"},
    {"redis", "rediss://u:hunter2@h/0", "(Debian: libhiredis-dev libssl-dev)"},
    {"redis", "redis+unix:///run/x.sock", "(Debian: libhiredis-dev libssl-dev)"},
    {"redis", "redis-sentinel://h:1,h:2/main/0", "(Debian: libhiredis-dev libssl-dev)"},
    {"postgresql", "postgresql://u:hunter2@h/db", "(Debian: libpq-dev)"},
    {"postgresql", "postgres://u:hunter2@h/db", "(Debian: libpq-dev)"},
    {"mysql", "mysql://u:hunter2@h/db", "(Debian: libmariadb-dev)"},
    {"mysql", "mariadb://u:hunter2@h/db", "(Debian: libmariadb-dev)"},
};

/* A DSN of a driver that is built names it; of one that is not, says what to install. */
static void test_absent_drivers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        jobq__store *store = NULL;
        char said[80];

        if (is_built(known[i].name)) {
            assert_ok(jobq__store_new(known[i].dsn, NULL, &store));
            assert_string_equal(jobq__store_driver(store)->name, known[i].name);
            jobq__store_free(store);
            continue;
        }
        snprintf(said, sizeof(said), "the %s driver is not part of this build", known[i].name);
        expect_refusal(known[i].dsn, said);
        assert_said(known[i].packages);
        assert_said("memory)"); /* and what it has instead */
    }
}

static void test_unknown_stores(void **state)
{
    static const char *const rows[][2] = {
        {"sqlit:x", "unknown store \"sqlit\" in the dsn, did you mean \"sqlite\"?"},
        {"rediss+unix://x", "did you mean \"redis+unix\"?"},
        {"postgre://u:hunter2@h/db", "did you mean \"postgres\"?"},
        {"mysqli://u:hunter2@h/db", "did you mean \"mysql\"?"},
        {"zebra:x", "unknown store \"zebra\" in the dsn (built in: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_refusal(rows[i][0], rows[i][1]);
}

/* What concerns no store of that kind is refused, never ignored. */
static void test_options_of_other_stores(void **state)
{
    static const struct {
        const char *driver, *dsn, *said;
    } rows[] = {
        {"memory", "memory:?synchronous=full", "the memory driver has no option \"synchronous\""},
        {"memory", "memory:?connect_timeout=3", "(of its own it has: none)"},
        {"sqlite", "sqlite:q.db?prefix=x", "the sqlite driver has no option \"prefix\""},
        {"sqlite", "sqlite:q.db?schema=x", "\"schema\""},
        {"sqlite", "sqlite:q.db?verify=false", "\"verify\""},
        {"redis", "redis://u:hunter2@h/0?synchronous=full",
         "the redis driver has no option \"synchronous\""},
        {"redis", "redis://u:hunter2@h/0?schema=x", "\"schema\""},
        {"redis", "redis://u:hunter2@h/0?prefx=x", "prefix"},
        {"postgresql", "postgresql://u:hunter2@h/db?synchronous=full", "\"synchronous\""},
        {"postgresql", "postgresql://u:hunter2@h/db?shema=x", "schema"},
        {"mysql", "mysql://u:hunter2@h/db?synchronous=full", "\"synchronous\""},
        {"mysql", "mysql://u:hunter2@h/db?listen=false",
         "the mysql driver has no option \"listen\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_built(rows[i].driver))
            expect_refusal(rows[i].dsn, rows[i].said);
}

/* The words of a table's `options` are ones that there are, so that none is misspelt. */
static void expect_known_words(const jobq_driver *driver)
{
    static const char words[] =
        "synchronous prefix schema ca cert key verify listen connect_timeout";
    const char *p = driver->options;

    while (*p) {
        size_t n = strcspn(p, " ");

        if (!jobq__word_listed(words, p, n))
            fail_msg("the %s driver claims an option \"%.*s\"", driver->name, (int)n, p);
        p += n;
        p += *p == ' ';
    }
}

static void test_tables_of_this_build(void **state)
{
    size_t n = 0;

    (void)state;
    assert_true(is_built("memory"));
    for (; jobq_driver_name(n); n++) {
        const char *name = jobq_driver_name(n);
        const jobq_driver *driver = jobq__driver_find(name, strlen(name));

        assert_non_null(driver); /* its table is coherent, and its name one of its schemes */
        assert_string_equal(driver->name, name);
        assert_true(driver->max_batch >= 100);
        expect_known_words(driver);
        assert_true(!(driver->features & JOBQ_FEATURE_FILE) ||
                    driver->features & JOBQ_FEATURE_HOST_CLOCK);
        assert_true(!driver->takes || !driver->takes("queue"));
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(jobq_driver_name(i), name);
    }
    assert_null(jobq_driver_name(n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent_drivers),
        cmocka_unit_test(test_unknown_stores),
        cmocka_unit_test(test_options_of_other_stores),
        cmocka_unit_test(test_tables_of_this_build),
    };

    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
