/* SPDX-License-Identifier: MIT
 *
 * Inside of inline mode: what inline.c (the loop, beginning and end) and inline_job.c (the job in
 * hand, signals, the timer) share.
 */
#ifndef JOBQ_WORKER_INLINE_H
#define JOBQ_WORKER_INLINE_H

#include <pthread.h>
#include <time.h>

#include "worker/desk.h"
#include "worker/notify.h"

enum { JOBQ__INLINE_TICKETS = 4 };

struct jobq__inline {
    pthread_t thread; /* which runs it */
    jobq__desk *desk;
    jobq__handout handouts[JOBQ__INLINE_TICKETS];
    jobq__ticket *current; /* given to the caller, not yet settled */
    int64_t started_us, deadline_ms, drain_at_ms;
    int stop_signals;
    bool told_timeout, told_stop;
    int64_t notify_at_ms;
    jobq__notifier notifier; /* with run_next it has nobody to talk to */
    bool has_timer;
    timer_t timer;
    jobq__buf outcome;
    jobq_event event;
    jobq_job event_job;
};

/* inline_job.c */
void jobq__inline_take_signals(struct jobq__inline *inl);
/* Long enough for the handler's time limit; without one the handler calls extend. */
int64_t jobq__inline_lease(const jobq__desk *desk, const jobq__policy *policy);
/* The held ticket becomes the job in hand: worker->job is filled already. */
void jobq__inline_hand_out(jobq_worker *worker, jobq__ticket *ticket);
void jobq__inline_end_current(struct jobq__inline *inl, jobq_ending ending, int64_t delay_ms);

#endif
