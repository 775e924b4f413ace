/* SPDX-License-Identifier: MIT
 *
 * The memory driver's table, opening and closing.
 */
#include "driver/memory/memory.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

bool jobq__memory_copy(jobq_slice *to, jobq_slice from)
{
    char *copy = from.p ? jobq__memdup(from.p, from.n) : NULL;

    if (from.p && !copy)
        return false;
    *to = jobq__slice(copy, from.n);
    return true;
}

void jobq__memory_drop(jobq_slice *s)
{
    jobq__free((void *)s->p);
    *s = jobq__slice(NULL, 0);
}

static int open_store(const jobq_driver_config *config, void **store_out)
{
    mem_store *store;

    if (config->path.n || config->host.n)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                      "memory: the dsn takes neither host nor path");
    store = jobq__zalloc(sizeof(*store));
    if (!store)
        return jobq__error_nomem();
    *store_out = store;
    return 0;
}

static void close_store(void *handle)
{
    mem_store *store = handle;

    if (!store)
        return;
    while (store->first)
        jobq__memory_remove(store, store->first);
    while (store->workers) {
        store->workers->alive_until_boot_ms = 0;
        jobq__memory_leave(store, store->workers->id);
    }
    jobq__memory_drop_pauses(store);
    jobq__memory_drop_minutes(store, INT64_MAX);
    while (store->queues) {
        mem_queue *queue = store->queues;

        store->queues = queue->next;
        jobq__memory_drop(&queue->name);
        jobq__free(queue);
    }
    jobq__free(store);
}

static int make_schema(void *handle)
{
    (void)handle;
    return 0;
}

static int read_now(void *handle, int64_t *now_ms_out)
{
    (void)handle;
    *now_ms_out = jobq__clock_wall_ms();
    return 0;
}

static int no_effect(void *handle, jobq_effect *e)
{
    (void)handle;
    (void)e;
    return jobq__error_set(JOBQ_EUNSUPPORTED, "the memory store carries out no statements");
}

static int no_request(void *handle, jobq_request *r)
{
    (void)handle;
    (void)r;
    return jobq__error_set(JOBQ_EUNSUPPORTED, "the memory store has no statements");
}

static void earlier(int64_t *due, int64_t candidate)
{
    if (*due == 0 || candidate < *due)
        *due = candidate;
}

int64_t jobq__memory_next_due(const mem_store *store, bool with_workers, const mem_worker *but)
{
    int64_t due = 0, wall_minus_boot = jobq__clock_wall_ms() - jobq__clock_boot_ms();

    for (const mem_job *job = store->first; job; job = job->next) {
        if (job->state == MEM_DELAYED && !job->follower)
            earlier(&due, job->available_at_ms);
        if (job->state >= MEM_DONE && job->keep_until_ms > 0)
            earlier(&due, job->keep_until_ms);
    }
    for (const mem_worker *worker = store->workers; worker && with_workers; worker = worker->next)
        if (worker != but && !worker->taken)
            earlier(&due, worker->alive_until_boot_ms + wall_minus_boot);
    return due;
}

const jobq_driver jobq__memory_driver = {
    .abi = JOBQ_DRIVER_ABI,
    .size = sizeof(jobq_driver),
    .name = "memory",
    .schemes = "memory",
    .features = JOBQ_FEATURE_PRIORITY | JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH |
                JOBQ_FEATURE_DUE_ORDER | JOBQ_FEATURE_HOST_CLOCK,
    .max_batch = 4096,
    .max_body = (size_t)64 << 20,
    .options = "",
    .open = open_store,
    .close = close_store,
    .forget = close_store, /* nothing is shared with the parent */
    .schema = make_schema,
    .push = jobq__memory_push,
    .exchange = jobq__memory_exchange,
    .renew = jobq__memory_renew,
    .leave = jobq__memory_leave,
    .held = jobq__memory_held,
    .workers = jobq__memory_workers,
    .wait = jobq__memory_wait,
    .maintain = jobq__memory_maintain,
    .find = jobq__memory_find,
    .audit = jobq__memory_audit,
    .examine = jobq__memory_examine,
    .list = jobq__memory_list,
    .counts = jobq__memory_counts,
    .queues = jobq__memory_queues,
    .mend = jobq__memory_mend,
    .control = jobq__memory_control,
    .cancel = jobq__memory_cancel,
    .clear = jobq__memory_clear,
    .capacity = jobq__memory_capacity,
    .book = jobq__memory_book,
    .minutes = jobq__memory_minutes,
    .effect = no_effect,
    .request = no_request,
    .now = read_now,
};
