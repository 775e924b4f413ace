/* SPDX-License-Identifier: MIT
 *
 * What a job says of itself while it runs and when it is done (rule N7), as the bytes that stores
 * keep for those who look:
 *
 *     msgpack list [percent | nil, note | nil, format, result | nil, refusal | nil]
 *
 * percent a double, note and refusal texts, format JOBQ_FORMAT_* of the result, result its body as
 * bytes. A later version may add values behind these.
 */
#ifndef JOBQ_CORE_OUTCOME_H
#define JOBQ_CORE_OUTCOME_H

#include <jobqueue/sys/driver.h>

#include "util/buf.h"

enum { JOBQ__OUTCOME_NOTE = 1024, JOBQ__OUTCOME_REFUSAL = 1024 };

typedef struct {
    bool has_percent;
    double percent;
    jobq_slice note; /* absent = none */
    int format;
    jobq_slice body;    /* absent = no result ... */
    jobq_slice refusal; /* ... and this one: why it could not be kept */
} jobq__outcome;

/* Replaces what the buffer holds; without memory it is empty. */
void jobq__outcome_write(jobq__buf *out, const jobq__outcome *outcome);
/* Slices point into the arena, NUL-terminated. False: unreadable (output empty). */
bool jobq__outcome_read(jobq_slice bytes, jobq__arena *arena, jobq__outcome *out);

#endif
