/* SPDX-License-Identifier: MIT
 *
 * What the worker's desk makes of a store that has accidents (rules K1, K2, C3, C5, D6): calls
 * whose outcome is unknown, half-applied batches, outages, leases lost. Real jobs in the memory
 * store, accidents by script, no processes, and time by shifting the clock.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include <jobqueue/jobqueue.h>

#include "harness/scripted.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "worker/desk.h"

enum { HANDOUTS = 16, LEASE_MS = 30000 };

typedef struct {
    jobq_queue *queue;
    jobq_worker *worker;
    jobq__handout *handouts;
    jobq__desk *desk;
} fixture;

static fixture the_fixture;

static int set_up(void **state)
{
    const char *queues[] = {"default"};
    fixture *f = &the_fixture;

    memset(f, 0, sizeof(*f));
    assert_ok(jobq_queue_new("memory:", NULL, &f->queue));
    scripted_make(f->queue);
    assert_ok(jobq_worker_new(f->queue, NULL, &f->worker));
    assert_ok(jobq_worker_handle(f->worker, "a", 1, 1, NULL));
    assert_ok(jobq__worker_prepare(f->worker, queues, 1, NULL));
    assert_ok(jobq__shared_new(&f->worker->shared, 0, 1, 0, 0));
    strcpy(f->worker->shared.words->worker_id, jobq_worker_id(f->worker));
    f->handouts = jobq__zalloc(HANDOUTS * sizeof(*f->handouts));
    assert_ok(jobq__desk_new(f->worker, f->handouts, HANDOUTS, &f->desk));
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    jobq__desk_free(f->desk);
    jobq__free(f->handouts);
    jobq_worker_free(f->worker);
    jobq_queue_free(f->queue);
    return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void push(fixture *f, int n)
{
    for (int i = 0; i < n; i++) {
        jobq_message *m = jobq_message_new();

        assert_ok(jobq_message_set_name(m, "a", 1));
        assert_ok(jobq_queue_push(f->queue, m));
        jobq_message_free(m);
    }
}

static int64_t stat_of(fixture *f, jobq_stat which)
{
    int64_t values[JOBQ_STATS];

    assert_ok(jobq_queue_stats(f->queue, "default", 7, values));
    return values[which];
}

static int64_t counted(const fixture *f, int which)
{
    return atomic_load(&f->desk->words->counters[which]);
}

/* The n that are held end as done. */
static void finish_held(fixture *f, int n)
{
    for (; n > 0; n--) {
        assert_non_null(f->desk->held.first);
        jobq__handout_ran(f->desk, f->desk->held.first);
        jobq__handout_end(f->desk, f->desk->held.first, JOBQ_ENDED_DONE);
    }
}

/* The time to try again has come. */
static void pass_backoff(fixture *f)
{
    jobq__clock_shift(40000, 40000);
    f->desk->now_ms = jobq__clock_mono_ms();
    f->desk->s.renew_at_ms = f->desk->now_ms; /* others' business here */
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
}

/* What one round of the loop says to the store. */
static void call(fixture *f, int64_t want)
{
    jobq__step step = {.exchange = true, .want = want};

    f->desk->now_ms = jobq__clock_mono_ms();
    jobq__desk_call(f->desk, &step, want);
}

static void take(fixture *f, int n)
{
    push(f, n);
    assert_ok(jobq__desk_exchange(f->desk, n, 0));
    assert_int_equal(f->desk->held.count, n);
}

static void check(fixture *f, size_t held, size_t ended, int64_t ready, int64_t reserved)
{
    assert_int_equal(f->desk->held.count, held);
    assert_int_equal(f->desk->ended.count, ended);
    assert_int_equal(stat_of(f, JOBQ_STAT_READY), ready);
    assert_int_equal(stat_of(f, JOBQ_STAT_RESERVED), reserved);
}

/* ---- outcomes that are not known ------------------------------------------------------------- */

/* Rule K2: it was done, but nobody heard. Two results are in doubt and said to be so, not lost
 * leases; the two jobs that never arrived go back at once, as if never taken. */
