/* SPDX-License-Identifier: MIT
 *
 * Many processes on one store beside a worker: they push, mend and look, and write into the pool's
 * ledger what they were told.
 */
#ifndef JOBQ_TESTS_PROCESS_CROWD_H
#define JOBQ_TESTS_PROCESS_CROWD_H

#include "process/pool.h"

enum { CROWD_MAX = 16 };
typedef struct {
    pool *pool;
    pid_t pids[CROWD_MAX];
    int count;
} crowd;

/* Starts n processes that run it with their number and end; a failed assertion there fails
 * crowd_wait. `queue` of the pool is the process's own. */
void crowd_start(crowd *c, pool *p, int n, void (*run)(pool *p, int number));
void crowd_wait(crowd *c, int seconds);

/* The pool's ledger gets "said stop"; is it there? For those that go on until then. */
void crowd_stop(pool *p);
bool crowd_is_stopped(const pool *p);

/* Kills children of the pool at random, now and then its dispatcher, one each `ms`, until so many
 * milliseconds have passed; how many children it was. */
int crowd_kill_children(pool *p, unsigned seed, int64_t for_ms, int ms, bool dispatcher);

/* Pushes name with options as pool_push does; the result, and the id into id_out (129 bytes, may be
 * NULL). */
int crowd_push(pool *p, const char *name, int arg, const char *options, char *id_out);

/* In a process of the crowd: ends it with the error's text when rc says so; returns rc. */
int64_t crowd_must(int64_t rc);
/* How many pairs of jobs that wait or run have one unique key at once; fresh_only: of those that
 * nobody was given yet. */
int crowd_count_pairs(pool *p, bool fresh_only);
/* Different ids in the ledger's lines that start so ("done 3 ID PID": "done"). */
int crowd_count_ids(const pool *p, const char *prefix);
int64_t crowd_audit(pool *p); /* problems that an audit finds */

#endif
