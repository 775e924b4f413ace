/* SPDX-License-Identifier: MIT
 *
 * One job in a child: from the message in its ring to the job the handler sees, and from the
 * handler's end to the result in the other ring. Also the events that come the same way.
 */
#include "worker/child.h"

#include <string.h>
#include <unistd.h>

#include "core/follow.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"

enum { FULL_LOOK_MS = 20, KEPT_MAX = 65536 };

/* ---- one job --------------------------------------------------------------------------------- */

static bool is_own_process(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    return worker->stamp == jobq__process_stamp();
}

static bool is_hook(const jobq_job *job)
{
    return jobq__queue_is_hidden(job->queue);
}

static jobq__child_seat *seat_of(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    return &worker->child->seats[job->seat];
}

static uint64_t number_of(const jobq_job *job)
{
    return seat_of(job)->number;
}

static jobq__run *run_of(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    return jobq__slot_run(worker->child->slot, job->seat);
}

/* ---- seats ----------------------------------------------------------------------------------- */

bool jobq__child_has_seat(const struct jobq__child *child, const jobq__job_message *m)
{
    return child->running == 0 ||
           (!child->alone && m->seats > 1 && child->running < child->slot->seats &&
            child->running < m->seats);
}

/* The first free one; one that runs alone always has the first. */
static uint32_t take_seat(struct jobq__child *child, const jobq__job_message *m)
{
    uint32_t i = 0;

    while (child->seats[i].number)
        i++;
    if (i >= atomic_load_explicit(&child->slot->used, memory_order_relaxed))
        atomic_store(&child->slot->used, i + 1);
    child->alone = m->seats <= 1;
    child->running++;
    return i;
}

static void leave_seat(struct jobq__child *child, jobq__child_seat *seat)
{
    seat->number = 0;
    child->running--;
    if (seat->kept.n > KEPT_MAX) /* there may be a thousand of them */
        jobq__buf_free(&seat->kept);
}

/* Room in the result ring; during an outage of the store that may take long. NULL: everything is
 * given up. */
static void *wait_for_room(const jobq_worker *worker, size_t n)
{
    jobq__slot *slot = worker->child->slot;

    for (;;) {
        uint32_t seen = atomic_load(&slot->bell);
        void *room = jobq__ring_reserve(&slot->results, jobq__slot_base(slot), n);

        if (room || atomic_load(&worker->shared.words->settled))
            return room;
        jobq__child_tell_dispatcher(worker);
        jobq__slot_sleep(slot, seen, FULL_LOOK_MS);
        if (getppid() != worker->master_pid)
            _exit(1);
    }
}

static void write_result(const jobq_worker *worker, jobq__result_message *result)
{
    struct jobq__child *child = worker->child;
    const size_t behind = result->outcome_in_area ? 0 : result->outcome_n;
    const size_t n = sizeof(*result) + result->fault_n + behind;
    char *room = wait_for_room(worker, n);

    if (!room)
        return;
    memcpy(room, result, sizeof(*result));
    if (result->fault_n)
        memcpy(room + sizeof(*result), child->fault.p, result->fault_n);
    if (behind)
        memcpy(room + sizeof(*result) + result->fault_n, child->outcome.p, behind);
    jobq__ring_publish(&child->slot->results, n);
}

static void encode_fault(struct jobq__child *child, const jobq_job *job,
                         jobq__result_message *result)
{
    if (jobq__fault_is_empty(&job->fault))
        return;
    jobq__fault_write(&child->fault, &job->fault);
    result->fault_n = (uint32_t)child->fault.n;
}

/* `running` goes first: from here on no time limit can hit finished work (rule I2). The record ends
 * after the result is in the ring; whoever finds both knows that the result counts. */
static int settle_job(jobq_job *job, jobq_ending ending, int64_t delay_ms)
{
    jobq_worker *worker = job->giver;
    struct jobq__child *child = worker->child;
    jobq__slot *slot = child->slot;
    const uint64_t number = number_of(job);
    const int64_t now_us = jobq__clock_mono_us();
    jobq__result_message result = {.handout = number,
                                   .ending = jobq__worker_ending(worker, job, ending),
                                   .delay_ms = delay_ms,
                                   .ran_us = -1,
                                   .ended_mono_ms = now_us / 1000};

    if (!is_own_process(job))
        return jobq__error_set(JOBQ_EFORKED, "job %s belongs to the process that took it", job->id);
    if (!number)
        return jobq__error_set(JOBQ_EINVAL, "job %s is settled already", job->id);
    atomic_store(&run_of(job)->number, 0);
    if (seat_of(job)->reached)
        jobq__child_leave_link(worker, seat_of(job));
    result.asked_done = atomic_load(&run_of(job)->asked_done) == number;
    if (jobq__ending_began(ending)) {
        result.ran_us = now_us - seat_of(job)->started_us;
        if (!is_hook(job))
            atomic_fetch_add(&slot->jobs_run, 1);
    }
    if (ending == JOBQ_ENDED_CLEANUP_FAILED) /* its child must be gone before it may run again */
        jobq__child_retire(worker, NULL, 0);
    jobq__child_check_wear(worker, result.ended_mono_ms);
    encode_fault(child, job, &result);
    if (job->has_outcome && ending == JOBQ_ENDED_DONE && jobq_job_is_kept(job))
        jobq__child_take_outcome(worker, job, &result);
    write_result(worker, &result);
    jobq__slot_end(slot, number);
    leave_seat(child, seat_of(job));
    jobq__child_tell_dispatcher(worker);
    return 0;
}

