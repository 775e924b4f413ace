/* SPDX-License-Identifier: MIT
 *
 * Maintenance in bounded steps: delayed jobs whose time has come, what expired workers held, kept
 * results whose time is over. What somebody else has locked is left for the next time. A call that
 * finds nothing due only reads.
 */
#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/error.h"

/* How long a record is kept after its lease: nobody else reserves for it so late. */
#define FORGET_MS "3600000"
enum { AGAIN_MS = 50 }; /* when all that is due is locked */
enum { HEAL_US = 5000000 };

#define DUE                                                        \
    "SELECT seq FROM jobqueue_job FORCE INDEX (jobqueue_job_due) " \
    "WHERE due>=0 AND due<=?1 ORDER BY due, seq LIMIT ?2 FOR UPDATE SKIP LOCKED"
#define PROMOTE "UPDATE jobqueue_job FORCE INDEX (PRIMARY) SET place=0, due=NULL WHERE seq IN ({?})"
#define OVER                                                                       \
    "SELECT seq FROM jobqueue_job FORCE INDEX (jobqueue_job_due) "                 \
    "WHERE due>=" DUE_DONE " AND due<=?1+" DUE_DONE " ORDER BY due, seq LIMIT ?2 " \
    "FOR UPDATE SKIP LOCKED"
#define DROP "DELETE j FROM jobqueue_job j FORCE INDEX (PRIMARY) WHERE seq IN ({?})"
/* The dead whose time is over: first the list, then those of it that are still dead. */
#define UNKEPT                                            \
    "SELECT seq FROM jobqueue_keep WHERE keep_until<=?1 " \
    "ORDER BY keep_until, seq LIMIT ?2 FOR UPDATE SKIP LOCKED"
#define DROP_DEAD                                                            \
    "DELETE j FROM jobqueue_job j FORCE INDEX (PRIMARY) WHERE seq IN ({?}) " \
    "AND place=4 AND keep_until<=" NOW_MS
#define UNLIST "DELETE FROM jobqueue_keep WHERE keep_until<=?1 AND seq IN ({?})"
#define EXPIRED                                                    \
    "SELECT w.worker FROM jobqueue_worker w "                      \
    "WHERE w.worker>?2 AND " LAPSE_OF_W "<=" NOW_MS " AND "        \
    "EXISTS(SELECT 1 FROM jobqueue_job j WHERE j.place=w.worker) " \
    "ORDER BY w.worker LIMIT 1"
#define LOCK_EXPIRED                                 \
    "SELECT w.running, w.id FROM jobqueue_worker w " \
    "WHERE w.worker=?2 AND " LAPSE_OF_W "<=" NOW_MS " FOR UPDATE SKIP LOCKED"
#define HELD                                                                                \
    "SELECT seq, nonce, losses, history FROM jobqueue_job FORCE INDEX (jobqueue_job_line) " \
    "WHERE place=?1 ORDER BY seq LIMIT ?2 FOR UPDATE SKIP LOCKED"
#define LOSE                                     \
    "UPDATE jobqueue_job FORCE INDEX (PRIMARY) " \
    "SET place=1, taken=1, nonce=0, losses=losses+1 WHERE seq IN ({?})"
#define CRASH                                                                          \
    "UPDATE jobqueue_job SET place=1, taken=1, nonce=0, losses=0, crashes=crashes+1, " \
    "history=IF(?2, ?3, history) WHERE seq=?1"
#define MARK_TAKEN "UPDATE jobqueue_worker SET taken=1 WHERE worker=?1"
/* Locked first, looked at by a statement of its own: an exchange that stood still for long in its
 * middle keeps its record, and what it holds by then is seen. */
#define OLD "FROM jobqueue_worker WHERE alive_until+" FORGET_MS "<?1 "
#define ANY_OLD "SELECT worker " OLD "LIMIT 1"
#define SWEEP_OLD "SELECT worker " OLD "LIMIT ?2 FOR UPDATE SKIP LOCKED"
#define SWEEP                                                \
    "DELETE FROM jobqueue_worker WHERE worker IN ({?}) AND " \
    "NOT EXISTS(SELECT 1 FROM jobqueue_job j WHERE j.place=jobqueue_worker.worker)"

