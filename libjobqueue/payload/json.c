/* SPDX-License-Identifier: MIT
 *
 * Bodies as JSON text and back. A map is written as an object when every key is a string and
 * nothing would mistake it for one of the forms, else through "$map"; which of the two is found by
 * reading the body twice.
 */
#include <math.h>
#include <string.h>

#include "payload/json_text.h"
#include "payload/reader.h"
#include "util/alloc.h"
#include "util/error.h"

enum { PLAIN = 0, AS_PAIRS = 1 };

typedef struct {
    uint64_t left; /* as in the reader's frames */
    size_t map;    /* its place in the order of maps */
    bool list, pairs, begun;
} json_frame;

typedef struct {
    jobq__buf out;
    jobq__buf marks; /* one byte per map in order of opening: PLAIN or AS_PAIRS */
    size_t next_map;
    int depth;
    json_frame frames[JOBQ_MAX_DEPTH];
} json_printer;

static json_frame *top_frame(json_printer *j)
{
    while (j->depth && j->frames[j->depth - 1].left == 0)
        j->depth--;
    return j->depth ? &j->frames[j->depth - 1] : NULL;
}

static void push_frame(json_printer *j, const jobq_token *t)
{
    json_frame *f = &j->frames[j->depth++];

    *f = (json_frame){.list = t->kind == JOBQ_LIST,
                      .left = t->kind == JOBQ_LIST ? t->as.count : (uint64_t)t->as.count * 2};
    if (!f->list) {
        f->map = j->next_map++;
        f->pairs = f->map < j->marks.n && j->marks.p[f->map] == AS_PAIRS;
    }
}

/* ---- first reading: which maps need "$map" --------------------------------------------------- */

/* Whether this key keeps its map from being written as an object. */
static bool needs_pairs(const json_frame *f, const jobq_token *key)
{
    bool alone = f->left == 2 && !f->begun;

    return key->kind != JOBQ_STR ||
           (alone && jobq__json_form(key->as.text.p, key->as.text.n) != JOBQ__FORM_NONE);
}

static void mark_token(json_printer *j, const jobq_token *t)
{
    json_frame *f = top_frame(j);

    if (f) {
        if (t->key && f->map < j->marks.n && needs_pairs(f, t))
            j->marks.p[f->map] = AS_PAIRS;
        f->left--;
        f->begun = true;
    }
    if (t->kind == JOBQ_MAP)
        jobq__buf_addc(&j->marks, PLAIN);
    if (t->kind == JOBQ_MAP || t->kind == JOBQ_LIST)
        push_frame(j, t);
}

/* ---- second reading: printing ---------------------------------------------------------------- */

static void add_time(jobq__buf *out, const jobq_token *t)
{
    jobq__buf_adds(out, "{\"$time\":\"");
    jobq__rfc3339_add(out, t->as.time.seconds, t->as.time.nanoseconds);
    jobq__buf_adds(out, "\"}");
}

static void add_bytes(jobq__buf *out, const jobq_token *t)
{
    jobq__buf_adds(out, "{\"$bytes\":\"");
    jobq__base64_add(out, t->as.text.p, t->as.text.n);
    jobq__buf_adds(out, "\"}");
}

static void add_number(jobq__buf *out, double value)
{
    if (isnan(value))
        jobq__buf_adds(out, "{\"$double\":\"NaN\"}");
    else if (isinf(value))
        jobq__buf_adds(out,
                       value < 0 ? "{\"$double\":\"-Infinity\"}" : "{\"$double\":\"Infinity\"}");
    else
        jobq__json_add_double(out, value);
}

