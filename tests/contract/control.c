/* SPDX-License-Identifier: MIT
 *
 * The contract: pauses, the generation, cancelled jobs, clearing, and jobs that follow another's
 * end (rules L1 to L3, F6).
 */
#include "contract/control.h"

#include <string.h>

static jobq_batch shown;

static jobq_control control(int what, const char *queue, int64_t ttl_ms)
{
    jobq_control c = {.what = what, .ttl_ms = ttl_ms, .out = &shown};

    if (queue)
        c.queue = TEXT(queue);
    jobq__batch_reset(&shown);
    assert_ok(jobq__store_control(store, &c));
    return c;
}

static size_t count_pauses(const jobq_control *c)
{
    size_t n = 0;

    for (const jobq_pause *pause = c->pauses; pause; pause = pause->next)
        n++;
    return n;
}

static const jobq_pause *find_pause(const jobq_control *c, const char *queue)
{
    for (const jobq_pause *pause = c->pauses; pause; pause = pause->next)
        if (queue ? pause->queue.p && jobq__slice_equal(pause->queue, TEXT(queue))
                  : !pause->queue.p)
            return pause;
    return NULL;
}

static int cancel_job(const char *id, bool hard)
{
    jobq_cancelling c = {
        .id = TEXT(id), .hard = hard, .reason = 11, .history = TEXT("entry"), .result = 77};

    assert_ok(jobq__store_cancel(store, &c));
    return c.result;
}

void test_l1_pause_and_resume(void **state)
{
    jobq_control c = control(JOBQ_CONTROL_READ, NULL, 0);
    int64_t before = c.control;

    (void)state;
    assert_int_equal(count_pauses(&c), 0);
    c = control(JOBQ_CONTROL_PAUSE, "mail", 0);
    assert_int_not_equal(c.control, before);
    c = control(JOBQ_CONTROL_PAUSE, "Mail", 60000);
    c = control(JOBQ_CONTROL_PAUSE, NULL, 0);
    assert_int_equal(count_pauses(&c), 3);
    assert_int_equal(find_pause(&c, "mail")->until_ms, 0);
    assert_int_equal(find_pause(&c, NULL)->until_ms, 0);
    assert_true(find_pause(&c, "Mail")->until_ms >= c.now_ms + 50000);
    /* "all" is a pause of its own: the queue's stays. */
    c = control(JOBQ_CONTROL_RESUME, NULL, 0);
    assert_null(find_pause(&c, NULL));
    assert_non_null(find_pause(&c, "mail"));
    c = control(JOBQ_CONTROL_RESUME, "mail", 0);
    c = control(JOBQ_CONTROL_RESUME, "never paused", 0);
    assert_int_equal(count_pauses(&c), 1);
    pass_time(61000, 61000);
    c = control(JOBQ_CONTROL_READ, NULL, 0);
    assert_int_equal(count_pauses(&c), 0);
}

void test_l1_paused_queue_takes_pushes(void **state)
{
    (void)state;
    control(JOBQ_CONTROL_PAUSE, "q", 0);
    push_job("a", "q");
    assert_int_equal(count_jobs("q").ready, 1);
    /* Obeying is the worker's business, not the store's. */
    reserve_one("w", "q", "a");
}

void test_l2_generation(void **state)
{
    jobq_control c = control(JOBQ_CONTROL_READ, NULL, 0);
    int64_t generation = c.generation, before = c.control;

    (void)state;
    c = control(JOBQ_CONTROL_RESTART, NULL, 0);
    assert_true(c.generation > generation);
    assert_int_not_equal(c.control, before);
    generation = c.generation;
    c = control(JOBQ_CONTROL_READ, NULL, 0);
    assert_int_equal(c.generation, generation);
}

/* Everybody who talks to the store hears of a change. */
void test_control_value_is_told(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_control c = control(JOBQ_CONTROL_RESTART, NULL, 0);
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 1,
                       .out = &got};
    jobq_renewal r = {.worker = TEXT("w"), .lease_ms = 30000};
    jobq_wait w = {.queues = &q,
                   .queue_count = 1,
                   .timeout_ms = 20,
                   .poll_ms = 10,
                   .wake_fd = -1,
                   .control = &c.control};

    (void)state;
    assert_ok(jobq__store_exchange(store, &x)); /* finds nothing */
    assert_int_equal(x.control, c.control);
    push_job("a", "q");
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(x.control, c.control);
    assert_ok(jobq__store_renew(store, &r));
    assert_int_equal(r.control, c.control);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    control(JOBQ_CONTROL_PAUSE, "other", 0);
    c.control = x.control;
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_CONTROL);
}

/* L3: what waits is dead at once, wherever it stands. */
void test_l3_cancel_what_waits(void **state)
{
    static const char *const ids[] = {"ready", "delayed", "taken"};
    jobq_push delayed = job_item("delayed", "q");

    (void)state;
    push_job("taken", "q");
    begin_worker("w", 10000);
    reserve_one("w", "q", "taken");
    pass_time(11000, 11000);
    maintain_all();
    push_job("ready", "q");
    delayed.delay_ms = 60000;
    delayed.unique = TEXT("key");
    assert_int_equal(push_item(&delayed), 0);
    for (size_t i = 0; i < 3; i++) {
        const jobq_record *job;

        assert_int_equal(cancel_job(ids[i], false), 0);
        job = find_job(ids[i]);
        assert_int_equal(job->state, 4);
        assert_int_equal(job->reason, 11);
        assert_true(job->died_at_ms > 0);
        assert_memory_equal(job->history[job->history_count - 1].p, "entry", 5);
        assert_int_equal(cancel_job(ids[i], true), JOBQ_ENOTFOUND);
    }
    assert_int_equal(reserve_jobs("v", "q", 10), 0);
    assert_int_equal(count_jobs("q").dead, 3);
    assert_int_equal(count_jobs("q").delayed, 0);
    delayed.id = TEXT("again"); /* the key is free */
    assert_int_equal(push_item(&delayed), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "ready", false), 0);
    assert_int_equal(reserve_one("v", "q", "ready")->cancel, JOBQ_CANCEL_NONE);
}

