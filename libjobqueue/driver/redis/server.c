/* SPDX-License-Identifier: MIT
 *
 * What kind of server is it, of which version, since when does it run: what INFO says of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

enum { OLDEST = 60200 };

jobq_slice jobq__redis_info(const char *info, const char *name)
{
    const size_t n = strlen(name);

    for (const char *p = info; p; p = *p ? p + 1 : NULL) {
        if (strncmp(p, name, n) == 0 && p[n] == ':')
            return jobq__slice(p + n + 1, strcspn(p + n + 1, "\r\n"));
        p += strcspn(p, "\n");
    }
    return jobq__slice("", 0);
}

static int64_t number_in(const char *info, const char *name)
{
    return strtoll(jobq__redis_info(info, name).p, NULL, 10);
}

static int read_version(const char *info)
{
    const char *p = jobq__redis_info(info, "redis_version").p;
    long version = 0;

    for (int i = 0; i < 3; i++) {
        char *end;

        version = version * 100 + strtol(p, &end, 10) % 1000;
        p = *end == '.' ? end + 1 : end;
    }
    return (int)version;
}

/* "standalone", "cluster" or "sentinel". */
static bool is_mode(const char *info, const char *mode)
{
    jobq_slice said = jobq__redis_info(info, "redis_mode");

    if (said.n == 0) /* Valkey's word; it may be told to use Redis' */
        said = jobq__redis_info(info, "server_mode");
    return said.n == strlen(mode) && memcmp(said.p, mode, said.n) == 0;
}

void jobq__redis_name_server(const char *info, char *out, size_t room)
{
    const jobq_slice valkey = jobq__redis_info(info, "valkey_version");
    const jobq_slice version = valkey.n ? valkey : jobq__redis_info(info, "redis_version");

    snprintf(out, room, "%s %.*s", valkey.n ? "Valkey" : "Redis", (int)version.n,
             (const char *)version.p);
}

static int refuse(const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", 0, "redis: %s", what);
}

static int check_kind(const char *info, bool cluster)
{
    const int version = read_version(info);

    if (version > 0 && version < OLDEST)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", version,
                                      "redis: the server is version %d.%d (needed: 6.2 or newer)",
                                      version / 10000, version / 100 % 100);
    if (is_mode(info, "cluster") != cluster)
        return refuse(cluster ? "the server is not part of a Redis Cluster: write redis://"
                              : "the server is part of a Redis Cluster: write "
                                "redis-cluster://host1:7000,host2:7000");
    if (is_mode(info, "sentinel"))
        return refuse("the server is a Sentinel: name the master itself");
    return 0;
}

int jobq__redis_check_server(rds_store *store, const rds_value *info, const rds_value *time)
{
    rds_walk walk = {time, 0};
    int64_t seconds, uptime, micros;
    int rc;

    if (info->type != RDS_TEXT)
        return info->type == RDS_ERROR && strncmp(info->p, "NOPERM", 6) == 0
                   ? 0
                   : jobq__redis_refused(store, info);
    rc = check_kind(info->p, store->cluster != NULL);
    if (rc < 0)
        return rc;
    uptime = number_in(info->p, "uptime_in_seconds");
    micros = number_in(info->p, "server_time_usec");
    seconds = micros ? micros / 1000000 : jobq__redis_int(&walk); /* of one reading with uptime */
    if (!store->cluster || store->started_at_ms < (seconds - uptime) * 1000)
        store->started_at_ms = (seconds - uptime) * 1000; /* of the last one of a Cluster */
    return 0;
}
