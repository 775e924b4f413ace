/* SPDX-License-Identifier: MIT
 *
 * Jobs of which the store has to know before they start: those whose loss would count as a crash
 * (their last try, or lost before; the store is told by a renewal), and those whose unique key is
 * freed at their start (by an exchange). They go only where they begin at once.
 *
 * One renewal for each start would make jobs of tries=1 many times slower than others. So short
 * ones that nothing speaks against are announced a few at a time and queue in their child; what of
 * them has not begun is acquitted as soon as the one before it takes long.
 */
#include "worker/desk.h"

enum {
    SOON = 256,       /* announced together, in all children */
    AHEAD = 32,       /* announced and not begun, in each ... */
    AHEAD_US = 10000, /* ... for no longer than this */
    PACE_MS = 50,     /* so much work of them is to lie here, measured over as long */
    ROUNDS = 4,       /* at the least this many times what the children can have */
    STALL_MS = 1000,  /* none began for so long */
    PATIENCE = 8,     /* while some begin, others may wait so many times as long */
    RARE_PERCENT = 1  /* fewer of those that come: no concern */
};

/* Did one of them begin lately? */
static bool is_lively(const jobq__desk *desk)
{
    return desk->delicate.given_ms && desk->now_ms - desk->delicate.given_ms < STALL_MS;
}

/* ---- who may queue --------------------------------------------------------------------------- */

/* How many may stand announced behind the one that runs. */
static size_t ahead_of(const jobq__desk *desk)
{
    const int64_t depth = jobq__room_depth(desk);
    int64_t n = AHEAD;

    if (desk->average_us < 0 || desk->worker->shared.seats > 1)
        return 0;
    if (n > (int64_t)(AHEAD_US / (desk->average_us + 1)))
        n = (int64_t)(AHEAD_US / (desk->average_us + 1));
    return (size_t)(n < depth ? n : depth);
}

static bool is_suspect(const jobq__seat *seat)
{
    bool found = seat->planned_alone;

    for (const jobq__ticket *ticket = seat->out.first; ticket && !found; ticket = ticket->next)
        found = ticket->handout->delicate & JOBQ__DELICATE_ALONE;
    return found;
}

/* What is announced and then does not go out is blamed though it never began: so nothing is that
 * has no room in the child's ring and area. */
static bool has_room(const jobq__desk *desk, const jobq__seat *seat, const jobq__ticket *ticket)
{
    uint64_t head = seat->planned_head;

    return jobq__message_fits(desk, seat, ticket, &head);
}

/* A child in which that one begins at once, or behind a few short ones; beside those that are
 * planned already. */
static bool may_go(const jobq__desk *desk, const jobq__seat *seat, const jobq__ticket *ticket,
                   size_t ahead)
{
    const size_t seats = ticket->handout->seats, taken = seat->out.count + seat->planned;
    const size_t width = seat->out.count > 0 ? jobq__room_width(seat) : seat->planned_width;

    if (!jobq__room_may_take(desk, seat) || !has_room(desk, seat, ticket))
        return false;
    if (taken == 0 || (width > 1 && taken < width && taken < seats))
        return true;
    return ticket->handout->delicate == JOBQ__DELICATE_BLAME && taken <= ahead &&
           seat->running_ms < AHEAD_US / 1000 && !is_suspect(seat);
}

static jobq__seat *place_for(const jobq__desk *desk, const jobq__ticket *ticket, size_t ahead)
{
    jobq__seat *best = NULL;

    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (may_go(desk, seat, ticket, ahead) &&
            (!best || seat->out.count + seat->planned < best->out.count + best->planned))
            best = seat;
    }
    return best;
}

/* In its turn: one whose unique key is to be freed goes before nobody, since the key must not be
 * free for longer than it takes to begin; *ahead: is there a plain one before it? */
