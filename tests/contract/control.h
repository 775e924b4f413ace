/* SPDX-License-Identifier: MIT
 *
 * Tests of control.c, listed in the suite of contract.c.
 */
#ifndef JOBQ_TESTS_CONTRACT_CONTROL_H
#define JOBQ_TESTS_CONTRACT_CONTROL_H

#include "contract/contract.h"

void test_l1_pause_and_resume(void **state);
void test_l1_paused_queue_takes_pushes(void **state);
void test_l2_generation(void **state);
void test_control_value_is_told(void **state);
void test_l3_cancel_what_waits(void **state);
void test_f4_cancelled_and_kept(void **state);
void test_l3_cancel_what_runs(void **state);
void test_l3_wish_is_kept(void **state);
void test_clear(void **state);
void test_f6_follow(void **state);
void test_f6_hidden_queue(void **state);

#endif
