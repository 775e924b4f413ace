/* SPDX-License-Identifier: MIT
 *
 * Options by name. One table (core/conf_table.c, printed as doc/configuration.md) holds each
 * option's name, type, range, default, scope and meaning; parser, range check, help and
 * documentation read it.
 */
#ifndef JOBQUEUE_CONF_H
#define JOBQUEUE_CONF_H

#include <jobqueue/error.h>

JOBQ_BEGIN_DECLS

typedef struct jobq_conf jobq_conf;

/* Where an option may stand; a set of options is made for exactly one scope. */
enum {
    JOBQ_SCOPE_CONNECTION = 1, /* DSN query string, Queue constructor */
    JOBQ_SCOPE_WORKER = 2,     /* Worker constructor, run(), `work` command */
    JOBQ_SCOPE_HANDLER = 4,    /* handle() */
    JOBQ_SCOPE_PUSH = 8        /* push() */
};

/* How the front end spells names; used for reading them and in messages. */
enum {
    JOBQ_STYLE_SNAKE = 0, /* max_time   C, DSN, Python */
    JOBQ_STYLE_CAMEL = 1, /* maxTime    PHP */
    JOBQ_STYLE_KEBAB = 2  /* --max-time command line */
};

/* A new, empty set of options; NULL when out of memory. Not for use by two threads at once.
 * @since 0.1 */
JOBQ_API jobq_conf *jobq_conf_new(int scope, int style);
JOBQ_API void jobq_conf_free(jobq_conf *conf);  /* NULL is fine */
JOBQ_API void jobq_conf_reset(jobq_conf *conf); /* forget every value, keep scope and style */

/* Sets one option from text. Numbers are strict: no blanks, no trailing garbage, no NaN, never a
 * silent default. JOBQ_ECONF: unknown name (the message gives the nearest known one) or one of
 * another scope (the message says where it belongs); JOBQ_EINVAL: the value (the message says what
 * is allowed). */
JOBQ_API int jobq_conf_set(jobq_conf *conf, const char *name, const char *value, size_t n);
JOBQ_API int jobq_conf_set_int(jobq_conf *conf, const char *name, int64_t value);
JOBQ_API int jobq_conf_set_double(jobq_conf *conf, const char *name, double value);
JOBQ_API int jobq_conf_set_bool(jobq_conf *conf, const char *name, bool value);
/* backoff = a list of seconds; dont_retry = a list of names: appends one element. */
JOBQ_API int jobq_conf_add(jobq_conf *conf, const char *name, const char *value, size_t n);

/* Is that a name that may stand here? 0, or JOBQ_ECONF as jobq_conf_set would say it. @since 0.1 */
JOBQ_API int jobq_conf_check(jobq_conf *conf, const char *name);

/* For bindings, whose values have types: NULL when the option takes values of that kind, else what
 * it takes in words ("a number"). A text counts for a number only where it is a word that may stand
 * for one ("auto"); `text` (NUL-terminated) may be NULL for other kinds. The command line, which
 * has nothing but text, asks nobody. NULL for a name that may not stand here: the setters refuse
 * it. @since 0.1 */
enum { JOBQ_VALUE_BOOL, JOBQ_VALUE_NUMBER, JOBQ_VALUE_TEXT, JOBQ_VALUE_LIST, JOBQ_VALUE_TIME };
JOBQ_API const char *jobq_conf_expects(jobq_conf *conf, const char *name, int kind,
                                       const char *text);

/* Copies what `over` sets over what `conf` has. Scopes must be equal. */
JOBQ_API int jobq_conf_merge(jobq_conf *conf, const jobq_conf *over);

/* The i-th row of the table for documentation and help; false past the end. Every pointer may be
 * NULL; strings live for ever. `scopes` is a set of JOBQ_SCOPE_*. */
JOBQ_API bool jobq_conf_describe(size_t i, const char **name_out, const char **type_out,
                                 const char **range_out, const char **default_out, int *scopes_out,
                                 const char **meaning_out);

JOBQ_END_DECLS
#endif
