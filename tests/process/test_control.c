/* SPDX-License-Identifier: MIT
 *
 * What people ask of running workers through the store (rules L1 to L3, H2, G3, G5): pauses, a
 * restart, cancelled jobs; on SQLite and on each server store, with real children.
 */
#include "harness/stores.h"
#include "process/pool.h"

#include "util/clock.h"

typedef struct {
    server *server; /* its own, NULL = none */
    pool pool, other;
} site;

enum { SOON = 5 /* seconds; without a word from the store it takes ten and more */ };

static int set_up(void **state)
{
    static site s;

    memset(&s, 0, sizeof(s));
    pool_open(&s.pool);
    *state = &s;
    return 0;
}

static int set_up_server(void **state)
{
    static site s;

    memset(&s, 0, sizeof(s));
    s.server = store_start_durable(*(store_kind *)*state, false);
    pool_open_at(&s.pool, store_option(server_dsn(s.server), "read_timeout=2&connect_timeout=2"),
                 NULL);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    site *s = *state;

    pool_close(&s->pool);
    if (s->other.queue)
        pool_close(&s->other);
    if (s->server)
        server_remove(s->server);
    return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void pause_queue(pool *p, const char *name, int64_t ttl_ms)
{
    assert_ok(jobq_queue_pause(p->queue, name, name ? strlen(name) : 0, ttl_ms));
}

static void resume_queue(pool *p, const char *name)
{
    assert_ok(jobq_queue_resume(p->queue, name, name ? strlen(name) : 0));
}

static int cancel_job(pool *p, const char *id, bool hard)
{
    return (int)assert_ok(jobq_queue_cancel(p->queue, id, strlen(id), hard));
}

static void end_worker(pool *p)
{
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
}

/* Whatever runs is not waited for. */
static void end_worker_at_once(pool *p)
{
    pool_signal(p, SIGTERM);
    usleep(300000); /* two of one instant count once */
    end_worker(p);
}

static bool is_idle(pool *p)
{
    return pool_ledger(p, "end note") >= 1 && pool_stat(p, JOBQ_STAT_RESERVED) == 0;
}

/* Up, and waiting for something to do. */
static void start_idle(pool *p, const char *options)
{
    pool_push(p, "note", 0, NULL);
    pool_start(p, options);
    wait_until(is_idle(p), 20);
}

static bool begins_within(const pool *p, const char *prefix, int n, int64_t ms)
{
    const int64_t end_ms = jobq__clock_mono_ms() + ms;

    while (jobq__clock_mono_ms() < end_ms) {
        if (pool_ledger(p, prefix) >= n)
            return true;
        usleep(20000);
    }
    return false;
}

/* "dead cancelled", "ready", "gone": state and reason. */
static const char *fate(pool *p, const char *id)
{
    static char text[128];
    jobq_info *info = NULL;

    if (jobq_queue_find(p->queue, id, strlen(id), &info) < 0)
        return "gone";
    snprintf(text, sizeof(text), "%s %s",
             jobq_state_word((jobq_state)jobq_info_number(info, JOBQ_INFO_STATE)),
             jobq_info_text(info, JOBQ_INFO_REASON, NULL)
                 ? jobq_info_text(info, JOBQ_INFO_REASON, NULL)
                 : "");
    jobq_info_free(info);
    return text;
}

static bool is_cancelled(pool *p, const char *id)
{
    return strcmp(fate(p, id), "dead cancelled") == 0;
}

/* Outcome of its last attempt, "" = none. */
static const char *outcome(pool *p, const char *id)
{
    static char text[64];
    const char *word = "";
    jobq_info *info = NULL;

    assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
    for (size_t i = 0; jobq_info_attempt(info, i, NULL, NULL, NULL, &word, NULL, NULL); i++)
        ;
    snprintf(text, sizeof(text), "%s", word);
    jobq_info_free(info);
    return text;
}

/* ---- pause (rule L1) ------------------------------------------------------------------------- */

/* Nothing more is taken, what has not begun goes back uncounted, what runs may finish; pushes are
 * stored as ever. */
static void test_l1_pause_while_two_work(void **state)
{
    pool *p = &((site *)*state)->pool;
    char last[129];

    pool_push_many(p, "nap", 7000, NULL, 2);
    pool_start(p, "processes=2 prefetch=20");
    wait_until(pool_ledger(p, "begin nap") == 2, 20);
    pool_push_many(p, "note", 0, NULL, 9);
    strcpy(last, pool_push(p, "note", 0, NULL));
    pause_queue(p, "default", 0);
    wait_until(pool_said(p, "Paused: default"), SOON);
    wait_until(pool_stat(p, JOBQ_STAT_READY) == 10, SOON);
    assert_int_equal(pool_ledger(p, "end nap"), 0);
    assert_int_equal(strncmp(pool_job(p, last), "ready 0 0", 9), 0);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end nap") == 2, 20);
    assert_false(begins_within(p, "begin note", 1, 1000));
    assert_int_equal(pool_stat(p, JOBQ_STAT_READY), 11);
    resume_queue(p, "default");
    wait_until(pool_said(p, "Resumed: default"), SOON);
    wait_until(pool_ledger(p, "end note") == 11, 20);
    end_worker(p);
}

/* What a child holds behind its running job goes back while that still runs, and does not begin
 * after it. */
static void test_l1_prefetched_are_given_back(void **state)
{
    pool *p = &((site *)*state)->pool;
    int begun;

    pool_push(p, "nap", 800, NULL);
    pool_push_many(p, "nap", 8000, NULL, 5);
    pool_start(p, "processes=1 prefetch=20");
    wait_until(pool_ledger(p, "begin nap") >= 1, 20);
    pause_queue(p, NULL, 0);
    wait_until(pool_said(p, "Paused: "), SOON);
    wait_until(pool_stat(p, JOBQ_STAT_READY) >= 4, SOON);
    begun = pool_ledger(p, "begin nap");
    assert_in_range(begun, 1, 2); /* on a busy machine the first was through before the pause */
    assert_true(pool_ledger(p, "end nap") <= 1);
    wait_until(pool_ledger(p, "end nap") >= 1, 20);
    assert_false(begins_within(p, "begin nap", begun + 1, 500));
    resume_queue(p, NULL);
    end_worker_at_once(p);
}

/* Rule H2: the same for USR2. */
static void test_h2_signal_gives_back(void **state)
{
    pool *p = &((site *)*state)->pool;

    pool_push_many(p, "nap", 8000, NULL, 6);
    pool_start(p, "processes=1 prefetch=20");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    pool_signal(p, SIGUSR2);
    wait_until(pool_stat(p, JOBQ_STAT_READY) == 5, SOON);
    assert_int_equal(pool_ledger(p, "end nap"), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED), 1);
    end_worker_at_once(p);
}

