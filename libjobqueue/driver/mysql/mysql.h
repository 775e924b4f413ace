/* SPDX-License-Identifier: MIT
 *
 * Inside of the driver for MariaDB and MySQL. A job is one row of jobqueue_job for all its life,
 * and one row takes one INSERT, so that a push can stand in the application's own transaction.
 * Where it stands says the column `place`, which leads the index that serves filter and order:
 *
 *     0 ready, 1 ready and taken back, 2 delayed, 3 done, 4 dead, 5 delayed until the holder of its
 *     unique key gives that up, 16 and above: with the worker of that key (jobqueue_worker)
 *
 * The column `holds` is 1 while the job has its unique key, 2 while it waits for it (place 5).
 * The column `due` says what time will do to it, in ranges that do not overlap: dead jobs below 0
 * (by time of death), delayed ones by due time, done ones from DUE_DONE on; NULL = nothing.
 *
 * A hand-out's token: word[0] = seq, word[1] = fence, word[2] = nonce, which no other hand-out has.
 */
#ifndef JOBQ_DRIVER_MYSQL_H
#define JOBQ_DRIVER_MYSQL_H

#include <mysql.h>
#include <string.h>

#include "driver/common.h"

enum {
    PLACE_READY = 0,
    PLACE_TAKEN = 1,
    PLACE_DELAYED = 2,
    PLACE_DONE = 3,
    PLACE_DEAD = 4,
    PLACE_FOLLOWER = 5,
    PLACE_WORKERS = 16
};
enum { MYSQL_MAX_BATCH = 1024 };

#define DUE_DONE "2305843009213693952" /* 2^61 */
#define DUE_DEAD "4611686018427387904" /* 2^62: due = died_at - that */
/* What is set of a job that dies; `reason`, and how long it is kept (0: for ever), are arguments.
 * One that is kept for a time goes on jobqueue_keep then. */
#define DIES(reason, keep)                                                                       \
    "place=4, holds=NULL, taken=0, cancel=0, reason=" reason ", died_at=" NOW_MS ", due=" NOW_MS \
    "-" DUE_DEAD ", keep_until=IF(" keep ">0, " NOW_MS "+" keep ", NULL)"
/* The server's clock in milliseconds, whatever the session's time zone is. */
#define NOW_MS "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)"
/* When what worker w holds may be taken: not before one lease after the server's own start, which
 * is argument 1 (rule C5). */
#define LAPSE_OF_W "GREATEST(w.alive_until, ?1+w.lease)"

/* An argument of a statement. */
typedef struct {
    const void *p; /* bytes, NULL = SQL's NULL or a number */
    size_t n;
    int64_t number;
    bool is_number;
} mysql_arg;

static inline mysql_arg number_arg(int64_t number)
{
    mysql_arg arg = {NULL, 0, number, true};

    return arg;
}

static inline mysql_arg bytes_arg(jobq_slice s)
{
    mysql_arg arg = {s.p, s.n, 0, false};

    return arg;
}

/* The arguments of a part in braces (statement.c). */
typedef struct {
    const mysql_arg *args;
    size_t count;
} mysql_list;

typedef struct mysql_statement mysql_statement;

enum { QUEUES_CACHED = 32 };
typedef struct {
    size_t n;
    char name[129]; /* with the mark of a hidden one */
} mysql_queue;

/* How far the front of a queue's line has been taken. What is taken leaves its entry in the index
 * until the server purges it; a claim under load starts behind those. */
enum { HINTS = 4 };
typedef struct {
    mysql_queue queue;
    int ranking; /* of the last one taken, as the following */
    int64_t at, seq;
    int64_t began_us; /* the last claim from the start */
    bool set;
} mysql_hint;

