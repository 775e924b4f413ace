/* SPDX-License-Identifier: MIT
 *
 * Hand-outs: from a record of the store to a ticket on the desk, and from how it ended to a
 * settlement and to what people see of it. What becomes of a job is core/retry.c's decision alone.
 */
#include <string.h>

#include "util/rng.h"
#include "worker/desk.h"

/* ---- accept ---------------------------------------------------------------------------------- */

static void copy_texts(jobq__handout *handout, const jobq_record *record)
{
    size_t id_n = record->id.n < sizeof(handout->id) ? record->id.n : sizeof(handout->id) - 1;

    handout->queue_n =
        (uint16_t)(record->queue.n < sizeof(handout->queue) ? record->queue.n
                                                            : sizeof(handout->queue) - 1);
    handout->name_n =
        (uint16_t)(record->name.n < sizeof(handout->name) ? record->name.n
                                                          : sizeof(handout->name) - 1);
    memcpy(handout->id, record->id.p, id_n);
    handout->id[id_n] = '\0';
    memcpy(handout->queue, record->queue.p, handout->queue_n);
    handout->queue[handout->queue_n] = '\0';
    memcpy(handout->name, record->name.p, handout->name_n);
    handout->name[handout->name_n] = '\0';
}

static void copy_numbers(jobq__desk *desk, jobq__handout *handout, const jobq_record *record)
{
    handout->token = record->token;
    handout->counters = record->counters;
    handout->fence = record->fence;
    handout->enqueued_at_ms = record->enqueued_at_ms;
    handout->base_at_ms = record->base_at_ms;
    handout->version = record->version;
    handout->hook = jobq__queue_is_hidden(record->queue);
    handout->priority = record->priority;
    handout->taken_at_ms = jobq__desk_store_now(desk);
    handout->taken_mono_ms = desk->now_ms;
    handout->number = 0;
    handout->slot = 0;
}

static jobq_slice name_of(const jobq__handout *handout)
{
    return jobq__slice(handout->name, handout->name_n);
}

/* A handler of that name in another version: the version is what is missing. */
static jobq_ending what_is_missing(const jobq__desk *desk, const jobq__handout *handout)
{
    const jobq_worker *worker = desk->worker;

    for (size_t i = 0; i < worker->handler_count; i++)
        if (jobq__slice_equal(jobq__slice(worker->handlers[i].name, worker->handlers[i].name_n),
                              name_of(handout)))
            return JOBQ_ENDED_UNSUPPORTED_VERSION;
    return JOBQ_ENDED_UNKNOWN_NAME;
}

/* Rule A9: a job of a newer library waits for a newer worker, however long that takes. */
static void park_newer(jobq__desk *desk, jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;

    ticket->handout->policy.unknown_for_ms = -1;
    if (jobq__desk_say(desk, "newer", name_of(handout)))
        jobq__observer_error(desk->observer,
                             "job %s (\"%s\") was written by a newer version of the library; it "
                             "waits for a newer worker",
                             handout->id, handout->name);
    jobq__handout_fault(ticket, "the job was written by a newer version of the library");
    jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSUPPORTED_VERSION);
}

/* Those who wait for a result are told why there is none. */
static void refuse_outcome(jobq__desk *desk, jobq__ticket *ticket, const char *text)
{
    const jobq__outcome outcome = {.refusal = jobq__slice_text(text)};

    jobq__outcome_write(&desk->buf, &outcome);
    jobq__told_keep(desk, ticket, &desk->buf);
}

static void bury_at_start(jobq__desk *desk, jobq__ticket *ticket, int how, int reason)
{
    jobq__retry_turn_away(&ticket->handout->policy, &ticket->handout->counters, how, reason,
                          &ticket->verdict);
    ticket->judged = true;
    if (how == JOBQ__START_DROP && ticket->verdict.keep_ms > 0 && !ticket->verdict.keep_bare)
        refuse_outcome(desk, ticket, JOBQ__DROPPED_TEXT);
    if (reason == JOBQ__REASON_CRASHED)
        jobq__handout_fault(ticket, JOBQ__LOST_TEXT);
    jobq__handout_end(desk, ticket, JOBQ_ENDED_UNSTARTED);
}