/* An idle worker waits for the queues that are not paused. */
static void test_l1_idle_beside_a_paused_queue(void **state)
{
    pool *p = &((site *)*state)->pool;

    p->queues[0] = "mail";
    p->queues[1] = "default";
    pause_queue(p, "mail", 0);
    start_idle(p, "processes=1 sleep=30");
    wait_until(pool_said(p, "Paused: mail"), SOON);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 2, SOON);
    end_worker(p);
}

/* It ends by the store's clock, though nobody does anything. */
static void test_l1_ttl(void **state)
{
    pool *p = &((site *)*state)->pool;
    int64_t begin_ms;

    start_idle(p, "processes=1");
    begin_ms = jobq__clock_mono_ms();
    pause_queue(p, "default", 2500);
    wait_until(pool_said(p, "Paused: default"), SOON);
    pool_push(p, "note", 0, NULL);
    wait_until(pool_ledger(p, "end note") == 2, 2 + SOON);
    assert_true(jobq__clock_mono_ms() - begin_ms >= 2400);
    wait_until(pool_said(p, "Resumed: default"), SOON);
    end_worker(p);
}

/* Renewals make it look for failed hooks (rule F6); there are none, and it counts as idle. */
static void test_g3_all_paused_for_long(void **state)
{
    pool *p = &((site *)*state)->pool;

    pause_queue(p, NULL, 0);
    pool_push(p, "note", 0, NULL);
    pool_start(p, "processes=1 lease=3 stop_when_empty_for=3");
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 0);
}