typedef struct {
    const jobq_driver_config *config;
    const char *socket; /* path, NULL: by network */
    const char *database;
    bool tls;
    MYSQL *db; /* NULL: not connected */
    mysql_statement *statements;
    int64_t deadline_us; /* of the call under way, monotonic */
    int64_t used_us;     /* when the connection was last taken for a call */
    int64_t max_packet;
    int64_t started_at_ms; /* the server, by its clock; 0 = not asked yet */
    int64_t gap_ms;        /* of polling: grows while nothing happens */
    int64_t lively_us;     /* the last exchange that settled or took something */
    struct {
        int64_t at_us; /* 0 = it did not, or something may be ready */
        uint64_t queues;
        int64_t due_in_ms, control;
    } found_empty;      /* the last exchange found nothing ready */
    int schema_version; /* -1: not read yet */
    int64_t session;    /* the server's number of the connection, 0 = not known */
    struct {
        int64_t session, server_at_ms; /* 0 = none; when the server had started */
    } lost;         /* a connection that was given up: what was said on it may still be done */
    bool timed_out; /* the deadline passed in the middle of a conversation */
    bool suspect;   /* drop the connection when the call ends */
    bool transient; /* the last failure goes away by doing it again: deadlock, lock wait */
    bool in_transaction;
    bool in_doubt;  /* if the connection breaks now, the write may have happened */
    bool doubtful;  /* the operation says JOBQ_EUNKNOWN then */
    bool fruitless; /* the last claim got nothing although there is something: locked by others */
    mysql_queue queues[QUEUES_CACHED]; /* names that stand in jobqueue_queue */
    size_t queue_count;
    mysql_hint hints[HINTS];
    size_t next_hint;
    struct {
        mysql_queue *queues; /* that have a capacity, as far as is known, sorted by bytes */
        size_t count;
        int64_t generation; /* of that knowledge */
        int64_t checked_us; /* when a push last compared it with the store's */
    } limits;
    int64_t healed_us;      /* when maintenance last looked for keys without holders */
    int64_t cleaned_minute; /* up to which old numbers were removed */
    size_t claimed;         /* by the last reservation */
    bool has_routines;      /* they were seen */
    bool compound;          /* the server takes compound statements: MariaDB */
    bool arrays;            /* and many rows of arguments at once: array.c */
} mysql_store;

extern const jobq_driver jobq__mysql_driver;

/* ---- connect.c ------------------------------------------------------------------------------- */

void jobq__mysql_disconnect(mysql_store *store);

/* How an operation is done. */
enum {
    MYSQL_FOR_SCHEMA = 1,  /* the tables may be absent or of another version */
    MYSQL_TRANSACTION = 2, /* begun before, committed after; again after a deadlock */
    MYSQL_DOUBTFUL = 4     /* a lost answer is JOBQ_EUNKNOWN */
};
/* Connects when needed, starts the deadline, does the work (again while the store refuses it for
 * the moment), and leaves nothing open. */
int jobq__mysql_do(mysql_store *store, int how, int (*work)(mysql_store *store, void *payload),
                   void *payload);

/* ---- options.c ------------------------------------------------------------------------------- */

bool jobq__mysql_takes(const char *name);
extern const char *const jobq__mysql_own[];
int jobq__mysql_read_options(mysql_store *store);
/* Before connecting. */
int jobq__mysql_apply_options(const mysql_store *store, MYSQL *db);

/* ---- server.c -------------------------------------------------------------------------------- */

/* Has the server what we need? By its version string; pure. */
bool jobq__mysql_is_new_enough(const char *version);
int jobq__mysql_check_server(const char *version);
/* When the server started, by its clock; asked once per connection. */
int jobq__mysql_started_at(mysql_store *store, int64_t *at_ms_out);
int jobq__mysql_now(void *handle, int64_t *now_ms_out);
/* A connection that is dropped in the middle of something is remembered, and ended on the server
 * before anything is said on the next one: behind it nothing happens any more. */
void jobq__mysql_note_lost(mysql_store *store);
int jobq__mysql_end_lost(mysql_store *store);

/* ---- wire.c: calls of the client library that end by the deadline ---------------------------- */

int jobq__mysql_connect_wire(mysql_store *store, MYSQL *db, const char *host, unsigned int port);
int jobq__mysql_query(mysql_store *store, const char *sql); /* without result, without arguments */
/* The first row's columns as numbers; NULL: 0. */
int jobq__mysql_query_numbers(mysql_store *store, const char *sql, int64_t *to, unsigned int n);
int jobq__mysql_wire_prepare(mysql_store *store, MYSQL_STMT *stmt, const char *sql, size_t n);
int jobq__mysql_wire_execute(mysql_store *store, MYSQL_STMT *stmt);
int jobq__mysql_wire_store(mysql_store *store, MYSQL_STMT *stmt);
/* 1: there is one more result, 0: that was all. */
int jobq__mysql_wire_next(mysql_store *store, MYSQL_STMT *stmt);
/* False: the other side has closed it, or said something nobody asked for. */
bool jobq__mysql_is_quiet(const mysql_store *store);

/* ---- error.c --------------------------------------------------------------------------------- */

