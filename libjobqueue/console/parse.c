/* SPDX-License-Identifier: MIT
 *
 * Arguments become a command, its options and words; what does not fit is refused with the place or
 * name that was probably meant.
 */
#include <string.h>

#include "console/console.h"
#include "util/str.h"

/* Old names of options. */
static const struct {
    const char *command, *from, *to;
} renamed[] = {{"work", "delay", "backoff"}};

/* ---- what to say about an option that does not stand here ------------------------------------ */

static const char *next_word(void *payload, size_t i)
{
    const jobq__words_given *words = payload;

    return i < words->count ? words->items[i] : NULL;
}

static const char *nearest_option(jobq__cli *cli, const char *name)
{
    jobq__words_given known = {0};
    jobq__option_view view;

    for (size_t i = 0; jobq__option_at(&cli->front, cli->command, i, &view); i++)
        if (!jobq__words_add(cli, &known, jobq__cli_format(cli, "%s", view.name)))
            return NULL;
    return jobq__str_nearest(name, next_word, &known);
}

/* "push, work", "the DSN": every place where the option may stand; "" when there is none. */
static const char *places(const jobq__cli *cli, const char *name, jobq__buf *out)
{
    jobq__option_view view;
    const jobq__command *command;
    size_t i;

    for (i = 0; (command = jobq__command_at(i)) != NULL; i++)
        if (jobq__option_find(cli, command, name, &view) && !view.hidden)
            jobq__buf_addf(out, "%s\"%s\"", out->n ? ", " : "", command->name);
    for (i = 0; jobq__option_in_scope(JOBQ_SCOPE_CONNECTION, i, &view); i++)
        if (strcmp(view.name, name) == 0)
            jobq__buf_addf(out, "%sthe DSN (--dsn=\"...?%s=...\")", out->n ? ", " : "",
                           view.conf_name);
    for (i = 0; out->n == 0 && jobq__option_in_scope(JOBQ_SCOPE_HANDLER, i, &view); i++)
        if (strcmp(view.name, name) == 0)
            jobq__buf_adds(out, "the program, where it registers a handler");
    return jobq__buf_text(out);
}

/* What `work` has in another front end. */
static int refuse_source(jobq__cli *cli, const char *name)
{
    static const struct {
        const char *name, *of;
    } sources[] = {{"exec", "the program jobqueue"},
                   {"bootstrap", "PHP's JobQueue\\Console::run($argv) without a worker"},
                   {"app", "python -m jobqueue"}};

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strcmp(name, sources[i].name) == 0)
            return jobq__cli_usage(cli, "%s has no option --%s here: it belongs to %s",
                                   cli->command ? cli->command->name : "work", name, sources[i].of);
    return 0;
}

static int refuse_option(jobq__cli *cli, const char *name)
{
    jobq__buf where = {0};
    const char *text = jobq__cli_format(cli, "%s", places(cli, name, &where));
    const char *nearest = nearest_option(cli, name);

    jobq__buf_free(&where);
    if (*text && cli->command)
        return jobq__cli_usage(cli, "\"%s\" has no option --%s: it belongs to %s",
                               cli->command->name, name, text);
    if (*text)
        return jobq__cli_usage(cli, "option --%s stands behind its command: it belongs to %s", name,
                               text);
    if (refuse_source(cli, name))
        return JOBQ__EXIT_USAGE;
    if (nearest)
        return jobq__cli_usage(cli, "unknown option --%s, did you mean --%s?", name, nearest);
    if (cli->command)
        return jobq__cli_usage(cli, "unknown option --%s; \"%s help %s\" lists them", name,
                               cli->program, cli->command->name);
    return jobq__cli_usage(cli, "unknown option --%s; see \"%s help\"", name, cli->program);
}

/* ---- parsing --------------------------------------------------------------------------------- */

static const char *current_name(const jobq__cli *cli, const char *name)
{
    for (size_t i = 0; cli->command && i < sizeof(renamed) / sizeof(renamed[0]); i++)
        if (strcmp(cli->command->name, renamed[i].command) == 0 &&
            strcmp(name, renamed[i].from) == 0)
            return renamed[i].to;
    return name;
}

