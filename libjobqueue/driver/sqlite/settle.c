/* SPDX-License-Identifier: MIT
 *
 * Settling: each settlement first takes its hand-out away, fenced by the token, and only then moves
 * the job.
 */
#include "driver/sqlite/sqlite.h"
#include "util/error.h"

#define UNHOLD "DELETE FROM jobqueue_held WHERE seq=?1 AND nonce=?2 AND worker=?3"
/* One that nothing hangs on; any other one. */
#define JOB_DROP "DELETE FROM jobqueue_job WHERE seq=?1 AND NOT traced AND unique_key IS NULL"
#define JOB_DROP_ANY "DELETE FROM jobqueue_job WHERE seq=?1"
#define ERROR_DROP "DELETE FROM jobqueue_error WHERE seq=?1"
#define HISTORY_DROP "DELETE FROM jobqueue_history WHERE seq=?1"
#define OUTCOME_DROP "DELETE FROM jobqueue_outcome WHERE seq=?1"
#define HOLDS "SELECT 1 FROM jobqueue_held WHERE seq=?1 AND nonce=?2 AND worker=?3"
#define KEY_FREE "UPDATE jobqueue_job SET key_state=1 WHERE seq=?1 AND " SQL_KEYED
#define OUTCOME_SET "INSERT OR REPLACE INTO jobqueue_outcome(seq, outcome) VALUES(?1, ?2)"
#define TRACE "UPDATE jobqueue_job SET traced=1 WHERE seq=?1 AND NOT traced"
#define BARE "UPDATE jobqueue_job SET body=x'' WHERE seq=?1"
#define JOB_KEEP                                                                              \
    "UPDATE jobqueue_job "                                                                    \
    "SET state=3, cancel=0, keep_until=?2, fence=fence+1, deliveries=deliveries+1, taken=0, " \
    "traced=max(traced, ?3) "                                                                 \
    "WHERE seq=?1"
#define COUNTERS                                                                                  \
    "failures=?2, crashes=?3, releases=?4, losses=?5, exceptions=?6, parks=?7, parked_since=?8, " \
    "taken=0, traced=max(traced, ?9), fence=fence+1, deliveries=deliveries+1"
#define JOB_BACK                                                                 \
    "UPDATE jobqueue_job "                                                       \
    "SET " COUNTERS ", available_at=CASE WHEN cancel THEN ?10 ELSE ?10+?11 END " \
    "WHERE seq=?1 "                                                              \
    "RETURNING cancel"
#define JOB_DEAD                                                                    \
    "UPDATE jobqueue_job "                                                          \
    "SET " COUNTERS ", died_at=?10, state=4, cancel=0, reason=?11, keep_until=?12 " \
    "WHERE seq=?1"
#define JOB_GIVE_BACK                                                     \
    "UPDATE jobqueue_job "                                                \
    "SET fence=fence+1, deliveries=deliveries+1, traced=max(traced, ?2) " \
    "WHERE seq=?1 "                                                       \
    "RETURNING taken"
#define LINE_UP                                                   \
    "INSERT INTO jobqueue_ready(queue, rank, available_at, seq) " \
    "SELECT queue, rank, available_at, seq FROM jobqueue_job WHERE seq=?1"
#define LINE_UP_TAKEN                                             \
    "INSERT INTO jobqueue_taken(queue, rank, available_at, seq) " \
    "SELECT queue, rank, available_at, seq FROM jobqueue_job WHERE seq=?1"
#define PUT_OFF                                            \
    "INSERT INTO jobqueue_delayed(due, seq, queue, rank) " \
    "SELECT available_at, seq, queue, rank FROM jobqueue_job WHERE seq=?1"
#define ERROR_SET "INSERT OR REPLACE INTO jobqueue_error(seq, error) VALUES(?1, ?2)"
#define HISTORY_ADD                                \
    "INSERT INTO jobqueue_history(seq, n, entry) " \
    "VALUES(?1, (SELECT ifnull(max(n), 0) + 1 FROM jobqueue_history WHERE seq=?1), ?2)"
#define HISTORY_CUT                 \
    "DELETE FROM jobqueue_history " \
    "WHERE seq=?1 AND n <= (SELECT max(n) FROM jobqueue_history WHERE seq=?1) - ?2"

