/* SPDX-License-Identifier: MIT
 *
 * Statements for the caller's own transaction (rules B8, O1). What they do takes more than one
 * statement, so it stands in two functions in the store, which the schema makes where that is
 * allowed. They name the database, so that the caller's session may be in another one.
 *
 * A function's plain look is made by the transaction's own snapshot, which may be old; a key that
 * is seen as held is looked for once more with a lock unless each statement has a snapshot of its
 * own. What comes in between shows when the row is refused.
 */
#include "driver/answers.h"
#include "driver/mysql/mysql.h"
#include "util/buf.h"
#include "util/error.h"

#define ROUTINES                                        \
    "SELECT COUNT(*) FROM information_schema.routines " \
    "WHERE routine_schema=DATABASE() AND routine_name IN ('jobqueue_push', 'jobqueue_done')"
#define MAY_RUN "SQL SECURITY INVOKER MODIFIES SQL DATA COMMENT 'of libjobqueue' "

/* ---- the functions --------------------------------------------------------------------------- */

/* SELECT INTO, not SET or IF: in a function only that looks without a lock. */
#define HOLDER                                   \
    "SELECT id INTO v_holder FROM jobqueue_job " \
    "WHERE queue=p_queue AND unique_key=p_key AND holds=1"
#define COUNT                                                                               \
    "(SELECT COUNT(*) FROM jobqueue_job WHERE queue=p_queue AND place IN (0, 1, 2, 4, 5))+" \
    "(SELECT COUNT(*) FROM jobqueue_job WHERE queue=p_queue AND place>=16)"
/* Sets v_holder, and when it may be replaced v_seq and v_place. */
#define FIND_HOLDER(isolation)                                                          \
    " IF p_key IS NOT NULL AND p_replace=1 THEN"                                        \
    "  SELECT seq, place, id INTO v_seq, v_place, v_holder FROM jobqueue_job"           \
    "   WHERE queue=p_queue AND unique_key=p_key AND holds IN (1, 2)"                   \
    "   ORDER BY holds DESC LIMIT 1 FOR UPDATE;"                                        \
    " ELSEIF p_key IS NOT NULL THEN"                                                    \
    "  " HOLDER ";"                                                                     \
    "  IF v_tries>1 OR (v_holder IS NOT NULL AND " isolation " NOT LIKE 'READ-%') THEN" \
    "   SET v_holder=NULL; " HOLDER " LOCK IN SHARE MODE; END IF;"                      \
    "  IF v_holder IS NOT NULL THEN RETURN CONCAT('held ', v_holder); END IF;"          \
    " END IF;"
#define REPLACE_HOLDER                                                                            \
    " IF v_seq IS NOT NULL AND v_place<16 THEN"                                                   \
    "  UPDATE jobqueue_job SET name=p_name, version=p_version, ranking=p_ranking,"                \
    "   header=p_header, body=p_body, available_at=GREATEST(" NOW_MS ", LEAST("                   \
    "    IF(p_at>0, p_at, " NOW_MS "+p_delay), IF(p_most>0, enqueued_at+p_most, " DUE_DONE ")))," \
    "   deliveries=0, failures=0, crashes=0, releases=0, losses=0, exceptions=0, parks=0,"        \
    "   parked_since=0, taken=0, place=IF(v_place=5, 5, IF(available_at>" NOW_MS ", 2, 0)),"      \
    "   due=IF(place=2, available_at, NULL) WHERE seq=v_seq;"                                     \
    "  RETURN CONCAT('replaced ', v_holder); END IF;"
#define LEAVE_IF_FULL                                                                         \
    " SET v_capacity=0;"                                                                      \
    " SELECT capacity, room INTO v_capacity, v_room FROM jobqueue_limit WHERE queue=p_queue;" \
    " IF v_capacity>0 THEN"                                                                   \
    "  SELECT v_room-IFNULL(SUM(taken), 0) INTO v_room FROM jobqueue_room"                    \
    "   WHERE queue=p_queue;"                                                                 \
    "  IF v_room<=0 THEN SELECT v_capacity-(" COUNT ") INTO v_room; END IF;"                  \
    "  IF v_room<=0 THEN RETURN CONCAT('full ', p_id); END IF;"                               \
    " END IF;"
