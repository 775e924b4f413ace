/* SPDX-License-Identifier: MIT
 *
 * Counts of a queue, and the names of all queues (rule N1).
 */
#include <jobqueue/control.h>

#include "core/inspect.h"
#include "util/alloc.h"
#include "util/error.h"

int jobq_queue_stats(jobq_queue *queue, const char *name, size_t n, int64_t *values_out)
{
    jobq_counts c = {0};
    int rc;

    jobq__error_clear();
    rc = jobq__check_queue(name, n);
    rc = rc < 0
             ? rc
             : jobq__queue_note(queue, jobq__store_counts(queue->store, jobq__slice(name, n), &c));
    if (rc < 0)
        return rc;
    values_out[JOBQ_STAT_READY] = c.ready;
    values_out[JOBQ_STAT_DELAYED] = c.delayed;
    values_out[JOBQ_STAT_RESERVED] = c.reserved;
    values_out[JOBQ_STAT_DEAD] = c.dead;
    values_out[JOBQ_STAT_BACKLOG] = c.ready + c.delayed + c.reserved;
    values_out[JOBQ_STAT_OLDEST_READY_AGE_MS] =
        c.ready && c.oldest_ready_at_ms ? c.now_ms - c.oldest_ready_at_ms : -1;
    rc = jobq_queue_is_paused(queue, name, n, NULL);
    values_out[JOBQ_STAT_PAUSED] = rc > 0;
    return rc < 0 ? rc : 0;
}

static int copy_names(const jobq_batch *batch, char ***names_out, size_t *count_out)
{
    char **names = jobq__zalloc((batch->count + 1) * sizeof(*names));
    size_t n = 0;

    for (const jobq_record *r = batch->first; names && r; r = r->next) {
        names[n] = jobq__memdup(r->queue.p, r->queue.n);
        if (!names[n++]) {
            jobq_names_free(names, n);
            names = NULL;
        }
    }
    if (!names)
        return jobq__error_nomem();
    *names_out = names;
    *count_out = n;
    return 0;
}

int jobq_queue_names(jobq_queue *queue, char ***names_out, size_t *count_out)
{
    jobq_batch batch = {0};
    int rc;

    jobq__error_clear();
    rc = jobq__queue_note(queue, jobq__store_queues(queue->store, &batch));
    if (rc == 0)
        rc = copy_names(&batch, names_out, count_out);
    jobq__batch_free(&batch);
    return rc;
}

void jobq_names_free(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        jobq__free(names[i]);
    jobq__free(names);
}