/* Rule F4: one that was cancelled is kept as long as asked for, and then neither revived nor
 * there. */
void test_f4_cancelled_and_kept(void **state)
{
    jobq_cancelling c = {.id = TEXT("waits"), .reason = 11, .keep_ms = 5000};

    (void)state;
    push_job("waits", "q");
    assert_ok(jobq__store_cancel(store, &c));
    assert_int_equal(c.result, 0);
    assert_int_equal(find_job("waits")->keep_until_ms - find_job("waits")->died_at_ms, 5000);
    push_job("other", "q");
    assert_int_equal(cancel_job("other", false), 0);
    assert_int_equal(find_job("other")->keep_until_ms, 0);
    pass_time(6000, 6000);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "waits", false), JOBQ_ELIMIT);
    maintain_all();
    assert_int_equal(count_jobs("q").dead, 1);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "other", false), 0);
}

/* L3: of a running one the wish is noted; its holder reads it with what it holds. */
void test_l3_cancel_what_runs(void **state)
{
    jobq_batch held = {0};
    jobq_record *job;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    job = reserve_one("w", "q", "a");
    assert_int_equal(job->cancel, JOBQ_CANCEL_NONE);
    assert_int_equal(cancel_job("a", true), JOBQ_EEXISTS);
    assert_int_equal(cancel_job("a", false), JOBQ_EEXISTS);
    assert_ok(jobq__store_held(store, TEXT("w"), &held));
    assert_int_equal(held.first->cancel, JOBQ_CANCEL_HARD);
    jobq__batch_free(&held);
    assert_int_equal(find_job("a")->state, 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_null(find_job("a"));
    assert_int_equal(cancel_job("a", false), JOBQ_ENOTFOUND);
}

/* The wish outlives a release, a give-back and the loss of the worker, and is not waited with. */
void test_l3_wish_is_kept(void **state)
{
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 10000);
    reserve_one("w", "q", "a");
    assert_int_equal(cancel_job("a", false), JOBQ_EEXISTS);
    s = settlement(got.first, JOBQ_OP_BACK);
    s.delay_ms = 60000;
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(reserve_one("w", "q", "a")->cancel, JOBQ_CANCEL_SOFT);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_GIVE_BACK), 0);
    assert_int_equal(reserve_one("w", "q", "a")->cancel, JOBQ_CANCEL_SOFT);
    pass_time(11000, 11000);
    maintain_all();
    assert_int_equal(reserve_one("v", "q", "a")->cancel, JOBQ_CANCEL_SOFT);
    s = settlement(got.first, JOBQ_OP_DEAD);
    s.reason = 11;
    assert_int_equal(settle_with("v", &s), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "a", false), 0);
    assert_int_equal(reserve_one("v", "q", "a")->cancel, JOBQ_CANCEL_NONE);
}

void test_clear(void **state)
{
    jobq_clearing c = {.queue = TEXT("q"), .limit = 2};
    jobq_push item = job_item("delayed", "q");

    (void)state;
    begin_worker("w", 30000);
    push_job("held", "q");
    reserve_one("w", "q", "held");
    push_job("other", "p");
    push_job("dead", "q");
    reserve_one("w", "q", "dead");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DEAD), 0);
    push_job("a", "q");
    item.delay_ms = 60000;
    item.unique = TEXT("key");
    assert_int_equal(push_item(&item), 0);
    push_job("b", "q");
    assert_ok(jobq__store_clear(store, &c));
    assert_int_equal(c.cleared, 2);
    assert_true(c.more);
    assert_ok(jobq__store_clear(store, &c));
    assert_int_equal(c.cleared, 1);
    assert_ok(jobq__store_clear(store, &c));
    assert_int_equal(c.cleared, 0);
    assert_false(c.more);
    assert_non_null(find_job("held"));
    assert_non_null(find_job("dead"));
    assert_non_null(find_job("other"));
    assert_null(find_job("delayed"));
    item.id = TEXT("again");
    assert_int_equal(push_item(&item), 0);
    c.queue = TEXT("unknown");
    assert_ok(jobq__store_clear(store, &c));
    assert_int_equal(c.cleared, 0);
}

/* F6: what follows a death is stored with it, or not at all. */
void test_f6_follow(void **state)
{
    jobq_push follow = job_item("hook", "\x01q");
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    reserve_one("w", "q", "a");
    s = settlement(got.first, JOBQ_OP_DEAD);
    s.follow = &follow;
    memset(&s.token, 0, sizeof(s.token)); /* not current */
    assert_int_equal(settle_with("w", &s), JOBQ_ELEASE);
    assert_null(find_job("hook"));
    s.token = got.first->token;
    assert_int_equal(settle_with("w", &s), 0);
    assert_non_null(find_job("hook"));
    assert_int_equal(find_job("a")->state, 4);
    assert_int_equal(count_jobs("q").ready, 0);
    reserve_one("w", "\x01q", "hook");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
}

/* The name of the hidden queue is in no list. */
void test_f6_hidden_queue(void **state)
{
    jobq_batch queues = {0};

    (void)state;
    push_job("a", "q");
    push_job("hook", "\x01q");
    assert_ok(jobq__store_queues(store, &queues));
    assert_int_equal(queues.count, 1);
    assert_memory_equal(queues.first->queue.p, "q", 1);
    jobq__batch_free(&queues);
}
