/* SPDX-License-Identifier: MIT
 *
 * The retry policy as a table of cases: rules B5, B6, C4, C5, D1, D3, D4, E1-E3, F2-F4, I2, N7.
 */
#include "core/retry.h"

#include <string.h>

#include "harness/harness.h"

enum { NOW = 1000000 };

/* A policy with the defaults, no jitter, and what the case changes. */
typedef struct {
    int64_t tries, max_crashes, max_exceptions, max_releases, retry_until, keep_done;
    bool fail_on_timeout;
} limits;

#define DEFAULTS                \
    {                           \
        3, 3, 0, 0, 0, 0, false \
    }

static const struct {
    const char *rule;
    limits limits;
    jobq_counters before;
    jobq_ending ending;
    int64_t asked_ms; /* -1 = none */
    bool announced;
    /* wanted */
    int op, reason;
    int64_t delay_ms;
    jobq_counters after;
} cases[] = {
    {"D1 done",
     DEFAULTS,
     {.failures = 2},
     JOBQ_ENDED_DONE,
     -1,
     false,
     JOBQ_OP_DONE,
     0,
     0,
     {.failures = 2}},
    {"C4 done resets losses",
     DEFAULTS,
     {.losses = 4},
     JOBQ_ENDED_DONE,
     -1,
     false,
     JOBQ_OP_DONE,
     0,
     0,
     {0}},

    {"E1 first failure waits 10",
     DEFAULTS,
     {0},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1, .exceptions = 1}},
    {"E1 second failure waits 60",
     DEFAULTS,
     {.failures = 1},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     60000,
     {.failures = 2, .exceptions = 1}},
    {"E1 last entry repeats",
     {0, 0, 0, 0, 0, 0, false},
     {.failures = 8},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     300000,
     {.failures = 9, .exceptions = 1}},
    {"E1 not indexed by releases",
     DEFAULTS,
     {.releases = 50},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1, .exceptions = 1, .releases = 50}},
    {"E1 not indexed by crashes when it throws",
     {9, 9, 0, 0, 0, 0, false},
     {.crashes = 2},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1, .crashes = 2, .exceptions = 1}},
    {"E2 RetryAfter carries its delay",
     DEFAULTS,
     {0},
     JOBQ_ENDED_FAILED,
     1234,
     false,
     JOBQ_OP_BACK,
     0,
     1234,
     {.failures = 1, .exceptions = 1}},
    {"E2 RetryAfter of zero",
     DEFAULTS,
     {0},
     JOBQ_ENDED_FAILED,
     0,
     false,
     JOBQ_OP_BACK,
     0,
     0,
     {.failures = 1, .exceptions = 1}},
    {"C4 tries reached",
     DEFAULTS,
     {.failures = 2},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_ATTEMPTS_EXHAUSTED,
     0,
     {.failures = 3, .exceptions = 1}},
    {"C4 tries count crashes too",
     DEFAULTS,
     {.failures = 1, .crashes = 1},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_ATTEMPTS_EXHAUSTED,
     0,
     {.failures = 2, .crashes = 1, .exceptions = 1}},
    {"C4 tries 1",
     {1, 3, 0, 0, 0, 0, false},
     {0},
     JOBQ_ENDED_FAILED,
     5,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_ATTEMPTS_EXHAUSTED,
     0,
     {.failures = 1, .exceptions = 1}},
    {"C4 tries 0 is no limit",
     {0, 0, 0, 0, 0, 0, false},
     {.failures = 1000000},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     300000,
     {.failures = 1000001, .exceptions = 1}},
    {"B062 counters far beyond 32 bits",
     {0, 0, 0, 0, 0, 0, false},
     {.releases = 5000000000},
     JOBQ_ENDED_RELEASED,
     0,
     false,
     JOBQ_OP_BACK,
     0,
     0,
     {.releases = 5000000001}},
    {"D4 exit is a failure, no throw",
     DEFAULTS,
     {0},
     JOBQ_ENDED_EXITED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1}},
    {"D1 failed cleanup is a failure",
     DEFAULTS,
     {0},
     JOBQ_ENDED_CLEANUP_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1, .exceptions = 1}},
    {"C4 a failure resets losses and parks",
     DEFAULTS,
     {.losses = 3, .parks = 2, .parked_since_ms = 5},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1, .exceptions = 1}},

    {"E2 max_exceptions reached",
     {9, 3, 2, 0, 0, 0, false},
     {.failures = 4, .exceptions = 1},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_ATTEMPTS_EXHAUSTED,
     0,
     {.failures = 5, .exceptions = 2}},
    {"E2 max_exceptions counts throws only",
     {9, 3, 2, 0, 0, 0, false},
     {.failures = 1, .exceptions = 1},
     JOBQ_ENDED_EXITED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     60000,
     {.failures = 2, .exceptions = 1}},
    {"E2 retry_until passed",
     {0, 3, 0, 0, NOW, 0, false},
     {0},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_DEADLINE_PASSED,
     0,
     {.failures = 1, .exceptions = 1}},
    {"E2 retry_until not yet",
     {0, 3, 0, 0, NOW + 1, 0, false},
     {0},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1, .exceptions = 1}},
    {"E2 not retryable",
     DEFAULTS,
     {0},
     JOBQ_ENDED_NOT_RETRYABLE,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_NOT_RETRYABLE,
     0,
     {.failures = 1, .exceptions = 1}},

    {"I2 time limit is a failure",
     DEFAULTS,
     {0},
     JOBQ_ENDED_TIMED_OUT,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 1}},
    {"I2 fail_on_timeout",
     {3, 3, 0, 0, 0, 0, true},
     {0},
     JOBQ_ENDED_TIMED_OUT,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_TIMED_OUT,
     0,
     {.failures = 1}},
    {"F2 last attempt timed out",
     DEFAULTS,
     {.failures = 2},
     JOBQ_ENDED_TIMED_OUT,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_TIMED_OUT,
     0,
     {.failures = 3}},
    {"F2 last attempt crashed",
     DEFAULTS,
     {.failures = 2},
     JOBQ_ENDED_CRASHED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_CRASHED,
     0,
     {.failures = 2, .crashes = 1}},
    {"F2 crash beats retry_until",
     {3, 3, 0, 0, 1, 0, false},
     {.failures = 2},
     JOBQ_ENDED_CRASHED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_CRASHED,
     0,
     {.failures = 2, .crashes = 1}},
    {"F2 time limit beats retry_until",
     {3, 3, 0, 0, 1, 0, false},
     {.failures = 2},
     JOBQ_ENDED_TIMED_OUT,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_TIMED_OUT,
     0,
     {.failures = 3}},
    {"F2 retry_until beats tries",
     {3, 3, 0, 0, 1, 0, false},
     {.failures = 2},
     JOBQ_ENDED_FAILED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_DEADLINE_PASSED,
     0,
     {.failures = 3, .exceptions = 1}},

    {"C5 crash waits the entry of failures + crashes",
     DEFAULTS,
     {.failures = 1},
     JOBQ_ENDED_CRASHED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     60000,
     {.failures = 1, .crashes = 1}},
    {"C5 max_crashes also when tries is unlimited",
     {0, 3, 0, 0, 0, 0, false},
     {.crashes = 2},
     JOBQ_ENDED_CRASHED,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_CRASHED,
     0,
     {.crashes = 3}},
    {"C5 max_crashes 0 is no limit",
     {0, 0, 0, 0, 0, 0, false},
     {.crashes = 99},
     JOBQ_ENDED_CRASHED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     300000,
     {.crashes = 100}},
    {"C5 a loss is not counted",
     DEFAULTS,
     {.failures = 2, .losses = 3},
     JOBQ_ENDED_LEASE_LOST,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     0,
     {.failures = 2, .losses = 4}},
    {"C5 ten losses in a row count",
     DEFAULTS,
     {.losses = 9},
     JOBQ_ENDED_LEASE_LOST,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.crashes = 1}},
    {"C5 ten losses may end it",
     DEFAULTS,
     {.crashes = 2, .losses = 9},
     JOBQ_ENDED_LEASE_LOST,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_CRASHED,
     0,
     {.crashes = 3}},

    {"C4 release costs nothing",
     DEFAULTS,
     {.failures = 2, .losses = 1},
     JOBQ_ENDED_RELEASED,
     45000,
     false,
     JOBQ_OP_BACK,
     0,
     45000,
     {.failures = 2, .releases = 1}},
    {"D3 release without a delay",
     DEFAULTS,
     {0},
     JOBQ_ENDED_RELEASED,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     0,
     {.releases = 1}},
    {"C4 the last release allowed",
     {3, 3, 0, 2, 0, 0, false},
     {.releases = 1},
     JOBQ_ENDED_RELEASED,
     0,
     false,
     JOBQ_OP_BACK,
     0,
     0,
     {.releases = 2}},
    {"F2 released too often",
     {3, 3, 0, 2, 0, 0, false},
     {.releases = 2},
     JOBQ_ENDED_RELEASED,
     0,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_RELEASED_TOO_OFTEN,
     0,
     {.releases = 3}},

    {"C4 given back unstarted",
     DEFAULTS,
     {.failures = 2, .losses = 5},
     JOBQ_ENDED_UNSTARTED,
     -1,
     false,
     JOBQ_OP_GIVE_BACK,
     0,
     0,
     {.failures = 2, .losses = 5}},
    {"H1 ended by a stop",
     DEFAULTS,
     {.failures = 2},
     JOBQ_ENDED_STOPPED,
     -1,
     false,
     JOBQ_OP_GIVE_BACK,
     0,
     0,
     {.failures = 2}},
    {"D3 fail()",
     DEFAULTS,
     {0},
     JOBQ_ENDED_FAILED_BY_HANDLER,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_FAILED_BY_HANDLER,
     0,
     {.failures = 1}},
    {"A7 undecodable",
     DEFAULTS,
     {0},
     JOBQ_ENDED_UNDECODABLE,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_UNDECODABLE,
     0,
     {0}},

    {"F3 parked first 10 s",
     DEFAULTS,
     {.failures = 2},
     JOBQ_ENDED_UNKNOWN_NAME,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.failures = 2, .parks = 1, .parked_since_ms = NOW}},
    {"F3 growing",
     DEFAULTS,
     {.parks = 1, .parked_since_ms = NOW - 10000},
     JOBQ_ENDED_UNKNOWN_NAME,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     20000,
     {.parks = 2, .parked_since_ms = NOW - 10000}},
    {"F3 to 60 s",
     DEFAULTS,
     {.parks = 70, .parked_since_ms = NOW - 10000},
     JOBQ_ENDED_UNSUPPORTED_VERSION,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     60000,
     {.parks = 71, .parked_since_ms = NOW - 10000}},
    {"F3 dead after unknown_for",
     DEFAULTS,
     {.parks = 70, .parked_since_ms = NOW - 600000},
     JOBQ_ENDED_UNKNOWN_NAME,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_UNKNOWN_NAME,
     0,
     {.parks = 70, .parked_since_ms = NOW - 600000}},
    {"F3 dead by its version",
     DEFAULTS,
     {.parks = 1, .parked_since_ms = NOW - 600000},
     JOBQ_ENDED_UNSUPPORTED_VERSION,
     -1,
     false,
     JOBQ_OP_DEAD,
     JOBQ__REASON_UNSUPPORTED_VERSION,
     0,
     {.parks = 1, .parked_since_ms = NOW - 600000}},
    {"F3 announced: 1 s and the hour stands still",
     DEFAULTS,
     {.parks = 3, .parked_since_ms = NOW - 500000},
     JOBQ_ENDED_UNKNOWN_NAME,
     -1,
     true,
     JOBQ_OP_BACK,
     0,
     1000,
     {.parks = 3, .parked_since_ms = -500000}},
    {"F3 announced stays so",
     DEFAULTS,
     {.parks = 3, .parked_since_ms = -500000},
     JOBQ_ENDED_UNKNOWN_NAME,
     -1,
     true,
     JOBQ_OP_BACK,
     0,
     1000,
     {.parks = 3, .parked_since_ms = -500000}},
    {"F3 the hour goes on where it stood",
     DEFAULTS,
     {.parks = 0, .parked_since_ms = -500000},
     JOBQ_ENDED_UNKNOWN_NAME,
     -1,
     false,
     JOBQ_OP_BACK,
     0,
     10000,
     {.parks = 1, .parked_since_ms = NOW - 500000}},
};

