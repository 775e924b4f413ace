/* SPDX-License-Identifier: MIT
 *
 * What people see: the lines of rule G4 as a table, JSON, sums above 100 jobs a second, and a
 * writer that neither blocks on a full pipe nor minds a broken one (cases B118, B149).
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "worker/observe.h"

typedef struct {
    jobq_worker worker;
    jobq__words words;
    jobq__observer *observer;
    jobq__handout handout;
    int pipe[2];
    char text[1 << 20];
    size_t n;
} fixture;

static void begin(fixture *f, const char *output)
{
    static char queue[] = "mail";
    static char *queues[] = {queue};

    memset(f, 0, sizeof(*f));
    f->worker.run_conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    assert_ok(jobq_conf_set(f->worker.run_conf, "output", output, strlen(output)));
    f->worker.queues = queues;
    f->worker.queue_count = 1;
    f->worker.shared.words = &f->words;
    strcpy(f->words.worker_id, "host:1:abc");
    assert_ok(jobq__observer_new(&f->worker, &f->observer));
    assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
    jobq__output_init(&f->observer->out, f->pipe[1]);
    jobq__output_init(&f->observer->err, f->pipe[1]);
    f->observer->err_to = &f->observer->err;
    strcpy(f->handout.id, "id-1");
    strcpy(f->handout.name, "invoice.send");
    f->handout.name_n = (uint16_t)strlen(f->handout.name);
    strcpy(f->handout.queue, "mail");
    f->handout.queue_n = 4;
    f->handout.policy.tries = 3;
}

/* Everything written so far; lines without their time stamp. */
static const char *read_all(fixture *f)
{
    ssize_t n;

    jobq__observer_tick(f->observer, jobq__clock_mono_ms());
    fcntl(f->pipe[0], F_SETFL, O_NONBLOCK);
    while ((n = read(f->pipe[0], f->text + f->n, sizeof(f->text) - 1 - f->n)) > 0) {
        f->n += (size_t)n;
        jobq__observer_tick(f->observer, jobq__clock_mono_ms());
    }
    f->text[f->n] = '\0';
    return f->text;
}

static const char *unstamped(fixture *f)
{
    const char *text = read_all(f);

    return text[0] == '[' && strchr(text, ']') ? strchr(text, ']') + 2 : text;
}

static void end(fixture *f)
{
    jobq__observer_free(f->observer);
    jobq_conf_free(f->worker.run_conf);
    close(f->pipe[0]);
    close(f->pipe[1]);
}

typedef struct {
    jobq_ending ending;
    jobq__verdict verdict;
    int64_t took_ms;
    const char *message;
    int status;
    const char *line;
} line_case;

#define BACK(ms)                             \
    {                                        \
        .op = JOBQ_OP_BACK, .delay_ms = (ms) \
    }
#define DEAD(why)                                        \
    {                                                    \
        .op = JOBQ_OP_DEAD, .reason = JOBQ__REASON_##why \
    }
