/* SPDX-License-Identifier: MIT
 *
 * Who works on the store (rule N4), and whether they keep up: workers, monitor.
 */
#include <string.h>

#include "console/console.h"
#include "util/str.h"

/* ---- workers --------------------------------------------------------------------------------- */

typedef const char *(*line_at)(const jobq_workers *workers, size_t i, size_t k);

static void put_lines(jobq__json *j, const char *key, const jobq_workers *w, size_t i, line_at at)
{
    const char *text;

    jobq__json_open(j, key, '[');
    for (size_t k = 0; (text = at(w, i, k)) != NULL; k++)
        jobq__json_string(j, NULL, text);
    jobq__json_close(j, ']');
}

/* Those of its queues that are paused. */
static void put_paused(jobq__json *j, const jobq_workers *w, size_t i, const jobq__pauses *pauses)
{
    const char *queue;

    jobq__json_open(j, "paused", '[');
    for (size_t k = 0; (queue = jobq_workers_queue(w, i, k)) != NULL; k++)
        if (jobq__pauses_have(pauses, queue))
            jobq__json_string(j, NULL, queue);
    jobq__json_close(j, ']');
}

static void put_worker(jobq__json *j, const jobq_workers *w, size_t i, const jobq__pauses *pauses)
{
    jobq__json_open(j, NULL, '{');
    jobq__json_string(j, "id", jobq_workers_text(w, i, JOBQ_WORKERS_ID));
    jobq__json_string(j, "host", jobq_workers_text(w, i, JOBQ_WORKERS_HOST));
    jobq__json_string(j, "name", jobq_workers_text(w, i, JOBQ_WORKERS_LABEL));
    jobq__json_int(j, "pid", jobq_workers_number(w, i, JOBQ_WORKERS_PID));
    put_lines(j, "queues", w, i, jobq_workers_queue);
    put_lines(j, "names", w, i, jobq_workers_name);
    jobq__json_int(j, "processes", jobq_workers_number(w, i, JOBQ_WORKERS_PROCESSES));
    jobq__json_time(j, "started_at", jobq_workers_number(w, i, JOBQ_WORKERS_STARTED_AT_MS));
    jobq__json_time(j, "alive_until", jobq_workers_number(w, i, JOBQ_WORKERS_ALIVE_UNTIL_MS));
    jobq__json_real(j, "lease", (double)jobq_workers_number(w, i, JOBQ_WORKERS_LEASE_MS) / 1000);
    jobq__json_int(j, "running", jobq_workers_number(w, i, JOBQ_WORKERS_RUNNING));
    jobq__json_int(j, "held", jobq_workers_number(w, i, JOBQ_WORKERS_HELD));
    put_paused(j, w, i, pauses);
    jobq__json_close(j, '}');
}

static void print_workers_json(const jobq_workers *w, const jobq__pauses *pauses)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_open(&j, "workers", '[');
    for (size_t i = 0; i < jobq_workers_count(w); i++)
        put_worker(&j, w, i, pauses);
    jobq__json_close(&j, ']');
    jobq__json_close(&j, '}');
}

/* "high, default (paused)"; "-" when there is none. pauses NULL: no queues. */
static const char *join(jobq__cli *cli, const jobq_workers *w, size_t i, line_at at,
                        const jobq__pauses *pauses)
{
    jobq__buf all = {0};
    const char *text;

    for (size_t k = 0; (text = at(w, i, k)) != NULL; k++)
        jobq__buf_addf(&all, "%s%s%s", k ? ", " : "", jobq__cli_clean(cli, text, strlen(text)),
                       pauses && jobq__pauses_have(pauses, text) ? " (paused)" : "");
    text = jobq__cli_format(cli, "%s", all.n ? jobq__buf_text(&all) : "-");
    jobq__buf_free(&all);
    return text;
}

static const char *text_of(jobq__cli *cli, const jobq_workers *w, size_t i,
                           jobq_workers_text_field which)
{
    const char *text = jobq_workers_text(w, i, which);

    return text && *text ? jobq__cli_clean(cli, text, strlen(text)) : "-";
}

/* "host", or "host (name)" */
static const char *host_of(jobq__cli *cli, const jobq_workers *w, size_t i)
{
    const char *host = text_of(cli, w, i, JOBQ_WORKERS_HOST);

    return jobq_workers_text(w, i, JOBQ_WORKERS_LABEL)
               ? jobq__cli_format(cli, "%s (%s)", host, text_of(cli, w, i, JOBQ_WORKERS_LABEL))
               : host;
}

