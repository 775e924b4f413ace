/* SPDX-License-Identifier: MIT
 *
 * What the floors share: the phases, their clocks and their lines. A floor is a bare loop over one
 * store's own client library that keeps the promise of its driver with the fewest commands: ids are
 * unique, a push is confirmed, jobs are reserved in batches under a fence, and one exchange settles
 * a batch and reserves the next. No options, no counters, no names.
 *
 *     floor_NAME ADDRESS JOBS PHASE...
 *
 * Phases: `push` (N single ones), `push_many`, `drain` (what push_many left), `fresh` (a connection
 * for each push), `latency` (a process that waits; pushes 20 ms apart), each with lines "name
 * figure": jobs a second, milliseconds, or CPU seconds of this program per 10,000 jobs.
 */
#ifndef TESTS_BENCH_FLOOR_H
#define TESTS_BENCH_FLOOR_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* BODY: what the payload of the measurements and its header come to. */
enum { BODY = 64, ID = 36, BATCH = 100, BULK = 500, PINGS = 200, PING_MS = 20 };

typedef struct {
    char id[ID + 1];
    char body[BODY]; /* begins with the moment of the push, in nanoseconds */
} floor_job;

typedef struct {
    const char *name;
    int singles, fresh; /* how many jobs these phases push */
    void (*open)(const char *address);
    void (*reset)(void); /* an empty store */
    void (*push)(const floor_job *job);
    void (*push_bulk)(const floor_job *jobs, int n); /* all of them, or none */
    /* Settles what is held, reserves up to BATCH and says how many; their bodies in `got`. */
    int (*exchange)(floor_job *got);
    void (*listen)(bool waiting); /* latency: on the side that waits, and on the one that pushes */
    int (*await)(floor_job *got); /* sleeps until there is something, and reserves it */
    void (*close)(void);
} floor_store;

static const floor_store *the_floor;

static inline void fail(const char *doing, const char *why)
{
    fprintf(stderr, "floor_%s: %s: %s\n", the_floor->name, doing, why);
    exit(1);
}

static inline int64_t nanoseconds(clockid_t which)
{
    struct timespec ts;

    clock_gettime(which, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline double seconds(clockid_t which)
{
    return (double)nanoseconds(which) / 1e9;
}

static inline void make_job(floor_job *job)
{
    static uint64_t next;
    int64_t now = nanoseconds(CLOCK_MONOTONIC);

    if (next == 0)
        next = (uint64_t)getpid() << 28;
    snprintf(job->id, sizeof(job->id), "%08" PRIx64 "-0000-7000-8000-%012" PRIx64,
             (uint64_t)now >> 16 & 0xffffffff, next++ & 0xffffffffffff);
    memset(job->body, 'x', BODY);
    memcpy(job->body, &now, sizeof(now));
}

static inline void push_singly(int n)
{
    for (int i = 0; i < n; i++) {
        floor_job job;

        make_job(&job);
        the_floor->push(&job);
    }
}

static inline void phase_push(const char *address, int jobs)
{
    double begin;

    (void)address;
    (void)jobs;
    the_floor->reset();
    push_singly(1);
    begin = seconds(CLOCK_MONOTONIC);
    push_singly(the_floor->singles);
    printf("push %.1f\n", the_floor->singles / (seconds(CLOCK_MONOTONIC) - begin));
}

static inline void phase_push_many(const char *address, int jobs)
{
    static floor_job chunk[BULK];
    double begin;

    (void)address;
    the_floor->reset();
    begin = seconds(CLOCK_MONOTONIC);
    for (int done = 0; done < jobs; done += BULK) {
        for (int i = 0; i < BULK; i++)
            make_job(&chunk[i]);
        the_floor->push_bulk(chunk, BULK);
    }
    printf("push_many %.1f\n", jobs / (seconds(CLOCK_MONOTONIC) - begin));
}

static inline void phase_drain(const char *address, int jobs)
{
    static floor_job got[BATCH];
    double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    int n, total = 0;

    (void)address;
    while ((n = the_floor->exchange(got)) > 0) {
        for (int i = 0; i < n; i++)
            if (got[i].body[BODY - 1] != 'x')
                fail("drain", "a body came back changed");
        total += n;
    }
    if (total != jobs)
        fail("drain", "jobs are missing");
    printf("drain %.1f\n", total / (seconds(CLOCK_MONOTONIC) - begin));
    printf("cost %.5f\n", (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 10000 / total);
}

static inline void phase_fresh(const char *address, int jobs)
{
    double begin = seconds(CLOCK_MONOTONIC);

    (void)jobs;
    for (int i = 0; i < the_floor->fresh; i++) {
        the_floor->close();
        the_floor->open(address);
        push_singly(1);
    }
    printf("fresh %.1f\n", the_floor->fresh / (seconds(CLOCK_MONOTONIC) - begin));
}

static inline int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline void print_lateness(double *late, int n)
{
    qsort(late, (size_t)n, sizeof(*late), compare_numbers);
    printf("latency_p50 %.4f\n", late[n / 2]);
    printf("latency_p99 %.4f\n", late[n * 99 / 100 - 1]);
}

/* The waiting side: as a worker that does nothing else. */
static inline void wait_for_pings(const char *address)
{
    static floor_job got[BATCH];
    static double late[PINGS];
    int count = 0;

    the_floor->open(address);
    the_floor->listen(true);
    while (count < PINGS)
        for (int n = the_floor->await(got); n > 0; n = the_floor->exchange(got)) {
            int64_t now = nanoseconds(CLOCK_MONOTONIC), at;

            for (int i = 0; i < n && count < PINGS; i++) {
                memcpy(&at, got[i].body, sizeof(at));
                late[count++] = (double)(now - at) / 1e6;
            }
        }
    print_lateness(late, PINGS);
    fflush(stdout);
    the_floor->close();
    _exit(0);
}

static inline void phase_latency(const char *address, int jobs)
{
    const struct timespec pause = {0, PING_MS * 1000000};
    int status;
    pid_t pid;

    (void)jobs;
    the_floor->reset();
    the_floor->close();
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        wait_for_pings(address);
    the_floor->open(address);
    the_floor->listen(false);
    usleep(300000);
    for (int i = 0; i < PINGS; i++) {
        push_singly(1);
        nanosleep(&pause, NULL);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        fail("latency", "the waiting process failed");
}

static inline int run_floor(const floor_store *store, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *address, int jobs);
    } phases[] = {{"push", phase_push},
                  {"push_many", phase_push_many},
                  {"drain", phase_drain},
                  {"fresh", phase_fresh},
                  {"latency", phase_latency}};
    int jobs = argc > 3 ? atoi(argv[2]) : 0;

    the_floor = store;
    if (jobs < BULK || jobs % BULK != 0) {
        fprintf(stderr, "usage: floor_%s ADDRESS JOBS PHASE... (JOBS: a multiple of %d)\n",
                store->name, BULK);
        return 2;
    }
    store->open(argv[1]);
    for (int i = 3; i < argc; i++)
        for (size_t k = 0; k < sizeof(phases) / sizeof(phases[0]); k++)
            if (strcmp(phases[k].name, argv[i]) == 0)
                phases[k].run(argv[1], jobs);
    store->close();
    return 0;
}

#endif
