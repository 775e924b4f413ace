/* SPDX-License-Identifier: MIT
 *
 * Counts, names of queues, and mending dead jobs.
 */
#include "driver/mysql/mysql.h"
#include "util/error.h"

#define JOBS "(SELECT COUNT(*) FROM jobqueue_job WHERE queue=?2 AND "
#define READY JOBS "place IN (0, 1))"
#define DUE JOBS "place=2 AND available_at<=" NOW_MS ")"
#define DELAYED JOBS "(place=5 OR (place=2 AND available_at>" NOW_MS ")))"
#define HELD JOBS "place>=16)"
#define DEAD JOBS "place=4)"
#define HELD_BY "FROM jobqueue_worker w JOIN jobqueue_job j ON j.place=w.worker AND j.queue=?2 "
#define RESERVED "(SELECT COUNT(*) " HELD_BY "WHERE " LAPSE_OF_W ">" NOW_MS ")"
#define CAPACITY "(SELECT capacity FROM jobqueue_limit WHERE queue=?2)"
#define COUNTS                                                                          \
    "SELECT " NOW_MS ", " READY ", " DUE ", " DELAYED ", " RESERVED ", " HELD ", " DEAD \
    ", " CAPACITY
/* The line is sorted by ranking first: its oldest is the first of one of the ten. */
#define FIRST_OF(place, ranking, more)                                    \
    "SELECT MIN(available_at) AS at FROM jobqueue_job WHERE place=" place \
    " AND queue=?2 AND ranking=" ranking more " UNION ALL "
#define FIRST_IN(place, more)  \
    FIRST_OF(place, "0", more) \
    FIRST_OF(place, "1", more) \
    FIRST_OF(place, "2", more) \
    FIRST_OF(place, "3", more) \
    FIRST_OF(place, "4", more) \
    FIRST_OF(place, "5", more) \
    FIRST_OF(place, "6", more) \
    FIRST_OF(place, "7", more) \
    FIRST_OF(place, "8", more) \
    FIRST_OF(place, "9", more)
#define IF_DUE " AND available_at<=" NOW_MS
#define FIRST_EXPIRED "SELECT MIN(j.available_at) " HELD_BY "WHERE " LAPSE_OF_W "<=" NOW_MS
#define OLDEST                                                                        \
    "SELECT MIN(at) FROM (" FIRST_IN("0", "") FIRST_IN("1", "") FIRST_IN("2", IF_DUE) \
        FIRST_EXPIRED ") o"
#define QUEUES                               \
    "SELECT name FROM jobqueue_queue UNION " \
    "SELECT DISTINCT queue FROM jobqueue_job ORDER BY name"
#define FIND_DEAD                                                \
    "SELECT seq, IFNULL(keep_until<=" NOW_MS ", 0), keep_until " \
    "FROM jobqueue_job WHERE id=?1 AND place=4"
#define UNKEEP "DELETE FROM jobqueue_keep WHERE keep_until=?2 AND seq=?1"
#define KEY_HELD                                        \
    "SELECT 1 FROM jobqueue_job d JOIN jobqueue_job h " \
    "ON h.queue=d.queue AND h.unique_key=d.unique_key AND h.holds=1 WHERE d.seq=?1"
#define RETRY                                                                                      \
    "UPDATE jobqueue_job SET place=0, due=NULL, holds=IF(unique_key IS NULL, NULL, 1), "           \
    "reason=0, died_at=NULL, taken=0, cancel=0, deliveries=0, failures=0, crashes=0, releases=0, " \
    "losses=0, exceptions=0, parks=0, parked_since=0, base_at=" NOW_MS ", "                        \
    "available_at=base_at, keep_until=NULL WHERE seq=?1"
#define FORGET "DELETE FROM jobqueue_job WHERE seq=?1"

/* ---- counts ---------------------------------------------------------------------------------- */

typedef struct {
    mysql_arg args[2]; /* start of the server, queue */
    jobq_counts counts;
} counting;

static int read_counts(mysql_store *store, counting *c)
{
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, COUNTS, c->args, &rows);

    if (rc == 0 && jobq__mysql_next(rows)) {
        c->counts.now_ms = jobq__mysql_number(rows, 0);
        c->counts.delayed = jobq__mysql_number(rows, 3);
        c->counts.reserved = jobq__mysql_number(rows, 4);
        c->counts.ready = jobq__mysql_number(rows, 1) + jobq__mysql_number(rows, 2) +
                          jobq__mysql_number(rows, 5) - c->counts.reserved;
        c->counts.dead = jobq__mysql_number(rows, 6);
        c->counts.capacity = jobq__mysql_number(rows, 7);
    }
    jobq__mysql_end(rows);
    return rc;
}

