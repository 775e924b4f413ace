/* SPDX-License-Identifier: MIT
 *
 * wait: for the end of a job (rule N7), and its result on standard output.
 */
#include <string.h>

#include "console/console.h"

#define FOR_EVER_MS (INT64_C(315619200) * 1000)

/* "null" for a job without one. False: it cannot be shown, which is said. */
static bool print_result(jobq__cli *cli, const jobq_info *info)
{
    const char *problem;
    size_t n;
    char *text = jobq__job_result(cli, info, &n, &problem);

    if (problem) {
        jobq__cli_error(cli, "the job is done, but its result cannot be shown: %s", problem);
        return false;
    }
    if (!cli->given.quiet) {
        jobq__json_print_clean(stdout, text ? text : "null", text ? n : 4);
        putchar('\n');
    }
    jobq_text_free(text);
    return true;
}

static int print_job(jobq__cli *cli, const jobq_info *info, int rc)
{
    jobq__json j;

    if (cli->given.json) {
        if (!cli->given.quiet) {
            jobq__json_begin(&j, stdout);
            jobq__job_json(cli, &j, NULL, info);
        }
        return rc == 0 ? JOBQ__EXIT_OK : JOBQ__EXIT_FAILED;
    }
    if (rc < 0)
        return JOBQ__EXIT_FAILED;
    return print_result(cli, info) ? JOBQ__EXIT_OK : JOBQ__EXIT_FAILED;
}

/* Dead: why, as its last attempt said it. */
static void say_dead(jobq__cli *cli, const jobq_info *info)
{
    const char *class_name = NULL, *message = NULL;
    const char *id = jobq__job_text(cli, info, JOBQ_INFO_ID),
               *reason = jobq__job_text(cli, info, JOBQ_INFO_REASON);

    jobq_info_error(info, &class_name, &message, NULL, NULL);
    if (!message || !*message)
        message = class_name;
    jobq__cli_error(cli, "job \"%s\" is dead (%s)%s%s", id, reason, message && *message ? ": " : "",
                    message ? message : "");
}

int jobq__cmd_wait(jobq__cli *cli)
{
    const char *id = cli->given.args.items[0];
    const int64_t given_ms = cli->given.wait_ms;
    jobq_info *info = NULL;
    int rc, code = jobq__cli_open(cli);

    if (code)
        return code;
    rc = jobq_queue_wait(cli->queue, id, strlen(id), given_ms < 0 ? FOR_EVER_MS : given_ms, &info);
    if (rc < 0 && !info)
        return jobq__cli_fail(cli);
    if (rc < 0)
        say_dead(cli, info);
    code = print_job(cli, info, rc);
    jobq_info_free(info);
    return code;
}
