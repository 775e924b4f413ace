/* SPDX-License-Identifier: MIT
 *
 * One run of a program: its input lies in a file without a name, so nobody waits for its reading;
 * its standard error comes by, so that the last line is known; its end and the worker's soft stops
 * arrive by poll.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"

enum { PIECE = 4096, LOOK_MS = 20 };

/* ---- the soft stop's way in ------------------------------------------------------------------ */

static volatile sig_atomic_t wake_fd = -1; /* write end */
static int wake_in = -1;
static pid_t wake_owner;

void program_interrupt(void *payload)
{
    int saved = errno;

    (void)payload;
    if (wake_fd >= 0 && write(wake_fd, "!", 1) < 0)
        errno = saved; /* full: it is awake already */
    errno = saved;
}

/* Each child of the pool has a pipe of its own. */
static void open_wake(void)
{
    int fds[2];

    if (wake_owner == getpid() || pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    wake_owner = getpid();
    wake_in = fds[0];
    wake_fd = fds[1];
}

/* ---- finding --------------------------------------------------------------------------------- */

static int check_program(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

int program_find(const char *name, char *path, size_t size)
{
    const char *dirs = getenv("PATH");
    int problem = ENOENT, now;

    if (strchr(name, '/')) {
        if ((size_t)snprintf(path, size, "%s", name) >= size)
            return ENAMETOOLONG;
        return check_program(path);
    }
    for (const char *p = dirs && *dirs ? dirs : "/usr/local/bin:/usr/bin:/bin"; p;
         p = strchr(p, ':'), p += p != NULL) {
        int n = (int)strcspn(p, ":");

        if ((size_t)snprintf(path, size, "%.*s%s%s", n, p, n ? "/" : "./", name) >= size)
            continue;
        now = check_program(path);
        if (now == 0)
            return 0;
        if (now == EACCES)
            problem = EACCES;
    }
    return problem;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The payload as a file: it can be read slowly, twice or not at all. */
static int make_input(const char *p, size_t n)
{
    int fd = memfd_create("payload", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < n) {
        ssize_t wrote = write(fd, p + done, n - done);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)wrote;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

/* No signal is blocked, ignored or caught in the new program. */
static int set_signals(posix_spawnattr_t *attr)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static const char own_file[] = "/proc/self/exe";
static const char child_word[] = "--exec-child";

/* The first life of a program: ours. It dies with the process that started it, or else a killed
 * worker's job would run here and, retried, elsewhere. The wish survives execv. */
int program_child(int argc, char **argv)
{
    if (argc < 5 || strcmp(argv[1], child_word) != 0)
        return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
        raise(SIGKILL);
    execv(argv[3], argv + 4);
    fprintf(stderr, "could not start %s: %s\n", argv[3], strerror(errno));
    return 127;
}

/* jobqueue --exec-child PARENT PATH WORD...; freed with free. */
static char **child_words(const char *path, char *const *words, char *parent, size_t size)
{
    enum { BEFORE = 4 };
    size_t n = 0;
    char **all;

    while (words[n])
        n++;
    all = calloc(BEFORE + n + 1, sizeof(*all));
    if (!all)
        return NULL;
    snprintf(parent, size, "%ld", (long)getpid());
    all[0] = (char *)own_file;
    all[1] = (char *)child_word;
    all[2] = parent;
    all[3] = (char *)path;
    memcpy(all + BEFORE, words, n * sizeof(*all));
    return all;
}

/* Without /proc it is started as it is. */
static int start(pid_t *pid_out, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attr, char *const *words, char *const *fields)
{
    char parent[24];
    char **all;
    int rc;

    if (access(own_file, X_OK) != 0)
        return posix_spawn(pid_out, path, actions, attr, words, fields);
    all = child_words(path, words, parent, sizeof(parent));
    if (!all)
        return ENOMEM;
    rc = posix_spawn(pid_out, own_file, actions, attr, all, fields);
    free(all);
    return rc;
}

/* It stays in our process group: what the supervisor kills is the group. */
static int spawn(const char *path, char *const *words, char *const *fields, int in, int err,
                 pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = set_signals(&attr);
        rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
        rc = rc ? rc : start(pid_out, path, &actions, &attr, words, fields);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* ---- its standard error ---------------------------------------------------------------------- */

typedef struct {
    int fd;           /* read end, -1 when it has ended */
    char held[PIECE]; /* the line that has not ended yet */
    size_t n;
} error_stream;

static void pass_on(const char *p, size_t n)
{
    while (n) {
        ssize_t wrote = write(STDERR_FILENO, p, n);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* nobody is there to read it */
        p += wrote;
        n -= (size_t)wrote;
    }
}

static void remember_line(program_end *end, const char *p, size_t n)
{
    while (n && strchr(" \t\r\n", p[n - 1]) && p[n - 1])
        n--;
    if (n == 0)
        return;
    end->line_n = n < sizeof(end->line) ? n : sizeof(end->line);
    memcpy(end->line, p, end->line_n);
}

/* Whole lines go out at once, the rest waits for its end. */
static void take_errors(error_stream *s, size_t more, program_end *end)
{
    size_t begin = 0;

    s->n += more;
    for (size_t i = s->n - more; i < s->n; i++)
        if (s->held[i] == '\n') {
            remember_line(end, s->held + begin, i - begin);
            begin = i + 1;
        }
    if (begin == 0 && s->n == sizeof(s->held)) {
        remember_line(end, s->held, s->n);
        begin = s->n;
    }
    pass_on(s->held, begin);
    s->n -= begin;
    memmove(s->held, s->held + begin, s->n);
}

/* Reads what is there now. */
static void read_errors(error_stream *s, program_end *end)
{
    while (s->fd >= 0) {
        ssize_t n = read(s->fd, s->held + s->n, sizeof(s->held) - s->n);

        if (n > 0) {
            take_errors(s, (size_t)n, end);
        } else if (n == 0) {
            close(s->fd);
            s->fd = -1;
        } else if (errno != EINTR) {
            return;
        }
    }
}

static void end_errors(error_stream *s, program_end *end)
{
    read_errors(s, end);
    remember_line(end, s->held, s->n);
    pass_on(s->held, s->n);
    if (s->n)
        pass_on("\n", 1);
    if (s->fd >= 0)
        close(s->fd); /* something that it left behind still holds the other end */
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Where our starter ignores SIGCHLD the kernel throws the status away. */
static bool has_ended(pid_t pid, program_end *end)
{
    pid_t rc = waitpid(pid, &end->status, WNOHANG);

    if (rc < 0 && errno == ECHILD)
        end->start_errno = ECHILD;
    return rc == pid || (rc < 0 && errno == ECHILD);
}

/* The first soft stop is passed on as TERM; the hard one is the supervisor's. */
static void look_for_interrupt(jobq_job *job, pid_t pid, program_end *end)
{
    char drained[64];
    int what;

    while (wake_in >= 0 && read(wake_in, drained, sizeof(drained)) > 0)
        continue; /* before asking: what comes later wakes us again */
    what = jobq_job_interrupted(job);
    if (what == JOBQ_INTERRUPT_NONE)
        return;
    end->interrupt = what;
    kill(pid, SIGTERM);
}

static void wait_for_end(jobq_job *job, pid_t pid, error_stream *errors, program_end *end)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    while (!has_ended(pid, end)) {
        struct pollfd fds[] = {{pidfd, POLLIN, 0}, {errors->fd, POLLIN, 0}, {wake_in, POLLIN, 0}};

        look_for_interrupt(job, pid, end);
        poll(fds, 3, pidfd >= 0 && wake_in >= 0 ? -1 : LOOK_MS);
        read_errors(errors, end);
    }
    if (pidfd >= 0)
        close(pidfd);
}

void program_run(jobq_job *job, const char *path, char *const *words, char *const *fields,
                 const char *input, size_t n, program_end *end)
{
    error_stream errors = {.fd = -1};
    int in = make_input(input, n), fds[2] = {-1, -1};
    pid_t pid = -1;

    memset(end, 0, sizeof(*end));
    open_wake();
    if (in < 0 || pipe2(fds, O_CLOEXEC) != 0)
        end->start_errno = errno;
    else
        end->start_errno = spawn(path, words, fields, in, fds[1], &pid);
    if (in >= 0)
        close(in);
    if (fds[1] >= 0)
        close(fds[1]);
    errors.fd = fds[0];
    if (end->start_errno == 0) {
        fcntl(errors.fd, F_SETFL, O_NONBLOCK);
        wait_for_end(job, pid, &errors, end);
    }
    end_errors(&errors, end);
}
