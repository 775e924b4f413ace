/* SPDX-License-Identifier: MIT
 *
 * What only several processes show: wake-ups, forks, races. Children never return into the test
 * runner.
 */
#include "contract/contract.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void need_shared(void)
{
    need_feature(JOBQ_FEATURE_SHARED, "other processes");
}

static void expect_good_end(const pid_t *pids, size_t n)
{
    int bad = 0;

    for (size_t i = 0; i < n; i++) {
        int status = -1;

        waitpid(pids[i], &status, 0);
        bad += status != 0;
    }
    assert_int_equal(bad, 0);
}

/* In a child: the library must not fail. */
static void must(bool good)
{
    if (good)
        return;
    fprintf(stderr, "child: %s\n", jobq_error_message(jobq_error_last()));
    _exit(1);
}

static int64_t clock_us(clockid_t which)
{
    struct timespec ts;

    clock_gettime(which, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void nap_ms(int ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&ts, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------- */

enum { WAKES = 30 };

/* Pushes jobs 50 ms apart and writes down when each was confirmed. */
static void push_slowly(int fd)
{
    for (int i = 0; i < WAKES; i++) {
        char id[32];
        jobq_push item;
        int64_t now_us;

        snprintf(id, sizeof(id), "slow-%d", i);
        item = job_item(id, "q");
        nap_ms(50);
        must(jobq__store_push(store, &item, 1) == 0 && item.result == 0);
        now_us = clock_us(CLOCK_MONOTONIC);
        must(write(fd, &now_us, sizeof(now_us)) == sizeof(now_us));
    }
    _exit(0);
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Rule C7: wide budgets; the figures are printed. Every push is seen: none is slept over. */
void test_c7_wakes(void **state)
{
    int64_t taken_us[WAKES];
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 200, .wake_fd = -1};
    int fds[2];
    pid_t pid;

    (void)state;
    need_shared();
    push_job("warm", "q");
    settle_op("w", reserve_one("w", "q", "warm"), JOBQ_OP_DONE);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0)
        push_slowly(fds[1]);
    for (int i = 0; i < WAKES; i++) {
        int64_t pushed_us, woken_us;

        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
        woken_us = clock_us(CLOCK_MONOTONIC);
        while (reserve_jobs("w", "q", 1) == 0) /* waiting is a hint */
            assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
        assert_int_equal(read(fds[0], &pushed_us, sizeof(pushed_us)), sizeof(pushed_us));
        taken_us[i] = woken_us - pushed_us;
    }
    expect_good_end(&pid, 1);
    close(fds[0]);
    close(fds[1]);
    qsort(taken_us, WAKES, sizeof(taken_us[0]), by_size);
    print_message("wake-up after a push: p50 %lld us, longest %lld us\n",
                  (long long)taken_us[WAKES / 2], (long long)taken_us[WAKES - 1]);
    assert_true(taken_us[WAKES / 2] < (contract_has(JOBQ_FEATURE_WAKE) ? 25000 : 250000));
}

/* ---- waiting for one job --------------------------------------------------------------------- */

/* As core asks: no queues to take from, though the place of the job may be known. */
static jobq_wait wait_for(const char *id, const jobq_slice *place, int64_t timeout_ms)
{
    return (jobq_wait){
        .queues = place, .timeout_ms = timeout_ms, .poll_ms = 200, .wake_fd = -1, .job = TEXT(id)};
}

/* Rule N7: ended and unknown jobs end the wait at once; those that live do not, nor does what is
 * due beside them. */
void test_n7_wait_for_a_job(void **state)
{
    static const int ops[] = {JOBQ_OP_DONE, JOBQ_OP_DEAD};
    const jobq_slice q = TEXT("q");
    jobq_push due = job_item("due", "q");
    jobq_settlement s;
    jobq_wait w = wait_for("none", &q, 20000);

    (void)state;
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    begin_worker("w", 3600000);
    for (size_t i = 0; i < 2; i++) {
        push_job(i ? "dead" : "done", "q");
        w = wait_for(i ? "dead" : "done", i ? &q : NULL, 30);
        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
        s = settlement(reserve_one("w", "q", i ? "dead" : "done"), ops[i]);
        s.keep_ms = 1000000;
        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
        assert_int_equal(settle_with("w", &s), 0);
        w.timeout_ms = 20000;
        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    }
    push_job("a", "q");
    due.delay_ms = 1000;
    push_item(&due);
    pass_time(2000, 2000);
    w = wait_for("a", &q, 30);
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_TIMEOUT);
}

enum { ENDS = 15 };

static void end_slowly(int fd)
{
    for (int i = 0; i < ENDS; i++) {
        jobq_settlement s;
        int64_t now_us;

        must(reserve_jobs("w", "q", 1) == 1);
        s = settlement(got.first, i % 3 == 1 ? JOBQ_OP_DEAD : JOBQ_OP_DONE);
        s.keep_ms = 1000000; /* only what is kept is waited for */
        nap_ms(30);
        must(settle_with("w", &s) == 0);
        now_us = clock_us(CLOCK_MONOTONIC);
        must(write(fd, &now_us, sizeof(now_us)) == sizeof(now_us));
    }
    _exit(0);
}

/* Rule N7: woken by the end of the job where the store can (as C7). */
void test_n7_woken_by_its_end(void **state)
{
    const jobq_slice q = TEXT("q");
    int64_t late_us[ENDS];
    char id[32];
    int fds[2];
    pid_t pid;

    (void)state;
    need_shared();
    for (int i = 0; i < ENDS; i++) {
        snprintf(id, sizeof(id), "job-%02d", i);
        push_job(id, "q");
    }
    begin_worker("w", 3600000);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0)
        end_slowly(fds[1]);
    for (int i = 0; i < ENDS; i++) {
        int64_t ended_us;
        jobq_wait w;

        snprintf(id, sizeof(id), "job-%02d", i);
        w = wait_for(id, &q, 20000);
        do /* waiting is a hint */
            assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
        while (find_job(id) && find_job(id)->state < 3);
        late_us[i] = clock_us(CLOCK_MONOTONIC);
        assert_int_equal(read(fds[0], &ended_us, sizeof(ended_us)), sizeof(ended_us));
        late_us[i] -= ended_us;
    }
    qsort(late_us, ENDS, sizeof(late_us[0]), by_size);
    print_message("woken by a job's end after %.2f ms (median), %.2f ms (most)\n",
                  (double)late_us[ENDS / 2] / 1000, (double)late_us[ENDS - 1] / 1000);
    if (contract_has(JOBQ_FEATURE_WAKE))
        assert_true(late_us[ENDS / 2] < 25000);
    expect_good_end(&pid, 1);
    close(fds[0]);
    close(fds[1]);
}

