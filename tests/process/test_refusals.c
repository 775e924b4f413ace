/* SPDX-License-Identifier: MIT
 *
 * Servers that refuse: read-only, full, loading, busy, not what they seem, or not there at all. For
 * real where that can be had, by a scripted peer otherwise (rules J1, K2, K3, P2).
 */
#include "harness/harness.h"
#include "harness/stores.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"
#include "util/clock.h"

#define TEXT(s) jobq__slice((s), strlen(s))
#define ONLY(kind) (~(1u << (kind)))

typedef struct {
    store_kind kind;
    server *server;
    jobq__store *store;
} bench;

static jobq__store *open_store(const char *dsn)
{
    jobq__store *store = NULL;

    assert_ok(jobq__store_new(dsn, NULL, &store));
    return store;
}

static int set_up(void **state)
{
    static bench b;

    b.kind = *(store_kind *)*state;
    b.server = server_start(store_word(b.kind), false);
    b.store = open_store(store_option(server_dsn(b.server), "read_timeout=20"));
    assert_ok(jobq__store_schema(b.store)); /* on a busy machine that takes longer than a second */
    jobq__store_free(b.store);
    b.store = open_store(store_option(server_dsn(b.server), "read_timeout=1&connect_timeout=1"));
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    bench *b = *state;

    jobq__store_free(b->store);
    server_remove(b->server);
    return 0;
}

static int push(jobq__store *store, const char *id, const char *queue)
{
    jobq_push item = {.id = TEXT(id),
                      .queue = TEXT(queue),
                      .name = TEXT("test"),
                      .body = TEXT("body"),
                      .version = 1};
    const int rc = jobq__store_push(store, &item, 1);

    return rc ? rc : item.result;
}

static int64_t count_ready(jobq__store *store, const char *queue)
{
    jobq_counts c = {0};

    assert_ok(jobq__store_counts(store, TEXT(queue), &c));
    return c.ready;
}

static int exchange(jobq__store *store, const char *queue, jobq_settlement *s, size_t n,
                    jobq_batch *out)
{
    jobq_slice q = TEXT(queue);
    jobq_exchange x = {.worker = TEXT("w"),
                       .lease_ms = 60000,
                       .settle = s,
                       .settle_count = n,
                       .queues = &q,
                       .queue_count = out ? 1 : 0,
                       .want = out ? 2 : 0,
                       .out = out};

    return jobq__store_exchange(store, &x);
}

static jobq_settlement settlement(const jobq_record *r, int op)
{
    return (jobq_settlement){.token = r->token, .id = r->id, .queue = r->queue, .op = (uint8_t)op};
}

static void check_retryable(int rc)
{
    assert_true(rc < 0);
    if (!jobq_error_is_retryable(jobq_error_last()) || jobq_error_is_fatal(jobq_error_last()))
        fail_msg("not an outage: %s: %s", jobq_error_word(rc),
                 jobq_error_message(jobq_error_last()));
    assert_null(strchr(jobq_error_message(jobq_error_last()), '\n'));
}

/* ---- read-only, full, busy ------------------------------------------------------------------- */

static const char *const make_read_only[STORE_KINDS] = {
    "REPLICAOF 127.0.0.1 1", "ALTER DATABASE jobqueue SET default_transaction_read_only = on",
    NULL};
static const char *const make_writable[STORE_KINDS] = {
    "REPLICAOF NO ONE",
    "BEGIN READ WRITE; ALTER DATABASE jobqueue RESET default_transaction_read_only; COMMIT", NULL};

