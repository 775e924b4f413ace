/* SPDX-License-Identifier: MIT
 *
 * Where a worker's lines go when the option `output` cannot say it (rule G4): a descriptor of the
 * application's, or a function of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "worker/worker.h"

static int check_idle(const jobq_worker *worker)
{
    if (worker->role != JOBQ_ROLE_CHILD && !worker->inl)
        return 0;
    return jobq__error_set(JOBQ_EINVAL, "output cannot be changed while the worker runs");
}

void jobq__sink_clear(jobq_worker *worker)
{
    const jobq__sink old = worker->sink;

    memset(&worker->sink, 0, sizeof(worker->sink));
    if (old.kind == JOBQ__SINK_FD)
        close(old.fd);
    if (old.destroy)
        old.destroy(old.payload);
}

bool jobq__sink_in_force(const jobq_worker *worker)
{
    return worker->sink.kind != JOBQ__SINK_OPTION && !worker->sink_outvoted;
}

/* A copy of its own, not below 3: what the caller closes meanwhile is not ours. */
static int copy_fd(int fd, int *copy_out)
{
    const int flags = fcntl(fd, F_GETFL);
    int copy = -1;

    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        return jobq__error_set_subject(JOBQ_EINVAL, "output", 6,
                                       "output: descriptor %d is not open for writing", fd);
    if (flags >= 0)
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return jobq__error_set_subject(JOBQ_EINVAL, "output", 6,
                                       "output: descriptor %d cannot be used: %s", fd,
                                       strerror(errno));
    *copy_out = copy;
    return 0;
}

int jobq_worker_set_output_fd(jobq_worker *worker, int fd)
{
    int rc, copy = -1;

    jobq__error_clear();
    if ((rc = check_idle(worker)) < 0 || (fd >= 0 && (rc = copy_fd(fd, &copy)) < 0))
        return rc;
    jobq__sink_clear(worker);
    if (fd >= 0)
        worker->sink = (jobq__sink){.kind = JOBQ__SINK_FD, .fd = copy};
    return 0;
}

int jobq_worker_set_output_line(jobq_worker *worker, jobq_line_function line, void *payload,
                                void (*destroy)(void *payload))
{
    int rc;

    jobq__error_clear();
    rc = check_idle(worker);
    if (rc == 0 && !line)
        rc = jobq__error_set_subject(JOBQ_EINVAL, "output", 6,
                                     "output: a function for the lines is needed");
    if (rc < 0) {
        if (destroy)
            destroy(payload);
        return rc;
    }
    jobq__sink_clear(worker);
    worker->sink = (jobq__sink){JOBQ__SINK_LINE, -1, line, payload, destroy};
    return 0;
}

/* The lines are made in other processes than the one that has the function. */
int jobq__sink_check_pool(const jobq_worker *worker)
{
    char option[64];

    if (!jobq__sink_in_force(worker) || worker->sink.kind != JOBQ__SINK_LINE)
        return 0;
    return jobq__error_set_subject(
        JOBQ_ECONF, "output", 6,
        "output: a function gets the lines of an inline worker only (%s = 0); with processes they "
        "go to auto, jobs, summary, json, quiet, a path with a slash, or a stream",
        jobq__conf_spell(worker->run_conf, "processes", option, sizeof(option)));
}
