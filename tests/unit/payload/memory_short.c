/* SPDX-License-Identifier: MIT
 *
 * Every allocation of the payload functions made to fail, one after the other: each call ends with
 * JOBQ_ENOMEM or has done its work; nothing leaks (seen under a sanitizer), outputs are untouched.
 */
#include "unit/payload/bodies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "payload/envelope.h"
#include "util/alloc.h"

static jobq__buf large_json, large_body;

/* A JSON object of many escaped keys with containers and text inside, and the same as msgpack. */
static int make_bodies(void **state)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    const void *p;
    size_t n;

    (void)state;
    jobq__buf_adds(&large_json, "{");
    for (int i = 0; i < 60; i++)
        jobq__buf_addf(&large_json,
                       "\"k\\u0061%d\":[{\"$bytes\":\"AAAA\"},\"\\n\",{\"$map\":[[1,{}]]}]%s", i,
                       i < 59 ? "," : "}");
    assert_ok(jobq_payload_from_json(w, large_json.p, large_json.n));
    assert_ok(jobq_writer_finish(w, &p, &n));
    jobq__buf_add(&large_body, p, n);
    jobq_writer_free(w);
    return 0;
}

static int free_bodies(void **state)
{
    (void)state;
    jobq__buf_free(&large_json);
    jobq__buf_free(&large_body);
    return 0;
}

static int do_write(void)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    char text[600];
    int rc = w ? 0 : jobq_error_code(jobq_error_last());

    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 3 && rc == 0; i++) {
        jobq_writer_reset(w);
        rc = jobq_writer_list(w, 2);
        for (int k = 0; k < 2; k++)
            rc = jobq_writer_str(w, text, sizeof(text));
    }
    jobq_writer_free(w);
    return rc;
}

static int do_read(int format, const jobq__buf *body)
{
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    int rc = r ? 1 : jobq_error_code(jobq_error_last());

    if (r)
        jobq_reader_open(r, format, body->p, body->n);
    while (rc > 0)
        rc = jobq_reader_next(r, &t);
    if (r && rc < 0)
        assert_code(jobq_reader_next(r, &t), rc);
    jobq_reader_free(r);
    return rc;
}

static int do_read_msgpack(void)
{
    return do_read(JOBQ_FORMAT_MSGPACK, &large_body);
}

static int do_read_json(void)
{
    return do_read(JOBQ_FORMAT_JSON, &large_json);
}

static int do_check(void)
{
    return jobq_payload_check(JOBQ_FORMAT_JSON, large_json.p, large_json.n);
}

static int do_to_json(void)
{
    char *text = NULL;
    size_t n = 7;
    int rc = jobq_payload_to_json(JOBQ_FORMAT_MSGPACK, large_body.p, large_body.n, &text, &n);

    assert_true(rc == 0 ? text != NULL : text == NULL && n == 7);
    jobq_text_free(text);
    return rc;
}

static int do_from_json(void)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    int rc = w ? jobq_payload_from_json(w, large_json.p, large_json.n)
               : jobq_error_code(jobq_error_last());

    jobq_writer_free(w);
    return rc;
}

static int do_envelope(void)
{
    static const char json[] =
        "\1j{\"t\":5,\"c\":{\"\\u0061\":\"\\u0062\",\"c\":\"d\"},\"new\":[[[]]]}";
    jobq_slice bytes = {json, sizeof(json) - 1};
    jobq__arena arena = {0};
    jobq__buf out = {0};
    jobq__header h = {.tries = 99};
    int rc = jobq__envelope_read(bytes, &arena, &h);

    if (rc == 0)
        rc = jobq__envelope_write(&out, &h);
    else
        assert_int_equal(h.tries, 99);
    jobq__buf_free(&out);
    jobq__arena_free(&arena);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(void);
} works[] = {
    {"write", do_write},       {"read msgpack", do_read_msgpack}, {"read json", do_read_json},
    {"check", do_check},       {"to json", do_to_json},           {"from json", do_from_json},
    {"envelope", do_envelope},
};

static void test_each_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
        for (int sticky = 0; sticky < 2; sticky++) {
            int64_t n = 0, failed = 0;
            int rc;

            do {
                jobq__alloc_fail_at(++n, sticky);
                rc = works[i].run();
                jobq__alloc_fail_at(0, 0);
                if (rc != 0)
                    assert_code(rc, JOBQ_ENOMEM);
                failed += rc != 0;
            } while (rc != 0 && n < 10000);
            print_message("# %s: %lld allocations\n", works[i].name, (long long)failed);
            assert_true(failed > 0);
            assert_true(n < 10000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};

    return cmocka_run_group_tests_name("payload/memory_short", tests, make_bodies, free_bodies);
}
