/* SPDX-License-Identifier: MIT
 *
 * Numbers and strings of JSON. Doubles go through the C library without a decimal sign (as digits
 * and an exponent), so that a host program's locale cannot change them.
 */
#include "payload/json_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {[JOBQ__FORM_BYTES] = "$bytes",
                                    [JOBQ__FORM_TIME] = "$time",
                                    [JOBQ__FORM_DOUBLE] = "$double",
                                    [JOBQ__FORM_MAP] = "$map"};

int jobq__json_form(const char *key, size_t n)
{
    if (n == 0 || key[0] != '$')
        return JOBQ__FORM_NONE;
    for (int i = JOBQ__FORM_BYTES; i <= JOBQ__FORM_MAP; i++)
        if (strlen(forms[i]) == n && !memcmp(forms[i], key, n))
            return i;
    return JOBQ__FORM_NONE;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t digits(const char *p, size_t n)
{
    size_t i = 0;

    while (i < n && p[i] >= '0' && p[i] <= '9')
        i++;
    return i;
}

/* A part that must have a digit: its length, or 0 with *cut told. */
static size_t some_digits(const char *p, size_t n, bool *cut)
{
    size_t len = digits(p, n);

    if (len == 0)
        *cut = n == 0;
    return len;
}

size_t jobq__json_number(const char *p, size_t n, bool *whole, bool *cut)
{
    size_t i = n > 0 && p[0] == '-', len;

    *whole = true;
    *cut = false;
    len = some_digits(p + i, n - i, cut);
    if (len == 0 || (len > 1 && p[i] == '0'))
        return 0;
    i += len;
    if (i < n && p[i] == '.') {
        *whole = false;
        len = some_digits(p + i + 1, n - i - 1, cut);
        if (len == 0)
            return 0;
        i += len + 1;
    }
    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        *whole = false;
        i++;
        i += i < n && (p[i] == '+' || p[i] == '-');
        len = some_digits(p + i, n - i, cut);
        if (len == 0)
            return 0;
        i += len;
    }
    return i;
}

bool jobq__json_integer(const char *p, size_t n, jobq_token *out)
{
    bool negative = p[0] == '-';
    uint64_t value = 0;

    for (size_t i = negative; i < n; i++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(p[i] - '0'), &value))
            return false;
    if (negative && value > (uint64_t)INT64_MAX + 1)
        return false;
    if (!negative && value > INT64_MAX) {
        out->kind = JOBQ_UINT;
        out->as.unsigned_integer = value;
    } else {
        out->kind = JOBQ_INT;
        out->as.integer = (int64_t)(negative ? 0 - value : value);
    }
    return true;
}

/* More significant digits than any double needs to be rounded exactly (767). */
enum { SIGNIFICANT = 800, EXPONENT_MAX = 1000000 };

typedef struct {
    char text[SIGNIFICANT + 32];
    size_t n;
    long long exponent; /* of ten, for the digits read as an integer */
    bool beyond;        /* a digit other than zero was left out */
} decimal;

static void add_digits(decimal *d, const char *p, size_t n, bool fraction)
{
    for (size_t i = 0; i < n; i++) {
        if (d->n == 0 && p[i] == '0') {
            d->exponent -= fraction;
        } else if (d->n < SIGNIFICANT) {
            d->text[d->n++] = p[i];
            d->exponent -= fraction;
        } else {
            d->beyond |= p[i] != '0';
            d->exponent += !fraction;
        }
    }
}

static long long read_exponent(const char *p, size_t n)
{
    size_t i = n > 0 && (p[0] == '-' || p[0] == '+');
    long long value = 0;

    for (; i < n; i++)
        value = value > EXPONENT_MAX ? value : value * 10 + (p[i] - '0');
    return n > 0 && p[0] == '-' ? -value : value;
}

bool jobq__json_double(const char *p, size_t n, double *out)
{
    decimal d = {.n = 0, .exponent = 0, .beyond = false};
    size_t i = p[0] == '-', len = digits(p + i, n - i);
    double value = 0;

    add_digits(&d, p + i, len, false);
    i += len;
    if (i < n && p[i] == '.') {
        len = digits(p + i + 1, n - i - 1);
        add_digits(&d, p + i + 1, len, true);
        i += len + 1;
    }
    if (i < n)
        d.exponent += read_exponent(p + i + 1, n - i - 1);
    if (d.n) {
        if (d.beyond) { /* just above what the digits say, which decides a tie */
            d.text[d.n++] = '1';
            d.exponent--;
        }
        snprintf(d.text + d.n, sizeof(d.text) - d.n, "e%lld", d.exponent);
        value = strtod(d.text, NULL);
    }
    if (isinf(value))
        return false;
    *out = p[0] == '-' ? -value : value;
    return true;
}

/* Prints with the fewest digits that read back equal; leaves the significant digits in `text`,
 * trailing zeros removed, and gives the exponent of the first one. */
