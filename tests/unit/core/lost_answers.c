/* SPDX-License-Identifier: MIT
 *
 * Queue handles over a store whose answers get lost (rules B5, C5, K2, O3): pushes whose outcome is
 * unknown, jobs that were taken and never arrived, results that may have been stored.
 */
#include "store.h"

#include "harness/scripted.h"
#include "util/clock.h"

static int set_up(void **state)
{
    int rc = open_memory(state);

    if (rc == 0)
        scripted_make(*state);
    return rc;
}

static int try_reserve(jobq_queue *queue, jobq_job **job_out)
{
    static const char *const names[] = {"q"};

    return jobq_queue_reserve(queue, names, 1, 30000, job_out);
}

/* Rule B5: the error carries the id, nothing is sent twice, and the id says what became of it. */
static void test_b5_push(void **state)
{
    static const struct {
        scripted_moment moment;
        int64_t stored;
    } cases[] = {{SCRIPTED_BEFORE, 0}, {SCRIPTED_AFTER, 1}};
    jobq_queue *queue = *state;

    for (size_t i = 0; i < 2; i++) {
        jobq_message *m = message("a", NULL, NULL);
        const int calls = scripted_count(SCRIPTED_PUSH);

        scripted_fail(SCRIPTED_PUSH, 1, cases[i].moment, JOBQ_EUNKNOWN);
        assert_code(jobq_queue_push(queue, m), JOBQ_EUNKNOWN);
        assert_string_equal(jobq_error_subject(jobq_error_last()), jobq_message_id(m));
        assert_int_equal(strlen(jobq_message_id(m)), 36);
        assert_int_equal(scripted_count(SCRIPTED_PUSH), calls + 1);
        assert_int_equal(stat(queue, JOBQ_STAT_READY), cases[i].stored);
        jobq_message_free(m);
    }
}

/* The same for many: each of the call's messages is in doubt under its own id. */
static void test_b5_push_many(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m[3];

    for (int i = 0; i < 3; i++)
        m[i] = message("a", NULL, NULL);
    scripted_fail(SCRIPTED_PUSH, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_code(jobq_queue_push_many(queue, m, 3), JOBQ_EUNKNOWN);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jobq_message_result(m[i]), JOBQ_EUNKNOWN);
        assert_string_equal(jobq_error_subject(jobq_message_error(m[i])), jobq_message_id(m[i]));
        jobq_message_free(m[i]);
    }
    assert_int_equal(stat(queue, JOBQ_STAT_READY), 3);
}

/* Rules B4, B5: the answer to the connection's capacity is lost. No job was sent, so none is in
 * doubt; the next push tells it again. */
static void test_b5_capacity(void **state)
{
    static const scripted_moment moments[] = {SCRIPTED_BEFORE, SCRIPTED_AFTER};
    jobq_queue *queue;
    jobq_message *m[2];

    (void)state;
    for (int many = 0; many < 2; many++)
        for (size_t i = 0; i < 2; i++) {
            assert_ok(jobq_queue_new("memory:?capacity=5", NULL, &queue));
            scripted_make(queue);
            m[0] = message("a", NULL, NULL);
            m[1] = message("b", NULL, NULL);
            scripted_fail(SCRIPTED_CAPACITY, 1, moments[i], JOBQ_EUNKNOWN);
            assert_code(many ? jobq_queue_push_many(queue, m, 2) : jobq_queue_push(queue, m[0]),
                        JOBQ_EIO);
            assert_true(jobq_error_is_retryable(jobq_message_error(m[0])));
            assert_int_equal(jobq_message_result(m[many]), JOBQ_EIO);
            assert_int_equal(scripted_count(SCRIPTED_PUSH), 0);
            assert_ok(many ? jobq_queue_push_many(queue, m, 2) : jobq_queue_push(queue, m[0]));
            assert_int_equal(stat(queue, JOBQ_STAT_READY), 1 + many);
            assert_int_equal(stat(queue, JOBQ_STAT_CAPACITY), 5);
            jobq_message_free(m[0]);
            jobq_message_free(m[1]);
            jobq_queue_free(queue);
        }
}

