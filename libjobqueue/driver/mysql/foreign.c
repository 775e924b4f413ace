/* SPDX-License-Identifier: MIT
 *
 * The caller's own statements: conditions of a push, and work that is tied to a lease (rules B7,
 * O1). They are prepared one at a time, so that there is one of them and values are parameters
 * only, and stand in a transaction of ours, which they must not end.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/str.h"

#define HOLDS                                                                \
    "SELECT j.place=(SELECT w.worker FROM jobqueue_worker w WHERE w.id=?3) " \
    "FROM jobqueue_job j WHERE j.seq=?1 AND j.nonce=?2 AND j.place>=16 FOR UPDATE"

/* ---- what may be said ------------------------------------------------------------------------ */

/* Behind the comment that begins here; NULL: none does. What a server of some version would carry
 * out is none. */
static const char *skip_comment(const char *p, const char *end)
{
    const char *stop = NULL;

    if (end - p > 2 && p[0] == '/' && p[1] == '*' && p[2] != '!' && p[2] != 'M') {
        stop = memmem(p + 2, (size_t)(end - p) - 2, "*/", 2);
        return stop ? stop + 2 : NULL;
    }
    if (end - p > 1 && (*p == '#' || (p[0] == '-' && p[1] == '-')))
        stop = memchr(p, '\n', (size_t)(end - p));
    return stop ? stop + 1 : NULL;
}

static jobq_slice skip_blanks(jobq_slice s)
{
    const char *p = s.p, *end = p + s.n, *behind;

    for (;;) {
        while (p < end && (isspace((unsigned char)*p) || *p == '('))
            p++;
        behind = skip_comment(p, end);
        if (!behind)
            return jobq__slice(p, (size_t)(end - p));
        p = behind;
    }
}

static bool begins_with(jobq_slice s, const char *word)
{
    const size_t n = strlen(word);

    return s.n >= n && strncasecmp(s.p, word, n) == 0 &&
           (s.n == n || !isalnum((unsigned char)((const char *)s.p)[n]));
}

/* Everything else would, or could, end the transaction or change the session. */
static int check_word(const jobq_statement *s, const char *what, const char *const *words,
                      const char *allowed)
{
    const jobq_slice text = skip_blanks(s->text);

    for (; *words; words++)
        if (begins_with(text, *words))
            return 0;
    return jobq__error_set_driver(JOBQ_EINVAL, 0, "mysql", 0,
                                  "mysql: the %s must be one statement of these: %s", what,
                                  allowed);
}

/* ---- saying it ------------------------------------------------------------------------------- */

typedef struct {
    MYSQL_STMT *stmt;
    const char *what; /* "guard", "effect" */
    int64_t integer;
    double real;
    unsigned long length;
    my_bool null, is_unsigned;
    int type; /* JOBQ_PARAM_* of the first column */
    bool decimal;
} foreign;

static void bind_value(MYSQL_BIND *bind, const jobq_param *p)
{
    switch (p->type) {
    case JOBQ_PARAM_INT:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = (void *)&p->integer;
        break;
    case JOBQ_PARAM_DOUBLE:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        bind->buffer = (void *)&p->real;
        break;
    case JOBQ_PARAM_TEXT:
    case JOBQ_PARAM_BYTES:
        bind->buffer_type = p->type == JOBQ_PARAM_TEXT ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
        bind->buffer = p->bytes.n ? (void *)p->bytes.p : "";
        bind->buffer_length = p->bytes.n;
        bind->length = &bind->buffer_length;
        break;
    default:
        bind->buffer_type = MYSQL_TYPE_NULL;
    }
}

static int bind_values(mysql_store *store, foreign *f, const jobq_statement *s, MYSQL_BIND *in)
{
    const size_t wanted = mysql_stmt_param_count(f->stmt);

    if (wanted != s->param_count)
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "mysql", 0,
                                      "mysql: the %s takes %zu value%s, got %zu", f->what, wanted,
                                      jobq__plural((int64_t)wanted), s->param_count);
    for (size_t i = 0; i < wanted; i++)
        bind_value(&in[i], &s->params[i]);
    if (wanted && mysql_stmt_bind_param(f->stmt, in))
        return jobq__mysql_fail(store, mysql_stmt_errno(f->stmt), mysql_stmt_error(f->stmt));
    return 0;
}

/* The server would end the connection in the middle of it, and say no more than that. */
static int check_size(const mysql_store *store, const foreign *f, const jobq_statement *s)
{
    enum { VALUE_MORE = 32 }; /* type and length, or a number */
    size_t n = s->text.n;

    for (size_t i = 0; i < s->param_count; i++) {
        const int type = s->params[i].type;

        n += VALUE_MORE;
        if (type == JOBQ_PARAM_TEXT || type == JOBQ_PARAM_BYTES)
            n += s->params[i].bytes.n;
    }
    if (store->max_packet <= 0 || (int64_t)n < store->max_packet)
        return 0;
    return jobq__error_set_driver(JOBQ_EINVAL, 0, "mysql", 0,
                                  "mysql: the %s has %zu bytes with its values, the server takes "
                                  "less than %lld (max_allowed_packet)",
                                  f->what, n, (long long)store->max_packet);
}

