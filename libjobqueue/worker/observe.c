/* SPDX-License-Identifier: MIT
 *
 * What people see of a worker (rule G4): lines about jobs, one summary line a second when they are
 * too many, or JSON (doc/output.md has its fields). Writing itself is output.c's business.
 */
#include "worker/observe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum {
    BUSY_LINES = 100 /* a second: more are summed up */,
    WINDOW_MS = 1000,
    NAME_MAX_SHOWN = 128,
    MESSAGE_MAX_SHOWN = 1000
};

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

int jobq__observer_new(const jobq_worker *worker, jobq__observer **out)
{
    const char *output = worker->run_conf->s.output;
    jobq__observer *o = jobq__zalloc(sizeof(*o));
    int rc = 0;

    if (!o)
        return jobq__error_nomem();
    o->worker = worker;
    jobq__output_init(&o->err, STDERR_FILENO);
    if (jobq__sink_in_force(worker)) {
        use_sink(o, &worker->sink);
        *out = o;
        return 0;
    }
    o->mode = output ? find_mode(output) : JOBQ__OBSERVE_AUTO;
    jobq__output_init(&o->out, STDOUT_FILENO);
    if (o->mode < 0) {
        o->mode = JOBQ__OBSERVE_JOBS;
        rc = jobq__output_open(&o->out, output);
    }
    if (rc < 0)
        jobq__free(o);
    else
        *out = o;
    return rc;
}

/* ---- pieces of lines ------------------------------------------------------------------------- */

static void add_stamp(jobq__observer *o)
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

static void add_shown(jobq__buf *line, const char *p, size_t n, size_t most)
{
    char text[MESSAGE_MAX_SHOWN + 8];
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
    jobq__buf_reset(&o->line);
    add_stamp(o);
    jobq__buf_adds(&o->line, verb);
    jobq__buf_adds(&o->line, ": ");
    add_shown(&o->line, h->name, h->name_n, NAME_MAX_SHOWN);
    jobq__buf_addc(&o->line, ' ');
    jobq__buf_adds(&o->line, h->id);
}

static void end_line(jobq__observer *o)
{
    jobq__output_line(&o->out, jobq__buf_text(&o->line), o->line.n);
}

/* ---- how an attempt ended, in words ---------------------------------------------------------- */

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

static const row lease_lost = {"Lease lost", "lease_lost", true};
static const row unknown = {"Outcome unknown", "outcome_unknown", true};
static const row lost = {"Result lost", "result_lost", true};

static const row *row_of(jobq_ending ending, int status)
{
    if (status == 0)
        return &endings[ending];
    return status == JOBQ_ELEASE ? &lease_lost : status == JOBQ_EUNKNOWN ? &unknown : &lost;
}

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
    add_shown(line, fault->message.p, fault->message.n, MESSAGE_MAX_SHOWN);
}

