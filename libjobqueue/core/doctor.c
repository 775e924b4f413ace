/* SPDX-License-Identifier: MIT
 *
 * Looking a store over (rule N5): what can be judged through the operations that every driver has.
 * What only one store knows (durability, eviction, the disk under a file) its driver remarks on.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/inspect.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum {
    PINGS = 5,
    SKEW_NOTE_MS = 1000,
    SKEW_PROBLEM_MS = 10000,
    USUAL_LEASE_MS = 30000,
    WAIT_TOO_LONG_MS = 60000, /* of a ready job that nobody will take */
    LOOKED_AT = 100,          /* delayed jobs of a queue */
    ROUND_TRIPS = 10          /* at least so many in a lease */
};

typedef struct {
    jobq_queue *queue;
    void (*found)(void *payload, const jobq_finding *finding);
    void *payload;
    int problems;
    int64_t slowest_us, skew_ms, unsure_ms;
    bool reached; /* the store answered */
    jobq_workers *workers;
} doctor;

/* ---- saying ---------------------------------------------------------------------------------- */

JOBQ_PRINTF(5, 6)
static void say(doctor *d, jobq_finding_grade grade, const char *check, const char *advice,
                const char *fmt, ...)
{
    char text[1400];
    jobq_finding finding = {grade, check, text, advice};
    va_list args;

    va_start(args, fmt);
    jobq__vformat(text, sizeof(text), fmt, args);
    va_end(args);
    d->problems += grade == JOBQ_FINDING_PROBLEM;
    d->found(d->payload, &finding);
}

static const char *advice_for(const struct jobq_error *error)
{
    static const char correct[] = "correct the dsn or what it names";
    static const struct {
        int code;
        const char *text;
    } advices[] = {
        {JOBQ_ECONNECT, "start the store, or correct host, port and firewall of the dsn"},
        {JOBQ_ECONF, correct},
        {JOBQ_ETIMEOUT, "see what keeps the store busy, or raise read_timeout"},
        {JOBQ_EBUSY, "see who holds the store locked, or raise read_timeout"}};

    if (error->flags & JOBQ__SCHEMA)
        return "older stores are made new by `jobqueue migrate`, older programs by an update";
    if (error->flags & JOBQ__FATAL)
        return correct;
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
        if (advices[i].code == error->code)
            return advices[i].text;
    return "read the store's own log";
}

/* The finding of a call that failed; the error stays in the record. */
static int say_error(doctor *d, const char *check, int rc)
{
    struct jobq_error before;

    jobq__error_save(&before);
    say(d, JOBQ_FINDING_PROBLEM, check, advice_for(&before), "%s",
        jobq_error_message(jobq_error_last()));
    jobq__error_restore(&before);
    return rc;
}

/* ---- connection, clock ----------------------------------------------------------------------- */

/* The smallest round trip says most about the clock: the store read its own somewhere within it. */
static int measure(doctor *d)
{
    int64_t best_us = INT64_MAX, started, took, wall, now;
    int rc;

    for (int i = 0; i < PINGS; i++) {
        wall = jobq__clock_wall_ms();
        started = jobq__clock_mono_us();
        rc = jobq__store_now(d->queue->store, &now);
        if (rc < 0)
            return rc;
        took = jobq__clock_mono_us() - started;
        d->slowest_us = took > d->slowest_us ? took : d->slowest_us;
        if (took < best_us) {
            best_us = took;
            d->unsure_ms = took / 2000 + 1;
            d->skew_ms = now - wall - took / 2000;
        }
    }
    return 0;
}

static int check_connection(doctor *d)
{
    int64_t now;
    int rc = jobq__store_now(d->queue->store, &now); /* connects */

    rc = rc < 0 ? rc : measure(d);
    if (rc < 0)
        return say_error(d, "connection", jobq__queue_note(d->queue, rc));
    d->reached = true;
    say(d, JOBQ_FINDING_OK, "connection", NULL, "%s answers, slowest of %d round trips %.3f ms",
        jobq_queue_dsn(d->queue), PINGS, (double)d->slowest_us / 1000);
    return 0;
}

static int check_clock(doctor *d)
{
    int64_t skew = d->skew_ms < 0 ? -d->skew_ms : d->skew_ms;
    bool far = skew > d->unsure_ms + SKEW_NOTE_MS, too_far = skew > d->unsure_ms + SKEW_PROBLEM_MS;

    if (jobq__store_driver(d->queue->store)->features & JOBQ_FEATURE_HOST_CLOCK)
        say(d, JOBQ_FINDING_OK, "clock", NULL, "the store uses this host's clock");
    else
        say(d,
            too_far ? JOBQ_FINDING_PROBLEM
            : far   ? JOBQ_FINDING_NOTE
                    : JOBQ_FINDING_OK,
            "clock",
            far ? "synchronise both hosts (chrony, systemd-timesyncd): leases are safe, but times "
                  "given as a date and times shown are off by that much"
                : NULL,
            "the store's clock is %" PRId64 " ms %s this host's (known to %" PRId64 " ms)", skew,
            d->skew_ms < 0 ? "behind" : "ahead of", d->unsure_ms);
    return 0;
}