static jobq__policy policy_of(const limits *l)
{
    jobq__policy p;

    jobq__policy_make(&p, NULL, NULL, NULL, 0);
    p.jitter = 0;
    p.unknown_for_ms = 600000;
    p.tries = l->tries;
    p.max_crashes = l->max_crashes;
    p.max_exceptions = l->max_exceptions;
    p.max_releases = l->max_releases;
    p.retry_until_at_ms = l->retry_until;
    p.keep_done_ms = l->keep_done;
    p.fail_on_timeout = l->fail_on_timeout;
    return p;
}

static void judges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jobq__policy policy = policy_of(&cases[i].limits);
        jobq__end end = {.ending = cases[i].ending,
                         .delay_ms = cases[i].asked_ms,
                         .name_is_announced = cases[i].announced};
        jobq__verdict v;

        jobq__retry_judge(&policy, &cases[i].before, &end, NOW, 0.999, &v);
        if (v.op != cases[i].op || v.reason != cases[i].reason || v.delay_ms != cases[i].delay_ms ||
            memcmp(&v.counters, &cases[i].after, sizeof(v.counters)) != 0)
            fail_msg("%s: op %d reason \"%s\" delay %lld failures %lld crashes %lld losses %lld "
                     "parks %lld since %lld",
                     cases[i].rule, v.op, jobq__reason_word(v.reason), (long long)v.delay_ms,
                     (long long)v.counters.failures, (long long)v.counters.crashes,
                     (long long)v.counters.losses, (long long)v.counters.parks,
                     (long long)v.counters.parked_since_ms);
    }
}

