/* SPDX-License-Identifier: MIT
 *
 * Time limits as a table (rules I1, I2, I3, H1).
 */
#include "harness/harness.h"

#include <jobqueue/job.h>
#include <stdio.h>

#include "worker/deadline.h"

enum {
    NONE = JOBQ__WATCH_LEAVE,
    SOFT = JOBQ__WATCH_SOFT,
    AGAIN = JOBQ__WATCH_AGAIN,
    KILL = JOBQ__WATCH_KILL
};
enum { TIMEOUT = JOBQ_INTERRUPT_TIMEOUT, STOP = JOBQ_INTERRUPT_STOP };
#define NEVER INT64_MAX

static const struct {
    const char *title;
    jobq__watch w;
    int64_t now_ms;
    bool hard;
    jobq__watch_step want;
} cases[] = {
    {"I3 nothing runs", {.deadline_ms = 100}, 5000, true, {NONE, 0, NEVER}},
    {"no limit", {.running = 7}, 5000, false, {NONE, 0, NEVER}},
    {"not yet", {.running = 7, .deadline_ms = 1000, .grace_ms = 5000}, 999, false, {NONE, 0, 1000}},
    {"I1 at T the exception",
     {.running = 7, .deadline_ms = 1000, .grace_ms = 5000},
     1000,
     false,
     {SOFT, TIMEOUT, 2000}},
    {"an earlier job's stop counts for nothing",
     {.running = 7,
      .deadline_ms = 9000,
      .grace_ms = 5000,
      .soft_stop = 6,
      .soft_at_ms = 10,
      .delivered = 6,
      .delivered_at_ms = 20},
     8000,
     false,
     {NONE, 0, 9000}},
    {"asked, not delivered: once more",
     {.running = 7,
      .deadline_ms = 1000,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = TIMEOUT,
      .soft_at_ms = 1000},
     1999,
     false,
     {AGAIN, 0, 2000}},
    {"I1 not delivered within 1 s",
     {.running = 7,
      .deadline_ms = 1000,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = TIMEOUT,
      .soft_at_ms = 1000},
     2000,
     false,
     {KILL, JOBQ__KILL_TIMEOUT, NEVER}},
    {"I1 not delivered within a shorter grace",
     {.running = 7,
      .deadline_ms = 1000,
      .grace_ms = 200,
      .soft_stop = 7,
      .soft_kind = TIMEOUT,
      .soft_at_ms = 1000},
     1200,
     false,
     {KILL, JOBQ__KILL_TIMEOUT, NEVER}},
    {"I1 delivered: the full grace from then on",
     {.running = 7,
      .deadline_ms = 1000,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = TIMEOUT,
      .soft_at_ms = 1000,
      .delivered = 7,
      .delivered_at_ms = 1900},
     6899,
     false,
     {NONE, 0, 6900}},
    {"I1 delivered and swallowed",
     {.running = 7,
      .deadline_ms = 1000,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = TIMEOUT,
      .soft_at_ms = 1000,
      .delivered = 7,
      .delivered_at_ms = 1900},
     6900,
     false,
     {KILL, JOBQ__KILL_TIMEOUT, NEVER}},
    {"grace 0: the exception first",
     {.running = 7, .deadline_ms = 1000},
     1000,
     false,
     {SOFT, TIMEOUT, 1000}},
    {"grace 0: the kill right behind",
     {.running = 7, .deadline_ms = 1000, .soft_stop = 7, .soft_kind = TIMEOUT, .soft_at_ms = 1000},
     1000,
     false,
     {KILL, JOBQ__KILL_TIMEOUT, NEVER}},
    {"H1 hard stop",
     {.running = 7, .deadline_ms = 9000, .grace_ms = 5000},
     1000,
     true,
     {SOFT, STOP, 2000}},
    {"H1 hard stop without a limit",
     {.running = 7, .grace_ms = 300},
     1000,
     true,
     {SOFT, STOP, 1300}},
    {"H1 kill of a hard stop blames nobody",
     {.running = 7,
      .deadline_ms = 1500,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = STOP,
      .soft_at_ms = 1000},
     2000,
     true,
     {KILL, JOBQ__KILL_STOP, NEVER}},
    {"L3 cancelled by force",
     {.running = 7, .deadline_ms = 9000, .grace_ms = 5000, .cancelled = true},
     1000,
     false,
     {SOFT, STOP, 2000}},
    {"L3 deaf to it: killed",
     {.running = 7,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = STOP,
      .soft_at_ms = 1000,
      .cancelled = true},
     2000,
     false,
     {KILL, JOBQ__KILL_STOP, NEVER}},
    {"over its limit when the hard stop comes: timed out",
     {.running = 7, .deadline_ms = 1000, .grace_ms = 5000},
     1500,
     true,
     {SOFT, TIMEOUT, 2500}},
    {"timed out already when the hard stop comes: stays so",
     {.running = 7,
      .deadline_ms = 1000,
      .grace_ms = 5000,
      .soft_stop = 7,
      .soft_kind = TIMEOUT,
      .soft_at_ms = 1000,
      .delivered = 7,
      .delivered_at_ms = 1001},
     6001,
     true,
     {KILL, JOBQ__KILL_TIMEOUT, NEVER}},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jobq__watch_step step;

        jobq__watch_decide(&cases[i].w, cases[i].now_ms, cases[i].hard, &step);
        if (step.action != cases[i].want.action || step.kind != cases[i].want.kind ||
            step.next_ms != cases[i].want.next_ms)
            fail_msg("%s: action %d kind %u next %lld", cases[i].title, step.action, step.kind,
                     (long long)step.next_ms);
    }
}

/* Only a hand-out that runs this moment is judged: not one that has ended or is only given. */
static void test_read(void **state)
{
    static jobq__slot slot;
    jobq__watch w;

    (void)state;
    atomic_store(&slot.run.deadline_ms, 500);
    jobq__watch_read(&slot, &slot.run, &w);
    assert_int_equal(w.running, 0);
    atomic_store(&slot.run.number, 9);
    atomic_store(&slot.records[9], jobq__record_value(9, JOBQ__RUNNING));
    jobq__watch_read(&slot, &slot.run, &w);
    assert_int_equal(w.running, 9);
    assert_int_equal(w.deadline_ms, 500);
    atomic_store(&slot.records[9], jobq__record_value(9, JOBQ__ENDED));
    jobq__watch_read(&slot, &slot.run, &w);
    assert_int_equal(w.running, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_read)};

    return cmocka_run_group_tests_name("worker/deadline", tests, NULL, NULL);
}
