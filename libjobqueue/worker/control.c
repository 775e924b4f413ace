/* SPDX-License-Identifier: MIT
 *
 * What people ask of this worker through the store (rules L1 to L3): queues that are paused, a
 * restart, jobs that are to end. Every answer of the store carries a number that changes with any
 * of it; only when that differs from the one we know, pauses and wishes are asked for:
 *
 *     exchange, renewal --number--> told --differs from `read`--> READ: pauses, generation
 *                                        --differs from `marked`--> held: jobs to be cancelled
 */
#include <stdio.h>
#include <string.h>

#include "core/pauses.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"
#include "worker/desk.h"

enum {
    LOOK_MS = 500,  /* so often we ask when nothing else tells us the number */
    AGAIN_MS = 100, /* so rarely when it keeps changing */
    PEEK_MS = 800   /* so rarely for a handler that keeps asking */
};

/* ---- making ---------------------------------------------------------------------------------- */

static void serve_what_is_not_paused(jobq__desk *desk)
{
    jobq__control *control = &desk->control;
    const bool served = !desk->s.all_paused;

    control->serve_count = 0;
    for (size_t i = 0; i < desk->worker->queue_count; i++)
        if (!control->paused[i])
            control->serve[control->serve_count++] = desk->queues[i];
    desk->s.all_paused = control->serve_count == 0 && desk->worker->queue_count > 0;
    if (desk->s.all_paused && served)
        desk->s.maintain_at_ms = desk->now_ms; /* no exchange is going to say what is due */
}

int jobq__control_new(jobq__desk *desk)
{
    jobq__control *control = &desk->control;
    const size_t n = desk->worker->queue_count + 1;

    control->told = control->read = control->marked = -1;
    control->until_ms = jobq__zalloc(n * sizeof(*control->until_ms));
    control->paused = jobq__zalloc(n * sizeof(*control->paused));
    control->serve = jobq__zalloc(n * sizeof(*control->serve));
    if (!control->until_ms || !control->paused || !control->serve)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        control->until_ms[i] = JOBQ__NOT_PAUSED;
    serve_what_is_not_paused(desk);
    return 0;
}

void jobq__control_free(jobq__desk *desk)
{
    jobq__batch_free(&desk->control.batch);
    jobq__free(desk->control.until_ms);
    jobq__free(desk->control.paused);
    jobq__free(desk->control.serve);
}

/* ---- the number ------------------------------------------------------------------------------ */

void jobq__control_told(jobq__desk *desk, int64_t number)
{
    desk->control.told = number;
    desk->control.heard_ms = desk->now_ms;
}

/* When to ask what has changed, 0 = nothing has; at most so often. */
static int64_t ask_at(const jobq__desk *desk)
{
    const jobq__control *control = &desk->control;

    if (control->woken || control->read < 0)
        return 1;
    return control->told != control->read ? control->changed_ms + AGAIN_MS : 0;
}

bool jobq__control_is_due(const jobq__desk *desk)
{
    const int64_t at_ms = ask_at(desk);

    return at_ms > 0 && desk->now_ms >= at_ms;
}

void jobq__control_situation(jobq__desk *desk)
{
    desk->s.ask_control_ms = ask_at(desk);
    desk->s.control_at_ms = desk->control.heard_ms ? desk->control.heard_ms + LOOK_MS : 0;
}

/* ---- pauses (rule L1) ------------------------------------------------------------------------ */

bool jobq__control_is_paused(const jobq__desk *desk, jobq_slice queue)
{
    for (size_t i = 0; i < desk->worker->queue_count; i++)
        if (desk->control.paused[i] && jobq__slice_equal(desk->queues[i], queue))
            return true;
    return false;
}

static void note_pauses(jobq__desk *desk, const jobq_pause *pauses)
{
    for (size_t i = 0; i < desk->worker->queue_count; i++)
        desk->control.until_ms[i] =
            jobq__pause_until(pauses, desk->queues[i], desk->settings->force);
}

