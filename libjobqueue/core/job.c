/* SPDX-License-Identifier: MIT
 *
 * A job in hand: its fields, its error, its end. Who gave it out does the rest (jobq__job_ops).
 */
#include "core/job.h"

#include <string.h>

#include "core/conf_table.h"
#include "core/follow.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- filling --------------------------------------------------------------------------------- */

void jobq__job_reset(jobq_job *job)
{
    jobq__arena arena = job->arena, fault_arena = job->fault_arena;
    jobq__buf note = job->note, result = job->result;
    jobq_batch scratch = job->scratch;
    const jobq__job_ops *ops = job->ops;
    void *giver = job->giver;
    const int64_t max_result = job->max_result;

    memset(job, 0, sizeof(*job));
    job->arena = arena;
    job->fault_arena = fault_arena;
    job->note = note;
    job->result = result;
    job->scratch = scratch;
    job->ops = ops;
    job->giver = giver;
    job->max_result = max_result;
    jobq__arena_reset(&job->arena);
    jobq__arena_reset(&job->fault_arena);
    jobq__buf_reset(&job->note);
    jobq__buf_reset(&job->result);
    jobq__batch_reset(&job->scratch);
}

void jobq__job_release_memory(jobq_job *job)
{
    jobq__arena_free(&job->arena);
    jobq__arena_free(&job->fault_arena);
    jobq__buf_free(&job->note);
    jobq__buf_free(&job->result);
    jobq__batch_free(&job->scratch);
}

static bool keep(jobq_job *job, jobq_slice *to, jobq_slice from)
{
    *to = jobq__slice(jobq__arena_copy(&job->arena, from.p, from.n), from.n);
    return to->p != NULL;
}

static void fill_numbers(jobq_job *job, const jobq_record *record, int64_t now_ms)
{
    job->counters = record->counters;
    job->token = record->token;
    job->fence = record->fence;
    job->enqueued_at_ms = record->enqueued_at_ms;
    job->base_at_ms = record->base_at_ms;
    job->version = record->version;
    job->priority = record->priority;
    job->taken_at_ms = now_ms;
    job->taken_mono_ms = jobq__clock_mono_ms();
}

/* A header of a later protocol waits for a worker that reads it, for ever if need be (rule A9). */
static void read_header(jobq_job *job, const jobq_conf *worker, const jobq_conf *handler)
{
    int rc = jobq__envelope_read(job->header_bytes, &job->arena, &job->header);

    job->header_problem = rc;
    jobq__policy_make(&job->policy, worker, handler, rc ? NULL : &job->header, job->base_at_ms);
    if (rc == JOBQ_EUNSUPPORTED)
        job->policy.unknown_for_ms = -1;
}

