/* SPDX-License-Identifier: MIT
 *
 * Options: every type, every refusal, the three spellings, merging, the table itself.
 */
#include <jobqueue/conf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_table.h"
#include "harness/harness.h"

enum {
    C = JOBQ_SCOPE_CONNECTION,
    W = JOBQ_SCOPE_WORKER,
    H = JOBQ_SCOPE_HANDLER,
    P = JOBQ_SCOPE_PUSH
};

/* ---- values that are taken ------------------------------------------------------------------- */

#define AT(field) offsetof(jobq__settings, field)

static const struct {
    int scope;
    const char *name, *value;
    size_t offset;
    int64_t want;
} good[] = {
    {W, "tries", "0", AT(tries), 0},
    {W, "tries", "1000000", AT(tries), 1000000},
    {P, "timeout", "1.5", AT(timeout_ms), 1500},
    {P, "timeout", "0", AT(timeout_ms), 0},
    {P, "timeout", "0.0001", AT(timeout_ms), 1}, /* above zero never becomes "off" */
    {P, "delay", "1e3", AT(delay_ms), 1000000},
    {P, "delay", "315619200", AT(delay_ms), 315619200000},
    {P, "priority", "9", AT(priority), 9},
    {P, "version", "2147483647", AT(version), 2147483647},
    {P, "at", "@0.5", AT(at_ms), 500},
    {P, "at", "@-7", AT(at_ms), 1},
    {P, "at", "1970-01-01T00:00:00Z", AT(at_ms), 1},
    {P, "at", "2026-11-30T10:00:00Z", AT(at_ms), 1796032800000},
    {P, "at", "2026-11-30t10:00:00.25+01:00", AT(at_ms), 1796029200250},
    {P, "at", "2026-11-30 10:00:00-00:30", AT(at_ms), 1796034600000},
    {P, "at", "2024-02-29T23:59:59.999Z", AT(at_ms), 1709251199999},
    {W, "processes", "1024", AT(processes), 1024},
    {W, "lease", "1", AT(lease_ms), 1000},
    {W, "prefetch", "auto", AT(prefetch), -1},
    {W, "prefetch", "0", AT(prefetch), 0},
    {W, "memory", "256", AT(memory_mb), 256},
    {C, "max_payload", "67108864", AT(max_payload), 67108864},
    {C, "read_timeout", "0.25", AT(read_timeout_ms), 250},
};

static void takes_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        jobq_conf *conf = jobq_conf_new(good[i].scope, JOBQ_STYLE_SNAKE);
        int64_t got;

        assert_ok(jobq_conf_set(conf, good[i].name, good[i].value, strlen(good[i].value)));
        memcpy(&got, (char *)&conf->s + good[i].offset, sizeof(got));
        if (got != good[i].want)
            fail_msg("%s=%s gives %lld, wanted %lld", good[i].name, good[i].value, (long long)got,
                     (long long)good[i].want);
        assert_true(jobq__conf_given_at(conf, good[i].offset));
        jobq_conf_free(conf);
    }
}

static void takes_truth_values(void **state)
{
    static const char *const yes[] = {"true", "1", "yes", "on"}, *const no[] = {"false", "0", "no",
                                                                                "off"};
    jobq_conf *conf = jobq_conf_new(W, JOBQ_STYLE_SNAKE);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_ok(jobq_conf_set(conf, "once", yes[i], strlen(yes[i])));
        assert_true(conf->s.once);
        assert_ok(jobq_conf_set(conf, "once", no[i], strlen(no[i])));
        assert_false(conf->s.once);
    }
    assert_ok(jobq_conf_set_bool(conf, "verbose", true));
    assert_true(conf->s.verbose);
    assert_ok(jobq_conf_set_int(conf, "verbose", 0));
    assert_false(conf->s.verbose);
    assert_code(jobq_conf_set_int(conf, "verbose", 2), JOBQ_EINVAL);
    jobq_conf_free(conf);
}

