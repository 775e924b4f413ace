/* SPDX-License-Identifier: MIT
 *
 * Inside of the master's collector: the table of pipes that streams.c fills and empties around
 * forks and deaths, and collect.c reads.
 */
#ifndef JOBQ_WORKER_STREAMS_H
#define JOBQ_WORKER_STREAMS_H

#include <poll.h>

#include "worker/collect.h"
#include "worker/lines.h"
#include "worker/observe.h"

enum { JOBQ__CHUNK = 64 * 1024, JOBQ__OUTPUTS = 3 };

typedef struct {
    int fd; /* -1 = this place is free */
    pid_t pid;
    int64_t slot; /* JOBQ__COLLECT_DISPATCHER or a child's */
    bool err, gone;
    uint64_t age;     /* the smaller the older */
    uint64_t running; /* the child's hand-out when we last looked, before the last poll */
    uint64_t newest;  /* what the line under way may belong to: hand-outs up to this one */
    size_t owed;      /* bytes that go before what is held of the dispatcher */
    jobq__lines lines;
    jobq__buf held; /* dispatcher's */
} jobq__stream;

struct jobq__collector {
    const jobq__shared *shared;
    jobq__observer *observer;
    jobq__stream *streams;
    struct pollfd *polls; /* two of the caller's, one per stream, the outputs */
    struct pollfd *looks; /* one per stream */
    size_t count;
    uint64_t next_age;
    bool holds; /* something of the dispatcher's */
    bool said;  /* that there are no pipes */
    size_t chunk_size;
    char chunk[JOBQ__CHUNK];
};

void jobq__stream_close(jobq__stream *s);
void jobq__streams_close_all(jobq__collector *c);
/* collect.c: the line under way gets its end and is passed on. */
void jobq__stream_end_line(jobq__collector *c, jobq__stream *s);

#endif
