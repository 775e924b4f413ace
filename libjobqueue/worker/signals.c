/* SPDX-License-Identifier: MIT
 *
 * Signals: the only file that calls sigaction. What arrives between install and restore becomes a
 * byte in a pipe; worker/step.c and master.c decide what it means. The system keeps no order
 * between different signals that are pending at once.
 * Children get no-op handlers (a supervisor may signal the whole group, case B085), which an exec
 * in a handler resets; in a process that a handler forked they act as in any process (rule D7).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"
#include "worker/worker.h"

enum { INLINE = 1, POOL = 2 };

/* What is watched while a worker runs, and in which modes. */
static const struct {
    int number, modes;
    bool heed_ignored; /* ignored by whoever started us (nohup): stays so */
} watched[] = {
    {SIGTERM, INLINE | POOL, false}, {SIGINT, INLINE | POOL, false},
    {SIGQUIT, INLINE | POOL, false}, {SIGHUP, INLINE | POOL, true},
    {SIGUSR1, INLINE | POOL, false}, {SIGUSR2, INLINE | POOL, false},
    {SIGCONT, INLINE | POOL, false}, {SIGCHLD, POOL, false},
    {SIGPIPE, POOL, false},
};
enum { WATCHED = sizeof(watched) / sizeof(watched[0]) };

static struct {
    int mode; /* 0 = nothing installed */
    int pipe[2];
    pid_t owner;
    struct sigaction old[WATCHED], old_urgent;
    bool has_urgent;
    sigset_t old_mask;
} installed = {.pipe = {-1, -1}};

/* A byte of a wake lies in the pipe: a second one would only take room from a signal's. */
static atomic_bool woken;

static void (*interrupt_hook)(void *payload);
static void *interrupt_payload;

/* In a process that a handler forked the signal does what it does to any process. */
static void act_by_default(int number)
{
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, number);
    sigaction(number, &sa, NULL);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void note_signal(int number)
{
    const int saved = errno;
    const char byte = (char)number;
    ssize_t n = 0;

    if (getpid() != installed.owner)
        act_by_default(number);
    else
        n = write(installed.pipe[1], &byte, 1);
    (void)n; /* a pipe full of signals says enough */
    if (interrupt_hook && installed.mode == INLINE)
        /* the handler runs in this process: a hard stop must reach it */
        interrupt_hook(interrupt_payload);
    errno = saved;
}

static void take_no_notice(int number)
{
    const int saved = errno;

    if (getpid() != installed.owner)
        act_by_default(number);
    errno = saved;
}

static void on_interrupt(int number)
{
    const int saved = errno;

    (void)number;
    if (interrupt_hook)
        interrupt_hook(interrupt_payload);
    errno = saved;
}

static void set_handler(int number, void (*handler)(int), int flags, struct sigaction *old)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&sa.sa_mask);
    sigaction(number, &sa, old);
}

static bool is_ours(size_t i)
{
    return watched[i].modes & installed.mode;
}

int jobq__signals_install(bool pool)
{
    sigset_t unblock;

    if (installed.mode)
        return jobq__error_set(JOBQ_EINVAL, "another worker is running in this process");
    if (jobq__fd_pipe(installed.pipe) != 0)
        return jobq__error_set(JOBQ_EIO, "a pipe for signals could not be made: %s",
                               strerror(errno));
    installed.mode = pool ? POOL : INLINE;
    atomic_store(&woken, false);
    installed.owner = getpid();
    sigemptyset(&unblock);
    for (size_t i = 0; i < WATCHED; i++) {
        if (!is_ours(i))
            continue;
        set_handler(watched[i].number, watched[i].number == SIGPIPE ? SIG_IGN : note_signal,
                    SA_RESTART, &installed.old[i]);
        if (watched[i].heed_ignored && installed.old[i].sa_handler == SIG_IGN)
            sigaction(watched[i].number, &installed.old[i], NULL);
        sigaddset(&unblock, watched[i].number);
    }
    pthread_sigmask(SIG_UNBLOCK, &unblock, &installed.old_mask);
    return 0;
}

