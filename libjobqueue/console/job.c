/* SPDX-License-Identifier: MIT
 *
 * One job as it stands: as a JSON object (fields in doc/console.md) and as text for people. A body
 * that cannot be read never spoils the rest (rule F4).
 */
#include <string.h>

#include "console/console.h"
#include "util/str.h"

const char *jobq__job_text(jobq__cli *cli, const jobq_info *info, jobq_info_text_field which)
{
    size_t n = 0;
    const char *p = jobq_info_text(info, which, &n);

    return jobq__cli_clean(cli, p, n);
}

char *jobq__job_payload(jobq__cli *cli, const jobq_info *info, size_t *n_out,
                        const char **problem_out)
{
    char *text = NULL;
    const void *body;
    size_t n;
    int format;

    *n_out = 0;
    *problem_out = NULL;
    if (jobq_info_check(info) == 0) {
        body = jobq_info_body(info, &n, &format);
        if (jobq_payload_to_json(format, body, n, &text, n_out) == 0)
            return text;
    }
    *problem_out = jobq__cli_format(cli, "%s", jobq_error_message(jobq_error_last()));
    return NULL;
}

char *jobq__job_result(jobq__cli *cli, const jobq_info *info, size_t *n_out,
                       const char **problem_out)
{
    const char *refusal = NULL;
    char *text = NULL;
    size_t n;
    int format;
    const void *result = jobq_info_result(info, &n, &format, &refusal);

    *n_out = 0;
    *problem_out = refusal ? jobq__cli_format(cli, "%s", refusal) : NULL;
    if (result && jobq_payload_to_json(format, result, n, &text, n_out) < 0)
        *problem_out = jobq__cli_format(cli, "%s", jobq_error_message(jobq_error_last()));
    return text;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const struct {
    const char *key, *one;
    jobq_info_number_field field;
} counters[] = {{"deliveries", "delivery", JOBQ_INFO_DELIVERIES},
                {"failures", "failure", JOBQ_INFO_FAILURES},
                {"crashes", "crash", JOBQ_INFO_CRASHES},
                {"releases", "release", JOBQ_INFO_RELEASES},
                {"losses", "loss", JOBQ_INFO_LOSSES}};
enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static void put_text(jobq__json *j, const char *key, const jobq_info *info,
                     jobq_info_text_field which)
{
    size_t n = 0;
    const char *p = jobq_info_text(info, which, &n);

    jobq__json_text(j, key, p, n);
}

/* A body as JSON, or null and what is wrong with it. */
static void put_body(jobq__json *j, const char *key, char *text, size_t n, const char *problem_key,
                     const char *problem)
{
    if (text)
        jobq__json_raw(j, key, text, n);
    else
        jobq__json_null(j, key);
    jobq__json_string(j, problem_key, problem);
    jobq_text_free(text);
}

static void put_payload(jobq__cli *cli, jobq__json *j, const jobq_info *info)
{
    const char *problem;
    size_t n;
    char *text = jobq__job_payload(cli, info, &n, &problem);

    put_body(j, "payload", text, n, "payload_error", problem);
}

void jobq__job_context_json(jobq__json *j, const jobq_info *info)
{
    const char *key, *value;
    char name[8200];
    size_t key_n, value_n;

    jobq__json_open(j, "context", '{');
    for (size_t i = 0; jobq_info_context(info, i, &key, &key_n, &value, &value_n); i++) {
        memcpy(name, key, key_n < sizeof(name) ? key_n : sizeof(name) - 1);
        name[key_n < sizeof(name) ? key_n : sizeof(name) - 1] = '\0';
        jobq__json_text(j, name, value, value_n);
    }
    jobq__json_close(j, '}');
}

/* Options come as text; those that are numbers are written as numbers. */
void jobq__job_options_json(jobq__json *j, const jobq_info *info)
{
    const char *name, *value;
    double number;

    for (size_t i = 0; jobq_info_option(info, i, &name, &value); i++) {
        if (jobq__str_double(value, strlen(value), &number))
            jobq__json_real(j, name, number);
        else
            jobq__json_string(j, name, value);
    }
}

static void put_error(jobq__json *j, const jobq_info *info)
{
    const char *class_name, *message, *where, *trace;

    if (!jobq_info_error(info, &class_name, &message, &where, &trace)) {
        jobq__json_null(j, "last_error");
        return;
    }
    jobq__json_open(j, "last_error", '{');
    jobq__json_string(j, "class", class_name);
    jobq__json_string(j, "message", message);
    jobq__json_string(j, "where", where);
    jobq__json_string(j, "trace", trace);
    jobq__json_close(j, '}');
}

static void put_history(jobq__json *j, const jobq_info *info)
{
    const char *worker, *outcome, *class_name, *message;
    int64_t started, ended;

    jobq__json_open(j, "history", '[');
    for (size_t i = 0;
         jobq_info_attempt(info, i, &started, &ended, &worker, &outcome, &class_name, &message);
         i++) {
        jobq__json_open(j, NULL, '{');
        jobq__json_time(j, "started", started);
        jobq__json_time(j, "ended", ended);
        jobq__json_string(j, "worker", worker);
        jobq__json_string(j, "outcome", outcome);
        jobq__json_string(j, "class", class_name);
        jobq__json_string(j, "message", message);
        if (jobq_info_attempt_shared(info, i))
            jobq__json_bool(j, "shared", true);
        jobq__json_close(j, '}');
    }
    jobq__json_close(j, ']');
}

static const char *state_word(const jobq_info *info)
{
    return jobq_state_word((jobq_state)jobq_info_number(info, JOBQ_INFO_STATE));
}

static void put_progress(jobq__json *j, const jobq_info *info)
{
    double percent;
    const char *note;

    if (!jobq_info_progress(info, &percent, &note)) {
        jobq__json_null(j, "progress");
        return;
    }
    jobq__json_open(j, "progress", '{');
    jobq__json_real(j, "percent", percent);
    jobq__json_string(j, "note", note);
    jobq__json_close(j, '}');
}

static void put_result(jobq__cli *cli, jobq__json *j, const jobq_info *info)
{
    const char *problem;
    size_t n;
    char *text = jobq__job_result(cli, info, &n, &problem);

    put_body(j, "result", text, n, "result_error", problem);
}

/* What `cancel` has asked of it, NULL: nothing. */
static const char *cancel_word(const jobq_info *info)
{
    static const char *const words[] = {NULL, "soft", "hard"};
    const int64_t cancel = jobq_info_number(info, JOBQ_INFO_CANCEL);

    return cancel >= 0 && cancel < 3 ? words[cancel] : NULL;
}

void jobq__job_json(jobq__cli *cli, jobq__json *j, const char *key, const jobq_info *info)
{
    static const struct {
        const char *key;
        jobq_info_number_field field;
    } times[] = {{"enqueued_at", JOBQ_INFO_ENQUEUED_AT_MS},
                 {"available_at", JOBQ_INFO_AVAILABLE_AT_MS},
                 {"reserved_until", JOBQ_INFO_RESERVED_UNTIL_MS},
                 {"died_at", JOBQ_INFO_DIED_AT_MS},
                 {"kept_until", JOBQ_INFO_KEPT_UNTIL_MS}};

    jobq__json_open(j, key, '{');
    put_text(j, "id", info, JOBQ_INFO_ID);
    put_text(j, "name", info, JOBQ_INFO_NAME);
    put_text(j, "queue", info, JOBQ_INFO_QUEUE);
    jobq__json_int(j, "version", jobq_info_number(info, JOBQ_INFO_VERSION));
    jobq__json_string(j, "state", state_word(info));
    jobq__json_int(j, "priority", jobq_info_number(info, JOBQ_INFO_PRIORITY));
    jobq__json_int(j, "attempt", jobq_info_number(info, JOBQ_INFO_ATTEMPT));
    for (size_t i = 0; i < COUNTERS; i++)
        jobq__json_int(j, counters[i].key, jobq_info_number(info, counters[i].field));
    put_text(j, "unique", info, JOBQ_INFO_UNIQUE);
    put_payload(cli, j, info);
    jobq__job_context_json(j, info);
    jobq__json_open(j, "options", '{');
    jobq__job_options_json(j, info);
    jobq__json_close(j, '}');
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        jobq__json_time(j, times[i].key, jobq_info_number(info, times[i].field));
    put_text(j, "reserved_by", info, JOBQ_INFO_RESERVED_BY);
    jobq__json_bool(j, "put_aside", jobq_info_number(info, JOBQ_INFO_PUT_ASIDE) != 0);
    jobq__json_string(j, "cancel", cancel_word(info));
    put_text(j, "reason", info, JOBQ_INFO_REASON);
    put_progress(j, info);
    put_result(cli, j, info);
    put_error(j, info);
    put_history(j, info);
    jobq__json_close(j, '}');
}

/* ---- text ------------------------------------------------------------------------------------ */

static void line(const char *label, const char *text)
{
    if (*text)
        printf("%-10s %s\n", label, text);
}

static void print_state(jobq__cli *cli, const jobq_info *info)
{
    const char *reason = jobq__job_text(cli, info, JOBQ_INFO_REASON),
               *by = jobq__job_text(cli, info, JOBQ_INFO_RESERVED_BY);
    const char *text = state_word(info);

    if (*reason)
        text = jobq__cli_format(cli, "%s (%s)", text, reason);
    if (*by)
        text = jobq__cli_format(cli, "%s by %s", text, by);
    if (jobq_info_number(info, JOBQ_INFO_PUT_ASIDE))
        text = jobq__cli_format(cli, "%s, put aside: no handler for that name and version so far",
                                text);
    if (cancel_word(info))
        text = jobq__cli_format(cli, "%s, told to end (%s)", text, cancel_word(info));
    line("state", text);
}

static void print_counters(const jobq_info *info)
{
    const int64_t state = jobq_info_number(info, JOBQ_INFO_STATE);
    const bool dead = state == JOBQ_DEAD; /* there is no next one; that of a done job ended well */

    printf("%-10s %lld", dead || state == JOBQ_DONE ? "attempts" : "attempt",
           (long long)jobq_info_number(info, JOBQ_INFO_ATTEMPT) - dead);
    for (size_t i = 0; i < COUNTERS; i++) {
        const long long n = jobq_info_number(info, counters[i].field);

        printf("%s%lld %s", i ? ", " : " (", n, n == 1 ? counters[i].one : counters[i].key);
    }
    puts(")");
}

static void print_pairs(jobq__cli *cli, const jobq_info *info)
{
    const char *key, *value;
    size_t key_n, value_n;

    for (size_t i = 0; jobq_info_option(info, i, &key, &value); i++)
        line(i ? "" : "options",
             jobq__cli_format(cli, "%s = %s", key, jobq__cli_clean(cli, value, strlen(value))));
    for (size_t i = 0; jobq_info_context(info, i, &key, &key_n, &value, &value_n); i++)
        line(i ? "" : "context", jobq__cli_format(cli, "%s = %s", jobq__cli_clean(cli, key, key_n),
                                                  jobq__cli_clean(cli, value, value_n)));
}

static void print_payload(jobq__cli *cli, const jobq_info *info)
{
    const char *problem;
    size_t n;
    char *text = jobq__job_payload(cli, info, &n, &problem);

    printf("%-10s ", "payload");
    if (text)
        jobq__json_print_clean(stdout, text, n);
    else
        printf("cannot be read: %s", problem);
    putchar('\n');
    jobq_text_free(text);
}

static void print_progress(jobq__cli *cli, const jobq_info *info)
{
    double percent;
    const char *note;

    if (!jobq_info_progress(info, &percent, &note))
        return;
    note = note ? jobq__cli_clean(cli, note, strlen(note)) : "";
    line("progress", jobq__cli_format(cli, "%.3g %%%s%s", percent, *note ? ": " : "", note));
}

static void print_result(jobq__cli *cli, const jobq_info *info)
{
    const char *problem;
    size_t n;
    char *text = jobq__job_result(cli, info, &n, &problem);

    if (!text && !problem)
        return;
    printf("%-10s ", "result");
    if (text)
        jobq__json_print_clean(stdout, text, n);
    else
        printf("cannot be shown: %s", jobq__cli_clean(cli, problem, strlen(problem)));
    putchar('\n');
    jobq_text_free(text);
}

/* Line by line, indented: what a stored text holds never steers the terminal. */
static void print_block(jobq__cli *cli, const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, "\n");

        printf("           %s\n", jobq__cli_clean(cli, text, n));
        text += n + (text[n] == '\n');
    }
}

