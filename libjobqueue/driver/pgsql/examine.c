/* SPDX-License-Identifier: MIT
 *
 * What the server says of how it is set up (rule N5): durability, its version, whether all of our
 * tables and indexes are there and usable, what our user may do, and who holds old rows back.
 * Nothing is changed.
 */
#include <stdio.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/error.h"

enum { VERSION_LEAST = 120000, LONG_OPEN_S = 600, DEAD_MANY = 1000000 };

/* ---- settings -------------------------------------------------------------------------------- */

#define SETTINGS                                                                         \
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), "             \
    "current_setting('synchronous_commit'), current_setting('autovacuum'), "             \
    "current_setting('server_version'), current_setting('server_version_num')::bigint, " \
    "(SELECT s.setting::bigint FROM pg_settings s "                                      \
    "WHERE s.name = 'idle_in_transaction_session_timeout'), "                            \
    "(SELECT s.setting::bigint FROM pg_settings s WHERE s.name = 'statement_timeout'), " \
    "(pg_notification_queue_usage() * 100)::bigint, "                                    \
    "(SELECT max(extract(epoch FROM clock_timestamp() - a.xact_start))::bigint "         \
    "FROM pg_stat_activity a WHERE a.datname = current_database() AND "                  \
    "a.backend_type = 'client backend'), "                                               \
    "(SELECT count(*) FROM pg_stat_activity a WHERE a.datname = current_database() AND " \
    "a.backend_type = 'client backend'), "                                               \
    "(SELECT s.setting::bigint FROM pg_settings s WHERE s.name = 'max_connections'), "   \
    "(SELECT count(*) FROM pg_stat_activity a), "                                        \
    "(SELECT max(s.n_dead_tup) FROM pg_stat_all_tables s WHERE "                         \
    "s.relid = ANY (ARRAY['@.job'::regclass, '@.ready'::regclass, '@.held'::regclass]))"

enum {
    E_FSYNC,
    E_FULL_PAGES,
    E_SYNCHRONOUS,
    E_AUTOVACUUM,
    E_VERSION,
    E_VERSION_NUMBER,
    E_IDLE_TIMEOUT,
    E_STATEMENT_TIMEOUT,
    E_NOTIFY_USED,
    E_OPEN_S,
    E_SESSIONS,
    E_MAX_SESSIONS,
    E_ALL_SESSIONS,
    E_DEAD_ROWS
};

static bool is_off(const PGresult *res, int column)
{
    return PQgetlength(res, 0, column) == 3 && memcmp(PQgetvalue(res, 0, column), "off", 3) == 0;
}

static int examine_version(const PGresult *res, jobq_examination *e)
{
    const bool old = jobq__pgsql_get(res, 0, E_VERSION_NUMBER) < VERSION_LEAST;

    return jobq__remark(e, old ? JOBQ_REMARK_PROBLEM : JOBQ_REMARK_OK, "version",
                        old ? "update the server to PostgreSQL 12 or newer" : NULL,
                        "PostgreSQL %.*s", PQgetlength(res, 0, E_VERSION),
                        PQgetvalue(res, 0, E_VERSION));
}

static int examine_durability(const PGresult *res, jobq_examination *e)
{
    static const struct {
        int column;
        const char *text, *advice;
    } rows[] = {
        {E_FSYNC, "fsync is off: a crash of the host may ruin the whole database",
         "set fsync = on in postgresql.conf and reload"},
        {E_FULL_PAGES, "full_page_writes is off: a power cut may leave torn pages behind",
         "set full_page_writes = on in postgresql.conf and reload"},
        {E_SYNCHRONOUS,
         "synchronous_commit is off: a crash of the server may take the last moments' pushes",
         "take synchronous_commit = off away where it is set: postgresql.conf, ALTER ROLE, ALTER "
         "DATABASE or the dsn's options"}};
    bool any = false;
    int rc = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && rc == 0; i++) {
        if (!is_off(res, rows[i].column))
            continue;
        any = true;
        rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "durability", rows[i].advice, "%s", rows[i].text);
    }
    if (any || rc < 0)
        return rc;
    return jobq__remark(e, JOBQ_REMARK_OK, "durability", NULL,
                        "what is confirmed is on the disk (synchronous_commit %.*s)",
                        PQgetlength(res, 0, E_SYNCHRONOUS), PQgetvalue(res, 0, E_SYNCHRONOUS));
}

