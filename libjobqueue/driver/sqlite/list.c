/* SPDX-License-Identifier: MIT
 *
 * Showing jobs without taking them: one by id, and lists in pages. A due delayed job and one whose
 * lease ran out are seen as ready whether maintenance has been by or not (rule N1).
 */
#include <string.h>

#include "driver/cursor.h"
#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

/* Columns of a shown job, in the order read_shown reads them. */
#define IN_DELAYED \
    "EXISTS(SELECT 1 FROM jobqueue_delayed d WHERE d.due=j.available_at AND d.seq=j.seq)"
#define PLACE                                   \
    "CASE WHEN h.seq IS NOT NULL THEN 2 "       \
    "WHEN j.state=0 AND " IN_DELAYED " THEN 1 " \
    "WHEN j.key_state=2 THEN 3 "                \
    "ELSE 0 END"
#define SHOWN                                                                                 \
    "j.seq, q.name, j.state, j.rank, j.available_at, j.id, j.name, j.version, j.unique_key, " \
    "j.deliveries, j.failures, j.crashes, j.releases, j.losses, j.exceptions, j.parks, "      \
    "j.parked_since, j.fence, j.enqueued_at, j.base_at, ifnull(j.died_at, 0), j.reason, "     \
    "j.taken, j.traced, " PLACE ", w.id, w.alive_until, w.boot, j.header, j.body, "           \
    "j.cancel, ifnull(j.keep_until, 0)"
#define JOINED                                                \
    "JOIN jobqueue_queue q ON q.id=j.queue "                  \
    "LEFT JOIN jobqueue_held h ON h.seq=j.seq AND j.state=0 " \
    "LEFT JOIN jobqueue_worker w ON w.key=h.worker "
#define FIND            \
    "SELECT " SHOWN " " \
    "FROM jobqueue_job j " JOINED "WHERE j.id=?1 AND (?2 IS NULL OR q.name=?2)"
/* A page: l gives the places p0, p1, p2 behind the cursor (?3, ?4, ?5) and the job s; one more
 * than the limit. */
#define PAGE(places)                      \
    "SELECT " SHOWN ", l.p0, l.p1, l.p2 " \
    "FROM (" places ") l "                \
    "CROSS JOIN jobqueue_job j ON j.seq=l.s " JOINED "ORDER BY l.p0, l.p1, l.p2"
#define LINE_PLACES(table, at, more)                                 \
    "SELECT * FROM ("                                                \
    "SELECT rank AS p0, " at " AS p1, seq AS p2, seq AS s "          \
    "FROM " table " "                                                \
    "WHERE queue=?1 AND (rank, " at ", seq) > (?3, ?4, ?5)" more " " \
    "ORDER BY rank, " at ", seq LIMIT ?2)"
#define READY_LINE LINE_PLACES("jobqueue_ready", "available_at", "")
#define TAKEN_LINE LINE_PLACES("jobqueue_taken", "available_at", "")
#define DUE_LINE LINE_PLACES("jobqueue_delayed", "due", " AND due<=?6")
#define EXPIRED_PLACES                                            \
    "SELECT * FROM ("                                             \
    "SELECT j.rank, j.available_at, j.seq, j.seq "                \
    "FROM jobqueue_held h "                                       \
    "JOIN jobqueue_worker w ON w.key=h.worker "                   \
    "JOIN jobqueue_job j ON j.seq=h.seq "                         \
    "WHERE h.queue=?1 AND (w.boot<>?7 OR w.alive_until<=?8) AND " \
    "(j.rank, j.available_at, j.seq) > (?3, ?4, ?5) "             \
    "ORDER BY 1, 2, 3 LIMIT ?2)"
#define READY_LINES READY_LINE " UNION ALL " TAKEN_LINE " UNION ALL " DUE_LINE
#define READY_PLACES READY_LINES " UNION ALL " EXPIRED_PLACES " ORDER BY 1, 2, 3 LIMIT ?2"
#define FOLLOWER_PLACES                                   \
    "SELECT 0, available_at, seq, seq FROM jobqueue_job " \
    "WHERE " SQL_FOLLOWS " AND queue=?1 AND (available_at, seq) > (?4, ?5)"
#define DELAYED_PLACES                                     \
    "SELECT 0 AS p0, due AS p1, seq AS p2, seq AS s "      \
    "FROM jobqueue_delayed "                               \
    "WHERE queue=?1 AND due>?6 AND (due, seq) > (?4, ?5) " \
    "UNION ALL " FOLLOWER_PLACES " ORDER BY 2, 3 LIMIT ?2"
#define RESERVED_PLACES                                                 \
    "SELECT 0 AS p0, 0 AS p1, h.seq AS p2, h.seq AS s "                 \
    "FROM jobqueue_held h "                                             \
    "JOIN jobqueue_worker w ON w.key=h.worker "                         \
    "WHERE h.queue=?1 AND w.boot=?7 AND w.alive_until>?8 AND h.seq>?5 " \
    "ORDER BY h.seq LIMIT ?2"
