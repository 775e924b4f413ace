/* SPDX-License-Identifier: MIT
 *
 * Inside of the command line: the command row, what was given, and the tools that commands print
 * with. main.c has the commands as a table, options.c the options; cmd_*.c does the work of one
 * family each.
 */
#ifndef JOBQ_CONSOLE_CONSOLE_H
#define JOBQ_CONSOLE_CONSOLE_H

#include <jobqueue/console.h>
#include <jobqueue/inspect.h>
#include <stdio.h>

#include "util/buf.h"

enum { JOBQ__EXIT_OK = 0, JOBQ__EXIT_FAILED = 1, JOBQ__EXIT_USAGE = 2, JOBQ__EXIT_ALARM = 3 };

typedef struct jobq__cli jobq__cli;

/* ---- commands -------------------------------------------------------------------------------- */

/* Groups of options that a command takes (options.c has the rows). */
enum {
    JOBQ__ON_ALL = 1, /* dsn json quiet no-color help */
    JOBQ__ON_STATE = 2,
    JOBQ__ON_PAGE = 4,   /* limit after */
    JOBQ__ON_FILTER = 8, /* queue name reason older-than */
    JOBQ__ON_MEND = 16,  /* all */
    JOBQ__ON_CONTEXT = 32,
    JOBQ__ON_WORK = 64,   /* queue=LIST daemon, and the front end's source */
    JOBQ__ON_TEXTS = 128, /* hidden: what man page and completion are made from */
    JOBQ__ON_RAW = 256,
    JOBQ__ON_WATCH = 512,
    JOBQ__ON_AGE = 1024,
    JOBQ__ON_DRY = 2048,
    JOBQ__ON_HOURS = 4096,
    JOBQ__ON_QUEUES = 8192, /* all, of queues */
    JOBQ__ON_TTL = 16384,
    JOBQ__ON_HARD = 32768,
    JOBQ__ON_FORCE = 65536,
    JOBQ__ON_GUARD = 131072,
    JOBQ__ON_MINUTES = 262144,
    JOBQ__ON_WAIT = 524288,
    JOBQ__ON_AUDIT = 1048576
};

/* Of a store that is a file which is not there: made; made, and that is said; taken for empty;
 * refused. */
enum { JOBQ__STORE_MAKES, JOBQ__STORE_SAYS, JOBQ__STORE_MAY_BE, JOBQ__STORE_MUST_BE };

typedef struct {
    const char *name, *aliases; /* aliases: blank-separated, may be NULL */
    const char *arguments, *summary;
    const char *more;           /* further sentences for its help, may be NULL */
    unsigned options;           /* JOBQ__ON_* beside JOBQ__ON_ALL */
    int scope;                  /* JOBQ_SCOPE_* whose options it takes, 0 = none */
    int store;                  /* JOBQ__STORE_* */
    int min_args, max_args;     /* max -1: any number */
    const char *exits;          /* what its exit codes mean beside 1 and 2 in general */
    int (*run)(jobq__cli *cli); /* the exit code */
} jobq__command;

/* The i-th command, NULL past the end. */
const jobq__command *jobq__command_at(size_t i);
/* By name or alias ("queue:" in front is fine); NULL: unknown. */
const jobq__command *jobq__command_find(const char *name);

int jobq__cmd_work(jobq__cli *cli);
int jobq__cmd_push(jobq__cli *cli);
int jobq__cmd_push_lines(jobq__cli *cli);
int jobq__cmd_stats(jobq__cli *cli);
int jobq__cmd_jobs(jobq__cli *cli);
int jobq__cmd_show(jobq__cli *cli);
int jobq__cmd_wait(jobq__cli *cli);
int jobq__cmd_capacity(jobq__cli *cli);
int jobq__cmd_failed(jobq__cli *cli);
int jobq__cmd_retry(jobq__cli *cli);
int jobq__cmd_forget(jobq__cli *cli);
int jobq__cmd_flush(jobq__cli *cli);
int jobq__cmd_prune(jobq__cli *cli);
int jobq__cmd_cancel(jobq__cli *cli);
int jobq__cmd_clear(jobq__cli *cli);
int jobq__cmd_pause(jobq__cli *cli);
int jobq__cmd_resume(jobq__cli *cli);
int jobq__cmd_restart(jobq__cli *cli);
int jobq__cmd_workers(jobq__cli *cli);
int jobq__cmd_top(jobq__cli *cli);
int jobq__cmd_monitor(jobq__cli *cli);
int jobq__cmd_doctor(jobq__cli *cli);
int jobq__cmd_migrate(jobq__cli *cli);
int jobq__cmd_ping(jobq__cli *cli);
int jobq__cmd_config(jobq__cli *cli);
int jobq__cmd_version(jobq__cli *cli);
int jobq__cmd_help(jobq__cli *cli);

