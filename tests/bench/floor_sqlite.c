/* SPDX-License-Identifier: MIT
 *
 * The floor for SQLite: one table in a WAL file, every commit waits for the disk. A push is one
 * INSERT, in bulk a transaction of them; an exchange is one transaction of a fenced DELETE for each
 * job held and one UPDATE ... RETURNING.
 *
 *     floor_sqlite FILE JOBS PHASE...
 */
#include "floor.h"

#include <sqlite3.h>

static const char schema[] =
    "DROP TABLE IF EXISTS job;"
    "CREATE TABLE job(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue INTEGER NOT NULL,"
    " rank INTEGER NOT NULL, at INTEGER NOT NULL, worker INTEGER, fence INTEGER NOT NULL DEFAULT 0,"
    " name TEXT NOT NULL, body BLOB);"
    "CREATE INDEX job_ready ON job(queue, rank, at, seq) WHERE worker IS NULL;";
static const char pragmas[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                              "PRAGMA secure_delete=OFF; PRAGMA cache_size=-4000;";

typedef enum { ST_BEGIN, ST_COMMIT, ST_PUSH, ST_RESERVE, ST_SETTLE, ST_COUNT } statement;
static const char *const texts[ST_COUNT] = {
    "BEGIN IMMEDIATE", "COMMIT",
    "INSERT INTO job(id, queue, rank, at, name, body) VALUES(?1, 1, 9, ?2, 'bench.noop', ?3)",
    "UPDATE job SET worker=1, fence=fence+1 WHERE seq IN (SELECT seq FROM job WHERE queue=1 AND "
    "worker IS NULL ORDER BY rank, at, seq LIMIT ?1) RETURNING seq, fence, id, name, body",
    "DELETE FROM job WHERE seq=?1 AND fence=?2 AND worker=1"};

static sqlite3 *db;
static sqlite3_stmt *prepared[ST_COUNT];
static struct {
    int64_t seq, fence;
} held[BATCH];
static int held_count;

static void check(int rc, const char *doing)
{
    if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE)
        fail(doing, sqlite3_errmsg(db));
}

static sqlite3_stmt *use(statement which)
{
    if (!prepared[which])
        check(sqlite3_prepare_v3(db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, &prepared[which],
                                 NULL),
              texts[which]);
    return prepared[which];
}

static void run(statement which)
{
    sqlite3_stmt *stmt = use(which);

    check(sqlite3_step(stmt), texts[which]);
    sqlite3_reset(stmt);
}

static void open_sqlite(const char *address)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

    check(sqlite3_open_v2(address, &db, flags, NULL), "open");
    check(sqlite3_exec(db, pragmas, NULL, NULL, NULL), "pragmas");
    held_count = 0;
}

static void close_sqlite(void)
{
    for (int i = 0; i < ST_COUNT; i++) {
        sqlite3_finalize(prepared[i]);
        prepared[i] = NULL;
    }
    sqlite3_close(db);
}

static void reset_sqlite(void)
{
    held_count = 0;
    check(sqlite3_exec(db, schema, NULL, NULL, NULL), "schema");
}

static void push(const floor_job *job)
{
    sqlite3_stmt *stmt = use(ST_PUSH);

    sqlite3_bind_text(stmt, 1, job->id, ID, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, nanoseconds(CLOCK_REALTIME) / 1000000);
    sqlite3_bind_blob(stmt, 3, job->body, BODY, SQLITE_STATIC);
    run(ST_PUSH);
}

static void push_bulk(const floor_job *jobs, int n)
{
    run(ST_BEGIN);
    for (int i = 0; i < n; i++)
        push(&jobs[i]);
    run(ST_COMMIT);
}

static void settle_all(void)
{
    for (int i = 0; i < held_count; i++) {
        sqlite3_bind_int64(use(ST_SETTLE), 1, held[i].seq);
        sqlite3_bind_int64(use(ST_SETTLE), 2, held[i].fence);
        run(ST_SETTLE);
        if (sqlite3_changes(db) != 1)
            fail("settling", "a lease was lost");
    }
}

static int reserve(floor_job *got)
{
    sqlite3_stmt *stmt = use(ST_RESERVE);
    int n = 0, rc;

    sqlite3_bind_int(stmt, 1, BATCH);
    for (; (rc = sqlite3_step(stmt)) == SQLITE_ROW; n++) {
        held[n].seq = sqlite3_column_int64(stmt, 0);
        held[n].fence = sqlite3_column_int64(stmt, 1);
        memcpy(got[n].id, sqlite3_column_text(stmt, 2), ID);
        memcpy(got[n].body, sqlite3_column_blob(stmt, 4), BODY);
    }
    check(rc, "reserve");
    sqlite3_reset(stmt);
    return n;
}

static int exchange(floor_job *got)
{
    run(ST_BEGIN);
    settle_all();
    held_count = reserve(got);
    run(ST_COMMIT);
    return held_count;
}

int main(int argc, char **argv)
{
    static const floor_store store = {
        .name = "sqlite",
        .singles = 3000,
        .fresh = 300,
        .open = open_sqlite,
        .reset = reset_sqlite,
        .push = push,
        .push_bulk = push_bulk,
        .exchange = exchange,
        .close = close_sqlite,
    };

    return run_floor(&store, argc, argv);
}
