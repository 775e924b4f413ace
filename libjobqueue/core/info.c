/* SPDX-License-Identifier: MIT
 *
 * One job as it stands: its fields, and header, error and history decoded when somebody asks.
 * What cannot be decoded never keeps the rest from being shown.
 */
#include <stdio.h>
#include <string.h>

#include "core/fault.h"
#include "core/inspect.h"
#include "core/outcome.h"
#include "core/retry.h"
#include "util/error.h"

enum { OPTIONS_MAX = 12, OPTION_TEXT = 512 };

struct jobq__shown_option {
    const char *name;
    char value[OPTION_TEXT];
};

/* ---- fields ---------------------------------------------------------------------------------- */

static jobq_slice text_field(const jobq_record *r, jobq_info_text_field which)
{
    switch (which) {
    case JOBQ_INFO_ID:
        return r->id;
    case JOBQ_INFO_NAME:
        return r->name;
    case JOBQ_INFO_QUEUE:
        return r->queue;
    case JOBQ_INFO_RESERVED_BY:
        return r->reserved_by;
    case JOBQ_INFO_REASON:
        return r->reason ? jobq__slice_text(jobq__reason_word(r->reason)) : (jobq_slice){0};
    case JOBQ_INFO_UNIQUE:
        return r->unique;
    }
    return (jobq_slice){0};
}

const char *jobq_info_text(const jobq_info *info, jobq_info_text_field which, size_t *n_out)
{
    jobq_slice s = text_field(info->record, which);

    if (n_out)
        *n_out = s.p ? s.n : 0;
    return s.p;
}