/* ---- terminal.c ------------------------------------------------------------------------------ */

typedef struct {
    bool out, err;             /* is it a terminal? */
    bool color_out, color_err; /* may it be coloured? */
    int width;                 /* of stdout's terminal, 0 = none or unknown */
} jobq__terminal;

typedef enum { JOBQ__STYLE_BOLD, JOBQ__STYLE_RED, JOBQ__STYLE_OFF } jobq__style;

void jobq__terminal_look(jobq__terminal *t, bool no_color);
/* The sequence, "" where colour is off. */
const char *jobq__terminal_style(bool color, jobq__style style);

/* A bar on stderr while something long runs; silent where stderr is no terminal. */
typedef struct {
    const char *verb;
    int64_t total; /* 0 = unknown */
    int64_t drawn_ms;
    bool on, drawn;
} jobq__progress;

void jobq__progress_begin(jobq__progress *p, const jobq__cli *cli, const char *verb, int64_t total);
void jobq__progress_show(jobq__progress *p, int64_t done);
void jobq__progress_end(jobq__progress *p);

/* ---- what was given, and the run of one command ---------------------------------------------- */

typedef struct {
    const char **items;
    size_t count;
} jobq__words_given;

typedef struct {
    const char *dsn, *queue, *name, *reason, *after, *source, *completion, *guard;
    jobq__words_given queues, contexts, guard_params, args;
    int64_t limit, older_than_ms, max_age_ms; /* the last two -1: not given */
    int64_t watch_ms;                         /* 0: not given */
    int64_t ttl_ms;                           /* 0: none */
    int64_t minutes;                          /* 0: not given */
    int64_t wait_ms;                          /* -1: not given */
    jobq_state state;
    bool json, quiet, no_color, help, all, dry_run, daemon, man, raw, hard, force, reload, audit;
} jobq__given;

/* The filter options; was any given? (cmd_mend.c) */
bool jobq__filter_make(const jobq__given *g, jobq_filter *out);

struct jobq__cli {
    jobq_console front;                 /* a copy; what an older front end does not know is zero */
    const char *program, *program_file; /* for texts; argv[0] */
    const jobq__command *command;
    jobq__given given;
    jobq_conf *conf;   /* options of the command's scope, NULL when it has none */
    jobq_queue *queue; /* jobq__cli_open */
    bool queue_is_ours;
    bool missing; /* the store is not there, `queue` an empty one in its place */
    const char *shown_dsn;
    jobq__terminal terminal;
    jobq__arena arena; /* texts of this run */
};

/* Opens the store (connects to nothing yet), again if it is open; 0 or the exit code, with the
 * error printed. */
