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

static bool is_delayed(size_t i)
{
    return i % 7 == 3;
}

static void fill_item(jobq_push *item, texts *t, size_t i)
{
    snprintf(t->id, sizeof(t->id), "job-%04zu", i == TWICE ? 50 : i == LAST ? LAST - 1 : i);
    snprintf(t->body, sizeof(t->body), "%zu%.*s", i, (int)(i % 40),
             "\xff{}?'\"\\ä%s\n            ....");
    *item = job_item(t->id, "q");
    item->body = TEXT(t->body);
    item->version = 1 + (int32_t)i;
    item->delay_ms = is_delayed(i) ? 600000 : 0;
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
    assert_int_equal(r->state, is_delayed(i));
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
    size_t ready = 1, delayed = 0;

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
        delayed += is_delayed(i);
        ready += !is_delayed(i);
    }
    assert_int_equal(count_jobs("q").ready, ready);
    assert_int_equal(count_jobs("q").delayed, delayed);
    assert_int_equal(reserve_jobs("w", "q", 60), 60);
    for (const jobq_record *r = got.first; r && r->next; r = r->next)
        assert_true(r == got.first || memcmp(r->id.p, r->next->id.p, r->id.n) < 0);
    free(items);
    free(t);
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