/* ---- schema, lease --------------------------------------------------------------------------- */

static int check_schema(doctor *d)
{
    int rc = jobq_queue_workers(d->queue, &d->workers);

    if (rc < 0) {
        say(d, JOBQ_FINDING_PROBLEM, "schema", "run \"jobqueue migrate\" with a user who may", "%s",
            jobq_error_message(jobq_error_last()));
        return 0;
    }
    say(d, JOBQ_FINDING_OK, "schema", NULL, "what version %s needs is there", jobq_version());
    return 0;
}

/* A renewal that fails has two thirds of the lease left to be repeated in, beside all that else
 * goes over the same connection. */
static int check_lease(doctor *d)
{
    const int64_t timeout = d->queue->conf->s.read_timeout_ms;
    size_t n = jobq_workers_count(d->workers);
    int64_t lease = n ? INT64_MAX : USUAL_LEASE_MS, own;

    for (size_t i = 0; i < n; i++) {
        own = jobq_workers_number(d->workers, i, JOBQ_WORKERS_LEASE_MS);
        lease = own < lease ? own : lease;
    }
    if (d->slowest_us * ROUND_TRIPS / 1000 > lease)
        say(d, JOBQ_FINDING_PROBLEM, "lease",
            "raise the workers' --lease, or bring worker and store nearer together",
            "%s lease is %.3g s, a round trip took %.3g s: with less than %d of them in a lease "
            "some will be lost",
            n ? "the shortest" : "the usual", (double)lease / 1000, (double)d->slowest_us / 1e6,
            ROUND_TRIPS);
    else if (timeout * 2 > lease)
        say(d, JOBQ_FINDING_NOTE, "lease", "lower read_timeout, or raise the workers' --lease",
            "%s lease is %.3g s: one call that hangs for read_timeout (%.3g s) may lose it",
            n ? "the shortest" : "the usual", (double)lease / 1000, (double)timeout / 1000);
    else
        say(d, JOBQ_FINDING_OK, "lease", NULL, "%s lease is %.3g s, renewed every third of it",
            n ? "the shortest" : "the usual", (double)lease / 1000);
    return 0;
}

/* ---- workers --------------------------------------------------------------------------------- */

/* Does a live worker watch the queue? Somebody who reserves by hand may watch any. */
static bool is_served(const jobq_workers *workers, const char *queue)
{
    const char *watched;

    for (size_t i = 0; i < jobq_workers_count(workers); i++) {
        if (!jobq_workers_queue(workers, i, 0))
            return true;
        for (size_t k = 0; (watched = jobq_workers_queue(workers, i, k)) != NULL; k++)
            if (strcmp(watched, queue) == 0)
                return true;
    }
    return false;
}

static bool is_announced(const jobq_workers *workers, const char *queue, const jobq_info *info)
{
    const char *watched, *name;
    char wanted[300];

    snprintf(wanted, sizeof(wanted), "%s@%" PRId64, jobq_info_text(info, JOBQ_INFO_NAME, NULL),
             jobq_info_number(info, JOBQ_INFO_VERSION));
    for (size_t i = 0; i < jobq_workers_count(workers); i++) {
        bool serves = false;

        for (size_t k = 0; (watched = jobq_workers_queue(workers, i, k)) != NULL; k++)
            serves = serves || strcmp(watched, queue) == 0;
        for (size_t k = 0; serves && (name = jobq_workers_name(workers, i, k)) != NULL; k++)
            if (strcmp(name, wanted) == 0)
                return true;
    }
    return false;
}

/* Jobs that workers took and put aside (rule F3), and nobody alive could run them. They come back
 * every minute at the latest: those that are due first show them. */
static int check_names(doctor *d, const char *queue)
{
    const jobq_info *first = NULL;
    size_t n = 0;
    jobq_list *list;
    int rc = jobq_queue_jobs(d->queue, queue, strlen(queue), JOBQ_DELAYED, LOOKED_AT, NULL, &list);

    if (rc < 0)
        return say_error(d, "handlers", rc);
    for (size_t i = 0; i < jobq_list_count(list); i++) {
        const jobq_info *info = jobq_list_get(list, i);

        if (!jobq_info_number(info, JOBQ_INFO_PUT_ASIDE) || is_announced(d->workers, queue, info))
            continue;
        first = first ? first : info;
        n++;
    }
    if (first)
        say(d, JOBQ_FINDING_PROBLEM, "handlers",
            "start a worker that has it; after the workers' --unknown-for such jobs are dead",
            "queue \"%s\" has %zu%s job%s that nobody alive has a handler for, the first one is "
            "\"%s\" version %" PRId64,
            queue, n, n == LOOKED_AT ? " or more" : "", jobq__plural((int64_t)n),
            jobq_info_text(first, JOBQ_INFO_NAME, NULL),
            jobq_info_number(first, JOBQ_INFO_VERSION));
    jobq_list_free(list);
    return 0;
}