typedef struct {
    jobq_maintenance *m;
    mysql_arg *seqs; /* room for what one step handles */
} maintaining;

static size_t limit_of(const jobq_maintenance *m)
{
    return m->limit < MYSQL_MAX_BATCH ? m->limit : MYSQL_MAX_BATCH;
}

static size_t room_of(const jobq_maintenance *m)
{
    return limit_of(m) - m->handled;
}

/* Takes what `select` finds and does `change` to it, until none is left or the limit is reached. */
static int step(mysql_store *store, const maintaining *work, const char *select, const char *change)
{
    jobq_maintenance *m = work->m;
    const mysql_arg args[] = {number_arg(m->now_ms), number_arg((int64_t)room_of(m))};
    mysql_statement *rows = NULL;
    size_t n = 0;
    int64_t rc = jobq__mysql_select(store, select, args, &rows);

    while (rc == 0 && n < room_of(m) && jobq__mysql_next(rows))
        work->seqs[n++] = number_arg(jobq__mysql_number(rows, 0));
    jobq__mysql_end(rows);
    if (rc == 0 && n)
        rc = jobq__mysql_run_list(store, change, NULL, (mysql_list){work->seqs, n},
                                  (mysql_list){NULL, 0});
    if (rc >= 0)
        m->handled += n;
    return rc < 0 ? (int)rc : 0;
}

/* One transaction of its own. */
static int step_alone(mysql_store *store, const maintaining *work, const char *select,
                      const char *change)
{
    size_t before = work->m->handled;
    int rc = room_of(work->m) > 0 ? jobq__mysql_begin(store) : 0;

    if (rc < 0 || !store->in_transaction)
        return rc;
    rc = step(store, work, select, change);
    rc = rc ? rc : jobq__mysql_commit(store);
    if (rc < 0)
        work->m->handled = before;
    return rc;
}

/* ---- expired workers ------------------------------------------------------------------------- */

typedef struct {
    int64_t key;
    jobq_lease_token *running;
    size_t running_count;
    jobq__buf lost; /* history entry of a job that comes back as a crash, empty = none */
    jobq_batch texts;
} expired_worker;

static int write_lost(const jobq_maintenance *m, mysql_statement *rows, jobq__buf *out)
{
    size_t n = jobq__mysql_length(rows, 1);

    if (!m->lost_head.p)
        return 0;
    jobq__buf_add(out, m->lost_head.p, m->lost_head.n);
    jobq__buf_addc(out, (char)n);
    if (jobq__buf_reserve(out, n)) {
        jobq__mysql_read(rows, 1, out->p + out->n, n);
        out->n += n;
    }
    jobq__buf_add(out, m->lost_tail.p, m->lost_tail.n);
    return out->failed ? jobq__error_nomem() : 0;
}

/* 1 locked and still expired, 0 not. */
static int lock_worker(mysql_store *store, const jobq_maintenance *m, const mysql_arg *args,
                       expired_worker *w)
{
    mysql_statement *rows = NULL;
    jobq_slice running = {NULL, 0};
    int rc = jobq__mysql_select(store, LOCK_EXPIRED, args, &rows);

    if (rc == 0 && jobq__mysql_next(rows)) {
        rc = jobq__mysql_copy(rows, 0, &w->texts, &running) ? 1 : jobq__error_nomem();
        rc = rc > 0 && write_lost(m, rows, &w->lost) < 0 ? JOBQ_ENOMEM : rc;
        w->running = (jobq_lease_token *)running.p;
        w->running_count = running.n / sizeof(jobq_lease_token);
    }
    jobq__mysql_end(rows);
    return rc;
}

static bool was_running(const expired_worker *w, int64_t seq, int64_t nonce)
{
    for (size_t i = 0; i < w->running_count; i++)
        if (w->running[i].word[0] == (uint64_t)seq && w->running[i].word[2] == (uint64_t)nonce)
            return true;
    return false;
}

