/* SPDX-License-Identifier: MIT
 *
 * What the master does about a running hand-out, as a pure function of what its slot says (rules
 * I1, I2, H1). tests/unit/worker/test_deadline.c has the table of cases.
 */
#ifndef JOBQ_WORKER_DEADLINE_H
#define JOBQ_WORKER_DEADLINE_H

#include "worker/shared.h"

/* Not delivered so long after the soft stop: the handler is blocked where no exception reaches
 * it. */
enum { JOBQ__DELIVERY_LIMIT_MS = 1000 };

typedef struct {
    uint64_t running; /* hand-out that runs, 0 = none */
    int64_t deadline_ms, grace_ms;
    uint64_t soft_stop;      /* hand-out last asked to stop ... */
    uint32_t soft_kind;      /* ... for what (JOBQ_INTERRUPT_*) */
    int64_t soft_at_ms;      /* ... and when */
    uint64_t delivered;      /* hand-out that got the exception ... */
    int64_t delivered_at_ms; /* ... when */
    bool cancelled;          /* it is to stop, whatever its deadline (rule L3) */
} jobq__watch;

enum {
    JOBQ__WATCH_LEAVE, /* nothing to do */
    JOBQ__WATCH_SOFT,  /* ask it to stop: kind JOBQ_INTERRUPT_* */
    JOBQ__WATCH_AGAIN, /* asked already, no sign of it: interrupt once more */
    JOBQ__WATCH_KILL   /* kind JOBQ__KILL_* */
};

typedef struct {
    int action; /* JOBQ__WATCH_* */
    uint32_t kind;
    int64_t next_ms; /* when to look again, INT64_MAX = no need */
} jobq__watch_step;

/* Copies what concerns the hand-out that runs on that seat of the slot; running = 0 when nothing is
 * begun there or it has ended. */
void jobq__watch_read(const jobq__slot *slot, const jobq__run *run, jobq__watch *out);
/* hard: all running handlers are to stop now. */
void jobq__watch_decide(const jobq__watch *w, int64_t now_ms, bool hard, jobq__watch_step *out);

#endif
