/* SPDX-License-Identifier: MIT
 *
 * What handles and jobs say of themselves: counters (rule N2), the first push (rule N3), leases in
 * the caller's hands (rules O1, O2).
 */
#include <jobqueue/jobqueue.h>

#include "core/queue.h"
#include "driver/store.h"
#include "store.h"
#include "util/clock.h"
#include "util/error.h"

static void assert_counted(int64_t (*counter)(const void *of, size_t i, const char **name),
                           const void *of, const char *wanted)
{
    char said[512] = "";
    const char *name;
    size_t n = 0;

    for (size_t i = 0; counter(of, i, &name) >= 0 && name; i++)
        if (counter(of, i, NULL) && !strstr(name, "_ms")) /* a span differs each time */
            n += (size_t)snprintf(said + n, sizeof(said) - n, "%s=%lld ", name,
                                  (long long)counter(of, i, NULL));
    assert_string_equal(said, wanted);
}

static int64_t of_queue(const void *queue, size_t i, const char **name)
{
    return jobq_queue_counter(queue, i, name);
}

static int64_t of_worker(const void *worker, size_t i, const char **name)
{
    return jobq_worker_counter(worker, i, name);
}

static int be_away(void *store, jobq_push *items, size_t n)
{
    (void)store;
    (void)items;
    (void)n;
    return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "fake", 7, "the store is away");
}

static void end_next(jobq_queue *queue, jobq_ending ending)
{
    jobq_job *job = reserve(queue);

    assert_non_null(job);
    assert_ok(jobq_job_settle(job, ending, 0));
    jobq_job_free(job);
}

/* rule N2: every call counts once, under the name of what came of it. */
static void a_handle_counts(void **state)
{
    jobq_queue *queue = *state;
    const jobq_driver *real = queue->store->driver;
    jobq_driver fake = *real;
    jobq_message *m = message("n", "id", "twice");

    assert_counted(of_queue, queue, "");
    assert_null(reserve(queue));
    assert_counted(of_queue, queue, "");
    assert_ok(jobq_queue_push(queue, m));
    assert_code(jobq_queue_push(queue, m), JOBQ_EEXISTS);
    push(queue, "n", NULL, NULL, NULL);
    assert_counted(of_queue, queue, "pushed=2 push_rejected=1 ");
    end_next(queue, JOBQ_ENDED_RELEASED);
    end_next(queue, JOBQ_ENDED_DONE);
    end_next(queue, JOBQ_ENDED_FAILED);
    end_next(queue, JOBQ_ENDED_FAILED_BY_HANDLER);
    fake.push = be_away;
    queue->store->driver = &fake;
    assert_code(jobq_queue_push(queue, m), JOBQ_EIO);
    queue->store->driver = real;
    jobq_message_free(m);
    jobq_queue_disconnect(queue); /* telling needs no store */
    assert_counted(of_queue, queue,
                   "pushed=2 push_rejected=1 store_failures=1 received=4 done=1 failed=2 "
                   "retried=1 released=1 dead=1 ");
}

/* Takes the next job of "q" in this process; its end comes with finish_one. */
static jobq_job *start_one(jobq_queue *queue, jobq_worker **worker_out)
{
    static const char *const names[] = {"q"};
    jobq_event *event;
    jobq_job *job;

    assert_ok(jobq_worker_new(queue, NULL, worker_out));
    assert_ok(jobq_worker_handle(*worker_out, "n", 1, 1, NULL));
    assert_int_equal(assert_ok(jobq_worker_start_one(*worker_out, names, 1)), JOBQ_ROLE_INLINE);
    assert_int_equal(assert_ok(jobq_worker_next(*worker_out, &job, &event)), JOBQ_STEP_JOB);
    return job;
}

static void finish_one(jobq_worker *worker)
{
    jobq_event *event;
    jobq_job *job;

    assert_int_equal(assert_ok(jobq_worker_next(worker, &job, &event)), JOBQ_STEP_STOP);
    assert_int_equal(assert_ok(jobq_worker_finish(worker)), 0);
}

