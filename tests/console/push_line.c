/* SPDX-License-Identifier: MIT
 *
 * Lines of `push -` (api section 5; rules A1, A4): what is accepted and what is said about the
 * rest.
 */
#include "harness/harness.h"

#include <string.h>

#include "console/push_line.h"

typedef struct {
    const char *line;
    int code;
    const char *said; /* part of the message */
} line_case;

static const line_case cases[] = {
    {"{\"name\":\"a\"}", 0, NULL},
    {" { \"name\" : \"a\" , \"payload\" : [ 1 , { \"x\" : \"]}\\\"\" } ] } \r", 0, NULL},
    {"{\"n\\u0061me\":\"a\"}", 0, NULL},
    {"{\"name\":\"a\",\"payload\":-1.5e3}", 0, NULL},
    {"{\"name\":\"a\",\"delay\":1.5,\"priority\":9,\"unique\":\"k\",\"backoff\":[1,2.5]}", 0, NULL},
    {"{\"name\":\"a\",\"backoff\":\"exponential:1,60\",\"retry_until\":\"2030-01-01T00:00:00Z\"}",
     0, NULL},
    {"{\"name\":\"a\",\"delay\":null,\"queue\":null}", 0, NULL},
    {"{\"name\":\"a\",\"context\":{\"k\":\"v\",\"\\u00e9\":\"\"}}", 0, NULL},
    {"", JOBQ_EPAYLOAD, "does not begin with {"},
    {"[]", JOBQ_EPAYLOAD, "does not begin with {"},
    {"{", JOBQ_EPAYLOAD, "name in quotes"},
    {"{}", JOBQ_EPAYLOAD, "name in quotes"},
    {"{\"payload\":1}", JOBQ_EPAYLOAD, "\"name\" is missing"},
    {"{\"name\"}", JOBQ_EPAYLOAD, "\"name\" has no value"},
    {"{\"name\":}", JOBQ_EPAYLOAD, "has no value"},
    {"{\"name\":7}", JOBQ_EPAYLOAD, "must be a string"},
    {"{\"name\":\"\"}", JOBQ_EINVAL, "name"},
    {"{\"name\":\"a\\nb\"}", JOBQ_EINVAL, "name"},
    {"{\"name\":\"a\",\"name\":\"b\"}", JOBQ_EPAYLOAD, "\"name\" twice"},
    {"{\"name\":\"a\",\"payload\":1,\"payload\":2}", JOBQ_EPAYLOAD, "\"payload\" twice"},
    {"{\"name\":\"a\"}{", JOBQ_EPAYLOAD, "something follows"},
    {"{\"name\":\"a\" \"b\":1}", JOBQ_EPAYLOAD, "does not end with }"},
    {"{\"name\":\"a\",}", JOBQ_EPAYLOAD, "name in quotes"},
    {"{\"name\":\"a\",\"payload\":[1}}", JOBQ_EPAYLOAD, NULL},
    {"{\"name\":\"a\",\"payload\":{\"x\":1,\"x\":2}}", JOBQ_EPAYLOAD, NULL},
    {"{\"name\":\"a\",\"payload\":nul}", JOBQ_EPAYLOAD, NULL},
    {"{\"name\":\"a\",\"payload\":\"x", JOBQ_EPAYLOAD, "no value"},
    {"{\"nmae\":\"a\"}", JOBQ_ECONF, "did you mean \"name\""},
    {"{\"name\":\"a\",\"dealy\":1}", JOBQ_ECONF, "did you mean \"delay\""},
    {"{\"name\":\"a\",\"processes\":1}", JOBQ_ECONF, "worker"},
    {"{\"name\":\"a\",\"track\":true}", 0, NULL},
    {"{\"name\":\"a\",\"unique\":\"k\",\"on_duplicate\":\"replace\",\"max_wait\":3}", 0, NULL},
    {"{\"name\":\"a\",\"on_duplicate\":\"never\"}", JOBQ_EINVAL, "on_duplicate"},
    {"{\"name\":\"a\",\"guard\":\"SELECT 1\"}", 0, NULL},
    {"{\"name\":\"a\",\"guard\":[\"SELECT 1\"]}", 0, NULL},
    {"{\"name\":\"a\",\"guard\":[\"S\",[1,-2.5,null,true,\"x\",{\"$bytes\":\"AAE=\"}]]}", 0, NULL},
    {"{\"name\":\"a\",\"guard\":null}", 0, NULL},
    {"{\"name\":\"a\",\"unique\":5}", JOBQ_EPAYLOAD, "\"unique\" must be a string"},
    {"{\"name\":\"a\",\"queue\":5}", JOBQ_EPAYLOAD, "\"queue\" must be a string"},
    {"{\"name\":\"a\",\"guard\":7}", JOBQ_EPAYLOAD, "\"guard\" must be"},
    {"{\"name\":\"a\",\"guard\":[]}", JOBQ_EPAYLOAD, "\"guard\" must be"},
    {"{\"name\":\"a\",\"guard\":[1]}", JOBQ_EPAYLOAD, "\"guard\" must be"},
    {"{\"name\":\"a\",\"guard\":[\"S\",1]}", JOBQ_EPAYLOAD, "\"guard\" must be"},
    {"{\"name\":\"a\",\"guard\":[\"S\",[[1]]]}", JOBQ_EPAYLOAD, "\"guard\" must be"},
    {"{\"name\":\"a\",\"guard\":[\"S\",[],1]}", JOBQ_EPAYLOAD, "\"guard\" must be"},
    {"{\"name\":\"a\",\"guard\":[x]}", JOBQ_EPAYLOAD, "payload is malformed at byte 1"},
    {"{\"name\":\"a\",\"guard\":[\"S\" 1]}", JOBQ_EPAYLOAD, "payload is malformed"},
    {"{\"name\":\"a\",\"guard\":\"\"}", JOBQ_EINVAL, "guard"},
    {"{\"name\":\"a\",\"guard\":\"S\",\"guard\":\"S\"}", JOBQ_EPAYLOAD, "\"guard\" twice"},
    {"{\"name\":\"a\",\"delay\":-1}", JOBQ_EINVAL, "delay"},
    {"{\"name\":\"a\",\"delay\":\"soon\"}", JOBQ_EINVAL, "delay"},
    {"{\"name\":\"a\",\"delay\":true}", JOBQ_EINVAL, "delay"},
    {"{\"name\":\"a\",\"delay\":{}}", JOBQ_EINVAL, "delay"},
    {"{\"name\":\"a\",\"tries\":1.5}", JOBQ_EINVAL, "tries"},
    {"{\"name\":\"a\",\"backoff\":[]}", JOBQ_EPAYLOAD, "empty list"},
    {"{\"name\":\"a\",\"backoff\":[1", JOBQ_EPAYLOAD, NULL},
    {"{\"name\":\"a\",\"raw\":{\"$bytes\":\"AQ==\"}}", 0, NULL},
    {"{\"format\":\"json\",\"raw\":{\"$bytes\":\"MQ==\"},\"name\":\"a\"}", 0, NULL},
    {"{\"name\":\"a\",\"raw\":\"AQ==\"}", JOBQ_EPAYLOAD, "\"raw\" must be"},
    {"{\"name\":\"a\",\"raw\":{\"$bytes\":\"?\"}}", JOBQ_EPAYLOAD, "\"raw\" must be"},
    {"{\"name\":\"a\",\"raw\":{\"$bytes\":\"\"},\"payload\":1}", JOBQ_EPAYLOAD, "beside"},
    {"{\"name\":\"a\",\"payload\":1,\"raw\":{\"$bytes\":\"\"}}", JOBQ_EPAYLOAD, "beside"},
    {"{\"name\":\"a\",\"raw\":{\"$bytes\":\"\"},\"raw\":{\"$bytes\":\"\"}}", JOBQ_EPAYLOAD,
     "\"raw\" twice"},
    {"{\"name\":\"a\",\"format\":\"json\"}", JOBQ_EPAYLOAD, "without \"raw\""},
    {"{\"name\":\"a\",\"raw\":{\"$bytes\":\"AQ==\"},\"format\":\"xml\"}", JOBQ_EPAYLOAD,
     "\"format\" must be"},
    {"{\"name\":\"a\",\"context\":[]}", JOBQ_EPAYLOAD, "object of strings"},
    {"{\"name\":\"a\",\"context\":{\"k\":1}}", JOBQ_EPAYLOAD, "object of strings"},
    {"{\"name\":\"a\",\"context\":{\"k\":{}}}", JOBQ_EPAYLOAD, "object of strings"},
};

