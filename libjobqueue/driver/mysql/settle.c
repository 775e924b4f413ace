/* SPDX-License-Identifier: MIT
 *
 * Settling a batch. What most jobs end with (done, given back) is one statement for all of them,
 * fenced by worker and nonce: a nonce belongs to one hand-out, so that the pair of lists cannot
 * match crosswise. Done jobs that stand side by side and come from one reservation, as those of a
 * queue that is drained, are a range, which is less to say and to look up. If the statements do
 * not reach as many rows as there are hand-outs the batch is done again carefully: the rows are
 * locked and read first, and each settlement is judged by its own.
 */
#include <stdlib.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/error.h"

#define OURS "seq IN ({?}) AND nonce IN ({?}) AND place=?1"
/* Not where somebody waits for the unique key. */
#define DROP_OURS "DELETE j FROM jobqueue_job j FORCE INDEX (PRIMARY) WHERE " OURS " AND followed=0"
/* A nonce is the reservation's number and the job's seq. The limit is how many there are: without
 * it the row behind the last one would be read and locked, whoever's it is. */
#define DROP_RUN                                                                         \
    "DELETE FROM jobqueue_job WHERE seq BETWEEN ?2 AND ?3 AND nonce=seq+?4 AND place=?1" \
    " AND followed=0 ORDER BY seq LIMIT ?5"
#define GIVE_BACK_OURS \
    "UPDATE jobqueue_job FORCE INDEX (PRIMARY) SET place=taken, nonce=0 WHERE " OURS
#define CHECK                                                                 \
    "SELECT seq, place, nonce, history, IF(followed, queue, NULL), "          \
    "IF(followed, unique_key, NULL) FROM jobqueue_job FORCE INDEX (PRIMARY) " \
    "WHERE seq IN ({?}) ORDER BY seq FOR UPDATE"
#define DROP "DELETE FROM jobqueue_job WHERE seq=?1"
/* The texts: ?2 and ?4 say whether error ?3 and history ?5 replace what is there. */
#define TEXTS "error=IF(?2, ?3, error), history=IF(?4, ?5, history), nonce=0"
#define GIVE_BACK "UPDATE jobqueue_job SET place=taken, " TEXTS " WHERE seq=?1"
#define KEEP                                                                                      \
    "UPDATE jobqueue_job SET place=3, holds=NULL, taken=0, cancel=0, due=" NOW_MS "+?6+" DUE_DONE \
    ", outcome=IF(?7, ?8, outcome), body=IF(?9, '', body), " TEXTS " WHERE seq=?1"
/* It stays where it is. */
#define FREE_KEY "UPDATE jobqueue_job SET holds=NULL, followed=0 WHERE seq=?1"
#define PROGRESS "UPDATE jobqueue_job SET outcome=?2 WHERE seq=?1"
#define COUNTERS                                                                 \
    "failures=?6, crashes=?7, releases=?8, losses=?9, exceptions=?a, parks=?b, " \
    "parked_since=?c, " TEXTS
/* One that is to be cancelled is judged without delay. */
#define LATER "?d>0 AND cancel=0"
#define PUT_BACK                                                                            \
    "UPDATE jobqueue_job SET " COUNTERS ", taken=0, place=IF(" LATER ", 2, 0), "            \
    "available_at=" NOW_MS "+IF(" LATER ", ?d, 0), due=IF(" LATER ", " NOW_MS "+?d, NULL) " \
    "WHERE seq=?1"
#define BURY                                                                                   \
    "UPDATE jobqueue_job SET " COUNTERS ", " DIES("?d", "?e") ", outcome=IFNULL(?f, outcome) " \
                                                              "WHERE seq=?1"
#define NOTE_KEEP                                        \
    "INSERT IGNORE INTO jobqueue_keep(keep_until, seq) " \
    "SELECT keep_until, seq FROM jobqueue_job WHERE seq=?1 AND keep_until IS NOT NULL"
enum { ARGS = 15, RUN_WORTH = 64 /* jobs: a run is one trip more */ };

/* ---- history --------------------------------------------------------------------------------- */

