/* SPDX-License-Identifier: MIT
 *
 * See own.h. Each client library where the driver is built.
 */
#include "process/own.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef JOBQ_WITH_PGSQL
#define JOBQ_WITH_PGSQL 0
#endif
#ifndef JOBQ_WITH_MYSQL
#define JOBQ_WITH_MYSQL 0
#endif
#if JOBQ_WITH_PGSQL
#include <libpq-fe.h>
#else
typedef void PGconn;
#endif
#if JOBQ_WITH_MYSQL
#include <mysql.h>
#else
typedef void MYSQL;
#endif

enum { PARAMS_MAX = 32 };

struct own {
    sqlite3 *file;
    PGconn *pg;
    MYSQL *my;
    bool failed;    /* since the transaction began */
    int64_t number; /* of the last statement */
};

static void refuse(const char *what, const char *text)
{
    fprintf(stderr, "own client: %s: %s\n", what, text);
    abort();
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

static void open_file(own *o, const char *dsn)
{
    char path[512];

    snprintf(path, sizeof(path), "%.*s", (int)strcspn(dsn, "?"), dsn);
    if (sqlite3_open(path, &o->file) != SQLITE_OK)
        refuse(path, "cannot be opened");
    sqlite3_busy_timeout(o->file, 20000);
}

static void bind_file(sqlite3_stmt *stmt, int i, const jobq_param *param)
{
    switch (param->type) {
    case JOBQ_PARAM_INT:
        sqlite3_bind_int64(stmt, i, param->integer);
        break;
    case JOBQ_PARAM_DOUBLE:
        sqlite3_bind_double(stmt, i, param->real);
        break;
    case JOBQ_PARAM_TEXT:
        sqlite3_bind_text(stmt, i, param->bytes.p, (int)param->bytes.n, SQLITE_TRANSIENT);
        break;
    case JOBQ_PARAM_BYTES:
        sqlite3_bind_blob(stmt, i, param->bytes.p, (int)param->bytes.n, SQLITE_TRANSIENT);
        break;
    default:
        sqlite3_bind_null(stmt, i);
    }
}

static bool run_file(own *o, const jobq_statement *s)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(o->file, s->text.p, (int)s->text.n, &stmt, NULL);

    for (size_t i = 0; rc == SQLITE_OK && i < s->param_count; i++)
        bind_file(stmt, (int)i + 1, &s->params[i]);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        o->number = sqlite3_column_int64(stmt, 0);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

#if JOBQ_WITH_PGSQL
static void open_pg(own *o, const char *dsn)
{
    char uri[512];

    snprintf(uri, sizeof(uri), "%.*s", (int)strcspn(dsn, "?"), dsn);
    o->pg = PQconnectdb(uri);
    if (PQstatus(o->pg) != CONNECTION_OK)
        refuse(uri, PQerrorMessage(o->pg));
}

static bool run_pg(own *o, const jobq_statement *s)
{
    char text[PARAMS_MAX][32], *sql = strndup(s->text.p, s->text.n);
    const char *values[PARAMS_MAX] = {NULL};
    int lengths[PARAMS_MAX] = {0}, formats[PARAMS_MAX] = {0};
    PGresult *result;
    bool good;

    for (size_t i = 0; i < s->param_count && i < PARAMS_MAX; i++) {
        const jobq_param *param = &s->params[i];

        snprintf(text[i], sizeof(text[i]), "%lld", (long long)param->integer);
        formats[i] = param->type == JOBQ_PARAM_BYTES;
        lengths[i] = (int)param->bytes.n;
        values[i] = param->type == JOBQ_PARAM_NULL  ? NULL
                    : param->type == JOBQ_PARAM_INT ? text[i]
                                                    : param->bytes.p;
        if (param->type == JOBQ_PARAM_TEXT)
            values[i] = strndup(param->bytes.p, param->bytes.n);
    }
    result = PQexecParams(o->pg, sql, (int)s->param_count, NULL, values, lengths, formats, 0);
    good = PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK;
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
        o->number = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    free(sql);
    return good;
}
#endif

/* ---- MariaDB --------------------------------------------------------------------------------- */

#if JOBQ_WITH_MYSQL
/* "mysql://jobqueue@127.0.0.1:3306/name?..." */
static void open_my(own *o, const char *dsn)
{
    const char *colon = strrchr(dsn, ':'), *slash = colon ? strchr(colon, '/') : NULL;
    char name[64];

    if (!slash)
        refuse(dsn, "no port and database");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(slash + 1, "?"), slash + 1);
    o->my = mysql_init(NULL);
    if (!mysql_real_connect(o->my, "127.0.0.1", "jobqueue", NULL, name, (unsigned)atoi(colon + 1),
                            NULL, 0))
        refuse(dsn, mysql_error(o->my));
}

