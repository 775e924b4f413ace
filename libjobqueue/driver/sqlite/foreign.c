/* SPDX-License-Identifier: MIT
 *
 * The caller's own statements: conditions of a push, work that is tied to a lease, and statements
 * of ours for the caller's own transaction (rules B7, B8, O1). Values travel as parameters only.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/answers.h"
#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

/* The casts are for clients that bind everything as text. */
#define NUMBER(n) "CAST(?" #n " AS INTEGER)"
#define TEXT(n) "CAST(?" #n " AS TEXT)"
#define BYTES(n) "CAST(?" #n " AS BLOB)"
#define WHAT TEXT(1) ", " TEXT(2) ", " TEXT(3) ", " NUMBER(4) ", " NUMBER(5)
#define WHEN NUMBER(6) ", " NUMBER(7)
#define BODY TEXT(8) ", " BYTES(9) ", " BYTES(10)
#define HOW NUMBER(11) ", " NUMBER(12)
#define SHOWN "CASE WHEN " NUMBER(13) " AND result='duplicate' THEN 'held' ELSE result END"
#define PUSH                                                                   \
    "INSERT INTO jobqueue_push(id, queue, name, version, priority, delay_ms, " \
    "at_ms, unique_key, header, body, on_duplicate, max_wait_ms) "             \
    "VALUES(" WHAT ", " WHEN ", " BODY ", " HOW ") "                           \
    "RETURNING (SELECT id FROM jobqueue_answer) AS id, "                       \
    "(SELECT " SHOWN " FROM jobqueue_answer) AS result"
#define DONE                                                                                 \
    "INSERT INTO jobqueue_done(seq, nonce, keep_ms, outcome, history, bare) VALUES(" NUMBER( \
        1) ", " NUMBER(2) ", " NUMBER(3) ", " BYTES(4) ", " BYTES(5) ", " NUMBER(6) ")"
#define HOLDS                                                                 \
    "SELECT 1 FROM jobqueue_held h JOIN jobqueue_worker w ON w.key=h.worker " \
    "WHERE h.seq=?1 AND h.nonce=?2 AND w.id=?3"

/* ---- carrying out the caller's --------------------------------------------------------------- */

static void bind_param(sqlite3_stmt *stmt, int at, const jobq_param *p)
{
    switch (p->type) {
    case JOBQ_PARAM_INT:
        sqlite3_bind_int64(stmt, at, p->integer);
        break;
    case JOBQ_PARAM_DOUBLE:
        sqlite3_bind_double(stmt, at, p->real);
        break;
    case JOBQ_PARAM_TEXT:
        jobq__sqlite_bind(stmt, at, p->bytes);
        break;
    case JOBQ_PARAM_BYTES:
        jobq__sqlite_bind_blob(stmt, at, p->bytes);
        break;
    default:
        sqlite3_bind_null(stmt, at);
    }
}

/* ---- no longer than the call may take -------------------------------------------------------- */

enum { LOOK_EVERY = 1000 }; /* steps of SQLite's machine: some tens of microseconds */

static int is_overdue(void *payload)
{
    const sqlite_store *store = payload;

    return jobq__clock_mono_us() >= store->deadline_us;
}

/* The caller's statement holds the write lock: everybody waits as long as it runs. */
static int step(sqlite_store *store, sqlite3_stmt *stmt)
{
    int code;

    sqlite3_progress_handler(store->db, LOOK_EVERY, is_overdue, store);
    code = sqlite3_step(stmt);
    sqlite3_progress_handler(store->db, 0, NULL, NULL); /* a rollback is not cut */
    return code;
}

static int refuse_slow(const sqlite_store *store, const char *what)
{
    return jobq__error_set_driver(JOBQ_ETIMEOUT, JOBQ__RETRYABLE, "sqlite", SQLITE_INTERRUPT,
                                  "sqlite: the %s took longer than read_timeout (%g s for the "
                                  "whole call); nothing was changed",
                                  what, (double)store->timeout_ms / 1000);
}

/* A mistake in the statement, or trouble with the store (a full disk, a lock). */
static int refuse(sqlite_store *store, const char *what)
{
    switch (sqlite3_errcode(store->db) & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        break;
    case SQLITE_INTERRUPT:
        return refuse_slow(store, what);
    default:
        return jobq__sqlite_fail(store, what);
    }
    return jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", sqlite3_errcode(store->db),
                                  "sqlite: the %s is refused: %s", what, sqlite3_errmsg(store->db));
}

/* To the first word: SQLite passes over white space, comments, empty statements and a byte order
 * mark. */