/* Words a failure by the library's number and text, and notes what it means for the connection. */
int jobq__mysql_fail(mysql_store *store, unsigned int number, const char *text);
/* The last failure was of a statement of the caller's: said as JOBQ_EINVAL when it is about that
 * (`what`: "guard"), left as it is when any statement could have met it. */
int jobq__mysql_refuse_foreign(mysql_store *store, const char *what, unsigned int number,
                               const char *text);
/* The last failure struck where nobody can know whether what was to be written was. */
int jobq__mysql_say_lost(mysql_store *store);
enum {
    MYSQL_NULL_REFUSED = 1048,
    MYSQL_DUPLICATE_COLUMN = 1060,
    MYSQL_DUPLICATE = 1062,
    MYSQL_PARSE_ERROR = 1064,
    MYSQL_TABLE_DENIED = 1142,
    MYSQL_NO_TABLE = 1146,
    MYSQL_LOCK_WAIT = 1205,
    MYSQL_NOT_PREPARED = 1295 /* a statement that cannot be */
};

/* ---- statement.c, rows.c --------------------------------------------------------------------- */

/* Prepared once per connection. In the text ?1 ... ?9 ?a ... ?f are arguments; what stands in
 * braces is repeated `copies` times with commas between, its ? are taken from the lists in order (a
 * list that is too short goes on with its last argument); what stands between backticks is repeated
 * `blocks` times, its bare ? are taken from the last list. Texts are static. */
enum { MYSQL_BLOCKS = 3, MYSQL_LISTS };
typedef struct {
    const char *sql;
    const mysql_arg *args;
    mysql_list list[MYSQL_LISTS];
    size_t copies, blocks;
    size_t rows; /* > 1: the first list is so many rows of arguments, and there are no others; the
                    statement is done for each, as one. Where the store's `arrays` is set. */
} mysql_call;

/* array.c: can calls have rows? */
bool jobq__mysql_takes_arrays(MYSQL *db);
/* Rows changed (found), or an error. */
int64_t jobq__mysql_run_call(mysql_store *store, const mysql_call *call);
int64_t jobq__mysql_run(mysql_store *store, const char *sql, const mysql_arg *args);
/* The list stands for one ? per copy; it is filled up to one of few sizes. */
int64_t jobq__mysql_run_list(mysql_store *store, const char *sql, const mysql_arg *args,
                             mysql_list list, mysql_list second);
int64_t jobq__mysql_last_id(const mysql_store *store,
                            const char *sql); /* of a statement just run */
size_t jobq__mysql_copies(size_t n);          /* the size a list of n is filled up to */

/* The rows stay until jobq__mysql_end; NULL has none. */
int jobq__mysql_select_call(mysql_store *store, const mysql_call *call, mysql_statement **rows_out);
int jobq__mysql_select(mysql_store *store, const char *sql, const mysql_arg *args,
                       mysql_statement **rows_out);
int jobq__mysql_select_list(mysql_store *store, const char *sql, const mysql_arg *args,
                            mysql_list list, mysql_statement **rows_out);
/* Of one that answers with several results: 1 the first one's rows are here, 0 there are none. */
int jobq__mysql_select_many(mysql_store *store, const mysql_call *call, mysql_statement **rows_out);
/* 1: those of the next one, 0: that was the last. */
int jobq__mysql_more(mysql_store *store, mysql_statement *rows);
unsigned int jobq__mysql_columns(const mysql_statement *rows);
bool jobq__mysql_next(mysql_statement *rows);
void jobq__mysql_end(mysql_statement *rows);
int64_t jobq__mysql_number(const mysql_statement *rows, unsigned int column); /* NULL: 0 */
bool jobq__mysql_is_null(const mysql_statement *rows, unsigned int column);
size_t jobq__mysql_length(const mysql_statement *rows, unsigned int column);
/* Into the batch; NULL stays absent. False: no memory. */
bool jobq__mysql_copy(const mysql_statement *rows, unsigned int column, jobq_batch *out,
                      jobq_slice *to);
/* Into memory of that length. */
void jobq__mysql_read(const mysql_statement *rows, unsigned int column, void *to, size_t n);
/* One row's first column; *found_out says whether there is a row. */
int jobq__mysql_ask(mysql_store *store, const char *sql, const mysql_arg *args, bool *found_out,
                    int64_t *number_out);
