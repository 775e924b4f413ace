/* SPDX-License-Identifier: MIT
 *
 * Reserving by hand (rules O3, G8): every end, tokens, leases, what is turned away.
 */
#include <jobqueue/jobqueue.h>

#include "core/job.h"
#include "core/queue.h"
#include "driver/store.h"
#include "store.h"
#include "util/clock.h"
#include "util/error.h"

static void ends_as_done(void **state)
{
    jobq_queue *queue = *state;
    char id[129];
    jobq_job *job;
    size_t n;

    assert_null(reserve(queue));
    push(queue, "mail", NULL, NULL, id);
    job = reserve(queue);
    assert_string_equal(jobq_job_id(job), id);
    assert_string_equal(jobq_job_name(job, &n), "mail");
    assert_int_equal(n, 4);
    assert_string_equal(jobq_job_queue(job, NULL), "q");
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), 1);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_DELIVERIES), 1);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_TRIES), 3);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_REMAINING_MS), 60000);
    assert_true(jobq_job_get(job, JOBQ_JOB_AGE_MS) >= 0);
    assert_int_equal(stat(queue, JOBQ_STAT_RESERVED), 1);
    assert_null(reserve(queue)); /* it is taken */
    assert_ok(jobq_job_extend(job));
    assert_ok(jobq_job_done(job));
    assert_code(jobq_job_done(job), JOBQ_EINVAL); /* rule D3 */
    assert_said("settled already (done)");
    assert_code(jobq_job_extend(job), JOBQ_ELEASE);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    jobq_job_free(job);
    jobq_job_free(NULL);
}

static void fails_until_dead(void **state)
{
    jobq_queue *queue = *state;
    const char *class_name, *message, *outcome, *where, *worker;
    int64_t started, ended;
    jobq_info *info;
    char id[129];

    push(queue, "n", "backoff", "0", id);
    for (int i = 1; i <= 3; i++) {
        jobq_job *job = reserve(queue);

        assert_non_null(job);
        assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), i);
        jobq_job_set_error(job, "Oops", 4, "no\0good", 7, "a.php:7", 7, NULL, 0);
        assert_ok(jobq_job_retry(job, -1));
        jobq_job_free(job);
    }
    assert_null(reserve(queue));
    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DEAD);
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_REASON, NULL), "attempts_exhausted");
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_FAILURES), 3);
    assert_true(jobq_info_number(info, JOBQ_INFO_DIED_AT_MS) > 0);
    assert_true(jobq_info_error(info, &class_name, &message, &where, NULL));
    assert_string_equal(class_name, "Oops");
    assert_string_equal(message, "no\\x00good");
    assert_string_equal(where, "a.php:7");
    for (size_t i = 0; i < 3; i++) {
        assert_true(
            jobq_info_attempt(info, i, &started, &ended, &worker, &outcome, &class_name, &message));
        assert_string_equal(outcome, "failed");
        assert_true(started > 0 && ended >= started && strlen(worker) > 3);
    }
    assert_false(jobq_info_attempt(info, 3, NULL, NULL, NULL, NULL, NULL, NULL));
    jobq_info_free(info);
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 1);
}

/* rules C4 and D3: a release costs nothing and keeps its delay; RetryAfter carries its own. */
static void releases_and_delays(void **state)
{
    jobq_queue *queue = *state;
    jobq_info *info;
    jobq_job *job;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    job = reserve(queue);
    assert_code(jobq_job_release(job, -2), JOBQ_EINVAL);
    assert_code(jobq_job_settle(job, (jobq_ending)99, 0), JOBQ_EINVAL);
    assert_ok(jobq_job_release(job, 0));
    jobq_job_free(job);
    job = reserve(queue);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_RELEASES), 1);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), 1);
    assert_ok(jobq_job_retry(job, 3600000));
    jobq_job_free(job);
    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DELAYED);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_FAILURES), 1);
    jobq_info_free(info);
    assert_int_equal(stat(queue, JOBQ_STAT_DELAYED), 1);

    push(queue, "f", NULL, NULL, NULL);
    job = reserve(queue);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 1);
}

