/* SPDX-License-Identifier: MIT
 *
 * Headers from anywhere: one that is accepted says the same after it was written and read again.
 */
#include "payload/envelope.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static int same_slice(jobq_slice a, jobq_slice b)
{
    return a.n == b.n && (a.n == 0 || !memcmp(a.p, b.p, a.n));
}

static void compare(const jobq__header *a, const jobq__header *b)
{
    must(a->format == b->format && a->has_tries == b->has_tries &&
         a->has_timeout == b->has_timeout);
    must(a->has_backoff == b->has_backoff && a->backoff_exponential == b->backoff_exponential);
    must(a->has_retry_until == b->has_retry_until &&
         a->retry_until_relative == b->retry_until_relative);
    must(a->has_expires == b->has_expires && a->expires_relative == b->expires_relative);
    must(a->drop_expired == b->drop_expired && a->backoff_count == b->backoff_count);
    must(a->tries == b->tries && a->timeout_ms == b->timeout_ms);
    must(a->retry_until_ms == b->retry_until_ms && a->expires_ms == b->expires_ms);
    for (int i = 0; i < (a->backoff_exponential ? 2 : a->backoff_count); i++)
        must(a->backoff_ms[i] == b->backoff_ms[i] && a->backoff_ms[i] >= 0);
    must(a->context_count == b->context_count);
    for (size_t i = 0; i < a->context_count; i++)
        must(same_slice(a->context[i].key, b->context[i].key) &&
             same_slice(a->context[i].value, b->context[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jobq_slice bytes = {data, size};
    jobq__arena arena = {0};
    jobq__buf out = {0};
    jobq__header first = {.format = 7}, second;
    int rc = jobq__envelope_read(bytes, &arena, &first);

    must(rc == 0 || rc == JOBQ_EPAYLOAD || rc == JOBQ_EUNSUPPORTED);
    if (rc == 0) {
        must(jobq__envelope_write(&out, &first) == 0);
        bytes = (jobq_slice){out.p, out.n};
        must(jobq__envelope_read(bytes, &arena, &second) == 0);
        compare(&first, &second);
    } else {
        must(jobq_error_code(jobq_error_last()) == rc);
    }
    jobq__buf_free(&out);
    jobq__arena_free(&arena);
    return 0;
}