/* First its key: a trigger gives it to the follower. */
static int drop_with_all(sqlite_store *store, int64_t seq)
{
    static const struct {
        sqlite_statement which;
        const char *sql;
    } steps[] = {{ST_KEY_FREE, KEY_FREE},
                 {ST_ERROR_DROP, ERROR_DROP},
                 {ST_HISTORY_DROP, HISTORY_DROP},
                 {ST_OUTCOME_DROP, OUTCOME_DROP},
                 {ST_JOB_DROP_ANY, JOB_DROP_ANY}};
    int rc = 0;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
        rc = jobq__sqlite_run_on(store, steps[i].which, steps[i].sql, seq);
    return rc;
}

/* Most have neither key nor traces. Triggers for the others would cost all of them a fifth of
 * their rate. */
int jobq__sqlite_drop_job(sqlite_store *store, int64_t seq)
{
    int rc = jobq__sqlite_run_on(store, ST_JOB_DROP, JOB_DROP, seq);

    return rc || sqlite3_changes(store->db) ? rc : drop_with_all(store, seq);
}

int jobq__sqlite_put_off(sqlite_store *store, int64_t seq)
{
    return jobq__sqlite_run_on(store, ST_PUT_OFF, PUT_OFF, seq);
}

int jobq__sqlite_line_up(sqlite_store *store, int64_t seq, bool taken)
{
    return taken ? jobq__sqlite_run_on(store, ST_LINE_UP_TAKEN, LINE_UP_TAKEN, seq)
                 : jobq__sqlite_run_on(store, ST_LINE_UP, LINE_UP, seq);
}

/* ---- settle ---------------------------------------------------------------------------------- */

static int set_bytes(sqlite_store *store, sqlite_statement which, const char *sql, int64_t seq,
                     jobq_slice bytes)
{
    sqlite3_stmt *stmt = bytes.p ? jobq__sqlite_use(store, which, sql) : NULL;

    if (!stmt)
        return bytes.p ? jobq__error_code() : 0;
    sqlite3_bind_int64(stmt, 1, seq);
    jobq__sqlite_bind_blob(stmt, 2, bytes);
    return jobq__sqlite_run(store, stmt);
}

int jobq__sqlite_add_history(sqlite_store *store, int64_t seq, jobq_slice entry)
{
    sqlite3_stmt *add = entry.p ? jobq__sqlite_use(store, ST_HISTORY_ADD, HISTORY_ADD) : NULL;
    sqlite3_stmt *cut = entry.p ? jobq__sqlite_use(store, ST_HISTORY_CUT, HISTORY_CUT) : NULL;
    int rc;

    if (!add || !cut)
        return entry.p ? jobq__error_code() : 0;
    sqlite3_bind_int64(add, 1, seq);
    jobq__sqlite_bind_blob(add, 2, entry);
    rc = jobq__sqlite_run(store, add);
    sqlite3_bind_int64(cut, 1, seq);
    sqlite3_bind_int(cut, 2, JOBQ__HISTORY_MAX);
    return rc ? rc : jobq__sqlite_run(store, cut);
}

static bool is_traced(const jobq_settlement *s)
{
    return s->error.p || s->history.p || s->outcome.p;
}

static int keep_done(sqlite_store *store, const jobq_settlement *s, int64_t seq, int64_t now_ms)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_JOB_KEEP, JOB_KEEP);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    sqlite3_bind_int64(stmt, 2, now_ms + s->keep_ms);
    sqlite3_bind_int(stmt, 3, is_traced(s));
    rc = jobq__sqlite_run(store, stmt);
    return rc == 0 && s->keep_bare ? jobq__sqlite_run_on(store, ST_BARE, BARE, seq) : rc;
}

static void bind_counters(sqlite3_stmt *stmt, const jobq_settlement *s, int64_t seq)
{
    const jobq_counters *c = &s->counters;
    const int64_t values[] = {seq,       c->failures,   c->crashes, c->releases,
                              c->losses, c->exceptions, c->parks,   c->parked_since_ms};

    for (int i = 0; i < 8; i++)
        sqlite3_bind_int64(stmt, i + 1, values[i]);
    sqlite3_bind_int(stmt, 9, is_traced(s));
}

static int put_back(sqlite_store *store, const jobq_settlement *s, int64_t seq, int64_t now_ms)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_JOB_BACK, JOB_BACK);
    bool later = s->delay_ms > 0;
    int rc;

    if (!stmt)
        return jobq__error_code();
    bind_counters(stmt, s, seq);
    sqlite3_bind_int64(stmt, 10, now_ms);
    sqlite3_bind_int64(stmt, 11, later ? s->delay_ms : 0);
    rc = jobq__sqlite_row(store, stmt);
    /* One that is to be cancelled is judged without delay. */
    later = later && !(rc > 0 && sqlite3_column_int(stmt, 0));
    sqlite3_reset(stmt);
    if (rc < 0)
        return rc;
    return later ? jobq__sqlite_put_off(store, seq) : jobq__sqlite_line_up(store, seq, false);
}

