/* SPDX-License-Identifier: MIT
 *
 * Live workers: as they have enlisted, and what their records in the queues say.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

/* Rows of what is found, one for each worker. */
typedef struct {
    jobq_batch *out;
    jobq_worker_record **rows; /* in the store's arena */
    size_t count, room;
} worker_list;

/* What was never given is absent. */
static jobq_slice keep_text(jobq_batch *out, jobq_slice text)
{
    return text.n ? jobq_batch_copy(out, text.p, text.n) : jobq__slice(NULL, 0);
}

static bool make_room(rds_store *store, worker_list *list)
{
    size_t room = list->room ? list->room * 2 : 32;
    jobq_worker_record **rows;

    if (list->count < list->room)
        return true;
    rows = jobq__arena_alloc(&store->arena, room * sizeof(jobq_worker_record *));
    if (!rows)
        return false;
    if (list->count)
        memcpy(rows, list->rows, list->count * sizeof(jobq_worker_record *));
    list->rows = rows;
    list->room = room;
    return true;
}

static jobq_worker_record *row_of(rds_store *store, worker_list *list, jobq_slice id)
{
    jobq_worker_record *row = jobq__arena_alloc(&store->arena, sizeof(*row));

    for (size_t i = 0; i < list->count; i++)
        if (jobq__slice_equal(list->rows[i]->id, id))
            return list->rows[i];
    if (!row || !make_room(store, list))
        return NULL;
    row->id = keep_text(list->out, id);
    if (!row->id.p)
        return NULL;
    list->rows[list->count++] = row;
    return row;
}

/* Its end is the latest one, its start the first. */
static int read_worker(rds_store *store, worker_list *list, const rds_value *value)
{
    rds_walk walk = {value, 0};
    jobq_worker_record *row = row_of(store, list, jobq__redis_text(&walk));
    int64_t until_ms = jobq__redis_int(&walk), started_ms;

    if (!row)
        return jobq__error_nomem();
    if (until_ms > row->alive_until_ms)
        row->alive_until_ms = until_ms;
    row->held += jobq__redis_int(&walk);
    started_ms = jobq__redis_int(&walk);
    if (row->started_at_ms == 0 || (started_ms > 0 && started_ms < row->started_at_ms))
        row->started_at_ms = started_ms;
    if (row->lease_ms == 0)
        row->lease_ms = jobq__redis_int(&walk);
    else
        jobq__redis_int(&walk);
    if (!jobq__redis_more(&walk))
        return 0;
    row->running = jobq__redis_int(&walk);
    row->host = keep_text(list->out, jobq__redis_text(&walk));
    row->queues = keep_text(list->out, jobq__redis_text(&walk));
    row->names = keep_text(list->out, jobq__redis_text(&walk));
    row->pid = jobq__redis_int(&walk);
    row->processes = jobq__redis_int(&walk);
    return 0;
}

static void ask_workers(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    (void)with;
    jobq__redis_script(store, n ? RDS_SCRIPT_WORKERS : RDS_SCRIPT_ENLISTED, queues, n, 0);
}

static int read_workers(rds_store *store, const jobq_slice *queues, size_t n,
                        const rds_value *answer, void *with)
{
    int rc = 0;

    (void)queues;
    (void)n;
    for (size_t i = 0; i < answer->count && rc == 0; i++)
        rc = read_worker(store, with, answer->item[i]);
    return rc;
}

static int compare_start(const void *a, const void *b)
{
    const jobq_worker_record *const *first = a, *const *second = b;

    return (*first)->started_at_ms < (*second)->started_at_ms
               ? -1
               : (*first)->started_at_ms > (*second)->started_at_ms;
}

static int put_out(worker_list *list)
{
    if (list->count)
        qsort(list->rows, list->count, sizeof(jobq_worker_record *), compare_start);
    for (size_t i = 0; i < list->count; i++) {
        jobq_worker_record *r = jobq_batch_add_worker(list->out), *next;

        if (!r)
            return jobq__error_nomem();
        next = r->next;
        *r = *list->rows[i];
        r->next = next;
    }
    return 0;
}

int jobq__redis_workers(void *handle, jobq_batch *out)
{
    static const rds_visit visit = {.ask = ask_workers, .read = read_workers, .kind = RDS_READS};
    rds_store *store = handle;
    worker_list list = {.out = out};
    rds_value *value;
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    rc = rc ? rc : jobq__redis_all_queues(store, &queues);
    if (rc < 0)
        return rc;
    ask_workers(store, NULL, 0, NULL);
    rc = jobq__redis_call(store, &value, RDS_READS);
    rc = rc ? rc : read_workers(store, NULL, 0, value, &list);
    rc = rc ? rc : jobq__redis_visit(store, &visit, &queues, &list);
    return rc ? rc : put_out(&list);
}
