/* SPDX-License-Identifier: MIT
 *
 * Waiting. Nobody else can push into this store, so only time and the doorbell can end it.
 */
#include "driver/memory/memory.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"

static bool has_ready(const mem_store *store, const jobq_wait *w)
{
    for (const mem_job *job = store->first; job; job = job->next)
        for (size_t i = 0; i < w->queue_count && job->state == MEM_READY; i++)
            if (jobq__slice_equal(job->queue, w->queues[i]))
                return true;
    return false;
}

static bool has_ended(const mem_store *store, jobq_slice id)
{
    const mem_job *job = id.p ? jobq__memory_by_id(store, id) : NULL;

    return id.p && (!job || job->state >= MEM_DONE);
}

int jobq__memory_wait(void *handle, const jobq_wait *w)
{
    mem_store *store = handle;
    /* Who waits for a job alone takes none: what is due is others' business. */
    int64_t due = w->queue_count || !w->job.p ? jobq__memory_next_due(store, false, NULL) : 0;
    int64_t left = due - jobq__clock_wall_ms();
    bool due_first = due > 0 && (w->timeout_ms < 0 || left <= w->timeout_ms);
    int rc;

    if (has_ready(store, w) || has_ended(store, w->job) || (due > 0 && left <= 0))
        return JOBQ_WAIT_JOBS;
    if (w->control && *w->control != store->control)
        return JOBQ_WAIT_CONTROL;
    rc = jobq__fd_wait(w->wake_fd, due_first ? left : w->timeout_ms);
    if (rc < 0)
        return jobq__refuse_wait("memory");
    if (rc > 0)
        return JOBQ_WAIT_WOKEN;
    return due_first ? JOBQ_WAIT_JOBS : JOBQ_WAIT_TIMEOUT;
}
