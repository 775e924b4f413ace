/* SPDX-License-Identifier: MIT
 *
 * See scripted.h.
 */
#include "harness/scripted.h"

#include <string.h>

#include "driver/store.h"
#include "harness/harness.h"
#include "util/error.h"

typedef struct {
    int left; /* calls until it happens, 0 = never */
    scripted_moment moment;
    int code;
} accident;

static const jobq_driver *real;
static jobq_driver scripted;
static accident accidents[SCRIPTED_CALLS], following[SCRIPTED_CALLS];
static int counts[SCRIPTED_CALLS], away;
static bool took_back;

static int break_down(int code)
{
    return jobq__error_set_driver(code, JOBQ__RETRYABLE, "scripted", 0, "scripted: away (%d)",
                                  code);
}

/* What happens to this call. */
static accident next(scripted_call call)
{
    accident now = {0};
    accident *a = &accidents[call];

    counts[call]++;
    if (away)
        return (accident){1, SCRIPTED_BEFORE, away};
    if (a->left > 0 && --a->left == 0) {
        now = *a;
        *a = following[call];
        following[call] = (accident){0};
    }
    return now;
}

static int end(const accident *a, int rc)
{
    return a->moment == SCRIPTED_AFTER && rc == 0 ? break_down(a->code) : rc;
}

static int push(void *store, jobq_push *items, size_t n)
{
    const accident a = next(SCRIPTED_PUSH);

    return a.moment == SCRIPTED_BEFORE ? break_down(a.code) : end(&a, real->push(store, items, n));
}

static int settle_some(void *store, jobq_exchange *x, size_t n)
{
    jobq_exchange part = *x;

    part.settle_count = n;
    part.queue_count = 0;
    part.want = 0;
    return real->exchange(store, &part);
}

/* The answer to a reservation is lost with the jobs in it. */
static int exchange_unheard(void *store, jobq_exchange *x, int code)
{
    jobq_exchange done = *x;
    jobq_batch lost = {0};
    int rc;

    done.out = &lost;
    rc = real->exchange(store, &done);
    jobq__batch_free(&lost);
    return rc < 0 ? rc : break_down(code);
}

static int exchange(void *store, jobq_exchange *x)
{
    const accident a = next(SCRIPTED_EXCHANGE);

    switch (a.moment) {
    case SCRIPTED_BEFORE:
        return break_down(a.code);
    case SCRIPTED_AFTER:
        return exchange_unheard(store, x, a.code);
    case SCRIPTED_HALFWAY:
        assert_true(settle_some(store, x, 1) == 0);
        return break_down(a.code);
    case SCRIPTED_SETTLED:
        assert_true(settle_some(store, x, x->settle_count) == 0);
        x->settled = true;
        return break_down(a.code);
    case SCRIPTED_REFUSED:
        return break_down(JOBQ_EINVAL);
    default:
        return real->exchange(store, x);
    }
}

static int renew(void *store, jobq_renewal *r)
{
    const accident a = next(SCRIPTED_RENEW);

    return a.moment == SCRIPTED_BEFORE ? break_down(a.code) : end(&a, real->renew(store, r));
}

static int held(void *store, jobq_slice worker, jobq_batch *out)
{
    const accident a = next(SCRIPTED_HELD);

    return a.moment == SCRIPTED_BEFORE ? break_down(a.code)
                                       : end(&a, real->held(store, worker, out));
}

static int wait_for(void *store, const jobq_wait *w)
{
    const accident a = next(SCRIPTED_WAIT);

    return a.moment == SCRIPTED_BEFORE ? break_down(a.code) : end(&a, real->wait(store, w));
}

static int maintain(void *store, jobq_maintenance *m)
{
    const accident a = next(SCRIPTED_MAINTAIN);

    took_back = m->take_back;
    return a.moment == SCRIPTED_BEFORE ? break_down(a.code) : end(&a, real->maintain(store, m));
}

static int book(void *store, const jobq_minute *minutes, size_t n)
{
    const accident a = next(SCRIPTED_BOOK);

    return a.moment == SCRIPTED_BEFORE ? break_down(a.code)
                                       : end(&a, real->book(store, minutes, n));
}

static int capacity(void *store, jobq_limit *l)
{
    const accident a = next(SCRIPTED_CAPACITY);

    return a.moment == SCRIPTED_BEFORE ? break_down(a.code) : end(&a, real->capacity(store, l));
}

void scripted_make(jobq_queue *queue)
{
    real = jobq__store_driver(queue->store);
    scripted = *real;
    scripted.push = push;
    scripted.exchange = exchange;
    scripted.renew = renew;
    scripted.held = held;
    scripted.wait = wait_for;
    scripted.maintain = maintain;
    scripted.book = book;
    scripted.capacity = capacity;
    memset(accidents, 0, sizeof(accidents));
    memset(following, 0, sizeof(following));
    memset(counts, 0, sizeof(counts));
    away = 0;
    queue->store->driver = &scripted;
}

void scripted_fail(scripted_call call, int after, scripted_moment moment, int code)
{
    accidents[call] = (accident){after, moment, code};
}

void scripted_then(scripted_call call, int after, scripted_moment moment, int code)
{
    following[call] = (accident){after, moment, code};
}

void scripted_away(int code)
{
    away = code;
}

int scripted_count(scripted_call call)
{
    return counts[call];
}

bool scripted_took_back(void)
{
    return took_back;
}
