/* SPDX-License-Identifier: MIT
 *
 * Which queues are paused (rule L1): how pauses add up, and what a handle knows of them for
 * jobq_queue_reserve. The worker has its own knowledge (worker/control.c).
 */
#ifndef JOBQ_CORE_PAUSES_H
#define JOBQ_CORE_PAUSES_H

#include "core/queue.h"

enum { JOBQ__NOT_PAUSED = -1 };

/* Until when that queue is paused by the store's clock, by its own pause or, unless `force`, by
 * "all"; 0 = until resumed, JOBQ__NOT_PAUSED. */
int64_t jobq__pause_until(const jobq_pause *pauses, jobq_slice queue, bool force);
/* Is a pause that ends so still in force? */
static inline bool jobq__pause_holds(int64_t until_ms, int64_t store_now_ms)
{
    return until_ms == 0 || (until_ms > 0 && until_ms > store_now_ms);
}

/* Reads them when they are not known, or `control`, the number of an answer, says that something
 * has changed (-1: no answer; then now and then). JOBQ_E* or 0. */
int jobq__pauses_refresh(jobq_queue *queue, int64_t control);
bool jobq__pauses_hold(const jobq_queue *queue, jobq_slice name);

#endif
