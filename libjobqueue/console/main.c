/* SPDX-License-Identifier: MIT
 *
 * The commands as a table, and the run of one of them: parse, dispatch, flush, free.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "console/console.h"
#include "core/queue.h"
#include "util/error.h"
#include "util/str.h"
#include "worker/worker.h"

static const char mend_exits[] = "0 all done, 1 nothing matched or some skipped or unknown";

static const jobq__command commands[] = {
    {
        .name = "work",
        .aliases = "listen",
        .arguments = "[CONNECTION|DSN]",
        .summary = "run jobs until told to stop",
        .more = "Jobs are taken from the queues in the order given. TERM, INT, QUIT and HUP end it "
                "when the running jobs have ended.",
        .options = JOBQ__ON_WORK,
        .scope = JOBQ_SCOPE_WORKER,
        .max_args = 1,
        .exits = "0 ended as asked, 1 store given up, 12 inline over its memory limit",
        .run = jobq__cmd_work,
    },
    {
        .name = "push",
        .arguments = "[NAME [JSON] | -]",
        .summary = "put a job on a queue and print its id",
        .more = "JSON is the payload, null when absent. \"push -\" reads one job per line from "
                "standard input: {\"name\": ..., \"payload\": ..., further options by their names "
                "with underscores}. \"push --raw\" without a name reads what \"show --raw --json\" "
                "wrote.",
        .options = JOBQ__ON_CONTEXT | JOBQ__ON_RAW | JOBQ__ON_GUARD,
        .scope = JOBQ_SCOPE_PUSH,
        .max_args = 2,
        .exits = "0 stored (or its unique key is held), 1 refused (the queue is full, the guard is "
                 "not true, the id exists, ...) or some lines refused",
        .run = jobq__cmd_push,
    },
    {
        .name = "stats",
        .aliases = "status",
        .arguments = "[QUEUE...]",
        .summary = "count the jobs of each queue",
        .options = JOBQ__ON_WATCH | JOBQ__ON_MINUTES,
        .max_args = -1,
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0",
        .run = jobq__cmd_stats,
    },
    {
        .name = "jobs",
        .arguments = "QUEUE",
        .summary = "list the jobs of a queue in one state, in the order they will run",
        .options = JOBQ__ON_STATE | JOBQ__ON_PAGE,
        .min_args = 1,
        .max_args = 1,
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0, 1 no such jobs",
        .run = jobq__cmd_jobs,
    },
    {
        .name = "show",
        .arguments = "ID",
        .summary = "print everything known about a job",
        .options = JOBQ__ON_RAW,
        .min_args = 1,
        .max_args = 1,
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0, 1 no such job",
        .run = jobq__cmd_show,
    },
    {
        .name = "wait",
        .arguments = "ID",
        .summary = "wait until a job has ended, and print its result as JSON",
        .more = "For jobs pushed with --track. With --json the whole job is printed, as by \"show "
                "--json\".",
        .options = JOBQ__ON_WAIT,
        .min_args = 1,
        .max_args = 1,
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0 it is done, 1 it is dead, has not ended in time, or there is no such job",
        .run = jobq__cmd_wait,
    },
    {
        .name = "failed",
        .arguments = "",
        .summary = "list dead jobs, newest first",
        .options = JOBQ__ON_FILTER | JOBQ__ON_PAGE,
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0, 1 nothing matched the filter",
        .run = jobq__cmd_failed,
    },
    {
        .name = "retry",
        .arguments = "[ID...|all]",
        .summary = "put dead jobs back on their queues with fresh counters",
        .options = JOBQ__ON_FILTER | JOBQ__ON_MEND | JOBQ__ON_DRY,
        .max_args = -1,
        .store = JOBQ__STORE_MAY_BE,
        .exits = mend_exits,
        .run = jobq__cmd_retry,
    },
    {
        .name = "forget",
        .arguments = "[ID...]",
        .summary = "delete dead jobs",
        .options = JOBQ__ON_FILTER | JOBQ__ON_MEND | JOBQ__ON_DRY,
        .max_args = -1,
        .store = JOBQ__STORE_MAY_BE,
        .exits = mend_exits,
        .run = jobq__cmd_forget,
    },
    {
        .name = "flush",
        .arguments = "",
        .summary = "delete all dead jobs, or those that a filter matches, without asking",
        .options = JOBQ__ON_FILTER | JOBQ__ON_MEND | JOBQ__ON_DRY | JOBQ__ON_HOURS,
        .store = JOBQ__STORE_MAY_BE,
        .exits = mend_exits,
        .run = jobq__cmd_flush,
    },
    {
        .name = "prune",
        .aliases = "prune-failed",
        .arguments = "",
        .summary = "delete old dead jobs, and finished ones that were kept long enough",
        .more = "--older-than (or --hours) says how long dead jobs stay. Meant for cron.",
        .options = JOBQ__ON_FILTER | JOBQ__ON_DRY | JOBQ__ON_HOURS,
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0, 1 no dead job was that old",
        .run = jobq__cmd_prune,
    },
    {
        .name = "cancel",
        .arguments = "ID...",
        .summary = "end waiting jobs as dead, and tell running ones to end",
        .more = "A running job that returns all the same is done; --hard ends it as at its time "
                "limit.",
        .options = JOBQ__ON_HARD,
        .store = JOBQ__STORE_MAY_BE,
        .min_args = 1,
        .max_args = -1,
        .exits = "0, 1 some id belongs to no waiting or running job",
        .run = jobq__cmd_cancel,
    },
    {
        .name = "clear",
        .arguments = "QUEUE...",
        .summary = "remove the waiting jobs of queues; asks first",
        .more = "Ready and delayed jobs are removed for good; running and dead ones stay.",
        .options = JOBQ__ON_FORCE,
        .store = JOBQ__STORE_MAY_BE,
        .min_args = 1,
        .max_args = -1,
        .exits = "0, 1 the answer was no",
        .run = jobq__cmd_clear,
    },
    {
        .name = "capacity",
        .arguments = "QUEUE [N]",
        .summary = "say or set how many jobs a queue may hold",
        .more =
            "Ready, delayed, reserved and dead jobs count together. When they are N, pushes are "
            "refused; nothing that is there is ever removed. 0 is no limit.",
        .min_args = 1,
        .max_args = 2,
        .store = JOBQ__STORE_SAYS,
        .exits = "0",
        .run = jobq__cmd_capacity,
    },
    {
        .name = "pause",
        .arguments = "[QUEUE...]",
        .summary = "let workers take no more jobs from queues",
        .more = "Running jobs end as they would, and pushes are stored. A pause of --all is one of "
                "its own beside those of single queues.",
        .options = JOBQ__ON_QUEUES | JOBQ__ON_TTL,
        .max_args = -1,
        .store = JOBQ__STORE_SAYS,
        .exits = "0",
        .run = jobq__cmd_pause,
    },
    {
        .name = "resume",
        .aliases = "continue",
        .arguments = "[QUEUE...]",
        .summary = "end the pause of queues",
        .options = JOBQ__ON_QUEUES,
        .max_args = -1,
        .store = JOBQ__STORE_SAYS,
        .exits = "0",
        .run = jobq__cmd_resume,
    },
    {
        .name = "restart",
        .arguments = "",
        .summary = "let all workers finish their jobs and end",
        .more = "For deployments: whoever watches over a worker (systemd, supervisor, ...) starts "
                "it anew with the new code.",
        .store = JOBQ__STORE_SAYS,
        .exits = "0",
        .run = jobq__cmd_restart,
    },
    {
        .name = "workers",
        .arguments = "",
        .summary = "list the live workers of the store",
        .store = JOBQ__STORE_MAY_BE,
        .exits = "0",
        .run = jobq__cmd_workers,
    },
    {
        .name = "top",
        .arguments = "",
        .summary = "watch queues and workers on a terminal, with keys to pause and retry",
        .more =
            "Up and down choose a queue; p pauses or resumes it, a all queues, r retries its dead "
            "jobs, q quits.",
        .options = JOBQ__ON_WATCH,
        .store = JOBQ__STORE_MUST_BE,
        .exits = "0",
        .run = jobq__cmd_top,
    },
    {
        .name = "monitor",
        .arguments = "QUEUE:MAX...",
        .summary = "say whether queues are too full or wait too long",
        .more = "MAX is compared with the backlog: ready, delayed and reserved jobs. With "
                "--max-age, \":MAX\" may be left out. Several queues may also stand in one word, "
                "separated by commas.",
        .options = JOBQ__ON_AGE,
        .min_args = 1,
        .max_args = -1,
        .store = JOBQ__STORE_MUST_BE,
        .exits = "0 none is over, 3 one is",
        .run = jobq__cmd_monitor,
    },
    {
        .name = "migrate",
        .aliases = "queue:table install",
        .arguments = "",
        .summary = "create or update the store's schema",
        .exits = "0",
        .run = jobq__cmd_migrate,
    },
    {
        .name = "ping",
        .arguments = "",
        .summary = "measure one round trip to the store",
        .store = JOBQ__STORE_SAYS,
        .exits = "0",
        .run = jobq__cmd_ping,
    },
    {
        .name = "doctor",
        .arguments = "",
        .summary = "look the store, the way to it and the workers over",
        .options = JOBQ__ON_AUDIT,
        .store = JOBQ__STORE_SAYS,
        .exits = "0 nothing is wrong, 3 a problem was found",
        .run = jobq__cmd_doctor,
    },
    {
        .name = "config",
        .arguments = "",
        .summary = "print every option with its default, range, scope and meaning",
        .exits = "0",
        .run = jobq__cmd_config,
    },
    {
        .name = "version",
        .arguments = "",
        .summary = "print the version and the drivers built in",
        .exits = "0",
        .run = jobq__cmd_version,
    },
    {
        .name = "help",
        .arguments = "[COMMAND]",
        .summary = "explain a command",
        .options = JOBQ__ON_TEXTS,
        .max_args = 1,
        .exits = "0",
        .run = jobq__cmd_help,
    },
};

const jobq__command *jobq__command_at(size_t i)
{
    return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] : NULL;
}

/* Is the word one of the blank-separated list? */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; p && (p = strstr(p, word)) != NULL; p++)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