/* rule E3: not started by then is dead, or dropped; the next job is handed out in the same call. */
static void turns_expired_jobs_away(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = message("drop", "expires", "@1");
    jobq_job *job;
    char id[129], good[129];
    jobq_info *info;

    push(queue, "dead", "expires", "@1", id);
    assert_ok(jobq_conf_set(jobq_message_options(m), "on_expire", "drop", 4));
    assert_ok(jobq_queue_push(queue, m));
    push(queue, "good", NULL, NULL, good);
    job = reserve(queue);
    assert_string_equal(jobq_job_id(job), good);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_REASON, NULL), "expired");
    jobq_info_free(info);
    assert_code(jobq_queue_find(queue, jobq_message_id(m), strlen(jobq_message_id(m)), &info),
                JOBQ_ENOTFOUND);
    jobq_message_free(m);
}

static void store_raw(jobq_queue *queue, const char *id, const char *header, size_t header_n,
                      const char *body, size_t body_n)
{
    jobq_push item = {.id = jobq__slice_text(id),
                      .queue = jobq__slice_text("q"),
                      .name = jobq__slice_text("n"),
                      .header = jobq__slice(header, header_n),
                      .body = jobq__slice(body, body_n),
                      .version = 1};

    assert_ok(jobq__store_push(queue->store, &item, 1));
    assert_int_equal(item.result, 0);
}

/* rules A7, A9, C6: what cannot be read is dead with its bytes kept, a later protocol waits, the
 * rest goes on. */
static void turns_unreadable_jobs_away(void **state)
{
    jobq_queue *queue = *state;
    const char *message;
    jobq_info *info;
    jobq_job *job;
    size_t n;
    int format;

    store_raw(queue, "bad-header", "\x01m\xc1", 3, "\xc0", 1);
    store_raw(queue, "bad-body", "\x01m", 2, "\x92\x01", 2);
    store_raw(queue, "later", "\x63m\x80", 3, "\xc1\xc1", 2);
    push(queue, "good", NULL, NULL, NULL);
    job = reserve(queue);
    assert_string_equal(jobq_job_name(job, NULL), "good");
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    for (int i = 0; i < 2; i++) {
        const char *id = i ? "bad-body" : "bad-header";

        assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
        assert_string_equal(jobq_info_text(info, JOBQ_INFO_REASON, NULL), "undecodable");
        assert_true(jobq_info_error(info, NULL, &message, NULL, NULL));
        assert_true(strlen(message) > 0);
        assert_code(jobq_info_check(info), JOBQ_EPAYLOAD);
        jobq_info_free(info);
    }
    assert_ok(jobq_queue_find(queue, "later", 5, &info));
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DELAYED);
    assert_memory_equal(jobq_info_body(info, &n, &format), "\xc1\xc1", 2);
    assert_int_equal(n, 2);
    assert_code(jobq_info_check(info), JOBQ_EPAYLOAD);
    jobq_info_free(info);
}

/* rules C3 and C11: a hand-out whose lease ended is refused everything and changes nothing. */
static void loses_its_lease(void **state)
{
    static const char *const names[] = {"q"};
    jobq_queue *queue = *state;
    jobq_job *job = NULL, *again = NULL;
    int64_t end;

    push(queue, "n", NULL, NULL, NULL);
    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    assert_ok(jobq_queue_reserve(queue, names, 1, 100, &job));
    jobq__clock_shift(200, 200);
    end = jobq_test_deadline(10);
    while (assert_ok(jobq_queue_reserve(queue, names, 1, 30000, &again)) == 0) {
        jobq__clock_shift(1000, 1000);
        jobq_test_pause(end, "the job is taken back", __FILE__, __LINE__);
    }
    unsetenv("JOBQUEUE_TEST_SHORT_LEASE");
    assert_string_equal(jobq_job_id(again), jobq_job_id(job));
    assert_int_equal(jobq_job_get(again, JOBQ_JOB_CRASHES), 1); /* G8: it was listed as running */
    assert_true(jobq_job_get(again, JOBQ_JOB_FENCE) > jobq_job_get(job, JOBQ_JOB_FENCE));
    assert_code(jobq_job_extend(job), JOBQ_ELEASE);
    assert_true(jobq_job_is_cancelled(job));
    assert_code(jobq_job_done(job), JOBQ_ELEASE);
    assert_code(jobq_job_extend(job), JOBQ_ELEASE); /* still for that reason: it was not settled */
    assert_said("is lost");
    assert_code(jobq_job_fail(job), JOBQ_ELEASE);
    assert_said("is lost");
    assert_int_equal(stat(queue, JOBQ_STAT_RESERVED), 1);
    assert_ok(jobq_job_done(again));
    jobq_job_free(job);
    jobq_job_free(again);
}

