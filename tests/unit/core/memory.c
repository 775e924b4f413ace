/* SPDX-License-Identifier: MIT
 *
 * Memory running out: every public call of the queue is repeated with its first, second, ...
 * allocation failing until it succeeds. It must answer JOBQ_ENOMEM (or, where the store cannot know
 * better, another code), leak nothing (run under ASan), and leave the handle usable.
 */
#include <jobqueue/jobqueue.h>

#include "store.h"
#include "util/alloc.h"

typedef struct {
    jobq_queue *queue;
    char dead[129];
} fixture;

static int64_t make_conf(fixture *f)
{
    jobq_conf *a = jobq_conf_new(JOBQ_SCOPE_WORKER, 0), *b = jobq_conf_new(JOBQ_SCOPE_WORKER, 0);
    int rc = a && b ? 0 : JOBQ_ENOMEM;

    (void)f;
    rc = rc ? rc : jobq_conf_set(a, "dont_retry", "A,B", 3);
    rc = rc ? rc : jobq_conf_set(a, "name", "worker", 6);
    rc = rc ? rc : jobq_conf_merge(b, a);
    jobq_conf_free(a);
    jobq_conf_free(b);
    return rc;
}

static int64_t make_queue(fixture *f)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, 0);
    jobq_queue *queue = NULL;
    int rc = conf ? jobq_conf_set(conf, "queue", "mail", 4) : JOBQ_ENOMEM;

    (void)f;
    rc = rc ? rc : jobq_queue_new("memory:", conf, &queue);
    jobq_queue_free(queue);
    jobq_conf_free(conf);
    return rc;
}

static int64_t push_one(fixture *f)
{
    jobq_message *m = jobq_message_new();
    jobq_writer *w = m ? jobq_message_payload(m) : NULL;
    int rc = w ? jobq_message_set_name(m, "n", 1) : JOBQ_ENOMEM;

    rc = rc ? rc : jobq_conf_set(jobq_message_options(m), "queue", "q", 1);
    rc = rc ? rc : jobq_message_add_context(m, "k", 1, "v", 1);
    rc = rc ? rc : jobq_writer_str(w, "text", 4);
    rc = rc ? rc : jobq_queue_push(f->queue, m);
    jobq_message_free(m);
    return rc;
}

static int64_t push_two(fixture *f)
{
    jobq_message *m[2] = {jobq_message_new(), jobq_message_new()};
    int64_t rc = m[0] && m[1] ? 0 : JOBQ_ENOMEM;

    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = jobq_message_set_name(m[i], "n", 1);
        rc = rc ? rc : jobq_conf_set(jobq_message_options(m[i]), "queue", "q", 1);
    }
    rc = rc ? rc : jobq_queue_push_many(f->queue, m, 2);
    for (int i = 0; i < 2; i++)
        if (rc > 0 && jobq_message_result(m[i]) < 0)
            rc = jobq_message_result(m[i]);
    jobq_message_free(m[0]);
    jobq_message_free(m[1]);
    return rc;
}

static int64_t reserve_and_fail(fixture *f)
{
    static const char *const names[] = {"q"};
    jobq_job *job = NULL;
    int rc = jobq_queue_reserve(f->queue, names, 1, 30000, &job);

    if (rc == 1) {
        jobq_job_set_error(job, "C", 1, "m", 1, NULL, 0, NULL, 0);
        rc = jobq_job_retry(job, 0);
        if (rc < 0) {
            jobq__alloc_fail_at(0, 0);
            jobq_job_settle(job, JOBQ_ENDED_UNSTARTED, -1);
        }
    }
    jobq_job_free(job);
    return rc;
}

static int64_t push_guarded(fixture *f)
{
    const jobq_param params[] = {{.type = JOBQ_PARAM_TEXT, .bytes = {"x", 1}}};
    const jobq_statement guard = {{"SELECT ?1", 9}, params, 1};
    const bool memory = strcmp(jobq_queue_driver(f->queue), "memory") == 0;
    jobq_message *m = jobq_message_new();
    const jobq_statement *given;
    int rc = m ? jobq_message_set_name(m, "n", 1) : JOBQ_ENOMEM;

    rc = rc ? rc : jobq_conf_set(jobq_message_options(m), "queue", "q", 1);
    if (rc == 0 && !memory)
        rc = jobq_queue_push_statement(f->queue, m, JOBQ_PLACEHOLDER_FORMAT, &given);
    rc = rc ? rc : jobq_message_set_guard(m, memory ? NULL : &guard);
    rc = rc ? rc : jobq_queue_push(f->queue, m);
    jobq_message_free(m);
    return rc;
}

static int64_t push_limited(fixture *f)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, 0);
    jobq_queue *queue = NULL;
    fixture own = {0};
    int64_t rc = conf ? jobq_conf_set(conf, "capacity", "5", 1) : JOBQ_ENOMEM;

    (void)f;
    rc = rc ? rc : jobq_queue_new("memory:", conf, &queue);
    own.queue = queue;
    rc = rc ? rc : push_two(&own);
    jobq_queue_free(queue);
    jobq_conf_free(conf);
    return rc;
}