static int examine_vacuum(const PGresult *res, jobq_examination *e)
{
    const int64_t dead = jobq__pgsql_get(res, 0, E_DEAD_ROWS);
    const int64_t open_s = jobq__pgsql_get(res, 0, E_OPEN_S);
    int rc = 0;

    if (is_off(res, E_AUTOVACUUM))
        rc = jobq__remark(
            e, JOBQ_REMARK_PROBLEM, "vacuum",
            "set autovacuum = on: each finished job leaves rows that only vacuum takes "
            "away",
            "autovacuum is off");
    else if (dead >= DEAD_MANY)
        rc = jobq__remark(
            e, JOBQ_REMARK_NOTE, "vacuum",
            "see what keeps vacuum from it: a transaction open for long, a replication "
            "slot, a prepared transaction",
            "a table of ours has %lld dead rows", (long long)dead);
    else
        rc = jobq__remark(e, JOBQ_REMARK_OK, "vacuum", NULL, "autovacuum is on, %lld dead rows",
                          (long long)dead);
    if (rc == 0 && open_s >= LONG_OPEN_S)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "transactions",
                          "find it in pg_stat_activity (xact_start): while it is open no row that "
                          "was deleted since can go, and tables grow",
                          "a transaction has been open for %lld s", (long long)open_s);
    return rc;
}

static int examine_sessions(const pgsql_store *store, const PGresult *res, jobq_examination *e)
{
    const int64_t most = jobq__pgsql_get(res, 0, E_MAX_SESSIONS);
    const int64_t all = jobq__pgsql_get(res, 0, E_ALL_SESSIONS);
    int rc;

    if (store->pooled)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "listen",
                          "let workers connect to the server itself if jobs are to start at once",
                          "%s: nothing is kept in a session, and idle workers poll",
                          store->config->listen ? "there is a pooler in between" : "listen=false");
    else
        rc = jobq__remark(e, JOBQ_REMARK_OK, "listen", NULL, "pushes wake idle workers by NOTIFY");
    if (rc == 0 && jobq__pgsql_get(res, 0, E_NOTIFY_USED) >= 50)
        rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "listen",
                          "end the session that LISTENs and has a transaction open",
                          "the server's queue of notifications is %lld %% full: nobody is woken",
                          (long long)jobq__pgsql_get(res, 0, E_NOTIFY_USED));
    if (rc == 0 && all * 10 >= most * 9)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "sessions",
                          "raise max_connections, or put a pooler in between",
                          "%lld of %lld sessions are in use", (long long)all, (long long)most);
    return rc;
}

/* Sessions are ours to wait in; a statement ends by read_timeout in any case. */
static int examine_timeouts(const pgsql_store *store, const PGresult *res, jobq_examination *e)
{
    const int64_t statement_ms = jobq__pgsql_get(res, 0, E_STATEMENT_TIMEOUT);
    int rc = 0;

    if (jobq__pgsql_get(res, 0, E_IDLE_TIMEOUT) == 0)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "timeouts",
                          "set idle_in_transaction_session_timeout = '10min', say",
                          "idle_in_transaction_session_timeout is 0: a transaction that an "
                          "application forgot may stay open for ever, and with it what it has "
                          "pushed or locked");
    if (rc == 0 && statement_ms > 0 && statement_ms < store->read_ms)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "timeouts",
                          "raise it for this role: ALTER ROLE ... SET statement_timeout",
                          "statement_timeout is %lld ms, read_timeout %lld ms",
                          (long long)statement_ms, (long long)store->read_ms);
    return rc;
}

static int examine_settings(pgsql_store *store, jobq_examination *e)
{
    PGresult *res;
    int rc = jobq__pgsql_run(store, ST_EXAMINE, SETTINGS, NULL, false, &res);

    if (rc < 0)
        return rc;
    rc = examine_version(res, e);
    rc = rc ? rc : examine_durability(res, e);
    rc = rc ? rc : examine_vacuum(res, e);
    rc = rc ? rc : examine_sessions(store, res, e);
    rc = rc ? rc : examine_timeouts(store, res, e);
    PQclear(res);
    return rc;
}

