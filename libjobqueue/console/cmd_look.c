/* SPDX-License-Identifier: MIT
 *
 * Looking without taking: stats, jobs, failed, show.
 */
#include <string.h>

#include "console/console.h"

/* ---- stats ----------------------------------------------------------------------------------- */

typedef struct {
    const char *queue;
    int64_t values[JOBQ_STATS];
} stats_row;

static const struct {
    const char *key;
    jobq_stat field;
} stats_columns[] = {{"ready", JOBQ_STAT_READY},
                     {"delayed", JOBQ_STAT_DELAYED},
                     {"reserved", JOBQ_STAT_RESERVED},
                     {"dead", JOBQ_STAT_DEAD},
                     {"backlog", JOBQ_STAT_BACKLOG}};
enum { STATS_COLUMNS = sizeof(stats_columns) / sizeof(stats_columns[0]) };

/* Everything is asked for before the first byte is printed, so that a failure leaves no half
 * document; NULL and the exit code when it cannot be had. */
static stats_row *collect_stats(jobq__cli *cli, const jobq__words_given *queues, int *code_out)
{
    stats_row *rows = jobq__arena_alloc(&cli->arena, (queues->count + 1) * sizeof(*rows));

    if (!rows) {
        *code_out = jobq__cli_usage(cli, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < queues->count; i++) {
        rows[i].queue = queues->items[i];
        if (jobq_queue_stats(cli->queue, rows[i].queue, strlen(rows[i].queue), rows[i].values) <
            0) {
            *code_out = jobq__cli_fail(cli);
            return NULL;
        }
    }
    return rows;
}

static void print_stats_json(const stats_row *rows, size_t n)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_open(&j, "queues", '[');
    for (size_t i = 0; i < n; i++) {
        int64_t oldest = rows[i].values[JOBQ_STAT_OLDEST_READY_AGE_MS];

        jobq__json_open(&j, NULL, '{');
        jobq__json_string(&j, "queue", rows[i].queue);
        for (size_t k = 0; k < STATS_COLUMNS; k++)
            jobq__json_int(&j, stats_columns[k].key, rows[i].values[stats_columns[k].field]);
        if (oldest < 0)
            jobq__json_null(&j, "oldest_ready_age");
        else
            jobq__json_real(&j, "oldest_ready_age", (double)oldest / 1000);
        jobq__json_close(&j, '}');
    }
    jobq__json_close(&j, ']');
    jobq__json_close(&j, '}');
}

static void print_stats(jobq__cli *cli, const stats_row *rows, size_t n)
{
    jobq__table t;

    jobq__table_begin(&t, cli, "QUEUE", ">READY", ">DELAYED", ">RESERVED", ">DEAD", ">BACKLOG",
                      ">OLDEST", (char *)NULL);
    for (size_t i = 0; i < n; i++) {
        int64_t oldest = rows[i].values[JOBQ_STAT_OLDEST_READY_AGE_MS];

        jobq__table_add(&t, jobq__cli_clean(cli, rows[i].queue, strlen(rows[i].queue)));
        for (size_t k = 0; k < STATS_COLUMNS; k++)
            jobq__table_addf(&t, "%lld", (long long)rows[i].values[stats_columns[k].field]);
        jobq__table_add(&t, oldest < 0 ? "-" : jobq__cli_span(cli, oldest));
    }
    jobq__table_end(&t);
}

static int stats_of(jobq__cli *cli, const jobq__words_given *queues)
{
    int code = 0;
    const stats_row *rows = collect_stats(cli, queues, &code);

    if (!rows)
        return code;
    if (cli->given.json && !cli->given.quiet)
        print_stats_json(rows, queues->count);
    if (jobq__cli_speaks(cli) && queues->count)
        print_stats(cli, rows, queues->count);
    if (jobq__cli_speaks(cli) && !queues->count)
        jobq__cli_note(cli, "the store has no queues yet");
    return 0;
}

