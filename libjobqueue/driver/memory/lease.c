/* SPDX-License-Identifier: MIT
 *
 * Workers' records, and maintenance: promoting, judging expired workers, forgetting kept results.
 */
#include <string.h>

#include "driver/memory/memory.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/error.h"

bool jobq__memory_expired(const mem_worker *worker)
{
    return worker->alive_until_boot_ms <= jobq__clock_boot_ms();
}

mem_worker *jobq__memory_worker(const mem_store *store, jobq_slice id)
{
    mem_worker *worker = store->workers;

    while (worker && !jobq__slice_equal(worker->id, id))
        worker = worker->next;
    return worker;
}

static void free_worker(mem_worker *worker)
{
    jobq__memory_drop(&worker->id);
    jobq__memory_drop(&worker->host);
    jobq__memory_drop(&worker->queues);
    jobq__memory_drop(&worker->names);
    jobq__free(worker->running);
    jobq__free(worker);
}

static void remove_worker(mem_store *store, mem_worker *worker)
{
    mem_worker **link = &store->workers;

    while (*link != worker)
        link = &(*link)->next;
    *link = worker->next;
    free_worker(worker);
}

static int64_t count_held(const mem_store *store, const mem_worker *worker)
{
    int64_t n = 0;

    for (const mem_job *job = store->first; job; job = job->next)
        n += job->state == MEM_RESERVED && job->worker == worker;
    return n;
}

static mem_worker *make_worker(mem_store *store, jobq_slice id)
{
    mem_worker *worker = jobq__zalloc(sizeof(*worker)), **link = &store->workers;

    if (!worker || !jobq__memory_copy(&worker->id, id)) {
        jobq__free(worker);
        return NULL;
    }
    worker->started_at_ms = jobq__clock_wall_ms();
    while (*link)
        link = &(*link)->next;
    *link = worker;
    return worker;
}

mem_worker *jobq__memory_keep_worker(mem_store *store, jobq_slice id, int64_t lease_ms)
{
    mem_worker *worker = jobq__memory_worker(store, id);

    if (worker && !jobq__memory_expired(worker))
        return worker;
    if (!worker)
        worker = make_worker(store, id);
    if (worker) {
        worker->lease_ms = lease_ms;
        worker->alive_until_boot_ms = jobq__clock_boot_ms() + lease_ms;
    }
    return worker;
}

static bool describe(mem_worker *worker, const jobq_renewal *r)
{
    if (!r->host.p)
        return true;
    jobq__memory_drop(&worker->host);
    jobq__memory_drop(&worker->queues);
    jobq__memory_drop(&worker->names);
    worker->pid = r->pid;
    worker->processes = r->processes;
    return jobq__memory_copy(&worker->host, r->host) &&
           jobq__memory_copy(&worker->queues, r->queues) &&
           jobq__memory_copy(&worker->names, r->names);
}

static bool note_running(mem_worker *worker, const jobq_renewal *r)
{
    size_t size = r->running_count * sizeof(r->running[0]);
    jobq_lease_token *copy = size ? jobq__memdup(r->running, size) : NULL;

    if (size && !copy)
        return false;
    jobq__free(worker->running);
    worker->running = copy;
    worker->running_count = r->running_count;
    return true;
}

int jobq__memory_renew(void *handle, jobq_renewal *r)
{
    mem_store *store = handle;
    mem_worker *worker = jobq__memory_worker(store, r->worker);
    bool taken;

    if (!worker)
        worker = make_worker(store, r->worker);
    if (!worker || !describe(worker, r) || !note_running(worker, r))
        return jobq__error_nomem();
    taken = worker->taken;
    worker->taken = false;
    worker->lease_ms = r->lease_ms;
    worker->alive_until_boot_ms = jobq__clock_boot_ms() + r->lease_ms;
    r->now_ms = jobq__clock_wall_ms();
    r->held = count_held(store, worker);
    r->control = store->control;
    if (taken)
        return jobq__refuse_lapsed("memory", r->worker);
    return 0;
}

int jobq__memory_leave(void *handle, jobq_slice id)
{
    mem_store *store = handle;
    mem_worker *worker = jobq__memory_worker(store, id);

    if (worker && count_held(store, worker) == 0)
        remove_worker(store, worker);
    return 0;
}

int jobq__memory_held(void *handle, jobq_slice id, jobq_batch *out)
{
    mem_store *store = handle;
    const mem_worker *worker = jobq__memory_worker(store, id);

    for (const mem_job *job = store->first; job && worker; job = job->next) {
        jobq_record *r;

        if (job->state != MEM_RESERVED || job->worker != worker)
            continue;
        r = jobq_batch_add(out);
        if (!r)
            return jobq__error_nomem();
        r->id = jobq_batch_copy(out, job->id.p, job->id.n);
        r->queue = jobq_batch_copy(out, job->queue.p, job->queue.n);
        r->token = jobq__memory_token(job);
        r->fence = job->fence;
        r->state = MEM_RESERVED;
        r->cancel = job->cancel;
        if (!r->id.p || !r->queue.p)
            return jobq__error_nomem();
    }
    return 0;
}

