/* SPDX-License-Identifier: MIT
 *
 * The floor for PostgreSQL: one table, prepared statements, binary parameters. A push is one
 * INSERT; in bulk one INSERT of arrays. An exchange is one trip and one commit: a DELETE of the
 * batch under its fence and an UPDATE over SKIP LOCKED that starts behind the place reached. Who
 * waits listens; a push then notifies in the same transaction.
 *
 *     floor_pgsql CONNINFO JOBS PHASE...
 */
#include "floor.h"

#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>

#define PUSH_SQL                                              \
    "INSERT INTO floor_job(id, queue, rank, at, name, body) " \
    "VALUES($1::text, 1, 9, now(), 'noop', $2::bytea)"
#define BULK_SQL                                              \
    "INSERT INTO floor_job(id, queue, rank, at, name, body) " \
    "SELECT i, 1, 9, now(), 'noop', b FROM unnest($1::text[], $2::bytea[]) AS j(i, b)"
#define SETTLE_SQL "DELETE FROM floor_job WHERE seq = ANY($1::bigint[]) AND nonce = $2::bigint"
/* The places of one rank; `at` and `seq` grow together here as they do in a queue. */
#define RESERVE_SQL                                                           \
    "UPDATE floor_job SET nonce = $1::bigint, worker = 1, fence = fence + 1 " \
    "FROM (SELECT seq AS s FROM floor_job WHERE queue = 1 AND rank = 9 "      \
    "AND worker IS NULL AND seq > $3::bigint "                                \
    "ORDER BY seq LIMIT $2::int FOR UPDATE SKIP LOCKED) AS x "                \
    "WHERE seq = s RETURNING seq, id, name, body, fence"

static const char schema[] =
    "DROP TABLE IF EXISTS floor_job;"
    "CREATE TABLE floor_job(seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " id text NOT NULL UNIQUE, queue int NOT NULL, rank smallint NOT NULL,"
    " at timestamptz NOT NULL, worker int, nonce bigint, fence bigint NOT NULL DEFAULT 0,"
    " name text NOT NULL, body bytea);"
    "CREATE INDEX floor_job_ready ON floor_job(queue, rank, seq) WHERE worker IS NULL;";

typedef enum { ST_PUSH, ST_BULK, ST_SETTLE, ST_RESERVE, ST_NOTIFY, ST_COUNT } statement;
static const char *const names[] = {"push", "bulk", "settle", "reserve", "notify"};

static PGconn *db;
static bool prepared[ST_COUNT], used;
static int64_t held[BATCH], reached;
static int held_count;
static uint64_t nonce = 1;
static bool notifies;

/* ---- answers --------------------------------------------------------------------------------- */

static PGresult *check(PGresult *result, const char *doing)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_PIPELINE_SYNC)
        fail(doing, PQerrorMessage(db));
    return result;
}

static PGresult *piped_result(const char *doing)
{
    PGresult *result = check(PQgetResult(db), doing);

    if (PQgetResult(db))
        fail(doing, "more than one answer");
    return result;
}

/* ---- connection ------------------------------------------------------------------------------ */

static void open_pgsql(const char *address)
{
    db = PQconnectdb(address);
    if (PQstatus(db) != CONNECTION_OK)
        fail("connecting", PQerrorMessage(db));
    memset(prepared, 0, sizeof(prepared));
    used = false;
    held_count = 0;
    reached = 0;
}

static void close_pgsql(void)
{
    PQfinish(db);
    db = NULL;
}

static void reset_pgsql(void)
{
    held_count = 0;
    reached = 0;
    PQclear(check(PQexec(db, "SET client_min_messages = warning"), "reset"));
    PQclear(check(PQexec(db, schema), "schema"));
}

/* Once per connection. */
static void prepare_once(statement which)
{
    static const char *const sql[] = {PUSH_SQL, BULK_SQL, SETTLE_SQL, RESERVE_SQL, "NOTIFY floor"};

    if (!prepared[which])
        PQclear(check(PQprepare(db, names[which], sql[which], 0, NULL), sql[which]));
    prepared[which] = true;
}

/* ---- push ------------------------------------------------------------------------------------ */

static void push_and_notify(const char *const *values, const int *lengths, const int *formats)
{
    PQenterPipelineMode(db);
    PQsendQueryPrepared(db, "push", 2, values, lengths, formats, 1);
    PQsendQueryPrepared(db, "notify", 0, NULL, NULL, NULL, 1);
    PQpipelineSync(db);
    PQclear(piped_result("push"));
    PQclear(piped_result("notify"));
    PQclear(check(PQgetResult(db), "sync"));
    PQexitPipelineMode(db);
}

/* The first on a connection costs one trip this way, the others no parsing the other way. */
static void push(const floor_job *job)
{
    const char *values[] = {job->id, job->body};
    const int lengths[] = {ID, BODY}, formats[] = {1, 1};

    if (!notifies && !used) {
        PQclear(check(PQexecParams(db, PUSH_SQL, 2, NULL, values, lengths, formats, 1), "push"));
        used = true;
        return;
    }
    prepare_once(ST_PUSH);
    if (notifies)
        push_and_notify(values, lengths, formats);
    else
        PQclear(check(PQexecPrepared(db, "push", 2, values, lengths, formats, 1), "push"));
}

