/* SPDX-License-Identifier: MIT
 *
 * Looking at jobs without taking them, and mending dead ones.
 */
#include <string.h>

#include "driver/cursor.h"
#include "driver/memory/memory.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

/* The state people see: a due delayed job and one whose lease ran out count as ready (rule N1). */
static uint8_t seen_state(const mem_job *job, int64_t now_ms)
{
    if (job->state == MEM_DELAYED && !job->follower && job->available_at_ms <= now_ms)
        return MEM_READY;
    if (job->state == MEM_RESERVED && jobq__memory_expired(job->worker))
        return MEM_READY;
    return job->state;
}

static bool show(jobq_batch *out, jobq_slice *to, jobq_slice from)
{
    if (!from.p)
        return true;
    *to = jobq_batch_copy(out, from.p, from.n);
    return to->p != NULL;
}

static bool show_history(const mem_job *job, jobq_batch *out, jobq_record *r)
{
    if (job->history_count == 0)
        return true;
    r->history = jobq_batch_alloc(out, job->history_count * sizeof(jobq_slice));
    if (!r->history)
        return false;
    for (size_t i = 0; i < job->history_count; i++)
        if (!show(out, &r->history[i], job->history[i]))
            return false;
    r->history_count = job->history_count;
    return true;
}

static bool show_texts(const mem_job *job, jobq_batch *out, jobq_record *r, bool keys_only)
{
    if (!show(out, &r->id, job->id) || !show(out, &r->queue, job->queue) ||
        !show(out, &r->name, job->name) || !show(out, &r->unique, job->unique))
        return false;
    if (keys_only)
        return true;
    return show(out, &r->header, job->header) && show(out, &r->body, job->body) &&
           show(out, &r->error, job->error) && show(out, &r->outcome, job->outcome) &&
           show_history(job, out, r);
}

static int copy_job(const mem_job *job, jobq_batch *out, bool keys_only, int64_t now_ms)
{
    jobq_record *r = jobq_batch_add(out);

    if (!r || !show_texts(job, out, r, keys_only))
        return jobq__error_nomem();
    r->counters = job->counters;
    r->fence = job->fence;
    r->enqueued_at_ms = job->enqueued_at_ms;
    r->base_at_ms = job->base_at_ms;
    r->available_at_ms = job->available_at_ms;
    r->died_at_ms = job->died_at_ms;
    r->keep_until_ms = job->state >= MEM_DONE ? job->keep_until_ms : 0;
    r->version = job->version;
    r->priority = job->priority;
    r->reason = job->reason;
    r->taken_back = job->taken_back;
    r->cancel = job->cancel;
    r->state = seen_state(job, now_ms);
    if (r->state == MEM_RESERVED) {
        r->reserved_until_ms = job->worker->alive_until_boot_ms + now_ms - jobq__clock_boot_ms();
        if (!show(out, &r->reserved_by, job->worker->id))
            return jobq__error_nomem();
    }
    return 0;
}

int jobq__memory_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    const mem_job *job = jobq__memory_by_id(handle, id);

    if (!job || (queue.p && !jobq__slice_equal(job->queue, queue)))
        return jobq__refuse_id(id);
    return copy_job(job, out, false, jobq__clock_wall_ms());
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Where a job stands in the list of its state; smaller first. */
static void place_of(const mem_job *job, uint8_t state, int64_t part[3])
{
    part[0] = part[1] = 0;
    part[2] = job->seq;
    if (state == MEM_READY)
        part[0] = 9 - job->priority;
    if (state == MEM_READY || state == MEM_DELAYED)
        part[1] = job->available_at_ms;
    if (state == MEM_DEAD) { /* newest first */
        part[1] = -job->died_at_ms;
        part[2] = -job->seq;
    }
}

static bool matches(const mem_job *job, const jobq_listing *l, int64_t now_ms)
{
    if (seen_state(job, now_ms) != l->state ||
        (l->queue.p && !jobq__slice_equal(job->queue, l->queue)))
        return false;
    if (l->state != MEM_DEAD)
        return true;
    return (!l->name.p || jobq__slice_equal(job->name, l->name)) &&
           (l->reason == 0 || job->reason == l->reason) &&
           (l->older_than_ms <= 0 || job->died_at_ms <= now_ms - l->older_than_ms);
}

