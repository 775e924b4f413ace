/* SPDX-License-Identifier: MIT
 *
 * A child of the pool: how it starts, the step API over its job ring, when it asks to be replaced,
 * how it leaves. No library frame lies below a handler, and a process that a handler forked (rule
 * D7, case B052) touches nothing here.
 */
#include "worker/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"
#include "util/str.h"
#include "worker/memory.h"

enum { IDLE_LOOK_MS = 1000, MEASURE_EVERY_MS = 250, OOM_SCORE_MORE = 200 };

/* ---- telling the others ---------------------------------------------------------------------- */

/* A handler may have closed the pipe and opened something else under its number: the dispatcher
 * looks every 50 ms then (rule D7). */
static void ring_bell(int fd, const jobq__fd_identity *identity)
{
    if (jobq__fd_is(fd, identity))
        jobq__fd_ring(fd);
}

void jobq__child_tell_dispatcher(const jobq_worker *worker)
{
    if (atomic_load(&worker->shared.words->dispatcher_sleeping))
        ring_bell(worker->shared.dispatcher_bell[1], &worker->shared.dispatcher_bell_id);
}

void jobq__child_tell_master(const jobq_worker *worker)
{
    jobq__words *words = worker->shared.words;

    if (atomic_load(&words->master_sleeping) && atomic_exchange(&words->master_sleeping, 0))
        ring_bell(worker->shared.master_bell[1], &worker->shared.master_bell_id);
}

static void set_retiring(const jobq_worker *worker)
{
    if (atomic_exchange(&worker->child->slot->retiring, 1))
        return;
    jobq__child_tell_dispatcher(worker);
    jobq__child_tell_master(worker);
}

static void write_fatal(jobq__slot *slot, const char *text, size_t n)
{
    if (!text)
        return;
    n = jobq__utf8_cut(text, n, JOBQ__FATAL_TEXT);
    memcpy(slot->fatal, text, n);
    atomic_store(&slot->fatal_n, (uint32_t)n);
}

void jobq__child_retire(jobq_worker *worker, const char *text, size_t n)
{
    write_fatal(worker->child->slot, text, n);
    set_retiring(worker);
}

/* ---- when to be replaced (rule G1: memory, recycle_jobs, recycle_time) ----------------------- */

/* Its successor is to be there when it goes, so the master hears of it before. */
static void set_worn(const jobq_worker *worker)
{
    if (!atomic_exchange(&worker->child->slot->worn, 1))
        jobq__child_tell_master(worker);
}

/* Private memory in MB when it is over the limit, else 0. Looked at no oftener than four times a
 * second. */
static int64_t measure_memory(const jobq_worker *worker, int64_t now_ms)
{
    struct jobq__child *child = worker->child;
    const int64_t limit_mb = worker->run_conf->s.memory_mb;
    int64_t kb;

    if (!limit_mb || (child->measured_ms && now_ms - child->measured_ms < MEASURE_EVERY_MS))
        return 0;
    child->measured_ms = now_ms;
    kb = jobq__memory_private_kb();
    if (kb > limit_mb * 1024 / 20 * 19)
        set_worn(worker);
    return kb > limit_mb * 1024 ? (kb + 1023) / 1024 : 0;
}

static bool is_old(const jobq_worker *worker, int64_t now_ms)
{
    const int64_t most_ms = worker->run_conf->s.recycle_time_ms;

    return most_ms && now_ms - worker->child->began_ms >= most_ms;
}

static bool is_worn(const jobq_worker *worker, int64_t now_ms)
{
    const int64_t most = worker->run_conf->s.recycle_jobs;

    return (most && atomic_load(&worker->child->slot->jobs_run) >= most) ||
           is_old(worker, now_ms) || measure_memory(worker, now_ms) > 0;
}

/* Before a job: is it among the last quarter of those the child may run, or its last one? */
void jobq__child_foresee(const jobq_worker *worker)
{
    const int64_t most = worker->run_conf->s.recycle_jobs;

    if (most && most - atomic_load(&worker->child->slot->jobs_run) <= (most < 8 ? 1 : most / 4))
        set_worn(worker);
}

