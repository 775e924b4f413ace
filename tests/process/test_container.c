/* SPDX-License-Identifier: MIT
 *
 * A worker in a container: it is process 1 (case B085), and the kernel ends what takes too much
 * memory (case B056).
 */
#include "process/pool.h"

#include <dirent.h>
#include <sched.h>
#include <sys/wait.h>

/* ---- process 1 ------------------------------------------------------------------------------- */

static bool may_unshare(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(unshare(CLONE_NEWPID) != 0);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* The one child of the process outside. */
static pid_t master_of(pool *p)
{
    return pool_dispatcher(p);
}

static int count_zombies(pid_t parent)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    int n = 0;

    while (folder && (entry = readdir(folder))) {
        char path[300], state;
        int pid, its_parent;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        if (atoi(entry->d_name) <= 0 || !(f = fopen(path, "r")))
            continue;
        n += fscanf(f, "%d (%*[^)]) %c %d", &pid, &state, &its_parent) == 3 &&
             its_parent == (int)parent && state == 'Z';
        fclose(f);
    }
    if (folder)
        closedir(folder);
    return n;
}

static void need_namespace(void)
{
    if (may_unshare())
        return;
    print_message("# SKIP no process namespace may be made here\n");
    skip();
}

/* Case B085: TERM reaches it although the kernel shields process 1 from signals without a handler;
 * what handlers leave behind is waited for. */
static void test_b085_process_one(void **state)
{
    pool *p = *state;
    pid_t master;

    need_namespace();
    p->start_mode = "pid1";
    pool_push_many(p, "orphans", 5, NULL, 4);
    pool_push_many(p, "note", 0, NULL, 20);
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "end") == 24 && pool_ledger(p, "orphan") == 20, 30);
    master = master_of(p);
    assert_true(master > 0);
    wait_until(count_zombies(master) == 0, 10);
    pool_push(p, "nap", 500, NULL);
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    assert_int_equal(kill(master, SIGTERM), 0);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "end nap"), 1);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_true(pool_said(p, "Stopping: asked to shut down"));
}

/* Rule H1: the second TERM works there, too. */
static void test_h1_process_one(void **state)
{
    pool *p = *state;
    char id[129];
    pid_t master;

    need_namespace();
    p->start_mode = "pid1";
    strcpy(id, pool_push(p, "nap", 60000, NULL));
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "begin nap") == 1, 20);
    master = master_of(p);
    kill(master, SIGTERM);
    kill(master, SIGINT);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(strncmp(pool_job(p, id), "ready 0 0", 9), 0);
}

/* Rule C5: a child that dies is replaced there as anywhere. */
static void test_c5_process_one(void **state)
{
    pool *p = *state;

    need_namespace();
    p->start_mode = "pid1";
    pool_push(p, "crash", SIGKILL, "tries=1");
    pool_push_many(p, "note", 0, NULL, 10);
    pool_start(p, "processes=1 stop_when_empty=1");
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "end note"), 10);
    assert_true(pool_said(p, "Crashed: crash"));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int oom_score(pid_t pid)
{
    char path[64];
    int score = -9999;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &score), 1);
    fclose(f);
    return score;
}

/* Case B056: when memory runs out the kernel takes a child and not the supervisor ... */
static void test_b056_who_is_taken(void **state)
{
    pool *p = *state;
    pid_t children[2];

    pool_push_many(p, "nap", 60000, NULL, 2);
    pool_start(p, "processes=2");
    wait_until(pool_ledger(p, "begin nap") == 2 && pool_dispatcher(p), 20);
    assert_int_equal(pool_children(p, children, 2), 2);
    for (int i = 0; i < 2; i++) {
        assert_true(oom_score(children[i]) > oom_score(p->pid));
        assert_true(oom_score(children[i]) > oom_score(pool_dispatcher(p)));
    }
    pool_signal(p, SIGTERM);
    pool_signal(p, SIGINT); /* two of the same kind might arrive as one */
    assert_int_equal(pool_wait(p, 20), 0);
}

/* ... and a job that is ended so each time is buried, however many tries it has, while healthy ones
 * go on. */
static void test_b056_buried(void **state)
{
    pool *p = *state;
    char id[129];

    strcpy(id, pool_push(p, "crash", SIGKILL, "tries=0 backoff=0"));
    pool_push_many(p, "note", 0, NULL, 20);
    assert_int_equal(pool_run(p, "processes=2 stop_when_empty=1 max_crashes=3"), 0);
    assert_string_equal(pool_job(p, id), "dead 0 3 3");
    assert_int_equal(pool_ledger(p, "begin crash"), 3);
    assert_int_equal(pool_ledger(p, "end note"), 20);
    assert_true(pool_said(p, "for good (crashed): killed by signal 9"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_set_up, pool_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_b085_process_one),  TEST(test_h1_process_one), TEST(test_c5_process_one),
        TEST(test_b056_who_is_taken), TEST(test_b056_buried),
    };

    return cmocka_run_group_tests_name("process/container", tests, NULL, NULL);
}
