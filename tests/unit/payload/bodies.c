/* SPDX-License-Identifier: MIT
 *
 * Helpers of the payload suites.
 */
#include "unit/payload/bodies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

void body_from_hex(jobq__buf *out, const char *hex, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        char pair[3] = {hex[i], hex[i + 1], '\0'};

        jobq__buf_addc(out, (char)strtoul(pair, NULL, 16));
    }
}

static void add_text(jobq__buf *out, char mark, const jobq_token *t)
{
    jobq__buf_addf(out, "%c%zu:", mark, t->as.text.n);
    jobq__buf_add(out, t->as.text.p, t->as.text.n);
}

static void add_token(jobq__buf *out, const jobq_token *t)
{
    uint64_t bits;

    if (t->key)
        jobq__buf_adds(out, "key ");
    switch (t->kind) {
    case JOBQ_NIL:
        jobq__buf_adds(out, "nil");
        break;
    case JOBQ_BOOL:
        jobq__buf_adds(out, t->as.boolean ? "true" : "false");
        break;
    case JOBQ_INT:
        jobq__buf_addf(out, "i%" PRId64, t->as.integer);
        break;
    case JOBQ_UINT:
        jobq__buf_addf(out, "u%" PRIu64, t->as.unsigned_integer);
        break;
    case JOBQ_DOUBLE:
        memcpy(&bits, &t->as.number, 8);
        jobq__buf_addf(out, "d%016" PRIx64, bits);
        break;
    case JOBQ_STR:
        add_text(out, 's', t);
        break;
    case JOBQ_BYTES:
        add_text(out, 'b', t);
        break;
    case JOBQ_LIST:
        jobq__buf_addf(out, "[%zu]", t->as.count);
        break;
    case JOBQ_MAP:
        jobq__buf_addf(out, "{%zu}", t->as.count);
        break;
    case JOBQ_TIME:
        jobq__buf_addf(out, "t%" PRId64 ".%09" PRIu32, t->as.time.seconds, t->as.time.nanoseconds);
        break;
    }
    jobq__buf_addc(out, ' ');
}

int body_tokens(jobq__buf *out, int format, const void *p, size_t n, jobq_problem *problem_out)
{
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    int rc;

    assert_non_null(r);
    jobq_reader_open(r, format, p, n);
    while ((rc = jobq_reader_next(r, &t)) > 0)
        add_token(out, &t);
    if (problem_out)
        *problem_out = jobq_reader_problem(r);
    jobq_reader_free(r);
    return rc;
}

int body_write(jobq_writer *w, const jobq_token *t)
{
    switch (t->kind) {
    case JOBQ_NIL:
        return jobq_writer_nil(w);
    case JOBQ_BOOL:
        return jobq_writer_bool(w, t->as.boolean);
    case JOBQ_INT:
        return jobq_writer_int(w, t->as.integer);
    case JOBQ_UINT:
        return jobq_writer_uint(w, t->as.unsigned_integer);
    case JOBQ_DOUBLE:
        return jobq_writer_double(w, t->as.number);
    case JOBQ_STR:
        return jobq_writer_str(w, t->as.text.p, t->as.text.n);
    case JOBQ_BYTES:
        return jobq_writer_bytes(w, t->as.text.p, t->as.text.n);
    case JOBQ_LIST:
        return jobq_writer_list(w, t->as.count);
    case JOBQ_MAP:
        return jobq_writer_map(w, t->as.count);
    case JOBQ_TIME:
        return jobq_writer_time(w, t->as.time.seconds, t->as.time.nanoseconds);
    }
    return JOBQ_EBUG;
}

int body_rewrite(jobq_writer *w, int format, const void *p, size_t n)
{
    jobq_reader *r = jobq_reader_new();
    jobq_token t;
    int rc = r ? 0 : JOBQ_ENOMEM;

    jobq_writer_reset(w);
    if (r)
        jobq_reader_open(r, format, p, n);
    while (rc >= 0 && (rc = jobq_reader_next(r, &t)) > 0)
        rc = body_write(w, &t);
    jobq_reader_free(r);
    return rc;
}

void body_load(jobq__buf *out, const char *path)
{
    const char *root = getenv("JOBQ_SRCDIR");
    char full[4096], block[65536];
    size_t n;
    FILE *f;

    snprintf(full, sizeof(full), "%s%s%s", root && path[0] != '/' ? root : "",
             root && path[0] != '/' ? "/" : "", path);
    f = fopen(full, "rb");
    if (!f)
        print_error("cannot read %s (JOBQ_SRCDIR names the source root)\n", full);
    assert_non_null(f);
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        jobq__buf_add(out, block, n);
    fclose(f);
}

uint64_t body_seed(void)
{
    const char *given = getenv("JOBQ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261130;

    print_message("# seed: JOBQ_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}
