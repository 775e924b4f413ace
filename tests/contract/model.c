/* SPDX-License-Identifier: MIT
 *
 * Random operations by several workers on the store and on the memory driver, which is the oracle:
 * every answer must be the same. Beside both stands a ledger that knows jobs only by the answers
 * the store gave: nothing is lost, doubled or in two states. The seed is printed and can be given
 * (JOBQUEUE_TEST_SEED), the number of steps too (JOBQUEUE_TEST_STEPS).
 *
 * A step is ten seconds. Spans end in the middle of a step, each kind in another second, so that
 * nothing falls due between the turns of the two stores and no two jobs at the same moment.
 */
#include "contract/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"

enum {
    JOBS = 24,
    WORKERS = 3,
    QUEUES = 2,
    STEP_MS = 10000,
    PUSH_SHORT_MS = 64000,
    PUSH_LONG_MS = 115000,
    BACK_MS = 86000,
    KEEP_MS = 147000,
    LEASE_MS = 298000
};

/* What the answers so far say of a job. */
typedef enum { GONE, WAITING, HELD, KEPT, DEAD } standing;

typedef struct {
    standing standing;
    int queue, unique; /* unique: 0 = no key */
    int worker;        /* HELD: by whom, under which token */
    jobq_lease_token token;
} entry;

typedef struct {
    jobq__store *subject[WORKERS]; /* each worker's own handle where the store can be shared */
    jobq__store *oracle;
    jobq_lease_token tokens[2][JOBS]; /* the last ones seen: 0 subject, 1 oracle */
    jobq_counters counters[JOBS];
    int holder[JOBS]; /* the worker that got them */
    entry ledger[JOBS];
    unsigned seed;
    int64_t wall_ms, boot_ms; /* the model's own time */
    int64_t began_wall_ms, began_mono_us, shifted_ms;
    int handed_out, taken_back, settled, stale, mended; /* that it did not run idle */
    bool host_clock, due_order, shared;
} model;

static const char *const queue_names[QUEUES] = {"qa", "qb"};

static unsigned dice(model *m, unsigned n)
{
    m->seed = m->seed * 1103515245u + 12345u;
    return (m->seed >> 16) % n;
}

static const char *job_id(unsigned i)
{
    static char ids[JOBS][8];

    snprintf(ids[i], sizeof(ids[i]), "j%02u", i);
    return ids[i];
}

static unsigned job_number(const jobq_record *r)
{
    return (unsigned)atoi((const char *)r->id.p + 1);
}

static const char *worker_id(unsigned w)
{
    static const char *const ids[WORKERS] = {"w0", "w1", "w2"};

    return ids[w];
}

static const char *unique_key(unsigned u)
{
    static const char *const keys[] = {"", "k1", "k2", "k3"};

    return keys[u];
}

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t mono_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* A server's clock only ever goes ahead: what an operation takes is far below a step. */
static void move_server(model *m)
{
    const int64_t now_ms = m->began_wall_ms + (mono_us() - m->began_mono_us) / 1000 + m->shifted_ms;

    if (now_ms >= m->wall_ms)
        return;
    pass_time(m->wall_ms - now_ms, 0);
    m->shifted_ms += m->wall_ms - now_ms;
}

static void move_host(const model *m)
{
    jobq__clock_shift(m->wall_ms - jobq__clock_wall_ms(), m->boot_ms - jobq__clock_boot_ms());
}

/* The store whose turn it is (0 subject, as worker w sees it; 1 oracle), at the model's time. */
static jobq__store *turn(model *m, int s, unsigned w)
{
    if (s == 1 || m->host_clock)
        move_host(m);
    else
        move_server(m);
    return s == 0 ? m->subject[w] : m->oracle;
}

/* ---- the ledger ------------------------------------------------------------------------------ */