static void add_value(json_printer *j, const jobq_token *t)
{
    jobq__buf *out = &j->out;

    switch (t->kind) {
    case JOBQ_NIL:
        jobq__buf_adds(out, "null");
        break;
    case JOBQ_BOOL:
        jobq__buf_adds(out, t->as.boolean ? "true" : "false");
        break;
    case JOBQ_INT:
        jobq__buf_addf(out, "%lld", (long long)t->as.integer);
        break;
    case JOBQ_UINT:
        jobq__buf_addf(out, "%llu", (unsigned long long)t->as.unsigned_integer);
        break;
    case JOBQ_DOUBLE:
        add_number(out, t->as.number);
        break;
    case JOBQ_STR:
        jobq__json_add_string(out, t->as.text.p, t->as.text.n);
        break;
    case JOBQ_BYTES:
        add_bytes(out, t);
        break;
    case JOBQ_TIME:
        add_time(out, t);
        break;
    case JOBQ_LIST:
    case JOBQ_MAP:
        push_frame(j, t);
        jobq__buf_adds(out, t->kind == JOBQ_LIST            ? "["
                            : j->frames[j->depth - 1].pairs ? "{\"$map\":["
                                                            : "{");
        break;
    }
}

static void add_separator(json_printer *j, json_frame *f, bool key)
{
    if (f->pairs)
        jobq__buf_adds(&j->out, !key ? "," : f->begun ? "],[" : "[");
    else if (!f->list && !key)
        jobq__buf_addc(&j->out, ':');
    else if (f->begun)
        jobq__buf_addc(&j->out, ',');
    f->begun = true;
    f->left--;
}

static void close_full(json_printer *j)
{
    for (json_frame *f; j->depth && (f = &j->frames[j->depth - 1])->left == 0; j->depth--) {
        if (f->pairs)
            jobq__buf_adds(&j->out, f->begun ? "]]}" : "]}");
        else
            jobq__buf_addc(&j->out, f->list ? ']' : '}');
    }
}

static void print_token(json_printer *j, const jobq_token *t)
{
    close_full(j);
    if (j->depth)
        add_separator(j, &j->frames[j->depth - 1], t->key);
    add_value(j, t);
}

static int each_token(jobq_reader *r, int format, const void *p, size_t n, json_printer *j,
                      void (*take)(json_printer *j, const jobq_token *t))
{
    jobq_token t;
    int rc;

    jobq_reader_open(r, format, p, n);
    j->depth = 0;
    j->next_map = 0;
    while ((rc = jobq__reader_step(r, &t)) > 0)
        take(j, &t);
    return rc;
}

int jobq_payload_to_json(int format, const void *p, size_t n, char **text_out, size_t *n_out)
{
    jobq_reader r;
    json_printer j = {.depth = 0};
    int rc;

    jobq__error_clear();
    jobq__reader_init(&r);
    rc = each_token(&r, format, p, n, &j, mark_token);
    if (rc == 0 && j.marks.failed)
        rc = jobq__error_nomem();
    if (rc == 0)
        rc = each_token(&r, format, p, n, &j, print_token);
    close_full(&j);
    jobq__buf_text(&j.out);
    if (rc == 0 && j.out.failed)
        rc = jobq__error_nomem();
    jobq__reader_fini(&r);
    jobq__buf_free(&j.marks);
    if (rc < 0) {
        jobq__buf_free(&j.out);
        return rc;
    }
    *text_out = j.out.p;
    *n_out = j.out.n;
    return 0;
}

void jobq_text_free(char *text)
{
    jobq__free(text);
}

/* ---- from text ------------------------------------------------------------------------------- */

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
    default:
        return jobq_writer_time(w, t->as.time.seconds, t->as.time.nanoseconds);
    }
}

int jobq_payload_from_json(jobq_writer *w, const char *text, size_t n)
{
    jobq_reader r;
    jobq_token t;
    int rc = jobq_payload_check(JOBQ_FORMAT_JSON, text,
                                n); /* so that bad text leaves the writer as it was */

    if (rc < 0)
        return rc;
    jobq__reader_init(&r);
    jobq_reader_open(&r, JOBQ_FORMAT_JSON, text, n);
    while ((rc = jobq__reader_step(&r, &t)) > 0) {
        rc = write_token(w, &t);
        if (rc < 0)
            break;
    }
    jobq__reader_fini(&r);
    return rc;
}