int jobq__cli_open(jobq__cli *cli);
/* "error: ..." on stderr; returns JOBQ__EXIT_USAGE. */
int jobq__cli_usage(const jobq__cli *cli, const char *fmt, ...) JOBQ_PRINTF(2, 3);
/* "error: ..." on stderr, nothing else. */
void jobq__cli_error(const jobq__cli *cli, const char *fmt, ...) JOBQ_PRINTF(2, 3);
void jobq__cli_note(const jobq__cli *cli, const char *fmt, ...) JOBQ_PRINTF(2, 3);
/* Prints the thread's last error; returns the exit code that its kind asks for. */
int jobq__cli_fail(const jobq__cli *cli);
int jobq__exit_of(const jobq_error *err);
/* The text made fit for one line of a terminal, in the run's arena; NULL becomes "". */
const char *jobq__cli_clean(jobq__cli *cli, const char *p, size_t n);
/* Local time for people ("2026-11-30 10:00:01"), "" for 0; in the run's arena. */
const char *jobq__cli_time(jobq__cli *cli, int64_t at_ms);
/* "214 ms", "45 s", "12 min", "3 h", "2 d"; in the run's arena. */
const char *jobq__cli_span(jobq__cli *cli, int64_t ms);
/* "100", "-" for 0; in the run's arena. */
const char *jobq__cli_limit(jobq__cli *cli, int64_t n);
const char *jobq__cli_format(jobq__cli *cli, const char *fmt, ...) JOBQ_PRINTF(2, 3);
/* Should results be printed for people? */
bool jobq__cli_speaks(const jobq__cli *cli);

/* ---- pauses.c -------------------------------------------------------------------------------- */

typedef struct {
    struct jobq_batch *batch;
    const struct jobq_pause *first;
} jobq__pauses;

/* 0 or an error. To be freed in any case. */
int jobq__pauses_ask(jobq__cli *cli, jobq__pauses *out);
/* 0 or the exit code, with the error printed. */
int jobq__pauses_read(jobq__cli *cli, jobq__pauses *out);
/* Is the queue paused, alone or with all? */
bool jobq__pauses_have(const jobq__pauses *pauses, const char *queue);
/* In its own right; NULL: are all of them, with one pause? */
bool jobq__pauses_have_own(const jobq__pauses *pauses, const char *queue);
void jobq__pauses_free(jobq__pauses *pauses);

/* ---- options.c ------------------------------------------------------------------------------- */

/* One option that a command takes, from either table. */
typedef struct {
    char name[48]; /* kebab-case, without dashes */
    char meta
        [24]; /* what stands behind "=": "SECONDS"; "" = a flag; "[=SECONDS]" = may be left out */
    const char *meaning;
    const char *standard, *range; /* of the options table, else NULL */
    const char *conf_name;        /* row of the options table, NULL: of the console */
    const char *words;            /* what the value may be, separated by blanks; NULL: anything */
    const struct jobq__cli_option *row;
    bool everywhere, hidden;
} jobq__option_view;

/* The i-th option that the command takes (NULL: those that stand before a command); false past the
 * end. */
bool jobq__option_at(const jobq_console *front, const jobq__command *command, size_t i,
                     jobq__option_view *out);
/* The same for the rows of the options table that belong to a scope. */
bool jobq__option_in_scope(int scope, size_t i, jobq__option_view *out);
/* By its name; also the hidden ones. */
bool jobq__option_find(const jobq__cli *cli, const jobq__command *command, const char *name,
                       jobq__option_view *out);
/* Must a value follow? */
bool jobq__option_needs_value(const jobq__option_view *view);
/* "--limit=N", "--watch[=SECONDS]", "--all" */
void jobq__option_spell(const jobq__option_view *view, char *out, size_t size);
/* Sets one of the console's own (value NULL: none was given): 0 or the exit code, with the error
 * printed. */
int jobq__option_apply(jobq__cli *cli, const jobq__option_view *view, const char *value);
/* Appends a word to a list of the run; false: out of memory. */
bool jobq__words_add(jobq__cli *cli, jobq__words_given *words, const char *word);
/* The nearest command or NULL. */
const char *jobq__command_nearest(const char *name);

/* ---- parse.c --------------------------------------------------------------------------------- */

/* Fills command, given and conf; 0 or JOBQ__EXIT_USAGE with the error printed. */
int jobq__options_parse(jobq__cli *cli, int argc, char *const *argv);

/* ---- table.c --------------------------------------------------------------------------------- */

enum { JOBQ__TABLE_COLUMNS = 12 };

typedef struct {
    const jobq__cli *cli;
    size_t columns, at;
    struct {
        bool right;
        size_t width;
    } column[JOBQ__TABLE_COLUMNS];
    jobq__buf text; /* cells, row by row, each with its NUL */
} jobq__table;

