/* SPDX-License-Identifier: MIT
 *
 * Large calls, which drivers send in other ways than small ones: what is refused in the middle of
 * one changes nothing for its neighbours.
 */
#include "contract/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 1500 };

typedef struct {
    char id[24], body[48], key[24];
} texts;

/* ---- push ------------------------------------------------------------------------------------ */

/* In the middle of the call, one after the other, at both ends: what is refused, and why. */
enum { STORED_BEFORE = 100, TWICE = 101, HELD = 300, KEY_TWICE = 520, LAST = MANY - 1 };

static int expected_result(size_t i)
{
    switch (i) {
    case 0:
    case STORED_BEFORE:
    case TWICE:
    case LAST:
        return JOBQ_EEXISTS;
    case HELD:
    case KEY_TWICE:
        return contract_has(JOBQ_FEATURE_UNIQUE) ? 1 : 0;
    default:
        return 0;
    }
}

static const char *expected_holder(size_t i)
{
    if (expected_result(i) != 1)
        return "";
    return i == HELD ? "holder" : "job-0519";
}

/* Single ones and blocks, each half of which waits for another moment. */
static int64_t delay_of(size_t i)
{
    return i % 7 == 3 || i / 20 % 5 == 1 ? i / 10 % 2 ? 900000 : 600000 : 0;
}

static void fill_item(jobq_push *item, texts *t, size_t i)
{
    snprintf(t->id, sizeof(t->id), "job-%04zu", i == TWICE ? 50 : i == LAST ? LAST - 1 : i);
    snprintf(t->body, sizeof(t->body), "%zu%.*s", i, (int)(i % 40),
             "\xff{}?'\"\\ä%s\n            ....");
    *item = job_item(t->id, "q");
    item->body = TEXT(t->body);
    item->version = 1 + (int32_t)i;
    item->delay_ms = delay_of(i);
    if (i % 3)
        item->header = jobq__slice("\1m", i % 3 == 1 ? 2 : 0); /* else absent */
    if (!contract_has(JOBQ_FEATURE_UNIQUE) || (i % 5 && i != KEY_TWICE - 1))
        return;
    snprintf(t->key, sizeof(t->key), "key-%zu", i == KEY_TWICE - 1 ? KEY_TWICE : i);
    item->unique = TEXT(t->key);
}

static void expect_stored(const jobq_push *item, size_t i)
{
    const jobq_record *r = find_job(item->id.p);

    assert_non_null(r);
    assert_int_equal(r->state, delay_of(i) > 0);
    assert_int_equal(r->version, item->version);
    assert_true(jobq__slice_equal(r->body, item->body));
    assert_true(jobq__slice_equal(r->header, item->header));
    assert_int_equal(r->header.p != NULL, item->header.p != NULL);
    assert_true(jobq__slice_equal(r->unique, item->unique));
}

static void push_before(void)
{
    jobq_push holder = job_item("holder", "q");

    push_job("job-0000", "other");
    push_job("job-0100", "other");
    if (contract_has(JOBQ_FEATURE_UNIQUE))
        holder.unique = TEXT("key-300");
    assert_int_equal(push_item(&holder), 0);
}

/* rule B3: each item of a large call is judged singly, whatever its neighbours are; what is
 * accepted keeps its fields and stands in the order of the call (rule C1). */
