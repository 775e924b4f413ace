/* SPDX-License-Identifier: MIT
 *
 * Everything the desk says to the store: exchange, renew, maintain, held; and the book-keeping of
 * outages (rules K1, K2): a failure is printed, counted and waited out, a good call ends the row.
 */
#include <string.h>
#include <unistd.h>

#include "core/follow.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"
#include "worker/desk.h"

enum {
    WANT_BYTES = 4 << 20,   /* bodies of one reserve */
    SETTLE_BYTES = 4 << 20, /* outcomes of one exchange, at least one */
    MAINTAIN_LIMIT = 1000,
    MAINTAIN_AGAIN_MS = 200, /* when nothing could be done about what is due */
    ANNOUNCED_MS = 1000
};

/* ---- outages --------------------------------------------------------------------------------- */

/* These codes promise that nothing was changed; after any other of an exchange the worker asks what
 * it holds. */
static bool is_outcome_known(int rc)
{
    return rc == JOBQ_EBUSY || rc == JOBQ_ETIMEOUT || rc == JOBQ_ECONNECT || rc == JOBQ_ECONF ||
           rc == JOBQ_ENOMEM;
}

/* A wrong file, a newer schema: waiting will not help, the exit code says so (rule J1). */
static void note_configuration(jobq__desk *desk)
{
    if (desk->ever_connected || !jobq_error_is_fatal(jobq_error_last()))
        return;
    desk->failure_exit = 2;
    desk->s.max_reserve_failures = desk->s.reserve_failures;
}

static void tell_failure(jobq__desk *desk)
{
    const jobq__situation *s = &desk->s;
    const jobq__datum data[] = {
        {.key = "message", .text = jobq_error_message(jobq_error_last())},
        {.key = "failures", .number = (double)s->reserve_failures},
        {.key = "retry", .number = (double)(s->retry_at_ms - desk->now_ms) / 1000}};

    if (s->reserve_failures == 1)
        desk->away_since_ms = desk->now_ms;
    jobq__posts_say(desk, "store.error", jobq__slice(NULL, 0), data, 3);
}

static void tell_recovery(jobq__desk *desk)
{
    const jobq__datum data[] = {
        {.key = "failures", .number = (double)desk->s.reserve_failures},
        {.key = "away", .number = (double)(desk->now_ms - desk->away_since_ms) / 1000}};

    if (desk->s.reserve_failures > 0)
        jobq__posts_say(desk, "store.recovered", jobq__slice(NULL, 0), data, 2);
}

int jobq__desk_fail(jobq__desk *desk, int rc)
{
    jobq__situation *s = &desk->s;

    desk->now_ms = jobq__clock_mono_ms();
    s->reserve_failures++;
    s->retry_at_ms = desk->now_ms + jobq__step_backoff_ms(s->reserve_failures, jobq__rng_unit());
    desk->last_failure_ms = desk->now_ms;
    desk->renewals_only = false;
    s->woken = true; /* whatever was known of the store before */
    note_configuration(desk);
    jobq__desk_count(desk, JOBQ__COUNT_STORE_FAILURES, 1);
    tell_failure(desk);
    jobq__observer_error(desk->observer, "could not reserve a job: %s",
                         jobq_error_message(jobq_error_last()));
    return rc;
}

static void succeed(jobq__desk *desk, int64_t store_ms)
{
    jobq__desk_set_clock(desk, store_ms);
    tell_recovery(desk);
    desk->s.reserve_failures = 0;
    desk->s.renewable = false;
    desk->ever_connected = true;
    desk->failure_exit = 1;
    desk->s.max_reserve_failures = desk->settings->max_reserve_failures;
}

/* When maintenance is due by our clock. Nothing known: a lease from now, for workers that appear
 * and die while we sleep. */
static void set_due(jobq__desk *desk, int64_t next_due_ms)
{
    int64_t latest = desk->now_ms + desk->s.lease_ms;
    int64_t at = next_due_ms ? desk->now_ms + (next_due_ms - jobq__desk_store_now(desk)) : latest;

    if (at < desk->maintain_not_before_ms)
        at = desk->maintain_not_before_ms;
    desk->s.maintain_at_ms = at > latest ? latest : at < 1 ? 1 : at;
}