static void test_k2_done_unheard(void **state)
{
    fixture *f = *state;

    take(f, 2);
    push(f, 3);
    finish_held(f, 2);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 2, 0), JOBQ_EUNKNOWN);
    assert_true(f->desk->ask_held);
    check(f, 0, 2, 1, 2);
    call(f, 0); /* not before the time has come */
    assert_int_equal(scripted_count(SCRIPTED_HELD), 0);
    pass_backoff(f);
    call(f, 0);
    assert_int_equal(scripted_count(SCRIPTED_HELD), 1);
    check(f, 0, 0, 3, 0);
    assert_false(f->desk->ask_held);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 0);
    assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), 0);
    assert_int_equal(counted(f, JOBQ__COUNT_RESULTS_LOST), 0);
    assert_int_equal(counted(f, JOBQ__COUNT_GIVEN_BACK), 2);
    assert_int_equal(atomic_load(&f->desk->words->jobs_run), 2);
}

/* Rule C4: a job that never arrived has lost no try and no place. */
static void test_k2_never_arrived(void **state)
{
    fixture *f = *state;

    push(f, 3);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 2, 0), JOBQ_EUNKNOWN);
    pass_backoff(f);
    call(f, 3);
    check(f, 3, 0, 0, 3);
    for (const jobq__ticket *t = f->desk->held.first; t; t = t->next) {
        assert_int_equal(t->handout->counters.failures + t->handout->counters.crashes +
                             t->handout->counters.losses + t->handout->counters.releases,
                         0);
        if (t->next)
            assert_true(strcmp(t->handout->id, t->next->handout->id) < 0); /* made in this order */
    }
}

/* The same code, but it never reached the store: the results are settled by the next exchange. */
static void test_k2_not_done(void **state)
{
    fixture *f = *state;

    for (int code = 0; code < 2; code++) {
        take(f, 2);
        finish_held(f, 2);
        scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_BEFORE, code ? JOBQ_EIO : JOBQ_EUNKNOWN);
        assert_true(jobq__desk_exchange(f->desk, 0, 0) < 0);
        check(f, 0, 2, 0, 2);
        pass_backoff(f);
        call(f, 0);
        check(f, 0, 0, 0, 0);
        assert_int_equal(counted(f, JOBQ__COUNT_DONE), 2 * (code + 1));
    }
}

/* A store without transactions: one settlement was carried out, three were not. */
static void test_k2_half_done(void **state)
{
    fixture *f = *state;

    take(f, 4);
    finish_held(f, 4);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_HALFWAY, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 0, 0), JOBQ_EUNKNOWN);
    check(f, 0, 4, 0, 3);
    pass_backoff(f);
    call(f, 0);
    check(f, 0, 0, 0, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 3);
    assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), 0);
    assert_int_equal(atomic_load(&f->desk->words->jobs_run), 4);
}

/* The answer that comes late: `held` was asked before the lost exchange took effect. A refusal of
 * what was tried before is no lost lease. */
static void test_k2_late(void **state)
{
    fixture *f = *state;
    jobq_settlement late;
    jobq_exchange x = {.worker = f->desk->id, .lease_ms = LEASE_MS, .settle = &late};

    take(f, 1);
    finish_held(f, 1);
    jobq__handout_settlement(f->desk, f->desk->ended.first, &late);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_BEFORE, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 0, 0), JOBQ_EUNKNOWN);
    pass_backoff(f);
    jobq__desk_reconcile(f->desk);
    check(f, 0, 1, 0, 1);
    x.settle_count = 1;
    assert_ok(jobq__store_exchange(f->queue->store, &x)); /* now it arrives */
    call(f, 0);
    check(f, 0, 0, 0, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), 0);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 0);
}

/* A reservation that timed out may have been carried out. */
static void test_k2_timeout(void **state)
{
    fixture *f = *state;

    push(f, 2);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_ETIMEOUT);
    assert_int_equal(jobq__desk_exchange(f->desk, 2, 0), JOBQ_ETIMEOUT);
    check(f, 0, 0, 0, 2);
    pass_backoff(f);
    call(f, 0);
    check(f, 0, 0, 2, 0);
}

