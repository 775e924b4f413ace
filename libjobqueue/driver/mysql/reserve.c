/* SPDX-License-Identifier: MIT
 *
 * A reservation statement by statement: it reads the fronts of two lines (ready, taken back) past
 * what others have locked, merges them, and marks what it took by one statement. Large bodies are
 * fetched only for what was taken.
 */
#include "driver/mysql/reserve.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

enum { HINT_WORTH = 64 }; /* jobs of one claim from which on a hint is worth its while */

#define LINE(place, more)                                           \
    "SELECT " JOB_COLUMNS ", "                                      \
    "IF(OCTET_LENGTH(body)<=8192, body, NULL), OCTET_LENGTH(body) " \
    "FROM jobqueue_job FORCE INDEX (jobqueue_job_line) "            \
    "WHERE place=" place " AND queue=?1 " more                      \
    "ORDER BY ranking, available_at, seq LIMIT ?2 FOR UPDATE SKIP LOCKED"
/* Behind what was taken before, as long as nothing stands in the rankings before it (those are
 * looked up one by one: a range would be searched to its next live entry, wherever that is). */
#define PAST_HINT                                                                          \
    "AND ranking=?3 AND (available_at>?4 OR (available_at=?4 AND seq>?5)) AND NOT EXISTS(" \
    "SELECT 1 FROM jobqueue_job b WHERE b.place=0 AND b.queue=?1 AND b.ranking IN ({?})) "
#define READY LINE("0", "")
#define READY_PAST LINE("0", PAST_HINT)
#define TAKEN LINE("1", "")
/* The record stays until this is committed: it was alive when it was looked at, but we may have
 * stood still since (maintain.c sweeps old ones). */
#define MARK                                     \
    "UPDATE jobqueue_job FORCE INDEX (PRIMARY) " \
    "SET place=?1, nonce=?2+seq, fence=fence+1, deliveries=deliveries+1 WHERE "
#define ALIVE " AND EXISTS(SELECT 1 FROM jobqueue_worker w WHERE w.worker=?1 LOCK IN SHARE MODE)"
#define HOLD MARK "seq IN ({?})" ALIVE
/* Of jobs that stand side by side. The limit is how many there are: without it the row behind the
 * last one would be read and locked, too. */
#define HOLD_RUN MARK "seq BETWEEN ?3 AND ?4" ALIVE " ORDER BY seq LIMIT ?5"
#define BODIES "SELECT seq, body FROM jobqueue_job WHERE seq IN ({?})"

/* ---- reserve --------------------------------------------------------------------------------- */

/* One line's front while a reservation reads it. */
typedef struct {
    mysql_statement *rows;
    bool row;
    size_t taken;
} line;

static int open_line(mysql_store *store, line *l, const char *sql, jobq_slice queue, size_t limit)
{
    mysql_arg args[] = {bytes_arg(queue), number_arg((int64_t)limit)};
    int rc = limit ? jobq__mysql_select(store, sql, args, &l->rows) : 0;

    l->row = rc == 0 && limit && jobq__mysql_next(l->rows);
    return rc;
}

static int open_past(mysql_store *store, line *l, const mysql_hint *hint, jobq_slice queue,
                     size_t limit)
{
    const mysql_arg args[] = {bytes_arg(queue), number_arg((int64_t)limit),
                              number_arg(hint->ranking), number_arg(hint->at),
                              number_arg(hint->seq)};
    mysql_arg before[JOBQ__TOP_PRIORITY];
    int rc;

    for (int i = 0; i < hint->ranking; i++)
        before[i] = number_arg(i);
    rc = jobq__mysql_select_list(store, READY_PAST, args,
                                 (mysql_list){before, (size_t)hint->ranking}, &l->rows);
    l->row = rc == 0 && jobq__mysql_next(l->rows);
    return rc;
}

/* Under load from where the last claim ended, else, and when that gives nothing, from the start. */
static int open_ready(mysql_store *store, line *l, mysql_hint *hint, jobq_slice queue, size_t limit,
                      reservation *r)
{
    int rc;

    if (limit && jobq__mysql_is_hint_good(hint)) {
        rc = open_past(store, l, hint, queue, limit);
        r->left |= l->row;
        if (rc < 0 || l->row)
            return rc;
        jobq__mysql_end(l->rows);
        l->rows = NULL;
    }
    hint->began_us = jobq__clock_mono_us();
    return open_line(store, l, READY, queue, limit);
}