static void takes_backoffs(void **state)
{
    jobq_conf *conf = jobq_conf_new(W, JOBQ_STYLE_SNAKE);

    (void)state;
    assert_int_equal(conf->s.backoff.count, 3); /* rule E1: 10, 60, 300 */
    assert_int_equal(conf->s.backoff.list_ms[2], 300000);
    assert_ok(jobq_conf_set(conf, "backoff", "30", 2));
    assert_int_equal(conf->s.backoff.count, 1);
    assert_int_equal(conf->s.backoff.list_ms[0], 30000);
    assert_ok(jobq_conf_set(conf, "backoff", "exponential:2,60", 16));
    assert_true(conf->s.backoff.exponential);
    assert_int_equal(conf->s.backoff.list_ms[1], 60000);
    assert_ok(jobq_conf_set_double(conf, "backoff", 0.5));
    assert_false(conf->s.backoff.exponential);
    assert_int_equal(conf->s.backoff.list_ms[0], 500);
    assert_ok(jobq_conf_set_int(conf, "backoff", 0));
    assert_int_equal(conf->s.backoff.list_ms[0], 0);

    jobq_conf_reset(conf);
    assert_code(jobq_conf_add(conf, "backoff", "x", 1), JOBQ_EINVAL);
    assert_int_equal(conf->s.backoff.count, 3); /* refused: the default still stands */
    assert_ok(jobq_conf_add(conf, "backoff", "1", 1));
    assert_ok(jobq_conf_add(conf, "backoff", "2.5", 3));
    assert_int_equal(conf->s.backoff.count, 2);
    assert_int_equal(conf->s.backoff.list_ms[1], 2500);
    for (int i = 2; i < 16; i++)
        assert_ok(jobq_conf_add(conf, "backoff", "3", 1));
    assert_code(jobq_conf_add(conf, "backoff", "3", 1), JOBQ_EINVAL);
    assert_said("at most 16");
    jobq_conf_free(conf);
}

static void takes_names_and_moments(void **state)
{
    jobq_conf *conf = jobq_conf_new(W, JOBQ_STYLE_SNAKE),
              *push = jobq_conf_new(P, JOBQ_STYLE_SNAKE);

    (void)state;
    assert_ok(jobq_conf_set(conf, "dont_retry", "A\\B,C", 5));
    assert_ok(jobq_conf_add(conf, "dont_retry", "D,E", 3)); /* one element, whatever is in it */
    assert_int_equal(conf->s.dont_retry.count, 3);
    assert_string_equal(conf->s.dont_retry.names[0], "A\\B");
    assert_string_equal(conf->s.dont_retry.names[2], "D,E");
    assert_code(jobq_conf_set(conf, "dont_retry", "A,,B", 4), JOBQ_EINVAL);

    assert_ok(jobq_conf_set(push, "retry_until", "3600", 4));
    assert_true(push->s.retry_until.relative);
    assert_int_equal(push->s.retry_until.ms, 3600000);
    assert_ok(jobq_conf_set(push, "retry_until", "2026-11-30T10:00:00Z", 20));
    assert_false(push->s.retry_until.relative);
    assert_int_equal(push->s.retry_until.ms, 1796032800000);
    assert_ok(jobq_conf_set_double(push, "expires", 0.75));
    assert_int_equal(push->s.expires.ms, 750);
    assert_ok(jobq_conf_set(push, "on_expire", "drop", 4));
    assert_int_equal(push->s.on_expire, 1);
    jobq_conf_free(conf);
    jobq_conf_free(push);
}

/* ---- values that are refused ----------------------------------------------------------------- */

