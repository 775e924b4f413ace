/* SPDX-License-Identifier: MIT
 *
 * See proxy.h. The proxy's process is one loop over poll; the test talks to it in records over a
 * socket pair, each answered by the counters.
 */
#include "harness/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINKS = 64, PIECE = 32768 };

typedef enum { ASK, PASS, DELAY, SWALLOW, CUT, HALF_CLOSE, FREEZE, DROP, REFUSE } order;

typedef struct {
    int order, way;
    int64_t value;
} command;

typedef struct {
    int64_t carried[2];
    int connections, cuts;
} report;

struct proxy {
    pid_t pid;
    int control, port;
};

/* ---- the proxy's process --------------------------------------------------------------------- */

/* What was read from one end and is on its way to the other. */
typedef struct {
    char bytes[PIECE];
    size_t from, to; /* still to be written */
    int64_t due_ms;
    bool closed; /* this way was closed: nothing more is read */
} flow;

typedef struct {
    int fd[2];    /* 0: the server's end, 1: the client's; -1: this place is free */
    flow *way[2]; /* TO_SERVER is read from fd[1] and written to fd[0] */
} link_pair;

static link_pair links[LINKS];
static int listener, control;
static uint16_t listen_port;
static int target_port;
static char target_socket[108];
static report counts;
static bool frozen;
static int delay_ms[2];
static bool swallowing[2];
static int64_t cut_after[2] = {-1, -1};
static bool cut_half[2];

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void open_listener(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(listen_port)};
    socklen_t n = sizeof(address);
    const int yes = 1;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(listener, (struct sockaddr *)&address, n) < 0 || listen(listener, 64) < 0)
        _exit(1);
    getsockname(listener, (struct sockaddr *)&address, &n);
    listen_port = ntohs(address.sin_port);
}

static int reach_server(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)target_port)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(target_port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    memcpy(un.sun_path, target_socket, sizeof(un.sun_path));
    rc = target_port ? connect(fd, (struct sockaddr *)&in, sizeof(in))
                     : connect(fd, (struct sockaddr *)&un, sizeof(un));
    if (rc == 0)
        return fd;
    close(fd);
    return -1;
}

static void close_link(link_pair *l, bool reset)
{
    const struct linger at_once = {.l_onoff = 1};

    for (int i = 0; i < 2; i++) {
        if (reset)
            setsockopt(l->fd[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(l->fd[i]);
        free(l->way[i]);
        l->fd[i] = -1;
        l->way[i] = NULL;
    }
}

static void accept_client(void)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), server;
    link_pair *l = links;

    if (client < 0)
        return;
    counts.connections++;
    while (l < links + LINKS && l->fd[0] >= 0)
        l++;
    server = l < links + LINKS ? reach_server() : -1;
    if (server < 0) {
        close(client);
        return;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    l->fd[0] = server;
    l->fd[1] = client;
    for (int i = 0; i < 2; i++)
        if (!(l->way[i] = calloc(1, sizeof(*l->way[i]))))
            _exit(1);
}

/* Of a piece just read: how much goes on. False: the link is gone. */
static bool account(link_pair *l, int way, flow *f)
{
    const int64_t n = (int64_t)(f->to - f->from);

    if (cut_after[way] < 0 || n < cut_after[way]) {
        cut_after[way] -= cut_after[way] < 0 ? 0 : n;
        counts.carried[way] += n;
        if (swallowing[way])
            f->to = f->from;
        return true;
    }
    f->to = f->from + (size_t)cut_after[way];
    counts.carried[way] += cut_after[way];
    counts.cuts++;
    cut_after[way] = -1;
    if (f->to > f->from && write(l->fd[way], f->bytes + f->from, f->to - f->from) < 0)
        f->to = f->from;
    f->to = f->from = 0;
    if (cut_half[way]) {
        shutdown(l->fd[way], SHUT_WR);
        f->closed = true;
        return true;
    }
    close_link(l, false);
    return false;
}

/* False: the link is gone. */
static bool read_piece(link_pair *l, int way)
{
    flow *f = l->way[way];
    ssize_t n = read(l->fd[1 - way], f->bytes, PIECE);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        close_link(l, n < 0);
        return false;
    }
    f->from = 0;
    f->to = (size_t)n;
    f->due_ms = now_ms() + delay_ms[way];
    return account(l, way, f);
}

static bool write_piece(link_pair *l, int way)
{
    flow *f = l->way[way];
    ssize_t n = write(l->fd[way], f->bytes + f->from, f->to - f->from);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n < 0) {
        close_link(l, true);
        return false;
    }
    f->from += (size_t)n;
    return true;
}

static void close_all(void)
{
    for (int i = 0; i < LINKS; i++)
        if (links[i].fd[0] >= 0)
            close_link(&links[i], true);
}

static void do_pass(void)
{
    frozen = false;
    memset(delay_ms, 0, sizeof(delay_ms));
    memset(swallowing, 0, sizeof(swallowing));
    cut_after[0] = cut_after[1] = -1;
    if (listener < 0)
        open_listener();
}

static void obey(const command *c)
{
    switch ((order)c->order) {
    case ASK:
        break;
    case PASS:
        do_pass();
        break;
    case DELAY:
        delay_ms[c->way] = (int)c->value;
        break;
    case SWALLOW:
        swallowing[c->way] = true;
        break;
    case CUT:
    case HALF_CLOSE:
        cut_after[c->way] = c->value;
        cut_half[c->way] = c->order == HALF_CLOSE;
        break;
    case FREEZE:
        frozen = true;
        break;
    case REFUSE:
        close(listener);
        listener = -1;
        close_all();
        break;
    case DROP:
        close_all();
    }
}

