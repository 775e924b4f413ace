/* SPDX-License-Identifier: MIT
 *
 * Guards as people write them. No I/O here.
 */
#ifndef JOBQ_CONSOLE_GUARD_H
#define JOBQ_CONSOLE_GUARD_H

#include <jobqueue/queue.h>

#include "util/buf.h"

/* A statement and its values as words: a number, true, false, null, a JSON text or bytes; whatever
 * else is a text as it stands. 0, or a code with the error record set. */
int jobq__guard_of_words(const char *text, const char *const *words, size_t count,
                         jobq__arena *arena, jobq_message *m);
/* "SQL" or ["SQL", [value, ...]] in JSON. */
int jobq__guard_of_json(const char *p, size_t n, jobq_message *m);

#endif
