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

/* What is asked of workers is looked for so often (rules L1 to L3: obeyed within a second). */
enum { FAR_MS = 1000000000, OBEY_MS = 750 };
enum { JUST_NOW_US = 5000, LIVELY_US = 100000 };

typedef struct {
    const jobq_wait *w;
    int64_t due_in_ms; /* of the next delayed job, -1 = none */
    int answer;        /* JOBQ_WAIT_JOBS, JOBQ_WAIT_CONTROL, 0 = nothing */
} look;

#define HAS_NOT_ENDED "SELECT 1 FROM jobqueue_job WHERE id=?1 AND place NOT IN (3, 4)"

static int look_once(mysql_store *store, void *payload)
{
    look *l = payload;
    const mysql_arg id = bytes_arg(l->w->job);
    int64_t control = 0, ignored;
    bool goes_on = true;
    int rc = jobq__mysql_look(store, l->w->queues, l->w->queue_count, &l->due_in_ms, &control);

    if (rc == 0 && l->w->job.p)
        rc = jobq__mysql_ask(store, HAS_NOT_ENDED, &id, &goes_on, &ignored);
    if (l->w->queue_count == 0)
        l->due_in_ms = -1; /* others' jobs are of no interest */
    l->answer = JOBQ_WAIT_TIMEOUT;
    if (rc > 0 || l->due_in_ms == 0 || !goes_on)
        l->answer = JOBQ_WAIT_JOBS;
    else if (l->w->control && control != *l->w->control)
        l->answer = JOBQ_WAIT_CONTROL;
    return rc < 0 ? rc : 0;
}

/* ---- what the last exchange said ------------------------------------------------------------- */

/* Of the names of queues that people know: for the hidden ones the first look may be left out. */
static uint64_t sum_of(const jobq_slice *queues, size_t count)
{
    uint64_t sum = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k <= queues[i].n && !jobq__queue_is_hidden(queues[i]); k++)
            sum = (sum ^ (k < queues[i].n ? ((const unsigned char *)queues[i].p)[k] : 256U)) *
                  UINT64_C(1099511628211);
    return sum;
}

void jobq__mysql_note_exchange(mysql_store *store, const jobq_exchange *x, int rc, bool lively)
{
    const int64_t now_us = jobq__clock_mono_us();

    if (rc == 0 && lively)
        store->lively_us = now_us;
    else if (rc == 0 && x->queue_count > 0 && jobq__queue_is_hidden(x->queues[0]))
        return; /* a look aside */
    store->found_empty.at_us = 0;
    if (rc < 0 || !x->exhausted || x->passed_by || x->want == 0 || x->queue_count == 0 ||
        (x->next_due_ms && x->next_due_ms <= x->now_ms))
        return;
    store->found_empty.at_us = now_us;
    store->found_empty.queues = sum_of(x->queues, x->queue_count);
    store->found_empty.due_in_ms = x->next_due_ms ? x->next_due_ms - x->now_ms : -1;
    store->found_empty.control = x->control;
}

/* The look before the first sleep was an exchange that has just ended. */
static bool is_known_empty(const mysql_store *store, const jobq_wait *w)
{
    const int64_t age_us = jobq__clock_mono_us() - store->found_empty.at_us;

    return !w->job.p && store->found_empty.at_us != 0 && age_us <= JUST_NOW_US &&
           store->found_empty.queues == sum_of(w->queues, w->queue_count) &&
           (!w->control || *w->control == store->found_empty.control);
}

/* ---- the wait -------------------------------------------------------------------------------- */

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
    int64_t ignored, control;
    int rc = state->any_ready; /* asked in most cases */

    if (x->ask_passed_by && !state->looked && !got)
        rc = jobq__mysql_look(store, x->queues, x->queue_count, &ignored, &control);
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
    int64_t most_ms = l->w->control && l->w->poll_ms > OBEY_MS ? OBEY_MS : l->w->poll_ms;
    int64_t until_us = now_us + jobq__poll_gap(&store->gap_ms, most_ms) * 1000;

    if (l->due_in_ms > 0 && l->due_in_ms < FAR_MS && now_us + l->due_in_ms * 1000 < until_us)
        until_us = now_us + l->due_in_ms * 1000;
    return until_us < end_us ? until_us : end_us;
}

enum { LOOK_AGAIN = 100 }; /* beside JOBQ_WAIT_* */

/* Until the next look. While jobs come that is the caller's next exchange: one trip less. */
static int pause_for(mysql_store *store, const look *l, int64_t end_us, bool known)
{
    int rc = sleep_until(l->w, next_look_us(store, l, end_us));
    int64_t now_us = jobq__clock_mono_us();

    if (rc != 0)
        return rc < 0 ? rc : JOBQ_WAIT_WOKEN;
    if (now_us >= end_us)
        return JOBQ_WAIT_TIMEOUT;
    return known && now_us - store->lively_us < LIVELY_US ? JOBQ_WAIT_JOBS : LOOK_AGAIN;
}

int jobq__mysql_wait(void *handle, const jobq_wait *w)
{
    mysql_store *store = handle;
    int64_t limit_ms = w->timeout_ms < 0 || w->timeout_ms > FAR_MS ? FAR_MS : w->timeout_ms;
    int64_t end_us = jobq__clock_mono_us() + limit_ms * 1000;
    bool fruitless = store->fruitless && w->queue_count > 0,
         known = !fruitless && is_known_empty(store, w);

    for (bool pause = fruitless || known;; pause = known = false) {
        look l = {.w = w, .due_in_ms = known ? store->found_empty.due_in_ms : -1};
        int rc = pause ? 0 : jobq__mysql_do(store, 0, look_once, &l);

        if (rc < 0)
            return rc;
        if (l.answer) {
            store->gap_ms = fruitless ? store->gap_ms : 0;
            return l.answer;
        }
        rc = pause_for(store, &l, end_us, known);
        if (rc != LOOK_AGAIN)
            return rc;
    }
}
