/* SPDX-License-Identifier: MIT
 *
 * Tests for one server and for a Cluster.
 */
#include "contract/on_redis.h"

#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

enum { PUSHERS = 6, CHUNK = 7 };

static jobq_batch shown;

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct {
    pid_t pid;
    int out;
} process;

/* Runs in a child with a store handle of its own; what it returns comes back through a pipe. */
static process run_beside(int64_t (*run)(int who), int who)
{
    process p;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    p.pid = fork();
    assert_true(p.pid >= 0);
    if (p.pid == 0) {
        int64_t n = run(who);

        _exit(write(fds[1], &n, sizeof(n)) != sizeof(n));
    }
    close(fds[1]);
    p.out = fds[0];
    return p;
}

static int64_t result_of(process p)
{
    int64_t n = -1;
    int status = -1;

    assert_int_equal(read(p.out, &n, sizeof(n)), sizeof(n));
    close(p.out);
    assert_int_equal(waitpid(p.pid, &status, 0), p.pid);
    assert_int_equal(status, 0);
    return n;
}

static int64_t total(void)
{
    const jobq_counts c = count_jobs("q");

    return c.ready + c.delayed + c.reserved + c.dead;
}

static void limit_queue(int64_t value)
{
    jobq_limit l = {.queue = TEXT("q"), .value = value};

    assert_ok(jobq__store_capacity(store, &l));
    assert_int_equal(l.capacity, value);
}

/* ---- capacity -------------------------------------------------------------------------------- */

static void name_job(char *id, size_t room, int who, int n)
{
    const int64_t now = jobq__clock_wall_ms();

    snprintf(id, room, "%08llx-%04llx-7000-8000-%04x%08x", (unsigned long long)(now >> 16),
             (unsigned long long)(now & 0xffff), who, n);
}

/* Every kind of push in turn, one alone or some together; how many were stored. */
static int64_t push_some(int who, int round)
{
    static char ids[CHUNK][40], key[40];
    jobq_push items[CHUNK];
    const int n = round % 3 == 0 ? CHUNK : 1;
    int64_t stored = 0;

    for (int i = 0; i < n; i++) {
        name_job(ids[i], sizeof(ids[i]), who, round * CHUNK + i);
        items[i] = job_item(ids[i], "q");
        items[i].fresh_id = round % 4 != 1;
        items[i].delay_ms = round % 4 == 2 ? 3600000 : 0;
    }
    if (round % 5 == 4) {
        snprintf(key, sizeof(key), "%s", ids[0]);
        items[0].unique = TEXT(key);
        items[0].on_duplicate = JOBQ_DUPLICATE_REPLACE;
    }
    if (jobq__store_push(store, items, (size_t)n) < 0)
        _exit(9);
    for (int i = 0; i < n; i++)
        stored += items[i].result == 0;
    return stored;
}

static int64_t push_until_full(int who)
{
    int64_t stored = 0;
    int refused = 0;

    for (int round = 0; refused < 20 && round < 20000; round++) {
        const int64_t now = push_some(who, round);

        refused = now ? 0 : refused + 1;
        stored += now;
    }
    return refused == 20 ? stored : -1;
}

/* Rule B4: exact under concurrent pushers, whatever kind of job they push. */
void test_b4_exact_among_many(void **state)
{
    process pushers[PUSHERS];
    int64_t stored = 0;

    (void)state;
    limit_queue(333);
    for (int i = 0; i < PUSHERS; i++)
        pushers[i] = run_beside(push_until_full, i);
    for (int i = 0; i < PUSHERS; i++)
        stored += result_of(pushers[i]);
    assert_int_equal(stored, 333);
    assert_int_equal(total(), 333);
}

/* Rule B4: a limit that is set holds from that moment on, for those too that push already, and when
 * it goes they are free again. */