const jobq__command *jobq__command_find(const char *name)
{
    const char *bare = strncmp(name, "queue:", 6) == 0 ? name + 6 : name;

    if (*bare == '\0' || strchr(bare, ' '))
        return NULL;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, bare) == 0 || listed(commands[i].aliases, name) ||
            listed(commands[i].aliases, bare))
            return &commands[i];
    return NULL;
}

/* Names, then aliases that stand alone. */
static const char *next_command(void *payload, size_t i)
{
    const size_t count = sizeof(commands) / sizeof(commands[0]);
    static const char *const aliases[] = {"install", "status", "continue", "prune-failed",
                                          "listen"};
    const size_t others = sizeof(aliases) / sizeof(aliases[0]);

    (void)payload;
    if (i < count)
        return commands[i].name;
    return i - count < others ? aliases[i - count] : NULL;
}

const char *jobq__command_nearest(const char *name)
{
    return jobq__str_nearest(strncmp(name, "queue:", 6) == 0 ? name + 6 : name, next_command, NULL);
}

/* A file whose folder is there. (A folder that is missing is the driver's to say.) */
static bool is_missing(jobq__cli *cli)
{
    const char *file = jobq__store_file(cli->queue->store);
    const char *slash = file ? strrchr(file, '/') : NULL;
    const char *folder =
        slash ? jobq__arena_copy(&cli->arena, file, slash > file ? (size_t)(slash - file) : 1)
              : NULL;

    return folder && access(file, F_OK) != 0 && errno == ENOENT && access(folder, X_OK) == 0;
}

