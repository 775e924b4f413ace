/* SPDX-License-Identifier: MIT
 *
 * The tables, and bringing older ones up to date. DDL commits by itself here, so each step can be
 * done twice, and the version is written when all are done. One at a time: a named lock of the
 * server, one per database.
 */
#include "driver/mysql/mysql.h"
#include "driver/sql/view.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- version 1 ------------------------------------------------------------------------------- */

#define TABLE ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
#define TEXT " USING utf8mb4) COLLATE utf8mb4_bin "
#define TIME "CAST('1970-01-01' AS DATETIME(3)) + INTERVAL "
#define MS " * 1000 MICROSECOND "

/* For people (rule N6). Times are UTC. A JSON body is shown as text, a msgpack body in hex;
 * `jobqueue show` decodes both. */
#define VIEW                                                                                   \
    "CREATE OR REPLACE SQL SECURITY INVOKER VIEW jobqueue_jobs AS"                             \
    " SELECT CONVERT(j.id" TEXT "AS id,"                                                       \
    " CONVERT(j.queue" TEXT "AS queue,"                                                        \
    " CONVERT(j.name" TEXT "AS name,"                                                          \
    " CASE WHEN j.place >= 16 THEN 'reserved'"                                                 \
    "  WHEN j.place = 4 THEN 'dead'"                                                           \
    "  WHEN j.place = 3 THEN 'done'"                                                           \
    "  WHEN j.place = 5 OR (j.place = 2 AND j.available_at > " NOW_MS ") THEN 'delayed'"       \
    "  ELSE 'ready' END AS state,"                                                             \
    " CONVERT(w.id" TEXT "AS reserved_by, 9 - j.ranking AS priority, j.version,"               \
    " j.failures + j.crashes + 1 AS attempt, j.deliveries, j.failures, j.crashes, j.releases," \
    " j.losses, j.fence,"                                                                      \
    " " TIME "j.enqueued_at" MS "AS enqueued_at,"                                              \
    " " TIME "j.available_at" MS "AS available_at,"                                            \
    " " TIME "j.died_at" MS "AS died_at,"                                                      \
    " CASE" JOBQ__SQL_REASONS "  ELSE CAST(j.reason AS CHAR) END AS reason,"                   \
    " CONVERT(j.unique_key" TEXT "AS unique_key,"                                              \
    " CASE WHEN HEX(SUBSTRING(j.header, 2, 1)) = '6A' THEN CONVERT(j.body" TEXT                \
    "  ELSE HEX(j.body) END AS payload"                                                        \
    " FROM jobqueue_job j LEFT JOIN jobqueue_worker w ON w.worker = j.place"

static const char *const version_1[] = {
    "CREATE TABLE IF NOT EXISTS jobqueue_schema("
    " one TINYINT NOT NULL PRIMARY KEY,"
    " version INT NOT NULL" TABLE,

    /* Every name ever used. */
    "CREATE TABLE IF NOT EXISTS jobqueue_queue("
    " name VARBINARY(128) NOT NULL PRIMARY KEY" TABLE,

    /* place, due: mysql.h. ranking = 9 - priority. holds: 1 while the unique key is held.
     * taken: the job was taken back from an expired worker. history: entries, each behind its
     * length in four bytes. Times: ms since 1970. */
    "CREATE TABLE IF NOT EXISTS jobqueue_job("
    " seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
    " place BIGINT NOT NULL DEFAULT 0,"
    " ranking TINYINT NOT NULL DEFAULT 9,"
    " taken TINYINT NOT NULL DEFAULT 0,"
    " holds TINYINT DEFAULT NULL,"
    " reason TINYINT NOT NULL DEFAULT 0,"
    " version INT NOT NULL DEFAULT 1,"
    " nonce BIGINT NOT NULL DEFAULT 0,"
    " fence BIGINT NOT NULL DEFAULT 0,"
    " deliveries BIGINT NOT NULL DEFAULT 0,"
    " failures BIGINT NOT NULL DEFAULT 0,"
    " crashes BIGINT NOT NULL DEFAULT 0,"
    " releases BIGINT NOT NULL DEFAULT 0,"
    " losses BIGINT NOT NULL DEFAULT 0,"
    " exceptions BIGINT NOT NULL DEFAULT 0,"
    " parks BIGINT NOT NULL DEFAULT 0,"
    " parked_since BIGINT NOT NULL DEFAULT 0,"
    " available_at BIGINT NOT NULL,"
    " enqueued_at BIGINT NOT NULL,"
    " base_at BIGINT NOT NULL,"
    " due BIGINT DEFAULT NULL,"
    " died_at BIGINT DEFAULT NULL,"
    " id VARBINARY(128) NOT NULL,"
    " queue VARBINARY(128) NOT NULL,"
    " name VARBINARY(255) NOT NULL,"
    " unique_key VARBINARY(1024) DEFAULT NULL,"
    " header LONGBLOB DEFAULT NULL,"
    " body LONGBLOB DEFAULT NULL,"
    " error LONGBLOB DEFAULT NULL,"
    " history LONGBLOB DEFAULT NULL,"
    " UNIQUE KEY jobqueue_job_id(id),"
    " UNIQUE KEY jobqueue_job_unique(queue, unique_key, holds),"
    " KEY jobqueue_job_line(place, queue, ranking, available_at, seq),"
    " KEY jobqueue_job_due(due, seq)" TABLE,

    /* running: tokens of 24 bytes. Keys begin where a job's other places end. */
    "CREATE TABLE IF NOT EXISTS jobqueue_worker("
    " worker BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
    " id VARBINARY(128) NOT NULL,"
    " alive_until BIGINT NOT NULL,"
    " lease BIGINT NOT NULL,"
    " taken TINYINT NOT NULL DEFAULT 0,"
    " running LONGBLOB DEFAULT NULL,"
    " host VARBINARY(255) DEFAULT NULL,"
    " pid BIGINT NOT NULL DEFAULT 0,"
    " queues LONGBLOB DEFAULT NULL,"
    " names LONGBLOB DEFAULT NULL,"
    " processes BIGINT NOT NULL DEFAULT 0,"
    " started_at BIGINT NOT NULL,"
    " UNIQUE KEY jobqueue_worker_id(id)"
    ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC AUTO_INCREMENT=16 DEFAULT CHARSET=utf8mb4"
    " COLLATE=utf8mb4_bin",

    VIEW,
};

