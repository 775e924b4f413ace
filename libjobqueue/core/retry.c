/* SPDX-License-Identifier: MIT
 *
 * What becomes of a job after each kind of end: one row per ending, and the limits that turn
 * "again" into "dead". Numbers in, numbers out.
 */
#include "core/retry.h"

#include <string.h>

#include "core/conf_table.h"

enum {
    PARK_FIRST_MS = 10000,
    PARK_LONGEST_MS = 60000,
    PARK_ANNOUNCED_MS = 1000,
    TRACKED_LEAST_MS = 3600000
};
static const int64_t longest_ms = (int64_t)JOBQ__TEN_YEARS_S * 1000;

/* ---- words ----------------------------------------------------------------------------------- */

#define ROW(value, name, word) [value] = (word),
static const char *const reasons[] = {[0] = "", JOBQ__REASON_LIST(ROW)};
#undef ROW
enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };

const char *jobq__reason_word(int reason)
{
    return reason > 0 && reason < REASONS ? reasons[reason] : "";
}

int jobq__reason_parse(const char *word)
{
    for (int i = 1; i < REASONS; i++)
        if (strcmp(reasons[i], word) == 0)
            return i;
    return 0;
}

#define ROW(name, word) [name] = (word),
static const char *const endings[JOBQ_ENDINGS] = {JOBQ_ENDING_LIST(ROW)};
#undef ROW

const char *jobq_ending_word(jobq_ending ending)
{
    return (unsigned)ending < JOBQ_ENDINGS ? endings[ending] : "unknown";
}

bool jobq__ending_began(jobq_ending ending)
{
    return ending != JOBQ_ENDED_UNSTARTED && ending != JOBQ_ENDED_UNDECODABLE &&
           ending != JOBQ_ENDED_UNKNOWN_NAME && ending != JOBQ_ENDED_UNSUPPORTED_VERSION;
}

const char *jobq_outcome_word(jobq_ending ending)
{
    const bool final = ending == JOBQ_ENDED_FAILED_BY_HANDLER ||
                       ending == JOBQ_ENDED_NOT_RETRYABLE || ending == JOBQ_ENDED_UNDECODABLE;

    return jobq_ending_word(final ? JOBQ_ENDED_FAILED : ending);
}

/* ---- what is in force ------------------------------------------------------------------------ */

static const jobq_conf *who_gave(const jobq_conf *worker, const jobq_conf *handler, size_t offset)
{
    return handler && jobq__conf_given_at(handler, offset) ? handler : worker;
}

/* Handler over worker over default; `fallback` has the defaults. */
#define PICK(field) who_gave(worker, handler, offsetof(jobq__settings, field))->s.field

static void from_registrations(jobq__policy *policy, const jobq_conf *worker,
                               const jobq_conf *handler)
{
    policy->tries = PICK(tries);
    policy->tries_given =
        jobq__conf_given(worker, tries) || (handler && jobq__conf_given(handler, tries));
    policy->timeout_ms = PICK(timeout_ms);
    policy->backoff = PICK(backoff);
    policy->max_crashes = PICK(max_crashes);
    policy->max_exceptions = PICK(max_exceptions);
    policy->max_releases = PICK(max_releases);
    policy->keep_done_ms = PICK(keep_done_ms);
    policy->dead_retention_ms = PICK(dead_retention_ms);
    policy->fail_on_timeout = PICK(fail_on_timeout);
    policy->timeout_grace_ms = worker->s.timeout_grace_ms;
    policy->unknown_for_ms = worker->s.unknown_for_ms;
    policy->jitter = PICK(jitter);
}

static void backoff_from_header(jobq__backoff *to, const jobq__header *header)
{
    *to = (jobq__backoff){.exponential = header->backoff_exponential};
    to->count = header->backoff_exponential ? 0 : header->backoff_count;
    memcpy(to->list_ms, header->backoff_ms, sizeof(to->list_ms));
}

