/* SPDX-License-Identifier: MIT
 *
 * Looking at jobs without taking them, and mending dead ones. A due delayed job and one whose lease ran out
 * are seen as ready whether maintenance has been by or not (rule N1).
 */
#include <string.h>

#include "driver/cursor.h"
#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

/* Columns of a shown job, in the order read_shown reads them. */
#define SHOWN                                                                                                          \
    "j.seq, q.name, j.state, j.rank, j.available_at, j.id, j.name, j.version, j.unique_key, j.deliveries, j.failures, " \
    "j.crashes, j.releases, j.losses, j.exceptions, j.parks, j.parked_since, j.fence, j.enqueued_at, j.base_at, "      \
    "ifnull(j.died_at, 0), j.reason, j.taken, j.traced, h.seq IS NOT NULL, w.id, w.alive_until, w.boot, j.header, j.body"
#define JOINED                                                                                                         \
    " JOIN jobqueue_queue q ON q.id=j.queue LEFT JOIN jobqueue_held h ON h.seq=j.seq AND j.state=0 LEFT JOIN "         \
    "jobqueue_worker w ON w.key=h.worker "
#define FIND "SELECT " SHOWN " FROM jobqueue_job j" JOINED "WHERE j.id=?1"
/* A page: l gives the places p0, p1, p2 behind the cursor (?3, ?4, ?5) and the job s; one more than the limit. */
#define PAGE(places)                                                                                                   \
    "SELECT " SHOWN ", l.p0, l.p1, l.p2 FROM (" places ") l CROSS JOIN jobqueue_job j ON j.seq=l.s" JOINED             \
    "ORDER BY l.p0, l.p1, l.p2"
#define LINE_PLACES(table, at, more)                                                                                   \
    "SELECT * FROM (SELECT rank AS p0, " at " AS p1, seq AS p2, seq AS s FROM " table " WHERE queue=?1 AND (rank, " at \
    ", seq) > (?3, ?4, ?5)" more " ORDER BY rank, " at ", seq LIMIT ?2)"
#define EXPIRED_PLACES                                                                                                 \
    "SELECT * FROM (SELECT j.rank, j.available_at, j.seq, j.seq FROM jobqueue_held h JOIN jobqueue_worker w ON "       \
    "w.key=h.worker JOIN jobqueue_job j ON j.seq=h.seq WHERE h.queue=?1 AND (w.boot<>?7 OR w.alive_until<=?8) AND "    \
    "(j.rank, j.available_at, j.seq) > (?3, ?4, ?5) ORDER BY 1, 2, 3 LIMIT ?2)"
#define READY_PLACES                                                                                                   \
    LINE_PLACES("jobqueue_ready", "available_at", "") " UNION ALL "                                                    \
    LINE_PLACES("jobqueue_taken", "available_at", "") " UNION ALL "                                                    \
    LINE_PLACES("jobqueue_delayed", "due", " AND due<=?6") " UNION ALL " EXPIRED_PLACES " ORDER BY 1, 2, 3 LIMIT ?2"
#define DELAYED_PLACES                                                                                                 \
    "SELECT 0 AS p0, due AS p1, seq AS p2, seq AS s FROM jobqueue_delayed WHERE queue=?1 AND due>?6 AND (due, seq) > " \
    "(?4, ?5) ORDER BY due, seq LIMIT ?2"
#define RESERVED_PLACES                                                                                                \
    "SELECT 0 AS p0, 0 AS p1, h.seq AS p2, h.seq AS s FROM jobqueue_held h JOIN jobqueue_worker w ON w.key=h.worker "  \
    "WHERE h.queue=?1 AND w.boot=?7 AND w.alive_until>?8 AND h.seq>?5 ORDER BY h.seq LIMIT ?2"
#define DONE_PLACES                                                                                                    \
    "SELECT 0 AS p0, 0 AS p1, seq AS p2, seq AS s FROM jobqueue_job WHERE state=3 AND queue=?1 AND seq>?5 ORDER BY "   \
    "seq LIMIT ?2"
