/* SPDX-License-Identifier: MIT
 *
 * Showing jobs without taking them: one by id, and lists in pages. A due delayed job and one whose
 * lease ran out are seen as ready whether maintenance has been by or not (rule N1).
 */
#include <string.h>

#include "driver/cursor.h"
#include "driver/pgsql/pgsql.h"
#include "util/error.h"

/* Columns of a shown job, in the order read_shown reads them. */
#define SHOWN(few)                                                                            \
    "j.queue, j.state, j.rank, j.available_at, j.id, j.name, j.version, j.unique_key, "       \
    "coalesce(j.deliveries, 0) + (h.key IS NOT NULL)::int, coalesce(j.failures, 0), "         \
    "coalesce(j.crashes, 0), coalesce(j.releases, 0), coalesce(j.losses, 0), "                \
    "coalesce(j.exceptions, 0), coalesce(j.parks, 0), coalesce(j.parked_since, 0), "          \
    "coalesce(j.fence, 0) + (h.key IS NOT NULL)::int, j.enqueued_at, "                        \
    "coalesce(j.base_at, j.enqueued_at), j.died_at, j.reason, j.taken, h.id, h.alive_until, " \
    "t.now_ms, d.due, j.cancel, "                                                             \
    "CASE WHEN " few " THEN NULL ELSE j.header END, "                                         \
    "CASE WHEN " few " THEN NULL ELSE j.body END, "                                           \
    "CASE WHEN " few " THEN NULL ELSE x.error END, "                                          \
    "CASE WHEN " few " THEN NULL ELSE x.history END, "                                        \
    "CASE WHEN " few " THEN NULL ELSE x.outcome END, j.keep_until"
#define TIME "(SELECT @.now_ms() AS now_ms OFFSET 0) t "
/* Who holds it is asked worker by worker, by the key of `held`. */
#define JOINED                                                              \
    "LEFT JOIN @.trace x ON x.seq = j.seq AND j.traced "                    \
    "LEFT JOIN @.delayed d ON d.seq = j.seq AND d.due = j.available_at + "  \
    "CASE WHEN j.follows > 0 THEN " PG_FAR_TEXT " ELSE 0 END "              \
    "LEFT JOIN LATERAL (SELECT w.key, w.id, w.alive_until FROM @.worker w " \
    "JOIN @.held y ON y.worker = w.key AND y.seq = j.seq "                  \
    "LIMIT 1) h ON j.state = 0 "
#define FIND                                                           \
    "SELECT " SHOWN("false") " "                                       \
                             "FROM " TIME "CROSS JOIN @.job j " JOINED \
                             "WHERE j.id = $1 AND ($2 IS NULL OR j.queue = $2)"
/* A page: l gives the places p0, p1, p2 behind the cursor ($3, $4, $5) and the job s; one more
 * than the limit. The parameters of all lists: $1 queue, $2 limit, $6 few columns. */
#define PAGE(places)                                          \
    "WITH t AS MATERIALIZED (SELECT @.now_ms() AS now_ms) "   \
    "SELECT " SHOWN("$6") ", l.p0, l.p1, l.p2 "               \
                          "FROM t CROSS JOIN (" places ") l " \
                          "JOIN @.job j ON j.seq = l.s " JOINED "ORDER BY l.p0, l.p1, l.p2"
#define BEHIND "> ($3, $4, $5) "
#define LINE_PLACES(table, at, more)                                       \
    "(SELECT y.rank::bigint AS p0, " at " AS p1, y.seq AS p2, y.seq AS s " \
    "FROM @." table " y "                                                  \
    "WHERE y.queue = $1 AND (y.rank, " at ", y.seq) " BEHIND more " "      \
    "ORDER BY y.rank, " at ", y.seq LIMIT $2)"
#define READY_LINE LINE_PLACES("ready", "y.available_at", "")
#define TAKEN_LINE LINE_PLACES("taken", "y.available_at", "")
#define DUE_LINE LINE_PLACES("delayed", "y.due", "AND y.due <= (SELECT now_ms FROM t)")
#define EXPIRED_PLACES                                                    \
    "(SELECT j.rank::bigint, j.available_at, j.seq, j.seq "               \
    "FROM @.worker w "                                                    \
    "JOIN @.held y ON y.worker = w.key "                                  \
    "JOIN @.job j ON j.seq = y.seq "                                      \
    "WHERE y.queue = $1 AND w.alive_until <= (SELECT now_ms FROM t) AND " \
    "(j.rank, j.available_at, j.seq) " BEHIND "ORDER BY 1, 2, 3 LIMIT $2)"
#define READY_PLACES                                                                        \
    READY_LINE " UNION ALL " TAKEN_LINE " UNION ALL " DUE_LINE " UNION ALL " EXPIRED_PLACES \
               " ORDER BY 1, 2, 3 LIMIT $2"
