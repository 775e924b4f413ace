/* SPDX-License-Identifier: MIT
 *
 * The writer: bytes in shortest form, counting, sticky errors, limits (rules A2, A4).
 */
#include "unit/payload/bodies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

static jobq_writer *new_writer(size_t max)
{
    jobq_writer *w = jobq_writer_new(max);

    assert_non_null(w);
    return w;
}

static void assert_bytes(jobq_writer *w, const char *hex)
{
    jobq__buf wanted = {0};
    const void *p;
    size_t n;

    body_from_hex(&wanted, hex, strlen(hex));
    assert_ok(jobq_writer_finish(w, &p, &n));
    assert_int_equal(n, wanted.n);
    assert_memory_equal(p, wanted.p, n);
    jobq__buf_free(&wanted);
}

/* B008: a float without a fraction stays one, and so does the sign of zero. */
static void test_doubles_stay_doubles(void **state)
{
    static const double values[] = {212.0, 1.0, 0.0, -0.0, -3.0, 1e15, 9007199254740992.0};
    jobq_writer *w = new_writer(1 << 20);
    jobq_reader *r = jobq_reader_new();
    const void *p;
    size_t n;
    jobq_token t;

    (void)state;
    assert_ok(jobq_writer_list(w, 7));
    for (size_t i = 0; i < 7; i++)
        assert_ok(jobq_writer_double(w, values[i]));
    assert_ok(jobq_writer_finish(w, &p, &n));
    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, p, n);
    assert_int_equal(jobq_reader_next(r, &t), 1);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(jobq_reader_next(r, &t), 1);
        assert_int_equal(t.kind, JOBQ_DOUBLE);
        assert_memory_equal(&t.as.number, &values[i], 8);
    }
    jobq_reader_free(r);
    jobq_writer_free(w);
}

/* B002: integers of 64 bits are exact. */
static void test_integers_are_exact(void **state)
{
    static const int64_t values[] = {130775545883395173, 9007199254740993, -9007199254740993,
                                     100000000000000,    INT64_MAX,        INT64_MIN};
    jobq_writer *w = new_writer(1 << 20);

    (void)state;
    assert_ok(jobq_writer_list(w, 6));
    for (size_t i = 0; i < 6; i++)
        assert_ok(jobq_writer_int(w, values[i]));
    assert_bytes(w, "96cf01d09baa85b00465cf0020000000000001d3ffdfffffffffffffcf00005af3107a4000cf7f"
                    "ffffffffffffffd3800000"
                    "0000000000");
    jobq_writer_free(w);
}

/* B006: text stays byte for byte what it was. */
static void test_text_is_untouched(void **state)
{
    static const char *const texts[] = {"\xe6\x95\x8f\xe7\x90\xb3\xe5\xbc\xa0",
                                        "\xc3\xa9",
                                        "e\xcc\x81",
                                        "\xf0\x9f\x98\x80",
                                        "\xe2\x80\xa8",
                                        "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
                                        ""};
    jobq_writer *w = new_writer(1 << 20);
    const char *p;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        jobq_writer_reset(w);
        assert_ok(jobq_writer_str(w, texts[i], strlen(texts[i])));
        assert_ok(jobq_writer_finish(w, (const void **)&p, &n));
        assert_int_equal(n, strlen(texts[i]) + 1);
        assert_memory_equal(p + 1, texts[i], n - 1);
    }
    jobq_writer_free(w);
}

/* B010: integer keys, negative, sparse and in any order, stay as they are. */
static void test_integer_keys(void **state)
{
    static const int64_t keys[] = {2, 0, -1};
    jobq_writer *w = new_writer(1 << 20);

    (void)state;
    assert_ok(jobq_writer_map(w, 4));
    for (size_t i = 0; i < 3; i++) {
        assert_ok(jobq_writer_int(w, keys[i]));
        assert_ok(jobq_writer_str(w, "x", 1));
    }
    assert_ok(jobq_writer_str(w, "01", 2));
    assert_ok(jobq_writer_str(w, "y", 1));
    assert_bytes(w, "8402a17800a178ffa178a23031a179");
    jobq_writer_free(w);
}