static bool is_in_turn(const jobq__ticket *ticket, bool *ahead)
{
    const uint8_t delicate = ticket->handout->delicate;

    *ahead |= !delicate && ticket->record;
    return delicate && ticket->record && (delicate & JOBQ__DELICATE_BLAME || !*ahead);
}

static void plan_none(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        seat->planned = 0;
        seat->planned_alone = seat->planned_big = false;
        seat->planned_head = jobq__ring_head(&seat->slot->jobs);
    }
}

static void plan(const jobq__desk *desk, jobq__seat *seat, const jobq__ticket *ticket)
{
    jobq__message_fits(desk, seat, ticket, &seat->planned_head);
    seat->planned_big |= jobq__message_is_big(ticket);
    seat->planned_width = ticket->handout->seats;
    seat->planned_alone = ticket->handout->delicate & JOBQ__DELICATE_ALONE;
    seat->planned++;
}

static size_t plan_all(jobq__desk *desk, jobq__ticket **soon, jobq__seat **places, size_t most)
{
    const size_t ahead = ahead_of(desk);
    bool plain = false;
    size_t n = 0;

    plan_none(desk);
    for (jobq__ticket *ticket = desk->held.first; ticket && n < most; ticket = ticket->next) {
        if (!is_in_turn(ticket, &plain))
            continue;
        places[n] = place_for(desk, ticket, ahead);
        if (!places[n] && desk->worker->shared.seats <= 1)
            break;
        if (!places[n])
            continue;
        plan(desk, places[n], ticket);
        soon[n++] = ticket;
    }
    return n;
}

/* ---- telling the store, giving --------------------------------------------------------------- */

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

/* How many begin in PACE_MS. */
static void measure(jobq__desk *desk, size_t n)
{
    jobq__delicate *d = &desk->delicate;
    int64_t passed_ms;

    if (!is_lively(desk)) {
        d->since_ms = desk->now_ms;
        d->given = 0;
    }
    d->given_ms = desk->now_ms;
    d->given += n;
    passed_ms = desk->now_ms - d->since_ms;
    if (passed_ms < PACE_MS)
        return;
    d->pace = (size_t)((int64_t)d->given * PACE_MS / passed_ms);
    d->given = 0;
    d->since_ms = desk->now_ms;
}

void jobq__delicate_give(jobq__desk *desk)
{
    jobq__ticket *soon[SOON];
    jobq__seat *places[SOON];
    size_t n = plan_all(desk, soon, places, SOON);

    n = leave_out_keys(desk, soon, places, n);
    if (n == 0 || !announce(desk, soon, n))
        return;
    for (size_t i = 0; i < n; i++) {
        if (places[i]->full || !jobq__give_one(desk, places[i], soon[i])) {
            places[i]->full = true;
            desk->acquit |= is_to_blame(soon[i]);
            continue;
        }
        places[i]->clearing = false;
        soon[i]->listed = is_to_blame(soon[i]);
    }
    measure(desk, n);
}

/* ---- acquitting ------------------------------------------------------------------------------ */

/* Does anything stand in the record that has not begun? */
static bool has_announced(const jobq__seat *seat)
{
    const jobq__ticket *ticket = seat->out.first ? seat->out.first->next : NULL;

    while (ticket && !(ticket->listed && ticket->handout->delicate))
        ticket = ticket->next;
    return ticket && ticket->handout->seats <= 1;
}

static void acquit(jobq__desk *desk, jobq__seat *seat)
{
    jobq__ticket *prev;

    for (jobq__ticket *ticket = seat->out.last; ticket; ticket = prev) {
        prev = ticket->prev;
        if (ticket->listed && ticket->handout->delicate)
            jobq__give_take_back_one(desk, seat, ticket);
    }
}

void jobq__delicate_relieve(jobq__desk *desk)
{
    desk->s.look_at_ms = 0;
    if (!is_lively(desk))
        return;
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (seat->out.count > 1 && seat->running_ms >= AHEAD_US / 1000 && has_announced(seat))
            acquit(desk, seat);
    }
}

