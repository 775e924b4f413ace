/* SPDX-License-Identifier: MIT
 *
 * What a push may meet: a full queue (B4), its own id (B5), a held key (B6), a guard (B7), somebody
 * else's transaction (B8). On both stores unless one of them cannot do it.
 */
#include <jobqueue/jobqueue.h>

#include "core/statement.h"
#include "store.h"
#include "util/clock.h"

/* A message of queue "q" with options in pairs, ended by NULL; its payload is the number. */
static jobq_message *prepared(int64_t payload, ...)
{
    jobq_message *m = jobq_message_new();
    const char *name, *value;
    va_list args;

    assert_ok(jobq_message_set_name(m, "n", 1));
    assert_ok(jobq_writer_int(jobq_message_payload(m), payload));
    assert_ok(jobq_conf_set(jobq_message_options(m), "queue", "q", 1));
    va_start(args, payload);
    while ((name = va_arg(args, const char *))) {
        value = va_arg(args, const char *);
        assert_ok(jobq_conf_set(jobq_message_options(m), name, value, strlen(value)));
    }
    va_end(args);
    return m;
}

static bool exists(jobq_queue *queue, const char *id)
{
    jobq_info *info = NULL;
    int rc = jobq_queue_find(queue, id, strlen(id), &info);

    jobq_info_free(info);
    return rc == 0;
}

static void finish(jobq_queue *queue)
{
    jobq_job *job = reserve(queue);

    assert_non_null(job);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

static int64_t counted(const jobq_queue *queue, const char *word)
{
    const char *name;
    int64_t value;

    for (size_t i = 0;; i++) {
        value = jobq_queue_counter(queue, i, &name);
        assert_non_null(name);
        if (strcmp(name, word) == 0)
            return value;
    }
}

/* ---- rule B4 --------------------------------------------------------------------------------- */

static void refuses_above_capacity(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m[3] = {prepared(1, NULL), prepared(2, NULL), prepared(3, NULL)};

    assert_ok(jobq_queue_set_capacity(queue, "q", 1, 2));
    assert_int_equal(stat(queue, JOBQ_STAT_CAPACITY), 2);
    assert_int_equal(assert_ok(jobq_queue_push_many(queue, m, 3)), 2);
    assert_int_equal(jobq_message_result(m[2]), JOBQ_EFULL);
    assert_string_equal(jobq_error_subject(jobq_message_error(m[2])), "q");
    assert_int_equal(jobq_error_native(jobq_message_error(m[2])), 2);
    assert_code(jobq_queue_push(queue, m[0]), JOBQ_EFULL);
    assert_said("queue \"q\" is full (capacity 2)");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_int_equal(counted(queue, "push_rejected"), 2);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 2); /* nothing was trimmed */
    finish(queue);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m[0])), 0);
    assert_ok(jobq_queue_set_capacity(queue, "q", 1, 0));
    assert_int_equal(assert_ok(jobq_queue_push(queue, m[1])), 0);
    for (int i = 0; i < 3; i++)
        jobq_message_free(m[i]);
}

static void refuses_bad_capacities(void **state)
{
    jobq_queue *queue = *state;

    assert_code(jobq_queue_set_capacity(queue, "q", 1, -1), JOBQ_EINVAL);
    assert_said("capacity must be a whole number from 0");
    assert_code(jobq_queue_set_capacity(queue, "a,b", 3, 1), JOBQ_EINVAL);
    assert_int_equal(stat(queue, JOBQ_STAT_CAPACITY), 0);
}

static jobq_queue *with_capacity(const char *dsn, const char *capacity)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    jobq_queue *queue = NULL;

    assert_ok(jobq_conf_set(conf, "capacity", capacity, strlen(capacity)));
    assert_ok(jobq_queue_new(dsn, conf, &queue));
    jobq_conf_free(conf);
    return queue;
}

