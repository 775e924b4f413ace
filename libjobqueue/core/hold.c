/* SPDX-License-Identifier: MIT
 *
 * What a held job can do (rules N7, O1, O2): progress, a result, statements that depend on its
 * lease, its fingerprint. Who gave it out does the rest (jobq__job_ops).
 */
#include <stdio.h>
#include <string.h>

#include "core/job.h"
#include "core/statement.h"
#include "util/error.h"
#include "util/sha256.h"
#include "util/str.h"

enum { MAX_RESULT = 1048576 };

static int check_held(const jobq_job *job)
{
    if (!job || !job->ops)
        return jobq__error_set(JOBQ_EINVAL, "this job is not held: it is only shown by an event");
    return jobq__job_check_open(job, JOBQ_ELEASE);
}

/* ---- progress -------------------------------------------------------------------------------- */

static int put_note(jobq_job *job, const char *note, size_t n)
{
    char shown[JOBQ__OUTCOME_NOTE + 1];
    const jobq_slice text = {note, n};

    jobq__buf_reset(&job->note);
    job->has_note = note != NULL;
    if (!note)
        return 0;
    jobq__buf_add(&job->note, shown, jobq__fault_tidy(shown, JOBQ__OUTCOME_NOTE, text));
    return job->note.failed ? jobq__error_nomem() : 0;
}

int jobq_job_progress(jobq_job *job, double percent, const char *note, size_t n)
{
    int rc;

    jobq__error_clear();
    if (!(percent >= 0 && percent <= 100))
        return jobq__error_set_subject(JOBQ_EINVAL, "percent", 7,
                                       "progress must be a number from 0 to 100, got %g", percent);
    if ((rc = check_held(job)) < 0)
        return rc;
    if (!job->ops->progress)
        return jobq__error_set(JOBQ_EUNSUPPORTED, "this job can show no progress");
    if ((rc = put_note(job, note, n)) < 0)
        return rc;
    job->percent = percent;
    job->has_percent = job->has_outcome = true;
    return job->ops->progress(job);
}

/* ---- the result ------------------------------------------------------------------------------ */

bool jobq_job_is_kept(const jobq_job *job)
{
    return job && job->ops && job->policy.keep_done_ms > 0 &&
           !jobq__queue_is_hidden(job->queue); /* hooks leave nothing behind */
}

static int put_result(jobq_job *job, bool refusal, const void *p, size_t n)
{
    jobq__buf_reset(&job->result);
    jobq__buf_add(&job->result, p, n);
    job->has_outcome = true;
    job->has_result = !refusal && !job->result.failed;
    job->has_refusal = refusal && !job->result.failed;
    return job->result.failed ? jobq__error_nomem() : 0;
}

int jobq_job_set_result(jobq_job *job, int format, const void *body, size_t n)
{
    const int64_t most = job && job->max_result > 0 ? job->max_result : MAX_RESULT;
    int rc;

    jobq__error_clear();
    if (!job || !body || (format != JOBQ_FORMAT_MSGPACK && format != JOBQ_FORMAT_JSON))
        return jobq__error_set(JOBQ_EINVAL,
                               "a job, a body and its format, msgpack (0) or json (1), are needed");
    if (!jobq_job_is_kept(job))
        return 0;
    if (n > (size_t)most)
        return jobq__error_set_subject(JOBQ_ELIMIT, "result", 6,
                                       "the result has %zu byte%s, max_payload allows %lld", n,
                                       jobq__plural((int64_t)n), (long long)most);
    if ((rc = jobq_payload_check(format, body, n)) < 0)
        return rc;
    job->result_format = format;
    return put_result(job, false, body, n);
}

void jobq_job_refuse_result(jobq_job *job, const char *text, size_t n)
{
    char shown[JOBQ__OUTCOME_REFUSAL + 1];
    const jobq_slice given = {text ? text : "", text ? n : 0};

    if (jobq_job_is_kept(job))
        put_result(job, true, shown, jobq__fault_tidy(shown, JOBQ__OUTCOME_REFUSAL, given));
}

void jobq__job_outcome(const jobq_job *job, bool with_result, jobq__buf *out)
{
    jobq__outcome outcome = {
        .has_percent = job->has_percent, .percent = job->percent, .format = job->result_format};
    const jobq_slice result = jobq__slice(job->result.n ? job->result.p : "", job->result.n);

    if (job->has_note)
        outcome.note = jobq__slice(job->note.n ? job->note.p : "", job->note.n);
    if (with_result && job->has_result)
        outcome.body = result;
    if (with_result && job->has_refusal)
        outcome.refusal = result;
    jobq__buf_reset(out);
    if (outcome.has_percent || outcome.body.p || outcome.refusal.p)
        jobq__outcome_write(out, &outcome);
}

/* ---- statements ------------------------------------------------------------------------------ */

static int word_lost(const jobq_job *job)
{
    return jobq__error_set_subject(JOBQ_ELEASE, job->id, strlen(job->id),
                                   "the lease of job \"%s\" is lost; nothing was done", job->id);
}

