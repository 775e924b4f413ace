/* SPDX-License-Identifier: MIT
 *
 * What people see of a worker (rule G4): lines about jobs, one summary line a second when they are
 * too many, or JSON (doc/output.md has its fields). Writing itself is output.c's business.
 */
#include "worker/observe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum { BUSY_LINES = 100 /* a second: more are summed up */, WINDOW_MS = 1000 };

/* ---- where it goes --------------------------------------------------------------------------- */

static const char *const modes[] = {"auto", "jobs", "summary", "json", "quiet"};

static int find_mode(const char *output)
{
    for (int i = 0; output && i < (int)(sizeof(modes) / sizeof(modes[0])); i++)
        if (strcmp(output, modes[i]) == 0)
            return i;
    return -1;
}

static void use_sink(jobq__observer *o, const jobq__sink *sink)
{
    o->mode = JOBQ__OBSERVE_JOBS;
    if (sink->kind == JOBQ__SINK_LINE)
        jobq__output_init_line(&o->out, sink->line, sink->payload);
    else
        jobq__output_init(&o->out, sink->fd);
}

static int open_out(jobq__observer *o)
{
    const char *output = o->worker->run_conf->s.output;

    if (jobq__sink_in_force(o->worker)) {
        use_sink(o, &o->worker->sink);
        return 0;
    }
    o->mode = output ? find_mode(output) : JOBQ__OBSERVE_AUTO;
    jobq__output_init(&o->out, STDOUT_FILENO);
    if (o->mode >= 0)
        return 0;
    o->mode = JOBQ__OBSERVE_JOBS;
    return jobq__output_open(&o->out, output);
}

static bool is_same(const jobq__output *a, const jobq__output *b)
{
    return a->identity.inode && a->identity.inode == b->identity.inode &&
           a->identity.device == b->identity.device && !a->path && !b->path && !a->line && !b->line;
}

/* One writer for what is one file: lines that do not fit into one write stay whole, too. */
static void join_outputs(jobq__observer *o)
{
    o->pass_to = is_same(&o->pass, &o->out) ? &o->out : &o->pass;
    o->err_to = is_same(&o->err, &o->out)    ? &o->out
                : is_same(&o->err, &o->pass) ? o->pass_to
                                             : &o->err;
}

int jobq__observer_new(const jobq_worker *worker, jobq__observer **out)
{
    jobq__observer *o = jobq__zalloc(sizeof(*o));
    int rc;

    if (!o)
        return jobq__error_nomem();
    o->worker = worker;
    jobq__output_init(&o->err, STDERR_FILENO);
    jobq__output_init(&o->pass, STDOUT_FILENO);
    if ((rc = open_out(o)) < 0) {
        jobq__free(o);
        return rc;
    }
    o->form = o->mode == JOBQ__OBSERVE_JSON ? &jobq__form_json : &jobq__form_text;
    if (o->mode == JOBQ__OBSERVE_JSON) {
        o->out.word_dropped = jobq__json_dropped;
        o->out.word_payload = o;
    }
    join_outputs(o);
    *out = o;
    return 0;
}

jobq__output *jobq__observer_own(jobq__observer *o, bool err)
{
    return err ? o->err_to : &o->out;
}

jobq__output *jobq__observer_children(jobq__observer *o, bool err)
{
    return err ? o->err_to : o->pass_to;
}

bool jobq__observer_wraps(const jobq__observer *o)
{
    return o->mode == JOBQ__OBSERVE_JSON;
}

void jobq__observer_flush(jobq__observer *o, int64_t mono_ms)
{
    jobq__output_flush(&o->out, mono_ms);
    jobq__output_flush(&o->err, mono_ms);
    jobq__output_flush(&o->pass, mono_ms);
}

/* ---- the dispatcher's way ------------------------------------------------------------------- */

static void relay_one(jobq__output *out, jobq__output *direct, int fd)
{
    *direct = *out;
    jobq__output_init(out, fd);
    out->word_dropped = direct->word_dropped;
    out->word_payload = direct->word_payload;
}

void jobq__observer_relay(jobq__observer *o, const int relay[4])
{
    if (!o || relay[1] < 0)
        return;
    relay_one(&o->out, &o->direct_out, relay[1]);
    relay_one(&o->err, &o->direct_err, relay[3]);
    o->err_to = &o->err;
    o->relayed = true;
}

