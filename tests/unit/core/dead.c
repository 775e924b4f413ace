/* SPDX-License-Identifier: MIT
 *
 * Lists, dead jobs and counts: rules F1, F4, N1.
 */
#include <jobqueue/jobqueue.h>

#include "store.h"

static void bury(jobq_queue *queue, const char *name, char id[129])
{
    jobq_job *job;

    push(queue, name, NULL, NULL, id);
    job = reserve(queue);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
}

static void lists_by_pages(void **state)
{
    jobq_queue *queue = *state;
    char ids[5][129];
    char cursor[512] = "";
    size_t seen = 0;
    jobq_list *list;

    for (int i = 0; i < 5; i++)
        push(queue, "n", NULL, NULL, ids[i]);
    do {
        assert_ok(jobq_queue_jobs(queue, "q", 1, JOBQ_READY, 2, cursor[0] ? cursor : NULL, &list));
        for (size_t i = 0; i < jobq_list_count(list); i++)
            assert_string_equal(jobq_info_text(jobq_list_get(list, i), JOBQ_INFO_ID, NULL),
                                ids[seen++]);
        snprintf(cursor, sizeof(cursor), "%s", jobq_list_next(list) ? jobq_list_next(list) : "");
        jobq_list_free(list);
    } while (cursor[0] && seen < 5);
    assert_int_equal(seen, 5);
    assert_code(jobq_queue_jobs(queue, "q", 1, JOBQ_READY, 0, NULL, &list), JOBQ_EINVAL);
    assert_code(jobq_queue_jobs(queue, "q", 1, JOBQ_READY, 1001, NULL, &list), JOBQ_EINVAL);
    assert_code(jobq_queue_jobs(queue, "", 0, JOBQ_READY, 1, NULL, &list), JOBQ_EINVAL);
    assert_code(jobq_queue_jobs(queue, "q", 1, (jobq_state)7, 1, NULL, &list), JOBQ_EINVAL);
}

/* An info that was taken outlives its list. */
static void gives_infos_away(void **state)
{
    jobq_queue *queue = *state;
    jobq_list *list;
    jobq_info *info;

    push(queue, "n", NULL, NULL, NULL);
    assert_ok(jobq_queue_jobs(queue, "q", 1, JOBQ_READY, 10, NULL, &list));
    info = jobq_list_take(list, 0);
    assert_null(jobq_list_get(list, 0));
    assert_null(jobq_list_take(list, 1));
    jobq_list_free(list);
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_NAME, NULL), "n");
    assert_null(jobq_info_text(info, JOBQ_INFO_REASON, NULL));
    assert_false(jobq_info_error(info, NULL, NULL, NULL, NULL));
    jobq_info_free(info);
    jobq_info_free(NULL);
    jobq_list_free(NULL);
}

static void filters_dead_jobs(void **state)
{
    jobq_queue *queue = *state;
    jobq_filter filter = {.size = sizeof(filter), .queue = "q", .name = "a"};
    char first[129], last[129];
    jobq_list *list;

    bury(queue, "a", first);
    bury(queue, "b", last);
    assert_ok(jobq_queue_dead(queue, NULL, 10, NULL, &list));
    assert_int_equal(jobq_list_count(list), 2);
    assert_string_equal(jobq_info_text(jobq_list_get(list, 0), JOBQ_INFO_ID, NULL),
                        last); /* newest first */
    jobq_list_free(list);
    assert_ok(jobq_queue_dead(queue, &filter, 10, NULL, &list));
    assert_int_equal(jobq_list_count(list), 1);
    assert_string_equal(jobq_info_text(jobq_list_get(list, 0), JOBQ_INFO_ID, NULL), first);
    jobq_list_free(list);
    filter = (jobq_filter){.size = sizeof(filter), .reason = "expired"};
    assert_ok(jobq_queue_dead(queue, &filter, 10, NULL, &list));
    assert_int_equal(jobq_list_count(list), 0);
    jobq_list_free(list);
    filter.reason = "bored";
    assert_code(jobq_queue_dead(queue, &filter, 10, NULL, &list), JOBQ_EINVAL);
    assert_said("attempts_exhausted");
    filter = (jobq_filter){.size = sizeof(filter), .older_than_ms = -1};
    assert_code(jobq_queue_dead(queue, &filter, 10, NULL, &list), JOBQ_EINVAL);
    filter.size = 0;
    assert_code(jobq_queue_dead(queue, &filter, 10, NULL, &list), JOBQ_EINVAL);
}

static void mends_by_ids(void **state)
{
    jobq_queue *queue = *state;
    char id[129];
    int results[3] = {7, 7, 7};
    jobq_job *job;

    bury(queue, "a", id);
    {
        const char *const ids[] = {id, "unknown", ""};

        assert_int_equal(
            assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_RETRY, ids, 3, true, results)), 1);
        assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 1); /* only said */
        assert_int_equal(
            assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_RETRY, ids, 3, false, results)), 1);
        assert_int_equal(results[0], 0);
        assert_int_equal(results[1], JOBQ_ENOTFOUND);
        assert_int_equal(results[2], JOBQ_ENOTFOUND);
        assert_int_equal(
            assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_RETRY, ids, 1, false, results)),
            0); /* waits now */
        job = reserve(queue);
        assert_string_equal(jobq_job_id(job), id);
        assert_int_equal(jobq_job_get(job, JOBQ_JOB_FAILURES), 0); /* counters fresh */
        assert_int_equal(
            assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_FORGET, ids, 1, false, NULL)),
            0); /* runs */
        assert_ok(jobq_job_fail(job));
        jobq_job_free(job);
        assert_int_equal(
            assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_FORGET, ids, 1, false, NULL)), 1);
    }
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 0);
    assert_code(jobq_queue_mend_ids(queue, 7, NULL, 0, false, NULL), JOBQ_EINVAL);
}

