/* SPDX-License-Identifier: MIT
 *
 * Inside of a job in hand. Who gave it out (a queue's reserve, the inline loop, a child of a pool,
 * an event) plugs in the operations; the accessors of job.h serve all four alike.
 */
#ifndef JOBQ_CORE_JOB_H
#define JOBQ_CORE_JOB_H

#include <jobqueue/job.h>

#include "core/fault.h"
#include "core/ident.h"
#include "core/outcome.h"
#include "core/retry.h"
#include "driver/driver.h"

/* How a job reaches the store while it is held (rule O1). */
typedef struct {
    jobq__store *store;
    jobq_slice worker; /* that holds it */
    int result;        /* what came of it, when it is over */
} jobq__reach;

typedef struct {
    int (*settle)(jobq_job *job, jobq_ending ending, int64_t delay_ms);
    int (*extend)(jobq_job *job);
    bool (*is_lost)(const jobq_job *job);      /* its lease */
    bool (*is_cancelled)(const jobq_job *job); /* people want it to end */
    bool (*is_stopping)(const jobq_job *job);
    int (*interrupted)(jobq_job *job); /* JOBQ_INTERRUPT_* */
    void (*free)(jobq_job *job);       /* NULL = belongs to its giver */
    int (*progress)(jobq_job *job);    /* the newest stands in the job: pass it on */
    /* Before and after effect and done_statement (for_done); 0 or an error. The second may be
     * NULL. */
    int (*reach)(jobq_job *job, jobq__reach *r, bool for_done);
    void (*unreach)(jobq_job *job, jobq__reach *r, bool for_done);
} jobq__job_ops;

struct jobq_job {
    const jobq__job_ops *ops; /* NULL: cannot be settled (events) */
    void *giver;
    int64_t max_result; /* the giver's max_payload, 0 = its default */
    jobq__arena arena;  /* holds the texts below unless they are borrowed from a ring */
    char id[JOBQ__ID_SIZE];
    jobq_slice queue, name, body, header_bytes; /* queue and name are NUL-terminated */
    jobq__header header;
    int header_problem; /* 0, JOBQ_EPAYLOAD, JOBQ_EUNSUPPORTED from reading the header */
    jobq_counters counters;
    jobq_lease_token token;
    int64_t fence, enqueued_at_ms, base_at_ms;
    int32_t version;
    uint8_t priority;
    jobq__policy policy;
    int64_t taken_at_ms;     /* store clock when it was handed out */
    int64_t taken_mono_ms;   /* the same moment by our clock */
    int64_t started_mono_ms; /* the handler's start, 0 = not yet */
    uint32_t seat;           /* child: which of those that run in it */
    jobq__fault fault;       /* set_error: points into fault_arena */
    jobq__arena fault_arena;
    /* what it says of itself (core/hold.c) */
    bool has_outcome, has_percent, has_note, has_result, has_refusal;
    double percent;
    int result_format;
    jobq__buf note, result; /* result: the body, or why there is none */
    jobq_batch scratch;     /* what the last call of it lent the caller */
    char fingerprint[65];   /* "" until somebody asks */
    bool settled;           /* over: as `ending` says ... */
    bool refused;           /* ... or because its lease was lost, and nothing was changed */
    jobq_ending ending;
};

/* Fills a job from a record; texts are copied into the job's arena. Reads the header
 * (header_problem says how that went) and makes the policy from worker and handler settings (each
 * may be NULL). JOBQ_ENOMEM. */
int jobq__job_fill(jobq_job *job, const jobq_record *record, const jobq_conf *worker,
                   const jobq_conf *handler, int64_t now_ms);
/* 0, or what became of the job before: `code` is for one that was settled. */
int jobq__job_check_open(const jobq_job *job, int code);
/* The newest progress, and the result when the job is done, as the store keeps them; out->n = 0:
 * there is nothing (or no memory). Only to be called when has_outcome. */
void jobq__job_outcome(const jobq_job *job, bool with_result, jobq__buf *out);
/* Ready for the next one: keeps memory. */
void jobq__job_reset(jobq_job *job);
void jobq__job_release_memory(jobq_job *job);
/* The store's clock now, by ours since the hand-out. */
int64_t jobq__job_store_now(const jobq_job *job);

/* From a verdict to a settlement without error and history; id and queue are borrowed. */
void jobq__job_settlement(const jobq_job *job, const jobq__verdict *verdict, jobq_settlement *out);

#endif
