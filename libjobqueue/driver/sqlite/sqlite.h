/* SPDX-License-Identifier: MIT
 *
 * Inside of the SQLite driver. The tables (schema.c) keep what a job is apart from where it stands,
 * so that handing out and finishing never rewrites a job's row:
 *
 *     jobqueue_job       what it is: one row per job, state live, done or dead
 *     jobqueue_ready     stands in line: (queue, rank, available_at, seq)
 *     jobqueue_taken     the same for jobs taken back from expired workers
 *     jobqueue_delayed   waits for its time: (due, seq)
 *     jobqueue_held      is with a worker: seq, worker, nonce of the hand-out
 *
 * A live job stands in exactly one of the four; every change of place is one transaction.
 * A hand-out's token: word[0] = seq, word[1] = fence, word[2] = nonce.
 */
#ifndef JOBQ_DRIVER_SQLITE_H
#define JOBQ_DRIVER_SQLITE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "driver/common.h"

enum { SQL_LIVE = 0, SQL_DONE = 3, SQL_DEAD = 4 };         /* jobqueue_job.state */
enum { SQL_READY = 0, SQL_DELAYED = 1, SQL_RESERVED = 2 }; /* what a live job is seen as */
enum { SQL_QUEUES_CACHED = 32 };

/* Of the jobs with a unique key, by jobqueue_job_unique: as in the index. */
#define SQL_KEYED "unique_key IS NOT NULL AND state=0 AND key_state<>1"
#define SQL_FOLLOWS SQL_KEYED " AND key_state=2"
/* The job that has a unique key now. */
#define SQL_HOLDER                 \
    "SELECT id FROM jobqueue_job " \
    "WHERE queue=?1 AND unique_key=?2 AND " SQL_KEYED " AND key_state=0"
#define SQL_QUEUES "SELECT name FROM jobqueue_queue ORDER BY name"

/* Prepared statements, kept per connection. The text stands where it is used, or above when two
 * files use it. */
typedef enum {
    ST_BEGIN,
    ST_COMMIT,
    ST_ROLLBACK,
    ST_QUEUE_GET,
    ST_QUEUE_ADD,
    ST_QUEUES,
    ST_JOB_ADD,
    ST_READY_ADD,
    ST_READY_ADD_RUN,
    ST_DELAYED_ADD,
    ST_DELAYED_ADD_RUN,
    ST_ID_EXISTS,
    ST_HOLDER,
    ST_RESERVE_READY,
    ST_RESERVE_TAKEN,
    ST_HOLD_READY,
    ST_HOLD_TAKEN,
    ST_CUT_READY,
    ST_CUT_TAKEN,
    ST_UNHOLD,
    ST_JOB_DROP,
    ST_JOB_DROP_ANY,
    ST_ERROR_DROP,
    ST_HISTORY_DROP,
    ST_OUTCOME_DROP,
    ST_JOB_KEEP,
    ST_JOB_BACK,
    ST_JOB_GIVE_BACK,
    ST_JOB_DEAD,
    ST_LINE_UP,
    ST_LINE_UP_TAKEN,
    ST_PUT_OFF,
    ST_ERROR_SET,
    ST_HISTORY_ADD,
    ST_HISTORY_CUT,
    ST_NEXT_DUE,
    ST_NEXT_EXPIRY,
    ST_WORKER_GET,
    ST_WORKER_ADD,
    ST_WORKER_RENEW,
    ST_WORKER_DESCRIBE,
    ST_WORKER_LEAVE,
    ST_WORKER_HELD,
    ST_HELD,
    ST_WORKERS,
    ST_PROMOTE,
    ST_PROMOTED_CUT,
    ST_UNHOLD_ANY,
    ST_WORKER_SWEEP,
    ST_EXPIRED_NEXT,
    ST_EXPIRED_HELD,
    ST_TAKE_BACK,
    ST_WORKER_TAKEN,
    ST_WORKER_DROP,
    ST_KEPT_NEXT,
    ST_SPARE,
    ST_LOOK,
    ST_FIND,
    ST_LIST_READY,
    ST_LIST_DELAYED,
    ST_LIST_RESERVED,
    ST_LIST_DONE,
    ST_LIST_DEAD,
    ST_SHOW_ERROR,
    ST_SHOW_HISTORY,
    ST_COUNTS,
    ST_OLDEST,
    ST_MEND_GET,
    ST_MEND_RETRY,
    ST_CONTROL_GET,
    ST_CONTROL_BUMP,
    ST_GENERATION_BUMP,
    ST_PAUSES,
    ST_PAUSE_SET,
    ST_PAUSE_END,
    ST_CANCEL_GET,
    ST_CANCEL_NOTE,
    ST_CANCEL_BURY,
    ST_CUT_PLACE_READY,
    ST_CUT_PLACE_TAKEN,
    ST_CUT_PLACE_DELAYED,
    ST_CLEAR_NEXT,
    ST_HOLDS,
    ST_KEY_FREE,
    ST_OUTCOME_SET,
    ST_TRACE,
    ST_SHOW_OUTCOME,
    ST_FOLLOWER,
    ST_FOLLOWER_ADD,
    ST_REPLACE,
    ST_BARE,
    ST_LIMIT_GET,
    ST_LIMIT_SET,
    ST_ROOM_SET,
    ST_ROOM_COUNT,
    ST_EFFECT_HOLDS,
    ST_MINUTE_ADD,
    ST_MINUTES,
    ST_MINUTES_CUT,
    ST_JOB_STATE,
    ST_STRANDED,
    ST_KEY_TAKE,
    ST_AUDIT_JOBS,
    ST_AUDIT_READY,
    ST_AUDIT_TAKEN,
    ST_AUDIT_DELAYED,
    ST_AUDIT_HELD,
    ST_COUNT
} sqlite_statement;

