/* SPDX-License-Identifier: MIT
 *
 * A job lent out by jobq_queue_reserve, for loan.c (its life) and reserve.c (how it is taken).
 */
#ifndef JOBQ_CORE_LOAN_H
#define JOBQ_CORE_LOAN_H

#include "core/job.h"
#include "core/queue.h"

/* A job and what its giver needs; the job comes first. */
typedef struct {
    jobq_job job;
    jobq_queue *queue;
    char worker[JOBQ__WORKER_ID_SIZE];
    int64_t lease_ms, until_mono_ms;
    bool lost;
    uint8_t cancel;         /* JOBQ_CANCEL_*: people want it to end (rule L3) */
    int64_t looked_mono_ms; /* when we asked whether it is to end */
    bool tried;             /* a settlement was sent whose answer is lost */
    bool done_elsewhere;    /* its end was lent out as a statement: a refusal means done */
    jobq__buf error, entry, outcome;
} jobq__loan;

/* NULL: no memory. Freed by jobq_job_free(&loan->job). */
jobq__loan *jobq__loan_new(jobq_queue *queue);
/* One write that keeps the record; `running` (may be NULL) is the hand-out it lists. */
int jobq__loan_renew(jobq_queue *queue, const char *worker, int64_t lease_ms,
                     const jobq_lease_token *running);
/* Error and history entry of an attempt that ended so, into the loan's buffers and the settlement;
 * and, when it is a death, the hook that it owes. */
void jobq__loan_record(jobq__loan *loan, const char *worker, jobq_ending ending,
                       jobq_settlement *s);
/* Progress and result of one that is kept as done, into the loan's buffer and the settlement. */
void jobq__loan_outcome(jobq__loan *loan, jobq_settlement *s);
/* Words the store's answer to a settlement: 0 or a negative code. */
int jobq__loan_answer(const jobq_job *job, int result);

#endif
