/* SPDX-License-Identifier: MIT
 *
 * What handlers print (rules D7, G4; case B149): whole lines that nobody else's share, in order,
 * nothing lost at a kill, and output that nobody takes ends no handler and holds nobody up.
 */
#include "process/pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/clock.h"
#include "worker/lines.h"

/* ---- reading what was printed ---------------------------------------------------------------- */

static int count(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

/* Where that stands first; it must. */
JOBQ_PRINTF(2, 3) static int position(const char *text, const char *format, ...)
{
    char part[300];
    const char *at;
    va_list ap;

    va_start(ap, format);
    vsnprintf(part, sizeof(part), format, ap);
    va_end(ap);
    at = strstr(text, part);
    if (!at)
        fail_msg("\"%s\" is not in\n%s", part, text);
    return (int)(at - text);
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static bool is_own_line(const char *line)
{
    static const char *const starts[] = {"[20", "Worker ", "Stopping: ", "Ran "};

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (begins(line, starts[i]))
            return !strchr(line + 1, '<') && !strchr(line, '>');
    return false;
}

/* "<ID 7 ID>", on stderr with "!": a line of "prints", its number; -1: it is none. */
static int number_of(const char *line)
{
    char first[64], last[64];
    int number, end = 0;

    if (sscanf(line, "<%63[^ ] %d %63[^>]>%n", first, &number, last, &end) != 3 ||
        strcmp(first, last) != 0 || (line[end] && strcmp(line + end, "!") != 0))
        return -1;
    return number;
}

/* Every line is one of the worker's or a whole one of "prints"; how many of these. */
static int check_lines(char *text)
{
    char *rest = text, *line;
    int n = 0;

    while ((line = strsep(&rest, "\n")) && (rest || *line)) {
        if (number_of(line) >= 0)
            n++;
        else if (!is_own_line(line))
            fail_msg("no whole line: \"%s\"", line);
    }
    return n;
}

/* ---- whole lines ----------------------------------------------------------------------------- */

enum { JOBS = 60, LINES = 30 };

/* Rule D7: one after the other, before the worker's line about the job. */
static void check_order(const char *text, const char *id)
{
    int last = -1;

    for (int i = 0; i < LINES; i++) {
        int at = position(text, "<%s %d %s>\n", id, i, id);

        assert_true(at > last);
        last = at;
    }
    assert_true(position(text, "Processed: prints %s", id) > last);
}

/* Rules D7 and G4: four children print in pieces, to two descriptors that are one file. */
static void test_d7_whole_lines(void **state)
{
    static char ids[JOBS][129];
    pool *p = *state;
    char *text;

    for (int i = 0; i < JOBS; i++)
        strcpy(ids[i], pool_push(p, "prints", LINES, NULL));
    assert_int_equal(pool_run(p, "processes=4 stop_when_empty=1"), 0);
    text = pool_output(p);
    for (int i = 0; i < JOBS; i++)
        check_order(text, ids[i]);
    assert_int_equal(check_lines(text), JOBS * (LINES + LINES / 3));
    free(text);
}

static int read_file(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, size - 1, f);
    fclose(f);
    text[n] = '\0';
    return (int)n;
}

/* Standard error stays there. */
static void test_d7_two_streams(void **state)
{
    static char err[1 << 20];
    pool *p = *state;
    char path[300], *out;

    snprintf(path, sizeof(path), "%s.err", p->output);
    p->stderr_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pool_push_many(p, "prints", LINES, NULL, 4);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    close(p->stderr_fd);
    out = pool_output(p);
    read_file(path, err, sizeof(err));
    assert_int_equal(count(err, "Processed"), 0);
    assert_int_equal(check_lines(err), 4 * LINES / 3);
    assert_int_equal(check_lines(out), 4 * LINES);
    free(out);
}

static void check_tail_order(pool *p, const char *id)
{
    char *text = pool_output(p);

    assert_true(position(text, "said %s\n", id) < position(text, "tail %s\n", id));
    assert_true(position(text, "tail %s\n", id) < position(text, "Processed: says %s", id));
    free(text);
}

/* Text left in stdio's buffer, and a last line without its end. */
static void test_g4_before_its_line(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "says", 0, NULL));
    assert_int_equal(pool_run(p, "stop_when_empty=1"), 0);
    check_tail_order(p, id);
}

