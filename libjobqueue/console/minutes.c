/* SPDX-License-Identifier: MIT
 *
 * What happened on a queue minute by minute (rule N1): as JSON, and summed up as a row for people.
 */
#include <string.h>

#include "console/console.h"

/* Upper ends in milliseconds are powers of two; the last bucket has none. */
static void put_runs(jobq__json *j, const jobq_minute_stats *m)
{
    jobq__json_open(j, "runs", '[');
    for (int i = 0; i < JOBQ_RUN_BUCKETS; i++) {
        if (m->runs[i] == 0)
            continue;
        jobq__json_open(j, NULL, '{');
        if (i + 1 < JOBQ_RUN_BUCKETS)
            jobq__json_real(j, "up_to", (double)(INT64_C(1) << i) / 1000);
        else
            jobq__json_null(j, "up_to");
        jobq__json_int(j, "count", m->runs[i]);
        jobq__json_close(j, '}');
    }
    jobq__json_close(j, ']');
}

void jobq__minutes_json(jobq__json *j, const jobq__minutes *minutes)
{
    jobq__json_open(j, "per_minute", '[');
    for (size_t i = 0; i < minutes->count; i++) {
        const jobq_minute_stats *m = &minutes->list[i];

        jobq__json_open(j, NULL, '{');
        jobq__json_time(j, "at", m->at_ms);
        for (int k = 0; k < JOBQ_MINUTE_FIELDS; k++)
            jobq__json_int(j, jobq_minute_word((jobq_minute_field)k), m->counts[k]);
        put_runs(j, m);
        jobq__json_close(j, '}');
    }
    jobq__json_close(j, ']');
}

/* ---- for people ------------------------------------------------------------------------------ */

static jobq_minute_stats sum_up(const jobq__minutes *minutes)
{
    jobq_minute_stats sum = {0};

    for (size_t i = 0; i < minutes->count; i++) {
        for (int k = 0; k < JOBQ_MINUTE_FIELDS; k++)
            sum.counts[k] += minutes->list[i].counts[k];
        for (int k = 0; k < JOBQ_RUN_BUCKETS; k++)
            sum.runs[k] += minutes->list[i].runs[k];
    }
    return sum;
}

/* "up to 64 ms": the bucket in which that share of the handlers has ended; "-": none ran. */
static const char *share_word(jobq__cli *cli, const jobq_minute_stats *m, double share)
{
    int64_t all = 0, below = 0;
    int i;

    for (i = 0; i < JOBQ_RUN_BUCKETS; i++)
        all += m->runs[i];
    if (all == 0)
        return "-";
    for (i = 0; i < JOBQ_RUN_BUCKETS; i++) {
        below += m->runs[i];
        if ((double)below >= share * (double)all)
            break;
    }
    if (i + 1 >= JOBQ_RUN_BUCKETS)
        return jobq__cli_format(cli, "> %s",
                                jobq__cli_span(cli, INT64_C(1) << (JOBQ_RUN_BUCKETS - 2)));
    return jobq__cli_format(cli, "<= %s", jobq__cli_span(cli, INT64_C(1) << i));
}

void jobq__minutes_titles(jobq__cli *cli, jobq__table *t)
{
    jobq__table_begin(t, cli, "QUEUE", ">PUSHED", ">DONE", ">FAILED", ">RETRIED", ">CRASHED",
                      ">RELEASED", ">TIMED OUT", ">HALF RAN", ">95 % RAN", (char *)NULL);
}

void jobq__minutes_row(jobq__cli *cli, jobq__table *t, const char *queue,
                       const jobq__minutes *minutes)
{
    const jobq_minute_stats sum = sum_up(minutes);

    jobq__table_add(t, jobq__cli_clean(cli, queue, strlen(queue)));
    for (int k = 0; k < JOBQ_MINUTE_FIELDS; k++)
        jobq__table_addf(t, "%lld", (long long)sum.counts[k]);
    jobq__table_add(t, share_word(cli, &sum, 0.5));
    jobq__table_add(t, share_word(cli, &sum, 0.95));
}
