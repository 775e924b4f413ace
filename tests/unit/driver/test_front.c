/* SPDX-License-Identifier: MIT
 *
 * The front of the stores over a driver made for the purpose: opening on first use, forks,
 * splitting, and the repetition of an exchange that was refused because of one value.
 */
#include "harness/harness.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/store.h"
#include "util/error.h"
#include "util/once.h"

enum { BATCH = 4 };

static struct {
    int opened, closed, forgotten, schemas, pushes, exchanges;
    size_t sizes[32];
    int outage_at; /* the n-th exchange or push fails with JOBQ_EIO */
} seen;

static int fake_open(const jobq_driver_config *config, void **store_out)
{
    (void)config;
    seen.opened++;
    *store_out = &seen;
    return 0;
}

static void fake_close(void *store)
{
    seen.closed += store != NULL;
}

static void fake_forget(void *store)
{
    seen.forgotten += store != NULL;
}

static int fake_schema(void *store)
{
    (void)store;
    seen.schemas++;
    return 0;
}

static int fake_push(void *store, jobq_push *items, size_t n)
{
    (void)store;
    seen.sizes[seen.pushes++] = n;
    if (seen.pushes == seen.outage_at)
        return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "fake", 5, "fake: away");
    for (size_t i = 0; i < n; i++)
        items[i].result = 0;
    return 0;
}

/* Refuses the whole exchange when an error text says "bad", or an id says "worst" whatever
 * its texts. */
static int fake_exchange(void *store, jobq_exchange *x)
{
    (void)store;
    seen.sizes[seen.exchanges++] = x->settle_count;
    if (seen.exchanges == seen.outage_at)
        return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "fake", 5, "fake: away");
    for (size_t i = 0; i < x->settle_count; i++)
        if ((x->settle[i].error.n == 3 && memcmp(x->settle[i].error.p, "bad", 3) == 0) ||
            x->settle[i].id.n == 5)
            return jobq__error_set(JOBQ_EINVAL, "fake: refused");
    for (size_t i = 0; i < x->settle_count; i++)
        x->settle[i].result = x->settle[i].token.word[0] == 9 ? JOBQ_ELEASE : 0;
    x->now_ms = (int64_t)x->want;
    x->settled = true;
    return 0;
}

static int fake_renew(void *store, jobq_renewal *r)
{
    (void)store;
    (void)r;
    return 0;
}

static int fake_leave(void *store, jobq_slice worker)
{
    (void)store;
    (void)worker;
    return 0;
}

static int fake_held(void *store, jobq_slice worker, jobq_batch *out)
{
    (void)store;
    (void)worker;
    (void)out;
    return 0;
}

static int fake_all(void *store, jobq_batch *out)
{
    (void)store;
    (void)out;
    return 0;
}

static int fake_wait(void *store, const jobq_wait *w)
{
    (void)store;
    (void)w;
    return 0;
}

static int fake_maintain(void *store, jobq_maintenance *m)
{
    (void)store;
    (void)m;
    return 0;
}

static int fake_list(void *store, jobq_listing *l)
{
    (void)store;
    (void)l;
    return 0;
}

static int fake_counts(void *store, jobq_slice queue, jobq_counts *counts_out)
{
    (void)store;
    (void)queue;
    (void)counts_out;
    return 0;
}

static int fake_mend(void *store, jobq_mending *m)
{
    (void)store;
    (void)m;
    return 0;
}

static int fake_control(void *store, jobq_control *c)
{
    (void)store;
    (void)c;
    return 0;
}

static int fake_cancel(void *store, jobq_cancelling *c)
{
    (void)store;
    (void)c;
    return 0;
}

static int fake_clear(void *store, jobq_clearing *c)
{
    (void)store;
    (void)c;
    return 0;
}

static int fake_find(void *store, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    (void)store;
    (void)queue;
    (void)id;
    (void)out;
    return JOBQ_ENOTFOUND;
}

/* Operations that this suite never gets to. */
#define FAKE(name, argument)                         \
    static int fake_##name(void *store, argument *a) \
    {                                                \
        (void)store;                                 \
        (void)a;                                     \
        return 0;                                    \
    }
FAKE(capacity, jobq_limit)
FAKE(minutes, jobq_minutes)
FAKE(audit, jobq_audit)
FAKE(examine, jobq_examination)
FAKE(effect, jobq_effect)
FAKE(request, jobq_request)

static int fake_book(void *store, const jobq_minute *minutes, size_t n)
{
    (void)store;
    (void)minutes;
    (void)n;
    return 0;
}

static int fake_now(void *store, int64_t *now_ms_out)
{
    (void)store;
    *now_ms_out = 1;
    return 0;
}