static int count(mysql_store *store, void *payload)
{
    counting *c = payload;
    bool found = false;
    int rc = jobq__mysql_started_at(store, &c->args[0].number);

    rc = rc ? rc : read_counts(store, c);
    if (rc == 0 && c->counts.ready > 0)
        rc = jobq__mysql_ask(store, OLDEST, c->args, &found, &c->counts.oldest_ready_at_ms);
    return rc;
}

int jobq__mysql_counts(void *handle, jobq_slice queue, jobq_counts *counts_out)
{
    counting c = {.args = {number_arg(0), bytes_arg(queue)}};
    int rc = jobq__mysql_do(handle, 0, count, &c);

    if (rc == 0)
        *counts_out = c.counts;
    return rc;
}

static int list_queues(mysql_store *store, void *payload)
{
    jobq_batch *out = payload;
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, QUEUES, NULL, &rows);

    while (rc == 0 && jobq__mysql_next(rows)) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !jobq__mysql_copy(rows, 0, out, &r->queue))
            rc = jobq__error_nomem();
    }
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_queues(void *handle, jobq_batch *out)
{
    return jobq__mysql_do(handle, 0, list_queues, out);
}

/* ---- mending --------------------------------------------------------------------------------- */

typedef struct {
    int64_t seq, keep_until;
} dead_job;

/* Sets what becomes of it. */
static int find_dead(mysql_store *store, const jobq_mending *m, jobq_slice id, dead_job *job,
                     int *result_out)
{
    const mysql_arg arg = bytes_arg(id);
    mysql_statement *rows = NULL;
    int rc =
        jobq__mysql_select(store, m->dry_run ? FIND_DEAD : FIND_DEAD " FOR UPDATE", &arg, &rows);

    *result_out = JOBQ_ENOTFOUND;
    if (rc == 0 && jobq__mysql_next(rows)) {
        const bool over = jobq__mysql_number(rows, 1) && m->what == JOBQ_MEND_RETRY;

        job->seq = jobq__mysql_number(rows, 0);
        job->keep_until = jobq__mysql_number(rows, 2);
        *result_out = over ? JOBQ_ELIMIT : 0;
    }
    jobq__mysql_end(rows);
    return rc;
}

static int judge_key(mysql_store *store, const dead_job *job, int *result_out)
{
    const mysql_arg seq = number_arg(job->seq);
    bool held = false;
    int64_t ignored;
    int rc = jobq__mysql_ask(store, KEY_HELD, &seq, &held, &ignored);

    if (held)
        *result_out = JOBQ_EEXISTS;
    return rc;
}

static int mend_one(mysql_store *store, const jobq_mending *m, jobq_slice id, int *result_out)
{
    const bool retry = m->what == JOBQ_MEND_RETRY;
    dead_job job = {0, 0};
    int rc = find_dead(store, m, id, &job, result_out);
    const mysql_arg args[] = {number_arg(job.seq), number_arg(job.keep_until)};
    int64_t changed;

    if (rc == 0 && *result_out == 0 && retry)
        rc = judge_key(store, &job, result_out);
    if (rc < 0 || *result_out != 0 || m->dry_run)
        return rc;
    changed = jobq__mysql_run(store, retry ? RETRY : FORGET, args);
    if (changed == JOBQ_EEXISTS) { /* somebody was quicker with the key */
        *result_out = JOBQ_EEXISTS;
        jobq__error_clear();
        return 0;
    }
    if (changed >= 0 && job.keep_until)
        changed = jobq__mysql_run(store, UNKEEP, args);
    return changed < 0 ? (int)changed : 0;
}

static int mend_all(mysql_store *store, void *payload)
{
    const jobq_mending *m = payload;
    int rc = 0;

    for (size_t i = 0; i < m->count && rc == 0; i++)
        rc = mend_one(store, m, m->ids[i], &m->results[i]);
    return rc;
}

int jobq__mysql_mend(void *handle, jobq_mending *m)
{
    return jobq__mysql_do(handle, m->dry_run ? 0 : MYSQL_TRANSACTION | MYSQL_DOUBTFUL, mend_all, m);
}
