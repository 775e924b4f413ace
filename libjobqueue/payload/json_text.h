/* SPDX-License-Identifier: MIT
 *
 * The texts inside JSON: numbers, strings, RFC 3339 times, base64. Pure; the locale plays no part.
 */
#ifndef JOBQ_PAYLOAD_JSON_TEXT_H
#define JOBQ_PAYLOAD_JSON_TEXT_H

#include <jobqueue/payload.h>

#include "util/buf.h"

/* The forms that JSON has no value for: an object with exactly one of these keys. */
enum { JOBQ__FORM_NONE, JOBQ__FORM_BYTES, JOBQ__FORM_TIME, JOBQ__FORM_DOUBLE, JOBQ__FORM_MAP };
int jobq__json_form(const char *key, size_t n);

/* Length of the number at p by JSON's grammar; 0: none; *whole: no fraction, no exponent. *cut: the
 * text ends where more must follow. */
size_t jobq__json_number(const char *p, size_t n, bool *whole, bool *cut);
/* The value of a number the grammar took; false: beyond -2^63 .. 2^64-1, beyond a double. */
bool jobq__json_integer(const char *p, size_t n, jobq_token *out);
bool jobq__json_double(const char *p, size_t n, double *out);
/* Shortest text that reads back as the same double, always with a fraction or exponent; not for
 * NaN, infinities. */
void jobq__json_add_double(jobq__buf *out, double value);

/* Appends a string literal. Control characters, also those above 0x7e, and line separators are
 * escaped. */
void jobq__json_add_string(jobq__buf *out, const char *p, size_t n);
/* Appends what an escape stands for; p[0] = '\\'. Returns its length, 0 when it is none (lone
 * surrogates too). */
size_t jobq__json_unescape(jobq__buf *out, const char *p, size_t n);

/* RFC 3339; years outside 0000 .. 9999 carry a sign and up to 12 digits. At most 9 digits of a
 * second. */
bool jobq__rfc3339_parse(const char *p, size_t n, int64_t *seconds_out, uint32_t *nanoseconds_out);
void jobq__rfc3339_add(jobq__buf *out, int64_t seconds, uint32_t nanoseconds);

/* Strict, padded base64 (RFC 4648 section 4); decoding may overwrite its input. */
bool jobq__base64_decode(char *out, const char *p, size_t n, size_t *n_out);
void jobq__base64_add(jobq__buf *out, const void *p, size_t n);

#endif