static const jobq_driver fake = {
    .abi = JOBQ_DRIVER_ABI,
    .size = sizeof(jobq_driver),
    .name = "fake",
    .schemes = "fake",
    .max_batch = BATCH,
    .max_body = 100,
    .options = "",
    .open = fake_open,
    .close = fake_close,
    .forget = fake_forget,
    .schema = fake_schema,
    .push = fake_push,
    .exchange = fake_exchange,
    .renew = fake_renew,
    .leave = fake_leave,
    .held = fake_held,
    .workers = fake_all,
    .wait = fake_wait,
    .maintain = fake_maintain,
    .find = fake_find,
    .list = fake_list,
    .counts = fake_counts,
    .queues = fake_all,
    .mend = fake_mend,
    .control = fake_control,
    .cancel = fake_cancel,
    .clear = fake_clear,
    .capacity = fake_capacity,
    .book = fake_book,
    .minutes = fake_minutes,
    .audit = fake_audit,
    .examine = fake_examine,
    .effect = fake_effect,
    .request = fake_request,
    .now = fake_now,
};

static jobq__store store;

static int set_up(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    memset(&store, 0, sizeof(store));
    store.driver = &fake;
    store.config.migrate = true;
    return 0;
}

/* A key that a store cannot keep is refused, never dropped (rules B6, C1). */
static void test_missing_features(void **state)
{
    jobq_push item = {.id = jobq__slice_text("a"),
                      .queue = jobq__slice_text("q"),
                      .name = jobq__slice_text("n"),
                      .version = 1};

    (void)state;
    item.unique = jobq__slice_text("key");
    assert_code(jobq__store_push(&store, &item, 1), JOBQ_EUNSUPPORTED);
    assert_said("the fake store has no unique keys");
    item.unique = jobq__slice_text(NULL);
    item.priority = 5;
    assert_code(jobq__store_push(&store, &item, 1), JOBQ_EUNSUPPORTED);
    assert_said("the fake store has no priorities");
    assert_int_equal(seen.pushes, 0);
    item.priority = 0;
    assert_ok(jobq__store_push(&store, &item, 1));
}

static void test_opens_once(void **state)
{
    int64_t now_ms;

    (void)state;
    assert_ok(jobq__store_now(&store, &now_ms));
    assert_ok(jobq__store_now(&store, &now_ms));
    assert_int_equal(seen.opened, 1);
    assert_int_equal(seen.schemas, 1);
    jobq__store_disconnect(&store);
    assert_int_equal(seen.closed, 1);
    assert_ok(jobq__store_now(&store, &now_ms));
    assert_int_equal(seen.opened, 2);
}

