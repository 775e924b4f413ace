/* SPDX-License-Identifier: MIT
 *
 * Reading a DSN, and showing one without its password. Pure: no environment, no files, no network.
 *
 *     scheme:path?options                                sqlite:queue.db
 *     scheme://[user[:password]@]host[:port][/path]?...  redis://:secret@10.0.0.1:6379/0
 *     scheme:///path?options                             sqlite:///var/lib/app/queue.db
 *
 * Several hosts (h1:1,h2:2) stay together in `host`. With an authority the path loses its leading
 * slash. Parts are percent-decoded after they were cut out. Messages never repeat the text: it may
 * hold a password.
 */
#include <string.h>
#include <strings.h>

#include "driver/driver.h"
#include "util/error.h"
#include "util/str.h"

enum { SCHEME_MAX = 32, PORT_MAX = 65535 };

static int refuse(const char *scheme, const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0, "the %s dsn %s", scheme, what);
}

static size_t scheme_length(const char *dsn)
{
    size_t n = strspn(dsn, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

    return n > 0 && n <= SCHEME_MAX && dsn[n] == ':' ? n : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies into the arena with %XX resolved; NUL-terminated.
 * False: malformed (or no memory, p absent). */
static bool decode(jobq__arena *arena, const char *p, size_t n, jobq_slice *out)
{
    char *text = jobq__arena_alloc(arena, n + 1);
    size_t used = 0;

    out->p = NULL;
    if (!text)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high, low;

        if (p[i] != '%') {
            text[used++] = p[i];
            continue;
        }
        high = n - i > 2 ? hex_digit(p[i + 1]) : -1;
        low = high >= 0 ? hex_digit(p[i + 2]) : -1;
        if (low < 0 || (high == 0 && low == 0))
            return false;
        text[used++] = (char)(high * 16 + low);
        i += 2;
    }
    *out = jobq__slice(text, used);
    return true;
}

/* The parts as they stand in the text, still encoded. */
typedef struct {
    const char *scheme, *user, *password, *host, *path, *query;
    size_t scheme_n, user_n, password_n, host_n, path_n;
} dsn_parts;

static void split_user(dsn_parts *parts, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n);

    parts->user = p;
    parts->user_n = colon ? (size_t)(colon - p) : n;
    if (colon) {
        parts->password = colon + 1;
        parts->password_n = n - parts->user_n - 1;
    }
}

static const char *last_at(const char *p, size_t n)
{
    while (n > 0)
        if (p[--n] == '@')
            return p + n;
    return NULL;
}

static void split(const char *dsn, size_t scheme_n, dsn_parts *parts)
{
    const char *rest = dsn + scheme_n + 1, *at;
    size_t n = strcspn(rest, "?");

    memset(parts, 0, sizeof(*parts));
    parts->scheme = dsn;
    parts->scheme_n = scheme_n;
    parts->query = rest[n] == '?' ? rest + n + 1 : NULL;
    if (n >= 2 && rest[0] == '/' && rest[1] == '/') {
        rest += 2;
        n -= 2;
        parts->host = rest;
        parts->host_n = strcspn(rest, "/?");
        at = last_at(parts->host, parts->host_n);
        if (at) {
            split_user(parts, rest, (size_t)(at - rest));
            parts->host_n -= (size_t)(at + 1 - rest);
            parts->host = at + 1;
        }
        n -= (size_t)(parts->host + parts->host_n - rest);
        rest = parts->host + parts->host_n;
        if (n > 0 && (parts->host_n > 0 || parts->user)) {
            rest++; /* behind an authority the slash only separates */
            n--;
        }
    }
    parts->path = rest;
    parts->path_n = n;
}

/* ":6379", or nothing: 0. False: no port. */
static bool read_port(const char *p, size_t n, int *port_out)
{
    int64_t port = 0;

    if (n == 0)
        return true;
    if (p[0] != ':' || !jobq__str_int(p + 1, n - 1, &port) || port < 1 || port > PORT_MAX)
        return false;
    *port_out = (int)port;
    return true;
}

/* Takes the port off a single host; several hosts keep theirs. [::1]:6379 loses its brackets. */
static bool split_port(dsn_parts *parts, int *port_out)
{
    const char *p = parts->host, *close, *colon;
    size_t n = parts->host_n, host_n;

    if (!p || n == 0 || memchr(p, ',', n))
        return true;
    close = p[0] == '[' ? memchr(p, ']', n) : NULL;
    colon = p[0] == '[' ? close ? close + 1 : NULL : memchr(p, ':', n);
    if (p[0] == '[' && !close)
        return false;
    host_n = colon ? (size_t)(colon - p) : n;
    if (!read_port(p + host_n, n - host_n, port_out))
        return false;
    parts->host = close ? p + 1 : p;
    parts->host_n = close ? host_n - 2 : host_n;
    return true;
}

static int decode_parts(const dsn_parts *parts, const char *scheme, jobq__arena *arena,
                        jobq_driver_config *config)
{
    const struct {
        const char *p;
        size_t n;
        jobq_slice *out;
        const char *problem;
    } rows[] = {
        {parts->user, parts->user_n, &config->user, "has a malformed %XX in the user name"},
        {parts->password, parts->password_n, &config->password,
         "has a malformed %XX in the password"},
        {parts->host, parts->host_n, &config->host, "has a malformed %XX in the host"},
        {parts->path, parts->path_n, &config->path, "has a malformed %XX in the path"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].p && !decode(arena, rows[i].p, rows[i].n, rows[i].out))
            return refuse(scheme, rows[i].problem);
    return 0;
}

