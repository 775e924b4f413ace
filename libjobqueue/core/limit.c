/* SPDX-License-Identifier: MIT
 *
 * Capacities (rule B4): setting them, the connection's option, and the words when a queue is full.
 */
#include <stdio.h>
#include <string.h>

#include "core/limit.h"
#include "util/alloc.h"
#include "util/error.h"

int jobq_queue_set_capacity(jobq_queue *queue, const char *name, size_t n, int64_t capacity)
{
    jobq_limit l = {.queue = jobq__slice(name, n), .value = capacity};
    int rc;

    jobq__error_clear();
    rc = jobq__check_queue(name, n);
    if (rc == 0 && (capacity < 0 || capacity > JOBQ__CAPACITY_MAX))
        rc = jobq__error_set_subject(JOBQ_EINVAL, "capacity", 8,
                                     "capacity must be a whole number from 0 (no limit) to "
                                     "1000000000000, got %lld",
                                     (long long)capacity);
    return rc < 0 ? rc : jobq__queue_note(queue, jobq__store_capacity(queue->store, &l));
}

/* ---- the option ------------------------------------------------------------------------------ */

static bool is_told(const jobq__limited *l, jobq_slice name)
{
    for (size_t i = l->count; i > 0; i--)
        if (jobq__slice_equal(jobq__slice_text(l->names[i - 1]), name))
            return true;
    return false;
}

/* Rather told twice than remembered without end. */
static int remember(jobq__limited *l, jobq_slice name)
{
    enum { MOST = 1024 };
    void *names;

    if (l->count == MOST)
        l->count = 0;
    if ((l->count & (l->count - 1)) == 0) { /* a power of two: it is full */
        names = jobq__realloc(l->names, (l->count ? l->count * 2 : 1) * sizeof(*l->names));
        if (!names)
            return jobq__error_nomem();
        l->names = names;
    }
    memcpy(l->names[l->count], name.p, name.n);
    l->names[l->count++][name.n] = '\0';
    return 0;
}

/* Nothing was sent of the job itself, and to set a capacity where none is may be done twice: not
 * the job's outcome is in doubt (rule B5). */
static int word_unconfirmed(jobq_slice name)
{
    struct jobq_error e;

    jobq__error_save(&e);
    return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, e.driver, e.native,
                                  "the capacity of queue \"%.*s\" was not confirmed, no job was "
                                  "sent: %s",
                                  (int)name.n, (const char *)name.p, e.message);
}

int jobq__limit_apply(jobq_queue *queue, jobq_slice name)
{
    jobq_limit l = {.queue = name, .value = queue->conf->s.capacity, .only_if_none = true};
    int rc;

    if (is_told(&queue->limited, name) || name.n >= JOBQ__QUEUE_SIZE)
        return 0;
    rc = jobq__store_capacity(queue->store, &l);
    if (rc == JOBQ_EUNKNOWN)
        return word_unconfirmed(name);
    return rc < 0 ? rc : remember(&queue->limited, name);
}

/* ---- full ------------------------------------------------------------------------------------ */

/* The store is asked again only when a queue is full, once per queue and call. A store that cannot
 * be asked now says nothing. */
static int64_t read_capacity(jobq_queue *queue, jobq_slice name, jobq__full *known)
{
    jobq_limit l = {.queue = name, .read = true};

    if (known->queue.p && jobq__slice_equal(known->queue, name))
        return known->capacity;
    known->queue = name;
    known->capacity = jobq__store_capacity(queue->store, &l) < 0 ? 0 : l.capacity;
    return known->capacity;
}

int jobq__limit_refuse(jobq_queue *queue, jobq_slice name, jobq__full *known)
{
    const int64_t capacity = read_capacity(queue, name, known);
    char limit[48] = "";
    struct jobq_error error;

    if (capacity > 0)
        snprintf(limit, sizeof(limit), " (capacity %lld)", (long long)capacity);
    jobq__error_set_subject(JOBQ_EFULL, name.p, name.n, "queue \"%.*s\" is full%s", (int)name.n,
                            (const char *)name.p, limit);
    jobq__error_save(&error);
    error.native = capacity;
    error.flags |= JOBQ__RETRYABLE;
    return jobq__error_restore(&error);
}
