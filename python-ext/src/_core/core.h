/* SPDX-License-Identifier: MIT
 *
 * What the files of the module share: its state, its objects, and one function per job that more
 * than one file needs. Only error.c raises what the library reports; only guard.c calls handlers.
 * Everything is written against the limited API of Python 3.11.
 */
#ifndef JOBQUEUE_PYTHON_CORE_H
#define JOBQUEUE_PYTHON_CORE_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jobqueue/jobqueue.h>

/* Classes and objects of the Python files that C makes or asks for; the table in module.c says
 * where each comes from. */
typedef enum {
    CORE_QUEUE_ERROR,
    CORE_STORE_ERROR,
    CORE_OUTCOME_UNKNOWN,
    CORE_DUPLICATE_JOB,
    CORE_LEASE_LOST,
    CORE_PAYLOAD_ERROR,
    CORE_NOT_FOUND,
    CORE_QUEUE_FULL,
    CORE_GUARD_REFUSED,
    CORE_JOB_DEAD,
    CORE_WAIT_TIMEOUT,
    CORE_JOB_TIMEOUT,
    CORE_JOB_STOP,
    CORE_STATE,
    CORE_JOB_INFO,
    CORE_STATS,
    CORE_RECORD_FAULT, /* exception -> (class, message, where, trace) */
    CORE_LEAVE_FORK,   /* ends a process that a handler forked */
    CORE_DATETIME,
    CORE_TIMEDELTA,
    CORE_UTC,
    CORE_EPOCH,
    CORE_ENUM,
    CORE_GETSIGNAL,
    CORE_IMPORTS
} core_import;

typedef struct core_queue core_queue;

typedef struct {
    PyObject *imports[CORE_IMPORTS];
    PyTypeObject *queue_type, *worker_type, *job_type;
    core_queue *queues;  /* every one of the process */
    jobq_reader *reader; /* for decoding, which runs no user code */
    bool running;        /* a worker runs: one at a time in a process */
    /* The hand-out whose handler may be interrupted, how deep we are in its code, what was thrown
     * into it, and what to call instead of throwing (a task is cancelled through its loop). */
    jobq_job *job;
    core_queue *handle; /* inline: the handle that asking the job needs; borrowed */
    unsigned armed;
    int interrupt;
    PyObject *cancel;
} core_state;

core_state *core_state_of(PyObject *module);
core_state *core_state_of_type(PyTypeObject *type);
#define core_get(state, which) ((state)->imports[which])

/* ---- objects --------------------------------------------------------------------------------- */

struct core_queue {
    PyObject_HEAD core_state *state;
    PyObject *module; /* keeps the state */
    jobq_queue *queue;
    core_queue *next, **link;
    jobq_message *message;       /* kept for the next push, NULL while one is under way */
    PyThread_type_lock lock;     /* a handle is one thread's at a time */
    uint64_t generation;         /* in which the lock was made */
    _Atomic unsigned long owner; /* the thread that holds it, 0: none ... */
    unsigned depth;       /* ... and how often: lines come to `output` from inside of a call */
    jobq_worker *sleeper; /* an inline worker that waits parted from it, to be woken after use */
    PyObject *on_pushed;  /* callable (id, name), or NULL */
    PyObject *places;     /* last ids of pages given out -> the store's cursors, or NULL */
};

typedef struct {
    PyObject_HEAD core_state *state;
    PyObject *module;
    jobq_worker *worker;
    /* Outlives the worker: a twin of the application's, so that whatever threads do with that does
     * not meet us. The memory store has no twins: there it is the application's own. */
    core_queue *queue;
    core_queue *given;     /* the application's */
    PyThreadState *parted; /* while the pool's master runs without the interpreter's lock */
    PyObject *line;        /* output callable, or NULL */
    PyObject *job;         /* the Job of the last step, or NULL */
    bool in_pool;          /* this is a child of one */
    bool starting;         /* what others ask the worker is being made anew ... */
    bool stop_wanted;      /* ... and stop() was called meanwhile */
    bool finishing;        /* what stop() would touch is being freed */
} core_worker;

/* HANDLER: settled by the loop when the handler has ended. RESERVED: settles at once. EVENT: only
 * to look at. */
typedef enum { CORE_HANDLER, CORE_RESERVED, CORE_EVENT } core_job_kind;

enum { CORE_JOB_NUMBERS = 8 };

