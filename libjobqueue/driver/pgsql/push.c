/* SPDX-License-Identifier: MIT
 *
 * Storing jobs: one statement per call, its items as arrays. The answer names only those that were
 * not stored. With a condition of the caller's (rule B7) it is a transaction of several statements.
 */
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/error.h"

#define PUSH                            \
    "SELECT item, result, holder FROM " \
    "@.push_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
#define PUSH_SINGLE \
    "SELECT result, holder FROM @.push_single($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"

#define PUSH_PLAIN "SELECT @.push_plain($1, $2, $3, $4, $5, $6, $7, $8, $9)"

enum { LIMITED_PUSHES = 1000 };

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

static bool is_same(jobq_slice a, jobq_slice b)
{
    return !a.p == !b.p && jobq__slice_equal(a, b);
}

static void put_slices(pgsql_params *p, Oid type, const jobq_push *items, size_t n, slice_of get)
{
    jobq__pgsql_array(p, type, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_slice(p, get(&items[i]));
    jobq__pgsql_end(p);
}

/* What all have in common travels once. */
static void put_alike(pgsql_params *p, Oid type, const jobq_push *items, size_t n, slice_of get)
{
    size_t same = 1;

    while (same < n && is_same(get(&items[0]), get(&items[same])))
        same++;
    put_slices(p, type, items, same == n ? 1 : n, get);
}

static void put_versions(pgsql_params *p, const jobq_push *items, size_t n)
{
    size_t same = 1;

    while (same < n && items[0].version == items[same].version)
        same++;
    n = same == n ? 1 : n;
    jobq__pgsql_array(p, PG_INT4, n);
    for (size_t i = 0; i < n; i++)
        jobq__pgsql_put_int4(p, items[i].version);
    jobq__pgsql_end(p);
}

static void put_ranks(pgsql_params *p, const jobq_push *items, size_t n)
{
    size_t same = 1;

    while (same < n && items[0].priority == items[same].priority)
        same++;
    n = same == n ? 1 : n;
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

/* -1: a held key is left alone; else it is replaced, 0 = however late. */
static int64_t wait_of(const jobq_push *item)
{
    if (!item->unique.p || item->on_duplicate != JOBQ_DUPLICATE_REPLACE)
        return -1;
    return item->max_wait_ms > 0 ? item->max_wait_ms : 0;
}

static void put_waits(pgsql_params *p, const jobq_push *items, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any |= wait_of(&items[i]) >= 0;
    if (!any) {
        jobq__pgsql_null(p, PG_INT8_ARRAY);
        return;
    }
    jobq__pgsql_array(p, PG_INT8, n);
    for (size_t i = 0; i < n; i++)
        if (wait_of(&items[i]) >= 0)
            jobq__pgsql_put_int8(p, wait_of(&items[i]));
        else
            jobq__pgsql_put_slice(p, jobq__slice(NULL, 0));
    jobq__pgsql_end(p);
}

static void read_refusal(const PGresult *res, int row, int column, jobq_push *item)
{
    static const int answers[] = {0, 1, JOBQ_EEXISTS, JOBQ_EFULL, 2};
    size_t length = (size_t)PQgetlength(res, row, column + 1);

    item->result = answers[jobq__pgsql_get(res, row, column) % 5];
    if (item->result > 0 && length < sizeof(item->holder)) {
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

int64_t jobq__pgsql_due_of(const jobq_push *item)
{
    return item->at_ms > 0 ? item->at_ms : item->delay_ms > 0 ? -item->delay_ms : 0;
}

/* What most pushes are: nobody can have that id, no unique key is asked for, and the session is
 * ours. */
static bool is_plain(const pgsql_store *store, const jobq_push *item)
{
    return item->fresh_id && !item->unique.p && !store->pooled;
}

static void put_head(pgsql_params *p, const jobq_push *item)
{
    jobq__pgsql_text(p, item->id);
    jobq__pgsql_text(p, item->queue);
    jobq__pgsql_text(p, item->name);
    jobq__pgsql_int(p, item->version);
    jobq__pgsql_int(p, JOBQ__TOP_PRIORITY - item->priority);
    jobq__pgsql_int(p, jobq__pgsql_due_of(item));
}

/* JOBQ_EFULL: the queue has a capacity, which is not judged here. */
static int push_plain(pgsql_store *store, jobq_push *item, bool is_new)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    put_head(&p, item);
    jobq__pgsql_bytes(&p, item->header);
    jobq__pgsql_bytes(&p, item->body);
    jobq__pgsql_bool(&p, is_new);
    rc = jobq__pgsql_run(store, ST_PUSH_PLAIN, PUSH_PLAIN, &p, true, &res);
    if (rc < 0)
        return rc;
    item->result = 0;
    rc = jobq__pgsql_get(res, 0, 0) ? 0 : JOBQ_EFULL;
    PQclear(res);
    return rc;
}

/* Judges also what stands against it. */
int jobq__pgsql_push_judged(pgsql_store *store, jobq_push *item)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    put_head(&p, item);
    jobq__pgsql_bytes(&p, item->unique);
    jobq__pgsql_bytes(&p, item->header);
    jobq__pgsql_bytes(&p, item->body);
    if (wait_of(item) >= 0)
        jobq__pgsql_int(&p, wait_of(item));
    else
        jobq__pgsql_null(&p, PG_INT8);
    rc = jobq__pgsql_run(store, ST_PUSH_SINGLE, PUSH_SINGLE, &p, true, &res);
    if (rc < 0)
        return rc;
    read_refusal(res, 0, 0, item);
    PQclear(res);
    return 0;
}

static int push_single(pgsql_store *store, jobq_push *item)
{
    pgsql_front *front = jobq__pgsql_front(store, item->queue);
    int rc = JOBQ_EFULL;

    if (front && front->limited > 0) {
        front->limited--;
    } else if (is_plain(store, item)) {
        rc = push_plain(store, item, !front || !front->noted);
        if (front && rc == JOBQ_EFULL)
            front->limited = LIMITED_PUSHES;
    }
    if (rc == JOBQ_EFULL || rc == JOBQ_EINVAL) {
        jobq__error_clear(); /* also an id that exists after all, a value that is refused again */
        rc = jobq__pgsql_push_judged(store, item);
    }
    if (rc == 0 && front)
        front->noted = true;
    return rc;
}

static int push(pgsql_store *store, jobq_push *items, size_t n)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    put_slices(&p, PG_TEXT, items, n, id_of);
    put_alike(&p, PG_TEXT, items, n, queue_of);
    put_alike(&p, PG_TEXT, items, n, name_of);
    put_versions(&p, items, n);
    put_ranks(&p, items, n);
    put_times(&p, items, n);
    put_alike(&p, PG_BYTEA, items, n, unique_of);
    put_alike(&p, PG_BYTEA, items, n, header_of);
    put_slices(&p, PG_BYTEA, items, n, body_of);
    put_waits(&p, items, n);
    rc = jobq__pgsql_run(store, ST_PUSH, PUSH, &p, true, &res);
    if (rc < 0)
        return rc;
    read_refusals(res, items, n);
    PQclear(res);
    return 0;
}

static bool is_guarded(const jobq_push *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].guard)
            return true;
    return false;
}

int jobq__pgsql_push(void *handle, jobq_push *items, size_t n)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    if (is_guarded(items, n))
        rc = jobq__pgsql_push_guarded(store, items, n);
    else
        rc = n == 1 ? push_single(store, items) : push(store, items, n);
    return jobq__pgsql_leave(store, rc);
}
