/* SPDX-License-Identifier: MIT
 *
 * Random jobs with everything that a job can have, and then the end of all of them: whatever
 * happened on the way, nothing is left that would hold up what comes later.
 */
#ifndef JOBQ_TESTS_TRAFFIC_H
#define JOBQ_TESTS_TRAFFIC_H

#include "contract/contract.h"

/* Part of the contract. */
void test_nothing_is_left(void **state);
/* So many random steps on the store of the test, then every job is brought to its end. */
void traffic_run(unsigned seed, int steps);

#endif
