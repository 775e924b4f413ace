/* SPDX-License-Identifier: MIT
 *
 * A store with accidents: the memory driver, whose calls fail by a script, either before anything
 * was done or after it, when only the answer is lost. Rules K2, C5, D6.
 */
#ifndef JOBQ_TESTS_HARNESS_SCRIPTED_H
#define JOBQ_TESTS_HARNESS_SCRIPTED_H

#include "core/queue.h"

typedef enum {
    SCRIPTED_PUSH,
    SCRIPTED_EXCHANGE,
    SCRIPTED_RENEW,
    SCRIPTED_HELD,
    SCRIPTED_WAIT,
    SCRIPTED_MAINTAIN,
    SCRIPTED_BOOK,
    SCRIPTED_CAPACITY,
    SCRIPTED_CALLS
} scripted_call;

typedef enum {
    SCRIPTED_NEVER,
    SCRIPTED_BEFORE,  /* nothing was done */
    SCRIPTED_AFTER,   /* done, its answer is lost */
    SCRIPTED_HALFWAY, /* exchange: only the first settlement was carried out; others: as BEFORE */
    SCRIPTED_SETTLED, /* exchange: settled, and it says so; the reservation failed */
    SCRIPTED_REFUSED  /* exchange of several settlements: JOBQ_EINVAL, whatever the code */
} scripted_moment;

/* Makes the queue's store (a "memory:") one of these. */
void scripted_make(jobq_queue *queue);
/* The `after`-th call of that kind from now (1 = the next) fails with that code. */
void scripted_fail(scripted_call call, int after, scripted_moment moment, int code);
/* One more of that kind, so many calls behind it. */
void scripted_then(scripted_call call, int after, scripted_moment moment, int code);
/* All calls of all kinds, until told otherwise: an outage. 0 ends it. */
void scripted_away(int code);
/* How many calls of that kind there were since scripted_make. */
int scripted_count(scripted_call call);
/* Whether the last maintain was asked to take jobs back. */
bool scripted_took_back(void);

#endif
