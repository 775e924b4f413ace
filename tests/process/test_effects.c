/* SPDX-License-Identifier: MIT
 *
 * What a job leaves behind and does in the store while it runs: progress, results and those who
 * wait for them (rule N7); statements that hold with its lease, and its end in the application's
 * own transaction, through kills and lost leases (rule O1); pushes that may be repeated (rule B5).
 * On SQLite and on each server store.
 */
#include "harness/proxy.h"
#include "harness/stores.h"
#include "process/crowd.h"
#include "process/own.h"

#include <sys/socket.h>

#include "util/clock.h"

static const pool *site; /* in the worker's processes */

static int set_up(void **state)
{
    static pool p;

    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    pool_open(&p);
    *state = &p;
    return 0;
}

static void end_worker(pool *p)
{
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* A JSON text of n bytes. */
static char *make_result(int n)
{
    char *text = malloc((size_t)n);

    memset(text, 'r', (size_t)n);
    text[0] = text[n - 1] = '"';
    return text;
}

/* Says how far it is, and leaves a result of so many bytes; waits for the ledger's word. */
static int do_works(jobq_job *job, int arg)
{
    char *result;
    int rc;

    for (int i = 1; i < 3000 && (i == 1 || pool_ledger(site, "said go") == 0); i++) {
        if (jobq_job_progress(job, i < 100 ? i : 100, "under way", 9) < 0)
            return JOBQ_ENDED_FAILED;
        usleep(10000);
    }
    result = make_result(arg);
    rc = jobq_job_set_result(job, JOBQ_FORMAT_JSON, result, (size_t)arg);
    free(result);
    return rc < 0 ? JOBQ_ENDED_FAILED : JOBQ_ENDED_DONE;
}

static int do_refuses(jobq_job *job, int arg)
{
    (void)arg;
    jobq_job_refuse_result(job, "a closure cannot be kept", 24);
    return JOBQ_ENDED_DONE;
}

static jobq_param text_param(const char *text)
{
    return (jobq_param){.type = JOBQ_PARAM_TEXT, .bytes = {text, strlen(text)}};
}

static const char *insert_text(void)
{
    switch (store_under_test()) {
    case STORE_REDIS:
        return "return redis.call('RPUSH', KEYS[1] .. 'effects', ARGV[1])";
    case STORE_POSTGRES:
        return "INSERT INTO effects(job) VALUES($1::text)";
    default:
        return "INSERT INTO effects(job) VALUES(?)";
    }
}

static int insert_effect(jobq_job *job)
{
    const jobq_param param = text_param(jobq_job_id(job));
    const jobq_statement s = {
        .text = {insert_text(), strlen(insert_text())}, .params = &param, .param_count = 1};

    return jobq_job_effect(job, &s, NULL);
}

/* Rule D7: whatever numbers the library's connection had are sockets of the handler's own now. */
enum { SOCKETS = 24 };
static int sockets[SOCKETS][2];

static void replace_descriptors(void)
{
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (int i = 0; i < SOCKETS; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets[i]) != 0)
            abort();
}