#define DEAD_PLACES                                                                                                    \
    "SELECT 0 AS p0, -died_at AS p1, -seq AS p2, seq AS s FROM jobqueue_job WHERE state=4 AND (died_at, seq) < "       \
    "(-?4, -?5) AND (?1 IS NULL OR queue=?1) AND (?9 IS NULL OR name=?9) AND (?10=0 OR reason=?10) AND "               \
    "(?11=0 OR died_at<=?11) ORDER BY died_at DESC, seq DESC LIMIT ?2"
#define SHOW_ERROR "SELECT error FROM jobqueue_error WHERE seq=?1"
#define SHOW_HISTORY "SELECT entry FROM jobqueue_history WHERE seq=?1 ORDER BY n"
#define COUNTS                                                                                                         \
    "SELECT (SELECT count(*) FROM jobqueue_ready WHERE queue=?1) + (SELECT count(*) FROM jobqueue_taken WHERE "        \
    "queue=?1), (SELECT count(*) FROM jobqueue_delayed WHERE queue=?1 AND due<=?2), (SELECT count(*) FROM "            \
    "jobqueue_delayed WHERE queue=?1 AND due>?2), (SELECT count(*) FROM jobqueue_held h JOIN jobqueue_worker w ON "    \
    "w.key=h.worker WHERE h.queue=?1 AND w.boot=?3 AND w.alive_until>?4), (SELECT count(*) FROM jobqueue_held WHERE "  \
    "queue=?1), (SELECT count(*) FROM jobqueue_job WHERE state=4 AND queue=?1)"
/* The line is sorted by rank first: its oldest is the first of one of the ten ranks. */
#define OLDEST                                                                                                         \
    "SELECT min(at) FROM (SELECT (SELECT available_at FROM jobqueue_ready WHERE queue=?1 AND rank=r.column1 ORDER BY " \
    "available_at LIMIT 1) AS at FROM (VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)) r UNION ALL SELECT "            \
    "available_at FROM jobqueue_taken WHERE queue=?1 UNION ALL SELECT * FROM (SELECT due FROM jobqueue_delayed WHERE " \
    "queue=?1 AND due<=?2 ORDER BY due LIMIT 1) UNION ALL SELECT j.available_at FROM jobqueue_held h JOIN "            \
    "jobqueue_worker w ON w.key=h.worker JOIN jobqueue_job j ON j.seq=h.seq WHERE h.queue=?1 AND (w.boot<>?3 OR "      \
    "w.alive_until<=?4))"
#define QUEUES "SELECT name FROM jobqueue_queue ORDER BY name"
#define MEND_GET "SELECT seq, queue, unique_key, traced FROM jobqueue_job WHERE id=?1 AND state=4"
#define MEND_HOLDER "SELECT id FROM jobqueue_job WHERE queue=?1 AND unique_key=?2 AND unique_key IS NOT NULL AND state=0"
#define MEND_RETRY                                                                                                     \
    "UPDATE jobqueue_job SET state=0, reason=0, died_at=NULL, taken=0, deliveries=0, failures=0, crashes=0, "          \
    "releases=0, losses=0, exceptions=0, parks=0, parked_since=0, base_at=?2, available_at=?2 WHERE seq=?1"

enum { PLACE_COLUMN = 30 };

/* ---- showing ---------------------------------------------------------------------------------------------------- */

static void read_numbers(sqlite3_stmt *stmt, jobq_record *r, bool held)
{
    jobq_counters *c = &r->counters;

    r->priority = (uint8_t)(SQL_TOP_PRIORITY - sqlite3_column_int(stmt, 3));
    r->available_at_ms = sqlite3_column_int64(stmt, 4);
    r->version = sqlite3_column_int(stmt, 7);
    c->deliveries = sqlite3_column_int64(stmt, 9) + held;
    c->failures = sqlite3_column_int64(stmt, 10);
    c->crashes = sqlite3_column_int64(stmt, 11);
    c->releases = sqlite3_column_int64(stmt, 12);
    c->losses = sqlite3_column_int64(stmt, 13);
    c->exceptions = sqlite3_column_int64(stmt, 14);
    c->parks = sqlite3_column_int64(stmt, 15);
    c->parked_since_ms = sqlite3_column_int64(stmt, 16);
    r->fence = sqlite3_column_int64(stmt, 17) + held;
    r->enqueued_at_ms = sqlite3_column_int64(stmt, 18);
    r->base_at_ms = sqlite3_column_int64(stmt, 19);
    r->died_at_ms = sqlite3_column_int64(stmt, 20);
    r->reason = (uint8_t)sqlite3_column_int(stmt, 21);
    r->taken_back = sqlite3_column_int(stmt, 22);
}

