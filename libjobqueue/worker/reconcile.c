/* SPDX-License-Identifier: MIT
 *
 * After an outcome that is not known (rule K2): what does the store think we hold? Hand-outs that
 * never arrived go back, results that were settled after all are unknown, the rest goes on.
 */
#include "worker/desk.h"

jobq__ticket *jobq__desk_find(jobq__desk *desk, jobq_lease_token token)
{
    for (size_t i = 0; i < desk->ticket_count; i++)
        if (desk->tickets[i].phase != JOBQ__TICKET_FREE &&
            jobq__token_equal(desk->tickets[i].handout->token, token))
            return &desk->tickets[i];
    return NULL;
}

static bool is_listed(const jobq_batch *batch, jobq_lease_token token)
{
    for (const jobq_record *record = batch->first; record; record = record->next)
        if (jobq__token_equal(record->token, token))
            return true;
    return false;
}

/* Hand-outs that never arrived here: as if never taken. 1: there are more of them. */
static int give_back_strangers(jobq__desk *desk)
{
    jobq_exchange x = {
        .worker = desk->id, .lease_ms = desk->settings->lease_ms, .settle = desk->settlements};
    int rc;

    for (const jobq_record *record = desk->scratch.first;
         record && x.settle_count < desk->settle_max; record = record->next) {
        if (jobq__desk_find(desk, record->token))
            continue;
        desk->settlements[x.settle_count++] = (jobq_settlement){.token = record->token,
                                                                .id = record->id,
                                                                .queue = record->queue,
                                                                .op = JOBQ_OP_GIVE_BACK,
                                                                .counters = record->counters};
    }
    if (x.settle_count == 0)
        return 0;
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    rc = jobq__store_exchange(desk->store, &x);
    if (rc < 0)
        return jobq__desk_fail(desk, rc);
    desk->s.woken = desk->s.hooks_look = true;
    jobq__desk_count(desk, JOBQ__COUNT_GIVEN_BACK, (int64_t)x.settle_count);
    return x.settle_count == desk->settle_max;
}

static void forget_missing(jobq__desk *desk)
{
    for (size_t i = 0; i < desk->ticket_count; i++) {
        jobq__ticket *ticket = &desk->tickets[i];

        if (ticket->phase == JOBQ__TICKET_FREE || ticket->lost ||
            is_listed(&desk->scratch, ticket->handout->token))
            continue;
        if (ticket->phase != JOBQ__TICKET_ENDED) {
            if (!jobq__told_asked_done(desk, ticket)) /* else its own statement was carried out */
                jobq__desk_lose(desk, ticket);
        } else if (ticket->tried) {
            jobq__arena_reset(&desk->arena);
            ticket->status = JOBQ_EUNKNOWN;
            jobq__handout_answered(desk, ticket);
        }
    }
}

void jobq__desk_reconcile(jobq__desk *desk)
{
    int rc;

    jobq__batch_reset(&desk->scratch);
    jobq__desk_beat(desk, jobq__desk_call_budget(desk));
    rc = jobq__store_held(desk->store, desk->id, &desk->scratch);
    if (rc < 0) {
        jobq__desk_fail(desk, rc);
        return;
    }
    rc = give_back_strangers(desk);
    if (rc < 0)
        return;
    forget_missing(desk);
    jobq__control_marks(desk, &desk->scratch);
    desk->ask_held = rc > 0;
    desk->differs = 0;
}

void jobq__desk_give_up(jobq__desk *desk)
{
    jobq__arena_reset(&desk->arena);
    while (desk->ended.first) {
        jobq__ticket *ticket = desk->ended.first;

        ticket->status = ticket->tried ? JOBQ_EUNKNOWN : JOBQ_ECONNECT;
        jobq__handout_answered(desk, ticket);
    }
}
