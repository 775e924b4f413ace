/* SPDX-License-Identifier: MIT
 *
 * Options as typed values. core/conf_table.c has one row per option, with the offset of its field
 * here; nothing else knows names or ranges. Spans in milliseconds.
 */
#ifndef JOBQ_CORE_SETTINGS_H
#define JOBQ_CORE_SETTINGS_H

#include <jobqueue/conf.h>

#include "util/buf.h"

enum { JOBQ__BACKOFF_MAX = 16 };

/* The waiting times after failures. exponential: base_ms doubled per failure, at most cap_ms. */
typedef struct {
    uint8_t count; /* entries of list; 0 with exponential */
    bool exponential;
    int64_t list_ms[JOBQ__BACKOFF_MAX]; /* list_ms[0] = base, list_ms[1] = cap when exponential */
} jobq__backoff;

/* An instant: absolute, or so long after the job's base time. */
typedef struct {
    bool set, relative;
    int64_t ms;
} jobq__moment;

/* A list of names; owned by the conf. */
typedef struct {
    char **names;
    size_t count;
} jobq__names;

/* The words of on_duplicate; the first two are JOBQ_DUPLICATE_* of the contract. */
enum { JOBQ__ON_DUPLICATE_KEEP, JOBQ__ON_DUPLICATE_REPLACE, JOBQ__ON_DUPLICATE_ERROR };

typedef struct {
    /* connection */
    char *queue, *synchronous, *prefix, *schema, *ca, *cert, *key;
    int64_t max_payload, read_timeout_ms, connect_timeout_ms, capacity;
    bool migrate, verify, listen;
    /* worker, handler, push */
    int64_t tries, timeout_ms, max_crashes, max_exceptions, max_releases, keep_done_ms,
        dead_retention_ms;
    bool fail_on_timeout;
    jobq__backoff backoff;
    double jitter;
    jobq__names dont_retry;
    int maps;                  /* handler: 0 array, 1 object (PHP) */
    int64_t async_concurrency; /* handler (Python) */
    /* worker */
    int64_t processes, timeout_grace_ms, lease_ms, sleep_ms, rest_ms, max_jobs, max_time_ms,
        memory_mb, recycle_jobs, recycle_time_ms, stop_when_empty_for_ms, drain_ms,
        max_reserve_failures, unknown_for_ms;
    int64_t prefetch; /* -1 = auto */
    bool stop_when_empty, once, verbose, force;
    int errors; /* 0 full, 1 class */
    char *name, *output, *ready_file;
    /* push */
    int64_t delay_ms, at_ms, priority, version;
    char *id, *unique;
    jobq__moment retry_until, expires;
    int on_expire;    /* 0 dead, 1 drop */
    int unique_scope; /* 0 until_done, 1 until_started */
    int on_duplicate; /* JOBQ__ON_DUPLICATE_* */
    int64_t max_wait_ms, idempotent_for_ms;
    bool idempotent, track;
} jobq__settings;

enum { JOBQ__OPTIONS_MAX = 192 };

/* given[offset of a field] = 1: that option was given. Texts and names lie in the arena. */
struct jobq_conf {
    int scope, style;
    int words; /* the style of who gave the options: that of the set merged into this one last */
    uint8_t given[sizeof(jobq__settings)];
    uint8_t given_rows[JOBQ__OPTIONS_MAX]; /* their places in the table, in no order */
    size_t given_count;
    const struct jobq__option
        *found; /* the option asked for last, by the name below; NULL = none */
    char found_name[32];
    jobq__arena texts;
    jobq__settings s; /* defaults where not given */
};

/* Was that option given (not defaulted)? `field` is a member of jobq__settings. */
bool jobq__conf_given_at(const jobq_conf *conf, size_t offset);
#define jobq__conf_given(conf, field) jobq__conf_given_at((conf), offsetof(jobq__settings, field))

jobq_conf *jobq__conf_copy(const jobq_conf *conf);
/* Sets the defaults of every row. */
void jobq__settings_default(jobq__settings *s);
/* For those who have more options than the table: is it one, of whatever scope; the i-th of the
 * conf's scope (for jobq__str_nearest). */
bool jobq__conf_is_option(const char *snake);
const char *jobq__conf_next_name(void *conf, size_t i);
/* How the conf's front end spells that option ("maxTime", "--max-time"). */
enum { JOBQ__SPELLED_SIZE = 48 };
const char *jobq__conf_spell(const jobq_conf *conf, const char *snake, char *out, size_t size);
/* The same for errors that are found when all is given. */
const char *jobq__conf_word(const jobq_conf *conf, const char *snake, char *out, size_t size);

#endif
