/* SPDX-License-Identifier: MIT
 *
 * A queue handle (one store, one connection, opened on first use) and the messages pushed through
 * it. Not for use by two threads at once. After a fork the child may go on using the handle: what
 * the parent opened is forgotten without a word on the wire and opened anew.
 */
#ifndef JOBQUEUE_QUEUE_H
#define JOBQUEUE_QUEUE_H

#include <jobqueue/conf.h>
#include <jobqueue/job.h>
#include <jobqueue/payload.h>
#include <jobqueue/statement.h>

JOBQ_BEGIN_DECLS

typedef struct jobq_queue jobq_queue;
typedef struct jobq_message jobq_message;

/* dsn NULL: $JOBQUEUE_DSN, else "sqlite:jobqueue.db"; a bare word (also in $JOBQUEUE_DSN) names a
 * connection: $JOBQUEUE_DSN_WORD. conf (scope connection) may be NULL and is copied. Connects to
 * nothing. JOBQ_ECONF: unknown scheme (names the known ones, or the package that brings the driver)
 * or option. @since 0.1 */
JOBQ_API int jobq_queue_new(const char *dsn, const jobq_conf *conf, jobq_queue **queue_out);
/* Another handle of the same store for another thread, or for what takes long: the DSN and options
 * as they were resolved for `queue`, and a connection of its own, opened on first use.
 * JOBQ_EUNSUPPORTED: memory, whose jobs lie in the one handle. @since 0.1 */
JOBQ_API int jobq_queue_twin(const jobq_queue *queue, jobq_queue **twin_out);
JOBQ_API void jobq_queue_free(jobq_queue *queue);
JOBQ_API const char *jobq_queue_driver(const jobq_queue *queue); /* "sqlite" */
/* Its name, "default" when it has none. */
JOBQ_API const char *jobq_queue_connection(const jobq_queue *queue);
JOBQ_API const char *jobq_queue_dsn(const jobq_queue *queue); /* password masked */
/* Option `queue`, else "default". */
JOBQ_API const char *jobq_queue_default(const jobq_queue *queue);

/* Closes the connection now; the next call opens it again. */
JOBQ_API void jobq_queue_disconnect(jobq_queue *queue);

/* ---- messages: what will be a job ------------------------------------------------------------ */

/* An empty message; NULL when out of memory. @since 0.1 */
JOBQ_API jobq_message *jobq_message_new(void);
JOBQ_API void jobq_message_free(jobq_message *m);
JOBQ_API void jobq_message_reset(jobq_message *m); /* for reuse: keeps its memory */
/* 1-255 bytes of UTF-8, no control characters. Copied. */
JOBQ_API int jobq_message_set_name(jobq_message *m, const char *p, size_t n);
/* The writer for the payload; a message whose writer was not touched carries nil. Borrowed; NULL
 * when out of memory. */
JOBQ_API jobq_writer *jobq_message_payload(jobq_message *m);
/* Body bytes as they are (format JOBQ_FORMAT_*), in place of the writer's; checked at push.
 * Copied. */
JOBQ_API int jobq_message_set_body(jobq_message *m, int format, const void *p, size_t n);
/* One text of the context: UTF-8, each key once, 8192 bytes for all keys and values together. */
JOBQ_API int jobq_message_add_context(jobq_message *m, const char *key, size_t key_n,
                                      const char *value, size_t value_n);
/* The push options (scope push): jobq_conf_set(jobq_message_options(m), "delay", ...). Borrowed. */
JOBQ_API jobq_conf *jobq_message_options(jobq_message *m);

/* A condition that the store judges in the same step as the push (rule B7): true when the first
 * column of its first row is neither NULL, 0 nor an empty text (Redis: when the script returns
 * neither nil, false nor 0). Not true: JOBQ_EGUARD, nothing is stored. Copied; NULL = none.
 * JOBQ_EUNSUPPORTED on the memory store, when pushed. @since 0.1 */
JOBQ_API int jobq_message_set_guard(jobq_message *m, const jobq_statement *guard);

