/* SPDX-License-Identifier: MIT
 *
 * Statements of and for callers (rules B7, B8, O1): their limits, copies, and the placeholders that
 * their own client wants.
 */
#ifndef JOBQ_CORE_STATEMENT_H
#define JOBQ_CORE_STATEMENT_H

#include <jobqueue/statement.h>

#include "driver/driver.h"

/* 0 or JOBQ_EINVAL; `what` is the option or call that it was given to. */
int jobq__statement_check(const char *what, const jobq_statement *statement);
/* Text, params and their bytes into the arena. JOBQ_ENOMEM. */
int jobq__statement_copy(jobq__arena *arena, const jobq_statement *from, jobq_statement *to);
/* 0 or JOBQ_EINVAL: is it one of JOBQ_PLACEHOLDER_*? */
int jobq__placeholders_check(int placeholders);
/* Rewrites the store's own placeholders, each of which stands once and in the order of the params,
 * into those of `placeholders`; the text lies in the arena. */
int jobq__statement_adapt(jobq__arena *arena, int placeholders, jobq_statement *statement);

#endif
