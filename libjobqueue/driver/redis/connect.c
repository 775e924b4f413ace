/* SPDX-License-Identifier: MIT
 *
 * Opening a store, greeting the server, dropping what broke.
 */
#include "driver/redis/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

enum { DEFAULT_PORT = 6379, CONNECT_TIMEOUT_MS = 5000 };

/* ---- opening --------------------------------------------------------------------------------- */

/* Without a driver's name: a mistake of the caller, not an answer of the server. */
static int refuse(const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0, "redis: %s", what);
}

static const char *extra(const jobq_driver_config *config, const char *name)
{
    for (size_t i = 0; i < config->extra_count; i++)
        if (strcmp(config->extra[i].name, name) == 0)
            return config->extra[i].value;
    return NULL;
}

static bool is_cluster(const jobq_driver_config *config)
{
    return strstr(config->scheme, "-cluster") != NULL;
}

static bool is_sentinel(const jobq_driver_config *config)
{
    return strcmp(config->scheme, "redis-sentinel") == 0;
}

/* The path is the number of the database; that stands behind the name of a master, and in ?db=
 * beside a socket. */
static int read_database(const jobq_driver_config *config, int *database_out)
{
    bool is_unix = strcmp(config->scheme, "redis+unix") == 0;
    jobq_slice text = jobq__slice_text(extra(config, "db"));
    int64_t number = 0;

    if (is_unix && config->path.n == 0)
        return refuse("the dsn names no socket: write redis+unix:///run/redis.sock");
    if (is_sentinel(config)) {
        const char *slash = strchr(config->path.p, '/');

        text = jobq__slice_text(slash ? slash + 1 : NULL);
    } else if (!is_unix && config->path.n) {
        text = config->path;
    }
    if (text.n && (!jobq__str_int(text.p, text.n, &number) || number < 0 || number > 1000000))
        return refuse("the database is not a number (allowed: redis://host:6379/0)");
    if (is_cluster(config) && number != 0)
        return refuse("a Redis Cluster has no other database than 0");
    *database_out = (int)number;
    return 0;
}

static int check_scheme(const jobq_driver_config *config)
{
    if (config->prefix && !config->prefix[0])
        return refuse("the prefix is empty (allowed: 1 byte and more)");
    if (is_sentinel(config))
        return jobq__redis_check_sentinels(config);
    if (!is_cluster(config) && config->host.p && memchr(config->host.p, ',', config->host.n))
        return refuse("the dsn names several hosts (allowed: one)");
    return 0;
}

int jobq__redis_open(const jobq_driver_config *config, void **store_out)
{
    rds_store *store;
    int database = 0, rc = check_scheme(config);

    rc = rc ? rc : read_database(config, &database);
    if (rc < 0)
        return rc;
    store = jobq__zalloc(sizeof(*store));
    if (!store)
        return jobq__error_nomem();
    store->config = config;
    store->database = database;
    store->sentinel = is_sentinel(config);
    store->link.fd = -1;
    jobq__redis_add_base(store, &store->base,
                         jobq__slice_text(config->prefix ? config->prefix : "jobqueue"));
    rc = store->base.failed ? jobq__error_nomem() : 0;
    if (rc == 0 && is_cluster(config))
        rc = jobq__redis_cluster_open(store);
    if (rc < 0)
        jobq__redis_close(store);
    else
        *store_out = store;
    return rc;
}

void jobq__redis_free_link(rds_link *link)
{
    jobq__redis_hang_up(link);
    jobq__arena_free(&link->arena);
    jobq__buf_free(&link->out);
    jobq__free(link->starts);
}

/* In a forked child, too: closing its copy of a socket says nothing to the server. */
void jobq__redis_close(void *handle)
{
    rds_store *store = handle;

    if (!store)
        return;
    jobq__redis_free_link(&store->link);
    jobq__redis_news_free(store->news);
    jobq__redis_known_free(store->known);
    jobq__redis_cluster_free(store->cluster);
    jobq__buf_free(&store->base);
    jobq__buf_free(&store->scratch);
    jobq__arena_free(&store->arena);
    jobq__free(store);
}

void jobq__redis_drop(rds_store *store)
{
    jobq__redis_hang_up(&store->link);
    if (store->cluster)
        jobq__redis_cluster_drop(store);
    store->current.known = false;
}

bool jobq__redis_is_up(const rds_store *store)
{
    return store->cluster ? jobq__redis_cluster_is_up(store) : store->link.fd >= 0;
}

/* ---- greeting -------------------------------------------------------------------------------- */

static size_t ask_auth(const jobq_driver_config *config, rds_link *link)
{
    if (!config->password.p && !config->user.n)
        return 0; /* a name alone is sent, too: never as somebody else */
    jobq__redis_begin(link, config->user.n ? 3 : 2);
    jobq__redis_words(link, "AUTH");
    if (config->user.n)
        jobq__redis_word(link, config->user.p, config->user.n);
    jobq__redis_word(link, config->password.p ? config->password.p : "", config->password.n);
    return 1;
}

/* With Sentinel the server says itself whether it is the master. */
static size_t ask_role(const rds_store *store, rds_link *link)
{
    if (!store->sentinel)
        return 0;
    jobq__redis_begin(link, 1);
    jobq__redis_words(link, "ROLE");
    return 1;
}

static int check_role(const rds_value *value)
{
    rds_walk walk = {value, 0};

    if (jobq__slice_equal(jobq__redis_text(&walk), jobq__slice_text("master")))
        return 0;
    return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", 0,
                                  "redis: the server the sentinels name is not the master yet");
}