/* After a push: the id (also of a message that was refused as a duplicate: the first's; NULL
 * before), what became of it (0 stored, 1 not stored because a job with its unique key or, with
 * `idempotent`, its id exists, 2 a waiting job with that key was replaced, or an error code) and
 * the error's text and subject (NULL: none). Borrowed until the message changes. */
JOBQ_API const char *jobq_message_id(const jobq_message *m);
JOBQ_API int jobq_message_result(const jobq_message *m);
JOBQ_API const jobq_error *jobq_message_error(const jobq_message *m);
/* Where it goes when it is pushed by that handle: the queue that its option names, else the
 * handle's. Valid until the message is reset or that option is set anew. @since 0.1 */
JOBQ_API const char *jobq_message_queue(const jobq_message *m, const jobq_queue *queue);

/* 0 stored, 1 or 2 as jobq_message_result says, or an error: JOBQ_EFULL (the queue's capacity is
 * reached; the subject is the queue), JOBQ_EGUARD, JOBQ_EEXISTS (the id; with on_duplicate=error
 * the unique key: the subject is the id of the job that has it). Returns after the store has
 * confirmed. JOBQ_EUNKNOWN: the answer was lost, see jobq_message_id. */
JOBQ_API int jobq_queue_push(jobq_queue *queue, jobq_message *m);
/* The same for n messages: each is judged singly (jobq_message_result), the accepted ones are
 * stored together, in one step when there are at most JOBQ_PUSH_CHUNK. Returns the number stored,
 * or an error: it befell all of them, of more than a chunk those whose result it is. */
JOBQ_API int jobq_queue_push_many(jobq_queue *queue, jobq_message *const *m, size_t n);
/* Good sizes for a chunk of push_many. */
#define JOBQ_PUSH_CHUNK 500
#define JOBQ_PUSH_CHUNK_BYTES ((size_t)1 << 20)

/* The store's own statement for the push of that message, to be carried out by the caller inside
 * a transaction of its own (rule B8; PostgreSQL, MariaDB, SQLite, elsewhere JOBQ_EUNSUPPORTED),
 * with the placeholders that its client wants (JOBQ_PLACEHOLDER_*). Its answer is one row and
 * never an SQL error: `id`, and `result` in one word: stored; held (`id` is that of the job that
 * has the unique key, or with `idempotent` this id); replaced (`id` as jobq_message_id); full;
 * duplicate (the id exists). The store itself is asked nothing but what its schema is; the option
 * `capacity` is not applied. *statement_out is borrowed until the message changes or is used
 * again. @since 0.1 */
JOBQ_API int jobq_queue_push_statement(jobq_queue *queue, jobq_message *m, int placeholders,
                                       const jobq_statement **statement_out);

/* ---- low level reserve ----------------------------------------------------------------------- */

/* Reserves at most one job from the queues (in order; count 0: the default queue) for lease_ms
 * (1000 to 86400000) and does the maintenance that is due. 1: *job_out is the caller's, ended by
 * jobq_job_settle and freed by jobq_job_free; 0: none ready. */
JOBQ_API int jobq_queue_reserve(jobq_queue *queue, const char *const *queues, size_t count,
                                int64_t lease_ms, jobq_job **job_out);

/* ---- capacity (rule B4) ---------------------------------------------------------------------- */

/* How many jobs that queue may hold, ready, delayed, reserved and dead ones together; 0 = no limit.
 * Kept in the store and judged in the step of each push; nothing that is there is ever trimmed. A
 * connection's option `capacity` sets it for queues that never had one. jobq_queue_stats tells it.
 * @since 0.1 */
JOBQ_API int jobq_queue_set_capacity(jobq_queue *queue, const char *name, size_t n,
                                     int64_t capacity);

/* Local counters, no store involved: pushed, push_rejected, store_failures, ... *name_out NULL past
 * the end. */
JOBQ_API int64_t jobq_queue_counter(const jobq_queue *queue, size_t i, const char **name_out);

/* Creates or updates what the store needs (tables, indexes); nothing to do is success. */
JOBQ_API int jobq_queue_migrate(jobq_queue *queue);
/* Round trip to the store in microseconds (>= 0), or an error. */
JOBQ_API int64_t jobq_queue_ping(jobq_queue *queue);

JOBQ_END_DECLS
#endif
