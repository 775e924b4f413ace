/* SPDX-License-Identifier: MIT
 *
 * See stores.h.
 */
#include "harness/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"

enum { MOST = 64 };

static const struct {
    const char *word, *scheme, *durable;
} kinds[STORE_KINDS + 1] = {
    {"redis", "redis", "--appendonly yes --appendfsync always"},
    {"postgres", "postgresql", "-c fsync=on -c synchronous_commit=on"},
    {"mariadb", "mysql", "--innodb-flush-log-at-trx-commit=1"},
    {"sqlite", "sqlite", ""},
};
static int under_test = STORE_SQLITE;

const char *store_word(store_kind kind)
{
    return kinds[kind].word;
}

bool store_is_built(store_kind kind)
{
    const char *some = getenv("JOBQUEUE_TEST_STORES");

    if (some && some[0] && !strstr(some, kinds[kind].word))
        return false;
    return jobq__driver_find(kinds[kind].scheme, strlen(kinds[kind].scheme)) != NULL;
}

server *store_start_durable(store_kind kind, bool clock)
{
    return server_start_with(kinds[kind].word, clock, kinds[kind].durable);
}

/* Without TLS: newer clients talk of it, and do not like a certificate of another time. */
#define MARIADB "mariadb --no-defaults --skip-ssl "

static void client_command(char *out, size_t size, const server *s, store_kind kind,
                           const char *command)
{
    switch (kind) {
    case STORE_REDIS: /* the command's words are the shell's */
        snprintf(out, size, "redis-cli -s '%s' %s 2>&1", server_socket(s), command);
        break;
    case STORE_POSTGRES:
        snprintf(out, size,
                 "psql -X -A -t -q -h 127.0.0.1 -p %d -U jobqueue -d jobqueue -c \"%s\" 2>&1",
                 server_port(s), command);
        break;
    default:
        snprintf(out, size, MARIADB "--socket='%s' -u jobqueue -N -B jobqueue -e \"%s\" 2>&1",
                 server_socket(s), command);
    }
}

static char answer[8192];

bool store_admin_try(const server *s, store_kind kind, const char *command)
{
    char line[2048];
    FILE *f;
    size_t n;

    client_command(line, sizeof(line), s, kind, command);
    f = popen(line, "r");
    if (!f)
        return false;
    n = fread(answer, 1, sizeof(answer) - 1, f);
    answer[n] = '\0';
    return pclose(f) == 0;
}

const char *store_admin(const server *s, store_kind kind, const char *command)
{
    if (!store_admin_try(s, kind, command))
        fail_msg("%s: %s", command, answer);
    return answer;
}

const char *store_option(const char *dsn, const char *options)
{
    static char texts[4][768];
    static int next;
    char *text = texts[next++ % 4];

    snprintf(text, sizeof(texts[0]), "%s%c%s", dsn, strchr(dsn, '?') ? '&' : '?', options);
    return text;
}

/* ---- a store of one's own -------------------------------------------------------------------- */

int store_under_test(void)
{
    return under_test;
}

/* "mysql://user@127.0.0.1:3306/jobqueue" with another database, which is created. */
static void make_database(char *out, size_t size, const char *dsn, const char *name)
{
    const char *slash = strrchr(dsn, '/'), *colon = strrchr(dsn, ':');
    char line[512];

    snprintf(out, size, "%.*s/%s?read_timeout=10", (int)(slash - dsn), dsn, name);
    snprintf(line, sizeof(line),
             MARIADB "-h 127.0.0.1 -P %d -u jobqueue -e 'CREATE DATABASE %s' 2>&1", atoi(colon + 1),
             name);
    if (system(line) != 0)
        fail_msg("database %s could not be created", name);
}

const char *store_fresh(void)
{
    static char dsn[512];
    static int n;
    char name[64];

    snprintf(name, sizeof(name), "t%d_%d", (int)getpid(), ++n);
    switch (under_test) {
    case STORE_REDIS:
        snprintf(dsn, sizeof(dsn), "%s?read_timeout=10&prefix=%s", server_shared_dsn("redis"),
                 name);
        break;
    case STORE_POSTGRES:
        snprintf(dsn, sizeof(dsn), "%s?read_timeout=10&schema=%s", server_shared_dsn("postgres"),
                 name);
        break;
    case STORE_MARIADB:
        make_database(dsn, sizeof(dsn), server_shared_dsn("mariadb"), name);
        break;
    default:
        snprintf(dsn, sizeof(dsn), "sqlite:%s/%s.db?synchronous=normal", jobq_test_folder(), name);
    }
    return dsn;
}

/* ---- running --------------------------------------------------------------------------------- */

static int run_on(store_kind kind, const char *group, const store_test *tests, size_t n,
                  int (*set_up)(void **state), int (*tear_down)(void **state))
{
    static char names[MOST][96];
    struct CMUnitTest all[MOST];
    size_t count = 0;

    memset(all, 0, sizeof(all));
    for (size_t i = 0; i < n && count < MOST; i++) {
        if (tests[i].without & 1u << kind)
            continue;
        snprintf(names[count], sizeof(names[0]), "%s_%s", tests[i].name, kinds[kind].word);
        all[count] = (struct CMUnitTest){.name = names[count],
                                         .test_func = tests[i].run,
                                         .setup_func = set_up,
                                         .teardown_func = tear_down,
                                         .initial_state = &kind};
        count++;
    }
    return _cmocka_run_group_tests(group, all, count, NULL, NULL);
}

/* The end of a run in a process of its own: what it printed, and its exit code. */
static int await(pid_t pid, FILE *output)
{
    char line[4096];
    int status = 1;

    waitpid(pid, &status, 0);
    rewind(output);
    while (fgets(line, sizeof(line), output))
        fputs(line, stdout);
    fclose(output);
    if (WIFSIGNALED(status))
        printf("not ok - died of signal %d\n", WTERMSIG(status));
    fflush(stdout);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_side_by_side(int kinds_n, const char *group, const store_test *tests, size_t n,
                            int (*set_up)(void **state), int (*tear_down)(void **state))
{
    pid_t pids[STORE_KINDS + 1] = {0};
    FILE *outputs[STORE_KINDS + 1];
    int failed = 0;

    cmocka_set_test_filter(getenv("JOBQUEUE_TEST_ONLY"));
    for (int kind = 0; kind < kinds_n; kind++) {
        if (!store_is_built((store_kind)kind) || !(outputs[kind] = tmpfile()))
            continue;
        fflush(stdout);
        pids[kind] = fork();
        if (pids[kind] != 0)
            continue;
        under_test = kind;
        dup2(fileno(outputs[kind]), 1);
        dup2(fileno(outputs[kind]), 2);
        exit(run_on((store_kind)kind, group, tests, n, set_up, tear_down));
    }
    for (int kind = 0; kind < kinds_n; kind++)
        if (pids[kind] > 0)
            failed += await(pids[kind], outputs[kind]);
    return failed;
}

int stores_run(const char *group, const store_test *tests, size_t n, int (*set_up)(void **state),
               int (*tear_down)(void **state))
{
    return run_side_by_side(STORE_KINDS, group, tests, n, set_up, tear_down);
}

int stores_run_all(const char *group, const store_test *tests, size_t n,
                   int (*set_up)(void **state), int (*tear_down)(void **state))
{
    return run_side_by_side(STORE_KINDS + 1, group, tests, n, set_up, tear_down);
}
