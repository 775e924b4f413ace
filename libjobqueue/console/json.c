/* SPDX-License-Identifier: MIT
 *
 * Writing one JSON document to a stream as it comes: nothing is collected. What is not UTF-8
 * becomes U+FFFD, control characters are always escaped, those above 0x7f too, so that the text is
 * safe for a terminal.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "console/console.h"
#include "util/str.h"

void jobq__json_begin(jobq__json *j, FILE *out)
{
    memset(j, 0, sizeof(*j));
    j->out = out;
}

static bool is_c1(const char *p, size_t step)
{
    return step == 2 && (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0;
}

/* One character of a string. */
static void put_character(FILE *out, const char *p, size_t step)
{
    unsigned char c = (unsigned char)*p;

    if (step == 0)
        fputs("\\ufffd", out);
    else if (c == '"' || c == '\\')
        fprintf(out, "\\%c", c);
    else if (c == '\n')
        fputs("\\n", out);
    else if (c < 0x20 || c == 0x7f)
        fprintf(out, "\\u%04x", c);
    else if (is_c1(p, step))
        fprintf(out, "\\u%04x", (unsigned char)p[1]);
    else
        fwrite(p, 1, step, out);
}

static void put_string(FILE *out, const char *p, size_t n)
{
    fputc('"', out);
    for (size_t i = 0; i < n;) {
        size_t step = jobq__utf8_step(p + i, n - i);

        put_character(out, p + i, step);
        i += step ? step : 1;
    }
    fputc('"', out);
}

/* Comma and key in front of a value. */
static void lead(jobq__json *j, const char *key)
{
    if (j->comma[j->depth])
        fputc(',', j->out);
    j->comma[j->depth] = true;
    if (key) {
        put_string(j->out, key, strlen(key));
        fputc(':', j->out);
    }
}

void jobq__json_open(jobq__json *j, const char *key, char bracket)
{
    lead(j, key);
    fputc(bracket, j->out);
    j->depth++;
    j->comma[j->depth] = false;
}

void jobq__json_close(jobq__json *j, char bracket)
{
    fputc(bracket, j->out);
    if (--j->depth == 0)
        fputc('\n', j->out);
}

void jobq__json_text(jobq__json *j, const char *key, const char *p, size_t n)
{
    lead(j, key);
    if (p)
        put_string(j->out, p, n);
    else
        fputs("null", j->out);
}

void jobq__json_string(jobq__json *j, const char *key, const char *text)
{
    jobq__json_text(j, key, text, text ? strlen(text) : 0);
}

void jobq__json_int(jobq__json *j, const char *key, int64_t value)
{
    lead(j, key);
    fprintf(j->out, "%lld", (long long)value);
}

void jobq__json_real(jobq__json *j, const char *key, double value)
{
    char text[40];

    lead(j, key);
    jobq__str_put_double(text, 15, isfinite(value) ? value : 0.0);
    fputs(text, j->out);
}

void jobq__json_bool(jobq__json *j, const char *key, bool value)
{
    lead(j, key);
    fputs(value ? "true" : "false", j->out);
}

void jobq__json_null(jobq__json *j, const char *key)
{
    jobq__json_text(j, key, NULL, 0);
}

void jobq__json_limit(jobq__json *j, const char *key, int64_t value)
{
    if (value)
        jobq__json_int(j, key, value);
    else
        jobq__json_null(j, key);
}

void jobq__json_time(jobq__json *j, const char *key, int64_t at_ms)
{
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm tm;
    char text[48];
    size_t n;

    n = at_ms > 0 && gmtime_r(&seconds, &tm) ? strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
    if (n)
        n += (size_t)snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)(at_ms % 1000));
    jobq__json_text(j, key, n ? text : NULL, n);
}

void jobq__json_print_clean(FILE *out, const char *p, size_t n)
{
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        bool c1 = i + 1 < n && is_c1(p + i, 2);

        if (!c1 && (unsigned char)p[i] >= 0x20 && p[i] != 0x7f)
            continue;
        fwrite(p + from, 1, i - from, out);
        if (c1 || p[i] == 0x7f)
            fprintf(out, "\\u%04x", (unsigned char)p[i + c1]);
        else
            fputc(' ', out); /* between tokens only: inside strings JSON has it escaped */
        i += c1;
        from = i + 1;
    }
    fwrite(p + from, 1, n - from, out);
}

void jobq__json_raw(jobq__json *j, const char *key, const char *p, size_t n)
{
    lead(j, key);
    jobq__json_print_clean(j->out, p, n);
}
