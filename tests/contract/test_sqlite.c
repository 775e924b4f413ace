/* SPDX-License-Identifier: MIT
 *
 * The contract on SQLite, and what only a file can show: modes, locks, full disks, forks,
 * other programs.
 */
#include "contract/contract.h"
#include "contract/guarantees.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fd.h"

static char dsn[400], path[256];
static int files;

static const char *fresh_dsn(void)
{
    snprintf(path, sizeof(path), "%s/queue-%d.db", jobq_test_folder(), ++files);
    snprintf(dsn, sizeof(dsn), "sqlite://%s?synchronous=normal&read_timeout=5", path);
    return dsn;
}

/* Another program's look at the file. */
static int64_t ask(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t value;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    value = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/* Every live job stands in exactly one place, and every place belongs to a live job. */
static void check_places(void)
{
    static const char sql[] =
        "WITH live(seq) AS (SELECT seq FROM jobqueue_job WHERE state=0), "
        "place(seq) AS (SELECT seq FROM jobqueue_ready "
        "UNION ALL SELECT seq FROM jobqueue_taken "
        "UNION ALL SELECT seq FROM jobqueue_delayed "
        "UNION ALL SELECT seq FROM jobqueue_held "
        "UNION ALL SELECT seq FROM jobqueue_job WHERE state=0 AND key_state=2) "
        "SELECT abs((SELECT count(*) FROM place) - (SELECT count(*) FROM live)) + "
        "(SELECT count(*) FROM place WHERE seq NOT IN (SELECT seq FROM live)) + "
        "(SELECT count(*) - count(DISTINCT seq) FROM place) + "
        "(SELECT count(*) FROM jobqueue_history WHERE seq NOT IN (SELECT seq FROM jobqueue_job)) + "
        "(SELECT count(*) FROM jobqueue_error WHERE seq NOT IN (SELECT seq FROM jobqueue_job))";

    assert_int_equal(ask(sql), 0);
}

static bool is_intact(void)
{
    return ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") == 1;
}

/* ---- the file -------------------------------------------------------------------------------- */

static mode_t mode_of(const char *suffix)
{
    char name[300];
    struct stat st;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    assert_int_equal(stat(name, &st), 0);
    return st.st_mode & 0777;
}

/* rule P2. */
static void test_p2_file_is_private(void **state)
{
    mode_t old = umask(0);

    (void)state;
    push_job("a", "q");
    umask(old);
    assert_int_equal(mode_of(""), 0600);
    assert_int_equal(mode_of("-wal"), 0600);
    assert_int_equal(mode_of("-shm"), 0600);
}

static void test_bad_files(void **state)
{
    char text[512];
    jobq__store *other;
    int64_t now_ms;
    FILE *f;

    (void)state;
    snprintf(text, sizeof(text), "sqlite://%s", jobq_test_folder());
    other = contract_open(text);
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
    assert_said("folder");
    jobq__store_free(other);
    snprintf(text, sizeof(text), "sqlite://%s/none/q.db", jobq_test_folder());
    other = contract_open(text);
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONNECT);
    assert_said("folder does not exist");
    assert_true(jobq_error_is_fatal(jobq_error_last())); /* a wrong path: waiting will not help */
    jobq__store_free(other);
    snprintf(text, sizeof(text), "%s/text.db", jobq_test_folder());
    f = fopen(text, "w");
    for (int i = 0; i < 500; i++)
        fputs("this is no database\n", f);
    fclose(f);
    snprintf(text, sizeof(text), "sqlite://%s/text.db", jobq_test_folder());
    other = contract_open(text);
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
    assert_said("not an sqlite database");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
    jobq__store_free(other);
}

static void test_migrate_false(void **state)
{
    char text[512];
    jobq__store *other;
    int64_t now_ms;

    (void)state;
    snprintf(text, sizeof(text), "sqlite://%s/absent.db?migrate=false", jobq_test_folder());
    other = contract_open(text);
    assert_code(jobq__store_now(other, &now_ms), JOBQ_ECONF);
    assert_said("jobqueue migrate");
    assert_ok(jobq__store_schema(other)); /* asked for by name it is made */
    assert_ok(jobq__store_now(other, &now_ms));
    jobq__store_free(other);
}