static void check_descriptors(const jobq_job *job)
{
    char bytes[64];

    for (int i = 0; i < SOCKETS; i++)
        for (int k = 0; k < 2; k++)
            if (recv(sockets[i][k], bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
                pool_note("touched", "socket", jobq_job_id(job));
}

/* Waits until the test lets it go, and has the store do something then: once, if it may. */
static int do_affects(jobq_job *job, int arg)
{
    int rc;

    for (int i = 0; i < 2000 && pool_ledger(site, "said go") == 0; i++)
        usleep(10000);
    if (arg == 1) {
        insert_effect(job);
        replace_descriptors();
    }
    rc = insert_effect(job);
    if (arg == 1)
        check_descriptors(job);
    pool_note(rc == 0             ? "affected"
              : rc == JOBQ_ELEASE ? "refused"
                                  : jobq_error_message(jobq_error_last()),
              "affects", jobq_job_id(job));
    return rc == 0 ? JOBQ_ENDED_DONE : JOBQ_ENDED_FAILED;
}

enum { COMMITS, DIES_BEFORE, DIES_AFTER, ROLLS_BACK, FAILS_AFTER, WAYS, GOES_ON = 100 };

/* An effect and the end of the job in the application's own transaction. */
static int do_ends(jobq_job *job, int arg)
{
    const jobq_param param = text_param(jobq_job_id(job));
    const jobq_statement insert = {
        .text = {insert_text(), strlen(insert_text())}, .params = &param, .param_count = 1};
    const int way = arg == GOES_ON ? arg : arg % WAYS;
    const jobq_statement *done;
    own *o = own_open(site->dsn);
    bool good;

    own_execute(o, store_under_test() == STORE_SQLITE ? "BEGIN IMMEDIATE" : "BEGIN");
    good = own_run(o, &insert);
    good = good && jobq_job_done_statement(job, JOBQ_PLACEHOLDER_OWN, &done) == 0;
    if (!good)
        pool_note("no", "statement", jobq_error_message(jobq_error_last()));
    good = good && own_run(o, done);
    if (way == DIES_BEFORE && jobq_job_get(job, JOBQ_JOB_DELIVERIES) == 1)
        raise(SIGKILL);
    own_execute(o, good && way != ROLLS_BACK ? "COMMIT" : "ROLLBACK");
    if (way == DIES_AFTER)
        raise(SIGKILL);
    own_close(o);
    for (int i = 0; way == GOES_ON && i < 30; i++) {
        usleep(50000);
        if (jobq_job_is_lost(job))
            pool_note("lost", "ends", jobq_job_id(job));
    }
    if (good)
        pool_note(way == ROLLS_BACK ? "rolled" : "committed", "ends", jobq_job_id(job));
    return good && way != FAILS_AFTER ? JOBQ_ENDED_DONE : JOBQ_ENDED_FAILED;
}

static int do_hopeless(jobq_job *job, int arg)
{
    (void)arg;
    jobq_job_progress(job, 50, "under way", 9);
    jobq_job_set_error(job, "Hopeless", 8, "never", 5, NULL, 0, NULL, 0);
    return JOBQ_ENDED_NOT_RETRYABLE;
}

static int do_once(jobq_job *job, int arg)
{
    (void)job;
    (void)arg;
    return JOBQ_ENDED_DONE;
}

static const struct {
    const char *name;
    int (*run)(jobq_job *job, int arg);
} handlers[] = {
    {"works", do_works}, {"refuses", do_refuses}, {"affects", do_affects},
    {"ends", do_ends},   {"dies", do_hopeless},   {"once", do_once},
};
enum { HANDLERS = sizeof(handlers) / sizeof(handlers[0]) };

static int handle(jobq_job *job, void *payload)
{
    const char *name = jobq_job_name(job, NULL);
    int ending = JOBQ_ENDED_FAILED;

    (void)payload;
    pool_note("begin", name, jobq_job_id(job));
    for (size_t i = 0; i < HANDLERS; i++)
        if (strcmp(handlers[i].name, name) == 0)
            ending = handlers[i].run(job, pool_argument(job));
    pool_note(jobq_ending_word((jobq_ending)ending), name, jobq_job_id(job));
    return ending;
}

static void note_idle(void *payload)
{
    (void)payload;
    pool_note("idle", "child", "-");
}

static int loop(jobq_worker *worker)
{
    const jobq_worker_hooks hooks = {.size = sizeof(hooks), .idle_enter = note_idle};

    for (size_t i = 0; i < HANDLERS; i++)
        if (jobq_worker_handle(worker, handlers[i].name, strlen(handlers[i].name), 1, NULL) < 0)
            return -1;
    if (jobq_worker_set_hooks(worker, &hooks) < 0)
        return -1;
    return jobq_worker_run(worker, NULL, 0, handle, NULL);
}

static void start(pool *p, const char *options)
{
    site = p;
    p->loop = loop;
    pool_start(p, options);
}

/* ---- results and those who wait (rule N7) ---------------------------------------------------- */

/* Larger than what a ring holds, than a quarter of it, than nothing; names are ids. */
static const int sizes[] = {12, 70000, 300000, 1000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void wait_for_results(pool *p, int number)
{
    for (int i = 0; i < SIZES; i++) {
        const char *refusal = NULL, *body;
        char id[32], *want = make_result(sizes[i]);
        jobq_info *info;
        int format;
        size_t n;

        snprintf(id, sizeof(id), "tracked-%d", (i + number) % SIZES);
        free(want);
        want = make_result(sizes[(i + number) % SIZES]);
        assert_ok(jobq_queue_wait(p->queue, id, strlen(id), 60000, &info));
        body = jobq_info_result(info, &n, &format, &refusal);
        assert_non_null(body);
        assert_int_equal(n, sizes[(i + number) % SIZES]);
        assert_int_equal(format, JOBQ_FORMAT_JSON);
        assert_memory_equal(body, want, n);
        free(want);
        jobq_info_free(info);
    }
}

static double progress_of(pool *p, const char *id)
{
    double percent = -1;
    const char *note = NULL;
    jobq_info *info;

    assert_ok(jobq_queue_find(p->queue, id, strlen(id), &info));
    if (jobq_info_progress(info, &percent, &note))
        assert_string_equal(note, "under way");
    jobq_info_free(info);
    return percent;
}

/* Several wait for each of several results of each size, before and after their ends; while they
 * run everybody can see how far they are, and it moves. */
static void test_n7_results(void **state)
{
    pool *p = *state;
    char options[64];
    double first;
    crowd c;

    for (int i = 0; i < SIZES; i++) {
        snprintf(options, sizeof(options), "id=tracked-%d track=true", i);
        assert_int_equal(crowd_push(p, "works", sizes[i], options, NULL), 0);
    }
    crowd_start(&c, p, 3, wait_for_results);
    start(p, "processes=2");
    wait_until((first = progress_of(p, "tracked-0")) > 0, 20);
    wait_until(progress_of(p, "tracked-0") > first || pool_ledger(p, "done works") > 0, 20);
    pool_write(p, "said go");
    crowd_wait(&c, 60);
    end_worker(p);
    for (int i = 0; i < SIZES; i++) {
        snprintf(options, sizeof(options), "tracked-%d", i);
        assert_int_equal(strncmp(pool_job(p, options), "done 0 0 ", 9), 0);
        assert_true(progress_of(p, options) > 0); /* a result keeps the last progress */
    }
}

/* What waiters hear of jobs that leave no result. */
static void test_n7_other_ends(void **state)
{
    pool *p = *state;
    const char *refusal = NULL;
    jobq_info *info;
    char id[129];

    assert_int_equal(crowd_push(p, "dies", 0, "id=dead track=true", NULL), 0);
    assert_int_equal(crowd_push(p, "refuses", 0, "id=refused track=true", NULL), 0);
    assert_int_equal(crowd_push(p, "once", 0, NULL, id), 0);
    assert_int_equal(crowd_push(p, "once", 0, "id=later delay=60", NULL), 0);
    start(p, "processes=1");
    assert_code(jobq_queue_wait(p->queue, "dead", 4, 30000, &info), JOBQ_EDEAD);
    jobq_info_free(info);
    assert_true(progress_of(p, "dead") == 50); /* however soon after that it died */
    assert_ok(jobq_queue_wait(p->queue, "refused", 7, 30000, &info));
    assert_null(jobq_info_result(info, NULL, NULL, &refusal));
    assert_string_equal(refusal, "a closure cannot be kept");
    jobq_info_free(info);
    assert_code(jobq_queue_wait(p->queue, id, strlen(id), 30000, &info), JOBQ_ENOTFOUND);
    assert_code(jobq_queue_wait(p->queue, "later", 5, 100, &info), JOBQ_EPENDING);
    end_worker(p);
}

/* Rule D6: a result lies where neither its child's nor a dispatcher's death takes it. */
static void test_n7_result_of_a_dead_child(void **state)
{
    pool *p = *state;
    int idle;
    pid_t child, dispatcher;
    const char *body;
    jobq_info *info;
    size_t n;

    start(p, "processes=1");
    assert_int_equal(crowd_push(p, "works", 500000, "id=orphan track=true", NULL), 0);
    wait_until(progress_of(p, "orphan") > 0, 20);
    child = pool_runner(p, "begin works");
    dispatcher = pool_dispatcher(p);
    assert_int_equal(kill(dispatcher, SIGSTOP), 0);
    idle = pool_ledger(p, "idle");
    pool_write(p, "said go");
    wait_until(pool_ledger(p, "idle") > idle, 20); /* it has handed its result over */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(kill(dispatcher, SIGKILL), 0);
    assert_ok(jobq_queue_wait(p->queue, "orphan", 6, 30000, &info));
    body = jobq_info_result(info, &n, NULL, NULL);
    assert_non_null(body);
    assert_int_equal(n, 500000);
    jobq_info_free(info);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "begin works"), 1);
}

/* ---- effects (rule O1) ----------------------------------------------------------------------- */

/* By a job of our own: on each store its statement counts. */
static int64_t count_effects(pool *p)
{
    static const char sql[] = "SELECT count(*) FROM effects",
                      lua[] = "return redis.call('LLEN', KEYS[1] .. 'effects')";
    const char *text = store_under_test() == STORE_REDIS ? lua : sql;
    const jobq_statement s = {.text = {text, strlen(text)}};
    const char *queues[] = {"default"};
    jobq_param value;
    jobq_job *job;

    assert_int_equal(crowd_push(p, "count", 0, NULL, NULL), 0);
    assert_int_equal(assert_ok(jobq_queue_reserve(p->queue, queues, 1, 30000, &job)), 1);
    assert_ok(jobq_job_effect(job, &s, &value));
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    return value.type == JOBQ_PARAM_INT ? value.integer : atoll(value.bytes.p);
}

static void make_table(const pool *p)
{
    own *o;

    if (store_under_test() == STORE_REDIS)
        return;
    o = own_open(p->dsn);
    if (store_under_test() == STORE_POSTGRES)
        own_execute(o, "DROP TABLE IF EXISTS effects");
    own_execute(o, "CREATE TABLE effects(job varchar(128))");
    own_close(o);
}

static void signal_all(pool *p, const pid_t *children, size_t n, pid_t dispatcher, int number)
{
    kill(p->pid, number);
    kill(dispatcher, number);
    for (size_t i = 0; i < n; i++)
        kill(children[i], number);
}

/* A worker that stood still for longer than its lease: its handler's statement is refused, and so
 * is its end; only the new owner's has happened. */
static void test_o1_effect_of_a_lost_lease(void **state)
{
    pool *p = *state, other;
    pid_t children[8], dispatcher;
    size_t n;

    make_table(p);
    pool_open_at(&other, p->dsn, NULL);
    assert_int_equal(crowd_push(p, "affects", 0, "backoff=0", NULL), 0);
    start(p, "processes=1 lease=1");
    wait_until(pool_ledger(p, "begin affects") == 1, 20);
    dispatcher = pool_dispatcher(p);
    n = pool_children(p, children, 8);
    signal_all(p, children, n, dispatcher, SIGSTOP);
    pool_write(&other, "said go");
    start(&other, "processes=1 lease=1");
    wait_until(pool_ledger(&other, "affected") == 1, 30);
    wait_until(pool_stat(&other, JOBQ_STAT_BACKLOG) == 0, 30);
    pool_write(p, "said go");
    signal_all(p, children, n, dispatcher, SIGCONT);
    wait_until(pool_ledger(p, "refused") + pool_ledger(p, "affected") == 1, 30);
    end_worker(&other);
    pool_close(&other);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "refused"), 1);
    assert_int_equal(count_effects(p), 1);
}

