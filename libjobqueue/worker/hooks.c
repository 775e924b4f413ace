/* SPDX-License-Identifier: MIT
 *
 * Failed hooks of dead jobs (rule F6). A death stores its hook as a job of a hidden queue, in the
 * same step; from there on it is a job like others (reserved, leased, fenced, run in a child) that
 * counts nowhere and never dies: after three tries, or unknown_for without anybody who knows the
 * name, it is given up with a line.
 *
 * The hidden queues are asked when there is a reason to: after a death of our own, when a wait ends
 * for nothing we serve, at each renewal, when one that was put back is due.
 */
#include <string.h>

#include "core/follow.h"
#include "util/error.h"
#include "worker/desk.h"

enum {
    TRIES = 3,
    FIRST_MS = 1000,
    SECOND_MS = 2000,
    LATE_MS = 500, /* for its promotion */
    VERY_LATE_MS = 5000,
    AGAIN_MS = 200
};

/* ---- the queues ------------------------------------------------------------------------------ */

static bool set_hidden(jobq_slice *hidden, jobq_slice queue)
{
    char *p = jobq__alloc(queue.n + 1);

    if (!p)
        return false;
    *hidden = jobq__follow_hide(p, queue);
    return true;
}

int jobq__hooks_new(jobq__desk *desk)
{
    const size_t n = desk->worker->queue_count;

    desk->hidden = jobq__zalloc((n + 1) * sizeof(*desk->hidden));
    desk->watched = jobq__zalloc(2 * (n + 1) * sizeof(*desk->watched));
    if (!desk->hidden || !desk->watched)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        if (!set_hidden(&desk->hidden[i], desk->queues[i]))
            return jobq__error_nomem();
    return 0;
}

void jobq__hooks_free(jobq__desk *desk)
{
    for (size_t i = 0; desk->hidden && i < desk->worker->queue_count; i++)
        jobq__free((void *)desk->hidden[i].p);
    jobq__free(desk->hidden);
    jobq__free(desk->watched);
}

const jobq_slice *jobq__hooks_watch(jobq__desk *desk, const jobq_slice *served, size_t *count)
{
    const size_t n = desk->worker->queue_count;

    memcpy(desk->watched, served, *count * sizeof(*served));
    memcpy(desk->watched + *count, desk->hidden, n * sizeof(*desk->hidden));
    *count += n;
    return desk->watched;
}

/* ---- owing one ------------------------------------------------------------------------------- */

static bool has_handler(const jobq__desk *desk, const jobq__handout *handout)
{
    return handout->handler >= 0 || desk->worker->has_resolver;
}

/* Where this worker knows the name and runs no hooks, nobody is owed one. */
static bool owes(const jobq__desk *desk, const jobq__ticket *ticket)
{
    return !ticket->handout->hook && ticket->verdict.op == JOBQ_OP_DEAD &&
           (desk->worker->runs_hooks || !has_handler(desk, ticket->handout));
}

const jobq_push *jobq__hooks_follow(jobq__desk *desk, const jobq__ticket *ticket,
                                    const jobq__fault *fault)
{
    const jobq__handout *handout = ticket->handout;
    jobq__death death = {.id = jobq__slice_text(handout->id),
                         .queue = jobq__slice(handout->queue, handout->queue_n),
                         .name = jobq__slice(handout->name, handout->name_n)};

    if (!owes(desk, ticket))
        return NULL;
    if (ticket->record)
        death.header = ticket->record->header;
    death.version = handout->version;
    death.reason = ticket->verdict.reason;
    death.died_at_ms = jobq__desk_store_now(desk);
    death.class_name = fault->class_name;
    if (desk->settings->errors != 1)
        death.message = fault->message;
    return jobq__follow_make(&desk->arena, &death);
}

void jobq__hooks_died(jobq__desk *desk, const jobq__ticket *ticket)
{
    if (ticket->status == 0 && owes(desk, ticket))
        desk->s.hooks_look = desk->s.hooks_owed = true;
}

static bool is_parked(const jobq__ticket *ticket)
{
    return ticket->ending == JOBQ_ENDED_UNKNOWN_NAME ||
           ticket->ending == JOBQ_ENDED_UNSUPPORTED_VERSION;
}

/* ---- running one ----------------------------------------------------------------------------- */

void jobq__hooks_limit(jobq__policy *policy)
{
    const jobq__policy hook = {.tries = TRIES,
                               .tries_given = true,
                               .timeout_ms = policy->timeout_ms,
                               .timeout_grace_ms = policy->timeout_grace_ms,
                               .unknown_for_ms = policy->unknown_for_ms,
                               .backoff = {.count = 2, .list_ms = {FIRST_MS, SECOND_MS}}};

    *policy = hook;
}

bool jobq__hooks_are_run(const jobq__desk *desk, const jobq__handout *handout)
{
    return !handout->hook || desk->worker->runs_hooks;
}

