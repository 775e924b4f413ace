/* SPDX-License-Identifier: MIT
 *
 * Random bytes from the kernel, fetched in blocks and thrown away after a fork; a seeded stream for
 * tests.
 */
#ifndef JOBQ_UTIL_RNG_H
#define JOBQ_UTIL_RNG_H

#include <stddef.h>
#include <stdint.h>

void jobq__rng_bytes(void *p, size_t n);
uint64_t jobq__rng_u64(void);
double jobq__rng_unit(void);        /* 0 <= x < 1 */
void jobq__rng_seed(uint64_t seed); /* tests: from now on a fixed stream; 0 = the kernel again */

#endif
