/* SPDX-License-Identifier: MIT
 *
 * Tables for people: columns as wide as their widest cell, the last one cut to the terminal's
 * width.
 */
#include <stdarg.h>
#include <string.h>

#include "console/console.h"
#include "util/str.h"

/* Code points that fill two character cells, near enough: East Asian wide forms and emoji. */
static const struct {
    uint32_t first, last;
} wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
            {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

/* Cells of a well-formed sequence. */
static size_t cells_of(const unsigned char *p, size_t step)
{
    uint32_t c = step == 3 ? p[0] & 15u : p[0] & 7u;

    if (step < 3)
        return 1;
    for (size_t i = 1; i < step; i++)
        c = c << 6 | (p[i] & 63u);
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (c >= wide[i].first && c <= wide[i].last)
            return 2;
    return 1;
}

/* Bytes of the text that fit into `max` cells; *cells_out = those filled. */
static size_t fit(const char *text, size_t max, size_t *cells_out)
{
    size_t n = strlen(text), i = 0, cells = 0;

    while (i < n) {
        size_t step = jobq__utf8_step(text + i, n - i);
        size_t more = step ? cells_of((const unsigned char *)text + i, step) : 1;

        if (cells + more > max)
            break;
        cells += more;
        i += step ? step : 1;
    }
    *cells_out = cells;
    return i;
}

void jobq__table_add(jobq__table *t, const char *text)
{
    size_t cells;

    fit(text, SIZE_MAX / 2, &cells);
    if (cells > t->column[t->at].width)
        t->column[t->at].width = cells;
    jobq__buf_add(&t->text, text, strlen(text) + 1);
    t->at = (t->at + 1) % t->columns;
}

void jobq__table_addf(jobq__table *t, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    jobq__vformat(text, sizeof(text), fmt, args);
    va_end(args);
    jobq__table_add(t, text);
}

void jobq__table_begin(jobq__table *t, const jobq__cli *cli, ...)
{
    const char *title;
    va_list args;

    memset(t, 0, sizeof(*t));
    t->cli = cli;
    va_start(args, cli);
    while (t->columns < JOBQ__TABLE_COLUMNS && va_arg(args, const char *))
        t->columns++;
    va_end(args);
    va_start(args, cli);
    for (size_t i = 0; i < t->columns; i++) {
        title = va_arg(args, const char *);
        t->column[i].right = *title == '>';
        jobq__table_add(t, title + t->column[i].right);
    }
    va_end(args);
}

static void print_cell(const jobq__table *t, size_t column, const char *text, size_t room)
{
    bool last = column + 1 == t->columns;
    size_t cells, n = fit(text, last ? room : SIZE_MAX / 2, &cells);
    size_t pad = t->column[column].width > cells ? t->column[column].width - cells : 0;

    if (t->column[column].right)
        printf("%*s", (int)pad, "");
    fwrite(text, 1, n, stdout);
    if (!t->column[column].right && !last)
        printf("%*s", (int)pad, "");
    fputs(last ? "\n" : "  ", stdout);
}

/* What the terminal leaves for the last column; without a terminal nothing is cut. */
static size_t last_room(const jobq__table *t)
{
    size_t used = 0, width = (size_t)t->cli->terminal.width;

    for (size_t i = 0; i + 1 < t->columns; i++)
        used += t->column[i].width + 2;
    return width == 0 ? SIZE_MAX / 2 : width > used + 8 ? width - used : 8;
}

void jobq__table_end(jobq__table *t)
{
    const char *p = t->text.p, *end = p + t->text.n;
    size_t room = last_room(t);
    bool color = t->cli->terminal.color_out;

    if (t->text.failed) {
        jobq__cli_error(t->cli, "out of memory");
        p = end;
    }
    for (size_t cell = 0; p && p < end; cell++, p += strlen(p) + 1) {
        size_t column = cell % t->columns;

        if (cell == 0)
            fputs(jobq__terminal_style(color, JOBQ__STYLE_BOLD), stdout);
        print_cell(t, column, p, room);
        if (cell + 1 == t->columns)
            fputs(jobq__terminal_style(color, JOBQ__STYLE_OFF), stdout);
    }
    jobq__buf_free(&t->text);
}
