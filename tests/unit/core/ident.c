/* SPDX-License-Identifier: MIT
 *
 * Ids: form, order within a process, difference after a fork.
 */
#include "core/ident.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/queue.h"
#include "harness/harness.h"
#include "util/clock.h"

/* rule A1: UUIDv7 text (RFC 9562). */
static void has_the_form_of_uuid_7(void **state)
{
    char id[JOBQ__UUID_SIZE];
    char hex[13] = {0};

    (void)state;
    jobq__ident_job(id);
    assert_int_equal(strlen(id), 36);
    for (int i = 0; i < 36; i++)
        assert_true(i == 8 || i == 13 || i == 18 || i == 23
                        ? id[i] == '-'
                        : strchr("0123456789abcdef", id[i]) != NULL);
    assert_int_equal(id[14], '7');
    assert_non_null(strchr("89ab", id[19]));
    memcpy(hex, id, 8);
    memcpy(hex + 8, id + 9, 4);
    assert_true(llabs((long long)(strtoll(hex, NULL, 16) - jobq__clock_wall_ms())) < 60000);
    assert_int_equal(jobq__check_id(id, 36), 0);
}

static void ascends(void **state)
{
    char before[JOBQ__UUID_SIZE], id[JOBQ__UUID_SIZE];

    (void)state;
    jobq__ident_job(before);
    for (int i = 0; i < 200000; i++) {
        if (i == 100000)
            jobq__clock_shift(-5000, 0); /* the clock steps back */
        jobq__ident_job(id);
        assert_true(strcmp(before, id) < 0);
        memcpy(before, id, sizeof(id));
    }
    jobq__clock_shift(5000, 0);
}

static void differs_after_a_fork(void **state)
{
    enum { N = 200 };
    char mine[N][JOBQ__UUID_SIZE], theirs[N][JOBQ__UUID_SIZE], worker[2][JOBQ__WORKER_ID_SIZE];
    int fds[2], status;
    pid_t pid;

    (void)state;
    jobq__ident_job(mine[0]);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    for (int i = 0; i < N; i++)
        jobq__ident_job(mine[i]);
    jobq__ident_worker(worker[0]);
    if (pid == 0) {
        ssize_t n =
            write(fds[1], mine, sizeof(mine)) + write(fds[1], worker[0], JOBQ__WORKER_ID_SIZE);

        _exit(n == (ssize_t)(sizeof(mine) + JOBQ__WORKER_ID_SIZE) ? 0 : 1);
    }
    close(fds[1]);
    for (size_t have = 0; have < sizeof(theirs);) {
        ssize_t n = read(fds[0], (char *)theirs + have, sizeof(theirs) - have);

        assert_true(n > 0);
        have += (size_t)n;
    }
    assert_int_equal(read(fds[0], worker[1], JOBQ__WORKER_ID_SIZE), JOBQ__WORKER_ID_SIZE);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            assert_string_not_equal(mine[i], theirs[k]);
    assert_string_not_equal(worker[0], worker[1]);
}

/* rule G2: host:pid:random, at most 64 characters. */
static void names_workers(void **state)
{
    char id[JOBQ__WORKER_ID_SIZE], again[JOBQ__WORKER_ID_SIZE], pid[32];

    (void)state;
    jobq__ident_worker(id);
    jobq__ident_worker(again);
    snprintf(pid, sizeof(pid), ":%ld:", (long)getpid());
    assert_true(strlen(id) <= 64);
    assert_non_null(strstr(id, pid));
    assert_string_not_equal(id, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_form_of_uuid_7),
        cmocka_unit_test(ascends),
        cmocka_unit_test(differs_after_a_fork),
        cmocka_unit_test(names_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
