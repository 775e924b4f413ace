/* SPDX-License-Identifier: MIT
 *
 * The caller's own work in the store: statements that guard a push or that a held job carries out
 * (rules B7, O1), and the store's statements for the caller's own transaction (rule B8).
 */
#ifndef JOBQUEUE_STATEMENT_H
#define JOBQUEUE_STATEMENT_H

#include <jobqueue/common.h>

JOBQ_BEGIN_DECLS

/* p NULL = absent (not the same as empty) */
typedef struct {
    const void *p;
    size_t n;
} jobq_slice;

/* A value: one that goes with a statement, or the one that it gave. */
enum { JOBQ_PARAM_NULL, JOBQ_PARAM_INT, JOBQ_PARAM_DOUBLE, JOBQ_PARAM_TEXT, JOBQ_PARAM_BYTES };
typedef struct {
    int type; /* JOBQ_PARAM_* */
    int64_t integer;
    double real;
    jobq_slice bytes; /* TEXT, BYTES */
} jobq_param;

/* SQL with the store's own placeholders (SQLite ?1 or ?, PostgreSQL $1, MariaDB ?), or the text
 * of a Redis script that finds the params in ARGV. One statement of at most 65536 bytes and 100
 * params. */
typedef struct {
    jobq_slice text;
    const jobq_param *params;
    size_t param_count;
} jobq_statement;

/* How the placeholders of a statement for the caller's own client are written: as the store's
 * own protocol has them, "?" (PDO, mysqli, sqlite3), "%s" (psycopg, PyMySQL; a % of the text is
 * doubled), or "$1" (pg_query_params, libpq). */
enum {
    JOBQ_PLACEHOLDER_OWN,
    JOBQ_PLACEHOLDER_QUESTION,
    JOBQ_PLACEHOLDER_FORMAT,
    JOBQ_PLACEHOLDER_DOLLAR
};

JOBQ_END_DECLS
#endif
