/* SPDX-License-Identifier: MIT
 *
 * How fast a pool drains no-op jobs from a SQLite file: `drain FOLDER [JOBS [PROCESSES
 * [OPTION=VALUE...]]]` prints "drain N/s" (first start to last start) and the CPU seconds per
 * 10,000 jobs of the whole worker.
 */
#include <jobqueue/jobqueue.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    _Atomic int64_t first_us, last_us, count;
} tally;

static int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, jobq_error_message(jobq_error_last()));
    exit(1);
}

static void push_chunk(jobq_queue *queue, jobq_message **chunk, int n, int from)
{
    for (int i = 0; i < n; i++) {
        jobq_writer *w;

        jobq_message_reset(chunk[i]);
        jobq_message_set_name(chunk[i], "noop", 4);
        w = jobq_message_payload(chunk[i]);
        jobq_writer_map(w, 3);
        jobq_writer_str(w, "id", 2);
        jobq_writer_int(w, from + i);
        jobq_writer_str(w, "email", 5);
        jobq_writer_str(w, "user12345@example.com", 21);
        jobq_writer_str(w, "n", 1);
        jobq_writer_double(w, 3.14);
    }
    if (jobq_queue_push_many(queue, chunk, (size_t)n) != n)
        fail("push_many");
}

static void push_all(jobq_queue *queue, int jobs)
{
    jobq_message *chunk[JOBQ_PUSH_CHUNK];

    for (int i = 0; i < JOBQ_PUSH_CHUNK; i++)
        chunk[i] = jobq_message_new();
    for (int done = 0; done < jobs; done += JOBQ_PUSH_CHUNK)
        push_chunk(queue, chunk, jobs - done < JOBQ_PUSH_CHUNK ? jobs - done : JOBQ_PUSH_CHUNK,
                   done);
    for (int i = 0; i < JOBQ_PUSH_CHUNK; i++)
        jobq_message_free(chunk[i]);
}

static int handle(jobq_job *job, void *payload)
{
    tally *t = payload;
    int64_t zero = 0, now = now_us();

    (void)job;
    atomic_compare_exchange_strong(&t->first_us, &zero, now);
    atomic_store(&t->last_us, now);
    atomic_fetch_add(&t->count, 1);
    return JOBQ_ENDED_DONE;
}

static void set_options(jobq_conf *conf, int n, char **options)
{
    for (int i = 0; i < n; i++) {
        char *value = strchr(options[i], '=');

        if (!value)
            continue;
        *value++ = '\0';
        if (jobq_conf_set(conf, options[i], value, strlen(value)) < 0)
            fail(options[i]);
    }
}

static double cpu_seconds(int who)
{
    struct rusage ru;

    getrusage(who, &ru);
    return (double)ru.ru_utime.tv_sec + (double)ru.ru_stime.tv_sec +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    int jobs = argc > 2 ? atoi(argv[2]) : 100000, code;
    const char *processes = argc > 3 ? argv[3] : "1";
    tally *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_worker *worker;
    jobq_queue *queue;
    char dsn[512];

    snprintf(dsn, sizeof(dsn), "sqlite:%s/drain.db", argc > 1 ? argv[1] : "/tmp");
    if (jobq_queue_new(dsn, NULL, &queue) < 0)
        fail(dsn);
    push_all(queue, jobs);
    jobq_conf_set(conf, "output", "quiet", 5);
    jobq_conf_set_bool(conf, "stop_when_empty", true);
    jobq_conf_set(conf, "processes", processes, strlen(processes));
    set_options(conf, argc > 4 ? argc - 4 : 0, argv + 4);
    if (jobq_worker_new(queue, conf, &worker) < 0 ||
        jobq_worker_handle(worker, "noop", 4, 1, NULL) < 0)
        fail("worker");
    code = jobq_worker_run(worker, NULL, 0, handle, t);
    printf("drain %.0f /s\n", (double)(t->count - 1) * 1e6 / (double)(t->last_us - t->first_us));
    printf("jobs %lld code %d cpu_per_10k %.4f\n", (long long)t->count, code,
           cpu_seconds(RUSAGE_CHILDREN) / (double)jobs * 10000);
    jobq_worker_free(worker);
    jobq_conf_free(conf);
    jobq_queue_free(queue);
    return code != 0 || t->count != jobs;
}
