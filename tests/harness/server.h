/* SPDX-License-Identifier: MIT
 *
 * Private servers for tests (tools/server): started with data of their own on loopback, gone with
 * the program, however it ends. A failure fails the test under way.
 */
#ifndef JOBQ_TESTS_SERVER_H
#define JOBQ_TESTS_SERVER_H

#include "harness/harness.h"

#include <stdbool.h>

typedef struct server server;

/* kind: "redis", "postgres", "mariadb". clock: its wall clock can be moved (server_shift). */
server *server_start(const char *kind, bool clock);
/* The same with arguments for the server's own command line, as shell words: "--maxmemory 3mb". */
server *server_start_with(const char *kind, bool clock, const char *arguments);

const char *server_dsn(const server *s);    /* "redis://127.0.0.1:23309" */
const char *server_socket(const server *s); /* path of its Unix socket */
const char *server_folder(const server *s); /* its files: data/ log … */
int server_port(const server *s);
/* What `./dev test` started for all suites, or the program's own, started at the first call. */
const char *server_shared_dsn(const char *kind);

void server_stop(server *s);    /* orderly, the data stays */
void server_kill(server *s);    /* SIGKILL to all its processes, the data stays */
void server_restart(server *s); /* starts it again, stops it before when it runs; same port */
void server_freeze(server *s);
void server_thaw(server *s);
void server_remove(server *s); /* ends it and forgets its data; s is gone */

/* Its wall clock goes ahead by so many milliseconds at once, backwards when negative. Shifts add up
 * and outlive a restart. Its monotonic clock, and this program's clocks, stay. */
void server_shift(server *s, int64_t ms);

/* A port of loopback that nobody has at this moment. */
int server_free_port(void);
/* A key and a certificate of the name localhost, its own authority: key.pem, cert.pem. */
void server_make_certificate(const char *folder);

#endif