#define STORE                                                                                 \
    " INSERT INTO jobqueue_job(id, queue, name, version, ranking, unique_key, header, body,"  \
    "  holds, enqueued_at, base_at, available_at, place, due)"                                \
    "  VALUES(p_id, p_queue, p_name, p_version, p_ranking, p_key, p_header, p_body,"          \
    "  IF(p_key IS NULL, NULL, IF(v_seq IS NULL, 1, 2)), " NOW_MS ", enqueued_at,"            \
    "  GREATEST(enqueued_at, IF(p_at>0, p_at, enqueued_at+p_delay)),"                         \
    "  IF(v_seq IS NOT NULL, 5, IF(available_at>enqueued_at, 2, 0)),"                         \
    "  IF(place=2, available_at, NULL));"                                                     \
    " IF v_refused=0 THEN"                                                                    \
    "  IF v_capacity>0 THEN INSERT INTO jobqueue_room(queue, taken) VALUES(p_queue, 1);"      \
    "  END IF;"                                                                               \
    "  IF v_seq IS NOT NULL THEN UPDATE jobqueue_job SET followed=1 WHERE seq=v_seq; END IF;" \
    "  RETURN CONCAT(IF(v_seq IS NULL, 'stored ', 'replaced '), p_id);"                       \
    " END IF;"                                                                                \
    " IF EXISTS(SELECT 1 FROM jobqueue_job WHERE id=p_id LOCK IN SHARE MODE) THEN"            \
    "  RETURN CONCAT(IF(p_same=1, 'held ', 'duplicate '), p_id); END IF;"
/* The answer: a word, a blank, and an id. */
#define PUSH(isolation)                                                                          \
    "CREATE FUNCTION jobqueue_push(p_id VARBINARY(128), p_queue VARBINARY(129),"                 \
    " p_name VARBINARY(255), p_version INT, p_ranking INT, p_delay BIGINT, p_at BIGINT,"         \
    " p_key VARBINARY(1024), p_replace INT, p_most BIGINT, p_same INT, p_header LONGBLOB,"       \
    " p_body LONGBLOB) RETURNS VARBINARY(160) " MAY_RUN "BEGIN"                                  \
    " DECLARE v_holder VARBINARY(128);"                                                          \
    " DECLARE v_seq, v_place BIGINT;"                                                            \
    " DECLARE v_capacity, v_room, v_tries, v_refused, v_there BIGINT DEFAULT 0;"                 \
    " DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;"                                         \
    " DECLARE CONTINUE HANDLER FOR 1062 SET v_refused=1;"                                        \
    " SELECT 1 INTO v_there FROM jobqueue_job WHERE id=p_id;"                                    \
    " IF v_there THEN RETURN CONCAT(IF(p_same=1, 'held ', 'duplicate '), p_id); END IF;"         \
    " WHILE v_tries<5 DO"                                                                        \
    " SET v_tries=v_tries+1, v_refused=0, v_seq=NULL, v_place=NULL, v_holder=NULL;" FIND_HOLDER( \
        isolation) REPLACE_HOLDER LEAVE_IF_FULL STORE                                            \
        " END WHILE;"                                                                            \
        " SIGNAL SQLSTATE '45000'"                                                               \
        "  SET MESSAGE_TEXT='jobqueue: the unique key changes hands all the time'; END"
/* An entry more, the last ten are kept: each stands behind its length in four bytes. */
#define ADD_HISTORY                                                                          \
    " SET v_history=IFNULL(v_history, '');"                                                  \
    " WHILE v_at<=LENGTH(v_history) DO"                                                      \
    "  SET v_at=v_at+4+CONV(HEX(SUBSTRING(v_history, v_at, 4)), 16, 10), v_count=v_count+1;" \
    "  IF v_count=1 THEN SET v_second=v_at; END IF; END WHILE;"                              \
    " IF v_count>=10 THEN SET v_history=SUBSTRING(v_history, v_second); END IF;"             \
    " SET v_history="                                                                        \
    "  CONCAT(v_history, UNHEX(LPAD(HEX(LENGTH(p_history)), 8, '0')), p_history);"
