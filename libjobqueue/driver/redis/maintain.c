/* SPDX-License-Identifier: MIT
 *
 * Maintenance in bounded steps. One read says what there is to do; each queue and each expired
 * worker is one script then.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/clock.h"
#include "util/error.h"

enum { STEP = 1000, SWEEP_EVERY_MS = 60000, SWEEP_LEASE_MS = 30000 };

typedef struct {
    rds_value *queues, *workers; /* in the store's arena */
} due_things;

/* Replies live until the next round trip: these lists have to outlive some. */
static int keep_list(rds_store *store, const rds_value *from, rds_value **to)
{
    rds_value *list = jobq__arena_copy(&store->arena, from, sizeof(*from));

    if (!list)
        return jobq__error_nomem();
    list->item = jobq__arena_alloc(&store->arena, (from->count + 1) * sizeof(rds_value *));
    if (!list->item)
        return jobq__error_nomem();
    for (size_t i = 0; i < from->count; i++) {
        list->item[i] = jobq__arena_copy(&store->arena, from->item[i], sizeof(*from->item[i]));
        if (!list->item[i])
            return jobq__error_nomem();
        list->item[i]->p = jobq__arena_copy(&store->arena, from->item[i]->p, from->item[i]->n);
        if (!list->item[i]->p)
            return jobq__error_nomem();
    }
    *to = list;
    return 0;
}

static int ask_due(rds_store *store, jobq_maintenance *m, due_things *due)
{
    rds_value *value;
    rds_walk walk;
    int rc;

    jobq__redis_script(store, RDS_SCRIPT_DUE, 2);
    jobq__redis_words(&store->link, m->take_back ? "1" : "0");
    jobq__redis_number(&store->link, store->started_at_ms);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    if (value->count != 4)
        return jobq__redis_nonsense(store);
    walk = (rds_walk){value, 0};
    m->now_ms = jobq__redis_int(&walk);
    m->next_due_ms = jobq__redis_int(&walk);
    rc = keep_list(store, value->item[2], &due->queues);
    return rc ? rc : keep_list(store, value->item[3], &due->workers);
}

static size_t room(const jobq_maintenance *m)
{
    size_t left = m->limit - m->handled;

    return left < STEP ? left : STEP;
}

/* Runs a script until it has less to do than it may. */
static int add_handled(rds_store *store, jobq_maintenance *m, size_t *done)
{
    rds_value *value;
    int rc = jobq__redis_call(store, &value, RDS_READS);

    if (rc < 0)
        return rc;
    *done = value->integer > 0 ? (size_t)value->integer : 0;
    m->handled += *done;
    return 0;
}

static int promote(rds_store *store, jobq_maintenance *m, jobq_slice queue)
{
    size_t done = 1, asked = 1;
    int rc = 0;

    while (rc == 0 && done >= asked && m->handled < m->limit) {
        asked = room(m);
        jobq__redis_queue_script(store, RDS_SCRIPT_PROMOTE, queue, 2);
        jobq__redis_word(&store->link, queue.p, queue.n);
        jobq__redis_number(&store->link, (int64_t)asked);
        rc = add_handled(store, m, &done);
    }
    return rc;
}

static void add_lost(rds_store *store, const jobq_maintenance *m, jobq_slice worker)
{
    jobq__buf *out = &store->scratch;

    jobq__buf_reset(out);
    if (m->lost_head.p) {
        jobq__buf_add(out, m->lost_head.p, m->lost_head.n);
        jobq__buf_addc(out, (char)worker.n);
        jobq__buf_add(out, worker.p, worker.n);
        jobq__buf_add(out, m->lost_tail.p, m->lost_tail.n);
    }
    if (out->failed)
        store->link.out.failed = true;
    jobq__redis_word(&store->link, out->n ? out->p : "", out->n);
}

static int take_back(rds_store *store, jobq_maintenance *m, jobq_slice worker)
{
    size_t done = 1, asked = 1;
    int rc = 0;

    while (rc == 0 && done >= asked && m->handled < m->limit) {
        asked = room(m);
        jobq__redis_script(store, RDS_SCRIPT_TAKE_BACK, 5);
        jobq__redis_word(&store->link, worker.p, worker.n);
        jobq__redis_number(&store->link, (int64_t)asked);
        jobq__redis_number(&store->link, m->loss_cap);
        jobq__redis_number(&store->link, store->started_at_ms);
        add_lost(store, m, worker);
        rc = add_handled(store, m, &done);
    }
    return rc;
}

static int run(rds_store *store, jobq_maintenance *m, const due_things *due)
{
    int rc = 0;

    for (size_t i = 0; i < due->queues->count && rc == 0; i++)
        rc = promote(store, m, jobq__slice(due->queues->item[i]->p, due->queues->item[i]->n));
    for (size_t i = 0; i < due->workers->count && rc == 0; i++)
        rc = take_back(store, m, jobq__slice(due->workers->item[i]->p, due->workers->item[i]->n));
    return rc;
}

/* Hand-outs that no record names would stay out for ever (case B054). */
static int sweep(rds_store *store)
{
    int64_t now_ms = jobq__clock_mono_ms();
    rds_value none = {.type = RDS_LIST}, *names, *kept = &none, *value;
    int rc;

    if (store->swept_ms && now_ms - store->swept_ms < SWEEP_EVERY_MS)
        return 0;
    rc = jobq__redis_ask_queues(store, &names);
    rc = rc ? rc : keep_list(store, names, &kept);
    if (rc != 0)
        return rc;
    store->swept_ms = now_ms;
    if (kept->count == 0)
        return 0;
    jobq__redis_script(store, RDS_SCRIPT_SWEEP, 1 + 2 * kept->count);
    jobq__redis_number(&store->link, SWEEP_LEASE_MS);
    for (size_t i = 0; i < kept->count; i++) {
        const jobq_slice name = {kept->item[i]->p, kept->item[i]->n};

        jobq__redis_word(&store->link, name.p, name.n);
        jobq__redis_number(&store->link, jobq__redis_hash(name));
    }
    return jobq__redis_call(store, &value, RDS_READS);
}

int jobq__redis_maintain(void *handle, jobq_maintenance *m)
{
    rds_store *store = handle;
    rds_value none = {.type = RDS_LIST};
    due_things due = {&none, &none};
    int rc = jobq__redis_enter(store);

    m->handled = 0;
    m->more = false;
    if (rc == 0 && m->take_back)
        rc = sweep(store);
    rc = rc ? rc : ask_due(store, m, &due);
    if (rc != 0 || due.queues->count + due.workers->count == 0)
        return rc;
    rc = run(store, m, &due);
    rc = rc ? rc : ask_due(store, m, &due); /* when next */
    m->more = m->handled >= m->limit;
    return rc;
}
