/* SPDX-License-Identifier: MIT
 *
 * Waiting until something may be ready. An idle worker registers itself with the queues it waits
 * for, and whoever pushes to one of them while it is registered notifies at the commit; pushes cost
 * nothing while everybody is busy. A push that began before the registration was seen notifies
 * nobody, so there are two more looks soon after it. The registration lingers while the worker
 * works for a moment, and is taken back by an exchange (exchange.c) when it works on. An exchange
 * that found nothing while the registration stood saves the look. Who waits for the end of one job
 * registers under a byte 2 and its id, as if that were a queue; the end of a job that is kept, or
 * its death, notifies then.
 *
 * Notifications carry a queue's name and whether something is ready (r) or due earlier (d); c: what
 * is asked of workers has changed. Behind a pooler: polling with growing gaps.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/clock.h"
#include "util/error.h"

#define LOOK "SELECT now_ms, ready, due, us, control FROM @.look($1, $2, $3, $4, $5)"
#define ENDED "SELECT NOT EXISTS (SELECT 1 FROM @.job j WHERE j.id = $1 AND j.state = 0)"

enum { JOB_MARK = 2, JOB_LOOK_US = 1000000 }; /* ends that nobody tells of are looked for */
enum {
    REGISTERED_MS = 60000, /* how long a registration holds */
    RENEW_US = 35000000,   /* with less than that left it is renewed */
    SAFETY_US = 30000000,  /* the longest time without a look */
    EMPTY_US = 20000000,   /* how long an exchange's word is trusted */
    CONTROL_MS = 900,      /* the longest gap of polling by who obeys */
    FAR_MS = 1000000000
};
/* After registering: when to look once more. */
static const int64_t look_again_us[] = {10000, 100000};
enum { LOOKS = sizeof(look_again_us) / sizeof(look_again_us[0]) };

typedef struct {
    const jobq_wait *w;
    int64_t hash;    /* of the queues */
    int64_t end_us;  /* INT64_MAX = none */
    int64_t due_us;  /* when the next delayed job is due */
    int64_t look_us; /* the next look by plan */
    int step;        /* in look_again_us; LOOKS = at its end */
    int64_t poll_ms;
    char job[131]; /* what its end is told to, "" = none */
} waiting;

/* ---- what is known before a look ------------------------------------------------------------- */

/* Of those of an exchange without the hidden ones: they are waited for along with the others, but
 * asked only now and then. */
static int64_t hash_queues(const jobq_slice *queues, size_t n, bool hidden_too)
{
    uint64_t hash = PG_HASH_BEGIN;

    for (size_t i = 0; i < n; i++) {
        if (!hidden_too && jobq__queue_is_hidden(queues[i]))
            continue;
        hash = jobq__pgsql_hash(hash, queues[i]);
        hash = jobq__pgsql_hash(hash, jobq__slice("\xff", 1)); /* no name has this byte */
    }
    return (int64_t)hash;
}

void jobq__pgsql_note_exchange(pgsql_store *store, const jobq_exchange *x, size_t got,
                               int64_t delayed_ms)
{
    int64_t now_us = jobq__clock_mono_us();

    if (got > 0) {
        store->futile = 0;
        store->vain_gap_ms = 0;
    }
    store->vain = store->look_answered && got == 0;
    store->look_answered = false;
    store->empty_us = 0;
    if (!x->exhausted || store->idle_until_us == 0)
        return;
    store->empty_us = now_us;
    store->empty_hash = hash_queues(x->queues, x->queue_count, false);
    store->empty_due_us = delayed_ms > 0 && delayed_ms - x->now_ms < FAR_MS
                              ? now_us + (delayed_ms - x->now_ms) * 1000
                              : INT64_MAX;
}

/* ---- a look ---------------------------------------------------------------------------------- */

static bool must_register(const pgsql_store *store, const waiting *v)
{
    return store->listening && (v->w->queue_count > 0 || v->job[0]) &&
           (store->idle_until_us - jobq__clock_mono_us() < RENEW_US || store->idle_hash != v->hash);
}

