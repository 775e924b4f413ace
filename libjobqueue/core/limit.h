/* SPDX-License-Identifier: MIT
 *
 * Capacities, for push.c.
 */
#ifndef JOBQ_CORE_LIMIT_H
#define JOBQ_CORE_LIMIT_H

#include "core/queue.h"

#define JOBQ__CAPACITY_MAX 1000000000000

/* What one call has learnt of a full queue; zero-initialise. */
typedef struct {
    jobq_slice queue;
    int64_t capacity;
} jobq__full;

/* The connection's option `capacity` for that queue: the store is told once per handle, and does
 * nothing where one was ever set. Only to be called when the option is given. */
int jobq__limit_apply(jobq_queue *queue, jobq_slice name);
/* Words JOBQ_EFULL with the queue and its capacity. Returns it. */
int jobq__limit_refuse(jobq_queue *queue, jobq_slice name, jobq__full *known);

#endif
