/* SPDX-License-Identifier: MIT
 *
 * Cuts a stream of bytes into whole lines: what has no end yet is kept, and a line longer than
 * JOBQ__LINE_MAX goes in pieces that are lines of their own.
 */
#ifndef JOBQ_WORKER_LINES_H
#define JOBQ_WORKER_LINES_H

#include "util/buf.h"

enum { JOBQ__LINE_MAX = 64 * 1024 };

typedef struct {
    jobq__buf partial; /* the line under way */
} jobq__lines;         /* zero-initialise */

/* Gets whole lines, end included. */
typedef void (*jobq__lines_taker)(void *payload, const char *lines, size_t n);

void jobq__lines_add(jobq__lines *lines, const char *p, size_t n, jobq__lines_taker take,
                     void *payload);
/* There is no more to come, or not for this line: it gets its end. */
void jobq__lines_end(jobq__lines *lines, jobq__lines_taker take, void *payload);
void jobq__lines_free(jobq__lines *lines);

#endif
