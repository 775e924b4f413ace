/* SPDX-License-Identifier: MIT
 *
 * The desk's memory and clocks: tickets, parcels, lists, counters, and what the loop knows about
 * itself.
 */
#include "worker/desk.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

/* ---- lists ----------------------------------------------------------------------------------- */

void jobq__tickets_append(jobq__tickets *list, jobq__ticket *ticket)
{
    ticket->next = NULL;
    ticket->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = ticket;
    list->last = ticket;
    list->count++;
}

void jobq__tickets_prepend(jobq__tickets *list, jobq__ticket *ticket)
{
    ticket->prev = NULL;
    ticket->next = list->first;
    *(list->first ? &list->first->prev : &list->last) = ticket;
    list->first = ticket;
    list->count++;
}

void jobq__tickets_remove(jobq__tickets *list, jobq__ticket *ticket)
{
    *(ticket->prev ? &ticket->prev->next : &list->first) = ticket->next;
    *(ticket->next ? &ticket->next->prev : &list->last) = ticket->prev;
    ticket->next = ticket->prev = NULL;
    list->count--;
}

/* ---- tickets and parcels --------------------------------------------------------------------- */

jobq__ticket *jobq__desk_take(jobq__desk *desk)
{
    jobq__ticket *ticket = desk->unused.first;
    jobq__handout *handout;
    jobq__buf said;

    if (!ticket)
        return NULL;
    jobq__tickets_remove(&desk->unused, ticket);
    handout = ticket->handout;
    said = ticket->said;
    memset(ticket, 0, sizeof(*ticket));
    ticket->handout = handout;
    ticket->said = said;
    jobq__buf_reset(&ticket->said);
    ticket->delay_ms = ticket->ran_us = -1;
    return ticket;
}

static void leave_seat(jobq__desk *desk, jobq__ticket *ticket)
{
    jobq__seat *seat = desk->seats ? &desk->seats[ticket->handout->slot] : NULL;

    desk->out--;
    if (!seat)
        return;
    jobq__tickets_remove(&seat->out, ticket);
    if (seat->cells[ticket->handout->number % JOBQ__RECORDS] == ticket)
        seat->cells[ticket->handout->number % JOBQ__RECORDS] = NULL;
}

/* Takes the ticket out of the list that its phase says it is in. */
static void unlink_ticket(jobq__desk *desk, jobq__ticket *ticket)
{
    if (ticket->phase == JOBQ__TICKET_HELD)
        jobq__tickets_remove(&desk->held, ticket);
    else if (ticket->phase == JOBQ__TICKET_OUT)
        leave_seat(desk, ticket);
    if (ticket->has_said)
        jobq__told_forget(desk, ticket);
    else if (ticket->phase == JOBQ__TICKET_ENDED)
        jobq__tickets_remove(&desk->ended, ticket);
    if (ticket->handout->hook &&
        (ticket->phase == JOBQ__TICKET_HELD || ticket->phase == JOBQ__TICKET_OUT))
        desk->s.hooks_open--;
    if (ticket->phase == JOBQ__TICKET_ENDED && ticket->seated)
        desk->seats[ticket->handout->slot].unsettled--;
}

void jobq__desk_drop(jobq__desk *desk, jobq__ticket *ticket)
{
    unlink_ticket(desk, ticket);
    desk->hooks -= ticket->handout->hook;
    if (ticket->listed)
        desk->list_changed = true;
    if (ticket->ran)
        desk->ran--;
    if (ticket->ran)
        atomic_fetch_add_explicit(&desk->words->jobs_run, 1, memory_order_relaxed);
    if (ticket->parcel && --ticket->parcel->jobs == 0)
        jobq__desk_return_parcel(desk, ticket->parcel);
    jobq__told_drop(desk, ticket);
    jobq__free(ticket->own_fault);
    ticket->own_fault = NULL;
    ticket->parcel = NULL;
    ticket->record = NULL;
    ticket->phase = JOBQ__TICKET_FREE;
    atomic_store(&ticket->handout->state, JOBQ__HANDOUT_NONE);
    jobq__tickets_prepend(&desk->unused, ticket);
}

/* The words count it when the ticket is dropped: a successor reads unanswered results again. */
void jobq__handout_ran(jobq__desk *desk, jobq__ticket *ticket)
{
    if (ticket->handout->hook)
        return;
    ticket->ran = true;
    desk->ran++;
}

void jobq__handout_end(jobq__desk *desk, jobq__ticket *ticket, jobq_ending ending)
{
    unlink_ticket(desk, ticket);
    ticket->phase = JOBQ__TICKET_ENDED;
    ticket->ending = ending;
    if (ticket->ended_mono_ms == 0)
        ticket->ended_mono_ms = desk->now_ms;
    jobq__tickets_append(&desk->ended, ticket);
}

jobq__parcel *jobq__desk_parcel(jobq__desk *desk)
{
    jobq__parcel *parcel = desk->parcels;

    if (parcel)
        desk->parcels = parcel->next;
    else
        parcel = jobq__zalloc(sizeof(*parcel));
    if (parcel)
        parcel->next = NULL;
    return parcel;
}

