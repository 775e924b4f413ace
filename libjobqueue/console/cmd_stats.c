/* SPDX-License-Identifier: MIT
 *
 * stats, once or again and again (rule N1). A live view redraws a terminal; elsewhere each tick is
 * a block, or with --json a line.
 */
#include <errno.h>
#include <jobqueue/control.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "console/console.h"
#include "util/clock.h"

typedef struct {
    const char *queue;
    int64_t values[JOBQ_STATS];
    int64_t paused_until_ms; /* 0: until it is resumed */
    jobq__minutes minutes;   /* when they were asked for */
} stats_row;

static const struct {
    const char *key;
    jobq_stat field;
} columns[] = {{"ready", JOBQ_STAT_READY},
               {"delayed", JOBQ_STAT_DELAYED},
               {"reserved", JOBQ_STAT_RESERVED},
               {"dead", JOBQ_STAT_DEAD},
               {"backlog", JOBQ_STAT_BACKLOG}};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* ---- one look -------------------------------------------------------------------------------- */

static int collect_one(jobq__cli *cli, stats_row *row)
{
    const size_t n = strlen(row->queue);

    row->paused_until_ms = 0;
    if (jobq_queue_stats(cli->queue, row->queue, n, row->values) < 0 ||
        (row->values[JOBQ_STAT_PAUSED] &&
         jobq_queue_is_paused(cli->queue, row->queue, n, &row->paused_until_ms) < 0) ||
        (cli->given.minutes && jobq_queue_minutes(cli->queue, row->queue, n, cli->given.minutes,
                                                  &row->minutes.list, &row->minutes.count) < 0))
        return jobq__cli_fail(cli);
    return 0;
}

static void free_minutes(const stats_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jobq_minutes_free(rows[i].minutes.list);
}

/* Everything is asked for before the first byte is printed, so that a failure leaves no half
 * document; NULL and the exit code when it cannot be had. */
static stats_row *collect(jobq__cli *cli, const jobq__words_given *queues, int *code_out)
{
    stats_row *rows = jobq__arena_alloc(&cli->arena, (queues->count + 1) * sizeof(*rows));

    if (!rows) {
        *code_out = jobq__cli_usage(cli, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < queues->count; i++) {
        rows[i] = (stats_row){.queue = queues->items[i]};
        *code_out = collect_one(cli, &rows[i]);
        if (*code_out) {
            free_minutes(rows, i + 1);
            return NULL;
        }
    }
    return rows;
}

static void print_json(const jobq__cli *cli, const stats_row *rows, size_t n)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    if (cli->given.watch_ms)
        jobq__json_time(&j, "time", jobq__clock_wall_ms());
    jobq__json_open(&j, "queues", '[');
    for (size_t i = 0; i < n; i++) {
        int64_t oldest = rows[i].values[JOBQ_STAT_OLDEST_READY_AGE_MS];

        jobq__json_open(&j, NULL, '{');
        jobq__json_string(&j, "queue", rows[i].queue);
        for (size_t k = 0; k < COLUMNS; k++)
            jobq__json_int(&j, columns[k].key, rows[i].values[columns[k].field]);
        if (oldest < 0)
            jobq__json_null(&j, "oldest_ready_age");
        else
            jobq__json_real(&j, "oldest_ready_age", (double)oldest / 1000);
        jobq__json_bool(&j, "paused", rows[i].values[JOBQ_STAT_PAUSED]);
        jobq__json_time(&j, "paused_until", rows[i].paused_until_ms);
        jobq__json_limit(&j, "capacity", rows[i].values[JOBQ_STAT_CAPACITY]);
        if (cli->given.minutes)
            jobq__minutes_json(&j, &rows[i].minutes);
        jobq__json_close(&j, '}');
    }
    jobq__json_close(&j, ']');
    jobq__json_close(&j, '}');
}

/* "until 10:05:03" is by the store's clock, shown in this host's zone. */
static const char *paused_word(jobq__cli *cli, const stats_row *row)
{
    if (!row->values[JOBQ_STAT_PAUSED])
        return "no";
    if (!row->paused_until_ms)
        return "yes";
    return jobq__cli_format(cli, "until %s", jobq__cli_time(cli, row->paused_until_ms));
}

/* A column of its own only where some queue has one. */
static bool any_capacity(const stats_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].values[JOBQ_STAT_CAPACITY])
            return true;
    return false;
}

static void print_table(jobq__cli *cli, const stats_row *rows, size_t n)
{
    const bool limited = any_capacity(rows, n);
    jobq__table t;

    if (limited)
        jobq__table_begin(&t, cli, "QUEUE", ">READY", ">DELAYED", ">RESERVED", ">DEAD", ">BACKLOG",
                          ">CAPACITY", ">OLDEST", "PAUSED", (char *)NULL);
    else
        jobq__table_begin(&t, cli, "QUEUE", ">READY", ">DELAYED", ">RESERVED", ">DEAD", ">BACKLOG",
                          ">OLDEST", "PAUSED", (char *)NULL);
    for (size_t i = 0; i < n; i++) {
        int64_t oldest = rows[i].values[JOBQ_STAT_OLDEST_READY_AGE_MS];

        jobq__table_add(&t, jobq__cli_clean(cli, rows[i].queue, strlen(rows[i].queue)));
        for (size_t k = 0; k < COLUMNS; k++)
            jobq__table_addf(&t, "%lld", (long long)rows[i].values[columns[k].field]);
        if (limited)
            jobq__table_add(&t, jobq__cli_limit(cli, rows[i].values[JOBQ_STAT_CAPACITY]));
        jobq__table_add(&t, oldest < 0 ? "-" : jobq__cli_span(cli, oldest));
        jobq__table_add(&t, paused_word(cli, &rows[i]));
    }
    jobq__table_end(&t);
}

