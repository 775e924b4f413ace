/* SPDX-License-Identifier: MIT
 *
 * The envelope header's bytes. One table names the keys; reading and writing walk it.
 *
 *     t tries    o timeout, ms    b backoff, [ms, ...]    e backoff, [base ms, cap ms], doubling
 *     r retry until, ms since 1970    R the same, ms after the job's base time
 *     x expires, ms since 1970        X the same, ms after the job's base time
 *     d true: drop when expired       c context, {string: string}
 *     k true: its result is kept      s true: its unique key is free when it first starts
 *     i its id is remembered, ms after its end
 */
#include "payload/envelope.h"

#include <msgpack.h>
#include <string.h>

#include "payload/reader.h"
#include "util/error.h"

enum { FIXED = 2 /* version and format */ };

typedef enum {
    F_TRIES,
    F_TIMEOUT,
    F_BACKOFF,
    F_EXPONENTIAL,
    F_RETRY_AT,
    F_RETRY_IN,
    F_EXPIRES_AT,
    F_EXPIRES_IN,
    F_DROP,
    F_TRACK,
    F_STARTED,
    F_IDEMPOTENT,
    F_CONTEXT,
    F_COUNT
} field;

/* ---- writing --------------------------------------------------------------------------------- */

static int append(void *data, const char *p, size_t n)
{
    jobq__buf_add(data, p, n);
    return 0;
}

/* The fields that stand in the map, a bit each. */
static unsigned given_fields(const jobq__header *h)
{
    const bool backoff = h->has_backoff && (h->backoff_exponential || h->backoff_count > 0);
    unsigned given = (unsigned)h->has_tries << F_TRIES | (unsigned)h->has_timeout << F_TIMEOUT;

    given |= (unsigned)backoff << (h->backoff_exponential ? F_EXPONENTIAL : F_BACKOFF);
    given |= (unsigned)h->has_retry_until << (h->retry_until_relative ? F_RETRY_IN : F_RETRY_AT);
    given |= (unsigned)h->has_expires << (h->expires_relative ? F_EXPIRES_IN : F_EXPIRES_AT);
    given |= (unsigned)h->drop_expired << F_DROP | (unsigned)h->track << F_TRACK;
    given |= (unsigned)h->until_started << F_STARTED;
    given |= (unsigned)(h->idempotent_for_ms > 0) << F_IDEMPOTENT;
    return given | (unsigned)(h->context_count > 0) << F_CONTEXT;
}

static void put_numbers(msgpack_packer *packer, const int64_t *numbers, size_t n)
{
    msgpack_pack_array(packer, n);
    for (size_t i = 0; i < n; i++)
        msgpack_pack_int64(packer, numbers[i]);
}

static void put_text(msgpack_packer *packer, jobq_slice text)
{
    msgpack_pack_str(packer, text.n);
    if (text.n)
        msgpack_pack_str_body(packer, text.p, text.n);
}

static void put_context(msgpack_packer *packer, const jobq__header *h)
{
    msgpack_pack_map(packer, h->context_count);
    for (size_t i = 0; i < h->context_count; i++) {
        put_text(packer, h->context[i].key);
        put_text(packer, h->context[i].value);
    }
}

static size_t backoff_entries(const jobq__header *h)
{
    return h->backoff_count < JOBQ__ENVELOPE_BACKOFF ? h->backoff_count : JOBQ__ENVELOPE_BACKOFF;
}

static const char letters[F_COUNT + 1] = "toberRxXdksic";