void jobq__desk_return_parcel(jobq__desk *desk, jobq__parcel *parcel)
{
    jobq__batch_reset(&parcel->batch);
    parcel->jobs = 0;
    parcel->next = desk->parcels;
    desk->parcels = parcel;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static int make_queues(jobq__desk *desk)
{
    jobq_worker *worker = desk->worker;

    desk->queues = jobq__zalloc((worker->queue_count + 1) * sizeof(*desk->queues));
    if (!desk->queues)
        return jobq__error_nomem();
    for (size_t i = 0; i < worker->queue_count; i++)
        desk->queues[i] = jobq__slice_text(worker->queues[i]);
    return jobq__hooks_new(desk);
}

static int make_tickets(jobq__desk *desk, jobq__handout *handouts, size_t n)
{
    size_t most = jobq__store_driver(desk->store)->max_batch;

    desk->tickets = jobq__zalloc(n * sizeof(*desk->tickets));
    desk->settlements = jobq__zalloc(n * sizeof(*desk->settlements));
    desk->settling = jobq__zalloc(n * sizeof(jobq__ticket *));
    desk->running = jobq__zalloc(n * sizeof(*desk->running));
    if (!desk->tickets || !desk->settlements || !desk->settling || !desk->running)
        return jobq__error_nomem();
    desk->ticket_count = n;
    /* More than one call's worth would be split, and a failure between the parts could not be told
     * apart. */
    desk->settle_max = most > 0 && most < n ? most : n;
    for (size_t i = 0; i < n; i++) {
        desk->tickets[i].handout = &handouts[i];
        jobq__tickets_append(&desk->unused, &desk->tickets[i]);
    }
    return 0;
}

enum { HOST_MAX = 64 };

/* "host (name)", as core/workers.c reads it; a name that is too long for the store's column is
 * cut. */
static void describe(jobq__desk *desk)
{
    const char *name = desk->settings->name;
    char host[HOST_MAX + 1] = "";

    if (gethostname(host, HOST_MAX) != 0)
        memcpy(host, "localhost", sizeof("localhost"));
    snprintf(desk->host, sizeof(desk->host), name ? "%s (%.*s)" : "%s", host,
             name ? (int)jobq__utf8_cut(name, strlen(name), sizeof(desk->host) - HOST_MAX - 4) : 0,
             name);
    jobq__worker_names(desk->worker, &desk->names);
    jobq__worker_queues(desk->worker, &desk->queue_names);
}

static void set_limits(jobq__desk *desk)
{
    const jobq__settings *settings = desk->settings;
    jobq__situation *s = &desk->s;

    s->once = settings->once;
    s->stop_when_empty = settings->stop_when_empty;
    s->stop_when_empty_for_ms = settings->stop_when_empty_for_ms;
    s->max_jobs = settings->max_jobs;
    s->max_time_ms = settings->max_time_ms;
    s->max_reserve_failures = settings->max_reserve_failures;
    s->lease_ms = settings->lease_ms;
    s->started_ms = desk->worker->started_mono_ms;
}

int jobq__desk_new(jobq_worker *worker, jobq__handout *handouts, size_t n, jobq__desk **desk_out)
{
    jobq__desk *desk = jobq__zalloc(sizeof(*desk));
    int rc;

    if (!desk)
        return jobq__error_nomem();
    desk->worker = worker;
    desk->store = worker->queue->store;
    desk->words = worker->shared.words;
    desk->tally = &worker->queue->tally;
    desk->settings = &worker->run_conf->s;
    desk->id = jobq__slice_text(desk->words->worker_id);
    desk->average_us = -1;
    desk->failure_exit = 1;
    desk->now_ms = jobq__clock_mono_ms();
    set_limits(desk);
    rc = make_queues(desk);
    if (rc == 0)
        rc = jobq__control_new(desk);
    if (rc == 0)
        rc = make_tickets(desk, handouts, n);
    if (rc == 0)
        describe(desk);
    if (rc != 0) {
        jobq__desk_free(desk);
        return rc;
    }
    *desk_out = desk;
    return 0;
}

static void free_parcels(jobq__desk *desk)
{
    while (desk->parcels) {
        jobq__parcel *next = desk->parcels->next;

        jobq__batch_free(&desk->parcels->batch);
        jobq__free(desk->parcels);
        desk->parcels = next;
    }
}

void jobq__desk_free(jobq__desk *desk)
{
    if (!desk)
        return;
    for (size_t i = 0; i < desk->ticket_count; i++) {
        if (desk->tickets[i].phase != JOBQ__TICKET_FREE)
            jobq__desk_drop(desk, &desk->tickets[i]);
        jobq__buf_free(&desk->tickets[i].said);
    }
    free_parcels(desk);
    while (desk->posts)
        jobq__posts_drop(desk);
    jobq__control_free(desk);
    jobq__batch_free(&desk->scratch);
    jobq__batch_free(&desk->announced);
    jobq__arena_free(&desk->arena);
    jobq__buf_free(&desk->buf);
    jobq__buf_free(&desk->names);
    jobq__buf_free(&desk->queue_names);
    jobq__hooks_free(desk);
    jobq__free(desk->queues);
    jobq__free(desk->tickets);
    jobq__free(desk->settlements);
    jobq__free(desk->settling);
    jobq__free(desk->running);
    jobq__free(desk->seats);
    jobq__free(desk);
}

/* ---- clocks and counters --------------------------------------------------------------------- */

int64_t jobq__desk_store_now(const jobq__desk *desk)
{
    return desk->store_ms + (desk->now_ms - desk->store_mono_ms);
}

void jobq__desk_set_clock(jobq__desk *desk, int64_t store_ms)
{
    desk->now_ms = jobq__clock_mono_ms();
    desk->store_ms = store_ms;
    desk->store_mono_ms = desk->now_ms;
}

int64_t jobq__desk_call_budget(const jobq__desk *desk)
{
    const jobq__settings *connection = &desk->worker->queue->conf->s;

    return 2 * (connection->read_timeout_ms + connection->connect_timeout_ms) + 20000;
}

void jobq__desk_beat(jobq__desk *desk, int64_t budget_ms)
{
    atomic_store(&desk->words->beat_until_ms, jobq__clock_mono_ms() + budget_ms);
}

void jobq__desk_count(jobq__desk *desk, int which, int64_t n)
{
    atomic_fetch_add_explicit(&desk->words->counters[which], n, memory_order_relaxed);
}

enum { SAY_AGAIN_MS = 60000 };

bool jobq__desk_say(jobq__desk *desk, const char *what, jobq_slice name)
{
    size_t oldest = 0;
    char text[sizeof(desk->lines[0].name)];

    snprintf(text, sizeof(text), "%s %.*s", what, (int)(name.n > 48 ? 48 : name.n),
             (const char *)name.p);
    for (size_t i = 0; i < sizeof(desk->lines) / sizeof(desk->lines[0]); i++) {
        if (desk->lines[i].at_ms && strcmp(desk->lines[i].name, text) == 0) {
            if (desk->now_ms - desk->lines[i].at_ms < SAY_AGAIN_MS)
                return false;
            oldest = i;
            break;
        }
        if (desk->lines[i].at_ms < desk->lines[oldest].at_ms)
            oldest = i;
    }
    memcpy(desk->lines[oldest].name, text, sizeof(text));
    desk->lines[oldest].at_ms = desk->now_ms;
    return true;
}

/* ---- what the loop knows --------------------------------------------------------------------- */

/* What lies in paused queues, or what no child wants, is no work (rule G3). */
static bool is_resting(const jobq__situation *s)
{
    const bool none_ready =
        s->vetoed || s->all_paused || (s->store_empty && !s->passed_by && !s->woken);

    return none_ready && s->jobs_out == 0 && s->held == 0 && s->unsettled == 0;
}

static int64_t count_results(const jobq__desk *desk)
{
    int64_t n = 0;

    for (const jobq__ticket *ticket = desk->ended.first; ticket; ticket = ticket->next)
        n += ticket->ending != JOBQ_ENDED_UNSTARTED;
    return n;
}

void jobq__desk_situation(jobq__desk *desk)
{
    jobq__situation *s = &desk->s;

    s->now_ms = desk->now_ms;
    jobq__hooks_situation(desk);
    s->stop = atomic_load(&desk->words->stop);
    s->paused = atomic_load(&desk->words->paused) != 0;
    s->jobs_run = atomic_load(&desk->words->jobs_run) + desk->ran;
    s->jobs_out = (int64_t)desk->out;
    s->held = (int64_t)desk->held.count;
    s->in_doubt = desk->ask_held;
    jobq__control_situation(desk);
    jobq__told_situation(desk);
    s->unsettled = (int64_t)desk->ended.count;
    s->results = s->reserve_failures > 0 ? count_results(desk) : s->unsettled;
    if (!is_resting(s))
        s->empty_since_ms = 0;
    else if (s->empty_since_ms == 0)
        s->empty_since_ms = s->now_ms;
    if (s->stop == JOBQ__GO || s->jobs_out > 0)
        s->idle_since_ms = 0;
    else if (s->idle_since_ms == 0)
        s->idle_since_ms = s->now_ms;
}

void jobq__desk_limits(jobq__desk *desk, const jobq__step *step)
{
    uint32_t reason = step->stop_reason;
    int32_t none = 0;
    int code = step->exit_code;

    if (reason == JOBQ__STOP_UNREADABLE)
        code = desk->failure_exit;
    if (reason == JOBQ__STOP_UNREADABLE && code == 2) /* nobody waits for that to pass */
        reason = JOBQ__STOP_UNUSABLE;
    if (code != 0)
        atomic_compare_exchange_strong(&desk->words->exit_code, &none, code);
    if (step->stop_reason == JOBQ__STOP_EMPTY)
        jobq__control_stop_note(desk, desk->words->stop_note, sizeof(desk->words->stop_note));
    if (step->stop_reason)
        jobq__words_stop(desk->words, JOBQ__DRAIN, reason, step->stop_number);
}
