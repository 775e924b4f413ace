/* SPDX-License-Identifier: MIT
 *
 * Capacities (rule B4). No push locks what another one needs: `room` of jobqueue_limit less the
 * sum of jobqueue_room, to which each push adds a row, never says too much, since nothing that
 * leaves the queue is added to it. Only when that is used up the queue is counted; whoever does so
 * folds the rows into a new number. The count and the list of the rows that are in it come from one
 * look: a push that is under way stands in neither.
 *
 * Which queues are limited a connection knows of its last look; a number, which changes with every
 * change of a limit, is compared by the statement that stores jobs (push.c).
 */
#include <stdlib.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/error.h"

#define LIMITS                                    \
    "SELECT queue, capacity FROM jobqueue_limit " \
    "WHERE queue='' OR capacity>0 ORDER BY queue"
#define LIMIT "SELECT capacity FROM jobqueue_limit WHERE queue=?1"
#define RAISE                                                    \
    "INSERT INTO jobqueue_limit(queue, capacity) VALUES('', 1) " \
    "ON DUPLICATE KEY UPDATE capacity=capacity+1"
#define SET_LIMIT                                                 \
    "INSERT INTO jobqueue_limit(queue, capacity) VALUES(?1, ?2) " \
    "ON DUPLICATE KEY UPDATE capacity=?2, room=0"
#define ROOM                                                                                   \
    "SELECT capacity, room-(SELECT IFNULL(SUM(taken), 0) FROM jobqueue_room WHERE queue=?1), " \
    "(SELECT COUNT(*) FROM jobqueue_room WHERE queue=?1) FROM jobqueue_limit WHERE queue=?1"
#define BY_LINE "(SELECT COUNT(*) FROM jobqueue_job FORCE INDEX (jobqueue_job_line) "
#define ALL_JOBS                                                        \
    "(" BY_LINE "WHERE queue=?1 AND place IN (0, 1, 2, 4, 5))+" BY_LINE \
    "WHERE queue=?1 AND place>=16))"
#define COUNT "SELECT " ALL_JOBS
#define TAKE "INSERT INTO jobqueue_room(queue, taken) VALUES(?1, ?2)"
#define LOCK "SELECT capacity FROM jobqueue_limit WHERE queue=?1 FOR UPDATE SKIP LOCKED"
#define TAKEN                                            \
    "SELECT r.n, " ALL_JOBS " FROM (SELECT 1 AS one) o " \
    "LEFT JOIN jobqueue_room r ON r.queue=?1"
#define SET_ROOM "UPDATE jobqueue_limit SET room=?2 WHERE queue=?1"
#define DROP "DELETE FROM jobqueue_room WHERE n IN ({?})"
#define CROWDED "SELECT r.queue FROM jobqueue_room r GROUP BY r.queue HAVING COUNT(*)>64 LIMIT 32"

enum { FOLD_ROWS = 64, FOLD_ROOM = 16 };

/* ---- which queues have one ------------------------------------------------------------------- */

void jobq__mysql_forget_limits(mysql_store *store)
{
    jobq__free(store->limits.queues);
    memset(&store->limits, 0, sizeof(store->limits));
}

static int compare(jobq_slice a, const mysql_queue *b)
{
    const int order = memcmp(a.p, b->name, a.n < b->n ? a.n : b->n);

    return order ? order : a.n < b->n ? -1 : a.n > b->n;
}

static int find_limited(const void *name, const void *queue)
{
    return compare(*(const jobq_slice *)name, queue);
}

bool jobq__mysql_is_limited(const mysql_store *store, jobq_slice queue)
{
    return store->limits.count > 0 && !jobq__queue_is_hidden(queue) &&
           bsearch(&queue, store->limits.queues, store->limits.count, sizeof(mysql_queue),
                   find_limited) != NULL;
}

/* They come sorted by bytes, that without a name first. */
static int read_limits(mysql_store *store, mysql_statement *rows)
{
    size_t room = 0, n;

    while (jobq__mysql_next(rows)) {
        mysql_queue *queue;

        n = jobq__mysql_length(rows, 0);
        if (n == 0) {
            store->limits.generation = jobq__mysql_number(rows, 1);
            continue;
        }
        if (store->limits.count == room) {
            mysql_queue *grown;

            room = room ? room * 2 : 16;
            grown = jobq__realloc(store->limits.queues, room * sizeof(*grown));
            if (!grown)
                return jobq__error_nomem();
            store->limits.queues = grown;
        }
        queue = &store->limits.queues[store->limits.count++];
        queue->n = n < sizeof(queue->name) ? n : sizeof(queue->name);
        jobq__mysql_read(rows, 0, queue->name, queue->n);
    }
    return 0;
}

int jobq__mysql_learn_limits(mysql_store *store)
{
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, LIMITS, NULL, &rows);

    jobq__mysql_forget_limits(store);
    rc = rc ? rc : read_limits(store, rows);
    jobq__mysql_end(rows);
    return rc;
}

/* ---- setting --------------------------------------------------------------------------------- */

static int show_limit(mysql_store *store, void *payload)
{
    jobq_limit *l = payload;
    const mysql_arg queue = bytes_arg(l->queue);
    bool found = false;

    l->capacity = -1;
    return jobq__mysql_ask(store, LIMIT, &queue, &found, &l->capacity);
}

