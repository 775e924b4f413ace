/* SPDX-License-Identifier: MIT
 *
 * The msgpack reader: every kind and width, keys, refusals with their place, reuse (rules A2, A5,
 * A6).
 */
#include "unit/payload/bodies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "util/alloc.h"

static const struct {
    const char *hex, *tokens;
} readable[] = {
    /* longer forms than needed are read too */
    {"cc05", "i5 "},
    {"cf0000000000000005", "i5 "},
    {"d3ffffffffffffffff", "i-1 "},
    {"d3000000000000007f", "i127 "},
    {"d0ff", "i-1 "},
    {"d1ff7f", "i-129 "},
    {"d2ffff7fff", "i-32769 "},
    {"e0", "i-32 "},
    {"ca3fc00000", "d3ff8000000000000 "},
    {"d90161", "s1:a "},
    {"da000161", "s1:a "},
    {"db0000000161", "s1:a "},
    {"c5000161", "b1:a "},
    {"c60000000161", "b1:a "},
    {"dc0001c0", "[1] nil "},
    {"dd00000001c0", "[1] nil "},
    {"de000101c0", "{1} key i1 nil "},
    {"df0000000101c0", "{1} key i1 nil "},
    {"c704ff00000001", "t1.000000000 "},
    {"c708ff0000000100000002", "t4294967298.000000000 "},
    {"c70cff0000000000000000000000ff", "t255.000000000 "},
    {"c8000cff3b9ac9ffffffffffffffffff", "t-1.999999999 "},
    /* keys */
    {"82a13102a2303103", "{2} key s1:1 i2 key s2:01 i3 "},
    {"82cfffffffffffffffff01ff02", "{2} key u18446744073709551615 i1 key i-1 i2 "},
    {"82d9143138343436373434303733373039353531363136010001",
     "{2} key s20:18446744073709551616 i1 key i0 i1 "},
    {"8101810181018101c0", "{1} key i1 {1} key i1 {1} key i1 {1} key i1 nil "},
    {"82a161810101a16202", "{2} key s1:a {1} key i1 i1 key s1:b i2 "},
};

static void test_readable(void **state)
{
    jobq__buf body = {0}, tokens = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
        jobq__buf_reset(&body);
        jobq__buf_reset(&tokens);
        body_from_hex(&body, readable[i].hex, strlen(readable[i].hex));
        assert_ok(body_tokens(&tokens, JOBQ_FORMAT_MSGPACK, body.p, body.n, NULL));
        assert_string_equal(jobq__buf_text(&tokens), readable[i].tokens);
    }
    jobq__buf_free(&body);
    jobq__buf_free(&tokens);
}

static const struct {
    const char *hex;
    jobq_problem problem;
    const char *said;
} unreadable[] = {
    {"", JOBQ_PROBLEM_TRUNCATED, "at byte 0: a value is missing"},
    {"93c0", JOBQ_PROBLEM_TRUNCATED, "promises more values"},
    {"93c0c0", JOBQ_PROBLEM_TRUNCATED, "at byte 0"},
    {"92dc", JOBQ_PROBLEM_TRUNCATED, "at byte 0"},
    {"91dc00", JOBQ_PROBLEM_TRUNCATED, "at byte 1: a number or length"},
    {"91dc0001", JOBQ_PROBLEM_TRUNCATED, "at byte 1: a list or map"},
    {"92dc0001c0", JOBQ_PROBLEM_TRUNCATED,
     "at byte 1: a list or map"}, /* the outer list is owed one, too */
    {"a261", JOBQ_PROBLEM_TRUNCATED, "a string or bytes"},
    {"91c40261", JOBQ_PROBLEM_TRUNCATED, "at byte 1: a string or bytes"},
    {"cb00000000000000", JOBQ_PROBLEM_TRUNCATED, "a number or length"},
    {"d6ff000000", JOBQ_PROBLEM_TRUNCATED, "an extension"},
    {"d6", JOBQ_PROBLEM_TRUNCATED, "an extension"},
    {"c70cff00", JOBQ_PROBLEM_TRUNCATED, "an extension"},
    {"c70500000000", JOBQ_PROBLEM_TRUNCATED, "an extension"},
    {"91c1", JOBQ_PROBLEM_MALFORMED, "at byte 1: the byte c1"},
    {"d600000000ff", JOBQ_PROBLEM_MALFORMED, "not the timestamp"},
    {"d5ff0000", JOBQ_PROBLEM_MALFORMED, "neither 4, 8 nor 12"},
    {"d7ffffffffff00000000", JOBQ_PROBLEM_MALFORMED, "nanoseconds"},
    {"91a3eda080", JOBQ_PROBLEM_MALFORMED, "at byte 1: a string is not valid utf-8"},
    {"81c40161c0", JOBQ_PROBLEM_MALFORMED, "at byte 1: a map's key"},
    {"81c3c0", JOBQ_PROBLEM_MALFORMED, "a map's key"},
    {"8180c0", JOBQ_PROBLEM_MALFORMED, "a map's key"},
    {"81d6ff00000000c0", JOBQ_PROBLEM_MALFORMED, "a map's key"},
    {"820101cc0102", JOBQ_PROBLEM_MALFORMED, "at byte 3: a map has two equal keys"},
    {"82ff01a22d3102", JOBQ_PROBLEM_MALFORMED, "two equal keys"},
    {"82cfffffffffffffffff01d914313834343637343430373337303935353136313502", JOBQ_PROBLEM_MALFORMED,
     "two equal keys"},
    {"c0c0", JOBQ_PROBLEM_TRAILING, "at byte 1: bytes follow"},
    {"810101ff", JOBQ_PROBLEM_TRAILING, "at byte 3"},
};

