/* SPDX-License-Identifier: MIT
 *
 * The reader beside msgpack-c's unpacker: random bodies, whole and damaged. Where msgpack-c takes a
 * body and it keeps our stricter rules (checked here by a second, naive reading of its tree), the
 * reader must take it and see the same; everywhere else it must refuse. Bodies with 32-bit counts
 * are left out, since msgpack-c allocates by declared length, and so are those it cannot nest (more
 * than 32).
 */
#include "unit/payload/bodies.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "util/str.h"

enum { ROUNDS = 60000, VALUES = 40 };

static uint64_t random_state;

static uint64_t random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du;
}

static size_t below(size_t n)
{
    return (size_t)(random_u64() >> 33) % n;
}

/* ---- random bodies --------------------------------------------------------------------------- */

static int64_t random_int(void)
{
    return (int64_t)random_u64() >> below(64);
}

static void random_text(jobq_writer *w)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "1",
                                        "-1",
                                        "key",
                                        "\xc3\xa9",
                                        "\xf0\x9f\x98\x80",
                                        "0",
                                        "01",
                                        "a text of more than thirty-one bytes, to be sure"};
    const char *text = texts[below(sizeof(texts) / sizeof(texts[0]))];

    jobq_writer_str(w, text, strlen(text));
}

static void random_scalar(jobq_writer *w)
{
    uint64_t bits = random_u64();
    double number;

    memcpy(&number, &bits, 8);
    switch (below(8)) {
    case 0:
        jobq_writer_nil(w);
        break;
    case 1:
        jobq_writer_bool(w, bits & 1);
        break;
    case 2:
        jobq_writer_uint(w, bits);
        break;
    case 3:
        jobq_writer_double(w, number);
        break;
    case 4:
        jobq_writer_bytes(w, &bits, below(9));
        break;
    case 5:
        jobq_writer_time(w, random_int(), (uint32_t)below(1000000000));
        break;
    case 6:
        random_text(w);
        break;
    default:
        jobq_writer_int(w, random_int());
    }
}

static void random_value(jobq_writer *w, size_t *budget, int depth)
{
    size_t n = below(6);
    bool map = below(2);

    if (*budget < 3 || depth > 8 || below(3) == 0) {
        random_scalar(w);
        *budget -= *budget > 0;
        return;
    }
    *budget -= 1;
    map ? jobq_writer_map(w, n) : jobq_writer_list(w, n);
    for (size_t i = 0; i < n; i++) {
        if (map)
            below(2) ? random_text(w) : (void)jobq_writer_int(w, (int64_t)below(20) - 3);
        random_value(w, budget, depth + 1);
    }
}

static void damage(jobq__buf *body)
{
    static const unsigned char heads[] = {0xc0, 0xc1, 0xc4, 0xc7, 0xca, 0xcb, 0xcc, 0xcf, 0xd0,
                                          0xd3, 0xd4, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdc, 0xde,
                                          0x80, 0x81, 0x90, 0x92, 0xa1, 0xff, 0x00, 0x31};
    size_t at = body->n ? below(body->n) : 0;

    switch (below(5)) {
    case 0:
        body->n = at;
        break;
    case 1:
        jobq__buf_addc(body, (char)heads[below(sizeof(heads))]);
        break;
    case 2:
        if (body->n)
            body->p[at] = (char)random_u64();
        break;
    default:
        if (body->n)
            body->p[at] = (char)heads[below(sizeof(heads))];
    }
}

/* ---- msgpack-c's reading, in the words of body_tokens ---------------------------------------- */

static void add_time(jobq__buf *out, const msgpack_object *o)
{
    msgpack_timestamp time = {0, 0};

    msgpack_object_to_timestamp(o, &time);
    jobq__buf_addf(out, "t%" PRId64 ".%09" PRIu32, time.tv_sec, time.tv_nsec);
}

static void add_text(jobq__buf *out, char mark, const char *p, size_t n)
{
    jobq__buf_addf(out, "%c%zu:", mark, n);
    jobq__buf_add(out, p, n);
}

static void add_uint(jobq__buf *out, uint64_t value)
{
    jobq__buf_addf(out, value > INT64_MAX ? "u%" PRIu64 : "i%" PRIu64, value);
}

