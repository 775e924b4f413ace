/* SPDX-License-Identifier: MIT
 *
 * The caller's own statements: conditions of a push and work that is tied to a lease, each in one
 * transaction with what belongs to it (rules B7, O1). Values travel as parameters only: integers as
 * bigint, doubles as double precision, bytes as bytea; what type a text is, the server tells from
 * the place where it stands, as with any quoted word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/str.h"

/* Under the caller's search path: operators are named with their schema. */
#define IS "OPERATOR(pg_catalog.=)"
#define HOLDS                                                          \
    "SELECT 1 FROM @.worker w JOIN @.held h ON h.worker " IS " w.key " \
    "WHERE w.id " IS " $1 AND h.seq " IS " $2 AND h.nonce " IS " $3 "  \
    "FOR UPDATE OF h"
#define ID_EXISTS "SELECT 1 FROM @.job j WHERE j.id " IS " $1"

enum { ROUNDS = 5 };
enum { PG_FLOAT4 = 700, PG_NUMERIC = 1700 };

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct {
    const char *what; /* "guard" */
    pgsql_foreign params;
    char numbers[100][40];
    char *sql; /* ends with a NUL, as do the texts */
    jobq__arena arena;
} foreign;

static const char *copy_text(foreign *f, jobq_slice s)
{
    char *copy = jobq__arena_alloc(&f->arena, s.n + 1);

    if (copy) {
        if (s.n)
            memcpy(copy, s.p, s.n);
        copy[s.n] = '\0';
    }
    return copy;
}

static int put_bytes(foreign *f, int at, const jobq_param *p)
{
    pgsql_foreign *to = &f->params;

    to->values[at] = copy_text(f, p->bytes);
    if (!to->values[at])
        return jobq__error_nomem();
    if (p->type == JOBQ_PARAM_BYTES) {
        to->types[at] = PG_BYTEA;
        to->formats[at] = 1;
        to->lengths[at] = (int)p->bytes.n;
    } else if (strlen(to->values[at]) != p->bytes.n) {
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "postgresql", 0,
                                      "postgresql: the %s's value %d is a text with a NUL", f->what,
                                      at + 1);
    }
    return 0;
}

static int put_value(foreign *f, int at, const jobq_param *p)
{
    pgsql_foreign *to = &f->params;

    to->values[at] = f->numbers[at];
    switch (p->type) {
    case JOBQ_PARAM_INT:
        to->types[at] = PG_INT8;
        snprintf(f->numbers[at], sizeof(f->numbers[at]), "%lld", (long long)p->integer);
        return 0;
    case JOBQ_PARAM_DOUBLE:
        to->types[at] = PG_FLOAT8;
        jobq__str_put_double(f->numbers[at], 17, p->real);
        return 0;
    case JOBQ_PARAM_TEXT:
    case JOBQ_PARAM_BYTES:
        return put_bytes(f, at, p);
    default:
        to->values[at] = NULL;
        return 0;
    }
}

static int prepare(foreign *f, const jobq_statement *s)
{
    int rc = 0;

    if (s->param_count > sizeof(f->params.types) / sizeof(f->params.types[0]))
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "postgresql", 0,
                                      "postgresql: the %s has %zu values (allowed: 100)", f->what,
                                      s->param_count);
    f->sql = (char *)copy_text(f, s->text);
    if (!f->sql)
        return jobq__error_nomem();
    if (strlen(f->sql) != s->text.n)
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "postgresql", 0,
                                      "postgresql: the %s has a NUL in it", f->what);
    f->params.n = (int)s->param_count;
    for (int i = 0; i < f->params.n && rc == 0; i++)
        rc = put_value(f, i, &s->params[i]);
    return rc;
}

/* ---- carrying out ---------------------------------------------------------------------------- */

static int refuse(const foreign *f, const char *why)
{
    return jobq__error_set_driver(JOBQ_EINVAL, 0, "postgresql", 0, "postgresql: the %s %s", f->what,
                                  why);
}

/* The transaction is still ours, and the answer is one. */
static int judge(pgsql_store *store, const foreign *f, const PGresult *res)
{
    switch (PQresultStatus(res)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
        if (PQtransactionStatus(store->conn) == PQTRANS_INTRANS)
            return 0;
        return refuse(f, "may not end the transaction");
    case PGRES_EMPTY_QUERY:
        return refuse(f, "is empty");
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        return refuse(f, "may not copy to or from the client");
    default:
        return jobq__pgsql_refused_foreign(store, res, f->what, false);
    }
}

static int carry_out(pgsql_store *store, const char *what, const jobq_statement *s,
                     PGresult **res_out)
{
    foreign *f = jobq__zalloc(sizeof(*f));
    int rc;

    if (!f)
        return jobq__error_nomem();
    f->what = what;
    rc = prepare(f, s);
    if (rc == 0)
        rc = jobq__pgsql_ask(store, f->sql, &f->params, res_out);
    if (rc == 0) {
        rc = judge(store, f, *res_out);
        if (rc < 0)
            PQclear(*res_out);
    }
    jobq__arena_free(&f->arena);
    jobq__free(f);
    return rc;
}

/* ---- guards (rule B7) ------------------------------------------------------------------------ */

static bool is_number(Oid type)
{
    return type == PG_INT2 || type == PG_INT4 || type == PG_INT8 || type == PG_FLOAT4 ||
           type == PG_FLOAT8 || type == PG_NUMERIC;
}

static bool is_true(const PGresult *res)
{
    const char *value;

    if (PQntuples(res) == 0 || PQnfields(res) == 0 || PQgetisnull(res, 0, 0))
        return false;
    value = PQgetvalue(res, 0, 0);
    if (PQftype(res, 0) == PG_BOOL)
        return value[0] == 't';
    if (is_number(PQftype(res, 0)))
        return jobq__str_to_double(value) != 0;
    return PQgetlength(res, 0, 0) > (PQftype(res, 0) == PG_BYTEA ? 2 : 0); /* "\x" and the bytes */
}

