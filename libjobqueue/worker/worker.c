/* SPDX-License-Identifier: MIT
 *
 * The public face of the worker: options and handlers before the start, the choice between pool and
 * inline mode, and the step API, which goes to child.c or inline.c.
 */
#include "worker/worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/once.h"

/* ---- making one ------------------------------------------------------------------------------ */

static jobq_conf *copy_conf(const jobq_conf *conf, int scope)
{
    return conf ? jobq__conf_copy(conf) : jobq_conf_new(scope, JOBQ_STYLE_SNAKE);
}

static int check_scope(const jobq_conf *conf, int scope, const char *what)
{
    if (conf && conf->scope != scope)
        return jobq__error_set(JOBQ_EINVAL, "%s: these options were made for something else", what);
    return 0;
}

/* Rule L2: workers made before a restart end by it. A store that cannot be asked now is asked when
 * the run begins. */
static void read_generation(jobq_worker *worker)
{
    jobq_control c = {.what = JOBQ_CONTROL_READ, .out = &worker->queue->batch};

    jobq__batch_reset(c.out);
    worker->generation = jobq__store_control(worker->queue->store, &c) < 0 ? -1 : c.generation;
    jobq__error_clear();
}

void jobq_worker_set_generation(jobq_worker *worker, int64_t generation)
{
    worker->generation = generation < 0 ? -1 : generation;
}

int jobq_worker_new(jobq_queue *queue, const jobq_conf *conf, jobq_worker **worker_out)
{
    jobq_worker *worker;
    int rc;

    jobq__error_clear();
    if (!queue)
        return jobq__error_set(JOBQ_EINVAL, "a worker needs a queue");
    if ((rc = check_scope(conf, JOBQ_SCOPE_WORKER, "worker")) < 0)
        return rc;
    worker = jobq__zalloc(sizeof(*worker));
    if (!worker)
        return jobq__error_nomem();
    worker->queue = queue;
    worker->role = -1;
    worker->stamp = jobq__process_stamp();
    jobq__ident_worker(worker->id);
    worker->conf = copy_conf(conf, JOBQ_SCOPE_WORKER);
    if (!worker->conf) {
        jobq_worker_free(worker);
        return jobq__error_nomem();
    }
    read_generation(worker);
    *worker_out = worker;
    return 0;
}

static void free_queues(jobq_worker *worker)
{
    for (size_t i = 0; i < worker->queue_count; i++)
        jobq__free(worker->queues[i]);
    jobq__free(worker->queues);
    worker->queues = NULL;
    worker->queue_count = 0;
}

/* An inline run that was left in the middle is ended first. A fork's copy lets go of memory only:
 * pipes and mappings are its parent's too, and closing its own ends of them hurts nobody. */
void jobq_worker_free(jobq_worker *worker)
{
    if (!worker)
        return;
    if (worker->inl && worker->stamp == jobq__process_stamp())
        jobq_worker_finish(worker);
    for (size_t i = 0; i < worker->handler_count; i++) {
        jobq__free(worker->handlers[i].name);
        jobq_conf_free(worker->handlers[i].conf);
    }
    jobq__free(worker->handlers);
    free_queues(worker);
    jobq_conf_free(worker->conf);
    jobq_conf_free(worker->run_conf);
    jobq__free(worker->ready_file);
    jobq__sink_clear(worker);
    jobq__hook_close(worker);
    jobq__job_release_memory(&worker->job);
    if (worker->role != JOBQ_ROLE_CHILD)
        jobq__shared_free(&worker->shared);
    jobq__free(worker);
}

/* ---- before the start ------------------------------------------------------------------------ */

static int check_open(const jobq_worker *worker, const char *what)
{
    return worker->role < 0
               ? 0
               : jobq__error_set(JOBQ_EINVAL, "%s must come before the worker's start", what);
}

