/* SPDX-License-Identifier: MIT
 *
 * Giving held jobs to children and taking unstarted ones back. A free child never sits beside one
 * that has unstarted jobs behind a long one. Those that the store has to know of before they start
 * have a file of their own (delicate.c).
 */
#include "worker/desk.h"

enum { STEAL_US = 1000 /* less work than this is not worth moving */ };

/* ---- giving ---------------------------------------------------------------------------------- */

/* The next number whose cell in this slot belongs to nobody. */
static uint64_t next_number(jobq__desk *desk, const jobq__seat *seat)
{
    uint64_t number;

    do
        number = (uint64_t)atomic_fetch_add(&desk->words->next_handout, 1);
    while (seat->cells[number % JOBQ__RECORDS]);
    return number;
}

bool jobq__give_one(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket)
{
    jobq__handout *handout = ticket->handout;

    if (seat->out.count >= JOBQ__RECORDS)
        return false;
    handout->number = next_number(desk, seat);
    handout->slot = (uint32_t)(seat - desk->seats);
    /* First the table, then the ring: a successor of ours must know of everything a child may
     * have. */
    atomic_store(&handout->state, JOBQ__HANDOUT_OUT);
    if (!jobq__message_write(desk, seat, ticket)) {
        atomic_store(&handout->state, JOBQ__HANDOUT_HELD);
        return false;
    }
    jobq__tickets_remove(&desk->held, ticket);
    ticket->phase = JOBQ__TICKET_OUT;
    seat->cells[handout->number % JOBQ__RECORDS] = ticket;
    jobq__tickets_append(&seat->out, ticket);
    desk->out++;
    if (!seat->news)
        jobq__slot_wake(seat->slot);
    seat->news = true;
    return true;
}

/* The emptiest child with room; NULL: none. */
static jobq__seat *choose(jobq__desk *desk, const jobq__ticket *ticket, int64_t depth)
{
    jobq__seat *best = NULL;

    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (seat->open && !seat->full && jobq__room_for(desk, seat, ticket, depth) &&
            (!best || seat->out.count < best->out.count))
            best = seat;
    }
    return best;
}

/* Bodies that an earlier dispatcher had in memory, or larger than this worker's area. True: it is
 * gone. */
static bool cannot_be_given(jobq__desk *desk, jobq__ticket *ticket)
{
    if (!ticket->record) {
        jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSTARTED);
        return true;
    }
    if (!jobq__message_is_big(ticket) || ticket->record->body.n <= desk->worker->shared.area_size)
        return false;
    jobq__handout_fault(ticket, "the body is larger than a worker can hand out");
    jobq__handout_end(desk, ticket, JOBQ_ENDED_FAILED);
    return true;
}

/* In order. Only behind one that runs alone, for which a child is being cleared, others go on. */
static void give_plain(jobq__desk *desk)
{
    int64_t depth = jobq__room_depth(desk);
    bool blocked = false;
    jobq__ticket *next;

    for (jobq__ticket *ticket = desk->held.first; ticket; ticket = next) {
        jobq__seat *seat;

        next = ticket->next;
        if (cannot_be_given(desk, ticket) || ticket->handout->delicate ||
            (blocked && ticket->handout->seats <= 1))
            continue;
        while ((seat = choose(desk, ticket, depth)) != NULL && !jobq__give_one(desk, seat, ticket))
            seat->full = true;
        if (!seat && (desk->worker->shared.seats <= 1 || ticket->handout->seats > 1))
            return;
        blocked |= !seat;
    }
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* From its seat to the front of the held ones. */
static void unseat(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket)
{
    jobq__handout *handout = ticket->handout;

    jobq__tickets_remove(&seat->out, ticket);
    if (seat->cells[handout->number % JOBQ__RECORDS] == ticket)
        seat->cells[handout->number % JOBQ__RECORDS] = NULL;
    desk->out--;
    desk->acquit |= ticket->listed; /* it has not begun */
    ticket->listed = false;
    ticket->phase = JOBQ__TICKET_HELD;
    ticket->held_since_ms = desk->now_ms;
    jobq__tickets_prepend(&desk->held, ticket);
    atomic_store(&handout->state, JOBQ__HANDOUT_HELD);
}

void jobq__give_take_back_one(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket)
{
    if (jobq__slot_revoke(seat->slot, ticket->handout->number))
        unseat(desk, seat, ticket);
}

/* After a dispatcher's death: what was revoked but not noted, or noted but never put into the
 * ring. */
void jobq__give_clear_strays(jobq__desk *desk, jobq__seat *seat)
{
    jobq__ticket *next;

    for (jobq__ticket *ticket = seat->out.first; ticket; ticket = next) {
        uint64_t number = ticket->handout->number,
                 value = atomic_load(&seat->slot->records[number % JOBQ__RECORDS]);

        next = ticket->next;
        if (value >> 2 != number || (value & 3) == JOBQ__REVOKED)
            unseat(desk, seat, ticket);
    }
}

static void take_back_last(jobq__desk *desk, jobq__seat *seat, size_t most)
{
    jobq__ticket *prev;

    for (jobq__ticket *ticket = seat->out.last; ticket && most > 0; ticket = prev, most--) {
        prev = ticket->prev;
        jobq__give_take_back_one(desk, seat, ticket);
    }
}

void jobq__give_revoke_all(jobq__desk *desk, jobq__seat *seat)
{
    take_back_last(desk, seat, seat->out.count);
}

void jobq__give_take_back(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++)
        if (desk->seats[i].out.count > 0)
            jobq__give_revoke_all(desk, &desk->seats[i]);
}

