/* SPDX-License-Identifier: MIT
 *
 * What every driver must do. Each test gets a fresh store; time passes by shifting the clock.
 */
#include "contract/contract.h"

#include "contract/control.h"
#include "contract/guarantees.h"
#include "contract/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/fd.h"

static const contract_driver *driver;

const char *contract_fresh_dsn(void)
{
    return driver->fresh_dsn();
}

bool contract_has(uint64_t feature)
{
    return (jobq__store_driver(store)->features & feature) == feature;
}

void contract_check(void)
{
    if (driver->check)
        driver->check();
}

/* Where the store has a clock of its own it has but one: everything goes ahead together. */
void pass_time(int64_t wall_ms, int64_t boot_ms)
{
    if (contract_has(JOBQ_FEATURE_HOST_CLOCK))
        jobq__clock_shift(wall_ms, boot_ms);
    else if (driver->shift)
        driver->shift(wall_ms > boot_ms ? wall_ms : boot_ms);
    else
        skip_because("nobody can move this store's clock");
}

/* Takes back every shift of the clocks. */
static void reset_clocks(void)
{
    struct timespec wall, boot;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    jobq__clock_shift((int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - jobq__clock_wall_ms(),
                      (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000 - jobq__clock_boot_ms());
}

static int set_up(void **state)
{
    (void)state;
    store = contract_open(driver->fresh_dsn());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    jobq__store_free(store);
    store = NULL;
    reset_clocks();
    return 0;
}

/* ---- push ------------------------------------------------------------------------------------ */

static void test_push_keeps_every_field(void **state)
{
    jobq_push item = {.id = TEXT("id-1"),
                      .queue = TEXT("mail"),
                      .name = TEXT("invoice.send"),
                      .header = TEXT("\1m"),
                      .body = jobq__slice("a\0b\xff", 4),
                      .unique = TEXT("key"),
                      .version = 7,
                      .priority = 3};
    const jobq_record *r;

    (void)state;
    assert_int_equal(push_item(&item), 0);
    r = find_job("id-1");
    assert_non_null(r);
    assert_true(jobq__slice_equal(r->queue, item.queue));
    assert_true(jobq__slice_equal(r->name, item.name));
    assert_true(jobq__slice_equal(r->header, item.header));
    assert_true(jobq__slice_equal(r->body, item.body));
    assert_true(jobq__slice_equal(r->unique, item.unique));
    assert_int_equal(r->version, 7);
    assert_int_equal(r->priority, 3);
    assert_int_equal(r->state, 0);
    assert_int_equal(r->fence, 0);
    assert_int_equal(r->enqueued_at_ms, r->base_at_ms);
    assert_true(llabs(r->enqueued_at_ms - store_now()) < 60000);
}

/* An absent part stays absent, an empty one empty. */
static void test_push_absent_is_not_empty(void **state)
{
    jobq_push absent = job_item("absent", "q"), empty = job_item("empty", "q");

    (void)state;
    empty.header = jobq__slice("", 0);
    empty.body = jobq__slice("", 0);
    assert_int_equal(push_item(&absent), 0);
    assert_int_equal(push_item(&empty), 0);
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    assert_null(got.first->header.p);
    assert_null(got.first->unique.p);
    assert_non_null(got.first->next->header.p);
    assert_int_equal(got.first->next->header.n, 0);
    assert_non_null(got.first->next->body.p);
    assert_int_equal(got.first->next->body.n, 0);
}

/* rule B5: an id that exists in any state is refused. */
static void test_b5_duplicate_id_in_any_state(void **state)
{
    static const char *const ids[] = {"ready", "delayed", "reserved", "dead", "done"};
    jobq_push item = job_item("delayed", "q");

    (void)state;
    item.delay_ms = 60000;
    push_item(&item);
    push_job("reserved", "r");
    reserve_one("w", "r", "reserved");
    push_job("dead", "d");
    settle_op("w", reserve_one("w", "d", "dead"), JOBQ_OP_DEAD);
    push_job("done", "f");
    reserve_one("w", "f", "done");
    {
        jobq_settlement s = settlement(got.first, JOBQ_OP_DONE);

        s.keep_ms = 60000;
        assert_int_equal(settle_with("w", &s), 0);
    }
    push_job("ready", "q");
    for (size_t i = 0; i < 5; i++) {
        jobq_push again = job_item(ids[i], "another");

        assert_int_equal(push_item(&again), JOBQ_EEXISTS);
    }
    assert_int_equal(count_jobs("another").ready, 0);
}

/* rule B6: while a job with the key waits or runs, a second push is not stored and names the
 * first. */
static void test_b6_unique_key(void **state)
{
    jobq_push first = job_item("first", "q"), second = job_item("second", "q"),
              other = job_item("other", "q2");

    (void)state;
    need_feature(JOBQ_FEATURE_UNIQUE, "unique keys");
    first.unique = second.unique = other.unique = TEXT("x:y");
    assert_int_equal(push_item(&first), 0);
    assert_int_equal(push_item(&second), 1);
    assert_string_equal(second.holder, "first");
    assert_int_equal(push_item(&other), 0); /* unique within its queue */
    reserve_one("w", "q", "first");
    assert_int_equal(push_item(&second), 1);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    assert_int_equal(push_item(&second), 1);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DONE), 0);
    assert_int_equal(push_item(&second), 0);
}

/* rule B6, case B120: death frees the key; a replay is refused while somebody else holds it. */
static void test_b6_unique_key_and_death(void **state)
{
    jobq_push first = job_item("first", "q"), second = job_item("second", "q"),
              third = job_item("third", "q");

    (void)state;
    need_feature(JOBQ_FEATURE_UNIQUE, "unique keys");
    first.unique = second.unique = third.unique = TEXT("k");
    push_item(&first);
    settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DEAD);
    assert_int_equal(push_item(&second), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "first", true), JOBQ_EEXISTS);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "first", false), JOBQ_EEXISTS);
    assert_int_equal(find_job("first")->state, 4);
    settle_op("w", reserve_one("w", "q", "second"), JOBQ_OP_DONE);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "first", false), 0);
    assert_int_equal(push_item(&third), 1);
    settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DEAD);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "first", false), 0);
    assert_int_equal(push_item(&third), 0);
}

