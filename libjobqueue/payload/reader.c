/* SPDX-License-Identifier: MIT
 *
 * The bounded msgpack reader, and what both formats share. It trusts nothing (rule A6): a container
 * may not promise more values than bytes are left for all that is owed, lengths are checked before
 * use, there is no recursion, and nothing is allocated by a declared size.
 */
#include "payload/reader.h"

#include <string.h>

#include "util/alloc.h"
#include "util/error.h"
#include "util/str.h"

enum { KEEP_BYTES = 64 * 1024 };

/* ---- life ------------------------------------------------------------------------------------ */

void jobq__reader_init(jobq_reader *r)
{
    memset(r, 0, offsetof(jobq_reader, keys));
    jobq__keys_init(&r->keys);
}

void jobq__reader_fini(jobq_reader *r)
{
    jobq__buf_free(&r->scratch);
    jobq__buf_free(&r->held);
    jobq__buf_free(&r->counts);
    jobq__keys_free(&r->keys);
}

jobq_reader *jobq_reader_new(void)
{
    jobq_reader *r;

    jobq__error_clear();
    r = jobq__alloc(sizeof(*r));
    if (!r) {
        jobq__error_nomem();
        return NULL;
    }
    jobq__reader_init(r);
    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, NULL, 0);
    return r;
}

void jobq_reader_free(jobq_reader *r)
{
    if (!r)
        return;
    jobq__reader_fini(r);
    jobq__free(r);
}

static void empty_buffer(jobq__buf *b)
{
    if (b->cap > KEEP_BYTES)
        jobq__buf_free(b);
    jobq__buf_reset(b);
}

void jobq_reader_open(jobq_reader *r, int format, const void *p, size_t n)
{
    empty_buffer(&r->scratch);
    empty_buffer(&r->held);
    empty_buffer(&r->counts);
    jobq__keys_reset(&r->keys);
    r->p = p ? p : "";
    r->n = n;
    r->at = r->bracket = r->what_at = 0;
    r->format = format;
    r->depth = r->code = 0;
    r->begun = false;
    r->problem = JOBQ_PROBLEM_NONE;
    r->what = NULL;
    r->owed = 1;
}

jobq_problem jobq_reader_problem(const jobq_reader *r)
{
    return r ? r->problem : JOBQ_PROBLEM_NONE;
}

/* ---- refusing -------------------------------------------------------------------------------- */

static int say_problem(const jobq_reader *r)
{
    static const char *const words[] = {
        [JOBQ_PROBLEM_NONE] = "refused",      [JOBQ_PROBLEM_TRUNCATED] = "truncated",
        [JOBQ_PROBLEM_TRAILING] = "too long", [JOBQ_PROBLEM_MALFORMED] = "malformed",
        [JOBQ_PROBLEM_TOO_DEEP] = "too deep",
    };

    if (r->code == JOBQ_ENOMEM)
        return jobq__error_nomem();
    return jobq__error_set(r->code, "payload is %s at byte %zu: %s", words[r->problem], r->what_at,
                           r->what);
}

int jobq__reader_fail(jobq_reader *r, jobq_problem problem, size_t at, const char *what)
{
    r->code = JOBQ_EPAYLOAD;
    r->problem = problem;
    r->what = what;
    r->what_at = at;
    return say_problem(r);
}

int jobq__reader_nomem(jobq_reader *r)
{
    r->code = JOBQ_ENOMEM;
    return say_problem(r);
}

static int truncated(jobq_reader *r, size_t at, const char *what)
{
    return jobq__reader_fail(r, JOBQ_PROBLEM_TRUNCATED, at, what);
}

static int malformed(jobq_reader *r, size_t at, const char *what)
{
    return jobq__reader_fail(r, JOBQ_PROBLEM_MALFORMED, at, what);
}

/* ---- containers and keys --------------------------------------------------------------------- */

int jobq__reader_enter(jobq_reader *r, int kind, uint64_t count, size_t at)
{
    uint64_t values = kind == JOBQ__FRAME_LIST ? count : 2 * count;
    jobq__frame *f;

    if (r->depth == JOBQ_MAX_DEPTH)
        return jobq__reader_fail(r, JOBQ_PROBLEM_TOO_DEEP, at,
                                 "more than 64 lists and maps inside one another");
    if (r->format == JOBQ_FORMAT_MSGPACK && r->owed + values > r->n - r->at)
        return truncated(r, at, "a list or map promises more values than there are bytes");
    r->owed += values;
    f = &r->frames[r->depth++];
    f->left = values;
    f->kind = (uint8_t)kind;
    f->begun = false;
    f->held = r->held.n;
    jobq__keys_begin(&r->keys, &f->keys);
    return 0;
}

void jobq__reader_leave(jobq_reader *r)
{
    jobq__frame *f = &r->frames[--r->depth];

    jobq__keys_end(&r->keys, &f->keys);
    r->held.n = f->held;
}

