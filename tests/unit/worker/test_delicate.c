/* SPDX-License-Identifier: MIT
 *
 * Jobs of which the store has to know before they start (rules C5, B6), as the desk hands them out:
 * who is blamed when the whole worker vanishes in that moment. Real slots whose children the test
 * plays, real jobs in the memory store, time by shifting the clock.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include <jobqueue/jobqueue.h>

#include "harness/scripted.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "worker/desk.h"

enum { LEASE_MS = 30000, CHILDREN = 2, BIG = 200 * 1024 };

typedef struct {
    jobq_queue *queue;
    jobq_worker *worker;
    jobq__desk *desk;
} fixture;

static fixture the_fixture;

static void add_handler(fixture *f, const char *name, const char *option, const char *value)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_HANDLER, JOBQ_STYLE_SNAKE);

    assert_ok(jobq_conf_set(conf, option, value, strlen(value)));
    assert_ok(jobq_worker_handle(f->worker, name, strlen(name), 1, conf));
    jobq_conf_free(conf);
}

/* As the dispatcher's: all children are there and idle. */
static void make_seats(fixture *f)
{
    jobq__desk *desk = f->desk;

    desk->seat_count = f->worker->shared.words->slot_count;
    desk->seats = jobq__zalloc(desk->seat_count * sizeof(*desk->seats));
    for (size_t i = 0; i < desk->seat_count; i++)
        desk->seats[i].slot = jobq__slot_at(&f->worker->shared, (uint32_t)i);
    for (size_t i = 0; i < CHILDREN; i++)
        atomic_store(&desk->seats[i].slot->state, JOBQ__SLOT_LIVE);
}

/* several: of the name "wide" so many may run in a child at once. */
static void open_desk(fixture *f, const char *several)
{
    const char *queues[] = {"default"};

    memset(f, 0, sizeof(*f));
    jobq__clock_hold(true);
    assert_ok(jobq_queue_new("memory:", NULL, &f->queue));
    scripted_make(f->queue);
    assert_ok(jobq_worker_new(f->queue, NULL, &f->worker));
    add_handler(f, "last", "tries", "1");
    add_handler(f, "plain", "tries", "5");
    add_handler(f, "wide", "async_concurrency", several);
    assert_ok(jobq__worker_prepare(f->worker, queues, 1, NULL));
    f->worker->run_conf->s.processes = CHILDREN; /* processes may not share this store */
    assert_ok(jobq__shared_new(&f->worker->shared, CHILDREN, jobq__worker_seats(f->worker),
                               (size_t)1 << 20, 0));
    strcpy(f->worker->shared.words->worker_id, jobq_worker_id(f->worker));
    assert_ok(jobq__desk_new(f->worker, f->worker->shared.handouts, f->worker->shared.handout_count,
                             &f->desk));
    make_seats(f);
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    f->desk->average_us = 20; /* what ran so far was short */
}

