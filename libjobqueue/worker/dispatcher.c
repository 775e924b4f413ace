/* SPDX-License-Identifier: MIT
 *
 * The dispatcher: the one process that talks to the store. Each round it looks at its children,
 * asks worker/step.c what to do, does that and sleeps until somebody rings. It runs no user code
 * and never forks.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "worker/desk.h"

enum {
    LINGER_MS = 5,           /* results wait at most so long for company ... */
    LINGER_WORK_US = 4000,   /* ... while every child has so much to do */
    LINGER_MOST = 64,        /* ... and there are fewer than these */
    PARENT_MS = 200,         /* how often we look for our parent at most ... */
    PARENT_ASLEEP_MS = 1000, /* ... and at least, where nobody tells us of its death */
    ORPHAN_MS = 5000,        /* how long we outlive it */
    OLD_KERNEL_FDS = 4096    /* closed one by one where close_range is missing */
};

typedef struct {
    jobq__desk *desk;
    pid_t parent;
    int64_t parent_seen_ms, orphaned_ms, unsettled_since_ms;
    uint32_t stop_seen, paused_seen;
    /* readable when the bell rings or the master dies; -1 = there is no such thing here */
    int alarm_fd;
    const int *relay; /* to the master, see jobq__dispatcher_main */
} dispatcher;

/* ---- beginning ------------------------------------------------------------------------------- */

static void close_range_of(unsigned first, unsigned last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && fd < OLD_KERNEL_FDS; fd++)
        close((int)fd);
}

static int lower(int fd, int from, int best)
{
    return fd >= from && (best < 0 || fd < best) ? fd : best;
}

/* The lowest from there on that a dispatcher needs, -1: none. */
static int next_kept(const jobq_worker *worker, const int relay[4], int from)
{
    const jobq__shared *shared = &worker->shared;
    int best = lower(shared->dispatcher_bell[0], from, -1);

    best = lower(shared->dispatcher_bell[1], from, best);
    best = lower(shared->master_bell[1], from, best);
    best = lower(worker->sink.kind == JOBQ__SINK_FD ? worker->sink.fd : -1, from, best);
    for (int i = 0; i < 4; i++)
        best = lower(relay[i], from, best);
    for (uint32_t i = 0; shared->slot_bells && i < shared->words->slot_count; i++)
        best = lower(shared->slot_bells[i][1], from, best);
    return best;
}

/* Everything the application had open: a dispatcher must not keep its sockets and files alive. */
static void close_others(const jobq_worker *worker, const int relay[4])
{
    unsigned from = 3;
    int next;

    while ((next = next_kept(worker, relay, (int)from)) >= 0) {
        close_range_of(from, (unsigned)next - 1);
        from = (unsigned)next + 1;
    }
    close_range_of(from, ~0U);
}

static int make_seats(jobq__desk *desk)
{
    const jobq__shared *shared = &desk->worker->shared;

    desk->seats = jobq__zalloc(shared->words->slot_count * sizeof(*desk->seats));
    if (!desk->seats)
        return JOBQ_ENOMEM;
    desk->seat_count = shared->words->slot_count;
    for (size_t i = 0; i < desk->seat_count; i++) {
        desk->seats[i].slot = jobq__slot_at(shared, (uint32_t)i);
        desk->seats[i].cursor = atomic_load(&desk->seats[i].slot->results.tail);
    }
    return 0;
}

static jobq__desk *begin(jobq_worker *worker, bool again, const int relay[4])
{
    jobq__desk *desk = NULL;

    close_others(worker, relay);
    if (jobq__desk_new(worker, worker->shared.handouts, worker->shared.handout_count, &desk) < 0 ||
        make_seats(desk) < 0 || jobq__observer_new(worker, &desk->observer) < 0)
        _exit(1); /* no memory: the master starts another */
    jobq__observer_relay(desk->observer, relay);
    desk->control.silent = again;
    if (again)
        jobq__results_take_over(desk);
    return desk;
}

static bool add_to(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Bell and master's death in one descriptor, so that an idle dispatcher need not wake up to
 * look. */
static int make_alarm(const jobq__shared *shared, pid_t master)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int pidfd = (int)syscall(SYS_pidfd_open, master, 0);

    if (epoll >= 0 && add_to(epoll, pidfd) && add_to(epoll, shared->dispatcher_bell[0]))
        return epoll;
    if (epoll >= 0)
        close(epoll);
    return -1;
}

/* ---- the master's end ------------------------------------------------------------------------ */