#define DONE                                                                            \
    "CREATE FUNCTION jobqueue_done(p_seq BIGINT, p_nonce BIGINT, p_keep BIGINT,"        \
    " p_outcome LONGBLOB, p_history LONGBLOB, p_bare INT) RETURNS INT " MAY_RUN "BEGIN" \
    " DECLARE v_found, v_followed, v_count INT DEFAULT 0;"                              \
    " DECLARE v_at, v_second BIGINT DEFAULT 1;"                                         \
    " DECLARE v_queue VARBINARY(129);"                                                  \
    " DECLARE v_key VARBINARY(1024);"                                                   \
    " DECLARE v_history LONGBLOB;"                                                      \
    " DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found=0;"                            \
    " SELECT 1, followed, queue, unique_key, history"                                   \
    "  INTO v_found, v_followed, v_queue, v_key, v_history"                             \
    "  FROM jobqueue_job WHERE seq=p_seq AND nonce=p_nonce AND place>=16 FOR UPDATE;"   \
    " IF v_found=0 THEN SIGNAL SQLSTATE '45000' SET"                                    \
    "  MESSAGE_TEXT='jobqueue: the lease of the job is lost'; END IF;"                  \
    " IF p_keep>0 THEN"                                                                 \
    " IF p_history IS NOT NULL THEN" ADD_HISTORY " END IF;"                             \
    "  UPDATE jobqueue_job SET place=3, holds=NULL, taken=0, cancel=0, nonce=0,"        \
    "  due=" NOW_MS "+p_keep+" DUE_DONE ", outcome=IFNULL(p_outcome, outcome),"         \
    "  history=v_history, body=IF(p_bare, '', body) WHERE seq=p_seq;"                   \
    " ELSE DELETE FROM jobqueue_job WHERE seq=p_seq; END IF;"                           \
    " IF v_followed THEN UPDATE jobqueue_job SET holds=1,"                              \
    "  place=IF(available_at>" NOW_MS ", 2, 0),"                                        \
    "  due=IF(available_at>" NOW_MS ", available_at, NULL)"                             \
    "  WHERE queue=v_queue AND unique_key=v_key AND holds=2; END IF;"                   \
    " RETURN 1;"                                                                        \
    "END"

/* Not being allowed to is no trouble of anybody who needs no such statement; 1304: somebody else
 * has just made it. */
static bool is_no_trouble(const mysql_store *store)
{
    static const int64_t numbers[] = {1044, 1142, 1227, 1304, 1370, 1418, 1419};
    const int64_t number = jobq_error_native(jobq_error_last());

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (number == numbers[i] && !store->suspect)
            return true;
    return false;
}

static int make(mysql_store *store, const char *drop, const char *create)
{
    int rc = jobq__mysql_query(store, drop);

    rc = rc < 0 && !is_no_trouble(store) ? rc : jobq__mysql_query(store, create);
    if (rc < 0 && is_no_trouble(store)) {
        jobq__error_clear();
        rc = 0;
    }
    return rc;
}

int jobq__mysql_make_routines(mysql_store *store)
{
    int rc = make(store, "DROP FUNCTION IF EXISTS jobqueue_push",
                  store->compound ? PUSH("@@tx_isolation") : PUSH("@@transaction_isolation"));

    return rc ? rc : make(store, "DROP FUNCTION IF EXISTS jobqueue_done", DONE);
}

int jobq__mysql_count_routines(mysql_store *store, int64_t *count_out)
{
    bool found = false;

    *count_out = 0;
    return jobq__mysql_ask(store, ROUTINES, NULL, &found, count_out);
}