static int execute(mysql_store *store, foreign *f, const jobq_statement *s)
{
    MYSQL_BIND *in;
    int rc = check_size(store, f, s);

    if (rc < 0)
        return rc;
    in = jobq__zalloc((s->param_count + 1) * sizeof(*in));
    f->stmt = in ? mysql_stmt_init(store->db) : NULL;
    if (!f->stmt) {
        jobq__free(in);
        return jobq__error_nomem();
    }
    rc = jobq__mysql_wire_prepare(store, f->stmt, s->text.p, s->text.n);
    rc = rc ? rc : bind_values(store, f, s, in);
    rc = rc ? rc : jobq__mysql_wire_execute(store, f->stmt);
    jobq__free(in);
    return rc;
}

/* ---- hearing --------------------------------------------------------------------------------- */

static int type_of(const MYSQL_FIELD *field, bool *decimal)
{
    *decimal = false;
    switch (field->type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return JOBQ_PARAM_INT;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
        return JOBQ_PARAM_DOUBLE;
    case MYSQL_TYPE_NULL:
        return JOBQ_PARAM_NULL;
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
        *decimal = true;
        return JOBQ_PARAM_TEXT;
    case MYSQL_TYPE_BIT:
        return JOBQ_PARAM_BYTES;
    default: /* 63: binary; times have it, too */
        return field->charsetnr == 63 && (field->type >= MYSQL_TYPE_TINY_BLOB) ? JOBQ_PARAM_BYTES
                                                                               : JOBQ_PARAM_TEXT;
    }
}

/* Only the first column is wanted; the others are not looked at. */
static int bind_first(mysql_store *store, foreign *f, MYSQL_BIND *out)
{
    MYSQL_RES *result = mysql_stmt_result_metadata(f->stmt);
    const MYSQL_FIELD *field = result ? mysql_fetch_fields(result) : NULL;

    if (!field)
        return jobq__error_nomem();
    f->type = type_of(field, &f->decimal);
    f->is_unsigned = (field->flags & UNSIGNED_FLAG) != 0;
    mysql_free_result(result);
    out[0].is_null = &f->null;
    out[0].length = &f->length;
    out[0].buffer_type = f->type == JOBQ_PARAM_INT      ? MYSQL_TYPE_LONGLONG
                         : f->type == JOBQ_PARAM_DOUBLE ? MYSQL_TYPE_DOUBLE
                                                        : MYSQL_TYPE_STRING;
    out[0].is_unsigned = f->is_unsigned;
    if (f->type == JOBQ_PARAM_INT)
        out[0].buffer = &f->integer;
    if (f->type == JOBQ_PARAM_DOUBLE)
        out[0].buffer = &f->real;
    if (mysql_stmt_bind_result(f->stmt, out))
        return jobq__mysql_fail(store, mysql_stmt_errno(f->stmt), mysql_stmt_error(f->stmt));
    return 0;
}

static int copy_bytes(foreign *f, jobq_batch *out, jobq_slice *to)
{
    char *copy = jobq_batch_alloc(out, f->length + 1);
    MYSQL_BIND bind = {
        .buffer_type = MYSQL_TYPE_STRING, .buffer = copy, .buffer_length = f->length};

    if (!copy)
        return jobq__error_nomem();
    if (f->length)
        mysql_stmt_fetch_column(f->stmt, &bind, 0, 0);
    *to = jobq__slice(copy, f->length);
    return 0;
}

/* A sum is a decimal number here; a whole one, and zero, is a number, others stay exact as text. */
static void make_whole(jobq_param *value)
{
    const char *text = value->bytes.p ? value->bytes.p : "";
    const bool zero = jobq__str_to_double(text) == 0;
    char *end;
    long long whole = strtoll(text, &end, 10);

    if (zero || (end == text + value->bytes.n && value->bytes.n <= 18))
        *value = (jobq_param){.type = JOBQ_PARAM_INT, .integer = zero ? 0 : whole};
}

static int read_value(foreign *f, jobq_batch *out, jobq_param *value)
{
    char digits[24];
    int rc = 0;

    *value = (jobq_param){.type = f->null ? JOBQ_PARAM_NULL : f->type};
    if (value->type == JOBQ_PARAM_INT && f->is_unsigned && f->integer < 0) {
        const int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)f->integer);

        value->type = JOBQ_PARAM_TEXT; /* beyond what a number holds */
        value->bytes = jobq_batch_copy(out, digits, (size_t)n);
        return value->bytes.p ? 0 : jobq__error_nomem();
    }
    value->integer = value->type == JOBQ_PARAM_INT ? f->integer : 0;
    value->real = value->type == JOBQ_PARAM_DOUBLE ? f->real : 0;
    if (value->type == JOBQ_PARAM_TEXT || value->type == JOBQ_PARAM_BYTES)
        rc = copy_bytes(f, out, &value->bytes);
    if (rc == 0 && f->decimal && value->type == JOBQ_PARAM_TEXT)
        make_whole(value);
    return rc;
}

