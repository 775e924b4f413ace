/* SPDX-License-Identifier: MIT
 *
 * Which queues are paused, asked for once and looked up often (rule L1).
 */
#include "core/pauses.h"
#include "console/console.h"
#include "util/error.h"

int jobq__pauses_ask(jobq__cli *cli, jobq__pauses *out)
{
    jobq_batch *batch = jobq__arena_alloc(&cli->arena, sizeof(*batch));
    jobq_control c = {.what = JOBQ_CONTROL_READ, .out = batch};
    int rc;

    *out = (jobq__pauses){.batch = batch};
    if (!batch)
        return jobq__error_nomem();
    *batch = (jobq_batch){.count = 0};
    rc = jobq__queue_note(cli->queue, jobq__store_control(cli->queue->store, &c));
    out->first = c.pauses;
    return rc;
}

int jobq__pauses_read(jobq__cli *cli, jobq__pauses *out)
{
    return jobq__pauses_ask(cli, out) < 0 ? jobq__cli_fail(cli) : 0;
}

bool jobq__pauses_have(const jobq__pauses *pauses, const char *queue)
{
    return jobq__pause_until(pauses->first, jobq__slice_text(queue), false) != JOBQ__NOT_PAUSED;
}

bool jobq__pauses_have_own(const jobq__pauses *pauses, const char *queue)
{
    for (const jobq_pause *p = pauses->first; !queue && p; p = p->next)
        if (!p->queue.p)
            return true;
    return queue &&
           jobq__pause_until(pauses->first, jobq__slice_text(queue), true) != JOBQ__NOT_PAUSED;
}

void jobq__pauses_free(jobq__pauses *pauses)
{
    if (pauses->batch)
        jobq__batch_free(pauses->batch);
    *pauses = (jobq__pauses){.first = NULL};
}
