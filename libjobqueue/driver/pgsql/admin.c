/* SPDX-License-Identifier: MIT
 *
 * Counts, names of queues, the server's clock, and mending dead jobs.
 */
#include "driver/pgsql/pgsql.h"
#include "util/error.h"

#define OLDEST_IN_RANK                                                              \
    "(SELECT y.available_at FROM @.ready y WHERE y.queue = $1 AND y.rank = r.rank " \
    "ORDER BY y.available_at, y.seq LIMIT 1)"
#define OLDEST                                                                               \
    "(SELECT min(o.at) FROM ("                                                               \
    "SELECT " OLDEST_IN_RANK " AS at FROM generate_series(0, 9) r(rank) "                    \
    "UNION ALL SELECT min(y.available_at) FROM @.taken y WHERE y.queue = $1 "                \
    "UNION ALL SELECT min(y.due) FROM @.delayed y WHERE y.queue = $1 AND y.due <= t.now_ms " \
    "UNION ALL SELECT min(j.available_at) FROM @.worker w "                                  \
    "JOIN @.held h ON h.worker = w.key AND h.queue = $1 JOIN @.job j ON j.seq = h.seq "      \
    "WHERE w.alive_until <= t.now_ms) o)"
#define COUNTS                                                                        \
    "SELECT t.now_ms, "                                                               \
    "(SELECT count(*) FROM @.ready y WHERE y.queue = $1) + "                          \
    "(SELECT count(*) FROM @.taken y WHERE y.queue = $1) + "                          \
    "(SELECT count(*) FROM @.delayed y WHERE y.queue = $1 AND y.due <= t.now_ms) + "  \
    "(SELECT count(*) FROM @.held h JOIN @.worker w ON w.key = h.worker "             \
    "WHERE h.queue = $1 AND w.alive_until <= t.now_ms), "                             \
    "(SELECT count(*) FROM @.delayed y WHERE y.queue = $1 AND y.due > t.now_ms), "    \
    "(SELECT count(*) FROM @.held h JOIN @.worker w ON w.key = h.worker "             \
    "WHERE h.queue = $1 AND w.alive_until > t.now_ms), "                              \
    "(SELECT count(*) FROM @.job j WHERE j.state = 4 AND j.queue = $1), " OLDEST ", " \
    "(SELECT c.value FROM @.capacity c WHERE c.queue = $1) "                          \
    "FROM (SELECT @.now_ms() AS now_ms OFFSET 0) t"
#define QUEUES "SELECT DISTINCT q.name FROM @.queue q ORDER BY q.name"
#define MEND "SELECT result FROM @.mend($1, $2, $3)"
#define NOW "SELECT @.now_ms()"

/* ---- counts ---------------------------------------------------------------------------------- */

static int counts(pgsql_store *store, jobq_slice queue, jobq_counts *counts_out)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, queue);
    rc = jobq__pgsql_run(store, ST_COUNTS, COUNTS, &p, false, &res);
    if (rc < 0)
        return rc;
    *counts_out = (jobq_counts){.now_ms = jobq__pgsql_get(res, 0, 0),
                                .ready = jobq__pgsql_get(res, 0, 1),
                                .delayed = jobq__pgsql_get(res, 0, 2),
                                .reserved = jobq__pgsql_get(res, 0, 3),
                                .dead = jobq__pgsql_get(res, 0, 4),
                                .oldest_ready_at_ms = jobq__pgsql_get(res, 0, 5),
                                .capacity = jobq__pgsql_get(res, 0, 6)};
    PQclear(res);
    return 0;
}

int jobq__pgsql_counts(void *handle, jobq_slice queue, jobq_counts *counts_out)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, counts(store, queue, counts_out));
}

static int queues(pgsql_store *store, jobq_batch *out)
{
    PGresult *res;
    int rc = jobq__pgsql_run(store, ST_QUEUES, QUEUES, NULL, false, &res);

    if (rc < 0)
        return rc;
    for (int row = 0; row < PQntuples(res) && rc == 0; row++) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !jobq__pgsql_copy(res, row, 0, out, &r->queue))
            rc = jobq__error_nomem();
    }
    PQclear(res);
    return rc;
}

int jobq__pgsql_queues(void *handle, jobq_batch *out)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, queues(store, out));
}

static int now(pgsql_store *store, int64_t *now_ms_out)
{
    PGresult *res;
    int rc = jobq__pgsql_run(store, ST_NOW, NOW, NULL, false, &res);

    if (rc < 0)
        return rc;
    *now_ms_out = jobq__pgsql_get(res, 0, 0);
    PQclear(res);
    return 0;
}

int jobq__pgsql_now(void *handle, int64_t *now_ms_out)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, now(store, now_ms_out));
}

/* ---- mending --------------------------------------------------------------------------------- */

static int mend(pgsql_store *store, jobq_mending *m)
{
    static const int answers[] = {0, JOBQ_ENOTFOUND, JOBQ_EEXISTS, JOBQ_ELIMIT};
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_array(&p, PG_TEXT, m->count);
    for (size_t i = 0; i < m->count; i++)
        jobq__pgsql_put_slice(&p, m->ids[i]);
    jobq__pgsql_end(&p);
    jobq__pgsql_bool(&p, m->what == JOBQ_MEND_FORGET);
    jobq__pgsql_bool(&p, m->dry_run);
    rc = jobq__pgsql_run(store, ST_MEND, MEND, &p, !m->dry_run, &res);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < m->count && i < (size_t)PQntuples(res); i++)
        m->results[i] = answers[jobq__pgsql_get(res, (int)i, 0) % 4];
    PQclear(res);
    return 0;
}

int jobq__pgsql_mend(void *handle, jobq_mending *m)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, mend(store, m));
}
