/* SPDX-License-Identifier: MIT
 *
 * The driver's table, the connection and its session, and the frame of every operation.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

/* A connection in use a moment ago is not looked at before it is used again: that would be a system
 * call for each push. */
enum { DEFAULT_PORT = 3306, TRIES = 12, FRESH_US = 2000 };
#define MAX_BODY ((size_t)64 << 20)

/* ---- the connection -------------------------------------------------------------------------- */

void jobq__mysql_disconnect(mysql_store *store)
{
    MYSQL *db = store->db;

    store->db = NULL;
    store->queue_count = 0;
    jobq__mysql_reset_hints(store);
    jobq__mysql_forget_limits(store);
    store->claimed = 0;
    store->schema_version = -1;
    store->in_transaction = false;
    jobq__mysql_note_lost(store);
    store->started_at_ms = 0;
    if (!db) {
        jobq__mysql_forget_statements(store);
        return;
    }
    if (store->suspect) /* no farewell into the middle of something */
        shutdown(mysql_get_socket(db), SHUT_RDWR);
    store->suspect = false;
    mysql_close(db);
    jobq__mysql_forget_statements(store); /* after it: they say nothing to the server then */
}

static int64_t lock_wait_s(const mysql_store *store)
{
    int64_t wait_s = store->config->read_timeout_ms / 3000;

    return wait_s < 1 ? 1 : wait_s > 3600 ? 3600 : wait_s;
}

/* What the server's configuration may have set otherwise. */
static int set_session(mysql_store *store)
{
    char sql[400];

    store->compound = strstr(mysql_get_server_info(store->db), "MariaDB") != NULL;
    store->arrays = jobq__mysql_takes_arrays(store->db);
    snprintf(sql, sizeof(sql),
             "SET SESSION %s='READ-COMMITTED', "
             "sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone='+00:00', "
             "autocommit=1, completion_type=0, sql_safe_updates=0, sql_select_limit=DEFAULT, "
             "innodb_lock_wait_timeout=%d",
             store->compound ? "tx_isolation" : "transaction_isolation", (int)lock_wait_s(store));
    return jobq__mysql_query(store, sql);
}

static const char *host_of(const mysql_store *store)
{
    const jobq_slice host = store->config->host;

    return store->socket ? NULL : host.p && host.n ? host.p : "127.0.0.1";
}

static int greet(mysql_store *store, MYSQL *db)
{
    int rc = jobq__mysql_apply_options(store, db);

    if (rc == 0)
        rc = jobq__mysql_connect_wire(store, db, host_of(store),
                                      store->config->port ? (unsigned int)store->config->port
                                                          : DEFAULT_PORT);
    return rc ? rc : jobq__mysql_check_server(mysql_get_server_info(db));
}

static int make_connection(mysql_store *store)
{
    MYSQL *db = mysql_init(NULL);
    int rc;

    if (!db)
        return jobq__error_nomem();
    store->deadline_us = jobq__clock_mono_us() + store->config->connect_timeout_ms * 1000;
    rc = greet(store, db);
    if (rc < 0) {
        mysql_close(db);
        store->suspect = false;
        return rc;
    }
    store->db = db;
    rc = set_session(store);
    rc = rc ? rc : jobq__mysql_read_facts(store);
    return rc ? rc : jobq__mysql_end_lost(store);
}

/* ---- the frame of an operation --------------------------------------------------------------- */

static int leave(mysql_store *store, int rc)
{
    jobq__mysql_roll_back(store);
    store->in_doubt = false;
    if (store->suspect) {
        struct jobq_error saved;

        jobq__error_save(&saved);
        jobq__mysql_disconnect(store);
        jobq__error_restore(&saved);
    }
    return rc;
}

static int enter(mysql_store *store, int64_t now_us)
{
    int rc = 0;

    if (store->db && now_us - store->used_us > FRESH_US && !jobq__mysql_is_quiet(store)) {
        store->suspect = true;
        jobq__mysql_disconnect(store);
    }
    store->used_us = now_us;
    if (!store->db)
        rc = make_connection(store);
    return rc;
}

