/* SPDX-License-Identifier: MIT
 *
 * doctor: what core/doctor.c found, a line each (rule N5).
 */
#include <string.h>

#include "console/console.h"

typedef struct {
    jobq__cli *cli;
    jobq__json json;
    jobq__progress progress;
} report;

static const char *const grades[] = {"ok", "note", "problem"};

static void take_json(void *payload, const jobq_finding *f)
{
    report *r = payload;

    jobq__json_open(&r->json, NULL, '{');
    jobq__json_string(&r->json, "grade", grades[f->grade]);
    jobq__json_string(&r->json, "check", f->check);
    jobq__json_string(&r->json, "text", f->text);
    jobq__json_string(&r->json, "advice", f->advice);
    jobq__json_close(&r->json, '}');
}

/* "problem  clock       the store's clock is ...: synchronise both hosts" */
static void take_line(void *payload, const jobq_finding *f)
{
    report *r = payload;
    jobq__cli *cli = r->cli;
    bool color = cli->terminal.color_out && f->grade == JOBQ_FINDING_PROBLEM;

    if (!jobq__cli_speaks(cli))
        return;
    jobq__progress_end(&r->progress);
    printf("%s%-8s%s %-11s %s", jobq__terminal_style(color, JOBQ__STYLE_RED), grades[f->grade],
           jobq__terminal_style(color, JOBQ__STYLE_OFF), f->check,
           jobq__cli_clean(cli, f->text, strlen(f->text)));
    if (f->advice)
        printf(": %s", jobq__cli_clean(cli, f->advice, strlen(f->advice)));
    putchar('\n');
    fflush(stdout); /* the next check may take long */
}

static int show_progress(void *payload, int64_t looked_at)
{
    report *r = payload;

    jobq__progress_show(&r->progress, looked_at);
    return 0;
}

/* What both looks found; an error when one of them could not be had. */
static int look(report *r, bool json)
{
    void (*const take)(void *, const jobq_finding *) = json ? take_json : take_line;
    int problems = jobq_queue_doctor(r->cli->queue, take, r);
    int64_t strays;

    if (problems < 0 || !r->cli->given.audit)
        return problems;
    jobq__progress_begin(&r->progress, r->cli, "jobs looked at:", 0);
    strays = jobq_queue_audit(r->cli->queue, take, show_progress, r);
    jobq__progress_end(&r->progress);
    return strays < 0 ? (int)strays : problems + (strays > 0);
}

/* A store that cannot be used has the exit code that every command gives it. */
static int end_with(jobq__cli *cli, int problems)
{
    if (problems < 0)
        return jobq__cli_fail(cli);
    return problems ? JOBQ__EXIT_ALARM : JOBQ__EXIT_OK;
}

int jobq__cmd_doctor(jobq__cli *cli)
{
    report r = {.cli = cli};
    bool json = cli->given.json && !cli->given.quiet;
    int problems, code = jobq__cli_open(cli);

    if (code)
        return code;
    if (json) {
        jobq__json_begin(&r.json, stdout);
        jobq__json_open(&r.json, NULL, '{');
        jobq__json_open(&r.json, "findings", '[');
    }
    problems = look(&r, json);
    code = end_with(cli, problems);
    if (json) {
        jobq__json_close(&r.json, ']');
        jobq__json_bool(&r.json, "healthy", problems == 0);
        jobq__json_close(&r.json, '}');
    }
    return code;
}
