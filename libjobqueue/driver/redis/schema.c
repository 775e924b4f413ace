/* SPDX-License-Identifier: MIT
 *
 * The version of the layout, one key; layouts are made as jobs come.
 */
#include <stdlib.h>

#include "driver/redis/redis.h"
#include "util/error.h"

enum { OLDEST_SCHEMA = 2 };

int64_t jobq__redis_read_version(const rds_value *value)
{
    return value->p ? strtoll(value->p, NULL, 10) : 0;
}

static int make_version(rds_store *store)
{
    rds_value *value;
    int rc;

    jobq__redis_script(store, RDS_SCRIPT_SCHEMA, NULL, 0, 1);
    jobq__redis_number(&store->link, RDS_SCHEMA);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc == 0)
        store->version = value->integer;
    return rc;
}

/* Version 2 becomes 3 by its number alone; what was before that, no release made. */
static int check_version(int64_t version)
{
    if (version == 0)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", 0,
                                      "redis: there is no jobqueue under this prefix yet: run "
                                      "\"jobqueue migrate\", or leave out migrate=false");
    if (version > 0 && version < OLDEST_SCHEMA)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", version,
                                      "redis: the layout is version %lld, which this library no "
                                      "longer knows (needed: %d): use another prefix",
                                      (long long)version, RDS_SCHEMA);
    return version == RDS_SCHEMA ? 0 : jobq__refuse_schema("redis", NULL, (int)version, RDS_SCHEMA);
}

/* On one server the greeting has asked, on a Cluster somebody else may have the key. */
static int ask_cluster(rds_store *store)
{
    rds_value *value;
    int rc;

    jobq__redis_ask(store, "GET", ":schema");
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc == 0)
        store->version = jobq__redis_read_version(value);
    return rc;
}

/* Another process may have made it since. */
static int see_version(rds_store *store, bool make)
{
    int rc = jobq__redis_ready(store);

    if (rc == 0 && store->cluster)
        rc = ask_cluster(store);
    if (rc == 0 && make && (store->version == 0 || store->version == OLDEST_SCHEMA))
        rc = make_version(store);
    rc = rc ? rc : check_version(store->version);
    store->checked = rc == 0;
    if (rc < 0)
        jobq__redis_drop(store); /* it is asked again */
    return rc;
}

int jobq__redis_schema(void *handle)
{
    return see_version(handle, true);
}

int jobq__redis_enter(rds_store *store)
{
    int rc = store->checked ? 0 : see_version(store, false);

    return rc ? rc : jobq__redis_ready(store);
}

int jobq__redis_enter_all(rds_store *store)
{
    int rc = jobq__redis_enter(store);

    return rc || !store->cluster ? rc : jobq__redis_cluster_ready(store, true);
}
