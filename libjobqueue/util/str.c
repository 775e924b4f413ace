/* SPDX-License-Identifier: MIT
 *
 * Text helpers. UTF-8 by the table of Unicode 15, section 3.9 (no surrogates, no overlong forms).
 */
#include "util/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Lowest and highest second byte a lead byte allows. */
static void second_range(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
}

size_t jobq__utf8_step(const char *p, size_t n)
{
    const unsigned char *s = (const unsigned char *)p;
    unsigned char low, high;
    size_t len;

    if (n == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    len = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
          : (s[0] & 0xf0) == 0xe0        ? 3
          : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                         : 0;
    if (len == 0 || n < len)
        return 0;
    second_range(s[0], &low, &high);
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (!tail(s[i]))
            return 0;
    return len;
}

static bool eight_are_ascii(const char *p, size_t n)
{
    uint64_t eight;

    if (n < sizeof(eight))
        return false;
    memcpy(&eight, p, sizeof(eight));
    return !(eight & UINT64_C(0x8080808080808080));
}

bool jobq__utf8_valid(const char *p, size_t n)
{
    size_t i = 0;

    while (i < n) {
        size_t step = eight_are_ascii(p + i, n - i) ? 8 : jobq__utf8_step(p + i, n - i);

        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

size_t jobq__utf8_cut(const char *p, size_t n, size_t max)
{
    size_t cut = max;

    if (n <= max)
        return n;
    while (cut > 0 && tail((unsigned char)p[cut]) && max - cut < 4)
        cut--;
    return tail((unsigned char)p[cut]) ? max : cut;
}

size_t jobq__str_one_line(char *out, size_t size, const char *p, size_t n)
{
    size_t used = 0;

    for (size_t i = 0; i < n;) {
        size_t step = jobq__utf8_step(p + i, n - i);
        unsigned char c = (unsigned char)p[i];

        if (used + (step ? step : 1) >= size)
            break;
        if (step == 0)
            out[used++] = '?';
        else if (step == 1)
            out[used++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
        else if (step == 2 && c == 0xc2 && (unsigned char)p[i + 1] < 0xa0)
            out[used++] = ' '; /* C1 controls steer terminals too */
        else
            for (size_t k = 0; k < step; k++)
                out[used++] = p[i + k];
        i += step ? step : 1;
    }
    if (size)
        out[used] = '\0';
    return used;
}

size_t jobq__str_visible(char *out, size_t size, const char *p, size_t n)
{
    size_t used = 0;

    for (size_t i = 0; i < n;) {
        size_t step = jobq__utf8_step(p + i, n - i);
        unsigned char c = (unsigned char)p[i];
        bool raw = step > 1 || (step == 1 && ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t'));

        if (used + (raw ? step : 4) >= size)
            break;
        if (raw) {
            memcpy(out + used, p + i, step);
            used += step;
            i += step;
        } else {
            snprintf(out + used, 5, "\\x%02x", c);
            used += 4;
            i++;
        }
    }
    if (size)
        out[used] = '\0';
    return used;
}

bool jobq__str_int(const char *p, size_t n, int64_t *out)
{
    char text[24];
    char *end;
    size_t i = n > 0 && p[0] == '-';

    if (n == i || n >= sizeof(text))
        return false;
    for (; i < n; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    memcpy(text, p, n);
    text[n] = '\0';
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* The host program may have set a locale whose decimal sign is a comma. */
static locale_t c_locale;
static pthread_once_t c_locale_made = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

bool jobq__str_double(const char *p, size_t n, double *out)
{
    char text[64];
    char *end;
    double value;

    if (n == 0 || n >= sizeof(text) || p[0] == '+')
        return false;
    memcpy(text, p, n);
    text[n] = '\0';
    if (strspn(text, "0123456789.eE-+") != n)
        return false;
    pthread_once(&c_locale_made, make_c_locale);
    value = strtod_l(text, &end, c_locale);
    if (*end != '\0' || isnan(value) || isinf(value))
        return false;
    *out = value;
    return true;
}

int jobq__vformat(char *out, size_t size, const char *fmt, va_list args)
{
    locale_t own;
    int n;

    pthread_once(&c_locale_made, make_c_locale);
    own = uselocale(c_locale); /* this thread's only */
    n = vsnprintf(out, size, fmt, args);
    uselocale(own);
    return n;
}

int jobq__format(char *out, size_t size, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = jobq__vformat(out, size, fmt, args);
    va_end(args);
    return n;
}

void jobq__str_put_double(char out[40], int digits, double value)
{
    jobq__format(out, 40, "%.*g", digits, value);
}

double jobq__str_to_double(const char *text)
{
    pthread_once(&c_locale_made, make_c_locale);
    return strtod_l(text, NULL, c_locale);
}

const char *jobq__plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static bool same_letter(char a, char b)
{
    return strncasecmp(&a, &b, 1) == 0;
}

/* Up to letters a[i - 1], b[j - 1]. `row` is being filled; `above` and `second` precede it. */
static size_t cheapest(const char *a, size_t i, const char *b, size_t j, const size_t *row,
                       const size_t *above, const size_t *second)
{
    const size_t change = same_letter(a[i - 1], b[j - 1]) ? 0 : i + j == 2 ? 2 : 1;
    size_t best = above[j - 1] + change;

    best = above[j] + 1 < best ? above[j] + 1 : best;
    best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
    if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
        best = second[j - 2] + 1 < best ? second[j - 2] + 1 : best;
    return best;
}

/* Letters to change, add, drop or swap with their neighbour; their case says nothing. People rarely
 * mistype the first letter ("stop" is no "top"), so it counts twice, unless it was swapped. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 40 };
    size_t rows[3][MAX + 1], na = strlen(a), nb = strlen(b);

    if (na > MAX || nb > MAX)
        return MAX;
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j + (j > 0);
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];

        row[0] = i + 1;
        for (size_t j = 1; j <= nb; j++)
            row[j] = cheapest(a, i, b, j, row, above, second);
    }
    return rows[na % 3][nb];
}

/* "vers" for "version", and "timeoutSeconds" for "timeout": one begins with the other, the longer
 * candidate at any letter, the longer word where a part of it ends. */
static bool begins_alike(const char *word, const char *candidate)
{
    const size_t n = strlen(word), m = strlen(candidate);

    if (n <= m)
        return n >= 3 && strncasecmp(word, candidate, n) == 0;
    return m >= 4 && strncasecmp(word, candidate, m) == 0 &&
           (strchr("_-.:", word[m]) || (word[m] >= 'A' && word[m] <= 'Z'));
}

const char *jobq__str_nearest(const char *word, const char *(*next)(void *payload, size_t i),
                              void *payload)
{
    const char *best = NULL, *alike = NULL, *candidate;
    const size_t n = strlen(word);
    size_t best_distance = (n < 3 ? 3 : n) / 3 + 1, likes = 0; /* a third of the letters at most */

    for (size_t i = 0; (candidate = next(payload, i)) != NULL; i++) {
        size_t d = distance(word, candidate);

        if (d < best_distance) {
            best_distance = d;
            best = candidate;
        }
        if (begins_alike(word, candidate)) {
            alike = candidate;
            likes++;
        }
    }
    return likes == 1 ? alike : best; /* "max" is the beginning of many */
}

void jobq__str_list(char *out, size_t size, const char *(*next)(void *payload, size_t i),
                    void *payload)
{
    const char *word;
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; (word = next(payload, i)) != NULL; i++) {
        const size_t n = strlen(word) + (used ? 2 : 0);

        if (used + n >= size)
            return;
        snprintf(out + used, size - used, "%s%s", used ? ", " : "", word);
        used += n;
    }
}

bool jobq__word_listed(const char *list, const char *word, size_t n)
{
    while (*list) {
        size_t len = strcspn(list, " ");

        if (len == n && memcmp(list, word, n) == 0)
            return true;
        list += len;
        list += strspn(list, " ");
    }
    return false;
}