/* `force` ignores "all", not the pause of a queue; a pause outlives the workers. */
static void test_l1_all_and_force(void **state)
{
    site *s = *state;
    pool *p = &s->pool;

    pause_queue(p, NULL, 0);
    pool_push(p, "note", 0, NULL);
    pool_start(p, "processes=1");
    assert_false(begins_within(p, "begin note", 1, 1500));
    end_worker(p);
    pool_start(p, "processes=1");
    assert_false(begins_within(p, "begin note", 1, 1500));
    pool_open_at(&s->other, p->dsn, NULL);
    pool_start(&s->other, "processes=1 force=1");
    wait_until(pool_ledger(&s->other, "end note") == 1, 20);
    assert_int_equal(pool_ledger(p, "begin note"), 0);
    pause_queue(p, "default", 0);
    wait_until(pool_said(&s->other, "Paused: default"), SOON);
    pool_push(p, "note", 0, NULL);
    assert_false(begins_within(&s->other, "begin note", 2, 1000));
    resume_queue(p, "default");
    wait_until(pool_ledger(&s->other, "end note") == 2, SOON);
    assert_int_equal(pool_ledger(p, "begin note"), 0);
    end_worker(&s->other);
    pool_push(p, "note", 0, NULL);
    resume_queue(p, NULL);
    wait_until(pool_ledger(p, "end note") == 1, SOON);
    end_worker(p);
}

/* Rule G3: a paused queue counts as empty, and the last line names it. */
static void test_g3_paused_is_empty(void **state)
{
    pool *p = &((site *)*state)->pool;

    p->queues[0] = "mail";
    p->queues[1] = "default";
    pause_queue(p, "mail", 0);
    pool_push(p, "note", 0, "queue=mail");
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 1);
    assert_true(pool_said(p, "Stopping: Nothing left to do (paused: mail)"));
    pause_queue(p, NULL, 0);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1"), 0);
    assert_true(pool_said(p, "Stopping: Nothing left to do (paused: mail, default)"));
    assert_int_equal(pool_run(p, "processes=0 once=1"), 0);
    resume_queue(p, "mail");
    resume_queue(p, NULL);
    assert_int_equal(pool_run(p, "processes=0 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 2);
}

/* Rule G5: ready as long as one queue is served. */
static void test_g5_not_ready_while_all_are_paused(void **state)
{
    pool *p = &((site *)*state)->pool;
    char file[300], options[400];

    snprintf(file, sizeof(file), "%s.ready", p->ledger);
    snprintf(options, sizeof(options), "processes=1 ready_file=%s", file);
    p->queues[0] = "mail";
    p->queues[1] = "default";
    pool_start(p, options);
    wait_until(access(file, F_OK) == 0, 20);
    pause_queue(p, "mail", 0);
    wait_until(pool_said(p, "Paused: mail"), SOON);
    assert_int_equal(access(file, F_OK), 0);
    pause_queue(p, "default", 0);
    wait_until(access(file, F_OK) != 0, SOON);
    resume_queue(p, "mail");
    wait_until(access(file, F_OK) == 0, SOON);
    end_worker(p);
}

/* ---- restart (rule L2) ----------------------------------------------------------------------- */

/* Running jobs finish, the rest goes back, exit 0; whoever starts afterwards is not concerned. */
static void test_l2_restart(void **state)
{
    site *s = *state;
    pool *p = &s->pool, *idle = &s->other;

    pool_open_at(idle, p->dsn, NULL);
    start_idle(idle, "processes=2");
    pool_push(p, "nap", 1, NULL);
    wait_until(pool_ledger(idle, "end nap") == 1, 20);
    pool_signal(idle, SIGUSR2); /* so that the other one gets the work */
    wait_until(pool_said(idle, "Paused"), 20);
    pool_push_many(p, "nap", 5000, NULL, 4);
    pool_start(p, "processes=1 prefetch=20");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    pool_signal(idle, SIGCONT);
    wait_until(pool_said(idle, "Resumed"), 20);
    pool_signal(idle, SIGUSR2);
    assert_ok(jobq_queue_restart_workers(p->queue));
    assert_int_equal(pool_wait(p, 30), 0);
    assert_int_equal(pool_wait(idle, 30), 0);
    assert_true(pool_said(p, "Stopping: restart requested"));
    assert_true(pool_said(idle, "Stopping: restart requested"));
    assert_int_equal(pool_ledger(p, "begin nap"), 1);
    assert_int_equal(pool_ledger(p, "end nap"), 1);
    assert_int_equal(pool_stat(p, JOBQ_STAT_RESERVED), 0);
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=4 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "end note"), 1);
}

/* Idle ones within a second. */
static void test_l2_idle(void **state)
{
    pool *p = &((site *)*state)->pool;
    int64_t begin_ms;

    start_idle(p, "processes=2");
    begin_ms = jobq__clock_mono_ms();
    assert_ok(jobq_queue_restart_workers(p->queue));
    assert_int_equal(pool_wait(p, 30), 0);
    assert_true(jobq__clock_mono_ms() - begin_ms < SOON * 1000);
    assert_true(pool_said(p, "Stopping: restart requested"));
}

/* ---- cancel (rule L3) ------------------------------------------------------------------------ */

