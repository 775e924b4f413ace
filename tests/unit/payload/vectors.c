/* SPDX-License-Identifier: MIT
 *
 * The golden bodies of tests/interop/vectors/payload.json (rule A5): each good one is read as
 * exactly its value and the value is written as exactly its bytes; each bad one is refused with its
 * kind of error. The file is pretty-printed one token a line, so its entries are cut out as text; a
 * value is then read with the library's own JSON reader, after {"$int": "N"} became N and the other
 * typed values but "$map" became "@...", which a walk of our own understands.
 */
#include "unit/payload/bodies.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/harness.h"
#include "payload/json_text.h"

typedef struct {
    jobq_reader *file;   /* the value as the file tells it */
    jobq_reader *body;   /* the bytes under test */
    jobq_writer *writer; /* writes the value as the file tells it */
    jobq__buf bytes, value;
    const char *name;
    size_t good, bad;
} vectors;

static void next_of(jobq_reader *r, jobq_token *t)
{
    assert_int_equal(assert_ok(jobq_reader_next(r, t)), 1);
}

static bool is_text(const jobq_token *t, const char *text)
{
    return t->kind == JOBQ_STR && t->as.text.n == strlen(text) &&
           !memcmp(t->as.text.p, text, t->as.text.n);
}

/* The body's next token, which must be of that kind. */
static void next_body(vectors *v, jobq_token *t, jobq_kind kind)
{
    next_of(v->body, t);
    assert_int_equal(t->kind, kind);
}

static void check_int(vectors *v, const char *text)
{
    jobq_token t;

    next_of(v->body, &t);
    if (t.kind == JOBQ_UINT) {
        assert_true(t.as.unsigned_integer == strtoull(text, NULL, 10) &&
                    t.as.unsigned_integer > INT64_MAX);
        assert_ok(jobq_writer_uint(v->writer, t.as.unsigned_integer));
    } else {
        assert_int_equal(t.kind, JOBQ_INT);
        assert_true(t.as.integer == strtoll(text, NULL, 10));
        assert_ok(jobq_writer_int(v->writer, strtoll(text, NULL, 10)));
    }
}

static void check_double(vectors *v, const char *text)
{
    double wanted = !strcmp(text, "NaN") ? NAN : !strcmp(text, "Infinity") ? INFINITY : -INFINITY;
    uint64_t bits;
    jobq_token t;

    if (!strchr("NI-", text[0])) {
        bits = strtoull(text, NULL, 16);
        memcpy(&wanted, &bits, 8);
    }
    next_body(v, &t, JOBQ_DOUBLE);
    assert_true(isnan(wanted) ? isnan(t.as.number) : !memcmp(&t.as.number, &wanted, 8));
    assert_ok(jobq_writer_double(v->writer, wanted));
}

static void check_bytes(vectors *v, const char *text)
{
    char *bytes = malloc(strlen(text) + 1);
    size_t n;
    jobq_token t;

    assert_non_null(bytes);
    assert_true(jobq__base64_decode(bytes, text, strlen(text), &n));
    next_body(v, &t, JOBQ_BYTES);
    assert_int_equal(t.as.text.n, n);
    assert_memory_equal(t.as.text.p, bytes, n);
    assert_ok(jobq_writer_bytes(v->writer, bytes, n));
    free(bytes);
}

