/* SPDX-License-Identifier: MIT
 *
 * Three workers, two queues, four unique keys, a capacity that comes and goes: pushes of every
 * kind, every settlement, lapsed leases, cancelled, cleared, replayed and forgotten jobs. The
 * ledger knows only which jobs were ended: none of them may be handed out again (rule C3). In the
 * end every job is gone, every unique key is free (rule B6) and all of a queue's places are (rule
 * B4).
 *
 * The seed is printed and can be given (JOBQUEUE_TEST_SEED), the number of steps too
 * (JOBQUEUE_TEST_STEPS).
 */
#include "contract/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/ident.h"

enum { JOBS = 4000, HELD = 64, WORKERS = 3, KEYS = 4, LEASE_MS = 100000 };

/* DEAD: it may be put back. ENDED: it may not be seen again. */
typedef enum { NEVER, THERE, DEAD, ENDED } fate;

typedef struct {
    char id[40];
    fate fate;
} known_job;

typedef struct {
    char id[40], queue[4];
    jobq_settlement s;
    int worker;
} handout;

static struct {
    unsigned seed;
    known_job jobs[JOBS];
    int count, held_count;
    handout held[HELD];
    int stored, handed_out, settled, stale, cancelled, replayed, replaced, full;
} t;

static const char *const queues[] = {"qa", "qb"};
static const char *const workers[WORKERS] = {"w0", "w1", "w2"};
static const char *const keys[KEYS] = {"k0", "k1", "k2", "k3"};

static unsigned dice(unsigned n)
{
    t.seed = t.seed * 1103515245u + 12345u;
    return (t.seed >> 16) % n;
}

static known_job *look_up(jobq_slice id)
{
    for (int i = 0; i < t.count; i++)
        if (jobq__slice_equal(jobq__slice_text(t.jobs[i].id), id))
            return &t.jobs[i];
    return NULL;
}

/* One of that fate if a few looks find any. */
static known_job *any_job(fate wanted)
{
    known_job *job = NULL;

    for (int i = 0; i < 30 && t.count && (!job || job->fate != wanted); i++)
        job = &t.jobs[dice((unsigned)t.count)];
    return job;
}

static void mark(const char *id, fate fate_now)
{
    known_job *job = look_up(jobq__slice_text(id));

    if (job)
        job->fate = fate_now;
}

/* ---- pushing --------------------------------------------------------------------------------- */

static void set_key(jobq_push *item)
{
    if (dice(2))
        return;
    item->unique = TEXT(keys[dice(KEYS)]);
    if (dice(3) == 0)
        return;
    item->on_duplicate = JOBQ_DUPLICATE_REPLACE;
    item->max_wait_ms = dice(2) ? 30000 : 0;
}

static void push_new(void)
{
    static const uint8_t priorities[] = {0, 0, 0, 5, 9};
    known_job *job = &t.jobs[t.count];
    jobq_push item;

    if (t.count == JOBS)
        return;
    if (dice(2))
        jobq__ident_job(job->id);
    else
        snprintf(job->id, sizeof(job->id), "own-%d", t.count);
    t.count++;
    item = job_item(job->id, queues[dice(2)]);
    item.fresh_id = strncmp(job->id, "own", 3) != 0;
    item.priority = contract_has(JOBQ_FEATURE_PRIORITY) ? priorities[dice(5)] : 0;
    item.delay_ms = dice(3) ? 0 : 20000;
    set_key(&item);
    assert_ok(jobq__store_push(store, &item, 1));
    assert_int_not_equal(item.result, JOBQ_EEXISTS);
    t.replaced += item.result == 2;
    t.full += item.result == JOBQ_EFULL;
    if (item.result == 0 || (item.result == 2 && strcmp(item.holder, job->id) == 0)) {
        job->fate = THERE;
        t.stored++;
    }
}

/* ---- handing out and settling ---------------------------------------------------------------- */

/* One whose lease was over begins anew. */
static void live(const char *worker, int64_t lease_ms)
{
    jobq_renewal r = {.worker = TEXT(worker), .lease_ms = lease_ms};
    const int rc = jobq__store_renew(store, &r);

    assert_true(rc == 0 || rc == JOBQ_ELEASE);
}

