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
    " until INTEGER NOT NULL) WITHOUT ROWID;";

/* ---- version 3: capacities, followers of unique keys, results, numbers per minute ----------- */

/* The key's follower waits for its own time from now on. */
#define FOLLOWER "queue=old.queue AND unique_key=old.unique_key AND " SQL_FOLLOWS
#define PROMOTE_FOLLOWER                                                           \
    "INSERT INTO jobqueue_delayed(due, seq, queue, rank)"                          \
    " SELECT available_at, seq, queue, rank FROM jobqueue_job WHERE " FOLLOWER ";" \
    "UPDATE jobqueue_job SET key_state=0 WHERE " FOLLOWER ";"
#define HAD_KEY "old.unique_key IS NOT NULL AND old.state=0 AND old.key_state=0"

/* For people (rule N6). A JSON body is shown as text, a msgpack body in hex; `jobqueue show`
 * decodes both. Followers are delayed; jobs that follow a death (rule F6) are in no count. */
#define JOBS_VIEW                                                                              \
    "CREATE VIEW jobqueue_jobs AS"                                                             \
    " SELECT j.id, q.name AS queue, j.name,"                                                   \
    " CASE j.state WHEN 3 THEN 'done' WHEN 4 THEN 'dead' ELSE"                                 \
    "  CASE WHEN h.seq IS NOT NULL THEN 'reserved'"                                            \
    "   WHEN j.key_state=2 THEN 'delayed'"                                                     \
    "   WHEN j.available_at > strftime('%s', 'now') * 1000 + substr(strftime('%f', 'now'), 4)" \
    "    AND EXISTS(SELECT 1 FROM jobqueue_delayed d"                                          \
    "     WHERE d.due = j.available_at AND d.seq = j.seq) THEN 'delayed'"                      \
    "   ELSE 'ready' END"                                                                      \
    "  END AS state,"                                                                          \
    " w.id AS reserved_by, 9 - j.rank AS priority, j.version,"                                 \
    " j.failures + j.crashes + 1 AS attempt,"                                                  \
    " j.deliveries + (h.seq IS NOT NULL) AS deliveries,"                                       \
    " j.failures, j.crashes, j.releases, j.losses,"                                            \
    " j.fence + (h.seq IS NOT NULL) AS fence,"                                                 \
    " strftime('%Y-%m-%d %H:%M:%f', j.enqueued_at / 1000.0, 'unixepoch') AS enqueued_at,"      \
    " strftime('%Y-%m-%d %H:%M:%f', j.available_at / 1000.0, 'unixepoch') AS available_at,"    \
    " strftime('%Y-%m-%d %H:%M:%f', j.died_at / 1000.0, 'unixepoch') AS died_at,"              \
    " CASE" JOBQ__SQL_REASONS "  ELSE CAST(j.reason AS TEXT) END AS reason,"                   \
    " j.unique_key,"                                                                           \
    " CASE WHEN substr(j.header, 2, 1) = x'6a' THEN CAST(j.body AS TEXT)"                      \
    "  ELSE hex(j.body) END AS payload"                                                        \
    " FROM jobqueue_job j"                                                                     \
    " JOIN jobqueue_queue q ON q.id = j.queue"                                                 \
    " LEFT JOIN jobqueue_held h ON h.seq = j.seq AND j.state = 0"                              \
    " LEFT JOIN jobqueue_worker w ON w.key = h.worker"                                         \
    " WHERE substr(q.name, 1, 1) <> char(1);"

/* Pushing and finishing by one statement in the caller's own transaction (foreign.c's request):
 * an insert into a view, so that one statement can do all that belongs to it. */
#define NOW_MS                                          \
    "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + " \
    "CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))"
/* Followers stand in no line. */
#define HOLDS_ALL                                                         \
    "(SELECT count(*) FROM jobqueue_ready WHERE queue=q.id) + "           \
    "(SELECT count(*) FROM jobqueue_taken WHERE queue=q.id) + "           \
    "(SELECT count(*) FROM jobqueue_delayed WHERE queue=q.id) + "         \
    "(SELECT count(*) FROM jobqueue_held WHERE queue=q.id) + "            \
    "(SELECT count(*) FROM jobqueue_job WHERE state=4 AND queue=q.id) + " \
    "(SELECT count(*) FROM jobqueue_job WHERE " SQL_FOLLOWS " AND queue=q.id)"
