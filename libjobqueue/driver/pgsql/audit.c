/* SPDX-License-Identifier: MIT
 *
 * Does every job stand in exactly one state (rule F1)? First the jobs, in push order: each is
 * looked for in all places. Then the places: each must have its job behind it. A page is of bounded
 * length whatever the queue, and what it says of a job comes from one statement, so from one
 * moment.
 */
#include <stdio.h>
#include <string.h>

#include "driver/answers.h"
#include "driver/cursor.h"
#include "driver/pgsql/pgsql.h"
#include "util/error.h"

/* The first columns of each: the place, for the cursor ($3, $4, $5 hold the one before); is it of
 * the queue; the job's id and state. */
#define JOB_BEHIND "LEFT JOIN @.job j ON j.seq = l.seq "
#define IN_LINE(table)                                                 \
    "EXISTS (SELECT 1 FROM @." table " l WHERE l.queue = j.queue AND " \
    "l.rank = j.rank AND l.available_at = j.available_at AND l.seq = j.seq)"
#define IN_DELAYED                                                        \
    "(coalesce(j.follows, 0) <= 0 AND EXISTS (SELECT 1 FROM @.delayed l " \
    "WHERE l.due = j.available_at AND l.seq = j.seq))"
/* A follower waits for a key that somebody has. */
#define FOLLOWS                                                                  \
    "(j.follows > 0 AND EXISTS (SELECT 1 FROM @.delayed l "                      \
    "WHERE l.due = j.available_at + " PG_FAR_TEXT " AND l.seq = j.seq) AND "     \
    "EXISTS (SELECT 1 FROM @.job k WHERE k.seq = j.follows AND k.state = 0 AND " \
    "k.follows IS NULL AND k.follower = j.seq))"
#define HOLDERS                                                                       \
    "WITH h AS MATERIALIZED (SELECT x.seq, count(*) AS n, bool_or(w.key IS NULL) AS " \
    "ownerless FROM @.held x LEFT JOIN @.worker w ON w.key = x.worker GROUP BY x.seq) "
#define LINES IN_LINE("ready") ", " IN_LINE("taken")
#define JOBS                                                                                  \
    HOLDERS                                                                                   \
    "SELECT 0::bigint, 0::bigint, j.seq, j.queue = $1, j.id, j.state, " LINES ", " IN_DELAYED \
    ", " FOLLOWS ", "                                                                         \
    "coalesce(h.n, 0), coalesce(h.ownerless, false) "                                         \
    "FROM (SELECT * FROM @.job x WHERE x.seq > $5 AND $3 + $4 IS NOT NULL "                   \
    "ORDER BY x.seq LIMIT $2) j LEFT JOIN h ON h.seq = j.seq "                                \
    "ORDER BY j.seq"
#define LINE(table)                                                          \
    "SELECT l.rank::bigint, l.available_at, l.seq, true, j.id, j.state, "    \
    "j.state = 0 AND j.queue = l.queue AND j.rank = l.rank AND "             \
    "j.available_at = l.available_at "                                       \
    "FROM (SELECT * FROM @." table " x "                                     \
    "WHERE x.queue = $1 AND (x.rank, x.available_at, x.seq) > ($3, $4, $5) " \
    "ORDER BY x.rank, x.available_at, x.seq LIMIT $2) l " JOB_BEHIND         \
    "ORDER BY l.rank, l.available_at, l.seq"
#define DELAYED                                                                           \
    "SELECT 0::bigint, l.due, l.seq, l.queue = $1, j.id, j.state, "                       \
    "j.state = 0 AND j.queue = l.queue AND j.rank = l.rank AND l.due = j.available_at + " \
    "CASE WHEN j.follows > 0 THEN " PG_FAR_TEXT " ELSE 0 END "                            \
    "FROM (SELECT * FROM @.delayed x WHERE (x.due, x.seq) > ($4, $5) AND $3 = $3 "        \
    "ORDER BY x.due, x.seq LIMIT $2) l " JOB_BEHIND "ORDER BY l.due, l.seq"
#define HELD                                                                       \
    "SELECT 0::bigint, l.worker::bigint, l.seq, l.queue = $1, j.id, j.state, "     \
    "j.state = 0 AND j.queue = l.queue "                                           \
    "FROM (SELECT * FROM @.held x WHERE (x.worker, x.seq) > ($4, $5) AND $3 = $3 " \
    "ORDER BY x.worker, x.seq LIMIT $2) l " JOB_BEHIND "ORDER BY l.worker, l.seq"

enum { COLUMN_MINE = 3, COLUMN_ID, COLUMN_STATE, COLUMN_FIRST };
/* Of the jobs: the places, from COLUMN_FIRST on. */
enum { READY = COLUMN_FIRST, TAKEN, IN_TIME, FOLLOWER, WITH_WORKERS, OWNERLESS };

static const struct {
    const char *sql;
    pgsql_statement which;
    unsigned state; /* that the place stands for */
} phases[] = {{JOBS, ST_AUDIT, 0},
              {LINE("ready"), ST_AUDIT_READY, PG_READY},
              {LINE("taken"), ST_AUDIT_TAKEN, PG_READY},
              {DELAYED, ST_AUDIT_DELAYED, PG_DELAYED},
              {HELD, ST_AUDIT_HELD, PG_RESERVED}};
enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

