/* SPDX-License-Identifier: MIT
 *
 * Recording errors (rule F5, case B118): sizes, boundaries, invalid bytes, and no memory.
 */
#include "core/fault.h"

#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "harness/harness.h"
#include "util/alloc.h"
#include "util/str.h"

static jobq_slice of(const char *s)
{
    return (jobq_slice){s, strlen(s)};
}

static void goes_and_comes(void **state)
{
    jobq__fault in = {of("Acme\\Oops"), of("no \xc3\xa9t\xc3\xa9"), {0}, of("#0 main")}, out;
    jobq__entry entry = {1, -2, of("host:1:ab"), of("failed"), {0}, of("why"), false}, back;
    jobq__buf buf = {0};
    jobq__arena arena = {0};

    (void)state;
    jobq__fault_write(&buf, &in);
    assert_true(jobq__fault_read((jobq_slice){buf.p, buf.n}, &arena, &out));
    assert_string_equal(out.class_name.p, "Acme\\Oops");
    assert_string_equal(out.message.p, "no \xc3\xa9t\xc3\xa9");
    assert_null(out.where.p);
    assert_string_equal(out.trace.p, "#0 main");
    jobq__entry_write(&buf, &entry);
    assert_true(jobq__entry_read((jobq_slice){buf.p, buf.n}, &arena, &back));
    assert_int_equal(back.started_at_ms, 1);
    assert_int_equal(back.ended_at_ms, -2);
    assert_string_equal(back.outcome.p, "failed");
    assert_null(back.class_name.p);
    assert_false(jobq__entry_read(of("nonsense"), &arena, &back));
    assert_false(jobq__fault_read((jobq_slice){0}, &arena, &out));
    for (size_t n = 0; n < buf.n; n++) /* cut anywhere: never read as whole */
        assert_false(jobq__entry_read((jobq_slice){buf.p, n}, &arena, &back));
    assert_false(back.shared);
    entry.shared = true;
    jobq__entry_write(&buf, &entry);
    assert_true(jobq__entry_read((jobq_slice){buf.p, buf.n}, &arena, &back));
    assert_true(back.shared);
    assert_string_equal(back.outcome.p, "failed");
    for (size_t n = 0; n < buf.n; n++)
        assert_false(jobq__entry_read((jobq_slice){buf.p, n}, &arena, &back));
    jobq__buf_free(&buf);
    jobq__arena_free(&arena);
}

/* case B037: the two parts with a worker's id between them are an entry like any other. */
static void lost_with_its_worker(void **state)
{
    const char id[] = "host:4711:ab";
    jobq__lost_entry lost;
    jobq__entry back;
    jobq__buf buf = {0};
    jobq__arena arena = {0};

    (void)state;
    jobq__lost_entry_make(&lost, 1796004964800);
    jobq__buf_add(&buf, lost.head, sizeof(lost.head));
    jobq__buf_addc(&buf, (char)strlen(id));
    jobq__buf_add(&buf, id, strlen(id));
    jobq__buf_add(&buf, lost.tail, lost.tail_n);
    assert_true(jobq__entry_read((jobq_slice){buf.p, buf.n}, &arena, &back));
    assert_int_equal(back.started_at_ms, 1796004964800);
    assert_int_equal(back.ended_at_ms, 1796004964800);
    assert_string_equal(back.worker.p, id);
    assert_string_equal(back.outcome.p, "lease_lost");
    assert_null(back.class_name.p);
    assert_string_equal(back.message.p,
                        "the worker's lease ran out while the job was running or about to run");
    jobq__buf_free(&buf);
    jobq__arena_free(&arena);
}

