/* SPDX-License-Identifier: MIT
 *
 * Looking at jobs without taking them, and mending dead ones. Everything here is bounded: pages,
 * never whole queues.
 */
#ifndef JOBQUEUE_INSPECT_H
#define JOBQUEUE_INSPECT_H

#include <jobqueue/queue.h>

JOBQ_BEGIN_DECLS

typedef enum {
    JOBQ_READY,
    JOBQ_DELAYED,
    JOBQ_RESERVED,
    JOBQ_DONE,
    JOBQ_DEAD,
    JOBQ_STATES
} jobq_state;
JOBQ_API const char *jobq_state_word(jobq_state state); /* "ready" */
/* JOBQ_EINVAL names the five */
JOBQ_API int jobq_state_parse(const char *word, jobq_state *state_out);

/* ---- one job as it stands -------------------------------------------------------------------- */

typedef struct jobq_info jobq_info;

typedef enum {
    JOBQ_INFO_ID,
    JOBQ_INFO_NAME,
    JOBQ_INFO_QUEUE,
    JOBQ_INFO_RESERVED_BY,
    JOBQ_INFO_REASON,
    JOBQ_INFO_UNIQUE
} jobq_info_text_field;
typedef enum {
    JOBQ_INFO_STATE,
    JOBQ_INFO_VERSION,
    JOBQ_INFO_PRIORITY,
    JOBQ_INFO_ATTEMPT,
    JOBQ_INFO_DELIVERIES,
    JOBQ_INFO_FAILURES,
    JOBQ_INFO_CRASHES,
    JOBQ_INFO_RELEASES,
    JOBQ_INFO_LOSSES,
    JOBQ_INFO_FENCE,
    JOBQ_INFO_ENQUEUED_AT_MS,
    JOBQ_INFO_AVAILABLE_AT_MS,
    JOBQ_INFO_RESERVED_UNTIL_MS,
    JOBQ_INFO_DIED_AT_MS,
    JOBQ_INFO_KEPT_UNTIL_MS, /* done and dead: when it is collected, 0 = never */
    JOBQ_INFO_PUT_ASIDE,     /* 1: workers that took it had no handler for its name and version */
    JOBQ_INFO_CANCEL /* 1: it has been told to end (rule L3), 2: by force; 0 when it has ended */
} jobq_info_number_field;

/* NULL when the job has none. Numbers: 0 when there is none. n_out and format_out may be NULL. */
JOBQ_API const char *jobq_info_text(const jobq_info *info, jobq_info_text_field which,
                                    size_t *n_out);
JOBQ_API int64_t jobq_info_number(const jobq_info *info, jobq_info_number_field which);
JOBQ_API const void *jobq_info_body(const jobq_info *info, size_t *n_out, int *format_out);
JOBQ_API bool jobq_info_context(const jobq_info *info, size_t i, const char **key, size_t *key_n,
                                const char **value, size_t *value_n);
/* The i-th option that was given at push, as text ("tries", "5"); false past the end. */
JOBQ_API bool jobq_info_option(const jobq_info *info, size_t i, const char **name,
                               const char **value);
/* The last error: class, message, where (file:line), trace; false when there is none. Any pointer
 * may be NULL. */
JOBQ_API bool jobq_info_error(const jobq_info *info, const char **class_name, const char **message,
                              const char **where, const char **trace);
/* The i-th attempt kept (oldest first, at most 10); false past the end. Any pointer may be NULL. */
JOBQ_API bool jobq_info_attempt(const jobq_info *info, size_t i, int64_t *started_at_ms,
                                int64_t *ended_at_ms, const char **worker, const char **outcome,
                                const char **class_name, const char **message);
/* Did other jobs run in the same process when the i-th attempt crashed? One of them may be to
 * blame. @since 0.1 */
JOBQ_API bool jobq_info_attempt_shared(const jobq_info *info, size_t i);
/* How far it said to be (rule N7); false: it never did. note may be NULL and may become NULL.
 * @since 0.1 */
