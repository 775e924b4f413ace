/* SPDX-License-Identifier: MIT
 *
 * Inside of the PostgreSQL driver. The tables (tables.c) keep what a job is apart from where it
 * stands, and every operation is one statement, mostly the call of a function that lives in the
 * schema (functions.c): one round trip, one transaction, nothing kept in the session.
 *
 *     job       what it is: one row per job, state live, done or dead
 *     ready     stands in line: (queue, rank, available_at, seq)
 *     taken     the same for jobs taken back from expired workers
 *     delayed   waits for its time: (due, seq); behind FAR: follows the holder of its unique key
 *     held      is with a worker: (worker, seq), nonce of the hand-out
 *
 * A live job stands in exactly one of the four; every change of place is one transaction.
 * A hand-out's token: word[0] = seq, word[1] = fence, word[2] = nonce.
 */
#ifndef JOBQ_DRIVER_PGSQL_H
#define JOBQ_DRIVER_PGSQL_H

#include <libpq-fe.h>

#include "driver/common.h"

enum { PG_READY = 0, PG_DELAYED = 1, PG_RESERVED = 2, PG_DONE = 3, PG_DEAD = 4 };
enum { PG_RANKS = 10, PG_QUEUES_CACHED = 64, PG_QUEUE_MAX = 129 };
enum { PG_SCHEMA_MAX = 63 };
#define PG_FAR_TEXT "1152921504606846976" /* 2^60: behind every time */

/* Types of parameters, by their fixed object ids. */
enum {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_FLOAT8 = 701,
    PG_BYTEA_ARRAY = 1001,
    PG_INT2_ARRAY = 1005,
    PG_INT4_ARRAY = 1007,
    PG_TEXT_ARRAY = 1009,
    PG_INT8_ARRAY = 1016
};

/* Statements, prepared once per connection where the connection is ours alone. The text stands
 * where it is used. '@' in it stands for the schema. */
typedef enum {
    ST_HELLO,
    ST_END_LOST,
    ST_SCHEMA,
    ST_VERSION,
    ST_NOW,
    ST_PUSH,
    ST_PUSH_SINGLE,
    ST_PUSH_PLAIN,
    ST_EXCHANGE,
    ST_RENEW,
    ST_LEAVE,
    ST_HELD,
    ST_WORKERS,
    ST_LOOK,
    ST_MAINTAIN,
    ST_FIND,
    ST_LIST_READY,
    ST_LIST_DELAYED,
    ST_LIST_RESERVED,
    ST_LIST_DONE,
    ST_LIST_DEAD,
    ST_COUNTS,
    ST_QUEUES,
    ST_MEND,
    ST_CONTROL,
    ST_CANCEL,
    ST_CLEAR,
    ST_CAPACITY,
    ST_SHOW_CAPACITY,
    ST_BOOK,
    ST_MINUTES,
    ST_HOLDS,
    ST_ID_EXISTS,
    ST_ENDED,
    ST_AUDIT,
    ST_AUDIT_READY,
    ST_AUDIT_TAKEN,
    ST_AUDIT_DELAYED,
    ST_AUDIT_HELD,
    ST_EXAMINE,
    ST_EXAMINE_OBJECTS,
    ST_COUNT
} pgsql_statement;

/* Where a queue's reservations begin: floors.c. */
typedef struct {
    size_t n;
    char name[PG_QUEUE_MAX];
    bool noted;       /* its name stands in the store */
    int limited;      /* it had a capacity: so many pushes until we look whether it still has */
    bool known;       /* the floors hold */
    int64_t rewinds;  /* of the queue, when they were taken */
    int64_t start_us; /* monotonic: when the line was last read from its start ... */
    int64_t cost_us;  /* ... and what that took */
    int64_t at[PG_RANKS], seq[PG_RANKS];
} pgsql_front;