static int64_t longer(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

static int64_t instant(int64_t ms, bool relative, int64_t base_at_ms)
{
    return relative ? base_at_ms + ms : ms;
}

static void from_push(jobq__policy *policy, const jobq__header *header, int64_t base_at_ms)
{
    if (header->has_tries) {
        policy->tries = header->tries;
        policy->tries_given = true;
    }
    if (header->has_timeout)
        policy->timeout_ms = header->timeout_ms;
    if (header->has_backoff)
        backoff_from_header(&policy->backoff, header);
    if (header->has_retry_until)
        policy->retry_until_at_ms =
            instant(header->retry_until_ms, header->retry_until_relative, base_at_ms);
    if (header->has_expires)
        policy->expires_at_ms = instant(header->expires_ms, header->expires_relative, base_at_ms);
    policy->drop_expired = header->drop_expired;
    policy->tracked = header->track;
    policy->until_started = header->until_started;
    policy->remember_ms = header->idempotent_for_ms;
    if (policy->tracked)
        policy->keep_done_ms = longer(policy->keep_done_ms, TRACKED_LEAST_MS);
}

void jobq__policy_make(jobq__policy *policy, const jobq_conf *worker, const jobq_conf *handler,
                       const jobq__header *header, int64_t base_at_ms)
{
    memset(policy, 0, sizeof(*policy));
    if (worker) {
        from_registrations(policy, worker, handler);
    } else {
        jobq_conf defaults = {.scope = JOBQ_SCOPE_WORKER};

        jobq__settings_default(&defaults.s);
        from_registrations(policy, &defaults, handler);
    }
    if (header)
        from_push(policy, header, base_at_ms);
    if (policy->retry_until_at_ms && !policy->tries_given)
        policy->tries = 0;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static bool reached(int64_t limit, int64_t count)
{
    return limit > 0 && count >= limit;
}

static bool is_past(int64_t at_ms, int64_t now_ms)
{
    return at_ms != 0 && now_ms >= at_ms;
}

/* The limit that ends the job, 0 = none. Of several the last attempt decides (rule F2). */
static int reached_limit(const jobq__policy *policy, const jobq_counters *c, jobq_ending last,
                         int64_t now_ms)
{
    bool tries = reached(policy->tries, c->failures + c->crashes),
         late = is_past(policy->retry_until_at_ms, now_ms);

    if (!tries && !late && !reached(policy->max_crashes, c->crashes) &&
        !reached(policy->max_exceptions, c->exceptions))
        return JOBQ__REASON_NONE;
    if (last == JOBQ_ENDED_CRASHED || last == JOBQ_ENDED_LEASE_LOST)
        return JOBQ__REASON_CRASHED;
    if (last == JOBQ_ENDED_TIMED_OUT)
        return JOBQ__REASON_TIMED_OUT;
    return late ? JOBQ__REASON_DEADLINE_PASSED : JOBQ__REASON_ATTEMPTS_EXHAUSTED;
}

int jobq__retry_may_start(const jobq__policy *policy, const jobq_counters *counters, int64_t now_ms,
                          int *reason_out)
{
    bool begun = counters->failures || counters->crashes || counters->releases;
    jobq_ending last = JOBQ_ENDED_FAILED;
    int reason;

    if (is_past(policy->expires_at_ms, now_ms) && !begun) {
        *reason_out = JOBQ__REASON_EXPIRED;
        return policy->drop_expired ? JOBQ__START_DROP : JOBQ__START_DEAD;
    }
    if (!begun) /* a first attempt is no retry: retry_until does not stop it */
        return JOBQ__START_RUN;
    /* Limits reached by an attempt that was judged have ended the job then: what is left are
     * crashes that the store found, and limits lowered since. */
    if (counters->crashes && !is_past(policy->retry_until_at_ms, now_ms))
        last = JOBQ_ENDED_CRASHED;
    reason = reached_limit(policy, counters, last, now_ms);
    if (reason == JOBQ__REASON_NONE)
        return JOBQ__START_RUN;
    *reason_out = reason;
    return JOBQ__START_DEAD;
}

/* ---- how long what has ended is kept --------------------------------------------------------- */

static void keep_done(const jobq__policy *policy, jobq__verdict *out)
{
    out->op = JOBQ_OP_DONE;
    out->keep_ms = longer(policy->keep_done_ms, policy->remember_ms);
    out->keep_bare = policy->keep_done_ms == 0 && out->keep_ms > 0;
}

/* Dead jobs with an end of their own stay at least as long as somebody counts on finding them. */
static void keep_dead(const jobq__policy *policy, int reason, jobq__verdict *out)
{
    out->op = JOBQ_OP_DEAD;
    out->reason = (uint8_t)reason;
    out->delay_ms = 0;
    out->keep_bare = false;
    out->keep_ms = policy->dead_retention_ms;
    if (out->keep_ms > 0)
        out->keep_ms = longer(
            out->keep_ms, longer(policy->remember_ms, policy->tracked ? policy->keep_done_ms : 0));
}

void jobq__retry_turn_away(const jobq__policy *policy, const jobq_counters *counters, int how,
                           int reason, jobq__verdict *out)
{
    *out = (jobq__verdict){.counters = *counters};
    if (how != JOBQ__START_DROP) {
        keep_dead(policy, reason, out);
        return;
    }
    out->reason = (uint8_t)reason;
    out->op = JOBQ_OP_DONE;
    if (policy->tracked || policy->remember_ms > 0)
        keep_done(policy, out);
}

bool jobq__retry_frees_key(const jobq__policy *policy, const jobq_counters *counters)
{
    return policy->until_started &&
           !(counters->failures || counters->crashes || counters->releases);
}

bool jobq__retry_is_delicate(const jobq__policy *policy, const jobq_counters *counters)
{
    return counters->losses > 0 ||
           reached(policy->tries, counters->failures + counters->crashes + 1) ||
           reached(policy->max_crashes, counters->crashes + 1);
}

/* ---- waiting times --------------------------------------------------------------------------- */

static int64_t doubled(int64_t base_ms, int64_t cap_ms, int64_t times)
{
    for (; times > 0 && base_ms < cap_ms; times--)
        base_ms = base_ms > cap_ms / 2 ? cap_ms : base_ms * 2;
    return base_ms < cap_ms ? base_ms : cap_ms;
}

int64_t jobq__backoff_ms(const jobq__backoff *backoff, int64_t k)
{
    if (k < 1)
        k = 1;
    if (backoff->exponential)
        return doubled(backoff->list_ms[0], backoff->list_ms[1], k - 1);
    if (backoff->count == 0)
        return 0;
    return backoff->list_ms[k < backoff->count ? k - 1 : backoff->count - 1];
}

static int64_t wait_after(const jobq__policy *policy, int64_t k, double unit)
{
    int64_t ms = jobq__backoff_ms(&policy->backoff, k);

    ms += (int64_t)((double)ms * policy->jitter * unit);
    return ms < longest_ms ? ms : longest_ms;
}

/* ---- one function per kind of end ------------------------------------------------------------ */

typedef struct {
    const jobq__policy *policy;
    const jobq__end *end;
    int64_t now_ms;
    double unit;
    jobq__verdict *out; /* counters: a copy of the old ones, losses and parks still in it */
} judgement;

static void bury(judgement *j, int reason)
{
    keep_dead(j->policy, reason, j->out);
}

static void put_back(judgement *j, int64_t delay_ms)
{
    j->out->op = JOBQ_OP_BACK;
    j->out->delay_ms = delay_ms < 0 ? 0 : delay_ms < longest_ms ? delay_ms : longest_ms;
}

/* Any end but a loss and a parking starts those rows anew. */
static void end_rows(judgement *j)
{
    j->out->counters.losses = 0;
    j->out->counters.parks = 0;
    j->out->counters.parked_since_ms = 0;
}

static void again_or_dead(judgement *j, int64_t k)
{
    int reason = reached_limit(j->policy, &j->out->counters, j->end->ending, j->now_ms);

    if (reason)
        bury(j, reason);
    else if (j->end->delay_ms >= 0)
        put_back(j, j->end->delay_ms);
    else
        put_back(j, wait_after(j->policy, k, j->unit));
}

static void judge_done(judgement *j)
{
    end_rows(j);
    keep_done(j->policy, j->out);
}

static void judge_failure(judgement *j)
{
    end_rows(j);
    j->out->counters.failures++;
    again_or_dead(j, j->out->counters.failures);
}

static void judge_throw(judgement *j)
{
    j->out->counters.exceptions++;
    judge_failure(j);
}

static void judge_timeout(judgement *j)
{
    judge_failure(j);
    if (j->policy->fail_on_timeout)
        bury(j, JOBQ__REASON_TIMED_OUT);
}

static void judge_crash(judgement *j)
{
    end_rows(j);
    j->out->counters.crashes++;
    again_or_dead(j, j->out->counters.failures + j->out->counters.crashes);
}

/* Costs nothing and comes back at once, unless it is the tenth in a row. */
static void judge_loss(judgement *j)
{
    j->out->counters.losses++;
    if (j->out->counters.losses >= JOBQ__LOSSES_PER_CRASH)
        judge_crash(j);
    else
        put_back(j, 0);
}

static void judge_release(judgement *j)
{
    end_rows(j);
    j->out->counters.releases++;
    if (j->policy->max_releases > 0 && j->out->counters.releases > j->policy->max_releases)
        bury(j, JOBQ__REASON_RELEASED_TOO_OFTEN);
    else
        put_back(j, j->end->delay_ms);
}

static void judge_give_back(judgement *j)
{
    j->out->op = JOBQ_OP_GIVE_BACK;
}

/* Dead by the handler's own word: the attempt counts as a failure. */
static void judge_final(judgement *j)
{
    static const uint8_t reason[JOBQ_ENDINGS] = {
        [JOBQ_ENDED_FAILED_BY_HANDLER] = JOBQ__REASON_FAILED_BY_HANDLER,
        [JOBQ_ENDED_NOT_RETRYABLE] = JOBQ__REASON_NOT_RETRYABLE,
        [JOBQ_ENDED_UNDECODABLE] = JOBQ__REASON_UNDECODABLE,
    };

    end_rows(j);
    j->out->counters.failures += j->end->ending != JOBQ_ENDED_UNDECODABLE;
    j->out->counters.exceptions += j->end->ending == JOBQ_ENDED_NOT_RETRYABLE;
    bury(j, reason[j->end->ending]);
}

/* Rule F3. parked_since_ms holds the start of the hour; while somebody announces the name the hour
 * stands still and the field holds what has passed of it, as a negative number. */
static void judge_unknown(judgement *j)
{
    jobq_counters *c = &j->out->counters;
    int64_t since = c->parked_since_ms, passed = since == 0  ? 0
                                                 : since < 0 ? -since
                                                             : j->now_ms - since;

    if (j->end->name_is_announced) {
        c->parked_since_ms = passed > 0 ? -passed : -1;
        put_back(j, PARK_ANNOUNCED_MS);
        return;
    }
    if (j->policy->unknown_for_ms >= 0 && passed >= j->policy->unknown_for_ms) {
        bury(j, j->end->ending == JOBQ_ENDED_UNKNOWN_NAME ? JOBQ__REASON_UNKNOWN_NAME
                                                          : JOBQ__REASON_UNSUPPORTED_VERSION);
        return;
    }
    c->parked_since_ms = j->now_ms - passed;
    put_back(j, doubled(PARK_FIRST_MS, PARK_LONGEST_MS, c->parks));
    c->parks++;
}

static void (*const judges[JOBQ_ENDINGS])(judgement *j) = {
    [JOBQ_ENDED_DONE] = judge_done,
    [JOBQ_ENDED_FAILED] = judge_throw,
    [JOBQ_ENDED_EXITED] = judge_failure,
    [JOBQ_ENDED_TIMED_OUT] = judge_timeout,
    [JOBQ_ENDED_CRASHED] = judge_crash,
    [JOBQ_ENDED_LEASE_LOST] = judge_loss,
    [JOBQ_ENDED_RELEASED] = judge_release,
    [JOBQ_ENDED_CLEANUP_FAILED] = judge_throw,
    [JOBQ_ENDED_STOPPED] = judge_give_back,
    [JOBQ_ENDED_FAILED_BY_HANDLER] = judge_final,
    [JOBQ_ENDED_NOT_RETRYABLE] = judge_final,
    [JOBQ_ENDED_UNDECODABLE] = judge_final,
    [JOBQ_ENDED_UNKNOWN_NAME] = judge_unknown,
    [JOBQ_ENDED_UNSUPPORTED_VERSION] = judge_unknown,
    [JOBQ_ENDED_UNSTARTED] = judge_give_back,
};

void jobq__retry_judge(const jobq__policy *policy, const jobq_counters *counters,
                       const jobq__end *end, int64_t now_ms, double unit, jobq__verdict *out)
{
    /* cppcheck-suppress ctuuninitvar ; written, not read */
    judgement j = {policy, end, now_ms, unit, out};

    *out = (jobq__verdict){.counters = *counters};
    if ((unsigned)end->ending < JOBQ_ENDINGS)
        judges[end->ending](&j);
    else
        judge_give_back(&j);
    if (end->cancelled && out->op != JOBQ_OP_DONE)
        bury(&j, JOBQ__REASON_CANCELLED);
}