void test_b3_refused_in_a_large_call(void **state)
{
    jobq_push *items = calloc(MANY, sizeof(*items));
    texts *t = calloc(MANY, sizeof(*t));
    size_t ready = 1, delayed = 0, later = 0;

    (void)state;
    push_before();
    for (size_t i = 0; i < MANY; i++)
        fill_item(&items[i], &t[i], i);
    assert_ok(jobq__store_push(store, items, MANY));
    for (size_t i = 0; i < MANY; i++) {
        if (items[i].result != expected_result(i))
            fail_msg("item %zu: %d, expected %d", i, items[i].result, expected_result(i));
        assert_string_equal(items[i].holder, expected_holder(i));
        if (items[i].result)
            continue;
        expect_stored(&items[i], i);
        delayed += delay_of(i) > 0;
        later += delay_of(i) == 900000;
        ready += delay_of(i) == 0;
    }
    assert_int_equal(count_jobs("q").ready, ready);
    assert_int_equal(count_jobs("q").delayed, delayed);
    assert_int_equal(reserve_jobs("w", "q", 60), 60);
    for (const jobq_record *r = got.first; r && r->next; r = r->next)
        assert_true(r == got.first || memcmp(r->id.p, r->next->id.p, r->id.n) < 0);
    pass_time(700000, 0);
    maintain_all();
    assert_int_equal(count_jobs("q").delayed, later);
    free(items);
    free(t);
}

/* Blocks of one to nine neighbours go to the same line; those of "full" end at its limit. */
enum { FULL_AT = 70 };

static const char *queue_of(size_t i)
{
    static const char *const queues[] = {"q", "full", "p"};

    return queues[i * i / 9 % 3];
}

static int priority_of(size_t i)
{
    return i / 50 % 2 ? 7 : 2;
}

/* Expected of a queue: those of the higher priority first, both in the order of the call. */
static void expect_line(const char *queue, size_t most)
{
    const jobq_record *r = NULL;
    char id[24];

    for (int priority = 7; priority >= 2; priority -= 5)
        for (size_t i = 0, place = 0; i < MANY; i++) {
            if (strcmp(queue_of(i), queue) != 0 || place++ >= most || priority_of(i) != priority)
                continue;
            if (!r && reserve_jobs("w", queue, MANY))
                r = got.first;
            snprintf(id, sizeof(id), "job-%04zu", i);
            assert_non_null(r);
            assert_memory_equal(r->id.p, id, strlen(id));
            r = r->next;
        }
    assert_null(r);
    assert_int_equal(reserve_jobs("w", queue, MANY), 0);
}

static void push_into_lines(int64_t delay_ms)
{
    jobq_limit limit = {.queue = TEXT("full"), .value = FULL_AT};
    jobq_push *items = calloc(MANY, sizeof(*items));
    texts *t = calloc(MANY, sizeof(*t));
    size_t in_full = 0;

    assert_ok(jobq__store_capacity(store, &limit));
    for (size_t i = 0; i < MANY; i++) {
        snprintf(t[i].id, sizeof(t[i].id), "job-%04zu", i);
        items[i] = job_item(t[i].id, queue_of(i));
        items[i].priority = (uint8_t)priority_of(i);
        items[i].delay_ms = delay_ms;
    }
    assert_ok(jobq__store_push(store, items, MANY));
    for (size_t i = 0; i < MANY; i++) {
        const bool full = strcmp(queue_of(i), "full") == 0 && in_full++ >= FULL_AT;

        assert_int_equal(items[i].result, full ? JOBQ_EFULL : 0);
    }
    free(items);
    free(t);
}

static void expect_lines(void)
{
    expect_line("q", MANY);
    expect_line("p", MANY);
    expect_line("full", FULL_AT);
}

/* rules B4, C1: the jobs of a large call go to several lines in turn, and one of these becomes full
 * on the way; each line has its own in order, and nobody stands in two or none. */
void test_c1_lines_of_a_large_call(void **state)
{
    (void)state;
    need_feature(JOBQ_FEATURE_PRIORITY, "priorities");
    push_into_lines(0);
    expect_lines();
}

/* rules B4, C1: the same when they come from a delay. */
void test_c1_due_after_a_large_call(void **state)
{
    (void)state;
    need_feature(JOBQ_FEATURE_PRIORITY, "priorities");
    push_into_lines(600000);
    assert_int_equal(reserve_jobs("w", "q", 1), 0);
    pass_time(700000, 0);
    maintain_all();
    maintain_all(); /* one takes up to a thousand */
    expect_lines();
}

