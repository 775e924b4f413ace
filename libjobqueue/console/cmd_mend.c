/* SPDX-License-Identifier: MIT
 *
 * Mending dead jobs: retry, forget, flush and prune, by ids or by filter (rule F4). What was not
 * done is named, and makes the exit code 1.
 */
#include <string.h>

#include "console/console.h"

typedef struct {
    int what;              /* JOBQ_DEAD_* */
    const char *done_word; /* "retried": also the JSON key */
    const char *verb;      /* of the progress bar */
} mend_kind;

typedef struct {
    int64_t done, skipped, unknown;
    int64_t over; /* of the skipped: their retention is over; known of single ids only */
} mend_sums;

bool jobq__filter_make(const jobq__given *g, jobq_filter *out)
{
    *out = (jobq_filter){sizeof(*out), g->queue, g->name, g->reason,
                         g->older_than_ms > 0 ? g->older_than_ms : 0};
    return g->queue || g->name || g->reason || g->older_than_ms >= 0;
}

static const mend_kind retrying = {JOBQ_DEAD_RETRY, "retried", "retrying"};
static const mend_kind forgetting = {JOBQ_DEAD_FORGET, "forgotten", "forgetting"};
static const mend_kind flushing = {JOBQ_DEAD_FORGET, "forgotten", "flushing"};
static const mend_kind pruning = {JOBQ_DEAD_FORGET, "pruned", "pruning"};

static int show_progress(void *payload, int64_t done)
{
    jobq__progress_show(payload, done);
    return 0;
}