/* Those that are missing are tried once more: the right may have been granted since. */
static int find_routines(mysql_store *store, void *payload)
{
    int64_t count = 0;
    int rc = jobq__mysql_count_routines(store, &count);

    (void)payload;
    if (rc == 0 && count < MYSQL_ROUTINES && store->config->migrate) {
        rc = jobq__mysql_make_routines(store);
        rc = rc ? rc : jobq__mysql_count_routines(store, &count);
    }
    if (rc == 0 && count < MYSQL_ROUTINES)
        return jobq__error_set_driver(
            JOBQ_ECONF, JOBQ__FATAL, "mysql", 0,
            "mysql: the functions jobqueue_push and jobqueue_done are missing: " ROUTINES_ADVICE);
    store->has_routines = rc == 0;
    return rc;
}

/* ---- the statements -------------------------------------------------------------------------- */

static jobq_param number(int64_t value)
{
    return (jobq_param){.type = JOBQ_PARAM_INT, .integer = value};
}

static jobq_param bytes(jobq_slice s)
{
    return (jobq_param){.type = s.p ? JOBQ_PARAM_BYTES : JOBQ_PARAM_NULL, .bytes = s};
}

/* `text` with each ~ replaced by the database's quoted name. */
static int answer(const mysql_store *store, jobq_request *r, const char *text,
                  const jobq_param *params, size_t count)
{
    jobq__buf out = {0};
    int rc;

    for (; *text; text++) {
        if (*text != '~') {
            jobq__buf_addc(&out, *text);
            continue;
        }
        jobq__buf_addc(&out, '`');
        for (const char *p = store->database; *p; p++) {
            if (*p == '`')
                jobq__buf_addc(&out, '`');
            jobq__buf_addc(&out, *p);
        }
        jobq__buf_addc(&out, '`');
    }
    jobq__buf_addc(&out, '\0');
    rc = out.failed ? jobq__error_nomem()
                    : jobq__request_answer(r, (const char *)out.p, params, count);
    jobq__buf_free(&out);
    return rc;
}

/* The limit keeps the inner one from being asked for twice. */
#define SAY_PUSH                                                                           \
    "SELECT CONVERT(SUBSTRING(a.answer, LOCATE(' ', a.answer) + 1) USING utf8mb4) AS id, " \
    "CONVERT(SUBSTRING_INDEX(a.answer, ' ', 1) USING utf8mb4) AS result "                  \
    "FROM (SELECT ~.jobqueue_push(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AS answer LIMIT 1) a"
#define SAY_DONE "SELECT ~.jobqueue_done(?, ?, ?, ?, ?, ?) AS done"

static int request_push(const mysql_store *store, jobq_request *r)
{
    const jobq_push *item = r->push;
    const jobq_param params[] = {
        bytes(item->id),
        bytes(item->queue),
        bytes(item->name),
        number(item->version),
        number(JOBQ__TOP_PRIORITY - item->priority),
        number(item->delay_ms > 0 ? item->delay_ms : 0),
        number(item->at_ms),
        bytes(item->unique),
        number(item->on_duplicate == JOBQ_DUPLICATE_REPLACE),
        number(item->max_wait_ms),
        number(item->idempotent),
        bytes(item->header),
        bytes(item->body),
    };

    if (item->guard)
        return jobq__error_set_driver(JOBQ_EUNSUPPORTED, 0, "mysql", 0,
                                      "mysql: a push in the caller's transaction takes no guard");
    return answer(store, r, SAY_PUSH, params, sizeof(params) / sizeof(params[0]));
}

static int request_done(const mysql_store *store, jobq_request *r)
{
    const jobq_settlement *s = r->done;
    const jobq_param params[] = {
        number((int64_t)s->token.word[0]),
        number((int64_t)s->token.word[2]),
        number(s->keep_ms),
        bytes(s->outcome),
        bytes(s->history),
        number(s->keep_bare),
    };

    return answer(store, r, SAY_DONE, params, sizeof(params) / sizeof(params[0]));
}

int jobq__mysql_request(void *handle, jobq_request *r)
{
    mysql_store *store = handle;
    int rc = store->has_routines ? 0 : jobq__mysql_do(store, 0, find_routines, NULL);

    if (rc < 0)
        return rc;
    return r->push ? request_push(store, r) : request_done(store, r);
}
