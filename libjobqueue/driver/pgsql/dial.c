/* SPDX-License-Identifier: MIT
 *
 * Opening a connection by a deadline. Several hosts are tried one after the other, each with a
 * deadline of its own: libpq's non-blocking connecting would stay for ever with one that is silent.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/clock.h"
#include "util/error.h"

enum { MIN_SERVER = 120000, OPTIONS = 64, HOST_MAX = 256 };

/* The usual ones. */
const char *const jobq__pgsql_own[] = {
    "application_name",
    "channel_binding",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "passfile",
    "password",
    "port",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslpassword",
    "sslrootcert",
    "user",
    "keepalives",
    "target_session_attrs",
    NULL,
};

/* libpq's own keywords, but for those that would break what we rely on. */
bool jobq__pgsql_takes(const char *name)
{
    static const char *const ours[] = {"client_encoding", "replication", "connect_timeout"};
    PQconninfoOption *options;
    bool found = false;

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strcmp(name, ours[i]) == 0)
            return false;
    options = PQconndefaults();
    for (const PQconninfoOption *o = options; o && o->keyword && !found; o++)
        found = strcmp(o->keyword, name) == 0;
    PQconninfoFree(options);
    return found;
}

/* ---- what libpq is told ---------------------------------------------------------------------- */

typedef struct {
    const char *names[OPTIONS + 1], *values[OPTIONS + 1];
    int n;
} options;

/* Of two with the same name libpq takes the later one. */
static void add(options *o, const char *name, const char *value)
{
    if (!value || o->n >= OPTIONS)
        return;
    o->names[o->n] = name;
    o->values[o->n++] = value;
}

static const char *given(const jobq_driver_config *config, const char *name)
{
    for (size_t i = 0; i < config->extra_count; i++)
        if (strcmp(config->extra[i].name, name) == 0)
            return config->extra[i].value;
    return NULL;
}

/* With `ca` the server's certificate and name are checked unless somebody says otherwise. Without
 * verification the file is left out, for libpq would check against it all the same. */
static void add_tls(options *o, const jobq_driver_config *config)
{
    bool checked = config->ca && config->verify;

    add(o, "sslrootcert", checked ? config->ca : NULL);
    add(o, "sslcert", config->cert);
    add(o, "sslkey", config->key);
    add(o, "sslmode", checked ? "verify-full" : config->ca ? "require" : NULL);
}

static void add_all(options *o, const jobq_driver_config *config, const char *host,
                    const char *port, bool several)
{
    const char *path = config->path.p;

    add(o, "fallback_application_name", "jobqueue");
    add(o, "keepalives_idle", "30");
    add(o, "keepalives_interval", "10");
    add(o, "keepalives_count", "3");
    add(o, "host", host[0] ? host : NULL);
    add(o, "port", port[0] ? port : NULL);
    add(o, "user", config->user.n ? config->user.p : NULL);
    add(o, "password", config->password.p);
    if (path && path[0] == '/') /* postgresql:///name */
        path++;
    add(o, "dbname", path && path[0] ? path : NULL);
    add(o, "target_session_attrs", several ? "read-write" : NULL);
    add_tls(o, config);
    for (size_t i = 0; i < config->extra_count; i++)
        add(o, config->extra[i].name, config->extra[i].value);
    add(o, "client_encoding", "UTF8");
}

/* ---- hosts ----------------------------------------------------------------------------------- */

typedef struct {
    char host[HOST_MAX], port[8];
} place;

static size_t count_hosts(const jobq_driver_config *config)
{
    size_t n = 1;

    for (size_t i = 0; i < config->host.n; i++)
        n += ((const char *)config->host.p)[i] == ',';
    return n;
}

/* "h", "h:1", "[::1]:1" of a list. */
static void split_place(const char *p, size_t n, place *out)
{
    const char *close = n && p[0] == '[' ? memchr(p, ']', n) : NULL;
    const char *colon = memchr(close ? close : p, ':', n - (size_t)((close ? close : p) - p));
    size_t host_n = close ? (size_t)(close - p) - 1 : colon ? (size_t)(colon - p) : n;

    snprintf(out->host, sizeof(out->host), "%.*s", (int)host_n, close ? p + 1 : p);
    if (colon)
        snprintf(out->port, sizeof(out->port), "%.*s", (int)(n - (size_t)(colon - p) - 1),
                 colon + 1);
}