#define DELAYED_PLACES                                                       \
    "SELECT 0::bigint AS p0, y.due AS p1, y.seq AS p2, y.seq AS s "          \
    "FROM @.delayed y "                                                      \
    "WHERE y.queue = $1 AND y.due > (SELECT now_ms FROM t) AND $3 = $3 AND " \
    "(y.due, y.seq) > ($4, $5) "                                             \
    "ORDER BY y.due, y.seq LIMIT $2"
#define RESERVED_PLACES                                                 \
    "SELECT 0::bigint AS p0, 0::bigint AS p1, y.seq AS p2, y.seq AS s " \
    "FROM @.worker w "                                                  \
    "JOIN @.held y ON y.worker = w.key "                                \
    "WHERE y.queue = $1 AND w.alive_until > (SELECT now_ms FROM t) "    \
    "AND $3 + $4 IS NOT NULL AND y.seq > $5 "                           \
    "ORDER BY y.seq LIMIT $2"
#define DONE_PLACES                                                                            \
    "SELECT 0::bigint AS p0, 0::bigint AS p1, y.seq AS p2, y.seq AS s "                        \
    "FROM @.job y "                                                                            \
    "WHERE y.state = 3 AND y.keep_until IS NOT NULL AND y.queue = $1 AND $3 + $4 IS NOT NULL " \
    "AND y.seq > $5 "                                                                          \
    "ORDER BY y.seq LIMIT $2"
#define DEAD_PLACES                                                       \
    "SELECT 0::bigint AS p0, -y.died_at AS p1, -y.seq AS p2, y.seq AS s " \
    "FROM @.job y "                                                       \
    "WHERE y.state = 4 AND $3 = $3 AND (y.died_at, y.seq) < (-$4, -$5) "  \
    "AND ($1 IS NULL OR y.queue = $1) AND ($7 IS NULL OR y.name = $7) "   \
    "AND ($8 = 0 OR y.reason = $8) "                                      \
    "AND ($9 <= 0 OR y.died_at <= (SELECT now_ms FROM t) - $9) "          \
    "ORDER BY y.died_at DESC, y.seq DESC LIMIT $2"

enum {
    S_QUEUE,
    S_STATE,
    S_RANK,
    S_AVAILABLE,
    S_ID,
    S_NAME,
    S_VERSION,
    S_UNIQUE,
    S_DELIVERIES,
    S_FENCE = S_DELIVERIES + 8,
    S_ENQUEUED,
    S_BASE,
    S_DIED,
    S_REASON,
    S_TAKEN,
    S_WORKER,
    S_ALIVE_UNTIL,
    S_NOW,
    S_DUE,
    S_CANCEL,
    S_HEADER,
    S_BODY,
    S_ERROR,
    S_HISTORY,
    S_OUTCOME,
    S_KEEP_UNTIL,
    S_PLACE
};

/* ---- showing --------------------------------------------------------------------------------- */

static void read_numbers(const PGresult *res, int row, jobq_record *r)
{
    int64_t *const counters[] = {&r->counters.deliveries, &r->counters.failures,
                                 &r->counters.crashes,    &r->counters.releases,
                                 &r->counters.losses,     &r->counters.exceptions,
                                 &r->counters.parks,      &r->counters.parked_since_ms};

    for (int i = 0; i < 8; i++)
        *counters[i] = jobq__pgsql_get(res, row, S_DELIVERIES + i);
    r->priority = (uint8_t)(JOBQ__TOP_PRIORITY - jobq__pgsql_get(res, row, S_RANK));
    r->available_at_ms = jobq__pgsql_get(res, row, S_AVAILABLE);
    r->version = (int32_t)jobq__pgsql_get(res, row, S_VERSION);
    r->fence = jobq__pgsql_get(res, row, S_FENCE);
    r->enqueued_at_ms = jobq__pgsql_get(res, row, S_ENQUEUED);
    r->base_at_ms = jobq__pgsql_get(res, row, S_BASE);
    r->died_at_ms = jobq__pgsql_get(res, row, S_DIED);
    r->reason = (uint8_t)jobq__pgsql_get(res, row, S_REASON);
    r->taken_back = jobq__pgsql_get(res, row, S_TAKEN);
    r->cancel = (uint8_t)jobq__pgsql_get(res, row, S_CANCEL);
    r->keep_until_ms = jobq__pgsql_get(res, row, S_KEEP_UNTIL);
}

/* The state people see; sets who holds it. False: no memory. */
static bool read_state(const PGresult *res, int row, jobq_batch *out, jobq_record *r)
{
    int64_t now_ms = jobq__pgsql_get(res, row, S_NOW),
            until_ms = jobq__pgsql_get(res, row, S_ALIVE_UNTIL);

    r->state = (uint8_t)jobq__pgsql_get(res, row, S_STATE);
    if (r->state != 0)
        return true;
    if (PQgetisnull(res, row, S_WORKER)) {
        r->state = jobq__pgsql_get(res, row, S_DUE) > now_ms ? PG_DELAYED : PG_READY;
        return true;
    }
    if (until_ms <= now_ms)
        return true; /* its lease ran out: ready */
    r->state = PG_RESERVED;
    r->reserved_until_ms = until_ms;
    return jobq__pgsql_copy(res, row, S_WORKER, out, &r->reserved_by);
}