static void print_workers(jobq__cli *cli, const jobq_workers *w, const jobq__pauses *pauses)
{
    static const jobq_workers_number_field numbers[] = {JOBQ_WORKERS_PROCESSES,
                                                        JOBQ_WORKERS_RUNNING, JOBQ_WORKERS_HELD};
    jobq__table t;

    jobq__table_begin(&t, cli, "ID", "HOST", ">PID", ">PROCESSES", ">RUNNING", ">HELD", "STARTED",
                      "QUEUES", "NAMES", (char *)NULL);
    for (size_t i = 0; i < jobq_workers_count(w); i++) {
        jobq__table_add(&t, text_of(cli, w, i, JOBQ_WORKERS_ID));
        jobq__table_add(&t, host_of(cli, w, i));
        jobq__table_addf(&t, "%lld", (long long)jobq_workers_number(w, i, JOBQ_WORKERS_PID));
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
            jobq__table_addf(&t, "%lld", (long long)jobq_workers_number(w, i, numbers[k]));
        jobq__table_add(&t,
                        jobq__cli_time(cli, jobq_workers_number(w, i, JOBQ_WORKERS_STARTED_AT_MS)));
        jobq__table_add(&t, join(cli, w, i, jobq_workers_queue, pauses));
        jobq__table_add(&t, join(cli, w, i, jobq_workers_name, NULL));
    }
    jobq__table_end(&t);
}

int jobq__cmd_workers(jobq__cli *cli)
{
    jobq__pauses pauses = {.first = NULL};
    jobq_workers *w;
    int code = jobq__cli_open(cli);

    if (code)
        return code;
    if (jobq_queue_workers(cli->queue, &w) < 0)
        return jobq__cli_fail(cli);
    code = jobq_workers_count(w) ? jobq__pauses_read(cli, &pauses) : 0;
    if (code == 0 && cli->given.json && !cli->given.quiet)
        print_workers_json(w, &pauses);
    if (code == 0 && jobq__cli_speaks(cli) && jobq_workers_count(w))
        print_workers(cli, w, &pauses);
    if (code == 0 && jobq__cli_speaks(cli) && !jobq_workers_count(w))
        jobq__cli_note(cli, "no live workers");
    jobq_workers_free(w);
    jobq__pauses_free(&pauses);
    return code;
}

/* ---- monitor --------------------------------------------------------------------------------- */

typedef struct {
    const char *queue;
    int64_t max; /* -1: none */
    int64_t values[JOBQ_STATS];
    bool full, late;
} watched;

/* "mail:100"; the last colon counts, since names may have colons of their own. */
static int read_watched(jobq__cli *cli, const char *word, size_t n, watched *out)
{
    char *text = jobq__arena_copy(&cli->arena, word, n), *colon = text ? strrchr(text, ':') : NULL;

    if (!text)
        return jobq__cli_usage(cli, "out of memory");
    out->queue = text;
    out->max = -1;
    if (!colon && cli->given.max_age_ms < 0)
        return jobq__cli_usage(cli, "monitor: \"%s\" says no limit: %s:MAX, or --max-age", text,
                               *text ? text : "QUEUE");
    if (!colon)
        return 0;
    if (!jobq__str_int(colon + 1, strlen(colon + 1), &out->max) || out->max < 0)
        return jobq__cli_usage(cli,
                               "monitor: \"%s\": behind the last colon of QUEUE:MAX stands a "
                               "number of jobs from 0 on",
                               text);
    *colon = '\0';
    return 0;
}

static size_t count_watched(const jobq__words_given *args)
{
    size_t n = 0;

    for (size_t i = 0; i < args->count; i++) {
        n++;
        for (const char *p = args->items[i]; (p = strchr(p, ',')) != NULL; p++)
            n++;
    }
    return n;
}

static int read_all(jobq__cli *cli, watched *list)
{
    const jobq__words_given *args = &cli->given.args;
    int code = 0;

    for (size_t i = 0; i < args->count; i++)
        for (const char *p = args->items[i]; code == 0;) {
            size_t n = strcspn(p, ",");

            code = read_watched(cli, p, n, list++);
            p += n;
            if (*p++ == '\0')
                break;
        }
    return code;
}

static int judge_all(jobq__cli *cli, watched *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        watched *w = &list[i];

        if (jobq_queue_stats(cli->queue, w->queue, strlen(w->queue), w->values) < 0)
            return jobq__cli_fail(cli);
        w->full = w->max >= 0 && w->values[JOBQ_STAT_BACKLOG] > w->max;
        w->late = cli->given.max_age_ms >= 0 &&
                  w->values[JOBQ_STAT_OLDEST_READY_AGE_MS] > cli->given.max_age_ms;
    }
    return 0;
}