/* rule B3: items of one call are judged singly, the accepted ones stored together. */
static void test_b3_push_many_judged_singly(void **state)
{
    jobq_push items[5] = {job_item("a", "q"), job_item("a", "q"), job_item("b", "q"),
                          job_item("c", "q"), job_item("d", "q")};

    (void)state;
    items[2].unique = items[3].unique = TEXT("u");
    assert_ok(jobq__store_push(store, items, 5));
    assert_int_equal(items[0].result, 0);
    assert_int_equal(items[1].result, JOBQ_EEXISTS);
    assert_int_equal(items[2].result, 0);
    assert_int_equal(items[3].result, 1);
    assert_string_equal(items[3].holder, "b");
    assert_int_equal(items[4].result, 0);
    reserve_jobs("w", "q", 10);
    expect_ids("a b d");
}

static void test_push_larger_than_a_batch(void **state)
{
    size_t n = jobq__store_driver(store)->max_batch * 2 + 3;
    jobq_push *items = calloc(n, sizeof(*items));
    char(*ids)[32] = calloc(n, sizeof(*ids));

    (void)state;
    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof(ids[i]), "job-%zu", i);
        items[i] = job_item(ids[i], "q");
    }
    assert_ok(jobq__store_push(store, items, n));
    assert_int_equal(count_jobs("q").ready, n);
    free(items);
    free(ids);
}

static void test_push_refuses_bad_arguments(void **state)
{
    char long_text[300];
    jobq_push item = job_item("", "q");

    (void)state;
    memset(long_text, 'x', sizeof(long_text));
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
    assert_said("id");
    item = job_item("a", "q");
    item.queue = jobq__slice(long_text, 129);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
    assert_said("queue");
    item = job_item("a", "q");
    item.priority = 10;
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
    assert_said("0 to 9");
    item = job_item("a", "q");
    item.version = 0;
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
    item = job_item("a", "q");
    item.body.n = jobq__store_driver(store)->max_body + 1;
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ELIMIT);
}

/* cases B004, B141: names with colons, braces and any script; bodies with NUL and of a mebibyte. */
static void test_b141_names_do_not_collide(void **state)
{
    static const char *const queues[] = {
        "a",       "a:delayed", "a:reserved",  "billing:v2",
        "billing", "{x}",       "}x",          "p:a",
        "Mail",    "mail",      "m\xc3\xa4il", "\xe6\x97\xa5\xe6\x9c\xac \xe8\xaa\x9e",
        "100%"};
    char id[16];

    (void)state;
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "id%zu", i);
        item = job_item(id, queues[i]);
        item.unique = TEXT("x:y");
        assert_int_equal(push_item(&item), 0);
    }
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        char worker[64];

        snprintf(id, sizeof(id), "id%zu", i);
        snprintf(worker, sizeof(worker), "%s:worker", queues[i]);
        assert_int_equal(count_jobs(queues[i]).ready, 1);
        assert_int_equal(settle_op(worker, reserve_one(worker, queues[i], id), JOBQ_OP_DONE), 0);
        assert_int_equal(reserve_jobs("w", queues[i], 1), 0);
    }
}

static void test_a5_large_and_binary_bodies(void **state)
{
    size_t n = 1 << 20;
    char *body = jobq__alloc(n);
    jobq_push item = job_item("big", "q");

    (void)state;
    for (size_t i = 0; i < n; i++)
        body[i] = (char)(i * 31 >> 3);
    item.body = jobq__slice(body, n);
    assert_int_equal(push_item(&item), 0);
    for (int round = 0; round < 3; round++) { /* byte-identical through retry, death and replay */
        jobq_record *r = reserve_one("w", "q", "big");

        assert_true(jobq__slice_equal(r->body, item.body));
        assert_int_equal(settle_op("w", r, round == 1 ? JOBQ_OP_DEAD : JOBQ_OP_BACK), 0);
        if (round == 1)
            assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, item.id.p, false), 0);
    }
    jobq__free(body);
}

/* ---- reserve: order -------------------------------------------------------------------------- */

/* rule C1: priority, then the time it became available, then push order. */
static void test_c1_order(void **state)
{
    static const struct {
        const char *id;
        uint8_t priority;
    } rows[] = {{"a", 0}, {"b", 5}, {"c", 0}, {"d", 9}, {"e", 5}, {"f", 1}};

    (void)state;
    need_feature(JOBQ_FEATURE_PRIORITY, "priorities");
    for (size_t i = 0; i < 6; i++) {
        jobq_push item = job_item(rows[i].id, "q");

        item.priority = rows[i].priority;
        push_item(&item);
    }
    assert_int_equal(reserve_jobs("w", "q", 4), 4);
    expect_ids("d b e f");
    assert_int_equal(got.first->priority, 9);
    assert_int_equal(reserve_jobs("w", "q", 4), 2);
    expect_ids("a c");
}

/* rule C1: queues in the order given, the first with a job wins. */
static void test_c1_queues_in_order(void **state)
{
    jobq_slice queues[] = {TEXT("high"), TEXT("none"), TEXT("low")};
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = queues,
                       .queue_count = 3,
                       .want = 3,
                       .out = &got};

    (void)state;
    push_job("l1", "low");
    push_job("h1", "high");
    push_job("l2", "low");
    push_job("h2", "high");
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("h1 h2 l1");
    assert_true(jobq__slice_equal(got.first->queue, queues[0]));
    assert_true(jobq__slice_equal(got.last->queue, queues[2]));
}

/* rule C1: given back unstarted = before any job pushed after it; released = by due time. */
static void test_c1_give_back_keeps_place(void **state)
{
    jobq_record *r;

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    r = reserve_one("w", "q", "a");
    assert_int_equal(r->counters.deliveries, 1);
    push_job("c", "q");
    assert_int_equal(settle_op("w", r, JOBQ_OP_GIVE_BACK), 0);
    pass_time(5, 0);
    r = reserve_one("w", "q", "a");
    assert_int_equal(r->counters.deliveries, 2);
    assert_int_equal(r->counters.failures, 0);
    assert_int_equal(r->fence, 2);
    assert_false(r->taken_back);
    assert_int_equal(settle_op("w", r, JOBQ_OP_BACK), 0);
    assert_int_equal(reserve_jobs("w", "q", 9), 3);
    expect_ids("b c a");
}

static void test_reserve_stops_at_bytes(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 10,
                       .want_bytes = 5,
                       .out = &got};

    (void)state;
    for (int i = 0; i < 5; i++) { /* bodies of four bytes */
        char id[2] = {(char)('a' + i), 0};

        push_job(id, "q");
    }
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("a b");
    x.want_bytes = 1;
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("c");
}