static bool run_my(own *o, const jobq_statement *s)
{
    MYSQL_BIND binds[PARAMS_MAX], out;
    unsigned long lengths[PARAMS_MAX];
    MYSQL_STMT *stmt = mysql_stmt_init(o->my);
    long long first = 0;
    bool good;

    memset(binds, 0, sizeof(binds));
    memset(&out, 0, sizeof(out));
    for (size_t i = 0; i < s->param_count && i < PARAMS_MAX; i++) {
        const jobq_param *param = &s->params[i];

        lengths[i] = param->bytes.n;
        binds[i].length = &lengths[i];
        binds[i].buffer = (void *)param->bytes.p;
        binds[i].buffer_length = param->bytes.n;
        binds[i].buffer_type = param->type == JOBQ_PARAM_INT     ? MYSQL_TYPE_LONGLONG
                               : param->type == JOBQ_PARAM_BYTES ? MYSQL_TYPE_BLOB
                               : param->type == JOBQ_PARAM_TEXT  ? MYSQL_TYPE_STRING
                                                                 : MYSQL_TYPE_NULL;
        if (param->type == JOBQ_PARAM_INT)
            binds[i].buffer = (void *)&param->integer;
    }
    out.buffer_type = MYSQL_TYPE_LONGLONG;
    out.buffer = &first;
    good = mysql_stmt_prepare(stmt, s->text.p, s->text.n) == 0 &&
           (s->param_count == 0 || !mysql_stmt_bind_param(stmt, binds)) &&
           mysql_stmt_execute(stmt) == 0;
    if (good && mysql_stmt_field_count(stmt) == 1 && mysql_stmt_bind_result(stmt, &out) == 0 &&
        mysql_stmt_fetch(stmt) == 0)
        o->number = first;
    mysql_stmt_close(stmt);
    return good;
}
#endif

/* ---- all ------------------------------------------------------------------------------------- */

own *own_open(const char *dsn)
{
    own *o = calloc(1, sizeof(*o));

    if (strncmp(dsn, "sqlite:", 7) == 0)
        open_file(o, dsn + 7);
#if JOBQ_WITH_PGSQL
    else if (strncmp(dsn, "postgres", 8) == 0)
        open_pg(o, dsn);
#endif
#if JOBQ_WITH_MYSQL
    else if (strncmp(dsn, "mysql", 5) == 0)
        open_my(o, dsn);
#endif
    else
        refuse(dsn, "no client for that");
    return o;
}

void own_close(own *o)
{
    sqlite3_close(o->file);
#if JOBQ_WITH_PGSQL
    if (o->pg)
        PQfinish(o->pg);
#endif
#if JOBQ_WITH_MYSQL
    if (o->my)
        mysql_close(o->my);
#endif
    free(o);
}

bool own_run(own *o, const jobq_statement *statement)
{
#if JOBQ_WITH_PGSQL
    if (o->pg)
        return run_pg(o, statement);
#endif
#if JOBQ_WITH_MYSQL
    if (o->my)
        return run_my(o, statement);
#endif
    return run_file(o, statement);
}

void own_execute(own *o, const char *sql)
{
    const jobq_statement s = {.text = {sql, strlen(sql)}};

    if (!own_run(o, &s))
        refuse(sql, o->file ? sqlite3_errmsg(o->file) : "failed");
}

int64_t own_number(own *o, const char *sql)
{
    o->number = -1;
    own_execute(o, sql);
    return o->number;
}
