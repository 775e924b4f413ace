/* SPDX-License-Identifier: MIT
 *
 * The worker's lines for people (rule G4).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/str.h"
#include "worker/observe.h"

/* ---- pieces of lines ------------------------------------------------------------------------- */

void jobq__text_stamp(jobq__observer *o)
{
    int64_t second = jobq__clock_wall_ms() / 1000;

    if (second != o->stamp_second) {
        time_t t = (time_t)second;
        struct tm tm;

        localtime_r(&t, &tm);
        strftime(o->stamp, sizeof(o->stamp), "[%Y-%m-%d %H:%M:%S] ", &tm);
        o->stamp_second = second;
    }
    jobq__buf_adds(&o->line, o->stamp);
}

void jobq__text_shown(jobq__buf *line, const char *p, size_t n, size_t most)
{
    char text[JOBQ__MESSAGE_SHOWN + 8];
    size_t cut = jobq__utf8_cut(p, n, most);

    jobq__str_one_line(text, sizeof(text), p, cut);
    jobq__buf_adds(line, text);
    if (cut < n)
        jobq__buf_adds(line, "...");
}

static void add_seconds(jobq__buf *line, int64_t ms)
{
    if (ms >= 10000)
        jobq__buf_addf(line, "%lld s", (long long)((ms + 500) / 1000));
    else
        jobq__buf_addf(line, "%.3g s", (double)ms / 1000);
}

static void add_attempt(jobq__buf *line, const jobq__handout *h)
{
    long long attempt = h->counters.failures + h->counters.crashes + 1;

    if (h->policy.tries > 0)
        jobq__buf_addf(line, " attempt %lld/%lld", attempt, (long long)h->policy.tries);
    else
        jobq__buf_addf(line, " attempt %lld", attempt);
}

static void begin_line(jobq__observer *o, const char *verb, const jobq__handout *h)
{
    jobq__text_stamp(o);
    jobq__buf_adds(&o->line, verb);
    jobq__buf_adds(&o->line, ": ");
    jobq__text_shown(&o->line, h->name, h->name_n, JOBQ__NAME_SHOWN);
    jobq__buf_addc(&o->line, ' ');
    jobq__buf_adds(&o->line, h->id);
}

/* ---- how an attempt ended, in words ---------------------------------------------------------- */

/* After the store did not take the result as it was meant. */
static void add_status(jobq__buf *line, jobq_ending ending, int status)
{
    const char *what = status == JOBQ_ELEASE     ? "was refused: the job is somebody else's by now"
                       : status == JOBQ_EUNKNOWN ? "may or may not have been stored"
                                                 : "could not be stored";

    jobq__buf_addf(line, " its result (%s) %s", jobq_ending_word(ending), what);
}

static void add_fault(jobq__buf *line, const jobq__fault *fault)
{
    if (!fault || fault->message.n == 0)
        return;
    jobq__buf_adds(line, ": ");
    jobq__text_shown(line, fault->message.p, fault->message.n, JOBQ__MESSAGE_SHOWN);
}

static void add_outcome(jobq__buf *line, const jobq__end_seen *end)
{
    const jobq__verdict *verdict = end->verdict;

    if (end->ending == JOBQ_ENDED_DONE) {
        jobq__buf_addf(line, " %lld ms", (long long)(end->took_ms < 0 ? 0 : end->took_ms));
    } else if (verdict->reason == JOBQ__REASON_CANCELLED && end->took_ms < 0) {
        jobq__buf_adds(line, " before it started");
    } else if (verdict->reason == JOBQ__REASON_CANCELLED) {
        jobq__buf_adds(line, " after ");
        add_seconds(line, end->took_ms);
        add_fault(line, end->fault);
    } else if (verdict->op == JOBQ_OP_DEAD) {
        jobq__buf_addf(line, " for good (%s)", jobq__reason_word(verdict->reason));
        add_fault(line, end->fault);
    } else if (verdict->op == JOBQ_OP_GIVE_BACK) {
        jobq__buf_adds(line, " uncounted: it was stopped");
    } else if (end->ending == JOBQ_ENDED_RELEASED) {
        jobq__buf_adds(line, " back in ");
        add_seconds(line, verdict->delay_ms);
    } else {
        add_attempt(line, end->handout);
        jobq__buf_adds(line, ", retrying in ");
        add_seconds(line, verdict->delay_ms);
        add_fault(line, end->fault);
    }
}

static void word_end(jobq__observer *o, const jobq__end_seen *end)
{
    begin_line(o, end->verb, end->handout);
    if (end->status != 0)
        add_status(&o->line, end->ending, end->status);
    else
        add_outcome(&o->line, end);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void word_start(jobq__observer *o)
{
    const jobq_worker *worker = o->worker;
    long long processes = worker->run_conf->s.processes;

    jobq__buf_addf(&o->line, "Worker %s ", worker->shared.words->worker_id);
    if (worker->run_conf->s.name)
        jobq__buf_addf(&o->line, "(%s) ", worker->run_conf->s.name);
    jobq__buf_adds(&o->line, "watching ");
    for (size_t i = 0; i < worker->queue_count; i++) {
        jobq__buf_adds(&o->line, i ? ", " : "");
        jobq__text_shown(&o->line, worker->queues[i], strlen(worker->queues[i]), JOBQ__NAME_SHOWN);
    }
    if (processes == 0)
        jobq__buf_adds(&o->line, " (inline)");
    else
        jobq__buf_addf(&o->line, " (%lld %s)", processes, processes == 1 ? "process" : "processes");
}

static void word_processing(jobq__observer *o, const jobq__handout *h)
{
    begin_line(o, "Processing", h);
    add_attempt(&o->line, h);
}

static void word_note(jobq__observer *o, const char *text)
{
    jobq__text_stamp(o);
    jobq__buf_adds(&o->line, text);
}

static void word_pause(jobq__observer *o, bool paused, jobq_slice queue)
{
    jobq__text_stamp(o);
    jobq__buf_adds(&o->line, paused ? "Paused: " : "Resumed: ");
    jobq__text_shown(&o->line, queue.p, queue.n, JOBQ__NAME_SHOWN);
}

static void word_stop(jobq__observer *o, const char *reason, int64_t jobs_run, int code)
{
    (void)code;
    jobq__buf_addf(&o->line, "Stopping: %s\nRan %lld job%s", reason, (long long)jobs_run,
                   jobq__plural(jobs_run));
}

const jobq__form jobq__form_text = {word_start, word_processing, word_end,
                                    word_note,  word_pause,      word_stop};