/* What becomes of the push, with the job that has its key (k), that one's follower (f) and whether
 * it is with a worker (h). seq: what is replaced. */
#define PUSH_JUDGED                                                                       \
    " INSERT OR REPLACE INTO jobqueue_answer(one, queue, seq, id, result, due)"           \
    "  SELECT 1, q.id, ifnull(f.seq, k.seq),"                                             \
    "   CASE WHEN EXISTS(SELECT 1 FROM jobqueue_job WHERE id=new.id) THEN new.id"         \
    "    WHEN new.on_duplicate=0 THEN ifnull(k.id, new.id)"                               \
    "    WHEN f.seq IS NOT NULL THEN f.id WHEN h.seq IS NULL THEN ifnull(k.id, new.id)"   \
    "    ELSE new.id END,"                                                                \
    "   CASE WHEN EXISTS(SELECT 1 FROM jobqueue_job WHERE id=new.id) THEN 'duplicate'"    \
    "    WHEN k.seq IS NOT NULL AND new.on_duplicate=0 THEN 'held'"                       \
    "    WHEN f.seq IS NOT NULL OR (k.seq IS NOT NULL AND h.seq IS NULL) THEN 'replaced'" \
    "    WHEN q.capacity > 0 AND " HOLDS_ALL " >= q.capacity THEN 'full'"                 \
    "    WHEN k.seq IS NOT NULL THEN 'follows' ELSE 'stored' END,"                        \
    "   max(" NOW_MS ", min(CASE WHEN new.at_ms > 0 THEN new.at_ms"                       \
    "     ELSE " NOW_MS " + new.delay_ms END,"                                            \
    "    CASE WHEN new.max_wait_ms > 0 AND k.seq IS NOT NULL AND"                         \
    "      (f.seq IS NOT NULL OR h.seq IS NULL)"                                          \
    "     THEN ifnull(f.enqueued_at, k.enqueued_at) + new.max_wait_ms"                    \
    "     ELSE 9223372036854775807 END))"                                                 \
    "  FROM jobqueue_queue q"                                                             \
    "  LEFT JOIN jobqueue_job k ON k.queue=q.id AND k.unique_key=new.unique_key"          \
    "   AND k.state=0 AND k.key_state<>1 AND k.key_state=0"                               \
    "  LEFT JOIN jobqueue_job f ON f.queue=q.id AND f.unique_key=new.unique_key"          \
    "   AND f.state=0 AND f.key_state<>1 AND f.key_state=2"                               \
    "  LEFT JOIN jobqueue_held h ON h.seq=k.seq WHERE q.name=new.queue;"
#define REPLACED \
    "FROM jobqueue_answer a JOIN jobqueue_job j ON j.seq=a.seq WHERE a.result='replaced'"
#define PUSH_OUT_OF(table)                                             \
    " DELETE FROM " table " WHERE (queue, rank, available_at, seq) IN" \
    "  (SELECT j.queue, j.rank, j.available_at, j.seq " REPLACED ");"
#define PUSH_REPLACED                                                                     \
    PUSH_OUT_OF("jobqueue_ready")                                                         \
    PUSH_OUT_OF("jobqueue_taken")                                                         \
    " DELETE FROM jobqueue_delayed WHERE (due, seq) IN"                                   \
    "  (SELECT j.available_at, j.seq " REPLACED ");"                                      \
    " UPDATE jobqueue_job SET name=new.name, version=new.version, rank=9 - new.priority," \
    "  header=new.header, body=new.body, taken=0, deliveries=0, failures=0, crashes=0,"   \
    "  releases=0, losses=0, exceptions=0, parks=0, parked_since=0,"                      \
    "  available_at=(SELECT due FROM jobqueue_answer)"                                    \
    "  WHERE seq=(SELECT seq FROM jobqueue_answer WHERE result='replaced');"