enum { PLAIN_PATIENCE = 20 };

/* A child is being cleared for it, or its turn comes. */
static int64_t patience_ms(const jobq__desk *desk, const jobq__ticket *ticket, int64_t ms)
{
    if (desk->worker->shared.seats > 1 && ticket->handout->seats <= 1)
        return ms * PLAIN_PATIENCE;
    return ticket->handout->delicate ? ms * jobq__delicate_patience(desk) : ms;
}

void jobq__give_return_held(jobq__desk *desk, int64_t older_than_ms)
{
    jobq__ticket *next;

    for (jobq__ticket *ticket = desk->held.first; ticket; ticket = next) {
        next = ticket->next;
        if (desk->now_ms - ticket->held_since_ms >= patience_ms(desk, ticket, older_than_ms))
            jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSTARTED);
    }
}

static bool is_paused(const jobq__desk *desk, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;

    return jobq__control_is_paused(desk, jobq__slice(handout->queue, handout->queue_n));
}

void jobq__give_back_paused(jobq__desk *desk)
{
    jobq__ticket *ticket, *other;

    for (size_t i = 0; i < desk->seat_count; i++)
        for (ticket = desk->seats[i].out.last; ticket; ticket = other) {
            other = ticket->prev;
            if (is_paused(desk, ticket))
                jobq__give_take_back_one(desk, &desk->seats[i], ticket);
        }
    for (ticket = desk->held.first; ticket; ticket = other) {
        other = ticket->next;
        if (is_paused(desk, ticket))
            jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSTARTED);
    }
}

/* ---- a free child takes from a busy one ------------------------------------------------------ */

/* How many unstarted jobs may go elsewhere: all behind a long one, else half. */
static size_t surplus(const jobq__desk *desk, const jobq__seat *seat)
{
    const size_t width = jobq__room_width(seat);
    size_t waiting = seat->out.count > width ? seat->out.count - width : 0;

    if (seat->running_ms >= JOBQ__WORK_US / 1000 || !seat->open)
        return seat->out.count > 0 ? waiting : 0;
    return (double)waiting * desk->average_us >= STEAL_US ? (waiting + 1) / 2 : 0;
}

static void steal(jobq__desk *desk)
{
    jobq__seat *from = NULL;
    size_t most = 0;

    for (size_t i = 0; i < desk->seat_count; i++) {
        size_t n = surplus(desk, &desk->seats[i]);

        if (n > most) {
            most = n;
            from = &desk->seats[i];
        }
    }
    if (from)
        take_back_last(desk, from, most);
}

/* Children that leave, and those stuck with a long job, get rid of what they have not begun. */
static void relieve(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (seat->out.count > 0 && (!seat->open || (seat->out.count > jobq__room_width(seat) &&
                                                    seat->running_ms >= JOBQ__RUNNING_MS)))
            jobq__give_revoke_all(desk, seat);
    }
}

static void ring_children(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++)
        if (desk->seats[i].news)
            jobq__slot_wake(desk->seats[i].slot);
}

enum { HELD_MS = 250 /* what no child could take so long is for other workers */ };

void jobq__give(jobq__desk *desk)
{
    relieve(desk);
    jobq__delicate_relieve(desk);
    if (desk->held.count == 0 && desk->s.idle_children > 0)
        steal(desk);
    jobq__delicate_give(desk);
    jobq__delicate_keep_clear(desk);
    if (desk->held.count > 0) {
        give_plain(desk);
        jobq__give_return_held(desk, HELD_MS);
        jobq__delicate_keep_clear(desk);
    }
    ring_children(desk);
}