typedef struct pgsql_store {
    const jobq_driver_config *config;
    char schema[PG_SCHEMA_MAX + 3]; /* in quotes */
    char channel[64];
    int64_t connect_ms, read_ms;
    size_t host; /* the one that answered last */
    PGconn *conn;
    int64_t pid, born_us; /* the server's process behind it; 0 = not known, or a pooler's */
    int64_t lost_pid, lost_born_us; /* one that we left in the middle of a call */
    bool suspect;                   /* drop the connection when the call ends */
    bool pooled;                    /* not ours alone: no state of the session */
    bool sent;                      /* the call under way: everything reached the socket */
    bool begun;                     /* in a transaction of several statements */
    bool listening;                 /* this connection has said LISTEN */
    int64_t deadline_us;            /* of the call under way, monotonic */
    char *texts[ST_COUNT];
    bool used[ST_COUNT], prepared[ST_COUNT];
    pgsql_front fronts[PG_QUEUES_CACHED];
    size_t front_count;
    /* delayed and kept jobs up to this time have been handled; read anew from the start now and
     * then */
    int64_t due_floor, due_start_us, due_cost_us;
    /* the registration as an idle worker (wait.c) */
    int64_t idle_key;
    int64_t idle_until_us; /* monotonic, 0 = not registered */
    int64_t idle_hash;     /* of the queues */
    int64_t registered_us; /* monotonic, when */
    int64_t idle_since_us; /* when the last wait ended */
    /* the last exchange found these queues empty: until we are told otherwise they are */
    int64_t empty_us; /* monotonic, 0 = not known */
    int64_t empty_hash, empty_due_us;
    int64_t control;     /* the control value as last heard */
    int futile;          /* times we were told and others had taken it */
    bool look_answered;  /* the last wait ended because a look found something ... */
    bool vain;           /* ... and the exchange then got nothing of it */
    int64_t vain_gap_ms; /* how long the next such wait pauses */
} pgsql_store;

extern const jobq_driver jobq__pgsql_driver;

/* ---- connect.c: every operation is enter ... leave ------------------------------------------- */

/* Connects when needed, starts the deadline. */
int jobq__pgsql_enter(pgsql_store *store, bool for_schema);
int jobq__pgsql_leave(pgsql_store *store, int rc); /* returns rc */
void jobq__pgsql_disconnect(pgsql_store *store);

/* ---- dial.c ---------------------------------------------------------------------------------- */

bool jobq__pgsql_takes(const char *name);
extern const char *const jobq__pgsql_own[];
/* Opens store->conn, host after host. */
int jobq__pgsql_dial(pgsql_store *store);

/* ---- params.c: binary parameters ------------------------------------------------------------- */

enum { PG_PARAMS = 20 };
typedef struct {
    jobq__buf bytes;
    int n;
    Oid types[PG_PARAMS];
    size_t offsets[PG_PARAMS];
    int lengths[PG_PARAMS]; /* -1 = null */
    const char *values[PG_PARAMS];
    int formats[PG_PARAMS];
} pgsql_params; /* zero-initialise; free `bytes` */

void jobq__pgsql_null(pgsql_params *p, Oid type);
void jobq__pgsql_bool(pgsql_params *p, bool v);
void jobq__pgsql_int(pgsql_params *p, int64_t v);               /* bigint */
void jobq__pgsql_text(pgsql_params *p, jobq_slice s);           /* absent = null */
void jobq__pgsql_bytes(pgsql_params *p, jobq_slice s);          /* likewise */
void jobq__pgsql_array(pgsql_params *p, Oid element, size_t n); /* n elements follow */
void jobq__pgsql_put_slice(pgsql_params *p, jobq_slice s);      /* text or bytea; absent = null */
void jobq__pgsql_put_int8(pgsql_params *p, int64_t v);
void jobq__pgsql_put_int4(pgsql_params *p, int32_t v);
void jobq__pgsql_put_int2(pgsql_params *p, int16_t v);
void jobq__pgsql_end(pgsql_params *p); /* of the array */

/* FNV-1a of 64 bits, to be begun with PG_HASH_BEGIN: keys of advisory locks, sets of queues. */
#define PG_HASH_BEGIN UINT64_C(14695981039346656037)
uint64_t jobq__pgsql_hash(uint64_t hash, jobq_slice bytes);

