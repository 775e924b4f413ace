/* SPDX-License-Identifier: MIT
 *
 * See output.h. The descriptor's description is shared with the shell and with children, so
 * O_NONBLOCK is out of the question: poll says whether PIPE_BUF bytes can be written without
 * waiting.
 */
#include "worker/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum {
    PENDING_MAX = 256 * 1024,
    PASS_MAX = PENDING_MAX / 2, /* others' lines leave room for our own */
    PATIENCE_MS = 1000,         /* so long others may be kept waiting */
    LOOK_MS = 1000,
    LAST_WAIT_MS = 200
};

static void look_at(jobq__output *out)
{
    struct stat st;

    memset(&out->identity, 0, sizeof(out->identity));
    out->is_file = false;
    if (fstat(out->fd, &st) != 0)
        return;
    out->identity = (jobq__fd_identity){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    out->is_file = S_ISREG(st.st_mode);
}

void jobq__output_init(jobq__output *out, int fd)
{
    memset(out, 0, sizeof(*out));
    out->fd = fd;
    look_at(out);
}

void jobq__output_init_line(jobq__output *out, jobq_line_function line, void *payload)
{
    jobq__output_init(out, -1);
    out->line = line;
    out->payload = payload;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
}

int jobq__output_open(jobq__output *out, const char *path)
{
    int fd = open_file(path);

    if (fd < 0)
        return jobq__error_set(JOBQ_EINVAL, "output \"%s\" could not be opened: %s", path,
                               strerror(errno));
    jobq__output_init(out, fd);
    out->path = path;
    return 0;
}

/* Log rotation renames the file: then a new one is begun under the old name. */
static void reopen(jobq__output *out, int64_t mono_ms)
{
    struct stat st;
    int fd;

    if (!out->path || mono_ms - out->looked_ms < LOOK_MS)
        return;
    out->looked_ms = mono_ms;
    if (stat(out->path, &st) == 0 && (uint64_t)st.st_ino == out->identity.inode &&
        (uint64_t)st.st_dev == out->identity.device)
        return;
    fd = open_file(out->path);
    if (fd < 0)
        return;
    close(out->fd);
    out->fd = fd;
    look_at(out);
}

/* write, with the SIGPIPE it may raise taken away again: only if it was not pending before. */
static ssize_t write_quietly(int fd, const char *p, size_t n)
{
    static const struct timespec now;
    sigset_t pipe_set, before, pending;
    ssize_t done;
    int saved;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    done = write(fd, p, n);
    saved = errno;
    if (done < 0 && saved == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return done;
}

static size_t left(const jobq__output *out)
{
    return out->pending.n - out->done;
}

/* As many whole lines as fit into one write; a longer line goes in pieces. */
static size_t piece(const jobq__output *out)
{
    const char *p = out->pending.p + out->done;
    size_t n = left(out) < PIPE_BUF ? left(out) : PIPE_BUF;
    const char *end = memrchr(p, '\n', n);

    if (out->is_file)
        return left(out);
    return end ? (size_t)(end - p) + 1 : n;
}

static int64_t count_lines(const char *p, size_t n)
{
    int64_t lines = 0;

    for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        lines++;
    return lines;
}

/* The line that counts those dropped before is none of them. */
static void drop_all(jobq__output *out)
{
    out->dropped += count_lines(out->pending.p + out->done, left(out));
    if (out->said > 0)
        out->dropped += out->said - 1;
    out->dropped -= out->mends;
    out->is_torn = out->is_torn || out->is_midline;
    out->said = 0;
    out->mends = false;
    out->done = 0;
    jobq__buf_reset(&out->pending);
}

static void note_written(jobq__output *out, size_t n)
{
    out->done += n;
    out->moved_ms = jobq__clock_mono_ms();
    out->is_midline = out->pending.p[out->done - 1] != '\n';
    if (out->mends)
        out->is_torn = out->mends = false;
    if (out->said > 0 && out->done >= out->said_end)
        out->said = 0;
    if (left(out) == 0) {
        out->done = 0;
        jobq__buf_reset(&out->pending);
    }
}

/* What is written makes room for what comes. */
static void close_up(jobq__output *out)
{
    if (out->done == 0)
        return;
    out->pending.n -= out->done;
    memmove(out->pending.p, out->pending.p + out->done, out->pending.n);
    out->said_end -= out->said > 0 ? out->done : 0;
    out->done = 0;
}

/* The function may lead to further lines: they wait for the next flush. */
static void hand_over(jobq__output *out)
{
    jobq__buf lines = out->pending;
    const char *p = lines.p, *end;

    memset(&out->pending, 0, sizeof(out->pending));
    out->said = 0;
    for (size_t left = lines.n; left && (end = memchr(p, '\n', left)); p = end + 1) {
        out->line(out->payload, p, (size_t)(end - p));
        left -= (size_t)(end + 1 - p);
    }
    jobq__buf_free(&lines);
}

static void write_pending(jobq__output *out, int wait_ms)
{
    struct pollfd p = {.fd = out->fd, .events = POLLOUT};

    while (left(out) > 0) {
        ssize_t n;

        if (poll(&p, 1, wait_ms) <= 0 || !(p.revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)))
            return;
        n = write_quietly(out->fd, out->pending.p + out->done, piece(out));
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        /* nobody reads, or no space: what we hold is lost, later lines get their own try */
        if (n <= 0)
            drop_all(out);
        else
            note_written(out, (size_t)n);
    }
}

/* What was written of a line whose rest is lost ends here, so that the next one is a line. */
static void mend_torn(jobq__output *out)
{
    if (!out->is_torn || out->mends)
        return;
    jobq__buf_addc(&out->pending, '\n');
    out->mends = !out->pending.failed;
}

static void say_dropped(jobq__output *out)
{
    if (out->dropped == 0 || out->said > 0 || left(out) > PENDING_MAX / 2)
        return;
    if (out->word_dropped)
        out->word_dropped(out->word_payload, &out->pending, out->dropped);
    else
        jobq__buf_addf(&out->pending, "%lld line%s dropped\n", (long long)out->dropped,
                       jobq__plural(out->dropped));
    if (out->pending.failed)
        return;
    out->said = out->dropped;
    out->said_end = out->pending.n;
    out->dropped = 0;
}

/* Room for n more bytes of memory; false: there is none. */
static bool make_room(jobq__output *out, size_t n)
{
    if (left(out) == 0)
        out->moved_ms = jobq__clock_mono_ms();
    mend_torn(out);
    say_dropped(out);
    close_up(out);
    if (jobq__buf_reserve(&out->pending, n))
        return true;
    out->pending.failed = false;
    return false;
}

void jobq__output_line(jobq__output *out, const char *text, size_t n)
{
    if (left(out) + n + 1 > PENDING_MAX && !out->line)
        write_pending(out, 0);
    if (left(out) + n + 1 > PENDING_MAX || !make_room(out, n + 1)) {
        out->dropped++;
        return;
    }
    jobq__buf_add(&out->pending, text, n);
    jobq__buf_addc(&out->pending, '\n');
}

void jobq__output_pass(jobq__output *out, const char *lines, size_t n)
{
    if (left(out) > PASS_MAX || !make_room(out, n)) {
        out->dropped += count_lines(lines, n);
        return;
    }
    jobq__buf_add(&out->pending, lines, n);
}

int64_t jobq__output_wait_ms(const jobq__output *out, int64_t mono_ms)
{
    const int64_t wait_ms = out->moved_ms + PATIENCE_MS - mono_ms;

    return left(out) <= PASS_MAX || wait_ms < 0 ? 0 : wait_ms;
}

bool jobq__output_is_pending(const jobq__output *out)
{
    return left(out) > 0;
}

void jobq__output_flush(jobq__output *out, int64_t mono_ms)
{
    if (left(out) == 0)
        return;
    if (out->line) {
        hand_over(out);
        return;
    }
    reopen(out, mono_ms);
    write_pending(out, 0);
}

void jobq__output_close(jobq__output *out)
{
    if (out->line)
        hand_over(out);
    else
        write_pending(out, LAST_WAIT_MS);
    jobq__buf_free(&out->pending);
    out->done = 0;
    if (out->path)
        close(out->fd);
}