/* ---- our tables and indexes ------------------------------------------------------------------ */

/* What must be there, and the statement that makes it anew. An index counts by what it is of, not
 * by its name: see the query. */
typedef struct {
    const char *table, *columns;
    bool unique;
    const char *condition; /* as the server writes it, NULL = none */
    const char *make;
} index_model;

static const index_model indexes[] = {
    {"job", "seq", true, NULL, "ALTER TABLE @.job ADD PRIMARY KEY (seq)"},
    {"job", "id", true, NULL, "CREATE UNIQUE INDEX job_id ON @.job(id)"},
    {"job", "queue, unique_key", true,
     "((unique_key IS NOT NULL) AND (state = 0) AND (follows IS NULL))",
     "CREATE UNIQUE INDEX job_unique ON @.job(queue, unique_key) WHERE unique_key IS NOT NULL AND "
     "state = 0 AND follows IS NULL"},
    {"job", "died_at, seq, queue", false, "(state = 4)",
     "CREATE INDEX job_dead ON @.job(died_at, seq, queue) WHERE state = 4"},
    {"job", "keep_until", false, "(keep_until IS NOT NULL)",
     "CREATE INDEX job_keep ON @.job(keep_until) WHERE keep_until IS NOT NULL"},
    {"ready", "queue, rank, available_at, seq", true, NULL,
     "ALTER TABLE @.ready ADD PRIMARY KEY (queue, rank, available_at, seq)"},
    {"taken", "queue, rank, available_at, seq", true, NULL,
     "ALTER TABLE @.taken ADD PRIMARY KEY (queue, rank, available_at, seq)"},
    {"delayed", "due, seq", true, NULL, "ALTER TABLE @.delayed ADD PRIMARY KEY (due, seq)"},
    {"held", "worker, seq", true, NULL, "ALTER TABLE @.held ADD PRIMARY KEY (worker, seq)"},
    {"trace", "seq", true, NULL, "ALTER TABLE @.trace ADD PRIMARY KEY (seq)"},
    {"worker", "key", true, NULL, "ALTER TABLE @.worker ADD PRIMARY KEY (key)"},
    {"worker", "id", true, NULL, "ALTER TABLE @.worker ADD UNIQUE (id)"},
    {"queue", "name", false, NULL, "CREATE INDEX queue_name ON @.queue(name)"},
    {"idle", "queue, key", true, NULL, "ALTER TABLE @.idle ADD PRIMARY KEY (queue, key)"},
    {"rewind", "queue", true, NULL, "ALTER TABLE @.rewind ADD PRIMARY KEY (queue)"},
    {"pause", "queue", true, NULL, "ALTER TABLE @.pause ADD PRIMARY KEY (queue)"},
    {"capacity", "queue", true, NULL, "ALTER TABLE @.capacity ADD PRIMARY KEY (queue)"},
    {"tally", "queue", false, NULL, "CREATE INDEX tally_queue ON @.tally(queue)"},
    {"minute", "minute, queue", true, NULL, "ALTER TABLE @.minute ADD PRIMARY KEY (minute, queue)"},
};
enum { INDEXES = sizeof(indexes) / sizeof(indexes[0]) };

/* Tables: there, and may we use them; indexes: is there a valid one. */
#define OBJECTS                                                                                \
    "SELECT to_regclass('@.' || u.t) IS NOT NULL, "                                            \
    "EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = to_regclass('@.' || u.t) AND "        \
    "i.indisvalid AND i.indisready AND (i.indisunique OR NOT u.is_unique) AND "                \
    "u.condition IS NOT DISTINCT FROM pg_get_expr(i.indpred, i.indrelid) AND "                 \
    "u.columns = (SELECT string_agg(a.attname, ', ' ORDER BY k.n) "                            \
    "FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n) "                                      \
    "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum)), "               \
    "coalesce(has_table_privilege(to_regclass('@.' || u.t), 'SELECT') AND "                    \
    "has_table_privilege(to_regclass('@.' || u.t), 'INSERT') AND "                             \
    "has_table_privilege(to_regclass('@.' || u.t), 'UPDATE') AND "                             \
    "has_table_privilege(to_regclass('@.' || u.t), 'DELETE'), true) "                          \
    "FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) "                           \
    "WITH ORDINALITY m(t, columns, condition, is_unique, n) "                                  \
    "CROSS JOIN LATERAL (SELECT m.t, m.columns, m.condition, m.is_unique = 1 AS is_unique) u " \
    "ORDER BY m.n"