/* ---- an idle wait ---------------------------------------------------------------------------- */

/* Pushes, takes and finishes jobs of queue "q" for so long. */
static void churn(int ms)
{
    const int64_t end_us = clock_us(CLOCK_MONOTONIC) + ms * 1000LL;
    static jobq_batch out;
    jobq_slice q = TEXT("q");

    for (int i = 0; clock_us(CLOCK_MONOTONIC) < end_us; i++) {
        char id[32];
        jobq_push item;
        jobq_exchange x = {.worker = TEXT("busy"),
                           .lease_ms = 60000,
                           .queues = &q,
                           .queue_count = 1,
                           .want = 1,
                           .out = &out};
        jobq_settlement s;

        snprintf(id, sizeof(id), "churn-%d", i);
        item = job_item(id, "q");
        jobq__batch_reset(&out);
        must(jobq__store_push(store, &item, 1) == 0 && jobq__store_exchange(store, &x) == 0);
        must(out.first != NULL);
        s = settlement(out.first, JOBQ_OP_DONE);
        x.settle = &s;
        x.settle_count = 1;
        x.want = 0;
        must(jobq__store_exchange(store, &x) == 0 && s.result == 0);
    }
    _exit(0);
}

static int64_t cost_of_waiting(const jobq_wait *w)
{
    const int64_t before_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);

    assert_int_equal(jobq__store_wait(store, w), JOBQ_WAIT_TIMEOUT);
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) - before_us;
}

