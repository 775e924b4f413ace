/* SPDX-License-Identifier: MIT
 *
 * The options of the command line. Two tables feed one view: the console's own rows (below) and,
 * for commands with a scope, the rows of the options table in core/. Parser, "did you mean" and
 * help all read the view.
 */
#include <stdlib.h>
#include <string.h>

#include "console/console.h"
#include "util/error.h"
#include "util/str.h"

typedef int (*jobq__setter)(jobq__cli *cli, const struct jobq__cli_option *row, const char *value);

struct jobq__cli_option {
    const char *name, *meta, *meaning; /* meta NULL: a flag */
    unsigned on;                       /* JOBQ__ON_* */
    size_t offset;                     /* in jobq__given */
    jobq__setter set;
};

/* ---- setters --------------------------------------------------------------------------------- */

static void *field(jobq__cli *cli, const struct jobq__cli_option *row)
{
    return (char *)&cli->given + row->offset;
}

static int set_flag(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    (void)value;
    *(bool *)field(cli, row) = true;
    return 0;
}

static int set_text(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    if (*value == '\0')
        return jobq__cli_usage(cli, "option --%s may not be empty",
                               *row->name ? row->name : cli->front.source_option);
    *(const char **)field(cli, row) = value;
    return 0;
}

static int set_limit(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    int64_t n;

    if (!jobq__str_int(value, strlen(value), &n) || n < 1 || n > 1000)
        return jobq__cli_usage(cli,
                               "option \"--%s\" must be a whole number from 1 to 1000, got \"%s\"",
                               row->name, value);
    *(int64_t *)field(cli, row) = n;
    return 0;
}

/* What is above zero never becomes zero, which would mean "off" or "for ever". */
static int set_time(jobq__cli *cli, const struct jobq__cli_option *row, const char *value,
                    const char *unit, double unit_ms)
{
    const double ten_years_ms = 10.0 * 366 * 86400 * 1000;
    double n;
    int64_t ms;

    if (!jobq__str_double(value, strlen(value), &n) || n < 0 || n * unit_ms > ten_years_ms)
        return jobq__cli_usage(
            cli, "option \"--%s\" must be a number of %s from 0 to ten years, got \"%s\"",
            row->name, unit, value);
    ms = (int64_t)(n * unit_ms + 0.5);
    *(int64_t *)field(cli, row) = ms == 0 && n > 0 ? 1 : ms;
    return 0;
}

static int set_span(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    return set_time(cli, row, value, "seconds", 1000);
}

static int set_hours(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    return set_time(cli, row, value, "hours", 3600000);
}

/* --watch alone is every two seconds. */
static int set_watch(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    double seconds = 2;

    if (value &&
        (!jobq__str_double(value, strlen(value), &seconds) || seconds < 0.1 || seconds > 86400))
        return jobq__cli_usage(
            cli, "option \"--%s\" must be a number of seconds from 0.1 to 86400, got \"%s\"",
            row->name, value);
    *(int64_t *)field(cli, row) = (int64_t)(seconds * 1000 + 0.5);
    return 0;
}

static int set_minutes(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    int64_t n;

    if (!jobq__str_int(value, strlen(value), &n) || n < 1 || n > 1440)
        return jobq__cli_usage(cli,
                               "option \"--%s\" must be a whole number from 1 to 1440, got \"%s\"",
                               row->name, value);
    *(int64_t *)field(cli, row) = n;
    return 0;
}

static int set_state(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    if (jobq_state_parse(value, field(cli, row)) < 0)
        return jobq__cli_usage(cli, "option --%s: %s", row->name,
                               jobq_error_message(jobq_error_last()));
    return 0;
}

bool jobq__words_add(jobq__cli *cli, jobq__words_given *words, const char *word)
{
    const size_t n = words->count;
    const char **more;

    if ((n & (n - 1)) == 0) { /* full: room for twice as many */
        more = jobq__arena_alloc(&cli->arena, (n ? 2 * n : 1) * sizeof(*more));
        if (!more)
            return false;
        if (n)
            memcpy(more, words->items, n * sizeof(*more));
        words->items = more;
    }
    words->items[words->count++] = word;
    return true;
}

static int add_word(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    return jobq__words_add(cli, field(cli, row), value) ? 0 : jobq__cli_usage(cli, "out of memory");
}

static int add_pair(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    const char *sign = strchr(value, '=');

    if (!sign || sign == value)
        return jobq__cli_usage(cli, "option \"--%s\" must be of the form KEY=VALUE, got \"%s\"",
                               row->name, value);
    return add_word(cli, row, value);
}

/* "high,default": each name is checked by the library. */
static int add_list(jobq__cli *cli, const struct jobq__cli_option *row, const char *value)
{
    int code = 0;

    for (const char *p = value; code == 0;) {
        size_t n = strcspn(p, ",");
        char *word = jobq__arena_copy(&cli->arena, p, n);

        if (n == 0)
            return jobq__cli_usage(cli, "option --%s: \"%s\" has an empty name in it", row->name,
                                   value);
        code = word ? add_word(cli, row, word) : jobq__cli_usage(cli, "out of memory");
        p += n;
        if (*p++ == '\0')
            break;
    }
    return code;
}