/* Asking fails as well, then giving back does: it is asked again. */
static void test_k2_asking_fails(void **state)
{
    fixture *f = *state;

    push(f, 2);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 2, 0), JOBQ_EUNKNOWN);
    scripted_fail(SCRIPTED_HELD, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
    pass_backoff(f);
    call(f, 0);
    check(f, 0, 0, 0, 2);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    pass_backoff(f);
    call(f, 0); /* given back, unheard */
    assert_true(f->desk->ask_held);
    pass_backoff(f);
    call(f, 0);
    check(f, 0, 0, 2, 0);
    assert_false(f->desk->ask_held);
}

/* More that never arrived than one call may settle. */
static void test_k2_many(void **state)
{
    fixture *f = *state;

    push(f, 5);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 5, 0), JOBQ_EUNKNOWN);
    f->desk->settle_max = 2;
    pass_backoff(f);
    for (int i = 0; i < 3; i++) {
        assert_true(f->desk->ask_held);
        call(f, 0);
    }
    assert_false(f->desk->ask_held);
    check(f, 0, 0, 5, 0);
}

/* Jobs that were in hand when the outcome got lost stay there. */
static void test_k2_keeps_what_it_has(void **state)
{
    fixture *f = *state;

    take(f, 3);
    push(f, 1);
    finish_held(f, 1);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 1, 0), JOBQ_EUNKNOWN);
    pass_backoff(f);
    call(f, 0);
    check(f, 2, 0, 1, 2);
}

/* ---- answers with a failure ------------------------------------------------------------------ */

/* Rule D6: durable before the reservation failed: that is an answer. */
static void test_d6_settled_before(void **state)
{
    fixture *f = *state;

    take(f, 2);
    push(f, 1);
    finish_held(f, 2);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_SETTLED, JOBQ_ECONNECT);
    assert_int_equal(jobq__desk_exchange(f->desk, 1, 0), JOBQ_ECONNECT);
    check(f, 0, 0, 1, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 2);
    assert_false(f->desk->ask_held);
}

/* Rule C3: one value refused, then a lock in the middle of the repetition. What was settled is
 * done; it is not settled again and refused as a lost lease. */
static void test_c3_refused_then_busy(void **state)
{
    fixture *f = *state;

    take(f, 4);
    finish_held(f, 4);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_REFUSED, 0);
    scripted_then(SCRIPTED_EXCHANGE, 3, SCRIPTED_BEFORE, JOBQ_EBUSY);
    assert_int_equal(jobq__desk_exchange(f->desk, 0, 0), JOBQ_EBUSY);
    check(f, 0, 2, 0, 2);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 2);
    pass_backoff(f);
    call(f, 0);
    check(f, 0, 0, 0, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 4);
    assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), 0);
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* Rule C5: whoever had trouble with the store takes nothing back for one lease. */
static void test_c5_grace(void **state)
{
    fixture *f = *state;

    jobq__desk_maintain(f->desk);
    assert_true(scripted_took_back());
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
    assert_int_equal(jobq__desk_exchange(f->desk, 1, 0), JOBQ_ECONNECT);
    jobq__clock_shift(LEASE_MS - 1000, LEASE_MS - 1000);
    f->desk->now_ms = jobq__clock_mono_ms();
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    jobq__desk_maintain(f->desk);
    assert_false(scripted_took_back());
    jobq__clock_shift(2000, 2000);
    f->desk->now_ms = jobq__clock_mono_ms();
    jobq__desk_maintain(f->desk);
    assert_true(scripted_took_back());
}

/* ... whatever call it was that failed. */
static void test_c5_any_trouble(void **state)
{
    fixture *f = *state;

    for (scripted_call which = SCRIPTED_EXCHANGE; which <= SCRIPTED_MAINTAIN; which++) {
        scripted_fail(which, 1, SCRIPTED_BEFORE, JOBQ_EIO);
        switch (which) {
        case SCRIPTED_EXCHANGE:
            jobq__desk_exchange(f->desk, 1, 0);
            break;
        case SCRIPTED_RENEW:
            jobq__desk_renew(f->desk, LEASE_MS, NULL, 0);
            break;
        case SCRIPTED_HELD:
            jobq__desk_reconcile(f->desk);
            break;
        case SCRIPTED_WAIT:
            jobq__desk_wait_store(f->desk, 0, -1);
            break;
        default:
            jobq__desk_maintain(f->desk);
        }
        assert_int_equal(f->desk->s.reserve_failures, 1);
        jobq__desk_maintain(f->desk);
        assert_false(scripted_took_back());
        assert_ok(jobq__desk_exchange(f->desk, 1, 0));
        assert_int_equal(f->desk->s.reserve_failures, 0);
        jobq__clock_shift(LEASE_MS + 1, LEASE_MS + 1);
        f->desk->now_ms = jobq__clock_mono_ms();
        assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
        jobq__desk_maintain(f->desk);
        assert_true(scripted_took_back());
    }
}

