/* SPDX-License-Identifier: MIT
 *
 * See collect.h. Nothing here blocks: read ends are non-blocking, outputs are asked by poll. While
 * an output has no room its writers wait in their pipes, but no longer than output.c has patience;
 * then their lines are dropped and counted.
 *
 * Order: a child has printed its last line before it hands in its result, so before the
 * dispatcher's line about it. What the dispatcher sent is therefore held until every byte that
 * stood in the children's pipes at that moment has been passed on.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/clock.h"
#include "worker/streams.h"

enum { FINISH_MS = 5000, FINISH_LOOK_MS = 100 };

/* ---- passing on ------------------------------------------------------------------------------ */

static jobq__output *target_of(const jobq__collector *c, const jobq__stream *s)
{
    return s->slot == JOBQ__COLLECT_DISPATCHER ? jobq__observer_own(c->observer, s->err)
                                               : jobq__observer_children(c->observer, s->err);
}

typedef struct {
    jobq__collector *c;
    const jobq__stream *s;
} taker;

static void pass_on(void *payload, const char *lines, size_t n)
{
    const taker *t = payload;
    const char *end;

    if (t->s->err || t->s->slot == JOBQ__COLLECT_DISPATCHER ||
        !jobq__observer_wraps(t->c->observer)) {
        jobq__output_pass(target_of(t->c, t->s), lines, n);
        return;
    }
    for (; n > 0 && (end = memchr(lines, '\n', n)); n -= (size_t)(end + 1 - lines), lines = end + 1)
        jobq__json_output(t->c->observer, t->s->pid, lines, (size_t)(end - lines));
}

static void add_lines(jobq__collector *c, jobq__stream *s, const char *p, size_t n)
{
    taker t = {c, s};

    jobq__lines_add(&s->lines, p, n, pass_on, &t);
}

void jobq__stream_end_line(jobq__collector *c, jobq__stream *s)
{
    taker t = {c, s};

    jobq__lines_end(&s->lines, pass_on, &t);
}

static uint64_t running_of(const jobq__collector *c, const jobq__stream *s)
{
    return s->gone || s->slot < 0 ? 0
                                  : jobq__slot_oldest(jobq__slot_at(c->shared, (uint32_t)s->slot));
}

/* Its pipe was empty just now. Text without an end gets one when it cannot go on: its child is gone
 * or is through with the job that printed it. */
static void settle(jobq__collector *c, jobq__stream *s)
{
    if (s->lines.partial.n == 0)
        return;
    if (s->gone || (s->slot >= 0 && (s->running == 0 || s->running > s->newest) &&
                    atomic_load(&jobq__slot_at(c->shared, (uint32_t)s->slot)->started)))
        jobq__stream_end_line(c, s);
}

static void end_stream(jobq__collector *c, jobq__stream *s)
{
    jobq__stream_end_line(c, s);
    jobq__stream_close(s);
}

static void receive(jobq__collector *c, jobq__stream *s, size_t n)
{
    if (s->slot == JOBQ__COLLECT_DISPATCHER) {
        jobq__buf_add(&s->held, c->chunk, n);
        c->holds = true;
        return;
    }
    s->owed -= n < s->owed ? n : s->owed;
    add_lines(c, s, c->chunk, n);
    s->newest = running_of(c, s);
}

/* True: something came. */
static bool read_stream(jobq__collector *c, jobq__stream *s)
{
    const ssize_t n = read(s->fd, c->chunk, c->chunk_size);

    if (n > 0) {
        receive(c, s, (size_t)n);
        return true;
    }
    if (n < 0 && errno == EINTR)
        return false;
    s->owed = 0;
    if (n < 0 && errno == EAGAIN)
        settle(c, s);
    else
        end_stream(c, s);
    return false;
}

/* ---- the dispatcher's turn ------------------------------------------------------------------- */

/* Which of the children's pipes have something now? False: cannot be said. */
static bool look_at_children(jobq__collector *c)
{
    for (size_t i = 0; i < c->count; i++) {
        jobq__stream *s = &c->streams[i];

        c->looks[i] = (struct pollfd){.fd = s->slot < 0 ? -1 : s->fd, .events = POLLIN};
        s->running = running_of(c, s);
    }
    return poll(c->looks, c->count, 0) >= 0;
}

/* What stands in the children's pipes now goes before what the dispatcher has just sent. */
static void note_owed(jobq__collector *c)
{
    if (!look_at_children(c))
        return;
    for (size_t i = 0; i < c->count; i++) {
        int n = 0;

        if (c->looks[i].fd < 0)
            continue;
        if (!(c->looks[i].revents & POLLIN))
            settle(c, &c->streams[i]);
        else if (ioctl(c->looks[i].fd, FIONREAD, &n) == 0)
            c->streams[i].owed = (size_t)n;
    }
}

