/* SPDX-License-Identifier: MIT
 *
 * Settling a batch (settle.c) and reserving the next one in a single transaction. A reservation
 * reads the heads of two lines (ready, taken back) in order, and then moves what it took with one
 * range statement per line: what is taken is always the front of the line.
 */
#include <string.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

#define LINE(table)                                                                  \
    "SELECT l.rank, l.available_at, l.seq, j.id, j.name, j.version, j.unique_key, "  \
    "j.deliveries, j.failures, j.crashes, j.releases, j.losses, j.exceptions, "      \
    "j.parks, j.parked_since, j.fence, j.enqueued_at, j.base_at, j.header, j.body, " \
    "j.cancel "                                                                      \
    "FROM " table " l "                                                              \
    "CROSS JOIN jobqueue_job j ON j.seq=l.seq "                                      \
    "WHERE l.queue=?1 "                                                              \
    "ORDER BY l.rank, l.available_at, l.seq LIMIT ?2"
#define HOLD(table)                                         \
    "INSERT INTO jobqueue_held(seq, worker, queue, nonce) " \
    "SELECT seq, ?5, queue, ?6 FROM " table " "             \
    "WHERE queue=?1 AND (rank, available_at, seq) <= (?2, ?3, ?4)"
#define CUT(table)           \
    "DELETE FROM " table " " \
    "WHERE queue=?1 AND (rank, available_at, seq) <= (?2, ?3, ?4)"

#define NEXT_DUE                                                       \
    "SELECT (SELECT due FROM jobqueue_delayed ORDER BY due LIMIT 1), " \
    "(SELECT keep_until FROM jobqueue_job WHERE keep_until IS NOT NULL ORDER BY keep_until LIMIT 1)"
#define NEXT_EXPIRY                                              \
    "SELECT min(CASE WHEN boot=?1 THEN alive_until ELSE 0 END) " \
    "FROM jobqueue_worker "                                      \
    "WHERE key<>?2 AND "                                         \
    "(taken=0 OR EXISTS(SELECT 1 FROM jobqueue_held h WHERE h.worker=key))"

/* ---- reserve --------------------------------------------------------------------------------- */

/* One line's front while a reservation reads it. */
typedef struct {
    sqlite3_stmt *stmt;
    bool row;
    int64_t last[3]; /* rank, available_at, seq of the last one taken */
    size_t taken;
} line;

typedef struct {
    size_t count, bytes;
    size_t taken_back;
    int64_t nonce;
    sqlite_worker *worker; /* its record is made sure of when the first job is taken */
} reservation;

static int next_row(sqlite_store *store, line *l)
{
    int rc = jobq__sqlite_row(store, l->stmt);

    l->row = rc > 0;
    return rc < 0 ? rc : 0;
}

static int open_line(sqlite_store *store, line *l, sqlite_statement which, const char *sql,
                     int64_t queue, size_t limit)
{
    memset(l, 0, sizeof(*l));
    l->stmt = jobq__sqlite_use(store, which, sql);
    if (!l->stmt)
        return jobq__error_code();
    if (limit == 0)
        return 0;
    sqlite3_bind_int64(l->stmt, 1, queue);
    sqlite3_bind_int64(l->stmt, 2, (int64_t)limit);
    return next_row(store, l);
}

static bool stands_before(const line *a, const line *b)
{
    for (int i = 0; i < 3; i++) {
        int64_t left = sqlite3_column_int64(a->stmt, i), right = sqlite3_column_int64(b->stmt, i);

        if (left != right)
            return left < right;
    }
    return true;
}

static bool read_job(sqlite3_stmt *stmt, jobq_slice queue, uint64_t nonce, bool taken_back,
                     jobq_batch *out, size_t *bytes)
{
    jobq_record *r = jobq_batch_add(out);

    if (!r)
        return false;
    r->queue = queue;
    r->priority = (uint8_t)(JOBQ__TOP_PRIORITY - sqlite3_column_int(stmt, 0));
    r->available_at_ms = sqlite3_column_int64(stmt, 1);
    r->version = sqlite3_column_int(stmt, 5);
    r->state = SQL_RESERVED;
    r->taken_back = taken_back;
    r->cancel = (uint8_t)sqlite3_column_int(stmt, 20);
    jobq__sqlite_read_counters(stmt, 7, true, r);
    r->token.word[0] = (uint64_t)sqlite3_column_int64(stmt, 2);
    r->token.word[1] = (uint64_t)r->fence;
    r->token.word[2] = nonce;
    *bytes += (size_t)sqlite3_column_bytes(stmt, 19);
    return jobq__sqlite_copy(stmt, 3, out, &r->id) && jobq__sqlite_copy(stmt, 4, out, &r->name) &&
           jobq__sqlite_copy(stmt, 6, out, &r->unique) &&
           jobq__sqlite_copy(stmt, 18, out, &r->header) &&
           jobq__sqlite_copy(stmt, 19, out, &r->body);
}

