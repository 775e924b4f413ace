/* SPDX-License-Identifier: MIT
 *
 * Inside of an observer: observe.c decides what is said and where it goes, observe_text.c and
 * observe_json.c word it. The functions for everybody else stand in worker/worker.h.
 */
#ifndef JOBQ_WORKER_OBSERVE_H
#define JOBQ_WORKER_OBSERVE_H

#include "worker/output.h"
#include "worker/worker.h"

enum {
    JOBQ__OBSERVE_AUTO,
    JOBQ__OBSERVE_JOBS,
    JOBQ__OBSERVE_SUMMARY,
    JOBQ__OBSERVE_JSON,
    JOBQ__OBSERVE_QUIET
};

/* An attempt's end, after the store has answered. */
typedef struct {
    const char *verb, *word; /* for people, for JSON */
    const jobq__handout *handout;
    jobq_ending ending;
    const jobq__verdict *verdict;
    int64_t took_ms; /* -1 = never ran */
    const jobq__fault *fault;
    int status;
} jobq__end_seen;

/* A way to word things; each function fills o->line, without the line's end. */
typedef struct {
    void (*starting)(jobq__observer *o);
    void (*processing)(jobq__observer *o, const jobq__handout *h);
    void (*ended)(jobq__observer *o, const jobq__end_seen *end);
    void (*note)(jobq__observer *o, const char *text);
    void (*paused)(jobq__observer *o, bool paused, jobq_slice queue);
    void (*stopping)(jobq__observer *o, const char *reason, int64_t jobs_run, int code);
} jobq__form;

extern const jobq__form jobq__form_text, jobq__form_json;

struct jobq__observer {
    const jobq_worker *worker;
    int mode;
    const jobq__form *form;
    /* the worker's lines; errors and children's stderr; children's stdout. Where two of them are
     * the same file, the pointers below go to the first. */
    jobq__output out, err, pass;
    jobq__output *err_to, *pass_to;
    /* dispatcher: out and err lead to the master; these are where they go without it */
    jobq__output direct_out, direct_err;
    bool relayed;
    jobq__buf line;
    /* local time, formatted once a second */
    int64_t stamp_second;
    char stamp[32];
    /* this second: jobs that ended without a failure, and those of them that got no line */
    int64_t window_ms, window_jobs, summed, summed_released;
    bool busy;
};

/* observe_text.c */
void jobq__text_stamp(jobq__observer *o); /* adds it to the line */
/* At most that many bytes, control characters blanked. */
void jobq__text_shown(jobq__buf *line, const char *p, size_t n, size_t most);
enum { JOBQ__NAME_SHOWN = 128, JOBQ__MESSAGE_SHOWN = 1000 };

/* observe_json.c: a child's line as an object; "so many lines were dropped" with its end. */
void jobq__json_output(jobq__observer *o, pid_t child, const char *p, size_t n);
void jobq__json_dropped(void *observer, jobq__buf *line, int64_t dropped);

/* observe.c, for the master's collector */
jobq__output *jobq__observer_own(jobq__observer *o, bool err);
jobq__output *jobq__observer_children(jobq__observer *o, bool err);
/* Children's standard output is made part of the JSON lines. */
bool jobq__observer_wraps(const jobq__observer *o);
void jobq__observer_flush(jobq__observer *o, int64_t mono_ms);

#endif
