/* SPDX-License-Identifier: MIT
 *
 * The tables, and bringing an older file up to date. The version stands in a table of ours, since
 * the file may be an application's own database with its own user_version. One immediate
 * transaction per migration: of two processes that start at once the second finds it done.
 */
#include "driver/sql/view.h"
#include "driver/sqlite/sqlite.h"
#include "util/error.h"

/* ---- version 1 ------------------------------------------------------------------------------- */

static const char version_1[] =
    "CREATE TABLE jobqueue_schema(version INTEGER NOT NULL);"
    "INSERT INTO jobqueue_schema VALUES(0);"

    "CREATE TABLE jobqueue_queue("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE);"

    /* state: 0 live, 3 done (kept until keep_until), 4 dead. rank = 9 - priority.
     * Times: ms since 1970. */
    "CREATE TABLE jobqueue_job("
    " seq INTEGER PRIMARY KEY,"
    " queue INTEGER NOT NULL,"
    " state INTEGER NOT NULL DEFAULT 0,"
    " rank INTEGER NOT NULL,"
    " taken INTEGER NOT NULL DEFAULT 0,"
    " traced INTEGER NOT NULL DEFAULT 0,"
    " version INTEGER NOT NULL,"
    " deliveries INTEGER NOT NULL DEFAULT 0,"
    " failures INTEGER NOT NULL DEFAULT 0,"
    " crashes INTEGER NOT NULL DEFAULT 0,"
    " releases INTEGER NOT NULL DEFAULT 0,"
    " losses INTEGER NOT NULL DEFAULT 0,"
    " exceptions INTEGER NOT NULL DEFAULT 0,"
    " parks INTEGER NOT NULL DEFAULT 0,"
    " parked_since INTEGER NOT NULL DEFAULT 0,"
    " fence INTEGER NOT NULL DEFAULT 0,"
    " reason INTEGER NOT NULL DEFAULT 0,"
    " available_at INTEGER NOT NULL,"
    " enqueued_at INTEGER NOT NULL,"
    " base_at INTEGER NOT NULL,"
    " died_at INTEGER,"
    " keep_until INTEGER,"
    " id TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " unique_key TEXT,"
    " header BLOB,"
    " body BLOB);"
    "CREATE UNIQUE INDEX jobqueue_job_id ON jobqueue_job(id);"
    "CREATE UNIQUE INDEX jobqueue_job_unique ON jobqueue_job(queue, unique_key)"
    " WHERE unique_key IS NOT NULL AND state=0;"
    "CREATE INDEX jobqueue_job_dead ON jobqueue_job(died_at, seq, queue, state) WHERE state=4;"
    "CREATE INDEX jobqueue_job_done ON jobqueue_job(keep_until) WHERE state=3;"

    "CREATE TABLE jobqueue_ready("
    " queue INTEGER NOT NULL,"
    " rank INTEGER NOT NULL,"
    " available_at INTEGER NOT NULL,"
    " seq INTEGER NOT NULL,"
    " PRIMARY KEY(queue, rank, available_at, seq)) WITHOUT ROWID;"
    "CREATE TABLE jobqueue_taken("
    " queue INTEGER NOT NULL,"
    " rank INTEGER NOT NULL,"
    " available_at INTEGER NOT NULL,"
    " seq INTEGER NOT NULL,"
    " PRIMARY KEY(queue, rank, available_at, seq)) WITHOUT ROWID;"
    "CREATE TABLE jobqueue_delayed("
    " due INTEGER NOT NULL,"
    " seq INTEGER NOT NULL,"
    " queue INTEGER NOT NULL,"
    " rank INTEGER NOT NULL,"
    " PRIMARY KEY(due, seq)) WITHOUT ROWID;"
    "CREATE TABLE jobqueue_held("
    " seq INTEGER PRIMARY KEY,"
    " worker INTEGER NOT NULL,"
    " queue INTEGER NOT NULL,"
    " nonce INTEGER NOT NULL);"

    "CREATE TABLE jobqueue_error("
    " seq INTEGER PRIMARY KEY,"
    " error BLOB NOT NULL);"
    "CREATE TABLE jobqueue_history("
    " seq INTEGER NOT NULL,"
    " n INTEGER NOT NULL,"
    " entry BLOB NOT NULL,"
    " PRIMARY KEY(seq, n)) WITHOUT ROWID;"

    /* alive_until: ms of the boot clock; another boot's records have lapsed.
     * running: tokens of 24 bytes. */
    "CREATE TABLE jobqueue_worker("
    " key INTEGER PRIMARY KEY,"
    " id TEXT NOT NULL UNIQUE,"
    " boot TEXT NOT NULL,"
    " alive_until INTEGER NOT NULL,"
    " lease INTEGER NOT NULL,"
    " taken INTEGER NOT NULL DEFAULT 0,"
    " running BLOB,"
    " host TEXT,"
    " pid INTEGER,"
    " queues TEXT,"
    " names TEXT,"
    " processes INTEGER,"
    " started_at INTEGER NOT NULL);";

/* ---- version 2: what people ask of workers --------------------------------------------------- */

