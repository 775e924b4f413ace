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
#include "driver/sqlite/sqlite.h"
#include "util/error.h"

/* The first columns of each: the place, for the cursor (?3, ?4, ?5 hold the one before); is it of
 * the queue; the job's id. */
#define JOB_BEHIND "LEFT JOIN jobqueue_job j ON j.seq=l.seq "
#define IN_LINE(table)            \
    "EXISTS(SELECT 1 FROM " table \
    " l WHERE l.queue=j.queue AND l.rank=j.rank AND l.available_at=j.available_at AND l.seq=j.seq)"
#define IN_DELAYED \
    "EXISTS(SELECT 1 FROM jobqueue_delayed l WHERE l.due=j.available_at AND l.seq=j.seq)"
/* A follower waits for a key that somebody has. */
#define FOLLOWS                                                                    \
    "(j.state=0 AND j.key_state=2 AND EXISTS(SELECT 1 FROM jobqueue_job k "        \
    "WHERE k.queue=j.queue AND k.unique_key=j.unique_key AND k.unique_key IS NOT " \
    "NULL AND k.state=0 AND k.key_state<>1 AND k.key_state=0))"
/* Jobs of other queues are passed over: nothing is asked about them. */
#define OF_MINE(value) "CASE WHEN j.queue=?1 THEN " value " END"
#define IN_READY OF_MINE(IN_LINE("jobqueue_ready"))
#define IN_TAKEN OF_MINE(IN_LINE("jobqueue_taken"))
#define PLACES IN_READY ", " IN_TAKEN ", " OF_MINE(IN_DELAYED) ", " OF_MINE(FOLLOWS)
#define JOBS                                                      \
    "SELECT 0, 0, j.seq, j.queue=?1, j.id, j.state, " PLACES ", " \
    "h.seq IS NOT NULL, w.key IS NOT NULL "                       \
    "FROM jobqueue_job j "                                        \
    "LEFT JOIN jobqueue_held h ON h.seq=j.seq AND j.queue=?1 "    \
    "LEFT JOIN jobqueue_worker w ON w.key=h.worker "              \
    "WHERE j.seq>?5 "                                             \
    "ORDER BY j.seq LIMIT ?2"
#define LINE(table)                                                                      \
    "SELECT l.rank, l.available_at, l.seq, 1, j.id, j.state, "                           \
    "j.state=0 AND j.queue=l.queue AND j.rank=l.rank AND j.available_at=l.available_at " \
    "FROM " table " l " JOB_BEHIND                                                       \
    "WHERE l.queue=?1 AND (l.rank, l.available_at, l.seq) > (?3, ?4, ?5) "               \
    "ORDER BY l.rank, l.available_at, l.seq LIMIT ?2"
#define DELAYED                                                                 \
    "SELECT 0, l.due, l.seq, l.queue=?1, j.id, j.state, "                       \
    "j.state=0 AND j.queue=l.queue AND j.rank=l.rank AND j.available_at=l.due " \
    "FROM jobqueue_delayed l " JOB_BEHIND "WHERE (l.due, l.seq) > (?4, ?5) "    \
    "ORDER BY l.due, l.seq LIMIT ?2"
#define HELD                                             \
    "SELECT 0, 0, l.seq, l.queue=?1, j.id, j.state, "    \
    "j.state=0 AND j.queue=l.queue "                     \
    "FROM jobqueue_held l " JOB_BEHIND "WHERE l.seq>?5 " \
    "ORDER BY l.seq LIMIT ?2"

enum { COLUMN_MINE = 3, COLUMN_ID, COLUMN_STATE, COLUMN_FIRST };
/* Of the jobs: the places, from COLUMN_FIRST on. */
enum { READY = COLUMN_FIRST, TAKEN, IN_TIME, FOLLOWER, WITH_WORKER, HAS_WORKER };

typedef struct {
    jobq_audit *a;
    jobq_stray **link;
    size_t left; /* rows that may still be looked at */
} audit;

static const struct {
    const char *sql;
    sqlite_statement which;
    unsigned state; /* that the place stands for */
} phases[] = {{JOBS, ST_AUDIT_JOBS, 0},
              {LINE("jobqueue_ready"), ST_AUDIT_READY, SQL_READY},
              {LINE("jobqueue_taken"), ST_AUDIT_TAKEN, SQL_READY},
              {DELAYED, ST_AUDIT_DELAYED, SQL_DELAYED},
              {HELD, ST_AUDIT_HELD, SQL_RESERVED}};
enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

static int add_stray(audit *v, sqlite3_stmt *stmt, unsigned states, bool ownerless)
{
    jobq_slice id = {0};

    if (!jobq__sqlite_copy(stmt, COLUMN_ID, v->a->out, &id))
        return jobq__error_nomem();
    return jobq__stray_add(v->a, &v->link, id, sqlite3_column_int64(stmt, 2), states, ownerless);
}

