/* SPDX-License-Identifier: MIT
 *
 * Slots: the records of hand-outs, which child and dispatcher take from each other by
 * compare-and-swap, and the bell a child sleeps on. Also the worker's one-way stop switch.
 */
#include "worker/shared.h"

#include <linux/futex.h>
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

    memset((char *)slot + sizeof(slot->state), 0, sizeof(*slot) - sizeof(slot->state));
    set_ring(&slot->jobs, JOBQ__JOB_RING, start);
    set_ring(&slot->results, JOBQ__RESULT_RING, start + JOBQ__JOB_RING);
    atomic_store(&slot->state, JOBQ__SLOT_FREE);
}

void jobq__slot_wake(jobq__slot *slot)
{
    atomic_fetch_add(&slot->bell, 1);
    if (atomic_load(&slot->sleeping))
        syscall(SYS_futex, &slot->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void jobq__slot_sleep(jobq__slot *slot, uint32_t seen, int64_t timeout_ms)
{
    struct timespec limit = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000};

    atomic_store(&slot->sleeping, 1);
    /* The kernel compares once more, so a bell raised before this line is not slept through. */
    if (atomic_load(&slot->bell) == seen)
        syscall(SYS_futex, &slot->bell, FUTEX_WAIT, seen, timeout_ms < 0 ? NULL : &limit, NULL, 0);
    atomic_store(&slot->sleeping, 0);
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

void jobq__slot_return_area(jobq__slot *slot, char *area)
{
    const int64_t used = atomic_load(&slot->area_used);

    if (used > 0)
        madvise(area, (size_t)used, MADV_REMOVE);
    atomic_store(&slot->area_used, 0);
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
