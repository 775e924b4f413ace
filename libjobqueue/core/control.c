/* SPDX-License-Identifier: MIT
 *
 * Pausing, restarting, cancelling, clearing: what people ask of workers (rules L1 to L3). Each is
 * one atomic step of the store; clearing goes in bounded pages and can be started again.
 */
#include <jobqueue/control.h>

#include <string.h>

#include "core/conf_table.h"
#include "core/fault.h"
#include "core/follow.h"
#include "core/pauses.h"
#include "core/queue.h"
#include "core/retry.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum { CLEAR_PAGE = 500 };

/* ---- pause, resume, restart ------------------------------------------------------------------ */

static int control(jobq_queue *queue, jobq_control *c)
{
    int rc;

    c->out = &queue->batch;
    jobq__batch_reset(c->out);
    rc = c->queue.p ? jobq__check_queue(c->queue.p, c->queue.n) : 0;
    return rc < 0 ? rc : jobq__queue_note(queue, jobq__store_control(queue->store, c));
}

int jobq_queue_pause(jobq_queue *queue, const char *name, size_t n, int64_t ttl_ms)
{
    jobq_control c = {
        .what = JOBQ_CONTROL_PAUSE, .queue = jobq__slice(name, name ? n : 0), .ttl_ms = ttl_ms};

    jobq__error_clear();
    if (ttl_ms < 0 || ttl_ms > (int64_t)JOBQ__TEN_YEARS_S * 1000)
        return jobq__error_set_subject(JOBQ_EINVAL, "ttl", 3,
                                       "ttl must be 0 (until resumed) to 315619200 seconds, got "
                                       "%lld ms",
                                       (long long)ttl_ms);
    return control(queue, &c);
}

int jobq_queue_resume(jobq_queue *queue, const char *name, size_t n)
{
    jobq_control c = {.what = JOBQ_CONTROL_RESUME, .queue = jobq__slice(name, name ? n : 0)};

    jobq__error_clear();
    return control(queue, &c);
}

int jobq_queue_is_paused(jobq_queue *queue, const char *name, size_t n, int64_t *until_ms_out)
{
    jobq_control c = {.what = JOBQ_CONTROL_READ, .queue = jobq__slice(name, n)};
    int64_t until_ms;
    int rc;

    jobq__error_clear();
    rc = control(queue, &c);
    if (rc < 0)
        return rc;
    until_ms = jobq__pause_until(c.pauses, c.queue, false);
    if (until_ms_out && until_ms >= 0)
        *until_ms_out = until_ms;
    return until_ms >= 0;
}

int jobq_queue_restart_workers(jobq_queue *queue)
{
    jobq_control c = {.what = JOBQ_CONTROL_RESTART};

    jobq__error_clear();
    return control(queue, &c);
}

int64_t jobq_queue_generation(jobq_queue *queue)
{
    jobq_control c = {.what = JOBQ_CONTROL_READ};
    int rc;

    jobq__error_clear();
    rc = control(queue, &c);
    return rc < 0 ? rc : c.generation;
}

/* ---- cancel ---------------------------------------------------------------------------------- */

static void write_entry(jobq__buf *out)
{
    const int64_t now_ms = jobq__clock_wall_ms();
    const jobq__entry entry = {.started_at_ms = now_ms,
                               .ended_at_ms = now_ms,
                               .outcome = jobq__slice_text("stopped"),
                               .message = jobq__slice_text(JOBQ__CANCELLED_TEXT)};

    jobq__entry_write(out, &entry);
}

/* Who it is does not change, so it may be asked before: the hook that its death would owe (rule
 * F6), in the batch's arena. JOBQ_ENOTFOUND: there is no such job, or it is a hook itself. */
static int make_follow(jobq_queue *queue, jobq_cancelling *c)
{
    const jobq_record *record;
    jobq__death death = {.id = c->id, .reason = c->reason};
    int rc;

    jobq__batch_reset(&queue->batch);
    rc = jobq__queue_note(queue,
                          jobq__store_find(queue->store, (jobq_slice){0}, c->id, &queue->batch));
    record = queue->batch.first;
    if (rc < 0)
        return rc;
    if (!record || jobq__queue_is_hidden(record->queue))
        return JOBQ_ENOTFOUND;
    death.queue = record->queue;
    death.name = record->name;
    death.header = record->header;
    death.version = record->version;
    death.died_at_ms = jobq__clock_wall_ms();
    c->follow = jobq__follow_make(&queue->batch.arena, &death);
    return c->follow ? 0 : jobq__error_nomem();
}

static int no_job(const char *id, size_t n)
{
    return jobq__error_set_subject(JOBQ_ENOTFOUND, id, n,
                                   "no waiting or running job has the id \"%.*s\"",
                                   (int)(n < 128 ? n : 128), id);
}

int jobq_queue_cancel(jobq_queue *queue, const char *id, size_t n, bool hard)
{
    jobq_cancelling c = {.id = jobq__slice(id, n),
                         .hard = hard,
                         .reason = JOBQ__REASON_CANCELLED,
                         .keep_ms = queue->conf->s.dead_retention_ms};
    jobq__buf entry = {0};
    int rc;

    jobq__error_clear();
    if (jobq__check_id(id, n) < 0) /* such an id no job can have */
        return no_job(id ? id : "", id ? n : 0);
    rc = make_follow(queue, &c);
    if (rc < 0)
        return rc == JOBQ_ENOTFOUND ? no_job(id, n) : rc;
    write_entry(&entry);
    if (!entry.failed)
        c.history = jobq__slice(entry.p, entry.n);
    rc = jobq__queue_note(queue, jobq__store_cancel(queue->store, &c));
    jobq__buf_free(&entry);
    if (rc < 0)
        return rc;
    if (c.result == JOBQ_ENOTFOUND)
        return no_job(id, n);
    return c.result == JOBQ_EEXISTS ? JOBQ_CANCEL_ASKED : JOBQ_CANCELLED;
}

/* ---- clear ----------------------------------------------------------------------------------- */

int64_t jobq_queue_clear(jobq_queue *queue, const char *name, size_t n,
                         int (*progress)(void *payload, int64_t done), void *payload)
{
    jobq_clearing c = {.queue = jobq__slice(name, n), .limit = CLEAR_PAGE, .more = true};
    int64_t done = 0;
    int rc;

    jobq__error_clear();
    rc = jobq__check_queue(name, n);
    while (rc == 0 && c.more) {
        rc = jobq__queue_note(queue, jobq__store_clear(queue->store, &c));
        done += rc == 0 ? (int64_t)c.cleared : 0;
        if (rc == 0 && progress && progress(payload, done) != 0)
            rc = jobq__error_set(JOBQ_ECALLBACK, "stopped after %lld job%s", (long long)done,
                                 jobq__plural(done));
    }
    return rc < 0 ? rc : done;
}