static const char *joined(jobq__cli *cli, const char *class_name, const char *message)
{
    class_name = jobq__cli_clean(cli, class_name, class_name ? strlen(class_name) : 0);
    message = jobq__cli_clean(cli, message, message ? strlen(message) : 0);
    return *class_name && *message ? jobq__cli_format(cli, "%s: %s", class_name, message)
           : *message              ? message
                                   : class_name;
}

static void print_error(jobq__cli *cli, const jobq_info *info)
{
    const char *class_name, *message, *where, *trace;
    bool color = cli->terminal.color_out, classed;
    const char *title;

    if (!jobq_info_error(info, &class_name, &message, &where, &trace))
        return;
    classed = class_name && *class_name;
    title = classed ? class_name : message ? message : "";
    printf("%-10s %s%s%s", "last error", jobq__terminal_style(color, JOBQ__STYLE_RED),
           jobq__cli_clean(cli, title, strlen(title)),
           jobq__terminal_style(color, JOBQ__STYLE_OFF));
    if (where && *where)
        printf(" at %s", jobq__cli_clean(cli, where, strlen(where)));
    putchar('\n');
    if (classed)
        print_block(cli, message);
    print_block(cli, trace);
}

static void print_history(jobq__cli *cli, const jobq_info *info)
{
    const char *worker, *outcome, *class_name, *message;
    int64_t started, ended;
    jobq__table t;

    for (size_t i = 0;
         jobq_info_attempt(info, i, &started, &ended, &worker, &outcome, &class_name, &message);
         i++) {
        if (i == 0) {
            puts("history");
            jobq__table_begin(&t, cli, "STARTED", ">TOOK", "OUTCOME", "WORKER", "ERROR",
                              (char *)NULL);
        }
        jobq__table_add(&t, jobq__cli_time(cli, started));
        jobq__table_add(&t,
                        started && ended >= started ? jobq__cli_span(cli, ended - started) : "");
        jobq__table_add(&t, jobq_info_attempt_shared(info, i)
                                ? "crashed, shared"
                                : jobq__cli_clean(cli, outcome, outcome ? strlen(outcome) : 0));
        jobq__table_add(&t, jobq__cli_clean(cli, worker, worker ? strlen(worker) : 0));
        jobq__table_add(&t, joined(cli, class_name, message));
    }
    if (jobq_info_attempt(info, 0, NULL, NULL, NULL, NULL, NULL, NULL))
        jobq__table_end(&t);
}