/* The state people see; sets who holds it. False: no memory. */
static bool read_state(const sqlite_store *store, sqlite3_stmt *stmt, jobq_batch *out, jobq_record *r, bool held)
{
    int64_t now_ms = jobq__clock_wall_ms(), boot_ms = jobq__clock_boot_ms();
    const char *boot = (const char *)sqlite3_column_text(stmt, 27);

    r->state = (uint8_t)sqlite3_column_int(stmt, 2);
    if (r->state != SQL_LIVE)
        return true;
    if (!held) {
        r->state = r->available_at_ms > now_ms ? SQL_DELAYED : SQL_READY;
        return true;
    }
    if (!boot || strcmp(boot, store->boot) != 0 || sqlite3_column_int64(stmt, 26) <= boot_ms)
        return true; /* its lease ran out: ready */
    r->state = SQL_RESERVED;
    r->reserved_until_ms = sqlite3_column_int64(stmt, 26) + now_ms - boot_ms;
    return jobq__sqlite_copy(stmt, 25, out, &r->reserved_by);
}

static int read_error(sqlite_store *store, int64_t seq, jobq_batch *out, jobq_record *r)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_SHOW_ERROR, SHOW_ERROR);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0 && !jobq__sqlite_copy(stmt, 0, out, &r->error))
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
    r->history = jobq_batch_alloc(out, SQL_HISTORY * sizeof(jobq_slice));
    if (!r->history)
        return jobq__error_nomem();
    sqlite3_bind_int64(stmt, 1, seq);
    while ((rc = jobq__sqlite_row(store, stmt)) > 0 && r->history_count < SQL_HISTORY)
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
    bool held = sqlite3_column_int(stmt, 24);
    int64_t seq = sqlite3_column_int64(stmt, 0);
    int rc = 0;

    if (!r || !jobq__sqlite_copy(stmt, 1, out, &r->queue) || !jobq__sqlite_copy(stmt, 5, out, &r->id) ||
        !jobq__sqlite_copy(stmt, 6, out, &r->name) || !jobq__sqlite_copy(stmt, 8, out, &r->unique))
        return jobq__error_nomem();
    read_numbers(stmt, r, held);
    if (!read_state(store, stmt, out, r, held))
        return jobq__error_nomem();
    if (keys_only)
        return 0;
    if (!jobq__sqlite_copy(stmt, 28, out, &r->header) || !jobq__sqlite_copy(stmt, 29, out, &r->body))
        return jobq__error_nomem();
    if (sqlite3_column_int(stmt, 23)) {
        rc = read_error(store, seq, out, r);
        rc = rc ? rc : read_history(store, seq, out, r);
    }
    return rc;
}

static int find(sqlite_store *store, jobq_slice id, jobq_batch *out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_FIND, FIND);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    rc = jobq__sqlite_row(store, stmt);
    if (rc == 0)
        return jobq__error_set_subject(JOBQ_ENOTFOUND, id.p, id.n, "no job has the id \"%.*s\"", (int)id.n, (const char *)id.p);
    if (rc > 0)
        rc = read_shown(store, stmt, false, out);
    sqlite3_reset(stmt);
    return rc;
}

int jobq__sqlite_find(void *handle, jobq_slice id, jobq_batch *out)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    return rc < 0 ? rc : jobq__sqlite_leave(store, find(store, id, out));
}

/* ---- lists --------------------------------------------------------------------------------------------------------- */

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

