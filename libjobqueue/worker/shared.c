/* SPDX-License-Identifier: MIT
 *
 * Making and narrowing the shared mappings. Four of them, all made before the first fork:
 *
 *     words | slot 0 | slot 1 | ...        everybody (children: words and their own slot)
 *     big area 0 | big area 1 | ...        address space only until a body needs it
 *     result 0 | result 1 | ...            the same for results
 *     hand-outs                            master and dispatcher
 */
#include "worker/shared.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/error.h"

enum { HANDOUTS_PER_PROCESS = 1024, HANDOUTS_MIN = 64 };

static size_t whole_pages(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

static size_t words_size(void)
{
    return whole_pages(sizeof(jobq__words));
}

/* NULL with the error set; n 0 gives NULL without. */
static void *map(size_t n, const char *what)
{
    void *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        jobq__error_set(JOBQ_ENOMEM, "shared memory for %s (%zu bytes) could not be mapped: %s",
                        what, n, strerror(errno));
        return NULL;
    }
    return p;
}

static int open_bell(int fds[2], jobq__fd_identity *identity)
{
    if (jobq__fd_pipe(fds) != 0 || !jobq__fd_identify(fds[1], identity))
        return jobq__error_set(JOBQ_EIO, "a pipe could not be made: %s", strerror(errno));
    return 0;
}

static int open_slot_bells(jobq__shared *shared, uint32_t slots)
{
    shared->slot_bells = jobq__alloc(slots * sizeof(*shared->slot_bells));
    if (!shared->slot_bells)
        return jobq__error_nomem();
    for (uint32_t i = 0; i < slots; i++)
        shared->slot_bells[i][0] = shared->slot_bells[i][1] = -1;
    for (uint32_t i = 0; i < slots; i++)
        if (jobq__fd_pipe(shared->slot_bells[i]) != 0)
            return jobq__error_set(JOBQ_EIO, "a pipe could not be made: %s", strerror(errno));
    return 0;
}

static int map_pool(jobq__shared *shared, uint32_t processes, uint32_t seats, size_t max_body,
                    size_t max_outcome)
{
    const uint32_t slots = 2 * processes;
    const size_t handouts = (size_t)processes * (HANDOUTS_PER_PROCESS + 2 * (size_t)(seats - 1));

    shared->area_size = whole_pages(max_body);
    shared->handout_count = handouts < HANDOUTS_MIN ? HANDOUTS_MIN : handouts;
    shared->out_size = whole_pages(max_outcome);
    if (shared->area_size && !(shared->areas = map(shared->area_size * slots, "large bodies")))
        return JOBQ_ENOMEM;
    if (shared->out_size && !(shared->outs = map(shared->out_size * slots, "large results")))
        return JOBQ_ENOMEM;
    if (!(shared->handouts =
              map(whole_pages(shared->handout_count * sizeof(jobq__handout)), "hand-outs")))
        return JOBQ_ENOMEM;
    return seats > 1 ? open_slot_bells(shared, slots) : 0;
}

static void clear_slots(const jobq__shared *shared)
{
    for (uint32_t i = 0; i < shared->words->slot_count; i++) {
        jobq__slot *slot = jobq__slot_at(shared, i);

        slot->seats = shared->seats;
        slot->bell_fd = shared->slot_bells ? shared->slot_bells[i][1] : -1;
        jobq__slot_clear(slot);
    }
}

static int fill_shared(jobq__shared *shared, uint32_t processes, uint32_t seats, size_t max_body,
                       size_t max_outcome)
{
    const uint32_t slots = 2 * processes;
    int rc;

    shared->seats = seats;
    shared->slot_size = whole_pages(sizeof(jobq__slot) + 64 + JOBQ__JOB_RING + JOBQ__RESULT_RING +
                                    (seats - 1) * sizeof(jobq__run) + seats * sizeof(jobq__tell));
    shared->size = words_size() + slots * shared->slot_size;
    if (!(shared->words = map(shared->size, "slots")))
        return JOBQ_ENOMEM;
    shared->slots = (char *)shared->words + words_size();
    shared->words->processes = processes;
    shared->words->slot_count = slots;
    atomic_store(&shared->words->next_handout, 1);
    atomic_store(&shared->words->generation, -1);
    if ((rc = open_bell(shared->dispatcher_bell, &shared->dispatcher_bell_id)) < 0 ||
        (rc = open_bell(shared->master_bell, &shared->master_bell_id)) < 0)
        return rc;
    if (processes && (rc = map_pool(shared, processes, seats, max_body, max_outcome)) < 0)
        return rc;
    clear_slots(shared);
    return 0;
}

int jobq__shared_new(jobq__shared *shared, uint32_t processes, uint32_t seats, size_t max_body,
                     size_t max_outcome)
{
    jobq__shared fresh = {.dispatcher_bell = {-1, -1}, .master_bell = {-1, -1}};
    int rc = fill_shared(&fresh, processes, seats, max_body, max_outcome);

    if (rc < 0)
        jobq__shared_free(&fresh);
    else
        *shared = fresh;
    return rc;
}

static void close_bell(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    fds[0] = fds[1] = -1;
}

/* All but the i-th; slot_count: all. */
static void close_slot_bells(jobq__shared *shared, uint32_t i)
{
    for (uint32_t k = 0; shared->slot_bells && k < shared->words->slot_count; k++)
        if (k != i)
            close_bell(shared->slot_bells[k]);
}

void jobq__shared_free(jobq__shared *shared)
{
    if (shared->areas)
        munmap(shared->areas, shared->area_size * shared->words->slot_count);
    if (shared->outs)
        munmap(shared->outs, shared->out_size * shared->words->slot_count);
    if (shared->handouts)
        munmap(shared->handouts, whole_pages(shared->handout_count * sizeof(jobq__handout)));
    if (shared->words) {
        close_slot_bells(shared, shared->words->slot_count);
        munmap(shared->words, shared->size);
        close_bell(shared->dispatcher_bell);
        close_bell(shared->master_bell);
    }
    jobq__free(shared->slot_bells);
    memset(shared, 0, sizeof(*shared));
}

/* Unmaps all elements of an array but the i-th. */
static void unmap_others(char *base, size_t size, uint32_t count, uint32_t i)
{
    if (i > 0)
        munmap(base, size * i);
    if (i + 1 < count)
        munmap(base + size * (i + 1), size * (count - i - 1));
}

void jobq__shared_narrow(jobq__shared *shared, uint32_t slot)
{
    close_slot_bells(shared, slot);
    munmap(shared->handouts, whole_pages(shared->handout_count * sizeof(jobq__handout)));
    shared->handouts = NULL;
    unmap_others(shared->slots, shared->slot_size, shared->words->slot_count, slot);
    if (shared->areas)
        unmap_others(shared->areas, shared->area_size, shared->words->slot_count, slot);
    if (shared->outs)
        unmap_others(shared->outs, shared->out_size, shared->words->slot_count, slot);
}
