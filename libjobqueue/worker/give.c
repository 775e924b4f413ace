/* SPDX-License-Identifier: MIT
 *
 * Giving held jobs to children and taking unstarted ones back. A free child never sits beside one
 * that has unstarted jobs behind a long one; and a delicate job (its last try, or lost before) goes
 * only where it begins at once, after the store knows of it.
 */
#include "worker/desk.h"

enum {
    STEAL_US = 1000, /* less work than this is not worth moving */
    SOON = 64        /* delicate ones that begin together */
};

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

static bool give(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket)
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
        while ((seat = choose(desk, ticket, depth)) != NULL && !give(desk, seat, ticket))
            seat->full = true;
        if (!seat && (desk->worker->shared.seats <= 1 || ticket->handout->seats > 1))
            return;
        blocked |= !seat;
    }
}

/* ---- delicate ones --------------------------------------------------------------------------- */

/* In its turn: one whose unique key is to be freed goes before nobody, since the key must not be free
 * for longer than it takes to begin; *ahead: is there a plain one before it? */
static bool is_in_turn(const jobq__ticket *ticket, bool *ahead)
{
    const uint8_t delicate = ticket->handout->delicate;

    *ahead |= !delicate && ticket->record;
    return delicate && ticket->record && (delicate & JOBQ__DELICATE_BLAME || !*ahead);
}

static size_t count_delicate(const jobq__desk *desk)
{
    bool ahead = false;
    size_t n = 0;

    for (const jobq__ticket *ticket = desk->held.first; ticket; ticket = ticket->next)
        n += is_in_turn(ticket, &ahead);
    return n;
}

/* A place where that one begins at once, beside those that are planned already. */
static jobq__seat *place_for(const jobq__desk *desk, const jobq__ticket *ticket)
{
    const size_t seats = ticket->handout->seats;

    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];
        const size_t taken = seat->out.count + seat->planned;
        const size_t width = seat->out.count > 0 ? jobq__room_width(seat) : seat->planned_width;

        if (!seat->full && jobq__room_may_take(desk, seat) &&
            (taken == 0 || (width > 1 && taken < width && taken < seats)))
            return seat;
    }
    return NULL;
}

static size_t plan_delicate(jobq__desk *desk, jobq__ticket **soon, jobq__seat **places, size_t most)
{
    bool ahead = false;
    size_t n = 0;

    for (size_t i = 0; i < desk->seat_count; i++)
        desk->seats[i].planned = 0;
    for (jobq__ticket *ticket = desk->held.first; ticket && n < most; ticket = ticket->next) {
        if (!is_in_turn(ticket, &ahead))
            continue;
        places[n] = place_for(desk, ticket);
        if (!places[n] && desk->worker->shared.seats <= 1)
            break;
        if (!places[n])
            continue;
        places[n]->planned_width = ticket->handout->seats;
        places[n]->planned++;
        soon[n++] = ticket;
    }
    return n;
}

/* So many of the emptiest children get nothing more until they are idle. */
static void clear_seats(jobq__desk *desk, size_t n)
{
    for (size_t i = 0; i < desk->seat_count; i++)
        desk->seats[i].clearing = desk->seats[i].clearing && n > 0 && n-- > 0;
    for (; n > 0; n--) {
        jobq__seat *best = NULL;

        for (size_t i = 0; i < desk->seat_count; i++) {
            jobq__seat *seat = &desk->seats[i];

            if (seat->open && !seat->clearing && (!best || seat->out.count < best->out.count))
                best = seat;
        }
        if (!best)
            return;
        best->clearing = true;
    }
}

/* Rule B6: those whose unique key the store has not freed yet stay until it has, with the next
 * exchange; their places are kept. How many are left. */
static size_t leave_out_keys(jobq__desk *desk, jobq__ticket **soon, jobq__seat **places, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        jobq__ticket *ticket = soon[i];

        if (ticket->handout->delicate & JOBQ__DELICATE_KEY && !ticket->key_freed) {
            ticket->key_wanted = true;
            desk->keys_wanted++;
            continue;
        }
        soon[left] = ticket;
        places[left++] = places[i];
    }
    return left;
}

static bool is_to_blame(const jobq__ticket *ticket)
{
    return ticket->handout->delicate & JOBQ__DELICATE_BLAME;
}

/* All whose loss would count and that are about to start are announced by one renewal. */
static bool announce(jobq__desk *desk, jobq__ticket *const *soon, size_t n)
{
    jobq__ticket *blamed[SOON];
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (is_to_blame(soon[i]))
            blamed[count++] = soon[i];
    return count == 0 || jobq__desk_renew(desk, desk->settings->lease_ms, blamed, count) == 0;
}

static void give_delicate(jobq__desk *desk)
{
    jobq__ticket *soon[SOON];
    jobq__seat *places[SOON];
    size_t n = plan_delicate(desk, soon, places, SOON);

    n = leave_out_keys(desk, soon, places, n);
    if (n == 0 || !announce(desk, soon, n))
        return;
    for (size_t i = 0; i < n; i++) {
        if (places[i]->full || !give(desk, places[i], soon[i])) {
            places[i]->full = true;
            continue;
        }
        places[i]->clearing = false;
        soon[i]->listed = is_to_blame(soon[i]);
    }
}

/* Is the next one of those that run alone, where children may have several others? */
static bool waits_for_clear_child(const jobq__desk *desk)
{
    const jobq__ticket *ticket = desk->worker->shared.seats > 1 ? desk->held.first : NULL;

    while (ticket && ticket->handout->delicate)
        ticket = ticket->next;
    return ticket && ticket->handout->seats <= 1;
}

/* Children are kept free for delicate jobs exactly as long as there are any. */
static void keep_clear(jobq__desk *desk)
{
    const size_t delicate = count_delicate(desk), plain = waits_for_clear_child(desk);

    clear_seats(desk, delicate + plain);
    for (size_t i = 0; i < desk->seat_count; i++)
        desk->seats[i].clear_for_plain = plain && delicate == 0 && desk->seats[i].clearing;
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
    ticket->phase = JOBQ__TICKET_HELD;
    ticket->held_since_ms = desk->now_ms;
    jobq__tickets_prepend(&desk->held, ticket);
    atomic_store(&handout->state, JOBQ__HANDOUT_HELD);
}

/* Nothing happens when the child has begun it. */
static void take_back(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket)
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
        take_back(desk, seat, ticket);
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

/* A child is being cleared for it. */
static int64_t patience_ms(const jobq__desk *desk, const jobq__ticket *ticket, int64_t ms)
{
    return desk->worker->shared.seats > 1 && ticket->handout->seats <= 1 ? ms * PLAIN_PATIENCE : ms;
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
                take_back(desk, &desk->seats[i], ticket);
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
    if (desk->held.count == 0 && desk->s.idle_children > 0)
        steal(desk);
    give_delicate(desk);
    keep_clear(desk);
    if (desk->held.count > 0) {
        give_plain(desk);
        jobq__give_return_held(desk, HELD_MS);
        keep_clear(desk);
    }
    ring_children(desk);
}