static void test_l3_waiting(void **state)
{
    pool *p = &((site *)*state)->pool;
    char ready[129], delayed[129];

    strcpy(ready, pool_push(p, "note", 0, NULL));
    strcpy(delayed, pool_push(p, "note", 0, "delay=3600"));
    assert_int_equal(cancel_job(p, ready, false), JOBQ_CANCELLED);
    assert_int_equal(cancel_job(p, delayed, true), JOBQ_CANCELLED);
    assert_string_equal(fate(p, ready), "dead cancelled");
    assert_string_equal(fate(p, delayed), "dead cancelled");
    assert_string_equal(outcome(p, ready), "stopped");
    assert_code(jobq_queue_cancel(p->queue, ready, strlen(ready), false), JOBQ_ENOTFOUND);
    pool_push(p, "note", 0, NULL);
    assert_int_equal(pool_run(p, "processes=1 stop_when_empty=1"), 0);
    assert_int_equal(pool_ledger(p, "begin note"), 1);
}

/* Given to a child, but not begun: it never begins, and its neighbours do. */
static void test_l3_not_started(void **state)
{
    pool *p = &((site *)*state)->pool;
    char id[129];

    pool_push(p, "nap", 800, NULL);
    pool_push_many(p, "note", 0, NULL, 2);
    strcpy(id, pool_push(p, "told", 0, NULL));
    pool_push(p, "note", 0, NULL);
    pool_start(p, "processes=1 prefetch=20");
    wait_until(pool_stat(p, JOBQ_STAT_RESERVED) == 5 || pool_ledger(p, "end nap"), 20);
    cancel_job(p, id, false);
    wait_until(is_cancelled(p, id), SOON);
    wait_until(pool_ledger(p, "end note") == 3, 20);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "begin told"), 0);
    assert_string_equal(outcome(p, id), "stopped");
    assert_int_equal(strncmp(pool_job(p, id), "dead 0 0", 8), 0);
}

/* It is told; a normal return is done all the same. */
static void test_l3_running_returns(void **state)
{
    pool *p = &((site *)*state)->pool;
    char id[129];

    strcpy(id, pool_push(p, "told", 10000, NULL));
    pool_push(p, "told", 10000, NULL);
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "begin told") == 2, 20);
    usleep(2500000); /* the renewal that lists them as running is over: nothing else tells it */
    assert_int_equal(cancel_job(p, id, false), JOBQ_CANCEL_ASKED);
    wait_until(pool_ledger(p, "told") == 1, SOON);
    assert_int_equal(pool_ledger(p, "end told"), 0);
    wait_until(pool_ledger(p, "end told") == 2, 20);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 20);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
    assert_int_equal(pool_ledger(p, "told"), 1);
    end_worker(p);
}

/* A throw is dead, and so is a release; retries that were left do not count. */
static void test_l3_running_throws(void **state)
{
    pool *p = &((site *)*state)->pool;
    char heeds[129], frees[129];

    strcpy(heeds, pool_push(p, "heeds", 60000, NULL));
    strcpy(frees, pool_push(p, "frees", 60000, NULL));
    pool_start(p, "processes=2 verbose=1");
    wait_until(pool_ledger(p, "begin") == 2, 20);
    cancel_job(p, heeds, false);
    cancel_job(p, frees, false);
    wait_until(is_cancelled(p, heeds), SOON);
    wait_until(is_cancelled(p, frees), SOON);
    assert_string_equal(outcome(p, heeds), "failed");
    assert_string_equal(outcome(p, frees), "released");
    wait_until(pool_said(p, "Cancelled: heeds"), 10);
    assert_true(pool_said(p, ": nobody wants it"));
    assert_true(pool_said(p, "Cancelled: frees"));
    end_worker(p);
}

/* By force: the exception, and the kill for a handler that does not hear it; the job beside it is
 * not touched. */
