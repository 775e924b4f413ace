/* SPDX-License-Identifier: MIT
 *
 * Looking at jobs without taking them: jobs, failed, show.
 */
#include <string.h>

#include "console/console.h"

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

    if (jobq_info_number(info, JOBQ_INFO_PUT_ASIDE))
        return "put aside: no handler for it so far";
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
                          [JOBQ_DONE] = {"KEPT UNTIL", JOBQ_INFO_KEPT_UNTIL_MS},
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

    code = jobq__cli_open(cli);
    if (code)
        return code;
    if (jobq_queue_find(cli->queue, id, strlen(id), &info) < 0)
        return jobq__cli_fail(cli);
    if (cli->given.raw && cli->given.json) {
        jobq__job_export(cli, stdout, info);
    } else if (cli->given.raw) {
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
