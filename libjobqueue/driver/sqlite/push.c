/* SPDX-License-Identifier: MIT
 *
 * Storing jobs. One transaction per call; each job is judged singly by the unique indexes. The
 * look-ups that tell a duplicate id from a held key run only when an insert was refused.
 */
#include <string.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

#define JOB_ADD                                                                           \
    "INSERT INTO jobqueue_job(queue, rank, version, available_at, enqueued_at, base_at, " \
    "id, name, unique_key, header, body, key_state) "                                     \
    "VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
#define READY_ADD                                                 \
    "INSERT INTO jobqueue_ready(queue, rank, available_at, seq) " \
    "VALUES(?1, ?2, ?3, ?4)"
#define READY_ADD_RUN                                             \
    "INSERT INTO jobqueue_ready(queue, rank, available_at, seq) " \
    "SELECT ?1, ?2, ?3, seq FROM jobqueue_job WHERE seq BETWEEN ?4 AND ?5"
#define DELAYED_ADD                                        \
    "INSERT INTO jobqueue_delayed(due, seq, queue, rank) " \
    "VALUES(?3, ?4, ?1, ?2)"
#define DELAYED_ADD_RUN                                    \
    "INSERT INTO jobqueue_delayed(due, seq, queue, rank) " \
    "SELECT ?3, seq, ?1, ?2 FROM jobqueue_job WHERE seq BETWEEN ?4 AND ?5"
#define ID_EXISTS "SELECT 1 FROM jobqueue_job WHERE id=?1"

static int id_exists(sqlite_store *store, jobq_slice id)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_ID_EXISTS, ID_EXISTS);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, id);
    rc = jobq__sqlite_row(store, stmt);
    sqlite3_reset(stmt);
    return rc;
}

/* Why was the row refused? */
static int judge_conflict(sqlite_store *store, jobq_push *item, int64_t queue, int64_t due_ms,
                          int64_t now_ms)
{
    sqlite3_stmt *by_key = jobq__sqlite_use(store, ST_HOLDER, SQL_HOLDER);
    int rc = by_key ? id_exists(store, item->id) : jobq__error_code();

    if (rc != 0) {
        item->result = JOBQ_EEXISTS;
        return rc < 0 ? rc : 0;
    }
    if (item->on_duplicate == JOBQ_DUPLICATE_REPLACE)
        return jobq__sqlite_replace(store, item, queue, due_ms, now_ms);
    sqlite3_bind_int64(by_key, 1, queue);
    jobq__sqlite_bind(by_key, 2, item->unique);
    rc = jobq__sqlite_row(store, by_key);
    if (rc > 0) {
        item->result = 1;
        sqlite3_snprintf(sizeof(item->holder), item->holder, "%s", sqlite3_column_text(by_key, 0));
    }
    sqlite3_reset(by_key);
    if (rc == 0)
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0, "sqlite: the job was refused");
    return rc < 0 ? rc : 0;
}

static int64_t due_at(const jobq_push *item, int64_t now_ms)
{
    int64_t at_ms = item->at_ms > 0      ? item->at_ms
                    : item->delay_ms > 0 ? now_ms + item->delay_ms
                                         : now_ms;

    return at_ms > now_ms ? at_ms : now_ms;
}

int jobq__sqlite_add_job(sqlite_store *store, const jobq_push *item, int64_t queue, int64_t due_ms,
                         int64_t now_ms, bool follower)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_JOB_ADD, JOB_ADD);
    int step;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    sqlite3_bind_int(stmt, 2, JOBQ__TOP_PRIORITY - item->priority);
    sqlite3_bind_int(stmt, 3, item->version);
    sqlite3_bind_int64(stmt, 4, due_ms);
    sqlite3_bind_int64(stmt, 5, now_ms);
    jobq__sqlite_bind(stmt, 6, item->id);
    jobq__sqlite_bind(stmt, 7, item->name);
    jobq__sqlite_bind(stmt, 8, item->unique);
    jobq__sqlite_bind_blob(stmt, 9, item->header);
    jobq__sqlite_bind_blob(stmt, 10, item->body);
    sqlite3_bind_int(stmt, 11, follower ? 2 : 0);
    step = sqlite3_step(stmt);
    if (step != SQLITE_DONE && step != SQLITE_CONSTRAINT_UNIQUE)
        jobq__sqlite_fail(store, "pushing a job");
    sqlite3_reset(stmt);
    return step == SQLITE_DONE ? 1 : step == SQLITE_CONSTRAINT_UNIQUE ? 0 : jobq__error_code();
}

/* Jobs stored one right after the other that belong into the same line, but stand in none yet. */
typedef struct {
    int64_t queue, due_ms, first, last; /* first = 0: none */
    int rank;
    bool delayed;
} newcomers;

