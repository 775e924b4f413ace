/* SPDX-License-Identifier: MIT
 *
 * Workers' records: one hash per worker, and the ends of their leases in one sorted set.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

/* ---- renewing -------------------------------------------------------------------------------- */

/* "priority:entry:count " of each in this queue, as take_back.lua looks for it. */
static void add_running(rds_store *store, const jobq_renewal *r, jobq_slice queue)
{
    const uint32_t hash = jobq__redis_hash(queue);

    jobq__buf_reset(&store->scratch);
    for (size_t i = 0; i < r->running_count; i++) {
        rds_token t = jobq__redis_token_parts(r->running[i]);

        if (t.queue == hash)
            jobq__buf_addf(&store->scratch, "%d:%llu-%llu:%u ", t.priority,
                           (unsigned long long)t.entry.ms, (unsigned long long)t.entry.seq,
                           t.count);
    }
    if (store->scratch.failed)
        store->link.out.failed = true;
    jobq__redis_word(&store->link, store->scratch.n ? store->scratch.p : "", store->scratch.n);
}

static void ask_description(rds_store *store, const jobq_renewal *r)
{
    const jobq_slice texts[] = {r->host, r->queues, r->names};
    rds_link *link = &store->link;

    jobq__redis_script(store, RDS_SCRIPT_ENLIST, NULL, 0, r->host.p ? 8 : 3);
    jobq__redis_word(link, r->worker.p, r->worker.n);
    jobq__redis_number(link, r->lease_ms);
    jobq__redis_number(link, (int64_t)r->running_count);
    if (!r->host.p)
        return;
    for (size_t i = 0; i < 3; i++)
        jobq__redis_word(link, texts[i].p ? texts[i].p : "", texts[i].n);
    jobq__redis_number(link, r->pid);
    jobq__redis_number(link, r->processes);
}

typedef struct {
    jobq_renewal *r;
    bool lapsed;
} renewal_state;

static void ask_queue(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const renewal_state *state = with;
    const jobq_renewal *r = state->r;

    jobq__redis_script(store, RDS_SCRIPT_RENEW, queues, n, 3);
    jobq__redis_word(&store->link, r->worker.p, r->worker.n);
    jobq__redis_number(&store->link, r->lease_ms);
    add_running(store, r, queues[0]);
}

static int read_description(rds_store *store, rds_value **values, void *with)
{
    const renewal_state *state = with;
    rds_walk walk = {values[0], 0};

    state->r->now_ms = jobq__redis_int(&walk);
    state->r->control = store->control = jobq__redis_int(&walk);
    state->r->held = 0;
    return 0;
}

static int read_queue(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                      void *with)
{
    renewal_state *state = with;
    rds_walk walk = {answer, 1};

    state->r->held += jobq__redis_int(&walk);
    state->lapsed = jobq__redis_int(&walk) || state->lapsed;
    return jobq__redis_int(&walk) ? jobq__redis_know(store, queues, n) : 0;
}

/* A worker that this handle has not renewed yet may hold jobs wherever there are queues. */
int jobq__redis_renew(void *handle, jobq_renewal *r)
{
    static const rds_visit visit = {.ask = ask_queue,
                                    .read = read_queue,
                                    .before = 1,
                                    .read_before = read_description,
                                    .kind = RDS_READS};
    rds_store *store = handle;
    rds_worker *worker = jobq__redis_worker(store, r->worker, true);
    renewal_state state = {.r = r};
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    if (!worker)
        return jobq__error_nomem();
    if (rc == 0 && worker->complete)
        jobq__redis_known_queues(store, &queues);
    else if (rc == 0)
        rc = jobq__redis_all_queues(store, &queues);
    if (rc < 0)
        return rc;
    ask_description(store, r);
    rc = jobq__redis_visit(store, &visit, &queues, &state);
    if (rc < 0)
        return rc;
    worker->complete = true;
    worker->lease_ms = r->lease_ms;
    worker->until_ms = r->now_ms + r->lease_ms;
    return state.lapsed ? jobq__refuse_lapsed("redis", r->worker) : 0;
}

/* ---- leaving --------------------------------------------------------------------------------- */

typedef struct {
    jobq_slice worker;
    bool only_look, holds;
    jobq_batch *out;
} about_worker;