static int judge_job(audit *v, sqlite3_stmt *stmt)
{
    const int state = sqlite3_column_int(stmt, COLUMN_STATE);
    const bool held = sqlite3_column_int(stmt, WITH_WORKER);
    const bool ownerless = held && !sqlite3_column_int(stmt, HAS_WORKER);
    const int lines = sqlite3_column_int(stmt, READY) + sqlite3_column_int(stmt, TAKEN);
    const int delays = sqlite3_column_int(stmt, IN_TIME) + sqlite3_column_int(stmt, FOLLOWER);
    unsigned states = state == SQL_LIVE ? 0 : 1u << state;

    states |= lines ? 1u << SQL_READY : 0;
    states |= delays ? 1u << SQL_DELAYED : 0;
    states |= held ? 1u << SQL_RESERVED : 0;
    if (ownerless || lines + delays + held + (state != SQL_LIVE) != 1)
        return add_stray(v, stmt, states, ownerless);
    for (int i = 0; i < 5; i++)
        v->a->seen[i] += states >> i & 1;
    return 0;
}

/* A place without its job, or not the one that its job should have. What both have is no news. */
static int judge_place(audit *v, sqlite3_stmt *stmt, unsigned state)
{
    const bool has_job = sqlite3_column_type(stmt, COLUMN_ID) != SQLITE_NULL;
    const int job_state = sqlite3_column_int(stmt, COLUMN_STATE);

    if (has_job && sqlite3_column_int(stmt, COLUMN_FIRST))
        return 0;
    return add_stray(v, stmt,
                     1u << state | (has_job && job_state != SQL_LIVE ? 1u << job_state : 0), false);
}

static int judge(audit *v, sqlite3_stmt *stmt, int phase)
{
    if (!sqlite3_column_int(stmt, COLUMN_MINE))
        return 0;
    return phase == 0 ? judge_job(v, stmt) : judge_place(v, stmt, phases[phase].state);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* The cursor's first number holds the phase, too. */
enum { PHASE = 100 };

static void begin_phase(jobq__cursor *cursor, int64_t phase)
{
    *cursor = (jobq__cursor){true, {phase * PHASE, -1, -1}};
}

/* Looks at up to v->left rows of the phase that the cursor names, and moves it. */
static int look(sqlite_store *store, audit *v, int64_t queue, jobq__cursor *cursor)
{
    const int64_t phase = cursor->part[0] / PHASE;
    sqlite3_stmt *stmt = jobq__sqlite_use(store, phases[phase].which, phases[phase].sql);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    sqlite3_bind_int64(stmt, 2, (int64_t)v->left);
    sqlite3_bind_int64(stmt, 3, cursor->part[0] % PHASE - 1);
    sqlite3_bind_int64(stmt, 4, cursor->part[1]);
    sqlite3_bind_int64(stmt, 5, cursor->part[2]);
    while ((rc = jobq__sqlite_row(store, stmt)) > 0) {
        v->left--;
        cursor->part[0] = phase * PHASE + sqlite3_column_int64(stmt, 0) + 1;
        cursor->part[1] = sqlite3_column_int64(stmt, 1);
        cursor->part[2] = sqlite3_column_int64(stmt, 2);
        rc = judge(v, stmt, (int)phase);
        if (rc < 0)
            break;
    }
    sqlite3_reset(stmt);
    if (rc == 0 && v->left > 0)
        begin_phase(cursor, phase + 1);
    return rc;
}

static int audit_page(sqlite_store *store, jobq_audit *a)
{
    audit v = {a, &a->strays, a->limit};
    jobq__cursor cursor;
    int64_t queue = 0;
    int rc = jobq__cursor_read(a->after, &cursor);

    if (rc == 0 && cursor.set && (cursor.part[0] < 0 || cursor.part[0] >= (int64_t)PHASES * PHASE))
        rc = jobq__refuse_cursor();
    rc = rc ? rc : jobq__sqlite_queue_key(store, a->queue, false, &queue);
    if (rc < 0 || queue == 0)
        return rc;
    if (!cursor.set)
        begin_phase(&cursor, 0);
    while (rc == 0 && v.left > 0 && cursor.part[0] / PHASE < PHASES)
        rc = look(store, &v, queue, &cursor);
    if (rc == 0 && cursor.part[0] / PHASE < PHASES)
        rc = jobq__cursor_write(cursor.part, a->out, &a->next);
    return rc;
}

int jobq__sqlite_audit(void *handle, jobq_audit *a)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    a->strays = NULL;
    a->next = jobq__slice(NULL, 0);
    memset(a->seen, 0, sizeof(a->seen));
    return jobq__sqlite_leave(store, audit_page(store, a));
}