/* The connection's option is for queues that never had a capacity, and for each of them. */
static void applies_the_option_where_none_was_set(void **state)
{
    jobq_message *m = prepared(1, NULL);
    jobq_queue *first, *second;
    char dsn[128], name[32];

    (void)state;
    snprintf(dsn, sizeof(dsn), "sqlite:%s/option.db", jobq_test_folder());
    first = with_capacity(dsn, "1");
    second = with_capacity(dsn, "7");
    assert_ok(jobq_queue_push(first, m));
    assert_code(jobq_queue_push(first, m), JOBQ_EFULL);
    assert_code(jobq_queue_push(second, m), JOBQ_EFULL); /* its 7 changes nothing */
    assert_int_equal(stat(second, JOBQ_STAT_CAPACITY), 1);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "q%d", i);
        assert_ok(jobq_conf_set(jobq_message_options(m), "queue", name, strlen(name)));
        assert_ok(jobq_queue_push(first, m));
        assert_code(jobq_queue_push(first, m), JOBQ_EFULL);
    }
    assert_ok(jobq_conf_set(jobq_message_options(m), "queue", "q", 1));
    assert_ok(jobq_queue_set_capacity(second, "q", 1, 0)); /* set by a person: it stays */
    assert_ok(jobq_queue_push(first, m));
    jobq_queue_free(first);
    first = with_capacity(dsn, "1");
    assert_ok(jobq_queue_push(first, m));
    jobq_queue_free(first);
    jobq_queue_free(second);
    jobq_message_free(m);
}

/* ---- rule B6 --------------------------------------------------------------------------------- */

static int64_t payload_of(jobq_queue *queue, const char *id)
{
    jobq_info *info;
    const unsigned char *body;
    size_t n;
    int64_t value;

    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    body = jobq_info_body(info, &n, NULL);
    assert_int_equal(n, 1);
    value = body[0];
    jobq_info_free(info);
    return value;
}

static void keeps_refuses_or_replaces(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *first = prepared(1, "unique", "k", NULL),
                 *keep = prepared(2, "unique", "k", NULL),
                 *error = prepared(3, "unique", "k", "on_duplicate", "error", NULL),
                 *replace = prepared(4, "unique", "k", "on_duplicate", "replace", NULL);
    char id[129];

    assert_int_equal(assert_ok(jobq_queue_push(queue, first)), 0);
    strcpy(id, jobq_message_id(first));
    assert_int_equal(assert_ok(jobq_queue_push(queue, keep)), 1);
    assert_string_equal(jobq_message_id(keep), id);
    assert_code(jobq_queue_push(queue, error), JOBQ_EEXISTS);
    assert_said("has the unique key \"k\"");
    assert_string_equal(jobq_error_subject(jobq_error_last()), id);
    assert_string_equal(jobq_message_id(error), id);
    assert_int_equal(payload_of(queue, id), 1);
    assert_int_equal(assert_ok(jobq_queue_push(queue, replace)), 2);
    assert_string_equal(jobq_message_id(replace), id);
    assert_int_equal(payload_of(queue, id), 4);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 1);
    assert_int_equal(counted(queue, "pushed"), 1);
    jobq_message_free(first);
    jobq_message_free(keep);
    jobq_message_free(error);
    jobq_message_free(replace);
}

/* unique_scope=until_started: free before its handler runs, and never taken again by a retry. */
static void frees_the_key_at_the_start(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = prepared(1, "unique", "k", "unique_scope", "until_started", "backoff", "0",
                               NULL),
                 *other = prepared(2, "unique", "k", NULL);
    jobq_job *job, *second;
    char id[129];

    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    strcpy(id, jobq_message_id(m));
    assert_int_equal(assert_ok(jobq_queue_push(queue, other)), 1);
    job = reserve(queue);
    assert_string_equal(jobq_job_id(job), id);
    assert_int_equal(assert_ok(jobq_queue_push(queue, other)), 0); /* while it runs */
    assert_ok(jobq_job_retry(job, 0));
    jobq_job_free(job);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1);
    job = reserve(queue);
    second = reserve(queue); /* the retry and the other one, in either order */
    assert_non_null(second);
    assert_ok(jobq_job_done(job));
    assert_ok(jobq_job_done(second));
    jobq_job_free(job);
    jobq_job_free(second);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    jobq_message_free(m);
    jobq_message_free(other);
}

/* until_done: it is held through running and retry. */
static void holds_the_key_to_the_end(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = prepared(1, "unique", "k", "backoff", "0", NULL);
    jobq_job *job;

    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    job = reserve(queue);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1);
    assert_ok(jobq_job_retry(job, 0));
    jobq_job_free(job);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1);
    finish(queue);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    jobq_message_free(m);
}

