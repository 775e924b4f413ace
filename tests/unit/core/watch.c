/* SPDX-License-Identifier: MIT
 *
 * Numbers per minute (N1), the conservation audit (F1, N5), retention (F4), forgiving ids.
 */
#include <jobqueue/jobqueue.h>

#include <sqlite3.h>

#include "core/queue.h"
#include "store.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- minutes --------------------------------------------------------------------------------- */

static void ends(jobq_queue *queue, jobq_ending ending)
{
    jobq_job *job;

    push(queue, "n", "tries", "9", NULL);
    job = reserve(queue);
    assert_non_null(job);
    assert_ok(jobq_job_settle(job, ending, ending == JOBQ_ENDED_RELEASED ? 60000 : 600000));
    jobq_job_free(job);
}

/* What of the last hour, all minutes together. */
static void sum(jobq_queue *queue, int64_t counts[JOBQ_MINUTE_FIELDS], int64_t *runs)
{
    jobq_minute_stats *list;
    int64_t before = 0;
    size_t n;

    memset(counts, 0, JOBQ_MINUTE_FIELDS * sizeof(*counts));
    *runs = 0;
    assert_ok(jobq_queue_minutes(queue, "q", 1, 60, &list, &n));
    for (size_t i = 0; i < n; i++) {
        assert_true(list[i].at_ms % 60000 == 0 && list[i].at_ms > before);
        before = list[i].at_ms;
        for (int k = 0; k < JOBQ_MINUTE_FIELDS; k++)
            counts[k] += list[i].counts[k];
        for (int k = 0; k < JOBQ_RUN_BUCKETS; k++)
            *runs += list[i].runs[k];
    }
    jobq_minutes_free(list);
}

static void counts_by_minute(void **state)
{
    jobq_queue *queue = *state;
    int64_t counts[JOBQ_MINUTE_FIELDS], runs;
    jobq_minute_stats *list;
    size_t n;

    ends(queue, JOBQ_ENDED_DONE);
    ends(queue, JOBQ_ENDED_DONE);
    ends(queue, JOBQ_ENDED_FAILED);
    ends(queue, JOBQ_ENDED_TIMED_OUT);
    ends(queue, JOBQ_ENDED_RELEASED);
    ends(queue, JOBQ_ENDED_FAILED_BY_HANDLER);
    sum(queue, counts, &runs);
    assert_int_equal(counts[JOBQ_MINUTE_DONE], 0); /* no write per job */
    jobq__queue_book_all(queue);
    sum(queue, counts, &runs);
    assert_int_equal(counts[JOBQ_MINUTE_PUSHED], 6);
    assert_int_equal(counts[JOBQ_MINUTE_DONE], 2);
    assert_int_equal(counts[JOBQ_MINUTE_FAILED], 3);
    assert_int_equal(counts[JOBQ_MINUTE_RETRIED], 2);
    assert_int_equal(counts[JOBQ_MINUTE_TIMED_OUT], 1);
    assert_int_equal(counts[JOBQ_MINUTE_RELEASED], 1);
    assert_int_equal(counts[JOBQ_MINUTE_CRASHED], 0);
    assert_int_equal(runs, 6);
    ends(queue, JOBQ_ENDED_DONE);
    jobq__clock_shift(0, 1100);
    assert_null(reserve(queue)); /* a second later it is told with what is done anyway */
    jobq__clock_shift(0, -1100);
    sum(queue, counts, &runs);
    assert_int_equal(counts[JOBQ_MINUTE_DONE], 3);
    assert_code(jobq_queue_minutes(queue, "q", 1, 0, &list, &n), JOBQ_EINVAL);
    assert_code(jobq_queue_minutes(queue, "q", 1, 1441, &list, &n), JOBQ_EINVAL);
    assert_said("minutes must be a whole number from 1 to 1440");
    assert_code(jobq_queue_minutes(queue, "a,b", 3, 1, &list, &n), JOBQ_EINVAL);
    assert_string_equal(jobq_minute_word(JOBQ_MINUTE_TIMED_OUT), "timed_out");
    assert_string_equal(jobq_minute_word((jobq_minute_field)99), "unknown");
}

/* What a handle has counted is told when it is closed. */
static void tells_at_the_end(void **state)
{
    char dsn[160], counted[160];
    int64_t counts[JOBQ_MINUTE_FIELDS], runs;
    jobq_queue *queue;

    (void)state;
    snprintf(dsn, sizeof(dsn), "sqlite:%s/end.db", jobq_test_folder());
    assert_ok(jobq_queue_new(dsn, NULL, &queue));
    ends(queue, JOBQ_ENDED_DONE);
    jobq_queue_disconnect(queue);
    ends(queue, JOBQ_ENDED_DONE);
    jobq_queue_free(queue);
    snprintf(counted, sizeof(counted), "%s", dsn);
    assert_ok(jobq_queue_new(counted, NULL, &queue));
    sum(queue, counts, &runs);
    assert_int_equal(counts[JOBQ_MINUTE_DONE], 2);
    jobq_queue_free(queue);
}

/* ---- audit ----------------------------------------------------------------------------------- */

typedef struct {
    char text[8192];
    int problems;
} report;