void test_b4_set_while_others_push(void **state)
{
    process pushers[PUSHERS];
    int64_t stored = 1;

    (void)state;
    push_job("first", "q");
    for (int i = 0; i < PUSHERS; i++)
        pushers[i] = run_beside(push_until_full, i);
    wait_until(total() > 500, 60);
    limit_queue(20); /* far below what is there: nothing comes to it, and nothing is trimmed */
    const int64_t now = total();
    for (int i = 0; i < PUSHERS; i++)
        stored += result_of(pushers[i]);
    assert_true(now > 500);
    assert_int_equal(total(), now);
    assert_int_equal(stored, now);
    limit_queue(0);
    assert_true(push_some(PUSHERS, 0) == CHUNK);
    limit_queue(now + CHUNK + 2);
    assert_true(push_some(PUSHERS + 1, 1) == 1);
    assert_true(push_some(PUSHERS + 1, 0) == 1);
    assert_int_equal(total(), now + CHUNK + 2);
}

static int64_t wait_for_job(int who)
{
    const jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 20000, .wake_fd = -1};

    (void)who;
    return jobq__store_wait(store, &w);
}

/* Rules B4, C9: what is pushed into a queue with a capacity wakes, stands in order and is found. */
void test_b4_a_full_queue_wakes(void **state)
{
    const jobq_slice q = TEXT("q");
    jobq_wait w = {.queues = &q, .queue_count = 1, .timeout_ms = 100, .poll_ms = 10, .wake_fd = -1};
    jobq_push item;
    char id[40];
    process waiter;

    (void)state;
    push_job("a", "q");
    limit_queue(3);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_BACK), 0);
    push_job("b", "q");
    name_job(id, sizeof(id), 1, 1);
    item = job_item(id, "q");
    item.fresh_id = true;
    assert_int_equal(push_item(&item), 0);
    assert_non_null(find_job(id));
    item = job_item("d", "q");
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    assert_int_equal(reserve_jobs("w", "q", 9), 3);
    assert_string_equal(got.first->id.p, "a");
    assert_string_equal(got.last->id.p, id);
    for (const jobq_record *r = got.first; r; r = r->next)
        assert_int_equal(settle_op("w", r, JOBQ_OP_DONE), 0);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
    waiter = run_beside(wait_for_job, 0);
    poll(NULL, 0, 200);
    assert_int_equal(push_item(&item), 0);
    assert_int_equal(result_of(waiter), JOBQ_WAIT_JOBS);
    limit_queue(0);
    push_job("e", "q");
    assert_int_equal(reserve_jobs("w", "q", 9), 2);
    expect_ids("d e");
}

/* ---- followers ------------------------------------------------------------------------------- */

static char holder[16], follower[16];

static int push_keyed(const char *id, int64_t delay_ms)
{
    jobq_push item = job_item(id, "q");

    item.unique = TEXT("key");
    item.delay_ms = delay_ms;
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    return push_item(&item);
}

static void end_done(void)
{
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
}

static void end_kept(void)
{
    jobq_settlement s = settlement(got.first, JOBQ_OP_DONE);

    s.keep_ms = 1000;
    assert_int_equal(settle_with("w", &s), 0);
}

static void end_dead(void)
{
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DEAD), 0);
}

static void end_free(void)
{
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_FREE_KEY), 0);
}

static void end_cancelled(void)
{
    jobq_cancelling c = {.id = TEXT(holder), .reason = 11};

    assert_int_equal(settle_op("w", got.first, JOBQ_OP_GIVE_BACK), 0);
    assert_ok(jobq__store_cancel(store, &c));
    assert_int_equal(c.result, 0);
}

static void end_cancelled_while_delayed(void)
{
    jobq_settlement s = settlement(got.first, JOBQ_OP_BACK);
    jobq_cancelling c = {.id = TEXT(holder), .reason = 11};

    s.delay_ms = 100000;
    assert_int_equal(settle_with("w", &s), 0);
    assert_ok(jobq__store_cancel(store, &c));
    assert_int_equal(c.result, 0);
}

static void end_lost(void)
{
    pass_time(31000, 31000);
    maintain_all();
    assert_int_equal(find_job(follower)->state, 1); /* it is with nobody, but goes on */
    assert_int_equal(settle_op("v", reserve_one("v", "q", holder), JOBQ_OP_DEAD), 0);
}

