/* SPDX-License-Identifier: MIT
 *
 * Prepared statements, once per connection, over the binary protocol. All values are arguments;
 * the only thing a text varies in is how often its part in braces is repeated.
 */
#include <string.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/error.h"

enum { LIST_BIT = 1 << 16 };

struct mysql_statement {
    mysql_statement *next;
    const char *sql; /* the text it was made from, and how often the braces were repeated */
    size_t copies;
    MYSQL_STMT *stmt;
    size_t params;
    uint32_t *source; /* of each ?: number of the argument, or list * LIST_BIT + place in it */
    MYSQL_BIND *in, *out;
    unsigned int columns;
    int64_t *numbers;
    unsigned long *lengths;
    my_bool *nulls;
};

size_t jobq__mysql_copies(size_t n)
{
    size_t size = 1;

    while (size < n)
        size *= 4;
    return size;
}

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct {
    jobq__buf text;
    uint32_t *source;
    size_t count, room;
    bool failed;
} translation;

static void add_param(translation *t, uint32_t source)
{
    if (t->count == t->room) {
        size_t room = t->room ? t->room * 2 : 32;
        uint32_t *grown = jobq__realloc(t->source, room * sizeof(*grown));

        if (!grown) {
            t->failed = true;
            return;
        }
        t->source = grown;
        t->room = room;
    }
    t->source[t->count++] = source;
    jobq__buf_addc(&t->text, '?');
}

/* Repeats what stands in braces; behind the closing one. */
static const char *translate_braces(translation *t, const char *p, size_t copies, uint32_t list)
{
    const char *end = strchr(p, '}');
    uint32_t place = 0;

    for (size_t i = 0; i < copies; i++) {
        if (i)
            jobq__buf_addc(&t->text, ',');
        for (const char *c = p; c < end; c++)
            if (*c == '?')
                add_param(t, list * LIST_BIT + place++);
            else
                jobq__buf_addc(&t->text, *c);
    }
    return end + 1;
}

static void translate(translation *t, const char *sql, size_t copies)
{
    uint32_t list = 0;

    while (*sql) {
        if (*sql == '{') {
            sql = translate_braces(t, sql + 1, copies, ++list);
        } else if (*sql == '?') {
            add_param(t, (uint32_t)(sql[1] <= '9' ? sql[1] - '1' : sql[1] - 'a' + 9));
            sql += 2;
        } else {
            jobq__buf_addc(&t->text, *sql++);
        }
    }
}

/* ---- making one ------------------------------------------------------------------------------ */

static void free_statement(mysql_statement *s)
{
    if (s->stmt)
        mysql_stmt_close(s->stmt);
    jobq__free(s->source);
    jobq__free(s->in);
    jobq__free(s->out);
    jobq__free(s->numbers);
    jobq__free(s->lengths);
    jobq__free(s->nulls);
    jobq__free(s);
}

void jobq__mysql_forget_statements(mysql_store *store)
{
    while (store->statements) {
        mysql_statement *s = store->statements;

        store->statements = s->next;
        free_statement(s);
    }
}

static bool is_number(const MYSQL_FIELD *field)
{
    switch (field->type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
    case MYSQL_TYPE_NULL:
        return true;
    default:
        return false;
    }
}

/* Numbers are read as 64 bits, everything else as bytes whose length is learnt first. */
static void bind_columns(mysql_statement *s, const MYSQL_FIELD *fields)
{
    for (unsigned int i = 0; i < s->columns; i++) {
        MYSQL_BIND *bind = &s->out[i];

        bind->is_null = &s->nulls[i];
        bind->length = &s->lengths[i];
        bind->buffer_type = is_number(&fields[i]) ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        if (bind->buffer_type == MYSQL_TYPE_LONGLONG)
            bind->buffer = &s->numbers[i];
    }
}

static int make_columns(mysql_statement *s)
{
    MYSQL_RES *result = mysql_stmt_result_metadata(s->stmt);

    s->columns = mysql_stmt_field_count(s->stmt);
    if (s->columns == 0)
        return 0;
    s->out = jobq__zalloc(s->columns * sizeof(*s->out));
    s->numbers = jobq__zalloc(s->columns * sizeof(*s->numbers));
    s->lengths = jobq__zalloc(s->columns * sizeof(*s->lengths));
    s->nulls = jobq__zalloc(s->columns * sizeof(*s->nulls));
    if (result && s->out && s->numbers && s->lengths && s->nulls)
        bind_columns(s, mysql_fetch_fields(result));
    mysql_free_result(result);
    if (!result || !s->out || !s->numbers || !s->lengths || !s->nulls ||
        mysql_stmt_bind_result(s->stmt, s->out))
        return jobq__error_nomem();
    return 0;
}

