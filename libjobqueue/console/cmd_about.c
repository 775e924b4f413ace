/* SPDX-License-Identifier: MIT
 *
 * What the program says about itself: config, version, help. All of it is read from the tables.
 */
#include <string.h>

#include "console/console.h"
#include "util/str.h"

/* ---- config ---------------------------------------------------------------------------------- */

static const struct {
    int scope;
    const char *word;
} scopes[] = {{JOBQ_SCOPE_CONNECTION, "connection"},
              {JOBQ_SCOPE_WORKER, "worker"},
              {JOBQ_SCOPE_HANDLER, "handler"},
              {JOBQ_SCOPE_PUSH, "push"}};
enum { SCOPES = sizeof(scopes) / sizeof(scopes[0]) };

typedef struct {
    const char *name, *type, *range, *standard, *meaning;
    int scopes;
} config_row;

static bool config_at(size_t i, config_row *row)
{
    return jobq_conf_describe(i, &row->name, &row->type, &row->range, &row->standard, &row->scopes,
                              &row->meaning);
}

static void print_config_json(void)
{
    config_row row;
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_open(&j, "options", '[');
    for (size_t i = 0; config_at(i, &row); i++) {
        jobq__json_open(&j, NULL, '{');
        jobq__json_string(&j, "name", row.name);
        jobq__json_string(&j, "type", row.type);
        jobq__json_string(&j, "range", row.range);
        jobq__json_string(&j, "default", row.standard);
        jobq__json_open(&j, "scopes", '[');
        for (size_t k = 0; k < SCOPES; k++)
            if (row.scopes & scopes[k].scope)
                jobq__json_string(&j, NULL, scopes[k].word);
        jobq__json_close(&j, ']');
        jobq__json_string(&j, "meaning", row.meaning);
        jobq__json_close(&j, '}');
    }
    jobq__json_close(&j, ']');
    jobq__json_close(&j, '}');
}

static const char *scope_words(jobq__cli *cli, int set)
{
    const char *text = "";

    for (size_t k = 0; k < SCOPES; k++)
        if (set & scopes[k].scope)
            text = *text ? jobq__cli_format(cli, "%s, %s", text, scopes[k].word) : scopes[k].word;
    return text;
}

/* Two lines an option: what it may be, and what it means. */
static void print_config(jobq__cli *cli)
{
    bool color = cli->terminal.color_out;
    config_row row;

    for (size_t i = 0; config_at(i, &row); i++) {
        printf("%s%s%s (%s)\n", jobq__terminal_style(color, JOBQ__STYLE_BOLD), row.name,
               jobq__terminal_style(color, JOBQ__STYLE_OFF), scope_words(cli, row.scopes));
        printf("    %s\n", row.meaning);
        printf("    %s; default %s%s%s\n", row.type, row.standard ? row.standard : "none",
               strcmp(row.range, row.type) ? "; " : "",
               strcmp(row.range, row.type) ? row.range : "");
    }
    puts("\nconnection: in the DSN (?name=value); worker and push: as --name with dashes; handler: "
         "where the program registers it");
}

int jobq__cmd_config(jobq__cli *cli)
{
    if (cli->given.json && !cli->given.quiet)
        print_config_json();
    if (jobq__cli_speaks(cli))
        print_config(cli);
    return JOBQ__EXIT_OK;
}

/* ---- version --------------------------------------------------------------------------------- */

static void print_version_json(const jobq__cli *cli)
{
    jobq__json j;

    jobq__json_begin(&j, stdout);
    jobq__json_open(&j, NULL, '{');
    jobq__json_string(&j, "version", jobq_version());
    jobq__json_open(&j, "drivers", '[');
    for (size_t i = 0; jobq_driver_name(i); i++)
        jobq__json_string(&j, NULL, jobq_driver_name(i));
    jobq__json_close(&j, ']');
    jobq__json_string(&j, "runtime", cli->front.runtime);
    jobq__json_close(&j, '}');
}

int jobq__cmd_version(jobq__cli *cli)
{
    if (cli->given.json && !cli->given.quiet)
        print_version_json(cli);
    if (!jobq__cli_speaks(cli))
        return JOBQ__EXIT_OK;
    printf("jobqueue %s\ndrivers: ", jobq_version());
    for (size_t i = 0; jobq_driver_name(i); i++)
        printf("%s%s", i ? ", " : "", jobq_driver_name(i));
    putchar('\n');
    if (cli->front.runtime)
        printf("runtime: %s\n", cli->front.runtime);
    return JOBQ__EXIT_OK;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void print_option(const jobq__option_view *o)
{
    char left[96];

    jobq__option_spell(o, left, sizeof(left));
    printf("  %-28s %s\n", left, o->meaning);
    if (o->standard && *o->meta)
        printf("  %-28s   default %s; %s\n", "", o->standard, o->range);
    else if (o->range && *o->meta)
        printf("  %-28s   %s\n", "", o->range);
}

static void print_options(const jobq__cli *cli, const jobq__command *command, bool everywhere)
{
    jobq__option_view o;
    bool any = false;

    for (size_t i = 0; jobq__option_at(&cli->front, command, i, &o); i++) {
        if (o.everywhere != everywhere)
            continue;
        if (!any)
            puts(everywhere ? "\nOptions of every command:" : "\nOptions:");
        any = true;
        print_option(&o);
    }
}

static void print_commands(const jobq__cli *cli)
{
    const jobq__command *c;

    printf("Usage: %s COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n", cli->program);
    for (size_t i = 0; (c = jobq__command_at(i)) != NULL; i++)
        printf("  %-8s %-18s %s\n", c->name, c->arguments, c->summary);
    print_options(cli, NULL, true);
    printf("\n\"%s help COMMAND\" explains one; names with \"queue:\" in front (queue:work) are "
           "the same commands.\n",
           cli->program);
}

static void print_command(const jobq__cli *cli, const jobq__command *c)
{
    printf("Usage: %s %s [OPTION...]%s%s\n\n%s: %s.\n", cli->program, c->name,
           *c->arguments ? " " : "", c->arguments, c->name, c->summary);
    if (c->more)
        puts(c->more);
    if (c->aliases)
        printf("Also called: %s\n", c->aliases);
    print_options(cli, c, false);
    print_options(cli, c, true);
    printf("\nExit codes: %s; 1 also when the store cannot be reached, 2 for wrong usage or "
           "configuration.\n",
           c->exits);
}

int jobq__cmd_help(jobq__cli *cli)
{
    const jobq__command *c = cli->command;
    const char *word = cli->given.args.count && !cli->given.help ? cli->given.args.items[0] : NULL;

    if (cli->given.man) {
        jobq__man_print(cli);
        return JOBQ__EXIT_OK;
    }
    if (cli->given.completion)
        return jobq__completion_print(cli, cli->given.completion);
    if (!cli->given.help || (c && c->run == jobq__cmd_help))
        c = word ? jobq__command_find(word) : NULL;
    if (word && !c)
        return jobq__cli_usage(cli, "unknown command \"%s\"; \"%s help\" lists them", word,
                               cli->program);
    if (c)
        print_command(cli, c);
    else
        print_commands(cli);
    return JOBQ__EXIT_OK;
}
