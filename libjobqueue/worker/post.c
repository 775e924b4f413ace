/* SPDX-License-Identifier: MIT
 *
 * Events on their way to the next free child (rule M1): a bounded queue, in order, each at most
 * once.
 */
#include <string.h>

#include "worker/desk.h"

enum { POSTS_MAX = 256 };

static bool is_listened(const jobq_worker *worker, const char *event)
{
    const char *name;

    for (size_t i = 0; worker->listened && (name = jobq_event_list(i)) != NULL; i++)
        if (strcmp(name, event) == 0)
            return worker->listened >> i & 1;
    return false;
}

static jobq__post *new_post(jobq__desk *desk)
{
    jobq__post *post = desk->post_count < POSTS_MAX ? jobq__zalloc(sizeof(*post)) : NULL;

    if (!post)
        return NULL;
    if (desk->last_post)
        desk->last_post->next = post;
    else
        desk->posts = post;
    desk->last_post = post;
    desk->post_count++;
    return post;
}

/* At most once: an event that finds the queue full is dropped. */
void jobq__posts_add(jobq__desk *desk, const char *event, const jobq__ticket *ticket,
                     int64_t took_ms, const jobq__fault *fault)
{
    jobq__job_message message = {0};
    jobq__buf data = {0};
    jobq__post *post;

    if (!is_listened(desk->worker, event) || !(post = new_post(desk)))
        return;
    jobq__event_write(&data, ticket->handout, ticket->ending, &ticket->verdict, took_ms, fault);
    jobq__message_fill(&message, ticket);
    message.kind = JOBQ__MSG_EVENT;
    message.handout = 0;
    message.event_n = (uint32_t)strlen(event);
    message.data_n = (uint32_t)data.n;
    if (message.body_n > JOBQ__JOB_RING / 4)
        message.body_n = 0;
    jobq__buf_add(&post->bytes, &message, sizeof(message));
    if (jobq__buf_reserve(&post->bytes,
                          message.id_n + message.queue_n + message.name_n + message.header_n))
        post->bytes.n =
            (size_t)(jobq__message_put_texts(post->bytes.p + post->bytes.n, &message, ticket) -
                     post->bytes.p);
    jobq__buf_add(&post->bytes, event, message.event_n);
    jobq__buf_add(&post->bytes, data.p, data.n);
    jobq__buf_add(&post->bytes, ticket->record ? ticket->record->body.p : NULL,
                  (size_t)message.body_n);
    jobq__buf_free(&data);
}

void jobq__posts_say(jobq__desk *desk, const char *event, jobq_slice queue, const jobq__datum *data,
                     size_t n)
{
    jobq__job_message message = {.kind = JOBQ__MSG_EVENT};
    jobq__buf bytes = {0};
    jobq__post *post;

    if (!is_listened(desk->worker, event) || !(post = new_post(desk)))
        return;
    jobq__event_write_data(&bytes, data, n);
    message.queue_n = (uint32_t)queue.n;
    message.event_n = (uint32_t)strlen(event);
    message.data_n = (uint32_t)bytes.n;
    jobq__buf_add(&post->bytes, &message, sizeof(message));
    jobq__buf_add(&post->bytes, queue.p, queue.n);
    jobq__buf_add(&post->bytes, event, message.event_n);
    jobq__buf_add(&post->bytes, bytes.p, bytes.n);
    jobq__buf_free(&bytes);
}

/* Events stay in order: while a child has some to read, the next ones go to the same. */
static bool is_still_reading(const jobq__desk *desk)
{
    const jobq__seat *seat = desk->listener;

    return seat && (seat->open || seat->stuck || seat->vetoed) &&
           (int64_t)(desk->listener_head - atomic_load(&seat->slot->jobs.tail)) > 0;
}

/* Else the child that gets to it first. */
static jobq__seat *choose_listener(jobq__desk *desk)
{
    jobq__seat *best = NULL;

    if (is_still_reading(desk))
        return desk->listener;
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if ((seat->open || seat->vetoed) && seat->running_ms < JOBQ__LONG_MS &&
            (!best || seat->out.count < best->out.count))
            best = seat;
    }
    return best;
}

void jobq__posts_drop(jobq__desk *desk)
{
    jobq__post *post = desk->posts;

    desk->posts = post->next;
    if (!desk->posts)
        desk->last_post = NULL;
    desk->post_count--;
    jobq__buf_free(&post->bytes);
    jobq__free(post);
}

static bool put_post(jobq__desk *desk, jobq__seat *seat, const jobq__buf *bytes)
{
    void *p = jobq__ring_reserve(&seat->slot->jobs, jobq__slot_base(seat->slot), bytes->n);

    if (!p)
        return false;
    memcpy(p, bytes->p, bytes->n);
    jobq__ring_publish(&seat->slot->jobs, bytes->n);
    desk->listener = seat;
    desk->listener_head = atomic_load(&seat->slot->jobs.head);
    jobq__slot_wake(seat->slot);
    return true;
}

/* What has no room now waits; what was cut for want of memory is dropped. */
void jobq__posts_deliver(jobq__desk *desk)
{
    while (desk->posts) {
        jobq__seat *seat = choose_listener(desk);

        if (!seat)
            return;
        if (!desk->posts->bytes.failed && !put_post(desk, seat, &desk->posts->bytes))
            return;
        jobq__posts_drop(desk);
    }
}