typedef struct {
    int64_t key; /* 0 = free */
    size_t n;
    char name[129];
} sqlite_queue;

typedef struct sqlite_store {
    struct sqlite_store *next, **link; /* list of open stores, for forks */
    char *path, *wal_path, *shm_path, *folder;
    bool migrate, full_sync;
    bool syncing; /* what synchronous says now: do commits wait for the disk? */
    bool hurried; /* somebody waits for the transaction under way: no checkpoint after it */
    int64_t timeout_ms;
    int64_t unlimited; /* a queue that has no capacity, for the transaction under way; 0 = none */
    sqlite3 *db;       /* NULL: not connected */
    int busy;          /* atomic: a call is under way */
    bool suspect;      /* drop the connection when the call ends */
    dev_t device;
    ino_t inode;
    int64_t deadline_us; /* of the call under way, monotonic */
    /* stall.c, monotonic, 0 = never: since when the lock is waited for (beyond failed calls), when
     * the transaction under way got it, when it was last got after a long wait. */
    int64_t waiting_us, begun_us, stalled_us;
    int64_t followers_us; /* when followers were last looked at, monotonic, 0 = never */
    char boot[37];
    sqlite3_stmt *statements[ST_COUNT];
    sqlite_queue queues[SQL_QUEUES_CACHED];
    size_t queue_count;
    int ring_fd, change_fd; /* inotify, -1 = none */
} sqlite_store;

extern const jobq_driver jobq__sqlite_driver;

/* ---- connect.c: every operation is enter ... leave ------------------------------------------- */

/* Connects when needed, starts the deadline. */
int jobq__sqlite_enter(sqlite_store *store, bool for_schema);
int jobq__sqlite_leave(sqlite_store *store, int rc); /* returns rc */
void jobq__sqlite_disconnect(sqlite_store *store);
/* Tells waiting workers that something may be ready; after the commit. */
void jobq__sqlite_ring(const sqlite_store *store);

/* ---- file.c ---------------------------------------------------------------------------------- */

/* A kind of file system, and what is to be said of a file that lies on one. */
typedef struct {
    const char *name, *advice; /* NULL: unknown, nothing */
    uint32_t magic;
    int grade; /* JOBQ_REMARK_*; PROBLEM: it is refused */
} jobq__sqlite_disk;
/* Of the file's folder; NULL: errno says why it is not known. */
const jobq__sqlite_disk *jobq__sqlite_disk_of(const sqlite_store *store);