static int take(sqlite_store *store, line *l, bool taken_back, jobq_slice queue, jobq_batch *out,
                reservation *r)
{
    if (!read_job(l->stmt, queue, (uint64_t)r->nonce, taken_back, out, &r->bytes))
        return jobq__error_nomem();
    for (int i = 0; i < 3; i++)
        l->last[i] = sqlite3_column_int64(l->stmt, i);
    l->taken++;
    r->count++;
    return next_row(store, l);
}

/* The two lines of a queue merged by place (rule C1). */
static int take_in_order(sqlite_store *store, const jobq_exchange *x, jobq_slice queue, line *ready,
                         line *taken, reservation *r)
{
    int rc = 0;

    while (rc == 0 && (ready->row || taken->row) && r->count < x->want &&
           (r->count == 0 || x->want_bytes == 0 || r->bytes < x->want_bytes)) {
        bool back = taken->row && (!ready->row || stands_before(taken, ready));

        rc = take(store, back ? taken : ready, back, queue, x->out, r);
    }
    return rc;
}

static int move_front(sqlite_store *store, const line *l, int64_t queue, const reservation *r,
                      sqlite3_stmt *hold, sqlite3_stmt *cut)
{
    sqlite3_stmt *const both[] = {hold, cut};
    int rc = hold && cut ? 0 : jobq__error_code();

    for (int i = 0; i < 2 && rc == 0; i++) {
        sqlite3_bind_int64(both[i], 1, queue);
        for (int k = 0; k < 3; k++)
            sqlite3_bind_int64(both[i], k + 2, l->last[k]);
        if (i == 0) {
            sqlite3_bind_int64(hold, 5, r->worker->key);
            sqlite3_bind_int64(hold, 6, r->nonce);
        }
        rc = jobq__sqlite_run(store, both[i]);
    }
    return rc;
}

static int move_fronts(sqlite_store *store, const jobq_exchange *x, const line *ready,
                       const line *taken, int64_t queue, reservation *r)
{
    int rc = ready->taken + taken->taken
                 ? jobq__sqlite_keep_worker(store, x->worker, x->lease_ms, r->worker)
                 : 0;

    if (rc == 0 && ready->taken)
        rc = move_front(store, ready, queue, r,
                        jobq__sqlite_use(store, ST_HOLD_READY, HOLD("jobqueue_ready")),
                        jobq__sqlite_use(store, ST_CUT_READY, CUT("jobqueue_ready")));
    if (rc == 0 && taken->taken)
        rc = move_front(store, taken, queue, r,
                        jobq__sqlite_use(store, ST_HOLD_TAKEN, HOLD("jobqueue_taken")),
                        jobq__sqlite_use(store, ST_CUT_TAKEN, CUT("jobqueue_taken")));
    r->taken_back += taken->taken;
    return rc;
}

static int reserve_from(sqlite_store *store, const jobq_exchange *x, jobq_slice name,
                        reservation *r)
{
    size_t room = x->want - r->count;
    size_t back = x->want_taken_back > r->taken_back ? x->want_taken_back - r->taken_back : 0;
    line ready = {0}, taken = {0};
    jobq_slice queue;
    int64_t key;
    int rc = jobq__sqlite_queue_key(store, name, false, &key);

    if (rc < 0 || key == 0)
        return rc;
    queue = jobq_batch_copy(x->out, name.p, name.n);
    if (!queue.p)
        return jobq__error_nomem();
    rc = open_line(store, &taken, ST_RESERVE_TAKEN, LINE("jobqueue_taken"), key,
                   back < room ? back : room);
    if (rc == 0)
        rc = open_line(store, &ready, ST_RESERVE_READY, LINE("jobqueue_ready"), key, room);
    if (rc == 0)
        rc = take_in_order(store, x, queue, &ready, &taken, r);
    sqlite3_reset(ready.stmt);
    sqlite3_reset(taken.stmt);
    return rc ? rc : move_fronts(store, x, &ready, &taken, key, r);
}

