/* SPDX-License-Identifier: MIT
 *
 * Storing and removing jobs.
 */
#include <string.h>

#include "driver/memory/memory.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

static size_t bucket_of(jobq_slice id)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < id.n; i++)
        hash = (hash ^ ((const unsigned char *)id.p)[i]) * 16777619u;
    return hash % MEM_BUCKETS;
}

mem_job *jobq__memory_by_id(const mem_store *store, jobq_slice id)
{
    mem_job *job = store->buckets[bucket_of(id)];

    while (job && !jobq__slice_equal(job->id, id))
        job = job->same_bucket;
    return job;
}

mem_job *jobq__memory_holder(const mem_store *store, jobq_slice queue, jobq_slice unique)
{
    for (mem_job *job = store->first; job && unique.p; job = job->next)
        if (job->unique.p && job->state <= MEM_RESERVED && jobq__slice_equal(job->unique, unique) &&
            jobq__slice_equal(job->queue, queue))
            return job;
    return NULL;
}

static void free_job(mem_job *job)
{
    jobq_slice *owned[] = {&job->id,   &job->queue,  &job->name, &job->header,
                           &job->body, &job->unique, &job->error};

    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        jobq__memory_drop(owned[i]);
    for (size_t i = 0; i < job->history_count; i++)
        jobq__memory_drop(&job->history[i]);
    jobq__free(job);
}

void jobq__memory_remove(mem_store *store, mem_job *job)
{
    mem_job **link = &store->buckets[bucket_of(job->id)];

    while (*link != job)
        link = &(*link)->same_bucket;
    *link = job->same_bucket;
    if (job->prev)
        job->prev->next = job->next;
    else
        store->first = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        store->last = job->prev;
    free_job(job);
}

static mem_job *make_job(const jobq_push *item, int64_t now_ms)
{
    mem_job *job = jobq__zalloc(sizeof(*job));

    if (!job)
        return NULL;
    job->enqueued_at_ms = job->base_at_ms = now_ms;
    job->available_at_ms =
        item->at_ms > 0 ? item->at_ms : now_ms + (item->delay_ms > 0 ? item->delay_ms : 0);
    if (job->available_at_ms < now_ms)
        job->available_at_ms = now_ms;
    job->state = job->available_at_ms > now_ms ? MEM_DELAYED : MEM_READY;
    job->version = item->version;
    job->priority = item->priority;
    if (jobq__memory_copy(&job->id, item->id) && jobq__memory_copy(&job->queue, item->queue) &&
        jobq__memory_copy(&job->name, item->name) &&
        jobq__memory_copy(&job->header, item->header) &&
        jobq__memory_copy(&job->body, item->body) && jobq__memory_copy(&job->unique, item->unique))
        return job;
    free_job(job);
    return NULL;
}

static bool know_queue(mem_store *store, jobq_slice name)
{
    mem_queue *queue;

    for (queue = store->queues; queue; queue = queue->next)
        if (jobq__slice_equal(queue->name, name))
            return true;
    queue = jobq__zalloc(sizeof(*queue));
    if (!queue || !jobq__memory_copy(&queue->name, name)) {
        jobq__free(queue);
        return false;
    }
    queue->next = store->queues;
    store->queues = queue;
    return true;
}

static void link_job(mem_store *store, mem_job *job)
{
    size_t bucket = bucket_of(job->id);

    job->seq = ++store->last_seq;
    job->same_bucket = store->buckets[bucket];
    store->buckets[bucket] = job;
    job->prev = store->last;
    if (store->last)
        store->last->next = job;
    else
        store->first = job;
    store->last = job;
}

static int push_one(mem_store *store, jobq_push *item, int64_t now_ms)
{
    const mem_job *holder;
    mem_job *job;

    if (jobq__memory_by_id(store, item->id)) {
        item->result = JOBQ_EEXISTS;
        return 0;
    }
    holder = jobq__memory_holder(store, item->queue, item->unique);
    if (holder) {
        memcpy(item->holder, holder->id.p, holder->id.n + 1);
        item->result = 1;
        return 0;
    }
    job = know_queue(store, item->queue) ? make_job(item, now_ms) : NULL;
    if (!job)
        return jobq__error_nomem();
    link_job(store, job);
    item->result = 0;
    return 0;
}

int jobq__memory_push(void *handle, jobq_push *items, size_t n)
{
    mem_store *store = handle;
    mem_job *before = store->last;
    int64_t now_ms = jobq__clock_wall_ms();

    for (size_t i = 0; i < n; i++) {
        int rc = push_one(store, &items[i], now_ms);

        if (rc < 0) { /* all or nothing */
            while (store->last != before)
                jobq__memory_remove(store, store->last);
            return rc;
        }
    }
    return 0;
}