static size_t read_length(const unsigned char *p)
{
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static size_t count_entries(jobq_slice history)
{
    const unsigned char *p = history.p;
    size_t left = history.n, n = 0;

    for (; left >= 4 && read_length(p) <= left - 4; n++) {
        left -= 4 + read_length(p);
        p += 4 + read_length(p);
    }
    return n;
}

bool jobq__mysql_add_history(jobq_slice history, jobq_slice entry, jobq__buf *out)
{
    const unsigned char *p = history.p;
    size_t left = history.n, n = count_entries(history);

    for (; n >= JOBQ__HISTORY_MAX; n--) {
        left -= 4 + read_length(p);
        p += 4 + read_length(p);
    }
    jobq__buf_add(out, p, left);
    for (int shift = 24; shift >= 0; shift -= 8)
        jobq__buf_addc(out, (char)(entry.n >> shift));
    jobq__buf_add(out, entry.p, entry.n);
    return !out->failed;
}

/* ---- all at once ----------------------------------------------------------------------------- */

static bool is_simple(const jobq_settlement *s, int op)
{
    return s->op == op && s->keep_ms <= 0 && !s->follow &&
           (op == JOBQ_OP_DONE || (!s->error.p && !s->history.p));
}

static bool is_any_simple(const jobq_settlement *s)
{
    return is_simple(s, JOBQ_OP_DONE) || is_simple(s, JOBQ_OP_GIVE_BACK);
}

typedef struct {
    int64_t seq, nonce;
} ours;

/* The hand-outs that end with `op`. The number of them. */
static size_t collect(jobq_exchange *x, int op, ours *list)
{
    size_t n = 0;

    for (size_t i = 0; i < x->settle_count; i++) {
        jobq_settlement *s = &x->settle[i];

        if (!is_simple(s, op))
            continue;
        s->result = 0;
        list[n++] = (ours){(int64_t)s->token.word[0], (int64_t)s->token.word[2]};
    }
    return n;
}

static int64_t by_lists(mysql_store *store, const char *sql, int64_t worker, const ours *list,
                        size_t n)
{
    const mysql_arg place = number_arg(worker);
    mysql_arg *args = jobq__alloc(2 * n * sizeof(*args));
    int64_t rc;

    if (!args)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++) {
        args[i] = number_arg(list[i].seq);
        args[n + i] = number_arg(list[i].nonce);
    }
    rc = jobq__mysql_run_list(store, sql, &place, (mysql_list){args, n}, (mysql_list){args + n, n});
    jobq__free(args);
    return rc;
}

static int by_seq(const void *a, const void *b)
{
    const ours *left = a, *right = b;

    return (left->seq > right->seq) - (left->seq < right->seq);
}

/* Where the run that begins at `at` ends. One settled twice is in no run with itself. */
static size_t run_end(const ours *list, size_t n, size_t at)
{
    size_t end = at + 1;

    while (end < n && list[end].seq == list[end - 1].seq + 1 &&
           list[end].nonce == list[end - 1].nonce + 1)
        end++;
    return end;
}

static size_t count_runs(const ours *list, size_t n)
{
    size_t runs = 0;

    for (size_t at = 0; at < n; at = run_end(list, n, at))
        runs++;
    return runs;
}

static int64_t by_runs(mysql_store *store, int64_t worker, const ours *list, size_t n)
{
    int64_t total = 0, rc = 0;

    for (size_t at = 0, end; at < n && rc >= 0; at = end) {
        end = run_end(list, n, at);
        const mysql_arg args[] = {
            number_arg(worker), number_arg(list[at].seq), number_arg(list[end - 1].seq),
            number_arg(list[at].nonce - list[at].seq), number_arg((int64_t)(end - at))};

        rc = jobq__mysql_run(store, DROP_RUN, args);
        total += rc;
    }
    return rc < 0 ? rc : total;
}

static int settle_simple(mysql_store *store, jobq_exchange *x, int op, const char *sql,
                         int64_t worker)
{
    ours *list = jobq__alloc(x->settle_count * sizeof(*list));
    int64_t rc = 0;
    size_t n;

    if (!list)
        return jobq__error_nomem();
    n = collect(x, op, list);
    qsort(list, n, sizeof(*list), by_seq);
    if (n && op == JOBQ_OP_DONE && count_runs(list, n) <= 1 + n / RUN_WORTH)
        rc = by_runs(store, worker, list, n);
    else if (n)
        rc = by_lists(store, sql, worker, list, n);
    jobq__free(list);
    return rc < 0 ? (int)rc : (size_t)rc == n ? 0 : MYSQL_MISMATCH;
}

