/* SPDX-License-Identifier: MIT
 *
 * Maintenance in bounded steps. One read says what there is to do; each queue, and each worker that
 * has expired there, is one script then.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/clock.h"
#include "util/error.h"

enum { STEP = 1000, SWEEP_EVERY_MS = 60000, SWEEP_LEASE_MS = 30000 };

/* What a queue has to be done. */
typedef struct {
    jobq_slice queue;
    bool due;
    rds_names expired; /* workers */
} due_queue;

typedef struct {
    jobq_maintenance *m;
    due_queue *queues; /* in the store's arena */
    size_t count;
    int64_t due_ms; /* from now; -1 = nothing known */
    bool clock_read;
} due_things;

static void ask_due(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const due_things *due = with;

    jobq__redis_script(store, RDS_SCRIPT_DUE, queues, n, 3);
    jobq__redis_number(&store->link, (int64_t)n);
    jobq__redis_words(&store->link, due->m->take_back ? "1" : "0");
    jobq__redis_number(&store->link, store->started_at_ms);
}

/* Replies live until the next round trip: these lists have to outlive some. */
static int keep_workers(rds_store *store, const rds_value *from, rds_names *to)
{
    to->names = jobq__arena_alloc(&store->arena, (from->count + 1) * sizeof(jobq_slice));
    if (!to->names)
        return jobq__error_nomem();
    for (size_t i = 0; i < from->count; i++) {
        const rds_value *one = from->item[i];

        to->names[i] = jobq__slice(jobq__arena_copy(&store->arena, one->p, one->n), one->n);
        if (!to->names[i].p)
            return jobq__error_nomem();
    }
    to->count = from->count;
    return 0;
}

static void note_clock(due_things *due, int64_t now_ms, int64_t next_ms)
{
    int64_t left = next_ms > now_ms ? next_ms - now_ms : 0;

    if (!due->clock_read)
        due->m->now_ms = now_ms;
    due->clock_read = true;
    if (next_ms > 0 && (due->due_ms < 0 || left < due->due_ms))
        due->due_ms = left;
}

static int read_due(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                    void *with)
{
    due_things *due = with;
    rds_walk walk = {answer, 0};
    int64_t now_ms;
    int rc = 0;

    if (answer->count != 2 + 2 * n)
        return jobq__redis_nonsense(store);
    now_ms = jobq__redis_int(&walk);
    note_clock(due, now_ms, jobq__redis_int(&walk));
    for (size_t i = 0; i < n && rc == 0; i++) {
        const rds_value *expired = answer->item[3 + 2 * i];
        due_queue *one = &due->queues[due->count];

        one->due = answer->item[2 + 2 * i]->integer != 0;
        one->queue = queues[i];
        rc = keep_workers(store, expired, &one->expired);
        due->count += one->due || expired->count > 0;
    }
    return rc;
}

static int see_due(rds_store *store, const rds_names *queues, due_things *due)
{
    static const rds_visit visit = {
        .ask = ask_due, .read = read_due, .together = true, .kind = RDS_READS};
    int rc;

    due->count = 0;
    due->due_ms = -1;
    due->clock_read = false;
    due->queues = jobq__arena_alloc(&store->arena, (queues->count + 1) * sizeof(*due->queues));
    if (!due->queues)
        return jobq__error_nomem();
    rc = jobq__redis_visit(store, &visit, queues, due);
    due->m->next_due_ms = due->due_ms < 0 ? 0 : due->m->now_ms + due->due_ms;
    return rc;
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
        jobq__redis_script(store, RDS_SCRIPT_PROMOTE, &queue, 1, 1);
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

static int take_back(rds_store *store, jobq_maintenance *m, jobq_slice queue, jobq_slice worker)
{
    size_t done = 1, asked = 1;
    int rc = 0;

    while (rc == 0 && done >= asked && m->handled < m->limit) {
        asked = room(m);
        jobq__redis_script(store, RDS_SCRIPT_TAKE_BACK, &queue, 1, 5);
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

    for (size_t i = 0; i < due->count && rc == 0; i++)
        if (due->queues[i].due)
            rc = promote(store, m, due->queues[i].queue);
    for (size_t i = 0; i < due->count && rc == 0; i++)
        for (size_t k = 0; k < due->queues[i].expired.count && rc == 0; k++)
            rc = take_back(store, m, due->queues[i].queue, due->queues[i].expired.names[k]);
    return rc;
}

/* ---- what somebody has deleted --------------------------------------------------------------- */

static void ask_sweep(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    (void)with;
    jobq__redis_script(store, RDS_SCRIPT_SWEEP, queues, n, 1);
    jobq__redis_number(&store->link, SWEEP_LEASE_MS);
}

/* Queues that gave jobs are in the list. A server without memory refuses it. */
static int list_known(rds_store *store)
{
    rds_value *value;
    rds_names known = {0};

    jobq__redis_known_queues(store, &known);
    if (known.count == 0)
        return 0;
    jobq__redis_begin(&store->link, 2 + known.count);
    jobq__redis_words(&store->link, "SADD");
    jobq__redis_base_word(store, ":queues");
    for (size_t i = 0; i < known.count; i++) {
        const bool hidden = jobq__queue_is_hidden(known.names[i]);

        jobq__redis_word(&store->link, (const char *)known.names[i].p + hidden,
                         known.names[i].n - hidden);
    }
    return jobq__redis_round(store, &value, 1, RDS_READS);
}

/* Hand-outs that no record names would stay out for ever (case B054). */
static int sweep(rds_store *store, const rds_names *queues)
{
    static const rds_visit visit = {
        .ask = ask_sweep, .read = jobq__redis_read_nothing, .kind = RDS_READS};
    int64_t now_ms = jobq__clock_mono_ms();
    int rc;

    if (store->swept_ms && now_ms - store->swept_ms < SWEEP_EVERY_MS)
        return 0;
    rc = list_known(store);
    rc = rc ? rc : jobq__redis_visit(store, &visit, queues, NULL);
    if (rc == 0)
        store->swept_ms = now_ms;
    return rc;
}

static int maintain(rds_store *store, jobq_maintenance *m, const rds_names *queues)
{
    due_things due = {.m = m};
    int rc = m->take_back ? sweep(store, queues) : 0;

    rc = rc ? rc : see_due(store, queues, &due);
    if (rc != 0 || due.count == 0)
        return rc;
    rc = run(store, m, &due);
    rc = rc ? rc : see_due(store, queues, &due); /* when next */
    m->more = m->handled >= m->limit;
    return rc;
}

int jobq__redis_maintain(void *handle, jobq_maintenance *m)
{
    rds_store *store = handle;
    rds_names queues = {0};
    int rc = jobq__redis_enter_all(store);

    m->handled = 0;
    m->more = false;
    rc = rc ? rc : jobq__redis_all_queues(store, &queues);
    if (rc == 0 && queues.count == 0) {
        m->next_due_ms = store->next_due_ms = 0;
        return jobq__redis_read_clock(store, &m->now_ms);
    }
    rc = rc ? rc : maintain(store, m, &queues);
    if (rc == 0)
        store->next_due_ms = m->next_due_ms;
    return rc;
}