/* The same on a machine so busy that both come to the main process at once. */
static void test_g4_before_its_line_late(void **state)
{
    pool *p = *state;
    char id[129];

    pool_push(p, "says", 0, NULL);
    pool_start(p, "processes=1");
    wait_until(pool_said(p, "Processed: says"), 20);
    pool_signal(p, SIGSTOP);
    strcpy(id, pool_push(p, "says", 0, NULL));
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 20);
    usleep(100000); /* the dispatcher has said so, too */
    pool_signal(p, SIGCONT);
    wait_until(pool_said(p, id), 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    check_tail_order(p, id);
}

/* Case B149: an idle child's line without an end does not wait for the child's end. */
static void test_b149_tail_of_idle_child(void **state)
{
    pool *p = *state;
    char line[200];

    snprintf(line, sizeof(line), "tail %s\n", pool_push(p, "says", 0, NULL));
    pool_start(p, NULL);
    wait_until(pool_said(p, line), 10);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

/* Bytes of any kind pass; a line without end passes in pieces. */
static void test_d7_long_and_binary(void **state)
{
    enum { N = 300000 };
    pool *p = *state;
    static char text[1 << 20];
    size_t n, bytes = 0;
    char *at;

    pool_push(p, "long", N, NULL);
    assert_int_equal(pool_run(p, "stop_when_empty=1"), 0);
    n = (size_t)read_file(p->output, text, sizeof(text));
    at = memchr(text, '\n', n); /* the first line is the worker's */
    assert_non_null(at);
    for (at++; bytes < N; at++)
        if (*at != '\n') {
            assert_int_equal((unsigned char)*at, bytes % 255 == '\n' ? 255 : bytes % 255);
            bytes++;
        } else {
            assert_int_equal(bytes % JOBQ__LINE_MAX, 0);
        }
    assert_int_equal(*at, '\n');
    assert_true(is_own_line(strtok(at + 1, "\n")));
}

/* Rule D7: it is the handler's own affair what its descriptors are. */
static void test_d7_replaced(void **state)
{
    pool *p = *state;

    for (int i = 0; i < 3; i++)
        pool_push(p, "replaces", 0, NULL);
    pool_push_many(p, "note", 0, NULL, 20);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 20);
    assert_true(pool_said(p, "still ours\n"));
    assert_false(pool_said(p, "not ours"));
    assert_true(pool_said(p, "Ran 23 jobs"));
}

static bool is_object(const char *line)
{
    return begins(line, "{\"time\":\"") && line[strlen(line) - 1] == '}';
}

/* Rule G4: with JSON every line of stdout is an object, whatever handlers print. */
static void test_g4_json(void **state)
{
    pool *p = *state;
    char *text, *rest, *line, id[129];
    int n = 0;

    pool_push_many(p, "long", 1000, NULL, 2);
    pool_push_many(p, "prints", 9, NULL, 2);
    strcpy(id, pool_push(p, "says", 0, NULL));
    p->stderr_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1 output=json"), 0);
    close(p->stderr_fd);
    rest = text = pool_output(p);
    position(text, "\"text\":\"said %s\"}\n", id);
    position(text, "\"text\":\"tail %s\"}\n", id);
    while ((line = strsep(&rest, "\n")) && *line) {
        if (!is_object(line))
            fail_msg("no object: %s", line);
        n += strstr(line, "\"event\":\"output\"") != NULL;
    }
    assert_int_equal(n, 2 + 2 + 18);
    free(text);
}

/* ---- kills ----------------------------------------------------------------------------------- */

/* Case B149: killed in the middle of a line, by anybody or by its time limit. */
static void check_killed(pool *p, const char *id, const char *word)
{
    char *text = pool_output(p);
    int at = position(text, "half a line of %s\n", id);

    assert_true(position(text, "before %s\n", id) < at);
    assert_true(position(text, "%s: halts %s", word, id) > at);
    free(text);
}