static void push_priorities(const char *queue, const char *priorities)
{
    for (size_t i = 0; priorities[i]; i++) {
        char id[64];
        jobq_push item;

        snprintf(id, sizeof(id), "%s-%zu", queue, i);
        item = job_item(id, queue);
        item.priority = (uint8_t)(priorities[i] - '0');
        assert_int_equal(push_item(&item), 0);
    }
}

/* Everything of queues "a" and "b" that could still be reserved. */
static size_t reserve_rest(void)
{
    return reserve_jobs("rest", "a", 20) + reserve_jobs("rest", "b", 20);
}

/* `exhausted` may be kept quiet about, never be wrong: a worker that believes it goes to sleep. */
static void test_exhausted_is_never_wrong(void **state)
{
    static const struct {
        const char *a, *b; /* a digit per job: its priority */
        size_t want, want_bytes, want_taken_back;
        bool lost, give_back; /* one of "a" was taken back before; is given back in the same call */
    } rows[] = {{"000", "", 2, 0, 1, false, false}, {"00", "", 2, 0, 1, false, false},
                {"0", "0", 1, 0, 1, false, false},  {"0", "0", 2, 0, 1, false, false},
                {"5", "0", 1, 0, 1, false, false},  {"05", "", 1, 0, 1, false, false},
                {"50", "", 1, 0, 1, false, false},  {"555", "00", 3, 0, 1, false, false},
                {"000", "", 9, 1, 1, false, false}, {"90", "", 9, 1, 1, false, false},
                {"00", "0", 5, 0, 0, true, false},  {"00", "0", 5, 0, 1, true, false},
                {"00", "0", 1, 0, 1, false, true},  {"09", "0", 1, 0, 1, false, true},
                {"0", "", 0, 0, 1, false, true},    {"", "", 3, 0, 1, false, false},
                {"", "0", 3, 0, 1, false, false}};
    jobq_slice queues[] = {TEXT("a"), TEXT("b")};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq_batch out = {0};
        jobq_settlement s;
        jobq_exchange x = {.worker = TEXT("w"),
                           .lease_ms = 100000,
                           .queues = queues,
                           .queue_count = 2,
                           .want = rows[i].want,
                           .want_bytes = rows[i].want_bytes,
                           .want_taken_back = rows[i].want_taken_back,
                           .out = &out};

        push_priorities("a", rows[i].a);
        push_priorities("b", rows[i].b);
        if (rows[i].lost) {
            begin_worker("gone", 1000);
            reserve_jobs("gone", "a", 1);
            pass_time(0, 3000);
            maintain_all();
        }
        if (rows[i].give_back) {
            reserve_jobs("w", "a", 1);
            s = settlement(got.first, JOBQ_OP_GIVE_BACK);
            x.settle = &s;
            x.settle_count = 1;
        }
        assert_ok(jobq__store_exchange(store, &x));
        if (x.exhausted && reserve_rest() != 0)
            fail_msg("row %d: called exhausted", (int)i);
        jobq__batch_free(&out);
        jobq__store_free(store);
        store = contract_open(driver->fresh_dsn());
    }
}

/* case B049: reserving again and again without settling gives distinct jobs. */
static void test_b049_never_the_same_twice(void **state)
{
    char id[8];

    (void)state;
    for (int i = 10; i < 30; i++) {
        snprintf(id, sizeof(id), "j%d", i);
        push_job(id, "q");
    }
    assert_int_equal(reserve_jobs("w", "q", 10), 10);
    expect_ids("j10 j11 j12 j13 j14 j15 j16 j17 j18 j19");
    assert_int_equal(reserve_jobs("w", "q", 20), 10);
    expect_ids("j20 j21 j22 j23 j24 j25 j26 j27 j28 j29");
    assert_int_equal(reserve_jobs("w", "q", 10), 0);
}

/* ---- delay ----------------------------------------------------------------------------------- */

/* rule B9: delay and at by the store's clock; past = now. */
static void test_b9_delay(void **state)
{
    jobq_push later = job_item("later", "q"), at = job_item("at", "q"),
              past = job_item("past", "q");
    jobq_maintenance m;

    (void)state;
    later.delay_ms = 60000;
    at.at_ms = store_now() + 30000;
    past.at_ms = 1;
    push_item(&later);
    push_item(&at);
    push_item(&past);
    assert_int_equal(find_job("later")->state, 1);
    assert_int_equal(reserve_jobs("w", "q", 9), 1);
    expect_ids("past");
    assert_true(llabs(find_job("past")->available_at_ms - store_now()) < 30000);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    m = maintain_all();
    assert_int_equal(m.handled, 0);
    assert_true(m.next_due_ms > m.now_ms && m.next_due_ms <= at.at_ms);
    pass_time(40000, 0);
    /* rule N1: due counts as ready before it is promoted. */
    assert_int_equal(find_job("at")->state, 0);
    assert_int_equal(count_jobs("q").ready, 1);
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(reserve_jobs("w", "q", 9), 1);
    expect_ids("at");
}

/* rule C8: promotion in bounded steps, in due order. */
static void test_c8_promotion_is_bounded(void **state)
{
    jobq_maintenance m = {.limit = 3, .loss_cap = 10, .take_back = true};
    char id[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "d%d", i);
        item = job_item(id, "q");
        item.delay_ms = 1000 * (8 - i);
        push_item(&item);
    }
    pass_time(20000, 0);
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 3);
    assert_true(m.more);
    assert_int_equal(reserve_jobs("w", "q", 9), 3);
    expect_ids("d7 d6 d5");
    m.limit = 100;
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 5);
    assert_false(m.more);
}

static void test_back_with_delay(void **state)
{
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_BACK);
    s.delay_ms = 5000;
    s.counters.failures = 1;
    s.counters.parked_since_ms = 12345;
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(find_job("a")->state, 1);
    assert_int_equal(reserve_jobs("w", "q", 1), 0);
    pass_time(6000, 0);
    maintain_all();
    reserve_one("w", "q", "a");
    assert_int_equal(got.first->counters.failures, 1);
    assert_int_equal(got.first->counters.parked_since_ms, 12345);
    assert_int_equal(got.first->counters.deliveries, 2);
}

