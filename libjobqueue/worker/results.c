/* SPDX-License-Identifier: MIT
 *
 * What comes back from children: results out of their rings, and deaths. A dead child's results are
 * drained first; then a record that still says RUNNING is the one to blame, and what was only GIVEN
 * goes elsewhere. A ring's room is given back when the store has answered for everything read from
 * it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/str.h"
#include "worker/desk.h"

/* ---- results --------------------------------------------------------------------------------- */

/* Handler times, smoothed: quick to learn that jobs got long, slower to believe that they got
 * short. */
static void learn(jobq__desk *desk, int64_t ran_us)
{
    double us = ran_us < 1 ? 1 : (double)ran_us;

    if (desk->average_us < 0)
        desk->average_us = us;
    else
        desk->average_us += (us - desk->average_us) * (us > desk->average_us * 8 ? 0.125 : 0.0625);
}

/* The moment the result's store counts from; a handler gone wild may have written anything. */
static int64_t sane_end(const jobq__desk *desk, const jobq__ticket *ticket, int64_t ended_mono_ms)
{
    if (ended_mono_ms < ticket->handout->taken_mono_ms || ended_mono_ms > desk->now_ms)
        return desk->now_ms;
    return ended_mono_ms;
}

/* What running jobs of that child said of themselves, when there is anything new. */
static void hear(jobq__desk *desk, jobq__seat *seat)
{
    if (atomic_load_explicit(&seat->slot->told, memory_order_relaxed) != seat->told)
        jobq__told_read(desk, seat);
}

static void end_by_result(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket,
                          const jobq__result_message *message, size_t n)
{
    const char *behind = (const char *)(message + 1);
    bool ran = message->ran_us >= 0;

    ticket->delay_ms = message->delay_ms;
    ticket->ran_us = message->ran_us;
    ticket->ended_mono_ms = sane_end(desk, ticket, message->ended_mono_ms);
    n -= sizeof(*message);
    if (message->fault_n > 0 && message->fault_n <= n)
        ticket->fault = jobq__slice(message + 1, message->fault_n);
    if (message->outcome_n > 0 || message->asked_done)
        jobq__told_outcome(desk, seat, ticket, message, behind + message->fault_n,
                           message->fault_n <= n ? n - message->fault_n : 0);
    if (ran && !ticket->handout->hook) {
        jobq__handout_ran(desk, ticket);
        learn(desk, message->ran_us);
    }
    if (desk->settings->verbose && ticket->ran && !ticket->shown)
        jobq__observer_processing(desk->observer, ticket->handout);
    ticket->ending =
        message->ending < JOBQ_ENDINGS ? (jobq_ending)message->ending : JOBQ_ENDED_FAILED;
    /* Rule D1: what a failed cleanup left behind goes with its process before the job may run
     * again. */
    ticket->known = ticket->ending == JOBQ_ENDED_CLEANUP_FAILED;
    if (!ticket->known)
        jobq__handout_end(desk, ticket, ticket->ending);
    ticket->seated = true;
    seat->unsettled++;
    if (desk->settings->rest_ms > 0 && ticket->ran)
        seat->rest_until_ms = ticket->ended_mono_ms + desk->settings->rest_ms;
}

/* Cells are used again as soon as a result was read: after a dispatcher's death two tickets may
 * share one. */
static jobq__ticket *find_ticket(const jobq__seat *seat, uint64_t number)
{
    jobq__ticket *ticket = seat->cells[number % JOBQ__RECORDS];

    if (ticket && ticket->handout->number == number)
        return ticket;
    for (ticket = seat->out.first; ticket && ticket->handout->number != number;
         ticket = ticket->next)
        ;
    return ticket;
}

static void read_one(jobq__desk *desk, jobq__seat *seat, const void *bytes, size_t n)
{
    const jobq__result_message *message = bytes;
    jobq__ticket *ticket;

    if (n < sizeof(*message))
        return;
    ticket = find_ticket(seat, message->handout);
    hear(desk, seat); /* before it ends */
    if (ticket && !ticket->known)
        end_by_result(desk, seat, ticket, message, n);
}

static void read_seat(jobq__desk *desk, jobq__seat *seat)
{
    const void *bytes;
    size_t n;

    while ((bytes = jobq__ring_look(&seat->slot->results, jobq__slot_base(seat->slot),
                                    &seat->cursor, &n)) != NULL)
        read_one(desk, seat, bytes, n);
    hear(desk, seat);
}

