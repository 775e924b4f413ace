/* SPDX-License-Identifier: MIT
 *
 * What a job's program finds in its environment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

extern char **environ;

typedef struct {
    const char *name;
    jobq_job_number which;
} number_field;

/* Times as seconds, like everywhere outside of the library. */
static const number_field numbers[] = {
    {"VERSION", JOBQ_JOB_VERSION},       {"PRIORITY", JOBQ_JOB_PRIORITY},
    {"ATTEMPT", JOBQ_JOB_ATTEMPT},       {"FAILURES", JOBQ_JOB_FAILURES},
    {"CRASHES", JOBQ_JOB_CRASHES},       {"RELEASES", JOBQ_JOB_RELEASES},
    {"DELIVERIES", JOBQ_JOB_DELIVERIES}, {"LOSSES", JOBQ_JOB_LOSSES},
    {"FENCE", JOBQ_JOB_FENCE},           {"TRIES", JOBQ_JOB_TRIES}};
static const number_field times[] = {{"TIMEOUT", JOBQ_JOB_TIMEOUT_MS},
                                     {"ENQUEUED_AT", JOBQ_JOB_ENQUEUED_AT_MS}};
enum {
    NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
    TIMES = sizeof(times) / sizeof(times[0]),
    TEXTS = 4
};

static char *join(const char *name, const char *value, size_t n)
{
    const size_t head = strlen("JOBQUEUE_") + strlen(name) + 1;
    char *text = malloc(head + n + 1);

    if (text) {
        snprintf(text, head + 1, "JOBQUEUE_%s=", name);
        memcpy(text + head, value, n);
        text[head + n] = '\0';
    }
    return text;
}

static char *join_number(const number_field *f, int64_t value, int64_t unit)
{
    char text[48];
    int n = unit == 1 ? snprintf(text, sizeof(text), "%lld", (long long)value)
                      : snprintf(text, sizeof(text), "%lld.%03lld", (long long)(value / unit),
                                 (long long)(value % unit));

    return join(f->name, text, (size_t)n);
}

/* The context as a JSON object, by way of the payload writer. */
static char *join_context(const jobq_job *job)
{
    jobq_writer *w = jobq_writer_new(1 << 20);
    const char *key, *value;
    size_t key_n, value_n, count = 0, n;
    const void *body;
    char *json = NULL, *text;

    while (jobq_job_context(job, count, &key, &key_n, &value, &value_n))
        count++;
    if (w)
        jobq_writer_map(w, count);
    for (size_t i = 0; w && jobq_job_context(job, i, &key, &key_n, &value, &value_n); i++) {
        jobq_writer_str(w, key, key_n);
        jobq_writer_str(w, value, value_n);
    }
    if (w && jobq_writer_finish(w, &body, &n) == 0)
        (void)(jobq_payload_to_json(JOBQ_FORMAT_MSGPACK, body, n, &json, &n) == 0);
    text = json ? join("CONTEXT", json, n) : join("CONTEXT", "{}", 2);
    jobq_text_free(json);
    jobq_writer_free(w);
    return text;
}

/* Is it one of the names that we set? */
static bool is_ours(const char *entry, char *const *fields, size_t count)
{
    const size_t n = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < count; i++)
        if (fields[i] && strncmp(entry, fields[i], n) == 0)
            return true;
    return false;
}

static size_t add_fields(char **fields, const jobq_job *job)
{
    size_t n, count = 0;
    const char *text;

    text = jobq_job_id(job);
    fields[count++] = join("ID", text, strlen(text));
    text = jobq_job_name(job, &n);
    fields[count++] = join("NAME", text, n);
    text = jobq_job_queue(job, &n);
    fields[count++] = join("QUEUE", text, n);
    fields[count++] = join_context(job);
    for (size_t i = 0; i < NUMBERS; i++)
        fields[count++] = join_number(&numbers[i], jobq_job_get(job, numbers[i].which), 1);
    for (size_t i = 0; i < TIMES; i++)
        fields[count++] = join_number(&times[i], jobq_job_get(job, times[i].which), 1000);
    return count;
}

void fields_free(char **fields)
{
    for (size_t i = 0; fields && i < TEXTS + NUMBERS + TIMES; i++)
        free(fields[i]);
    free(fields);
}

/* The first entries are ours, the rest is borrowed from the environment. */
char **fields_make(const jobq_job *job)
{
    size_t inherited = 0, count;
    char **fields;

    while (environ && environ[inherited])
        inherited++;
    fields = calloc(TEXTS + NUMBERS + TIMES + inherited + 1, sizeof(*fields));
    if (!fields)
        return NULL;
    count = add_fields(fields, job);
    for (size_t i = 0; i < count; i++)
        if (!fields[i]) {
            fields_free(fields);
            return NULL;
        }
    for (size_t i = 0, own = count; i < inherited; i++)
        if (!is_ours(environ[i], fields, own))
            fields[count++] = environ[i];
    return fields;
}
