/* SPDX-License-Identifier: MIT
 *
 * A prepared statement and the rows of its result, for statement.c, which makes and runs it, and
 * rows.c, which reads it.
 */
#ifndef JOBQ_DRIVER_MYSQL_STATEMENT_H
#define JOBQ_DRIVER_MYSQL_STATEMENT_H

#include "driver/mysql/mysql.h"

struct mysql_statement {
    mysql_statement *next;
    const char *sql; /* the text it was made from, and how often its parts were repeated */
    size_t copies, blocks;
    MYSQL_STMT *stmt;
    size_t params;
    uint32_t *source; /* of each ?: number of the argument, or list * LIST_BIT + place in it */
    MYSQL_BIND *in, *out;
    void *arrays; /* of a call with rows: array.c */
    size_t rows_room;
    bool has_rows;              /* it was bound to some */
    unsigned int columns, room; /* room: of the four following */
    int64_t *numbers;
    unsigned long *lengths;
    my_bool *nulls;
};

/* Binds the columns of the result that comes, if it has any. */
int jobq__mysql_bind_columns(mysql_statement *s);
/* array.c: the arguments of `rows` rows, each params long, are the parameters. */
int jobq__mysql_bind_rows(mysql_statement *s, const mysql_arg *args, size_t rows);
int jobq__mysql_execute(mysql_store *store, const mysql_call *call,
                        mysql_statement **statement_out);

#endif