static void put_models(pgsql_params *p)
{
    jobq__pgsql_array(p, PG_TEXT, INDEXES);
    for (size_t i = 0; i < INDEXES; i++)
        jobq__pgsql_put_slice(p, jobq__slice_text(indexes[i].table));
    jobq__pgsql_end(p);
    jobq__pgsql_array(p, PG_TEXT, INDEXES);
    for (size_t i = 0; i < INDEXES; i++)
        jobq__pgsql_put_slice(p, jobq__slice_text(indexes[i].columns));
    jobq__pgsql_end(p);
    jobq__pgsql_array(p, PG_TEXT, INDEXES);
    for (size_t i = 0; i < INDEXES; i++)
        jobq__pgsql_put_slice(p, jobq__slice_text(indexes[i].condition));
    jobq__pgsql_end(p);
    jobq__pgsql_array(p, PG_INT8, INDEXES);
    for (size_t i = 0; i < INDEXES; i++)
        jobq__pgsql_put_int8(p, indexes[i].unique);
    jobq__pgsql_end(p);
}

static int say_missing(const pgsql_store *store, jobq_examination *e, const index_model *m)
{
    char *sql = jobq__pgsql_expand(store, m->make), text[400];
    const char *advice;

    if (!sql)
        return jobq__error_code();
    snprintf(text, sizeof(text), "carry out: %s", sql);
    jobq__free(sql);
    advice = jobq_batch_copy(e->out, text, strlen(text) + 1).p;
    if (!advice)
        return jobq__error_nomem();
    return jobq__remark(e, JOBQ_REMARK_PROBLEM, "schema", advice,
                        "the table %s has no valid index on (%s)", m->table, m->columns);
}

static int judge_objects(const pgsql_store *store, const PGresult *res, jobq_examination *e)
{
    bool complete = true, allowed = true;
    int rc = 0;

    for (int row = 0; row < PQntuples(res) && row < INDEXES && rc == 0; row++) {
        const index_model *m = &indexes[row];

        allowed &= jobq__pgsql_get(res, row, 2);
        if (jobq__pgsql_get(res, row, 1))
            continue;
        complete = false;
        if (jobq__pgsql_get(res, row, 0))
            rc = say_missing(store, e, m);
        else
            rc =
                jobq__remark(e, JOBQ_REMARK_PROBLEM, "schema",
                             "restore it from a backup, or drop the schema and let it be made anew",
                             "the table %s is missing", m->table);
    }
    if (rc == 0 && complete)
        rc = jobq__remark(e, JOBQ_REMARK_OK, "schema", NULL,
                          "all tables and indexes of %s are there", store->schema);
    if (rc < 0 || allowed)
        return rc;
    return jobq__remark(e, JOBQ_REMARK_PROBLEM, "rights",
                        "see doc/stores/postgresql.md (Rights), or connect as the schema's owner",
                        "this role may not read and write all tables of %s", store->schema);
}

static int examine_objects(pgsql_store *store, jobq_examination *e)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    put_models(&p);
    rc = jobq__pgsql_run(store, ST_EXAMINE_OBJECTS, OBJECTS, &p, false, &res);
    if (rc < 0)
        return rc;
    rc = judge_objects(store, res, e);
    PQclear(res);
    return rc;
}

int jobq__pgsql_examine(void *handle, jobq_examination *e)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    rc = examine_settings(store, e);
    rc = rc ? rc : examine_objects(store, e);
    return jobq__pgsql_leave(store, rc);
}
