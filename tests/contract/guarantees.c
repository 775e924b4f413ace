/* SPDX-License-Identifier: MIT
 *
 * The contract: capacity, unique keys that replace, retention of the dead, kept results, numbers
 * per minute (rules B4 to B6, F4, N1, N7).
 */
#include "contract/guarantees.h"

#include <stdio.h>
#include <string.h>

static jobq_batch shown;

static int64_t limit_queue(const char *queue, int64_t value, bool only_if_none)
{
    jobq_limit l = {.queue = TEXT(queue), .value = value, .only_if_none = only_if_none};

    assert_ok(jobq__store_capacity(store, &l));
    return l.capacity;
}

static int push_to(const char *id, const char *queue)
{
    jobq_push item = job_item(id, queue);

    return push_item(&item);
}

/* ---- capacity -------------------------------------------------------------------------------- */

/* Rule B4: every job that is there counts, dead ones too; nothing is trimmed. */
void test_b4_capacity(void **state)
{
    (void)state;
    assert_int_equal(limit_queue("q", 3, false), 3);
    assert_int_equal(count_jobs("q").capacity, 3);
    begin_worker("w", 30000);
    push_job("dead", "q");
    reserve_one("w", "q", "dead");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DEAD), 0);
    push_job("held", "q");
    reserve_one("w", "q", "held");
    push_job("ready", "q");
    assert_int_equal(push_to("more", "q"), JOBQ_EFULL);
    assert_null(find_job("more"));
    assert_int_equal(push_to("other", "p"), 0);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_int_equal(push_to("more", "q"), 0);
    assert_int_equal(push_to("even more", "q"), JOBQ_EFULL);
    /* A replay is not blocked (rule F4), nor is a job that comes back. */
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead", false), 0);
    assert_int_equal(push_to("even more", "q"), JOBQ_EFULL);
    assert_int_equal(limit_queue("q", 0, false), 0);
    assert_int_equal(push_to("even more", "q"), 0);
}

/* Rule B4: a follower takes the last place, counted when `room` is used up; the next one finds
 * none, and what is there stays. */
void test_b4_room_for_a_follower(void **state)
{
    jobq_push item = job_item("first", "q");

    (void)state;
    limit_queue("q", 2, false);
    begin_worker("w", 30000);
    push_job("gone", "q");
    reserve_one("w", "q", "gone");
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    reserve_one("w", "q", "first");
    item.id = TEXT("second");
    assert_int_equal(push_item(&item), 2);
    assert_string_equal(item.holder, "second");
    assert_int_equal(push_to("more", "q"), JOBQ_EFULL);
    assert_ok(jobq__store_push(store, &item, 1)); /* the same again: a duplicate id */
    assert_int_equal(item.result, JOBQ_EEXISTS);
    item.id = TEXT("third");
    assert_int_equal(push_item(&item), 2); /* it replaces: no further place */
    limit_queue("p", 2, false);
    push_job("other", "p");
    item = job_item("held", "p");
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(push_item(&item), 0);
    reserve_one("w", "p", "other");
    assert_int_equal(reserve_jobs("w", "p", 1), 1);
    item.id = TEXT("follower");
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    assert_null(find_job("follower"));
    assert_non_null(find_job("other"));
    assert_non_null(find_job("held"));
}

void test_b4_capacity_of_a_batch(void **state)
{
    jobq_push items[4];
    static const char *const ids[] = {"a", "b", "c", "d"};

    (void)state;
    limit_queue("q", 2, false);
    for (size_t i = 0; i < 4; i++)
        items[i] = job_item(ids[i], i == 1 ? "p" : "q");
    assert_ok(jobq__store_push(store, items, 4));
    assert_int_equal(items[0].result, 0);
    assert_int_equal(items[1].result, 0);
    assert_int_equal(items[2].result, 0);
    assert_int_equal(items[3].result, JOBQ_EFULL);
    assert_int_equal(count_jobs("q").ready, 2);
}

