/* SPDX-License-Identifier: MIT
 *
 * A worker in a process of its own, on a SQLite file, with C handlers that do good and bad things.
 * What they really did stands in a ledger outside of the store.
 */
#ifndef JOBQ_TESTS_PROCESS_POOL_H
#define JOBQ_TESTS_PROCESS_POOL_H

#include "harness/harness.h"

#include <jobqueue/jobqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct {
    char db[256], ledger[256], output[256];
    char dsn[512], worker_dsn[512]; /* worker_dsn: "" = the same */
    jobq_queue *queue;              /* the test's own handle */
    int64_t clock_wrong_ms;         /* the worker's host's clock is so much ahead */
    pid_t pid;                      /* the master; leads a process group of its own */
    pid_t known[64];                /* every process of the pool seen so far */
    size_t known_count;
    /* "exit", "fat", "slow", "retire": children at their start; "ignore-hup"; "listen";
     * "descriptor": the worker's lines go to the ledger; "pid1": it is process 1 of its namespace,
     * as in a container, and pid is a process outside that ends with it; NULL */
    const char *start_mode;
    /* the worker's 1 and 2; 0 = both are the file `output`, -1 = closed */
    int stdout_fd, stderr_fd;
} pool;

/* A fresh store. */
void pool_open(pool *p);
/* On a store that is there (NULL: a fresh SQLite file); the worker may reach it by another way. */
void pool_open_at(pool *p, const char *dsn, const char *worker_dsn);
/* Kills what is left of the worker and closes the store. */
void pool_close(pool *p);
/* For cmocka: *state is a pool of SQLite. */
int pool_set_up(void **state);
int pool_tear_down(void **state);

/* Pushes a job; options as text: "timeout=0.5 tries=1". The id is borrowed until the next push.
 * Names:
 *   note            does nothing
 *   nap MS          sleeps politely: gives in to an interrupt (ends timed_out or stopped)
 *   sleepy S        one sleep(S); an interrupt ends it
 *   deaf MS         burns time and hears nothing
 *   stubborn MS     takes the interrupt and goes on
 *   exit N, crash SIGNAL, fail
 *   spoil MS        naps and then fails
 *   forks MS        forks three processes that return from the handler, waits for them and MS more
 *   closes          closes all descriptors and writes to what it opens instead
 *   program MS      starts `sleep` as a process of its own and naps
 *   grow MB         keeps so much memory
 *   body N          was pushed with a body of N bytes and compares it
 *   mutes MS        leaves SIGURG ignored and blocked, and takes so long
 *   stops           asks the whole worker to stop
 *   prints N        N lines "<ID i ID>" in pieces, a third of them to stderr, too
 *   says            by stdio "said ID" and, without an end, "tail ID"
 *   halts MS        "half a line of ID", then like deaf; the ledger gets "halted"
 *   floods KB       lines of 1000 bytes
 *   long N          one line of N bytes that are no text
 *   leaves MS       a process that holds the output and prints to it so much later; the ledger gets
 *                   "left"
 *   orphans N       leaves N short-lived processes to whoever is process 1; the ledger gets
 *                   "orphan"
 *   replaces        prints "still ours", points 1 elsewhere, closes 2
 * The ledger gets "begin NAME ID PID" and, when the handler comes through, "end NAME ID PID". */
const char *pool_push(pool *p, const char *name, int arg, const char *options);
void pool_push_many(pool *p, const char *name, int arg, const char *options, int n);

/* Starts the worker with these options ("processes=2 once=1") on queue "default". */
void pool_start(pool *p, const char *options);
/* Waits for the master's end; its exit code, or 1000 + the signal that killed it. */
int pool_wait(pool *p, int seconds);
int pool_run(pool *p, const char *options); /* both */
void pool_signal(pool *p, int number);

int pool_ledger(const pool *p, const char *prefix); /* lines that start so */
bool pool_said(const pool *p, const char *text);    /* stdout or stderr contains it */
char *pool_output(const pool *p);                   /* all of it; free() */
void pool_show(const pool *p);                      /* output and ledger, for failures */
int64_t pool_stat(pool *p, jobq_stat which);        /* of queue "default" */
/* "state failures crashes deliveries" of one job, "gone" when it is no more. Borrowed. */
const char *pool_job(pool *p, const char *id);

pid_t pool_dispatcher(pool *p); /* 0 = none now */
size_t pool_children(pool *p, pid_t *out, size_t max);
/* pid in the first ledger line that starts so; 0 = none */
pid_t pool_runner(const pool *p, const char *prefix);
int pool_runners(const pool *p, const char *prefix); /* different pids in such lines */
bool pool_is_all_gone(const pool *p);                /* every process ever seen has ended */

#endif
