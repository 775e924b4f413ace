/* SPDX-License-Identifier: MIT
 *
 * The first pass over JSON: counts the values in every bracket, since a container's token tells how
 * many follow, and checks that brackets match and strings end. What the values are is
 * json_reader.c's business.
 */
#include <string.h>

#include "payload/json_reader.h"

/* A map with other than string keys is three brackets deep; one more for a form inside. */
enum { BRACKETS_MAX = 3 * JOBQ_MAX_DEPTH + 2 };

typedef struct {
    uint32_t bracket; /* its entry in counts */
    uint32_t commas;
    bool value; /* something stands behind the last comma */
    char closer;
} counted;

/* Position behind the string literal that begins at `at`, 0 when it does not end. */
size_t jobq__json_skip_string(const jobq_reader *r, size_t at)
{
    for (at++; at < r->n; at++) {
        if (r->p[at] == '"')
            return at + 1;
        at += r->p[at] == '\\';
    }
    return 0;
}

static int open_bracket(jobq_reader *r, counted *stack, int *depth, size_t at)
{
    static const uint32_t nothing = 0;

    if (*depth > 0)
        stack[*depth - 1].value = true;
    if (*depth == BRACKETS_MAX)
        return jobq__reader_fail(r, JOBQ_PROBLEM_TOO_DEEP, at,
                                 "more than 64 lists and maps inside one another");
    stack[*depth] = (counted){.bracket = (uint32_t)(r->counts.n / sizeof(uint32_t)),
                              .closer = r->p[at] == '{' ? '}' : ']'};
    ++*depth;
    jobq__buf_add(&r->counts, &nothing, sizeof(nothing));
    return r->counts.failed ? jobq__reader_nomem(r) : 0;
}

static int close_bracket(jobq_reader *r, const counted *stack, int *depth, size_t at)
{
    const counted *top = &stack[*depth - 1];
    uint32_t count;

    if (*depth == 0 || top->closer != r->p[at])
        return jobq__json_malformed(r, at, "a closing bracket without its opening one");
    if (top->commas > 0 && !top->value)
        return jobq__json_malformed(r, at, "a value is missing behind a ','");
    count = top->commas + top->value;
    memcpy(r->counts.p + top->bracket * sizeof(count), &count, sizeof(count));
    --*depth;
    return 0;
}

static int count_comma(jobq_reader *r, counted *top, size_t at)
{
    if (!top->value)
        return jobq__json_malformed(r, at, "a value is missing before a ','");
    top->commas++;
    top->value = false;
    return 0;
}

/* One character outside strings; moves *at. */
static int count_one(jobq_reader *r, counted *stack, int *depth, size_t *at)
{
    char c = r->p[*at];

    if (c == '{' || c == '[')
        return open_bracket(r, stack, depth, (*at)++);
    if (c == '}' || c == ']')
        return close_bracket(r, stack, depth, (*at)++);
    if (*depth > 0 && c == ',')
        return count_comma(r, &stack[*depth - 1], (*at)++);
    if (*depth > 0 && !jobq__json_blank(c))
        stack[*depth - 1].value = true;
    if (c != '"') {
        ++*at;
        return 0;
    }
    *at = jobq__json_skip_string(r, *at);
    return *at ? 0 : jobq__json_truncated(r, "a string is not closed");
}

int jobq__json_count(jobq_reader *r)
{
    counted stack[BRACKETS_MAX];
    int depth = 0, rc = 0;
    size_t at = 0;

    while (at < r->n && rc == 0)
        rc = count_one(r, stack, &depth, &at);
    if (rc == 0 && depth > 0)
        return jobq__json_truncated(r, "a list or object is not closed");
    return rc;
}
