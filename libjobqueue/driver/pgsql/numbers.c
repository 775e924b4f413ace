/* SPDX-License-Identifier: MIT
 *
 * Capacities of queues, and what happened minute by minute.
 */
#include "driver/answers.h"
#include "driver/pgsql/pgsql.h"
#include "util/error.h"

#define CAPACITY "SELECT @.set_capacity($1, $2, $3)"
#define SHOW_CAPACITY "SELECT c.value FROM @.capacity c WHERE c.queue = $1"
#define BOOK "SELECT @.book($1, $2, $3)"
#define MINUTES                                                                  \
    "SELECT @.now_ms(), m.minute, m.n FROM (SELECT 1) one LEFT JOIN @.minute m " \
    "ON m.minute >= $2 AND m.queue = $1 ORDER BY m.minute"

enum { NUMBERS = JOBQ_MINUTE_COUNTS + JOBQ_MINUTE_BUCKETS };

/* ---- capacity (rule B4) ---------------------------------------------------------------------- */

static int capacity(pgsql_store *store, jobq_limit *l)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, l->queue);
    if (l->read) {
        rc = jobq__pgsql_run(store, ST_SHOW_CAPACITY, SHOW_CAPACITY, &p, false, &res);
    } else {
        jobq__pgsql_int(&p, l->value);
        jobq__pgsql_bool(&p, l->only_if_none);
        rc = jobq__pgsql_run(store, ST_CAPACITY, CAPACITY, &p, true, &res);
    }
    if (rc < 0)
        return rc;
    l->capacity = PQntuples(res) ? jobq__pgsql_get(res, 0, 0) : 0;
    PQclear(res);
    return 0;
}

int jobq__pgsql_capacity(void *handle, jobq_limit *l)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, capacity(store, l));
}

/* ---- minutes (rule N1) ----------------------------------------------------------------------- */

static int book(pgsql_store *store, const jobq_minute *minutes, size_t n)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_array(&p, PG_INT8, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_int8(&p, minutes[i].minute);
    jobq__pgsql_end(&p);
    jobq__pgsql_array(&p, PG_TEXT, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_slice(&p, minutes[i].queue);
    jobq__pgsql_end(&p);
    jobq__pgsql_array(&p, PG_INT8, n * NUMBERS);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < NUMBERS; k++)
            jobq__pgsql_put_int8(&p, k < JOBQ_MINUTE_COUNTS
                                         ? minutes[i].counts[k]
                                         : minutes[i].run_ms[k - JOBQ_MINUTE_COUNTS]);
    jobq__pgsql_end(&p);
    rc = jobq__pgsql_run(store, ST_BOOK, BOOK, &p, true, &res);
    if (rc < 0)
        return rc;
    PQclear(res);
    return 0;
}

int jobq__pgsql_book(void *handle, const jobq_minute *minutes, size_t n)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, book(store, minutes, n));
}

static void read_numbers(const PGresult *res, int row, jobq_minute *to)
{
    pgsql_array numbers = jobq__pgsql_array_of(res, row, 2);

    for (int k = 0; k < NUMBERS; k++)
        *(k < JOBQ_MINUTE_COUNTS ? &to->counts[k] : &to->run_ms[k - JOBQ_MINUTE_COUNTS]) =
            jobq__pgsql_array_int(&numbers);
}

static int read_minutes(const PGresult *res, jobq_minutes *m)
{
    jobq_minute **link = &m->minutes;

    m->minutes = NULL;
    m->now_ms = jobq__pgsql_get(res, 0, 0);
    for (int row = 0; row < PQntuples(res) && !PQgetisnull(res, row, 1); row++) {
        jobq_minute *made = jobq__minute_add(m, &link, jobq__pgsql_get(res, row, 1));

        if (!made)
            return jobq__error_code();
        read_numbers(res, row, made);
    }
    return 0;
}

static int minutes(pgsql_store *store, jobq_minutes *m)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, m->queue);
    jobq__pgsql_int(&p, m->from_minute);
    rc = jobq__pgsql_run(store, ST_MINUTES, MINUTES, &p, false, &res);
    if (rc < 0)
        return rc;
    rc = read_minutes(res, m);
    PQclear(res);
    return rc;
}

int jobq__pgsql_minutes(void *handle, jobq_minutes *m)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc : jobq__pgsql_leave(store, minutes(store, m));
}
