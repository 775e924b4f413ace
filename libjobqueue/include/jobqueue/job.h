/* SPDX-License-Identifier: MIT
 *
 * A job in hand: what the worker or jobq_queue_reserve gave out. Strings are borrowed from the job.
 */
#ifndef JOBQUEUE_JOB_H
#define JOBQUEUE_JOB_H

#include <jobqueue/error.h>
#include <jobqueue/payload.h>
#include <jobqueue/statement.h>

JOBQ_BEGIN_DECLS

typedef struct jobq_job jobq_job;

/* How an attempt ended. */
#define JOBQ_ENDING_LIST(X)                                                                       \
    X(JOBQ_ENDED_DONE, "done")                     /* the handler returned */                     \
    X(JOBQ_ENDED_FAILED, "failed")                 /* it threw: a failure */                      \
    X(JOBQ_ENDED_EXITED, "exited")                 /* it called exit: a failure */                \
    X(JOBQ_ENDED_TIMED_OUT, "timed_out")           /* over its time limit: a failure */           \
    X(JOBQ_ENDED_CRASHED, "crashed")               /* its process died: a crash */                \
    X(JOBQ_ENDED_LEASE_LOST, "lease_lost")         /* its worker's lease ran out: a loss */       \
    X(JOBQ_ENDED_RELEASED, "released")             /* put back by itself: costs nothing */        \
    X(JOBQ_ENDED_CLEANUP_FAILED, "cleanup_failed") /* a deferred cleanup threw: a failure */      \
    X(JOBQ_ENDED_STOPPED, "stopped")               /* ended by a stop: given back uncounted */    \
    X(JOBQ_ENDED_FAILED_BY_HANDLER, "failed_by_handler") /* fail(): dead at once */               \
    X(JOBQ_ENDED_NOT_RETRYABLE, "not_retryable") /* threw what is never retried: dead at once */  \
    X(JOBQ_ENDED_UNDECODABLE, "undecodable")   /* the payload fits no value or parameter: dead */ \
    X(JOBQ_ENDED_UNKNOWN_NAME, "unknown_name") /* no handler here: parked */                      \
    X(JOBQ_ENDED_UNSUPPORTED_VERSION, "unsupported_version") /* no such version here: parked */   \
    X(JOBQ_ENDED_UNSTARTED, "unstarted") /* given back before it began: costs nothing */
#define JOBQ__ENDING_ENUM(name, word) name,
typedef enum { JOBQ_ENDING_LIST(JOBQ__ENDING_ENUM) JOBQ_ENDINGS } jobq_ending;
JOBQ_API const char *jobq_ending_word(jobq_ending ending);
/* What the attempt did, as histories, events and output say it (rule F2): the ending's word, but
 * "failed" for each that only tells why a failure is final; that is the reason's to say. @since 0.1
 */
JOBQ_API const char *jobq_outcome_word(jobq_ending ending);

typedef enum {
    JOBQ_JOB_DELIVERIES,
    JOBQ_JOB_FAILURES,
    JOBQ_JOB_CRASHES,
    JOBQ_JOB_RELEASES,
    JOBQ_JOB_LOSSES,
    JOBQ_JOB_ATTEMPT /* failures + crashes + 1 */,
    JOBQ_JOB_FENCE,
    JOBQ_JOB_VERSION,
    JOBQ_JOB_PRIORITY,
    JOBQ_JOB_ENQUEUED_AT_MS,
    JOBQ_JOB_TRIES /* 0 = no limit */,
    JOBQ_JOB_TIMEOUT_MS /* 0 = none */,
    JOBQ_JOB_AGE_MS /* by the store's clock since the first enqueue */,
    JOBQ_JOB_REMAINING_MS /* until the time limit; -1 = none */
} jobq_job_number;

JOBQ_API const char *jobq_job_id(const jobq_job *job);
JOBQ_API const char *jobq_job_name(const jobq_job *job, size_t *n_out); /* n_out may be NULL */
JOBQ_API const char *jobq_job_queue(const jobq_job *job, size_t *n_out);
JOBQ_API int64_t jobq_job_get(const jobq_job *job, jobq_job_number which);
JOBQ_API const void *jobq_job_body(const jobq_job *job, size_t *n_out, int *format_out);
/* The i-th context pair; false past the end. */
JOBQ_API bool jobq_job_context(const jobq_job *job, size_t i, const char **key, size_t *key_n,
                               const char **value, size_t *value_n);
/* What the handler threw; kept with the attempt when the job is settled. Texts are cut to their
 * limits at a character boundary and invalid bytes made visible; this cannot fail in a way that
 * matters. NULL,0 for what is not known. */
JOBQ_API void jobq_job_set_error(jobq_job *job, const char *class_name, size_t class_n,
                                 const char *message, size_t message_n, const char *where,
                                 size_t where_n, const char *trace, size_t trace_n);

