/* SPDX-License-Identifier: MIT
 *
 * The connection: a non-blocking socket (TCP or Unix, with or without TLS), commands gathered and
 * written at once, replies read until a deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

enum { READ_CHUNK = 65536, KEEP_IDLE_S = 30, KEEP_GAP_S = 10, KEEP_COUNT = 3 };

static int fail(int code, int error, const char *what)
{
    return jobq__error_set_driver(code, JOBQ__RETRYABLE, "redis", error, "redis: %s: %s", what,
                                  strerror(error));
}

/* 1 ready, 0 the deadline has passed, -1 errno. Signals are sat out. */
static int wait_fd(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int64_t left = deadline_ms - jobq__clock_mono_ms();
        int n = poll(&p, 1, left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left);

        if (n > 0)
            return 1;
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0 && left <= 0)
            return 0;
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } rows[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                {IPPROTO_TCP, TCP_NODELAY, 1},
                {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
                {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_GAP_S},
                {IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value, sizeof(rows[i].value));
}

/* The descriptor, or -1 with errno. */
static int connect_to(int family, const struct sockaddr *address, socklen_t n, int64_t deadline_ms)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0, rc;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return -1;
    rc = connect(fd, address, n);
    if (rc < 0 && (errno == EINPROGRESS || errno == EINTR)) {
        rc = wait_fd(fd, POLLOUT, deadline_ms);
        error = rc == 0 ? ETIMEDOUT : errno;
        if (rc > 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        rc = rc > 0 && error == 0 ? 0 : -1;
        errno = error;
    }
    if (rc == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int dial_unix(const char *path, rds_link *link, int64_t deadline_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                      "redis: the path of the socket is too long (allowed: %zu)",
                                      sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    link->fd = connect_to(AF_UNIX, (const void *)&address, sizeof(address), deadline_ms);
    if (link->fd >= 0)
        return 0;
    return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", errno,
                                  "redis: cannot connect to %s: %s", path, strerror(errno));
}

static int dial_tcp(const char *host, int port, rds_link *link, int64_t deadline_ms)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    char service[8];
    int rc, error = 0;

    snprintf(service, sizeof(service), "%d", port);
    rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0)
        return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", rc,
                                      "redis: the host %s is not known: %s", host,
                                      gai_strerror(rc));
    for (const struct addrinfo *a = found; a && link->fd < 0; a = a->ai_next) {
        link->fd = connect_to(a->ai_family, a->ai_addr, a->ai_addrlen, deadline_ms);
        error = errno;
    }
    freeaddrinfo(found);
    if (link->fd < 0)
        return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", error,
                                      "redis: cannot connect to %s port %d: %s", host, port,
                                      strerror(error));
    set_options(link->fd);
    return 0;
}

int jobq__redis_dial(const jobq_driver_config *config, const rds_address *address, rds_link *link,
                     int64_t deadline_ms)
{
    int rc;

    jobq__redis_hang_up(link);
    link->reader = jobq__redis_reader_new(link);
    if (!link->reader)
        return jobq__error_nomem();
    rc = address->port == 0 ? dial_unix(address->host, link, deadline_ms)
                            : dial_tcp(address->host, address->port, link, deadline_ms);
    if (rc == 0 && strncmp(config->scheme, "rediss", 6) == 0)
        rc = jobq__redis_tls_start(config, address->host, link, deadline_ms);
    if (rc < 0)
        jobq__redis_hang_up(link);
    return rc;
}

void jobq__redis_hang_up(rds_link *link)
{
    jobq__redis_tls_end(link->tls);
    link->tls = NULL;
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    jobq__redis_reader_free(link->reader);
    link->reader = NULL;
    jobq__redis_clear(link);
}

/* ---- gathering commands ---------------------------------------------------------------------- */

void jobq__redis_clear(rds_link *link)
{
    jobq__buf_reset(&link->out);
    link->out_sent = link->commands = 0;
}

