/* SPDX-License-Identifier: MIT
 *
 * Unique keys beyond the index that keeps them unique (rule B6): pushes that replace what has their
 * key, and the follower that gets it when its holder gives it up. The holder's row is locked before
 * a follower's; `followed` of it tells whoever ends it to look for one.
 */
#include <time.h>

#include "driver/mysql/mysql.h"
#include "util/error.h"
#include "util/rng.h"

/* Last: for how long it could have been taken. */
#define KEEPERS                                                                            \
    "SELECT seq, holds, place, id, IF(place<>5 AND place<16, " NOW_MS "-available_at, 0) " \
    "FROM jobqueue_job FORCE INDEX (jobqueue_job_unique) "                                 \
    "WHERE queue=?1 AND unique_key=?2 AND holds IN (1, 2) ORDER BY holds"
#define LOCK "SELECT place FROM jobqueue_job WHERE seq=?1 AND holds=1 FOR UPDATE"
/* at, delay, longest after the enqueue */
#define DUE(now, at, delay, enqueued, most)                             \
    "GREATEST(" now ", LEAST(IF(" at ">0, " at ", " now "+" delay "), " \
    "IF(" most ">0, " enqueued "+" most ", " DUE_DONE ")))"
#define REPLACE                                                 \
    "UPDATE jobqueue_job FORCE INDEX (PRIMARY) "                \
    "SET name=?2, version=?3, ranking=?4, header=?5, body=?6, " \
    "available_at=" DUE(                                        \
        NOW_MS, "?7", "?8", "enqueued_at",                      \
        "?9") ", deliveries=0, failures=0, "                    \
              "crashes=0, releases=0, losses=0, exceptions=0, parks=0, parked_since=0, taken=0"
/* Of a waiting one the due time decides where it stands. */
#define STAND                                   \
    "place=IF(available_at>" NOW_MS ", 2, 0), " \
    "due=IF(available_at>" NOW_MS ", available_at, NULL) "
/* Only what it still is. */
#define REPLACE_FOLLOWER REPLACE " WHERE seq=?1 AND holds=2"
#define REPLACE_WAITING REPLACE ", " STAND "WHERE seq=?1 AND holds=1 AND place<3"
/* Refused like any other push when the limits are not those that are known. */
#define FOLLOW                                                                               \
    "INSERT INTO jobqueue_job(id, queue, name, version, ranking, unique_key, header, body, " \
    "holds, enqueued_at, base_at, available_at, place) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, "  \
    "?8, 2, " NOW_MS ", enqueued_at, "                                                       \
    "GREATEST(enqueued_at, IF(?9>0, ?9, enqueued_at+?a)), "                                  \
    "IF((SELECT capacity FROM jobqueue_limit WHERE queue='')=?b, 5, NULL))"
#define ID_EXISTS "SELECT 1 FROM jobqueue_job WHERE id=?1"
#define MARK "UPDATE jobqueue_job FORCE INDEX (PRIMARY) SET followed=1 WHERE seq=?1"
#define FOLLOWER                                                                    \
    "SELECT seq, available_at FROM jobqueue_job FORCE INDEX (jobqueue_job_unique) " \
    "WHERE queue=?1 AND unique_key=?2 AND holds=2"
#define PASS \
    "UPDATE jobqueue_job FORCE INDEX (PRIMARY) SET holds=1, " STAND "WHERE seq=?1 AND holds=2"
#define ORPHANS                                                                              \
    "SELECT f.queue, f.unique_key FROM jobqueue_job f FORCE INDEX (jobqueue_job_line) "      \
    "WHERE f.place=5 AND NOT EXISTS(SELECT 1 FROM jobqueue_job h WHERE h.queue=f.queue AND " \
    "h.unique_key=f.unique_key AND h.holds=1) LIMIT 32"

enum { LOOKS = 8, ORPHANS_MAX = 32, WAY_MS = 20 };

typedef struct {
    int64_t seq, place, overdue_ms; /* seq 0: nobody */
    char id[129];
} keeper;