void jobq__hooks_looked(jobq__desk *desk, size_t got, size_t want, bool due)
{
    desk->asked_hooks = true;
    desk->s.hooks_look = got >= want; /* more may be there */
    if (got == 0 && due && desk->now_ms < desk->hooks_late_ms)
        desk->s.hooks_at_ms = desk->now_ms + AGAIN_MS;
}

/* Is there an ended job, not yet settled, that will owe one? Asked where a limit waits for it. */
static bool is_coming(jobq__desk *desk)
{
    const jobq__situation *s = &desk->s;

    if ((!s->once && !s->max_jobs) || s->reserve_failures > 0)
        return false;
    for (jobq__ticket *ticket = desk->ended.first; ticket; ticket = ticket->next) {
        if (ticket->handout->hook || ticket->ending == JOBQ_ENDED_DONE || is_parked(ticket))
            continue;
        jobq__handout_judge(desk, ticket);
        if (owes(desk, ticket))
            return true;
    }
    return false;
}

/* When nothing more is to be looked for, those of our own deaths are through or with others. */
void jobq__hooks_situation(jobq__desk *desk)
{
    jobq__situation *s = &desk->s;

    s->hooks_coming = is_coming(desk);
    if (s->hooks_at_ms && s->now_ms >= s->hooks_at_ms) {
        s->hooks_look = true;
        s->hooks_at_ms = 0;
    }
    if (!s->hooks_look && desk->hooks == 0 && s->hooks_at_ms == 0)
        s->hooks_owed = false;
}

void jobq__hooks_judged(jobq__ticket *ticket)
{
    if (!ticket->handout->hook || ticket->verdict.op != JOBQ_OP_DEAD)
        return;
    ticket->verdict.op = JOBQ_OP_DONE; /* its reason stays and says that it was given up */
    ticket->verdict.keep_ms = 0;
}

/* ---- what people see of it ------------------------------------------------------------------- */

/* Which job it is about, as far as that can be told. */
static const char *dead_id(jobq__desk *desk, const jobq__ticket *ticket)
{
    jobq__death death = {0};

    if (ticket->record && jobq__follow_read(ticket->record->body, &desk->arena, &death))
        return death.id.p;
    return "of an unknown id";
}

static const char *message_of(jobq__desk *desk, const jobq__ticket *ticket)
{
    jobq__fault fault;

    if (ticket->fault.n > 0 && jobq__fault_read(ticket->fault, &desk->arena, &fault) &&
        fault.message.p)
        return fault.message.p;
    return jobq_outcome_word(ticket->ending);
}

static void say_given_up(jobq__desk *desk, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;

    if (ticket->verdict.reason == JOBQ__REASON_UNKNOWN_NAME ||
        ticket->verdict.reason == JOBQ__REASON_UNSUPPORTED_VERSION)
        jobq__observer_error(desk->observer,
                             "the failed hook of job %s (\"%s\") is given up: no worker of its "
                             "queue knows the name in version %d",
                             dead_id(desk, ticket), handout->name, (int)handout->version);
    else
        jobq__observer_error(desk->observer,
                             "the failed hook of job %s (\"%s\") is given up after %d tries: %s",
                             dead_id(desk, ticket), handout->name, TRIES, message_of(desk, ticket));
}

static void say_retried(jobq__desk *desk, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;

    jobq__observer_error(
        desk->observer,
        "the failed hook of job %s (\"%s\") failed, attempt %lld/%d, retrying in %lld s: %s",
        dead_id(desk, ticket), handout->name,
        (long long)(handout->counters.failures + handout->counters.crashes + 1), TRIES,
        (long long)((ticket->verdict.delay_ms + 999) / 1000), message_of(desk, ticket));
}

static void note_back(jobq__desk *desk, const jobq__ticket *ticket)
{
    jobq__situation *s = &desk->s;
    const int64_t at_ms = desk->now_ms + ticket->verdict.delay_ms + LATE_MS;

    if (is_parked(ticket)) /* nothing to wait for */
        return;
    if (s->hooks_at_ms == 0 || at_ms > s->hooks_at_ms)
        s->hooks_at_ms = at_ms;
    desk->hooks_late_ms = at_ms + VERY_LATE_MS;
    if (ticket->ending != JOBQ_ENDED_RELEASED)
        say_retried(desk, ticket);
}

/* A refused token: somebody else has it. */
void jobq__hooks_answered(jobq__desk *desk, const jobq__ticket *ticket)
{
    if (ticket->status != 0)
        return;
    if (ticket->verdict.op == JOBQ_OP_GIVE_BACK)
        desk->s.hooks_look = true;
    else if (ticket->verdict.op == JOBQ_OP_BACK)
        note_back(desk, ticket);
    else if (ticket->verdict.reason != JOBQ__REASON_NONE)
        say_given_up(desk, ticket);
}