typedef struct {
    int64_t seq;
    jobq_slice history;
} crash;

/* What the worker held, sorted into losses and crashes. */
typedef struct {
    mysql_arg *lost;
    size_t lost_count;
    crash *crashes;
    size_t crash_count;
} verdicts;

/* Listed as running = a crash; else a loss, and so many losses in a row are a crash (rule C5). */
static int judge_rows(mysql_statement *rows, const jobq_maintenance *m, expired_worker *w,
                      verdicts *v)
{
    while (jobq__mysql_next(rows)) {
        int64_t seq = jobq__mysql_number(rows, 0), losses = jobq__mysql_number(rows, 2) + 1;

        if (!was_running(w, seq, jobq__mysql_number(rows, 1)) &&
            (m->loss_cap <= 0 || losses < m->loss_cap)) {
            v->lost[v->lost_count++] = number_arg(seq);
            continue;
        }
        v->crashes[v->crash_count].seq = seq;
        if (!jobq__mysql_copy(rows, 3, &w->texts, &v->crashes[v->crash_count++].history))
            return jobq__error_nomem();
    }
    return 0;
}

static int judge(mysql_store *store, const jobq_maintenance *m, expired_worker *w, verdicts *v)
{
    const mysql_arg args[] = {number_arg(w->key), number_arg((int64_t)room_of(m))};
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, HELD, args, &rows);

    rc = rc ? rc : judge_rows(rows, m, w, v);
    jobq__mysql_end(rows);
    return rc;
}

static int note_crash(mysql_store *store, const expired_worker *w, const crash *c)
{
    jobq__buf history = {0};
    mysql_arg args[3];
    int64_t rc;

    if (w->lost.n &&
        !jobq__mysql_add_history(c->history, jobq__slice(w->lost.p, w->lost.n), &history)) {
        jobq__buf_free(&history);
        return jobq__error_nomem();
    }
    args[0] = number_arg(c->seq);
    args[1] = number_arg(history.n > 0);
    args[2] = bytes_arg(jobq__slice(history.n ? history.p : NULL, history.n));
    rc = jobq__mysql_run(store, CRASH, args);
    jobq__buf_free(&history);
    return rc < 0 ? (int)rc : 0;
}

static int carry_out(mysql_store *store, const expired_worker *w, const verdicts *v)
{
    const mysql_arg key = number_arg(w->key);
    int64_t rc = 0;

    if (v->lost_count)
        rc = jobq__mysql_run_list(store, LOSE, NULL, (mysql_list){v->lost, v->lost_count},
                                  (mysql_list){NULL, 0});
    for (size_t i = 0; i < v->crash_count && rc >= 0; i++)
        rc = note_crash(store, w, &v->crashes[i]);
    if (rc >= 0 && v->lost_count + v->crash_count)
        rc = jobq__mysql_run(store, MARK_TAKEN, &key);
    return rc < 0 ? (int)rc : 0;
}

static int take_back(mysql_store *store, const maintaining *work, const mysql_arg *args,
                     expired_worker *w)
{
    verdicts v = {.lost = work->seqs};
    int rc = lock_worker(store, work->m, args, w);

    if (rc > 0) {
        v.crashes = jobq__alloc(room_of(work->m) * sizeof(*v.crashes));
        rc = v.crashes ? judge(store, work->m, w, &v) : jobq__error_nomem();
        rc = rc ? rc : carry_out(store, w, &v);
        jobq__free(v.crashes);
    }
    rc = rc ? rc : jobq__mysql_commit(store);
    if (rc == 0)
        work->m->handled += v.lost_count + v.crash_count;
    return rc;
}

static int judge_worker(mysql_store *store, const maintaining *work, const mysql_arg *args)
{
    expired_worker w = {.key = args[1].number};
    int rc = jobq__mysql_begin(store);

    rc = rc ? rc : take_back(store, work, args, &w);
    jobq__buf_free(&w.lost);
    jobq__batch_free(&w.texts);
    return rc;
}

