/* SPDX-License-Identifier: MIT
 *
 * Every option there is. A new option is one row here and one field in core/settings.h.
 */
#include "core/conf_table.h"

#include <string.h>

#include "core/queue.h"

#define C JOBQ_SCOPE_CONNECTION
#define W JOBQ_SCOPE_WORKER
#define H JOBQ_SCOPE_HANDLER
#define P JOBQ_SCOPE_PUSH

#define AT(field) offsetof(jobq__settings, field)
/* The range as numbers and as the words that users read; a range that has a meaning for 0 says it.
 */
#define RANGE(lo, hi) (lo), (hi), #lo " to " #hi
#define RANGE_0(lo, hi, zero) (lo), (hi), #lo " to " #hi " (0 = " zero ")"
#define FORM(words) 0, 0, words

static const char *const auto_word[] = {"auto", NULL};
static const char *const error_words[] = {"full", "class", NULL};
static const char *const expire_words[] = {"dead", "drop", NULL};
static const char *const scope_words[] = {"until_done", "until_started", NULL};
static const char *const duplicate_words[] = {"keep", "replace", "error", NULL};
static const char *const map_words[] = {"array", "object", NULL};
static const char *const synchronous_words[] = {"full", "normal", NULL};

#define BACKOFF_FORM \
    "seconds, a list like 10,60,300 (at most 16), or exponential:BASE,CAP; each 0 to 315619200"
#define MOMENT_FORM                                                                               \
    "seconds from the enqueue (above 0, at most 315619200), an RFC 3339 time, or @SECONDS since " \
    "1970"