/* rule D1: kept keep_done seconds. */
static void keeps_done_jobs(void **state)
{
    jobq__policy policy = policy_of(&(limits){.keep_done = 7000});
    jobq__end end = {.ending = JOBQ_ENDED_DONE, .delay_ms = -1};
    jobq_counters c = {0};
    jobq__verdict v;

    (void)state;
    jobq__retry_judge(&policy, &c, &end, NOW, 0, &v);
    assert_int_equal(v.keep_ms, 7000);
}

/* rule E1: 0 to 10 % upward, never less than asked; rule A9: a later protocol is never dead. */
static void adds_jitter_upward(void **state)
{
    jobq__policy policy = policy_of(&(limits)DEFAULTS);
    jobq__end end = {.ending = JOBQ_ENDED_FAILED, .delay_ms = -1};
    jobq_counters c = {0};
    jobq__verdict v;

    (void)state;
    policy.jitter = 0.1;
    jobq__retry_judge(&policy, &c, &end, NOW, 0, &v);
    assert_int_equal(v.delay_ms, 10000);
    jobq__retry_judge(&policy, &c, &end, NOW, 0.5, &v);
    assert_int_equal(v.delay_ms, 10500);
    end.delay_ms = 4000; /* what the caller asked for stays as it is */
    jobq__retry_judge(&policy, &c, &end, NOW, 0.5, &v);
    assert_int_equal(v.delay_ms, 4000);

    policy.unknown_for_ms = -1;
    c = (jobq_counters){.parks = 1000000, .parked_since_ms = 1};
    end = (jobq__end){.ending = JOBQ_ENDED_UNSUPPORTED_VERSION, .delay_ms = -1};
    jobq__retry_judge(&policy, &c, &end, INT64_MAX / 2, 0.5, &v);
    assert_int_equal(v.op, JOBQ_OP_BACK);
    assert_int_equal(v.delay_ms, 60000);
}

