/* SPDX-License-Identifier: MIT
 *
 * The job header: bytes, what is read back, what is refused, versions to come (rules A8, A9).
 */
#include "payload/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "util/alloc.h"

static const jobq__pair context[] = {{{"trace", 5}, {"abc", 3}}, {{"k", 1}, {"", 0}}};

static const struct {
    const char *name, *bytes;
    size_t n;
    jobq__header h;
} written[] = {
    {"nothing", "", 0, {.format = JOBQ_FORMAT_MSGPACK}},
    {"json", "\1j", 2, {.format = JOBQ_FORMAT_JSON}},
    {"tries", "\1m\x81\xa1t\x05", 6, {.has_tries = true, .tries = 5}},
    {"no tries", "\1m\x81\xa1t\x00", 6, {.has_tries = true}},
    {"timeout",
     "\1j\x81\xa1o\xcd\xea\x60",
     8,
     {.format = JOBQ_FORMAT_JSON, .has_timeout = true, .timeout_ms = 60000}},
    {"backoff",
     "\1m\x81\xa1"
     "b\x93\x01\x02\x03",
     9,
     {.has_backoff = true, .backoff_count = 3, .backoff_ms = {1, 2, 3}}},
    {"exponential",
     "\1m\x81\xa1"
     "e\x92\x0a\x64",
     8,
     {.has_backoff = true, .backoff_exponential = true, .backoff_ms = {10, 100}}},
    {"retry until", "\1m\x81\xa1r\x07", 6, {.has_retry_until = true, .retry_until_ms = 7}},
    {"relative",
     "\1m\x83\xa1R\x07\xa1X\x08\xa1"
     "d\xc3",
     12,
     {.has_retry_until = true,
      .retry_until_relative = true,
      .retry_until_ms = 7,
      .has_expires = true,
      .expires_relative = true,
      .expires_ms = 8,
      .drop_expired = true}},
    {"expires", "\1m\x81\xa1x\x08", 6, {.has_expires = true, .expires_ms = 8}},
    {"tracked", "\1m\x81\xa1k\xc3", 6, {.track = true}},
    {"key until started", "\1m\x81\xa1s\xc3", 6, {.until_started = true}},
    {"idempotent", "\1m\x81\xa1i\xcd\xea\x60", 8, {.idempotent_for_ms = 60000}},
    {"context",
     "\1m\x81\xa1"
     "c\x82\xa5trace\xa3"
     "abc\xa1k\xa0",
     19,
     {.context = context, .context_count = 2}},
};

static void assert_same(const jobq__header *a, const jobq__header *b)
{
    assert_int_equal(a->format, b->format);
    assert_int_equal(a->has_tries, b->has_tries);
    assert_int_equal(a->has_timeout, b->has_timeout);
    assert_int_equal(a->has_backoff, b->has_backoff);
    assert_int_equal(a->backoff_exponential, b->backoff_exponential);
    assert_int_equal(a->has_retry_until, b->has_retry_until);
    assert_int_equal(a->retry_until_relative, b->retry_until_relative);
    assert_int_equal(a->has_expires, b->has_expires);
    assert_int_equal(a->expires_relative, b->expires_relative);
    assert_int_equal(a->drop_expired, b->drop_expired);
    assert_int_equal(a->track, b->track);
    assert_int_equal(a->until_started, b->until_started);
    assert_int_equal(a->idempotent_for_ms, b->idempotent_for_ms);
    assert_int_equal(a->backoff_count, b->backoff_count);
    assert_int_equal(a->tries, b->tries);
    assert_int_equal(a->timeout_ms, b->timeout_ms);
    assert_int_equal(a->retry_until_ms, b->retry_until_ms);
    assert_int_equal(a->expires_ms, b->expires_ms);
    assert_memory_equal(a->backoff_ms, b->backoff_ms, sizeof(a->backoff_ms));
    assert_int_equal(a->context_count, b->context_count);
    for (size_t i = 0; i < a->context_count; i++) {
        assert_int_equal(a->context[i].key.n, b->context[i].key.n);
        assert_memory_equal(a->context[i].key.p, b->context[i].key.p, a->context[i].key.n);
        assert_int_equal(a->context[i].value.n, b->context[i].value.n);
        assert_memory_equal(a->context[i].value.p, b->context[i].value.p, a->context[i].value.n);
    }
}

static void test_written_and_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        jobq__buf out = {0};
        jobq__arena arena = {0};
        jobq__header h;

        print_message("# %s\n", written[i].name);
        assert_ok(jobq__envelope_write(&out, &written[i].h));
        assert_int_equal(out.n, written[i].n);
        if (out.n)
            assert_memory_equal(out.p, written[i].bytes, out.n);
        assert_ok(jobq__envelope_read((jobq_slice){written[i].bytes, written[i].n}, &arena, &h));
        assert_same(&h, &written[i].h);
        jobq__buf_free(&out);
        jobq__arena_free(&arena);
    }
}

static int read_text(const char *bytes, size_t n, jobq__header *h)
{
    static jobq__arena arena;
    int rc = jobq__envelope_read((jobq_slice){bytes, n}, &arena, h);

    if (rc < 0)
        jobq__arena_free(&arena);
    return rc;
}
#define READ(literal, h) read_text((literal), sizeof(literal) - 1, (h))