/* name, type, scopes, field, range, default, words, check, meaning */
const jobq__option jobq__options[] = {
    /* the connection */
    {"queue", JOBQ__TYPE_TEXT, C | P, AT(queue),
     FORM("1 to 128 bytes of UTF-8 without commas, control characters, leading or trailing blanks"),
     "default", NULL, jobq__check_queue, "the queue to push to and to work on when none is named"},
    {"max_payload", JOBQ__TYPE_BYTES, C, AT(max_payload), RANGE(1, 67108864), "1048576", NULL, NULL,
     "largest payload in bytes that push accepts"},
    {"capacity", JOBQ__TYPE_INT, C, AT(capacity), RANGE_0(0, 1000000000000, "no limit"), "0", NULL,
     NULL, "how many jobs a queue may hold; set for each queue pushed to that never had one"},
    {"migrate", JOBQ__TYPE_BOOL, C, AT(migrate), FORM("true or false"), "true", NULL, NULL,
     "create the schema and bring it up to date on first use"},
    {"connect_timeout", JOBQ__TYPE_SECONDS, C, AT(connect_timeout_ms), RANGE(0.001, 3600), "5",
     NULL, NULL, "Redis, PostgreSQL, MariaDB: longest wait for a connection"},
    {"read_timeout", JOBQ__TYPE_SECONDS, C, AT(read_timeout_ms), RANGE(0.001, 3600), "5", NULL,
     NULL, "longest wait for an answer of the store; on SQLite for a lock"},
    {"synchronous", JOBQ__TYPE_WORD, C, AT(synchronous), FORM("full or normal"), "full",
     synchronous_words, NULL, "SQLite: full survives a power cut, normal a crash of the process"},
    {"prefix", JOBQ__TYPE_TEXT, C, AT(prefix),
     FORM("1 to 128 bytes of UTF-8 without control characters"), "jobqueue", NULL,
     jobq__check_prefix, "Redis: what every key begins with; nothing else is ever touched"},
    {"schema", JOBQ__TYPE_TEXT, C, AT(schema),
     FORM("1 to 63 bytes: letters, digits and _, not beginning with a digit or pg_"), "jobqueue",
     NULL, jobq__check_schema, "PostgreSQL: the schema that holds tables and functions"},
    {"listen", JOBQ__TYPE_BOOL, C, AT(listen), FORM("true or false"), "true", NULL, NULL,
     "PostgreSQL: be woken by LISTEN; false behind a pooler that shares sessions, then polled"},
    {"ca", JOBQ__TYPE_TEXT, C, AT(ca), FORM("a path of at most 4096 bytes"), NULL, NULL,
     jobq__check_path, "TLS: file of the authorities to trust instead of the system's"},
    {"cert", JOBQ__TYPE_TEXT, C, AT(cert), FORM("a path of at most 4096 bytes"), NULL, NULL,
     jobq__check_path, "TLS: file of the certificate to show"},
    {"key", JOBQ__TYPE_TEXT, C, AT(key), FORM("a path of at most 4096 bytes"), NULL, NULL,
     jobq__check_path, "TLS: file of the certificate's private key"},
    {"verify", JOBQ__TYPE_BOOL, C, AT(verify), FORM("true or false"), "true", NULL, NULL,
     "TLS: refuse a server whose certificate or name is not right"},

    /* how often and how long: what is given at push wins, then the handler's, then the worker's */
    {"tries", JOBQ__TYPE_INT, W | H | P, AT(tries), RANGE_0(0, 1000000, "no limit"), "3", NULL,
     NULL, "failures and crashes after which the job is dead"},
    {"timeout", JOBQ__TYPE_SECONDS, W | H | P, AT(timeout_ms), RANGE_0(0, 31536000, "no limit"),
     "60", NULL, NULL, "longest run of the handler"},
    {"backoff", JOBQ__TYPE_BACKOFF, W | H | P, AT(backoff), FORM(BACKOFF_FORM), "10,60,300", NULL,
     NULL, "wait after the first, second, ... failure; the last entry repeats"},
    {"max_crashes", JOBQ__TYPE_INT, W | H, AT(max_crashes), RANGE_0(0, 1000000, "no limit"), "3",
     NULL, NULL, "deaths of its process after which the job is dead"},
    {"max_exceptions", JOBQ__TYPE_INT, W | H, AT(max_exceptions), RANGE_0(0, 1000000, "no limit"),
     "0", NULL, NULL, "throws of the handler after which the job is dead"},
    {"max_releases", JOBQ__TYPE_INT, W | H, AT(max_releases), RANGE_0(0, 1000000, "no limit"), "0",
     NULL, NULL, "how often a job may release itself"},
    {"dont_retry", JOBQ__TYPE_NAMES, W | H, AT(dont_retry), FORM("names, separated by commas"),
     NULL, NULL, NULL, "exception classes after which the job is dead at once"},
    {"fail_on_timeout", JOBQ__TYPE_BOOL, W | H, AT(fail_on_timeout), FORM("true or false"), "false",
     NULL, NULL, "a job over its time limit is dead at once"},
    {"keep_done", JOBQ__TYPE_SECONDS, W | H, AT(keep_done_ms), RANGE_0(0, 315619200, "not at all"),
     "0", NULL, NULL, "how long a finished job can still be found"},
    {"dead_retention", JOBQ__TYPE_SECONDS, C | W | H, AT(dead_retention_ms),
     RANGE_0(0, 315619200, "for ever"), "0", NULL, NULL,
     "how long a job that becomes dead is kept and can be put back"},
    {"maps", JOBQ__TYPE_ENUM, H, AT(maps), FORM("array or object"), "array", map_words, NULL,
     "PHP: what a map of the payload becomes"},
    {"async_concurrency", JOBQ__TYPE_INT, H, AT(async_concurrency), RANGE(1, 1000), "1", NULL, NULL,
     "Python: so many jobs of an async handler may run in a child at once"},
    {"jitter", JOBQ__TYPE_NUMBER, W | H, AT(jitter), RANGE_0(0, 1, "none"), "0.1", NULL, NULL,
     "share of the backoff that chance adds at most, so that retries do not come in step"},

    /* the worker */
    {"processes", JOBQ__TYPE_INT, W, AT(processes), RANGE_0(0, 1024, "inline, without a fork"), "1",
     NULL, NULL, "children that run handlers"},
    {"timeout_grace", JOBQ__TYPE_SECONDS, W, AT(timeout_grace_ms),
     RANGE_0(0, 86400, "killed with the exception"), "5", NULL, NULL,
     "time from the exception at the time limit to the kill"},
    {"lease", JOBQ__TYPE_SECONDS, W, AT(lease_ms), RANGE(1, 86400), "30", NULL, NULL,
     "how long a worker that fell silent keeps its jobs; renewed every third of it"},
    {"sleep", JOBQ__TYPE_SECONDS, W, AT(sleep_ms), RANGE_0(0, 3600, "10 ms"), "1", NULL, NULL,
     "longest wait between looks where the store cannot wake the worker"},
    {"rest", JOBQ__TYPE_SECONDS, W, AT(rest_ms), RANGE_0(0, 3600, "none"), "0", NULL, NULL,
     "pause after each job"},
    {"max_jobs", JOBQ__TYPE_INT, W, AT(max_jobs), RANGE_0(0, 1000000000000, "no limit"), "0", NULL,
     NULL, "stop after so many jobs"},
    {"max_time", JOBQ__TYPE_SECONDS, W, AT(max_time_ms), RANGE_0(0, 315619200, "no limit"), "0",
     NULL, NULL, "stop after so long, idle time included"},
    {"memory", JOBQ__TYPE_MEGABYTES, W, AT(memory_mb), RANGE_0(0, 1048576, "no limit"), "128", NULL,
     NULL, "private memory of a child above which it is replaced after its job"},
    {"recycle_jobs", JOBQ__TYPE_INT, W, AT(recycle_jobs), RANGE_0(0, 1000000000000, "never"), "0",
     NULL, NULL, "replace a child after so many jobs"},
    {"recycle_time", JOBQ__TYPE_SECONDS, W, AT(recycle_time_ms), RANGE_0(0, 315619200, "never"),
     "0", NULL, NULL, "replace a child after so long"},
    {"stop_when_empty", JOBQ__TYPE_BOOL, W, AT(stop_when_empty), FORM("true or false"), "false",
     NULL, NULL,
     "stop when nothing is ready and nothing runs here; delayed jobs, and retries that wait for "
     "their backoff, are left to later runs"},
    {"stop_when_empty_for", JOBQ__TYPE_SECONDS, W, AT(stop_when_empty_for_ms),
     RANGE_0(0, 315619200, "off"), "0", NULL, NULL,
     "stop when it has been empty for so long; with more than the longest backoff retries are run, "
     "too"},
    {"once", JOBQ__TYPE_BOOL, W, AT(once), FORM("true or false"), "false", NULL, NULL,
     "run at most one job and wait for none"},
    {"drain", JOBQ__TYPE_SECONDS, W, AT(drain_ms), RANGE_0(0, 315619200, "no limit"), "0", NULL,
     NULL, "how long running jobs may go on after a stop request"},
    {"max_reserve_failures", JOBQ__TYPE_INT, W, AT(max_reserve_failures),
     RANGE_0(0, 1000000, "never give up"), "5", NULL, NULL,
     "failed looks at the store in a row after which the worker stops"},
    {"unknown_for", JOBQ__TYPE_SECONDS, W, AT(unknown_for_ms), RANGE_0(0, 315619200, "not at all"),
     "3600", NULL, NULL, "how long a job waits for a worker that knows its name before it is dead"},
    {"errors", JOBQ__TYPE_ENUM, W, AT(errors), FORM("full or class"), "full", error_words, NULL,
     "what is kept of a handler's error: all of it, or its class name only"},
    {"name", JOBQ__TYPE_TEXT, W, AT(name),
     FORM("1 to 255 bytes of UTF-8 without control characters"), NULL, NULL, jobq__check_label,
     "a name for this worker, shown beside its id"},
    {"force", JOBQ__TYPE_BOOL, W, AT(force), FORM("true or false"), "false", NULL, NULL,
     "go on while all queues are paused; a queue's own pause still holds"},
    {"prefetch", JOBQ__TYPE_INT, W, AT(prefetch), 0, 100000, "auto, or 0 to 100000 (0 = none)",
     "auto", auto_word, NULL, "jobs held beyond the running ones"},
    {"output", JOBQ__TYPE_TEXT, W, AT(output),
     FORM("auto, jobs, summary, json, quiet, or a path with a slash"), "auto", NULL,
     jobq__check_output, "what the worker prints about its jobs"},
    {"verbose", JOBQ__TYPE_BOOL, W, AT(verbose), FORM("true or false"), "false", NULL, NULL,
     "also print when a job starts"},
    {"ready_file", JOBQ__TYPE_TEXT, W, AT(ready_file), FORM("a path of at most 4096 bytes"), NULL,
     NULL, jobq__check_path, "a file that exists exactly while the worker takes jobs"},

    /* push */
    {"delay", JOBQ__TYPE_SECONDS, P, AT(delay_ms), RANGE_0(0, 315619200, "at once"), "0", NULL,
     NULL, "wait before the job is ready, by the store's clock"},
    {"at", JOBQ__TYPE_TIME, P, AT(at_ms), FORM("an RFC 3339 time or @SECONDS since 1970"), NULL,
     NULL, NULL, "when the job is ready, by the store's clock; a past time is now"},
    {"priority", JOBQ__TYPE_INT, P, AT(priority), RANGE(0, 9), "0", NULL, NULL,
     "higher ones go first within a queue"},
    {"id", JOBQ__TYPE_TEXT, P, AT(id),
     FORM("1 to 128 of A-Z a-z 0-9 _ . : - and begin with a letter or digit"), NULL, NULL,
     jobq__check_id, "the job's id; a UUID (version 7) when none is given"},
    {"version", JOBQ__TYPE_INT, P, AT(version), RANGE(1, 2147483647), "1", NULL, NULL,
     "version of the payload's form"},
    {"unique", JOBQ__TYPE_TEXT, P, AT(unique), FORM("1 to 255 bytes of UTF-8 without NUL"), NULL,
     NULL, jobq__check_unique, "key that only one waiting or running job of its queue may have"},
    {"unique_scope", JOBQ__TYPE_ENUM, P, AT(unique_scope), FORM("until_done or until_started"),
     "until_done", scope_words, NULL,
     "how long the unique key is held: to the job's end, or until its handler first starts"},
    {"on_duplicate", JOBQ__TYPE_ENUM, P, AT(on_duplicate), FORM("keep, replace or error"), "keep",
     duplicate_words, NULL,
     "the unique key is held: keep that job, put this one in its place, or refuse the push"},
    {"max_wait", JOBQ__TYPE_SECONDS, P, AT(max_wait_ms), RANGE_0(0, 315619200, "no limit"), "0",
     NULL, NULL, "on_duplicate=replace: due at most so long after the first push of the key"},
    {"idempotent", JOBQ__TYPE_BOOL, P, AT(idempotent), FORM("true or false"), "false", NULL, NULL,
     "a push whose id exists changes nothing and is no error; needs an id"},
    {"idempotent_for", JOBQ__TYPE_SECONDS, P, AT(idempotent_for_ms),
     RANGE_0(0, 315619200, "not at all"), "3600", NULL, NULL,
     "idempotent: how long the id is remembered after the job has ended"},
    {"track", JOBQ__TYPE_BOOL, P, AT(track), FORM("true or false"), "false", NULL, NULL,
     "the job's result can be read for keep_done seconds, at least 3600, after its end"},
    {"retry_until", JOBQ__TYPE_MOMENT, P, AT(retry_until), FORM(MOMENT_FORM), NULL, NULL, NULL,
     "no retry after that; given without tries it is the only limit"},
    {"expires", JOBQ__TYPE_MOMENT, P, AT(expires), FORM(MOMENT_FORM), NULL, NULL, NULL,
     "a job that has not started by then is not run"},
    {"on_expire", JOBQ__TYPE_ENUM, P, AT(on_expire), FORM("dead or drop"), "dead", expire_words,
     NULL, "what becomes of an expired job"},
};
const size_t jobq__option_count = sizeof(jobq__options) / sizeof(jobq__options[0]);
_Static_assert(sizeof(jobq__options) / sizeof(jobq__options[0]) <= JOBQ__OPTIONS_MAX,
               "a set of options notes which of them were given");

