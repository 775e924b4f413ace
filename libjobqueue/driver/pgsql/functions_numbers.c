/* SPDX-License-Identifier: MIT
 *
 * What runs inside the server: capacities (rule B4) and minutes (rule N1). '@' stands for the
 * schema, doubled for itself.
 *
 * How many jobs a queue with a capacity has is known as a sum that is never too small, the pushes
 * under way aside. Each push adds a row, so that pushes do not wait for one another, and so does an
 * exchange for the jobs that it finished, and who forgets, clears or collects; jobs that are kept
 * when done are not taken off. When the sum reaches the capacity the queue is counted, and the
 * difference noted. A queue so large that this takes long is counted again only after a while.
 */
#include "driver/pgsql/pgsql.h"

const char jobq__pgsql_number_functions[] =
    /* Where pushes look in any case (see the table `capacity`). */
    "CREATE OR REPLACE FUNCTION @.mark_limited(queue_name text) RETURNS void LANGUAGE sql\n"
    "AS $f$ INSERT INTO @.idle(key, until, queue)\n"
    " VALUES (0, 4611686018427387904, queue_name) ON CONFLICT DO NOTHING $f$;\n"

    /* By the snapshot of whoever calls. */
    "CREATE OR REPLACE FUNCTION @.count_jobs(queue_name text) RETURNS bigint LANGUAGE sql STABLE\n"
    "AS $f$ SELECT (SELECT count(*) FROM @.ready y WHERE y.queue = queue_name) +\n"
    " (SELECT count(*) FROM @.taken y WHERE y.queue = queue_name) +\n"
    " (SELECT count(*) FROM @.delayed y WHERE y.queue = queue_name) +\n"
    " (SELECT count(*) FROM @.held y WHERE y.queue = queue_name) +\n"
    " (SELECT count(*) FROM @.job y WHERE y.state = 4 AND y.queue = queue_name) $f$;\n"

    /* Many rows of the sum become one; rows that somebody else is just folding are left alone. */
    "CREATE OR REPLACE FUNCTION @.fold_tally(queue_name text) RETURNS void LANGUAGE sql VOLATILE\n"
    "AS $f$\n"
    " WITH part AS MATERIALIZED (\n"
    "  SELECT t.ctid AS place FROM @.tally t WHERE t.queue = queue_name LIMIT 1000\n"
    "  FOR UPDATE SKIP LOCKED),\n"
    " gone AS (\n"
    "  DELETE FROM @.tally t WHERE t.ctid = ANY (ARRAY(SELECT s.place FROM part s))\n"
    "  RETURNING t.n, t.counted, t.believed)\n"
    " INSERT INTO @.tally(queue, n, counted, believed)\n"
    " SELECT queue_name, sum(g.n), bool_or(g.counted), max(g.believed) FROM gone g\n"
    " HAVING count(*) > 0\n"
    "$f$;\n"

    /* The hand-outs that are about to be finished leave queues with a capacity. They are locked, so
     * that nobody takes them back in between. */
    "CREATE OR REPLACE FUNCTION @.note_leaving(worker_key int, seqs bigint[], nonces bigint[])\n"
    " RETURNS void LANGUAGE plpgsql\n"
    "AS $f$\n"
    "DECLARE left_of record;\n"
    "BEGIN\n"
    " FOR left_of IN\n"
    "  SELECT x.queue, count(*) AS n FROM (\n"
    "   SELECT h.queue FROM unnest(seqs, nonces) u(seq, nonce)\n"
    "   JOIN @.held h ON h.worker = worker_key AND h.seq = u.seq AND h.nonce = u.nonce\n"
    "   FOR UPDATE OF h) x\n"
    "  WHERE x.queue IN (SELECT c.queue FROM @.capacity c WHERE c.value > 0) GROUP BY x.queue\n"
    " LOOP\n"
    "  INSERT INTO @.tally(queue, n, counted) VALUES (left_of.queue, -left_of.n, false);\n"
    "  IF seqs[1] % 50 = 0 THEN\n" /* now and then is enough */
    "   PERFORM @.fold_tally(left_of.queue);\n"
    "  END IF;\n"
    " END LOOP;\n"
    "END $f$;\n"

    "CREATE OR REPLACE FUNCTION @.note_gone(queue_name text, gone bigint) RETURNS void LANGUAGE "
    "sql\n"
    "AS $f$ INSERT INTO @.tally(queue, n, counted) SELECT queue_name, -gone, false\n"
    " WHERE gone > 0 AND EXISTS (SELECT 1 FROM @.capacity c\n"
    "  WHERE c.queue = queue_name AND c.value > 0) $f$;\n"

    /* So many jobs may still be pushed; absent: any number. Only one at a time notes what he
     * counted, and only he who sees what the one before has noted: not under a snapshot of long
     * ago. */
    "CREATE OR REPLACE FUNCTION @.room_of(queue_name text) RETURNS bigint LANGUAGE plpgsql\n"
    "AS $f$\n"
    "DECLARE\n"
    " most bigint;\n"
    " t record;\n"
    " n bigint;\n"
    " fresh boolean := current_setting('transaction_isolation') = 'read committed';\n"
    "BEGIN\n"
    " SELECT c.value INTO most FROM @.capacity c WHERE c.queue = queue_name AND c.value > 0;\n"
    " IF NOT FOUND THEN\n"
    "  RETURN NULL;\n"
    " END IF;\n"
    " SELECT sum(x.n) AS n, bool_or(x.counted) AS counted, count(*) AS parts,\n"
    "  max(x.believed) AS believed INTO t FROM @.tally x WHERE x.queue = queue_name;\n"
    " IF t.counted AND (t.n < most OR t.believed > @.now_ms()) THEN\n"
    "  IF fresh AND t.parts >= 100 THEN\n"
    "   PERFORM @.fold_tally(queue_name);\n"
    "  END IF;\n"
    "  RETURN most - t.n;\n"
    " END IF;\n"
    " IF NOT fresh\n"
    "  OR NOT pg_try_advisory_xact_lock(hashtextextended('@.capacity ' || queue_name, 0)) THEN\n"
    "  RETURN most - @.count_jobs(queue_name);\n"
    " END IF;\n"
    " IF t.parts >= 100 THEN\n"
    "  PERFORM @.fold_tally(queue_name);\n"
    " END IF;\n"
    " INSERT INTO @.tally(queue, n, counted)\n"
    " SELECT queue_name, c.n - coalesce(c.known, 0), true FROM (SELECT @.count_jobs(queue_name) "
    "AS n,\n"
    "  (SELECT sum(x.n) FROM @.tally x WHERE x.queue = queue_name) AS known OFFSET 0) c\n"
    " WHERE c.n <> coalesce(c.known, 0) OR t.counted IS NOT TRUE;\n"
    " SELECT sum(x.n) INTO n FROM @.tally x WHERE x.queue = queue_name;\n"
    " IF n >= 10000 THEN\n" /* ten times as long as it may have taken */
    "  INSERT INTO @.tally(queue, n, counted, believed)\n"
    "  VALUES (queue_name, 0, false, @.now_ms() + least(n / 300, 1000));\n"
    " END IF;\n"
    " RETURN most - n;\n"
    "END $f$;\n"

    /* Answers the one that holds. */
    "CREATE OR REPLACE FUNCTION @.set_capacity(queue_name text, given bigint,\n"
    " only_if_none boolean) RETURNS bigint LANGUAGE plpgsql\n"
    " SET search_path = pg_catalog, pg_temp SET jit = off\n"
    "AS $f$\n"
    "DECLARE held bigint;\n"
    "BEGIN\n"
    " SELECT c.value INTO held FROM @.capacity c WHERE c.queue = queue_name;\n"
    " IF FOUND AND only_if_none THEN\n"
    "  RETURN held;\n"
    " END IF;\n"
    " INSERT INTO @.capacity AS c(queue, value) VALUES (queue_name, given)\n"
    " ON CONFLICT (queue) DO UPDATE SET value =\n"
    "  CASE WHEN only_if_none THEN c.value ELSE excluded.value END\n"
    " RETURNING c.value INTO given;\n"
    " PERFORM @.note_queues(ARRAY[queue_name]);\n"
    /* The first push counts. */
    " IF given = 0 OR coalesce(held, 0) = 0 THEN\n"
    "  DELETE FROM @.tally t WHERE t.queue = queue_name;\n"
    " END IF;\n"
    " IF given > 0 THEN\n"
    "  PERFORM @.mark_limited(queue_name);\n"
    " ELSE\n"
    "  DELETE FROM @.idle i WHERE i.queue = queue_name AND i.key = 0;\n"
    " END IF;\n"
    " RETURN given;\n"
    "END $f$;\n"

    /* n: per entry JOBQ_MINUTE_COUNTS + JOBQ_MINUTE_BUCKETS numbers. In one order, so that two who
     * book the same do not wait for each other crosswise. */
    "CREATE OR REPLACE FUNCTION @.book(minutes bigint[], queues text[], numbers bigint[])\n"
    " RETURNS void LANGUAGE plpgsql\n"
    " SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off\n"
    "AS $f$\n"
    "DECLARE\n"
    " e record;\n"
    " is_new boolean;\n"
    " width int := cardinality(numbers) / cardinality(minutes);\n"
    " now_minute bigint := @.now_ms() / 60000;\n"
    "BEGIN\n"
    " PERFORM set_config('synchronous_commit', 'off', true);\n"
    " FOR e IN SELECT u.minute, u.queue, numbers[(u.i - 1) * width + 1 : u.i * width] AS n\n"
    "  FROM unnest(minutes, queues) WITH ORDINALITY u(minute, queue, i)\n"
    "  WHERE u.minute > now_minute - 1440 ORDER BY u.minute, u.queue\n"
    " LOOP\n"
    "  INSERT INTO @.minute AS m(minute, queue, n) VALUES (e.minute, e.queue, e.n)\n"
    "  ON CONFLICT (minute, queue) DO UPDATE SET n = ARRAY(\n"
    "   SELECT a.x + a.y FROM unnest(m.n, excluded.n) WITH ORDINALITY a(x, y, i) ORDER BY a.i)\n"
    "  RETURNING m.xmax = 0 INTO is_new;\n"
    "  IF is_new THEN\n"
    "   DELETE FROM @.minute m WHERE m.minute <= now_minute - 1440;\n"
    "  END IF;\n"
    " END LOOP;\n"
    "END $f$;\n";
