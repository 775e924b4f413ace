/* SPDX-License-Identifier: MIT
 *
 * The rings between dispatcher and children: one process writes, another reads, everything arrives
 * once, whole and in order.
 */
#include "harness/harness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/shared.h"

enum { SIZE = 16384, MESSAGES = 1000000, AHEAD = 7 };

typedef struct {
    jobq__ring ring;
    char data[SIZE];
} shared_ring;

static shared_ring *make_ring(void)
{
    shared_ring *r =
        mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(r, MAP_FAILED);
    r->ring.size = SIZE;
    r->ring.offset = offsetof(shared_ring, data);
    return r;
}

/* The same stream of numbers in both processes. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Mostly short, sometimes up to half the ring, sometimes empty. */
static size_t next_length(uint64_t *state)
{
    const uint64_t x = next_random(state);

    return x % 64 == 0 ? (x >> 8) % (SIZE / 2 - 16) : (x >> 8) % 96;
}

static void fill(unsigned char *p, size_t n, uint64_t i)
{
    memset(p, (int)(i & 0xff), n);
    if (n >= sizeof(i))
        memcpy(p, &i, sizeof(i));
}

static bool is_whole(const unsigned char *p, size_t n, uint64_t i)
{
    const unsigned char mark = (unsigned char)(i & 0xff);

    if (n >= sizeof(i) && memcmp(p, &i, sizeof(i)) != 0)
        return false;
    return n <= sizeof(i) || (p[n - 1] == mark && p[n / 2 < sizeof(i) ? n - 1 : n / 2] == mark);
}

static void produce(shared_ring *r)
{
    uint64_t state = 88172645463325252u;

    for (uint64_t i = 0; i < MESSAGES; i++) {
        const size_t n = next_length(&state);
        void *p;

        while (!(p = jobq__ring_reserve(&r->ring, (char *)r, n)))
            sched_yield();
        fill(p, n, i);
        jobq__ring_publish(&r->ring, n);
    }
}

/* Reads up to AHEAD messages beyond the tail before giving room back. 0 or the number of the bad
 * one + 1. */
static uint64_t consume(shared_ring *r)
{
    uint64_t state = 88172645463325252u, cursor = 0, i = 0, pauses = 1;

    while (i < MESSAGES) {
        size_t n = 0;
        const void *p = jobq__ring_look(&r->ring, (char *)r, &cursor, &n);

        if (p) {
            if (n != next_length(&state) || !is_whole(p, n, i))
                return i + 1;
            i++;
        }
        if (!p || next_random(&pauses) % AHEAD == 0)
            jobq__ring_release(&r->ring, cursor);
        if (!p)
            sched_yield();
    }
    jobq__ring_release(&r->ring, cursor);
    return jobq__ring_is_empty(&r->ring) ? 0 : MESSAGES + 1;
}

static void test_two_processes(void **state)
{
    shared_ring *r = make_ring();
    pid_t producer = fork();
    int status;

    (void)state;
    alarm(120);
    if (producer == 0) {
        produce(r);
        _exit(0);
    }
    assert_int_equal(consume(r), 0);
    assert_int_equal(waitpid(producer, &status, 0), producer);
    assert_int_equal(status, 0);
    munmap(r, sizeof(*r));
}

static void test_full_and_empty(void **state)
{
    shared_ring *r = make_ring();
    uint64_t cursor = 0;
    size_t n = 0, put = 0;

    (void)state;
    assert_true(jobq__ring_is_empty(&r->ring));
    assert_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
    while (jobq__ring_reserve(&r->ring, (char *)r, 56)) {
        jobq__ring_publish(&r->ring, 56);
        put++;
    }
    assert_int_equal(put, SIZE / 64);
    assert_non_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
    assert_int_equal(n, 56);
    assert_null(jobq__ring_reserve(&r->ring, (char *)r, 56)); /* looking gives no room back */
    jobq__ring_release(&r->ring, cursor);
    assert_non_null(jobq__ring_reserve(&r->ring, (char *)r, 56));
    assert_null(jobq__ring_reserve(&r->ring, (char *)r, SIZE * 2));
    munmap(r, sizeof(*r));
}

/* A reservation that is not published leaves no trace, also where it would have wrapped. */
static void test_unpublished(void **state)
{
    shared_ring *r = make_ring();
    uint64_t cursor = 0;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_non_null(jobq__ring_reserve(&r->ring, (char *)r, SIZE / 4));
        jobq__ring_publish(&r->ring, SIZE / 4);
        assert_non_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
        jobq__ring_release(&r->ring, cursor);
    }
    assert_non_null(jobq__ring_reserve(&r->ring, (char *)r, SIZE / 2 - 16)); /* wraps */
    assert_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
    fill(jobq__ring_reserve(&r->ring, (char *)r, 20), 20, 5);
    jobq__ring_publish(&r->ring, 20);
    assert_true(is_whole(jobq__ring_look(&r->ring, (char *)r, &cursor, &n), 20, 5));
    assert_int_equal(n, 20);
    munmap(r, sizeof(*r));
}

/* What is said to fit does, in that order, and when some of it is left out. */
static void test_planned(void **state)
{
    shared_ring *r = make_ring();
    uint64_t dice = 88172645463325252u, cursor = 0;
    size_t lengths[SIZE / 8], n = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t head = jobq__ring_head(&r->ring);
        const bool some = next_random(&dice) % 2;
        size_t count = 0;

        while ((n = next_length(&dice)), jobq__ring_fits(&r->ring, &head, n))
            lengths[count++] = n;
        for (size_t i = 0; i < count; i++) {
            if (some && next_random(&dice) % 3 == 0)
                continue;
            assert_non_null(jobq__ring_reserve(&r->ring, (char *)r, lengths[i]));
            jobq__ring_publish(&r->ring, lengths[i]);
        }
        if (!some) {
            assert_int_equal(jobq__ring_head(&r->ring), head);
            assert_null(jobq__ring_reserve(&r->ring, (char *)r, n));
        }
        for (uint64_t many = next_random(&dice) % 200; many > 0; many--)
            if (!jobq__ring_look(&r->ring, (char *)r, &cursor, &n))
                break;
        jobq__ring_release(&r->ring, cursor);
    }
    munmap(r, sizeof(*r));
}

/* Rule D7: a handler that wrote over its ring does not take the reader with it. */
static void test_garbage(void **state)
{
    shared_ring *r = make_ring();
    uint64_t cursor = 0;
    size_t n = 0;

    (void)state;
    assert_non_null(jobq__ring_reserve(&r->ring, (char *)r, 100));
    jobq__ring_publish(&r->ring, 100);
    for (uint32_t length = 0; length < 3; length++) {
        const uint32_t lies[] = {101 * 8, SIZE + 1, UINT32_MAX - 1};

        memcpy(r->data, &lies[length], sizeof(lies[length]));
        assert_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
        assert_int_equal(cursor, 0);
    }
    cursor = 4096; /* a head before the tail */
    memset(r->data, 0, SIZE);
    atomic_store(&r->ring.head, 8);
    assert_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
    atomic_store(&r->ring.head, 8 + 4096 + (uint64_t)2 * SIZE); /* more than fits */
    assert_null(jobq__ring_look(&r->ring, (char *)r, &cursor, &n));
    munmap(r, sizeof(*r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_and_empty), cmocka_unit_test(test_unpublished),
        cmocka_unit_test(test_planned),        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_two_processes),
    };

    return cmocka_run_group_tests_name("worker/ring", tests, NULL, NULL);
}