static void execute(const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void test_newer_schema(void **state)
{
    jobq_push item = job_item("b", "q");

    (void)state;
    push_job("a", "q");
    jobq__store_disconnect(store);
    execute("UPDATE jobqueue_schema SET version=999");
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("schema version 999 is newer than this library's");
    assert_true(jobq_error_is_fatal(jobq_error_last()));
}

/* The tables live beside an application's own. */
static void test_in_an_application_database(void **state)
{
    (void)state;
    execute("CREATE TABLE jobs(id); PRAGMA user_version=42");
    push_job("a", "q");
    assert_int_equal(ask("PRAGMA user_version"), 42);
    assert_int_equal(ask("SELECT count(*) FROM jobqueue_jobs"), 1);
}

static int64_t count_shown(const char *where)
{
    char sql[400];

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM jobqueue_jobs WHERE %s", where);
    return ask(sql);
}

/* rule N6. */
static void test_n6_view(void **state)
{
    jobq_push json = job_item("json", "mail");

    (void)state;
    json.body = TEXT("{\"a\":1}");
    store_one_of_each(&json);
    assert_int_equal(count_shown("id='json' AND state='ready' AND queue='mail' "
                                 "AND json_extract(payload, '$.a')=1 "
                                 "AND enqueued_at LIKE '20__-__-__ __:__:__%'"),
                     1);
    assert_int_equal(count_shown("id='later' AND state='delayed' AND payload='626F6479'"), 1);
    assert_int_equal(count_shown("state='reserved' AND reserved_by='worker-1' AND deliveries=1"),
                     1);
    assert_int_equal(count_shown("state='dead' AND reason='attempts_exhausted' AND died_at>''"), 1);
}

/* rules N6, F6: what follows a death is in no count. */
static void test_n6_no_hooks_in_the_view(void **state)
{
    (void)state;
    push_job("hook", "\001mail");
    push_job("job", "mail");
    assert_int_equal(count_shown("1"), 1);
    assert_int_equal(count_shown("id='job'"), 1);
}

/* rule N6 */
static void test_n6_reasons_in_the_view(void **state)
{
    (void)state;
    expect_reason_words(count_shown);
}

/* ---- outages --------------------------------------------------------------------------------- */

static void test_locked_beyond_the_deadline(void **state)
{
    jobq_push item = job_item("b", "q");
    sqlite3 *db = NULL;
    jobq__store *hasty;
    char text[512];
    int64_t began;

    (void)state;
    push_job("a", "q");
    snprintf(text, sizeof(text), "sqlite://%s?read_timeout=0.3", path);
    hasty = contract_open(text);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    began = jobq__clock_mono_ms();
    assert_code(jobq__store_push(hasty, &item, 1), JOBQ_EBUSY);
    assert_true(jobq__clock_mono_ms() - began >= 300);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_said("locked");
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_ok(jobq__store_push(hasty, &item, 1));
    assert_int_equal(item.result, 0);
    jobq__store_free(hasty);
    check_places();
}

/* ---- a lock held for long -------------------------------------------------------------------- */

enum { STALL_LEASE_MS = 1500 };

/* Another program has the write lock from now on, for so long. */
static pid_t hold_lock(int ms)
{
    int ends[2];
    pid_t pid;
    char byte;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        sqlite3 *db = NULL;

        if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_busy_timeout(db, 20000) != SQLITE_OK ||
            sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
            write(ends[1], "", 1) != 1)
            _exit(1);
        usleep((useconds_t)ms * 1000);
        sqlite3_close(db);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

static void lock_is_free(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int64_t alive_until(void)
{
    return ask("SELECT alive_until FROM jobqueue_worker WHERE id='w'");
}

static void begin_stall(void)
{
    push_job("a", "q");
    push_job("b", "q");
    begin_worker("w", STALL_LEASE_MS);
    reserve_jobs("w", "q", 2);
}

/* rule C5: after trouble everybody renews before anybody takes back. Nobody could renew while the
 * lock was held, so the first to have it again does not take what lapsed meanwhile. */
static void test_c5_lock_held_beyond_a_lease(void **state)
{
    jobq_push item = job_item("due", "q");
    pid_t pid;

    (void)state;
    item.delay_ms = 1;
    assert_ok(jobq__store_push(store, &item, 1));
    pass_time(10, 0);
    begin_stall();
    pid = hold_lock(STALL_LEASE_MS + 500);
    assert_int_equal(maintain_all().handled, 1); /* what is due makes it ask for the lock */
    lock_is_free(pid);
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    pass_time(0, 2 * STALL_LEASE_MS); /* "w" is dead indeed */
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(reserve_jobs("w2", "q", 2), 2);
    expect_ids("due b");
}

/* The same when somebody else waited, and who takes back came later. */
static void test_c5_others_waited_for_the_lock(void **state)
{
    jobq_push item = job_item("c", "q");
    int64_t before;
    pid_t pid;

    (void)state;
    begin_stall();
    before = alive_until();
    pid = hold_lock(STALL_LEASE_MS + 500);
    assert_ok(jobq__store_push(store, &item, 1));
    lock_is_free(pid);
    assert_true(alive_until() > before);
    assert_true(alive_until() <= jobq__clock_boot_ms() + STALL_LEASE_MS / 3);
}

/* Maintenance that has to wait for the lock, which another program has for so long. */
static jobq_maintenance maintain_behind_lock(int ms, int64_t *took_ms)
{
    const pid_t pid = hold_lock(ms);
    const int64_t began_ms = jobq__clock_mono_ms();
    const jobq_maintenance m = maintain_all();

    *took_ms = jobq__clock_mono_ms() - began_ms;
    lock_is_free(pid);
    return m;
}

enum { MOMENT_MS = 200, NEXT_MOMENT_MS = 1000 };

/* Who waited only a little cannot know who else did: a moment is left to them, once a second. */
static void test_c5_a_moment_after_a_stall(void **state)
{
    int64_t stalled_ms, took_ms;
    jobq_maintenance m;

    (void)state;
    begin_stall();
    pass_time(0, 10 * STALL_LEASE_MS);
    m = maintain_behind_lock(1000, &took_ms);
    if (m.handled > 0 && (took_ms < 100 || took_ms >= 1000 + MOMENT_MS))
        skip_because("the machine stood still for longer than the lock was held");
    assert_int_equal(m.handled, 0);
    for (int i = 0; m.handled == 0; i++) {
        assert_in_range(m.next_due_ms, m.now_ms + 1, m.now_ms + 1000);
        stalled_ms = jobq__clock_mono_ms();
        pass_time(0, m.next_due_ms - m.now_ms);
        m = maintain_behind_lock(300, &took_ms);
        /* a store that is always busy keeps no jobs for ever */
        assert_true(m.handled == 2 ||
                    jobq__clock_mono_ms() - stalled_ms >= NEXT_MOMENT_MS - MOMENT_MS);
        assert_true(i < 20);
    }
    assert_int_equal(m.handled, 2);
}

/* So many rows that counting them takes about a second of CPU here. */
static int rows_per_second(void)
{
    const clock_t began = clock();

    ask("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<200000) "
        "SELECT count(*) FROM n");
    return (int)(200000 * (double)CLOCKS_PER_SEC / (double)(clock() - began + 1));
}

/* A holder that was stopped in the middle sees it when it goes on, and says so before the commit:
 * here a trigger that counts for long. */
static void test_c5_holder_was_slow(void **state)
{
    jobq_push item = job_item("slow", "q");
    int64_t before, began_ms;
    char sql[400];

    (void)state;
    begin_stall();
    snprintf(sql, sizeof(sql),
             "CREATE TRIGGER slow AFTER INSERT ON jobqueue_job BEGIN "
             "SELECT count(*) FROM (WITH RECURSIVE n(i) AS "
             "(SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d) SELECT i FROM n); END",
             2 * rows_per_second());
    execute(sql);
    begin_worker("w", STALL_LEASE_MS);
    before = alive_until();
    began_ms = jobq__clock_mono_ms();
    assert_ok(jobq__store_push(store, &item, 1));
    if (jobq__clock_mono_ms() - began_ms < 2 * STALL_LEASE_MS / 3 + 100)
        skip_because("the trigger was too quick");
    assert_true(alive_until() > before);
}

/* A file that was deleted or replaced is an outage, not a place where pushes vanish. */
static void test_file_vanishes(void **state)
{
    jobq_push item = job_item("b", "q");
    char side[300];

    (void)state;
    push_job("a", "q");
    unlink(path);
    snprintf(side, sizeof(side), "%s-wal", path);
    unlink(side);
    snprintf(side, sizeof(side), "%s-shm", path);
    unlink(side);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EIO);
    assert_said("deleted or replaced");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_ok(jobq__store_push(store, &item, 1)); /* made anew */
    assert_null(find_job("a"));
    assert_non_null(find_job("b"));
}

static void test_wait_notices_deletion(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 30000, .poll_ms = 1000, .wake_fd = -1};
    pid_t pid;

    (void)state;
    assert_int_equal(count_jobs("q").ready, 0);
    pid = fork();
    if (pid == 0) {
        usleep(100000);
        unlink(path);
        _exit(0);
    }
    assert_code(jobq__store_wait(store, &w), JOBQ_EIO);
    waitpid(pid, NULL, 0);
}