/* Before opening; makes the file when allowed. */
int jobq__sqlite_check_file(sqlite_store *store, bool create);
int jobq__sqlite_remember_file(sqlite_store *store);
bool jobq__sqlite_is_same_file(const sqlite_store *store); /* not deleted or replaced since */
int jobq__sqlite_refuse(int code, int flags, int native, const sqlite_store *store,
                        const char *what);

/* ---- statement.c ----------------------------------------------------------------------------- */

/* The prepared statement, NULL with the error set. */
sqlite3_stmt *jobq__sqlite_use(sqlite_store *store, sqlite_statement which, const char *sql);
int jobq__sqlite_run(sqlite_store *store, sqlite3_stmt *stmt); /* to its end, and reset */
/* Runs a statement whose only parameter is a number, a job's seq or a worker's key. */
int jobq__sqlite_run_on(sqlite_store *store, sqlite_statement which, const char *sql, int64_t seq);
/* Runs one whose parameters are two numbers. */
int jobq__sqlite_run_with(sqlite_store *store, sqlite_statement which, const char *sql,
                          int64_t first, int64_t second);
/* 1 a row stands ready (reset it later), 0 none (is reset), or an error (is reset). */
int jobq__sqlite_row(sqlite_store *store, sqlite3_stmt *stmt);
void jobq__sqlite_bind(sqlite3_stmt *stmt, int at, jobq_slice s); /* as text */
void jobq__sqlite_bind_blob(sqlite3_stmt *stmt, int at, jobq_slice s);
/* A column into the batch; false: no memory. */
bool jobq__sqlite_copy(sqlite3_stmt *stmt, int column, jobq_batch *out, jobq_slice *to);
/* From column `at` on: the counters as they stand in the table, fence, enqueued_at, base_at. What
 * is held counts one delivery more than its row says. */
void jobq__sqlite_read_counters(sqlite3_stmt *stmt, int at, bool held, jobq_record *r);
int jobq__sqlite_begin(sqlite_store *store);        /* takes the write lock */
int jobq__sqlite_begin_schema(sqlite_store *store); /* when there may be no tables yet */
/* Likewise for what somebody waits for; sync false: the commit does not wait for the disk. */
int jobq__sqlite_begin_hurried(sqlite_store *store, bool sync);
int jobq__sqlite_set_sync(sqlite_store *store, bool full);
/* Commits (rc 0) or rolls back; the result. */
int jobq__sqlite_finish(sqlite_store *store, int rc);
/* Words the connection's last error. */
int jobq__sqlite_fail(sqlite_store *store, const char *doing);
/* *key_out = 0: unknown. */
int jobq__sqlite_queue_key(sqlite_store *store, jobq_slice name, bool add, int64_t *key_out);

/* ---- stall.c: a lock that was held for long -------------------------------------------------- */

void jobq__sqlite_note_refused(sqlite_store *store, int64_t asked_us);
int jobq__sqlite_note_begun(sqlite_store *store, int64_t asked_us); /* in the transaction */
int jobq__sqlite_note_held(sqlite_store *store);                    /* before the commit */
/* So long nothing is taken back: others may still be waiting. 0: all had their turn. */
int64_t jobq__sqlite_settles_ms(const sqlite_store *store);

/* ---- schema.c -------------------------------------------------------------------------------- */

int jobq__sqlite_migrate(sqlite_store *store);
int jobq__sqlite_check_schema(sqlite_store *store);
/* What the schema of this library is made of, into an empty database of nobody else's. */
int jobq__sqlite_make_model(sqlite3 *db);

/* ---- the operations -------------------------------------------------------------------------- */

int jobq__sqlite_push(void *handle, jobq_push *items, size_t n);
int jobq__sqlite_exchange(void *handle, jobq_exchange *x);
/* One settlement; *ring is set when it puts a job back in a line. */
int jobq__sqlite_settle(sqlite_store *store, int64_t worker, jobq_settlement *s, int64_t now_ms,
                        bool *ring);
