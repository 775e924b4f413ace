/* SPDX-License-Identifier: MIT
 *
 * Hand-out records: child and dispatcher race for each one, the child is killed at random moments,
 * and still every hand-out has exactly one fate, and nobody but the running one is blamed (rule C5,
 * case B074).
 */
#include "harness/harness.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "worker/shared.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HANDOUTS = 80000 };
#else
enum { HANDOUTS = 400000 };
#endif
enum { KILL_AFTER_MAX = 8000, REVOKE_ONE_IN = 12, HELD_MAX = 64 };

/* What really happened to each number: the child's notes, which a kill cannot take back. */
typedef struct {
    unsigned char begun[HANDOUTS + 1], published[HANDOUTS + 1];
} ledger;

enum { FATE_NONE, FATE_RESULT, FATE_REVOKED, FATE_BLAMED, FATE_UNSTARTED };

typedef struct {
    jobq__shared shared;
    jobq__slot *slot;
    ledger *notes;
    unsigned char *fate;
    uint64_t next, oldest; /* given: oldest <= number < next */
    uint64_t cursor;
    pid_t child;
    int64_t kills, revoked, blamed, unstarted, results, wrong;
    int64_t kill_at; /* when so many results are there */
    unsigned seed;
} game;

static void child_loop(game *g)
{
    jobq__slot *slot = g->slot;

    for (;;) {
        const uint32_t seen = atomic_load(&slot->bell);
        uint64_t cursor = atomic_load(&slot->jobs.tail), number;
        size_t n;
        const void *m = jobq__ring_look(&slot->jobs, jobq__slot_base(slot), &cursor, &n);
        void *room;

        if (!m) {
            jobq__slot_sleep(slot, seen, 1000);
            continue;
        }
        memcpy(&number, m, sizeof(number));
        if (jobq__slot_begin(slot, number)) {
            g->notes->begun[number]++;
            if (number % 16 == 0)
                sched_yield(); /* some run longer */
            while (
                !(room = jobq__ring_reserve(&slot->results, jobq__slot_base(slot), sizeof(number))))
                sched_yield();
            memcpy(room, &number, sizeof(number));
            jobq__ring_publish(&slot->results, sizeof(number));
            g->notes->published[number]++;
            jobq__slot_end(slot, number);
        }
        jobq__ring_release(&slot->jobs, cursor);
    }
}

static void start_child(game *g)
{
    g->child = fork();
    assert_true(g->child >= 0);
    if (g->child == 0) {
        prctl(PR_SET_PDEATHSIG,
              SIGKILL); /* a failed test leaves nobody who holds its output open */
        child_loop(g);
    }
}

static void set_fate(game *g, uint64_t number, unsigned char fate, int64_t *count)
{
    g->wrong += g->fate[number] != FATE_NONE;
    g->fate[number] = fate;
    ++*count;
}

static void drain(game *g)
{
    uint64_t number;
    size_t n;
    const void *m;

    while ((m = jobq__ring_look(&g->slot->results, jobq__slot_base(g->slot), &g->cursor, &n))) {
        memcpy(&number, m, sizeof(number));
        set_fate(g, number, FATE_RESULT, &g->results);
        jobq__ring_release(&g->slot->results, g->cursor);
    }
    while (g->oldest < g->next && g->fate[g->oldest])
        g->oldest++;
}

static void give(game *g)
{
    void *room;

    while (g->next <= HANDOUTS && g->next - g->oldest < HELD_MAX) {
        room = jobq__ring_reserve(&g->slot->jobs, jobq__slot_base(g->slot), sizeof(g->next));
        if (!room)
            return;
        memcpy(room, &g->next, sizeof(g->next));
        atomic_store(&g->slot->records[g->next % JOBQ__RECORDS],
                     jobq__record_value(g->next, JOBQ__GIVEN));
        jobq__ring_publish(&g->slot->jobs, sizeof(g->next));
        g->next++;
        jobq__slot_wake(g->slot);
    }
}

static void revoke_some(game *g)
{
    const uint64_t number = g->next - 1;

    if (rand_r(&g->seed) % REVOKE_ONE_IN == 0 && number >= g->oldest && !g->fate[number] &&
        jobq__slot_revoke(g->slot, number))
        set_fate(g, number, FATE_REVOKED, &g->revoked);
}

/* Results first; a record that is RUNNING then is the one to blame, GIVEN ones never started. */
static void judge_death(game *g)
{
    int64_t blamed = 0;

    drain(g);
    for (uint64_t number = g->oldest; number < g->next; number++) {
        if (g->fate[number])
            continue;
        if (jobq__slot_record(g->slot, number) == JOBQ__RUNNING)
            set_fate(g, number, FATE_BLAMED, &blamed);
        else if (jobq__slot_record(g->slot, number) == JOBQ__GIVEN)
            set_fate(g, number, FATE_UNSTARTED, &g->unstarted);
        else
            g->wrong++;
    }
    g->blamed += blamed;
    g->wrong += blamed > 1;
    g->oldest = g->next;
}

