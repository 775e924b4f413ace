/* SPDX-License-Identifier: MIT
 *
 * Settling and reserving.
 */
#include <string.h>

#include "driver/memory/memory.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- settle ---------------------------------------------------------------------------------- */

static bool keep_text(jobq_slice *to, jobq_slice text)
{
    jobq_slice copy;

    if (!text.p)
        return true;
    if (!jobq__memory_copy(&copy, text))
        return false;
    jobq__memory_drop(to);
    *to = copy;
    return true;
}

bool jobq__memory_keep_history(mem_job *job, jobq_slice entry)
{
    jobq_slice copy;

    if (!entry.p)
        return true;
    if (!jobq__memory_copy(&copy, entry))
        return false;
    if (job->history_count == JOBQ__HISTORY_MAX) {
        jobq__memory_drop(&job->history[0]);
        memmove(job->history, job->history + 1, (JOBQ__HISTORY_MAX - 1) * sizeof(job->history[0]));
        job->history_count--;
    }
    job->history[job->history_count++] = copy;
    return true;
}

bool jobq__memory_keep_follow(mem_store *store, const jobq_push *follow)
{
    jobq_push item;

    if (!follow)
        return true;
    item = *follow;
    return jobq__memory_push(store, &item, 1) == 0;
}

static void put_counters(mem_job *job, const jobq_counters *counters)
{
    int64_t deliveries = job->counters.deliveries;

    job->counters = *counters;
    job->counters.deliveries = deliveries;
}

static void settle_done(mem_store *store, mem_job *job, const jobq_settlement *s, int64_t now_ms)
{
    if (s->keep_ms <= 0) {
        jobq__memory_remove(store, job);
        return;
    }
    jobq__memory_give_up_key(store, job);
    if (s->keep_bare)
        job->body.n = 0;
    job->state = MEM_DONE;
    job->cancel = JOBQ_CANCEL_NONE;
    job->keep_until_ms = now_ms + s->keep_ms;
}

static void settle_back(mem_job *job, const jobq_settlement *s, int64_t now_ms)
{
    put_counters(job, &s->counters);
    job->taken_back = false;
    /* One that is to be cancelled is judged without delay. */
    job->available_at_ms = now_ms + (s->delay_ms > 0 && !job->cancel ? s->delay_ms : 0);
    job->state = s->delay_ms > 0 && !job->cancel ? MEM_DELAYED : MEM_READY;
}

static void settle_dead(mem_store *store, mem_job *job, const jobq_settlement *s, int64_t now_ms)
{
    jobq__memory_give_up_key(store, job);
    job->keep_until_ms = s->keep_ms > 0 ? now_ms + s->keep_ms : 0;
    put_counters(job, &s->counters);
    job->taken_back = false;
    job->state = MEM_DEAD;
    job->cancel = JOBQ_CANCEL_NONE;
    job->reason = s->reason;
    job->died_at_ms = now_ms;
}

static int settle_one(mem_store *store, const mem_worker *worker, jobq_settlement *s,
                      int64_t now_ms)
{
    mem_job *job = jobq__memory_by_id(store, s->id);

    s->result = JOBQ_ELEASE;
    if (!job || job->state != MEM_RESERVED || job->worker != worker ||
        !jobq__token_equal(jobq__memory_token(job), s->token))
        return 0;
    if (!keep_text(&job->error, s->error) || !keep_text(&job->outcome, s->outcome) ||
        !jobq__memory_keep_history(job, s->history) || !jobq__memory_keep_follow(store, s->follow))
        return jobq__error_nomem();
    s->result = 0;
    if (s->op == JOBQ_OP_FREE_KEY)
        jobq__memory_give_up_key(store, job);
    if (s->op == JOBQ_OP_FREE_KEY || s->op == JOBQ_OP_PROGRESS)
        return 0;
    job->worker = NULL;
    if (s->op == JOBQ_OP_DONE)
        settle_done(store, job, s, now_ms);
    else if (s->op == JOBQ_OP_BACK)
        settle_back(job, s, now_ms);
    else if (s->op == JOBQ_OP_GIVE_BACK)
        job->state = MEM_READY;
    else
        settle_dead(store, job, s, now_ms);
    return 0;
}

/* ---- reserve --------------------------------------------------------------------------------- */

