/* SPDX-License-Identifier: MIT
 *
 * The master: the only file that forks. First the dispatcher, then the children, then a small loop
 * over signals, deaths, time limits and replacements until the last child is gone.
 *
 *     fork dispatcher --> loop { reap, signals, watch, fork what is missing, wait } --> settled
 *     --> children
 *     told to leave --> all reaped --> last lines
 */
#include "worker/master.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"
#include "worker/preflight.h"

enum {
    FIRST_BEAT_MS = 10000,
    STOPPED_OURSELVES_MS = 3000,
    MERCY_MS = 10000,
    BODY_MAX = 64 << 20,
    OUTCOME_MORE = 4096
};

/* ---- small things the other files use -------------------------------------------------------- */

void jobq__master_ring_dispatcher(const jobq__master *m)
{
    jobq__fd_ring(m->shared->dispatcher_bell[1]);
}

void jobq__master_fail(jobq__master *m, int code)
{
    int32_t none = 0;

    atomic_compare_exchange_strong(&m->words->exit_code, &none, code);
}

void jobq__master_stop(jobq__master *m, uint32_t level, uint32_t reason)
{
    jobq__words_stop(m->words, level, reason, 0);
    jobq__master_ring_dispatcher(m);
    jobq__master_wake_by(m, m->now_ms);
}

bool jobq__master_has_children(const jobq__master *m)
{
    for (uint32_t i = 0; i < m->words->slot_count; i++)
        if (m->places[i].pid)
            return true;
    return false;
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* Signals are blocked across it: none can find a handler of the master's in a process that is not
 * it. The new process lets them in when it has its own (signals.c). */
static pid_t fork_blocked(const jobq_worker *worker)
{
    const jobq_worker_hooks *hooks = &worker->hooks;
    sigset_t all, before;
    pid_t pid;
    int saved;

    if (hooks->before_fork)
        hooks->before_fork(hooks->payload);
    fflush(stdout);
    fflush(stderr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    saved = errno;
    if (pid != 0) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (hooks->after_fork_parent)
            hooks->after_fork_parent(hooks->payload);
    }
    errno = saved;
    return pid;
}

static int fork_dispatcher(jobq__master *m)
{
    const bool again = atomic_fetch_add(&m->words->dispatcher_starts, 1) > 0;
    jobq__pipes pipes;
    pid_t pid;
    int saved;

    m->dispatcher_forked_ms = m->now_ms;
    m->first_beat_ms = m->now_ms + FIRST_BEAT_MS;
    m->dispatcher_killed = false;
    atomic_store(&m->words->beat_until_ms, m->first_beat_ms);
    jobq__collect_open(m->collector, &pipes);
    pid = fork_blocked(m->worker);
    if (pid == 0) {
        m->worker->stamp = jobq__process_stamp();
        jobq__signals_dispatcher();
        jobq__dispatcher_main(m->worker, again, pipes.ends);
    }
    saved = errno;
    jobq__collect_keep(m->collector, &pipes, pid, JOBQ__COLLECT_DISPATCHER);
    if (pid < 0)
        return jobq__error_set(JOBQ_EIO, "the dispatcher could not be forked: %s", strerror(saved));
    m->dispatcher = pid;
    return 0;
}

static void refork_dispatcher(jobq__master *m)
{
    if (m->dispatcher || atomic_load(&m->words->settled))
        return;
    jobq__master_wake_by(m, m->dispatcher_at_ms);
    if (m->now_ms < m->dispatcher_at_ms)
        return;
    if (fork_dispatcher(m) < 0) {
        jobq__observer_error(m->observer, "%s", jobq_error_message(jobq_error_last()));
        m->dispatcher_at_ms = m->now_ms + JOBQ__IDLE_TICK_MS;
    }
}

/* JOBQ_ROLE_CHILD in the child. */
static int fork_child(jobq__master *m, uint32_t i)
{
    jobq__slot *slot = jobq__master_slot(m, i);
    jobq__pipes pipes;
    pid_t pid;
    int saved;

    atomic_store(&slot->state, JOBQ__SLOT_STARTING);
    jobq__collect_open(m->collector, &pipes);
    pid = fork_blocked(m->worker);
    if (pid == 0) {
        jobq__collect_enter(m->collector, &pipes);
        jobq__child_begin(m->worker, i);
        return JOBQ_ROLE_CHILD;
    }
    saved = errno;
    jobq__collect_keep(m->collector, &pipes, pid, i);
    if (pid < 0) {
        snprintf(m->last_death, sizeof(m->last_death), "fork: %s", strerror(saved));
        atomic_store(&slot->state, JOBQ__SLOT_FREE);
        jobq__master_note_bad_start(m);
        return JOBQ_ROLE_MASTER;
    }
    setpgid(pid, pid); /* both sides: whoever comes first */
    m->places[i] = (jobq__place){.pid = pid, .forked_ms = m->now_ms};
    atomic_store(&slot->pid, pid);
    return JOBQ_ROLE_MASTER;
}

/* Children that stay, as far as anybody knows. One that will be replaced does not, though it works
 * until its successor can. */
static uint32_t count_staying(const jobq__master *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->words->slot_count; i++)
        n += m->places[i].pid && !m->places[i].killed &&
             !atomic_load(&jobq__master_slot(m, i)->retiring) &&
             !atomic_load(&jobq__master_slot(m, i)->worn);
    return n;
}

