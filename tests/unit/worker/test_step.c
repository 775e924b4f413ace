/* SPDX-License-Identifier: MIT
 *
 * The loop's policy as a table of cases: rules C9, G3, H1, H2, J1, J2, K1. Each row changes a
 * quiet, connected worker in its tenth second and says what the loop must do.
 */
#include "harness/harness.h"

#include <string.h>

#include "worker/shared.h"
#include "worker/step.h"

enum { NOW = 10000 };

static const jobq__situation quiet = {
    .now_ms = NOW,
    .started_ms = 1000,
    .lease_ms = 30000,
    .room = 2,
    .idle_children = 2,
    .max_reserve_failures = 5,
    .renew_at_ms = NOW + 8000,
    .store_empty = true,
};

typedef struct {
    const char *name;
    void (*change)(jobq__situation *s);
    jobq__step want;
} step_case;

#define CHANGE(name, ...)                \
    static void name(jobq__situation *s) \
    {                                    \
        __VA_ARGS__;                     \
    }

CHANGE(nothing, (void)s)
CHANGE(woken, s->woken = true)
CHANGE(more_there, s->store_empty = false)
CHANGE(no_prefetch, s->store_empty = false; s->room = 200)
CHANGE(prefetch, s->store_empty = false; s->room = 200; s->prefetch = true; s->held = 50)
CHANGE(full, s->store_empty = false; s->room = 0; s->idle_children = 0; s->jobs_out = 2)
CHANGE(room_behind, s->room = 5; s->idle_children = 0; s->jobs_out = 2; s->prefetch = true)
CHANGE(results, s->unsettled = 3; s->jobs_out = 1)
CHANGE(lingering, s->unsettled = 3; s->jobs_out = 90; s->room = 0; s->linger_until_ms = NOW + 4)
CHANGE(lease_due, s->renew_at_ms = NOW)
CHANGE(due_soon, s->maintain_at_ms = NOW + 120)
CHANGE(due_now, s->maintain_at_ms = NOW - 1)
CHANGE(resting, s->store_empty = false; s->rest_until_ms = NOW + 70)

CHANGE(once_fresh, s->once = true; s->store_empty = false; s->prefetch = true)
CHANGE(once_running, s->once = true; s->store_empty = false; s->jobs_out = 1; s->idle_children = 1;
       s->room = 1)
CHANGE(once_ran, s->once = true; s->jobs_run = 1)
CHANGE(once_none, s->once = true)
CHANGE(max_near, s->max_jobs = 10; s->jobs_run = 7; s->jobs_out = 2; s->store_empty = false;
       s->prefetch = true; s->room = 100)
CHANGE(max_held, s->max_jobs = 10; s->jobs_run = 7; s->jobs_out = 2; s->held = 1;
       s->store_empty = false; s->prefetch = true; s->room = 100)
CHANGE(max_reached, s->max_jobs = 10; s->jobs_run = 10)
CHANGE(time_up, s->max_time_ms = 9000)
CHANGE(time_near, s->max_time_ms = 9040)
CHANGE(time_up_away, s->max_time_ms = 9000; s->reserve_failures = 2; s->retry_at_ms = NOW + 3000)
CHANGE(both_limits, s->max_time_ms = 9000; s->max_jobs = 3; s->jobs_run = 3)
CHANGE(empty, s->stop_when_empty = true)
CHANGE(empty_but_running, s->stop_when_empty = true; s->jobs_out = 1;
       s->room = s->idle_children = 1)
CHANGE(empty_but_unsettled, s->stop_when_empty = true; s->unsettled = 1)
CHANGE(empty_but_due, s->stop_when_empty = true; s->maintain_at_ms = NOW)
CHANGE(empty_but_unread, s->stop_when_empty = true; s->store_empty = false)
CHANGE(empty_but_locked, s->stop_when_empty = true; s->passed_by = true)
CHANGE(empty_but_away, s->stop_when_empty = true; s->reserve_failures = 1;
       s->retry_at_ms = NOW + 500)