static void test_counting(void **state)
{
    jobq_writer *w = new_writer(1 << 20);
    const void *p = "untouched";
    size_t n = 77;

    (void)state;
    assert_code(jobq_writer_finish(w, &p, &n), JOBQ_EPAYLOAD);
    assert_said("no value was written");
    assert_ok(jobq_writer_map(w, 1));
    assert_ok(jobq_writer_str(w, "a", 1));
    assert_code(jobq_writer_finish(w, &p, &n), JOBQ_EPAYLOAD);
    assert_said("values are missing (1 ");
    assert_int_equal(n, 77);
    assert_ok(jobq_writer_list(w, 0)); /* an error of finish does not stick */
    assert_bytes(w, "81a16190");
    assert_code(jobq_writer_nil(w), JOBQ_EPAYLOAD);
    assert_said("second value");
    jobq_writer_reset(w);
    assert_ok(jobq_writer_list(w, 2));
    assert_ok(jobq_writer_list(w, 1));
    assert_ok(jobq_writer_map(w, 0));
    assert_ok(jobq_writer_bool(w, true));
    assert_bytes(w, "929180c3");
    jobq_writer_free(w);
}

typedef struct {
    const char *said;
    int code;
    int (*call)(jobq_writer *w);
} refusal;

static int nil_key(jobq_writer *w)
{
    jobq_writer_map(w, 1);
    return jobq_writer_nil(w);
}

static int double_key(jobq_writer *w)
{
    jobq_writer_map(w, 1);
    return jobq_writer_double(w, 1.0);
}

static int bytes_key(jobq_writer *w)
{
    jobq_writer_map(w, 1);
    return jobq_writer_bytes(w, "k", 1);
}

static int list_key(jobq_writer *w)
{
    jobq_writer_map(w, 1);
    return jobq_writer_list(w, 0);
}

static int bad_text(jobq_writer *w)
{
    return jobq_writer_str(w, "\xc3\x28", 2);
}

static int surrogate(jobq_writer *w)
{
    return jobq_writer_str(w, "\xed\xa0\x80", 3);
}

static int nanoseconds(jobq_writer *w)
{
    return jobq_writer_time(w, 0, 1000000000);
}

static int too_many_bytes(jobq_writer *w)
{
    char big[101] = {0};

    return jobq_writer_bytes(w, big, sizeof(big));
}

static int head_does_not_fit(jobq_writer *w)
{
    char big[99] = {0};

    return jobq_writer_bytes(w, big, sizeof(big));
}

static int too_many_values(jobq_writer *w)
{
    return jobq_writer_list(w, SIZE_MAX);
}

static int too_deep(jobq_writer *w)
{
    for (int i = 0; i < 64; i++)
        assert_ok(jobq_writer_list(w, 1));
    return jobq_writer_map(w, 0);
}

static const refusal refusals[] = {
    {"key must be a string or an integer", JOBQ_EPAYLOAD, nil_key},
    {"key must be a string or an integer", JOBQ_EPAYLOAD, double_key},
    {"key must be a string or an integer", JOBQ_EPAYLOAD, bytes_key},
    {"key must be a string or an integer", JOBQ_EPAYLOAD, list_key},
    {"not valid utf-8", JOBQ_EPAYLOAD, bad_text},
    {"not valid utf-8", JOBQ_EPAYLOAD, surrogate},
    {"nanoseconds", JOBQ_EPAYLOAD, nanoseconds},
    {"more than 100 bytes", JOBQ_ELIMIT, too_many_bytes},
    {"more than 100 bytes", JOBQ_ELIMIT, head_does_not_fit},
    {"more than 100 bytes", JOBQ_ELIMIT, too_many_values},
    {"more than 64", JOBQ_EPAYLOAD, too_deep},
};

/* Rule A4: refused with a reason; the first error sticks until a reset. */
static void test_refusals(void **state)
{
    jobq_writer *w = new_writer(100);
    const void *p;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        jobq_writer_reset(w);
        assert_code(refusals[i].call(w), refusals[i].code);
        assert_said(refusals[i].said);
        assert_code(jobq_writer_int(w, 1), refusals[i].code);
        assert_said(refusals[i].said);
        assert_code(jobq_writer_finish(w, &p, &n), refusals[i].code);
        assert_said(refusals[i].said);
    }
    jobq_writer_reset(w);
    assert_ok(jobq_writer_nil(w));
    assert_bytes(w, "c0");
    jobq_writer_free(w);
    jobq_writer_free(NULL);
}

static void test_exactly_max(void **state)
{
    jobq_writer *w = new_writer(3);

    (void)state;
    assert_ok(jobq_writer_str(w, "ab", 2));
    assert_bytes(w, "a26162");
    jobq_writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles_stay_doubles),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_text_is_untouched),
        cmocka_unit_test(test_integer_keys),
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_exactly_max),
    };

    return cmocka_run_group_tests_name("payload/writer (rules A2, A4; B002 B006 B008 B010)", tests,
                                       NULL, NULL);
}
