/* SPDX-License-Identifier: MIT
 *
 * Counts, names of queues, and mending dead jobs.
 */
#include "driver/mysql/mysql.h"
#include "util/error.h"

#define JOBS "(SELECT COUNT(*) FROM jobqueue_job WHERE queue=?2 AND "
#define READY JOBS "place IN (0, 1))"
#define DUE JOBS "place=2 AND available_at<=" NOW_MS ")"
#define DELAYED JOBS "place=2 AND available_at>" NOW_MS ")"
#define HELD JOBS "place>=16)"
#define DEAD JOBS "place=4)"
#define HELD_BY "FROM jobqueue_worker w JOIN jobqueue_job j ON j.place=w.worker AND j.queue=?2 "
#define RESERVED "(SELECT COUNT(*) " HELD_BY "WHERE " LAPSE_OF_W ">" NOW_MS ")"
#define COUNTS "SELECT " NOW_MS ", " READY ", " DUE ", " DELAYED ", " RESERVED ", " HELD ", " DEAD
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
#define FIND_DEAD "SELECT seq FROM jobqueue_job WHERE id=?1 AND place=4"
#define KEY_HELD                                        \
    "SELECT 1 FROM jobqueue_job d JOIN jobqueue_job h " \
    "ON h.queue=d.queue AND h.unique_key=d.unique_key AND h.holds=1 WHERE d.seq=?1"
#define RETRY                                                                                      \
    "UPDATE jobqueue_job SET place=0, due=NULL, holds=IF(unique_key IS NULL, NULL, 1), "           \
    "reason=0, died_at=NULL, taken=0, cancel=0, deliveries=0, failures=0, crashes=0, releases=0, " \
    "losses=0, exceptions=0, parks=0, parked_since=0, base_at=" NOW_MS ", "                        \
    "available_at=base_at WHERE seq=?1"
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

static int find_dead(mysql_store *store, const jobq_mending *m, jobq_slice id, int64_t *seq_out,
                     int *result_out)
{
    const mysql_arg arg = bytes_arg(id);
    bool found = false, held = false;
    mysql_arg seq;
    int64_t ignored;
    int rc = jobq__mysql_ask(store, m->dry_run ? FIND_DEAD : FIND_DEAD " FOR UPDATE", &arg, &found,
                             seq_out);

    *result_out = found ? 0 : JOBQ_ENOTFOUND;
    if (rc < 0 || !found || m->what != JOBQ_MEND_RETRY)
        return rc;
    seq = number_arg(*seq_out);
    rc = jobq__mysql_ask(store, KEY_HELD, &seq, &held, &ignored);
    if (held)
        *result_out = JOBQ_EEXISTS;
    return rc;
}

static int mend_one(mysql_store *store, const jobq_mending *m, jobq_slice id, int *result_out)
{
    int64_t seq = 0, changed;
    int rc = find_dead(store, m, id, &seq, result_out);
    mysql_arg arg = number_arg(seq);

    if (rc < 0 || *result_out != 0 || m->dry_run)
        return rc;
    changed = jobq__mysql_run(store, m->what == JOBQ_MEND_RETRY ? RETRY : FORGET, &arg);
    if (changed == JOBQ_EEXISTS) { /* somebody was quicker with the key */
        *result_out = JOBQ_EEXISTS;
        jobq__error_clear();
        return 0;
    }
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