static void ask_leave(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const about_worker *about = with;

    jobq__redis_script(store, RDS_SCRIPT_LEAVE, queues, n, 2);
    jobq__redis_word(&store->link, about->worker.p, about->worker.n);
    jobq__redis_words(&store->link, about->only_look ? "1" : "0");
}

static int read_leave(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                      void *with)
{
    about_worker *about = with;

    (void)store;
    (void)queues;
    (void)n;
    about->holds = about->holds || answer->integer != 0;
    return 0;
}

static int strike_out(rds_store *store, jobq_slice worker)
{
    rds_value *values[2];
    int rc;

    jobq__redis_begin(&store->link, 3);
    jobq__redis_words(&store->link, "ZREM");
    jobq__redis_base_word(store, ":workers");
    jobq__redis_word(&store->link, worker.p, worker.n);
    jobq__buf_reset(&store->scratch);
    jobq__buf_adds(&store->scratch, ":w:");
    jobq__buf_add(&store->scratch, worker.p, worker.n);
    jobq__redis_ask(store, "DEL",
                    jobq__arena_copy(&store->arena, store->scratch.p, store->scratch.n));
    rc = jobq__redis_round(store, values, 2, RDS_READS);
    for (size_t i = 0; i < 2 && rc == 0; i++)
        if (values[i]->type == RDS_ERROR)
            rc = jobq__redis_refused(store, values[i]);
    return rc;
}

/* It holds something in one queue: its records in the others stay, too. Where this handle has never
 * taken anything for it, its record lapses, if there is one. */
int jobq__redis_leave(void *handle, jobq_slice worker)
{
    static const rds_visit visit = {.ask = ask_leave, .read = read_leave, .kind = RDS_READS};
    rds_store *store = handle;
    about_worker about = {.worker = worker, .only_look = true};
    rds_worker *known = jobq__redis_worker(store, worker, false);
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    jobq__redis_known_queues(store, &queues);
    if (rc == 0 && !known)
        rc = jobq__redis_all_queues(store, &queues);
    rc = rc ? rc : jobq__redis_visit(store, &visit, &queues, &about);
    about.only_look = false;
    if (rc == 0 && !about.holds)
        rc = jobq__redis_visit(store, &visit, &queues, &about);
    if (rc < 0 || about.holds)
        return rc;
    if (known) /* should it come back, it begins anew */
        known->lease_ms = known->until_ms = 0;
    return strike_out(store, worker);
}

/* ---- looking --------------------------------------------------------------------------------- */

static int read_one(rds_walk *walk, jobq_slice queue, jobq_batch *out)
{
    jobq_record *r = jobq_batch_add(out);
    rds_token token = {.queue = jobq__redis_hash(queue)};
    jobq_slice entry, id;

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
    r->cancel = (uint8_t)jobq__redis_int(walk);
    jobq__redis_entry(entry, &token.entry);
    r->token = jobq__redis_token(&token);
    r->id = jobq_batch_copy(out, id.p, id.n);
    r->queue = jobq_batch_copy(out, queue.p, queue.n);
    r->priority = token.priority;
    r->state = RDS_RESERVED;
    return r->id.p && r->queue.p ? 0 : jobq__error_nomem();
}

static void ask_held(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const about_worker *about = with;

    jobq__redis_script(store, RDS_SCRIPT_HELD, queues, n, 1);
    jobq__redis_word(&store->link, about->worker.p, about->worker.n);
}

static int read_held(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                     void *with)
{
    const about_worker *about = with;
    rds_walk walk = {answer, 0};
    int rc = jobq__redis_more(&walk) ? jobq__redis_know(store, queues, n) : 0;

    while (jobq__redis_more(&walk) && rc == 0)
        rc = read_one(&walk, queues[0], about->out);
    return rc;
}

int jobq__redis_held(void *handle, jobq_slice worker, jobq_batch *out)
{
    static const rds_visit visit = {.ask = ask_held, .read = read_held, .kind = RDS_READS};
    rds_store *store = handle;
    about_worker about = {.worker = worker, .out = out};
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    rc = rc ? rc : jobq__redis_all_queues(store, &queues);
    return rc ? rc : jobq__redis_visit(store, &visit, &queues, &about);
}