static int prepare(mysql_store *store, mysql_statement *s)
{
    translation t = {0};
    int rc;

    translate(&t, s->sql, s->copies);
    s->source = t.source;
    s->params = t.count;
    s->in = jobq__zalloc((t.count + 1) * sizeof(*s->in));
    s->stmt = mysql_stmt_init(store->db);
    rc = t.failed || t.text.failed || !s->in || !s->stmt
             ? jobq__error_nomem()
             : jobq__mysql_wire_prepare(store, s->stmt, t.text.p, t.text.n);
    jobq__buf_free(&t.text);
    return rc ? rc : make_columns(s);
}

static mysql_statement *use(mysql_store *store, const mysql_call *call)
{
    mysql_statement *s = store->statements;

    while (s && (s->sql != call->sql || s->copies != call->copies))
        s = s->next;
    if (s)
        return s;
    s = jobq__zalloc(sizeof(*s));
    if (!s) {
        jobq__error_nomem();
        return NULL;
    }
    s->sql = call->sql;
    s->copies = call->copies;
    if (prepare(store, s) < 0)
        s->sql = NULL; /* found by nobody, freed with the connection */
    s->next = store->statements;
    store->statements = s;
    return s->sql ? s : NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

static void bind_arg(MYSQL_BIND *bind, const mysql_arg *arg)
{
    if (arg->is_number) {
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = (void *)&arg->number;
    } else if (arg->p) {
        bind->buffer_type = MYSQL_TYPE_BLOB;
        bind->buffer = (void *)arg->p;
        bind->buffer_length = arg->n;
        bind->length = &bind->buffer_length;
    } else {
        bind->buffer_type = MYSQL_TYPE_NULL;
    }
}

static const mysql_arg *argument(const mysql_call *call, uint32_t source)
{
    static const mysql_arg null = {NULL, 0, 0, false};
    const mysql_list *list;
    size_t place = source % LIST_BIT;

    if (source < LIST_BIT)
        return &call->args[source];
    list = &call->list[source / LIST_BIT - 1];
    if (list->count == 0)
        return &null;
    return &list->args[place < list->count ? place : list->count - 1];
}

static int execute(mysql_store *store, const mysql_call *call, mysql_statement **statement_out)
{
    mysql_statement *s = use(store, call);
    int rc;

    if (!s)
        return jobq__error_code();
    memset(s->in, 0, s->params * sizeof(*s->in));
    for (size_t i = 0; i < s->params; i++)
        bind_arg(&s->in[i], argument(call, s->source[i]));
    if (s->params && mysql_stmt_bind_param(s->stmt, s->in))
        return jobq__mysql_fail(store, mysql_stmt_errno(s->stmt), mysql_stmt_error(s->stmt));
    rc = jobq__mysql_wire_execute(store, s->stmt);
    if (rc == 0)
        *statement_out = s;
    return rc;
}

int64_t jobq__mysql_run_call(mysql_store *store, const mysql_call *call)
{
    mysql_statement *s = NULL;
    int rc = execute(store, call, &s);

    return s ? (int64_t)mysql_stmt_affected_rows(s->stmt) : rc;
}

int64_t jobq__mysql_run(mysql_store *store, const char *sql, const mysql_arg *args)
{
    const mysql_call call = {.sql = sql, .args = args};

    return jobq__mysql_run_call(store, &call);
}

int64_t jobq__mysql_run_list(mysql_store *store, const char *sql, const mysql_arg *args,
                             mysql_list list, mysql_list second)
{
    const mysql_call call = {
        .sql = sql, .args = args, .list = {list, second}, .copies = jobq__mysql_copies(list.count)};

    return jobq__mysql_run_call(store, &call);
}

int64_t jobq__mysql_last_id(const mysql_store *store, const char *sql)
{
    for (const mysql_statement *s = store->statements; s; s = s->next)
        if (s->sql == sql)
            return (int64_t)mysql_stmt_insert_id(s->stmt);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

int jobq__mysql_select_call(mysql_store *store, const mysql_call *call, mysql_statement **rows_out)
{
    mysql_statement *s = NULL;
    int rc = execute(store, call, &s);

    if (!s)
        return rc;
    rc = jobq__mysql_wire_store(store, s->stmt);
    if (rc == 0)
        *rows_out = s;
    return rc;
}

int jobq__mysql_select(mysql_store *store, const char *sql, const mysql_arg *args,
                       mysql_statement **rows_out)
{
    const mysql_call call = {.sql = sql, .args = args};

    return jobq__mysql_select_call(store, &call, rows_out);
}

int jobq__mysql_select_list(mysql_store *store, const char *sql, const mysql_arg *args,
                            mysql_list list, mysql_statement **rows_out)
{
    const mysql_call call = {
        .sql = sql, .args = args, .list = {list}, .copies = jobq__mysql_copies(list.count)};

    return jobq__mysql_select_call(store, &call, rows_out);
}

bool jobq__mysql_next(mysql_statement *rows)
{
    int rc = rows ? mysql_stmt_fetch(rows->stmt) : MYSQL_NO_DATA;

    return rc == 0 || rc == MYSQL_DATA_TRUNCATED;
}

void jobq__mysql_end(mysql_statement *rows)
{
    if (rows)
        mysql_stmt_free_result(rows->stmt);
}

bool jobq__mysql_is_null(const mysql_statement *rows, unsigned int column)
{
    return rows->nulls[column];
}

size_t jobq__mysql_length(const mysql_statement *rows, unsigned int column)
{
    return rows->nulls[column] ? 0 : rows->lengths[column];
}

int64_t jobq__mysql_number(const mysql_statement *rows, unsigned int column)
{
    MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_LONGLONG};
    int64_t number = 0;

    if (rows->nulls[column])
        return 0;
    if (rows->out[column].buffer)
        return rows->numbers[column];
    bind.buffer = &number; /* a number as text */
    mysql_stmt_fetch_column(rows->stmt, &bind, column, 0);
    return number;
}

void jobq__mysql_read(const mysql_statement *rows, unsigned int column, void *to, size_t n)
{
    MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_BLOB, .buffer = to, .buffer_length = n};

    if (n)
        mysql_stmt_fetch_column(rows->stmt, &bind, column, 0);
}

