/* SPDX-License-Identifier: MIT
 *
 * Showing jobs without taking them: one by id, and lists in pages. A due delayed job and one whose
 * lease ran out are seen as ready whether maintenance has been by or not (rule N1).
 */
#include "driver/cursor.h"
#include "driver/mysql/mysql.h"
#include "util/error.h"

/* Columns of a shown job, in the order read_shown reads them. ?1 is the server's start. */
#define SEEN_AS \
    "CASE WHEN j.place<>2 THEN j.place WHEN j.available_at<=" NOW_MS " THEN 0 ELSE 2 END"
#define KEPT_UNTIL "CASE j.place WHEN 3 THEN j.due-" DUE_DONE " WHEN 4 THEN j.keep_until END"
#define SHOWN                                                                                \
    "j.seq, j.queue, j.id, j.name, j.unique_key, j.version, j.ranking, j.available_at, "     \
    "j.died_at, j.reason, j.taken, " SEEN_AS ", "                                            \
    "IFNULL(" LAPSE_OF_W ">" NOW_MS ", 0), " LAPSE_OF_W ", w.id, j.cancel, " COUNTER_COLUMNS \
    ", " KEPT_UNTIL
#define TEXTS ", j.header, j.body, j.error, j.history, j.outcome "
#define NO_TEXTS ", NULL, NULL, NULL, NULL, NULL "
#define JOINED "LEFT JOIN jobqueue_worker w ON w.worker=j.place "
#define FIND                                            \
    "SELECT " SHOWN TEXTS "FROM jobqueue_job j " JOINED \
    "WHERE j.id=?2 AND (?3 IS NULL OR j.queue=?3)"
enum {
    SEQ,
    QUEUE,
    ID,
    NAME,
    UNIQUE,
    VERSION,
    RANKING,
    AVAILABLE_AT,
    DIED_AT,
    REASON,
    TAKEN,
    SEEN_PLACE,
    ALIVE,
    LAPSE,
    WORKER,
    CANCEL,
    COUNTERS,
    KEEP_UNTIL = 27,
    HEADER,
    BODY,
    ERROR,
    HISTORY,
    OUTCOME,
    PLACES
};

/* A page: `places` gives the places p0, p1, p2 behind the cursor (?4, ?5, ?6) of jobs s of the
 * queue ?2; ?3 = one more than the limit. */
#define PAGE(texts, places)                                        \
    "SELECT " SHOWN texts ", l.p0, l.p1, l.p2 "                    \
    "FROM (" places ") l JOIN jobqueue_job j ON j.seq=l.s " JOINED \
    "ORDER BY l.p0, l.p1, l.p2 LIMIT ?3"
#define BEHIND                                                                            \
    "(ranking>?4 OR (ranking=?4 AND (available_at>?5 OR (available_at=?5 AND seq>?6)))) " \
    "ORDER BY ranking, available_at, seq LIMIT ?3)"
#define STANDS "(SELECT ranking AS p0, available_at AS p1, seq AS p2, seq AS s FROM "
#define BY_LINE "jobqueue_job FORCE INDEX (jobqueue_job_line) "
#define BY_DUE "jobqueue_job FORCE INDEX (jobqueue_job_due) "
#define READY STANDS BY_LINE "WHERE place=0 AND queue=?2 AND " BEHIND
#define TAKEN_BACK STANDS BY_LINE "WHERE place=1 AND queue=?2 AND " BEHIND
#define DUE STANDS BY_DUE "WHERE due>=0 AND due<=" NOW_MS " AND queue=?2 AND " BEHIND
#define HELD "jobqueue_worker w JOIN " BY_LINE "ON place=w.worker WHERE " LAPSE_OF_W
#define EXPIRED STANDS HELD "<=" NOW_MS " AND queue=?2 AND " BEHIND
#define READY_PLACES READY " UNION ALL " TAKEN_BACK " UNION ALL " DUE " UNION ALL " EXPIRED
/* The line is sorted by ranking first: each of the ten gives its first ones. */
#define DELAYED_OF(ranking)                                                          \
    "(SELECT 0 AS p0, available_at AS p1, seq AS p2, seq AS s FROM " BY_LINE         \
    "WHERE place=2 AND queue=?2 AND ranking=" ranking " AND "                        \
    "available_at>" NOW_MS " AND (available_at>?5 OR (available_at=?5 AND seq>?6)) " \
    "ORDER BY available_at, seq LIMIT ?3)"
