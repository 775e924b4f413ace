/* SPDX-License-Identifier: MIT
 *
 * Private servers for tests. The work is done by tools/server, which is also what ends them when
 * this program has died.
 */
#include "harness/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS = 16, LINE = 512 };

struct server {
    char kind[16], folder[48], dsn[160], socket[120];
    int64_t shifted_ms;
    pid_t owner; /* 0 = this place is free */
};

static struct server servers[SERVERS];

static const char *source_folder(void)
{
    const char *folder = getenv("JOBQ_SRCDIR");

    return folder && folder[0] ? folder : ".";
}

/* tools/server COMMAND…; the first line it prints, without its end. Its exit status, or -1. */
static int run(char *line, size_t size, const char *command)
{
    char text[LINE * 2], rest[LINE];
    FILE *out;
    int status;

    snprintf(text, sizeof(text), "exec '%s/tools/server' %s", source_folder(), command);
    out = popen(text, "r");
    if (!out)
        return -1;
    line[0] = '\0';
    if (fgets(line, (int)size, out))
        line[strcspn(line, "\n")] = '\0';
    while (fgets(rest, sizeof(rest), out))
        ;
    status = pclose(out);
    return status < 0 || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

static void command(server *s, const char *word)
{
    char line[LINE], text[LINE];

    snprintf(text, sizeof(text), "%s '%s'", word, s->folder);
    if (run(line, sizeof(line), text) != 0)
        fail_msg("tools/server %s failed for %s", word, s->kind);
}

/* Not from a forked child: the servers are its parent's. */
static void remove_all(void)
{
    char line[LINE], text[LINE];

    for (size_t i = 0; i < SERVERS; i++) {
        if (servers[i].owner != getpid())
            continue;
        snprintf(text, sizeof(text), "remove '%s'", servers[i].folder);
        run(line, sizeof(line), text);
        servers[i].owner = 0;
    }
}

static server *free_place(void)
{
    static bool registered;

    if (!registered)
        atexit(remove_all);
    registered = true;
    for (size_t i = 0; i < SERVERS; i++)
        if (servers[i].owner == 0)
            return &servers[i];
    fail_msg("more than %d servers", SERVERS);
    return NULL;
}

static void read_line(const server *s, const char *file, char *out, size_t size)
{
    char path[LINE];
    FILE *in;

    snprintf(path, sizeof(path), "%s/%s", s->folder, file);
    in = fopen(path, "re");
    if (!in || !fgets(out, (int)size, in))
        fail_msg("%s cannot be read", path);
    out[strcspn(out, "\n")] = '\0';
    fclose(in);
}

server *server_start_with(const char *kind, bool clock, const char *arguments)
{
    char text[LINE];
    server *s = free_place();

    memset(s, 0, sizeof(*s));
    snprintf(s->kind, sizeof(s->kind), "%s", kind);
    strcpy(s->folder, "/tmp/jobqueue-server-XXXXXX");
    if (!mkdtemp(s->folder))
        fail_msg("no folder for a server");
    snprintf(text, sizeof(text), "start %s '%s' --owner %d %s -- %s", kind, s->folder,
             (int)getpid(), clock ? "--clock" : "", arguments);
    if (run(s->dsn, sizeof(s->dsn), text) != 0)
        fail_msg("%s does not start", kind);
    s->owner = getpid();
    read_line(s, "socket", s->socket, sizeof(s->socket));
    return s;
}

server *server_start(const char *kind, bool clock)
{
    return server_start_with(kind, clock, "");
}

const char *server_dsn(const server *s)
{
    return s->dsn;
}

const char *server_socket(const server *s)
{
    return s->socket;
}

const char *server_folder(const server *s)
{
    return s->folder;
}

int server_port(const server *s)
{
    char text[16];

    read_line(s, "port", text, sizeof(text));
    return (int)strtol(text, NULL, 10);
}

const char *server_shared_dsn(const char *kind)
{
    static const char *const variables[][2] = {{"redis", "JOBQUEUE_TEST_REDIS"},
                                               {"postgres", "JOBQUEUE_TEST_POSTGRES"},
                                               {"mariadb", "JOBQUEUE_TEST_MARIADB"}};
    static server *own[sizeof(variables) / sizeof(variables[0])];

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        const char *dsn = getenv(variables[i][1]);

        if (strcmp(kind, variables[i][0]) != 0)
            continue;
        if (dsn && dsn[0])
            return dsn;
        if (!own[i])
            own[i] = server_start(kind, false);
        return own[i]->dsn;
    }
    fail_msg("there is no server \"%s\"", kind);
    return NULL;
}

void server_stop(server *s)
{
    command(s, "stop");
}

void server_kill(server *s)
{
    command(s, "kill");
}

void server_restart(server *s)
{
    command(s, "restart");
}

void server_freeze(server *s)
{
    command(s, "freeze");
}

void server_thaw(server *s)
{
    command(s, "thaw");
}

void server_remove(server *s)
{
    command(s, "remove");
    s->owner = 0;
}

/* In place: the server has the file mapped. */
void server_shift(server *s, int64_t ms)
{
    char path[LINE];
    int64_t ns = (s->shifted_ms + ms) * 1000000;
    int fd;

    snprintf(path, sizeof(path), "%s/clock", s->folder);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, &ns, sizeof(ns), 0) != sizeof(ns))
        fail_msg("%s was started without a clock of its own", s->kind);
    close(fd);
    s->shifted_ms += ms;
}

int server_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (void *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (void *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

void server_make_certificate(const char *folder)
{
    char text[512];

    snprintf(text, sizeof(text),
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=localhost -addext subjectAltName=DNS:localhost "
             "-keyout '%s/key.pem' -out '%s/cert.pem' 2>'%s/log'",
             folder, folder, folder);
    if (system(text) != 0)
        fail_msg("no certificate in %s", folder);
}
