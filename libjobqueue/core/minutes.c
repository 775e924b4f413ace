/* SPDX-License-Identifier: MIT
 *
 * Counts per queue and minute on their way to the store. On the path of a job this is one
 * comparison and a few additions: memory is asked for when a queue or a minute is new.
 */
#include "core/minutes.h"

#include <string.h>

#include "util/alloc.h"
#include "util/once.h"

enum {
    MINUTE_MS = 60000,
    KEPT_MINUTES = 24 * 60,
    CELLS_MAX = 2048,
    CELLS_FIRST = 16,
    BOOK_MOST = 256, /* cells of one write; the others a second later */
    BOOK_MS = 1000
};

/* ---- cells ----------------------------------------------------------------------------------- */

static bool is_cell(const jobq__tally *t, size_t i, jobq_slice queue, int64_t minute)
{
    return i < t->count && t->cells[i].minute == minute &&
           jobq__slice_equal(t->cells[i].queue, queue);
}

static bool grow(jobq__tally *t)
{
    const size_t room = t->room ? t->room * 2 : CELLS_FIRST;
    jobq_minute *cells;

    if (t->count < t->room)
        return true;
    cells = t->count < CELLS_MAX ? jobq__realloc(t->cells, room * sizeof(*cells)) : NULL;
    if (!cells)
        return false;
    t->cells = cells;
    t->room = room;
    return true;
}

static jobq_slice keep_name(jobq__tally *t, jobq_slice queue)
{
    for (size_t i = 0; i < t->count; i++)
        if (jobq__slice_equal(t->cells[i].queue, queue))
            return t->cells[i].queue;
    return jobq__slice(jobq__arena_copy(&t->names, queue.p, queue.n), queue.n);
}

static jobq_minute *add_cell(jobq__tally *t, jobq_slice queue, int64_t minute)
{
    const jobq_slice name = keep_name(t, queue);

    if (!name.p || !grow(t))
        return NULL;
    t->cells[t->count] = (jobq_minute){.queue = name, .minute = minute};
    return &t->cells[t->count++];
}

/* What a parent gathered before the fork is the parent's to tell. */
static void check_process(jobq__tally *t)
{
    const int64_t stamp = jobq__process_stamp();

    if (t->stamp == stamp)
        return;
    t->stamp = stamp;
    t->count = 0;
    t->at_ms = 0;
}

/* *last: where it probably is. NULL: not counted. */
static jobq_minute *find_cell(jobq__tally *t, size_t *last, jobq_slice queue, int64_t at_ms)
{
    const int64_t minute = at_ms / MINUTE_MS;
    jobq_minute *cell;

    check_process(t);
    if (is_cell(t, *last, queue, minute))
        return &t->cells[*last];
    if (jobq__queue_is_hidden(queue))
        return NULL;
    for (*last = t->count; *last > 0;)
        if (is_cell(t, --*last, queue, minute))
            return &t->cells[*last];
    cell = add_cell(t, queue, minute);
    *last = cell ? t->count - 1 : 0;
    return cell;
}

/* ---- counting -------------------------------------------------------------------------------- */

void jobq__tally_pushed(jobq__tally *t, jobq_slice queue, int64_t enqueued_at_ms, int64_t now_ms)
{
    jobq_minute *cell = now_ms - enqueued_at_ms < (int64_t)KEPT_MINUTES * MINUTE_MS
                            ? find_cell(t, &t->pushed, queue, enqueued_at_ms)
                            : NULL;

    if (cell)
        cell->counts[JOBQ_MINUTE_PUSHED]++;
}

/* What each ending counts as; an attempt that never began counts as nothing. */
enum { IS_DONE = 1, IS_FAILURE = 2, IS_CRASH = 4, IS_RELEASE = 8, IS_TIMEOUT = 16 };
static const uint8_t kinds[JOBQ_ENDINGS] = {
    [JOBQ_ENDED_DONE] = IS_DONE,
    [JOBQ_ENDED_FAILED] = IS_FAILURE,
    [JOBQ_ENDED_EXITED] = IS_FAILURE,
    [JOBQ_ENDED_TIMED_OUT] = IS_FAILURE | IS_TIMEOUT,
    [JOBQ_ENDED_CRASHED] = IS_CRASH,
    [JOBQ_ENDED_RELEASED] = IS_RELEASE,
    [JOBQ_ENDED_CLEANUP_FAILED] = IS_FAILURE,
    [JOBQ_ENDED_FAILED_BY_HANDLER] = IS_FAILURE,
    [JOBQ_ENDED_NOT_RETRYABLE] = IS_FAILURE,
};

static size_t bucket_of(int64_t ran_us)
{
    size_t i = 0;

    while (i + 1 < JOBQ_RUN_BUCKETS && ran_us > (int64_t)1000 << i)
        i++;
    return i;
}

void jobq__tally_ended(jobq__tally *t, jobq_slice queue, int64_t now_ms, jobq_ending ending,
                       const jobq__verdict *verdict, int64_t ran_us)
{
    const unsigned kind = kinds[ending];
    jobq_minute *cell = kind || ran_us >= 0 ? find_cell(t, &t->ended, queue, now_ms) : NULL;

    if (!cell)
        return;
    cell->counts[JOBQ_MINUTE_DONE] += kind == IS_DONE;
    cell->counts[JOBQ_MINUTE_FAILED] += (kind & IS_FAILURE) != 0;
    cell->counts[JOBQ_MINUTE_CRASHED] += kind == IS_CRASH;
    cell->counts[JOBQ_MINUTE_RELEASED] += kind == IS_RELEASE;
    cell->counts[JOBQ_MINUTE_TIMED_OUT] += (kind & IS_TIMEOUT) != 0;
    cell->counts[JOBQ_MINUTE_RETRIED] +=
        (kind & (IS_FAILURE | IS_CRASH)) && verdict->op == JOBQ_OP_BACK;
    if (ran_us >= 0)
        cell->run_ms[bucket_of(ran_us)]++;
}

/* ---- telling --------------------------------------------------------------------------------- */

int64_t jobq__tally_at(jobq__tally *t, int64_t mono_ms)
{
    check_process(t);
    if (t->count == 0)
        return 0;
    if (t->at_ms == 0)
        t->at_ms = mono_ms + BOOK_MS;
    return t->at_ms;
}

bool jobq__tally_is_due(jobq__tally *t, int64_t mono_ms)
{
    const int64_t at_ms = jobq__tally_at(t, mono_ms);

    return at_ms > 0 && mono_ms >= at_ms;
}

static void forget(jobq__tally *t, size_t n)
{
    t->count -= n;
    memmove(t->cells, t->cells + n, t->count * sizeof(*t->cells));
    if (t->count == 0)
        jobq__arena_reset(&t->names);
}

int jobq__tally_book(jobq__tally *t, jobq__store *store)
{
    size_t n;
    int rc;

    check_process(t);
    t->at_ms = 0;
    n = t->count < BOOK_MOST ? t->count : BOOK_MOST;
    if (n == 0)
        return 0;
    rc = jobq__store_book(store, t->cells, n);
    /* told twice would be worse than not at all */
    if (rc == 0 || rc == JOBQ_EUNKNOWN || rc == JOBQ_EPROTO || rc == JOBQ_EUNSUPPORTED)
        forget(t, n);
    return rc;
}

void jobq__tally_free(jobq__tally *t)
{
    jobq__free(t->cells);
    jobq__arena_free(&t->names);
    memset(t, 0, sizeof(*t));
}
