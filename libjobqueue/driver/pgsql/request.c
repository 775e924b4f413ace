/* SPDX-License-Identifier: MIT
 *
 * The store's statements for the caller's own transaction (rules B8, O1): calls of functions of the
 * schema. Every value is a text or a number, bytes as '\x…', with a cast: so it passes through
 * clients that send everything as text.
 */
#include <string.h>

#include "driver/answers.h"
#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/error.h"

#define PUSH                                                                           \
    "SELECT id, result FROM @.push_message($1::text, $2::text, $3::text, $4::bigint, " \
    "$5::bigint, $6::bigint, $7::bytea, $8::bytea, $9::bytea, $10::bigint, $11::bigint)"
#define DONE                                                                             \
    "SELECT @.done($1::text, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint, " \
    "$7::bytea, $8::bytea) AS done"

static jobq_param number(int64_t value)
{
    return (jobq_param){.type = JOBQ_PARAM_INT, .integer = value};
}

static jobq_param text(jobq_slice s)
{
    return (jobq_param){.type = s.p ? JOBQ_PARAM_TEXT : JOBQ_PARAM_NULL, .bytes = s};
}

/* In the batch; p NULL where the slice is absent or memory is. */
static jobq_param hex(jobq_batch *out, jobq_slice s)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = s.p;
    char *to = s.p ? jobq_batch_alloc(out, s.n * 2 + 3) : NULL;

    if (!to)
        return (jobq_param){.type = s.p ? JOBQ_PARAM_TEXT : JOBQ_PARAM_NULL};
    to[0] = '\\';
    to[1] = 'x';
    for (size_t i = 0; i < s.n; i++) {
        to[i * 2 + 2] = digits[from[i] >> 4];
        to[i * 2 + 3] = digits[from[i] & 15];
    }
    return (jobq_param){.type = JOBQ_PARAM_TEXT, .bytes = {to, s.n * 2 + 2}};
}

static int answer(pgsql_store *store, jobq_request *r, const char *sql, const jobq_param *params,
                  size_t count)
{
    char *expanded = jobq__pgsql_expand(store, sql);
    int rc = expanded ? jobq__request_answer(r, expanded, params, count) : jobq__error_nomem();

    jobq__free(expanded);
    return rc;
}

static int request_push(pgsql_store *store, jobq_request *r)
{
    const jobq_push *item = r->push;
    const bool replaces = item->unique.p && item->on_duplicate == JOBQ_DUPLICATE_REPLACE;
    const jobq_param params[] = {
        text(item->id),
        text(item->queue),
        text(item->name),
        number(item->version),
        number(item->priority),
        number(jobq__pgsql_due_of(item)),
        hex(r->out, item->unique),
        hex(r->out, item->header),
        hex(r->out, item->body),
        replaces ? number(item->max_wait_ms > 0 ? item->max_wait_ms : 0) : text((jobq_slice){0}),
        number(item->idempotent),
    };

    if (item->guard)
        return jobq__error_set_driver(
            JOBQ_EUNSUPPORTED, 0, "postgresql", 0,
            "postgresql: a push in the caller's transaction takes no guard");
    return answer(store, r, PUSH, params, sizeof(params) / sizeof(params[0]));
}

static int request_done(pgsql_store *store, jobq_request *r)
{
    const jobq_settlement *s = r->done;
    const jobq_param params[] = {
        text(s->id),
        text(r->worker),
        number((int64_t)s->token.word[0]),
        number((int64_t)s->token.word[2]),
        number(s->keep_ms > 0 ? s->keep_ms : 0),
        number(s->keep_bare),
        hex(r->out, s->outcome),
        hex(r->out, s->history),
    };

    return answer(store, r, DONE, params, sizeof(params) / sizeof(params[0]));
}

int jobq__pgsql_request(void *handle, jobq_request *r)
{
    return r->push ? request_push(handle, r) : request_done(handle, r);
}
