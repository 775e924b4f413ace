/* SPDX-License-Identifier: MIT
 *
 * Slots: the records of hand-outs, which child and dispatcher take from each other by
 * compare-and-swap, and the bell a child sleeps on. Also the worker's one-way stop switch.
 */
#include "worker/shared.h"

#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void set_ring(jobq__ring *ring, uint32_t size, uint32_t offset)
{
    atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, 0, memory_order_relaxed);
    ring->size = size;
    ring->offset = offset;
}

void jobq__slot_clear(jobq__slot *slot)
{
    const uint32_t start = (uint32_t)((sizeof(jobq__slot) + 63) & ~(size_t)63);
    const size_t kept = offsetof(jobq__slot, started);

    memset((char *)slot + kept, 0, sizeof(*slot) - kept);
    set_ring(&slot->jobs, JOBQ__JOB_RING, start);
    set_ring(&slot->results, JOBQ__RESULT_RING, start + JOBQ__JOB_RING);
    for (uint32_t i = 1; i < slot->seats; i++)
        memset(jobq__slot_run(slot, i), 0, sizeof(jobq__run));
    atomic_store(&slot->state, JOBQ__SLOT_FREE);
}

jobq__run *jobq__slot_run(const jobq__slot *slot, uint32_t i)
{
    jobq__slot *mine = (jobq__slot *)slot;
    char *behind = jobq__slot_base(mine) + slot->results.offset + JOBQ__RESULT_RING;

    return i == 0 ? &mine->run : (jobq__run *)(void *)behind + (i - 1);
}

jobq__tell *jobq__slot_tell(const jobq__slot *slot, uint32_t i)
{
    return (jobq__tell *)(void *)jobq__slot_run(slot, slot->seats) + i;
}

static uint32_t used_seats(const jobq__slot *slot)
{
    const uint32_t used = atomic_load_explicit(&slot->used, memory_order_acquire);

    return used < slot->seats ? used : slot->seats;
}

jobq__run *jobq__slot_find(const jobq__slot *slot, uint64_t number)
{
    for (uint32_t i = 0; i < used_seats(slot); i++)
        if (atomic_load(&jobq__slot_run(slot, i)->number) == number)
            return jobq__slot_run(slot, i);
    return NULL;
}

uint32_t jobq__slot_running(const jobq__slot *slot)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < used_seats(slot); i++)
        n += atomic_load(&jobq__slot_run(slot, i)->number) != 0;
    return n;
}

uint64_t jobq__slot_oldest(const jobq__slot *slot)
{
    uint64_t oldest = 0;

    for (uint32_t i = 0; i < used_seats(slot); i++) {
        const uint64_t number = atomic_load(&jobq__slot_run(slot, i)->number);

        if (number && (!oldest || number < oldest))
            oldest = number;
    }
    return oldest;
}

