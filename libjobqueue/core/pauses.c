/* SPDX-License-Identifier: MIT
 *
 * See pauses.h.
 */
#include "core/pauses.h"

#include "util/clock.h"

enum { LOOK_MS = 500 /* so often while nothing else tells us */ };

/* The later of two ends; 0 is the latest there is. */
static int64_t later(int64_t a, int64_t b)
{
    return a == 0 || b == 0 ? 0 : a > b ? a : b;
}

int64_t jobq__pause_until(const jobq_pause *pauses, jobq_slice queue, bool force)
{
    int64_t until_ms = JOBQ__NOT_PAUSED;

    for (const jobq_pause *pause = pauses; pause; pause = pause->next)
        if (pause->queue.p ? jobq__slice_equal(pause->queue, queue) : !force)
            until_ms = later(until_ms, pause->until_ms);
    return until_ms;
}

int jobq__pauses_refresh(jobq_queue *queue, int64_t control)
{
    jobq__known_pauses *pauses = &queue->pauses;
    jobq_control c = {.what = JOBQ_CONTROL_READ, .out = &pauses->batch};
    const int64_t now = jobq__clock_mono_ms();
    int rc;

    if (pauses->known &&
        (control < 0 ? now - pauses->read_mono_ms < LOOK_MS : control == pauses->control))
        return 0;
    pauses->known = false;
    pauses->first = NULL;
    jobq__batch_reset(c.out);
    rc = jobq__queue_note(queue, jobq__store_control(queue->store, &c));
    if (rc < 0)
        return rc;
    *pauses = (jobq__known_pauses){.batch = pauses->batch,
                                   .first = c.pauses,
                                   .control = c.control,
                                   .known = true,
                                   .read_mono_ms = jobq__clock_mono_ms(),
                                   .store_ms = c.now_ms};
    return 0;
}

bool jobq__pauses_hold(const jobq_queue *queue, jobq_slice name)
{
    const jobq__known_pauses *pauses = &queue->pauses;
    const int64_t store_now = pauses->store_ms + jobq__clock_mono_ms() - pauses->read_mono_ms;

    return pauses->first &&
           jobq__pause_holds(jobq__pause_until(pauses->first, name, false), store_now);
}
