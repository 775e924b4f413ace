/* SPDX-License-Identifier: MIT
 *
 * What becomes of a job: the whole policy of rules C4, C5, D, E and F2, as pure functions over
 * numbers. Nothing here does I/O or knows a store; time and chance come in as arguments.
 */
#ifndef JOBQ_CORE_RETRY_H
#define JOBQ_CORE_RETRY_H

#include <jobqueue/job.h>
#include <jobqueue/sys/driver.h>

#include "core/settings.h"
#include "payload/envelope.h"

/* Reasons of death; stable words (jobq__reason_word). Stored as numbers: never renumber. */
#define JOBQ__REASON_LIST(X)                         \
    X(1, ATTEMPTS_EXHAUSTED, "attempts_exhausted")   \
    X(2, TIMED_OUT, "timed_out")                     \
    X(3, CRASHED, "crashed")                         \
    X(4, DEADLINE_PASSED, "deadline_passed")         \
    X(5, EXPIRED, "expired")                         \
    X(6, UNDECODABLE, "undecodable")                 \
    X(7, UNKNOWN_NAME, "unknown_name")               \
    X(8, UNSUPPORTED_VERSION, "unsupported_version") \
    X(9, FAILED_BY_HANDLER, "failed_by_handler")     \
    X(10, NOT_RETRYABLE, "not_retryable")            \
    X(11, CANCELLED, "cancelled")                    \
    X(12, RELEASED_TOO_OFTEN, "released_too_often")
#define JOBQ__REASON_ENUM(value, name, word) JOBQ__REASON_##name = (value),
enum { JOBQ__REASON_NONE = 0, JOBQ__REASON_LIST(JOBQ__REASON_ENUM) };
const char *jobq__reason_word(int reason); /* "" for none */
int jobq__reason_parse(const char *word);  /* 0: no such word */

/* What is in force for one job: push over handler over worker. Plain data: lives in shared
 * memory. */
typedef struct {
    int64_t tries, timeout_ms, timeout_grace_ms, max_crashes, max_exceptions, max_releases,
        unknown_for_ms;
    int64_t keep_done_ms;      /* of what can be read: at least an hour of tracked jobs */
    int64_t dead_retention_ms; /* of dead ones, 0 = for ever */
    int64_t remember_ms;       /* the id of a done one, 0 = not longer than the job */
    int64_t retry_until_at_ms, expires_at_ms; /* store clock, 0 = none */
    bool fail_on_timeout, drop_expired, tries_given;
    bool tracked, until_started; /* rules N7, B6 */
    jobq__backoff backoff;
    double jitter;
} jobq__policy;

/* handler and header may be NULL. retry_until given alone (no tries given anywhere but the default)
 * lifts the default of tries (rule E2). */
void jobq__policy_make(jobq__policy *policy, const jobq_conf *worker, const jobq_conf *handler,
                       const jobq__header *header, int64_t base_at_ms);

typedef struct {
    uint8_t op, reason; /* JOBQ_OP_*, JOBQ__REASON_* */
    int64_t delay_ms, keep_ms;
    bool keep_bare;         /* kept so that its id is remembered, for nobody to read */
    jobq_counters counters; /* the new ones */
} jobq__verdict;

/* What its history says of a job that was cancelled in time. */
#define JOBQ__CANCELLED_TEXT "cancelled before it started"
/* The result that a tracked job has when it expired and was to be dropped. */
#define JOBQ__DROPPED_TEXT "expired before it started, and dropped"
/* The error of a job that may not start because of crashes only the store saw. */
#define JOBQ__LOST_TEXT "the process or the worker that ran the job died"
enum { JOBQ__START_RUN, JOBQ__START_DEAD, JOBQ__START_DROP };
/* Before the handler starts: do the job's limits still allow it? DEAD sets *reason_out. */
int jobq__retry_may_start(const jobq__policy *policy, const jobq_counters *counters, int64_t now_ms,
                          int *reason_out);
/* The verdict on one that may not (RUN: on one that is buried for `reason` all the same). A dropped
 * job whose id is remembered or that is tracked leaves its id behind. */
void jobq__retry_turn_away(const jobq__policy *policy, const jobq_counters *counters, int how,
                           int reason, jobq__verdict *out);
/* Does it give its unique key up before this start (rule B6)? Told by what is known of earlier
 * starts: one that was ended by a stop is not among it, and frees a key that is free. */
bool jobq__retry_frees_key(const jobq__policy *policy, const jobq_counters *counters);
/* Is this its last try, or was it lost before: then the store has to know before it starts
 * (mechanisms: blame). */
bool jobq__retry_is_delicate(const jobq__policy *policy, const jobq_counters *counters);

/* Did its handler start? The other endings are known before. */
bool jobq__ending_began(jobq_ending ending);

/* So many losses in a row are a crash (rule C5). */
enum { JOBQ__LOSSES_PER_CRASH = 10 };

/* An attempt's end, judged. */
typedef struct {
    jobq_ending ending;
    int64_t delay_ms;       /* asked for (RELEASED, RetryAfter); -1 = none */
    bool cancelled;         /* it was to end: dead, whatever it did, unless it is done (rule L3) */
    bool name_is_announced; /* UNKNOWN_*: a live worker of that queue announces it */
} jobq__end;

/* now_ms: store clock; unit: 0 <= u < 1 from util/rng.h for the jitter. */
void jobq__retry_judge(const jobq__policy *policy, const jobq_counters *counters,
                       const jobq__end *end, int64_t now_ms, double unit, jobq__verdict *out);
/* The k-th failure's waiting time without jitter, k >= 1. */
int64_t jobq__backoff_ms(const jobq__backoff *backoff, int64_t k);

#endif
