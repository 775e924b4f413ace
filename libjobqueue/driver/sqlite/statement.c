/* SPDX-License-Identifier: MIT
 *
 * Prepared statements, transactions, and the wording of SQLite's errors.
 */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* By primary code. drop: the connection is closed when the call ends, and the next call opens
 * the file anew. */
static const struct {
    int native, code, flags;
    bool drop;
    const char *meaning; /* NULL: SQLite's own text */
} failures[] = {
    {SQLITE_BUSY, JOBQ_EBUSY, JOBQ__RETRYABLE, false,
     "database is locked: somebody else held it until the deadline"},
    {SQLITE_LOCKED, JOBQ_EBUSY, JOBQ__RETRYABLE, false,
     "database is locked: somebody else held it until the deadline"},
    {SQLITE_FULL, JOBQ_EIO, JOBQ__RETRYABLE, true, "the disk is full"},
    {SQLITE_READONLY, JOBQ_EIO, 0, true, "the file or its folder is read-only"},
    {SQLITE_PERM, JOBQ_EIO, 0, true, "access to the file was refused"},
    {SQLITE_AUTH, JOBQ_EIO, 0, true, "access to the file was refused"},
    {SQLITE_CANTOPEN, JOBQ_ECONNECT, JOBQ__RETRYABLE, true,
     "the file or its -wal or -shm cannot be opened"},
    {SQLITE_IOERR, JOBQ_EIO, JOBQ__RETRYABLE, true, NULL},
    {SQLITE_PROTOCOL, JOBQ_EBUSY, JOBQ__RETRYABLE, true, NULL},
    {SQLITE_CORRUPT, JOBQ_EIO, 0, true, "the file is damaged (see `PRAGMA integrity_check`)"},
    {SQLITE_NOTADB, JOBQ_ECONF, JOBQ__FATAL, true, "the file is not an sqlite database"},
    {SQLITE_NOMEM, JOBQ_ENOMEM, 0, false, "out of memory"},
    {SQLITE_TOOBIG, JOBQ_EINVAL, 0, false, "a value is too large for sqlite"},
    {SQLITE_CONSTRAINT, JOBQ_EINVAL, 0, false, NULL},
    {SQLITE_MISMATCH, JOBQ_EINVAL, 0, false, NULL},
    {SQLITE_RANGE, JOBQ_EBUG, 0, false, NULL},
    {SQLITE_MISUSE, JOBQ_EBUG, 0, true, NULL},
    {SQLITE_INTERRUPT, JOBQ_EINTR, JOBQ__RETRYABLE, false, NULL},
};

static bool is_read_only(const sqlite_store *store)
{
    return access(store->folder, W_OK) != 0 && (errno == EROFS || errno == EACCES);
}

static bool is_full(const sqlite_store *store)
{
    struct statvfs fs;

    return statvfs(store->folder, &fs) == 0 && fs.f_bavail * fs.f_frsize < 65536;
}

/* SQLite says "cannot open" for a read-only file system too, and "I/O error" for a full one. */
static int refine(const sqlite_store *store, int native)
{
    int primary = native & 0xff;

    if (primary == SQLITE_CANTOPEN && is_read_only(store))
        return SQLITE_READONLY;
    if ((primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR) && is_full(store))
        return SQLITE_FULL;
    return native;
}

int jobq__sqlite_fail(sqlite_store *store, const char *doing)
{
    int native = refine(store, store->db ? sqlite3_extended_errcode(store->db) : SQLITE_NOMEM);
    const char *text = store->db ? sqlite3_errmsg(store->db) : "out of memory";

    if (store->db && (native & 0xff) != SQLITE_BUSY && store->inode &&
        !jobq__sqlite_is_same_file(store)) {
        store->suspect = true;
        return jobq__error_set_driver(
            JOBQ_EIO, JOBQ__RETRYABLE, "sqlite", native,
            "sqlite: %s: the file was deleted or replaced while it was in use", store->path);
    }
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        if (failures[i].native != (native & 0xff))
            continue;
        store->suspect |= failures[i].drop;
        return jobq__error_set_driver(failures[i].code, failures[i].flags, "sqlite", native,
                                      "sqlite: %s: %s (%s)", store->path,
                                      failures[i].meaning ? failures[i].meaning : text, doing);
    }
    store->suspect = true;
    return jobq__error_set_driver(JOBQ_EIO, 0, "sqlite", native, "sqlite: %s: %s (%s)", store->path,
                                  text, doing);
}

