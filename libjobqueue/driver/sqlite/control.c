/* SPDX-License-Identifier: MIT
 *
 * What people ask of workers: pauses, the generation, cancelled jobs; and clearing a queue. Every
 * change raises one number, which workers compare with the one they know.
 */
#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

#define CONTROL_GET                                                      \
    "SELECT (SELECT value FROM jobqueue_control WHERE name='control'), " \
    "(SELECT value FROM jobqueue_control WHERE name='generation')"
#define CONTROL_BUMP "UPDATE jobqueue_control SET value=value+1 WHERE name='control'"
#define GENERATION_BUMP "UPDATE jobqueue_control SET value=value+1 WHERE name='generation'"
#define PAUSES "SELECT queue, until FROM jobqueue_pause WHERE until=0 OR until>?1 ORDER BY queue"
#define PAUSE_SET "INSERT OR REPLACE INTO jobqueue_pause(queue, until) VALUES(?1, ?2)"
#define PAUSE_END "DELETE FROM jobqueue_pause WHERE queue=?1"
#define CANCEL_GET                                         \
    "SELECT j.seq, h.seq IS NOT NULL FROM jobqueue_job j " \
    "LEFT JOIN jobqueue_held h ON h.seq=j.seq WHERE j.id=?1 AND j.state=0"
#define CANCEL_NOTE "UPDATE jobqueue_job SET cancel=max(cancel, ?2) WHERE seq=?1"
#define CANCEL_BURY                                                               \
    "UPDATE jobqueue_job SET state=4, cancel=0, taken=0, died_at=?2, reason=?3, " \
    "traced=max(traced, ?4), keep_until=?5 WHERE seq=?1"
#define PLACE "(SELECT queue, rank, available_at, seq FROM jobqueue_job WHERE seq=?1)"
#define CUT_PLACE(table) "DELETE FROM " table " WHERE (queue, rank, available_at, seq) = " PLACE
#define CUT_DELAYED                                    \
    "DELETE FROM jobqueue_delayed WHERE (due, seq) = " \
    "(SELECT available_at, seq FROM jobqueue_job WHERE seq=?1)"
#define CLEAR_NEXT                                               \
    "SELECT j.seq FROM ("                                        \
    "SELECT seq FROM jobqueue_ready WHERE queue=?1 "             \
    "UNION ALL SELECT seq FROM jobqueue_taken WHERE queue=?1 "   \
    "UNION ALL SELECT seq FROM jobqueue_delayed WHERE queue=?1 " \
    "UNION ALL SELECT seq FROM jobqueue_job "                    \
    "WHERE " SQL_FOLLOWS " AND queue=?1) l "                     \
    "CROSS JOIN jobqueue_job j ON j.seq=l.seq LIMIT 1"

static int run(sqlite_store *store, sqlite_statement which, const char *sql)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, which, sql);

    return stmt ? jobq__sqlite_run(store, stmt) : jobq__error_code();
}

/* ---- pauses and the generation --------------------------------------------------------------- */

static int read_values(sqlite_store *store, int64_t *control_out, int64_t *generation_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_CONTROL_GET, CONTROL_GET);
    int rc;

    if (!stmt)
        return jobq__error_code();
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        *control_out = sqlite3_column_int64(stmt, 0);
        *generation_out = sqlite3_column_int64(stmt, 1);
    }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

int jobq__sqlite_read_control(sqlite_store *store, int64_t *control_out)
{
    int64_t generation;

    return read_values(store, control_out, &generation);
}

static int change_pause(sqlite_store *store, const jobq_control *c)
{
    const bool set = c->what == JOBQ_CONTROL_PAUSE;
    sqlite3_stmt *stmt = set ? jobq__sqlite_use(store, ST_PAUSE_SET, PAUSE_SET)
                             : jobq__sqlite_use(store, ST_PAUSE_END, PAUSE_END);

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, c->queue.p ? c->queue : jobq__slice("", 0));
    if (set)
        sqlite3_bind_int64(stmt, 2, c->ttl_ms > 0 ? c->now_ms + c->ttl_ms : 0);
    return jobq__sqlite_run(store, stmt);
}

static int change(sqlite_store *store, const jobq_control *c)
{
    int rc = c->what == JOBQ_CONTROL_RESTART ? run(store, ST_GENERATION_BUMP, GENERATION_BUMP)
                                             : change_pause(store, c);

    return rc ? rc : run(store, ST_CONTROL_BUMP, CONTROL_BUMP);
}

/* NULL: no memory. */
static jobq_pause *read_pause(sqlite3_stmt *stmt, jobq_batch *out)
{
    jobq_pause *pause = jobq_batch_alloc(out, sizeof(*pause));

    if (!pause ||
        (sqlite3_column_bytes(stmt, 0) > 0 && !jobq__sqlite_copy(stmt, 0, out, &pause->queue))) {
        jobq__error_nomem();
        return NULL;
    }
    pause->until_ms = sqlite3_column_int64(stmt, 1);
    return pause;
}

static int read_pauses(sqlite_store *store, jobq_control *c)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_PAUSES, PAUSES);
    jobq_pause *first = NULL, **link = &first;
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, c->now_ms);
    while ((rc = jobq__sqlite_row(store, stmt)) > 0) {
        jobq_pause *pause = read_pause(stmt, c->out);

        if (!pause) {
            rc = JOBQ_ENOMEM;
            break;
        }
        *link = pause;
        link = &pause->next;
    }
    sqlite3_reset(stmt);
    if (rc == 0)
        c->pauses = first;
    return rc;
}

