/* SPDX-License-Identifier: MIT
 *
 * The loop's policy: what to do next. Pure: no clock, no store, no memory. The limits that end a
 * worker are one table in the order of rule G4, the things to do another in the order they are
 * carried out.
 */
#include "worker/step.h"

#include "worker/shared.h"

enum {
    LOOK_MS = 50 /* while jobs are out */,
    LONGEST_WAIT_MS = 10000,
    PATIENCE_MS = 5000 /* with a store that is away when there is nothing to lose */,
    HOOKS_AT_ONCE = 16
};

static bool is_retrying(const jobq__situation *s)
{
    return s->reserve_failures > 0 && s->now_ms < s->retry_at_ms;
}

/* at_ms 0: there is nothing to be due. */
static bool is_due(const jobq__situation *s, int64_t at_ms)
{
    return at_ms > 0 && s->now_ms >= at_ms;
}

static bool is_maintenance_due(const jobq__situation *s)
{
    return is_due(s, s->maintain_at_ms);
}

static bool is_at_rest(const jobq__situation *s)
{
    return s->jobs_out == 0 && s->held == 0 && s->unsettled == 0;
}

/* Nothing ready and nothing running here (rule G3); a promotion that is due counts as ready, what
 * lies in paused queues does not. */
static bool is_empty(const jobq__situation *s)
{
    const bool none_ready =
        s->vetoed || (!s->hooks_look && (s->all_paused || (s->store_empty && !s->woken)));

    return none_ready && s->ask_control_ms == 0 && !s->paused && s->reserve_failures == 0 &&
           is_at_rest(s) && !is_maintenance_due(s);
}

/* Limits by jobs wait for the failed hooks of those that died here (rule F6); not in an outage. */
static bool waits_for_hooks(const jobq__situation *s)
{
    return s->reserve_failures == 0 && (s->hooks_owed || s->hooks_coming);
}

/* ---- limits: why a worker ends by itself ----------------------------------------------------- */

static bool is_to_restart(const jobq__situation *s)
{
    return s->restart;
}

static bool over_max_jobs(const jobq__situation *s)
{
    return s->max_jobs > 0 && s->jobs_run >= s->max_jobs && !waits_for_hooks(s);
}

static bool over_max_time(const jobq__situation *s)
{
    return s->max_time_ms > 0 && s->now_ms - s->started_ms >= s->max_time_ms;
}

static bool has_nothing_left(const jobq__situation *s)
{
    if (s->hooks_owed && !s->vetoed)
        return false;
    if (s->once && s->jobs_run == 0 && is_empty(s))
        return true; /* waits for none */
    if (s->stop_when_empty && is_empty(s) && !s->passed_by)
        return true;
    return s->stop_when_empty_for_ms > 0 && s->empty_since_ms > 0 && is_empty(s) &&
           s->now_ms - s->empty_since_ms >= s->stop_when_empty_for_ms;
}

static bool ran_the_one(const jobq__situation *s)
{
    return s->once && s->jobs_run >= 1 && !waits_for_hooks(s);
}

static bool is_unreadable(const jobq__situation *s)
{
    return s->max_reserve_failures > 0 && s->reserve_failures >= s->max_reserve_failures;
}

static int64_t number_of_jobs(const jobq__situation *s)
{
    return s->jobs_run;
}

static int64_t number_of_seconds(const jobq__situation *s)
{
    return (s->now_ms - s->started_ms) / 1000;
}

static int64_t number_of_failures(const jobq__situation *s)
{
    return s->reserve_failures;
}

static const struct {
    uint32_t reason;
    int exit_code;
    bool (*reached)(const jobq__situation *s);
    int64_t (*number)(const jobq__situation *s);
} limits[] = {
    {JOBQ__STOP_RESTART, 0, is_to_restart, NULL},
    {JOBQ__STOP_MAX_JOBS, 0, over_max_jobs, number_of_jobs},
    {JOBQ__STOP_MAX_TIME, 0, over_max_time, number_of_seconds},
    {JOBQ__STOP_EMPTY, 0, has_nothing_left, NULL},
    {JOBQ__STOP_ONCE, 0, ran_the_one, NULL},
    {JOBQ__STOP_UNREADABLE, 1, is_unreadable, number_of_failures},
};