void jobq__child_check_wear(jobq_worker *worker, int64_t now_ms)
{
    if (is_worn(worker, now_ms))
        set_retiring(worker);
}

/* The first call of next: everything that child.started listeners do is done. */
static bool survive_start(jobq_worker *worker)
{
    struct jobq__child *child = worker->child;
    uint32_t starting = JOBQ__SLOT_STARTING;
    const int64_t mb = measure_memory(worker, jobq__clock_mono_ms());
    char text[160];

    if (mb > 0) {
        int n = snprintf(
            text, sizeof(text),
            "the child has %lld MB of private memory before its first job; memory allows %lld",
            (long long)mb, (long long)worker->run_conf->s.memory_mb);

        jobq__child_retire(worker, text, (size_t)n);
        return false;
    }
    atomic_store(&child->slot->started, 1);
    atomic_compare_exchange_strong(&child->slot->state, &starting, JOBQ__SLOT_LIVE);
    jobq__child_tell_dispatcher(worker);
    return true;
}

/* ---- the step API ---------------------------------------------------------------------------- */

/* Unstarted jobs stay where they are while the worker stops or pauses: the dispatcher takes them
 * back. */
static bool may_begin(const jobq_worker *worker)
{
    const jobq__words *words = worker->shared.words;

    return atomic_load(&words->stop) == JOBQ__GO && !atomic_load(&words->paused) &&
           !atomic_load(&worker->child->slot->leave);
}

static void skip_message(const jobq_worker *worker)
{
    jobq__child_release_message(worker->child);
    if (jobq__ring_is_empty(&worker->child->slot->jobs))
        jobq__child_tell_dispatcher(worker);
}

static void hold_message(struct jobq__child *child, const jobq__job_message *m, uint64_t cursor)
{
    child->has_message = true;
    child->message_has_area = m->body_in_area;
    child->message_is_event = m->kind == JOBQ__MSG_EVENT;
    child->cursor = cursor;
}

/* 0, JOBQ_STEP_EVENT: listeners are asked first, or -1: they do not want it. */
static int may_loop(jobq_worker *worker, jobq_event **event_out)
{
    if (!worker->loop.asks)
        return 0;
    if (jobq__loop_before_job(worker, &worker->child->event, jobq__clock_mono_ms(), event_out))
        return JOBQ_STEP_EVENT;
    return worker->loop.vetoed ? -1 : 0;
}

/* What listeners said of `looping` since the last look. */
static void note_veto(const jobq_worker *worker)
{
    jobq__slot *slot = worker->child->slot;

    if (worker->loop.asks &&
        atomic_exchange(&slot->vetoed, worker->loop.vetoed) != (uint32_t)worker->loop.vetoed)
        jobq__child_tell_dispatcher(worker);
}

/* JOBQ_STEP_EVENT: looping by time; or, when there is nothing to do, idle. */
static int take_question(jobq_worker *worker, bool idle, jobq_event **event_out)
{
    jobq_event *event = &worker->child->event;

    if (!worker->loop.asks && !worker->loop.tells)
        return 0;
    return idle ? jobq__loop_idle(worker, event, event_out)
                : jobq__loop_by_time(worker, event, jobq__clock_mono_ms(), event_out);
}

/* JOBQ_STEP_JOB, JOBQ_STEP_EVENT, an error, or 0: nothing to do now. */
static int take_message(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out)
{
    struct jobq__child *child = worker->child;
    jobq__slot *slot = child->slot;
    const jobq__job_message *m;
    uint64_t cursor;
    size_t n;
    int rc = 0;

    for (;;) {
        cursor = atomic_load(&slot->jobs.tail);
        m = jobq__ring_look(&slot->jobs, jobq__slot_base(slot), &cursor, &n);
        if (!m)
            return 0;
        if (m->kind == JOBQ__MSG_JOB && jobq__slot_record(slot, m->handout) == JOBQ__GIVEN &&
            (!may_begin(worker) || !jobq__child_has_seat(child, m) ||
             (rc = may_loop(worker, event_out)) != 0))
            return rc > 0 ? rc : 0;
        hold_message(child, m, cursor);
        if (m->kind == JOBQ__MSG_EVENT) {
            if ((rc = jobq__child_open_event(worker, m, event_out)) != 0)
                return rc;
        } else if (jobq__slot_begin(slot, m->handout) &&
                   (rc = jobq__child_open_job(worker, m, job_out)) != 0) {
            return rc;
        }
        skip_message(worker);
    }
}

