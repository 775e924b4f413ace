/* SPDX-License-Identifier: MIT
 *
 * Events that are decided outside of the child that ran the job (rule M1): they reach the next free
 * child once, with the job and what is known, also for a job that took its process with it.
 */
#include "harness/stores.h"

#include <fcntl.h>
#include <jobqueue/control.h>
#include <jobqueue/jobqueue.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char dsn[256], ledger[256], closed[300];
    jobq_queue *queue;
    int fd;
    const char *const *events; /* listened to, ended by NULL */
} fixture;

static const char *const ends[] = {"job.retrying", "job.crashed", NULL};

static int set_up(void **state)
{
    static fixture f;
    static int n;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    snprintf(f.dsn, sizeof(f.dsn), "%s", store_fresh());
    snprintf(f.ledger, sizeof(f.ledger), "%s/events-%d.ledger", jobq_test_folder(), ++n);
    snprintf(f.closed, sizeof(f.closed), "%s.closed", f.ledger);
    f.events = ends;
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

static void run_job(const fixture *f, jobq_job *job)
{
    if (strcmp(jobq_job_name(job, NULL), "nap") == 0) {
        usleep(20000);
        dprintf(f->fd, "nap\n");
        jobq_job_settle(job, JOBQ_ENDED_DONE, -1);
        return;
    }
    if (strcmp(jobq_job_name(job, NULL), "crash") == 0)
        kill(getpid(), SIGKILL);
    jobq_job_set_error(job, "Boom", 4, "no route", 8, NULL, 0, NULL, 0);
    jobq_job_settle(job, JOBQ_ENDED_FAILED, -1);
}

/* Those about no job. */
static bool note_other(const fixture *f, const jobq_event *event)
{
    const char *queue = jobq_event_queue(event, NULL);

    if (jobq_event_job((jobq_event *)(uintptr_t)event))
        return false;
    dprintf(f->fd, "%s %s%s %s\n", jobq_event_name(event), queue ? queue : "-",
            strcmp(datum(event, "message"), "-") != 0 ? " with a message" : "",
            datum(event, "failures"));
    return true;
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

static void take_event(const fixture *f, jobq_worker *worker, const jobq_event *event)
{
    if (strcmp(jobq_event_name(event), "looping") == 0 && access(f->closed, F_OK) == 0)
        jobq_worker_veto(worker);
    if (!note_other(f, event))
        note_event(f, event);
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
    jobq_conf_set(conf, "lease", "2", 1);
    jobq_conf_set(conf, "sleep", "0.05", 4);
    jobq_conf_set(conf, "max_reserve_failures", "0", 1);
    jobq_worker_new(f->queue, conf, &worker);
    jobq_worker_handle(worker, "fail", 4, 1, NULL);
    jobq_worker_handle(worker, "crash", 5, 1, NULL);
    jobq_worker_handle(worker, "nap", 3, 1, NULL);
    for (const char *const *name = f->events; *name; name++)
        jobq_worker_listen(worker, *name);
    if (jobq_worker_start(worker, NULL, 0, NULL, &code) == JOBQ_ROLE_MASTER)
        return code;
    while ((step = jobq_worker_next(worker, &job, &event)) > 0) {
        if (step == JOBQ_STEP_JOB)
            run_job(f, job);
        else
            take_event(f, worker, event);
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

static pid_t start_worker(fixture *f, const char *processes)
{
    pid_t pid;

    jobq_queue_disconnect(f->queue);
    pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the next test */
        _exit(be_worker(f, processes));
    }
    return pid;
}

static int stop_worker(pid_t pid)
{
    int status;

    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_worker_until(fixture *f, const char *processes, const char *line)
{
    const pid_t pid = start_worker(f, processes);

    wait_until(lines_of(f, line) > 0, 20);
    return stop_worker(pid);
}

static size_t count_workers(fixture *f)
{
    jobq_workers *workers;
    size_t n;

    assert_ok(jobq_queue_workers(f->queue, &workers));
    n = jobq_workers_count(workers);
    jobq_workers_free(workers);
    return n;
}

static bool starts_with_line(const fixture *f, const char *wanted)
{
    FILE *file = fopen(f->ledger, "r");
    char line[512] = "";
    const bool found =
        file && fgets(line, sizeof(line), file) && strncmp(line, wanted, strlen(wanted)) == 0;

    if (file)
        fclose(file);
    return found;
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

/* The file of the store under test. */
static sqlite3 *open_file(const fixture *f)
{
    const char *path = strchr(f->dsn, ':') + 1;
    char text[256];
    sqlite3 *db;

    while (strncmp(path, "//", 2) == 0)
        path++;
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(path, "?"), path);
    assert_int_equal(sqlite3_open(text, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

/* Each failure in a row and then the recovery, in order (rule M1). */
static void test_store_away(void **state)
{
    static const char *const events[] = {"store.error", "store.recovered", NULL};
    fixture *f = *state;
    sqlite3 *db;
    pid_t pid;

    jobq_queue_free(f->queue);
    assert_ok(jobq_queue_new(store_option(f->dsn, "read_timeout=0.5"), NULL, &f->queue));
    assert_ok(jobq_queue_migrate(f->queue));
    f->events = events;
    pid = start_worker(f, "1");
    wait_until(count_workers(f) > 0, 20);
    db = open_file(f);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    wait_until(lines_of(f, "store.error - with a message 2") == 1, 30);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    wait_until(lines_of(f, "store.recovered") > 0, 30);
    assert_int_equal(stop_worker(pid), 0);
    assert_int_equal(lines_of(f, "store.recovered"), 1);
    assert_int_equal(lines_of(f, "store.error - with a message 1"), 1);
    assert_true(starts_with_line(f, "store.error - with a message 1"));
}

/* Told of its own queue, once for each (rules L1, M1). */
static void test_paused(void **state)
{
    static const char *const events[] = {"queue.paused", "queue.resumed", NULL};
    fixture *f = *state;
    pid_t pid;

    assert_ok(jobq_queue_migrate(f->queue));
    f->events = events;
    pid = start_worker(f, "2");
    wait_until(count_workers(f) > 0, 20);
    assert_ok(jobq_queue_pause(f->queue, "other", 5, 0));
    assert_ok(jobq_queue_pause(f->queue, "default", 7, 0));
    wait_until(lines_of(f, "queue.paused default") == 1, 20);
    assert_ok(jobq_queue_resume(f->queue, "default", 7));
    wait_until(lines_of(f, "queue.resumed default") == 1, 20);
    assert_int_equal(stop_worker(pid), 0);
    assert_int_equal(lines_of(f, ""), 2);
    assert_true(starts_with_line(f, "queue.paused"));
}

static bool holds_nothing(fixture *f, int64_t *values)
{
    assert_ok(jobq_queue_stats(f->queue, "default", 7, values));
    return values[JOBQ_STAT_RESERVED] == 0;
}

/* A veto: what the child holds unstarted is given back, and nothing begins until it is lifted
 * (rules H2, M1). */
static void test_veto(void **state)
{
    static const char *const events[] = {"looping", "idle", NULL};
    fixture *f = *state;
    int64_t values[JOBQ_STATS];
    int ran;
    pid_t pid;

    f->events = events;
    for (int i = 0; i < 200; i++)
        push(f, "nap");
    pid = start_worker(f, "1");
    wait_until(lines_of(f, "nap") >= 3, 20);
    close(open(f->closed, O_CREAT | O_WRONLY, 0600));
    wait_until(holds_nothing(f, values), 5);
    ran = lines_of(f, "nap");
    assert_true(ran < 200);
    assert_int_equal(values[JOBQ_STAT_READY], 200 - ran);
    wait_until(lines_of(f, "looping") > ran + 5, 20); /* it goes on asking */
    assert_int_equal(lines_of(f, "nap"), ran);
    unlink(f->closed);
    wait_until(lines_of(f, "nap") == 200, 30);
    wait_until(lines_of(f, "idle") > 0, 20);
    assert_int_equal(stop_worker(pid), 0);
    assert_true(lines_of(f, "looping") >= 200);
}

enum { SERVERS = (1 << STORE_REDIS) | (1 << STORE_POSTGRES) | (1 << STORE_MARIADB) };

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_retrying),
        STORE_TEST(test_crashed),
        STORE_TEST(test_paused),
        STORE_TEST(test_veto),
        STORE_TEST_WITHOUT(test_store_away, SERVERS),
    };

    return stores_run_all("process/events", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          tear_down);
}