static void test_b149_killed(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "halts", 60000, "tries=1"));
    pool_start(p, "processes=2 stop_when_empty=1");
    wait_until(pool_ledger(p, "halted") == 1, 20);
    assert_true(pool_kill(pool_runner(p, "halted")));
    assert_int_equal(pool_wait(p, 20), 0);
    check_killed(p, id, "Crashed");
}

static void test_b149_time_limit(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "halts", 60000, "tries=1 timeout=0.3"));
    assert_int_equal(pool_run(p, "stop_when_empty=1 timeout_grace=0.2"), 0);
    check_killed(p, id, "Timed out");
}

/* Rule C5: another dispatcher takes over; what children print meanwhile comes through. */
static void test_dispatcher_killed(void **state)
{
    pool *p = *state;
    char *text;

    pool_push_many(p, "prints", LINES, NULL, 100);
    pool_start(p, "processes=2 stop_when_empty=1");
    wait_until(pool_ledger(p, "end") > 10, 20);
    wait_until(pool_kill(pool_dispatcher(p)), 10);
    assert_int_equal(pool_wait(p, 60), 0);
    text = pool_output(p);
    assert_int_equal(count(text, "error: the dispatcher died"), 1);
    memcpy(strstr(text, "error:"), "[20", 3); /* all others are the usual ones */
    assert_int_equal(check_lines(text), 100 * (LINES + LINES / 3));
    free(text);
    assert_int_equal(pool_ledger(p, "end prints"), 100);
}

/* Rule H3: the master is gone; the dispatcher's last lines go out all the same. */
static void test_master_killed(void **state)
{
    pool *p = *state;

    pool_push_many(p, "nap", 60000, NULL, 2);
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "begin") == 2 && pool_dispatcher(p), 20);
    pool_signal(p, SIGKILL);
    assert_int_equal(pool_wait(p, 20), 1000 + SIGKILL);
    wait_until(pool_is_all_gone(p), 20);
    assert_true(pool_said(p, "error: the worker's main process died"));
    assert_true(pool_said(p, "Crashed: nap"));
}

/* ---- nobody takes it ------------------------------------------------------------------------- */

static void test_b149_closed(void **state)
{
    pool *p = *state;

    p->stdout_fd = -1;
    pool_push_many(p, "prints", LINES, NULL, 10);
    pool_push(p, "floods", 1000, NULL);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end prints"), 10);
    assert_int_equal(pool_ledger(p, "end floods"), 1);
    p->stderr_fd = -1;
    pool_push_many(p, "prints", LINES, NULL, 10);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end prints"), 20);
}

static void test_b149_broken_pipe(void **state)
{
    pool *p = *state;
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    p->stdout_fd = fds[1];
    close(fds[0]);
    pool_push_many(p, "prints", LINES, NULL, 10);
    pool_push(p, "floods", 1000, NULL);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    close(fds[1]);
    assert_int_equal(pool_ledger(p, "end"), 11);
}

static void test_b149_full_disk(void **state)
{
    pool *p = *state;

    p->stdout_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    pool_push_many(p, "prints", LINES, NULL, 10);
    pool_push(p, "floods", 1000, NULL);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    close(p->stdout_fd);
    assert_int_equal(pool_ledger(p, "end"), 11);
}

static void fill_up(const char *path)
{
    static const char zeros[512];
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    close(fd);
}

/* Lines of the log that are whole; those that are not fail. Adds up what was dropped. */
static int count_whole_lines(const char *path, int *dropped)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    int n = 0, lost;

    *dropped = 0;
    while (f && fgets(line, sizeof(line), f)) {
        const char *event = strstr(line, "\"event\":\"");
        const size_t length = strlen(line);

        if (length < 2 || line[0] != '{' || strcmp(line + length - 2, "}\n") != 0)
            continue; /* the one that was torn */
        n += event && strncmp(event + 9, "processed\"", 10) == 0;
        if (strstr(line, "\"event\":\"dropped\"") &&
            sscanf(strstr(line, "\"lines\":"), "\"lines\":%d", &lost) == 1)
            *dropped += lost;
    }
    if (f)
        fclose(f);
    return n;
}

