/* SPDX-License-Identifier: MIT
 *
 * Making a store: which DSN is meant (argument, environment, default), which driver serves it, what
 * its options say. Connects to nothing.
 */
#include "driver/store.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/error.h"

#define DEFAULT_DSN "sqlite:jobqueue.db"
#define VARIABLE "JOBQUEUE_DSN"

enum { WORD_MAX = 64 };

static bool is_word(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return n > 0 && n <= WORD_MAX && s[n] == '\0';
}

/* The DSN behind a connection's name: $JOBQUEUE_DSN_NAME. */
static int resolve_word(const char *word, const char **dsn_out)
{
    char variable[sizeof(VARIABLE "_") + WORD_MAX] = VARIABLE "_";
    size_t used = strlen(variable);
    const char *value;

    for (const char *c = word; *c; c++)
        variable[used++] = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c == '-' ? '_' : *c);
    variable[used] = '\0';
    value = getenv(variable);
    if (!value || !*value)
        return jobq__error_set_driver(
            JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
            "connection \"%s\" is not configured: set %s, or give a dsn such as sqlite:FILE", word,
            variable);
    *dsn_out = value;
    return 0;
}

static int resolve(jobq__store *store, const char *dsn, const char **dsn_out)
{
    const char *value = getenv(VARIABLE);

    store->connection = "default";
    if (!dsn) {
        *dsn_out = value && *value ? value : DEFAULT_DSN;
        return 0;
    }
    *dsn_out = dsn;
    if (!is_word(dsn))
        return 0;
    store->connection = jobq__arena_copy(&store->arena, dsn, strlen(dsn));
    return store->connection ? resolve_word(dsn, dsn_out) : jobq__error_nomem();
}

static int take_option(void *payload, const char *name, const char *value, size_t n)
{
    return jobq_conf_set(payload, name, value, n);
}

/* Options that were given win over those of the query string. */
static int read_dsn(jobq__store *store, const char *dsn, jobq_conf *conf, jobq_conf *query)
{
    int rc = jobq__dsn_parse(dsn, &store->arena, &store->config, take_option, query);

    if (rc == 0)
        rc = jobq_conf_merge(query, conf);
    if (rc < 0)
        return rc;
    jobq_conf_reset(conf);
    return jobq_conf_merge(conf, query);
}

static const char *keep(jobq__store *store, const char *text)
{
    return text ? jobq__arena_copy(&store->arena, text, strlen(text)) : NULL;
}

static void read_conf(jobq__store *store, const jobq_conf *conf)
{
    jobq_driver_config *config = &store->config;
    const jobq__settings *s = &conf->s;

    config->migrate = s->migrate;
    config->read_timeout_ms = s->read_timeout_ms;
    config->synchronous = keep(store, s->synchronous);
}

static int refuse_file(const jobq_driver *driver, const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, driver->name, 0,
                                  "%s: %s: write %s:FILE or %s:///ABSOLUTE/FILE", driver->name,
                                  what, driver->name, driver->name);
}

/* The file's full path is fixed now: a later chdir must not lead to another file. */
static int resolve_file(jobq__store *store)
{
    jobq_driver_config *config = &store->config;
    const jobq_driver *driver = store->driver;
    char folder[PATH_MAX], *full;
    size_t n;

    if (!(driver->features & JOBQ_FEATURE_FILE))
        return 0;
    if (config->host.n || config->user.n)
        return refuse_file(driver, "the dsn names a host");
    if (config->path.n == 0)
        return refuse_file(driver, "the dsn names no file");
    if (strcmp(config->path.p, ":memory:") == 0)
        return refuse_file(driver, "a database in memory is not shared (the dsn memory: is meant "
                                   "for that)");
    if (((const char *)config->path.p)[0] == '/') {
        store->file = config->path.p;
        return 0;
    }
    if (!getcwd(folder, sizeof(folder)))
        return refuse_file(driver, "the current folder is gone");
    n = strlen(folder);
    full = jobq__arena_alloc(&store->arena, n + config->path.n + 2);
    if (full) {
        memcpy(full, folder, n);
        full[n] = '/';
        memcpy(full + n + 1, config->path.p, config->path.n);
        config->path = jobq__slice(full, n + 1 + config->path.n);
        store->file = full;
    }
    return full ? 0 : jobq__error_nomem();
}

static int set_up(jobq__store *store, const char *dsn, jobq_conf *conf, jobq_conf *query)
{
    const char *given = NULL;
    int rc = resolve(store, dsn, &given);

    if (rc < 0)
        return rc;
    store->shown = jobq__dsn_mask(given, &store->arena);
    /* The scheme is judged before the options, so that an absent driver is named first. */
    rc = jobq__dsn_parse(given, &store->arena, &store->config, NULL, NULL);
    if (rc < 0)
        return rc;
    store->driver = jobq__driver_find(store->config.scheme, strlen(store->config.scheme));
    if (!store->driver)
        return jobq__error_code();
    rc = read_dsn(store, given, conf, query);
    if (rc < 0)
        return rc;
    read_conf(store, conf);
    return resolve_file(store);
}

int jobq__store_new(const char *dsn, jobq_conf *conf, jobq__store **store_out)
{
    jobq__store *store = jobq__zalloc(sizeof(*store));
    jobq_conf *query = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    jobq_conf *own = conf ? NULL : jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    int rc = store && query && (conf || own) ? set_up(store, dsn, conf ? conf : own, query)
                                             : jobq__error_nomem();

    jobq_conf_free(query);
    jobq_conf_free(own);
    if (rc < 0) {
        jobq__store_free(store);
        return rc;
    }
    *store_out = store;
    return 0;
}

const jobq_driver *jobq__store_driver(const jobq__store *store)
{
    return store->driver;
}

const char *jobq__store_shown_dsn(const jobq__store *store)
{
    return store->shown;
}

const char *jobq__store_connection(const jobq__store *store)
{
    return store->connection;
}

const char *jobq__store_file(const jobq__store *store)
{
    return store->file;
}
