/* SPDX-License-Identifier: MIT
 *
 * The contract of capacities, unique keys, retention, results and numbers.
 */
#ifndef JOBQ_TESTS_GUARANTEES_H
#define JOBQ_TESTS_GUARANTEES_H

#include "contract/contract.h"

void test_b4_capacity(void **state);
void test_b4_room_for_a_follower(void **state);
void test_b4_capacity_of_a_batch(void **state);
void test_b4_only_if_none(void **state);
void test_b6_replace_what_waits(void **state);
void test_b6_replaced_is_not_taken_back(void **state);
void test_b6_max_wait(void **state);
void test_b6_one_follower(void **state);
void test_b6_follower_takes_over(void **state);
void test_b6_follower_can_go(void **state);
void test_b6_key_given_up(void **state);
void test_f4_retention(void **state);
void test_n7_outcome(void **state);
void test_n7_token_stays(void **state);
void test_b5_kept_bare(void **state);
void test_n1_minutes(void **state);
void test_b7_guard(void **state);
void test_o1_effect(void **state);
void test_n5_audit(void **state);
void test_n5_audit_after_a_loss(void **state);
void test_n5_audit_of_a_hidden_queue(void **state);
void test_n5_examine(void **state);
void test_find_with_a_queue(void **state);

/* ---- for the drivers' own tests; the texts stand until the next call ------------------------- */

/* What the audit finds in that queue, "" = nothing: "id/states " each, with "!" if nobody owns
 * it. */
const char *contract_strays(const char *queue);
/* What the store remarks of that grade (JOBQ_REMARK_*), "" = nothing: "check: text; " each. */
const char *contract_remarks(int grade);

#endif
