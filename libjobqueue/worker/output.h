/* SPDX-License-Identifier: MIT
 *
 * A bounded writer for lines: never blocks, never changes the descriptor's flags, and neither a
 * broken pipe nor a full disk stops its owner. What does not fit in time is dropped and counted.
 */
#ifndef JOBQ_WORKER_OUTPUT_H
#define JOBQ_WORKER_OUTPUT_H

#include <jobqueue/worker.h>

#include "util/buf.h"
#include "util/fd.h"

typedef struct jobq__output {
    jobq__buf pending; /* whole lines ... */
    size_t done;       /* ... of which so many bytes are written */
    int64_t moved_ms;  /* when somebody last took something, or the first of it was added */
    /* of a file of our own, reopened when it was renamed; NULL: a descriptor of others */
    const char *path;
    jobq__fd_identity identity;
    int fd;
    bool is_file; /* takes any amount at once */
    /* lines go to this instead, at each flush */
    jobq_line_function line;
    void *payload;
    int64_t dropped;   /* lines, since the last that said so */
    int64_t said;      /* what a line in `pending` says was dropped; 0 = there is none ... */
    size_t said_end;   /* ... which ends there */
    bool is_midline;   /* what was written last has no end of line */
    bool is_torn;      /* ... and never gets it: the rest was dropped */
    bool mends;        /* `pending` begins with the end of the torn line */
    int64_t looked_ms; /* when we last looked whether the file is still there */
    /* words the line that says so (with its end); NULL: "N lines dropped" */
    void (*word_dropped)(void *payload, jobq__buf *line, int64_t dropped);
    void *word_payload;
} jobq__output;

void jobq__output_init(jobq__output *out, int fd);
void jobq__output_init_line(jobq__output *out, jobq_line_function line, void *payload);
int jobq__output_open(jobq__output *out, const char *path); /* path is borrowed */
/* One line without its end. */
void jobq__output_line(jobq__output *out, const char *text, size_t n);
/* Whole lines of others, end included. Ask wait_ms first: then they are kept however many they
 * are. */
void jobq__output_pass(jobq__output *out, const char *lines, size_t n);
/* 0: pass them on. Else there is no room, and so long their writers can wait: by then somebody has
 * taken something, or it is dropped. */
int64_t jobq__output_wait_ms(const jobq__output *out, int64_t mono_ms);
bool jobq__output_is_pending(const jobq__output *out);
/* Writes what can be written at once. */
void jobq__output_flush(jobq__output *out, int64_t mono_ms);
/* The last try: waits a moment for a slow reader. */
void jobq__output_close(jobq__output *out);

#endif
