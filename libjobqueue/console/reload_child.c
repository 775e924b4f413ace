/* SPDX-License-Identifier: MIT
 *
 * Both ends of one life under `work --reload`: starting the command line again, and on the other
 * side telling the parent which files were loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <jobqueue/console.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "console/reload.h"
#include "util/alloc.h"
#include "util/fd.h"

static const char mark[] = "JOBQUEUE_RELOAD"; /* its value: DESCRIPTOR:PARENT */

/* ---- the child's end ------------------------------------------------------------------------- */

static int way = -1;
static jobq__fd_identity way_identity;

/* It stops softly when the parent is gone without a word, and at once when that was so before. */
static void follow_parent(long parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != (pid_t)parent)
        raise(SIGTERM);
}

bool jobq__reload_is_child(void)
{
    const char *value = getenv(mark);
    long fd, parent;
    char *end;

    if (!value)
        return way >= 0;
    fd = strtol(value, &end, 10);
    parent = *end == ':' ? strtol(end + 1, &end, 10) : 0;
    unsetenv(mark);
    if (*end != '\0' || fd < 3 || parent < 1 || !jobq__fd_identify((int)fd, &way_identity) ||
        fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0)
        return false;
    follow_parent(parent);
    way = (int)fd;
    return true;
}

bool jobq_console_reloads(void)
{
    return way >= 0;
}

/* One write, which is whole or not at all up to PIPE_BUF; a parent that does not read is waited for
 * a second. */
static void send_line(const char *line, size_t n)
{
    enum { PATIENCE_MS = 1000 };
    struct pollfd wait = {way, POLLOUT, 0};
    ssize_t wrote = write(way, line, n);

    if (wrote < 0 && errno == EAGAIN && poll(&wait, 1, PATIENCE_MS) == 1)
        wrote = write(way, line, n);
    if (wrote < 0 && errno != EAGAIN && errno != EINTR)
        way = -1;
}

/* The number may have become somebody else's meanwhile (rule D7). */
void jobq_console_loaded(const char *path, size_t n)
{
    char line[PIPE_BUF];

    if (way < 0 || n == 0 || n >= sizeof(line) || memchr(path, '\n', n) ||
        !jobq__fd_is(way, &way_identity))
        return;
    memcpy(line, path, n);
    line[n] = '\n';
    send_line(line, n + 1);
}

/* ---- the parent's end ------------------------------------------------------------------------ */

/* The whole of /proc/self/cmdline, NUL behind each word; freed with jobq__free. */
static char *read_command_line(size_t *n_out)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t room = 0, n = 0;
    char *text = NULL;
    ssize_t got = 1;

    while (fd >= 0 && got > 0) {
        char *grown = n + 1 < room ? text : jobq__realloc(text, room = room ? room * 2 : 4096);

        if (!grown)
            break;
        text = grown;
        got = read(fd, text + n, room - n - 1);
        n += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    if (text)
        text[n] = '\0';
    *n_out = n;
    return text;
}

/* Pointers into the text, NULL behind the last; freed with jobq__free. */
static char **split_words(char *text, size_t n)
{
    size_t count = 0;
    char **words;

    for (size_t i = 0; i < n; i++)
        count += text[i] == '\0';
    words = jobq__zalloc((count + 2) * sizeof(*words));
    for (size_t i = 0, k = 0; words && i < n; i += strlen(text + i) + 1)
        words[k++] = text + i;
    return words;
}

/* What it reads would be taken from a terminal that is the parent's. */
static int set_files(posix_spawn_file_actions_t *actions, int channel)
{
    int rc = posix_spawn_file_actions_adddup2(actions, channel, channel); /* survives the exec */

    if (rc == 0 && isatty(STDIN_FILENO) == 1)
        rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    return rc;
}

/* A group of its own: what a terminal sends comes here alone and is passed on once (rule H1). */
static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none;

    sigemptyset(&none);
    posix_spawnattr_setpgroup(attr, 0);
    posix_spawnattr_setsigmask(attr, &none);
    return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
}

/* Its own name, so that lists of processes show it; one that was replaced has none any more. */
static const char *own_program(char *path, size_t size)
{
    static const char link[] = "/proc/self/exe";
    const ssize_t n = readlink(link, path, size - 1);

    if (n <= 0)
        return link;
    path[n] = '\0';
    return access(path, X_OK) == 0 ? path : link;
}

static int spawn(char *const *words, int channel, pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    char path[PATH_MAX];
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = set_files(&actions, channel);
        rc = rc ? rc : set_attributes(&attr);
        rc = rc ? rc
                : posix_spawn(pid_out, own_program(path, sizeof(path)), &actions, &attr, words,
                              environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

pid_t jobq__reload_spawn(int channel)
{
    char value[64];
    pid_t pid = -1;
    size_t n = 0;
    char *text = read_command_line(&n), **words = text && n ? split_words(text, n) : NULL;
    int rc = ENOENT; /* no /proc here */

    snprintf(value, sizeof(value), "%d:%ld", channel, (long)getpid());
    if (words)
        rc = setenv(mark, value, 1) == 0 ? spawn(words, channel, &pid) : errno;
    unsetenv(mark);
    jobq__free(words);
    jobq__free(text);
    errno = rc;
    return rc == 0 ? pid : -1;
}
