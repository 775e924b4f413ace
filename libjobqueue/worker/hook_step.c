/* SPDX-License-Identifier: MIT
 *
 * A failed hook in hand, in a child or inline: the dead job it is about is read from the store by
 * the worker's own queue handle, which a child opens for that (rules F6, K4).
 */
#include <string.h>

#include "core/follow.h"
#include "core/inspect.h"
#include "util/error.h"
#include "worker/worker.h"

enum { LATER_MS = 1000, PATIENCE = 20 /* times it is put off because the store is away */ };

/* The hook's own hand-out as a record. */
static jobq_record record_of(const jobq_job *job)
{
    jobq_record hook = {
        .id = jobq__slice_text(job->id), .queue = job->queue, .name = job->name, .body = job->body};

    hook.version = job->version;
    hook.enqueued_at_ms = job->enqueued_at_ms;
    return hook;
}

/* A store that a child cannot reach: put off, uncounted; not for ever. */
static int put_off(jobq_job *job)
{
    const char *message = jobq_error_message(jobq_error_last());
    const bool patient = job->counters.releases < PATIENCE;

    jobq_job_set_error(job, NULL, 0, message, strlen(message), NULL, 0, NULL, 0);
    if (patient)
        jobq_job_settle(job, JOBQ_ENDED_RELEASED, LATER_MS);
    else
        jobq_job_settle(job, JOBQ_ENDED_FAILED, -1);
    return 0;
}

/* A child keeps no connection of ours beyond that: handlers close descriptors as they like (rule
 * D7). One that the application has opened in it stays. */
static int load(jobq_worker *worker)
{
    const jobq_record hook = record_of(&worker->job);
    jobq__store *store = worker->queue->store;
    const bool keep = worker->role != JOBQ_ROLE_CHILD || jobq__store_is_open(store);
    const int rc = jobq__info_of_death(worker->queue, &hook, &worker->dead);
    struct jobq_error why;

    if (keep)
        return rc;
    jobq__error_save(&why);
    jobq__store_disconnect(store);
    if (rc < 0)
        jobq__error_restore(&why);
    return rc;
}

int jobq__hook_open(jobq_worker *worker)
{
    return load(worker) < 0 ? put_off(&worker->job) : JOBQ_STEP_HOOK;
}

void jobq__hook_close(jobq_worker *worker)
{
    jobq_info_free(worker->dead);
    worker->dead = NULL;
}

const jobq_info *jobq_worker_dead(const jobq_worker *worker)
{
    return worker->dead;
}
