/* SPDX-License-Identifier: MIT
 *
 * push - and push --raw: lines from standard input, sent in chunks of bounded size. A chunk also
 * goes when the input pauses, so that a slow writer's jobs do not wait. Refused lines are named
 * and passed over; a store that fails ends it.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "console/console.h"
#include "console/push_line.h"

enum { READ_SIZE = 65536, KEEP_BYTES = 65536 };
#define LINE_MAX_BYTES ((size_t)512 << 20) /* a body of 64 MiB, every byte of it escaped */

typedef struct {
    jobq_message *message; /* kept for reuse while it is small */
    int64_t line;
    size_t bytes;
} push_slot;

typedef struct {
    jobq__cli *cli;
    push_slot slots[JOBQ_PUSH_CHUNK];
    size_t count, bytes; /* waiting to be sent */
    int64_t line, pushed, replaced, held, refused;
    int code; /* of a store that failed */
    jobq__json json;
    jobq__progress progress;
    jobq__buf text; /* the line being read */
    bool overlong;
    char input[READ_SIZE];
} push_run;

/* ---- answers --------------------------------------------------------------------------------- */

static bool prints_json(const push_run *run)
{
    return run->cli->given.json && !run->cli->given.quiet;
}

static void answer_stored(push_run *run, const push_slot *slot, int result)
{
    const char *id = jobq_message_id(slot->message);

    run->pushed += result == 0;
    run->held += result == 1;
    run->replaced += result == 2;
    if (prints_json(run)) {
        jobq__json_open(&run->json, NULL, '{');
        jobq__json_int(&run->json, "line", slot->line);
        jobq__json_string(&run->json, "id", id);
        jobq__json_bool(&run->json, "stored", result != 1);
        jobq__json_bool(&run->json, "replaced", result == 2);
        jobq__json_close(&run->json, '}');
    } else if (!run->cli->given.quiet) {
        puts(id ? id : "");
    }
}

static void answer_refused(push_run *run, int64_t line, const jobq_error *err)
{
    const char *message = jobq_error_message(err);

    run->refused++;
    if (prints_json(run)) {
        jobq__json_open(&run->json, NULL, '{');
        jobq__json_int(&run->json, "line", line);
        jobq__json_string(&run->json, "code", jobq_error_word(jobq_error_code(err)));
        jobq__json_string(&run->json, "error", message);
        jobq__json_close(&run->json, '}');
    }
    jobq__progress_end(&run->progress);
    jobq__cli_error(run->cli, "line %lld: %s", (long long)line, message);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* The messages keep their memory for the next chunk unless a big body went through them. */
static void empty_chunk(push_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->slots[i].bytes > KEEP_BYTES) {
            jobq_message_free(run->slots[i].message);
            run->slots[i].message = NULL;
        } else {
            jobq_message_reset(run->slots[i].message);
        }
    }
    run->count = run->bytes = 0;
}

static void fail_chunk(push_run *run)
{
    const push_slot *first = &run->slots[0], *last = &run->slots[run->count - 1];

    jobq__progress_end(&run->progress);
    run->code = jobq__exit_of(jobq_error_last());
    jobq__cli_error(run->cli, "lines %lld to %lld: %s", (long long)first->line,
                    (long long)last->line, jobq_error_message(jobq_error_last()));
}

static void send_chunk(push_run *run)
{
    jobq_message *messages[JOBQ_PUSH_CHUNK];
    int rc;

    if (run->count == 0)
        return;
    for (size_t i = 0; i < run->count; i++)
        messages[i] = run->slots[i].message;
    rc = jobq_queue_push_many(run->cli->queue, messages, run->count);
    if (rc < 0)
        fail_chunk(run);
    for (size_t i = 0; rc >= 0 && i < run->count; i++) {
        int result = jobq_message_result(messages[i]);

        if (result < 0)
            answer_refused(run, run->slots[i].line, jobq_message_error(messages[i]));
        else
            answer_stored(run, &run->slots[i], result);
    }
    empty_chunk(run);
    fflush(stdout);
    jobq__progress_show(&run->progress, run->pushed);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool is_blank(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", p[i]) || p[i] == '\0')
            return false;
    return true;
}

static void add_message(push_run *run, const char *p, size_t n)
{
    push_slot *slot = &run->slots[run->count];

    if (!slot->message)
        slot->message = jobq_message_new();
    if (!slot->message) {
        run->code = jobq__cli_usage(run->cli, "out of memory");
        return;
    }
    slot->line = run->line;
    slot->bytes = n;
    if (jobq__push_line_read(p, n, run->cli->conf, slot->message) < 0) {
        answer_refused(run, run->line, jobq_error_last());
        jobq_message_reset(slot->message);
        return;
    }
    run->count++;
    run->bytes += n;
    if (run->count == JOBQ_PUSH_CHUNK || run->bytes >= JOBQ_PUSH_CHUNK_BYTES)
        send_chunk(run);
}

static void end_line(push_run *run)
{
    run->line++;
    if (run->overlong || run->text.failed) {
        run->refused++;
        jobq__cli_error(run->cli, "line %lld: %s", (long long)run->line,
                        run->overlong ? "longer than 512 MiB" : "out of memory");
    } else if (!is_blank(run->text.p, run->text.n)) {
        add_message(run, run->text.p, run->text.n);
    }
    if (run->text.cap > READ_SIZE)
        jobq__buf_free(&run->text);
    else
        jobq__buf_reset(&run->text);
    run->overlong = false;
}

static void take_input(push_run *run, const char *p, size_t n)
{
    const char *end = p + n;

    while (p < end && run->code == 0) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t part = (size_t)((newline ? newline : end) - p);

        run->overlong = run->overlong || run->text.n + part > LINE_MAX_BYTES;
        if (!run->overlong)
            jobq__buf_add(&run->text, p, part);
        if (newline)
            end_line(run);
        p += part + (newline != NULL);
    }
}