/* ---- version 2: what people ask of workers, jobs that follow others -------------------------- */

static const char *const version_2[] = {
    /* JOBQ_CANCEL_*. At once, which together with the following it would not be. */
    "ALTER TABLE jobqueue_job ADD COLUMN cancel TINYINT NOT NULL DEFAULT 0",

    /* A hidden queue's name is one byte longer. */
    "ALTER TABLE jobqueue_job MODIFY queue VARBINARY(129) NOT NULL",

    "CREATE TABLE IF NOT EXISTS jobqueue_control("
    " one TINYINT NOT NULL PRIMARY KEY,"
    " control BIGINT NOT NULL DEFAULT 0,"
    " generation BIGINT NOT NULL DEFAULT 0" TABLE,

    "INSERT IGNORE INTO jobqueue_control(one) VALUES(1)",

    /* An empty name stands for all queues. until_at: 0 = until resumed. */
    "CREATE TABLE IF NOT EXISTS jobqueue_pause("
    " queue VARBINARY(128) NOT NULL PRIMARY KEY,"
    " until_at BIGINT NOT NULL" TABLE,

    VIEW " WHERE LEFT(j.queue, 1) <> X'01'",
};

/* ---- version 3: capacities, followers of unique keys, results, retention, numbers ------------ */

static const char *const version_3[] = {
    /* What a job ended with, or how far it is. Each at once. */
    "ALTER TABLE jobqueue_job ADD COLUMN outcome LONGBLOB DEFAULT NULL",

    /* Of a dead job: until then it can be put back. */
    "ALTER TABLE jobqueue_job ADD COLUMN keep_until BIGINT DEFAULT NULL",

    /* Has a unique key that another one waits for: holds=2, place=5 of that one. */
    "ALTER TABLE jobqueue_job ADD COLUMN followed TINYINT NOT NULL DEFAULT 0",

    /* The dead that go by themselves. */
    "CREATE TABLE IF NOT EXISTS jobqueue_keep("
    " keep_until BIGINT NOT NULL,"
    " seq BIGINT NOT NULL,"
    " PRIMARY KEY(keep_until, seq)" TABLE,

    /* capacity.c. capacity 0: no limit, but one was set. The row without a name counts the changes
     * in `capacity`. */
    "CREATE TABLE IF NOT EXISTS jobqueue_limit("
    " queue VARBINARY(129) NOT NULL PRIMARY KEY,"
    " capacity BIGINT NOT NULL,"
    " room BIGINT NOT NULL DEFAULT 0" TABLE,

    "INSERT IGNORE INTO jobqueue_limit(queue, capacity) VALUES('', 0)",

    "CREATE TABLE IF NOT EXISTS jobqueue_room("
    " n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
    " queue VARBINARY(129) NOT NULL,"
    " taken BIGINT NOT NULL,"
    " KEY jobqueue_room_queue(queue, taken)" TABLE,

    /* slot: numbers.c. */
    "CREATE TABLE IF NOT EXISTS jobqueue_minute("
    " queue VARBINARY(129) NOT NULL,"
    " minute BIGINT NOT NULL,"
    " slot TINYINT NOT NULL,"
    " n BIGINT NOT NULL,"
    " PRIMARY KEY(queue, minute, slot),"
    " KEY jobqueue_minute_age(minute)" TABLE,

    VIEW " WHERE LEFT(j.queue, 1) <> X'01'",
};

/* migrations[i] leads from version i to i + 1. */
static const struct {
    const char *const *steps;
    size_t count;
} migrations[] = {{version_1, sizeof(version_1) / sizeof(version_1[0])},
                  {version_2, sizeof(version_2) / sizeof(version_2[0])},
                  {version_3, sizeof(version_3) / sizeof(version_3[0])}};
enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

/* Columns that came at once make every row dearer to write (2 % of a push that waits for the disk).
 * New tables are empty, it costs nothing to be rid of that; full ones are left to who owns them. */