/* Cells of a binary result. */
int64_t jobq__pgsql_get(const PGresult *res, int row, int column); /* any integer, bool; null 0 */
/* Into the batch; null stays absent. False: no memory. */
bool jobq__pgsql_copy(const PGresult *res, int row, int column, jobq_batch *out, jobq_slice *to);
/* Walks an array: begin, then next until it says false. */
typedef struct {
    const unsigned char *p;
    size_t left, count;
} pgsql_array;
pgsql_array jobq__pgsql_array_of(const PGresult *res, int row, int column);
bool jobq__pgsql_array_next(pgsql_array *a, jobq_slice *element_out); /* null: absent */
int64_t jobq__pgsql_array_int(pgsql_array *a);                        /* bigint, 0 at the end */

/* ---- call.c ---------------------------------------------------------------------------------- */

/* Runs a statement as a transaction of its own and frees the parameters. `write`: when its answer
 * is lost the outcome is unknown. *res_out: to be cleared by the caller. */
int jobq__pgsql_run(pgsql_store *store, pgsql_statement which, const char *sql,
                    pgsql_params *params, bool write, PGresult **res_out);
/* Plain commands without parameters and answer (migrations, LISTEN). */
int jobq__pgsql_command(pgsql_store *store, const char *sql);
/* '@' = the schema, '#' = the channel, doubled = themselves. Freed by jobq__free; NULL: no
 * memory, error set. */
char *jobq__pgsql_expand(const pgsql_store *store, const char *sql);
/* The socket, until readable (or writable too) or the deadline. */
int jobq__pgsql_poll(pgsql_store *store, bool writing);

/* For statements of the caller's: a transaction under the search path he would have, on our
 * connection. Until it ends nothing is repeated; `begun` is off again after a failure. */
int jobq__pgsql_begin(pgsql_store *store);
int jobq__pgsql_finish(pgsql_store *store, int rc); /* commits, after a failure rolls back; rc */
/* One statement of the caller's, its answer as text. Only what came of the connection is an error
 * here; what the server refused is for the caller to judge. */
typedef struct {
    int n;
    Oid types[100];
    const char *values[100];
    int lengths[100], formats[100];
} pgsql_foreign;
int jobq__pgsql_ask(pgsql_store *store, const char *sql, const pgsql_foreign *params,
                    PGresult **res_out);

/* ---- fail.c ---------------------------------------------------------------------------------- */

/* Words the server's refusal and judges it by its SQLSTATE; marks the connection when it is of no
 * more use. `unsure`: a write may have been carried out. */
int jobq__pgsql_refused(pgsql_store *store, const PGresult *res, bool unsure);
int jobq__pgsql_broken(pgsql_store *store, bool unsure); /* the connection ended */
int jobq__pgsql_late(pgsql_store *store, bool unsure);   /* the deadline passed */
/* Words libpq's message on connecting. */
int jobq__pgsql_refuse_dial(const char *message, bool needs_password);
bool jobq__pgsql_is_transient(const PGresult *res); /* serialization, deadlock: once more */
/* A statement of the caller's was refused: his mistake, or trouble as with any other. */
int jobq__pgsql_refused_foreign(pgsql_store *store, const PGresult *res, const char *what,
                                bool unsure);
bool jobq__pgsql_state_is(const PGresult *res, const char *state);

/* ---- schema.c; the scripts stand in tables.c and functions*.c -------------------------------- */

int jobq__pgsql_migrate(pgsql_store *store);
int jobq__pgsql_check_schema(pgsql_store *store, bool may_migrate);
extern const char jobq__pgsql_tables_1[], jobq__pgsql_tables_2[], jobq__pgsql_tables_3[],
    jobq__pgsql_tables_4[], jobq__pgsql_functions[], jobq__pgsql_key_functions[],
    jobq__pgsql_number_functions[], jobq__pgsql_exchange_functions[],
    jobq__pgsql_upkeep_functions[], jobq__pgsql_control_functions[], jobq__pgsql_header_functions[],
    jobq__pgsql_sql_functions[], jobq__pgsql_view[];

/* ---- floors.c -------------------------------------------------------------------------------- */

/* Is a job ready in one of these queues, whoever has it locked? */
int jobq__pgsql_is_any_ready(pgsql_store *store, const jobq_slice *queues, size_t count,
                             bool *ready_out);