static void test_next_due_of_exchange(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 1,
                       .out = &got};
    jobq_push item = job_item("a", "other");

    (void)state;
    /* Of all queues, or of those asked for alone. */
    item.delay_ms = 7000;
    push_item(&item);
    item = job_item("b", "q");
    item.delay_ms = 9000;
    push_item(&item);
    assert_ok(jobq__store_exchange(store, &x));
    assert_true(x.next_due_ms > x.now_ms && x.next_due_ms <= x.now_ms + 9000);
}

/* ---- settle ---------------------------------------------------------------------------------- */

/* rule C3: a token that is not current is refused and changes nothing. */
static void test_c3_stale_tokens(void **state)
{
    jobq_settlement stale[4], s;
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = stale, .settle_count = 4};
    jobq_record old;

    (void)state;
    push_job("a", "q");
    old = *reserve_one("w", "q", "a");
    old.id = TEXT("a");
    old.queue = TEXT("q");
    s = settlement(&old, JOBQ_OP_GIVE_BACK);
    assert_int_equal(settle_with("w", &s), 0);
    for (int pass = 0; pass < 2; pass++) { /* while it waits, and while another hand-out runs */
        for (int op = 0; op < 4; op++)
            stale[op] = settlement(&old, op);
        assert_ok(jobq__store_exchange(store, &x));
        for (int op = 0; op < 4; op++)
            assert_int_equal(stale[op].result, JOBQ_ELEASE);
        if (pass == 0)
            reserve_one("w", "q", "a");
    }
    assert_int_equal(find_job("a")->state, 2);
    assert_int_equal(settle_op("other", got.first, JOBQ_OP_DONE), JOBQ_ELEASE); /* not its worker */
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), JOBQ_ELEASE);
    assert_null(find_job("a"));
}

/* rule C3: nor may an old token reach a later job, whatever the store reuses. */
static void test_c3_token_of_a_gone_job(void **state)
{
    jobq_record old;

    (void)state;
    push_job("a", "q");
    old = *reserve_one("w", "q", "a");
    old.id = TEXT("a");
    old.queue = TEXT("q");
    assert_int_equal(settle_op("w", &old, JOBQ_OP_DONE), 0);
    push_job("a", "q");
    reserve_one("w", "q", "a");
    assert_int_equal(settle_op("w", &old, JOBQ_OP_DONE), JOBQ_ELEASE);
    assert_int_equal(find_job("a")->state, 2);
}

static void test_answers_per_settlement(void **state)
{
    jobq_settlement s[3];
    jobq_slice q = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .settle = s,
                       .settle_count = 3,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 5,
                       .out = &got};

    (void)state;
    push_job("a", "q");
    push_job("b", "q");
    push_job("c", "q");
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    s[0] = settlement(got.first, JOBQ_OP_DONE);
    s[1] = settlement(got.first, JOBQ_OP_DONE);
    s[2] = settlement(got.first->next, JOBQ_OP_DONE);
    assert_ok(jobq__store_exchange(store, &x)); /* settles and reserves in one */
    assert_int_equal(s[0].result, 0);
    assert_int_equal(s[1].result, JOBQ_ELEASE);
    assert_int_equal(s[2].result, 0);
    assert_true(x.settled);
    assert_int_equal(got.count, 3);
    assert_string_equal(got.last->id.p, "c");
}

/* case B048: an older attempt's late failure does not overwrite the final state. */
static void test_b048_late_failure(void **state)
{
    jobq_record second, third;
    jobq_settlement s;

    (void)state;
    begin_worker("w2", 5000);
    push_job("a", "q");
    second = *reserve_one("w2", "q", "a");
    pass_time(10000, 10000);
    maintain_all();
    third = *reserve_one("w3", "q", "a");
    third.id = second.id = TEXT("a");
    third.queue = second.queue = TEXT("q");
    s = settlement(&third, JOBQ_OP_DEAD);
    s.reason = 1;
    assert_int_equal(settle_with("w3", &s), 0);
    s = settlement(&second, JOBQ_OP_BACK);
    assert_int_equal(settle_with("w2", &s), JOBQ_ELEASE);
    assert_int_equal(find_job("a")->state, 4);
    assert_int_equal(reserve_jobs("w", "q", 1), 0);
}

/* rule F1, F5: what a dead job keeps. */
static void test_f1_dead_keeps_everything(void **state)
{
    const jobq_record *r;
    char entry[8];

    (void)state;
    push_job("a", "q");
    for (int i = 1; i <= 13; i++) {
        jobq_settlement s =
            settlement(reserve_one("w", "q", "a"), i < 13 ? JOBQ_OP_BACK : JOBQ_OP_DEAD);

        snprintf(entry, sizeof(entry), "h%d", i);
        s.history = TEXT(entry);
        if (i != 5 && i != 13)
            s.error = TEXT(entry);
        s.counters.failures = i;
        s.reason = 9;
        assert_int_equal(settle_with("w", &s), 0);
    }
    r = find_job("a");
    assert_int_equal(r->state, 4);
    assert_int_equal(r->reason, 9);
    assert_int_equal(r->counters.failures, 13);
    assert_int_equal(r->counters.deliveries, 13);
    assert_int_equal(r->fence, 13);
    assert_true(r->died_at_ms >= r->enqueued_at_ms);
    assert_int_equal(r->history_count, 10);
    assert_true(jobq__slice_equal(r->history[0], TEXT("h4")));
    assert_true(jobq__slice_equal(r->history[9], TEXT("h13")));
    assert_true(jobq__slice_equal(r->error, TEXT("h12"))); /* absent = keep what is there */
    assert_true(jobq__slice_equal(r->body, TEXT("body")));
    assert_int_equal(reserve_jobs("w", "q", 1), 0);
}

static void test_done_is_kept(void **state)
{
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    s.keep_ms = 5000;
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(find_job("a")->state, 3);
    assert_int_equal(count_jobs("q").ready + count_jobs("q").reserved, 0);
    pass_time(6000, 0);
    maintain_all();
    assert_null(find_job("a"));
}

/* case B062: counters beyond 2^31. */
static void test_b062_large_counters(void **state)
{
    int64_t big = (int64_t)1 << 40;
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    push_job("behind", "q");
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_BACK);
    s.counters = (jobq_counters){.failures = big,
                                 .crashes = big + 1,
                                 .releases = big + 2,
                                 .losses = big + 3,
                                 .exceptions = big + 4,
                                 .parks = big + 5,
                                 .parked_since_ms = big + 6};
    pass_time(5, 0);
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    expect_ids("behind a");
    assert_memory_equal(&got.last->counters.failures, &s.counters.failures,
                        sizeof(s.counters) - sizeof(int64_t));
    assert_int_equal(got.last->counters.deliveries, 2);
}

