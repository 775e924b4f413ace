/* SPDX-License-Identifier: MIT
 *
 * Capacities of queues (rule B4), and what happened minute by minute (rule N1).
 */
#include <string.h>

#include "driver/answers.h"
#include "driver/redis/redis.h"
#include "util/error.h"

/* ---- capacity -------------------------------------------------------------------------------- */

int jobq__redis_capacity(void *handle, jobq_limit *l)
{
    rds_store *store = handle;
    rds_value *values[2];
    const size_t n = l->read ? 1 : 2;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    if (!l->read) {
        jobq__redis_begin(&store->link, 3);
        jobq__redis_words(&store->link, "SADD");
        jobq__redis_base_word(store, ":queues");
        jobq__redis_word(&store->link, l->queue.p, l->queue.n);
    }
    jobq__redis_script(store, RDS_SCRIPT_CAPACITY, &l->queue, 1, 2);
    jobq__redis_number(&store->link, l->value);
    jobq__redis_words(&store->link, l->read ? "r" : l->only_if_none ? "n" : "s");
    rc = jobq__redis_round(store, values, n, l->read ? RDS_READS : RDS_WRITES);
    for (size_t i = n; i-- > 0 && rc == 0;)
        if (values[i]->type == RDS_ERROR)
            rc = jobq__redis_refused(store, values[i]);
    if (rc == 0)
        l->capacity = jobq__redis_number_of(values[n - 1]);
    store->closed = 0;
    return rc;
}

/* ---- minutes --------------------------------------------------------------------------------- */

static size_t count_words(const jobq_minute *m)
{
    size_t words = 1;

    for (int i = 0; i < JOBQ_MINUTE_COUNTS; i++)
        words += m->counts[i] ? 2 : 0;
    for (int i = 0; i < JOBQ_MINUTE_BUCKETS; i++)
        words += m->run_ms[i] ? 2 : 0;
    return words;
}

static void add_count(rds_link *link, int place, int64_t count)
{
    if (count) {
        jobq__redis_number(link, place);
        jobq__redis_number(link, count);
    }
}

static void ask_book(rds_store *store, const jobq_minute *m)
{
    jobq__redis_script(store, RDS_SCRIPT_BOOK, &m->queue, 1, count_words(m));
    jobq__redis_number(&store->link, m->minute);
    for (int i = 0; i < JOBQ_MINUTE_COUNTS; i++)
        add_count(&store->link, i, m->counts[i]);
    for (int i = 0; i < JOBQ_MINUTE_BUCKETS; i++)
        add_count(&store->link, JOBQ__MINUTE_BUCKETS_AT + i, m->run_ms[i]);
}

int jobq__redis_book(void *handle, const jobq_minute *minutes, size_t n)
{
    rds_store *store = handle;
    int rc = jobq__redis_enter(store);
    rds_value **values;

    if (rc < 0)
        return rc;
    values = jobq__arena_alloc(&store->arena, (n + 1) * sizeof(rds_value *));
    if (!values)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        ask_book(store, &minutes[i]);
    rc = n ? jobq__redis_round(store, values, n, RDS_WRITES) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (values[i]->type == RDS_ERROR)
            rc = jobq__redis_refused(store, values[i]);
    return rc;
}

/* [minute, place, count, ...] */
static int read_minute(const rds_value *value, jobq_minutes *m, jobq_minute ***link)
{
    rds_walk walk = {value, 0};
    jobq_minute *made = jobq__minute_add(m, link, jobq__redis_int(&walk));

    if (!made)
        return jobq__error_code();
    while (jobq__redis_more(&walk)) {
        const int64_t place = jobq__redis_int(&walk);

        jobq__minute_put(made, place, jobq__redis_int(&walk));
    }
    return 0;
}

int jobq__redis_minutes(void *handle, jobq_minutes *m)
{
    rds_store *store = handle;
    jobq_minute **link = &m->minutes;
    rds_value *value;
    int rc = jobq__redis_enter(store);

    m->minutes = NULL;
    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_MINUTES, &m->queue, 1, 1);
    jobq__redis_number(&store->link, m->from_minute);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    m->now_ms = value->count ? jobq__redis_number_of(value->item[0]) : 0;
    for (size_t i = 1; i < value->count && rc == 0; i++)
        rc = read_minute(value->item[i], m, &link);
    return rc;
}