int jobq__reader_key(jobq_reader *r, jobq_token *key, int base, size_t offset, size_t at)
{
    jobq__frame *f = &r->frames[r->depth - 1];
    int rc;

    if (key->kind != JOBQ_STR && key->kind != JOBQ_INT && key->kind != JOBQ_UINT)
        return malformed(r, at, "a map's key is neither a string nor an integer");
    r->keys.bases[JOBQ__KEY_INPUT] = r->p;
    r->keys.bases[JOBQ__KEY_HELD] = r->held.p;
    rc = jobq__keys_add(&r->keys, &f->keys, key, base, offset);
    if (rc < 0)
        return jobq__reader_nomem(r);
    if (rc > 0)
        return malformed(r, at,
                         "a map has two equal keys (an integer equals the string of its digits)");
    key->key = true;
    return 0;
}

/* ---- msgpack --------------------------------------------------------------------------------- */

enum {
    OP_NIL,
    OP_NEVER,
    OP_BOOL,
    OP_BYTES,
    OP_EXT,
    OP_FLOAT,
    OP_UINT,
    OP_INT,
    OP_FIXEXT,
    OP_STR,
    OP_LIST,
    OP_MAP
};

/* First bytes c0 to df; width: bytes of the number that follows (OP_FIXEXT: of the data). */
static const struct {
    uint8_t op, width;
} heads[32] = {
    {OP_NIL, 0},     {OP_NEVER, 0}, {OP_BOOL, 0},   {OP_BOOL, 0},   {OP_BYTES, 1},  {OP_BYTES, 2},
    {OP_BYTES, 4},   {OP_EXT, 1},   {OP_EXT, 2},    {OP_EXT, 4},    {OP_FLOAT, 4},  {OP_FLOAT, 8},
    {OP_UINT, 1},    {OP_UINT, 2},  {OP_UINT, 4},   {OP_UINT, 8},   {OP_INT, 1},    {OP_INT, 2},
    {OP_INT, 4},     {OP_INT, 8},   {OP_FIXEXT, 1}, {OP_FIXEXT, 2}, {OP_FIXEXT, 4}, {OP_FIXEXT, 8},
    {OP_FIXEXT, 16}, {OP_STR, 1},   {OP_STR, 2},    {OP_STR, 4},    {OP_LIST, 2},   {OP_LIST, 4},
    {OP_MAP, 2},     {OP_MAP, 4},
};

static uint64_t big_endian(const char *p, size_t width)
{
    uint64_t value = 0;

    for (size_t i = 0; i < width; i++)
        value = value << 8 | (unsigned char)p[i];
    return value;
}

static void put_uint(jobq_token *t, uint64_t value)
{
    if (value > INT64_MAX) {
        t->kind = JOBQ_UINT;
        t->as.unsigned_integer = value;
    } else {
        t->kind = JOBQ_INT;
        t->as.integer = (int64_t)value;
    }
}

/* Extends the sign of a number of 1 to 8 bytes. */
static void put_int(jobq_token *t, uint64_t value, size_t width)
{
    uint64_t sign = UINT64_C(0x80) << (8 * (width - 1) & 63);

    t->kind = JOBQ_INT;
    t->as.integer = (int64_t)((value ^ sign) - sign);
}

static void put_float(jobq_token *t, uint64_t bits, size_t width)
{
    uint32_t half = (uint32_t)bits;
    float single;

    t->kind = JOBQ_DOUBLE;
    if (width == 4) {
        memcpy(&single, &half, 4);
        t->as.number = (double)single;
    } else {
        memcpy(&t->as.number, &bits, 8);
    }
}

static int take_text(jobq_reader *r, jobq_token *t, jobq_kind kind, uint64_t n, size_t at)
{
    if (n > r->n - r->at)
        return truncated(r, at, "a string or bytes go on past the end");
    t->kind = kind;
    t->as.text.p = r->p + r->at;
    t->as.text.n = (size_t)n;
    if (kind == JOBQ_STR && !jobq__utf8_valid(t->as.text.p, t->as.text.n))
        return malformed(r, at, "a string is not valid utf-8");
    r->at += (size_t)n;
    return 0;
}

/* A timestamp of 4, 8 or 12 bytes: the only extension there is. r->at stands at the type byte. */
static int take_ext(jobq_reader *r, jobq_token *t, uint64_t n, size_t at)
{
    const char *p = r->p + r->at + 1;
    uint64_t word;

    if (n >= r->n - r->at)
        return truncated(r, at, "an extension goes on past the end");
    if ((signed char)p[-1] != -1)
        return malformed(r, at, "an extension of a type that is not the timestamp (-1)");
    if (n != 4 && n != 8 && n != 12)
        return malformed(r, at, "a timestamp has neither 4, 8 nor 12 bytes");
    word = big_endian(p, n == 12 ? 4 : (size_t)n);
    t->kind = JOBQ_TIME;
    t->as.time.nanoseconds = n == 4 ? 0 : n == 8 ? (uint32_t)(word >> 34) : (uint32_t)word;
    t->as.time.seconds = n == 12 ? (int64_t)big_endian(p + 4, 8) : (int64_t)(word & 0x3ffffffffu);
    if (t->as.time.nanoseconds > 999999999)
        return malformed(r, at, "a timestamp has more than 999999999 nanoseconds");
    r->at += (size_t)n + 1;
    return 0;
}