/* Rule F4: an id given twice is one job, on whatever pages of the list it stands. */
static void mends_an_id_once(void **state)
{
    enum { N = 1203 };
    static const char *ids[N];
    static char unknown[N][16];
    static int results[N];
    jobq_queue *queue = *state;
    char id[129];

    bury(queue, "a", id);
    for (int i = 0; i < N; i++) {
        snprintf(unknown[i], sizeof(unknown[i]), "u%d", i % 600);
        ids[i] = i % 401 == 0 ? id : unknown[i]; /* places 0, 401, 802 */
        results[i] = 7;
    }
    assert_int_equal(assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_FORGET, ids, N, true, results)),
                     1);
    assert_int_equal(
        assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_FORGET, ids, N, false, results)), 1);
    for (int i = 0; i < N; i++) {
        bool first = i == 0 || (i % 401 != 0 && i < 600) || i == 600 || i == 600 + 401;

        assert_int_equal(results[i], i != 0 && first ? JOBQ_ENOTFOUND : 0);
    }
    assert_int_equal(assert_ok(jobq_queue_mend_ids(queue, JOBQ_DEAD_RETRY, ids, N, false, NULL)),
                     0);
}

static int stop_at_once(void *payload, int64_t done)
{
    (void)payload;
    return done > 0;
}

/* More than one page, one whose key is held again, one run cut short and started again. */
static void mends_by_filter(void **state)
{
    enum { N = 620 };
    jobq_queue *queue = *state;
    jobq_filter filter = {.size = sizeof(filter), .queue = "q"};
    int64_t skipped = -1;
    jobq_job *job;

    for (int i = 0; i < N; i++)
        push(queue, "n", NULL, NULL, NULL);
    push(queue, "n", "unique", "k", NULL);
    while ((job = reserve(queue)) != NULL) {
        assert_ok(jobq_job_fail(job));
        jobq_job_free(job);
    }
    push(queue, "n", "unique", "k", NULL);
    assert_int_equal(
        assert_ok(jobq_queue_mend(queue, JOBQ_DEAD_RETRY, &filter, true, &skipped, NULL, NULL)), N);
    assert_int_equal(skipped, 1);
    assert_code(jobq_queue_mend(queue, JOBQ_DEAD_RETRY, &filter, false, NULL, stop_at_once, NULL),
                JOBQ_ECALLBACK);
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD),
                     N + 1 - 499); /* the newest of the page is the held one */
    assert_int_equal(
        assert_ok(jobq_queue_mend(queue, JOBQ_DEAD_RETRY, &filter, false, &skipped, NULL, NULL)),
        N - 499);
    assert_int_equal(skipped, 1);
    assert_int_equal(stat(queue, JOBQ_STAT_READY), N + 1);
    assert_int_equal(
        assert_ok(jobq_queue_mend(queue, JOBQ_DEAD_FORGET, NULL, false, NULL, NULL, NULL)), 1);
    assert_int_equal(stat(queue, JOBQ_STAT_DEAD), 0);
}

static void counts(void **state)
{
    jobq_queue *queue = *state;
    char **names;
    size_t n;
    jobq_job *job;

    assert_int_equal(stat(queue, JOBQ_STAT_OLDEST_READY_AGE_MS), -1);
    push(queue, "n", NULL, NULL, NULL);
    push(queue, "n", NULL, NULL, NULL);
    push(queue, "n", "delay", "60", NULL);
    push(queue, "n", "queue", "another \xc3\xa9", NULL);
    job = reserve(queue);
    assert_int_equal(stat(queue, JOBQ_STAT_READY), 1);
    assert_int_equal(stat(queue, JOBQ_STAT_DELAYED), 1);
    assert_int_equal(stat(queue, JOBQ_STAT_RESERVED), 1);
    assert_int_equal(stat(queue, JOBQ_STAT_BACKLOG), 3);
    assert_true(stat(queue, JOBQ_STAT_OLDEST_READY_AGE_MS) >= 0);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_ok(jobq_queue_names(queue, &names, &n));
    assert_int_equal(n, 2);
    assert_string_equal(names[0], "another \xc3\xa9");
    assert_string_equal(names[1], "q");
    jobq_names_free(names, n);
    jobq_names_free(NULL, 0);
}

static void knows_the_states(void **state)
{
    jobq_state s;

    (void)state;
    for (int i = 0; i < JOBQ_STATES; i++) {
        assert_ok(jobq_state_parse(jobq_state_word((jobq_state)i), &s));
        assert_int_equal(s, i);
    }
    assert_code(jobq_state_parse("asleep", &s), JOBQ_EINVAL);
    assert_said("ready, delayed, reserved, done or dead");
    assert_string_equal(jobq_state_word((jobq_state)9), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both(lists_by_pages), on_both(gives_infos_away),          on_both(filters_dead_jobs),
        on_both(mends_by_ids),   on_both(mends_by_filter),           on_both(mends_an_id_once),
        on_both(counts),         cmocka_unit_test(knows_the_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
