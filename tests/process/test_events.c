/* SPDX-License-Identifier: MIT
 *
 * Events that are decided outside of the child that ran the job (rule M1): they reach the next free
 * child once, with the job and what is known, also for a job that took its process with it.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <jobqueue/jobqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char dsn[256], ledger[256];
    jobq_queue *queue;
    int fd;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    static int n;

    snprintf(f.dsn, sizeof(f.dsn), "sqlite:%s/events-%d.db?synchronous=normal", jobq_test_folder(),
             ++n);
    snprintf(f.ledger, sizeof(f.ledger), "%s/events-%d.ledger", jobq_test_folder(), n);
    f.fd = open(f.ledger, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(f.fd >= 0);
    assert_ok(jobq_queue_new(f.dsn, NULL, &f.queue));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    close(f->fd);
    jobq_queue_free(f->queue);
    return 0;
}

static void push(fixture *f, const char *name)
{
    jobq_message *m = jobq_message_new();

    assert_ok(jobq_message_set_name(m, name, strlen(name)));
    assert_ok(jobq_conf_set(jobq_message_options(m), "backoff", "0", 1));
    assert_ok(jobq_conf_set(jobq_message_options(m), "tries", "2", 1));
    assert_ok(jobq_queue_push(f->queue, m));
    jobq_message_free(m);
}

static const char *datum(const jobq_event *event, const char *wanted)
{
    const char *key, *text;

    for (size_t i = 0; jobq_event_data(event, i, &key, &text, NULL, NULL); i++)
        if (strcmp(key, wanted) == 0)
            return text;
    return "-";
}

static void run_job(jobq_job *job)
{
    if (strcmp(jobq_job_name(job, NULL), "crash") == 0)
        kill(getpid(), SIGKILL);
    jobq_job_set_error(job, "Boom", 4, "no route", 8, NULL, 0, NULL, 0);
    jobq_job_settle(job, JOBQ_ENDED_FAILED, -1);
}

static void note_event(const fixture *f, const jobq_event *event)
{
    char line[512];
    int n = snprintf(line, sizeof(line), "%s %s attempt %s: %s\n", jobq_event_name(event),
                     jobq_job_name(jobq_event_job((jobq_event *)(uintptr_t)event), NULL),
                     datum(event, "attempt"), datum(event, "message"));

    if (write(f->fd, line, (size_t)n) != n)
        abort();
}

static int be_worker(fixture *f, const char *processes)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_worker *worker;
    jobq_event *event;
    jobq_job *job;
    int code, step;

    jobq_conf_set(conf, "output", "quiet", 5);
    jobq_conf_set(conf, "memory", "0", 1);
    jobq_conf_set(conf, "processes", processes, 1);
    jobq_worker_new(f->queue, conf, &worker);
    jobq_worker_handle(worker, "fail", 4, 1, NULL);
    jobq_worker_handle(worker, "crash", 5, 1, NULL);
    for (const char *const *name = (const char *const[]){"job.retrying", "job.crashed", NULL};
         *name; name++)
        jobq_worker_listen(worker, *name);
    if (jobq_worker_start(worker, NULL, 0, NULL, &code) == JOBQ_ROLE_MASTER)
        return code;
    while ((step = jobq_worker_next(worker, &job, &event)) > 0) {
        if (step == JOBQ_STEP_JOB)
            run_job(job);
        else
            note_event(f, event);
    }
    return jobq_worker_finish(worker);
}

static int lines_of(const fixture *f, const char *wanted)
{
    FILE *file = fopen(f->ledger, "r");
    char line[512];
    int n = 0;

    while (file && fgets(line, sizeof(line), file))
        n += strncmp(line, wanted, strlen(wanted)) == 0;
    if (file)
        fclose(file);
    return n;
}

static int run_worker_until(fixture *f, const char *processes, const char *line)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(be_worker(f, processes));
    wait_until(lines_of(f, line) > 0, 20);
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_retrying(void **state)
{
    fixture *f = *state;

    push(f, "fail");
    assert_int_equal(run_worker_until(f, "2", "job.retrying"), 0);
    assert_int_equal(lines_of(f, "job.retrying fail attempt 1: no route"), 1);
    assert_int_equal(lines_of(f, ""), 1);
}

static void test_crashed(void **state)
{
    fixture *f = *state;

    push(f, "crash");
    assert_int_equal(run_worker_until(f, "2", "job.crashed crash attempt 2"), 0);
    assert_int_equal(lines_of(f, "job.crashed crash attempt 1: killed by signal 9 (SIGKILL)"), 1);
    assert_int_equal(lines_of(f, "job.crashed crash attempt 2: killed by signal 9 (SIGKILL)"), 1);
    assert_int_equal(lines_of(f, "job.retrying crash attempt 1"), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_retrying),
        TEST(test_crashed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