/* ---- the console's rows ---------------------------------------------------------------------- */

#define AT(member) offsetof(jobq__given, member)
static const struct jobq__cli_option rows[] = {
    {"state", "STATE", "ready (default), delayed, reserved, done or dead", JOBQ__ON_STATE,
     AT(state), set_state},
    {"limit", "N", "so many jobs at most, 1 to 1000 (default 50)", JOBQ__ON_PAGE, AT(limit),
     set_limit},
    {"after", "CURSOR", "the next page: what the last one named", JOBQ__ON_PAGE, AT(after),
     set_text},
    {"queue", "QUEUE", "only jobs of this queue", JOBQ__ON_FILTER, AT(queue), set_text},
    {"name", "NAME", "only jobs of this name", JOBQ__ON_FILTER, AT(name), set_text},
    {"reason", "REASON", "only jobs that died for this reason, as \"failed\" prints it",
     JOBQ__ON_FILTER, AT(reason), set_text},
    {"older-than", "SECONDS", "only jobs that died at least so long ago", JOBQ__ON_FILTER,
     AT(older_than_ms), set_span},
    {"hours", "N", "the same in hours", JOBQ__ON_HOURS, AT(older_than_ms), set_hours},
    {"all", NULL, "every dead job", JOBQ__ON_MEND, AT(all), set_flag},
    {"dry-run", NULL, "change nothing, say what would be done", JOBQ__ON_DRY, AT(dry_run),
     set_flag},
    {"all", NULL, "all queues, whatever their names", JOBQ__ON_QUEUES, AT(all), set_flag},
    {"ttl", "SECONDS", "end the pause by itself after so long (default 0: when it is resumed)",
     JOBQ__ON_TTL, AT(ttl_ms), set_span},
    {"hard", NULL, "end running ones by exception and kill, as at their time limit", JOBQ__ON_HARD,
     AT(hard), set_flag},
    {"force", NULL, "do not ask", JOBQ__ON_FORCE, AT(force), set_flag},
    {"context", "KEY=VALUE", "a text that travels with the job; may be repeated", JOBQ__ON_CONTEXT,
     AT(contexts), add_pair},
    {"raw", NULL,
     "the payload's bytes as they are: show writes them, push NAME reads them from standard input; "
     "with show --json a line that push --raw without NAME takes",
     JOBQ__ON_RAW, AT(raw), set_flag},
    {"guard", "SQL",
     "store the job only if the store finds that true in the same step: a statement, on Redis a "
     "script",
     JOBQ__ON_GUARD, AT(guard), set_text},
    {"guard-param", "VALUE",
     "a value of the guard: a number, true, false, null or a text (in double quotes where it could "
     "be one of these); may be repeated",
     JOBQ__ON_GUARD, AT(guard_params), add_word},
    {"minutes", "N", "what happened in the last N minutes, 1 to 1440, too", JOBQ__ON_MINUTES,
     AT(minutes), set_minutes},
    {"timeout", "SECONDS", "longest wait; 0 looks once (default: as long as it takes)",
     JOBQ__ON_WAIT, AT(wait_ms), set_span},
    {"audit", NULL,
     "also look whether each job of the store stands in exactly one state, while traffic flows",
     JOBQ__ON_AUDIT, AT(audit), set_flag},
    {"watch", "[=SECONDS]",
     "again and again until INT or TERM, every 2 seconds unless it is said (top: every second)",
     JOBQ__ON_WATCH, AT(watch_ms), set_watch},
    {"max-age", "SECONDS", "longest time that the oldest ready job may have been ready",
     JOBQ__ON_AGE, AT(max_age_ms), set_span},
    {"queue", "QUEUE,...", "the queues to serve, in this order (default: the connection's)",
     JOBQ__ON_WORK, AT(queues), add_list},
    {"reload", NULL,
     "for development: start anew, once the running jobs have ended, when a loaded source file "
     "changes",
     JOBQ__ON_WORK, AT(reload), set_flag},
    {"daemon", NULL, "accepted for old habits; changes nothing", JOBQ__ON_WORK, AT(daemon),
     set_flag},
    {"dsn", "DSN",
     "the store; a bare word names $JOBQUEUE_DSN_WORD (default: $JOBQUEUE_DSN, else "
     "sqlite:jobqueue.db)",
     JOBQ__ON_ALL, AT(dsn), set_text},
    {"json", NULL, "print one JSON document", JOBQ__ON_ALL, AT(json), set_flag},
    {"quiet", NULL, "print errors only", JOBQ__ON_ALL, AT(quiet), set_flag},
    {"no-color", NULL, "no colours; so does the environment variable NO_COLOR", JOBQ__ON_ALL,
     AT(no_color), set_flag},
    {"help", NULL, "explain the command", JOBQ__ON_ALL, AT(help), set_flag},
};
static const struct jobq__cli_option source_row = {"", "", "", JOBQ__ON_WORK, AT(source), set_text};
static const struct jobq__cli_option hidden_rows[] = {
    {"man", NULL, "", JOBQ__ON_TEXTS, AT(man), set_flag},
    {"completion", "SHELL", "", JOBQ__ON_TEXTS, AT(completion), set_text}};