static int check_handler(const jobq_worker *worker, const char *name, size_t n, int version,
                         const jobq_conf *conf)
{
    int rc;

    if ((rc = check_open(worker, "handlers")) < 0 || (rc = jobq__check_name(name, n)) < 0 ||
        (rc = check_scope(conf, JOBQ_SCOPE_HANDLER, "handler")) < 0)
        return rc;
    if (version < 1)
        return jobq__error_set(JOBQ_EINVAL, "version %d of handler \"%.*s\": 1 or more", version,
                               (int)n, name);
    if (jobq__worker_find_handler(worker, jobq__slice(name, n), version) >= 0)
        return jobq__error_set(JOBQ_EINVAL,
                               "a handler for \"%.*s\" version %d is registered already", (int)n,
                               name, version);
    return 0;
}

int jobq_worker_handle(jobq_worker *worker, const char *name, size_t n, int version,
                       const jobq_conf *conf)
{
    jobq__handler handler = {.name_n = n, .version = version}, *grown;
    int rc;

    jobq__error_clear();
    if ((rc = check_handler(worker, name, n, version, conf)) < 0)
        return rc;
    grown = jobq__realloc(worker->handlers, (worker->handler_count + 1) * sizeof(*grown));
    if (!grown)
        return jobq__error_nomem();
    worker->handlers = grown;
    handler.name = jobq__memdup(name, n);
    handler.conf = copy_conf(conf, JOBQ_SCOPE_HANDLER);
    if (!handler.name || !handler.conf) {
        jobq__free(handler.name);
        jobq_conf_free(handler.conf);
        return jobq__error_nomem();
    }
    grown[worker->handler_count++] = handler;
    return 0;
}

void jobq_worker_set_resolver(jobq_worker *worker, bool has_resolver)
{
    worker->has_resolver = has_resolver;
}

void jobq_worker_set_failed(jobq_worker *worker, bool runs_hooks)
{
    worker->runs_hooks = runs_hooks;
}

int jobq_worker_listen(jobq_worker *worker, const char *event)
{
    const char *name;

    jobq__error_clear();
    for (size_t i = 0; (name = jobq_event_list(i)); i++) {
        if (strcmp(name, event) == 0) {
            worker->listened |= (uint32_t)1 << i;
            jobq__loop_listen(worker, event);
            return 0;
        }
    }
    name = jobq_event_nearest(event);
    return jobq__error_set_subject(
        JOBQ_EINVAL, event, strlen(event), "unknown event \"%.64s\"%s%s%s", event,
        name ? ", did you mean \"" : "", name ? name : "", name ? "\"?" : "");
}

int jobq_worker_set_hooks(jobq_worker *worker, const jobq_worker_hooks *hooks)
{
    int rc;

    jobq__error_clear();
    if ((rc = check_open(worker, "hooks")) < 0)
        return rc;
    if (hooks->size != sizeof(*hooks))
        return jobq__error_set(JOBQ_EINVAL, "hooks of %zu bytes: this library knows %zu",
                               hooks->size, sizeof(*hooks));
    worker->hooks = *hooks;
    return 0;
}

/* ---- the start ------------------------------------------------------------------------------- */

static int add_queue(jobq_worker *worker, const char *name)
{
    const int rc = jobq__check_queue(name, strlen(name));

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < worker->queue_count; i++)
        if (strcmp(worker->queues[i], name) == 0)
            return 0; /* named twice: its first place counts */
    worker->queues[worker->queue_count] = jobq__strdup(name);
    return worker->queues[worker->queue_count++] ? 0 : jobq__error_nomem();
}

static int set_queues(jobq_worker *worker, const char *const *queues, size_t count)
{
    const char *const by_default = jobq_queue_default(worker->queue);
    int rc = 0;

    free_queues(worker);
    if (!count) {
        queues = &by_default;
        count = 1;
    }
    worker->queues = jobq__zalloc(count * sizeof(*worker->queues));
    if (!worker->queues)
        return jobq__error_nomem();
    for (size_t i = 0; i < count && rc >= 0; i++)
        rc = add_queue(worker, queues[i]);
    return rc;
}