/* ---- leases ---------------------------------------------------------------------------------- */

static int64_t renew(const char *worker, int64_t lease_ms, const jobq_lease_token *running,
                     size_t n, int64_t *held)
{
    jobq_renewal r = {
        .worker = TEXT(worker), .lease_ms = lease_ms, .running = running, .running_count = n};
    int rc = jobq__store_renew(store, &r);

    *held = r.held;
    return rc;
}

/* rule C5: listed as running = crash, the rest losses; they come back in their place, marked. */
static void test_c5_crash_and_loss(void **state)
{
    jobq_lease_token running;
    int64_t held;

    (void)state;
    begin_worker("w", 10000);
    push_job("a", "q");
    push_job("b", "q");
    reserve_jobs("w", "q", 2);
    push_job("c", "q");
    running = got.first->token;
    assert_ok(renew("w", 10000, &running, 1, &held));
    assert_int_equal(held, 2);
    assert_int_equal(maintain_all().handled, 0);
    pass_time(0, 9000);
    assert_int_equal(maintain_all().handled, 0);
    assert_int_equal(count_jobs("q").reserved, 2);
    pass_time(0, 2000);
    assert_int_equal(count_jobs("q").reserved, 0); /* rule N1: an expired lease counts as ready */
    assert_int_equal(count_jobs("q").ready, 3);
    assert_int_equal(maintain_all().handled, 2);
    assert_int_equal(reserve_jobs("w2", "q", 3), 3);
    expect_ids("a b c");
    assert_true(got.first->taken_back);
    assert_int_equal(got.first->counters.crashes, 1);
    assert_int_equal(got.first->counters.losses, 0);
    assert_int_equal(got.first->counters.deliveries, 2);
    assert_true(got.first->next->taken_back);
    assert_int_equal(got.first->next->counters.crashes, 0);
    assert_int_equal(got.first->next->counters.losses, 1);
    assert_false(got.last->taken_back);
    assert_code(renew("w", 10000, NULL, 0, &held), JOBQ_ELEASE);
    assert_ok(renew("w", 10000, NULL, 0, &held));
    assert_int_equal(held, 0);
}

/* case B037, rule F5: which worker lost an attempt stays known, whoever judges the job. */
static void test_b037_lost_with_its_worker(void **state)
{
    jobq_maintenance m = {.limit = 100,
                          .loss_cap = 10,
                          .take_back = true,
                          .lost_head = TEXT("lost "),
                          .lost_tail = TEXT(" at night")};
    jobq_lease_token running;
    int64_t held;

    (void)state;
    begin_worker("w", 10000);
    push_job("a", "q");
    push_job("b", "q");
    reserve_jobs("w", "q", 2);
    running = got.first->token;
    assert_ok(renew("w", 10000, &running, 1, &held));
    pass_time(0, 11000);
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 2);
    assert_int_equal(find_job("a")->history_count, 1);
    assert_true(jobq__slice_equal(find_job("a")->history[0], TEXT("lost \001w at night")));
    assert_int_equal(find_job("b")->history_count, 0);
    reserve_one("w2", "q", "a");
    assert_int_equal(settle_op("w2", got.first, JOBQ_OP_DONE), 0);
    assert_null(find_job("a"));
}

/* rule C12: wall-clock steps change no lease. */
static void test_c12_wall_clock_steps(void **state)
{
    (void)state;
    if (!contract_has(JOBQ_FEATURE_HOST_CLOCK))
        skip_because("a server has one clock, and only the host's boot clock is steadier");
    begin_worker("w", 10000);
    push_job("a", "q");
    reserve_one("w", "q", "a");
    pass_time(86400000, 0);
    assert_int_equal(maintain_all().handled, 0);
    assert_int_equal(find_job("a")->state, 2);
    assert_true(jobq__slice_equal(find_job("a")->reserved_by, TEXT("w")));
    pass_time(-86400000, 0);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
}

/* rule C10: judged by the length its holder asked for. */
static void test_c10_length_of_the_holder(void **state)
{
    (void)state;
    begin_worker("long", 100000);
    begin_worker("short", 1000);
    push_job("a", "q");
    push_job("b", "q");
    reserve_one("long", "q", "a");
    reserve_one("short", "q", "b");
    pass_time(0, 5000);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(find_job("a")->state, 2);
    assert_int_equal(find_job("b")->state, 0);
}

static void test_losses_in_a_row_are_a_crash(void **state)
{
    jobq_maintenance m = {.limit = 100, .loss_cap = 3, .take_back = true};

    (void)state;
    push_job("a", "q");
    for (int i = 1; i <= 3; i++) {
        begin_worker("w", 1000);
        reserve_one("w", "q", "a");
        assert_int_equal(got.first->counters.losses, i - 1);
        pass_time(0, 2000);
        assert_ok(jobq__store_maintain(store, &m));
        assert_int_equal(m.handled, 1);
        jobq__store_leave(store, TEXT("w"));
    }
    reserve_one("w2", "q", "a");
    assert_int_equal(got.first->counters.losses, 0);
    assert_int_equal(got.first->counters.crashes, 1);
}

/* Settling after the lease lapsed but before anybody took the job is still good; renewing too. */
static void test_lapsed_but_not_taken(void **state)
{
    int64_t held;

    (void)state;
    begin_worker("w", 1000);
    push_job("a", "q");
    push_job("b", "q");
    reserve_jobs("w", "q", 2);
    pass_time(0, 5000);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_ok(renew("w", 1000, NULL, 0, &held));
    assert_int_equal(held, 1);
    assert_int_equal(maintain_all().handled, 0);
    assert_int_equal(find_job("b")->state, 2);
}

static void test_grace_leaves_workers_alone(void **state)
{
    jobq_maintenance m = {.limit = 100, .loss_cap = 10, .take_back = false};

    (void)state;
    begin_worker("w", 1000);
    push_job("a", "q");
    reserve_one("w", "q", "a");
    pass_time(0, 5000);
    assert_ok(jobq__store_maintain(store, &m));
    assert_int_equal(m.handled, 0);
    assert_int_equal(maintain_all().handled, 1);
}

