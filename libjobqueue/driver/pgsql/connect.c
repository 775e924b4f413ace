/* SPDX-License-Identifier: MIT
 *
 * The store's handle and its one connection. Every operation is enter ... leave: enter connects
 * when needed and notices a connection that ended while it was idle, before anything is sent on it.
 *
 * Behind a pooler that hands out server connections per transaction nothing may be kept in a
 * session: no prepared statements, no LISTEN. Such a one is known by `listen=false`, or because the
 * process it names is not the one that answers.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

#define BORN "(extract(epoch FROM a.backend_start) * 1000000)::bigint"
#define HELLO                                                                                \
    "SELECT pg_backend_pid(), to_regclass('@.meta') IS NOT NULL, "                           \
    "(SELECT " BORN " FROM pg_stat_get_activity(pg_backend_pid()) a), "                      \
    "CASE WHEN pg_backend_pid() = $1 THEN set_config('search_path', 'pg_catalog, pg_temp', " \
    "false) END"
#define END_LOST                                 \
    "SELECT count(pg_terminate_backend(a.pid)) " \
    "FROM pg_stat_get_activity($1::integer) a WHERE " BORN " = $2"

enum { MAX_BATCH = 4096, MAX_BODY = 64 << 20, CONNECT_MS = 5000, READ_MS = 5000 };
enum { END_US = 500000, END_NAP_NS = 5000000 };

/* ---- the connection -------------------------------------------------------------------------- */

void jobq__pgsql_disconnect(pgsql_store *store)
{
    PQfinish(store->conn);
    store->conn = NULL;
    store->suspect = store->listening = false;
    store->idle_until_us = 0;
    store->pid = 0;
    memset(store->used, 0, sizeof(store->used));
    memset(store->prepared, 0, sizeof(store->prepared));
    jobq__pgsql_forget_fronts(store);
}

/* A session that is ours alone looks names up where nobody puts objects of his own. */
static int say_hello(pgsql_store *store, bool *schema_out)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_int(&p, store->config->listen ? PQbackendPID(store->conn) : 0);
    store->pooled = true; /* until we know better */
    rc = jobq__pgsql_run(store, ST_HELLO, HELLO, &p, false, &res);
    if (rc < 0)
        return rc;
    store->pid = jobq__pgsql_get(res, 0, 0);
    if (store->pid != PQbackendPID(store->conn))
        store->pid = 0;
    store->born_us = jobq__pgsql_get(res, 0, 2);
    store->pooled = !store->config->listen || store->pid == 0;
    *schema_out = jobq__pgsql_get(res, 0, 1);
    PQclear(res);
    return 0;
}

/* A call that was given up may still run, or begin later: its process is ended first, so that it
 * hands out nothing behind the back of whoever asks what he holds. */
static int end_lost(pgsql_store *store)
{
    int64_t until_us = jobq__clock_mono_us() + END_US, left = 1;

    while (left > 0 && jobq__clock_mono_us() < until_us) {
        pgsql_params p = {0};
        PGresult *res;
        int rc;

        jobq__pgsql_int(&p, store->lost_pid);
        jobq__pgsql_int(&p, store->lost_born_us);
        rc = jobq__pgsql_run(store, ST_END_LOST, END_LOST, &p, false, &res);
        if (rc < 0 && store->suspect)
            return rc;
        left = rc < 0 ? 0 : jobq__pgsql_get(res, 0, 0); /* not allowed to: so be it */
        if (rc == 0)
            PQclear(res);
        if (left > 0)
            nanosleep(&(struct timespec){0, END_NAP_NS}, NULL);
    }
    store->lost_pid = 0;
    jobq__error_clear();
    return 0;
}

static int set_up(pgsql_store *store, bool for_schema)
{
    bool has_schema = false;
    int rc;

    if (PQsetnonblocking(store->conn, 1) != 0)
        return jobq__pgsql_broken(store, false);
    rc = say_hello(store, &has_schema);
    if (rc == 0 && store->lost_pid)
        rc = end_lost(store);
    if (rc < 0)
        return rc;
    if (has_schema)
        return jobq__pgsql_check_schema(store, store->config->migrate || for_schema);
    if (store->config->migrate || for_schema)
        return jobq__pgsql_migrate(store);
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "postgresql", 0,
                                  "postgresql: the schema %s is not there (run `jobqueue migrate`, "
                                  "or allow migrate)",
                                  store->schema);
}

static int connect_store(pgsql_store *store, bool for_schema)
{
    int rc = jobq__pgsql_dial(store);

    store->deadline_us = jobq__clock_mono_us() + store->read_ms * 1000;
    if (rc == 0)
        rc = set_up(store, for_schema);
    if (rc < 0) {
        struct jobq_error saved;

        jobq__error_save(&saved);
        jobq__pgsql_disconnect(store);
        jobq__error_restore(&saved);
    }
    return rc;
}

