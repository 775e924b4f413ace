/* SPDX-License-Identifier: MIT
 *
 * What the view jobqueue_jobs says alike on every SQL store (rule N6).
 */
#ifndef JOBQ_DRIVER_SQL_VIEW_H
#define JOBQ_DRIVER_SQL_VIEW_H

/* Between CASE and ELSE: the words of core/retry.h; tests/contract/ compares them. */
#define JOBQ__SQL_REASONS                 \
    " j.reason WHEN 0 THEN NULL"          \
    "  WHEN 1 THEN 'attempts_exhausted'"  \
    "  WHEN 2 THEN 'timed_out'"           \
    "  WHEN 3 THEN 'crashed'"             \
    "  WHEN 4 THEN 'deadline_passed'"     \
    "  WHEN 5 THEN 'expired'"             \
    "  WHEN 6 THEN 'undecodable'"         \
    "  WHEN 7 THEN 'unknown_name'"        \
    "  WHEN 8 THEN 'unsupported_version'" \
    "  WHEN 9 THEN 'failed_by_handler'"   \
    "  WHEN 10 THEN 'not_retryable'"      \
    "  WHEN 11 THEN 'cancelled'"          \
    "  WHEN 12 THEN 'released_too_often'"

#endif
