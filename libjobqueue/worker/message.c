/* SPDX-License-Identifier: MIT
 *
 * Job messages: from a ticket on the desk to the bytes in a child's ring (layout in shared.h).
 * Large bodies go by the slot's big area.
 */
#include <string.h>

#include "worker/desk.h"

static char *put(char *p, const void *bytes, size_t n)
{
    if (n > 0)
        memcpy(p, bytes, n);
    return p + n;
}

void jobq__message_fill(jobq__job_message *message, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;

    message->kind = JOBQ__MSG_JOB;
    message->version = handout->version;
    message->handout = handout->number;
    message->counters = handout->counters;
    message->fence = handout->fence;
    message->enqueued_at_ms = handout->enqueued_at_ms;
    message->base_at_ms = handout->base_at_ms;
    message->taken_at_ms = handout->taken_at_ms;
    message->taken_mono_ms = handout->taken_mono_ms;
    message->token = handout->token;
    message->policy = handout->policy;
    message->priority = handout->priority;
    message->seats = handout->seats;
    message->body_in_area = 0;
    message->id_n = (uint32_t)strlen(handout->id);
    message->queue_n = handout->queue_n;
    message->name_n = handout->name_n;
    message->header_n = ticket->record ? (uint32_t)ticket->record->header.n : 0;
    message->event_n = message->data_n = 0;
    message->body_n = ticket->record ? ticket->record->body.n : 0;
}

char *jobq__message_put_texts(char *p, const jobq__job_message *message, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;

    p = put(p, handout->id, message->id_n);
    p = put(p, handout->queue, message->queue_n);
    p = put(p, handout->name, message->name_n);
    return put(p, ticket->record ? ticket->record->header.p : NULL, message->header_n);
}

bool jobq__message_is_big(const jobq__ticket *ticket)
{
    return ticket->record->body.n > JOBQ__JOB_RING / 4;
}

static bool area_is_free(const jobq__seat *seat)
{
    return atomic_load(&seat->slot->area_used) == 0;
}

static void put_in_area(jobq__desk *desk, jobq__seat *seat, const jobq_slice *body)
{
    const jobq__shared *shared = &desk->worker->shared;
    size_t i = (size_t)(seat - desk->seats);

    memcpy(shared->areas + i * shared->area_size, body->p, body->n);
    atomic_store(&seat->slot->area_used, (int64_t)body->n);
}

static size_t size_of(const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;
    const jobq_record *record = ticket->record;

    return sizeof(jobq__job_message) + strlen(handout->id) + handout->queue_n + handout->name_n +
           record->header.n + (jobq__message_is_big(ticket) ? 0 : record->body.n);
}

bool jobq__message_fits(const jobq__desk *desk, const jobq__seat *seat, const jobq__ticket *ticket,
                        uint64_t *head)
{
    if (jobq__message_is_big(ticket) && (seat->planned_big || !area_is_free(seat) ||
                                         ticket->record->body.n > desk->worker->shared.area_size))
        return false;
    return jobq__ring_fits(&seat->slot->jobs, head, size_of(ticket));
}

bool jobq__message_write(jobq__desk *desk, jobq__seat *seat, const jobq__ticket *ticket)
{
    const jobq_record *record = ticket->record;
    bool big = jobq__message_is_big(ticket);
    const size_t n = size_of(ticket);
    jobq__job_message *message;
    char *p;

    if (big && !area_is_free(seat))
        return false;
    message = jobq__ring_reserve(&seat->slot->jobs, jobq__slot_base(seat->slot), n);
    if (!message)
        return false;
    jobq__message_fill(message, ticket);
    message->body_in_area = big;
    p = jobq__message_put_texts((char *)(message + 1), message, ticket);
    if (big)
        put_in_area(desk, seat, &record->body);
    else
        put(p, record->body.p, record->body.n);
    atomic_store_explicit(&seat->slot->records[ticket->handout->number % JOBQ__RECORDS],
                          jobq__record_value(ticket->handout->number, JOBQ__GIVEN),
                          memory_order_release);
    jobq__ring_publish(&seat->slot->jobs, n);
    return true;
}