/* rule B6: a job of the same call is replaced as any other that waits, and stands in its line
 * once; the neighbours of before and behind it stay where they are. */
void test_b6_replaced_in_a_large_call(void **state)
{
    jobq_push *items = calloc(MANY, sizeof(*items));
    texts *t = calloc(MANY, sizeof(*t));
    size_t n, stood = 0;

    (void)state;
    need_feature(JOBQ_FEATURE_UNIQUE, "unique keys");
    for (size_t i = 0; i < MANY; i++) {
        snprintf(t[i].id, sizeof(t[i].id), "job-%04zu", i);
        snprintf(t[i].body, sizeof(t[i].body), "body of %zu", i);
        items[i] = job_item(t[i].id, "q");
        items[i].body = TEXT(t[i].body);
        if (i % 100 == 3 || i % 100 == 60) {
            snprintf(t[i].key, sizeof(t[i].key), "key-%zu", i / 100);
            items[i].unique = TEXT(t[i].key);
            items[i].on_duplicate = JOBQ_DUPLICATE_REPLACE;
        }
    }
    assert_ok(jobq__store_push(store, items, MANY));
    for (size_t i = 0; i < MANY; i++) {
        const bool replaces = i % 100 == 60;

        assert_int_equal(items[i].result, replaces ? 2 : 0);
        assert_string_equal(items[i].holder, replaces ? t[i - 57].id : "");
    }
    assert_int_equal(count_jobs("q").ready, MANY - MANY / 100);
    for (size_t i = 3; i < MANY; i += 100)
        assert_true(jobq__slice_equal(find_job(t[i].id)->body, items[i + 57].body));
    while (stood < MANY && (n = reserve_jobs("w", "q", MANY)) > 0)
        stood += n;
    assert_int_equal(stood, MANY - MANY / 100);
    free(items);
    free(t);
}

/* rules B3, B7: a guard sees the jobs before its own of the same call as they are, a delayed one as
 * delayed. */
void expect_guard_amid_a_call(const char *view)
{
    char text[200];
    jobq_statement guard = {0};
    jobq_push items[4] = {job_item("ready", "q"), job_item("guarded", "q"),
                          job_item("delayed", "q"), job_item("refused", "q")};

    snprintf(text, sizeof(text), "SELECT NOT EXISTS(SELECT 1 FROM %s WHERE state='delayed')", view);
    guard.text = TEXT(text);
    items[2].delay_ms = 600000;
    items[1].guard = items[3].guard = &guard;
    assert_ok(jobq__store_push(store, items, 4));
    for (int i = 0; i < 3; i++)
        assert_int_equal(items[i].result, 0);
    assert_int_equal(items[3].result, JOBQ_EGUARD);
}

/* rule B3: nearly all of a large call are refused, and again all of it. */
void test_b3_most_of_a_large_call(void **state)
{
    jobq_push *items = calloc(MANY, sizeof(*items));
    texts *t = calloc(MANY, sizeof(*t));
    size_t stored = 0;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(t[i].id, sizeof(t[i].id), "job-%zu", i % 97 ? i / 2 : i + MANY);
        items[i] = job_item(t[i].id, "q");
    }
    for (int pass = 0; pass < 2; pass++) {
        assert_ok(jobq__store_push(store, items, MANY));
        for (size_t i = 0; i < MANY; i++)
            if (pass || items[i].result)
                assert_int_equal(items[i].result, JOBQ_EEXISTS);
            else
                stored++;
        assert_int_equal(count_jobs("q").ready, stored);
    }
    assert_in_range(stored, MANY / 2, MANY / 2 + MANY / 97 + 1);
    free(items);
    free(t);
}

/* ---- settle ---------------------------------------------------------------------------------- */

enum { DENSE = 400, GIVEN = 3 };

