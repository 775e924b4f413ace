/* SPDX-License-Identifier: MIT
 *
 * See follow.h. This is the one place that knows how a hook lies in the store.
 */
#include "core/follow.h"

#include <string.h>

#include "core/ident.h"
#include "core/retry.h"
#include "driver/driver.h"
#include "util/str.h"

enum { BODY_MAX = 4096 };

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(jobq_writer *w, const char *key, jobq_slice text, size_t max)
{
    char shown[JOBQ__FOLLOW_MESSAGE + 1];
    const size_t n = text.p ? jobq__fault_tidy(shown, max, text) : 0;

    if (!text.p)
        return;
    jobq_writer_str(w, key, strlen(key));
    jobq_writer_str(w, shown, n);
}

static void put_body(jobq_writer *w, const jobq__death *death)
{
    const jobq_slice reason = jobq__slice_text(jobq__reason_word(death->reason));

    jobq_writer_map(w, 3 + (death->class_name.p != NULL) + (death->message.p != NULL));
    put_text(w, "id", death->id, JOBQ__ID_SIZE);
    put_text(w, "reason", reason, JOBQ__ID_SIZE);
    jobq_writer_str(w, "died", 4);
    jobq_writer_int(w, death->died_at_ms);
    put_text(w, "class", death->class_name, JOBQ__FAULT_CLASS);
    put_text(w, "message", death->message, JOBQ__FOLLOW_MESSAGE);
}

static jobq_slice copy(jobq__arena *arena, const void *p, size_t n)
{
    const void *kept = p ? jobq__arena_copy(arena, p, n) : NULL;

    return jobq__slice(kept, kept ? n : 0);
}

static jobq_slice make_body(jobq__arena *arena, const jobq__death *death)
{
    jobq_writer *w = jobq_writer_new(BODY_MAX);
    jobq_slice body = {0};
    const void *p;
    size_t n;

    if (w)
        put_body(w, death);
    if (w && jobq_writer_finish(w, &p, &n) == 0)
        body = copy(arena, p, n);
    jobq_writer_free(w);
    return body;
}

/* Of the dead job's header only the time limit, which the hook inherits. */
static jobq_slice make_header(jobq__arena *arena, jobq_slice from)
{
    jobq__header dead = {0}, header = {.format = JOBQ_FORMAT_MSGPACK};
    jobq__buf buf = {0};
    jobq_slice made = {0};

    if (jobq__envelope_read(from, arena, &dead) == 0 && dead.has_timeout) {
        header.has_timeout = true;
        header.timeout_ms = dead.timeout_ms;
    }
    if (jobq__envelope_write(&buf, &header) == 0)
        made = copy(arena, buf.n ? buf.p : "", buf.n); /* the shortest form is none */
    jobq__buf_free(&buf);
    return made;
}

jobq_slice jobq__follow_hide(char *out, jobq_slice queue)
{
    out[0] = JOBQ__FOLLOW_MARK;
    if (queue.n)
        memcpy(out + 1, queue.p, queue.n);
    return jobq__slice(out, queue.n + 1);
}

static jobq_slice make_queue(jobq__arena *arena, jobq_slice queue)
{
    char *p = jobq__arena_alloc(arena, queue.n + 1);

    return p ? jobq__follow_hide(p, queue) : (jobq_slice){0};
}

const jobq_push *jobq__follow_make(jobq__arena *arena, const jobq__death *death)
{
    jobq_push *push = jobq__arena_alloc(arena, sizeof(*push));
    char id[JOBQ__UUID_SIZE];

    if (!push)
        return NULL;
    jobq__ident_job(id);
    push->id = copy(arena, id, sizeof(id) - 1);
    push->queue = make_queue(arena, death->queue);
    push->name = copy(arena, death->name.p, death->name.n);
    push->header = make_header(arena, death->header);
    push->body = make_body(arena, death);
    push->version = death->version;
    push->fresh_id = true;
    return push->id.p && push->queue.p && push->name.p && push->header.p && push->body.p ? push
                                                                                         : NULL;
}

const jobq_push *jobq__follow_settle(jobq__arena *arena, jobq__death *death, jobq_slice error)
{
    jobq__fault fault;

    if (!death->class_name.p && !death->message.p && error.p &&
        jobq__fault_read(error, arena, &fault)) {
        death->class_name = fault.class_name;
        death->message = fault.message;
    }
    return jobq__follow_make(arena, death);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_key(const jobq_token *key, const char *word)
{
    return key->kind == JOBQ_STR && key->as.text.n == strlen(word) &&
           memcmp(key->as.text.p, word, key->as.text.n) == 0;
}

static void take_text(const jobq_token *key, const jobq_token *value, jobq__arena *arena,
                      jobq__death *out)
{
    const jobq_slice text = copy(arena, value->as.text.p, value->as.text.n);

    if (is_key(key, "id"))
        out->id = text;
    else if (is_key(key, "class"))
        out->class_name = text;
    else if (is_key(key, "message"))
        out->message = text;
    else if (is_key(key, "reason") && text.p)
        out->reason = jobq__reason_parse(text.p);
}

/* A later version of the library may add keys with plain values. */
static bool read_pairs(jobq_reader *r, jobq__arena *arena, jobq__death *out)
{
    jobq_token key, value;
    int rc = jobq_reader_next(r, &key);

    if (rc != 1 || key.kind != JOBQ_MAP)
        return false;
    while ((rc = jobq_reader_next(r, &key)) == 1) {
        char word[16];
        jobq_token kept = key;

        if (!key.key)
            return false;
        if (key.kind == JOBQ_STR && key.as.text.n < sizeof(word)) { /* it may move */
            memcpy(word, key.as.text.p, key.as.text.n);
            kept.as.text.p = word;
        }
        if (jobq_reader_next(r, &value) != 1)
            return false;
        if (value.kind == JOBQ_STR && kept.as.text.p == word)
            take_text(&kept, &value, arena, out);
        else if (value.kind == JOBQ_INT && is_key(&kept, "died"))
            out->died_at_ms = value.as.integer;
    }
    return rc == 0;
}

bool jobq__follow_read(jobq_slice body, jobq__arena *arena, jobq__death *out)
{
    jobq_reader *r = body.p ? jobq_reader_new() : NULL;
    bool good;

    if (!r)
        return false;
    jobq_reader_open(r, JOBQ_FORMAT_MSGPACK, body.p, body.n);
    good = read_pairs(r, arena, out) && out->id.p;
    jobq_reader_free(r);
    return good;
}

jobq_slice jobq__follow_queue(jobq_slice hidden)
{
    return jobq__queue_is_hidden(hidden) ? jobq__slice((const char *)hidden.p + 1, hidden.n - 1)
                                         : hidden;
}
