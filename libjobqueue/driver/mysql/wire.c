/* SPDX-License-Identifier: MIT
 *
 * Conversations with the server that end by the deadline. The client library's calls come in two
 * halves, start and cont; between them we poll the socket ourselves, so that a signal interrupts
 * nothing and TLS is like plain sockets. When the time is over the library is told so and gives up;
 * the connection is useless then.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "driver/mysql/mysql.h"
#include "util/clock.h"

static int events_of(int status)
{
    return (status & MYSQL_WAIT_READ ? POLLIN : 0) | (status & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
           (status & MYSQL_WAIT_EXCEPT ? POLLPRI : 0);
}

/* Waits for what the library asks for; what came. */
static int await(mysql_store *store, MYSQL *db, int status)
{
    struct pollfd fd = {.fd = mysql_get_socket(db), .events = (short)events_of(status)};

    for (;;) {
        int64_t left_us = store->deadline_us - jobq__clock_mono_us();
        int n;

        if (left_us <= 0) {
            store->timed_out = true;
            return MYSQL_WAIT_TIMEOUT;
        }
        n = poll(&fd, 1, (int)((left_us < INT64_C(60000000) ? left_us : 60000000) / 1000) + 1);
        if (n > 0)
            return (fd.revents & (POLLIN | POLLERR | POLLHUP) ? status & MYSQL_WAIT_READ : 0) |
                   (fd.revents & (POLLOUT | POLLERR | POLLHUP) ? status & MYSQL_WAIT_WRITE : 0) |
                   (fd.revents & POLLPRI ? MYSQL_WAIT_EXCEPT : 0);
        if (n < 0 && errno != EINTR)
            return MYSQL_WAIT_TIMEOUT;
    }
}

bool jobq__mysql_is_quiet(const mysql_store *store)
{
    struct pollfd fd = {.fd = mysql_get_socket(store->db), .events = POLLIN};

    return poll(&fd, 1, 0) == 0;
}

int jobq__mysql_connect_wire(mysql_store *store, MYSQL *db, const char *host, unsigned int port)
{
    const jobq_driver_config *config = store->config;
    MYSQL *made = NULL;
    int status = mysql_real_connect_start(&made, db, host, config->user.p, config->password.p,
                                          store->database, port, store->socket,
                                          CLIENT_FOUND_ROWS | CLIENT_REMEMBER_OPTIONS);

    while (status)
        status = mysql_real_connect_cont(&made, db, await(store, db, status));
    return made ? 0 : jobq__mysql_fail(store, mysql_errno(db), mysql_error(db));
}

int jobq__mysql_query(mysql_store *store, const char *sql)
{
    int failed = 0;
    int status = mysql_real_query_start(&failed, store->db, sql, strlen(sql));

    while (status)
        status = mysql_real_query_cont(&failed, store->db, await(store, store->db, status));
    return failed ? jobq__mysql_fail(store, mysql_errno(store->db), mysql_error(store->db)) : 0;
}

/* Only for what is asked once per connection: in one trip, where a prepared statement takes two. */
int jobq__mysql_query_numbers(mysql_store *store, const char *sql, int64_t *to, unsigned int n)
{
    int rc = jobq__mysql_query(store, sql), status;
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    if (rc < 0)
        return rc;
    status = mysql_store_result_start(&result, store->db);
    while (status)
        status = mysql_store_result_cont(&result, store->db, await(store, store->db, status));
    if (!result)
        return jobq__mysql_fail(store, mysql_errno(store->db), mysql_error(store->db));
    row = mysql_num_fields(result) == n ? mysql_fetch_row(result) : NULL;
    for (unsigned int i = 0; i < n && row; i++)
        to[i] = row[i] ? strtoll(row[i], NULL, 10) : 0;
    mysql_free_result(result);
    return 0;
}

static int fail_statement(mysql_store *store, MYSQL_STMT *stmt)
{
    return jobq__mysql_fail(store, mysql_stmt_errno(stmt), mysql_stmt_error(stmt));
}

int jobq__mysql_wire_prepare(mysql_store *store, MYSQL_STMT *stmt, const char *sql, size_t n)
{
    int failed = 0, status = mysql_stmt_prepare_start(&failed, stmt, sql, n);

    while (status)
        status = mysql_stmt_prepare_cont(&failed, stmt, await(store, store->db, status));
    return failed ? fail_statement(store, stmt) : 0;
}

int jobq__mysql_wire_execute(mysql_store *store, MYSQL_STMT *stmt)
{
    int failed = 0, status = mysql_stmt_execute_start(&failed, stmt);

    while (status)
        status = mysql_stmt_execute_cont(&failed, stmt, await(store, store->db, status));
    return failed ? fail_statement(store, stmt) : 0;
}

int jobq__mysql_wire_store(mysql_store *store, MYSQL_STMT *stmt)
{
    int failed = 0, status = mysql_stmt_store_result_start(&failed, stmt);

    while (status)
        status = mysql_stmt_store_result_cont(&failed, stmt, await(store, store->db, status));
    return failed ? fail_statement(store, stmt) : 0;
}

int jobq__mysql_wire_next(mysql_store *store, MYSQL_STMT *stmt)
{
    int answer = 0, status = mysql_stmt_next_result_start(&answer, stmt);

    while (status)
        status = mysql_stmt_next_result_cont(&answer, stmt, await(store, store->db, status));
    return answer > 0 ? fail_statement(store, stmt) : answer == 0;
}
