/* SPDX-License-Identifier: MIT
 *
 * jobq_queue_reserve: one job for a caller that runs its own loop (rules O3, G8). Each hand-out has
 * a worker record of its own, so that losing the caller counts against exactly that job. Looking
 * costs one exchange; a job in hand two more writes: the record that lists it as running, and its
 * end.
 */
#include <stdlib.h>
#include <string.h>

#include "core/conf_table.h"
#include "core/loan.h"
#include "core/pauses.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"
#include "util/rng.h"

enum {
    LEASE_LONGEST_MS = 86400000,
    MAINTAIN_LIMIT = 1000,
    MAINTAIN_EVERY_MS = 1000,
    QUEUES_MAX = 100000
};

/* A record that holds nothing and lives for at least half a lease more. */
static int have_spare(jobq_queue *queue, int64_t lease_ms)
{
    jobq__spare *spare = &queue->spare;
    int64_t stamp = jobq__process_stamp(), now = jobq__clock_mono_ms();
    int rc;

    if (!spare->id[0] || spare->stamp != stamp) {
        jobq__ident_worker(spare->id);
        spare->stamp = stamp;
    } else if (spare->lease_ms == lease_ms && spare->until_mono_ms - now > lease_ms / 2) {
        return 0;
    }
    rc = jobq__loan_renew(queue, spare->id, lease_ms, NULL);
    if (rc < 0 && rc != JOBQ_ELEASE) { /* lapsed: it held nothing, and a new one was begun */
        spare->id[0] = '\0';
        return rc;
    }
    spare->lease_ms = lease_ms;
    spare->until_mono_ms = now + lease_ms;
    return 0;
}

/* ---- answers that were lost (rule K2) -------------------------------------------------------- */

/* The spare record may hold a job that nobody has. It is kept alive no more, and asked for it as
 * soon as the store answers. */
static void doubt_spare(jobq_queue *queue)
{
    memcpy(queue->doubtful, queue->spare.id, sizeof(queue->doubtful));
    queue->spare.id[0] = '\0';
}

/* Gives back what the doubtful record holds: it is in nobody's hands. */
static int clear_doubt(jobq_queue *queue, int64_t lease_ms)
{
    jobq_settlement s[8];
    jobq_exchange x = {
        .worker = jobq__slice_text(queue->doubtful), .lease_ms = lease_ms, .settle = s};
    int rc;

    if (!queue->doubtful[0])
        return 0;
    jobq__batch_reset(&queue->batch);
    rc = jobq__store_held(queue->store, x.worker, &queue->batch);
    for (const jobq_record *record = queue->batch.first;
         rc == 0 && record && x.settle_count < sizeof(s) / sizeof(s[0]); record = record->next)
        s[x.settle_count++] = (jobq_settlement){.token = record->token,
                                                .id = record->id,
                                                .queue = record->queue,
                                                .op = JOBQ_OP_GIVE_BACK,
                                                .counters = record->counters};
    if (rc == 0 && x.settle_count)
        rc = jobq__store_exchange(queue->store, &x);
    if (rc < 0)
        return jobq__queue_note(queue, rc);
    queue->counters[JOBQ__COUNT_GIVEN_BACK] += (int64_t)x.settle_count;
    jobq__store_leave(queue->store, x.worker); /* only tidier: it lapses by itself */
    queue->doubtful[0] = '\0';
    return 0;
}

/* ---- maintenance ----------------------------------------------------------------------------- */

static int maintain(jobq_queue *queue)
{
    int64_t now = jobq__clock_mono_ms(), store_now, wait = MAINTAIN_EVERY_MS;
    jobq__lost_entry lost = {0};
    jobq_maintenance m = {.limit = MAINTAIN_LIMIT,
                          .loss_cap = JOBQ__LOSSES_PER_CRASH,
                          .take_back = now >= queue->take_back_from_mono_ms,
                          .lost_head = jobq__slice(lost.head, sizeof(lost.head))};
    int rc = jobq__queue_note(queue, jobq__store_now(queue->store, &store_now));

    if (rc < 0)
        return rc;
    jobq__lost_entry_make(&lost, store_now);
    m.lost_tail = jobq__slice(lost.tail, lost.tail_n);
    rc = jobq__queue_note(queue, jobq__store_maintain(queue->store, &m));
    if (rc < 0)
        return rc;
    if (m.next_due_ms && m.next_due_ms - m.now_ms < wait)
        wait = m.next_due_ms > m.now_ms ? m.next_due_ms - m.now_ms : 0;
    queue->maintain_at_mono_ms = m.more ? now : now + wait;
    return 0;
}

