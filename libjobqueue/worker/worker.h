/* SPDX-License-Identifier: MIT
 *
 * Inside of a worker: what the files of worker/ share within one process.
 */
#ifndef JOBQ_WORKER_WORKER_H
#define JOBQ_WORKER_WORKER_H

#include <jobqueue/worker.h>
#include <sys/types.h>

#include <jobqueue/inspect.h>

#include "core/job.h"
#include "core/queue.h"
#include "worker/shared.h"

typedef struct {
    char *name; /* NUL-terminated */
    size_t name_n;
    int32_t version;
    jobq_conf *conf; /* scope handler */
} jobq__handler;

enum { JOBQ__SINK_OPTION, JOBQ__SINK_FD, JOBQ__SINK_LINE };

typedef struct {
    int kind, fd; /* OPTION: `output` says it; fd is our own copy */
    jobq_line_function line;
    void *payload;
    void (*destroy)(void *payload);
} jobq__sink;

/* loop.c: whether listeners of `looping` have been asked, and what they said. */
typedef struct {
    bool asks, tells; /* somebody listens to `looping`, to `idle` */
    bool fresh;       /* asked since the last job */
    bool vetoed;
    bool told; /* idle: since the last job */
    int64_t at_ms;
} jobq__loop;

struct jobq_worker {
    jobq_queue *queue;
    jobq_conf *conf;     /* constructor's options */
    jobq_conf *run_conf; /* with run()'s over them; what everybody reads */
    jobq__handler *handlers;
    size_t handler_count;
    bool has_resolver, runs_hooks; /* runs_hooks: the binding takes JOBQ_STEP_HOOK */
    uint32_t listened;             /* bit i: jobq_event_list(i) has a listener */
    jobq__loop loop;
    jobq_info *dead; /* child and inline: the dead job of the hook in hand */
    jobq_worker_hooks hooks;
    jobq__sink sink;
    bool sink_outvoted; /* this run's options have an output of their own */
    char **queues;      /* being served */
    size_t queue_count;
    jobq__shared shared; /* pool and inline alike (inline: words only) */
    int role;            /* JOBQ_ROLE_* once started, -1 before */
    uint32_t slot;       /* child: its own */
    jobq_job job;        /* child and inline: the one in hand */
    int64_t started_mono_ms;
    int64_t generation;        /* restarts asked for before it was made, -1 = not known (rule L2) */
    int64_t stamp;             /* process that made it */
    pid_t master_pid;          /* pool: whom children and dispatcher must not outlive */
    struct jobq__inline *inl;  /* inline.c */
    struct jobq__child *child; /* child.c */
    char *ready_file;          /* absolute, NULL = none */
    char stop_text[512];
    char id[JOBQ__WORKER_ID_SIZE]; /* known before the start; copied into the words */
};

/* worker.c */
/* index or -1 */
int jobq__worker_find_handler(const jobq_worker *worker, jobq_slice name, int32_t version);
/* The same for what comes from that queue: a hidden one's is for any version of the name. */
int jobq__worker_find_for(const jobq_worker *worker, jobq_slice queue, jobq_slice name,
                          int32_t version);
const jobq_conf *jobq__worker_handler_conf(const jobq_worker *worker, int index); /* NULL for -1 */
/* How many jobs of that handler (NULL: none is announced) may run in a child at once, all of them
 * of such handlers; 1 = it runs alone. The most of all announced ones. */
uint16_t jobq__handler_seats(const jobq_conf *conf);
uint32_t jobq__worker_seats(const jobq_worker *worker);
/* A failure whose class dont_retry names is the job's end. */
jobq_ending jobq__worker_ending(const jobq_worker *worker, const jobq_job *job, jobq_ending ending);
/* "NAME@VERSION\n" of every handler, and "QUEUE\n" of every queue, for the worker's record (rule
 * N4). */
void jobq__worker_names(const jobq_worker *worker, jobq__buf *out);
void jobq__worker_queues(const jobq_worker *worker, jobq__buf *out);
/* "ran 12 jobs": the words' reason as text. */
void jobq__worker_stop_text(const jobq__words *words, char *out, size_t size);

/* Options, queues and id for a run that begins now; frees what an earlier run left. */
int jobq__worker_prepare(jobq_worker *worker, const char *const *queues, size_t count,
                         const jobq_conf *over);

/* loop.c: JOBQ_STEP_EVENT with *event_out, or 0: there is nothing to be asked or told now */
void jobq__loop_listen(jobq_worker *worker, const char *event);
int jobq__loop_before_job(jobq_worker *worker, jobq_event *event, int64_t now_ms,
                          jobq_event **event_out);
int jobq__loop_by_time(jobq_worker *worker, jobq_event *event, int64_t now_ms,
                       jobq_event **event_out);
int jobq__loop_idle(jobq_worker *worker, jobq_event *event, jobq_event **event_out);
void jobq__loop_begun(jobq_worker *worker); /* a job has */
/* Not longer than until the next question. */
int64_t jobq__loop_wait_ms(const jobq_worker *worker, int64_t now_ms, int64_t wait_ms);

/* hook_step.c: the hook in hand becomes a step */
/* JOBQ_STEP_HOOK, or 0: its dead job cannot be read now, it was put back. */
int jobq__hook_open(jobq_worker *worker);
void jobq__hook_close(jobq_worker *worker); /* the step is over */

