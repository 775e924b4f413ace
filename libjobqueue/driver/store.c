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
#include "util/str.h"

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
    if (!dsn)
        dsn = value && *value ? value : DEFAULT_DSN;
    *dsn_out = dsn;
    if (!is_word(dsn))
        return 0;
    store->connection = jobq__arena_copy(&store->arena, dsn, strlen(dsn));
    return store->connection ? resolve_word(dsn, dsn_out) : jobq__error_nomem();
}

/* Where the options of a DSN's query string go. */
struct query {
    jobq__store *store;
    jobq_conf *conf;
    jobq_driver_option *extra; /* options of the client library */
    size_t count;
};

static const char *keep(jobq__store *store, const char *text)
{
    return text ? jobq__arena_copy(&store->arena, text, strlen(text)) : NULL;
}

static int take_extra(struct query *query, const char *name, const char *value)
{
    jobq_driver_option *extra =
        jobq__realloc(query->extra, (query->count + 1) * sizeof(*query->extra));

    if (!extra)
        return jobq__error_nomem();
    query->extra = extra;
    extra[query->count].name = keep(query->store, name);
    extra[query->count].value = keep(query->store, value);
    if (!extra[query->count].name || !extra[query->count].value)
        return jobq__error_nomem();
    query->count++;
    return 0;
}

/* The names that a misspelled one may have meant: ours, then the driver's own. */
static const char *next_option(void *payload, size_t i)
{
    const struct query *query = payload;
    const char *const *own = query->store->driver->own, *name;
    size_t ours = 0;

    while ((name = jobq__conf_next_name(query->conf, ours)) != NULL)
        if (ours++ == i)
            return name;
    for (i -= ours; own && *own && i > 0; i--)
        own++;
    return own ? *own : NULL;
}

/* The options that only some stores have: where they stand in the settings and in the config. */
static const struct {
    const char *name;
    size_t setting, config;
} store_texts[] = {
    {"synchronous", offsetof(jobq__settings, synchronous),
     offsetof(jobq_driver_config, synchronous)},
    {"prefix", offsetof(jobq__settings, prefix), offsetof(jobq_driver_config, prefix)},
    {"schema", offsetof(jobq__settings, schema), offsetof(jobq_driver_config, schema)},
    {"ca", offsetof(jobq__settings, ca), offsetof(jobq_driver_config, ca)},
    {"cert", offsetof(jobq__settings, cert), offsetof(jobq_driver_config, cert)},
    {"key", offsetof(jobq__settings, key), offsetof(jobq_driver_config, key)},
    /* not texts: only refused here */
    {"verify", offsetof(jobq__settings, verify), 0},
    {"listen", offsetof(jobq__settings, listen), 0},
    {"connect_timeout", offsetof(jobq__settings, connect_timeout_ms), 0},
};

static bool concerns(const jobq_driver *driver, const char *name)
{
    for (size_t i = 0; i < sizeof(store_texts) / sizeof(store_texts[0]); i++)
        if (strcmp(store_texts[i].name, name) == 0)
            return jobq__word_listed(driver->options, name, strlen(name));
    return true;
}

/* Those of them that this store takes. */
static const char *next_allowed(void *payload, size_t i)
{
    const struct query *query = payload;
    const char *name;

    for (size_t k = 0; (name = next_option(payload, k)) != NULL; k++)
        if (concerns(query->store->driver, name) && i-- == 0)
            return name;
    return NULL;
}

/* The driver's own words are compared, too. */
static int refuse_name(struct query *query, const char *name)
{
    const char *near = jobq__str_nearest(name, next_option, query);
    char allowed[700];

    if (!near) {
        jobq__str_list(allowed, sizeof(allowed), next_allowed, query);
        return jobq__error_set_subject(JOBQ_ECONF, name, strlen(name),
                                       "unknown option \"%.64s\" (allowed: %s)", name, allowed);
    }
    return jobq__error_set_subject(JOBQ_ECONF, name, strlen(name),
                                   "unknown option \"%.64s\", did you mean \"%s\"?", name, near);
}

/* Ours come first: what both know under one name (connect_timeout) is ours. */
static int take_option(void *payload, const char *name, const char *value, size_t n)
{
    struct query *query = payload;
    const jobq_driver *driver = query->store->driver;

    if (jobq_conf_check(query->conf, name) == 0)
        return jobq_conf_set(query->conf, name, value, n);
    if (driver->takes && driver->takes(name)) {
        jobq__error_clear();
        return take_extra(query, name, value);
    }
    return jobq__conf_is_option(name) ? jobq__error_code() : refuse_name(query, name);
}