static void look_for_parent(dispatcher *d)
{
    jobq__desk *desk = d->desk;

    if (desk->master_died) {
        jobq__results_orphans(desk);
        return;
    }
    if (desk->now_ms - d->parent_seen_ms < PARENT_MS)
        return;
    d->parent_seen_ms = desk->now_ms;
    if (getppid() == d->parent)
        return;
    desk->master_died = true;
    d->orphaned_ms = desk->now_ms;
    jobq__words_stop(desk->words, JOBQ__HARD, JOBQ__STOP_SIGNAL, 0);
    jobq__observer_unrelay(desk->observer, d->relay);
    jobq__observer_error(desk->observer,
                         "the worker's main process died; settling what is finished");
}

static bool is_overdue(const dispatcher *d)
{
    return d->desk->master_died && d->desk->now_ms - d->orphaned_ms >= ORPHAN_MS;
}

/* ---- one round ------------------------------------------------------------------------------- */

static bool is_serving(const jobq__desk *desk)
{
    const jobq__situation *s = &desk->s;

    return s->stop == JOBQ__GO && !s->restart && !s->paused && !s->all_paused;
}

/* While all of its queues are paused only their failed hooks are given to children. */
static bool is_giving(const jobq__desk *desk)
{
    const jobq__situation *s = &desk->s;

    return is_serving(desk) ||
           (s->stop == JOBQ__GO && !s->restart && !s->paused && s->hooks_open > 0);
}

/* How much work the child with the least has in hand. */
static double least_work_us(const jobq__desk *desk)
{
    double least = -1;

    for (size_t i = 0; i < desk->seat_count; i++) {
        const jobq__seat *seat = &desk->seats[i];
        double work = (double)seat->out.count * (desk->average_us > 0 ? desk->average_us : 0);

        if (seat->open && (least < 0 || work < least))
            least = work;
    }
    return least;
}

/* A single result need not cost a commit of its own while every child has plenty to do. */
static void set_linger(dispatcher *d)
{
    jobq__desk *desk = d->desk;

    desk->s.linger_until_ms = 0;
    if (desk->ended.count == 0) {
        d->unsettled_since_ms = 0;
        return;
    }
    if (d->unsettled_since_ms == 0)
        d->unsettled_since_ms = desk->now_ms;
    if (is_serving(desk) && desk->ended.count < LINGER_MOST &&
        least_work_us(desk) >= LINGER_WORK_US)
        desk->s.linger_until_ms = d->unsettled_since_ms + LINGER_MS;
}

static void look(dispatcher *d)
{
    jobq__desk *desk = d->desk;

    desk->now_ms = jobq__clock_mono_ms();
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    look_for_parent(d);
    jobq__results_read(desk);
    jobq__results_deaths(desk);
    jobq__control_tick(desk);
    jobq__desk_situation(desk);
    jobq__room_look(desk);
    jobq__posts_deliver(desk); /* before jobs: one of them may take its process with it */
    if (desk->keys_wanted > 0)
        jobq__told_unwant_keys(desk);
    if (is_giving(desk) && !jobq__desk_is_waiting_out(desk)) {
        jobq__give(desk);
        jobq__room_look(desk);
    }
    set_linger(d);
    jobq__desk_situation(desk);
    jobq__delicate_situation(desk);
    if (desk->acquit || (desk->list_changed && desk->now_ms - desk->last_renew_ms >= 1000))
        desk->s.renew_at_ms = desk->now_ms;
}

static void publish(const jobq__desk *desk)
{
    const bool up = desk->renewed && desk->s.reserve_failures == 0, ready = is_serving(desk) && up;
    const bool is_new = up && !atomic_load(&desk->words->up);

    if (is_new)
        atomic_store(&desk->words->up, 1);
    if ((jobq__ready_set(desk->worker, ready) && ready) || is_new)
        jobq__fd_ring(desk->worker->shared.master_bell[1]); /* it may have to be passed on */
    atomic_store_explicit(&desk->words->out, (uint32_t)desk->out, memory_order_relaxed);
}

static void call_store(dispatcher *d, const jobq__step *step)
{
    jobq__desk *desk = d->desk;

    jobq__desk_call(desk, step, jobq__delicate_want_taken_back(desk));
    jobq__results_release(desk); /* also what `held` has answered for */
    if (step->exchange)
        d->unsettled_since_ms = 0;
}