/* When a child is to be looked at for that. */
void jobq__delicate_situation(jobq__desk *desk)
{
    int64_t at_ms;

    desk->s.look_at_ms = 0;
    if (!is_lively(desk))
        return;
    for (size_t i = 0; i < desk->seat_count; i++) {
        if (!has_announced(&desk->seats[i]))
            continue;
        at_ms = desk->now_ms + AHEAD_US / 1000 - desk->seats[i].running_ms;
        if (desk->s.look_at_ms == 0 || at_ms < desk->s.look_at_ms)
            desk->s.look_at_ms = at_ms;
    }
}

/* ---- children that are kept free for them ---------------------------------------------------- */

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

/* Is the next one of those that run alone, where children may have several others? */
static bool waits_for_clear_child(const jobq__desk *desk)
{
    const jobq__ticket *ticket = desk->worker->shared.seats > 1 ? desk->held.first : NULL;

    while (ticket && ticket->handout->delicate)
        ticket = ticket->next;
    return ticket && ticket->handout->seats <= 1;
}

/* How many children they can use. */
static size_t count_children(const jobq__desk *desk)
{
    const size_t together = 1 + ahead_of(desk);
    bool plain = false;
    size_t single = 0, others = 0;

    for (const jobq__ticket *ticket = desk->held.first; ticket; ticket = ticket->next) {
        if (!is_in_turn(ticket, &plain))
            continue;
        if (ticket->handout->delicate == JOBQ__DELICATE_BLAME)
            others++;
        else
            single++;
    }
    return single + (others + together - 1) / together;
}

/* Exactly as long as there are any. */
void jobq__delicate_keep_clear(jobq__desk *desk)
{
    const size_t children = count_children(desk), plain = waits_for_clear_child(desk);

    clear_seats(desk, children + plain);
    for (size_t i = 0; i < desk->seat_count; i++)
        desk->seats[i].clear_for_plain = plain && children == 0 && desk->seats[i].clearing;
}

/* ---- how many to take from the store --------------------------------------------------------- */

/* Those of one reserve. */
void jobq__delicate_arrived(jobq__desk *desk, size_t delicate, size_t all)
{
    jobq__delicate *d = &desk->delicate;
    const double part = all ? (double)delicate / (double)all : 0;

    if (all > 0 && d->part <= 0)
        d->part = part;
    else if (all > 0)
        d->part += (part - d->part) / 4;
    d->known |= all > 0;
}

/* Which of the jobs in the store are such nobody knows before they are here: as many as ever, if
 * they are as those before. The first ones may all be. */
int64_t jobq__delicate_room(const jobq__desk *desk, int64_t room)
{
    const jobq__delicate *d = &desk->delicate;
    size_t most = ROUNDS * (size_t)desk->settings->processes * (1 + ahead_of(desk)), held = 0;
    double more;

    if (!d->known)
        return (int64_t)most < room ? (int64_t)most : room;
    if (d->part * 100 < RARE_PERCENT)
        return room;
    for (const jobq__ticket *ticket = desk->held.first; ticket; ticket = ticket->next)
        held += ticket->handout->delicate != 0;
    most = d->pace > most ? d->pace : most;
    more = held * 2 > most ? 0 : (double)(most - held) / d->part;
    more += (double)desk->held.count;
    return more < (double)room ? (int64_t)more : room;
}

int64_t jobq__delicate_patience(const jobq__desk *desk)
{
    return is_lively(desk) ? PATIENCE : 1;
}

/* Only an idle child may have one that was taken back from a lost worker; one waits for the next at
 * the most. */
int64_t jobq__delicate_want_taken_back(const jobq__desk *desk)
{
    int64_t want = desk->s.idle_children > 1 ? desk->s.idle_children : 1;

    for (const jobq__ticket *ticket = desk->held.first; ticket; ticket = ticket->next)
        want -= ticket->handout->delicate > JOBQ__DELICATE_BLAME;
    return want > 0 ? want : 0;
}
