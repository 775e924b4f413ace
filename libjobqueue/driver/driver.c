/* SPDX-License-Identifier: MIT
 *
 * The operations of the front: open on first use, notice forks, check what goes to a driver,
 * split what is too large for one call, and repeat an exchange job by job when the store refused
 * one value.
 */
#include "driver/driver.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "driver/store.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/once.h"
#include "util/str.h"

enum {
    ID_MAX = 128,
    QUEUE_MAX = 128,
    NAME_MAX_BYTES = 255,
    UNIQUE_MAX = 1024,
    STATEMENT_MAX = 65536,
    AUDIT_MAX = 1000,
    PRIORITY_MAX = 9
};

/* ---- the handle ------------------------------------------------------------------------------ */

void jobq__store_disconnect(jobq__store *store)
{
    if (!store->handle)
        return;
    if (store->stamp == jobq__process_stamp())
        store->driver->close(store->handle);
    else
        store->driver->forget(store->handle); /* the parent's (rule K4) */
    store->handle = NULL;
    store->schema_done = false;
}

void jobq__store_abandon(jobq__store *store)
{
    store->handle = NULL;
    store->schema_done = false;
}

bool jobq__store_is_open(const jobq__store *store)
{
    return store->handle && store->stamp == jobq__process_stamp();
}

void jobq__store_free(jobq__store *store)
{
    if (!store)
        return;
    jobq__store_disconnect(store);
    jobq__arena_free(&store->arena);
    jobq__free(store);
}

/* Before anything is connected to: a file that is not there is never a passing trouble. */
static int check_files(const jobq__store *store)
{
    const jobq_driver_config *config = &store->config;
    const char *const files[] = {config->ca, config->cert, config->key};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] && access(files[i], R_OK) != 0)
            return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, store->driver->name, errno,
                                          "%s: cannot read %s: %s", store->driver->name, files[i],
                                          strerror(errno));
    return 0;
}

static int open_handle(jobq__store *store)
{
    int rc;

    if (store->handle && store->stamp == jobq__process_stamp())
        return 0;
    jobq__store_disconnect(store);
    rc = check_files(store);
    rc = rc ? rc : store->driver->open(&store->config, &store->handle);
    if (rc < 0)
        return rc;
    store->stamp = jobq__process_stamp();
    return 0;
}

/* Open, with the schema in place: what every operation but `schema` begins with. */
static int ready(jobq__store *store)
{
    int rc = open_handle(store);

    if (rc < 0 || store->schema_done)
        return rc;
    if (store->config.migrate)
        rc = store->driver->schema(store->handle);
    store->schema_done = rc == 0;
    return rc;
}

int jobq__store_schema(jobq__store *store)
{
    int rc = open_handle(store);

    if (rc == 0)
        rc = store->driver->schema(store->handle);
    if (rc == 0)
        store->schema_done = true;
    return rc;
}

/* ---- push ------------------------------------------------------------------------------------ */

static int check_text(const char *what, jobq_slice s, size_t min, size_t max)
{
    if ((s.p || min == 0) && s.n >= min && s.n <= max)
        return 0;
    return jobq__error_set_subject(JOBQ_EINVAL, what, strlen(what),
                                   "the %s has %zu byte%s (allowed: %zu to %zu)", what, s.n,
                                   jobq__plural((int64_t)s.n), min, max);
}

/* What a store cannot keep is refused, not dropped. */
static int check_features(const jobq_driver *driver, const jobq_push *item)
{
    if (item->unique.p && !(driver->features & JOBQ_FEATURE_UNIQUE))
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s store has no unique keys", driver->name);
    if (item->guard && !(driver->features & JOBQ_FEATURE_EFFECT))
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s store has no guards", driver->name);
    if (item->priority && !(driver->features & JOBQ_FEATURE_PRIORITY))
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s store has no priorities", driver->name);
    return 0;
}

static int check_queue(jobq_slice queue)
{
    return check_text("queue", queue, 1, QUEUE_MAX + (jobq__queue_is_hidden(queue) ? 1 : 0));
}

