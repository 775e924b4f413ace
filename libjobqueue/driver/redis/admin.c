/* SPDX-License-Identifier: MIT
 *
 * Counts, names of queues, mending dead jobs, the server's clock.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

int jobq__redis_counts(void *handle, jobq_slice queue, jobq_counts *counts_out)
{
    rds_store *store = handle;
    rds_value *value;
    rds_walk walk;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_COUNTS, &queue, 1, 0);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    walk = (rds_walk){value, 0};
    counts_out->now_ms = jobq__redis_int(&walk);
    counts_out->ready = jobq__redis_int(&walk);
    counts_out->delayed = jobq__redis_int(&walk);
    counts_out->reserved = jobq__redis_int(&walk);
    counts_out->dead = jobq__redis_int(&walk);
    counts_out->oldest_ready_at_ms = jobq__redis_int(&walk);
    counts_out->capacity = jobq__redis_int(&walk);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const rds_value *first = *(rds_value *const *)a, *second = *(rds_value *const *)b;
    int order = memcmp(first->p, second->p, first->n < second->n ? first->n : second->n);

    return order ? order : first->n < second->n ? -1 : first->n > second->n;
}

int jobq__redis_queues(void *handle, jobq_batch *out)
{
    rds_store *store = handle;
    rds_value *names;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_ask(store, "SMEMBERS", ":queues");
    rc = jobq__redis_call(store, &names, RDS_READS);
    if (rc != 0 || names->count == 0)
        return rc;
    qsort(names->item, names->count, sizeof(rds_value *), compare_names);
    for (size_t i = 0; i < names->count; i++) {
        jobq_record *r = jobq_batch_add(out);

        if (r)
            r->queue = jobq_batch_copy(out, names->item[i]->p, names->item[i]->n);
        if (!r || !r->queue.p)
            return jobq__error_nomem();
    }
    return 0;
}

static void ask_mend(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const jobq_mending *m = with;

    jobq__redis_script(store, RDS_SCRIPT_MEND, queues, n, 2 + m->count);
    jobq__redis_words(&store->link, m->what == JOBQ_MEND_RETRY ? "0" : "1");
    jobq__redis_words(&store->link, m->dry_run ? "1" : "0");
    for (size_t i = 0; i < m->count; i++)
        jobq__redis_word(&store->link, m->ids[i].p, m->ids[i].n);
}

/* One queue has the job, the others do not know it. */
static int read_mend(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                     void *with)
{
    static const int answers[] = {0, JOBQ_ENOTFOUND, JOBQ_EEXISTS, JOBQ_ELIMIT};
    const jobq_mending *m = with;
    rds_walk walk = {answer, 0};

    (void)queues;
    (void)n;
    if (answer->count != m->count)
        return jobq__redis_nonsense(store);
    for (size_t i = 0; i < m->count; i++) {
        int result = answers[jobq__redis_int(&walk) & 3];

        if (result != JOBQ_ENOTFOUND)
            m->results[i] = result;
    }
    return 0;
}

int jobq__redis_mend(void *handle, jobq_mending *m)
{
    rds_store *store = handle;
    const rds_visit visit = {
        .ask = ask_mend, .read = read_mend, .kind = m->dry_run ? RDS_READS : RDS_WRITES};
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    for (size_t i = 0; i < m->count; i++)
        m->results[i] = JOBQ_ENOTFOUND;
    rc = rc ? rc : jobq__redis_all_queues(store, &queues);
    return rc ? rc : jobq__redis_visit(store, &visit, &queues, m);
}

int jobq__redis_read_clock(rds_store *store, int64_t *now_ms_out)
{
    rds_value *value;
    rds_walk walk;
    int rc;

    jobq__redis_begin(&store->link, 1);
    jobq__redis_words(&store->link, "TIME");
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    walk = (rds_walk){value, 0};
    *now_ms_out = jobq__redis_time(&walk);
    return 0;
}

int jobq__redis_now(void *handle, int64_t *now_ms_out)
{
    rds_store *store = handle;
    int rc = jobq__redis_enter(store);

    return rc ? rc : jobq__redis_read_clock(store, now_ms_out);
}