/* Nothing to do now: the descriptor becomes readable when there may be. True: there is already. */
static bool wait_by_fd(jobq_worker *worker, uint32_t seen)
{
    jobq__slot *slot = worker->child->slot;

    worker->loop.fresh = false; /* as in sleep_idle */
    if (worker->child->running == 0 && getppid() != worker->master_pid)
        _exit(1); /* see sleep_idle */
    atomic_store(&slot->sleeping, JOBQ__BY_FD);
    worker->child->polled = true;
    if (atomic_load(&slot->bell) == seen)
        return false;
    atomic_store(&slot->sleeping, JOBQ__AWAKE);
    return true;
}

/* Always empties the pipe: who wakes us may write behind our back. */
static void end_poll(const jobq_worker *worker)
{
    const int fd = worker->child->polled ? jobq__child_fd(worker) : -1;

    if (worker->child->polled)
        atomic_store(&worker->child->slot->sleeping, JOBQ__AWAKE);
    worker->child->polled = false;
    if (fd >= 0)
        jobq__fd_drain(fd);
}

static bool may_leave(const jobq_worker *worker)
{
    return atomic_load(&worker->child->slot->leave) || atomic_load(&worker->shared.words->settled);
}

static void sleep_idle(jobq_worker *worker, uint32_t seen)
{
    const jobq_worker_hooks *hooks = &worker->hooks;

    worker->loop.fresh = false; /* an answer does not keep over a sleep */
    if (hooks->idle_enter)
        hooks->idle_enter(hooks->payload);
    jobq__slot_sleep(
        worker->child->slot, seen,
        jobq__loop_wait_ms(worker, worker->loop.asks ? jobq__clock_mono_ms() : 0, IDLE_LOOK_MS));
    /* The death signal is lost when a handler changes its user. Who rang us shows that all is
     * well. */
    if (atomic_load(&worker->child->slot->bell) == seen && getppid() != worker->master_pid)
        _exit(1);
    if (hooks->idle_leave)
        hooks->idle_leave(hooks->payload);
}

/* What must be over before the next step, and what the last one left. */
static int end_step(jobq_worker *worker)
{
    struct jobq__child *child = worker->child;

    if (worker->stamp != jobq__process_stamp())
        return jobq__error_set(
            JOBQ_EFORKED, "this process was forked by a handler and is no child of the worker");
    if (child->running && child->alone)
        return jobq__error_set(JOBQ_EINVAL, "job %s is not settled yet", worker->job.id);
    jobq__hook_close(worker);
    if (child->has_message && child->message_is_event)
        skip_message(worker); /* nothing else tells of its end */
    else
        jobq__child_release_message(child);
    return 0;
}

int jobq__child_next(jobq_worker *worker, bool wait, jobq_job **job_out, jobq_event **event_out)
{
    struct jobq__child *child = worker->child;
    jobq__slot *slot = child->slot;
    uint32_t seen;
    int rc;

    if ((rc = end_step(worker)) < 0)
        return rc;
    end_poll(worker);
    if (!atomic_load(&slot->started) && (atomic_load(&slot->retiring) || !survive_start(worker)))
        return JOBQ_STEP_STOP;
    note_veto(worker);
    for (;;) {
        seen = atomic_load(&slot->bell);
        if (atomic_load(&slot->retiring))
            return JOBQ_STEP_STOP;
        if ((rc = take_question(worker, false, event_out)) != 0 ||
            (rc = take_message(worker, job_out, event_out)) != 0)
            return rc;
        if (may_leave(worker))
            return JOBQ_STEP_STOP;
        if (child->running == 0 && (rc = take_question(worker, true, event_out)) != 0)
            return rc;
        if (is_old(worker, jobq__clock_mono_ms()))
            set_retiring(worker);
        else if (wait)
            sleep_idle(worker, seen);
        else if (!wait_by_fd(worker, seen))
            return JOBQ_STEP_WAIT;
    }
}