static int check_push(const jobq_driver *driver, const jobq_push *item)
{
    int rc = check_text("id", item->id, 1, ID_MAX);

    rc = rc ? rc : check_queue(item->queue);
    rc = rc ? rc : check_text("name", item->name, 1, NAME_MAX_BYTES);
    rc = rc ? rc : check_text("unique", item->unique, item->unique.p ? 1 : 0, UNIQUE_MAX);
    rc = rc ? rc : check_features(driver, item);
    if (rc)
        return rc;
    if (item->priority > PRIORITY_MAX)
        return jobq__error_set(JOBQ_EINVAL, "priority %d is out of range (allowed: 0 to %d)",
                               item->priority, PRIORITY_MAX);
    if (item->version < 1)
        return jobq__error_set(JOBQ_EINVAL, "version %d is out of range (allowed: 1 and above)",
                               (int)item->version);
    if (item->body.n > driver->max_body || item->header.n > driver->max_body)
        return jobq__error_set(
            JOBQ_ELIMIT, "the body has %zu byte%s, the %s driver takes at most %zu", item->body.n,
            jobq__plural((int64_t)item->body.n), driver->name, driver->max_body);
    return 0;
}

int jobq__store_push(jobq__store *store, jobq_push *items, size_t n)
{
    size_t max = store->driver->max_batch, done = 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_push(store->driver, &items[i]);
    if (rc == 0)
        rc = ready(store);
    while (rc == 0 && done < n) {
        const size_t part = n - done < max ? n - done : max;

        rc = store->driver->push(store->handle, items + done, part);
        done += rc == 0 ? part : 0;
    }
    for (; done < n; done++)
        items[done].result = rc;
    return rc;
}

/* ---- exchange -------------------------------------------------------------------------------- */

/* A part of an exchange: some of its settlements, and the reservation when `want` is not 0. */
static int exchange_part(jobq__store *store, jobq_exchange *x, jobq_settlement *settle, size_t n,
                         size_t want)
{
    jobq_exchange part = *x;
    int rc;

    part.settle = settle;
    part.settle_count = n;
    part.want = want;
    part.queue_count = want ? x->queue_count : 0;
    part.exhausted = part.passed_by = false;
    rc = store->driver->exchange(store->handle, &part);
    x->now_ms = part.now_ms;
    x->next_due_ms = part.next_due_ms;
    x->control = part.control;
    x->settled = part.settled;
    x->exhausted = part.exhausted;
    x->passed_by = part.passed_by;
    for (size_t i = 0; rc < 0 && !part.settled && i < n; i++)
        settle[i].result = JOBQ__UNANSWERED;
    return rc;
}

/* One settlement alone; the last time without the texts that may be the cause. */
static int settle_alone(jobq__store *store, jobq_exchange *x, jobq_settlement *settlement)
{
    jobq_settlement bare = *settlement;
    int rc = exchange_part(store, x, settlement, 1, 0);

    if (rc != JOBQ_EINVAL)
        return rc;
    memset(&bare.error, 0, sizeof(bare.error));
    memset(&bare.history, 0, sizeof(bare.history));
    rc = exchange_part(store, x, &bare, 1, 0);
    settlement->result = rc == JOBQ_EINVAL ? JOBQ_EINVAL : bare.result;
    return rc == JOBQ_EINVAL ? 0 : rc;
}

static int settle_one_by_one(jobq__store *store, jobq_exchange *x, jobq_settlement *settle,
                             size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = settle_alone(store, x, &settle[i]);
    if (rc == 0)
        jobq__error_clear(); /* what was refused stands in the results */
    return rc;
}

static int settle_part(jobq__store *store, jobq_exchange *x, jobq_settlement *settle, size_t n,
                       size_t want)
{
    int rc = exchange_part(store, x, settle, n, want);

    if (rc != JOBQ_EINVAL || n == 0)
        return rc;
    rc = settle_one_by_one(store, x, settle, n);
    if (rc == 0 && want)
        rc = exchange_part(store, x, NULL, 0, want);
    return rc;
}

