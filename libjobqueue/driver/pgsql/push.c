/* SPDX-License-Identifier: MIT
 *
 * Storing jobs: one statement per call, its items as arrays. The answer names only those that were
 * not stored.
 */
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/error.h"

#define PUSH                            \
    "SELECT item, result, holder FROM " \
    "@.push_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
#define PUSH_SINGLE "SELECT result, holder FROM @.push_single($1, $2, $3, $4, $5, $6, $7, $8, $9)"

typedef jobq_slice (*slice_of)(const jobq_push *item);

static jobq_slice id_of(const jobq_push *item)
{
    return item->id;
}

static jobq_slice queue_of(const jobq_push *item)
{
    return item->queue;
}

static jobq_slice name_of(const jobq_push *item)
{
    return item->name;
}

static jobq_slice unique_of(const jobq_push *item)
{
    return item->unique;
}

static jobq_slice header_of(const jobq_push *item)
{
    return item->header;
}

static jobq_slice body_of(const jobq_push *item)
{
    return item->body;
}

static void put_slices(pgsql_params *p, Oid type, const jobq_push *items, size_t n, slice_of get)
{
    jobq__pgsql_array(p, type, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_slice(p, get(&items[i]));
    jobq__pgsql_end(p);
}

static bool is_one_queue(const jobq_push *items, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!jobq__slice_equal(items[0].queue, items[i].queue))
            return false;
    return true;
}

static void put_numbers(pgsql_params *p, const jobq_push *items, size_t n)
{
    jobq__pgsql_array(p, PG_INT4, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_int4(p, items[i].version);
    jobq__pgsql_end(p);
    jobq__pgsql_array(p, PG_INT2, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_int2(p, (int16_t)(JOBQ__TOP_PRIORITY - items[i].priority));
    jobq__pgsql_end(p);
}

/* Delays and moments: mostly there are none, and then no array either. */
static void put_times(pgsql_params *p, const jobq_push *items, size_t n)
{
    bool delays = false, moments = false;

    for (size_t i = 0; i < n; i++) {
        delays |= items[i].delay_ms > 0;
        moments |= items[i].at_ms > 0;
    }
    jobq__pgsql_array(p, PG_INT8, delays ? n : 0);
    for (size_t i = 0; i < n && delays; i++)
        jobq__pgsql_put_int8(p, items[i].delay_ms > 0 ? items[i].delay_ms : 0);
    jobq__pgsql_end(p);
    jobq__pgsql_array(p, PG_INT8, moments ? n : 0);
    for (size_t i = 0; i < n && moments; i++)
        jobq__pgsql_put_int8(p, items[i].at_ms > 0 ? items[i].at_ms : 0);
    jobq__pgsql_end(p);
}

static void read_refusal(const PGresult *res, int row, int column, jobq_push *item)
{
    int64_t result = jobq__pgsql_get(res, row, column);
    size_t length = (size_t)PQgetlength(res, row, column + 1);

    item->result = result == 0 ? 0 : result == 1 ? 1 : JOBQ_EEXISTS;
    if (item->result == 1 && length < sizeof(item->holder)) {
        memcpy(item->holder, PQgetvalue(res, row, column + 1), length);
        item->holder[length] = '\0';
    }
}

static void read_refusals(const PGresult *res, jobq_push *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        items[i].result = 0;
    for (int row = 0; row < PQntuples(res); row++) {
        int64_t at = jobq__pgsql_get(res, row, 0) - 1;

        if (at >= 0 && at < (int64_t)n)
            read_refusal(res, row, 1, &items[at]);
    }
}

static int push_single(pgsql_store *store, jobq_push *item)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, item->id);
    jobq__pgsql_text(&p, item->queue);
    jobq__pgsql_text(&p, item->name);
    jobq__pgsql_int(&p, item->version);
    jobq__pgsql_int(&p, JOBQ__TOP_PRIORITY - item->priority);
    jobq__pgsql_int(&p, item->at_ms > 0 ? item->at_ms : item->delay_ms > 0 ? -item->delay_ms : 0);
    jobq__pgsql_bytes(&p, item->unique);
    jobq__pgsql_bytes(&p, item->header);
    jobq__pgsql_bytes(&p, item->body);
    rc = jobq__pgsql_run(store, ST_PUSH_SINGLE, PUSH_SINGLE, &p, true, &res);
    if (rc < 0)
        return rc;
    read_refusal(res, 0, 0, item);
    PQclear(res);
    return 0;
}

static int push(pgsql_store *store, jobq_push *items, size_t n)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    put_slices(&p, PG_TEXT, items, n, id_of);
    put_slices(&p, PG_TEXT, items, is_one_queue(items, n) ? 1 : n, queue_of);
    put_slices(&p, PG_TEXT, items, n, name_of);
    put_numbers(&p, items, n);
    put_times(&p, items, n);
    put_slices(&p, PG_BYTEA, items, n, unique_of);
    put_slices(&p, PG_BYTEA, items, n, header_of);
    put_slices(&p, PG_BYTEA, items, n, body_of);
    rc = jobq__pgsql_run(store, ST_PUSH, PUSH, &p, true, &res);
    if (rc < 0)
        return rc;
    read_refusals(res, items, n);
    PQclear(res);
    return 0;
}

int jobq__pgsql_push(void *handle, jobq_push *items, size_t n)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    return rc < 0 ? rc
                  : jobq__pgsql_leave(store,
                                      n == 1 ? push_single(store, items) : push(store, items, n));
}