static int set_run_conf(jobq_worker *worker, const jobq_conf *over)
{
    const jobq_conf *connection = worker->queue->conf;

    jobq_conf_free(worker->run_conf);
    worker->run_conf = jobq__conf_copy(worker->conf);
    if (!worker->run_conf)
        return jobq__error_nomem();
    if (over && jobq_conf_merge(worker->run_conf, over) < 0)
        return jobq__error_code();
    if (!jobq__conf_given(worker->run_conf, dead_retention_ms))
        worker->run_conf->s.dead_retention_ms = connection->s.dead_retention_ms;
    return 0;
}

/* A store that only this process sees has no use for other processes. */
static int choose_mode(jobq_worker *worker)
{
    jobq__settings *s = &worker->run_conf->s;
    char option[64];

    if (jobq__store_driver(worker->queue->store)->features & JOBQ_FEATURE_SHARED)
        return 0;
    if (s->processes && jobq__conf_given(worker->run_conf, processes))
        return jobq__error_set_subject(
            JOBQ_EINVAL, "processes", 9,
            "%s must be 0 with \"%s\", whose jobs live in this process only",
            jobq__conf_spell(worker->run_conf, "processes", option, sizeof(option)),
            jobq_queue_dsn(worker->queue));
    s->processes = 0;
    return 0;
}

/* Made in another process (the application forked since): its id must not be two workers'. */
static void renew_identity(jobq_worker *worker)
{
    if (worker->stamp == jobq__process_stamp())
        return;
    worker->stamp = jobq__process_stamp();
    jobq__ident_worker(worker->id);
}

int jobq__worker_prepare(jobq_worker *worker, const char *const *queues, size_t count,
                         const jobq_conf *over)
{
    int rc;

    if (worker->role == JOBQ_ROLE_CHILD || worker->inl)
        return jobq__error_set(JOBQ_EINVAL, "this worker is running already");
    if ((rc = check_scope(over, JOBQ_SCOPE_WORKER, "run")) < 0 ||
        (rc = set_run_conf(worker, over)) < 0 || (rc = set_queues(worker, queues, count)) < 0 ||
        (rc = choose_mode(worker)) < 0)
        return rc;
    worker->sink_outvoted = over && jobq__conf_given(over, output);
    renew_identity(worker);
    jobq__shared_free(&worker->shared);
    worker->stop_text[0] = '\0';
    worker->loop = (jobq__loop){.asks = worker->loop.asks, .tells = worker->loop.tells};
    worker->started_mono_ms = jobq__clock_mono_ms();
    return jobq__ready_begin(worker);
}

static int run_inline(jobq_worker *worker)
{
    const int rc = jobq__inline_begin(worker, false);

    if (rc < 0)
        return rc;
    worker->role = JOBQ_ROLE_INLINE;
    return JOBQ_ROLE_INLINE;
}