static int check_exchange(const jobq_exchange *x)
{
    int rc = check_text("worker", x->worker, 1, ID_MAX);

    for (size_t i = 0; i < x->queue_count && rc == 0; i++)
        rc = check_queue(x->queues[i]);
    if (rc == 0 && x->lease_ms <= 0)
        rc = jobq__error_set(JOBQ_EINVAL, "lease %lld ms is out of range (allowed: above 0)",
                             (long long)x->lease_ms);
    return rc;
}

static bool is_answered(const jobq_exchange *x)
{
    for (size_t i = 0; i < x->settle_count; i++)
        if (x->settle[i].result == JOBQ__UNANSWERED)
            return false;
    return true;
}

int jobq__store_exchange(jobq__store *store, jobq_exchange *x)
{
    size_t max = store->driver->max_batch, done = 0, left, want;
    int rc = check_exchange(x);

    for (size_t i = 0; i < x->settle_count; i++)
        x->settle[i].result = JOBQ__UNANSWERED;
    if (rc == 0)
        rc = ready(store);
    for (; rc == 0 && x->settle_count - done > max; done += max)
        rc = settle_part(store, x, x->settle + done, max, 0);
    left = x->settle_count - done;
    want = x->queue_count == 0 || left >= max ? 0 : x->want < max - left ? x->want : max - left;
    if (rc == 0)
        rc = settle_part(store, x, x->settle + done, left, want);
    x->settled = rc == 0 || is_answered(x);
    return rc;
}

/* ---- the rest passes through ----------------------------------------------------------------- */

int jobq__store_renew(jobq__store *store, jobq_renewal *r)
{
    int rc = check_text("worker", r->worker, 1, ID_MAX);

    if (rc == 0 && r->lease_ms <= 0)
        rc = jobq__error_set(JOBQ_EINVAL, "lease %lld ms is out of range (allowed: above 0)",
                             (long long)r->lease_ms);
    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->renew(store->handle, r);
}

int jobq__store_leave(jobq__store *store, jobq_slice worker)
{
    int rc = ready(store);

    return rc ? rc : store->driver->leave(store->handle, worker);
}

int jobq__store_held(jobq__store *store, jobq_slice worker, jobq_batch *out)
{
    int rc = ready(store);

    return rc ? rc : store->driver->held(store->handle, worker, out);
}

int jobq__store_workers(jobq__store *store, jobq_batch *out)
{
    int rc = ready(store);

    return rc ? rc : store->driver->workers(store->handle, out);
}

int jobq__store_wait(jobq__store *store, const jobq_wait *w)
{
    int rc = ready(store);

    return rc ? rc : store->driver->wait(store->handle, w);
}

int jobq__store_maintain(jobq__store *store, jobq_maintenance *m)
{
    int rc = ready(store);

    return rc ? rc : store->driver->maintain(store->handle, m);
}

int jobq__store_find(jobq__store *store, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    int rc = ready(store);

    return rc ? rc : store->driver->find(store->handle, queue, id, out);
}

int jobq__store_list(jobq__store *store, jobq_listing *l)
{
    int rc = 0;

    if (l->limit < 1 || l->state > 4)
        rc = jobq__error_set(JOBQ_EINVAL,
                             "a list of limit %zu and state %d "
                             "(allowed: limit 1 and above, state 0 to 4)",
                             l->limit, l->state);
    else if (l->state != 4 && !l->queue.p)
        rc = jobq__error_set(JOBQ_EINVAL, "a list of jobs that are not dead needs a queue");
    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->list(store->handle, l);
}

int jobq__store_counts(jobq__store *store, jobq_slice queue, jobq_counts *counts_out)
{
    int rc = ready(store);

    return rc ? rc : store->driver->counts(store->handle, queue, counts_out);
}