/* ---- taking ---------------------------------------------------------------------------------- */

typedef struct {
    jobq_queue *queue;
    jobq__loan *l;
    const jobq_slice *queues; /* that were asked for ... */
    size_t count;
    jobq_slice *open; /* ... and are not paused */
    size_t open_count;
    int64_t lease_ms, next_due_ms, now_ms, control;
} taking;

/* One job into the loan: 1, 0 none, or an error. */
static int take_next(taking *t)
{
    jobq_queue *queue = t->queue;
    jobq_exchange x = {.worker = jobq__slice_text(queue->spare.id),
                       .lease_ms = t->lease_ms,
                       .queues = t->open,
                       .queue_count = t->open_count,
                       .want = 1,
                       .want_taken_back = 1,
                       .want_bytes = 1,
                       .out = &queue->batch};
    int rc;

    jobq__batch_reset(&queue->batch);
    rc = jobq__queue_note(queue, jobq__store_exchange(queue->store, &x));
    t->next_due_ms = x.next_due_ms;
    t->now_ms = x.now_ms;
    t->control = x.control;
    if (rc < 0) { /* after trouble everybody renews before anybody takes back (rule C5) */
        queue->take_back_from_mono_ms = jobq__clock_mono_ms() + t->lease_ms;
        if (jobq__queue_is_doubtful(rc))
            doubt_spare(queue);
        return rc;
    }
    if (!queue->batch.first)
        return 0;
    t->l->cancel = queue->batch.first->cancel;
    if (queue->batch.first->fence == 1)
        jobq__tally_pushed(&queue->tally, queue->batch.first->queue,
                           queue->batch.first->enqueued_at_ms, x.now_ms);
    rc = jobq__job_fill(&t->l->job, queue->batch.first, NULL, NULL, x.now_ms);
    t->l->job.policy.dead_retention_ms = queue->conf->s.dead_retention_ms;
    if (rc < 0)
        doubt_spare(queue);
    return rc < 0 ? rc : 1;
}

/* The loan takes the spare record over and is listed in it as running. */
static int commit(taking *t)
{
    jobq__loan *l = t->l;
    int64_t now = jobq__clock_mono_ms();
    int rc;

    memcpy(l->worker, t->queue->spare.id, sizeof(l->worker));
    l->lease_ms = t->lease_ms;
    t->queue->spare.id[0] = '\0';
    rc = jobq__loan_renew(t->queue, l->worker, l->lease_ms, &l->job.token);
    l->until_mono_ms = now + l->lease_ms;
    if (rc == JOBQ_ELEASE)
        return jobq__loan_answer(&l->job, rc);
    return rc;
}

static void explain(jobq_job *job)
{
    const char *message = jobq_error_message(jobq_error_last());

    jobq_job_set_error(job, NULL, 0, message, strlen(message), NULL, 0, NULL, 0);
}

/* Rule L3: it was to end before anybody began it. */
static void turn_to_cancelled(jobq_job *job, jobq__verdict *verdict, jobq_ending *ending)
{
    const jobq__end end = {.ending = JOBQ_ENDED_STOPPED, .delay_ms = -1, .cancelled = true};

    *ending = end.ending;
    jobq__retry_judge(&job->policy, &job->counters, &end, jobq__job_store_now(job), 0, verdict);
    jobq_job_set_error(job, NULL, 0, JOBQ__CANCELLED_TEXT, strlen(JOBQ__CANCELLED_TEXT), NULL, 0,
                       NULL, 0);
}