CHANGE(empty_for_not_yet, s->stop_when_empty_for_ms = 3000; s->empty_since_ms = NOW - 2900)
CHANGE(empty_for, s->stop_when_empty_for_ms = 3000; s->empty_since_ms = NOW - 3000)

CHANGE(term_idle, s->stop = JOBQ__DRAIN)
CHANGE(term_running, s->stop = JOBQ__DRAIN; s->jobs_out = 2; s->room = s->idle_children = 0;
       s->store_empty = false)
CHANGE(term_held, s->stop = JOBQ__DRAIN; s->held = 4)
CHANGE(held_alone, s->held = 3; s->room = s->idle_children = 0)
CHANGE(term_results, s->stop = JOBQ__DRAIN; s->unsettled = 4)
CHANGE(term_twice, s->stop = JOBQ__HARD; s->jobs_out = 1)
CHANGE(term_no_maintenance, s->stop = JOBQ__DRAIN; s->jobs_out = 1; s->maintain_at_ms = NOW - 5)
CHANGE(term_limits, s->stop = JOBQ__DRAIN; s->jobs_out = 1; s->max_time_ms = 1;
       s->stop_when_empty = true)
CHANGE(paused_idle, s->paused = true; s->store_empty = false)
CHANGE(paused_held, s->paused = true; s->held = 3; s->jobs_out = 1)
CHANGE(paused_empty, s->paused = true; s->stop_when_empty = true)

CHANGE(all_paused, s->all_paused = true; s->store_empty = false; s->control_at_ms = NOW + 300)
CHANGE(all_paused_look, s->all_paused = true; s->control_at_ms = NOW)
CHANGE(all_paused_empty, s->all_paused = true; s->store_empty = false; s->stop_when_empty = true)
CHANGE(asked_and_empty, s->ask_control_ms = 1; s->stop_when_empty = true)
CHANGE(pause_ends, s->all_paused = true; s->pause_end_ms = NOW + 30)
CHANGE(told, s->ask_control_ms = 1)
CHANGE(told_again, s->ask_control_ms = NOW + 60)
CHANGE(told_away, s->ask_control_ms = 1; s->reserve_failures = 1; s->retry_at_ms = NOW + 700)
CHANGE(busy_look, s->jobs_out = 2; s->room = s->idle_children = 0; s->control_at_ms = NOW - 1)
CHANGE(busy_look_soon, s->jobs_out = 2; s->room = s->idle_children = 0; s->control_at_ms = NOW + 20)
CHANGE(busy_and_exchange, s->jobs_out = 2; s->unsettled = 2; s->control_at_ms = NOW - 1)
CHANGE(idle_hears, s->control_at_ms = NOW - 1)
CHANGE(draining_look, s->stop = JOBQ__DRAIN; s->jobs_out = 1; s->control_at_ms = NOW - 1)
CHANGE(drained, s->stop = JOBQ__DRAIN; s->unsettled = 1; s->control_at_ms = NOW - 1;
       s->ask_control_ms = 1)
CHANGE(restart, s->restart = true; s->max_jobs = 1; s->jobs_run = 1; s->jobs_out = 1)

CHANGE(away, s->reserve_failures = 1; s->retry_at_ms = NOW + 700; s->store_empty = false)
CHANGE(away_results, s->reserve_failures = 1; s->retry_at_ms = NOW + 700;
       s->unsettled = s->results = 2)
CHANGE(away_retry, s->reserve_failures = 1; s->retry_at_ms = NOW; s->store_empty = false)
CHANGE(away_lease, s->reserve_failures = 1; s->retry_at_ms = NOW + 700; s->renew_at_ms = NOW - 1)
CHANGE(away_renewable, s->reserve_failures = 1; s->retry_at_ms = NOW + 700;
       s->renew_at_ms = NOW - 1; s->renewable = true)
CHANGE(away_renewable_soon, s->reserve_failures = 1; s->retry_at_ms = NOW + 700;
       s->renew_at_ms = NOW + 300; s->renewable = true)
CHANGE(away_over, s->reserve_failures = 1; s->retry_at_ms = NOW - 700; s->jobs_out = 2;
       s->room = s->idle_children = 0; s->woken = true)