#define REBUILD "ALTER TABLE jobqueue_job FORCE"
#define LOCK_NAME "CONCAT('jobqueue.', MD5(DATABASE()))"
#define LOCK "SELECT GET_LOCK(" LOCK_NAME ", ?1)"
#define UNLOCK "SELECT RELEASE_LOCK(" LOCK_NAME ")"
#define FACTS(version) "SELECT @@max_allowed_packet, CONNECTION_ID(), " version
#define VERSION "(SELECT MAX(version) FROM jobqueue_schema)"
#define WRITE_VERSION                                          \
    "INSERT INTO jobqueue_schema(one, version) VALUES(1, ?1) " \
    "ON DUPLICATE KEY UPDATE version=?1"

/* Version 0: no tables of ours. */
int jobq__mysql_read_facts(mysql_store *store)
{
    int64_t facts[3] = {0, 0, 0};
    int rc = jobq__mysql_query_numbers(store, FACTS(VERSION), facts, 3);

    if (rc < 0 && jobq_error_native(jobq_error_last()) == MYSQL_NO_TABLE) {
        store->suspect = false;
        jobq__error_clear();
        rc = jobq__mysql_query_numbers(store, FACTS("0"), facts, 3);
    }
    if (rc < 0)
        return rc;
    store->max_packet = facts[0];
    store->session = facts[1];
    store->schema_version = (int)facts[2];
    return 0;
}

int jobq__mysql_check_schema(mysql_store *store)
{
    int rc = store->schema_version < 0 ? jobq__mysql_read_facts(store) : 0;
    int version = store->schema_version;

    if (rc < 0 || version == SCHEMA_VERSION)
        return rc;
    store->schema_version = -1; /* looked at again next time */
    return jobq__refuse_schema("mysql", NULL, version, SCHEMA_VERSION);
}

/* A column that is there already: the step was done before. */
static int apply_step(mysql_store *store, const char *step)
{
    int rc = jobq__mysql_query(store, step);

    if (rc < 0 && jobq_error_native(jobq_error_last()) == MYSQL_DUPLICATE_COLUMN) {
        jobq__error_clear();
        rc = 0;
    }
    return rc;
}

static int apply(mysql_store *store)
{
    const mysql_arg version = number_arg(SCHEMA_VERSION);
    int rc = jobq__mysql_read_facts(store);

    for (int i = store->schema_version; rc == 0 && i < SCHEMA_VERSION; i++)
        for (size_t step = 0; step < migrations[i].count && rc == 0; step++)
            rc = apply_step(store, migrations[i].steps[step]);
    if (rc == 0 && store->schema_version == 0)
        rc = jobq__mysql_query(store, REBUILD);
    if (rc == 0 && store->schema_version < SCHEMA_VERSION)
        rc = jobq__mysql_make_routines(store);
    if (rc == 0 && store->schema_version < SCHEMA_VERSION)
        rc = (int)jobq__mysql_run(store, WRITE_VERSION, &version);
    if (rc >= 0 && store->schema_version < SCHEMA_VERSION)
        store->schema_version = SCHEMA_VERSION;
    return rc < 0 ? rc : 0;
}

static int apply_alone(mysql_store *store)
{
    const mysql_arg wait_s = number_arg(store->config->read_timeout_ms / 2000 + 1);
    struct jobq_error saved;
    int64_t got = 0, ignored;
    bool found = false;
    int rc = jobq__mysql_ask(store, LOCK, &wait_s, &found, &got);

    if (rc == 0 && got != 1)
        rc = jobq__error_set_driver(JOBQ_EBUSY, JOBQ__RETRYABLE, "mysql", 0,
                                    "mysql: somebody else has been migrating for long");
    if (rc < 0)
        return rc;
    rc = apply(store);
    jobq__error_save(&saved);
    if (!store->suspect && jobq__mysql_ask(store, UNLOCK, NULL, &found, &ignored) < 0)
        store->suspect = true; /* the lock goes with the connection */
    if (rc < 0)
        jobq__error_restore(&saved);
    return rc;
}

static int make_missing_routines(mysql_store *store)
{
    int64_t count = 0;
    int rc = jobq__mysql_count_routines(store, &count);

    return rc == 0 && count < MYSQL_ROUTINES ? jobq__mysql_make_routines(store) : rc;
}

static int make_schema(mysql_store *store, void *payload)
{
    int rc = store->schema_version < 0 ? jobq__mysql_read_facts(store) : 0;

    (void)payload;
    /* Asked for by name: the right to make them may have been granted since. */
    if (rc == 0 && store->schema_version == SCHEMA_VERSION && !store->config->migrate)
        return make_missing_routines(store);
    if (rc < 0 || store->schema_version == SCHEMA_VERSION)
        return rc;
    if (store->schema_version > SCHEMA_VERSION)
        return jobq__refuse_schema("mysql", NULL, store->schema_version, SCHEMA_VERSION);
    return apply_alone(store);
}

int jobq__mysql_schema(void *handle)
{
    return jobq__mysql_do(handle, MYSQL_FOR_SCHEMA, make_schema, NULL);
}
