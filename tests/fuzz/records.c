/* SPDX-License-Identifier: MIT
 *
 * What stores keep beside a job, from anywhere: outcomes, errors, history entries, the bodies of
 * failed hooks. The first byte chooses. What is readable says the same after it was written and
 * read again.
 */
#include "core/follow.h"
#include "core/outcome.h"
#include "driver/driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void same(jobq_slice a, jobq_slice b)
{
    must(!a.p == !b.p && a.n == b.n);
    must(a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static jobq_slice bytes_of(const jobq__buf *out)
{
    return jobq__slice(out->p, out->n);
}

static void try_outcome(jobq_slice bytes, jobq__arena *arena, jobq__buf *out)
{
    jobq__outcome first, second;

    if (!jobq__outcome_read(bytes, arena, &first)) {
        must(!first.has_percent && !first.note.p && !first.body.p && !first.refusal.p);
        return;
    }
    jobq__outcome_write(out, &first);
    must(jobq__outcome_read(bytes_of(out), arena, &second));
    must(first.has_percent == second.has_percent && first.format == second.format);
    must(first.percent == second.percent || (isnan(first.percent) && isnan(second.percent)));
    same(first.note, second.note);
    same(first.body, second.body);
    same(first.refusal, second.refusal);
}

/* Writing tidies texts; what was tidied stays as it is. */
static void try_fault(jobq_slice bytes, jobq__arena *arena, jobq__buf *out)
{
    jobq__fault first, second, third;

    if (!jobq__fault_read(bytes, arena, &first)) {
        must(jobq__fault_is_empty(&first));
        return;
    }
    jobq__fault_write(out, &first);
    must(out->n <= JOBQ__FAULT_MAX && jobq__fault_read(bytes_of(out), arena, &second));
    must(!first.class_name.p == !second.class_name.p && !first.trace.p == !second.trace.p);
    jobq__fault_write(out, &second);
    must(jobq__fault_read(bytes_of(out), arena, &third));
    same(second.class_name, third.class_name);
    same(second.message, third.message);
    same(second.where, third.where);
    same(second.trace, third.trace);
}

static void try_entry(jobq_slice bytes, jobq__arena *arena, jobq__buf *out)
{
    jobq__entry first, second, third;

    if (!jobq__entry_read(bytes, arena, &first))
        return;
    jobq__entry_write(out, &first);
    must(jobq__entry_read(bytes_of(out), arena, &second));
    must(first.started_at_ms == second.started_at_ms && first.ended_at_ms == second.ended_at_ms);
    must(first.shared == second.shared);
    jobq__entry_write(out, &second);
    must(jobq__entry_read(bytes_of(out), arena, &third));
    same(second.worker, third.worker);
    same(second.outcome, third.outcome);
    same(second.message, third.message);
}

static void try_follow(jobq_slice bytes, jobq__arena *arena, jobq__buf *out)
{
    jobq__death death = {0}, again = {0};
    const jobq_push *push;

    (void)out;
    if (!jobq__follow_read(bytes, arena, &death))
        return;
    death.name = jobq__slice("n", 1);
    death.queue = jobq__slice("q", 1);
    death.header = bytes;
    push = jobq__follow_make(arena, &death);
    must(push != NULL && push->queue.n == 2);
    must(jobq__follow_read(push->body, arena, &again));
    must(again.died_at_ms == death.died_at_ms && again.reason == death.reason);
    same(jobq__follow_queue(push->queue), death.queue);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(jobq_slice, jobq__arena *, jobq__buf *) = {try_outcome, try_fault,
                                                                            try_entry, try_follow};
    jobq__arena arena = {0};
    jobq__buf out = {0};

    if (size > 0)
        tries[data[0] & 3](jobq__slice(data + 1, size - 1), &arena, &out);
    jobq__buf_free(&out);
    jobq__arena_free(&arena);
    return 0;
}
