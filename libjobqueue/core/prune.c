/* SPDX-License-Identifier: MIT
 *
 * Removing what was only kept (rule F4): finished jobs whose time is over, by the store's own
 * maintenance, and old dead jobs.
 */
#include "core/inspect.h"
#include "util/error.h"

enum { STEP = 500 };

/* Leaves the jobs of expired workers alone: bringing those back is a worker's business. */
static int collect_finished(jobq_queue *queue)
{
    jobq_maintenance m;
    int rc;

    do {
        m = (jobq_maintenance){.limit = STEP};
        rc = jobq__queue_note(queue, jobq__store_maintain(queue->store, &m));
    } while (rc == 0 && m.more && m.handled);
    return rc;
}

int64_t jobq_queue_prune(jobq_queue *queue, const jobq_filter *filter, bool dry_run,
                         int (*progress)(void *payload, int64_t done), void *payload)
{
    int rc;

    jobq__error_clear();
    rc = dry_run ? 0 : collect_finished(queue);
    if (rc < 0 || !filter)
        return rc;
    return jobq_queue_mend(queue, JOBQ_DEAD_FORGET, filter, dry_run, NULL, progress, payload);
}
