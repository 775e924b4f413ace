/* SPDX-License-Identifier: MIT
 *
 * JSON bodies and JSON text (rule A8): what is read, what is refused, and that text made from a
 * body gives the same body back.
 */
#include "unit/payload/bodies.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

static const struct {
    const char *text, *tokens;
} readable[] = {
    {"null", "nil "},
    {" [ true , false ] \n", "[2] true false "},
    {"0", "i0 "},
    {"-0", "i0 "},
    {"9223372036854775807", "i9223372036854775807 "},
    {"9223372036854775808", "u9223372036854775808 "},
    {"18446744073709551615", "u18446744073709551615 "},
    {"-9223372036854775808", "i-9223372036854775808 "},
    {"130775545883395173", "i130775545883395173 "},
    {"1.0", "d3ff0000000000000 "},
    {"1e0", "d3ff0000000000000 "},
    {"-0.0", "d8000000000000000 "},
    {"0.1", "d3fb999999999999a "},
    {"5e-324", "d0000000000000001 "},
    {"1e-400", "d0000000000000000 "},
    {"1.7976931348623157e+308", "d7fefffffffffffff "},
    {"0.000000000000000000000000000000000000000000000000000001e54", "d3ff0000000000000 "},
    {"100000000000000000000000000000000000000000000000000000000000000000000000000000.0e-77",
     "d3ff0000000000000 "},
    {"9007199254740993.0", "d4340000000000000 "},
    {"\"\"", "s0: "},
    {"\"a\\u0000b\\n\\\"\\/\"", "s6:a\0b\n\"/ "},
    {"\"\\ud83d\\uDE00\\u00e9\"", "s6:\xf0\x9f\x98\x80\xc3\xa9 "},
    {"{}", "{0} "},
    {"{\"a\":{\"b\":[]},\"c\":1}", "{2} key s1:a {1} key s1:b [0] key s1:c i1 "},
    {"{\"123\":1}", "{1} key s3:123 i1 "},
    {"{\"$bytes\":\"\"}", "b0: "},
    {"{\"$bytes\":\"YWI=\"}", "b2:ab "},
    {"{ \"\\u0024bytes\" : \"\\/\\/\\/\\/\" }", "b3:\xff\xff\xff "},
    {"{\"$time\":\"2026-11-30T10:00:00.123456Z\"}", "t1796032800.123456000 "},
    {"{\"$time\":\"2026-11-30T11:30:00+01:30\"}", "t1796032800.000000000 "},
    {"{\"$time\":\"1969-12-31T23:59:59.5Z\"}", "t-1.500000000 "},
    {"{\"$time\":\"0000-02-29T00:00:00Z\"}", "t-62162121600.000000000 "},
    {"{\"$time\":\"+292277026596-12-04T15:30:07Z\"}", "t9223372036854775807.000000000 "},
    {"{\"$time\":\"-292277022657-01-27T08:29:52Z\"}", "t-9223372036854775808.000000000 "},
    {"{\"$double\":\"Infinity\"}", "d7ff0000000000000 "},
    {"{\"$map\":[]}", "{0} "},
    {"{\"$map\":[[1,\"a\"],[\"b\",[{\"$map\":[[-1,{}]]}]]]}",
     "{2} key i1 s1:a key s1:b [1] {1} key i-1 {0} "},
    {"{\"$map\":[[\"$bytes\",5]]}", "{1} key s6:$bytes i5 "},
    {"{\"$bytes\":1,\"x\":2}", "{2} key s6:$bytes i1 key s1:x i2 "},
    {"{\"$int\":\"5\"}", "{1} key s4:$int s1:5 "},
    {"{\"\\u0061\":1,\"\\u0062\":{\"\\u0061\":2},\"c\":3}",
     "{3} key s1:a i1 key s1:b {1} key s1:a i2 key s1:c i3 "},
};

static void test_readable(void **state)
{
    jobq__buf tokens = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
        size_t n = strlen(readable[i].tokens);

        jobq__buf_reset(&tokens);
        if (strstr(readable[i].text, "u0000"))
            n = 10; /* has a NUL */
        assert_ok(body_tokens(&tokens, JOBQ_FORMAT_JSON, readable[i].text, strlen(readable[i].text),
                              NULL));
        if (tokens.n != n || memcmp(tokens.p, readable[i].tokens, n) != 0)
            print_error("%s\n  gave %.*s\n", readable[i].text, (int)tokens.n, tokens.p);
        assert_int_equal(tokens.n, n);
        assert_memory_equal(tokens.p, readable[i].tokens, n);
    }
    jobq__buf_free(&tokens);
}