static int reserve(sqlite_store *store, jobq_exchange *x, sqlite_worker *worker)
{
    reservation r = {.nonce = (int64_t)(jobq__rng_u64() >> 2), .worker = worker};
    int rc = 0;

    for (size_t i = 0; i < x->queue_count && rc == 0 && r.count < x->want; i++)
        if (r.count == 0 || x->want_bytes == 0 || r.bytes < x->want_bytes)
            rc = reserve_from(store, x, x->queues[i], &r);
    return rc;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static void earlier(int64_t *due, int64_t candidate)
{
    if (*due == 0 || candidate < *due)
        *due = candidate;
}

static int next_expiry(sqlite_store *store, int64_t but_worker, int64_t now_ms, int64_t *due)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_NEXT_EXPIRY, NEXT_EXPIRY);
    int rc;

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 2, but_worker);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0 && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        earlier(due, sqlite3_column_int64(stmt, 0) + now_ms - jobq__clock_boot_ms());
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

int jobq__sqlite_next_due(sqlite_store *store, bool with_workers, int64_t but_worker,
                          int64_t now_ms, int64_t *due_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_NEXT_DUE, NEXT_DUE);
    int64_t due = 0;
    int rc;

    if (!stmt)
        return jobq__error_code();
    rc = jobq__sqlite_row(store, stmt);
    for (int i = 0; i < 2 && rc > 0; i++)
        if (sqlite3_column_type(stmt, i) != SQLITE_NULL)
            earlier(&due, sqlite3_column_int64(stmt, i));
    sqlite3_reset(stmt);
    if (rc >= 0)
        rc = with_workers ? next_expiry(store, but_worker, now_ms, &due) : 0;
    if (rc == 0)
        *due_out = due;
    return rc;
}

static int run_exchange(sqlite_store *store, jobq_exchange *x, bool *ring)
{
    sqlite_worker worker;
    int rc = jobq__sqlite_worker(store, x->worker, &worker);

    for (size_t i = 0; i < x->settle_count && rc == 0; i++)
        rc = jobq__sqlite_settle(store, worker.key, &x->settle[i], x->now_ms, ring);
    if (rc == 0 && x->want > 0 && x->queue_count > 0)
        rc = reserve(store, x, &worker);
    if (rc == 0)
        rc = jobq__sqlite_next_due(store, true, worker.key, x->now_ms, &x->next_due_ms);
    return rc ? rc : jobq__sqlite_read_control(store, &x->control);
}

/* Nothing to settle and nothing ready: said without taking the write lock. */
static int look_first(sqlite_store *store, jobq_exchange *x)
{
    int64_t due;
    int rc = x->settle_count
                 ? 1
                 : jobq__sqlite_look(store, x->queues, x->queue_count, &due, &x->control);
    sqlite_worker worker;

    if (rc != 0)
        return rc;
    rc = jobq__sqlite_worker(store, x->worker, &worker);
    return rc ? rc : jobq__sqlite_next_due(store, true, worker.key, x->now_ms, &x->next_due_ms);
}

/* A failed call hands out nothing: what was read into the batch is taken off again. */
static int exchange(sqlite_store *store, jobq_exchange *x, bool *ring)
{
    jobq_record *last = x->out ? x->out->last : NULL;
    size_t count = x->out ? x->out->count : 0;
    int rc = look_first(store, x);

    if (rc <= 0)
        return rc;
    /* A reservation lost with the machine is a job that runs again, as it would anyway: no job
     * waits for the disk before it starts. A settlement must not be lost. */
    rc = x->settle_count ? jobq__sqlite_begin(store) : jobq__sqlite_begin_hurried(store, false);
    if (rc == 0)
        rc = jobq__sqlite_finish(store, run_exchange(store, x, ring));
    if (rc < 0 && x->out) {
        x->out->last = last;
        x->out->count = count;
        if (last)
            last->next = NULL;
        else
            x->out->first = NULL;
    }
    return rc;
}

int jobq__sqlite_exchange(void *handle, jobq_exchange *x)
{
    sqlite_store *store = handle;
    bool ring = false;
    int rc = jobq__sqlite_enter(store, false);

    x->settled = false;
    if (rc < 0)
        return rc;
    x->now_ms = jobq__clock_wall_ms();
    rc = exchange(store, x, &ring);
    x->settled = rc == 0;
    if (rc == 0 && ring)
        jobq__sqlite_ring(store);
    return jobq__sqlite_leave(store, rc);
}
