/* SPDX-License-Identifier: MIT
 *
 * What kind of server is it, since when does it run, what time is it there; and what still runs
 * there for us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "driver/mysql/mysql.h"
#include "util/clock.h"
#include "util/error.h"

#define UPTIME "SHOW GLOBAL STATUS LIKE 'Uptime'"
#define NOW "SELECT " NOW_MS

/* Some servers put an old version in front for old clients: "5.5.5-10.11.6-MariaDB". */
bool jobq__mysql_is_new_enough(const char *version)
{
    const bool mariadb = strstr(version, "MariaDB") != NULL;
    long major, minor;
    char *end;

    if (mariadb && strncmp(version, "5.5.5-", 6) == 0)
        version += 6;
    major = strtol(version, &end, 10);
    minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
    if (minor < 0)
        return false;
    return mariadb ? major > 10 || (major == 10 && minor >= 6) : major >= 8;
}

int jobq__mysql_check_server(const char *version)
{
    if (jobq__mysql_is_new_enough(version))
        return 0;
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "mysql", 0,
                                  "mysql: the server is version %s, which lacks SKIP LOCKED: it "
                                  "must be MariaDB 10.6 or MySQL 8, or newer",
                                  version);
}

int jobq__mysql_started_at(mysql_store *store, int64_t *at_ms_out)
{
    mysql_statement *rows = NULL;
    int64_t now_ms = 0, uptime_s = 0;
    bool found = false;
    int rc = 0;

    if (store->started_at_ms == 0) {
        rc = jobq__mysql_select(store, UPTIME, NULL, &rows);
        if (rc == 0 && jobq__mysql_next(rows))
            uptime_s = jobq__mysql_number(rows, 1);
        jobq__mysql_end(rows);
        rc = rc ? rc : jobq__mysql_ask(store, NOW, NULL, &found, &now_ms);
        if (rc < 0)
            return rc;
        /* A clock that was set back may make it nonsense: then it has just started. */
        uptime_s = uptime_s < 0 || uptime_s > now_ms / 1000 ? 0 : uptime_s;
        store->started_at_ms = now_ms - uptime_s * 1000;
    }
    *at_ms_out = store->started_at_ms;
    return 0;
}

static int ask_now(mysql_store *store, void *payload)
{
    bool found = false;
    int64_t now_ms = 0;
    int rc = jobq__mysql_ask(store, NOW, NULL, &found, &now_ms);

    if (rc == 0)
        *(int64_t *)payload = now_ms;
    return rc;
}

int jobq__mysql_now(void *handle, int64_t *now_ms_out)
{
    return jobq__mysql_do(handle, 0, ask_now, now_ms_out);
}

/* ---- a connection that was given up ---------------------------------------------------------- */

enum { SAME_START_MS = 3000, END_US = 1000000, END_NAP_NS = 5000000 };

void jobq__mysql_note_lost(mysql_store *store)
{
    /* Not where nothing was asked that an exchange begins with. */
    if (store->suspect && store->session && store->started_at_ms && !store->lost.session) {
        store->lost.session = store->session;
        store->lost.server_at_ms = store->started_at_ms;
    }
    store->session = 0;
}

/* Whoever is not allowed to, or behind a proxy that has numbers of its own: so be it. */
static int kill_session(mysql_store *store, int64_t session)
{
    int64_t until_us = jobq__clock_mono_us() + END_US, left = 1;
    char sql[128];
    int rc;

    snprintf(sql, sizeof(sql), "KILL %lld", (long long)session);
    rc = jobq__mysql_query(store, sql);
    snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM information_schema.processlist WHERE id=%lld",
             (long long)session);
    /* It is in the list until its transaction is rolled back. */
    while (rc == 0 && left > 0 && jobq__clock_mono_us() < until_us) {
        rc = jobq__mysql_query_numbers(store, sql, &left, 1);
        if (rc == 0 && left > 0)
            nanosleep(&(struct timespec){0, END_NAP_NS}, NULL);
    }
    if (rc < 0 && store->suspect)
        return rc;
    jobq__error_clear();
    return 0;
}

int jobq__mysql_end_lost(mysql_store *store)
{
    int64_t at_ms = 0;
    int rc = store->lost.session ? jobq__mysql_started_at(store, &at_ms) : 0;

    /* A server that was started since has forgotten it, and gives its number to others. */
    if (rc == 0 && store->lost.session && llabs(at_ms - store->lost.server_at_ms) < SAME_START_MS)
        rc = kill_session(store, store->lost.session);
    if (rc == 0)
        store->lost.session = 0;
    return rc;
}