static bool mount_small(const char *folder, const char *options)
{
    mkdir(folder, 0700);
    return geteuid() == 0 && mount("tmpfs", folder, "tmpfs", 0, options) == 0;
}

static void fill_up(const char *folder)
{
    static const char zeros[1024];
    char name[300];
    int fd;

    snprintf(name, sizeof(name), "%s/filler", folder);
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    close(fd);
}

/* rule K3: a full disk fails clearly, nothing half-done, and goes on when there is room. */
static void test_k3_disk_full(void **state)
{
    static char body[100000];
    char folder[200], text[300], id[16];
    jobq_push item;
    int stored = 0, rc = 0;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/small", jobq_test_folder());
    if (!mount_small(folder, "size=2m")) {
        print_message("skipped: a small file system needs root and mount\n");
        skip();
    }
    jobq__store_free(store);
    snprintf(path, sizeof(path), "%s/q.db", folder);
    snprintf(text, sizeof(text), "sqlite://%s?synchronous=full", path);
    store = contract_open(text);
    for (int i = 0; i < 100 && rc == 0; i++) {
        snprintf(id, sizeof(id), "job-%d", i);
        item = job_item(id, "q");
        item.body = jobq__slice(body, sizeof(body));
        rc = jobq__store_push(store, &item, 1);
        stored += rc == 0;
    }
    assert_code(rc, JOBQ_EIO);
    assert_said("disk is full");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_true(stored > 1);
    fill_up(folder);
    jobq__store_disconnect(store);
    /* Opened anew, and full all the same. */
    assert_code(jobq__store_push(store, &item, 1), JOBQ_EIO);
    assert_said("disk is full");
    assert_int_equal(mount("tmpfs", folder, "tmpfs", MS_REMOUNT, "size=16m"), 0);
    assert_int_equal(count_jobs("q").ready, stored);
    assert_ok(jobq__store_push(store, &item, 1));
    assert_int_equal(item.result, 0);
    check_places();
    assert_true(is_intact());
    jobq__store_free(store);
    store = contract_open("memory:");
    umount(folder);
}

static void test_k3_read_only(void **state)
{
    char folder[200], text[300];
    jobq_push item = job_item("b", "q");

    (void)state;
    snprintf(folder, sizeof(folder), "%s/ro", jobq_test_folder());
    if (!mount_small(folder, "size=4m")) {
        print_message("skipped: a read-only file system needs root and mount\n");
        skip();
    }
    jobq__store_free(store);
    snprintf(path, sizeof(path), "%s/q.db", folder);
    snprintf(text, sizeof(text), "sqlite://%s", path);
    store = contract_open(text);
    push_job("a", "q");
    jobq__store_disconnect(store);
    assert_int_equal(mount("tmpfs", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    assert_true(jobq__store_push(store, &item, 1) < 0);
    print_message("read-only: %s\n", jobq_error_message(jobq_error_last()));
    assert_said("read-only");
    assert_int_equal(mount("tmpfs", folder, "tmpfs", MS_REMOUNT, NULL), 0);
    assert_ok(jobq__store_push(store, &item, 1));
    assert_int_equal(count_jobs("q").ready, 2);
    jobq__store_free(store);
    store = contract_open("memory:");
    umount(folder);
}

/* ---- several processes ----------------------------------------------------------------------- */

static void reap(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int status = -1;

        waitpid(pids[i], &status, 0);
        assert_int_equal(status, 0);
    }
}

/* What a child of B099 does until it ends: pushes, takes and finishes with the handle it
 * inherited. */
static void churn(int number, int64_t until_ms)
{
    char id[32], worker[16];
    jobq_slice q = TEXT("q");

    snprintf(worker, sizeof(worker), "w%d", (int)getpid());
    for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
        jobq_push item;
        jobq_settlement s;
        jobq_exchange x = {.worker = TEXT(worker),
                           .lease_ms = 60000,
                           .queues = &q,
                           .queue_count = 1,
                           .want = 1,
                           .out = &got};

        snprintf(id, sizeof(id), "%d-%d-%d", (int)getpid(), number, i);
        item = job_item(id, "q");
        jobq__batch_reset(&got);
        if (jobq__store_push(store, &item, 1) < 0 || jobq__store_exchange(store, &x) < 0)
            _exit(2);
        if (!got.first)
            continue;
        s = settlement(got.first, JOBQ_OP_DONE);
        x.settle = &s;
        x.settle_count = 1;
        x.want = 0;
        if (jobq__store_exchange(store, &x) < 0)
            _exit(3);
    }
}

/* case B099: forks with an open handle; children end in every way; the file stays whole. */
static void test_b099_fork_with_open_handle(void **state)
{
    int64_t end_ms = jobq__clock_mono_ms() + 4000;
    int round = 0, bad = 0;

    (void)state;
    push_job("first", "q");
    for (; round <= 3 || jobq__clock_mono_ms() < end_ms; round++) {
        pid_t pids[3];
        char id[32];

        for (int i = 0; i < 3; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                churn(round, jobq__clock_mono_ms() + 150 + 50 * i);
                if (i == 1)
                    exit(0); /* with destructors and all; the folder belongs to the parent */
                if (i == 2)
                    raise(SIGKILL);
                _exit(0);
            }
        }
        snprintf(id, sizeof(id), "parent-%d", round);
        push_job(id, "q"); /* the parent's handle goes on */
        if (round == 3)
            execute("VACUUM");
        if (round % 3 == 2)
            execute("PRAGMA wal_checkpoint(TRUNCATE)");
        for (int i = 0; i < 3; i++) {
            int status;

            waitpid(pids[i], &status, 0);
            bad += WIFEXITED(status) && WEXITSTATUS(status) != 0;
        }
        if (round % 3 == 0)
            assert_true(is_intact());
    }
    assert_int_equal(bad, 0);
    assert_true(is_intact());
    check_places();
    assert_true(round > 3);
}