static int set_up(void **state)
{
    open_desk(&the_fixture, "1");
    *state = &the_fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    jobq__desk_free(f->desk);
    jobq_worker_free(f->worker);
    jobq_queue_free(f->queue);
    jobq__clock_hold(false);
    return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void push(fixture *f, const char *name, int n, size_t bytes, const char *unique)
{
    for (int i = 0; i < n; i++) {
        jobq_message *m = jobq_message_new();
        char *body = malloc(bytes + 2);

        memset(body, 'x', bytes + 2);
        body[0] = body[bytes + 1] = '"';
        assert_ok(jobq_message_set_name(m, name, strlen(name)));
        assert_ok(jobq_message_set_body(m, JOBQ_FORMAT_JSON, body, bytes + 2));
        if (unique) {
            assert_ok(jobq_conf_set(jobq_message_options(m), "unique", unique, strlen(unique)));
            assert_ok(jobq_conf_set(jobq_message_options(m), "unique_scope", "until_started", 13));
        }
        assert_ok(jobq_queue_push(f->queue, m));
        jobq_message_free(m);
        free(body);
    }
}

static void take(fixture *f, int n)
{
    const size_t before = f->desk->held.count;

    assert_ok(jobq__desk_exchange(f->desk, n, n));
    assert_int_equal(f->desk->held.count, before + (size_t)n);
}

/* What a dispatcher does in each round before it sleeps. */
static void go_round(fixture *f)
{
    jobq__desk *desk = f->desk;

    desk->now_ms = jobq__clock_mono_ms();
    jobq__room_look(desk);
    if (desk->keys_wanted > 0)
        jobq__told_unwant_keys(desk);
    jobq__give(desk);
    jobq__room_look(desk);
    jobq__delicate_situation(desk);
    if (desk->acquit)
        assert_ok(jobq__desk_renew(desk, LEASE_MS, NULL, 0));
}

static void pass(int64_t ms)
{
    jobq__clock_shift(ms, ms);
}

static size_t out_of(const fixture *f, int child)
{
    return f->desk->seats[child].out.count;
}

/* That child begins what lies first in its ring. */
static jobq__ticket *begin(fixture *f, int child)
{
    jobq__seat *seat = &f->desk->seats[child];
    jobq__ticket *ticket = seat->out.first;

    assert_non_null(ticket);
    assert_true(jobq__slot_begin(seat->slot, ticket->handout->number));
    atomic_store(&seat->slot->used, 1);
    atomic_store(&seat->slot->run.since_ms, jobq__clock_mono_ms());
    atomic_store(&seat->slot->run.number, ticket->handout->number);
    return ticket;
}

/* ... and is through with it; the store has not heard of it. */
static void end(fixture *f, jobq__ticket *ticket)
{
    jobq__slot *slot = f->desk->seats[ticket->handout->slot].slot;

    atomic_store(&slot->run.number, 0);
    jobq__slot_end(slot, ticket->handout->number);
    jobq__handout_ran(f->desk, ticket);
    jobq__handout_end(f->desk, ticket, JOBQ_ENDED_DONE);
}

static void settle(fixture *f)
{
    assert_ok(jobq__desk_exchange(f->desk, 0, 0));
}

/* ---- what became of them --------------------------------------------------------------------- */

typedef struct {
    int blamed, others;
} fates;

/* The host is gone, its lease runs out, another worker gets what it had. */
static fates vanish(fixture *f)
{
    jobq_maintenance m = {.limit = 1000, .take_back = true, .loss_cap = 10};
    jobq_renewal r = {.worker = jobq__slice_text("next"), .lease_ms = LEASE_MS};
    jobq_exchange x = {.worker = jobq__slice_text("next"),
                       .lease_ms = LEASE_MS,
                       .queues = f->desk->queues,
                       .queue_count = 1,
                       .want = 1000,
                       .want_taken_back = 1000};
    jobq__lost_entry lost = {0};
    jobq_batch got = {0};
    fates sum = {0};

    pass(2 * LEASE_MS);
    jobq__lost_entry_make(&lost, jobq__clock_wall_ms());
    m.lost_head = jobq__slice(lost.head, sizeof(lost.head));
    m.lost_tail = jobq__slice(lost.tail, lost.tail_n);
    assert_ok(jobq__store_maintain(f->queue->store, &m));
    assert_ok(jobq__store_renew(f->queue->store, &r));
    x.out = &got;
    assert_ok(jobq__store_exchange(f->queue->store, &x));
    for (const jobq_record *record = got.first; record; record = record->next)
        ++*(record->counters.crashes > 0 ? &sum.blamed : &sum.others);
    jobq__batch_free(&got);
    return sum;
}

static void check_fates(fixture *f, int blamed, int others)
{
    const fates sum = vanish(f);

    assert_int_equal(sum.blamed, blamed);
    assert_int_equal(sum.others, others);
}

/* ---- announced ahead, acquitted -------------------------------------------------------------- */

/* Rule C5: behind one that takes 10 ms nobody stays who would be blamed for it. */
static void test_c5_acquitted_behind_a_long_one(void **state)
{
    fixture *f = *state;

    push(f, "last", 12, 0, NULL);
    take(f, 12);
    go_round(f);
    assert_int_equal(f->desk->held.count, 0);
    begin(f, 0);
    begin(f, 1);
    pass(9);
    go_round(f);
    assert_int_equal(f->desk->held.count, 0);
    assert_in_range(f->desk->s.look_at_ms, f->desk->now_ms, f->desk->now_ms + 1);
    pass(1);
    go_round(f);
    assert_int_equal(out_of(f, 0), 1);
    assert_int_equal(out_of(f, 1), 1);
    check_fates(f, 2, 10);
}

/* A child that is idle takes them at once, one that is through with its own next. */
static void test_c5_acquitted_ones_run_next(void **state)
{
    fixture *f = *state;
    jobq__ticket *first;

    push(f, "last", 6, 0, NULL);
    take(f, 6);
    go_round(f);
    first = begin(f, 0);
    pass(10);
    go_round(f);
    assert_int_equal(out_of(f, 0), 1);
    assert_int_equal(out_of(f, 1), 5);
    begin(f, 1);
    pass(10);
    go_round(f);
    assert_int_equal(f->desk->held.count, 4);
    end(f, first);
    settle(f);
    go_round(f);
    assert_int_equal(out_of(f, 0), 4);
    check_fates(f, 5, 0);
}

/* And nobody is put there while it runs. */
static void test_c5_nobody_behind_a_long_one(void **state)
{
    fixture *f = *state;

    push(f, "last", 2, 0, NULL);
    take(f, 2);
    go_round(f);
    begin(f, 0);
    begin(f, 1);
    pass(10);
    push(f, "last", 5, 0, NULL);
    take(f, 5);
    go_round(f);
    assert_int_equal(f->desk->held.count, 5);
    check_fates(f, 2, 5);
}

/* No more than 10 ms of them by what ran so far; none where nothing is known, or each takes
 * long. */
static void test_c5_ahead_is_bounded(void **state)
{
    static const struct {
        double average_us;
        size_t each;
    } rows[] = {{20, 33}, {999, 11}, {4999, 3}, {10000, 1}, {40000, 1}, {-1, 1}};
    fixture *f = *state;

    push(f, "last", 100, 0, NULL);
    take(f, 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f->desk->average_us = rows[i].average_us;
        go_round(f);
        assert_int_equal(out_of(f, 0), rows[i].each);
        assert_int_equal(out_of(f, 1), rows[i].each);
        jobq__give_take_back(f->desk);
        assert_int_equal(f->desk->held.count, 100);
    }
    f->desk->average_us = 20;
    f->worker->run_conf->s.prefetch = 0; /* people want none */
    go_round(f);
    assert_int_equal(f->desk->out, CHILDREN);
    check_fates(f, 2, 98);
}

/* What the store could not be told of does not begin. */
static void test_c5_not_announced(void **state)
{
    fixture *f = *state;

    push(f, "last", 3, 0, NULL);
    take(f, 3);
    scripted_fail(SCRIPTED_RENEW, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
    go_round(f);
    assert_int_equal(f->desk->out, 0);
    assert_int_equal(f->desk->held.count, 3);
    go_round(f);
    assert_int_equal(f->desk->out, 3);
    check_fates(f, 3, 0);
}

/* Where several may run in a child nobody is announced ahead. */
static void test_c5_none_ahead_of_several(void **state)
{
    fixture *f = *state;

    tear_down(state);
    open_desk(f, "4");
    push(f, "last", 6, 0, NULL);
    take(f, 6);
    go_round(f);
    assert_int_equal(out_of(f, 0), 1);
    assert_int_equal(out_of(f, 1), 1);
    check_fates(f, 2, 4);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Nothing is said to the store while there is no room. */
static void check_quiet(fixture *f)
{
    const int renewals = scripted_count(SCRIPTED_RENEW);

    go_round(f);
    assert_int_equal(scripted_count(SCRIPTED_RENEW), renewals);
}

/* A child's ring is full: what does not fit is not announced. */
static void test_c5_full_ring(void **state)
{
    fixture *f = *state;
    size_t out;

    push(f, "last", 12, 60000, NULL);
    take(f, 12);
    for (int i = 0; i < 2; i++)
        go_round(f);
    out = f->desk->out;
    assert_in_range(out, 6, 11);
    check_quiet(f);
    assert_int_equal(f->desk->held.count, 12 - out);
    check_fates(f, (int)out, 12 - (int)out);
}

/* The same for large bodies, of which a child has room for one. */
static void test_c5_full_area(void **state)
{
    fixture *f = *state;

    push(f, "last", 5, BIG, NULL);
    take(f, 5);
    for (int i = 0; i < 2; i++)
        go_round(f);
    assert_int_equal(f->desk->out, CHILDREN);
    check_quiet(f);
    check_fates(f, CHILDREN, 5 - CHILDREN);
}

/* ---- those that were lost before ------------------------------------------------------------- */

/* Another worker had n jobs and vanished. */
static void make_lost(fixture *f, int n)
{
    jobq_renewal r = {.worker = jobq__slice_text("before"), .lease_ms = LEASE_MS};
    jobq_maintenance m = {.limit = 1000, .take_back = true, .loss_cap = 10};
    jobq_exchange x = {.worker = r.worker,
                       .lease_ms = LEASE_MS,
                       .queues = f->desk->queues,
                       .queue_count = 1,
                       .want = (size_t)n};
    jobq__lost_entry lost = {0};
    jobq_batch got = {0};

    assert_ok(jobq__store_renew(f->queue->store, &r));
    x.out = &got;
    assert_ok(jobq__store_exchange(f->queue->store, &x));
    jobq__batch_free(&got);
    pass(2 * LEASE_MS / 3);
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    pass(2 * LEASE_MS / 3);
    jobq__lost_entry_make(&lost, jobq__clock_wall_ms());
    m.lost_head = jobq__slice(lost.head, sizeof(lost.head));
    m.lost_tail = jobq__slice(lost.tail, lost.tail_n);
    assert_ok(jobq__store_maintain(f->queue->store, &m));
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
}

/* They go to idle children, and nobody is announced behind them. */
static void test_c5_alone_after_a_loss(void **state)
{
    fixture *f = *state;

    push(f, "plain", 2, 0, NULL);
    make_lost(f, 2);
    take(f, 2);
    push(f, "last", 4, 0, NULL);
    take(f, 4);
    for (int i = 0; i < 2; i++) {
        go_round(f);
        assert_int_equal(out_of(f, 0), 1);
        assert_int_equal(out_of(f, 1), 1);
    }
    check_fates(f, 2, 4);
}

/* Nor are they announced behind others. */
static void test_c5_lost_ones_wait_for_an_idle_child(void **state)
{
    fixture *f = *state;

    push(f, "plain", 1, 0, NULL);
    make_lost(f, 1);
    push(f, "last", 2, 0, NULL);
    take(f, 1);
    jobq__tickets_remove(&f->desk->held, f->desk->held.first); /* comes later */
    f->desk->tickets[0].phase = JOBQ__TICKET_HELD;
    take(f, 2);
    go_round(f);
    assert_int_equal(f->desk->out, 2);
    jobq__tickets_append(&f->desk->held, &f->desk->tickets[0]);
    go_round(f);
    assert_int_equal(f->desk->held.count, 1);
    check_fates(f, 2, 1);
}

/* Only idle children ask for them, one waits for the next at the most. */
static void test_c5_so_many_taken_back_are_wanted(void **state)
{
    fixture *f = *state;

    go_round(f);
    assert_int_equal(jobq__delicate_want_taken_back(f->desk), CHILDREN);
    push(f, "plain", 4, 0, NULL);
    make_lost(f, 4);
    take(f, 2);
    go_round(f);
    assert_int_equal(f->desk->out, 2);
    assert_int_equal(jobq__delicate_want_taken_back(f->desk), 1);
    take(f, 1);
    go_round(f);
    assert_int_equal(jobq__delicate_want_taken_back(f->desk), 0);
}

/* ---- unique keys that are freed at the start (rule B6) --------------------------------------- */

/* Not before the store has freed it, and then at once. */
static void test_b6_key_first(void **state)
{
    fixture *f = *state;

    push(f, "plain", 1, 0, "k");
    take(f, 1);
    go_round(f);
    assert_int_equal(f->desk->out, 0);
    assert_int_equal(f->desk->keys_wanted, 1);
    settle(f);
    go_round(f);
    assert_int_equal(f->desk->out, 1);
    assert_int_equal(f->desk->keys_wanted, 0);
    assert_ok(jobq__desk_renew(f->desk, LEASE_MS, NULL, 0));
    check_fates(f, 0, 1); /* it has more tries: nobody needs to know that it is about to start */
}

/* Its key is not freed while it would have to wait: behind plain ones before it, in a child that
 * works. */
static void test_b6_key_stays_while_it_waits(void **state)
{
    fixture *f = *state;

    push(f, "plain", 2, 0, NULL);
    push(f, "plain", 1, 0, "k");
    take(f, 3);
    go_round(f); /* the plain ones go, each to a child of its own */
    assert_int_equal(f->desk->out, 2);
    assert_int_equal(f->desk->keys_wanted, 0);
    go_round(f);
    assert_int_equal(f->desk->keys_wanted, 0);
    end(f, begin(f, 0));
    go_round(f);
    assert_int_equal(f->desk->keys_wanted, 1);
    settle(f);
    go_round(f);
    assert_int_equal(out_of(f, 0), 1);
}

/* A last try beside it goes on meanwhile, but not to the child that waits for the key. */
static void test_b6_place_is_kept(void **state)
{
    fixture *f = *state;

    f->desk->average_us = 40000;
    push(f, "plain", 1, 0, "k");
    push(f, "last", 3, 0, NULL);
    take(f, 4);
    go_round(f);
    assert_int_equal(out_of(f, 0), 0);
    assert_int_equal(out_of(f, 1), 1);
    assert_int_equal(f->desk->keys_wanted, 1);
    settle(f);
    go_round(f);
    assert_int_equal(out_of(f, 0), 1);
    assert_int_equal(out_of(f, 1), 1);
    check_fates(f, 1, 3);
}

/* ---- beside others --------------------------------------------------------------------------- */

/* A stream of plain jobs does not keep them waiting: a child is kept free. */
static void test_c5_plain_ones_make_way(void **state)
{
    fixture *f = *state;

    push(f, "plain", 2, 0, NULL);
    take(f, 2);
    go_round(f);
    begin(f, 0);
    begin(f, 1);
    pass(20);
    push(f, "last", 1, 0, NULL);
    take(f, 1);
    go_round(f);
    for (int i = 0; i < 5; i++) {
        push(f, "plain", 1, 0, NULL);
        take(f, 1);
        go_round(f);
    }
    assert_true(out_of(f, 0) == 1 || out_of(f, 1) == 1);
    end(f, f->desk->seats[out_of(f, 0) == 1 ? 0 : 1].out.first);
    go_round(f);
    assert_int_equal(f->desk->held.count, 0);
    check_fates(f, 1, 7);
}

/* Rule G1: nor does a stream of those of which several run keep one waiting that runs alone. */
static void test_g1_several_make_way(void **state)
{
    fixture *f = *state;
    int cleared;

    tear_down(state);
    open_desk(f, "4");
    push(f, "wide", 2, 0, NULL);
    take(f, 2);
    go_round(f);
    assert_int_equal(f->desk->out, 2);
    push(f, "plain", 1, 0, NULL);
    push(f, "wide", 3, 0, NULL);
    take(f, 4);
    go_round(f);
    assert_int_equal(f->desk->held.count, 1);
    cleared = out_of(f, 0) == 1 ? 0 : 1;
    assert_int_equal(out_of(f, cleared), 1);
    assert_int_equal(out_of(f, !cleared), 4);
    end(f, begin(f, cleared));
    go_round(f);
    assert_int_equal(f->desk->held.count, 0);
    assert_int_equal(out_of(f, cleared), 1);
}

/* While some begin, the others may wait eight times as long as plain ones, which go back for other
 * workers in a quarter of a second. */
static void test_c5_patience(void **state)
{
    fixture *f = *state;

    f->desk->average_us = 40000;
    push(f, "last", 4, 0, NULL);
    take(f, 4);
    go_round(f);
    begin(f, 0);
    begin(f, 1);
    pass(900);
    go_round(f);
    assert_int_equal(f->desk->held.count, 2);
    pass(200); /* none began for a second */
    go_round(f);
    assert_int_equal(f->desk->held.count, 0);
    assert_int_equal(f->desk->ended.count, 2);
}

/* So many are taken from the store as begin soon, where all that come are such. */
static void test_c5_takes_what_begins_soon(void **state)
{
    fixture *f = *state;

    f->desk->average_us = -1; /* nothing is known of what is there */
    assert_int_equal(jobq__delicate_room(f->desk, 900), 4 * CHILDREN);
    assert_int_equal(jobq__delicate_room(f->desk, 2), 2);
    f->desk->average_us = 20;
    push(f, "last", 4, 0, NULL);
    take(f, 4);
    assert_in_range(jobq__delicate_room(f->desk, 900), 4 * CHILDREN * 33, 4 * CHILDREN * 33 + 8);
    f->desk->average_us = 40000;
    assert_in_range(jobq__delicate_room(f->desk, 900), 4 * CHILDREN, 4 * CHILDREN + 8);
    push(f, "last", 4, 0, NULL);
    take(f, 4);
    assert_int_equal(jobq__delicate_room(f->desk, 900), 8); /* those that are here */
}

/* Where none are, as much as there is room for. */
static void test_c5_takes_plain_ones_as_ever(void **state)
{
    fixture *f = *state;

    push(f, "plain", 1, 0, NULL);
    take(f, 1);
    assert_int_equal(jobq__delicate_room(f->desk, 900), 900);
}

/* Of others so many more as come with them. */
static void test_c5_takes_others_beside_them(void **state)
{
    fixture *f = *state;

    f->desk->average_us = 40000;
    push(f, "last", 1, 0, NULL);
    push(f, "plain", 3, 0, NULL);
    take(f, 4);
    assert_in_range(jobq__delicate_room(f->desk, 900), 4 + 4 * (4 * CHILDREN - 1),
                    4 + 16 * CHILDREN);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_c5_acquitted_behind_a_long_one),
        TEST(test_c5_acquitted_ones_run_next),
        TEST(test_c5_nobody_behind_a_long_one),
        TEST(test_c5_ahead_is_bounded),
        TEST(test_c5_not_announced),
        TEST(test_c5_none_ahead_of_several),
        TEST(test_c5_full_ring),
        TEST(test_c5_full_area),
        TEST(test_c5_alone_after_a_loss),
        TEST(test_c5_lost_ones_wait_for_an_idle_child),
        TEST(test_c5_so_many_taken_back_are_wanted),
        TEST(test_b6_key_first),
        TEST(test_b6_key_stays_while_it_waits),
        TEST(test_b6_place_is_kept),
        TEST(test_c5_plain_ones_make_way),
        TEST(test_g1_several_make_way),
        TEST(test_c5_patience),
        TEST(test_c5_takes_what_begins_soon),
        TEST(test_c5_takes_plain_ones_as_ever),
        TEST(test_c5_takes_others_beside_them),
    };

    return cmocka_run_group_tests_name("worker/delicate", tests, NULL, NULL);
}
