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

/* One that is there begins with a letter. */
static int read_text(jobq_slice text, jobq_batch *out, jobq_slice *to)
{
    if (text.n == 0)
        return 0;
    *to = jobq_batch_copy(out, (const char *)text.p + 1, text.n - 1);
    return to->p ? 0 : jobq__error_nomem();
}

static int read_trace(rds_walk *walk, jobq_batch *out, jobq_record *r)
{
    int rc = read_text(jobq__redis_text(walk), out, &r->error);

    return rc ? rc : read_history(jobq__redis_text(walk), out, r);
}

static int read_shown(const rds_value *value, bool keys_only, jobq_batch *out, jobq_slice *cursor)
{
    jobq_record *r = jobq_batch_add(out);
    rds_walk walk = {value, 0}, trace;
    rds_stored stored = {0};
    jobq_slice id, queue, worker, outcome;
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
    trace = walk;
    walk.at += 2;
    stored.noted = (uint8_t)jobq__redis_int(&walk);
    r->keep_until_ms = jobq__redis_int(&walk);
    outcome = jobq__redis_text(&walk);
    r->id = jobq_batch_copy(out, id.p, id.n);
    r->queue = jobq_batch_copy(out, queue.p, queue.n);
    rc = r->id.p && r->queue.p ? jobq__redis_read_job(&stored, keys_only, out, r, &flags)
                               : jobq__error_nomem();
    if (rc == 0 && worker.n) {
        r->reserved_until_ms = until;
        r->reserved_by = jobq_batch_copy(out, worker.p, worker.n);
        rc = r->reserved_by.p ? 0 : jobq__error_nomem();
    }
    if (r->state != RDS_DEAD)
        r->died_at_ms = 0; /* of done ones it is until when it is kept, of delayed ones a mark */
    rc = rc ? rc : read_text(outcome, out, &r->outcome);
    return rc ? rc : read_trace(&trace, out, r);
}

/* ---- find ------------------------------------------------------------------------------------ */

/* One search looks at so many entries: some 30 ms of the server when there is no such job. */
enum { LOOKED_AT = 40000 };

typedef struct {
    jobq_slice id;
    size_t share;
    jobq_batch *out;
    bool found;
} search;

static void ask_find(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const search *s = with;

    jobq__redis_script(store, RDS_SCRIPT_FIND, queues, n, 4);
    jobq__redis_word(&store->link, queues[0].p, queues[0].n);
    jobq__redis_word(&store->link, s->id.p, s->id.n);
    jobq__redis_number(&store->link, jobq__redis_id_time(s->id));
    jobq__redis_number(&store->link, (int64_t)s->share);
}

static int read_find(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                     void *with)
{
    search *s = with;
    jobq_slice cursor;

    (void)store;
    (void)queues;
    (void)n;
    if (answer->count == 0 || s->found)
        return 0;
    s->found = true;
    return read_shown(answer->item[0], false, s->out, &cursor);
}

int jobq__redis_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    static const rds_visit visit = {.ask = ask_find, .read = read_find, .kind = RDS_READS};
    rds_store *store = handle;
    search s = {.id = id, .out = out};
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    if (queue.p)
        queues = (rds_names){&queue, 1};
    else
        rc = rc ? rc : jobq__redis_all_queues(store, &queues);
    if (rc < 0)
        return rc;
    s.share = jobq__redis_share(LOOKED_AT, queues.count);
    rc = jobq__redis_visit(store, &visit, &queues, &s);
    return rc || s.found ? rc : jobq__refuse_id(id);
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

/* Where the listing stands. Pages of dead jobs may come from several servers, newest first each. */
typedef struct {
    jobq_listing *l;
    size_t shown;
    jobq_slice after;         /* to go on from */
    const rds_value **pages;  /* of this round */
    size_t *at, count, limit; /* how far each was read; pages; asked for at most */
    bool more;                /* a further job was seen */
    bool ended;
} page_state;

static void ask_dead(rds_store *store, const page_state *s, const jobq_slice *queues, size_t n)
{
    const jobq_listing *l = s->l;
    rds_link *link = &store->link;

    jobq__redis_script(store, RDS_SCRIPT_DEAD, queues, n, 6 + n);
    jobq__redis_word(link, l->name.p ? l->name.p : "", l->name.n);
    jobq__redis_number(link, l->reason);
    jobq__redis_number(link, l->older_than_ms > 0 ? l->older_than_ms : 0);
    jobq__redis_number(link, (int64_t)s->limit);
    jobq__redis_words(link, l->keys_only ? "1" : "0");
    jobq__redis_word(link, s->after.p ? s->after.p : "", s->after.n);
    for (size_t i = 0; i < n; i++)
        jobq__redis_word(link, queues[i].p, queues[i].n);
}

