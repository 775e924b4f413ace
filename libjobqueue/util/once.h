/* SPDX-License-Identifier: MIT
 *
 * Telling processes apart: a number that changes with every fork and costs no system call.
 */
#ifndef JOBQ_UTIL_ONCE_H
#define JOBQ_UTIL_ONCE_H

#include <stdint.h>

/* Equal exactly in the process (not its forks) that asked before. */
int64_t jobq__process_stamp(void);

#endif
