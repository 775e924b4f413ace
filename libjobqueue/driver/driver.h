/* SPDX-License-Identifier: MIT
 *
 * The front of the stores: the only way the rest of the library reaches a driver. It opens on first
 * use, notices forks (the child forgets the parent's handle), checks arguments and sizes, splits
 * batches that are larger than the driver takes, and repeats an exchange job by job when the store
 * refused one value.
 */
#ifndef JOBQ_DRIVER_DRIVER_H
#define JOBQ_DRIVER_DRIVER_H

#include <jobqueue/sys/driver.h>

#include "core/settings.h"
#include "util/buf.h"

/* Batches (sys/driver.h's jobq_batch). */
struct jobq_batch {
    jobq__arena arena;
    jobq_record *first, *last;
    size_t count;
    jobq_worker_record *first_worker, *last_worker;
};
void jobq__batch_reset(jobq_batch *batch); /* empties it, keeps memory; zero-initialised is empty */
void jobq__batch_free(jobq_batch *batch);

typedef struct jobq__store jobq__store;

/* Parses the DSN (NULL: environment, then the default) and finds the driver; connects to nothing.
 * `conf` (scope connection) is where the query string's options are put: given ones win over the
 * query's. */
int jobq__store_new(const char *dsn, jobq_conf *conf, jobq__store **store_out);
/* The same place, whatever the environment and the current folder are by now; conf: a copy of that
 * one's. */
int jobq__store_twin(const jobq__store *store, jobq_conf *conf, jobq__store **twin_out);
void jobq__store_free(jobq__store *store);
void jobq__store_disconnect(jobq__store *store);
bool jobq__store_is_open(const jobq__store *store); /* by this process */
/* Somebody closed its descriptors, whose numbers may be anybody's by now: lets go of what is open
 * without touching any of it, its memory included. */
void jobq__store_abandon(jobq__store *store);
const jobq_driver *jobq__store_driver(const jobq__store *store);
const char *jobq__store_shown_dsn(const jobq__store *store);  /* password masked */
const char *jobq__store_connection(const jobq__store *store); /* its name, "default" */
/* Full path of the file behind the store, NULL when it is none (for the open-at-fork check). */
const char *jobq__store_file(const jobq__store *store);

/* The operations of the contract; arguments as there. All are allowed in a forked child. */
int jobq__store_schema(jobq__store *store);
/* Failed: the items it befell have the code as their result; parts sent before are stored. */
int jobq__store_push(jobq__store *store, jobq_push *items, size_t n);
/* Failed: settlements that were durable before have their answer, the others
 * JOBQ__UNANSWERED; x->settled says that there are none of these. */
enum { JOBQ__UNANSWERED = 1 };
int jobq__store_exchange(jobq__store *store, jobq_exchange *x);
int jobq__store_renew(jobq__store *store, jobq_renewal *r);
int jobq__store_leave(jobq__store *store, jobq_slice worker);
int jobq__store_held(jobq__store *store, jobq_slice worker, jobq_batch *out);
int jobq__store_workers(jobq__store *store, jobq_batch *out);
int jobq__store_wait(jobq__store *store, const jobq_wait *w);
int jobq__store_maintain(jobq__store *store, jobq_maintenance *m);
/* queue absent = any */
int jobq__store_find(jobq__store *store, jobq_slice queue, jobq_slice id, jobq_batch *out);
int jobq__store_list(jobq__store *store, jobq_listing *l);
int jobq__store_counts(jobq__store *store, jobq_slice queue, jobq_counts *counts_out);
int jobq__store_queues(jobq__store *store, jobq_batch *out);
int jobq__store_mend(jobq__store *store, jobq_mending *m); /* any count */
int jobq__store_control(jobq__store *store, jobq_control *c);
int jobq__store_cancel(jobq__store *store, jobq_cancelling *c);
int jobq__store_clear(jobq__store *store, jobq_clearing *c);
int jobq__store_capacity(jobq__store *store, jobq_limit *l);
int jobq__store_book(jobq__store *store, const jobq_minute *minutes, size_t n);
int jobq__store_minutes(jobq__store *store, jobq_minutes *m);
int jobq__store_audit(jobq__store *store, jobq_audit *a);
int jobq__store_examine(jobq__store *store, jobq_examination *e);
int jobq__store_effect(jobq__store *store, jobq_effect *e);
int jobq__store_request(jobq__store *store, jobq_request *r);
int jobq__store_now(jobq__store *store, int64_t *now_ms_out);

/* driver/registry.c */
/* NULL: unknown; error worded. */
const jobq_driver *jobq__driver_find(const char *scheme, size_t n);
int jobq__driver_check(const jobq_driver *driver); /* refuses an incoherent table */

/* driver/dsn.c: pure. Fills config from the text (arena keeps the decoded parts) and hands each
 * query option to `option` (snake_case name, decoded value). */
int jobq__dsn_parse(const char *dsn, jobq__arena *arena, jobq_driver_config *config,
                    int (*option)(void *payload, const char *name, const char *value, size_t n),
                    void *payload);
/* The DSN with its password replaced by "***", NUL-terminated in the arena. */
const char *jobq__dsn_mask(const char *dsn, jobq__arena *arena);

/* Jobs that follow another's end stand in a queue beside the job's that people cannot name: a byte
 * 1 and the queue's name. It is in no list. */
enum { JOBQ__FOLLOW_MARK = 1 };

static inline jobq_slice jobq__slice(const void *p, size_t n)
{
    jobq_slice s = {p, n};
    return s;
}
jobq_slice jobq__slice_text(const char *s); /* NULL: absent */
bool jobq__slice_equal(jobq_slice a, jobq_slice b);
static inline bool jobq__queue_is_hidden(jobq_slice queue)
{
    return queue.n > 0 && *(const char *)queue.p == JOBQ__FOLLOW_MARK;
}
static inline bool jobq__token_equal(jobq_lease_token a, jobq_lease_token b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1] && a.word[2] == b.word[2];
}

#endif