typedef struct {
    PyObject_HEAD core_state *state;
    PyObject *module;
    jobq_job *job; /* NULL once it has ended */
    core_job_kind kind;
    bool decided;  /* release, fail or delete was called */
    bool lost;     /* RESERVED: the store has refused its token */
    bool locks;    /* its calls go to the store: RESERVED, or HANDLER of an inline worker */
    bool reached;  /* HANDLER: it may have used the queue's handle, see settle() in run.c */
    bool together; /* HANDLER: others run beside it, see core_worker_let_go */
    int interrupt; /* together: what it is to end for */
    jobq_ending decision;
    int64_t delay_ms, enqueued_at_ms;
    int64_t numbers[CORE_JOB_NUMBERS];
    PyObject *id, *name, *queue_name, *payload, *context;
    PyObject *defers;  /* list of callables, or NULL */
    core_queue *queue; /* whose handle it lives on */
} core_job;

/* Raises in a process where the constructor was not called. */
bool core_queue_is_made(core_queue *queue);
/* Between them the handle is this thread's; others wait without the interpreter's lock. */
bool core_queue_enter(core_queue *queue);
void core_queue_leave(core_queue *queue);
/* Inside of a call: gives it to other threads, who wake `sleeper` when they have used it, and takes
 * it back. */
void core_queue_part(core_queue *queue, jobq_worker *sleeper);
void core_queue_rejoin(core_queue *queue);
/* Another handle of the same store; NULL: raised (memory has none). */
core_queue *core_queue_make_twin(core_queue *queue);
/* Closes the connections of every Queue (they open again on next use): none may be open across a
 * fork. */
void core_queues_disconnect(core_state *state);

/* Runs one call of the library without the interpreter's lock, the handle locked. */
#define CORE_CALL(queue, result, call)                    \
    do {                                                  \
        if (core_queue_enter(queue)) {                    \
            Py_BEGIN_ALLOW_THREADS result = (call);       \
            Py_END_ALLOW_THREADS core_queue_leave(queue); \
        }                                                 \
    } while (0)

/* The same for a call of a held job; `always`: also where it `locks` not by itself. Raises when the
 * job has ended meanwhile. */
#define CORE_JOB_CALL(job, always, result, call)                              \
    do {                                                                      \
        const bool locked_ = (always) || (job)->locks;                        \
        if (core_job_enter(job, locked_)) {                                   \
            Py_BEGIN_ALLOW_THREADS result = (call);                           \
            Py_END_ALLOW_THREADS if (locked_) core_queue_leave((job)->queue); \
        }                                                                     \
    } while (0)

PyTypeObject *core_queue_type(PyObject *module);
PyTypeObject *core_worker_type(PyObject *module);
PyTypeObject *core_job_type(PyObject *module);

/* Takes over the payload. The job is borrowed (HANDLER, EVENT) or the object's own (RESERVED). */
PyObject *core_job_make(core_queue *queue, jobq_job *job, core_job_kind kind, PyObject *payload);
/* Cuts the object off from a job that has ended. */
void core_job_detach(core_job *job);
PyObject *core_info_make(core_state *state, const jobq_info *info);
PyObject *core_state_make(core_state *state, jobq_state value);

/* ---- error.c --------------------------------------------------------------------------------- */

/* The error as an exception object, NULL with one raised; err NULL = the last one. Usage errors
 * become ValueError. */
PyObject *core_error_make(core_state *state, const jobq_error *err);
/* Each raises and returns NULL. */
PyObject *core_raise_last(core_state *state);
PyObject *core_raise_usage(const char *fmt, ...);
PyObject *core_raise_type(const char *fmt, ...);
PyObject *core_raise_logic(const char *fmt, ...);
PyObject *core_raise_payload(core_state *state, PyObject *path, PyObject *message);
PyObject *core_raise_not_found(core_state *state, PyObject *ids, PyObject *message);
PyObject *core_raise_interrupt(core_state *state, int kind, jobq_job *job);
PyObject *core_raise_lease_lost(core_state *state);
PyObject *core_raise_cancelled(core_state *state);
/* The raised exception of one item among many.
 * NULL: it is none that may be kept (KeyboardInterrupt, MemoryError) and is still raised. */
PyObject *core_error_take(void);
/* The raised exception with its traceback; nothing is raised any more. */
PyObject *core_exception_take(void);