JOBQ_API bool jobq_info_progress(const jobq_info *info, double *percent_out, const char **note_out);
/* The result of a job that is done and kept; NULL: none. A result that could not be kept: NULL, and
 * *refusal_out (may be NULL) says why. @since 0.1 */
JOBQ_API const void *jobq_info_result(const jobq_info *info, size_t *n_out, int *format_out,
                                      const char **refusal_out);
/* 0 or JOBQ_EPAYLOAD (unreadable header or body: text in jobq_error_last). */
JOBQ_API int jobq_info_check(const jobq_info *info);
JOBQ_API void jobq_info_free(jobq_info *info);

/* 0, or JOBQ_ENOTFOUND. Searches every queue of the store. @since 0.1 */
JOBQ_API int jobq_queue_find(jobq_queue *queue, const char *id, size_t n, jobq_info **info_out);

/* Waits until that job has ended, woken by the store where it can (rule N7). 0: it is done,
 * *info_out has it with its result; JOBQ_EDEAD: it is dead, *info_out has it, too;
 * JOBQ_EPENDING: timeout_ms are over (0 = look once); JOBQ_ENOTFOUND: there is no such job, or
 * it ended and was not kept (push it with `track`). The store's clock and a signal (JOBQ_EINTR)
 * end it as ever. @since 0.1 */
JOBQ_API int jobq_queue_wait(jobq_queue *queue, const char *id, size_t n, int64_t timeout_ms,
                             jobq_info **info_out);

/* ---- lists ----------------------------------------------------------------------------------- */

typedef struct jobq_list jobq_list; /* a page of jobq_info */
JOBQ_API size_t jobq_list_count(const jobq_list *list);
JOBQ_API const jobq_info *jobq_list_get(const jobq_list *list, size_t i); /* borrowed */
JOBQ_API jobq_info *jobq_list_take(jobq_list *list, size_t i); /* the caller's from now on */
/* Give this as `after` for the next page; NULL on the last one. */
JOBQ_API const char *jobq_list_next(const jobq_list *list);
/* The place behind the page's last job, to be given as `after` even when that job has left the list
 * or jobs came behind it meanwhile; NULL: the page is empty. @since 0.1 */
JOBQ_API const char *jobq_list_last(const jobq_list *list);
JOBQ_API void jobq_list_free(jobq_list *list);

/* Jobs of one queue in one state, in the order they will run (dead: newest first); limit 1-1000. */
JOBQ_API int jobq_queue_jobs(jobq_queue *queue, const char *name, size_t n, jobq_state state,
                             size_t limit, const char *after, jobq_list **list_out);

/* Which dead jobs: NULL / 0 = any. Zero-initialise, then set size. */
typedef struct {
    size_t size; /* sizeof(jobq_filter) */
    const char *queue, *name, *reason;
    int64_t older_than_ms; /* died at least so long ago */
} jobq_filter;

/* Newest first; filter NULL = any, limit 1-1000. Never fails on a bad body. */
JOBQ_API int jobq_queue_dead(jobq_queue *queue, const jobq_filter *filter, size_t limit,
                             const char *after, jobq_list **list_out);

/* What to do with dead jobs. Each job is one atomic step; waiting and running ones are never
 * touched. */
enum { JOBQ_DEAD_RETRY, JOBQ_DEAD_FORGET };
/* By ids: results[i] = 0 done, JOBQ_ENOTFOUND (no dead job of that id), JOBQ_EEXISTS (its unique
 * key is held), JOBQ_ELIMIT (retry: its dead_retention is over); may be NULL. An id given twice
 * is one job: its answer stands at its first place, 0 at the others. Returns the number done.
 * dry_run: says what would be done. */
JOBQ_API int64_t jobq_queue_mend_ids(jobq_queue *queue, int what, const char *const *ids, size_t n,
                                     bool dry_run, int *results);
