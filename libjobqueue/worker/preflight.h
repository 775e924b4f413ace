/* SPDX-License-Identifier: MIT
 *
 * Looking at the process before its first fork.
 */
#ifndef JOBQ_WORKER_PREFLIGHT_H
#define JOBQ_WORKER_PREFLIGHT_H

#include <stdint.h>

/* JOBQ_EUNSUPPORTED while a descriptor of this process points to that SQLite file, its -wal or its
 * -shm: a transaction that is open at a fork blocks the store for ever (case B099). file NULL:
 * 0. */
int jobq__preflight_file(const char *file);
/* Threads of this process besides the calling one: forked children will not have them. */
int64_t jobq__preflight_threads(void);
/* Open sockets but standard input, output and error: children share them. */
int64_t jobq__preflight_sockets(void);

#endif
