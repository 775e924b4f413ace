/* SPDX-License-Identifier: MIT
 *
 * top: queues and workers on a terminal, drawn anew all the time, with keys to pause, retry and
 * quit.
 */
#include <errno.h>
#include <jobqueue/control.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "console/console.h"
#include "util/clock.h"
#include "util/str.h"

enum { EVERY_MS = 1000, HEAD_LINES = 3, LEAST_LINES = 8, CTRL_C = 3 };

typedef struct {
    jobq__cli *cli;
    char **names; /* queues, sorted */
    size_t count, chosen;
    int signals, height;
    bool over, asking; /* to be sure of a retry */
    char message[256]; /* what the last key did */
} top;

/* ---- the terminal ---------------------------------------------------------------------------- */

/* Keys come one by one and unseen, Ctrl-C among them, so that the terminal is always put back. */
static bool enter(struct termios *before)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    raw = *before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    fputs("\033[?1049h\033[?25l", stdout); /* a screen of its own, no cursor */
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void leave(const struct termios *before)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, before);
}

static int measure_height(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > LEAST_LINES ? size.ws_row
                                                                                     : LEAST_LINES;
}

JOBQ_PRINTF(2, 3)
static void say(top *t, const char *fmt, ...)
{
    char text[sizeof(t->message)];
    va_list args;

    va_start(args, fmt);
    jobq__vformat(text, sizeof(text), fmt, args);
    va_end(args);
    jobq__str_one_line(t->message, sizeof(t->message), text, strlen(text));
}

static void say_error(top *t)
{
    say(t, "error: %s", jobq_error_message(jobq_error_last()));
}

/* ---- one look -------------------------------------------------------------------------------- */

static bool read_names(top *t)
{
    char **names;
    size_t count;

    if (jobq_queue_names(t->cli->queue, &names, &count) < 0) {
        say_error(t);
        return false;
    }
    jobq_names_free(t->names, t->count);
    t->names = names;
    t->count = count;
    if (t->chosen >= count)
        t->chosen = count ? count - 1 : 0;
    return true;
}

static const char *paused_word(const jobq__pauses *pauses, const char *queue)
{
    return jobq__pauses_have(pauses, queue) ? "yes" : "no";
}

/* The chosen one is among the lines that fit. */
static size_t first_shown(const top *t, size_t lines)
{
    return t->chosen >= lines ? t->chosen - lines + 1 : 0;
}

static bool draw_queues(top *t, const jobq__pauses *pauses, size_t lines)
{
    static const jobq_stat stats[] = {JOBQ_STAT_READY, JOBQ_STAT_DELAYED, JOBQ_STAT_RESERVED,
                                      JOBQ_STAT_DEAD};
    const size_t first = first_shown(t, lines);
    int64_t values[JOBQ_STATS], oldest;
    bool fine = true;
    jobq__table table;

    jobq__table_begin(&table, t->cli, " ", "QUEUE", ">READY", ">DELAYED", ">RESERVED", ">DEAD",
                      ">CAPACITY", ">OLDEST", "PAUSED", (char *)NULL);
    for (size_t i = first; fine && i < t->count && i < first + lines; i++) {
        fine = jobq_queue_stats(t->cli->queue, t->names[i], strlen(t->names[i]), values) >= 0;
        if (!fine)
            break;
        oldest = values[JOBQ_STAT_OLDEST_READY_AGE_MS];
        jobq__table_add(&table, i == t->chosen ? ">" : " ");
        jobq__table_add(&table, jobq__cli_clean(t->cli, t->names[i], strlen(t->names[i])));
        for (size_t k = 0; k < sizeof(stats) / sizeof(stats[0]); k++)
            jobq__table_addf(&table, "%lld", (long long)values[stats[k]]);
        jobq__table_add(&table, jobq__cli_limit(t->cli, values[JOBQ_STAT_CAPACITY]));
        jobq__table_add(&table, oldest < 0 ? "-" : jobq__cli_span(t->cli, oldest));
        jobq__table_add(&table, paused_word(pauses, t->names[i]));
    }
    if (!fine)
        say_error(t);
    jobq__table_end(&table);
    return fine;
}