static void reserve_some(void)
{
    const int worker = (int)dice(WORKERS);
    const char *queue = queues[dice(2)];

    live(workers[worker], LEASE_MS);
    reserve_jobs(workers[worker], queue, 1 + dice(3));
    for (const jobq_record *r = got.first; r; r = r->next) {
        handout *h = &t.held[t.held_count < HELD ? t.held_count++ : (int)dice(HELD)];
        known_job *job = look_up(r->id);

        assert_non_null(job);
        assert_int_not_equal(job->fate, NEVER);
        if (job->fate == ENDED)
            fail_msg("%s was handed out after its end", job->id);
        job->fate = THERE;
        t.handed_out++;
        *h = (handout){.s = settlement(r, JOBQ_OP_DONE), .worker = worker};
        snprintf(h->id, sizeof(h->id), "%s", job->id);
        snprintf(h->queue, sizeof(h->queue), "%s", queue);
    }
}

static void choose_op(jobq_settlement *s)
{
    static const uint8_t ops[] = {JOBQ_OP_DONE,      JOBQ_OP_DONE, JOBQ_OP_BACK,
                                  JOBQ_OP_GIVE_BACK, JOBQ_OP_DEAD, JOBQ_OP_FREE_KEY,
                                  JOBQ_OP_PROGRESS};

    s->op = ops[dice(sizeof(ops))];
    s->error = s->history = s->outcome = (jobq_slice){0};
    s->keep_ms = s->delay_ms = 0;
    s->keep_bare = false;
    s->reason = 1;
    if (s->op == JOBQ_OP_PROGRESS)
        s->outcome = TEXT("half");
    else if (s->op != JOBQ_OP_FREE_KEY && dice(2))
        s->history = TEXT("entry");
    if (s->op == JOBQ_OP_DEAD)
        s->error = TEXT("error");
    if (s->op == JOBQ_OP_BACK)
        s->delay_ms = dice(2) ? 30000 : 0;
    if ((s->op == JOBQ_OP_DONE || s->op == JOBQ_OP_DEAD) && dice(2))
        s->keep_ms = 60000;
    s->keep_bare = s->op == JOBQ_OP_DONE && s->keep_ms && dice(2);
}

static void settle_any(void)
{
    const int i = t.held_count ? (int)dice((unsigned)t.held_count) : -1;
    jobq_settlement s;
    handout h;
    int rc;

    if (i < 0)
        return;
    h = t.held[i];
    s = h.s;
    s.id = jobq__slice_text(h.id);
    s.queue = jobq__slice_text(h.queue);
    choose_op(&s);
    rc = settle_with(workers[h.worker], &s);
    assert_true(rc == 0 || rc == JOBQ_ELEASE);
    t.settled += rc == 0;
    t.stale += rc != 0;
    if (rc != 0 || (s.op != JOBQ_OP_FREE_KEY && s.op != JOBQ_OP_PROGRESS))
        t.held[i] = t.held[--t.held_count];
    if (rc == 0 && s.op == JOBQ_OP_DONE)
        mark(h.id, ENDED);
    else if (rc == 0 && s.op == JOBQ_OP_DEAD)
        mark(h.id, DEAD);
}

/* ---- what people do -------------------------------------------------------------------------- */

static void cancel_any(void)
{
    const known_job *job = any_job(THERE);
    jobq_cancelling c = {.reason = 11, .keep_ms = dice(2) ? 60000 : 0, .history = TEXT("entry")};

    if (!job)
        return;
    c.id = jobq__slice_text(job->id);
    c.hard = dice(2);
    assert_ok(jobq__store_cancel(store, &c));
    if (c.result != 0)
        return;
    assert_int_equal(job->fate, THERE);
    mark(job->id, DEAD);
    t.cancelled++;
}

static void mend_any(void)
{
    const known_job *job = any_job(DEAD);
    const int what = dice(3) ? JOBQ_MEND_RETRY : JOBQ_MEND_FORGET;

    if (!job || mend_job(store, what, job->id, false) != 0)
        return;
    assert_int_equal(job->fate, DEAD);
    mark(job->id, what == JOBQ_MEND_RETRY ? THERE : ENDED);
    t.replayed += what == JOBQ_MEND_RETRY;
}

static void clear_some(void)
{
    jobq_clearing c = {.queue = TEXT(queues[dice(2)]), .limit = 3};

    if (dice(8) == 0)
        assert_ok(jobq__store_clear(store, &c));
}

static void limit_any(void)
{
    static const int64_t values[] = {0, 0, 3, 40};
    jobq_limit l = {.queue = TEXT(queues[dice(2)]), .value = values[dice(4)]};

    assert_ok(jobq__store_capacity(store, &l));
}

/* Leases lapse where nobody renews, delayed jobs become due, kept ones go. */
static void let_time_pass(void)
{
    const int64_t ms = dice(12) ? 25000 : LEASE_MS + 50000;

    pass_time(ms, ms);
    maintain_all();
}