/* Taken back ones are limited on their own and keep their mark when they are given back. */
static void test_want_taken_back(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w2"),
                       .lease_ms = 30000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 3,
                       .want_taken_back = 1,
                       .out = &got};

    (void)state;
    begin_worker("w", 1000);
    push_job("a", "q");
    push_job("b", "q");
    reserve_jobs("w", "q", 2);
    push_job("c", "q");
    push_job("d", "q");
    pass_time(0, 2000);
    maintain_all();
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("a c d");
    assert_int_equal(settle_op("w2", got.first, JOBQ_OP_GIVE_BACK), 0);
    x.want_taken_back = 0;
    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    assert_int_equal(got.count, 0);
    x.want_taken_back = 9;
    assert_ok(jobq__store_exchange(store, &x));
    expect_ids("a b");
    assert_true(got.first->taken_back);
}

static void test_held_and_leave(void **state)
{
    jobq_batch held = {0};

    (void)state;
    begin_worker("w", 10000);
    push_job("a", "q");
    push_job("b", "q2");
    reserve_one("w", "q", "a");
    assert_ok(jobq__store_held(store, TEXT("w"), &held));
    assert_int_equal(held.count, 1);
    assert_true(jobq__slice_equal(held.first->id, TEXT("a")));
    assert_true(jobq__slice_equal(held.first->queue, TEXT("q")));
    assert_int_equal(settle_op("w", held.first, JOBQ_OP_GIVE_BACK), 0); /* its tokens settle */
    reserve_one("w", "q2", "b");
    assert_ok(jobq__store_leave(store, TEXT("w"))); /* it holds something: stays */
    jobq__batch_reset(&held);
    assert_ok(jobq__store_workers(store, &held));
    assert_non_null(held.first_worker);
    assert_int_equal(held.first_worker->held, 1);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_ok(jobq__store_leave(store, TEXT("w")));
    jobq__batch_reset(&held);
    assert_ok(jobq__store_workers(store, &held));
    assert_null(held.first_worker);
    assert_ok(jobq__store_leave(store, TEXT("nobody")));
    assert_ok(jobq__store_held(store, TEXT("nobody"), &held));
    assert_int_equal(held.count, 0);
    jobq__batch_free(&held);
}

/* rule N4. */
static void test_n4_worker_record(void **state)
{
    jobq_batch out = {0};
    const jobq_worker_record *w;

    (void)state;
    begin_worker("host:1:abc", 10000);
    assert_ok(jobq__store_workers(store, &out));
    w = out.first_worker;
    assert_non_null(w);
    assert_true(jobq__slice_equal(w->id, TEXT("host:1:abc")));
    assert_true(jobq__slice_equal(w->names, TEXT("test@1\n")));
    assert_true(jobq__slice_equal(w->queues, TEXT("q\n")));
    assert_int_equal(w->lease_ms, 10000);
    assert_true(w->alive_until_ms > store_now());
    pass_time(0, 20000);
    jobq__batch_reset(&out);
    assert_ok(jobq__store_workers(store, &out));
    assert_null(out.first_worker);
    jobq__batch_free(&out);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* case B138, rule N1: the same numbers on every driver. */
static void test_b138_counts(void **state)
{
    jobq_counts c;
    char id[8];

    (void)state;
    for (int i = 0; i < 15; i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "j%02d", i);
        item = job_item(id, "q");
        item.delay_ms = i >= 11 ? 60000 : 0;
        push_item(&item);
    }
    begin_worker("gone", 1000);
    for (int i = 0; i < 5; i++)
        settle_op("w", reserve_one("w", "q", NULL), JOBQ_OP_DEAD);
    reserve_one("gone", "q", NULL);
    pass_time(0, 2000);
    begin_worker("w", 60000);
    reserve_jobs("w", "q", 2);
    c = count_jobs("q");
    assert_int_equal(c.ready, 3 + 1);
    assert_int_equal(c.delayed, 4);
    assert_int_equal(c.reserved, 2);
    assert_int_equal(c.dead, 5);
    assert_true(c.oldest_ready_at_ms > 0 && c.oldest_ready_at_ms <= c.now_ms);
    c = count_jobs("never used");
    assert_int_equal(c.ready + c.delayed + c.reserved + c.dead + c.oldest_ready_at_ms, 0);
}

static size_t walk(jobq_listing l, char *text, size_t size)
{
    static jobq_batch page;
    char cursor[128];
    size_t pages = 0, used = 0;

    do {
        jobq__batch_reset(&page);
        l.out = &page;
        assert_ok(jobq__store_list(store, &l));
        for (const jobq_record *r = page.first; r; r = r->next)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? " " : "",
                                     (int)r->id.n, (const char *)r->id.p);
        pages++;
        assert_true(!page.first == !l.last.p);
        if (l.next.p) {
            assert_true(l.next.n == l.last.n && memcmp(l.next.p, l.last.p, l.last.n) == 0);
            memcpy(cursor, l.next.p, l.next.n);
            l.after = jobq__slice(cursor, l.next.n);
        }
    } while (l.next.p && pages < 50);
    return pages;
}

/* The last page has a place behind its last job, too: what comes there later. */
static void check_last(jobq_listing l)
{
    jobq_batch first = {0}, second = {0};
    jobq_push item = job_item("d9", "q");

    l.out = &first;
    assert_ok(jobq__store_list(store, &l));
    item.delay_ms = 200000;
    push_item(&item);
    l.after = l.last;
    l.out = &second;
    assert_ok(jobq__store_list(store, &l));
    assert_true(second.first && !second.first->next);
    assert_memory_equal(second.first->id.p, "d9", 2);
    jobq__batch_free(&first);
    jobq__batch_free(&second);
}

static void test_lists_with_cursors(void **state)
{
    jobq_listing l = {.queue = TEXT("q"), .limit = 2};
    char text[512] = "", id[8];

    (void)state;
    for (int i = 0; i < 5; i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "r%d", i);
        item = job_item(id, "q");
        item.priority = (uint8_t)(i % 2);
        push_item(&item);
        snprintf(id, sizeof(id), "d%d", i);
        item = job_item(id, "q");
        item.delay_ms = 100000 - i * 1000;
        push_item(&item);
    }
    assert_int_equal(walk(l, text, sizeof(text)), 3);
    assert_string_equal(text, "r1 r3 r0 r2 r4");
    l.state = 1;
    text[0] = '\0';
    walk(l, text, sizeof(text));
    assert_string_equal(text, "d4 d3 d2 d1 d0");
    l.limit = 5;
    assert_int_equal(walk(l, text, sizeof(text)), 1); /* exactly full: no further page */
    check_last(l);
    begin_worker("w", 60000);
    reserve_jobs("w", "q", 3);
    l.state = 2;
    text[0] = '\0';
    walk(l, text, sizeof(text));
    assert_string_equal(text, "r0 r1 r3");
    l.after = TEXT("nonsense");
    assert_code(jobq__store_list(store, &l), JOBQ_EINVAL);
    l.after = jobq__slice(NULL, 0);
    l.queue = TEXT("unknown");
    text[0] = '\0';
    walk(l, text, sizeof(text));
    assert_string_equal(text, "");
}

