/* SPDX-License-Identifier: MIT
 *
 * The contract between the library and a store, for people who write drivers.
 * doc/driver-contract.md says in prose what each operation must guarantee; tests/contract/ shows
 * it. A driver holds no policy: it never decodes a header or body, never counts tries and never
 * retries on its own account beyond the store's own transient refusals. The front (driver/driver.c)
 * checks arguments and sizes before a driver sees them.
 *
 * Memory: every slice handed in is borrowed for the call; everything handed out lies in the batch's
 * arena.
 */
#ifndef JOBQUEUE_SYS_DRIVER_H
#define JOBQUEUE_SYS_DRIVER_H

#include <jobqueue/error.h>
#include <jobqueue/statement.h>

JOBQ_BEGIN_DECLS

#define JOBQ_DRIVER_ABI 1

/* One hand-out, as the store knows it. Opaque to everybody else; all zero = none. */
typedef struct {
    uint64_t word[3];
} jobq_lease_token;

typedef struct {
    int64_t deliveries; /* hand-outs; the store raises it at each reserve */
    int64_t failures, crashes, releases, losses;
    int64_t exceptions;      /* failures that were throws (max_exceptions) */
    int64_t parks;           /* times put aside for want of a handler */
    int64_t parked_since_ms; /* store clock of the first of them, 0 = not parked */
} jobq_counters;

/* States as drivers store them: 0 ready, 1 delayed, 2 reserved, 3 done, 4 dead (jobq_state). */

/* A job as it comes out of a store. */
typedef struct jobq_record {
    struct jobq_record *next;
    jobq_slice id, queue, name, header, body, unique;
    jobq_lease_token token; /* reserve and held only */
    jobq_counters counters;
    int64_t fence; /* grows with every hand-out, for life */
    /* base: what relative deadlines count from (enqueue or replay) */
    int64_t enqueued_at_ms, base_at_ms;
    int64_t available_at_ms, reserved_until_ms, died_at_ms;
    int32_t version;
    uint8_t priority, state, reason;
    bool taken_back; /* comes from an expired worker */
    uint8_t cancel;  /* JOBQ_CANCEL_*: asked for since it was handed out (reserve, held, find) */
    /* find and lists only */
    jobq_slice reserved_by; /* worker id */
    jobq_slice error;       /* last error record */
    jobq_slice outcome;     /* as settled last: progress while held, then the result */
    int64_t keep_until_ms;  /* done and dead: when it is collected, 0 = never */
    jobq_slice *history;    /* entries, oldest first */
    size_t history_count;
} jobq_record;

/* Where records are put. Owned by the caller; drivers use the functions below. */
typedef struct jobq_batch jobq_batch;
JOBQ_API jobq_record *jobq_batch_add(jobq_batch *batch); /* zeroed; NULL: no memory */
/* p NULL: no memory */
JOBQ_API jobq_slice jobq_batch_copy(jobq_batch *batch, const void *p, size_t n);
JOBQ_API void *jobq_batch_alloc(jobq_batch *batch, size_t n); /* aligned, zeroed */

/* ---- push ------------------------------------------------------------------------------------ */

/* What becomes of a push whose unique key is held (rule B6). */
enum {
    JOBQ_DUPLICATE_KEEP, /* nothing is stored */
    /* A waiting holder takes this push's name, version, priority, header, body and due time, and
     * its counters begin anew; its id, enqueue time and history stay. Is it with a worker, one
     * follower is kept for it, in the same way: it stands among the delayed ones, nobody gets
     * it, and in the step in which the holder gives the key up it takes the key and waits for
     * its own due time. */
    JOBQ_DUPLICATE_REPLACE
};

