/* SPDX-License-Identifier: MIT
 *
 * Messages: what will be a job, gathered piece by piece. Nothing here touches a store; push.c sends
 * them.
 */
#include "core/message.h"

#include <string.h>

#include "core/statement.h"
#include "payload/writer.h"
#include "util/alloc.h"
#include "util/str.h"

enum { PAYLOAD_CEILING = 64 << 20 };

jobq_message *jobq_message_new(void)
{
    jobq_message *m;

    jobq__error_clear();
    m = jobq__zalloc(sizeof(*m));
    if (m)
        m->options = jobq_conf_new(JOBQ_SCOPE_PUSH, JOBQ_STYLE_SNAKE);
    if (!m || !m->options) {
        jobq_message_free(m);
        jobq__error_nomem();
        return NULL;
    }
    return m;
}

void jobq_message_free(jobq_message *m)
{
    if (!m)
        return;
    jobq_conf_free(m->options);
    jobq_writer_free(m->writer);
    jobq__buf_free(&m->name);
    jobq__buf_free(&m->body);
    jobq__buf_free(&m->header);
    jobq__arena_free(&m->texts);
    jobq__arena_free(&m->guard_arena);
    jobq__batch_free(&m->scratch);
    jobq__free(m);
}

void jobq_message_reset(jobq_message *m)
{
    if (!m)
        return;
    jobq_conf_reset(m->options);
    if (m->writer)
        jobq_writer_reset(m->writer);
    jobq__buf_reset(&m->name);
    jobq__buf_reset(&m->body);
    jobq__buf_reset(&m->header);
    jobq__arena_reset(&m->texts);
    m->body_given = m->guarded = false;
    m->context = NULL;
    m->context_count = m->context_room = m->context_bytes = 0;
    m->result = 0;
    m->id[0] = '\0';
    m->error.code = 0;
}

int jobq_message_set_name(jobq_message *m, const char *p, size_t n)
{
    int rc;

    jobq__error_clear();
    rc = jobq__check_name(p, n);
    if (rc < 0)
        return rc;
    jobq__buf_reset(&m->name);
    jobq__buf_add(&m->name, p, n);
    return m->name.failed ? jobq__error_nomem() : 0;
}

jobq_writer *jobq_message_payload(jobq_message *m)
{
    if (!m->writer)
        m->writer = jobq_writer_new(PAYLOAD_CEILING);
    return m->writer;
}

int jobq_message_set_body(jobq_message *m, int format, const void *p, size_t n)
{
    jobq__error_clear();
    if (format != JOBQ_FORMAT_MSGPACK && format != JOBQ_FORMAT_JSON)
        return jobq__error_set(JOBQ_EINVAL, "body format must be msgpack (0) or json (1), got %d",
                               format);
    if (n > PAYLOAD_CEILING)
        return jobq__error_set(JOBQ_EPAYLOAD,
                               "the payload has %zu bytes, more than %d are never allowed", n,
                               PAYLOAD_CEILING);
    jobq__buf_reset(&m->body);
    jobq__buf_add(&m->body, p, n);
    if (m->body.failed)
        return jobq__error_nomem();
    m->body_given = true;
    m->format = format;
    return 0;
}

/* ---- context --------------------------------------------------------------------------------- */

static int refuse_context(const char *key, size_t n, const char *why)
{
    char shown[96];

    jobq__str_one_line(shown, sizeof(shown), key ? key : "", key ? n : 0);
    return jobq__error_set_subject(JOBQ_EINVAL, "context", 7, "context key \"%s\": %s", shown, why);
}

static bool is_text(const char *p, size_t n)
{
    return n == 0 || (p && jobq__utf8_valid(p, n));
}

static int check_pair(const jobq_message *m, const char *key, size_t key_n, const char *value,
                      size_t value_n)
{
    if (key_n == 0 || !is_text(key, key_n))
        return refuse_context(key, key_n, "a key must be UTF-8 and not empty");
    if (!is_text(value, value_n))
        return refuse_context(key, key_n, "a value must be UTF-8");
    for (size_t i = 0; i < m->context_count; i++)
        if (m->context[i].key.n == key_n && memcmp(m->context[i].key.p, key, key_n) == 0)
            return refuse_context(key, key_n, "given twice");
    if (key_n > JOBQ__CONTEXT_MAX || value_n > JOBQ__CONTEXT_MAX ||
        m->context_bytes + key_n + value_n > JOBQ__CONTEXT_MAX)
        return refuse_context(key, key_n, "all keys and values together may have 8192 bytes");
    return 0;
}