/* Rule B6: whatever ends the holder, its follower takes the key over and runs. */
void test_b6_follower_at_every_end(void **state)
{
    static void (*const ends[])(void) = {end_done, end_kept,      end_dead,
                                         end_free, end_cancelled, end_cancelled_while_delayed,
                                         end_lost};

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        jobq_push other = job_item("other", "q");
        jobq_settlement first;

        snprintf(holder, sizeof(holder), "holder %zu", i);
        snprintf(follower, sizeof(follower), "follower %zu", i);
        other.unique = TEXT("key");
        begin_worker("w", 30000);
        assert_int_equal(push_keyed(holder, 0), 0);
        first = settlement(reserve_one("w", "q", holder), JOBQ_OP_DONE);
        assert_int_equal(push_keyed(follower, 0), 2);
        ends[i]();
        assert_int_equal(push_item(&other), 1);
        assert_string_equal(other.holder, follower);
        assert_int_equal(find_job(follower)->state, 0);
        assert_int_equal(settle_op("v", reserve_one("v", "q", follower), JOBQ_OP_DONE), 0);
        assert_int_equal(push_item(&other), 0); /* the key is nobody's */
        assert_int_equal(settle_op("v", reserve_one("v", "q", "other"), JOBQ_OP_DONE), 0);
        if (ends[i] == end_free)
            assert_int_equal(settle_with("w", &first), 0);
    }
    /* clear takes a waiting holder and its follower, wherever they stand. */
    for (int delayed = 0; delayed < 2; delayed++) {
        jobq_clearing c = {.queue = TEXT("q"), .limit = 10};
        jobq_settlement s;

        snprintf(holder, sizeof(holder), "next %d", delayed);
        snprintf(follower, sizeof(follower), "its follower %d", delayed);
        assert_int_equal(push_keyed(holder, 0), 0);
        s = settlement(reserve_one("w", "q", holder), JOBQ_OP_BACK);
        s.delay_ms = delayed ? 100000 : 0;
        assert_int_equal(push_keyed(follower, 0), 2);
        assert_int_equal(settle_with("w", &s), 0);
        assert_ok(jobq__store_clear(store, &c));
        assert_int_equal(c.cleared, 2);
        assert_int_equal(total() - count_jobs("q").dead, 0);
        assert_int_equal(push_keyed("after", 0), 0);
        assert_int_equal(settle_op("w", reserve_one("w", "q", "after"), JOBQ_OP_DONE), 0);
    }
}

/* Rule B6: the holder was pushed in the ordinary way, with an id that is in no index. */
void test_b6_replace_of_a_kept_fresh_id(void **state)
{
    char id[40], next[40];
    jobq_push item;

    (void)state;
    name_job(id, sizeof(id), 1, 1);
    name_job(next, sizeof(next), 1, 2);
    item = job_item(id, "q");
    item.fresh_id = true;
    item.unique = TEXT("key");
    assert_int_equal(push_item(&item), 0);
    item.id = TEXT(next);
    item.body = TEXT("new");
    item.priority = 7;
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(push_item(&item), 2);
    assert_string_equal(item.holder, id);
    assert_null(find_job(next));
    assert_int_equal(total(), 1);
    reserve_one("w", "q", id);
    assert_memory_equal(got.first->body.p, "new", 3);
    assert_int_equal(got.first->priority, 7);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    assert_null(find_job(id));
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* Rule N7: how far it came and how it ended may go in one exchange; a dead job shows it, too. */
void test_n7_progress_with_the_end(void **state)
{
    static const int ops[] = {JOBQ_OP_DEAD, JOBQ_OP_DONE, JOBQ_OP_BACK, JOBQ_OP_GIVE_BACK};

    (void)state;
    begin_worker("w", 30000);
    for (size_t i = 0; i < 4; i++) {
        char id[8];
        jobq_settlement s[2];
        jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 30000, .settle = s, .settle_count = 2};

        snprintf(id, sizeof(id), "j%zu", i);
        push_job(id, "q");
        s[0] = settlement(reserve_one("w", "q", id), JOBQ_OP_PROGRESS);
        s[0].outcome = TEXT("half");
        s[1] = settlement(got.first, ops[i]);
        s[1].keep_ms = 60000;
        assert_ok(jobq__store_exchange(store, &x));
        assert_int_equal(s[0].result, 0);
        assert_int_equal(s[1].result, 0);
        assert_int_equal(find_job(id)->outcome.n, 4);
        assert_memory_equal(find_job(id)->outcome.p, "half", 4);
        if (i >= 2)
            assert_int_equal(settle_op("w", reserve_one("w", "q", id), JOBQ_OP_DONE), 0);
    }
    push_job("last", "q");
    jobq_settlement s = settlement(reserve_one("w", "q", "last"), JOBQ_OP_DEAD);

    s.outcome = TEXT("said at the end");
    assert_int_equal(settle_with("w", &s), 0);
    assert_int_equal(find_job("last")->outcome.n, strlen("said at the end"));
}