static void refuses_options_without_their_need(void **state)
{
    static const struct {
        const char *name, *value, *said;
    } rows[] = {
        {"unique_scope", "until_done", "option \"unique_scope\" needs option \"unique\""},
        {"on_duplicate", "keep", "option \"on_duplicate\" needs option \"unique\""},
        {"max_wait", "5", "option \"max_wait\" needs option \"unique\""},
        {"idempotent", "true", "option \"idempotent\" needs option \"id\""},
        {"idempotent_for", "60", "option \"idempotent_for\" needs option \"idempotent\""},
    };
    jobq_queue *queue = *state;
    jobq_message *m;
    jobq_conf *given;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        m = prepared(1, rows[i].name, rows[i].value, NULL);
        assert_code(jobq_queue_push(queue, m), JOBQ_EINVAL);
        assert_said(rows[i].said);
        assert_string_equal(jobq_error_subject(jobq_error_last()), rows[i].name);
        jobq_message_free(m);
    }
    m = prepared(1, "unique", "k", "max_wait", "5", NULL);
    assert_code(jobq_queue_push(queue, m), JOBQ_EINVAL);
    assert_said("option \"max_wait\" needs option \"on_duplicate\" to be \"replace\"");
    jobq_message_free(m);
    m = prepared(1, NULL); /* in the words of who gave it */
    given = jobq_conf_new(JOBQ_SCOPE_PUSH, JOBQ_STYLE_KEBAB);
    assert_ok(jobq_conf_set(given, "max-wait", "5", 1));
    assert_ok(jobq_conf_merge(jobq_message_options(m), given));
    assert_code(jobq_queue_push(queue, m), JOBQ_EINVAL);
    assert_said("option \"--max-wait\" needs option \"--unique\"");
    jobq_conf_free(given);
    jobq_message_free(m);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
}

/* ---- rule B5 --------------------------------------------------------------------------------- */

static void pass(int64_t ms)
{
    jobq__clock_shift(ms, 0);
}

static void repeats_a_push_safely(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = prepared(1, "id", "order-7", "idempotent", "true", "idempotent_for", "60",
                               NULL),
                 *plain = prepared(1, "id", "order-7", NULL);
    const void *body;
    jobq_info *info;
    size_t n;

    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1);
    assert_string_equal(jobq_message_id(m), "order-7");
    assert_code(jobq_queue_push(queue, plain), JOBQ_EEXISTS);
    finish(queue);
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 1); /* it is remembered ... */
    assert_ok(jobq_queue_find(queue, "order-7", 7, &info));
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DONE);
    body = jobq_info_body(info, &n, NULL);
    assert_true(!body || n == 0); /* ... and nothing more than that */
    assert_code(jobq_info_check(info), JOBQ_EPAYLOAD);
    assert_string_equal(jobq_error_message(jobq_error_last()),
                        "the job is done, and only its id was kept");
    assert_true(jobq_info_number(info, JOBQ_INFO_KEPT_UNTIL_MS) > 0);
    jobq_info_free(info);
    pass(61000);
    assert_ok(jobq_queue_prune(queue, NULL, false, NULL, NULL));
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0); /* forgotten */
    pass(-61000);
    jobq_message_free(m);
    jobq_message_free(plain);
}

/* ---- rule B7 --------------------------------------------------------------------------------- */

static void asks_the_guard(void **state)
{
    jobq_queue *queue = *state;
    jobq_param params[] = {{.type = JOBQ_PARAM_INT, .integer = 0}};
    jobq_statement guard = {{"SELECT ?1", 9}, params, 1};
    jobq_message *m = prepared(1, NULL);

    assert_ok(jobq_message_set_guard(m, &guard));
    params[0].integer = 5; /* it was copied */
    assert_code(jobq_queue_push(queue, m), JOBQ_EGUARD);
    assert_string_equal(jobq_error_subject(jobq_error_last()), jobq_message_id(m));
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0);
    assert_ok(jobq_message_set_guard(m, &guard));
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    guard.text.n = 0;
    assert_code(jobq_message_set_guard(m, &guard), JOBQ_EINVAL);
    assert_said("guard: a statement must have 1 to 65536 bytes");
    assert_ok(jobq_message_set_guard(m, NULL));
    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    jobq_message_free(m);
}

