/* SPDX-License-Identifier: MIT
 *
 * What people ask of running workers: pause, resume, restart, cancel; and clear, which empties a
 * queue (rules L1 to L3). Workers obey by themselves, so these return as soon as the store knows.
 */
#include <jobqueue/control.h>
#include <string.h>
#include <unistd.h>

#include "console/console.h"
#include "util/str.h"

/* ---- pause, resume --------------------------------------------------------------------------- */

/* "high,default" is two words: no queue's name has a comma. */
static int split_words(jobq__cli *cli, jobq__words_given *out)
{
    const jobq__words_given *args = &cli->given.args;

    for (size_t i = 0; i < args->count; i++)
        for (const char *p = args->items[i];; p++) {
            size_t n = strcspn(p, ",");
            const char *word = jobq__arena_copy(&cli->arena, p, n);

            if (n == 0)
                return jobq__cli_usage(cli, "%s: \"%s\" has an empty name in it",
                                       cli->command->name, args->items[i]);
            if (!word || !jobq__words_add(cli, out, word))
                return jobq__cli_usage(cli, "out of memory");
            p += n;
            if (*p == '\0')
                break;
        }
    return 0;
}

/* NULL in `queues` is all of them. */
static int read_queues(jobq__cli *cli, jobq__words_given *queues)
{
    const jobq__given *g = &cli->given;

    if (g->all && g->args.count)
        return jobq__cli_usage(cli, "%s takes either queues or --all, not both",
                               cli->command->name);
    if (!g->all && !g->args.count)
        return jobq__cli_usage(cli, "%s needs QUEUE... or --all", cli->command->name);
    if (g->all)
        return jobq__words_add(cli, queues, NULL) ? 0 : jobq__cli_usage(cli, "out of memory");
    return split_words(cli, queues);
}

static void print_pausing_json(const jobq__cli *cli, const jobq__words_given *queues, bool pause)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_open(&j, "queues", '[');
    for (size_t i = 0; i < queues->count && queues->items[i]; i++)
        jobq__json_string(&j, NULL, queues->items[i]);
    jobq__json_close(&j, ']');
    jobq__json_bool(&j, "all", cli->given.all);
    jobq__json_bool(&j, "paused", pause);
    if (pause && cli->given.ttl_ms)
        jobq__json_real(&j, "ttl", (double)cli->given.ttl_ms / 1000);
    else if (pause)
        jobq__json_null(&j, "ttl");
    jobq__json_close(&j, '}');
}

static const char *shown_queue(jobq__cli *cli, const char *queue)
{
    return queue ? jobq__cli_clean(cli, queue, strlen(queue)) : "all queues";
}

static void print_pausing(jobq__cli *cli, const char *queue, bool pause)
{
    if (pause && cli->given.ttl_ms)
        printf("%s: paused for %s\n", shown_queue(cli, queue),
               jobq__cli_span(cli, cli->given.ttl_ms));
    else
        printf("%s: %s\n", shown_queue(cli, queue), pause ? "paused" : "resumed");
}

/* A queue that was resumed alone while all are paused is worth a word. */
static int note_pause_of_all(jobq__cli *cli, const char *queue)
{
    const int paused = queue ? jobq_queue_is_paused(cli->queue, queue, strlen(queue), NULL) : 0;

    if (paused < 0)
        return jobq__cli_fail(cli);
    if (paused)
        jobq__cli_note(cli, "%s is still paused with all queues: \"%s resume --all\" ends that",
                       shown_queue(cli, queue), cli->program);
    return 0;
}

static int change_pause(jobq__cli *cli, const char *queue, bool pause)
{
    size_t n = queue ? strlen(queue) : 0;
    int rc = pause ? jobq_queue_pause(cli->queue, queue, n, cli->given.ttl_ms)
                   : jobq_queue_resume(cli->queue, queue, n);

    if (rc < 0)
        return jobq__cli_fail(cli);
    if (jobq__cli_speaks(cli))
        print_pausing(cli, queue, pause);
    return pause ? 0 : note_pause_of_all(cli, queue);
}

static int change_pauses(jobq__cli *cli, bool pause)
{
    jobq__words_given queues = {0};
    int code = read_queues(cli, &queues);

    if (code == 0)
        code = jobq__cli_open(cli);
    for (size_t i = 0; i < queues.count && code == 0; i++)
        code = change_pause(cli, queues.items[i], pause);
    if (code == 0 && cli->given.json && !cli->given.quiet)
        print_pausing_json(cli, &queues, pause);
    return code;
}

int jobq__cmd_pause(jobq__cli *cli)
{
    return change_pauses(cli, true);
}

int jobq__cmd_resume(jobq__cli *cli)
{
    return change_pauses(cli, false);
}

/* ---- restart --------------------------------------------------------------------------------- */

int jobq__cmd_restart(jobq__cli *cli)
{
    int code = jobq__cli_open(cli);
    int64_t generation;
    jobq__json j;

    if (code)
        return code;
    if (jobq_queue_restart_workers(cli->queue) < 0 ||
        (generation = jobq_queue_generation(cli->queue)) < 0)
        return jobq__cli_fail(cli);
    if (cli->given.json && !cli->given.quiet) {
        jobq__json_begin(&j, stdout);
        jobq__json_open(&j, NULL, '{');
        jobq__json_int(&j, "generation", generation);
        jobq__json_close(&j, '}');
    }
    if (jobq__cli_speaks(cli))
        puts("asked: workers that run now finish their jobs and end, to be started anew by "
             "whoever watches over them");
    return JOBQ__EXIT_OK;
}