typedef struct jobq_push {
    jobq_slice id, queue, name, header, body, unique;
    int32_t version;
    uint8_t priority;
    uint8_t on_duplicate; /* JOBQ_DUPLICATE_*; KEEP without a key */
    /* REPLACE: due at most so long after the holder's (or follower's) enqueue; 0 = no limit */
    int64_t max_wait_ms;
    /* Stored only if the store finds it true in the same step: the first column of the first row
     * is neither NULL, 0 nor an empty text (Redis: the script returns neither nil, false nor 0).
     * NULL = none. */
    const jobq_statement *guard;
    /* Made for this push: no job can have it yet, and looking for one may be left out. */
    bool fresh_id;
    /* Of a request: an id that exists is answered as "held", not as "duplicate". */
    bool idempotent;
    int64_t delay_ms; /* from the store's now; <= 0: ready */
    int64_t at_ms;    /* absolute, 0 = use delay_ms; a past time = now */
    /* answer */
    /* 0 stored; 1 key held (holder = whose it is); 2 key held and replaced (holder = what was
     * replaced, or this push's id for a new follower); JOBQ_EEXISTS; JOBQ_EFULL (the queue's
     * capacity is reached); JOBQ_EGUARD. Judged in this order: id, guard, key, capacity. */
    int result;
    char holder[129];
} jobq_push;

/* ---- cancelling and control (rules L1 to L3) ------------------------------------------------- */

enum { JOBQ_CANCEL_NONE, JOBQ_CANCEL_SOFT, JOBQ_CANCEL_HARD };

/* A job is to end: one that waits becomes dead with that reason, of one that is held the wish is
 * noted (a hard one is never softened) until the hand-out has been settled as done or dead. */
typedef struct {
    jobq_slice id;
    bool hard;
    uint8_t reason;
    int64_t keep_ms;                /* see JOBQ_OP_DEAD */
    jobq_slice history;             /* entry of the death, absent = none */
    const struct jobq_push *follow; /* see jobq_settlement */
    /* answer: JOBQ_EEXISTS it is held, noted; 0 dead now; JOBQ_ENOTFOUND neither waits nor runs */
    int result;
} jobq_cancelling;

enum { JOBQ_CONTROL_READ, JOBQ_CONTROL_PAUSE, JOBQ_CONTROL_RESUME, JOBQ_CONTROL_RESTART };

typedef struct jobq_pause {
    struct jobq_pause *next;
    jobq_slice queue; /* absent = all */
    int64_t until_ms; /* store clock, 0 = until resumed */
} jobq_pause;

/* What workers are asked to do. Whatever is done, the answers say how it stands after it. */
typedef struct {
    int what;         /* JOBQ_CONTROL_* */
    jobq_slice queue; /* PAUSE, RESUME: absent = all, which is a pause of its own */
    int64_t ttl_ms;   /* PAUSE: 0 = until resumed */
    jobq_batch *out;
    /* answers */
    jobq_pause *pauses; /* those that have not run out, in the batch's arena */
    int64_t generation; /* grows with every RESTART, 0 = never */
    int64_t control;    /* see jobq_exchange */
    int64_t now_ms;
} jobq_control;

/* ---- exchange -------------------------------------------------------------------------------- */

enum {
    JOBQ_OP_DONE, /* gone (keep_ms > 0: kept as done so long, with `outcome`) */
    JOBQ_OP_BACK, /* back on the queue, delay_ms from now, counters as given; stands by due time */
    JOBQ_OP_GIVE_BACK, /* as if never taken: place kept, counters but deliveries unchanged */
    /* reason as given; unique key freed, died_at = now; keep_ms > 0: until then it can be put back,
     * from then on maintain collects it */
    JOBQ_OP_DEAD,
    JOBQ_OP_FREE_KEY, /* stays with its holder under the same token; its unique key is free */
    JOBQ_OP_PROGRESS  /* stays with its holder; `outcome` is shown by find until it ends */
};