/* A DSN's value does not overrule what was set before. */
void test_b4_only_if_none(void **state)
{
    jobq_limit l = {.queue = TEXT("q"), .read = true};

    (void)state;
    assert_ok(jobq__store_capacity(store, &l));
    assert_int_equal(l.capacity, 0);
    assert_int_equal(limit_queue("q", 5, true), 5);
    assert_int_equal(limit_queue("q", 7, true), 5);
    assert_int_equal(limit_queue("q", 0, false), 0);
    assert_int_equal(limit_queue("q", 7, true), 0);
}

/* ---- unique keys ----------------------------------------------------------------------------- */

static int push_keyed(const char *id, const char *body, int64_t delay_ms, int64_t max_wait_ms)
{
    jobq_push item = job_item(id, "q");

    item.unique = TEXT("key");
    item.body = TEXT(body);
    item.delay_ms = delay_ms;
    item.max_wait_ms = max_wait_ms;
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    return push_item(&item);
}

static void assert_body(const char *id, const char *body)
{
    const jobq_record *job = find_job(id);

    assert_non_null(job);
    assert_int_equal(job->body.n, strlen(body));
    assert_memory_equal(job->body.p, body, job->body.n);
}

/* Rule B6, debounce: the first one's id stays, what it carries and when it is due is the last
 * one's. */
void test_b6_replace_what_waits(void **state)
{
    (void)state;
    assert_int_equal(push_keyed("first", "1", 60000, 0), 0);
    assert_int_equal(push_keyed("second", "2", 90000, 0), 2);
    assert_null(find_job("second"));
    assert_body("first", "2");
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_true(find_job("first")->available_at_ms >= store_now() + 80000);
    assert_int_equal(push_keyed("third", "3", 0, 0), 2);
    assert_int_equal(count_jobs("q").ready, 1);
    assert_int_equal(count_jobs("q").delayed, 0);
    assert_body("first", "3");
    reserve_one("w", "q", "first");
    assert_memory_equal(got.first->body.p, "3", 1);
}

/* Replaced after a worker was lost with it: that concerns the new body no more (rules B6, C5). */
void test_b6_replaced_is_not_taken_back(void **state)
{
    (void)state;
    begin_worker("w", 30000);
    assert_int_equal(push_keyed("first", "old", 0, 0), 0);
    reserve_one("w", "q", "first");
    pass_time(31000, 31000);
    maintain_all();
    assert_int_equal(push_keyed("second", "new", 0, 0), 2);
    begin_worker("w2", 30000);
    reserve_one("w2", "q", "first");
    assert_false(got.first->taken_back);
    assert_int_equal(got.first->counters.losses, 0);
    assert_int_equal(got.first->counters.crashes, 0);
    assert_int_equal(settle_op("w2", got.first, JOBQ_OP_DONE), 0);
}

void test_b6_max_wait(void **state)
{
    (void)state;
    push_keyed("first", "1", 10000, 25000);
    pass_time(9000, 9000);
    assert_int_equal(push_keyed("second", "2", 10000, 25000), 2);
    pass_time(9000, 9000);
    assert_int_equal(push_keyed("third", "3", 10000, 25000), 2);
    assert_true(find_job("first")->available_at_ms <= store_now() + 7500);
    pass_time(30000, 30000);
    maintain_all();
    assert_int_equal(push_keyed("fourth", "4", 10000, 25000),
                     2); /* long due: it is ready at once */
    assert_int_equal(count_jobs("q").ready, 1);
    assert_body("first", "4");
}

/* While the holder runs, one follower is kept for all that come. */
void test_b6_one_follower(void **state)
{
    (void)state;
    push_keyed("first", "1", 0, 0);
    begin_worker("w", 30000);
    reserve_one("w", "q", "first");
    assert_int_equal(push_keyed("second", "2", 0, 0), 2);
    assert_int_equal(push_keyed("third", "3", 0, 0), 2);
    assert_null(find_job("third"));
    assert_body("second", "3");
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_int_equal(count_jobs("q").ready, 0);
    maintain_all();
    assert_int_equal(reserve_jobs("v", "q", 10), 0); /* nobody gets it while the holder runs */
    assert_int_equal(find_job("second")->state, 1);
}

