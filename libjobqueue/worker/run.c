/* SPDX-License-Identifier: MIT
 *
 * The short ways to use the step API: the whole loop for C handlers, and the start of a single
 * inline job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/once.h"
#include "worker/worker.h"

/* What runs in this process, for a handler that calls exit. */
static struct {
    jobq_worker *worker;
    jobq_job *job; /* NULL between jobs */
    bool registered;
} in_hand;

/* Rule D4. Registered after everything inherited, so it runs first, and a child ends right here:
 * the destructors that wait behind it are its master's. A process that the handler forked is
 * refused by settle and exits as it likes. */
static void leave_by_exit(int status, void *payload)
{
    jobq_job *job = in_hand.job;
    char text[64];
    int n = snprintf(text, sizeof(text), "the handler called exit(%d)", status);

    (void)payload;
    if (!job || job->settled)
        return;
    in_hand.job = NULL;
    jobq_job_set_error(job, "exit", 4, text, (size_t)n, NULL, 0, NULL, 0);
    jobq_worker_retire(in_hand.worker, NULL, 0);
    if (jobq_job_settle(job, JOBQ_ENDED_EXITED, -1) >= 0)
        jobq_worker_finish(in_hand.worker);
}

static void expect_exit(jobq_worker *worker)
{
    in_hand.worker = worker;
    in_hand.job = NULL;
    if (!in_hand.registered)
        in_hand.registered = on_exit(leave_by_exit, NULL) == 0;
}

/* What the handler left as the thread's error is the job's. */
static jobq_ending note_failure(jobq_job *job, int rc)
{
    struct jobq_error err;
    const char *word = jobq_error_word(rc);

    jobq__error_save(&err);
    if (err.code != rc)
        snprintf(err.message, sizeof(err.message), "the handler returned %d (%s)", rc, word);
    jobq_job_set_error(job, word, strlen(word), err.message, strlen(err.message), NULL, 0, NULL, 0);
    return JOBQ_ENDED_FAILED;
}

static jobq_ending judge_return(jobq_job *job, int rc)
{
    if (rc >= 0 && rc < JOBQ_ENDINGS)
        return (jobq_ending)rc;
    if (rc < 0)
        return note_failure(job, rc);
    jobq__error_set(JOBQ_EINVAL, "the handler returned %d, which is no ending", rc);
    return note_failure(job, JOBQ_EINVAL);
}

/* Its output goes before the line about it, and survives a later kill. Not in a process the handler
 * forked, whose copy of the buffer is its own affair. */
static void flush_output(void)
{
    if (in_hand.worker->stamp == jobq__process_stamp())
        fflush(stdout);
}

static void run_job(jobq_job *job, jobq_handler handler, void *payload)
{
    jobq_ending ending;

    jobq__error_clear();
    in_hand.job = job;
    ending = judge_return(job, handler(job, payload));
    in_hand.job = NULL;
    flush_output();
    if (!job->settled)
        jobq_job_settle(job, ending, ending == JOBQ_ENDED_RELEASED ? 0 : -1);
}

int jobq_worker_run(jobq_worker *worker, const char *const *queues, size_t count,
                    jobq_handler handler, void *payload)
{
    int code = 0, rc = jobq_worker_start(worker, queues, count, NULL, &code);
    jobq_event *event;
    jobq_job *job;

    if (rc < 0 || rc == JOBQ_ROLE_MASTER)
        return rc < 0 ? rc : code;
    expect_exit(worker);
    while ((rc = jobq_worker_next(worker, &job, &event)) > 0)
        if (rc == JOBQ_STEP_JOB)
            run_job(job, handler, payload);
    code = jobq_worker_finish(worker);
    return rc < 0 && code == 0 ? 1 : code;
}

int jobq_worker_start_one(jobq_worker *worker, const char *const *queues, size_t count)
{
    int rc;

    jobq__error_clear();
    if ((rc = jobq__worker_prepare(worker, queues, count, NULL)) < 0)
        return rc;
    worker->run_conf->s.processes = 0;
    worker->run_conf->s.once = true;
    if ((rc = jobq__signals_install(false)) < 0)
        return rc;
    if ((rc = jobq__inline_begin(worker, true)) < 0) {
        jobq__signals_restore();
        return rc;
    }
    worker->role = JOBQ_ROLE_INLINE;
    return JOBQ_ROLE_INLINE;
}