#define DONE_PLACES                                 \
    "SELECT 0 AS p0, 0 AS p1, seq AS p2, seq AS s " \
    "FROM jobqueue_job "                            \
    "WHERE state=3 AND queue=?1 AND seq>?5 "        \
    "ORDER BY seq LIMIT ?2"
#define DEAD_PLACES                                             \
    "SELECT 0 AS p0, -died_at AS p1, -seq AS p2, seq AS s "     \
    "FROM jobqueue_job "                                        \
    "WHERE state=4 AND (died_at, seq) < (-?4, -?5) "            \
    "AND (?1 IS NULL OR queue=?1) AND (?9 IS NULL OR name=?9) " \
    "AND (?10=0 OR reason=?10) AND (?11=0 OR died_at<=?11) "    \
    "ORDER BY died_at DESC, seq DESC LIMIT ?2"
#define SHOW_ERROR "SELECT error FROM jobqueue_error WHERE seq=?1"
#define SHOW_HISTORY "SELECT entry FROM jobqueue_history WHERE seq=?1 ORDER BY n"
#define SHOW_OUTCOME "SELECT outcome FROM jobqueue_outcome WHERE seq=?1"
enum { PLACE_COLUMN = 32, FOLLOWS = 3 /* nobody gets it before its key is free */ };

/* ---- showing --------------------------------------------------------------------------------- */

static void read_numbers(sqlite3_stmt *stmt, jobq_record *r, bool held)
{
    r->priority = (uint8_t)(JOBQ__TOP_PRIORITY - sqlite3_column_int(stmt, 3));
    r->available_at_ms = sqlite3_column_int64(stmt, 4);
    r->version = sqlite3_column_int(stmt, 7);
    jobq__sqlite_read_counters(stmt, 9, held, r);
    r->died_at_ms = sqlite3_column_int64(stmt, 20);
    r->reason = (uint8_t)sqlite3_column_int(stmt, 21);
    r->taken_back = sqlite3_column_int(stmt, 22);
    r->cancel = (uint8_t)sqlite3_column_int(stmt, 30);
    r->keep_until_ms = sqlite3_column_int64(stmt, 31);
}

/* The state people see; sets who holds it. False: no memory. */
static bool read_state(const sqlite_store *store, sqlite3_stmt *stmt, jobq_batch *out,
                       jobq_record *r, int place)
{
    int64_t now_ms = jobq__clock_wall_ms(), boot_ms = jobq__clock_boot_ms();
    const char *boot = (const char *)sqlite3_column_text(stmt, 27);

    r->state = (uint8_t)sqlite3_column_int(stmt, 2);
    if (r->state != SQL_LIVE)
        return true;
    if (place != SQL_RESERVED) {
        r->state = place == FOLLOWS || (place == SQL_DELAYED && r->available_at_ms > now_ms)
                       ? SQL_DELAYED
                       : SQL_READY;
        return true;
    }
    if (!boot || strcmp(boot, store->boot) != 0 || sqlite3_column_int64(stmt, 26) <= boot_ms)
        return true; /* its lease ran out: ready */
    r->state = SQL_RESERVED;
    r->reserved_until_ms = sqlite3_column_int64(stmt, 26) + now_ms - boot_ms;
    return jobq__sqlite_copy(stmt, 25, out, &r->reserved_by);
}

static int read_bytes(sqlite_store *store, sqlite3_stmt *stmt, int64_t seq, jobq_batch *out,
                      jobq_slice *to)
{
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0 && !jobq__sqlite_copy(stmt, 0, out, to))
        rc = jobq__error_nomem();
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int read_history(sqlite_store *store, int64_t seq, jobq_batch *out, jobq_record *r)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_SHOW_HISTORY, SHOW_HISTORY);
    int rc;

    if (!stmt)
        return jobq__error_code();
    r->history = jobq_batch_alloc(out, JOBQ__HISTORY_MAX * sizeof(jobq_slice));
    if (!r->history)
        return jobq__error_nomem();
    sqlite3_bind_int64(stmt, 1, seq);
    while ((rc = jobq__sqlite_row(store, stmt)) > 0 && r->history_count < JOBQ__HISTORY_MAX)
        if (!jobq__sqlite_copy(stmt, 0, out, &r->history[r->history_count++])) {
            rc = jobq__error_nomem();
            break;
        }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int read_shown(sqlite_store *store, sqlite3_stmt *stmt, bool keys_only, jobq_batch *out)
{
    jobq_record *r = jobq_batch_add(out);
    int place = sqlite3_column_int(stmt, 24);
    int64_t seq = sqlite3_column_int64(stmt, 0);
    int rc = 0;

    if (!r || !jobq__sqlite_copy(stmt, 1, out, &r->queue) ||
        !jobq__sqlite_copy(stmt, 5, out, &r->id) || !jobq__sqlite_copy(stmt, 6, out, &r->name) ||
        !jobq__sqlite_copy(stmt, 8, out, &r->unique))
        return jobq__error_nomem();
    read_numbers(stmt, r, place == SQL_RESERVED);
    if (!read_state(store, stmt, out, r, place))
        return jobq__error_nomem();
    if (keys_only)
        return 0;
    if (!jobq__sqlite_copy(stmt, 28, out, &r->header) ||
        !jobq__sqlite_copy(stmt, 29, out, &r->body))
        return jobq__error_nomem();
    if (sqlite3_column_int(stmt, 23)) {
        rc = read_bytes(store, jobq__sqlite_use(store, ST_SHOW_ERROR, SHOW_ERROR), seq, out,
                        &r->error);
        rc = rc ? rc
                : read_bytes(store, jobq__sqlite_use(store, ST_SHOW_OUTCOME, SHOW_OUTCOME), seq,
                             out, &r->outcome);
        rc = rc ? rc : read_history(store, seq, out, r);
    }
    return rc;
}