/* May the caller have it? False: how it ends instead, and the reason when its own limits say so. */
static bool may_hand_out(jobq__loan *l, jobq__verdict *verdict, jobq_ending *ending)
{
    jobq__end end = {.delay_ms = -1};
    int reason = JOBQ__REASON_NONE, start;
    jobq_job *job = &l->job;

    *ending = JOBQ_ENDED_UNSTARTED;
    if (l->cancel) {
        turn_to_cancelled(job, verdict, ending);
        return false;
    }
    if (job->header_problem == JOBQ_EUNSUPPORTED)
        *ending = JOBQ_ENDED_UNSUPPORTED_VERSION;
    else if (job->header_problem ||
             jobq_payload_check(job->header.format, job->body.p, job->body.n) == JOBQ_EPAYLOAD)
        *ending = JOBQ_ENDED_UNDECODABLE;
    if (*ending != JOBQ_ENDED_UNSTARTED) {
        if (*ending == JOBQ_ENDED_UNDECODABLE)
            explain(job);
        end.ending = *ending;
        jobq__retry_judge(&job->policy, &job->counters, &end, jobq__job_store_now(job),
                          jobq__rng_unit(), verdict);
        return false;
    }
    start = jobq__retry_may_start(&job->policy, &job->counters, jobq__job_store_now(job), &reason);
    jobq__retry_turn_away(&job->policy, &job->counters, start, reason, verdict);
    if (start == JOBQ__START_DROP)
        jobq_job_refuse_result(job, JOBQ__DROPPED_TEXT, strlen(JOBQ__DROPPED_TEXT));
    if (reason == JOBQ__REASON_CRASHED)
        jobq_job_set_error(job, NULL, 0, JOBQ__LOST_TEXT, strlen(JOBQ__LOST_TEXT), NULL, 0, NULL,
                           0);
    return start == JOBQ__START_RUN;
}

/* Under the spare record. An error: the job is not handed out, and perhaps not settled. */
static int settle_spare(taking *t, jobq_settlement *s)
{
    jobq_exchange x = {.worker = jobq__slice_text(t->queue->spare.id),
                       .lease_ms = t->lease_ms,
                       .settle = s,
                       .settle_count = 1,
                       .out = &t->queue->batch};
    int rc = jobq__queue_note(t->queue, jobq__store_exchange(t->queue->store, &x));

    if (rc < 0)
        doubt_spare(t->queue);
    return rc < 0 ? rc : 0;
}

/* Rule B6: its key is free before anybody runs it. 1: it is, or it has none to give up; 0: somebody
 * else has the job now. */
static int free_key(taking *t)
{
    const jobq_job *job = &t->l->job;
    const jobq__verdict verdict = {.op = JOBQ_OP_FREE_KEY, .counters = job->counters};
    jobq_settlement s;
    int rc;

    if (!jobq__retry_frees_key(&job->policy, &job->counters))
        return 1;
    jobq__job_settlement(job, &verdict, &s);
    rc = settle_spare(t, &s);
    if (rc == 0 && s.result < 0 && s.result != JOBQ_ELEASE) {
        rc = jobq__loan_answer(job, s.result);
        doubt_spare(t->queue);
    }
    return rc < 0 ? rc : s.result == 0;
}

/* Settles a job that is not handed out. A refused token means that somebody else has it now. */
static int turn_away(taking *t, const jobq__verdict *verdict, jobq_ending ending)
{
    jobq__loan *l = t->l;
    jobq_settlement s;
    int rc;

    jobq__job_settlement(&l->job, verdict, &s);
    jobq__loan_record(l, t->queue->spare.id, ending, &s);
    jobq__loan_outcome(l, &s);
    if (verdict->reason == JOBQ__REASON_CANCELLED) /* nothing went wrong */
        s.error = jobq__slice(NULL, 0);
    rc = settle_spare(t, &s);
    if (rc == 0 && s.result == 0 && verdict->op == JOBQ_OP_DEAD)
        t->queue->counters[JOBQ__COUNT_DEAD]++;
    return rc;
}

/* 1: it is the caller's; 0: somebody else has it now. */
static int hand_out(taking *t)
{
    int rc = free_key(t);

    if (rc > 0 && (rc = commit(t)) == 0)
        rc = 1;
    return rc;
}

static void leave_out_paused(taking *t)
{
    t->open_count = 0;
    for (size_t i = 0; i < t->count; i++)
        if (!jobq__pauses_hold(t->queue, t->queues[i]))
            t->open[t->open_count++] = t->queues[i];
}

/* Rule L1: a caller's own loop obeys pauses as a worker does. While there is something to ask for,
 * the answers tell of changes; else we look. 1: there are queues to take from. */
static int choose_queues(taking *t)
{
    int rc = jobq__pauses_refresh(t->queue, t->control);

    leave_out_paused(t);
    if (rc == 0 && t->open_count == 0) {
        rc = jobq__pauses_refresh(t->queue, -1);
        leave_out_paused(t);
    }
    return rc < 0 ? rc : t->open_count > 0;
}

/* The answer that brought the job may tell of a pause: then it goes back as if never taken. */
static int is_paused_now(taking *t, jobq__verdict *verdict)
{
    const jobq_job *job = &t->l->job;
    const int rc = jobq__pauses_refresh(t->queue, t->control);

    if (rc < 0)
        doubt_spare(t->queue);
    if (rc < 0 || !jobq__pauses_hold(t->queue, job->queue))
        return rc;
    *verdict = (jobq__verdict){.op = JOBQ_OP_GIVE_BACK, .counters = job->counters};
    return 1;
}