/* An outage longer than the lease, and nobody took anything: everything goes on. */
static void test_c5_renewed_late(void **state)
{
    fixture *f = *state;

    take(f, 3);
    finish_held(f, 1);
    scripted_away(JOBQ_ECONNECT);
    assert_int_equal(jobq__desk_exchange(f->desk, 0, 0), JOBQ_ECONNECT);
    jobq__clock_shift(3 * LEASE_MS, 3 * LEASE_MS);
    f->desk->now_ms = jobq__clock_mono_ms();
    assert_int_equal(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0), JOBQ_ECONNECT);
    scripted_away(0);
    pass_backoff(f);
    call(f, 0);
    check(f, 2, 0, 0, 2);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 1);
}

/* The same, but another worker took them: what is held is let go of, and the result that was in
 * hand is refused as what it is. */
static void test_c5_taken_meanwhile(void **state)
{
    fixture *f = *state;
    jobq_maintenance m = {.limit = 100, .take_back = true, .loss_cap = 10};
    jobq__lost_entry lost = {0};

    take(f, 3);
    finish_held(f, 1);
    jobq__clock_shift(2 * LEASE_MS, 2 * LEASE_MS);
    jobq__lost_entry_make(&lost, jobq__clock_wall_ms());
    m.lost_head = jobq__slice(lost.head, sizeof(lost.head));
    m.lost_tail = jobq__slice(lost.tail, lost.tail_n);
    assert_ok(jobq__store_maintain(f->queue->store, &m));
    f->desk->now_ms = jobq__clock_mono_ms();
    assert_int_equal(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0), JOBQ_ELEASE);
    check(f, 0, 1, 3, 0);
    call(f, 0);
    check(f, 0, 0, 3, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), 1);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 0);
}

/* A renewal whose answer is lost is no reason to ask for jobs, and harms nothing. */
static void test_k2_renewal_unheard(void **state)
{
    fixture *f = *state;

    take(f, 2);
    scripted_fail(SCRIPTED_RENEW, 1, SCRIPTED_AFTER, JOBQ_ETIMEOUT);
    assert_int_equal(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0), JOBQ_ETIMEOUT);
    pass_backoff(f);
    assert_int_equal(f->desk->s.reserve_failures, 0);
    finish_held(f, 2);
    call(f, 0);
    check(f, 0, 0, 0, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_DONE), 2);
}

/* Something got lost without anybody noticing: two renewals that count differently lead to the
 * question. */
static void test_k2_counts_differ(void **state)
{
    fixture *f = *state;
    jobq_batch lost = {0};
    jobq_exchange x = {.worker = f->desk->id,
                       .lease_ms = LEASE_MS,
                       .queues = f->desk->queues,
                       .queue_count = 1,
                       .want = 1,
                       .want_bytes = 1,
                       .out = &lost};

    push(f, 1);
    assert_ok(jobq__store_exchange(f->queue->store, &x)); /* in our name, unknown to us */
    jobq__batch_free(&lost);
    check(f, 0, 0, 0, 1);
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    call(f, 0);
    assert_int_equal(scripted_count(SCRIPTED_HELD), 0);
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    call(f, 0);
    assert_int_equal(scripted_count(SCRIPTED_HELD), 1);
    check(f, 0, 0, 1, 0);
}

/* ---- waiting, giving up ---------------------------------------------------------------------- */

/* Rule C9: a signal that ends the wait is no failure. */
static void test_c9_interrupted_wait(void **state)
{
    fixture *f = *state;

    scripted_fail(SCRIPTED_WAIT, 1, SCRIPTED_BEFORE, JOBQ_EINTR);
    jobq__desk_wait_store(f->desk, 0, -1);
    assert_int_equal(f->desk->s.reserve_failures, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_STORE_FAILURES), 0);
}

