/* SPDX-License-Identifier: MIT
 *
 * Round trips over the connection for calls, scripts by their SHA, and what error replies mean.
 */
#include <ctype.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

/* ---- what error replies mean ----------------------------------------------------------------- */

/* NOPERM inside a script: up to Redis 7.0, which does not say which command or key, and since. */
#define NOT_ALLOWED "ERR The user executing the script can't"
#define ACL_FAILURE "ERR ACL failure in script"
#define NEEDED                                                                                    \
    " (an account needs +@read +@write +@scripting +@connection +@transaction +info +time, on a " \
    "Cluster +cluster, and its keys ~{PREFIX*)"

/* What run.lua begins such an answer with. */
#define REFUSED "REFUSED"

/* The first row that fits; a row with a blank is looked for anywhere in the text. */
static const struct {
    const char *word;
    int code, flags;
    bool reconnect;
} refusals[] = {
    {"READONLY", JOBQ_EIO, JOBQ__RETRYABLE, true}, /* failover: ask again for the master */
    {"LOADING", JOBQ_EIO, JOBQ__RETRYABLE, false},
    {"MASTERDOWN", JOBQ_EIO, JOBQ__RETRYABLE, true},
    {"CLUSTERDOWN", JOBQ_EIO, JOBQ__RETRYABLE, true},
    {"TRYAGAIN", JOBQ_EIO, JOBQ__RETRYABLE, false},
    {"UNBLOCKED", JOBQ_EIO, JOBQ__RETRYABLE, true},
    {"OOM", JOBQ_EIO, JOBQ__RETRYABLE, false},
    {"MISCONF", JOBQ_EIO, JOBQ__RETRYABLE, false}, /* the disk is full */
    {"NOREPLICAS", JOBQ_EIO, JOBQ__RETRYABLE, false},
    {"BUSY", JOBQ_EBUSY, JOBQ__RETRYABLE, false},
    {REFUSED, JOBQ_EINVAL, 0, false}, /* a text of the caller's */
    {"NOSCRIPT", JOBQ_EIO, JOBQ__RETRYABLE, false},
    {"NOAUTH", JOBQ_ECONF, JOBQ__FATAL, true},
    {"WRONGPASS", JOBQ_ECONF, JOBQ__FATAL, true},
    {"NOPERM", JOBQ_ECONF, JOBQ__FATAL, true},
    {NOT_ALLOWED, JOBQ_ECONF, JOBQ__FATAL, true},
    {ACL_FAILURE, JOBQ_ECONF, JOBQ__FATAL, true},
    {"MOVED", JOBQ_EIO, JOBQ__RETRYABLE, true}, /* beyond the deadline of a Cluster's round trip */
    {"ASK", JOBQ_EIO, JOBQ__RETRYABLE, true},
    {"CROSSSLOT", JOBQ_ECONF, JOBQ__FATAL, true},
    {"ERR max number of clients", JOBQ_ECONNECT, JOBQ__RETRYABLE, true},
    {"ERR AUTH", JOBQ_ECONF, JOBQ__FATAL, true},
    {"ERR Client sent AUTH", JOBQ_ECONF, JOBQ__FATAL, true},
    {"ERR invalid password", JOBQ_ECONF, JOBQ__FATAL, true},
    {"ERR DB index", JOBQ_ECONF, JOBQ__FATAL, true},
    {"ERR invalid DB index", JOBQ_ECONF, JOBQ__FATAL, true},
    {"", JOBQ_EPROTO, 0, false},
};

/* Redis 6 wraps what a script met: "ERR Error running script ... -OOM command not allowed". */
static bool fits(const char *text, const char *word)
{
    size_t n = strlen(word);
    const char *inner;

    if (strncmp(text, word, n) == 0 && (n == 0 || !isupper((unsigned char)text[n])))
        return true;
    inner = strstr(text, ": -");
    return inner && n > 0 && strncmp(inner + 3, word, n) == 0;
}

static bool speaks_of_slots(const char *text)
{
    return fits(text, "MOVED") || fits(text, "ASK");
}

static bool speaks_of_rights(const char *text)
{
    return fits(text, "NOPERM") || fits(text, NOT_ALLOWED) || fits(text, ACL_FAILURE);
}

/* Redis 7 puts the hash of a script and a line of it behind what the script met. */
static size_t length_without_place(const char *text)
{
    static const char word[] = " script: ";

    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
        if (strspn(p + sizeof(word) - 1, "0123456789abcdef") == 40)
            return (size_t)(p - text);
    return strlen(text);
}

int jobq__redis_refused(rds_store *store, const rds_value *value)
{
    const char *text = value->type == RDS_ERROR ? value->p : "an answer that makes no sense";
    int n = (int)length_without_place(text);
    size_t i = 0;

    while (!fits(text, refusals[i].word))
        i++;
    if (fits(text, REFUSED) && n > (int)sizeof(REFUSED)) {
        text += sizeof(REFUSED);
        n -= (int)sizeof(REFUSED);
    }
    if (refusals[i].reconnect)
        jobq__redis_drop(store);
    if (!store->cluster && speaks_of_slots(text))
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", 0,
                                      "redis: %s (the server is part of a Redis Cluster: write "
                                      "redis-cluster://)",
                                      text);
    return jobq__error_set_driver(refusals[i].code, refusals[i].flags, "redis", 0, "redis: %.*s%s",
                                  n, text, speaks_of_rights(text) ? NEEDED : "");
}

int jobq__redis_nonsense(rds_store *store)
{
    jobq__redis_drop(store);
    return jobq__error_set_driver(JOBQ_EPROTO, 0, "redis", 0,
                                  "redis: the server answered something that makes no sense");
}

