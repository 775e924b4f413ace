/* SPDX-License-Identifier: MIT
 *
 * Giving held jobs to children and taking unstarted ones back. How far ahead a child is filled
 * follows the observed handler time; a free child never sits beside one that has unstarted jobs
 * behind a long one; and a delicate job (its last try, or lost before) goes only to an idle child
 * after the store knows of it.
 */
#include <string.h>

#include "worker/desk.h"

enum {
    WORK_US = 30000, /* work a child is to have in hand */
    DEPTH_MAX = 224, /* jobs behind the running one: below JOBQ__RECORDS with room to spare */
    DEPTH_UNKNOWN = 1,
    HOARD_FROM = 32,   /* from this depth on as many again are held here, ready for refilling */
    RUNNING_MS = 1000, /* listed as running in the worker's record */
    STUCK_MS = 100,    /* so long a child may take from one message to the next */
    STEAL_US = 1000    /* less work than this is not worth moving */
};

/* ---- what a child can take ------------------------------------------------------------------- */

static int64_t depth_of(const jobq__desk *desk)
{
    const jobq__settings *settings = desk->settings;
    int64_t depth;

    if (settings->rest_ms > 0 || settings->once)
        return 0;
    if (settings->prefetch >= 0)
        depth = (settings->prefetch + settings->processes - 1) /
                (settings->processes ? settings->processes : 1);
    else if (desk->average_us < 0)
        depth = DEPTH_UNKNOWN;
    else
        depth = (int64_t)(WORK_US / (desk->average_us + 1));
    return depth > DEPTH_MAX ? DEPTH_MAX : depth;
}

static int64_t room_of(const jobq__desk *desk, const jobq__seat *seat, int64_t depth)
{
    int64_t out = (int64_t)seat->out.count;

    if (!seat->open || seat->clearing || seat->rest_until_ms > desk->now_ms)
        return 0;
    if (out > 0 && seat->running_ms >= JOBQ__LONG_MS)
        return 0;
    return out < 1 + depth ? 1 + depth - out : 0;
}

static bool is_idle(const jobq__desk *desk, const jobq__seat *seat)
{
    return seat->open && seat->out.count == 0 && seat->rest_until_ms <= desk->now_ms;
}

/* What the child's slot says about the job it is running. */
static void look_at_running(jobq__desk *desk, jobq__seat *seat)
{
    uint64_t number = atomic_load_explicit(&seat->slot->running, memory_order_acquire);
    jobq__ticket *ticket = number ? seat->cells[number % JOBQ__RECORDS] : NULL;

    seat->running_ms = 0;
    if (!ticket || ticket->handout->number != number)
        return;
    seat->running_ms = desk->now_ms - atomic_load(&seat->slot->running_since_ms);
    if (seat->running_ms >= RUNNING_MS && !ticket->listed)
        ticket->listed = desk->list_changed = true;
    if (desk->settings->verbose && !ticket->shown) {
        ticket->shown = true;
        jobq__observer_processing(desk->observer, ticket->handout);
    }
}

bool jobq__seat_is_open(const jobq__seat *seat)
{
    const jobq__slot *slot = seat->slot;

    return atomic_load(&slot->state) == JOBQ__SLOT_LIVE && !atomic_load(&slot->retiring) &&
           !atomic_load(&slot->leave);
}

/* In a listener, stopped from outside: whatever keeps it from beginning what it was given. */
static bool is_stuck(const jobq__desk *desk, jobq__seat *seat)
{
    const jobq__slot *slot = seat->slot;
    const uint64_t tail = atomic_load(&slot->jobs.tail);

    if (tail != seat->unread_from || atomic_load(&slot->running) ||
        jobq__ring_is_empty(&slot->jobs)) {
        seat->unread_from = tail;
        seat->unread_since_ms = desk->now_ms;
    }
    return desk->now_ms - seat->unread_since_ms >= STUCK_MS;
}

static void look_at_seat(jobq__desk *desk, jobq__seat *seat)
{
    const bool open = jobq__seat_is_open(seat);

    seat->full = seat->news = false;
    seat->stuck = open && is_stuck(desk, seat);
    seat->open = open && !seat->stuck;
    if (seat->out.count > 0)
        look_at_running(desk, seat);
}

static void note_rest(jobq__desk *desk, const jobq__seat *seat)
{
    jobq__situation *s = &desk->s;

    if (seat->rest_until_ms > desk->now_ms &&
        (s->rest_until_ms == 0 || seat->rest_until_ms < s->rest_until_ms))
        s->rest_until_ms = seat->rest_until_ms;
}

