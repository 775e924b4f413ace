/* SPDX-License-Identifier: MIT
 *
 * Refusals that every store words alike, and the sleep of waits.
 */
#include "driver/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/error.h"
#include "util/str.h"

enum { GAP_FIRST_MS = 10 };

int jobq__refuse_id(jobq_slice id)
{
    return jobq__error_set_subject(JOBQ_ENOTFOUND, id.p, id.n, "no job has the id \"%.*s\"",
                                   (int)id.n, (const char *)id.p);
}

int jobq__refuse_cursor(void)
{
    return jobq__error_set(JOBQ_EINVAL, "the cursor is none that an earlier page gave");
}

int jobq__refuse_lapsed(const char *driver, jobq_slice worker)
{
    return jobq__error_set_driver(JOBQ_ELEASE, 0, driver, 0,
                                  "%s: the lease of worker %.*s had run out", driver, (int)worker.n,
                                  (const char *)worker.p);
}

int jobq__refuse_schema(const char *driver, const char *place, int version, int ours)
{
    const char *colon = place ? ": " : "";

    place = place ? place : "";
    if (version > ours)
        return jobq__error_set_driver(
            JOBQ_ECONF, JOBQ__FATAL | JOBQ__SCHEMA, driver, 0,
            "%s%s%s: schema version %d is newer than this library's %d: update the library", driver,
            colon, place, version, ours);
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL | JOBQ__SCHEMA, driver, 0,
                                  "%s%s%s: schema version %d, this library needs %d (run "
                                  "`jobqueue migrate`, or allow migrate)",
                                  driver, colon, place, version, ours);
}

int jobq__refuse_wait(const char *driver)
{
    if (errno == EINTR)
        return jobq__error_set_driver(JOBQ_EINTR, JOBQ__RETRYABLE, driver, EINTR,
                                      "%s: the wait was interrupted", driver);
    return jobq__error_set_driver(JOBQ_EIO, 0, driver, errno, "%s: cannot wait: %s", driver,
                                  strerror(errno));
}

int jobq__poll_us(struct pollfd *fds, nfds_t n, int64_t left_us)
{
    struct timespec span = {0};

    if (left_us > 0) {
        span.tv_sec = left_us / 1000000;
        span.tv_nsec = left_us % 1000000 * 1000;
    }
    return ppoll(fds, n, &span, NULL);
}

int64_t jobq__poll_gap(int64_t *gap_ms, int64_t most_ms)
{
    const int64_t most = most_ms > GAP_FIRST_MS ? most_ms : GAP_FIRST_MS;
    int64_t gap = *gap_ms < GAP_FIRST_MS ? GAP_FIRST_MS : *gap_ms;

    gap = gap < most ? gap : most;
    *gap_ms = gap * 3 / 2 < most ? gap * 3 / 2 : most;
    return gap;
}

int jobq__remark(jobq_examination *e, int grade, const char *check, const char *advice,
                 const char *fmt, ...)
{
    jobq_remark *remark = jobq_batch_alloc(e->out, sizeof(*remark));
    char text[1001];
    va_list args;

    if (!remark)
        return jobq__error_nomem();
    va_start(args, fmt);
    jobq__vformat(text, sizeof(text), fmt, args);
    va_end(args);
    remark->grade = grade;
    remark->check = check;
    remark->text = jobq_batch_copy(e->out, text, strlen(text) + 1).p;
    remark->advice = advice;
    if (!remark->text)
        return jobq__error_nomem();
    if (e->last)
        e->last->next = remark;
    else
        e->remarks = remark;
    e->last = remark;
    return 0;
}