static int work_once(mysql_store *store, int how, int (*work)(mysql_store *, void *), void *payload)
{
    int rc = how & MYSQL_FOR_SCHEMA ? 0 : jobq__mysql_check_schema(store);

    if (rc == 0 && (how & MYSQL_TRANSACTION))
        rc = jobq__mysql_begin(store);
    rc = rc ? rc : work(store, payload);
    if (rc == 0 && store->in_transaction)
        rc = jobq__mysql_commit(store);
    return rc;
}

/* Before the n-th try: some milliseconds, more each time, so that two do not meet again. False: it
 * would not end by the deadline. */
static bool nap(const mysql_store *store, int n)
{
    bool lock_wait = jobq_error_native(jobq_error_last()) == MYSQL_LOCK_WAIT;
    int64_t us = (int64_t)(jobq__rng_unit() * 1000 * (n < 6 ? 1 << n : 64));
    int64_t needed_us = us + (lock_wait ? lock_wait_s(store) * 1100000 : 0);
    struct timespec span = {0, us * 1000};

    if (jobq__clock_mono_us() + needed_us >= store->deadline_us)
        return false;
    nanosleep(&span, NULL);
    return true;
}

int jobq__mysql_do(mysql_store *store, int how, int (*work)(mysql_store *, void *), void *payload)
{
    int64_t span_us = store->config->read_timeout_ms * 1000, end_us = 0;
    int rc;

    store->timed_out = store->transient = store->in_doubt = false;
    store->doubtful = how & MYSQL_DOUBTFUL;
    for (int n = 0;; n++) {
        rc = enter(store, jobq__clock_mono_us());
        end_us = end_us ? end_us : jobq__clock_mono_us() + span_us;
        store->deadline_us = end_us;
        rc = rc ? rc : work_once(store, how, work, payload);
        rc = leave(store, rc);
        if (rc >= 0 || !store->transient || n == TRIES || !nap(store, n))
            return rc;
        store->transient = false;
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

static int open_store(const jobq_driver_config *config, void **store_out)
{
    mysql_store *store = jobq__zalloc(sizeof(*store));
    int rc;

    if (!store)
        return jobq__error_nomem();
    store->config = config;
    store->schema_version = -1;
    rc = jobq__mysql_read_options(store);
    if (rc < 0) {
        jobq__free(store);
        return rc;
    }
    *store_out = store;
    return 0;
}

static void close_store(void *handle)
{
    mysql_store *store = handle;

    if (!store)
        return;
    jobq__mysql_disconnect(store);
    jobq__free(store);
}

/* The parent's: its memory stays as it is, only the descriptor goes. */
static void forget_store(void *handle)
{
    mysql_store *store = handle;

    if (store && store->db)
        close(mysql_get_socket(store->db));
    jobq__free(store);
}

const jobq_driver jobq__mysql_driver = {
    .abi = JOBQ_DRIVER_ABI,
    .size = sizeof(jobq_driver),
    .name = "mysql",
    .schemes = "mysql mariadb",
    .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_PRIORITY | JOBQ_FEATURE_UNIQUE |
                JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_DUE_ORDER | JOBQ_FEATURE_EFFECT |
                JOBQ_FEATURE_REQUEST,
    .max_batch = MYSQL_MAX_BATCH,
    .max_body = MAX_BODY,
    .options = "connect_timeout ca cert key verify",
    .takes = jobq__mysql_takes,
    .own = jobq__mysql_own,
    .open = open_store,
    .close = close_store,
    .forget = forget_store,
    .schema = jobq__mysql_schema,
    .push = jobq__mysql_push,
    .exchange = jobq__mysql_exchange,
    .renew = jobq__mysql_renew,
    .leave = jobq__mysql_leave,
    .held = jobq__mysql_held,
    .workers = jobq__mysql_workers,
    .wait = jobq__mysql_wait,
    .maintain = jobq__mysql_maintain,
    .find = jobq__mysql_find,
    .audit = jobq__mysql_audit,
    .examine = jobq__mysql_examine,
    .capacity = jobq__mysql_capacity,
    .book = jobq__mysql_book,
    .minutes = jobq__mysql_minutes,
    .effect = jobq__mysql_effect,
    .request = jobq__mysql_request,
    .list = jobq__mysql_list,
    .counts = jobq__mysql_counts,
    .queues = jobq__mysql_queues,
    .mend = jobq__mysql_mend,
    .control = jobq__mysql_control,
    .cancel = jobq__mysql_cancel,
    .clear = jobq__mysql_clear,
    .now = jobq__mysql_now,
};