int jobq__child_fd(const jobq_worker *worker)
{
    const jobq__shared *shared = &worker->shared;

    if (worker->stamp != jobq__process_stamp() || !shared->slot_bells ||
        !jobq__fd_is(shared->slot_bells[worker->slot][0], &worker->child->bell_id))
        return -1;
    return shared->slot_bells[worker->slot][0];
}

_Noreturn void jobq__child_finish(jobq_worker *worker)
{
    const jobq__slot *slot = worker->child->slot;

    if (worker->stamp != jobq__process_stamp())
        _exit(0);
    fflush(stdout);
    fflush(stderr);
    if (worker->child->running)
        _exit(255); /* ends in the middle of a job: the master records a crash */
    _exit(atomic_load(&slot->started) ? 0 : 1);
}

/* ---- right after the fork -------------------------------------------------------------------- */

static void raise_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC), score;
    char text[16] = "";
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    int64_t now = 0;

    if (n > 0 && jobq__str_int(text, strcspn(text, "\n"), &now)) {
        score = now + OOM_SCORE_MORE > 1000 ? 1000 : (int)now + OOM_SCORE_MORE;
        n = snprintf(text, sizeof(text), "%d", score);
        (void)(pwrite(fd, text, (size_t)n, 0) < 0); /* a wish; it may be refused */
    }
    if (fd >= 0)
        close(fd);
}

static void replace_stdin(void)
{
    int fd = open("/dev/null", O_RDONLY);

    if (fd > 0) {
        dup2(fd, 0);
        close(fd);
    }
}

/* Text that the handler leaves to stdio must not wait for a full buffer that a kill throws away.
 * What the application made unbuffered stays so. A buffer that has been written to goes on being
 * filled up, so it gets another one, which it has for the rest of this process' life. */
static void set_line_buffering(void)
{
    char *buffer;

    if (__fbufsize(stdout) == 1)
        return;
    buffer = jobq__alloc(BUFSIZ);
    setvbuf(stdout, buffer, _IOLBF, buffer ? BUFSIZ : 0);
}

static void part_from_parent(jobq_worker *worker, uint32_t slot)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != worker->master_pid)
        _exit(1);
    close(worker->shared.master_bell[0]);
    close(worker->shared.dispatcher_bell[0]);
    jobq__shared_narrow(&worker->shared, slot);
    replace_stdin();
    set_line_buffering();
    raise_oom_score();
}

void jobq__child_begin(jobq_worker *worker, uint32_t slot)
{
    struct jobq__child *child;

    part_from_parent(worker, slot);
    worker->role = JOBQ_ROLE_CHILD;
    worker->slot = slot;
    worker->stamp = jobq__process_stamp();
    worker->child = child = jobq__zalloc(sizeof(*child));
    if (child)
        child->seats = jobq__zalloc(worker->shared.seats * sizeof(*child->seats));
    if (!child || !child->seats) {
        static const char text[] = "out of memory while starting a child";

        write_fatal(jobq__slot_at(&worker->shared, slot), text, sizeof(text) - 1);
        _exit(1);
    }
    child->slot = jobq__slot_at(&worker->shared, slot);
    child->area =
        worker->shared.areas ? worker->shared.areas + slot * worker->shared.area_size : NULL;
    child->began_ms = jobq__clock_mono_ms();
    atomic_store(&child->slot->used, 1);
    if (worker->shared.slot_bells)
        jobq__fd_identify(worker->shared.slot_bells[slot][0], &child->bell_id);
    jobq__signals_child(worker->hooks.interrupt, worker->hooks.payload);
    if (worker->hooks.after_fork_child)
        worker->hooks.after_fork_child(worker->hooks.payload);
}