/* ---- waking ---------------------------------------------------------------------------------- */

static int64_t wall_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* A push of another program, which rings nobody. */
static const char foreign_push[] =
    "INSERT INTO jobqueue_job(queue, rank, version, available_at, enqueued_at, base_at, id, name) "
    "SELECT id, 9, 1, 1, 1, 1, hex(randomblob(8)), 'n' FROM jobqueue_queue WHERE name='q';"
    "INSERT INTO jobqueue_ready "
    "SELECT queue, rank, available_at, seq FROM jobqueue_job WHERE seq=last_insert_rowid()";

/* A child pushes `n` jobs 10 ms apart and writes each commit's time into the pipe. */
static pid_t start_pusher(int fd, int n, bool foreign)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    for (int i = 0; i < n; i++) {
        char id[32];
        jobq_push item;
        int64_t now_us;

        snprintf(id, sizeof(id), "%s-%d", foreign ? "foreign" : "own", i);
        item = job_item(id, "q");
        usleep(10000);
        if (foreign)
            execute(foreign_push);
        else if (jobq__store_push(store, &item, 1) < 0)
            _exit(1);
        now_us = wall_us();
        if (write(fd, &now_us, sizeof(now_us)) != sizeof(now_us))
            _exit(1);
    }
    _exit(0);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t median_latency_us(bool foreign)
{
    enum { N = 50 };
    int64_t taken[N];
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 1000, .wake_fd = -1};
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = start_pusher(fds[1], N, foreign);
    for (int i = 0; i < N; i++) {
        int64_t pushed_us, woken_us;

        assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
        woken_us = wall_us();
        reserve_one("w", "q", NULL);
        assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
        assert_int_equal(read(fds[0], &pushed_us, sizeof(pushed_us)), sizeof(pushed_us));
        taken[i] = woken_us - pushed_us;
    }
    reap(&pid, 1);
    close(fds[0]);
    close(fds[1]);
    qsort(taken, N, sizeof(taken[0]), by_size);
    print_message("wake-up after %s push: p50 %lld us, p98 %lld us\n",
                  foreign ? "a foreign" : "our", (long long)taken[N / 2], (long long)taken[N - 1]);
    return taken[N / 2];
}

/* rule C7: also after another program's push; wide budgets, the figures are printed. */
static void test_c7_wakes_at_once(void **state)
{
    (void)state;
    push_job("warm", "q");
    settle_op("w", reserve_one("w", "q", "warm"), JOBQ_OP_DONE);
    assert_true(median_latency_us(false) < 5000);
    assert_true(median_latency_us(true) < 20000);
}

/* Beyond what a disk or a busy machine may put between the write and the moment it is seen. */
static ssize_t slow_write(int fd, const void *bytes, size_t n)
{
    const ssize_t done = write(fd, bytes, n);

    usleep(60000);
    return done;
}

static ssize_t slow_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    const ssize_t done = pwrite(fd, bytes, n, at);

    usleep(60000);
    return done;
}

/* rule C7: another program's commit that becomes visible long after its last write is noticed. */
static void test_c7_slow_commit(void **state)
{
    jobq_slice q = TEXT("q");
    jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 15000, .poll_ms = 1000, .wake_fd = -1};
    pid_t pid;

    (void)state;
    push_job("warm", "q");
    settle_op("w", reserve_one("w", "q", "warm"), JOBQ_OP_DONE);
    pid = fork();
    if (pid == 0) {
        sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

        vfs->xSetSystemCall(vfs, "write", (sqlite3_syscall_ptr)slow_write);
        vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)slow_pwrite);
        vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)slow_pwrite);
        usleep(200000); /* the waiter is asleep */
        execute(foreign_push);
        _exit(0);
    }
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    reserve_one("w", "q", NULL);
    reap(&pid, 1);
}

/* ---- statements for the caller's own transaction (rules B8, O1) ------------------------------ */

static jobq_batch statements;

static bool as_text; /* as clients do that know no other type */