int jobq__store_queues(jobq__store *store, jobq_batch *out)
{
    jobq_record *before = out->last, **link;
    int rc = ready(store);

    rc = rc ? rc : store->driver->queues(store->handle, out);
    if (rc < 0)
        return rc;
    for (link = before ? &before->next : &out->first; *link;)
        if (jobq__queue_is_hidden((*link)->queue)) {
            *link = (*link)->next;
            out->count--;
        } else {
            before = *link;
            link = &before->next;
        }
    out->last = before;
    return 0;
}

int jobq__store_mend(jobq__store *store, jobq_mending *m)
{
    size_t max = store->driver->max_batch;
    int rc = ready(store);

    for (size_t done = 0; done < m->count && rc == 0; done += max) {
        jobq_mending part = *m;

        part.ids += done;
        part.results += done;
        part.count = m->count - done < max ? m->count - done : max;
        rc = store->driver->mend(store->handle, &part);
    }
    return rc;
}

int jobq__store_control(jobq__store *store, jobq_control *c)
{
    int rc = c->queue.p ? check_text("queue", c->queue, 1, QUEUE_MAX) : 0;

    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->control(store->handle, c);
}

int jobq__store_cancel(jobq__store *store, jobq_cancelling *c)
{
    int rc = check_text("id", c->id, 1, ID_MAX);

    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->cancel(store->handle, c);
}

int jobq__store_clear(jobq__store *store, jobq_clearing *c)
{
    int rc = check_text("queue", c->queue, 1, QUEUE_MAX);

    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->clear(store->handle, c);
}

int jobq__store_capacity(jobq__store *store, jobq_limit *l)
{
    int rc = check_text("queue", l->queue, 1, QUEUE_MAX);

    if (rc == 0 && l->value < 0)
        rc = jobq__error_set(JOBQ_EINVAL, "capacity %lld is out of range (allowed: 0 and above)",
                             (long long)l->value);
    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->capacity(store->handle, l);
}

int jobq__store_book(jobq__store *store, const jobq_minute *minutes, size_t n)
{
    int rc = n ? ready(store) : 0;

    return rc || n == 0 ? rc : store->driver->book(store->handle, minutes, n);
}

int jobq__store_minutes(jobq__store *store, jobq_minutes *m)
{
    int rc = check_text("queue", m->queue, 1, QUEUE_MAX);

    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->minutes(store->handle, m);
}

int jobq__store_audit(jobq__store *store, jobq_audit *a)
{
    int rc = check_queue(a->queue);

    if (rc == 0 && (a->limit < 1 || a->limit > AUDIT_MAX))
        rc = jobq__error_set(JOBQ_EINVAL, "an audit of limit %zu (allowed: 1 to %d)", a->limit,
                             AUDIT_MAX);
    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->audit(store->handle, a);
}

int jobq__store_examine(jobq__store *store, jobq_examination *e)
{
    int rc = open_handle(store); /* a schema that is missing is a remark */

    return rc ? rc : store->driver->examine(store->handle, e);
}

int jobq__store_effect(jobq__store *store, jobq_effect *e)
{
    int rc = check_text("effect", e->statement.text, 1, STATEMENT_MAX);

    if (rc == 0 && !(store->driver->features & JOBQ_FEATURE_EFFECT))
        rc = jobq__error_set(JOBQ_EUNSUPPORTED, "the %s store carries out no statements",
                             store->driver->name);
    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->effect(store->handle, e);
}

int jobq__store_request(jobq__store *store, jobq_request *r)
{
    int rc = r->push ? check_push(store->driver, r->push) : 0;

    if (rc == 0 && !(store->driver->features & JOBQ_FEATURE_REQUEST))
        rc = jobq__error_set(JOBQ_EUNSUPPORTED,
                             "the %s store has no statements for transactions of others",
                             store->driver->name);
    rc = rc ? rc : ready(store);
    return rc ? rc : store->driver->request(store->handle, r);
}

int jobq__store_now(jobq__store *store, int64_t *now_ms_out)
{
    int rc = ready(store);

    return rc ? rc : store->driver->now(store->handle, now_ms_out);
}
