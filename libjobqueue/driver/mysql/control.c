/* SPDX-License-Identifier: MIT
 *
 * What people ask of workers: pauses, the generation, cancelled jobs; and clearing a queue (rules
 * L1 to L3). Every change raises one number, which workers compare with the one they know. Its row
 * is always the last one that a transaction locks.
 */
#include "driver/mysql/mysql.h"
#include "util/buf.h"
#include "util/error.h"

#define SHOW                                                                                 \
    "SELECT " NOW_MS ", IFNULL(c.control, 0), IFNULL(c.generation, 0), p.queue, p.until_at " \
    "FROM (SELECT 1 AS one) o LEFT JOIN jobqueue_control c ON c.one=1 "                      \
    "LEFT JOIN jobqueue_pause p ON p.until_at=0 OR p.until_at>" NOW_MS " ORDER BY p.queue"
enum { NOW, CONTROL, GENERATION, QUEUE, UNTIL };
#define PAUSE                                                                             \
    "INSERT INTO jobqueue_pause(queue, until_at) VALUES(?1, IF(?2>0, " NOW_MS "+?2, 0)) " \
    "ON DUPLICATE KEY UPDATE until_at=IF(?2>0, " NOW_MS "+?2, 0)"
#define RESUME "DELETE FROM jobqueue_pause WHERE queue=?1"
#define RAISE(more)                                                                  \
    "INSERT INTO jobqueue_control(one, control, generation) VALUES(1, 1, " more ") " \
    "ON DUPLICATE KEY UPDATE control=control+1, generation=generation+" more
#define CHANGED RAISE("0")
#define RESTART RAISE("1")
#define FIND                                                                                 \
    "SELECT seq, place, history, IF(followed, queue, NULL), IF(followed, unique_key, NULL) " \
    "FROM jobqueue_job WHERE id=?1 AND (place<=2 OR place=5 OR place>=16) FOR UPDATE"
#define BURY \
    "UPDATE jobqueue_job SET " DIES("?2", "?5") ", history=IF(?3, ?4, history) WHERE seq=?1"
#define NOTE "UPDATE jobqueue_job SET cancel=GREATEST(cancel, ?2) WHERE seq=?1"
/* What somebody has locked is being taken, or changed by him. */
#define WAITING(place)                                                                 \
    "SELECT seq, IF(followed, unique_key, NULL) "                                      \
    "FROM jobqueue_job FORCE INDEX (jobqueue_job_line) "                               \
    "WHERE place=" place " AND queue=?1 ORDER BY ranking, available_at, seq LIMIT ?2 " \
    "FOR UPDATE SKIP LOCKED"
#define DROP "DELETE j FROM jobqueue_job j FORCE INDEX (PRIMARY) WHERE seq IN ({?})"

/* ---- pauses and the generation --------------------------------------------------------------- */

static int read_pause(const mysql_statement *rows, jobq_batch *out, jobq_pause ***link)
{
    jobq_pause *pause = jobq_batch_alloc(out, sizeof(*pause));

    if (!pause)
        return jobq__error_nomem();
    if (jobq__mysql_length(rows, QUEUE) > 0 && !jobq__mysql_copy(rows, QUEUE, out, &pause->queue))
        return jobq__error_nomem();
    pause->until_ms = jobq__mysql_number(rows, UNTIL);
    **link = pause;
    *link = &pause->next;
    return 0;
}

static int show(mysql_store *store, jobq_control *c)
{
    mysql_statement *rows = NULL;
    jobq_pause *first = NULL, **link = &first;
    int rc = jobq__mysql_select(store, SHOW, NULL, &rows);

    while (rc == 0 && jobq__mysql_next(rows)) {
        c->now_ms = jobq__mysql_number(rows, NOW);
        c->control = jobq__mysql_number(rows, CONTROL);
        c->generation = jobq__mysql_number(rows, GENERATION);
        if (!jobq__mysql_is_null(rows, QUEUE))
            rc = read_pause(rows, c->out, &link);
    }
    jobq__mysql_end(rows);
    if (rc == 0)
        c->pauses = first;
    return rc;
}

static int run_control(mysql_store *store, void *payload)
{
    jobq_control *c = payload;
    /* An empty name stands for all queues. */
    const mysql_arg args[] = {bytes_arg(c->queue.p ? c->queue : jobq__slice("", 0)),
                              number_arg(c->ttl_ms)};
    int64_t rc = 0;

    if (c->what == JOBQ_CONTROL_PAUSE)
        rc = jobq__mysql_run(store, PAUSE, args);
    else if (c->what == JOBQ_CONTROL_RESUME)
        rc = jobq__mysql_run(store, RESUME, args);
    if (rc >= 0 && c->what != JOBQ_CONTROL_READ)
        rc = jobq__mysql_run(store, c->what == JOBQ_CONTROL_RESTART ? RESTART : CHANGED, NULL);
    return rc < 0 ? (int)rc : show(store, c);
}

int jobq__mysql_control(void *handle, jobq_control *c)
{
    int how = c->what == JOBQ_CONTROL_READ ? 0 : MYSQL_TRANSACTION | MYSQL_DOUBTFUL;

    return jobq__mysql_do(handle, how, run_control, c);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t seq, place;
    jobq__buf history;
    jobq_batch texts;
    jobq_slice queue, key; /* where somebody waits for its key */
} waiting_job;