/* ---- conf.c ---------------------------------------------------------------------------------- */

/* Each raises and returns false on a value or name that is not allowed. None sets nothing. */
bool core_conf_set(core_state *state, jobq_conf *conf, const char *name, PyObject *value);
bool core_conf_named(core_state *state, jobq_conf *conf, PyObject *name, PyObject *value);
bool core_conf_all(core_state *state, jobq_conf *conf, PyObject *options);
/* judge(name, {option: value} of push, {option: value} of handlers): raises what is wrong. */
PyObject *core_judge(PyObject *module, PyObject *args);
/* A number or timedelta to milliseconds: not negative, not NaN. */
bool core_seconds(PyObject *value, const char *what, int64_t *ms_out);
/* Raises TypeError, "name: WHAT, TYPE given", and returns false: for every argument of a wrong
 * type, so that they all say which one and what is allowed. */
bool core_refuse_type(const char *name, PyObject *value, const char *what);
/* refuse_type(name, value, what): the same for our Python code. */
PyObject *core_refuse_argument(PyObject *module, PyObject *args);
/* For "O&": each knows the name of its argument. A flag is True or False and nothing that is merely
 * true, such as "no". */
typedef struct {
    const char *name;
    bool is;
} core_flag;
int core_flag_read(PyObject *value, void *flag);
/* Text as core_text; None leaves it NULL when it is optional. */
typedef struct {
    const char *name;
    bool optional;
    const char *p;
    size_t n;
} core_word;
int core_word_read(PyObject *value, void *word);
typedef struct {
    const char *name;
    long long is;
} core_whole;
int core_whole_read(PyObject *value, void *whole);
/* Text without NUL bytes, borrowed from the object. */
const char *core_text(PyObject *value, const char *what);

typedef struct {
    const char **names;
    PyObject *list; /* owns the strings */
    size_t count;
} core_names;
/* "high,default" or an iterable of strings; NULL = none. */
bool core_names_read(core_names *names, PyObject *value, const char *what);
void core_names_free(core_names *names);

/* ---- statement.c ----------------------------------------------------------------------------- */

/* A statement of the application's; texts are those of the objects it holds. */
typedef struct {
    jobq_statement statement;
    jobq_param *params;
    PyObject *text, *values;
} core_statement;
/* "SQL", or [SQL or script, parameters]. False: raised, and nothing to free. */
bool core_statement_read(core_statement *out, PyObject *value, const char *what);
void core_statement_free(core_statement *statement);
PyObject *core_param_make(const jobq_param *param);
/* (text, (parameter, ...)) */
PyObject *core_statement_make(const jobq_statement *statement);
/* JOBQ_PLACEHOLDER_*, -1: raised. */
int core_paramstyle(PyObject *style, const char *driver);

/* ---- message.c ------------------------------------------------------------------------------- */

/* `parameters`: the options hold name and payload, too, which are passed over. */
bool core_message_fill(core_state *state, jobq_message *m, PyObject *name, PyObject *payload,
                       PyObject *options, bool parameters);

/* ---- value_write.c, value_read.c ------------------------------------------------------------- */

/* Raises PayloadError with the path of what cannot be queued, which begins with `root`. */
bool core_encode(core_state *state, jobq_writer *w, PyObject *value, const char *root);
/* NULL: raised; *problem_out (may be NULL) then says whether the body is unreadable. */
PyObject *core_decode(core_state *state, int format, const void *p, size_t n, bool *problem_out);
/* Whole seconds since 1970 and microseconds; false: raised (naive, or out of reach). */
bool core_time_read(core_state *state, PyObject *value, int64_t *seconds_out,
                    uint32_t *microseconds_out);
bool core_is_datetime(core_state *state, PyObject *value);
PyObject *core_time_make(core_state *state, int64_t seconds, uint32_t microseconds);
PyObject *core_time_from_ms(core_state *state, int64_t ms); /* 0 = None */

/* ---- look.c, push.c, dead.c, health.c, control.c: methods of Queue --------------------------- */