bool jobq__mysql_copy(const mysql_statement *rows, unsigned int column, jobq_batch *out,
                      jobq_slice *to)
{
    size_t n = jobq__mysql_length(rows, column);
    char *copy;

    if (rows->nulls[column]) {
        *to = jobq__slice(NULL, 0);
        return true;
    }
    copy = jobq_batch_alloc(out, n + 1);
    if (!copy)
        return false;
    jobq__mysql_read(rows, column, copy, n);
    copy[n] = '\0';
    *to = jobq__slice(copy, n);
    return true;
}

int jobq__mysql_ask(mysql_store *store, const char *sql, const mysql_arg *args, bool *found_out,
                    int64_t *number_out)
{
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, sql, args, &rows);

    if (rc < 0)
        return rc;
    *found_out = jobq__mysql_next(rows);
    if (*found_out)
        *number_out = jobq__mysql_number(rows, 0);
    jobq__mysql_end(rows);
    return 0;
}

void jobq__mysql_read_counters(const mysql_statement *rows, unsigned int at, jobq_record *r)
{
    int64_t *const to[] = {&r->counters.deliveries,
                           &r->counters.failures,
                           &r->counters.crashes,
                           &r->counters.releases,
                           &r->counters.losses,
                           &r->counters.exceptions,
                           &r->counters.parks,
                           &r->counters.parked_since_ms,
                           &r->fence,
                           &r->enqueued_at_ms,
                           &r->base_at_ms};

    for (unsigned int i = 0; i < sizeof(to) / sizeof(to[0]); i++)
        *to[i] = jobq__mysql_number(rows, at + i);
}

/* ---- transactions ---------------------------------------------------------------------------- */

int jobq__mysql_begin(mysql_store *store)
{
    int rc = jobq__mysql_query(store, "START TRANSACTION");

    store->in_transaction = rc == 0;
    return rc;
}

int jobq__mysql_commit(mysql_store *store)
{
    int rc;

    store->in_doubt = true;
    rc = jobq__mysql_query(store, "COMMIT");
    store->in_doubt = false;
    store->in_transaction = rc < 0;
    return rc;
}

/* On a connection that is dropped anyway the server does it by itself. */
void jobq__mysql_roll_back(mysql_store *store)
{
    bool transient = store->transient;
    struct jobq_error saved;

    if (!store->in_transaction)
        return;
    store->in_transaction = false;
    store->queue_count = 0; /* a name may be gone with it */
    jobq__mysql_reset_hints(store);
    if (store->suspect)
        return;
    jobq__error_save(&saved);
    if (jobq__mysql_query(store, "ROLLBACK") < 0)
        store->suspect = true;
    jobq__error_restore(&saved);
    store->transient = transient;
}