/* ---- cancel ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t cancelled, asked, unknown;
} cancel_sums;

static int cancel_one(jobq__cli *cli, const char *id, cancel_sums *sums)
{
    const char *shown = jobq__cli_clean(cli, id, strlen(id));
    int rc = jobq_queue_cancel(cli->queue, id, strlen(id), cli->given.hard);

    if (rc == JOBQ_ENOTFOUND) {
        sums->unknown++;
        jobq__cli_error(cli, "no waiting or running job with id \"%s\"", shown);
        return 0;
    }
    if (rc < 0)
        return jobq__cli_fail(cli);
    sums->cancelled += rc == JOBQ_CANCELLED;
    sums->asked += rc == JOBQ_CANCEL_ASKED;
    if (jobq__cli_speaks(cli))
        printf("%s: %s\n", shown,
               rc == JOBQ_CANCELLED ? "cancelled"
               : cli->given.hard    ? "is being stopped"
                                    : "runs, and has been told");
    return 0;
}

int jobq__cmd_cancel(jobq__cli *cli)
{
    const jobq__words_given *args = &cli->given.args;
    cancel_sums sums = {0};
    jobq__json j;
    int code = jobq__cli_open(cli);

    for (size_t i = 0; i < args->count && code == 0; i++)
        code = cancel_one(cli, args->items[i], &sums);
    if (code)
        return code;
    if (cli->given.json && !cli->given.quiet) {
        jobq__json_begin(&j, stdout);
        jobq__json_open(&j, NULL, '{');
        jobq__json_int(&j, "cancelled", sums.cancelled);
        jobq__json_int(&j, "asked", sums.asked);
        jobq__json_int(&j, "unknown", sums.unknown);
        jobq__json_close(&j, '}');
    }
    return sums.unknown ? JOBQ__EXIT_FAILED : JOBQ__EXIT_OK;
}

/* ---- clear ----------------------------------------------------------------------------------- */

static int count_waiting(jobq__cli *cli, const char *queue, int64_t *waiting_out)
{
    int64_t values[JOBQ_STATS];

    if (jobq_queue_stats(cli->queue, queue, strlen(queue), values) < 0)
        return jobq__cli_fail(cli);
    *waiting_out = values[JOBQ_STAT_READY] + values[JOBQ_STAT_DELAYED];
    return 0;
}

/* "y" or "yes" on standard input; anything else and its end are a no. */
static bool ask(const char *queue, int64_t waiting)
{
    char line[16] = "";

    fflush(stdout);
    fprintf(stderr, "Remove %lld waiting job%s from %s? [y/N] ", (long long)waiting,
            jobq__plural(waiting), queue);
    fflush(stderr);
    if (!fgets(line, sizeof(line), stdin))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return strcmp(line, "y") == 0 || strcmp(line, "Y") == 0 || strcmp(line, "yes") == 0;
}

static int show_progress(void *payload, int64_t done)
{
    jobq__progress_show(payload, done);
    return 0;
}

static int clear_one(jobq__cli *cli, const char *queue, int64_t *cleared)
{
    const char *shown = jobq__cli_clean(cli, queue, strlen(queue));
    jobq__progress progress;
    int64_t waiting = 0, done;
    int code = count_waiting(cli, queue, &waiting);

    if (code)
        return code;
    if (!cli->given.force && waiting && !ask(shown, waiting)) {
        jobq__cli_note(cli, "%s is left as it is", shown);
        return JOBQ__EXIT_FAILED;
    }
    jobq__progress_begin(&progress, cli, "clearing", waiting);
    done = jobq_queue_clear(cli->queue, queue, strlen(queue), show_progress, &progress);
    jobq__progress_end(&progress);
    if (done < 0)
        return jobq__cli_fail(cli);
    *cleared += done;
    if (jobq__cli_speaks(cli))
        printf("%s: %lld removed\n", shown, (long long)done);
    return 0;
}

int jobq__cmd_clear(jobq__cli *cli)
{
    jobq__words_given queues = {0};
    int64_t cleared = 0;
    jobq__json j;
    int code = split_words(cli, &queues);

    if (code == 0 && !cli->given.force && (isatty(STDIN_FILENO) != 1 || !cli->terminal.err))
        code = jobq__cli_usage(cli, "clear removes jobs for good: without a terminal to ask on, it "
                                    "needs --force");
    if (code == 0)
        code = jobq__cli_open(cli);
    for (size_t i = 0; i < queues.count && code == 0; i++)
        code = clear_one(cli, queues.items[i], &cleared);
    if (code == 0 && cli->given.json && !cli->given.quiet) {
        jobq__json_begin(&j, stdout);
        jobq__json_open(&j, NULL, '{');
        jobq__json_int(&j, "cleared", cleared);
        jobq__json_close(&j, '}');
    }
    return code;
}
