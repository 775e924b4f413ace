/* SPDX-License-Identifier: MIT
 *
 * A job lent out by jobq_queue_reserve: extending, settling, giving its worker record back (rules
 * O3, G8, C3). How it is taken is in reserve.c.
 */
#include "core/loan.h"

#include <string.h>

#include "core/follow.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"
#include "util/rng.h"

static jobq__loan *loan_of(const jobq_job *job)
{
    return (jobq__loan *)(void *)job;
}

int jobq__loan_renew(jobq_queue *queue, const char *id, int64_t lease_ms,
                     const jobq_lease_token *running)
{
    jobq_renewal r = {.worker = jobq__slice_text(id),
                      .lease_ms = lease_ms,
                      .running = running,
                      .running_count = running != NULL};

    return jobq__queue_note(queue, jobq__store_renew(queue->store, &r));
}

/* Which ends stand in the history, and count locally. */
static const struct {
    bool entry;
    int8_t counter;
} traces[JOBQ_ENDINGS] = {
    [JOBQ_ENDED_DONE] = {false, JOBQ__COUNT_DONE},
    [JOBQ_ENDED_FAILED] = {true, JOBQ__COUNT_FAILED},
    [JOBQ_ENDED_EXITED] = {true, JOBQ__COUNT_FAILED},
    [JOBQ_ENDED_TIMED_OUT] = {true, JOBQ__COUNT_TIMED_OUT},
    [JOBQ_ENDED_CRASHED] = {true, JOBQ__COUNT_CRASHED},
    [JOBQ_ENDED_LEASE_LOST] = {true, JOBQ__COUNT_LEASE_REJECTED},
    [JOBQ_ENDED_RELEASED] = {true, JOBQ__COUNT_RELEASED},
    [JOBQ_ENDED_CLEANUP_FAILED] = {true, JOBQ__COUNT_CLEANUP_FAILED},
    [JOBQ_ENDED_STOPPED] = {true, JOBQ__COUNT_GIVEN_BACK},
    [JOBQ_ENDED_FAILED_BY_HANDLER] = {true, JOBQ__COUNT_FAILED},
    [JOBQ_ENDED_NOT_RETRYABLE] = {true, JOBQ__COUNT_FAILED},
    [JOBQ_ENDED_UNDECODABLE] = {true, JOBQ__COUNT_FAILED},
    [JOBQ_ENDED_UNKNOWN_NAME] = {false, JOBQ__COUNT_GIVEN_BACK},
    [JOBQ_ENDED_UNSUPPORTED_VERSION] = {false, JOBQ__COUNT_GIVEN_BACK},
    [JOBQ_ENDED_UNSTARTED] = {false, JOBQ__COUNT_GIVEN_BACK},
};

static void count_end(jobq__loan *l, jobq_ending ending, const jobq__verdict *verdict)
{
    const int64_t now_ms = jobq__job_store_now(&l->job);
    jobq_queue *queue = l->queue;

    jobq__tally_ended(&queue->tally, l->job.queue, now_ms, ending, verdict,
                      jobq__ending_began(ending) ? (now_ms - l->job.taken_at_ms) * 1000 : -1);
    jobq__queue_book(queue);
    queue->counters[traces[ending].counter]++;
    if (verdict->op == JOBQ_OP_DEAD)
        queue->counters[JOBQ__COUNT_DEAD]++;
    else if (verdict->op == JOBQ_OP_BACK && traces[ending].entry && ending != JOBQ_ENDED_RELEASED)
        queue->counters[JOBQ__COUNT_RETRIED]++;
}

/* A death owes its hook (rule F6). */
static void add_follow(jobq_job *job, jobq_settlement *s)
{
    jobq__death death = {.id = s->id,
                         .queue = job->queue,
                         .name = job->name,
                         .header = job->header_bytes,
                         .version = job->version,
                         .reason = s->reason,
                         .died_at_ms = jobq__job_store_now(job),
                         .class_name = job->fault.class_name,
                         .message = job->fault.message};

    if (s->op == JOBQ_OP_DEAD)
        s->follow = jobq__follow_make(&job->arena, &death);
}

/* Error and history entry of the attempt, into the loan's buffers; and what follows a death. */
void jobq__loan_record(jobq__loan *l, const char *worker, jobq_ending ending, jobq_settlement *s)
{
    jobq_job *job = &l->job;
    jobq__entry entry = {
        .started_at_ms = job->taken_at_ms,
        .ended_at_ms = jobq__job_store_now(job),
        .worker = jobq__slice_text(worker),
        .outcome = jobq__slice_text(jobq_outcome_word(ending)),
        .class_name = job->fault.class_name,
        .message = job->fault.message,
    };

    add_follow(job, s);
    if (traces[ending].entry)
        jobq__entry_write(&l->entry, &entry);
    if (traces[ending].entry && l->entry.n)
        s->history = jobq__slice(l->entry.p, l->entry.n);
    if (ending == JOBQ_ENDED_RELEASED ||
        jobq__fault_is_empty(&job->fault)) /* keeps the last error */
        return;
    jobq__fault_write(&l->error, &job->fault);
    s->error = jobq__fault_bytes(&l->error);
}