void test_b6_follower_takes_over(void **state)
{
    static const int ops[] = {JOBQ_OP_DONE, JOBQ_OP_DEAD, JOBQ_OP_FREE_KEY};

    (void)state;
    begin_worker("w", 30000);
    for (size_t i = 0; i < 3; i++) {
        char first[16], second[16];

        snprintf(first, sizeof(first), "a%zu", i);
        snprintf(second, sizeof(second), "b%zu", i);
        assert_int_equal(push_keyed(first, "1", 0, 0), 0);
        reserve_one("w", "q", first);
        assert_int_equal(push_keyed(second, "2", 0, 0), 2);
        assert_int_equal(settle_op("w", got.first, ops[i]), 0);
        maintain_all();
        reserve_one("w", "q", second);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    }
}

/* A holder that goes back keeps its key; a follower can be cancelled and cleared like any job. */
void test_b6_follower_can_go(void **state)
{
    jobq_cancelling c = {.id = TEXT("second"), .reason = 11};
    jobq_clearing clearing = {.queue = TEXT("q"), .limit = 10};

    (void)state;
    begin_worker("w", 30000);
    push_keyed("first", "1", 0, 0);
    reserve_one("w", "q", "first");
    assert_int_equal(push_keyed("second", "2", 0, 0), 2);
    assert_ok(jobq__store_cancel(store, &c));
    assert_int_equal(c.result, 0);
    assert_int_equal(find_job("second")->state, 4);
    assert_int_equal(push_keyed("third", "3", 0, 0), 2);
    assert_ok(jobq__store_clear(store, &clearing));
    assert_int_equal(clearing.cleared, 1);
    assert_int_equal(push_keyed("fourth", "4", 0, 0), 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    reserve_one("w", "q", "first");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    maintain_all();
    reserve_one("w", "q", "fourth");
}

/* unique_scope until_started: freed once, for the holder alone, and not taken again by its
 * retry. */
void test_b6_key_given_up(void **state)
{
    jobq_push item = job_item("next", "q");
    jobq_record *job;

    (void)state;
    item.unique = TEXT("key");
    begin_worker("w", 30000);
    push_keyed("first", "1", 0, 0);
    job = reserve_one("w", "q", "first");
    assert_int_equal(push_item(&item), 1);
    assert_int_equal(settle_op("v", job, JOBQ_OP_FREE_KEY), JOBQ_ELEASE);
    assert_int_equal(settle_op("w", job, JOBQ_OP_FREE_KEY), 0);
    assert_int_equal(find_job("first")->state, 2);
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(settle_op("w", job, JOBQ_OP_BACK), 0);
    item.id = TEXT("third");
    assert_int_equal(push_item(&item), 1);
    assert_string_equal(item.holder, "next");
}

/* ---- what is kept ---------------------------------------------------------------------------- */

void test_f4_retention(void **state)
{
    jobq_settlement s;

    (void)state;
    begin_worker("w", 3600000);
    for (int i = 0; i < 2; i++) {
        push_job(i ? "short" : "long", "q");
        s = settlement(reserve_one("w", "q", i ? "short" : "long"), JOBQ_OP_DEAD);
        s.keep_ms = i ? 10000 : 100000;
        assert_int_equal(settle_with("w", &s), 0);
    }
    assert_true(find_job("short")->keep_until_ms > store_now());
    pass_time(11000, 11000);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "short", false), JOBQ_ELIMIT);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "long", true), 0);
    maintain_all();
    assert_null(find_job("short"));
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "long", false), 0);
    pass_time(100000, 100000);
    maintain_all();
    assert_non_null(find_job("long")); /* it waits again */
}

