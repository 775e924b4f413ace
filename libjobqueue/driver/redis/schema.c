/* SPDX-License-Identifier: MIT
 *
 * The version of the layout, one key; layouts are made as jobs come.
 */
#include "driver/redis/redis.h"
#include "util/error.h"

void jobq__redis_ask_version(rds_store *store, rds_link *link)
{
    jobq__buf_reset(&store->scratch);
    jobq__buf_add(&store->scratch, store->base.p, store->base.n);
    jobq__buf_adds(&store->scratch, ":schema");
    if (store->scratch.failed)
        link->out.failed = true;
    jobq__redis_begin(link, 2);
    jobq__redis_words(link, "GET");
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
}

static int make_version(rds_store *store)
{
    rds_value *value;
    int rc;

    jobq__redis_script(store, RDS_SCRIPT_SCHEMA, 1);
    jobq__redis_number(&store->link, RDS_SCHEMA);
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc == 0)
        store->version = value->integer;
    return rc;
}

static int check_version(int64_t version)
{
    if (version == 0)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", 0,
                                      "redis: there is no jobqueue under this prefix yet: run "
                                      "\"jobqueue migrate\", or leave out migrate=false");
    if (version > RDS_SCHEMA)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", version,
                                      "redis: the layout is version %lld, this library knows up to "
                                      "%d: update it",
                                      (long long)version, RDS_SCHEMA);
    return 0;
}

/* The greeting has asked; another process may have made it since. */
static int see_version(rds_store *store, bool make)
{
    int rc = jobq__redis_ready(store);

    if (rc == 0 && store->version == 0 && make)
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
