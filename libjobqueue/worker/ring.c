/* SPDX-License-Identifier: MIT
 *
 * The rings of shared.h: one producer, one consumer, no lock. A message lies in one piece behind an
 * eight byte head; where the rest of the data is too short for it a mark sends the reader back to
 * the start.
 */
#include "worker/shared.h"

enum { HEAD = 8 };
#define WRAP UINT32_MAX /* the mark; an enum does not hold it */

static uint64_t padded(size_t n)
{
    return HEAD + (((uint64_t)n + 7) & ~(uint64_t)7);
}

static char *data_at(const jobq__ring *ring, char *base, uint64_t offset)
{
    return base + ring->offset + (offset & (ring->size - 1));
}

/* Bytes to skip so that `need` fits in one piece. */
static uint64_t skip_for(const jobq__ring *ring, uint64_t head, uint64_t need)
{
    uint64_t rest = ring->size - (head & (ring->size - 1));

    return rest < need ? rest : 0;
}

uint64_t jobq__ring_head(const jobq__ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed);
}

bool jobq__ring_fits(const jobq__ring *ring, uint64_t *head, size_t n)
{
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t need = padded(n);

    if (n > ring->size)
        return false;
    need += skip_for(ring, *head, need);
    if (ring->size - (*head - tail) < need)
        return false;
    *head += need;
    return true;
}

void *jobq__ring_reserve(jobq__ring *ring, char *base, size_t n)
{
    const uint64_t head = jobq__ring_head(ring), skip = skip_for(ring, head, padded(n));
    uint64_t end = head;

    if (!jobq__ring_fits(ring, &end, n))
        return NULL;
    if (skip)
        *(uint32_t *)(void *)data_at(ring, base, head) = WRAP;
    *(uint32_t *)(void *)data_at(ring, base, head + skip) = (uint32_t)n;
    return data_at(ring, base, head + skip) + HEAD;
}

void jobq__ring_publish(jobq__ring *ring, size_t n)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), need = padded(n);

    atomic_store_explicit(&ring->head, head + skip_for(ring, head, need) + need,
                          memory_order_release);
}

const void *jobq__ring_look(const jobq__ring *ring, const char *base, uint64_t *cursor,
                            size_t *n_out)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint64_t at = *cursor, position = at & (ring->size - 1);
    const char *data = base + ring->offset;
    uint32_t n;

    if (at == head || head - at > ring->size)
        return NULL;
    n = *(const uint32_t *)(const void *)(data + position);
    if (n == WRAP) {
        at += ring->size - position;
        position = 0;
        n = *(const uint32_t *)(const void *)data;
    }
    /* A handler gone wild may have written over its ring: what cannot be a message is the end. */
    if (head - at > ring->size || padded(n) > ring->size - position || padded(n) > head - at)
        return NULL;
    *cursor = at + padded(n);
    *n_out = n;
    return data + position + HEAD;
}

void jobq__ring_release(jobq__ring *ring, uint64_t cursor)
{
    atomic_store_explicit(&ring->tail, cursor, memory_order_release);
}

bool jobq__ring_is_empty(const jobq__ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_acquire) ==
           atomic_load_explicit(&ring->tail, memory_order_relaxed);
}
