/* SPDX-License-Identifier: MIT
 *
 * The option table's row. One row is everything there is to know about an option: parser, range
 * check, help, `config` and doc/configuration.md read it and nothing else.
 */
#ifndef JOBQ_CORE_CONF_TABLE_H
#define JOBQ_CORE_CONF_TABLE_H

#include "core/settings.h"

/* Type of the field at `offset` behind each: */
typedef enum {
    JOBQ__TYPE_BOOL,      /* bool */
    JOBQ__TYPE_INT,       /* int64_t; with `words`: the one word that stands for -1 */
    JOBQ__TYPE_BYTES,     /* int64_t */
    JOBQ__TYPE_MEGABYTES, /* int64_t, MB */
    JOBQ__TYPE_SECONDS,   /* int64_t, milliseconds */
    JOBQ__TYPE_NUMBER,    /* double */
    JOBQ__TYPE_TEXT,      /* char * */
    JOBQ__TYPE_WORD,      /* char *, one of `words` */
    JOBQ__TYPE_ENUM,      /* int, index into `words` */
    JOBQ__TYPE_BACKOFF,   /* jobq__backoff */
    JOBQ__TYPE_NAMES,     /* jobq__names */
    JOBQ__TYPE_MOMENT,    /* jobq__moment */
    JOBQ__TYPE_TIME,      /* int64_t, milliseconds since 1970 */
    JOBQ__TYPES
} jobq__type;

typedef struct jobq__option {
    const char *name; /* snake_case */
    jobq__type type;
    int scopes;           /* JOBQ_SCOPE_* */
    size_t offset;        /* into jobq__settings */
    double min, max;      /* in the unit the user writes */
    const char *range;    /* the same in words: stands in documentation and messages */
    const char *fallback; /* default as text, NULL = none; of texts it is only shown */
    const char *const *words;
    int (*check)(const char *p,
                 size_t n); /* further check of a text's form: 0 or JOBQ_EINVAL, worded */
    const char *meaning;
} jobq__option;

extern const jobq__option jobq__options[];
extern const size_t jobq__option_count;
/* "seconds", "whole number", ... */
const char *jobq__type_word(jobq__type type);
/* NULL: values of that kind (JOBQ_VALUE_*) are taken; else what is, in words. */
const char *jobq__option_expects(const jobq__option *o, int kind, const char *text);

/* conf_parse.c: reads a value into the field of `s`, 0 or JOBQ_EINVAL (not yet worded when the
 * record is clear) or JOBQ_ENOMEM. The field is touched only on success. */
int jobq__option_parse(const jobq__option *o, jobq__settings *s, jobq__arena *texts, const char *p,
                       size_t n);
int jobq__option_number(const jobq__option *o, jobq__settings *s, double value);
int jobq__option_append(const jobq__option *o, jobq__settings *s, jobq__arena *texts, const char *p,
                        size_t n);
/* Copies the field from one to the other, texts into the arena. */
int jobq__option_copy(const jobq__option *o, jobq__settings *to, jobq__arena *texts,
                      const jobq__settings *from);
/* Puts the default back; a default holds no text. */
void jobq__option_restore(const jobq__option *o, jobq__settings *s, const jobq__settings *defaults);

/* Ten calendar years at their longest: the most a delay or span may be. */
#define JOBQ__TEN_YEARS_S 315619200

#endif