CHANGE(away_five, s->reserve_failures = 5; s->retry_at_ms = NOW + 700)
CHANGE(away_for_ever, s->reserve_failures = 500; s->max_reserve_failures = 0;
       s->retry_at_ms = NOW + 700)
CHANGE(stopped_away, s->stop = JOBQ__DRAIN; s->reserve_failures = 5; s->retry_at_ms = NOW + 700;
       s->idle_since_ms = NOW)
CHANGE(stopped_hiccup, s->stop = JOBQ__DRAIN; s->reserve_failures = 1; s->retry_at_ms = NOW + 700;
       s->idle_since_ms = NOW - 100; s->unsettled = 1)
CHANGE(stopped_long_wait, s->stop = JOBQ__DRAIN; s->reserve_failures = 3;
       s->retry_at_ms = NOW + 30000; s->idle_since_ms = NOW - 1000; s->in_doubt = true)
CHANGE(stopped_idle, s->stop = JOBQ__DRAIN; s->reserve_failures = 1; s->retry_at_ms = NOW + 700;
       s->idle_since_ms = NOW)
CHANGE(stopped_results, s->stop = JOBQ__DRAIN; s->reserve_failures = 5; s->retry_at_ms = NOW + 700;
       s->unsettled = s->results = 2; s->idle_since_ms = 1)
CHANGE(stopped_lost, s->stop = JOBQ__DRAIN; s->reserve_failures = 9; s->retry_at_ms = NOW + 700;
       s->unsettled = s->results = 2; s->idle_since_ms = 1000; s->lease_ms = 9000)

CHANGE(hooks_to_look_for, s->hooks_look = true)
CHANGE(hooks_by_turns, s->hooks_look = s->hooked = true; s->store_empty = false)
CHANGE(hooks_first, s->hooks_look = true; s->store_empty = false)
CHANGE(hooks_no_room, s->hooks_look = true; s->room = s->idle_children = 0; s->jobs_out = 2)
CHANGE(hooks_stopped, s->stop = JOBQ__DRAIN; s->hooks_look = true)
CHANGE(hooks_paused, s->paused = s->hooks_look = true)
CHANGE(hooks_all_paused, s->all_paused = s->hooks_look = true)
CHANGE(hooks_owed_once, s->once = s->hooks_owed = s->hooks_look = true; s->jobs_run = 1)
CHANGE(hooks_owed_running, s->max_jobs = s->jobs_run = 3; s->hooks_owed = true;
       s->jobs_out = s->hooks_open = 1; s->idle_children = s->room = 1)
CHANGE(hooks_coming, s->max_jobs = s->jobs_run = 3; s->hooks_coming = true; s->unsettled = 1)
CHANGE(hooks_owed_empty, s->stop_when_empty = s->hooks_owed = true; s->hooks_at_ms = NOW + 70)
CHANGE(hooks_beside_the_last, s->max_jobs = 3; s->jobs_run = 2; s->jobs_out = s->hooks_open = 1;
       s->idle_children = s->room = 1; s->store_empty = false)
CHANGE(hooks_owed_away, s->once = s->hooks_owed = true; s->jobs_run = 1; s->reserve_failures = 1;
       s->retry_at_ms = NOW + 700)
CHANGE(vetoed, s->vetoed = true; s->room = s->idle_children = 0; s->store_empty = false)
CHANGE(vetoed_empty, s->vetoed = s->stop_when_empty = true; s->room = s->idle_children = 0;
       s->store_empty = false)

CHANGE(keys, s->keys = 1; s->held = 1; s->room = s->idle_children = 1)
CHANGE(keys_away, s->keys = 1; s->held = 1; s->reserve_failures = 1; s->retry_at_ms = NOW + 30)
CHANGE(said, s->said_at_ms = NOW - 5; s->jobs_out = 2; s->room = s->idle_children = 0)
CHANGE(said_soon, s->said_at_ms = NOW + 20; s->jobs_out = 2; s->room = s->idle_children = 0)
CHANGE(look_soon, s->look_at_ms = NOW + 7; s->jobs_out = 2; s->room = s->idle_children = 0)
CHANGE(said_draining, s->stop = JOBQ__DRAIN; s->said_at_ms = NOW; s->jobs_out = 1)
CHANGE(to_book, s->book_at_ms = NOW)
CHANGE(to_book_soon, s->book_at_ms = NOW + 600)
CHANGE(to_book_away, s->book_at_ms = NOW; s->reserve_failures = 1; s->retry_at_ms = NOW + 700)

