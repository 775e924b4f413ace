/* SPDX-License-Identifier: MIT
 *
 * Streaming access to payloads: no value tree in between. The bytes are msgpack (shortest forms)
 * or, for bodies pushed by SQL or by hand, JSON; the reader serves both. doc/payload.md has the
 * layout.
 */
#ifndef JOBQUEUE_PAYLOAD_H
#define JOBQUEUE_PAYLOAD_H

#include <jobqueue/error.h>

JOBQ_BEGIN_DECLS

#define JOBQ_MAX_DEPTH 64 /* containers inside one another */

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct jobq_writer jobq_writer;

/* A writer of its own, growing up to `max` bytes. NULL when out of memory. @since 0.1 */
JOBQ_API jobq_writer *jobq_writer_new(size_t max);
JOBQ_API void jobq_writer_free(jobq_writer *w);
JOBQ_API void jobq_writer_reset(jobq_writer *w);

/* One value each. The first error sticks: later calls return it and do nothing, so a caller may
 * check once at the end. JOBQ_EPAYLOAD: depth, a key that is neither string nor integer, a string
 * that is not UTF-8; JOBQ_ELIMIT: more than `max` bytes. A container is followed by its n values
 * (map: n times key, value); nothing closes it. */
JOBQ_API int jobq_writer_nil(jobq_writer *w);
JOBQ_API int jobq_writer_bool(jobq_writer *w, bool value);
JOBQ_API int jobq_writer_int(jobq_writer *w, int64_t value);
JOBQ_API int jobq_writer_uint(jobq_writer *w, uint64_t value);
JOBQ_API int jobq_writer_double(jobq_writer *w, double value);
JOBQ_API int jobq_writer_str(jobq_writer *w, const char *p, size_t n);
JOBQ_API int jobq_writer_bytes(jobq_writer *w, const void *p, size_t n);
JOBQ_API int jobq_writer_list(jobq_writer *w, size_t n);
JOBQ_API int jobq_writer_map(jobq_writer *w, size_t n);
JOBQ_API int jobq_writer_time(jobq_writer *w, int64_t seconds, uint32_t nanoseconds);

/* The bytes so far (borrowed until the next call on w); JOBQ_EPAYLOAD when values are still owed or
 * none was written, or the error that stuck. */
JOBQ_API int jobq_writer_finish(jobq_writer *w, const void **p_out, size_t *n_out);

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct jobq_reader jobq_reader;

typedef enum {
    JOBQ_NIL,
    JOBQ_BOOL,
    JOBQ_INT,
    JOBQ_UINT, /* UINT only above INT64_MAX */
    JOBQ_DOUBLE,
    JOBQ_STR,
    JOBQ_BYTES,
    JOBQ_LIST,
    JOBQ_MAP,
    JOBQ_TIME
} jobq_kind;

/* One value or container head. Part of the ABI; never grows. */
typedef struct {
    jobq_kind kind;
    bool key; /* this token is a map's key (STR, INT or UINT) */
    union {
        bool boolean;
        int64_t integer;
        uint64_t unsigned_integer;
        double number;
        size_t count; /* LIST: values, MAP: pairs that follow */
        /* STR, BYTES: borrowed from the input or reader */
        struct {
            const char *p;
            size_t n;
        } text;
        struct {
            int64_t seconds;
            uint32_t nanoseconds;
        } time;
    } as;
} jobq_token;

enum { JOBQ_FORMAT_MSGPACK = 0, JOBQ_FORMAT_JSON = 1 };

/* Why a body was refused (`jobq_reader_problem`). */
typedef enum {
    JOBQ_PROBLEM_NONE,
    JOBQ_PROBLEM_TRUNCATED,
    JOBQ_PROBLEM_TRAILING,
    JOBQ_PROBLEM_MALFORMED,
    JOBQ_PROBLEM_TOO_DEEP
} jobq_problem;

/* A reader over bytes that stay the caller's and must outlive it. NULL when out of memory.
 * @since 0.1 */
JOBQ_API jobq_reader *jobq_reader_new(void);
JOBQ_API void jobq_reader_free(jobq_reader *r);
JOBQ_API void jobq_reader_open(jobq_reader *r, int format, const void *p, size_t n);

/* 1: *token is the next one; 0: the one value has been read whole and nothing trails;
 * JOBQ_EPAYLOAD: refused (also duplicate keys, and an integer and a string key of the same digits
 * in one map). Trusts nothing: memory <= 64 x input + 64 KiB. */
JOBQ_API int jobq_reader_next(jobq_reader *r, jobq_token *token);
JOBQ_API jobq_problem jobq_reader_problem(const jobq_reader *r);

/* Reads the whole body and throws the values away: 0 or JOBQ_EPAYLOAD / JOBQ_ENOMEM. */
JOBQ_API int jobq_payload_check(int format, const void *p, size_t n);

/* ---- JSON form (show, --exec, push on the command line; forms in doc/payload.md) ------------- */

/* The body as JSON text, NUL-terminated, freed with jobq_text_free. */
JOBQ_API int jobq_payload_to_json(int format, const void *p, size_t n, char **text_out,
                                  size_t *n_out);
/* Appends the one JSON value in the text to the writer. */
JOBQ_API int jobq_payload_from_json(jobq_writer *w, const char *text, size_t n);
JOBQ_API void jobq_text_free(char *text); /* NULL is fine */

JOBQ_END_DECLS
#endif
