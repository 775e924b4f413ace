/* SPDX-License-Identifier: MIT
 *
 * Waiting for a job's end (rule N7): a look, then one wait of the store for as long as is left, and
 * so on. The store ends it when the job may have ended.
 */
#include <string.h>

#include "core/conf_table.h"
#include "core/inspect.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    POLL_MS = 1000,       /* where the store cannot wake us: the longest time between looks */
    LOOK_AGAIN_MS = 30000 /* where it can: whoever ended the job may not have been able to say so */
};

typedef struct {
    jobq_queue *queue;
    const char *id;
    size_t n;
    int64_t until_mono_ms;
    char where[JOBQ__QUEUE_SIZE]; /* the job's queue once it was seen: it stays there */
    jobq_info **info_out;
} waiting;

/* 0 done, JOBQ_EDEAD, JOBQ_EPENDING, or an error. */
static int look(waiting *w)
{
    jobq_info *info;
    int64_t state;
    size_t n;
    int rc = jobq__info_find(w->queue, jobq__slice_text(w->where[0] ? w->where : NULL), w->id, w->n,
                             &info);

    if (rc < 0)
        return rc;
    state = jobq_info_number(info, JOBQ_INFO_STATE);
    n = info->record->queue.n;
    if (n < sizeof(w->where)) {
        memcpy(w->where, info->record->queue.p, n);
        w->where[n] = '\0';
    }
    if (state != JOBQ_DONE && state != JOBQ_DEAD) {
        jobq_info_free(info);
        return JOBQ_EPENDING;
    }
    *w->info_out = info;
    return state == JOBQ_DONE ? 0 : JOBQ_EDEAD;
}

/* Sleeps until it is worth to look again. */
static int sleep_on(const waiting *w, int64_t left_ms)
{
    const jobq_slice where = jobq__slice_text(w->where);
    const jobq_wait wait = {.queues = &where, /* where the job stands; none is waited for */
                            .timeout_ms = left_ms < LOOK_AGAIN_MS ? left_ms : LOOK_AGAIN_MS,
                            .poll_ms = POLL_MS,
                            .wake_fd = -1,
                            .job = jobq__slice(w->id, w->n)};
    const int rc = jobq__store_wait(w->queue->store, &wait);

    return rc == JOBQ_EINTR ? rc : jobq__queue_note(w->queue, rc);
}

static int wait_for(waiting *w)
{
    int64_t left_ms;
    int rc;

    for (;;) {
        rc = look(w);
        left_ms = w->until_mono_ms - jobq__clock_mono_ms();
        if (rc != JOBQ_EPENDING || left_ms <= 0)
            return rc;
        rc = sleep_on(w, left_ms);
        if (rc < 0)
            return rc;
    }
}

static int word(const waiting *w, int rc, int64_t timeout_ms)
{
    if (rc == JOBQ_EPENDING)
        return jobq__error_set_subject(rc, w->id, w->n, "job \"%.*s\" had not ended after %.3g s",
                                       (int)w->n, w->id, (double)timeout_ms / 1000);
    if (rc == JOBQ_EDEAD)
        return jobq__error_set_subject(rc, w->id, w->n, "job \"%.*s\" is dead (%s)", (int)w->n,
                                       w->id, jobq_info_text(*w->info_out, JOBQ_INFO_REASON, NULL));
    return rc;
}

int jobq_queue_wait(jobq_queue *queue, const char *id, size_t n, int64_t timeout_ms,
                    jobq_info **info_out)
{
    waiting w = {.queue = queue, .id = id, .n = n, .info_out = info_out};

    jobq__error_clear();
    if (!queue || !info_out)
        return jobq__error_set(JOBQ_EINVAL, "a queue and a place for the job are needed, got NULL");
    if (timeout_ms < 0 || timeout_ms > (int64_t)JOBQ__TEN_YEARS_S * 1000)
        return jobq__error_set_subject(JOBQ_EINVAL, "timeout", 7,
                                       "timeout must be 0 to 315619200 seconds, got %lld ms",
                                       (long long)timeout_ms);
    w.until_mono_ms = jobq__clock_mono_ms() + timeout_ms;
    return word(&w, wait_for(&w), timeout_ms);
}
