/* SPDX-License-Identifier: MIT
 *
 * Where reading begins. A row that was taken stays in the index until vacuum has been by, and as
 * long as anybody's old snapshot is open vacuum cannot. So a reservation begins behind the last job
 * it took, per queue and priority, and not at the line's start, where it would wade through
 * everything that ever went by.
 *
 * Jobs that come to stand before that place are found because whoever puts them there raises the
 * queue's `rewinds` in the same transaction (given back, promoted late). Pushes whose transaction
 * took long to commit raise nothing: for them the floor stays LAG_MS behind the clock, and the line
 * is read from its start every REREAD_US, and at once when the shorter look did not find enough;
 * but for looks from the start no more than one part in SHARE of the time is spent.
 */
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/clock.h"

enum { LAG_MS = 1000, REREAD_US = 2000000, SHARE = 20, FRONT_NUMBERS = 2 + 2 * PG_RANKS };

void jobq__pgsql_forget_fronts(pgsql_store *store)
{
    store->front_count = 0;
    store->due_floor = -1;
    store->due_start_us = store->due_cost_us = 0;
}

pgsql_front *jobq__pgsql_front(pgsql_store *store, jobq_slice queue)
{
    size_t n = store->front_count < PG_QUEUES_CACHED ? store->front_count : PG_QUEUES_CACHED;
    pgsql_front *front;

    for (size_t i = 0; i < n; i++)
        if (store->fronts[i].n == queue.n && memcmp(store->fronts[i].name, queue.p, queue.n) == 0)
            return &store->fronts[i];
    if (queue.n > sizeof(front->name))
        return NULL;
    front = &store->fronts[store->front_count++ % PG_QUEUES_CACHED];
    memset(front, 0, sizeof(*front));
    memcpy(front->name, queue.p, queue.n);
    front->n = queue.n;
    for (int i = 0; i < PG_RANKS; i++)
        front->at[i] = front->seq[i] = -1;
    return front;
}

static bool may_start(const pgsql_front *front, int64_t now_us)
{
    return now_us - front->start_us >= front->cost_us * SHARE;
}

static bool must_start(const pgsql_front *front, int64_t now_us)
{
    return !front->known || (now_us - front->start_us >= REREAD_US && may_start(front, now_us));
}

void jobq__pgsql_put_fronts(pgsql_store *store, pgsql_params *p, const jobq_slice *queues, size_t n)
{
    int64_t now_us = jobq__clock_mono_us();

    if (n == 0 || n > PG_QUEUES_CACHED) { /* always from the start */
        jobq__pgsql_null(p, PG_INT8_ARRAY);
        return;
    }
    jobq__pgsql_array(p, PG_INT8, n * FRONT_NUMBERS);
    for (size_t i = 0; i < n; i++) {
        const pgsql_front *front = jobq__pgsql_front(store, queues[i]);
        bool start = !front || must_start(front, now_us);

        jobq__pgsql_put_int8(p, start ? -1 : front->rewinds);
        jobq__pgsql_put_int8(p, start || may_start(front, now_us));
        for (int rank = 0; rank < PG_RANKS; rank++) {
            jobq__pgsql_put_int8(p, start ? -1 : front->at[rank]);
            jobq__pgsql_put_int8(p, start ? -1 : front->seq[rank]);
        }
    }
    jobq__pgsql_end(p);
}

void jobq__pgsql_learn(pgsql_front *front, int64_t rewinds, int64_t us)
{
    if (us >= 0) {
        front->start_us = jobq__clock_mono_us();
        front->cost_us = us;
        front->known = true;
    }
    front->rewinds = rewinds;
}

void jobq__pgsql_passed(pgsql_front *front, int rank, int64_t at, int64_t seq, int64_t now_ms)
{
    bool recent = at > now_ms - LAG_MS;

    front->at[rank] = recent ? now_ms - LAG_MS : at;
    front->seq[rank] = recent ? -1 : seq;
}

void jobq__pgsql_unread(pgsql_front *front, int rank)
{
    for (int i = rank + 1; i < PG_RANKS; i++)
        front->at[i] = front->seq[i] = -1;
}

/* ---- delayed jobs ---------------------------------------------------------------------------- */

int64_t jobq__pgsql_due_floor(pgsql_store *store)
{
    int64_t now_us = jobq__clock_mono_us(), gap_us = store->due_cost_us * SHARE;

    if (now_us - store->due_start_us >= (gap_us > REREAD_US ? gap_us : REREAD_US))
        store->due_floor = -1;
    return store->due_floor;
}

/* all: everything due was handled. */
void jobq__pgsql_due_passed(pgsql_store *store, int64_t floor, int64_t us, bool all, int64_t now_ms)
{
    if (floor < 0) {
        store->due_start_us = jobq__clock_mono_us();
        store->due_cost_us = us;
    }
    if (all)
        store->due_floor = now_ms - LAG_MS;
}