/* A handle that never reserves successfully leaves one record at most, and none after it is freed.
 */
static void leaves_no_records(void **state)
{
    jobq_queue *queue = *state;
    jobq_batch batch = {0};

    for (int i = 0; i < 5; i++) {
        jobq_job *job;

        assert_null(reserve(queue));
        push(queue, "n", NULL, NULL, NULL);
        job = reserve(queue);
        assert_ok(jobq_job_done(job));
        jobq_job_free(job);
    }
    assert_ok(jobq__store_workers(queue->store, &batch));
    assert_int_equal(batch.count, 1);
    jobq__queue_leave_spare(queue);
    jobq__batch_reset(&batch);
    assert_ok(jobq__store_workers(queue->store, &batch));
    assert_int_equal(batch.count, 0);
    jobq__batch_free(&batch);
}

static int be_away(void *store, jobq_exchange *x)
{
    (void)store;
    (void)x;
    return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "fake", 7, "the store is away");
}

/* rule D6: what could not be settled may be settled when the store is back, under the same token.
 */
static void settles_when_the_store_is_back(void **state)
{
    jobq_queue *queue = *state;
    const jobq_driver *real = queue->store->driver;
    jobq_driver fake = *real;
    jobq_job *job, *none = NULL;

    push(queue, "n", NULL, NULL, NULL);
    jobq__clock_shift(5000, 0);
    job = reserve(queue);
    assert_in_range(jobq_queue_counter(queue, JOBQ__COUNT_LAST_AGE, NULL), 5000, 60000);
    fake.exchange = be_away;
    queue->store->driver = &fake;
    assert_code(jobq_job_done(job), JOBQ_EIO);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_code(jobq_queue_reserve(queue, NULL, 0, 1000, &none), JOBQ_EIO);
    assert_true(queue->take_back_from_mono_ms > jobq__clock_mono_ms()); /* rule C5 */
    queue->store->driver = real;
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(jobq_queue_counter(queue, JOBQ__COUNT_DONE, NULL), 1);
}

/* Rule L3: one that is to end is told when it asks, and dead unless it is done; one that was to end
 * before is not handed out. */
static void cancelled_loans_end(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job;
    char id[64];

    push(queue, "n", NULL, NULL, NULL);
    job = reserve(queue);
    snprintf(id, sizeof(id), "%s", jobq_job_id(job));
    assert_false(jobq_job_is_cancelled(job));
    assert_int_equal(assert_ok(jobq_queue_cancel(queue, id, strlen(id), false)), JOBQ_CANCEL_ASKED);
    jobq__clock_shift(900, 900); /* it asks about once a second */
    assert_true(jobq_job_is_cancelled(job));
    assert_false(jobq_job_is_lost(job));
    assert_ok(jobq_job_release(job, 60000));
    jobq_job_free(job);
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 1);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);

    push(queue, "n", NULL, NULL, NULL);
    job = reserve(queue);
    snprintf(id, sizeof(id), "%s", jobq_job_id(job));
    assert_ok(jobq_queue_cancel(queue, id, strlen(id), true));
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_UNSTARTED, -1)); /* it never asked */
    jobq_job_free(job);
    assert_null(reserve(queue));
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 2);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
}

