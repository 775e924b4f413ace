/* SPDX-License-Identifier: MIT
 *
 * A small exchange in one trip: a compound statement asks for the state, settles jobs that are
 * done, claims what is ready, marks it, and commits. An error ends it in the middle and leaves its
 * transaction to be rolled back. What it is not made for it declines before it has done anything.
 *
 * The list of what was claimed goes from the claim to the mark in variables of the session, as the
 * rows are sent: claiming again might find others.
 */
#include "driver/mysql/reserve.h"
#include "driver/mysql/state.h"
#include "util/error.h"

enum { QUEUES_MAX = 8 };
enum { CODE_DONE, CODE_MISMATCH, CODE_DECLINED };

#define VARIABLES \
    "v_now, v_worker, v_alive, v_taken, v_delayed, v_done, v_dead, v_lapse, v_control, v_ready"
enum { CODE = 10 };
/* ?3 so many are wanted, ?4 so many bytes of bodies, ?5 + seq = the nonce of a hand-out, ?6 so many
 * are to be settled. */
#define ASK                                                                        \
    "BEGIN NOT ATOMIC DECLARE " VARIABLES                                          \
    " BIGINT; DECLARE v_code, v_open, v_room INT DEFAULT 0; " STATE ", " ANY_READY \
    " INTO " VARIABLES RECORD "; "                                                 \
    "SET v_room=?3, @jobqueue_list='', @jobqueue_bytes=0; "                        \
    "IF v_room>0 AND (v_taken OR v_alive=0) THEN SET v_code=2; "
#define SETTLE                                                                                \
    "DELETE j FROM jobqueue_job j FORCE INDEX (PRIMARY) "                                     \
    "WHERE seq IN ({?}) AND nonce IN ({?}) AND place=v_worker AND place>=16 AND followed=0; " \
    "IF ROW_COUNT()<>?6 THEN SET v_code=1; END IF; "
#define WITH_BODY "IF(@jobqueue_bytes<?4, body, NULL), OCTET_LENGTH(body)"
/* Is it one of those that are taken? Then it goes on the list. */
#define NOTE                                                                                     \
    "IF(@jobqueue_bytes>=?4, 0, LENGTH(@jobqueue_list:=CONCAT(@jobqueue_list, ',', seq))>0 AND " \
    "(@jobqueue_bytes:=@jobqueue_bytes+IFNULL(OCTET_LENGTH(body), 0))>=0)"
enum { TAKEN = SIZE + 1, QUEUE };
/* One per queue: its place in the order to serve, its name. */
#define CLAIM                                                                      \
    "`IF v_room>0 THEN SELECT " JOB_COLUMNS ", " WITH_BODY ", " NOTE ", ? "        \
    "FROM jobqueue_job FORCE INDEX (jobqueue_job_line) WHERE place=0 AND queue=? " \
    "ORDER BY ranking, available_at, seq LIMIT v_room FOR UPDATE SKIP LOCKED; "    \
    "SET v_room=IF(@jobqueue_bytes<?4, v_room-FOUND_ROWS(), 0); END IF; `"
#define LIST "JSON_TABLE(CONCAT('[', SUBSTRING(@jobqueue_list, 2), ']'), '$[*]' "
#define HOLD                                                             \
    "IF @jobqueue_list<>'' THEN "                                        \
    "UPDATE " LIST "COLUMNS(seq BIGINT PATH '$')) t "                    \
    "STRAIGHT_JOIN jobqueue_job j FORCE INDEX (PRIMARY) ON j.seq=t.seq " \
    "SET j.place=v_worker, j.nonce=?5+j.seq, j.fence=j.fence+1, "        \
    "j.deliveries=j.deliveries+1; END IF; "
#define RESERVE "IF v_code=0 AND v_ready THEN " CLAIM HOLD "END IF; "
#define ANSWER                               \
    "END IF; SELECT " VARIABLES ", v_code; " \
    "IF v_open AND v_code=0 THEN COMMIT; ELSEIF v_open THEN ROLLBACK; END IF; END"
#define BEGIN "START TRANSACTION; SET v_open=1; "
#define ONLY_RESERVE ASK "ELSEIF v_room>0 AND v_ready THEN " BEGIN RESERVE ANSWER
#define SETTLE_AND_RESERVE ASK "ELSE " BEGIN SETTLE RESERVE ANSWER

/* ---- can it be done so? ---------------------------------------------------------------------- */

static bool is_plain(const jobq_settlement *s)
{
    return s->op == JOBQ_OP_DONE && s->keep_ms <= 0 && !s->follow;
}

bool jobq__mysql_is_compact(const mysql_store *store, const jobq_exchange *x)
{
    if (!store->compound || store->claimed >= MYSQL_COMPACT || x->settle_count > MYSQL_COMPACT ||
        x->queue_count > QUEUES_MAX)
        return false;
    for (size_t i = 0; i < x->settle_count; i++)
        if (!is_plain(&x->settle[i]))
            return false;
    for (size_t i = 0; i < x->queue_count; i++)
        if (!jobq__mysql_is_known(store, x->queues[i]))
            return false;
    return true;
}

/* ---- saying it ------------------------------------------------------------------------------- */

typedef struct {
    reservation r;
    size_t room;
    int64_t code;
} compact;

