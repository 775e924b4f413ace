/* SPDX-License-Identifier: MIT
 *
 * The floor for SQLite: the fewest statements that keep the same promise as the driver (id unique,
 * one by one pushes confirmed, reserve in batches with a fence, fenced settle and the next reserve
 * in one transaction). No options, no counters, no names. Prints one line per figure: `push N`,
 * `push_many N`, `drain N` (jobs a second) and `cost S` (CPU seconds per 10,000 jobs drained).
 *
 *     floor_sqlite FOLDER [full|normal] [JOBS]
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BODY = 120, BATCH = 100, BULK = 500 };

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *push, *reserve, *settle;
    int64_t next_id;
} floor_db;

static const char schema[] =
    "CREATE TABLE job(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue INTEGER NOT NULL,"
    " rank INTEGER NOT NULL, at INTEGER NOT NULL, worker INTEGER, fence INTEGER NOT NULL DEFAULT 0,"
    " name TEXT NOT NULL, body BLOB);"
    "CREATE INDEX job_ready ON job(queue, rank, at, seq) WHERE worker IS NULL;";
static const char push_sql[] =
    "INSERT INTO job(id, queue, rank, at, name, body) VALUES(?1, 1, 9, ?2, 'bench.noop', ?3)";
static const char reserve_sql[] =
    "UPDATE job SET worker=1, fence=fence+1 WHERE seq IN (SELECT seq FROM job WHERE queue=1 AND "
    "worker IS NULL"
    " ORDER BY rank, at, seq LIMIT ?1) RETURNING seq, fence, id, name, body";
static const char settle_sql[] = "DELETE FROM job WHERE seq=?1 AND fence=?2 AND worker=1";

static void check(floor_db *f, int rc, const char *doing)
{
    if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE)
        return;
    fprintf(stderr, "floor_sqlite: %s: %s\n", doing, sqlite3_errmsg(f->db));
    exit(1);
}

static double seconds(clockid_t which)
{
    struct timespec ts;

    clock_gettime(which, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void prepare(floor_db *f, sqlite3_stmt **stmt, const char *sql)
{
    check(f, sqlite3_prepare_v3(f->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL), sql);
}

static void open_db(floor_db *f, const char *path, const char *sync)
{
    char pragmas[256];

    check(f,
          sqlite3_open_v2(path, &f->db,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL),
          "open");
    snprintf(pragmas, sizeof(pragmas),
             "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA secure_delete=OFF; PRAGMA "
             "cache_size=-4000;",
             sync);
    check(f, sqlite3_exec(f->db, pragmas, NULL, NULL, NULL), "pragmas");
    check(f, sqlite3_exec(f->db, schema, NULL, NULL, NULL), "schema");
    prepare(f, &f->begin, "BEGIN IMMEDIATE");
    prepare(f, &f->commit, "COMMIT");
    prepare(f, &f->push, push_sql);
    prepare(f, &f->reserve, reserve_sql);
    prepare(f, &f->settle, settle_sql);
}

static void run(floor_db *f, sqlite3_stmt *stmt)
{
    check(f, sqlite3_step(stmt), "step");
    sqlite3_reset(stmt);
}

static void push_one(floor_db *f)
{
    static const char body[BODY];
    char id[40];
    int64_t now_ms = (int64_t)(seconds(CLOCK_REALTIME) * 1000);
    int n = snprintf(id, sizeof(id), "%08" PRIx64 "-0000-7000-8000-%012" PRIx64,
                     (uint64_t)now_ms >> 16, (uint64_t)f->next_id++);

    sqlite3_bind_text(f->push, 1, id, n, SQLITE_STATIC);
    sqlite3_bind_int64(f->push, 2, now_ms);
    sqlite3_bind_blob(f->push, 3, body, BODY, SQLITE_STATIC);
    run(f, f->push);
}

static void push_bulk(floor_db *f, int n)
{
    run(f, f->begin);
    for (int i = 0; i < n; i++)
        push_one(f);
    run(f, f->commit);
}

typedef struct {
    int64_t seq, fence;
    char id[40], name[16], body[BODY];
} held_job;

/* Settles what is held and reserves the next batch, as one transaction. */
static int exchange(floor_db *f, held_job *held, int n)
{
    int got = 0, rc;

    run(f, f->begin);
    for (int i = 0; i < n; i++) {
        sqlite3_bind_int64(f->settle, 1, held[i].seq);
        sqlite3_bind_int64(f->settle, 2, held[i].fence);
        run(f, f->settle);
        if (sqlite3_changes(f->db) != 1)
            exit(1);
    }
    sqlite3_bind_int(f->reserve, 1, BATCH);
    while ((rc = sqlite3_step(f->reserve)) == SQLITE_ROW) {
        held_job *job = &held[got++];

        job->seq = sqlite3_column_int64(f->reserve, 0);
        job->fence = sqlite3_column_int64(f->reserve, 1);
        memcpy(job->id, sqlite3_column_text(f->reserve, 2),
               (size_t)sqlite3_column_bytes(f->reserve, 2));
        memcpy(job->name, sqlite3_column_text(f->reserve, 3),
               (size_t)sqlite3_column_bytes(f->reserve, 3));
        memcpy(job->body, sqlite3_column_blob(f->reserve, 4),
               (size_t)sqlite3_column_bytes(f->reserve, 4));
    }
    check(f, rc, "reserve");
    sqlite3_reset(f->reserve);
    run(f, f->commit);
    return got;
}

static int drain(floor_db *f)
{
    static held_job held[BATCH];
    int n = 0, total = 0;

    while ((n = exchange(f, held, n)) > 0)
        total += n;
    return total;
}

int main(int argc, char **argv)
{
    const char *sync = argc > 2 ? argv[2] : "full";
    int jobs = argc > 3 ? atoi(argv[3]) : 200000, singles = 5000;
    floor_db f = {0};
    char path[4096];
    double begin, cpu;

    if (argc < 2 || jobs < BULK || (strcmp(sync, "full") != 0 && strcmp(sync, "normal") != 0)) {
        fprintf(stderr, "usage: floor_sqlite FOLDER [full|normal] [JOBS]\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/floor-%ld.db", argv[1], (long)getpid());
    open_db(&f, path, sync);
    begin = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < singles; i++)
        push_one(&f);
    printf("push %.0f\n", singles / (seconds(CLOCK_MONOTONIC) - begin));
    begin = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < jobs; i += BULK)
        push_bulk(&f, BULK);
    printf("push_many %.0f\n", jobs / (seconds(CLOCK_MONOTONIC) - begin));
    begin = seconds(CLOCK_MONOTONIC);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    jobs = drain(&f);
    printf("drain %.0f\n", jobs / (seconds(CLOCK_MONOTONIC) - begin));
    printf("cost %.4f\n", (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 10000 / jobs);
    unlink(path);
    for (const char *const *s = (const char *const[]){"-wal", "-shm", NULL}; *s; s++) {
        char side[4100];

        snprintf(side, sizeof(side), "%s%s", path, *s);
        unlink(side);
    }
    return 0;
}
