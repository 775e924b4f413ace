/* SPDX-License-Identifier: MIT
 *
 * Capacities of queues, and what happened minute by minute.
 */
#include "driver/answers.h"
#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

#define LIMIT_GET "SELECT capacity, room FROM jobqueue_queue WHERE id=?1"
#define LIMIT_SET "UPDATE jobqueue_queue SET capacity=?2, room=0 WHERE id=?1"
#define ROOM_SET "UPDATE jobqueue_queue SET room=?2 WHERE id=?1"
#define ROOM_COUNT                                                      \
    "SELECT (SELECT count(*) FROM jobqueue_ready WHERE queue=?1) + "    \
    "(SELECT count(*) FROM jobqueue_taken WHERE queue=?1) + "           \
    "(SELECT count(*) FROM jobqueue_delayed WHERE queue=?1) + "         \
    "(SELECT count(*) FROM jobqueue_held WHERE queue=?1) + "            \
    "(SELECT count(*) FROM jobqueue_job WHERE state=4 AND queue=?1) + " \
    "(SELECT count(*) FROM jobqueue_job WHERE " SQL_FOLLOWS " AND queue=?1)"
#define MINUTE_ADD                                                                \
    "INSERT INTO jobqueue_minute(minute, queue, slot, n) VALUES(?1, ?2, ?3, ?4) " \
    "ON CONFLICT DO UPDATE SET n=n+excluded.n"
#define MINUTES                                                                  \
    "SELECT minute, slot, n FROM jobqueue_minute WHERE minute>=?1 AND queue=?2 " \
    "ORDER BY minute"
#define MINUTES_CUT "DELETE FROM jobqueue_minute WHERE minute<?1"

/* ---- capacity (rule B4) ---------------------------------------------------------------------- */

/* -1: none was ever set. */
static int read_limit(sqlite_store *store, int64_t queue, int64_t *capacity_out, int64_t *room_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_LIMIT_GET, LIMIT_GET);
    int rc;

    *capacity_out = -1;
    *room_out = 0;
    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0 && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        *capacity_out = sqlite3_column_int64(stmt, 0);
        *room_out = sqlite3_column_int64(stmt, 1);
    }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int change_limit(sqlite_store *store, jobq_limit *l)
{
    int64_t queue, room;
    int rc = jobq__sqlite_queue_key(store, l->queue, true, &queue);

    rc = rc ? rc : read_limit(store, queue, &l->capacity, &room);
    if (rc < 0 || (l->only_if_none && l->capacity >= 0))
        return rc;
    l->capacity = l->value;
    return jobq__sqlite_run_with(store, ST_LIMIT_SET, LIMIT_SET, queue, l->value);
}

static int show_limit(sqlite_store *store, jobq_limit *l)
{
    int64_t queue, room;
    int rc = jobq__sqlite_queue_key(store, l->queue, false, &queue);

    rc = rc ? rc : read_limit(store, queue, &l->capacity, &room);
    l->capacity = l->capacity < 0 ? 0 : l->capacity;
    return rc;
}

int jobq__sqlite_capacity(void *handle, jobq_limit *l)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    l->capacity = 0;
    if (l->read)
        return jobq__sqlite_leave(store, show_limit(store, l));
    rc = jobq__sqlite_begin(store);
    if (rc == 0)
        rc = jobq__sqlite_finish(store, change_limit(store, l));
    return jobq__sqlite_leave(store, rc);
}

static int count_all(sqlite_store *store, int64_t queue, int64_t *count_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_ROOM_COUNT, ROOM_COUNT);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0)
        *count_out = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

/* `room` never says too much, since nobody but a push takes of it: only when it is used up is the
 * queue counted. The new job stands in no line yet. */