/* ---- guards and effects ---------------------------------------------------------------------- */

static jobq_statement statement_of(const char *text, const jobq_param *params, size_t count)
{
    return (jobq_statement){.text = TEXT(text), .params = params, .param_count = count};
}

/* Rule B7: id, guard, key; a false guard stores nothing, and a broken one refuses the call. */
void test_b7_guard_script(void **state)
{
    static const struct {
        const char *text;
        int result;
    } rows[] = {
        {"return 1", 0},
        {"return 0", JOBQ_EGUARD},
        {"return nil", JOBQ_EGUARD},
        {"return false", JOBQ_EGUARD},
        {"-- a comment\nreturn redis.call('EXISTS', KEYS[1] .. ':mine')", JOBQ_EGUARD},
        {"return ARGV[1] == 'x\\0y' and ARGV[2] == '-5' and ARGV[3] == '0.5' and ARGV[4] == ''", 0},
        {"return #ARGV == 4 and KEYS[1]:sub(1, 1) == '{'", 0},
        {"local k = KEYS[1] .. ':mine' redis.call('SET', k, ARGV[1]) return redis.call('GET', k)",
         0},
        {"return redis.call('EXISTS', KEYS[1] .. ':mine')", 0},
    };
    const jobq_param params[] = {{.type = JOBQ_PARAM_BYTES, .bytes = jobq__slice("x\0y", 3)},
                                 {.type = JOBQ_PARAM_INT, .integer = -5},
                                 {.type = JOBQ_PARAM_DOUBLE, .real = 0.5},
                                 {.type = JOBQ_PARAM_NULL}};
    static const char *const broken[] = {"retrun 1",    "end return 1 (",
                                         "error('no')", "return redis.call('INCR')",
                                         "global = 1",  "return redis.pcall('NONSENSE')"};
    jobq_push item;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq_statement guard = statement_of(rows[i].text, params, 4);
        char id[40];

        name_job(id, sizeof(id), 0, (int)i);
        item = job_item(id, "q");
        item.fresh_id = i % 2;
        item.guard = &guard;
        assert_int_equal(push_item(&item), rows[i].result);
        assert_true((find_job(id) != NULL) == (rows[i].result == 0));
        if (rows[i].result == 0)
            assert_int_equal(push_item(&item), item.fresh_id ? 0 : JOBQ_EEXISTS);
    }
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        jobq_statement guard = statement_of(broken[i], NULL, 0);

        item = job_item("broken", "q");
        item.guard = &guard;
        assert_code(jobq__store_push(store, &item, 1), JOBQ_EINVAL);
        assert_said("guard");
        assert_null(find_job("broken"));
    }
}

/* Rule B7: each item is judged for itself, before any is stored; one that cannot be judged refuses
 * all. */