/* The map may be a JSON object (pushed by SQL), and a newer library may have put more into it. */
static void test_json_and_unknown(void **state)
{
    static const char json[] =
        "\1j{\"t\":5,\"b\":[1,2],\"c\":{\"\\u0061\":\"\\u0062\\u0063\",\"d\":\"\"}}";
    jobq__arena arena = {0};
    jobq__header h;

    (void)state;
    assert_ok(jobq__envelope_read((jobq_slice){json, sizeof(json) - 1}, &arena, &h));
    assert_true(h.format == JOBQ_FORMAT_JSON && h.has_tries && h.tries == 5);
    assert_true(h.has_backoff && h.backoff_count == 2 && h.backoff_ms[1] == 2);
    assert_int_equal(h.context_count, 2);
    assert_memory_equal(h.context[0].key.p, "a", 1);
    assert_memory_equal(h.context[0].value.p, "bc", 2);
    assert_int_equal(h.context[1].value.n, 0);
    jobq__arena_free(&arena);
    assert_ok(READ("\1m\x83\xa3new\x92\x80\x81\xa1t\x91\x09\x05\xc0\xa1t\x06", &h));
    assert_true(h.has_tries && h.tries == 6);
    assert_ok(READ("\1m\x80", &h));
    assert_ok(READ("\1j{\"\":[[]],\"tt\":{\"t\":9},\"T\":1}", &h));
    assert_false(h.has_tries);
    assert_ok(jobq__envelope_read((jobq_slice){NULL, 0}, NULL, &h));
    assert_int_equal(h.format, JOBQ_FORMAT_MSGPACK);
}

static const struct {
    const char *bytes;
    size_t n;
    const char *said;
} refused[] = {
#define ROW(literal, said)                 \
    {                                      \
        literal, sizeof(literal) - 1, said \
    }
    ROW("\1", "body's format, is missing"),
    ROW("\0m", "protocol version, is 0"),
    ROW("\1x", "neither 'm' nor 'j'"),
    ROW("\1m\x90", "not a map"),
    ROW("\1m\xc0", "not a map"),
    ROW("\1m\x81", "truncated"),
    ROW("\1m\x81\xa1t", "truncated"),
    ROW("\1m\x80\xc0", "bytes follow"),
    ROW("\1m\x81\xa1t\xff", "\"t\" (tries)"),
    ROW("\1m\x81\xa1t\xa1"
        "5",
        "\"t\" (tries)"),
    ROW("\1m\x81\xa1o\xcb\x3f\xf0\0\0\0\0\0\0", "\"o\" (timeout)"),
    ROW("\1m\x81\xa1o\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\"o\" (timeout)"),
    ROW("\1m\x81\xa1"
        "b\x90",
        "\"b\" (backoff)"),
    ROW("\1m\x81\xa1"
        "b\x05",
        "\"b\" (backoff)"),
    ROW("\1m\x81\xa1"
        "b\x91\xff",
        "\"b\" (backoff)"),
    ROW("\1m\x81\xa1"
        "b\xdc\0\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "\"b\" (backoff)"),
    ROW("\1m\x81\xa1"
        "e\x91\x01",
        "\"e\" (exponential backoff)"),
    ROW("\1m\x81\xa1r\xff", "(retry until)"),
    ROW("\1m\x81\xa1X\xc0", "(expires)"),
    ROW("\1m\x81\xa1"
        "d\x01",
        "\"d\" (drop when expired)"),
    ROW("\1m\x81\xa1"
        "c\x90",
        "\"c\" (context)"),
    ROW("\1m\x81\xa1"
        "c\x81\x01\xa1x",
        "\"c\" (context)"),
    ROW("\1m\x81\xa1"
        "c\x81\xa1x\x01",
        "\"c\" (context)"),
    ROW("\1m\x81\xa1"
        "c\x81\xa1x\x90",
        "\"c\" (context)"),
    ROW("\1m\x82\xa1t\x01\xa1t\x02", "two equal keys"),
    ROW("\1j{\"t\":1", "truncated"),
#undef ROW
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        jobq__header h = {.tries = 42};

        assert_code(read_text(refused[i].bytes, refused[i].n, &h), JOBQ_EPAYLOAD);
        assert_said("job header is malformed: ");
        assert_said(refused[i].said);
        assert_int_equal(h.tries, 42);
    }
}

/* Rule A9: a newer version is told apart from damage; the body's format is known all the same. */
static void test_newer_version(void **state)
{
    jobq__header h = {.tries = 42};

    (void)state;
    assert_code(READ("\2j\xc1", &h), JOBQ_EUNSUPPORTED);
    assert_said("protocol version 2");
    assert_int_equal(h.format, JOBQ_FORMAT_JSON);
    assert_int_equal(h.tries, 42);
    assert_code(READ("\xff", &h), JOBQ_EUNSUPPORTED);
    assert_code(READ("\3?", &h), JOBQ_EUNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_json_and_unknown),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_newer_version),
    };

    return cmocka_run_group_tests_name("payload/envelope (rules A8, A9)", tests, NULL, NULL);
}