/* Appends the parameter: what is known of the queues' fronts; null when nothing is. */
void jobq__pgsql_put_fronts(pgsql_store *store, pgsql_params *p, const jobq_slice *queues,
                            size_t n);
pgsql_front *jobq__pgsql_front(pgsql_store *store, jobq_slice queue); /* NULL: not kept */
/* What a reservation learned: us >= 0 = it read from the start. */
void jobq__pgsql_learn(pgsql_front *front, int64_t rewinds, int64_t us);
void jobq__pgsql_passed(pgsql_front *front, int rank, int64_t at, int64_t seq, int64_t now_ms);
void jobq__pgsql_unread(pgsql_front *front, int rank); /* ranks behind this one were not read */
void jobq__pgsql_forget_fronts(pgsql_store *store);
/* From where delayed jobs are read now. */
int64_t jobq__pgsql_due_floor(pgsql_store *store);
void jobq__pgsql_due_passed(pgsql_store *store, int64_t floor, int64_t us, bool all,
                            int64_t now_ms);

/* ---- settle.c -------------------------------------------------------------------------------- */

/* Five parameters: those that only end a job, then the others. */
void jobq__pgsql_put_settlements(pgsql_params *p, const jobq_settlement *s, size_t n);
/* One parameter: what is told of those with counters. */
void jobq__pgsql_put_outcomes(pgsql_params *p, const jobq_settlement *s, size_t n);
/* Two parameters: the jobs that follow. */
void jobq__pgsql_put_follows(pgsql_params *p, const jobq_settlement *s, size_t n);
void jobq__pgsql_put_follow(pgsql_params *p, const jobq_push *follow); /* one, or NULL */
int64_t jobq__pgsql_due_of(const jobq_push *item); /* 0 at once, above a moment, below a delay */
int jobq__pgsql_read_settled(pgsql_array *meta, jobq_exchange *x);

/* ---- the operations -------------------------------------------------------------------------- */

int jobq__pgsql_push(void *handle, jobq_push *items, size_t n);
int jobq__pgsql_push_judged(pgsql_store *store, jobq_push *item);
int jobq__pgsql_push_guarded(pgsql_store *store, jobq_push *items, size_t n); /* foreign.c */
int jobq__pgsql_exchange(void *handle, jobq_exchange *x);
int jobq__pgsql_renew(void *handle, jobq_renewal *r);
int jobq__pgsql_leave_worker(void *handle, jobq_slice worker);
int jobq__pgsql_held(void *handle, jobq_slice worker, jobq_batch *out);
int jobq__pgsql_workers(void *handle, jobq_batch *out);
int jobq__pgsql_wait(void *handle, const jobq_wait *w);
/* What an exchange says about the next wait: jobs it got, when the next delayed one is due. */
void jobq__pgsql_note_exchange(pgsql_store *store, const jobq_exchange *x, size_t got,
                               int64_t delayed_ms);
int jobq__pgsql_maintain(void *handle, jobq_maintenance *m);
int jobq__pgsql_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out);
int jobq__pgsql_list(void *handle, jobq_listing *l);
int jobq__pgsql_counts(void *handle, jobq_slice queue, jobq_counts *counts_out);
int jobq__pgsql_queues(void *handle, jobq_batch *out);
int jobq__pgsql_mend(void *handle, jobq_mending *m);
int jobq__pgsql_control(void *handle, jobq_control *c);
int jobq__pgsql_cancel(void *handle, jobq_cancelling *c);
int jobq__pgsql_clear(void *handle, jobq_clearing *c);
int jobq__pgsql_now(void *handle, int64_t *now_ms_out);
int jobq__pgsql_capacity(void *handle, jobq_limit *l);
int jobq__pgsql_book(void *handle, const jobq_minute *minutes, size_t n);
int jobq__pgsql_minutes(void *handle, jobq_minutes *m);
int jobq__pgsql_audit(void *handle, jobq_audit *a);
int jobq__pgsql_examine(void *handle, jobq_examination *e);
int jobq__pgsql_effect(void *handle, jobq_effect *e);
int jobq__pgsql_request(void *handle, jobq_request *r);

#endif