/* Moves the hint onto the last one taken, if there were enough. */
static void move_hint(mysql_hint *hint, const line *ready, const jobq_record *last)
{
    hint->set = ready->taken >= HINT_WORTH && last;
    if (!hint->set)
        return;
    hint->ranking = JOBQ__TOP_PRIORITY - last->priority;
    hint->at = last->available_at_ms;
    hint->seq = (int64_t)last->token.word[0];
}

static bool stands_before(const line *a, const line *b)
{
    static const unsigned int columns[] = {RANKING, AVAILABLE_AT, SEQ};

    for (int i = 0; i < 3; i++) {
        int64_t left = jobq__mysql_number(a->rows, columns[i]);
        int64_t right = jobq__mysql_number(b->rows, columns[i]);

        if (left != right)
            return left < right;
    }
    return true;
}

static bool read_job(const mysql_statement *rows, reservation *r, jobq_record *job)
{
    jobq_batch *out = r->x->out;

    job->priority = (uint8_t)(JOBQ__TOP_PRIORITY - jobq__mysql_number(rows, RANKING));
    job->available_at_ms = jobq__mysql_number(rows, AVAILABLE_AT);
    job->version = (int32_t)jobq__mysql_number(rows, VERSION);
    job->state = 2;
    job->cancel = (uint8_t)jobq__mysql_number(rows, CANCEL);
    jobq__mysql_read_counters(rows, COUNTERS, job);
    job->counters.deliveries++;
    job->fence++;
    job->token.word[0] = (uint64_t)jobq__mysql_number(rows, SEQ);
    job->token.word[1] = (uint64_t)job->fence;
    job->token.word[2] = (uint64_t)r->nonce + job->token.word[0];
    return jobq__mysql_copy(rows, ID, out, &job->id) &&
           jobq__mysql_copy(rows, NAME, out, &job->name) &&
           jobq__mysql_copy(rows, UNIQUE, out, &job->unique) &&
           jobq__mysql_copy(rows, HEADER, out, &job->header) &&
           jobq__mysql_copy(rows, BODY, out, &job->body);
}

int jobq__mysql_take(const mysql_statement *rows, bool taken_back, jobq_slice queue, reservation *r)
{
    jobq_record *job = jobq_batch_add(r->x->out);

    if (!job || !read_job(rows, r, job))
        return jobq__error_nomem();
    job->queue = queue;
    job->taken_back = taken_back;
    if (!job->body.p && !jobq__mysql_is_null(rows, SIZE))
        r->large[r->large_count++] = job;
    if (r->seqs)
        r->seqs[r->count] = number_arg((int64_t)job->token.word[0]);
    r->count++;
    r->bytes += (size_t)jobq__mysql_number(rows, SIZE);
    r->taken_back += taken_back;
    return 0;
}

static int take(line *l, bool taken_back, jobq_slice queue, reservation *r)
{
    int rc = jobq__mysql_take(l->rows, taken_back, queue, r);

    if (rc < 0)
        return rc;
    l->taken++;
    l->row = jobq__mysql_next(l->rows);
    return 0;
}

static bool has_room(const reservation *r)
{
    const jobq_exchange *x = r->x;

    return r->count < x->want && (r->count == 0 || x->want_bytes == 0 || r->bytes < x->want_bytes);
}

/* The two lines of a queue merged by place (rule C1). */
static int take_in_order(jobq_slice queue, line *ready, line *taken, mysql_hint *hint,
                         reservation *r)
{
    const jobq_record *last = NULL;
    int rc = 0;

    while (rc == 0 && (ready->row || taken->row) && has_room(r)) {
        bool back = taken->row && (!ready->row || stands_before(taken, ready));

        rc = take(back ? taken : ready, back, queue, r);
        last = rc == 0 && !back ? r->x->out->last : last;
    }
    r->left |= ready->row || taken->row;
    move_hint(hint, ready, last);
    return rc;
}

