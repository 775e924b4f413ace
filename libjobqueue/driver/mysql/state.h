/* SPDX-License-Identifier: MIT
 *
 * The question with which an exchange begins, in parts: state.c asks it alone, compact.c together
 * with all the rest.
 */
#ifndef JOBQ_DRIVER_MYSQL_STATE_H
#define JOBQ_DRIVER_MYSQL_STATE_H

#include "driver/mysql/mysql.h"

/* ?1 is the server's start, ?2 the worker's id. */
#define BY_DUE "FROM jobqueue_job FORCE INDEX (jobqueue_job_due) "
#define BY_LINE "FROM jobqueue_job FORCE INDEX (jobqueue_job_line) "
#define FIRST_DELAYED "(SELECT MIN(due) " BY_DUE "WHERE due>=0 AND due<" DUE_DONE ")"
#define FIRST_DONE "(SELECT MIN(due)-" DUE_DONE " " BY_DUE "WHERE due>=" DUE_DONE ")"
#define FIRST_DEAD "(SELECT MIN(keep_until) FROM jobqueue_keep)"
/* Of a live worker it does not matter whether it holds anything. */
#define FIRST_LAPSE                                       \
    "(SELECT MIN(" LAPSE_OF_W ") FROM jobqueue_worker w " \
    "WHERE w.id<>?2 AND "                                 \
    "(w.alive_until>" NOW_MS " OR EXISTS(SELECT 1 " BY_LINE "WHERE place=w.worker)))"
#define ANY_READY "EXISTS(SELECT 1 " BY_LINE "WHERE place IN (0, 1) AND queue IN ({?}))"
/* See jobq_exchange.control. */
#define CONTROL "(SELECT control FROM jobqueue_control WHERE one=1)"
#define ANY_TAKEN "EXISTS(SELECT 1 " BY_LINE "WHERE place=1)"
#define STATE                                                                                 \
    "SELECT " NOW_MS ", IFNULL(v.worker, 0), IFNULL(v.alive_until>" NOW_MS ", 0), " ANY_TAKEN \
    ", " FIRST_DELAYED ", " FIRST_DONE ", " FIRST_DEAD ", " FIRST_LAPSE ", " CONTROL
#define RECORD " FROM (SELECT 1 AS one) o LEFT JOIN jobqueue_worker v ON v.id=?2"

/* The columns of STATE, and ANY_READY if it was asked for. */
void jobq__mysql_read_state_row(const mysql_statement *rows, bool looked, mysql_state *out);

#endif