/* Asked for hidden queues, or for none, a store may know of nothing else: what was known stands. */
static void hear_due(jobq__desk *desk, const jobq_exchange *x)
{
    const int64_t before_ms = desk->s.maintain_at_ms;

    set_due(desk, x->next_due_ms);
    if ((desk->s.hooked || x->queue_count == 0) && before_ms && before_ms < desk->s.maintain_at_ms)
        desk->s.maintain_at_ms = before_ms;
}

/* ---- exchange -------------------------------------------------------------------------------- */

static size_t build_settlements(jobq__desk *desk)
{
    size_t n = 0, bytes = 0;

    jobq__arena_reset(&desk->arena);
    for (jobq__ticket *ticket = desk->ended.first; ticket && n < desk->settle_max;
         ticket = ticket->next) {
        bytes += ticket->outcome.n;
        if (n > 0 && bytes > SETTLE_BYTES)
            break;
        jobq__handout_settlement(desk, ticket, &desk->settlements[n]);
        desk->settling[n++] = ticket;
    }
    return jobq__told_settlements(desk, n);
}

/* Is something back on the queue that could be reserved at once? What has no answer waits for the
 * next exchange. */
static bool answer_all(jobq__desk *desk, size_t n)
{
    bool back = false;

    for (size_t i = 0; i < n; i++) {
        const jobq_settlement *settlement = &desk->settlements[i];

        if (settlement->result == JOBQ__UNANSWERED)
            continue;
        if (jobq__told_is_one(settlement)) {
            jobq__told_answered(desk, desk->settling[i], settlement);
            continue;
        }
        desk->settling[i]->status = settlement->result;
        back = back || settlement->op == JOBQ_OP_GIVE_BACK ||
               (settlement->op == JOBQ_OP_BACK && settlement->delay_ms <= 0);
        jobq__handout_answered(desk, desk->settling[i]);
    }
    return back;
}

static size_t accept_all(jobq__desk *desk, jobq__parcel *parcel)
{
    size_t n = 0, delicate = 0;

    parcel->jobs++; /* ours, so that it outlives tickets that end at once */
    for (const jobq_record *record = parcel->batch.first; record; record = record->next, n++) {
        const jobq__ticket *ticket = jobq__handout_accept(desk, record, parcel);

        desk->ask_held |= !ticket;
        delicate += ticket && ticket->handout->delicate;
    }
    if (--parcel->jobs == 0)
        jobq__desk_return_parcel(desk, parcel);
    if (!desk->s.hooked)
        jobq__delicate_arrived(desk, delicate, n);
    return n;
}

static void prepare(jobq__desk *desk, jobq_exchange *x, int64_t want, int64_t want_taken_back)
{
    size_t most = desk->unused.count;

    *x = (jobq_exchange){
        .worker = desk->id, .lease_ms = desk->settings->lease_ms, .settle = desk->settlements};
    x->settle_count = build_settlements(desk);
    if (want <= 0 || (!desk->s.hooked && desk->control.serve_count == 0))
        return;
    x->queues = desk->s.hooked ? desk->hidden : desk->control.serve;
    x->queue_count = desk->s.hooked ? desk->worker->queue_count : desk->control.serve_count;
    x->want = (size_t)want < most ? (size_t)want : most;
    x->want_taken_back = want_taken_back > 0 ? (size_t)want_taken_back : 0;
    x->want_bytes = WANT_BYTES;
    x->ask_passed_by = desk->s.stop_when_empty || desk->s.stop_when_empty_for_ms > 0 ||
                       (desk->s.hooked && desk->s.hooks_owed);
}

static int run_exchange(jobq__desk *desk, jobq_exchange *x)
{
    int rc;

    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    rc = jobq__store_exchange(desk->store, x);
    desk->now_ms = jobq__clock_mono_ms();
    return rc;
}