static const struct {
    int scope;
    const char *name, *value, *said;
} bad[] = {
    {W, "tries", "abc",
     "option \"tries\" must be a whole number from 0 to 1000000 (0 = no limit), got \"abc\""},
    {W, "tries", "", "got \"\""},
    {W, "tries", "-1", "from 0"},
    {W, "tries", "1.5", "whole number"},
    {W, "tries", " 3", "got \" 3\""},
    {W, "tries", "3 ", "whole number"},
    {W, "tries", "0x10", "whole number"},
    {W, "tries", "99999999999999999999", "whole number"},
    {P, "timeout", "-1", "seconds from 0 to 31536000"},
    {P, "timeout", "nan", "seconds"},
    {P, "timeout", "inf", "seconds"},
    {P, "timeout", "10s", "seconds"},
    {P, "timeout", "1,5", "seconds"},
    {P, "timeout", "\x1b[31m", "got \" [31m\""}, /* never written raw to a terminal */
    {P, "delay", "315619201", "315619200"},      /* rule B9 */
    {P, "priority", "10", "from 0 to 9"},
    {P, "priority", "-1", "from 0 to 9"},
    {P, "version", "0", "from 1"},
    {P, "at", "tomorrow", "RFC 3339"},
    {P, "at", "3600", "RFC 3339"},
    {P, "at", "2026-02-29T00:00:00Z", "RFC 3339"},
    {P, "at", "2026-11-30T10:00:00", "RFC 3339"},
    {P, "at", "2026-11-30T10:00:00Zx", "RFC 3339"},
    {P, "at", "@", "RFC 3339"},
    {P, "at", "@nan", "RFC 3339"},
    {P, "at", "+99999-01-01T00:00:00Z", "RFC 3339"},
    {P, "id", "-x", "begin with a letter or digit"},
    {P, "id", "", "1 to 128"},
    {P, "queue", "a,b", "without commas"},
    {P, "queue", " a", "option \"queue\""},
    {P, "unique", "", "1 to 255 bytes"},
    {P, "retry_until", "0", "above 0"},
    {P, "expires", "-5", "above 0"},
    {P, "on_expire", "maybe", "must be dead or drop, got \"maybe\""},
    {P, "backoff", "", "seconds, a list"},
    {P, "backoff", "10,,60", "a list"},
    {P, "backoff", "exponential:5", "exponential:BASE,CAP"},
    {P, "backoff", "exponential:0,5", "exponential:BASE,CAP"},
    {P, "backoff", "exponential:6,5", "exponential:BASE,CAP"},
    {P, "backoff", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16"},
    {W, "processes", "1025", "0 to 1024"},
    {W, "lease", "0", "from 1 to 86400"},
    {W, "lease", "0.5", "from 1 to 86400"},
    {W, "jitter", "1.1", "from 0 to 1"},
    {W, "once", "maybe", "true or false"},
    {W, "errors", "none", "full or class"},
    {W, "prefetch", "some", "must be auto, or 0 to 100000"},
    {W, "output", "loud", "auto, jobs, summary, json, quiet"},
    {C, "max_payload", "67108865", "bytes from 1 to 67108864"},
    {C, "max_payload", "0", "bytes from 1"},
    {C, "synchronous", "off", "full or normal"},
};

static void refuses_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        jobq_conf *conf = jobq_conf_new(bad[i].scope, JOBQ_STYLE_SNAKE);
        jobq__settings before = conf->s;

        assert_code(jobq_conf_set(conf, bad[i].name, bad[i].value, strlen(bad[i].value)),
                    JOBQ_EINVAL);
        assert_said(bad[i].said);
        assert_string_equal(jobq_error_subject(jobq_error_last()), bad[i].name);
        assert_memory_equal(&before, &conf->s, sizeof(before)); /* nothing half set */
        jobq_conf_free(conf);
    }
}

