/* SPDX-License-Identifier: MIT
 *
 * Events that the worker reports to the binding's listeners. Those of the run's own process and of
 * the handler's child (worker.*, child.*, job.processing, job.processed, job.released,
 * job.exception) are fired by the binding itself around its calls; those decided elsewhere arrive
 * through jobq_worker_next.
 */
#ifndef JOBQUEUE_EVENTS_H
#define JOBQUEUE_EVENTS_H

#include <jobqueue/job.h>

JOBQ_BEGIN_DECLS

/* name, where it is fired */
#define JOBQ_EVENT_LIST(X)                 \
    X("worker.starting", "run")            \
    X("worker.stopping", "run")            \
    X("child.started", "child")            \
    X("child.stopping", "child")           \
    X("job.processing", "child")           \
    X("job.processed", "child")            \
    X("job.released", "child")             \
    X("job.exception", "child")            \
    X("job.retrying", "next free child")   \
    X("job.timed_out", "next free child")  \
    X("job.crashed", "next free child")    \
    X("job.lease_lost", "next free child") \
    X("job.pushed", "producer")

typedef struct jobq_event jobq_event;

/* The i-th event's name, NULL past the end. @since 0.1 */
JOBQ_API const char *jobq_event_list(size_t i);
JOBQ_API const char *jobq_event_name(const jobq_event *event);
/* The job it is about (payload included, cannot be settled), NULL when none. Borrowed until the
 * next step. */
JOBQ_API jobq_job *jobq_event_job(const jobq_event *event);
/* The i-th datum: text always, and number when it is one (is_number). False past the end. */
JOBQ_API bool jobq_event_data(const jobq_event *event, size_t i, const char **key,
                              const char **text, double *number, bool *is_number);

JOBQ_END_DECLS
#endif
