/* SPDX-License-Identifier: MIT
 *
 * Clocks in milliseconds, replaceable in tests: no test sleeps to pass time.
 */
#ifndef JOBQ_UTIL_CLOCK_H
#define JOBQ_UTIL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t jobq__clock_wall_ms(void); /* since 1970 */
int64_t jobq__clock_mono_ms(void); /* never steps; not while suspended */
int64_t jobq__clock_boot_ms(void); /* never steps, counts suspension; starts at boot */
int64_t jobq__clock_mono_us(void);
/* This boot's identity (36 characters of UUID, NUL-terminated; all zeros when unknown). */
void jobq__clock_boot_id(char out[37]);

/* Tests: added to what the clocks say from now on, in this process and those it forks. */
void jobq__clock_shift(int64_t wall_ms, int64_t mono_ms);
/* Tests: from now on they move by shifts only, until false is said. */
void jobq__clock_hold(bool hold);

#endif