/* By a look without locks, so that none is taken in the order of that index. */
static int find_keepers(mysql_store *store, const jobq_push *item, keeper *holder, keeper *follower)
{
    const mysql_arg args[] = {bytes_arg(item->queue), bytes_arg(item->unique)};
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, KEEPERS, args, &rows);

    holder->seq = follower->seq = 0;
    while (rc == 0 && jobq__mysql_next(rows)) {
        keeper *k = jobq__mysql_number(rows, 1) == 1 ? holder : follower;
        size_t n = jobq__mysql_length(rows, 3);

        n = n < sizeof(k->id) ? n : sizeof(k->id) - 1;
        jobq__mysql_read(rows, 3, k->id, n);
        k->id[n] = '\0';
        k->seq = jobq__mysql_number(rows, 0);
        k->place = jobq__mysql_number(rows, 2);
        k->overdue_ms = jobq__mysql_number(rows, 4);
    }
    jobq__mysql_end(rows);
    return rc;
}

/* Claims pass by what is locked: who replaces the same job again and again leaves gaps, the wider
 * the longer it could have been taken already. */
static void give_way(const mysql_store *store, const keeper *k)
{
    const int64_t most_ms = k->overdue_ms / 8 < WAY_MS ? k->overdue_ms / 8 : WAY_MS;
    const struct timespec span = {0, (long)(jobq__rng_unit() * (double)most_ms * 1e6)};

    if (most_ms > 1 && !store->in_transaction)
        nanosleep(&span, NULL);
}

/* 1 replaced, 0 it is no longer what it was. */
static int rewrite(mysql_store *store, jobq_push *item, const keeper *k, const char *sql)
{
    const mysql_arg args[] = {
        number_arg(k->seq),           bytes_arg(item->name),
        number_arg(item->version),    number_arg(JOBQ__TOP_PRIORITY - item->priority),
        bytes_arg(item->header),      bytes_arg(item->body),
        number_arg(item->at_ms),      number_arg(item->delay_ms > 0 ? item->delay_ms : 0),
        number_arg(item->max_wait_ms)};
    int64_t rc;

    give_way(store, k);
    store->in_doubt = !store->in_transaction;
    rc = jobq__mysql_run(store, sql, args);
    store->in_doubt = false;
    if (rc <= 0)
        return (int)rc;
    memcpy(item->holder, k->id, sizeof(item->holder));
    item->result = 2;
    return 1;
}

/* Until the follower is stored nobody can end the holder without seeing it. 1 it is still with a
 * worker, 0 not. */
static int lock_holder(mysql_store *store, const keeper *k)
{
    const mysql_arg seq = number_arg(k->seq);
    int64_t place = 0;
    bool found = false;
    int rc = store->in_transaction ? 0 : jobq__mysql_begin(store);

    rc = rc ? rc : jobq__mysql_ask(store, LOCK, &seq, &found, &place);
    return rc ? rc : found && place >= PLACE_WORKERS;
}

/* The id was looked for before; who pushes it at the same time, or another follower? */
static int id_exists(mysql_store *store, jobq_push *item)
{
    const mysql_arg id = bytes_arg(item->id);
    bool found = false;
    int64_t ignored;
    int rc = jobq__mysql_ask(store, ID_EXISTS, &id, &found, &ignored);

    item->result = JOBQ_EEXISTS;
    return rc ? rc : found;
}

/* 1 judged, 0 look again. */
static int add_follower(mysql_store *store, jobq_push *item, const keeper *holder, bool room)
{
    mysql_arg args[MYSQL_ITEM_ARGS + 3];
    const mysql_arg seq = number_arg(holder->seq);
    int64_t rc;

    jobq__mysql_item_args(args, item);
    args[MYSQL_ITEM_ARGS] = number_arg(item->at_ms);
    args[MYSQL_ITEM_ARGS + 1] = number_arg(item->delay_ms > 0 ? item->delay_ms : 0);
    args[MYSQL_ITEM_ARGS + 2] = number_arg(store->limits.generation);
    item->result = JOBQ_EFULL;
    if (!room)
        return 1;
    rc = lock_holder(store, holder);
    if (rc <= 0)
        return (int)rc;
    rc = jobq__mysql_run(store, FOLLOW, args);
    if (rc == JOBQ_EEXISTS)
        return id_exists(store, item);
    if (rc < 0)
        return (int)jobq__mysql_learn_anew(store, rc);
    rc = jobq__mysql_run(store, MARK, &seq);
    if (rc < 0)
        return (int)rc;
    memcpy(item->holder, item->id.p, item->id.n);
    item->holder[item->id.n] = '\0';
    item->result = 2;
    return 1;
}