static void kill_child(game *g)
{
    kill(g->child, SIGKILL);
    waitpid(g->child, NULL, 0);
    g->kills++;
    judge_death(g);
    jobq__slot_clear(g->slot);
    g->cursor = 0;
}

static int64_t count_wrong_fates(const game *g)
{
    int64_t wrong = 0;

    for (uint64_t i = 1; i <= HANDOUTS; i++) {
        const int begun = g->notes->begun[i], published = g->notes->published[i];

        switch (g->fate[i]) {
        case FATE_RESULT: /* the note may be missing when the kill came right behind the result */
            wrong += begun > 1;
            break;
        case FATE_BLAMED:
            wrong += published != 0;
            break;
        case FATE_REVOKED:
        case FATE_UNSTARTED:
            wrong += begun != 0;
            break;
        default:
            wrong++;
        }
    }
    return wrong;
}

static void *map(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static void test_race_and_kills(void **state)
{
    game g = {.next = 1, .oldest = 1, .seed = 12345, .kill_at = 1000};
    const int64_t end_ms = jobq__clock_mono_ms() + (getenv("JOBQUEUE_TEST_SLOW") ? 550000 : 120000);

    (void)state;
    assert_ok(jobq__shared_new(&g.shared, 1, 1, 0, 0));
    g.slot = jobq__slot_at(&g.shared, 0);
    g.notes = map(sizeof(ledger));
    g.fate = calloc(1, HANDOUTS + 1);
    start_child(&g);
    while (g.oldest <= HANDOUTS && jobq__clock_mono_ms() < end_ms) {
        give(&g);
        revoke_some(&g);
        drain(&g);
        if (g.results >= g.kill_at) {
            kill_child(&g);
            start_child(&g);
            g.kill_at = g.results + 1 + rand_r(&g.seed) % KILL_AFTER_MAX;
        }
    }
    assert_int_equal(g.oldest, HANDOUTS + 1);
    kill_child(&g);
    print_message("%lld results, %lld revoked, %lld unstarted, %lld blamed in %lld kills\n",
                  (long long)g.results, (long long)g.revoked, (long long)g.unstarted,
                  (long long)g.blamed, (long long)g.kills);
    assert_int_equal(g.wrong, 0);
    assert_int_equal(count_wrong_fates(&g), 0);
    assert_true(g.kills > 5 && g.revoked > 100 && g.results > HANDOUTS / 4);
    free(g.fate);
    munmap(g.notes, sizeof(ledger));
    jobq__shared_free(&g.shared);
}

static void test_records(void **state)
{
    jobq__slot *slot = map(sizeof(*slot));

    (void)state;
    jobq__slot_clear(slot);
    assert_false(jobq__slot_begin(slot, 7));
    atomic_store(&slot->records[7], jobq__record_value(7, JOBQ__GIVEN));
    assert_int_equal(jobq__slot_record(slot, 7), JOBQ__GIVEN);
    assert_true(jobq__slot_begin(slot, 7));
    assert_false(jobq__slot_revoke(slot, 7));
    assert_false(jobq__slot_begin(slot, 7));
    assert_int_equal(jobq__slot_record(slot, 7), JOBQ__RUNNING);
    atomic_store(&slot->records[8], jobq__record_value(8 + JOBQ__RECORDS, JOBQ__GIVEN));
    assert_false(jobq__slot_begin(slot, 8)); /* the cell is another's */
    assert_int_equal(jobq__slot_record(slot, 8), JOBQ__ENDED);
    assert_true(jobq__slot_revoke(slot, 8 + JOBQ__RECORDS));
    assert_false(jobq__slot_begin(slot, 8 + JOBQ__RECORDS));
    jobq__slot_end(slot, 7);
    assert_int_equal(atomic_load(&slot->records[7]), jobq__record_value(7, JOBQ__ENDED));
    /* Given to another between the result and its end: that one is still to begin. */
    atomic_store(&slot->records[9], jobq__record_value(9 + JOBQ__RECORDS, JOBQ__GIVEN));
    jobq__slot_end(slot, 9);
    assert_true(jobq__slot_begin(slot, 9 + JOBQ__RECORDS));
    munmap(slot, sizeof(*slot));
}

/* A bell raised before the sleep is not slept through; one raised during it ends it. */
static void test_bell(void **state)
{
    jobq__slot *slot = map(sizeof(*slot));
    const int64_t start_ms = jobq__clock_mono_ms();
    uint32_t seen = atomic_load(&slot->bell);
    pid_t waker;

    (void)state;
    jobq__slot_wake(slot);
    jobq__slot_sleep(slot, seen, 30000);
    seen = atomic_load(&slot->bell);
    if ((waker = fork()) == 0) {
        while (!atomic_load(&slot->sleeping))
            sched_yield();
        jobq__slot_wake(slot);
        _exit(0);
    }
    jobq__slot_sleep(slot, seen, 30000);
    assert_true(jobq__clock_mono_ms() - start_ms < 20000);
    jobq__slot_sleep(slot, atomic_load(&slot->bell), 1);
    waitpid(waker, NULL, 0);
    munmap(slot, sizeof(*slot));
}

/* Stops only rise; the first reason stands. */
static void test_stop(void **state)
{
    jobq__words *words = map(sizeof(*words));

    (void)state;
    assert_true(jobq__words_stop(words, JOBQ__DRAIN, JOBQ__STOP_MAX_JOBS, 12));
    assert_false(jobq__words_stop(words, JOBQ__DRAIN, JOBQ__STOP_SIGNAL, 0));
    assert_true(jobq__words_stop(words, JOBQ__HARD, JOBQ__STOP_SIGNAL, 0));
    assert_false(jobq__words_stop(words, JOBQ__DRAIN, JOBQ__STOP_NONE, 0));
    assert_int_equal(atomic_load(&words->stop), JOBQ__HARD);
    assert_int_equal(atomic_load(&words->stop_reason), JOBQ__STOP_MAX_JOBS);
    assert_int_equal(atomic_load(&words->stop_number), 12);
    munmap(words, sizeof(*words));
}

static bool is_mapped(const void *p)
{
    unsigned char vec;

    return mincore((void *)((uintptr_t)p & ~(uintptr_t)4095), 1, &vec) == 0;
}

/* A child sees the words and its own slot, not its neighbours' nor the tokens. */
static void test_narrow(void **state)
{
    jobq__shared shared, before;

    (void)state;
    assert_ok(jobq__shared_new(&shared, 2, 1, 100000, 100000));
    before = shared;
    assert_int_equal(shared.words->slot_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&jobq__slot_at(&shared, i)->state), JOBQ__SLOT_FREE);
    jobq__shared_narrow(&shared, 2);
    assert_null(shared.handouts);
    assert_false(is_mapped(before.handouts));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(is_mapped(jobq__slot_at(&shared, i)), i == 2);
        assert_int_equal(is_mapped(shared.areas + i * shared.area_size), i == 2);
        assert_int_equal(is_mapped(shared.outs + i * shared.out_size), i == 2);
    }
    assert_int_equal(shared.words->processes, 2);
    jobq__shared_free(&shared);
    assert_ok(jobq__shared_new(&shared, 0, 1, 0, 0)); /* inline: words only */
    assert_null(shared.handouts);
    jobq__shared_free(&shared);
}

