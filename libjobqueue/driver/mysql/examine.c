/* SPDX-License-Identifier: MIT
 *
 * How the server stands (rule N5): what a commit is worth there, whether the tables are ours and
 * whole, and what the user may do. Nothing is changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "driver/mysql/mysql.h"
#include "util/error.h"

enum { BODY_LIMIT = 1 << 20, LOCK_WAIT_LEAST_S = 5 };

static int ok(jobq_examination *e, const char *check, const char *text)
{
    return jobq__remark(e, JOBQ_REMARK_OK, check, NULL, "%s", text);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* The server's variables, by name; "" = it has none of that name. */
typedef struct {
    jobq_batch texts;
    jobq_slice value;
} setting;

#define VARIABLE "SHOW GLOBAL VARIABLES WHERE Variable_name=?1"

static int read_setting(mysql_store *store, setting *s, const char *name, const char **value_out)
{
    const mysql_arg arg = bytes_arg(jobq__slice_text(name));
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, VARIABLE, &arg, &rows);

    *value_out = "";
    if (rc == 0 && jobq__mysql_next(rows)) {
        if (!jobq__mysql_copy(rows, 1, &s->texts, &s->value))
            rc = jobq__error_nomem();
        else if (s->value.p)
            *value_out = s->value.p;
    }
    jobq__mysql_end(rows);
    return rc;
}

static bool is_on(const char *value)
{
    return strcmp(value, "ON") == 0 || strcmp(value, "1") == 0;
}

static int examine_commit(mysql_store *store, setting *s, jobq_examination *e)
{
    const char *flush, *binlog, *sync;
    int rc = read_setting(store, s, "innodb_flush_log_at_trx_commit", &flush);

    rc = rc ? rc : read_setting(store, s, "log_bin", &binlog);
    rc = rc ? rc : read_setting(store, s, "sync_binlog", &sync);
    if (rc < 0)
        return rc;
    if (strcmp(flush, "1") != 0 && strcmp(flush, "3") != 0)
        return jobq__remark(e, strcmp(flush, "2") == 0 ? JOBQ_REMARK_NOTE : JOBQ_REMARK_PROBLEM,
                            "durability", "set innodb_flush_log_at_trx_commit=1",
                            "innodb_flush_log_at_trx_commit is %s: a %s may take the last second's "
                            "pushes, and bring back jobs that were done",
                            flush, strcmp(flush, "2") == 0 ? "power cut" : "crash");
    if (is_on(binlog) && strcmp(sync, "1") != 0)
        return jobq__remark(e, JOBQ_REMARK_NOTE, "durability",
                            "set sync_binlog=1, unless a replica may lack what the primary has",
                            "sync_binlog is %s with the binary log on: after a power cut replicas "
                            "may lack the last pushes",
                            sync);
    return ok(e, "durability",
              "what is confirmed is on the disk (innodb_flush_log_at_trx_commit=1)");
}

static int examine_doublewrite(mysql_store *store, setting *s, jobq_examination *e)
{
    const char *value;
    int rc = read_setting(store, s, "innodb_doublewrite", &value);

    if (rc < 0 || (strcmp(value, "OFF") != 0 && strcmp(value, "0") != 0))
        return rc;
    return jobq__remark(e, JOBQ_REMARK_NOTE, "doublewrite",
                        "set innodb_doublewrite=ON, unless the file system writes pages as a whole",
                        "innodb_doublewrite is off: a power cut may leave a torn page, which "
                        "damages the table");
}

static int examine_binlog(mysql_store *store, setting *s, jobq_examination *e)
{
    const char *binlog, *format;
    int rc = read_setting(store, s, "log_bin", &binlog);

    rc = rc ? rc : read_setting(store, s, "binlog_format", &format);
    if (rc < 0 || !is_on(binlog) || strcmp(format, "STATEMENT") != 0)
        return rc;
    return jobq__remark(e, JOBQ_REMARK_PROBLEM, "binlog", "set binlog_format=MIXED or ROW",
                        "binlog_format is STATEMENT: the server refuses READ COMMITTED, and with "
                        "it every exchange");
}

/* Our sessions set their own wait for a row's lock; this one is for tables that are altered. */
static int examine_waits(mysql_store *store, setting *s, jobq_examination *e)
{
    const char *value;
    int rc = read_setting(store, s, "lock_wait_timeout", &value);

    if (rc < 0 || strtoll(value, NULL, 10) >= LOCK_WAIT_LEAST_S)
        return rc;
    return jobq__remark(e, JOBQ_REMARK_NOTE, "lock_wait_timeout",
                        "set lock_wait_timeout to 60 or more",
                        "lock_wait_timeout is %s: whatever alters or locks our tables for longer "
                        "makes pushes and workers fail",
                        value);
}