static void fill_lists(const jobq_exchange *x, bool wants, mysql_arg *args, mysql_call *call)
{
    mysql_arg *queues = args, *seqs = queues + QUEUES_MAX, *nonces = seqs + MYSQL_COMPACT;
    mysql_arg *blocks = nonces + MYSQL_COMPACT;
    size_t queue_count = wants ? x->queue_count : 0;

    for (size_t i = 0; i < queue_count; i++) {
        queues[i] = bytes_arg(x->queues[i]);
        blocks[2 * i] = number_arg((int64_t)i);
        blocks[2 * i + 1] = queues[i];
    }
    for (size_t i = 0; i < x->settle_count; i++) {
        seqs[i] = number_arg((int64_t)x->settle[i].token.word[0]);
        nonces[i] = number_arg((int64_t)x->settle[i].token.word[2]);
    }
    call->list[0] = (mysql_list){queues, queue_count};
    call->list[1] = (mysql_list){seqs, x->settle_count};
    call->list[2] = (mysql_list){nonces, x->settle_count};
    call->list[MYSQL_BLOCKS] = (mysql_list){blocks, 2 * queue_count};
    call->copies =
        jobq__mysql_copies(queue_count > x->settle_count ? queue_count : x->settle_count);
    call->blocks = queue_count;
}

static int say(mysql_store *store, compact *c, mysql_statement **rows_out)
{
    const jobq_exchange *x = c->r.x;
    mysql_arg lists[QUEUES_MAX + 2 * MYSQL_COMPACT + 2 * QUEUES_MAX];
    mysql_arg args[] = {number_arg(0),
                        bytes_arg(x->worker),
                        number_arg((int64_t)c->room),
                        number_arg(x->want_bytes ? (int64_t)x->want_bytes : INT64_MAX),
                        number_arg(c->r.nonce),
                        number_arg((int64_t)x->settle_count)};
    mysql_call call = {.sql = x->settle_count ? SETTLE_AND_RESERVE : ONLY_RESERVE, .args = args};
    int rc = jobq__mysql_started_at(store, &args[0].number);

    if (rc < 0)
        return rc;
    fill_lists(x, c->room > 0, lists, &call);
    store->in_transaction = true; /* as long as we do not know better */
    store->in_doubt = x->settle_count > 0;
    return jobq__mysql_select_many(store, &call, rows_out);
}

/* ---- hearing --------------------------------------------------------------------------------- */

static int read_jobs(mysql_statement *rows, compact *c)
{
    jobq_slice queue = {NULL, 0};
    int rc = 0;

    while (rc == 0 && jobq__mysql_next(rows)) {
        const jobq_slice *name = &c->r.x->queues[jobq__mysql_number(rows, QUEUE)];

        if (!jobq__mysql_number(rows, TAKEN)) {
            c->r.left = true;
            continue;
        }
        if (!queue.p)
            queue = jobq_batch_copy(c->r.x->out, name->p, name->n);
        rc = queue.p ? jobq__mysql_take(rows, false, queue, &c->r) : jobq__error_nomem();
    }
    return rc;
}

/* The jobs of each queue, then the state. */
static int hear(mysql_store *store, mysql_statement *rows, compact *c)
{
    int rc = 1;

    while (rc > 0 && jobq__mysql_columns(rows) > CODE + 1) {
        rc = read_jobs(rows, c);
        rc = rc ? rc : jobq__mysql_more(store, rows);
    }
    if (rc <= 0 || !jobq__mysql_next(rows))
        return rc < 0 ? rc
                      : jobq__error_set_driver(JOBQ_EPROTO, 0, "mysql", 0,
                                               "mysql: a compound statement without an answer");
    jobq__mysql_read_state_row(rows, c->room > 0, c->r.state);
    c->code = jobq__mysql_number(rows, CODE);
    rc = jobq__mysql_more(store, rows);
    /* The commit itself: an end of the connection, or of the statement, says nothing about it. */
    return rc < 0 && !store->transient ? jobq__mysql_say_lost(store) : rc;
}

static int talk(mysql_store *store, compact *c)
{
    mysql_statement *rows = NULL;
    int rc = say(store, c, &rows);

    if (rc > 0)
        rc = hear(store, rows, c);
    else if (rc == 0)
        rc = jobq__error_set_driver(JOBQ_EPROTO, 0, "mysql", 0,
                                    "mysql: a compound statement without an answer");
    jobq__mysql_end(rows);
    if (rc == JOBQ_ENOMEM || rc == JOBQ_EPROTO)
        store->suspect = true; /* it may have more to say */
    return rc;
}

/* A server, or a proxy before it, that calls itself MariaDB and does not know all of it. */
static bool is_not_understood(mysql_store *store)
{
    const int64_t number = jobq_error_native(jobq_error_last());

    if (store->suspect || (number != MYSQL_PARSE_ERROR && number != MYSQL_NOT_PREPARED))
        return false;
    store->compound = store->in_transaction = store->in_doubt = false;
    jobq__error_clear();
    return true;
}

int jobq__mysql_compact(mysql_store *store, jobq_exchange *x, mysql_state *state)
{
    compact c = {.r = {.x = x, .state = state, .nonce = jobq__mysql_nonce()}};
    int rc;

    if (x->queue_count > 0)
        c.room = x->want < MYSQL_COMPACT ? x->want : MYSQL_COMPACT;
    rc = talk(store, &c);
    if (rc < 0)
        return is_not_understood(store) ? MYSQL_DECLINED : rc;
    store->in_transaction = store->in_doubt = false;
    if (c.code != CODE_DONE)
        return c.code == CODE_MISMATCH ? MYSQL_MISMATCH : MYSQL_DECLINED;
    for (size_t i = 0; i < x->settle_count; i++)
        x->settle[i].result = 0;
    store->claimed = c.r.count;
    x->settled = true;
    x->exhausted = c.room > 0 && c.r.count < c.room && !c.r.left &&
                   (x->want_bytes == 0 || c.r.bytes < x->want_bytes);
    return 0;
}