static int shortest_digits(double value, char text[32], size_t *n_out)
{
    char printed[40], plain[48];
    int precision = value < DBL_MIN ? 0 : 14;
    int exponent;
    size_t n;

    for (;; precision++) {
        n = 0;
        snprintf(printed, sizeof(printed), "%.*e", precision, value);
        for (const char *c = printed; *c != 'e'; c++)
            if (*c >= '0' && *c <= '9')
                text[n++] = *c;
        exponent = (int)strtol(strchr(printed, 'e') + 1, NULL, 10);
        snprintf(plain, sizeof(plain), "%.*se%d", (int)n, text, exponent - precision);
        if (precision == 16 || strtod(plain, NULL) == value)
            break;
    }
    while (n > 1 && text[n - 1] == '0')
        n--;
    *n_out = n;
    return exponent;
}

void jobq__json_add_double(jobq__buf *out, double value)
{
    char text[32];
    size_t n;
    int exponent;

    if (signbit(value))
        jobq__buf_addc(out, '-');
    if (value == 0) {
        jobq__buf_adds(out, "0.0");
        return;
    }
    exponent = shortest_digits(fabs(value), text, &n);
    if (exponent < -5 || exponent > 16) {
        jobq__buf_addc(out, text[0]);
        jobq__buf_addf(out, ".%.*se%d", n > 1 ? (int)n - 1 : 1, n > 1 ? text + 1 : "0", exponent);
    } else if (exponent < 0) {
        jobq__buf_addf(out, "0.%.*s%.*s", -exponent - 1, "00000", (int)n, text);
    } else {
        for (int i = 0; i <= exponent || (size_t)i < n || i == exponent + 1; i++) {
            if (i == exponent + 1)
                jobq__buf_addc(out, '.');
            jobq__buf_addc(out, (size_t)i < n ? text[i] : '0');
        }
    }
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Bytes of the character at p that must not stand raw, and its code point; 0 when it may. */
static size_t must_escape(const char *p, size_t n, unsigned *code)
{
    unsigned char c = (unsigned char)p[0], d = n > 1 ? (unsigned char)p[1] : 0,
                  e = n > 2 ? (unsigned char)p[2] : 0;

    *code = c;
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
        return 1;
    if (c == 0xc2 && d >= 0x80 && d < 0xa0) { /* C1 controls steer terminals too */
        *code = d;
        return 2;
    }
    if (c == 0xe2 && d == 0x80 && (e == 0xa8 || e == 0xa9)) { /* line ends to JavaScript */
        *code = 0x2000u + (e & 0x3f);
        return 3;
    }
    return 0;
}

static void add_escape(jobq__buf *out, unsigned code)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = code && code < 0x80 ? strchr(named, (int)code) : NULL;

    if (found) {
        jobq__buf_addc(out, '\\');
        jobq__buf_addc(out, letters[found - named]);
    } else {
        jobq__buf_addf(out, "\\u%04x", code);
    }
}

void jobq__json_add_string(jobq__buf *out, const char *p, size_t n)
{
    size_t from = 0, i = 0;
    unsigned code;

    jobq__buf_addc(out, '"');
    while (i < n) {
        size_t len = must_escape(p + i, n - i, &code);

        if (len == 0) {
            i++;
            continue;
        }
        jobq__buf_add(out, p + from, i - from);
        add_escape(out, code);
        i += len;
        from = i;
    }
    jobq__buf_add(out, p + from, n - from);
    jobq__buf_addc(out, '"');
}

/* The number of "uXXXX" at p, or -1. */
static long hex4(const char *p, size_t n)
{
    long value = 0;

    if (n < 5 || p[0] != 'u')
        return -1;
    for (int i = 1; i < 5; i++) {
        int c = (unsigned char)p[i];
        int digit = c >= '0' && c <= '9'                 ? c - '0'
                    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                         : -1;

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static void add_utf8(jobq__buf *out, long c)
{
    char text[4];
    size_t n = 0;

    if (c < 0x80) {
        text[n++] = (char)c;
    } else if (c < 0x800) {
        text[n++] = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        text[n++] = (char)(0xe0 | c >> 12);
        text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        text[n++] = (char)(0xf0 | c >> 18);
        text[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        text[n++] = (char)(0x80 | (c & 0x3f));
    jobq__buf_add(out, text, n);
}

size_t jobq__json_unescape(jobq__buf *out, const char *p, size_t n)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *found = n > 1 && p[1] ? strchr(letters, p[1]) : NULL;
    long high, low;

    if (found) {
        jobq__buf_addc(out, meant[found - letters]);
        return 2;
    }
    high = hex4(p + 1, n - 1);
    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff))
        return 0;
    if (high < 0xd800 || high > 0xdfff) {
        add_utf8(out, high);
        return 6;
    }
    low = n >= 12 && p[6] == '\\' ? hex4(p + 7, n - 7) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    add_utf8(out, 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)));
    return 12;
}