/* Rule D7: statements go on after a handler has closed every descriptor and reused their numbers:
 * on the servers in the same job, on SQLite in the process that follows. Nobody writes
 * elsewhere. */
static void test_d7_effect_without_descriptors(void **state)
{
    pool *p = *state;

    make_table(p);
    pool_write(p, "said go");
    assert_int_equal(crowd_push(p, "affects", 1, "tries=1", NULL), 0);
    start(p, "processes=1");
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    assert_int_equal(crowd_push(p, "affects", 0, NULL, NULL), 0);
    wait_until(pool_ledger(p, "done affects") == (store_under_test() == STORE_SQLITE ? 1 : 2), 30);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "touched"), 0);
    assert_int_equal(count_effects(p), store_under_test() == STORE_SQLITE ? 2 : 3);
}

enum { ENDS = 60 };

static int64_t count_distinct(const pool *p)
{
    own *o = own_open(p->dsn);
    const int64_t n = own_number(o, "SELECT count(DISTINCT job) FROM effects");

    own_close(o);
    return n;
}

static int64_t count_done(pool *p)
{
    jobq_minute_stats *list;
    size_t count;
    int64_t n = 0;

    assert_ok(jobq_queue_minutes(p->queue, "default", 7, 10, &list, &count));
    for (size_t i = 0; i < count; i++)
        n += list[i].counts[JOBQ_MINUTE_DONE];
    jobq_minutes_free(list);
    return n;
}