static void check_time(vectors *v, const char *text)
{
    struct tm tm = {0};
    unsigned micros;
    int64_t seconds;
    jobq_token t;

    assert_int_equal(sscanf(text, "%d-%d-%dT%d:%d:%d.%6uZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                            &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &micros),
                     7);
    tm.tm_year -= 1900;
    tm.tm_mon--;
    seconds = timegm(&tm);
    next_body(v, &t, JOBQ_TIME);
    assert_true(t.as.time.seconds == seconds && t.as.time.nanoseconds == micros * 1000);
    assert_ok(jobq_writer_time(v->writer, seconds, micros * 1000));
}

static void check_str(vectors *v, const jobq_token *wanted)
{
    jobq_token t;

    next_body(v, &t, JOBQ_STR);
    assert_int_equal(t.as.text.n, wanted->as.text.n);
    assert_memory_equal(t.as.text.p, wanted->as.text.p, t.as.text.n);
    assert_ok(jobq_writer_str(v->writer, wanted->as.text.p, wanted->as.text.n));
}

static void check_value(vectors *v);

static void check_items(vectors *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_value(v);
}

static void check_key(vectors *v, const jobq_token *key)
{
    jobq_token t;

    assert_true(key->key);
    next_of(v->body, &t);
    assert_true(t.key);
    assert_int_equal(t.kind, key->kind);
    if (key->kind == JOBQ_STR) {
        assert_int_equal(t.as.text.n, key->as.text.n);
        assert_memory_equal(t.as.text.p, key->as.text.p, t.as.text.n);
    } else {
        assert_true(t.as.integer == key->as.integer);
    }
    assert_ok(body_write(v->writer, key));
}

/* A map, or {"@kind": text}. */
static void check_map(vectors *v, size_t n)
{
    static const struct {
        const char *key;
        void (*check)(vectors *v, const char *text);
    } kinds[] = {{"@double", check_double}, {"@bytes", check_bytes}, {"@time", check_time}};
    jobq_token key, t;
    char *text;

    for (size_t i = 0; i < n; i++) {
        next_of(v->file, &key);
        for (size_t k = 0; k < 3; k++) {
            if (!is_text(&key, kinds[k].key))
                continue;
            next_of(v->file, &t);
            text = strndup(t.as.text.p, t.as.text.n);
            kinds[k].check(v, text);
            free(text);
            return;
        }
        if (i == 0) {
            next_body(v, &t, JOBQ_MAP);
            assert_int_equal(t.as.count, n);
            assert_ok(jobq_writer_map(v->writer, n));
        }
        check_key(v, &key);
        check_value(v);
    }
    if (n == 0) {
        next_body(v, &t, JOBQ_MAP);
        assert_int_equal(t.as.count, 0);
        assert_ok(jobq_writer_map(v->writer, 0));
    }
}

/* The file's next value beside the body's. */
static void check_value(vectors *v)
{
    jobq_token wanted, t;
    char text[32];

    next_of(v->file, &wanted);
    switch (wanted.kind) {
    case JOBQ_NIL:
        next_body(v, &t, JOBQ_NIL);
        assert_ok(jobq_writer_nil(v->writer));
        break;
    case JOBQ_BOOL:
        next_body(v, &t, JOBQ_BOOL);
        assert_int_equal(t.as.boolean, wanted.as.boolean);
        assert_ok(jobq_writer_bool(v->writer, wanted.as.boolean));
        break;
    case JOBQ_INT:
        snprintf(text, sizeof(text), "%" PRId64, wanted.as.integer);
        check_int(v, text);
        break;
    case JOBQ_STR:
        check_str(v, &wanted);
        break;
    case JOBQ_LIST:
        next_body(v, &t, JOBQ_LIST);
        assert_int_equal(t.as.count, wanted.as.count);
        assert_ok(jobq_writer_list(v->writer, wanted.as.count));
        check_items(v, wanted.as.count);
        break;
    case JOBQ_UINT:
        snprintf(text, sizeof(text), "%" PRIu64, wanted.as.unsigned_integer);
        check_int(v, text);
        break;
    default:
        assert_int_equal(wanted.kind, JOBQ_MAP);
        check_map(v, wanted.as.count);
    }
}

static void check_good(vectors *v)
{
    jobq_token t;
    const void *bytes;
    size_t n;

    jobq_reader_open(v->file, JOBQ_FORMAT_JSON, v->value.p, v->value.n);
    jobq_reader_open(v->body, JOBQ_FORMAT_MSGPACK, v->bytes.p, v->bytes.n);
    jobq_writer_reset(v->writer);
    check_value(v);
    assert_int_equal(assert_ok(jobq_reader_next(v->file, &t)), 0);
    assert_int_equal(assert_ok(jobq_reader_next(v->body, &t)), 0);
    assert_ok(jobq_payload_check(JOBQ_FORMAT_MSGPACK, v->bytes.p, v->bytes.n));
    assert_ok(jobq_writer_finish(v->writer, &bytes, &n));
    if (strncmp(v->name, "double nan", 10) != 0) {
        assert_int_equal(n, v->bytes.n);
        assert_memory_equal(bytes, v->bytes.p, n);
    }
    v->good++;
}

static void check_bad(vectors *v)
{
    static const char *const kinds[] = {[JOBQ_PROBLEM_NONE] = "none",
                                        [JOBQ_PROBLEM_TRUNCATED] = "truncated",
                                        [JOBQ_PROBLEM_TRAILING] = "trailing",
                                        [JOBQ_PROBLEM_MALFORMED] = "malformed",
                                        [JOBQ_PROBLEM_TOO_DEEP] = "too deep"};
    jobq_problem problem;
    jobq__buf tokens = {0};
    char wanted[32];

    assert_code(body_tokens(&tokens, JOBQ_FORMAT_MSGPACK, v->bytes.p, v->bytes.n, &problem),
                JOBQ_EPAYLOAD);
    assert_said("at byte ");
    snprintf(wanted, sizeof(wanted), "\"%s\"", kinds[problem]);
    if (v->value.n != strlen(wanted) || memcmp(v->value.p, wanted, v->value.n) != 0)
        print_error("%.40s: refused as %s, wanted %s\n", v->name, wanted,
                    jobq__buf_text(&v->value));
    assert_int_equal(v->value.n, strlen(wanted));
    assert_memory_equal(v->value.p, wanted, v->value.n);
    assert_code(jobq_payload_check(JOBQ_FORMAT_MSGPACK, v->bytes.p, v->bytes.n), JOBQ_EPAYLOAD);
    jobq__buf_free(&tokens);
    v->bad++;
}

/* Copies a value of the file; p[n] = 0. */
static void take_value(jobq__buf *out, const char *p, size_t n)
{
    const char *end = p + n;

    jobq__buf_reset(out);
    while (p < end) {
        if (!strncmp(p, "{\n\"$int\": \"", 11)) {
            p += 11;
            while (*p != '"')
                jobq__buf_addc(out, *p++);
            p += strlen("\"\n}");
        } else if (p[0] == '"' && p[1] == '$' && strncmp(p, "\"$map\"", 6) != 0) {
            jobq__buf_adds(out, "\"@");
            p += 2;
        } else {
            jobq__buf_addc(out, *p++);
        }
    }
}

/* Cuts out the entry that begins at its name; the end of the value is where the next begins. */
static const char *take_entry(vectors *v, char *name)
{
    char *hex = strstr(name, "\n\"hex\": \"") + 9, *value, *end;
    bool good;

    jobq__buf_reset(&v->bytes);
    body_from_hex(&v->bytes, hex, strcspn(hex, "\""));
    value = strchr(hex, '\n') + 1;
    good = !strncmp(value, "\"value\"", 7);
    value = strstr(value, "\": ") + 3;
    end = strstr(value, "\n},\n{\n\"name\": ");
    if (good && (!end || (strstr(value, "\n}\n],\n\"bad\": ") &&
                          strstr(value, "\n}\n],\n\"bad\": ") < end)))
        end = strstr(value, "\n}\n],\n\"bad\": ");
    if (!end)
        end = strchr(value, '\n');
    v->name = name;
    take_value(&v->value, value, (size_t)(end - value));
    (good ? check_good : check_bad)(v);
    return end;
}

static void test_vectors(void **state)
{
    static const char mark[] = "\n\"name\": \"";
    const char *path = getenv("JOBQ_TEST_VECTORS");
    vectors v = {
        .file = jobq_reader_new(), .body = jobq_reader_new(), .writer = jobq_writer_new(1 << 20)};
    jobq__buf text = {0};
    char *at;

    (void)state;
    body_load(&text, path ? path : "tests/interop/vectors/payload.json");
    jobq__buf_text(&text);
    at = text.p;
    while ((at = strstr(at, mark)) != NULL)
        at = text.p + (take_entry(&v, at + strlen(mark)) - text.p);
    assert_true(v.good >= 94);
    assert_true(v.bad >= 21);
    jobq_reader_free(v.file);
    jobq_reader_free(v.body);
    jobq_writer_free(v.writer);
    jobq__buf_free(&v.bytes);
    jobq__buf_free(&v.value);
    jobq__buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};

    return cmocka_run_group_tests_name("payload/vectors (rules A2, A5, A6)", tests, NULL, NULL);
}