static int set_conf(jobq__cli *cli, const jobq__option_view *view, const char *value)
{
    if (jobq_conf_set(cli->conf, view->name, value, strlen(value)) < 0) {
        jobq__cli_fail(cli);
        return JOBQ__EXIT_USAGE;
    }
    return 0;
}

/* `next` is the argument behind it; *took_next_out says that it was the value. */
static int take_option(jobq__cli *cli, const char *text, const char *next, bool *took_next_out)
{
    const char *sign = strchr(text, '='), *value;
    char name[sizeof(((jobq__option_view *)0)->name)];
    jobq__option_view view;
    size_t n = sign ? (size_t)(sign - text) : strlen(text);

    *took_next_out = false;
    if (n >= sizeof(name))
        return jobq__cli_usage(cli, "unknown option --%.60s...", text);
    memcpy(name, text, n);
    name[n] = '\0';
    if (!jobq__option_find(cli, cli->command, current_name(cli, name), &view))
        return refuse_option(cli, name);
    value = sign ? sign + 1 : NULL;
    if (!value && jobq__option_needs_value(&view)) {
        if (!next || (strncmp(next, "--", 2) == 0))
            return jobq__cli_usage(cli, "option --%s needs a value: --%s=%s", name, name,
                                   view.meta);
        value = next;
        *took_next_out = true;
    }
    if (view.conf_name)
        return set_conf(cli, &view, value ? value : "true"); /* a bare flag; --flag=false is fine */
    if (value && !*view.meta)
        return jobq__cli_usage(cli, "option --%s takes no value", name);
    return jobq__option_apply(cli, &view, value);
}

/* "listen" is "work --reload". */
static bool is_listen(const char *word)
{
    return strcmp(word, "listen") == 0 || strcmp(word, "queue:listen") == 0;
}

static int take_command(jobq__cli *cli, const char *word)
{
    const char *nearest;

    cli->command = jobq__command_find(word);
    cli->given.reload = cli->command && is_listen(word);
    if (!cli->command) {
        nearest = jobq__command_nearest(word);
        if (nearest)
            return jobq__cli_usage(cli, "unknown command \"%s\", did you mean \"%s\"?", word,
                                   nearest);
        return jobq__cli_usage(cli, "unknown command \"%s\"; \"%s help\" lists them", word,
                               cli->program);
    }
    if (cli->command->scope && !(cli->conf = jobq_conf_new(cli->command->scope, JOBQ_STYLE_KEBAB)))
        return jobq__cli_usage(cli, "out of memory");
    return 0;
}

static int take_word(jobq__cli *cli, const char *word)
{
    if (!cli->command)
        return take_command(cli, word);
    return jobq__words_add(cli, &cli->given.args, word) ? 0 : jobq__cli_usage(cli, "out of memory");
}

/* "-" and negative numbers are words. */
static bool looks_like_option(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && !(text[1] >= '0' && text[1] <= '9');
}

static int take_dashed(jobq__cli *cli, const char *text, const char *next, bool *took_next_out)
{
    *took_next_out = false;
    if (strcmp(text, "--version") == 0 && !cli->command)
        return take_command(cli, "version");
    if (text[1] == '-')
        return take_option(cli, text + 2, next, took_next_out);
    if (strcmp(text, "-h") == 0)
        return take_option(cli, "help", next, took_next_out);
    return jobq__cli_usage(cli, "unknown option %s: options are spelled out (--name=VALUE)", text);
}

int jobq__options_parse(jobq__cli *cli, int argc, char *const *argv)
{
    bool open = true, took_next;
    int code = 0;

    for (int i = 1; i < argc && code == 0; i++) {
        if (!open || !looks_like_option(argv[i])) {
            code = take_word(cli, argv[i]);
        } else if (strcmp(argv[i], "--") == 0) {
            open = false;
        } else {
            code = take_dashed(cli, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &took_next);
            i += took_next;
        }
    }
    return code;
}
