/* SPDX-License-Identifier: MIT
 *
 * One statement for many rows of arguments, in one trip: the rows are turned into the client
 * library's arrays, one per parameter. MariaDB's protocol has that (COM_STMT_BULK_EXECUTE), MySQL's
 * has not. The server runs it as one statement: a row that is refused takes the others with it.
 *
 * https://mariadb.com/kb/en/com_stmt_bulk_execute/
 */
#include "driver/mysql/statement.h"
#include "util/alloc.h"
#include "util/error.h"

/* A proxy in between may take compound statements, which are nothing to it, and yet no arrays. */
bool jobq__mysql_takes_arrays(MYSQL *db)
{
    unsigned long more = 0; /* the upper half of what MariaDB says that it can do */

    return !mariadb_get_infov(db, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &more) &&
           (more & (unsigned long)(MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0;
}

/* Of one parameter, by row. */
typedef union {
    const void *bytes;
    int64_t number;
} value;

enum { CELL_BYTES = sizeof(value) + sizeof(unsigned long) + sizeof(char) };

static int make_room(mysql_statement *s, size_t rows)
{
    size_t room = s->rows_room ? s->rows_room : 64;
    void *grown;

    if (rows <= s->rows_room)
        return 0;
    while (room < rows)
        room *= 2;
    grown = jobq__realloc(s->arrays, room * s->params * CELL_BYTES);
    if (!grown)
        return jobq__error_nomem();
    s->arrays = grown;
    s->rows_room = room;
    return 0;
}

static void fill(value *values, unsigned long *lengths, char *indicators, const mysql_arg *arg,
                 size_t step, size_t rows)
{
    for (size_t i = 0; i < rows; i++, arg += step) {
        if (arg->is_number)
            values[i].number = arg->number;
        else
            values[i].bytes = arg->p;
        lengths[i] = arg->n;
        indicators[i] = arg->is_number || arg->p ? STMT_INDICATOR_NONE : STMT_INDICATOR_NULL;
    }
}

int jobq__mysql_bind_rows(mysql_statement *s, const mysql_arg *args, size_t rows)
{
    const size_t cells = s->params * rows;
    unsigned int size = (unsigned int)rows;
    value *values;
    unsigned long *lengths;
    char *indicators;
    int rc = make_room(s, rows);

    if (rc < 0)
        return rc;
    values = s->arrays;
    lengths = (unsigned long *)(values + cells);
    indicators = (char *)(lengths + cells);
    for (size_t i = 0; i < s->params; i++) {
        fill(values + i * rows, lengths + i * rows, indicators + i * rows, args + i, s->params,
             rows);
        s->in[i].buffer_type = args[i].is_number ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        s->in[i].buffer = values + i * rows;
        s->in[i].length = lengths + i * rows;
        s->in[i].u.indicator = indicators + i * rows;
    }
    return mysql_stmt_attr_set(s->stmt, STMT_ATTR_ARRAY_SIZE, &size) ? jobq__error_nomem() : 0;
}
