/* SPDX-License-Identifier: MIT
 *
 * What held jobs want of the store beside their end: progress (rule N7), a unique key that is freed
 * before the start (B6), the outcome that goes with the end, and ends that the application carried
 * out itself (O1). Also the minutes (N1) on their way.
 *
 * A job that uses none of it is met by none of this, but for one look at its child's slot a round.
 */
#include <string.h>

#include "util/clock.h"
#include "util/error.h"
#include "worker/desk.h"

enum { SAY_MS = 1000 /* the store hears of progress so often at most */ };

/* ---- outcomes -------------------------------------------------------------------------------- */

static char *out_of(const jobq__desk *desk, const jobq__seat *seat)
{
    const jobq__shared *shared = &desk->worker->shared;

    return shared->outs + (size_t)(seat - desk->seats) * shared->out_size;
}

static void return_area(jobq__desk *desk, jobq__seat *seat)
{
    jobq__slot_return_out(seat->slot, out_of(desk, seat));
    jobq__slot_wake(seat->slot); /* it may be waiting for it */
}

/* A place that belongs to another hand-out by now: this one's was answered for. */
static void take_from_area(jobq__desk *desk, const jobq__seat *seat, jobq__ticket *ticket,
                           const jobq__result_message *message)
{
    if (atomic_load(&seat->slot->out_of) != message->handout ||
        message->outcome_n > desk->worker->shared.out_size)
        return;
    ticket->outcome = jobq__slice(out_of(desk, seat), message->outcome_n);
    ticket->outcome_in_area = true;
}

void jobq__told_outcome(jobq__desk *desk, const jobq__seat *seat, jobq__ticket *ticket,
                        const jobq__result_message *message, const char *behind, size_t n)
{
    ticket->asked_done = message->asked_done;
    if (message->outcome_n == 0)
        return;
    if (message->outcome_in_area)
        take_from_area(desk, seat, ticket, message);
    else if (message->outcome_n <= n)
        ticket->outcome = jobq__slice(behind, message->outcome_n);
}

void jobq__told_keep(jobq__desk *desk, jobq__ticket *ticket, const jobq__buf *outcome)
{
    jobq__told_drop(desk, ticket);
    ticket->own_outcome = outcome->n ? jobq__memdup(outcome->p, outcome->n) : NULL;
    ticket->outcome = jobq__slice(ticket->own_outcome, ticket->own_outcome ? outcome->n : 0);
}

/* The place first, then the ticket: a successor must not find it taken for ever. */
void jobq__told_drop(jobq__desk *desk, jobq__ticket *ticket)
{
    if (ticket->outcome_in_area)
        return_area(desk, &desk->seats[ticket->handout->slot]);
    jobq__free(ticket->own_outcome);
    ticket->own_outcome = NULL;
    ticket->outcome = jobq__slice(NULL, 0);
    ticket->outcome_in_area = false;
}

/* ---- progress -------------------------------------------------------------------------------- */

void jobq__told_note(jobq__desk *desk, jobq__ticket *ticket, const void *p, size_t n)
{
    if (ticket->said.n == n && memcmp(ticket->said.p, p, n) == 0)
        return; /* another one of that child said something */
    jobq__buf_reset(&ticket->said);
    jobq__buf_add(&ticket->said, p, n);
    if (ticket->said.failed || ticket->has_said)
        return;
    ticket->has_said = true;
    desk->said_count++;
}

static void told_sent(jobq__desk *desk, jobq__ticket *ticket)
{
    desk->said_count -= ticket->has_said;
    ticket->has_said = false;
}

void jobq__told_forget(jobq__desk *desk, jobq__ticket *ticket)
{
    ticket->unsaid = ticket->has_said;
    told_sent(desk, ticket);
}

/* What is just being written comes with the next round. */
void jobq__told_read(jobq__desk *desk, jobq__seat *seat)
{
    const uint32_t used = atomic_load_explicit(&seat->slot->used, memory_order_acquire);
    char bytes[JOBQ__TELL_MAX];

    seat->told = atomic_load(&seat->slot->told);
    for (uint32_t i = 0; i < used && i < desk->worker->shared.seats; i++) {
        uint64_t number = 0;
        const size_t n = jobq__slot_tell_read(seat->slot, i, &number, bytes);
        jobq__ticket *ticket = n ? seat->cells[number % JOBQ__RECORDS] : NULL;

        if (ticket && ticket->handout->number == number && ticket->phase == JOBQ__TICKET_OUT)
            jobq__told_note(desk, ticket, bytes, n);
    }
}

/* ---- settlements of jobs that go on ---------------------------------------------------------- */

static void add(jobq__desk *desk, size_t n, jobq__ticket *ticket, uint8_t op)
{
    const jobq__handout *handout = ticket->handout;
    jobq_settlement *out = &desk->settlements[n];

    *out = (jobq_settlement){.token = handout->token, .op = op, .counters = handout->counters};
    out->id = jobq__slice(handout->id, strlen(handout->id));
    out->queue = jobq__slice(handout->queue, handout->queue_n);
    if (op == JOBQ_OP_PROGRESS)
        out->outcome = jobq__slice(ticket->said.p, ticket->said.n);
    desk->settling[n] = ticket;
}

static size_t add_keys(jobq__desk *desk, size_t n)
{
    for (jobq__ticket *ticket = desk->held.first; ticket && n < desk->settle_max;
         ticket = ticket->next)
        if (ticket->key_wanted)
            add(desk, n++, ticket, JOBQ_OP_FREE_KEY);
    return n;
}

