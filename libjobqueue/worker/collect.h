/* SPDX-License-Identifier: MIT
 *
 * The master collects what the others print (rules D7, G4): a pipe for the standard output and one
 * for the standard error of each child, and two for the dispatcher's lines. What arrives is cut
 * into whole lines and written by one process, so that no two of them share a line.
 *
 *     child 1 > pipes \
 *     child 2 > pipes  >  master: lines, order, room  >  stdout, stderr, the worker's output
 *     dispatcher's    /
 */
#ifndef JOBQ_WORKER_COLLECT_H
#define JOBQ_WORKER_COLLECT_H

#include "worker/worker.h"

typedef struct jobq__collector jobq__collector;

/* The ends of two pipes: output 0 (read), 1 (write), error 2, 3; all -1: there are none. */
typedef struct {
    int ends[4];
} jobq__pipes;

int jobq__collect_new(const jobq__shared *shared, jobq__observer *observer,
                      jobq__collector **collector_out);
void jobq__collect_free(jobq__collector *c);

/* Before a fork: pipes for the new process. Without any it prints directly; that is said once. */
void jobq__collect_open(jobq__collector *c, jobq__pipes *pipes);
/* After it, in the master: keeps the read ends. pid < 0: the fork failed. */
void jobq__collect_keep(jobq__collector *c, const jobq__pipes *pipes, pid_t pid, int64_t slot);
enum { JOBQ__COLLECT_DISPATCHER = -1 /* as slot */ };
/* In a child: its 1 and 2 are the pipes; nothing else of the collector stays open. */
void jobq__collect_enter(jobq__collector *c, const jobq__pipes *pipes);
/* The process is gone: what it left is still read, and what others hold open of it disturbs
 * nobody. */
void jobq__collect_part(jobq__collector *c, pid_t pid);

/* Passes on what comes until one of the two descriptors is readable or the time is there; at least
 * once what is there now. */
void jobq__collect_wait(jobq__collector *c, const int fds[2], int64_t until_ms);
/* Everybody is gone: the rest, as far as somebody takes it. */
void jobq__collect_finish(jobq__collector *c);

#endif