static const step_case cases[] = {
    {"rule B6: a key is freed before its job starts", keys, {.exchange = true}},
    {"rule B6: ... when the store is back", keys_away, {.wait_ms = 30}},
    {"rule N7: the store hears of progress when nothing else is due", said, {.exchange = true}},
    {"rule N7: about once a second", said_soon, {.wait_ms = 20}},
    {"rule C5: children that are to be looked at soon", look_soon, {.wait_ms = 7}},
    {"rule N7: also while draining", said_draining, {.exchange = true, .give_back = true}},
    {"rule N1: minutes are told in time", to_book, {.book = true, .wait_store = true}},
    {"rule N1: an idle worker wakes up for it", to_book_soon, {.wait_store = true, .wait_ms = 600}},
    {"rule N1: not while the store is away", to_book_away, {.wait_ms = 700}},
    {"rule F6: hidden queues are asked when told to",
     hooks_to_look_for,
     {.exchange = true, .hooks = true, .want = 2, .wait_store = true}},
    {"rule F6: they and the others by turns", hooks_by_turns, {.exchange = true, .want = 2}},
    {"rule F6: ... beginning with them", hooks_first, {.exchange = true, .hooks = true, .want = 2}},
    {"rule F6: not without room", hooks_no_room, {.wait_ms = 50}},
    {"rule F6: not after a stop request", hooks_stopped, {.finished = true}},
    {"rule F6: nor while the worker is paused", hooks_paused, {.wait_ms = 8000}},
    {"rule F6: but while all of its queues are",
     hooks_all_paused,
     {.exchange = true, .hooks = true, .want = 2}},
    {"rule F6: once waits for the hook of its job",
     hooks_owed_once,
     {.exchange = true, .hooks = true, .want = 2}},
    {"rule F6: max_jobs too, without another job", hooks_owed_running, {.wait_ms = 50}},
    {"rule F6: ... also before the death is stored", hooks_coming, {.exchange = true}},
    {"rule F6: stop_when_empty waits for one that was put back",
     hooks_owed_empty,
     {.wait_store = true, .wait_ms = 70}},
    {"rule F6: a hook is no job of max_jobs", hooks_beside_the_last, {.exchange = true, .want = 1}},
    {"rule F6: in an outage nothing waits for hooks",
     hooks_owed_away,
     {.stop_reason = JOBQ__STOP_ONCE}},
    {"rule M1: a veto of all is no end by itself", vetoed, {.wait_ms = 8000}},
    {"rules M1, G3: for stop_when_empty it counts as empty",
     vetoed_empty,
     {.stop_reason = JOBQ__STOP_EMPTY}},
    {"an idle worker waits on the store (rule C9)", nothing, {.wait_store = true, .wait_ms = 8000}},
    {"the store says look", woken, {.exchange = true, .want = 2}},
    {"there was more last time", more_there, {.exchange = true, .want = 2}},
    {"without prefetch one per idle child", no_prefetch, {.exchange = true, .want = 2}},
    {"with prefetch what there is room for", prefetch, {.exchange = true, .want = 150}},
    {"no room: the doorbell alone", full, {.wait_ms = 50}},
    {"nobody idle: no wait on the store", room_behind, {.wait_ms = 50}},
    {"results are settled and the next reserved in one exchange",
     results,
     {.exchange = true, .want = 2}},
    {"few results beside much work wait a little", lingering, {.wait_ms = 4}},
    {"the lease is renewed in time (rule C2)", lease_due, {.renew = true, .wait_store = true}},
    {"waits until a delayed job is due", due_soon, {.wait_store = true, .wait_ms = 120}},
    {"maintenance when due", due_now, {.maintain = true, .wait_store = true}},
    {"rest between jobs", resting, {.wait_ms = 70}},
    {"rule G3: once takes one, whatever the room", once_fresh, {.exchange = true, .want = 1}},
    {"rule G3: once takes no second", once_running, {.wait_ms = 50}},
    {"rule G3: once ends after its job", once_ran, {.stop_reason = JOBQ__STOP_ONCE}},
    {"rule G3, B151: once waits for none",
     once_none,
     {.stop_reason = JOBQ__STOP_EMPTY, .wait_store = true}},
    {"rule G3: max_jobs is never exceeded", max_near, {.exchange = true, .want = 1}},
    {"rule G3: held jobs count towards max_jobs", max_held, {.wait_ms = 50}},
    {"rule G3: max_jobs reached",
     max_reached,
     {.stop_reason = JOBQ__STOP_MAX_JOBS, .stop_number = 10}},
    {"rule G3, B129: max_time, idle time included",
     time_up,
     {.stop_reason = JOBQ__STOP_MAX_TIME, .stop_number = 9, .wait_store = true}},
    {"never sleeps past max_time", time_near, {.wait_store = true, .wait_ms = 40}},
    {"rule J2: max_time while the store is unreadable",
     time_up_away,
     {.stop_reason = JOBQ__STOP_MAX_TIME, .stop_number = 9}},
    {"rule G4: of two reasons the first in the list",
     both_limits,
     {.stop_reason = JOBQ__STOP_MAX_JOBS, .stop_number = 3}},
    {"rule G3: nothing left to do", empty, {.stop_reason = JOBQ__STOP_EMPTY, .wait_store = true}},
    {"B151: not while a job runs here", empty_but_running, {.wait_store = true, .wait_ms = 50}},
    {"B151: not before it is settled", empty_but_unsettled, {.exchange = true, .want = 2}},
    {"B151: a promotion that is due counts as ready",
     empty_but_due,
     {.maintain = true, .wait_store = true}},
    {"B151: not before the store was asked", empty_but_unread, {.exchange = true, .want = 2}},
    {"rule C6: nor is one whose jobs somebody has locked",
     empty_but_locked,
     {.wait_store = true, .wait_ms = 8000}},
    {"B151: an unreadable store is not empty", empty_but_away, {.wait_ms = 500}},
    {"stop_when_empty_for: not yet", empty_for_not_yet, {.wait_store = true, .wait_ms = 100}},
    {"stop_when_empty_for: long enough",
     empty_for,
     {.stop_reason = JOBQ__STOP_EMPTY, .wait_store = true}},
    {"rule H1: TERM while idle ends at once", term_idle, {.finished = true}},
    {"rule H1: TERM takes no more and gives unstarted jobs back",
     term_running,
     {.give_back = true, .wait_ms = 50}},
    {"rule H1: held jobs go back at once", term_held, {.give_back = true}},
    {"held jobs that no child can take are looked at again", held_alone, {.wait_ms = 50}},
    {"rule H1: results are settled first", term_results, {.exchange = true}},
    {"rule H1: a second TERM waits for the running job, too",
     term_twice,
     {.give_back = true, .wait_ms = 50}},
    {"no maintenance while stopping", term_no_maintenance, {.give_back = true, .wait_ms = 50}},
    {"the first reason stands", term_limits, {.give_back = true, .wait_ms = 50}},
    {"rule H2: paused takes nothing", paused_idle, {.wait_ms = 8000}},
    {"rule H2: paused gives unstarted jobs back", paused_held, {.give_back = true}},
    {"a paused worker is not out of work", paused_empty, {.wait_ms = 8000}},
    {"rule L1: of paused queues nothing is taken", all_paused, {.wait_ms = 300}},
    {"rule L1: it asks whether they still are", all_paused_look, {.control = true}},
    {"rule G3: paused queues count as empty", all_paused_empty, {.stop_reason = JOBQ__STOP_EMPTY}},
    {"rule G3: not before it is known which are",
     asked_and_empty,
     {.control = true, .wait_store = true}},
    {"rule L1: wakes up when a pause runs out", pause_ends, {.wait_ms = 30}},
    {"rule L1: something has changed", told, {.control = true, .wait_store = true}},
    {"... again and again: a little later", told_again, {.wait_store = true, .wait_ms = 60}},
    {"... while the store is away", told_away, {.wait_ms = 700}},
    {"rule L3: a busy worker asks by itself", busy_look, {.control = true}},
    {"rule L3: wakes up for it", busy_look_soon, {.wait_ms = 20}},
    {"... not when an exchange tells it", busy_and_exchange, {.exchange = true, .want = 2}},
    {"... nor when it waits on the store", idle_hears, {.wait_store = true, .wait_ms = 8000}},
    {"rule L3: also while draining", draining_look, {.control = true, .give_back = true}},
    {"... not when nothing runs any more", drained, {.exchange = true}},
    {"rule L2: a restart goes before other limits", restart, {.stop_reason = JOBQ__STOP_RESTART}},
    {"rule K1: waits before it tries again", away, {.wait_ms = 700}},
    {"rule D6: results are kept meanwhile", away_results, {.wait_ms = 700}},
    {"rule K1: tries again", away_retry, {.exchange = true, .want = 2}},
    {"no renewal while waiting", away_lease, {.wait_ms = 700}},
    {"rule C2: but when only reserving fails leases are renewed in time",
     away_renewable,
     {.renew = true}},
    {"rule C2: wakes up for it", away_renewable_soon, {.wait_ms = 300}},
    {"a row of failures that is over waits for the next call, awake for nothing",
     away_over,
     {.wait_ms = 50}},
    {"rule K1: five failures in a row",
     away_five,
     {.stop_reason = JOBQ__STOP_UNREADABLE, .stop_number = 5, .exit_code = 1}},
    {"rule K1: 0 never gives up", away_for_ever, {.wait_ms = 700}},
    {"rule K1: with empty hands it ends at once", stopped_away, {.finished = true}},
    {"rule H2: nor does an outage when there is nothing to lose", stopped_idle, {.finished = true}},
    {"a stop during a hiccup tries once more", stopped_hiccup, {.wait_ms = 700}},
    {"rule H2: a long wait for the store does not hold up the end",
     stopped_long_wait,
     {.wait_ms = 4000}},
    {"rule K1: with results in hand it goes on trying", stopped_results, {.wait_ms = 700}},
    {"rule K1, J1: after one more lease they are lost",
     stopped_lost,
     {.give_up = true, .exit_code = 1}},
};