/* Titles are the arguments up to NULL; one that starts with '>' is set flush right. */
void jobq__table_begin(jobq__table *t, const jobq__cli *cli, ...);
/* The next cell, left to right; text must be clean. */
void jobq__table_add(jobq__table *t, const char *text);
void jobq__table_addf(jobq__table *t, const char *fmt, ...) JOBQ_PRINTF(2, 3);
/* Prints to stdout (on a terminal the last column is cut to fit) and frees. */
void jobq__table_end(jobq__table *t);

/* ---- json.c: one document on stdout ---------------------------------------------------------- */

typedef struct {
    FILE *out;
    int depth;
    bool comma[16];
} jobq__json;

/* The key is NULL inside lists and for the outermost value. */
void jobq__json_begin(jobq__json *j, FILE *out);
void jobq__json_open(jobq__json *j, const char *key, char bracket); /* '{' or '[' */
void jobq__json_close(jobq__json *j, char bracket); /* '}' or ']'; the outermost ends the line */
void jobq__json_text(jobq__json *j, const char *key, const char *p, size_t n); /* p NULL: null */
void jobq__json_string(jobq__json *j, const char *key, const char *text);
void jobq__json_int(jobq__json *j, const char *key, int64_t value);
void jobq__json_real(jobq__json *j, const char *key, double value);
void jobq__json_bool(jobq__json *j, const char *key, bool value);
void jobq__json_null(jobq__json *j, const char *key);
void jobq__json_limit(jobq__json *j, const char *key, int64_t value); /* null for 0 */
void jobq__json_time(jobq__json *j, const char *key,
                     int64_t at_ms); /* RFC 3339 in UTC, null for 0 */
/* Text that is JSON already; control characters in it are escaped. */
void jobq__json_raw(jobq__json *j, const char *key, const char *p, size_t n);
/* JSON text for a terminal: as it is but for control characters. */
void jobq__json_print_clean(FILE *out, const char *p, size_t n);

/* ---- job.c: a job, for people and as JSON ---------------------------------------------------- */

void jobq__job_json(jobq__cli *cli, jobq__json *j, const char *key, const jobq_info *info);
void jobq__job_print(jobq__cli *cli, const jobq_info *info);
/* Payload as JSON text (jobq_text_free) or NULL with the problem worded in *problem_out (in the
 * arena). */
char *jobq__job_payload(jobq__cli *cli, const jobq_info *info, size_t *n_out,
                        const char **problem_out);
const char *jobq__job_text(jobq__cli *cli, const jobq_info *info, jobq_info_text_field which);

/* The result as JSON text, NULL when there is none; *problem_out NULL, or why one cannot be
 * shown. */
char *jobq__job_result(jobq__cli *cli, const jobq_info *info, size_t *n_out,
                       const char **problem_out);

/* Member "context", and one member for each option that was given at push. */
void jobq__job_context_json(jobq__json *j, const jobq_info *info);
void jobq__job_options_json(jobq__json *j, const jobq_info *info);
/* One line of JSON from which "push -" makes the job again, body byte for byte (rule A5). */
void jobq__job_export(jobq__cli *cli, FILE *out, const jobq_info *info);

/* ---- minutes.c ------------------------------------------------------------------------------- */

typedef struct {
    jobq_minute_stats *list; /* jobq_minutes_free */
    size_t count;
} jobq__minutes;

void jobq__minutes_json(jobq__json *j, const jobq__minutes *minutes); /* member "per_minute" */
/* A table with a row for each queue: what happened in these minutes together. */
void jobq__minutes_titles(jobq__cli *cli, jobq__table *t);
void jobq__minutes_row(jobq__cli *cli, jobq__table *t, const char *queue,
                       const jobq__minutes *minutes);

/* ---- complete.c ------------------------------------------------------------------------------ */

/* The completion script for a shell; usage error for another word than bash and zsh. */
int jobq__completion_print(jobq__cli *cli, const char *shell);

/* ---- man.c ----------------------------------------------------------------------------------- */

/* The manual page, mdoc. */
void jobq__man_print(jobq__cli *cli);

#endif
