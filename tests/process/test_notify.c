/* SPDX-License-Identifier: MIT
 *
 * What a service manager hears (rule G5): ready once jobs are taken, alive while the worker runs,
 * stopping from the first request on; from the process that it started, and from no other.
 */
#include "process/pool.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct {
    pool pool;
    int fd;
    char heard[8192]; /* "READY=1|..." */
    pid_t main_pid;
} fixture;

static void listen_at(fixture *f, const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int yes = 1;
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    f->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(f->fd >= 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)(void *)&at, n), 0);
    assert_int_equal(setsockopt(f->fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)), 0);
    setenv("NOTIFY_SOCKET", name, 1);
}

static int set_up(void **state)
{
    static fixture f;

    memset(&f, 0, sizeof(f));
    pool_open(&f.pool);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    if (f->fd > 0)
        close(f->fd);
    pool_close(&f->pool);
    return 0;
}

/* Takes one message; every one must come from the worker's main process. */
static bool take_one(fixture *f)
{
    char text[128], control[256];
    struct iovec part = {text, sizeof(text) - 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    const ssize_t n = recvmsg(f->fd, &m, 0);
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    struct ucred who;

    if (n <= 0)
        return false;
    assert_non_null(c);
    memcpy(&who, CMSG_DATA(c), sizeof(who));
    if (f->pool.pid)
        f->main_pid = f->pool.pid;
    assert_int_equal(who.pid, f->main_pid);
    text[n] = '\0';
    assert_true(strlen(f->heard) + (size_t)n + 2 < sizeof(f->heard));
    strcat(strcat(f->heard, text), "|");
    return true;
}

static int heard(fixture *f, const char *word)
{
    int n = 0;

    while (take_one(f))
        ;
    for (const char *p = f->heard; (p = strstr(p, word)); p++)
        n++;
    return n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void check_service(fixture *f, const char *options)
{
    pool_push(&f->pool, "note", 0, NULL);
    pool_start(&f->pool, options);
    wait_until(heard(f, "READY=1|") == 1, 20);
    wait_until(pool_ledger(&f->pool, "end note") == 1, 20);
    assert_int_equal(heard(f, "STOPPING=1|"), 0);
    pool_signal(&f->pool, SIGTERM);
    assert_int_equal(pool_wait(&f->pool, 20), 0);
    assert_int_equal(heard(f, "STOPPING=1|"), 1);
    assert_int_equal(heard(f, "READY=1|"), 1);
    assert_int_equal(heard(f, "WATCHDOG=1|"), 0);
    assert_non_null(strstr(f->heard, "READY=1|STOPPING=1|"));
}

static void test_g5_socket(void **state)
{
    char path[256];
    fixture *f = *state;

    snprintf(path, sizeof(path), "%s/notify", jobq_test_folder());
    unlink(path);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        skip();
    listen_at(f, path);
    check_service(f, "processes=2");
}

static void test_g5_inline(void **state)
{
    fixture *f = *state;
    char name[64];

    snprintf(name, sizeof(name), "@jobqueue-test-inline-%d", (int)getpid());
    listen_at(f, name);
    check_service(f, "processes=0");
}

/* Alive twice per interval, whatever the handlers do, and while it drains. */
static void test_g5_watchdog(void **state)
{
    fixture *f = *state;
    char name[64];
    int before;

    snprintf(name, sizeof(name), "@jobqueue-test-%d", (int)getpid());
    listen_at(f, name);
    setenv("WATCHDOG_USEC", "200000", 1);
    pool_push(&f->pool, "deaf", 60000, NULL);
    pool_start(&f->pool, "processes=1");
    wait_until(heard(f, "WATCHDOG=1|") >= 3, 20);
    pool_signal(&f->pool, SIGTERM);
    wait_until(heard(f, "STOPPING=1|") == 1, 20);
    before = heard(f, "WATCHDOG=1|");
    wait_until(heard(f, "WATCHDOG=1|") >= before + 2, 20);
    pool_signal(&f->pool, SIGTERM);
    assert_int_equal(pool_wait(&f->pool, 20), 0);
}

/* Idle for long, too: nothing else wakes the worker then. */
static void test_g5_idle_watchdog(void **state)
{
    fixture *f = *state;
    char name[64];

    snprintf(name, sizeof(name), "@jobqueue-test-idle-%d", (int)getpid());
    listen_at(f, name);
    setenv("WATCHDOG_USEC", "400000", 1);
    for (int processes = 0; processes < 2; processes++) {
        f->heard[0] = '\0';
        pool_start(&f->pool, processes ? "processes=1" : "processes=0");
        wait_until(heard(f, "WATCHDOG=1|") >= 5, 20);
        pool_signal(&f->pool, SIGTERM);
        assert_int_equal(pool_wait(&f->pool, 20), 0);
        heard(f, "the rest");
    }
}

/* The watchdog's variables may be another process's; no socket, or one that is gone, disturbs
 * nobody. */
static void test_g5_not_for_us(void **state)
{
    fixture *f = *state;
    char name[64];

    snprintf(name, sizeof(name), "@jobqueue-test-other-%d", (int)getpid());
    listen_at(f, name);
    setenv("WATCHDOG_USEC", "20000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    pool_push(&f->pool, "nap", 300, NULL);
    assert_int_equal(pool_run(&f->pool, "processes=1 stop_when_empty=1"), 0);
    f->pool.pid = 0;
    close(f->fd);
    f->fd = -1;
    assert_null(strstr(f->heard, "WATCHDOG"));
    pool_push(&f->pool, "note", 0, NULL);
    assert_int_equal(pool_run(&f->pool, "processes=1 stop_when_empty=1"), 0);
    setenv("NOTIFY_SOCKET", "relative", 1);
    assert_int_equal(pool_run(&f->pool, "processes=1 stop_when_empty=1"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_g5_socket),        TEST(test_g5_inline),     TEST(test_g5_watchdog),
        TEST(test_g5_idle_watchdog), TEST(test_g5_not_for_us),
    };

    return cmocka_run_group_tests_name("process/notify", tests, NULL, NULL);
}
