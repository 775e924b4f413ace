/* SPDX-License-Identifier: MIT
 *
 * The only place that calls malloc. Functions return NULL (without an error record) when memory is
 * short; tests make the n-th allocation fail.
 */
#ifndef JOBQ_UTIL_ALLOC_H
#define JOBQ_UTIL_ALLOC_H

#include <stddef.h>
#include <stdint.h>

void *jobq__alloc(size_t n);  /* uninitialised */
void *jobq__zalloc(size_t n); /* zeroed */
void *jobq__realloc(void *p, size_t n);
void *jobq__memdup(const void *p, size_t n); /* one byte more, set to NUL */
char *jobq__strdup(const char *s);
void jobq__free(void *p); /* NULL is fine */

/* Tests: the n-th allocation from now on (1 = next) and, with `sticky`, all later ones fail; 0 =
 * off. */
void jobq__alloc_fail_at(int64_t n, int sticky);
int64_t jobq__alloc_count(void); /* allocations so far, for the failing-allocation loop */

#endif