#define SAME(field)                                                                         \
    if (got.field != c->want.field) {                                                       \
        print_error("%s: " #field " is %lld, wanted %lld\n", c->name, (long long)got.field, \
                    (long long)c->want.field);                                              \
        bad++;                                                                              \
    }

static int differs(const step_case *c)
{
    jobq__situation s = quiet;
    jobq__step got;
    int bad = 0;

    c->change(&s);
    jobq__step_decide(&s, &got);
    SAME(renew)
    SAME(control)
    SAME(maintain)
    SAME(exchange)
    SAME(book)
    SAME(hooks)
    SAME(want)
    SAME(give_back)
    SAME(stop_reason)
    SAME(stop_number)
    SAME(give_up)
    SAME(finished)
    SAME(exit_code)
    SAME(wait_store)
    SAME(wait_ms)
    return bad;
}

static void table_of_steps(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        bad += differs(&cases[i]);
    assert_int_equal(bad, 0);
}

/* Rule K1: 1, 2, 4 ... 30 s, never less, at most a quarter more. */
static void waits_between_failures(void **state)
{
    static const int64_t want[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

    (void)state;
    for (int64_t i = 0; i < 7; i++) {
        assert_int_equal(jobq__step_backoff_ms(i + 1, 0), want[i]);
        assert_in_range(jobq__step_backoff_ms(i + 1, 0.999), want[i], want[i] * 5 / 4);
    }
    assert_int_equal(jobq__step_backoff_ms(INT64_MAX, 0), 30000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_steps),
        cmocka_unit_test(waits_between_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