#define PUSH_STORED                                                                           \
    " INSERT INTO jobqueue_job(queue, rank, version, available_at, enqueued_at, base_at, id," \
    "  name, unique_key, header, body, key_state)"                                            \
    "  SELECT a.queue, 9 - new.priority, new.version, a.due, " NOW_MS ", " NOW_MS ", new.id," \
    "   new.name, new.unique_key, new.header, new.body,"                                      \
    "   CASE a.result WHEN 'follows' THEN 2 ELSE 0 END"                                       \
    "  FROM jobqueue_answer a WHERE a.result IN ('stored', 'follows');"                       \
    " UPDATE jobqueue_queue SET room=max(room - 1, 0) WHERE capacity > 0 AND id="             \
    "  (SELECT queue FROM jobqueue_answer WHERE result IN ('stored', 'follows'));"            \
    " UPDATE jobqueue_answer SET seq=(SELECT seq FROM jobqueue_job WHERE id=new.id)"          \
    "  WHERE result='stored';"
#define PUSH_PLACED                                                               \
    "FROM jobqueue_answer a JOIN jobqueue_job j ON j.seq=a.seq AND j.key_state=0" \
    " WHERE a.result IN ('stored', 'replaced') AND j.available_at"
#define VIEW_PUSH                                                                         \
    "CREATE TABLE jobqueue_answer(one INTEGER PRIMARY KEY, queue INTEGER, seq INTEGER,"   \
    " id TEXT, result TEXT, due INTEGER);"                                                \
    "CREATE VIEW jobqueue_push AS SELECT id, '' AS queue, name, version, 0 AS priority, " \
    "0 AS delay_ms, 0 AS at_ms, unique_key, header, body, 0 AS on_duplicate, "            \
    "0 AS max_wait_ms FROM jobqueue_job;"                                                 \
    "CREATE TRIGGER jobqueue_push_insert INSTEAD OF INSERT ON jobqueue_push BEGIN"        \
    " INSERT INTO jobqueue_queue(name) SELECT new.queue"                                  \
    "  WHERE NOT EXISTS(SELECT 1 FROM jobqueue_queue WHERE name=new.queue);" PUSH_JUDGED  \
        PUSH_REPLACED PUSH_STORED " INSERT INTO jobqueue_delayed(due, seq, queue, rank)"  \
    "  SELECT j.available_at, j.seq, j.queue, j.rank " PUSH_PLACED " > " NOW_MS ";"       \
    " INSERT INTO jobqueue_ready(queue, rank, available_at, seq)"                         \
    "  SELECT j.queue, j.rank, j.available_at, j.seq " PUSH_PLACED " <= " NOW_MS ";"      \
    " UPDATE jobqueue_answer SET result='replaced' WHERE result='follows'; END;"
