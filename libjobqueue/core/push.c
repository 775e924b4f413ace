/* SPDX-License-Identifier: MIT
 *
 * Sending messages. One message costs no allocation once the handle and the message are warm; many
 * are judged singly and stored together (rules B1, B3, B5, B6).
 */
#include <string.h>

#include "core/limit.h"
#include "core/message.h"
#include "core/statement.h"
#include "util/alloc.h"
#include "util/str.h"

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

/* ---- refusals -------------------------------------------------------------------------------- */

static int word_id(const jobq_message *m)
{
    return jobq__error_set_subject(JOBQ_EEXISTS, m->id, strlen(m->id),
                                   "a job with the id \"%s\" exists already", m->id);
}

/* on_duplicate=error: m->id is the holder's by now. */
static int word_key(const jobq_message *m, const jobq_push *item)
{
    return jobq__error_set_subject(JOBQ_EEXISTS, m->id, strlen(m->id),
                                   "job \"%s\" of queue \"%.*s\" has the unique key \"%.*s\"",
                                   m->id, (int)item->queue.n, (const char *)item->queue.p,
                                   (int)item->unique.n, (const char *)item->unique.p);
}

static int word_refusal(jobq_queue *queue, const jobq_message *m, const jobq_push *item,
                        jobq__full *full)
{
    switch (item->result) {
    case JOBQ_EEXISTS:
        return word_id(m);
    case JOBQ_EFULL:
        return jobq__limit_refuse(queue, item->queue, full);
    case JOBQ_EGUARD:
        return jobq__error_set_subject(JOBQ_EGUARD, m->id, strlen(m->id),
                                       "the guard of job \"%s\" was not true; nothing was stored",
                                       m->id);
    case JOBQ_ELIMIT:
        return jobq__error_set(JOBQ_ELIMIT,
                               "job \"%s\" is too large for the store: its body has %zu byte%s",
                               m->id, item->body.n, jobq__plural((int64_t)item->body.n));
    default:
        return jobq__error_set(item->result, "job \"%s\" was refused by the store", m->id);
    }
}

static int conclude_item(jobq_queue *queue, jobq_message *m, const jobq_push *item,
                         jobq__full *full)
{
    const jobq__settings *s = &m->options->s;

    jobq__error_clear();
    if (item->result == 0)
        return conclude(queue, m, 0);
    if (item->result == JOBQ_EEXISTS && s->idempotent)
        return conclude(queue, m, 1);
    if (item->result < 0)
        return conclude(queue, m, word_refusal(queue, m, item, full));
    memcpy(m->id, item->holder, sizeof(item->holder));
    if (item->result == 1 && s->on_duplicate == JOBQ__ON_DUPLICATE_ERROR)
        return conclude(queue, m, word_key(m, item));
    return conclude(queue, m, item->result);
}

/* ---- one ------------------------------------------------------------------------------------- */

/* The whole call failed. An answer lost on the way is about this job: its id goes along. */
static int conclude_failure(jobq_message *m, int rc)
{
    jobq__error_save(&m->error);
    memcpy(m->error.subject, m->id, strlen(m->id) + 1);
    m->result = rc;
    return jobq__error_restore(&m->error);
}

static int prepare(jobq_queue *queue, jobq_message *m, jobq_push *item)
{
    return jobq__message_prepare(m, jobq_queue_default(queue), queue->conf->s.max_payload, item);
}

static int apply_limit(jobq_queue *queue, const jobq_push *item)
{
    return queue->conf->s.capacity > 0 ? jobq__limit_apply(queue, item->queue) : 0;
}

int jobq_queue_push(jobq_queue *queue, jobq_message *m)
{
    jobq__full full = {0};
    jobq_push item;
    int rc;

    jobq__error_clear();
    if (!queue || !m)
        return jobq__error_set(JOBQ_EINVAL, "a queue and a message are needed, got NULL");
    rc = prepare(queue, m, &item);
    if (rc < 0)
        return conclude(queue, m, rc);
    rc = apply_limit(queue, &item);
    rc = jobq__queue_note(queue, rc < 0 ? rc : jobq__store_push(queue->store, &item, 1));
    return rc < 0 ? conclude_failure(m, rc) : conclude_item(queue, m, &item, &full);
}

int jobq_queue_push_statement(jobq_queue *queue, jobq_message *m, int placeholders,
                              const jobq_statement **statement_out)
{
    jobq_push item;
    jobq_request request = {.push = &item};
    int rc;

    jobq__error_clear();
    if (!queue || !m || !statement_out)
        return jobq__error_set(JOBQ_EINVAL,
                               "a queue, a message and a place for the statement are needed");
    rc = jobq__placeholders_check(placeholders);
    if (rc < 0 || (rc = prepare(queue, m, &item)) < 0)
        return conclude(queue, m, rc);
    jobq__batch_reset(&m->scratch);
    request.out = &m->scratch;
    rc = jobq__queue_note(queue, jobq__store_request(queue->store, &request));
    if (rc == 0)
        rc = jobq__statement_adapt(&m->scratch.arena, placeholders, &request.statement);
    if (rc < 0)
        return conclude_failure(m, rc);
    m->statement = request.statement;
    *statement_out = &m->statement;
    return 0;
}

/* ---- many ------------------------------------------------------------------------------------ */

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
        int rc = prepare(queue, m[i], &queue->items[count]);

        if (rc < 0)
            conclude(queue, m[i], rc);
        else
            count++;
    }
    return count;
}

static int send(jobq_queue *queue, size_t count)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = apply_limit(queue, &queue->items[i]);
    if (rc == 0)
        return jobq__store_push(queue->store, queue->items, count);
    for (size_t i = 0; i < count; i++)
        queue->items[i].result = rc;
    return rc;
}

/* The store found something wrong with one of several (a guard's SQL), and stored none of that
 * call's: each is asked for by itself, so that the others are stored and the words are about the
 * right one (rule B3). */
static bool is_about_one(int rc, size_t n)
{
    return rc == JOBQ_EINVAL && n > 1;
}

static int push_again(jobq_queue *queue, jobq_message *m, jobq_push *item, jobq__full *full)
{
    int rc;

    jobq__error_clear();
    rc = jobq__queue_note(queue, jobq__store_push(queue->store, item, 1));
    return rc < 0 ? conclude_failure(m, rc) : conclude_item(queue, m, item, full);
}

/* What a failed call has stored before it failed is stored all the same. */
static int64_t conclude_all(jobq_queue *queue, jobq_message *const *m, size_t n, int rc)
{
    struct jobq_error failure;
    jobq_push *item = queue->items;
    jobq__full full = {0};
    int64_t stored = 0;

    jobq__error_save(&failure);
    for (size_t i = 0; i < n; i++) {
        if (m[i]->result < 0)
            continue;
        if (is_about_one(rc, n) && item->result == rc) {
            stored += push_again(queue, m[i], item, &full) == 0;
        } else if (rc < 0 && item->result == rc) {
            jobq__error_restore(&failure);
            conclude_failure(m[i], rc);
        } else {
            stored += conclude_item(queue, m[i], item, &full) == 0;
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
        rc = jobq__queue_note(queue, send(queue, count));
    stored = conclude_all(queue, m, n, rc);
    if (rc < 0 && !is_about_one(rc, n))
        return rc;
    jobq__error_clear();
    return (int)stored;
}