/* From column `at` on: deliveries, failures, crashes, releases, losses, exceptions, parks,
 * parked_since, fence, enqueued_at, base_at. */
#define COUNTER_COLUMNS                                                                  \
    "deliveries, failures, crashes, releases, losses, exceptions, parks, parked_since, " \
    "fence, enqueued_at, base_at"
void jobq__mysql_read_counters(const mysql_statement *rows, unsigned int at, jobq_record *r);
void jobq__mysql_forget_statements(mysql_store *store);
/* Closes one that was made for once, when the connection allows it. */
void jobq__mysql_close_statement(mysql_store *store, MYSQL_STMT *stmt);

int jobq__mysql_begin(mysql_store *store);
int jobq__mysql_commit(mysql_store *store);
void jobq__mysql_roll_back(mysql_store *store);

/* ---- schema.c -------------------------------------------------------------------------------- */

int jobq__mysql_schema(void *handle);
/* What is asked of a new connection: the largest packet, its number, the schema's version. */
int jobq__mysql_read_facts(mysql_store *store);
int jobq__mysql_check_schema(mysql_store *store); /* refuses a version that is not ours */

/* ---- state.c: what every exchange and maintenance asks first --------------------------------- */

typedef struct {
    int64_t now_ms;
    int64_t worker;     /* key of the worker's record, 0 = none */
    bool alive;         /* its lease has not run out */
    bool any_taken;     /* there are jobs taken back */
    bool any_ready;     /* in the queues asked for */
    int64_t next_due;   /* of jobs, 0 = none */
    int64_t next_lapse; /* of other workers that hold something, 0 = none */
    int64_t control;
    bool looked; /* any_ready was asked for */
} mysql_state;
int jobq__mysql_read_state(mysql_store *store, jobq_slice worker, const jobq_slice *queues,
                           size_t queue_count, mysql_state *out);
/* 1: a job of these queues is ready; *due_in_out = until the next delayed one is due, ms, -1 =
 * none. */
int jobq__mysql_look(mysql_store *store, const jobq_slice *queues, size_t queue_count,
                     int64_t *due_in_out, int64_t *control_out);
/* Makes sure that the name stands in jobqueue_queue (a hidden one's need not). It is said by who
 * takes a job: until then the job itself is there to show its queue, and a push stays one
 * statement. */
bool jobq__mysql_is_known(const mysql_store *store, jobq_slice name);
int jobq__mysql_know_queue(mysql_store *store, jobq_slice name);

/* ---- the operations -------------------------------------------------------------------------- */

int jobq__mysql_push(void *handle, jobq_push *items, size_t n);
/* id, queue, name, version, rank, unique key, header, body */
enum { MYSQL_ITEM_ARGS = 8 };
void jobq__mysql_item_args(mysql_arg args[MYSQL_ITEM_ARGS], const jobq_push *item);
/* An insert that compares the limits failed. They may be others than the connection knows: it
 * learns them, and all is begun anew. What has failed. */
int64_t jobq__mysql_learn_anew(mysql_store *store, int64_t failed);
int64_t jobq__mysql_row_limit(const mysql_store *store); /* bytes of a job */
/* In a transaction that ends a job; NULL: nothing follows it. */
int jobq__mysql_push_follow(mysql_store *store, const jobq_push *follow);
/* unique.c. A push that replaces what has its key: *judged_out false when nobody has it. `room`:
 * there is some for one more job. */
int jobq__mysql_replace(mysql_store *store, jobq_push *item, bool room, bool *judged_out);
/* The holder has just given its key up, in the transaction under way: it goes to the follower, if
 * there is one; an earlier due time is put into *due. */
int jobq__mysql_pass_key(mysql_store *store, jobq_slice queue, jobq_slice key, int64_t *due);
/* Gives their keys to followers whose holders went without doing so (tables changed by hand, an
 * older library that was still at work): never needed otherwise. */
