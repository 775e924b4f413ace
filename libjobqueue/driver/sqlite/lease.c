/* SPDX-License-Identifier: MIT
 *
 * Workers' records. A lease is measured with the boot clock, which never steps and counts
 * suspension; a record of an earlier boot has lapsed (rule C12).
 */
#include <string.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

#define WORKER_GET "SELECT key, boot=?2 AND alive_until>?3, taken FROM jobqueue_worker WHERE id=?1"
#define WORKER_ADD                                                           \
    "INSERT INTO jobqueue_worker(id, boot, alive_until, lease, started_at) " \
    "VALUES(?1, ?2, ?3, ?4, ?5)"
#define WORKER_RENEW                                                  \
    "UPDATE jobqueue_worker "                                         \
    "SET boot=?2, alive_until=?3, lease=?4, taken=taken AND NOT ?5, " \
    "running=CASE WHEN ?5 THEN ?6 ELSE running END "                  \
    "WHERE key=?1"
#define WORKER_DESCRIBE                                       \
    "UPDATE jobqueue_worker "                                 \
    "SET host=?2, pid=?3, queues=?4, names=?5, processes=?6 " \
    "WHERE key=?1"
#define WORKER_LEAVE               \
    "DELETE FROM jobqueue_worker " \
    "WHERE id=?1 AND NOT EXISTS(SELECT 1 FROM jobqueue_held h WHERE h.worker=key)"
#define WORKER_HELD "SELECT count(*) FROM jobqueue_held WHERE worker=?1"
#define HELD                                                        \
    "SELECT j.id, q.name, h.seq, j.fence + 1, h.nonce, j.cancel "   \
    "FROM jobqueue_held h "                                         \
    "JOIN jobqueue_job j ON j.seq=h.seq "                           \
    "JOIN jobqueue_queue q ON q.id=h.queue "                        \
    "WHERE h.worker=(SELECT key FROM jobqueue_worker WHERE id=?1) " \
    "ORDER BY h.seq"
#define WORKERS                                                                                 \
    "SELECT w.id, w.host, w.queues, w.names, w.pid, w.processes, w.started_at, w.alive_until, " \
    "w.lease, ifnull(length(w.running), 0), "                                                   \
    "(SELECT count(*) FROM jobqueue_held h WHERE h.worker=w.key) "                              \
    "FROM jobqueue_worker w "                                                                   \
    "WHERE w.boot=?1 AND w.alive_until>?2 "                                                     \
    "ORDER BY w.key"

int jobq__sqlite_worker(sqlite_store *store, jobq_slice id, sqlite_worker *out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_WORKER_GET, WORKER_GET);
    int rc;

    memset(out, 0, sizeof(*out));
    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    jobq__sqlite_bind(stmt, 2, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 3, jobq__clock_boot_ms());
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        out->key = sqlite3_column_int64(stmt, 0);
        out->alive = sqlite3_column_int(stmt, 1);
        out->taken = sqlite3_column_int(stmt, 2);
    }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int add_worker(sqlite_store *store, jobq_slice id, int64_t lease_ms, sqlite_worker *worker)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_WORKER_ADD, WORKER_ADD);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    jobq__sqlite_bind(stmt, 2, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 3, jobq__clock_boot_ms() + lease_ms);
    sqlite3_bind_int64(stmt, 4, lease_ms);
    sqlite3_bind_int64(stmt, 5, jobq__clock_wall_ms());
    rc = jobq__sqlite_run(store, stmt);
    worker->key = sqlite3_last_insert_rowid(store->db);
    return rc;
}

/* r NULL: only the lease, not what is running and not the mark that jobs were taken. */
static int prolong(sqlite_store *store, const sqlite_worker *worker, int64_t lease_ms,
                   const jobq_renewal *r)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_WORKER_RENEW, WORKER_RENEW);

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, worker->key);
    jobq__sqlite_bind(stmt, 2, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 3, jobq__clock_boot_ms() + lease_ms);
    sqlite3_bind_int64(stmt, 4, lease_ms);
    sqlite3_bind_int(stmt, 5, r != NULL);
    if (r && r->running_count)
        jobq__sqlite_bind_blob(stmt, 6,
                               jobq__slice(r->running, r->running_count * sizeof(r->running[0])));
    else
        sqlite3_bind_null(stmt, 6);
    return jobq__sqlite_run(store, stmt);
}

int jobq__sqlite_keep_worker(sqlite_store *store, jobq_slice id, int64_t lease_ms,
                             sqlite_worker *worker)
{
    if (worker->key && worker->alive)
        return 0;
    worker->alive = true;
    return worker->key ? prolong(store, worker, lease_ms, NULL)
                       : add_worker(store, id, lease_ms, worker);
}

static int describe(sqlite_store *store, int64_t key, const jobq_renewal *r)
{
    sqlite3_stmt *stmt =
        r->host.p ? jobq__sqlite_use(store, ST_WORKER_DESCRIBE, WORKER_DESCRIBE) : NULL;

    if (!stmt)
        return r->host.p ? jobq__error_code() : 0;
    sqlite3_bind_int64(stmt, 1, key);
    jobq__sqlite_bind(stmt, 2, r->host);
    sqlite3_bind_int64(stmt, 3, r->pid);
    jobq__sqlite_bind(stmt, 4, r->queues);
    jobq__sqlite_bind(stmt, 5, r->names);
    sqlite3_bind_int64(stmt, 6, r->processes);
    return jobq__sqlite_run(store, stmt);
}

