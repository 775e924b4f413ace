/* SPDX-License-Identifier: MIT
 *
 * What people ask of workers: pauses, the generation, cancelled jobs; and clearing a queue.
 */
#include "driver/memory/memory.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- pauses and the generation --------------------------------------------------------------- */

static bool is_pause_of(const mem_pause *pause, jobq_slice queue)
{
    return queue.p ? pause->queue.p && jobq__slice_equal(pause->queue, queue) : !pause->queue.p;
}

static mem_pause **find_pause(mem_store *store, jobq_slice queue)
{
    mem_pause **link = &store->pauses;

    while (*link && !is_pause_of(*link, queue))
        link = &(*link)->next;
    return link;
}

static void drop_pause(mem_pause **link)
{
    mem_pause *pause = *link;

    *link = pause->next;
    jobq__memory_drop(&pause->queue);
    jobq__free(pause);
}

void jobq__memory_drop_pauses(mem_store *store)
{
    while (store->pauses)
        drop_pause(&store->pauses);
}

static int add_pause(mem_store *store, const jobq_control *c)
{
    mem_pause **link = find_pause(store, c->queue);

    if (!*link) {
        mem_pause *pause = jobq__zalloc(sizeof(*pause));

        if (!pause || !jobq__memory_copy(&pause->queue, c->queue)) {
            jobq__free(pause);
            return jobq__error_nomem();
        }
        *link = pause;
    }
    (*link)->until_ms = c->ttl_ms > 0 ? jobq__clock_wall_ms() + c->ttl_ms : 0;
    store->control++;
    return 0;
}

static int end_pause(mem_store *store, const jobq_control *c)
{
    mem_pause **link = find_pause(store, c->queue);

    if (*link)
        drop_pause(link);
    store->control++;
    return 0;
}

static int show_pauses(const mem_store *store, jobq_control *c)
{
    jobq_pause **link = &c->pauses;

    c->pauses = NULL;
    for (const mem_pause *pause = store->pauses; pause; pause = pause->next) {
        jobq_pause *shown;

        if (pause->until_ms > 0 && pause->until_ms <= c->now_ms)
            continue;
        shown = jobq_batch_alloc(c->out, sizeof(*shown));
        if (!shown)
            return jobq__error_nomem();
        if (pause->queue.p)
            shown->queue = jobq_batch_copy(c->out, pause->queue.p, pause->queue.n);
        if (pause->queue.p && !shown->queue.p)
            return jobq__error_nomem();
        shown->until_ms = pause->until_ms;
        *link = shown;
        link = &shown->next;
    }
    return 0;
}

int jobq__memory_control(void *handle, jobq_control *c)
{
    mem_store *store = handle;
    int rc = 0;

    if (c->what == JOBQ_CONTROL_PAUSE)
        rc = add_pause(store, c);
    else if (c->what == JOBQ_CONTROL_RESUME)
        rc = end_pause(store, c);
    else if (c->what == JOBQ_CONTROL_RESTART)
        store->generation = ++store->control;
    if (rc < 0)
        return rc;
    c->now_ms = jobq__clock_wall_ms();
    c->generation = store->generation;
    c->control = store->control;
    return show_pauses(store, c);
}

/* ---- cancel, clear --------------------------------------------------------------------------- */

static int bury(mem_store *store, mem_job *job, const jobq_cancelling *c)
{
    if (!jobq__memory_keep_history(job, c->history) || !jobq__memory_keep_follow(store, c->follow))
        return jobq__error_nomem();
    jobq__memory_give_up_key(store, job);
    job->follower = false;
    job->state = MEM_DEAD;
    job->reason = c->reason;
    job->died_at_ms = jobq__clock_wall_ms();
    job->keep_until_ms = c->keep_ms > 0 ? job->died_at_ms + c->keep_ms : 0;
    job->taken_back = false;
    job->cancel = JOBQ_CANCEL_NONE;
    return 0;
}

int jobq__memory_cancel(void *handle, jobq_cancelling *c)
{
    mem_store *store = handle;
    mem_job *job = jobq__memory_by_id(store, c->id);
    int rc = 0;

    c->result = JOBQ_ENOTFOUND;
    if (!job || job->state > MEM_RESERVED)
        return 0;
    if (job->state == MEM_RESERVED) {
        if (job->cancel != JOBQ_CANCEL_HARD)
            job->cancel = c->hard ? JOBQ_CANCEL_HARD : JOBQ_CANCEL_SOFT;
        store->control++;
        c->result = JOBQ_EEXISTS;
        return 0;
    }
    rc = bury(store, job, c);
    c->result = rc;
    return rc;
}

int jobq__memory_clear(void *handle, jobq_clearing *c)
{
    mem_store *store = handle;
    mem_job *next;

    c->cleared = 0;
    c->more = false;
    for (mem_job *job = store->first; job && !c->more; job = next) {
        next = job->next;
        if (job->state > MEM_DELAYED || !jobq__slice_equal(job->queue, c->queue))
            continue;
        c->more = c->cleared == c->limit;
        if (c->more)
            break;
        jobq__memory_remove(store, job);
        c->cleared++;
    }
    return 0;
}