static char *put32(char *p, uint32_t value)
{
    value = htobe32(value);
    memcpy(p, &value, 4);
    return p + 4;
}

static char *put64(char *p, uint64_t value)
{
    value = htobe64(value);
    memcpy(p, &value, 8);
    return p + 8;
}

/* The binary form of an array of one dimension without NULLs begins with this. */
static char *put_array_head(char *p, uint32_t type, int n)
{
    p = put32(put32(put32(p, 1), 0), type);
    return put32(put32(p, (uint32_t)n), 1);
}

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, ARRAY_HEAD = 20 };

static void push_bulk(const floor_job *jobs, int n)
{
    static char ids[ARRAY_HEAD + BULK * (4 + ID)], bodies[ARRAY_HEAD + BULK * (4 + BODY)];
    const char *values[] = {ids, bodies};
    char *i = put_array_head(ids, OID_TEXT, n), *b = put_array_head(bodies, OID_BYTEA, n);
    const int formats[] = {1, 1};
    int lengths[2];

    for (int k = 0; k < n; k++) {
        i = put32(i, ID);
        memcpy(i, jobs[k].id, ID);
        i += ID;
        b = put32(b, BODY);
        memcpy(b, jobs[k].body, BODY);
        b += BODY;
    }
    lengths[0] = (int)(i - ids);
    lengths[1] = (int)(b - bodies);
    prepare_once(ST_BULK);
    PQclear(check(PQexecPrepared(db, "bulk", 2, values, lengths, formats, 1), "push_bulk"));
}

/* ---- exchange -------------------------------------------------------------------------------- */

static int64_t read64(const PGresult *rows, int row, int column)
{
    uint64_t value;

    memcpy(&value, PQgetvalue(rows, row, column), 8);
    return (int64_t)be64toh(value);
}

static void send_settle(void)
{
    char seqs[ARRAY_HEAD + BATCH * 12], fence[8], *p;
    const char *values[] = {seqs, fence};
    const int formats[] = {1, 1};
    int lengths[] = {0, 8};

    p = put_array_head(seqs, OID_INT8, held_count);
    for (int i = 0; i < held_count; i++)
        p = put64(put32(p, 8), (uint64_t)held[i]);
    lengths[0] = (int)(p - seqs);
    put64(fence, nonce);
    PQsendQueryPrepared(db, "settle", 2, values, lengths, formats, 1);
}

static void send_reserve(void)
{
    char fence[8], limit[4], behind[8];
    const char *values[] = {fence, limit, behind};
    const int lengths[] = {8, 4, 8}, formats[] = {1, 1, 1};

    put64(fence, nonce + 1);
    put32(limit, BATCH);
    put64(behind, (uint64_t)reached);
    PQsendQueryPrepared(db, "reserve", 3, values, lengths, formats, 1);
}

static int take_rows(const PGresult *rows, floor_job *got)
{
    int n = PQntuples(rows);

    for (int i = 0; i < n; i++) {
        held[i] = read64(rows, i, 0);
        if (held[i] > reached)
            reached = held[i];
        memcpy(got[i].id, PQgetvalue(rows, i, 1), ID);
        memcpy(got[i].body, PQgetvalue(rows, i, 3), BODY);
    }
    nonce++;
    held_count = n;
    return n;
}

static int exchange(floor_job *got)
{
    int settled = held_count, n;
    PGresult *result;

    prepare_once(ST_SETTLE);
    prepare_once(ST_RESERVE);
    PQenterPipelineMode(db);
    if (settled)
        send_settle();
    send_reserve();
    PQpipelineSync(db);
    if (settled) {
        result = piped_result("settle");
        if (atoi(PQcmdTuples(result)) != settled)
            fail("settling", "a lease was lost");
        PQclear(result);
    }
    result = piped_result("reserve");
    n = take_rows(result, got);
    PQclear(result);
    PQclear(check(PQgetResult(db), "sync"));
    PQexitPipelineMode(db);
    return n;
}

/* ---- latency --------------------------------------------------------------------------------- */

static void listen_pgsql(bool waiting)
{
    if (waiting)
        PQclear(check(PQexec(db, "LISTEN floor"), "listen"));
    else
        prepare_once(ST_NOTIFY);
    notifies = !waiting;
}

static int await(floor_job *got)
{
    struct pollfd pfd = {.fd = PQsocket(db), .events = POLLIN};
    PGnotify *note;

    poll(&pfd, 1, 1000);
    PQconsumeInput(db);
    while ((note = PQnotifies(db)))
        PQfreemem(note);
    return exchange(got);
}

int main(int argc, char **argv)
{
    static const floor_store store = {
        .name = "pgsql",
        .singles = 2000,
        .fresh = 200,
        .open = open_pgsql,
        .reset = reset_pgsql,
        .push = push,
        .push_bulk = push_bulk,
        .exchange = exchange,
        .listen = listen_pgsql,
        .await = await,
        .close = close_pgsql,
    };

    return run_floor(&store, argc, argv);
}
