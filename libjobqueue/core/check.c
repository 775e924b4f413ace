/* SPDX-License-Identifier: MIT
 *
 * The forms of rule A1: names, queues, ids, unique keys. Each check answers 0, or JOBQ_EINVAL with
 * the thing and what is allowed in the record.
 */
#include <string.h>

#include "core/ident.h"
#include "core/queue.h"
#include "util/error.h"
#include "util/str.h"

static bool has_control(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c < 0x20 || c == 0x7f || (c == 0xc2 && i + 1 < n && (unsigned char)p[i + 1] < 0xa0))
            return true;
    }
    return false;
}

static int refuse(const char *what, const char *allowed, const char *p, size_t n)
{
    char shown[96];

    jobq__str_one_line(shown, sizeof(shown), p ? p : "", p ? n : 0);
    return jobq__error_set_subject(
        JOBQ_EINVAL, what, strlen(what), "%s must be %s, got %zu byte%s \"%s%s\"", what, allowed, n,
        jobq__plural((int64_t)n), shown, n >= sizeof(shown) ? "..." : "");
}

static bool is_label(const char *p, size_t n, size_t max)
{
    return p && n >= 1 && n <= max && jobq__utf8_valid(p, n) && !has_control(p, n);
}

int jobq__check_name(const char *p, size_t n)
{
    return is_label(p, n, 255)
               ? 0
               : refuse("job name", "1 to 255 bytes of UTF-8 without control characters", p, n);
}

static bool is_blank_at(const char *p, size_t n, bool end)
{
    static const char *const blanks[] = {" ", "\xc2\xa0", "\xe2\x80\x83", "\xe3\x80\x80"};

    for (size_t i = 0; i < sizeof(blanks) / sizeof(blanks[0]); i++) {
        size_t k = strlen(blanks[i]);

        if (n >= k && memcmp(end ? p + n - k : p, blanks[i], k) == 0)
            return true;
    }
    return false;
}

int jobq__check_queue(const char *p, size_t n)
{
    if (is_label(p, n, 128) && !memchr(p, ',', n) && !is_blank_at(p, n, false) &&
        !is_blank_at(p, n, true))
        return 0;
    return refuse(
        "queue",
        "1 to 128 bytes of UTF-8 without commas, control characters, leading or trailing blanks", p,
        n);
}

static bool is_id_char(char c, bool first)
{
    bool alnum = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

    return alnum || (!first && c != '\0' && strchr("_.:-", c));
}

int jobq__check_id(const char *p, size_t n)
{
    bool good = p && n >= 1 && n < JOBQ__ID_SIZE;

    for (size_t i = 0; good && i < n; i++)
        good = is_id_char(p[i], i == 0);
    return good ? 0
                : refuse("id", "1 to 128 of A-Z a-z 0-9 _ . : - and begin with a letter or digit",
                         p, n);
}

int jobq__check_unique(const char *p, size_t n)
{
    if (p && n >= 1 && n <= 255 && jobq__utf8_valid(p, n) && !memchr(p, '\0', n))
        return 0;
    return refuse("unique key", "1 to 255 bytes of UTF-8 without NUL", p, n);
}

int jobq__check_label(const char *p, size_t n)
{
    return is_label(p, n, 255)
               ? 0
               : refuse("name", "1 to 255 bytes of UTF-8 without control characters", p, n);
}

int jobq__check_path(const char *p, size_t n)
{
    return p && n >= 1 && n <= 4096 && !memchr(p, '\0', n)
               ? 0
               : refuse("path", "1 to 4096 bytes without NUL", p, n);
}

int jobq__check_prefix(const char *p, size_t n)
{
    return is_label(p, n, 128)
               ? 0
               : refuse("prefix", "1 to 128 bytes of UTF-8 without control characters", p, n);
}

/* Names that need no quotes in SQL, and none of the server's own (pg_...). */
int jobq__check_schema(const char *p, size_t n)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    bool fine = p && n >= 1 && n <= 63 && !(p[0] >= '0' && p[0] <= '9') &&
                !(n >= 3 && memcmp(p, "pg_", 3) == 0);

    for (size_t i = 0; i < n && fine; i++)
        fine = p[i] != '\0' && strchr(allowed, p[i]);
    return fine ? 0
                : refuse("schema",
                         "1 to 63 letters, digits and _, not beginning with a digit or pg_", p, n);
}

int jobq__check_output(const char *p, size_t n)
{
    static const char *const words[] = {"auto", "jobs", "summary", "json", "quiet"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (n == strlen(words[i]) && memcmp(p, words[i], n) == 0)
            return 0;
    if (n && memchr(p, '/', n))
        return jobq__check_path(p, n);
    return refuse("output", "auto, jobs, summary, json, quiet, or a path with a slash", p, n);
}