static int bury(sqlite_store *store, const jobq_settlement *s, int64_t seq, int64_t now_ms)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_JOB_DEAD, JOB_DEAD);

    if (!stmt)
        return jobq__error_code();
    bind_counters(stmt, s, seq);
    sqlite3_bind_int64(stmt, 10, now_ms);
    sqlite3_bind_int(stmt, 11, s->reason);
    if (s->keep_ms > 0)
        sqlite3_bind_int64(stmt, 12, now_ms + s->keep_ms);
    else
        sqlite3_bind_null(stmt, 12);
    return jobq__sqlite_run(store, stmt);
}

/* The job's place was kept by its available_at; one that was taken back stays marked so. */
static int give_back(sqlite_store *store, const jobq_settlement *s, int64_t seq)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_JOB_GIVE_BACK, JOB_GIVE_BACK);
    bool taken;
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, seq);
    sqlite3_bind_int(stmt, 2, is_traced(s));
    rc = jobq__sqlite_row(store, stmt);
    taken = rc > 0 && sqlite3_column_int(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : jobq__sqlite_line_up(store, seq, taken);
}

static int apply(sqlite_store *store, const jobq_settlement *s, int64_t now_ms, bool *ring)
{
    int64_t seq = (int64_t)s->token.word[0];

    switch (s->op) {
    case JOBQ_OP_DONE:
        return s->keep_ms > 0 ? keep_done(store, s, seq, now_ms)
                              : jobq__sqlite_drop_job(store, seq);
    case JOBQ_OP_BACK:
        *ring = true;
        return put_back(store, s, seq, now_ms);
    case JOBQ_OP_GIVE_BACK:
        *ring = true;
        return give_back(store, s, seq);
    default:
        return bury(store, s, seq, now_ms);
    }
}

static void bind_token(sqlite3_stmt *stmt, const jobq_settlement *s, int64_t worker)
{
    sqlite3_bind_int64(stmt, 1, (int64_t)s->token.word[0]);
    sqlite3_bind_int64(stmt, 2, (int64_t)(s->token.word[2]));
    sqlite3_bind_int64(stmt, 3, worker);
}

/* It stays with its holder: only what is known of it changes. */
static int note(sqlite_store *store, int64_t worker, jobq_settlement *s)
{
    const int64_t seq = (int64_t)s->token.word[0];
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_HOLDS, HOLDS);
    int rc;

    if (!stmt)
        return jobq__error_code();
    bind_token(stmt, s, worker);
    rc = jobq__sqlite_row(store, stmt);
    sqlite3_reset(stmt);
    s->result = rc > 0 ? 0 : JOBQ_ELEASE;
    if (rc <= 0)
        return rc;
    if (s->op == JOBQ_OP_FREE_KEY)
        return jobq__sqlite_run_on(store, ST_KEY_FREE, KEY_FREE, seq);
    rc = set_bytes(store, ST_OUTCOME_SET, OUTCOME_SET, seq, s->outcome);
    return rc ? rc : jobq__sqlite_run_on(store, ST_TRACE, TRACE, seq);
}

static int keep_texts(sqlite_store *store, const jobq_settlement *s, int64_t seq)
{
    int rc = set_bytes(store, ST_ERROR_SET, ERROR_SET, seq, s->error);

    rc = rc ? rc : set_bytes(store, ST_OUTCOME_SET, OUTCOME_SET, seq, s->outcome);
    return rc ? rc : jobq__sqlite_add_history(store, seq, s->history);
}

int jobq__sqlite_settle(sqlite_store *store, int64_t worker, jobq_settlement *s, int64_t now_ms,
                        bool *ring)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_UNHOLD, UNHOLD);
    int rc;

    if (s->op == JOBQ_OP_FREE_KEY || s->op == JOBQ_OP_PROGRESS)
        return note(store, worker, s);
    if (!stmt)
        return jobq__error_code();
    bind_token(stmt, s, worker);
    rc = jobq__sqlite_run(store, stmt);
    if (rc < 0)
        return rc;
    s->result = sqlite3_changes(store->db) == 1 ? 0 : JOBQ_ELEASE;
    if (s->result != 0)
        return 0;
    if (s->op != JOBQ_OP_DONE || s->keep_ms > 0)
        rc = keep_texts(store, s, (int64_t)s->token.word[0]);
    rc = rc ? rc : jobq__sqlite_add_follow(store, s->follow, now_ms);
    return rc ? rc : apply(store, s, now_ms, ring);
}
