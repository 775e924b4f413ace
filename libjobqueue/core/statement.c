/* SPDX-License-Identifier: MIT
 *
 * Statements of and for callers. See statement.h.
 */
#include "core/statement.h"

#include <string.h>

#include "util/error.h"

enum { TEXT_MAX = 65536, PARAMS_MAX = 100 };

/* ---- those that callers give ----------------------------------------------------------------- */

static int refuse(const char *what, const char *why)
{
    return jobq__error_set_subject(JOBQ_EINVAL, what, strlen(what), "%s: %s", what, why);
}

int jobq__statement_check(const char *what, const jobq_statement *statement)
{
    if (!statement->text.p || statement->text.n < 1 || statement->text.n > TEXT_MAX ||
        memchr(statement->text.p, '\0', statement->text.n))
        return refuse(what, "a statement must have 1 to 65536 bytes without NUL");
    if (statement->param_count > PARAMS_MAX || (statement->param_count && !statement->params))
        return refuse(what, "a statement may have at most 100 params");
    for (size_t i = 0; i < statement->param_count; i++) {
        const jobq_param *p = &statement->params[i];

        if (p->type < JOBQ_PARAM_NULL || p->type > JOBQ_PARAM_BYTES)
            return refuse(what, "a param's type must be one of JOBQ_PARAM_*");
        if (p->type >= JOBQ_PARAM_TEXT && !p->bytes.p && p->bytes.n)
            return refuse(what, "a param's bytes are missing");
    }
    return 0;
}

static bool copy_slice(jobq__arena *arena, jobq_slice *s)
{
    s->p = jobq__arena_copy(arena, s->p ? s->p : "", s->n);
    return s->p != NULL;
}

int jobq__statement_copy(jobq__arena *arena, const jobq_statement *from, jobq_statement *to)
{
    jobq_param *params = jobq__arena_alloc(arena, (from->param_count + 1) * sizeof(*params));

    *to = *from;
    to->params = params;
    if (!params || !copy_slice(arena, &to->text))
        return jobq__error_nomem();
    for (size_t i = 0; i < from->param_count; i++) {
        params[i] = from->params[i];
        if (params[i].type >= JOBQ_PARAM_TEXT && !copy_slice(arena, &params[i].bytes))
            return jobq__error_nomem();
    }
    return 0;
}

/* ---- those that callers get ------------------------------------------------------------------ */

int jobq__placeholders_check(int placeholders)
{
    if (placeholders >= JOBQ_PLACEHOLDER_OWN && placeholders <= JOBQ_PLACEHOLDER_DOLLAR)
        return 0;
    return jobq__error_set_subject(JOBQ_EINVAL, "placeholders", 12,
                                   "placeholders must be one of JOBQ_PLACEHOLDER_*, got %d",
                                   placeholders);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The length of what begins at p and is neither to be looked into nor changed: a quoted text with
 * its quotes (a doubled one inside ends it and begins the next), else one byte. */
static size_t quoted(const char *p, size_t n)
{
    const char *end;

    if (*p != '\'' && *p != '"' && *p != '`')
        return 1;
    end = memchr(p + 1, *p, n - 1);
    return end ? (size_t)(end - p) + 1 : n;
}

/* The length of a placeholder at p: "?", "?12", "$12"; 0: there is none. */
static size_t placeholder(const char *p, size_t n)
{
    size_t length = 1;

    if (*p != '?' && !(*p == '$' && n > 1 && is_digit(p[1])))
        return 0;
    while (length < n && is_digit(p[length]))
        length++;
    return length;
}

static void put_placeholder(jobq__buf *out, int placeholders, size_t number)
{
    if (placeholders == JOBQ_PLACEHOLDER_QUESTION)
        jobq__buf_addc(out, '?');
    else if (placeholders == JOBQ_PLACEHOLDER_FORMAT)
        jobq__buf_adds(out, "%s");
    else
        jobq__buf_addf(out, "$%zu", number);
}

/* As it is, but where % has a meaning of its own, each is doubled. */
static void put_text(jobq__buf *out, int placeholders, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '%' && placeholders == JOBQ_PLACEHOLDER_FORMAT)
            jobq__buf_addc(out, '%');
        jobq__buf_addc(out, p[i]);
    }
}

/* How many placeholders there were. */
static size_t rewrite(jobq__buf *out, int placeholders, const char *p, size_t n)
{
    size_t number = 0, length;

    for (size_t i = 0; i < n; i += length) {
        length = placeholder(p + i, n - i);
        if (length) {
            put_placeholder(out, placeholders, ++number);
            continue;
        }
        length = quoted(p + i, n - i);
        put_text(out, placeholders, p + i, length);
    }
    return number;
}

int jobq__statement_adapt(jobq__arena *arena, int placeholders, jobq_statement *statement)
{
    jobq__buf buf = {0};
    size_t found;
    int rc = 0;

    if (placeholders == JOBQ_PLACEHOLDER_OWN)
        return 0;
    found = rewrite(&buf, placeholders, statement->text.p, statement->text.n);
    if (found != statement->param_count)
        rc = jobq__error_set(JOBQ_EBUG, "the store's statement has %zu placeholders, %zu params",
                             found, statement->param_count);
    else if (buf.failed ||
             !(statement->text.p = jobq__arena_copy(arena, jobq__buf_text(&buf), buf.n)))
        rc = jobq__error_nomem();
    statement->text.n = buf.n;
    jobq__buf_free(&buf);
    return rc;
}
