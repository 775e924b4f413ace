/* SPDX-License-Identifier: MIT
 *
 * Statements from anywhere: judged, copied, and rewritten for each client's placeholders. The first
 * byte is how many values there are said to be.
 */
#include "core/statement.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 110 };

static void must(int condition)
{
    if (!condition)
        abort();
}

/* As many bytes of values as there are bytes left, dealt out. */
static void make_params(jobq_param *params, size_t n, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        const size_t length = size ? data[i % size] % (size + 1) : 0;

        params[i] = (jobq_param){
            .type = size ? data[i % size] % 5 : 0, .integer = (int64_t)i, .bytes = {data, length}};
    }
}

/* Written once more for the same client nothing changes but what was doubled for it. */
static void try_adapt(jobq__arena *arena, const jobq_statement *s)
{
    for (int kind = JOBQ_PLACEHOLDER_OWN; kind <= JOBQ_PLACEHOLDER_DOLLAR; kind++) {
        jobq_statement one = *s, two;
        int rc = jobq__statement_adapt(arena, kind, &one);

        must(rc == 0 || rc == JOBQ_EBUG);
        if (rc < 0 || kind == JOBQ_PLACEHOLDER_FORMAT)
            continue;
        two = one;
        must(jobq__statement_adapt(arena, kind, &two) == 0);
        must(one.text.n == two.text.n && !memcmp(one.text.p, two.text.p, one.text.n));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jobq_param params[MOST];
    jobq__arena arena = {0};
    jobq_statement s = {.params = params}, copy;
    int rc;

    if (size < 1)
        return 0;
    s.param_count = data[0] % MOST;
    s.text = jobq__slice(data + 1, size - 1);
    make_params(params, s.param_count, data + 1, size - 1);
    rc = jobq__statement_check("guard", &s);
    must(rc == 0 || jobq_error_code(jobq_error_last()) == rc);
    if (rc == 0) {
        must(jobq__statement_copy(&arena, &s, &copy) == 0);
        must(copy.text.n == s.text.n && !memcmp(copy.text.p, s.text.p, s.text.n));
        must(copy.param_count == s.param_count && copy.params != s.params);
        try_adapt(&arena, &copy);
    }
    jobq__arena_free(&arena);
    return 0;
}