static void test_list_of_the_dead(void **state)
{
    static const struct {
        const char *id, *queue, *name;
        uint8_t reason;
    } rows[] = {{"a", "q", "n1", 1}, {"b", "q", "n2", 2}, {"c", "r", "n1", 1}, {"d", "q", "n1", 3}};
    jobq_listing l = {.state = 4, .limit = 1};
    char text[128] = "";

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        jobq_push item = job_item(rows[i].id, rows[i].queue);
        jobq_settlement s;

        item.name = TEXT(rows[i].name);
        push_item(&item);
        s = settlement(reserve_one("w", rows[i].queue, rows[i].id), JOBQ_OP_DEAD);
        s.reason = rows[i].reason;
        settle_with("w", &s);
        pass_time(1000, 0);
    }
    walk(l, text, sizeof(text));
    assert_string_equal(text, "d c b a"); /* newest first, of all queues */
    l.queue = TEXT("q");
    walk(l, text, sizeof(text));
    assert_string_equal(text, "d b a");
    l.name = TEXT("n1");
    walk(l, text, sizeof(text));
    assert_string_equal(text, "d a");
    l.reason = 3;
    walk(l, text, sizeof(text));
    assert_string_equal(text, "d");
    l = (jobq_listing){.state = 4, .limit = 10, .older_than_ms = 2500};
    walk(l, text, sizeof(text));
    assert_string_equal(text, "b a");
}

static void test_queues_sorted(void **state)
{
    jobq_batch out = {0};

    (void)state;
    push_job("1", "zeta");
    push_job("2", "Alpha");
    push_job("3", "alpha");
    assert_ok(jobq__store_queues(store, &out));
    assert_int_equal(out.count, 3);
    assert_string_equal(out.first->queue.p, "Alpha");
    assert_string_equal(out.first->next->queue.p, "alpha");
    assert_string_equal(out.last->queue.p, "zeta");
    jobq__batch_free(&out);
}

/* rule F4: in place, counters fresh, the fence goes on. */
static void test_f4_retry_and_forget(void **state)
{
    const jobq_record *r;
    int64_t enqueued;

    (void)state;
    push_job("a", "q");
    push_job("waiting", "q");
    jobq_settlement s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DEAD);
    s.counters.failures = 3;
    s.reason = 1;
    s.history = TEXT("entry");
    settle_with("w", &s);
    enqueued = find_job("a")->enqueued_at_ms;
    pass_time(60000, 60000);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "waiting", false), JOBQ_ENOTFOUND);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "waiting", false), JOBQ_ENOTFOUND);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "unknown", false), JOBQ_ENOTFOUND);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "a", true), 0); /* dry run */
    assert_int_equal(find_job("a")->state, 4);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "a", false), 0);
    r = find_job("a");
    assert_int_equal(r->state, 0);
    assert_int_equal(r->counters.failures, 0);
    assert_int_equal(r->counters.deliveries, 0);
    assert_int_equal(r->fence, 1);
    assert_int_equal(r->reason, 0);
    assert_int_equal(r->died_at_ms, 0);
    assert_int_equal(r->enqueued_at_ms, enqueued);
    assert_true(r->base_at_ms >= enqueued + 60000);
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    expect_ids("waiting a");
    assert_int_equal(got.last->fence, 2);
    settle_op("w", got.last, JOBQ_OP_DEAD);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "a", false), 0);
    assert_null(find_job("a"));
    push_job("a", "q"); /* the id is free again, without the old one's history */
    assert_int_equal(find_job("a")->history_count, 0);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void test_wait(void **state)
{
    int fds[2];
    jobq_slice q = TEXT("q");
    jobq_wait w = {.queues = &q, .queue_count = 1, .timeout_ms = 20, .poll_ms = 10, .wake_fd = -1};
    jobq_push item = job_item("later", "q");

    (void)state;
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    push_job("else", "another");
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    assert_int_equal(jobq__fd_pipe(fds), 0);
    w.wake_fd = fds[0];
    w.timeout_ms = 60000;
    jobq__fd_ring(fds[1]);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_WOKEN);
    jobq__fd_drain(fds[0]);
    item.delay_ms = 30; /* its own deadline is the delayed job's time */
    push_item(&item);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    close(fds[0]);
    close(fds[1]);
}

static void test_now(void **state)
{
    int64_t now_ms = 0;

    (void)state;
    assert_ok(jobq__store_now(store, &now_ms));
    assert_true(llabs(now_ms - jobq__clock_wall_ms()) < 60000);
}

/* ---- without memory -------------------------------------------------------------------------- */

static int settle_softly(const char *worker, jobq_settlement *s)
{
    jobq_exchange x = {.worker = TEXT(worker), .lease_ms = 30000, .settle = s, .settle_count = 1};
    int rc = jobq__store_exchange(store, &x);

    return rc ? rc : s->result;
}

/* One of everything; the first error, 0 when all went well. */
static int one_of_everything(const char *id, const char *queue)
{
    static jobq_batch out, look;
    jobq_slice q = TEXT(queue);
    jobq_push item = job_item(id, queue);
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 30000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = 1,
                       .out = &out};
    jobq_listing l = {.queue = q, .limit = 5, .out = &look};
    jobq_settlement s;
    int rc = jobq__store_push(store, &item, 1);

    jobq__batch_free(&out);
    jobq__batch_free(&look);
    rc = rc ? rc : jobq__store_exchange(store, &x);
    if (rc || !out.first)
        return rc;
    s = settlement(out.first, JOBQ_OP_BACK);
    s.error = s.history = TEXT("text");
    rc = settle_softly("w", &s);
    rc = rc ? rc : jobq__store_find(store, (jobq_slice){0}, item.id, &look);
    return rc ? rc : jobq__store_list(store, &l);
}

/* Each allocation fails once: an error, and afterwards the job stands in one state or was
 * never stored. On a server the store is the same all the time and the connection new; there the
 * memory may also end between a command and its answer. */