/* Rules K2, K3: what has become a replica is an outage: nothing is lost, and it goes on. */
static void test_k2_read_only(void **state)
{
    bench *b = *state;
    jobq_batch out = {0};

    assert_int_equal(push(b->store, "a", "q"), 0);
    assert_int_equal(push(b->store, "b", "q"), 0);
    store_admin(b->server, b->kind, make_read_only[b->kind]);
    jobq__store_disconnect(b->store);
    check_retryable(push(b->store, "c", "q"));
    assert_said("read");
    check_retryable(exchange(b->store, "q", NULL, 0, &out));
    assert_int_equal(out.count, 0);
    store_admin(b->server, b->kind, make_writable[b->kind]);
    jobq__store_disconnect(b->store);
    assert_int_equal(push(b->store, "c", "q"), 0);
    assert_int_equal(count_ready(b->store, "q"), 3);
    assert_ok(exchange(b->store, "q", NULL, 0, &out));
    assert_int_equal(out.count, 2);
    jobq__batch_free(&out);
}

/* Rule K3: out of memory; what is held is settled, also into death, and nothing is lost. */
static void test_k3_out_of_memory(void **state)
{
    bench *b = *state;
    jobq_batch out = {0};
    jobq_settlement s[2];

    for (const char *id = "abcd"; *id; id++)
        assert_int_equal(push(b->store, (char[]){*id, 0}, "q"), 0);
    assert_ok(exchange(b->store, "q", NULL, 0, &out));
    assert_int_equal(out.count, 2);
    store_admin(b->server, b->kind, "CONFIG SET maxmemory 1");
    check_retryable(push(b->store, "e", "q"));
    assert_said("OOM");
    s[0] = settlement(out.first, JOBQ_OP_DONE);
    s[1] = settlement(out.first->next, JOBQ_OP_DEAD);
    assert_ok(exchange(b->store, "q", s, 2, NULL));
    assert_int_equal(s[0].result, 0);
    assert_int_equal(s[1].result, 0);
    store_admin(b->server, b->kind, "CONFIG SET maxmemory 0");
    assert_int_equal(count_ready(b->store, "q"), 2);
    assert_int_equal(push(b->store, "e", "q"), 0);
    jobq__batch_free(&out);
}

/* A session of somebody else that keeps what this SQL locks for so long. */
static pid_t hold_lock(const bench *b, const char *sql, int seconds)
{
    const pid_t pid = fork();
    char text[512];

    if (pid != 0)
        return pid;
    snprintf(text, sizeof(text),
             b->kind == STORE_MARIADB ? "START TRANSACTION; %s; SELECT SLEEP(%d); ROLLBACK"
                                      : "BEGIN; %s; SELECT pg_sleep(%d); ROLLBACK",
             sql, seconds);
    _exit(store_admin_try(b->server, b->kind, text) ? 0 : 1);
}

static const char *const lock_all[STORE_KINDS] = {
    NULL, "LOCK TABLE jobqueue.job IN ACCESS EXCLUSIVE MODE",
    "SELECT * FROM jobqueue_job FOR UPDATE"};

/* Rule K2, 1205 and its kin: while somebody holds the locks each call ends by its deadline, done,
 * with nothing changed, or unknown; afterwards all jobs are there. */
static void test_k2_locks_of_others(void **state)
{
    bench *b = *state;
    jobq_batch out = {0}, held = {0};
    int64_t began_ms, ready;
    int pushed, reserved, status;
    pid_t pid;

    assert_int_equal(push(b->store, "a", "q"), 0);
    pid = hold_lock(b, lock_all[b->kind], 3);
    usleep(500000);
    began_ms = jobq__clock_mono_ms();
    pushed = push(b->store, "b", "q");
    if (pushed != 0 && pushed != JOBQ_EUNKNOWN)
        check_retryable(pushed);
    reserved = exchange(b->store, "q", NULL, 0, &out);
    if (reserved != 0)
        check_retryable(reserved);
    assert_true(jobq__clock_mono_ms() - began_ms < 8000);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    usleep(100000); /* what the server still had in hand */
    assert_ok(jobq__store_held(b->store, TEXT("w"), &held));
    ready = count_ready(b->store, "q");
    if (reserved == 0)
        assert_int_equal(held.count, out.count);
    assert_true(ready + (int64_t)held.count >= 1 + (pushed == 0));
    assert_true(ready + (int64_t)held.count <= 1 + (pushed == 0 || pushed == JOBQ_EUNKNOWN));
    jobq__batch_free(&out);
    jobq__batch_free(&held);
}

