/* SPDX-License-Identifier: MIT
 *
 * What drivers have in common: the words of refusals that do not depend on the store, and how a
 * wait sleeps between its looks.
 */
#ifndef JOBQ_DRIVER_COMMON_H
#define JOBQ_DRIVER_COMMON_H

#include <poll.h>

#include "driver/driver.h"

enum {
    JOBQ__HISTORY_MAX = 10, /* entries kept of a job's history (rule F5) */
    JOBQ__TOP_PRIORITY = 9  /* columns hold this minus the priority, so that the best come first */
};

/* Each sets the error record and returns its code; `driver` is the driver's name. */
int jobq__refuse_id(jobq_slice id);                             /* JOBQ_ENOTFOUND */
int jobq__refuse_cursor(void);                                  /* JOBQ_EINVAL */
int jobq__refuse_lapsed(const char *driver, jobq_slice worker); /* JOBQ_ELEASE */
/* JOBQ_ECONF, fatal: newer or older than `ours`. `place`: where it was found, NULL = not said. */
int jobq__refuse_schema(const char *driver, const char *place, int version, int ours);
int jobq__refuse_wait(const char *driver); /* by errno: JOBQ_EINTR after a signal, else JOBQ_EIO */

/* Adds a remark to an examination; the text is cut at 1000 bytes. JOBQ_ENOMEM. */
JOBQ_PRINTF(5, 6)
int jobq__remark(jobq_examination *e, int grade, const char *check, const char *advice,
                 const char *fmt, ...);

/* As poll; a time that is over asks without waiting. */
int jobq__poll_us(struct pollfd *fds, nfds_t n, int64_t left_us);
/* Where the store cannot wake us: how long to sleep before the next look, from 10 ms growing to
 * `most_ms`. *gap_ms keeps the state, 0 = begin anew. */
int64_t jobq__poll_gap(int64_t *gap_ms, int64_t most_ms);

#endif