/* Rule C7: waiting costs little, also while others work on their queues. */
void test_c7_idle(void **state)
{
    jobq_slice q = TEXT("idle");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 1500, .poll_ms = 1000, .wake_fd = -1};
    int64_t quiet_us, busy_us;
    pid_t pid;

    (void)state;
    need_shared();
    push_job("b", "idle");
    settle_op("w", reserve_one("w", "idle", "b"), JOBQ_OP_DONE);
    quiet_us = cost_of_waiting(&w);
    pid = fork();
    if (pid == 0)
        churn(2500);
    nap_ms(300);
    busy_us = cost_of_waiting(&w);
    expect_good_end(&pid, 1);
    print_message("1.5 s of waiting: %lld us of CPU when quiet, %lld us beside a busy worker\n",
                  (long long)quiet_us, (long long)busy_us);
    assert_true(quiet_us < 15000);
    assert_true(busy_us < 150000);
}

static void hear_nothing(int number)
{
    (void)number;
}

/* Rule C9: a signal ends the wait, and nothing else of the conversation. */
void test_c9_wait_hears_signals(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 60000, .poll_ms = 1000, .wake_fd = -1};
    struct sigaction act = {.sa_handler = hear_nothing}, old;
    const struct itimerval often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    int rc;

    (void)state;
    push_job("a", "else");
    sigaction(SIGALRM, &act, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    rc = jobq__store_wait(store, &w);
    for (int i = 0; i < 200; i++) /* operations go through all the same */
        assert_ok(jobq__store_now(store, &(int64_t){0}));
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_int_equal(rc, JOBQ_EINTR);
    push_job("b", "q");
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
}

/* ---- forks and races ------------------------------------------------------------------------- */

/* Rule K4: a child opens its own, whatever it does with what it inherited; the parent goes on. */
void test_k4_fork(void **state)
{
    pid_t pids[2];

    (void)state;
    need_shared();
    push_job("parent", "q");
    reserve_one("w", "q", "parent");
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            jobq_push item = job_item("child", "q");

            if (i == 0)
                must(jobq__store_push(store, &item, 1) == 0 && item.result == 0);
            jobq__store_free(store);
            _exit(0);
        }
    }
    expect_good_end(pids, 2);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    push_job("parent again", "q");
    assert_int_equal(count_jobs("q").ready, 2);
}

enum { CHUNK = 50, CHUNKS = 30 };

static void push_chunks(void)
{
    for (int i = 0; i < CHUNKS; i++) {
        jobq_push items[CHUNK];
        char ids[CHUNK][32];

        for (int k = 0; k < CHUNK; k++) {
            snprintf(ids[k], sizeof(ids[k]), "chunk-%d-%d", i, k);
            items[k] = job_item(ids[k], "q");
        }
        must(jobq__store_push(store, items, CHUNK) == 0);
    }
    _exit(0);
}

/* Rule B3: whoever looks meanwhile sees whole chunks only. */
void test_b3_stored_together(void **state)
{
    pid_t pid;
    int status = -1;

    (void)state;
    need_shared();
    need_feature(JOBQ_FEATURE_ATOMIC_BATCH, "pushes that are stored as one");
    pid = fork();
    if (pid == 0)
        push_chunks();
    while (waitpid(pid, &status, WNOHANG) == 0)
        assert_int_equal(count_jobs("q").ready % CHUNK, 0);
    assert_int_equal(status, 0);
    assert_int_equal(count_jobs("q").ready, CHUNK * CHUNKS);
}

void test_schema_race(void **state)
{
    enum { RACERS = 4 };

    (void)state;
    need_shared();
    for (int round = 0; round < 3; round++) {
        const char *fresh = contract_fresh_dsn();
        jobq__store *after;
        pid_t pids[RACERS];
        jobq_counts c = {0};
        int gate[2];

        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < RACERS; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                jobq__store *mine = NULL;
                char id[16], byte;
                jobq_push item;

                snprintf(id, sizeof(id), "job-%d", i);
                item = job_item(id, "q");
                close(gate[1]);
                must(jobq__store_new(fresh, NULL, &mine) == 0 && read(gate[0], &byte, 1) == 0);
                must(jobq__store_push(mine, &item, 1) == 0 && item.result == 0);
                _exit(0);
            }
        }
        close(gate[0]);
        close(gate[1]); /* off they go */
        expect_good_end(pids, RACERS);
        after = contract_open(fresh);
        assert_ok(jobq__store_counts(after, TEXT("q"), &c));
        assert_int_equal(c.ready, RACERS);
        jobq__store_free(after);
    }
}

