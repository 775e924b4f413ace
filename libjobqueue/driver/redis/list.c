/* SPDX-License-Identifier: MIT
 *
 * Showing jobs without taking them: one by its id, and lists in pages. The scripts find them
 * (scripts/show.lua says what a shown job is); a cursor is the place of the last one shown.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

/* ---- one shown job --------------------------------------------------------------------------- */

static uint32_t read_length(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Entries with their length before them. */
static int read_history(jobq_slice packed, jobq_batch *out, jobq_record *r)
{
    const unsigned char *p = packed.p;
    size_t left = packed.n;

    if (left < 4)
        return 0;
    r->history = jobq_batch_alloc(out, JOBQ__HISTORY_MAX * sizeof(jobq_slice));
    if (!r->history)
        return jobq__error_nomem();
    while (left >= 4 && r->history_count < JOBQ__HISTORY_MAX) {
        size_t n = read_length(p);

        if (n > left - 4)
            break;
        r->history[r->history_count] = jobq_batch_copy(out, p + 4, n);
        if (!r->history[r->history_count++].p)
            return jobq__error_nomem();
        p += 4 + n;
        left -= 4 + n;
    }
    return 0;
}

/* An error that is there begins with 'e'. */
static int read_trace(rds_walk *walk, jobq_batch *out, jobq_record *r)
{
    jobq_slice error = jobq__redis_text(walk);

    if (error.n > 0) {
        r->error = jobq_batch_copy(out, (const char *)error.p + 1, error.n - 1);
        if (!r->error.p)
            return jobq__error_nomem();
    }
    return read_history(jobq__redis_text(walk), out, r);
}

static int read_shown(const rds_value *value, bool keys_only, jobq_batch *out, jobq_slice *cursor)
{
    jobq_record *r = jobq_batch_add(out);
    rds_walk walk = {value, 0};
    rds_stored stored = {0};
    jobq_slice id, queue, worker;
    int64_t until;
    uint8_t flags;
    int rc;

    if (!r)
        return jobq__error_nomem();
    *cursor = jobq__redis_text(&walk);
    r->state = (uint8_t)jobq__redis_int(&walk);
    queue = jobq__redis_text(&walk);
    id = jobq__redis_text(&walk);
    stored.priority = (uint8_t)jobq__redis_int(&walk);
    stored.entry = jobq__redis_text(&walk);
    stored.count = jobq__redis_int(&walk);
    worker = jobq__redis_text(&walk);
    until = jobq__redis_int(&walk);
    stored.s = jobq__redis_text(&walk);
    r->reason = (uint8_t)jobq__redis_int(&walk);
    r->died_at_ms = jobq__redis_int(&walk);
    stored.j = jobq__redis_text(&walk);
    stored.mark = jobq__redis_text(&walk);
    r->id = jobq_batch_copy(out, id.p, id.n);
    r->queue = jobq_batch_copy(out, queue.p, queue.n);
    rc = r->id.p && r->queue.p ? jobq__redis_read_job(&stored, keys_only, out, r, &flags)
                               : jobq__error_nomem();
    if (rc == 0 && worker.n) {
        r->reserved_until_ms = until;
        r->reserved_by = jobq_batch_copy(out, worker.p, worker.n);
        rc = r->reserved_by.p ? 0 : jobq__error_nomem();
    }
    if (r->state == RDS_DONE)
        r->died_at_ms = 0; /* there it is until when it is kept */
    return rc ? rc : read_trace(&walk, out, r);
}

/* ---- find ------------------------------------------------------------------------------------ */

/* One search looks at so many entries: some 30 ms of the server when there is no such job. */
enum { LOOKED_AT = 40000 };

int jobq__redis_find(void *handle, jobq_slice id, jobq_batch *out)
{
    rds_store *store = handle;
    rds_value *value;
    jobq_slice cursor;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_FIND, 3);
    jobq__redis_word(&store->link, id.p, id.n);
    jobq__redis_number(&store->link, jobq__redis_id_time(id));
    jobq__redis_number(&store->link, LOOKED_AT);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    if (value->count == 0)
        return jobq__refuse_id(id);
    return read_shown(value->item[0], false, out, &cursor);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* "number.number.text", of the dead "number.text". */
static bool is_cursor(jobq_slice text, int numbers)
{
    const char *p = text.p, *end = p + text.n;

    for (int i = 0; i < numbers; i++) {
        const char *start = p;

        while (p < end && *p >= '0' && *p <= '9')
            p++;
        if (p == start || p == end || *p++ != '.')
            return false;
    }
    return p < end;
}

static void ask_page(rds_store *store, const jobq_listing *l, jobq_slice after, size_t limit)
{
    const jobq_slice none = {"", 0};
    rds_link *link = &store->link;
    const bool dead = l->state == RDS_DEAD;
    const jobq_slice queue = l->queue.p ? l->queue : none, name = l->name.p ? l->name : none;

    jobq__redis_script(store, dead ? RDS_SCRIPT_DEAD : RDS_SCRIPT_LIST, dead ? 7 : 5);
    jobq__redis_word(link, queue.p, queue.n);
    if (dead) {
        jobq__redis_word(link, name.p, name.n);
        jobq__redis_number(link, l->reason);
        jobq__redis_number(link, l->older_than_ms > 0 ? l->older_than_ms : 0);
    } else {
        jobq__redis_number(link, l->state);
    }
    jobq__redis_number(link, (int64_t)limit);
    jobq__redis_words(link, l->keys_only ? "1" : "0");
    jobq__redis_word(link, after.p ? after.p : "", after.n);
}

/* Where the listing stands. */
typedef struct {
    size_t shown;
    jobq_slice after; /* to go on from */
    bool more;        /* a further job was seen */
    bool ended;
} page_state;

static int keep(rds_store *store, jobq_slice *to, jobq_slice from)
{
    to->p = jobq__arena_copy(&store->arena, from.p, from.n);
    to->n = from.n;
    return to->p ? 0 : jobq__error_nomem();
}

static int read_page(rds_store *store, jobq_listing *l, const rds_value *page, page_state *at)
{
    int rc = 0;

    at->ended = true;
    for (size_t i = 0; i < page->count && rc == 0; i++) {
        const rds_value *one = page->item[i];
        jobq_slice cursor = {0};

        if (one->type == RDS_TEXT) { /* it has looked at enough for one call */
            at->ended = false;
            rc = keep(store, &at->after, jobq__slice(one->p, one->n));
        } else if (at->shown == l->limit) {
            at->more = true;
        } else {
            rc = read_shown(one, l->keys_only, l->out, &cursor);
            rc = rc ? rc : keep(store, &at->after, cursor);
            if (rc < 0)
                return rc;
            l->last = at->after;
            at->shown++;
        }
    }
    return rc;
}

static int read_pages(rds_store *store, jobq_listing *l)
{
    page_state at = {.after = l->after};
    rds_value *page;
    int rc = 0;

    while (rc == 0 && !at.ended && !at.more) {
        ask_page(store, l, at.after, l->limit - at.shown + 1);
        rc = jobq__redis_call(store, &page, RDS_READS);
        rc = rc ? rc : read_page(store, l, page, &at);
    }
    if (rc == 0 && l->last.p) {
        l->last = jobq_batch_copy(l->out, l->last.p, l->last.n);
        rc = l->last.p ? 0 : jobq__error_nomem();
    }
    if (rc == 0 && at.more)
        l->next = l->last;
    return rc;
}

int jobq__redis_list(void *handle, jobq_listing *l)
{
    rds_store *store = handle;
    int rc;

    l->next = l->last = jobq__slice(NULL, 0);
    if (l->after.p && !is_cursor(l->after, l->state == RDS_DEAD ? 1 : 2))
        return jobq__refuse_cursor();
    rc = jobq__redis_enter(store);
    return rc ? rc : read_pages(store, l);
}