void jobq__loan_outcome(jobq__loan *l, jobq_settlement *s)
{
    if (!l->job.has_outcome || s->op != JOBQ_OP_DONE || s->keep_ms <= 0 || s->keep_bare)
        return;
    jobq__job_outcome(&l->job, true, &l->outcome);
    s->outcome = jobq__slice(l->outcome.n ? l->outcome.p : NULL, l->outcome.n);
}

int jobq__loan_answer(const jobq_job *job, int result)
{
    if (result == JOBQ_ELEASE)
        return jobq__error_set_subject(JOBQ_ELEASE, job->id, strlen(job->id),
                                       "the lease of job \"%s\" is lost; nothing was changed",
                                       job->id);
    if (result < 0)
        return jobq__error_set_subject(result, job->id, strlen(job->id),
                                       "the store refused to settle job \"%s\"", job->id);
    return 0;
}

/* What the store said of a settlement, as the caller's error: about this job, and honest about a
 * refusal that may only mean that the try before was stored after all (rule K2). */
static int word_end(jobq__loan *l, int rc, int result)
{
    const jobq_job *job = &l->job;
    struct jobq_error error;

    if (rc == 0 && result == JOBQ_ELEASE && l->tried) {
        l->lost = true;
        return jobq__error_set_subject(JOBQ_EUNKNOWN, job->id, strlen(job->id),
                                       "the result of job \"%s\" may or may not have been stored: "
                                       "its lease is over",
                                       job->id);
    }
    if (rc == 0)
        return jobq__loan_answer(job, result);
    l->tried = l->tried || jobq__queue_is_doubtful(rc);
    jobq__error_save(&error);
    memcpy(error.subject, job->id, strlen(job->id) + 1);
    return jobq__error_restore(&error);
}

/* Its end may have come with the caller's own transaction (rule O1): then there is nothing left to
 * settle, and the store says so by refusing. */
static bool is_done_elsewhere(const jobq__loan *l, int rc, int result)
{
    return l->done_elsewhere && rc == 0 && result == JOBQ_ELEASE;
}

/* The record is free again: it becomes the spare, or goes. */
static void return_record(jobq__loan *l)
{
    jobq_queue *queue = l->queue;

    if (!l->worker[0])
        return;
    jobq__queue_leave_spare(queue);
    memcpy(queue->spare.id, l->worker, sizeof(l->worker));
    queue->spare.lease_ms = l->lease_ms;
    queue->spare.until_mono_ms = l->until_mono_ms;
    queue->spare.stamp = jobq__process_stamp();
    l->worker[0] = '\0';
}

/* What is counted then: whatever the caller said last, the job is done. */
static void settled_elsewhere(jobq_ending *ending, jobq__verdict *verdict)
{
    *ending = JOBQ_ENDED_DONE;
    verdict->op = JOBQ_OP_DONE;
}

static int settle_loan(jobq_job *job, jobq_ending ending, int64_t delay_ms)
{
    jobq__loan *l = loan_of(job);
    jobq__end end = {
        .ending = ending, .delay_ms = delay_ms, .cancelled = l->cancel != JOBQ_CANCEL_NONE};
    jobq__verdict verdict;
    jobq_settlement s;
    jobq_exchange x = {.worker = jobq__slice_text(l->worker),
                       .lease_ms = l->lease_ms,
                       .settle = &s,
                       .settle_count = 1};
    int rc;

    jobq__retry_judge(&job->policy, &job->counters, &end, jobq__job_store_now(job),
                      jobq__rng_unit(), &verdict);
    jobq__job_settlement(job, &verdict, &s);
    jobq__loan_record(l, l->worker, ending, &s);
    jobq__loan_outcome(l, &s);
    x.out = &l->queue->batch;
    rc = jobq__store_exchange(l->queue->store, &x);
    rc = is_done_elsewhere(l, rc, s.result) ? 0 : word_end(l, rc, s.result);
    jobq__queue_note(l->queue, rc);
    if (rc == 0) {
        if (s.result == JOBQ_ELEASE)
            settled_elsewhere(&ending, &verdict);
        count_end(l, ending, &verdict);
        return_record(l);
    } else if (rc == JOBQ_ELEASE) {
        l->lost = true;
    }
    return rc;
}

