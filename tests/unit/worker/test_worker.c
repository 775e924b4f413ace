/* SPDX-License-Identifier: MIT
 *
 * The worker's public face before a start: handlers, options, queues, names (rules G2, G6).
 */
#include "harness/harness.h"

#include <jobqueue/jobqueue.h>
#include <signal.h>
#include <string.h>

#include "util/fd.h"
#include "worker/worker.h"

typedef struct {
    jobq_queue *queue;
    jobq_worker *worker;
} fixture;

static int set_up(void **state)
{
    static fixture f;

    assert_ok(jobq_queue_new("memory:", NULL, &f.queue));
    assert_ok(jobq_worker_new(f.queue, NULL, &f.worker));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    jobq_worker_free(f->worker);
    jobq_queue_free(f->queue);
    return 0;
}

static jobq_conf *conf_of(int scope, const char *name, const char *value)
{
    jobq_conf *conf = jobq_conf_new(scope, JOBQ_STYLE_SNAKE);

    assert_ok(jobq_conf_set(conf, name, value, strlen(value)));
    return conf;
}

/* Rule G6. */
static void test_handlers(void **state)
{
    fixture *f = *state;
    jobq_conf *wrong = jobq_conf_new(JOBQ_SCOPE_PUSH, JOBQ_STYLE_SNAKE);

    assert_ok(jobq_worker_handle(f->worker, "a", 1, 1, NULL));
    assert_ok(jobq_worker_handle(f->worker, "a", 1, 2, NULL));
    assert_ok(jobq_worker_handle(f->worker, "ab", 2, 1, NULL));
    assert_code(jobq_worker_handle(f->worker, "a", 1, 2, NULL), JOBQ_EINVAL);
    assert_said("a handler for \"a\" version 2 is registered already");
    assert_code(jobq_worker_handle(f->worker, "b", 1, 0, NULL), JOBQ_EINVAL);
    assert_code(jobq_worker_handle(f->worker, "", 0, 1, NULL), JOBQ_EINVAL);
    assert_code(jobq_worker_handle(f->worker, "b", 1, 1, wrong), JOBQ_EINVAL);
    assert_int_equal(jobq__worker_find_handler(f->worker, jobq__slice("a", 1), 2), 1);
    assert_int_equal(jobq__worker_find_handler(f->worker, jobq__slice("ab", 2), 1), 2);
    assert_int_equal(jobq__worker_find_handler(f->worker, jobq__slice("ab", 2), 2), -1);
    assert_int_equal(jobq__worker_find_handler(f->worker, jobq__slice("b", 1), 1), -1);
    jobq_conf_free(wrong);
}

static void test_names(void **state)
{
    fixture *f = *state;
    const char *const queues[] = {"high", "default", "high"};
    jobq__buf buf = {0};

    assert_ok(jobq_worker_handle(f->worker, "mail.send", 9, 3, NULL));
    assert_ok(jobq__worker_prepare(f->worker, queues, 3, NULL));
    jobq__worker_names(f->worker, &buf);
    jobq__worker_queues(f->worker, &buf);
    assert_string_equal(jobq__buf_text(&buf), "mail.send@3\nhigh\ndefault\n");
    jobq__buf_free(&buf);
    assert_ok(jobq__worker_prepare(f->worker, NULL, 0, NULL));
    assert_int_equal(f->worker->queue_count, 1);
    assert_string_equal(f->worker->queues[0], "default");
    assert_code(jobq__worker_prepare(f->worker, (const char *const[]){"a,b"}, 1, NULL),
                JOBQ_EINVAL);
}

/* A store that only this process sees: inline, and another number is a usage error. */
static void test_memory_is_inline(void **state)
{
    fixture *f = *state;
    jobq_conf *two = conf_of(JOBQ_SCOPE_WORKER, "processes", "2");

    assert_ok(jobq__worker_prepare(f->worker, NULL, 0, NULL));
    assert_int_equal(f->worker->run_conf->s.processes, 0);
    assert_code(jobq__worker_prepare(f->worker, NULL, 0, two), JOBQ_EINVAL);
    assert_said("processes must be 0");
    jobq_conf_free(two);
}

/* What is said for one run goes over what the constructor said. */
static void test_options(void **state)
{
    fixture *f = *state;
    jobq_conf *made = conf_of(JOBQ_SCOPE_WORKER, "max_jobs", "5"),
              *over = conf_of(JOBQ_SCOPE_WORKER, "lease", "12");
    jobq_worker *worker;

    assert_ok(jobq_worker_new(f->queue, made, &worker));
    assert_ok(jobq__worker_prepare(worker, NULL, 0, over));
    assert_int_equal(worker->run_conf->s.max_jobs, 5);
    assert_int_equal(worker->run_conf->s.lease_ms, 12000);
    assert_ok(jobq__worker_prepare(worker, NULL, 0, NULL));
    assert_int_not_equal(worker->run_conf->s.lease_ms, 12000);
    jobq_worker_free(worker);
    jobq_conf_free(made);
    jobq_conf_free(over);
}

