/* SPDX-License-Identifier: MIT
 *
 * Inline mode (processes = 0, run_next): the same steps and the same policy in the calling process,
 * one job at a time, for debuggers, tests and `memory:`. The lease covers the job's time limit
 * (rule G8); time limits and hard stops are exceptions only, asked for by a timer's signal.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "worker/desk.h"
#include "worker/memory.h"

enum { TICKETS = 4, REMIND_MS = 500, EXIT_MEMORY = 12 };

struct jobq__inline {
    jobq__desk *desk;
    jobq__handout handouts[TICKETS];
    jobq__ticket *current; /* given to the caller, not yet settled */
    int64_t started_us, deadline_ms, drain_at_ms;
    int stop_signals;
    bool told_timeout, told_stop;
    bool has_timer;
    timer_t timer;
    jobq_event event;
    jobq_job event_job;
};

/* ---- signals and the timer ------------------------------------------------------------------- */

static void set_timer(struct jobq__inline *inl, int64_t at_ms)
{
    int64_t left = at_ms - jobq__clock_mono_ms();
    struct itimerspec spec = {.it_interval = {.tv_nsec = REMIND_MS * 1000000L}};

    if (!inl->has_timer)
        return;
    if (at_ms == 0)
        memset(&spec, 0, sizeof(spec));
    else if (left > 0)
        spec.it_value = (struct timespec){left / 1000, left % 1000 * 1000000L};
    else
        spec.it_value.tv_nsec = 1;
    timer_settime(inl->timer, 0, &spec, NULL);
}

/* The next moment the handler is to be interrupted, 0 = none. */
static int64_t next_interrupt(const struct jobq__inline *inl)
{
    int64_t timeout = inl->told_timeout ? 0 : inl->deadline_ms,
            drain = inl->told_stop ? 0 : inl->drain_at_ms;

    if (!inl->current)
        return 0;
    return timeout && drain ? (timeout < drain ? timeout : drain) : timeout ? timeout : drain;
}

static void begin_drain(struct jobq__inline *inl)
{
    int64_t drain_ms = inl->desk->settings->drain_ms;

    if (drain_ms > 0 && inl->drain_at_ms == 0) {
        inl->drain_at_ms = jobq__clock_mono_ms() + drain_ms;
        set_timer(inl, next_interrupt(inl));
    }
}

static void ask_to_stop(struct jobq__inline *inl, int number)
{
    bool again = inl->stop_signals++ > 0 && (number == SIGTERM || number == SIGINT);

    jobq__words_stop(inl->desk->words, again ? JOBQ__HARD : JOBQ__DRAIN, JOBQ__STOP_SIGNAL, 0);
    begin_drain(inl);
}

static void dump(const struct jobq__inline *inl)
{
    jobq__desk *desk = inl->desk;
    const jobq__handout *handout = inl->current ? inl->current->handout : NULL;

    if (handout)
        jobq__observer_note(desk->observer, "runs %s %s for %.1f s; %lld jobs before",
                            handout->name, handout->id,
                            (double)(jobq__clock_mono_us() - inl->started_us) / 1e6,
                            (long long)atomic_load(&desk->words->jobs_run));
    else
        jobq__observer_note(desk->observer, "idle; %lld jobs so far",
                            (long long)atomic_load(&desk->words->jobs_run));
}

static void take_signals(struct jobq__inline *inl)
{
    int number;

    while ((number = jobq__signals_next()) != 0) {
        if (number == SIGUSR1)
            dump(inl);
        else if (number == SIGUSR2 || number == SIGCONT)
            atomic_store(&inl->desk->words->paused, number == SIGUSR2);
        else if (number == SIGTERM || number == SIGINT || number == SIGQUIT || number == SIGHUP)
            ask_to_stop(inl, number);
    }
}

/* ---- the job in hand ------------------------------------------------------------------------- */

/* Long enough for the handler's time limit; without one the handler calls extend. */
static int64_t lease_for(const jobq__desk *desk, const jobq__policy *policy)
{
    return policy->timeout_ms > 0
               ? policy->timeout_ms + policy->timeout_grace_ms + desk->settings->lease_ms
               : desk->settings->lease_ms;
}

static void keep_fault(jobq__ticket *ticket, const jobq_job *job)
{
    if (!jobq__fault_is_empty(&job->fault))
        jobq__handout_keep_fault(ticket, &job->fault);
}