/* A digit far behind decides a tie: 2^53 + 1 lies between two doubles. */
static void test_long_fraction(void **state)
{
    jobq__buf text = {0}, tokens = {0};

    (void)state;
    for (int above = 0; above < 2; above++) {
        jobq__buf_reset(&text);
        jobq__buf_reset(&tokens);
        jobq__buf_adds(&text, "9007199254740993.");
        for (int i = 0; i < 2000; i++)
            jobq__buf_addc(&text, '0');
        if (above)
            jobq__buf_addc(&text, '1');
        assert_ok(body_tokens(&tokens, JOBQ_FORMAT_JSON, text.p, text.n, NULL));
        assert_string_equal(jobq__buf_text(&tokens),
                            above ? "d4340000000000001 " : "d4340000000000000 ");
    }
    jobq__buf_free(&text);
    jobq__buf_free(&tokens);
}

static const struct {
    const char *text;
    jobq_problem problem;
} unreadable[] = {
    {"", JOBQ_PROBLEM_TRUNCATED},
    {"  ", JOBQ_PROBLEM_TRUNCATED},
    {"[", JOBQ_PROBLEM_TRUNCATED},
    {"{\"a\":", JOBQ_PROBLEM_TRUNCATED},
    {"\"abc", JOBQ_PROBLEM_TRUNCATED},
    {"\"abc\\", JOBQ_PROBLEM_TRUNCATED},
    {"tru", JOBQ_PROBLEM_TRUNCATED},
    {"-", JOBQ_PROBLEM_TRUNCATED},
    {"1.", JOBQ_PROBLEM_TRUNCATED},
    {"1e", JOBQ_PROBLEM_TRUNCATED},
    {"1e+", JOBQ_PROBLEM_TRUNCATED},
    {"1 2", JOBQ_PROBLEM_TRAILING},
    {"{}{}", JOBQ_PROBLEM_TRAILING},
    {"[]]", JOBQ_PROBLEM_MALFORMED},
    {"[1,]", JOBQ_PROBLEM_MALFORMED},
    {"[,1]", JOBQ_PROBLEM_MALFORMED},
    {"[1 2]", JOBQ_PROBLEM_MALFORMED},
    {"[1}", JOBQ_PROBLEM_MALFORMED},
    {"{\"a\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"a\":1,}", JOBQ_PROBLEM_MALFORMED},
    {"{a:1}", JOBQ_PROBLEM_MALFORMED},
    {"{1:1}", JOBQ_PROBLEM_MALFORMED},
    {"{\"a\" 1}", JOBQ_PROBLEM_MALFORMED},
    {"01", JOBQ_PROBLEM_MALFORMED},
    {"+1", JOBQ_PROBLEM_MALFORMED},
    {".5", JOBQ_PROBLEM_MALFORMED},
    {"1.e5", JOBQ_PROBLEM_MALFORMED},
    {"0x10", JOBQ_PROBLEM_TRAILING},
    {"NaN", JOBQ_PROBLEM_MALFORMED},
    {"Infinity", JOBQ_PROBLEM_MALFORMED},
    {"'a'", JOBQ_PROBLEM_MALFORMED},
    {"18446744073709551616", JOBQ_PROBLEM_MALFORMED},
    {"-9223372036854775809", JOBQ_PROBLEM_MALFORMED},
    {"1e309", JOBQ_PROBLEM_MALFORMED},
    {"\"\\x41\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\\u12\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\\ud83d\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\\ude00\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\\ude00\\ude00\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\\ud83d\\u0041\"", JOBQ_PROBLEM_MALFORMED},
    {"\"a\nb\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\xc3\x28\"", JOBQ_PROBLEM_MALFORMED},
    {"\"\xed\xa0\x80\"", JOBQ_PROBLEM_MALFORMED},
    {"\xef\xbb\xbf{}", JOBQ_PROBLEM_MALFORMED},
    {"{\"a\":1,\"a\":2}", JOBQ_PROBLEM_MALFORMED},
    {"{\"a\":1,\"\\u0061\":2}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[[1,1],[\"1\",2]]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[[1.0,1]]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[[null,1]]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[[[],1]]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[[1]]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[[1,2,3]]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":[1]}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$map\":{}}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$bytes\":5}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$bytes\":\"YWI\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$bytes\":\"YWJ=\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$bytes\":\"Y!I=\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$bytes\":\"====\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$double\":\"nan\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"2026-02-29T00:00:00Z\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"2026-11-30T24:00:00Z\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"2026-11-30T10:00:00\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"2026-11-30\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"2026-11-30T10:00:00.Z\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"2026-11-30T10:00:00.1234567890Z\"}", JOBQ_PROBLEM_MALFORMED},
    {"{\"$time\":\"+292277026596-12-04T15:30:08Z\"}", JOBQ_PROBLEM_MALFORMED},
};