/* ---- one by one ------------------------------------------------------------------------------ */

typedef struct {
    int64_t seq, place, nonce;      /* nonce 0: settled */
    jobq_slice history, queue, key; /* queue, key: where somebody waits for the key */
} handout;

typedef struct {
    handout *rows;
    size_t count;
    jobq_batch texts;
} handouts;

static handout *find(const handouts *h, int64_t seq)
{
    size_t low = 0, high = h->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (h->rows[middle].seq == seq)
            return &h->rows[middle];
        if (h->rows[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int read_handouts(mysql_statement *rows, handouts *h)
{
    while (jobq__mysql_next(rows)) {
        handout *row = &h->rows[h->count++];

        row->seq = jobq__mysql_number(rows, 0);
        row->place = jobq__mysql_number(rows, 1);
        row->nonce = jobq__mysql_number(rows, 2);
        if (!jobq__mysql_copy(rows, 3, &h->texts, &row->history) ||
            !jobq__mysql_copy(rows, 4, &h->texts, &row->queue) ||
            !jobq__mysql_copy(rows, 5, &h->texts, &row->key))
            return jobq__error_nomem();
    }
    return 0;
}

/* Locks the rows of what is still to be settled. */
static int check(mysql_store *store, const jobq_exchange *x, bool all, handouts *h)
{
    mysql_arg *seqs = jobq__alloc(x->settle_count * sizeof(*seqs));
    mysql_statement *rows = NULL;
    size_t n = 0;
    int rc = 0;

    h->rows = jobq__alloc(x->settle_count * sizeof(*h->rows));
    if (!seqs || !h->rows) {
        jobq__free(seqs);
        return jobq__error_nomem();
    }
    for (size_t i = 0; i < x->settle_count; i++)
        if (all || !is_any_simple(&x->settle[i]))
            seqs[n++] = number_arg((int64_t)x->settle[i].token.word[0]);
    if (n)
        rc = jobq__mysql_select_list(store, CHECK, NULL, (mysql_list){seqs, n}, &rows);
    if (rc == 0 && n)
        rc = read_handouts(rows, h);
    jobq__mysql_end(rows);
    jobq__free(seqs);
    return rc;
}

static void fill_args(const jobq_settlement *s, const jobq__buf *history, mysql_arg args[ARGS])
{
    const jobq_counters *c = &s->counters;
    const mysql_arg filled[ARGS] = {
        number_arg((int64_t)s->token.word[0]),
        number_arg(s->error.p != NULL),
        bytes_arg(s->error),
        number_arg(s->history.p != NULL),
        bytes_arg(jobq__slice(history->n ? history->p : NULL, history->n)),
        number_arg(c->failures),
        number_arg(c->crashes),
        number_arg(c->releases),
        number_arg(c->losses),
        number_arg(c->exceptions),
        number_arg(c->parks),
        number_arg(c->parked_since_ms),
        number_arg(s->op == JOBQ_OP_DEAD ? s->reason
                   : s->delay_ms > 0     ? s->delay_ms
                                         : 0),
        number_arg(s->keep_ms),
        bytes_arg(s->outcome)};

    memcpy(args, filled, sizeof(filled));
}

static void fill_keep(const jobq_settlement *s, mysql_arg args[ARGS])
{
    args[5] = number_arg(s->keep_ms);
    args[6] = number_arg(s->outcome.p != NULL);
    args[7] = bytes_arg(s->outcome);
    args[8] = number_arg(s->keep_bare);
}

static int apply(mysql_store *store, const jobq_settlement *s, const jobq__buf *history)
{
    static const char *const statements[] = {
        [JOBQ_OP_DONE] = KEEP, [JOBQ_OP_BACK] = PUT_BACK,     [JOBQ_OP_GIVE_BACK] = GIVE_BACK,
        [JOBQ_OP_DEAD] = BURY, [JOBQ_OP_FREE_KEY] = FREE_KEY, [JOBQ_OP_PROGRESS] = PROGRESS,
    };
    mysql_arg args[ARGS];
    const char *sql = statements[s->op];
    int64_t rc;

    fill_args(s, history, args);
    if (s->op == JOBQ_OP_DONE)
        fill_keep(s, args);
    if (s->op == JOBQ_OP_DONE && s->keep_ms <= 0)
        sql = DROP;
    if (s->op == JOBQ_OP_PROGRESS)
        args[1] = bytes_arg(s->outcome);
    rc = jobq__mysql_run(store, sql, args);
    if (rc >= 0 && s->op == JOBQ_OP_DEAD && s->keep_ms > 0)
        rc = jobq__mysql_note_keep(store, args[0].number);
    return rc < 0 ? (int)rc : 0;
}

int jobq__mysql_note_keep(mysql_store *store, int64_t seq)
{
    const mysql_arg arg = number_arg(seq);
    int64_t rc = jobq__mysql_run(store, NOTE_KEEP, &arg);

    return rc < 0 ? (int)rc : 0;
}

static bool is_current(const handout *row, const jobq_settlement *s, int64_t worker)
{
    return row && row->place == worker && row->nonce != 0 &&
           row->nonce == (int64_t)s->token.word[2];
}

static int settle_one(mysql_store *store, jobq_settlement *s, const handouts *h, int64_t worker,
                      int64_t *due)
{
    const bool frees = s->op == JOBQ_OP_DONE || s->op == JOBQ_OP_DEAD || s->op == JOBQ_OP_FREE_KEY;
    handout *row = find(h, (int64_t)s->token.word[0]);
    jobq__buf history = {0};
    int rc = 0;

    s->result = JOBQ_ELEASE;
    if (!is_current(row, s, worker))
        return 0;
    if ((int64_t)s->outcome.n > jobq__mysql_row_limit(store))
        return jobq__error_set_driver(JOBQ_EINVAL, 0, "mysql", 0,
                                      "mysql: the outcome has %zu bytes, the server takes %lld",
                                      s->outcome.n, (long long)jobq__mysql_row_limit(store));
    if (s->history.p && !jobq__mysql_add_history(row->history, s->history, &history))
        rc = jobq__error_nomem();
    rc = rc ? rc : apply(store, s, &history);
    if (rc == 0 && frees && row->key.p)
        rc = jobq__mysql_pass_key(store, row->queue, row->key, due);
    rc = rc ? rc : jobq__mysql_push_follow(store, s->follow);
    jobq__buf_free(&history);
    if (frees)
        row->key.p = NULL;
    if (s->op != JOBQ_OP_FREE_KEY && s->op != JOBQ_OP_PROGRESS)
        row->nonce = 0;
    s->result = 0;
    return rc;
}

/* All, or those that are not simple. One refused beside simple ones may stand for a hand-out that
 * is settled twice: the first shall win, so all are done in order then. */
static int settle_carefully(mysql_store *store, jobq_exchange *x, mysql_state *state, bool all)
{
    const int64_t worker = state->worker ? state->worker : -1;
    handouts h = {0};
    bool refused = false, others = false;
    int rc = check(store, x, all, &h);

    for (size_t i = 0; i < x->settle_count && rc == 0; i++) {
        jobq_settlement *s = &x->settle[i];

        if (!all && is_any_simple(s)) {
            others = true;
            continue;
        }
        rc = settle_one(store, s, &h, worker, &state->next_due);
        refused |= s->result != 0;
    }
    jobq__free(h.rows);
    jobq__batch_free(&h.texts);
    return rc == 0 && refused && others ? MYSQL_MISMATCH : rc;
}

int jobq__mysql_settle(mysql_store *store, jobq_exchange *x, mysql_state *state, bool careful)
{
    const int64_t worker = state->worker ? state->worker : -1;
    int rc = 0;

    if (x->settle_count == 0)
        return 0;
    if (!careful)
        rc = settle_simple(store, x, JOBQ_OP_DONE, DROP_OURS, worker);
    if (!careful && rc == 0)
        rc = settle_simple(store, x, JOBQ_OP_GIVE_BACK, GIVE_BACK_OURS, worker);
    return rc ? rc : settle_carefully(store, x, state, careful);
}
