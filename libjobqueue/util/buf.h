/* SPDX-License-Identifier: MIT
 *
 * A growing byte buffer with a sticky out-of-memory mark, and an arena of chunks that is freed as a
 * whole.
 */
#ifndef JOBQ_UTIL_BUF_H
#define JOBQ_UTIL_BUF_H

#include <jobqueue/common.h>

typedef struct {
    char *p;
    size_t n, cap;
    bool failed; /* an allocation failed: contents are cut */
} jobq__buf;     /* zero-initialise */

bool jobq__buf_reserve(jobq__buf *b, size_t more); /* false: out of memory, mark set */
void jobq__buf_add(jobq__buf *b, const void *p, size_t n);
void jobq__buf_addc(jobq__buf *b, char c);
void jobq__buf_adds(jobq__buf *b, const char *s);
void jobq__buf_addf(jobq__buf *b, const char *fmt, ...) JOBQ_PRINTF(2, 3);
const char *jobq__buf_text(jobq__buf *b); /* NUL-terminated, "" when empty or failed */
void jobq__buf_reset(jobq__buf *b);       /* keeps the memory */
void jobq__buf_free(jobq__buf *b);

typedef struct jobq__arena_chunk jobq__arena_chunk;
typedef struct {
    jobq__arena_chunk *chunks;
} jobq__arena; /* zero-initialise */

void *jobq__arena_alloc(jobq__arena *a, size_t n); /* 16-byte aligned, zeroed; NULL: no memory */
void *jobq__arena_copy(jobq__arena *a, const void *p, size_t n); /* NUL added behind */
void jobq__arena_reset(jobq__arena *a);                          /* keeps the largest small chunk */
void jobq__arena_free(jobq__arena *a);

#endif