static void test_unreadable(void **state)
{
    jobq__buf tokens = {0};
    jobq_problem problem;
    char *text = NULL;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(unreadable) / sizeof(unreadable[0]); i++) {
        const char *json = unreadable[i].text;
        int rc = body_tokens(&tokens, JOBQ_FORMAT_JSON, json, strlen(json), &problem);

        if (rc != JOBQ_EPAYLOAD || problem != unreadable[i].problem)
            print_error("%s: rc %d, problem %d, wanted %d\n", json, rc, (int)problem,
                        (int)unreadable[i].problem);
        assert_code(rc, JOBQ_EPAYLOAD);
        assert_int_equal(problem, unreadable[i].problem);
        assert_code(jobq_payload_check(JOBQ_FORMAT_JSON, json, strlen(json)), JOBQ_EPAYLOAD);
        assert_code(jobq_payload_to_json(JOBQ_FORMAT_JSON, json, strlen(json), &text, &n),
                    JOBQ_EPAYLOAD);
        assert_null(text);
    }
    jobq__buf_free(&tokens);
}

static void test_depth(void **state)
{
    jobq__buf text = {0}, tokens = {0};
    jobq_problem problem;

    (void)state;
    for (int depth = 64; depth <= 65; depth++) {
        jobq__buf_reset(&text);
        for (int i = 0; i < depth; i++)
            jobq__buf_adds(&text, "{\"$map\":[[1,");
        jobq__buf_adds(&text, "{\"$bytes\":\"AA==\"}");
        for (int i = 0; i < depth; i++)
            jobq__buf_adds(&text, "]]}");
        assert_int_equal(body_tokens(&tokens, JOBQ_FORMAT_JSON, text.p, text.n, &problem),
                         depth > 64 ? JOBQ_EPAYLOAD : 0);
        assert_int_equal(problem, depth > 64 ? JOBQ_PROBLEM_TOO_DEEP : JOBQ_PROBLEM_NONE);
    }
    jobq__buf_reset(&text);
    for (int i = 0; i < 100000; i++)
        jobq__buf_addc(&text, '[');
    assert_code(body_tokens(&tokens, JOBQ_FORMAT_JSON, text.p, text.n, &problem), JOBQ_EPAYLOAD);
    assert_int_equal(problem, JOBQ_PROBLEM_TOO_DEEP);
    jobq__buf_free(&text);
    jobq__buf_free(&tokens);
}

static const struct {
    const char *hex, *json;
} printed[] = {
    {"c0", "null"},
    {"93c3c200", "[true,false,0]"},
    {"cfffffffffffffffff", "18446744073709551615"},
    {"d38000000000000000", "-9223372036854775808"},
    {"cb3ff0000000000000", "1.0"},
    {"cb8000000000000000", "-0.0"},
    {"cb0000000000000000", "0.0"},
    {"cb406a800000000000", "212.0"},
    {"cb400921fb54442d18", "3.141592653589793"},
    {"cb3fb999999999999a", "0.1"},
    {"cb3fd3333333333334", "0.30000000000000004"},
    {"cb0000000000000001", "5.0e-324"},
    {"cb7fefffffffffffff", "1.7976931348623157e308"},
    {"cb430c6bf526340000", "1000000000000000.0"},
    {"cb4340000000000000", "9007199254740992.0"},
    {"cb4415af1d78b58c40", "1.0e20"},
    {"cb3f50624dd2f1a9fc", "0.001"},
    {"cbc05edd2f1a9fbe77", "-123.456"},
    {"cb7ff8000000000000", "{\"$double\":\"NaN\"}"},
    {"cbfff0000000000000", "{\"$double\":\"-Infinity\"}"},
    {"a6610a2209005c", "\"a\\n\\\"\\t\\u0000\\\\\""},
    {"a71b7fc285e280a8", "\"\\u001b\\u007f\\u0085\\u2028\""},
    {"a4f09f9880", "\"\xf0\x9f\x98\x80\""},
    {"c40100", "{\"$bytes\":\"AA==\"}"},
    {"c400", "{\"$bytes\":\"\"}"},
    {"d6ff00000000", "{\"$time\":\"1970-01-01T00:00:00Z\"}"},
    {"d7ff1d6f28006b0d4920", "{\"$time\":\"2026-11-30T10:00:00.123456Z\"}"},
    {"c70cff1dcd6501ffffffffffffffff", "{\"$time\":\"1969-12-31T23:59:59.500000001Z\"}"},
    {"c70cff00000000fffffff1886e0900", "{\"$time\":\"0001-01-01T00:00:00Z\"}"},
    {"80", "{}"},
    {"82a16101a16280", "{\"a\":1,\"b\":{}}"},
    {"8101a161", "{\"$map\":[[1,\"a\"]]}"},
    {"81a624627974657305", "{\"$map\":[[\"$bytes\",5]]}"},
    {"82a624627974657305a16106", "{\"$bytes\":5,\"a\":6}"},
    {"81a4246d617090", "{\"$map\":[[\"$map\",[]]]}"},
    {"8200810102a16181a6246f7468657201",
     "{\"$map\":[[0,{\"$map\":[[1,2]]}],[\"a\",{\"$other\":1}]]}"},
};

