/* SPDX-License-Identifier: MIT
 *
 * What people ask of workers: pauses, the generation, cancelled jobs; and clearing a queue (rules
 * L1 to L3). Each is one statement.
 */
#include "driver/pgsql/pgsql.h"
#include "util/error.h"

#define CONTROL "SELECT now_ms, control, generation, queues, untils FROM @.steer($1, $2, $3)"
#define CANCEL "SELECT @.cancel($1, $2, $3, $4, $5, $6, $7)"
#define CLEAR "SELECT @.clear($1, $2)"

/* ---- pauses and the generation --------------------------------------------------------------- */

static int read_pauses(const PGresult *res, jobq_control *c)
{
    pgsql_array queues = jobq__pgsql_array_of(res, 0, 3), untils = jobq__pgsql_array_of(res, 0, 4);
    jobq_pause *first = NULL, **link = &first;
    jobq_slice queue;

    while (jobq__pgsql_array_next(&queues, &queue)) {
        jobq_pause *pause = jobq_batch_alloc(c->out, sizeof(*pause));

        if (!pause)
            return jobq__error_nomem();
        pause->until_ms = jobq__pgsql_array_int(&untils);
        if (queue.n > 0)
            pause->queue = jobq_batch_copy(c->out, queue.p, queue.n);
        if (queue.n > 0 && !pause->queue.p)
            return jobq__error_nomem();
        *link = pause;
        link = &pause->next;
    }
    c->pauses = first;
    return 0;
}

static int control(pgsql_store *store, jobq_control *c)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_int(&p, c->what);
    jobq__pgsql_text(&p, c->queue.p ? c->queue : jobq__slice("", 0));
    jobq__pgsql_int(&p, c->ttl_ms);
    rc = jobq__pgsql_run(store, ST_CONTROL, CONTROL, &p, c->what != JOBQ_CONTROL_READ, &res);
    if (rc < 0)
        return rc;
    c->now_ms = jobq__pgsql_get(res, 0, 0);
    c->control = jobq__pgsql_get(res, 0, 1);
    c->generation = jobq__pgsql_get(res, 0, 2);
    rc = read_pauses(res, c);
    PQclear(res);
    return rc;
}

int jobq__pgsql_control(void *handle, jobq_control *c)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, control(store, c));
}

/* ---- cancel ---------------------------------------------------------------------------------- */

static int cancel(pgsql_store *store, jobq_cancelling *c)
{
    static const int answers[] = {0, JOBQ_ENOTFOUND, JOBQ_EEXISTS};
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, c->id);
    jobq__pgsql_int(&p, c->hard ? JOBQ_CANCEL_HARD : JOBQ_CANCEL_SOFT);
    jobq__pgsql_int(&p, c->reason);
    jobq__pgsql_bytes(&p, c->history);
    jobq__pgsql_put_follow(&p, c->follow);
    jobq__pgsql_int(&p, c->keep_ms);
    rc = jobq__pgsql_run(store, ST_CANCEL, CANCEL, &p, true, &res);
    if (rc < 0)
        return rc;
    c->result = answers[jobq__pgsql_get(res, 0, 0) % 3];
    PQclear(res);
    return 0;
}

int jobq__pgsql_cancel(void *handle, jobq_cancelling *c)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, cancel(store, c));
}

/* ---- clear ----------------------------------------------------------------------------------- */

static int clear(pgsql_store *store, jobq_clearing *c)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, c->queue);
    jobq__pgsql_int(&p, (int64_t)c->limit);
    rc = jobq__pgsql_run(store, ST_CLEAR, CLEAR, &p, true, &res);
    if (rc < 0)
        return rc;
    c->cleared = (size_t)jobq__pgsql_get(res, 0, 0);
    c->more = c->cleared >= c->limit;
    PQclear(res);
    return 0;
}

int jobq__pgsql_clear(void *handle, jobq_clearing *c)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, clear(store, c));
}