static int make_room(jobq_message *m)
{
    size_t room = m->context_room ? m->context_room * 2 : 8;
    jobq__pair *pairs;

    if (m->context_count < m->context_room)
        return 0;
    pairs = jobq__arena_alloc(&m->texts, room * sizeof(*pairs));
    if (!pairs)
        return jobq__error_nomem();
    if (m->context_count)
        memcpy(pairs, m->context, m->context_count * sizeof(*pairs));
    m->context = pairs;
    m->context_room = room;
    return 0;
}

int jobq_message_add_context(jobq_message *m, const char *key, size_t key_n, const char *value,
                             size_t value_n)
{
    jobq__pair pair;
    int rc;

    jobq__error_clear();
    rc = check_pair(m, key, key_n, value, value_n);
    if (rc == 0)
        rc = make_room(m);
    if (rc < 0)
        return rc;
    pair.key = jobq__slice(jobq__arena_copy(&m->texts, key, key_n), key_n);
    pair.value = jobq__slice(jobq__arena_copy(&m->texts, value, value_n), value_n);
    if (!pair.key.p || !pair.value.p)
        return jobq__error_nomem();
    m->context[m->context_count++] = pair;
    m->context_bytes += key_n + value_n;
    return 0;
}

jobq_conf *jobq_message_options(jobq_message *m)
{
    return m->options;
}

int jobq_message_set_guard(jobq_message *m, const jobq_statement *guard)
{
    int rc;

    jobq__error_clear();
    m->guarded = false;
    jobq__arena_reset(&m->guard_arena);
    if (!guard)
        return 0;
    rc = jobq__statement_check("guard", guard);
    rc = rc < 0 ? rc : jobq__statement_copy(&m->guard_arena, guard, &m->guard);
    m->guarded = rc == 0;
    return rc;
}

/* ---- what became of it ----------------------------------------------------------------------- */

const char *jobq_message_id(const jobq_message *m)
{
    return m->id[0] ? m->id : NULL;
}

const char *jobq_message_queue(const jobq_message *m, const jobq_queue *queue)
{
    const char *named = m->options->s.queue;

    return named ? named : jobq_queue_default(queue);
}

int jobq_message_result(const jobq_message *m)
{
    return m->result;
}

const jobq_error *jobq_message_error(const jobq_message *m)
{
    return m->error.code ? &m->error : NULL;
}

/* ---- from a message to a push item ----------------------------------------------------------- */

static int take_body(jobq_message *m, const void **p, size_t *n, int *format)
{
    static const unsigned char nil[] = {0xc0};

    *format = m->body_given ? m->format : JOBQ_FORMAT_MSGPACK;
    if (m->body_given) {
        *p = m->body.p ? m->body.p : (const void *)"";
        *n = m->body.n;
        return 0;
    }
    if (!m->writer || jobq__writer_is_untouched(m->writer)) {
        *p = nil;
        *n = sizeof(nil);
        return 0;
    }
    return jobq_writer_finish(m->writer, p, n);
}

static int check_body(int format, const void *p, size_t n, int64_t max)
{
    if (n > (size_t)max)
        return jobq__error_set_subject(JOBQ_EPAYLOAD, "payload", 7,
                                       "the payload has %zu byte%s, max_payload allows %lld", n,
                                       jobq__plural((int64_t)n), (long long)max);
    return jobq_payload_check(format, p, n);
}

static void fill_header(const jobq_message *m, int format, jobq__header *h)
{
    const jobq_conf *o = m->options;

    *h = (jobq__header){.format = format, .context = m->context, .context_count = m->context_count};
    h->has_tries = jobq__conf_given(o, tries);
    h->tries = o->s.tries;
    h->has_timeout = jobq__conf_given(o, timeout_ms);
    h->timeout_ms = o->s.timeout_ms;
    h->has_backoff = jobq__conf_given(o, backoff);
    h->backoff_exponential = o->s.backoff.exponential;
    h->backoff_count = o->s.backoff.exponential ? 2 : o->s.backoff.count;
    memcpy(h->backoff_ms, o->s.backoff.list_ms, sizeof(h->backoff_ms));
    h->has_retry_until = jobq__conf_given(o, retry_until);
    h->retry_until_relative = o->s.retry_until.relative;
    h->retry_until_ms = o->s.retry_until.ms;
    h->has_expires = jobq__conf_given(o, expires);
    h->expires_relative = o->s.expires.relative;
    h->expires_ms = o->s.expires.ms;
    h->drop_expired = o->s.on_expire == 1;
    h->track = o->s.track;
    h->until_started = o->s.unique_scope == 1;
    h->idempotent_for_ms = o->s.idempotent ? o->s.idempotent_for_ms : 0;
}

