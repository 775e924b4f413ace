/* SPDX-License-Identifier: MIT
 *
 * Bringing the schema to this library's version. All of it is one transaction under an advisory
 * lock: of several processes that start at once the others find it done.
 */
#include <stdio.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/error.h"

#define VERSION "SELECT version FROM @.meta"
#define HAS_META "SELECT to_regclass('@.meta') IS NOT NULL, to_regnamespace('@') IS NOT NULL"

static const char *const version_1[] = {
    jobq__pgsql_tables,           jobq__pgsql_functions,     jobq__pgsql_exchange_functions,
    jobq__pgsql_upkeep_functions, jobq__pgsql_sql_functions, NULL};

/* migrations[i] leads from version i to i + 1. */
static const char *const *const migrations[] = {version_1};
enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

static int read_version(pgsql_store *store, int *version_out)
{
    PGresult *res;
    int rc = jobq__pgsql_run(store, ST_VERSION, VERSION, NULL, false, &res);

    if (rc < 0)
        return rc;
    *version_out = PQntuples(res) ? (int)jobq__pgsql_get(res, 0, 0) : 0;
    PQclear(res);
    return 0;
}

static int execute(pgsql_store *store, const char *script)
{
    char *sql = jobq__pgsql_expand(store, script);
    int rc = sql ? jobq__pgsql_command(store, sql) : jobq__error_code();

    jobq__free(sql);
    return rc;
}

/* Is there a schema (it may have been made for us, with nothing in it), and is it ours? */
static int look(pgsql_store *store, bool *tables_out, bool *schema_out)
{
    PGresult *res;
    int rc = jobq__pgsql_run(store, ST_SCHEMA, HAS_META, NULL, false, &res);

    if (rc < 0)
        return rc;
    *tables_out = jobq__pgsql_get(res, 0, 0);
    *schema_out = jobq__pgsql_get(res, 0, 1);
    PQclear(res);
    return 0;
}

static int apply(pgsql_store *store)
{
    char sql[96];
    bool tables, schema;
    int version = 0, rc = look(store, &tables, &schema);

    if (rc == 0 && !schema)
        rc = execute(store, "CREATE SCHEMA @");
    if (rc == 0 && tables)
        rc = read_version(store, &version);
    if (rc == 0 && version > SCHEMA_VERSION)
        return jobq__refuse_schema("postgresql", store->schema, version, SCHEMA_VERSION);
    if (version == SCHEMA_VERSION) /* somebody was quicker */
        return rc;
    for (int i = version; i < SCHEMA_VERSION && rc == 0; i++)
        for (const char *const *script = migrations[i]; *script && rc == 0; script++)
            rc = execute(store, *script);
    snprintf(sql, sizeof(sql), "UPDATE @.meta SET version = %d, migrated_at = now()",
             SCHEMA_VERSION);
    return rc ? rc : execute(store, sql);
}

static int lock(pgsql_store *store)
{
    char sql[192];
    const uint64_t key = jobq__pgsql_hash(PG_HASH_BEGIN, jobq__slice_text(store->schema));

    /* Backslashes in the scripts are ordinary letters, whatever the session has set. */
    snprintf(sql, sizeof(sql),
             "BEGIN; SET LOCAL standard_conforming_strings = on; "
             "SELECT pg_advisory_xact_lock(%lld)",
             (long long)(int64_t)key);
    return jobq__pgsql_command(store, sql);
}

int jobq__pgsql_migrate(pgsql_store *store)
{
    bool pooled = store->pooled;
    int rc;

    store->pooled = true; /* nothing here is worth preparing */
    rc = lock(store);
    if (rc == 0)
        rc = apply(store);
    if (rc == 0)
        rc = jobq__pgsql_command(store, "COMMIT");
    store->pooled = pooled;
    store->suspect |= rc < 0; /* the end of the connection rolls back */
    return rc;
}

int jobq__pgsql_check_schema(pgsql_store *store, bool may_migrate)
{
    bool pooled = store->pooled;
    int version, rc;

    store->pooled = true;
    rc = read_version(store, &version);
    store->pooled = pooled;
    if (rc < 0 || version == SCHEMA_VERSION)
        return rc;
    if (version < SCHEMA_VERSION && may_migrate)
        return jobq__pgsql_migrate(store);
    return jobq__refuse_schema("postgresql", store->schema, version, SCHEMA_VERSION);
}
