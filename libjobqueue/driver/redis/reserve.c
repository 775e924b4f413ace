/* SPDX-License-Identifier: MIT
 *
 * What a reservation brought: records for what was wanted, and the rest goes back unread.
 */
#include "driver/redis/reserve.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"

bool jobq__redis_is_full(const rds_reservation *r)
{
    const jobq_exchange *x = r->x;

    return r->count >= x->want || (r->count > 0 && x->want_bytes > 0 && r->bytes >= x->want_bytes);
}

/* COUNT knows nothing of bytes: as many as the size of the last ones suggests. */
size_t jobq__redis_native_count(const rds_reservation *r)
{
    size_t mean = (size_t)r->store->current.body_bytes;
    size_t fit = r->x->want_bytes ? r->x->want_bytes / (mean ? mean : 1) + 1 : r->x->want;

    return fit < r->x->want ? fit : r->x->want;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* One entry: handed out, or over what was wanted. */
static int take(rds_reservation *r, size_t queue, const rds_stored *stored)
{
    jobq_exchange *x = r->x;
    rds_token token = {.count = (uint32_t)stored->count,
                       .queue = jobq__redis_hash(x->queues[queue]),
                       .priority = stored->priority};
    jobq_record *record;
    int rc;

    if (!jobq__redis_entry(stored->entry, &token.entry))
        return jobq__redis_nonsense(r->store);
    if (jobq__redis_is_full(r) || !r->recorded) {
        r->excess[r->over++] = token;
        return 0;
    }
    record = jobq_batch_add(x->out);
    if (!record)
        return jobq__error_nomem();
    rc = jobq__redis_read_job(stored, false, x->out, record, &token.flags);
    if (rc < 0)
        return rc;
    record->queue = jobq_batch_copy(x->out, x->queues[queue].p, x->queues[queue].n);
    record->token = jobq__redis_token(&token);
    record->state = RDS_RESERVED;
    r->count++;
    r->bytes += record->body.n;
    r->taken += record->taken_back;
    r->last_queue = queue;
    r->last_priority = stored->priority;
    return record->queue.p ? 0 : jobq__error_nomem();
}

void jobq__redis_note_due(rds_reservation *r, int64_t now_ms, int64_t due_ms)
{
    int64_t left = due_ms > now_ms ? due_ms - now_ms : 0;

    if (r->now_ms == 0)
        r->now_ms = now_ms;
    if (due_ms > 0 && (r->due_ms < 0 || left < r->due_ms))
        r->due_ms = left;
}

int jobq__redis_read_reserved(rds_reservation *r, const rds_value *value)
{
    rds_walk walk = {value, 0};
    int64_t flags, now_ms;
    int rc = 0;

    if (value->type != RDS_LIST)
        return jobq__redis_refused(r->store, value);
    now_ms = jobq__redis_int(&walk);
    jobq__redis_note_due(r, now_ms, jobq__redis_int(&walk));
    flags = jobq__redis_int(&walk);
    r->recorded = true; /* the script sees to that */
    r->exhausted = r->exhausted && flags & 2;
    for (size_t i = 0; i < r->span; i++)
        r->used[r->from + i] = jobq__redis_text(&walk);
    while (jobq__redis_more(&walk) && rc == 0) {
        rds_stored stored = {0};
        size_t queue = (size_t)jobq__redis_int(&walk);

        stored.priority = (uint8_t)jobq__redis_int(&walk);
        stored.entry = jobq__redis_text(&walk);
        stored.count = jobq__redis_int(&walk);
        stored.j = jobq__redis_text(&walk);
        stored.s = jobq__redis_text(&walk);
        stored.mark = jobq__redis_text(&walk);
        stored.noted = (uint8_t)jobq__redis_int(&walk);
        rc = queue < r->span ? take(r, r->from + queue, &stored) : jobq__redis_nonsense(r->store);
    }
    r->recorded = flags & 1;
    r->begun = r->begun || flags & 4;
    return rc;
}

/* Our fields; an entry without them is all body. */
static void read_fields(const rds_value *fields, rds_stored *stored)
{
    static const char name[] = "js";

    for (size_t i = 0; i + 1 < fields->count; i += 2) {
        const rds_value *key = fields->item[i], *value = fields->item[i + 1];
        const char *which = key->n == 1 ? strchr(name, key->p[0]) : NULL;

        if (which && *which)
            *(*which == 'j' ? &stored->j : &stored->s) = jobq__slice(value->p, value->n);
        else if (!stored->j.p)
            stored->j = jobq__slice(value->p, value->n);
    }
    if (!stored->j.p)
        stored->j = jobq__slice("", 0);
}

static int read_entry(rds_reservation *r, const rds_value *entry)
{
    rds_stored stored = {.priority = r->store->current.priority, .count = 1};

    if (entry->count != 2)
        return jobq__redis_nonsense(r->store);
    stored.entry = jobq__slice(entry->item[0]->p, entry->item[0]->n);
    read_fields(entry->item[1], &stored);
    return take(r, r->store->current.queue, &stored);
}

/* [[stream, [[id, [field, value, ...]], ...]]], or nil. The stream may have been removed. */
int jobq__redis_read_native(rds_reservation *r, const rds_value *value)
{
    const rds_value *entries;
    int rc = 0;

    if (value->type == RDS_NIL ||
        (value->type == RDS_ERROR && strncmp(value->p, "NOGROUP", 7) == 0))
        return 0;
    if (value->type == RDS_ERROR)
        return jobq__redis_refused(r->store, value);
    if (value->count != 1 || value->item[0]->count != 2)
        return jobq__redis_nonsense(r->store);
    entries = value->item[0]->item[1];
    r->excess =
        jobq__arena_alloc(&r->store->arena, (entries->count + r->x->want) * sizeof(rds_token));
    if (!r->excess)
        return jobq__error_nomem();
    if (entries->count >= jobq__redis_native_count(r))
        r->exhausted = false;
    for (size_t i = 0; i < entries->count && rc == 0; i++)
        rc = read_entry(r, entries->item[i]);
    return rc;
}

/* ---- what was read and is not wanted --------------------------------------------------------- */

/* As if it had never been read: nobody has seen its token. */
static void add_unread(rds_store *store, jobq_slice queue, const rds_token *t)
{
    rds_link *link = &store->link;
    char entry[48];

    jobq__redis_begin(link, 9);
    jobq__redis_words(link, "XCLAIM");
    jobq__buf_reset(&store->scratch);
    jobq__redis_add_base(store, &store->scratch, queue);
    jobq__buf_addf(&store->scratch, ":p%d", t->priority);
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    jobq__redis_words(link, "workers");
    jobq__redis_words(link, t->flags & RDS_MARKED ? "taken" : "back");
    jobq__redis_words(link, "0");
    snprintf(entry, sizeof(entry), "%llu-%llu", (unsigned long long)t->entry.ms,
             (unsigned long long)t->entry.seq);
    jobq__redis_words(link, entry);
    jobq__redis_words(link, "RETRYCOUNT");
    jobq__redis_number(link, t->count - 1);
    jobq__redis_words(link, "JUSTID");
}

static void send_unread(rds_store *store, size_t n)
{
    rds_value **values = jobq__arena_alloc(&store->arena, n * sizeof(rds_value *));
    struct jobq_error cause;

    jobq__error_save(&cause);
    if (values)
        jobq__redis_round(store, values, n, RDS_READS);
    else
        jobq__redis_drop(store);
    jobq__error_restore(&cause);
}

void jobq__redis_unread_excess(rds_reservation *r)
{
    if (r->over == 0)
        return;
    for (size_t i = 0; i < r->over; i++)
        add_unread(r->store, r->x->queues[r->store->current.queue], &r->excess[i]);
    send_unread(r->store, r->over);
    r->over = 0;
}

/* The call failed: nothing was handed out. */
void jobq__redis_unread_all(rds_reservation *r)
{
    jobq_batch *out = r->x->out;
    size_t n = 0;

    if (!out)
        return;
    for (jobq_record *record = r->last ? r->last->next : out->first; record;
         record = record->next) {
        rds_token token = jobq__redis_token_parts(record->token);

        if (token.count && jobq__redis_is_up(r->store)) {
            add_unread(r->store, record->queue, &token);
            n++;
        }
    }
    if (n)
        send_unread(r->store, n);
    out->first = r->first;
    out->last = r->last;
    out->count = r->count_before;
    if (out->last)
        out->last->next = NULL;
}