/* One that is paused or resumed, as far as this worker is concerned. */
static void tell(jobq__desk *desk, bool paused, jobq_slice queue)
{
    jobq__observer_paused(desk->observer, paused, queue);
    jobq__posts_say(desk, paused ? "queue.paused" : "queue.resumed", queue, NULL, 0);
}

/* Turns every queue whose pause has begun or ended; true: there was one. */
static bool turn_queues(jobq__desk *desk, bool paused)
{
    const int64_t store_now_ms = jobq__desk_store_now(desk);
    bool turned = false;

    for (size_t i = 0; i < desk->worker->queue_count; i++) {
        if (jobq__pause_holds(desk->control.until_ms[i], store_now_ms) != paused ||
            desk->control.paused[i] == paused)
            continue;
        desk->control.paused[i] = paused;
        turned = true;
        if (!desk->control.silent)
            tell(desk, paused, desk->queues[i]);
    }
    return turned;
}

/* When the next pause runs out, by our clock; 0 = none does. */
static int64_t next_end(const jobq__desk *desk)
{
    int64_t next = 0;

    for (size_t i = 0; i < desk->worker->queue_count; i++) {
        const int64_t until_ms = desk->control.paused[i] ? desk->control.until_ms[i] : 0;

        if (until_ms > 0 && (next == 0 || until_ms < next))
            next = until_ms;
    }
    return next ? desk->now_ms + (next - jobq__desk_store_now(desk)) : 0;
}

static void apply_pauses(jobq__desk *desk)
{
    const bool ended = turn_queues(desk, false), begun = turn_queues(desk, true);

    desk->control.silent = false;
    desk->s.pause_end_ms = next_end(desk);
    if (!ended && !begun)
        return;
    serve_what_is_not_paused(desk);
    desk->s.woken = true; /* what is known of the store is known of other queues */
    if (begun)
        jobq__give_back_paused(desk);
}

void jobq__control_tick(jobq__desk *desk)
{
    if (desk->s.pause_end_ms && desk->now_ms >= desk->s.pause_end_ms)
        apply_pauses(desk);
}

/* " (paused: mail, sms)": what counts as empty though nobody looked (rule G3). Vetoed are those
 * that are not paused and that no child wanted. */
static size_t list_queues(const jobq__desk *desk, jobq__buf *text, const char *head, bool paused)
{
    size_t n = 0;

    for (size_t i = 0; i < desk->worker->queue_count; i++) {
        if (desk->control.paused[i] != paused)
            continue;
        jobq__buf_adds(text, n++ ? ", " : head);
        jobq__buf_add(text, desk->queues[i].p, desk->queues[i].n);
    }
    return n;
}

void jobq__control_stop_note(const jobq__desk *desk, char *out, size_t size)
{
    jobq__buf text = {0};
    size_t n = list_queues(desk, &text, " (paused: ", true);

    if (desk->s.vetoed)
        n += list_queues(desk, &text, n ? "; vetoed: " : " (vetoed: ", false);
    if (n && !text.failed && text.n + 2 > size) {
        text.n = jobq__utf8_cut(text.p, text.n, size - sizeof("...)"));
        jobq__buf_adds(&text, "...");
    }
    jobq__buf_adds(&text, n ? ")" : "");
    snprintf(out, size, "%s", text.failed ? "" : jobq__buf_text(&text));
    jobq__buf_free(&text);
}

/* ---- restart (rule L2) ----------------------------------------------------------------------- */

/* A smaller one than ours: another store, or an emptied one; its next restart concerns us. */
static void compare_generation(jobq__desk *desk, int64_t generation)
{
    const int64_t ours = atomic_load(&desk->words->generation);

    if (ours < 0 || generation < ours)
        atomic_store(&desk->words->generation, generation);
    else if (generation > ours && !desk->control.for_one)
        desk->s.restart = true;
}

/* ---- cancelled jobs (rule L3) ---------------------------------------------------------------- */

