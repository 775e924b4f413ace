/* SPDX-License-Identifier: MIT
 *
 * Maintenance in bounded steps: delayed jobs whose time has come, what expired workers held, kept
 * results whose time is over. A call that finds nothing due takes no lock.
 */
#include <string.h>

#include "driver/sqlite/sqlite.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/error.h"

enum { FORGET_WORKER_MS = 3600000 }; /* how long a record remembers that jobs were taken from it */

#define DUE                                  \
    "SELECT due, seq FROM jobqueue_delayed " \
    "WHERE due<=?1 "                         \
    "ORDER BY due, seq LIMIT ?2"
#define PROMOTE                                                   \
    "INSERT INTO jobqueue_ready(queue, rank, available_at, seq) " \
    "SELECT queue, rank, due, seq FROM jobqueue_delayed "         \
    "WHERE due<=?1 "                                              \
    "ORDER BY due, seq LIMIT ?2"
#define PROMOTED_CUT "DELETE FROM jobqueue_delayed WHERE (due, seq) IN (" DUE ")"
#define HOLDS_ANY "EXISTS(SELECT 1 FROM jobqueue_held h WHERE h.worker=key)"
#define EXPIRED_NEXT                                                                 \
    "SELECT key, running, id FROM jobqueue_worker "                                  \
    "WHERE key>?3 AND (boot<>?1 OR alive_until<=?2) AND (taken=0 OR " HOLDS_ANY ") " \
    "ORDER BY key LIMIT 1"
#define EXPIRED_HELD                        \
    "SELECT seq, nonce FROM jobqueue_held " \
    "WHERE worker=?1 "                      \
    "ORDER BY seq LIMIT 1"
#define IS_CRASH "(?2 OR (?3>0 AND losses+1>=?3))"
#define TAKE_BACK                                                                         \
    "UPDATE jobqueue_job "                                                                \
    "SET fence=fence+1, deliveries=deliveries+1, taken=1, crashes=crashes+" IS_CRASH ", " \
    "losses=CASE WHEN " IS_CRASH " THEN 0 ELSE losses+1 END, "                            \
    "traced=traced OR (?4 AND " IS_CRASH ") "                                             \
    "WHERE seq=?1 "                                                                       \
    "RETURNING losses=0"
#define UNHOLD_ANY "DELETE FROM jobqueue_held WHERE seq=?1"
#define WORKER_TAKEN "UPDATE jobqueue_worker SET taken=1 WHERE key=?1"
#define WORKER_DROP "DELETE FROM jobqueue_worker WHERE key=?1 AND taken=0"
#define WORKER_SWEEP               \
    "DELETE FROM jobqueue_worker " \
    "WHERE taken=1 AND (boot<>?1 OR alive_until<=?2) AND NOT " HOLDS_ANY
#define KEPT_NEXT                   \
    "SELECT seq FROM jobqueue_job " \
    "WHERE keep_until<=?1 "         \
    "ORDER BY keep_until LIMIT 1"

static int promote(sqlite_store *store, jobq_maintenance *m)
{
    int rc = jobq__sqlite_run_with(store, ST_PROMOTE, PROMOTE, m->now_ms, (int64_t)m->limit);

    if (rc < 0 || sqlite3_changes(store->db) == 0)
        return rc;
    m->handled = (size_t)sqlite3_changes(store->db);
    return jobq__sqlite_run_with(store, ST_PROMOTED_CUT, PROMOTED_CUT, m->now_ms,
                                 (int64_t)m->limit);
}

/* ---- expired workers ------------------------------------------------------------------------- */

typedef struct {
    int64_t key;
    jobq_lease_token *running;
    size_t running_count;
    jobq__buf lost; /* history entry of a job that comes back as a crash, empty = none */
} expired_worker;

static int write_lost(const jobq_maintenance *m, sqlite3_stmt *stmt, jobq__buf *out)
{
    size_t n = (size_t)sqlite3_column_bytes(stmt, 2);

    jobq__buf_reset(out);
    if (!m->lost_head.p)
        return 0;
    jobq__buf_add(out, m->lost_head.p, m->lost_head.n);
    jobq__buf_addc(out, (char)n);
    jobq__buf_add(out, sqlite3_column_blob(stmt, 2), n);
    jobq__buf_add(out, m->lost_tail.p, m->lost_tail.n);
    return out->failed ? jobq__error_nomem() : 0;
}

