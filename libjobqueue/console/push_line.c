/* SPDX-License-Identifier: MIT
 *
 * The outer object of a line is walked here without judging the values; each value's text then goes
 * to whoever knows it: the payload to the JSON reader (whole, so that its depth counts from
 * itself), options to the options table.
 */
#include "console/push_line.h"

#include <string.h>

#include "console/guard.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/str.h"

typedef struct {
    const char *p, *end;
} cursor;

typedef struct {
    jobq_message *m;
    jobq_reader *reader;
    bool has_name, has_payload, has_context, has_format, has_guard;
    char *raw; /* body as it is, NULL: none */
    size_t raw_n;
    int format;
} line;

static int malformed(const char *what)
{
    return jobq__error_set(JOBQ_EPAYLOAD, "not a JSON object of a job: %s", what);
}

/* ---- walking --------------------------------------------------------------------------------- */

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\r' || *c->p == '\n'))
        c->p++;
}

static bool take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

/* At the opening quote; false: no closing one. */
static bool skip_string(cursor *c)
{
    for (c->p++; c->p < c->end; c->p++) {
        if (*c->p == '\\')
            c->p++;
        else if (*c->p == '"') {
            c->p++;
            return true;
        }
    }
    return false;
}

static bool skip_scalar(cursor *c)
{
    const char *from = c->p;

    while (c->p < c->end && !strchr(",]} \t\r\n", *c->p))
        c->p++;
    return c->p > from;
}

/* Over one value; brackets are only counted, whoever reads the value checks them. */
static bool skip_value(cursor *c, jobq_token *text_out)
{
    size_t depth = 0;

    skip_space(c);
    text_out->as.text.p = c->p;
    do {
        if (c->p >= c->end)
            return false;
        if (*c->p == '"') {
            if (!skip_string(c))
                return false;
        } else if (*c->p == '{' || *c->p == '[') {
            depth++;
            c->p++;
        } else if (depth && (*c->p == '}' || *c->p == ']')) {
            depth--;
            c->p++;
        } else if (depth && strchr(",: \t\r\n", *c->p)) {
            c->p++;
        } else if (!(depth ? c->p++ != NULL : skip_scalar(c))) {
            return false;
        }
    } while (depth);
    text_out->as.text.n = (size_t)(c->p - text_out->as.text.p);
    return true;
}