/* Not begun: it ends here, whoever held it. Running: its handler is told. */
static void cancel_out(jobq__desk *desk, jobq__ticket *ticket)
{
    const uint64_t number = ticket->handout->number;
    jobq__slot *slot = desk->seats ? desk->seats[ticket->handout->slot].slot : NULL;

    if (!slot)
        return; /* inline: the handler asks */
    if (jobq__slot_revoke(slot, number)) {
        jobq__handout_end(desk, ticket, JOBQ_ENDED_STOPPED);
        return;
    }
    jobq__slot_mark(slot, number, JOBQ__MARK_CANCELLED);
    if (ticket->cancel != JOBQ_CANCEL_HARD)
        return;
    jobq__slot_mark(slot, number, JOBQ__MARK_FORCED);
    jobq__fd_ring(desk->worker->shared.master_bell[1]);
}

void jobq__control_cancel(jobq__desk *desk, jobq__ticket *ticket, uint8_t cancel)
{
    if (cancel <= ticket->cancel)
        return;
    ticket->cancel = cancel;
    if (ticket->phase == JOBQ__TICKET_HELD)
        jobq__handout_end(desk, ticket, JOBQ_ENDED_STOPPED);
    else if (ticket->phase == JOBQ__TICKET_OUT && !ticket->known)
        cancel_out(desk, ticket);
}

void jobq__control_marks(jobq__desk *desk, const jobq_batch *held)
{
    for (const jobq_record *record = held->first; record; record = record->next) {
        jobq__ticket *ticket = record->cancel ? jobq__desk_find(desk, record->token) : NULL;

        if (ticket)
            jobq__control_cancel(desk, ticket, record->cancel);
    }
}

/* Which of those we hold are to end? */
static int read_marks(jobq__desk *desk)
{
    jobq__control *control = &desk->control;
    const int64_t number = control->told;
    int rc = 0;

    jobq__batch_reset(&control->batch);
    if (desk->out + desk->held.count + desk->ended.count > 0) {
        jobq__desk_beat(desk, jobq__desk_call_budget(desk));
        rc = jobq__store_held(desk->store, desk->id, &control->batch);
    }
    if (rc < 0)
        return rc;
    jobq__control_marks(desk, &control->batch);
    control->marked = number;
    return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int read_control(jobq__desk *desk, jobq_control *c)
{
    *c = (jobq_control){.what = JOBQ_CONTROL_READ, .out = &desk->control.batch};
    jobq__batch_reset(c->out);
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    return jobq__store_control(desk->store, c);
}

int jobq__control_read(jobq__desk *desk)
{
    jobq__control *control = &desk->control;
    jobq_control c;
    int rc = read_control(desk, &c);

    if (rc < 0)
        return jobq__desk_fail(desk, rc);
    if (c.now_ms)
        jobq__desk_set_clock(desk, c.now_ms);
    jobq__control_told(desk, c.control);
    if (control->read >= 0 && control->read != c.control)
        control->changed_ms = desk->now_ms;
    control->read = c.control;
    control->woken = false;
    compare_generation(desk, c.generation);
    note_pauses(desk, c.pauses);
    apply_pauses(desk);
    rc = control->told == control->marked ? 0 : read_marks(desk);
    return rc < 0 ? jobq__desk_fail(desk, rc) : 0;
}

/* Quiet: a store that is away is the loop's business. */
void jobq__control_peek(jobq__desk *desk)
{
    jobq__control *control = &desk->control;
    jobq_control c;

    desk->now_ms = jobq__clock_mono_ms();
    if (!desk->renewed || jobq__desk_is_waiting_out(desk) ||
        (control->told == control->marked && desk->now_ms - control->heard_ms < PEEK_MS))
        return;
    if (desk->now_ms - control->heard_ms >= PEEK_MS) {
        control->heard_ms = desk->now_ms;
        if (read_control(desk, &c) < 0)
            return;
        jobq__control_told(desk, c.control);
    }
    if (control->told != control->marked)
        read_marks(desk);
}
