/* SPDX-License-Identifier: MIT
 *
 * The short ways to use the step API: the whole loop for C handlers, and the start of a single inline job.
 */
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "worker/worker.h"

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

static void run_job(jobq_job *job, jobq_handler handler, void *payload)
{
    jobq_ending ending;

    jobq__error_clear();
    ending = judge_return(job, handler(job, payload));
    if (job->settled)
        return;
    /* Its output must survive a later kill. Not in a process the handler forked: settle says so. */
    if (jobq_job_settle(job, ending, ending == JOBQ_ENDED_RELEASED ? 0 : -1) >= 0)
        fflush(stdout);
}

int jobq_worker_run(jobq_worker *worker, const char *const *queues, size_t count, jobq_handler handler, void *payload)
{
    int code = 0, rc = jobq_worker_start(worker, queues, count, NULL, &code);
    jobq_event *event;
    jobq_job *job;

    if (rc < 0 || rc == JOBQ_ROLE_MASTER)
        return rc < 0 ? rc : code;
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