static void end_current(struct jobq__inline *inl, jobq_ending ending, int64_t delay_ms)
{
    jobq__desk *desk = inl->desk;
    jobq__ticket *ticket = inl->current;

    inl->current = NULL;
    set_timer(inl, 0);
    desk->now_ms = jobq__clock_mono_ms();
    ticket->delay_ms = delay_ms;
    if (jobq__ending_began(ending)) {
        ticket->ran_us = jobq__clock_mono_us() - inl->started_us;
        jobq__handout_ran(desk, ticket);
        desk->s.rest_until_ms =
            desk->settings->rest_ms > 0 ? desk->now_ms + desk->settings->rest_ms : 0;
    }
    jobq__handout_end(desk, ticket, ending);
}

static int check_current(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    if (!worker->inl || !worker->inl->current)
        return jobq__error_set_subject(JOBQ_EINVAL, job->id, strlen(job->id),
                                       "job %s is settled already", job->id);
    return 0;
}

static int settle_job(jobq_job *job, jobq_ending ending, int64_t delay_ms)
{
    jobq_worker *worker = job->giver;
    int rc = check_current(job);

    if (rc < 0)
        return rc;
    keep_fault(worker->inl->current, job);
    end_current(worker->inl, ending, delay_ms);
    return 0;
}

static int extend_job(jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    jobq__ticket *ticket;
    int rc = check_current(job);

    if (rc < 0)
        return rc;
    ticket = worker->inl->current;
    if (!ticket->lost)
        rc = jobq__desk_renew(worker->inl->desk, lease_for(worker->inl->desk, &job->policy),
                              &ticket, 1);
    if (ticket->lost)
        return jobq__error_set_subject(JOBQ_ELEASE, job->id, strlen(job->id),
                                       "the lease of job %s is lost", job->id);
    return rc;
}

static bool is_job_cancelled(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    return worker->inl && worker->inl->current && worker->inl->current->lost;
}

static bool is_job_stopping(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    if (!worker->inl)
        return true;
    take_signals(worker->inl);
    return atomic_load(&worker->inl->desk->words->stop) != JOBQ__GO;
}

static bool is_stop_due(const struct jobq__inline *inl, int64_t now_ms)
{
    return atomic_load(&inl->desk->words->stop) == JOBQ__HARD ||
           (inl->drain_at_ms > 0 && now_ms >= inl->drain_at_ms);
}

static int take_interrupt(jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    struct jobq__inline *inl = worker->inl;
    int64_t now_ms = jobq__clock_mono_ms();
    int kind = JOBQ_INTERRUPT_NONE;

    if (!inl || !inl->current)
        return kind;
    take_signals(inl);
    if (!inl->told_stop && is_stop_due(inl, now_ms)) {
        inl->told_stop = true;
        if (atomic_load(&inl->desk->words->stop) != JOBQ__HARD)
            jobq__desk_count(inl->desk, JOBQ__COUNT_DRAIN_EXPIRED, 1);
        kind = JOBQ_INTERRUPT_STOP;
    } else if (!inl->told_timeout && inl->deadline_ms > 0 && now_ms >= inl->deadline_ms) {
        inl->told_timeout = true;
        kind = JOBQ_INTERRUPT_TIMEOUT;
    }
    if (kind != JOBQ_INTERRUPT_NONE)
        set_timer(inl, next_interrupt(inl));
    return kind;
}

static const jobq__job_ops job_ops = {
    .settle = settle_job,
    .extend = extend_job,
    .is_cancelled = is_job_cancelled,
    .is_stopping = is_job_stopping,
    .interrupted = take_interrupt,
};

static void hand_out(struct jobq__inline *inl, jobq__ticket *ticket)
{
    jobq__desk *desk = inl->desk;

    jobq__tickets_remove(&desk->held, ticket);
    ticket->phase = JOBQ__TICKET_OUT;
    desk->out++;
    inl->current = ticket;
    inl->started_us = jobq__clock_mono_us();
    inl->told_timeout = inl->told_stop = false;
    inl->deadline_ms = ticket->handout->policy.timeout_ms > 0
                           ? inl->started_us / 1000 + ticket->handout->policy.timeout_ms
                           : 0;
    jobq__signals_rearm();
    set_timer(inl, next_interrupt(inl));
    jobq__ready_set(desk->worker, true); /* rule G5: handlers ask, too */
    if (desk->settings->verbose)
        jobq__observer_processing(desk->observer, ticket->handout);
}