/* The first result's first row; 1 there is one, 0 there is none. */
static int first_row(mysql_store *store, foreign *f, jobq_batch *out, jobq_param *value)
{
    const unsigned int columns = mysql_stmt_field_count(f->stmt);
    MYSQL_BIND *binds = jobq__zalloc((columns + 1) * sizeof(*binds));
    int rc, fetched;

    if (columns == 0) {
        jobq__free(binds);
        return 0;
    }
    for (unsigned int i = 1; i < columns && binds; i++)
        binds[i].buffer_type = MYSQL_TYPE_NULL;
    rc = binds ? bind_first(store, f, binds) : jobq__error_nomem();
    rc = rc ? rc : jobq__mysql_wire_store(store, f->stmt);
    if (rc == 0) {
        fetched = mysql_stmt_fetch(f->stmt);
        rc = fetched == 0 || fetched == MYSQL_DATA_TRUNCATED;
    }
    if (rc > 0 && read_value(f, out, value) < 0)
        rc = JOBQ_ENOMEM;
    jobq__free(binds);
    return rc;
}

/* A procedure may have more to say. */
static int hear_out(mysql_store *store, foreign *f)
{
    int rc = 1;

    while (rc > 0) {
        mysql_stmt_free_result(f->stmt);
        rc = jobq__mysql_wire_next(store, f->stmt);
    }
    return rc;
}

/* 1 there was a row, 0 there was none, or an error. What the server says of the statement is the
 * caller's mistake, unless it is of those that every statement can meet. */
static int carry_out(mysql_store *store, const jobq_statement *s, const char *what, jobq_batch *out,
                     jobq_param *value, int64_t *changed)
{
    foreign f = {.what = what};
    int rc = execute(store, &f, s), more;

    if (rc == 0) {
        *changed = (int64_t)mysql_stmt_affected_rows(f.stmt);
        rc = first_row(store, &f, out, value);
        more = rc < 0 ? 0 : hear_out(store, &f);
        rc = more < 0 ? more : rc;
    }
    if (rc < 0 && f.stmt)
        rc = jobq__mysql_refuse_foreign(store, what, mysql_stmt_errno(f.stmt),
                                        mysql_stmt_error(f.stmt));
    jobq__mysql_close_statement(store, f.stmt);
    return rc;
}

/* ---- guards ---------------------------------------------------------------------------------- */

static bool is_true(const jobq_param *value)
{
    switch (value->type) {
    case JOBQ_PARAM_NULL:
        return false;
    case JOBQ_PARAM_INT:
        return value->integer != 0;
    case JOBQ_PARAM_DOUBLE:
        return value->real != 0;
    default:
        return value->bytes.n > 0;
    }
}

int jobq__mysql_judge_guard(mysql_store *store, const jobq_statement *guard)
{
    static const char *const words[] = {"SELECT", "WITH", "VALUES", NULL};
    jobq_batch texts = {0};
    jobq_param value = {.type = JOBQ_PARAM_NULL};
    int64_t changed;
    int rc = check_word(guard, "guard", words, "SELECT, WITH, VALUES");

    rc = rc ? rc : carry_out(store, guard, "guard", &texts, &value, &changed);
    if (rc > 0)
        rc = is_true(&value);
    jobq__batch_free(&texts);
    return rc;
}

/* ---- effects --------------------------------------------------------------------------------- */

static int run_effect(mysql_store *store, void *payload)
{
    static const char *const words[] = {"SELECT", "WITH",   "VALUES", "INSERT", "REPLACE",
                                        "UPDATE", "DELETE", "CALL",   "DO",     NULL};
    jobq_effect *e = payload;
    const mysql_arg args[] = {number_arg((int64_t)e->token.word[0]),
                              number_arg((int64_t)e->token.word[2]), bytes_arg(e->worker)};
    int64_t holds = 0, changed = 0;
    bool found = false;
    int rc = check_word(&e->statement, "effect", words,
                        "SELECT, WITH, VALUES, INSERT, REPLACE, UPDATE, DELETE, CALL, DO");

    rc = rc ? rc : jobq__mysql_begin(store);
    rc = rc ? rc : jobq__mysql_ask(store, HOLDS, args, &found, &holds);
    e->result = found && holds ? 0 : JOBQ_ELEASE;
    if (rc < 0 || e->result)
        return rc;
    rc = carry_out(store, &e->statement, "effect", e->out, &e->value, &changed);
    if (rc == 0)
        e->value = (jobq_param){.type = JOBQ_PARAM_INT, .integer = changed < 0 ? 0 : changed};
    if (rc >= 0 && !(store->db->server_status & SERVER_STATUS_IN_TRANS)) {
        store->suspect = true;
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "mysql", 0,
                                      "mysql: the effect has ended its transaction: what it did "
                                      "is done, whether or not the lease held");
    }
    return rc < 0 ? rc : 0;
}

int jobq__mysql_effect(void *handle, jobq_effect *e)
{
    return jobq__mysql_do(handle, MYSQL_DOUBTFUL, run_effect, e);
}