static void doubles_up_to_the_cap(void **state)
{
    static const int64_t want[] = {2000, 4000, 8000, 16000, 20000, 20000};
    jobq__backoff b = {.exponential = true, .list_ms = {2000, 20000}}, none = {0};

    (void)state;
    for (int k = 1; k <= 6; k++)
        assert_int_equal(jobq__backoff_ms(&b, k), want[k - 1]);
    assert_int_equal(jobq__backoff_ms(&b, INT64_MAX), 20000);
    b.list_ms[1] = INT64_MAX;
    assert_int_equal(jobq__backoff_ms(&b, 5000), INT64_MAX);
    assert_int_equal(jobq__backoff_ms(&none, 3), 0);
}

/* ---- before the start ------------------------------------------------------------------------ */

static const struct {
    const char *rule;
    int64_t tries, max_crashes, retry_until, expires;
    bool drop;
    jobq_counters counters;
    int want, reason;
} starts[] = {
    {"fresh", 3, 3, 0, 0, false, {0}, JOBQ__START_RUN, 0},
    {"E3 expired", 3, 3, 0, NOW, false, {0}, JOBQ__START_DEAD, JOBQ__REASON_EXPIRED},
    {"E3 expired and dropped", 3, 3, 0, NOW - 1, true, {0}, JOBQ__START_DROP, JOBQ__REASON_EXPIRED},
    {"E3 not yet", 3, 3, 0, NOW + 1, false, {0}, JOBQ__START_RUN, 0},
    {"E3 it has started before", 3, 3, 0, NOW - 1, false, {.failures = 1}, JOBQ__START_RUN, 0},
    {"E3 a loss is no start",
     3,
     3,
     0,
     NOW - 1,
     false,
     {.losses = 1},
     JOBQ__START_DEAD,
     JOBQ__REASON_EXPIRED},
    {"E2 a first attempt is no retry", 0, 3, 1, 0, false, {0}, JOBQ__START_RUN, 0},
    {"E2 deadline passed while waiting",
     0,
     3,
     NOW,
     0,
     false,
     {.failures = 1},
     JOBQ__START_DEAD,
     JOBQ__REASON_DEADLINE_PASSED},
    {"E2 deadline passed after a release",
     0,
     3,
     NOW,
     0,
     false,
     {.releases = 1},
     JOBQ__START_DEAD,
     JOBQ__REASON_DEADLINE_PASSED},
    {"C5 crashes found by the store",
     0,
     3,
     0,
     0,
     false,
     {.crashes = 3},
     JOBQ__START_DEAD,
     JOBQ__REASON_CRASHED},
    {"C5 tries used up by a crash",
     3,
     0,
     0,
     0,
     false,
     {.failures = 2, .crashes = 1},
     JOBQ__START_DEAD,
     JOBQ__REASON_CRASHED},
    {"B2 tries lowered since",
     1,
     3,
     0,
     0,
     false,
     {.failures = 1},
     JOBQ__START_DEAD,
     JOBQ__REASON_ATTEMPTS_EXHAUSTED},
    {"C4 releases are no tries", 1, 3, 0, 0, false, {.releases = 100}, JOBQ__START_RUN, 0},
};