/* ---- statements ------------------------------------------------------------------------------ */

sqlite3_stmt *jobq__sqlite_use(sqlite_store *store, sqlite_statement which, const char *sql)
{
    sqlite3_stmt **slot = &store->statements[which];

    if (!*slot &&
        sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
        jobq__sqlite_fail(store, "preparing a statement");
    return *slot;
}

int jobq__sqlite_row(sqlite_store *store, sqlite3_stmt *stmt)
{
    int step = sqlite3_step(stmt);

    if (step == SQLITE_ROW)
        return 1;
    if (step == SQLITE_DONE) {
        sqlite3_reset(stmt);
        return 0;
    }
    jobq__sqlite_fail(store, "running a statement");
    sqlite3_reset(stmt);
    return jobq__error_code();
}

int jobq__sqlite_run(sqlite_store *store, sqlite3_stmt *stmt)
{
    int rc = jobq__sqlite_row(store, stmt);

    if (rc > 0) {
        sqlite3_reset(stmt);
        rc = 0;
    }
    return rc;
}

int jobq__sqlite_run_with(sqlite_store *store, sqlite_statement which, const char *sql,
                          int64_t first, int64_t second)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, which, sql);

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, first);
    sqlite3_bind_int64(stmt, 2, second);
    return jobq__sqlite_run(store, stmt);
}

int jobq__sqlite_run_on(sqlite_store *store, sqlite_statement which, const char *sql, int64_t seq)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, which, sql);

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    return jobq__sqlite_run(store, stmt);
}

