/* SPDX-License-Identifier: MIT
 *
 * Errors and history entries as bytes. The few msgpack heads are written by hand so that nothing on
 * this way can fail; reading goes through the payload reader, which trusts nothing.
 */
#include "core/fault.h"

#include <jobqueue/payload.h>
#include <stdio.h>
#include <string.h>

#include "util/str.h"

enum { WORKER_MAX = 64, OUTCOME_MAX = 32, NOTE_MAX = 64 };

/* The list of one error, "error text could not be stored", and nothing more. */
static const char last_resort[] = "\x94\xc0\xbf"
                                  "error text could not be stored."
                                  "\xc0\xc0";

/* ---- cutting --------------------------------------------------------------------------------- */

/* How many of the text's bytes are shown when `max` bytes of visible text are allowed. */
static size_t fitting(const char *p, size_t n, size_t max)
{
    size_t used = 0, i = 0;

    while (i < n) {
        size_t step = jobq__utf8_step(p + i, n - i);
        unsigned char c = (unsigned char)p[i];
        bool raw = step > 1 || (step == 1 && ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t'));

        if (used + (raw ? step : 4) > max)
            break;
        used += raw ? step : 4;
        i += raw ? step : 1;
    }
    return i;
}

size_t jobq__fault_tidy(char *out, size_t max, jobq_slice text)
{
    size_t shown = fitting(text.p, text.n, max), used;

    if (shown == text.n)
        return jobq__str_visible(out, max + 1, text.p, text.n);
    if (max <= (size_t)4 * NOTE_MAX) {
        used = jobq__str_visible(out, max - 3 + 1, text.p, fitting(text.p, text.n, max - 3));
        memcpy(out + used, "...", 4);
        return used + 3;
    }
    shown = fitting(text.p, text.n, max - NOTE_MAX);
    used = jobq__str_visible(out, max - NOTE_MAX + 1, text.p, shown);
    return used + (size_t)snprintf(out + used, NOTE_MAX, " [cut: the first %zu of %zu bytes]",
                                   shown, text.n);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(jobq__buf *out, jobq_slice text, size_t max)
{
    size_t at = out->n, n;

    if (!text.p) {
        jobq__buf_addc(out, '\xc0');
        return;
    }
    if (!jobq__buf_reserve(out, (text.n < max / 4 ? text.n * 4 : max) + 6))
        return;
    n = jobq__fault_tidy(out->p + at + 5, max, text); /* writes at most what was reserved */
    out->p[at] = '\xdb';                              /* str 32 */
    for (int i = 0; i < 4; i++)
        out->p[at + 1 + (size_t)i] = (char)(n >> (24 - 8 * i));
    out->n = at + 5 + n;
}

static char *put_time(char *at, int64_t ms)
{
    *at++ = '\xd3'; /* int 64 */
    for (int i = 0; i < 8; i++)
        *at++ = (char)((uint64_t)ms >> (56 - 8 * i));
    return at;
}

static void put_int(jobq__buf *out, int64_t value)
{
    char bytes[9];

    put_time(bytes, value);
    jobq__buf_add(out, bytes, sizeof(bytes));
}

bool jobq__fault_is_empty(const jobq__fault *fault)
{
    return !fault->class_name.p && !fault->message.p && !fault->where.p && !fault->trace.p;
}

void jobq__fault_write(jobq__buf *out, const jobq__fault *fault)
{
    jobq__buf_reset(out);
    jobq__buf_addc(out, '\x94');
    put_text(out, fault->class_name, JOBQ__FAULT_CLASS);
    put_text(out, fault->message, JOBQ__FAULT_MESSAGE);
    put_text(out, fault->where, JOBQ__FAULT_WHERE);
    put_text(out, fault->trace, JOBQ__FAULT_TRACE);
    if (!out->failed)
        return;
    jobq__buf_reset(out);
    jobq__buf_add(out, last_resort, sizeof(last_resort) - 1);
}

jobq_slice jobq__fault_bytes(const jobq__buf *out)
{
    jobq_slice bytes = {out->p, out->n};

    return out->n ? bytes : (jobq_slice){last_resort, sizeof(last_resort) - 1};
}

void jobq__entry_write(jobq__buf *out, const jobq__entry *entry)
{
    jobq__buf_reset(out);
    jobq__buf_addc(out, entry->shared ? '\x97' : '\x96');
    put_int(out, entry->started_at_ms);
    put_int(out, entry->ended_at_ms);
    put_text(out, entry->worker, WORKER_MAX);
    put_text(out, entry->outcome, OUTCOME_MAX);
    put_text(out, entry->class_name, JOBQ__FAULT_CLASS);
    put_text(out, entry->message, JOBQ__ENTRY_MESSAGE);
    if (entry->shared)
        jobq__buf_addc(out, '\xc3');
    if (out->failed)
        jobq__buf_reset(out);
}

/* Heads in order: list of 6, twice int 64, str 8; behind the id str 10, nil, str 8. */
void jobq__lost_entry_make(jobq__lost_entry *out, int64_t found_at_ms)
{
    static const char message[] =
        "the worker's lease ran out while the job was running or about to run";
    char *at = out->head;

    *at++ = '\x96';
    at = put_time(put_time(at, found_at_ms), found_at_ms);
    *at = '\xd9';
    memcpy(out->tail, "\xaalease_lost\xc0\xd9", 13);
    out->tail[13] = (char)(sizeof(message) - 1);
    memcpy(out->tail + 14, message, sizeof(message) - 1);
    out->tail_n = 14 + sizeof(message) - 1;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_ints(jobq_reader *r, int64_t *out, size_t n)
{
    jobq_token token;

    for (size_t i = 0; i < n; i++) {
        if (jobq_reader_next(r, &token) != 1 || token.kind != JOBQ_INT)
            return false;
        out[i] = token.as.integer;
    }
    return true;
}

static bool read_texts(jobq_reader *r, jobq__arena *arena, jobq_slice *out, size_t n)
{
    jobq_token token;

    for (size_t i = 0; i < n; i++) {
        if (jobq_reader_next(r, &token) != 1 || (token.kind != JOBQ_STR && token.kind != JOBQ_NIL))
            return false;
        out[i] = (jobq_slice){0};
        if (token.kind == JOBQ_NIL)
            continue;
        out[i] = (jobq_slice){jobq__arena_copy(arena, token.as.text.p, token.as.text.n),
                              token.as.text.n};
        if (!out[i].p)
            return false;
    }
    return true;
}

/* Reads a list of exactly so many values: integers first, texts (or nil) after, then perhaps a flag
 * (NULL: there is none). */
static bool read_list(jobq_reader *r, jobq_slice bytes, jobq__arena *arena, int64_t *ints,
                      size_t int_count, jobq_slice *texts, size_t text_count, bool *flag)
{
    jobq_token token;
    bool flagged;

    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, bytes.p, bytes.n);
    if (jobq_reader_next(r, &token) != 1 || token.kind != JOBQ_LIST)
        return false;
    flagged = flag && token.as.count == int_count + text_count + 1;
    if (token.as.count != int_count + text_count + flagged || !read_ints(r, ints, int_count) ||
        !read_texts(r, arena, texts, text_count))
        return false;
    if (flagged && (jobq_reader_next(r, &token) != 1 || token.kind != JOBQ_BOOL))
        return false;
    if (flag)
        *flag = flagged && token.as.boolean;
    return jobq_reader_next(r, &token) == 0;
}

static bool read_record(jobq_slice bytes, jobq__arena *arena, int64_t *ints, size_t int_count,
                        jobq_slice *texts, size_t text_count, bool *flag)
{
    jobq_reader *r = bytes.p ? jobq_reader_new() : NULL;
    bool good = r && read_list(r, bytes, arena, ints, int_count, texts, text_count, flag);

    jobq_reader_free(r);
    return good;
}

bool jobq__fault_read(jobq_slice bytes, jobq__arena *arena, jobq__fault *out)
{
    jobq_slice texts[4];

    memset(out, 0, sizeof(*out));
    if (!read_record(bytes, arena, NULL, 0, texts, 4, NULL))
        return false;
    *out = (jobq__fault){texts[0], texts[1], texts[2], texts[3]};
    return true;
}

bool jobq__entry_read(jobq_slice bytes, jobq__arena *arena, jobq__entry *out)
{
    jobq_slice texts[4];
    int64_t times[2];
    bool shared = false;

    memset(out, 0, sizeof(*out));
    if (!read_record(bytes, arena, times, 2, texts, 4, &shared))
        return false;
    *out = (jobq__entry){times[0], times[1], texts[0], texts[1], texts[2], texts[3], shared};
    return true;
}
