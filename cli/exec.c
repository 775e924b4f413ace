/* SPDX-License-Identifier: MIT
 *
 * A worker whose handler is a program: what its end means for the job.
 */
#include "exec.h"

#include <errno.h>
#include <jobqueue/console.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { STATUS_RELEASE = 75, /* sysexits.h: EX_TEMPFAIL */ USAGE = 2 };

typedef struct {
    char **words;
    char path[PATH_MAX];
} exec_program;

static int fail_with(jobq_job *job, jobq_ending ending, const char *class_name, const char *message,
                     size_t n)
{
    jobq_job_set_error(job, class_name, strlen(class_name), message, n, NULL, 0, NULL, 0);
    return ending;
}

/* "exit status 3: cannot open the door"; over its time limit that comes first (rule I2). */
static int fail_with_status(jobq_job *job, const program_end *end, jobq_ending ending)
{
    char message[PROGRAM_LINE + 192];
    const char *class_name = WIFSIGNALED(end->status) ? "Signal" : "ExitStatus";
    int n = 0;

    if (ending == JOBQ_ENDED_TIMED_OUT)
        n = snprintf(message, sizeof(message), "over its time limit of %g s: ",
                     (double)jobq_job_get(job, JOBQ_JOB_TIMEOUT_MS) / 1000);
    if (WIFSIGNALED(end->status))
        n += snprintf(message + n, sizeof(message) - (size_t)n, "killed by signal %d (%s)",
                      WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
    else
        n += snprintf(message + n, sizeof(message) - (size_t)n, "exit status %d",
                      WEXITSTATUS(end->status));
    if (end->line_n) {
        memcpy(message + n, ": ", 2);
        memcpy(message + n + 2, end->line, end->line_n);
        n += 2 + (int)end->line_n;
    }
    return fail_with(job, ending, class_name, message, (size_t)n);
}

/* Finished work is never thrown away: status 0 is done, whatever was asked of the program
 * meanwhile. */
static int judge(jobq_job *job, const exec_program *program, const program_end *end)
{
    char message[PATH_MAX + 128];
    int n;

    if (end->start_errno) {
        n = snprintf(message, sizeof(message), "could not start %s: %s", program->path,
                     strerror(end->start_errno));
        return fail_with(job, JOBQ_ENDED_FAILED, "StartError", message, (size_t)n);
    }
    if (WIFEXITED(end->status) && WEXITSTATUS(end->status) == 0)
        return JOBQ_ENDED_DONE;
    if (end->interrupt == JOBQ_INTERRUPT_STOP)
        return JOBQ_ENDED_STOPPED;
    if (end->interrupt == JOBQ_INTERRUPT_TIMEOUT)
        return fail_with_status(job, end, JOBQ_ENDED_TIMED_OUT);
    if (WIFEXITED(end->status) && WEXITSTATUS(end->status) == STATUS_RELEASE)
        return JOBQ_ENDED_RELEASED;
    return fail_with_status(job, end, JOBQ_ENDED_FAILED);
}

static int run_job(jobq_job *job, void *payload)
{
    const exec_program *program = payload;
    program_end end;
    char **fields, *json;
    size_t n, body_n;
    int format;
    const void *body = jobq_job_body(job, &body_n, &format);

    if (jobq_payload_to_json(format, body, body_n, &json, &n) < 0) {
        const char *message = jobq_error_message(jobq_error_last());

        return fail_with(job, JOBQ_ENDED_UNDECODABLE, "PayloadError", message, strlen(message));
    }
    fields = fields_make(job);
    if (fields) {
        program_run(job, program->path, program->words, fields, json, n, &end);
        fields_free(fields);
    }
    jobq_text_free(json);
    return fields ? judge(job, program, &end)
                  : fail_with(job, JOBQ_ENDED_FAILED, "StartError", "out of memory", 13);
}

static int run_worker(jobq_queue *queue, exec_program *program, const char *const *queues,
                      size_t count, const jobq_conf *over)
{
    const jobq_worker_hooks hooks = {.size = sizeof(hooks), .interrupt = program_interrupt};
    jobq_worker *worker;
    int rc = jobq_worker_new(queue, over, &worker);

    if (rc < 0)
        return rc;
    jobq_worker_set_resolver(worker, true);
    rc = jobq_worker_set_hooks(worker, &hooks);
    if (rc >= 0)
        rc = jobq_worker_run(worker, queues, count, run_job, program);
    jobq_worker_free(worker);
    return rc;
}

/* A program that is not there is better said now than once per job. */
static int find_program(exec_program *program, const char *source)
{
    const char *problem;
    int rc;

    program->words = words_split(source, &problem);
    if (!program->words) {
        fprintf(stderr, "error: --exec: \"%s\" %s\n", source, problem);
        return USAGE;
    }
    rc = program_find(program->words[0], program->path, sizeof(program->path));
    if (rc == 0)
        return 0;
    fprintf(stderr, "error: --exec: cannot run \"%s\": %s\n", program->words[0], strerror(rc));
    return USAGE;
}

int exec_work(void *payload, const char *source, const char *dsn, const char *const *queues,
              size_t count, const jobq_conf *over)
{
    exec_program program = {0};
    jobq_queue *queue;
    int rc = find_program(&program, source);

    (void)payload;
    if (rc == 0) {
        jobq_console_loaded(program.path, strlen(program.path));
        rc = jobq_queue_new(dsn, NULL, &queue);
        if (rc >= 0) {
            rc = run_worker(queue, &program, queues, count, over);
            jobq_queue_free(queue);
        }
    }
    words_free(program.words);
    return rc;
}