/* 1 found, 0 none. The list of running hand-outs is a copy: free it. */
static int next_expired(sqlite_store *store, const jobq_maintenance *m, expired_worker *out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_EXPIRED_NEXT, EXPIRED_NEXT);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 2, jobq__clock_boot_ms());
    sqlite3_bind_int64(stmt, 3, out->key);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        const void *running = sqlite3_column_blob(stmt, 1);
        size_t size = (size_t)sqlite3_column_bytes(stmt, 1);

        out->key = sqlite3_column_int64(stmt, 0);
        out->running_count = size / sizeof(jobq_lease_token);
        out->running = size ? jobq__memdup(running, size) : NULL;
        if (size && !out->running)
            rc = jobq__error_nomem();
        rc = rc > 0 && write_lost(m, stmt, &out->lost) < 0 ? JOBQ_ENOMEM : rc;
    }
    sqlite3_reset(stmt);
    return rc;
}

static bool was_running(const expired_worker *worker, int64_t seq, int64_t nonce)
{
    for (size_t i = 0; i < worker->running_count; i++)
        if (worker->running[i].word[0] == (uint64_t)seq &&
            worker->running[i].word[2] == (uint64_t)nonce)
            return true;
    return false;
}

/* Listed as running = a crash; else a loss, and so many losses in a row are a crash (rule C5). */
static int count_back(sqlite_store *store, int64_t seq, bool listed, bool traced, int64_t loss_cap,
                      bool *crash_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_TAKE_BACK, TAKE_BACK);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    sqlite3_bind_int(stmt, 2, listed);
    sqlite3_bind_int64(stmt, 3, loss_cap);
    sqlite3_bind_int(stmt, 4, traced);
    rc = jobq__sqlite_row(store, stmt);
    *crash_out = rc > 0 && sqlite3_column_int(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int take_back(sqlite_store *store, int64_t seq, bool listed, const expired_worker *worker,
                     int64_t loss_cap)
{
    const jobq_slice lost = {worker->lost.n ? worker->lost.p : NULL, worker->lost.n};
    bool crash = false;
    int rc = count_back(store, seq, listed, lost.p != NULL, loss_cap, &crash);

    if (rc == 0 && crash)
        rc = jobq__sqlite_add_history(store, seq, lost);
    rc = rc ? rc : jobq__sqlite_run_on(store, ST_UNHOLD_ANY, UNHOLD_ANY, seq);
    return rc ? rc : jobq__sqlite_line_up(store, seq, true);
}

/* 1 a hand-out was taken, 0 the worker holds none any more. */
static int take_one(sqlite_store *store, const expired_worker *worker, int64_t loss_cap)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_EXPIRED_HELD, EXPIRED_HELD);
    int64_t seq, nonce;
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, worker->key);
    rc = jobq__sqlite_row(store, stmt);
    if (rc <= 0)
        return rc;
    seq = sqlite3_column_int64(stmt, 0);
    nonce = sqlite3_column_int64(stmt, 1);
    sqlite3_reset(stmt);
    rc = take_back(store, seq, was_running(worker, seq, nonce), worker, loss_cap);
    return rc ? rc : 1;
}

static int judge_worker(sqlite_store *store, const expired_worker *worker, jobq_maintenance *m)
{
    int rc = 1;
    bool any = false;

    while (rc > 0 && m->handled < m->limit) {
        rc = take_one(store, worker, m->loss_cap);
        if (rc > 0) {
            m->handled++;
            any = true;
        }
    }
    if (rc < 0)
        return rc;
    if (any)
        return jobq__sqlite_run_on(store, ST_WORKER_TAKEN, WORKER_TAKEN, worker->key);
    return rc == 0 ? jobq__sqlite_run_on(store, ST_WORKER_DROP, WORKER_DROP, worker->key) : 0;
}

static int sweep_workers(sqlite_store *store)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_WORKER_SWEEP, WORKER_SWEEP);

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 2, jobq__clock_boot_ms() - FORGET_WORKER_MS);
    return jobq__sqlite_run(store, stmt);
}

static int judge_workers(sqlite_store *store, jobq_maintenance *m)
{
    expired_worker worker = {0};
    int rc = 1;

    while (rc > 0 && m->handled < m->limit) {
        rc = next_expired(store, m, &worker);
        if (rc > 0) {
            int judged = judge_worker(store, &worker, m);

            jobq__free(worker.running);
            rc = judged < 0 ? judged : 1;
        }
    }
    jobq__buf_free(&worker.lost);
    return rc < 0 ? rc : sweep_workers(store);
}

/* ---- followers of unique keys ---------------------------------------------------------------- */

/* A program with an older library, connected since before the migration, ends a job and knows
 * nothing of who follows it. */