static int take_head(jobq_reader *r, jobq_token *t, jobq_kind kind, uint64_t count)
{
    t->kind = kind;
    t->as.count = (size_t)count;
    r->owed--;
    return 1; /* the caller enters it, once the token is accepted */
}

/* A value whose first byte is one of c0 to df. */
static int take_long(jobq_reader *r, jobq_token *t, unsigned head, size_t at)
{
    unsigned op = heads[head - 0xc0].op;
    size_t width = heads[head - 0xc0].width;
    uint64_t number = 0;

    if (op == OP_FIXEXT)
        return take_ext(r, t, width, at);
    if (width > r->n - r->at)
        return truncated(r, at, "a number or length goes on past the end");
    number = big_endian(r->p + r->at, width);
    r->at += width;
    switch (op) {
    case OP_NIL:
        t->kind = JOBQ_NIL;
        return 0;
    case OP_BOOL:
        t->kind = JOBQ_BOOL;
        t->as.boolean = head == 0xc3;
        return 0;
    case OP_FLOAT:
        put_float(t, number, width);
        return 0;
    case OP_UINT:
        put_uint(t, number);
        return 0;
    case OP_INT:
        put_int(t, number, width);
        return 0;
    case OP_BYTES:
        return take_text(r, t, JOBQ_BYTES, number, at);
    case OP_STR:
        return take_text(r, t, JOBQ_STR, number, at);
    case OP_EXT:
        return take_ext(r, t, number, at);
    case OP_LIST:
        return take_head(r, t, JOBQ_LIST, number);
    case OP_MAP:
        return take_head(r, t, JOBQ_MAP, number);
    default:
        return malformed(r, at, "the byte c1 stands for nothing");
    }
}

/* 0: a plain value, 1: a container's head. */
static int take_value(jobq_reader *r, jobq_token *t)
{
    size_t at = r->at;
    unsigned head;

    if (at == r->n)
        return truncated(r, at, "a value is missing");
    head = (unsigned char)r->p[r->at++];
    if (head <= 0x7f || head >= 0xe0) {
        put_int(t, head, 1);
        return 0;
    }
    if (head <= 0x8f)
        return take_head(r, t, JOBQ_MAP, head & 0x0f);
    if (head <= 0x9f)
        return take_head(r, t, JOBQ_LIST, head & 0x0f);
    if (head <= 0xbf)
        return take_text(r, t, JOBQ_STR, head & 0x1f, at);
    return take_long(r, t, head, at);
}

/* Checks a key, enters a container. */
static int accept_value(jobq_reader *r, jobq_token *t, bool container, size_t at)
{
    jobq__frame *f = r->depth ? &r->frames[r->depth - 1] : NULL;
    size_t offset = t->kind == JOBQ_STR ? (size_t)(t->as.text.p - r->p) : 0;
    int rc;

    if (f && jobq__frame_wants_key(f)) {
        rc = jobq__reader_key(r, t, JOBQ__KEY_INPUT, offset, at);
        if (rc < 0)
            return rc;
    }
    if (f)
        f->left--;
    if (container)
        return jobq__reader_enter(r, t->kind == JOBQ_LIST ? JOBQ__FRAME_LIST : JOBQ__FRAME_MAP,
                                  t->as.count, at);
    r->owed--;
    return 0;
}

static int next_msgpack(jobq_reader *r, jobq_token *token)
{
    jobq_token t = {0};
    size_t at;
    int rc;

    while (r->depth && r->frames[r->depth - 1].left == 0)
        jobq__reader_leave(r);
    at = r->at;
    if (r->begun && r->depth == 0)
        return at == r->n
                   ? 0
                   : jobq__reader_fail(r, JOBQ_PROBLEM_TRAILING, at, "bytes follow the value");
    rc = take_value(r, &t);
    if (rc >= 0)
        rc = accept_value(r, &t, rc, at);
    if (rc < 0)
        return rc;
    r->begun = true;
    *token = t;
    return 1;
}

int jobq__reader_step(jobq_reader *r, jobq_token *token)
{
    if (r->code)
        return say_problem(r);
    if (r->n > UINT32_MAX)
        return malformed(r, 0, "longer than 4294967295 bytes");
    return r->format == JOBQ_FORMAT_JSON ? jobq__json_next(r, token) : next_msgpack(r, token);
}

int jobq_reader_next(jobq_reader *r, jobq_token *token)
{
    jobq__error_clear();
    return jobq__reader_step(r, token);
}
