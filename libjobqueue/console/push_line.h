/* SPDX-License-Identifier: MIT
 *
 * One line of "push -" becomes one message. No I/O here.
 */
#ifndef JOBQ_CONSOLE_PUSH_LINE_H
#define JOBQ_CONSOLE_PUSH_LINE_H

#include <jobqueue/queue.h>

/* Reads {"name": ..., "payload": ..., "context": {...}, further push options}; in place of the
 * payload a body as it is: "raw": {"$bytes": ...} and "format": "msgpack" (default) or "json";
 * "guard": "SQL" or ["SQL", [value, ...]].
 * `base` (may be NULL): options that every line has unless it gives its own. 0, or a code with the
 * error record set. */
int jobq__push_line_read(const char *p, size_t n, const jobq_conf *base, jobq_message *m);

#endif