static void judges_before_the_start(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        jobq__policy p = policy_of(&(limits){.tries = starts[i].tries,
                                             .max_crashes = starts[i].max_crashes,
                                             .retry_until = starts[i].retry_until});
        int reason = 0, got;

        p.expires_at_ms = starts[i].expires;
        p.drop_expired = starts[i].drop;
        got = jobq__retry_may_start(&p, &starts[i].counters, NOW, &reason);
        if (got != starts[i].want || reason != starts[i].reason)
            fail_msg("%s: %d \"%s\"", starts[i].rule, got, jobq__reason_word(reason));
    }
}

static void knows_delicate_jobs(void **state)
{
    jobq__policy p = policy_of(&(limits)DEFAULTS);

    (void)state;
    assert_false(jobq__retry_is_delicate(&p, &(jobq_counters){.failures = 1}));
    assert_true(jobq__retry_is_delicate(&p, &(jobq_counters){.failures = 1, .crashes = 1}));
    assert_true(jobq__retry_is_delicate(&p, &(jobq_counters){.losses = 1}));
    p.tries = 0;
    assert_false(jobq__retry_is_delicate(&p, &(jobq_counters){.failures = 100}));
    assert_true(jobq__retry_is_delicate(&p, &(jobq_counters){.crashes = 2}));
}

/* ---- what is in force ------------------------------------------------------------------------ */

/* rules B2 and E2: push over handler over worker; retry_until alone lifts the default of tries. */
static void push_wins_over_handler_over_worker(void **state)
{
    jobq_conf *w = jobq_conf_new(JOBQ_SCOPE_WORKER, 0), *h = jobq_conf_new(JOBQ_SCOPE_HANDLER, 0);
    jobq__header header = {.has_tries = true,
                           .tries = 9,
                           .has_timeout = true,
                           .timeout_ms = 5,
                           .has_expires = true,
                           .expires_relative = true,
                           .expires_ms = 50,
                           .drop_expired = true,
                           .has_backoff = true,
                           .backoff_count = 1,
                           .backoff_ms = {77}};
    jobq__policy p;

    (void)state;
    jobq__policy_make(&p, w, h, NULL, 0);
    assert_int_equal(p.tries, 3);
    assert_ok(jobq_conf_set_int(w, "tries", 5));
    assert_ok(jobq_conf_set_int(w, "max_crashes", 8));
    jobq__policy_make(&p, w, h, NULL, 0);
    assert_int_equal(p.tries, 5);
    assert_ok(jobq_conf_set_int(h, "tries", 7));
    assert_ok(jobq_conf_set_bool(h, "fail_on_timeout", true));
    assert_ok(jobq_conf_set_double(h, "jitter", 0.5));
    jobq__policy_make(&p, w, h, NULL, 0);
    assert_int_equal(p.tries, 7);
    assert_int_equal(p.max_crashes, 8);
    assert_true(p.fail_on_timeout);
    assert_true(p.jitter == 0.5);
    jobq__policy_make(&p, w, h, &header, 1000);
    assert_int_equal(p.tries, 9);
    assert_int_equal(p.timeout_ms, 5);
    assert_int_equal(p.expires_at_ms, 1050);
    assert_true(p.drop_expired);
    assert_int_equal(jobq__backoff_ms(&p.backoff, 3), 77);

    header = (jobq__header){.has_retry_until = true, .retry_until_ms = 123456};
    jobq__policy_make(&p, NULL, NULL, &header, 1000);
    assert_int_equal(p.tries, 0);
    assert_int_equal(p.retry_until_at_ms, 123456);
    jobq__policy_make(&p, w, NULL, &header, 1000); /* both given: both apply (B062) */
    assert_int_equal(p.tries, 5);
    jobq_conf_free(w);
    jobq_conf_free(h);
}