static const char *first_word(const char *sql)
{
    for (;;) {
        const char *end = NULL;

        if (*sql && strchr(" \t\n\v\f\r;", *sql))
            end = sql + 1;
        else if (strncmp(sql, "\xef\xbb\xbf", 3) == 0)
            end = sql + 3;
        else if (strncmp(sql, "--", 2) == 0)
            end = sql + strcspn(sql, "\n");
        else if (strncmp(sql, "/*", 2) == 0)
            end = (end = strstr(sql + 2, "*/")) ? end + 2 : sql + strlen(sql);
        if (!end)
            return sql;
        sql = end;
    }
}

/* Words that begin or end a transaction would take ours apart. */
static int check_plain(sqlite3_stmt *stmt, const char *what)
{
    static const char *const words[] = {"BEGIN",     "COMMIT",  "END",    "ROLLBACK",
                                        "SAVEPOINT", "RELEASE", "ATTACH", "DETACH"};
    const char *sql = stmt ? first_word(sqlite3_sql(stmt)) : NULL;

    if (!stmt)
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0, "sqlite: the %s is empty", what);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (sqlite3_strnicmp(sql, words[i], (int)strlen(words[i])) == 0)
            return jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0,
                                          "sqlite: the %s may not contain %s", what, words[i]);
    return 0;
}

/* Binds each place: $2 gets the second value, wherever it stands (SQLite itself counts such names
 * as they come), ? and ?2 go by SQLite's number. Other names say nothing about the order of
 * values. */
static int bind_all(sqlite3_stmt *stmt, const jobq_statement *s, const char *what)
{
    for (int at = 1; at <= (int)s->param_count; at++) {
        const char *name = sqlite3_bind_parameter_name(stmt, at);
        char *end = NULL;
        long number = at;

        if (name && name[0] != '?')
            number = name[0] == '$' ? strtol(name + 1, &end, 10) : 0;
        if (number < 1 || number > (long)s->param_count || (end && *end))
            return jobq__error_set_driver(
                JOBQ_EINVAL, 0, "sqlite", 0,
                "sqlite: the %s has a place \"%s\" and %zu value%s; places "
                "are ? or $1, $2 ...",
                what, name, s->param_count, jobq__plural((int64_t)s->param_count));
        bind_param(stmt, at, &s->params[number - 1]);
    }
    return 0;
}

/* One statement, with as many values as it has places for. */
static int prepare(sqlite_store *store, const jobq_statement *s, const char *what,
                   sqlite3_stmt **stmt_out)
{
    const char *tail = NULL;
    sqlite3_stmt *stmt = NULL;
    int rc;

    if (sqlite3_prepare_v2(store->db, s->text.p, (int)s->text.n, &stmt, &tail) != SQLITE_OK)
        return refuse(store, what);
    while (tail && tail < (const char *)s->text.p + s->text.n && strchr(" \t\r\n;", *tail))
        tail++;
    rc = check_plain(stmt, what);
    if (rc == 0 && tail && tail < (const char *)s->text.p + s->text.n)
        rc = jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0,
                                    "sqlite: the %s has more than one statement", what);
    if (rc == 0 && (size_t)sqlite3_bind_parameter_count(stmt) != s->param_count)
        rc = jobq__error_set_driver(
            JOBQ_EINVAL, 0, "sqlite", 0, "sqlite: the %s takes %d value%s, got %zu", what,
            sqlite3_bind_parameter_count(stmt), jobq__plural(sqlite3_bind_parameter_count(stmt)),
            s->param_count);
    if (rc == 0)
        rc = bind_all(stmt, s, what);
    if (rc < 0) {
        sqlite3_finalize(stmt);
        return rc;
    }
    *stmt_out = stmt;
    return 0;
}

/* The second line of defence: what goes on without a transaction could be half done. */
static int check_open(sqlite_store *store, const char *what)
{
    return sqlite3_get_autocommit(store->db)
               ? jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0,
                                        "sqlite: the %s has ended its transaction", what)
               : 0;
}

static bool is_true(sqlite3_stmt *stmt)
{
    switch (sqlite3_column_type(stmt, 0)) {
    case SQLITE_NULL:
        return false;
    case SQLITE_INTEGER:
        return sqlite3_column_int64(stmt, 0) != 0;
    case SQLITE_FLOAT:
        return sqlite3_column_double(stmt, 0) != 0;
    default:
        return sqlite3_column_bytes(stmt, 0) > 0;
    }
}

int jobq__sqlite_judge_guard(sqlite_store *store, const jobq_statement *guard)
{
    sqlite3_stmt *stmt = NULL;
    int code, rc = prepare(store, guard, "guard", &stmt);

    if (rc < 0)
        return rc;
    code = step(store, stmt);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        rc = refuse(store, "guard");
    else if ((rc = check_open(store, "guard")) == 0)
        rc = code == SQLITE_ROW && is_true(stmt);
    sqlite3_finalize(stmt);
    return rc;
}