static void note_registered(pgsql_store *store, waiting *v)
{
    bool fresh = store->idle_until_us == 0 || store->idle_hash != v->hash;

    store->idle_until_us = jobq__clock_mono_us() + (int64_t)REGISTERED_MS * 1000;
    store->idle_hash = v->hash;
    if (fresh)
        store->registered_us = jobq__clock_mono_us();
}

/* Does the caller know another control value than the store? */
static bool is_told(const pgsql_store *store, const jobq_wait *w)
{
    return w->control && *w->control != store->control;
}

/* Has the job that is waited for ended, or is it none of ours? */
static int is_over(pgsql_store *store, const waiting *v)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    if (!v->job[0])
        return 0;
    jobq__pgsql_text(&p, v->w->job);
    rc = jobq__pgsql_run(store, ST_ENDED, ENDED, &p, false, &res);
    if (rc < 0)
        return rc;
    rc = jobq__pgsql_get(res, 0, 0) ? JOBQ_WAIT_JOBS : 0;
    PQclear(res);
    return rc;
}

/* What was found: JOBQ_WAIT_JOBS, JOBQ_WAIT_CONTROL, 0 = nothing. */
static int read_look(pgsql_store *store, waiting *v, const PGresult *res, int64_t floor)
{
    int64_t now_us = jobq__clock_mono_us(), now_ms = jobq__pgsql_get(res, 0, 0),
            due_ms = jobq__pgsql_get(res, 0, 2);

    due_ms = v->w->queue_count > 0 ? due_ms : 0;
    v->due_us =
        due_ms > 0 && due_ms - now_ms < FAR_MS ? now_us + (due_ms - now_ms) * 1000 : INT64_MAX;
    jobq__pgsql_due_passed(store, floor, jobq__pgsql_get(res, 0, 3), false, now_ms);
    store->control = jobq__pgsql_get(res, 0, 4);
    if (jobq__pgsql_get(res, 0, 1) || (due_ms > 0 && due_ms <= now_ms))
        return JOBQ_WAIT_JOBS;
    return is_told(store, v->w) ? JOBQ_WAIT_CONTROL : 0;
}

static int look(pgsql_store *store, waiting *v)
{
    bool registering = must_register(store, v);
    int64_t floor = jobq__pgsql_due_floor(store);
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    store->deadline_us = jobq__clock_mono_us() + store->read_ms * 1000;
    jobq__pgsql_array(&p, PG_TEXT, v->w->queue_count + (v->job[0] != 0));
    for (size_t i = 0; i < v->w->queue_count; i++)
        jobq__pgsql_put_slice(&p, v->w->queues[i]);
    if (v->job[0])
        jobq__pgsql_put_slice(&p, jobq__slice_text(v->job));
    jobq__pgsql_end(&p);
    jobq__pgsql_put_fronts(store, &p, v->w->queues, v->w->queue_count);
    if (registering)
        jobq__pgsql_int(&p, store->idle_key);
    else
        jobq__pgsql_null(&p, PG_INT8);
    jobq__pgsql_int(&p, REGISTERED_MS);
    jobq__pgsql_int(&p, floor);
    rc = jobq__pgsql_run(store, ST_LOOK, LOOK, &p, false, &res);
    if (rc < 0)
        return rc;
    if (registering)
        note_registered(store, v);
    rc = read_look(store, v, res, floor);
    PQclear(res);
    return rc ? rc : is_over(store, v);
}

/* From the start of each line and whatever is locked; registers nobody. */
int jobq__pgsql_is_any_ready(pgsql_store *store, const jobq_slice *queues, size_t count,
                             bool *ready_out)
{
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_array(&p, PG_TEXT, count);
    for (size_t i = 0; i < count; i++)
        jobq__pgsql_put_slice(&p, queues[i]);
    jobq__pgsql_end(&p);
    jobq__pgsql_null(&p, PG_INT8_ARRAY);
    jobq__pgsql_null(&p, PG_INT8);
    jobq__pgsql_int(&p, 0);
    jobq__pgsql_int(&p, 0);
    rc = jobq__pgsql_run(store, ST_LOOK, LOOK, &p, false, &res);
    if (rc < 0)
        return rc;
    *ready_out = jobq__pgsql_get(res, 0, 1) != 0;
    PQclear(res);
    return 0;
}