static void show_text(jobq_batch *out, jobq_slice *to, jobq_slice from)
{
    if (from.p)
        *to = jobq_batch_copy(out, from.p, from.n);
}

int jobq__memory_workers(void *handle, jobq_batch *out)
{
    mem_store *store = handle;
    int64_t wall_minus_boot = jobq__clock_wall_ms() - jobq__clock_boot_ms();

    for (const mem_worker *worker = store->workers; worker; worker = worker->next) {
        jobq_worker_record *r;

        if (jobq__memory_expired(worker))
            continue;
        r = jobq_batch_add_worker(out);
        if (!r)
            return jobq__error_nomem();
        show_text(out, &r->id, worker->id);
        show_text(out, &r->host, worker->host);
        show_text(out, &r->queues, worker->queues);
        show_text(out, &r->names, worker->names);
        r->pid = worker->pid;
        r->processes = worker->processes;
        r->started_at_ms = worker->started_at_ms;
        r->alive_until_ms = worker->alive_until_boot_ms + wall_minus_boot;
        r->lease_ms = worker->lease_ms;
        r->running = (int64_t)worker->running_count;
        r->held = count_held(store, worker);
    }
    return 0;
}

/* ---- maintenance ----------------------------------------------------------------------------- */

static mem_job *first_due(const mem_store *store, int64_t now_ms)
{
    mem_job *best = NULL;

    for (mem_job *job = store->first; job; job = job->next)
        if (job->state == MEM_DELAYED && !job->follower && job->available_at_ms <= now_ms &&
            (!best || job->available_at_ms < best->available_at_ms))
            best = job;
    return best;
}

static bool was_running(const mem_worker *worker, const mem_job *job)
{
    for (size_t i = 0; i < worker->running_count; i++)
        if (jobq__token_equal(worker->running[i], jobq__memory_token(job)))
            return true;
    return false;
}

/* Without memory there is none. */
static void note_lost(mem_job *job, const jobq_maintenance *m)
{
    jobq__buf entry = {0};

    if (!m->lost_head.p)
        return;
    jobq__buf_add(&entry, m->lost_head.p, m->lost_head.n);
    jobq__buf_addc(&entry, (char)job->worker->id.n);
    jobq__buf_add(&entry, job->worker->id.p, job->worker->id.n);
    jobq__buf_add(&entry, m->lost_tail.p, m->lost_tail.n);
    if (!entry.failed)
        jobq__memory_keep_history(job, jobq__slice(entry.p, entry.n));
    jobq__buf_free(&entry);
}

/* Rule C5: listed as running = a crash; else a loss, and so many losses in a row are a crash. */
static void take_back(mem_job *job, const jobq_maintenance *m)
{
    mem_worker *worker = job->worker;

    if (was_running(worker, job) || (m->loss_cap > 0 && job->counters.losses + 1 >= m->loss_cap)) {
        job->counters.crashes++;
        job->counters.losses = 0;
        note_lost(job, m);
    } else {
        job->counters.losses++;
    }
    job->state = MEM_READY;
    job->taken_back = true;
    job->worker = NULL;
    worker->taken = true;
}

static void judge_workers(mem_store *store, jobq_maintenance *m)
{
    mem_worker *next;

    for (mem_job *job = store->first; job && m->handled < m->limit; job = job->next)
        if (job->state == MEM_RESERVED && jobq__memory_expired(job->worker)) {
            take_back(job, m);
            m->handled++;
        }
    for (mem_worker *worker = store->workers; worker; worker = next) {
        next = worker->next;
        if (jobq__memory_expired(worker) && !worker->taken && count_held(store, worker) == 0)
            remove_worker(store, worker);
    }
}

/* Kept results, and dead jobs whose retention is over. */
static void collect(mem_store *store, jobq_maintenance *m)
{
    mem_job *next;

    for (mem_job *job = store->first; job && m->handled < m->limit; job = next) {
        next = job->next;
        if (job->state >= MEM_DONE && job->keep_until_ms > 0 && job->keep_until_ms <= m->now_ms) {
            jobq__memory_remove(store, job);
            m->handled++;
        }
    }
}

int jobq__memory_maintain(void *handle, jobq_maintenance *m)
{
    mem_store *store = handle;
    mem_job *job;

    m->now_ms = jobq__clock_wall_ms();
    m->handled = 0;
    while (m->handled < m->limit && (job = first_due(store, m->now_ms)) != NULL) {
        job->state = MEM_READY;
        m->handled++;
    }
    if (m->take_back)
        judge_workers(store, m);
    collect(store, m);
    jobq__memory_drop_minutes(store, m->now_ms / 60000 - INT64_C(24) * 60);
    m->more = m->handled >= m->limit;
    m->next_due_ms = jobq__memory_next_due(store, m->take_back, NULL);
    return 0;
}