void test_b7_guards_of_a_batch(void **state)
{
    jobq_statement yes = statement_of("return 1", NULL, 0);
    jobq_statement no = statement_of("return 0", NULL, 0);
    jobq_statement broken = statement_of("error('x')", NULL, 0);
    jobq_push items[4];

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        static const char *const ids[] = {"a", "b", "c", "d"};

        for (int i = 0; i < 4; i++)
            items[i] = job_item(ids[i], "q");
        items[1].guard = &no;
        items[2].guard = pass ? &yes : &broken;
        items[3].unique = TEXT("key");
        if (!pass) {
            assert_code(jobq__store_push(store, items, 4), JOBQ_EINVAL);
            assert_int_equal(total(), 0);
        } else {
            assert_ok(jobq__store_push(store, items, 4));
            assert_int_equal(items[0].result, 0);
            assert_int_equal(items[1].result, JOBQ_EGUARD);
            assert_int_equal(items[2].result, 0);
            assert_int_equal(items[3].result, 0);
            assert_int_equal(total(), 3);
        }
    }
    items[0] = job_item("e", "q"); /* the key is held, but the guard comes first */
    items[0].unique = TEXT("key");
    items[0].guard = &no;
    assert_int_equal(push_item(&items[0]), JOBQ_EGUARD);
    items[0].guard = &yes;
    assert_int_equal(push_item(&items[0]), 1);
}

static jobq_param value_of(jobq_effect *e, const char *text)
{
    jobq__batch_reset(&shown);
    e->out = &shown;
    e->statement = statement_of(text, e->statement.params, e->statement.param_count);
    assert_ok(jobq__store_effect(store, e));
    assert_int_equal(e->result, 0);
    return e->value;
}

#define COUNTER "KEYS[1] .. ':counter'"

/* Rule O1: the text runs while the hand-out is current; with a stale token nothing happens. */
void test_o1_effect_script(void **state)
{
    const jobq_param params[] = {{.type = JOBQ_PARAM_TEXT, .bytes = TEXT("five")}};
    jobq_effect e = {.worker = TEXT("w"), .id = TEXT("a"), .queue = TEXT("q"), .out = &shown};
    jobq_param v;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    e.token = reserve_one("w", "q", "a")->token;
    assert_int_equal(value_of(&e, "return redis.call('INCR', " COUNTER ")").integer, 1);
    assert_int_equal(e.value.type, JOBQ_PARAM_INT);
    e.statement.params = params;
    e.statement.param_count = 1;
    v = value_of(&e, "return ARGV[1] .. '\\0'");
    assert_int_equal(v.type, JOBQ_PARAM_BYTES);
    assert_int_equal(v.bytes.n, 5);
    assert_int_equal(value_of(&e, "return {7, 8}").integer, 7);
    assert_int_equal(value_of(&e, "return nil").type, JOBQ_PARAM_NULL);
    v = value_of(&e, "return 0.25");
    assert_true(v.type == JOBQ_PARAM_DOUBLE && v.real == 0.25);
    e.statement.text = TEXT("return redis.call('GET')");
    assert_code(jobq__store_effect(store, &e), JOBQ_EINVAL);
    assert_said("effect");
    /* somebody else's, one that went back, and the next hand-out of the same job */
    e.statement.text = TEXT("return redis.call('INCR', " COUNTER ")");
    e.worker = TEXT("v");
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, JOBQ_ELEASE);
    e.worker = TEXT("w");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_GIVE_BACK), 0);
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, JOBQ_ELEASE);
    reserve_one("w", "q", "a");
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, JOBQ_ELEASE);
    e.token = got.first->token;
    assert_int_equal(value_of(&e, "return redis.call('GET', " COUNTER ")").bytes.n, 1);
    assert_memory_equal(e.value.bytes.p, "1", 1);
    pass_time(31000, 31000); /* taken back from the worker */
    maintain_all();
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, JOBQ_ELEASE);
}

/* Rules B7, O1: a host program's locale with a decimal comma changes nothing. */
void test_b7_in_a_comma_locale(void **state)
{
    if (!jobq_test_comma_locale())
        skip();
    test_b7_guard_script(state);
    setlocale(LC_ALL, "C");
}

void test_o1_in_a_comma_locale(void **state)
{
    if (!jobq_test_comma_locale())
        skip();
    test_o1_effect_script(state);
    setlocale(LC_ALL, "C");
}

/* ---- retention ------------------------------------------------------------------------------- */

