/* SPDX-License-Identifier: MIT
 *
 * Settling a batch and reserving the next one: one statement, one transaction, one trip.
 */
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

#define EXCHANGE                                                                              \
    "SELECT * FROM "                                                                          \
    "@.exchange($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, " \
    "$18)"

enum { IDLE_LINGER_US = 1000000 };
enum { FLAG_TAKEN = 1, FLAG_CANCEL_SHIFT = 1 };
/* Columns of a job's row. */
enum {
    C_META,
    C_QUEUE,
    C_RANK,
    C_AVAILABLE,
    C_SEQ,
    C_ID,
    C_NAME,
    C_VERSION,
    C_UNIQUE,
    C_DELIVERIES,
    C_FAILURES,
    C_CRASHES,
    C_RELEASES,
    C_LOSSES,
    C_EXCEPTIONS,
    C_PARKS,
    C_PARKED_SINCE,
    C_FENCE,
    C_ENQUEUED,
    C_BASE,
    C_FLAGS, /* see the function */
    C_HEADER,
    C_BODY
};

/* ---- the call -------------------------------------------------------------------------------- */

static void put_reservation(pgsql_store *store, pgsql_params *p, const jobq_exchange *x,
                            size_t queues, int64_t nonce)
{
    if (queues == 0) {
        jobq__pgsql_null(p, PG_TEXT_ARRAY);
    } else {
        jobq__pgsql_array(p, PG_TEXT, queues);
        for (size_t i = 0; i < queues; i++)
            jobq__pgsql_put_slice(p, x->queues[i]);
        jobq__pgsql_end(p);
    }
    jobq__pgsql_put_fronts(store, p, x->queues, queues);
    jobq__pgsql_int(p, (int64_t)x->want);
    jobq__pgsql_int(p, (int64_t)x->want_taken_back);
    jobq__pgsql_int(p, (int64_t)x->want_bytes);
    jobq__pgsql_int(p, nonce);
}

