/* SPDX-License-Identifier: MIT
 *
 * Settling a batch and reserving the next one in a single transaction: by one compound statement
 * where that is possible (compact.c), else statement by statement (settle.c, reserve.c).
 */
#include "driver/mysql/reserve.h"
#include "util/error.h"

typedef struct {
    jobq_exchange *x;
    bool careful;
    jobq_record *last; /* of the batch, before */
    size_t count;
} exchanging;

/* A failed call hands out nothing: what was read into the batch is taken off again. */
static void cut_batch(const exchanging *e)
{
    jobq_batch *out = e->x->out;

    if (!out)
        return;
    out->last = e->last;
    out->count = e->count;
    if (e->last)
        e->last->next = NULL;
    else
        out->first = NULL;
}

static void earlier(int64_t *due, int64_t candidate)
{
    if (*due == 0 || candidate < *due)
        *due = candidate;
}

/* What this very exchange put off counts too. */
static void answer_due(jobq_exchange *x, const mysql_state *state)
{
    x->now_ms = state->now_ms;
    x->control = state->control;
    x->next_due_ms = state->next_due;
    if (state->next_lapse)
        earlier(&x->next_due_ms, state->next_lapse);
    for (size_t i = 0; i < x->settle_count; i++) {
        const jobq_settlement *s = &x->settle[i];

        if (s->op == JOBQ_OP_BACK && s->delay_ms > 0)
            earlier(&x->next_due_ms, state->now_ms + s->delay_ms);
        if ((s->op == JOBQ_OP_DONE || s->op == JOBQ_OP_DEAD) && s->keep_ms > 0)
            earlier(&x->next_due_ms, state->now_ms + s->keep_ms);
    }
}

static int settle_and_reserve(mysql_store *store, exchanging *e, mysql_state *state)
{
    jobq_exchange *x = e->x;
    int rc = jobq__mysql_begin(store);

    for (size_t i = 0; i < x->settle_count; i++)
        if (x->settle[i].op == JOBQ_OP_GIVE_BACK) {
            state->any_taken = true; /* it may be one of them */
            jobq__mysql_reset_hints(store);
        }
    rc = rc ? rc : jobq__mysql_settle(store, x, state, e->careful);
    if (rc == 0 && x->want > 0 && x->queue_count > 0)
        rc = jobq__mysql_reserve(store, x, state);
    return rc;
}

/* Statement by statement. */
static int exchange_at_length(mysql_store *store, exchanging *e, mysql_state *state)
{
    jobq_exchange *x = e->x;
    bool wants = x->want > 0 && x->queue_count > 0;
    /* Nothing to settle: whether anything is ready is asked first, without a transaction. */
    size_t look_at = x->settle_count == 0 && wants ? x->queue_count : 0;
    int rc = jobq__mysql_read_state(store, x->worker, x->queues, look_at, state);

    store->claimed = 0;
    if (rc == 0 && (x->settle_count || (look_at && state->any_ready)))
        rc = settle_and_reserve(store, e, state);
    if (rc == MYSQL_MISMATCH) {
        jobq__mysql_roll_back(store);
        e->careful = true;
        rc = settle_and_reserve(store, e, state);
    }
    if (look_at && !state->any_ready)
        x->exhausted = true;
    return rc;
}

/* What the compact way left of what is wanted. It was a good exchange if this fails. */
static void reserve_more(mysql_store *store, exchanging *e, mysql_state *state)
{
    jobq_exchange more = *e->x;
    exchanging before = {.x = e->x, .last = e->x->out->last, .count = e->x->out->count};
    struct jobq_error saved;
    int rc;

    for (const jobq_record *r = e->last ? e->last->next : more.out->first; r; r = r->next)
        more.want_bytes -= more.want_bytes > r->body.n ? r->body.n : more.want_bytes;
    if (e->x->want_bytes && !more.want_bytes)
        return;
    more.settle_count = 0;
    more.want -= store->claimed;
    jobq__error_save(&saved);
    rc = jobq__mysql_begin(store);
    rc = rc ? rc : jobq__mysql_reserve(store, &more, state);
    rc = rc ? rc : jobq__mysql_commit(store);
    if (rc == 0) {
        e->x->exhausted = more.exhausted;
        return;
    }
    jobq__mysql_roll_back(store);
    store->transient = false;
    cut_batch(&before);
    jobq__error_restore(&saved);
}

static int exchange_compactly(mysql_store *store, exchanging *e, mysql_state *state)
{
    int rc = jobq__mysql_compact(store, e->x, state);

    e->careful |= rc == MYSQL_MISMATCH;
    if (rc <= 0)
        return rc;
    cut_batch(e);
    return exchange_at_length(store, e, state);
}

static int exchange(mysql_store *store, void *payload)
{
    exchanging *e = payload;
    jobq_exchange *x = e->x;
    mysql_state state = {0};
    const bool compact = !e->careful && jobq__mysql_is_compact(store, x);
    int rc;

    cut_batch(e);
    rc = compact ? exchange_compactly(store, e, &state) : exchange_at_length(store, e, &state);
    if (rc == 0 && x->settled && store->claimed >= MYSQL_COMPACT && x->want > store->claimed)
        reserve_more(store, e, &state);
    if (rc == 0 && x->want > 0 && x->queue_count > 0)
        rc = jobq__mysql_weigh(store, x, x->out && x->out->count > e->count, &state);
    if (rc == 0)
        answer_due(x, &state);
    store->transient &= !x->settled;
    return rc;
}

int jobq__mysql_exchange(void *handle, jobq_exchange *x)
{
    mysql_store *store = handle;
    exchanging e = {.x = x};
    int rc;

    x->settled = false;
    if (x->out) {
        e.last = x->out->last;
        e.count = x->out->count;
    }
    rc = jobq__mysql_do(store, x->settle_count ? MYSQL_DOUBTFUL : 0, exchange, &e);
    x->settled |= rc == 0;
    if (rc < 0)
        cut_batch(&e);
    if (rc < 0 || x->settle_count || (x->out && x->out->count > e.count))
        store->gap_ms = 0; /* there is life: poll often again */
    jobq__mysql_note_exchange(store, x, rc, store->gap_ms == 0);
    return rc;
}
