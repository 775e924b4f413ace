/* SPDX-License-Identifier: MIT
 *
 * Storing jobs: one INSERT, for many rows where there are many. The unique indexes judge; the
 * look-ups that tell a duplicate id from a held key run only when a row was refused. What has a
 * guard, replaces others or goes to a queue that is nearly full is stored by itself.
 *
 * Whether the limits of queues are those that the connection knows the INSERT compares itself: it
 * is refused when they have changed, and what was refused is begun anew with the new ones. A
 * comparison is good for CHECK_US, so that many single pushes in a row pay next to nothing for it.
 */
#include <stdio.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    COLUMNS = MYSQL_ITEM_ARGS + 4,
    ROWS_MAX = 1024,
    COPIES_MAX = 256,
    JUDGE_TRIES = 5,
    ROW_BYTES = 512,
    CHECK_US = 10000
};
#define STATEMENT_BYTES ((int64_t)4 << 20)

/* An assigned column can be used by those behind it. */
#define INSERT                                                                               \
    "INSERT INTO jobqueue_job(id, queue, name, version, ranking, unique_key, header, body, " \
    "holds, enqueued_at, base_at, available_at"
#define ROW                                         \
    ") VALUES {(?, ?, ?, ?, ?, ?, ?, ?, "           \
    "IF(unique_key IS NULL, NULL, 1), " NOW_MS ", " \
    "enqueued_at, "
#define TIMES ", place, due"
/* at, at, delay */
#define DUE "GREATEST(enqueued_at, IF(? > 0, ?, enqueued_at + ?)), "
#define NOW_OR_LATER "IF(available_at > enqueued_at, 2, 0)"
#define WHEN_LATER ", IF(available_at > enqueued_at, available_at, NULL))}"
/* The column takes no NULL: MYSQL_NULL_REFUSED. */
#define CHECKED(place) \
    "IF((SELECT capacity FROM jobqueue_limit WHERE queue='') = ?, " place ", NULL)"
#define ID_EXISTS "SELECT 1 FROM jobqueue_job WHERE id=?1"
#define HOLDER "SELECT id FROM jobqueue_job WHERE queue=?1 AND unique_key=?2 AND holds=1"

/* [timed][checked] */
static const char *const inserts[2][2] = {
    {INSERT ROW "enqueued_at)}", INSERT ", place" ROW "enqueued_at, " CHECKED("0") ")}"},
    {INSERT TIMES ROW DUE NOW_OR_LATER WHEN_LATER,
     INSERT TIMES ROW DUE CHECKED(NOW_OR_LATER) WHEN_LATER}};

typedef struct {
    jobq_push *items;
    size_t n;
    mysql_room *rooms; /* of the limited queues among them */
    size_t room_count, room_size;
} pushing;