/* Rule C1: priority, then the time it became available, then push order. */
static bool runs_before(const mem_job *a, const mem_job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->available_at_ms != b->available_at_ms)
        return a->available_at_ms < b->available_at_ms;
    return a->seq < b->seq;
}

static mem_job *best_of(const mem_store *store, jobq_slice queue, bool taken_back_too)
{
    mem_job *best = NULL;

    for (mem_job *job = store->first; job; job = job->next)
        if (job->state == MEM_READY && (taken_back_too || !job->taken_back) &&
            jobq__slice_equal(job->queue, queue) && (!best || runs_before(job, best)))
            best = job;
    return best;
}

static bool copy_out(const mem_job *job, jobq_batch *out)
{
    jobq_record *r = jobq_batch_add(out);

    if (!r)
        return false;
    r->id = jobq_batch_copy(out, job->id.p, job->id.n);
    r->queue = jobq_batch_copy(out, job->queue.p, job->queue.n);
    r->name = jobq_batch_copy(out, job->name.p, job->name.n);
    r->body = jobq_batch_copy(out, job->body.p, job->body.n);
    if (job->header.p)
        r->header = jobq_batch_copy(out, job->header.p, job->header.n);
    if (job->unique.p)
        r->unique = jobq_batch_copy(out, job->unique.p, job->unique.n);
    r->token = jobq__memory_token(job);
    r->counters = job->counters;
    r->fence = job->fence;
    r->enqueued_at_ms = job->enqueued_at_ms;
    r->base_at_ms = job->base_at_ms;
    r->available_at_ms = job->available_at_ms;
    r->version = job->version;
    r->priority = job->priority;
    r->state = MEM_RESERVED;
    r->taken_back = job->taken_back;
    r->cancel = job->cancel;
    return r->id.p && r->queue.p && r->name.p && r->body.p;
}

/* The worker's record is made sure of by the hand-out itself. */
static bool hand_out(mem_store *store, mem_job *job, const jobq_exchange *x)
{
    mem_worker *worker = jobq__memory_keep_worker(store, x->worker, x->lease_ms);

    if (!worker)
        return false;
    job->state = MEM_RESERVED;
    job->worker = worker;
    job->fence++;
    job->counters.deliveries++;
    job->nonce = ++store->last_nonce;
    return copy_out(job, x->out);
}

static int reserve_from(mem_store *store, const jobq_exchange *x, jobq_slice queue, size_t *count,
                        size_t *taken, size_t *bytes)
{
    while (*count < x->want && (*count == 0 || x->want_bytes == 0 || *bytes < x->want_bytes)) {
        mem_job *job = best_of(store, queue, *taken < x->want_taken_back);

        if (!job)
            return 0;
        *count += 1;
        *taken += job->taken_back;
        *bytes += job->body.n;
        if (!hand_out(store, job, x))
            return jobq__error_nomem();
    }
    return 0;
}

/* Without memory for the answer nothing was handed out. */
static void undo(mem_store *store, uint64_t nonce)
{
    for (mem_job *job = store->first; job; job = job->next)
        if (job->state == MEM_RESERVED && job->nonce > nonce) {
            job->state = MEM_READY;
            job->fence--;
            job->counters.deliveries--;
        }
}

static int reserve(mem_store *store, jobq_exchange *x)
{
    size_t count = 0, taken = 0, bytes = 0;
    uint64_t nonce = store->last_nonce;
    int rc = 0;

    for (size_t i = 0; i < x->queue_count && rc == 0; i++)
        rc = reserve_from(store, x, x->queues[i], &count, &taken, &bytes);
    if (rc < 0)
        undo(store, nonce);
    return rc;
}

int jobq__memory_exchange(void *handle, jobq_exchange *x)
{
    mem_store *store = handle;
    mem_worker *worker = jobq__memory_worker(store, x->worker);
    int64_t now_ms = jobq__clock_wall_ms();
    int rc = 0;

    x->settled = false;
    for (size_t i = 0; i < x->settle_count && rc == 0; i++)
        rc = settle_one(store, worker, &x->settle[i], now_ms);
    if (rc < 0)
        return rc;
    x->settled = true;
    if (x->want > 0 && x->queue_count > 0)
        rc = reserve(store, x);
    x->now_ms = now_ms;
    x->control = store->control;
    x->next_due_ms = jobq__memory_next_due(store, true, jobq__memory_worker(store, x->worker));
    return rc;
}
