/* SPDX-License-Identifier: MIT
 *
 * Bodies made to hurt (rule A6, case B026): memory stays within 64 x input + 64 KiB, time within
 * reason. Memory is read from the C library's own books, which a sanitizer replaces: then only time
 * is judged.
 */
#include "unit/payload/bodies.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "util/clock.h"

static size_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Reads to the end, looking at the memory now and then and at the last token. */
static int read_measured(int format, const void *p, size_t n, size_t *most_out)
{
    size_t before = memory_in_use(), most = 0;
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    int rc;

    jobq_reader_open(r, format, p, n);
    for (size_t i = 0; (rc = jobq_reader_next(r, &t)) > 0; i++) {
        if (i % 4096 == 0 && memory_in_use() - before > most)
            most = memory_in_use() - before;
    }
    if (memory_in_use() - before > most)
        most = memory_in_use() - before;
    jobq_reader_free(r);
    *most_out = most;
    return rc;
}

static void assert_bounded(int format, const jobq__buf *body, int wanted)
{
    size_t most;
    const int64_t limit = getenv("JOBQUEUE_TEST_SLOW") ? 300000 : 5000;
    int64_t start = jobq__clock_mono_ms(), took;

    assert_int_equal(read_measured(format, body->p, body->n, &most), wanted);
    took = jobq__clock_mono_ms() - start;
    if (most > 64 * body->n + 65536 || took > limit)
        print_error("%zu bytes took %zu bytes of memory and %lld ms\n", body->n, most,
                    (long long)took);
    assert_true(most <= 64 * body->n + 65536);
    assert_true(took <= limit);
}

static const struct {
    const char *hex;
    size_t times;
    const char *name;
} bodies[] = {
    {"ddffffffff", 1, "list of 4G"},
    {"dd01000000", 1, "list of 16.7M"},
    {"df04000000", 1, "map of 67M"},
    {"dbffffffff", 1, "string of 4G"},
    {"c9ffffffff01", 1, "ext of 4G"},
    {"91", 100000, "100,000 lists"},
    {"dcffff", 8, "8 lists of 65535"},
    {"81a161", 100000, "100,000 maps"},
    {"deffff00", 64, "64 maps of 65535"},
    {"c6ffffffff", 1, "bytes of 4G"},
    {"dd00ffffff", 300000, "lists that promise what is there for one"},
};

/* B026: few bytes ask for gigabytes. */
static void test_promises(void **state)
{
    jobq__buf body = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        jobq__buf_reset(&body);
        for (size_t k = 0; k < bodies[i].times; k++)
            body_from_hex(&body, bodies[i].hex, strlen(bodies[i].hex));
        assert_bounded(JOBQ_FORMAT_MSGPACK, &body, JOBQ_EPAYLOAD);
        assert_code(jobq_payload_check(JOBQ_FORMAT_MSGPACK, body.p, body.n), JOBQ_EPAYLOAD);
    }
    jobq__buf_free(&body);
}

/* All containers that are open together never promise more values than there are bytes. */
static void test_open_promises_add_up(void **state)
{
    jobq__buf body = {0};
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    uint64_t promised = 0;

    (void)state;
    for (int i = 0; i < 64; i++)
        body_from_hex(&body, "dc0400", 6);
    for (int i = 0; i < 1500; i++)
        jobq__buf_addc(&body, '\0');
    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, body.p, body.n);
    while (jobq_reader_next(r, &t) > 0)
        promised += t.kind == JOBQ_LIST ? t.as.count : 0;
    assert_true(promised <= body.n);
    assert_int_equal(jobq_reader_problem(r), JOBQ_PROBLEM_TRUNCATED);
    jobq_reader_free(r);
    jobq__buf_free(&body);
}

enum { MANY = 500000 };

/* A map of 500,000 keys is checked in linear time, whatever the keys. */
static void test_many_keys(void **state)
{
    jobq_writer *w = jobq_writer_new(64 << 20);
    jobq__buf body = {0};
    const void *p;
    char key[32];
    size_t n;

    (void)state;
    for (int text = 0; text < 2; text++) {
        jobq_writer_reset(w);
        assert_ok(jobq_writer_map(w, MANY));
        for (int i = 0; i < MANY; i++) {
            if (text)
                assert_ok(jobq_writer_str(w, key, (size_t)snprintf(key, sizeof(key), "k%d", i)));
            else
                assert_ok(jobq_writer_int(w, (int64_t)i << 20)); /* equal low bits */
            assert_ok(jobq_writer_nil(w));
        }
        assert_ok(jobq_writer_finish(w, &p, &n));
        jobq__buf_reset(&body);
        jobq__buf_add(&body, p, n);
        assert_bounded(JOBQ_FORMAT_MSGPACK, &body, 0);
    }
    jobq__buf_free(&body);
    jobq_writer_free(w);
}

static void add_times(jobq__buf *b, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        jobq__buf_adds(b, text);
}

/* The same for JSON: brackets, keys, escapes, numbers. */
static void test_json(void **state)
{
    jobq__buf body = {0};

    (void)state;
    add_times(&body, "[", 100000);
    assert_bounded(JOBQ_FORMAT_JSON, &body, JOBQ_EPAYLOAD);
    jobq__buf_reset(&body);
    add_times(&body, "[", 1);
    add_times(&body, "[],", 300000);
    add_times(&body, "[]]", 1);
    assert_bounded(JOBQ_FORMAT_JSON, &body, 0);
    jobq__buf_reset(&body);
    jobq__buf_adds(&body, "{");
    for (int i = 0; i < MANY; i++)
        jobq__buf_addf(&body, "\"\\u0061%d\":0%s", i, i + 1 < MANY ? "," : "}");
    assert_bounded(JOBQ_FORMAT_JSON, &body, 0);
    jobq__buf_reset(&body);
    jobq__buf_adds(&body, "0.");
    add_times(&body, "1234567890", 100000);
    assert_bounded(JOBQ_FORMAT_JSON, &body, 0);
    jobq__buf_reset(&body);
    jobq__buf_adds(&body, "\"");
    add_times(&body, "\\ud83d\\ude00", 100000);
    jobq__buf_adds(&body, "\"");
    assert_bounded(JOBQ_FORMAT_JSON, &body, 0);
    jobq__buf_free(&body);
}

/* A reader that has seen a large body gives the memory back when it is opened again. */
static void test_reuse_shrinks(void **state)
{
    size_t before = memory_in_use();
    jobq_reader *r = jobq_reader_new();
    jobq__buf body = {0};
    jobq_token t;

    (void)state;
    jobq__buf_adds(&body, "{");
    for (int i = 0; i < MANY; i++)
        jobq__buf_addf(&body, "\"\\u0061%d\":0%s", i, i + 1 < MANY ? "," : "}");
    jobq_reader_open(r, JOBQ_FORMAT_JSON, body.p, body.n);
    while (jobq_reader_next(r, &t) > 0)
        ;
    assert_int_equal(jobq_reader_problem(r), JOBQ_PROBLEM_NONE);
    jobq__buf_free(&body);
    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, "\xc0", 1);
    assert_int_equal(jobq_reader_next(r, &t), 1);
    assert_int_equal(jobq_reader_next(r, &t), 0);
    assert_true(memory_in_use() - before < 512 * 1024);
    jobq_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),      cmocka_unit_test(test_open_promises_add_up),
        cmocka_unit_test(test_many_keys),     cmocka_unit_test(test_json),
        cmocka_unit_test(test_reuse_shrinks),
    };

    return cmocka_run_group_tests_name("payload/hostile (rule A6; B026)", tests, NULL, NULL);
}