static const char version_2[] =
    "ALTER TABLE jobqueue_job ADD COLUMN cancel INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE jobqueue_control("
    " name TEXT PRIMARY KEY,"
    " value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO jobqueue_control VALUES('control', 0), ('generation', 0);"
    /* An empty name stands for all queues. until: ms since 1970, 0 = until resumed. */
    "CREATE TABLE jobqueue_pause("
    " queue TEXT PRIMARY KEY,"
    " until INTEGER NOT NULL) WITHOUT ROWID;"

    /* For people (rule N6). A JSON body is shown as text, a msgpack body in hex;
     * `jobqueue show` decodes both. Jobs that follow a death (rule F6) are in no count. */
    "DROP VIEW IF EXISTS jobqueue_jobs;"
    "CREATE VIEW jobqueue_jobs AS"
    " SELECT j.id, q.name AS queue, j.name,"
    " CASE j.state WHEN 3 THEN 'done' WHEN 4 THEN 'dead' ELSE"
    "  CASE WHEN h.seq IS NOT NULL THEN 'reserved'"
    "   WHEN j.available_at > strftime('%s', 'now') * 1000 + substr(strftime('%f', 'now'), 4)"
    "    AND EXISTS(SELECT 1 FROM jobqueue_delayed d"
    "     WHERE d.due = j.available_at AND d.seq = j.seq) THEN 'delayed'"
    "   ELSE 'ready' END"
    "  END AS state,"
    " w.id AS reserved_by, 9 - j.rank AS priority, j.version,"
    " j.failures + j.crashes + 1 AS attempt,"
    " j.deliveries + (h.seq IS NOT NULL) AS deliveries,"
    " j.failures, j.crashes, j.releases, j.losses,"
    " j.fence + (h.seq IS NOT NULL) AS fence,"
    " strftime('%Y-%m-%d %H:%M:%f', j.enqueued_at / 1000.0, 'unixepoch') AS enqueued_at,"
    " strftime('%Y-%m-%d %H:%M:%f', j.available_at / 1000.0, 'unixepoch') AS available_at,"
    " strftime('%Y-%m-%d %H:%M:%f', j.died_at / 1000.0, 'unixepoch') AS died_at,"
    " CASE" JOBQ__SQL_REASONS "  ELSE CAST(j.reason AS TEXT) END AS reason,"
    " j.unique_key,"
    " CASE WHEN substr(j.header, 2, 1) = x'6a' THEN CAST(j.body AS TEXT)"
    "  ELSE hex(j.body) END AS payload"
    " FROM jobqueue_job j"
    " JOIN jobqueue_queue q ON q.id = j.queue"
    " LEFT JOIN jobqueue_held h ON h.seq = j.seq AND j.state = 0"
    " LEFT JOIN jobqueue_worker w ON w.key = h.worker"
    " WHERE substr(q.name, 1, 1) <> char(1);";

#define FIND_SCHEMA "SELECT 1 FROM sqlite_master WHERE type='table' AND name='jobqueue_schema'"

/* migrations[i] leads from version i to i + 1. */
static const char *const migrations[] = {version_1, version_2};
enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

/* 0: the file has no tables of ours. */
static int read_version(sqlite_store *store, int *version_out)
{
    sqlite3_stmt *stmt = NULL;
    int rc, found;

    *version_out = 0;
    if (sqlite3_prepare_v2(store->db, FIND_SCHEMA, -1, &stmt, NULL))
        return jobq__sqlite_fail(store, "reading the schema");
    found = jobq__sqlite_row(store, stmt);
    sqlite3_finalize(stmt);
    if (found <= 0)
        return found;
    if (sqlite3_prepare_v2(store->db, "SELECT version FROM jobqueue_schema", -1, &stmt, NULL))
        return jobq__sqlite_fail(store, "reading the schema");
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0)
        *version_out = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : 0;
}

static int execute(sqlite_store *store, const char *sql)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return jobq__sqlite_fail(store, "making the schema");
}

static int write_version(sqlite_store *store)
{
    char sql[64];

    sqlite3_snprintf(sizeof(sql), sql, "UPDATE jobqueue_schema SET version=%d", SCHEMA_VERSION);
    return execute(store, sql);
}

static int apply(sqlite_store *store)
{
    int version, rc = read_version(store, &version);

    if (rc == 0 && version > SCHEMA_VERSION)
        return jobq__refuse_schema("sqlite", store->path, version, SCHEMA_VERSION);
    if (rc < 0 || version == SCHEMA_VERSION) /* somebody was quicker */
        return rc;
    for (int i = version; i < SCHEMA_VERSION && rc == 0; i++)
        rc = execute(store, migrations[i]);
    return rc ? rc : write_version(store);
}

int jobq__sqlite_migrate(sqlite_store *store)
{
    int version, rc = read_version(store, &version);

    if (rc < 0 || version == SCHEMA_VERSION)
        return rc;
    if (version > SCHEMA_VERSION)
        return jobq__refuse_schema("sqlite", store->path, version, SCHEMA_VERSION);
    rc = jobq__sqlite_begin_schema(store);
    return rc < 0 ? rc : jobq__sqlite_finish(store, apply(store));
}

int jobq__sqlite_check_schema(sqlite_store *store)
{
    int version, rc = read_version(store, &version);

    if (rc < 0 || version == SCHEMA_VERSION)
        return rc;
    return jobq__refuse_schema("sqlite", store->path, version, SCHEMA_VERSION);
}