typedef struct {
    jobq_lease_token token;
    jobq_slice id, queue;
    int64_t delay_ms, keep_ms;
    jobq_counters counters; /* BACK, DEAD: the new values (deliveries is ignored) */
    jobq_slice error;       /* replaces the last error; absent = keep what is there */
    jobq_slice history;     /* appended, the last 10 are kept; absent = none */
    jobq_slice outcome;     /* DONE with keep_ms, DEAD, PROGRESS: opaque bytes for those who look */
    /* A job that is stored in the same step when the settlement holds (not when the lease is lost);
     * NULL = none. One whose id exists already is not stored again. */
    const struct jobq_push *follow;
    uint8_t op, reason;
    bool keep_bare; /* DONE with keep_ms: without its body (an id to be remembered) */
    /* answer: 0, JOBQ_ELEASE (nothing changed), JOBQ_EINVAL (the store refused a value) */
    int result;
} jobq_settlement;

typedef struct {
    jobq_slice worker; /* id of the worker's record, which renew made */
    int64_t lease_ms;  /* the length it asks for */
    jobq_settlement *settle;
    size_t settle_count;
    const jobq_slice *queues; /* in the order to serve; 0 = settle only */
    size_t queue_count;
    size_t want;            /* reserve at most so many ... */
    size_t want_taken_back; /* ... of which at most so many taken back from expired workers */
    size_t want_bytes;      /* stop reserving after so many body bytes (at least one job) */
    jobq_batch *out;        /* reserved jobs are added here, best first */
    bool ask_passed_by;     /* `passed_by` is wanted even if it takes one more look */
    /* answers */
    int64_t now_ms;      /* store clock */
    int64_t next_due_ms; /* store clock: when maintain has something to do, 0 = nothing known */
    int64_t control;     /* changes with every change of control and with every noted cancel */
    bool settled;        /* when the call fails: were the settlements made durable before? */
    /* when it is known: nothing ready was left behind those reserved (spares the caller one more
     * look) */
    bool exhausted;
    /* none was reserved though some are ready: somebody has them locked (rule C6: the queue is not
     * empty) */
    bool passed_by;
} jobq_exchange;

/* ---- the worker's lease ---------------------------------------------------------------------- */

/* JOBQ_ELEASE: the record had lapsed and its jobs were taken; a new one was begun. */
typedef struct {
    jobq_slice worker;
    int64_t lease_ms;
    /* hand-outs whose loss would count as a crash; replaces the list */
    const jobq_lease_token *running;
    size_t running_count;
    /* Who it is; absent host = leave the record's description as it is. In queues and names each
     * entry is followed by '\n' ("name@version\n"). */
    jobq_slice host, queues, names;
    int64_t pid, processes;
    /* answers */
    int64_t now_ms;
    int64_t held;    /* hand-outs the store holds for this worker */
    int64_t control; /* as in jobq_exchange */
} jobq_renewal;

typedef struct jobq_worker_record {
    struct jobq_worker_record *next;
    jobq_slice id, host, queues, names;
    int64_t pid, processes, started_at_ms, alive_until_ms, lease_ms, running, held;
} jobq_worker_record;
JOBQ_API jobq_worker_record *jobq_batch_add_worker(jobq_batch *batch);

/* ---- waiting, maintenance, looking ----------------------------------------------------------- */

enum {
    JOBQ_WAIT_TIMEOUT = 0,
    JOBQ_WAIT_JOBS = 1 /* look: something may be ready or due */,
    JOBQ_WAIT_WOKEN = 2,  /* wake_fd is readable */
    JOBQ_WAIT_CONTROL = 3 /* the control value may no longer be `control` of the wait */
};

typedef struct {
    const jobq_slice *queues;
    size_t queue_count;
    int64_t timeout_ms;     /* -1 = no limit */
    int64_t poll_ms;        /* longest wait between looks where the store cannot wake us */
    int wake_fd;            /* -1 = none; the driver polls it and does not read it */
    const int64_t *control; /* the value the caller knows: another one ends the wait; NULL = none */
    /* Also ends (JOBQ_WAIT_JOBS) when that one may have ended; absent = none. Without queues
     * (queue_count 0) jobs end it not at all, and `queues` names the one queue where it stands
     * (NULL = not known). */
    jobq_slice job;
} jobq_wait;