static void has_stable_words(void **state)
{
    (void)state;
    assert_int_equal(jobq__reason_parse("released_too_often"), 12);
    assert_int_equal(jobq__reason_parse("nonsense"), 0);
    assert_string_equal(jobq__reason_word(0), "");
    assert_string_equal(jobq__reason_word(99), "");
    assert_string_equal(jobq_ending_word(JOBQ_ENDED_CRASHED), "crashed");
    assert_string_equal(jobq_ending_word((jobq_ending)99), "unknown");
}

/* Rule L3: a job that was to end is done if it is done, and dead otherwise. */
static void buries_cancelled_jobs(void **state)
{
    jobq__policy policy;
    jobq__verdict v;

    (void)state;
    jobq__policy_make(&policy, NULL, NULL, NULL, 0);
    for (int ending = 0; ending < JOBQ_ENDINGS; ending++) {
        const jobq__end end = {.ending = (jobq_ending)ending, .delay_ms = -1, .cancelled = true};
        const jobq_counters before = {.failures = 1};

        jobq__retry_judge(&policy, &before, &end, NOW, 0, &v);
        assert_int_equal(v.op, ending == JOBQ_ENDED_DONE ? JOBQ_OP_DONE : JOBQ_OP_DEAD);
        assert_int_equal(v.reason, ending == JOBQ_ENDED_DONE ? 0 : JOBQ__REASON_CANCELLED);
        assert_int_equal(
            v.counters.failures,
            1 + (ending == JOBQ_ENDED_FAILED || ending == JOBQ_ENDED_EXITED ||
                 ending == JOBQ_ENDED_TIMED_OUT || ending == JOBQ_ENDED_CLEANUP_FAILED ||
                 ending == JOBQ_ENDED_FAILED_BY_HANDLER || ending == JOBQ_ENDED_NOT_RETRYABLE));
    }
}

/* ---- how long what has ended is kept (rules B5, F4, N7) -------------------------------------- */

enum { HOUR = 3600000 };

static const struct {
    const char *rule;
    int64_t keep_done, retention; /* worker */
    bool track;                   /* push */
    int64_t remember;
    /* wanted */
    int64_t done_ms;
    bool bare;
    int64_t dead_ms;
} spans[] = {
    {"D1 nothing asked for", 0, 0, false, 0, 0, false, 0},
    {"D1 keep_done", 5000, 0, false, 0, 5000, false, 0},
    {"N7 at least an hour", 0, 0, true, 0, HOUR, false, 0},
    {"N7 longer when asked for", 2 * HOUR, 0, true, 0, 2 * HOUR, false, 0},
    {"B5 the id alone", 0, 0, false, 7000, 7000, true, 0},
    {"B5 with its result", 0, 0, true, 2 * HOUR, 2 * HOUR, false, 0},
    {"B5 keep_done is longer", 9000, 0, false, 7000, 9000, false, 0},
    {"F4 retention", 0, 4000, false, 0, 0, false, 4000},
    {"F4 retention does not cut the id's", 0, 4000, false, 7000, 7000, true, 7000},
    {"F4 nor a tracked one's", 0, 4000, true, 0, HOUR, false, HOUR},
    {"F4 for ever is for ever", 0, 0, true, 7000, HOUR, false, 0},
};