static void bind_list(const sqlite_store *store, sqlite3_stmt *stmt, const jobq_listing *l, int64_t queue, const jobq__cursor *cursor)
{
    int64_t now_ms = jobq__clock_wall_ms();

    if (l->queue.p)
        sqlite3_bind_int64(stmt, 1, queue);
    else
        sqlite3_bind_null(stmt, 1);
    sqlite3_bind_int64(stmt, 2, (int64_t)l->limit + 1);
    for (int i = 0; i < 3; i++)
        sqlite3_bind_int64(stmt, 3 + i, cursor->set ? cursor->part[i] : INT64_C(-4000000000000000000));
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
        if (count++ == l->limit) { /* there is one more: the cursor is the last one shown */
            sqlite3_reset(stmt);
            return jobq__cursor_write(place, l->out, &l->next);
        }
        for (int i = 0; i < 3; i++)
            place[i] = sqlite3_column_int64(stmt, PLACE_COLUMN + i);
        rc = read_shown(store, stmt, l->keys_only, l->out);
        if (rc < 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

static int list(sqlite_store *store, jobq_listing *l)
{
    jobq__cursor cursor;
    int64_t queue = 0;
    sqlite3_stmt *stmt;
    int rc = jobq__cursor_read(l->after, &cursor);

    l->next = jobq__slice(NULL, 0);
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

/* ---- counts -------------------------------------------------------------------------------------------------------- */

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
        counts->ready = sqlite3_column_int64(stmt, 0) + sqlite3_column_int64(stmt, 1) + sqlite3_column_int64(stmt, 4) -
                        counts->reserved;
        counts->delayed = sqlite3_column_int64(stmt, 2);
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
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_QUEUES, QUEUES);
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

/* ---- mending ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t seq, queue;
    bool traced;
} dead_job;

/* The dead job, when it may be retried: its unique key is free. */
static int check_holder(sqlite_store *store, int64_t queue, sqlite3_stmt *dead, jobq_slice id)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_HOLDER, MEND_HOLDER);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    sqlite3_bind_value(stmt, 2, sqlite3_column_value(dead, 2));
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        const char *holder = (const char *)sqlite3_column_text(stmt, 0);

        rc = jobq__error_set_subject(JOBQ_EEXISTS, holder, strlen(holder), "the unique key of job %.*s is held by job %s",
                                     (int)id.n, (const char *)id.p, holder);
    }
    sqlite3_reset(stmt);
    return rc;
}

static int find_dead(sqlite_store *store, int what, jobq_slice id, dead_job *job)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_MEND_GET, MEND_GET);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    rc = jobq__sqlite_row(store, stmt);
    if (rc == 0)
        return jobq__error_set_subject(JOBQ_ENOTFOUND, id.p, id.n, "no dead job has the id \"%.*s\"", (int)id.n,
                                       (const char *)id.p);
    if (rc > 0) {
        job->seq = sqlite3_column_int64(stmt, 0);
        job->queue = sqlite3_column_int64(stmt, 1);
        job->traced = sqlite3_column_int(stmt, 3);
        rc = what == JOBQ_MEND_RETRY ? check_holder(store, job->queue, stmt, id) : 0;
    }
    sqlite3_reset(stmt);
    return rc;
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

static int mend(sqlite_store *store, int what, jobq_slice id)
{
    dead_job job;
    int rc = jobq__sqlite_begin(store);

    if (rc < 0)
        return rc;
    rc = find_dead(store, what, id, &job);
    if (rc == 0)
        rc = what == JOBQ_MEND_RETRY ? retry_job(store, job.seq) : jobq__sqlite_drop_job(store, job.seq, job.traced);
    return jobq__sqlite_finish(store, rc);
}

int jobq__sqlite_mend(void *handle, int what, jobq_slice id, bool dry_run)
{
    sqlite_store *store = handle;
    dead_job job;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = dry_run ? find_dead(store, what, id, &job) : mend(store, what, id);
    if (rc == 0 && !dry_run && what == JOBQ_MEND_RETRY)
        jobq__sqlite_ring(store);
    return jobq__sqlite_leave(store, rc);
}
