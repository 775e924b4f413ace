/* SPDX-License-Identifier: MIT
 *
 * What happens to jobs, gathered per queue and minute until the store is told (rule N1): by whoever
 * holds jobs, at most once a second, never a write per job. What is not told when its process dies
 * is lost: numbers to look at, not the books of the trade.
 */
#ifndef JOBQ_CORE_MINUTES_H
#define JOBQ_CORE_MINUTES_H

#include <jobqueue/inspect.h>

#include "core/retry.h"
#include "driver/driver.h"

typedef struct {
    jobq_minute *cells; /* one per queue and minute; their names lie in the arena */
    size_t count, room;
    size_t pushed, ended; /* where the last one of each kind was booked */
    int64_t at_ms;        /* when the store is to be told, 0 = not known yet */
    int64_t stamp;        /* process that gathered them: a fork's copy is not its own to tell */
    jobq__arena names;
} jobq__tally; /* zero-initialise */

/* A job's first hand-out. now_ms: store clock. Hidden queues count nowhere; without memory, or
 * after 2048 different minutes of queues that the store was not told of, neither does this. */
void jobq__tally_pushed(jobq__tally *t, jobq_slice queue, int64_t enqueued_at_ms, int64_t now_ms);
/* An attempt's end that the store has confirmed. ran_us: of the handler, -1 = it never began. */
void jobq__tally_ended(jobq__tally *t, jobq_slice queue, int64_t now_ms, jobq_ending ending,
                       const jobq__verdict *verdict, int64_t ran_us);
/* When the store is to be told, by our clock; 0 = there is nothing. */
int64_t jobq__tally_at(jobq__tally *t, int64_t mono_ms);
bool jobq__tally_is_due(jobq__tally *t, int64_t mono_ms);
/* Tells the store. On an error that says that nothing was changed they are kept for the next
 * time. */
int jobq__tally_book(jobq__tally *t, jobq__store *store);
void jobq__tally_free(jobq__tally *t); /* empty, and may be used again */

#endif