static int read_value(sqlite3_stmt *stmt, jobq_batch *out, jobq_param *value)
{
    const int type = sqlite3_column_type(stmt, 0);

    value->type = type == SQLITE_INTEGER ? JOBQ_PARAM_INT
                  : type == SQLITE_FLOAT ? JOBQ_PARAM_DOUBLE
                  : type == SQLITE_TEXT  ? JOBQ_PARAM_TEXT
                  : type == SQLITE_BLOB  ? JOBQ_PARAM_BYTES
                                         : JOBQ_PARAM_NULL;
    value->integer = type == SQLITE_INTEGER ? sqlite3_column_int64(stmt, 0) : 0;
    value->real = type == SQLITE_FLOAT ? sqlite3_column_double(stmt, 0) : 0;
    if (type != SQLITE_TEXT && type != SQLITE_BLOB)
        return 0;
    return jobq__sqlite_copy(stmt, 0, out, &value->bytes) ? 0 : jobq__error_nomem();
}

static int carry_out(sqlite_store *store, jobq_effect *e)
{
    const int64_t before = sqlite3_total_changes(store->db);
    sqlite3_stmt *stmt = NULL;
    int code, rc = prepare(store, &e->statement, "effect", &stmt);
    bool row;

    if (rc < 0)
        return rc;
    code = step(store, stmt);
    row = code == SQLITE_ROW;
    rc = row ? read_value(stmt, e->out, &e->value) : 0;
    while (code == SQLITE_ROW && rc == 0)
        code = step(store, stmt);
    if (rc == 0 && code != SQLITE_DONE)
        rc = refuse(store, "effect");
    sqlite3_finalize(stmt);
    rc = rc ? rc : check_open(store, "effect");
    if (rc == 0 && !row)
        e->value = (jobq_param){.type = JOBQ_PARAM_INT,
                                .integer = sqlite3_total_changes(store->db) - before};
    return rc;
}

static int holds(sqlite_store *store, const jobq_effect *e)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_EFFECT_HOLDS, HOLDS);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, (int64_t)e->token.word[0]);
    sqlite3_bind_int64(stmt, 2, (int64_t)(e->token.word[2]));
    jobq__sqlite_bind(stmt, 3, e->worker);
    rc = jobq__sqlite_row(store, stmt);
    sqlite3_reset(stmt);
    return rc;
}

static int run_effect(sqlite_store *store, jobq_effect *e)
{
    int rc = holds(store, e);

    e->result = rc > 0 ? 0 : JOBQ_ELEASE;
    return rc > 0 ? carry_out(store, e) : rc;
}

int jobq__sqlite_effect(void *handle, jobq_effect *e)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = jobq__sqlite_begin(store);
    if (rc == 0)
        rc = jobq__sqlite_finish(store, run_effect(store, e));
    return jobq__sqlite_leave(store, rc);
}

/* ---- statements of ours for the caller ------------------------------------------------------- */

static jobq_param number(int64_t value)
{
    return (jobq_param){.type = JOBQ_PARAM_INT, .integer = value};
}

static jobq_param bytes(int type, jobq_slice s)
{
    return (jobq_param){.type = s.p ? type : JOBQ_PARAM_NULL, .bytes = s};
}

static int request_push(jobq_request *r)
{
    const jobq_push *item = r->push;
    const jobq_param params[] = {
        bytes(JOBQ_PARAM_TEXT, item->id),
        bytes(JOBQ_PARAM_TEXT, item->queue),
        bytes(JOBQ_PARAM_TEXT, item->name),
        number(item->version),
        number(item->priority),
        number(item->delay_ms > 0 ? item->delay_ms : 0),
        number(item->at_ms),
        bytes(JOBQ_PARAM_TEXT, item->unique),
        bytes(JOBQ_PARAM_BYTES, item->header),
        bytes(JOBQ_PARAM_BYTES, item->body),
        number(item->on_duplicate == JOBQ_DUPLICATE_REPLACE),
        number(item->max_wait_ms),
        number(item->idempotent),
    };

    if (item->guard)
        return jobq__error_set_driver(JOBQ_EUNSUPPORTED, 0, "sqlite", 0,
                                      "sqlite: a push in the caller's transaction takes no guard: "
                                      "ask for it in that transaction");
    return jobq__request_answer(r, PUSH, params, sizeof(params) / sizeof(params[0]));
}

static int request_done(jobq_request *r)
{
    const jobq_settlement *s = r->done;
    const jobq_param params[] = {
        number((int64_t)s->token.word[0]),
        number((int64_t)s->token.word[2]),
        number(s->keep_ms),
        bytes(JOBQ_PARAM_BYTES, s->outcome),
        bytes(JOBQ_PARAM_BYTES, s->history),
        number(s->keep_bare),
    };

    return jobq__request_answer(r, DONE, params, sizeof(params) / sizeof(params[0]));
}

int jobq__sqlite_request(void *handle, jobq_request *r)
{
    (void)handle;
    return r->push ? request_push(r) : request_done(r);
}
