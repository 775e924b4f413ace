/* SPDX-License-Identifier: MIT
 *
 * Capacities, and what happened minute by minute.
 */
#include "driver/memory/memory.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

int jobq__memory_capacity(void *handle, jobq_limit *l)
{
    mem_queue *queue = jobq__memory_queue(handle, l->queue);

    if (!queue)
        return jobq__error_nomem();
    if (!l->read && !(l->only_if_none && queue->limited)) {
        queue->capacity = l->value;
        queue->limited = true;
    }
    l->capacity = queue->capacity;
    return 0;
}

/* ---- minutes --------------------------------------------------------------------------------- */

static mem_minute *minute_of(mem_store *store, const jobq_minute *booked)
{
    mem_minute **link = &store->minutes, *made;

    for (; *link; link = &(*link)->next) /* oldest first */
        if ((*link)->sums.minute > booked->minute)
            break;
        else if ((*link)->sums.minute == booked->minute &&
                 jobq__slice_equal((*link)->queue, booked->queue))
            return *link;
    made = jobq__zalloc(sizeof(*made));
    if (!made || !jobq__memory_copy(&made->queue, booked->queue)) {
        jobq__free(made);
        return NULL;
    }
    made->sums.minute = booked->minute;
    made->next = *link;
    *link = made;
    return made;
}

int jobq__memory_book(void *handle, const jobq_minute *minutes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mem_minute *minute = minute_of(handle, &minutes[i]);

        if (!minute)
            return jobq__error_nomem();
        for (size_t k = 0; k < JOBQ_MINUTE_COUNTS; k++)
            minute->sums.counts[k] += minutes[i].counts[k];
        for (size_t k = 0; k < JOBQ_MINUTE_BUCKETS; k++)
            minute->sums.run_ms[k] += minutes[i].run_ms[k];
    }
    return 0;
}

int jobq__memory_minutes(void *handle, jobq_minutes *m)
{
    const mem_store *store = handle;
    jobq_minute **link = &m->minutes;

    m->minutes = NULL;
    m->now_ms = jobq__clock_wall_ms();
    for (const mem_minute *minute = store->minutes; minute; minute = minute->next) {
        jobq_minute *shown;

        if (minute->sums.minute < m->from_minute || !jobq__slice_equal(minute->queue, m->queue))
            continue;
        shown = jobq_batch_alloc(m->out, sizeof(*shown));
        if (!shown)
            return jobq__error_nomem();
        *shown = minute->sums;
        shown->queue = jobq_batch_copy(m->out, minute->queue.p, minute->queue.n);
        if (!shown->queue.p)
            return jobq__error_nomem();
        *link = shown;
        link = &shown->next;
    }
    return 0;
}

void jobq__memory_drop_minutes(mem_store *store, int64_t before_minute)
{
    while (store->minutes && store->minutes->sums.minute < before_minute) {
        mem_minute *minute = store->minutes;

        store->minutes = minute->next;
        jobq__memory_drop(&minute->queue);
        jobq__free(minute);
    }
}
