/* SPDX-License-Identifier: MIT
 *
 * What people ask of workers: pauses, the generation, cancelled jobs, clearing (rules L1 to L3).
 * Every change raises one number, which workers compare with the one they know.
 */
#include "driver/redis/redis.h"
#include "util/error.h"

enum { LOOKED_AT = 40000 };

/* ---- pauses and the generation --------------------------------------------------------------- */

static jobq_pause *read_pause(rds_walk *walk, jobq_batch *out)
{
    jobq_pause *pause = jobq_batch_alloc(out, sizeof(*pause));
    jobq_slice queue = jobq__redis_text(walk);

    if (!pause)
        return NULL;
    if (queue.n > 0) {
        pause->queue = jobq_batch_copy(out, queue.p, queue.n);
        if (!pause->queue.p)
            return NULL;
    }
    pause->until_ms = jobq__redis_int(walk);
    return pause;
}

enum { CANCEL_NOTED = 4 }; /* beside JOBQ_CONTROL_* */

static void ask_control(rds_store *store, int what, jobq_slice queue, int64_t ttl_ms)
{
    jobq__redis_script(store, RDS_SCRIPT_CONTROL, NULL, 0, 3);
    jobq__redis_number(&store->link, what);
    jobq__redis_word(&store->link, queue.p ? queue.p : "", queue.n);
    jobq__redis_number(&store->link, ttl_ms);
}

int jobq__redis_control(void *handle, jobq_control *c)
{
    rds_store *store = handle;
    jobq_pause *last = NULL;
    rds_value *value;
    rds_walk walk;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    ask_control(store, c->what, c->queue, c->ttl_ms);
    rc = jobq__redis_call(store, &value, c->what == JOBQ_CONTROL_READ ? RDS_READS : RDS_WRITES);
    if (rc < 0)
        return rc;
    walk = (rds_walk){value, 0};
    c->now_ms = jobq__redis_int(&walk);
    c->control = jobq__redis_int(&walk);
    c->generation = jobq__redis_int(&walk);
    c->pauses = NULL;
    while (jobq__redis_more(&walk)) {
        jobq_pause *pause = read_pause(&walk, c->out);

        if (!pause)
            return jobq__error_nomem();
        if (last)
            last->next = pause;
        else
            c->pauses = pause;
        last = pause;
    }
    return 0;
}

/* ---- cancel ---------------------------------------------------------------------------------- */

typedef struct {
    jobq_cancelling *c;
    size_t share;
} cancel_call;

static bool follows_here(const jobq_cancelling *c, jobq_slice queue)
{
    const jobq_slice to = c->follow ? c->follow->queue : queue;

    return c->follow && (jobq__slice_equal(to, queue) ||
                         (jobq__queue_is_hidden(to) &&
                          jobq__slice_equal(jobq__slice((const char *)to.p + 1, to.n - 1), queue)));
}

static void ask_cancel(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const cancel_call *call = with;
    const jobq_cancelling *c = call->c;
    const bool follow = c->follow && (!store->cluster || follows_here(c, queues[0]));
    rds_link *link = &store->link;

    jobq__redis_script(store, RDS_SCRIPT_CANCEL, queues, n, 7 + (follow ? RDS_ITEM_WORDS : 0));
    jobq__redis_word(link, c->id.p, c->id.n);
    jobq__redis_number(link, jobq__redis_id_time(c->id));
    jobq__redis_number(link, (int64_t)call->share);
    jobq__redis_number(link, c->hard ? JOBQ_CANCEL_HARD : JOBQ_CANCEL_SOFT);
    jobq__redis_number(link, c->reason);
    jobq__redis_word(link, c->history.p ? c->history.p : "", c->history.n);
    jobq__redis_number(link, c->keep_ms > 0 ? c->keep_ms : 0);
    if (follow)
        jobq__redis_add_item(store, c->follow);
}

/* One queue has the job, the others do not know it. */
static int read_cancel(rds_store *store, const jobq_slice *queues, size_t n,
                       const rds_value *answer, void *with)
{
    static const int answers[] = {0, JOBQ_EEXISTS, JOBQ_ENOTFOUND};
    const cancel_call *call = with;

    (void)store;
    (void)queues;
    (void)n;
    if (answer->integer < 2)
        call->c->result = answers[answer->integer & 1];
    return 0;
}

/* The wish stands; its holder looks when the number has changed. */
static int tell_holder(rds_store *store)
{
    const jobq_slice none = {0};
    rds_value *value;

    ask_control(store, CANCEL_NOTED, none, 0);
    return jobq__redis_call(store, &value, RDS_WRITES);
}

int jobq__redis_cancel(void *handle, jobq_cancelling *c)
{
    static const rds_visit visit = {.ask = ask_cancel, .read = read_cancel, .kind = RDS_WRITES};
    rds_store *store = handle;
    cancel_call call = {.c = c};
    rds_names queues = {0};
    int rc = jobq__redis_enter(store);

    c->result = JOBQ_ENOTFOUND;
    rc = rc ? rc : jobq__redis_all_queues(store, &queues);
    if (rc < 0)
        return rc;
    call.share = jobq__redis_share(LOOKED_AT, queues.count);
    rc = jobq__redis_visit(store, &visit, &queues, &call);
    return rc == 0 && c->result == JOBQ_EEXISTS ? tell_holder(store) : rc;
}

/* ---- clear ----------------------------------------------------------------------------------- */

int jobq__redis_clear_queue(void *handle, jobq_clearing *c)
{
    rds_store *store = handle;
    rds_value *value;
    rds_walk walk;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_CLEAR, &c->queue, 1, 1);
    jobq__redis_number(&store->link, (int64_t)(c->limit < RDS_BATCH ? c->limit : RDS_BATCH));
    rc = jobq__redis_call(store, &value, RDS_WRITES);
    if (rc < 0)
        return rc;
    walk = (rds_walk){value, 0};
    c->cleared = (size_t)jobq__redis_int(&walk);
    c->more = jobq__redis_int(&walk) != 0;
    return 0;
}