static void push_dense(void)
{
    jobq_push *items = calloc(DENSE, sizeof(*items));
    texts *t = calloc(DENSE, sizeof(*t));

    for (size_t i = 0; i < DENSE; i++) {
        snprintf(t[i].id, sizeof(t[i].id), "job-%04zu", i);
        items[i] = job_item(t[i].id, "q");
    }
    assert_ok(jobq__store_push(store, items, DENSE));
    free(items);
    free(t);
}

static void settle_many(const char *worker, jobq_settlement *s, size_t n)
{
    jobq_exchange x = {.worker = TEXT(worker), .lease_ms = 30000, .settle = s, .settle_count = n};

    assert_ok(jobq__store_exchange(store, &x));
    assert_true(x.settled);
}

/* Takes all of them; `s`: what ends them as done. */
static void take_dense(jobq_batch *all, jobq_settlement *s)
{
    size_t n = 0;

    push_dense();
    while (reserve_jobs("w", "q", DENSE - n) > 0)
        for (const jobq_record *r = got.first; r; r = r->next, n++) {
            s[n] = settlement(r, JOBQ_OP_DONE);
            s[n].id = jobq_batch_copy(all, r->id.p, r->id.n);
            s[n].queue = TEXT("q");
        }
    assert_int_equal(n, DENSE);
}

/* Three in the midst go back, and one worker gets them again: the tokens of before are stale. */
static void take_again(const jobq_settlement *s, const size_t *where, const char *worker)
{
    jobq_settlement back[GIVEN];

    for (int i = 0; i < GIVEN; i++) {
        back[i] = s[where[i]];
        back[i].op = JOBQ_OP_GIVE_BACK;
    }
    settle_many("w", back, GIVEN);
    assert_int_equal(reserve_jobs(worker, "q", DENSE), GIVEN);
}

static void expect_stale_amid(const char *worker)
{
    static const size_t stale[GIVEN] = {7, 150, DENSE - 1};
    jobq_settlement *s = calloc(DENSE, sizeof(*s));
    jobq_batch all = {0};

    take_dense(&all, s);
    take_again(s, stale, worker);
    settle_many("w", s, DENSE);
    for (size_t i = 0; i < DENSE; i++) {
        const bool refused = i == stale[0] || i == stale[1] || i == stale[2];

        if (s[i].result != (refused ? JOBQ_ELEASE : 0))
            fail_msg("hand-out %zu: %d", i, s[i].result);
    }
    assert_int_equal(count_jobs("q").reserved, GIVEN);
    for (const jobq_record *r = got.first; r; r = r->next)
        assert_int_equal(settle_op(worker, r, JOBQ_OP_DONE), 0);
    assert_int_equal(count_jobs("q").reserved, 0);
    jobq__batch_free(&all);
    free(s);
}

/* rule C3: a stale token is refused and its job stays with whoever has it now, however many of its
 * neighbours are settled in the same call; whether that is another worker or the same one. */
void test_c3_stale_amid_neighbours(void **state)
{
    (void)state;
    expect_stale_amid("other");
    expect_stale_amid("w");
}

/* rule C3: of one hand-out settled twice in a call of many, the first wins, and the call leaves the
 * job that stands behind the last one alone. */
void test_c3_twice_amid_neighbours(void **state)
{
    jobq_settlement *s = calloc(DENSE, sizeof(*s));
    jobq_batch all = {0};

    (void)state;
    take_dense(&all, s);
    s[200] = s[100]; /* instead of its own */
    s[DENSE - 1] = s[DENSE - 2];
    settle_many("w", s, DENSE);
    for (size_t i = 0; i < DENSE; i++)
        if (s[i].result != (i == 200 || i == DENSE - 1 ? JOBQ_ELEASE : 0))
            fail_msg("hand-out %zu: %d", i, s[i].result);
    assert_int_equal(count_jobs("q").reserved, 2);
    assert_int_equal(find_job("job-0200")->state, 2);
    assert_int_equal(find_job("job-0399")->state, 2);
    jobq__batch_free(&all);
    free(s);
}