static void ask_page(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const page_state *s = with;
    rds_link *link = &store->link;

    if (s->l->state == RDS_DEAD) {
        ask_dead(store, s, queues, n);
        return;
    }
    jobq__redis_script(store, RDS_SCRIPT_LIST, queues, n, 5);
    jobq__redis_word(link, queues[0].p, queues[0].n);
    jobq__redis_number(link, s->l->state);
    jobq__redis_number(link, (int64_t)s->limit);
    jobq__redis_words(link, s->l->keys_only ? "1" : "0");
    jobq__redis_word(link, s->after.p ? s->after.p : "", s->after.n);
}

static int take_page(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                     void *with)
{
    page_state *s = with;

    (void)store;
    (void)queues;
    (void)n;
    s->at[s->count] = 0;
    s->pages[s->count++] = answer;
    return 0;
}

static int keep(rds_store *store, jobq_slice *to, jobq_slice from)
{
    to->p = jobq__arena_copy(&store->arena, from.p, from.n);
    to->n = from.n;
    return to->p ? 0 : jobq__error_nomem();
}

/* What a page has next: a job's cursor, or where to go on when it had looked at enough. */
static jobq_slice next_cursor(const page_state *s, size_t page)
{
    const rds_value *one;
    rds_walk walk;

    if (s->at[page] >= s->pages[page]->count)
        return (jobq_slice){0};
    one = s->pages[page]->item[s->at[page]];
    walk = (rds_walk){one, 0};
    return one->type == RDS_TEXT ? jobq__slice(one->p, one->n) : jobq__redis_text(&walk);
}

/* "time.id", the later one first, of equal times the larger id. */
static bool stands_before(jobq_slice a, jobq_slice b)
{
    const char *dot_a = memchr(a.p, '.', a.n), *dot_b = memchr(b.p, '.', b.n);
    size_t time_a = dot_a ? (size_t)(dot_a - (const char *)a.p) : a.n;
    size_t time_b = dot_b ? (size_t)(dot_b - (const char *)b.p) : b.n;
    int order;

    if (time_a != time_b)
        return time_a > time_b;
    order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return order ? order > 0 : a.n > b.n;
}

/* The page whose next job comes first; -1: none has one. */
static int best_page(const page_state *s)
{
    jobq_slice best_cursor = {0};
    int best = -1;

    for (size_t i = 0; i < s->count; i++) {
        jobq_slice cursor = next_cursor(s, i);

        if (cursor.p && (best < 0 || stands_before(cursor, best_cursor))) {
            best = (int)i;
            best_cursor = cursor;
        }
    }
    return best;
}

static int read_pages(rds_store *store, page_state *s)
{
    int rc = 0, page;

    s->ended = true;
    while (rc == 0 && s->ended && !s->more && (page = best_page(s)) >= 0) {
        const rds_value *one = s->pages[page]->item[s->at[page]++];
        jobq_slice cursor = {0};

        if (one->type == RDS_TEXT) { /* it has looked at enough for one call */
            s->ended = false;
            rc = keep(store, &s->after, jobq__slice(one->p, one->n));
        } else if (s->shown == s->l->limit) {
            s->more = true;
        } else {
            rc = read_shown(one, s->l->keys_only, s->l->out, &cursor);
            rc = rc ? rc : keep(store, &s->after, cursor);
            if (rc < 0)
                return rc;
            s->l->last = s->after;
            s->shown++;
        }
    }
    return rc;
}

static int list(rds_store *store, jobq_listing *l, const rds_names *queues)
{
    static const rds_visit visit = {
        .ask = ask_page, .read = take_page, .together = true, .kind = RDS_READS};
    page_state s = {.l = l, .after = l->after};
    int rc = 0;

    s.pages = jobq__arena_alloc(&store->arena, (queues->count + 1) * sizeof(rds_value *));
    s.at = jobq__arena_alloc(&store->arena, (queues->count + 1) * sizeof(*s.at));
    if (!s.pages || !s.at)
        return jobq__error_nomem();
    while (rc == 0 && !s.ended && !s.more) {
        s.count = 0;
        s.limit = l->limit - s.shown + 1;
        rc = jobq__redis_visit(store, &visit, queues, &s);
        rc = rc ? rc : read_pages(store, &s);
    }
    if (rc == 0 && l->last.p) {
        l->last = jobq_batch_copy(l->out, l->last.p, l->last.n);
        rc = l->last.p ? 0 : jobq__error_nomem();
    }
    if (rc == 0 && s.more)
        l->next = l->last;
    return rc;
}

int jobq__redis_list(void *handle, jobq_listing *l)
{
    rds_store *store = handle;
    rds_names queues = {&l->queue, 1};
    int rc;

    l->next = l->last = jobq__slice(NULL, 0);
    if (l->after.p && !is_cursor(l->after, l->state == RDS_DEAD ? 1 : 2))
        return jobq__refuse_cursor();
    rc = jobq__redis_enter(store);
    if (rc == 0 && !l->queue.p)
        rc = jobq__redis_all_queues(store, &queues);
    return rc ? rc : list(store, l, &queues);
}
