/* SPDX-License-Identifier: MIT
 *
 * Storing jobs: one INSERT, of many rows where there are many. The unique indexes judge; the
 * look-ups that tell a duplicate id from a held key run only when a row was refused.
 */
#include <stdio.h>

#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/error.h"

enum { COLUMNS = 11, ROWS_MAX = 256, JUDGE_TRIES = 5, ROW_BYTES = 512 };
#define STATEMENT_BYTES ((int64_t)4 << 20)

/* An assigned column can be used by those behind it. */
#define INSERT                                                                               \
    "INSERT INTO jobqueue_job(id, queue, name, version, ranking, unique_key, header, body, " \
    "holds, enqueued_at, base_at, available_at, place, due) VALUES "
#define ROW_BEGIN \
    "(?, ?, ?, ?, ?, ?, ?, ?, IF(unique_key IS NULL, NULL, 1), " NOW_MS ", enqueued_at, "
#define PUSH_NOW INSERT "{" ROW_BEGIN "enqueued_at, 0, NULL)}"
/* ... at, at, delay */
#define PUSH_TIMED                                                                \
    INSERT "{" ROW_BEGIN "GREATEST(enqueued_at, IF(? > 0, ?, enqueued_at + ?)), " \
           "IF(available_at > enqueued_at, 2, 0), "                               \
           "IF(available_at > enqueued_at, available_at, NULL))}"
#define ID_EXISTS "SELECT 1 FROM jobqueue_job WHERE id=?1"
#define HOLDER "SELECT id FROM jobqueue_job WHERE queue=?1 AND unique_key=?2 AND holds=1"

typedef struct {
    jobq_push *items;
    size_t n;
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
static int64_t row_limit(const mysql_store *store)
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
                                  item->body.n, (long long)(row_limit(store) - ROW_BYTES),
                                  (long long)store->max_packet);
}

/* So many of the items go into the next statement: one of few sizes. */
static size_t chunk_of(const mysql_store *store, const jobq_push *items, size_t n)
{
    int64_t bytes = 0, limit = row_limit(store);
    size_t size = 1, fit = 0;

    limit = limit < STATEMENT_BYTES ? limit : STATEMENT_BYTES;
    while (fit < n && fit < ROWS_MAX && (fit == 0 || bytes + bytes_of(&items[fit]) <= limit))
        bytes += bytes_of(&items[fit++]);
    while (size * 4 <= fit)
        size *= 4;
    return size;
}

/* ---- inserting ------------------------------------------------------------------------------- */

static size_t fill_row(mysql_arg *args, const jobq_push *item, bool timed)
{
    const mysql_arg row[COLUMNS] = {bytes_arg(item->id),
                                    bytes_arg(item->queue),
                                    bytes_arg(item->name),
                                    number_arg(item->version),
                                    number_arg(JOBQ__TOP_PRIORITY - item->priority),
                                    bytes_arg(item->unique),
                                    bytes_arg(item->header),
                                    bytes_arg(item->body),
                                    number_arg(item->at_ms),
                                    number_arg(item->at_ms),
                                    number_arg(item->delay_ms > 0 ? item->delay_ms : 0)};
    size_t n = timed ? COLUMNS : COLUMNS - 3;

    memcpy(args, row, n * sizeof(*args));
    return n;
}

static int64_t insert(mysql_store *store, const jobq_push *items, size_t n)
{
    mysql_arg few[4 * COLUMNS], *args = n <= 4 ? few : jobq__alloc(n * COLUMNS * sizeof(*args));
    mysql_call call = {.sql = PUSH_NOW, .copies = n};
    bool timed = false;
    int64_t rc;

    if (!args)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        timed |= is_timed(&items[i]);
    call.sql = timed ? PUSH_TIMED : PUSH_NOW;
    call.list[0].args = args;
    for (size_t i = 0; i < n; i++)
        call.list[0].count += fill_row(args + call.list[0].count, &items[i], timed);
    rc = jobq__mysql_run_call(store, &call);
    if (args != few)
        jobq__free(args);
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

/* Why was the row refused? Not found: whoever was in the way has just gone. */
static int judge(mysql_store *store, jobq_push *item, bool *found_out)
{
    const mysql_arg id = bytes_arg(item->id);
    int64_t ignored;
    int rc = jobq__mysql_ask(store, ID_EXISTS, &id, found_out, &ignored);

    if (rc == 0 && *found_out)
        item->result = JOBQ_EEXISTS;
    if (rc == 0 && !*found_out && item->unique.p)
        rc = find_holder(store, item, found_out);
    return rc;
}

static int push_one(mysql_store *store, jobq_push *item)
{
    bool judged = false;
    int64_t rc = JOBQ_EEXISTS;

    for (int i = 0; i < JUDGE_TRIES && rc == JOBQ_EEXISTS && !judged; i++) {
        store->in_doubt = !store->in_transaction;
        rc = insert(store, item, 1);
        store->in_doubt = false;
        if (rc == JOBQ_EEXISTS) {
            int failed = judge(store, item, &judged);

            if (failed < 0)
                return failed;
        }
    }
    if (rc >= 0)
        item->result = 0;
    return rc < 0 && !judged ? (int)rc : 0;
}

static int push_chunk(mysql_store *store, jobq_push *items, size_t n)
{
    int64_t rc = n > 1 ? insert(store, items, n) : JOBQ_EEXISTS;
    int failed = 0;

    if (rc != JOBQ_EEXISTS) {
        for (size_t i = 0; i < n && rc >= 0; i++)
            items[i].result = 0;
        return rc < 0 ? (int)rc : 0;
    }
    for (size_t i = 0; i < n && failed == 0; i++)
        failed = push_one(store, &items[i]);
    return failed;
}

static int push_all(mysql_store *store, void *payload)
{
    const pushing *p = payload;
    int rc = 0;

    for (size_t done = 0, n; done < p->n && rc == 0; done += n) {
        jobq_push *items = p->items + done;

        n = chunk_of(store, items, p->n - done);
        if (bytes_of(items) <= row_limit(store))
            rc = push_chunk(store, items, n);
        else if (refuse(store, items) < 0 && p->n == 1)
            rc = JOBQ_ELIMIT; /* alone it is told in the driver's words */
    }
    return rc;
}

int jobq__mysql_push_follow(mysql_store *store, const jobq_push *follow)
{
    jobq_push item;
    pushing p = {&item, 1};
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
    pushing p = {items, n};
    int how = MYSQL_DOUBTFUL | (n > 1 ? MYSQL_TRANSACTION : 0);
    int rc = jobq__mysql_do(handle, how, push_all, &p);

    if (rc == 0)
        jobq__error_clear(); /* what was refused stands in the results */
    return rc;
}