PyObject *core_queue_reserve(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_stats(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_all_stats(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_queues(core_queue *self, PyObject *unused);
PyObject *core_queue_counters(core_queue *self, PyObject *unused);
PyObject *core_queue_wait(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_capacity(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_find(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_push(core_queue *self, PyObject *args, PyObject *options);
PyObject *core_queue_push_statement(core_queue *self, PyObject *args, PyObject *options);
PyObject *core_queue_push_chunk(core_queue *self, PyObject *items);
PyObject *core_queue_jobs(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_dead(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_retry(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_forget(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_pause(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_resume(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_restart_workers(core_queue *self, PyObject *unused);
PyObject *core_queue_generation(core_queue *self, PyObject *unused);
PyObject *core_queue_cancel(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_clear(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_prune(core_queue *self, PyObject *args, PyObject *named);
PyObject *core_queue_workers(core_queue *self, PyObject *unused);
PyObject *core_queue_doctor(core_queue *self, PyObject *args, PyObject *named);

/* ---- job_end.c, job_work.c: methods of Job --------------------------------------------------- */

/* NULL with RuntimeError raised when it has ended. */
core_job *core_job_living(core_job *self);
/* The handle is this thread's when `locked`, and the job still there. */
bool core_job_enter(core_job *self, bool locked);
PyObject *core_job_release(core_job *self, PyObject *args, PyObject *named);
PyObject *core_job_set_error(core_job *self, PyObject *error);
PyObject *core_job_fail(core_job *self, PyObject *args, PyObject *named);
PyObject *core_job_delete(core_job *self, PyObject *unused);
PyObject *core_job_done(core_job *self, PyObject *args, PyObject *named);
PyObject *core_job_retry(core_job *self, PyObject *args, PyObject *named);
PyObject *core_job_progress(core_job *self, PyObject *args, PyObject *named);
PyObject *core_job_effect(core_job *self, PyObject *statement);
PyObject *core_job_done_statement(core_job *self, PyObject *args, PyObject *named);
PyObject *core_job_fingerprint(core_job *self, PyObject *unused);
PyObject *core_job_take_result(core_job *self, PyObject *value);
/* Of a job that is kept; raises when it cannot be. */
bool core_job_keep_result(core_job *self, PyObject *value);

/* ---- guard.c --------------------------------------------------------------------------------- */

/* Counts forks of this process: an object can tell that it has come through one. */
void core_fork_startup(void);
uint64_t core_fork_generation(void);
/* 0, or -1 with JobTimeout or JobStop raised when the running job is to end. */
int core_interrupt_take(core_state *state);
PyObject *core_interrupt(PyObject *module, PyObject *args);
PyObject *core_interrupt_handler(PyObject *module, PyObject *unused);
PyObject *core_guard_call(core_worker *self, PyObject *args);
PyObject *core_guard_cancel(core_worker *self, PyObject *callable);

/* ---- run.c: methods of Worker ---------------------------------------------------------------- */

bool core_run_hooks(core_worker *self);
PyObject *core_worker_start(core_worker *self, PyObject *args);
PyObject *core_worker_next(core_worker *self, PyObject *unused);
PyObject *core_worker_poll(core_worker *self, PyObject *unused);
PyObject *core_worker_fd(core_worker *self, PyObject *unused);
PyObject *core_worker_let_go(core_worker *self, PyObject *unused);
PyObject *core_worker_settle_job(core_worker *self, PyObject *args);
PyObject *core_worker_interrupted_job(core_worker *self, PyObject *job);
PyObject *core_worker_settle(core_worker *self, PyObject *args);
PyObject *core_worker_finish(core_worker *self, PyObject *unused);
PyObject *core_worker_output(core_worker *self, PyObject *value);

/* ---- the rest -------------------------------------------------------------------------------- */

/* Tells a dict item from C texts; NULL = None. */
bool core_add_text(PyObject *dict, const char *key, const char *text);
bool core_add(PyObject *dict, const char *key, PyObject *value); /* steals, NULL: raised */
PyObject *core_text_or_none(const char *text);
/* The pairs of a context as a dict. */
typedef bool (*core_pair)(const void *of, size_t i, const char **key, size_t *key_n,
                          const char **value, size_t *value_n);
PyObject *core_context(core_pair next, const void *of);
typedef int64_t (*core_counter)(const void *of, size_t i, const char **name);
PyObject *core_counters(core_counter next, const void *of);
PyObject *core_console(PyObject *module, PyObject *args);
PyObject *core_console_reloads(PyObject *module, PyObject *unused);
PyObject *core_console_loaded(PyObject *module, PyObject *path);

/* What `over` travels in from the console to Worker.start. */
#define CORE_CONF_CAPSULE "jobqueue.conf"

#endif
