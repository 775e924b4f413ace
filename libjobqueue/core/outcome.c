/* SPDX-License-Identifier: MIT
 *
 * Progress and results as bytes. See outcome.h.
 */
#include "core/outcome.h"

#include <jobqueue/payload.h>
#include <string.h>

enum { FIELDS = 5, STR_32 = 0xdb, BIN_32 = 0xc6 };

/* ---- writing --------------------------------------------------------------------------------- */

static void put_number(jobq__buf *out, uint64_t value, int bytes)
{
    while (bytes-- > 0)
        jobq__buf_addc(out, (char)(value >> 8 * bytes));
}

static void put_slice(jobq__buf *out, int head, jobq_slice s)
{
    if (!s.p || s.n > UINT32_MAX) {
        jobq__buf_addc(out, '\xc0');
        return;
    }
    jobq__buf_addc(out, (char)head);
    put_number(out, s.n, 4);
    jobq__buf_add(out, s.p, s.n);
}

static void put_percent(jobq__buf *out, const jobq__outcome *outcome)
{
    uint64_t bits;

    if (!outcome->has_percent) {
        jobq__buf_addc(out, '\xc0');
        return;
    }
    memcpy(&bits, &outcome->percent, sizeof(bits));
    jobq__buf_addc(out, '\xcb');
    put_number(out, bits, 8);
}

void jobq__outcome_write(jobq__buf *out, const jobq__outcome *outcome)
{
    jobq__buf_reset(out);
    jobq__buf_addc(out, (char)(0x90 | FIELDS));
    put_percent(out, outcome);
    put_slice(out, STR_32, outcome->note);
    jobq__buf_addc(out, (char)outcome->format);
    put_slice(out, BIN_32, outcome->body);
    put_slice(out, STR_32, outcome->refusal);
    if (out->failed)
        jobq__buf_reset(out);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The next value, which is nil or of that kind. */
static bool read_value(jobq_reader *r, jobq_kind kind, jobq_token *token)
{
    return jobq_reader_next(r, token) == 1 && (token->kind == kind || token->kind == JOBQ_NIL);
}

static bool read_slice(jobq_reader *r, jobq_kind kind, jobq__arena *arena, jobq_slice *out)
{
    jobq_token token;

    if (!read_value(r, kind, &token))
        return false;
    if (token.kind == JOBQ_NIL)
        return true;
    *out = (jobq_slice){jobq__arena_copy(arena, token.as.text.p, token.as.text.n), token.as.text.n};
    return out->p != NULL;
}

static bool read_fields(jobq_reader *r, jobq__arena *arena, jobq__outcome *out)
{
    jobq_token token;
    int rc;

    if (jobq_reader_next(r, &token) != 1 || token.kind != JOBQ_LIST || token.as.count < FIELDS)
        return false;
    if (!read_value(r, JOBQ_DOUBLE, &token))
        return false;
    out->has_percent = token.kind == JOBQ_DOUBLE;
    out->percent = out->has_percent ? token.as.number : 0;
    if (!read_slice(r, JOBQ_STR, arena, &out->note) || jobq_reader_next(r, &token) != 1 ||
        token.kind != JOBQ_INT || token.as.integer < JOBQ_FORMAT_MSGPACK ||
        token.as.integer > JOBQ_FORMAT_JSON)
        return false;
    out->format = (int)token.as.integer;
    if (!read_slice(r, JOBQ_BYTES, arena, &out->body) ||
        !read_slice(r, JOBQ_STR, arena, &out->refusal))
        return false;
    while ((rc = jobq_reader_next(r, &token)) == 1) {
    }
    return rc == 0;
}

bool jobq__outcome_read(jobq_slice bytes, jobq__arena *arena, jobq__outcome *out)
{
    jobq_reader *r = bytes.p ? jobq_reader_new() : NULL;
    bool good;

    *out = (jobq__outcome){0};
    if (!r)
        return false;
    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, bytes.p, bytes.n);
    good = read_fields(r, arena, out);
    jobq_reader_free(r);
    if (!good)
        *out = (jobq__outcome){0};
    return good;
}