static void put_field(msgpack_packer *packer, const jobq__header *h, field f)
{
    msgpack_pack_str(packer, 1);
    msgpack_pack_str_body(packer, &letters[f], 1);
    switch (f) {
    case F_TRIES:
        msgpack_pack_int64(packer, h->tries);
        break;
    case F_TIMEOUT:
        msgpack_pack_int64(packer, h->timeout_ms);
        break;
    case F_BACKOFF:
        put_numbers(packer, h->backoff_ms, backoff_entries(h));
        break;
    case F_EXPONENTIAL:
        put_numbers(packer, h->backoff_ms, 2);
        break;
    case F_RETRY_AT:
    case F_RETRY_IN:
        msgpack_pack_int64(packer, h->retry_until_ms);
        break;
    case F_EXPIRES_AT:
    case F_EXPIRES_IN:
        msgpack_pack_int64(packer, h->expires_ms);
        break;
    case F_DROP:
    case F_TRACK:
    case F_STARTED:
        msgpack_pack_true(packer);
        break;
    case F_IDEMPOTENT:
        msgpack_pack_int64(packer, h->idempotent_for_ms);
        break;
    default:
        put_context(packer, h);
    }
}

int jobq__envelope_write(jobq__buf *out, const jobq__header *h)
{
    const char fixed[FIXED] = {JOBQ__ENVELOPE_VERSION, h->format == JOBQ_FORMAT_JSON ? 'j' : 'm'};
    const unsigned given = given_fields(h);
    const size_t start = out->n;
    msgpack_packer packer;
    size_t count = 0;

    if (given == 0 && h->format == JOBQ_FORMAT_MSGPACK)
        return 0;
    jobq__buf_add(out, fixed, sizeof(fixed));
    if (given) {
        msgpack_packer_init(&packer, out, append);
        for (int f = 0; f < F_COUNT; f++)
            count += given >> f & 1;
        msgpack_pack_map(&packer, count);
        for (int f = 0; f < F_COUNT; f++)
            if (given >> f & 1)
                put_field(&packer, h, (field)f);
    }
    if (!out->failed)
        return 0;
    out->n = start;
    return jobq__error_nomem();
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct {
    jobq_reader reader;
    jobq_slice map; /* the part behind the fixed bytes */
    jobq__arena *arena;
    jobq__header h;
} header_reader;

static int malformed(const char *what)
{
    return jobq__error_set(JOBQ_EPAYLOAD, "job header is malformed: %s", what);
}

/* The next token. 0 comes only behind the last one, since the reader counts what containers owe. */
static int next(header_reader *in, jobq_token *t)
{
    int rc = jobq__reader_step(&in->reader, t);
    struct jobq_error why;

    if (rc >= 0)
        return rc;
    jobq__error_save(&why);
    return rc == JOBQ_EPAYLOAD ? malformed(why.message) : rc;
}

static int read_number(const jobq_token *t, int64_t *out, const char *what)
{
    if (t->kind != JOBQ_INT || t->as.integer < 0)
        return malformed(what);
    *out = t->as.integer;
    return 0;
}

/* Fills backoff_ms; how many there were. */
static int read_numbers(header_reader *in, const jobq_token *list, size_t most, const char *what)
{
    jobq_token t;
    int rc = 0;

    if (list->kind != JOBQ_LIST || list->as.count < 1 || list->as.count > most)
        return malformed(what);
    for (size_t i = 0; i < list->as.count; i++) {
        rc = next(in, &t);
        if (rc > 0)
            rc = read_number(&t, &in->h.backoff_ms[i], what);
        if (rc < 0)
            return rc;
    }
    return (int)list->as.count;
}

static int read_backoff(header_reader *in, const jobq_token *t)
{
    int n = read_numbers(in, t, JOBQ__ENVELOPE_BACKOFF,
                         "\"b\" (backoff) must be a list of 1 to 16 numbers of ms >= 0");

    if (n < 0)
        return n;
    in->h.has_backoff = true;
    in->h.backoff_exponential = false;
    in->h.backoff_count = (uint8_t)n;
    return 0;
}

static int read_exponential(header_reader *in, const jobq_token *t)
{
    static const char what[] =
        "\"e\" (exponential backoff) must be a list of two numbers of ms >= 0";
    int n = read_numbers(in, t, 2, what);

    if (n < 0)
        return n;
    if (n != 2)
        return malformed(what);
    in->h.has_backoff = in->h.backoff_exponential = true;
    in->h.backoff_count = 0;
    return 0;
}

/* Text that outlives the reader: in the header's own bytes, else copied. */
static int keep_text(header_reader *in, const jobq_token *t, jobq_slice *out)
{
    const char *p = t->as.text.p, *from = in->map.p;

    if (t->kind != JOBQ_STR)
        return malformed("\"c\" (context) must be a map of strings to strings");
    if ((uintptr_t)p - (uintptr_t)from > in->map.n)
        p = jobq__arena_copy(in->arena, p, t->as.text.n);
    if (!p)
        return jobq__error_nomem();
    out->p = p;
    out->n = t->as.text.n;
    return 0;
}

static int read_context(header_reader *in, const jobq_token *map)
{
    jobq__pair *pairs;
    jobq_token t;
    size_t n = map->as.count;
    int rc = 1;

    if (map->kind != JOBQ_MAP)
        return malformed("\"c\" (context) must be a map of strings to strings");
    pairs = jobq__arena_alloc(in->arena, (n ? n : 1) * sizeof(*pairs));
    if (!pairs)
        return jobq__error_nomem();
    for (size_t i = 0; i < 2 * n && rc >= 0; i++) {
        rc = next(in, &t);
        if (rc > 0)
            rc = keep_text(in, &t, t.key ? &pairs[i / 2].key : &pairs[i / 2].value);
    }
    if (rc < 0)
        return rc;
    in->h.context = pairs;
    in->h.context_count = n;
    return 0;
}

static int read_flag(const jobq_token *t, bool *out, const char *what)
{
    if (t->kind != JOBQ_BOOL)
        return malformed(what);
    *out = t->as.boolean;
    return 0;
}

static int read_moment(header_reader *in, const jobq_token *t, field f)
{
    bool retry = f == F_RETRY_AT || f == F_RETRY_IN,
         relative = f == F_RETRY_IN || f == F_EXPIRES_IN;
    int rc = retry ? read_number(t, &in->h.retry_until_ms,
                                 "\"r\", \"R\" (retry until) must be a number of ms >= 0")
                   : read_number(t, &in->h.expires_ms,
                                 "\"x\", \"X\" (expires) must be a number of ms >= 0");

    if (rc < 0)
        return rc;
    *(retry ? &in->h.has_retry_until : &in->h.has_expires) = true;
    *(retry ? &in->h.retry_until_relative : &in->h.expires_relative) = relative;
    return 0;
}

/* A key this version does not know: its value is read past. */
static int skip_value(header_reader *in, const jobq_token *first)
{
    int outer = in->reader.depth - (first->kind == JOBQ_LIST || first->kind == JOBQ_MAP);
    uint64_t left;
    jobq_token t;
    int rc = 1;

    /* Done when the header's own map is innermost again, or only full containers lie above it. */
    for (;;) {
        left = 0;
        for (int i = outer; i < in->reader.depth; i++)
            left += in->reader.frames[i].left;
        if (left == 0 || rc < 0)
            return rc < 0 ? rc : 0;
        rc = next(in, &t);
    }
}

static field find_field(const jobq_token *key)
{
    const char *letter = key->kind == JOBQ_STR && key->as.text.n == 1
                             ? memchr(letters, *key->as.text.p, F_COUNT)
                             : NULL;

    return letter ? (field)(letter - letters) : F_COUNT;
}

static int read_field(header_reader *in, field f, const jobq_token *t)
{
    switch (f) {
    case F_TRIES:
        in->h.has_tries = true;
        return read_number(t, &in->h.tries, "\"t\" (tries) must be an integer >= 0");
    case F_TIMEOUT:
        in->h.has_timeout = true;
        return read_number(t, &in->h.timeout_ms, "\"o\" (timeout) must be a number of ms >= 0");
    case F_BACKOFF:
        return read_backoff(in, t);
    case F_EXPONENTIAL:
        return read_exponential(in, t);
    case F_RETRY_AT:
    case F_RETRY_IN:
    case F_EXPIRES_AT:
    case F_EXPIRES_IN:
        return read_moment(in, t, f);
    case F_DROP:
        return read_flag(t, &in->h.drop_expired, "\"d\" (drop when expired) must be true or false");
    case F_TRACK:
        return read_flag(t, &in->h.track, "\"k\" (track) must be true or false");
    case F_STARTED:
        return read_flag(t, &in->h.until_started,
                         "\"s\" (key until started) must be true or false");
    case F_IDEMPOTENT:
        return read_number(t, &in->h.idempotent_for_ms,
                           "\"i\" (idempotent) must be a number of ms >= 0");
    case F_CONTEXT:
        return read_context(in, t);
    default:
        return skip_value(in, t);
    }
}

/* One key and its value. */
static int read_entry(header_reader *in)
{
    jobq_token t;
    field f;
    int rc = next(in, &t);

    if (rc < 0)
        return rc;
    f = find_field(&t);
    rc = next(in, &t);
    return rc < 0 ? rc : read_field(in, f, &t);
}

static int read_map(header_reader *in)
{
    jobq_token t;
    bool json = *(const char *)in->map.p == '{';
    int rc;

    jobq_reader_open(&in->reader, json ? JOBQ_FORMAT_JSON : JOBQ_FORMAT_MSGPACK, in->map.p,
                     in->map.n);
    rc = next(in, &t);
    if (rc < 0)
        return rc;
    if (t.kind != JOBQ_MAP)
        return malformed("its options are not a map");
    for (size_t left = t.as.count; left > 0; left--) {
        rc = read_entry(in);
        if (rc < 0)
            return rc;
    }
    return next(in, &t); /* 0: nothing trails */
}

/* The fixed bytes. 1: a map follows. */
static int read_fixed(const unsigned char *p, size_t n, jobq__header *h_out)
{
    unsigned format = n > 1 ? p[1] : 'm';

    if (n > 1 && (format == 'm' || format == 'j'))
        h_out->format = format == 'j' ? JOBQ_FORMAT_JSON : JOBQ_FORMAT_MSGPACK;
    if (p[0] > JOBQ__ENVELOPE_VERSION)
        return jobq__error_set(JOBQ_EUNSUPPORTED,
                               "job header has protocol version %u, this library reads up to %d",
                               p[0], JOBQ__ENVELOPE_VERSION);
    if (p[0] < JOBQ__ENVELOPE_VERSION)
        return malformed("its first byte, the protocol version, is 0");
    if (n < FIXED)
        return malformed("its second byte, the body's format, is missing");
    if (format != 'm' && format != 'j')
        return malformed("its second byte, the body's format, is neither 'm' nor 'j'");
    return n > FIXED;
}

int jobq__envelope_read(jobq_slice bytes, jobq__arena *arena, jobq__header *h_out)
{
    const char *p = bytes.p;
    header_reader in;
    int rc;

    if (bytes.n == 0) {
        *h_out = (jobq__header){.format = JOBQ_FORMAT_MSGPACK};
        return 0;
    }
    in.h = (jobq__header){.format = JOBQ_FORMAT_MSGPACK};
    rc = read_fixed(bytes.p, bytes.n, &in.h);
    if (bytes.n > 1)
        h_out->format = in.h.format;
    if (rc > 0) {
        in.map = (jobq_slice){p + FIXED, bytes.n - FIXED};
        in.arena = arena;
        jobq__reader_init(&in.reader);
        rc = read_map(&in);
        jobq__reader_fini(&in.reader);
    }
    if (rc == 0)
        *h_out = in.h;
    return rc;
}