static int examine_packets(mysql_store *store, setting *s, jobq_examination *e)
{
    const char *value;
    int rc = read_setting(store, s, "max_allowed_packet", &value);
    const long long bytes = rc == 0 ? strtoll(value, NULL, 10) : 0;

    if (rc < 0)
        return rc;
    if (bytes - (bytes / 4 < 262144 ? bytes / 4 : 262144) < BODY_LIMIT + 1024)
        return jobq__remark(e, JOBQ_REMARK_PROBLEM, "max_allowed_packet",
                            "set max_allowed_packet=16M or more, or lower max_payload",
                            "max_allowed_packet is %lld: payloads below the usual limit of 1 MiB "
                            "are refused",
                            bytes);
    return jobq__remark(e, JOBQ_REMARK_OK, "max_allowed_packet", NULL, "%lld MB go at once",
                        bytes >> 20);
}

static int examine_read_only(mysql_store *store, setting *s, jobq_examination *e)
{
    const char *value;
    int rc = read_setting(store, s, "read_only", &value);

    if (rc < 0 || !is_on(value))
        return rc;
    return jobq__remark(e, JOBQ_REMARK_PROBLEM, "read_only",
                        "let the dsn lead to the primary, or set read_only=OFF",
                        "read_only is on: unless this user is exempt nothing can be pushed or "
                        "settled");
}

/* ---- the tables ------------------------------------------------------------------------------ */

/* `make` makes it again. */
static const struct {
    const char *table, *index, *columns, *make;
} indexes[] = {
    {"jobqueue_job", "PRIMARY", "seq", "ALTER TABLE jobqueue_job ADD PRIMARY KEY(seq)"},
    {"jobqueue_job", "jobqueue_job_id", "id",
     "ALTER TABLE jobqueue_job ADD UNIQUE KEY jobqueue_job_id(id)"},
    {"jobqueue_job", "jobqueue_job_unique", "queue,unique_key,holds",
     "ALTER TABLE jobqueue_job ADD UNIQUE KEY jobqueue_job_unique(queue, unique_key, holds)"},
    {"jobqueue_job", "jobqueue_job_line", "place,queue,ranking,available_at,seq",
     "ALTER TABLE jobqueue_job ADD KEY jobqueue_job_line(place, queue, ranking, available_at, "
     "seq)"},
    {"jobqueue_job", "jobqueue_job_due", "due,seq",
     "ALTER TABLE jobqueue_job ADD KEY jobqueue_job_due(due, seq)"},
    {"jobqueue_worker", "PRIMARY", "worker", "ALTER TABLE jobqueue_worker ADD PRIMARY KEY(worker)"},
    {"jobqueue_worker", "jobqueue_worker_id", "id",
     "ALTER TABLE jobqueue_worker ADD UNIQUE KEY jobqueue_worker_id(id)"},
    {"jobqueue_keep", "PRIMARY", "keep_until,seq",
     "ALTER TABLE jobqueue_keep ADD PRIMARY KEY(keep_until, seq)"},
    {"jobqueue_limit", "PRIMARY", "queue", "ALTER TABLE jobqueue_limit ADD PRIMARY KEY(queue)"},
    {"jobqueue_room", "jobqueue_room_queue", "queue,taken",
     "ALTER TABLE jobqueue_room ADD KEY jobqueue_room_queue(queue, taken)"},
    {"jobqueue_minute", "PRIMARY", "queue,minute,slot",
     "ALTER TABLE jobqueue_minute ADD PRIMARY KEY(queue, minute, slot)"},
};
#define INDEX                                                                             \
    "SELECT COUNT(*) FROM (SELECT GROUP_CONCAT(column_name ORDER BY seq_in_index) AS c "  \
    "FROM information_schema.statistics WHERE table_schema=DATABASE() AND table_name=?1 " \
    "AND index_name=?2) i WHERE LOWER(i.c)=?3"
#define ODD_TABLES                                                                   \
    "SELECT table_name, IFNULL(engine, ''), IFNULL(table_collation, '') "            \
    "FROM information_schema.tables WHERE table_schema=DATABASE() AND "              \
    "table_type='BASE TABLE' AND table_name IN ('jobqueue_job', 'jobqueue_worker', " \
    "'jobqueue_queue', 'jobqueue_control', 'jobqueue_pause', 'jobqueue_schema', "    \
    "'jobqueue_keep', 'jobqueue_limit', 'jobqueue_room', 'jobqueue_minute') AND "    \
    "(engine<>'InnoDB' OR table_collation NOT LIKE 'utf8mb4%')"

static int examine_indexes(mysql_store *store, jobq_examination *e)
{
    const size_t count = sizeof(indexes) / sizeof(indexes[0]);
    size_t missing = 0;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        const mysql_arg args[] = {bytes_arg(jobq__slice_text(indexes[i].table)),
                                  bytes_arg(jobq__slice_text(indexes[i].index)),
                                  bytes_arg(jobq__slice_text(indexes[i].columns))};
        int64_t there = 0;
        bool found = false;

        rc = jobq__mysql_ask(store, INDEX, args, &found, &there);
        if (rc < 0 || there)
            continue;
        missing++;
        rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "index", indexes[i].make,
                          "the index %s of %s is missing, or is another one", indexes[i].index,
                          indexes[i].table);
    }
    return rc || missing ? rc : ok(e, "index", "all indexes are there");
}