/* Rule K2: taken, never arrived. The next reserve asks, gives it back, and gets it: uncounted, and
 * without waiting for a lease to end. */
static void test_k2_reserve_unheard(void **state)
{
    static const int codes[] = {JOBQ_EUNKNOWN, JOBQ_EIO, JOBQ_ETIMEOUT};
    jobq_queue *queue = *state;

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        jobq_job *job = NULL;
        char id[129];

        push(queue, "a", NULL, NULL, id);
        scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, codes[i]);
        assert_code(try_reserve(queue, &job), codes[i]);
        assert_int_equal(stat(queue, JOBQ_STAT_RESERVED), 1);
        scripted_fail(SCRIPTED_HELD, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
        assert_code(try_reserve(queue, &job), JOBQ_ECONNECT);
        assert_int_equal(try_reserve(queue, &job), 1);
        assert_string_equal(jobq_job_id(job), id);
        assert_int_equal(jobq_job_get(job, JOBQ_JOB_DELIVERIES), 2);
        assert_int_equal(jobq_job_get(job, JOBQ_JOB_LOSSES), 0);
        assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), 1);
        assert_ok(jobq_job_done(job));
        jobq_job_free(job);
        assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    }
}

/* Nothing was taken: nothing is given back, and nobody is asked. */
static void test_k2_reserve_refused(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job = NULL;

    push(queue, "a", NULL, NULL, NULL);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
    assert_code(try_reserve(queue, &job), JOBQ_ECONNECT);
    assert_int_equal(try_reserve(queue, &job), 1);
    assert_int_equal(scripted_count(SCRIPTED_HELD), 0);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

/* Rule C5: after trouble the caller takes nothing back for a lease. */
static void test_c5_grace(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job = NULL;

    assert_int_equal(try_reserve(queue, &job), 0);
    assert_true(scripted_took_back());
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_BEFORE, JOBQ_ECONNECT);
    jobq__clock_shift(2000, 2000); /* maintenance is due again */
    assert_code(try_reserve(queue, &job), JOBQ_ECONNECT);
    jobq__clock_shift(20000, 20000);
    assert_int_equal(try_reserve(queue, &job), 0);
    assert_false(scripted_took_back());
    jobq__clock_shift(20000, 20000);
    assert_int_equal(try_reserve(queue, &job), 0);
    assert_true(scripted_took_back());
}

/* The end was stored, its answer is lost: said so under the job's id, also when it is tried again
 * and refused. */
static void test_k2_done_unheard(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job;

    push(queue, "a", NULL, NULL, NULL);
    job = reserve(queue);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_AFTER, JOBQ_EUNKNOWN);
    assert_code(jobq_job_done(job), JOBQ_EUNKNOWN);
    assert_string_equal(jobq_error_subject(jobq_error_last()), jobq_job_id(job));
    assert_code(jobq_job_done(job), JOBQ_EUNKNOWN); /* no lost lease */
    assert_string_equal(jobq_error_subject(jobq_error_last()), jobq_job_id(job));
    assert_said("may or may not have been stored");
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    jobq_job_free(job);
}

/* It was not: trying again settles it, once. */
static void test_k2_done_again(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job;

    push(queue, "a", NULL, NULL, NULL);
    job = reserve(queue);
    scripted_fail(SCRIPTED_EXCHANGE, 1, SCRIPTED_BEFORE, JOBQ_EUNKNOWN);
    assert_code(jobq_job_done(job), JOBQ_EUNKNOWN);
    assert_ok(jobq_job_extend(job));
    assert_ok(jobq_job_done(job));
    assert_code(jobq_job_done(job), JOBQ_EINVAL);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    jobq_job_free(job);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_b5_push),
        TEST(test_b5_push_many),
        cmocka_unit_test(test_b5_capacity),
        TEST(test_k2_reserve_unheard),
        TEST(test_k2_reserve_refused),
        TEST(test_c5_grace),
        TEST(test_k2_done_unheard),
        TEST(test_k2_done_again),
    };

    return cmocka_run_group_tests_name("core/lost_answers", tests, NULL, NULL);
}
