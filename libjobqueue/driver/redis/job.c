/* SPDX-License-Identifier: MIT
 *
 * Jobs as they are stored (scripts/lib.lua says how) and tokens.
 */
#include <stdio.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

enum { HEAD = 14, STANDING = 97, MARK = 16 };

/* ---- numbers in bytes, little end first ------------------------------------------------------ */

static uint64_t read_le(const void *p, int n)
{
    const unsigned char *bytes = p;
    uint64_t value = 0;

    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static void add_le(jobq__buf *out, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        jobq__buf_addc(out, (char)(value >> (8 * i)));
}

/* ---- writing --------------------------------------------------------------------------------- */

void jobq__redis_write_job(jobq__buf *out, const jobq_push *item)
{
    int flags = (item->fresh_id ? 0 : RDS_GIVEN) | (item->unique.p ? RDS_UNIQUE : 0) |
                (item->header.p ? RDS_HEADER : 0) | (item->body.p ? RDS_BODY : 0);

    jobq__buf_addc(out, 1);
    jobq__buf_addc(out, (char)flags);
    add_le(out, item->id.n, 1);
    add_le(out, item->name.n, 1);
    add_le(out, item->unique.n, 2);
    add_le(out, (uint32_t)item->version, 4);
    add_le(out, item->header.n, 4);
    jobq__buf_add(out, item->id.p, item->id.n);
    jobq__buf_add(out, item->name.p, item->name.n);
    jobq__buf_add(out, item->unique.p, item->unique.n);
    jobq__buf_add(out, item->header.p, item->header.n);
    jobq__buf_add(out, item->body.p, item->body.n);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_entry_number(const char **p, const char *end, uint64_t *out)
{
    const char *start = *p;

    *out = 0;
    while (*p < end && **p >= '0' && **p <= '9')
        *out = *out * 10 + (uint64_t)(*(*p)++ - '0');
    return *p > start;
}

bool jobq__redis_entry(jobq_slice text, rds_entry *out)
{
    const char *p = text.p, *end = p ? p + text.n : p;

    if (!p || !read_entry_number(&p, end, &out->ms) || p == end || *p++ != '-')
        return false;
    return read_entry_number(&p, end, &out->seq);
}

static bool copy(jobq_batch *out, jobq_slice *to, const char *p, size_t n, bool present)
{
    if (!present)
        return true;
    *to = jobq_batch_copy(out, p, n);
    return to->p != NULL;
}

/* What an entry that is not ours is called: it is handed out like any job, so that it neither
 * vanishes nor stands in the way (cases B031, C6). */
static bool read_malformed(const rds_stored *stored, bool keys_only, jobq_batch *out,
                           jobq_record *r)
{
    char id[80];
    int n = snprintf(id, sizeof(id), "malformed-%d-%.*s", stored->priority, (int)stored->entry.n,
                     (const char *)stored->entry.p);

    if (n >= (int)sizeof(id)) /* no entry of a stream is that long */
        n = sizeof(id) - 1;
    if (!r->id.p && !copy(out, &r->id, id, (size_t)n, true))
        return false;
    r->version = 1;
    return copy(out, &r->name, "malformed", 9, true) &&
           (keys_only || copy(out, &r->body, stored->j.p, stored->j.n, true));
}

static bool read_texts(const rds_stored *stored, bool keys_only, jobq_batch *out, jobq_record *r,
                       uint8_t *flags)
{
    const unsigned char *head = stored->j.p;
    const char *p = stored->j.p;
    size_t n = stored->j.n, id_n, name_n, unique_n, header_n;

    if (n < HEAD || head[0] != 1)
        return read_malformed(stored, keys_only, out, r);
    id_n = head[2];
    name_n = head[3];
    unique_n = read_le(p + 4, 2);
    header_n = keys_only ? 0 : read_le(p + 10, 4);
    if (n - HEAD < id_n + name_n + unique_n || n - HEAD - id_n - name_n - unique_n < header_n)
        return read_malformed(stored, keys_only, out, r);
    *flags = head[1] & 15;
    r->version = (int32_t)read_le(p + 6, 4);
    p += HEAD;
    n -= HEAD + id_n + name_n + unique_n + header_n;
    if (!copy(out, &r->id, p, id_n, true) || !copy(out, &r->name, p + id_n, name_n, true) ||
        !copy(out, &r->unique, p + id_n + name_n, unique_n, *flags & RDS_UNIQUE))
        return false;
    p += id_n + name_n + unique_n;
    return keys_only || (copy(out, &r->header, p, header_n, *flags & RDS_HEADER) &&
                         copy(out, &r->body, p + header_n, n, *flags & RDS_BODY));
}

static void read_standing(const rds_stored *stored, jobq_record *r)
{
    const char *s = stored->s.p;
    rds_entry entry = {0, 0};

    if (stored->s.n != STANDING) {
        jobq__redis_entry(stored->entry, &entry);
        r->counters.deliveries = r->fence = stored->count;
        r->enqueued_at_ms = r->base_at_ms = r->available_at_ms = (int64_t)entry.ms;
        return;
    }
    r->counters.deliveries = (int64_t)(read_le(s + 1, 8) + (uint64_t)stored->count);
    r->fence = (int64_t)(read_le(s + 9, 8) + (uint64_t)stored->count);
    r->cancel = (uint8_t)s[0] >> 1;
    r->enqueued_at_ms = (int64_t)read_le(s + 17, 8);
    r->base_at_ms = (int64_t)read_le(s + 25, 8);
    r->available_at_ms = (int64_t)read_le(s + 33, 8);
    r->counters.failures = (int64_t)read_le(s + 41, 8);
    r->counters.crashes = (int64_t)read_le(s + 49, 8);
    r->counters.releases = (int64_t)read_le(s + 57, 8);
    r->counters.losses = (int64_t)read_le(s + 65, 8);
    r->counters.exceptions = (int64_t)read_le(s + 73, 8);
    r->counters.parks = (int64_t)read_le(s + 81, 8);
    r->counters.parked_since_ms = (int64_t)read_le(s + 89, 8);
}

int jobq__redis_read_job(const rds_stored *stored, bool keys_only, jobq_batch *out, jobq_record *r,
                         uint8_t *flags_out)
{
    uint8_t flags = 0;

    if (!read_texts(stored, keys_only, out, r, &flags))
        return jobq__error_nomem();
    read_standing(stored, r);
    r->priority = stored->priority;
    if (stored->noted > r->cancel)
        r->cancel = stored->noted;
    if (stored->s.n == STANDING)
        flags |= RDS_MORE;
    if (stored->mark.n == MARK) {
        r->counters.crashes = (int64_t)read_le(stored->mark.p, 8);
        r->counters.losses = (int64_t)read_le((const char *)stored->mark.p + 8, 8);
        r->taken_back = true;
        flags |= RDS_MARKED;
    }
    *flags_out = flags;
    return 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Entry id, delivery count and queue say which hand-out it is; the flags and the priority spare a
 * look when it is settled. */
jobq_lease_token jobq__redis_token(const rds_token *t)
{
    jobq_lease_token token = {
        {(t->entry.ms & 0xffffffffffffu) | (uint64_t)t->flags << 48 | (uint64_t)t->priority << 56,
         t->entry.seq, (uint64_t)t->count << 32 | t->queue}};

    return token;
}

rds_token jobq__redis_token_parts(jobq_lease_token token)
{
    rds_token t = {.entry = {token.word[0] & 0xffffffffffffu, token.word[1]},
                   .count = (uint32_t)(token.word[2] >> 32),
                   .queue = (uint32_t)token.word[2],
                   .priority = (uint8_t)(token.word[0] >> 56),
                   .flags = (uint8_t)(token.word[0] >> 48)};

    return t;
}