/* Rule F4: many dead jobs are collected in steps, and count until then (rule B4). */
void test_f4_collected_in_steps(void **state)
{
    enum { JOBS = 60 };
    jobq_maintenance m = {.limit = 25, .loss_cap = 10, .take_back = true};
    jobq_push item = job_item("more", "q");
    size_t steps = 0, handled = 0;

    (void)state;
    begin_worker("w", 36000000);
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        jobq_settlement s;

        snprintf(id, sizeof(id), "j%d", i);
        push_job(id, "q");
        s = settlement(reserve_one("w", "q", id), JOBQ_OP_DEAD);
        s.keep_ms = i ? 10000 : 0;
        assert_int_equal(settle_with("w", &s), 0);
    }
    limit_queue(JOBS);
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "j1", false), 0);
    assert_int_equal(settle_op("w", reserve_one("w", "q", "j1"), JOBQ_OP_DEAD), 0); /* for ever */
    pass_time(11000, 11000);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "j2", true), JOBQ_ELIMIT);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "j2", false), 0);
    limit_queue(JOBS - 1);
    assert_int_equal(push_item(&item), JOBQ_EFULL);
    do {
        assert_ok(jobq__store_maintain(store, &m));
        assert_true(m.handled <= 25);
        handled += m.handled;
    } while (m.more && ++steps < 10);
    assert_int_equal(handled, JOBS - 3);
    assert_true(steps >= 2);
    assert_int_equal(count_jobs("q").dead, 2);
    assert_non_null(find_job("j0"));
    assert_int_equal(find_job("j1")->keep_until_ms, 0);
    assert_int_equal(push_item(&item), 0);
}

/* Rule F4: a worker whose queues are paused asks for none, and still hears when maintenance is
 * due. */
void test_f4_due_of_paused_queues(void **state)
{
    const jobq_slice q = TEXT("q");
    jobq_exchange x = {.worker = TEXT("w"), .lease_ms = 36000000};
    jobq_settlement s;

    (void)state;
    begin_worker("w", 36000000);
    push_job("a", "q");
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DEAD);
    s.keep_ms = 10000;
    x.settle = &s;
    x.settle_count = 1;
    x.queues = &q;
    x.queue_count = x.want = 1;
    x.out = &got;
    assert_ok(jobq__store_exchange(store, &x));
    const int64_t due = x.next_due_ms;

    assert_true(due > x.now_ms && due <= x.now_ms + 10000);
    x.settle_count = x.queue_count = x.want = 0;
    for (int i = 0; i < 3; i++) {
        assert_ok(jobq__store_exchange(store, &x));
        assert_true(x.next_due_ms >= due - 5 && x.next_due_ms <= due + 5);
    }
    pass_time(11000, 11000);
    assert_int_equal(maintain_all().handled, 1);
    assert_ok(jobq__store_exchange(store, &x));
    assert_true(x.next_due_ms == 0 || x.next_due_ms > x.now_ms);
}

/* ---- the audit ------------------------------------------------------------------------------- */

enum { TRAFFIC_MS = 2500, STRAYS_MAX = 100 };

static int64_t work_awhile(int who)
{
    const int64_t end = jobq__clock_mono_ms() + TRAFFIC_MS;
    static const int ops[] = {JOBQ_OP_DONE, JOBQ_OP_BACK, JOBQ_OP_DEAD,     JOBQ_OP_GIVE_BACK,
                              JOBQ_OP_DONE, JOBQ_OP_DONE, JOBQ_OP_FREE_KEY, JOBQ_OP_DONE};
    char worker[8];
    int64_t n = 0;

    snprintf(worker, sizeof(worker), "w%d", who);
    begin_worker(worker, 30000);
    while (jobq__clock_mono_ms() < end) {
        if (reserve_jobs(worker, "q", 5) == 0)
            poll(NULL, 0, 1);
        for (const jobq_record *r = got.first; r; r = r->next, n++) {
            jobq_settlement s = settlement(r, ops[n % 8]);

            s.keep_ms = n % 3 ? 0 : 50;
            s.delay_ms = s.op == JOBQ_OP_BACK && n % 2 ? 20 : 0;
            if (settle_with(worker, &s) != 0)
                _exit(8);
        }
        if (n % 5 == 0)
            maintain_all();
    }
    return n;
}

