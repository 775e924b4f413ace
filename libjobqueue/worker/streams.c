/* SPDX-License-Identifier: MIT
 *
 * The collector's pipes: made before a fork, kept or entered after it, closed when nobody can write
 * to them any more. See collect.h.
 */
#include "worker/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/error.h"

enum {
    CHUNK_WRAPPED = 4 * 1024, /* an empty line becomes an object of 150 bytes */
    LEFT_BEHIND = 64          /* pipes of ended children that their programs keep open */
};

/* ---- making and freeing ---------------------------------------------------------------------- */

int jobq__collect_new(const jobq__shared *shared, jobq__observer *observer,
                      jobq__collector **collector_out)
{
    jobq__collector *c = jobq__zalloc(sizeof(*c));

    if (!c)
        return jobq__error_nomem();
    c->shared = shared;
    c->observer = observer;
    c->chunk_size = jobq__observer_wraps(observer) ? CHUNK_WRAPPED : JOBQ__CHUNK;
    c->count = 2 * (shared->words->slot_count + 1) + LEFT_BEHIND;
    c->streams = jobq__zalloc(c->count * sizeof(*c->streams));
    c->polls = jobq__zalloc((2 + c->count + JOBQ__OUTPUTS) * sizeof(*c->polls));
    c->looks = jobq__zalloc(c->count * sizeof(*c->looks));
    if (!c->streams || !c->polls || !c->looks) {
        jobq__collect_free(c);
        return jobq__error_nomem();
    }
    for (size_t i = 0; i < c->count; i++)
        c->streams[i].fd = -1;
    *collector_out = c;
    return 0;
}

void jobq__stream_close(jobq__stream *s)
{
    close(s->fd);
    s->fd = -1;
    s->owed = 0;
    jobq__lines_free(&s->lines);
    jobq__buf_free(&s->held);
}

void jobq__streams_close_all(jobq__collector *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->streams[i].fd >= 0)
            jobq__stream_close(&c->streams[i]);
}

void jobq__collect_free(jobq__collector *c)
{
    if (!c)
        return;
    if (c->streams)
        jobq__streams_close_all(c);
    jobq__free(c->streams);
    jobq__free(c->polls);
    jobq__free(c->looks);
    jobq__free(c);
}

/* ---- round forks ----------------------------------------------------------------------------- */

static void close_pipes(const jobq__pipes *pipes)
{
    for (int i = 0; i < 4; i++)
        if (pipes->ends[i] >= 0)
            close(pipes->ends[i]);
}

/* Handlers write into it as into any file: only our end does not block. */
static int open_pipe(int ends[2])
{
    int flags;

    if (jobq__fd_pipe(ends) != 0)
        return -1;
    flags = fcntl(ends[1], F_GETFL);
    return flags < 0 ? -1 : fcntl(ends[1], F_SETFL, flags & ~O_NONBLOCK);
}

void jobq__collect_open(jobq__collector *c, jobq__pipes *pipes)
{
    int problem;

    *pipes = (jobq__pipes){{-1, -1, -1, -1}};
    if (open_pipe(pipes->ends) == 0 && open_pipe(pipes->ends + 2) == 0)
        return;
    problem = errno;
    close_pipes(pipes);
    *pipes = (jobq__pipes){{-1, -1, -1, -1}};
    if (!c->said)
        jobq__observer_error(c->observer,
                             "no pipes for what children print (%s): it goes out as it comes",
                             strerror(problem));
    c->said = true;
}

/* A free place; there is always one, if need be that of the oldest pipe that was left behind. */
static jobq__stream *find_place(jobq__collector *c)
{
    jobq__stream *oldest = NULL;

    for (size_t i = 0; i < c->count; i++) {
        jobq__stream *s = &c->streams[i];

        if (s->fd < 0)
            return s;
        if (s->gone && (!oldest || s->age < oldest->age))
            oldest = s;
    }
    if (oldest) {
        jobq__stream_end_line(c, oldest);
        jobq__stream_close(oldest);
    }
    return oldest;
}

static void keep_one(jobq__collector *c, int fd, pid_t pid, int64_t slot, bool err)
{
    jobq__stream *s = find_place(c);

    if (!s) {
        close(fd);
        return;
    }
    *s = (jobq__stream){.fd = fd, .pid = pid, .slot = slot, .err = err, .age = c->next_age++};
}

void jobq__collect_keep(jobq__collector *c, const jobq__pipes *pipes, pid_t pid, int64_t slot)
{
    if (pid < 0 || pipes->ends[0] < 0) {
        close_pipes(pipes);
        return;
    }
    close(pipes->ends[1]);
    close(pipes->ends[3]);
    keep_one(c, pipes->ends[0], pid, slot, false);
    keep_one(c, pipes->ends[2], pid, slot, true);
}

void jobq__collect_enter(jobq__collector *c, const jobq__pipes *pipes)
{
    jobq__streams_close_all(c);
    if (pipes->ends[0] < 0)
        return;
    dup2(pipes->ends[1], STDOUT_FILENO);
    dup2(pipes->ends[3], STDERR_FILENO);
    close_pipes(pipes);
}

void jobq__collect_part(jobq__collector *c, pid_t pid)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->streams[i].fd >= 0 && c->streams[i].pid == pid)
            c->streams[i].gone = true;
}
