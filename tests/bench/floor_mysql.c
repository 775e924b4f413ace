/* SPDX-License-Identifier: MIT
 *
 * The floor for MariaDB: one table. A push is one prepared INSERT, in bulk one INSERT with many
 * rows. There is no UPDATE ... RETURNING, so an exchange is two trips and one commit: settle the
 * batch under its fence and look for the next with SKIP LOCKED, then mark that and commit. Nothing
 * wakes who waits: it looks every POLL_MS.
 *
 *     floor_mysql HOST:PORT:USER:DATABASE JOBS PHASE...
 */
#include "floor.h"

#include <mysql.h>

enum { POLL_MS = 5, FLAGS = CLIENT_MULTI_STATEMENTS };

#define INSERT_SQL "INSERT INTO floor_job(id, queue, rank, at, name, body) VALUES"
#define PUSH_SQL INSERT_SQL "(?, 1, 9, now(3), 'noop', ?)"
#define LOOK_SQL                                                                               \
    "SELECT seq, id, name, body, fence FROM floor_job FORCE INDEX(ready) WHERE queue = 1 AND " \
    "rank = 9 AND worker = 0 AND seq > %" PRId64 " ORDER BY seq LIMIT %d FOR UPDATE SKIP LOCKED"

static const char *const schema[] = {
    "DROP TABLE IF EXISTS floor_job",
    "CREATE TABLE floor_job(seq bigint AUTO_INCREMENT PRIMARY KEY,"
    " id varbinary(128) NOT NULL UNIQUE, queue int NOT NULL, rank smallint NOT NULL,"
    " at datetime(3) NOT NULL, worker int NOT NULL DEFAULT 0, nonce bigint NOT NULL DEFAULT 0,"
    " fence bigint NOT NULL DEFAULT 0, name varbinary(128) NOT NULL, body longblob,"
    " KEY ready(queue, worker, rank, seq)) ENGINE=InnoDB"};

static MYSQL *db;
static MYSQL_STMT *push_stmt;
static int64_t held[BATCH], reached;
static int held_count;
static uint64_t nonce = 1;

/* ---- connection ------------------------------------------------------------------------------ */

static void check(int failed, const char *doing)
{
    if (failed)
        fail(doing, mysql_error(db));
}

static void run(const char *sql, size_t n)
{
    check(mysql_real_query(db, sql, (unsigned long)n), sql);
}

static void open_mysql(const char *address)
{
    char host[128], user[128], database[128];
    int port;

    if (sscanf(address, "%127[^:]:%d:%127[^:]:%127s", host, &port, user, database) != 4)
        fail(address, "not HOST:PORT:USER:DATABASE");
    db = mysql_init(NULL);
    mysql_optionsv(db, MYSQL_INIT_COMMAND, "SET SESSION tx_isolation = 'READ-COMMITTED'");
    if (!mysql_real_connect(db, host, user, NULL, database, (unsigned)port, NULL, FLAGS))
        fail("connecting", mysql_error(db));
    push_stmt = NULL;
    held_count = 0;
    reached = 0;
}

static void close_mysql(void)
{
    if (push_stmt)
        mysql_stmt_close(push_stmt);
    mysql_close(db);
    db = NULL;
}

static void reset_mysql(void)
{
    held_count = 0;
    reached = 0;
    for (size_t i = 0; i < sizeof(schema) / sizeof(schema[0]); i++)
        run(schema[i], strlen(schema[i]));
}

/* ---- push ------------------------------------------------------------------------------------ */

static char *put_row(char *p, const floor_job *job)
{
    p += sprintf(p, "('%s', 1, 9, now(3), 'noop', '", job->id);
    p += mysql_real_escape_string(db, p, job->body, BODY);
    return p + sprintf(p, "')");
}

/* The first on a connection costs one trip this way, the others no parsing the other way. */
static void push_as_text(const floor_job *job)
{
    char sql[512], *end = put_row(stpcpy(sql, INSERT_SQL), job);

    run(sql, (size_t)(end - sql));
}

static MYSQL_STMT *prepare_push(void)
{
    MYSQL_STMT *stmt = mysql_stmt_init(db);

    if (mysql_stmt_prepare(stmt, PUSH_SQL, sizeof(PUSH_SQL) - 1))
        fail("preparing", mysql_stmt_error(stmt));
    return stmt;
}