int jobq__sqlite_has_room(sqlite_store *store, int64_t queue)
{
    int64_t capacity, room, count = 0;
    int rc;

    if (queue == store->unlimited)
        return 1;
    rc = read_limit(store, queue, &capacity, &room);
    if (rc == 0 && capacity <= 0)
        store->unlimited = queue; /* nobody else can change it before the commit */
    if (rc < 0 || capacity <= 0)
        return rc < 0 ? rc : 1;
    if (room <= 0) {
        rc = count_all(store, queue, &count);
        room = capacity - count;
    }
    if (rc < 0 || room <= 0)
        return rc;
    rc = jobq__sqlite_run_with(store, ST_ROOM_SET, ROOM_SET, queue, room - 1);
    return rc < 0 ? rc : 1;
}

/* ---- minutes (rule N1) ----------------------------------------------------------------------- */

static int add_slot(sqlite_store *store, int64_t minute, int64_t queue, int slot, int64_t n)
{
    sqlite3_stmt *stmt = n ? jobq__sqlite_use(store, ST_MINUTE_ADD, MINUTE_ADD) : NULL;

    if (!stmt)
        return n ? jobq__error_code() : 0;
    sqlite3_bind_int64(stmt, 1, minute);
    sqlite3_bind_int64(stmt, 2, queue);
    sqlite3_bind_int(stmt, 3, slot);
    sqlite3_bind_int64(stmt, 4, n);
    return jobq__sqlite_run(store, stmt);
}

static int book_one(sqlite_store *store, const jobq_minute *m)
{
    int64_t queue;
    int rc = jobq__sqlite_queue_key(store, m->queue, true, &queue);

    for (int i = 0; i < JOBQ_MINUTE_COUNTS && rc == 0; i++)
        rc = add_slot(store, m->minute, queue, i, m->counts[i]);
    for (int i = 0; i < JOBQ_MINUTE_BUCKETS && rc == 0; i++)
        rc = add_slot(store, m->minute, queue, JOBQ__MINUTE_BUCKETS_AT + i, m->run_ms[i]);
    return rc;
}

static int book(sqlite_store *store, const jobq_minute *minutes, size_t n)
{
    /* Lost numbers are no lost jobs: nobody waits for the disk. */
    int rc = jobq__sqlite_begin_hurried(store, false);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = book_one(store, &minutes[i]);
    return jobq__sqlite_finish(store, rc);
}

int jobq__sqlite_book(void *handle, const jobq_minute *minutes, size_t n)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    return rc < 0 ? rc : jobq__sqlite_leave(store, book(store, minutes, n));
}

/* Rows of one minute follow each other. */
static int read_slot(sqlite3_stmt *stmt, jobq_minutes *m, jobq_minute ***link, jobq_minute **last)
{
    const int64_t minute = sqlite3_column_int64(stmt, 0);

    if (!*last || (*last)->minute != minute)
        *last = jobq__minute_add(m, link, minute);
    if (!*last)
        return jobq__error_code();
    jobq__minute_put(*last, sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2));
    return 0;
}

static int read_minutes(sqlite_store *store, jobq_minutes *m)
{
    jobq_minute *last = NULL, **link = &m->minutes;
    sqlite3_stmt *stmt;
    int64_t queue;
    int rc = jobq__sqlite_queue_key(store, m->queue, false, &queue);

    if (rc < 0 || queue == 0)
        return rc;
    stmt = jobq__sqlite_use(store, ST_MINUTES, MINUTES);
    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, m->from_minute);
    sqlite3_bind_int64(stmt, 2, queue);
    while ((rc = jobq__sqlite_row(store, stmt)) > 0)
        if ((rc = read_slot(stmt, m, &link, &last)) < 0)
            break;
    sqlite3_reset(stmt);
    return rc;
}

int jobq__sqlite_minutes(void *handle, jobq_minutes *m)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    m->minutes = NULL;
    m->now_ms = jobq__clock_wall_ms();
    return rc < 0 ? rc : jobq__sqlite_leave(store, read_minutes(store, m));
}

int jobq__sqlite_drop_minutes(sqlite_store *store, int64_t before_minute)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_MINUTES_CUT, MINUTES_CUT);

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, before_minute);
    return jobq__sqlite_run(store, stmt);
}