/* Is there input now? Then a chunk may grow. */
static bool input_waits(void)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};

    return poll(&in, 1, 0) != 0;
}

static void read_all(push_run *run)
{
    ssize_t n = 0;

    while (run->code == 0) {
        if (run->count && !input_waits())
            send_chunk(run);
        n = read(STDIN_FILENO, run->input, sizeof(run->input));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        take_input(run, run->input, (size_t)n);
    }
    if (n < 0 && run->code == 0) {
        jobq__cli_error(run->cli, "could not read standard input: %s", strerror(errno));
        run->code = JOBQ__EXIT_FAILED;
    }
    if (run->code == 0 && (run->text.n || run->overlong))
        end_line(run); /* the last line had no newline */
    if (run->code == 0)
        send_chunk(run);
}

static int sum_up(push_run *run)
{
    jobq__cli *cli = run->cli;

    if (prints_json(run)) {
        jobq__json_close(&run->json, ']');
        jobq__json_int(&run->json, "pushed", run->pushed);
        jobq__json_int(&run->json, "replaced", run->replaced);
        jobq__json_int(&run->json, "held", run->held);
        jobq__json_int(&run->json, "refused", run->refused);
        jobq__json_close(&run->json, '}');
    }
    if (run->held && jobq__cli_speaks(cli))
        jobq__cli_note(cli,
                       "%lld not stored: a job with the same unique key is waiting or running, or "
                       "an idempotent one with its id is there",
                       (long long)run->held);
    if (run->replaced && jobq__cli_speaks(cli))
        jobq__cli_note(cli, "%lld took the place of what waits under the same unique key",
                       (long long)run->replaced);
    if (run->refused || run->code)
        jobq__cli_error(cli, "%lld pushed, %lld refused", (long long)run->pushed,
                        (long long)run->refused);
    return run->code ? run->code : run->refused ? JOBQ__EXIT_FAILED : JOBQ__EXIT_OK;
}

static int check_given(jobq__cli *cli)
{
    const char *called = cli->given.args.count ? "push -" : "push --raw without NAME";

    if (cli->given.args.count > 1)
        return jobq__cli_usage(cli, "push - takes no payload: each line has its own");
    if (cli->given.raw && cli->given.args.count)
        return jobq__cli_usage(cli, "push - takes no --raw: it is for one job");
    if (cli->given.guard || cli->given.guard_params.count)
        return jobq__cli_usage(
            cli, "%s takes no --guard: each line may have \"guard\": [\"SELECT ...\", [...]]",
            called);
    if (cli->given.contexts.count)
        return jobq__cli_usage(cli, "%s takes no --context: each line may have \"context\": {...}",
                               called);
    return jobq__cli_open(cli);
}

int jobq__cmd_push_lines(jobq__cli *cli)
{
    push_run *run;
    int code = check_given(cli);

    if (code)
        return code;
    run = jobq__arena_alloc(&cli->arena, sizeof(*run));
    if (!run)
        return jobq__cli_usage(cli, "out of memory");
    run->cli = cli;
    if (prints_json(run)) {
        jobq__json_begin(&run->json, stdout);
        jobq__json_open(&run->json, NULL, '{');
        jobq__json_open(&run->json, "results", '[');
    }
    jobq__progress_begin(&run->progress, cli, "pushed", 0);
    run->progress.on = run->progress.on && (cli->given.quiet || !cli->terminal.out);
    read_all(run);
    jobq__progress_end(&run->progress);
    code = sum_up(run);
    for (size_t i = 0; i < JOBQ_PUSH_CHUNK; i++)
        jobq_message_free(run->slots[i].message);
    jobq__buf_free(&run->text);
    return code;
}