/* Rule B4: what is full refuses pushes, which may be what was wanted. */
static void check_capacity(doctor *d, const char *name, const int64_t *v)
{
    const int64_t held = v[JOBQ_STAT_BACKLOG] + v[JOBQ_STAT_DEAD];

    if (v[JOBQ_STAT_CAPACITY] && held >= v[JOBQ_STAT_CAPACITY])
        say(d, JOBQ_FINDING_NOTE, "capacity",
            "start more workers, forget dead jobs, or raise it with \"jobqueue capacity\"",
            "queue \"%s\" is full: %" PRId64 " job%s, %" PRId64 " of them dead, of %" PRId64
            " that it may hold",
            name, held, jobq__plural(held), v[JOBQ_STAT_DEAD], v[JOBQ_STAT_CAPACITY]);
}

static int check_queue(doctor *d, const char *name)
{
    int64_t v[JOBQ_STATS], age, waiting;
    int rc = jobq_queue_stats(d->queue, name, strlen(name), v);

    if (rc < 0)
        return say_error(d, "workers", rc);
    age = v[JOBQ_STAT_OLDEST_READY_AGE_MS];
    waiting = v[JOBQ_STAT_READY] + v[JOBQ_STAT_DELAYED];
    if (v[JOBQ_STAT_PAUSED])
        say(d, JOBQ_FINDING_NOTE, "paused", "\"jobqueue resume\" with its name or --all ends that",
            "queue \"%s\" is paused, %" PRId64 " job%s in it", name, waiting,
            waiting == 1 ? " waits" : "s wait");
    check_capacity(d, name, v);
    if (v[JOBQ_STAT_READY] && age > WAIT_TOO_LONG_MS && !is_served(d->workers, name))
        say(d, JOBQ_FINDING_PROBLEM, "workers", "start one that has it in its --queue list",
            "queue \"%s\" has %" PRId64 " ready job%s, the oldest since %" PRId64
            " s, and no live worker",
            name, v[JOBQ_STAT_READY], jobq__plural(v[JOBQ_STAT_READY]), age / 1000);
    return v[JOBQ_STAT_DELAYED] ? check_names(d, name) : 0;
}

static int check_workers(doctor *d)
{
    const int before = d->problems;
    char **names;
    size_t count;
    int rc = jobq_queue_names(d->queue, &names, &count);

    if (rc < 0)
        return say_error(d, "workers", rc);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = check_queue(d, names[i]);
    jobq_names_free(names, count);
    if (rc == 0 && d->problems == before)
        say(d, JOBQ_FINDING_OK, "workers", NULL,
            "%zu live, and no job waits longer than %d s without one",
            jobq_workers_count(d->workers), WAIT_TOO_LONG_MS / 1000);
    return rc;
}

/* ---- the store's own remarks ----------------------------------------------------------------- */

_Static_assert((int)JOBQ_REMARK_OK == (int)JOBQ_FINDING_OK &&
                   (int)JOBQ_REMARK_NOTE == (int)JOBQ_FINDING_NOTE &&
                   (int)JOBQ_REMARK_PROBLEM == (int)JOBQ_FINDING_PROBLEM,
               "a remark's grade is the finding's");

/* Also of a store that could not be connected to: what it knows without that may be the cause. */
static int check_store(doctor *d)
{
    jobq_batch batch = {0};
    jobq_examination e = {.out = &batch};
    int rc = jobq__store_examine(d->queue->store, &e);

    for (const jobq_remark *remark = e.remarks; remark; remark = remark->next)
        say(d, (jobq_finding_grade)remark->grade, remark->check, remark->advice, "%s",
            remark->text);
    jobq__batch_free(&batch);
    return rc;
}

static int check_set_up(doctor *d)
{
    int rc = check_store(d);

    return rc < 0 ? say_error(d, "store", rc) : 0;
}

/* ---- the library ----------------------------------------------------------------------------- */

static void check_library(doctor *d)
{
    char drivers[256] = "";
    size_t n = 0;

    for (size_t i = 0; jobq_driver_name(i) && n < sizeof(drivers); i++)
        n += (size_t)snprintf(drivers + n, sizeof(drivers) - n, "%s%s", i ? ", " : "",
                              jobq_driver_name(i));
    say(d, JOBQ_FINDING_OK, "library", NULL, "libjobqueue %s with %s", jobq_version(), drivers);
}

/* What may be the cause; the error stays that of the connection. */
static void explain(doctor *d)
{
    struct jobq_error before;

    jobq__error_save(&before);
    check_store(d);
    jobq__error_restore(&before);
}

int jobq_queue_doctor(jobq_queue *queue, void (*found)(void *payload, const jobq_finding *finding),
                      void *payload)
{
    static int (*const checks[])(doctor *) = {check_connection, check_clock,  check_schema,
                                              check_lease,      check_set_up, check_workers};
    doctor d = {.queue = queue, .found = found, .payload = payload};
    int rc = 0;

    jobq__error_clear();
    check_library(&d);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && rc == 0; i++)
        rc = checks[i](&d);
    if (rc < 0 && !d.reached)
        explain(&d);
    jobq_workers_free(d.workers);
    if (rc == 0)
        jobq__error_clear();
    return rc < 0 ? rc : d.problems;
}
