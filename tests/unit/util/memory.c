/* SPDX-License-Identifier: MIT
 *
 * Buffers, arenas, the failing allocator, random bytes, the process stamp, the error record,
 * descriptors.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/once.h"
#include "util/rng.h"

static void grows_and_fails(void **state)
{
    jobq__buf b = {0};

    (void)state;
    assert_string_equal(jobq__buf_text(&b), "");
    for (int i = 0; i < 1000; i++)
        jobq__buf_addf(&b, "%d,", i);
    assert_int_equal(b.n, 3890);
    assert_memory_equal(b.p + b.n - 4, "999,", 4);
    jobq__buf_free(&b);
    jobq__alloc_fail_at(1, 0);
    jobq__buf_adds(&b, "x");
    assert_true(b.failed);
    jobq__buf_adds(&b, "y"); /* the mark sticks */
    assert_int_equal(b.n, 0);
    assert_string_equal(jobq__buf_text(&b), "");
    jobq__buf_reset(&b);
    jobq__buf_adds(&b, "z");
    assert_string_equal(jobq__buf_text(&b), "z");
    jobq__buf_free(&b);
}

static void arenas_keep_one_chunk(void **state)
{
    jobq__arena a = {0};
    char *p, *q;

    (void)state;
    p = jobq__arena_copy(&a, "abc", 3);
    assert_string_equal(p, "abc");
    assert_non_null(jobq__arena_alloc(&a, 16000)); /* the largest ordinary chunk is kept */
    q = jobq__arena_alloc(&a, 100000);
    assert_int_equal((uintptr_t)q % 16, 0);
    assert_int_equal(q[99999], 0);
    assert_null(jobq__arena_alloc(&a, SIZE_MAX - 3));
    jobq__arena_reset(&a);
    {
        int64_t before = jobq__alloc_count();

        p = jobq__arena_alloc(&a, 16000);
        assert_int_equal(p[0], 0); /* zeroed again */
        assert_int_equal(jobq__alloc_count(), before);
    }
    jobq__arena_free(&a);
    jobq__alloc_fail_at(1, 1);
    assert_null(jobq__arena_alloc(&a, 1));
    assert_null(jobq__alloc(1));
    jobq__alloc_fail_at(0, 0);
}

static void stamps_and_chance_change_with_a_fork(void **state)
{
    int64_t stamp = jobq__process_stamp();
    uint64_t mine, theirs;
    int fds[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(stamp, jobq__process_stamp());
    jobq__rng_u64();
    assert_int_equal(jobq__fd_pipe(fds), 0);
    pid = fork();
    mine = jobq__rng_u64();
    if (pid == 0)
        _exit(jobq__process_stamp() != stamp && write(fds[1], &mine, sizeof(mine)) == sizeof(mine)
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(fds[0], &theirs, sizeof(theirs)), sizeof(theirs));
    assert_true(mine != theirs);
    close(fds[0]);
    close(fds[1]);
    jobq__rng_seed(7);
    mine = jobq__rng_u64();
    jobq__rng_seed(7);
    assert_true(mine == jobq__rng_u64());
    for (int i = 0; i < 1000; i++) {
        double u = jobq__rng_unit();

        assert_true(u >= 0 && u < 1);
    }
    jobq__rng_seed(0);
}

static void doorbells_ring(void **state)
{
    jobq__fd_identity is, other;
    int fds[2], more[2];

    (void)state;
    assert_int_equal(jobq__fd_pipe(fds), 0);
    assert_int_equal(jobq__fd_pipe(more), 0);
    assert_int_equal(jobq__fd_wait(fds[0], 0), 0);
    for (int i = 0; i < 100000; i++) /* a full pipe is as good as one byte */
        jobq__fd_ring(fds[1]);
    assert_int_equal(jobq__fd_wait(fds[0], 1000), 1);
    jobq__fd_drain(fds[0]);
    assert_int_equal(jobq__fd_wait(fds[0], 0), 0);
    assert_true(jobq__fd_identify(fds[1], &is));
    assert_true(jobq__fd_identify(more[1], &other));
    assert_true(jobq__fd_is(fds[1], &is));
    assert_false(jobq__fd_is(fds[1], &other));
    close(fds[0]);
    close(fds[1]);
    assert_false(jobq__fd_is(fds[1], &is));
    close(more[0]);
    close(more[1]);
}

static void records_errors(void **state)
{
    struct jobq_error saved;

    (void)state;
    assert_int_equal(jobq__error_set_subject(JOBQ_EEXISTS, "id\n7", 4, "a\nb %s", "c\xff"),
                     JOBQ_EEXISTS);
    assert_string_equal(jobq_error_message(jobq_error_last()), "a b c?"); /* one line */
    assert_string_equal(jobq_error_subject(jobq_error_last()), "id 7");
    jobq__error_save(&saved);
    jobq__error_set(JOBQ_EIO, "%s",
                    jobq_error_message(jobq_error_last())); /* its own text as argument */
    assert_string_equal(jobq_error_message(jobq_error_last()), "a b c?");
    assert_string_equal(jobq_error_subject(jobq_error_last()), "");
    jobq__error_restore(&saved);
    assert_int_equal(jobq_error_code(jobq_error_last()), JOBQ_EEXISTS);
    jobq__error_set_driver(JOBQ_EBUSY, JOBQ__RETRYABLE, "sqlite", 5, "locked");
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    assert_false(jobq_error_is_fatal(jobq_error_last()));
    assert_int_equal(jobq_error_native(jobq_error_last()), 5);
    assert_string_equal(jobq_error_driver(jobq_error_last()), "sqlite");
    jobq__error_clear();
    assert_null(jobq_error_last());
    assert_string_equal(jobq_error_message(NULL), "");
    assert_string_equal(jobq_error_word(JOBQ_ELEASE), "lease_lost");
    assert_string_equal(jobq_error_word(-999), "unknown");
}

static void clocks_can_be_moved(void **state)
{
    char boot[37];
    int64_t wall = jobq__clock_wall_ms(), mono = jobq__clock_mono_ms();

    (void)state;
    jobq__clock_shift(-100000, 50000);
    assert_true(jobq__clock_wall_ms() < wall);
    assert_true(jobq__clock_mono_ms() >= mono + 50000);
    jobq__clock_shift(100000, -50000);
    jobq__clock_boot_id(boot);
    assert_int_equal(strlen(boot), 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_fails),
        cmocka_unit_test(arenas_keep_one_chunk),
        cmocka_unit_test(stamps_and_chance_change_with_a_fork),
        cmocka_unit_test(doorbells_ring),
        cmocka_unit_test(records_errors),
        cmocka_unit_test(clocks_can_be_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
