/* SPDX-License-Identifier: MIT
 *
 * A worker in a process of its own, on the store under test, with C handlers that do good and bad
 * things. What they really did stands in a ledger outside of the store.
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
    char db[256], ledger[256], output[256]; /* db: the file of a fresh SQLite store */
    char dsn[512], worker_dsn[512];         /* worker_dsn: "" = the same */
    jobq_queue *queue;                      /* the test's own handle */
    int64_t clock_wrong_ms;                 /* the worker's host's clock is so much ahead */
    const char *queues[4];                  /* served; none = "default" */
    pid_t pid;                              /* the master; leads a process group of its own */
    pid_t known[64];                        /* every process of the pool seen so far */
    size_t known_count;
    /* "exit", "fat", "slow", "retire": children at their start; "dies": as soon as they are idle,
     * while the file LEDGER.deadly is there; "ignore-hup"; "listen"; "hooks": it runs failed hooks,
     * see pool_push;
     * "descriptor": the worker's lines go to the ledger; "pid1": it is process 1 of its namespace,
     * as in a container, and pid is a process outside that ends with it; NULL */
    const char *start_mode;
    const char *handler_options; /* of every handler: "tries=5"; NULL = none */
    const char *plain;           /* a name whose handler gets none of them */
    /* what children do instead of jobq_worker_run's loop */
    int (*loop)(jobq_worker *worker);
    const char *without; /* a name that this worker has no handler for; NULL = knows all */
    /* the worker's 1 and 2; 0 = both are the file `output`, -1 = closed */
    int stdout_fd, stderr_fd;
} pool;

/* A fresh store of the kind under test (harness/stores.h): SQLite unless stores_run_all runs. */
void pool_open(pool *p);
/* On a store that is there (NULL: a fresh one); the worker may reach it by another way. */
void pool_open_at(pool *p, const char *dsn, const char *worker_dsn);
/* Kills what is left of the worker and closes the store. */
void pool_close(pool *p);
/* For cmocka: *state is a pool on a fresh store. */
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
 *   lets_go N       releases itself N times and is done then
 *   later MS        fails and says when it wants to be tried again
 *   hopeless, gives_up   not to be retried; failed by its own word
 *   soils           its clean-up fails
 *   varies          fails, is killed, releases itself, is done; the ledger gets "attempt K ID PID"
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
 *   told MS         takes so long; the ledger gets "told" when it hears that it is cancelled
 *   heeds MS        takes so long, or fails a second after it was cancelled
 *   frees MS        the same, but releases itself
 *   shows MS        shows progress, carries out a statement now and then; its result is its id
 *   replaces        prints "still ours", points 1 elsewhere, closes 2
 * The ledger gets "begin NAME ID PID" and, when the handler comes through, "end NAME ID PID".
 * In the mode "hooks" the failed hook of a dead job writes "hook REASON ID PID" and, when it comes
 * through, "hooked QUEUE ID PID"; what it does in between is said by the dead job's argument. */
enum {
    POOL_HOOK_FAILS = 101,
    POOL_HOOK_CRASHES,
    POOL_HOOK_HANGS,
    POOL_HOOK_IS_DEAF,
    POOL_HOOK_CLOSES,
    POOL_HOOK_NAPS,
    POOL_HOOK_RECOVERS /* naps and fails, and comes through at its second try */
};
const char *pool_push(pool *p, const char *name, int arg, const char *options);
void pool_push_many(pool *p, const char *name, int arg, const char *options, int n);
/* The same, for stores that may refuse all of them: what jobq_queue_push_many answers. */
int pool_try_push_many(pool *p, const char *name, int arg, const char *options, int n);

/* The message of such a push. */
jobq_message *pool_message(const char *name, int arg, const char *options);
/* A line of the test's own for the ledger; one write. */
void pool_write(const pool *p, const char *line);

/* For `loop`: a line for the ledger, and the number that the job was pushed with. */
void pool_note(const char *what, const char *name, const char *id);
int pool_argument(const jobq_job *job);

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
/* With SIGKILL; false: it is none, or gone (kill(0) would be the end of the test's own group). */
bool pool_kill(pid_t pid);
size_t pool_children(pool *p, pid_t *out, size_t max);
/* pid in the first ledger line that starts so; 0 = none */
pid_t pool_runner(const pool *p, const char *prefix);
int pool_runners(const pool *p, const char *prefix); /* different pids in such lines */
bool pool_is_all_gone(const pool *p);                /* every process ever seen has ended */

#endif
