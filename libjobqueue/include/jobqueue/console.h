/* SPDX-License-Identifier: MIT
 *
 * The command line, for front ends: `jobqueue COMMAND` in C, Console::run in PHP. The front end
 * adds only how jobs are run.
 */
#ifndef JOBQUEUE_CONSOLE_H
#define JOBQUEUE_CONSOLE_H

#include <jobqueue/worker.h>

JOBQ_BEGIN_DECLS

/* What a front end brings. Zero-initialise; size = sizeof(jobq_console). */
typedef struct {
    size_t size;
    const char *program; /* for usage texts: "jobqueue" */
    void *payload;
    /* How `work` gets a worker: the value of `source_option` ("bootstrap", "exec") as given, or
     * NULL. The meaning may begin with the value's name: "FILE: a PHP file ...". A ready worker
     * (PHP: Console::run($argv, $worker)) makes --dsn a usage error. */
    const char *source_option, *source_meaning;
    jobq_worker *ready_worker;
    /* Runs `work`: applies over (scope worker), runs the pool and returns the exit code. `dsn` may
     * be NULL. queues may be empty. NULL: this front end has no `work`. Errors: a negative code,
     * worded in the record. */
    int (*work)(void *payload, const char *source, const char *dsn, const char *const *queues,
                size_t count, const jobq_conf *over);
    /* The binding's own version line for `version`, may be NULL ("php 8.2.33"). */
    const char *runtime;
} jobq_console;

/* argv[0] is the program. Writes to stdout and stderr; returns the exit code (0, 1, 2, 12:
 * doc/console.md). In a worker's child it does not return. @since 0.1 */
JOBQ_API int jobq_console_main(const jobq_console *console, int argc, char *const *argv);

/* For front ends, under `work --reload`: names a file that the running program was made of, so that
 * a change of it starts the worker anew. In any process of the worker, as often as one likes;
 * without --reload nothing happens. jobq_console_reloads: would it be of use? @since 0.1 */
JOBQ_API void jobq_console_loaded(const char *path, size_t n);
JOBQ_API bool jobq_console_reloads(void);

JOBQ_END_DECLS
#endif
