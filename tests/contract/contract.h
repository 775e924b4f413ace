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
    const char *(*fresh_dsn)(void); /* of a store that is empty; borrowed */
} contract_driver;

/* Runs the contract and then the driver's own tests; the exit code. */
int contract_main(const contract_driver *driver, const struct CMUnitTest *own, size_t own_count);

/* ---- small words for tests ------------------------------------------------------------------- */

/* The store of the test under way, fresh for each test. */
extern jobq__store *store;
jobq__store *contract_open(const char *dsn);
const char *contract_fresh_dsn(void);

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

#endif