static bool draw_workers(top *t, size_t lines)
{
    static const jobq_workers_number_field numbers[] = {JOBQ_WORKERS_PROCESSES,
                                                        JOBQ_WORKERS_RUNNING, JOBQ_WORKERS_HELD};
    jobq_workers *w;
    jobq__table table;

    if (jobq_queue_workers(t->cli->queue, &w) < 0) {
        say_error(t);
        return false;
    }
    jobq__table_begin(&table, t->cli, ">PROCESSES", ">RUNNING", ">HELD", "STARTED", "WORKER",
                      (char *)NULL);
    for (size_t i = 0; i < jobq_workers_count(w) && i < lines; i++) {
        const char *id = jobq_workers_text(w, i, JOBQ_WORKERS_ID);
        const int64_t started_ms = jobq_workers_number(w, i, JOBQ_WORKERS_STARTED_AT_MS);

        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
            jobq__table_addf(&table, "%lld", (long long)jobq_workers_number(w, i, numbers[k]));
        jobq__table_add(&table, jobq__cli_time(t->cli, started_ms));
        jobq__table_add(&table, jobq__cli_clean(t->cli, id ? id : "-", id ? strlen(id) : 1));
    }
    putchar('\n');
    jobq__table_end(&table);
    jobq_workers_free(w);
    return true;
}

/* Two thirds of the lines are for queues at most; what they leave is for workers. */
static void draw_all(top *t)
{
    const size_t room = (size_t)t->height - HEAD_LINES - 4, most = room * 2 / 3;
    jobq__pauses pauses;
    size_t shown;

    if (!read_names(t))
        return;
    if (jobq__pauses_ask(t->cli, &pauses) == 0) {
        shown = t->count < most ? t->count : most;
        if (draw_queues(t, &pauses, shown ? shown : 1))
            draw_workers(t, room - shown);
    } else {
        say_error(t);
    }
    jobq__pauses_free(&pauses);
}

