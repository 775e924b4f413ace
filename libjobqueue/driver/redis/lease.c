/* SPDX-License-Identifier: MIT
 *
 * Workers' records: one hash per worker, and the ends of their leases in one sorted set.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

/* ---- renewing -------------------------------------------------------------------------------- */

/* "hash:priority:entry:count " of each, as take_back.lua looks for it. */
static void add_running(rds_store *store, const jobq_renewal *r)
{
    jobq__buf_reset(&store->scratch);
    for (size_t i = 0; i < r->running_count; i++) {
        rds_token t = jobq__redis_token_parts(r->running[i]);

        jobq__buf_addf(&store->scratch, "%u:%d:%llu-%llu:%u ", t.queue, t.priority,
                       (unsigned long long)t.entry.ms, (unsigned long long)t.entry.seq, t.count);
    }
    if (store->scratch.failed)
        store->link.out.failed = true;
    jobq__redis_word(&store->link, store->scratch.n ? store->scratch.p : "", store->scratch.n);
}

static void ask_renewal(rds_store *store, const jobq_renewal *r)
{
    const jobq_slice texts[] = {r->host, r->queues, r->names};
    rds_link *link = &store->link;

    jobq__redis_script(store, RDS_SCRIPT_RENEW, r->host.p ? 8 : 3);
    jobq__redis_word(link, r->worker.p, r->worker.n);
    jobq__redis_number(link, r->lease_ms);
    add_running(store, r);
    if (!r->host.p)
        return;
    for (size_t i = 0; i < 3; i++)
        jobq__redis_word(link, texts[i].p ? texts[i].p : "", texts[i].n);
    jobq__redis_number(link, r->pid);
    jobq__redis_number(link, r->processes);
}

int jobq__redis_renew(void *handle, jobq_renewal *r)
{
    rds_store *store = handle;
    rds_value *value;
    rds_walk walk;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    ask_renewal(store, r);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    walk = (rds_walk){value, 0};
    r->now_ms = jobq__redis_int(&walk);
    r->held = jobq__redis_int(&walk);
    if (jobq__redis_int(&walk))
        return jobq__refuse_lapsed("redis", r->worker);
    return 0;
}

/* One script with the worker's id. */
static int ask_about(rds_store *store, rds_script_id id, jobq_slice worker, rds_value **value_out)
{
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_script(store, id, 1);
    jobq__redis_word(&store->link, worker.p, worker.n);
    return jobq__redis_call(store, value_out, RDS_READS);
}

int jobq__redis_leave(void *handle, jobq_slice worker)
{
    rds_value *value;

    return ask_about(handle, RDS_SCRIPT_LEAVE, worker, &value);
}

/* ---- looking --------------------------------------------------------------------------------- */

static int read_held(rds_walk *walk, jobq_batch *out)
{
    jobq_record *r = jobq_batch_add(out);
    rds_token token = {0};
    jobq_slice queue = jobq__redis_text(walk), entry, id;

    token.queue = (uint32_t)jobq__redis_int(walk);
    token.priority = (uint8_t)jobq__redis_int(walk);
    entry = jobq__redis_text(walk);
    token.count = (uint32_t)jobq__redis_int(walk);
    id = jobq__redis_text(walk);
    token.flags = (uint8_t)(jobq__redis_int(walk) & 15);
    token.flags |= jobq__redis_int(walk) ? RDS_MORE : 0;
    token.flags |= jobq__redis_int(walk) ? RDS_MARKED : 0;
    if (!r)
        return jobq__error_nomem();
    r->fence = jobq__redis_int(walk);
    jobq__redis_entry(entry, &token.entry);
    r->token = jobq__redis_token(&token);
    r->id = jobq_batch_copy(out, id.p, id.n);
    r->queue = jobq_batch_copy(out, queue.p, queue.n);
    r->priority = token.priority;
    r->state = RDS_RESERVED;
    return r->id.p && r->queue.p ? 0 : jobq__error_nomem();
}

int jobq__redis_held(void *handle, jobq_slice worker, jobq_batch *out)
{
    rds_value *value;
    rds_walk walk;
    int rc = ask_about(handle, RDS_SCRIPT_HELD, worker, &value);

    if (rc < 0)
        return rc;
    walk = (rds_walk){value, 0};
    while (jobq__redis_more(&walk) && rc == 0)
        rc = read_held(&walk, out);
    return rc;
}

static int64_t count_words(jobq_slice text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += ((const char *)text.p)[i] == ' ';
    return n;
}

/* What was never given is absent. */
static jobq_slice keep_text(jobq_batch *out, jobq_slice text)
{
    return text.n ? jobq_batch_copy(out, text.p, text.n) : jobq__slice(NULL, 0);
}

static int read_worker(const rds_value *value, jobq_batch *out)
{
    jobq_worker_record *r = jobq_batch_add_worker(out);
    rds_walk walk = {value, 0};

    if (!r)
        return jobq__error_nomem();
    r->id = keep_text(out, jobq__redis_text(&walk));
    r->alive_until_ms = jobq__redis_int(&walk);
    r->held = jobq__redis_int(&walk);
    r->host = keep_text(out, jobq__redis_text(&walk));
    r->queues = keep_text(out, jobq__redis_text(&walk));
    r->names = keep_text(out, jobq__redis_text(&walk));
    r->pid = jobq__redis_int(&walk);
    r->processes = jobq__redis_int(&walk);
    r->started_at_ms = jobq__redis_int(&walk);
    r->lease_ms = jobq__redis_int(&walk);
    r->running = count_words(jobq__redis_text(&walk));
    return r->id.p ? 0 : jobq__error_nomem();
}

static int64_t started_at(const void *value)
{
    rds_walk walk = {*(rds_value *const *)value, 8};

    return jobq__redis_int(&walk);
}

static int compare_start(const void *a, const void *b)
{
    int64_t first = started_at(a), second = started_at(b);

    return first < second ? -1 : first > second;
}

int jobq__redis_workers(void *handle, jobq_batch *out)
{
    rds_store *store = handle;
    rds_value *value;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_WORKERS, 0);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0 || value->count == 0)
        return rc;
    qsort(value->item, value->count, sizeof(rds_value *), compare_start);
    for (size_t i = 0; i < value->count && rc == 0; i++)
        rc = read_worker(value->item[i], out);
    return rc;
}
