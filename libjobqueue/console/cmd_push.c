/* SPDX-License-Identifier: MIT
 *
 * push NAME [JSON]: one job from the command line. Many from standard input: push_lines.c.
 */
#include <string.h>

#include "console/console.h"
#include "console/guard.h"
#include "core/settings.h"
#include "util/error.h"

static int add_contexts(jobq__cli *cli, jobq_message *m)
{
    const jobq__words_given *contexts = &cli->given.contexts;

    for (size_t i = 0; i < contexts->count; i++) {
        const char *pair = contexts->items[i], *sign = strchr(pair, '=');

        if (jobq_message_add_context(m, pair, (size_t)(sign - pair), sign + 1, strlen(sign + 1)) <
            0)
            return -1;
    }
    return 0;
}

/* Standard input as the body: what "show --raw" wrote. */
static int read_body(jobq_message *m)
{
    enum { PIECE = 65536 };
    const size_t most = ((size_t)64 << 20) + 1; /* the library says what is too much */
    jobq__buf body = {0};
    int rc, format;

    while (body.n < most && jobq__buf_reserve(&body, PIECE)) {
        size_t n = fread(body.p + body.n, 1, PIECE, stdin);

        body.n += n;
        if (n == 0)
            break;
    }
    format = jobq_payload_check(JOBQ_FORMAT_MSGPACK, body.p, body.n) == 0 ? JOBQ_FORMAT_MSGPACK
                                                                          : JOBQ_FORMAT_JSON;
    if (format == JOBQ_FORMAT_JSON && body.n && body.p[body.n - 1] == '\n')
        body.n--;
    rc = body.failed ? jobq__error_nomem() : jobq_message_set_body(m, format, body.p, body.n);
    jobq__buf_free(&body);
    return rc;
}

static int fill(jobq__cli *cli, jobq_message *m)
{
    const jobq__words_given *args = &cli->given.args;

    if (jobq_message_set_name(m, args->items[0], strlen(args->items[0])) < 0 ||
        add_contexts(cli, m) < 0 || jobq_conf_merge(jobq_message_options(m), cli->conf) < 0)
        return -1;
    if (cli->given.guard && jobq__guard_of_words(cli->given.guard, cli->given.guard_params.items,
                                                 cli->given.guard_params.count, &cli->arena, m) < 0)
        return -1;
    if (cli->given.raw)
        return read_body(m);
    if (args->count > 1)
        return jobq_payload_from_json(jobq_message_payload(m), args->items[1],
                                      strlen(args->items[1]));
    return 0;
}

/* What there is to say of a job that was not simply stored. */
static const char *note_of(const jobq__cli *cli, int result)
{
    if (result == 2)
        return "it takes the place of what waits under the same unique key";
    return jobq__conf_given(cli->conf, idempotent)
               ? "not stored: a job with this id, or its unique key, is there already"
               : "not stored: this job with the same unique key is waiting or running";
}

static void answer(jobq__cli *cli, const jobq_message *m, int result)
{
    jobq__json j;

    if (cli->given.quiet)
        return;
    if (cli->given.json) {
        jobq__json_begin(&j, stdout);
        jobq__json_open(&j, NULL, '{');
        jobq__json_string(&j, "id", jobq_message_id(m));
        jobq__json_bool(&j, "stored", result != 1);
        jobq__json_bool(&j, "replaced", result == 2);
        jobq__json_close(&j, '}');
        return;
    }
    puts(jobq_message_id(m));
    if (result)
        jobq__cli_note(cli, "%s", note_of(cli, result));
}

/* An answer that was lost: the id lets the caller find out. */
static int fail(jobq__cli *cli, const jobq_message *m)
{
    const jobq_error *err = jobq_error_last();
    bool unknown = jobq_error_code(err) == JOBQ_EUNKNOWN && jobq_message_id(m);
    int code = jobq__cli_fail(cli);

    if (unknown)
        jobq__cli_note(cli, "whether it was stored shows: %s show %s", cli->program,
                       jobq_message_id(m));
    return code;
}

int jobq__cmd_push(jobq__cli *cli)
{
    jobq_message *m;
    int rc, code;

    if (cli->given.args.count == 0 && !cli->given.raw)
        return jobq__cli_usage(cli, "push needs NAME [JSON], - or --raw");
    if (cli->given.args.count == 0 || strcmp(cli->given.args.items[0], "-") == 0)
        return jobq__cmd_push_lines(cli);
    if (cli->given.guard_params.count && !cli->given.guard)
        return jobq__cli_usage(cli, "--guard-param without --guard");
    if (cli->given.raw && cli->given.args.count > 1)
        return jobq__cli_usage(
            cli, "push --raw reads the payload from standard input, it takes no \"%s\"",
            cli->given.args.items[1]);
    code = jobq__cli_open(cli);
    if (code)
        return code;
    m = jobq_message_new();
    if (!m)
        return jobq__cli_usage(cli, "out of memory");
    rc = fill(cli, m);
    if (rc == 0)
        rc = jobq_queue_push(cli->queue, m);
    if (rc < 0)
        code = fail(cli, m);
    else
        answer(cli, m, rc);
    jobq_message_free(m);
    return code;
}
