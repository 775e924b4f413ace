/* SPDX-License-Identifier: MIT
 *
 * The memory driver: the contract in its plainest form. It is what tests compare the other drivers
 * with, so everything is a list and a scan, and nothing is clever. One store per open handle, one
 * process, one thread.
 */
#ifndef JOBQ_DRIVER_MEMORY_H
#define JOBQ_DRIVER_MEMORY_H

#include "driver/common.h"

enum { MEM_READY, MEM_DELAYED, MEM_RESERVED, MEM_DONE, MEM_DEAD }; /* as jobq_record.state */
enum { MEM_BUCKETS = 4096 };

typedef struct mem_worker {
    struct mem_worker *next;
    jobq_slice id, host, queues, names;
    int64_t pid, processes, started_at_ms, lease_ms;
    int64_t alive_until_boot_ms; /* boot clock: wall-clock steps change no lease (rule C12) */
    bool taken;                  /* lapsed, and jobs were taken from it */
    jobq_lease_token *running;
    size_t running_count;
} mem_worker;

typedef struct mem_job {
    struct mem_job *next, *prev; /* in push order */
    struct mem_job *same_bucket;
    int64_t seq;
    jobq_slice id, queue, name, header, body, unique, error, outcome;
    jobq_slice history[JOBQ__HISTORY_MAX];
    size_t history_count;
    jobq_counters counters;
    int64_t fence, enqueued_at_ms, base_at_ms, available_at_ms, died_at_ms, keep_until_ms;
    int32_t version;
    uint8_t priority, state, reason;
    uint8_t cancel; /* JOBQ_CANCEL_*: asked for, not yet settled */
    bool taken_back;
    bool key_free;      /* its unique key is another's to have (JOBQ_OP_FREE_KEY) */
    bool follower;      /* delayed until the key's holder gives it up */
    mem_worker *worker; /* state reserved */
    uint64_t nonce;     /* of the hand-out */
} mem_job;

typedef struct mem_queue {
    struct mem_queue *next;
    jobq_slice name;
    int64_t capacity; /* 0 = no limit */
    bool limited;     /* a capacity was set, be it 0 */
} mem_queue;

typedef struct mem_pause {
    struct mem_pause *next;
    jobq_slice queue; /* absent = all */
    int64_t until_ms; /* 0 = until resumed */
} mem_pause;

typedef struct mem_minute {
    struct mem_minute *next;
    jobq_slice queue;
    jobq_minute sums; /* its own queue and next are not used */
} mem_minute;

typedef struct {
    mem_job *first, *last;
    mem_job *buckets[MEM_BUCKETS];
    mem_worker *workers;
    mem_queue *queues;
    mem_pause *pauses;
    mem_minute *minutes;
    int64_t last_seq;
    uint64_t last_nonce;
    int64_t generation, control;
} mem_store;

extern const jobq_driver jobq__memory_driver;

/* connect.c */
bool jobq__memory_copy(jobq_slice *to, jobq_slice from); /* false: no memory; absent stays absent */
void jobq__memory_drop(jobq_slice *s);
bool jobq__memory_keep_history(mem_job *job, jobq_slice entry); /* false: no memory */
int64_t jobq__memory_next_due(const mem_store *store, bool with_workers, const mem_worker *but);
/* push.c */
int jobq__memory_push(void *handle, jobq_push *items, size_t n);
mem_job *jobq__memory_by_id(const mem_store *store, jobq_slice id);
mem_job *jobq__memory_holder(const mem_store *store, jobq_slice queue, jobq_slice unique);
void jobq__memory_remove(mem_store *store, mem_job *job);
mem_queue *jobq__memory_queue(mem_store *store, jobq_slice name); /* made; NULL: no memory */
/* The job no longer has its unique key; its follower takes it. */
void jobq__memory_give_up_key(mem_store *store, mem_job *job);
/* exchange.c */
int jobq__memory_exchange(void *handle, jobq_exchange *x);
bool jobq__memory_keep_follow(mem_store *store, const jobq_push *follow); /* false: no memory */
/* lease.c */
int jobq__memory_renew(void *handle, jobq_renewal *r);
int jobq__memory_leave(void *handle, jobq_slice worker);
int jobq__memory_held(void *handle, jobq_slice worker, jobq_batch *out);
int jobq__memory_workers(void *handle, jobq_batch *out);
int jobq__memory_maintain(void *handle, jobq_maintenance *m);
bool jobq__memory_expired(const mem_worker *worker);
mem_worker *jobq__memory_worker(const mem_store *store, jobq_slice id);
/* The record a reservation stands on: made or revived when there is none that lives.
 * NULL: no memory. */
mem_worker *jobq__memory_keep_worker(mem_store *store, jobq_slice id, int64_t lease_ms);
/* admin.c */
int jobq__memory_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out);
int jobq__memory_list(void *handle, jobq_listing *l);
int jobq__memory_counts(void *handle, jobq_slice queue, jobq_counts *counts_out);
int jobq__memory_queues(void *handle, jobq_batch *out);
int jobq__memory_mend(void *handle, jobq_mending *m);
/* control.c */
int jobq__memory_control(void *handle, jobq_control *c);
int jobq__memory_cancel(void *handle, jobq_cancelling *c);
int jobq__memory_clear(void *handle, jobq_clearing *c);
void jobq__memory_drop_pauses(mem_store *store);
/* numbers.c */
int jobq__memory_capacity(void *handle, jobq_limit *l);
int jobq__memory_book(void *handle, const jobq_minute *minutes, size_t n);
int jobq__memory_minutes(void *handle, jobq_minutes *m);
void jobq__memory_drop_minutes(mem_store *store, int64_t before_minute);
/* audit.c */
int jobq__memory_audit(void *handle, jobq_audit *a);
int jobq__memory_examine(void *handle, jobq_examination *e);
/* wait.c */
int jobq__memory_wait(void *handle, const jobq_wait *w);

static inline jobq_lease_token jobq__memory_token(const mem_job *job)
{
    jobq_lease_token token = {{(uint64_t)job->seq, (uint64_t)job->fence, job->nonce}};

    return token;
}

#endif