/* A renewal begins a new record when the old one had lapsed: then the job is no longer ours. */
static int extend_loan(jobq_job *job)
{
    jobq__loan *l = loan_of(job);
    int64_t now = jobq__clock_mono_ms();
    int rc;

    if (l->lost)
        return jobq__loan_answer(job, JOBQ_ELEASE);
    rc = jobq__loan_renew(l->queue, l->worker, l->lease_ms, &job->token);
    if (rc == 0)
        l->until_mono_ms = now + l->lease_ms;
    if (rc != JOBQ_ELEASE)
        return rc;
    l->lost = true;
    return jobq__loan_answer(job, JOBQ_ELEASE);
}

static bool is_loan_lost(const jobq_job *job)
{
    return loan_of(job)->lost;
}

enum { LOOK_MS = 800 };

/* What the store says of it; a store that cannot be asked says nothing. */
static void look(jobq__loan *l)
{
    const int64_t now = jobq__clock_mono_ms();
    jobq_batch *batch = &l->queue->batch;
    const jobq_record *record;

    if (l->lost || l->cancel || !l->worker[0] || now - l->looked_mono_ms < LOOK_MS)
        return;
    l->looked_mono_ms = now;
    jobq__batch_reset(batch);
    if (jobq__queue_note(l->queue,
                         jobq__store_held(l->queue->store, jobq__slice_text(l->worker), batch)) < 0)
        return;
    for (record = batch->first; record; record = record->next)
        if (jobq__token_equal(record->token, l->job.token))
            break;
    l->lost = !record;
    l->cancel = record ? record->cancel : JOBQ_CANCEL_NONE;
}

static bool is_loan_cancelled(const jobq_job *job)
{
    look(loan_of(job));
    return loan_of(job)->lost || loan_of(job)->cancel;
}

static void free_loan(jobq_job *job)
{
    jobq__loan *l = loan_of(job);

    jobq__job_release_memory(job);
    jobq__buf_free(&l->error);
    jobq__buf_free(&l->entry);
    jobq__buf_free(&l->outcome);
    jobq__free(l);
}

/* ---- what a held job can do ------------------------------------------------------------------ */

static int settle_aside(jobq__loan *l, jobq_settlement *s)
{
    jobq_exchange x = {.worker = jobq__slice_text(l->worker),
                       .lease_ms = l->lease_ms,
                       .settle = s,
                       .settle_count = 1,
                       .out = &l->queue->batch};
    const int rc = jobq__store_exchange(l->queue->store, &x);

    if (rc == 0 && s->result == JOBQ_ELEASE)
        l->lost = true;
    return jobq__queue_note(l->queue, rc < 0 ? rc : jobq__loan_answer(&l->job, s->result));
}

static int show_progress(jobq_job *job)
{
    jobq__loan *l = loan_of(job);
    const jobq__verdict verdict = {.op = JOBQ_OP_PROGRESS, .counters = job->counters};
    jobq_settlement s;

    if (l->lost)
        return jobq__loan_answer(job, JOBQ_ELEASE);
    jobq__job_outcome(job, false, &l->outcome);
    if (!l->outcome.n)
        return jobq__error_nomem();
    jobq__job_settlement(job, &verdict, &s);
    s.outcome = jobq__slice(l->outcome.p, l->outcome.n);
    return settle_aside(l, &s);
}

static int reach_loan(jobq_job *job, jobq__reach *r, bool for_done)
{
    jobq__loan *l = loan_of(job);

    (void)for_done;
    if (l->lost)
        return jobq__loan_answer(job, JOBQ_ELEASE);
    r->store = l->queue->store;
    r->worker = jobq__slice_text(l->worker);
    return 0;
}

static void unreach_loan(jobq_job *job, jobq__reach *r, bool for_done)
{
    jobq__loan *l = loan_of(job);

    jobq__queue_note(l->queue, r->result);
    l->lost = l->lost || r->result == JOBQ_ELEASE;
    l->done_elsewhere = l->done_elsewhere || (for_done && r->result == 0);
}

static const jobq__job_ops loan_ops = {
    .settle = settle_loan,
    .extend = extend_loan,
    .is_lost = is_loan_lost,
    .is_cancelled = is_loan_cancelled,
    .free = free_loan,
    .progress = show_progress,
    .reach = reach_loan,
    .unreach = unreach_loan,
};

jobq__loan *jobq__loan_new(jobq_queue *queue)
{
    jobq__loan *l = jobq__zalloc(sizeof(*l));

    if (!l) {
        jobq__error_nomem();
        return NULL;
    }
    l->queue = queue;
    l->job.ops = &loan_ops;
    l->job.max_result = queue->conf->s.max_payload;
    return l;
}