static void step(void)
{
    static void (*const deeds[])(void) = {push_new,     push_new,     push_new,     push_new,
                                          reserve_some, reserve_some, reserve_some, settle_any,
                                          settle_any,   settle_any,   settle_any,   cancel_any,
                                          mend_any,     clear_some,   limit_any,    let_time_pass};

    deeds[dice(sizeof(deeds) / sizeof(deeds[0]))]();
}

/* ---- the end of everything ------------------------------------------------------------------- */

static int forget_dead(void)
{
    jobq_batch shown = {.count = 0};
    jobq_listing l = {.state = 4, .limit = 500, .keys_only = true, .out = &shown};
    int n = 0;

    assert_ok(jobq__store_list(store, &l));
    for (const jobq_record *r = shown.first; r; r = r->next)
        n += mend_job(store, JOBQ_MEND_FORGET, (const char *)r->id.p, false) == 0;
    jobq__batch_free(&shown);
    return n;
}

static void finish_queue(const char *queue)
{
    while (reserve_jobs("last", queue, 20) > 0)
        for (const jobq_record *r = got.first; r; r = r->next) {
            jobq_settlement s = settlement(r, JOBQ_OP_DONE);
            const known_job *job = look_up(r->id);

            if (job && job->fate == ENDED)
                fail_msg("%s was handed out after its end", job->id);
            assert_int_equal(settle_with("last", &s), 0);
            if (job)
                mark(job->id, ENDED);
        }
}

static int64_t left_in(const char *queue)
{
    const jobq_counts c = count_jobs(queue);

    return c.ready + c.delayed + c.reserved + c.dead;
}

static void end_all(void)
{
    for (int round = 0; round < 20 && (round < 3 || left_in("qa") + left_in("qb") > 0); round++) {
        pass_time(LEASE_MS + 100000, LEASE_MS + 100000);
        for (int i = 0; i < 5; i++)
            maintain_all();
        live("last", 3600000);
        finish_queue("qa");
        finish_queue("qb");
        forget_dead();
    }
    assert_int_equal(left_in("qa"), 0);
    assert_int_equal(left_in("qb"), 0);
}

/* As if nothing had ever been there. */
static void check_free(const char *queue)
{
    char id[16];

    for (int i = 0; i < KEYS; i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "free-%s-%d", queue, i);
        item = job_item(id, queue);
        item.unique = TEXT(keys[i]);
        if (push_item(&item) != 0)
            fail_msg("the key %s of %s is held by \"%s\"", keys[i], queue, item.holder);
    }
    finish_queue(queue);
}

static void check_places(const char *queue)
{
    jobq_limit l = {.queue = TEXT(queue), .value = 3};
    char id[16];

    assert_ok(jobq__store_capacity(store, &l));
    for (int i = 0; i < 4; i++) {
        jobq_push item;

        snprintf(id, sizeof(id), "place-%s-%d", queue, i);
        item = job_item(id, queue);
        assert_int_equal(push_item(&item), i < 3 ? 0 : JOBQ_EFULL);
    }
    finish_queue(queue);
    l.value = 0;
    assert_ok(jobq__store_capacity(store, &l));
}

void traffic_run(unsigned seed, int steps)
{
    memset(&t, 0, sizeof(t));
    t.seed = seed;
    for (int i = 0; i < steps; i++)
        step();
    print_message("%d stored, %d replaced, %d full, %d handed out, %d settled, %d stale, %d "
                  "cancelled, %d replayed\n",
                  t.stored, t.replaced, t.full, t.handed_out, t.settled, t.stale, t.cancelled,
                  t.replayed);
    contract_check();
    for (size_t i = 0; i < 2; i++) {
        jobq_limit l = {.queue = TEXT(queues[i])};

        assert_ok(jobq__store_capacity(store, &l));
    }
    end_all();
    for (size_t i = 0; i < 2; i++) {
        check_free(queues[i]);
        check_places(queues[i]);
        assert_int_equal(left_in(queues[i]), 0);
    }
    contract_check();
}

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);

    return text && text[0] ? atoi(text) : otherwise;
}

/* Rules B4, B6, C3. */
void test_nothing_is_left(void **state)
{
    const unsigned seed = (unsigned)number_of("JOBQUEUE_TEST_SEED", (int)time(NULL));

    (void)state;
    print_message("seed %u (JOBQUEUE_TEST_SEED)\n", seed);
    traffic_run(seed, number_of("JOBQUEUE_TEST_STEPS", 600));
}