static void hear_test(void)
{
    command c;

    if (read(control, &c, sizeof(c)) != sizeof(c))
        _exit(0); /* the test is gone */
    obey(&c);
    if (write(control, &counts, sizeof(counts)) != sizeof(counts))
        _exit(0);
}

/* What to wait for on both ends of a link; the shortest wait until a piece is due. */
static int watch_link(const link_pair *l, struct pollfd *fds, int64_t now)
{
    int wait_ms = -1;

    for (int i = 0; i < 2; i++)
        fds[i] = (struct pollfd){.fd = l->fd[i]};
    for (int way = 0; way < 2; way++) {
        const flow *f = l->way[way];

        if (f->closed)
            continue;
        if (f->from == f->to)
            fds[1 - way].events |= POLLIN;
        else if (f->due_ms <= now)
            fds[way].events |= POLLOUT;
        else if (wait_ms < 0 || f->due_ms - now < wait_ms)
            wait_ms = (int)(f->due_ms - now);
    }
    return wait_ms;
}

static void serve_link(link_pair *l, const struct pollfd *fds)
{
    const int64_t now = now_ms();

    for (int way = 0; way < 2; way++) {
        const flow *f = l->way[way];

        if (f->closed && !(fds[1 - way].revents & (POLLERR | POLLHUP)))
            continue;
        if (f->from != f->to) {
            if (f->due_ms <= now && !write_piece(l, way))
                return;
        } else if (fds[1 - way].revents && !read_piece(l, way)) {
            return;
        }
    }
}

static void run_proxy(void)
{
    for (;;) {
        struct pollfd fds[2 + 2 * LINKS] = {{.fd = control, .events = POLLIN},
                                            {.fd = frozen ? -1 : listener, .events = POLLIN}};
        const int64_t now = now_ms();
        int wait_ms = -1;

        for (int i = 0; i < LINKS; i++) {
            int ms = -1;

            fds[2 + 2 * i].fd = fds[3 + 2 * i].fd = -1;
            if (links[i].fd[0] >= 0 && !frozen)
                ms = watch_link(&links[i], fds + 2 + 2 * i, now);
            if (ms >= 0 && (wait_ms < 0 || ms < wait_ms))
                wait_ms = ms;
        }
        poll(fds, 2 + 2 * LINKS, wait_ms);
        for (int i = 0; i < LINKS && !frozen; i++)
            if (links[i].fd[0] >= 0 && fds[2 + 2 * i].fd >= 0)
                serve_link(&links[i], fds + 2 + 2 * i);
        if (fds[1].revents)
            accept_client();
        if (fds[0].revents)
            hear_test();
    }
}

static void be_proxy(int fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    signal(SIGPIPE, SIG_IGN);
    setpgid(0, 0);
    control = fd;
    for (int i = 0; i < LINKS; i++)
        links[i].fd[0] = links[i].fd[1] = -1;
    run_proxy();
}

/* ---- the test's side ------------------------------------------------------------------------- */

static report tell(proxy *p, order what, int way, int64_t value)
{
    const command c = {.order = (int)what, .way = way, .value = value};
    report r = {0};

    if (write(p->control, &c, sizeof(c)) != sizeof(c) ||
        read(p->control, &r, sizeof(r)) != sizeof(r))
        fail_msg("the proxy has died");
    return r;
}

proxy *proxy_start(int port, const char *socket_path)
{
    proxy *p = calloc(1, sizeof(*p));
    const pid_t parent = getpid();
    int ends[2];

    assert_non_null(p);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    target_port = port;
    snprintf(target_socket, sizeof(target_socket), "%s", port ? "" : socket_path);
    listen_port = 0;
    open_listener();
    p->port = listen_port;
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        close(ends[0]);
        be_proxy(ends[1], parent);
    }
    close(listener);
    close(ends[1]);
    p->control = ends[0];
    return p;
}

void proxy_stop(proxy *p)
{
    close(p->control);
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    free(p);
}

int proxy_port(const proxy *p)
{
    return p->port;
}

const char *proxy_dsn(const proxy *p, const char *dsn, int server_port)
{
    static char text[512];
    char old[16];
    const char *at;

    snprintf(old, sizeof(old), ":%d", server_port);
    at = strstr(dsn, old);
    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s:%d%s", (int)(at - dsn), dsn, p->port, at + strlen(old));
    return text;
}

void proxy_pass(proxy *p)
{
    tell(p, PASS, 0, 0);
}

void proxy_delay(proxy *p, proxy_way way, int ms)
{
    tell(p, DELAY, (int)way, ms);
}

void proxy_swallow(proxy *p, proxy_way way)
{
    tell(p, SWALLOW, (int)way, 0);
}

void proxy_cut(proxy *p, proxy_way way, int64_t bytes)
{
    tell(p, CUT, (int)way, bytes);
}

void proxy_half_close(proxy *p, proxy_way way, int64_t bytes)
{
    tell(p, HALF_CLOSE, (int)way, bytes);
}

void proxy_freeze(proxy *p)
{
    tell(p, FREEZE, 0, 0);
}

void proxy_drop(proxy *p)
{
    tell(p, DROP, 0, 0);
}

void proxy_refuse(proxy *p)
{
    tell(p, REFUSE, 0, 0);
}

int64_t proxy_carried(proxy *p, proxy_way way)
{
    return tell(p, ASK, 0, 0).carried[way];
}

int proxy_connections(proxy *p)
{
    return tell(p, ASK, 0, 0).connections;
}

int proxy_cuts(proxy *p)
{
    return tell(p, ASK, 0, 0).cuts;
}
