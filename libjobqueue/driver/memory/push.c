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

static mem_job *with_key(const mem_store *store, jobq_slice queue, jobq_slice unique, bool follower)
{
    for (mem_job *job = store->first; job && unique.p; job = job->next)
        if (job->unique.p && job->state <= MEM_RESERVED && !job->key_free &&
            job->follower == follower && jobq__slice_equal(job->unique, unique) &&
            jobq__slice_equal(job->queue, queue))
            return job;
    return NULL;
}

mem_job *jobq__memory_holder(const mem_store *store, jobq_slice queue, jobq_slice unique)
{
    return with_key(store, queue, unique, false);
}

void jobq__memory_give_up_key(mem_store *store, mem_job *job)
{
    mem_job *follower = job->follower ? NULL : with_key(store, job->queue, job->unique, true);

    job->key_free = true;
    if (follower)
        follower->follower = false; /* delayed until its own time */
}

static void free_job(mem_job *job)
{
    jobq_slice *owned[] = {&job->id,   &job->queue,  &job->name,  &job->header,
                           &job->body, &job->unique, &job->error, &job->outcome};

    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        jobq__memory_drop(owned[i]);
    for (size_t i = 0; i < job->history_count; i++)
        jobq__memory_drop(&job->history[i]);
    jobq__free(job);
}

void jobq__memory_remove(mem_store *store, mem_job *job)
{
    mem_job **link = &store->buckets[bucket_of(job->id)];

    if (job->state <= MEM_RESERVED)
        jobq__memory_give_up_key(store, job);
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

static int64_t due_of(const jobq_push *item, int64_t now_ms)
{
    int64_t due_ms =
        item->at_ms > 0 ? item->at_ms : now_ms + (item->delay_ms > 0 ? item->delay_ms : 0);

    return due_ms < now_ms ? now_ms : due_ms;
}

static mem_job *make_job(const jobq_push *item, int64_t now_ms)
{
    mem_job *job = jobq__zalloc(sizeof(*job));

    if (!job)
        return NULL;
    job->enqueued_at_ms = job->base_at_ms = now_ms;
    job->available_at_ms = due_of(item, now_ms);
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

mem_queue *jobq__memory_queue(mem_store *store, jobq_slice name)
{
    mem_queue *queue;

    for (queue = store->queues; queue; queue = queue->next)
        if (jobq__slice_equal(queue->name, name))
            return queue;
    queue = jobq__zalloc(sizeof(*queue));
    if (!queue || !jobq__memory_copy(&queue->name, name)) {
        jobq__free(queue);
        return NULL;
    }
    queue->next = store->queues;
    store->queues = queue;
    return queue;
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

static bool is_full(mem_store *store, const mem_queue *queue)
{
    int64_t count = 0;

    for (const mem_job *job = store->first; job && queue->capacity > 0; job = job->next)
        count += job->state != MEM_DONE && jobq__slice_equal(job->queue, queue->name);
    return queue->capacity > 0 && count >= queue->capacity;
}

static int store_new(mem_store *store, jobq_push *item, int64_t now_ms, bool follower)
{
    const mem_queue *queue = jobq__memory_queue(store, item->queue);
    mem_job *job;

    if (queue && is_full(store, queue)) {
        item->result = JOBQ_EFULL;
        return 0;
    }
    job = queue ? make_job(item, now_ms) : NULL;
    if (!job)
        return jobq__error_nomem();
    job->follower = follower;
    if (follower)
        job->state = MEM_DELAYED;
    link_job(store, job);
    item->result = follower ? 2 : 0;
    return 0;
}

static bool copy_over(jobq_slice *to, jobq_slice from)
{
    jobq_slice copy;

    if (!jobq__memory_copy(&copy, from))
        return false;
    jobq__memory_drop(to);
    *to = copy;
    return true;
}

/* Without memory it may be half replaced; a test's oracle does not run out of it. */
static int replace(mem_job *job, jobq_push *item, int64_t now_ms)
{
    const int64_t latest_ms = job->enqueued_at_ms + item->max_wait_ms;
    int64_t due_ms = due_of(item, now_ms);

    if (!copy_over(&job->name, item->name) || !copy_over(&job->header, item->header) ||
        !copy_over(&job->body, item->body))
        return jobq__error_nomem();
    if (item->max_wait_ms > 0 && due_ms > latest_ms)
        due_ms = latest_ms < now_ms ? now_ms : latest_ms;
    memset(&job->counters, 0, sizeof(job->counters));
    job->version = item->version;
    job->priority = item->priority;
    job->taken_back = false;
    job->available_at_ms = due_ms;
    job->state = job->follower || due_ms > now_ms ? MEM_DELAYED : MEM_READY;
    memcpy(item->holder, job->id.p, job->id.n + 1);
    item->result = 2;
    return 0;
}

/* Rule B6: the key is held. */
static int push_held(mem_store *store, mem_job *holder, jobq_push *item, int64_t now_ms)
{
    mem_job *follower = with_key(store, item->queue, item->unique, true);
    int rc;

    if (item->on_duplicate == JOBQ_DUPLICATE_KEEP) {
        memcpy(item->holder, holder->id.p, holder->id.n + 1);
        item->result = 1;
        return 0;
    }
    if (follower || holder->state != MEM_RESERVED)
        return replace(follower ? follower : holder, item, now_ms);
    rc = store_new(store, item, now_ms, true);
    if (rc == 0 && item->result == 2) {
        memcpy(item->holder, item->id.p, item->id.n);
        item->holder[item->id.n] = '\0';
    }
    return rc;
}

static int push_one(mem_store *store, jobq_push *item, int64_t now_ms)
{
    mem_job *holder;

    if (jobq__memory_by_id(store, item->id)) {
        item->result = JOBQ_EEXISTS;
        return 0;
    }
    holder = jobq__memory_holder(store, item->queue, item->unique);
    return holder ? push_held(store, holder, item, now_ms) : store_new(store, item, now_ms, false);
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