static void print_monitor_json(const jobq__cli *cli, const watched *list, size_t n, int64_t over)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_open(&j, "queues", '[');
    for (size_t i = 0; i < n; i++) {
        const int64_t *v = list[i].values;

        jobq__json_open(&j, NULL, '{');
        jobq__json_string(&j, "queue", list[i].queue);
        jobq__json_int(&j, "backlog", v[JOBQ_STAT_BACKLOG]);
        jobq__json_int(&j, "ready", v[JOBQ_STAT_READY]);
        jobq__json_int(&j, "delayed", v[JOBQ_STAT_DELAYED]);
        jobq__json_int(&j, "reserved", v[JOBQ_STAT_RESERVED]);
        if (list[i].max >= 0)
            jobq__json_int(&j, "max", list[i].max);
        else
            jobq__json_null(&j, "max");
        if (v[JOBQ_STAT_OLDEST_READY_AGE_MS] >= 0)
            jobq__json_real(&j, "oldest_ready_age",
                            (double)v[JOBQ_STAT_OLDEST_READY_AGE_MS] / 1000);
        else
            jobq__json_null(&j, "oldest_ready_age");
        if (cli->given.max_age_ms >= 0)
            jobq__json_real(&j, "max_age", (double)cli->given.max_age_ms / 1000);
        else
            jobq__json_null(&j, "max_age");
        jobq__json_bool(&j, "over_max", list[i].full);
        jobq__json_bool(&j, "over_age", list[i].late);
        jobq__json_bool(&j, "paused", v[JOBQ_STAT_PAUSED]);
        jobq__json_limit(&j, "capacity", v[JOBQ_STAT_CAPACITY]);
        jobq__json_close(&j, '}');
    }
    jobq__json_close(&j, ']');
    jobq__json_int(&j, "over", over);
    jobq__json_close(&j, '}');
}

/* "mail: backlog 12 (3 ready, 4 delayed, 5 reserved) of at most 10: OVER; oldest ready 45 s of at
 * most 30 s: OVER" */
static void print_watched(jobq__cli *cli, const watched *w)
{
    const int64_t *v = w->values, age = v[JOBQ_STAT_OLDEST_READY_AGE_MS];
    bool color = cli->terminal.color_out && (w->full || w->late);

    printf("%s%s: backlog %lld (%lld ready, %lld delayed, %lld reserved)",
           jobq__terminal_style(color, JOBQ__STYLE_RED),
           jobq__cli_clean(cli, w->queue, strlen(w->queue)), (long long)v[JOBQ_STAT_BACKLOG],
           (long long)v[JOBQ_STAT_READY], (long long)v[JOBQ_STAT_DELAYED],
           (long long)v[JOBQ_STAT_RESERVED]);
    if (w->max >= 0)
        printf(" of at most %lld: %s", (long long)w->max, w->full ? "OVER" : "ok");
    printf("; oldest ready %s", age < 0 ? "none" : jobq__cli_span(cli, age));
    if (cli->given.max_age_ms >= 0)
        printf(" of at most %s: %s", jobq__cli_span(cli, cli->given.max_age_ms),
               w->late ? "OVER" : "ok");
    if (v[JOBQ_STAT_CAPACITY])
        printf("; %lld of a capacity of %lld",
               (long long)(v[JOBQ_STAT_BACKLOG] + v[JOBQ_STAT_DEAD]),
               (long long)v[JOBQ_STAT_CAPACITY]);
    printf("%s%s\n", v[JOBQ_STAT_PAUSED] ? "; paused" : "",
           jobq__terminal_style(color, JOBQ__STYLE_OFF));
}

int jobq__cmd_monitor(jobq__cli *cli)
{
    size_t n = count_watched(&cli->given.args);
    watched *list = jobq__arena_alloc(&cli->arena, n * sizeof(*list));
    int64_t over = 0;
    int code;

    if (!list)
        return jobq__cli_usage(cli, "out of memory");
    code = read_all(cli, list);
    if (code == 0)
        code = jobq__cli_open(cli);
    if (code == 0)
        code = judge_all(cli, list, n);
    if (code)
        return code;
    for (size_t i = 0; i < n; i++)
        over += list[i].full || list[i].late;
    if (cli->given.json && !cli->given.quiet)
        print_monitor_json(cli, list, n, over);
    for (size_t i = 0; i < n && jobq__cli_speaks(cli); i++)
        print_watched(cli, &list[i]);
    return over ? JOBQ__EXIT_ALARM : JOBQ__EXIT_OK;
}