/* Rest holds the whole loop up only while every child rests. */
static void settle_room(jobq__desk *desk, int64_t depth)
{
    jobq__situation *s = &desk->s;

    if (s->room > 0 || s->idle_children > 0)
        s->rest_until_ms = 0;
    s->prefetch = depth > 0;
}

/* Short jobs: as many again lie here, so that a child can be filled while the store is busy. */
static int64_t hoard_of(const jobq__desk *desk, const jobq__seat *seat, int64_t depth)
{
    bool quick = seat->open && !seat->clearing && seat->running_ms < JOBQ__LONG_MS;

    return quick && depth >= HOARD_FROM && desk->settings->prefetch < 0 ? depth : 0;
}

void jobq__give_look(jobq__desk *desk)
{
    jobq__situation *s = &desk->s;
    int64_t depth = depth_of(desk);

    s->room = s->idle_children = s->rest_until_ms = 0;
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        look_at_seat(desk, seat);
        s->idle_children += is_idle(desk, seat);
        s->room += room_of(desk, seat, depth) + hoard_of(desk, seat, depth);
        note_rest(desk, seat);
    }
    settle_room(desk, depth);
}

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
static jobq__seat *choose(jobq__desk *desk, int64_t depth)
{
    jobq__seat *best = NULL;

    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (seat->open && !seat->full && room_of(desk, seat, depth) > 0 &&
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

static void give_plain(jobq__desk *desk)
{
    int64_t depth = depth_of(desk);
    jobq__ticket *next;

    for (jobq__ticket *ticket = desk->held.first; ticket; ticket = next) {
        jobq__seat *seat;

        next = ticket->next;
        if (cannot_be_given(desk, ticket) || ticket->handout->delicate)
            continue;
        while ((seat = choose(desk, depth)) != NULL && !give(desk, seat, ticket))
            seat->full = true;
        if (!seat)
            return;
    }
}

/* ---- delicate ones --------------------------------------------------------------------------- */

static size_t pick_delicate(jobq__desk *desk, jobq__ticket **soon, size_t most, size_t *all)
{
    size_t n = 0;

    *all = 0;
    for (jobq__ticket *ticket = desk->held.first; ticket; ticket = ticket->next) {
        if (!ticket->handout->delicate || !ticket->record)
            continue;
        ++*all;
        if (n < most)
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

static void give_soon(jobq__desk *desk, jobq__ticket *const *soon, size_t n)
{
    size_t given = 0;

    for (size_t i = 0; i < desk->seat_count && given < n; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (!is_idle(desk, seat) || !give(desk, seat, soon[given]))
            continue;
        seat->clearing = false;
        soon[given++]->listed = true;
    }
}

/* All that are about to start are announced by one renewal. */
static void give_delicate(jobq__desk *desk)
{
    enum { SOON = 64 };
    jobq__ticket *soon[SOON];
    size_t idle = (size_t)desk->s.idle_children, all;
    size_t n = pick_delicate(desk, soon, idle < SOON ? idle : SOON, &all);

    if (n > 0 && jobq__desk_renew(desk, desk->settings->lease_ms, soon, n) == 0)
        give_soon(desk, soon, n);
}

/* Children are kept free for delicate jobs exactly as long as there are any. */
static void keep_clear(jobq__desk *desk)
{
    size_t all;

    pick_delicate(desk, NULL, 0, &all);
    clear_seats(desk, all);
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

void jobq__give_return_held(jobq__desk *desk, int64_t older_than_ms)
{
    jobq__ticket *next;

    for (jobq__ticket *ticket = desk->held.first; ticket; ticket = next) {
        next = ticket->next;
        if (desk->now_ms - ticket->held_since_ms >= older_than_ms)
            jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSTARTED);
    }
}

/* ---- a free child takes from a busy one ------------------------------------------------------ */

/* How many unstarted jobs may go elsewhere: all behind a long one, else half. */
static size_t surplus(const jobq__desk *desk, const jobq__seat *seat)
{
    size_t waiting = seat->out.count > 1 ? seat->out.count - 1 : 0;

    if (seat->running_ms >= WORK_US / 1000 || !seat->open)
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

        if (seat->out.count > 0 &&
            (!seat->open || (seat->out.count > 1 && seat->running_ms >= RUNNING_MS)))
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
