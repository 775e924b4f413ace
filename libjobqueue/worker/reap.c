/* SPDX-License-Identifier: MIT
 *
 * Deaths: of children (rules C5, D5, G7) and of the dispatcher. Only own processes are waited for,
 * so that the application's other children stay its own.
 */
#include "worker/master.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/str.h"

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 5000, DEATHS_ALLOWED = 5, YOUNG_MS = 1000 };

static void describe_status(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(status));
}

/* ---- children -------------------------------------------------------------------------------- */

static void describe_death(jobq__master *m, const jobq__slot *slot, int status)
{
    char how[128];
    const size_t n = atomic_load(&slot->fatal_n);

    describe_status(status, how, sizeof(how));
    if (n && n <= JOBQ__FATAL_TEXT)
        jobq__str_one_line(m->last_death, sizeof(m->last_death), slot->fatal, n);
    else
        snprintf(m->last_death, sizeof(m->last_death), "%s", how);
}

static bool has_started_child(const jobq__master *m)
{
    for (uint32_t i = 0; i < m->words->slot_count; i++)
        if (m->places[i].pid && atomic_load(&jobq__master_slot(m, i)->started))
            return true;
    return false;
}

static void back_off(jobq__master *m)
{
    m->fork_backoff_ms = m->fork_backoff_ms ? m->fork_backoff_ms * 2 : BACKOFF_FIRST_MS;
    if (m->fork_backoff_ms > BACKOFF_MAX_MS)
        m->fork_backoff_ms = BACKOFF_MAX_MS;
    m->fork_at_ms = m->now_ms + m->fork_backoff_ms;
}

void jobq__master_note_bad_start(jobq__master *m)
{
    back_off(m);
    if (m->start_deaths == 0)
        jobq__observer_error(m->observer, "a child did not survive its start: %s", m->last_death);
    if (++m->start_deaths < DEATHS_ALLOWED || has_started_child(m) ||
        atomic_load(&m->words->stop) != JOBQ__GO)
        return;
    jobq__observer_error(m->observer, "no child survives its start: %s", m->last_death);
    jobq__master_fail(m, 1);
    jobq__master_stop(m, JOBQ__DRAIN, JOBQ__STOP_NO_CHILD);
}

/* Died in the middle of its work, its own processes go with it: the job may run again at any moment
 * (case B050). One that leaves by itself keeps what it started. The zombie still holds the group's
 * number. */
static void bury_group(const siginfo_t *info)
{
    if (info->si_code != CLD_EXITED || info->si_status != 0)
        kill(-info->si_pid, SIGKILL);
}

/* Nobody asked it to, and no job is to blame: one after the other would only burn the machine. */
static bool died_for_nothing(const jobq__master *m, const jobq__place *place,
                             const jobq__slot *slot)
{
    return m->now_ms - place->forked_ms < YOUNG_MS && !place->killed &&
           atomic_load(&m->words->stop) == JOBQ__GO && !atomic_load(&slot->retiring) &&
           !atomic_load(&slot->leave) && !atomic_load(&slot->jobs_run) && !jobq__slot_running(slot);
}

/* Said at the first, second, fourth, ... of a row. */
static void note_short_life(jobq__master *m)
{
    const unsigned n = m->short_lives++;
    const int64_t wait_ms = n < 7 ? BACKOFF_FIRST_MS << n : BACKOFF_MAX_MS;

    m->fork_at_ms = m->now_ms + wait_ms;
    if ((m->short_lives & n) == 0)
        jobq__observer_error(m->observer,
                             "a child died before its first job: %s; the next one in %.2g s",
                             m->last_death, (double)wait_ms / 1000);
}

static void judge_start(jobq__master *m, const jobq__place *place, const jobq__slot *slot,
                        int status)
{
    describe_death(m, slot, status);
    if (!atomic_load(&slot->started) && !place->killed)
        jobq__master_note_bad_start(m);
    else if (died_for_nothing(m, place, slot))
        note_short_life(m);
    else
        m->short_lives = 0;
}