int jobq__job_fill(jobq_job *job, const jobq_record *record, const jobq_conf *worker,
                   const jobq_conf *handler, int64_t now_ms)
{
    size_t n = record->id.n < JOBQ__ID_SIZE ? record->id.n : JOBQ__ID_SIZE - 1;

    jobq__job_reset(job);
    if (n)
        memcpy(job->id, record->id.p, n);
    if (!keep(job, &job->queue, record->queue) || !keep(job, &job->name, record->name) ||
        !keep(job, &job->body, record->body) || !keep(job, &job->header_bytes, record->header))
        return jobq__error_nomem();
    fill_numbers(job, record, now_ms);
    read_header(job, worker, handler);
    return job->header_problem == JOBQ_ENOMEM ? JOBQ_ENOMEM : 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static const char *text(jobq_slice s, size_t *n_out)
{
    if (n_out)
        *n_out = s.p ? s.n : 0;
    return s.p ? s.p : "";
}

const char *jobq_job_id(const jobq_job *job)
{
    return job->id;
}

const char *jobq_job_name(const jobq_job *job, size_t *n_out)
{
    return text(job->name, n_out);
}

const char *jobq_job_queue(const jobq_job *job, size_t *n_out)
{
    return text(jobq__follow_queue(job->queue), n_out); /* a hook is about a job of that queue */
}

int64_t jobq__job_store_now(const jobq_job *job)
{
    return job->taken_at_ms + jobq__clock_mono_ms() - job->taken_mono_ms;
}

static int64_t remaining_ms(const jobq_job *job)
{
    int64_t ran = job->started_mono_ms ? jobq__clock_mono_ms() - job->started_mono_ms : 0;

    if (job->policy.timeout_ms == 0)
        return -1;
    return ran < job->policy.timeout_ms ? job->policy.timeout_ms - ran : 0;
}

int64_t jobq_job_get(const jobq_job *job, jobq_job_number which)
{
    switch (which) {
    case JOBQ_JOB_DELIVERIES:
        return job->counters.deliveries;
    case JOBQ_JOB_FAILURES:
        return job->counters.failures;
    case JOBQ_JOB_CRASHES:
        return job->counters.crashes;
    case JOBQ_JOB_RELEASES:
        return job->counters.releases;
    case JOBQ_JOB_LOSSES:
        return job->counters.losses;
    case JOBQ_JOB_ATTEMPT:
        return job->counters.failures + job->counters.crashes + 1;
    case JOBQ_JOB_FENCE:
        return job->fence;
    case JOBQ_JOB_VERSION:
        return job->version;
    case JOBQ_JOB_PRIORITY:
        return job->priority;
    case JOBQ_JOB_ENQUEUED_AT_MS:
        return job->enqueued_at_ms;
    case JOBQ_JOB_TRIES:
        return job->policy.tries;
    case JOBQ_JOB_TIMEOUT_MS:
        return job->policy.timeout_ms;
    case JOBQ_JOB_AGE_MS:
        return jobq__job_store_now(job) - job->enqueued_at_ms;
    case JOBQ_JOB_REMAINING_MS:
        return remaining_ms(job);
    }
    return 0;
}

const void *jobq_job_body(const jobq_job *job, size_t *n_out, int *format_out)
{
    if (n_out)
        *n_out = job->body.n;
    if (format_out)
        *format_out = job->header.format;
    return job->body.p;
}

bool jobq_job_context(const jobq_job *job, size_t i, const char **key, size_t *key_n,
                      const char **value, size_t *value_n)
{
    const jobq__pair *pair = job->header.context;

    if (i >= job->header.context_count)
        return false;
    *key = pair[i].key.p;
    *key_n = pair[i].key.n;
    *value = pair[i].value.p;
    *value_n = pair[i].value.n;
    return true;
}

/* ---- the error ------------------------------------------------------------------------------- */

static jobq_slice tidy(jobq_job *job, const char *p, size_t n, size_t max)
{
    static const char missing[] = "error text could not be stored.";
    jobq_slice given = {p, n};
    size_t room = n < max / 4 ? n * 4 : max;
    char *out;

    if (!p)
        return (jobq_slice){0};
    out = jobq__arena_alloc(&job->fault_arena, room + 1);
    if (!out)
        return jobq__slice(missing, sizeof(missing) - 1);
    return jobq__slice(out, jobq__fault_tidy(out, room, given));
}

void jobq_job_set_error(jobq_job *job, const char *class_name, size_t class_n, const char *message,
                        size_t message_n, const char *where, size_t where_n, const char *trace,
                        size_t trace_n)
{
    jobq__arena_reset(&job->fault_arena);
    job->fault.class_name = tidy(job, class_name, class_n, JOBQ__FAULT_CLASS);
    job->fault.message = tidy(job, message, message_n, JOBQ__FAULT_MESSAGE);
    job->fault.where = tidy(job, where, where_n, JOBQ__FAULT_WHERE);
    job->fault.trace = tidy(job, trace, trace_n, JOBQ__FAULT_TRACE);
}

/* ---- the end --------------------------------------------------------------------------------- */

int jobq__job_check_open(const jobq_job *job, int code)
{
    if (job->refused)
        return jobq__error_set_subject(
            JOBQ_ELEASE, job->id, strlen(job->id),
            "the lease of job \"%s\" is lost; it could not be settled (%s)", job->id,
            jobq_ending_word(job->ending));
    if (job->settled)
        return jobq__error_set(code, "job \"%s\" is settled already (%s)", job->id,
                               jobq_ending_word(job->ending));
    return 0;
}

static int check_end(const jobq_job *job, jobq_ending ending, int64_t delay_ms)
{
    int rc;

    if (!job || !job->ops)
        return jobq__error_set(JOBQ_EINVAL,
                               "this job cannot be settled: it is only shown by an event");
    if ((rc = jobq__job_check_open(job, JOBQ_EINVAL)) < 0)
        return rc;
    if ((unsigned)ending >= JOBQ_ENDINGS)
        return jobq__error_set(JOBQ_EINVAL, "ending must be one of JOBQ_ENDED_*, got %d",
                               (int)ending);
    if (delay_ms < -1 || delay_ms > (int64_t)JOBQ__TEN_YEARS_S * 1000)
        return jobq__error_set(JOBQ_EINVAL, "delay must be 0 to 315619200 seconds, got %lld ms",
                               (long long)delay_ms);
    return 0;
}

int jobq_job_settle(jobq_job *job, jobq_ending ending, int64_t delay_ms)
{
    int rc;

    jobq__error_clear();
    rc = check_end(job, ending, delay_ms);
    if (rc < 0)
        return rc;
    rc = job->ops->settle(job, ending, delay_ms);
    if (rc == 0 || rc == JOBQ_ELEASE) { /* anything else may be tried again */
        job->settled = true;
        job->refused = rc == JOBQ_ELEASE;
        job->ending = ending;
    }
    return rc;
}

int jobq_job_done(jobq_job *job)
{
    return jobq_job_settle(job, JOBQ_ENDED_DONE, -1);
}

int jobq_job_retry(jobq_job *job, int64_t delay_ms)
{
    return jobq_job_settle(job, JOBQ_ENDED_FAILED, delay_ms);
}

int jobq_job_release(jobq_job *job, int64_t delay_ms)
{
    return jobq_job_settle(job, JOBQ_ENDED_RELEASED, delay_ms);
}

int jobq_job_fail(jobq_job *job)
{
    return jobq_job_settle(job, JOBQ_ENDED_FAILED_BY_HANDLER, -1);
}

int jobq_job_extend(jobq_job *job)
{
    int rc;

    jobq__error_clear();
    if (!job || !job->ops)
        return jobq__error_set(JOBQ_EINVAL, "this job has no lease: it is only shown by an event");
    rc = jobq__job_check_open(job, JOBQ_ELEASE);
    return rc < 0 ? rc : job->ops->extend(job);
}

bool jobq_job_is_lost(const jobq_job *job)
{
    return job && job->ops && job->ops->is_lost && job->ops->is_lost(job);
}

bool jobq_job_is_cancelled(const jobq_job *job)
{
    return jobq_job_is_lost(job) ||
           (job && job->ops && job->ops->is_cancelled && job->ops->is_cancelled(job));
}

bool jobq_job_is_stopping(const jobq_job *job)
{
    return job && job->ops && job->ops->is_stopping && job->ops->is_stopping(job);
}

int jobq_job_interrupted(jobq_job *job)
{
    return job && job->ops && job->ops->interrupted ? job->ops->interrupted(job)
                                                    : JOBQ_INTERRUPT_NONE;
}

void jobq_job_free(jobq_job *job)
{
    if (job && job->ops && job->ops->free)
        job->ops->free(job);
}

void jobq__job_settlement(const jobq_job *job, const jobq__verdict *verdict, jobq_settlement *out)
{
    *out = (jobq_settlement){
        .token = job->token,
        .id = jobq__slice_text(job->id),
        .queue = job->queue,
        .op = verdict->op,
        .reason = verdict->reason,
        .delay_ms = verdict->delay_ms,
        .keep_ms = verdict->keep_ms,
        .keep_bare = verdict->keep_bare,
        .counters = verdict->counters,
    };
}
