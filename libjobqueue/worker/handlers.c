/* SPDX-License-Identifier: MIT
 *
 * Looking things up in a worker: announced handlers and what they say, names for its record, the
 * text of a stop reason.
 */
#include <stdio.h>
#include <string.h>

#include "util/str.h"
#include "worker/worker.h"

static bool has_name(const jobq__handler *h, jobq_slice name)
{
    return h->name_n == name.n && memcmp(h->name, name.p, name.n) == 0;
}

int jobq__worker_find_handler(const jobq_worker *worker, jobq_slice name, int32_t version)
{
    for (size_t i = 0; i < worker->handler_count; i++) {
        const jobq__handler *h = &worker->handlers[i];

        if (h->version == version && has_name(h, name))
            return (int)i;
    }
    return -1;
}

/* A failed hook goes to whoever knows the name (rule F6): a job that died because nobody knew its
 * version is owed one, too. */
int jobq__worker_find_for(const jobq_worker *worker, jobq_slice queue, jobq_slice name,
                          int32_t version)
{
    int best = jobq__worker_find_handler(worker, name, version);

    for (size_t i = 0; i < worker->handler_count && best < 0 && jobq__queue_is_hidden(queue); i++)
        if (has_name(&worker->handlers[i], name))
            best = (int)i;
    return best;
}

const jobq_conf *jobq__worker_handler_conf(const jobq_worker *worker, int index)
{
    return index < 0 ? NULL : worker->handlers[index].conf;
}

uint16_t jobq__handler_seats(const jobq_conf *conf)
{
    return conf ? (uint16_t)conf->s.async_concurrency : 1;
}

uint32_t jobq__worker_seats(const jobq_worker *worker)
{
    uint32_t most = 1;

    for (size_t i = 0; i < worker->handler_count; i++) {
        const uint32_t seats = jobq__handler_seats(worker->handlers[i].conf);

        most = seats > most ? seats : most;
    }
    return most;
}

int jobq_worker_find(const jobq_worker *worker, const jobq_job *job)
{
    return jobq__worker_find_for(worker, job->queue, job->name, job->version);
}

static const jobq_conf *conf_for(const jobq_worker *worker, const jobq_job *job)
{
    return jobq__worker_handler_conf(worker, jobq_worker_find(worker, job));
}

const char *jobq_worker_dont_retry(const jobq_worker *worker, const jobq_job *job, size_t i)
{
    const jobq_conf *conf = conf_for(worker, job);

    if (!conf || !jobq__conf_given(conf, dont_retry))
        conf = worker->run_conf ? worker->run_conf : worker->conf;
    return i < conf->s.dont_retry.count ? conf->s.dont_retry.names[i] : NULL;
}

jobq_ending jobq__worker_ending(const jobq_worker *worker, const jobq_job *job, jobq_ending ending)
{
    const jobq_slice thrown = job->fault.class_name;
    const char *name;

    for (size_t i = 0; ending == JOBQ_ENDED_FAILED && thrown.n > 0 &&
                       (name = jobq_worker_dont_retry(worker, job, i)) != NULL;
         i++)
        if (jobq__slice_equal(thrown, jobq__slice_text(name)))
            return JOBQ_ENDED_NOT_RETRYABLE;
    return ending;
}

bool jobq_worker_maps_as_objects(const jobq_worker *worker, const jobq_job *job)
{
    const jobq_conf *conf = conf_for(worker, job);

    return conf && conf->s.maps == 1;
}

void jobq__worker_names(const jobq_worker *worker, jobq__buf *out)
{
    for (size_t i = 0; i < worker->handler_count; i++) {
        jobq__buf_add(out, worker->handlers[i].name, worker->handlers[i].name_n);
        jobq__buf_addf(out, "@%d\n", (int)worker->handlers[i].version);
    }
}

void jobq__worker_queues(const jobq_worker *worker, jobq__buf *out)
{
    for (size_t i = 0; i < worker->queue_count; i++) {
        jobq__buf_adds(out, worker->queues[i]);
        jobq__buf_addc(out, '\n');
    }
}

#define STOP_TEXT(name, text) text,
static const char *const stop_texts[] = {JOBQ__STOP_LIST(STOP_TEXT)};

void jobq__worker_stop_text(const jobq__words *words, char *out, size_t size)
{
    const uint32_t reason = atomic_load(&words->stop_reason);
    const char *text = stop_texts[reason < JOBQ__STOPS ? reason : JOBQ__STOP_NONE];
    const int64_t number = atomic_load(&words->stop_number);
    const char *note = reason == JOBQ__STOP_EMPTY ? words->stop_note : "";
    const char *gap = strstr(text, "%lld"), *end = gap ? strstr(gap + 4, "%s") : NULL;

    if (!gap)
        snprintf(out, size, "%s%s", text, note);
    else if (!end)
        snprintf(out, size, "%.*s%lld%s", (int)(gap - text), text, (long long)number, gap + 4);
    else
        snprintf(out, size, "%.*s%lld%.*s%s%s", (int)(gap - text), text, (long long)number,
                 (int)(end - gap - 4), gap + 4, jobq__plural(number), end + 2);
}
