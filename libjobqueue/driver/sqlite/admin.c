/* SPDX-License-Identifier: MIT
 *
 * Counts, names of queues, and mending dead jobs.
 */
#include <string.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

#define COUNTS                                                                        \
    "SELECT (SELECT count(*) FROM jobqueue_ready WHERE queue=?1) + "                  \
    "(SELECT count(*) FROM jobqueue_taken WHERE queue=?1), "                          \
    "(SELECT count(*) FROM jobqueue_delayed WHERE queue=?1 AND due<=?2), "            \
    "(SELECT count(*) FROM jobqueue_delayed WHERE queue=?1 AND due>?2), "             \
    "(SELECT count(*) FROM jobqueue_held h JOIN jobqueue_worker w ON w.key=h.worker " \
    "WHERE h.queue=?1 AND w.boot=?3 AND w.alive_until>?4), "                          \
    "(SELECT count(*) FROM jobqueue_held WHERE queue=?1), "                           \
    "(SELECT count(*) FROM jobqueue_job WHERE state=4 AND queue=?1), "                \
    "(SELECT count(*) FROM jobqueue_job WHERE " SQL_FOLLOWS " AND queue=?1), "        \
    "(SELECT ifnull(capacity, 0) FROM jobqueue_queue WHERE id=?1)"
/* The line is sorted by rank first: its oldest is the first of one of the ten ranks. */
#define OLDEST_IN_RANK                         \
    "SELECT available_at FROM jobqueue_ready " \
    "WHERE queue=?1 AND rank=r.column1 "       \
    "ORDER BY available_at LIMIT 1"
#define RANKS "(VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))"
#define OLDEST_DUE                      \
    "SELECT due FROM jobqueue_delayed " \
    "WHERE queue=?1 AND due<=?2 "       \
    "ORDER BY due LIMIT 1"
#define OLDEST_EXPIRED                            \
    "SELECT j.available_at FROM jobqueue_held h " \
    "JOIN jobqueue_worker w ON w.key=h.worker "   \
    "JOIN jobqueue_job j ON j.seq=h.seq "         \
    "WHERE h.queue=?1 AND (w.boot<>?3 OR w.alive_until<=?4)"
#define OLDEST                                                          \
    "SELECT min(at) FROM ("                                             \
    "SELECT (" OLDEST_IN_RANK ") AS at FROM " RANKS " r "               \
    "UNION ALL SELECT available_at FROM jobqueue_taken WHERE queue=?1 " \
    "UNION ALL SELECT * FROM (" OLDEST_DUE ") "                         \
    "UNION ALL " OLDEST_EXPIRED ")"
#define MEND_GET                                            \
    "SELECT seq, queue, unique_key, ifnull(keep_until, 0) " \
    "FROM jobqueue_job WHERE id=?1 AND state=4"
#define MEND_RETRY                                                         \
    "UPDATE jobqueue_job "                                                 \
    "SET state=0, key_state=0, reason=0, died_at=NULL, keep_until=NULL, "  \
    "taken=0, deliveries=0, failures=0, crashes=0, releases=0, losses=0, " \
    "exceptions=0, parks=0, parked_since=0, base_at=?2, available_at=?2 "  \
    "WHERE seq=?1"

/* ---- counts ---------------------------------------------------------------------------------- */

static void bind_now(const sqlite_store *store, sqlite3_stmt *stmt, int64_t queue, int64_t now_ms)
{
    sqlite3_bind_int64(stmt, 1, queue);
    sqlite3_bind_int64(stmt, 2, now_ms);
    jobq__sqlite_bind(stmt, 3, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 4, jobq__clock_boot_ms());
}

static int count_states(sqlite_store *store, int64_t queue, jobq_counts *counts)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_COUNTS, COUNTS);
    int rc;

    if (!stmt)
        return jobq__error_code();
    bind_now(store, stmt, queue, counts->now_ms);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        counts->reserved = sqlite3_column_int64(stmt, 3);
        counts->ready = sqlite3_column_int64(stmt, 0) + sqlite3_column_int64(stmt, 1) +
                        sqlite3_column_int64(stmt, 4) - counts->reserved;
        counts->delayed = sqlite3_column_int64(stmt, 2) + sqlite3_column_int64(stmt, 6);
        counts->capacity = sqlite3_column_int64(stmt, 7);
        counts->dead = sqlite3_column_int64(stmt, 5);
    }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int find_oldest(sqlite_store *store, int64_t queue, jobq_counts *counts)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_OLDEST, OLDEST);
    int rc;

    if (!stmt)
        return jobq__error_code();
    bind_now(store, stmt, queue, counts->now_ms);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0)
        counts->oldest_ready_at_ms = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int read_counts(sqlite_store *store, jobq_slice name, jobq_counts *counts_out)
{
    jobq_counts counts = {.now_ms = jobq__clock_wall_ms()};
    int64_t queue;
    int rc = jobq__sqlite_queue_key(store, name, false, &queue);

    if (rc == 0 && queue)
        rc = count_states(store, queue, &counts);
    if (rc == 0 && counts.ready > 0)
        rc = find_oldest(store, queue, &counts);
    if (rc == 0)
        *counts_out = counts;
    return rc;
}

