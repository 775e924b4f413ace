/* SPDX-License-Identifier: MIT
 *
 * Sets of options: finding the row for a name in the front end's spelling, wording what is wrong,
 * defaults, merging. Values are read in conf_parse.c; what exists stands in conf_table.c.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/conf_table.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/str.h"

enum { NAME_SIZE = JOBQ__SPELLED_SIZE };

/* ---- names ----------------------------------------------------------------------------------- */

static const char *spell(int style, const char *snake, char *out, size_t size)
{
    size_t used = 0;
    bool upper = false;

    if (style == JOBQ_STYLE_KEBAB)
        used = (size_t)snprintf(out, size, "--");
    for (; *snake && used + 1 < size; snake++) {
        char c = *snake;

        if (c == '_' && style == JOBQ_STYLE_CAMEL) {
            upper = true;
            continue;
        }
        if (c == '_' && style == JOBQ_STYLE_KEBAB)
            c = '-';
        out[used++] = (char)(upper ? c - 'a' + 'A' : c);
        upper = false;
    }
    out[used] = '\0';
    return out;
}

const char *jobq__conf_spell(const jobq_conf *conf, const char *snake, char *out, size_t size)
{
    return spell(conf->style, snake, out, size);
}

const char *jobq__conf_word(const jobq_conf *conf, const char *snake, char *out, size_t size)
{
    return spell(conf->words, snake, out, size);
}

/* Turns a name in any of the three styles into snake_case, cut to the buffer. */
static void to_snake(const char *name, char out[NAME_SIZE])
{
    size_t used = 0;

    if (strncmp(name, "--", 2) == 0)
        name += 2;
    for (; *name && used + 2 < NAME_SIZE; name++) {
        char c = *name;

        if (c >= 'A' && c <= 'Z') {
            if (used)
                out[used++] = '_';
            c = (char)(c - 'A' + 'a');
        }
        out[used++] = (char)(c == '-' ? '_' : c);
    }
    out[used] = '\0';
}

static const jobq__option *find_row(const char *snake)
{
    for (size_t i = 0; i < jobq__option_count; i++)
        if (strcmp(jobq__options[i].name, snake) == 0)
            return &jobq__options[i];
    return NULL;
}

static const jobq__option *find_any_case(const char *name)
{
    for (size_t i = 0; i < jobq__option_count; i++)
        if (strcasecmp(jobq__options[i].name, name) == 0)
            return &jobq__options[i];
    return NULL;
}

bool jobq__conf_is_option(const char *snake)
{
    return find_any_case(snake) != NULL;
}

const char *jobq__conf_next_name(void *payload, size_t i)
{
    const jobq_conf *conf = payload;

    for (size_t k = 0; k < jobq__option_count; k++)
        if ((jobq__options[k].scopes & conf->scope) && i-- == 0)
            return jobq__options[k].name;
    return NULL;
}

