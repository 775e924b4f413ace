/* SPDX-License-Identifier: MIT
 *
 * See lines.h.
 */
#include "worker/lines.h"

#include <string.h>

/* Out of memory: better two lines than none. */
static void give_up_keeping(jobq__lines *lines, const char *p, size_t n, jobq__lines_taker take,
                            void *payload)
{
    lines->partial.failed = false;
    if (lines->partial.n)
        take(payload, lines->partial.p, lines->partial.n);
    if (n)
        take(payload, p, n);
    take(payload, "\n", 1);
    jobq__buf_reset(&lines->partial);
}

static void keep(jobq__lines *lines, const char *p, size_t n, jobq__lines_taker take, void *payload)
{
    if (jobq__buf_reserve(&lines->partial, n + 1)) /* 1: for the end it may have to be given */
        jobq__buf_add(&lines->partial, p, n);
    else
        give_up_keeping(lines, p, n, take, payload);
}

void jobq__lines_end(jobq__lines *lines, jobq__lines_taker take, void *payload)
{
    if (lines->partial.n == 0)
        return;
    jobq__buf_addc(&lines->partial, '\n');
    take(payload, lines->partial.p, lines->partial.n);
    jobq__buf_reset(&lines->partial);
}

/* Goes on with the line under way; how many bytes it took. */
static size_t go_on(jobq__lines *lines, const char *p, size_t n, jobq__lines_taker take,
                    void *payload)
{
    const size_t room = JOBQ__LINE_MAX - lines->partial.n;
    const char *end = memchr(p, '\n', n > room ? room + 1 : n);
    size_t step = end ? (size_t)(end - p) : n > room ? room : n;

    keep(lines, p, step, take, payload);
    if (end || n > room)
        jobq__lines_end(lines, take, payload);
    return end ? step + 1 : step;
}

void jobq__lines_add(jobq__lines *lines, const char *p, size_t n, jobq__lines_taker take,
                     void *payload)
{
    while (n > 0) {
        const char *last = lines->partial.n ? NULL : memrchr(p, '\n', n);
        size_t step;

        if (last) {
            step = (size_t)(last - p) + 1;
            take(payload, p, step);
        } else {
            step = go_on(lines, p, n, take, payload);
        }
        p += step;
        n -= step;
    }
}

void jobq__lines_free(jobq__lines *lines)
{
    jobq__buf_free(&lines->partial);
}