/* Options that were given win over those of the query string. */
static int read_dsn(jobq__store *store, const char *dsn, jobq_conf *conf, jobq_conf *made)
{
    struct query query = {store, made, NULL, 0};
    int rc = jobq__dsn_parse(dsn, &store->arena, &store->config, take_option, &query);

    store->config.extra = jobq__arena_copy(&store->arena, (const char *)query.extra,
                                           query.count * sizeof(*query.extra));
    store->config.extra_count = query.count;
    jobq__free(query.extra);
    if (rc == 0)
        rc = store->config.extra ? jobq_conf_merge(made, conf) : jobq__error_nomem();
    if (rc < 0)
        return rc;
    jobq_conf_reset(conf);
    return jobq_conf_merge(conf, made);
}

static int refuse_option(const jobq_driver *driver, const char *name)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                  "the %s driver has no option \"%s\" (of its own it has: %s)",
                                  driver->name, name,
                                  driver->options[0] ? driver->options : "none");
}

/* An option that does not concern this store is refused, never ignored. */
static int check_options(const jobq_driver *driver, const jobq_conf *conf)
{
    for (size_t i = 0; i < sizeof(store_texts) / sizeof(store_texts[0]); i++)
        if (jobq__conf_given_at(conf, store_texts[i].setting) &&
            !jobq__word_listed(driver->options, store_texts[i].name, strlen(store_texts[i].name)))
            return refuse_option(driver, store_texts[i].name);
    return 0;
}

static int read_conf(jobq__store *store, const jobq_conf *conf)
{
    jobq_driver_config *config = &store->config;
    const jobq__settings *s = &conf->s;

    config->migrate = s->migrate;
    config->verify = s->verify;
    config->listen = s->listen;
    config->read_timeout_ms = s->read_timeout_ms;
    config->connect_timeout_ms = s->connect_timeout_ms;
    for (size_t i = 0; i < sizeof(store_texts) / sizeof(store_texts[0]); i++) {
        const char *const *from = (const void *)((const char *)s + store_texts[i].setting);
        const char **to = (void *)((char *)config + store_texts[i].config);

        if (store_texts[i].config == 0)
            continue;
        *to = keep(store, *from);
        if (*from && !*to)
            return jobq__error_nomem();
    }
    return check_options(store->driver, conf);
}

static int refuse_file(const jobq_driver *driver, const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
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

/* A server's address stands behind "//". Without it a password would be taken for the database's
 * name, and shown with it. */
static int check_form(const jobq__store *store)
{
    const jobq_driver_config *config = &store->config;

    if (!(store->driver->features & JOBQ_FEATURE_SHARED) ||
        (store->driver->features & JOBQ_FEATURE_FILE) || config->host.p)
        return 0;
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                  "the %s dsn lacks \"//\": write %s://HOST/...", config->scheme,
                                  config->scheme);
}

static int set_up(jobq__store *store, const char *dsn, jobq_conf *conf, jobq_conf *query)
{
    const char *given = NULL;
    int rc = resolve(store, dsn, &given);

    if (rc < 0)
        return rc;
    store->given = keep(store, given);
    store->shown = jobq__dsn_mask(given, &store->arena);
    if (!store->given)
        return jobq__error_nomem();
    /* The scheme is judged before the options, so that an absent driver is named first. */
    rc = jobq__dsn_parse(given, &store->arena, &store->config, NULL, NULL);
    if (rc < 0)
        return rc;
    store->driver = jobq__driver_find(store->config.scheme, strlen(store->config.scheme));
    if (!store->driver)
        return jobq__error_code();
    rc = check_form(store);
    rc = rc ? rc : read_dsn(store, given, conf, query);
    if (rc < 0)
        return rc;
    rc = read_conf(store, conf);
    return rc < 0 ? rc : resolve_file(store);
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

static int keep_place(jobq__store *twin, const jobq__store *store)
{
    twin->connection = keep(twin, store->connection);
    if (store->file) {
        twin->file = keep(twin, store->file);
        twin->config.path = jobq__slice(twin->file, strlen(store->file));
    }
    return twin->connection && (twin->file || !store->file) ? 0 : jobq__error_nomem();
}

int jobq__store_twin(const jobq__store *store, jobq_conf *conf, jobq__store **twin_out)
{
    jobq__store *twin = NULL;
    int rc;

    if (!(store->driver->features & JOBQ_FEATURE_SHARED))
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s store is its handle's alone",
                               store->driver->name);
    rc = jobq__store_new(store->given, conf, &twin);
    rc = rc ? rc : keep_place(twin, store);
    if (rc < 0) {
        jobq__store_free(twin);
        return rc;
    }
    *twin_out = twin;
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