static int bury(mysql_store *store, const jobq_cancelling *c, const waiting_job *job)
{
    const mysql_arg args[] = {
        number_arg(job->seq), number_arg(c->reason), number_arg(c->history.p != NULL),
        bytes_arg(jobq__slice(job->history.n ? job->history.p : NULL, job->history.n)),
        number_arg(c->keep_ms)};
    int64_t ignored = 0, rc = jobq__mysql_run(store, BURY, args);

    if (rc >= 0 && c->keep_ms > 0)
        rc = jobq__mysql_note_keep(store, job->seq);
    if (rc >= 0 && job->key.p)
        rc = jobq__mysql_pass_key(store, job->queue, job->key, &ignored);
    return rc < 0 ? (int)rc : jobq__mysql_push_follow(store, c->follow);
}

static int note(mysql_store *store, const jobq_cancelling *c, int64_t seq)
{
    const mysql_arg args[] = {number_arg(seq),
                              number_arg(c->hard ? JOBQ_CANCEL_HARD : JOBQ_CANCEL_SOFT)};
    int64_t rc = jobq__mysql_run(store, NOTE, args);

    if (rc >= 0)
        rc = jobq__mysql_run(store, CHANGED, NULL);
    return rc < 0 ? (int)rc : 0;
}

/* 1 found and locked, 0 not. */
static int find_alive(mysql_store *store, const jobq_cancelling *c, waiting_job *job)
{
    const mysql_arg id = bytes_arg(c->id);
    mysql_statement *rows = NULL;
    jobq_slice history = {NULL, 0};
    int rc = jobq__mysql_select(store, FIND, &id, &rows);

    if (rc == 0 && jobq__mysql_next(rows)) {
        rc = 1;
        job->seq = jobq__mysql_number(rows, 0);
        job->place = jobq__mysql_number(rows, 1);
        if (!jobq__mysql_copy(rows, 2, &job->texts, &history) ||
            !jobq__mysql_copy(rows, 3, &job->texts, &job->queue) ||
            !jobq__mysql_copy(rows, 4, &job->texts, &job->key) ||
            (c->history.p && !jobq__mysql_add_history(history, c->history, &job->history)))
            rc = jobq__error_nomem();
    }
    jobq__mysql_end(rows);
    return rc;
}

static int cancel(mysql_store *store, void *payload)
{
    jobq_cancelling *c = payload;
    waiting_job job = {0};
    int rc = find_alive(store, c, &job);

    c->result = rc > 0 ? 0 : JOBQ_ENOTFOUND;
    if (rc > 0 && job.place >= PLACE_WORKERS) {
        c->result = JOBQ_EEXISTS;
        rc = note(store, c, job.seq);
    } else if (rc > 0) {
        rc = bury(store, c, &job);
    }
    jobq__buf_free(&job.history);
    jobq__batch_free(&job.texts);
    return rc;
}

int jobq__mysql_cancel(void *handle, jobq_cancelling *c)
{
    return jobq__mysql_do(handle, MYSQL_TRANSACTION | MYSQL_DOUBTFUL, cancel, c);
}

/* ---- clear ----------------------------------------------------------------------------------- */

typedef struct {
    jobq_clearing *c;
    size_t limit, count;
    mysql_arg seqs[MYSQL_MAX_BATCH];
    jobq_batch texts;
    jobq_slice *keys; /* that others wait for */
    size_t key_count;
} clearing;

static int collect(mysql_store *store, clearing *work, const char *sql)
{
    const mysql_arg args[] = {bytes_arg(work->c->queue),
                              number_arg((int64_t)(work->limit - work->count))};
    mysql_statement *rows = NULL;
    int rc = work->count < work->limit ? jobq__mysql_select(store, sql, args, &rows) : 0;

    while (rc == 0 && work->count < work->limit && jobq__mysql_next(rows)) {
        work->seqs[work->count++] = number_arg(jobq__mysql_number(rows, 0));
        if (!jobq__mysql_is_null(rows, 1) &&
            !jobq__mysql_copy(rows, 1, &work->texts, &work->keys[work->key_count++]))
            rc = jobq__error_nomem();
    }
    jobq__mysql_end(rows);
    return rc;
}

static int drop(mysql_store *store, clearing *work)
{
    int64_t ignored = 0, rc = 0;

    if (work->count)
        rc = jobq__mysql_run_list(store, DROP, NULL, (mysql_list){work->seqs, work->count},
                                  (mysql_list){NULL, 0});
    for (size_t i = 0; i < work->key_count && rc >= 0; i++)
        rc = jobq__mysql_pass_key(store, work->c->queue, work->keys[i], &ignored);
    return rc < 0 ? (int)rc : 0;
}

static int clear(mysql_store *store, void *payload)
{
    static const char *const lines[] = {WAITING("0"), WAITING("1"), WAITING("2"), WAITING("5")};
    clearing *work = payload;
    int rc;

    work->count = work->key_count = 0;
    jobq__batch_reset(&work->texts);
    work->keys = jobq_batch_alloc(&work->texts, MYSQL_MAX_BATCH * sizeof(*work->keys));
    rc = work->keys ? 0 : jobq__error_nomem();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && rc == 0; i++)
        rc = collect(store, work, lines[i]);
    return rc ? rc : drop(store, work);
}

int jobq__mysql_clear(void *handle, jobq_clearing *c)
{
    clearing work = {.c = c, .limit = c->limit < MYSQL_MAX_BATCH ? c->limit : MYSQL_MAX_BATCH};
    int rc = jobq__mysql_do(handle, MYSQL_TRANSACTION | MYSQL_DOUBTFUL, clear, &work);

    if (rc == 0) {
        c->cleared = work.count;
        c->more = work.count == work.limit;
    }
    jobq__batch_free(&work.texts);
    return rc;
}
