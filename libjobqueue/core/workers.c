/* SPDX-License-Identifier: MIT
 *
 * The live workers of a store, as a list that outlives the call (rule N4).
 */
#include <string.h>

#include "core/inspect.h"
#include "util/alloc.h"
#include "util/error.h"

typedef struct {
    const char **items;
    size_t count;
} lines;

typedef struct {
    const jobq_worker_record *record;
    const char *id, *host, *label;
    lines queues, names;
} row;

struct jobq_workers {
    jobq_batch batch;
    row *rows;
    size_t count;
};

static int copy_text(jobq_workers *w, const char **out, jobq_slice text)
{
    *out = text.p ? jobq__arena_copy(&w->batch.arena, text.p, text.n) : NULL;
    return text.p && !*out ? jobq__error_nomem() : 0;
}

/* "host" or "host (name)": the store keeps them as one text, which people can read there, too. */
static int split_host(jobq_workers *w, row *r, jobq_slice text)
{
    const char *gap = text.p ? memchr(text.p, ' ', text.n) : NULL;
    const size_t host_n = gap ? (size_t)(gap - (const char *)text.p) : text.n;
    int rc = copy_text(w, &r->host, jobq__slice(text.p, host_n));

    if (!gap || text.n < host_n + 3)
        return rc;
    return rc ? rc : copy_text(w, &r->label, jobq__slice(gap + 2, text.n - host_n - 3));
}

/* "high\ndefault\n": each line ends in the copy with a NUL. */
static int split_lines(jobq_workers *w, lines *out, jobq_slice text)
{
    char *p = text.p ? jobq__arena_copy(&w->batch.arena, text.p, text.n) : NULL, *newline;
    size_t count = 0;

    if (!text.p)
        return 0;
    for (size_t i = 0; p && i < text.n; i++)
        count += p[i] == '\n';
    out->items = jobq__arena_alloc(&w->batch.arena, (count + 1) * sizeof(*out->items));
    if (!p || !out->items)
        return jobq__error_nomem();
    for (; (newline = strchr(p, '\n')) != NULL && out->count < count; p = newline + 1) {
        *newline = '\0';
        out->items[out->count++] = p;
    }
    return 0;
}

static int fill_row(jobq_workers *w, row *r, const jobq_worker_record *record)
{
    int rc;

    r->record = record;
    rc = copy_text(w, &r->id, record->id);
    rc = rc ? rc : split_host(w, r, record->host);
    rc = rc ? rc : split_lines(w, &r->queues, record->queues);
    return rc ? rc : split_lines(w, &r->names, record->names);
}

static int fill(jobq_workers *w)
{
    size_t n = 0;
    int rc = 0;

    for (const jobq_worker_record *r = w->batch.first_worker; r; r = r->next)
        n++;
    w->rows = jobq__zalloc((n ? n : 1) * sizeof(*w->rows));
    if (!w->rows)
        return jobq__error_nomem();
    for (const jobq_worker_record *r = w->batch.first_worker; r && rc == 0; r = r->next)
        rc = fill_row(w, &w->rows[w->count++], r);
    return rc;
}

int jobq_queue_workers(jobq_queue *queue, jobq_workers **workers_out)
{
    jobq_workers *w;
    int rc;

    jobq__error_clear();
    w = jobq__zalloc(sizeof(*w));
    if (!w)
        return jobq__error_nomem();
    rc = jobq__queue_note(queue, jobq__store_workers(queue->store, &w->batch));
    rc = rc < 0 ? rc : fill(w);
    if (rc < 0) {
        jobq_workers_free(w);
        return rc;
    }
    *workers_out = w;
    return 0;
}

size_t jobq_workers_count(const jobq_workers *workers)
{
    return workers ? workers->count : 0;
}

const char *jobq_workers_text(const jobq_workers *workers, size_t i, jobq_workers_text_field which)
{
    const row *r = i < jobq_workers_count(workers) ? &workers->rows[i] : NULL;

    if (!r)
        return NULL;
    return which == JOBQ_WORKERS_ID ? r->id : which == JOBQ_WORKERS_HOST ? r->host : r->label;
}

int64_t jobq_workers_number(const jobq_workers *workers, size_t i, jobq_workers_number_field which)
{
    const jobq_worker_record *r;

    if (i >= jobq_workers_count(workers))
        return 0;
    r = workers->rows[i].record;
    switch (which) {
    case JOBQ_WORKERS_PID:
        return r->pid;
    case JOBQ_WORKERS_PROCESSES:
        return r->processes;
    case JOBQ_WORKERS_STARTED_AT_MS:
        return r->started_at_ms;
    case JOBQ_WORKERS_ALIVE_UNTIL_MS:
        return r->alive_until_ms;
    case JOBQ_WORKERS_LEASE_MS:
        return r->lease_ms;
    case JOBQ_WORKERS_RUNNING:
        return r->running;
    case JOBQ_WORKERS_HELD:
        return r->held;
    }
    return 0;
}

static const char *line_at(const lines *l, size_t k)
{
    return k < l->count ? l->items[k] : NULL;
}

const char *jobq_workers_queue(const jobq_workers *workers, size_t i, size_t k)
{
    return i < jobq_workers_count(workers) ? line_at(&workers->rows[i].queues, k) : NULL;
}

const char *jobq_workers_name(const jobq_workers *workers, size_t i, size_t k)
{
    return i < jobq_workers_count(workers) ? line_at(&workers->rows[i].names, k) : NULL;
}

void jobq_workers_free(jobq_workers *workers)
{
    if (!workers)
        return;
    jobq__batch_free(&workers->batch);
    jobq__free(workers->rows);
    jobq__free(workers);
}
