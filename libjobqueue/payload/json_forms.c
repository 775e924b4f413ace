/* SPDX-License-Identifier: MIT
 *
 * The texts of the JSON forms "$time" and "$bytes": RFC 3339 and base64.
 */
#include <string.h>

#include "payload/json_text.h"

/* ---- RFC 3339 (proleptic Gregorian calendar, UTC) -------------------------------------------- */

enum { DAY = 86400, YEAR_DIGITS = 12 };

/* Days since 1970-01-01, counting years from March so that leap days come last. */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

static int month_length(int64_t year, int month)
{
    static const char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return lengths[month - 1] + (month == 2 && leap);
}

typedef struct {
    const char *p, *end;
    bool bad;
} scanner;

static int64_t scan_number(scanner *s, int least, int most)
{
    int64_t value = 0;
    int n = 0;

    while (n < most && s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        value = value * 10 + (*s->p++ - '0');
        n++;
    }
    s->bad |= n < least;
    return value;
}

/* One of the characters in `set`; returns it. */
static char scan_char(scanner *s, const char *set)
{
    if (s->p < s->end && *s->p && strchr(set, *s->p))
        return *s->p++;
    s->bad = true;
    return 0;
}

static int64_t scan_year(scanner *s)
{
    bool sign = s->p < s->end && (*s->p == '+' || *s->p == '-');
    bool negative = sign && *s->p == '-';
    int64_t year;

    s->p += sign;
    year = scan_number(s, 4, sign ? YEAR_DIGITS : 4);
    return negative ? -year : year;
}

static uint32_t scan_fraction(scanner *s)
{
    const char *from;
    int64_t value;

    if (s->p == s->end || *s->p != '.')
        return 0;
    from = ++s->p;
    value = scan_number(s, 1, 9);
    for (int64_t i = s->p - from; i < 9; i++)
        value *= 10;
    return s->bad ? 0 : (uint32_t)value;
}

static int64_t scan_offset(scanner *s)
{
    char sign = scan_char(s, "Zz+-");
    int64_t hours, minutes;

    if (s->bad || sign == 'Z' || sign == 'z')
        return 0;
    hours = scan_number(s, 2, 2);
    scan_char(s, ":");
    minutes = scan_number(s, 2, 2);
    s->bad |= hours > 23 || minutes > 59;
    return (hours * 60 + minutes) * (sign == '-' ? -60 : 60);
}

/* days * DAY + rest without leaving int64_t on the way. */
static bool join_seconds(int64_t days, int64_t rest, int64_t *out)
{
    if (days < 0) {
        days++;
        rest -= DAY;
    }
    return !__builtin_mul_overflow(days, (int64_t)DAY, out) &&
           !__builtin_add_overflow(*out, rest, out);
}

bool jobq__rfc3339_parse(const char *p, size_t n, int64_t *seconds_out, uint32_t *nanoseconds_out)
{
    scanner s = {p, p + n, false};
    int64_t year = scan_year(&s), month, day, clock[3], offset, seconds;
    uint32_t nanoseconds;

    scan_char(&s, "-");
    month = scan_number(&s, 2, 2);
    scan_char(&s, "-");
    day = scan_number(&s, 2, 2);
    scan_char(&s, "Tt ");
    for (int i = 0; i < 3; i++) {
        if (i)
            scan_char(&s, ":");
        clock[i] = scan_number(&s, 2, 2);
    }
    nanoseconds = scan_fraction(&s);
    offset = scan_offset(&s);
    if (s.bad || s.p != s.end || month < 1 || month > 12 || day < 1 ||
        day > month_length(year, (int)month) || clock[0] > 23 || clock[1] > 59 || clock[2] > 59)
        return false;
    if (!join_seconds(days_of(year, (int)month, (int)day),
                      clock[0] * 3600 + clock[1] * 60 + clock[2] - offset, &seconds))
        return false;
    *seconds_out = seconds;
    *nanoseconds_out = nanoseconds;
    return true;
}

void jobq__rfc3339_add(jobq__buf *out, int64_t seconds, uint32_t nanoseconds)
{
    int64_t days = seconds / DAY - (seconds % DAY < 0),
            rest = seconds % DAY + (seconds % DAY < 0 ? DAY : 0), year;
    int month, day;

    date_of(days, &year, &month, &day);
    if (year < 0 || year > 9999)
        jobq__buf_addc(out, year < 0 ? '-' : '+');
    jobq__buf_addf(out, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)(year < 0 ? -year : year),
                   month, day, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    if (nanoseconds % 1000)
        jobq__buf_addf(out, ".%09u", nanoseconds);
    else if (nanoseconds)
        jobq__buf_addf(out, ".%06u", nanoseconds / 1000);
    jobq__buf_addc(out, 'Z');
}

/* ---- base64 ---------------------------------------------------------------------------------- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int sextet(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool jobq__base64_decode(char *out, const char *p, size_t n, size_t *n_out)
{
    size_t padding = n && p[n - 1] == '=' ? 1 + (n > 1 && p[n - 2] == '=') : 0, used = 0;
    uint32_t bits = 0;

    if (n % 4)
        return false;
    for (size_t i = 0; i < n - padding; i++) {
        int six = sextet((unsigned char)p[i]);

        if (six < 0)
            return false;
        bits = bits << 6 | (uint32_t)six;
        if (i % 4)
            out[used++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    if (padding && (bits & (padding == 1 ? 3u : 15u)))
        return false; /* two texts for the same bytes */
    *n_out = used;
    return true;
}

void jobq__base64_add(jobq__buf *out, const void *p, size_t n)
{
    const unsigned char *s = p;

    if (!jobq__buf_reserve(out, (n / 3 + 1) * 4))
        return;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t bits = (uint32_t)s[i] << 16 | (have > 1 ? (uint32_t)s[i + 1] << 8 : 0) |
                        (have > 2 ? s[i + 2] : 0);

        for (size_t k = 0; k < 4; k++)
            out->p[out->n++] = k <= have ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
}
