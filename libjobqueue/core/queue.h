/* SPDX-License-Identifier: MIT
 *
 * Inside of the queue handle, for core/ and worker/.
 */
#ifndef JOBQ_CORE_QUEUE_H
#define JOBQ_CORE_QUEUE_H

#include <jobqueue/queue.h>

#include "core/ident.h"
#include "core/minutes.h"
#include "driver/driver.h"

/* Local counters (rule N2). The last one is none: how long the job that was received last had been
 * in the store by then. */
#define JOBQ__COUNTER_LIST(X)           \
    X(PUSHED, "pushed")                 \
    X(PUSH_REJECTED, "push_rejected")   \
    X(STORE_FAILURES, "store_failures") \
    X(LEASE_REJECTED, "lease_rejected") \
    X(RECEIVED, "received")             \
    X(DONE, "done")                     \
    X(FAILED, "failed")                 \
    X(RETRIED, "retried")               \
    X(RELEASED, "released")             \
    X(TIMED_OUT, "timed_out")           \
    X(CRASHED, "crashed")               \
    X(GIVEN_BACK, "given_back")         \
    X(CLEANUP_FAILED, "cleanup_failed") \
    X(DRAIN_EXPIRED, "drain_expired")   \
    X(RESULTS_LOST, "results_lost")     \
    X(DEAD, "dead")                     \
    X(LAST_AGE, "last_job_age_ms")
#define JOBQ__COUNTER_ENUM(name, word) JOBQ__COUNT_##name,
enum { JOBQ__COUNTER_LIST(JOBQ__COUNTER_ENUM) JOBQ__COUNTERS };
extern const char *const jobq__counter_words[JOBQ__COUNTERS];

enum { JOBQ__QUEUE_SIZE = 129 };

/* A worker record made for jobq_queue_reserve that holds no job at the moment: the next one takes
 * it over. */
typedef struct {
    char id[JOBQ__WORKER_ID_SIZE]; /* "" = none */
    int64_t lease_ms, until_mono_ms;
    int64_t stamp; /* process that made it */
} jobq__spare;

/* What reserve knows of paused queues (core/pauses.h). */
typedef struct {
    jobq_batch batch;
    const jobq_pause *first;
    int64_t control; /* the number they belong to */
    bool known;
    int64_t read_mono_ms, store_ms; /* when they were read, by our clock and by the store's */
} jobq__known_pauses;

/* The option `capacity`: the queues that have been told of it (rule B4). */
typedef struct {
    char (*names)[JOBQ__QUEUE_SIZE];
    size_t count;
} jobq__limited;

struct jobq_queue {
    jobq__store *store;
    jobq_conf *conf; /* scope connection */
    int64_t counters[JOBQ__COUNTERS];
    jobq_batch batch;
    jobq_push *items; /* scratch of push_many */
    size_t item_room;
    jobq__spare spare;
    jobq__known_pauses pauses;
    jobq__tally tally; /* what happened to jobs, until the store is told */
    jobq__limited limited;
    /* reserve: a record whose last exchange may have taken a job that never arrived; "" = none */
    char doubtful[JOBQ__WORKER_ID_SIZE];
    int64_t maintain_at_mono_ms;    /* reserve: when maintenance is due next */
    int64_t take_back_from_mono_ms; /* reserve: leave expired workers alone until then */
};

/* Gives up the spare record, if there is one of this process. Never fails in a way that matters. */
void jobq__queue_leave_spare(jobq_queue *queue);

/* Tells the store what was counted when it is due, or whatever there is; trouble is no error
 * here. */
void jobq__queue_book(jobq_queue *queue);
void jobq__queue_book_all(jobq_queue *queue);

/* After that code the store may have done what it was asked: its answer is lost. */
bool jobq__queue_is_doubtful(int rc);

/* Checks of rule A1; each returns 0 or JOBQ_EINVAL with the thing named. */
int jobq__check_name(const char *p, size_t n);
int jobq__check_queue(const char *p, size_t n);
int jobq__check_id(const char *p, size_t n);
int jobq__check_unique(const char *p, size_t n);
int jobq__check_label(const char *p, size_t n);
int jobq__check_prefix(const char *p, size_t n);
int jobq__check_schema(const char *p, size_t n);
int jobq__check_path(const char *p, size_t n);
int jobq__check_output(const char *p, size_t n);
/* Error text of every rejected store call passes here, so that counters are right. */
int jobq__queue_note(jobq_queue *queue, int rc);

#endif
