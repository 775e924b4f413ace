/* SPDX-License-Identifier: MIT
 *
 * The contract suite: one set of tests for every driver. A driver's main says how to get a DSN of
 * an empty store and which features to expect, and may add tests of its own.
 */
#ifndef JOBQ_TESTS_CONTRACT_H
#define JOBQ_TESTS_CONTRACT_H

#include "harness/harness.h"

#include "driver/driver.h"

typedef struct {
    const char *name;
    /* Of a store that is empty; borrowed. Asked for before each test, so it should cost little: on
     * a server that runs all the while another prefix, schema or database. */
    const char *(*fresh_dsn)(void);
    uint64_t features; /* JOBQ_FEATURE_*, all that the driver must say it has */
    /* Moves the store's clock ahead (server_shift); NULL where the store's clock is the host's. */
    void (*shift)(int64_t ms);
    /* Looks whether the store last asked for is coherent inside; NULL = nothing to look at. */
    void (*check)(void);
} contract_driver;

/* Runs the contract and then the driver's own tests; the exit code. */
int contract_main(const contract_driver *driver, const struct CMUnitTest *own, size_t own_count);

/* ---- small words for tests ------------------------------------------------------------------- */

/* The store of the test under way, fresh for each test. */
extern jobq__store *store;
jobq__store *contract_open(const char *dsn);
const char *contract_fresh_dsn(void);
bool contract_has(uint64_t feature); /* of the store of the test under way */
void contract_check(void);           /* the driver's own look at it */

/* Lets time pass for the store. Where its clock is the host's, wall and boot clock are told apart;
 * a server's clock goes ahead by the larger of the two. */
void pass_time(int64_t wall_ms, int64_t boot_ms);
int64_t store_now(void);
/* Ends the test as skipped, and says why. */
void skip_because(const char *why);
/* The same unless the store has the feature. */
void need_feature(uint64_t feature, const char *what);

/* Tests that stand in files of their own. */
void test_model(void **state);    /* model.c */
void test_c7_wakes(void **state); /* several.c, as the rest */
void test_c7_idle(void **state);
void test_n7_wait_for_a_job(void **state);
void test_n7_woken_by_its_end(void **state);
void test_c9_wait_hears_signals(void **state);
void test_k4_fork(void **state);
void test_schema_race(void **state);
void test_b3_stored_together(void **state);
void test_c3_crowd(void **state);
void test_b3_refused_in_a_large_call(void **state); /* large.c, as the rest */
void test_b3_most_of_a_large_call(void **state);
void test_c1_lines_of_a_large_call(void **state);
void test_c1_due_after_a_large_call(void **state);
void test_b6_replaced_in_a_large_call(void **state);
void test_c3_stale_amid_neighbours(void **state);
void test_c3_twice_amid_neighbours(void **state);

#define TEXT(s) jobq__slice((s), strlen(s))

jobq_push job_item(const char *id, const char *queue); /* name "test", priority 0, body "body" */
void push_job(const char *id, const char *queue);      /* must be stored */
int push_item(jobq_push *item);                        /* its result */
void begin_worker(const char *worker, int64_t lease_ms);
/* Reserves up to want jobs of one queue; they lie in `got` until the next call. */
extern jobq_batch got;
size_t reserve_jobs(const char *worker, const char *queue, size_t want);
/* Reserves one and returns it; fails when there is none or another one. */
jobq_record *reserve_one(const char *worker, const char *queue, const char *id);
jobq_settlement settlement(const jobq_record *record, int op);
int settle_with(const char *worker, jobq_settlement *s); /* its result */
/* Mends one dead job with the store given; its result. */
int mend_job(jobq__store *where, int what, const char *id, bool dry_run);
int settle_op(const char *worker, const jobq_record *record, int op);
void expect_ids(const char *ids);            /* of `got`, in order: "a b c" */
jobq_maintenance maintain_all(void);         /* limit 1000, take back, loss cap 10 */
const jobq_record *find_job(const char *id); /* NULL: not found */
jobq_counts count_jobs(const char *queue);
/* The item with a JSON body (ready), "later" (delayed), "held" (reserved by worker-1) and "dead"
 * (reason 1). */
void store_one_of_each(jobq_push *json);
/* rule N6: the words of jobqueue_jobs.reason are those of core/retry.h, and a number without a word
 * stays a number. count_shown: how many rows of the view the condition fits. */
void expect_reason_words(int64_t (*count_shown)(const char *where));

/* rules B3, B7: a guard amid a call of several sees the jobs before its own. view: jobqueue_jobs as
 * the store's SQL knows it. */
void expect_guard_amid_a_call(const char *view);

#endif