static void push(const floor_job *job)
{
    static unsigned long id_length = ID, body_length = BODY;
    static const MYSQL *before;
    static floor_job bound;
    MYSQL_BIND bind[2] = {
        {.buffer_type = MYSQL_TYPE_STRING, .buffer = bound.id, .length = &id_length},
        {.buffer_type = MYSQL_TYPE_BLOB, .buffer = bound.body, .length = &body_length}};

    if (before != db) {
        before = db;
        push_as_text(job);
        return;
    }
    if (!push_stmt) {
        push_stmt = prepare_push();
        mysql_stmt_bind_param(push_stmt, bind);
    }
    bound = *job;
    if (mysql_stmt_execute(push_stmt))
        fail("push", mysql_stmt_error(push_stmt));
}

static void push_bulk(const floor_job *jobs, int n)
{
    static char sql[512 * BULK];
    char *end = stpcpy(sql, INSERT_SQL);

    for (int i = 0; i < n; i++) {
        if (i > 0)
            *end++ = ',';
        end = put_row(end, &jobs[i]);
    }
    run(sql, (size_t)(end - sql));
}

/* ---- exchange -------------------------------------------------------------------------------- */

static char *put_held(char *p)
{
    for (int i = 0; i < held_count; i++)
        p += sprintf(p, "%s%" PRId64, i ? "," : "", held[i]);
    return stpcpy(p, ")");
}

static void next_result(const char *doing)
{
    if (mysql_next_result(db) != 0)
        fail(doing, mysql_error(db));
}

static int take_rows(floor_job *got)
{
    MYSQL_RES *rows = mysql_store_result(db);
    MYSQL_ROW row;
    int n = 0;

    if (!rows)
        fail("reserve", mysql_error(db));
    while ((row = mysql_fetch_row(rows))) {
        held[n] = strtoll(row[0], NULL, 10);
        if (held[n] > reached)
            reached = held[n];
        memcpy(got[n].id, row[1], ID);
        memcpy(got[n].body, row[3], BODY);
        n++;
    }
    mysql_free_result(rows);
    return n;
}

/* Trip one: settle and look. */
static int settle_and_look(floor_job *got)
{
    static char sql[BATCH * 24 + 512];
    char *p = stpcpy(sql, "START TRANSACTION;");
    int settled = held_count;

    if (settled) {
        p = put_held(stpcpy(p, "DELETE FROM floor_job WHERE seq IN ("));
        p += sprintf(p, " AND nonce = %" PRIu64 ";", nonce);
    }
    p += sprintf(p, LOOK_SQL, reached, BATCH);
    run(sql, (size_t)(p - sql));
    next_result("settle");
    if (settled) {
        if (mysql_affected_rows(db) != (my_ulonglong)settled)
            fail("settling", "a lease was lost");
        next_result("reserve");
    }
    return take_rows(got);
}

/* Trip two: mark and commit. */
static void mark_and_commit(void)
{
    static char sql[BATCH * 24 + 512];
    char *p = sql;

    nonce++;
    if (held_count) {
        p += sprintf(p, "UPDATE floor_job SET worker = 1, fence = fence + 1, nonce = %" PRIu64 " ",
                     nonce);
        p = stpcpy(put_held(stpcpy(p, "WHERE seq IN (")), ";");
    }
    p = stpcpy(p, "COMMIT");
    run(sql, (size_t)(p - sql));
    if (held_count)
        next_result("commit");
}

static int exchange(floor_job *got)
{
    int n = settle_and_look(got);

    held_count = n;
    mark_and_commit();
    return n;
}

/* ---- latency --------------------------------------------------------------------------------- */

static void listen_mysql(bool waiting)
{
    (void)waiting;
}

static int await(floor_job *got)
{
    usleep(POLL_MS * 1000);
    return exchange(got);
}

int main(int argc, char **argv)
{
    static const floor_store store = {
        .name = "mysql",
        .singles = 2000,
        .fresh = 200,
        .open = open_mysql,
        .reset = reset_mysql,
        .push = push,
        .push_bulk = push_bulk,
        .exchange = exchange,
        .listen = listen_mysql,
        .await = await,
        .close = close_mysql,
    };

    return run_floor(&store, argc, argv);
}
