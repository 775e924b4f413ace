/* SPDX-License-Identifier: MIT
 *
 * The envelope header: what travels beside the body and is not a plain field of the store: the
 * body's format, the options given at push, the context. Layout in doc/payload.md:
 *
 *     byte 0  protocol version (1)      a newer one is parked, never dead
 *     byte 1  body format: 'm' msgpack, 'j' JSON
 *     rest    nothing, or one msgpack map (or JSON object) of options and context
 *
 * An absent or empty header means version 1, msgpack, nothing more. Unknown keys of the map are
 * kept by never rewriting a header.
 */
#ifndef JOBQ_PAYLOAD_ENVELOPE_H
#define JOBQ_PAYLOAD_ENVELOPE_H

#include <jobqueue/payload.h>
#include <jobqueue/sys/driver.h>

#include "util/buf.h"

enum { JOBQ__ENVELOPE_VERSION = 1, JOBQ__CONTEXT_MAX = 8192, JOBQ__ENVELOPE_BACKOFF = 16 };

typedef struct {
    jobq_slice key, value;
} jobq__pair;

/* Each has_ flag says that it was given at push. Spans in milliseconds. */
typedef struct {
    int format; /* JOBQ_FORMAT_* */
    bool has_tries, has_timeout, has_backoff, has_retry_until, has_expires;
    bool backoff_exponential, retry_until_relative, expires_relative, drop_expired;
    bool track, until_started; /* what becomes of it concerns others, too */
    uint8_t backoff_count;
    int64_t tries, timeout_ms, retry_until_ms, expires_ms;
    int64_t idempotent_for_ms; /* 0 = its id is not remembered */
    int64_t backoff_ms[JOBQ__ENVELOPE_BACKOFF];
    const jobq__pair *context;
    size_t context_count;
} jobq__header;

/* Appends the header's bytes; the shortest form when nothing but the format is set. JOBQ_ENOMEM. */
int jobq__envelope_write(jobq__buf *out, const jobq__header *h);
/* Reads one; context slices point into `bytes` or the arena. JOBQ_EUNSUPPORTED: a newer protocol
 * version; JOBQ_EPAYLOAD: malformed. The format is set whenever byte 1 could be read. */
int jobq__envelope_read(jobq_slice bytes, jobq__arena *arena, jobq__header *h_out);

#endif