static const line_case lines[] = {
    {JOBQ_ENDED_DONE, {.op = JOBQ_OP_DONE}, 214, NULL, 0, "Processed: invoice.send id-1 214 ms\n"},
    {JOBQ_ENDED_RELEASED, BACK(45000), 3, NULL, 0, "Released: invoice.send id-1 back in 45 s\n"},
    {JOBQ_ENDED_RELEASED, BACK(500), 3, NULL, 0, "Released: invoice.send id-1 back in 0.5 s\n"},
    {JOBQ_ENDED_FAILED, BACK(10000), 3, "no route", 0,
     "Failed: invoice.send id-1 attempt 1/3, retrying in 10 s: no route\n"},
    {JOBQ_ENDED_FAILED, DEAD(ATTEMPTS_EXHAUSTED), 3, "no route", 0,
     "Failed: invoice.send id-1 for good (attempts_exhausted): no route\n"},
    {JOBQ_ENDED_UNSTARTED, DEAD(EXPIRED), -1, NULL, 0,
     "Failed: invoice.send id-1 for good (expired)\n"},
    {JOBQ_ENDED_STOPPED, DEAD(CANCELLED), -1, NULL, 0,
     "Cancelled: invoice.send id-1 before it started\n"},
    {JOBQ_ENDED_FAILED, DEAD(CANCELLED), 4200, "no route", 0,
     "Cancelled: invoice.send id-1 after 4.2 s: no route\n"},
    {JOBQ_ENDED_TIMED_OUT, BACK(10000), 60000, "over its time limit of 60 s", 0,
     "Timed out: invoice.send id-1 attempt 1/3, retrying in 10 s: over its time limit of 60 s\n"},
    {JOBQ_ENDED_CRASHED, BACK(10000), 5, "killed by signal 9 (SIGKILL)", 0,
     "Crashed: invoice.send id-1 attempt 1/3, retrying in 10 s: killed by signal 9 (SIGKILL)\n"},
    {JOBQ_ENDED_STOPPED,
     {.op = JOBQ_OP_GIVE_BACK},
     5,
     NULL,
     0,
     "Given back: invoice.send id-1 uncounted: it was stopped\n"},
    {JOBQ_ENDED_DONE,
     {.op = JOBQ_OP_DONE},
     5,
     NULL,
     JOBQ_ELEASE,
     "Lease lost: invoice.send id-1 its result (done) was refused: the job is somebody else's by "
     "now\n"},
    {JOBQ_ENDED_DONE,
     {.op = JOBQ_OP_DONE},
     5,
     NULL,
     JOBQ_EUNKNOWN,
     "Outcome unknown: invoice.send id-1 its result (done) may or may not have been stored\n"},
    {JOBQ_ENDED_FAILED, BACK(0), 5, NULL, JOBQ_EIO,
     "Result lost: invoice.send id-1 its result (failed) could not be stored\n"},
    {JOBQ_ENDED_FAILED, BACK(0), 5, "a\x1b[31mb\nc\x00", 0,
     "Failed: invoice.send id-1 attempt 1/3, retrying in 0 s: a [31mb c\n"},
};

static void show(fixture *f, const line_case *c)
{
    jobq__fault fault = {.message = jobq__slice_text(c->message)};

    jobq__observer_ended(f->observer, &f->handout, c->ending, &c->verdict, c->took_ms,
                         c->message ? &fault : NULL, c->status);
}

/* Rule G4. */
static void table_of_lines(void **state)
{
    static fixture f;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        begin(&f, "jobs");
        show(&f, &lines[i]);
        assert_string_equal(unstamped(&f), lines[i].line);
        end(&f);
    }
}

static void time_is_local(void **state)
{
    static fixture f;
    int64_t wall = jobq__clock_wall_ms();
    int year, month, day, hour, minute, second;

    (void)state;
    setenv("TZ", "XYZ-05:30", 1);
    tzset();
    jobq__clock_shift(1796032801000 - wall, 0); /* 2026-11-30 10:00:01 UTC */
    begin(&f, "jobs");
    show(&f, &lines[0]);
    assert_int_equal(
        sscanf(read_all(&f), "[%d-%d-%d %d:%d:%d] ", &year, &month, &day, &hour, &minute, &second),
        6);
    assert_int_equal(hour * 60 + minute, 15 * 60 + 30);
    end(&f);
    begin(&f, "json");
    show(&f, &lines[0]);
    assert_non_null(strstr(read_all(&f), "\"time\":\"2026-11-30T10:00:"));
    end(&f);
    jobq__clock_shift(wall - 1796032801000, 0);
}

static void first_and_last_lines(void **state)
{
    static fixture f;

    (void)state;
    begin(&f, "auto");
    assert_ok(jobq_conf_set(f.worker.run_conf, "processes", "2", 1));
    jobq__observer_starting(f.observer);
    jobq__observer_stopping(f.observer, "asked to shut down", 12, 0);
    jobq__observer_error(f.observer, "could not %s", "do\nit");
    assert_string_equal(
        read_all(&f),
        "Worker host:1:abc watching mail (2 processes)\nStopping: asked to shut down\nRan 12 jobs\n"
        "error: could not do it\n");
    end(&f);
}

/* Names come from strangers: nothing in them steers a terminal or breaks the JSON. */
static void json_is_json(void **state)
{
    static fixture f;
    static const char name[] = "a\"\\\x1b\n\xc2\x9b\xff\xc3\xa9";
    jobq__fault fault = {.message = jobq__slice("x\0y", 3)};
    jobq__verdict back = BACK(1500);

    (void)state;
    begin(&f, "json");
    strcpy(f.handout.name, name);
    f.handout.name_n = sizeof(name) - 1;
    jobq__observer_ended(f.observer, &f.handout, JOBQ_ENDED_FAILED, &back, 7, &fault, 0);
    assert_non_null(
        strstr(read_all(&f), "\"name\":\"a\\\"\\\\\\u001b\\u000a\\u009b\xef\xbf\xbd\xc3\xa9\""));
    assert_non_null(strstr(
        f.text, "\"attempt\":1,\"tries\":3,\"outcome\":\"failed\",\"took\":0.007,\"delay\":1.500,"
                "\"message\":\"x\\u0000y\"}"));
    end(&f);
}