static int64_t push_awhile(int who)
{
    const int64_t end = jobq__clock_mono_ms() + TRAFFIC_MS;
    int n = 0;

    for (; jobq__clock_mono_ms() < end; n++) {
        char id[40];
        jobq_push item;

        name_job(id, sizeof(id), who, n);
        item = job_item(id, "q");
        item.fresh_id = n % 2;
        item.priority = n % 3;
        item.delay_ms = n % 7 == 0 ? 30 : 0;
        if (n % 3 == 0) {
            item.unique = n % 2 ? TEXT("key 1") : TEXT("key 2");
            item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
        }
        if (jobq__store_push(store, &item, 1) < 0)
            _exit(7);
    }
    return n;
}

static size_t audit_all(size_t limit, int64_t *seen, char *said, size_t room)
{
    static char cursor[100];
    jobq_audit a = {.queue = TEXT("q"), .limit = limit, .out = &shown};
    size_t strays = 0;

    *seen = 0;
    do {
        jobq__batch_reset(&shown);
        assert_ok(jobq__store_audit(store, &a));
        for (int i = 0; i < 5; i++)
            *seen += a.seen[i];
        for (const jobq_stray *s = a.strays; s; s = s->next, strays++)
            snprintf(said, room, "%.*s %x%s", (int)s->id.n, (const char *)s->id.p, s->states,
                     s->ownerless ? " nobody's" : "");
        if (a.next.p) {
            memcpy(cursor, a.next.p, a.next.n);
            a.after = jobq__slice(cursor, a.next.n);
        }
    } while (a.next.p);
    return strays;
}

/* Rule N5: traffic does not show. */
void test_n5_audit_while_traffic_flows(void **state)
{
    const int64_t end = jobq__clock_mono_ms() + TRAFFIC_MS;
    process others[4];
    char said[200] = "";
    int64_t seen;

    (void)state;
    for (int i = 0; i < 4; i++)
        others[i] = run_beside(i < 2 ? push_awhile : work_awhile, i);
    for (size_t round = 0; jobq__clock_mono_ms() < end; round++)
        if (audit_all(round % 2 ? 7 : 200, &seen, said, sizeof(said)))
            fail_msg("a stray: %s", said);
    for (int i = 0; i < 4; i++)
        assert_true(result_of(others[i]) > 20);
    assert_int_equal(audit_all(50, &seen, said, sizeof(said)), 0);
    assert_true(seen > 0);
}

/* ---- keys under fire ------------------------------------------------------------------------- */

enum { KEYS = 6, KEY_PUSHERS = 3, KEY_WORKERS = 3, FIRE_MS = 3000, KEY_LEASE_MS = 400 };

/* Of each key: the newest job pushed and the newest one run, as those say who did it. */
typedef struct {
    int pushed[KEYS], run[KEYS];
} key_ledger;

static key_ledger *ledger;

static int64_t push_keys(int who)
{
    const int64_t end = jobq__clock_mono_ms() + FIRE_MS;
    int n = 0;

    for (; jobq__clock_mono_ms() < end; n++) {
        const int key = who + KEY_PUSHERS * (n % (KEYS / KEY_PUSHERS));
        char id[40], text[8], body[32];
        jobq_push item;

        name_job(id, sizeof(id), who, n);
        snprintf(text, sizeof(text), "key %d", key);
        snprintf(body, sizeof(body), "%d %d", key, n + 1);
        item = job_item(id, "q");
        item.fresh_id = n % 2;
        item.body = TEXT(body);
        item.unique = TEXT(text);
        item.delay_ms = n % 3 == 0 ? 20 : 0;
        item.max_wait_ms = 200;
        item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
        if (jobq__store_push(store, &item, 1) < 0 || (item.result != 0 && item.result != 2))
            _exit(6);
        ledger->pushed[key] = n + 1;
        poll(NULL, 0, n % 4);
    }
    return n;
}

