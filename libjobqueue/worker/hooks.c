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
    LATE_MS = 500,       /* for its promotion */
    VERY_LATE_MS = 5000, /* what is due by then and was not seen is something else */
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

/* Did the store do what the settlement asked for, or may it have? */
static bool may_hold(const jobq__ticket *ticket)
{
    return ticket->status == 0 || ticket->status == JOBQ_EUNKNOWN;
}

void jobq__hooks_died(jobq__desk *desk, const jobq__ticket *ticket)
{
    if (may_hold(ticket) && owes(desk, ticket))
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

/* ---- looking for them ------------------------------------------------------------------------ */

/* Several may be away at once, each with a time of its own: it is the last one that counts. Those
 * that come sooner are found when the store promotes them. */
static void expect(jobq__desk *desk, int64_t delay_ms)
{
    const int64_t at_ms = desk->now_ms + delay_ms + LATE_MS;

    if (at_ms > desk->hooks_until_ms)
        desk->hooks_until_ms = at_ms;
    desk->hooks_late_ms = 0;
    desk->hooks_away = true;
}

/* Nobody remembers what the dispatcher before this one waited for. */
void jobq__hooks_take_over(jobq__desk *desk)
{
    desk->s.hooks_look = desk->s.hooks_owed = true;
    expect(desk, SECOND_MS);
}

/* Their time is over and the store had none: still to be promoted, or through. */
static void miss(jobq__desk *desk, bool due)
{
    if (due && desk->hooks_late_ms == 0)
        desk->hooks_late_ms = desk->now_ms + VERY_LATE_MS;
    if (due && desk->now_ms < desk->hooks_late_ms)
        desk->hooks_again_ms = desk->now_ms + AGAIN_MS;
    else
        desk->hooks_away = false;
}

void jobq__hooks_looked(jobq__desk *desk, const jobq_exchange *x, size_t got)
{
    const bool due = x->next_due_ms && x->next_due_ms <= x->now_ms;

    desk->asked_hooks = true;
    desk->s.hooks_look = got >= x->want; /* more may be there */
    if (x->passed_by)
        desk->hooks_again_ms = desk->now_ms + AGAIN_MS;
    else if (desk->hooks_away && desk->hooks_until_ms == 0)
        miss(desk, due);
}

static bool will_owe(jobq__desk *desk, jobq__ticket *ticket)
{
    if (ticket->handout->hook || ticket->ending == JOBQ_ENDED_DONE || is_parked(ticket))
        return false;
    jobq__handout_judge(desk, ticket);
    return owes(desk, ticket);
}

/* One that is counted already, while its child is still to go. */
static bool is_known_to_come(jobq__desk *desk)
{
    for (size_t i = 0; desk->ran > 0 && i < desk->seat_count; i++)
        for (jobq__ticket *ticket = desk->seats[i].out.first; ticket; ticket = ticket->next)
            if (ticket->known && will_owe(desk, ticket))
                return true;
    return false;
}

/* Is there an ended job, not yet settled, that will owe one? Asked where a limit waits for it. */
static bool is_coming(jobq__desk *desk)
{
    const jobq__situation *s = &desk->s;

    if ((!s->once && !s->max_jobs) || s->reserve_failures > 0)
        return false;
    for (jobq__ticket *ticket = desk->ended.first; ticket; ticket = ticket->next)
        if (will_owe(desk, ticket))
            return true;
    return is_known_to_come(desk);
}

static bool has_come(const jobq__desk *desk, int64_t *at_ms)
{
    const bool come = *at_ms && desk->now_ms >= *at_ms;

    if (come)
        *at_ms = 0;
    return come;
}

/* When nothing more is to be looked for, those of our own deaths are through or with others. */
void jobq__hooks_situation(jobq__desk *desk)
{
    jobq__situation *s = &desk->s;

    s->hooks_coming = is_coming(desk);
    if (has_come(desk, &desk->hooks_again_ms))
        s->hooks_look = true;
    if (has_come(desk, &desk->hooks_until_ms))
        s->hooks_look = true;
    s->hooks_at_ms = desk->hooks_again_ms ? desk->hooks_again_ms : desk->hooks_until_ms;
    if (!s->hooks_look && desk->hooks == 0 && s->hooks_at_ms == 0)
        s->hooks_owed = false;
}

void jobq__hooks_judged(jobq__ticket *ticket)
{
    if (!ticket->handout->hook || ticket->verdict.op != JOBQ_OP_DEAD)
        return;
    ticket->verdict.op = JOBQ_OP_DONE; /* its reason stays and says that it was given up */
    ticket->verdict.keep_ms = 0;
    ticket->verdict.keep_bare = false;
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
    if (is_parked(ticket)) /* nothing to wait for */
        return;
    expect(desk, ticket->verdict.delay_ms);
    if (ticket->status == 0 && ticket->ending != JOBQ_ENDED_RELEASED)
        say_retried(desk, ticket);
}

/* A refused token: somebody else has it, or it lies there for anybody. */
void jobq__hooks_answered(jobq__desk *desk, const jobq__ticket *ticket)
{
    if (!may_hold(ticket) || ticket->verdict.op == JOBQ_OP_GIVE_BACK)
        desk->s.hooks_look = true;
    else if (ticket->verdict.op == JOBQ_OP_BACK)
        note_back(desk, ticket);
    else if (ticket->status == 0 && ticket->verdict.reason != JOBQ__REASON_NONE)
        say_given_up(desk, ticket);
}