/* A worker that was idle until a while ago no longer wants to be told of every push. */
static void put_idle(pgsql_store *store, pgsql_params *p, bool *gone)
{
    *gone = store->idle_until_us && jobq__clock_mono_us() - store->idle_since_us > IDLE_LINGER_US;
    if (*gone)
        jobq__pgsql_int(p, store->idle_key);
    else
        jobq__pgsql_null(p, PG_INT8);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool read_texts(const PGresult *res, int row, jobq_batch *out, jobq_record *r)
{
    return jobq__pgsql_copy(res, row, C_ID, out, &r->id) &&
           jobq__pgsql_copy(res, row, C_NAME, out, &r->name) &&
           jobq__pgsql_copy(res, row, C_UNIQUE, out, &r->unique) &&
           jobq__pgsql_copy(res, row, C_HEADER, out, &r->header) &&
           jobq__pgsql_copy(res, row, C_BODY, out, &r->body);
}

static void read_numbers(const PGresult *res, int row, int64_t nonce, jobq_record *r)
{
    int64_t *const counters[] = {&r->counters.deliveries, &r->counters.failures,
                                 &r->counters.crashes,    &r->counters.releases,
                                 &r->counters.losses,     &r->counters.exceptions,
                                 &r->counters.parks,      &r->counters.parked_since_ms};
    const int64_t flags = jobq__pgsql_get(res, row, C_FLAGS);

    for (int i = 0; i < 8; i++)
        *counters[i] = jobq__pgsql_get(res, row, C_DELIVERIES + i);
    r->priority = (uint8_t)(JOBQ__TOP_PRIORITY - jobq__pgsql_get(res, row, C_RANK));
    r->available_at_ms = jobq__pgsql_get(res, row, C_AVAILABLE);
    r->version = (int32_t)jobq__pgsql_get(res, row, C_VERSION);
    r->counters.deliveries++;
    r->fence = jobq__pgsql_get(res, row, C_FENCE) + 1;
    r->enqueued_at_ms = jobq__pgsql_get(res, row, C_ENQUEUED);
    r->base_at_ms = jobq__pgsql_get(res, row, C_BASE);
    if (r->base_at_ms == 0)
        r->base_at_ms = r->enqueued_at_ms;
    r->taken_back = flags & FLAG_TAKEN;
    r->cancel = (uint8_t)(flags >> FLAG_CANCEL_SHIFT);
    r->state = PG_RESERVED;
    r->token.word[0] = (uint64_t)jobq__pgsql_get(res, row, C_SEQ);
    r->token.word[1] = (uint64_t)r->fence;
    r->token.word[2] = (uint64_t)nonce;
}

/* The jobs of one queue: rows from `row` on. They say where the next reservation begins. */
static int read_queue(const PGresult *res, int *row, const jobq_exchange *x, size_t at,
                      int64_t nonce, pgsql_front *front)
{
    jobq_slice queue = {0};
    int last_rank = -1;

    for (; *row < PQntuples(res) && jobq__pgsql_get(res, *row, C_QUEUE) == (int64_t)at + 1;
         ++*row) {
        jobq_record *r = jobq_batch_add(x->out);

        if (r && !queue.p)
            queue = jobq_batch_copy(x->out, x->queues[at].p, x->queues[at].n);
        if (!r || !queue.p || !read_texts(res, *row, x->out, r))
            return jobq__error_nomem();
        r->queue = queue;
        read_numbers(res, *row, nonce, r);
        last_rank = JOBQ__TOP_PRIORITY - r->priority;
        if (front && !r->taken_back)
            jobq__pgsql_passed(front, last_rank, r->available_at_ms, (int64_t)r->token.word[0],
                               x->now_ms);
    }
    return last_rank;
}

/* `full`: it stopped because it had enough, so lower priorities may not have been read. */
static int read_queues(pgsql_store *store, const PGresult *res, pgsql_array *meta, size_t queues,
                       const jobq_exchange *x, int64_t nonce)
{
    int row = 1;
    bool full = x->want_bytes > 0 || (size_t)PQntuples(res) - 1 >= x->want;

    for (size_t i = 0; i < queues; i++) {
        int64_t rewinds = jobq__pgsql_array_int(meta), us = jobq__pgsql_array_int(meta);
        pgsql_front *front = rewinds >= 0 && queues <= PG_QUEUES_CACHED
                                 ? jobq__pgsql_front(store, x->queues[i])
                                 : NULL;
        int last_rank;

        if (front)
            jobq__pgsql_learn(front, rewinds, us);
        last_rank = read_queue(res, &row, x, i, nonce, front);
        if (last_rank < -1)
            return last_rank;
        if (front && us >= 0 && full && last_rank >= 0)
            jobq__pgsql_unread(front, last_rank);
    }
    return 0;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

/* It stopped for want of jobs, not because it had enough of something. */
static bool has_all(const PGresult *res, const jobq_exchange *x)
{
    size_t got = (size_t)PQntuples(res) - 1, bytes = 0, back = 0;

    for (int row = 1; row < PQntuples(res); row++) {
        bytes += (size_t)PQgetlength(res, row, C_BODY);
        back += (jobq__pgsql_get(res, row, C_FLAGS) & FLAG_TAKEN) != 0;
    }
    return got < x->want && (x->want_bytes == 0 || bytes < x->want_bytes) &&
           back < x->want_taken_back;
}

static int read_answer(pgsql_store *store, const PGresult *res, jobq_exchange *x, size_t queues,
                       int64_t nonce)
{
    pgsql_array meta;
    int64_t delayed_ms;
    int rc;

    if (PQntuples(res) < 1)
        return jobq__error_set_driver(JOBQ_EPROTO, 0, "postgresql", 0,
                                      "postgresql: an exchange without an answer");
    meta = jobq__pgsql_array_of(res, 0, C_META);
    x->now_ms = jobq__pgsql_array_int(&meta);
    x->next_due_ms = jobq__pgsql_array_int(&meta);
    delayed_ms = jobq__pgsql_array_int(&meta);
    x->control = store->control = jobq__pgsql_array_int(&meta);
    rc = read_queues(store, res, &meta, queues, x, nonce);
    x->exhausted = queues > 0 && has_all(res, x);
    if (rc == 0)
        jobq__pgsql_note_exchange(store, x, (size_t)PQntuples(res) - 1, delayed_ms);
    return rc ? rc : jobq__pgsql_read_settled(&meta, x);
}

/* Rule C6: nothing came, though something is ready that a foreign transaction has locked. */
static int ask_passed_by(pgsql_store *store, jobq_exchange *x, size_t queues,
                         const jobq_record *last)
{
    int rc;

    if (!x->ask_passed_by || queues == 0 || !x->out || x->out->last != last)
        return 0;
    rc = jobq__pgsql_is_any_ready(store, x->queues, queues, &x->passed_by);
    if (x->passed_by)
        x->exhausted = false;
    return rc;
}

static int exchange(pgsql_store *store, jobq_exchange *x)
{
    const jobq_record *last = x->out ? x->out->last : NULL;
    size_t queues = x->want > 0 ? x->queue_count : 0;
    int64_t nonce = (int64_t)(jobq__rng_u64() >> 2);
    pgsql_params p = {0};
    PGresult *res;
    bool gone;
    int rc;

    jobq__pgsql_text(&p, x->worker);
    jobq__pgsql_int(&p, x->lease_ms);
    jobq__pgsql_put_settlements(&p, x->settle, x->settle_count);
    put_reservation(store, &p, x, queues, nonce);
    jobq__pgsql_int(&p, jobq__pgsql_due_floor(store));
    put_idle(store, &p, &gone);
    jobq__pgsql_put_follows(&p, x->settle, x->settle_count);
    jobq__pgsql_put_outcomes(&p, x->settle, x->settle_count);
    rc = jobq__pgsql_run(store, ST_EXCHANGE, EXCHANGE, &p, x->settle_count > 0, &res);
    if (rc < 0)
        return rc;
    x->settled = true;
    if (gone)
        store->idle_until_us = 0;
    rc = read_answer(store, res, x, queues, nonce);
    PQclear(res);
    return rc ? rc : ask_passed_by(store, x, queues, last);
}

/* A failed call hands out nothing: what was read into the batch is taken off again. */
static void take_off(jobq_batch *out, jobq_record *last, size_t count)
{
    out->last = last;
    out->count = count;
    if (last)
        last->next = NULL;
    else
        out->first = NULL;
}

int jobq__pgsql_exchange(void *handle, jobq_exchange *x)
{
    pgsql_store *store = handle;
    jobq_record *last = x->out ? x->out->last : NULL;
    size_t count = x->out ? x->out->count : 0;
    int rc = jobq__pgsql_enter(store, false);

    x->settled = false;
    if (rc < 0)
        return rc;
    rc = exchange(store, x);
    if (rc < 0 && x->out)
        take_off(x->out, last, count);
    return jobq__pgsql_leave(store, rc);
}
