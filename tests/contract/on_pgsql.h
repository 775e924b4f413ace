/* SPDX-License-Identifier: MIT
 *
 * A server of the program's own, a schema of each test's own, and another client beside the
 * library.
 */
#ifndef JOBQ_TESTS_ON_PGSQL_H
#define JOBQ_TESTS_ON_PGSQL_H

#include "contract/contract.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/server.h"

static server *postgres;
static char dsn[400], schema[32];
static int schemas;
static int64_t shifted_ms;

static inline const char *fresh_dsn(void)
{
    if (!postgres)
        postgres = server_start("postgres", true);
    if (shifted_ms) /* each store begins with the right time */
        server_shift(postgres, -shifted_ms);
    shifted_ms = 0;
    snprintf(schema, sizeof(schema), "jobs_%d", ++schemas);
    snprintf(dsn, sizeof(dsn), "%s?read_timeout=20&schema=%s", server_dsn(postgres), schema);
    return dsn;
}

static inline void shift(int64_t ms)
{
    server_shift(postgres, ms);
    shifted_ms += ms;
}

/* ---- another client -------------------------------------------------------------------------- */

static inline PGconn *connect_client(void)
{
    PGconn *client = PQconnectdb(server_dsn(postgres));
    char sql[128];

    if (PQstatus(client) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(client));
    snprintf(sql, sizeof(sql), "SET client_min_messages = error; SET search_path = %s, public",
             schema);
    PQclear(PQexec(client, sql));
    return client;
}

static inline bool try_say(PGconn *client, const char *sql)
{
    PGresult *res = PQexec(client, sql);
    ExecStatusType status = PQresultStatus(res);

    PQclear(res);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static inline void say(PGconn *client, const char *sql)
{
    if (!try_say(client, sql))
        fail_msg("%s: %s", sql, PQerrorMessage(client));
}

/* The first cell, borrowed until the next call. */
static inline const char *ask_text(PGconn *client, const char *sql)
{
    static char text[512];
    PGresult *res = PQexec(client, sql);

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(client));
    snprintf(text, sizeof(text), "%s", PQntuples(res) ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    return text;
}

static inline int64_t ask(const char *sql)
{
    PGconn *client = connect_client();
    int64_t value = atoll(ask_text(client, sql));

    PQfinish(client);
    return value;
}

static inline void execute(const char *sql)
{
    PGconn *client = connect_client();

    say(client, sql);
    PQfinish(client);
}

/* Every live job stands in exactly one place, and every place belongs to a live job. */
static inline void check_places(void)
{
    static const char sql[] =
        "WITH live AS (SELECT seq FROM job WHERE state = 0), "
        "place AS (SELECT seq FROM ready UNION ALL SELECT seq FROM taken "
        "UNION ALL SELECT seq FROM delayed UNION ALL SELECT seq FROM held) "
        "SELECT abs((SELECT count(*) FROM place) - (SELECT count(*) FROM live)) + "
        "(SELECT count(*) FROM place WHERE seq NOT IN (SELECT seq FROM live)) + "
        "(SELECT count(*) - count(DISTINCT seq) FROM place) + "
        "(SELECT count(*) FROM trace WHERE seq NOT IN (SELECT seq FROM job)) + "
        "(SELECT count(*) FROM held WHERE worker NOT IN (SELECT key FROM worker))";

    assert_int_equal(ask(sql), 0);
}

#endif
