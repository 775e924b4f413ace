/* SPDX-License-Identifier: MIT
 *
 * Time limits (rule I1):
 *
 *     deadline, hard stop or cancel --> soft stop (number, SIGURG)
 *         not delivered within min(1 s, grace) ----------------> kill
 *         delivered --> still running a full grace later -------> kill
 */
#include "worker/deadline.h"

#include <jobqueue/job.h>

void jobq__watch_read(const jobq__slot *slot, const jobq__run *run, jobq__watch *out)
{
    const uint64_t number = atomic_load(&run->number);

    *out = (jobq__watch){
        .running = number,
        .deadline_ms = atomic_load(&run->deadline_ms),
        .grace_ms = atomic_load(&run->grace_ms),
        .soft_stop = atomic_load(&run->soft_stop),
        .soft_kind = atomic_load(&run->soft_kind),
        .soft_at_ms = atomic_load(&run->soft_at_ms),
        .delivered = atomic_load(&run->delivered),
        .delivered_at_ms = atomic_load(&run->delivered_at_ms),
        .cancelled = number && jobq__slot_is_marked(slot, number, JOBQ__MARK_FORCED),
    };
    /* The fields may be the next job's by now: only a hand-out that still runs is judged by
     * them. */
    if (jobq__slot_record(slot, number) != JOBQ__RUNNING || atomic_load(&run->number) != number)
        out->running = 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void decide_unasked(const jobq__watch *w, int64_t now_ms, bool hard, jobq__watch_step *out)
{
    const bool over = w->deadline_ms && now_ms >= w->deadline_ms;

    if (over || hard) {
        out->action = JOBQ__WATCH_SOFT;
        out->kind = over ? JOBQ_INTERRUPT_TIMEOUT : JOBQ_INTERRUPT_STOP;
        out->next_ms = now_ms + earlier(JOBQ__DELIVERY_LIMIT_MS, w->grace_ms);
    } else if (w->deadline_ms) {
        out->next_ms = w->deadline_ms;
    }
}

void jobq__watch_decide(const jobq__watch *w, int64_t now_ms, bool hard, jobq__watch_step *out)
{
    const bool delivered = w->running && w->delivered == w->running;
    int64_t kill_at_ms;

    *out = (jobq__watch_step){.action = JOBQ__WATCH_LEAVE, .next_ms = INT64_MAX};
    if (!w->running)
        return;
    if (w->soft_stop != w->running) {
        decide_unasked(w, now_ms, hard || w->cancelled, out);
        return;
    }
    kill_at_ms = delivered ? w->delivered_at_ms + w->grace_ms
                           : w->soft_at_ms + earlier(JOBQ__DELIVERY_LIMIT_MS, w->grace_ms);
    if (now_ms >= kill_at_ms) {
        out->action = JOBQ__WATCH_KILL;
        out->kind = w->soft_kind == JOBQ_INTERRUPT_STOP ? JOBQ__KILL_STOP : JOBQ__KILL_TIMEOUT;
        return;
    }
    out->action = delivered ? JOBQ__WATCH_LEAVE : JOBQ__WATCH_AGAIN;
    out->next_ms = kill_at_ms;
}
