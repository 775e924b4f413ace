/* SPDX-License-Identifier: MIT
 *
 * Messages and pushing: forms of rule A1, limits of rules A4, A5, A8, and rules B1, B3, B5, B6, B9,
 * N2.
 */
#include <jobqueue/jobqueue.h>

#include "core/queue.h"
#include "driver/store.h"
#include "store.h"
#include "util/alloc.h"
#include "util/error.h"

/* ---- forms (rule A1, case B059) -------------------------------------------------------------- */

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct {
    int (*check)(const char *p, size_t n);
    const char *text;
    bool good;
} forms[] = {
    {jobq__check_name, "mail.send", true},
    {jobq__check_name, "App\\Jobs\\Gone", true},
    {jobq__check_name, "\xe9\x9b\xbb\xe5\xad\x90 {x:y}, z", true},
    {jobq__check_name, HUNDRED HUNDRED HUNDRED, false},
    {jobq__check_name, "", false},
    {jobq__check_name, "a\nb", false},
    {jobq__check_name, "a\x7f", false},
    {jobq__check_name,
     "a\xc2\x9b"
     "b",
     false}, /* C1 */
    {jobq__check_name, "a\xff", false},
    {jobq__check_queue, "mail:{high} \xd0\xbf\xd0\xbe\xd1\x87\xd1\x82\xd0\xb0", true},
    {jobq__check_queue, "}x", true},
    {jobq__check_queue, "a b", true},
    {jobq__check_queue, "", false},
    {jobq__check_queue, "a,b", false},
    {jobq__check_queue, " a", false},
    {jobq__check_queue, "a ", false},
    {jobq__check_queue, "a\xe3\x80\x80", false},
    {jobq__check_queue, "a\t", false},
    {jobq__check_queue, HUNDRED TEN TEN "12345678", true},
    {jobq__check_queue, HUNDRED TEN TEN "123456789", false},
    {jobq__check_id, "a", true},
    {jobq__check_id, "order-7.A_b:c", true},
    {jobq__check_id, HUNDRED TEN TEN "12345678", true},
    {jobq__check_id, HUNDRED TEN TEN "123456789", false},
    {jobq__check_id, "", false},
    {jobq__check_id, "_a", false},
    {jobq__check_id, "a b", false},
    {jobq__check_id, "\xc3\xa9", false},
    {jobq__check_unique, "anything, \x01 goes", true},
    {jobq__check_unique, "", false},
};