static int examine_tables(mysql_store *store, jobq_examination *e)
{
    jobq_batch texts = {0};
    mysql_statement *rows = NULL;
    jobq_slice name = {"", 0}, engine = {"", 0}, collation = {"", 0};
    int rc = jobq__mysql_select(store, ODD_TABLES, NULL, &rows);
    size_t odd = 0;

    for (; rc == 0 && jobq__mysql_next(rows); odd++) {
        if (!jobq__mysql_copy(rows, 0, &texts, &name) ||
            !jobq__mysql_copy(rows, 1, &texts, &engine) ||
            !jobq__mysql_copy(rows, 2, &texts, &collation))
            rc = jobq__error_nomem();
        else if (strcasecmp(engine.p, "InnoDB") != 0)
            rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "engine",
                              "ALTER TABLE it to ENGINE=InnoDB: without transactions jobs are lost",
                              "the table %s is of the engine %s", (const char *)name.p,
                              (const char *)engine.p);
        else
            rc = jobq__remark(e, JOBQ_REMARK_NOTE, "charset",
                              "ALTER TABLE it to DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
                              "the table %s has the collation %s", (const char *)name.p,
                              (const char *)collation.p);
    }
    jobq__mysql_end(rows);
    jobq__batch_free(&texts);
    return rc || odd ? rc : ok(e, "engine", "all tables are of InnoDB");
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* Each asks nothing of any row, but for the right to. */
static const struct {
    const char *right, *sql;
} rights[] = {
    {"INSERT", "INSERT INTO jobqueue_queue(name) SELECT name FROM jobqueue_queue WHERE 1=0"},
    {"UPDATE", "UPDATE jobqueue_queue SET name=name WHERE 1=0"},
    {"DELETE", "DELETE FROM jobqueue_queue WHERE 1=0"},
};

static int examine_rights(mysql_store *store, jobq_examination *e)
{
    int64_t rc, routines = 0;
    size_t lacking = 0;

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        rc = jobq__mysql_run(store, rights[i].sql, NULL);
        if (rc >= 0)
            continue;
        if (store->suspect)
            return (int)rc;
        lacking++;
        if (jobq_error_native(jobq_error_last()) == MYSQL_TABLE_DENIED)
            rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "rights",
                              "GRANT SELECT, INSERT, UPDATE, DELETE on the database to this user",
                              "this user lacks %s on our tables", rights[i].right);
        else
            rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "writes", "see what the server says",
                              "%s on our tables fails: %s", rights[i].right,
                              jobq_error_message(jobq_error_last()));
        jobq__error_clear();
        if (rc < 0)
            return (int)rc;
    }
    rc = lacking ? 0 : ok(e, "rights", "this user may push, work and mend");
    rc = rc < 0 ? rc : jobq__mysql_count_routines(store, &routines);
    if (rc == 0 && routines < MYSQL_ROUTINES)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "routines", ROUTINES_ADVICE,
                          "the functions jobqueue_push and jobqueue_done are missing: there are no "
                          "statements for the application's own transactions, all else works");
    return (int)rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int examine_version(mysql_store *store, jobq_examination *e)
{
    const char *version = mysql_get_server_info(store->db);

    if (!store->compound)
        return jobq__remark(e, JOBQ_REMARK_NOTE, "version", "take MariaDB 10.6 or newer",
                            "the server is version %s, which is not tested: an exchange takes five "
                            "or six trips instead of one",
                            version);
    return jobq__remark(e, JOBQ_REMARK_OK, "version", NULL, "the server is version %s", version);
}

static int examine_schema(mysql_store *store, jobq_examination *e)
{
    if (jobq__mysql_check_schema(store) < 0) {
        const int rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "schema", "run `jobqueue migrate`",
                                    "%s", jobq_error_message(jobq_error_last()));

        jobq__error_clear();
        return rc < 0 ? rc : 1;
    }
    return ok(e, "schema", "the tables are of this library's version");
}

static int examine_all(mysql_store *store, void *payload)
{
    static int (*const settings[])(mysql_store *, setting *, jobq_examination *) = {
        examine_commit, examine_doublewrite, examine_binlog,
        examine_waits,  examine_packets,     examine_read_only};
    jobq_examination *e = payload;
    setting s = {0};
    int rc = examine_version(store, e);

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && rc == 0; i++)
        rc = settings[i](store, &s, e);
    jobq__batch_free(&s.texts);
    rc = rc ? rc : examine_schema(store, e);
    if (rc > 0)
        return 0; /* nothing more can be said of the tables */
    rc = rc ? rc : examine_tables(store, e);
    rc = rc ? rc : examine_indexes(store, e);
    return rc ? rc : examine_rights(store, e);
}

int jobq__mysql_examine(void *handle, jobq_examination *e)
{
    return jobq__mysql_do(handle, MYSQL_FOR_SCHEMA, examine_all, e);
}