void jobq__job_print(jobq__cli *cli, const jobq_info *info)
{
    line("id", jobq__job_text(cli, info, JOBQ_INFO_ID));
    line("name",
         jobq__cli_format(cli, "%s (version %lld)", jobq__job_text(cli, info, JOBQ_INFO_NAME),
                          (long long)jobq_info_number(info, JOBQ_INFO_VERSION)));
    line("queue", jobq__job_text(cli, info, JOBQ_INFO_QUEUE));
    print_state(cli, info);
    line("priority",
         jobq__cli_format(cli, "%lld", (long long)jobq_info_number(info, JOBQ_INFO_PRIORITY)));
    print_counters(info);
    line("enqueued", jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_ENQUEUED_AT_MS)));
    line("available", jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_AVAILABLE_AT_MS)));
    line("until", jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_RESERVED_UNTIL_MS)));
    line("died", jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_DIED_AT_MS)));
    line("kept until", jobq__cli_time(cli, jobq_info_number(info, JOBQ_INFO_KEPT_UNTIL_MS)));
    line("unique", jobq__job_text(cli, info, JOBQ_INFO_UNIQUE));
    print_pairs(cli, info);
    print_payload(cli, info);
    print_progress(cli, info);
    print_result(cli, info);
    print_error(cli, info);
    print_history(cli, info);
}