/* Rules A2, A6: refused with kind and place; the refusal sticks. */
static void test_unreadable(void **state)
{
    jobq__buf body = {0};
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    int rc;

    (void)state;
    for (size_t i = 0; i < sizeof(unreadable) / sizeof(unreadable[0]); i++) {
        jobq__buf_reset(&body);
        body_from_hex(&body, unreadable[i].hex, strlen(unreadable[i].hex));
        jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, body.p, body.n);
        assert_int_equal(jobq_reader_problem(r), JOBQ_PROBLEM_NONE);
        while ((rc = jobq_reader_next(r, &t)) > 0)
            ;
        assert_code(rc, JOBQ_EPAYLOAD);
        assert_int_equal(jobq_reader_problem(r), unreadable[i].problem);
        assert_said(unreadable[i].said);
        assert_code(jobq_reader_next(r, &t), JOBQ_EPAYLOAD);
        assert_said(unreadable[i].said);
        assert_code(jobq_payload_check(JOBQ_FORMAT_MSGPACK, body.p, body.n), JOBQ_EPAYLOAD);
        assert_said(unreadable[i].said);
    }
    jobq_reader_free(r);
    jobq_reader_free(NULL);
    jobq__buf_free(&body);
}

/* A body of n pairs with string keys of the form KEY(i * step), values 0. */
static void make_map(jobq_writer *w, size_t n, size_t twin, bool twin_as_int)
{
    char key[32];

    jobq_writer_reset(w);
    assert_ok(jobq_writer_map(w, n));
    for (size_t i = 0; i < n; i++) {
        size_t number = i + 1 == n ? twin : i;

        snprintf(key, sizeof(key), "%zu", number);
        if (i + 1 == n && twin_as_int)
            assert_ok(jobq_writer_int(w, (int64_t)number));
        else
            assert_ok(jobq_writer_str(w, key, strlen(key)));
        assert_ok(jobq_writer_nil(w));
    }
}

/* Around the sizes where the search changes: every earlier key is found again, and nothing else is.
 */
static void test_equal_keys_at_every_size(void **state)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    const void *p;
    size_t n;

    (void)state;
    for (size_t size = 2; size < 140; size += size < 70 ? 1 : 23) {
        for (size_t twin = 0; twin < size; twin++) {
            for (int as_int = 0; as_int < 2; as_int++) {
                make_map(w, size, twin, as_int);
                assert_ok(jobq_writer_finish(w, &p, &n));
                assert_int_equal(jobq_payload_check(JOBQ_FORMAT_MSGPACK, p, n),
                                 twin + 1 == size ? 0 : JOBQ_EPAYLOAD);
            }
        }
    }
    jobq_writer_free(w);
}

/* Large maps inside large maps: each keeps its own keys, also after an inner one has ended. */
static void test_nested_large_maps(void **state)
{
    jobq_writer *w = jobq_writer_new(16 << 20);
    const void *p;
    size_t n;

    (void)state;
    for (int twin = 0; twin < 2; twin++) {
        jobq_writer_reset(w);
        jobq_writer_map(w, 101);
        for (int i = 0; i < 101; i++) {
            jobq_writer_int(w, twin && i == 100 ? 3 : i);
            jobq_writer_map(w, 50);
            for (int k = 0; k < 50; k++) {
                jobq_writer_int(w, k);
                jobq_writer_int(w, k);
            }
        }
        assert_ok(jobq_writer_finish(w, &p, &n));
        assert_int_equal(jobq_payload_check(JOBQ_FORMAT_MSGPACK, p, n), twin ? JOBQ_EPAYLOAD : 0);
    }
    jobq_writer_free(w);
}

/* The hot path: nothing is allocated for an ordinary body, and a reader may be opened again and
 * again. */
static void test_no_allocation(void **state)
{
    jobq__buf body = {0};
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    int64_t before;
    /* {"id": 15, "email": "user12345@example.com", "n": 3.14} */
    static const char hex[] =
        "83a269640fa5656d61696cb5757365723132333435406578616d706c652e636f6da16ecb40091eb851eb851f";

    (void)state;
    body_from_hex(&body, hex, strlen(hex));
    before = jobq__alloc_count();
    for (int i = 0; i < 1000; i++) {
        assert_ok(jobq_payload_check(JOBQ_FORMAT_MSGPACK, body.p, body.n));
        jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, body.p, body.n);
        while (jobq_reader_next(r, &t) > 0)
            ;
        assert_int_equal(jobq_reader_problem(r), JOBQ_PROBLEM_NONE);
    }
    assert_int_equal(jobq__alloc_count(), before);
    jobq_reader_free(r);
    jobq__buf_free(&body);
}

/* A body may lie in memory without a byte behind it, and be absent. */
static void test_absent_body(void **state)
{
    (void)state;
    assert_code(jobq_payload_check(JOBQ_FORMAT_MSGPACK, NULL, 0), JOBQ_EPAYLOAD);
    assert_code(jobq_payload_check(JOBQ_FORMAT_JSON, NULL, 0), JOBQ_EPAYLOAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readable),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_equal_keys_at_every_size),
        cmocka_unit_test(test_nested_large_maps),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_absent_body),
    };

    return cmocka_run_group_tests_name("payload/reader (rules A2, A5, A6)", tests, NULL, NULL);
}
