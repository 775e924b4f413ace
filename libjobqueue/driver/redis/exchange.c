/* SPDX-License-Identifier: MIT
 *
 * The exchange, in one trip: the settle scripts, a script that reserves what was given back and
 * what stands in better streams, and the native read of the stream that gave jobs the last time.
 * Only when that one was not enough and worse streams exist a second trip follows. On a Cluster no
 * script sees two queues: the first one is asked in the trip of the settlements, each further one
 * in a trip of its own, until there is enough.
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

/* The lease that the worker has by its last renewal holds in a queue that is new to it. */
static void add_lease(rds_store *store, const jobq_exchange *x)
{
    const rds_worker *worker = jobq__redis_worker(store, x->worker, true);

    jobq__redis_word(&store->link, x->worker.p, x->worker.n);
    jobq__redis_number(&store->link, x->lease_ms);
    jobq__redis_number(&store->link, worker ? worker->lease_ms : 0);
    jobq__redis_number(&store->link, worker ? worker->until_ms : 0);
}

static void ask_script(const rds_reservation *r, size_t want, bool native)
{
    rds_store *store = r->store;
    rds_link *link = &store->link;
    const jobq_exchange *x = r->x;
    size_t bytes = x->want_bytes > r->bytes ? x->want_bytes - r->bytes : x->want_bytes ? 1 : 0;

    jobq__redis_script(store, RDS_SCRIPT_RESERVE, x->queues + r->from, r->span, 11);
    add_lease(store, x);
    jobq__redis_number(link, (int64_t)want);
    jobq__redis_number(link, (int64_t)(x->want_taken_back - r->taken));
    jobq__redis_number(link, (int64_t)bytes);
    jobq__redis_number(link, store->started_at_ms);
    jobq__redis_number(link, native ? (int64_t)(store->current.queue - r->from) + 1 : 0);
    jobq__redis_number(link, store->current.priority);
    jobq__redis_number(link, (int64_t)r->span);
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
           c->queues_hash == r->queues_hash && c->queue >= r->from && c->queue < r->from + r->span;
}