/* Rule F6: a hook that is owed is no job of people's: neither found nor cancelled. */
static void hooks_are_out_of_reach(void **state)
{
    jobq_queue *queue = *state;
    jobq_batch hooks = {.count = 0};
    jobq_listing l = {.queue = jobq__slice("\1q", 2), .limit = 10, .out = &hooks};
    jobq_info *info = NULL;
    jobq_slice hook;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    assert_int_equal(assert_ok(jobq_queue_cancel(queue, id, strlen(id), false)), JOBQ_CANCELLED);
    assert_ok(jobq__store_list(queue->store, &l));
    assert_int_equal(hooks.count, 1);
    hook = hooks.first->id;
    assert_code(jobq_queue_find(queue, hook.p, hook.n, &info), JOBQ_ENOTFOUND);
    assert_code(jobq_queue_cancel(queue, hook.p, hook.n, true), JOBQ_ENOTFOUND);
    assert_said("no waiting or running job has the id");
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 1);
    jobq__batch_free(&hooks);
}

/* Rule L1: a loop of one's own obeys pauses, too. */
static void takes_nothing_from_paused_queues(void **state)
{
    static const char *const both[] = {"p", "q"};
    jobq_queue *queue = *state;
    jobq_job *job = NULL;

    push(queue, "n", NULL, NULL, NULL);
    assert_ok(jobq_queue_pause(queue, "q", 1, 0));
    assert_null(reserve(queue));
    assert_ok(jobq_queue_resume(queue, "q", 1));
    jobq__clock_shift(600, 600); /* it looks about twice a second while all are paused */
    job = reserve(queue);
    assert_non_null(job);
    assert_ok(jobq_job_settle(job, JOBQ_ENDED_UNSTARTED, -1));
    jobq_job_free(job);
    assert_int_equal(assert_ok(jobq_queue_reserve(queue, both, 1, 1000, &job)), 0);
    assert_ok(jobq_queue_pause(queue, NULL, 0, 5000)); /* told by the answer that brings a job */
    assert_null(reserve(queue));
    assert_int_equal(stat(queue, JOBQ_STAT_READY), 1);
    assert_int_equal(stat(queue, JOBQ_STAT_RESERVED), 0);
    assert_int_equal(assert_ok(jobq_queue_reserve(queue, both, 2, 1000, &job)), 0);
    jobq__clock_shift(5001, 5001);
    job = reserve(queue);
    assert_int_equal(jobq_job_get(job, JOBQ_JOB_ATTEMPT), 1);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

/* Rule L1: while another queue of the list is open, nothing else looks for the end of a pause. */
static void takes_from_a_resumed_queue_beside_an_open_one(void **state)
{
    static const char *const both[] = {"p", "q"};
    jobq_queue *queue = *state;
    jobq_job *job = NULL;

    push(queue, "n", NULL, NULL, NULL);
    assert_ok(jobq_queue_pause(queue, "q", 1, 0));
    assert_int_equal(assert_ok(jobq_queue_reserve(queue, both, 2, 1000, &job)), 0);
    assert_ok(jobq_queue_resume(queue, "q", 1));
    assert_int_equal(assert_ok(jobq_queue_reserve(queue, both, 2, 1000, &job)), 1);
    assert_string_equal(jobq_job_queue(job, NULL), "q");
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

static void refuses_arguments(void **state)
{
    static const char *const names[] = {"q", "a,b"};
    jobq_queue *queue = *state;
    jobq_job *job = NULL;

    assert_code(jobq_queue_reserve(queue, names, 1, 999, &job), JOBQ_EINVAL);
    assert_said("lease must be seconds from 1 to 86400");
    assert_code(jobq_queue_reserve(queue, names, 1, 0, &job), JOBQ_EINVAL);
    assert_code(jobq_queue_reserve(queue, names, 2, 1000, &job), JOBQ_EINVAL);
    assert_code(jobq_queue_reserve(queue, names, 1, 1000, NULL), JOBQ_EINVAL);
    assert_null(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both(ends_as_done),
        on_both(fails_until_dead),
        on_both(releases_and_delays),
        on_both(turns_expired_jobs_away),
        on_both(turns_unreadable_jobs_away),
        on_both(loses_its_lease),
        on_both(leaves_no_records),
        on_both(settles_when_the_store_is_back),
        on_both(cancelled_loans_end),
        on_both(hooks_are_out_of_reach),
        on_both(takes_nothing_from_paused_queues),
        on_both(takes_from_a_resumed_queue_beside_an_open_one),
        on_both(refuses_arguments),
    };

    unsetenv("JOBQUEUE_TEST_SHORT_LEASE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