/* The first job behind the cursor; moves the cursor onto it. */
static const mem_job *next_job(const mem_store *store, const jobq_listing *l, jobq__cursor *cursor,
                               int64_t now_ms)
{
    const mem_job *best = NULL;
    jobq__cursor at = {0};

    for (const mem_job *job = store->first; job; job = job->next) {
        int64_t part[3];

        if (!matches(job, l, now_ms))
            continue;
        place_of(job, l->state, part);
        if ((cursor->set && jobq__cursor_compare(part, cursor) <= 0) ||
            (best && jobq__cursor_compare(part, &at) > 0))
            continue;
        best = job;
        memcpy(at.part, part, sizeof(part));
        at.set = true;
    }
    if (best)
        *cursor = at;
    return best;
}

int jobq__memory_list(void *handle, jobq_listing *l)
{
    int64_t now_ms = jobq__clock_wall_ms();
    jobq__cursor cursor;
    size_t shown = 0;
    int rc = jobq__cursor_read(l->after, &cursor);

    l->next = l->last = jobq__slice(NULL, 0);
    for (; shown < l->limit && rc == 0; shown++) {
        const mem_job *job = next_job(handle, l, &cursor, now_ms);

        if (!job)
            break;
        rc = copy_job(job, l->out, l->keys_only, now_ms);
    }
    if (rc == 0 && shown > 0)
        rc = jobq__cursor_write(cursor.part, l->out, &l->last);
    if (rc == 0 && shown == l->limit && next_job(handle, l, &cursor, now_ms))
        l->next = l->last;
    return rc;
}

/* ---- counts ---------------------------------------------------------------------------------- */

int jobq__memory_counts(void *handle, jobq_slice queue, jobq_counts *counts_out)
{
    const mem_store *store = handle;
    jobq_counts counts = {.now_ms = jobq__clock_wall_ms()};
    int64_t *const by_state[] = {&counts.ready, &counts.delayed, &counts.reserved, NULL,
                                 &counts.dead};

    for (const mem_queue *q = store->queues; q; q = q->next)
        if (jobq__slice_equal(q->name, queue))
            counts.capacity = q->capacity;
    for (const mem_job *job = store->first; job; job = job->next) {
        uint8_t state = seen_state(job, counts.now_ms);

        if (!jobq__slice_equal(job->queue, queue))
            continue;
        if (by_state[state])
            *by_state[state] += 1;
        if (state == MEM_READY &&
            (counts.oldest_ready_at_ms == 0 || job->available_at_ms < counts.oldest_ready_at_ms))
            counts.oldest_ready_at_ms = job->available_at_ms;
    }
    *counts_out = counts;
    return 0;
}

static int compare_names(jobq_slice a, jobq_slice b)
{
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

static const mem_queue *next_queue(const mem_store *store, const mem_queue *after)
{
    const mem_queue *best = NULL;

    for (const mem_queue *queue = store->queues; queue; queue = queue->next)
        if ((!after || compare_names(queue->name, after->name) > 0) &&
            (!best || compare_names(queue->name, best->name) < 0))
            best = queue;
    return best;
}

int jobq__memory_queues(void *handle, jobq_batch *out)
{
    const mem_queue *queue = NULL;

    while ((queue = next_queue(handle, queue)) != NULL) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !show(out, &r->queue, queue->name))
            return jobq__error_nomem();
    }
    return 0;
}

/* ---- mending --------------------------------------------------------------------------------- */

static void retry_job(mem_job *job)
{
    memset(&job->counters, 0, sizeof(job->counters));
    job->base_at_ms = job->available_at_ms = jobq__clock_wall_ms();
    job->died_at_ms = job->keep_until_ms = 0;
    job->key_free = false;
    job->reason = 0;
    job->state = MEM_READY;
}

static int mend_one(mem_store *store, const jobq_mending *m, jobq_slice id)
{
    mem_job *job = jobq__memory_by_id(store, id);

    if (!job || job->state != MEM_DEAD)
        return JOBQ_ENOTFOUND;
    if (m->what == JOBQ_MEND_RETRY && job->keep_until_ms > 0 &&
        job->keep_until_ms <= jobq__clock_wall_ms())
        return JOBQ_ELIMIT;
    if (m->what == JOBQ_MEND_RETRY && jobq__memory_holder(store, job->queue, job->unique))
        return JOBQ_EEXISTS;
    if (m->dry_run)
        return 0;
    if (m->what == JOBQ_MEND_RETRY)
        retry_job(job);
    else
        jobq__memory_remove(store, job);
    return 0;
}

int jobq__memory_mend(void *handle, jobq_mending *m)
{
    for (size_t i = 0; i < m->count; i++)
        m->results[i] = mend_one(handle, m, m->ids[i]);
    return 0;
}