static void reap_child(jobq__master *m, uint32_t i)
{
    jobq__place *place = &m->places[i];
    jobq__slot *slot = jobq__master_slot(m, i);
    siginfo_t info = {0};
    int status = 0;

    if (waitid(P_PID, (id_t)place->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        if (info.si_pid != place->pid)
            return;
        bury_group(&info);
        waitpid(place->pid, &status, 0);
    } else if (errno == EINTR) {
        return;
    } /* else somebody else has waited for it: gone, nobody knows how */
    jobq__collect_part(m->collector, place->pid);
    judge_start(m, place, slot, status);
    *place = (jobq__place){0};
    atomic_store(&slot->wait_status, status);
    atomic_store(&slot->state, JOBQ__SLOT_DEAD);
    jobq__master_ring_dispatcher(m);
}

/* Somebody has come through its start: the row of bad ones ends. */
static void see_started(jobq__master *m, uint32_t i)
{
    if (m->places[i].seen_started || !atomic_load(&jobq__master_slot(m, i)->started))
        return;
    m->places[i].seen_started = true;
    m->start_deaths = 0;
    m->fork_backoff_ms = 0;
}

/* ---- the dispatcher -------------------------------------------------------------------------- */

/* The store is unattended for good. What children hold comes back by lease. */
static void give_up(jobq__master *m, const char *how)
{
    jobq__observer_error(m->observer, "the dispatcher does not survive its start: %s", how);
    jobq__master_fail(m, 1);
    jobq__master_stop(m, JOBQ__HARD, JOBQ__STOP_NONE);
    atomic_store(&m->words->settled, 1);
}

static void replace_dispatcher(jobq__master *m, int status)
{
    const bool beat = atomic_load(&m->words->beat_until_ms) != m->first_beat_ms;
    const bool young = m->now_ms - m->dispatcher_forked_ms < YOUNG_MS;
    char how[128];

    describe_status(status, how, sizeof(how));
    m->dispatcher_failures = beat ? 0 : m->dispatcher_failures + 1;
    if (m->dispatcher_failures >= DEATHS_ALLOWED) {
        give_up(m, how);
        return;
    }
    if (!m->dispatcher_killed)
        jobq__observer_error(m->observer, "the dispatcher died (%s): another takes over", how);
    m->dispatcher_at_ms = m->now_ms + (young ? BACKOFF_FIRST_MS << m->dispatcher_failures : 0);
}

static void reap_dispatcher(jobq__master *m)
{
    int status = 0;
    pid_t pid = m->dispatcher ? waitpid(m->dispatcher, &status, WNOHANG) : 0;

    if (!m->dispatcher || pid == 0 || (pid < 0 && errno == EINTR))
        return;
    jobq__collect_part(m->collector, m->dispatcher);
    m->dispatcher = 0;
    jobq__ready_set(m->worker, false);
    atomic_store(&m->words->dispatcher_sleeping, 0);
    if (!atomic_load(&m->words->settled))
        replace_dispatcher(m, status);
}

/* Hung: its own promise has run out. Not while it may be us who were stopped. */
void jobq__master_check_dispatcher(jobq__master *m)
{
    if (!m->dispatcher || m->dispatcher_killed || m->now_ms < m->trust_from_ms ||
        m->now_ms <= atomic_load(&m->words->beat_until_ms))
        return;
    if (!atomic_load(&m->words->settled))
        jobq__observer_error(m->observer, "the dispatcher hangs: another takes over");
    m->dispatcher_killed = true;
    kill(m->dispatcher, SIGKILL);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* As process 1 we get everybody's orphans. */
static void reap_orphans(const jobq__master *m)
{
    siginfo_t info = {0};
    bool ours;

    while (getpid() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid) {
        ours = info.si_pid == m->dispatcher;
        for (uint32_t i = 0; i < m->words->slot_count; i++)
            ours = ours || info.si_pid == m->places[i].pid;
        if (ours)
            return; /* died since we looked: next round */
        waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}

void jobq__master_reap(jobq__master *m)
{
    reap_dispatcher(m);
    for (uint32_t i = 0; i < m->words->slot_count; i++) {
        if (!m->places[i].pid)
            continue;
        see_started(m, i);
        reap_child(m, i);
    }
    reap_orphans(m);
}