/* ---- scripts --------------------------------------------------------------------------------- */

/* While its slot is moved, part of a queue is here and part there: a script must run in neither
 * place. A second key that never exists makes the servers see to that (TRYAGAIN). */
static void add_guard(rds_store *store)
{
    jobq__buf_addc(&store->scratch, '!');
    jobq__redis_word(&store->link, store->scratch.p, store->scratch.n);
}

void jobq__redis_script(rds_store *store, rds_script_id id, const jobq_slice *queues, size_t n,
                        size_t words)
{
    rds_link *link = &store->link;
    size_t keys = n ? n : 1, all = keys + (store->cluster != NULL);

    jobq__redis_begin(link, 3 + all + words);
    jobq__redis_words(link, "EVALSHA");
    jobq__redis_word(link, jobq__redis_scripts[id].sha, 40);
    jobq__redis_number(link, (int64_t)all);
    for (size_t i = 0; i < keys; i++) {
        jobq__buf_reset(&store->scratch);
        if (n)
            jobq__redis_add_base(store, &store->scratch, queues[i]);
        else
            jobq__buf_add(&store->scratch, store->base.p, store->base.n);
        jobq__redis_word(link, store->scratch.p, store->scratch.n);
    }
    if (store->cluster)
        add_guard(store);
    if (store->scratch.failed)
        link->out.failed = true;
}

void jobq__redis_base_word(rds_store *store, const char *key)
{
    jobq__buf *out = &store->scratch;

    jobq__buf_reset(out);
    jobq__buf_add(out, store->base.p, store->base.n);
    jobq__buf_adds(out, key ? key : "");
    if (out->failed || !key)
        store->link.out.failed = true;
    jobq__redis_word(&store->link, out->p, out->n);
}

void jobq__redis_ask(rds_store *store, const char *command, const char *key)
{
    jobq__redis_begin(&store->link, 2);
    jobq__redis_words(&store->link, command);
    jobq__redis_base_word(store, key);
}

/* ---- round trips ----------------------------------------------------------------------------- */

/* The conversation broke off: what was sent may have been done. */
static int broke(rds_store *store, int rc, int kind)
{
    bool sent = store->link.out_sent > 0;
    struct jobq_error cause;

    jobq__error_save(&cause);
    jobq__redis_drop(store);
    jobq__error_restore(&cause);
    if (kind != RDS_WRITES || !sent || rc == JOBQ_ENOMEM)
        return rc;
    return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "redis", cause.native,
                                  "%s (it may have been done or not)", cause.message);
}

static int converse(rds_store *store, rds_value **values, size_t n)
{
    int64_t deadline = jobq__clock_mono_ms() + store->config->read_timeout_ms;
    int rc = jobq__redis_send(&store->link, deadline);

    return rc < 0 ? rc : jobq__redis_receive(&store->link, n, values, deadline);
}

static bool lacks_script(const rds_value *value)
{
    return value->type == RDS_ERROR && strncmp(value->p, "NOSCRIPT", 8) == 0;
}

static void load_all(rds_link *link)
{
    for (size_t i = 0; i < RDS_SCRIPTS; i++) {
        jobq__redis_begin(link, 3);
        jobq__redis_words(link, "SCRIPT");
        jobq__redis_words(link, "LOAD");
        jobq__redis_word(link, jobq__redis_scripts[i].text, jobq__redis_scripts[i].n);
    }
}

/* Loads the scripts and sends again those commands that lacked theirs: they did nothing. An account
 * that may not load them hears that. */
static int repeat(rds_store *store, rds_value **values, size_t n)
{
    rds_link *link = &store->link;
    rds_value *answers[RDS_SCRIPTS];
    jobq__buf sent = link->out;
    size_t again = 0, *starts = jobq__arena_copy(&store->arena, link->starts, n * sizeof(*starts));
    rds_value **second = jobq__arena_alloc(&store->arena, n * sizeof(rds_value *));
    int rc = 0;

    if (!starts || !second)
        return jobq__error_nomem();
    memset(&link->out, 0, sizeof(link->out));
    jobq__redis_clear(link);
    load_all(link);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (lacks_script(values[i])) {
            size_t end = i + 1 < n ? starts[i + 1] : sent.n;

            jobq__buf_add(&link->out, sent.p + starts[i], end - starts[i]);
            again++;
        }
    jobq__buf_free(&sent);
    if (rc == 0)
        rc = converse(store, answers, RDS_SCRIPTS);
    if (rc == 0)
        rc = jobq__redis_receive(link, again, second,
                                 jobq__clock_mono_ms() + store->config->read_timeout_ms);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++)
        if (lacks_script(values[i]))
            values[i] = answers[0]->type == RDS_ERROR ? answers[0] : second[k++];
    return rc;
}

int jobq__redis_round(rds_store *store, rds_value **values, size_t n, int kind)
{
    bool lacking = false;
    int rc;

    jobq__arena_reset(&store->link.arena);
    rc = store->cluster ? jobq__redis_cluster_converse(store, values, n)
                        : converse(store, values, n);
    for (size_t i = 0; i < n && rc == 0 && !store->cluster; i++)
        lacking = lacking || lacks_script(values[i]);
    if (rc == 0 && lacking)
        rc = repeat(store, values, n);
    if (rc < 0)
        return broke(store, rc, kind);
    jobq__redis_clear(&store->link);
    return 0;
}

int jobq__redis_call(rds_store *store, rds_value **value_out, int kind)
{
    int rc = jobq__redis_round(store, value_out, 1, kind);

    if (rc < 0)
        return rc;
    return (*value_out)->type == RDS_ERROR ? jobq__redis_refused(store, *value_out) : 0;
}