static int fail_exchange(jobq__desk *desk, jobq_exchange *x, jobq__parcel *parcel, int rc)
{
    jobq__desk_return_parcel(desk, parcel);
    jobq__desk_fail(desk, rc);
    /* a reservation that timed out may have been carried out all the same */
    if (!is_outcome_known(rc) || (x->want > 0 && rc == JOBQ_ETIMEOUT))
        desk->ask_held = true;
    for (size_t i = 0; !is_outcome_known(rc) && i < x->settle_count; i++)
        if (desk->settlements[i].result == JOBQ__UNANSWERED &&
            !jobq__told_is_one(&desk->settlements[i]))
            desk->settling[i]->tried = true;
    answer_all(desk, x->settle_count);
    return rc;
}

int jobq__desk_exchange(jobq__desk *desk, int64_t want, int64_t want_taken_back)
{
    jobq__parcel *parcel = jobq__desk_parcel(desk);
    jobq_exchange x;
    size_t got;
    bool back;
    int rc;

    if (!parcel)
        return jobq__desk_fail(desk, jobq__error_nomem());
    prepare(desk, &x, want, want_taken_back);
    x.out = &parcel->batch;
    rc = run_exchange(desk, &x);
    if (rc < 0)
        return fail_exchange(desk, &x, parcel, rc);
    succeed(desk, x.now_ms);
    jobq__control_told(desk, x.control);
    back = answer_all(desk, x.settle_count);
    got = accept_all(desk, parcel);
    if (x.want > 0 && desk->s.hooked) {
        jobq__hooks_looked(desk, &x, got);
    } else if (x.want > 0) {
        /* a wait that ended for nothing of these, and the first look of all */
        desk->s.hooks_look |= got == 0 && (desk->s.woken || !desk->asked_hooks);
        desk->s.store_empty = got == 0 || x.exhausted;
        desk->s.passed_by = x.passed_by;
        desk->s.woken = false;
    }
    if (back) /* also when nothing was asked for: what went back is ready again */
        desk->s.store_empty = false;
    hear_due(desk, &x);
    return 0;
}

/* ---- renew ----------------------------------------------------------------------------------- */

void jobq__desk_lose(jobq__desk *desk, jobq__ticket *ticket)
{
    jobq__seat *seat = desk->seats ? &desk->seats[ticket->handout->slot] : NULL;

    ticket->lost = true;
    desk->s.hooks_look |= ticket->handout->hook; /* nobody has it, maybe */
    if (ticket->phase == JOBQ__TICKET_HELD) {
        jobq__desk_drop(desk, ticket);
    } else if (ticket->phase == JOBQ__TICKET_OUT && seat) {
        if (jobq__slot_revoke(seat->slot, ticket->handout->number))
            jobq__desk_drop(desk, ticket);
        else
            jobq__slot_mark(seat->slot, ticket->handout->number, JOBQ__MARK_LOST);
    }
}

/* The record had lapsed and its jobs were taken: every older hand-out is somebody else's. */
static void lose_all(jobq__desk *desk)
{
    jobq__observer_error(desk->observer,
                         "the lease of worker %s ran out; the jobs it held go to others",
                         desk->words->worker_id);
    for (size_t i = 0; i < desk->ticket_count; i++)
        if (desk->tickets[i].phase != JOBQ__TICKET_FREE)
            jobq__desk_lose(desk, &desk->tickets[i]);
}

/* It ran, and the store has not heard the end: if we vanish now it must not run again. */
static bool is_to_blame_yet(const jobq__ticket *ticket)
{
    return ticket->listed && !ticket->lost && jobq__ending_began(ticket->ending) &&
           ticket->handout->delicate & JOBQ__DELICATE_BLAME;
}

static size_t list_running(jobq__desk *desk, jobq__ticket *const *soon, size_t soon_n)
{
    const jobq__ticket *ticket;
    size_t n = 0;

    for (size_t i = 0; i < desk->seat_count; i++)
        for (ticket = desk->seats[i].out.first; ticket; ticket = ticket->next)
            if (ticket->listed && !ticket->lost)
                desk->running[n++] = ticket->handout->token;
    for (ticket = desk->ended.first; ticket; ticket = ticket->next)
        if (is_to_blame_yet(ticket))
            desk->running[n++] = ticket->handout->token;
    for (size_t i = 0; i < soon_n && n < desk->ticket_count; i++)
        desk->running[n++] = soon[i]->handout->token;
    return n;
}