/* Rule K1: each failure in a row waits longer, and is counted. */
static void test_k1_backoff(void **state)
{
    fixture *f = *state;
    int64_t before_ms = 0;

    scripted_away(JOBQ_ECONNECT);
    for (int i = 1; i <= 4; i++) {
        int64_t wait_ms;

        jobq__desk_exchange(f->desk, 1, 0);
        wait_ms = f->desk->s.retry_at_ms - f->desk->now_ms;
        assert_true(wait_ms > before_ms);
        assert_true(jobq__desk_is_waiting_out(f->desk));
        before_ms = wait_ms;
    }
    assert_int_equal(f->desk->s.reserve_failures, 4);
    assert_int_equal(counted(f, JOBQ__COUNT_STORE_FAILURES), 4);
}

/* Rule K1: given up after one lease; what was tried may have been stored all the same. */
static void test_k1_given_up(void **state)
{
    fixture *f = *state;

    take(f, 3);
    finish_held(f, 1);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__desk_exchange(f->desk, 0, 0), JOBQ_EUNKNOWN);
    finish_held(f, 2);
    scripted_away(JOBQ_ECONNECT);
    jobq__desk_give_up(f->desk);
    assert_int_equal(f->desk->ended.count, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_RESULTS_LOST), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- jobs that go on ------------------------------------------------------------------------- */

/* Somebody else finds our lease lapsed and takes what we hold; our record is a new one. */
static void lose_lease(void)
{
    jobq_maintenance m = {.limit = 100, .loss_cap = 10, .take_back = true};
    fixture *f = &the_fixture;

    jobq__clock_shift(40000, 40000);
    assert_ok(jobq__store_maintain(f->queue->store, &m));
    f->desk->now_ms = jobq__clock_mono_ms();
}

static jobq__ticket *take_keyed(fixture *f)
{
    jobq_message *m = jobq_message_new();
    jobq_conf *options = jobq_message_options(m);

    assert_ok(jobq_message_set_name(m, "a", 1));
    assert_ok(jobq_conf_set(options, "unique", "key", 3));
    assert_ok(jobq_conf_set(options, "unique_scope", "until_started", 13));
    assert_ok(jobq_queue_push(f->queue, m));
    jobq_message_free(m);
    assert_ok(jobq__desk_exchange(f->desk, 1, 0));
    assert_non_null(f->desk->held.first);
    return f->desk->held.first;
}

/* Rule B6: an outage or a lost answer, and it is asked again; nobody starts before. */
static void test_b6_key_in_an_outage(void **state)
{
    fixture *f = *state;
    jobq__ticket *ticket = take_keyed(f);

    for (int moment = SCRIPTED_BEFORE; moment <= SCRIPTED_AFTER; moment++) {
        scripted_fail(SCRIPTED_EXCHANGE, 1, (scripted_moment)moment, JOBQ_EUNKNOWN);
        assert_false(jobq__told_free_key(f->desk, ticket));
        assert_int_equal(ticket->phase, JOBQ__TICKET_HELD);
        assert_false(ticket->tried); /* its end is not what is in doubt */
        pass_backoff(f);
    }
    assert_true(jobq__told_free_key(f->desk, ticket));
    assert_int_equal(f->desk->keys_wanted, 0);
    assert_true(jobq__told_free_key(f->desk, ticket)); /* asks no more */
    assert_int_equal(scripted_count(SCRIPTED_EXCHANGE), 4);
    finish_held(f, 1);
    call(f, 0);
    check(f, 0, 0, 0, 0);
}

/* Rule B6: refused, so the job is somebody else's: it is dropped, not started and not settled. */
static void test_b6_key_refused(void **state)
{
    fixture *f = *state;
    jobq__ticket *ticket = take_keyed(f);

    lose_lease();
    assert_false(jobq__told_free_key(f->desk, ticket));
    check(f, 0, 0, 1, 0);
    assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), 1);
    assert_int_equal(counted(f, JOBQ__COUNT_GIVEN_BACK), 0);
}

