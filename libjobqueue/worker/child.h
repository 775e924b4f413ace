/* SPDX-License-Identifier: MIT
 *
 * Inside of a child: what child.c (the step API, starting and leaving) and child_job.c (one job or
 * event from the ring to its result) share.
 */
#ifndef JOBQ_WORKER_CHILD_H
#define JOBQ_WORKER_CHILD_H

#include "worker/worker.h"

/* A running hand-out. The first seat's job is worker->job; those of others own their texts, so that
 * the ring goes on (`kept`). */
typedef struct {
    uint64_t number; /* 0 = none */
    int64_t started_us;
    jobq_job *job;
    jobq__buf kept;
    bool reached; /* it has used the connection below */
} jobq__child_seat;

/* The connection that was opened for statements of running jobs (child_told.c). */
typedef struct {
    bool own;       /* it was; else what is open is the application's */
    bool spoiled;   /* its file's descriptors were closed by a handler: none in this process */
    uint32_t users; /* running jobs that have used it */
    size_t count;
    struct {
        int fd;
        jobq__fd_identity identity;
    } fds[16];
    uint64_t before[64]; /* descriptors open before the call under way */
} jobq__child_link;

struct jobq__child {
    jobq__slot *slot;
    char *area;
    uint64_t cursor;         /* behind the message in hand */
    jobq__child_seat *seats; /* slot->seats of them */
    uint32_t running;        /* how many are taken */
    bool alone;              /* by one that runs alone */
    jobq__fd_identity bell_id;
    bool has_message, message_has_area, message_is_event;
    bool polled; /* the last step was JOBQ_STEP_WAIT */
    int64_t began_ms, armed_us, measured_ms;
    jobq__buf fault, outcome;
    jobq__child_link link;
    jobq_event event;
    jobq_job event_job;
};

/* child.c: rings them when they sleep. */
void jobq__child_tell_dispatcher(const jobq_worker *worker);
void jobq__child_tell_master(const jobq_worker *worker);
/* Leaves after the running job when one of its limits says so (rule G1). */
void jobq__child_check_wear(jobq_worker *worker, int64_t now_ms);
void jobq__child_foresee(const jobq_worker *worker); /* that it will soon */

/* child_told.c: what running jobs say of themselves and do in the store (rules N7, O1) */
int jobq__child_progress(jobq_job *job);
/* The outcome of a job that is done and kept, behind its result; waits for the place of large
 * ones. */
void jobq__child_take_outcome(const jobq_worker *worker, const jobq_job *job,
                              jobq__result_message *result);
int jobq__child_reach(jobq_job *job, jobq__reach *r);
void jobq__child_unreach(const jobq_job *job);
/* The job of a seat that has reached for it has ended. */
void jobq__child_leave_link(jobq_worker *worker, jobq__child_seat *seat);

/* child_job.c */
/* May that one begin beside those that run? */
bool jobq__child_has_seat(const struct jobq__child *child, const jobq__job_message *m);
/* JOBQ_STEP_JOB, JOBQ_STEP_HOOK or an error; the message was begun. 0: a hook that was
 * put back. */
int jobq__child_open_job(jobq_worker *worker, const jobq__job_message *m, jobq_job **job_out);
/* JOBQ_STEP_EVENT, an error, or 0: unreadable, skip it. */
int jobq__child_open_event(jobq_worker *worker, const jobq__job_message *m, jobq_event **event_out);
/* Gives the room of the message in hand back to the dispatcher. */
void jobq__child_release_message(struct jobq__child *child);

#endif
