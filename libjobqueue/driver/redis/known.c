/* SPDX-License-Identifier: MIT
 *
 * What a handle remembers of the workers it speaks for: their leases, and the queues that have
 * given them something. A renewal is one write in each of these; a worker that the handle meets for
 * the first time may hold jobs in others too (its dispatcher was replaced), so all are asked once.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/error.h"

enum { WORKERS = 8 };

struct rds_known {
    rds_worker workers[WORKERS];
    size_t next; /* place of the next new worker */
    jobq_slice *queues;
    size_t count, room;
};

static rds_known *known_of(rds_store *store)
{
    if (!store->known)
        store->known = jobq__zalloc(sizeof(*store->known));
    return store->known;
}

rds_worker *jobq__redis_worker(rds_store *store, jobq_slice id, bool make)
{
    rds_known *known = known_of(store);
    rds_worker *one;
    char *copy;

    if (!known)
        return NULL;
    for (size_t i = 0; i < WORKERS; i++)
        if (known->workers[i].id &&
            jobq__slice_equal(jobq__slice(known->workers[i].id, known->workers[i].n), id))
            return &known->workers[i];
    copy = make ? jobq__alloc(id.n + 1) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, id.p, id.n);
    one = &known->workers[known->next];
    known->next = (known->next + 1) % WORKERS;
    jobq__free(one->id);
    *one = (rds_worker){.id = copy, .n = id.n};
    return one;
}

static bool is_known(const rds_known *known, jobq_slice queue)
{
    for (size_t i = 0; i < known->count; i++)
        if (jobq__slice_equal(known->queues[i], queue))
            return true;
    return false;
}

static bool add_queue(rds_known *known, jobq_slice queue)
{
    char *copy;

    if (known->count == known->room) {
        size_t room = known->room ? known->room * 2 : 8;
        jobq_slice *queues = jobq__realloc(known->queues, room * sizeof(*queues));

        if (!queues)
            return false;
        known->queues = queues;
        known->room = room;
    }
    copy = jobq__alloc(queue.n + 1);
    if (!copy)
        return false;
    memcpy(copy, queue.p, queue.n);
    known->queues[known->count++] = jobq__slice(copy, queue.n);
    return true;
}

int jobq__redis_know(rds_store *store, const jobq_slice *queues, size_t n)
{
    rds_known *known = known_of(store);

    for (size_t i = 0; known && i < n; i++)
        if (!is_known(known, queues[i]) && !add_queue(known, queues[i]))
            return jobq__error_nomem();
    return known ? 0 : jobq__error_nomem();
}

void jobq__redis_known_queues(const rds_store *store, rds_names *out)
{
    out->names = store->known ? store->known->queues : NULL;
    out->count = store->known ? store->known->count : 0;
}

void jobq__redis_known_free(rds_known *known)
{
    if (!known)
        return;
    for (size_t i = 0; i < WORKERS; i++)
        jobq__free(known->workers[i].id);
    for (size_t i = 0; i < known->count; i++)
        jobq__free((void *)known->queues[i].p);
    jobq__free(known->queues);
    jobq__free(known);
}