static void print_minutes(jobq__cli *cli, const stats_row *rows, size_t n)
{
    jobq__table t;

    if (cli->given.minutes == 1)
        puts("\nin the last minute:");
    else
        printf("\nin the last %lld minutes:\n", (long long)cli->given.minutes);
    jobq__minutes_titles(cli, &t);
    for (size_t i = 0; i < n; i++)
        jobq__minutes_row(cli, &t, rows[i].queue, &rows[i].minutes);
    jobq__table_end(&t);
}

/* What stands over each look of a live view. */
static void print_head(jobq__cli *cli)
{
    const char *dsn = cli->shown_dsn;
    int64_t now = jobq__clock_wall_ms();

    if (cli->terminal.out)
        fputs(jobq__cli_format(cli, "\033[H\033[J%s  %s  every %.3g s, Ctrl-C ends it\n\n",
                               jobq__cli_time(cli, now), jobq__cli_clean(cli, dsn, strlen(dsn)),
                               (double)cli->given.watch_ms / 1000),
              stdout);
    else
        printf("%s\n", jobq__cli_time(cli, now));
}

static void print_all(jobq__cli *cli, const stats_row *rows, size_t n)
{
    if (cli->given.watch_ms)
        print_head(cli);
    if (n)
        print_table(cli, rows, n);
    if (n && cli->given.minutes)
        print_minutes(cli, rows, n);
    if (n == 0)
        jobq__cli_note(cli, "the store has no queues yet");
}

static int show(jobq__cli *cli, const jobq__words_given *queues)
{
    int code = 0;
    const stats_row *rows = collect(cli, queues, &code);

    if (!rows)
        return code;
    if (cli->given.json && !cli->given.quiet)
        print_json(cli, rows, queues->count);
    if (jobq__cli_speaks(cli))
        print_all(cli, rows, queues->count);
    free_minutes(rows, queues->count);
    return code;
}

/* The queues that were named, else all that the store has now. */
static int look(jobq__cli *cli)
{
    char **names;
    size_t count;
    int code;

    if (cli->given.args.count)
        return show(cli, &cli->given.args);
    if (jobq_queue_names(cli->queue, &names, &count) < 0)
        return jobq__cli_fail(cli);
    code = show(cli, &(jobq__words_given){(const char **)names, count});
    jobq_names_free(names, count);
    return code;
}

/* ---- a live view ----------------------------------------------------------------------------- */

/* Waits; true: INT or TERM came. They are blocked, so none is lost and no handler is needed. */
static bool is_ended(const sigset_t *signals, int64_t ms)
{
    const int64_t until = jobq__clock_mono_ms() + ms;
    int64_t left;
    int got;

    do {
        left = until - jobq__clock_mono_ms();
        left = left > 0 ? left : 0;
        got = sigtimedwait(signals, NULL,
                           &(struct timespec){(time_t)(left / 1000), (left % 1000) * 1000000});
    } while (got < 0 && errno == EINTR);
    return got > 0;
}

/* One tick; its texts do not outlive it. */
static int tick(jobq__cli *cli)
{
    int code = cli->missing ? jobq__cli_open(cli) : 0; /* it may have been made meanwhile */
    const jobq__arena kept = cli->arena;

    if (code)
        return code;
    cli->arena = (jobq__arena){0};
    jobq__terminal_look(&cli->terminal, cli->given.no_color); /* it may have changed its width */
    code = look(cli);
    if (code == 0 && !cli->terminal.out && jobq__cli_speaks(cli))
        putchar('\n');
    fflush(stdout);
    jobq__arena_free(&cli->arena);
    cli->arena = kept;
    return code;
}

/* A store that goes away is said at each tick, and looked at again; one that was not there in the
 * first place is the end. */
static int watch(jobq__cli *cli)
{
    static const int ends[] = {SIGINT, SIGTERM};
    sigset_t signals, before;
    bool any = false, over = false;
    int code = 0;

    sigemptyset(&signals);
    for (size_t i = 0; i < 2; i++)
        sigaddset(&signals, ends[i]);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    if (cli->terminal.out)
        setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* each look arrives as a whole */
    while (!over) {
        code = tick(cli);
        any = any || code == 0;
        over = !any || ferror(stdout) || is_ended(&signals, cli->given.watch_ms);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return any ? JOBQ__EXIT_OK : code;
}

int jobq__cmd_stats(jobq__cli *cli)
{
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    return cli->given.watch_ms ? watch(cli) : look(cli);
}
