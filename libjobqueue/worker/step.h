/* SPDX-License-Identifier: MIT
 *
 * The loop's whole policy as one pure function: what the dispatcher (and the inline loop) does
 * next, given what it knows. step.c has it as a table of steps; tests/unit/worker/test_step.c as a
 * table of cases.
 */
#ifndef JOBQ_WORKER_STEP_H
#define JOBQ_WORKER_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the loop knows. Times are monotonic milliseconds. */
typedef struct {
    int64_t now_ms, started_ms;
    uint32_t stop; /* JOBQ__GO, JOBQ__DRAIN, JOBQ__HARD as asked so far */
    bool paused, once, stop_when_empty;
    bool all_paused; /* every queue is, by its own pause or by "all" (rule L1) */
    bool restart;    /* the store's generation is newer than ours (rule L2) */
    /* what people ask of us: when to read what has changed, 0 = nothing has; when to ask whether
     * something has, where nothing tells us, 0 = not yet; when the next pause runs out, 0 = none */
    int64_t ask_control_ms, control_at_ms, pause_end_ms;
    int64_t max_jobs, max_time_ms, stop_when_empty_for_ms, max_reserve_failures, lease_ms,
        rest_until_ms;
    int64_t jobs_run, jobs_out; /* handlers that ran; hand-outs in children (begun or not) */
    int64_t unsettled;          /* results the store has not answered for */
    int64_t results; /* of them what handlers did; the rest is unstarted jobs on their way back */
    int64_t held;    /* reserved, in no child */
    int64_t room;    /* hand-outs that children could take now */
    int64_t idle_children;
    bool prefetch;          /* may hold more than the running ones */
    bool store_empty;       /* the last reserve of all queues came back with nothing */
    bool passed_by;         /* ... though some are ready: somebody has them locked */
    int64_t empty_since_ms; /* since when nothing was ready and nothing ran; 0 = not */
    int64_t reserve_failures, retry_at_ms; /* in a row; when to try again */
    bool in_doubt;  /* the store may hold something of ours that we do not know */
    bool renewable; /* in that row: leases are renewed all the same, on time */
    int64_t renew_at_ms, maintain_at_ms; /* maintain_at 0 = nothing known */
    bool woken;                          /* the store said: look */
    int64_t linger_until_ms; /* results may wait until then for company; 0 = not at all */
    int64_t idle_since_ms;   /* since when nothing is out after a stop request; 0 = not */
    bool vetoed;             /* no child begins anything: its listeners do not want it to */
    /* failed hooks (rule F6): jobs in hidden queues that count nowhere */
    bool hooks_look;     /* there may be some */
    bool hooks_owed;     /* of a death made here: worth waiting for */
    bool hooks_coming;   /* of one that is not settled yet */
    bool hooked;         /* the last exchange asked for them */
    int64_t hooks_open;  /* of jobs_out and held */
    int64_t hooks_at_ms; /* when one that was put back is to be looked for; 0 = none */
    int64_t keys;        /* held jobs that begin as soon as the store has freed their unique keys */
    /* when the store is to hear what running jobs say of themselves, and what happened minute by
     * minute; 0 = there is nothing */
    int64_t said_at_ms, book_at_ms;
    int64_t
        look_at_ms; /* when children are to be looked at though nobody rings; 0 = LOOK_MS does */
} jobq__situation;

/* What to do now. Several may be set at once; the loop carries them out in this order. */
typedef struct {
    bool renew, control, maintain,
        exchange; /* exchange: settle what is unsettled and reserve `want` */
    bool book;    /* tell what happened, minute by minute */
    int64_t want;
    bool hooks;           /* the exchange reserves from the hidden queues instead */
    bool give_back;       /* take unstarted jobs back from children and give held ones back */
    uint32_t stop_reason; /* JOBQ__STOP_*, 0 = go on */
    int64_t stop_number;
    bool give_up;    /* the store stayed away one lease too long: unsettled results are lost */
    bool finished;   /* nothing runs and nothing is unsettled: end */
    int exit_code;   /* with finished or stop_reason */
    bool wait_store; /* wait on the store as well as on the doorbell */
    int64_t wait_ms; /* how long at most, -1 = until something happens; 0 = not at all */
} jobq__step;

void jobq__step_decide(const jobq__situation *s, jobq__step *out);
/* Waiting time after the n-th failed reserve in a row: 1, 2, 4 ... 30 s, up to a quarter more by
 * chance. */
int64_t jobq__step_backoff_ms(int64_t failures, double unit);

#endif