/* What the master has not read comes first. */
static void unrelay_one(jobq__output *out, const jobq__output *direct, int fd)
{
    jobq__output relayed = *out;
    char bytes[4096];
    ssize_t n;

    *out = *direct;
    out->dropped = relayed.dropped;
    while ((n = read(fd, bytes, sizeof(bytes))) > 0)
        jobq__output_pass(out, bytes, (size_t)n);
    jobq__output_pass(out, relayed.pending.p + relayed.done, relayed.pending.n - relayed.done);
    jobq__buf_free(&relayed.pending);
}

void jobq__observer_unrelay(jobq__observer *o, const int relay[4])
{
    if (!o || !o->relayed)
        return;
    o->relayed = false;
    unrelay_one(&o->out, &o->direct_out, relay[0]);
    unrelay_one(&o->err, &o->direct_err, relay[2]);
    join_outputs(o);
}

/* ---- lines about jobs ------------------------------------------------------------------------ */

typedef struct {
    const char *verb, *word; /* for people, for JSON */
    bool failure;            /* never summed up */
} row;

static const row endings[JOBQ_ENDINGS] = {
    [JOBQ_ENDED_DONE] = {"Processed", "processed", false},
    [JOBQ_ENDED_FAILED] = {"Failed", "failed", true},
    [JOBQ_ENDED_EXITED] = {"Failed", "failed", true},
    [JOBQ_ENDED_TIMED_OUT] = {"Timed out", "timed_out", true},
    [JOBQ_ENDED_CRASHED] = {"Crashed", "crashed", true},
    [JOBQ_ENDED_LEASE_LOST] = {"Lease lost", "lease_lost", true},
    [JOBQ_ENDED_RELEASED] = {"Released", "released", false},
    [JOBQ_ENDED_CLEANUP_FAILED] = {"Failed", "failed", true},
    [JOBQ_ENDED_STOPPED] = {"Given back", "given_back", true},
    [JOBQ_ENDED_FAILED_BY_HANDLER] = {"Failed", "failed", true},
    [JOBQ_ENDED_NOT_RETRYABLE] = {"Failed", "failed", true},
    [JOBQ_ENDED_UNDECODABLE] = {"Failed", "failed", true},
    [JOBQ_ENDED_UNKNOWN_NAME] = {"Failed", "failed", true},
    [JOBQ_ENDED_UNSUPPORTED_VERSION] = {"Failed", "failed", true},
    [JOBQ_ENDED_UNSTARTED] = {"Failed", "failed", true},
};

static const row cancelled = {"Cancelled", "cancelled", true};
static const row lease_lost = {"Lease lost", "lease_lost", true};
static const row unknown = {"Outcome unknown", "outcome_unknown", true};
static const row lost = {"Result lost", "result_lost", true};

static const row *row_of(jobq_ending ending, const jobq__verdict *verdict, int status)
{
    if (status == 0)
        return verdict->reason == JOBQ__REASON_CANCELLED ? &cancelled : &endings[ending];
    return status == JOBQ_ELEASE ? &lease_lost : status == JOBQ_EUNKNOWN ? &unknown : &lost;
}

static void end_line(jobq__observer *o)
{
    jobq__output_line(&o->out, jobq__buf_text(&o->line), o->line.n);
}

void jobq__observer_processing(jobq__observer *o, const jobq__handout *h)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET || o->mode == JOBQ__OBSERVE_SUMMARY)
        return;
    jobq__buf_reset(&o->line);
    o->form->processing(o, h);
    end_line(o);
}

/* Too many lines to be read: only counted. */
static bool is_summed(jobq__observer *o, const row *as)
{
    if (as->failure)
        return false;
    o->window_jobs++;
    if (o->mode == JOBQ__OBSERVE_SUMMARY ||
        (o->mode == JOBQ__OBSERVE_AUTO && (o->busy || o->window_jobs > BUSY_LINES))) {
        *(as == &endings[JOBQ_ENDED_RELEASED] ? &o->summed_released : &o->summed) += 1;
        return true;
    }
    return false;
}

