/* SPDX-License-Identifier: MIT
 *
 * The queue handle: making it, its names and counters. Pushing is in push.c, reserving in
 * reserve.c, looking in inspect.c, dead.c and stats.c.
 */
#include "core/queue.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"

#define ROW(name, word) word,
const char *const jobq__counter_words[JOBQ__COUNTERS] = {JOBQ__COUNTER_LIST(ROW)};
#undef ROW

static int set_up(jobq_queue *queue, const char *dsn, const jobq_conf *conf)
{
    if (conf && conf->scope != JOBQ_SCOPE_CONNECTION)
        return jobq__error_set(JOBQ_EINVAL,
                               "the options of a queue must be options of the connection");
    queue->conf =
        conf ? jobq__conf_copy(conf) : jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    if (!queue->conf)
        return jobq__error_nomem();
    return jobq__store_new(dsn, queue->conf, &queue->store);
}

int jobq_queue_new(const char *dsn, const jobq_conf *conf, jobq_queue **queue_out)
{
    jobq_queue *queue;
    int rc;

    jobq__error_clear();
    if (!queue_out)
        return jobq__error_set(JOBQ_EINVAL, "there is no place for the queue: queue_out is NULL");
    queue = jobq__zalloc(sizeof(*queue));
    rc = queue ? set_up(queue, dsn, conf) : jobq__error_nomem();
    if (rc < 0) {
        jobq_queue_free(queue);
        return rc;
    }
    *queue_out = queue;
    return 0;
}

int jobq_queue_twin(const jobq_queue *queue, jobq_queue **twin_out)
{
    jobq_queue *twin;
    int rc;

    jobq__error_clear();
    if (!queue || !twin_out)
        return jobq__error_set(JOBQ_EINVAL, "a twin needs a queue and a place for itself");
    twin = jobq__zalloc(sizeof(*twin));
    if (twin)
        twin->conf = jobq__conf_copy(queue->conf);
    rc = twin && twin->conf ? jobq__store_twin(queue->store, twin->conf, &twin->store)
                            : jobq__error_nomem();
    if (rc < 0) {
        jobq_queue_free(twin);
        return rc;
    }
    *twin_out = twin;
    return 0;
}

void jobq_queue_free(jobq_queue *queue)
{
    if (!queue)
        return;
    if (queue->store) {
        jobq__queue_book_all(queue);
        jobq__queue_leave_spare(queue);
    }
    jobq__store_free(queue->store);
    jobq__tally_free(&queue->tally);
    jobq__free(queue->limited.names);
    jobq_conf_free(queue->conf);
    jobq__batch_free(&queue->batch);
    jobq__batch_free(&queue->pauses.batch);
    jobq__free(queue->items);
    jobq__free(queue);
}

/* Numbers to look at: their trouble is nobody's error, and no connection is opened for them. */
static bool book(jobq_queue *queue)
{
    struct jobq_error before;
    int rc;

    if (!jobq__store_is_open(queue->store))
        return false;
    jobq__error_save(&before);
    rc = jobq__tally_book(&queue->tally, queue->store);
    jobq__error_restore(&before);
    return rc == 0;
}

void jobq__queue_book(jobq_queue *queue)
{
    if (jobq__tally_is_due(&queue->tally, jobq__clock_mono_ms()))
        book(queue);
}

/* A write takes only so many. */
void jobq__queue_book_all(jobq_queue *queue)
{
    while (jobq__tally_at(&queue->tally, jobq__clock_mono_ms()) && book(queue)) {
    }
}

/* A record left behind would lapse by itself; leaving is only tidier, so its error is dropped. */
void jobq__queue_leave_spare(jobq_queue *queue)
{
    struct jobq_error before;

    if (queue->spare.id[0] && queue->spare.stamp == jobq__process_stamp() &&
        jobq__clock_mono_ms() < queue->spare.until_mono_ms) {
        jobq__error_save(&before);
        jobq__store_leave(queue->store, jobq__slice_text(queue->spare.id));
        jobq__error_restore(&before);
    }
    queue->spare.id[0] = '\0';
}

void jobq_queue_disconnect(jobq_queue *queue)
{
    if (!queue)
        return;
    jobq__queue_book_all(queue);
    jobq__queue_leave_spare(queue);
    jobq__store_disconnect(queue->store);
}

const char *jobq_queue_driver(const jobq_queue *queue)
{
    return jobq__store_driver(queue->store)->name;
}

const char *jobq_queue_connection(const jobq_queue *queue)
{
    return jobq__store_connection(queue->store);
}

const char *jobq_queue_dsn(const jobq_queue *queue)
{
    return jobq__store_shown_dsn(queue->store);
}

const char *jobq_queue_default(const jobq_queue *queue)
{
    return queue->conf->s.queue ? queue->conf->s.queue : "default";
}

/* ---- counters -------------------------------------------------------------------------------- */

int jobq__queue_note(jobq_queue *queue, int rc)
{
    switch (rc) {
    case JOBQ_ECONNECT:
    case JOBQ_EIO:
    case JOBQ_ETIMEOUT:
    case JOBQ_EPROTO:
    case JOBQ_EBUSY:
    case JOBQ_EUNKNOWN:
        queue->counters[JOBQ__COUNT_STORE_FAILURES]++;
        break;
    case JOBQ_ELEASE:
        queue->counters[JOBQ__COUNT_LEASE_REJECTED]++;
        break;
    default:
        break;
    }
    return rc;
}

bool jobq__queue_is_doubtful(int rc)
{
    return rc == JOBQ_EUNKNOWN || rc == JOBQ_EIO || rc == JOBQ_ETIMEOUT || rc == JOBQ_EPROTO;
}

int64_t jobq_queue_counter(const jobq_queue *queue, size_t i, const char **name_out)
{
    if (name_out)
        *name_out = i < JOBQ__COUNTERS ? jobq__counter_words[i] : NULL;
    return queue && i < JOBQ__COUNTERS ? queue->counters[i] : 0;
}

/* ---- the store as a whole -------------------------------------------------------------------- */

int jobq_queue_migrate(jobq_queue *queue)
{
    jobq__error_clear();
    return jobq__queue_note(queue, jobq__store_schema(queue->store));
}

int64_t jobq_queue_ping(jobq_queue *queue)
{
    int64_t started, now_ms, took;
    int rc;

    jobq__error_clear();
    rc = jobq__store_now(queue->store, &now_ms); /* the first call may have to connect */
    started = jobq__clock_mono_us();
    if (rc == 0)
        rc = jobq__store_now(queue->store, &now_ms);
    took = jobq__clock_mono_us() - started;
    return rc < 0 ? jobq__queue_note(queue, rc) : took;
}