/* Rules G4, J1, case B149: the disk of the log fills up under the worker and is cleared again: it
 * works on, what comes after is whole lines, and what was lost is counted to the line. */
static void test_g4_full_log_disk(void **state)
{
    pool *p = *state;
    char folder[200], log[256], filler[256];
    int dropped = 0, logged;

    snprintf(folder, sizeof(folder), "%s/disk", jobq_test_folder());
    mkdir(folder, 0700);
    if (geteuid() != 0 || mount("tmpfs", folder, "tmpfs", 0, "size=256k") != 0) {
        print_message("skipped: a small disk needs root and mount\n");
        skip();
    }
    snprintf(log, sizeof(log), "%s/log", folder);
    snprintf(filler, sizeof(filler), "%s/filler", folder);
    p->stdout_fd = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    pool_push_many(p, "nap", 1, NULL, 50);
    pool_start(p, "processes=2 output=json");
    wait_until(count_whole_lines(log, &dropped) == 50, 20);
    fill_up(filler);
    pool_push_many(p, "nap", 1, NULL, 150);
    wait_until(pool_ledger(p, "end nap") == 200, 30);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 20);
    assert_int_equal(unlink(filler), 0);
    pool_push_many(p, "nap", 1, NULL, 50);
    wait_until(pool_ledger(p, "end nap") == 250, 30);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    close(p->stdout_fd);
    logged = count_whole_lines(log, &dropped);
    print_message("%d of 250 in the log, %d dropped\n", logged, dropped);
    assert_true(dropped > 50 && logged >= 100);
    assert_int_equal(logged + dropped, 250);
    umount2(folder, MNT_DETACH);
}

/* A pipe that nobody reads: the first handler waits a second, then everything goes on. */
static void test_b149_full_pipe(void **state)
{
    static char text[1 << 20];
    pool *p = *state;
    int fds[2];
    ssize_t n;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    p->stdout_fd = fds[1];
    pool_push_many(p, "floods", 2000, "timeout=20", 4);
    pool_push_many(p, "note", 0, "timeout=20", 20);
    pool_start(p, "processes=2 stop_when_empty=1");
    assert_int_equal(pool_wait(p, 30), 0);
    assert_int_equal(pool_ledger(p, "end"), 24);
    assert_false(pool_said(p, "Timed out"));
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    n = read(fds[0], text, sizeof(text) - 1);
    assert_true(n > 4096);
    assert_int_equal(text[n - 1], '\n');
    close(fds[0]);
    close(fds[1]);
}

/* The part of a JSON line behind "KEY": (up to the next , or }); NULL: it has none. */
static const char *field_of(const char *line, const char *key)
{
    static char value[256];
    char wanted[40];
    const char *at;

    snprintf(wanted, sizeof(wanted), "\"%s\":", key);
    at = strstr(line, wanted);
    if (!at)
        return NULL;
    at += strlen(wanted);
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, ",}"), at);
    return value;
}

/* Every event has the fields that doc/output.md says it has. */
static void check_fields(const char *line)
{
    static const struct {
        const char *event, *fields;
    } rows[] = {
        {"starting", "time worker queues processes"},
        {"processed", "time worker id name queue attempt tries outcome took"},
        {"crashed", "time worker id name queue attempt tries outcome took message"},
        {"failed", "time worker id name queue attempt tries outcome"},
        {"released", "time worker id name queue attempt tries outcome took delay"},
        {"output", "time worker child text"},
        {"stopping", "time worker reason jobs code"},
    };
    char copy[160], event[64], *rest = copy, *word;

    snprintf(event, sizeof(event), "%s", field_of(line, "event"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strncmp(event + 1, rows[i].event, strlen(rows[i].event)) != 0)
            continue;
        snprintf(copy, sizeof(copy), "%s", rows[i].fields);
        while ((word = strtok_r(rest, " ", &rest)))
            if (!field_of(line, word))
                fail_msg("no field \"%s\" in %s", word, line);
    }
}

