/* SPDX-License-Identifier: MIT
 *
 * What the master does to others: stop requests from signals (rules H1, H2), time limits and hard
 * stops by what deadline.c decides (rule I1), sending children home at the end.
 */
#include "worker/master.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "util/str.h"
#include "worker/deadline.h"

enum { PART_MIN_MS = 1000, PART_DISPATCHER_MS = 5000, AGE_LEAD_MS = 1000 };

/* ---- signals --------------------------------------------------------------------------------- */

/* The first stop request drains; a second TERM or INT ends running handlers. */
static void ask_to_stop(jobq__master *m, int number)
{
    const bool again = m->stop_signals++ > 0 && (number == SIGTERM || number == SIGINT);

    jobq__master_stop(m, again ? JOBQ__HARD : JOBQ__DRAIN, JOBQ__STOP_SIGNAL);
}

static void set_paused(jobq__master *m, bool paused)
{
    if (atomic_exchange(&m->words->paused, paused) == (uint32_t)paused)
        return;
    jobq__observer_note(m->observer, paused ? "Paused" : "Resumed");
    for (uint32_t i = 0; i < m->words->slot_count; i++)
        if (m->places[i].pid)
            jobq__slot_wake(jobq__master_slot(m, i));
    jobq__master_ring_dispatcher(m);
}

static const jobq__handout *find_handout(const jobq__master *m, uint32_t slot, uint64_t number)
{
    for (size_t i = 0; i < m->shared->handout_count; i++) {
        const jobq__handout *h = &m->shared->handouts[i];

        if (atomic_load(&h->state) == JOBQ__HANDOUT_OUT && h->slot == slot && h->number == number)
            return h;
    }
    return NULL;
}

static bool note_run(const jobq__master *m, uint32_t i, const jobq__run *run)
{
    const uint64_t number = atomic_load(&run->number);
    const jobq__handout *h = number ? find_handout(m, i, number) : NULL;
    const long long ran = (long long)atomic_load(&jobq__master_slot(m, i)->jobs_run);
    char limit[48] = "no limit";

    if (h && h->policy.timeout_ms)
        jobq__format(limit, sizeof(limit), "limit %.1f s", (double)h->policy.timeout_ms / 1000);
    if (h)
        jobq__observer_note(m->observer, "child %d: runs %.*s %s for %.1f s, %s; %lld job%s before",
                            (int)m->places[i].pid, (int)h->name_n, h->name, h->id,
                            (double)(m->now_ms - atomic_load(&run->since_ms)) / 1000, limit, ran,
                            jobq__plural(ran));
    return h != NULL;
}

static void note_child(const jobq__master *m, uint32_t i)
{
    const jobq__slot *slot = jobq__master_slot(m, i);
    const long long ran = (long long)atomic_load(&slot->jobs_run);
    const int pid = (int)m->places[i].pid;
    bool runs = false;

    for (uint32_t k = 0; k < slot->seats; k++)
        runs |= note_run(m, i, jobq__slot_run(slot, k));
    if (!runs)
        jobq__observer_note(m->observer, "child %d: %s; %lld job%s so far", pid,
                            !atomic_load(&slot->started)   ? "starting"
                            : atomic_load(&slot->retiring) ? "leaving"
                            : atomic_load(&slot->worn)     ? "idle, to be replaced"
                                                           : "idle",
                            ran, jobq__plural(ran));
}

/* Does it take jobs, and if not, why? */
static const char *word_readiness(const jobq__words *words)
{
    if (atomic_load(&words->ready))
        return "ready";
    if (atomic_load(&words->stop) != JOBQ__GO)
        return "stopping";
    if (atomic_load(&words->paused))
        return "paused by USR2";
    return atomic_load(&words->up) ? "not ready: its queues are paused or the store does not answer"
                                   : "not ready: it has not reached the store";
}

static void dump(const jobq__master *m)
{
    const uint32_t out = atomic_load(&m->words->out);
    const long long ran = (long long)atomic_load(&m->words->jobs_run);

    jobq__observer_note(m->observer, "dispatcher %d: %s, %u job%s in children, %lld job%s run",
                        (int)m->dispatcher, word_readiness(m->words), out, jobq__plural(out), ran,
                        jobq__plural(ran));
    for (uint32_t i = 0; i < m->words->slot_count; i++)
        if (m->places[i].pid)
            note_child(m, i);
}

void jobq__master_take_signals(jobq__master *m)
{
    int number;

    while ((number = jobq__signals_next()) != 0) {
        switch (number) {
        case SIGTERM:
        case SIGINT:
        case SIGQUIT:
        case SIGHUP:
            ask_to_stop(m, number);
            break;
        case SIGUSR1:
            dump(m);
            break;
        case SIGUSR2:
        case SIGCONT:
            set_paused(m, number == SIGUSR2);
            break;
        default: /* SIGCHLD: it has woken us */
            break;
        }
    }
}

/* ---- time limits ----------------------------------------------------------------------------- */

/* The group is the child's own; one that left it (setsid in a handler) is hit by its own number. */
void jobq__master_kill_place(jobq__master *m, uint32_t i)
{
    jobq__place *place = &m->places[i];

    place->killed = true;
    kill(-place->pid, SIGKILL);
    kill(place->pid, SIGKILL);
}

static void ask_child(const jobq__master *m, uint32_t i, jobq__run *run, const jobq__watch *w,
                      uint32_t kind)
{
    atomic_store(&run->soft_kind, kind);
    atomic_store(&run->soft_at_ms, m->now_ms);
    atomic_store(&run->soft_stop, w->running);
    kill(m->places[i].pid, SIGURG);
}