/* How many dead jobs the filter can match at most; 0 = not known without looking. */
static int64_t count_dead(jobq__cli *cli)
{
    const jobq__given *g = &cli->given;
    int64_t values[JOBQ_STATS], sum = 0;
    char **names;
    size_t count;

    if (g->name || g->reason || g->older_than_ms > 0 || !cli->terminal.err ||
        jobq_queue_names(cli->queue, &names, &count) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if ((!g->queue || strcmp(g->queue, names[i]) == 0) &&
            jobq_queue_stats(cli->queue, names[i], strlen(names[i]), values) == 0)
            sum += values[JOBQ_STAT_DEAD];
    jobq_names_free(names, count);
    return sum;
}

static int mend_filter(jobq__cli *cli, const mend_kind *kind, mend_sums *sums)
{
    const jobq__given *g = &cli->given;
    jobq_filter filter;
    jobq__progress progress;
    int64_t done;

    jobq__filter_make(g, &filter);
    jobq__progress_begin(&progress, cli, kind->verb, count_dead(cli));
    done = jobq_queue_mend(cli->queue, kind->what, &filter, g->dry_run, &sums->skipped,
                           show_progress, &progress);
    jobq__progress_end(&progress);
    if (done < 0)
        return jobq__cli_fail(cli);
    sums->done = done;
    return 0;
}

static void say_holder(jobq__cli *cli, const char *id)
{
    char holder[129];

    if (jobq_queue_key_holder(cli->queue, id, strlen(id), holder) < 0 || !*holder)
        jobq__cli_error(cli, "job \"%s\" skipped: its unique key is held by another job", id);
    else
        jobq__cli_error(cli, "job \"%s\" skipped: its unique key is held by job \"%s\"", id,
                        holder);
}

static void judge_ids(jobq__cli *cli, const int *results, mend_sums *sums)
{
    const jobq__words_given *args = &cli->given.args;

    for (size_t i = 0; i < args->count; i++) {
        if (results[i] == JOBQ_ENOTFOUND) {
            sums->unknown++;
            jobq__cli_error(cli, "no dead job with id \"%s\"", args->items[i]);
        } else if (results[i] == JOBQ_EEXISTS) {
            sums->skipped++;
            say_holder(cli, args->items[i]);
        } else if (results[i] == JOBQ_ELIMIT) {
            sums->skipped++;
            sums->over++;
            jobq__cli_error(cli, "job \"%s\" skipped: its retention (dead_retention) is over",
                            args->items[i]);
        }
    }
}

static int mend_ids(jobq__cli *cli, const mend_kind *kind, mend_sums *sums)
{
    const jobq__words_given *args = &cli->given.args;
    int *results = jobq__arena_alloc(&cli->arena, args->count * sizeof(*results));

    if (!results)
        return jobq__cli_usage(cli, "out of memory");
    sums->done = jobq_queue_mend_ids(cli->queue, kind->what, args->items, args->count,
                                     cli->given.dry_run, results);
    if (sums->done < 0)
        return jobq__cli_fail(cli);
    judge_ids(cli, results, sums);
    return 0;
}

static const char *skipped_why(const jobq__cli *cli, const mend_sums *sums)
{
    if (!cli->given.args.count)
        return "unique key held, or retention over";
    return sums->over == 0               ? "unique key held"
           : sums->over == sums->skipped ? "retention over"
                                         : "unique key held, retention over";
}

/* "3 retried, 1 skipped (unique key held), 1 unknown" */
static void print_sums(jobq__cli *cli, const mend_kind *kind, const mend_sums *sums)
{
    bool dry = cli->given.dry_run;
    jobq__json j;

    if (cli->given.quiet)
        return;
    if (cli->given.json) {
        jobq__json_begin(&j, stdout);
        jobq__json_open(&j, NULL, '{');
        jobq__json_int(&j, kind->done_word, sums->done);
        jobq__json_int(&j, "skipped", sums->skipped);
        jobq__json_int(&j, "unknown", sums->unknown);
        jobq__json_bool(&j, "dry_run", dry);
        jobq__json_close(&j, '}');
        return;
    }
    printf("%lld %s%s", (long long)sums->done, dry ? "would be " : "", kind->done_word);
    if (sums->skipped)
        printf(", %lld %sskipped (%s)", (long long)sums->skipped, dry ? "would be " : "",
               skipped_why(cli, sums));
    if (sums->unknown)
        printf(", %lld unknown", (long long)sums->unknown);
    putchar('\n');
}

/* "retry all" is "retry --all". */
static void read_all_word(jobq__given *g)
{
    if (g->args.count == 1 && strcmp(g->args.items[0], "all") == 0) {
        g->all = true;
        g->args.count = 0;
    }
}

static int mend(jobq__cli *cli, const mend_kind *kind)
{
    jobq__given *g = &cli->given;
    jobq_filter filter;
    bool filtered;
    mend_sums sums = {0};
    int code;

    if (kind == &retrying)
        read_all_word(g);
    filtered = jobq__filter_make(g, &filter) || g->all || kind == &flushing;
    if (filtered && g->args.count)
        return jobq__cli_usage(cli, "%s takes either ids or a filter, not both",
                               cli->command->name);
    if (!filtered && !g->args.count)
        return jobq__cli_usage(
            cli, "%s needs ids, a filter (--queue, --name, --reason, --older-than) or --all",
            cli->command->name);
    code = jobq__cli_open(cli);
    if (code == 0)
        code = g->args.count ? mend_ids(cli, kind, &sums) : mend_filter(cli, kind, &sums);
    if (code)
        return code;
    print_sums(cli, kind, &sums);
    return sums.done && !sums.skipped && !sums.unknown ? JOBQ__EXIT_OK : JOBQ__EXIT_FAILED;
}

int jobq__cmd_retry(jobq__cli *cli)
{
    return mend(cli, &retrying);
}

int jobq__cmd_forget(jobq__cli *cli)
{
    return mend(cli, &forgetting);
}

int jobq__cmd_flush(jobq__cli *cli)
{
    return mend(cli, &flushing);
}

/* ---- prune ----------------------------------------------------------------------------------- */

int jobq__cmd_prune(jobq__cli *cli)
{
    const jobq__given *g = &cli->given;
    mend_sums sums = {0};
    jobq_filter filter;
    jobq__progress progress;
    int code;

    if (g->older_than_ms < 0)
        return jobq__cli_usage(cli, "prune needs --older-than=SECONDS (or --hours=N): how long ago "
                                    "a job must have died");
    code = jobq__cli_open(cli);
    if (code)
        return code;
    jobq__filter_make(g, &filter);
    jobq__progress_begin(&progress, cli, pruning.verb, 0);
    sums.done = jobq_queue_prune(cli->queue, &filter, g->dry_run, show_progress, &progress);
    jobq__progress_end(&progress);
    if (sums.done < 0)
        return jobq__cli_fail(cli);
    print_sums(cli, &pruning, &sums);
    return sums.done ? JOBQ__EXIT_OK : JOBQ__EXIT_FAILED;
}