void jobq__slot_wake(jobq__slot *slot)
{
    uint32_t by_fd = JOBQ__BY_FD;

    atomic_fetch_add(&slot->bell, 1);
    if (atomic_load(&slot->sleeping) == JOBQ__BY_FD &&
        atomic_compare_exchange_strong(&slot->sleeping, &by_fd, JOBQ__AWAKE))
        jobq__fd_ring(slot->bell_fd);
    else if (atomic_load(&slot->sleeping))
        syscall(SYS_futex, &slot->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void jobq__slot_sleep(jobq__slot *slot, uint32_t seen, int64_t timeout_ms)
{
    struct timespec limit = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000};

    atomic_store(&slot->sleeping, JOBQ__ASLEEP);
    /* The kernel compares once more, so a bell raised before this line is not slept through. */
    if (atomic_load(&slot->bell) == seen)
        syscall(SYS_futex, &slot->bell, FUTEX_WAIT, seen, timeout_ms < 0 ? NULL : &limit, NULL, 0);
    atomic_store(&slot->sleeping, JOBQ__AWAKE);
}

static bool move_record(jobq__slot *slot, uint64_t number, unsigned from, unsigned to)
{
    uint64_t before = jobq__record_value(number, from);

    return atomic_compare_exchange_strong(&slot->records[number % JOBQ__RECORDS], &before,
                                          jobq__record_value(number, to));
}

bool jobq__slot_begin(jobq__slot *slot, uint64_t number)
{
    return move_record(slot, number, JOBQ__GIVEN, JOBQ__RUNNING);
}

bool jobq__slot_revoke(jobq__slot *slot, uint64_t number)
{
    return move_record(slot, number, JOBQ__GIVEN, JOBQ__REVOKED);
}

/* Once the result is in the ring the dispatcher may have given the cell to a later hand-out, whose
 * record must stand. */
void jobq__slot_end(jobq__slot *slot, uint64_t number)
{
    move_record(slot, number, JOBQ__RUNNING, JOBQ__ENDED);
}

/* A cell that holds another number by now: that hand-out is long over. */
unsigned jobq__slot_record(const jobq__slot *slot, uint64_t number)
{
    uint64_t value = atomic_load(&slot->records[number % JOBQ__RECORDS]);

    return value >> 2 == number ? (unsigned)(value & 3) : JOBQ__ENDED;
}

void jobq__slot_mark(jobq__slot *slot, uint64_t number, unsigned mark)
{
    jobq__number *cell = &slot->marks[number % JOBQ__RECORDS];
    const uint64_t before = atomic_load(cell);

    atomic_store(cell, number << 3 | mark | (before >> 3 == number ? before & 7 : 0));
}

bool jobq__slot_is_marked(const jobq__slot *slot, uint64_t number, unsigned mark)
{
    const uint64_t value = atomic_load(&slot->marks[number % JOBQ__RECORDS]);

    return value >> 3 == number && value & mark;
}

void jobq__slot_return_area(jobq__slot *slot, char *area)
{
    const int64_t used = atomic_load(&slot->area_used);

    if (used > 0)
        madvise(area, (size_t)used, MADV_REMOVE);
    atomic_store(&slot->area_used, 0);
}

void jobq__slot_return_out(jobq__slot *slot, char *out)
{
    const int64_t used = atomic_load(&slot->out_n);

    if (used > 0)
        madvise(out, (size_t)used, MADV_REMOVE);
    atomic_store(&slot->out_n, 0);
    atomic_store(&slot->out_of, 0);
}

/* An odd turn that a dead child left behind is taken over.
 *
 * The first fence keeps the bytes behind the odd turn (a store's own order binds only what goes
 * before it), the last turn keeps them before itself. So a reader that copied any of the new bytes
 * finds, behind its own fence, at least the odd turn and throws the copy away; the copy may be torn
 * only when it is thrown away. */
void jobq__slot_tell_write(jobq__slot *slot, uint32_t i, uint64_t number, const void *p, size_t n)
{
    jobq__tell *tell = jobq__slot_tell(slot, i);
    const uint64_t turn = atomic_load(&tell->turn) | 1;

    atomic_store(&tell->turn, turn);
    atomic_thread_fence(memory_order_release);
    atomic_store(&tell->number, number);
    atomic_store(&tell->n, (uint32_t)n);
    memcpy(tell->bytes, p, n);
    atomic_store(&tell->turn, turn + 1);
    atomic_fetch_add(&slot->told, 1);
}

size_t jobq__slot_tell_read(const jobq__slot *slot, uint32_t i, uint64_t *number_out, void *out)
{
    const jobq__tell *tell = jobq__slot_tell(slot, i);
    const uint64_t turn = atomic_load(&tell->turn);
    const size_t n = atomic_load(&tell->n);

    if (turn % 2 || n > sizeof(tell->bytes))
        return 0;
    *number_out = atomic_load(&tell->number);
    memcpy(out, tell->bytes, n);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&tell->turn) == turn ? n : 0;
}

bool jobq__words_stop(jobq__words *words, uint32_t level, uint32_t reason, int64_t number)
{
    uint32_t none = JOBQ__STOP_NONE, now = atomic_load(&words->stop);

    if (reason != JOBQ__STOP_NONE &&
        atomic_compare_exchange_strong(&words->stop_reason, &none, reason))
        atomic_store(&words->stop_number, number);
    while (now < level)
        if (atomic_compare_exchange_weak(&words->stop, &now, level))
            return true;
    return false;
}