static void run_some(const char *worker)
{
    reserve_jobs(worker, "q", 3);
    for (const jobq_record *r = got.first; r; r = r->next) {
        char text[32];
        int key, n;

        snprintf(text, sizeof(text), "%.*s", (int)r->body.n, (const char *)r->body.p);
        if (sscanf(text, "%d %d", &key, &n) != 2)
            _exit(5);
        if (ledger->run[key] < n)
            ledger->run[key] = n;
        settle_op(worker, r, n % 5 ? JOBQ_OP_DONE : JOBQ_OP_BACK);
    }
}

static pid_t start_worker(void)
{
    pid_t pid = fork();
    char worker[32];

    if (pid != 0)
        return pid;
    snprintf(worker, sizeof(worker), "w%d", (int)getpid());
    for (;;) {
        jobq_renewal r = {.worker = TEXT(worker), .lease_ms = KEY_LEASE_MS};

        jobq__store_renew(store, &r);
        run_some(worker);
        maintain_all();
        poll(NULL, 0, 5);
    }
}

/* What is left when everybody has gone, as long as anything comes. */
static void drain(void)
{
    const int64_t end = jobq__clock_mono_ms() + 30000;

    while (total() > 0 && jobq__clock_mono_ms() < end) {
        maintain_all();
        reserve_jobs("last", "q", 10);
        for (const jobq_record *r = got.first; r; r = r->next) {
            char text[32];
            int key, n;

            snprintf(text, sizeof(text), "%.*s", (int)r->body.n, (const char *)r->body.p);
            assert_int_equal(sscanf(text, "%d %d", &key, &n), 2);
            if (ledger->run[key] < n)
                ledger->run[key] = n;
            assert_int_equal(settle_op("last", r, JOBQ_OP_DONE), 0);
        }
        poll(NULL, 0, 20);
    }
    assert_int_equal(total(), 0);
}

/* Rule B6: while workers are killed at random, the newest job of each key is run in the end, there
 * are never more than a holder and a follower of it, and nobody keeps a key that has ended. */
void test_b6_keys_under_fire(void **state)
{
    const int64_t end = jobq__clock_mono_ms() + FIRE_MS;
    process pushers[KEY_PUSHERS];
    pid_t workers[KEY_WORKERS];
    char said[200] = "";
    int64_t seen;

    (void)state;
    ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(ledger != MAP_FAILED);
    push_job("first", "other");
    for (int i = 0; i < KEY_PUSHERS; i++)
        pushers[i] = run_beside(push_keys, i);
    for (int i = 0; i < KEY_WORKERS; i++)
        workers[i] = start_worker();
    for (int round = 0; jobq__clock_mono_ms() < end; round++) {
        const int victim = round % KEY_WORKERS;

        poll(NULL, 0, 40 + round * 37 % 60);
        assert_int_equal(kill(workers[victim], SIGKILL), 0);
        assert_int_equal(waitpid(workers[victim], NULL, 0), workers[victim]);
        workers[victim] = start_worker();
        assert_true(total() <= 2 * KEYS);
    }
    for (int i = 0; i < KEY_PUSHERS; i++)
        assert_true(result_of(pushers[i]) > 20);
    for (int i = 0; i < KEY_WORKERS; i++) {
        kill(workers[i], SIGKILL);
        waitpid(workers[i], NULL, 0);
    }
    if (audit_all(50, &seen, said, sizeof(said)))
        fail_msg("a stray: %s", said);
    drain();
    for (int i = 0; i < KEYS; i++) {
        char text[8];
        jobq_push item = job_item("free", "q");

        assert_true(ledger->pushed[i] > 0);
        assert_int_equal(ledger->run[i], ledger->pushed[i]);
        snprintf(text, sizeof(text), "key %d", i);
        item.unique = TEXT(text);
        assert_int_equal(push_item(&item), 0);
        assert_int_equal(settle_op("last", reserve_one("last", "q", "free"), JOBQ_OP_DONE), 0);
    }
    munmap(ledger, sizeof(*ledger));
}