/* ---- a scripted peer ------------------------------------------------------------------------- */

typedef enum {
    GREETS,     /* says it at once, and again whenever something comes */
    SAYS_BYE,   /* says it and closes */
    ANSWERS_ALL /* says it to each command of a Redis client */
} manner;

/* How many times it is to be said after so many bytes were read. */
static int count_answers(manner how, const char *bytes, ssize_t n)
{
    int answers = 0;

    for (ssize_t i = 0; i < n; i++)
        answers += bytes[i] == '*' && (i == 0 || bytes[i - 1] == '\n');
    return how == ANSWERS_ALL ? answers : 1;
}

static void talk(int client, const char *words, size_t words_n, manner how)
{
    char buffer[4096];
    ssize_t n = 0;

    do {
        for (int i = n || how != ANSWERS_ALL ? count_answers(how, buffer, n) : 0; i > 0; i--)
            if (write(client, words, words_n) < 0)
                return;
    } while (how != SAYS_BYE && (n = read(client, buffer, sizeof(buffer))) > 0);
}

/* A server of one sentence. */
static pid_t start_peer(const char *words, size_t n, manner how, int *port_out)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const pid_t parent = getpid();
    pid_t pid;

    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 16), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    *port_out = ntohs(address.sin_port);
    pid = fork();
    if (pid != 0) {
        close(listener);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (int client; getppid() == parent && (client = accept(listener, NULL, NULL)) >= 0;) {
        if (fork() != 0) { /* one process each: a silent client holds nobody up */
            close(client);
            continue;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        talk(client, words, n, how);
        _exit(0);
    }
    _exit(0);
}

static void end_peer(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static const char *peer_dsn(store_kind kind, int port)
{
    static const char *const forms[STORE_KINDS][2] = {{"redis://127.0.0.1", ""},
                                                      {"postgresql://u@127.0.0.1", "/db"},
                                                      {"mysql://u@127.0.0.1", "/db"}};
    static char text[128];

    snprintf(text, sizeof(text), "%s:%d%s", forms[kind][0], port, forms[kind][1]);
    return store_option(text, "read_timeout=0.5&connect_timeout=0.5");
}

/* Asks a peer that answers everything with these words; the code. */
static int ask_peer(store_kind kind, const char *words, size_t n, manner how)
{
    int port, rc;
    const pid_t pid = start_peer(words, n, how, &port);
    jobq__store *store = open_store(peer_dsn(kind, port));
    const int64_t began_ms = jobq__clock_mono_ms();

    rc = push(store, "a", "q");
    assert_true(jobq__clock_mono_ms() - began_ms < 5000);
    assert_true(rc < 0);
    assert_null(strchr(jobq_error_message(jobq_error_last()), '\n'));
    for (const char *p = jobq_error_message(jobq_error_last()); *p; p++)
        assert_true((unsigned char)*p >= 0x20);
    end_peer(pid);
    jobq__store_free(store);
    return rc;
}

/* Rule K2: what passes by itself is retryable, what never will is fatal. */
static void test_k2_redis_says_no(void **state)
{
    static const struct {
        const char *words;
        bool fatal;
    } rows[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", false},
        {"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
         false},
        {"-READONLY You can't write against a read only replica.\r\n", false},
        {"-CLUSTERDOWN The cluster is down\r\n", false},
        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", false},
        {"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to\r\n",
         false},
        {"-BUSY Redis is busy running a script.\r\n", false},
        {"-ERR max number of clients reached\r\n", false},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", false},
        {"-NOAUTH Authentication required.\r\n", true},
        {"-WRONGPASS invalid username-password pair or user is disabled.\r\n", true},
    };
    bench *b = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int rc = ask_peer(b->kind, rows[i].words, strlen(rows[i].words), ANSWERS_ALL);

        if (jobq_error_is_fatal(jobq_error_last()) != rows[i].fatal ||
            jobq_error_is_retryable(jobq_error_last()) == rows[i].fatal)
            fail_msg("%s -> %s: %s", rows[i].words, jobq_error_word(rc),
                     jobq_error_message(jobq_error_last()));
    }
}

/* What the last call must have said, and that it is an outage. */
static void check_outage(int rc, const char *word)
{
    check_retryable(rc);
    if (!strstr(jobq_error_message(jobq_error_last()), word))
        fail_msg("no %s: %s", word, jobq_error_message(jobq_error_last()));
}

/* Rule K2: a replica without its master, for real. */
static void test_k2_redis_masterdown(void **state)
{
    bench *b = *state;
    jobq_counts c;

    assert_int_equal(push(b->store, "a", "q"), 0);
    store_admin(b->server, b->kind, "CONFIG SET replica-serve-stale-data no");
    store_admin(b->server, b->kind, "REPLICAOF 127.0.0.1 1");
    check_outage(jobq__store_counts(b->store, TEXT("q"), &c), "MASTERDOWN");
    check_retryable(push(b->store, "b", "q"));
    store_admin(b->server, b->kind, "REPLICAOF NO ONE");
    assert_int_equal(push(b->store, "b", "q"), 0);
    assert_int_equal(count_ready(b->store, "q"), 2);
}

static pid_t restart_aside(server *s)
{
    const pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        server_restart(s);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Rule K2: a server that has begun to read its data answers LOADING for a while, for real: a slow
 * disk is played by Redis itself. */
static void test_k2_redis_loading(void **state)
{
    server *slow = server_start_with(
        "redis", false, "--key-load-delay 5000 --loading-process-events-interval-bytes 1024");
    jobq__store *store =
        open_store(store_option(server_dsn(slow), "read_timeout=5&connect_timeout=1"));
    const int64_t deadline_ms = jobq__clock_mono_ms() + 30000;
    bool refused = false;
    pid_t pid;
    int rc;

    (void)state;
    assert_ok(jobq__store_schema(store));
    assert_int_equal(push(store, "a", "q"), 0);
    store_admin(
        slow, STORE_REDIS,
        "EVAL \"for i = 1, 600 do redis.call('SET', 'foreign:' .. i, ('x'):rep(64)) end\" 0");
    store_admin(slow, STORE_REDIS, "SAVE");
    server_kill(slow);
    jobq__store_disconnect(store); /* what breaks on the old connection is unknown, not refused */
    pid = restart_aside(slow);
    while ((rc = push(store, "b", "q")) < 0 && jobq__clock_mono_ms() < deadline_ms) {
        check_retryable(rc);
        refused = refused || strstr(jobq_error_message(jobq_error_last()), "LOADING") != NULL;
    }
    assert_int_equal(rc, 0);
    if (!refused)
        fail_msg("it never said LOADING");
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(count_ready(store, "q"), 2);
    jobq__store_free(store);
    server_remove(slow);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MOST_RESIDENT_KB = 2000000 }; /* shadow memory needs all the address space there is */
static void limit_memory(const struct rlimit *before, rlim_t bytes)
{
    (void)before;
    (void)bytes;
}
#else
enum { MOST_RESIDENT_KB = 200000 };
static void limit_memory(const struct rlimit *before, rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = before->rlim_max};

    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}
#endif

/* A port where something else listens, or an enemy: an error by the deadline, never a crash, and no
 * memory by a number somebody sent. */
static void test_strange_peers(void **state)
{
    static const struct {
        const char *words;
        size_t n;
    } rows[] = {
#define ROW(s) {s, sizeof(s) - 1}
        ROW(""),
        ROW("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        ROW("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        ROW("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ROW("\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        ROW("$999999999999\r\nabc"),
        ROW("*2147483647\r\n*2147483647\r\n*2147483647\r\n"),
        ROW("*-5\r\n$-7\r\n:99999999999999999999999999\r\n"),
        ROW("+OK\x1b[2J\r\n+\x07\r\n"),
        ROW("R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"),
        ROW("R\x7f\xff\xff\xff\0\0\0\0"),
        ROW("E\0\0\0\x10SFATAL\0Mno\n\0\0"),
        ROW("\x4a\0\0\0\x0a"
            "5.5.5-10.11\0"),
        ROW("\xff\xff\xff\0\x0a"
            "8.0\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ROW("\x17\0\0\0\xff\x10\x04Too many connections"),
#undef ROW
    };
    bench *b = *state;
    struct rlimit before;
    struct rusage used;

    getrlimit(RLIMIT_AS, &before);
    limit_memory(&before, (rlim_t)1 << 31);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int how = GREETS; how <= ANSWERS_ALL; how++)
            if (how != ANSWERS_ALL || b->kind == STORE_REDIS)
                ask_peer(b->kind, rows[i].words, rows[i].n, (manner)how);
    getrusage(RUSAGE_SELF, &used);
    limit_memory(&before, before.rlim_cur);
    print_message("%ld KB resident at most\n", used.ru_maxrss);
    assert_true(used.ru_maxrss < MOST_RESIDENT_KB);
}

/* ---- the command line ------------------------------------------------------------------------ */

#define SECRET "S3cretPw"

/* `jobqueue COMMAND --dsn=DSN`: its exit code; both outputs into `text`. */
static int run_console(const char *command, const char *dsn, char *text, size_t size)
{
    const char *program = getenv("JOBQUEUE_BIN");
    char line[1024];
    FILE *f;
    size_t n;
    int status;

    snprintf(line, sizeof(line), "'%s' %s --dsn='%s' 2>&1 </dev/null", program, command, dsn);
    f = popen(line, "r");
    assert_non_null(f);
    n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const struct {
    store_kind kind;
    const char *dsn; /* PORT: the server's */
    int code;
    const char *says;
} bad_dsns[] = {
    {STORE_REDIS, "redis://joe:" SECRET "@127.0.0.1:1", 1, "127.0.0.1"},
    {STORE_REDIS, "redis://joe:" SECRET "@no-such-host.invalid", 1, "no-such-host.invalid"},
    {STORE_REDIS, "redis://joe:" SECRET "@127.0.0.1:PORT", 2, "WRONGPASS"},
    {STORE_REDIS, "redis://127.0.0.1:PORT/9999", 2, "9999"},
    {STORE_REDIS, "redis://joe:" SECRET "@127.0.0.1:99999", 2, "port"},
    {STORE_REDIS, "redis://joe:" SECRET "@127.0.0.1:PORT?colour=red", 2, "colour"},
    {STORE_REDIS, "rediss://joe:" SECRET "@127.0.0.1:1?ca=/no/ca.pem", 2, "/no/ca.pem"},
    {STORE_REDIS, "redis://joe@127.0.0.1:PORT", 2, "joe"}, /* never as somebody else */
    {STORE_POSTGRES, "postgresql://joe:" SECRET "@127.0.0.1:1/jobqueue", 1, "127.0.0.1"},
    {STORE_POSTGRES, "postgresql://joe:" SECRET "@127.0.0.1:1/d?ca=/no/ca.pem", 2, "/no/ca.pem"},
    {STORE_POSTGRES, "postgresql://joe:" SECRET "@127.0.0.1:1/d?sslmode=odd", 2, "odd"},
    {STORE_POSTGRES, "postgresql://joe:" SECRET "@127.0.0.1:1,127.0.0.1:x/d", 2, "port"},
    {STORE_POSTGRES, "postgresql://joe:" SECRET "@no-such-host.invalid/d", 1,
     "no-such-host.invalid"},
    {STORE_POSTGRES, "postgresql://joe:" SECRET "@127.0.0.1:PORT/jobqueue", 2, "joe"},
    {STORE_POSTGRES, "postgresql://jobqueue:" SECRET "@127.0.0.1:PORT/nodb", 2, "nodb"},
    {STORE_POSTGRES, "postgresql://jobqueue:" SECRET "@127.0.0.1:PORT/jobqueue?colour=red", 2,
     "colour"},
    {STORE_MARIADB, "mysql://joe:" SECRET "@127.0.0.1:1/jobqueue", 1, "127.0.0.1"},
    {STORE_MARIADB, "mysql://joe:" SECRET "@no-such-host.invalid/d", 1, "no-such-host.invalid"},
    {STORE_MARIADB, "mysql://joe:" SECRET "@127.0.0.1:PORT/jobqueue", 2, "joe"},
    {STORE_MARIADB, "mysql://jobqueue@127.0.0.1:PORT/nodb", 2, "nodb"},
    {STORE_MARIADB, "mysql://joe:" SECRET "@127.0.0.1:1/d?ca=/no/ca.pem", 2, "/no/ca.pem"},
    {STORE_MARIADB, "mysql:///d?socket=/no/such.sock", 1, "/no/such.sock"},
    {STORE_MARIADB, "mysql://jobqueue@127.0.0.1:PORT", 2, "database"},
    {STORE_MARIADB, "mysql://jobqueue:" SECRET "@127.0.0.1:PORT/jobqueue?colour=red", 2, "colour"},
};

static int count_lines(const char *text, const char *prefix)
{
    int n = 0;

    for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        n += strncmp(p, prefix, strlen(prefix)) == 0;
    return n;
}

/* Rules J1, P2: one clear line, the password nowhere, the exit code of its kind. */
static void check_dsn(const char *command, const char *dsn, int code, const char *says)
{
    char text[8192];
    const int got = run_console(command, dsn, text, sizeof(text));

    if (got != code || !strstr(text, says) || strstr(text, SECRET) ||
        count_lines(text, "error: ") != 1)
        fail_msg("jobqueue %s --dsn=%s: exit %d, wanted %d and \"%s\" once:\n%s", command, dsn, got,
                 code, says, text);
}

static void put_port(char *out, size_t size, const char *dsn, int port)
{
    const char *at = strstr(dsn, "PORT");

    if (at)
        snprintf(out, size, "%.*s%d%s", (int)(at - dsn), dsn, port, at + 4);
    else
        snprintf(out, size, "%s", dsn);
}

static void test_j1_bad_dsns(void **state)
{
    bench *b = *state;
    char dsn[256];

    if (!getenv("JOBQUEUE_BIN")) {
        print_message("skipped: JOBQUEUE_BIN names no program\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(bad_dsns) / sizeof(bad_dsns[0]); i++) {
        if (bad_dsns[i].kind != b->kind)
            continue;
        put_port(dsn, sizeof(dsn), bad_dsns[i].dsn, server_port(b->server));
        check_dsn("ping", dsn, bad_dsns[i].code, bad_dsns[i].says);
        check_dsn("work --once --max-reserve-failures=1 --exec=/bin/true", dsn, bad_dsns[i].code,
                  bad_dsns[i].says);
    }
}

int main(void)
{
    static const store_test tests[] = {
        STORE_TEST_WITHOUT(test_k2_read_only, 1u << STORE_MARIADB),
        STORE_TEST_WITHOUT(test_k3_out_of_memory, ONLY(STORE_REDIS)),
        STORE_TEST_WITHOUT(test_k2_locks_of_others, 1u << STORE_REDIS),
        STORE_TEST_WITHOUT(test_k2_redis_says_no, ONLY(STORE_REDIS)),
        STORE_TEST_WITHOUT(test_k2_redis_masterdown, ONLY(STORE_REDIS)),
        STORE_TEST_WITHOUT(test_k2_redis_loading, ONLY(STORE_REDIS)),
        STORE_TEST(test_strange_peers),
        STORE_TEST(test_j1_bad_dsns),
    };

    return stores_run("process/refusals", tests, sizeof(tests) / sizeof(tests[0]), set_up,
                      tear_down);
}