static void add_scalar(jobq__buf *out, const msgpack_object *o)
{
    uint64_t bits;

    switch (o->type) {
    case MSGPACK_OBJECT_NIL:
        jobq__buf_adds(out, "nil");
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        jobq__buf_adds(out, o->via.boolean ? "true" : "false");
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        add_uint(out, o->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        jobq__buf_addf(out, "i%" PRId64, o->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        memcpy(&bits, &o->via.f64, 8);
        jobq__buf_addf(out, "d%016" PRIx64, bits);
        break;
    case MSGPACK_OBJECT_STR:
        add_text(out, 's', o->via.str.ptr, o->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        add_text(out, 'b', o->via.bin.ptr, o->via.bin.size);
        break;
    default:
        add_time(out, o);
    }
    jobq__buf_addc(out, ' ');
}

static void add_object(jobq__buf *out, const msgpack_object *o)
{
    if (o->type == MSGPACK_OBJECT_ARRAY) {
        jobq__buf_addf(out, "[%u] ", o->via.array.size);
        for (uint32_t i = 0; i < o->via.array.size; i++)
            add_object(out, &o->via.array.ptr[i]);
    } else if (o->type == MSGPACK_OBJECT_MAP) {
        jobq__buf_addf(out, "{%u} ", o->via.map.size);
        for (uint32_t i = 0; i < o->via.map.size; i++) {
            jobq__buf_adds(out, "key ");
            add_object(out, &o->via.map.ptr[i].key);
            add_object(out, &o->via.map.ptr[i].val);
        }
    } else {
        add_scalar(out, o);
    }
}

/* A key as PHP would see it: text of digits and integer alike. */
static bool key_text(const msgpack_object *o, char out[300])
{
    jobq__buf text = {0};
    bool fine = true;

    if (o->type == MSGPACK_OBJECT_STR)
        jobq__buf_add(&text, o->via.str.ptr, o->via.str.size);
    else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        jobq__buf_addf(&text, "%" PRIu64, o->via.u64);
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        jobq__buf_addf(&text, "%" PRId64, o->via.i64);
    else
        fine = false;
    memset(out, 0, 300);
    snprintf(out, 300, "%zu:", text.n);
    memcpy(out + 32, text.p ? text.p : "", text.n < 260 ? text.n : 260);
    jobq__buf_free(&text);
    return fine;
}

static bool keeps_rules(const msgpack_object *o);

static bool map_keeps_rules(const msgpack_object_map *map)
{
    char a[300], b[300];

    for (uint32_t i = 0; i < map->size; i++) {
        if (!key_text(&map->ptr[i].key, a) || !keeps_rules(&map->ptr[i].key) ||
            !keeps_rules(&map->ptr[i].val))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (key_text(&map->ptr[k].key, b) && !memcmp(a, b, sizeof(a)))
                return false;
    }
    return true;
}

static bool keeps_rules(const msgpack_object *o)
{
    msgpack_timestamp time;

    switch (o->type) {
    case MSGPACK_OBJECT_STR:
        return jobq__utf8_valid(o->via.str.ptr, o->via.str.size);
    case MSGPACK_OBJECT_EXT:
        return msgpack_object_to_timestamp(o, &time) && time.tv_nsec <= 999999999;
    case MSGPACK_OBJECT_ARRAY:
        for (uint32_t i = 0; i < o->via.array.size; i++)
            if (!keeps_rules(&o->via.array.ptr[i]))
                return false;
        return true;
    case MSGPACK_OBJECT_MAP:
        return map_keeps_rules(&o->via.map);
    default:
        return true;
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

typedef struct {
    size_t taken, refused;
} tally;

static void show_body(const jobq__buf *body)
{
    for (size_t i = 0; i < body->n; i++)
        print_error("%02x", (unsigned char)body->p[i]);
    print_error("\n");
}

static void compare(const jobq__buf *body, tally *t)
{
    msgpack_unpacked theirs;
    jobq__buf ours_text = {0}, theirs_text = {0};
    size_t off = 0;
    msgpack_unpack_return result;
    jobq_problem problem;
    bool take;
    int rc = body_tokens(&ours_text, JOBQ_FORMAT_MSGPACK, body->p, body->n, &problem);

    msgpack_unpacked_init(&theirs);
    result = msgpack_unpack_next(&theirs, body->p ? body->p : "", body->n, &off);
    take = (result == MSGPACK_UNPACK_SUCCESS || result == MSGPACK_UNPACK_EXTRA_BYTES) &&
           keeps_rules(&theirs.data);
    if (take && off == body->n)
        add_object(&theirs_text, &theirs.data);
    take = take && off == body->n;
    if (result != MSGPACK_UNPACK_NOMEM_ERROR) {
        if (take != (rc == 0) || ours_text.failed ||
            (take && strcmp(jobq__buf_text(&ours_text), jobq__buf_text(&theirs_text))))
            show_body(body);
        assert_int_equal(rc, take ? 0 : JOBQ_EPAYLOAD);
        if (take)
            assert_string_equal(jobq__buf_text(&ours_text), jobq__buf_text(&theirs_text));
        if (problem == JOBQ_PROBLEM_TRUNCATED)
            assert_int_not_equal(result, MSGPACK_UNPACK_SUCCESS);
        take ? t->taken++ : t->refused++;
    }
    msgpack_unpacked_destroy(&theirs);
    jobq__buf_free(&ours_text);
    jobq__buf_free(&theirs_text);
}

static bool has_long_count(const jobq__buf *body)
{
    return body->n && (memchr(body->p, 0xdd, body->n) || memchr(body->p, 0xdf, body->n));
}

static void test_differential(void **state)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    jobq__buf body = {0};
    tally t = {0, 0};
    const void *p;
    size_t n, budget;

    (void)state;
    random_state = body_seed() | 1;
    for (int round = 0; round < ROUNDS; round++) {
        jobq_writer_reset(w);
        budget = 1 + below(VALUES);
        random_value(w, &budget, 0);
        assert_ok(jobq_writer_finish(w, &p, &n));
        jobq__buf_reset(&body);
        jobq__buf_add(&body, p, n);
        for (size_t times = below(4); times > 0; times--)
            damage(&body);
        if (!has_long_count(&body))
            compare(&body, &t);
    }
    print_message("# %zu bodies taken, %zu refused\n", t.taken, t.refused);
    assert_true(t.taken > ROUNDS / 10);
    assert_true(t.refused > ROUNDS / 10);
    jobq_writer_free(w);
    jobq__buf_free(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differential)};

    return cmocka_run_group_tests_name("payload/differential (rules A5, A6)", tests, NULL, NULL);
}