/* Rule O1: a refusal means done when the job has its done statement; with a lost lease, only when
 * its handler came through, and never otherwise. */
static void test_o1_refusals(void **state)
{
    static const struct {
        bool asked, lost;
        jobq_ending ending;
        int done, rejected;
    } cases[] = {
        {true, false, JOBQ_ENDED_DONE, 1, 0},    {true, false, JOBQ_ENDED_FAILED, 1, 0},
        {true, false, JOBQ_ENDED_CRASHED, 1, 0}, {true, true, JOBQ_ENDED_DONE, 1, 0},
        {true, true, JOBQ_ENDED_FAILED, 0, 1},   {false, false, JOBQ_ENDED_DONE, 0, 1},
        {false, false, JOBQ_ENDED_FAILED, 0, 1},
    };
    fixture *f = *state;
    int done = 0, rejected = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jobq__ticket *ticket;

        assert_ok(jobq_queue_clear(f->queue, "default", 7, NULL, NULL));
        take(f, 1);
        ticket = f->desk->held.first;
        ticket->asked_done = cases[i].asked;
        lose_lease(); /* as good as an end by somebody else */
        ticket->lost = cases[i].lost;
        jobq__handout_end(f->desk, ticket, cases[i].ending);
        call(f, 0);
        assert_int_equal(f->desk->ended.count, 0);
        done += cases[i].done;
        rejected += cases[i].rejected;
        assert_int_equal(counted(f, JOBQ__COUNT_DONE), done);
        assert_int_equal(counted(f, JOBQ__COUNT_LEASE_REJECTED), rejected);
        f->desk->s.renew_at_ms = f->desk->now_ms;
        jobq__desk_renew(f->desk, LEASE_MS, NULL, 0);
    }
    assert_int_equal(counted(f, JOBQ__COUNT_FAILED) + counted(f, JOBQ__COUNT_CRASHED), 0);
}

/* Rule N1: kept through an outage, told once when the answer is lost. */
static void test_n1_book(void **state)
{
    fixture *f = *state;
    jobq_minute_stats *list;
    size_t count;

    take(f, 3);
    finish_held(f, 3);
    call(f, 0);
    assert_true(jobq__tally_at(f->desk->tally, f->desk->now_ms) > 0);
    scripted_fail(SCRIPTED_BOOK, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
    assert_int_equal(jobq__tally_book(f->desk->tally, f->desk->store), JOBQ_ECONNECT);
    scripted_fail(SCRIPTED_BOOK, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_int_equal(jobq__tally_book(f->desk->tally, f->desk->store), JOBQ_EUNKNOWN);
    assert_ok(jobq__tally_book(f->desk->tally, f->desk->store));
    assert_int_equal(scripted_count(SCRIPTED_BOOK), 2);
    assert_int_equal(jobq__tally_at(f->desk->tally, f->desk->now_ms), 0);
    assert_ok(jobq_queue_minutes(f->queue, "default", 7, 5, &list, &count));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].counts[JOBQ_MINUTE_PUSHED], 3);
    assert_int_equal(list[0].counts[JOBQ_MINUTE_DONE], 3);
    jobq_minutes_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_k2_done_unheard),
        TEST(test_k2_never_arrived),
        TEST(test_k2_not_done),
        TEST(test_k2_half_done),
        TEST(test_k2_late),
        TEST(test_k2_timeout),
        TEST(test_k2_asking_fails),
        TEST(test_k2_many),
        TEST(test_k2_keeps_what_it_has),
        TEST(test_d6_settled_before),
        TEST(test_c3_refused_then_busy),
        TEST(test_c5_grace),
        TEST(test_c5_any_trouble),
        TEST(test_c5_renewed_late),
        TEST(test_c5_taken_meanwhile),
        TEST(test_k2_renewal_unheard),
        TEST(test_k2_counts_differ),
        TEST(test_c9_interrupted_wait),
        TEST(test_k1_backoff),
        TEST(test_k1_given_up),
        TEST(test_b6_key_in_an_outage),
        TEST(test_b6_key_refused),
        TEST(test_o1_refusals),
        TEST(test_n1_book),
    };

    return cmocka_run_group_tests_name("worker/exchange", tests, NULL, NULL);
}