static int find(sqlite_store *store, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_FIND, FIND);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    jobq__sqlite_bind(stmt, 2, queue);
    rc = jobq__sqlite_row(store, stmt);
    if (rc == 0)
        return jobq__refuse_id(id);
    if (rc > 0)
        rc = read_shown(store, stmt, false, out);
    sqlite3_reset(stmt);
    return rc;
}

int jobq__sqlite_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    return rc < 0 ? rc : jobq__sqlite_leave(store, find(store, queue, id, out));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static sqlite3_stmt *list_statement(sqlite_store *store, int state)
{
    switch (state) {
    case SQL_READY:
        return jobq__sqlite_use(store, ST_LIST_READY, PAGE(READY_PLACES));
    case SQL_DELAYED:
        return jobq__sqlite_use(store, ST_LIST_DELAYED, PAGE(DELAYED_PLACES));
    case SQL_RESERVED:
        return jobq__sqlite_use(store, ST_LIST_RESERVED, PAGE(RESERVED_PLACES));
    case SQL_DONE:
        return jobq__sqlite_use(store, ST_LIST_DONE, PAGE(DONE_PLACES));
    default:
        return jobq__sqlite_use(store, ST_LIST_DEAD, PAGE(DEAD_PLACES));
    }
}

static void bind_list(const sqlite_store *store, sqlite3_stmt *stmt, const jobq_listing *l,
                      int64_t queue, const jobq__cursor *cursor)
{
    int64_t now_ms = jobq__clock_wall_ms();

    if (l->queue.p)
        sqlite3_bind_int64(stmt, 1, queue);
    else
        sqlite3_bind_null(stmt, 1);
    sqlite3_bind_int64(stmt, 2, (int64_t)l->limit + 1);
    for (int i = 0; i < 3; i++)
        sqlite3_bind_int64(stmt, 3 + i,
                           cursor->set ? cursor->part[i] : INT64_C(-4000000000000000000));
    sqlite3_bind_int64(stmt, 6, now_ms);
    jobq__sqlite_bind(stmt, 7, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 8, jobq__clock_boot_ms());
    jobq__sqlite_bind(stmt, 9, l->name);
    sqlite3_bind_int(stmt, 10, l->reason);
    sqlite3_bind_int64(stmt, 11, l->older_than_ms > 0 ? now_ms - l->older_than_ms : 0);
}

static int read_page(sqlite_store *store, sqlite3_stmt *stmt, jobq_listing *l)
{
    int64_t place[3] = {0, 0, 0};
    size_t count = 0;
    int rc;

    while ((rc = jobq__sqlite_row(store, stmt)) > 0) {
        if (count == l->limit) { /* there is one more */
            sqlite3_reset(stmt);
            rc = jobq__cursor_write(place, l->out, &l->last);
            l->next = l->last;
            return rc;
        }
        count++;
        for (int i = 0; i < 3; i++)
            place[i] = sqlite3_column_int64(stmt, PLACE_COLUMN + i);
        rc = read_shown(store, stmt, l->keys_only, l->out);
        if (rc < 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc < 0 || count == 0 ? rc : jobq__cursor_write(place, l->out, &l->last);
}

static int list(sqlite_store *store, jobq_listing *l)
{
    jobq__cursor cursor;
    int64_t queue = 0;
    sqlite3_stmt *stmt;
    int rc = jobq__cursor_read(l->after, &cursor);

    l->next = l->last = jobq__slice(NULL, 0);
    if (rc == 0 && l->queue.p)
        rc = jobq__sqlite_queue_key(store, l->queue, false, &queue);
    if (rc < 0 || (l->queue.p && queue == 0))
        return rc;
    stmt = list_statement(store, l->state);
    if (!stmt)
        return jobq__error_code();
    bind_list(store, stmt, l, queue, &cursor);
    return read_page(store, stmt, l);
}

int jobq__sqlite_list(void *handle, jobq_listing *l)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    return rc < 0 ? rc : jobq__sqlite_leave(store, list(store, l));
}