/* The application's write and the job's end commit together, whatever dies when: one effect of each
 * job whose transaction was committed, none of those that rolled back, all of them done once. */
static void test_o1_done_statement_under_kills(void **state)
{
    pool *p = *state;
    const int rolled = ENDS / WAYS;

    make_table(p);
    start(p, "processes=3 max_crashes=0");
    for (int i = 0; i < ENDS; i++)
        assert_int_equal(crowd_push(p, "ends", i, "backoff=0 tries=0", NULL), 0);
    for (int i = 0; pool_stat(p, JOBQ_STAT_BACKLOG) > 0; i++) {
        crowd_kill_children(p, (unsigned)i, 80, 80, false);
        assert_true(i < 500);
    }
    end_worker(p);
    assert_int_equal(pool_ledger(p, "no statement"), 0);
    assert_int_equal(count_done(p), ENDS);
    assert_int_equal(count_effects(p), ENDS - rolled);
    assert_int_equal(count_distinct(p), ENDS - rolled);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
    assert_false(pool_said(p, "Lease lost"));
}

/* Rule G8: the same in one process. */
static void test_g8_inline(void **state)
{
    pool *p = *state;
    const bool sql = store_under_test() != STORE_REDIS;
    jobq_info *info;
    size_t n = 0;

    make_table(p);
    pool_write(p, "said go");
    assert_int_equal(crowd_push(p, "works", 300000, "id=inline track=true", NULL), 0);
    assert_int_equal(crowd_push(p, "affects", 0, NULL, NULL), 0);
    for (int i = 0; sql && i < WAYS; i++)
        if (i != DIES_BEFORE && i != DIES_AFTER)
            assert_int_equal(crowd_push(p, "ends", i, "tries=1", NULL), 0);
    start(p, "processes=0 stop_when_empty=1");
    assert_int_equal(pool_wait(p, 60), 0);
    assert_ok(jobq_queue_wait(p->queue, "inline", 6, 0, &info));
    assert_non_null(jobq_info_result(info, &n, NULL, NULL));
    assert_int_equal(n, 300000);
    assert_true(jobq_info_progress(info, NULL, NULL));
    jobq_info_free(info);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG) + pool_stat(p, JOBQ_STAT_DEAD), 0);
    assert_int_equal(count_done(p), sql ? 5 : 2);
    assert_int_equal(count_effects(p), sql ? 3 : 1);
}