static int reserve_from(mysql_store *store, jobq_slice name, reservation *r)
{
    const jobq_exchange *x = r->x;
    size_t room = x->want - r->count;
    size_t back = x->want_taken_back > r->taken_back ? x->want_taken_back - r->taken_back : 0;
    mysql_hint *hint = jobq__mysql_hint(store, name);
    line ready = {0}, taken = {0};
    jobq_slice queue = jobq_batch_copy(x->out, name.p, name.n);
    int rc = queue.p ? 0 : jobq__error_nomem();

    if (rc == 0 && r->state->any_taken)
        rc = open_line(store, &taken, TAKEN, name, back < room ? back : room);
    if (rc == 0)
        rc = open_ready(store, &ready, hint, name, room, r);
    if (rc == 0)
        rc = take_in_order(queue, &ready, &taken, hint, r);
    jobq__mysql_end(ready.rows);
    jobq__mysql_end(taken.rows);
    return rc == 0 && ready.taken + taken.taken ? jobq__mysql_know_queue(store, name) : rc;
}

static int fetch_bodies(mysql_store *store, const reservation *r)
{
    mysql_arg seqs[16];
    mysql_statement *rows = NULL;
    int rc = 0;

    for (size_t done = 0, n; done < r->large_count && rc == 0; done += n) {
        n = r->large_count - done < 16 ? r->large_count - done : 16;
        for (size_t i = 0; i < n; i++)
            seqs[i] = number_arg((int64_t)r->large[done + i]->token.word[0]);
        rc = jobq__mysql_select_list(store, BODIES, NULL, (mysql_list){seqs, n}, &rows);
        while (rc == 0 && jobq__mysql_next(rows))
            for (size_t i = 0; i < n; i++)
                if (seqs[i].number == jobq__mysql_number(rows, 0) &&
                    !jobq__mysql_copy(rows, 1, r->x->out, &r->large[done + i]->body))
                    rc = jobq__error_nomem();
        jobq__mysql_end(rows);
        rows = NULL;
    }
    return rc;
}

/* What was locked is marked: each by its own seq, or from the first to the last one when there is
 * no other between them. */
static int64_t mark(mysql_store *store, const reservation *r)
{
    mysql_arg args[5] = {number_arg(r->state->worker), number_arg(r->nonce), r->seqs[0], r->seqs[0],
                         number_arg((int64_t)r->count)};
    int64_t *const first = &args[2].number, *const last = &args[3].number;

    for (size_t i = 1; i < r->count; i++) {
        *first = r->seqs[i].number < *first ? r->seqs[i].number : *first;
        *last = r->seqs[i].number > *last ? r->seqs[i].number : *last;
    }
    return *last - *first + 1 == args[4].number
               ? jobq__mysql_run(store, HOLD_RUN, args)
               : jobq__mysql_run_list(store, HOLD, args, (mysql_list){r->seqs, r->count},
                                      (mysql_list){NULL, 0});
}

static int hold(mysql_store *store, const reservation *r)
{
    int rc = jobq__mysql_keep_worker(store, r->x->worker, r->x->lease_ms, r->state);
    int64_t held;

    if (rc < 0)
        return rc;
    held = mark(store, r);
    if (held >= 0 && (size_t)held != r->count) {
        store->transient = held == 0; /* the worker's record is gone: from the start */
        return jobq__error_set_driver(JOBQ_EPROTO, JOBQ__RETRYABLE, "mysql", 0,
                                      "mysql: %zu jobs were locked, %lld held", r->count,
                                      (long long)held);
    }
    return held < 0 ? (int)held : 0;
}

static int reserve_all(mysql_store *store, reservation *r)
{
    int rc = 0;

    for (size_t i = 0; i < r->x->queue_count && rc == 0 && has_room(r); i++)
        rc = reserve_from(store, r->x->queues[i], r);
    r->left |= !has_room(r) || (r->state->any_taken && r->taken_back >= r->x->want_taken_back);
    if (rc == 0 && r->large_count)
        rc = fetch_bodies(store, r);
    return rc == 0 && r->count ? hold(store, r) : rc;
}

int64_t jobq__mysql_nonce(void)
{
    return (int64_t)(jobq__rng_u64() >> 2) + 1;
}

int jobq__mysql_reserve(mysql_store *store, jobq_exchange *x, mysql_state *state)
{
    reservation r = {.x = x, .state = state, .nonce = jobq__mysql_nonce()};
    int rc;

    r.seqs = jobq__alloc(x->want * sizeof(*r.seqs));
    r.large = jobq__alloc(x->want * sizeof(jobq_record *));
    rc = r.seqs && r.large ? reserve_all(store, &r) : jobq__error_nomem();
    x->exhausted = !r.left;
    store->claimed = r.count;
    jobq__free(r.seqs);
    jobq__free(r.large);
    return rc;
}