/* rule K4. */
static void test_k4_child_forgets(void **state)
{
    int64_t now_ms;
    int status;
    pid_t pid;

    (void)state;
    assert_ok(jobq__store_now(&store, &now_ms));
    pid = fork();
    if (pid == 0) {
        int rc = jobq__store_now(&store, &now_ms);

        _exit(rc == 0 && seen.forgotten == 1 && seen.closed == 0 && seen.opened == 2 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_ok(jobq__store_now(&store, &now_ms));
    assert_int_equal(seen.opened, 1);
}

static void test_push_is_split(void **state)
{
    jobq_push items[10];

    (void)state;
    memset(items, 0, sizeof(items));
    for (int i = 0; i < 10; i++)
        items[i] = (jobq_push){.id = jobq__slice("i", 1),
                               .queue = jobq__slice("q", 1),
                               .name = jobq__slice("n", 1),
                               .version = 1};
    assert_ok(jobq__store_push(&store, items, 10));
    assert_int_equal(seen.pushes, 3);
    assert_int_equal(seen.sizes[0], 4);
    assert_int_equal(seen.sizes[2], 2);
    seen.outage_at = 5; /* the second of the next three */
    assert_code(jobq__store_push(&store, items, 10), JOBQ_EIO);
    for (int i = 0; i < 10; i++)
        assert_int_equal(items[i].result, i < BATCH ? 0 : JOBQ_EIO);
}

static jobq_exchange exchange_of(jobq_settlement *s, size_t n, const jobq_slice *queue, size_t want)
{
    jobq_exchange x = {.worker = jobq__slice("w", 1),
                       .lease_ms = 1000,
                       .settle = s,
                       .settle_count = n,
                       .queues = queue,
                       .queue_count = queue ? 1 : 0,
                       .want = want};

    return x;
}

static void test_exchange_is_split(void **state)
{
    jobq_slice queue = jobq__slice("q", 1);
    jobq_settlement s[10] = {0};
    jobq_exchange x = exchange_of(s, 10, &queue, 100);

    (void)state;
    s[9].token.word[0] = 9;
    assert_ok(jobq__store_exchange(&store, &x));
    assert_int_equal(seen.exchanges, 3);
    assert_int_equal(x.now_ms, 2); /* what the last part had room for */
    assert_int_equal(s[9].result, JOBQ_ELEASE);
    assert_true(x.settled);
}

/* One bad value cannot block a batch: repeated one by one, the last time without the texts. */
static void test_one_bad_value(void **state)
{
    jobq_slice queue = jobq__slice("q", 1);
    jobq_settlement s[4] = {{.result = 7},
                            {.error = jobq__slice("bad", 3)},
                            {.id = jobq__slice("worst", 5)},
                            {.token = {{9, 0, 0}}}};
    jobq_exchange x = exchange_of(s, 4, &queue, 3);

    (void)state;
    assert_ok(jobq__store_exchange(&store, &x));
    assert_int_equal(s[0].result, 0);
    assert_int_equal(s[1].result, 0);
    assert_int_equal(s[2].result, JOBQ_EINVAL);
    assert_int_equal(s[3].result, JOBQ_ELEASE);
    assert_true(x.settled);
    assert_int_equal(x.now_ms, 0); /* no room was left beside four settlements */
    assert_null(jobq_error_last());
    assert_int_equal(s[1].error.n, 3); /* the caller's own is untouched */
}

/* Rule C3: the store goes away while a refused batch is repeated one by one. What was settled has
 * its answer, so that nobody settles it again and takes the refusal for a lost lease. */
static void test_outage_between_single_ones(void **state)
{
    jobq_settlement s[4] = {
        {.token = {{9, 0, 0}}}, {.result = 7}, {.error = jobq__slice("bad", 3)}, {.result = 7}};

    (void)state;
    for (int outage_at = 1; outage_at <= 6; outage_at++) {
        jobq_exchange x = exchange_of(s, 4, NULL, 0);
        const int answered[] = {0, 0, 1, 2, 2, 3}; /* by then; the third one is sent twice */

        memset(&seen, 0, sizeof(seen));
        seen.outage_at = outage_at;
        assert_code(jobq__store_exchange(&store, &x), JOBQ_EIO);
        assert_false(x.settled);
        for (int i = 0; i < 4; i++)
            assert_int_equal(s[i].result, i >= answered[outage_at - 1] ? JOBQ__UNANSWERED
                                          : i == 0                     ? JOBQ_ELEASE
                                                                       : 0);
    }
}

static void test_outage_is_passed_up(void **state)
{
    jobq_settlement s[2] = {{.error = jobq__slice("bad", 3)}, {.op = JOBQ_OP_DONE}};
    jobq_exchange x = exchange_of(s, 2, NULL, 0);

    (void)state;
    seen.outage_at = 2;
    assert_code(jobq__store_exchange(&store, &x), JOBQ_EIO);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_false(x.settled);
}

static void test_incoherent_drivers(void **state)
{
    jobq_driver bad = fake;

    (void)state;
    assert_ok(jobq__driver_check(&fake));
    bad.abi = 99;
    assert_code(jobq__driver_check(&bad), JOBQ_EUNSUPPORTED);
    bad = fake;
    bad.size = 8;
    assert_code(jobq__driver_check(&bad), JOBQ_EUNSUPPORTED);
    bad = fake;
    bad.mend = NULL;
    assert_code(jobq__driver_check(&bad), JOBQ_EUNSUPPORTED);
    assert_said("lacks a required operation");
    bad = fake;
    bad.open = NULL;
    assert_code(jobq__driver_check(&bad), JOBQ_EUNSUPPORTED);
    bad = fake;
    bad.max_batch = 0;
    assert_code(jobq__driver_check(&bad), JOBQ_EUNSUPPORTED);
    bad = fake;
    bad.options = NULL;
    assert_code(jobq__driver_check(&bad), JOBQ_EUNSUPPORTED);
    assert_said("does not say its options");
}

static void test_arguments(void **state)
{
    jobq_exchange x = exchange_of(NULL, 0, NULL, 0);
    jobq_listing l = {.limit = 0};
    jobq_renewal r = {.worker = jobq__slice("w", 1)};

    (void)state;
    x.lease_ms = 0;
    assert_code(jobq__store_exchange(&store, &x), JOBQ_EINVAL);
    assert_said("lease");
    assert_code(jobq__store_renew(&store, &r), JOBQ_EINVAL);
    assert_code(jobq__store_list(&store, &l), JOBQ_EINVAL);
    assert_int_equal(seen.opened, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_missing_features, set_up),
        cmocka_unit_test_setup(test_opens_once, set_up),
        cmocka_unit_test_setup(test_k4_child_forgets, set_up),
        cmocka_unit_test_setup(test_push_is_split, set_up),
        cmocka_unit_test_setup(test_exchange_is_split, set_up),
        cmocka_unit_test_setup(test_one_bad_value, set_up),
        cmocka_unit_test_setup(test_outage_between_single_ones, set_up),
        cmocka_unit_test_setup(test_outage_is_passed_up, set_up),
        cmocka_unit_test_setup(test_incoherent_drivers, set_up),
        cmocka_unit_test_setup(test_arguments, set_up),
    };

    return cmocka_run_group_tests_name("front", tests, NULL, NULL);
}
