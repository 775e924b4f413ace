/* SPDX-License-Identifier: MIT
 *
 * One question with everything an exchange or maintenance wants to know first: the time, the
 * worker's record, when something is due, whether anything is ready.
 */
#include "driver/mysql/mysql.h"
#include "util/alloc.h"
#include "util/error.h"

#define BY_DUE "FROM jobqueue_job FORCE INDEX (jobqueue_job_due) "
#define BY_LINE "FROM jobqueue_job FORCE INDEX (jobqueue_job_line) "
#define FIRST_DELAYED \
    "(SELECT due " BY_DUE "WHERE due>=0 AND due<" DUE_DONE " ORDER BY due LIMIT 1)"
#define FIRST_DONE \
    "(SELECT due-" DUE_DONE " " BY_DUE "WHERE due>=" DUE_DONE " ORDER BY due LIMIT 1)"
/* Of a live worker it does not matter whether it holds anything. */
#define FIRST_LAPSE                                       \
    "(SELECT MIN(" LAPSE_OF_W ") FROM jobqueue_worker w " \
    "WHERE w.id<>?2 AND "                                 \
    "(w.alive_until>" NOW_MS " OR EXISTS(SELECT 1 " BY_LINE "WHERE place=w.worker)))"
#define ANY_READY "EXISTS(SELECT 1 " BY_LINE "WHERE place IN (0, 1) AND queue IN ({?}))"
#define ANY_TAKEN "EXISTS(SELECT 1 " BY_LINE "WHERE place=1)"
#define STATE                                                                                 \
    "SELECT " NOW_MS ", IFNULL(v.worker, 0), IFNULL(v.alive_until>" NOW_MS ", 0), " ANY_TAKEN \
    ", " FIRST_DELAYED ", " FIRST_DONE ", " FIRST_LAPSE
#define RECORD " FROM (SELECT 1 AS one) o LEFT JOIN jobqueue_worker v ON v.id=?2"
#define LOOK "SELECT " ANY_READY ", " FIRST_DELAYED "-" NOW_MS
#define QUEUE_ADD "INSERT IGNORE INTO jobqueue_queue(name) VALUES(?1)"

static void earlier(int64_t *due, int64_t candidate)
{
    if (*due == 0 || candidate < *due)
        *due = candidate;
}

static void read_row(mysql_statement *rows, bool looked, mysql_state *out)
{
    out->now_ms = jobq__mysql_number(rows, 0);
    out->worker = jobq__mysql_number(rows, 1);
    out->alive = jobq__mysql_number(rows, 2);
    out->any_taken = jobq__mysql_number(rows, 3);
    out->next_due = 0;
    for (unsigned int i = 4; i < 6; i++)
        if (!jobq__mysql_is_null(rows, i))
            earlier(&out->next_due, jobq__mysql_number(rows, i));
    out->next_lapse = jobq__mysql_number(rows, 6);
    out->any_ready = looked && jobq__mysql_number(rows, 7);
}

/* The names as arguments; free it. */
static mysql_arg *queue_args(const jobq_slice *queues, size_t count)
{
    mysql_arg *args = jobq__alloc((count + 1) * sizeof(*args));

    for (size_t i = 0; i < count && args; i++)
        args[i] = bytes_arg(queues[i]);
    return args;
}

int jobq__mysql_read_state(mysql_store *store, jobq_slice worker, const jobq_slice *queues,
                           size_t queue_count, mysql_state *out)
{
    mysql_arg args[2] = {number_arg(0), bytes_arg(worker)}, *names;
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_started_at(store, &args[0].number);

    if (rc < 0)
        return rc;
    if (queue_count == 0) {
        rc = jobq__mysql_select(store, STATE RECORD, args, &rows);
    } else {
        names = queue_args(queues, queue_count);
        rc = names ? jobq__mysql_select_list(store, STATE ", " ANY_READY RECORD, args,
                                             (mysql_list){names, queue_count}, &rows)
                   : jobq__error_nomem();
        jobq__free(names);
    }
    if (rc < 0)
        return rc;
    if (jobq__mysql_next(rows))
        read_row(rows, queue_count > 0, out);
    else
        rc = jobq__error_set_driver(JOBQ_EPROTO, 0, "mysql", 0, "mysql: a state without a row");
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_look(mysql_store *store, const jobq_slice *queues, size_t queue_count,
                     int64_t *due_in_out)
{
    mysql_arg *names = queue_args(queues, queue_count);
    mysql_statement *rows = NULL;
    int rc =
        names ? jobq__mysql_select_list(store, LOOK, NULL, (mysql_list){names, queue_count}, &rows)
              : jobq__error_nomem();

    jobq__free(names);
    if (rc < 0)
        return rc;
    *due_in_out = -1;
    if (jobq__mysql_next(rows)) {
        rc = jobq__mysql_number(rows, 0) != 0;
        if (!jobq__mysql_is_null(rows, 1))
            *due_in_out = jobq__mysql_number(rows, 1) > 0 ? jobq__mysql_number(rows, 1) : 0;
    }
    jobq__mysql_end(rows);
    return rc;
}

/* ---- names of queues ------------------------------------------------------------------------- */

static bool is_known(const mysql_store *store, jobq_slice name)
{
    size_t n = store->queue_count < QUEUES_CACHED ? store->queue_count : QUEUES_CACHED;

    for (size_t i = 0; i < n; i++)
        if (store->queues[i].n == name.n && memcmp(store->queues[i].name, name.p, name.n) == 0)
            return true;
    return false;
}

int jobq__mysql_know_queue(mysql_store *store, jobq_slice name)
{
    const mysql_arg arg = bytes_arg(name);
    mysql_queue *entry;
    int64_t rc;

    if (is_known(store, name))
        return 0;
    rc = jobq__mysql_run(store, QUEUE_ADD, &arg);
    if (rc < 0)
        return (int)rc;
    entry = &store->queues[store->queue_count++ % QUEUES_CACHED];
    entry->n = name.n < sizeof(entry->name) ? name.n : sizeof(entry->name);
    memcpy(entry->name, name.p, entry->n);
    return 0;
}