static void refuses_numbers_of_the_wrong_kind(void **state)
{
    jobq_conf *w = jobq_conf_new(W, JOBQ_STYLE_SNAKE), *p = jobq_conf_new(P, JOBQ_STYLE_SNAKE);

    (void)state;
    assert_code(jobq_conf_set_double(w, "timeout", NAN), JOBQ_EINVAL);
    assert_code(jobq_conf_set_double(w, "timeout", INFINITY), JOBQ_EINVAL);
    assert_code(jobq_conf_set_double(w, "timeout", -0.001), JOBQ_EINVAL);
    assert_code(jobq_conf_set_double(w, "tries", 2.5), JOBQ_EINVAL);
    assert_ok(jobq_conf_set_double(w, "tries", 2.0));
    assert_code(jobq_conf_set_int(w, "tries", INT64_MIN), JOBQ_EINVAL);
    assert_code(jobq_conf_set_int(w, "tries", INT64_MAX), JOBQ_EINVAL);
    assert_code(jobq_conf_set_bool(w, "tries", true), JOBQ_EINVAL);
    assert_said("got \"true\"");
    assert_code(jobq_conf_set_int(p, "id", 7), JOBQ_EINVAL);
    assert_code(jobq_conf_set_int(p, "on_expire", 1), JOBQ_EINVAL);
    assert_code(jobq_conf_add(w, "tries", "1", 1), JOBQ_EINVAL);
    assert_code(jobq_conf_set(w, "tries", NULL, 0), JOBQ_EINVAL);
    jobq_conf_free(w);
    jobq_conf_free(p);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const struct {
    int scope, style;
    const char *name, *said;
} unknown[] = {
    {W, JOBQ_STYLE_CAMEL, "maxTme", "unknown option \"maxTme\", did you mean \"maxTime\"?"},
    {W, JOBQ_STYLE_CAMEL, "max_time", "did you mean \"maxTime\"?"},
    {W, JOBQ_STYLE_KEBAB, "--max-tmie", "did you mean \"--max-time\"?"},
    {W, JOBQ_STYLE_SNAKE, "maxTime", "did you mean \"max_time\"?"},
    {H, JOBQ_STYLE_CAMEL, "faild", "did you mean \"failed\"?"}, /* an option of the extensions */
    {P, JOBQ_STYLE_SNAKE, "contxt", "did you mean \"context\"?"},
    {W, JOBQ_STYLE_SNAKE, "zzzzzzzzzz", "unknown option \"zzzzzzzzzz\""},
    {W, JOBQ_STYLE_SNAKE, "", "unknown option \"\""},
    {P, JOBQ_STYLE_CAMEL, "maxTime", "option \"maxTime\" belongs to the worker, not to push"},
    {W, JOBQ_STYLE_KEBAB, "delay", "option \"--delay\" belongs to push, not to the worker"},
    {C, JOBQ_STYLE_SNAKE, "tries", "belongs to the worker, not to the connection"},
    {H, JOBQ_STYLE_CAMEL, "maxPayload", "belongs to the connection, not to the handler"},
    {W, JOBQ_STYLE_KEBAB, "track", "option \"--track\" belongs to push, not to the worker"},
    {P, JOBQ_STYLE_CAMEL, "deadRetention", "belongs to the connection, not to push"},
    {P, JOBQ_STYLE_SNAKE, "capacity", "belongs to the connection, not to push"},
    {C, JOBQ_STYLE_CAMEL, "nope", "unknown option \"nope\" (allowed: queue, maxPayload, "},
    {C, JOBQ_STYLE_SNAKE, "MIGRATE", "did you mean \"migrate\"?"},
    {C, JOBQ_STYLE_SNAKE, "Track", "option \"track\" belongs to push, not to the connection"},
    {P, JOBQ_STYLE_CAMEL, "idempotentfor", "did you mean \"idempotentFor\"?"},
};

static void refuses_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        jobq_conf *conf = jobq_conf_new(unknown[i].scope, unknown[i].style);

        assert_code(jobq_conf_set(conf, unknown[i].name, "1", 1), JOBQ_ECONF);
        assert_said(unknown[i].said);
        assert_code(jobq_conf_set_int(conf, unknown[i].name, 1), JOBQ_ECONF);
        assert_code(jobq_conf_set_bool(conf, unknown[i].name, true), JOBQ_ECONF);
        assert_code(jobq_conf_add(conf, unknown[i].name, "1", 1), JOBQ_ECONF);
        jobq_conf_free(conf);
    }
}

static void reads_three_spellings(void **state)
{
    static const struct {
        int style;
        const char *name;
    } ways[] = {{JOBQ_STYLE_SNAKE, "max_time"},
                {JOBQ_STYLE_CAMEL, "maxTime"},
                {JOBQ_STYLE_KEBAB, "max-time"},
                {JOBQ_STYLE_KEBAB, "--max-time"}};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        jobq_conf *conf = jobq_conf_new(W, ways[i].style);

        assert_ok(jobq_conf_set(conf, ways[i].name, "7", 1));
        assert_int_equal(conf->s.max_time_ms, 7000);
        jobq_conf_free(conf);
    }
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void merges_what_was_given(void **state)
{
    jobq_conf *a = jobq_conf_new(W, JOBQ_STYLE_SNAKE), *b = jobq_conf_new(W, JOBQ_STYLE_KEBAB),
              *p = jobq_conf_new(P, 0);

    (void)state;
    assert_ok(jobq_conf_set_int(a, "tries", 7));
    assert_ok(jobq_conf_set_int(a, "timeout", 9));
    assert_ok(jobq_conf_set(a, "name", "first", 5));
    assert_ok(jobq_conf_set_int(b, "timeout", 60)); /* given, although it is the default */
    assert_ok(jobq_conf_set(b, "name", "another one", 11));
    assert_ok(jobq_conf_set(b, "dont-retry", "X,Y", 3));
    assert_ok(jobq_conf_merge(a, b));
    jobq_conf_free(b); /* a has copies */
    assert_int_equal(a->s.tries, 7);
    assert_int_equal(a->s.timeout_ms, 60000);
    assert_string_equal(a->s.name, "another one");
    assert_string_equal(a->s.dont_retry.names[1], "Y");
    assert_false(jobq__conf_given(a, lease_ms));
    assert_code(jobq_conf_merge(a, p), JOBQ_EINVAL);
    jobq_conf_reset(a);
    assert_false(jobq__conf_given(a, tries));
    assert_int_equal(a->s.tries, 3);
    assert_null(a->s.name);
    jobq_conf_free(a);
    jobq_conf_free(p);
}

