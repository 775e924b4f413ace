/* SPDX-License-Identifier: MIT
 *
 * What the console asks of the library: the workers of a store (rule N4) and the doctor's findings
 * (rule N5), also when memory is short.
 */
#include "harness/harness.h"

#include <string.h>

#include <jobqueue/inspect.h>

#include "util/alloc.h"

static jobq_queue *open_memory(const char *dsn)
{
    jobq_queue *queue = NULL;

    assert_ok(jobq_queue_new(dsn, NULL, &queue));
    return queue;
}

/* A job in somebody's hand, so that the store has a worker. */
static jobq_job *take_job(jobq_queue *queue)
{
    jobq_message *m = jobq_message_new();
    jobq_job *job = NULL;

    assert_non_null(m);
    assert_ok(jobq_message_set_name(m, "a", 1));
    assert_ok(jobq_queue_push(queue, m));
    jobq_message_free(m);
    assert_int_equal(jobq_queue_reserve(queue, NULL, 0, 30000, &job), 1);
    return job;
}

static void test_n4_somebody_who_reserves_by_hand(void **state)
{
    jobq_queue *queue = open_memory("memory:");
    jobq_job *job = take_job(queue);
    jobq_workers *w;

    (void)state;
    assert_ok(jobq_queue_workers(queue, &w));
    assert_int_equal(jobq_workers_count(w), 1);
    assert_non_null(jobq_workers_text(w, 0, JOBQ_WORKERS_ID));
    assert_int_equal(jobq_workers_number(w, 0, JOBQ_WORKERS_HELD), 1);
    assert_int_equal(jobq_workers_number(w, 0, JOBQ_WORKERS_LEASE_MS), 30000);
    assert_null(jobq_workers_queue(w, 0, 0));
    assert_null(jobq_workers_name(w, 0, 0));
    assert_null(jobq_workers_text(w, 1, JOBQ_WORKERS_ID)); /* past the end */
    assert_int_equal(jobq_workers_number(w, 1, JOBQ_WORKERS_PID), 0);
    jobq_workers_free(w);
    jobq_job_free(job);
    jobq_queue_free(queue);
}

static void test_workers_memory_short(void **state)
{
    jobq_queue *queue = open_memory("memory:");
    jobq_job *job = take_job(queue);
    jobq_workers *w = NULL;
    int rc = JOBQ_ENOMEM;

    (void)state;
    for (int64_t n = 1; rc == JOBQ_ENOMEM && n < 100; n++) {
        jobq__alloc_fail_at(n, 0);
        rc = jobq_queue_workers(queue, &w);
        jobq__alloc_fail_at(0, 0);
        assert_true(rc == 0 || w == NULL);
    }
    assert_ok(rc);
    jobq_workers_free(w);
    jobq_job_free(job);
    jobq_queue_free(queue);
}

typedef struct {
    const char *check;
    jobq_finding_grade grade;
    size_t count, seen;
} wanted;

static void look_for(void *payload, const jobq_finding *f)
{
    wanted *w = payload;

    w->count++;
    assert_true(f->check && f->text && *f->text);
    assert_true((f->grade == JOBQ_FINDING_OK) == (f->advice == NULL));
    if (strcmp(f->check, w->check) == 0 && f->grade == w->grade)
        w->seen++;
}

static void test_n5_findings(void **state)
{
    static const struct {
        const char *dsn, *check;
        jobq_finding_grade grade;
        int rc; /* problems, or an error */
    } cases[] = {{"memory:", "connection", JOBQ_FINDING_OK, 0},
                 {"memory:", "clock", JOBQ_FINDING_OK, 0},
                 {"memory:", "schema", JOBQ_FINDING_OK, 0},
                 {"memory:", "workers", JOBQ_FINDING_OK, 0},
                 {"memory:", "library", JOBQ_FINDING_OK, 0},
                 {"memory:", "lease", JOBQ_FINDING_OK, 0},
                 {"memory:?read_timeout=16", "lease", JOBQ_FINDING_NOTE, 0},
                 {"sqlite:no/such/folder/x.db", "connection", JOBQ_FINDING_PROBLEM, JOBQ_ECONNECT}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jobq_queue *queue = open_memory(cases[i].dsn);
        wanted w = {.check = cases[i].check, .grade = cases[i].grade};
        int rc = jobq_queue_doctor(queue, look_for, &w);

        if (rc != cases[i].rc || w.seen != 1)
            fail_msg("%s: %s: %d, seen %zu times", cases[i].dsn, cases[i].check, rc, w.seen);
        assert_int_equal(jobq_error_code(jobq_error_last()), rc);
        jobq_queue_free(queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_n4_somebody_who_reserves_by_hand),
        cmocka_unit_test(test_workers_memory_short),
        cmocka_unit_test(test_n5_findings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