static bool is_timed(const jobq_push *item)
{
    return item->at_ms > 0 || item->delay_ms > 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t bytes_of(const jobq_push *item)
{
    return (int64_t)(item->id.n + item->queue.n + item->name.n + item->unique.n + item->header.n +
                     item->body.n) +
           ROW_BYTES;
}

/* What the server takes at once; room is left for what a row gathers later. */
int64_t jobq__mysql_row_limit(const mysql_store *store)
{
    int64_t spare = store->max_packet / 4 < 262144 ? store->max_packet / 4 : 262144;

    return store->max_packet - spare;
}

/* Too large for the server: the others of the call are stored all the same (rule B3). */
static int refuse(const mysql_store *store, jobq_push *item)
{
    item->result = JOBQ_ELIMIT;
    return jobq__error_set_driver(JOBQ_ELIMIT, 0, "mysql", 0,
                                  "mysql: the body has %zu bytes, the server takes at most %lld "
                                  "(max_allowed_packet is %lld)",
                                  item->body.n,
                                  (long long)(jobq__mysql_row_limit(store) - ROW_BYTES),
                                  (long long)store->max_packet);
}

static mysql_room *room_of(const pushing *p, jobq_slice queue)
{
    for (size_t i = 0; i < p->room_count; i++)
        if (jobq__slice_equal(p->rooms[i].queue, queue))
            return &p->rooms[i];
    return NULL;
}

/* Is it stored by itself? `left` is how many are still to be stored, it among them. */
static bool is_special(const pushing *p, const jobq_push *item, size_t left)
{
    const mysql_room *room = p->room_count ? room_of(p, item->queue) : NULL;

    return item->guard || (item->on_duplicate == JOBQ_DUPLICATE_REPLACE && item->unique.p) ||
           (room && room->left < (int64_t)left);
}

/* So many of the items go into the next statement: one of few sizes where the text varies. */
static size_t chunk_of(const mysql_store *store, const pushing *p, const jobq_push *items, size_t n)
{
    int64_t bytes = 0, limit = jobq__mysql_row_limit(store);
    const size_t most = store->arrays ? ROWS_MAX : COPIES_MAX;
    size_t size = 1, fit = 0;

    limit = limit < STATEMENT_BYTES ? limit : STATEMENT_BYTES;
    while (fit < n && fit < most && !is_special(p, &items[fit], n - fit) &&
           (fit == 0 || bytes + bytes_of(&items[fit]) <= limit))
        bytes += bytes_of(&items[fit++]);
    while (size * 4 <= fit)
        size *= 4;
    return store->arrays ? fit : size;
}

/* ---- inserting ------------------------------------------------------------------------------- */

void jobq__mysql_item_args(mysql_arg args[MYSQL_ITEM_ARGS], const jobq_push *item)
{
    const mysql_arg row[MYSQL_ITEM_ARGS] = {bytes_arg(item->id),
                                            bytes_arg(item->queue),
                                            bytes_arg(item->name),
                                            number_arg(item->version),
                                            number_arg(JOBQ__TOP_PRIORITY - item->priority),
                                            bytes_arg(item->unique),
                                            bytes_arg(item->header),
                                            bytes_arg(item->body)};

    memcpy(args, row, sizeof(row));
}

/* `generation`: NULL when it is not checked. The arguments filled. */
static size_t fill_row(mysql_arg *args, const jobq_push *item, bool timed,
                       const int64_t *generation)
{
    size_t n = MYSQL_ITEM_ARGS;

    jobq__mysql_item_args(args, item);
    if (timed) {
        args[n] = args[n + 1] = number_arg(item->at_ms);
        args[n + 2] = number_arg(item->delay_ms > 0 ? item->delay_ms : 0);
        n += 3;
    }
    if (generation)
        args[n++] = number_arg(*generation);
    return n;
}

int64_t jobq__mysql_learn_anew(mysql_store *store, int64_t failed)
{
    struct jobq_error saved;
    int rc;

    if (jobq_error_native(jobq_error_last()) != MYSQL_NULL_REFUSED)
        return failed;
    jobq__error_save(&saved);
    rc = jobq__mysql_learn_limits(store);
    if (rc < 0)
        return rc;
    jobq__error_restore(&saved);
    store->transient = true;
    return failed;
}

static int64_t insert(mysql_store *store, const jobq_push *items, size_t n)
{
    mysql_arg few[4 * COLUMNS];
    mysql_arg *args = n <= 4 ? few : jobq__alloc(n * COLUMNS * sizeof(*args));
    const int64_t now_us = jobq__clock_mono_us();
    const bool check = n > 1 || now_us - store->limits.checked_us > CHECK_US;
    mysql_call call = {.list = {{args, 0}}};
    bool timed = false;
    int64_t rc;

    if (!args)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        timed |= is_timed(&items[i]);
    call.sql = inserts[timed][check];
    call.copies = store->arrays ? 1 : n;
    call.rows = store->arrays ? n : 1;
    for (size_t i = 0; i < n; i++)
        call.list[0].count += fill_row(args + call.list[0].count, &items[i], timed,
                                       check ? &store->limits.generation : NULL);
    rc = jobq__mysql_run_call(store, &call);
    if (args != few)
        jobq__free(args);
    if (rc < 0)
        return jobq__mysql_learn_anew(store, rc);
    if (check)
        store->limits.checked_us = now_us;
    return rc;
}

/* ---- judging --------------------------------------------------------------------------------- */

static int find_holder(mysql_store *store, jobq_push *item, bool *found_out)
{
    const mysql_arg args[] = {bytes_arg(item->queue), bytes_arg(item->unique)};
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_select(store, HOLDER, args, &rows);
    size_t n;

    if (rc < 0)
        return rc;
    *found_out = jobq__mysql_next(rows);
    if (*found_out) {
        n = jobq__mysql_length(rows, 0);
        n = n < sizeof(item->holder) ? n : sizeof(item->holder) - 1;
        jobq__mysql_read(rows, 0, item->holder, n);
        item->holder[n] = '\0';
        item->result = 1;
    }
    jobq__mysql_end(rows);
    return 0;
}

static int judge_id(mysql_store *store, jobq_push *item, bool *found_out)
{
    const mysql_arg id = bytes_arg(item->id);
    int64_t ignored;
    int rc = jobq__mysql_ask(store, ID_EXISTS, &id, found_out, &ignored);

    if (rc == 0 && *found_out)
        item->result = JOBQ_EEXISTS;
    return rc;
}

/* Why was the row refused? Not found: whoever was in the way has just gone. */
static int judge(mysql_store *store, jobq_push *item, bool *found_out)
{
    int rc = judge_id(store, item, found_out);

    if (rc == 0 && !*found_out && item->unique.p)
        rc = find_holder(store, item, found_out);
    return rc;
}

/* Alone: a lost answer leaves it open. */
static int64_t insert_one(mysql_store *store, const jobq_push *item)
{
    int64_t rc;

    store->in_doubt = !store->in_transaction;
    rc = insert(store, item, 1);
    store->in_doubt = false;
    return rc;
}

static int push_one(mysql_store *store, jobq_push *item)
{
    bool judged = false;
    int64_t rc = JOBQ_EEXISTS;

    for (int i = 0; i < JUDGE_TRIES && rc == JOBQ_EEXISTS && !judged; i++) {
        int failed = 0;

        rc = insert_one(store, item);
        if (rc == JOBQ_EEXISTS)
            failed = judge(store, item, &judged);
        if (failed < 0)
            return failed;
    }
    if (rc >= 0)
        item->result = 0;
    return rc < 0 && !judged ? (int)rc : 0;
}

/* A row that is refused takes the others with it: they are tried again in quarters, down to that
 * one. */
static int push_chunk(mysql_store *store, jobq_push *items, size_t n)
{
    const size_t quarter = (n + 3) / 4;
    int64_t rc;
    int failed = 0;

    if (n == 1)
        return push_one(store, items);
    rc = insert(store, items, n);
    for (size_t i = 0; i < n && rc >= 0; i++)
        items[i].result = 0;
    if (rc != JOBQ_EEXISTS)
        return rc < 0 ? (int)rc : 0;
    for (size_t i = 0; i < n && failed == 0; i += quarter)
        failed = push_chunk(store, items + i, n - i < quarter ? n - i : quarter);
    return failed;
}

/* What was stored of these takes room. */
static void account(const pushing *p, const jobq_push *items, size_t n)
{
    for (size_t i = 0; i < n && p->room_count; i++) {
        mysql_room *room = room_of(p, items[i].queue);
        const bool stored = items[i].result == 0 ||
                            (items[i].result == 2 &&
                             jobq__slice_equal(items[i].id, jobq__slice_text(items[i].holder)));

        if (!room || !stored)
            continue;
        room->left -= room->left < INT64_MAX;
        room->taken++;
    }
}

/* Whoever has the key may come and go between the look and the insert. */
static int push_replacing(mysql_store *store, jobq_push *item, bool fits)
{
    int64_t rc = JOBQ_EEXISTS;
    bool judged = false;

    for (int i = 0; i < JUDGE_TRIES && rc == JOBQ_EEXISTS && !judged; i++) {
        int failed = i == 0 && item->fresh_id ? 0 : judge_id(store, item, &judged);

        if (failed == 0 && !judged)
            failed = jobq__mysql_replace(store, item, fits, &judged);
        if (failed < 0 || judged)
            return failed;
        item->result = fits ? 0 : JOBQ_EFULL;
        rc = fits ? insert_one(store, item) : 0;
    }
    return rc < 0 && !judged ? (int)rc : 0;
}

/* A known id is a duplicate whatever the guard says, a held key is held in a full queue, too. */
static int push_special(mysql_store *store, const pushing *p, jobq_push *item)
{
    const mysql_room *room = room_of(p, item->queue);
    const bool fits = !room || room->left > 0;
    bool judged = false;
    int rc = 1;

    if (item->guard && item->result == JOBQ_EEXISTS)
        return 0;
    if (item->guard)
        rc = jobq__mysql_judge_guard(store, item->guard);
    if (rc <= 0) {
        item->result = JOBQ_EGUARD;
        return rc;
    }
    if (item->on_duplicate == JOBQ_DUPLICATE_REPLACE && item->unique.p)
        return push_replacing(store, item, fits);
    if (fits)
        return push_one(store, item);
    item->result = JOBQ_EFULL;
    return judge(store, item, &judged);
}

static int push_some(mysql_store *store, const pushing *p, size_t done, size_t *n_out)
{
    jobq_push *items = p->items + done;
    int rc = 0;

    *n_out = 1;
    if (bytes_of(items) > jobq__mysql_row_limit(store)) {
        if (refuse(store, items) < 0 && p->n == 1)
            rc = JOBQ_ELIMIT; /* alone it is told in the driver's words */
    } else if (is_special(p, items, p->n - done)) {
        rc = push_special(store, p, items);
    } else {
        *n_out = chunk_of(store, p, items, p->n - done);
        rc = push_chunk(store, items, *n_out);
    }
    if (rc == 0)
        account(p, items, *n_out);
    return rc;
}

static int push_all(mysql_store *store, const pushing *p)
{
    int rc = 0;

    for (size_t done = 0, n; done < p->n && rc == 0; done += n)
        rc = push_some(store, p, done, &n);
    for (size_t i = 0; i < p->room_count && rc == 0; i++)
        rc = jobq__mysql_take_room(store, &p->rooms[i]);
    return rc;
}

/* ---- before the transaction ------------------------------------------------------------------ */

static int add_room(mysql_store *store, pushing *p, jobq_slice queue)
{
    mysql_room *room;

    if (room_of(p, queue))
        return 0;
    if (p->room_count == p->room_size) {
        const size_t size = p->room_size ? p->room_size * 2 : 4;
        mysql_room *grown = jobq__realloc(p->rooms, size * sizeof(*grown));

        if (!grown)
            return jobq__error_nomem();
        p->rooms = grown;
        p->room_size = size;
    }
    room = &p->rooms[p->room_count++];
    *room = (mysql_room){.queue = queue};
    return jobq__mysql_read_room(store, (int64_t)p->n, room);
}

/* What is looked up for those that need it; the rest costs a comparison each. Looked up by itself:
 * the transaction of a guard locks all that it reads. */
static int prepare(mysql_store *store, pushing *p, bool *together, bool *guarded)
{
    int rc = 0;

    p->room_count = 0;
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        jobq_push *item = &p->items[i];
        bool found = false;

        item->result = 0;
        *guarded |= item->guard != NULL;
        if (item->guard && !item->fresh_id)
            rc = judge_id(store, item, &found);
        if (rc == 0 && jobq__mysql_is_limited(store, item->queue))
            rc = add_room(store, p, item->queue);
    }
    *together = p->n > 1 || p->room_count > 0 || *guarded;
    return rc;
}