static size_t add_said(jobq__desk *desk, size_t n)
{
    desk->said_ms = desk->now_ms;
    for (size_t i = 0; i < desk->seat_count; i++)
        for (jobq__ticket *ticket = desk->seats[i].out.first; ticket && n < desk->settle_max;
             ticket = ticket->next)
            if (ticket->has_said)
                add(desk, n++, ticket, JOBQ_OP_PROGRESS);
    return n;
}

size_t jobq__told_settlements(jobq__desk *desk, size_t n)
{
    if (desk->keys_wanted > 0)
        n = add_keys(desk, n);
    if (desk->said_count > 0 && desk->now_ms - desk->said_ms >= SAY_MS)
        n = add_said(desk, n);
    return n;
}

void jobq__told_unwant_keys(jobq__desk *desk)
{
    for (jobq__ticket *ticket = desk->held.first; ticket; ticket = ticket->next)
        ticket->key_wanted = false;
    desk->keys_wanted = 0;
}

bool jobq__told_is_one(const jobq_settlement *settlement)
{
    return settlement->op == JOBQ_OP_FREE_KEY || settlement->op == JOBQ_OP_PROGRESS;
}

/* A refused key: the job is somebody else's, and is not started here. */
void jobq__told_answered(jobq__desk *desk, jobq__ticket *ticket, const jobq_settlement *settlement)
{
    const bool is_key = settlement->op == JOBQ_OP_FREE_KEY;

    if (is_key)
        ticket->key_wanted = false;
    else
        told_sent(desk, ticket);
    if (settlement->result == 0) {
        ticket->key_freed |= is_key;
    } else if (settlement->result == JOBQ_ELEASE) {
        jobq__desk_count(desk, JOBQ__COUNT_LEASE_REJECTED, 1);
        if (is_key || !jobq__told_asked_done(desk, ticket))
            jobq__desk_lose(desk, ticket);
    } else if (is_key) {
        jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSTARTED);
    }
}

/* ---- inline: at once ------------------------------------------------------------------------- */

/* Without success it stays held, or is gone with its lease. */
bool jobq__told_free_key(jobq__desk *desk, jobq__ticket *ticket)
{
    if (!(ticket->handout->delicate & JOBQ__DELICATE_KEY) || ticket->key_freed)
        return true;
    ticket->key_wanted = true;
    desk->keys_wanted = 1;
    jobq__desk_exchange(desk, 0, 0);
    jobq__told_unwant_keys(desk);
    return ticket->phase == JOBQ__TICKET_HELD && ticket->key_freed;
}

int jobq__told_say(jobq__desk *desk, jobq__ticket *ticket)
{
    jobq_exchange x = {.worker = desk->id,
                       .lease_ms = desk->settings->lease_ms,
                       .settle = desk->settlements,
                       .settle_count = 1,
                       .out = &desk->scratch};

    desk->now_ms = jobq__clock_mono_ms();
    if (!ticket->has_said || desk->now_ms - desk->said_ms < SAY_MS ||
        jobq__desk_is_waiting_out(desk))
        return 0;
    desk->said_ms = desk->now_ms;
    add(desk, 0, ticket, JOBQ_OP_PROGRESS);
    jobq__batch_reset(&desk->scratch);
    if (jobq__store_exchange(desk->store, &x) < 0)
        return 0;
    jobq__control_told(desk, x.control);
    jobq__told_answered(desk, ticket, desk->settlements);
    return desk->settlements[0].result == JOBQ_ELEASE ? JOBQ_ELEASE : 0;
}

/* ---- what the loop knows --------------------------------------------------------------------- */

void jobq__told_situation(jobq__desk *desk)
{
    jobq__situation *s = &desk->s;
    const int64_t next_ms = desk->said_ms + SAY_MS;

    s->keys = (int64_t)desk->keys_wanted;
    s->said_at_ms = desk->said_count == 0 ? 0 : next_ms > 0 ? next_ms : 1;
    s->book_at_ms = jobq__tally_at(desk->tally, desk->now_ms);
}

/* ---- ends that the application carries out (rule O1) ----------------------------------------- */

bool jobq__told_asked_done(const jobq__desk *desk, const jobq__ticket *ticket)
{
    const jobq__slot *slot = desk->seats ? desk->seats[ticket->handout->slot].slot : NULL;
    const uint32_t used = slot ? atomic_load_explicit(&slot->used, memory_order_acquire) : 0;

    for (uint32_t i = 0; i < used && i < desk->worker->shared.seats; i++)
        if (atomic_load(&jobq__slot_run(slot, i)->asked_done) == ticket->handout->number)
            return true;
    return ticket->asked_done;
}

/* With a lost lease its statement would have failed, and a handler that knows of it does not
 * return. */
bool jobq__told_is_done(const jobq__ticket *ticket)
{
    return ticket->asked_done && ticket->status == JOBQ_ELEASE &&
           (ticket->ending == JOBQ_ENDED_DONE || (!ticket->lost && !ticket->tried));
}

/* ---- minutes --------------------------------------------------------------------------------- */

/* Quiet while the store is away: the loop says so. */
void jobq__told_book(jobq__desk *desk)
{
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    if (jobq__tally_book(desk->tally, desk->store) == 0)
        return;
    if (desk->s.reserve_failures == 0 && jobq__desk_say(desk, "book", jobq__slice("", 0)))
        jobq__observer_error(desk->observer,
                             "could not store what happened in the last minutes: %s",
                             jobq_error_message(jobq_error_last()));
}