#define KEPT "new.keep_ms > 0"
#define VIEW_DONE                                                                           \
    "CREATE VIEW jobqueue_done AS SELECT seq, nonce, 0 AS keep_ms, NULL AS outcome,"        \
    " NULL AS history, 0 AS bare FROM jobqueue_held;"                                       \
    "CREATE TRIGGER jobqueue_done_insert INSTEAD OF INSERT ON jobqueue_done BEGIN"          \
    " SELECT RAISE(ABORT, 'jobqueue: the lease of the job is lost')"                        \
    "  WHERE NOT EXISTS(SELECT 1 FROM jobqueue_held"                                        \
    "   WHERE seq=new.seq AND nonce=new.nonce);"                                            \
    " DELETE FROM jobqueue_held WHERE seq=new.seq;"                                         \
    " INSERT OR REPLACE INTO jobqueue_outcome(seq, outcome) SELECT new.seq, new.outcome"    \
    "  WHERE " KEPT " AND new.outcome IS NOT NULL;"                                         \
    " INSERT INTO jobqueue_history(seq, n, entry) SELECT new.seq,"                          \
    "  (SELECT ifnull(max(n), 0) + 1 FROM jobqueue_history WHERE seq=new.seq), new.history" \
    "  WHERE " KEPT " AND new.history IS NOT NULL;"                                         \
    " DELETE FROM jobqueue_history WHERE seq=new.seq AND"                                   \
    "  n <= (SELECT max(n) FROM jobqueue_history WHERE seq=new.seq) - 10;"                  \
    " UPDATE jobqueue_job SET state=3, cancel=0, taken=0, fence=fence+1,"                   \
    "  deliveries=deliveries+1, keep_until=" NOW_MS " + new.keep_ms,"                       \
    "  traced=max(traced, new.outcome IS NOT NULL OR new.history IS NOT NULL),"             \
    "  body=CASE WHEN new.bare THEN x'' ELSE body END"                                      \
    "  WHERE seq=new.seq AND " KEPT ";"                                                     \
    " UPDATE jobqueue_job SET key_state=1 WHERE seq=new.seq AND " SQL_KEYED ";"             \
    " DELETE FROM jobqueue_error WHERE seq=new.seq AND NOT " KEPT ";"                       \
    " DELETE FROM jobqueue_history WHERE seq=new.seq AND NOT " KEPT ";"                     \
    " DELETE FROM jobqueue_outcome WHERE seq=new.seq AND NOT " KEPT ";"                     \
    " DELETE FROM jobqueue_job WHERE seq=new.seq AND state=0; END;"

static const char version_3[] =
    /* key_state: 0 has its unique key, 1 has given it up, 2 follows the one that has it */
    "ALTER TABLE jobqueue_job ADD COLUMN key_state INTEGER NOT NULL DEFAULT 0;"
    "DROP INDEX jobqueue_job_unique;"
    /* one job has a key and one may follow it */
    "CREATE UNIQUE INDEX jobqueue_job_unique ON jobqueue_job(queue, key_state, unique_key)"
    " WHERE " SQL_KEYED ";"
    "DROP INDEX jobqueue_job_done;"
    "CREATE INDEX jobqueue_job_keep ON jobqueue_job(keep_until) WHERE keep_until IS NOT NULL;"
    "CREATE TRIGGER jobqueue_key_left AFTER UPDATE OF state, key_state ON jobqueue_job"
    " WHEN " HAD_KEY " AND (new.state<>0 OR new.key_state=1)"
    " BEGIN " PROMOTE_FOLLOWER " END;"

    /* capacity: NULL = never set, 0 = no limit. room: so many may still be pushed without counting
     * anew; what leaves the queue is not added. */
    "ALTER TABLE jobqueue_queue ADD COLUMN capacity INTEGER;"
    "ALTER TABLE jobqueue_queue ADD COLUMN room INTEGER NOT NULL DEFAULT 0;"

    /* of traced jobs, as error and history */
    "CREATE TABLE jobqueue_outcome("
    " seq INTEGER PRIMARY KEY,"
    " outcome BLOB NOT NULL);"

    /* slot: 0 to 6 the counts of jobq_minute, from 16 on its buckets */
    "CREATE TABLE jobqueue_minute("
    " minute INTEGER NOT NULL,"
    " queue INTEGER NOT NULL,"
    " slot INTEGER NOT NULL,"
    " n INTEGER NOT NULL,"
    " PRIMARY KEY(minute, queue, slot)) WITHOUT ROWID;"

    VIEW_PUSH VIEW_DONE "DROP VIEW IF EXISTS jobqueue_jobs;" JOBS_VIEW;

#define FIND_SCHEMA "SELECT 1 FROM sqlite_master WHERE type='table' AND name='jobqueue_schema'"

/* migrations[i] leads from version i to i + 1. */
static const char *const migrations[] = {version_1, version_2, version_3};
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

int jobq__sqlite_make_model(sqlite3 *db)
{
    int code = SQLITE_OK;

    for (int i = 0; i < SCHEMA_VERSION && code == SQLITE_OK; i++)
        code = sqlite3_exec(db, migrations[i], NULL, NULL, NULL);
    return code;
}