/* [delayed][more than one] */
static const struct {
    sqlite_statement which;
    const char *sql;
} places[2][2] = {{{ST_READY_ADD, READY_ADD}, {ST_READY_ADD_RUN, READY_ADD_RUN}},
                  {{ST_DELAYED_ADD, DELAYED_ADD}, {ST_DELAYED_ADD_RUN, DELAYED_ADD_RUN}}};

static int place(sqlite_store *store, newcomers *new)
{
    const bool many = new->last > new->first;
    sqlite3_stmt *stmt;

    if (new->first == 0)
        return 0;
    stmt =
        jobq__sqlite_use(store, places[new->delayed][many].which, places[new->delayed][many].sql);
    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, new->queue);
    sqlite3_bind_int(stmt, 2, new->rank);
    sqlite3_bind_int64(stmt, 3, new->due_ms);
    sqlite3_bind_int64(stmt, 4, new->first);
    if (many)
        sqlite3_bind_int64(stmt, 5, new->last);
    new->first = 0;
    return jobq__sqlite_run(store, stmt);
}

static int add_newcomer(sqlite_store *store, newcomers *new, const newcomers *one)
{
    int rc;

    if (new->first && one->first == new->last + 1 && one->queue == new->queue &&
        one->due_ms == new->due_ms && one->rank == new->rank) {
        new->last = one->last;
        return 0;
    }
    rc = place(store, new);
    *new = *one;
    return rc;
}

/* Stored: soon in its line, unless it is one too many for its queue. Where there is a limit the
 * lines are counted, so nobody may be missing in them. */
static int admit(sqlite_store *store, jobq_push *item, int64_t queue, int64_t due_ms,
                 int64_t now_ms, newcomers *new)
{
    const int64_t seq = sqlite3_last_insert_rowid(store->db);
    int rc = queue == store->unlimited ? 0 : place(store, new);

    rc = rc < 0 ? rc : jobq__sqlite_has_room(store, queue);
    if (rc > 0)
        return add_newcomer(store, new,
                            &(newcomers){.queue = queue,
                                         .due_ms = due_ms,
                                         .first = seq,
                                         .last = seq,
                                         .rank = JOBQ__TOP_PRIORITY - item->priority,
                                         .delayed = due_ms > now_ms});
    if (rc < 0)
        return rc;
    item->result = JOBQ_EFULL;
    return jobq__sqlite_drop_job(store, seq);
}

/* A known id is a duplicate whatever the guard says. The guard may look at the jobs before this
 * one, whose states are those of their lines. */
static int judge_guard(sqlite_store *store, jobq_push *item, newcomers *new)
{
    int rc = place(store, new);

    rc = rc < 0 ? rc : id_exists(store, item->id);
    if (rc == 0)
        rc = jobq__sqlite_judge_guard(store, item->guard);
    else if (rc > 0)
        return 1; /* the insert will find it, too */
    if (rc == 0)
        item->result = JOBQ_EGUARD;
    return rc;
}

static int push_one(sqlite_store *store, jobq_push *item, int64_t now_ms, newcomers *new)
{
    int64_t queue, due_ms = due_at(item, now_ms);
    int rc = item->guard ? judge_guard(store, item, new) : 1;

    if (rc <= 0)
        return rc;
    rc = jobq__sqlite_queue_key(store, item->queue, true, &queue);
    if (rc == 0)
        rc = jobq__sqlite_add_job(store, item, queue, due_ms, now_ms, false);
    if (rc < 0)
        return rc;
    item->result = 0;
    if (rc)
        return admit(store, item, queue, due_ms, now_ms, new);
    rc = place(store, new);
    return rc < 0 ? rc : judge_conflict(store, item, queue, due_ms, now_ms);
}

int jobq__sqlite_add_follow(sqlite_store *store, const jobq_push *follow, int64_t now_ms)
{
    jobq_push item;
    newcomers new = {0};
    int rc;

    if (!follow)
        return 0;
    item = *follow;
    rc = push_one(store, &item, now_ms, &new);
    return rc < 0 ? rc : place(store, &new);
}

static int push_all(sqlite_store *store, jobq_push *items, size_t n)
{
    int64_t now_ms = jobq__clock_wall_ms();
    newcomers new = {0};
    int rc = jobq__sqlite_begin_hurried(store, true);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = push_one(store, &items[i], now_ms, &new);
    if (rc == 0)
        rc = place(store, &new);
    return jobq__sqlite_finish(store, rc);
}

int jobq__sqlite_push(void *handle, jobq_push *items, size_t n)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    rc = push_all(store, items, n);
    if (rc == 0)
        jobq__sqlite_ring(store);
    return jobq__sqlite_leave(store, rc);
}
