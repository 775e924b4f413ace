/* SPDX-License-Identifier: MIT
 *
 * Events that travel to children: a handful of data behind a job message. Both ends are one
 * program, so the form is plain: per datum a kind, key and text each ended by NUL, then the number.
 */
#include <string.h>

#include "util/str.h"
#include "worker/worker.h"

enum { DATUM_TEXT = 't', DATUM_NUMBER = 'n', MESSAGE_MAX = 1024 };

#define ROW(name, where) name,
static const char *const names[] = {JOBQ_EVENT_LIST(ROW)};
#undef ROW

const char *jobq_event_list(size_t i)
{
    return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

static const char *next_name(void *payload, size_t i)
{
    (void)payload;
    return jobq_event_list(i);
}

const char *jobq_event_nearest(const char *name)
{
    return jobq__str_nearest(name, next_name, NULL);
}

const char *jobq_event_name(const jobq_event *event)
{
    return event ? event->name : "";
}

jobq_job *jobq_event_job(const jobq_event *event)
{
    return event ? event->job : NULL;
}

const char *jobq_event_queue(const jobq_event *event, size_t *n_out)
{
    const bool none = !event || event->queue.n == 0;

    if (n_out)
        *n_out = none ? 0 : event->queue.n;
    return none ? NULL : event->queue.p;
}

bool jobq_event_data(const jobq_event *event, size_t i, const char **key, const char **text,
                     double *number, bool *is_number)
{
    if (!event || i >= event->data_count)
        return false;
    if (key)
        *key = event->data[i].key;
    if (text)
        *text = event->data[i].text;
    if (number)
        *number = event->data[i].number;
    if (is_number)
        *is_number = event->data[i].is_number;
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_datum(jobq__buf *out, char kind, const char *key, const char *text, double number)
{
    jobq__buf_addc(out, kind);
    jobq__buf_add(out, key, strlen(key) + 1);
    jobq__buf_add(out, text, strlen(text) + 1);
    jobq__buf_add(out, &number, sizeof(number));
}

static void add_number(jobq__buf *out, const char *key, double number)
{
    char text[40];

    jobq__str_put_double(text, 15, number);
    add_datum(out, DATUM_NUMBER, key, text, number);
}

static void add_text(jobq__buf *out, const char *key, jobq_slice value)
{
    char text[MESSAGE_MAX + 1];
    size_t n = value.p ? jobq__utf8_cut(value.p, value.n, MESSAGE_MAX) : 0;

    if (n == 0)
        return;
    jobq__str_one_line(text, sizeof(text), value.p, n);
    add_datum(out, DATUM_TEXT, key, text, 0);
}

void jobq__event_write_data(jobq__buf *out, const jobq__datum *data, size_t n)
{
    jobq__buf_reset(out);
    for (size_t i = 0; i < n; i++) {
        if (data[i].text)
            add_text(out, data[i].key, jobq__slice_text(data[i].text));
        else
            add_number(out, data[i].key, data[i].number);
    }
}

void jobq__event_write(jobq__buf *out, const jobq__handout *h, jobq_ending ending,
                       const jobq__verdict *verdict, int64_t took_ms, const jobq__fault *fault)
{
    jobq__buf_reset(out);
    add_number(out, "attempt", (double)(h->counters.failures + h->counters.crashes + 1));
    add_text(out, "outcome", jobq__slice_text(jobq_outcome_word(ending)));
    if (verdict && verdict->op == JOBQ_OP_BACK)
        add_number(out, "delay", (double)verdict->delay_ms / 1000);
    if (verdict && verdict->op == JOBQ_OP_DEAD)
        add_text(out, "reason", jobq__slice_text(jobq__reason_word(verdict->reason)));
    if (took_ms >= 0)
        add_number(out, "took", (double)took_ms / 1000);
    if (fault) {
        add_text(out, "class", fault->class_name);
        add_text(out, "message", fault->message);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The NUL-terminated text at *p, NULL when it does not end. */
static const char *next_text(const char **p, const char *end)
{
    const char *text = *p, *stop = memchr(text, '\0', (size_t)(end - text));

    if (stop)
        *p = stop + 1;
    return stop ? text : NULL;
}

static bool read_datum(jobq_event *event, const char **p, const char *end)
{
    char kind = *(*p)++;
    const char *key = next_text(p, end), *text = key ? next_text(p, end) : NULL;
    size_t i = event->data_count;

    if (!text || (size_t)(end - *p) < sizeof(double) ||
        i >= sizeof(event->data) / sizeof(event->data[0]))
        return false;
    event->data[i].key = key;
    event->data[i].text = text;
    event->data[i].is_number = kind == DATUM_NUMBER;
    memcpy(&event->data[i].number, *p, sizeof(double));
    *p += sizeof(double);
    event->data_count++;
    return true;
}

/* Takes a copy into the event's arena. */
bool jobq__event_read(jobq_event *event, const char *name, size_t name_n, const void *data,
                      size_t data_n)
{
    const char *p, *end;

    jobq__arena_reset(&event->arena);
    event->data_count = 0;
    event->name = jobq__arena_copy(&event->arena, name, name_n);
    p = jobq__arena_copy(&event->arena, data, data_n);
    if (!event->name || !p)
        return false;
    for (end = p + data_n; p < end;)
        if (!read_datum(event, &p, end))
            return false;
    return true;
}
