/* SPDX-License-Identifier: MIT
 *
 * Batches: where drivers put the records they hand out. Everything lies in one arena, so a record
 * lives as long as its batch. Slices are small comparisons over bytes that belong to somebody else.
 */
#include <string.h>

#include "driver/driver.h"

jobq_record *jobq_batch_add(jobq_batch *batch)
{
    jobq_record *record = jobq__arena_alloc(&batch->arena, sizeof(*record));

    if (!record)
        return NULL;
    if (batch->last)
        batch->last->next = record;
    else
        batch->first = record;
    batch->last = record;
    batch->count++;
    return record;
}

jobq_worker_record *jobq_batch_add_worker(jobq_batch *batch)
{
    jobq_worker_record *record = jobq__arena_alloc(&batch->arena, sizeof(*record));

    if (!record)
        return NULL;
    if (batch->last_worker)
        batch->last_worker->next = record;
    else
        batch->first_worker = record;
    batch->last_worker = record;
    batch->count++;
    return record;
}

jobq_slice jobq_batch_copy(jobq_batch *batch, const void *p, size_t n)
{
    return jobq__slice(jobq__arena_copy(&batch->arena, p, n), n);
}

void *jobq_batch_alloc(jobq_batch *batch, size_t n)
{
    return jobq__arena_alloc(&batch->arena, n);
}

void jobq__batch_reset(jobq_batch *batch)
{
    jobq__arena arena;

    jobq__arena_reset(&batch->arena);
    arena = batch->arena;
    memset(batch, 0, sizeof(*batch));
    batch->arena = arena;
}

void jobq__batch_free(jobq_batch *batch)
{
    jobq__arena_free(&batch->arena);
    memset(batch, 0, sizeof(*batch));
}

jobq_slice jobq__slice_text(const char *s)
{
    return jobq__slice(s, s ? strlen(s) : 0);
}

bool jobq__slice_equal(jobq_slice a, jobq_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