int jobq__sqlite_counts(void *handle, jobq_slice queue, jobq_counts *counts_out)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    return rc < 0 ? rc : jobq__sqlite_leave(store, read_counts(store, queue, counts_out));
}

static int read_queues(sqlite_store *store, jobq_batch *out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_QUEUES, SQL_QUEUES);
    int rc = stmt ? 1 : jobq__error_code();

    while (rc > 0 && (rc = jobq__sqlite_row(store, stmt)) > 0) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !jobq__sqlite_copy(stmt, 0, out, &r->queue))
            rc = jobq__error_nomem();
    }
    if (stmt)
        sqlite3_reset(stmt);
    return rc;
}

int jobq__sqlite_queues(void *handle, jobq_batch *out)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    return rc < 0 ? rc : jobq__sqlite_leave(store, read_queues(store, out));
}

/* ---- mending --------------------------------------------------------------------------------- */

typedef struct {
    int64_t seq, queue;
} dead_job;

/* 1: a waiting or running job has the dead one's unique key. */
static int is_key_held(sqlite_store *store, int64_t queue, sqlite3_stmt *dead)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_HOLDER, SQL_HOLDER);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    sqlite3_bind_value(stmt, 2, sqlite3_column_value(dead, 2));
    rc = jobq__sqlite_row(store, stmt);
    sqlite3_reset(stmt);
    return rc;
}

static bool is_over(int64_t keep_until_ms)
{
    return keep_until_ms > 0 && keep_until_ms <= jobq__clock_wall_ms();
}

/* *result_out: 0, JOBQ_ENOTFOUND, JOBQ_EEXISTS or JOBQ_ELIMIT. */
static int find_dead(sqlite_store *store, int what, jobq_slice id, dead_job *job, int *result_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_MEND_GET, MEND_GET);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    rc = jobq__sqlite_row(store, stmt);
    *result_out = rc > 0 ? 0 : JOBQ_ENOTFOUND;
    if (rc > 0) {
        job->seq = sqlite3_column_int64(stmt, 0);
        job->queue = sqlite3_column_int64(stmt, 1);
        rc = what == JOBQ_MEND_RETRY ? is_key_held(store, job->queue, stmt) : 0;
        if (rc > 0)
            *result_out = JOBQ_EEXISTS;
        if (what == JOBQ_MEND_RETRY && is_over(sqlite3_column_int64(stmt, 3)))
            *result_out = JOBQ_ELIMIT;
    }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int retry_job(sqlite_store *store, int64_t seq)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_MEND_RETRY, MEND_RETRY);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    sqlite3_bind_int64(stmt, 2, jobq__clock_wall_ms());
    rc = jobq__sqlite_run(store, stmt);
    return rc ? rc : jobq__sqlite_line_up(store, seq, false);
}

static int mend_one(sqlite_store *store, const jobq_mending *m, jobq_slice id, int *result_out)
{
    dead_job job = {0};
    int rc = find_dead(store, m->what, id, &job, result_out);

    if (rc < 0 || *result_out != 0 || m->dry_run)
        return rc;
    if (m->what == JOBQ_MEND_RETRY)
        return retry_job(store, job.seq);
    return jobq__sqlite_drop_job(store, job.seq);
}

static int mend_all(sqlite_store *store, const jobq_mending *m)
{
    int rc = 0;

    for (size_t i = 0; i < m->count && rc == 0; i++)
        rc = mend_one(store, m, m->ids[i], &m->results[i]);
    return rc;
}

static int mend(sqlite_store *store, const jobq_mending *m)
{
    int rc = jobq__sqlite_begin(store);

    return rc < 0 ? rc : jobq__sqlite_finish(store, mend_all(store, m));
}

int jobq__sqlite_mend(void *handle, jobq_mending *m)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = m->dry_run ? mend_all(store, m) : mend(store, m);
    if (rc == 0 && !m->dry_run && m->what == JOBQ_MEND_RETRY)
        jobq__sqlite_ring(store);
    return jobq__sqlite_leave(store, rc);
}