/* What it answers: "ID stored", "ID held" ...; "" nothing, NULL: refused. */
static const char *carry_out(sqlite3 *db, const jobq_statement *s)
{
    static char answer[64];
    sqlite3_stmt *stmt = NULL;
    int step;

    assert_int_equal(sqlite3_prepare_v2(db, s->text.p, (int)s->text.n, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_bind_parameter_count(stmt), s->param_count);
    for (int i = 0; i < (int)s->param_count; i++) {
        const jobq_param *p = &s->params[i];

        char digits[32];

        snprintf(digits, sizeof(digits), "%lld", (long long)p->integer);
        if (p->type == JOBQ_PARAM_INT && as_text)
            sqlite3_bind_text(stmt, i + 1, digits, -1, SQLITE_TRANSIENT);
        else if (p->type == JOBQ_PARAM_INT)
            sqlite3_bind_int64(stmt, i + 1, p->integer);
        else if (p->type == JOBQ_PARAM_TEXT || (p->type == JOBQ_PARAM_BYTES && as_text))
            sqlite3_bind_text(stmt, i + 1, p->bytes.p, (int)p->bytes.n, SQLITE_TRANSIENT);
        else if (p->type == JOBQ_PARAM_BYTES)
            sqlite3_bind_blob(stmt, i + 1, p->bytes.p, (int)p->bytes.n, SQLITE_TRANSIENT);
    }
    step = sqlite3_step(stmt);
    answer[0] = '\0';
    if (step == SQLITE_ROW)
        snprintf(answer, sizeof(answer), "%s %s", (const char *)sqlite3_column_text(stmt, 0),
                 (const char *)sqlite3_column_text(stmt, 1));
    sqlite3_finalize(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? answer : NULL;
}

static const char *push_by_statement(sqlite3 *db, const jobq_push *item)
{
    jobq_request r = {.push = item, .out = &statements};

    jobq__batch_reset(&statements);
    assert_ok(jobq__store_request(store, &r));
    return carry_out(db, &r.statement);
}

static sqlite3 *open_application(void)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

static void run_sql(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void test_b8_push_in_a_transaction(void **state)
{
    jobq_limit limit = {.queue = TEXT("full"), .value = 1};
    jobq_push item = job_item("a", "q");
    sqlite3 *db;

    (void)state;
    push_job("first", "full");
    assert_ok(jobq__store_capacity(store, &limit));
    db = open_application();
    item.unique = TEXT("key");
    item.delay_ms = 60000;
    run_sql(db, "BEGIN");
    assert_string_equal(push_by_statement(db, &item), "a stored");
    run_sql(db, "ROLLBACK");
    assert_null(find_job("a"));
    run_sql(db, "BEGIN");
    assert_string_equal(push_by_statement(db, &item), "a stored");
    item.id = TEXT("b");
    assert_string_equal(push_by_statement(db, &item), "a held");
    item = job_item("c", "full");
    assert_string_equal(push_by_statement(db, &item), "c full");
    item = job_item("d", "q");
    assert_string_equal(push_by_statement(db, &item), "d stored");
    assert_string_equal(push_by_statement(db, &item), "d duplicate");
    item.idempotent = true;
    assert_string_equal(push_by_statement(db, &item), "d held");
    run_sql(db, "COMMIT");
    sqlite3_close(db);
    assert_int_equal(find_job("a")->state, 1);
    assert_null(find_job("b"));
    assert_null(find_job("c"));
    reserve_one("w", "q", "d");
    assert_memory_equal(got.first->body.p, item.body.p, item.body.n);
    assert_string_equal(contract_strays("q"), "");
}

/* Rule B6 in the caller's transaction: what waits is replaced; one follower is kept for what
 * runs. */
static void test_b8_replace_in_a_transaction(void **state)
{
    jobq_push item = job_item("a", "q");
    sqlite3 *db;

    (void)state;
    push_job("first", "q");
    begin_worker("w", 3600000);
    settle_op("w", reserve_one("w", "q", "first"), JOBQ_OP_DONE);
    db = open_application();
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    item.delay_ms = 60000;
    item.max_wait_ms = 100000;
    assert_string_equal(push_by_statement(db, &item), "a stored");
    item.id = TEXT("b");
    item.body = TEXT("later");
    item.delay_ms = 90000000;
    assert_string_equal(push_by_statement(db, &item), "a replaced");
    assert_memory_equal(find_job("a")->body.p, "later", 5);
    assert_true(find_job("a")->available_at_ms <= find_job("a")->enqueued_at_ms + 100000);
    assert_int_equal(count_jobs("q").delayed, 1);
    item.delay_ms = 0;
    assert_string_equal(push_by_statement(db, &item), "a replaced");
    assert_int_equal(count_jobs("q").ready, 1);
    assert_string_equal(contract_strays("q"), "");
    reserve_one("w", "q", "a");
    assert_string_equal(push_by_statement(db, &item), "b replaced");
    item.id = TEXT("c");
    item.body = TEXT("last");
    assert_string_equal(push_by_statement(db, &item), "b replaced");
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_string_equal(contract_strays("q"), "");
    assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    maintain_all();
    assert_memory_equal(reserve_one("w", "q", "b")->body.p, "last", 4);
    sqlite3_close(db);
}

/* Rule N7: what is kept of it is kept here, too. */
static void test_o1_done_with_its_result(void **state)
{
    jobq_settlement s;
    jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &statements};
    sqlite3 *db;

    (void)state;
    begin_worker("w", 3600000);
    for (int bare = 0; bare < 2; bare++) {
        push_job(bare ? "bare" : "a", "q");
        s = settlement(reserve_one("w", "q", bare ? "bare" : "a"), JOBQ_OP_DONE);
        s.keep_ms = 1000000;
        s.keep_bare = bare;
        s.outcome = TEXT("result");
        s.history = TEXT("attempt");
        jobq__batch_reset(&statements);
        assert_ok(jobq__store_request(store, &r));
        db = open_application();
        assert_non_null(carry_out(db, &r.statement));
        sqlite3_close(db);
    }
    assert_int_equal(find_job("a")->state, 3);
    assert_memory_equal(find_job("a")->outcome.p, "result", 6);
    assert_int_equal(find_job("a")->history_count, 1);
    assert_true(find_job("a")->body.n > 0);
    assert_int_equal(find_job("bare")->body.n, 0);
    assert_string_equal(contract_strays("q"), "");
}

/* The job's traces and key go with it. */
static void test_o1_done_with_all(void **state)
{
    jobq_settlement s;
    jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &statements};
    jobq_push item = job_item("a", "q");
    sqlite3 *db;

    (void)state;
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    push_item(&item);
    begin_worker("w", 3600000);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_PROGRESS);
    s.outcome = TEXT("half");
    assert_int_equal(settle_with("w", &s), 0);
    item.id = TEXT("b");
    assert_int_equal(push_item(&item), 2);
    s = settlement(got.first, JOBQ_OP_DONE);
    jobq__batch_reset(&statements);
    assert_ok(jobq__store_request(store, &r));
    db = open_application();
    assert_non_null(carry_out(db, &r.statement));
    sqlite3_close(db);
    assert_null(find_job("a"));
    assert_int_equal(ask("SELECT count(*) FROM jobqueue_outcome"), 0);
    maintain_all();
    reserve_one("w", "q", "b");
    assert_string_equal(contract_strays("q"), "");
}

/* A stale token makes the application's transaction fail. */
static void test_o1_done_in_a_transaction(void **state)
{
    jobq_settlement s;
    jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &statements};
    sqlite3 *db;

    (void)state;
    push_job("a", "q");
    begin_worker("w", 30000);
    s = settlement(reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    jobq__batch_reset(&statements);
    assert_ok(jobq__store_request(store, &r));
    db = open_application();
    run_sql(db, "CREATE TABLE work(n); BEGIN; INSERT INTO work VALUES(1)");
    assert_non_null(carry_out(db, &r.statement));
    run_sql(db, "COMMIT");
    assert_null(find_job("a"));
    assert_int_equal(settle_with("w", &s), JOBQ_ELEASE);
    run_sql(db, "BEGIN; INSERT INTO work VALUES(2)");
    assert_null(carry_out(db, &r.statement));
    run_sql(db, "ROLLBACK");
    sqlite3_close(db);
    assert_int_equal(ask("SELECT count(*) FROM work"), 1);
}

static void test_b8_all_as_text(void **state)
{
    as_text = true;
    test_b8_push_in_a_transaction(state);
    as_text = false;
}

static void test_b8_replace_as_text(void **state)
{
    as_text = true;
    test_b8_replace_in_a_transaction(state);
    as_text = false;
}