static void note(void *payload, const jobq_finding *finding)
{
    report *r = payload;
    size_t used = strlen(r->text);

    assert_string_equal(finding->check, "audit");
    assert_true(finding->grade != JOBQ_FINDING_PROBLEM || finding->advice);
    r->problems += finding->grade == JOBQ_FINDING_PROBLEM;
    snprintf(r->text + used, sizeof(r->text) - used, "%s\n", finding->text);
}

static int stop(void *payload, int64_t looked_at)
{
    (void)payload;
    return looked_at >= 0;
}

static void audits(void **state)
{
    jobq_queue *queue = *state;
    report r = {{0}, 0};
    jobq_job *job;

    for (int i = 0; i < 1203; i++) /* more than a page */
        push(queue, "n", NULL, NULL, NULL);
    push(queue, "n", "delay", "60", NULL);
    job = reserve(queue);
    assert_ok(jobq_job_fail(job)); /* and its hook is a job, too */
    jobq_job_free(job);
    job = reserve(queue);
    assert_int_equal(assert_ok(jobq_queue_audit(queue, note, NULL, &r)), 0);
    if (!strstr(r.text, "queue \"q\": 1201 ready, 1 delayed, 1 reserved, 0 done, 1 dead; each in "
                        "one state"))
        fail_msg("%s", r.text);
    assert_code(jobq_queue_audit(queue, note, stop, &r), JOBQ_ECALLBACK);
    assert_code(jobq_queue_audit(queue, NULL, NULL, NULL), JOBQ_EINVAL);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

/* A store that was tampered with: a job that stands nowhere is named. */
static void audit_names_the_strays(void **state)
{
    jobq_queue *queue = *state;
    report r = {{0}, 0};
    sqlite3 *db;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    push(queue, "n", NULL, NULL, NULL);
    assert_int_equal(sqlite3_open(strchr(jobq_queue_dsn(queue), ':') + 1, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DELETE FROM jobqueue_ready WHERE seq="
                                  "(SELECT min(seq) FROM jobqueue_job)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(assert_ok(jobq_queue_audit(queue, note, NULL, &r)), 1);
    assert_non_null(strstr(r.text, id));
    assert_non_null(strstr(r.text, "stands in no state"));
    assert_non_null(strstr(r.text, "queue \"q\": 1 ready"));
    assert_null(strstr(r.text, "each in one state"));
}

/* ---- doctor ---------------------------------------------------------------------------------- */

static void note_capacity(void *payload, const jobq_finding *finding)
{
    if (strcmp(finding->check, "capacity") == 0) {
        assert_int_equal(finding->grade, JOBQ_FINDING_NOTE);
        note(payload, &(jobq_finding){finding->grade, "audit", finding->text, finding->advice});
    }
}

/* Rules B4 and N5: pushes are being refused, and why. */
static void says_what_is_full(void **state)
{
    jobq_queue *queue = *state;
    report r = {{0}, 0};
    jobq_job *job;

    push(queue, "n", NULL, NULL, NULL);
    push(queue, "n", NULL, NULL, NULL);
    job = reserve(queue);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    assert_ok(jobq_queue_set_capacity(queue, "q", 1, 3));
    assert_ok(jobq_queue_doctor(queue, note_capacity, &r));
    assert_string_equal(r.text, "");
    assert_ok(jobq_queue_set_capacity(queue, "q", 1, 2));
    assert_ok(jobq_queue_doctor(queue, note_capacity, &r));
    assert_string_equal(r.text,
                        "queue \"q\" is full: 2 jobs, 1 of them dead, of 2 that it may hold\n");
}

/* ---- retention and ids ----------------------------------------------------------------------- */

/* Rule L3: an id that no job can have is one that no job has. */
static void finds_nobody_by_a_bad_id(void **state)
{
    jobq_info *info;

    assert_code(jobq_queue_cancel(*state, "no such id", 10, false), JOBQ_ENOTFOUND);
    assert_code(jobq_queue_cancel(*state, NULL, 0, false), JOBQ_ENOTFOUND);
    assert_code(jobq_queue_find(*state, "no such id", 10, &info), JOBQ_ENOTFOUND);
}

/* The advice of a schema that does not fit is its own, whatever the words are. */
static void knows_a_schema_refusal(void **state)
{
    jobq_queue *queue = *state, *other;
    struct jobq_error error;
    int64_t values[JOBQ_STATS];
    sqlite3 *db;
    char dsn[200];

    snprintf(dsn, sizeof(dsn), "sqlite:%s", strchr(jobq_queue_dsn(queue), ':') + 1);
    push(queue, "n", NULL, NULL, NULL);
    jobq_queue_disconnect(queue);
    assert_int_equal(sqlite3_open(strchr(dsn, ':') + 1, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE jobqueue_schema SET version=999", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_ok(jobq_queue_new(dsn, NULL, &other));
    assert_code(jobq_queue_stats(other, "q", 1, values), JOBQ_ECONF);
    jobq__error_save(&error);
    assert_true(error.flags & JOBQ__SCHEMA);
    jobq_queue_free(other);
}

#define on_sqlite(test)                             \
    {                                               \
#test, test, open_sqlite, close_store, NULL \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        on_both(counts_by_minute),
        cmocka_unit_test(tells_at_the_end),
        on_both(audits),
        on_sqlite(audit_names_the_strays),
        on_both(says_what_is_full),
        on_both(finds_nobody_by_a_bad_id),
        on_sqlite(knows_a_schema_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