/* Rule N7: progress while it runs, the result after it. */
void test_n7_outcome(void **state)
{
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    reserve_one("w", "q", "a");
    s = settlement(got.first, JOBQ_OP_PROGRESS);
    s.outcome = TEXT("half");
    assert_int_equal(settle_with("w", &s), 0);
    assert_memory_equal(find_job("a")->outcome.p, "half", 4);
    assert_int_equal(find_job("a")->state, 2);
    assert_int_equal(settle_with("v", &s), JOBQ_ELEASE);
    s.op = JOBQ_OP_DONE;
    s.keep_ms = 10000;
    s.outcome = TEXT("whole");
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(find_job("a")->state, 3);
    assert_memory_equal(find_job("a")->outcome.p, "whole", 5);
    pass_time(11000, 11000);
    maintain_all();
    assert_null(find_job("a"));
}

/* What is noted of a held job changes neither its token nor what its worker holds. */
void test_n7_token_stays(void **state)
{
    jobq_batch held = {0};
    jobq_settlement s;

    (void)state;
    assert_int_equal(push_keyed("a", "1", 0, 0), 0);
    begin_worker("w", 30000);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_PROGRESS);
    s.outcome = TEXT("half");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(settle_with("w", &s), 0);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_FREE_KEY), 0);
    }
    assert_ok(jobq__store_held(store, TEXT("w"), &held));
    assert_int_equal(held.count, 1);
    assert_true(jobq__token_equal(held.first->token, got.first->token));
    assert_int_equal(settle_op("w", held.first, JOBQ_OP_DONE), 0);
    jobq__batch_free(&held);
    assert_null(find_job("a"));
}

void test_b5_kept_bare(void **state)
{
    jobq_settlement s;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    s.keep_ms = 10000;
    s.keep_bare = true;
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(find_job("a")->body.n, 0);
    assert_int_equal(push_to("a", "q"), JOBQ_EEXISTS);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t read_minutes(const char *queue, int64_t from, jobq_minutes *m)
{
    size_t n = 0;

    *m = (jobq_minutes){.queue = TEXT(queue), .from_minute = from, .out = &shown};
    jobq__batch_reset(&shown);
    assert_ok(jobq__store_minutes(store, m));
    for (const jobq_minute *minute = m->minutes; minute; minute = minute->next)
        n++;
    return n;
}

void test_n1_minutes(void **state)
{
    const int64_t now = store_now() / 60000;
    jobq_minute booked[3] = {{.queue = TEXT("q"), .minute = now, .counts = {5, 4, 0, 1}},
                             {.queue = TEXT("q"), .minute = now - 1, .counts = {[6] = 2}},
                             {.queue = TEXT("p"), .minute = now, .counts = {[0] = 9}}};
    jobq_minutes m;

    (void)state;
    booked[0].run_ms[3] = 4;
    assert_ok(jobq__store_book(store, booked, 3));
    assert_ok(jobq__store_book(store, booked, 1));
    assert_int_equal(read_minutes("q", now - 10, &m), 2);
    assert_int_equal(m.minutes->minute, now - 1);
    assert_int_equal(m.minutes->counts[6], 2);
    assert_int_equal(m.minutes->next->counts[0], 10);
    assert_int_equal(m.minutes->next->counts[3], 2);
    assert_int_equal(m.minutes->next->run_ms[3], 8);
    assert_int_equal(read_minutes("q", now, &m), 1);
    assert_int_equal(read_minutes("none", 0, &m), 0);
}

/* ---- the caller's own statements ------------------------------------------------------------- */

/* The value's place in a statement. */
static const char *own_place(const char *with_mark, const char *with_number)
{
    const bool numbers = strcmp(jobq__store_driver(store)->name, "postgresql") == 0;

    return numbers ? with_number : with_mark;
}

static jobq_statement statement_of(const char *text, const jobq_param *params, size_t count)
{
    return (jobq_statement){.text = TEXT(text), .params = params, .param_count = count};
}

/* Rule B7: judged in the same step; nothing is stored when it is false. */
void test_b7_guard(void **state)
{
    jobq_param value = {.type = JOBQ_PARAM_INT, .integer = 2};
    jobq_statement guard = statement_of(own_place("SELECT ? > 1", "SELECT $1 > 1"), &value, 1);
    jobq_push item = job_item("a", "q");

    (void)state;
    need_feature(JOBQ_FEATURE_REQUEST, "SQL");
    item.guard = &guard;
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(push_item(&item), JOBQ_EEXISTS);
    value.integer = 1;
    item.id = TEXT("b");
    assert_int_equal(push_item(&item), JOBQ_EGUARD);
    assert_null(find_job("b"));
    guard.text = TEXT("SELECT no_such_thing FROM nowhere");
    guard.param_count = 0;
    assert_int_equal(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
    assert_null(find_job("b"));
}

/* Rule O1: only while the lease holds. */
void test_o1_effect(void **state)
{
    jobq_effect e = {.worker = TEXT("w"), .queue = TEXT("q"), .out = &shown};

    (void)state;
    need_feature(JOBQ_FEATURE_REQUEST, "SQL");
    push_job("a", "q");
    begin_worker("w", 30000);
    e.token = reserve_one("w", "q", "a")->token;
    e.id = TEXT("a");
    jobq__batch_reset(&shown);
    e.statement = statement_of("SELECT 41 + 1", NULL, 0);
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, 0);
    assert_int_equal(e.value.type, JOBQ_PARAM_INT);
    assert_int_equal(e.value.integer, 42);
    e.statement.text = TEXT("COMMIT");
    assert_int_equal(jobq__store_effect(store, &e), JOBQ_EINVAL);
    e.statement.text = TEXT("SELECT 1; SELECT 2");
    assert_int_equal(jobq__store_effect(store, &e), JOBQ_EINVAL);
    e.statement.text = TEXT(own_place("SELECT ?", "SELECT $1"));
    assert_int_equal(jobq__store_effect(store, &e), JOBQ_EINVAL);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_BACK), 0);
    e.statement.text = TEXT("SELECT 1");
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, JOBQ_ELEASE);
}