void jobq__mysql_heal_followers(mysql_store *store);
/* A job died that is not kept for ever. */
int jobq__mysql_note_keep(mysql_store *store, int64_t seq);
/* capacity.c */
typedef struct {
    jobq_slice queue;
    int64_t left, taken; /* for so many more jobs there is room; so many were stored */
    bool crowded;        /* to be folded */
} mysql_room;
bool jobq__mysql_is_limited(const mysql_store *store, jobq_slice queue);
int jobq__mysql_learn_limits(mysql_store *store);
void jobq__mysql_forget_limits(mysql_store *store);
/* Sets left; counts the queue when it says that it has not room for `need`. */
int jobq__mysql_read_room(mysql_store *store, int64_t need, mysql_room *room);
int jobq__mysql_take_room(mysql_store *store, const mysql_room *room); /* with the jobs */
void jobq__mysql_fold_room(mysql_store *store, jobq_slice queue); /* a transaction of its own */
void jobq__mysql_fold_crowded(mysql_store *store);
/* request.c: the functions in the store, where they may be made. */
enum { MYSQL_ROUTINES = 2 };
#define ROUTINES_ADVICE                                                                      \
    "grant CREATE ROUTINE, ALTER ROUTINE and EXECUTE on the database (and, with the binary " \
    "log on, set log_bin_trust_function_creators=1), and run `jobqueue migrate`"
int jobq__mysql_make_routines(mysql_store *store);
int jobq__mysql_count_routines(mysql_store *store, int64_t *count_out);
/* foreign.c: 1 true, 0 not, or an error. In the transaction under way. */
int jobq__mysql_judge_guard(mysql_store *store, const jobq_statement *guard);
int jobq__mysql_exchange(void *handle, jobq_exchange *x);
/* settle.c. MYSQL_MISMATCH: some token is not current: roll back and do it carefully. */
enum { MYSQL_MISMATCH = 1, MYSQL_DECLINED };
int jobq__mysql_settle(mysql_store *store, jobq_exchange *x, mysql_state *state, bool careful);
/* A job's history with one entry more and at most JOBQ__HISTORY_MAX; false: no memory. */
bool jobq__mysql_add_history(jobq_slice history, jobq_slice entry, jobq__buf *out);
enum { MYSQL_COMPACT = 16 }; /* so many jobs settled, and taken, at most */
/* compact.c. MYSQL_MISMATCH as above, MYSQL_DECLINED: nothing was done; both: statement by
 * statement. It takes less than is wanted if that is much: `claimed` says how many. */
bool jobq__mysql_is_compact(const mysql_store *store, const jobq_exchange *x);
int jobq__mysql_compact(mysql_store *store, jobq_exchange *x, mysql_state *state);
int jobq__mysql_renew(void *handle, jobq_renewal *r);
int jobq__mysql_leave(void *handle, jobq_slice worker);
int jobq__mysql_held(void *handle, jobq_slice worker, jobq_batch *out);
int jobq__mysql_workers(void *handle, jobq_batch *out);
/* hint.c */
mysql_hint *jobq__mysql_hint(mysql_store *store, jobq_slice queue);
bool jobq__mysql_is_hint_good(const mysql_hint *hint);
void jobq__mysql_reset_hints(mysql_store *store);
/* The record a reservation stands on: made or revived when there is none that lives. */
int jobq__mysql_keep_worker(mysql_store *store, jobq_slice id, int64_t lease_ms,
                            mysql_state *state);
int jobq__mysql_maintain(void *handle, jobq_maintenance *m);
int jobq__mysql_wait(void *handle, const jobq_wait *w);
/* wait.c: after a claim: was something passed by? `state` is what was known before it. */
int jobq__mysql_weigh(mysql_store *store, jobq_exchange *x, bool got, const mysql_state *state);
/* Ends every exchange: a wait that follows at once need not ask what it has just said. */
void jobq__mysql_note_exchange(mysql_store *store, const jobq_exchange *x, int rc, bool lively);
int jobq__mysql_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out);
int jobq__mysql_list(void *handle, jobq_listing *l);
int jobq__mysql_counts(void *handle, jobq_slice queue, jobq_counts *counts_out);
int jobq__mysql_queues(void *handle, jobq_batch *out);
int jobq__mysql_mend(void *handle, jobq_mending *m);
int jobq__mysql_control(void *handle, jobq_control *c);
int jobq__mysql_cancel(void *handle, jobq_cancelling *c);
int jobq__mysql_clear(void *handle, jobq_clearing *c);
int jobq__mysql_capacity(void *handle, jobq_limit *l);
int jobq__mysql_book(void *handle, const jobq_minute *minutes, size_t n);
int jobq__mysql_minutes(void *handle, jobq_minutes *m);
int jobq__mysql_audit(void *handle, jobq_audit *a);
int jobq__mysql_examine(void *handle, jobq_examination *e);
int jobq__mysql_effect(void *handle, jobq_effect *e);
int jobq__mysql_request(void *handle, jobq_request *r);

#endif