static int push(mysql_store *store, void *payload)
{
    pushing *p = payload;
    bool together = false, guarded = false;
    int rc = prepare(store, p, &together, &guarded);

    /* What a guard has read stays so until the job is stored. */
    if (rc == 0 && guarded)
        rc = jobq__mysql_query(store, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    if (rc == 0 && together)
        rc = jobq__mysql_begin(store);
    return rc ? rc : push_all(store, p);
}

int jobq__mysql_push_follow(mysql_store *store, const jobq_push *follow)
{
    jobq_push item;
    const pushing p = {.items = &item, .n = 1};
    int rc;

    if (!follow)
        return 0;
    item = *follow;
    rc = push_all(store, &p);
    if (rc == 0)
        jobq__error_clear(); /* one that is there already is not stored again */
    return rc;
}

int jobq__mysql_push(void *handle, jobq_push *items, size_t n)
{
    pushing p = {.items = items, .n = n};
    int rc = jobq__mysql_do(handle, MYSQL_DOUBTFUL, push, &p);

    for (size_t i = 0; i < p.room_count && rc == 0; i++)
        if (p.rooms[i].crowded)
            jobq__mysql_fold_room(handle, p.rooms[i].queue);
    jobq__free(p.rooms);
    if (rc == 0)
        jobq__error_clear(); /* what was refused stands in the results */
    return rc;
}