/* Ends the job. delay_ms: RELEASED, and FAILED with a delay of its own (RetryAfter); -1 = what the
 * backoff says. After jobq_queue_reserve: at once in the store; JOBQ_ELEASE when the token is no
 * longer current. In a worker: handed to the dispatcher, 0. A second call is JOBQ_EINVAL. */
JOBQ_API int jobq_job_settle(jobq_job *job, jobq_ending ending, int64_t delay_ms);
JOBQ_API int jobq_job_done(jobq_job *job);
JOBQ_API int jobq_job_retry(jobq_job *job, int64_t delay_ms);
JOBQ_API int jobq_job_release(jobq_job *job, int64_t delay_ms);
JOBQ_API int jobq_job_fail(jobq_job *job);

/* Renews the lease (inline and after jobq_queue_reserve) or checks it (in a child): 0 or
 * JOBQ_ELEASE. */
JOBQ_API int jobq_job_extend(jobq_job *job);
/* Its lease is lost: results will be refused. @since 0.1 */
JOBQ_API bool jobq_job_is_lost(const jobq_job *job);
/* Nobody waits for it any more: its lease is lost, or jobq_queue_cancel was called with its id:
 * then a normal return is done all the same, anything else is dead. Inline and after
 * jobq_queue_reserve this asks the store, about once a second at most. @since 0.1 */
JOBQ_API bool jobq_job_is_cancelled(const jobq_job *job);
JOBQ_API bool jobq_job_is_stopping(const jobq_job *job); /* the worker was asked to stop */

/* ---- what a held job can do (rules N7, O1, O2) ----------------------------------------------- */

/* How far it is, 0 to 100, and a note of at most 1024 bytes (cut at a character; NULL = none),
 * to be seen by jobq_queue_find and jobq_queue_wait. In a worker handed to the dispatcher, which
 * tells the store the newest one about once a second at most; after jobq_queue_reserve at once.
 * JOBQ_EINVAL: not a number from 0 to 100; JOBQ_ELEASE. @since 0.1 */
JOBQ_API int jobq_job_progress(jobq_job *job, double percent, const char *note, size_t n);
/* Will anybody be able to read a result? True when the job is tracked or kept (track, keep_done).
 * @since 0.1 */
JOBQ_API bool jobq_job_is_kept(const jobq_job *job);
/* What is kept of a job that ends as done: a body (format JOBQ_FORMAT_*) of at most max_payload
 * bytes. Nothing happens for a job that is not kept. JOBQ_ELIMIT: too large; JOBQ_EPAYLOAD.
 * Copied. @since 0.1 */
JOBQ_API int jobq_job_set_result(jobq_job *job, int format, const void *body, size_t n);
/* There is a result, but it cannot be kept: those who ask for it get this text as JOBQ_EPAYLOAD.
 * @since 0.1 */
JOBQ_API void jobq_job_refuse_result(jobq_job *job, const char *text, size_t n);

/* Carries the statement out in the store if the job's lease still holds, with nobody between
 * check and statement (rule O1): on SQL in a transaction of its own, which rolls back when it
 * fails; Redis does not roll a script back. *value_out (may be NULL): the first column of the
 * first row, else the number of rows changed; its bytes are borrowed until the job's next call.
 * A child opens a connection of its own for the first one. JOBQ_ELEASE: nothing was done;
 * JOBQ_EUNSUPPORTED on the memory store. @since 0.1 */
JOBQ_API int jobq_job_effect(jobq_job *job, const jobq_statement *statement, jobq_param *value_out);
/* The statement that ends the job as done, for the caller's own transaction (PostgreSQL,
 * MariaDB, SQLite): it fails when the lease is lost. The job is settled all the same when its
 * handler returns; that the store then refuses means done. A result set before goes along and is
 * the statement's alone: when the caller rolls back, what is set afterwards is the result, or there
 * is none. Borrowed until the job's next call. @since 0.1 */
JOBQ_API int jobq_job_done_statement(jobq_job *job, int placeholders,
                                     const jobq_statement **statement_out);
/* SHA-256 of name, version and body as 64 hexadecimal digits: equal for equal work, whatever the
 * id. Over the bytes: name, a NUL, the version in decimal, a NUL, the body. @since 0.1 */
JOBQ_API const char *jobq_job_fingerprint(jobq_job *job);

/* Soft stops. When the supervisor wants the running handler out it interrupts the process and
 * jobq_job_interrupted answers what for, once; the binding throws that. Safe to call at any
 * time. */
enum { JOBQ_INTERRUPT_NONE = 0, JOBQ_INTERRUPT_TIMEOUT = 1, JOBQ_INTERRUPT_STOP = 2 };
JOBQ_API int jobq_job_interrupted(jobq_job *job);

/* Frees a job of jobq_queue_reserve; one that was not settled stays reserved until its lease ends.
 * Jobs of a worker belong to the worker: no-op. NULL is fine. */
JOBQ_API void jobq_job_free(jobq_job *job);

JOBQ_END_DECLS
#endif