/* Rules G4, D7, case B149: children are killed while all of them print. Every line is an object of
 * its own with its fields, and what a job had printed when it ended is all there. */
static void test_g4_json_and_kills(void **state)
{
    enum { MANY = 400 };
    pool *p = *state;
    char *text, *rest, *line;
    int printed = 0, processed = 0, kills = 0;

    pool_push_many(p, "prints", LINES, "tries=0 backoff=0", MANY);
    pool_push_many(p, "lets_go", 1, NULL, 3);
    pool_push_many(p, "fail", 0, "tries=1", 3);
    p->stderr_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pool_start(p, "processes=3 max_crashes=0 stop_when_empty=1 output=json");
    wait_until(pool_ledger(p, "begin prints") > 0, 20);
    while (kills < 8 && pool_ledger(p, "end prints") < MANY - 50) {
        pid_t children[8];
        const size_t n = pool_children(p, children, 8);

        if (n > 0)
            kills += kill(children[(size_t)kills % n], SIGKILL) == 0;
    }
    assert_true(kills > 0);
    assert_int_equal(pool_wait(p, 60), 0);
    close(p->stderr_fd);
    rest = text = pool_output(p);
    while ((line = strsep(&rest, "\n")) && *line) {
        if (!is_object(line))
            fail_msg("no object: %s", line);
        check_fields(line);
        printed += strstr(line, "\"event\":\"output\"") != NULL;
        processed += strstr(line, "\"event\":\"processed\"") != NULL;
    }
    print_message("%d lines printed, %d jobs, %d kills\n", printed, processed, kills);
    assert_int_equal(processed, MANY + 3);
    assert_true(printed >= MANY * LINES); /* and those of attempts that were killed */
    assert_null(strstr(text, "\"event\":\"dropped\""));
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    free(text);
}

/* ---- very much of it ------------------------------------------------------------------------- */

enum { FLOOD_KB = 100000, FLOODED = FLOOD_KB * 1000 };

/* Reads so many bytes of the flood; how many newlines. */
static size_t take(int fd, size_t most, size_t *lines)
{
    static char bytes[1 << 16];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t taken = 0;

    while (taken < most && poll(&p, 1, 10000) > 0) {
        const ssize_t n = read(fd, bytes, sizeof(bytes));

        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            *lines += bytes[i] == '\n';
        taken += (size_t)n;
    }
    return taken;
}

/* Rule D7: a handler prints 100 MB, slowed by its reader. Nothing is lost, the lease of a second is
 * renewed all the time, and the other child's jobs are done as if nothing was. */
static void test_d7_flood(void **state)
{
    pool *p = *state;
    size_t taken = 0, lines = 0;
    int64_t slowest_ms = 0;
    int fds[2], notes = 0;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    p->stdout_fd = fds[1];
    pool_push(p, "floods", FLOOD_KB, NULL);
    pool_start(p, "processes=2 lease=1 output=quiet");
    close(fds[1]);
    while (taken < FLOODED) {
        const size_t n = take(fds[0], 10000000, &lines);
        const int64_t start_ms = jobq__clock_mono_ms();

        if (n == 0)
            fail_msg("no more after %zu bytes", taken);
        taken += n;
        pool_push(p, "note", 0, NULL);
        notes++;
        wait_until(pool_ledger(p, "end note") == notes, 20); /* the flood waits in its pipe */
        if (jobq__clock_mono_ms() - start_ms > slowest_ms)
            slowest_ms = jobq__clock_mono_ms() - start_ms;
    }
    wait_until(pool_ledger(p, "end floods") == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(taken + take(fds[0], 1000, &lines), FLOODED);
    assert_int_equal(lines, FLOOD_KB);
    assert_true(slowest_ms < 5000);
    assert_false(pool_said(p, "dropped"));
    assert_false(pool_said(p, "lease"));
    close(fds[0]);
}

/* ---- what children leave behind -------------------------------------------------------------- */

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* A process that holds the pipe of a child that is gone holds nobody up, and is not harmed while
 * the worker lives. */
static void test_d7_left_behind(void **state)
{
    pool *p = *state;
    pid_t left;

    pool_push(p, "leaves", 300, NULL);
    pool_start(p, "processes=1 recycle_jobs=1");
    wait_until(pool_ledger(p, "left") == 1, 20);
    left = pool_runner(p, "left");
    wait_until(pool_said(p, "ended by what it left\n"), 20);
    assert_true(pool_said(p, "begun by the child, \n"));
    pool_push_many(p, "note", 0, NULL, 3);
    wait_until(pool_ledger(p, "end note") == 3, 20);
    assert_true(is_alive(left));
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 10), 0);
    assert_true(is_alive(left));
    kill(left, SIGKILL);
}