static int read_history(const PGresult *res, int row, jobq_batch *out, jobq_record *r)
{
    pgsql_array entries = jobq__pgsql_array_of(res, row, S_HISTORY);
    jobq_slice entry;

    if (entries.count == 0)
        return 0;
    r->history = jobq_batch_alloc(out, entries.count * sizeof(jobq_slice));
    if (!r->history)
        return jobq__error_nomem();
    while (jobq__pgsql_array_next(&entries, &entry)) {
        r->history[r->history_count] = jobq_batch_copy(out, entry.p, entry.n);
        if (!r->history[r->history_count++].p)
            return jobq__error_nomem();
    }
    return 0;
}

static int read_shown(const PGresult *res, int row, jobq_batch *out)
{
    jobq_record *r = jobq_batch_add(out);

    if (!r || !jobq__pgsql_copy(res, row, S_QUEUE, out, &r->queue) ||
        !jobq__pgsql_copy(res, row, S_ID, out, &r->id) ||
        !jobq__pgsql_copy(res, row, S_NAME, out, &r->name) ||
        !jobq__pgsql_copy(res, row, S_UNIQUE, out, &r->unique) ||
        !jobq__pgsql_copy(res, row, S_HEADER, out, &r->header) ||
        !jobq__pgsql_copy(res, row, S_BODY, out, &r->body) ||
        !jobq__pgsql_copy(res, row, S_ERROR, out, &r->error) ||
        !jobq__pgsql_copy(res, row, S_OUTCOME, out, &r->outcome) || !read_state(res, row, out, r))
        return jobq__error_nomem();
    read_numbers(res, row, r);
    return read_history(res, row, out, r);
}

static int find(pgsql_store *store, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, id);
    jobq__pgsql_text(&p, queue);
    rc = jobq__pgsql_run(store, ST_FIND, FIND, &p, false, &res);
    if (rc < 0)
        return rc;
    if (PQntuples(res) == 0)
        rc = jobq__refuse_id(id);
    else
        rc = read_shown(res, 0, out);
    PQclear(res);
    return rc;
}

int jobq__pgsql_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, find(store, queue, id, out));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const struct {
    pgsql_statement which;
    const char *sql;
} lists[] = {
    [PG_READY] = {ST_LIST_READY, PAGE(READY_PLACES)},
    [PG_DELAYED] = {ST_LIST_DELAYED, PAGE(DELAYED_PLACES)},
    [PG_RESERVED] = {ST_LIST_RESERVED, PAGE(RESERVED_PLACES)},
    [PG_DONE] = {ST_LIST_DONE, PAGE(DONE_PLACES)},
    [PG_DEAD] = {ST_LIST_DEAD, PAGE(DEAD_PLACES)},
};

static void put_list(pgsql_params *p, const jobq_listing *l, const jobq__cursor *cursor)
{
    jobq__pgsql_text(p, l->queue);
    jobq__pgsql_int(p, (int64_t)l->limit + 1);
    for (int i = 0; i < 3; i++)
        jobq__pgsql_int(p, cursor->set ? cursor->part[i] : INT64_C(-4000000000000000000));
    jobq__pgsql_bool(p, l->keys_only);
    if (l->state != PG_DEAD)
        return;
    jobq__pgsql_text(p, l->name);
    jobq__pgsql_int(p, l->reason);
    jobq__pgsql_int(p, l->older_than_ms);
}

/* A row beyond the limit says that there is one more page. */
static int read_page(const PGresult *res, jobq_listing *l)
{
    size_t rows = (size_t)PQntuples(res), shown = rows < l->limit ? rows : l->limit;
    int64_t place[3];
    int rc = 0;

    for (size_t row = 0; row < shown && rc == 0; row++)
        rc = read_shown(res, (int)row, l->out);
    if (rc < 0 || shown == 0)
        return rc;
    for (int i = 0; i < 3; i++)
        place[i] = jobq__pgsql_get(res, (int)shown - 1, S_PLACE + i);
    rc = jobq__cursor_write(place, l->out, &l->last);
    if (rows > shown)
        l->next = l->last;
    return rc;
}

static int list(pgsql_store *store, jobq_listing *l)
{
    pgsql_params p = {0};
    jobq__cursor cursor;
    PGresult *res;
    int rc = jobq__cursor_read(l->after, &cursor);

    l->next = l->last = jobq__slice(NULL, 0);
    if (rc < 0)
        return rc;
    put_list(&p, l, &cursor);
    rc = jobq__pgsql_run(store, lists[l->state].which, lists[l->state].sql, &p, false, &res);
    if (rc < 0)
        return rc;
    rc = read_page(res, l);
    PQclear(res);
    return rc;
}

int jobq__pgsql_list(void *handle, jobq_listing *l)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, list(store, l));
}