void jobq__signals_inline(void (*interrupt)(void *payload), void *payload)
{
    if (!installed.mode || installed.has_urgent)
        return;
    interrupt_hook = interrupt;
    interrupt_payload = payload;
    set_handler(SIGURG, on_interrupt, 0, &installed.old_urgent);
    installed.has_urgent = true;
}

static void close_pipe(void)
{
    for (int i = 0; i < 2; i++)
        if (installed.pipe[i] >= 0)
            close(installed.pipe[i]);
    installed.pipe[0] = installed.pipe[1] = -1;
}

void jobq__signals_restore(void)
{
    if (!installed.mode || installed.owner != getpid())
        return;
    for (size_t i = 0; i < WATCHED; i++)
        if (is_ours(i))
            sigaction(watched[i].number, &installed.old[i], NULL);
    if (installed.has_urgent)
        sigaction(SIGURG, &installed.old_urgent, NULL);
    installed.has_urgent = false;
    interrupt_hook = NULL;
    pthread_sigmask(SIG_SETMASK, &installed.old_mask, NULL);
    installed.mode = 0;
    close_pipe();
}

/* Sets what a forked process does with each watched signal, then lets them through again: they were
 * blocked across the fork. */
static void settle_fork(void (*handler)(int))
{
    for (size_t i = 0; i < WATCHED; i++) {
        if (!is_ours(i))
            continue;
        if (watched[i].heed_ignored && installed.old[i].sa_handler == SIG_IGN)
            continue;
        if (watched[i].number == SIGCHLD)
            sigaction(SIGCHLD, &installed.old[i], NULL);
        else if (watched[i].number != SIGPIPE)
            set_handler(watched[i].number, handler, SA_RESTART, NULL);
        else if (handler != SIG_IGN)
            sigaction(SIGPIPE, &installed.old[i], NULL);
    }
    close_pipe();
    installed.mode = 0;
}

void jobq__signals_child(void (*interrupt)(void *payload), void *payload)
{
    sigset_t mask = installed.old_mask;

    installed.owner = getpid();
    settle_fork(take_no_notice);
    interrupt_hook = interrupt;
    interrupt_payload = payload;
    /* Without SA_RESTART: it is there to end a sleep or a read. */
    set_handler(SIGURG, on_interrupt, 0, NULL);
    sigdelset(&mask, SIGURG);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* A handler may have taken them away (rule D7). */
void jobq__signals_rearm(void)
{
    sigset_t mine;

    sigemptyset(&mine);
    if (installed.mode == 0 || installed.has_urgent) {
        set_handler(SIGURG, on_interrupt, 0, NULL);
        sigaddset(&mine, SIGURG);
    }
    for (size_t i = 0; i < WATCHED; i++) {
        if (installed.mode != INLINE || !is_ours(i) || watched[i].number == SIGPIPE)
            continue;
        if (watched[i].heed_ignored && installed.old[i].sa_handler == SIG_IGN)
            continue;
        set_handler(watched[i].number, note_signal, SA_RESTART, NULL);
        sigaddset(&mine, watched[i].number);
    }
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
}

void jobq__signals_dispatcher(void)
{
    settle_fork(SIG_IGN);
    pthread_sigmask(SIG_SETMASK, &installed.old_mask, NULL);
}

int jobq__signals_fd(void)
{
    return installed.pipe[0];
}

int jobq__signals_next(void)
{
    char byte;

    while (installed.pipe[0] >= 0 && read(installed.pipe[0], &byte, 1) == 1)
        if (byte)
            return byte;
    atomic_store(&woken, false); /* who asked until now is served by the look that follows */
    return 0;
}

void jobq__signals_wake(void)
{
    if (installed.mode == INLINE && installed.owner == getpid() && !atomic_exchange(&woken, true))
        jobq__fd_ring(installed.pipe[1]);
}