/* Is there a stream behind the one that was read natively? */
static bool has_worse(const rds_reservation *r)
{
    const rds_current *c = &r->store->current;

    for (size_t i = c->queue; i < r->from + r->span; i++) {
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

/* The priorities in use lie in the arena of the last replies. */
static int keep_used(rds_reservation *r)
{
    for (size_t i = r->from; i < r->from + r->span; i++) {
        r->used[i].p = jobq__arena_copy(&r->store->arena, r->used[i].p, r->used[i].n);
        if (!r->used[i].p)
            return jobq__error_nomem();
    }
    return 0;
}

static int reserve_rest(rds_reservation *r)
{
    rds_value *value;
    int rc = keep_used(r);

    if (rc < 0)
        return rc;
    ask_script(r, r->x->want - r->count, false);
    rc = jobq__redis_round(r->store, &value, 1, RDS_READS);
    return rc ? rc : jobq__redis_read_reserved(r, value);
}

static int read_control(rds_store *store, const rds_value *value)
{
    if (value->type == RDS_ERROR)
        return jobq__redis_refused(store, value);
    store->control = jobq__redis_number_of(value);
    return 0;
}

static int read_window(rds_reservation *r, rds_value **values, bool native)
{
    int rc = jobq__redis_read_reserved(r, values[0]);

    if (rc == 0 && native)
        rc = jobq__redis_read_native(r, values[1]);
    if (rc < 0)
        return rc;
    if (r->over) {
        r->exhausted = false;
        rc = keep_used(r);
    }
    jobq__redis_unread_excess(r);
    if (rc == 0 && native && !jobq__redis_is_full(r) && jobq__redis_is_up(r->store) && has_worse(r))
        rc = reserve_rest(r);
    return rc;
}

/* Queues behind the ones asked so far. */
static int reserve_further(rds_reservation *r)
{
    rds_value *values[2];
    int rc = 0;

    while (rc == 0 && !jobq__redis_is_full(r) && r->from + r->span < r->x->queue_count) {
        bool native;

        rc = keep_used(r);
        if (rc < 0)
            return rc;
        r->from += r->span;
        native = use_native(r);
        ask_script(r, r->x->want - r->count, native);
        if (native)
            ask_native(r);
        rc = jobq__redis_round(r->store, values, 1 + native, RDS_READS);
        rc = rc ? rc : read_window(r, values, native);
    }
    if (r->from + r->span < r->x->queue_count)
        r->exhausted = false;
    return rc;
}

static int finish(rds_reservation *r, rds_value **values, bool native)
{
    const bool wants = r->x->want > 0;
    int rc = read_window(r, values, native);

    if (rc == 0 && wants)
        rc = reserve_further(r);
    if (rc == 0 && wants)
        choose_current(r);
    return rc;
}

/* What the first trip asks behind the settlements: the control number; then the first queues, or
 * when there are none, the clock. */
static void ask_first(const rds_reservation *r, bool native)
{
    const jobq_exchange *x = r->x;

    jobq__redis_ask(r->store, "GET", ":control");
    if (x->queue_count == 0) {
        jobq__redis_begin(&r->store->link, 1);
        jobq__redis_words(&r->store->link, "TIME");
        return;
    }
    ask_script(r, x->want, native);
    if (native)
        ask_native(r);
}

static int read_first(rds_reservation *r, rds_value **values, bool native)
{
    rds_walk walk = {values[1], 0};
    int rc = read_control(r->store, values[0]);

    if (rc < 0)
        return rc;
    if (r->x->queue_count > 0)
        return finish(r, values + 1, native);
    jobq__redis_note_due(r, jobq__redis_time(&walk), 0);
    return 0;
}

static int exchange(rds_reservation *r, size_t scripts, rds_settling *settling)
{
    jobq_exchange *x = r->x;
    bool native = use_native(r);
    rds_value **values = jobq__arena_alloc(&r->store->arena, (scripts + 3) * sizeof(rds_value *));
    struct jobq_error cause;
    int rc;

    r->used = jobq__arena_alloc(&r->store->arena, (x->queue_count + 1) * sizeof(*r->used));
    if (!values || !r->used)
        return jobq__error_nomem();
    ask_first(r, native);
    rc = jobq__redis_round(r->store, values, scripts + 2 + native,
                           x->settle_count ? RDS_WRITES : RDS_READS);
    if (rc < 0)
        return rc;
    rc = jobq__redis_settle_answers(r, settling, values);
    x->settled = rc == 0;
    if (rc == 0)
        return read_first(r, values + scripts, native);
    jobq__error_save(&cause);
    read_first(r, values + scripts, native); /* to know what to give back */
    return jobq__error_restore(&cause);
}

static int prepare(rds_reservation *r)
{
    rds_store *store = r->store;
    jobq_exchange *x = r->x;

    r->queues_hash = hash_queues(x);
    r->span = store->cluster && x->queue_count > 1 ? 1 : x->queue_count;
    r->due_ms = -1;
    r->exhausted = true;
    if (x->out) {
        r->first = x->out->first;
        r->last = x->out->last;
        r->count_before = x->out->count;
    }
    if (store->current.known && store->current.queues_hash == r->queues_hash)
        return 0; /* the same queues as the last time */
    return x->want ? jobq__redis_know(store, x->queues, x->queue_count) : 0;
}

/* ---- the worker's other records -------------------------------------------------------------- */

static void ask_revival(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const jobq_exchange *x = with;

    jobq__redis_script(store, RDS_SCRIPT_REVIVE, queues, n, 2);
    jobq__redis_word(&store->link, x->worker.p, x->worker.n);
    jobq__redis_number(&store->link, x->lease_ms);
}

/* A worker lives in all its queues or in none. */
static int keep_lease(rds_reservation *r)
{
    static const rds_visit visit = {
        .ask = ask_revival, .read = jobq__redis_read_nothing, .kind = RDS_READS};
    rds_worker *worker = jobq__redis_worker(r->store, r->x->worker, true);
    rds_names queues = {0};
    int rc = 0;

    if (!worker)
        return jobq__error_nomem();
    jobq__redis_known_queues(r->store, &queues);
    if (worker->until_ms > 0)
        rc = jobq__redis_visit(r->store, &visit, &queues, r->x);
    worker->lease_ms = r->x->lease_ms;
    worker->until_ms = r->now_ms + r->x->lease_ms;
    return rc;
}

int jobq__redis_exchange(void *handle, jobq_exchange *x)
{
    rds_store *store = handle;
    rds_settling *settling = NULL;
    size_t scripts = 0;
    rds_reservation r = {.store = store, .x = x};
    int rc = jobq__redis_enter_all(store);

    x->settled = false;
    rc = rc ? rc : prepare(&r);
    rc = rc ? rc : jobq__redis_settle_begin(store, x, &settling, &scripts);
    rc = rc ? rc : exchange(&r, scripts, settling);
    if (rc == 0 && r.begun)
        rc = keep_lease(&r);
    if (rc < 0) {
        jobq__redis_unread_all(&r);
        return rc;
    }
    x->now_ms = r.now_ms;
    x->control = store->control;
    x->next_due_ms = r.due_ms < 0 ? 0 : r.now_ms + r.due_ms;
    if (x->queue_count > 0)
        store->next_due_ms = x->next_due_ms;
    else if (store->next_due_ms > 0 && (x->next_due_ms == 0 || store->next_due_ms < x->next_due_ms))
        x->next_due_ms =
            store->next_due_ms; /* of paused queues nobody asks: what was known stands */
    x->exhausted = r.exhausted && x->want > 0 && x->queue_count > 0;
    store->found_empty = x->exhausted;
    return 0;
}
