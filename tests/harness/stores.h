/* SPDX-License-Identifier: MIT
 *
 * The server stores this library was built with, for tests that run on each of them. The variable
 * JOBQUEUE_TEST_STORES names some of them ("redis mariadb").
 */
#ifndef JOBQ_TESTS_STORES_H
#define JOBQ_TESTS_STORES_H

#include "harness/harness.h"
#include "harness/server.h"

#include <stdbool.h>

typedef enum { STORE_REDIS, STORE_POSTGRES, STORE_MARIADB, STORE_KINDS } store_kind;
enum { STORE_SQLITE = STORE_KINDS }; /* for stores_run_all only */

const char *store_word(store_kind kind); /* as server_start wants it */
bool store_is_built(store_kind kind);
/* Starts one whose confirmed writes outlive server_kill. */
server *store_start_durable(store_kind kind, bool clock);
/* Has the server's own client execute it: a Redis command, or SQL. What it printed; borrowed until
 * the next call. */
const char *store_admin(const server *s, store_kind kind, const char *command);
bool store_admin_try(const server *s, store_kind kind, const char *command); /* did it go well? */
/* `dsn` with "name=value&…" added; borrowed until the fourth next call. */
const char *store_option(const char *dsn, const char *options);

typedef struct {
    const char *name;
    void (*run)(void **state);
    unsigned without; /* 1 << kind: not on this one */
} store_test;

/* Runs each test on each store that is built, the stores side by side (these tests mostly wait);
 * *state is a store_kind * at set-up. The exit code. */
int stores_run(const char *group, const store_test *tests, size_t n, int (*set_up)(void **state),
               int (*tear_down)(void **state));
/* The same on SQLite, too. The store under test is the one that store_fresh leads to. */
int stores_run_all(const char *group, const store_test *tests, size_t n,
                   int (*set_up)(void **state), int (*tear_down)(void **state));
/* A store that nobody else uses, of the kind under test (SQLite outside of stores_run_all): a file,
 * or a prefix, schema or database of its own on the program's server. Borrowed until the next. */
const char *store_fresh(void);
int store_under_test(void); /* store_kind or STORE_SQLITE */

#define STORE_TEST(f) \
    {                 \
#f, f, 0      \
    }
#define STORE_TEST_WITHOUT(f, kinds) \
    {                                \
#f, f, (kinds)               \
    }

#endif