/* Looking must not make a store, least of all behind a misspelled path. What is not there is empty,
 * and that is said; but an alarm must not take it for fine. */
static int look_for_store(jobq__cli *cli)
{
    const char *dsn = jobq_queue_dsn(cli->queue);
    const bool said = cli->missing;

    cli->missing = cli->command->store != JOBQ__STORE_MAKES && is_missing(cli);
    if (!cli->missing)
        return 0;
    if (cli->command->store == JOBQ__STORE_SAYS) {
        jobq__cli_note(cli, "there was no store at %s: this makes it", dsn);
        cli->missing = false;
        return 0;
    }
    if (cli->command->store == JOBQ__STORE_MUST_BE)
        return jobq__cli_usage(cli, "there is no store at %s", dsn);
    if (!said)
        jobq__cli_note(cli, "there is no store at %s: the first push makes it, or \"%s migrate\"",
                       dsn, cli->program);
    cli->shown_dsn = jobq__cli_format(cli, "%s", dsn);
    if (cli->queue_is_ours)
        jobq_queue_free(cli->queue);
    cli->queue_is_ours = jobq_queue_new("memory:", NULL, &cli->queue) == 0;
    return cli->queue_is_ours ? 0 : jobq__cli_fail(cli);
}

int jobq__cli_open(jobq__cli *cli)
{
    if (cli->queue_is_ours)
        jobq_queue_free(cli->queue);
    cli->queue_is_ours = false;
    if (cli->front.ready_worker) {
        cli->queue = cli->front.ready_worker->queue;
    } else if (jobq_queue_new(cli->given.dsn, NULL, &cli->queue) < 0) {
        return jobq__cli_fail(cli);
    } else {
        cli->queue_is_ours = true;
    }
    cli->shown_dsn = jobq_queue_dsn(cli->queue);
    return look_for_store(cli);
}

