/* SPDX-License-Identifier: MIT
 *
 * Does every job stand in exactly one state (rule F1)? Its place says where it is taken from, its
 * due time which line of time it stands in: the two must agree. A page is one statement, which has
 * one snapshot, so that traffic does not show. Pages go by seq, over the jobs of all queues.
 */
#include "driver/answers.h"
#include "driver/cursor.h"
#include "driver/mysql/mysql.h"
#include "util/error.h"

/* ?1 the queue, ?2 behind it, ?3 so many. Of a follower: is there a holder? */
#define PAGE                                                                                     \
    "SELECT j.seq, j.queue=?1, j.place, j.due, w.worker IS NOT NULL, "                           \
    "j.place<>5 OR (j.holds=2 AND EXISTS(SELECT 1 FROM jobqueue_job h WHERE "                    \
    "h.queue=j.queue AND h.unique_key=j.unique_key AND h.holds=1)), IF(j.queue=?1, j.id, NULL) " \
    "FROM (SELECT seq FROM jobqueue_job FORCE INDEX (PRIMARY) WHERE seq>?2 "                     \
    "ORDER BY seq LIMIT ?3) p STRAIGHT_JOIN jobqueue_job j ON j.seq=p.seq "                      \
    "LEFT JOIN jobqueue_worker w ON w.worker=j.place ORDER BY j.seq"
enum { SEQ, OURS, PLACE, DUE, OWNED, LED, ID };
enum { READY = 1 << 0, DELAYED = 1 << 1, RESERVED = 1 << 2, DONE = 1 << 3, DEAD = 1 << 4 };

static unsigned state_of_place(int64_t place)
{
    static const unsigned states[] = {
        [PLACE_READY] = READY, [PLACE_TAKEN] = READY, [PLACE_DELAYED] = DELAYED,
        [PLACE_DONE] = DONE,   [PLACE_DEAD] = DEAD,   [PLACE_FOLLOWER] = DELAYED};

    if (place >= PLACE_WORKERS)
        return RESERVED;
    return place < 0 || place > PLACE_FOLLOWER ? 0 : states[place];
}

static unsigned state_of_due(const mysql_statement *rows)
{
    const int64_t due = jobq__mysql_number(rows, DUE);

    if (jobq__mysql_is_null(rows, DUE))
        return 0;
    return due < 0 ? DEAD : due < INT64_C(1) << 61 ? DELAYED : DONE;
}

/* In one that time has to end but will not, nobody ever finds it. */
static unsigned states_of(const mysql_statement *rows)
{
    const int64_t place = jobq__mysql_number(rows, PLACE);
    const unsigned stands = state_of_place(place), due = state_of_due(rows);
    const bool timed = place == PLACE_DELAYED || place == PLACE_DONE || place == PLACE_DEAD;

    return (timed && !due) || !jobq__mysql_number(rows, LED) ? 0 : stands | due;
}

static int judge(const mysql_statement *rows, jobq_audit *a, jobq_stray ***link)
{
    const unsigned states = states_of(rows);
    const bool ownerless = states & RESERVED && !jobq__mysql_number(rows, OWNED);
    jobq_slice id = {0};

    for (int i = 0; i < 5; i++)
        a->seen[i] += states == 1U << i;
    if (states && !(states & (states - 1)) && !ownerless)
        return 0;
    if (!jobq__mysql_copy(rows, ID, a->out, &id))
        return jobq__error_nomem();
    return jobq__stray_add(a, link, id, jobq__mysql_number(rows, SEQ), states, ownerless);
}

static int look(mysql_store *store, void *payload)
{
    jobq_audit *a = payload;
    jobq_stray **link = &a->strays;
    jobq__cursor cursor;
    int64_t place[3] = {0, 0, 0};
    mysql_statement *rows = NULL;
    mysql_arg args[3] = {bytes_arg(a->queue), number_arg(0), number_arg((int64_t)a->limit)};
    size_t count = 0;
    int rc = jobq__cursor_read(a->after, &cursor);

    memset(a->seen, 0, sizeof(a->seen));
    a->strays = NULL;
    a->next = jobq__slice(NULL, 0);
    args[1].number = rc == 0 && cursor.set ? cursor.part[0] : 0;
    rc = rc ? rc : jobq__mysql_select(store, PAGE, args, &rows);
    for (; rc == 0 && jobq__mysql_next(rows); count++) {
        place[0] = jobq__mysql_number(rows, SEQ);
        if (jobq__mysql_number(rows, OURS))
            rc = judge(rows, a, &link);
    }
    jobq__mysql_end(rows);
    return rc || count < a->limit ? rc : jobq__cursor_write(place, a->out, &a->next);
}

int jobq__mysql_audit(void *handle, jobq_audit *a)
{
    return jobq__mysql_do(handle, 0, look, a);
}