/* ---- notifications --------------------------------------------------------------------------- */

static int listen(pgsql_store *store)
{
    char sql[96];

    if (store->pooled || store->listening)
        return 0;
    snprintf(sql, sizeof(sql), "LISTEN \"%s\"", store->channel);
    store->deadline_us = jobq__clock_mono_us() + store->read_ms * 1000;
    store->listening = jobq__pgsql_command(store, sql) == 0;
    return store->listening ? 0 : jobq__error_code();
}

static bool concerns(const waiting *v, const char *text)
{
    const jobq_wait *w = v->w;

    if (text[0] == JOB_MARK)
        return strcmp(v->job, text) == 0;
    for (size_t i = 0; i < w->queue_count; i++)
        if (jobq__slice_equal(w->queues[i], jobq__slice_text(text)))
            return true;
    return false;
}

typedef struct {
    bool ready, earlier, control;
} notes;

/* What has arrived. */
static notes drain(pgsql_store *store, const waiting *v)
{
    notes seen = {false, false, false};
    PGnotify *note;

    while ((note = PQnotifies(store->conn)) != NULL) {
        const char *text = note->extra;

        if (text[0] == 'c') {
            seen.control = true;
        } else if (text[0] && concerns(v, text + 1)) {
            seen.ready |= text[0] == 'r';
            seen.earlier |= text[0] == 'd';
        }
        PQfreemem(note);
    }
    return seen;
}

/* ---- the wait -------------------------------------------------------------------------------- */

/* How long to be deaf after having been told in vain: none at first, then so that a worker stays
 * quiet while others take what all are told of. */
static int64_t deaf_until_us(const pgsql_store *store)
{
    return store->idle_since_us + (store->futile <= 8 ? 0 : store->futile <= 40 ? 1000 : 5000);
}

static int64_t longest_gap_ms(const jobq_wait *w)
{
    return w->control && w->poll_ms > CONTROL_MS ? CONTROL_MS : w->poll_ms;
}

static void plan_next(const pgsql_store *store, waiting *v)
{
    int64_t now_us = jobq__clock_mono_us();

    while (v->step < LOOKS && store->registered_us + look_again_us[v->step] <= now_us)
        v->step++;
    if (!store->listening) {
        v->look_us = now_us + jobq__poll_gap(&v->poll_ms, longest_gap_ms(v->w)) * 1000;
    } else if (v->step < LOOKS) {
        v->look_us = store->registered_us + look_again_us[v->step++];
    } else {
        v->look_us = now_us + (v->job[0] ? JOB_LOOK_US : SAFETY_US);
    }
}

static int poll_once(const pgsql_store *store, const waiting *v, struct pollfd fds[2])
{
    int64_t now_us = jobq__clock_mono_us(), allowed_us = deaf_until_us(store);
    int64_t until = v->look_us < v->due_us ? v->look_us : v->due_us;
    bool masked = now_us < allowed_us || !store->listening;

    until = v->end_us < until ? v->end_us : until;
    until = masked && store->listening && allowed_us < until ? allowed_us : until;
    fds[0] = (struct pollfd){.fd = v->w->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = masked ? -1 : PQsocket(store->conn), .events = POLLIN};
    return jobq__poll_us(fds, 2, until - now_us);
}

enum { ROUND_AGAIN, ROUND_LOOK, ROUND_WOKEN, ROUND_END, ROUND_JOBS, ROUND_TOLD };

/* One round after a fruitless look. */
static int wait_round(pgsql_store *store, const waiting *v)
{
    struct pollfd fds[2];
    notes seen = {false, false, false};
    int64_t now_us;

    if (poll_once(store, v, fds) < 0)
        return jobq__refuse_wait("postgresql");
    if (fds[0].revents)
        return ROUND_WOKEN;
    if (fds[1].revents) {
        if (!PQconsumeInput(store->conn) || PQstatus(store->conn) == CONNECTION_BAD)
            return jobq__pgsql_broken(store, false);
        seen = drain(store, v);
    }
    now_us = jobq__clock_mono_us();
    store->futile += seen.ready;
    if (seen.ready || now_us >= v->due_us)
        return ROUND_JOBS;
    if (seen.control && v->w->control)
        return ROUND_TOLD;
    if (seen.earlier || now_us >= v->look_us)
        return ROUND_LOOK;
    return now_us >= v->end_us ? ROUND_END : ROUND_AGAIN;
}