void jobq__observer_ended(jobq__observer *o, const jobq__handout *h, jobq_ending ending,
                          const jobq__verdict *verdict, int64_t took_ms, const jobq__fault *fault,
                          int status)
{
    const row *as = row_of(ending, verdict, status);
    const jobq__end_seen end = {as->verb, as->word, h, ending, verdict, took_ms, fault, status};

    if (!o || o->mode == JOBQ__OBSERVE_QUIET || is_summed(o, as))
        return;
    jobq__buf_reset(&o->line);
    o->form->ended(o, &end);
    end_line(o);
}

/* A job that goes round releasing itself must not look like work done. */
static void sum_up(jobq__observer *o, const row *as, int64_t n, int64_t span_ms)
{
    if (n == 0)
        return;
    jobq__buf_reset(&o->line);
    jobq__text_stamp(o);
    jobq__buf_addf(&o->line, "%s: %lld %sjob%s in %.1f s", as->verb, (long long)n,
                   o->summed + o->summed_released < o->window_jobs ? "more " : "", jobq__plural(n),
                   (double)(span_ms < 1 ? 1 : span_ms) / 1000);
    end_line(o);
}

static void end_window(jobq__observer *o, int64_t mono_ms)
{
    const int64_t span_ms = mono_ms - o->window_ms;

    sum_up(o, &endings[JOBQ_ENDED_DONE], o->summed, span_ms);
    sum_up(o, &endings[JOBQ_ENDED_RELEASED], o->summed_released, span_ms);
    o->busy = o->window_jobs > BUSY_LINES;
    o->summed = o->summed_released = o->window_jobs = 0;
    o->window_ms = mono_ms;
}

void jobq__observer_tick(jobq__observer *o, int64_t mono_ms)
{
    if (!o)
        return;
    if (o->window_ms == 0)
        o->window_ms = mono_ms;
    if (mono_ms - o->window_ms >= WINDOW_MS)
        end_window(o, mono_ms);
    jobq__observer_flush(o, mono_ms);
}

void jobq__observer_free(jobq__observer *o)
{
    if (!o)
        return;
    end_window(o, jobq__clock_mono_ms());
    jobq__output_close(&o->out);
    jobq__output_close(&o->err);
    jobq__output_close(&o->pass);
    jobq__buf_free(&o->line);
    jobq__free(o);
}

/* ---- lines about the worker ------------------------------------------------------------------ */

void jobq__observer_starting(jobq__observer *o)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET)
        return;
    jobq__buf_reset(&o->line);
    o->form->starting(o);
    end_line(o);
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}

static void format(jobq__buf *b, const char *fmt, va_list ap)
{
    char text[2048];

    jobq__vformat(text, sizeof(text), fmt, ap);
    jobq__text_shown(b, text, strlen(text), JOBQ__MESSAGE_SHOWN);
}

void jobq__observer_error(jobq__observer *o, const char *fmt, ...)
{
    va_list ap;

    if (!o)
        return;
    jobq__buf_reset(&o->line);
    jobq__buf_adds(&o->line, "error: ");
    va_start(ap, fmt);
    format(&o->line, fmt, ap);
    va_end(ap);
    jobq__output_line(o->err_to, jobq__buf_text(&o->line), o->line.n);
    jobq__output_flush(o->err_to, jobq__clock_mono_ms());
}

void jobq__observer_note(jobq__observer *o, const char *fmt, ...)
{
    jobq__buf text = {0};
    va_list ap;

    if (!o || o->mode == JOBQ__OBSERVE_QUIET)
        return;
    va_start(ap, fmt);
    format(&text, fmt, ap);
    va_end(ap);
    jobq__buf_reset(&o->line);
    o->form->note(o, jobq__buf_text(&text));
    end_line(o);
    jobq__buf_free(&text);
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}

void jobq__observer_paused(jobq__observer *o, bool paused, jobq_slice queue)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET)
        return;
    jobq__buf_reset(&o->line);
    o->form->paused(o, paused, queue);
    end_line(o);
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}

void jobq__observer_stopping(jobq__observer *o, const char *reason, int64_t jobs_run, int code)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET)
        return;
    jobq__buf_reset(&o->line);
    o->form->stopping(o, reason, jobs_run, code);
    end_line(o);
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}