typedef int (*option_fn)(void *payload, const char *name, const char *value, size_t n);

static int read_option(const char *p, size_t n, const char *scheme, jobq__arena *arena,
                       option_fn option, void *payload)
{
    const char *equals = memchr(p, '=', n);
    jobq_slice name, value;

    if (n == 0)
        return 0;
    if (!equals || equals == p)
        return refuse(scheme, "has an option that is not of the form name=value");
    if (!decode(arena, p, (size_t)(equals - p), &name) ||
        !decode(arena, equals + 1, n - (size_t)(equals - p) - 1, &value))
        return refuse(scheme, "has a malformed %XX in an option");
    return option ? option(payload, name.p, value.p, value.n) : 0;
}

/* Does an option of that name stand before it? Which of the two was meant nobody knows. */
static bool stands_before(const char *query, const char *option)
{
    const size_t name_n = strcspn(option, "=&");

    for (const char *p = query; p < option; p += strcspn(p, "&") + 1)
        if (strcspn(p, "=&") == name_n && memcmp(p, option, name_n) == 0)
            return true;
    return false;
}

static int read_query(const char *query, const char *scheme, jobq__arena *arena, option_fn option,
                      void *payload)
{
    const char *const first = query;

    while (query && *query) {
        size_t n = strcspn(query, "&");
        int rc = n && stands_before(first, query)
                     ? refuse(scheme, "has an option twice")
                     : read_option(query, n, scheme, arena, option, payload);

        if (rc < 0)
            return rc;
        query += n;
        query += *query == '&';
    }
    return 0;
}

/* Its case says nothing (RFC 3986, 3.1): drivers see small letters. */
static const char *copy_scheme(const char *dsn, size_t n, jobq__arena *arena)
{
    char *scheme = jobq__arena_copy(arena, dsn, n);

    for (size_t i = 0; scheme && i < n; i++)
        if (scheme[i] >= 'A' && scheme[i] <= 'Z')
            scheme[i] = (char)(scheme[i] - 'A' + 'a');
    return scheme;
}

int jobq__dsn_parse(const char *dsn, jobq__arena *arena, jobq_driver_config *config,
                    int (*option)(void *payload, const char *name, const char *value, size_t n),
                    void *payload)
{
    size_t scheme_n = scheme_length(dsn);
    jobq_driver_config made;
    dsn_parts parts;
    int rc;

    if (scheme_n == 0)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                      "the dsn has no scheme (allowed: sqlite:FILE, "
                                      "sqlite:///PATH, memory:, SCHEME://HOST/...)");
    memset(&made, 0, sizeof(made));
    split(dsn, scheme_n, &parts);
    made.scheme = copy_scheme(dsn, scheme_n, arena);
    if (!made.scheme)
        return jobq__error_nomem();
    if (!split_port(&parts, &made.port))
        return refuse(made.scheme, strchr(parts.host + parts.host_n, '@')
                                       ? "has a bad port, or a password that is not "
                                         "percent-encoded (/ is written %2F, ? is %3F)"
                                       : "has a bad port (allowed: 1 to 65535)");
    rc = decode_parts(&parts, made.scheme, arena, &made);
    if (rc == 0)
        rc = read_query(parts.query, made.scheme, arena, option, payload);
    if (rc == 0)
        *config = made;
    return rc;
}

static bool is_secret(const char *p, size_t n)
{
    static const char *const words[] = {"password", "passwd", "pass",        "pwd",
                                        "secret",   "auth",   "sslpassword", "token"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == n && strncasecmp(p, words[i], n) == 0)
            return true;
    return false;
}

static void mask_query(jobq__buf *out, const char *query)
{
    while (*query) {
        size_t n = strcspn(query, "&"), name_n = strcspn(query, "=&");

        if (name_n < n && is_secret(query, name_n)) {
            jobq__buf_add(out, query, name_n);
            jobq__buf_adds(out, "=***");
        } else {
            jobq__buf_add(out, query, n);
        }
        query += n;
        if (*query == '&')
            jobq__buf_addc(out, *query++);
    }
}

/* Masks generously: from the first colon behind the scheme to the last '@' before the query, so
 * that a password with a stray '/' or '@' does not leak. */
static void mask_into(jobq__buf *out, const char *dsn)
{
    size_t scheme_n = scheme_length(dsn), n = strcspn(dsn, "?");
    const char *rest = scheme_n ? dsn + scheme_n + 1 : dsn, *at, *colon;

    at = last_at(dsn, n);
    if (!at && last_at(dsn, strlen(dsn)))
        at = memchr(rest, ':', n - (size_t)(rest - dsn)) ? last_at(dsn, strlen(dsn)) : NULL;
    colon = at && at > rest ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    if (colon) {
        jobq__buf_add(out, dsn, (size_t)(colon + 1 - dsn));
        jobq__buf_adds(out, "***");
        dsn = at;
    }
    n = strcspn(dsn, "?");
    jobq__buf_add(out, dsn, n);
    if (dsn[n] == '?') {
        jobq__buf_addc(out, '?');
        mask_query(out, dsn + n + 1);
    }
}

const char *jobq__dsn_mask(const char *dsn, jobq__arena *arena)
{
    jobq__buf text = {0};
    const char *shown;

    mask_into(&text, dsn);
    shown = text.failed ? NULL : jobq__arena_copy(arena, text.p, text.n);
    jobq__buf_free(&text);
    return shown ? shown : "***";
}