static const char *scope_word(int scope)
{
    static const char *const words[] = {"the connection", "the worker", "the handler", "push"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (scope & 1 << i)
            return words[i];
    return "nothing";
}

static int refuse_scope(const jobq_conf *conf, const jobq__option *o)
{
    char spelled[NAME_SIZE];

    jobq__conf_spell(conf, o->name, spelled, sizeof(spelled));
    return jobq__error_set_subject(JOBQ_ECONF, spelled, strlen(spelled),
                                   "option \"%s\" belongs to %s, not to %s", spelled,
                                   scope_word(o->scopes), scope_word(conf->scope));
}

/* The names as this front end spells them; the last one is kept. */
struct spelling {
    jobq_conf *conf;
    char last[NAME_SIZE];
};

static const char *next_spelled(void *payload, size_t i)
{
    struct spelling *s = payload;
    const char *name = jobq__conf_next_name(s->conf, i);

    return name ? jobq__conf_spell(s->conf, name, s->last, sizeof(s->last)) : NULL;
}

/* No name is near. Front ends have options of their own beside ours for workers, handlers and
 * pushes; those of a connection are all here. */
static int refuse_strange(jobq_conf *conf, const char *name)
{
    struct spelling spelling = {.conf = conf};
    char allowed[700];

    jobq__str_list(allowed, sizeof(allowed), next_spelled, &spelling);
    return conf->scope == JOBQ_SCOPE_CONNECTION
               ? jobq__error_set_subject(JOBQ_ECONF, name, strlen(name),
                                         "unknown option \"%.64s\" (allowed: %s)", name, allowed)
               : jobq__error_set_subject(JOBQ_ECONF, name, strlen(name), "unknown option \"%.64s\"",
                                         name);
}

/* What the extensions of PHP and Python take beside the table. */
static const struct {
    int scope;
    const char *name;
} theirs[] = {
    {JOBQ_SCOPE_HANDLER, "failed"}, {JOBQ_SCOPE_PUSH, "context"}, {JOBQ_SCOPE_PUSH, "guard"}};

static const char *next_theirs(void *payload, size_t i)
{
    const jobq_conf *conf = payload;

    for (size_t k = 0; k < sizeof(theirs) / sizeof(theirs[0]); k++)
        if (conf->scope == theirs[k].scope && i-- == 0)
            return theirs[k].name;
    return NULL;
}

/* In the name's own letters as well: READ_TIMOUT is made of words, not of capitals. */
static int refuse_unknown(jobq_conf *conf, const char *name, const char *snake)
{
    char spelled[NAME_SIZE];
    const jobq__option *elsewhere = find_any_case(name);
    const char *near = jobq__str_nearest(snake, jobq__conf_next_name, conf);

    if (!near)
        near = jobq__str_nearest(name, jobq__conf_next_name, conf);
    if (!near && elsewhere)
        return refuse_scope(conf, elsewhere);
    if (!near)
        near = jobq__str_nearest(name, next_theirs, conf);
    if (!near)
        return refuse_strange(conf, name);
    return jobq__error_set_subject(JOBQ_ECONF, name, strlen(name),
                                   "unknown option \"%.64s\", did you mean \"%s\"?", name,
                                   jobq__conf_spell(conf, near, spelled, sizeof(spelled)));
}

/* A push of many gives the same name for each job, twice: its kind is asked before it is set. */
static void keep_found(jobq_conf *conf, const jobq__option *o, const char *name)
{
    const size_t n = strlen(name);

    if (n >= sizeof(conf->found_name))
        return;
    memcpy(conf->found_name, name, n + 1);
    conf->found = o;
}

/* The row for a name as this front end spells it; NULL with the error set. */
static const jobq__option *look_up(jobq_conf *conf, const char *name)
{
    char snake[NAME_SIZE], spelled[NAME_SIZE];
    const jobq__option *o;
    const char *given = name;

    if (conf->found && strcmp(name, conf->found_name) == 0)
        return conf->found;
    if (conf->style == JOBQ_STYLE_KEBAB && strncmp(given, "--", 2) == 0)
        given += 2;
    to_snake(name, snake);
    o = find_row(snake);
    if (o) {
        const char *right = jobq__conf_spell(conf, o->name, spelled, sizeof(spelled));

        if (strcmp(given, right + (conf->style == JOBQ_STYLE_KEBAB ? 2 : 0)) != 0)
            o = NULL;
    }
    if (!o)
        refuse_unknown(conf, name, snake);
    else if (!(o->scopes & conf->scope))
        refuse_scope(conf, o);
    else {
        keep_found(conf, o, name);
        return o;
    }
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* "must be WHAT RANGE" for each type; texts, words and lists have all of it in the range. */
static const char *const lead[JOBQ__TYPES] = {
    [JOBQ__TYPE_BOOL] = "",
    [JOBQ__TYPE_INT] = "a whole number from ",
    [JOBQ__TYPE_BYTES] = "a whole number of bytes from ",
    [JOBQ__TYPE_MEGABYTES] = "a whole number of megabytes from ",
    [JOBQ__TYPE_SECONDS] = "seconds from ",
    [JOBQ__TYPE_NUMBER] = "a number from ",
    [JOBQ__TYPE_TEXT] = "",
    [JOBQ__TYPE_WORD] = "",
    [JOBQ__TYPE_ENUM] = "",
    [JOBQ__TYPE_BACKOFF] = "",
    [JOBQ__TYPE_NAMES] = "",
    [JOBQ__TYPE_MOMENT] = "",
    [JOBQ__TYPE_TIME] = "",
};

static int refuse_value(const jobq_conf *conf, const jobq__option *o, const char *p, size_t n)
{
    char spelled[NAME_SIZE], shown[80];
    bool cut = n >= sizeof(shown);

    jobq__conf_spell(conf, o->name, spelled, sizeof(spelled));
    jobq__str_one_line(shown, sizeof(shown), p, n);
    return jobq__error_set_subject(JOBQ_EINVAL, spelled, strlen(spelled),
                                   "option \"%s\" must be %s%s, got \"%s%s\"", spelled,
                                   o->words && o->type == JOBQ__TYPE_INT ? "" : lead[o->type],
                                   o->range, shown, cut ? "..." : "");
}

static void note_given(jobq_conf *conf, const jobq__option *o)
{
    if (!conf->given[o->offset])
        conf->given_rows[conf->given_count++] = (uint8_t)(o - jobq__options);
    conf->given[o->offset] = 1;
}

static int conclude(jobq_conf *conf, const jobq__option *o, int rc, const char *p, size_t n)
{
    if (rc == 0)
        note_given(conf, o);
    else if (rc == JOBQ_EINVAL)
        refuse_value(conf, o, p, n);
    return rc;
}

static int check_handle(const jobq_conf *conf, const char *name)
{
    jobq__error_clear();
    if (!conf || !name)
        return jobq__error_set(JOBQ_EINVAL, "a set of options and a name are needed, got NULL");
    return 0;
}

int jobq_conf_check(jobq_conf *conf, const char *name)
{
    if (check_handle(conf, name) < 0)
        return JOBQ_EINVAL;
    return look_up(conf, name) ? 0 : JOBQ_ECONF;
}

const char *jobq_conf_expects(jobq_conf *conf, const char *name, int kind, const char *text)
{
    const jobq__option *o = check_handle(conf, name) == 0 ? look_up(conf, name) : NULL;

    jobq__error_clear();
    return o ? jobq__option_expects(o, kind, text) : NULL;
}

int jobq_conf_set(jobq_conf *conf, const char *name, const char *value, size_t n)
{
    const jobq__option *o;

    if (check_handle(conf, name) < 0)
        return JOBQ_EINVAL;
    o = look_up(conf, name);
    if (!o)
        return JOBQ_ECONF;
    if (!value)
        return refuse_value(conf, o, "", 0);
    return conclude(conf, o, jobq__option_parse(o, &conf->s, &conf->texts, value, n), value, n);
}

static int set_number(jobq_conf *conf, const char *name, double value, const char *shown)
{
    const jobq__option *o;

    if (check_handle(conf, name) < 0)
        return JOBQ_EINVAL;
    o = look_up(conf, name);
    if (!o)
        return JOBQ_ECONF;
    if (o->type == JOBQ__TYPE_BOOL)
        return conclude(conf, o,
                        jobq__option_parse(o, &conf->s, &conf->texts, shown, strlen(shown)), shown,
                        strlen(shown));
    return conclude(conf, o, jobq__option_number(o, &conf->s, value), shown, strlen(shown));
}

int jobq_conf_set_int(jobq_conf *conf, const char *name, int64_t value)
{
    char shown[32];

    snprintf(shown, sizeof(shown), "%lld", (long long)value);
    return set_number(conf, name, (double)value, shown);
}

int jobq_conf_set_double(jobq_conf *conf, const char *name, double value)
{
    char shown[40];

    jobq__str_put_double(shown, 15, value);
    return set_number(conf, name, value, shown);
}

int jobq_conf_set_bool(jobq_conf *conf, const char *name, bool value)
{
    const char *shown = value ? "true" : "false";
    const jobq__option *o;

    if (check_handle(conf, name) < 0)
        return JOBQ_EINVAL;
    o = look_up(conf, name);
    if (!o)
        return JOBQ_ECONF;
    if (o->type != JOBQ__TYPE_BOOL)
        return refuse_value(conf, o, shown, strlen(shown));
    return conclude(conf, o, jobq__option_parse(o, &conf->s, &conf->texts, shown, strlen(shown)),
                    shown, strlen(shown));
}

int jobq_conf_add(jobq_conf *conf, const char *name, const char *value, size_t n)
{
    const jobq__option *o;
    jobq__settings before;
    int rc;

    if (check_handle(conf, name) < 0)
        return JOBQ_EINVAL;
    o = look_up(conf, name);
    if (!o)
        return JOBQ_ECONF;
    if (o->type != JOBQ__TYPE_BACKOFF && o->type != JOBQ__TYPE_NAMES)
        return refuse_value(conf, o, "a list", 6);
    before = conf->s;
    if (!conf->given[o->offset] && o->type == JOBQ__TYPE_BACKOFF)
        conf->s.backoff = (jobq__backoff){0}; /* the default list gives way to the caller's */
    rc = value ? jobq__option_append(o, &conf->s, &conf->texts, value, n) : JOBQ_EINVAL;
    if (rc < 0)
        conf->s = before;
    return conclude(conf, o, rc, value ? value : "", value ? n : 0);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static bool owns_text(const jobq__option *o)
{
    return o->type == JOBQ__TYPE_TEXT || o->type == JOBQ__TYPE_WORD || o->type == JOBQ__TYPE_NAMES;
}

/* Read from the table once. */
static jobq__settings defaults;
static pthread_once_t defaults_read = PTHREAD_ONCE_INIT;

static void read_defaults(void)
{
    for (size_t i = 0; i < jobq__option_count; i++) {
        const jobq__option *o = &jobq__options[i];

        if (o->fallback && !owns_text(o))
            jobq__option_parse(o, &defaults, NULL, o->fallback, strlen(o->fallback));
    }
}

void jobq__settings_default(jobq__settings *s)
{
    pthread_once(&defaults_read, read_defaults);
    *s = defaults;
}

jobq_conf *jobq_conf_new(int scope, int style)
{
    jobq_conf *conf;

    jobq__error_clear();
    conf = jobq__zalloc(sizeof(*conf));
    if (!conf) {
        jobq__error_nomem();
        return NULL;
    }
    conf->scope = scope;
    conf->style = conf->words = style;
    jobq__settings_default(&conf->s);
    return conf;
}

void jobq_conf_free(jobq_conf *conf)
{
    if (!conf)
        return;
    jobq__arena_free(&conf->texts);
    jobq__free(conf);
}

static void take_back(jobq_conf *conf, const jobq__option *o)
{
    conf->given[o->offset] = 0;
    jobq__option_restore(o, &conf->s, &defaults);
}

/* Done for every push: what was not given has its default already. */
void jobq_conf_reset(jobq_conf *conf)
{
    if (!conf)
        return;
    conf->words = conf->style;
    for (size_t i = 0; i < conf->given_count; i++)
        take_back(conf, &jobq__options[conf->given_rows[i]]);
    conf->given_count = 0;
    jobq__arena_reset(&conf->texts);
}

int jobq_conf_merge(jobq_conf *conf, const jobq_conf *over)
{
    jobq__error_clear();
    if (!conf || !over || conf->scope != over->scope)
        return jobq__error_set(JOBQ_EINVAL,
                               "options of %s can only go over others of the same kind",
                               over ? scope_word(over->scope) : "nothing");
    conf->words = over->words;
    for (size_t i = 0; i < over->given_count; i++) {
        const jobq__option *o = &jobq__options[over->given_rows[i]];

        if (jobq__option_copy(o, &conf->s, &conf->texts, &over->s) < 0)
            return jobq__error_nomem();
        note_given(conf, o);
    }
    return 0;
}

jobq_conf *jobq__conf_copy(const jobq_conf *conf)
{
    jobq_conf *copy = jobq_conf_new(conf->scope, conf->style);

    if (copy && jobq_conf_merge(copy, conf) < 0) {
        jobq_conf_free(copy);
        return NULL;
    }
    return copy;
}

bool jobq__conf_given_at(const jobq_conf *conf, size_t offset)
{
    return conf->given[offset];
}