static void has_a_sound_table(void **state)
{
    const char *name, *type, *range, *fallback, *meaning;
    int scopes;
    size_t n = 0;

    (void)state;
    for (; jobq_conf_describe(n, &name, &type, &range, &fallback, &scopes, &meaning); n++) {
        jobq_conf *conf = jobq_conf_new(scopes & -scopes, JOBQ_STYLE_SNAKE);

        assert_true(scopes > 0 && scopes < 16);
        assert_true(strlen(type) && strlen(range) && strlen(meaning));
        for (size_t k = 0; k < n; k++)
            assert_string_not_equal(jobq__options[k].name, name);
        if (fallback) /* a default is a value that may be given */
            assert_ok(jobq_conf_set(conf, name, fallback, strlen(fallback)));
        jobq_conf_free(conf);
    }
    assert_int_equal(n, jobq__option_count);
    assert_true(n > 40);
    assert_false(jobq_conf_describe(SIZE_MAX, NULL, NULL, NULL, NULL, NULL, NULL));
}

/* Defaults of rule G1. */
static void has_the_defaults(void **state)
{
    jobq__settings s;

    (void)state;
    jobq__settings_default(&s);
    assert_int_equal(s.processes, 1);
    assert_int_equal(s.tries, 3);
    assert_int_equal(s.timeout_ms, 60000);
    assert_int_equal(s.timeout_grace_ms, 5000);
    assert_int_equal(s.lease_ms, 30000);
    assert_int_equal(s.sleep_ms, 1000);
    assert_int_equal(s.memory_mb, 128);
    assert_int_equal(s.max_reserve_failures, 5);
    assert_int_equal(s.max_crashes, 3);
    assert_int_equal(s.unknown_for_ms, 3600000);
    assert_int_equal(s.prefetch, -1);
    assert_int_equal(s.max_payload, 1048576);
    assert_int_equal(s.version, 1);
    assert_true(s.migrate);
    assert_true(fabs(s.jitter - 0.1) < 1e-9);
}

/* For values that never come: null in PHP. The name is judged like that of any other. */
static void checks_names_alone(void **state)
{
    static const struct {
        const char *name, *message;
    } wrong[] = {
        {"tiemout", "unknown option \"tiemout\", did you mean \"timeout\"?"},
        {"delay", "option \"delay\" belongs to push, not to the worker"},
        {"maxTime", "unknown option \"maxTime\", did you mean \"max_time\"?"},
    };
    jobq_conf *conf = jobq_conf_new(W, JOBQ_STYLE_SNAKE);

    (void)state;
    assert_ok(jobq_conf_check(conf, "timeout"));
    assert_false(jobq__conf_given(conf, timeout_ms));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_code(jobq_conf_check(conf, wrong[i].name), JOBQ_ECONF);
        assert_string_equal(jobq_error_message(jobq_error_last()), wrong[i].message);
    }
    assert_code(jobq_conf_add(conf, "processes", "2", 1), JOBQ_EINVAL);
    assert_non_null(strstr(jobq_error_message(jobq_error_last()), "got \"a list\""));
    jobq_conf_free(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_values),
        cmocka_unit_test(takes_truth_values),
        cmocka_unit_test(takes_backoffs),
        cmocka_unit_test(takes_names_and_moments),
        cmocka_unit_test(refuses_values),
        cmocka_unit_test(refuses_numbers_of_the_wrong_kind),
        cmocka_unit_test(refuses_names),
        cmocka_unit_test(checks_names_alone),
        cmocka_unit_test(reads_three_spellings),
        cmocka_unit_test(merges_what_was_given),
        cmocka_unit_test(has_a_sound_table),
        cmocka_unit_test(has_the_defaults),
    };

    unsetenv("JOBQUEUE_TEST_SHORT_LEASE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
