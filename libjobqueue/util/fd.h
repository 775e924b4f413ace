/* SPDX-License-Identifier: MIT
 *
 * Descriptors: close-on-exec pipes, whole writes, waits with a deadline.
 */
#ifndef JOBQ_UTIL_FD_H
#define JOBQ_UTIL_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pipe, both ends non-blocking, close-on-exec and above 2; 0 or -1 with errno. */
int jobq__fd_pipe(int fds_out[2]);
/* Rings a doorbell pipe: one byte, EAGAIN is as good. */
void jobq__fd_ring(int fd);
/* Empties a doorbell pipe. */
void jobq__fd_drain(int fd);
/* 1 readable, 0 deadline (timeout_ms; -1 = none), -1 errno (EINTR too). */
int jobq__fd_wait(int fd, int64_t timeout_ms);
/* Identity of what the descriptor points to, to notice that a handler closed and reused the
 * number. */
typedef struct {
    uint64_t device, inode;
} jobq__fd_identity;
bool jobq__fd_identify(int fd, jobq__fd_identity *out);
bool jobq__fd_is(int fd, const jobq__fd_identity *identity);

#endif