static void keeps_what_has_ended(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        jobq_conf *worker = jobq_conf_new(JOBQ_SCOPE_WORKER, 0);
        const jobq__header header = {.track = spans[i].track,
                                     .idempotent_for_ms = spans[i].remember};
        const jobq_counters counters = {0};
        jobq__end end = {.ending = JOBQ_ENDED_DONE, .delay_ms = -1};
        jobq__policy p;
        jobq__verdict v;

        print_message("# %s\n", spans[i].rule);
        worker->s.keep_done_ms = spans[i].keep_done;
        worker->s.dead_retention_ms = spans[i].retention;
        jobq__policy_make(&p, worker, NULL, &header, 0);
        jobq__retry_judge(&p, &counters, &end, NOW, 0, &v);
        assert_int_equal(v.keep_ms, spans[i].done_ms);
        assert_int_equal(v.keep_bare, spans[i].bare);
        end.ending = JOBQ_ENDED_NOT_RETRYABLE;
        jobq__retry_judge(&p, &counters, &end, NOW, 0, &v);
        assert_int_equal(v.keep_ms, spans[i].dead_ms);
        assert_false(v.keep_bare);
        end.ending = JOBQ_ENDED_STOPPED;
        end.cancelled = true;
        jobq__retry_judge(&p, &counters, &end, NOW, 0, &v);
        assert_int_equal(v.keep_ms, spans[i].dead_ms);
        end.cancelled = false;
        end.ending = JOBQ_ENDED_FAILED;
        jobq__retry_judge(&p, &counters, &end, NOW, 0, &v);
        assert_int_equal(v.keep_ms, 0);
        jobq__retry_turn_away(&p, &counters, JOBQ__START_DEAD, JOBQ__REASON_EXPIRED, &v);
        assert_int_equal(v.op, JOBQ_OP_DEAD);
        assert_int_equal(v.keep_ms, spans[i].dead_ms);
        jobq_conf_free(worker);
    }
}

/* A dropped job leaves nothing behind unless somebody may ask for it. */
static void drops_expired_jobs(void **state)
{
    const jobq_counters counters = {.releases = 1};
    jobq__policy p = {.keep_done_ms = 5000};
    jobq__verdict v;

    (void)state;
    jobq__retry_turn_away(&p, &counters, JOBQ__START_DROP, JOBQ__REASON_EXPIRED, &v);
    assert_int_equal(v.op, JOBQ_OP_DONE);
    assert_int_equal(v.keep_ms, 0);
    assert_int_equal(v.counters.releases, 1);
    p.tracked = true;
    jobq__retry_turn_away(&p, &counters, JOBQ__START_DROP, JOBQ__REASON_EXPIRED, &v);
    assert_int_equal(v.keep_ms, 5000);
    p = (jobq__policy){.remember_ms = 9000};
    jobq__retry_turn_away(&p, &counters, JOBQ__START_DROP, JOBQ__REASON_EXPIRED, &v);
    assert_int_equal(v.keep_ms, 9000);
    assert_true(v.keep_bare);
}

/* Rule B6: before the first start alone, as far as anybody knows. */
static void frees_keys_once(void **state)
{
    const jobq__policy whole = {0}, started = {.until_started = true};
    const jobq_counters fresh = {.deliveries = 3, .losses = 2}, failed = {.failures = 1},
                        crashed = {.crashes = 1}, released = {.releases = 1};

    (void)state;
    assert_true(jobq__retry_frees_key(&started, &fresh));
    assert_false(jobq__retry_frees_key(&started, &failed));
    assert_false(jobq__retry_frees_key(&started, &crashed));
    assert_false(jobq__retry_frees_key(&started, &released));
    assert_false(jobq__retry_frees_key(&whole, &fresh));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges),
        cmocka_unit_test(keeps_done_jobs),
        cmocka_unit_test(adds_jitter_upward),
        cmocka_unit_test(doubles_up_to_the_cap),
        cmocka_unit_test(judges_before_the_start),
        cmocka_unit_test(knows_delicate_jobs),
        cmocka_unit_test(push_wins_over_handler_over_worker),
        cmocka_unit_test(buries_cancelled_jobs),
        cmocka_unit_test(keeps_what_has_ended),
        cmocka_unit_test(drops_expired_jobs),
        cmocka_unit_test(frees_keys_once),
        cmocka_unit_test(has_stable_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