static void test_o1_done_as_text(void **state)
{
    as_text = true;
    test_o1_done_with_its_result(state);
    jobq__store_free(store);
    store = contract_open(contract_fresh_dsn());
    test_o1_done_in_a_transaction(state);
    as_text = false;
}

/* Rule B7: $2 is the second value wherever it stands; other names are refused. */
static void test_b7_numbered_places(void **state)
{
    static const struct {
        const char *sql;
        int rc;
    } cases[] = {{"SELECT $1 < $2", 0},           {"SELECT $2 > $1", 0},
                 {"SELECT ?2 > ?1", 0},           {"SELECT ? < ?", 0},
                 {"SELECT $2 < $1", JOBQ_EGUARD}, {"SELECT $1 < $3", JOBQ_EINVAL},
                 {"SELECT $1 < $x", JOBQ_EINVAL}, {"SELECT :a < :b", JOBQ_EINVAL}};
    jobq_param values[2] = {{.type = JOBQ_PARAM_INT, .integer = 1},
                            {.type = JOBQ_PARAM_INT, .integer = 2}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jobq_statement guard = {.text = TEXT(cases[i].sql), .params = values, .param_count = 2};
        const char id[] = {(char)('a' + i), '\0'};
        jobq_push item = job_item(id, "q");
        int rc;

        item.guard = &guard;
        rc = jobq__store_push(store, &item, 1);
        assert_int_equal(rc < 0 ? rc : item.result, cases[i].rc);
    }
}

/* Rules B7, O1: what would end the transaction is refused wherever it hides, and the jobs pushed
 * with it are not stored. */
static void test_b7_hidden_commit(void **state)
{
    static const char *const hidden[] = {"/* x */ COMMIT",
                                         "-- x\nCOMMIT",
                                         "/**/--\n /* ; */ROLLBACK",
                                         "; COMMIT",
                                         " \v\fEND",
                                         "\xef\xbb\xbf"
                                         "COMMIT",
                                         "/* x */ ATTACH ':memory:' AS other",
                                         "/*/ */ COMMIT"};
    jobq_effect e = {.worker = TEXT("w"), .queue = TEXT("q"), .out = &statements};

    (void)state;
    begin_worker("w", 30000);
    push_job("held", "q");
    e.token = reserve_one("w", "q", "held")->token;
    e.id = TEXT("held");
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        jobq_statement guard = {.text = TEXT(hidden[i])};
        jobq_push items[2] = {job_item("a", "q"), job_item("b", "q")};

        items[1].guard = &guard;
        assert_code(jobq__store_push(store, items, 2), JOBQ_EINVAL);
        assert_said("the guard may not contain");
        assert_null(find_job("a"));
        e.statement = guard;
        assert_code(jobq__store_effect(store, &e), JOBQ_EINVAL);
        assert_said("the effect may not contain");
    }
    e.statement.text = TEXT("/* COMMIT */ SELECT 1 -- COMMIT");
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.result, 0);
}

static void test_b7_guard_amid_a_call(void **state)
{
    (void)state;
    expect_guard_amid_a_call("jobqueue_jobs");
}

/* Rules B7, O1: the caller's statement holds the write lock, so it ends with the call's deadline;
 * nothing of the call is stored, and the connection goes on. */
static void test_o1_slow_statements(void **state)
{
    static const char slow[] =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<50000000) ";
    jobq_effect e = {.worker = TEXT("w"), .queue = TEXT("q"), .out = &statements};
    jobq_push items[2] = {job_item("b", "q"), job_item("c", "q")};
    jobq_statement guard = {0};
    char text[512], sql[2][300];
    jobq__store *hasty;
    int64_t began;

    (void)state;
    begin_worker("w", 30000);
    push_job("a", "q");
    e.token = reserve_one("w", "q", "a")->token;
    e.id = TEXT("a");
    snprintf(text, sizeof(text), "sqlite://%s?read_timeout=0.3", path);
    snprintf(sql[0], sizeof(sql[0]), "%s SELECT count(*) FROM n", slow);
    snprintf(sql[1], sizeof(sql[1]), "CREATE TABLE own AS %s SELECT i FROM n WHERE i<0", slow);
    hasty = contract_open(text);
    guard.text = (jobq_slice){sql[0], strlen(sql[0])};
    items[1].guard = &guard;
    began = jobq__clock_mono_ms();
    assert_code(jobq__store_push(hasty, items, 2), JOBQ_ETIMEOUT);
    assert_true(jobq__clock_mono_ms() - began >= 250);
    assert_said("the guard took longer than read_timeout (0.3 s");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_null(find_job("b"));
    e.statement.text = (jobq_slice){sql[1], strlen(sql[1])};
    assert_code(jobq__store_effect(hasty, &e), JOBQ_ETIMEOUT);
    assert_said("the effect took longer than read_timeout (0.3 s");
    assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name='own'"), 0);
    e.statement.text = TEXT("CREATE TABLE own(x)");
    assert_ok(jobq__store_effect(hasty, &e)); /* its connection and the lock are free */
    assert_int_equal(e.result, 0);
    items[1].guard = NULL;
    assert_ok(jobq__store_push(hasty, items, 2));
    assert_non_null(find_job("c"));
    jobq__store_free(hasty);
    check_places();
}

/* Rules K3, O1: trouble of the store is no mistake in the statement. */
static void test_o1_effect_without_room(void **state)
{
    static const struct {
        const char *sql;
        int rc;
    } steps[] = {{"CREATE TABLE own(x UNIQUE)", 0},
                 {"INSERT INTO own VALUES(1)", 0},
                 {"INSERT INTO own VALUES(1)", JOBQ_EINVAL},
                 {"INSERT OR ROLLBACK INTO own VALUES(1)", JOBQ_EINVAL},
                 {"PRAGMA max_page_count=1", 0}, /* as many as there are */
                 {"INSERT INTO own VALUES(zeroblob(1000000))", JOBQ_EIO}};
    jobq_effect e = {.worker = TEXT("w"), .queue = TEXT("q"), .out = &statements};

    (void)state;
    begin_worker("w", 30000);
    push_job("a", "q");
    e.token = reserve_one("w", "q", "a")->token;
    e.id = TEXT("a");
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        e.statement = (jobq_statement){.text = TEXT(steps[i].sql)};
        assert_int_equal(jobq__store_effect(store, &e), steps[i].rc);
    }
    assert_said("the disk is full");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_int_equal(ask("SELECT count(*) FROM own"), 1);
}

/* ---- files of before ------------------------------------------------------------------------- */