#define STRANDED                                                                  \
    "SELECT f.seq FROM jobqueue_queue q "                                         \
    "CROSS JOIN jobqueue_job f ON f.queue=q.id AND f.unique_key IS NOT NULL AND " \
    "f.state=0 AND f.key_state<>1 AND f.key_state=2 "                             \
    "WHERE NOT EXISTS(SELECT 1 FROM jobqueue_job k WHERE k.queue=f.queue AND "    \
    "k.unique_key=f.unique_key AND k.unique_key IS NOT NULL AND k.state=0 AND "   \
    "k.key_state<>1 AND k.key_state=0) LIMIT 1"
#define KEY_TAKE "UPDATE jobqueue_job SET key_state=0 WHERE seq=?1"
enum { LOOK_FOR_FOLLOWERS_US = 5000000 };

/* 1 there is one. */
static int find_stranded(sqlite_store *store, int64_t *seq_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_STRANDED, STRANDED);
    int rc = stmt ? jobq__sqlite_row(store, stmt) : jobq__error_code();

    if (rc > 0) {
        *seq_out = sqlite3_column_int64(stmt, 0);
        sqlite3_reset(stmt);
    }
    return rc;
}

static int hand_over_keys(sqlite_store *store, jobq_maintenance *m)
{
    int64_t seq;
    int rc = 0;

    while (rc == 0 && m->handled < m->limit) {
        rc = find_stranded(store, &seq);
        if (rc <= 0)
            return rc;
        rc = jobq__sqlite_put_off(store, seq);
        rc = rc ? rc : jobq__sqlite_run_on(store, ST_KEY_TAKE, KEY_TAKE, seq);
        m->handled++;
    }
    return rc;
}

/* A read now and then; 1 there is something to do. */
static int look_for_stranded(sqlite_store *store)
{
    const int64_t now_us = jobq__clock_mono_us();
    int64_t seq;

    if (store->followers_us && now_us - store->followers_us < LOOK_FOR_FOLLOWERS_US)
        return 0;
    store->followers_us = now_us;
    return find_stranded(store, &seq);
}

/* ---- kept results, dead jobs whose retention is over ----------------------------------------- */

static int collect(sqlite_store *store, jobq_maintenance *m)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_KEPT_NEXT, KEPT_NEXT);
    int rc = stmt ? 0 : jobq__error_code();

    while (rc == 0 && m->handled < m->limit) {
        int64_t seq;

        sqlite3_bind_int64(stmt, 1, m->now_ms);
        rc = jobq__sqlite_row(store, stmt);
        if (rc <= 0)
            return rc;
        seq = sqlite3_column_int64(stmt, 0);
        sqlite3_reset(stmt);
        rc = jobq__sqlite_drop_job(store, seq);
        m->handled++;
    }
    return rc;
}

/* While a stall settles, workers are looked at again only after it. */
static int next_due(sqlite_store *store, jobq_maintenance *m)
{
    const int64_t settles_ms = m->take_back ? jobq__sqlite_settles_ms(store) : 0;
    const int64_t again_ms = m->now_ms + settles_ms;
    int rc = jobq__sqlite_next_due(store, m->take_back && settles_ms == 0, 0, m->now_ms,
                                   &m->next_due_ms);

    if (rc == 0 && settles_ms && (m->next_due_ms == 0 || m->next_due_ms > again_ms))
        m->next_due_ms = again_ms;
    return rc;
}

static int run_maintenance(sqlite_store *store, jobq_maintenance *m, bool stranded)
{
    int rc = promote(store, m);

    if (rc == 0 && stranded)
        rc = hand_over_keys(store, m);
    if (rc == 0 && m->take_back && jobq__sqlite_settles_ms(store) == 0)
        rc = judge_workers(store, m);
    if (rc == 0)
        rc = collect(store, m);
    m->more = m->handled >= m->limit;
    rc = rc ? rc : jobq__sqlite_drop_minutes(store, m->now_ms / 60000 - INT64_C(24) * 60);
    return rc ? rc : next_due(store, m);
}

static int maintain(sqlite_store *store, jobq_maintenance *m)
{
    int rc, stranded;

    m->now_ms = jobq__clock_wall_ms();
    m->handled = 0;
    m->more = false;
    stranded = look_for_stranded(store);
    rc = stranded < 0 ? stranded : next_due(store, m);
    if (rc < 0 || (!stranded && (m->next_due_ms == 0 || m->next_due_ms > m->now_ms)))
        return rc;
    /* All of it would be found due again if it were lost: nobody waits for the disk. */
    rc = jobq__sqlite_begin_hurried(store, false);
    return rc < 0 ? rc : jobq__sqlite_finish(store, run_maintenance(store, m, stranded));
}

int jobq__sqlite_maintain(void *handle, jobq_maintenance *m)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = maintain(store, m);
    if (rc == 0 && m->handled)
        jobq__sqlite_ring(store);
    return jobq__sqlite_leave(store, rc);
}
