/* SPDX-License-Identifier: MIT
 *
 * Reading what a statement answers.
 */
#include "driver/mysql/statement.h"
#include "util/alloc.h"
#include "util/error.h"

int jobq__mysql_select_call(mysql_store *store, const mysql_call *call, mysql_statement **rows_out)
{
    mysql_statement *s = NULL;
    int rc = jobq__mysql_execute(store, call, &s);

    if (!s)
        return rc;
    rc = jobq__mysql_wire_store(store, s->stmt);
    if (rc == 0)
        *rows_out = s;
    return rc;
}

/* 1: the next result's rows are here, 0: it has none. */
static int take_result(mysql_store *store, mysql_statement *s)
{
    int rc = jobq__mysql_bind_columns(s);

    if (rc < 0 || s->columns == 0)
        return rc;
    rc = jobq__mysql_wire_store(store, s->stmt);
    return rc < 0 ? rc : 1;
}

int jobq__mysql_select_many(mysql_store *store, const mysql_call *call, mysql_statement **rows_out)
{
    mysql_statement *s = NULL;
    int rc = jobq__mysql_execute(store, call, &s);

    if (!s)
        return rc;
    *rows_out = s;
    return take_result(store, s);
}

int jobq__mysql_more(mysql_store *store, mysql_statement *rows)
{
    int rc = 1;

    mysql_stmt_free_result(rows->stmt);
    while (rc > 0) { /* statements without a result are of no interest */
        rc = jobq__mysql_wire_next(store, rows->stmt);
        if (rc > 0 && take_result(store, rows) > 0)
            return 1;
    }
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

unsigned int jobq__mysql_columns(const mysql_statement *rows)
{
    return rows->columns;
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
