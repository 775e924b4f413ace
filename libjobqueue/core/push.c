/* SPDX-License-Identifier: MIT
 *
 * Sending messages. One message costs no allocation once the handle and the message are warm; many
 * are judged singly and stored together (rules B1, B3, B5, B6).
 */
#include <string.h>

#include "core/message.h"
#include "util/alloc.h"

/* Writes down what became of a message; the thread's record holds the error when rc < 0. */
static int conclude(jobq_queue *queue, jobq_message *m, int rc)
{
    m->result = rc;
    if (rc == 0)
        queue->counters[JOBQ__COUNT_PUSHED]++;
    if (rc < 0) {
        queue->counters[JOBQ__COUNT_PUSH_REJECTED]++;
        jobq__error_save(&m->error);
    }
    return rc;
}

static int conclude_item(jobq_queue *queue, jobq_message *m, const jobq_push *item)
{
    jobq__error_clear();
    if (item->result == JOBQ_EEXISTS)
        jobq__error_set_subject(JOBQ_EEXISTS, m->id, strlen(m->id),
                                "a job with the id \"%s\" exists already", m->id);
    else if (item->result == JOBQ_ELIMIT)
        jobq__error_set(JOBQ_ELIMIT,
                        "job \"%s\" is too large for the store: its body has %zu bytes", m->id,
                        item->body.n);
    else if (item->result < 0)
        jobq__error_set(item->result, "job \"%s\" was refused by the store", m->id);
    else if (item->result == 1)
        memcpy(m->id, item->holder, sizeof(item->holder));
    return conclude(queue, m, item->result);
}

/* The whole call failed. An answer lost on the way is about this job: its id goes along. */
static int conclude_failure(jobq_message *m, int rc)
{
    jobq__error_save(&m->error);
    memcpy(m->error.subject, m->id, strlen(m->id) + 1);
    m->result = rc;
    return jobq__error_restore(&m->error);
}

int jobq_queue_push(jobq_queue *queue, jobq_message *m)
{
    jobq_push item;
    int rc;

    jobq__error_clear();
    if (!queue || !m)
        return jobq__error_set(JOBQ_EINVAL, "a queue and a message are needed, got NULL");
    rc = jobq__message_prepare(m, jobq_queue_default(queue), queue->conf->s.max_payload, &item);
    if (rc < 0)
        return conclude(queue, m, rc);
    rc = jobq__queue_note(queue, jobq__store_push(queue->store, &item, 1));
    return rc < 0 ? conclude_failure(m, rc) : conclude_item(queue, m, &item);
}

static int make_room(jobq_queue *queue, size_t n)
{
    jobq_push *items;

    if (n <= queue->item_room)
        return 0;
    items = n > SIZE_MAX / sizeof(*items) ? NULL : jobq__realloc(queue->items, n * sizeof(*items));
    if (!items)
        return jobq__error_nomem();
    queue->items = items;
    queue->item_room = n;
    return 0;
}

/* Fills items with the messages that pass; the others have their result. Returns how many. */
static size_t prepare_all(jobq_queue *queue, jobq_message *const *m, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        int rc = jobq__message_prepare(m[i], jobq_queue_default(queue), queue->conf->s.max_payload,
                                       &queue->items[count]);

        if (rc < 0)
            conclude(queue, m[i], rc);
        else
            count++;
    }
    return count;
}

/* What a failed call has stored before it failed is stored all the same. */
static int64_t conclude_all(jobq_queue *queue, jobq_message *const *m, size_t n, int rc)
{
    struct jobq_error failure;
    const jobq_push *item = queue->items;
    int64_t stored = 0;

    jobq__error_save(&failure);
    for (size_t i = 0; i < n; i++) {
        if (m[i]->result < 0)
            continue;
        if (rc < 0 && item->result == rc) {
            jobq__error_restore(&failure);
            conclude_failure(m[i], rc);
        } else {
            stored += conclude_item(queue, m[i], item) == 0;
        }
        item++;
    }
    return stored;
}

int jobq_queue_push_many(jobq_queue *queue, jobq_message *const *m, size_t n)
{
    size_t count;
    int64_t stored;
    int rc;

    jobq__error_clear();
    if (!queue || (n && !m) || n > INT32_MAX)
        return jobq__error_set(JOBQ_EINVAL, "a queue and 0 to 2147483647 messages are needed");
    for (size_t i = 0; i < n; i++)
        if (!m[i])
            return jobq__error_set(JOBQ_EINVAL, "message %zu is NULL", i);
    rc = make_room(queue, n);
    if (rc < 0)
        return rc;
    count = prepare_all(queue, m, n);
    jobq__error_clear();
    if (count)
        rc = jobq__queue_note(queue, jobq__store_push(queue->store, queue->items, count));
    stored = conclude_all(queue, m, n, rc);
    if (rc < 0)
        return rc;
    jobq__error_clear();
    return (int)stored;
}