static int run_control(sqlite_store *store, jobq_control *c)
{
    int rc = c->what == JOBQ_CONTROL_READ ? 0 : change(store, c);

    rc = rc ? rc : read_values(store, &c->control, &c->generation);
    return rc ? rc : read_pauses(store, c);
}

int jobq__sqlite_control(void *handle, jobq_control *c)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    c->now_ms = jobq__clock_wall_ms();
    if (c->what == JOBQ_CONTROL_READ) {
        rc = run_control(store, c);
    } else {
        rc = jobq__sqlite_begin(store);
        if (rc == 0)
            rc = jobq__sqlite_finish(store, run_control(store, c));
        if (rc == 0)
            jobq__sqlite_ring(store);
    }
    return jobq__sqlite_leave(store, rc);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

int jobq__sqlite_leave_lines(sqlite_store *store, int64_t seq)
{
    int rc = jobq__sqlite_run_on(store, ST_CUT_PLACE_READY, CUT_PLACE("jobqueue_ready"), seq);

    rc = rc ? rc : jobq__sqlite_run_on(store, ST_CUT_PLACE_TAKEN, CUT_PLACE("jobqueue_taken"), seq);
    return rc ? rc : jobq__sqlite_run_on(store, ST_CUT_PLACE_DELAYED, CUT_DELAYED, seq);
}

static int bury(sqlite_store *store, const jobq_cancelling *c, int64_t seq)
{
    const int64_t now_ms = jobq__clock_wall_ms();
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_CANCEL_BURY, CANCEL_BURY);
    int rc = stmt ? jobq__sqlite_leave_lines(store, seq) : jobq__error_code();

    if (rc < 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, seq);
    sqlite3_bind_int64(stmt, 2, now_ms);
    sqlite3_bind_int(stmt, 3, c->reason);
    sqlite3_bind_int(stmt, 4, c->history.p != NULL);
    if (c->keep_ms > 0)
        sqlite3_bind_int64(stmt, 5, now_ms + c->keep_ms);
    else
        sqlite3_bind_null(stmt, 5);
    rc = jobq__sqlite_run(store, stmt);
    rc = rc ? rc : jobq__sqlite_add_history(store, seq, c->history);
    return rc ? rc : jobq__sqlite_add_follow(store, c->follow, now_ms);
}

static int note(sqlite_store *store, const jobq_cancelling *c, int64_t seq)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_CANCEL_NOTE, CANCEL_NOTE);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    sqlite3_bind_int(stmt, 2, c->hard ? JOBQ_CANCEL_HARD : JOBQ_CANCEL_SOFT);
    rc = jobq__sqlite_run(store, stmt);
    return rc ? rc : run(store, ST_CONTROL_BUMP, CONTROL_BUMP);
}

static int cancel(sqlite_store *store, jobq_cancelling *c)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_CANCEL_GET, CANCEL_GET);
    int64_t seq = 0;
    bool held = false;
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, c->id);
    rc = jobq__sqlite_row(store, stmt);
    c->result = rc > 0 ? 0 : JOBQ_ENOTFOUND;
    if (rc > 0) {
        seq = sqlite3_column_int64(stmt, 0);
        held = sqlite3_column_int(stmt, 1);
    }
    sqlite3_reset(stmt);
    if (rc <= 0)
        return rc;
    if (!held)
        return bury(store, c, seq);
    c->result = JOBQ_EEXISTS;
    return note(store, c, seq);
}

int jobq__sqlite_cancel(void *handle, jobq_cancelling *c)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = jobq__sqlite_begin(store);
    if (rc == 0)
        rc = jobq__sqlite_finish(store, cancel(store, c));
    if (rc == 0)
        jobq__sqlite_ring(store);
    return jobq__sqlite_leave(store, rc);
}

/* ---- clear ----------------------------------------------------------------------------------- */

/* 1 a job was removed, 0 none waits any more. */
static int clear_one(sqlite_store *store, int64_t queue)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_CLEAR_NEXT, CLEAR_NEXT);
    int64_t seq;
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    rc = jobq__sqlite_row(store, stmt);
    if (rc <= 0)
        return rc;
    seq = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    rc = jobq__sqlite_leave_lines(store, seq);
    rc = rc ? rc : jobq__sqlite_drop_job(store, seq);
    return rc ? rc : 1;
}

static int clear_some(sqlite_store *store, jobq_clearing *c)
{
    int64_t queue;
    int rc = jobq__sqlite_queue_key(store, c->queue, false, &queue);

    c->cleared = 0;
    if (rc < 0 || queue == 0)
        return rc;
    rc = 1;
    while (rc > 0 && c->cleared < c->limit) {
        rc = clear_one(store, queue);
        c->cleared += rc > 0;
    }
    c->more = rc > 0;
    return rc < 0 ? rc : 0;
}

int jobq__sqlite_clear(void *handle, jobq_clearing *c)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    c->more = false;
    rc = jobq__sqlite_begin(store);
    if (rc == 0)
        rc = jobq__sqlite_finish(store, clear_some(store, c));
    return jobq__sqlite_leave(store, rc);
}