/* Makes the file by what an earlier version of the library left (tests/contract/old). */
static void make_old_file(int version)
{
    char name[400], *sql;
    const char *root = getenv("JOBQ_SRCDIR");
    FILE *f;
    size_t n;

    snprintf(name, sizeof(name), "%s/tests/contract/old/sqlite-%d.sql", root ? root : "..",
             version);
    f = fopen(name, "r");
    assert_non_null(f);
    sql = calloc(1, 65536);
    assert_non_null(sql);
    n = fread(sql, 1, 65535, f);
    assert_true(n > 0 && n < 65535);
    fclose(f);
    execute(sql);
    free(sql);
}

static void test_old_schema(void **state)
{
    char text[400];
    jobq_push item = job_item("next", "q");
    jobq_control pauses = {.out = &statements};

    (void)state;
    jobq__store_free(store);
    snprintf(path, sizeof(path), "%s/old.db", jobq_test_folder());
    make_old_file(2);
    snprintf(text, sizeof(text), "sqlite://%s?migrate=off", path);
    store = contract_open(text);
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("schema version 2, this library needs 3");
    assert_said("jobqueue migrate");
    assert_ok(jobq__store_schema(store));
    assert_int_equal(ask("SELECT version FROM jobqueue_schema"), 3);
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "");
    assert_string_equal(contract_strays("q"), "");
    assert_int_equal(count_jobs("q").ready, 2); /* one of them lost with an earlier boot */
    assert_int_equal(count_jobs("q").delayed, 1);
    assert_int_equal(count_jobs("q").dead, 1);
    assert_int_equal(find_job("done")->state, 3);
    assert_memory_equal(find_job("dead")->error.p, "error", 5);
    assert_int_equal(find_job("dead")->history_count, 1);
    item.unique = TEXT("key-ready");
    assert_int_equal(push_item(&item), 1);
    assert_string_equal(item.holder, "ready");
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead", false), 0);
    maintain_all();
    reserve_one("v", "q", "held");
    assert_int_equal(settle_op("v", got.first, JOBQ_OP_DONE), 0);
    jobq__batch_reset(&statements);
    assert_ok(jobq__store_control(store, &pauses));
    assert_memory_equal(pauses.pauses->queue.p, "p", 1);
    assert_string_equal(contract_strays("q"), "");
}

/* A program with the library of version 2 that is still connected ends the holder of a key: whoever
 * follows it gets the key from the next maintenance. */
static void test_b6_holder_ended_by_an_old_library(void **state)
{
    jobq_push item = job_item("a", "q");

    (void)state;
    item.unique = TEXT("key");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    push_item(&item);
    begin_worker("w", 3600000);
    reserve_one("w", "q", "a");
    item.id = TEXT("b");
    assert_int_equal(push_item(&item), 2);
    execute("DELETE FROM jobqueue_held; DELETE FROM jobqueue_job WHERE id='a'");
    assert_string_equal(contract_strays("q"), "b/0 ");
    maintain_all();
    assert_string_equal(contract_strays("q"), "");
    maintain_all();
    reserve_one("w", "q", "b");
    item.id = TEXT("c");
    assert_int_equal(push_item(&item), 2);
}

/* ---- self-checks ----------------------------------------------------------------------------- */

/* Rule N5: what can go wrong between the tables is found, each job with the states it stands in. */
static void test_n5_audit_finds(void **state)
{
    (void)state;
    begin_worker("w", 3600000);
    push_job("fine", "q");
    push_job("nowhere", "q");
    push_job("twice", "q");
    push_job("ownerless", "q");
    push_job("dead and ready", "q");
    push_job("follower", "q");
    assert_string_equal(contract_strays("q"), "");
    execute("CREATE TEMP TABLE s AS SELECT seq, id FROM jobqueue_job;"
            "DELETE FROM jobqueue_ready WHERE seq=(SELECT seq FROM s WHERE id='nowhere');"
            "INSERT INTO jobqueue_held SELECT seq, (SELECT key FROM jobqueue_worker), 1, 1 FROM s "
            "WHERE id='twice';"
            "DELETE FROM jobqueue_ready WHERE seq=(SELECT seq FROM s WHERE id='ownerless');"
            "INSERT INTO jobqueue_held SELECT seq, 77, 1, 1 FROM s WHERE id='ownerless';"
            "UPDATE jobqueue_job SET state=4, died_at=1 WHERE id='dead and ready';"
            "DELETE FROM jobqueue_ready WHERE seq=(SELECT seq FROM s WHERE id='follower');"
            "UPDATE jobqueue_job SET key_state=2, unique_key='k' WHERE id='follower';"
            "INSERT INTO jobqueue_ready VALUES(1, 9, 1, 4711);"
            "INSERT INTO jobqueue_delayed VALUES(1, 4712, 1, 9);");
    assert_string_equal(contract_strays("q"),
                        "nowhere/0 twice/5 ownerless/4! dead and ready/17 follower/0 "
                        "#4711/1 dead and ready/17 #4712/2 ");
    execute("DELETE FROM jobqueue_job; DELETE FROM jobqueue_ready; DELETE FROM jobqueue_delayed; "
            "DELETE FROM jobqueue_held");
}

static void assert_holds(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" holds no \"%s\"", text, part);
}

/* Rule N5: missing and foreign parts of the schema, with what mends them. */
static void test_n5_schema_is_compared(void **state)
{
    jobq_examination e = {.out = &statements};
    int seen = 0;

    (void)state;
    push_job("a", "q");
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "");
    execute("DROP INDEX jobqueue_job_dead; DROP TRIGGER jobqueue_key_left; "
            "DROP INDEX jobqueue_job_keep; CREATE INDEX jobqueue_job_keep ON jobqueue_job(seq)");
    jobq__batch_reset(&statements);
    assert_ok(jobq__store_examine(store, &e));
    for (const jobq_remark *r = e.remarks; r; r = r->next)
        if (r->grade == JOBQ_REMARK_PROBLEM && strstr(r->text, "index")) {
            print_message("%s: %s\n", r->text, r->advice);
            execute(strstr(r->text, "keep") ? "DROP INDEX jobqueue_job_keep" : "");
            execute(strstr(r->advice, "CREATE"));
            seen++;
        }
    assert_int_equal(seen, 2);
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM),
                        "schema: the trigger jobqueue_key_left is missing; ");
}

static long fake_magic; /* 0: the true one */

