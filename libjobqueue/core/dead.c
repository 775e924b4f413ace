/* SPDX-License-Identifier: MIT
 *
 * Dead jobs: listing, putting back, forgetting. Each job is one atomic step of the store, pages are
 * bounded, and a run that was cut short can simply be started again (rule F4).
 */
#include "core/inspect.h"
#include "core/retry.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/str.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 500 };

static int check_reason(const char *word, uint8_t *reason_out)
{
    int reason = word ? jobq__reason_parse(word) : 0;

    if (word && !reason)
        return jobq__error_set_subject(
            JOBQ_EINVAL, "reason", 6,
            "reason must be attempts_exhausted, timed_out, crashed, deadline_passed, expired, "
            "undecodable, unknown_name, unsupported_version, failed_by_handler, not_retryable, "
            "cancelled or released_too_often, got \"%.64s\"",
            word);
    *reason_out = (uint8_t)reason;
    return 0;
}

static int check_filter(const jobq_filter *f)
{
    int rc = 0;

    if (f->size != sizeof(*f))
        return jobq__error_set(JOBQ_EINVAL,
                               "filter: size must be sizeof(jobq_filter) = %zu, got %zu",
                               sizeof(*f), f->size);
    if (f->older_than_ms < 0)
        return jobq__error_set_subject(JOBQ_EINVAL, "older_than", 10,
                                       "older_than must be 0 or more seconds, got %lld ms",
                                       (long long)f->older_than_ms);
    if (f->queue)
        rc = jobq__check_queue(f->queue, strlen(f->queue));
    if (rc == 0 && f->name)
        rc = jobq__check_name(f->name, strlen(f->name));
    return rc;
}

/* filter NULL = any dead job. */
static int listing_of(const jobq_filter *filter, size_t limit, jobq_listing *l)
{
    int rc;

    *l = (jobq_listing){.state = JOBQ_DEAD, .limit = limit};
    if (!filter)
        return 0;
    rc = check_filter(filter);
    if (rc == 0)
        rc = check_reason(filter->reason, &l->reason);
    l->queue = jobq__slice_text(filter->queue);
    l->name = jobq__slice_text(filter->name);
    l->older_than_ms = filter->older_than_ms;
    return rc;
}

int jobq_queue_dead(jobq_queue *queue, const jobq_filter *filter, size_t limit, const char *after,
                    jobq_list **list_out)
{
    jobq_listing l;
    int rc;

    jobq__error_clear();
    rc = jobq__list_check(limit);
    rc = rc < 0 ? rc : listing_of(filter, limit, &l);
    if (rc < 0)
        return rc;
    l.after = jobq__slice_text(after);
    return jobq__list_load(queue, &l, list_out);
}

/* ---- mending --------------------------------------------------------------------------------- */

typedef struct {
    jobq_queue *queue;
    int what;
    bool dry_run;
    int64_t done, skipped;
} mending;

static int check_what(int what)
{
    if (what == JOBQ_DEAD_RETRY || what == JOBQ_DEAD_FORGET)
        return 0;
    return jobq__error_set(JOBQ_EINVAL,
                           "what to do must be JOBQ_DEAD_RETRY or JOBQ_DEAD_FORGET, got %d", what);
}

/* A page of ids in one step of the store; results gets an answer for each. */
static int mend_ids(jobq_queue *queue, int what, const jobq_slice *ids, size_t n, bool dry_run,
                    int *results)
{
    jobq_mending m = {.what = what == JOBQ_DEAD_RETRY ? JOBQ_MEND_RETRY : JOBQ_MEND_FORGET,
                      .dry_run = dry_run,
                      .ids = ids,
                      .count = n,
                      .results = results};

    return jobq__queue_note(queue, jobq__store_mend(queue->store, &m));
}

/* An id, its place in the caller's list, and whether it stood there before. */
typedef struct {
    const char *id;
    size_t place;
    bool again;
} wanted;

static int by_id(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    const int order = strcmp(x->id, y->id);

    return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b)
{
    const wanted *x = a, *y = b;

    return x->place < y->place ? -1 : x->place > y->place;
}