int jobq__cmd_stats(jobq__cli *cli)
{
    char **names;
    size_t count;
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    if (cli->given.args.count)
        return stats_of(cli, &cli->given.args);
    if (jobq_queue_names(cli->queue, &names, &count) < 0)
        return jobq__cli_fail(cli);
    code = stats_of(cli, &(jobq__words_given){(const char **)names, count});
    jobq_names_free(names, count);
    return code;
}

/* ---- jobs, failed ---------------------------------------------------------------------------- */

static void print_list_json(jobq__cli *cli, const jobq_list *list)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_open(&j, "jobs", '[');
    for (size_t i = 0; i < jobq_list_count(list); i++)
        jobq__job_json(cli, &j, NULL, jobq_list_get(list, i));
    jobq__json_close(&j, ']');
    jobq__json_string(&j, "next", jobq_list_next(list));
    jobq__json_close(&j, '}');
}

static const char *error_of(jobq__cli *cli, const jobq_info *info)
{
    const char *class_name, *message;

    if (!jobq_info_error(info, &class_name, &message, NULL, NULL))
        return "";
    if (!message || !*message)
        message = class_name;
    return jobq__cli_clean(cli, message, message ? strlen(message) : 0);
}

static void print_dead(jobq__cli *cli, const jobq_list *list)
{
    jobq__table t;

    jobq__table_begin(&t, cli, "ID", "QUEUE", "NAME", ">ATTEMPTS", "DIED", "REASON", "ERROR",
                      (char *)NULL);
    for (size_t i = 0; i < jobq_list_count(list); i++) {
        const jobq_info *info = jobq_list_get(list, i);

        jobq__table_add(&t, jobq__job_text(cli, info, JOBQ_INFO_ID));
        jobq__table_add(&t, jobq__job_text(cli, info, JOBQ_INFO_QUEUE));
        jobq__table_add(&t, jobq__job_text(cli, info, JOBQ_INFO_NAME));
        jobq__table_addf(&t, "%lld",
                         (long long)(jobq_info_number(info, JOBQ_INFO_FAILURES) +
                                     jobq_info_number(info, JOBQ_INFO_CRASHES)));
        jobq__table_add(&t, jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_DIED_AT_MS)));
        jobq__table_add(&t, jobq__job_text(cli, info, JOBQ_INFO_REASON));
        jobq__table_add(&t, error_of(cli, info));
    }
    jobq__table_end(&t);
}

static void print_waiting(jobq__cli *cli, const jobq_list *list)
{
    static const struct {
        const char *title;
        jobq_info_number_field field;
    } due[JOBQ_STATES] = {[JOBQ_READY] = {"READY SINCE", JOBQ_INFO_AVAILABLE_AT_MS},
                          [JOBQ_DELAYED] = {"DUE", JOBQ_INFO_AVAILABLE_AT_MS},
                          [JOBQ_RESERVED] = {"RESERVED UNTIL", JOBQ_INFO_RESERVED_UNTIL_MS},
                          [JOBQ_DONE] = {"KEPT UNTIL", JOBQ_INFO_AVAILABLE_AT_MS},
                          [JOBQ_DEAD] = {"DIED", JOBQ_INFO_DIED_AT_MS}};
    jobq_state state = cli->given.state;
    bool reserved = state == JOBQ_RESERVED;
    jobq__table t;

    jobq__table_begin(&t, cli, "ID", "NAME", ">PRIORITY", ">ATTEMPT", "ENQUEUED", due[state].title,
                      reserved ? "WORKER" : "LAST ERROR", (char *)NULL);
    for (size_t i = 0; i < jobq_list_count(list); i++) {
        const jobq_info *info = jobq_list_get(list, i);

        jobq__table_add(&t, jobq__job_text(cli, info, JOBQ_INFO_ID));
        jobq__table_add(&t, jobq__job_text(cli, info, JOBQ_INFO_NAME));
        jobq__table_addf(&t, "%lld", (long long)jobq_info_number(info, JOBQ_INFO_PRIORITY));
        jobq__table_addf(&t, "%lld", (long long)jobq_info_number(info, JOBQ_INFO_ATTEMPT));
        jobq__table_add(&t, jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_ENQUEUED_AT_MS)));
        jobq__table_add(&t, jobq__cli_time(cli, jobq_info_number(info, due[state].field)));
        jobq__table_add(&t, reserved ? jobq__job_text(cli, info, JOBQ_INFO_RESERVED_BY)
                                     : error_of(cli, info));
    }
    jobq__table_end(&t);
}

