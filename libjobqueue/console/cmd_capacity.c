/* SPDX-License-Identifier: MIT
 *
 * capacity: how many jobs a queue may hold (rule B4).
 */
#include <string.h>

#include "console/console.h"
#include "util/str.h"

#define CAPACITY_MAX INT64_C(1000000000000)

static void answer(jobq__cli *cli, const char *queue, int64_t capacity)
{
    jobq__json j;

    if (cli->given.quiet)
        return;
    if (cli->given.json) {
        jobq__json_begin(&j, stdout);
        jobq__json_open(&j, NULL, '{');
        jobq__json_string(&j, "queue", queue);
        jobq__json_limit(&j, "capacity", capacity);
        jobq__json_close(&j, '}');
        return;
    }
    if (capacity)
        printf("%s: at most %lld job%s\n", jobq__cli_clean(cli, queue, strlen(queue)),
               (long long)capacity, jobq__plural(capacity));
    else
        printf("%s: no limit\n", jobq__cli_clean(cli, queue, strlen(queue)));
}

static int read_number(const jobq__cli *cli, const char *word, int64_t *out)
{
    if (jobq__str_int(word, strlen(word), out) && *out >= 0 && *out <= CAPACITY_MAX)
        return 0;
    return jobq__cli_usage(cli,
                           "capacity: \"%s\" is not a whole number from 0 (no limit) to "
                           "1000000000000",
                           word);
}

/* Who only looks makes no store. */
static int show(jobq__cli *cli, const char *queue)
{
    jobq__command looking = *cli->command;
    const jobq__command *given = cli->command;
    int64_t values[JOBQ_STATS];
    int code;

    looking.store = JOBQ__STORE_MAY_BE;
    cli->command = &looking;
    code = jobq__cli_open(cli);
    cli->command = given;
    if (code)
        return code;
    if (jobq_queue_stats(cli->queue, queue, strlen(queue), values) < 0)
        return jobq__cli_fail(cli);
    answer(cli, queue, values[JOBQ_STAT_CAPACITY]);
    return JOBQ__EXIT_OK;
}

int jobq__cmd_capacity(jobq__cli *cli)
{
    const jobq__words_given *args = &cli->given.args;
    const char *queue = args->items[0];
    int64_t capacity;
    int code;

    if (args->count == 1)
        return show(cli, queue);
    code = read_number(cli, args->items[1], &capacity);
    if (code == 0)
        code = jobq__cli_open(cli);
    if (code)
        return code;
    if (jobq_queue_set_capacity(cli->queue, queue, strlen(queue), capacity) < 0)
        return jobq__cli_fail(cli);
    answer(cli, queue, capacity);
    return JOBQ__EXIT_OK;
}
