/* SPDX-License-Identifier: MIT
 *
 * Inline mode (processes = 0, run_next): the same steps and the same policy in the calling process,
 * one job at a time, for debuggers, tests and `memory:`. The lease covers the job's time limit
 * (rule G8); time limits and hard stops are exceptions only, asked for by a timer's signal.
 */
#include "worker/inline.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/follow.h"
#include "util/clock.h"
#include "util/error.h"
#include "worker/memory.h"

enum { EXIT_MEMORY = 12 };

/* ---- the next job ---------------------------------------------------------------------------- */

/* 1: *job_out is the caller's; 0: not now; or an error. */
static int start_held(jobq_worker *worker, jobq_job **job_out)
{
    struct jobq__inline *inl = worker->inl;
    jobq__desk *desk = inl->desk;
    jobq__ticket *ticket = desk->held.first;
    const jobq_conf *conf = jobq__worker_handler_conf(worker, ticket->handout->handler);
    int rc;

    if (!jobq__told_free_key(desk, ticket))
        return 0;
    rc = jobq__desk_renew(desk, jobq__inline_lease(desk, &ticket->handout->policy), &ticket, 1);
    if (rc != 0)
        return 0; /* an outage, or the job is lost with the lease */
    rc = jobq__job_fill(&worker->job, ticket->record, worker->run_conf, conf,
                        ticket->handout->taken_at_ms);
    if (rc < 0)
        return rc;
    worker->job.policy = ticket->handout->policy; /* a hook's is its own */
    worker->job.max_result = worker->queue->conf->s.max_payload;
    jobq__loop_begun(worker);
    jobq__inline_hand_out(worker, ticket);
    *job_out = &worker->job;
    return ticket->handout->hook ? jobq__hook_open(worker) : JOBQ_STEP_JOB;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Reads the message into the event; false: unreadable. */
static bool read_event(jobq_worker *worker, const jobq__buf *bytes)
{
    struct jobq__inline *inl = worker->inl;
    const jobq__job_message *m = (const jobq__job_message *)(const void *)bytes->p;
    const char *p = bytes->p + sizeof(*m);
    jobq_record record = {.counters = m->counters,
                          .fence = m->fence,
                          .enqueued_at_ms = m->enqueued_at_ms,
                          .version = m->version};
    jobq_slice name, data;

    record.base_at_ms = m->base_at_ms;
    record.priority = m->priority;
    record.id = jobq__message_text(&p, m->id_n);
    record.queue = jobq__message_text(&p, m->queue_n);
    record.name = jobq__message_text(&p, m->name_n);
    record.header = jobq__message_text(&p, m->header_n);
    name = jobq__message_text(&p, m->event_n);
    data = jobq__message_text(&p, m->data_n);
    record.body = jobq__slice(p, m->body_n);
    return jobq__job_fill(&inl->event_job, &record, worker->run_conf, NULL, m->taken_at_ms) == 0 &&
           jobq__event_read(&inl->event, name.p, name.n, data.p, data.n);
}

/* What was cut for want of memory, when it was made or now, is dropped. */
static int deliver(jobq_worker *worker, jobq_event **event_out)
{
    struct jobq__inline *inl = worker->inl;
    const jobq__buf *bytes = &inl->desk->posts->bytes;
    const bool good = !bytes->failed && read_event(worker, bytes);
    const bool has_job = good && inl->event_job.id[0];

    inl->event.job = has_job ? &inl->event_job : NULL;
    inl->event.queue = jobq__follow_queue(inl->event_job.queue);
    jobq__posts_drop(inl->desk);
    *event_out = &inl->event;
    return good ? JOBQ_STEP_EVENT : 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void check_memory(struct jobq__inline *inl)
{
    jobq__desk *desk = inl->desk;
    int64_t limit_mb = desk->settings->memory_mb, kb;
    int32_t none = 0;

    if (limit_mb == 0 || desk->ended.count == 0)
        return;
    kb = jobq__memory_private_kb();
    if (kb <= limit_mb * 1024 ||
        !jobq__words_stop(desk->words, JOBQ__DRAIN, JOBQ__STOP_MEMORY, (kb + 1023) / 1024))
        return;
    atomic_compare_exchange_strong(&desk->words->exit_code, &none, EXIT_MEMORY);
}

static void look(struct jobq__inline *inl)
{
    jobq__desk *desk = inl->desk;
    jobq__situation *s = &desk->s;

    jobq__inline_take_signals(inl);
    desk->now_ms = jobq__clock_mono_ms();
    check_memory(inl);
    jobq__control_tick(desk);
    jobq__desk_situation(desk);
    s->vetoed = desk->worker->loop.vetoed;
    s->room = s->idle_children = !s->vetoed;
    if (desk->renewed && s->reserve_failures == 0)
        atomic_store(&desk->words->up, 1);
    jobq__ready_set(desk->worker, s->stop == JOBQ__GO && !s->paused && !s->all_paused &&
                                      desk->renewed && s->reserve_failures == 0);
    inl->notify_at_ms = jobq__notify_tick(&inl->notifier, desk->words, desk->now_ms);
}

static void carry_out(struct jobq__inline *inl, const jobq__step *step)
{
    jobq__desk *desk = inl->desk;

    if (step->stop_reason)
        jobq__desk_limits(desk, step);
    if (step->give_back)
        jobq__give_return_held(desk, 0);
    jobq__desk_call(desk, step, 1);
    if (step->give_up) {
        jobq__desk_limits(desk, step);
        jobq__desk_give_up(desk);
    }
}

/* Nothing of the handle is touched meanwhile: another thread may use it. */
static void wait_parted(const struct jobq__inline *inl, int64_t wait_ms)
{
    const jobq_worker_hooks *hooks = &inl->desk->worker->hooks;

    if (hooks->idle_enter)
        hooks->idle_enter(hooks->payload);
    jobq__fd_wait(jobq__signals_fd(), wait_ms);
    if (hooks->idle_leave)
        hooks->idle_leave(hooks->payload);
}

/* A store that lies in the handle gets jobs from this process only: by time (the step knows when)
 * and from threads that use the handle while we are parted from it, and then wake us. */
static void wait_for_threads(const struct jobq__inline *inl, int64_t wait_ms)
{
    jobq__desk *desk = inl->desk;

    jobq__desk_wait_store(desk, 0, -1);
    if (desk->s.woken || desk->control.woken)
        return;
    wait_parted(inl, wait_ms);
    jobq__desk_wait_store(desk, 0, -1);
}

static void wait_for_news(struct jobq__inline *inl, const jobq__step *step)
{
    jobq__desk *desk = inl->desk;
    const int64_t left_ms = inl->notify_at_ms - desk->now_ms;
    const int64_t wait_ms =
        jobq__loop_wait_ms(desk->worker, desk->now_ms,
                           left_ms < step->wait_ms && left_ms >= 0 ? left_ms : step->wait_ms);

    jobq__observer_tick(desk->observer, desk->now_ms);
    if (wait_ms == 0)
        return;
    desk->worker->loop.fresh = false; /* an answer does not keep over a sleep */
    if (!step->wait_store)
        wait_parted(inl, wait_ms);
    else if (jobq__store_driver(desk->store)->features & JOBQ_FEATURE_SHARED)
        jobq__desk_wait_store(desk, wait_ms, jobq__signals_fd());
    else
        wait_for_threads(inl, wait_ms);
}

/* One round; true: it is over. */
static bool run_round(struct jobq__inline *inl)
{
    jobq__step step;

    look(inl);
    jobq__step_decide(&inl->desk->s, &step);
    carry_out(inl, &step);
    if (step.finished)
        return true;
    if (inl->desk->held.count == 0 && !inl->desk->posts)
        wait_for_news(inl, &step);
    return false;
}

static bool may_start(const struct jobq__inline *inl)
{
    const jobq__desk *desk = inl->desk;

    return desk->held.count > 0 && atomic_load(&desk->words->stop) == JOBQ__GO &&
           !desk->s.restart && !atomic_load(&desk->words->paused) &&
           !jobq__desk_is_waiting_out(desk);
}

/* looping before a job and by time, idle when there is nothing to do. */
static int take_question(jobq_worker *worker, jobq_event **event_out)
{
    struct jobq__inline *inl = worker->inl;
    const jobq__situation *s = &inl->desk->s;
    const int64_t now_ms = jobq__clock_mono_ms();
    int rc = may_start(inl) ? jobq__loop_before_job(worker, &inl->event, now_ms, event_out) : 0;

    if (rc == 0)
        rc = jobq__loop_by_time(worker, &inl->event, now_ms, event_out);
    if (rc == 0 && inl->desk->held.count == 0 && s->store_empty && !s->woken && s->stop == JOBQ__GO)
        rc = jobq__loop_idle(worker, &inl->event, event_out);
    return rc;
}

int jobq__inline_next(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out)
{
    struct jobq__inline *inl = worker->inl;
    int rc;

    if (inl->current)
        return jobq__error_set(JOBQ_EINVAL, "job %s is not settled yet", worker->job.id);
    jobq__hook_close(worker);
    for (;;) {
        if (inl->desk->posts && (rc = deliver(worker, event_out)) != 0)
            return rc;
        if ((rc = take_question(worker, event_out)) != 0)
            return rc;
        if (worker->loop.vetoed)
            jobq__give_return_held(inl->desk, 0);
        if (may_start(inl) && (rc = start_held(worker, job_out)) != 0)
            return rc;
        if (run_round(inl))
            return JOBQ_STEP_STOP;
    }
}

void jobq__inline_fatal(jobq_worker *worker, const char *text, size_t n)
{
    struct jobq__inline *inl = worker->inl;
    const jobq__fault fault = {.message = jobq__slice(text, text ? n : 0)};

    if (!inl->current)
        return;
    jobq__handout_keep_fault(inl->current, &fault);
    jobq__inline_end_current(inl, JOBQ_ENDED_CRASHED, -1);
    jobq__desk_exchange(inl->desk, 0, 0);
    jobq__observer_tick(inl->desk->observer, inl->desk->now_ms);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* older headers lack the name */
#endif

/* For this thread: others would have the signal, and the handler would sleep on. */
static void make_timer(struct jobq__inline *inl, const jobq_worker *worker)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};

    if (!worker->hooks.interrupt)
        return;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    jobq__signals_inline(worker->hooks.interrupt, worker->hooks.payload);
    inl->has_timer = timer_create(CLOCK_MONOTONIC, &event, &inl->timer) == 0;
}

static int make_desk(jobq_worker *worker, bool silent)
{
    struct jobq__inline *inl = worker->inl;
    int rc = jobq__desk_new(worker, inl->handouts, JOBQ__INLINE_TICKETS, &inl->desk);

    if (rc == 0)
        inl->desk->control.for_one = silent;
    if (rc == 0 && !silent)
        rc = jobq__observer_new(worker, &inl->desk->observer);
    return rc;
}

static void free_inline(jobq_worker *worker)
{
    struct jobq__inline *inl = worker->inl;

    if (inl->has_timer)
        timer_delete(inl->timer);
    if (inl->desk)
        jobq__observer_free(inl->desk->observer);
    jobq__desk_free(inl->desk);
    jobq__job_release_memory(&inl->event_job);
    jobq__arena_free(&inl->event.arena);
    jobq__buf_free(&inl->outcome);
    jobq__free(inl);
    worker->inl = NULL;
}

int jobq__inline_begin(jobq_worker *worker, bool silent)
{
    int rc = jobq__shared_new(&worker->shared, 0, 1, 0, 0);

    if (rc < 0)
        return rc;
    memcpy(worker->shared.words->worker_id, worker->id, sizeof(worker->id));
    atomic_store(&worker->shared.words->generation, worker->generation);
    worker->inl = jobq__zalloc(sizeof(*worker->inl));
    if (!worker->inl)
        return jobq__error_nomem();
    worker->inl->thread = pthread_self();
    rc = make_desk(worker, silent);
    if (rc < 0) {
        free_inline(worker);
        return rc;
    }
    if (!silent)
        jobq__notify_begin(&worker->inl->notifier, worker->inl->desk->now_ms);
    make_timer(worker->inl, worker);
    jobq__observer_starting(worker->inl->desk->observer);
    return 0;
}

/* A handler that never settled its job (the application left the loop): a failure, like an exit. */
static void settle_the_rest(struct jobq__inline *inl)
{
    if (inl->current)
        jobq__inline_end_current(inl, JOBQ_ENDED_EXITED, -1);
    jobq__words_stop(inl->desk->words, JOBQ__DRAIN, JOBQ__STOP_SIGNAL, 0);
    while (!run_round(inl))
        while (inl->desk->posts)
            jobq__posts_drop(inl->desk);
}

int jobq__inline_finish(jobq_worker *worker)
{
    struct jobq__inline *inl = worker->inl;
    jobq__desk *desk = inl->desk;
    jobq__words *words = desk->words;
    char reason[sizeof(worker->stop_text)];
    int code;

    settle_the_rest(inl);
    if (desk->renewed && desk->s.reserve_failures == 0) {
        /* with run_next the handle keeps them: never a write per job */
        if (!desk->control.for_one || jobq__tally_is_due(desk->tally, jobq__clock_mono_ms()))
            jobq__told_book(desk);
        jobq__store_leave(desk->store, desk->id);
    }
    jobq__ready_set(desk->worker, false);
    atomic_store(&words->settled, 1);
    code = atomic_load(&words->exit_code);
    jobq__worker_stop_text(words, reason, sizeof(reason));
    jobq__observer_tick(desk->observer, jobq__clock_mono_ms());
    jobq__observer_stopping(desk->observer, reason, atomic_load(&words->jobs_run), code);
    free_inline(worker);
    return code;
}
