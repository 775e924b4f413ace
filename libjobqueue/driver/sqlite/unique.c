/* SPDX-License-Identifier: MIT
 *
 * Pushes that replace what has their unique key (rule B6): a waiting holder, or the one follower of
 * a holder that is with a worker. Triggers of the schema give the key to the follower.
 */
#include <string.h>

#include "driver/sqlite/sqlite.h"
#include "util/error.h"

/* The follower before its holder: key_state 2 comes first. */
#define FOLLOWER                                                         \
    "SELECT j.seq, j.id, j.enqueued_at, j.key_state, h.seq IS NOT NULL " \
    "FROM jobqueue_job j LEFT JOIN jobqueue_held h ON h.seq=j.seq "      \
    "WHERE j.queue=?1 AND j.unique_key=?2 AND j.state=0 AND "            \
    "j.key_state<>1 AND j.key_state IN (0, 2) "                          \
    "ORDER BY j.key_state DESC LIMIT 1"
#define REPLACE                                                                             \
    "UPDATE jobqueue_job SET name=?2, version=?3, rank=?4, header=?5, body=?6, "            \
    "available_at=?7, taken=0, deliveries=0, failures=0, crashes=0, releases=0, losses=0, " \
    "exceptions=0, parks=0, parked_since=0 WHERE seq=?1"

typedef struct {
    int64_t seq, enqueued_at_ms;
    bool follower, held;
    char id[129];
} key_holder;

static int find_holder(sqlite_store *store, const jobq_push *item, int64_t queue, key_holder *out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_FOLLOWER, FOLLOWER);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    jobq__sqlite_bind(stmt, 2, item->unique);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        out->seq = sqlite3_column_int64(stmt, 0);
        sqlite3_snprintf(sizeof(out->id), out->id, "%s", sqlite3_column_text(stmt, 1));
        out->enqueued_at_ms = sqlite3_column_int64(stmt, 2);
        out->follower = sqlite3_column_int(stmt, 3) == 2;
        out->held = sqlite3_column_int(stmt, 4);
    }
    sqlite3_reset(stmt);
    if (rc == 0)
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0, "sqlite: the job was refused");
    return rc < 0 ? rc : 0;
}

static int rewrite(sqlite_store *store, const jobq_push *item, int64_t seq, int64_t due_ms)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_REPLACE, REPLACE);

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    jobq__sqlite_bind(stmt, 2, item->name);
    sqlite3_bind_int(stmt, 3, item->version);
    sqlite3_bind_int(stmt, 4, JOBQ__TOP_PRIORITY - item->priority);
    jobq__sqlite_bind_blob(stmt, 5, item->header);
    jobq__sqlite_bind_blob(stmt, 6, item->body);
    sqlite3_bind_int64(stmt, 7, due_ms);
    return jobq__sqlite_run(store, stmt);
}

/* At most so long after the first of them. */
static int64_t cap_due(const jobq_push *item, const key_holder *holder, int64_t due_ms,
                       int64_t now_ms)
{
    const int64_t latest_ms = holder->enqueued_at_ms + item->max_wait_ms;

    if (item->max_wait_ms <= 0 || due_ms <= latest_ms)
        return due_ms;
    return latest_ms > now_ms ? latest_ms : now_ms;
}

static int replace_waiting(sqlite_store *store, jobq_push *item, const key_holder *holder,
                           int64_t due_ms, int64_t now_ms)
{
    int rc = holder->follower ? 0 : jobq__sqlite_leave_lines(store, holder->seq);

    due_ms = cap_due(item, holder, due_ms, now_ms);
    rc = rc ? rc : rewrite(store, item, holder->seq, due_ms);
    if (rc == 0 && !holder->follower)
        rc = due_ms > now_ms ? jobq__sqlite_put_off(store, holder->seq)
                             : jobq__sqlite_line_up(store, holder->seq, false);
    memcpy(item->holder, holder->id, sizeof(item->holder));
    item->result = 2;
    return rc;
}

static int add_follower(sqlite_store *store, jobq_push *item, int64_t queue, int64_t due_ms,
                        int64_t now_ms)
{
    int rc = jobq__sqlite_has_room(store, queue); /* before it counts itself */

    if (rc == 0)
        item->result = JOBQ_EFULL;
    if (rc <= 0)
        return rc;
    rc = jobq__sqlite_add_job(store, item, queue, due_ms, now_ms, true);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "sqlite", 0, "sqlite: the job was refused");
    memcpy(item->holder, item->id.p, item->id.n);
    item->holder[item->id.n] = '\0';
    item->result = 2;
    return 0;
}

int jobq__sqlite_replace(sqlite_store *store, jobq_push *item, int64_t queue, int64_t due_ms,
                         int64_t now_ms)
{
    key_holder holder = {0};
    int rc = find_holder(store, item, queue, &holder);

    if (rc < 0)
        return rc;
    return holder.held ? add_follower(store, item, queue, due_ms, now_ms)
                       : replace_waiting(store, item, &holder, due_ms, now_ms);
}