static size_t ask(rds_store *store, rds_link *link, bool first)
{
    size_t n = ask_auth(store->config, link) + ask_role(store, link);

    jobq__redis_begin(link, 2);
    jobq__redis_words(link, "SELECT");
    jobq__redis_number(link, store->database);
    jobq__redis_begin(link, 3);
    jobq__redis_words(link, "CLIENT");
    jobq__redis_words(link, "SETNAME");
    jobq__redis_words(link, "jobqueue");
    if (!first)
        return n + 2;
    jobq__redis_begin(link, 2);
    jobq__redis_words(link, "INFO");
    jobq__redis_words(link, "server");
    jobq__redis_begin(link, 1);
    jobq__redis_words(link, "TIME");
    jobq__redis_begin(link, 2);
    if (store->cluster) { /* another server may have it */
        jobq__redis_words(link, "ECHO");
        jobq__redis_words(link, "0");
        return n + 5;
    }
    jobq__redis_words(link, "GET");
    jobq__buf_reset(&store->scratch);
    jobq__buf_add(&store->scratch, store->base.p, store->base.n);
    jobq__buf_adds(&store->scratch, ":schema");
    if (store->scratch.failed)
        link->out.failed = true;
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    return n + 5;
}

/* The same error, with the account or the database it is about. */
static int refuse_greeting(rds_store *store, const rds_value *value, bool account)
{
    const jobq_slice user = store->config->user;
    struct jobq_error cause;

    jobq__redis_refused(store, value);
    jobq__error_save(&cause);
    if (account)
        return jobq__error_set_driver(cause.code, cause.flags, "redis", cause.native,
                                      "%s (user \"%.*s\")", cause.message, user.n ? (int)user.n : 7,
                                      user.n ? (const char *)user.p : "default");
    return jobq__error_set_driver(cause.code, cause.flags, "redis", cause.native,
                                  "%s (database %d)", cause.message, store->database);
}

static int read_greeting(rds_store *store, rds_value **values, size_t n, bool first)
{
    size_t base = first ? n - 5 : n - 2; /* AUTH and ROLE stand before */
    size_t role = store->sentinel ? base - 1 : n;

    for (size_t i = 0; i <= base; i++)
        if (values[i]->type == RDS_ERROR)
            return refuse_greeting(store, values[i], i < base);
        else if (i == role && check_role(values[i]) < 0)
            return jobq__error_code();
    if (!first)
        return 0;
    if (values[n - 1]->type == RDS_ERROR)
        return jobq__redis_refused(store, values[n - 1]);
    if (!store->cluster)
        store->version = jobq__redis_read_version(values[n - 1]);
    return jobq__redis_check_server(store, values[n - 3], values[n - 2]);
}

static int find_address(rds_store *store, jobq_slice key, rds_address *out, int64_t deadline_ms)
{
    const jobq_driver_config *config = store->config;
    const char *path = config->path.p, *host = config->host.n ? config->host.p : "127.0.0.1";

    if (store->cluster)
        return jobq__redis_cluster_address(store, key, out);
    if (store->sentinel)
        return jobq__redis_find_master(config, out, deadline_ms);
    out->port = config->port ? config->port : DEFAULT_PORT;
    if (strcmp(config->scheme, "redis+unix") == 0) {
        out->port = 0;
        host = path;
    }
    if (strlen(host) >= sizeof(out->host) - 1)
        return refuse("the name of the host is too long (allowed: 254 bytes)");
    snprintf(out->host, sizeof(out->host), "%s%s", out->port == 0 && *path != '/' ? "/" : "", host);
    return 0;
}

/* Before anything was asked for, a connection that breaks is one that could not be had. */
static int not_reached(int rc)
{
    struct jobq_error cause;

    if (rc != JOBQ_EIO && rc != JOBQ_ETIMEOUT)
        return rc;
    jobq__error_save(&cause);
    return jobq__error_set_driver(JOBQ_ECONNECT, cause.flags, "redis", cause.native, "%s",
                                  cause.message);
}

int jobq__redis_greet_at(rds_store *store, rds_link *link, bool first, const rds_address *address,
                         int64_t deadline_ms)
{
    rds_value *values[7];
    size_t n;
    int rc = jobq__redis_dial(store->config, address, link, deadline_ms);

    if (rc < 0)
        return rc;
    jobq__arena_reset(&link->arena);
    n = ask(store, link, first);
    rc = jobq__redis_send(link, deadline_ms);
    if (rc == 0)
        rc = jobq__redis_receive(link, n, values, deadline_ms);
    if (rc == 0)
        rc = read_greeting(store, values, n, first);
    jobq__redis_clear(link);
    if (rc < 0)
        jobq__redis_hang_up(link);
    return rc < 0 ? not_reached(rc) : 0;
}

int jobq__redis_greet(rds_store *store, rds_link *link, bool first, jobq_slice key,
                      int64_t deadline_ms)
{
    rds_address address;
    int rc = find_address(store, key, &address, deadline_ms);

    return rc ? rc : jobq__redis_greet_at(store, link, first, &address, deadline_ms);
}

int64_t jobq__redis_connect_deadline(const rds_store *store)
{
    int64_t limit = store->config->connect_timeout_ms;

    return jobq__clock_mono_ms() + (limit > 0 ? limit : CONNECT_TIMEOUT_MS);
}

int jobq__redis_ready(rds_store *store)
{
    const jobq_slice none = {0};

    jobq__arena_reset(&store->arena);
    if (store->cluster) {
        jobq__redis_clear(&store->link);
        return jobq__redis_cluster_ready(store, false);
    }
    if (store->link.fd >= 0 && jobq__redis_is_stale(&store->link))
        jobq__redis_drop(store);
    jobq__redis_clear(&store->link);
    if (store->link.fd >= 0)
        return 0;
    return jobq__redis_greet(store, &store->link, true, none, jobq__redis_connect_deadline(store));
}