static int check_words(const jobq__cli *cli)
{
    const jobq__command *c = cli->command;
    size_t n = cli->given.args.count;

    if (cli->front.ready_worker && cli->given.dsn)
        return jobq__cli_usage(
            cli,
            "--dsn cannot be given here: the program has made its worker with its own connection");
    if (n < (size_t)c->min_args)
        return jobq__cli_usage(cli, "%s needs %s", c->name, c->arguments);
    if (c->max_args >= 0 && n > (size_t)c->max_args)
        return jobq__cli_usage(cli, "%s takes no \"%s\"; usage: %s %s%s%s", c->name,
                               cli->given.args.items[c->max_args], cli->program, c->name,
                               *c->arguments ? " " : "", c->arguments);
    return 0;
}

static int run_command(jobq__cli *cli)
{
    int code;

    if (cli->given.help)
        return jobq__cmd_help(cli);
    if (!cli->command)
        return jobq__cli_usage(cli, "no command given; \"%s help\" lists them", cli->program);
    code = check_words(cli);
    return code ? code : cli->command->run(cli);
}

/* A full disk or closed pipe under stdout must not look like success. */
static int flush_output(const jobq__cli *cli, int code)
{
    bool failed = ferror(stdout) != 0;

    if (fflush(stdout) != 0 || failed) {
        jobq__cli_error(cli, "could not write to standard output: %s", strerror(errno));
        return code ? code : JOBQ__EXIT_FAILED;
    }
    return code;
}

int jobq_console_main(const jobq_console *console, int argc, char *const *argv)
{
    jobq__cli cli = {0};
    int code;

    jobq__error_clear();
    if (console && console->size)
        memcpy(&cli.front, console,
               console->size < sizeof(cli.front) ? console->size : sizeof(cli.front));
    cli.program = cli.front.program ? cli.front.program : "jobqueue";
    cli.program_file = argc > 0 ? argv[0] : NULL;
    cli.given.limit = 50;
    cli.given.older_than_ms = cli.given.max_age_ms = cli.given.wait_ms = -1;
    jobq__terminal_look(&cli.terminal, false);
    code = jobq__options_parse(&cli, argc, argv);
    if (code == 0) {
        jobq__terminal_look(&cli.terminal, cli.given.no_color);
        code = run_command(&cli);
    }
    code = flush_output(&cli, code);
    if (cli.queue_is_ours)
        jobq_queue_free(cli.queue);
    jobq_conf_free(cli.conf);
    jobq__arena_free(&cli.arena);
    return code;
}