/* Records are not among what is handled. */
static int sweep(mysql_store *store, const maintaining *work)
{
    const mysql_arg now = number_arg(work->m->now_ms);
    const size_t before = work->m->handled;
    int64_t ignored;
    bool found = false;
    int rc = jobq__mysql_ask(store, ANY_OLD, &now, &found, &ignored);

    if (rc == 0 && found)
        rc = step_alone(store, work, SWEEP_OLD, SWEEP);
    work->m->handled = before;
    return rc;
}

static int judge_workers(mysql_store *store, const maintaining *work)
{
    mysql_arg args[2] = {number_arg(store->started_at_ms), number_arg(0)};
    bool found = true;
    int rc = 0;

    while (rc == 0 && found && room_of(work->m) > 0) {
        rc = jobq__mysql_ask(store, EXPIRED, args, &found, &args[1].number);
        if (rc == 0 && found)
            rc = judge_worker(store, work, args);
    }
    return rc ? rc : sweep(store, work);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int read_due(mysql_store *store, jobq_maintenance *m)
{
    mysql_state state = {0};
    /* All workers count, so that of nobody. */
    int rc = jobq__mysql_read_state(store, jobq__slice("", 0), NULL, 0, &state);

    if (rc < 0)
        return rc;
    m->now_ms = state.now_ms;
    m->next_due_ms = state.next_due;
    if (m->take_back && state.next_lapse && (!m->next_due_ms || state.next_lapse < m->next_due_ms))
        m->next_due_ms = state.next_lapse;
    return 0;
}

/* The same seqs twice: what was found on the list, and what is behind it. */
static int forget_dead(mysql_store *store, const maintaining *work)
{
    const mysql_arg now = number_arg(work->m->now_ms);
    const size_t before = work->m->handled;
    int64_t rc = room_of(work->m) > 0 ? jobq__mysql_begin(store) : 0;
    size_t n;

    if (rc < 0 || !store->in_transaction)
        return (int)rc;
    rc = step(store, work, UNKEPT, DROP_DEAD);
    n = work->m->handled - before;
    if (rc == 0 && n)
        rc = jobq__mysql_run_list(store, UNLIST, &now, (mysql_list){work->seqs, n},
                                  (mysql_list){NULL, 0});
    rc = rc < 0 ? rc : jobq__mysql_commit(store);
    if (rc < 0)
        work->m->handled = before;
    return (int)rc;
}

static int run_steps(mysql_store *store, const maintaining *work)
{
    jobq_maintenance *m = work->m;
    int rc = step_alone(store, work, DUE, PROMOTE);

    if (rc == 0 && m->take_back)
        rc = judge_workers(store, work);
    if (rc == 0)
        rc = step_alone(store, work, OVER, DROP);
    if (rc == 0)
        rc = forget_dead(store, work);
    m->more = room_of(m) == 0;
    rc = rc ? rc : read_due(store, m);
    if (rc == 0 && m->handled == 0 && m->next_due_ms && m->next_due_ms <= m->now_ms)
        m->next_due_ms = m->now_ms + AGAIN_MS;
    return rc;
}

static int maintain(mysql_store *store, void *payload)
{
    maintaining work = {.m = payload};
    int rc = read_due(store, work.m);

    work.m->more = false;
    if (rc < 0 || work.m->next_due_ms == 0 || work.m->next_due_ms > work.m->now_ms)
        return rc;
    work.seqs = jobq__alloc(MYSQL_MAX_BATCH * sizeof(*work.seqs));
    rc = work.seqs ? run_steps(store, &work) : jobq__error_nomem();
    jobq__free(work.seqs);
    return rc;
}

int jobq__mysql_maintain(void *handle, jobq_maintenance *m)
{
    mysql_store *store = handle;
    int rc;

    m->handled = 0;
    rc = jobq__mysql_do(store, 0, maintain, m);
    if (rc == 0 && jobq__clock_mono_us() - store->healed_us > HEAL_US) {
        jobq__mysql_heal_followers(store);
        store->healed_us = jobq__clock_mono_us();
    }
    return rc;
}