static bool same_token(const jobq_lease_token *a, const jobq_lease_token *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void book_push(model *m, unsigned i, int queue, unsigned unique, const jobq_push *item)
{
    entry *e = &m->ledger[i];

    if (item->result == JOBQ_EEXISTS) {
        assert_int_not_equal(e->standing, GONE);
        return;
    }
    if (item->result == 1) {
        const entry *h = &m->ledger[atoi(item->holder + 1)];

        assert_true(h->standing == WAITING || h->standing == HELD);
        assert_int_equal(h->unique, unique);
        assert_int_equal(h->queue, queue);
        return;
    }
    assert_true(e->standing == GONE || e->standing == KEPT); /* kept ones go by themselves */
    *e = (entry){.standing = WAITING, .queue = queue, .unique = (int)unique};
}

/* A hand-out comes from those that wait, or from a worker it was taken back from. */
static void book_reserve(model *m, unsigned i, unsigned w, const jobq_record *r)
{
    entry *e = &m->ledger[i];

    assert_true(e->standing == WAITING || (e->standing == HELD && r->taken_back));
    assert_string_equal(queue_names[e->queue], r->queue.p);
    m->handed_out++;
    m->taken_back += r->taken_back;
    e->standing = HELD;
    e->worker = (int)w;
    e->token = r->token;
}

/* Only the current hand-out's token is ever accepted. */
static void book_settle(model *m, unsigned i, unsigned w, const jobq_settlement *s)
{
    entry *e = &m->ledger[i];

    m->settled += s->result == 0;
    m->stale += s->result != 0;
    if (s->result != 0)
        return;
    assert_true(e->standing == HELD && e->worker == (int)w && same_token(&e->token, &s->token));
    switch (s->op) {
    case JOBQ_OP_DONE:
        e->standing = s->keep_ms > 0 ? KEPT : GONE;
        break;
    case JOBQ_OP_DEAD:
        e->standing = DEAD;
        break;
    default:
        e->standing = WAITING;
    }
}

static void check_entry(const entry *e, const jobq_record *r)
{
    static const struct {
        standing standing;
        int absent, states[2];
    } rows[] = {{GONE, true, {-1, -1}},
                {WAITING, false, {0, 1}},
                {HELD, false, {2, 0}}, /* 0: its worker's lease ran out */
                {KEPT, true, {3, 3}},
                {DEAD, false, {4, 4}}};

    if (!r)
        assert_true(rows[e->standing].absent);
    else
        assert_true((int)r->state == rows[e->standing].states[0] ||
                    (int)r->state == rows[e->standing].states[1]);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void move_push(model *m)
{
    static const int delays[] = {0, 0, PUSH_SHORT_MS, PUSH_LONG_MS};
    const unsigned n = 1 + dice(m, 3);
    unsigned which[3], unique[3], queue[3], priority[3], delay[3];
    jobq_push items[2][3];

    for (unsigned k = 0; k < n; k++) {
        which[k] = dice(m, JOBS);
        queue[k] = dice(m, QUEUES);
        unique[k] = dice(m, 2) ? 0 : 1 + dice(m, 3);
        priority[k] = dice(m, 3);
        delay[k] = (unsigned)delays[dice(m, 4)];
    }
    for (int s = 0; s < 2; s++) {
        for (unsigned k = 0; k < n; k++) {
            jobq_push *item = &items[s][k];

            *item = job_item(job_id(which[k]), queue_names[queue[k]]);
            item->priority = (uint8_t)priority[k];
            item->delay_ms = delay[k] ? delay[k] + 7 * k : 0;
            if (unique[k])
                item->unique = TEXT(unique_key(unique[k]));
        }
        assert_ok(jobq__store_push(turn(m, s, which[0] % WORKERS), items[s], n));
    }
    for (unsigned k = 0; k < n; k++) {
        book_push(m, which[k], (int)queue[k], unique[k], &items[0][k]);
        assert_int_equal(items[0][k].result, items[1][k].result);
        if (items[0][k].result == 1)
            assert_string_equal(items[0][k].holder, items[1][k].holder);
    }
}

typedef struct {
    unsigned worker;
    size_t settle_count, want, want_taken_back;
    jobq_settlement settle[2][4]; /* for the subject, for the oracle */
} talk;

/* Any token ever seen: mostly stale ones, often by another worker. At most one goes back without
 * delay, so that no two come back at the same moment. */
static void add_settlement(model *m, talk *t)
{
    const unsigned i = dice(m, JOBS), op = dice(m, 4), trace = dice(m, 2), keep = dice(m, 4);
    const size_t k = t->settle_count++;

    for (int s = 0; s < 2; s++) {
        jobq_settlement *x = &t->settle[s][k];

        *x = (jobq_settlement){.token = m->tokens[s][i],
                               .id = TEXT(job_id(i)),
                               .queue = TEXT(queue_names[m->ledger[i].queue]),
                               .op = (uint8_t)op,
                               .reason = (uint8_t)(op == JOBQ_OP_DEAD),
                               .delay_ms = k == 0 && keep < 2 ? 0 : BACK_MS + 7 * (int64_t)k,
                               .keep_ms =
                                   keep == 0 && op == JOBQ_OP_DONE ? KEEP_MS + 7 * (int64_t)k : 0,
                               .counters = m->counters[i]};
        x->counters.failures++;
        x->counters.losses = 0;
        if (trace)
            x->error = x->history = TEXT(job_id(i));
    }
}

static void compare_handouts(model *m, const talk *t, const jobq_batch *mine,
                             const jobq_batch *theirs)
{
    const jobq_record *a = mine->first, *b = theirs->first;

    for (; a && b; a = a->next, b = b->next) {
        const unsigned i = job_number(a);

        assert_string_equal(a->id.p, b->id.p);
        assert_memory_equal(&a->counters, &b->counters, sizeof(a->counters));
        assert_int_equal(a->fence, b->fence);
        assert_int_equal(a->taken_back, b->taken_back);
        assert_int_equal(a->priority, b->priority);
        book_reserve(m, i, t->worker, a);
        m->tokens[0][i] = a->token;
        m->tokens[1][i] = b->token;
        m->counters[i] = a->counters;
        m->holder[i] = (int)t->worker;
    }
    if (a || b)
        fail_msg("%s was handed out by one only", a ? "more" : (const char *)b->id.p);
}

static void run_talk(model *m, talk *t)
{
    static jobq_batch out[2];
    const unsigned first = dice(m, 2);
    jobq_slice queues[2] = {TEXT(queue_names[first]), TEXT(queue_names[1 - first])};

    for (int s = 0; s < 2; s++) {
        jobq_exchange x = {.worker = TEXT(worker_id(t->worker)),
                           .lease_ms = LEASE_MS,
                           .settle = t->settle[s],
                           .settle_count = t->settle_count,
                           .queues = queues,
                           .queue_count = t->want ? QUEUES : 0,
                           .want = t->want,
                           .want_taken_back = t->want_taken_back,
                           .out = &out[s]};

        jobq__batch_reset(&out[s]);
        assert_ok(jobq__store_exchange(turn(m, s, t->worker), &x));
        assert_true(x.settled || t->settle_count == 0);
    }
    for (size_t k = 0; k < t->settle_count; k++) {
        assert_int_equal(t->settle[0][k].result, t->settle[1][k].result);
        book_settle(m, (unsigned)atoi((const char *)t->settle[0][k].id.p + 1), t->worker,
                    &t->settle[0][k]);
    }
    compare_handouts(m, t, &out[0], &out[1]);
}

static void move_reserve(model *m)
{
    talk t = {.worker = dice(m, WORKERS), .want = 1 + dice(m, 4), .want_taken_back = dice(m, 3)};

    run_talk(m, &t);
}

static void move_settle(model *m)
{
    talk t = {.worker = dice(m, WORKERS)};
    const unsigned n = 1 + dice(m, 4);

    while (t.settle_count < n)
        add_settlement(m, &t);
    if (dice(m, 2)) { /* both in one, as a busy worker does */
        t.want = 1 + dice(m, 3);
        t.want_taken_back = dice(m, 2);
    }
    run_talk(m, &t);
}

/* The right worker with a token that is likely current: else hardly anything would ever end. */
static void move_finish(model *m)
{
    const unsigned i = dice(m, JOBS);
    talk t = {.worker = (unsigned)m->holder[i]};

    add_settlement(m, &t);
    t.settle[0][0].id = t.settle[1][0].id = TEXT(job_id(i));
    t.settle[0][0].queue = t.settle[1][0].queue = TEXT(queue_names[m->ledger[i].queue]);
    for (int s = 0; s < 2; s++) {
        t.settle[s][0].token = m->tokens[s][i];
        t.settle[s][0].counters = m->counters[i];
    }
    run_talk(m, &t);
}

static void maintain_both(model *m)
{
    jobq_maintenance r[2];

    for (int s = 0; s < 2; s++) {
        r[s] = (jobq_maintenance){.limit = 1000, .loss_cap = 3, .take_back = true};
        assert_ok(jobq__store_maintain(turn(m, s, 0), &r[s]));
    }
    assert_int_equal(r[0].handled, r[1].handled);
    assert_false(r[0].more);
}

static void move_time(model *m)
{
    const int64_t wall = (int64_t)dice(m, 5) * STEP_MS, boot = (int64_t)dice(m, 7) * STEP_MS;

    m->wall_ms += m->host_clock ? wall : boot;
    m->boot_ms += boot;
    maintain_both(m);
}

static void move_renew(model *m)
{
    const unsigned i = dice(m, JOBS), list = dice(m, 2), w = dice(m, WORKERS);
    int rc[2];
    int64_t held[2];

    for (int s = 0; s < 2; s++) {
        jobq_renewal r = {.worker = TEXT(worker_id(w)),
                          .lease_ms = LEASE_MS,
                          .running = &m->tokens[s][i],
                          .running_count = list};

        rc[s] = jobq__store_renew(turn(m, s, w), &r);
        held[s] = r.held;
    }
    assert_int_equal(rc[0], rc[1]);
    assert_int_equal(held[0], held[1]);
}

static void move_leave(model *m)
{
    const unsigned w = dice(m, WORKERS);

    for (int s = 0; s < 2; s++)
        assert_ok(jobq__store_leave(turn(m, s, w), TEXT(worker_id(w))));
}

static void move_held(model *m)
{
    static jobq_batch out[2];
    const unsigned w = dice(m, WORKERS);

    for (int s = 0; s < 2; s++) {
        jobq__batch_reset(&out[s]);
        assert_ok(jobq__store_held(turn(m, s, w), TEXT(worker_id(w)), &out[s]));
    }
    assert_int_equal(out[0].count, out[1].count);
    for (const jobq_record *r = out[0].first; r;
         r = r->next) { /* its tokens are the current ones */
        const entry *e = &m->ledger[job_number(r)];

        assert_true(e->standing == HELD && e->worker == (int)w && same_token(&e->token, &r->token));
    }
}

static void move_mend(model *m)
{
    const unsigned i = dice(m, JOBS);
    const int what = dice(m, 3) ? JOBQ_MEND_RETRY : JOBQ_MEND_FORGET;
    entry *e = &m->ledger[i];
    int rc[2];

    for (int s = 0; s < 2; s++)
        rc[s] = mend_job(turn(m, s, 0), what, job_id(i), false);
    assert_int_equal(rc[0], rc[1]);
    assert_int_equal(rc[0] == JOBQ_ENOTFOUND, e->standing != DEAD);
    m->mended += rc[0] == 0;
    if (rc[0] == 0)
        e->standing = what == JOBQ_MEND_RETRY ? WAITING : GONE;
}

static void move_list(model *m)
{
    static jobq_batch out[2];
    jobq_slice next[2];
    const uint8_t state = (uint8_t)dice(m, 5);
    const char *queue = queue_names[dice(m, QUEUES)];

    for (int s = 0; s < 2; s++) {
        jobq_listing l = {
            .queue = TEXT(queue), .state = state, .limit = 3, .out = &out[s], .keys_only = true};

        jobq__batch_reset(&out[s]);
        assert_ok(jobq__store_list(turn(m, s, 0), &l));
        next[s] = l.next;
    }
    assert_int_equal(out[0].count, out[1].count);
    assert_int_equal(next[0].p != NULL, next[1].p != NULL);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare_records(const jobq_record *a, const jobq_record *b)
{
    assert_string_equal(a->id.p, b->id.p);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->fence, b->fence);
    assert_int_equal(a->reason, b->reason);
    assert_memory_equal(&a->counters, &b->counters, sizeof(a->counters));
    assert_true(jobq__slice_equal(a->reserved_by, b->reserved_by));
    assert_true(jobq__slice_equal(a->error, b->error));
    assert_int_equal(a->history_count, b->history_count);
}

static void compare_job(model *m, unsigned i)
{
    static jobq_batch out[2];
    int rc[2];

    for (int s = 0; s < 2; s++) {
        jobq__batch_reset(&out[s]);
        rc[s] =
            jobq__store_find(turn(m, s, i % WORKERS), (jobq_slice){0}, TEXT(job_id(i)), &out[s]);
    }
    assert_int_equal(rc[0], rc[1]);
    assert_true(rc[0] == 0 || rc[0] == JOBQ_ENOTFOUND);
    if (rc[0] == 0)
        compare_records(out[0].first, out[1].first);
    check_entry(&m->ledger[i], rc[0] == 0 ? out[0].first : NULL);
}

static void compare_counts(model *m, const char *queue)
{
    jobq_counts c[2];

    for (int s = 0; s < 2; s++)
        assert_ok(jobq__store_counts(turn(m, s, 0), TEXT(queue), &c[s]));
    assert_int_equal(c[0].ready, c[1].ready);
    assert_int_equal(c[0].delayed, c[1].delayed);
    assert_int_equal(c[0].reserved, c[1].reserved);
    assert_int_equal(c[0].dead, c[1].dead);
}

/* Conservation: both know exactly the same jobs in the same states, and the ledger agrees. */
static void compare_all(model *m)
{
    for (unsigned i = 0; i < JOBS; i++)
        compare_job(m, i);
    for (int q = 0; q < QUEUES; q++)
        compare_counts(m, queue_names[q]);
    contract_check();
}

/* At the end everything is let go and worked off: as many as the ledger says are there. */
static void drain(model *m)
{
    static jobq_batch out;
    size_t expected = 0, seen = 0;
    jobq_slice queues[2] = {TEXT(queue_names[0]), TEXT(queue_names[1])};
    jobq_exchange x = {.worker = TEXT("last"),
                       .lease_ms = LEASE_MS,
                       .queues = queues,
                       .queue_count = 2,
                       .want = JOBS,
                       .want_taken_back = JOBS,
                       .out = &out};

    for (unsigned i = 0; i < JOBS; i++)
        expected += m->ledger[i].standing == WAITING || m->ledger[i].standing == HELD;
    m->wall_ms += 2 * LEASE_MS;
    m->boot_ms += 2 * LEASE_MS;
    maintain_both(m);
    assert_ok(jobq__store_exchange(turn(m, 0, 0), &x));
    for (const jobq_record *r = out.first; r; r = r->next, seen++)
        book_reserve(m, job_number(r), 0, r);
    assert_int_equal(seen, expected);
    jobq__batch_reset(&out);
}

static void begin(model *m)
{
    const char *given = getenv("JOBQUEUE_TEST_SEED"), *dsn;

    m->seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    m->host_clock = contract_has(JOBQ_FEATURE_HOST_CLOCK);
    m->due_order = contract_has(JOBQ_FEATURE_DUE_ORDER);
    m->shared = contract_has(JOBQ_FEATURE_SHARED);
    print_message("model seed %u (JOBQUEUE_TEST_SEED)\n", m->seed);
    dsn = contract_fresh_dsn();
    for (int w = 0; w < WORKERS; w++)
        m->subject[w] = w == 0 || m->shared ? contract_open(dsn) : m->subject[0];
    m->oracle = contract_open("memory:");
    if (m->host_clock)
        m->wall_ms = jobq__clock_wall_ms();
    else
        assert_ok(jobq__store_now(m->subject[0], &m->wall_ms));
    m->began_wall_ms = m->wall_ms;
    m->began_mono_us = mono_us();
    m->boot_ms = jobq__clock_boot_ms();
}

static void end(model *m)
{
    for (int w = 0; w < WORKERS; w++)
        if (w == 0 || m->shared)
            jobq__store_free(m->subject[w]);
    jobq__store_free(m->oracle);
}

void test_model(void **state)
{
    static void (*const moves[])(model *) = {move_push,    move_push,   move_push,   move_reserve,
                                             move_reserve, move_settle, move_settle, move_finish,
                                             move_finish,  move_renew,  move_mend,   move_list,
                                             move_held,    move_leave,  move_time};
    const char *given = getenv("JOBQUEUE_TEST_STEPS");
    const int steps = given ? atoi(given) : 3000;
    model m = {0};

    (void)state;
    begin(&m);
    for (int step = 0; step < steps; step++) {
        m.wall_ms += STEP_MS;
        m.boot_ms += STEP_MS;
        if (!m.due_order) /* promoted before anything else comes, due order is what comes out */
            maintain_both(&m);
        moves[dice(&m, sizeof(moves) / sizeof(moves[0]))](&m);
        if (step % 25 == 0)
            compare_all(&m);
    }
    compare_all(&m);
    drain(&m);
    print_message("%d hand-outs (%d taken back), %d settled, %d stale tokens, %d mended\n",
                  m.handed_out, m.taken_back, m.settled, m.stale, m.mended);
    assert_true(m.handed_out > steps / 10 && m.taken_back > 0 && m.settled > steps / 50 &&
                m.stale > steps / 20 && m.mended > 0);
    end(&m);
}