/* In the caller's order; NULL: no memory. */
static wanted *number_ids(const char *const *ids, size_t n)
{
    wanted *list = jobq__zalloc((n ? n : 1) * sizeof(*list));

    if (!list)
        return NULL;
    for (size_t i = 0; i < n; i++)
        list[i] = (wanted){.id = ids[i] ? ids[i] : "", .place = i};
    qsort(list, n, sizeof(*list), by_id);
    for (size_t i = 1; i < n; i++)
        list[i].again = strcmp(list[i - 1].id, list[i].id) == 0;
    qsort(list, n, sizeof(*list), by_place);
    return list;
}

/* A page from *at on. */
static int mend_some(mending *m, const wanted *list, size_t n, size_t *at, int *results)
{
    jobq_slice ids[PAGE];
    int answers[PAGE];
    size_t places[PAGE], count = 0;
    int rc;

    for (; *at < n && count < PAGE; ++*at) {
        if (!list[*at].again) {
            places[count] = *at;
            ids[count++] = jobq__slice_text(list[*at].id);
        } else if (results) {
            results[*at] = 0;
        }
    }
    rc = mend_ids(m->queue, m->what, ids, count, m->dry_run, answers);
    for (size_t i = 0; i < count && rc == 0; i++) {
        m->done += answers[i] == 0;
        if (results)
            results[places[i]] = answers[i];
    }
    return rc;
}

int64_t jobq_queue_mend_ids(jobq_queue *queue, int what, const char *const *ids, size_t n,
                            bool dry_run, int *results)
{
    mending m = {.queue = queue, .what = what, .dry_run = dry_run};
    wanted *list;
    int rc;

    jobq__error_clear();
    if ((rc = check_what(what)) < 0)
        return rc;
    list = number_ids(ids, n);
    if (!list)
        return jobq__error_nomem();
    for (size_t at = 0; at < n && rc == 0;)
        rc = mend_some(&m, list, n, &at, results);
    jobq__free(list);
    return rc < 0 ? rc : m.done;
}

static int mend_page(mending *m, const jobq_batch *batch)
{
    jobq_slice ids[PAGE];
    int results[PAGE];
    size_t n = 0;
    int rc;

    for (const jobq_record *r = batch->first; r && n < PAGE; r = r->next)
        ids[n++] = r->id;
    rc = mend_ids(m->queue, m->what, ids, n, m->dry_run, results);
    for (size_t i = 0; i < n && rc == 0; i++) {
        m->done += results[i] == 0;
        /* not found: somebody else was faster */
        m->skipped += results[i] == JOBQ_EEXISTS || results[i] == JOBQ_ELIMIT;
    }
    return rc;
}

/* Pages go from the newest death to older ones, so jobs that die again meanwhile are not met twice.
 */
static int mend_pages(mending *m, jobq_listing *l, int (*progress)(void *payload, int64_t done),
                      void *payload)
{
    jobq_batch batch = {0}, before = {0};
    int rc;

    l->keys_only = true;
    do {
        jobq_batch old = before;

        before = batch; /* the cursor lies in it */
        batch = old;
        jobq__batch_reset(&batch);
        /* cppcheck-suppress autoVariables ; read inside of this function only */
        l->out = &batch;
        l->next = (jobq_slice){0};
        rc = jobq__queue_note(m->queue, jobq__store_list(m->queue->store, l));
        rc = rc < 0 ? rc : mend_page(m, &batch);
        l->after = l->next;
        if (rc == 0 && progress && progress(payload, m->done) != 0)
            rc = jobq__error_set(JOBQ_ECALLBACK, "stopped by the caller after %lld job%s",
                                 (long long)m->done, jobq__plural(m->done));
    } while (rc == 0 && l->after.p);
    jobq__batch_free(&batch);
    jobq__batch_free(&before);
    return rc;
}

int64_t jobq_queue_mend(jobq_queue *queue, int what, const jobq_filter *filter, bool dry_run,
                        int64_t *skipped_out, int (*progress)(void *payload, int64_t done),
                        void *payload)
{
    mending m = {.queue = queue, .what = what, .dry_run = dry_run};
    jobq_listing l;
    int rc;

    jobq__error_clear();
    rc = check_what(what);
    rc = rc < 0 ? rc : listing_of(filter, PAGE, &l);
    rc = rc < 0 ? rc : mend_pages(&m, &l, progress, payload);
    if (rc < 0)
        return rc;
    if (skipped_out)
        *skipped_out = m.skipped;
    jobq__error_clear();
    return m.done;
}