static void judge_limits(const jobq__situation *s, jobq__step *out)
{
    for (size_t i = 0; s->stop == JOBQ__GO && i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (!limits[i].reached(s))
            continue;
        out->stop_reason = limits[i].reason;
        out->stop_number = limits[i].number ? limits[i].number(s) : 0;
        out->exit_code = limits[i].exit_code;
        return;
    }
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* How many more jobs the limits allow to be taken; never more than max_jobs in all, one with
 * `once`. */
static int64_t allowed(const jobq__situation *s)
{
    int64_t most = s->once ? 1 : s->max_jobs > 0 ? s->max_jobs : INT64_MAX;
    int64_t taken = s->jobs_run + s->jobs_out + s->held - s->hooks_open;

    return most > taken ? most - taken : 0;
}

static int64_t room_for_more(const jobq__situation *s)
{
    int64_t room = s->prefetch || s->room < s->idle_children ? s->room : s->idle_children;

    return room > s->held ? room - s->held : 0;
}

static int64_t wanted(const jobq__situation *s)
{
    int64_t most = allowed(s);
    int64_t want = room_for_more(s);

    if (s->stop != JOBQ__GO || s->paused || s->all_paused || s->now_ms < s->rest_until_ms)
        return 0;
    return want < most ? want : most;
}

static int64_t wanted_hooks(const jobq__situation *s)
{
    int64_t want = room_for_more(s);

    if (!s->hooks_look || s->stop != JOBQ__GO || s->paused)
        return 0;
    return want < HOOKS_AT_ONCE ? want : HOOKS_AT_ONCE;
}

static void judge_renewal(const jobq__situation *s, jobq__step *out)
{
    out->renew = s->now_ms >= s->renew_at_ms && (!is_retrying(s) || s->renewable);
}

static void judge_maintenance(const jobq__situation *s, jobq__step *out)
{
    out->maintain = s->stop == JOBQ__GO && is_maintenance_due(s) && !is_retrying(s);
}

static void judge_exchange(const jobq__situation *s, jobq__step *out)
{
    int64_t want = wanted(s), hooks = wanted_hooks(s);
    bool look = want > 0 && (!s->store_empty || s->woken);
    bool settle = s->unsettled > 0 && s->now_ms >= s->linger_until_ms;

    if (is_retrying(s))
        return;
    out->hooks = hooks > 0 && !(look && s->hooked); /* by turns */
    out->exchange = look || settle || out->hooks || s->keys > 0 || is_due(s, s->said_at_ms);
    out->want = out->hooks ? hooks : out->exchange ? want : 0;
}

/* Nobody idle: the next result brings the next reserve. (Nor may a taken-back job, which only an
 * idle child can have, keep the store saying that there is something.) */
static bool waits_on_store(const jobq__situation *s)
{
    return s->store_empty && !s->woken && s->reserve_failures == 0 && s->unsettled == 0 &&
           s->idle_children > 0 && wanted(s) > 0;
}

/* Neither a long wait on the store, which ends by itself, nor anything to stop any more. */
static bool must_ask_for_control(const jobq__situation *s)
{
    return s->jobs_out > 0 || (s->stop == JOBQ__GO && !waits_on_store(s));
}

static void judge_control(const jobq__situation *s, jobq__step *out)
{
    bool changed = s->ask_control_ms > 0 && s->now_ms >= s->ask_control_ms;
    bool due = s->control_at_ms > 0 && s->now_ms >= s->control_at_ms && !out->renew &&
               !out->exchange && must_ask_for_control(s);

    if (is_retrying(s) || (s->stop != JOBQ__GO && s->jobs_out == 0))
        return;
    out->control = changed || due;
}

static void judge_book(const jobq__situation *s, jobq__step *out)
{
    out->book = is_due(s, s->book_at_ms) && !is_retrying(s);
}

static void judge_give_back(const jobq__situation *s, jobq__step *out)
{
    out->give_back = (s->stop != JOBQ__GO || s->paused) && (s->held > 0 || s->jobs_out > 0);
}

/* Unstarted jobs, or those that may have been given to us, come back by themselves when our lease
 * has run out: worth a little patience. */
static bool has_something_to_return(const jobq__situation *s)
{
    return s->held > 0 || s->unsettled > 0 || s->in_doubt;
}

/* In an outage results are worth one more lease of waiting. */
static void judge_end(const jobq__situation *s, jobq__step *out)
{
    bool away = s->reserve_failures > 0;
    int64_t idle_ms = s->idle_since_ms > 0 ? s->now_ms - s->idle_since_ms : 0;

    if (s->stop == JOBQ__GO || s->jobs_out > 0)
        return;
    if (away && s->results > 0)
        out->give_up = idle_ms >= s->lease_ms;
    else if (away)
        out->finished = is_unreadable(s) || idle_ms >= PATIENCE_MS || !has_something_to_return(s);
    else
        out->finished = s->unsettled == 0 && s->held == 0;
    if (out->give_up)
        out->exit_code = 1;
}

static void sooner(int64_t *wait_ms, const jobq__situation *s, int64_t at_ms)
{
    int64_t left = at_ms - s->now_ms;

    if (at_ms > 0 && left < *wait_ms)
        *wait_ms = left > 0 ? left : 0;
}

static bool is_pending(const jobq__step *out)
{
    return out->renew || out->control || out->maintain || out->exchange || out->book ||
           out->give_up || out->finished || out->stop_reason;
}

/* When the store is to be called next. */
static void wait_for_calls(const jobq__situation *s, int64_t *wait)
{
    if (is_retrying(s))
        sooner(wait, s, s->retry_at_ms);
    if (!is_retrying(s) || s->renewable)
        sooner(wait, s, s->renew_at_ms);
    if (is_retrying(s))
        return;
    if (s->stop == JOBQ__GO) {
        sooner(wait, s, s->maintain_at_ms);
        sooner(wait, s, s->hooks_at_ms);
    }
    if (s->stop == JOBQ__GO || s->jobs_out > 0)
        sooner(wait, s, s->ask_control_ms);
    if (must_ask_for_control(s))
        sooner(wait, s, s->control_at_ms);
    sooner(wait, s, s->said_at_ms);
    sooner(wait, s, s->book_at_ms);
    if (s->unsettled > 0)
        sooner(wait, s, s->linger_until_ms);
}

/* When a stop in an outage no longer waits for the store. */
static void wait_for_end(const jobq__situation *s, int64_t *wait)
{
    if (s->stop != JOBQ__GO && s->reserve_failures > 0 && s->idle_since_ms > 0)
        sooner(wait, s, s->idle_since_ms + (s->results > 0 ? s->lease_ms : PATIENCE_MS));
}

/* When a limit is reached by time alone. */
static void wait_for_limits(const jobq__situation *s, int64_t *wait)
{
    if (s->stop != JOBQ__GO)
        return;
    sooner(wait, s, s->pause_end_ms);
    if (s->max_time_ms > 0)
        sooner(wait, s, s->started_ms + s->max_time_ms);
    if (s->stop_when_empty_for_ms > 0 && s->empty_since_ms > 0)
        sooner(wait, s, s->empty_since_ms + s->stop_when_empty_for_ms);
}

static void judge_wait(const jobq__situation *s, jobq__step *out)
{
    int64_t wait = s->jobs_out > 0 || s->held > 0 ? LOOK_MS : LONGEST_WAIT_MS;
    bool giving_back = out->give_back && s->held > 0; /* settled in the next round */

    out->wait_store = waits_on_store(s);
    if (s->rest_until_ms > s->now_ms)
        sooner(&wait, s, s->rest_until_ms);
    sooner(&wait, s, s->look_at_ms);
    wait_for_calls(s, &wait);
    wait_for_limits(s, &wait);
    wait_for_end(s, &wait);
    out->wait_ms = is_pending(out) || giving_back ? 0 : wait;
}

static void (*const steps[])(const jobq__situation *s, jobq__step *out) = {
    judge_limits, judge_renewal,   judge_maintenance, judge_exchange, judge_control,
    judge_book,   judge_give_back, judge_end,         judge_wait,
};

void jobq__step_decide(const jobq__situation *s, jobq__step *out)
{
    static const jobq__step nothing;

    *out = nothing;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        steps[i](s, out);
}

int64_t jobq__step_backoff_ms(int64_t failures, double unit)
{
    int64_t wait = failures >= 6 ? 30000 : failures < 1 ? 1000 : (int64_t)1000 << (failures - 1);

    return wait + (int64_t)((double)wait / 4 * unit);
}
