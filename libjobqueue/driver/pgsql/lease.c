/* SPDX-License-Identifier: MIT
 *
 * Workers' records: renewing, leaving, what they hold, who lives. Leases are measured with the
 * server's clock.
 */
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/clock.h"
#include "util/error.h"

#define RENEW \
    "SELECT now_ms, held, was_taken, control FROM @.renew($1, $2, $3, $4, $5, $6, $7, $8, $9)"
#define LEAVE "SELECT @.leave($1, $2)"
#define HELD                                                                    \
    "SELECT j.id, h.queue, h.seq, coalesce(j.fence, 0) + 1, h.nonce, j.cancel " \
    "FROM @.worker w "                                                          \
    "JOIN @.held h ON h.worker = w.key "                                        \
    "JOIN @.job j ON j.seq = h.seq "                                            \
    "WHERE w.id = $1 "                                                          \
    "ORDER BY h.seq"
#define WORKERS                                                                  \
    "SELECT w.id, w.host, w.queues, w.names, w.pid, w.processes, w.started_at, " \
    "w.alive_until, w.lease, coalesce(cardinality(w.running_seq), 0), "          \
    "(SELECT count(*) FROM @.held h WHERE h.worker = w.key) "                    \
    "FROM @.worker w, (SELECT @.now_ms() AS now_ms OFFSET 0) t "                 \
    "WHERE w.alive_until > t.now_ms "                                            \
    "ORDER BY w.key"

static void put_running(pgsql_params *p, const jobq_renewal *r, int word)
{
    jobq__pgsql_array(p, PG_INT8, r->running_count);
    for (size_t i = 0; i < r->running_count; i++)
        jobq__pgsql_put_int8(p, (int64_t)(word ? r->running[i].word[2] : r->running[i].word[0]));
    jobq__pgsql_end(p);
}

static int renew(pgsql_store *store, jobq_renewal *r)
{
    pgsql_params p = {0};
    PGresult *res;
    bool taken;
    int rc;

    jobq__pgsql_text(&p, r->worker);
    jobq__pgsql_int(&p, r->lease_ms);
    put_running(&p, r, 0);
    put_running(&p, r, 2);
    jobq__pgsql_text(&p, r->host);
    jobq__pgsql_int(&p, r->pid);
    jobq__pgsql_text(&p, r->queues);
    jobq__pgsql_text(&p, r->names);
    jobq__pgsql_int(&p, r->processes);
    rc = jobq__pgsql_run(store, ST_RENEW, RENEW, &p, false, &res);
    if (rc < 0)
        return rc;
    r->now_ms = jobq__pgsql_get(res, 0, 0);
    r->held = jobq__pgsql_get(res, 0, 1);
    taken = jobq__pgsql_get(res, 0, 2);
    r->control = jobq__pgsql_get(res, 0, 3);
    PQclear(res);
    if (taken)
        return jobq__refuse_lapsed("postgresql", r->worker);
    return 0;
}

int jobq__pgsql_renew(void *handle, jobq_renewal *r)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, renew(store, r));
}

static int leave(pgsql_store *store, jobq_slice worker)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, worker);
    jobq__pgsql_int(&p, store->idle_key);
    rc = jobq__pgsql_run(store, ST_LEAVE, LEAVE, &p, false, &res);
    if (rc < 0)
        return rc;
    PQclear(res);
    store->idle_until_us = 0;
    return 0;
}

int jobq__pgsql_leave_worker(void *handle, jobq_slice worker)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, leave(store, worker));
}

static int read_held(const PGresult *res, jobq_batch *out)
{
    for (int row = 0; row < PQntuples(res); row++) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !jobq__pgsql_copy(res, row, 0, out, &r->id) ||
            !jobq__pgsql_copy(res, row, 1, out, &r->queue))
            return jobq__error_nomem();
        r->fence = jobq__pgsql_get(res, row, 3);
        r->state = PG_RESERVED;
        r->cancel = (uint8_t)jobq__pgsql_get(res, row, 5);
        r->token.word[0] = (uint64_t)jobq__pgsql_get(res, row, 2);
        r->token.word[1] = (uint64_t)r->fence;
        r->token.word[2] = (uint64_t)jobq__pgsql_get(res, row, 4);
    }
    return 0;
}

int jobq__pgsql_held(void *handle, jobq_slice worker, jobq_batch *out)
{
    pgsql_store *store = handle;
    pgsql_params p = {0};
    PGresult *res;
    int rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    jobq__pgsql_text(&p, worker);
    rc = jobq__pgsql_run(store, ST_HELD, HELD, &p, false, &res);
    if (rc == 0) {
        rc = read_held(res, out);
        PQclear(res);
    }
    return jobq__pgsql_leave(store, rc);
}

static int read_workers(const PGresult *res, jobq_batch *out)
{
    for (int row = 0; row < PQntuples(res); row++) {
        jobq_worker_record *r = jobq_batch_add_worker(out);

        if (!r || !jobq__pgsql_copy(res, row, 0, out, &r->id) ||
            !jobq__pgsql_copy(res, row, 1, out, &r->host) ||
            !jobq__pgsql_copy(res, row, 2, out, &r->queues) ||
            !jobq__pgsql_copy(res, row, 3, out, &r->names))
            return jobq__error_nomem();
        r->pid = jobq__pgsql_get(res, row, 4);
        r->processes = jobq__pgsql_get(res, row, 5);
        r->started_at_ms = jobq__pgsql_get(res, row, 6);
        r->alive_until_ms = jobq__pgsql_get(res, row, 7);
        r->lease_ms = jobq__pgsql_get(res, row, 8);
        r->running = jobq__pgsql_get(res, row, 9);
        r->held = jobq__pgsql_get(res, row, 10);
    }
    return 0;
}

int jobq__pgsql_workers(void *handle, jobq_batch *out)
{
    pgsql_store *store = handle;
    PGresult *res;
    int rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    rc = jobq__pgsql_run(store, ST_WORKERS, WORKERS, NULL, false, &res);
    if (rc == 0) {
        rc = read_workers(res, out);
        PQclear(res);
    }
    return jobq__pgsql_leave(store, rc);
}
