/* SPDX-License-Identifier: MIT
 *
 * The parent under `work --reload`. It waits for three things: signals, which it passes on; names
 * of files that the child has loaded; and a change of one of them, upon which the child is asked to
 * stop as by TERM and then started anew. A child that cannot even load its code is not the end: the
 * next change starts another.
 */
#include "console/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

enum { LOOK_MS = 300, PATH_ROOM = 8192, BY_SIGNAL = 128 };

static const int ends[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
static const int others[] = {SIGUSR1, SIGUSR2, SIGCONT};
enum { ENDS = sizeof(ends) / sizeof(ends[0]), OTHERS = sizeof(others) / sizeof(others[0]) };

typedef struct {
    jobq__cli *cli;
    jobq__files files;
    int signals, channel; /* signalfd; where the names of files arrive, -1 = nowhere */
    char line[PATH_ROOM]; /* a name that has not ended yet */
    size_t line_n;
    pid_t child;           /* 0 = none runs */
    bool told, first;      /* the child has named a file; it is the first one */
    bool stopping, ending; /* asked to stop because of a change; because we were asked to */
    bool changed;          /* something did, and may still be being written */
} reloader;

/* ---- the child ------------------------------------------------------------------------------- */

/* A pipe. The child's end is open both ways: writing to a parent that is gone must not kill it. */
static int open_way(int ends_out[2])
{
    char name[64];
    int ways[2];

    if (pipe2(ways, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", ways[1]);
    ends_out[0] = ways[0];
    ends_out[1] = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    close(ways[1]);
    if (ends_out[1] < 0)
        close(ways[0]);
    return ends_out[1] < 0 ? -1 : 0;
}

static int refuse(const reloader *r)
{
    jobq__cli_error(r->cli, "--reload: could not start this command again: %s", strerror(errno));
    return JOBQ__EXIT_FAILED;
}

static int start(reloader *r)
{
    const char *path;
    int ways[2];

    if (open_way(ways) != 0)
        return refuse(r);
    jobq__files_look(&r->files, &path); /* what it loads is what lies there now */
    r->changed = r->told = r->stopping = false;
    r->line_n = 0;
    fflush(NULL);
    r->child = jobq__reload_spawn(ways[1]);
    close(ways[1]);
    if (r->child < 0) {
        r->child = 0;
        close(ways[0]);
        return refuse(r);
    }
    r->channel = ways[0];
    return 0;
}

static void take_lines(reloader *r)
{
    char *begin = r->line, *end;

    while ((end = memchr(begin, '\n', r->line_n)) != NULL) {
        jobq__files_add(&r->files, begin, (size_t)(end - begin));
        r->told = true;
        r->line_n -= (size_t)(end + 1 - begin);
        begin = end + 1;
    }
    memmove(r->line, begin, r->line_n);
    if (r->line_n == sizeof(r->line))
        r->line_n = 0; /* no name is that long */
}

static void take_names(reloader *r)
{
    ssize_t n = 1;

    while (r->channel >= 0 && n > 0) {
        n = read(r->channel, r->line + r->line_n, sizeof(r->line) - r->line_n);
        if (n > 0) {
            r->line_n += (size_t)n;
            take_lines(r);
        } else if (n == 0) {
            close(r->channel); /* all its processes have ended */
            r->channel = -1;
        }
    }
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A worker that ran and ended by itself ends us with its code. One whose code could not be loaded,
 * or let PHP end with a fatal error, waits for better code; so does a wrong configuration, but one
 * that was wrong from the first start on. */
static bool is_final(const reloader *r, int code)
{
    if (code == JOBQ__EXIT_USAGE)
        return r->first;
    return code == JOBQ__EXIT_OK || (r->told && code < BY_SIGNAL);
}

/* -1: go on; else the exit code. */
static int bury(reloader *r, int status)
{
    const int code = code_of(status);

    take_names(r);
    if (r->channel >= 0)
        close(r->channel);
    r->channel = -1;
    r->child = 0;
    if (r->ending)
        return code;
    if (!r->stopping && is_final(r, code))
        return code;
    r->first = false;
    if (r->stopping)
        return start(r) ? JOBQ__EXIT_FAILED : -1;
    jobq__cli_note(r->cli,
                   "the worker could not go on (exit %d): it is started again when a file "
                   "changes",
                   code);
    return -1;
}

/* Where our starter ignores SIGCHLD the kernel throws the status away. */
static int look_for_end(reloader *r)
{
    int status = 0;
    pid_t ended = r->child ? waitpid(r->child, &status, WNOHANG) : 0;

    return ended > 0 || (ended < 0 && errno == ECHILD) ? bury(r, status) : -1;
}

/* ---- signals --------------------------------------------------------------------------------- */

static bool is_end(int signal)
{
    for (size_t i = 0; i < ENDS; i++)
        if (ends[i] == signal)
            return true;
    return false;
}

/* The child has its first TERM already when it stops for a change; a second one would cut its jobs
 * short. */
static void take_signal(reloader *r, int signal)
{
    const bool first_end = is_end(signal) && !r->ending;

    r->ending = r->ending || is_end(signal);
    if (r->child && !(first_end && r->stopping))
        kill(r->child, signal);
}

/* -1: go on; else the exit code. */
static int take_signals(reloader *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            take_signal(r, (int)info.ssi_signo);
    return r->ending && !r->child ? JOBQ__EXIT_OK : look_for_end(r);
}

static int open_signals(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < ENDS; i++)
        sigaddset(&set, ends[i]);
    for (size_t i = 0; i < OTHERS; i++)
        sigaddset(&set, others[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Acts on the first look at which nothing has changed any more: editors and checkouts write in
 * several steps. -1: go on; else the exit code. */
static int look_for_change(reloader *r)
{
    const char *path = NULL;

    if (jobq__files_look(&r->files, &path)) {
        if (!r->changed && !r->stopping && !r->ending)
            jobq__cli_note(r->cli, "%s has changed: %s", path,
                           r->child ? "the worker finishes its jobs and starts anew"
                                    : "the worker starts anew");
        r->changed = true;
        return -1;
    }
    if (!r->changed || r->stopping || r->ending)
        return -1;
    if (!r->child)
        return start(r) ? JOBQ__EXIT_FAILED : -1;
    r->stopping = true;
    kill(r->child, SIGTERM);
    return -1;
}

static int live(reloader *r)
{
    int64_t look_at_ms = jobq__clock_mono_ms() + LOOK_MS, left;
    int code = start(r) ? JOBQ__EXIT_FAILED : -1;

    while (code < 0) {
        struct pollfd fds[] = {{r->signals, POLLIN, 0}, {r->channel, POLLIN, 0}};

        left = look_at_ms - jobq__clock_mono_ms();
        if (poll(fds, 2, left > 0 ? (int)left : 0) < 0 && errno != EINTR)
            return JOBQ__EXIT_FAILED;
        take_names(r);
        code = take_signals(r);
        if (code < 0 && jobq__clock_mono_ms() >= look_at_ms) {
            code = look_for_change(r);
            look_at_ms = jobq__clock_mono_ms() + LOOK_MS;
        }
    }
    return code;
}

int jobq__reload_run(jobq__cli *cli)
{
    reloader r = {.cli = cli, .channel = -1, .first = true};
    const char *const own[] = {cli->program_file, cli->given.source};
    sigset_t before;
    int code = JOBQ__EXIT_FAILED;

    for (size_t i = 0; i < 2; i++)
        if (own[i])
            jobq__files_add(&r.files, own[i], strlen(own[i]));
    r.signals = open_signals(&before);
    if (r.signals >= 0) {
        code = live(&r);
        close(r.signals);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    jobq__files_free(&r.files);
    return code;
}
