/* SPDX-License-Identifier: MIT
 *
 * Which stores there are. A driver is one line here and one folder; a scheme that belongs to a
 * driver this build lacks is known by name, so that the message can say so.
 */
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "driver/memory/memory.h"
#include "util/error.h"
#include "util/str.h"

#ifndef JOBQ_WITH_SQLITE
#define JOBQ_WITH_SQLITE 1
#endif
#ifndef JOBQ_WITH_REDIS
#define JOBQ_WITH_REDIS 0
#endif
#ifndef JOBQ_WITH_PGSQL
#define JOBQ_WITH_PGSQL 0
#endif
#ifndef JOBQ_WITH_MYSQL
#define JOBQ_WITH_MYSQL 0
#endif
/* Declared here: their headers bring the client libraries'. */
#if JOBQ_WITH_SQLITE
extern const jobq_driver jobq__sqlite_driver;
#endif
#if JOBQ_WITH_REDIS
extern const jobq_driver jobq__redis_driver, jobq__redis_cluster_driver;
#endif
#if JOBQ_WITH_PGSQL
extern const jobq_driver jobq__pgsql_driver;
#endif
#if JOBQ_WITH_MYSQL
extern const jobq_driver jobq__mysql_driver;
#endif

static const jobq_driver *const drivers[] = {
#if JOBQ_WITH_SQLITE
    &jobq__sqlite_driver,
#endif
#if JOBQ_WITH_REDIS
    &jobq__redis_driver,  &jobq__redis_cluster_driver,
#endif
#if JOBQ_WITH_PGSQL
    &jobq__pgsql_driver,
#endif
#if JOBQ_WITH_MYSQL
    &jobq__mysql_driver,
#endif
    &jobq__memory_driver,
};
enum { DRIVERS = sizeof(drivers) / sizeof(drivers[0]) };

/* Why a driver is absent, before what it needs. Other builds than configure's do not say which. */
enum { NOT_SAID, NOT_FOUND, SWITCHED_OFF };
static const char *const reasons[] = {
    [NOT_SAID] = "it was switched off, or the build found no ",
    [NOT_FOUND] = "configure found no ",
    [SWITCHED_OFF] = "it was switched off when configured (--without-...); it needs ",
};

#ifdef JOBQ_LEFT_OUT /* a bit for each that --without-NAME has switched off */
#define WHY(bit) (JOBQ_LEFT_OUT & (bit) ? SWITCHED_OFF : NOT_FOUND)
#else
#define WHY(bit) NOT_SAID
#endif

/* Every driver there can be: what it needs when the library is configured. */
static const struct {
    const char *name, *schemes, *needs;
    int why;
} known[] = {
    {"sqlite", "sqlite", "SQLite (Debian: libsqlite3-dev)", WHY(1)},
    {"redis", "redis rediss redis+unix redis-sentinel redis-cluster rediss-cluster",
     "hiredis and OpenSSL (Debian: libhiredis-dev libssl-dev)", WHY(2)},
    {"postgresql", "postgresql postgres", "libpq (Debian: libpq-dev)", WHY(4)},
    {"mysql", "mysql mariadb", "libmariadb (Debian: libmariadb-dev)", WHY(8)},
};
enum { KNOWN = sizeof(known) / sizeof(known[0]) };

const char *jobq_driver_name(size_t i)
{
    return i < DRIVERS ? drivers[i]->name : NULL;
}

static const char *next_scheme(void *payload, size_t i)
{
    static const char *const all[] = {
        "sqlite",        "memory",         "redis",      "rediss",   "redis+unix", "redis-sentinel",
        "redis-cluster", "rediss-cluster", "postgresql", "postgres", "mysql",      "mariadb"};

    (void)payload;
    return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

/* What other libraries call them: too far off, or nearer to a wrong one. */
static const struct {
    const char *word, *scheme;
} foreign[] = {
    {"pgsql", "postgresql"}, {"pdo-pgsql", "postgresql"}, {"psql", "postgresql"},
    {"pg", "postgresql"},    {"pdo-mysql", "mysql"},      {"valkey", "redis"},
    {"valkeys", "rediss"},   {"unix", "redis+unix"},
};

static const char *find_near(const char *word)
{
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (strcmp(foreign[i].word, word) == 0)
            return foreign[i].scheme;
    return jobq__str_nearest(word, next_scheme, NULL);
}

static void list_built(char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < DRIVERS && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", drivers[i]->name);
}

static int refuse_scheme(const char *scheme, size_t n)
{
    char word[64], built[256];
    const char *near;

    list_built(built, sizeof(built));
    for (size_t i = 0; i < KNOWN; i++)
        if (jobq__word_listed(known[i].schemes, scheme, n))
            return jobq__error_set_driver(
                JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                "the %s driver is not part of this build: %s%s (built in: %s)", known[i].name,
                reasons[known[i].why], known[i].needs, built);
    snprintf(word, sizeof(word), "%.*s", (int)(n < 60 ? n : 60), scheme);
    near = find_near(word);
    if (near)
        return jobq__error_set_driver(
            JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
            "unknown store \"%s\" in the dsn, did you mean \"%s\"? (built in: %s)", word, near,
            built);
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                  "unknown store \"%s\" in the dsn (built in: %s)", word, built);
}

const jobq_driver *jobq__driver_find(const char *scheme, size_t n)
{
    for (size_t i = 0; i < DRIVERS; i++)
        if (jobq__word_listed(drivers[i]->schemes, scheme, n))
            return jobq__driver_check(drivers[i]) == 0 ? drivers[i] : NULL;
    refuse_scheme(scheme, n);
    return NULL;
}

/* Every function is required; a missing one is found here and not in the middle of a night. They
 * stand one behind the other at the end of the table. */
static bool has_functions(const jobq_driver *d)
{
    static const char none[sizeof(d->now)];
    const char *end = (const char *)(&d->now + 1);

    for (const char *p = (const char *)&d->open; p < end; p += sizeof(d->now))
        if (memcmp(p, none, sizeof(d->now)) == 0)
            return false;
    return true;
}

int jobq__driver_check(const jobq_driver *driver)
{
    const char *name = driver->name ? driver->name : "?";

    if (driver->abi != JOBQ_DRIVER_ABI)
        return jobq__error_set(JOBQ_EUNSUPPORTED,
                               "the %s driver has interface %u, this library has %d", name,
                               (unsigned)driver->abi, JOBQ_DRIVER_ABI);
    if (driver->size < sizeof(jobq_driver))
        return jobq__error_set(JOBQ_EUNSUPPORTED,
                               "the %s driver's table has %zu bytes, this library needs %zu", name,
                               driver->size, sizeof(jobq_driver));
    if (!driver->name || !driver->name[0] || !driver->schemes || !driver->schemes[0])
        return jobq__error_set(JOBQ_EUNSUPPORTED, "a driver without a name or scheme");
    if (!driver->options)
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s driver does not say its options", name);
    if (!has_functions(driver))
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s driver lacks a required operation", name);
    if (driver->max_batch < 1 || driver->max_body < 1)
        return jobq__error_set(JOBQ_EUNSUPPORTED, "the %s driver has a limit of zero", name);
    return 0;
}
