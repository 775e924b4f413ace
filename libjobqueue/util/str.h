/* SPDX-License-Identifier: MIT
 *
 * Text: UTF-8, cutting, strict numbers, nearest names. Locale plays no part anywhere.
 */
#ifndef JOBQ_UTIL_STR_H
#define JOBQ_UTIL_STR_H

#include <jobqueue/common.h>

#include <stdarg.h>

bool jobq__utf8_valid(const char *p, size_t n);
/* Length of the well-formed UTF-8 sequence at p, 0 when there is none. */
size_t jobq__utf8_step(const char *p, size_t n);
/* The longest prefix of at most `max` bytes that does not cut a character. */
size_t jobq__utf8_cut(const char *p, size_t n, size_t max);

/* Copies for display: at most size - 1 bytes and NUL, never a cut character; control characters
 * become spaces, bytes that are not UTF-8 become '?'. Returns the length. */
size_t jobq__str_one_line(char *out, size_t size, const char *p, size_t n);
/* Copies text that is kept: newlines and tabs stay, other control characters (NUL too) become
 * "\x00" forms, bytes that are not UTF-8 too. */
size_t jobq__str_visible(char *out, size_t size, const char *p, size_t n);

/* Is the word of n bytes one of a list separated by blanks? */
bool jobq__word_listed(const char *list, const char *word, size_t n);
/* The whole text as a number, or false: no blanks, no sign but '-', no hex, no overflow, no NaN. */
bool jobq__str_int(const char *p, size_t n, int64_t *out);
bool jobq__str_double(const char *p, size_t n, double *out);
/* To and from text with a point for the decimal sign, whatever locale the host program has set: as
 * "%.*g" with so many digits (17: reads back equal), and as strtod. */
void jobq__str_put_double(char out[40], int digits, double value);
double jobq__str_to_double(const char *text);
/* snprintf and vsnprintf with that point: texts with numbers in them are made by these alone. */
int jobq__format(char *out, size_t size, const char *fmt, ...) JOBQ_PRINTF(3, 4);
int jobq__vformat(char *out, size_t size, const char *fmt, va_list args) JOBQ_PRINTF(3, 0);

/* The end of a counted noun: "" behind 1, else "s". */
const char *jobq__plural(int64_t n);

/* The candidate nearest to `word`, whatever the case of its letters: the only one that it begins,
 * else one that differs in a third of its letters at most; NULL when none is near. `next` gives
 * the i-th candidate, NULL past the end. */
const char *jobq__str_nearest(const char *word, const char *(*next)(void *payload, size_t i),
                              void *payload);
/* All of them, "a, b, c"; what does not fit is left out. */
void jobq__str_list(char *out, size_t size, const char *(*next)(void *payload, size_t i),
                    void *payload);

#endif
