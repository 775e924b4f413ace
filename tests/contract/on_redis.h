/* SPDX-License-Identifier: MIT
 *
 * What both Redis drivers must do beyond the contract: capacity, followers, guards, effects, audit.
 */
#ifndef JOBQ_TESTS_ON_REDIS_H
#define JOBQ_TESTS_ON_REDIS_H

#include "contract/contract.h"

void test_b4_exact_among_many(void **state);
void test_b4_set_while_others_push(void **state);
void test_b4_a_full_queue_wakes(void **state);
void test_b6_follower_at_every_end(void **state);
void test_b6_replace_of_a_kept_fresh_id(void **state);
void test_n7_progress_with_the_end(void **state);
void test_b7_guard_script(void **state);
void test_b7_guards_of_a_batch(void **state);
void test_o1_effect_script(void **state);
void test_b7_in_a_comma_locale(void **state);
void test_o1_in_a_comma_locale(void **state);
void test_f4_collected_in_steps(void **state);
void test_f4_due_of_paused_queues(void **state);
void test_n5_audit_while_traffic_flows(void **state);
void test_b6_keys_under_fire(void **state);

#define ON_REDIS_TESTS                                                                            \
    cmocka_unit_test(test_b4_exact_among_many), cmocka_unit_test(test_b4_set_while_others_push),  \
        cmocka_unit_test(test_b4_a_full_queue_wakes),                                             \
        cmocka_unit_test(test_b6_follower_at_every_end),                                          \
        cmocka_unit_test(test_b6_replace_of_a_kept_fresh_id),                                     \
        cmocka_unit_test(test_n7_progress_with_the_end), cmocka_unit_test(test_b7_guard_script),  \
        cmocka_unit_test(test_b7_guards_of_a_batch), cmocka_unit_test(test_o1_effect_script),     \
        cmocka_unit_test(test_b7_in_a_comma_locale), cmocka_unit_test(test_o1_in_a_comma_locale), \
        cmocka_unit_test(test_f4_collected_in_steps),                                             \
        cmocka_unit_test(test_f4_due_of_paused_queues),                                           \
        cmocka_unit_test(test_n5_audit_while_traffic_flows),                                      \
        cmocka_unit_test(test_b6_keys_under_fire)

#endif