static void accepts_and_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const line_case *c = &cases[i];
        jobq_message *m = jobq_message_new();
        int rc = jobq__push_line_read(c->line, strlen(c->line), NULL, m);

        if (rc != c->code)
            print_error("line: %s\n", c->line);
        if (c->code == 0)
            assert_ok(rc);
        else
            assert_code(rc, c->code);
        if (c->said)
            assert_said(c->said);
        jobq_message_free(m);
    }
}

/* No prefix of a good line is taken for a job, and none reads past its end (rule A6). */
static void refuses_every_prefix(void **state)
{
    static const char line[] = "{\"name\":\"a\",\"payload\":[{\"k\":\"\\\"v\"},true],\"backoff\":["
                               "1,2],\"context\":{\"k\":\"v\"}}";

    (void)state;
    for (size_t n = 0; n < sizeof(line) - 1; n++) {
        jobq_message *m = jobq_message_new();
        char *copy = test_malloc(n + 1);

        memcpy(copy, line, n);
        assert_true(jobq__push_line_read(copy, n, NULL, m) < 0);
        test_free(copy);
        jobq_message_free(m);
    }
}

/* A NUL byte is an ordinary byte, and not JSON. */
static void refuses_nul(void **state)
{
    static const char line[] = "{\"name\":\"a\",\"payload\":\0"
                               "1}";
    jobq_message *m = jobq_message_new();

    (void)state;
    assert_code(jobq__push_line_read(line, sizeof(line) - 1, NULL, m), JOBQ_EPAYLOAD);
    jobq_message_free(m);
}

