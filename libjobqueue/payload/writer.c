/* SPDX-License-Identifier: MIT
 *
 * The streaming writer: counts what containers are owed, refuses what no reader would take, and
 * leaves the bytes to msgpack-c's packer, which gives the shortest forms.
 */
#include <jobqueue/payload.h>

#include <msgpack.h>
#include <string.h>

#include "payload/writer.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/error.h"
#include "util/str.h"

typedef struct {
    uint64_t left; /* values owed; a map's keys count too, so an even number means a key is next */
    bool map;
} open_container;

struct jobq_writer {
    jobq__buf out;
    size_t max;
    int code; /* sticks once set; 0 = fine */
    int depth;
    bool begun;
    msgpack_packer packer;
    open_container open[JOBQ_MAX_DEPTH];
    struct jobq_error error; /* the one that stuck */
};

static int stick(jobq_writer *w, int code)
{
    w->code = code;
    jobq__error_save(&w->error);
    return code;
}

static int fail_payload(jobq_writer *w, const char *what)
{
    return stick(w, jobq__error_set(JOBQ_EPAYLOAD, "payload: %s", what));
}

static int fail_size(jobq_writer *w)
{
    return stick(w, jobq__error_set(JOBQ_ELIMIT, "payload: more than %zu bytes", w->max));
}

/* Called by the packer. */
static int append(void *data, const char *p, size_t n)
{
    jobq_writer *w = data;

    if (w->code)
        return -1;
    if (n > w->max - w->out.n) {
        fail_size(w);
        return -1;
    }
    jobq__buf_add(&w->out, p, n);
    if (w->out.failed)
        stick(w, jobq__error_nomem());
    return w->code ? -1 : 0;
}

jobq_writer *jobq_writer_new(size_t max)
{
    jobq_writer *w;

    jobq__error_clear();
    w = jobq__zalloc(sizeof(*w));
    if (!w) {
        jobq__error_nomem();
        return NULL;
    }
    w->max = max;
    msgpack_packer_init(&w->packer, w, append);
    return w;
}

void jobq_writer_free(jobq_writer *w)
{
    if (!w)
        return;
    jobq__buf_free(&w->out);
    jobq__free(w);
}

void jobq_writer_reset(jobq_writer *w)
{
    jobq__buf_reset(&w->out);
    w->code = w->depth = 0;
    w->begun = false;
}

static void close_full(jobq_writer *w)
{
    while (w->depth && w->open[w->depth - 1].left == 0)
        w->depth--;
}

enum { ANY_PLACE, NOT_A_KEY };

/* Makes room for one value in the innermost container. */
static int begin(jobq_writer *w, int place)
{
    open_container *top;

    jobq__error_clear();
    if (w->code)
        return jobq__error_restore(&w->error);
    close_full(w);
    if (w->depth == 0) {
        if (w->begun)
            return fail_payload(w, "a second value after the first was complete");
        w->begun = true;
        return 0;
    }
    top = &w->open[w->depth - 1];
    if (place == NOT_A_KEY && top->map && !(top->left & 1))
        return fail_payload(w, "a map's key must be a string or an integer");
    top->left--;
    return 0;
}

int jobq_writer_nil(jobq_writer *w)
{
    if (begin(w, NOT_A_KEY) == 0)
        msgpack_pack_nil(&w->packer);
    return w->code;
}

int jobq_writer_bool(jobq_writer *w, bool value)
{
    if (begin(w, NOT_A_KEY) == 0)
        value ? msgpack_pack_true(&w->packer) : msgpack_pack_false(&w->packer);
    return w->code;
}

int jobq_writer_int(jobq_writer *w, int64_t value)
{
    if (begin(w, ANY_PLACE) == 0)
        msgpack_pack_int64(&w->packer, value);
    return w->code;
}

int jobq_writer_uint(jobq_writer *w, uint64_t value)
{
    if (begin(w, ANY_PLACE) == 0)
        msgpack_pack_uint64(&w->packer, value);
    return w->code;
}

int jobq_writer_double(jobq_writer *w, double value)
{
    if (begin(w, NOT_A_KEY) == 0)
        msgpack_pack_double(&w->packer, value);
    return w->code;
}

/* A length or count that cannot fit is refused before its head is written. */
static bool too_long(const jobq_writer *w, size_t n)
{
    return n > UINT32_MAX || n > w->max - w->out.n;
}

int jobq_writer_str(jobq_writer *w, const char *p, size_t n)
{
    int rc = begin(w, ANY_PLACE);

    if (rc < 0)
        return rc;
    if (too_long(w, n))
        return fail_size(w);
    if (!jobq__utf8_valid(p, n))
        return fail_payload(w, "a string is not valid utf-8");
    msgpack_pack_str(&w->packer, n);
    if (n)
        msgpack_pack_str_body(&w->packer, p, n);
    return w->code;
}

int jobq_writer_bytes(jobq_writer *w, const void *p, size_t n)
{
    int rc = begin(w, NOT_A_KEY);

    if (rc < 0)
        return rc;
    if (too_long(w, n))
        return fail_size(w);
    msgpack_pack_bin(&w->packer, n);
    if (n)
        msgpack_pack_bin_body(&w->packer, p, n);
    return w->code;
}

static int begin_container(jobq_writer *w, size_t n, bool map)
{
    int rc = begin(w, NOT_A_KEY);

    if (rc < 0)
        return rc;
    if (too_long(w, n))
        return fail_size(w);
    if (w->depth == JOBQ_MAX_DEPTH)
        return fail_payload(w, "more than 64 lists and maps inside one another");
    w->open[w->depth].left = map ? (uint64_t)n * 2 : n;
    w->open[w->depth].map = map;
    w->depth++;
    return 0;
}

int jobq_writer_list(jobq_writer *w, size_t n)
{
    if (begin_container(w, n, false) == 0)
        msgpack_pack_array(&w->packer, n);
    return w->code;
}

int jobq_writer_map(jobq_writer *w, size_t n)
{
    if (begin_container(w, n, true) == 0)
        msgpack_pack_map(&w->packer, n);
    return w->code;
}

int jobq_writer_time(jobq_writer *w, int64_t seconds, uint32_t nanoseconds)
{
    msgpack_timestamp time = {seconds, nanoseconds};
    int rc = begin(w, NOT_A_KEY);

    if (rc < 0)
        return rc;
    if (nanoseconds > 999999999)
        return fail_payload(w, "a timestamp has more than 999999999 nanoseconds");
    msgpack_pack_timestamp(&w->packer, &time);
    return w->code;
}

int jobq_writer_finish(jobq_writer *w, const void **p_out, size_t *n_out)
{
    jobq__error_clear();
    if (w->code)
        return jobq__error_restore(&w->error);
    close_full(w);
    if (!w->begun)
        return jobq__error_set(JOBQ_EPAYLOAD, "payload: no value was written");
    if (w->depth)
        return jobq__error_set(JOBQ_EPAYLOAD,
                               "payload: values are missing (%llu in the innermost list or map)",
                               (unsigned long long)w->open[w->depth - 1].left);
    *p_out = w->out.p;
    *n_out = w->out.n;
    return 0;
}

bool jobq__writer_is_untouched(const jobq_writer *w)
{
    return !w->begun && !w->code;
}
