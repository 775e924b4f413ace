/* SPDX-License-Identifier: MIT
 *
 * Prepared statements, once per connection, over the binary protocol. All values are arguments;
 * the only thing a text varies in is how often parts of it are repeated.
 */
#include <string.h>

#include "driver/mysql/statement.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/error.h"

enum { LIST_BIT = 1 << 16 };

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

static bool is_numbered(const char *p)
{
    return (p[1] >= '1' && p[1] <= '9') || (p[1] >= 'a' && p[1] <= 'f');
}

static const char *translate_argument(translation *t, const char *p)
{
    add_param(t, (uint32_t)(p[1] <= '9' ? p[1] - '1' : p[1] - 'a' + 9));
    return p + 2;
}

/* Repeats what stands between backticks; behind the second one. */
static const char *translate_block(translation *t, const char *p, size_t blocks)
{
    const char *end = strchr(p, '`');
    uint32_t place = 0;

    for (size_t i = 0; i < blocks; i++)
        for (const char *c = p; c < end;) {
            if (*c == '?' && is_numbered(c)) {
                c = translate_argument(t, c);
                continue;
            }
            if (*c == '?')
                add_param(t, (MYSQL_BLOCKS + 1) * LIST_BIT + place++);
            else
                jobq__buf_addc(&t->text, *c);
            c++;
        }
    return end + 1;
}

static void translate(translation *t, const char *sql, size_t copies, size_t blocks)
{
    uint32_t list = 0;

    while (*sql) {
        if (*sql == '{') {
            sql = translate_braces(t, sql + 1, copies, ++list);
        } else if (*sql == '`') {
            sql = translate_block(t, sql + 1, blocks);
        } else if (*sql == '?') {
            sql = translate_argument(t, sql);
        } else {
            jobq__buf_addc(&t->text, *sql++);
        }
    }
}

/* ---- making one ------------------------------------------------------------------------------ */

static void free_columns(mysql_statement *s)
{
    jobq__free(s->out);
    jobq__free(s->numbers);
    jobq__free(s->lengths);
    jobq__free(s->nulls);
    s->room = 0;
}

static void free_statement(mysql_statement *s)
{
    if (s->stmt)
        mysql_stmt_close(s->stmt);
    jobq__free(s->source);
    jobq__free(s->in);
    jobq__free(s->arrays);
    free_columns(s);
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

/* With a connection that is given up it goes when that has gone. */
void jobq__mysql_close_statement(mysql_store *store, MYSQL_STMT *stmt)
{
    mysql_statement *kept = store->suspect && stmt ? jobq__zalloc(sizeof(*kept)) : NULL;

    if (kept) {
        kept->stmt = stmt;
        kept->next = store->statements;
        store->statements = kept;
    } else if (stmt) {
        mysql_stmt_close(stmt);
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
static void fill_columns(mysql_statement *s, const MYSQL_FIELD *fields)
{
    memset(s->out, 0, s->columns * sizeof(*s->out));
    for (unsigned int i = 0; i < s->columns; i++) {
        MYSQL_BIND *bind = &s->out[i];

        bind->is_null = &s->nulls[i];
        bind->length = &s->lengths[i];
        bind->buffer_type = is_number(&fields[i]) ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        if (bind->buffer_type == MYSQL_TYPE_LONGLONG)
            bind->buffer = &s->numbers[i];
    }
}

static bool make_room(mysql_statement *s, unsigned int n)
{
    if (n <= s->room)
        return true;
    free_columns(s);
    s->out = jobq__zalloc(n * sizeof(*s->out));
    s->numbers = jobq__zalloc(n * sizeof(*s->numbers));
    s->lengths = jobq__zalloc(n * sizeof(*s->lengths));
    s->nulls = jobq__zalloc(n * sizeof(*s->nulls));
    s->room = s->out && s->numbers && s->lengths && s->nulls ? n : 0;
    return s->room == n;
}

int jobq__mysql_bind_columns(mysql_statement *s)
{
    MYSQL_RES *result = mysql_stmt_result_metadata(s->stmt);
    bool made;

    s->columns = mysql_stmt_field_count(s->stmt);
    if (s->columns == 0)
        return 0;
    made = result && make_room(s, s->columns);
    if (made)
        fill_columns(s, mysql_fetch_fields(result));
    mysql_free_result(result);
    return made && !mysql_stmt_bind_result(s->stmt, s->out) ? 0 : jobq__error_nomem();
}

static int prepare(mysql_store *store, mysql_statement *s)
{
    translation t = {0};
    int rc;

    translate(&t, s->sql, s->copies, s->blocks);
    s->source = t.source;
    s->params = t.count;
    s->in = jobq__zalloc((t.count + 1) * sizeof(*s->in));
    s->stmt = mysql_stmt_init(store->db);
    rc = t.failed || t.text.failed || !s->in || !s->stmt
             ? jobq__error_nomem()
             : jobq__mysql_wire_prepare(store, s->stmt, t.text.p, t.text.n);
    jobq__buf_free(&t.text);
    return rc ? rc : jobq__mysql_bind_columns(s);
}

static mysql_statement *use(mysql_store *store, const mysql_call *call)
{
    mysql_statement *s = store->statements;

    while (s && (s->sql != call->sql || s->copies != call->copies || s->blocks != call->blocks))
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
    s->blocks = call->blocks;
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

static int bind(mysql_statement *s, const mysql_call *call)
{
    unsigned int no_rows = 0;

    memset(s->in, 0, s->params * sizeof(*s->in));
    if (call->rows > 1) {
        s->has_rows = true;
        return jobq__mysql_bind_rows(s, call->list[0].args, call->rows);
    }
    if (s->has_rows)
        mysql_stmt_attr_set(s->stmt, STMT_ATTR_ARRAY_SIZE, &no_rows);
    s->has_rows = false;
    for (size_t i = 0; i < s->params; i++)
        bind_arg(&s->in[i], argument(call, s->source[i]));
    return 0;
}

int jobq__mysql_execute(mysql_store *store, const mysql_call *call, mysql_statement **statement_out)
{
    mysql_statement *s = use(store, call);
    int rc;

    if (!s)
        return jobq__error_code();
    rc = bind(s, call);
    if (rc < 0)
        return rc;
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
    int rc = jobq__mysql_execute(store, call, &s);

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