/* sink.c: outputs that are no option's text */
void jobq__sink_clear(jobq_worker *worker);
bool jobq__sink_in_force(const jobq_worker *worker);
int jobq__sink_check_pool(const jobq_worker *worker); /* JOBQ_ECONF: a function */

/* ready.c */
/* before a run; JOBQ_EINVAL: no such file can be made */
int jobq__ready_begin(jobq_worker *worker);
bool jobq__ready_set(jobq_worker *worker, bool ready); /* true: it was not so before */

/* master.c: runs the pool. Returns JOBQ_ROLE_CHILD in a fresh child, JOBQ_ROLE_MASTER when all is
 * over. */
int jobq__master_run(jobq_worker *worker, int *code_out);

/* dispatcher.c: what the first forked process does until everything is settled; never returns.
 * `again`: an earlier dispatcher died or hung, take over what it left. `relay`: two pipes to the
 * master (read, write end), for its lines and its errors; -1: it writes them itself. */
_Noreturn void jobq__dispatcher_main(jobq_worker *worker, bool again, const int relay[4]);

/* child.c */
void jobq__child_begin(jobq_worker *worker, uint32_t slot); /* right after the fork, in the child */
/* wait false: JOBQ_STEP_WAIT instead of sleeping */
int jobq__child_next(jobq_worker *worker, bool wait, jobq_job **job_out, jobq_event **event_out);
int jobq__child_fd(const jobq_worker *worker);
_Noreturn void jobq__child_finish(jobq_worker *worker);
void jobq__child_retire(jobq_worker *worker, const char *text, size_t n);

/* inline.c */
int jobq__inline_begin(jobq_worker *worker, bool silent);
int jobq__inline_next(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out);
int jobq__inline_finish(jobq_worker *worker);
void jobq__inline_fatal(jobq_worker *worker, const char *text, size_t n);
void jobq__inline_stop(jobq_worker *worker); /* the words say so already */

/* signals.c: the only file that calls sigaction. */
int jobq__signals_install(bool pool); /* remembers the old handlers */
void jobq__signals_restore(void);
/* in a child: no-ops and SIGURG */
void jobq__signals_child(void (*interrupt)(void *payload), void *payload);
/* Inline, after install: SIGURG (our timer's) and stop signals call it, until restore. */
void jobq__signals_inline(void (*interrupt)(void *payload), void *payload);
void jobq__signals_rearm(void);      /* before a job, in a child and inline */
void jobq__signals_dispatcher(void); /* in the dispatcher: ignores what is the master's */
int jobq__signals_fd(void);          /* readable when one came */
/* The next signal that came, 0 = none. */
int jobq__signals_next(void);
/* Inline: ends the wait for signals. From any thread. */
void jobq__signals_wake(void);

/* observe.c: what people see (rule G4). Formats lines, never blocks: see there. `at_wall_ms` local
 * time. */
typedef struct jobq__observer jobq__observer;
int jobq__observer_new(const jobq_worker *worker, jobq__observer **out);
void jobq__observer_free(jobq__observer *o);
void jobq__observer_tick(jobq__observer *o, int64_t mono_ms); /* summary lines, buffered output */
void jobq__observer_starting(jobq__observer *o);              /* "Worker ID watching ..." */
void jobq__observer_processing(jobq__observer *o, const jobq__handout *h);
/* After the store has answered. took_ms -1 = never ran. `fault` may be NULL; status: 0 or
 * JOBQ_ELEASE ... */
void jobq__observer_ended(jobq__observer *o, const jobq__handout *h, jobq_ending ending,
                          const jobq__verdict *verdict, int64_t took_ms, const jobq__fault *fault,
                          int status);
/* In the dispatcher: lines go to the master by these pipes (see dispatcher_main); and no longer, it
 * is dead. */
void jobq__observer_relay(jobq__observer *o, const int relay[4]);
void jobq__observer_unrelay(jobq__observer *o, const int relay[4]);
/* A queue is no longer served, or again (rule L1). */
void jobq__observer_paused(jobq__observer *o, bool paused, jobq_slice queue);
/* stderr: "error: ..." */
void jobq__observer_error(jobq__observer *o, const char *fmt, ...) JOBQ_PRINTF(2, 3);
void jobq__observer_note(jobq__observer *o, const char *fmt, ...) JOBQ_PRINTF(2, 3);
void jobq__observer_stopping(jobq__observer *o, const char *reason, int64_t jobs_run, int code);

/* events that travel to children (observe.c): encodes name and data behind a job message */
struct jobq_event {
    const char *name;
    jobq_job *job;
    jobq_slice queue; /* NUL-terminated; absent: none */
    jobq__arena arena;
    struct {
        const char *key, *text;
        double number;
        bool is_number;
    } data[8];
    size_t data_count;
};
void jobq__event_write(jobq__buf *out, const jobq__handout *h, jobq_ending ending,
                       const jobq__verdict *verdict, int64_t took_ms,
                       const jobq__fault *fault); /* data part only */
/* One datum: text NULL = the number. */
typedef struct {
    const char *key, *text;
    double number;
} jobq__datum;
void jobq__event_write_data(jobq__buf *out, const jobq__datum *data, size_t n);
bool jobq__event_read(jobq_event *event, const char *name, size_t name_n, const void *data,
                      size_t data_n);

#endif
