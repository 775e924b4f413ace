/* SPDX-License-Identifier: MIT
 *
 * What children can take: which of them are open and what they run. How far ahead each is filled
 * follows the observed handler time.
 */
#include "worker/desk.h"

enum {
    DEPTH_MAX = 224, /* jobs behind the running ones: below JOBQ__RECORDS with room to spare */
    DEPTH_UNKNOWN = 1,
    HOARD_FROM = 32, /* from this depth on as many again are held here, ready for refilling */
    STUCK_MS = 100   /* so long a child may take from one message to the next */
};

int64_t jobq__room_depth(const jobq__desk *desk)
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
        depth = (int64_t)(JOBQ__WORK_US / (desk->average_us + 1));
    return depth > DEPTH_MAX ? DEPTH_MAX : depth;
}

/* How many jobs of the sort that it has may run in that child at once. */
size_t jobq__room_width(const jobq__seat *seat)
{
    return seat->out.first ? seat->out.first->handout->seats : 1;
}

static bool has_places(const jobq__seat *seat)
{
    return seat->out.count > 0 && seat->out.count < jobq__room_width(seat);
}

bool jobq__room_may_take(const jobq__desk *desk, const jobq__seat *seat)
{
    return seat->open && seat->rest_until_ms <= desk->now_ms;
}

/* What its next jobs are nobody knows before they are here: first as many as for any child, then,
 * while they are of the sort of which several run, each time as many again. */
static int64_t room_beside(const jobq__seat *seat, int64_t depth)
{
    const int64_t out = (int64_t)seat->out.count, width = (int64_t)jobq__room_width(seat);

    if (has_places(seat))
        return (width - out < out + 1 ? width - out : out + 1) + depth;
    if (out > 0 && seat->running_ms >= JOBQ__LONG_MS)
        return 0;
    return out < width + depth ? width + depth - out : 0;
}

static int64_t room_of(const jobq__desk *desk, const jobq__seat *seat, int64_t depth)
{
    return seat->clearing || !jobq__room_may_take(desk, seat) ? 0 : room_beside(seat, depth);
}

/* Has it room for that one? Jobs that run alone and others are never in a child together. */
bool jobq__room_for(const jobq__desk *desk, const jobq__seat *seat, const jobq__ticket *ticket,
                    int64_t depth)
{
    const size_t seats = ticket->handout->seats, out = seat->out.count;

    if (!jobq__room_may_take(desk, seat) ||
        (seat->clearing && (seats > 1 || !seat->clear_for_plain)))
        return false;
    if (out > 0 && (seats > 1) != (jobq__room_width(seat) > 1))
        return false;
    if (out == 0 || (seats > 1 && has_places(seat)))
        return out < seats;
    return seats >= jobq__room_width(seat) && room_beside(seat, depth) > 0;
}

static bool is_idle(const jobq__desk *desk, const jobq__seat *seat)
{
    return jobq__room_may_take(desk, seat) && (seat->out.count == 0 || has_places(seat));
}

static void look_at_run(jobq__desk *desk, jobq__ticket *ticket, int64_t ran_ms)
{
    if (ran_ms >= JOBQ__RUNNING_MS && !ticket->listed)
        ticket->listed = desk->list_changed = true;
    if (desk->settings->verbose && !ticket->shown && !ticket->handout->hook) {
        ticket->shown = true;
        jobq__observer_processing(desk->observer, ticket->handout);
    }
}

/* What the child's slot says about the job it is running; each of them. */
static void look_at_running(jobq__desk *desk, jobq__seat *seat)
{
    const uint32_t used = atomic_load_explicit(&seat->slot->used, memory_order_acquire);
    size_t running = 0;

    for (uint32_t i = 0; i < used && i < desk->worker->shared.seats; i++) {
        const jobq__run *run = jobq__slot_run(seat->slot, i);
        const uint64_t number = atomic_load_explicit(&run->number, memory_order_acquire);
        jobq__ticket *ticket = number ? seat->cells[number % JOBQ__RECORDS] : NULL;
        int64_t ran_ms;

        if (!ticket || ticket->handout->number != number)
            continue;
        ran_ms = desk->now_ms - atomic_load(&run->since_ms);
        seat->running_ms = running++ && seat->running_ms < ran_ms ? seat->running_ms : ran_ms;
        look_at_run(desk, ticket, ran_ms);
    }
    if (running < jobq__room_width(seat))
        seat->running_ms = 0;
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

    if (tail != seat->unread_from || jobq__slot_running(slot) >= jobq__room_width(seat) ||
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
    seat->running_ms = 0;
    seat->stuck = open && is_stuck(desk, seat);
    seat->vetoed = open && atomic_load(&seat->slot->vetoed);
    seat->open = open && !seat->stuck && !seat->vetoed;
    seat->standby = false;
    if (seat->out.count > 0)
        look_at_running(desk, seat);
}

/* Never more children at work than `processes`: a successor waits until the one before it has gone.
 * Whoever has jobs comes first, then those to be replaced. */
static void set_standbys(jobq__desk *desk)
{
    size_t places = (size_t)desk->settings->processes, open = 0;

    for (size_t i = 0; i < desk->seat_count; i++)
        open += desk->seats[i].open;
    if (open <= places)
        return;
    for (int rank = 0; rank < 3; rank++)
        for (size_t i = 0; i < desk->seat_count; i++) {
            jobq__seat *seat = &desk->seats[i];
            const int own = seat->out.count > 0 ? 0 : atomic_load(&seat->slot->worn) ? 1 : 2;

            if (!seat->open || own != rank)
                continue;
            seat->standby = places == 0;
            seat->open = !seat->standby;
            places -= places > 0;
        }
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
    s->prefetch = depth > 0 || desk->worker->shared.seats > 1;
    s->room = jobq__delicate_room(desk, s->room);
}

/* Short jobs: as many again lie here, so that a child can be filled while the store is busy. */
static int64_t hoard_of(const jobq__desk *desk, const jobq__seat *seat, int64_t depth)
{
    bool quick = seat->open && !seat->clearing && seat->running_ms < JOBQ__LONG_MS;

    return quick && depth >= HOARD_FROM && desk->settings->prefetch < 0 ? depth : 0;
}

/* Every child that is there and going to stay wants no job to begin. */
static bool is_vetoed(const jobq__desk *desk)
{
    size_t vetoed = 0, others = 0;

    for (size_t i = 0; i < desk->seat_count; i++) {
        vetoed += desk->seats[i].vetoed;
        others += desk->seats[i].open || desk->seats[i].stuck;
    }
    return vetoed > 0 && others == 0;
}

void jobq__room_look(jobq__desk *desk)
{
    jobq__situation *s = &desk->s;
    int64_t depth = jobq__room_depth(desk);

    s->room = s->idle_children = s->rest_until_ms = 0;
    for (size_t i = 0; i < desk->seat_count; i++)
        look_at_seat(desk, &desk->seats[i]);
    set_standbys(desk);
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        s->idle_children += is_idle(desk, seat);
        s->room += room_of(desk, seat, depth) + hoard_of(desk, seat, depth);
        note_rest(desk, seat);
    }
    s->vetoed = is_vetoed(desk);
    settle_room(desk, depth);
}
