/* SPDX-License-Identifier: MIT
 *
 * Sentinel: which server is the master now? The sentinels are asked in the order given; the first
 * one that knows the name is believed, and the server is asked itself whether it is (connect.c).
 */
#include <stdio.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/clock.h"
#include "util/error.h"

enum { SENTINEL_PORT = 26379, PATIENCE_MS = 1000 };

/* A single host has lost its port to the config. */
static bool next_sentinel(const jobq_driver_config *config, const char **list, rds_address *out)
{
    if (memchr(config->host.p, ',', config->host.n))
        return jobq__redis_next_address(list, SENTINEL_PORT, out);
    *list += strlen(*list);
    if (config->host.n >= sizeof(out->host))
        return false;
    memcpy(out->host, config->host.p, config->host.n + 1);
    out->port = config->port ? config->port : SENTINEL_PORT;
    return true;
}

int jobq__redis_check_sentinels(const jobq_driver_config *config)
{
    const char *list = config->host.n ? config->host.p : "";
    bool good = *list && config->path.n && *(const char *)config->path.p != '/';
    rds_address address;

    while (good && *list)
        good = next_sentinel(config, &list, &address);
    if (good)
        return 0;
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                  "redis: the dsn names no sentinels and master (allowed: "
                                  "redis-sentinel://host1:26379,host2:26379/master/0)");
}

/* The answer: host and port, or nil for a name it does not know. */
static int read_address(const rds_value *value, jobq_slice name, rds_address *out)
{
    rds_walk walk = {value, 0};
    jobq_slice host;

    if (value->type == RDS_ERROR)
        return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "redis", 0,
                                      "redis: the sentinel says: %s", value->p);
    host = jobq__redis_text(&walk);
    out->port = (int)jobq__redis_int(&walk);
    if (host.n == 0 || host.n >= sizeof(out->host) || out->port < 1)
        return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", 0,
                                      "redis: the sentinels know no master \"%.*s\"", (int)name.n,
                                      (const char *)name.p);
    memcpy(out->host, host.p, host.n);
    out->host[host.n] = '\0';
    return 0;
}

/* SENTINEL with a word and the master's name; the answer lies in the link. */
static int converse(const jobq_driver_config *config, const rds_address *sentinel, const char *word,
                    jobq_slice name, rds_link *link, rds_value **value_out, int64_t deadline_ms)
{
    int rc = jobq__redis_dial(config, sentinel, link, deadline_ms);

    if (rc == 0) {
        jobq__redis_begin(link, 3);
        jobq__redis_words(link, "SENTINEL");
        jobq__redis_words(link, word);
        jobq__redis_word(link, name.p, name.n);
        rc = jobq__redis_send(link, deadline_ms);
    }
    return rc ? rc : jobq__redis_receive(link, 1, value_out, deadline_ms);
}

static int ask_one(const jobq_driver_config *config, const rds_address *sentinel, jobq_slice name,
                   rds_address *out, int64_t deadline_ms)
{
    rds_link link = {.fd = -1};
    rds_value *value;
    int rc =
        converse(config, sentinel, "get-master-addr-by-name", name, &link, &value, deadline_ms);

    rc = rc ? rc : read_address(value, name, out);
    jobq__redis_free_link(&link);
    return rc;
}

/* A sentinel that is silent must not use up the time of the others. */
int jobq__redis_find_master(const jobq_driver_config *config, rds_address *out, int64_t deadline_ms)
{
    const char *list = config->host.p, *path = config->path.p;
    const jobq_slice name = {path, strcspn(path, "/")};
    int rc = JOBQ_ECONNECT;

    while (*list && rc != 0) {
        int64_t patience = jobq__clock_mono_ms() + PATIENCE_MS;
        rds_address sentinel;

        if (next_sentinel(config, &list, &sentinel))
            rc = ask_one(config, &sentinel, name, out,
                         patience < deadline_ms ? patience : deadline_ms);
    }
    return rc;
}

/* The first one that answers is believed; the others are only counted. */
int jobq__redis_ask_quorum(const jobq_driver_config *config, size_t *asked_out, size_t *silent_out,
                           char *said, size_t room, int64_t deadline_ms)
{
    const char *list = config->host.p, *path = config->path.p;
    const jobq_slice name = {path, strcspn(path, "/")};
    bool heard = false, good = false;

    snprintf(said, room, "no sentinel answers");
    while (*list) {
        int64_t patience = jobq__clock_mono_ms() + PATIENCE_MS;
        rds_link link = {.fd = -1};
        rds_address sentinel;
        rds_value *value = NULL;

        if (!next_sentinel(config, &list, &sentinel))
            continue;
        ++*asked_out;
        if (converse(config, &sentinel, "CKQUORUM", name, &link, &value,
                     patience < deadline_ms ? patience : deadline_ms) < 0) {
            ++*silent_out;
        } else if (!heard && value) {
            heard = true;
            good = value->type == RDS_STATUS;
            snprintf(said, room, "%s", value->p ? value->p : "");
        }
        jobq__redis_free_link(&link);
    }
    return good ? 0 : JOBQ_ECONNECT;
}