static void memory_has_no_guard(void **state)
{
    const jobq_statement guard = {{"SELECT 1", 8}, NULL, 0};
    jobq_message *m = prepared(1, NULL);
    const jobq_statement *given;

    assert_ok(jobq_message_set_guard(m, &guard));
    assert_code(jobq_queue_push(*state, m), JOBQ_EUNSUPPORTED);
    assert_code(jobq_queue_push_statement(*state, m, JOBQ_PLACEHOLDER_OWN, &given),
                JOBQ_EUNSUPPORTED);
    jobq_message_free(m);
}

/* ---- rule B8 --------------------------------------------------------------------------------- */

static void lends_the_statement(void **state)
{
    jobq_queue *queue = *state;
    jobq_message *m = prepared(1, "id", "a", NULL);
    const jobq_statement *own, *format;
    size_t params;

    assert_code(jobq_queue_push_statement(queue, m, 9, &own), JOBQ_EINVAL);
    assert_ok(jobq_queue_push_statement(queue, m, JOBQ_PLACEHOLDER_OWN, &own));
    assert_string_equal(jobq_message_id(m), "a");
    params = own->param_count;
    assert_true(params > 3 && memchr(own->text.p, '?', own->text.n));
    assert_ok(jobq_queue_push_statement(queue, m, JOBQ_PLACEHOLDER_FORMAT, &format));
    assert_int_equal(format->param_count, params);
    assert_null(memchr(format->text.p, '?', format->text.n));
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 0); /* nobody carried it out */
    assert_false(exists(queue, "a"));
    jobq_message_free(m);
}

/* The placeholders of every store, in the words of every client. */
static void rewrites_placeholders(void **state)
{
    static const struct {
        const char *own;
        size_t params;
        const char *question, *format, *dollar;
    } rows[] = {
        {"SELECT ?1, ?22", 2, "SELECT ?, ?", "SELECT %s, %s", "SELECT $1, $2"},
        {"f($1::text,$2)", 2, "f(?::text,?)", "f(%s::text,%s)", "f($1::text,$2)"},
        {"a LIKE 'x%?$1''%' AND b=?", 1, "a LIKE 'x%?$1''%' AND b=?",
         "a LIKE 'x%%?$1''%%' AND b=%s", "a LIKE 'x%?$1''%' AND b=$1"},
        {"\"a?\"=`$1`", 0, "\"a?\"=`$1`", "\"a?\"=`$1`", "\"a?\"=`$1`"},
        {"x $ y 'open?", 0, "x $ y 'open?", "x $ y 'open?", "x $ y 'open?"},
    };
    jobq__arena arena = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const wanted[] = {rows[i].own, rows[i].question, rows[i].format,
                                      rows[i].dollar};

        for (int style = JOBQ_PLACEHOLDER_OWN; style <= JOBQ_PLACEHOLDER_DOLLAR; style++) {
            jobq_statement s = {{rows[i].own, strlen(rows[i].own)}, NULL, rows[i].params};

            assert_ok(jobq__statement_adapt(&arena, style, &s));
            assert_int_equal(s.text.n, strlen(wanted[style]));
            assert_memory_equal(s.text.p, wanted[style], s.text.n);
        }
    }
    {
        jobq_statement s = {{"SELECT ?", 8}, NULL, 2};

        assert_code(jobq__statement_adapt(&arena, JOBQ_PLACEHOLDER_QUESTION, &s), JOBQ_EBUG);
    }
    jobq__arena_free(&arena);
}

#define on_sqlite(test)                             \
    {                                               \
#test, test, open_sqlite, close_store, NULL \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        on_both(refuses_above_capacity),
        on_both(refuses_bad_capacities),
        cmocka_unit_test(applies_the_option_where_none_was_set),
        on_both(keeps_refuses_or_replaces),
        on_both(frees_the_key_at_the_start),
        on_both(holds_the_key_to_the_end),
        on_both(refuses_options_without_their_need),
        on_both(repeats_a_push_safely),
        on_sqlite(asks_the_guard),
        {"memory_has_no_guard", memory_has_no_guard, open_memory, close_store, NULL},
        on_sqlite(lends_the_statement),
        cmocka_unit_test(rewrites_placeholders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