static void test_printed(void **state)
{
    jobq__buf body = {0};
    jobq_writer *w = jobq_writer_new(1 << 20);
    const void *p;
    char *text;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++) {
        jobq__buf_reset(&body);
        body_from_hex(&body, printed[i].hex, strlen(printed[i].hex));
        assert_ok(jobq_payload_to_json(JOBQ_FORMAT_MSGPACK, body.p, body.n, &text, &n));
        assert_string_equal(text, printed[i].json);
        assert_int_equal(n, strlen(text));
        jobq_writer_reset(w);
        assert_ok(jobq_payload_from_json(w, text, n));
        assert_ok(jobq_writer_finish(w, &p, &n));
        assert_int_equal(n, body.n);
        assert_memory_equal(p, body.p, n);
        jobq_text_free(text);
    }
    jobq_text_free(NULL);
    jobq_writer_free(w);
    jobq__buf_free(&body);
}

/* Every double comes back from its text, in any locale. */
static void test_doubles_round_trip(void **state)
{
    uint64_t x = body_seed() | 1, bits;
    const bool comma = jobq_test_comma_locale();
    jobq_writer *w = jobq_writer_new(64);
    unsigned char body[9] = {0xcb};
    const void *p;
    char *text;
    size_t n;

    (void)state;
    print_message("# locale %s\n", comma ? "with a comma" : "C");
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        /* every second one of an ordinary size */
        bits = i & 1 ? x : (x & 0x800fffffffffffffu) + 0x3ff0000000000000u + ((x >> 8 & 63) << 52);
        for (int k = 0; k < 8; k++)
            body[1 + k] = (unsigned char)(bits >> (56 - 8 * k));
        assert_ok(jobq_payload_to_json(JOBQ_FORMAT_MSGPACK, body, 9, &text, &n));
        assert_true(strpbrk(text, ".\"") != NULL && !strchr(text, ','));
        jobq_writer_reset(w);
        assert_ok(jobq_payload_from_json(w, text, n));
        assert_ok(jobq_writer_finish(w, &p, &n));
        if (!strstr(text, "NaN"))
            assert_memory_equal(p, body, 9);
        jobq_text_free(text);
    }
    setlocale(LC_ALL, "C");
    jobq_writer_free(w);
}

/* Bad text leaves the writer as it was. */
static void test_bad_text_leaves_the_writer(void **state)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    const void *p;
    size_t n;

    (void)state;
    assert_ok(jobq_writer_list(w, 2));
    assert_code(jobq_payload_from_json(w, "[1,2,{]", 7), JOBQ_EPAYLOAD);
    assert_ok(jobq_payload_from_json(w, "[1]", 3));
    assert_ok(jobq_payload_from_json(w, "{\"a\":\"b\"}", 9));
    assert_ok(jobq_writer_finish(w, &p, &n));
    assert_int_equal(n, 8);
    assert_memory_equal(p, "\x92\x91\x01\x81\xa1\x61\xa1\x62", 8);
    assert_code(jobq_payload_from_json(w, "1", 1), JOBQ_EPAYLOAD);
    jobq_writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readable),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_long_fraction),
        cmocka_unit_test(test_printed),
        cmocka_unit_test(test_doubles_round_trip),
        cmocka_unit_test(test_bad_text_leaves_the_writer),
    };

    return cmocka_run_group_tests_name("payload/json (rule A8)", tests, NULL, NULL);
}