/* The store no longer knows the hand-out, and the worker finds that out: no lease is lost by it. */
static void test_o1_work_after_the_commit(void **state)
{
    pool *p = *state;

    make_table(p);
    assert_int_equal(crowd_push(p, "ends", GOES_ON, NULL, NULL), 0);
    start(p, "processes=1 lease=0.6");
    wait_until(pool_ledger(p, "done ends") == 1, 30);
    end_worker(p);
    assert_int_equal(pool_ledger(p, "lost"), 0);
    assert_int_equal(count_done(p), 1);
    assert_false(pool_said(p, "Lease lost"));
    assert_false(pool_said(p, "Outcome unknown"));
}

/* ---- several at once in one child ------------------------------------------------------------ */

enum { BESIDE = 6, BESIDE_SIZE = 150000 };

static void say_and_affect(jobq_job *job, int number)
{
    char *result = make_result(BESIDE_SIZE + number);

    if (jobq_job_progress(job, number, NULL, 0) < 0 || insert_effect(job) != 0 ||
        jobq_job_set_result(job, JOBQ_FORMAT_JSON, result, (size_t)(BESIDE_SIZE + number)) < 0)
        pool_note("trouble", jobq_error_message(jobq_error_last()), jobq_job_id(job));
    free(result);
}

/* Takes all of them before it ends any. */
static int loop_beside(jobq_worker *worker)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_HANDLER, JOBQ_STYLE_SNAKE);
    jobq_job *open[BESIDE], *job;
    int code = 0, rc, n = 0;
    jobq_event *event;

    jobq_conf_set(conf, "async_concurrency", "6", 1);
    rc = jobq_worker_handle(worker, "beside", 6, 1, conf);
    jobq_conf_free(conf);
    if (rc < 0 || (rc = jobq_worker_start(worker, NULL, 0, NULL, &code)) <= 0)
        return rc < 0 ? rc : code;
    while ((rc = jobq_worker_poll(worker, &job, &event)) > 0) {
        if (rc != JOBQ_STEP_JOB) {
            usleep(2000);
            continue;
        }
        say_and_affect(job, pool_argument(job));
        open[n++] = job;
        for (int i = 0; n == BESIDE && i < BESIDE; i++)
            jobq_job_settle(open[i], JOBQ_ENDED_DONE, -1);
        n = n == BESIDE ? 0 : n;
    }
    return jobq_worker_finish(worker);
}

