/* SPDX-License-Identifier: MIT
 *
 * Workers' records. A renewal is one statement as long as nobody took jobs from the worker.
 */
#include "driver/mysql/mysql.h"
#include "util/error.h"

/* ?4: is there a description (?5 ... ?9)? */
#define RENEW                                                                               \
    "UPDATE jobqueue_worker SET alive_until=" NOW_MS "+?2, lease=?2, running=?3, taken=0, " \
    "host=IF(?4, ?5, host), pid=IF(?4, ?6, pid), queues=IF(?4, ?7, queues), "               \
    "names=IF(?4, ?8, names), processes=IF(?4, ?9, processes) WHERE id=?1"
#define RENEW_UNTAKEN RENEW " AND taken=0"
#define ADD                                                                                   \
    "INSERT INTO jobqueue_worker(id, alive_until, lease, running, host, pid, queues, names, " \
    "processes, started_at) VALUES(?1, " NOW_MS "+?2, ?2, ?3, ?5, ?6, ?7, ?8, ?9, " NOW_MS ")"
#define GET "SELECT taken FROM jobqueue_worker WHERE id=?1 FOR UPDATE"
#define COUNT_HELD                                                      \
    "SELECT " NOW_MS ", (SELECT COUNT(*) FROM jobqueue_job j "          \
    "WHERE j.place=(SELECT worker FROM jobqueue_worker WHERE id=?1)), " \
    "(SELECT control FROM jobqueue_control WHERE one=1)"
#define REVIVE "UPDATE jobqueue_worker SET alive_until=" NOW_MS "+?2, lease=?2 WHERE worker=?1"
#define ADD_BARE                                                       \
    "INSERT INTO jobqueue_worker(id, alive_until, lease, started_at) " \
    "VALUES(?1, " NOW_MS "+?2, ?2, " NOW_MS ")"
#define LEAVE                                      \
    "DELETE FROM jobqueue_worker WHERE id=?1 AND " \
    "NOT EXISTS(SELECT 1 FROM jobqueue_job j WHERE j.place=jobqueue_worker.worker)"
#define HELD                                                                          \
    "SELECT j.id, j.queue, j.seq, j.fence, j.nonce, j.cancel FROM jobqueue_worker w " \
    "JOIN jobqueue_job j ON j.place=w.worker WHERE w.id=?1 ORDER BY j.seq"
#define WORKERS                                                                                 \
    "SELECT w.id, w.host, w.queues, w.names, w.pid, w.processes, w.started_at, w.alive_until, " \
    "w.lease, OCTET_LENGTH(w.running), "                                                        \
    "(SELECT COUNT(*) FROM jobqueue_job j WHERE j.place=w.worker) "                             \
    "FROM jobqueue_worker w WHERE w.alive_until>" NOW_MS " ORDER BY w.worker"

/* In a transaction of an exchange. */
int jobq__mysql_keep_worker(mysql_store *store, jobq_slice id, int64_t lease_ms, mysql_state *state)
{
    mysql_arg args[] = {number_arg(state->worker), number_arg(lease_ms)};
    int64_t rc = 0;

    if (state->worker && state->alive)
        return 0;
    if (state->worker)
        rc = jobq__mysql_run(store, REVIVE, args);
    if (rc == 0) {
        args[0] = bytes_arg(id);
        rc = jobq__mysql_run(store, ADD_BARE, args);
        if (rc > 0)
            state->worker = jobq__mysql_last_id(store, ADD_BARE);
    }
    return rc < 0 ? (int)rc : 0;
}

/* ---- renew ----------------------------------------------------------------------------------- */

typedef struct {
    jobq_renewal *r;
    mysql_arg args[9];
    bool taken;
} renewing;

static void fill_args(renewing *w)
{
    const jobq_renewal *r = w->r;
    const mysql_arg filled[9] = {bytes_arg(r->worker),
                                 number_arg(r->lease_ms),
                                 bytes_arg(jobq__slice(r->running_count ? r->running : NULL,
                                                       r->running_count * sizeof(r->running[0]))),
                                 number_arg(r->host.p != NULL),
                                 bytes_arg(r->host),
                                 number_arg(r->pid),
                                 bytes_arg(r->queues),
                                 bytes_arg(r->names),
                                 number_arg(r->processes)};

    memcpy(w->args, filled, sizeof(filled));
}