/* Does it come to a handler at all? Ends the ticket where not. */
static void judge_start(jobq__desk *desk, jobq__ticket *ticket, int header_problem)
{
    jobq__handout *handout = ticket->handout;
    int reason = 0, how = jobq__retry_may_start(&handout->policy, &handout->counters,
                                                handout->taken_at_ms, &reason);

    if (ticket->record->cancel) {
        jobq__control_cancel(desk, ticket, ticket->record->cancel);
    } else if (header_problem == JOBQ_EUNSUPPORTED) {
        park_newer(desk, ticket);
    } else if (header_problem != 0) {
        jobq__handout_fault(ticket, jobq_error_message(jobq_error_last()));
        jobq__handout_end(desk, ticket, JOBQ_ENDED_UNDECODABLE);
    } else if (how != JOBQ__START_RUN) {
        bury_at_start(desk, ticket, how, reason);
    } else if (handout->handler < 0 && !desk->worker->has_resolver) {
        jobq__handout_end(desk, ticket, what_is_missing(desk, handout));
    } else if (!jobq__hooks_are_run(desk, handout)) {
        jobq__handout_end(desk, ticket, JOBQ_ENDED_DONE);
    }
}

static void hold(jobq__desk *desk, jobq__ticket *ticket)
{
    ticket->phase = JOBQ__TICKET_HELD;
    ticket->held_since_ms = desk->now_ms;
    desk->hooks += ticket->handout->hook;
    desk->s.hooks_open += ticket->handout->hook;
    if (ticket->handout->hook) /* few, and asked for one by one */
        jobq__tickets_prepend(&desk->held, ticket);
    else
        jobq__tickets_append(&desk->held, ticket);
    atomic_store(&ticket->handout->state, JOBQ__HANDOUT_HELD);
}

static void count_received(jobq__desk *desk, const jobq__handout *handout)
{
    if (handout->hook)
        return;
    jobq__desk_count(desk, JOBQ__COUNT_RECEIVED, 1);
    atomic_store_explicit(&desk->words->counters[JOBQ__COUNT_LAST_AGE],
                          handout->taken_at_ms - handout->enqueued_at_ms, memory_order_relaxed);
    if (handout->fence == 1) /* a replayed one was counted long ago */
        jobq__tally_pushed(desk->tally, jobq__slice(handout->queue, handout->queue_n),
                           handout->enqueued_at_ms, handout->taken_at_ms);
}

static uint8_t how_delicate(const jobq__handout *handout, bool taken_back)
{
    uint8_t delicate = 0;

    if (taken_back || jobq__retry_is_delicate(&handout->policy, &handout->counters))
        delicate = JOBQ__DELICATE_BLAME;
    if (delicate && (taken_back || handout->counters.losses || handout->counters.crashes))
        delicate |= JOBQ__DELICATE_ALONE;
    if (jobq__retry_frees_key(&handout->policy, &handout->counters))
        delicate |= JOBQ__DELICATE_KEY;
    return delicate;
}