/* Each says and leaves its own, and shares the connection and the place for large results. */
static void test_n7_side_by_side(void **state)
{
    pool *p = *state;
    char id[32];

    make_table(p);
    for (int i = 0; i < BESIDE; i++) {
        snprintf(id, sizeof(id), "id=beside-%d track=true", i);
        assert_int_equal(crowd_push(p, "beside", i, id, NULL), 0);
    }
    site = p;
    p->loop = loop_beside;
    pool_start(p, "processes=1");
    for (int i = 0; i < BESIDE; i++) {
        double percent = -1;
        jobq_info *info;
        size_t n = 0;

        snprintf(id, sizeof(id), "beside-%d", i);
        assert_ok(jobq_queue_wait(p->queue, id, strlen(id), 30000, &info));
        assert_non_null(jobq_info_result(info, &n, NULL, NULL));
        assert_int_equal(n, BESIDE_SIZE + i);
        assert_true(jobq_info_progress(info, &percent, NULL) && percent == i);
        jobq_info_free(info);
    }
    end_worker(p);
    assert_int_equal(pool_ledger(p, "trouble"), 0);
    assert_int_equal(count_effects(p), BESIDE);
}

/* ---- pushes that are repeated (rule B5) ------------------------------------------------------ */

enum { PUSHES = 60, CUTS = 12 };

/* Until an answer comes, and once more. */
static void push_until_known(pool *p, int number)
{
    char options[64], want[32], id[129];

    for (int i = number; i < PUSHES; i += 2) {
        snprintf(want, sizeof(want), "push-%d", i);
        snprintf(options, sizeof(options), "id=%s idempotent=true", want);
        for (int tries = 0; crowd_push(p, "once", i, options, id) < 0; tries++)
            assert_true(tries < 500);
        assert_string_equal(id, want);
        if (crowd_push(p, "once", i, options, id) == 0)
            pool_write(p, "stored twice");
        usleep(5000);
    }
}

/* Cut at any byte, either way, while they push: a push whose answer was lost is simply repeated,
 * also when its job has ended, and no job runs twice. */
static void test_b5_repeated_pushes(void **state)
{
    const bool is_file = store_under_test() == STORE_SQLITE;
    pool *p = *state, through;
    const int port = is_file ? 0 : atoi(strrchr(p->dsn, ':') + 1);
    proxy *way = is_file ? NULL : proxy_start(port, NULL);
    unsigned seed = 77;
    crowd c;

    pool_open_at(&through, way ? proxy_dsn(way, p->dsn, port) : p->dsn, NULL);
    start(p, "processes=2");
    crowd_start(&c, &through, 2, push_until_known);
    for (int i = 0; way && i < CUTS; i++) {
        proxy_cut(way, i % 3 ? TO_CLIENT : TO_SERVER, (int64_t)(rand_r(&seed) % 900));
        wait_until(proxy_cuts(way) > i || pool_ledger(p, "done once") >= PUSHES - 4, 60);
    }
    crowd_wait(&c, 60);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, 30);
    end_worker(p);
    assert_int_equal(pool_ledger(&through, "stored twice"), 0);
    pool_close(&through);
    if (way)
        proxy_stop(way);
    assert_int_equal(pool_ledger(p, "begin once"), PUSHES);
    assert_int_equal(crowd_count_ids(p, "begin once"), PUSHES);
}

int main(void)
{
    enum { NO_SQL = 1u << STORE_REDIS };
    static const store_test tests[] = {
        STORE_TEST(test_n7_results),
        STORE_TEST(test_n7_other_ends),
        STORE_TEST(test_n7_result_of_a_dead_child),
        STORE_TEST(test_o1_effect_of_a_lost_lease),
        STORE_TEST(test_d7_effect_without_descriptors),
        STORE_TEST_WITHOUT(test_o1_done_statement_under_kills, NO_SQL),
        STORE_TEST_WITHOUT(test_o1_work_after_the_commit, NO_SQL),
        STORE_TEST(test_g8_inline),
        STORE_TEST(test_n7_side_by_side),
        STORE_TEST(test_b5_repeated_pushes),
    };

    return stores_run_all("process/effects", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          pool_tear_down);
}