/* ---- looking for what is wrong --------------------------------------------------------------- */

typedef struct {
    int64_t seen[5], pages;
    size_t strays;
    char ids[1000]; /* of the strays: "id/states " */
} audited;

static audited audit_queue(const char *queue, size_t limit)
{
    jobq_audit a = {.queue = TEXT(queue), .limit = limit, .out = &shown};
    char cursor[200];
    audited sum = {0};
    size_t n = 0;

    do {
        jobq__batch_reset(&shown);
        assert_ok(jobq__store_audit(store, &a));
        for (int i = 0; i < 5; i++)
            sum.seen[i] += a.seen[i];
        for (const jobq_stray *stray = a.strays; stray; stray = stray->next, sum.strays++)
            n += (size_t)snprintf(sum.ids + n, sizeof(sum.ids) - n, "%.*s/%u%s ", (int)stray->id.n,
                                  (const char *)stray->id.p, stray->states,
                                  stray->ownerless ? "!" : "");
        assert_true(a.next.n < sizeof(cursor));
        if (a.next.p)
            memcpy(cursor, a.next.p, a.next.n);
        a.after = jobq__slice(a.next.p ? cursor : NULL, a.next.n);
        assert_true(++sum.pages < 1000);
    } while (a.next.p);
    return sum;
}

const char *contract_strays(const char *queue)
{
    static audited sum;

    sum = audit_queue(queue, 1000);
    return sum.ids;
}

const char *contract_remarks(int grade)
{
    static char words[2000];
    jobq_examination e = {.out = &shown};
    size_t n = 0;

    words[0] = '\0';
    jobq__batch_reset(&shown);
    jobq__store_examine(store, &e);
    for (const jobq_remark *r = e.remarks; r; r = r->next)
        if (r->grade == grade && n < sizeof(words))
            n += (size_t)snprintf(words + n, sizeof(words) - n, "%s: %s; ", r->check, r->text);
    return words;
}

static void settle_as(const char *id, int op, int64_t keep_ms)
{
    jobq_settlement s;

    push_job(id, "q");
    s = settlement(reserve_one("w", "q", id), op);
    s.keep_ms = keep_ms;
    assert_int_equal(settle_with("w", &s), 0);
}

/* Rule N5: each job is counted once, in the state it is stored in; other queues are not looked
 * at. */