static int count_held(sqlite_store *store, int64_t key, int64_t *held_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_WORKER_HELD, WORKER_HELD);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, key);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0)
        *held_out = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int renew_record(sqlite_store *store, jobq_renewal *r, sqlite_worker *worker)
{
    int rc = jobq__sqlite_worker(store, r->worker, worker);

    if (rc == 0 && worker->key == 0)
        rc = add_worker(store, r->worker, r->lease_ms, worker);
    rc = rc ? rc : prolong(store, worker, r->lease_ms, r);
    rc = rc ? rc : describe(store, worker->key, r);
    rc = rc ? rc : jobq__sqlite_read_control(store, &r->control);
    return rc ? rc : count_held(store, worker->key, &r->held);
}

int jobq__sqlite_renew(void *handle, jobq_renewal *r)
{
    sqlite_store *store = handle;
    sqlite_worker worker;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = jobq__sqlite_begin(store);
    if (rc == 0)
        rc = jobq__sqlite_finish(store, renew_record(store, r, &worker));
    r->now_ms = jobq__clock_wall_ms();
    if (rc == 0 && worker.taken)
        rc = jobq__refuse_lapsed("sqlite", r->worker);
    return jobq__sqlite_leave(store, rc);
}

int jobq__sqlite_leave_worker(void *handle, jobq_slice worker)
{
    sqlite_store *store = handle;
    sqlite3_stmt *stmt;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = jobq__sqlite_begin(store);
    if (rc == 0) {
        stmt = jobq__sqlite_use(store, ST_WORKER_LEAVE, WORKER_LEAVE);
        if (stmt)
            jobq__sqlite_bind(stmt, 1, worker);
        rc = jobq__sqlite_finish(store, stmt ? jobq__sqlite_run(store, stmt) : jobq__error_code());
    }
    return jobq__sqlite_leave(store, rc);
}

static int read_held(sqlite_store *store, sqlite3_stmt *stmt, jobq_batch *out)
{
    int rc;

    while ((rc = jobq__sqlite_row(store, stmt)) > 0) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !jobq__sqlite_copy(stmt, 0, out, &r->id) ||
            !jobq__sqlite_copy(stmt, 1, out, &r->queue)) {
            sqlite3_reset(stmt);
            return jobq__error_nomem();
        }
        r->fence = sqlite3_column_int64(stmt, 3);
        r->state = SQL_RESERVED;
        r->cancel = (uint8_t)sqlite3_column_int(stmt, 5);
        r->token.word[0] = (uint64_t)sqlite3_column_int64(stmt, 2);
        r->token.word[1] = (uint64_t)r->fence;
        r->token.word[2] = (uint64_t)sqlite3_column_int64(stmt, 4);
    }
    return rc;
}

int jobq__sqlite_held(void *handle, jobq_slice worker, jobq_batch *out)
{
    sqlite_store *store = handle;
    sqlite3_stmt *stmt;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    stmt = jobq__sqlite_use(store, ST_HELD, HELD);
    if (stmt)
        jobq__sqlite_bind(stmt, 1, worker);
    return jobq__sqlite_leave(store, stmt ? read_held(store, stmt, out) : jobq__error_code());
}

static int read_workers(sqlite_store *store, sqlite3_stmt *stmt, jobq_batch *out)
{
    int64_t wall_minus_boot = jobq__clock_wall_ms() - jobq__clock_boot_ms();
    int rc;

    while ((rc = jobq__sqlite_row(store, stmt)) > 0) {
        jobq_worker_record *r = jobq_batch_add_worker(out);

        if (!r || !jobq__sqlite_copy(stmt, 0, out, &r->id) ||
            !jobq__sqlite_copy(stmt, 1, out, &r->host) ||
            !jobq__sqlite_copy(stmt, 2, out, &r->queues) ||
            !jobq__sqlite_copy(stmt, 3, out, &r->names)) {
            sqlite3_reset(stmt);
            return jobq__error_nomem();
        }
        r->pid = sqlite3_column_int64(stmt, 4);
        r->processes = sqlite3_column_int64(stmt, 5);
        r->started_at_ms = sqlite3_column_int64(stmt, 6);
        r->alive_until_ms = sqlite3_column_int64(stmt, 7) + wall_minus_boot;
        r->lease_ms = sqlite3_column_int64(stmt, 8);
        r->running = sqlite3_column_int64(stmt, 9) / (int64_t)sizeof(jobq_lease_token);
        r->held = sqlite3_column_int64(stmt, 10);
    }
    return rc;
}

int jobq__sqlite_workers(void *handle, jobq_batch *out)
{
    sqlite_store *store = handle;
    sqlite3_stmt *stmt;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    stmt = jobq__sqlite_use(store, ST_WORKERS, WORKERS);
    if (stmt) {
        jobq__sqlite_bind(stmt, 1, jobq__slice_text(store->boot));
        sqlite3_bind_int64(stmt, 2, jobq__clock_boot_ms());
    }
    return jobq__sqlite_leave(store, stmt ? read_workers(store, stmt, out) : jobq__error_code());
}
