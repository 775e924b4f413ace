/* SPDX-License-Identifier: MIT
 *
 * See notify.h. The protocol is a datagram with one word to a Unix socket: a path, or with "@" in
 * front a name of the kernel's. Nobody waits for it, and that nobody listens is no failure.
 */
#include "worker/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/str.h"

static void say(const jobq__notifier *n, const char *word)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t length = strlen(n->socket);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    int fd;

    if (length >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, n->socket, length);
    if (to.sun_path[0] == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)(void *)&to,
           size);
    close(fd);
}

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    int64_t number = 0;

    return text && jobq__str_int(text, strlen(text), &number) && number > 0 ? number : 0;
}

/* Half of what is allowed; the variables may be meant for another process. */
void jobq__notify_begin(jobq__notifier *n, int64_t now_ms)
{
    const int64_t pid = number_of("WATCHDOG_PID");

    memset(n, 0, sizeof(*n));
    n->socket = getenv("NOTIFY_SOCKET");
    if (n->socket && n->socket[0] != '/' && n->socket[0] != '@')
        n->socket = NULL;
    if (!n->socket || (pid && pid != getpid()))
        return;
    n->watchdog_ms = number_of("WATCHDOG_USEC") / 2000;
    n->alive_at_ms = now_ms + n->watchdog_ms;
}

int64_t jobq__notify_tick(jobq__notifier *n, const jobq__words *words, int64_t now_ms)
{
    if (!n->socket)
        return INT64_MAX;
    if (!n->ready &&
        atomic_load(&words->up)) { /* paused is up, too: there is nothing to wait for */
        n->ready = true;
        say(n, "READY=1");
    }
    if (!n->stopping && atomic_load(&words->stop) != JOBQ__GO) {
        n->stopping = true;
        say(n, "STOPPING=1");
    }
    if (!n->watchdog_ms)
        return INT64_MAX;
    if (now_ms >= n->alive_at_ms) {
        n->alive_at_ms = now_ms + n->watchdog_ms;
        say(n, "WATCHDOG=1");
    }
    return n->alive_at_ms;
}