int jobq__mysql_replace(mysql_store *store, jobq_push *item, bool room, bool *judged_out)
{
    keeper holder = {0}, follower = {0};
    int rc = 0;

    *judged_out = false;
    for (int i = 0; i < LOOKS && rc == 0; i++) {
        rc = find_keepers(store, item, &holder, &follower);
        if (rc < 0 || (!follower.seq && !holder.seq))
            return rc;
        if (follower.seq)
            rc = rewrite(store, item, &follower, REPLACE_FOLLOWER);
        else if (holder.place >= PLACE_WORKERS)
            rc = add_follower(store, item, &holder, room);
        else
            rc = rewrite(store, item, &holder, REPLACE_WAITING);
    }
    *judged_out = rc > 0;
    store->transient |= rc == 0; /* it goes from hand to hand: from the start */
    return rc > 0   ? 0
           : rc < 0 ? rc
                    : jobq__error_set_driver(JOBQ_EBUSY, JOBQ__RETRYABLE, "mysql", 0,
                                             "mysql: the unique key changes hands all the time");
}

int jobq__mysql_pass_key(mysql_store *store, jobq_slice queue, jobq_slice key, int64_t *due)
{
    const mysql_arg args[] = {bytes_arg(queue), bytes_arg(key)};
    mysql_statement *rows = NULL;
    mysql_arg seq = number_arg(0);
    int64_t at_ms = 0, rc = jobq__mysql_select(store, FOLLOWER, args, &rows);

    if (rc == 0 && jobq__mysql_next(rows)) {
        seq.number = jobq__mysql_number(rows, 0);
        at_ms = jobq__mysql_number(rows, 1);
    }
    jobq__mysql_end(rows);
    if (rc < 0 || seq.number == 0)
        return (int)rc;
    if (*due == 0 || at_ms < *due)
        *due = at_ms;
    rc = jobq__mysql_run(store, PASS, &seq);
    return rc < 0 ? (int)rc : 0;
}

typedef struct {
    jobq_batch texts;
    jobq_slice queues[ORPHANS_MAX], keys[ORPHANS_MAX];
    size_t count;
} orphans;

static int find_orphans(mysql_store *store, void *payload)
{
    orphans *o = payload;
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, ORPHANS, NULL, &rows);

    o->count = 0;
    for (; rc == 0 && o->count < ORPHANS_MAX && jobq__mysql_next(rows); o->count++)
        if (!jobq__mysql_copy(rows, 0, &o->texts, &o->queues[o->count]) ||
            !jobq__mysql_copy(rows, 1, &o->texts, &o->keys[o->count]))
            rc = jobq__error_nomem();
    jobq__mysql_end(rows);
    return rc;
}

/* Refused where somebody has taken the key meanwhile: then it has a holder again. */
static int heal(mysql_store *store, void *payload)
{
    const orphans *o = payload;
    int64_t ignored = 0;
    int rc = 0;

    for (size_t i = 0; i < o->count && (rc == 0 || rc == JOBQ_EEXISTS); i++)
        rc = jobq__mysql_pass_key(store, o->queues[i], o->keys[i], &ignored);
    return rc;
}

void jobq__mysql_heal_followers(mysql_store *store)
{
    orphans o = {.count = 0};

    if (jobq__mysql_do(store, 0, find_orphans, &o) == 0 && o.count)
        jobq__mysql_do(store, 0, heal, &o);
    jobq__error_clear();
    jobq__batch_free(&o.texts);
}