void test_n5_audit(void **state)
{
    jobq_push later = job_item("later", "q");
    jobq_cancelling c = {.reason = 11};
    audited sum;

    (void)state;
    begin_worker("w", 3600000);
    settle_as("dead", JOBQ_OP_DEAD, 0);
    settle_as("done", JOBQ_OP_DONE, 1000000);
    settle_as("gone", JOBQ_OP_DONE, 0);
    later.delay_ms = 1000000;
    push_item(&later);
    push_keyed("holder", "1", 0, 0);
    reserve_one("w", "q", "holder");
    assert_int_equal(push_keyed("follower", "2", 0, 0), 2);
    push_job("back", "q");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "back"), JOBQ_OP_BACK), 0);
    push_job("ready", "q");
    push_job("else", "p");
    for (size_t limit = 1; limit <= 1000; limit += 333) {
        sum = audit_queue("q", limit);
        assert_string_equal(sum.ids, "");
        assert_int_equal(sum.seen[0], 2);
        assert_int_equal(sum.seen[1], 2);
        assert_int_equal(sum.seen[2], 1);
        assert_int_equal(sum.seen[3], 1);
        assert_int_equal(sum.seen[4], 1);
    }
    assert_true(audit_queue("q", 1).pages >= 7);
    assert_int_equal(audit_queue("p", 10).seen[0], 1);
    assert_int_equal(audit_queue("nobody's", 10).seen[0], 0);
    c.id = TEXT("follower");
    assert_ok(jobq__store_cancel(store, &c)); /* dead, and its key is still another's */
    assert_string_equal(contract_strays("q"), "");
}

/* What workers lost stands with them until it is taken back. */
void test_n5_audit_after_a_loss(void **state)
{
    audited sum;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 1000);
    reserve_one("w", "q", "a");
    pass_time(2000, 2000);
    sum = audit_queue("q", 10);
    assert_string_equal(sum.ids, "");
    assert_int_equal(sum.seen[2], 1);
    maintain_all();
    sum = audit_queue("q", 10);
    assert_string_equal(sum.ids, "");
    assert_int_equal(sum.seen[0], 1);
}

/* Jobs that follow a death stand in a queue beside it, also beside one with the longest name. */
void test_n5_audit_of_a_hidden_queue(void **state)
{
    char longest[130] = "\1";

    (void)state;
    memset(longest + 1, 'q', 128);
    push_job("far", longest);
    assert_int_equal(audit_queue(longest, 10).seen[0], 1);
    push_job("hook", "\1q");
    assert_int_equal(audit_queue("\1q", 10).seen[0], 1);
    assert_int_equal(audit_queue("q", 10).seen[0], 0);
}

/* Rule N5: each remark says what it is about. A store as the tests use it has no problem. */
void test_n5_examine(void **state)
{
    jobq_examination e = {.out = &shown};
    size_t n = 0;

    (void)state;
    push_job("a", "q");
    jobq__batch_reset(&shown);
    assert_ok(jobq__store_examine(store, &e));
    for (const jobq_remark *r = e.remarks; r; r = r->next, n++) {
        print_message("%d %s: %s%s%s\n", r->grade, r->check, r->text, r->advice ? " -> " : "",
                      r->advice ? r->advice : "");
        assert_true(r->check && *r->check && r->text && *r->text);
        assert_true(r->grade == JOBQ_REMARK_OK || r->advice);
    }
    assert_true(n > 0);
}

/* Given a queue a job is looked for there alone. */
void test_find_with_a_queue(void **state)
{
    jobq_batch out = {0};

    (void)state;
    push_job("a", "q");
    assert_ok(jobq__store_find(store, TEXT("q"), TEXT("a"), &out));
    assert_memory_equal(out.first->id.p, "a", 1);
    assert_code(jobq__store_find(store, TEXT("p"), TEXT("a"), &out), JOBQ_ENOTFOUND);
    assert_ok(jobq__store_find(store, jobq__slice(NULL, 0), TEXT("a"), &out));
    jobq__batch_free(&out);
}