static bool is_word(const jobq_token *text, const char *word)
{
    return text->as.text.n == strlen(word) && memcmp(text->as.text.p, word, text->as.text.n) == 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The text as a JSON string; borrowed from the reader. */
static int read_string(jobq_reader *r, const jobq_token *text, jobq_token *out)
{
    jobq_token more;
    int rc;

    jobq_reader_open(r, JOBQ_FORMAT_JSON, text->as.text.p, text->as.text.n);
    rc = jobq_reader_next(r, out);
    if (rc < 0)
        return rc;
    if (out->kind != JOBQ_STR)
        return malformed("a string is expected");
    rc = jobq_reader_next(r, &more);
    return rc < 0 ? rc : 0;
}

static int read_name(line *l, const jobq_token *text)
{
    jobq_token name;
    int rc = read_string(l->reader, text, &name);

    if (l->has_name)
        return malformed("\"name\" twice");
    l->has_name = true;
    return rc < 0 ? jobq__error_set(JOBQ_EPAYLOAD, "\"name\" must be a string")
                  : jobq_message_set_name(l->m, name.as.text.p, name.as.text.n);
}

static int read_payload(line *l, const jobq_token *text)
{
    if (l->has_payload)
        return malformed(l->raw ? "\"payload\" beside \"raw\"" : "\"payload\" twice");
    l->has_payload = true;
    return jobq_payload_from_json(jobq_message_payload(l->m), text->as.text.p, text->as.text.n);
}

/* {"$bytes": ...}: the body as it is. What it is checks the push. */
static int read_raw(line *l, const jobq_token *text)
{
    jobq_token token;
    int rc;

    if (l->has_payload)
        return malformed(l->raw ? "\"raw\" twice" : "\"raw\" beside \"payload\"");
    l->has_payload = true;
    jobq_reader_open(l->reader, JOBQ_FORMAT_JSON, text->as.text.p, text->as.text.n);
    rc = jobq_reader_next(l->reader, &token);
    if (rc < 0 || token.kind != JOBQ_BYTES)
        return jobq__error_set(JOBQ_EPAYLOAD, "\"raw\" must be {\"$bytes\": base64}");
    l->raw = jobq__memdup(token.as.text.p, token.as.text.n);
    l->raw_n = token.as.text.n;
    return l->raw ? 0 : jobq__error_nomem();
}

static int read_format(line *l, const jobq_token *text)
{
    static const struct {
        const char *word;
        int format;
    } formats[] = {{"msgpack", JOBQ_FORMAT_MSGPACK}, {"json", JOBQ_FORMAT_JSON}};
    jobq_token token;

    if (read_string(l->reader, text, &token) == 0)
        for (size_t i = 0; i < 2; i++)
            if (token.as.text.n == strlen(formats[i].word) &&
                memcmp(token.as.text.p, formats[i].word, token.as.text.n) == 0) {
                l->has_format = true;
                l->format = formats[i].format;
                return 0;
            }
    return jobq__error_set(JOBQ_EPAYLOAD, "\"format\" must be \"msgpack\" or \"json\"");
}

/* The reader hands out one text at a time, so a key is copied while its value is read. */
static int read_context(line *l, const jobq_token *text)
{
    char key[8193];
    jobq_token token;
    size_t key_n = 0;
    int rc;

    if (l->has_context)
        return malformed("\"context\" twice");
    l->has_context = true;
    jobq_reader_open(l->reader, JOBQ_FORMAT_JSON, text->as.text.p, text->as.text.n);
    rc = jobq_reader_next(l->reader, &token);
    if (rc < 0 || token.kind != JOBQ_MAP)
        return jobq__error_set(JOBQ_EPAYLOAD, "\"context\" must be an object of strings");
    while ((rc = jobq_reader_next(l->reader, &token)) > 0) {
        if (token.kind != JOBQ_STR || token.as.text.n >= sizeof(key))
            return jobq__error_set(JOBQ_EPAYLOAD,
                                   "\"context\" must be an object of strings, at most 8192 bytes");
        if (token.key) {
            key_n = token.as.text.n;
            memcpy(key, token.as.text.p, key_n);
        } else if ((rc = jobq_message_add_context(l->m, key, key_n, token.as.text.p,
                                                  token.as.text.n)) < 0) {
            return rc;
        }
    }
    return rc;
}

static int read_guard(line *l, const jobq_token *text)
{
    if (l->has_guard)
        return malformed("\"guard\" twice");
    l->has_guard = true;
    return is_word(text, "null") ? 0 : jobq__guard_of_json(text->as.text.p, text->as.text.n, l->m);
}

/* [10, 60]: each number by its text. */
static int read_list(jobq_conf *conf, const char *name, const jobq_token *text)
{
    cursor c = {text->as.text.p + 1, text->as.text.p + text->as.text.n};
    jobq_token element;
    int rc = 0;

    if (take(&c, ']'))
        return malformed("an option is an empty list");
    do {
        if (!skip_value(&c, &element))
            return malformed("a list does not end");
        rc = jobq_conf_add(conf, name, element.as.text.p, element.as.text.n);
    } while (rc == 0 && take(&c, ','));
    return rc < 0 || take(&c, ']') ? rc : malformed("a list of an option holds numbers");
}

static bool is_text_option(const char *name)
{
    const char *known, *type;

    for (size_t i = 0; jobq_conf_describe(i, &known, &type, NULL, NULL, NULL, NULL); i++)
        if (strcmp(known, name) == 0)
            return strcmp(type, "text") == 0;
    return false;
}

static int read_option(line *l, const char *name, const jobq_token *text)
{
    jobq_conf *conf = jobq_message_options(l->m);
    jobq_token decoded;
    int rc;

    if (is_word(text, "null"))
        return 0;
    if (is_word(text, "true") || is_word(text, "false"))
        return jobq_conf_set_bool(conf, name, is_word(text, "true"));
    if (text->as.text.p[0] == '[')
        return read_list(conf, name, text);
    if (text->as.text.p[0] != '"' && is_text_option(name))
        return jobq__error_set(JOBQ_EPAYLOAD, "\"%s\" must be a string", name);
    if (text->as.text.p[0] != '"')
        return jobq_conf_set(conf, name, text->as.text.p, text->as.text.n);
    rc = read_string(l->reader, text, &decoded);
    return rc < 0 ? rc : jobq_conf_set(conf, name, decoded.as.text.p, decoded.as.text.n);
}

/* ---- members --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*read)(line *l, const jobq_token *text);
} members[] = {{"name", read_name},   {"payload", read_payload}, {"context", read_context},
               {"guard", read_guard}, {"raw", read_raw},         {"format", read_format}};
enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static const char *next_name(void *payload, size_t i)
{
    (void)payload;
    return i < MEMBERS ? members[i].name : NULL;
}

/* Names that the options table does not know may be one of ours misspelt. */
static int read_member(line *l, const char *name, const jobq_token *value)
{
    const char *nearest;
    int rc;

    for (size_t i = 0; i < MEMBERS; i++)
        if (strcmp(members[i].name, name) == 0)
            return members[i].read(l, value);
    rc = read_option(l, name, value);
    nearest = rc == JOBQ_ECONF ? jobq__str_nearest(name, next_name, NULL) : NULL;
    return nearest ? jobq__error_set(JOBQ_ECONF, "unknown option \"%s\", did you mean \"%s\"?",
                                     name, nearest)
                   : rc;
}

static int take_member(line *l, cursor *c)
{
    jobq_token text, key;
    char name[64];
    int rc;

    skip_space(c);
    if (c->p >= c->end || *c->p != '"' || !skip_value(c, &text))
        return malformed("a member's name in quotes is expected");
    rc = read_string(l->reader, &text, &key);
    if (rc < 0)
        return rc;
    jobq__str_one_line(name, sizeof(name), key.as.text.p, key.as.text.n);
    if (!take(c, ':') || !skip_value(c, &text))
        return jobq__error_set(JOBQ_EPAYLOAD, "not a JSON object of a job: \"%s\" has no value",
                               name);
    return read_member(l, name, &text);
}

static int read_object(line *l, cursor *c)
{
    int rc;

    if (!take(c, '{'))
        return malformed("it does not begin with {");
    do {
        rc = take_member(l, c);
    } while (rc == 0 && take(c, ','));
    if (rc < 0)
        return rc;
    if (!take(c, '}'))
        return malformed("it does not end with }");
    skip_space(c);
    if (c->p != c->end)
        return malformed("something follows the }");
    if (!l->has_name)
        return jobq__error_set(JOBQ_EPAYLOAD, "\"name\" is missing");
    if (l->has_format && !l->raw)
        return malformed("\"format\" without \"raw\"");
    return l->raw ? jobq_message_set_body(l->m, l->format, l->raw, l->raw_n) : 0;
}

int jobq__push_line_read(const char *p, size_t n, const jobq_conf *base, jobq_message *m)
{
    line l = {.m = m};
    cursor c = {p, p + n};
    int rc = base ? jobq_conf_merge(jobq_message_options(m), base) : 0;

    if (rc < 0)
        return rc;
    l.reader = jobq_reader_new();
    if (!l.reader)
        return jobq__error_nomem();
    rc = read_object(&l, &c);
    jobq_reader_free(l.reader);
    jobq__free(l.raw);
    return rc;
}