/* rule N2, for a worker: what its handle pushed, and what became of the jobs of its last run. */
static void a_worker_counts(void **state)
{
    jobq_queue *queue = *state;
    jobq_worker *worker;

    push(queue, "n", NULL, NULL, NULL);
    assert_ok(jobq_job_retry(start_one(queue, &worker), 0));
    finish_one(worker);
    assert_counted(of_worker, worker, "pushed=1 received=1 failed=1 retried=1 ");
    assert_int_equal(jobq_worker_jobs_run(worker), 1);
    jobq_worker_free(worker);
}

/* Takes the job, compares its first push with `pushed_at`, and ends it. */
static void expect_pushed_at(jobq_queue *queue, int64_t pushed_at, int64_t age_ms,
                             jobq_ending ending)
{
    jobq_job *job = reserve(queue);

    assert_non_null(job);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_ENQUEUED_AT_MS), pushed_at);
    assert_true(jobq_job_get(job, JOBQ_JOB_AGE_MS) >= age_ms);
    assert_true(jobq_job_get(job, JOBQ_JOB_AGE_MS) < age_ms + 30000);
    assert_ok(jobq_job_settle(job, ending, 0));
    jobq_job_free(job);
    jobq__clock_shift(60000, 60000);
}

/* rule N3: through a retry, a release, a death and a replay the age counts from the first push. */
static void keeps_the_first_push(void **state)
{
    jobq_queue *queue = *state;
    jobq_info *info;
    const char *ids[1];
    int64_t pushed_at;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    pushed_at = jobq_info_number(info, JOBQ_INFO_ENQUEUED_AT_MS);
    jobq_info_free(info);
    assert_true(pushed_at > 0);
    expect_pushed_at(queue, pushed_at, 0, JOBQ_ENDED_FAILED);
    expect_pushed_at(queue, pushed_at, 60000, JOBQ_ENDED_RELEASED);
    expect_pushed_at(queue, pushed_at, 120000, JOBQ_ENDED_FAILED_BY_HANDLER);
    ids[0] = id;
    assert_int_equal(
        assert_ok((int)jobq_queue_mend_ids(queue, JOBQ_DEAD_RETRY, ids, 1, false, NULL)), 1);
    expect_pushed_at(queue, pushed_at, 180000, JOBQ_ENDED_DONE);
}

static int64_t reserved_until(jobq_queue *queue, const jobq_job *job)
{
    const char *id = jobq_job_id(job);
    jobq_info *info;
    int64_t until;

    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    until = jobq_info_number(info, JOBQ_INFO_RESERVED_UNTIL_MS);
    jobq_info_free(info);
    return until;
}

/* Half a lease passes: extend moves its end by as much. */
static void expect_extended(jobq_queue *queue, jobq_job *job, int64_t half_ms)
{
    int64_t before = reserved_until(queue, job);

    jobq__clock_shift(half_ms, half_ms);
    assert_ok(jobq_job_extend(job));
    assert_true(reserved_until(queue, job) >= before + half_ms - 1);
    assert_false(jobq_job_is_cancelled(job));
}

/* rule O1, after a reserve by hand: held for twice its lease. Rule O2: same id, greater fence. */
static void extends_by_hand(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job;
    int64_t fence;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    job = reserve(queue);
    fence = jobq_job_get(job, JOBQ_JOB_FENCE);
    for (int i = 0; i < 4; i++)
        expect_extended(queue, job, 15000);
    assert_null(reserve(queue));
    assert_ok(jobq_job_release(job, 0));
    jobq_job_free(job);
    job = reserve(queue);
    assert_string_equal(jobq_job_id(job), id);
    assert_true(jobq_job_get(job, JOBQ_JOB_FENCE) > fence);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

/* rule O1, inline. */
static void extends_inline(void **state)
{
    jobq_queue *queue = *state;
    jobq_worker *worker;
    jobq_job *job;

    push(queue, "n", NULL, NULL, NULL);
    job = start_one(queue, &worker);
    for (int i = 0; i < 2; i++)
        expect_extended(queue, job, 10000);
    assert_ok(jobq_job_done(job));
    finish_one(worker);
    jobq_worker_free(worker);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both(a_handle_counts), on_both(a_worker_counts), on_both(keeps_the_first_push),
        on_both(extends_by_hand), on_both(extends_inline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
