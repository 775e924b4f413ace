/* SPDX-License-Identifier: MIT
 *
 * What the payload suites share: bodies from hex, tokens as text that can be compared.
 */
#ifndef JOBQ_TESTS_BODIES_H
#define JOBQ_TESTS_BODIES_H

#include <jobqueue/payload.h>

#include "util/buf.h"

/* Appends the bytes of a hex text. */
void body_from_hex(jobq__buf *out, const char *hex, size_t n);

/* Appends the tokens of a body as text ("[2] i1 \"a\" "), doubles by their bits; returns what ended
 * the reading: 0 or a negative code, the problem in *problem_out. */
int body_tokens(jobq__buf *out, int format, const void *p, size_t n, jobq_problem *problem_out);

/* Hands a token to the matching writer call. */
int body_write(jobq_writer *w, const jobq_token *t);
/* Reads a body and writes it again, into a writer that was reset. */
int body_rewrite(jobq_writer *w, int format, const void *p, size_t n);

/* A file below the source root, whole; fails the test when it is not there. */
void body_load(jobq__buf *out, const char *path);
/* The seed of a randomised test: JOBQ_TEST_SEED or a fixed one; printed. */
uint64_t body_seed(void);

#endif