int jobq__sqlite_next_due(sqlite_store *store, bool with_workers, int64_t but_worker,
                          int64_t now_ms, int64_t *due_out);
int jobq__sqlite_drop_job(sqlite_store *store, int64_t seq);
/* Out of whichever line it stands in. */
int jobq__sqlite_leave_lines(sqlite_store *store, int64_t seq);
/* Absent entry: nothing. */
int jobq__sqlite_add_history(sqlite_store *store, int64_t seq, jobq_slice entry);
int jobq__sqlite_line_up(sqlite_store *store, int64_t seq, bool taken);
int jobq__sqlite_put_off(sqlite_store *store, int64_t seq); /* until its available_at */
int jobq__sqlite_renew(void *handle, jobq_renewal *r);
int jobq__sqlite_leave_worker(void *handle, jobq_slice worker);
int jobq__sqlite_held(void *handle, jobq_slice worker, jobq_batch *out);
int jobq__sqlite_workers(void *handle, jobq_batch *out);
int jobq__sqlite_maintain(void *handle, jobq_maintenance *m);
typedef struct {
    int64_t key; /* 0: no record */
    bool alive, taken;
} sqlite_worker;
int jobq__sqlite_worker(sqlite_store *store, jobq_slice id, sqlite_worker *out);
/* The record a reservation stands on: made or revived when there is none that lives. */
int jobq__sqlite_keep_worker(sqlite_store *store, jobq_slice id, int64_t lease_ms,
                             sqlite_worker *worker);
int jobq__sqlite_wait(void *handle, const jobq_wait *w);
/* 1: a job of these queues is ready; *due_out = when the next delayed one is, 0 = none. */
int jobq__sqlite_look(sqlite_store *store, const jobq_slice *queues, size_t count, int64_t *due_out,
                      int64_t *control_out);
void jobq__sqlite_wait_close(sqlite_store *store);
int jobq__sqlite_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out);
int jobq__sqlite_list(void *handle, jobq_listing *l);
int jobq__sqlite_counts(void *handle, jobq_slice queue, jobq_counts *counts_out);
int jobq__sqlite_queues(void *handle, jobq_batch *out);
int jobq__sqlite_mend(void *handle, jobq_mending *m);
int jobq__sqlite_control(void *handle, jobq_control *c);
int jobq__sqlite_cancel(void *handle, jobq_cancelling *c);
int jobq__sqlite_clear(void *handle, jobq_clearing *c);
int jobq__sqlite_capacity(void *handle, jobq_limit *l);
/* After one more job was stored: 1 there was room for it, 0 it is one too many. */
int jobq__sqlite_has_room(sqlite_store *store, int64_t queue);
int jobq__sqlite_book(void *handle, const jobq_minute *minutes, size_t n);
int jobq__sqlite_minutes(void *handle, jobq_minutes *m);
int jobq__sqlite_drop_minutes(sqlite_store *store, int64_t before_minute);
int jobq__sqlite_audit(void *handle, jobq_audit *a);
int jobq__sqlite_examine(void *handle, jobq_examination *e);
int jobq__sqlite_effect(void *handle, jobq_effect *e);
int jobq__sqlite_request(void *handle, jobq_request *r);
/* 1: the guard is true, or there is none. */
int jobq__sqlite_judge_guard(sqlite_store *store, const jobq_statement *guard);
/* A push whose unique key is held, when it is to replace; sets result and holder. */
int jobq__sqlite_replace(sqlite_store *store, jobq_push *item, int64_t queue, int64_t due_ms,
                         int64_t now_ms);
/* Stores a job that nobody gets until the key's holder gives it up; 1 stored, 0 refused. */
int jobq__sqlite_add_job(sqlite_store *store, const jobq_push *item, int64_t queue, int64_t due_ms,
                         int64_t now_ms, bool follower);
/* The value that tells of every change. */
int jobq__sqlite_read_control(sqlite_store *store, int64_t *control_out);
/* A job that follows another's end, in the transaction under way; NULL: nothing. */
int jobq__sqlite_add_follow(sqlite_store *store, const jobq_push *follow, int64_t now_ms);

#endif