static void checks_forms(void **state)
{
    char *huge = malloc(65536);

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if ((forms[i].check(forms[i].text, strlen(forms[i].text)) == 0) != forms[i].good)
            fail_msg("row %zu: \"%s\"", i, forms[i].text);
    memset(huge, 'x', 65536);
    assert_code(jobq__check_name(huge, 65536), JOBQ_EINVAL);
    assert_said("65536 bytes");
    assert_code(jobq__check_name(NULL, 0), JOBQ_EINVAL);
    assert_code(jobq__check_name("a\0b", 3), JOBQ_EINVAL);
    free(huge);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void refuses_messages(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = jobq_message_new();
    char big[8193];

    assert_code(jobq_queue_push(queue, m), JOBQ_EINVAL);
    assert_said("no name");
    assert_code(jobq_message_set_name(m, "", 0), JOBQ_EINVAL);
    assert_ok(jobq_message_set_name(m, "n", 1));
    assert_code(jobq_message_set_body(m, 7, "x", 1), JOBQ_EINVAL);
    memset(big, 'c', sizeof(big));
    assert_code(jobq_message_add_context(m, "k", 1, big, sizeof(big)), JOBQ_EINVAL);
    assert_said("8192");
    assert_ok(jobq_message_add_context(m, "k", 1, big, 8191));
    assert_code(jobq_message_add_context(m, "l", 1, "", 0), JOBQ_EINVAL);
    assert_code(jobq_message_add_context(m, "k", 1, "", 0), JOBQ_EINVAL);
    assert_code(jobq_message_add_context(m, "", 0, "v", 1), JOBQ_EINVAL);
    assert_code(jobq_message_add_context(m, "\xff", 1, "v", 1), JOBQ_EINVAL);
    assert_ok(jobq_conf_set(jobq_message_options(m), "at", "@4000000000", 11));
    assert_code(jobq_queue_push(queue, m), JOBQ_EINVAL); /* rule B9 */
    assert_said("ten years");
    assert_ok(jobq_conf_set(jobq_message_options(m), "at", "@5", 2));
    assert_ok(jobq_conf_set(jobq_message_options(m), "delay", "5", 1));
    assert_code(jobq_queue_push(queue, m), JOBQ_EINVAL);
    assert_said("cannot both");
    assert_null(jobq_message_id(m));
    assert_int_equal(jobq_message_result(m), JOBQ_EINVAL);
    assert_non_null(strstr(jobq_error_message(jobq_message_error(m)), "cannot both"));
    jobq_message_reset(m);
    assert_null(jobq_message_error(m));
    jobq_message_free(m);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
}

/* rules A4, A5 and A8: what cannot be read again is not stored. */
static void refuses_bodies(void **state)
{
    static const struct {
        int format;
        const char *bytes;
        size_t n;
    } bodies[] = {
        {JOBQ_FORMAT_MSGPACK, "", 0},
        {JOBQ_FORMAT_MSGPACK, "\xc0\xc0", 2},
        {JOBQ_FORMAT_MSGPACK, "\x92\x01", 2},
        {JOBQ_FORMAT_MSGPACK, "\xc1", 1},
        {JOBQ_FORMAT_JSON, "", 0},
        {JOBQ_FORMAT_JSON, "{\"a\":1,}", 8},
        {JOBQ_FORMAT_MSGPACK, "\x82\x01\x01\x01\x02", 5}, /* a key twice */
    };
    jobq_queue *queue = *state;
    jobq_message *m = message("n", NULL, NULL);
    char *big = calloc(1, 1048577);

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_ok(jobq_message_set_body(m, bodies[i].format, bodies[i].bytes, bodies[i].n));
        assert_code(jobq_queue_push(queue, m), JOBQ_EPAYLOAD);
    }
    assert_ok(jobq_message_set_body(m, JOBQ_FORMAT_MSGPACK, big, 1048577));
    assert_code(jobq_queue_push(queue, m), JOBQ_EPAYLOAD);
    assert_said("the payload has 1048577 bytes, max_payload allows 1048576");
    jobq_message_reset(m);
    assert_ok(jobq_message_set_name(m, "n", 1));
    assert_ok(jobq_writer_list(jobq_message_payload(m), 2));
    assert_code(jobq_queue_push(queue, m), JOBQ_EPAYLOAD);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    jobq_message_free(m);
    free(big);
}

/* ---- push ------------------------------------------------------------------------------------ */