/* ---- cutting --------------------------------------------------------------------------------- */

static void append(void *payload, const char *lines, size_t n)
{
    jobq__buf *b = payload;

    assert_true(n > 0 && lines[n - 1] == '\n');
    jobq__buf_add(b, lines, n);
}

/* Whatever the pieces: the same lines. */
static void test_d7_cutting(void **state)
{
    static const char text[] = "a\nbc\n\n\ndef\nx";

    (void)state;
    for (size_t step = 1; step < sizeof(text); step++) {
        jobq__lines lines = {{0}};
        jobq__buf out = {0};

        for (size_t i = 0; i < sizeof(text) - 1; i += step)
            jobq__lines_add(&lines, text + i,
                            sizeof(text) - 1 - i < step ? sizeof(text) - 1 - i : step, append,
                            &out);
        assert_int_equal(out.n, sizeof(text) - 2);
        jobq__lines_end(&lines, append, &out);
        jobq__lines_end(&lines, append, &out);
        assert_string_equal(jobq__buf_text(&out), "a\nbc\n\n\ndef\nx\n");
        jobq__lines_free(&lines);
        jobq__buf_free(&out);
    }
}

/* A line of exactly the longest length stays one; one byte more makes two. */
static void test_d7_longest_line(void **state)
{
    static char text[JOBQ__LINE_MAX + 2];

    (void)state;
    for (size_t n = JOBQ__LINE_MAX - 1; n <= JOBQ__LINE_MAX + 1; n++)
        for (size_t step = 7; step < 2 * sizeof(text); step *= 13) {
            jobq__lines lines = {{0}};
            jobq__buf out = {0};

            memset(text, 'x', n);
            text[n] = '\n';
            for (size_t i = 0; i <= n; i += step)
                jobq__lines_add(&lines, text + i, n + 1 - i < step ? n + 1 - i : step, append,
                                &out);
            if (step > n && n > JOBQ__LINE_MAX) /* came as a whole: need not be kept */
                assert_int_equal(out.n, n + 1);
            else
                assert_int_equal(out.n, n + 1 + (n > JOBQ__LINE_MAX));
            assert_int_equal(lines.partial.n, 0);
            jobq__lines_free(&lines);
            jobq__buf_free(&out);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_set_up, pool_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_d7_cutting),
        cmocka_unit_test(test_d7_longest_line),
        TEST(test_d7_whole_lines),
        TEST(test_d7_two_streams),
        TEST(test_g4_before_its_line),
        TEST(test_g4_before_its_line_late),
        TEST(test_b149_tail_of_idle_child),
        TEST(test_d7_long_and_binary),
        TEST(test_d7_replaced),
        TEST(test_g4_json),
        TEST(test_b149_killed),
        TEST(test_g4_json_and_kills),
        TEST(test_b149_time_limit),
        TEST(test_dispatcher_killed),
        TEST(test_master_killed),
        TEST(test_b149_closed),
        TEST(test_b149_broken_pipe),
        TEST(test_b149_full_disk),
        TEST(test_g4_full_log_disk),
        TEST(test_b149_full_pipe),
        TEST(test_d7_flood),
        TEST(test_d7_left_behind),
    };

    return cmocka_run_group_tests_name("process/output", tests, NULL, NULL);
}