int jobq_worker_start(jobq_worker *worker, const char *const *queues, size_t count,
                      const jobq_conf *over, int *code_out)
{
    bool pool;
    int rc;

    jobq__error_clear();
    if ((rc = jobq__worker_prepare(worker, queues, count, over)) < 0)
        return rc;
    pool = worker->run_conf->s.processes > 0;
    if ((pool && (rc = jobq__sink_check_pool(worker)) < 0) ||
        (rc = jobq__signals_install(pool)) < 0)
        return rc;
    rc = pool ? jobq__master_run(worker, code_out) : run_inline(worker);
    if (rc == JOBQ_ROLE_MASTER)
        worker->role = JOBQ_ROLE_MASTER;
    if (rc < 0 || rc == JOBQ_ROLE_MASTER)
        jobq__signals_restore();
    return rc;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int next_step(jobq_worker *worker, bool wait, jobq_job **job_out, jobq_event **event_out)
{
    jobq__error_clear();
    if (worker->role == JOBQ_ROLE_CHILD)
        return jobq__child_next(worker, wait, job_out, event_out);
    if (worker->role != JOBQ_ROLE_INLINE || !worker->inl)
        return jobq__error_set(JOBQ_EINVAL, "the worker was not started");
    if (worker->stamp != jobq__process_stamp())
        return jobq__error_set(JOBQ_EFORKED,
                               "this process was forked by a handler: the worker is its parent's");
    return jobq__inline_next(worker, job_out, event_out);
}

int jobq_worker_next(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out)
{
    return next_step(worker, true, job_out, event_out);
}

int jobq_worker_poll(jobq_worker *worker, jobq_job **job_out, jobq_event **event_out)
{
    return next_step(worker, false, job_out, event_out);
}

int jobq_worker_fd(const jobq_worker *worker)
{
    return worker->role == JOBQ_ROLE_CHILD ? jobq__child_fd(worker) : -1;
}

int jobq_worker_finish(jobq_worker *worker)
{
    int code;

    jobq__error_clear();
    if (worker->role == JOBQ_ROLE_CHILD)
        jobq__child_finish(worker);
    if (worker->role != JOBQ_ROLE_INLINE || !worker->inl)
        return jobq__error_set(JOBQ_EINVAL, "the worker was not started");
    if (worker->stamp != jobq__process_stamp())
        _exit(0); /* forked by a handler: nothing of the worker is its own */
    code = jobq__inline_finish(worker);
    if (worker->shared.words)
        jobq__worker_stop_text(worker->shared.words, worker->stop_text, sizeof(worker->stop_text));
    jobq__signals_restore();
    return code;
}

void jobq_worker_retire(jobq_worker *worker, const char *text, size_t n)
{
    if (worker->role == JOBQ_ROLE_CHILD && worker->stamp == jobq__process_stamp())
        jobq__child_retire(worker, text, n);
}

void jobq_worker_fatal(jobq_worker *worker, const char *text, size_t n)
{
    if (worker->stamp != jobq__process_stamp())
        return;
    if (worker->role == JOBQ_ROLE_CHILD)
        jobq__child_retire(worker, text, n);
    else if (worker->inl)
        jobq__inline_fatal(worker, text, n);
}

/* ---- for the whole worker, from any of its processes ----------------------------------------- */

static void ring_if_ours(const int bell[2], const jobq__fd_identity *identity)
{
    if (jobq__fd_is(bell[1], identity))
        jobq__fd_ring(bell[1]);
}

void jobq_worker_stop(jobq_worker *worker)
{
    const jobq__shared *shared = &worker->shared;

    if (!shared->words)
        return;
    jobq__words_stop(shared->words, JOBQ__DRAIN, JOBQ__STOP_SIGNAL, 0);
    if (worker->inl && worker->stamp == jobq__process_stamp())
        jobq__inline_stop(worker);
    ring_if_ours(shared->dispatcher_bell, &shared->dispatcher_bell_id);
    ring_if_ours(shared->master_bell, &shared->master_bell_id);
}

void jobq_worker_wake(jobq_worker *worker)
{
    if (worker->role == JOBQ_ROLE_INLINE && worker->stamp == jobq__process_stamp())
        jobq__signals_wake();
}

bool jobq_worker_ready(const jobq_worker *worker)
{
    return worker->shared.words && atomic_load(&worker->shared.words->ready);
}

const char *jobq_worker_id(const jobq_worker *worker)
{
    return worker->id;
}

/* Pushes are counted by the handle that made them, what happens to jobs by the worker. */
int64_t jobq_worker_counter(const jobq_worker *worker, size_t i, const char **name_out)
{
    const jobq__words *words = worker->shared.words;

    if (name_out)
        *name_out = i < JOBQ__COUNTERS ? jobq__counter_words[i] : NULL;
    if (i >= JOBQ__COUNTERS)
        return 0;
    if (i == JOBQ__COUNT_LAST_AGE && words && atomic_load(&words->counters[JOBQ__COUNT_RECEIVED]))
        return atomic_load(&words->counters[i]);
    return worker->queue->counters[i] + (words ? atomic_load(&words->counters[i]) : 0);
}

const char *jobq_worker_stop_reason(const jobq_worker *worker)
{
    return worker->stop_text;
}

int64_t jobq_worker_jobs_run(const jobq_worker *worker)
{
    return worker->shared.words ? atomic_load(&worker->shared.words->jobs_run) : 0;
}