/* Something to read between two calls is a notification, or the server's goodbye and the end. */
static bool has_ended(pgsql_store *store)
{
    struct pollfd fd = {.fd = PQsocket(store->conn), .events = POLLIN};

    for (int i = 0; i < 4 && poll(&fd, 1, 0) > 0; i++) {
        if (!PQconsumeInput(store->conn))
            return true;
        PQisBusy(store->conn); /* reads what has come: a goodbye reaches hear_goodbye */
    }
    return store->suspect || PQstatus(store->conn) == CONNECTION_BAD;
}

int jobq__pgsql_enter(pgsql_store *store, bool for_schema)
{
    if (store->conn && has_ended(store))
        jobq__pgsql_disconnect(store);
    if (!store->conn) {
        int rc = connect_store(store, for_schema);

        if (rc < 0)
            return rc;
    }
    store->deadline_us = jobq__clock_mono_us() + store->read_ms * 1000;
    return 0;
}

int jobq__pgsql_leave(pgsql_store *store, int rc)
{
    if (store->suspect) {
        struct jobq_error saved;

        jobq__error_save(&saved);
        jobq__pgsql_disconnect(store);
        jobq__error_restore(&saved);
    }
    return rc;
}

/* ---- the driver's table ---------------------------------------------------------------------- */

static void free_store(pgsql_store *store)
{
    for (int i = 0; i < ST_COUNT; i++)
        jobq__free(store->texts[i]);
    jobq__free(store);
}

static int open_store(const jobq_driver_config *config, void **store_out)
{
    const char *schema = config->schema ? config->schema : "jobqueue";
    pgsql_store *store = jobq__zalloc(sizeof(*store));
    size_t n = strlen(schema);

    if (!store)
        return jobq__error_nomem();
    store->config = config;
    snprintf(store->schema, sizeof(store->schema), "\"%s\"", schema);
    /* A channel's name has the length of any other. */
    snprintf(store->channel, sizeof(store->channel), "jobqueue_%s",
             n > 54 ? schema + n - 54 : schema);
    store->connect_ms = config->connect_timeout_ms > 0 ? config->connect_timeout_ms : CONNECT_MS;
    store->read_ms = config->read_timeout_ms > 0 ? config->read_timeout_ms : READ_MS;
    store->idle_key = (int64_t)(jobq__rng_u64() >> 1);
    *store_out = store;
    return 0;
}

static void close_store(void *handle)
{
    pgsql_store *store = handle;

    if (!store)
        return;
    jobq__pgsql_disconnect(store);
    free_store(store);
}

/* In a forked child. PQfinish would say goodbye on the parent's connection: only our copy of the
 * descriptor goes, libpq's memory is left alone. */
static void forget_store(void *handle)
{
    pgsql_store *store = handle;

    if (store->conn && PQsocket(store->conn) >= 0)
        close(PQsocket(store->conn));
    store->conn = NULL;
    free_store(store);
}

static int make_schema(void *handle)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, true); /* a fresh connection has made it */

    return rc < 0 ? rc : jobq__pgsql_leave(store, jobq__pgsql_check_schema(store, true));
}

const jobq_driver jobq__pgsql_driver = {
    .abi = JOBQ_DRIVER_ABI,
    .size = sizeof(jobq_driver),
    .name = "postgresql",
    .schemes = "postgresql postgres",
    .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |
                JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_DUE_ORDER |
                JOBQ_FEATURE_EFFECT | JOBQ_FEATURE_REQUEST,
    .max_batch = MAX_BATCH,
    .max_body = MAX_BODY,
    .options = "schema ca cert key verify listen connect_timeout",
    .takes = jobq__pgsql_takes,
    .own = jobq__pgsql_own,
    .open = open_store,
    .close = close_store,
    .forget = forget_store,
    .schema = make_schema,
    .push = jobq__pgsql_push,
    .exchange = jobq__pgsql_exchange,
    .renew = jobq__pgsql_renew,
    .leave = jobq__pgsql_leave_worker,
    .held = jobq__pgsql_held,
    .workers = jobq__pgsql_workers,
    .wait = jobq__pgsql_wait,
    .maintain = jobq__pgsql_maintain,
    .find = jobq__pgsql_find,
    .audit = jobq__pgsql_audit,
    .examine = jobq__pgsql_examine,
    .capacity = jobq__pgsql_capacity,
    .book = jobq__pgsql_book,
    .minutes = jobq__pgsql_minutes,
    .effect = jobq__pgsql_effect,
    .request = jobq__pgsql_request,
    .list = jobq__pgsql_list,
    .counts = jobq__pgsql_counts,
    .queues = jobq__pgsql_queues,
    .mend = jobq__pgsql_mend,
    .control = jobq__pgsql_control,
    .cancel = jobq__pgsql_cancel,
    .clear = jobq__pgsql_clear,
    .now = jobq__pgsql_now,
};