static bool is_job_lost(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    const uint64_t number = number_of(job);

    return number && jobq__slot_is_marked(worker->child->slot, number, JOBQ__MARK_LOST);
}

static bool is_job_cancelled(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;
    const uint64_t number = number_of(job);

    return number && jobq__slot_is_marked(worker->child->slot, number, JOBQ__MARK_CANCELLED);
}

/* In a pool the worker's lease is renewed for all: nothing to do but look (rule O1). */
static int extend_job(jobq_job *job)
{
    if (!is_own_process(job))
        return jobq__error_set(JOBQ_EFORKED, "job %s belongs to the process that took it", job->id);
    if (is_job_lost(job))
        return jobq__error_set_subject(JOBQ_ELEASE, job->id, strlen(job->id),
                                       "the lease of job %s is lost", job->id);
    return 0;
}

static int tell_progress(jobq_job *job)
{
    const int rc = extend_job(job);

    return rc < 0 ? rc : jobq__child_progress(job);
}

/* Whether the lease holds is the store's to say. */
static int reach_store(jobq_job *job, jobq__reach *r, bool for_done)
{
    (void)for_done;
    if (!is_own_process(job))
        return jobq__error_set(JOBQ_EFORKED, "job %s belongs to the process that took it", job->id);
    return jobq__child_reach(job, r);
}

/* Known to the dispatcher before the application can use it (rule O1). */
static void unreach_store(jobq_job *job, jobq__reach *r, bool for_done)
{
    if (for_done && r->result == 0)
        atomic_store(&run_of(job)->asked_done, number_of(job));
    jobq__child_unreach(job);
}

static bool is_job_stopping(const jobq_job *job)
{
    const jobq_worker *worker = job->giver;

    return atomic_load(&worker->shared.words->stop) != JOBQ__GO;
}

static int take_interrupt(jobq_job *job)
{
    jobq__run *run = run_of(job);
    const uint64_t number = number_of(job);

    if (!number || !is_own_process(job) || atomic_load(&run->number) != number ||
        atomic_load(&run->soft_stop) != number || atomic_load(&run->delivered) == number)
        return JOBQ_INTERRUPT_NONE;
    atomic_store(&run->delivered_at_ms, jobq__clock_mono_ms());
    atomic_store(&run->delivered, number);
    return (int)atomic_load(&run->soft_kind);
}

static const jobq__job_ops job_ops = {
    .settle = settle_job,
    .extend = extend_job,
    .is_lost = is_job_lost,
    .is_cancelled = is_job_cancelled,
    .is_stopping = is_job_stopping,
    .interrupted = take_interrupt,
    .progress = tell_progress,
    .reach = reach_store,
    .unreach = unreach_store,
};

/* ---- messages -------------------------------------------------------------------------------- */

/* A copy in the arena, NUL-terminated. */
static bool keep_text(jobq__arena *arena, jobq_slice from, jobq_slice *out)
{
    out->p = jobq__arena_copy(arena, from.p, from.n);
    out->n = from.n;
    return out->p != NULL;
}

/* Header and body into memory of the seat's own: others begin and end while this one runs. */
static bool keep_bytes(jobq__buf *kept, jobq_job *job)
{
    const size_t header_n = job->header_bytes.n, body_n = job->body.n;

    jobq__buf_reset(kept);
    jobq__buf_add(kept, job->header_bytes.p, header_n);
    jobq__buf_add(kept, job->body.p, body_n);
    if (kept->failed || !jobq__buf_reserve(kept, 1))
        return false;
    job->header_bytes = jobq__slice(kept->p, header_n);
    job->body = jobq__slice(kept->p + header_n, body_n);
    return true;
}

/* Body and header stay where they are, in the ring or the big area, until the next step; with
 * `kept` they are copied there. */