static void given(jobq_queue *queue, const char *line, const jobq_conf *base, const char *wanted)
{
    jobq_message *m = jobq_message_new();
    jobq_job *job;
    size_t n;

    assert_ok(jobq__push_line_read(line, strlen(line), base, m));
    assert_int_equal(jobq_queue_push(queue, m), 0);
    assert_int_equal(jobq_queue_reserve(queue, (const char *const[]){"x", "y"}, 2, 30000, &job), 1);
    assert_string_equal(jobq_job_queue(job, &n), wanted);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    jobq_message_free(m);
}

static void options_of_a_line_win(void **state)
{
    jobq_conf *base = jobq_conf_new(JOBQ_SCOPE_PUSH, JOBQ_STYLE_KEBAB);
    jobq_queue *queue;

    (void)state;
    assert_ok(jobq_conf_set(base, "queue", "x", 1));
    assert_ok(jobq_queue_new("memory:", NULL, &queue));
    given(queue, "{\"name\":\"a\"}", base, "x");
    given(queue, "{\"name\":\"a\",\"queue\":\"y\"}", base, "y");
    jobq_queue_free(queue);
    jobq_conf_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_and_refuses),
        cmocka_unit_test(refuses_every_prefix),
        cmocka_unit_test(refuses_nul),
        cmocka_unit_test(options_of_a_line_win),
    };

    return cmocka_run_group_tests_name("console: lines of push - (rule A4)", tests, NULL, NULL);
}
