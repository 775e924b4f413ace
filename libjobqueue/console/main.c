/* SPDX-License-Identifier: MIT
 *
 * The commands as a table, and the run of one of them: parse, dispatch, flush, free.
 */
#include <errno.h>
#include <string.h>

#include "console/console.h"
#include "util/error.h"
#include "util/str.h"
#include "worker/worker.h"

static const char mend_exits[] = "0 all done, 1 nothing matched or some skipped or unknown";

static const jobq__command commands[] = {
    {
        .name = "work",
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
        .options = JOBQ__ON_CONTEXT | JOBQ__ON_RAW,
        .scope = JOBQ_SCOPE_PUSH,
        .max_args = 2,
        .exits = "0 stored (or its unique key is held), 1 refused by the store or some lines "
                 "refused",
        .run = jobq__cmd_push,
    },
    {
        .name = "stats",
        .aliases = "status",
        .arguments = "[QUEUE...]",
        .summary = "count the jobs of each queue",
        .options = JOBQ__ON_WATCH,
        .max_args = -1,
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
        .exits = "0, 1 no such job",
        .run = jobq__cmd_show,
    },
    {
        .name = "failed",
        .arguments = "",
        .summary = "list dead jobs, newest first",
        .options = JOBQ__ON_FILTER | JOBQ__ON_PAGE,
        .exits = "0, 1 nothing matched the filter",
        .run = jobq__cmd_failed,
    },
    {
        .name = "retry",
        .arguments = "[ID...|all]",
        .summary = "put dead jobs back on their queues with fresh counters",
        .options = JOBQ__ON_FILTER | JOBQ__ON_MEND,
        .max_args = -1,
        .exits = mend_exits,
        .run = jobq__cmd_retry,
    },
    {
        .name = "forget",
        .arguments = "[ID...]",
        .summary = "delete dead jobs",
        .options = JOBQ__ON_FILTER | JOBQ__ON_MEND,
        .max_args = -1,
        .exits = mend_exits,
        .run = jobq__cmd_forget,
    },
    {
        .name = "flush",
        .arguments = "",
        .summary = "delete all dead jobs, or those that a filter matches, without asking",
        .options = JOBQ__ON_FILTER | JOBQ__ON_MEND,
        .exits = mend_exits,
        .run = jobq__cmd_flush,
    },
    {
        .name = "workers",
        .arguments = "",
        .summary = "list the live workers of the store",
        .exits = "0",
        .run = jobq__cmd_workers,
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
        .exits = "0",
        .run = jobq__cmd_ping,
    },
    {
        .name = "doctor",
        .arguments = "",
        .summary = "look the store, the way to it and the workers over",
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
    static const char *const aliases[] = {"install", "status"};

    (void)payload;
    if (i < count)
        return commands[i].name;
    return i - count < 2 ? aliases[i - count] : NULL;
}

const char *jobq__command_nearest(const char *name)
{
    return jobq__str_nearest(strncmp(name, "queue:", 6) == 0 ? name + 6 : name, next_command, NULL);
}

int jobq__cli_open(jobq__cli *cli)
{
    if (cli->front.ready_worker) {
        cli->queue = cli->front.ready_worker->queue;
        return 0;
    }
    if (jobq_queue_new(cli->given.dsn, NULL, &cli->queue) < 0)
        return jobq__cli_fail(cli);
    cli->queue_is_ours = true;
    return 0;
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
        return jobq__cli_usage(cli, "%s takes no \"%s\"; usage: %s %s %s", c->name,
                               cli->given.args.items[c->max_args], cli->program, c->name,
                               c->arguments);
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
    cli.given.limit = 50;
    cli.given.older_than_ms = cli.given.max_age_ms = -1;
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