/* By filter, in bounded pages. `skipped_out` (may be NULL) counts those whose unique key is held
 * or whose retention is over. progress (may be NULL) is called after each page; returning
 * non-zero stops (JOBQ_ECALLBACK). Returns the number done. filter NULL = any. */
JOBQ_API int64_t jobq_queue_mend(jobq_queue *queue, int what, const jobq_filter *filter,
                                 bool dry_run, int64_t *skipped_out,
                                 int (*progress)(void *payload, int64_t done), void *payload);

/* Who holds the unique key of that dead job: the id into holder_out (129 bytes), "" when nobody
 * does or when it is not among the first 100,000 jobs of the queue that were looked at. For
 * messages: a moment later it may be another. @since 0.1 */
JOBQ_API int jobq_queue_key_holder(jobq_queue *queue, const char *id, size_t n, char *holder_out);

/* Removes what was only kept: finished jobs whose time (keep_done) is over, and the dead jobs that
 * the filter fits (NULL: none of them), in bounded pages. Workers collect the finished ones, too;
 * here it is done at once. A dry run changes nothing. progress as in jobq_queue_mend. Returns the
 * number of dead jobs. @since 0.1 */
JOBQ_API int64_t jobq_queue_prune(jobq_queue *queue, const jobq_filter *filter, bool dry_run,
                                  int (*progress)(void *payload, int64_t done), void *payload);

/* ---- counts ---------------------------------------------------------------------------------- */

typedef enum {
    JOBQ_STAT_READY,
    JOBQ_STAT_DELAYED,
    JOBQ_STAT_RESERVED,
    JOBQ_STAT_DEAD,
    JOBQ_STAT_BACKLOG,
    JOBQ_STAT_OLDEST_READY_AGE_MS, /* -1: nothing ready */
    JOBQ_STAT_CAPACITY,            /* 0: no limit */
    JOBQ_STAT_PAUSED,              /* 1: by its own pause or by that of all queues */
    JOBQ_STATS
} jobq_stat;
/* values_out has JOBQ_STATS elements. A queue nobody ever used counts 0 everywhere. */
JOBQ_API int jobq_queue_stats(jobq_queue *queue, const char *name, size_t n, int64_t *values_out);

/* One minute of a queue (rule N1). Kept 24 hours. */
typedef enum {
    JOBQ_MINUTE_PUSHED, /* booked at the first hand-out, under the minute of the enqueue */
    JOBQ_MINUTE_DONE,
    JOBQ_MINUTE_FAILED,   /* attempts that were failures, whatever became of the job */
    JOBQ_MINUTE_RETRIED,  /* put back after a failure or crash */
    JOBQ_MINUTE_CRASHED,  /* attempts that were crashes */
    JOBQ_MINUTE_RELEASED, /* by the job itself */
    JOBQ_MINUTE_TIMED_OUT,
    JOBQ_MINUTE_FIELDS
} jobq_minute_field;
#define JOBQ_RUN_BUCKETS 24
typedef struct {
    int64_t at_ms; /* its beginning, by the store's clock */
    int64_t counts[JOBQ_MINUTE_FIELDS];
    /* Handlers by how long they ran: bucket i holds those of at most 2^i ms that are above
     * 2^(i-1) ms; the last one has no upper end. */
    int64_t runs[JOBQ_RUN_BUCKETS];
} jobq_minute_stats;
JOBQ_API const char *jobq_minute_word(jobq_minute_field field); /* "timed_out" */
/* The minutes of that queue that began within the last `minutes` (1 to 1440), the running one too,
 * oldest first; those in which nothing happened are left out. *list_out is freed with
 * jobq_minutes_free. Workers tell the store about once a second. @since 0.1 */
JOBQ_API int jobq_queue_minutes(jobq_queue *queue, const char *name, size_t n, int64_t minutes,
                                jobq_minute_stats **list_out, size_t *count_out);