static void print_page(jobq__cli *cli, const jobq_list *list,
                       void (*print)(jobq__cli *, const jobq_list *))
{
    const char *next = jobq_list_next(list);

    if (cli->given.json) {
        if (!cli->given.quiet)
            print_list_json(cli, list);
        return;
    }
    if (!jobq__cli_speaks(cli) || jobq_list_count(list) == 0)
        return;
    print(cli, list);
    if (next)
        jobq__cli_note(cli, "more follow: --after=%s", next);
}

int jobq__cmd_jobs(jobq__cli *cli)
{
    const char *queue = cli->given.args.items[0];
    jobq_list *list;
    size_t count;
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    if (jobq_queue_jobs(cli->queue, queue, strlen(queue), cli->given.state,
                        (size_t)cli->given.limit, cli->given.after, &list) < 0)
        return jobq__cli_fail(cli);
    count = jobq_list_count(list);
    print_page(cli, list, cli->given.state == JOBQ_DEAD ? print_dead : print_waiting);
    jobq_list_free(list);
    if (count == 0 && jobq__cli_speaks(cli))
        jobq__cli_note(cli, "no %s jobs in queue \"%s\"", jobq_state_word(cli->given.state), queue);
    return count ? JOBQ__EXIT_OK : JOBQ__EXIT_FAILED;
}

int jobq__cmd_failed(jobq__cli *cli)
{
    const jobq__given *g = &cli->given;
    jobq_filter filter;
    bool filtered = jobq__filter_make(g, &filter) || g->after;
    jobq_list *list;
    size_t count;
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    if (jobq_queue_dead(cli->queue, &filter, (size_t)g->limit, g->after, &list) < 0)
        return jobq__cli_fail(cli);
    count = jobq_list_count(list);
    print_page(cli, list, print_dead);
    jobq_list_free(list);
    if (count == 0 && jobq__cli_speaks(cli))
        jobq__cli_note(cli, "no dead jobs%s", filtered ? " match" : "");
    return count || !filtered ? JOBQ__EXIT_OK : JOBQ__EXIT_FAILED;
}

/* ---- show ------------------------------------------------------------------------------------ */

/* A line's end behind JSON tells it from msgpack: JSON text of two bytes and more never is a
 * msgpack value, "5" alone would be. "push --raw" takes it away again. */
static void print_raw(const jobq_info *info)
{
    size_t n;
    int format;
    const void *body = jobq_info_body(info, &n, &format);

    fwrite(body, 1, n, stdout);
    if (format == JOBQ_FORMAT_JSON)
        putchar('\n');
}

int jobq__cmd_show(jobq__cli *cli)
{
    const char *id = cli->given.args.items[0];
    jobq_info *info;
    jobq__json j;
    int code;

    if (cli->given.raw && cli->given.json)
        return jobq__cli_usage(cli, "show takes either --raw or --json, not both");
    code = jobq__cli_open(cli);
    if (code)
        return code;
    if (jobq_queue_find(cli->queue, id, strlen(id), &info) < 0)
        return jobq__cli_fail(cli);
    if (cli->given.raw) {
        print_raw(info);
    } else if (!cli->given.quiet && cli->given.json) {
        jobq__json_begin(&j, stdout);
        jobq__job_json(cli, &j, NULL, info);
    } else if (!cli->given.quiet) {
        jobq__job_print(cli, info);
    }
    jobq_info_free(info);
    return JOBQ__EXIT_OK;
}
