/* SPDX-License-Identifier: MIT
 *
 * A proxy on loopback between a program under test and a server, in a process of its own: passes,
 * delays, swallows, cuts after so many bytes, half-closes, freezes, refuses. Each call returns when
 * the proxy has obeyed. It dies with the program.
 */
#ifndef JOBQ_TESTS_PROXY_H
#define JOBQ_TESTS_PROXY_H

#include "harness/harness.h"

#include <stdbool.h>

typedef struct proxy proxy;

typedef enum { TO_SERVER, TO_CLIENT } proxy_way;

/* port: the server's on 127.0.0.1; 0: socket is the path of its Unix socket. */
proxy *proxy_start(int port, const char *socket);
void proxy_stop(proxy *p);
int proxy_port(const proxy *p);
/* `dsn` with the server's port replaced by the proxy's. Borrowed until the next call. */
const char *proxy_dsn(const proxy *p, const char *dsn, int server_port);

void proxy_pass(proxy *p); /* everything below is over, but for connections that were cut */
void proxy_delay(proxy *p, proxy_way way, int ms); /* each piece read waits so long */
void proxy_swallow(proxy *p, proxy_way way);       /* bytes of that way vanish */
/* The next connection that has carried so many bytes more that way is cut there: what is beyond is
 * lost, both ends are closed. Once. */
void proxy_cut(proxy *p, proxy_way way, int64_t bytes);
/* The same, but only this way is closed (FIN); the other goes on. */
void proxy_half_close(proxy *p, proxy_way way, int64_t bytes);
void proxy_freeze(proxy *p); /* nothing is read or written any more, connections stay */
void proxy_drop(proxy *p);   /* all connections are reset now; new ones are welcome */
void proxy_refuse(proxy *p); /* reset, and new ones are refused */

int64_t proxy_carried(proxy *p, proxy_way way); /* bytes so far */
int proxy_connections(proxy *p);                /* accepted so far */
int proxy_cuts(proxy *p);                       /* by proxy_cut and proxy_half_close so far */

#endif