typedef struct {
    jobq_audit *a;
    jobq_stray **link;
    size_t left; /* rows that may still be looked at */
} audit;

/* ---- judging --------------------------------------------------------------------------------- */

static int add_stray(audit *v, const PGresult *res, int row, unsigned states, bool ownerless)
{
    jobq_slice id;

    if (!jobq__pgsql_copy(res, row, COLUMN_ID, v->a->out, &id))
        return jobq__error_nomem();
    return jobq__stray_add(v->a, &v->link, id, jobq__pgsql_get(res, row, 2), states, ownerless);
}

static int judge_job(audit *v, const PGresult *res, int row)
{
    const int64_t state = jobq__pgsql_get(res, row, COLUMN_STATE);
    const int64_t held = jobq__pgsql_get(res, row, WITH_WORKERS);
    const bool ownerless = jobq__pgsql_get(res, row, OWNERLESS);
    const int64_t lines = jobq__pgsql_get(res, row, READY) + jobq__pgsql_get(res, row, TAKEN);
    const int64_t delays = jobq__pgsql_get(res, row, IN_TIME) + jobq__pgsql_get(res, row, FOLLOWER);
    unsigned states = state == 0 ? 0 : 1u << state;

    states |= lines ? 1u << PG_READY : 0;
    states |= delays ? 1u << PG_DELAYED : 0;
    states |= held ? 1u << PG_RESERVED : 0;
    if (ownerless || lines + delays + held + (state != 0) != 1)
        return add_stray(v, res, row, states, ownerless);
    for (int i = 0; i < 5; i++)
        v->a->seen[i] += states >> i & 1;
    return 0;
}

/* A place without its job, or not the one that its job should have. What both have is no news. */
static int judge_place(audit *v, const PGresult *res, int row, unsigned state)
{
    const bool has_job = !PQgetisnull(res, row, COLUMN_ID);
    const int64_t job_state = jobq__pgsql_get(res, row, COLUMN_STATE);

    if (has_job && jobq__pgsql_get(res, row, COLUMN_FIRST))
        return 0;
    return add_stray(v, res, row, 1u << state | (has_job && job_state != 0 ? 1u << job_state : 0),
                     false);
}

static int judge(audit *v, const PGresult *res, int row, int64_t phase)
{
    if (!jobq__pgsql_get(res, row, COLUMN_MINE))
        return 0;
    return phase == 0 ? judge_job(v, res, row) : judge_place(v, res, row, phases[phase].state);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* The cursor's first number holds the phase, too. */
enum { PHASE = 100 };

static void begin_phase(jobq__cursor *cursor, int64_t phase)
{
    *cursor = (jobq__cursor){true, {phase * PHASE, -1, -1}};
}

static int judge_rows(audit *v, const PGresult *res, int64_t phase, jobq__cursor *cursor)
{
    int rc = 0;

    for (int row = 0; row < PQntuples(res) && rc == 0; row++) {
        v->left--;
        cursor->part[0] = phase * PHASE + jobq__pgsql_get(res, row, 0) + 1;
        cursor->part[1] = jobq__pgsql_get(res, row, 1);
        cursor->part[2] = jobq__pgsql_get(res, row, 2);
        rc = judge(v, res, row, phase);
    }
    return rc;
}

/* Looks at up to v->left rows of the phase that the cursor names, and moves it. */
static int look(pgsql_store *store, audit *v, jobq__cursor *cursor)
{
    const int64_t phase = cursor->part[0] / PHASE;
    pgsql_params p = {0};
    PGresult *res;
    int rc;

    jobq__pgsql_text(&p, v->a->queue);
    jobq__pgsql_int(&p, (int64_t)v->left);
    jobq__pgsql_int(&p, cursor->part[0] % PHASE - 1);
    jobq__pgsql_int(&p, cursor->part[1]);
    jobq__pgsql_int(&p, cursor->part[2]);
    rc = jobq__pgsql_run(store, phases[phase].which, phases[phase].sql, &p, false, &res);
    if (rc < 0)
        return rc;
    rc = judge_rows(v, res, phase, cursor);
    PQclear(res);
    if (rc == 0 && v->left > 0)
        begin_phase(cursor, phase + 1);
    return rc;
}

static int audit_page(pgsql_store *store, jobq_audit *a)
{
    audit v = {a, &a->strays, a->limit};
    jobq__cursor cursor;
    int rc = jobq__cursor_read(a->after, &cursor);

    if (rc == 0 && cursor.set && (cursor.part[0] < 0 || cursor.part[0] >= (int64_t)PHASES * PHASE))
        rc = jobq__refuse_cursor();
    if (rc < 0)
        return rc;
    if (!cursor.set)
        begin_phase(&cursor, 0);
    while (rc == 0 && v.left > 0 && cursor.part[0] / PHASE < PHASES)
        rc = look(store, &v, &cursor);
    if (rc == 0 && cursor.part[0] / PHASE < PHASES)
        rc = jobq__cursor_write(cursor.part, a->out, &a->next);
    return rc;
}

int jobq__pgsql_audit(void *handle, jobq_audit *a)
{
    pgsql_store *store = handle;
    int rc = jobq__pgsql_enter(store, false);

    if (rc < 0)
        return rc;
    a->strays = NULL;
    a->next = jobq__slice(NULL, 0);
    memset(a->seen, 0, sizeof(a->seen));
    return jobq__pgsql_leave(store, audit_page(store, a));
}
