/* SPDX-License-Identifier: MIT
 *
 * Inside of infos and lists, for info.c, inspect.c, dead.c and stats.c.
 */
#ifndef JOBQ_CORE_INSPECT_H
#define JOBQ_CORE_INSPECT_H

#include <jobqueue/inspect.h>

#include "core/outcome.h"
#include "core/queue.h"
#include "payload/envelope.h"

/* Records of one listing, shared by the infos made of them. */
typedef struct {
    jobq_batch batch;
    size_t users;
} jobq__page;

typedef struct jobq__shown_option jobq__shown_option;

struct jobq_info {
    jobq__page *page;
    const jobq_record *record;
    jobq__arena arena; /* what was decoded */
    bool header_read, options_made, outcome_read;
    bool gone; /* only what a hook's body says is known */
    int header_problem;
    jobq__header header;
    jobq__outcome outcome;
    jobq__shown_option *options;
    size_t option_count;
};

/* The dead job of a failed hook whose body that is, as the hook's listeners see it: what the store
 * has of it, and when that was put back or is gone, what the body says. */
int jobq__info_of_death(jobq_queue *queue, const jobq_record *hook, jobq_info **info_out);

/* jobq_queue_find in that queue alone; absent = in all. */
int jobq__info_find(jobq_queue *queue, jobq_slice where, const char *id, size_t n,
                    jobq_info **info_out);

/* One page of the listing as a list of infos. On success it is the caller's. */
int jobq__list_load(jobq_queue *queue, const jobq_listing *wanted, jobq_list **list_out);
/* Limits and cursors of lists: 1 to 1000. */
int jobq__list_check(size_t limit);

#endif
