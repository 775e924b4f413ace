/* SPDX-License-Identifier: MIT
 *
 * What becomes of a job, end to end on every store: a push, a worker with children, and the job as
 * the store has it afterwards (rules A7, A9, B2, C4, C5, D1, D3, D4, E1-E3, F2-F5, G1, I2, J1, N3).
 */
#include "harness/stores.h"
#include "process/pool.h"

#include "core/queue.h"
#include "util/clock.h"

/* ---- how a job stands ------------------------------------------------------------------------ */

static int64_t number_of(pool *p, const char *id, jobq_info_number_field which)
{
    jobq_info *info;
    int64_t n;

    assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
    n = jobq_info_number(info, which);
    jobq_info_free(info);
    return n;
}

/* "dead crashed 0 3 1: crashed crashed": state, reason, failures, crashes, releases, what the
 * attempts did. "gone" when there is no such job. */
static const char *story_of(pool *p, const char *id)
{
    static char text[512];
    const char *reason, *outcome;
    jobq_info *info;
    size_t n;

    if (jobq_queue_find(p->queue, id, strlen(id), &info) < 0)
        return "gone";
    reason = jobq_info_text(info, JOBQ_INFO_REASON, NULL);
    n = (size_t)snprintf(text, sizeof(text), "%s %s %d %d %d:",
                         jobq_state_word((jobq_state)jobq_info_number(info, JOBQ_INFO_STATE)),
                         reason ? reason : "-", (int)jobq_info_number(info, JOBQ_INFO_FAILURES),
                         (int)jobq_info_number(info, JOBQ_INFO_CRASHES),
                         (int)jobq_info_number(info, JOBQ_INFO_RELEASES));
    for (size_t i = 0; jobq_info_attempt(info, i, NULL, NULL, NULL, &outcome, NULL, NULL); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", outcome);
    jobq_info_free(info);
    return text;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct {
    const char *rule;
    const char *name;
    int arg;
    const char *push, *handler, *worker; /* options of each, of which the first one wins */
    int begun;                           /* how often the handler began */
    const char *story;
} row;

static const row rows[] = {
    /* rule C4: tries limits failures and crashes; a release costs nothing and has its own cap */
    {"C4", "fail", 0, "tries=2", "", "", 2, "dead attempts_exhausted 2 0 0: failed failed"},
    {"C4", "lets_go", 5, "tries=1", "", "", 6, "gone"},
    {"C4", "lets_go", 9, "tries=1", "", "max_releases=2", 3,
     "dead released_too_often 0 0 3: released released released"},
    {"C4", "varies", 0, "tries=3", "", "", 4, "gone"},
    /* rule C5: a job that kills its process does not circle for ever */
    {"C5", "crash", 9, "tries=0", "", "", 3, "dead crashed 0 3 0: crashed crashed crashed"},
    {"C5", "crash", 11, "tries=0", "max_crashes=1", "max_crashes=5", 1,
     "dead crashed 0 1 0: crashed"},
    /* rule B2: what is given at push wins, then the handler's word, then the worker's */
    {"B2", "fail", 0, "tries=1", "tries=3", "tries=5", 1, "dead attempts_exhausted 1 0 0: failed"},
    {"B2", "fail", 0, "", "tries=2", "tries=5", 2, "dead attempts_exhausted 2 0 0: failed failed"},
    {"B2", "fail", 0, "", "", "tries=1", 1, "dead attempts_exhausted 1 0 0: failed"},
    {"B2", "nap", 60000, "tries=1", "timeout=0.1", "timeout=50", 1,
     "dead timed_out 1 0 0: timed_out"},
    {"B2", "nap", 200, "tries=1 timeout=50", "timeout=0.05", "", 1, "gone"},
    {"B2", "fail", 0, "tries=2 backoff=0", "backoff=500", "backoff=900", 2,
     "dead attempts_exhausted 2 0 0: failed failed"},
    {"B2", "lets_go", 9, "", "max_releases=1", "max_releases=5", 2,
     "dead released_too_often 0 0 2: released released"},
    /* rules D1, D3, D4 */
    {"D1", "soils", 0, "tries=1", "", "", 1, "dead attempts_exhausted 1 0 0: cleanup_failed"},
    {"D3", "gives_up", 0, "", "", "", 1, "dead failed_by_handler 1 0 0: failed"},
    {"D4", "exit", 3, "tries=2", "", "", 2, "dead attempts_exhausted 2 0 0: exited exited"},
    /* rule E2 */
    {"E2", "later", 0, "tries=2 backoff=500", "", "", 2,
     "dead attempts_exhausted 2 0 0: failed failed"},
    {"E2", "later", 500000, "tries=2 backoff=0", "", "", 1, "delayed - 1 0 0: failed"},
    {"E2", "hopeless", 0, "", "", "", 1, "dead not_retryable 1 0 0: failed"},
    {"E2", "fail", 0, "tries=5", "", "dont_retry=Other,Trouble", 1,
     "dead not_retryable 1 0 0: failed"},
    {"E2", "fail", 0, "tries=2", "dont_retry=Other", "dont_retry=Trouble", 2,
     "dead attempts_exhausted 2 0 0: failed failed"},
    {"E2", "fail", 0, "tries=0", "", "max_exceptions=2", 2,
     "dead attempts_exhausted 2 0 0: failed failed"},
    {"E2", "fail", 0, "tries=0", "max_exceptions=1", "max_exceptions=2", 1,
     "dead attempts_exhausted 1 0 0: failed"},
    {"E2", "exit", 3, "tries=2", "", "max_exceptions=1", 2, /* no exception */
     "dead attempts_exhausted 2 0 0: exited exited"},
    {"E2", "fail", 0, "tries=2 retry_until=300", "", "", 2,
     "dead attempts_exhausted 2 0 0: failed failed"},
    /* it stops retries, not the first attempt */
    {"E2", "fail", 0, "retry_until=0.001", "", "", 1, "dead deadline_passed 1 0 0: failed"},
    /* rule E3 */
    {"E3", "note", 0, "expires=0.001", "", "", 0, "dead expired 0 0 0:"},
    {"E3", "note", 0, "expires=0.001 on_expire=drop", "", "", 0, "gone"},
    {"E3", "fail", 0, "expires=300 tries=1", "", "", 1, "dead attempts_exhausted 1 0 0: failed"},
    /* rule F2: of several limits the last attempt decides */
    {"F2", "crash", 9, "tries=1", "", "max_crashes=1", 1, "dead crashed 0 1 0: crashed"},
    {"F2", "deaf", 60000, "tries=1 timeout=0.1", "", "timeout_grace=0.1", 1,
     "dead timed_out 1 0 0: timed_out"},
    /* rule F3: without patience it is dead at once */
    {"F3", "nobody", 0, "", "", "unknown_for=0", 0, "dead unknown_name 0 0 0: unknown_name"},
    {"F3", "note", 0, "version=7", "", "unknown_for=0", 0,
     "dead unsupported_version 0 0 0: unsupported_version"},
    {"F3", "nobody", 0, "", "", "", 0, "delayed - 0 0 0:"},
    /* rule I2 */
    {"I2", "nap", 60000, "tries=5 timeout=0.1", "", "fail_on_timeout=1", 1,
     "dead timed_out 1 0 0: timed_out"},
    {"I2", "nap", 60000, "tries=2 timeout=0.1", "fail_on_timeout=0", "fail_on_timeout=1", 2,
     "dead timed_out 2 0 0: timed_out timed_out"},
    /* rule G1: keep_done */
    {"G1", "note", 0, "", "", "keep_done=60", 1, "done - 0 0 0: done"},
    {"G1", "note", 0, "", "keep_done=0", "keep_done=60", 1, "gone"},
};

/* Each job with a worker of its own; backoff is 0 where nothing is said. A failed job never changes
 * the exit code (rule J1). */
static void check_row(pool *p, const row *r)
{
    const int before = pool_ledger(p, "begin");
    char id[129], worker[256];

    p->handler_options = r->handler;
    snprintf(worker, sizeof(worker), "backoff=0 %s stop_when_empty=1", r->worker);
    strcpy(id, pool_push(p, r->name, r->arg, r->push));
    if (pool_run(p, worker) == 0 && pool_ledger(p, "begin") - before == r->begun &&
        strcmp(story_of(p, id), r->story) == 0)
        return;
    pool_show(p);
    fail_msg("rule %s: %s %d push(%s) handler(%s) worker(%s): \"%s\" after %d beginnings, wanted "
             "\"%s\" after %d",
             r->rule, r->name, r->arg, r->push, r->handler, r->worker, story_of(p, id),
             pool_ledger(p, "begin") - before, r->story, r->begun);
}

static void test_rows(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(*state, &rows[i]);
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* Rule C4: `attempt` is failures + crashes + 1, whatever else happened to the job. */
static void test_c4_attempt(void **state)
{
    pool *p = *state;

    pool_push(p, "varies", 0, "backoff=0");
    assert_int_equal(pool_run(p, "stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "attempt 1"), 1);
    assert_int_equal(pool_ledger(p, "attempt 2"), 1);
    assert_int_equal(pool_ledger(p, "attempt 3"), 2); /* before and after its release */
}

/* Rule E1: the k-th wait is the k-th entry, the last one repeats, and none is shorter. */
static void test_e1_backoff(void **state)
{
    static const int64_t waits_ms[] = {200, 400, 400};
    pool *p = *state;
    int64_t started, ended, before = 0;
    jobq_info *info;
    char id[129];

    strcpy(id, pool_push(p, "fail", 0, "tries=4 backoff=0.2,0.4"));
    pool_start(p, "jitter=0");
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
    for (size_t i = 0; i < 4; i++) {
        assert_true(jobq_info_attempt(info, i, &started, &ended, NULL, NULL, NULL, NULL));
        if (i > 0) /* whole milliseconds on both sides */
            assert_in_range(started - before, waits_ms[i - 1] - 2, waits_ms[i - 1] + 1500);
        before = ended;
    }
    jobq_info_free(info);
}

/* Rule E2: retry_until alone is the only limit: more than the three tries there would be. */
static void test_e2_retry_until_alone(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "fail", 0, "retry_until=3 backoff=0"));
    pool_start(p, "jitter=0");
    wait_until(pool_stat(p, JOBQ_STAT_DEAD) == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(strncmp(story_of(p, id), "dead deadline_passed ", 21), 0);
    assert_true(number_of(p, id, JOBQ_INFO_FAILURES) > 3);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Rules F1, F4, F5, N3: a dead job is put back as it was pushed, its counters fresh, its enqueue
 * time kept; of twelve attempts the last ten are told. */
static void test_f4_put_back(void **state)
{
    pool *p = *state;
    const char *ids[1], *class_name, *message;
    int64_t enqueued_ms;
    jobq_info *info;
    char id[129];

    strcpy(id, pool_push(p, "fail", 0, "tries=12 backoff=0"));
    ids[0] = id;
    enqueued_ms = number_of(p, id, JOBQ_INFO_ENQUEUED_AT_MS);
    for (int round = 1; round <= 2; round++) {
        assert_int_equal(pool_run(p, "stop_when_empty=1"), 0);
        assert_int_equal(pool_ledger(p, "begin fail"), 12 * round);
        assert_int_equal(number_of(p, id, JOBQ_INFO_FAILURES), 12);
        assert_int_equal(number_of(p, id, JOBQ_INFO_ENQUEUED_AT_MS), enqueued_ms);
        assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
        assert_true(jobq_info_attempt(info, 9, NULL, NULL, NULL, NULL, NULL, NULL));
        assert_false(jobq_info_attempt(info, 10, NULL, NULL, NULL, NULL, NULL, NULL));
        assert_true(jobq_info_error(info, &class_name, &message, NULL, NULL));
        assert_string_equal(class_name, "Trouble");
        assert_string_equal(message, "it went wrong");
        jobq_info_free(info);
        assert_int_equal(jobq_queue_mend_ids(p->queue, JOBQ_DEAD_RETRY, ids, 1, false, NULL), 1);
        assert_int_equal(strncmp(story_of(p, id), "ready - 0 0 0:", 14), 0);
        assert_int_equal(number_of(p, id, JOBQ_INFO_ENQUEUED_AT_MS), enqueued_ms);
    }
}

/* Rule F5: errors=class keeps the class name and nothing that a message might give away. */
static void test_f5_class_only(void **state)
{
    pool *p = *state;
    const char *class_name, *message;
    jobq_info *info;
    char id[129];

    strcpy(id, pool_push(p, "fail", 0, "tries=1"));
    assert_int_equal(pool_run(p, "errors=class stop_when_empty=1"), 0);
    assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
    assert_true(jobq_info_error(info, &class_name, &message, NULL, NULL));
    assert_string_equal(class_name, "Trouble");
    assert_true(!message || !message[0]);
    assert_true(jobq_info_attempt(info, 0, NULL, NULL, NULL, NULL, &class_name, &message));
    assert_string_equal(class_name, "Trouble");
    assert_true(!message || !message[0]);
    jobq_info_free(info);
}

/* Rules A7, C6, F2: a job that nobody can read is dead, its bytes as they were; the ones behind it
 * run, and putting it back does not make it readable. */
static void test_a7_undecodable(void **state)
{
    static const char *const ids[] = {"broken"};
    pool *p = *state;
    jobq_push item = {.id = jobq__slice_text("broken"),
                      .queue = jobq__slice_text("default"),
                      .name = jobq__slice_text("note"),
                      .header = jobq__slice_text("\x01\xc1 no header"),
                      .body = jobq__slice_text("\xff\xfe"),
                      .version = 1};
    jobq_info *info;
    const void *body;
    size_t n;

    assert_ok(jobq__store_push(p->queue->store, &item, 1));
    pool_push(p, "note", 0, NULL);
    for (int round = 1; round <= 2; round++) {
        assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
        assert_string_equal(story_of(p, "broken"), round == 1
                                                       ? "dead undecodable 0 0 0: failed"
                                                       : "dead undecodable 0 0 0: failed failed");
        assert_int_equal(pool_ledger(p, "begin"), 1);
        assert_true(pool_said(p, "Failed: note broken for good (undecodable): "));
        assert_ok(jobq_queue_find(p->queue, "broken", 6, &info));
        body = jobq_info_body(info, &n, NULL);
        assert_int_equal(n, 2);
        assert_memory_equal(body, "\xff\xfe", 2);
        assert_code(jobq_info_check(info), JOBQ_EPAYLOAD);
        jobq_info_free(info);
        assert_int_equal(jobq_queue_mend_ids(p->queue, JOBQ_DEAD_RETRY, ids, 1, false, NULL), 1);
    }
}

/* Rule A9: what a later library wrote waits for a newer worker; it never dies of it. */
static void test_a9_newer(void **state)
{
    pool *p = *state;
    jobq_push item = {.id = jobq__slice_text("newer"),
                      .queue = jobq__slice_text("default"),
                      .name = jobq__slice_text("note"),
                      .header = jobq__slice_text("\x63 a later form"),
                      .body = jobq__slice_text("x"),
                      .version = 1};

    assert_ok(jobq__store_push(p->queue->store, &item, 1));
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "stop_when_empty=1 unknown_for=0"), 0);
    assert_string_equal(story_of(p, "newer"), "delayed - 0 0 0:");
    assert_int_equal(pool_ledger(p, "end note"), 1);
    assert_true(pool_said(p, "error: job newer (\"note\") was written by a newer version"));
}

/* ---- names that nobody knows ----------------------------------------------------------------- */

static void note_finding(void *payload, const jobq_finding *finding)
{
    if (finding->grade == JOBQ_FINDING_PROBLEM && strcmp(finding->check, "handlers") == 0)
        snprintf(payload, 256, "%s", finding->text);
}

/* Rule F3: put aside for ten seconds, uncounted, and said once, though there are three of them. */
static void test_f3_put_aside(void **state)
{
    pool *p = *state;
    char *output, id[129], found[256] = "";
    const char *line;

    pool_push(p, "nobody", 0, NULL);
    pool_push(p, "nobody", 0, NULL);
    strcpy(id, pool_push(p, "nobody", 0, NULL));
    pool_push(p, "note", 0, NULL); /* those behind it run */
    assert_int_equal(pool_run(p, "stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 1);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DELAYED), 3);
    assert_string_equal(story_of(p, id), "delayed - 0 0 0:");
    assert_in_range(number_of(p, id, JOBQ_INFO_AVAILABLE_AT_MS) -
                        number_of(p, id, JOBQ_INFO_ENQUEUED_AT_MS),
                    10000, 30000);
    assert_int_equal(number_of(p, id, JOBQ_INFO_PUT_ASIDE), 1);
    assert_ok(jobq_queue_doctor(p->queue, note_finding, found)); /* rule N5: and it is found */
    assert_string_equal(found, "queue \"default\" has 3 jobs that nobody alive has a handler for, "
                               "the first one is \"nobody\" version 1");
    output = pool_output(p);
    line = strstr(output, "error: no handler here for \"nobody\" version 1");
    assert_non_null(line);
    assert_null(strstr(line + 10, "no handler here for \"nobody\""));
    free(output);
}

/* Rule F3: while a live worker of that queue announces the name, the job comes back every second
 * and the time allowed does not run, so that a deploy in steps harms nothing. */
static void test_f3_live_worker(void **state)
{
    pool *old = *state, knows;
    char id[129];

    pool_open_at(&knows, old->dsn, NULL);
    pool_push(old, "deaf", 4000, NULL);
    pool_start(&knows, "processes=1 prefetch=0");
    wait_until(pool_ledger(&knows, "begin deaf") == 1, 20); /* it takes nothing more for now */
    old->without = "note";
    pool_start(old, "processes=1 unknown_for=1");
    strcpy(id, pool_push(old, "note", 0, NULL));
    wait_until(pool_ledger(&knows, "end deaf") == 1, 20);
    wait_until(pool_ledger(&knows, "end note") == 1, 20);
    wait_until(pool_stat(old, JOBQ_STAT_BACKLOG) == 0, 20);
    assert_int_equal(pool_stat(old, JOBQ_STAT_DEAD), 0);
    assert_int_equal(pool_ledger(old, "begin"), 0);
    assert_true(pool_said(old, "no handler here for \"note\" version 1"));
    assert_true(pool_said(old, "next look in 1 s"));
    pool_signal(old, SIGTERM);
    pool_signal(&knows, SIGTERM);
    assert_int_equal(pool_wait(old, 20), 0);
    assert_int_equal(pool_wait(&knows, 20), 0);
    pool_close(&knows);
}

/* Rules G1, N4: the name that a worker was given stands beside its id, in its first line and in the
 * store. */
static void test_n4_worker_name(void **state)
{
    pool *p = *state;
    jobq_workers *w;

    pool_push(p, "deaf", 3000, NULL);
    pool_start(p, "name=nightly\xc3\xa4");
    wait_until(pool_ledger(p, "begin deaf") == 1, 20);
    assert_true(pool_said(p, " (nightly\xc3\xa4) watching default (1 process)"));
    assert_ok(jobq_queue_workers(p->queue, &w));
    assert_int_equal(jobq_workers_count(w), 1);
    assert_string_equal(jobq_workers_text(w, 0, JOBQ_WORKERS_LABEL), "nightly\xc3\xa4");
    assert_null(strchr(jobq_workers_text(w, 0, JOBQ_WORKERS_HOST), ' '));
    assert_int_equal(jobq_workers_number(w, 0, JOBQ_WORKERS_PID), p->pid);
    jobq_workers_free(w);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
}

/* Rule G1: `rest` is a pause after each job, not before the first. */
static void test_g1_rest(void **state)
{
    pool *p = *state;
    int64_t began_ms;

    pool_push_many(p, "note", 0, NULL, 4);
    pool_start(p, "processes=1 rest=0.4 stop_when_empty=1");
    wait_until(pool_ledger(p, "begin note") >= 1, 10);
    began_ms = jobq__clock_mono_ms();
    assert_int_equal(pool_wait(p, 30), 0);
    assert_int_equal(pool_ledger(p, "end note"), 4);
    assert_true(jobq__clock_mono_ms() - began_ms >= 1000); /* three rests; we may have seen late */
}

/* ---- empty for so long ----------------------------------------------------------------------- */

/* Rule G3: a job in between starts the time anew; delayed ones do not hold it. */
static void test_g3_empty_for(void **state)
{
    pool *p = *state;
    const int64_t began_ms = jobq__clock_mono_ms();

    pool_push(p, "note", 0, "delay=600");
    pool_push(p, "note", 0, "delay=0.6");
    assert_int_equal(pool_run(p, "stop_when_empty_for=1"), 0);
    assert_true(jobq__clock_mono_ms() - began_ms >= 1500);
    assert_int_equal(pool_ledger(p, "end note"), 1);
    assert_true(pool_said(p, "Stopping: Nothing left to do"));
    assert_true(pool_said(p, "Ran 1 job"));
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_rows),           STORE_TEST(test_c4_attempt),
        STORE_TEST(test_e1_backoff),     STORE_TEST(test_e2_retry_until_alone),
        STORE_TEST(test_f4_put_back),    STORE_TEST(test_f5_class_only),
        STORE_TEST(test_a7_undecodable), STORE_TEST(test_a9_newer),
        STORE_TEST(test_f3_put_aside),   STORE_TEST(test_n4_worker_name),
        STORE_TEST(test_g1_rest),        STORE_TEST(test_f3_live_worker),
        STORE_TEST(test_g3_empty_for),
    };

    return stores_run_all("process/rules", tests, sizeof(tests) / sizeof(tests[0]), pool_set_up,
                          pool_tear_down);
}