#undef AT

/* ---- the view -------------------------------------------------------------------------------- */

static void copy_text(char *out, size_t size, const char *text, char from, char to)
{
    size_t n = 0;

    for (; text[n] && n + 1 < size; n++)
        out[n] = text[n] == from ? to : text[n];
    out[n] = '\0';
}

static void view_row(const struct jobq__cli_option *row, jobq__option_view *out)
{
    memset(out, 0, sizeof(*out));
    copy_text(out->name, sizeof(out->name), row->name, '_', '-');
    copy_text(out->meta, sizeof(out->meta), row->meta ? row->meta : "", 0, 0);
    out->meaning = row->meaning;
    out->row = row;
    out->everywhere = row->on == JOBQ__ON_ALL;
}

/* The front end's own way to name what runs the jobs. Its meaning may begin with "META: ". */
static void view_source(const jobq_console *front, jobq__option_view *out)
{
    const char *meaning = front->source_meaning ? front->source_meaning : "";
    size_t n = strspn(meaning, "ABCDEFGHIJKLMNOPQRSTUVWXYZ:");

    view_row(&source_row, out);
    copy_text(out->name, sizeof(out->name), front->source_option, '_', '-');
    strcpy(out->meta, "VALUE");
    if (n > 1 && n < sizeof(out->meta) && meaning[n - 1] == ':' && meaning[n] == ' ') {
        memcpy(out->meta, meaning, n - 1);
        out->meta[n - 1] = '\0';
        meaning += n + 1;
    }
    out->meaning = meaning;
}

/* What stands behind "=" in help texts, by the option table's type word. */
static void type_meta(const char *type, char *out, size_t size)
{
    static const struct {
        const char *type, *meta;
    } metas[] = {
        {"true or false", ""}, {"whole number", "N"}, {"megabytes", "MB"}, {"names", "NAME,..."}};

    for (size_t i = 0; i < sizeof(metas) / sizeof(metas[0]); i++)
        if (strcmp(type, metas[i].type) == 0) {
            copy_text(out, size, metas[i].meta, 0, 0);
            return;
        }
    copy_text(out, size, type, ' ', '-');
    for (; *out; out++)
        if (*out >= 'a' && *out <= 'z')
            *out = (char)(*out - 'a' + 'A');
}

bool jobq__option_in_scope(int scope, size_t i, jobq__option_view *out)
{
    const char *name, *type;
    int scopes;

    memset(out, 0, sizeof(*out));
    for (size_t k = 0;
         jobq_conf_describe(k, &name, &type, &out->range, &out->standard, &scopes, &out->meaning);
         k++) {
        if (!(scopes & scope) || i-- > 0)
            continue;
        copy_text(out->name, sizeof(out->name), name, '_', '-');
        type_meta(type, out->meta, sizeof(out->meta));
        out->conf_name = name;
        return true;
    }
    return false;
}

static bool takes(const jobq_console *front, const jobq__command *command,
                  const struct jobq__cli_option *row)
{
    unsigned groups = command ? command->options : 0;

    if (row == &source_row && !front->source_option)
        return false;
    return row->on == JOBQ__ON_ALL || (row->on & groups);
}

bool jobq__option_at(const jobq_console *front, const jobq__command *command, size_t i,
                     jobq__option_view *out)
{
    const size_t count = sizeof(rows) / sizeof(rows[0]);

    if (takes(front, command, &source_row) && i-- == 0) {
        view_source(front, out);
        return true;
    }
    for (size_t k = 0; k < count; k++)
        if (takes(front, command, &rows[k]) && i-- == 0) {
            view_row(&rows[k], out);
            return true;
        }
    return command && command->scope && jobq__option_in_scope(command->scope, i, out);
}

bool jobq__option_find(const jobq__cli *cli, const jobq__command *command, const char *name,
                       jobq__option_view *out)
{
    for (size_t i = 0; jobq__option_at(&cli->front, command, i, out); i++)
        if (strcmp(out->name, name) == 0)
            return true;
    for (size_t i = 0; i < 2 && command && (command->options & JOBQ__ON_TEXTS); i++)
        if (strcmp(name, hidden_rows[i].name) == 0) {
            view_row(&hidden_rows[i], out);
            out->hidden = true;
            return true;
        }
    return false;
}

bool jobq__option_needs_value(const jobq__option_view *view)
{
    return *view->meta && *view->meta != '[';
}

void jobq__option_spell(const jobq__option_view *view, char *out, size_t size)
{
    snprintf(out, size, "--%s%s%s", view->name, jobq__option_needs_value(view) ? "=" : "",
             view->meta);
}

int jobq__option_apply(jobq__cli *cli, const jobq__option_view *view, const char *value)
{
    return view->row->set(cli, view->row, value);
}
