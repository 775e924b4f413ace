/* SPDX-License-Identifier: MIT
 *
 * The store as such, and the worker: work, migrate, ping.
 */
#include <string.h>

#include "console/console.h"
#include "console/reload.h"
#include "core/settings.h"
#include "worker/worker.h"

/* ---- work ------------------------------------------------------------------------------------ */

/* The connection stands in front of nothing else: "work redis", "work sqlite:queue.db" or --dsn. */
static int work_dsn(jobq__cli *cli, const char **dsn_out)
{
    jobq__given *g = &cli->given;

    if (g->args.count && g->dsn)
        return jobq__cli_usage(cli, "work takes either --dsn or \"%s\", not both",
                               g->args.items[0]);
    if (g->args.count && cli->front.ready_worker) {
        if (strcmp(g->args.items[0], jobq_queue_connection(cli->front.ready_worker->queue)) == 0)
            return 0; /* its very name */
        return jobq__cli_usage(
            cli, "work takes no \"%s\": the program has made its worker with its own connection",
            g->args.items[0]);
    }
    *dsn_out = g->args.count ? g->args.items[0] : g->dsn;
    return 0;
}

/* --json and --quiet are short for --output. */
static int work_output(jobq__cli *cli)
{
    const jobq__given *g = &cli->given;
    const char *output = g->json ? "json" : "quiet";

    if (!g->json && !g->quiet)
        return 0;
    if ((g->json && g->quiet) || jobq__conf_given(cli->conf, output))
        return jobq__cli_usage(cli, "only one of --json, --quiet and --output can be given");
    return jobq_conf_set(cli->conf, "output", output, strlen(output)) < 0 ? jobq__cli_fail(cli) : 0;
}

/* The first option of work is the front end's: needed, unless the worker is there already. */
static int check_source(const jobq__cli *cli)
{
    const bool ready = cli->front.ready_worker != NULL, given = cli->given.source != NULL;
    jobq__option_view source;

    if (!cli->front.source_option || ready != given)
        return 0;
    jobq__option_at(&cli->front, cli->command, 0, &source);
    if (ready)
        return jobq__cli_usage(cli, "--%s cannot be given here: the program has made its worker",
                               source.name);
    return jobq__cli_usage(cli, "work needs --%s=%s%s", source.name, source.meta,
                           strcmp(source.name, "exec") ? ""
                                                       : "; handlers in PHP: php artisan work, in "
                                                         "Python: python -m jobqueue work --app");
}

int jobq__cmd_work(jobq__cli *cli)
{
    const jobq_console *front = &cli->front;
    const jobq__given *g = &cli->given;
    const char *dsn = NULL;
    int code;

    if (!front->work)
        return jobq__cli_usage(cli, "%s cannot run jobs", cli->program);
    code = check_source(cli);
    if (code == 0)
        code = work_dsn(cli, &dsn);
    if (code == 0)
        code = work_output(cli);
    if (code)
        return code;
    if (g->daemon)
        jobq__cli_note(cli, "--daemon changes nothing: the worker goes on until it is stopped");
    if (g->reload && !jobq__reload_is_child())
        return jobq__reload_run(cli);
    fflush(stdout);
    code = front->work(front->payload, g->source, dsn, g->queues.items, g->queues.count, cli->conf);
    if (code == JOBQ_ECALLBACK)
        return JOBQ__EXIT_FAILED; /* the front end's own error: it passes that up */
    return code < 0 ? jobq__cli_fail(cli) : code;
}

/* ---- migrate, ping --------------------------------------------------------------------------- */

static void begin_answer(const jobq__cli *cli, jobq__json *j)
{
    jobq__json_begin(j, stdout);
    jobq__json_open(j, NULL, '{');
    jobq__json_string(j, "driver", jobq_queue_driver(cli->queue));
    jobq__json_string(j, "connection", jobq_queue_connection(cli->queue));
    jobq__json_string(j, "dsn", jobq_queue_dsn(cli->queue));
}

static const char *shown_dsn(jobq__cli *cli)
{
    const char *dsn = jobq_queue_dsn(cli->queue);

    return jobq__cli_clean(cli, dsn, strlen(dsn));
}

int jobq__cmd_migrate(jobq__cli *cli)
{
    jobq__json j;
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    if (jobq_queue_migrate(cli->queue) < 0)
        return jobq__cli_fail(cli);
    if (cli->given.json && !cli->given.quiet) {
        begin_answer(cli, &j);
        jobq__json_bool(&j, "migrated", true);
        jobq__json_close(&j, '}');
    }
    if (jobq__cli_speaks(cli))
        printf("%s: the schema is up to date\n", shown_dsn(cli));
    return JOBQ__EXIT_OK;
}

int jobq__cmd_ping(jobq__cli *cli)
{
    jobq__json j;
    int64_t us;
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    us = jobq_queue_ping(cli->queue);
    if (us < 0)
        return jobq__cli_fail(cli);
    if (cli->given.json && !cli->given.quiet) {
        begin_answer(cli, &j);
        jobq__json_real(&j, "milliseconds", (double)us / 1000);
        jobq__json_close(&j, '}');
    }
    if (jobq__cli_speaks(cli))
        printf("%s: %lld.%03lld ms\n", shown_dsn(cli), (long long)(us / 1000),
               (long long)(us % 1000));
    return JOBQ__EXIT_OK;
}