/* 20 MiB of three-byte characters in each text. */
static void cuts_huge_texts(void **state)
{
    size_t n = 20 << 20;
    char *huge = malloc(n);
    jobq_slice text = {huge, n};
    jobq__fault in = {text, text, text, text}, out;
    jobq__entry entry = {1, 2, text, text, text, text, false}, back;
    jobq__buf buf = {0};
    jobq__arena arena = {0};

    (void)state;
    for (size_t i = 0; i < n; i++)
        huge[i] = "\xe2\x82\xac"[i % 3];
    jobq__fault_write(&buf, &in);
    assert_true(buf.n > 60000 && buf.n <= JOBQ__FAULT_MAX);
    assert_true(jobq__fault_read((jobq_slice){buf.p, buf.n}, &arena, &out));
    assert_true(out.class_name.n <= JOBQ__FAULT_CLASS && out.where.n <= JOBQ__FAULT_WHERE);
    assert_true(jobq__utf8_valid(out.message.p, out.message.n));
    assert_non_null(strstr(out.message.p, "of 20971520 bytes]")); /* both sizes are said */
    jobq__entry_write(&buf, &entry);
    assert_true(jobq__entry_read((jobq_slice){buf.p, buf.n}, &arena, &back));
    assert_true(back.message.n <= JOBQ__ENTRY_MESSAGE);
    assert_true(jobq__utf8_valid(back.message.p, back.message.n));
    jobq__buf_free(&buf);
    jobq__arena_free(&arena);
    free(huge);
}

static void makes_bytes_visible(void **state)
{
    static const char dirty[] = "a\0b\xff\x1b[31m\ttab\nline";
    char out[128], again[128];
    size_t n = jobq__fault_tidy(out, sizeof(out) - 1, (jobq_slice){dirty, sizeof(dirty) - 1});

    (void)state;
    assert_string_equal(out, "a\\x00b\\xff\\x1b[31m\ttab\nline");
    assert_int_equal(n, strlen(out));
    jobq__fault_tidy(again, sizeof(again) - 1, of(out));
    assert_string_equal(out, again);
}

static void tidies_to_every_size(void **state)
{
    char text[2000], out[2001], again[2001];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "\xf0\x9f\x98\x80\x01"[i % 5];
    for (size_t max = 8; max < sizeof(text); max++) {
        size_t n = jobq__fault_tidy(out, max, (jobq_slice){text, sizeof(text)});

        assert_true(n <= max && strlen(out) == n && jobq__utf8_valid(out, n));
        assert_int_equal(jobq__fault_tidy(again, max, (jobq_slice){out, n}), n);
        assert_string_equal(out, again);
    }
}

/* Recording cannot fail: without memory a fixed text stands in. */
static void survives_without_memory(void **state)
{
    jobq__fault in = {of("C"), of("message"), of("x:1"), of("t")}, out;
    jobq__entry entry = {.message = of("m")};
    jobq__buf buf = {0};
    jobq__arena arena = {0};

    (void)state;
    jobq__alloc_fail_at(1, 1);
    jobq__fault_write(&buf, &in);
    jobq__alloc_fail_at(0, 0);
    assert_true(jobq__fault_read(jobq__fault_bytes(&buf), &arena, &out));
    assert_non_null(strstr(out.message.p, "could not be stored"));
    jobq__buf_free(&buf);
    jobq__alloc_fail_at(1, 1);
    jobq__entry_write(&buf, &entry);
    jobq__alloc_fail_at(0, 0);
    assert_int_equal(buf.n, 0);
    jobq__buf_free(&buf);
    jobq__arena_free(&arena);
}

static void a_job_keeps_its_error(void **state)
{
    jobq_job job = {0};
    char *huge = malloc(1 << 20);

    (void)state;
    memset(huge, 'x', 1 << 20);
    jobq_job_set_error(&job, "C\0D", 3, huge, 1 << 20, NULL, 0, "t", 1);
    assert_string_equal(job.fault.class_name.p, "C\\x00D");
    assert_true(job.fault.message.n <= 32768);
    assert_null(job.fault.where.p);
    jobq__job_release_memory(&job);
    memset(&job, 0, sizeof(job));
    jobq__alloc_fail_at(1, 1);
    jobq_job_set_error(&job, NULL, 0, huge, 1 << 20, NULL, 0, NULL, 0);
    jobq__alloc_fail_at(0, 0);
    assert_memory_equal(job.fault.message.p, "error text", 10);
    jobq__job_release_memory(&job);
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_with_its_worker),  cmocka_unit_test(goes_and_comes),
        cmocka_unit_test(cuts_huge_texts),       cmocka_unit_test(makes_bytes_visible),
        cmocka_unit_test(tidies_to_every_size),  cmocka_unit_test(survives_without_memory),
        cmocka_unit_test(a_job_keeps_its_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