/* Two renewals in a row that count differently: something got lost on the way. */
static void compare_counts(jobq__desk *desk, int64_t held)
{
    size_t ours = desk->held.count + desk->ended.count + desk->out;

    desk->differs = held == (int64_t)ours ? 0 : desk->differs + 1;
    if (desk->differs >= 2)
        desk->ask_held = true;
}

static int fail_renewal(jobq__desk *desk, int rc)
{
    const bool only = desk->s.reserve_failures == 0 || desk->renewals_only;

    jobq__desk_fail(desk, rc);
    desk->renewals_only = only;
    desk->s.renewable = false;
    return rc;
}

/* A store that renews but answers no exchange is unreadable all the same (rule K1). */
static void succeed_renewal(jobq__desk *desk, int64_t store_ms)
{
    if (desk->s.reserve_failures == 0 || desk->renewals_only) {
        succeed(desk, store_ms);
        return;
    }
    jobq__desk_set_clock(desk, store_ms);
    desk->s.renewable = true;
}

int jobq__desk_renew(jobq__desk *desk, int64_t lease_ms, jobq__ticket *const *soon, size_t soon_n)
{
    jobq_renewal r = {.worker = desk->id, .lease_ms = lease_ms, .running = desk->running};
    bool first = !desk->renewed;
    int rc;

    r.running_count = list_running(desk, soon, soon_n);
    r.host = jobq__slice_text(desk->host);
    r.queues = jobq__slice(desk->queue_names.p ? desk->queue_names.p : "", desk->queue_names.n);
    r.names = jobq__slice(desk->names.p ? desk->names.p : "", desk->names.n);
    r.pid = desk->seats ? desk->worker->master_pid : getpid();
    r.processes = desk->settings->processes;
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    rc = jobq__store_renew(desk->store, &r);
    if (rc < 0 && rc != JOBQ_ELEASE)
        return fail_renewal(desk, rc);
    succeed_renewal(desk, r.now_ms);
    if (rc == 0)
        jobq__control_told(desk, r.control);
    desk->renewed = true;
    desk->list_changed = desk->acquit = false;
    desk->last_renew_ms = desk->now_ms;
    if (soon_n == 0)
        desk->s.renew_at_ms = desk->now_ms + (desk->s.lease_ms / 3 > 0 ? desk->s.lease_ms / 3 : 1);
    if (rc == JOBQ_ELEASE && !first)
        lose_all(desk);
    else if (rc == 0)
        compare_counts(desk, r.held);
    return rc;
}

/* ---- maintain -------------------------------------------------------------------------------- */

void jobq__desk_maintain(jobq__desk *desk)
{
    jobq__lost_entry lost = {0};
    jobq_maintenance m = {.limit = MAINTAIN_LIMIT, .loss_cap = JOBQ__LOSSES_PER_CRASH};
    int rc;

    jobq__lost_entry_make(&lost, jobq__desk_store_now(desk));
    m.lost_head = jobq__slice(lost.head, sizeof(lost.head));
    m.lost_tail = jobq__slice(lost.tail, lost.tail_n);
    m.take_back =
        desk->last_failure_ms == 0 || desk->now_ms - desk->last_failure_ms >= desk->s.lease_ms;
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    rc = jobq__store_maintain(desk->store, &m);
    if (rc < 0) {
        jobq__desk_fail(desk, rc);
        return;
    }
    jobq__desk_set_clock(desk, m.now_ms);
    if (m.handled > 0) {
        desk->s.woken = true;
        desk->s.hooks_look |= desk->hooks_away; /* one of them may be back */
    }
    desk->maintain_not_before_ms = m.handled > 0 ? 0 : desk->now_ms + MAINTAIN_AGAIN_MS;
    set_due(desk, m.more ? m.now_ms : m.next_due_ms);
}

/* ---- wait ------------------------------------------------------------------------------------ */

enum { POLL_MIN_MS = 10 };

