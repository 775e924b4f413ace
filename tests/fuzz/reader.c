/* SPDX-License-Identifier: MIT
 *
 * Bodies from anywhere: the first byte chooses the format, the rest is read. What is accepted must
 * come out the same through writer, JSON text and back; what is refused must be refused by every
 * way of reading.
 */
#include <jobqueue/payload.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static int write_token(jobq_writer *w, const jobq_token *t)
{
    switch (t->kind) {
    case JOBQ_NIL:
        return jobq_writer_nil(w);
    case JOBQ_BOOL:
        return jobq_writer_bool(w, t->as.boolean);
    case JOBQ_INT:
        return jobq_writer_int(w, t->as.integer);
    case JOBQ_UINT:
        must(t->as.unsigned_integer > INT64_MAX);
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
    abort();
}

static void check_refused(int format, const uint8_t *body, size_t n, const jobq_reader *r)
{
    char *text;
    size_t length;

    must(jobq_error_code(jobq_error_last()) == JOBQ_EPAYLOAD &&
         jobq_reader_problem(r) != JOBQ_PROBLEM_NONE);
    must(jobq_payload_check(format, body, n) == JOBQ_EPAYLOAD);
    must(jobq_payload_to_json(format, body, n, &text, &length) == JOBQ_EPAYLOAD);
}

static void check_accepted(int format, const uint8_t *body, size_t n, jobq_writer *w, int has_nan)
{
    jobq_writer *again = jobq_writer_new(256 << 20);
    const void *bytes, *bytes_again;
    size_t length, length_again, text_length;
    char *text;

    must(jobq_payload_check(format, body, n) == 0);
    must(jobq_writer_finish(w, &bytes, &length) == 0);
    must(format == JOBQ_FORMAT_JSON || length <= 2 * n); /* a float becomes a double */
    must(jobq_payload_to_json(format, body, n, &text, &text_length) == 0);
    must(text[text_length] == '\0' && strlen(text) == text_length);
    must(jobq_payload_from_json(again, text, text_length) == 0);
    must(jobq_writer_finish(again, &bytes_again, &length_again) == 0);
    must(length == length_again && (has_nan || !memcmp(bytes, bytes_again, length)));
    jobq_text_free(text);
    jobq_writer_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int format = size && (data[0] & 1) ? JOBQ_FORMAT_JSON : JOBQ_FORMAT_MSGPACK, rc, has_nan = 0;
    jobq_reader *r = jobq_reader_new();
    jobq_writer *w = jobq_writer_new(256 << 20);
    size_t n = size ? size - 1 : 0;
    const uint8_t *body = data + (size ? 1 : 0);
    jobq_token t;

    jobq_reader_open(r, format, body, n);
    while ((rc = jobq_reader_next(r, &t)) > 0) {
        must(t.kind != JOBQ_LIST || t.as.count <= n);
        must(t.kind != JOBQ_MAP || t.as.count <= n / 2);
        must(write_token(w, &t) == 0);
        has_nan |= t.kind == JOBQ_DOUBLE && isnan(t.as.number);
    }
    must(jobq_reader_next(r, &t) == rc);
    if (rc < 0)
        check_refused(format, body, n, r);
    else
        check_accepted(format, body, n, w, has_nan);
    jobq_reader_free(r);
    jobq_writer_free(w);
    return 0;
}
