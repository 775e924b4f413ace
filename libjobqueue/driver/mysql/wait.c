/* SPDX-License-Identifier: MIT
 *
 * Waiting until something may be ready: the server cannot wake us, so it is asked again and again,
 * first after 10 ms, then with growing gaps. The gap outlives the call, so that a worker that waits
 * in short pieces does not begin anew each time. What is there but locked by somebody else is not
 * asked for again at once either.
 */
#include <poll.h>

#include "driver/mysql/mysql.h"
#include "util/clock.h"
#include "util/error.h"

enum { FAR_MS = 1000000000 };

typedef struct {
    const jobq_wait *w;
    int64_t due_in_ms; /* of the next delayed job, -1 = none */
    int answer;        /* 1: look, something is ready */
} look;

static int look_once(mysql_store *store, void *payload)
{
    look *l = payload;
    int rc = jobq__mysql_look(store, l->w->queues, l->w->queue_count, &l->due_in_ms);

    l->answer = rc;
    return rc < 0 ? rc : 0;
}

/* 1 woken, 0 time is over, or an error. */
static int sleep_until(const jobq_wait *w, int64_t until_us)
{
    struct pollfd fd = {.fd = w->wake_fd, .events = POLLIN};
    int64_t left_us = until_us - jobq__clock_mono_us();
    int n = jobq__poll_us(&fd, 1, left_us);

    return n < 0 ? jobq__refuse_wait("mysql") : n;
}

int jobq__mysql_weigh(mysql_store *store, jobq_exchange *x, bool got, const mysql_state *state)
{
    bool due = state->next_due && state->next_due <= state->now_ms;
    int64_t ignored;
    int rc = state->any_ready; /* asked when nothing was settled */

    if (x->ask_passed_by && x->settle_count && !got)
        rc = jobq__mysql_look(store, x->queues, x->queue_count, &ignored);
    if (rc < 0)
        return rc;
    x->passed_by = rc > 0 && !got;
    x->exhausted = x->exhausted && !x->passed_by;
    store->fruitless = x->passed_by || (!got && due);
    return 0;
}

static int64_t next_look_us(mysql_store *store, const look *l, int64_t end_us)
{
    int64_t now_us = jobq__clock_mono_us();
    int64_t until_us = now_us + jobq__poll_gap(&store->gap_ms, l->w->poll_ms) * 1000;

    if (l->due_in_ms > 0 && l->due_in_ms < FAR_MS && now_us + l->due_in_ms * 1000 < until_us)
        until_us = now_us + l->due_in_ms * 1000;
    return until_us < end_us ? until_us : end_us;
}

int jobq__mysql_wait(void *handle, const jobq_wait *w)
{
    mysql_store *store = handle;
    int64_t limit_ms = w->timeout_ms < 0 || w->timeout_ms > FAR_MS ? FAR_MS : w->timeout_ms;
    int64_t end_us = jobq__clock_mono_us() + limit_ms * 1000;
    bool fruitless = store->fruitless;

    for (bool pause = fruitless;; pause = false) {
        look l = {.w = w, .due_in_ms = -1};
        int rc = pause ? 0 : jobq__mysql_do(store, 0, look_once, &l);

        if (rc < 0)
            return rc;
        if (l.answer || l.due_in_ms == 0) {
            store->gap_ms = fruitless ? store->gap_ms : 0;
            return JOBQ_WAIT_JOBS;
        }
        rc = sleep_until(w, next_look_us(store, &l, end_us));
        if (rc != 0)
            return rc < 0 ? rc : JOBQ_WAIT_WOKEN;
        if (jobq__clock_mono_us() >= end_us)
            return JOBQ_WAIT_TIMEOUT;
    }
}
