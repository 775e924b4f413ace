/* SPDX-License-Identifier: MIT
 *
 * Cursors of lists as text: three numbers with dots between, the place of the page's last job.
 */
#ifndef JOBQ_DRIVER_CURSOR_H
#define JOBQ_DRIVER_CURSOR_H

#include <stdio.h>
#include <string.h>

#include "driver/common.h"
#include "util/error.h"
#include "util/str.h"

typedef struct {
    bool set;
    int64_t part[3];
} jobq__cursor;

static inline int jobq__cursor_read(jobq_slice text, jobq__cursor *out)
{
    const char *p = text.p;
    size_t n = text.n;

    memset(out, 0, sizeof(*out));
    if (!p)
        return 0;
    for (int i = 0; i < 3; i++) {
        const char *dot = memchr(p, '.', n);
        size_t len = dot ? (size_t)(dot - p) : n;

        if ((i < 2) != (dot != NULL) || !jobq__str_int(p, len, &out->part[i]))
            return jobq__refuse_cursor();
        p += len + 1;
        n -= len + (dot != NULL);
    }
    out->set = true;
    return 0;
}

/* -1 before, 0 at, 1 behind the cursor. */
static inline int jobq__cursor_compare(const int64_t part[3], const jobq__cursor *cursor)
{
    for (int i = 0; i < 3; i++)
        if (part[i] != cursor->part[i])
            return part[i] < cursor->part[i] ? -1 : 1;
    return 0;
}

static inline int jobq__cursor_write(const int64_t part[3], jobq_batch *out, jobq_slice *text_out)
{
    char text[80];
    int n = snprintf(text, sizeof(text), "%lld.%lld.%lld", (long long)part[0], (long long)part[1],
                     (long long)part[2]);

    *text_out = jobq_batch_copy(out, text, (size_t)n);
    return text_out->p ? 0 : jobq__error_nomem();
}

#endif