/* Rule N7: the child never waits, and what is read is whole; one that died in the middle of it
 * leaves nothing, and its successor goes on. */
static void tell_for_ever(jobq__slot *slot)
{
    char bytes[JOBQ__TELL_MAX];

    for (unsigned i = 1;; i++) {
        memset(bytes, (int)(i % 251), sizeof(bytes));
        jobq__slot_tell_write(slot, 1, i, bytes, 1 + i % JOBQ__TELL_MAX);
    }
}

static int64_t read_for(jobq__slot *slot, int64_t ms)
{
    const int64_t end_ms = jobq__clock_mono_ms() + ms;
    char bytes[JOBQ__TELL_MAX];
    int64_t good = 0;

    while (jobq__clock_mono_ms() < end_ms || good == 0) {
        uint64_t number = 0;
        const size_t n = jobq__slot_tell_read(slot, 1, &number, bytes);

        if (n == 0)
            continue;
        assert_int_equal(n, 1 + number % JOBQ__TELL_MAX);
        for (size_t i = 0; i < n; i++)
            assert_int_equal((unsigned char)bytes[i], number % 251);
        good++;
    }
    return good;
}

static void test_tell(void **state)
{
    jobq__shared shared;
    jobq__slot *slot;
    int64_t good = 0;

    (void)state;
    assert_ok(jobq__shared_new(&shared, 1, 3, 0, 5000));
    slot = jobq__slot_at(&shared, 0);
    for (int i = 0; i < 20; i++) {
        const pid_t pid = fork();

        if (pid == 0)
            tell_for_ever(slot);
        good += read_for(slot, 20);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_true(good >= 20);
    assert_true(atomic_load(&slot->told) > 0);
    jobq__shared_free(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),        cmocka_unit_test(test_bell),
        cmocka_unit_test(test_stop),           cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_race_and_kills), cmocka_unit_test(test_tell),
    };

    return cmocka_run_group_tests_name("worker/slot", tests, NULL, NULL);
}
