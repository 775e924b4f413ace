/* SPDX-License-Identifier: MIT
 *
 * Inside of the master: what master.c (forks, the loop), reap.c (deaths) and supervise.c (signals,
 * limits, kills) share. The master has no store and runs no user code.
 */
#ifndef JOBQ_WORKER_MASTER_H
#define JOBQ_WORKER_MASTER_H

#include "worker/collect.h"
#include "worker/notify.h"
#include "worker/worker.h"

enum { JOBQ__TICK_MS = 50, JOBQ__IDLE_TICK_MS = 1000 };

/* A slot as the master sees it. */
typedef struct {
    pid_t pid; /* 0 = nobody there */
    int64_t forked_ms;
    bool seen_started, killed;
} jobq__place;

typedef struct {
    jobq_worker *worker;
    jobq__shared *shared;
    jobq__words *words;
    jobq__observer *observer;
    jobq__collector *collector;
    jobq__notifier notifier;
    jobq__place *places; /* one per slot */
    int64_t now_ms;      /* of this round */
    int64_t wake_ms;     /* look again by then */
    int stop_signals;
    int64_t stopping_since_ms, leaving_since_ms; /* 0 = not */
    /* children that died before they were ready, in a row */
    int start_deaths;
    unsigned short_lives; /* died soon after it, before their first job, in a row */
    int64_t fork_at_ms, fork_backoff_ms;
    char last_death[512];
    /* dispatcher */
    pid_t dispatcher;
    bool dispatcher_killed;
    int64_t dispatcher_forked_ms, dispatcher_at_ms; /* fork another then */
    int64_t first_beat_ms;                          /* what beat_until was set to at its fork */
    int dispatcher_failures;                        /* in a row without a beat */
    int64_t trust_from_ms; /* we were stopped ourselves: no judgement on others before that */
} jobq__master;

static inline void jobq__master_wake_by(jobq__master *m, int64_t at_ms)
{
    if (at_ms < m->wake_ms)
        m->wake_ms = at_ms;
}
static inline jobq__slot *jobq__master_slot(const jobq__master *m, uint32_t i)
{
    return jobq__slot_at(m->shared, i);
}
void jobq__master_ring_dispatcher(const jobq__master *m);
/* Raises the stop and tells everybody. */
void jobq__master_stop(jobq__master *m, uint32_t level, uint32_t reason);
void jobq__master_fail(jobq__master *m, int code); /* the first code stands */
bool jobq__master_has_children(const jobq__master *m);

/* reap.c */
void jobq__master_reap(jobq__master *m);
/* A child or a fork of one that failed before it was ready. */
void jobq__master_note_bad_start(jobq__master *m);
void jobq__master_check_dispatcher(jobq__master *m); /* hung? */

/* supervise.c */
void jobq__master_take_signals(jobq__master *m);
void jobq__master_watch(jobq__master *m); /* time limits, drain, hard stop */
void jobq__master_part(jobq__master *m);  /* everything is settled: send the children home */
void jobq__master_kill_place(jobq__master *m, uint32_t i);

#endif