static int read_held_count(mysql_store *store, jobq_renewal *r)
{
    const mysql_arg id = bytes_arg(r->worker);
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, COUNT_HELD, &id, &rows);

    if (rc == 0 && jobq__mysql_next(rows)) {
        r->now_ms = jobq__mysql_number(rows, 0);
        r->held = jobq__mysql_number(rows, 1);
        r->control = jobq__mysql_number(rows, 2);
    }
    jobq__mysql_end(rows);
    return rc;
}

/* There is no record, or jobs were taken from it. */
static int renew_slowly(mysql_store *store, renewing *w)
{
    int64_t taken = 0, rc;
    bool found = false;

    rc = jobq__mysql_begin(store);
    rc = rc ? rc : jobq__mysql_ask(store, GET, w->args, &found, &taken);
    if (rc < 0)
        return (int)rc;
    rc = jobq__mysql_run(store, found ? RENEW : ADD, w->args);
    w->taken = found && taken;
    return rc < 0 ? (int)rc : jobq__mysql_commit(store);
}

static int renew_record(mysql_store *store, void *payload)
{
    renewing *w = payload;
    int64_t rc = jobq__mysql_run(store, RENEW_UNTAKEN, w->args);

    w->taken = false;
    if (rc == 0)
        rc = renew_slowly(store, w);
    return rc < 0 ? (int)rc : read_held_count(store, w->r);
}

int jobq__mysql_renew(void *handle, jobq_renewal *r)
{
    renewing w = {.r = r};
    int rc;

    fill_args(&w);
    rc = jobq__mysql_do(handle, 0, renew_record, &w);
    if (rc == 0 && w.taken)
        rc = jobq__refuse_lapsed("mysql", r->worker);
    return rc;
}

static int leave_store(mysql_store *store, void *payload)
{
    int64_t rc = jobq__mysql_run(store, LEAVE, payload);

    return rc < 0 ? (int)rc : 0;
}

int jobq__mysql_leave(void *handle, jobq_slice worker)
{
    mysql_arg id = bytes_arg(worker);

    return jobq__mysql_do(handle, 0, leave_store, &id);
}

/* ---- looking --------------------------------------------------------------------------------- */

typedef struct {
    jobq_slice worker;
    jobq_batch *out;
} looking;

static int read_held(mysql_statement *rows, jobq_batch *out)
{
    while (jobq__mysql_next(rows)) {
        jobq_record *r = jobq_batch_add(out);

        if (!r || !jobq__mysql_copy(rows, 0, out, &r->id) ||
            !jobq__mysql_copy(rows, 1, out, &r->queue))
            return jobq__error_nomem();
        r->fence = jobq__mysql_number(rows, 3);
        r->state = 2;
        r->cancel = (uint8_t)jobq__mysql_number(rows, 5);
        r->token.word[0] = (uint64_t)jobq__mysql_number(rows, 2);
        r->token.word[1] = (uint64_t)r->fence;
        r->token.word[2] = (uint64_t)jobq__mysql_number(rows, 4);
    }
    return 0;
}

static int list_held(mysql_store *store, void *payload)
{
    const looking *l = payload;
    const mysql_arg id = bytes_arg(l->worker);
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, HELD, &id, &rows);

    rc = rc ? rc : read_held(rows, l->out);
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_held(void *handle, jobq_slice worker, jobq_batch *out)
{
    looking l = {worker, out};

    return jobq__mysql_do(handle, 0, list_held, &l);
}

static int read_workers(mysql_statement *rows, jobq_batch *out)
{
    while (jobq__mysql_next(rows)) {
        jobq_worker_record *r = jobq_batch_add_worker(out);

        if (!r || !jobq__mysql_copy(rows, 0, out, &r->id) ||
            !jobq__mysql_copy(rows, 1, out, &r->host) ||
            !jobq__mysql_copy(rows, 2, out, &r->queues) ||
            !jobq__mysql_copy(rows, 3, out, &r->names))
            return jobq__error_nomem();
        r->pid = jobq__mysql_number(rows, 4);
        r->processes = jobq__mysql_number(rows, 5);
        r->started_at_ms = jobq__mysql_number(rows, 6);
        r->alive_until_ms = jobq__mysql_number(rows, 7);
        r->lease_ms = jobq__mysql_number(rows, 8);
        r->running = jobq__mysql_number(rows, 9) / (int64_t)sizeof(jobq_lease_token);
        r->held = jobq__mysql_number(rows, 10);
    }
    return 0;
}

static int list_workers(mysql_store *store, void *payload)
{
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, WORKERS, NULL, &rows);

    rc = rc ? rc : read_workers(rows, payload);
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_workers(void *handle, jobq_batch *out)
{
    return jobq__mysql_do(handle, 0, list_workers, out);
}
