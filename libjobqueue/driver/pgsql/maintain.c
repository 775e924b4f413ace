/* SPDX-License-Identifier: MIT
 *
 * Maintenance in bounded steps: delayed jobs whose time has come, what expired workers held, kept
 * results whose time is over. One statement; it writes only when something is due.
 */
#include "driver/pgsql/pgsql.h"
#include "util/error.h"

#define MAINTAIN "SELECT now_ms, handled, next_due, us FROM @.maintain($1, $2, $3, $4, $5, $6)"

static int maintain(pgsql_store *store, jobq_maintenance *m)
{
    int64_t floor = jobq__pgsql_due_floor(store);
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_int(&p, (int64_t)m->limit);
    jobq__pgsql_int(&p, m->loss_cap);
    jobq__pgsql_bool(&p, m->take_back);
    jobq__pgsql_bytes(&p, m->lost_head);
    jobq__pgsql_bytes(&p, m->lost_tail);
    jobq__pgsql_int(&p, floor);
    rc = jobq__pgsql_run(store, ST_MAINTAIN, MAINTAIN, &p, false, &res);
    if (rc < 0)
        return rc;
    m->now_ms = jobq__pgsql_get(res, 0, 0);
    m->handled = (size_t)jobq__pgsql_get(res, 0, 1);
    m->next_due_ms = jobq__pgsql_get(res, 0, 2);
    m->more = m->handled >= m->limit;
    jobq__pgsql_due_passed(store, floor, jobq__pgsql_get(res, 0, 3), !m->more, m->now_ms);
    PQclear(res);
    return 0;
}

int jobq__pgsql_maintain(void *handle, jobq_maintenance *m)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, maintain(store, m));
}
