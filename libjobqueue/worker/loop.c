/* SPDX-License-Identifier: MIT
 *
 * The events `looping` and `idle` of a process that runs handlers (rule M1), in a child and inline
 * alike. They are asked for only where somebody listens.
 *
 *     looping   before each job, and every `sleep` while there is none; a listener may veto: then
 *               no job begins until it is asked again
 *     idle      once whenever the process has run out of jobs
 */
#include <string.h>

#include "worker/worker.h"

enum { SLEEP_MIN_MS = 10 };

void jobq__loop_listen(jobq_worker *worker, const char *event)
{
    worker->loop.asks |= strcmp(event, "looping") == 0;
    worker->loop.tells |= strcmp(event, "idle") == 0;
}

static int say(jobq_event *event, const char *name, jobq_event **event_out)
{
    event->name = name;
    event->job = NULL;
    event->queue = (jobq_slice){0};
    event->data_count = 0;
    *event_out = event;
    return JOBQ_STEP_EVENT;
}

static int64_t sleep_ms(const jobq_worker *worker)
{
    const int64_t ms = worker->run_conf->s.sleep_ms;

    return ms < SLEEP_MIN_MS ? SLEEP_MIN_MS : ms;
}

static int ask(jobq_worker *worker, jobq_event *event, int64_t now_ms, jobq_event **event_out)
{
    worker->loop.fresh = true;
    worker->loop.vetoed = false;
    worker->loop.at_ms = now_ms + sleep_ms(worker);
    return say(event, "looping", event_out);
}

int jobq__loop_before_job(jobq_worker *worker, jobq_event *event, int64_t now_ms,
                          jobq_event **event_out)
{
    if (!worker->loop.asks || worker->loop.fresh)
        return 0;
    return ask(worker, event, now_ms, event_out);
}

int jobq__loop_by_time(jobq_worker *worker, jobq_event *event, int64_t now_ms,
                       jobq_event **event_out)
{
    if (!worker->loop.asks || now_ms < worker->loop.at_ms)
        return 0;
    return ask(worker, event, now_ms, event_out);
}

int jobq__loop_idle(jobq_worker *worker, jobq_event *event, jobq_event **event_out)
{
    if (!worker->loop.tells || worker->loop.told || worker->loop.vetoed)
        return 0;
    worker->loop.told = true;
    worker->loop.fresh = false; /* the answer was about a moment before this */
    return say(event, "idle", event_out);
}

void jobq__loop_begun(jobq_worker *worker)
{
    worker->loop.fresh = worker->loop.told = false;
}

int64_t jobq__loop_wait_ms(const jobq_worker *worker, int64_t now_ms, int64_t wait_ms)
{
    const int64_t left_ms = worker->loop.at_ms - now_ms;

    if (!worker->loop.asks || left_ms >= wait_ms)
        return wait_ms;
    return left_ms < 0 ? 0 : left_ms;
}

void jobq_worker_veto(jobq_worker *worker)
{
    worker->loop.vetoed = worker->loop.fresh;
}
