/* SPDX-License-Identifier: MIT
 *
 * How the console speaks: error and note lines, exit codes of errors, times and spans for people.
 */
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "console/console.h"
#include "util/str.h"

enum { LINE_SIZE = 2048 };

JOBQ_PRINTF(4, 0)
static void say(const char *mark, const char *style, const char *off, const char *fmt, va_list args)
{
    char raw[LINE_SIZE], line[LINE_SIZE];
    int n = jobq__vformat(raw, sizeof(raw), fmt, args);

    fflush(stdout); /* the order in which things were said */
    if (n < 0)
        return;
    jobq__str_one_line(line, sizeof(line), raw, strlen(raw));
    fprintf(stderr, "%s%s%s %s\n", style, mark, off, line);
}

JOBQ_PRINTF(2, 0)
static void say_error(const jobq__cli *cli, const char *fmt, va_list args)
{
    bool color = cli->terminal.color_err;

    say("error:", jobq__terminal_style(color, JOBQ__STYLE_RED),
        jobq__terminal_style(color, JOBQ__STYLE_OFF), fmt, args);
}

void jobq__cli_error(const jobq__cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say_error(cli, fmt, args);
    va_end(args);
}

int jobq__cli_usage(const jobq__cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say_error(cli, fmt, args);
    va_end(args);
    return JOBQ__EXIT_USAGE;
}

void jobq__cli_note(const jobq__cli *cli, const char *fmt, ...)
{
    va_list args;

    if (cli->given.quiet)
        return;
    va_start(args, fmt);
    say("note:", "", "", fmt, args);
    va_end(args);
}

/* What the caller wrote wrong is 2, what the store would not do is 1 (rule J1). */
int jobq__exit_of(const jobq_error *err)
{
    static const int usage[] = {JOBQ_EINVAL, JOBQ_ECONF, JOBQ_EUNSUPPORTED, JOBQ_ELIMIT,
                                JOBQ_EPAYLOAD};

    for (size_t i = 0; i < sizeof(usage) / sizeof(usage[0]); i++)
        if (jobq_error_code(err) == usage[i])
            return JOBQ__EXIT_USAGE;
    return jobq_error_is_fatal(err) ? JOBQ__EXIT_USAGE : JOBQ__EXIT_FAILED;
}

int jobq__cli_fail(const jobq__cli *cli)
{
    const jobq_error *err = jobq_error_last();
    const char *message = jobq_error_message(err);

    jobq__cli_error(cli, "%s", *message ? message : "out of memory");
    return jobq__exit_of(err);
}

bool jobq__cli_speaks(const jobq__cli *cli)
{
    return !cli->given.quiet && !cli->given.json;
}

const char *jobq__cli_clean(jobq__cli *cli, const char *p, size_t n)
{
    char *text = p ? jobq__arena_alloc(&cli->arena, n + 1) : NULL;

    if (!text)
        return "";
    jobq__str_one_line(text, n + 1, p, n);
    return text;
}

const char *jobq__cli_format(jobq__cli *cli, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    int n;

    va_start(args, fmt);
    n = jobq__vformat(NULL, 0, fmt, args);
    va_end(args);
    if (n >= 0)
        text = jobq__arena_alloc(&cli->arena, (size_t)n + 1);
    if (!text)
        return "";
    va_start(args, fmt);
    jobq__vformat(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}

const char *jobq__cli_limit(jobq__cli *cli, int64_t n)
{
    return n ? jobq__cli_format(cli, "%lld", (long long)n) : "-";
}

const char *jobq__cli_time(jobq__cli *cli, int64_t at_ms)
{
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm tm;
    char text[40];

    if (at_ms == 0 || !localtime_r(&seconds, &tm) ||
        !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
        return "";
    return jobq__cli_format(cli, "%s", text);
}

const char *jobq__cli_span(jobq__cli *cli, int64_t ms)
{
    static const struct {
        int64_t below, unit;
        const char *word;
    } units[] = {{1000, 1, "ms"},
                 {120LL * 1000, 1000, "s"},
                 {120LL * 60000, 60000, "min"},
                 {48LL * 3600000, 3600000, "h"},
                 {INT64_MAX, 86400000, "d"}};
    size_t i = 0;

    while (ms >= units[i].below && units[i].below != INT64_MAX)
        i++;
    return jobq__cli_format(cli, "%lld %s", (long long)(ms / units[i].unit), units[i].word);
}
