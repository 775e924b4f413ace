/* SPDX-License-Identifier: MIT
 *
 * One question with everything an exchange or maintenance wants to know first: the time, the
 * worker's record, when something is due, whether anything is ready.
 */
#include "driver/mysql/state.h"
#include "util/alloc.h"
#include "util/error.h"

#define LOOK "SELECT " ANY_READY ", " FIRST_DELAYED "-" NOW_MS ", " CONTROL
#define QUEUE_ADD "INSERT IGNORE INTO jobqueue_queue(name) VALUES(?1)"

static void earlier(int64_t *due, int64_t candidate)
{
    if (*due == 0 || candidate < *due)
        *due = candidate;
}

void jobq__mysql_read_state_row(const mysql_statement *rows, bool looked, mysql_state *out)
{
    out->now_ms = jobq__mysql_number(rows, 0);
    out->worker = jobq__mysql_number(rows, 1);
    out->alive = jobq__mysql_number(rows, 2);
    out->any_taken = jobq__mysql_number(rows, 3);
    out->next_due = 0;
    for (unsigned int i = 4; i < 7; i++)
        if (!jobq__mysql_is_null(rows, i))
            earlier(&out->next_due, jobq__mysql_number(rows, i));
    out->next_lapse = jobq__mysql_number(rows, 7);
    out->control = jobq__mysql_number(rows, 8);
    out->looked = looked;
    out->any_ready = looked && jobq__mysql_number(rows, 9);
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
        jobq__mysql_read_state_row(rows, queue_count > 0, out);
    else
        rc = jobq__error_set_driver(JOBQ_EPROTO, 0, "mysql", 0, "mysql: a state without a row");
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_look(mysql_store *store, const jobq_slice *queues, size_t queue_count,
                     int64_t *due_in_out, int64_t *control_out)
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
        *control_out = jobq__mysql_number(rows, 2);
    }
    jobq__mysql_end(rows);
    return rc;
}

/* ---- names of queues ------------------------------------------------------------------------- */

bool jobq__mysql_is_known(const mysql_store *store, jobq_slice name)
{
    size_t n = store->queue_count < QUEUES_CACHED ? store->queue_count : QUEUES_CACHED;

    if (jobq__queue_is_hidden(name))
        return true;
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

    if (jobq__mysql_is_known(store, name))
        return 0;
    rc = jobq__mysql_run(store, QUEUE_ADD, &arg);
    if (rc < 0)
        return (int)rc;
    entry = &store->queues[store->queue_count++ % QUEUES_CACHED];
    entry->n = name.n < sizeof(entry->name) ? name.n : sizeof(entry->name);
    memcpy(entry->name, name.p, entry->n);
    return 0;
}
