/* SPDX-License-Identifier: MIT
 *
 * The worker's lines for programs (rule G4): an object per line; doc/output.md has the fields.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/str.h"
#include "worker/observe.h"

enum { TEXT_MAX = 32 * 1024 /* of one object; it may grow to six times that */ };

/* ---- pieces ---------------------------------------------------------------------------------- */

static void add_text(jobq__buf *b, const char *p, size_t n)
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
    add_text(b, p, n);
}

static void add_field_text(jobq__buf *b, const char *key, const char *text)
{
    add_field(b, key, text, text ? strlen(text) : 0);
}

static void begin(const jobq__observer *o, jobq__buf *b, const char *event)
{
    int64_t ms = jobq__clock_wall_ms();
    time_t t = (time_t)(ms / 1000);
    char stamp[32];
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    jobq__buf_addf(b, "{\"time\":\"%s.%03dZ\",\"event\":\"%s\"", stamp, (int)(ms % 1000), event);
    add_field_text(b, "worker", o->worker->shared.words->worker_id);
}

static void end(jobq__observer *o)
{
    jobq__buf_addc(&o->line, '}');
}

static void add_job(jobq__buf *b, const jobq__handout *h)
{
    add_field_text(b, "id", h->id);
    add_field(b, "name", h->name, h->name_n);
    add_field(b, "queue", h->queue, h->queue_n);
    jobq__buf_addf(b, ",\"attempt\":%lld,\"tries\":%lld",
                   (long long)(h->counters.failures + h->counters.crashes + 1),
                   (long long)h->policy.tries);
}

/* ---- the form -------------------------------------------------------------------------------- */

static void word_start(jobq__observer *o)
{
    const jobq_worker *worker = o->worker;

    begin(o, &o->line, "starting");
    if (worker->run_conf->s.name)
        add_field_text(&o->line, "name", worker->run_conf->s.name);
    jobq__buf_adds(&o->line, ",\"queues\":[");
    for (size_t i = 0; i < worker->queue_count; i++) {
        jobq__buf_adds(&o->line, i ? "," : "");
        add_text(&o->line, worker->queues[i], strlen(worker->queues[i]));
    }
    jobq__buf_addf(&o->line, "],\"processes\":%lld", (long long)worker->run_conf->s.processes);
    end(o);
}

static void word_processing(jobq__observer *o, const jobq__handout *h)
{
    begin(o, &o->line, "processing");
    add_job(&o->line, h);
    end(o);
}

/* Of whole numbers: the decimal sign is no matter of the host program's locale. */
static void add_seconds(jobq__buf *b, const char *key, int64_t ms)
{
    ms = ms > 0 ? ms : 0;
    jobq__buf_addf(b, ",\"%s\":%lld.%03d", key, (long long)(ms / 1000), (int)(ms % 1000));
}

static void word_end(jobq__observer *o, const jobq__end_seen *seen)
{
    const jobq__verdict *verdict = seen->verdict;
    jobq__buf *b = &o->line;

    begin(o, b, seen->word);
    add_job(b, seen->handout);
    add_field_text(b, "outcome", jobq_outcome_word(seen->ending));
    if (seen->took_ms >= 0)
        add_seconds(b, "took", seen->took_ms);
    if (verdict->op == JOBQ_OP_BACK)
        add_seconds(b, "delay", verdict->delay_ms);
    if (verdict->op == JOBQ_OP_DEAD)
        add_field_text(b, "reason", jobq__reason_word(verdict->reason));
    if (seen->fault) {
        add_field(b, "class", seen->fault->class_name.p, seen->fault->class_name.n);
        add_field(b, "message", seen->fault->message.p, seen->fault->message.n);
    }
    end(o);
}

static void word_note(jobq__observer *o, const char *text)
{
    begin(o, &o->line, "note");
    add_field_text(&o->line, "message", text);
    end(o);
}

static void word_pause(jobq__observer *o, bool paused, jobq_slice queue)
{
    begin(o, &o->line, paused ? "paused" : "resumed");
    add_field(&o->line, "queue", queue.p, queue.n);
    end(o);
}

static void word_stop(jobq__observer *o, const char *reason, int64_t jobs_run, int code)
{
    begin(o, &o->line, "stopping");
    add_field_text(&o->line, "reason", reason);
    jobq__buf_addf(&o->line, ",\"jobs\":%lld,\"code\":%d", (long long)jobs_run, code);
    end(o);
}

const jobq__form jobq__form_json = {word_start, word_processing, word_end,
                                    word_note,  word_pause,      word_stop};

/* ---- what is no line of ours ----------------------------------------------------------------- */

void jobq__json_output(jobq__observer *o, pid_t child, const char *p, size_t n)
{
    do {
        const size_t cut = jobq__utf8_cut(p, n, TEXT_MAX);

        jobq__buf_reset(&o->line);
        begin(o, &o->line, "output");
        jobq__buf_addf(&o->line, ",\"child\":%lld", (long long)child);
        add_field(&o->line, "text", p, cut);
        end(o);
        jobq__buf_addc(&o->line, '\n');
        if (!o->line.failed)
            jobq__output_pass(&o->out, o->line.p, o->line.n);
        p += cut;
        n -= cut;
    } while (n > 0);
}

void jobq__json_dropped(void *observer, jobq__buf *line, int64_t dropped)
{
    begin(observer, line, "dropped");
    jobq__buf_addf(line, ",\"lines\":%lld}\n", (long long)dropped);
}