int64_t jobq_info_number(const jobq_info *info, jobq_info_number_field which)
{
    const jobq_record *r = info->record;
    const int64_t values[] = {
        [JOBQ_INFO_STATE] = r->state,
        [JOBQ_INFO_VERSION] = r->version,
        [JOBQ_INFO_PRIORITY] = r->priority,
        [JOBQ_INFO_ATTEMPT] = r->counters.failures + r->counters.crashes + 1,
        [JOBQ_INFO_DELIVERIES] = r->counters.deliveries,
        [JOBQ_INFO_FAILURES] = r->counters.failures,
        [JOBQ_INFO_CRASHES] = r->counters.crashes,
        [JOBQ_INFO_RELEASES] = r->counters.releases,
        [JOBQ_INFO_LOSSES] = r->counters.losses,
        [JOBQ_INFO_FENCE] = r->fence,
        [JOBQ_INFO_ENQUEUED_AT_MS] = r->enqueued_at_ms,
        [JOBQ_INFO_AVAILABLE_AT_MS] = r->available_at_ms,
        [JOBQ_INFO_RESERVED_UNTIL_MS] = r->reserved_until_ms,
        [JOBQ_INFO_DIED_AT_MS] = r->died_at_ms,
        [JOBQ_INFO_KEPT_UNTIL_MS] = r->state >= JOBQ_DONE ? r->keep_until_ms : 0,
        [JOBQ_INFO_PUT_ASIDE] = r->state <= JOBQ_DELAYED && r->counters.parked_since_ms != 0,
        [JOBQ_INFO_CANCEL] = r->cancel,
    };

    return (size_t)which < sizeof(values) / sizeof(values[0]) ? values[which] : 0;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Decodes the header once; a header that cannot be read counts as one that says nothing. */
static jobq_info *with_header(const jobq_info *shown)
{
    jobq_info *info = (jobq_info *)shown;

    if (info->header_read)
        return info;
    info->header_read = true;
    info->header_problem = jobq__envelope_read(info->record->header, &info->arena, &info->header);
    if (info->header_problem) {
        int format = info->header.format;

        memset(&info->header, 0, sizeof(info->header));
        info->header.format = format;
    }
    return info;
}

const void *jobq_info_body(const jobq_info *info, size_t *n_out, int *format_out)
{
    if (n_out)
        *n_out = info->record->body.n;
    if (format_out)
        *format_out = with_header(info)->header.format;
    return info->record->body.p;
}

bool jobq_info_context(const jobq_info *info, size_t i, const char **key, size_t *key_n,
                       const char **value, size_t *value_n)
{
    const jobq__header *h = &with_header(info)->header;

    if (i >= h->context_count)
        return false;
    *key = h->context[i].key.p;
    *key_n = h->context[i].key.n;
    *value = h->context[i].value.p;
    *value_n = h->context[i].value.n;
    return true;
}

int jobq_info_check(const jobq_info *info)
{
    const jobq_record *r = info->record;
    jobq__arena arena = {0};
    jobq__header header;
    int rc;

    jobq__error_clear();
    if (info->gone)
        return jobq__error_set(JOBQ_EPAYLOAD, "the job is gone, and its payload with it");
    if (jobq_info_number(info, JOBQ_INFO_STATE) == JOBQ_DONE && r->body.n == 0)
        return jobq__error_set(JOBQ_EPAYLOAD, "the job is done, and only its id was kept");
    rc = jobq__envelope_read(r->header, &arena,
                             &header); /* again, so that the error is worded again */
    jobq__arena_free(&arena);
    if (rc == 0)
        return jobq_payload_check(header.format, r->body.p, r->body.n);
    return rc == JOBQ_ENOMEM
               ? rc
               : jobq__error_set(JOBQ_EPAYLOAD, "%s", jobq_error_message(jobq_error_last()));
}

/* ---- options as text ------------------------------------------------------------------------- */

/* Milliseconds as seconds with only the digits that are needed: 1500 -> "1.5". */
static size_t put_seconds(char *out, size_t size, int64_t ms)
{
    int n = snprintf(out, size, "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));

    while (n > 1 && out[n - 1] == '0')
        out[--n] = '\0';
    if (n > 1 && out[n - 1] == '.')
        out[--n] = '\0';
    return (size_t)n;
}

static char *add_option(jobq_info *info, const char *name)
{
    jobq__shown_option *o = &info->options[info->option_count++];

    o->name = name;
    return o->value;
}

static void show_moment(jobq_info *info, const char *name, int64_t ms, bool relative)
{
    char *out = add_option(info, name);

    if (!relative)
        *out++ = '@';
    put_seconds(out, OPTION_TEXT - 1, ms);
}

static void show_backoff(jobq_info *info, const jobq__header *h)
{
    char *out = add_option(info, "backoff");
    size_t used = 0;

    if (h->backoff_exponential)
        used = (size_t)snprintf(out, OPTION_TEXT, "exponential:");
    for (int i = 0; i < (h->backoff_exponential ? 2 : h->backoff_count) && used + 32 < OPTION_TEXT;
         i++) {
        if (i)
            out[used++] = ',';
        used += put_seconds(out + used, OPTION_TEXT - used, h->backoff_ms[i]);
    }
}

static void make_options(jobq_info *info)
{
    const jobq__header *h = &with_header(info)->header;

    if (info->options_made)
        return;
    info->options = jobq__arena_alloc(&info->arena, OPTIONS_MAX * sizeof(*info->options));
    if (!info->options)
        return;
    info->options_made = true;
    if (h->has_tries)
        snprintf(add_option(info, "tries"), OPTION_TEXT, "%lld", (long long)h->tries);
    if (h->has_timeout)
        put_seconds(add_option(info, "timeout"), OPTION_TEXT, h->timeout_ms);
    if (h->has_backoff)
        show_backoff(info, h);
    if (h->has_retry_until)
        show_moment(info, "retry_until", h->retry_until_ms, h->retry_until_relative);
    if (h->has_expires)
        show_moment(info, "expires", h->expires_ms, h->expires_relative);
    if (h->drop_expired)
        snprintf(add_option(info, "on_expire"), OPTION_TEXT, "drop");
    if (h->until_started)
        snprintf(add_option(info, "unique_scope"), OPTION_TEXT, "until_started");
    if (h->idempotent_for_ms) {
        snprintf(add_option(info, "idempotent"), OPTION_TEXT, "true");
        put_seconds(add_option(info, "idempotent_for"), OPTION_TEXT, h->idempotent_for_ms);
    }
    if (h->track)
        snprintf(add_option(info, "track"), OPTION_TEXT, "true");
}

bool jobq_info_option(const jobq_info *info, size_t i, const char **name, const char **value)
{
    jobq_info *mine = (jobq_info *)info;

    make_options(mine);
    if (i >= mine->option_count)
        return false;
    *name = mine->options[i].name;
    *value = mine->options[i].value;
    return true;
}

/* ---- progress and result --------------------------------------------------------------------- */

/* Decodes it once; one that cannot be read counts as none. */
static const jobq__outcome *outcome_of(const jobq_info *shown)
{
    jobq_info *info = (jobq_info *)shown;

    if (!info->outcome_read && info->record->outcome.p)
        jobq__outcome_read(info->record->outcome, &info->arena, &info->outcome);
    info->outcome_read = true;
    return &info->outcome;
}

bool jobq_info_progress(const jobq_info *info, double *percent_out, const char **note_out)
{
    const jobq__outcome *o = outcome_of(info);

    if (percent_out)
        *percent_out = o->percent;
    if (note_out)
        *note_out = o->note.p;
    return o->has_percent;
}

const void *jobq_info_result(const jobq_info *info, size_t *n_out, int *format_out,
                             const char **refusal_out)
{
    const jobq__outcome *o = outcome_of(info);

    if (n_out)
        *n_out = o->body.p ? o->body.n : 0;
    if (format_out)
        *format_out = o->format;
    if (refusal_out)
        *refusal_out = o->refusal.p;
    return o->body.p;
}

/* ---- error and history ----------------------------------------------------------------------- */

static void give(const char **out, jobq_slice s)
{
    if (out)
        *out = s.p;
}

bool jobq_info_error(const jobq_info *info, const char **class_name, const char **message,
                     const char **where, const char **trace)
{
    jobq_info *mine = (jobq_info *)info;
    jobq__fault fault;

    if (!info->record->error.p)
        return false;
    if (!jobq__fault_read(info->record->error, &mine->arena, &fault))
        fault = (jobq__fault){.message = jobq__slice_text("error text could not be read")};
    give(class_name, fault.class_name);
    give(message, fault.message);
    give(where, fault.where);
    give(trace, fault.trace);
    return true;
}

bool jobq_info_attempt_shared(const jobq_info *info, size_t i)
{
    jobq_info *mine = (jobq_info *)info;
    jobq__entry entry;

    return i < info->record->history_count &&
           jobq__entry_read(info->record->history[i], &mine->arena, &entry) && entry.shared;
}

bool jobq_info_attempt(const jobq_info *info, size_t i, int64_t *started_at_ms,
                       int64_t *ended_at_ms, const char **worker, const char **outcome,
                       const char **class_name, const char **message)
{
    jobq_info *mine = (jobq_info *)info;
    jobq__entry entry;

    if (i >= info->record->history_count)
        return false;
    if (!jobq__entry_read(info->record->history[i], &mine->arena, &entry))
        entry = (jobq__entry){.outcome = jobq__slice_text("unreadable")};
    if (started_at_ms)
        *started_at_ms = entry.started_at_ms;
    if (ended_at_ms)
        *ended_at_ms = entry.ended_at_ms;
    give(worker, entry.worker);
    give(outcome, entry.outcome);
    give(class_name, entry.class_name);
    give(message, entry.message);
    return true;
}