/* The same goes for text without an end that came together with the dispatcher's line. */
static void settle_partials(jobq__collector *c)
{
    bool any = false;

    for (size_t i = 0; i < c->count; i++)
        any = any || (c->streams[i].fd >= 0 && c->streams[i].lines.partial.n > 0);
    if (!any || !look_at_children(c))
        return;
    for (size_t i = 0; i < c->count; i++)
        if (c->looks[i].fd >= 0 && !(c->looks[i].revents & POLLIN))
            settle(c, &c->streams[i]);
}

static bool is_owed(const jobq__collector *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->streams[i].fd >= 0 && c->streams[i].owed > 0)
            return true;
    return false;
}

/* So long the stream's writer has to wait; 0: it can be passed on. */
static int64_t wait_of(const jobq__collector *c, const jobq__stream *s, int64_t now_ms)
{
    return s->fd < 0 ? 0 : jobq__output_wait_ms(target_of(c, s), now_ms);
}

static void pass_held(jobq__collector *c, int64_t now_ms)
{
    bool holds = false;

    if (!c->holds || is_owed(c))
        return;
    settle_partials(c);
    for (size_t i = 0; i < c->count; i++) {
        jobq__stream *s = &c->streams[i];

        if (s->fd < 0 || s->held.n == 0)
            continue;
        if (wait_of(c, s, now_ms) > 0) {
            holds = true;
            continue;
        }
        add_lines(c, s, s->held.p, s->held.n);
        jobq__buf_reset(&s->held);
    }
    c->holds = holds;
}

/* ---- one look -------------------------------------------------------------------------------- */

static bool is_readable(const jobq__collector *c, size_t i)
{
    return c->polls[2 + i].fd >= 0 && c->polls[2 + i].revents;
}

static void ask_for(jobq__collector *c, const jobq__output *out, size_t i)
{
    c->polls[2 + c->count + i] =
        (struct pollfd){.fd = jobq__output_is_pending(out) ? out->fd : -1, .events = POLLOUT};
}

/* Fills polls; how long to wait at most. */
static int64_t prepare(jobq__collector *c, const int fds[2], int64_t now_ms, int64_t wait_ms)
{
    for (size_t i = 0; i < 2; i++)
        c->polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    for (size_t i = 0; i < c->count; i++) {
        jobq__stream *s = &c->streams[i];
        const int64_t left_ms = wait_of(c, s, now_ms);

        c->polls[2 + i] =
            (struct pollfd){.fd = left_ms || s->held.n ? -1 : s->fd, .events = POLLIN};
        s->running = running_of(c, s);
        if (left_ms && left_ms < wait_ms)
            wait_ms = left_ms;
    }
    ask_for(c, &c->observer->out, 0);
    ask_for(c, &c->observer->err, 1);
    ask_for(c, &c->observer->pass, 2);
    return wait_ms;
}

static bool read_those(jobq__collector *c, bool dispatchers)
{
    bool news = false;

    for (size_t i = 0; i < c->count; i++) {
        jobq__stream *s = &c->streams[i];

        if ((s->slot == JOBQ__COLLECT_DISPATCHER) != dispatchers || c->polls[2 + i].fd < 0)
            continue;
        if (is_readable(c, i))
            news = read_stream(c, s) || news;
        else
            settle(c, s);
    }
    return news;
}

/* Waits for the first news and passes on what is there. False: nothing came from a pipe. */
static bool look(jobq__collector *c, const int fds[2], int64_t wait_ms)
{
    int64_t now_ms = jobq__clock_mono_ms();
    bool news;

    wait_ms = prepare(c, fds, now_ms, wait_ms);
    if (poll(c->polls, 2 + c->count + JOBQ__OUTPUTS, (int)wait_ms) < 0)
        return false;
    news = read_those(c, true);
    if (news)
        note_owed(c);
    news = read_those(c, false) || news;
    now_ms = jobq__clock_mono_ms();
    pass_held(c, now_ms);
    jobq__observer_flush(c->observer, now_ms);
    return news;
}

void jobq__collect_wait(jobq__collector *c, const int fds[2], int64_t until_ms)
{
    int64_t now_ms = jobq__clock_mono_ms();

    do {
        c->polls[0].revents = c->polls[1].revents = 0;
        look(c, fds, now_ms < until_ms ? until_ms - now_ms : 0);
        now_ms = jobq__clock_mono_ms();
    } while (now_ms < until_ms && !c->polls[0].revents && !c->polls[1].revents);
}

/* What is there now, from everybody; a program that one of them left behind could go on for
 * ever. */
void jobq__collect_finish(jobq__collector *c)
{
    static const int none[2] = {-1, -1};
    const int64_t end_ms = jobq__clock_mono_ms() + FINISH_MS;
    bool news = true;

    note_owed(c);
    while (jobq__clock_mono_ms() < end_ms && (news || c->holds || is_owed(c)))
        news = look(c, none, news ? 0 : FINISH_LOOK_MS);
    for (size_t i = 0; i < c->count; i++)
        if (c->streams[i].fd >= 0)
            jobq__stream_end_line(c, &c->streams[i]);
    jobq__streams_close_all(c);
}