static void add_outcome(jobq__buf *line, const jobq__handout *h, jobq_ending ending,
                        const jobq__verdict *verdict, int64_t took_ms, const jobq__fault *fault)
{
    if (ending == JOBQ_ENDED_DONE) {
        jobq__buf_addf(line, " %lld ms", (long long)(took_ms < 0 ? 0 : took_ms));
    } else if (verdict->op == JOBQ_OP_DEAD) {
        jobq__buf_addf(line, " for good (%s)", jobq__reason_word(verdict->reason));
        add_fault(line, fault);
    } else if (verdict->op == JOBQ_OP_GIVE_BACK) {
        jobq__buf_adds(line, " uncounted: it was stopped");
    } else if (ending == JOBQ_ENDED_RELEASED) {
        jobq__buf_adds(line, " back in ");
        add_seconds(line, verdict->delay_ms);
    } else {
        add_attempt(line, h);
        jobq__buf_adds(line, ", retrying in ");
        add_seconds(line, verdict->delay_ms);
        add_fault(line, fault);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_json_text(jobq__buf *b, const char *p, size_t n)
{
    jobq__buf_addc(b, '"');
    for (const char *end = p + n; p < end;) {
        size_t step = jobq__utf8_step(p, (size_t)(end - p));
        unsigned c = (unsigned char)*p;

        if (step == 0)
            jobq__buf_adds(b, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            jobq__buf_addf(b, "\\%c", (int)c);
        else if (c < 0x20 || c == 0x7f)
            jobq__buf_addf(b, "\\u%04x", c);
        else if (c == 0xc2 && (unsigned char)p[1] < 0xa0) /* C1 controls steer terminals, too */
            jobq__buf_addf(b, "\\u%04x", (unsigned)(unsigned char)p[1]);
        else
            jobq__buf_add(b, p, step);
        p += step ? step : 1;
    }
    jobq__buf_addc(b, '"');
}

static void add_field(jobq__buf *b, const char *key, const char *p, size_t n)
{
    if (!p)
        return;
    jobq__buf_addf(b, ",\"%s\":", key);
    add_json_text(b, p, n);
}

static void add_field_text(jobq__buf *b, const char *key, const char *text)
{
    add_field(b, key, text, text ? strlen(text) : 0);
}

static void begin_json(jobq__observer *o, const char *event)
{
    int64_t ms = jobq__clock_wall_ms();
    time_t t = (time_t)(ms / 1000);
    char stamp[32];
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    jobq__buf_reset(&o->line);
    jobq__buf_addf(&o->line, "{\"time\":\"%s.%03dZ\",\"event\":\"%s\"", stamp, (int)(ms % 1000),
                   event);
    add_field_text(&o->line, "worker", o->worker->shared.words->worker_id);
}

static void end_json(jobq__observer *o)
{
    jobq__buf_addc(&o->line, '}');
    end_line(o);
}

static void add_json_job(jobq__buf *b, const jobq__handout *h)
{
    add_field_text(b, "id", h->id);
    add_field(b, "name", h->name, h->name_n);
    add_field(b, "queue", h->queue, h->queue_n);
    jobq__buf_addf(b, ",\"attempt\":%lld,\"tries\":%lld",
                   (long long)(h->counters.failures + h->counters.crashes + 1),
                   (long long)h->policy.tries);
}

static void show_json(jobq__observer *o, const row *as, const jobq__handout *h, jobq_ending ending,
                      const jobq__verdict *verdict, int64_t took_ms, const jobq__fault *fault)
{
    jobq__buf *b = &o->line;

    begin_json(o, as->word);
    add_json_job(b, h);
    add_field_text(b, "outcome", jobq_outcome_word(ending));
    if (took_ms >= 0)
        jobq__buf_addf(b, ",\"took\":%.3f", (double)took_ms / 1000);
    if (verdict->op == JOBQ_OP_BACK)
        jobq__buf_addf(b, ",\"delay\":%.3f", (double)verdict->delay_ms / 1000);
    if (verdict->op == JOBQ_OP_DEAD)
        add_field_text(b, "reason", jobq__reason_word(verdict->reason));
    if (fault) {
        add_field(b, "class", fault->class_name.p, fault->class_name.n);
        add_field(b, "message", fault->message.p, fault->message.n);
    }
    end_json(o);
}

/* ---- what the loops call --------------------------------------------------------------------- */

void jobq__observer_processing(jobq__observer *o, const jobq__handout *h)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET || o->mode == JOBQ__OBSERVE_SUMMARY)
        return;
    if (o->mode == JOBQ__OBSERVE_JSON) {
        begin_json(o, "processing");
        add_json_job(&o->line, h);
        end_json(o);
        return;
    }
    begin_line(o, "Processing", h);
    add_attempt(&o->line, h);
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
        o->summed++;
        return true;
    }
    return false;
}

void jobq__observer_ended(jobq__observer *o, const jobq__handout *h, jobq_ending ending,
                          const jobq__verdict *verdict, int64_t took_ms, const jobq__fault *fault,
                          int status)
{
    const row *as = row_of(ending, status);

    if (!o || o->mode == JOBQ__OBSERVE_QUIET || is_summed(o, as))
        return;
    if (o->mode == JOBQ__OBSERVE_JSON) {
        show_json(o, as, h, ending, verdict, took_ms, fault);
        return;
    }
    begin_line(o, as->verb, h);
    if (status != 0)
        add_status(&o->line, ending, status);
    else
        add_outcome(&o->line, h, ending, verdict, took_ms, fault);
    end_line(o);
}