/* In place of the C library's: what kind of file system a folder lies on. */
int statfs(const char *name, struct statfs *out)
{
    long rc = syscall(SYS_statfs, name, out);

    if (rc == 0 && fake_magic)
        out->f_type = (__typeof__(out->f_type))fake_magic;
    return (int)rc;
}

/* Rule N5: network file systems are refused; the remark is there although nothing can be opened. */
static void test_n5_network_file_system(void **state)
{
    jobq_push item = job_item("b", "q");

    (void)state;
    push_job("a", "q");
    jobq__store_disconnect(store);
    fake_magic = 0x6969;
    assert_code(jobq__store_push(store, &item, 1), JOBQ_ECONF);
    assert_said("network file system (NFS)");
    assert_holds(contract_remarks(JOBQ_REMARK_PROBLEM), "lies on NFS");
    fake_magic = 0x65735546;
    assert_holds(contract_remarks(JOBQ_REMARK_NOTE), "lies on FUSE");
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "");
    fake_magic = 0;
    assert_int_equal(push_item(&item), 0);
}

static void test_n5_settings(void **state)
{
    char text[400];

    (void)state;
    push_job("a", "q");
    assert_holds(contract_remarks(JOBQ_REMARK_NOTE), "synchronous is normal");
    jobq__store_free(store);
    snprintf(text, sizeof(text), "sqlite://%s", path);
    store = contract_open(text);
    assert_holds(contract_remarks(JOBQ_REMARK_OK), "journal_mode wal, synchronous full");
    assert_string_equal(contract_remarks(JOBQ_REMARK_NOTE), "");
    assert_int_equal(chmod(path, 0644), 0);
    assert_holds(contract_remarks(JOBQ_REMARK_NOTE), "(mode 0644)");
}

/* Rule N5: a read-only file is said to be one, and by whom. */
static void test_n5_read_only(void **state)
{
    char folder[200], text[300];

    (void)state;
    snprintf(folder, sizeof(folder), "%s/ro-look", jobq_test_folder());
    if (!mount_small(folder, "size=80m")) {
        print_message("skipped: a read-only file system needs root and mount\n");
        skip();
    }
    jobq__store_free(store);
    snprintf(path, sizeof(path), "%s/q.db", folder);
    snprintf(text, sizeof(text), "sqlite://%s", path);
    store = contract_open(text);
    push_job("a", "q");
    jobq__store_disconnect(store);
    assert_int_equal(mount("tmpfs", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    assert_holds(contract_remarks(JOBQ_REMARK_PROBLEM), "cannot be written by this user");
    assert_int_equal(mount("tmpfs", folder, "tmpfs", MS_REMOUNT, NULL), 0);
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "");
    jobq__store_free(store);
    store = contract_open("memory:");
    umount(folder);
}

/* A damaged page is found. */
static void test_n5_damage(void **state)
{
    char zeros[4096] = "";
    int64_t root;
    int fd;

    (void)state;
    for (int i = 0; i < 300; i++) {
        char id[32];

        snprintf(id, sizeof(id), "job-%d", i);
        push_job(id, "q");
    }
    root = ask("SELECT rootpage FROM sqlite_master WHERE name='jobqueue_ready'");
    execute("PRAGMA wal_checkpoint(TRUNCATE)");
    jobq__store_disconnect(store);
    memset(zeros, 0x5a, sizeof(zeros));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, zeros, sizeof(zeros), (root - 1) * 4096), sizeof(zeros));
    close(fd);
    assert_holds(contract_remarks(JOBQ_REMARK_PROBLEM), "damage: the file is damaged");
    jobq__store_free(store);
    store = contract_open("memory:");
}

int main(void)
{
    static const contract_driver sqlite = {
        .name = "contract: sqlite",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |
                    JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_FILE |
                    JOBQ_FEATURE_DUE_ORDER | JOBQ_FEATURE_HOST_CLOCK | JOBQ_FEATURE_EFFECT |
                    JOBQ_FEATURE_REQUEST,
        .check = check_places,
    };
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(test_p2_file_is_private),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_migrate_false),
        cmocka_unit_test(test_newer_schema),
        cmocka_unit_test(test_in_an_application_database),
        cmocka_unit_test(test_n6_view),
        cmocka_unit_test(test_n6_no_hooks_in_the_view),
        cmocka_unit_test(test_n6_reasons_in_the_view),
        cmocka_unit_test(test_locked_beyond_the_deadline),
        cmocka_unit_test(test_c5_lock_held_beyond_a_lease),
        cmocka_unit_test(test_c5_others_waited_for_the_lock),
        cmocka_unit_test(test_c5_a_moment_after_a_stall),
        cmocka_unit_test(test_c5_holder_was_slow),
        cmocka_unit_test(test_file_vanishes),
        cmocka_unit_test(test_wait_notices_deletion),
        cmocka_unit_test(test_k3_disk_full),
        cmocka_unit_test(test_k3_read_only),
        cmocka_unit_test(test_b099_fork_with_open_handle),
        cmocka_unit_test(test_c7_wakes_at_once),
        cmocka_unit_test(test_c7_slow_commit),
        cmocka_unit_test(test_b8_push_in_a_transaction),
        cmocka_unit_test(test_b8_replace_in_a_transaction),
        cmocka_unit_test(test_o1_done_in_a_transaction),
        cmocka_unit_test(test_o1_done_with_its_result),
        cmocka_unit_test(test_o1_done_with_all),
        cmocka_unit_test(test_b8_all_as_text),
        cmocka_unit_test(test_b8_replace_as_text),
        cmocka_unit_test(test_o1_done_as_text),
        cmocka_unit_test(test_b7_numbered_places),
        cmocka_unit_test(test_b7_hidden_commit),
        cmocka_unit_test(test_b7_guard_amid_a_call),
        cmocka_unit_test(test_o1_effect_without_room),
        cmocka_unit_test(test_o1_slow_statements),
        cmocka_unit_test(test_old_schema),
        cmocka_unit_test(test_b6_holder_ended_by_an_old_library),
        cmocka_unit_test(test_n5_audit_finds),
        cmocka_unit_test(test_n5_schema_is_compared),
        cmocka_unit_test(test_n5_network_file_system),
        cmocka_unit_test(test_n5_settings),
        cmocka_unit_test(test_n5_read_only),
        cmocka_unit_test(test_n5_damage),
    };

    return contract_main(&sqlite, own, sizeof(own) / sizeof(own[0]));
}