/* Handler over worker. */
static void test_dont_retry(void **state)
{
    fixture *f = *state;
    jobq_conf *of_worker = conf_of(JOBQ_SCOPE_WORKER, "dont_retry", "W"),
              *of_handler = conf_of(JOBQ_SCOPE_HANDLER, "dont_retry", "H");
    jobq_job job = {.version = 1, .name = {"own", 3}};
    jobq_worker *worker;

    assert_ok(jobq_worker_new(f->queue, of_worker, &worker));
    assert_ok(jobq_worker_handle(worker, "own", 3, 1, of_handler));
    assert_ok(jobq_worker_handle(worker, "plain", 5, 1, NULL));
    assert_string_equal(jobq_worker_dont_retry(worker, &job, 0), "H");
    assert_null(jobq_worker_dont_retry(worker, &job, 1));
    job.name = jobq__slice("plain", 5);
    assert_string_equal(jobq_worker_dont_retry(worker, &job, 0), "W");
    job.name = jobq__slice("unknown", 7);
    assert_string_equal(jobq_worker_dont_retry(worker, &job, 0), "W");
    assert_int_equal(jobq_worker_find(worker, &job), -1);
    assert_false(jobq_worker_maps_as_objects(worker, &job));
    jobq_worker_free(worker);
    jobq_conf_free(of_worker);
    jobq_conf_free(of_handler);
}

static void test_not_started(void **state)
{
    fixture *f = *state;
    jobq_job *job;
    jobq_event *event;
    const char *name;

    assert_code(jobq_worker_next(f->worker, &job, &event), JOBQ_EINVAL);
    assert_code(jobq_worker_finish(f->worker), JOBQ_EINVAL);
    assert_false(jobq_worker_ready(f->worker));
    jobq_worker_stop(f->worker); /* nothing to stop */
    assert_int_equal(jobq_worker_jobs_run(f->worker), 0);
    assert_string_equal(jobq_worker_stop_reason(f->worker), "");
    assert_true(strlen(jobq_worker_id(f->worker)) > 0 && strlen(jobq_worker_id(f->worker)) <= 64);
    jobq_worker_counter(f->worker, 0, &name);
    assert_string_equal(name, "pushed");
    jobq_worker_counter(f->worker, 1000, &name);
    assert_null(name);
}

static void test_listen(void **state)
{
    fixture *f = *state;

    assert_ok(jobq_worker_listen(f->worker, "job.crashed"));
    assert_code(jobq_worker_listen(f->worker, "job.krashed"), JOBQ_EINVAL);
    assert_said("job.krashed");
}

/* Rule L2: the store is asked when the worker is made, and that it cannot be is no error then. */
static void test_without_a_store(void **state)
{
    jobq_queue *queue;
    jobq_worker *worker;

    (void)state;
    assert_ok(jobq_queue_new("sqlite:/no/such/folder/q.db", NULL, &queue));
    assert_ok(jobq_worker_new(queue, NULL, &worker));
    assert_int_equal(worker->generation, -1);
    assert_int_equal(jobq_error_code(jobq_error_last()), 0);
    jobq_worker_set_generation(worker, 7);
    assert_int_equal(worker->generation, 7);
    jobq_worker_free(worker);
    jobq_queue_free(queue);
}

static void test_stop_texts(void **state)
{
    static const struct {
        uint32_t reason;
        int64_t number;
        const char *want;
    } rows[] = {{JOBQ__STOP_SIGNAL, 0, "asked to shut down"},
                {JOBQ__STOP_RESTART, 0, "restart requested"},
                {JOBQ__STOP_MAX_JOBS, 12, "ran 12 jobs"},
                {JOBQ__STOP_MAX_JOBS, 1, "ran 1 job"},
                {JOBQ__STOP_UNREADABLE, 1, "the queue has been unreadable 1 time running"},
                {JOBQ__STOP_MAX_TIME, 55, "been going for 55s"},
                {JOBQ__STOP_EMPTY, 0, "Nothing left to do"},
                {JOBQ__STOP_UNREADABLE, 5, "the queue has been unreadable 5 times running"},
                {JOBQ__STOP_NONE, 0, ""},
                {4711, 0, ""}};
    static jobq__words words;
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        atomic_store(&words.stop_reason, rows[i].reason);
        atomic_store(&words.stop_number, rows[i].number);
        jobq__worker_stop_text(&words, text, sizeof(text));
        assert_string_equal(text, rows[i].want);
    }
    strcpy(words.stop_note, " (paused: mail)"); /* rule G3 */
    atomic_store(&words.stop_reason, JOBQ__STOP_EMPTY);
    jobq__worker_stop_text(&words, text, sizeof(text));
    assert_string_equal(text, "Nothing left to do (paused: mail)");
    atomic_store(&words.stop_reason, JOBQ__STOP_SIGNAL);
    jobq__worker_stop_text(&words, text, sizeof(text));
    assert_string_equal(text, "asked to shut down");
}

/* Rule H3: a pipe has room for 65536 bytes, and however often threads wake an idle worker before it
 * comes to read them, there is room for a signal's. */
static void test_wakes_leave_room_for_signals(void **state)
{
    (void)state;
    assert_ok(jobq__signals_install(false));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 70000; i++)
            jobq__signals_wake();
        assert_int_equal(jobq__fd_wait(jobq__signals_fd(), 0), 1); /* it ends the wait */
        raise(SIGTERM);
        assert_int_equal(jobq__signals_next(), SIGTERM);
        assert_int_equal(jobq__signals_next(), 0);
        assert_int_equal(jobq__fd_wait(jobq__signals_fd(), 0), 0);
    }
    jobq__signals_restore();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_handlers),
        TEST(test_names),
        TEST(test_memory_is_inline),
        TEST(test_options),
        TEST(test_dont_retry),
        TEST(test_not_started),
        TEST(test_listen),
        cmocka_unit_test(test_stop_texts),
        cmocka_unit_test(test_without_a_store),
        cmocka_unit_test(test_wakes_leave_room_for_signals),
    };

    return cmocka_run_group_tests_name("worker/worker", tests, NULL, NULL);
}
