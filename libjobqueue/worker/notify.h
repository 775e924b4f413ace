/* SPDX-License-Identifier: MIT
 *
 * What a service manager is told (systemd's Type=notify): ready, alive, stopping. By the process
 * that it has started, which is the one it listens to.
 */
#ifndef JOBQ_WORKER_NOTIFY_H
#define JOBQ_WORKER_NOTIFY_H

#include "worker/shared.h"

typedef struct {
    const char *socket;   /* environment's; NULL: nobody listens */
    int64_t watchdog_ms;  /* alive at least so often; 0 = nobody asks */
    int64_t alive_at_ms;  /* to be said next */
    bool ready, stopping; /* said */
} jobq__notifier;

void jobq__notify_begin(jobq__notifier *n, int64_t now_ms);
/* Says what is new; when to call again at the latest, INT64_MAX = no need. */
int64_t jobq__notify_tick(jobq__notifier *n, const jobq__words *words, int64_t now_ms);

#endif
