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

/* Who has rights on what is made anew: kept as statements for the end of the migration. New tables
 * are given to those who have the workers' records. */
#define KEEP_RIGHTS                                                                               \
    "SELECT set_config('jobqueue.rights', coalesce((SELECT string_agg(format('GRANT %s ON %s TO " \
    "%s;', r.what, r.target, CASE r.who WHEN 0 THEN 'PUBLIC' ELSE "                               \
    "quote_ident(pg_get_userbyid(r.who)) END), ' ') FROM ("                                       \
    "SELECT a.privilege_type AS what, a.grantee AS who, "                                         \
    "'TABLE @.rewind, @.control, @.pause, @.capacity, @.tally, @.minute' AS target "              \
    "FROM pg_class c, aclexplode(c.relacl) a "                                                    \
    "WHERE c.oid = to_regclass('@.worker') AND a.grantee <> c.relowner "                          \
    "UNION SELECT a.privilege_type, a.grantee, '@.jobqueue_jobs' "                                \
    "FROM pg_class c, aclexplode(c.relacl) a "                                                    \
    "WHERE c.oid = to_regclass('@.jobqueue_jobs') AND a.grantee <> c.relowner "                   \
    "UNION SELECT 'EXECUTE', a.grantee, 'ALL FUNCTIONS IN SCHEMA @' "                             \
    "FROM pg_proc p, aclexplode(p.proacl) a "                                                     \
    "WHERE p.pronamespace = to_regnamespace('@') AND p.proname = 'push_single' "                  \
    "AND a.grantee <> p.proowner) r), ''), true)"
static const char give_rights[] = "DO $f$ BEGIN IF current_setting('jobqueue.rights') <> '' THEN "
                                  "EXECUTE current_setting('jobqueue.rights'); END IF; END $f$";

/* steps[i] leads from version i to i + 1. */
static const char *const steps[] = {jobq__pgsql_tables_1, jobq__pgsql_tables_2,
                                    jobq__pgsql_tables_3, jobq__pgsql_tables_4};
enum { SCHEMA_VERSION = sizeof(steps) / sizeof(steps[0]) };

/* What follows the tables of the last version; everything in it may be there already. */
static const char *const rest[] = {jobq__pgsql_functions,
                                   jobq__pgsql_key_functions,
                                   jobq__pgsql_number_functions,
                                   jobq__pgsql_exchange_functions,
                                   jobq__pgsql_upkeep_functions,
                                   jobq__pgsql_control_functions,
                                   jobq__pgsql_header_functions,
                                   jobq__pgsql_sql_functions,
                                   jobq__pgsql_view,
                                   give_rights};

/* Bringing full tables up to date takes longer than a call; but while it waits for somebody's
 * transaction, everybody else would wait behind it. */
enum { PATIENCE_MS = 3600000 };
#define LOCK_PATIENCE "SET LOCAL lock_timeout = '10s'"

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

static int upgrade(pgsql_store *store, int version)
{
    char sql[96];
    int rc;

    store->deadline_us += version > 0 ? (int64_t)PATIENCE_MS * 1000 : 0;
    rc = execute(store, LOCK_PATIENCE);
    if (rc == 0)
        rc = execute(store, KEEP_RIGHTS);
    for (int i = version; i < SCHEMA_VERSION && rc == 0; i++)
        rc = execute(store, steps[i]);
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]) && rc == 0; i++)
        rc = execute(store, rest[i]);
    snprintf(sql, sizeof(sql), "UPDATE @.meta SET version = %d, migrated_at = now()",
             SCHEMA_VERSION);
    return rc == 0 ? execute(store, sql) : rc;
}

static int apply(pgsql_store *store)
{
    bool has_tables, schema;
    int version = 0, rc = look(store, &has_tables, &schema);

    if (rc == 0 && !schema)
        rc = execute(store, "CREATE SCHEMA @");
    if (rc == 0 && has_tables)
        rc = read_version(store, &version);
    if (rc == 0 && version > SCHEMA_VERSION)
        return jobq__refuse_schema("postgresql", store->schema, version, SCHEMA_VERSION);
    if (version == SCHEMA_VERSION) /* somebody was quicker */
        return rc;
    return rc == 0 ? upgrade(store, version) : rc;
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