void jobq__results_read(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++)
        read_seat(desk, &desk->seats[i]);
}

void jobq__results_release(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (seat->unsettled > 0 ||
            seat->cursor == atomic_load_explicit(&seat->slot->results.tail, memory_order_relaxed))
            continue;
        jobq__ring_release(&seat->slot->results, seat->cursor);
        jobq__slot_wake(seat->slot); /* it may be waiting for room */
    }
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static const struct {
    int number;
    const char *name;
} signal_names[] = {{1, "SIGHUP"},   {2, "SIGINT"},   {3, "SIGQUIT"},  {4, "SIGILL"},
                    {6, "SIGABRT"},  {7, "SIGBUS"},   {8, "SIGFPE"},   {9, "SIGKILL"},
                    {11, "SIGSEGV"}, {13, "SIGPIPE"}, {14, "SIGALRM"}, {15, "SIGTERM"},
                    {24, "SIGXCPU"}, {25, "SIGXFSZ"}, {31, "SIGSYS"}};

static const char *signal_name(int number)
{
    for (size_t i = 0; i < sizeof(signal_names) / sizeof(signal_names[0]); i++)
        if (signal_names[i].number == number)
            return signal_names[i].name;
    return "signal";
}

static void word_death(const jobq__slot *slot, char *out, size_t size)
{
    int status = atomic_load(&slot->wait_status);
    uint32_t n = atomic_load(&slot->fatal_n);

    if (n > 0)
        snprintf(out, size, "%.*s", (int)(n < JOBQ__FATAL_TEXT ? n : JOBQ__FATAL_TEXT),
                 slot->fatal);
    else if (WIFSIGNALED(status))
        snprintf(out, size, "killed by signal %d (%s)%s", WTERMSIG(status),
                 signal_name(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
    else if (WIFEXITED(status))
        snprintf(out, size, "the handler called exit(%d)", WEXITSTATUS(status));
    else
        snprintf(out, size, "the process died in the middle of the job");
}

/* What the kill was for; a child killed for one hand-out is not to blame for another. */
static jobq_ending judge_death(const jobq__slot *slot, uint64_t number, bool shared)
{
    uint32_t kind = atomic_load(&slot->kill_kind);

    if (kind == JOBQ__KILL_STOP)
        return JOBQ_ENDED_STOPPED;
    if (kind == JOBQ__KILL_TIMEOUT)
        return atomic_load(&slot->killed) == number ? JOBQ_ENDED_TIMED_OUT : JOBQ_ENDED_STOPPED;
    /* Rule D4: it left of its own will, and nobody wrote a fatal error down. Which of several jobs
     * that was nobody knows. */
    if (!shared && WIFEXITED(atomic_load(&slot->wait_status)) && atomic_load(&slot->fatal_n) == 0)
        return JOBQ_ENDED_EXITED;
    return JOBQ_ENDED_CRASHED;
}

static void blame(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket, bool shared)
{
    const jobq__slot *slot = seat->slot;
    jobq_ending ending = judge_death(slot, ticket->handout->number, shared);
    const jobq__run *run = jobq__slot_find(slot, ticket->handout->number);
    int64_t since = run ? atomic_load(&run->since_ms) : 0;
    char text[JOBQ__FATAL_TEXT + 64];

    ticket->ran_us = since > 0 && since <= desk->now_ms ? (desk->now_ms - since) * 1000 : 0;
    if (ending == JOBQ_ENDED_TIMED_OUT)
        jobq__format(text, sizeof(text),
                     "over its time limit of %.6g s; it did not stop and was killed",
                     (double)ticket->handout->policy.timeout_ms / 1000);
    else
        word_death(slot, text, sizeof(text));
    if (ending != JOBQ_ENDED_STOPPED)
        jobq__handout_fault(ticket, text);
    ticket->asked_done = jobq__told_asked_done(desk, ticket);
    ticket->shared = shared && ending == JOBQ_ENDED_CRASHED;
    jobq__handout_ran(desk, ticket);
    jobq__handout_end(desk, ticket, ending);
    ticket->seated = true;
    seat->unsettled++;
}

/* Began or not? The one that began is to blame, the others are as they were. Of several that began
 * each is. */
static void judge_seat(jobq__desk *desk, jobq__seat *seat)
{
    size_t began = 0;

    jobq__give_revoke_all(desk, seat);
    for (const jobq__ticket *ticket = seat->out.first; ticket; ticket = ticket->next)
        began += !ticket->known;
    while (seat->out.first) {
        if (seat->out.first->known)
            jobq__handout_end(desk, seat->out.first, seat->out.first->ending);
        else
            blame(desk, seat, seat->out.first, began > 1);
    }
}

static bool is_drained(const jobq__seat *seat)
{
    return seat->out.count == 0 && seat->unsettled == 0;
}

static void free_seat(jobq__desk *desk, jobq__seat *seat)
{
    const jobq__shared *shared = &desk->worker->shared;
    jobq__slot *slot = seat->slot;

    if (desk->listener == seat)
        desk->listener = NULL;
    jobq__slot_return_area(slot, shared->areas + (size_t)(seat - desk->seats) * shared->area_size);
    jobq__slot_return_out(slot, shared->outs + (size_t)(seat - desk->seats) * shared->out_size);
    memset(seat, 0, sizeof(*seat));
    seat->slot = slot;
    jobq__slot_clear(slot);
}

void jobq__results_deaths(jobq__desk *desk)
{
    bool freed = false;

    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__seat *seat = &desk->seats[i];

        if (atomic_load(&seat->slot->state) != JOBQ__SLOT_DEAD)
            continue;
        read_seat(desk, seat);
        if (seat->out.count > 0)
            judge_seat(desk, seat);
        if (is_drained(seat)) {
            free_seat(desk, seat);
            freed = true;
        }
    }
    if (freed)
        jobq__fd_ring(desk->worker->shared.master_bell[1]);
}

/* ---- after the master's death, after a dispatcher's ------------------------------------------ */

/* Nobody reaps them any more for us: a process that is gone or a zombie is dead. */
static bool is_process_dead(int32_t pid)
{
    char path[64], text[256];
    const char *state;
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (!f)
        return true;
    n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    state = strrchr(text, ')');
    return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}

void jobq__results_orphans(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->seat_count; i++) {
        jobq__slot *slot = desk->seats[i].slot;
        uint32_t state = atomic_load(&slot->state);

        if ((state == JOBQ__SLOT_LIVE || state == JOBQ__SLOT_STARTING) &&
            is_process_dead(atomic_load(&slot->pid))) {
            atomic_store(&slot->wait_status, SIGKILL);
            atomic_store(&slot->state, JOBQ__SLOT_DEAD);
        }
    }
}

