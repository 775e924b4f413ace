/* SPDX-License-Identifier: MIT
 *
 * What a job in a child says of itself and does in the store (rules N7, O1): progress into the
 * slot, the outcome behind its result, and the connection for its own statements.
 *
 * That connection is opened for the first of them and closed when the job ends: handlers close
 * descriptors as they like (rule D7), and what stood in it would hold a server's place for nothing.
 * Before each use and before it is closed its descriptors are compared with what they were.
 */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"
#include "worker/child.h"

enum { FULL_LOOK_MS = 20, OUTCOME_KEPT = 65536 };

/* ---- progress -------------------------------------------------------------------------------- */

/* No system call: the dispatcher looks by itself while jobs are out. */
int jobq__child_progress(jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    struct jobq__child *child = worker->child;

    jobq__job_outcome(job, false, &child->outcome);
    if (child->outcome.n > 0 && child->outcome.n <= JOBQ__TELL_MAX)
        jobq__slot_tell_write(child->slot, job->seat, child->seats[job->seat].number,
                              child->outcome.p, child->outcome.n);
    return 0;
}

/* ---- the outcome ----------------------------------------------------------------------------- */

/* The place may hold an earlier one that the store has not answered for, in an outage for long.
 * False: everything is given up. */
static bool wait_for_place(const jobq_worker *worker)
{
    jobq__slot *slot = worker->child->slot;

    for (;;) {
        const uint32_t seen = atomic_load(&slot->bell);

        if (!atomic_load(&slot->out_of))
            return true;
        if (atomic_load(&worker->shared.words->settled))
            return false;
        jobq__child_tell_dispatcher(worker);
        jobq__slot_sleep(slot, seen, FULL_LOOK_MS);
        if (getppid() != worker->master_pid)
            _exit(1);
    }
}

static bool put_in_place(const jobq_worker *worker, uint64_t number, const jobq__buf *outcome)
{
    const jobq__shared *shared = &worker->shared;
    jobq__slot *slot = worker->child->slot;

    if (outcome->n > shared->out_size || !wait_for_place(worker))
        return false;
    atomic_store(&slot->out_n, (int64_t)outcome->n);
    memcpy(shared->outs + worker->slot * shared->out_size, outcome->p, outcome->n);
    atomic_store(&slot->out_of, number);
    return true;
}

void jobq__child_take_outcome(const jobq_worker *worker, const jobq_job *job,
                              jobq__result_message *result)
{
    struct jobq__child *child = worker->child;

    jobq__job_outcome(job, true, &child->outcome);
    result->outcome_n = (uint32_t)child->outcome.n;
    if (child->outcome.n <= JOBQ__RESULT_RING / 4)
        return;
    result->outcome_in_area = put_in_place(worker, result->handout, &child->outcome);
    if (!result->outcome_in_area)
        result->outcome_n = 0;
    if (child->outcome.cap > OUTCOME_KEPT)
        jobq__buf_free(&child->outcome);
}

/* ---- a connection for the job's own statements ----------------------------------------------- */

enum { FDS_MAX = 4096 };
typedef struct {
    uint64_t bits[FDS_MAX / 64];
} fd_list;

static void list_fds(fd_list *list)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;

    memset(list, 0, sizeof(*list));
    while (folder && (entry = readdir(folder))) {
        int64_t fd = -1;

        if (jobq__str_int(entry->d_name, strlen(entry->d_name), &fd) && fd > 2 && fd < FDS_MAX &&
            fd != dirfd(folder))
            list->bits[fd / 64] |= (uint64_t)1 << fd % 64;
    }
    if (folder)
        closedir(folder);
}

static bool is_listed(const fd_list *list, int fd)
{
    return list->bits[fd / 64] >> fd % 64 & 1;
}

static void note_fd(jobq__child_link *link, int fd)
{
    const size_t n = link->count;

    if (n < sizeof(link->fds) / sizeof(link->fds[0]) &&
        jobq__fd_identify(fd, &link->fds[n].identity))
        link->fds[link->count++].fd = fd;
}

/* Those that the call has opened, and those of before as they are now: it may have connected
 * anew. */
static void note_fds(jobq__child_link *link, const fd_list *before)
{
    const jobq__child_link old = *link;
    fd_list now;

    list_fds(&now);
    link->count = 0;
    for (size_t i = 0; i < old.count; i++)
        if (is_listed(&now, old.fds[i].fd))
            note_fd(link, old.fds[i].fd);
    for (int fd = 3; fd < FDS_MAX; fd++)
        if (is_listed(&now, fd) && !is_listed(before, fd))
            note_fd(link, fd);
}

static void forget_fds(jobq__child_link *link)
{
    link->own = false;
    link->count = 0;
}

static bool is_intact(const jobq__child_link *link)
{
    for (size_t i = 0; i < link->count; i++)
        if (!jobq__fd_is(link->fds[i].fd, &link->fds[i].identity))
            return false;
    return true;
}

/* Somebody closed them, and their numbers may be somebody's. What a file's store keeps beside them
 * in this process is of no use any more: the child is replaced. */
static void abandon(jobq_worker *worker)
{
    jobq__store *store = worker->queue->store;

    jobq__store_abandon(store);
    forget_fds(&worker->child->link);
    if (!(jobq__store_driver(store)->features & JOBQ_FEATURE_FILE))
        return;
    worker->child->link.spoiled = true;
    jobq__child_retire(worker, NULL, 0);
}

static bool is_open(const jobq_worker *worker)
{
    return jobq__store_is_open(worker->queue->store);
}

int jobq__child_reach(jobq_job *job, jobq__reach *r)
{
    jobq_worker *worker = job->giver;
    struct jobq__child *child = worker->child;
    jobq__child_link *link = &child->link;
    fd_list before;

    if (link->own && !is_open(worker)) /* the application has closed its handle */
        forget_fds(link);
    if (link->own && !is_intact(link))
        abandon(worker);
    if (link->spoiled)
        return jobq__error_set(JOBQ_EIO,
                               "job %s: the store's file was closed behind the library's back; its "
                               "process is replaced after this job",
                               job->id);
    r->store = worker->queue->store;
    r->worker = jobq__slice_text(worker->shared.words->worker_id);
    if (is_open(worker) && !link->own) /* the application's */
        return 0;
    list_fds(&before);
    link->own = true;
    link->users += !child->seats[job->seat].reached;
    child->seats[job->seat].reached = true;
    memcpy(link->before, before.bits, sizeof(before.bits));
    return 0;
}

void jobq__child_unreach(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    jobq__child_link *link = &worker->child->link;
    fd_list before;

    if (!link->own)
        return;
    memcpy(before.bits, link->before, sizeof(before.bits));
    note_fds(link, &before);
}

void jobq__child_leave_link(jobq_worker *worker, jobq__child_seat *seat)
{
    jobq__child_link *link = &worker->child->link;

    seat->reached = false;
    if (--link->users > 0 || !link->own)
        return;
    if (!is_open(worker) || is_intact(link))
        jobq__store_disconnect(worker->queue->store);
    else
        abandon(worker);
    forget_fds(link);
}
