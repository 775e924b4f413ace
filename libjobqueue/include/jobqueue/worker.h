/* SPDX-License-Identifier: MIT
 *
 * The worker: master, dispatcher and forked children (or everything inline), and the step API by
 * which a language binding runs its handlers. See doc/architecture.md for the three kinds of
 * process.
 *
 *     role = jobq_worker_start(worker, queues, n, NULL, &code);
 *     if (role == JOBQ_ROLE_MASTER) return code;             // the pool has ended
 *     while ((step = jobq_worker_next(worker, &job, &event)) > 0) {
 *         if (step == JOBQ_STEP_JOB) { run the handler; jobq_job_settle(job, ...); }
 *         else if (step == JOBQ_STEP_HOOK) { run the failed hook; jobq_job_settle(job, ...); }
 *         else { call the event's listeners }
 *     }
 *     return jobq_worker_finish(worker);                       // a child never returns from this
 */
#ifndef JOBQUEUE_WORKER_H
#define JOBQUEUE_WORKER_H

#include <jobqueue/events.h>
#include <jobqueue/inspect.h>
#include <jobqueue/queue.h>

JOBQ_BEGIN_DECLS

typedef struct jobq_worker jobq_worker;

/* conf: scope worker, may be NULL, copied. The queue must outlive the worker. Asks the store how
 * many restarts were asked for so far (jobq_queue_generation): a later one ends the worker. If it
 * cannot be asked that is no error; the run asks when it begins. @since 0.1 */
JOBQ_API int jobq_worker_new(jobq_queue *queue, const jobq_conf *conf, jobq_worker **worker_out);
JOBQ_API void jobq_worker_free(jobq_worker *worker);

/* That number as it was read earlier, before the application's code was loaded: a restart since
 * then ends the worker, too. -1: ask when the run begins. @since 0.1 */
JOBQ_API void jobq_worker_set_generation(jobq_worker *worker, int64_t generation);

/* Announces a handler. conf: scope handler, may be NULL, copied. Registering a name+version twice
 * or after the start is JOBQ_EINVAL. */
JOBQ_API int jobq_worker_handle(jobq_worker *worker, const char *name, size_t n, int version,
                                const jobq_conf *conf);
/* Names that were not announced go to the binding too (which asks its resolver). */
JOBQ_API void jobq_worker_set_resolver(jobq_worker *worker, bool has_resolver);
/* Index of the announced handler for a job, -1 when there is none; in the order of
 * jobq_worker_handle. For a failed hook (JOBQ_STEP_HOOK) another version of the name will do. */
JOBQ_API int jobq_worker_find(const jobq_worker *worker, const jobq_job *job);
/* The i-th class name in force for `dont_retry` (handler over worker), NULL past the end; and
 * whether the handler wants maps as objects. A failure whose class has exactly such a name is not
 * retried; a binding that knows what its classes extend looks itself. */
JOBQ_API const char *jobq_worker_dont_retry(const jobq_worker *worker, const jobq_job *job,
                                            size_t i);
JOBQ_API bool jobq_worker_maps_as_objects(const jobq_worker *worker, const jobq_job *job);
/* Failed hooks of dead jobs go to the binding as steps of their own (JOBQ_STEP_HOOK). Without this
 * call they are ended by the worker: it runs none. Before the start. @since 0.1 */
JOBQ_API void jobq_worker_set_failed(jobq_worker *worker, bool runs_hooks);
/* Events a listener exists for are delivered to children (job.retrying, job.crashed, ...). */
JOBQ_API int jobq_worker_listen(jobq_worker *worker, const char *event);
/* In answer to the event `looping`, before the next step: this process begins no job until it is
 * asked again. What it holds unstarted goes back to the store within a second; when every process
 * says so the queues count as empty for `stop_when_empty`. Elsewhere without effect. @since 0.1 */
JOBQ_API void jobq_worker_veto(jobq_worker *worker);

/* What a binding must do around forks and interrupts. All but size may be NULL. */
typedef struct {
    size_t size; /* sizeof(jobq_worker_hooks) */
    void *payload;
    void (*before_fork)(void *payload); /* in the master: flush buffers */
    void (*after_fork_parent)(void *payload);
    void (*after_fork_child)(void *payload); /* in a child, not in the dispatcher */
    /* In a signal handler: async-signal-safe, sets a flag at most. */
    void (*interrupt)(void *payload);
    /* Around waits in which the queue's handle is not touched: release and take its lock. On the
     * memory store those are all of an idle inline worker's. */
    void (*idle_enter)(void *payload);
    void (*idle_leave)(void *payload);
} jobq_worker_hooks;
JOBQ_API int jobq_worker_set_hooks(jobq_worker *worker, const jobq_worker_hooks *hooks);

/* Where the worker's lines go, as with `output` = jobs; an `output` in start's `over` outvotes it.
 * Not while the worker runs (JOBQ_EINVAL). The descriptor is copied and stays the caller's; pool
 * and inline write to it without waiting. JOBQ_EINVAL: it is not open for writing. -1: back to
 * what the options say. @since 0.1 */
JOBQ_API int jobq_worker_set_output_fd(jobq_worker *worker, int fd);
/* One line without its end, not NUL-terminated, borrowed; inside of jobq_worker_start, next,
 * finish, fatal and free. It may stop the worker, and must not jump out. */