#define MORE_OF(ranking) " UNION ALL " DELAYED_OF(ranking)
/* Those that wait for a unique key, each queue's few. */
#define FOLLOWERS                                                                       \
    " UNION ALL (SELECT 0 AS p0, available_at AS p1, seq AS p2, seq AS s FROM " BY_LINE \
    "WHERE place=5 AND queue=?2 AND (available_at>?5 OR (available_at=?5 AND seq>?6)) " \
    "ORDER BY available_at, seq LIMIT ?3)"
#define DELAYED_PLACES \
    DELAYED_OF("0")    \
    MORE_OF("1")       \
    MORE_OF("2")       \
    MORE_OF("3")       \
    MORE_OF("4")       \
    MORE_OF("5")       \
    MORE_OF("6")       \
    MORE_OF("7")       \
    MORE_OF("8")       \
    MORE_OF("9")       \
    FOLLOWERS
#define RESERVED_PLACES                                                  \
    "SELECT 0 AS p0, 0 AS p1, seq AS p2, seq AS s FROM " HELD ">" NOW_MS \
    " AND queue=?2 AND seq>?6 ORDER BY seq LIMIT ?3"
#define DONE_PLACES                                                                     \
    "SELECT 0 AS p0, 0 AS p1, seq AS p2, seq AS s "                                     \
    "FROM jobqueue_job FORCE INDEX (jobqueue_job_line) WHERE place=3 AND queue=?2 AND " \
    "seq>?6 ORDER BY seq LIMIT ?3"
/* Cursor and order go backwards: newest first. ?7 name, ?8 reason, ?9 died at the latest. */
#define DEAD_PLACES                                                                     \
    "SELECT 0 AS p0, -died_at AS p1, -seq AS p2, seq AS s "                             \
    "FROM jobqueue_job FORCE INDEX (jobqueue_job_due) WHERE due<0 AND "                 \
    "(due<-?5-" DUE_DEAD " OR (due=-?5-" DUE_DEAD " AND seq<-?6)) AND "                 \
    "(?2 IS NULL OR queue=?2) AND (?7 IS NULL OR name=?7) AND (?8=0 OR reason=?8) AND " \
    "(?9=0 OR due<=" NOW_MS "-?9-" DUE_DEAD ") ORDER BY due DESC, seq DESC LIMIT ?3"

/* ---- showing --------------------------------------------------------------------------------- */

static void read_numbers(const mysql_statement *rows, jobq_record *r)
{
    r->version = (int32_t)jobq__mysql_number(rows, VERSION);
    r->priority = (uint8_t)(JOBQ__TOP_PRIORITY - jobq__mysql_number(rows, RANKING));
    r->available_at_ms = jobq__mysql_number(rows, AVAILABLE_AT);
    r->died_at_ms = jobq__mysql_number(rows, DIED_AT);
    r->reason = (uint8_t)jobq__mysql_number(rows, REASON);
    r->taken_back = jobq__mysql_number(rows, TAKEN) != 0;
    r->cancel = (uint8_t)jobq__mysql_number(rows, CANCEL);
    r->keep_until_ms = jobq__mysql_number(rows, KEEP_UNTIL);
    jobq__mysql_read_counters(rows, COUNTERS, r);
}

/* The state people see; sets who holds it. False: no memory. */
static bool read_state(const mysql_statement *rows, jobq_batch *out, jobq_record *r)
{
    static const uint8_t states[] = {[PLACE_READY] = 0, [PLACE_TAKEN] = 0, [PLACE_DELAYED] = 1,
                                     [PLACE_DONE] = 3,  [PLACE_DEAD] = 4,  [PLACE_FOLLOWER] = 1};
    int64_t place = jobq__mysql_number(rows, SEEN_PLACE);

    if (place < PLACE_WORKERS) {
        r->state = place >= 0 && place <= PLACE_FOLLOWER ? states[place] : 0;
        return true;
    }
    if (!jobq__mysql_number(rows, ALIVE))
        return true; /* its lease ran out: ready */
    r->state = 2;
    r->reserved_until_ms = jobq__mysql_number(rows, LAPSE);
    return jobq__mysql_copy(rows, WORKER, out, &r->reserved_by);
}

static bool split_history(jobq_slice packed, jobq_batch *out, jobq_record *r)
{
    const unsigned char *p = packed.p;
    size_t left = packed.n;

    if (!packed.p)
        return true;
    r->history = jobq_batch_alloc(out, JOBQ__HISTORY_MAX * sizeof(*r->history));
    if (!r->history)
        return false;
    while (left >= 4 && r->history_count < JOBQ__HISTORY_MAX) {
        size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];

        if (n > left - 4)
            break;
        r->history[r->history_count++] = jobq__slice(p + 4, n);
        p += 4 + n;
        left -= 4 + n;
    }
    return true;
}

