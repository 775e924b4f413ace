/* SPDX-License-Identifier: MIT
 *
 * The application's own client of the store: a transaction beside the library's connection, on the
 * SQL stores.
 */
#ifndef JOBQ_TESTS_PROCESS_OWN_H
#define JOBQ_TESTS_PROCESS_OWN_H

#include <jobqueue/statement.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct own own;

/* By the DSN of the pool; aborts when that does not work: it is called in handlers. */
own *own_open(const char *dsn);
void own_close(own *o);
void own_execute(own *o, const char *sql); /* without parameters; aborts when it fails */
bool own_run(own *o, const jobq_statement *statement); /* did it go well? */
int64_t own_number(own *o, const char *sql);           /* first column of the first row */

#endif