static void test_short_memory(void **state)
{
    const bool host = contract_has(JOBQ_FEATURE_HOST_CLOCK);
    const char *dsn = host ? NULL : driver->fresh_dsn();
    int rc = -1;

    (void)state;
    for (int64_t n = 1; rc != 0 && n < 4000; n++) {
        char id[32], queue[32];
        jobq_counts c;

        jobq__store_free(store);
        store = contract_open(host ? driver->fresh_dsn() : dsn);
        snprintf(id, sizeof(id), "a%lld", (long long)n);
        snprintf(queue, sizeof(queue), "q%lld", (long long)n);
        jobq__alloc_fail_at(n, 0);
        rc = one_of_everything(id, queue);
        jobq__alloc_fail_at(0, 0);
        if (rc != 0 && (host || rc != JOBQ_EUNKNOWN))
            assert_int_equal(rc, JOBQ_ENOMEM);
        c = count_jobs(queue);
        assert_int_equal(c.ready + c.reserved, find_job(id) ? 1 : 0);
    }
    assert_int_equal(rc, 0);
}

static void test_features(void **state)
{
    (void)state;
    assert_int_equal(jobq__store_driver(store)->features, driver->features);
}

/* ---- the suite ------------------------------------------------------------------------------- */

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static const struct CMUnitTest shared[] = {
    ROW(test_features),
    ROW(test_push_keeps_every_field),
    ROW(test_push_absent_is_not_empty),
    ROW(test_b5_duplicate_id_in_any_state),
    ROW(test_b6_unique_key),
    ROW(test_b6_unique_key_and_death),
    ROW(test_b3_push_many_judged_singly),
    ROW(test_push_larger_than_a_batch),
    ROW(test_b3_refused_in_a_large_call),
    ROW(test_b3_most_of_a_large_call),
    ROW(test_c1_lines_of_a_large_call),
    ROW(test_c1_due_after_a_large_call),
    ROW(test_b6_replaced_in_a_large_call),
    ROW(test_push_refuses_bad_arguments),
    ROW(test_b141_names_do_not_collide),
    ROW(test_a5_large_and_binary_bodies),
    ROW(test_c1_order),
    ROW(test_c1_queues_in_order),
    ROW(test_c1_give_back_keeps_place),
    ROW(test_reserve_stops_at_bytes),
    ROW(test_exhausted_is_never_wrong),
    ROW(test_b049_never_the_same_twice),
    ROW(test_b9_delay),
    ROW(test_c8_promotion_is_bounded),
    ROW(test_back_with_delay),
    ROW(test_next_due_of_exchange),
    ROW(test_c3_stale_tokens),
    ROW(test_c3_token_of_a_gone_job),
    ROW(test_answers_per_settlement),
    ROW(test_c3_stale_amid_neighbours),
    ROW(test_c3_twice_amid_neighbours),
    ROW(test_b048_late_failure),
    ROW(test_f1_dead_keeps_everything),
    ROW(test_done_is_kept),
    ROW(test_b062_large_counters),
    ROW(test_c5_crash_and_loss),
    ROW(test_b037_lost_with_its_worker),
    ROW(test_c12_wall_clock_steps),
    ROW(test_c10_length_of_the_holder),
    ROW(test_losses_in_a_row_are_a_crash),
    ROW(test_lapsed_but_not_taken),
    ROW(test_grace_leaves_workers_alone),
    ROW(test_want_taken_back),
    ROW(test_held_and_leave),
    ROW(test_n4_worker_record),
    ROW(test_b138_counts),
    ROW(test_lists_with_cursors),
    ROW(test_list_of_the_dead),
    ROW(test_queues_sorted),
    ROW(test_f4_retry_and_forget),
    ROW(test_l1_pause_and_resume),
    ROW(test_l1_paused_queue_takes_pushes),
    ROW(test_l2_generation),
    ROW(test_control_value_is_told),
    ROW(test_l3_cancel_what_waits),
    ROW(test_f4_cancelled_and_kept),
    ROW(test_l3_cancel_what_runs),
    ROW(test_l3_wish_is_kept),
    ROW(test_clear),
    ROW(test_f6_follow),
    ROW(test_f6_hidden_queue),
    ROW(test_b4_capacity),
    ROW(test_b4_room_for_a_follower),
    ROW(test_b4_capacity_of_a_batch),
    ROW(test_b4_only_if_none),
    ROW(test_b6_replace_what_waits),
    ROW(test_b6_replaced_is_not_taken_back),
    ROW(test_b6_max_wait),
    ROW(test_b6_one_follower),
    ROW(test_b6_follower_takes_over),
    ROW(test_b6_follower_can_go),
    ROW(test_b6_key_given_up),
    ROW(test_f4_retention),
    ROW(test_n7_outcome),
    ROW(test_n7_token_stays),
    ROW(test_b5_kept_bare),
    ROW(test_n1_minutes),
    ROW(test_b7_guard),
    ROW(test_o1_effect),
    ROW(test_n5_audit),
    ROW(test_n5_audit_after_a_loss),
    ROW(test_n5_audit_of_a_hidden_queue),
    ROW(test_n5_examine),
    ROW(test_find_with_a_queue),
    ROW(test_wait),
    ROW(test_now),
    ROW(test_c9_wait_hears_signals),
    ROW(test_c7_wakes),
    ROW(test_n7_wait_for_a_job),
    ROW(test_n7_woken_by_its_end),
    ROW(test_c7_idle),
    ROW(test_k4_fork),
    ROW(test_schema_race),
    ROW(test_b3_stored_together),
    ROW(test_c3_crowd),
    ROW(test_short_memory),
    ROW(test_model),
    ROW(test_nothing_is_left),
};

enum { SHARED = sizeof(shared) / sizeof(shared[0]), OWN = 96 };

int contract_main(const contract_driver *which, const struct CMUnitTest *own, size_t own_count)
{
    struct CMUnitTest all[SHARED + OWN];

    driver = which;
    cmocka_set_test_filter(getenv("JOBQUEUE_TEST_ONLY")); /* a pattern: test_c1_* */
    memcpy(all, shared, sizeof(shared));
    for (size_t i = 0; i < own_count && i < OWN; i++) {
        all[SHARED + i] = own[i];
        all[SHARED + i].setup_func = set_up;
        all[SHARED + i].teardown_func = tear_down;
    }
    return _cmocka_run_group_tests(which->name, all, SHARED + own_count, NULL, NULL);
}
