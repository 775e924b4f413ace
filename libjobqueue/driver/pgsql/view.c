/* SPDX-License-Identifier: MIT
 *
 * The view for people (rule N6). What stands in a queue whose name begins with a byte 1 is no
 * business of theirs. '@' stands for the schema, doubled for itself.
 */
#include "driver/sql/view.h"
#include "driver/pgsql/pgsql.h"

const char jobq__pgsql_view[] =
    "CREATE OR REPLACE FUNCTION @.readable(bytes bytea) RETURNS text LANGUAGE plpgsql STABLE\n"
    " SET search_path = pg_catalog, pg_temp\n"
    "AS $f$\n"
    "BEGIN\n"
    " RETURN convert_from(bytes, 'UTF8');\n"
    "EXCEPTION WHEN OTHERS THEN\n"
    " RETURN encode(bytes, 'hex');\n"
    "END $f$;\n"

    /* A body as JSON: itself when it is JSON, else a string with its bytes in hex. */
    "CREATE OR REPLACE FUNCTION @.as_json(header bytea, body bytea) RETURNS jsonb LANGUAGE "
    "plpgsql STABLE\n"
    " SET search_path = pg_catalog, pg_temp\n"
    "AS $f$\n"
    "BEGIN\n"
    " IF length(header) > 1 AND get_byte(header, 1) = 106 THEN\n"
    "  RETURN convert_from(body, 'UTF8')::jsonb;\n"
    " END IF;\n"
    " RETURN to_jsonb(encode(body, 'hex'));\n"
    "EXCEPTION WHEN OTHERS THEN\n"
    " RETURN to_jsonb(encode(body, 'hex'));\n"
    "END $f$;\n"

    "CREATE VIEW @.jobqueue_jobs AS\n"
    "SELECT j.id, j.queue, j.name,\n"
    " CASE j.state WHEN 3 THEN 'done' WHEN 4 THEN 'dead' ELSE\n"
    "  CASE WHEN w.alive_until > t.now_ms THEN 'reserved'\n"
    "   WHEN w.key IS NULL AND d.due > t.now_ms THEN 'delayed' ELSE 'ready' END END AS state,\n"
    " CASE WHEN w.alive_until > t.now_ms THEN w.id END AS reserved_by,\n"
    " CASE WHEN w.alive_until > t.now_ms THEN to_timestamp(w.alive_until / 1000.0) END\n"
    "  AS reserved_until,\n"
    " 9 - j.rank AS priority, j.version,\n"
    " coalesce(j.failures, 0) + coalesce(j.crashes, 0) + 1 AS attempt,\n"
    " coalesce(j.deliveries, 0) + (h.seq IS NOT NULL)::int AS deliveries,\n"
    " coalesce(j.failures, 0) AS failures, coalesce(j.crashes, 0) AS crashes,\n"
    " coalesce(j.releases, 0) AS releases, coalesce(j.losses, 0) AS losses,\n"
    " coalesce(j.fence, 0) + (h.seq IS NOT NULL)::int AS fence,\n"
    " to_timestamp(j.enqueued_at / 1000.0) AS enqueued_at,\n"
    " to_timestamp(j.available_at / 1000.0) AS available_at,\n"
    " to_timestamp(j.died_at / 1000.0) AS died_at,\n"
    " CASE" JOBQ__SQL_REASONS "\n"
    "  ELSE j.reason::text END AS reason,\n"
    " @.readable(j.unique_key) AS unique_key,\n"
    " @.as_json(j.header, j.body) AS payload\n"
    "FROM @.job j\n"
    "CROSS JOIN (SELECT @.now_ms() AS now_ms OFFSET 0) t\n"
    "LEFT JOIN @.held h ON h.seq = j.seq AND j.state = 0\n"
    "LEFT JOIN @.worker w ON w.key = h.worker\n"
    "LEFT JOIN @.delayed d ON d.due = j.available_at AND d.seq = j.seq AND j.state = 0\n"
    "WHERE j.queue !~ '^\\x01';\n";
