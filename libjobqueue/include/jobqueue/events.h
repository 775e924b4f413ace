/* SPDX-License-Identifier: MIT
 *
 * Events that the worker reports to the binding's listeners. Those of the run's own process and of
 * the handler's child (worker.*, child.*, job.processing, job.processed, job.released,
 * job.exception, and job.failed with JOBQ_STEP_HOOK) are fired by the binding itself around its
 * calls; those decided elsewhere arrive through jobq_worker_next, each at most once and in order.
 *
 *     event             job   data
 *     looping           -     -  before each job and every `sleep`; see jobq_worker_veto
 *     idle              -     -  once whenever a child has run out of jobs
 *     job.retrying      yes   attempt, outcome, delay, took, class, message
 *     job.timed_out     yes   attempt, outcome, took, message; delay or reason
 *     job.crashed       yes   attempt, outcome, took, message; delay or reason
 *     job.lease_lost    yes   attempt, outcome, took, class, message
 *     store.error       -     message, failures (in a row), retry (seconds)
 *     store.recovered   -     failures, away (seconds)
 *     queue.paused      -     -  jobq_event_queue: which one of those served
 *     queue.resumed     -     -  likewise
 *
 * Numbers are delay, took, retry, away (seconds), attempt and failures. Absent is what is unknown.
 */
#ifndef JOBQUEUE_EVENTS_H
#define JOBQUEUE_EVENTS_H

#include <jobqueue/job.h>

JOBQ_BEGIN_DECLS

/* name, where it is fired */
#define JOBQ_EVENT_LIST(X)                  \
    X("worker.starting", "run")             \
    X("worker.stopping", "run")             \
    X("child.started", "child")             \
    X("child.stopping", "child")            \
    X("looping", "child")                   \
    X("idle", "child")                      \
    X("job.processing", "child")            \
    X("job.processed", "child")             \
    X("job.released", "child")              \
    X("job.exception", "child")             \
    X("job.retrying", "next free child")    \
    X("job.timed_out", "next free child")   \
    X("job.crashed", "next free child")     \
    X("job.lease_lost", "next free child")  \
    X("job.failed", "child, with the hook") \
    X("store.error", "next free child")     \
    X("store.recovered", "next free child") \
    X("queue.paused", "next free child")    \
    X("queue.resumed", "next free child")   \
    X("job.pushed", "producer")

typedef struct jobq_event jobq_event;

/* The i-th event's name, NULL past the end. @since 0.1 */
JOBQ_API const char *jobq_event_list(size_t i);
/* The event whose name is most like that one, NULL when none is. @since 0.1 */
JOBQ_API const char *jobq_event_nearest(const char *name);
JOBQ_API const char *jobq_event_name(const jobq_event *event);
/* The job it is about (payload included, cannot be settled), NULL when none. Borrowed until the
 * next step. */
JOBQ_API jobq_job *jobq_event_job(const jobq_event *event);
/* The queue it is about: its job's, or that of queue.*; NULL when none. n_out may be NULL. @since
 * 0.1 */
JOBQ_API const char *jobq_event_queue(const jobq_event *event, size_t *n_out);
/* The i-th datum: text always, and number when it is one (is_number). False past the end. */
JOBQ_API bool jobq_event_data(const jobq_event *event, size_t i, const char **key,
                              const char **text, double *number, bool *is_number);

JOBQ_END_DECLS
#endif