static void test_l3_hard(void **state)
{
    pool *p = &((site *)*state)->pool;
    char nap[129], deaf[129], stubborn[129];

    strcpy(nap, pool_push(p, "nap", 60000, NULL));
    strcpy(deaf, pool_push(p, "deaf", 60000, "tries=1"));
    strcpy(stubborn, pool_push(p, "stubborn", 60000, NULL));
    pool_push(p, "told", 8000, NULL);
    pool_start(p, "processes=4 timeout_grace=0.5");
    wait_until(pool_ledger(p, "begin") == 4, 20);
    cancel_job(p, nap, true);
    wait_until(is_cancelled(p, nap), SOON);
    assert_int_equal(cancel_job(p, deaf, true), JOBQ_CANCEL_ASKED);
    assert_int_equal(cancel_job(p, stubborn, false), JOBQ_CANCEL_ASKED);
    assert_int_equal(cancel_job(p, stubborn, true), JOBQ_CANCEL_ASKED);
    wait_until(is_cancelled(p, deaf), SOON);
    wait_until(is_cancelled(p, stubborn), SOON);
    assert_string_equal(outcome(p, nap), "stopped");
    assert_string_equal(outcome(p, deaf), "stopped");
    assert_int_equal(strncmp(pool_job(p, deaf), "dead 0 0", 8), 0);
    wait_until(pool_ledger(p, "end told") == 1, 20);
    assert_int_equal(pool_ledger(p, "told"), 0);
    end_worker(p);
    assert_true(pool_said(p, "Cancelled: deaf"));
}

/* The dispatcher that knew of it dies; its successor asks again. */
static void test_l3_survives_the_dispatcher(void **state)
{
    pool *p = &((site *)*state)->pool;
    char id[129];

    strcpy(id, pool_push(p, "heeds", 60000, NULL));
    pool_start(p, "processes=1");
    wait_until(pool_ledger(p, "begin heeds") == 1, 20);
    cancel_job(p, id, false);
    wait_until(pool_ledger(p, "told") == 1, SOON);
    wait_until(pool_kill(pool_dispatcher(p)), 10);
    wait_until(is_cancelled(p, id), 30);
    assert_string_equal(outcome(p, id), "failed");
    end_worker(p);
}

/* Nor does it get lost with the whole worker: who takes the job next buries it before it starts. */
static void test_l3_outlives_the_worker(void **state)
{
    pool *p = &((site *)*state)->pool;
    char id[129];

    strcpy(id, pool_push(p, "deaf", 60000, NULL));
    pool_start(p, "processes=1 lease=2");
    wait_until(pool_ledger(p, "begin deaf") == 1, 20);
    pool_dispatcher(p);
    assert_int_equal(cancel_job(p, id, false), JOBQ_CANCEL_ASKED);
    kill(-p->pid, SIGKILL); /* master and dispatcher at once */
    assert_int_equal(pool_wait(p, 20), 1000 + SIGKILL);
    pool_start(p, "processes=1 lease=2");
    wait_until(is_cancelled(p, id), 40);
    assert_int_equal(pool_ledger(p, "begin deaf"), 1);
    wait_until(pool_said(p, "Cancelled: deaf"), SOON);
    end_worker(p);
}

/* The store is away when a cancelled job fails: it is dead when that is back. */
static void test_l3_store_away(void **state)
{
    site *s = *state;
    pool *p = &s->pool;
    char id[129];

    strcpy(id, pool_push(p, "spoil", 6000, NULL));
    pool_start(p, "processes=1 max_reserve_failures=0");
    wait_until(pool_ledger(p, "begin") == 1, 20);
    cancel_job(p, id, false);
    usleep(1500000);
    server_stop(s->server);
    wait_until(pool_said(p, "error: could not reserve a job"), 40);
    usleep(5000000);
    server_restart(s->server);
    wait_until(is_cancelled(p, id), 60);
    end_worker(p);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_l1_pause_while_two_work),
        STORE_TEST(test_l1_prefetched_are_given_back),
        STORE_TEST(test_h2_signal_gives_back),
        STORE_TEST(test_l1_idle_beside_a_paused_queue),
        STORE_TEST(test_l1_ttl),
        STORE_TEST(test_l1_all_and_force),
        STORE_TEST(test_g3_paused_is_empty),
        STORE_TEST(test_g3_all_paused_for_long),
        STORE_TEST(test_g5_not_ready_while_all_are_paused),
        STORE_TEST(test_l2_restart),
        STORE_TEST(test_l2_idle),
        STORE_TEST(test_l3_waiting),
        STORE_TEST(test_l3_not_started),
        STORE_TEST(test_l3_running_returns),
        STORE_TEST(test_l3_running_throws),
        STORE_TEST(test_l3_hard),
        STORE_TEST(test_l3_survives_the_dispatcher),
        STORE_TEST(test_l3_outlives_the_worker),
    };
    static const store_test servers[] = {STORE_TEST(test_l3_store_away)};
    const int bad = stores_run_all("process/control", tests, sizeof(tests) / sizeof(tests[0]),
                                   set_up, tear_down);

    return stores_run("process/control", servers, 1, set_up_server, tear_down) || bad;
}