typedef struct {
    size_t limit;     /* handle at most so many jobs */
    int64_t loss_cap; /* so many losses in a row count as one crash */
    bool take_back;   /* false: leave expired workers alone (grace after an outage) */
    /* History entry of a job that comes back as a crash: `lost_head`, the length of the worker's
     * id as one byte, the id, `lost_tail`. Absent head = none. */
    jobq_slice lost_head, lost_tail;
    /* answers */
    size_t handled;
    bool more; /* the limit was reached: call again soon */
    int64_t now_ms, next_due_ms;
} jobq_maintenance;

typedef struct {
    jobq_slice queue;      /* absent = all (dead only) */
    jobq_slice name;       /* dead only; absent = any */
    uint8_t state, reason; /* reason 0 = any */
    int64_t older_than_ms; /* dead: died_at <= now - this; 0 = any */
    size_t limit;
    jobq_slice after; /* cursor that an earlier page gave; absent = first page */
    bool keys_only;   /* leave out header, body, error, history */
    jobq_batch *out;
    /* answers, in the batch's arena: cursor of the next page, absent on the last; cursor behind the
     * last job shown, also on the last page, absent when none was shown */
    jobq_slice next, last;
} jobq_listing;

/* How many jobs a queue may hold: ready + delayed + reserved + dead; hidden queues have none. */
typedef struct {
    jobq_slice queue;
    int64_t value;     /* 0 = no limit */
    bool read;         /* change nothing */
    bool only_if_none; /* nothing is changed where one was ever set */
    /* answer: the one that holds now */
    int64_t capacity;
} jobq_limit;

/* What happened on a queue in one minute, added to what the store has of it (rule N1). */
enum { JOBQ_MINUTE_COUNTS = 7, JOBQ_MINUTE_BUCKETS = 24 };
typedef struct jobq_minute {
    struct jobq_minute *next;
    jobq_slice queue;
    int64_t minute; /* minutes since 1970 by the store's clock */
    /* pushed (booked at the first hand-out under the enqueue minute), done, failed, retried,
     * crashed, released, timed out */
    int64_t counts[JOBQ_MINUTE_COUNTS];
    int64_t run_ms[JOBQ_MINUTE_BUCKETS]; /* handlers that ran so long: bucket i up to 2^i ms */
} jobq_minute;

/* Minutes of a queue, oldest first; kept 24 h. */
typedef struct {
    jobq_slice queue;
    int64_t from_minute;
    jobq_batch *out;
    jobq_minute *minutes; /* answer, in the batch's arena */
    int64_t now_ms;
} jobq_minutes;

typedef struct {
    int64_t ready, delayed, reserved, dead, capacity;
    int64_t oldest_ready_at_ms; /* since when the longest waiting ready job is ready; 0 = none */
    int64_t now_ms;
} jobq_counts;

enum { JOBQ_MEND_RETRY = 0, JOBQ_MEND_FORGET = 1 };

/* Dead jobs to put back or to forget, stored as one where the store can; each is judged singly. */
typedef struct {
    int what;     /* JOBQ_MEND_* */
    bool dry_run; /* say what would be done */
    const jobq_slice *ids;
    size_t count; /* at most max_batch */
    /* answers: 0, JOBQ_ENOTFOUND (no dead job of that id), JOBQ_EEXISTS (its unique key is held),
     * JOBQ_ELIMIT (retry: its retention is over) */
    int *results;
} jobq_mending;

/* Removes waiting jobs of a queue (ready and delayed, not what is held), oldest first. */
typedef struct {
    jobq_slice queue;
    size_t limit;
    /* answers */
    size_t cleared;
    bool more;
} jobq_clearing;

/* Looks whether every job stands in exactly one state (rule F1), a page a call. Each page is one
 * atomic look, so that traffic beside it does not show; hidden queues are looked at like others. */