enum { CROWD_PUSHERS = 2, CROWD_WORKERS = 4, CROWD_EACH = 300 };

static void push_crowd(int number)
{
    for (int i = 0; i < CROWD_EACH; i += 10) {
        jobq_push items[10];
        char ids[10][32];

        for (int k = 0; k < 10; k++) {
            snprintf(ids[k], sizeof(ids[k]), "%d-%d", number, i + k);
            items[k] = job_item(ids[k], i % 20 ? "q" : "r");
            items[k].priority = (uint8_t)(k % 3);
        }
        must(jobq__store_push(store, items, 10) == 0);
    }
    _exit(0);
}

/* Every other job is given back once, unstarted; the others go into the ledger and are done. */
static size_t settle_crowd(const jobq_batch *out, jobq_settlement *s, int ledger)
{
    size_t n = 0;

    for (const jobq_record *r = out->first; r; r = r->next, n++) {
        char line[64];
        int length = snprintf(line, sizeof(line), "%.*s\n", (int)r->id.n, (const char *)r->id.p);
        const bool back = r->counters.deliveries == 1 && line[length - 2] % 2;

        s[n] = settlement(r, back ? JOBQ_OP_GIVE_BACK : JOBQ_OP_DONE);
        if (!back)
            must(write(ledger, line, (size_t)length) == length);
    }
    return n;
}

static void work_crowd(int number, int ledger, int gate)
{
    static jobq_batch out[2];
    jobq_settlement settle[8];
    jobq_slice queues[] = {TEXT("q"), TEXT("r")};
    char worker[16], byte;
    size_t held = 0;

    snprintf(worker, sizeof(worker), "worker-%d", number);
    for (int turn = 0; read(gate, &byte, 1) < 0 || held; turn = !turn) { /* until it is closed */
        jobq_exchange x = {.worker = TEXT(worker),
                           .lease_ms = 60000,
                           .settle = settle,
                           .settle_count = held,
                           .queues = queues,
                           .queue_count = 2,
                           .want = 1 + (size_t)number % 4,
                           .want_taken_back = 1,
                           .out = &out[turn]};

        jobq__batch_reset(&out[turn]);
        must(jobq__store_exchange(store, &x) == 0);
        for (size_t i = 0; i < held; i++)
            must(settle[i].result == 0);
        held = settle_crowd(&out[turn], settle, ledger);
        if (held == 0)
            nap_ms(2);
    }
    _exit(0);
}

/* Reads ids from the ledger until all were there; fails when one comes twice. */
static void read_crowd(int ledger)
{
    static char seen[CROWD_PUSHERS][CROWD_EACH];
    FILE *f = fdopen(ledger, "r");
    char line[64];

    memset(seen, 0, sizeof(seen));
    for (int n = 0; n < CROWD_PUSHERS * CROWD_EACH; n++) {
        int pusher = -1, i = -1;

        assert_non_null(fgets(line, sizeof(line), f));
        assert_int_equal(sscanf(line, "%d-%d", &pusher, &i), 2);
        if (seen[pusher][i]++)
            fail_msg("job %d-%d came twice", pusher, i);
    }
    fclose(f);
}

/* Rules C3, O2: many take from the same queues at the same time, each job comes once. */
void test_c3_crowd(void **state)
{
    pid_t pids[CROWD_PUSHERS + CROWD_WORKERS];
    int ledger[2], gate[2];

    (void)state;
    need_shared();
    push_job("warm", "q");
    settle_op("w", reserve_one("w", "q", "warm"), JOBQ_OP_DONE);
    assert_int_equal(pipe(ledger), 0);
    assert_int_equal(pipe2(gate, O_NONBLOCK), 0);
    for (int i = 0; i < CROWD_PUSHERS + CROWD_WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(gate[1]);
            close(ledger[0]);
            if (i < CROWD_PUSHERS)
                push_crowd(i);
            work_crowd(i, ledger[1], gate[0]);
        }
    }
    close(ledger[1]);
    close(gate[0]);
    read_crowd(ledger[0]);
    close(gate[1]);
    expect_good_end(pids, CROWD_PUSHERS + CROWD_WORKERS);
    assert_int_equal(count_jobs("q").ready + count_jobs("r").ready, 0);
    assert_int_equal(count_jobs("q").reserved + count_jobs("r").reserved, 0);
    contract_check();
}