void jobq__desk_wait_store(jobq__desk *desk, int64_t timeout_ms, int wake_fd)
{
    jobq_wait w = {.queue_count = desk->control.serve_count,
                   .timeout_ms = timeout_ms,
                   .wake_fd = wake_fd,
                   .control = desk->control.told < 0 ? NULL : &desk->control.told};
    int rc;

    w.queues = jobq__hooks_watch(desk, desk->control.serve, &w.queue_count);
    w.poll_ms = desk->settings->sleep_ms > POLL_MIN_MS ? desk->settings->sleep_ms : POLL_MIN_MS;
    jobq__desk_beat(desk, timeout_ms + jobq__desk_call_budget(desk));
    rc = jobq__store_wait(desk->store, &w);
    if (rc == JOBQ_WAIT_JOBS)
        desk->s.woken = true;
    else if (rc == JOBQ_WAIT_CONTROL)
        desk->control.woken = true;
    else if (rc < 0 && rc != JOBQ_EINTR)
        jobq__desk_fail(desk, rc);
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool jobq__desk_is_waiting_out(const jobq__desk *desk)
{
    return desk->s.reserve_failures > 0 && desk->now_ms < desk->s.retry_at_ms;
}

/* With each but the first a look for failed hooks is due, whatever else goes on. */
static void renew(jobq__desk *desk)
{
    const bool again = desk->renewed;

    if (jobq__desk_renew(desk, desk->settings->lease_ms, NULL, 0) == 0)
        desk->s.hooks_look |= again;
}

static void exchange(jobq__desk *desk, const jobq__step *step, int64_t want_taken_back)
{
    desk->s.hooked = step->hooks;
    jobq__desk_exchange(desk, step->want, want_taken_back);
    /* before what has just come is given to anybody */
    if (jobq__control_is_due(desk) && !jobq__desk_is_waiting_out(desk))
        jobq__control_read(desk);
}

void jobq__desk_call(jobq__desk *desk, const jobq__step *step, int64_t want_taken_back)
{
    if (step->renew)
        renew(desk);
    if (!desk->renewed)
        return;
    if (desk->ask_held && !jobq__desk_is_waiting_out(desk))
        jobq__desk_reconcile(desk);
    if (step->control && !jobq__desk_is_waiting_out(desk))
        jobq__control_read(desk);
    if (step->maintain && !jobq__desk_is_waiting_out(desk))
        jobq__desk_maintain(desk);
    if (step->exchange && !jobq__desk_is_waiting_out(desk))
        exchange(desk, step, want_taken_back);
    if (step->book && !jobq__desk_is_waiting_out(desk))
        jobq__told_book(desk);
}

/* ---- who announces a name (rule F3)? --------------------------------------------------------- */

static bool has_line(jobq_slice lines, const char *line, size_t n)
{
    const char *p = lines.p, *end = p ? p + lines.n : p;

    while (p && p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t length = (size_t)((stop ? stop : end) - p);

        if (length == n && memcmp(p, line, n) == 0)
            return true;
        p += length + 1;
    }
    return false;
}

static void refresh_announced(jobq__desk *desk)
{
    if (desk->announced_at_ms && desk->now_ms - desk->announced_at_ms < ANNOUNCED_MS)
        return;
    jobq__batch_reset(&desk->announced);
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    if (jobq__store_workers(desk->store, &desk->announced) < 0)
        jobq__batch_reset(&desk->announced);
    desk->announced_at_ms = desk->now_ms;
}

bool jobq__desk_is_announced(jobq__desk *desk, const jobq__handout *handout)
{
    const jobq_slice queue = jobq__follow_queue(jobq__slice(handout->queue, handout->queue_n));
    bool found = false;

    refresh_announced(desk);
    jobq__buf_reset(&desk->buf);
    jobq__buf_addf(&desk->buf, "%s@%d", handout->name, (int)handout->version);
    for (const jobq_worker_record *w = desk->announced.first_worker; w && !found; w = w->next)
        found =
            has_line(w->queues, queue.p, queue.n) && has_line(w->names, desk->buf.p, desk->buf.n);
    return found;
}