typedef struct jobq_stray {
    struct jobq_stray *next;
    jobq_slice id, queue;
    unsigned states; /* those it stands in, 1 << state each; 0: in none */
    /* It is reserved, and no record of a worker says by whom: nothing would ever take it back. */
    bool ownerless;
} jobq_stray;
typedef struct {
    jobq_slice queue;
    size_t limit;     /* look at about so many jobs, 1 to 1000 */
    jobq_slice after; /* cursor that the page before gave; absent = from the beginning */
    jobq_batch *out;
    /* answers, texts and strays in the batch's arena */
    int64_t seen[5]; /* jobs looked at that stand in one state, by state */
    jobq_stray *strays;
    jobq_slice next; /* absent: this was the last page */
} jobq_audit;

/* What the store itself says of how it is set up (rule N5): durability, eviction, versions, missing
 * indexes, what its user may do. */
enum { JOBQ_REMARK_OK, JOBQ_REMARK_NOTE, JOBQ_REMARK_PROBLEM };
typedef struct jobq_remark {
    struct jobq_remark *next;
    int grade;
    /* stable word ("durability"), what is so, and what to do about it (NULL: nothing); constant
     * or in the batch's arena */
    const char *check, *text, *advice;
} jobq_remark;
typedef struct {
    jobq_batch *out;
    jobq_remark *remarks, *last; /* answers (driver/common.h: jobq__remark) */
} jobq_examination;

/* ---- the caller's own work in the store ------------------------------------------------------ */

/* A statement of the caller's that is carried out only if the hand-out is current, with nobody
 * between (rule O1). On SQL in a transaction of its own; Redis rolls nothing back when the
 * script fails. */
typedef struct {
    jobq_slice worker, id, queue;
    jobq_lease_token token;
    jobq_statement statement;
    jobq_batch *out;
    /* answers: 0 or JOBQ_ELEASE; first column of the first row (bytes in the batch's arena),
     * else the number of rows changed */
    int result;
    jobq_param value;
} jobq_effect;

/* The store's own statement for a push, or for the end of a held job, to be carried out by the
 * caller in a transaction of its own (rules B8, O1). Exactly one of push and done is given. */
typedef struct {
    const jobq_push *push;
    const jobq_settlement *done;
    jobq_slice worker; /* done */
    jobq_batch *out;
    jobq_statement statement; /* answer, in the batch's arena */
} jobq_request;

/* ---- opening --------------------------------------------------------------------------------- */

/* An option of the client library's own, as the DSN gives it. */
typedef struct {
    const char *name, *value;
} jobq_driver_option;

/* What a store is opened with. It outlives the store; texts end with a NUL. */
typedef struct {
    const char *scheme; /* "sqlite" */
    /* decoded parts of the DSN; path without its leading "/" rules applied */
    jobq_slice user, password, host, path;
    int port;     /* 0 = default */
    bool migrate; /* create and migrate the schema when needed */
    int64_t read_timeout_ms;
    /* Options that only some stores have (the driver's `options` names them); NULL = its
     * default. */
    int64_t connect_timeout_ms;
    const char *synchronous;
    const char *prefix, *schema;     /* what keys begin with; the schema that holds the tables */
    const char *ca, *cert, *key;     /* files in PEM form, NULL = none */
    bool verify;                     /* TLS: certificate and name of the server must be right */
    bool listen;                     /* false: no state of the session may be used, poll instead */
    const jobq_driver_option *extra; /* what `takes` took, in the order given */
    size_t extra_count;
} jobq_driver_config;

