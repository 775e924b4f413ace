/* SPDX-License-Identifier: MIT
 *
 * Alive is not ready (rule G5): the file of `ready_file` exists exactly while the worker is ready.
 */
#include "harness/stores.h"
#include "process/pool.h"

#include <sys/inotify.h>

static char file[300], options[400];

static int set_up(void **state)
{
    static pool p;

    pool_open(&p);
    snprintf(file, sizeof(file), "%s.ready", p.ledger);
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    pool_close(*state);
    unlink(file);
    return 0;
}

static const char *with_file(const char *more)
{
    snprintf(options, sizeof(options), "ready_file=%s %s", file, more);
    return options;
}

static bool is_there(void)
{
    return access(file, F_OK) == 0;
}

/* What happened to the file's name so far: "+" made, "-" removed, in order. */
static const char *happened(int watch)
{
    static char story[64];
    _Alignas(struct inotify_event) char bytes[16384];
    const char *name = strrchr(file, '/') + 1;
    size_t told = 0;
    ssize_t n = read(watch, bytes, sizeof(bytes));

    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const void *)(bytes + at);

        if (event->len && strcmp(event->name, name) == 0 && told + 1 < sizeof(story))
            story[told++] = event->mask & IN_CREATE ? '+' : '-';
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    story[told] = '\0';
    return story;
}

/* Rule G5: exactly while ready, so the start must not show it for a moment either. */
static void test_not_before_ready(void **state)
{
    pool *p = *state;
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    assert_true(inotify_add_watch(watch, jobq_test_folder(), IN_CREATE | IN_DELETE) >= 0);
    pool_start(p, with_file("processes=0"));
    wait_until(is_there(), 10);
    pool_push(p, "note", 0, "");
    wait_until(pool_ledger(p, "end note") == 1, 10);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    assert_string_equal(happened(watch), "+-");
    close(watch);
}

/* Rules G5, H2: gone while paused and while draining. */
static void test_follows_the_worker(void **state, const char *more)
{
    pool *p = *state;

    pool_start(p, with_file(more));
    wait_until(is_there(), 10);
    pool_signal(p, SIGUSR2);
    wait_until(!is_there(), 10);
    pool_signal(p, SIGCONT);
    wait_until(is_there(), 10);
    pool_push(p, "nap", 2000, "");
    wait_until(pool_ledger(p, "begin nap") == 1, 10);
    assert_true(is_there());
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    assert_false(is_there());
}

static void test_pool_file(void **state)
{
    test_follows_the_worker(state, "processes=1");
}

static void test_inline_file(void **state)
{
    test_follows_the_worker(state, "processes=0");
}

/* The master takes it away for a dispatcher that was killed; the next one puts it back. */
static void test_killed_dispatcher(void **state)
{
    pool *p = *state;
    pid_t first;

    pool_start(p, with_file("processes=1"));
    wait_until(is_there(), 10);
    first = pool_dispatcher(p);
    kill(first, SIGKILL);
    wait_until(pool_dispatcher(p) > 0 && pool_dispatcher(p) != first && is_there(), 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 30), 0);
    assert_false(is_there());
}

/* Rule H3: the dispatcher outlives a killed master for a moment and cleans up. */
static void test_killed_master(void **state)
{
    pool *p = *state;

    pool_start(p, with_file("processes=1"));
    wait_until(is_there(), 10);
    kill(p->pid, SIGKILL);
    wait_until(!is_there(), 20);
    assert_int_equal(pool_wait(p, 30), 1000 + SIGKILL);
}

static void test_refused(void **state)
{
    pool *p = *state;
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_worker *worker = NULL;
    int code = -1;

    assert_int_equal(jobq_conf_set(conf, "ready_file", "/no/such/folder/f", 17), 0);
    assert_int_equal(jobq_worker_new(p->queue, conf, &worker), 0);
    assert_int_equal(jobq_worker_start(worker, NULL, 0, NULL, &code), JOBQ_EINVAL);
    assert_non_null(strstr(jobq_error_message(jobq_error_last()), "/no/such/folder/f"));
    jobq_worker_free(worker);
    jobq_conf_free(conf);
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST(test_not_before_ready), STORE_TEST(test_pool_file),
        STORE_TEST(test_inline_file),      STORE_TEST(test_killed_dispatcher),
        STORE_TEST(test_killed_master),    STORE_TEST(test_refused),
    };

    return stores_run_all("process/ready", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                          tear_down);
}