void jobq__sqlite_bind(sqlite3_stmt *stmt, int at, jobq_slice s)
{
    if (s.p)
        sqlite3_bind_text64(stmt, at, s.p, s.n, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(stmt, at);
}

void jobq__sqlite_bind_blob(sqlite3_stmt *stmt, int at, jobq_slice s)
{
    if (s.p)
        sqlite3_bind_blob64(stmt, at, s.p, s.n, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, at);
}

bool jobq__sqlite_copy(sqlite3_stmt *stmt, int column, jobq_batch *out, jobq_slice *to)
{
    const void *p;

    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        return true;
    p = sqlite3_column_blob(stmt, column); /* text too: its bytes as they are */
    *to = jobq_batch_copy(out, p ? p : "", p ? (size_t)sqlite3_column_bytes(stmt, column) : 0);
    return to->p != NULL;
}

void jobq__sqlite_read_counters(sqlite3_stmt *stmt, int at, bool held, jobq_record *r)
{
    r->counters = (jobq_counters){
        .deliveries = sqlite3_column_int64(stmt, at) + held,
        .failures = sqlite3_column_int64(stmt, at + 1),
        .crashes = sqlite3_column_int64(stmt, at + 2),
        .releases = sqlite3_column_int64(stmt, at + 3),
        .losses = sqlite3_column_int64(stmt, at + 4),
        .exceptions = sqlite3_column_int64(stmt, at + 5),
        .parks = sqlite3_column_int64(stmt, at + 6),
        .parked_since_ms = sqlite3_column_int64(stmt, at + 7),
    };
    r->fence = sqlite3_column_int64(stmt, at + 8) + held;
    r->enqueued_at_ms = sqlite3_column_int64(stmt, at + 9);
    r->base_at_ms = sqlite3_column_int64(stmt, at + 10);
}

/* ---- transactions ---------------------------------------------------------------------------- */

int jobq__sqlite_set_sync(sqlite_store *store, bool full)
{
    if (sqlite3_exec(store->db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                     NULL, NULL, NULL))
        return jobq__sqlite_fail(store, "setting synchronous");
    store->syncing = full;
    return 0;
}

/* Nothing stays open whatever happened; SQLite may have rolled back by itself
 * (full disk, I/O error). */
static void roll_back(sqlite_store *store)
{
    struct jobq_error saved;
    sqlite3_stmt *stmt;

    store->queue_count = 0; /* a queue's row may be gone with the transaction */
    if (sqlite3_get_autocommit(store->db))
        return;
    jobq__error_save(&saved);
    stmt = jobq__sqlite_use(store, ST_ROLLBACK, "ROLLBACK");
    if (!stmt || jobq__sqlite_run(store, stmt) < 0)
        store->suspect = true;
    jobq__error_restore(&saved);
}

static int take_lock(sqlite_store *store, bool full, bool hurried)
{
    int rc = full == store->syncing ? 0 : jobq__sqlite_set_sync(store, full);
    sqlite3_stmt *stmt = rc ? NULL : jobq__sqlite_use(store, ST_BEGIN, "BEGIN IMMEDIATE");

    store->hurried = hurried;
    store->begun_us = 0;
    store->unlimited = 0;
    return stmt ? jobq__sqlite_run(store, stmt) : jobq__error_code();
}

static int begin(sqlite_store *store, bool full, bool hurried)
{
    const int64_t asked_us = jobq__clock_mono_us();
    int rc = take_lock(store, full, hurried);

    if (rc < 0) {
        jobq__sqlite_note_refused(store, asked_us);
        return rc;
    }
    rc = jobq__sqlite_note_begun(store, asked_us);
    if (rc < 0)
        roll_back(store);
    return rc;
}

int jobq__sqlite_begin_schema(sqlite_store *store)
{
    return take_lock(store, store->full_sync, false);
}

int jobq__sqlite_begin(sqlite_store *store)
{
    return begin(store, store->full_sync, false);
}

/* Without sync: for what may be lost with the machine's power. The next commit that waits covers
 * this one too, for the WAL is written from front to back. */
int jobq__sqlite_begin_hurried(sqlite_store *store, bool sync)
{
    return begin(store, sync && store->full_sync, true);
}

int jobq__sqlite_finish(sqlite_store *store, int rc)
{
    sqlite3_stmt *stmt;

    if (rc >= 0 && store->begun_us)
        rc = jobq__sqlite_note_held(store);
    if (rc >= 0) {
        stmt = jobq__sqlite_use(store, ST_COMMIT, "COMMIT");
        rc = stmt ? jobq__sqlite_run(store, stmt) : jobq__error_code();
        /* A failed COMMIT left the transaction open or was rolled back: both mean not stored. */
    }
    if (rc < 0)
        roll_back(store);
    return rc;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void cache_queue(sqlite_store *store, jobq_slice name, int64_t key)
{
    sqlite_queue *entry = &store->queues[store->queue_count++ % SQL_QUEUES_CACHED];

    if (name.n >= sizeof(entry->name)) {
        store->queue_count--;
        return;
    }
    memcpy(entry->name, name.p, name.n);
    entry->n = name.n;
    entry->key = key;
}

static int64_t cached_queue(const sqlite_store *store, jobq_slice name)
{
    size_t n = store->queue_count < SQL_QUEUES_CACHED ? store->queue_count : SQL_QUEUES_CACHED;

    for (size_t i = 0; i < n; i++)
        if (store->queues[i].n == name.n && memcmp(store->queues[i].name, name.p, name.n) == 0)
            return store->queues[i].key;
    return 0;
}

static int find_queue(sqlite_store *store, jobq_slice name, int64_t *key_out)
{
    sqlite3_stmt *stmt =
        jobq__sqlite_use(store, ST_QUEUE_GET, "SELECT id FROM jobqueue_queue WHERE name=?1");
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, name);
    rc = jobq__sqlite_row(store, stmt);
    *key_out = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int add_queue(sqlite_store *store, jobq_slice name, int64_t *key_out)
{
    sqlite3_stmt *stmt =
        jobq__sqlite_use(store, ST_QUEUE_ADD, "INSERT INTO jobqueue_queue(name) VALUES(?1)");
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, name);
    rc = jobq__sqlite_run(store, stmt);
    *key_out = sqlite3_last_insert_rowid(store->db);
    return rc;
}

int jobq__sqlite_queue_key(sqlite_store *store, jobq_slice name, bool add, int64_t *key_out)
{
    int rc;

    *key_out = cached_queue(store, name);
    if (*key_out)
        return 0;
    rc = find_queue(store, name, key_out);
    if (rc == 0 && *key_out == 0 && add)
        rc = add_queue(store, name, key_out);
    if (rc == 0 && *key_out)
        cache_queue(store, name, *key_out);
    return rc;
}