static void find_place(const jobq_driver_config *config, size_t which, place *out)
{
    const char *p = config->host.n ? config->host.p : "";
    size_t n;

    memset(out, 0, sizeof(*out));
    if (count_hosts(config) == 1) {
        snprintf(out->host, sizeof(out->host), "%.*s", (int)config->host.n, p);
        if (config->port)
            snprintf(out->port, sizeof(out->port), "%d", config->port);
        return;
    }
    for (; which > 0; which--)
        p = strchr(p, ',') + 1;
    n = strcspn(p, ",");
    split_place(p, n, out);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Warnings are nobody's business; "terminating connection" is. */
static void hear_goodbye(void *payload, const PGresult *notice)
{
    const char *state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    pgsql_store *store = payload;

    store->suspect |= state && strncmp(state, "57P", 3) == 0;
}

/* 0 or JOBQ_ETIMEOUT. */
static int wait_socket(PGconn *conn, bool writing, int64_t deadline_us)
{
    for (;;) {
        int64_t left_us = deadline_us - jobq__clock_mono_us();
        struct pollfd fd = {.fd = PQsocket(conn), .events = writing ? POLLOUT : POLLIN};
        int n;

        if (left_us <= 0)
            return JOBQ_ETIMEOUT;
        n = poll(&fd, 1, (int)(left_us / 1000 < 60000 ? left_us / 1000 + 1 : 60000));
        if (n > 0 || (n < 0 && errno != EINTR))
            return 0;
    }
}

static int follow(PGconn *conn, int64_t deadline_us)
{
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    if (PQstatus(conn) == CONNECTION_BAD)
        return JOBQ_ECONNECT;
    while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
        int rc = wait_socket(conn, status == PGRES_POLLING_WRITING, deadline_us);

        if (rc < 0)
            return rc;
        status = PQconnectPoll(conn);
    }
    return status == PGRES_POLLING_OK ? 0 : JOBQ_ECONNECT;
}

static int dial_place(pgsql_store *store, const place *where, bool several)
{
    options o = {.n = 0};
    PGconn *conn;
    int rc;

    add_all(&o, store->config, where->host, where->port, several);
    conn = PQconnectStartParams(o.names, o.values, 0);
    if (!conn)
        return jobq__error_nomem();
    PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(conn, hear_goodbye, store);
    rc = follow(conn, jobq__clock_mono_us() + store->connect_ms * 1000);
    if (rc == 0) {
        PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);
        store->conn = conn;
        return 0;
    }
    if (rc == JOBQ_ETIMEOUT)
        rc = jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "postgresql", 0,
                                    "postgresql: %s does not answer within %lld ms",
                                    where->host[0] ? where->host : "the server",
                                    (long long)store->connect_ms);
    else
        rc = jobq__pgsql_refuse_dial(PQerrorMessage(conn), PQconnectionNeedsPassword(conn));
    PQfinish(conn);
    return rc;
}

static int check_server(pgsql_store *store)
{
    int version = PQserverVersion(store->conn);

    if (version >= MIN_SERVER)
        return 0;
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "postgresql", version,
                                  "postgresql: the server is version %d.%d, 12 or newer is needed",
                                  version / 10000, version / 100 % 100);
}

int jobq__pgsql_dial(pgsql_store *store)
{
    size_t n = count_hosts(store->config);
    bool several =
        n > 1 || (given(store->config, "host") && strchr(given(store->config, "host"), ','));
    int rc = JOBQ_ECONNECT;

    for (size_t i = 0; i < n && rc != 0; i++) {
        size_t which = (store->host + i) % n;
        place where;

        find_place(store->config, which, &where);
        rc = dial_place(store, &where, several);
        if (rc == 0)
            store->host = which;
    }
    return rc ? rc : check_server(store);
}
