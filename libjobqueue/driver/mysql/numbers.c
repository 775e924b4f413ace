/* SPDX-License-Identifier: MIT
 *
 * What happened minute by minute (rule N1): one row for each number that is not 0. Slots 0 to 6 are
 * the counts, from 16 on the buckets of run times.
 */
#include <stdlib.h>

#include "driver/answers.h"
#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/error.h"

#define ADD                                                                      \
    "INSERT INTO jobqueue_minute(queue, minute, slot, n) VALUES {(?, ?, ?, ?)} " \
    "ON DUPLICATE KEY UPDATE n=n+VALUES(n)"
#define SHOW                                       \
    "SELECT minute, slot, n FROM jobqueue_minute " \
    "WHERE queue=?1 AND minute>=GREATEST(?2, ?3) ORDER BY minute, slot"
#define CUT "DELETE FROM jobqueue_minute WHERE minute<?1 LIMIT 10000"
#define NOW "SELECT " NOW_MS

enum { COLUMNS = 4, ROWS = 256, DAY = 24 * 60 };

typedef struct {
    const jobq_minute **minutes; /* in the order of the keys, so that two do not meet crosswise */
    size_t count;
    mysql_arg args[COLUMNS * ROWS];
    size_t rows;
} booking;

static int add_rows(mysql_store *store, booking *b)
{
    const size_t copies = jobq__mysql_copies(b->rows);
    mysql_call call = {.sql = ADD, .list = {{b->args, copies * COLUMNS}}, .copies = copies};
    int64_t rc;

    if (b->rows == 0)
        return 0;
    for (; b->rows < copies; b->rows++) { /* nothing more to the last one */
        memcpy(b->args + b->rows * COLUMNS, b->args + (b->rows - 1) * COLUMNS,
               COLUMNS * sizeof(b->args[0]));
        b->args[b->rows * COLUMNS + 3] = number_arg(0);
    }
    store->in_doubt = !store->in_transaction;
    rc = jobq__mysql_run_call(store, &call);
    store->in_doubt = false;
    b->rows = 0;
    return rc < 0 ? (int)rc : 0;
}

static int add_slot(mysql_store *store, booking *b, const jobq_minute *m, int slot, int64_t n)
{
    mysql_arg *row = b->args + b->rows * COLUMNS;

    if (n == 0)
        return 0;
    row[0] = bytes_arg(m->queue);
    row[1] = number_arg(m->minute);
    row[2] = number_arg(slot);
    row[3] = number_arg(n);
    return ++b->rows == ROWS ? add_rows(store, b) : 0;
}

static int book(mysql_store *store, void *payload)
{
    booking *b = payload;
    int rc = 0;

    b->rows = 0;
    for (size_t k = 0; k < b->count && rc == 0; k++) {
        const jobq_minute *m = b->minutes[k];

        for (int i = 0; i < JOBQ_MINUTE_COUNTS && rc == 0; i++)
            rc = add_slot(store, b, m, i, m->counts[i]);
        for (int i = 0; i < JOBQ_MINUTE_BUCKETS && rc == 0; i++)
            rc = add_slot(store, b, m, JOBQ__MINUTE_BUCKETS_AT + i, m->run_ms[i]);
    }
    return rc ? rc : add_rows(store, b);
}

static int compare(const void *left, const void *right)
{
    const jobq_minute *a = *(const jobq_minute *const *)left;
    const jobq_minute *b = *(const jobq_minute *const *)right;
    const size_t n = a->queue.n < b->queue.n ? a->queue.n : b->queue.n;
    const int order = memcmp(a->queue.p, b->queue.p, n);

    if (order || a->queue.n != b->queue.n)
        return order ? order : a->queue.n < b->queue.n ? -1 : 1;
    return a->minute < b->minute ? -1 : a->minute > b->minute;
}

static int cut(mysql_store *store, void *payload)
{
    int64_t rc = jobq__mysql_run(store, CUT, payload);

    return rc < 0 ? (int)rc : 0;
}

/* Once for each minute that is booked, by whoever does: what is older than a day goes, and
 * other things that somebody has to look after now and then. */
static void clean(mysql_store *store, int64_t minute)
{
    mysql_arg oldest = number_arg(minute - DAY);

    if (minute <= store->cleaned_minute)
        return;
    store->cleaned_minute = minute;
    jobq__mysql_do(store, 0, cut, &oldest);
    jobq__mysql_fold_crowded(store);
}

int jobq__mysql_book(void *handle, const jobq_minute *minutes, size_t n)
{
    booking *b = jobq__zalloc(sizeof(*b));
    const jobq_minute **sorted = jobq__alloc((n + 1) * sizeof(jobq_minute *));
    int64_t last = 0;
    int rc;

    for (size_t i = 0; i < n && sorted; i++) {
        sorted[i] = &minutes[i];
        last = minutes[i].minute > last ? minutes[i].minute : last;
    }
    if (b && sorted) {
        qsort(sorted, n, sizeof(jobq_minute *), compare);
        b->minutes = sorted;
        b->count = n;
        /* One statement is one step; more than one are made one. */
        rc = jobq__mysql_do(handle, MYSQL_DOUBTFUL | (n > ROWS / 32 ? MYSQL_TRANSACTION : 0), book,
                            b);
    } else {
        rc = jobq__error_nomem();
    }
    jobq__free(b);
    jobq__free(sorted);
    if (rc == 0)
        clean(handle, last);
    return rc;
}

/* ---- showing --------------------------------------------------------------------------------- */

/* Rows of one minute follow each other. */
static int read_slot(const mysql_statement *rows, jobq_minutes *m, jobq_minute ***link,
                     jobq_minute **last)
{
    const int64_t minute = jobq__mysql_number(rows, 0);

    if (!*last || (*last)->minute != minute)
        *last = jobq__minute_add(m, link, minute);
    if (!*last)
        return jobq__error_code();
    jobq__minute_put(*last, jobq__mysql_number(rows, 1), jobq__mysql_number(rows, 2));
    return 0;
}

static int show(mysql_store *store, void *payload)
{
    jobq_minutes *m = payload;
    jobq_minute *last = NULL, **link = &m->minutes;
    mysql_statement *rows = NULL;
    mysql_arg args[3] = {bytes_arg(m->queue), number_arg(m->from_minute)};
    bool found = false;
    int rc = jobq__mysql_ask(store, NOW, NULL, &found, &m->now_ms);

    m->minutes = NULL;
    args[2] = number_arg(m->now_ms / 60000 - DAY + 1);
    rc = rc ? rc : jobq__mysql_select(store, SHOW, args, &rows);
    while (rc == 0 && jobq__mysql_next(rows))
        rc = read_slot(rows, m, &link, &last);
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_minutes(void *handle, jobq_minutes *m)
{
    return jobq__mysql_do(handle, 0, show, m);
}
