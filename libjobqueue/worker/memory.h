/* SPDX-License-Identifier: MIT
 *
 * How much memory this process has for itself.
 */
#ifndef JOBQ_WORKER_MEMORY_H
#define JOBQ_WORKER_MEMORY_H

#include <stdint.h>

/* Private pages of this process in KB (what it shares with its master since the fork is not
 * counted); 0 when the system does not tell. */
int64_t jobq__memory_private_kb(void);

#endif