static void draw(top *t)
{
    const jobq__arena kept = t->cli->arena;

    t->cli->arena = (jobq__arena){0};
    jobq__terminal_look(&t->cli->terminal, t->cli->given.no_color);
    t->height = measure_height();
    printf("\033[H\033[J%s  %s\n", jobq__cli_time(t->cli, jobq__clock_wall_ms()),
           jobq__cli_clean(t->cli, t->cli->shown_dsn, strlen(t->cli->shown_dsn)));
    puts("up, down: choose   p: pause or resume   a: all queues   r: retry its dead   q: quit\n");
    draw_all(t);
    printf("\033[%d;1H%s", t->height, t->message);
    fflush(stdout);
    jobq__arena_free(&t->cli->arena);
    t->cli->arena = kept;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* queue NULL: all. Pauses what is not paused in its own right, and the other way round. */
static void toggle_pause(top *t, const char *queue)
{
    const size_t n = queue ? strlen(queue) : 0;
    jobq__pauses pauses;
    bool paused;
    int rc = jobq__pauses_ask(t->cli, &pauses);

    paused = rc == 0 && jobq__pauses_have_own(&pauses, queue);
    jobq__pauses_free(&pauses);
    if (rc == 0)
        rc = paused ? jobq_queue_resume(t->cli->queue, queue, n)
                    : jobq_queue_pause(t->cli->queue, queue, n, 0);
    if (rc < 0)
        say_error(t);
    else
        say(t, "%s: %s", queue ? queue : "all queues", paused ? "resumed" : "paused");
}

static void retry_dead(top *t, const char *queue)
{
    const jobq_filter filter = {.size = sizeof(filter), .queue = queue};
    int64_t skipped = 0;
    int64_t done =
        jobq_queue_mend(t->cli->queue, JOBQ_DEAD_RETRY, &filter, false, &skipped, NULL, NULL);

    if (done < 0)
        say_error(t);
    else
        say(t, "%s: %lld retried, %lld skipped (unique key held, or retention over)", queue,
            (long long)done, (long long)skipped);
}

static void take_answer(top *t, char key)
{
    t->asking = false;
    if (key == 'y' || key == 'Y')
        retry_dead(t, t->names[t->chosen]);
    else
        say(t, "nothing was retried");
}

static void quit(top *t, const char *queue)
{
    (void)queue;
    t->over = true;
}

static void choose_above(top *t, const char *queue)
{
    (void)queue;
    t->chosen -= t->chosen > 0;
}

static void choose_below(top *t, const char *queue)
{
    (void)queue;
    t->chosen += t->chosen + 1 < t->count;
}

static void pause_all(top *t, const char *queue)
{
    (void)queue;
    toggle_pause(t, NULL);
}

static void ask_for_retry(top *t, const char *queue)
{
    t->asking = true;
    say(t, "Retry all dead jobs of %s? [y/N]", queue);
}

static const struct {
    char key;
    bool needs_queue;
    void (*press)(top *t, const char *queue);
} presses[] = {{'q', false, quit},         {CTRL_C, false, quit},     {'k', false, choose_above},
               {'j', false, choose_below}, {'p', true, toggle_pause}, {'a', false, pause_all},
               {'r', true, ask_for_retry}};

static void take_key(top *t, char key)
{
    const char *queue = t->chosen < t->count ? t->names[t->chosen] : NULL;

    t->message[0] = '\0';
    if (t->asking && queue && key != CTRL_C) {
        take_answer(t, key);
        return;
    }
    for (size_t i = 0; i < sizeof(presses) / sizeof(presses[0]); i++)
        if (presses[i].key == key && (queue || !presses[i].needs_queue))
            presses[i].press(t, queue);
}

/* Arrow keys are three bytes. A terminal that is gone ends it. */
static void take_keys(top *t)
{
    char keys[64];
    const ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

    for (ssize_t i = 0; i < n && !t->over; i++) {
        if (keys[i] == '\033' && i + 2 < n && (keys[i + 1] == '[' || keys[i + 1] == 'O')) {
            i += 2;
            take_key(t, keys[i] == 'A' ? 'k' : keys[i] == 'B' ? 'j' : ' ');
        } else {
            take_key(t, keys[i]);
        }
    }
}

/* ---- the view -------------------------------------------------------------------------------- */

static int open_signals(sigset_t *before)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        sigaddset(&set, ends[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void wait_for_news(top *t, int64_t ms)
{
    struct pollfd fds[] = {{t->signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    struct signalfd_siginfo info;

    if (poll(fds, 2, (int)ms) < 0 && errno != EINTR)
        t->over = true;
    while (read(t->signals, &info, sizeof(info)) == sizeof(info))
        t->over = t->over || info.ssi_signo != SIGWINCH; /* that one: only draw anew */
    if (fds[1].revents & POLLIN)
        take_keys(t);
    else if (fds[1].revents)
        t->over = true;
}

static void live(top *t)
{
    const int64_t every_ms = t->cli->given.watch_ms ? t->cli->given.watch_ms : EVERY_MS;

    while (!t->over && !ferror(stdout)) {
        draw(t);
        wait_for_news(t, every_ms);
    }
}

int jobq__cmd_top(jobq__cli *cli)
{
    top t = {.cli = cli};
    struct termios before;
    sigset_t mask;
    int code;

    if (cli->given.json || cli->given.quiet)
        return jobq__cli_usage(cli, "top is for people: \"stats --watch\" has --json");
    if (!cli->terminal.out || isatty(STDIN_FILENO) != 1)
        return jobq__cli_usage(cli, "top needs a terminal: elsewhere use \"stats --watch\"");
    code = jobq__cli_open(cli);
    if (code)
        return code;
    if (jobq_queue_ping(cli->queue) < 0) /* one that is not there in the first place is the end */
        return jobq__cli_fail(cli);
    t.signals = open_signals(&mask);
    if (enter(&before))
        live(&t);
    leave(&before);
    if (t.signals >= 0)
        close(t.signals);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    jobq_names_free(t.names, t.count);
    return JOBQ__EXIT_OK;
}
