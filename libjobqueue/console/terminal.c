/* SPDX-License-Identifier: MIT
 *
 * What we know about the terminal: is there one, how wide, may it be coloured; and the progress
 * bar.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "console/console.h"
#include "util/clock.h"

/* https://no-color.org: set and not empty. */
static bool color_is_wanted(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

static int measure_width(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void jobq__terminal_look(jobq__terminal *t, bool no_color)
{
    bool color = !no_color && color_is_wanted();

    t->out = isatty(STDOUT_FILENO) == 1;
    t->err = isatty(STDERR_FILENO) == 1;
    t->color_out = t->out && color;
    t->color_err = t->err && color;
    t->width = t->out ? measure_width(STDOUT_FILENO) : 0;
}

const char *jobq__terminal_style(bool color, jobq__style style)
{
    static const char *const sequences[] = {"\033[1m", "\033[31m", "\033[0m"};

    return color ? sequences[style] : "";
}

void jobq__progress_begin(jobq__progress *p, const jobq__cli *cli, const char *verb, int64_t total)
{
    p->verb = verb;
    p->total = total;
    p->drawn_ms = 0;
    p->drawn = false;
    p->on = cli->terminal.err && !cli->given.quiet;
}

void jobq__progress_show(jobq__progress *p, int64_t done)
{
    enum { BAR = 30, EVERY_MS = 100 };
    int64_t now = jobq__clock_mono_ms();
    char bar[BAR + 1];
    int filled;

    if (!p->on || (p->drawn && now - p->drawn_ms < EVERY_MS))
        return;
    p->drawn = true;
    p->drawn_ms = now;
    if (p->total <= 0) {
        fprintf(stderr, "\r\033[K%s %lld", p->verb, (long long)done);
    } else {
        filled = done >= p->total ? BAR : (int)(done * BAR / p->total);
        memset(bar, '.', BAR);
        memset(bar, '#', (size_t)filled);
        bar[BAR] = '\0';
        fprintf(stderr, "\r\033[K%s [%s] %lld of %lld", p->verb, bar, (long long)done,
                (long long)p->total);
    }
    fflush(stderr);
}

void jobq__progress_end(jobq__progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