static int reach(jobq_job *job, jobq__reach *r, bool for_done)
{
    int rc = check_held(job);

    if (rc < 0)
        return rc;
    if (!job->ops->reach)
        return jobq__error_set(JOBQ_EUNSUPPORTED, "this job cannot reach its store");
    jobq__batch_reset(&job->scratch);
    return job->ops->reach(job, r, for_done);
}

static int unreach(jobq_job *job, jobq__reach *r, bool for_done, int rc)
{
    r->result = rc;
    if (job->ops->unreach)
        job->ops->unreach(job, r, for_done);
    return rc;
}

int jobq_job_effect(jobq_job *job, const jobq_statement *statement, jobq_param *value_out)
{
    jobq__reach r = {0};
    jobq_effect e;
    int rc;

    jobq__error_clear();
    if (!statement)
        return jobq__error_set(JOBQ_EINVAL, "a statement is needed, got NULL");
    if ((rc = jobq__statement_check("effect", statement)) < 0 || (rc = reach(job, &r, false)) < 0)
        return rc;
    e = (jobq_effect){.worker = r.worker,
                      .id = jobq__slice_text(job->id),
                      .queue = job->queue,
                      .token = job->token,
                      .statement = *statement,
                      .out = &job->scratch};
    rc = jobq__store_effect(r.store, &e);
    if (rc == 0 && e.result == JOBQ_ELEASE)
        rc = word_lost(job);
    rc = unreach(job, &r, false, rc);
    if (rc == 0 && value_out)
        *value_out = e.value;
    return rc;
}

/* The settlement of a job that is done, with what it left so far; texts lie in its scratch. */
static void settle_done(jobq_job *job, jobq_settlement *s)
{
    const jobq__end end = {.ending = JOBQ_ENDED_DONE, .delay_ms = -1};
    jobq__verdict verdict;
    jobq__buf buf = {0};

    jobq__retry_judge(&job->policy, &job->counters, &end, jobq__job_store_now(job), 0, &verdict);
    jobq__job_settlement(job, &verdict, s);
    if (!job->has_outcome || s->keep_ms <= 0 || s->keep_bare)
        return;
    jobq__job_outcome(job, true, &buf);
    if (buf.n)
        s->outcome = jobq_batch_copy(&job->scratch, buf.p, buf.n);
    jobq__buf_free(&buf);
}

/* The statement in the job's scratch; NULL: the error is set. */
static const jobq_statement *make_done(jobq_job *job, const jobq__reach *r, int placeholders)
{
    jobq_statement *given = jobq_batch_alloc(&job->scratch, sizeof(*given));
    jobq_settlement s;
    jobq_request request = {.done = &s, .worker = r->worker, .out = &job->scratch};

    if (!given) {
        jobq__error_nomem();
        return NULL;
    }
    settle_done(job, &s);
    if (jobq__store_request(r->store, &request) < 0 ||
        jobq__statement_adapt(&job->scratch.arena, placeholders, &request.statement) < 0)
        return NULL;
    *given = request.statement;
    return given;
}

static int ask_done(jobq_job *job, int placeholders, const jobq_statement **statement_out)
{
    const jobq_statement *given;
    jobq__reach r = {0};
    int rc;

    if ((rc = jobq__placeholders_check(placeholders)) < 0 || (rc = reach(job, &r, true)) < 0)
        return rc;
    given = make_done(job, &r, placeholders);
    rc = unreach(job, &r, true, given ? 0 : jobq__error_code());
    if (rc == 0)
        *statement_out = given;
    return rc;
}

/* The result is the statement's alone: should that be rolled back, what the handler returns counts
 * and nothing else. */
int jobq_job_done_statement(jobq_job *job, int placeholders, const jobq_statement **statement_out)
{
    int rc;

    jobq__error_clear();
    if (!statement_out)
        return jobq__error_set(JOBQ_EINVAL, "there is no place for the statement");
    rc = ask_done(job, placeholders, statement_out);
    if (job)
        job->has_result = job->has_refusal = false;
    return rc;
}

/* ---- the fingerprint ------------------------------------------------------------------------- */

const char *jobq_job_fingerprint(jobq_job *job)
{
    unsigned char sum[JOBQ__SHA256_SIZE];
    char version[16];
    jobq__sha256 h;

    if (!job || job->fingerprint[0])
        return job ? job->fingerprint : "";
    jobq__sha256_begin(&h);
    jobq__sha256_add(&h, job->name.p, job->name.n);
    jobq__sha256_add(&h, "", 1);
    snprintf(version, sizeof(version), "%d", (int)job->version);
    jobq__sha256_add(&h, version, strlen(version) + 1);
    jobq__sha256_add(&h, job->body.p, job->body.n);
    jobq__sha256_end(&h, sum);
    for (int i = 0; i < JOBQ__SHA256_SIZE; i++)
        snprintf(job->fingerprint + 2 * (size_t)i, 3, "%02x", sum[i]);
    return job->fingerprint;
}