/* 1 yes, 0 no. */
static int has_rows(pgsql_store *store, pgsql_statement which, const char *sql, pgsql_params *p)
{
    PGresult *res;
    int rc = jobq__pgsql_run(store, which, sql, p, false, &res);

    if (rc < 0)
        return rc;
    rc = PQntuples(res) > 0;
    PQclear(res);
    return rc;
}

static int id_exists(pgsql_store *store, jobq_slice id)
{
    pgsql_params p = {0};

    jobq__pgsql_text(&p, id);
    return has_rows(store, ST_ID_EXISTS, ID_EXISTS, &p);
}

/* A known id is a duplicate whatever the guard says. */
static int push_one(pgsql_store *store, jobq_push *item)
{
    PGresult *res = NULL;
    int rc = item->guard ? carry_out(store, "guard", item->guard, &res) : 0;
    bool holds = true;

    if (rc == 0 && item->guard) {
        holds = is_true(res);
        PQclear(res);
    }
    if (rc < 0 || holds)
        return rc < 0 ? rc : jobq__pgsql_push_judged(store, item);
    rc = id_exists(store, item->id);
    item->result = rc > 0 ? JOBQ_EEXISTS : JOBQ_EGUARD;
    return rc < 0 ? rc : 0;
}

static int push_all(pgsql_store *store, jobq_push *items, size_t n)
{
    int rc = jobq__pgsql_begin(store);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = push_one(store, &items[i]);
    return jobq__pgsql_finish(store, rc);
}

/* Nothing was done: once more. */
static bool is_again(const pgsql_store *store, int rc, int round)
{
    return rc == JOBQ_EBUSY && !store->suspect && round < ROUNDS;
}

int jobq__pgsql_push_guarded(pgsql_store *store, jobq_push *items, size_t n)
{
    int round = 0, rc;

    do
        rc = push_all(store, items, n);
    while (is_again(store, rc, ++round));
    return rc;
}

/* ---- effects (rule O1) ----------------------------------------------------------------------- */

static int read_bytes(const PGresult *res, jobq_batch *out, jobq_param *value)
{
    size_t n = 0;
    unsigned char *bytes = PQunescapeBytea((const unsigned char *)PQgetvalue(res, 0, 0), &n);

    if (!bytes)
        return jobq__error_nomem();
    value->bytes = jobq_batch_copy(out, bytes, n);
    PQfreemem(bytes);
    return value->bytes.p ? 0 : jobq__error_nomem();
}

static int read_value(const PGresult *res, jobq_batch *out, jobq_param *value)
{
    const char *text = PQgetvalue(res, 0, 0);

    value->type = JOBQ_PARAM_NULL;
    if (PQgetisnull(res, 0, 0))
        return 0;
    switch (PQftype(res, 0)) {
    case PG_BOOL:
        *value = (jobq_param){.type = JOBQ_PARAM_INT, .integer = text[0] == 't'};
        return 0;
    case PG_INT2:
    case PG_INT4:
    case PG_INT8:
        *value = (jobq_param){.type = JOBQ_PARAM_INT, .integer = strtoll(text, NULL, 10)};
        return 0;
    case PG_FLOAT4:
    case PG_FLOAT8:
        *value = (jobq_param){.type = JOBQ_PARAM_DOUBLE, .real = jobq__str_to_double(text)};
        return 0;
    case PG_BYTEA:
        value->type = JOBQ_PARAM_BYTES;
        return read_bytes(res, out, value);
    default:
        value->type = JOBQ_PARAM_TEXT;
        return jobq__pgsql_copy(res, 0, 0, out, &value->bytes) ? 0 : jobq__error_nomem();
    }
}

static int read_answer(const PGresult *res, jobq_effect *e)
{
    e->value = (jobq_param){0};
    if (PQntuples(res) > 0 && PQnfields(res) > 0)
        return read_value(res, e->out, &e->value);
    e->value.type = JOBQ_PARAM_INT;
    e->value.integer = PQresultStatus(res) == PGRES_TUPLES_OK && PQnfields(res) > 0
                           ? 0
                           : strtoll(PQcmdTuples((PGresult *)res), NULL, 10);
    return 0;
}

/* 1 yes: and until the transaction ends nobody can settle it or take it back. */
static int holds(pgsql_store *store, const jobq_effect *e)
{
    pgsql_params p = {0};

    jobq__pgsql_text(&p, e->worker);
    jobq__pgsql_int(&p, (int64_t)e->token.word[0]);
    jobq__pgsql_int(&p, (int64_t)e->token.word[2]);
    return has_rows(store, ST_HOLDS, HOLDS, &p);
}

static int run_effect(pgsql_store *store, jobq_effect *e)
{
    PGresult *res = NULL;
    int rc = jobq__pgsql_begin(store);

    if (rc < 0)
        return rc;
    rc = holds(store, e);
    e->result = rc > 0 ? 0 : JOBQ_ELEASE;
    if (rc > 0) {
        rc = carry_out(store, "effect", &e->statement, &res);
        if (rc == 0) {
            rc = read_answer(res, e);
            PQclear(res);
        }
    }
    return jobq__pgsql_finish(store, rc);
}

int jobq__pgsql_effect(void *handle, jobq_effect *e)
{
    pgsql_store *store = handle;
    int round = 0, rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    do
        rc = run_effect(store, e);
    while (is_again(store, rc, ++round));
    return jobq__pgsql_leave(store, rc);
}