/* An answer without a job may tell of a queue that is resumed: then we look there, too. */
static bool is_resumed(const taking *t)
{
    return t->open_count > 0 && t->open_count < t->count && t->control != t->queue->pauses.control;
}

/* Takes jobs until one may be handed out. */
static int take(taking *t)
{
    bool looked_again = false;

    t->control = t->queue->pauses.control;
    for (;;) {
        jobq__verdict verdict = {0};
        jobq_ending ending = JOBQ_ENDED_UNSTARTED;
        int rc = choose_queues(t), paused;

        if (rc > 0 && (rc = have_spare(t->queue, t->lease_ms)) == 0)
            rc = take_next(t);
        if (rc == 0 && !looked_again && is_resumed(t)) {
            looked_again = true;
            continue;
        }
        if (rc <= 0)
            return rc;
        paused = is_paused_now(t, &verdict);
        if (paused < 0)
            return paused;
        rc = !paused && may_hand_out(t->l, &verdict, &ending) ? hand_out(t)
                                                              : turn_away(t, &verdict, ending);
        if (rc != 0)
            return rc;
    }
}

static int reserve(taking *t)
{
    bool maintained = jobq__clock_mono_ms() >= t->queue->maintain_at_mono_ms;
    int rc = clear_doubt(t->queue, t->lease_ms);

    jobq__queue_book(t->queue);
    rc = rc == 0 && maintained ? maintain(t->queue) : rc;
    rc = rc < 0 ? rc : take(t);
    if (rc != 0 || maintained || t->next_due_ms == 0 || t->next_due_ms > t->now_ms)
        return rc;
    rc = maintain(t->queue); /* something has come due meanwhile */
    return rc < 0 ? rc : take(t);
}

/* ---- the public call ------------------------------------------------------------------------- */

static int check_lease(int64_t lease_ms)
{
    int64_t least = getenv("JOBQUEUE_TEST_SHORT_LEASE") ? 100 : 1000;

    if (lease_ms >= least && lease_ms <= LEASE_LONGEST_MS)
        return 0;
    return jobq__error_set_subject(JOBQ_EINVAL, "lease", 5,
                                   "lease must be seconds from 1 to 86400, got %lld ms",
                                   (long long)lease_ms);
}

/* The queues as slices, in the batch's arena of the loan's job. */
static int gather(taking *t, const char *const *names, size_t count)
{
    jobq_slice *slices = jobq__alloc(2 * (count ? count : 1) * sizeof(*slices));
    int rc = slices ? 0 : jobq__error_nomem();

    if (!slices)
        return rc;
    slices[0] = jobq__slice_text(jobq_queue_default(t->queue));
    for (size_t i = 0; i < count && rc == 0; i++) {
        slices[i] = jobq__slice_text(names[i]);
        rc = jobq__check_queue(slices[i].p, slices[i].n);
    }
    t->queues = slices;
    t->count = count ? count : 1;
    t->open = slices + t->count;
    return rc;
}

int jobq_queue_reserve(jobq_queue *queue, const char *const *queues, size_t count, int64_t lease_ms,
                       jobq_job **job_out)
{
    taking t = {.queue = queue, .lease_ms = lease_ms};
    int rc;

    jobq__error_clear();
    if (!queue || !job_out || (count && !queues) || count > QUEUES_MAX)
        return jobq__error_set(
            JOBQ_EINVAL, "a queue handle, at most %d names and a place for the job are needed",
            QUEUES_MAX);
    rc = check_lease(lease_ms);
    rc = rc < 0 ? rc : gather(&t, queues, count);
    t.l = rc == 0 ? jobq__loan_new(queue) : NULL;
    if (rc == 0)
        rc = t.l ? reserve(&t) : JOBQ_ENOMEM;
    jobq__free((void *)t.queues);
    if (rc <= 0 || !t.l) {
        jobq_job_free(t.l ? &t.l->job : NULL);
        if (rc == 0)
            jobq__error_clear();
        return rc;
    }
    queue->counters[JOBQ__COUNT_RECEIVED]++;
    queue->counters[JOBQ__COUNT_LAST_AGE] = t.l->job.taken_at_ms - t.l->job.enqueued_at_ms;
    jobq__error_clear();
    *job_out = &t.l->job;
    return 1;
}