/* A tracked job from its push to its result. */
static int64_t track(fixture *f)
{
    static const char *const names[] = {"t"};
    jobq_message *m = jobq_message_new();
    jobq_info *info = NULL;
    jobq_job *job = NULL;
    int rc = m ? jobq_message_set_name(m, "n", 1) : JOBQ_ENOMEM;

    rc = rc ? rc : jobq_conf_set(jobq_message_options(m), "queue", "t", 1);
    rc = rc ? rc : jobq_conf_set_bool(jobq_message_options(m), "track", true);
    rc = rc ? rc : jobq_queue_push(f->queue, m);
    rc = rc ? rc : jobq_queue_reserve(f->queue, names, 1, 30000, &job);
    rc = rc < 0 || !job ? rc : jobq_job_progress(job, 5, "note", 4);
    rc = rc < 0 || !job ? rc : jobq_job_set_result(job, JOBQ_FORMAT_JSON, "7", 1);
    rc = rc < 0 || !job ? rc : jobq_job_done(job);
    if (rc == 0 && job)
        rc = jobq_queue_wait(f->queue, jobq_job_id(job), strlen(jobq_job_id(job)), 0, &info);
    if (rc == 0 && info) {
        jobq_info_result(info, NULL, NULL, NULL);
        jobq_info_progress(info, NULL, NULL);
    }
    jobq_info_free(info);
    if (rc < 0 && job) {
        jobq__alloc_fail_at(0, 0);
        jobq_job_settle(job, JOBQ_ENDED_UNSTARTED, -1);
    }
    jobq_job_free(job);
    jobq_message_free(m);
    return rc;
}

static void ignore(void *payload, const jobq_finding *finding)
{
    (void)payload;
    (void)finding;
}

static int64_t watch(fixture *f)
{
    jobq_minute_stats *list = NULL;
    size_t n;
    int64_t rc = jobq_queue_minutes(f->queue, "q", 1, 60, &list, &n);

    jobq_minutes_free(list);
    return rc < 0 ? rc : jobq_queue_audit(f->queue, ignore, NULL, NULL);
}

static int64_t look(fixture *f)
{
    const char *name, *value;
    jobq_info *info = NULL;
    jobq_list *list = NULL;
    char **names = NULL;
    size_t n = 0;
    int rc = jobq_queue_find(f->queue, f->dead, strlen(f->dead), &info);

    rc = rc ? rc : jobq_info_check(info);
    if (rc == 0) {
        jobq_info_error(info, NULL, NULL, NULL, NULL);
        jobq_info_attempt(info, 0, NULL, NULL, NULL, NULL, NULL, NULL);
        jobq_info_option(info, 0, &name, &value);
    }
    rc = rc ? rc : jobq_queue_dead(f->queue, NULL, 10, NULL, &list);
    rc = rc ? rc : jobq_queue_names(f->queue, &names, &n);
    jobq_info_free(info);
    jobq_list_free(list);
    jobq_names_free(names, n);
    return rc;
}

static int64_t mend(fixture *f)
{
    return jobq_queue_mend(f->queue, JOBQ_DEAD_RETRY, NULL, true, NULL, NULL, NULL);
}

static const struct {
    const char *name;
    int64_t (*call)(fixture *f);
} calls[] = {
    {"conf", make_conf},
    {"queue", make_queue},
    {"push", push_one},
    {"push_many", push_two},
    {"reserve", reserve_and_fail},
    {"look", look},
    {"mend", mend},
    {"guard", push_guarded},
    {"capacity", push_limited},
    {"track", track},
    {"watch", watch},
};

static void exhaust(fixture *f, size_t which, int sticky)
{
    for (int n = 1; n < 400; n++) {
        int64_t before = jobq__alloc_count(), rc;
        bool reached;

        jobq__alloc_fail_at(n, sticky);
        rc = calls[which].call(f);
        reached = jobq__alloc_count() - before >= n;
        jobq__alloc_fail_at(0, 0);
        if (!reached) {
            assert_true(rc >= 0);
            return;
        }
        if (rc >= 0 || rc == JOBQ_ENOMEM)
            continue; /* it may do without, as recording an error does */
        fail_msg("%s, allocation %d: %s (%s)", calls[which].name, n, jobq_error_word((int)rc),
                 jobq_error_message(jobq_error_last()));
    }
    fail_msg("%s never ends", calls[which].name);
}

static void every_call_survives(void **state)
{
    fixture f = {.queue = *state};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (int sticky = 0; sticky < 2; sticky++) {
            jobq_job *job;

            push(f.queue, "n", "tries", "1", f.dead);
            while ((job = reserve(f.queue)) != NULL) {
                assert_ok(jobq_job_fail(job));
                jobq_job_free(job);
            }
            push(f.queue, "n", "tries", "1", NULL);
            exhaust(&f, i, sticky);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {on_both(every_call_survives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