enum {
    JOBQ_FEATURE_SHARED = 1, /* other processes see the same store */
    JOBQ_FEATURE_WAKE = 2,   /* wait is ended by a push, not by polling */
    JOBQ_FEATURE_PRIORITY = 4,
    JOBQ_FEATURE_UNIQUE = 8,
    JOBQ_FEATURE_ATOMIC_BATCH = 16, /* a push of many is stored as one */
    /* the path is a file's: made absolute, not to be open elsewhere while a pool forks */
    JOBQ_FEATURE_FILE = 32,
    /* what comes back to a queue stands there by its due time; without it: where it was put back */
    JOBQ_FEATURE_DUE_ORDER = 64,
    JOBQ_FEATURE_HOST_CLOCK =
        128,                   /* the store's clock is this host's (and leases its boot clock) */
    JOBQ_FEATURE_EFFECT = 256, /* guard and effect: the store can carry out a statement */
    JOBQ_FEATURE_REQUEST = 512 /* request: statements for the caller's own transaction */
};

/* Functions return 0 or a negative code with the record set (util/error.h: jobq__error_set). Every
 * call ends by its deadline. None may leave a statement, transaction or lock behind. */
typedef struct jobq_driver {
    uint32_t abi; /* JOBQ_DRIVER_ABI */
    size_t size;  /* sizeof(jobq_driver) */
    const char *name;
    const char *schemes; /* "postgresql postgres" */
    uint64_t features;
    size_t max_batch; /* settlements + wanted of one exchange, items of one push */
    size_t max_body;
    /* The connection options of those that only some stores have which this one has, separated by
     * blanks: "prefix ca cert". Others are refused by the front. */
    const char *options;
    /* Is that an option of the client library, to be handed on as it is? NULL = none are. */
    bool (*takes)(const char *name);
    /* Those of them that a misspelled name is compared with, ended by NULL; NULL = none. */
    const char *const *own;

    /* --- required --- */
    int (*open)(const jobq_driver_config *config, void **store_out);
    void (*close)(void *store);  /* NULL is fine */
    void (*forget)(void *store); /* in a forked child: drop it without a word on the wire */
    int (*schema)(void *store);  /* create and migrate; safe when two start at once */
    int (*push)(void *store, jobq_push *items, size_t n);
    int (*exchange)(void *store, jobq_exchange *x);
    int (*renew)(void *store, jobq_renewal *r);
    /* the worker ends: its record goes if it holds nothing */
    int (*leave)(void *store, jobq_slice worker);
    /* id, queue, token of each hand-out */
    int (*held)(void *store, jobq_slice worker, jobq_batch *out);
    int (*workers)(void *store, jobq_batch *out); /* live worker records (jobq_batch_add_worker) */
    int (*wait)(void *store, const jobq_wait *w); /* JOBQ_WAIT_* or an error */
    int (*maintain)(void *store, jobq_maintenance *m);
    /* JOBQ_ENOTFOUND; queue absent = any, given = it is there or nowhere */
    int (*find)(void *store, jobq_slice queue, jobq_slice id, jobq_batch *out);
    int (*list)(void *store, jobq_listing *l); /* jobs of one queue and state, dead jobs of all */
    int (*counts)(void *store, jobq_slice queue, jobq_counts *counts_out);
    int (*queues)(void *store, jobq_batch *out); /* records with `queue` alone, sorted by name */
    int (*mend)(void *store, jobq_mending *m);   /* an error: nothing was changed */
    int (*control)(void *store, jobq_control *c);
    int (*cancel)(void *store, jobq_cancelling *c);
    int (*clear)(void *store, jobq_clearing *c);
    int (*capacity)(void *store, jobq_limit *l);
    int (*book)(void *store, const jobq_minute *minutes, size_t n); /* no order, one write */
    int (*minutes)(void *store, jobq_minutes *m);
    int (*audit)(void *store, jobq_audit *a);
    int (*examine)(void *store,
                   jobq_examination *e);          /* an error: the store cannot be asked at all */
    int (*effect)(void *store, jobq_effect *e);   /* without EFFECT: never called */
    int (*request)(void *store, jobq_request *r); /* without REQUEST: never called */
    int (*now)(void *store, int64_t *now_ms_out);
} jobq_driver;

JOBQ_END_DECLS
#endif