static void stores_and_answers(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = message("mail.send", "id", "order-7");
    jobq_info *info;
    int64_t before;

    assert_ok(jobq_message_add_context(m, "trace", 5, "a\0b", 3));
    assert_ok(jobq_conf_set_int(jobq_message_options(m), "priority", 9));
    assert_ok(jobq_conf_set_int(jobq_message_options(m), "version", 2));
    assert_ok(jobq_conf_set(jobq_message_options(m), "backoff", "1,2.5", 5));
    assert_ok(jobq_conf_set(jobq_message_options(m), "retry_until", "@1.25", 5));
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    assert_string_equal(jobq_message_id(m), "order-7");
    assert_code(jobq_queue_push(queue, m), JOBQ_EEXISTS); /* rule B5 */
    assert_string_equal(jobq_error_subject(jobq_error_last()), "order-7");
    assert_ok(jobq_queue_find(queue, "order-7", 7, &info));
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_NAME, NULL), "mail.send");
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_QUEUE, NULL), "q");
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_PRIORITY), 9);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_VERSION), 2);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_READY);
    {
        const char *k, *v, *name, *value;
        size_t kn, vn;

        assert_true(jobq_info_context(info, 0, &k, &kn, &v, &vn));
        assert_int_equal(vn, 3);
        assert_memory_equal(v, "a\0b", 3);
        assert_false(jobq_info_context(info, 1, &k, &kn, &v, &vn));
        assert_true(jobq_info_option(info, 0, &name, &value));
        assert_string_equal(name, "backoff");
        assert_string_equal(value, "1,2.5");
        assert_true(jobq_info_option(info, 1, &name, &value));
        assert_string_equal(value, "@1.25");
        assert_false(jobq_info_option(info, 2, &name, &value));
    }
    assert_ok(jobq_info_check(info));
    jobq_info_free(info);
    jobq_message_free(m);
    assert_code(jobq_queue_find(queue, "nothing", 7, &info), JOBQ_ENOTFOUND);
    assert_code(jobq_queue_find(queue, "\xff", 1, &info), JOBQ_ENOTFOUND);
    assert_int_equal(jobq_queue_counter(queue, 0, NULL), 1);
    assert_int_equal(jobq_queue_counter(queue, 1, NULL), 1);

    /* once warm, a push allocates nothing of ours */
    m = message("n", NULL, NULL);
    assert_ok(jobq_queue_push(queue, m));
    before = jobq__alloc_count();
    for (int i = 0; i < 10; i++) {
        jobq_message_reset(m);
        assert_ok(jobq_message_set_name(m, "n", 1));
        assert_ok(jobq_conf_set(jobq_message_options(m), "queue", "q", 1));
        assert_ok(jobq_writer_int(jobq_message_payload(m), i));
        if (strcmp(jobq_queue_driver(queue), "sqlite") == 0)
            assert_ok(jobq_queue_push(queue, m));
    }
    assert_int_equal(jobq__alloc_count(), before);
    jobq_message_free(m);
}

static void holds_unique_keys(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = message("n", "unique", "order 7");
    char first[129];
    jobq_job *job;

    push(queue, "n", "unique", "order 7", first);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1); /* rule B6: waiting */
    assert_string_equal(jobq_message_id(m), first);
    job = reserve(queue);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1); /* running */
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0); /* freed with the end */
    assert_string_not_equal(jobq_message_id(m), first);
    jobq_message_free(m);
}

/* rule B3: judged singly, the accepted ones stored together. */
static void pushes_many(void **state)
{
    enum { N = 1200 };
    jobq_queue *queue = *state;
    jobq_message **m = calloc(N, sizeof(*m));

    for (int i = 0; i < N; i++)
        m[i] = message("n", NULL, NULL);
    jobq_message_reset(m[3]); /* no name */
    assert_ok(jobq_conf_set(jobq_message_options(m[5]), "id", "same", 4));
    assert_ok(jobq_conf_set(jobq_message_options(m[600]), "id", "same", 4));
    assert_ok(jobq_conf_set(jobq_message_options(m[7]), "unique", "k", 1));
    assert_ok(jobq_conf_set(jobq_message_options(m[8]), "unique", "k", 1));
    assert_int_equal(assert_ok(jobq_queue_push_many(queue, m, N)), N - 3);
    assert_int_equal(jobq_message_result(m[3]), JOBQ_EINVAL);
    assert_int_equal(jobq_message_result(m[600]), JOBQ_EEXISTS);
    assert_int_equal(jobq_error_code(jobq_message_error(m[600])), JOBQ_EEXISTS);
    assert_int_equal(jobq_message_result(m[8]), 1);
    assert_string_equal(jobq_message_id(m[8]), jobq_message_id(m[7]));
    assert_int_equal(stat(queue, JOBQ_STAT_READY), N - 3);
    assert_int_equal(assert_ok(jobq_queue_push_many(queue, NULL, 0)), 0);
    for (int i = 0; i < N; i++)
        jobq_message_free(m[i]);
    free(m);
}