/* `at` is resolved by the store's clock; only the ten years are judged by ours. */
static int check_due(const jobq_conf *o)
{
    if (jobq__conf_given(o, at_ms) && jobq__conf_given(o, delay_ms))
        return jobq__error_set_subject(JOBQ_EINVAL, "at", 2,
                                       "options \"at\" and \"delay\" cannot both be given");
    if (o->s.at_ms > 0 && o->s.at_ms - jobq__clock_wall_ms() > (int64_t)JOBQ__TEN_YEARS_S * 1000)
        return jobq__error_set_subject(JOBQ_EINVAL, "at", 2,
                                       "option \"at\" must be within ten years from now");
    return 0;
}

/* Is one of those given that mean nothing without another? */
static bool has_needs(const jobq_conf *o)
{
    return o->s.idempotent || jobq__conf_given(o, idempotent_for_ms) ||
           jobq__conf_given(o, unique_scope) || jobq__conf_given(o, on_duplicate) ||
           jobq__conf_given(o, max_wait_ms);
}

static int check_needs(const jobq_conf *o)
{
    const struct {
        bool wrong;
        const char *name, *needs;
    } rules[] = {
        {!o->s.unique && jobq__conf_given(o, unique_scope), "unique_scope", "unique"},
        {!o->s.unique && jobq__conf_given(o, on_duplicate), "on_duplicate", "unique"},
        {!o->s.unique && jobq__conf_given(o, max_wait_ms), "max_wait", "unique"},
        {o->s.max_wait_ms > 0 && o->s.on_duplicate != JOBQ__ON_DUPLICATE_REPLACE, "max_wait",
         "on_duplicate"},
        {o->s.idempotent && !o->s.id, "idempotent", "id"},
        {!o->s.idempotent && jobq__conf_given(o, idempotent_for_ms), "idempotent_for",
         "idempotent"},
    };
    char name[JOBQ__SPELLED_SIZE], needs[JOBQ__SPELLED_SIZE];

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (!rules[i].wrong)
            continue;
        jobq__conf_word(o, rules[i].name, name, sizeof(name));
        jobq__conf_word(o, rules[i].needs, needs, sizeof(needs));
        return jobq__error_set_subject(
            JOBQ_EINVAL, name, strlen(name), "option \"%s\" needs option \"%s\"%s", name, needs,
            strcmp(rules[i].needs, "on_duplicate") == 0 ? " to be \"replace\"" : "");
    }
    return 0;
}

static void fill_item(jobq_message *m, const char *queue, jobq_push *item)
{
    const jobq__settings *s = &m->options->s;

    memset(item, 0, offsetof(jobq_push, holder));
    item->holder[0] = '\0';
    item->id = jobq__slice_text(m->id);
    item->queue = jobq__slice_text(s->queue ? s->queue : queue);
    item->name = jobq__slice(m->name.p, m->name.n);
    item->unique = jobq__slice_text(s->unique);
    item->version = (int32_t)s->version;
    item->priority = (uint8_t)s->priority;
    item->delay_ms = s->delay_ms;
    item->at_ms = s->at_ms;
    item->guard = m->guarded ? &m->guard : NULL;
    item->max_wait_ms = s->max_wait_ms;
    item->idempotent = s->idempotent;
    if (s->on_duplicate == JOBQ__ON_DUPLICATE_REPLACE)
        item->on_duplicate = JOBQ_DUPLICATE_REPLACE;
}

static int encode(jobq_message *m, int64_t max_payload, jobq_push *item)
{
    jobq__header header;
    int format;
    int rc = take_body(m, &item->body.p, &item->body.n, &format);

    if (rc == 0)
        rc = check_body(format, item->body.p, item->body.n, max_payload);
    if (rc < 0)
        return rc;
    fill_header(m, format, &header);
    jobq__buf_reset(&m->header);
    rc = jobq__envelope_write(&m->header, &header);
    item->header = jobq__slice(m->header.n ? m->header.p : NULL, m->header.n);
    return rc;
}

static void name_it(jobq_message *m)
{
    const char *id = m->options->s.id;

    if (id)
        memcpy(m->id, id, strlen(id) + 1); /* conf_table checked its form */
    else
        jobq__ident_job(m->id);
}

int jobq__message_prepare(jobq_message *m, const char *queue, int64_t max_payload, jobq_push *item)
{
    int rc;

    m->id[0] = '\0';
    m->result = 0;
    m->error.code = 0;
    if (m->name.n == 0)
        return jobq__error_set(JOBQ_EINVAL,
                               "the job has no name: 1 to 255 bytes of UTF-8 are needed");
    rc = check_due(m->options);
    if (rc == 0 && has_needs(m->options))
        rc = check_needs(m->options);
    if (rc < 0)
        return rc;
    fill_item(m, queue, item);
    rc = encode(m, max_payload, item);
    if (rc < 0)
        return rc;
    name_it(m);
    item->id = jobq__slice_text(m->id);
    item->fresh_id = m->options->s.id == NULL;
    return 0;
}