static void end_window(jobq__observer *o, int64_t mono_ms)
{
    int64_t span_ms = mono_ms - o->window_ms;

    if (o->summed > 0) {
        jobq__buf_reset(&o->line);
        add_stamp(o);
        jobq__buf_addf(&o->line, "Processed: %lld %sjobs in %.1f s", (long long)o->summed,
                       o->summed < o->window_jobs ? "more " : "",
                       (double)(span_ms < 1 ? 1 : span_ms) / 1000);
        end_line(o);
    }
    o->busy = o->window_jobs > BUSY_LINES;
    o->summed = o->window_jobs = 0;
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
    jobq__output_flush(&o->out, mono_ms);
    jobq__output_flush(&o->err, mono_ms);
}

void jobq__observer_free(jobq__observer *o)
{
    if (!o)
        return;
    end_window(o, jobq__clock_mono_ms());
    jobq__output_close(&o->out);
    jobq__output_close(&o->err);
    jobq__buf_free(&o->line);
    jobq__free(o);
}

/* ---- lines about the worker ------------------------------------------------------------------ */

static void add_queues(jobq__buf *b, const jobq_worker *worker, bool json)
{
    for (size_t i = 0; i < worker->queue_count; i++) {
        const char *name = worker->queues[i];

        jobq__buf_adds(b, i == 0 ? "" : json ? "," : ", ");
        if (json)
            add_json_text(b, name, strlen(name));
        else
            add_shown(b, name, strlen(name), NAME_MAX_SHOWN);
    }
}

static void start_json(jobq__observer *o)
{
    begin_json(o, "starting");
    jobq__buf_adds(&o->line, ",\"queues\":[");
    add_queues(&o->line, o->worker, true);
    jobq__buf_addf(&o->line, "],\"processes\":%lld", (long long)o->worker->run_conf->s.processes);
    end_json(o);
}

static void start_text(jobq__observer *o)
{
    long long processes = o->worker->run_conf->s.processes;

    jobq__buf_reset(&o->line);
    jobq__buf_addf(&o->line, "Worker %s watching ", o->worker->shared.words->worker_id);
    add_queues(&o->line, o->worker, false);
    if (processes == 0)
        jobq__buf_adds(&o->line, " (inline)");
    else
        jobq__buf_addf(&o->line, " (%lld %s)", processes, processes == 1 ? "process" : "processes");
    end_line(o);
}

void jobq__observer_starting(jobq__observer *o)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET)
        return;
    if (o->mode == JOBQ__OBSERVE_JSON)
        start_json(o);
    else
        start_text(o);
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}

static void format(jobq__buf *b, const char *fmt, va_list ap)
{
    char text[2048];

    vsnprintf(text, sizeof(text), fmt, ap);
    add_shown(b, text, strlen(text), MESSAGE_MAX_SHOWN);
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
    jobq__output_line(&o->err, jobq__buf_text(&o->line), o->line.n);
    jobq__output_flush(&o->err, jobq__clock_mono_ms());
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
    if (o->mode == JOBQ__OBSERVE_JSON) {
        begin_json(o, "note");
        add_field_text(&o->line, "message", jobq__buf_text(&text));
        end_json(o);
    } else {
        jobq__buf_reset(&o->line);
        add_stamp(o);
        jobq__buf_adds(&o->line, jobq__buf_text(&text));
        end_line(o);
    }
    jobq__buf_free(&text);
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}

void jobq__observer_stopping(jobq__observer *o, const char *reason, int64_t jobs_run, int code)
{
    if (!o || o->mode == JOBQ__OBSERVE_QUIET)
        return;
    if (o->mode == JOBQ__OBSERVE_JSON) {
        begin_json(o, "stopping");
        add_field_text(&o->line, "reason", reason);
        jobq__buf_addf(&o->line, ",\"jobs\":%lld,\"code\":%d", (long long)jobs_run, code);
        end_json(o);
    } else {
        jobq__buf_reset(&o->line);
        jobq__buf_addf(&o->line, "Stopping: %s\nRan %lld jobs", reason, (long long)jobs_run);
        end_line(o);
    }
    jobq__output_flush(&o->out, jobq__clock_mono_ms());
}
