/* SPDX-License-Identifier: MIT
 *
 * The exchange, in one trip: the settle scripts, a script that reserves what was given back and
 * what stands in better streams, and the native read of the stream that gave jobs the last time.
 * Only when that one was not enough and worse streams exist a second trip follows.
 */
#include "driver/redis/reserve.h"

#include <string.h>

#include "util/error.h"

enum { NATIVE_FROM = 2, UNKNOWN_SIZE = 4096 };

static uint32_t hash_queues(const jobq_exchange *x)
{
    uint32_t hash = (uint32_t)x->queue_count;

    for (size_t i = 0; i < x->queue_count; i++)
        hash = hash * 31 + jobq__redis_hash(x->queues[i]);
    return hash;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void add_worker(rds_store *store, jobq_slice worker)
{
    jobq__buf_reset(&store->scratch);
    jobq__buf_addc(&store->scratch, 'w');
    jobq__buf_add(&store->scratch, worker.p, worker.n);
    if (store->scratch.failed)
        store->link.out.failed = true;
    jobq__redis_word(&store->link, store->scratch.p, store->scratch.n);
}

static void ask_script(const rds_reservation *r, size_t want, bool native)
{
    rds_store *store = r->store;
    rds_link *link = &store->link;
    const jobq_exchange *x = r->x;
    size_t queues = want ? x->queue_count : 0;
    size_t bytes = x->want_bytes > r->bytes ? x->want_bytes - r->bytes : x->want_bytes ? 1 : 0;

    jobq__redis_script(store, RDS_SCRIPT_RESERVE, 8 + 2 * queues);
    jobq__redis_word(link, x->worker.p, x->worker.n);
    jobq__redis_number(link, x->lease_ms);
    jobq__redis_number(link, (int64_t)want);
    jobq__redis_number(link, (int64_t)(x->want_taken_back - r->taken));
    jobq__redis_number(link, (int64_t)bytes);
    jobq__redis_number(link, store->started_at_ms);
    jobq__redis_number(link, native ? (int64_t)store->current.queue + 1 : 0);
    jobq__redis_number(link, store->current.priority);
    for (size_t i = 0; i < queues; i++) {
        jobq__redis_word(link, x->queues[i].p, x->queues[i].n);
        jobq__redis_number(link, jobq__redis_hash(x->queues[i]));
    }
}

static void ask_native(const rds_reservation *r)
{
    rds_store *store = r->store;
    rds_link *link = &store->link;

    jobq__redis_begin(link, 9);
    jobq__redis_words(link, "XREADGROUP");
    jobq__redis_words(link, "GROUP");
    jobq__redis_words(link, "workers");
    add_worker(store, r->x->worker);
    jobq__redis_words(link, "COUNT");
    jobq__redis_number(link, (int64_t)jobq__redis_native_count(r));
    jobq__redis_words(link, "STREAMS");
    jobq__buf_reset(&store->scratch);
    jobq__redis_add_base(store, &store->scratch, r->x->queues[store->current.queue]);
    jobq__buf_addf(&store->scratch, ":p%d", store->current.priority);
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    jobq__redis_words(link, ">");
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static bool use_native(const rds_reservation *r)
{
    const rds_current *c = &r->store->current;

    return r->x->want >= NATIVE_FROM && c->known && c->queue_count == r->x->queue_count &&
           c->queues_hash == r->queues_hash;
}

/* Is there a stream behind the one that was read natively? */
static bool has_worse(const rds_reservation *r)
{
    const rds_current *c = &r->store->current;

    for (size_t i = c->queue; i < r->x->queue_count; i++) {
        const char *p = r->used[i].p;

        for (size_t k = 0; k < r->used[i].n; k++)
            if (i > c->queue || p[k] - '0' < c->priority)
                return true;
    }
    return false;
}

/* The next native read: where the last job came from when there was enough, else the worst stream,
 * so that one trip sees them all. */
static void choose_current(rds_reservation *r)
{
    rds_current *c = &r->store->current;

    if (r->count > 0)
        c->body_bytes = (int64_t)(r->bytes / r->count);
    else if (!c->known)
        c->body_bytes = UNKNOWN_SIZE;
    c->known = false;
    c->queue_count = r->x->queue_count;
    c->queues_hash = r->queues_hash;
    if (jobq__redis_is_full(r)) {
        c->known = true;
        c->queue = r->last_queue;
        c->priority = r->last_priority;
        return;
    }
    for (size_t i = r->x->queue_count; i-- > 0 && !c->known;)
        for (size_t k = 0; k < r->used[i].n; k++) {
            int priority = ((const char *)r->used[i].p)[k] - '0';

            if (priority >= 0 && priority < RDS_PRIORITIES &&
                (!c->known || priority < c->priority)) {
                c->known = true;
                c->queue = i;
                c->priority = (uint8_t)priority;
            }
        }
}

static int reserve_rest(rds_reservation *r)
{
    rds_value *value;
    int rc;

    for (size_t i = 0; i < r->x->queue_count; i++) { /* lies in the arena of the last replies */
        r->used[i].p = jobq__arena_copy(&r->store->arena, r->used[i].p, r->used[i].n);
        if (!r->used[i].p)
            return jobq__error_nomem();
    }
    ask_script(r, r->x->want - r->count, false);
    rc = jobq__redis_round(r->store, &value, 1, RDS_READS);
    return rc ? rc : jobq__redis_read_reserved(r, value);
}

static int finish(rds_reservation *r, rds_value **values, bool native)
{
    int rc = jobq__redis_read_reserved(r, values[0]);

    if (rc == 0 && native)
        rc = jobq__redis_read_native(r, values[1]);
    if (rc < 0)
        return rc;
    if (r->over)
        r->exhausted = false;
    jobq__redis_unread_excess(r);
    if (native && !jobq__redis_is_full(r) && r->store->link.fd >= 0 && has_worse(r))
        rc = reserve_rest(r);
    if (rc == 0 && r->x->want && r->x->queue_count)
        choose_current(r);
    return rc;
}

static int exchange(rds_reservation *r, size_t scripts, rds_settling *settling)
{
    jobq_exchange *x = r->x;
    bool wants = x->want > 0 && x->queue_count > 0, native = wants && use_native(r);
    rds_value **values = jobq__arena_alloc(&r->store->arena, (scripts + 2) * sizeof(rds_value *));
    int rc;

    r->used = jobq__arena_alloc(&r->store->arena, (x->queue_count + 1) * sizeof(*r->used));
    if (!values || !r->used)
        return jobq__error_nomem();
    ask_script(r, wants ? x->want : 0, native);
    if (native)
        ask_native(r);
    rc = jobq__redis_round(r->store, values, scripts + 1 + native,
                           x->settle_count ? RDS_WRITES : RDS_READS);
    if (rc == 0) {
        rc = jobq__redis_settle_answers(r->store, x, settling, values);
        x->settled = rc == 0;
        if (rc < 0) {
            struct jobq_error cause;

            jobq__error_save(&cause);
            finish(r, values + scripts, native); /* to know what to give back */
            return jobq__error_restore(&cause);
        }
        rc = finish(r, values + scripts, native);
    }
    return rc;
}

int jobq__redis_exchange(void *handle, jobq_exchange *x)
{
    rds_store *store = handle;
    rds_settling *settling = NULL;
    size_t scripts = 0;
    rds_reservation r = {.store = store, .x = x, .queues_hash = hash_queues(x)};
    int rc = jobq__redis_enter(store);

    x->settled = false;
    if (x->out) {
        r.first = x->out->first;
        r.last = x->out->last;
        r.count_before = x->out->count;
    }
    rc = rc ? rc : jobq__redis_settle_begin(store, x, &settling, &scripts);
    rc = rc ? rc : exchange(&r, scripts, settling);
    if (rc < 0) {
        jobq__redis_unread_all(&r);
        return rc;
    }
    x->now_ms = r.now_ms;
    x->next_due_ms = r.next_due_ms;
    x->exhausted = r.exhausted && x->want > 0 && x->queue_count > 0;
    store->found_empty = x->exhausted;
    return 0;
}
