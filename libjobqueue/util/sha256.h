/* SPDX-License-Identifier: MIT
 *
 * SHA-256 (FIPS 180-4, sections 4.1.2, 4.2.2, 5 and 6.2). For fingerprints, which keep no secret.
 */
#ifndef JOBQ_UTIL_SHA256_H
#define JOBQ_UTIL_SHA256_H

#include <jobqueue/common.h>

enum { JOBQ__SHA256_SIZE = 32 };

typedef struct {
    uint32_t state[8];
    uint64_t bytes; /* taken in so far */
    unsigned char block[64];
} jobq__sha256;

void jobq__sha256_begin(jobq__sha256 *h);
void jobq__sha256_add(jobq__sha256 *h, const void *p, size_t n);
void jobq__sha256_end(jobq__sha256 *h, unsigned char out[JOBQ__SHA256_SIZE]);

#endif