/* Forks what is missing; spare slots let a new child start while the old one still works (rule
 * G7). */
static int fill_places(jobq__master *m)
{
    uint32_t staying = count_staying(m);

    for (uint32_t i = 0; i < m->words->slot_count && staying < m->words->processes; i++) {
        if (atomic_load(&m->words->stop) != JOBQ__GO)
            break;
        if (m->now_ms < m->fork_at_ms) {
            jobq__master_wake_by(m, m->fork_at_ms);
            break;
        }
        if (m->places[i].pid || atomic_load(&jobq__master_slot(m, i)->state) != JOBQ__SLOT_FREE)
            continue;
        if (fork_child(m, i) == JOBQ_ROLE_CHILD)
            return JOBQ_ROLE_CHILD;
        staying++;
    }
    return JOBQ_ROLE_MASTER;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool is_busy(const jobq__master *m)
{
    if (atomic_load(&m->words->stop) != JOBQ__GO || atomic_load(&m->words->out))
        return true;
    for (uint32_t i = 0; i < m->words->slot_count; i++)
        if (m->places[i].pid && jobq__slot_running(jobq__master_slot(m, i)))
            return true;
    return false;
}

/* While something runs we look every 50 ms; otherwise whoever begins a job rings. */
static void wait_for_news(jobq__master *m)
{
    const int fds[] = {jobq__signals_fd(), m->shared->master_bell[0]};
    const int64_t now_ms = jobq__clock_mono_ms();
    int64_t wait_ms = m->wake_ms - now_ms;

    atomic_store(&m->words->master_sleeping, wait_ms > JOBQ__TICK_MS);
    if (wait_ms > JOBQ__TICK_MS && is_busy(m)) {
        atomic_store(&m->words->master_sleeping, 0);
        wait_ms = JOBQ__TICK_MS;
    }
    jobq__collect_wait(m->collector, fds, now_ms + wait_ms);
    atomic_store(&m->words->master_sleeping, 0);
    jobq__fd_drain(m->shared->master_bell[0]);
}

static void take_time(jobq__master *m)
{
    const int64_t now_ms = jobq__clock_mono_ms();

    if (m->now_ms && now_ms - m->now_ms > STOPPED_OURSELVES_MS)
        m->trust_from_ms = now_ms + MERCY_MS;
    m->now_ms = now_ms;
    m->wake_ms = now_ms + JOBQ__IDLE_TICK_MS;
}

static int loop(jobq__master *m)
{
    for (;;) {
        take_time(m);
        jobq__master_reap(m);
        jobq__master_take_signals(m);
        jobq__master_watch(m);
        jobq__master_check_dispatcher(m);
        jobq__master_part(m);
        jobq__master_wake_by(m, jobq__notify_tick(&m->notifier, m->words, m->now_ms));
        refork_dispatcher(m);
        if (!m->dispatcher && atomic_load(&m->words->settled) && !jobq__master_has_children(m))
            return JOBQ_ROLE_MASTER;
        if (fill_places(m) == JOBQ_ROLE_CHILD)
            return JOBQ_ROLE_CHILD;
        wait_for_news(m);
    }
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void warn_about_process(const jobq__master *m)
{
    const int64_t threads = jobq__preflight_threads(), sockets = jobq__preflight_sockets();

    if (threads)
        jobq__observer_note(m->observer,
                            "this process has %lld more thread%s, which its children will not have",
                            (long long)threads, threads == 1 ? "" : "s");
    if (sockets)
        jobq__observer_note(
            m->observer,
            "this process has %lld open socket%s, which its children share: open connections "
            "in child.started",
            (long long)sockets, sockets == 1 ? "" : "s");
}

static size_t max_body(const jobq_worker *worker)
{
    const size_t n = jobq__store_driver(worker->queue->store)->max_body;

    return n && n < BODY_MAX ? n : BODY_MAX;
}

/* A result of the largest size, and what an outcome holds beside it. */
static size_t max_outcome(const jobq_worker *worker)
{
    return (size_t)worker->queue->conf->s.max_payload + OUTCOME_MORE;
}

static int prepare(jobq__master *m)
{
    jobq_worker *worker = m->worker;
    int rc = jobq__shared_new(&worker->shared, (uint32_t)worker->run_conf->s.processes,
                              jobq__worker_seats(worker), max_body(worker), max_outcome(worker));

    if (rc < 0)
        return rc;
    m->shared = &worker->shared;
    m->words = worker->shared.words;
    memcpy(m->words->worker_id, worker->id, sizeof(worker->id));
    atomic_store(&m->words->generation, worker->generation);
    m->places = jobq__zalloc(m->words->slot_count * sizeof(*m->places));
    if (!m->places)
        return jobq__error_nomem();
    if ((rc = jobq__observer_new(worker, &m->observer)) < 0)
        return rc;
    if ((rc = jobq__collect_new(m->shared, m->observer, &m->collector)) < 0)
        return rc;
    jobq_queue_disconnect(worker->queue);
    if ((rc = jobq__preflight_file(jobq__store_file(worker->queue->store))) < 0)
        return rc;
    worker->master_pid = getpid();
    take_time(m);
    jobq__notify_begin(&m->notifier, m->now_ms);
    jobq__observer_starting(m->observer);
    return fork_dispatcher(m);
}

static void print_end(jobq__master *m, int *code_out)
{
    jobq_worker *worker = m->worker;

    jobq__collect_finish(m->collector);
    *code_out = atomic_load(&m->words->exit_code);
    jobq__worker_stop_text(m->words, worker->stop_text, sizeof(worker->stop_text));
    jobq__observer_stopping(m->observer, worker->stop_text, atomic_load(&m->words->jobs_run),
                            *code_out);
    jobq__observer_tick(m->observer, jobq__clock_mono_ms());
}

static void clean_up(jobq__master *m)
{
    jobq__collect_free(m->collector);
    jobq__observer_free(m->observer);
    jobq__free(m->places);
}

/* A child keeps what the master has allocated: freeing it would only copy pages. */
int jobq__master_run(jobq_worker *worker, int *code_out)
{
    jobq__master m = {.worker = worker};
    int rc = prepare(&m);

    if (rc < 0) {
        clean_up(&m);
        return rc;
    }
    warn_about_process(&m);
    if (loop(&m) == JOBQ_ROLE_CHILD)
        return JOBQ_ROLE_CHILD;
    print_end(&m, code_out);
    clean_up(&m);
    return JOBQ_ROLE_MASTER;
}