/* Never a child whose hand-out has ended meanwhile: finished work is not thrown away (rule I2). */
static void kill_overdue(jobq__master *m, uint32_t i, const jobq__run *run, const jobq__watch *w,
                         uint32_t kind)
{
    jobq__slot *slot = jobq__master_slot(m, i);

    if (m->places[i].killed)
        return;
    atomic_store(&slot->kill_kind, kind);
    atomic_store(&slot->killed, w->running);
    if (atomic_load(&run->number) == w->running &&
        jobq__slot_record(slot, w->running) == JOBQ__RUNNING) {
        jobq__master_kill_place(m, i);
    } else {
        atomic_store(&slot->killed, 0);
        atomic_store(&slot->kill_kind, JOBQ__KILL_NONE);
    }
}

static void watch_run(jobq__master *m, uint32_t i, jobq__run *run, bool hard)
{
    jobq__watch w;
    jobq__watch_step step;

    jobq__watch_read(jobq__master_slot(m, i), run, &w);
    jobq__watch_decide(&w, m->now_ms, hard, &step);
    jobq__master_wake_by(m, step.next_ms);
    switch (step.action) {
    case JOBQ__WATCH_SOFT:
        ask_child(m, i, run, &w, step.kind);
        break;
    case JOBQ__WATCH_AGAIN:
        kill(m->places[i].pid, SIGURG);
        break;
    case JOBQ__WATCH_KILL:
        kill_overdue(m, i, run, &w, step.kind);
        break;
    default:
        break;
    }
}

/* One after the other; the first that is to be killed takes the others with it. */
static void watch_child(jobq__master *m, uint32_t i, bool hard)
{
    jobq__slot *slot = jobq__master_slot(m, i);
    const uint32_t used = atomic_load(&slot->used);

    for (uint32_t k = 0; k < used && k < slot->seats; k++)
        watch_run(m, i, jobq__slot_run(slot, k), hard);
}

/* Its time is nearly over: a successor is started before (rule G7). */
static void watch_age(jobq__master *m, uint32_t i)
{
    const int64_t most_ms = m->worker->run_conf->s.recycle_time_ms;
    const int64_t lead_ms = most_ms / 4 < AGE_LEAD_MS ? most_ms / 4 : AGE_LEAD_MS;
    const int64_t at_ms = m->places[i].forked_ms + most_ms - lead_ms;

    if (!most_ms || atomic_load(&jobq__master_slot(m, i)->worn))
        return;
    jobq__master_wake_by(m, at_ms);
    if (m->now_ms >= at_ms)
        atomic_store(&jobq__master_slot(m, i)->worn, 1);
}

static uint32_t count_running(const jobq__master *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->words->slot_count; i++)
        n += m->places[i].pid ? jobq__slot_running(jobq__master_slot(m, i)) : 0;
    return n;
}

/* `drain` seconds after taking jobs ended, whatever ended it, patience ends too (rule H1). */
static void watch_drain(jobq__master *m)
{
    const int64_t drain_ms = m->worker->run_conf->s.drain_ms;
    const uint32_t stop = atomic_load(&m->words->stop);

    if (stop == JOBQ__GO)
        return;
    if (!m->stopping_since_ms)
        m->stopping_since_ms = m->now_ms;
    if (stop == JOBQ__HARD || !drain_ms)
        return;
    jobq__master_wake_by(m, m->stopping_since_ms + drain_ms);
    if (m->now_ms < m->stopping_since_ms + drain_ms)
        return;
    atomic_fetch_add(&m->words->counters[JOBQ__COUNT_DRAIN_EXPIRED], count_running(m));
    jobq__master_stop(m, JOBQ__HARD, JOBQ__STOP_NONE);
}

void jobq__master_watch(jobq__master *m)
{
    bool hard;

    watch_drain(m);
    hard = atomic_load(&m->words->stop) == JOBQ__HARD;
    for (uint32_t i = 0; i < m->words->slot_count; i++) {
        if (!m->places[i].pid)
            continue;
        watch_child(m, i, hard);
        watch_age(m, i);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static int64_t patience_ms(const jobq__master *m)
{
    const int64_t grace_ms = m->worker->run_conf->s.timeout_grace_ms;
    const bool hurry = atomic_load(&m->words->stop) == JOBQ__HARD;

    return grace_ms < PART_MIN_MS || hurry ? PART_MIN_MS : grace_ms;
}

static void tell_to_leave(const jobq__master *m)
{
    for (uint32_t i = 0; i < m->words->slot_count; i++) {
        if (!m->places[i].pid)
            continue;
        atomic_store(&jobq__master_slot(m, i)->leave, 1);
        jobq__slot_wake(jobq__master_slot(m, i));
    }
}

void jobq__master_part(jobq__master *m)
{
    if (!atomic_load(&m->words->settled))
        return;
    if (!m->leaving_since_ms) {
        m->leaving_since_ms = m->now_ms;
        tell_to_leave(m);
    }
    jobq__master_wake_by(m, m->now_ms + JOBQ__TICK_MS);
    if (m->now_ms >= m->leaving_since_ms + patience_ms(m))
        for (uint32_t i = 0; i < m->words->slot_count; i++)
            if (m->places[i].pid && !m->places[i].killed)
                jobq__master_kill_place(m, i);
    if (m->dispatcher && !m->dispatcher_killed &&
        m->now_ms >= m->leaving_since_ms + PART_DISPATCHER_MS) {
        m->dispatcher_killed = true;
        kill(m->dispatcher, SIGKILL);
    }
}
