/* SPDX-License-Identifier: MIT
 *
 * Inside of an observer, for observe.c and its tests. The functions stand in worker/worker.h.
 */
#ifndef JOBQ_WORKER_OBSERVE_H
#define JOBQ_WORKER_OBSERVE_H

#include "worker/output.h"
#include "worker/worker.h"

enum {
    JOBQ__OBSERVE_AUTO,
    JOBQ__OBSERVE_JOBS,
    JOBQ__OBSERVE_SUMMARY,
    JOBQ__OBSERVE_JSON,
    JOBQ__OBSERVE_QUIET
};

struct jobq__observer {
    const jobq_worker *worker;
    int mode;
    jobq__output out, err;
    jobq__buf line;
    /* local time, formatted once a second */
    int64_t stamp_second;
    char stamp[32];
    /* this second: jobs that ended without a failure, and those of them that got no line */
    int64_t window_ms, window_jobs, summed;
    bool busy;
};

#endif