const char *jobq__type_word(jobq__type type)
{
    static const char *const words[JOBQ__TYPES] = {
        "true or false", "whole number", "bytes",   "megabytes", "seconds", "number", "text",
        "word",          "word",         "backoff", "names",     "moment",  "time",
    };
    return words[type];
}

/* "auto" of an option that is a number. */
static bool is_its_word(const jobq__option *o, const char *text)
{
    return o->type == JOBQ__TYPE_INT && o->words && text && strcmp(o->words[0], text) == 0;
}

const char *jobq__option_expects(const jobq__option *o, int kind, const char *text)
{
    enum {
        B = 1 << JOBQ_VALUE_BOOL,
        N = 1 << JOBQ_VALUE_NUMBER,
        X = 1 << JOBQ_VALUE_TEXT,
        L = 1 << JOBQ_VALUE_LIST,
        T = 1 << JOBQ_VALUE_TIME
    };
    static const struct {
        int kinds;
        const char *words;
    } takes[JOBQ__TYPES] = {
        [JOBQ__TYPE_BOOL] = {B, "true or false"},
        [JOBQ__TYPE_INT] = {N, "a number"},
        [JOBQ__TYPE_BYTES] = {N, "a number"},
        [JOBQ__TYPE_MEGABYTES] = {N, "a number"},
        [JOBQ__TYPE_SECONDS] = {N, "a number"},
        [JOBQ__TYPE_NUMBER] = {N, "a number"},
        [JOBQ__TYPE_TEXT] = {X, "a string"},
        [JOBQ__TYPE_WORD] = {X, "a string"},
        [JOBQ__TYPE_ENUM] = {X, "a string"},
        [JOBQ__TYPE_BACKOFF] = {N | X | L, "a number, a string or a list of numbers"},
        [JOBQ__TYPE_NAMES] = {X | L, "a string or a list of strings"},
        [JOBQ__TYPE_MOMENT] = {N | X | T, "a number, a string or a time"},
        [JOBQ__TYPE_TIME] = {N | X | T, "a number, a string or a time"},
    };
    const bool taken = takes[o->type].kinds & 1 << kind;

    return taken || is_its_word(o, text) ? NULL : takes[o->type].words;
}

bool jobq_conf_describe(size_t i, const char **name_out, const char **type_out,
                        const char **range_out, const char **default_out, int *scopes_out,
                        const char **meaning_out)
{
    const jobq__option *o;

    if (i >= jobq__option_count)
        return false;
    o = &jobq__options[i];
    if (name_out)
        *name_out = o->name;
    if (type_out)
        *type_out = jobq__type_word(o->type);
    if (range_out)
        *range_out = o->range;
    if (default_out)
        *default_out = o->fallback;
    if (scopes_out)
        *scopes_out = o->scopes;
    if (meaning_out)
        *meaning_out = o->meaning;
    return true;
}
