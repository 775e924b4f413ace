/* SPDX-License-Identifier: MIT
 *
 * Inline mode's job in hand: how it begins, what its handler may ask, how it ends; and the signals
 * and the timer that ask the handler to stop (rules G8, H1, I1).
 */
#include "worker/inline.h"

#include <signal.h>
#include <string.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum { REMIND_MS = 500 };

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

/* `drain` seconds after the first stop request, whoever made it (rule H1). */
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
}

static void dump(const struct jobq__inline *inl)
{
    jobq__desk *desk = inl->desk;
    const jobq__handout *handout = inl->current ? inl->current->handout : NULL;
    const long long ran = (long long)atomic_load(&desk->words->jobs_run);

    if (handout)
        jobq__observer_note(
            desk->observer, "runs %s %s for %.1f s; %lld job%s before", handout->name, handout->id,
            (double)(jobq__clock_mono_us() - inl->started_us) / 1e6, ran, jobq__plural(ran));
    else
        jobq__observer_note(desk->observer, "idle; %lld job%s so far", ran, jobq__plural(ran));
}

void jobq__inline_take_signals(struct jobq__inline *inl)
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
    if (atomic_load(&inl->desk->words->stop) != JOBQ__GO)
        begin_drain(inl);
}

/* From another thread: the loop sees the word that was set, and so does a handler when the timer
 * has interrupted it, which goes on until it has been heard. */
void jobq__inline_stop(jobq_worker *worker)
{
    struct jobq__inline *inl = worker->inl;

    if (pthread_equal(inl->thread, pthread_self())) {
        begin_drain(inl);
        return;
    }
    jobq__signals_wake();
    if (inl->desk->settings->drain_ms > 0)
        set_timer(inl, 1);
}

/* ---- the job in hand ------------------------------------------------------------------------- */

int64_t jobq__inline_lease(const jobq__desk *desk, const jobq__policy *policy)
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

void jobq__inline_end_current(struct jobq__inline *inl, jobq_ending ending, int64_t delay_ms)
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
            desk->settings->rest_ms > 0 && ticket->ran ? desk->now_ms + desk->settings->rest_ms : 0;
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
    ending = jobq__worker_ending(worker, job, ending);
    keep_fault(worker->inl->current, job);
    if (job->has_outcome && ending == JOBQ_ENDED_DONE && jobq_job_is_kept(job)) {
        jobq__job_outcome(job, true, &worker->inl->outcome);
        jobq__told_keep(worker->inl->desk, worker->inl->current, &worker->inl->outcome);
    }
    jobq__inline_end_current(worker->inl, ending, delay_ms);
    return 0;
}

static int refuse_lost(const jobq_job *job)
{
    return jobq__error_set_subject(JOBQ_ELEASE, job->id, strlen(job->id),
                                   "the lease of job %s is lost", job->id);
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
        rc = jobq__desk_renew(worker->inl->desk,
                              jobq__inline_lease(worker->inl->desk, &job->policy), &ticket, 1);
    if (ticket->lost)
        return refuse_lost(job);
    if (rc == 0)
        jobq__control_peek(worker->inl->desk);
    return rc;
}

static bool is_job_lost(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    return worker->inl && worker->inl->current && worker->inl->current->lost;
}

/* Rule L3: nobody else could tell us while the handler runs. */
static bool is_job_cancelled(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    const jobq__ticket *ticket = worker->inl ? worker->inl->current : NULL;

    if (ticket && !ticket->lost && ticket->cancel != JOBQ_CANCEL_HARD)
        jobq__control_peek(worker->inl->desk);
    return ticket && ticket->cancel != JOBQ_CANCEL_NONE;
}

static int tell_progress(jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    struct jobq__inline *inl = worker->inl;
    int rc = check_current(job);

    if (rc < 0)
        return rc;
    if (inl->current->lost)
        return refuse_lost(job);
    jobq__job_outcome(job, false, &inl->outcome);
    if (inl->outcome.n > 0)
        jobq__told_note(inl->desk, inl->current, inl->outcome.p, inl->outcome.n);
    rc = jobq__told_say(inl->desk, inl->current);
    jobq__error_clear();
    return rc == JOBQ_ELEASE ? refuse_lost(job) : 0;
}

static int reach_store(jobq_job *job, jobq__reach *r, bool for_done)
{
    const jobq_worker *worker = job->giver;
    const int rc = check_current(job);

    (void)for_done;
    if (rc < 0)
        return rc;
    r->store = worker->inl->desk->store;
    r->worker = worker->inl->desk->id;
    return 0;
}

static void unreach_store(jobq_job *job, jobq__reach *r, bool for_done)
{
    const jobq_worker *worker = job->giver;

    if (for_done && r->result == 0)
        worker->inl->current->asked_done = true;
}

static bool is_job_stopping(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    if (!worker->inl)
        return true;
    jobq__inline_take_signals(worker->inl);
    return atomic_load(&worker->inl->desk->words->stop) != JOBQ__GO;
}

static bool is_stop_due(const struct jobq__inline *inl, int64_t now_ms)
{
    return inl->current->cancel == JOBQ_CANCEL_HARD ||
           atomic_load(&inl->desk->words->stop) == JOBQ__HARD ||
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
    jobq__inline_take_signals(inl);
    is_job_cancelled(job);
    if (!inl->told_stop && is_stop_due(inl, now_ms)) {
        inl->told_stop = true;
        if (inl->current->cancel != JOBQ_CANCEL_HARD &&
            atomic_load(&inl->desk->words->stop) != JOBQ__HARD)
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
    .is_lost = is_job_lost,
    .is_cancelled = is_job_cancelled,
    .is_stopping = is_job_stopping,
    .interrupted = take_interrupt,
    .progress = tell_progress,
    .reach = reach_store,
    .unreach = unreach_store,
};

void jobq__inline_hand_out(jobq_worker *worker, jobq__ticket *ticket)
{
    struct jobq__inline *inl = worker->inl;
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
    atomic_store(&desk->words->up, 1);
    jobq__ready_set(desk->worker, true); /* rule G5: handlers ask, too */
    jobq__notify_tick(&inl->notifier, desk->words, inl->started_us / 1000);
    if (desk->settings->verbose && !ticket->handout->hook)
        jobq__observer_processing(desk->observer, ticket->handout);
    worker->job.ops = &job_ops;
    worker->job.giver = worker;
    worker->job.started_mono_ms = inl->started_us / 1000;
    if (atomic_load(&desk->words->stop) != JOBQ__GO) /* asked by a thread just now */
        begin_drain(inl);
}