static void add_head(jobq__buf *out, char kind, uint64_t n)
{
    char text[24];
    size_t at = sizeof(text);

    text[--at] = '\n';
    text[--at] = '\r';
    do {
        text[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    text[--at] = kind;
    jobq__buf_add(out, text + at, sizeof(text) - at);
}

void jobq__redis_begin(rds_link *link, size_t words)
{
    if (link->commands == link->commands_room) {
        size_t room = link->commands_room ? link->commands_room * 2 : 16;
        size_t *starts = jobq__realloc(link->starts, room * sizeof(*starts));

        if (!starts) {
            link->out.failed = true;
            return;
        }
        link->starts = starts;
        link->commands_room = room;
    }
    link->starts[link->commands++] = link->out.n;
    add_head(&link->out, '*', words);
}

void jobq__redis_word(rds_link *link, const void *p, size_t n)
{
    add_head(&link->out, '$', n);
    jobq__buf_add(&link->out, p, n);
    jobq__buf_add(&link->out, "\r\n", 2);
}

void jobq__redis_words(rds_link *link, const char *text)
{
    jobq__redis_word(link, text, strlen(text));
}

void jobq__redis_number(rds_link *link, int64_t n)
{
    char text[24];
    int length = snprintf(text, sizeof(text), "%lld", (long long)n);

    jobq__redis_word(link, text, (size_t)length);
}

/* ---- sending and receiving ------------------------------------------------------------------- */

static ssize_t write_some(rds_link *link, short *events)
{
    const char *p = link->out.p + link->out_sent;
    size_t n = link->out.n - link->out_sent;

    *events = POLLOUT;
    return link->tls ? jobq__redis_tls_write(link->tls, p, n, events)
                     : send(link->fd, p, n, MSG_NOSIGNAL);
}

/* Bytes read and fed, 0 the other side has closed, -1 errno. */
static ssize_t read_some(rds_link *link, short *events)
{
    static _Thread_local char chunk[READ_CHUNK];
    ssize_t n;

    *events = POLLIN;
    n = link->tls ? jobq__redis_tls_read(link->tls, chunk, sizeof(chunk), events)
                  : recv(link->fd, chunk, sizeof(chunk), 0);
    if (n > 0 && jobq__redis_reader_feed(link->reader, chunk, (size_t)n) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return n;
}

static bool is_transient(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* Nothing was asked, so nothing but the end can have come (or, with TLS, words of TLS' own). */
bool jobq__redis_is_stale(rds_link *link)
{
    struct pollfd p = {.fd = link->fd, .events = POLLIN};
    short events;

    if (poll(&p, 1, 0) == 0)
        return false;
    return !link->tls || read_some(link, &events) >= 0 || !is_transient(errno);
}

/* While a large batch is written the server may answer already, and stop reading until that is
 * read. */
static int send_step(rds_link *link, int64_t deadline_ms)
{
    short events, other = 0;
    ssize_t n = write_some(link, &events);
    int rc;

    if (n > 0) {
        link->out_sent += (size_t)n;
        return 0;
    }
    if (n < 0 && !is_transient(errno))
        return fail(JOBQ_EIO, errno, "the connection broke while writing");
    rc = wait_fd(link->fd, (short)(events | POLLIN), deadline_ms);
    if (rc == 0)
        return fail(JOBQ_ETIMEOUT, ETIMEDOUT, "the server did not read in time");
    n = rc > 0 ? read_some(link, &other) : -1;
    if (n == 0)
        return fail(JOBQ_EIO, ECONNRESET, "the server closed the connection");
    return n < 0 && !is_transient(errno) ? fail(JOBQ_EIO, errno, "the connection broke") : 0;
}

int jobq__redis_send(rds_link *link, int64_t deadline_ms)
{
    int rc = 0;

    if (link->out.failed)
        return jobq__error_nomem();
    while (rc == 0 && link->out_sent < link->out.n)
        rc = send_step(link, deadline_ms);
    return rc;
}

static int next_value(rds_link *link, rds_value **value_out)
{
    int rc = jobq__redis_reader_next(link->reader, value_out);

    if (rc < 0 && link->arena_failed) {
        link->arena_failed = false;
        return jobq__error_nomem();
    }
    if (rc < 0)
        return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "redis", 0,
                                      "redis: the answer is not in Redis' protocol, or larger than "
                                      "memory allows");
    return rc;
}

static int receive_step(rds_link *link, int64_t deadline_ms)
{
    short events;
    ssize_t n;
    int rc;

    if (!link->tls || !jobq__redis_tls_pending(link->tls)) {
        rc = wait_fd(link->fd, POLLIN, deadline_ms);
        if (rc == 0)
            return fail(JOBQ_ETIMEOUT, ETIMEDOUT, "the server did not answer in time");
        if (rc < 0)
            return fail(JOBQ_EIO, errno, "the connection broke");
    }
    n = read_some(link, &events);
    if (n == 0)
        return fail(JOBQ_EIO, ECONNRESET, "the server closed the connection");
    if (n < 0 && errno == ENOMEM)
        return jobq__error_nomem();
    return n < 0 && !is_transient(errno) ? fail(JOBQ_EIO, errno, "the connection broke") : 0;
}

int jobq__redis_receive(rds_link *link, size_t n, rds_value **values, int64_t deadline_ms)
{
    size_t got = 0;
    int rc = 0;

    while (rc >= 0 && got < n) {
        rc = next_value(link, &values[got]);
        if (rc > 0)
            got++;
        else if (rc == 0)
            rc = receive_step(link, deadline_ms);
    }
    return rc < 0 ? rc : 0;
}

int jobq__redis_peek(rds_link *link, rds_value **value_out)
{
    short events;
    ssize_t n;
    int rc = next_value(link, value_out);

    if (rc != 0)
        return rc;
    n = read_some(link, &events);
    if (n == 0)
        return fail(JOBQ_EIO, ECONNRESET, "the server closed the connection");
    if (n < 0)
        return is_transient(errno) ? 0 : fail(JOBQ_EIO, errno, "the connection broke");
    return next_value(link, value_out);
}