/* 1: *job_out is the caller's; 0: not now; or an error. */
static int start_held(jobq_worker *worker, jobq_job **job_out)
{
    struct jobq__inline *inl = worker->inl;
    jobq__desk *desk = inl->desk;
    jobq__ticket *ticket = desk->held.first;
    const jobq_conf *conf = jobq__worker_handler_conf(worker, ticket->handout->handler);
    int rc;

    rc = jobq__desk_renew(desk, lease_for(desk, &ticket->handout->policy), &ticket, 1);
    if (rc != 0)
        return 0; /* an outage, or the job is lost with the lease */
    rc = jobq__job_fill(&worker->job, ticket->record, worker->run_conf, conf,
                        ticket->handout->taken_at_ms);
    if (rc < 0)
        return rc;
    hand_out(inl, ticket);
    worker->job.ops = &job_ops;
    worker->job.giver = worker;
    worker->job.started_mono_ms = inl->started_us / 1000;
    *job_out = &worker->job;
    return JOBQ_STEP_JOB;
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

    jobq__posts_drop(inl->desk);
    inl->event.job = &inl->event_job;
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

    take_signals(inl);
    desk->now_ms = jobq__clock_mono_ms();
    check_memory(inl);
    jobq__desk_situation(desk);
    s->room = s->idle_children = 1;
    jobq__ready_set(desk->worker,
                    s->stop == JOBQ__GO && !s->paused && desk->renewed && s->reserve_failures == 0);
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

static void wait_for_news(struct jobq__inline *inl, const jobq__step *step)
{
    jobq__desk *desk = inl->desk;
    const jobq_worker_hooks *hooks = &desk->worker->hooks;

    jobq__observer_tick(desk->observer, desk->now_ms);
    if (step->wait_ms == 0)
        return;
    if (hooks->idle_enter)
        hooks->idle_enter(hooks->payload);
    if (step->wait_store)
        jobq__desk_wait_store(desk, step->wait_ms, jobq__signals_fd());
    else
        jobq__fd_wait(jobq__signals_fd(), step->wait_ms);
    if (hooks->idle_leave)
        hooks->idle_leave(hooks->payload);
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
           !atomic_load(&desk->words->paused) && !jobq__desk_is_waiting_out(desk);
}

int jobq__inline_next(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out)
{
    struct jobq__inline *inl = worker->inl;
    int rc;

    if (inl->current)
        return jobq__error_set(JOBQ_EINVAL, "job %s is not settled yet", worker->job.id);
    for (;;) {
        if (inl->desk->posts && (rc = deliver(worker, event_out)) != 0)
            return rc;
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
    end_current(inl, JOBQ_ENDED_CRASHED, -1);
    jobq__desk_exchange(inl->desk, 0, 0);
    jobq__observer_tick(inl->desk->observer, inl->desk->now_ms);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void make_timer(struct jobq__inline *inl, const jobq_worker *worker)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};

    if (!worker->hooks.interrupt)
        return;
    jobq__signals_inline(worker->hooks.interrupt, worker->hooks.payload);
    inl->has_timer = timer_create(CLOCK_MONOTONIC, &event, &inl->timer) == 0;
}

static int make_desk(jobq_worker *worker, bool silent)
{
    struct jobq__inline *inl = worker->inl;
    int rc = jobq__desk_new(worker, inl->handouts, TICKETS, &inl->desk);

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
    jobq__free(inl);
    worker->inl = NULL;
}

int jobq__inline_begin(jobq_worker *worker, bool silent)
{
    int rc = jobq__shared_new(&worker->shared, 0, 0);

    if (rc < 0)
        return rc;
    memcpy(worker->shared.words->worker_id, worker->id, sizeof(worker->id));
    worker->inl = jobq__zalloc(sizeof(*worker->inl));
    if (!worker->inl)
        return jobq__error_nomem();
    rc = make_desk(worker, silent);
    if (rc < 0) {
        free_inline(worker);
        return rc;
    }
    make_timer(worker->inl, worker);
    jobq__observer_starting(worker->inl->desk->observer);
    return 0;
}

/* A handler that never settled its job (the application left the loop): a failure, like an exit. */
static void settle_the_rest(struct jobq__inline *inl)
{
    if (inl->current)
        end_current(inl, JOBQ_ENDED_EXITED, -1);
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
    if (desk->renewed && desk->s.reserve_failures == 0)
        jobq__store_leave(desk->store, desk->id);
    jobq__ready_set(desk->worker, false);
    atomic_store(&words->settled, 1);
    code = atomic_load(&words->exit_code);
    jobq__worker_stop_text(words, reason, sizeof(reason));
    jobq__observer_tick(desk->observer, jobq__clock_mono_ms());
    jobq__observer_stopping(desk->observer, reason, atomic_load(&words->jobs_run), code);
    free_inline(worker);
    return code;
}