/* rules B9 and N1: a delayed job, a past time. */
static void resolves_due_times(void **state)
{
    jobq_queue *queue = *state;

    push(queue, "later", "delay", "3600", NULL);
    push(queue, "past", "at", "2001-01-01T00:00:00Z", NULL);
    push(queue, "future", "at", "2033-01-01T00:00:00Z", NULL);
    assert_int_equal(stat(queue, JOBQ_STAT_DELAYED), 2);
    assert_int_equal(stat(queue, JOBQ_STAT_READY), 1);
}

static void carries_nil(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = jobq_message_new();
    const void *body;
    jobq_job *job;
    size_t n;

    jobq_message_payload(m); /* asked for, not touched */
    assert_ok(jobq_message_set_name(m, "n", 1));
    assert_ok(jobq_conf_set(jobq_message_options(m), "queue", "q", 1));
    assert_ok(jobq_queue_push(queue, m));
    job = reserve(queue);
    body = jobq_job_body(job, &n, NULL);
    assert_int_equal(n, 1);
    assert_memory_equal(body, "\xc0", 1);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    jobq_message_free(m);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

static int lose_the_answer(void *store, jobq_push *items, size_t n)
{
    (void)store;
    (void)items;
    (void)n;
    return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "fake", 7, "the answer was lost");
}

/* rule B5: an answer lost on the way carries the id; case B052. */
static void says_what_is_unknown(void **state)
{
    jobq_queue *queue = *state;
    const jobq_driver *real = queue->store->driver;
    jobq_driver fake = *real;
    jobq_message *m = message("n", NULL, NULL),
                 *more[2] = {message("a", NULL, NULL), message("b", NULL, NULL)};

    fake.push = lose_the_answer;
    queue->store->driver = &fake;
    assert_code(jobq_queue_push(queue, m), JOBQ_EUNKNOWN);
    assert_string_equal(jobq_error_subject(jobq_error_last()), jobq_message_id(m));
    assert_int_equal(jobq_error_native(jobq_error_last()), 7);
    assert_code(jobq_queue_push_many(queue, more, 2), JOBQ_EUNKNOWN);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(jobq_message_result(more[i]), JOBQ_EUNKNOWN);
        assert_string_equal(jobq_error_subject(jobq_message_error(more[i])),
                            jobq_message_id(more[i]));
        jobq_message_free(more[i]);
    }
    queue->store->driver = real;
    assert_int_equal(jobq_queue_counter(queue, JOBQ__COUNT_STORE_FAILURES, NULL), 2);
    assert_int_equal(jobq_queue_counter(queue, JOBQ__COUNT_PUSHED, NULL), 0);
    jobq_message_free(m);
}

static void refuses_handles(void **state)
{
    jobq_conf *w = jobq_conf_new(JOBQ_SCOPE_WORKER, 0);
    jobq_queue *queue = NULL;

    (void)state;
    assert_code(jobq_queue_new("nonsense://x", NULL, &queue), JOBQ_ECONF);
    assert_code(jobq_queue_new("memory:", w, &queue), JOBQ_EINVAL);
    assert_code(jobq_queue_new("memory:?quue=x", NULL, &queue), JOBQ_ECONF);
    assert_said("queue");
    assert_code(jobq_queue_new("memory:?max_payload=0", NULL, &queue), JOBQ_EINVAL);
    assert_null(queue);
    assert_ok(jobq_queue_new("memory:?queue=mail&max_payload=10", NULL, &queue));
    assert_string_equal(jobq_queue_default(queue), "mail");
    assert_true(jobq_queue_ping(queue) >= 0);
    jobq_queue_disconnect(queue);
    jobq_queue_free(queue);
    jobq_queue_free(NULL);
    jobq_message_free(NULL);
    jobq_conf_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_forms), cmocka_unit_test(refuses_handles),
        on_both(refuses_messages),      on_both(refuses_bodies),
        on_both(stores_and_answers),    on_both(holds_unique_keys),
        on_both(pushes_many),           on_both(resolves_due_times),
        on_both(carries_nil),           on_both(says_what_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
