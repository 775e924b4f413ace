/* SPDX-License-Identifier: MIT
 *
 * What the two passes over JSON share: json_count.c goes first, json_reader.c gives the tokens.
 */
#ifndef JOBQ_PAYLOAD_JSON_READER_H
#define JOBQ_PAYLOAD_JSON_READER_H

#include "payload/reader.h"

static inline int jobq__json_truncated(jobq_reader *r, const char *what)
{
    return jobq__reader_fail(r, JOBQ_PROBLEM_TRUNCATED, r->n, what);
}

static inline int jobq__json_malformed(jobq_reader *r, size_t at, const char *what)
{
    return jobq__reader_fail(r, JOBQ_PROBLEM_MALFORMED, at, what);
}

static inline bool jobq__json_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Fills r->counts; refuses brackets that do not match. */
int jobq__json_count(jobq_reader *r);
/* Position behind the string literal that begins at `at`, 0 when it does not end. */
size_t jobq__json_skip_string(const jobq_reader *r, size_t at);

#endif