static void carry_out(dispatcher *d, const jobq__step *step)
{
    jobq__desk *desk = d->desk;

    if (step->stop_reason) {
        jobq__desk_limits(desk, step);
        jobq__fd_ring(desk->worker->shared.master_bell[1]);
    }
    if (step->give_back) {
        jobq__give_take_back(desk);
        jobq__give_return_held(desk, 0);
    }
    call_store(d, step);
    if (step->give_up) {
        jobq__desk_limits(desk, step);
        jobq__desk_give_up(desk);
        jobq__results_release(desk);
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* One that is judged stays DEAD until the store has answered for its results. */
static bool is_freshly_dead(const jobq__seat *seat)
{
    return atomic_load(&seat->slot->state) == JOBQ__SLOT_DEAD &&
           (seat->out.count > 0 || seat->unsettled == 0);
}

/* May it be given jobs, or could it then, otherwise than when we looked? */
static bool is_otherwise(const jobq__seat *seat)
{
    const bool open = jobq__seat_is_open(seat);

    return open != (seat->open || seat->stuck || seat->standby || seat->vetoed) ||
           (open && (atomic_load(&seat->slot->vetoed) != 0) != seat->vetoed);
}

/* What rang, or would have rung, before we said that we sleep. */
static bool has_news(const dispatcher *d)
{
    const jobq__desk *desk = d->desk;

    if (atomic_load(&desk->words->stop) != d->stop_seen ||
        atomic_load(&desk->words->paused) != d->paused_seen)
        return true;
    for (size_t i = 0; i < desk->seat_count; i++) {
        const jobq__seat *seat = &desk->seats[i];

        if (atomic_load(&seat->slot->results.head) != seat->cursor || is_otherwise(seat) ||
            is_freshly_dead(seat))
            return true;
    }
    return false;
}

static void sleep_until(dispatcher *d, const jobq__step *step)
{
    jobq__desk *desk = d->desk;
    int bell = desk->worker->shared.dispatcher_bell[0];
    int fd = d->alarm_fd >= 0 && !desk->master_died ? d->alarm_fd : bell;
    int64_t wait_ms =
        fd == bell && step->wait_ms > PARENT_ASLEEP_MS ? PARENT_ASLEEP_MS : step->wait_ms;

    jobq__desk_beat(desk, wait_ms + jobq__desk_call_budget(desk));
    if (step->wait_store)
        jobq__desk_wait_store(desk, wait_ms, fd);
    else
        jobq__fd_wait(fd, wait_ms);
    jobq__fd_drain(bell);
}

static void wait_for_news(dispatcher *d, const jobq__step *step)
{
    jobq__desk *desk = d->desk;
    bool linger = desk->s.linger_until_ms > desk->now_ms;

    jobq__observer_tick(desk->observer, desk->now_ms);
    if (step->wait_ms == 0)
        return;
    atomic_store(&desk->words->dispatcher_sleeping, !linger);
    if (linger || !has_news(d))
        sleep_until(d, step);
    atomic_store(&desk->words->dispatcher_sleeping, 0);
}

/* True: it is over. */
static bool run_round(dispatcher *d)
{
    jobq__step step;

    d->stop_seen = atomic_load(&d->desk->words->stop);
    d->paused_seen = atomic_load(&d->desk->words->paused);
    look(d);
    jobq__step_decide(&d->desk->s, &step);
    carry_out(d, &step);
    publish(d->desk);
    if (step.finished || is_overdue(d))
        return true;
    wait_for_news(d, &step);
    return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void finish(jobq__desk *desk)
{
    jobq__words *words = desk->words;

    jobq__posts_deliver(desk);
    if (desk->renewed && desk->s.reserve_failures == 0) {
        jobq__told_book(desk);
        jobq__store_leave(desk->store, desk->id);
    }
    jobq__store_disconnect(desk->store);
    jobq__observer_free(desk->observer); /* writes what it has */
    jobq__ready_set(desk->worker, false);
    atomic_store(&words->settled, 1);
    for (size_t i = 0; i < desk->seat_count; i++) {
        atomic_store(&desk->seats[i].slot->leave, 1);
        jobq__slot_wake(desk->seats[i].slot);
    }
    jobq__fd_ring(desk->worker->shared.master_bell[1]);
}

_Noreturn void jobq__dispatcher_main(jobq_worker *worker, bool again, const int relay[4])
{
    dispatcher d = {.parent = worker->master_pid, .relay = relay};

    d.desk = begin(worker, again, relay);
    d.parent_seen_ms = d.desk->now_ms;
    d.alarm_fd = make_alarm(&worker->shared, d.parent);
    while (!run_round(&d))
        ;
    finish(d.desk);
    _exit(0);
}