static void json_is_json_in_a_comma_locale(void **state)
{
    if (!jobq_test_comma_locale())
        skip();
    json_is_json(state);
    setlocale(LC_ALL, "C");
}

/* Rules L1, L3: a line when a pause begins or ends, and for a job that was cancelled. */
static void control_has_its_lines(void **state)
{
    static fixture f;
    const jobq__verdict dead = DEAD(CANCELLED);

    (void)state;
    begin(&f, "auto");
    jobq__observer_paused(f.observer, true, jobq__slice_text("ma\til"));
    assert_string_equal(unstamped(&f), "Paused: ma il\n");
    end(&f);
    begin(&f, "summary");
    jobq__observer_paused(f.observer, false, jobq__slice_text("mail"));
    assert_string_equal(unstamped(&f), "Resumed: mail\n");
    end(&f);
    begin(&f, "json");
    jobq__observer_paused(f.observer, true, jobq__slice_text("ma\"il"));
    jobq__observer_ended(f.observer, &f.handout, JOBQ_ENDED_STOPPED, &dead, -1, NULL, 0);
    assert_non_null(strstr(
        read_all(&f), "\"event\":\"paused\",\"worker\":\"host:1:abc\",\"queue\":\"ma\\\"il\"}\n"));
    assert_non_null(strstr(f.text, "\"event\":\"cancelled\""));
    assert_non_null(strstr(f.text, "\"outcome\":\"stopped\",\"reason\":\"cancelled\"}\n"));
    end(&f);
}

static void quiet_is_quiet(void **state)
{
    static fixture f;

    (void)state;
    begin(&f, "quiet");
    jobq__observer_starting(f.observer);
    jobq__observer_processing(f.observer, &f.handout);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        show(&f, &lines[i]);
    jobq__observer_stopping(f.observer, "x", 1, 0);
    assert_string_equal(read_all(&f), "");
    end(&f);
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

/* Above 100 a second one line stands for all, but failures are shown. */
static void many_are_summed_up(void **state)
{
    static fixture f;

    (void)state;
    begin(&f, "auto");
    jobq__observer_tick(f.observer, jobq__clock_mono_ms());
    for (int i = 0; i < 500; i++) {
        show(&f, &lines[0]);
        if (i % 100 == 50)
            show(&f, &lines[3]);
    }
    read_all(&f);
    jobq__clock_shift(0, 1100);
    read_all(&f);
    assert_int_equal(count(f.text, "Processed: invoice.send"), 100);
    assert_int_equal(count(f.text, "Processed: 400 more jobs in 1."), 1);
    assert_int_equal(count(f.text, "Failed: "), 5);
    end(&f);
}

/* Rule G4: a job that goes round releasing itself is no work done. */
static void released_are_summed_apart(void **state)
{
    static fixture f;

    (void)state;
    begin(&f, "summary");
    jobq__observer_tick(f.observer, jobq__clock_mono_ms());
    for (int i = 0; i < 30; i++)
        show(&f, &lines[i % 3 ? 1 : 0]);
    read_all(&f);
    jobq__clock_shift(0, 1100);
    read_all(&f);
    assert_int_equal(count(f.text, "Processed: 10 jobs in 1."), 1);
    assert_int_equal(count(f.text, "Released: 20 jobs in 1."), 1);
    end(&f);
}

/* Never blocks: what a stopped reader does not take is dropped and counted. */
static void full_pipe(void **state)
{
    static fixture f;

    (void)state;
    begin(&f, "jobs");
    for (int i = 0; i < 20000; i++) {
        show(&f, &lines[0]);
        jobq__output_flush(&f.observer->out, i);
    }
    assert_true(f.observer->out.dropped > 1000);
    read_all(&f);
    show(&f, &lines[0]);
    read_all(&f);
    assert_int_equal(count(f.text, " lines dropped\n"), 1);
    assert_int_equal(f.text[f.n - 1], '\n');
    end(&f);
}

static void broken_pipe(void **state)
{
    static fixture f;

    (void)state;
    begin(&f, "jobs");
    signal(SIGPIPE, SIG_DFL);
    close(f.pipe[0]);
    show(&f, &lines[0]);
    jobq__observer_tick(f.observer, 1);
    show(&f, &lines[0]);
    jobq__observer_tick(f.observer, 2);
    f.pipe[0] = -1;
    end(&f);
}

static void full_disk(void **state)
{
    static fixture f;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    begin(&f, "jobs");
    jobq__output_init(&f.observer->out, fd);
    show(&f, &lines[0]);
    jobq__observer_tick(f.observer, 1);
    assert_int_equal(f.observer->out.dropped, 1);
    end(&f);
    close(fd);
}

/* ... and when there is room again, all that were lost are counted. */
static void full_disk_counts(void **state)
{
    static fixture f;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    begin(&f, "jobs");
    jobq__output_init(&f.observer->out, fd);
    for (int i = 0; i < 7; i++) {
        show(&f, &lines[0]);
        jobq__observer_tick(f.observer, i + 1);
    }
    f.observer->out.fd = f.pipe[1];
    show(&f, &lines[0]);
    read_all(&f);
    assert_int_equal(count(f.text, "7 lines dropped\n["), 1);
    assert_int_equal(count(f.text, "Processed: "), 1);
    end(&f);
    close(fd);
}

/* A log file that was renamed is begun anew. */
static void rotated_file(void **state)
{
    static fixture f;
    char path[256], old[300];

    (void)state;
    snprintf(path, sizeof(path), "%s/log", jobq_test_folder());
    snprintf(old, sizeof(old), "%s.1", path);
    begin(&f, "jobs");
    jobq__observer_free(f.observer);
    assert_ok(jobq_conf_set(f.worker.run_conf, "output", path, strlen(path)));
    assert_ok(jobq__observer_new(&f.worker, &f.observer));
    show(&f, &lines[0]);
    jobq__observer_tick(f.observer, 5000);
    assert_int_equal(rename(path, old), 0);
    show(&f, &lines[0]);
    jobq__observer_tick(f.observer, 7000);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(access(old, F_OK), 0);
    end(&f);
}

static void bad_path(void **state)
{
    jobq_worker worker = {.run_conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE)};
    jobq__observer *o = NULL;

    (void)state;
    assert_ok(jobq_conf_set(worker.run_conf, "output", "/nowhere/at/all", 15));
    assert_code(jobq__observer_new(&worker, &o), JOBQ_EINVAL);
    assert_said("/nowhere/at/all");
    jobq_conf_free(worker.run_conf);
}