/* An exchange has just found nothing, and pushes since then would have told us: no need to look. */
static bool trust_exchange(pgsql_store *store, waiting *v)
{
    int64_t now_us = jobq__clock_mono_us();

    if (v->job[0] || must_register(store, v) || !store->listening || store->empty_us == 0 ||
        is_told(store, v->w) ||
        store->empty_hash != hash_queues(v->w->queues, v->w->queue_count, false) ||
        now_us - store->registered_us < 2 * look_again_us[LOOKS - 1] ||
        now_us - store->empty_us > EMPTY_US || now_us >= store->empty_due_us)
        return false;
    v->due_us = store->empty_due_us;
    return true;
}

static const int answers[] = {[ROUND_WOKEN] = JOBQ_WAIT_WOKEN,
                              [ROUND_END] = JOBQ_WAIT_TIMEOUT,
                              [ROUND_JOBS] = JOBQ_WAIT_JOBS,
                              [ROUND_TOLD] = JOBQ_WAIT_CONTROL};

/* The look found something ready. When it did so before and the exchange then got nothing, somebody
 * has it locked: it is tried again after a while, without spinning. */
static int answer_look(pgsql_store *store, waiting *v)
{
    int rc = ROUND_JOBS;

    if (store->vain && is_told(store, v->w))
        return JOBQ_WAIT_CONTROL;
    store->look_answered = true;
    if (store->vain) {
        v->due_us = jobq__clock_mono_us() +
                    jobq__poll_gap(&store->vain_gap_ms, longest_gap_ms(v->w)) * 1000;
        v->look_us = INT64_MAX;
        do
            rc = wait_round(store, v);
        while (rc == ROUND_AGAIN || rc == ROUND_LOOK);
    }
    return rc < 0 ? rc : answers[rc];
}

static int wait_loop(pgsql_store *store, waiting *v)
{
    bool known = trust_exchange(store, v);

    for (;;) {
        int rc = known ? 0 : look(store, v);

        known = false;
        if (rc != 0)
            return rc == JOBQ_WAIT_JOBS ? answer_look(store, v) : rc;
        store->vain = false; /* what comes from now on is new */
        plan_next(store, v);
        do
            rc = wait_round(store, v);
        while (rc == ROUND_AGAIN);
        if (rc != ROUND_LOOK && rc != ROUND_TOLD)
            return rc < 0 ? rc : answers[rc];
    }
}

static void name_job(waiting *v)
{
    const jobq_slice id = v->w->job;

    if (id.p && id.n > 0 && id.n < sizeof(v->job) - 1) {
        v->job[0] = JOB_MARK;
        memcpy(v->job + 1, id.p, id.n);
    }
}

int jobq__pgsql_wait(void *handle, const jobq_wait *w)
{
    pgsql_store *store = handle;
    waiting v = {.w = w, .end_us = INT64_MAX, .due_us = INT64_MAX};
    int rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    name_job(&v);
    v.hash = hash_queues(w->queues, w->queue_count, true) ^
             (int64_t)jobq__pgsql_hash(0, jobq__slice_text(v.job));
    if (w->timeout_ms >= 0)
        v.end_us = jobq__clock_mono_us() + (w->timeout_ms < FAR_MS ? w->timeout_ms : FAR_MS) * 1000;
    rc = listen(store);
    if (rc == 0) {
        notes seen = drain(store, &v);

        if (seen.ready || seen.earlier || seen.control)
            store->empty_us = 0;
        rc = wait_loop(store, &v);
    }
    store->empty_us = 0;
    store->idle_since_us = jobq__clock_mono_us();
    return jobq__pgsql_leave(store, rc);
}