static bool fill_job(jobq_job *job, const jobq__job_message *m, const char **texts,
                     const char *area, jobq__buf *kept)
{
    jobq_slice id = jobq__message_text(texts, m->id_n),
               queue = jobq__message_text(texts, m->queue_n),
               name = jobq__message_text(texts, m->name_n);

    jobq__job_reset(job);
    job->header_bytes = jobq__message_text(texts, m->header_n);
    job->body = jobq__slice(m->body_in_area ? area : *texts + m->event_n + m->data_n, m->body_n);
    if (kept && !keep_bytes(kept, job))
        return false;
    if (id.n >= sizeof(job->id) || !keep_text(&job->arena, queue, &job->queue) ||
        !keep_text(&job->arena, name, &job->name))
        return false;
    memcpy(job->id, id.p, id.n);
    job->id[id.n] = '\0';
    job->counters = m->counters;
    job->fence = m->fence;
    job->enqueued_at_ms = m->enqueued_at_ms;
    job->base_at_ms = m->base_at_ms;
    job->taken_at_ms = m->taken_at_ms;
    job->taken_mono_ms = m->taken_mono_ms;
    job->token = m->token;
    job->version = m->version;
    job->priority = m->priority;
    job->policy = m->policy;
    job->header_problem = jobq__envelope_read(job->header_bytes, &job->arena, &job->header);
    return job->header_problem != JOBQ_ENOMEM;
}

void jobq__child_release_message(struct jobq__child *child)
{
    if (!child->has_message)
        return;
    child->has_message = false;
    if (child->message_has_area)
        jobq__slot_return_area(child->slot, child->area);
    jobq__ring_release(&child->slot->jobs, child->cursor);
}

static int fail_memory(jobq_worker *worker)
{
    static const char text[] = "out of memory while taking a job";

    jobq__child_retire(worker, text, sizeof(text) - 1);
    return jobq__error_nomem();
}

enum { ARMED_US = 5000, PRESSED_BYTES = 1024 };

/* Two system calls, so not for each of many short jobs while more of them wait behind it. */
static void rearm(struct jobq__child *child, int64_t now_us)
{
    if (now_us - child->armed_us < ARMED_US &&
        atomic_load(&child->slot->jobs.head) - child->cursor > PRESSED_BYTES)
        return;
    child->armed_us = now_us;
    jobq__signals_rearm();
}

static jobq_job *job_of_seat(jobq_worker *worker, uint32_t i)
{
    jobq__child_seat *seat = &worker->child->seats[i];

    if (!seat->job)
        seat->job = i == 0 ? &worker->job : jobq__zalloc(sizeof(*seat->job));
    return seat->job;
}

static bool fill_seat(jobq_worker *worker, const jobq__job_message *m, uint32_t i, int64_t now_ms)
{
    struct jobq__child *child = worker->child;
    const char *texts = (const char *)(m + 1);
    jobq_job *job = job_of_seat(worker, i);

    if (!job || !fill_job(job, m, &texts, child->area, m->seats > 1 ? &child->seats[i].kept : NULL))
        return false;
    job->ops = &job_ops;
    job->giver = worker;
    job->seat = i;
    job->max_result = worker->queue->conf->s.max_payload;
    job->started_mono_ms = now_ms;
    if (m->seats > 1)
        jobq__child_release_message(child);
    return true;
}

int jobq__child_open_job(jobq_worker *worker, const jobq__job_message *m, jobq_job **job_out)
{
    struct jobq__child *child = worker->child;
    const uint32_t i = take_seat(child, m);
    jobq__run *run = jobq__slot_run(child->slot, i);
    const int64_t now_us = jobq__clock_mono_us(), now_ms = now_us / 1000;
    const int64_t timeout_ms = m->policy.timeout_ms;
    const uint64_t number = m->handout;

    jobq__loop_begun(worker);
    child->seats[i].number = number;
    child->seats[i].started_us = now_us;
    atomic_store(&run->since_ms, now_ms);
    atomic_store(&run->deadline_ms, timeout_ms ? now_ms + timeout_ms : 0);
    atomic_store(&run->grace_ms, m->policy.timeout_grace_ms);
    rearm(child, now_us);
    jobq__child_foresee(worker);
    if (!fill_seat(worker, m, i, now_ms)) /* m may be the dispatcher's again from here on */
        return fail_memory(worker);
    atomic_store(&run->number, number);
    if (timeout_ms)
        jobq__child_tell_master(worker);
    *job_out = child->seats[i].job;
    return is_hook(*job_out) ? jobq__hook_open(worker) : JOBQ_STEP_JOB;
}

int jobq__child_open_event(jobq_worker *worker, const jobq__job_message *m, jobq_event **event_out)
{
    struct jobq__child *child = worker->child;
    const char *texts = (const char *)(m + 1);

    child->event.job = NULL;
    if (!fill_job(&child->event_job, m, &texts, child->area, NULL))
        return fail_memory(worker);
    if (!jobq__event_read(&child->event, texts, m->event_n, texts + m->event_n, m->data_n))
        return 0;
    child->event.queue = jobq__follow_queue(child->event_job.queue);
    if (m->id_n)
        child->event.job = &child->event_job;
    *event_out = &child->event;
    return JOBQ_STEP_EVENT;
}