JOBQ_API void jobq_minutes_free(jobq_minute_stats *list);

/* Names of the store's queues, sorted; freed with jobq_names_free. */
JOBQ_API int jobq_queue_names(jobq_queue *queue, char ***names_out, size_t *count_out);
JOBQ_API void jobq_names_free(char **names, size_t count);

/* ---- workers --------------------------------------------------------------------------------- */

/* The live workers of the store (rule N4), as their records stood at one moment. */
typedef struct jobq_workers jobq_workers;

typedef enum {
    JOBQ_WORKERS_ID,
    JOBQ_WORKERS_HOST,
    JOBQ_WORKERS_LABEL /* its option `name`; NULL when it has none */
} jobq_workers_text_field;
typedef enum {
    JOBQ_WORKERS_PID,
    JOBQ_WORKERS_PROCESSES, /* children that run handlers, 0 = inline */
    JOBQ_WORKERS_STARTED_AT_MS,
    JOBQ_WORKERS_ALIVE_UNTIL_MS, /* when it counts as dead unless it is heard of before */
    JOBQ_WORKERS_LEASE_MS,
    JOBQ_WORKERS_RUNNING, /* jobs whose loss would count as a crash */
    JOBQ_WORKERS_HELD     /* jobs handed out to it, running ones among them */
} jobq_workers_number_field;

/* Freed with jobq_workers_free. @since 0.1 */
JOBQ_API int jobq_queue_workers(jobq_queue *queue, jobq_workers **workers_out);
JOBQ_API size_t jobq_workers_count(const jobq_workers *workers);
/* Of the i-th one; NULL or 0 past the end. Somebody who reserves by hand has an id alone. */
JOBQ_API const char *jobq_workers_text(const jobq_workers *workers, size_t i,
                                       jobq_workers_text_field which);
JOBQ_API int64_t jobq_workers_number(const jobq_workers *workers, size_t i,
                                     jobq_workers_number_field which);
/* The k-th queue it watches, and the k-th name that it has a handler for ("mail.send@1"); NULL past
 * the end. */
JOBQ_API const char *jobq_workers_queue(const jobq_workers *workers, size_t i, size_t k);
JOBQ_API const char *jobq_workers_name(const jobq_workers *workers, size_t i, size_t k);
JOBQ_API void jobq_workers_free(jobq_workers *workers);

/* ---- doctor ---------------------------------------------------------------------------------- */

typedef enum {
    JOBQ_FINDING_OK,
    JOBQ_FINDING_NOTE,   /* worth knowing */
    JOBQ_FINDING_PROBLEM /* something to be done */
} jobq_finding_grade;

/* One line of what was found. Texts are borrowed for the call and may hold names from the store. */
typedef struct {
    jobq_finding_grade grade;
    const char *check;  /* stable word: "connection", "schema", "clock", ... */
    const char *text;   /* what is so */
    const char *advice; /* what to do about it, NULL: nothing */
} jobq_finding;

/* Looks the store, the way to it and the workers over and hands each finding to `found` (rule N5).
 * Returns the number of problems; a store that cannot be used is an error code, after the finding
 * that says so. Changes nothing, but a store that is made on first use is made here too.
 * @since 0.1 */
JOBQ_API int jobq_queue_doctor(jobq_queue *queue,
                               void (*found)(void *payload, const jobq_finding *finding),
                               void *payload);

/* Looks at every job of the store in bounded steps while traffic flows, and hands out a finding
 * (check "audit") for each queue with its counts by state, and for each job that stands in two
 * states or in none, or is reserved by nobody (rule N5). progress as in jobq_queue_mend. Returns
 * the number of problems or an error. @since 0.1 */
JOBQ_API int64_t jobq_queue_audit(jobq_queue *queue,
                                  void (*found)(void *payload, const jobq_finding *finding),
                                  int (*progress)(void *payload, int64_t looked_at), void *payload);

JOBQ_END_DECLS
#endif