/* The number is locked first, so that of two the second sees what the first did. */
static int change_limit(mysql_store *store, void *payload)
{
    jobq_limit *l = payload;
    const mysql_arg args[] = {bytes_arg(l->queue), number_arg(l->value)};
    int64_t rc = jobq__mysql_run(store, RAISE, NULL);

    rc = rc < 0 ? rc : show_limit(store, l);
    if (rc < 0 || (l->only_if_none && l->capacity >= 0))
        return (int)rc;
    rc = jobq__mysql_run(store, SET_LIMIT, args);
    l->capacity = l->value;
    store->limits.checked_us = 0;
    return rc < 0 ? (int)rc : 0;
}

int jobq__mysql_capacity(void *handle, jobq_limit *l)
{
    int rc = 0;

    l->capacity = -1;
    if (l->read || l->only_if_none)
        rc = jobq__mysql_do(handle, 0, show_limit, l);
    if (rc == 0 && !l->read && l->capacity < 0)
        rc = jobq__mysql_do(handle, MYSQL_TRANSACTION | MYSQL_DOUBTFUL, change_limit, l);
    l->capacity = l->capacity < 0 ? 0 : l->capacity;
    return rc;
}

/* ---- room ------------------------------------------------------------------------------------ */

int jobq__mysql_read_room(mysql_store *store, int64_t need, mysql_room *room)
{
    const mysql_arg arg = bytes_arg(room->queue);
    mysql_statement *rows = NULL;
    int64_t capacity = 0, count = 0;
    bool found = false;
    int rc = jobq__mysql_select(store, ROOM, &arg, &rows);

    if (rc == 0 && jobq__mysql_next(rows)) {
        capacity = jobq__mysql_number(rows, 0);
        room->left = jobq__mysql_number(rows, 1);
        room->crowded = jobq__mysql_number(rows, 2) > FOLD_ROWS;
    }
    jobq__mysql_end(rows);
    if (capacity <= 0)
        room->left = INT64_MAX; /* somebody has just lifted it */
    if (rc == 0 && room->left < need) {
        rc = jobq__mysql_ask(store, COUNT, &arg, &found, &count);
        room->left = capacity - count;
        room->crowded |= room->left >= FOLD_ROOM;
    }
    return rc;
}

int jobq__mysql_take_room(mysql_store *store, const mysql_room *room)
{
    const mysql_arg args[] = {bytes_arg(room->queue), number_arg(room->taken)};
    int64_t rc = room->taken ? jobq__mysql_run(store, TAKE, args) : 0;

    return rc < 0 ? (int)rc : 0;
}

typedef struct {
    jobq_slice queue;
    int64_t capacity, count;
    mysql_arg taken[MYSQL_MAX_BATCH];
    size_t taken_count;
} folding;

static int count_taken(mysql_store *store, folding *f)
{
    const mysql_arg queue = bytes_arg(f->queue);
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, TAKEN, &queue, &rows);

    f->taken_count = 0;
    while (rc == 0 && jobq__mysql_next(rows)) {
        f->count = jobq__mysql_number(rows, 1);
        if (!jobq__mysql_is_null(rows, 0) && f->taken_count < MYSQL_MAX_BATCH)
            f->taken[f->taken_count++] = number_arg(jobq__mysql_number(rows, 0));
    }
    jobq__mysql_end(rows);
    return rc;
}

static int fold(mysql_store *store, void *payload)
{
    folding *f = payload;
    mysql_arg args[] = {bytes_arg(f->queue), number_arg(0)};
    bool found = false;
    int64_t rc = jobq__mysql_ask(store, LOCK, args, &found, &f->capacity);

    if (rc < 0 || !found)
        return (int)rc;
    rc = count_taken(store, f);
    args[1].number = f->capacity - f->count;
    rc = rc ? rc : jobq__mysql_run(store, SET_ROOM, args);
    if (rc >= 0 && f->taken_count)
        rc = jobq__mysql_run_list(store, DROP, NULL, (mysql_list){f->taken, f->taken_count},
                                  (mysql_list){NULL, 0});
    return rc < 0 ? (int)rc : 0;
}

/* Only makes the next ones cheaper: whether it succeeds is of no interest. */
void jobq__mysql_fold_room(mysql_store *store, jobq_slice queue)
{
    folding *f = jobq__zalloc(sizeof(*f));

    if (!f)
        return;
    f->queue = queue;
    jobq__mysql_do(store, MYSQL_TRANSACTION, fold, f);
    jobq__error_clear();
    jobq__free(f);
}

typedef struct {
    jobq_batch *out;
    jobq_slice queues[32];
    size_t count;
} crowd;

static int find_crowded(mysql_store *store, void *payload)
{
    crowd *c = payload;
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, CROWDED, NULL, &rows);

    c->count = 0;
    while (rc == 0 && c->count < 32 && jobq__mysql_next(rows))
        if (!jobq__mysql_copy(rows, 0, c->out, &c->queues[c->count++]))
            rc = jobq__error_nomem();
    jobq__mysql_end(rows);
    return rc;
}

void jobq__mysql_fold_crowded(mysql_store *store)
{
    jobq_batch texts = {0};
    crowd c = {.out = &texts};

    if (jobq__mysql_do(store, 0, find_crowded, &c) == 0)
        for (size_t i = 0; i < c.count; i++)
            jobq__mysql_fold_room(store, c.queues[i]);
    jobq__error_clear();
    jobq__batch_free(&texts);
}