static int read_shown(const mysql_statement *rows, jobq_batch *out)
{
    jobq_record *r = jobq_batch_add(out);
    jobq_slice history;

    if (!r)
        return jobq__error_nomem();
    read_numbers(rows, r);
    if (!jobq__mysql_copy(rows, QUEUE, out, &r->queue) ||
        !jobq__mysql_copy(rows, ID, out, &r->id) || !jobq__mysql_copy(rows, NAME, out, &r->name) ||
        !jobq__mysql_copy(rows, UNIQUE, out, &r->unique) || !read_state(rows, out, r) ||
        !jobq__mysql_copy(rows, HEADER, out, &r->header) ||
        !jobq__mysql_copy(rows, BODY, out, &r->body) ||
        !jobq__mysql_copy(rows, ERROR, out, &r->error) ||
        !jobq__mysql_copy(rows, OUTCOME, out, &r->outcome) ||
        !jobq__mysql_copy(rows, HISTORY, out, &history) || !split_history(history, out, r))
        return jobq__error_nomem();
    return 0;
}

typedef struct {
    jobq_slice id, queue; /* queue absent: any */
    jobq_batch *out;
} finding;

static int find(mysql_store *store, void *payload)
{
    const finding *f = payload;
    mysql_arg args[] = {number_arg(0), bytes_arg(f->id), bytes_arg(f->queue)};
    mysql_statement *rows = NULL;
    int rc = jobq__mysql_started_at(store, &args[0].number);

    rc = rc ? rc : jobq__mysql_select(store, FIND, args, &rows);
    if (rc == 0)
        rc = jobq__mysql_next(rows) ? read_shown(rows, f->out) : jobq__refuse_id(f->id);
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out)
{
    finding f = {id, queue, out};

    return jobq__mysql_do(handle, 0, find, &f);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const char *const pages[][2] = {
    {PAGE(TEXTS, READY_PLACES), PAGE(NO_TEXTS, READY_PLACES)},
    {PAGE(TEXTS, DELAYED_PLACES), PAGE(NO_TEXTS, DELAYED_PLACES)},
    {PAGE(TEXTS, RESERVED_PLACES), PAGE(NO_TEXTS, RESERVED_PLACES)},
    {PAGE(TEXTS, DONE_PLACES), PAGE(NO_TEXTS, DONE_PLACES)},
    {PAGE(TEXTS, DEAD_PLACES), PAGE(NO_TEXTS, DEAD_PLACES)},
};

static void fill_args(const jobq_listing *l, const jobq__cursor *cursor, mysql_arg args[9])
{
    args[1] = bytes_arg(l->queue);
    args[2] = number_arg((int64_t)l->limit + 1);
    for (int i = 0; i < 3; i++)
        args[3 + i] = number_arg(cursor->set ? cursor->part[i] : INT64_C(-4000000000000000000));
    args[6] = bytes_arg(l->name);
    args[7] = number_arg(l->reason);
    args[8] = number_arg(l->older_than_ms > 0 ? l->older_than_ms : 0);
}

static int read_page(mysql_statement *rows, jobq_listing *l)
{
    int64_t place[3] = {0, 0, 0};
    size_t count = 0;
    int rc = 0;

    while (rc == 0 && jobq__mysql_next(rows)) {
        if (count == l->limit) { /* there is one more */
            rc = jobq__cursor_write(place, l->out, &l->last);
            l->next = l->last;
            return rc;
        }
        count++;
        for (unsigned int i = 0; i < 3; i++)
            place[i] = jobq__mysql_number(rows, PLACES + i);
        rc = read_shown(rows, l->out);
    }
    return rc < 0 || count == 0 ? rc : jobq__cursor_write(place, l->out, &l->last);
}

static int list(mysql_store *store, void *payload)
{
    jobq_listing *l = payload;
    mysql_statement *rows = NULL;
    mysql_arg args[9];
    jobq__cursor cursor;
    int rc = jobq__cursor_read(l->after, &cursor);

    l->next = l->last = jobq__slice(NULL, 0);
    args[0] = number_arg(0);
    fill_args(l, &cursor, args);
    rc = rc ? rc : jobq__mysql_started_at(store, &args[0].number);
    rc = rc ? rc : jobq__mysql_select(store, pages[l->state][l->keys_only], args, &rows);
    rc = rc ? rc : read_page(rows, l);
    jobq__mysql_end(rows);
    return rc;
}

int jobq__mysql_list(void *handle, jobq_listing *l)
{
    return jobq__mysql_do(handle, 0, list, l);
}