/* Events travel: what was written is read. */
static void events_round_trip(void **state)
{
    jobq__handout h = {.counters = {.failures = 1}};
    jobq__verdict verdict = BACK(2500);
    jobq__fault fault = {.class_name = jobq__slice_text("Boom"),
                         .message = jobq__slice_text("two\nlines")};
    jobq_event event = {0};
    jobq__buf data = {0};
    const char *key, *text;
    double number;
    bool is_number;

    (void)state;
    jobq__event_write(&data, &h, JOBQ_ENDED_FAILED, &verdict, 1500, &fault);
    assert_true(jobq__event_read(&event, "job.retrying", 12, data.p, data.n));
    assert_string_equal(jobq_event_name(&event), "job.retrying");
    assert_int_equal(event.data_count, 6);
    assert_true(jobq_event_data(&event, 0, &key, &text, &number, &is_number));
    assert_true(strcmp(key, "attempt") == 0 && is_number && number == 2);
    assert_true(jobq_event_data(&event, 5, &key, &text, &number, &is_number));
    assert_true(strcmp(key, "message") == 0 && !is_number);
    assert_string_equal(text, "two lines");
    assert_false(jobq_event_data(&event, 6, &key, &text, &number, &is_number));
    for (size_t n = 0; n < data.n; n++) /* cut anywhere: never read past the end */
        jobq__event_read(&event, "x", 1, data.p, n);
    jobq__buf_free(&data);
    jobq__arena_free(&event.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_lines),
        cmocka_unit_test(time_is_local),
        cmocka_unit_test(first_and_last_lines),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(json_is_json_in_a_comma_locale),
        cmocka_unit_test(control_has_its_lines),
        cmocka_unit_test(quiet_is_quiet),
        cmocka_unit_test(many_are_summed_up),
        cmocka_unit_test(released_are_summed_apart),
        cmocka_unit_test(full_pipe),
        cmocka_unit_test(broken_pipe),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(full_disk_counts),
        cmocka_unit_test(rotated_file),
        cmocka_unit_test(bad_path),
        cmocka_unit_test(events_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