typedef void (*jobq_line_function)(void *payload, const char *text, size_t n);
/* The same with a function, inline only: a start with processes > 0 is JOBQ_ECONF. `destroy` (may
 * be NULL) is called once with the payload: when another output is set, when the worker is freed,
 * or at once when this fails. @since 0.1 */
JOBQ_API int jobq_worker_set_output_line(jobq_worker *worker, jobq_line_function line,
                                         void *payload, void (*destroy)(void *payload));

enum { JOBQ_ROLE_MASTER = 0, JOBQ_ROLE_CHILD = 1, JOBQ_ROLE_INLINE = 2 };
enum {
    JOBQ_STEP_STOP = 0,
    JOBQ_STEP_JOB = 1,
    JOBQ_STEP_EVENT = 2,
    JOBQ_STEP_HOOK = 3,
    JOBQ_STEP_WAIT = 4 /* jobq_worker_poll only: nothing to do now */
};

/* Starts the worker on the queues (count 0: the connection's default). `over` (scope worker, may be
 * NULL) goes over the constructor's options. MASTER: the whole pool has come and gone, *code_out is
 * the exit code. CHILD: this is a freshly forked child. INLINE: processes = 0. Negative: nothing
 * was started; with processes > 0 JOBQ_EUNSUPPORTED while the process still has the SQLite file
 * open elsewhere. */
JOBQ_API int jobq_worker_start(jobq_worker *worker, const char *const *queues, size_t count,
                               const jobq_conf *over, int *code_out);
/* The next thing to do; waits. STOP: leave the loop. */
JOBQ_API int jobq_worker_next(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out);
/* The same without waiting. In a child it may be called while jobs of handlers with the option
 * async_concurrency above 1 are not settled yet, and gives out as many of them as it allows, each
 * to be settled by itself, in any order, from this thread; a job of another handler, or a hook,
 * comes only when all are settled. STOP with jobs in hand: no more will come; settle them, then
 * finish.
 * Inline it waits like jobq_worker_next and gives one job at a time. @since 0.1 */
JOBQ_API int jobq_worker_poll(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out);
/* After JOBQ_STEP_WAIT: a descriptor that becomes readable when jobq_worker_poll is worth a call;
 * that call empties it. Call once a second without it, too. Borrowed; -1: there is none (no handler
 * with async_concurrency, not in a child, closed by a handler). @since 0.1 */
JOBQ_API int jobq_worker_fd(const jobq_worker *worker);
/* After JOBQ_STEP_HOOK: the dead job whose failed hook is to be run, as it lies in the store; when
 * it has been put back or removed since, as it was then (a removed one without its payload:
 * jobq_info_check says so). The step's job is the hook's own hand-out: its name, queue and time
 * limit are the dead job's, it is settled like any other, its failures are the hook's (three tries)
 * and it counts nowhere. Borrowed until the next step; NULL otherwise. @since 0.1 */
JOBQ_API const jobq_info *jobq_worker_dead(const jobq_worker *worker);
/* Inline: settles what is left, prints the last lines, returns the exit code. Child: _exit, never
 * returns. */
JOBQ_API int jobq_worker_finish(jobq_worker *worker);
/* At most one job, inline and silent: like start(INLINE) with `once`; then jobq_worker_next /
 * finish. */
JOBQ_API int jobq_worker_start_one(jobq_worker *worker, const char *const *queues, size_t count);

/* A child that must not run another job (fatal error, exit(), failed cleanup): after the next
 * settle it is replaced. `text` (may be NULL) is what is known; copied into the slot without
 * allocating. */
JOBQ_API void jobq_worker_retire(jobq_worker *worker, const char *text, size_t n);
/* A fatal error ends this process: the text goes into the record of the crash of the running job.
 * Inline jobs are settled as crashed at once. */
JOBQ_API void jobq_worker_fatal(jobq_worker *worker, const char *text, size_t n);

/* For the whole worker, from any of its processes, also inside a handler. From another thread:
 * once start has returned (a pool's, which does not: once it is ready) and before finish is
 * called. */
JOBQ_API void jobq_worker_stop(jobq_worker *worker);
/* Inline: ends the wait it may be in, so that it looks at the store again. For another thread that
 * has used the handle of the memory store between idle_enter and idle_leave. @since 0.1 */
JOBQ_API void jobq_worker_wake(jobq_worker *worker);
JOBQ_API bool jobq_worker_ready(const jobq_worker *worker);
/* "host:pid:random", at most 64 characters. */
JOBQ_API const char *jobq_worker_id(const jobq_worker *worker);
/* The counters of jobq_queue_counter, the whole worker's beside the queue handle's in this process;
 * *name_out NULL past the end. */
JOBQ_API int64_t jobq_worker_counter(const jobq_worker *worker, size_t i, const char **name_out);
/* Why and how the pool ended, for worker.stopping: after start returned MASTER or finish
 * returned. */
JOBQ_API const char *jobq_worker_stop_reason(const jobq_worker *worker);
JOBQ_API int64_t jobq_worker_jobs_run(const jobq_worker *worker);

/* A short loop over the step API for C programs. The handler returns an ending (>= 0; RELEASED:
 * back at once) or a negative code (= failed, with jobq_error_last as the error); a job it has
 * settled itself is left alone. Returns the exit code, or the negative code of a start that failed;
 * in children it does not return. */
typedef int (*jobq_handler)(jobq_job *job, void *payload);
JOBQ_API int jobq_worker_run(jobq_worker *worker, const char *const *queues, size_t count,
                             jobq_handler handler, void *payload);

JOBQ_END_DECLS
#endif