static void sit_down(jobq__desk *desk, jobq__ticket *ticket)
{
    jobq__handout *handout = ticket->handout;
    jobq__seat *seat = &desk->seats[handout->slot % desk->seat_count];

    ticket->phase = JOBQ__TICKET_OUT;
    ticket->listed = true; /* whatever the last list said, this one is running */
    if (atomic_load(&seat->slot->records[handout->number % JOBQ__RECORDS]) >> 2 == handout->number)
        seat->cells[handout->number % JOBQ__RECORDS] = ticket;
    jobq__tickets_append(&seat->out, ticket);
    desk->out++;
}

/* Bodies lay in the dead dispatcher's memory: what no child holds goes back to the store, as does
 * what a child has not begun. */
static void take_over_one(jobq__desk *desk, jobq__ticket *ticket)
{
    uint32_t state = atomic_load(&ticket->handout->state);

    if (state == JOBQ__HANDOUT_NONE)
        return;
    jobq__tickets_remove(&desk->unused, ticket);
    desk->hooks += ticket->handout->hook;
    desk->s.hooks_open += ticket->handout->hook;
    ticket->delay_ms = ticket->ran_us = -1;
    ticket->tried = true; /* it may have been in the exchange that was interrupted */
    if (state == JOBQ__HANDOUT_OUT) {
        sit_down(desk, ticket);
        return;
    }
    ticket->phase = JOBQ__TICKET_HELD;
    jobq__tickets_append(&desk->held, ticket);
}

void jobq__results_take_over(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->ticket_count; i++)
        take_over_one(desk, &desk->tickets[i]);
    jobq__results_read(desk);
    jobq__give_take_back(desk);
    for (size_t i = 0; i < desk->seat_count; i++)
        jobq__give_clear_strays(desk, &desk->seats[i]);
    jobq__give_return_held(desk, 0);
    jobq__hooks_take_over(desk);
    desk->ask_held = true;
}
