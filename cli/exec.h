/* SPDX-License-Identifier: MIT
 *
 * Running a program per job. exec.c has the worker and the judgement of how a program ended,
 * program.c one run of it, words.c splits the command line, fields.c makes its environment.
 */
#ifndef JOBQUEUE_CLI_EXEC_H
#define JOBQUEUE_CLI_EXEC_H

#include <jobqueue/worker.h>
#include <sys/types.h>

/* The console's `work`: returns the exit code, or a negative code with the library's error record
 * set. */
int exec_work(void *payload, const char *source, const char *dsn, const char *const *queues,
              size_t count, const jobq_conf *over);

/* ---- words.c --------------------------------------------------------------------------------- */

/* Splits at blanks; '...' and "..." keep blanks, a backslash keeps the next character (inside "..."
 * only before " and \). NULL-terminated, freed with words_free; NULL with *problem_out set. */
char **words_split(const char *text, const char **problem_out);
void words_free(char **words);

/* ---- fields.c -------------------------------------------------------------------------------- */

/* The environment of the job's program: ours, with the job's fields over it. NULL: no memory. */
char **fields_make(const jobq_job *job);
void fields_free(char **fields);

/* ---- program.c ------------------------------------------------------------------------------- */

enum { PROGRAM_LINE = 1024 };

/* How a run ended. */
typedef struct {
    int start_errno;         /* could not be started */
    int status;              /* as waitpid tells it */
    int interrupt;           /* JOBQ_INTERRUPT_* that came while it ran */
    char line[PROGRAM_LINE]; /* last line with something in it on its standard error */
    size_t line_n;
} program_end;

/* Full path of an executable file, looked for in $PATH when the name has no slash. 0 or an errno.
 */
int program_find(const char *name, char *path, size_t size);
/* Runs it and waits for its end; `input` becomes its standard input. */
void program_run(jobq_job *job, const char *path, char *const *words, char *const *fields,
                 const char *input, size_t n, program_end *end);
/* At the start of main: is this the first life of a job's program? Then it does not return, or
 * returns the exit code; -1: no. */
int program_child(int argc, char **argv);
/* For the worker's hook: wakes program_run. Async-signal-safe. */
void program_interrupt(void *payload);

#endif
