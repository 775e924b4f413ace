/* SPDX-License-Identifier: MIT
 *
 * show --raw --json: a job as a line that "push -" and "push --raw" make it from again. The body
 * travels byte for byte (rule A5), also one that cannot be read, and is what may be mended.
 */
#include <string.h>

#include "console/console.h"
#include "payload/json_text.h"

static void put_body(jobq__cli *cli, jobq__json *j, const jobq_info *info)
{
    jobq__buf text = {0};
    size_t n;
    int format;
    const void *body = jobq_info_body(info, &n, &format);

    jobq__buf_adds(&text, "{\"$bytes\":\"");
    jobq__base64_add(&text, body, n);
    jobq__buf_adds(&text, "\"}");
    jobq__json_string(j, "format", format == JOBQ_FORMAT_JSON ? "json" : "msgpack");
    if (text.failed)
        jobq__cli_error(cli, "out of memory");
    jobq__json_raw(j, "raw", text.failed ? "null" : text.p, text.failed ? 4 : text.n);
    jobq__buf_free(&text);
}

static void put_given(jobq__json *j, const char *key, const jobq_info *info,
                      jobq_info_text_field which)
{
    size_t n = 0;
    const char *p = jobq_info_text(info, which, &n);

    if (p)
        jobq__json_text(j, key, p, n);
}

void jobq__job_export(jobq__cli *cli, FILE *out, const jobq_info *info)
{
    jobq__json j;

    jobq__json_begin(&j, out);
    jobq__json_open(&j, NULL, '{');
    put_given(&j, "name", info, JOBQ_INFO_NAME);
    put_given(&j, "queue", info, JOBQ_INFO_QUEUE);
    jobq__json_int(&j, "version", jobq_info_number(info, JOBQ_INFO_VERSION));
    jobq__json_int(&j, "priority", jobq_info_number(info, JOBQ_INFO_PRIORITY));
    put_given(&j, "unique", info, JOBQ_INFO_UNIQUE);
    jobq__job_options_json(&j, info);
    jobq__job_context_json(&j, info);
    put_body(cli, &j, info);
    jobq__json_close(&j, '}');
}
