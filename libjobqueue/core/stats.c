/* SPDX-License-Identifier: MIT
 *
 * Counts of a queue, and the names of all queues (rule N1).
 */
#include <jobqueue/control.h>

#include <string.h>

#include "core/inspect.h"
#include "util/alloc.h"
#include "util/error.h"

int jobq_queue_stats(jobq_queue *queue, const char *name, size_t n, int64_t *values_out)
{
    jobq_counts c = {0};
    int rc;

    jobq__error_clear();
    rc = jobq__check_queue(name, n);
    rc = rc < 0
             ? rc
             : jobq__queue_note(queue, jobq__store_counts(queue->store, jobq__slice(name, n), &c));
    if (rc < 0)
        return rc;
    values_out[JOBQ_STAT_READY] = c.ready;
    values_out[JOBQ_STAT_DELAYED] = c.delayed;
    values_out[JOBQ_STAT_RESERVED] = c.reserved;
    values_out[JOBQ_STAT_DEAD] = c.dead;
    values_out[JOBQ_STAT_CAPACITY] = c.capacity;
    values_out[JOBQ_STAT_BACKLOG] = c.ready + c.delayed + c.reserved;
    values_out[JOBQ_STAT_OLDEST_READY_AGE_MS] =
        c.ready && c.oldest_ready_at_ms ? c.now_ms - c.oldest_ready_at_ms : -1;
    rc = jobq_queue_is_paused(queue, name, n, NULL);
    values_out[JOBQ_STAT_PAUSED] = rc > 0;
    return rc < 0 ? rc : 0;
}

/* ---- minutes --------------------------------------------------------------------------------- */

enum { MINUTE_MS = 60000, MINUTES_MOST = 1440 };

const char *jobq_minute_word(jobq_minute_field field)
{
    static const char *const words[JOBQ_MINUTE_FIELDS] = {
        [JOBQ_MINUTE_PUSHED] = "pushed",      [JOBQ_MINUTE_DONE] = "done",
        [JOBQ_MINUTE_FAILED] = "failed",      [JOBQ_MINUTE_RETRIED] = "retried",
        [JOBQ_MINUTE_CRASHED] = "crashed",    [JOBQ_MINUTE_RELEASED] = "released",
        [JOBQ_MINUTE_TIMED_OUT] = "timed_out"};

    return (unsigned)field < JOBQ_MINUTE_FIELDS ? words[field] : "unknown";
}

static int copy_minutes(const jobq_minutes *m, int64_t from, jobq_minute_stats **list_out,
                        size_t *count_out)
{
    jobq_minute_stats *list;
    size_t n = 0;

    for (const jobq_minute *cell = m->minutes; cell; cell = cell->next)
        n++;
    list = jobq__zalloc((n + 1) * sizeof(*list));
    if (!list)
        return jobq__error_nomem();
    n = 0;
    for (const jobq_minute *cell = m->minutes; cell; cell = cell->next) {
        if (cell->minute < from)
            continue;
        list[n].at_ms = cell->minute * MINUTE_MS;
        memcpy(list[n].counts, cell->counts, sizeof(list[n].counts));
        memcpy(list[n++].runs, cell->run_ms, sizeof(list[0].runs));
    }
    *list_out = list;
    *count_out = n;
    return 0;
}

int jobq_queue_minutes(jobq_queue *queue, const char *name, size_t n, int64_t minutes,
                       jobq_minute_stats **list_out, size_t *count_out)
{
    jobq_batch batch = {0};
    jobq_minutes m = {.queue = jobq__slice(name, n), .out = &batch};
    int64_t now_ms;
    int rc;

    _Static_assert((int)JOBQ_MINUTE_COUNTS == JOBQ_MINUTE_FIELDS &&
                       (int)JOBQ_MINUTE_BUCKETS == JOBQ_RUN_BUCKETS,
                   "as in the contract");
    jobq__error_clear();
    rc = jobq__check_queue(name, n);
    if (rc == 0 && (minutes < 1 || minutes > MINUTES_MOST))
        rc = jobq__error_set_subject(JOBQ_EINVAL, "minutes", 7,
                                     "minutes must be a whole number from 1 to 1440, got %lld",
                                     (long long)minutes);
    rc = rc < 0 ? rc : jobq__queue_note(queue, jobq__store_now(queue->store, &now_ms));
    if (rc < 0)
        return rc;
    m.from_minute = now_ms / MINUTE_MS - minutes + 1;
    rc = jobq__queue_note(queue, jobq__store_minutes(queue->store, &m));
    rc = rc < 0 ? rc : copy_minutes(&m, m.from_minute, list_out, count_out);
    jobq__batch_free(&batch);
    return rc;
}

void jobq_minutes_free(jobq_minute_stats *list)
{
    jobq__free(list);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int copy_names(const jobq_batch *batch, char ***names_out, size_t *count_out)
{
    char **names = jobq__zalloc((batch->count + 1) * sizeof(*names));
    size_t n = 0;

    for (const jobq_record *r = batch->first; names && r; r = r->next) {
        names[n] = jobq__memdup(r->queue.p, r->queue.n);
        if (!names[n++]) {
            jobq_names_free(names, n);
            names = NULL;
        }
    }
    if (!names)
        return jobq__error_nomem();
    *names_out = names;
    *count_out = n;
    return 0;
}

int jobq_queue_names(jobq_queue *queue, char ***names_out, size_t *count_out)
{
    jobq_batch batch = {0};
    int rc;

    jobq__error_clear();
    rc = jobq__queue_note(queue, jobq__store_queues(queue->store, &batch));
    if (rc == 0)
        rc = copy_names(&batch, names_out, count_out);
    jobq__batch_free(&batch);
    return rc;
}

void jobq_names_free(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        jobq__free(names[i]);
    jobq__free(names);
}
