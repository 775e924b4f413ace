/* SPDX-License-Identifier: MIT
 *
 * Answers that several stores put together alike.
 */
#include "driver/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

int jobq__stray_add(jobq_audit *a, jobq_stray ***link, jobq_slice id, int64_t seq, unsigned states,
                    bool ownerless)
{
    jobq_stray *stray = jobq_batch_alloc(a->out, sizeof(*stray));
    char name[32];

    if (!stray)
        return jobq__error_nomem();
    if (!id.p) {
        snprintf(name, sizeof(name), "#%" PRId64, seq);
        id = jobq_batch_copy(a->out, name, strlen(name));
    }
    stray->id = id;
    stray->queue = jobq_batch_copy(a->out, a->queue.p, a->queue.n);
    if (!stray->id.p || !stray->queue.p)
        return jobq__error_nomem();
    stray->states = states;
    stray->ownerless = ownerless;
    **link = stray;
    *link = &stray->next;
    return 0;
}

jobq_minute *jobq__minute_add(jobq_minutes *m, jobq_minute ***link, int64_t minute)
{
    jobq_minute *made = jobq_batch_alloc(m->out, sizeof(*made));

    if (made)
        made->queue = jobq_batch_copy(m->out, m->queue.p, m->queue.n);
    if (!made || !made->queue.p) {
        jobq__error_nomem();
        return NULL;
    }
    made->minute = minute;
    **link = made;
    *link = &made->next;
    return made;
}

void jobq__minute_put(jobq_minute *minute, int64_t place, int64_t n)
{
    if (place >= 0 && place < JOBQ_MINUTE_COUNTS)
        minute->counts[place] = n;
    else if (place >= JOBQ__MINUTE_BUCKETS_AT &&
             place < JOBQ__MINUTE_BUCKETS_AT + JOBQ_MINUTE_BUCKETS)
        minute->run_ms[place - JOBQ__MINUTE_BUCKETS_AT] = n;
}

int jobq__request_answer(jobq_request *r, const char *text, const jobq_param *params, size_t count)
{
    jobq_param *copy = jobq_batch_alloc(r->out, count * sizeof(*copy));
    const jobq_slice sql = jobq_batch_copy(r->out, text, strlen(text));

    if (!copy || !sql.p)
        return jobq__error_nomem();
    memcpy(copy, params, count * sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        if (!params[i].bytes.p)
            continue;
        copy[i].bytes = jobq_batch_copy(r->out, params[i].bytes.p, params[i].bytes.n);
        if (!copy[i].bytes.p)
            return jobq__error_nomem();
    }
    r->statement = (jobq_statement){.text = sql, .params = copy, .param_count = count};
    return 0;
}