/* NULL: no ticket left (the desk never asks for more than it has). */
jobq__ticket *jobq__handout_accept(jobq__desk *desk, const jobq_record *record,
                                   jobq__parcel *parcel)
{
    jobq__ticket *ticket = jobq__desk_take(desk);
    jobq__header header = {0};
    jobq__handout *handout;
    const jobq_conf *conf;
    int problem;

    if (!ticket)
        return NULL;
    handout = ticket->handout;
    ticket->record = record;
    ticket->parcel = parcel;
    parcel->jobs++;
    copy_texts(handout, record);
    copy_numbers(desk, handout, record);
    problem = jobq__envelope_read(record->header, &parcel->batch.arena, &header);
    handout->handler =
        jobq__worker_find_for(desk->worker, record->queue, record->name, record->version);
    conf = jobq__worker_handler_conf(desk->worker, handout->handler);
    jobq__policy_make(&handout->policy, desk->worker->run_conf, conf, problem ? NULL : &header,
                      record->base_at_ms);
    handout->seats = handout->hook ? 1 : jobq__handler_seats(conf);
    if (handout->hook)
        jobq__hooks_limit(&handout->policy);
    handout->delicate = how_delicate(handout, record->taken_back);
    hold(desk, ticket);
    count_received(desk, handout);
    judge_start(desk, ticket, problem);
    return ticket;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* Without memory there is none. */
void jobq__handout_keep_fault(jobq__ticket *ticket, const jobq__fault *fault)
{
    jobq__buf buf = {0};

    jobq__fault_write(&buf, fault);
    jobq__free(ticket->own_fault);
    ticket->own_fault = buf.p;
    ticket->fault = jobq__slice(buf.p, buf.p ? buf.n : 0);
}

void jobq__handout_fault(jobq__ticket *ticket, const char *message)
{
    const jobq__fault fault = {.message = jobq__slice_text(message)};

    jobq__handout_keep_fault(ticket, &fault);
}

void jobq__handout_judge(jobq__desk *desk, jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;
    jobq__end end = {.ending = ticket->ending,
                     .delay_ms = ticket->delay_ms,
                     .cancelled = ticket->cancel != JOBQ_CANCEL_NONE};

    if (ticket->judged)
        return;
    if (ticket->ending == JOBQ_ENDED_UNKNOWN_NAME ||
        ticket->ending == JOBQ_ENDED_UNSUPPORTED_VERSION)
        end.name_is_announced = jobq__desk_is_announced(desk, handout);
    jobq__retry_judge(&handout->policy, &handout->counters, &end, jobq__desk_store_now(desk),
                      ticket->ending == JOBQ_ENDED_DONE ? 0 : jobq__rng_unit(), &ticket->verdict);
    ticket->judged = true;
}

static jobq_slice keep(jobq__desk *desk)
{
    const void *p =
        desk->buf.failed ? NULL : jobq__arena_copy(&desk->arena, desk->buf.p, desk->buf.n);

    return jobq__slice(p, p ? desk->buf.n : 0);
}

/* Endings that leave no trace: what is gone, and what never began. */
static bool leaves_trace(const jobq__ticket *ticket)
{
    if (ticket->ending == JOBQ_ENDED_DONE)
        return ticket->verdict.keep_ms > 0 && !ticket->verdict.keep_bare;
    if (ticket->verdict.op == JOBQ_OP_DEAD)
        return ticket->ending != JOBQ_ENDED_UNSTARTED;
    return ticket->ending != JOBQ_ENDED_UNSTARTED && ticket->ending != JOBQ_ENDED_UNKNOWN_NAME &&
           ticket->ending != JOBQ_ENDED_UNSUPPORTED_VERSION;
}

static jobq_slice write_entry(jobq__desk *desk, const jobq__ticket *ticket,
                              const jobq__fault *fault)
{
    const jobq__handout *handout = ticket->handout;
    int64_t ended = handout->taken_at_ms + (ticket->ended_mono_ms - handout->taken_mono_ms);
    jobq__entry entry = {.ended_at_ms = ended, .worker = desk->id};

    entry.started_at_ms = ticket->ran_us < 0 ? ended : ended - ticket->ran_us / 1000;
    entry.outcome = jobq__slice_text(jobq_outcome_word(ticket->ending));
    entry.shared = ticket->shared;
    entry.class_name = fault->class_name;
    entry.message = desk->settings->errors == 1 ? jobq__slice(NULL, 0) : fault->message;
    if (ticket->verdict.reason == JOBQ__REASON_CANCELLED && ticket->ran_us < 0)
        entry.message = jobq__slice_text(JOBQ__CANCELLED_TEXT);
    jobq__entry_write(&desk->buf, &entry);
    return keep(desk);
}

static jobq_slice write_error(jobq__desk *desk, const jobq__ticket *ticket,
                              const jobq__fault *fault)
{
    jobq__fault only = {.class_name = fault->class_name};

    if (desk->settings->errors != 1)
        return ticket->fault;
    jobq__fault_write(&desk->buf, &only);
    return keep(desk);
}

/* The fault as texts, in the exchange's arena; empty when there is none. */
static jobq__fault read_fault(jobq__desk *desk, const jobq__ticket *ticket)
{
    jobq__fault fault = {0};

    if (ticket->fault.n > 0 && !jobq__fault_read(ticket->fault, &desk->arena, &fault))
        fault = (jobq__fault){0};
    return fault;
}

/* A death needs words even where the handler had none. */
static void word_unknown(jobq__ticket *ticket)
{
    if (ticket->fault.n > 0 || ticket->verdict.op != JOBQ_OP_DEAD)
        return;
    if (ticket->ending == JOBQ_ENDED_UNKNOWN_NAME)
        jobq__handout_fault(ticket, "no handler of that name was found in time");
    else if (ticket->ending == JOBQ_ENDED_UNSUPPORTED_VERSION)
        jobq__handout_fault(ticket, "no handler of that version was found in time");
}

/* What stands in place of a result that the store did not take. */
static jobq_slice refused_outcome(jobq__desk *desk)
{
    const jobq__outcome outcome = {.refusal =
                                       jobq__slice_text("the store refused the result's value")};

    jobq__outcome_write(&desk->buf, &outcome);
    return keep(desk);
}

/* The texts of `out` lie in the desk's arena until the exchange is over. */
void jobq__handout_settlement(jobq__desk *desk, jobq__ticket *ticket, jobq_settlement *out)
{
    const jobq__handout *handout = ticket->handout;
    jobq__fault fault;

    jobq__handout_judge(desk, ticket);
    jobq__hooks_judged(ticket);
    *out = (jobq_settlement){
        .token = handout->token, .op = ticket->verdict.op, .reason = ticket->verdict.reason};
    out->id = jobq__slice(handout->id, strlen(handout->id));
    out->queue = jobq__slice(handout->queue, handout->queue_n);
    out->delay_ms = ticket->verdict.delay_ms;
    out->keep_ms = ticket->verdict.keep_ms;
    out->keep_bare = ticket->verdict.keep_bare;
    out->counters = ticket->verdict.counters;
    if (out->op == JOBQ_OP_DONE && out->keep_ms > 0 && !out->keep_bare && ticket->outcome.n > 0)
        out->outcome = ticket->bare ? refused_outcome(desk) : ticket->outcome;
    if (out->op == JOBQ_OP_DEAD && ticket->unsaid && !ticket->bare)
        out->outcome = jobq__slice(ticket->said.p, ticket->said.n);
    word_unknown(ticket);
    fault = read_fault(desk, ticket);
    out->follow = jobq__hooks_follow(desk, ticket, &fault);
    if (ticket->bare || (handout->hook && out->op == JOBQ_OP_DONE))
        return;
    if (leaves_trace(ticket))
        out->history = write_entry(desk, ticket, &fault);
    else if (ticket->verdict.op != JOBQ_OP_DEAD)
        return;
    if (ticket->fault.n > 0)
        out->error = write_error(desk, ticket, &fault);
}

/* ---- after the store has answered ------------------------------------------------------------ */

/* Which counters an ending raises (rule N2); -1 = none. */
static const int counter_of[JOBQ_ENDINGS] = {
    [JOBQ_ENDED_DONE] = JOBQ__COUNT_DONE,
    [JOBQ_ENDED_FAILED] = JOBQ__COUNT_FAILED,
    [JOBQ_ENDED_EXITED] = JOBQ__COUNT_FAILED,
    [JOBQ_ENDED_TIMED_OUT] = JOBQ__COUNT_TIMED_OUT,
    [JOBQ_ENDED_CRASHED] = JOBQ__COUNT_CRASHED,
    [JOBQ_ENDED_LEASE_LOST] = -1,
    [JOBQ_ENDED_RELEASED] = JOBQ__COUNT_RELEASED,
    [JOBQ_ENDED_CLEANUP_FAILED] = JOBQ__COUNT_CLEANUP_FAILED,
    [JOBQ_ENDED_STOPPED] = -1, /* the master counts what `drain` ended */
    [JOBQ_ENDED_FAILED_BY_HANDLER] = JOBQ__COUNT_FAILED,
    [JOBQ_ENDED_NOT_RETRYABLE] = JOBQ__COUNT_FAILED,
    [JOBQ_ENDED_UNDECODABLE] = JOBQ__COUNT_FAILED,
    [JOBQ_ENDED_UNKNOWN_NAME] = -1,
    [JOBQ_ENDED_UNSUPPORTED_VERSION] = -1,
    [JOBQ_ENDED_UNSTARTED] = -1,
};

static bool is_failure(jobq_ending ending)
{
    return ending <= JOBQ_ENDED_CRASHED ? ending != JOBQ_ENDED_DONE
                                        : ending == JOBQ_ENDED_CLEANUP_FAILED;
}

static void count(jobq__desk *desk, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;
    int which = counter_of[ticket->ending];

    jobq__tally_ended(desk->tally, jobq__slice(handout->queue, handout->queue_n),
                      jobq__desk_store_now(desk), ticket->ending, &ticket->verdict, ticket->ran_us);
    if (which >= 0)
        jobq__desk_count(desk, which, 1);
    if (ticket->verdict.op == JOBQ_OP_DEAD)
        jobq__desk_count(desk, JOBQ__COUNT_DEAD, 1);
    else if (ticket->verdict.op == JOBQ_OP_GIVE_BACK)
        jobq__desk_count(desk, JOBQ__COUNT_GIVEN_BACK, 1);
    else if (ticket->verdict.op == JOBQ_OP_BACK && is_failure(ticket->ending))
        jobq__desk_count(desk, JOBQ__COUNT_RETRIED, 1);
}

static void post_events(jobq__desk *desk, const jobq__ticket *ticket, int64_t took_ms,
                        const jobq__fault *fault)
{
    if (ticket->status != 0) {
        jobq__posts_add(desk, "job.lease_lost", ticket, took_ms, fault);
        return;
    }
    if (ticket->ending == JOBQ_ENDED_TIMED_OUT)
        jobq__posts_add(desk, "job.timed_out", ticket, took_ms, fault);
    else if (ticket->ending == JOBQ_ENDED_CRASHED)
        jobq__posts_add(desk, "job.crashed", ticket, took_ms, fault);
    if (ticket->verdict.op == JOBQ_OP_BACK && is_failure(ticket->ending))
        jobq__posts_add(desk, "job.retrying", ticket, took_ms, fault);
}

static void say_parked(jobq__desk *desk, const jobq__ticket *ticket)
{
    const jobq__handout *handout = ticket->handout;
    bool version = ticket->ending == JOBQ_ENDED_UNSUPPORTED_VERSION;

    if (ticket->verdict.op != JOBQ_OP_BACK || ticket->fault.n > 0 ||
        !jobq__desk_say(desk, version ? "version" : "unknown", name_of(handout)))
        return;
    jobq__observer_error(
        desk->observer,
        "no handler here for \"%s\" version %d (job %s); put aside, next look in %lld s",
        handout->name, (int)handout->version, handout->id,
        (long long)((ticket->verdict.delay_ms + 999) / 1000));
}

static void show(jobq__desk *desk, const jobq__ticket *ticket)
{
    int64_t took_ms = ticket->ran_us < 0 ? -1 : ticket->ran_us / 1000;
    bool parked = ticket->ending == JOBQ_ENDED_UNKNOWN_NAME ||
                  ticket->ending == JOBQ_ENDED_UNSUPPORTED_VERSION;
    jobq__fault fault = read_fault(desk, ticket);

    if (parked && ticket->status == 0)
        say_parked(desk, ticket);
    if (!parked || ticket->verdict.op == JOBQ_OP_DEAD)
        jobq__observer_ended(desk->observer, ticket->handout, ticket->ending, &ticket->verdict,
                             took_ms, ticket->fault.n > 0 ? &fault : NULL, ticket->status);
    post_events(desk, ticket, took_ms, &fault);
}

/* The store has refused a value even without the error's text: nothing more can be done for the
 * ticket. */
static bool try_bare(jobq__ticket *ticket)
{
    if (ticket->status != JOBQ_EINVAL || ticket->bare)
        return false;
    ticket->bare = true;
    return true;
}

/* Given back before it began: nobody needs to hear of it, nor of a refusal. */
static bool is_silent(const jobq__ticket *ticket)
{
    return ticket->ending == JOBQ_ENDED_UNSTARTED && ticket->verdict.op != JOBQ_OP_DEAD;
}

static void note_answer(jobq__desk *desk, const jobq__ticket *ticket)
{
    if (ticket->status == 0)
        count(desk, ticket);
    else if (is_silent(ticket) || ticket->status == JOBQ_EUNKNOWN)
        return;
    else if (ticket->status == JOBQ_ELEASE)
        jobq__desk_count(desk, JOBQ__COUNT_LEASE_REJECTED, 1);
    else
        jobq__desk_count(desk, JOBQ__COUNT_RESULTS_LOST, 1);
}

static void tell_end(jobq__desk *desk, const jobq__ticket *ticket)
{
    note_answer(desk, ticket);
    if (!is_silent(ticket))
        show(desk, ticket);
    jobq__hooks_died(desk, ticket);
}

/* The application ended it in a transaction of its own (rule O1); whatever its handler did after
 * that. */
static void turn_to_done(jobq__desk *desk, jobq__ticket *ticket)
{
    if (ticket->ending != JOBQ_ENDED_DONE)
        jobq__observer_error(desk->observer,
                             "job %s (\"%s\") was ended as done by its own statement; that its "
                             "attempt ended as %s changes nothing",
                             ticket->handout->id, ticket->handout->name,
                             jobq_outcome_word(ticket->ending));
    ticket->status = 0;
    ticket->ending = JOBQ_ENDED_DONE;
    ticket->fault = jobq__slice(NULL, 0);
    ticket->verdict = (jobq__verdict){.op = JOBQ_OP_DONE, .counters = ticket->handout->counters};
}

void jobq__handout_answered(jobq__desk *desk, jobq__ticket *ticket)
{
    if (try_bare(ticket))
        return;
    if (jobq__told_is_done(ticket))
        turn_to_done(desk, ticket);
    if (ticket->status == JOBQ_ELEASE && ticket->tried)
        ticket->status = JOBQ_EUNKNOWN;
    if (ticket->handout->hook)
        jobq__hooks_answered(desk, ticket);
    else
        tell_end(desk, ticket);
    jobq__desk_drop(desk, ticket);
}
