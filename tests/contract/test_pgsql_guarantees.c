/* SPDX-License-Identifier: MIT
 *
 * What guarantees mean on PostgreSQL beyond the contract: capacities under many pushers, statements
 * in the application's own transactions, followers of unique keys in every race, looking for what
 * is wrong.
 */
#include "contract/guarantees.h"
#include "contract/on_pgsql.h"

#include <locale.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/pgsql/pgsql.h"
#include "payload/envelope.h"
#include "util/alloc.h"
#include "util/clock.h"

static jobq_batch shown;

static int set_up(void **state)
{
    (void)state;
    store = contract_open(fresh_dsn());
    assert_int_equal(count_jobs("q").ready, 0); /* the schema is made */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    check_places();
    jobq__store_free(store);
    store = NULL;
    return 0;
}

static void limit_queue(const char *queue, int64_t value)
{
    jobq_limit l = {.queue = TEXT(queue), .value = value};

    assert_ok(jobq__store_capacity(store, &l));
}

static void must(bool ok)
{
    if (!ok)
        _exit(9);
}

static void reap(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int status = -1;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

/* A push as the library makes most of them: its id was made for it. */
static int push_fresh(const char *id, const char *queue)
{
    jobq_push item = job_item(id, queue);

    item.fresh_id = true;
    return push_item(&item);
}

/* ---- capacity (rule B4) ---------------------------------------------------------------------- */

enum { PUSHERS = 8, PUSHES = 60, LIMIT = 200 };

/* Pushes one by one and in batches; how many were stored. */
static int push_many(int who)
{
    int stored = 0;

    store = contract_open(dsn);
    for (int i = 0; i < PUSHES; i++) {
        jobq_push items[3];
        char ids[3][32];
        const size_t n = i % 5 == 4 ? 3 : 1;

        for (size_t k = 0; k < n; k++) {
            snprintf(ids[k], sizeof(ids[k]), "%d-%d-%zu", who, i, k);
            items[k] = job_item(ids[k], "q");
            items[k].fresh_id = true;
        }
        must(jobq__store_push(store, items, n) == 0);
        for (size_t k = 0; k < n; k++) {
            must(items[k].result == 0 || items[k].result == JOBQ_EFULL);
            stored += items[k].result == 0;
        }
    }
    return stored;
}

/* Full, and over it by no more than what was under way at that moment. */
static void test_b4_many_pushers(void **state)
{
    pid_t pids[PUSHERS];
    int out[2], stored = 0, counted;

    (void)state;
    limit_queue("q", LIMIT);
    assert_int_equal(pipe(out), 0);
    for (int who = 0; who < PUSHERS; who++) {
        pids[who] = fork();
        if (pids[who] == 0) {
            const int n = push_many(who);

            _exit(write(out[1], &n, sizeof(n)) != sizeof(n));
        }
    }
    reap(pids, PUSHERS);
    for (int who = 0; who < PUSHERS; who++) {
        int n;

        assert_int_equal(read(out[0], &n, sizeof(n)), sizeof(n));
        stored += n;
    }
    counted = (int)count_jobs("q").ready;
    print_message("%d of at most %d stored\n", counted, LIMIT);
    assert_int_equal(counted, stored);
    assert_true(counted >= LIMIT && counted < LIMIT + 3 * PUSHERS);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL);
    assert_true(ask("SELECT count(*) FROM tally") < 200); /* it is folded */
}

static void push_until(int who, int64_t until_ms)
{
    store = contract_open(dsn);
    for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
        char id[32];

        snprintf(id, sizeof(id), "%d-%d", who, i);
        push_fresh(id, "q");
    }
    _exit(0);
}

static const char *text_of(jobq_slice s)
{
    static char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)s.n, (const char *)s.p);
    return text;
}

/* Takes and finishes, in batches and one by one, and sometimes buries and forgets. */
static void finish_until(const char *worker, int64_t until_ms)
{
    store = contract_open(dsn);
    begin_worker(worker, 30000);
    for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
        jobq_settlement s[8];
        jobq_exchange x = {.worker = TEXT(worker), .lease_ms = 30000, .settle = s};

        reserve_jobs(worker, "q", (size_t)i % 8 + 1);
        x.settle_count = 0;
        for (jobq_record *r = got.first; r; r = r->next)
            s[x.settle_count++] = settlement(r, i % 7 == 0 ? JOBQ_OP_DEAD : JOBQ_OP_DONE);
        must(jobq__store_exchange(store, &x) == 0);
        for (jobq_record *r = got.first; r && i % 7 == 0; r = r->next)
            mend_job(store, JOBQ_MEND_FORGET, text_of(r->id), false);
    }
    _exit(0);
}

/* Beside workers that make room, and with pushers and workers that are killed, the queue stays
 * within its capacity, and what is known of it is never too little. */
static void test_b4_pushers_and_workers(void **state)
{
    const int64_t until_ms = jobq__clock_mono_ms() + 3000;
    int64_t most = 0, n;
    pid_t pids[7];

    (void)state;
    limit_queue("q", 50);
    for (int i = 0; i < 7; i++) {
        char worker[8];

        snprintf(worker, sizeof(worker), "w%d", i);
        pids[i] = fork();
        if (pids[i] == 0 && i < 4)
            push_until(i, until_ms);
        if (pids[i] == 0)
            finish_until(worker, until_ms);
    }
    for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
        n = ask("SELECT count_jobs('q')");
        most = n > most ? n : most;
        if (i == 20) {
            kill(pids[0], SIGKILL);
            kill(pids[6], SIGKILL);
        }
    }
    reap(pids + 1, 5);
    waitpid(pids[0], NULL, 0);
    waitpid(pids[6], NULL, 0);
    print_message("%d at most of 50\n", (int)most);
    assert_true(most >= 40 && most < 50 + 4);
    wait_until(
        ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobqueue'") == 1, 10);
    assert_true(ask("SELECT sum(n) - count_jobs('q') FROM tally") >= 0);
}

/* No lock that one pusher holds makes others wait. */
static void test_b4_pushes_do_not_wait(void **state)
{
    PGconn *client;

    (void)state;
    limit_queue("q", 3);
    client = connect_client();
    say(client, "BEGIN");
    assert_string_equal(ask_text(client, "SELECT result FROM push('q', 'n', '1')"), "stored");
    assert_int_equal(push_fresh("a", "q"), 0); /* beside one that is under way */
    assert_int_equal(push_fresh("b", "q"), 0);
    assert_string_equal(ask_text(client, "SELECT result FROM push('q', 'n', '1')"), "full");
    say(client, "COMMIT"); /* a full queue is an answer, the transaction stays usable */
    PQfinish(client);
    assert_int_equal(push_fresh("c", "q"), JOBQ_EFULL);
    assert_int_equal(count_jobs("q").ready, 3);
}

/* Whoever knew the queue without a capacity hears of it with the next push. */
static void test_b4_set_by_another(void **state)
{
    jobq__store *other = contract_open(dsn), *mine = store;

    (void)state;
    assert_int_equal(push_fresh("a", "q"), 0);
    store = other;
    limit_queue("q", 2);
    store = mine;
    assert_int_equal(push_fresh("b", "q"), 0);
    assert_int_equal(push_fresh("c", "q"), JOBQ_EFULL);
    store = other;
    limit_queue("q", 0);
    store = mine;
    assert_int_equal(push_fresh("c", "q"), 0);
    assert_int_equal(push_fresh("d", "q"), 0);
    jobq__store_free(other);
}

static void test_b4_through_a_crash(void **state)
{
    int64_t now_ms;

    (void)state;
    limit_queue("q", 2);
    assert_int_equal(push_fresh("a", "q"), 0);
    execute("CHECKPOINT"); /* servers of tests do not sync what is confirmed */
    server_kill(postgres);
    server_restart(postgres);
    wait_until(jobq__store_now(store, &now_ms) == 0, 20);
    assert_int_equal(ask("SELECT count(*) FROM idle"), 0);
    assert_int_equal(push_fresh("b", "q"), 0);
    assert_int_equal(push_fresh("c", "q"), JOBQ_EFULL);
    assert_int_equal(push_fresh("d", "q"), JOBQ_EFULL);
    settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    assert_int_equal(push_fresh("d", "q"), 0);
}

/* What leaves the queue makes room, however it leaves. */
static void test_b4_room_again(void **state)
{
    jobq_cancelling c = {.id = TEXT("b"), .reason = 11};
    char id[16];

    (void)state;
    limit_queue("q", 2);
    for (int round = 0; round < 150; round++) {
        snprintf(id, sizeof(id), "r%d", round);
        assert_int_equal(push_fresh(id, "q"), 0);
        settle_op("w", reserve_one("w", "q", id), JOBQ_OP_DONE);
    }
    assert_int_equal(push_fresh("a", "q"), 0);
    assert_int_equal(push_fresh("b", "q"), 0);
    assert_ok(jobq__store_cancel(store, &c)); /* dead ones count */
    assert_int_equal(push_fresh("c", "q"), JOBQ_EFULL);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "b", false), 0);
    assert_int_equal(push_fresh("c", "q"), 0);
    assert_int_equal(push_fresh("d", "q"), JOBQ_EFULL);
}

/* A large queue that was found full is believed to be so for a while: but not when jobs were
 * finished, forgotten, cleared or collected since. */
static void test_b4_while_a_count_is_believed(void **state)
{
    jobq_clearing clearing = {.queue = TEXT("q"), .limit = 1};
    jobq_settlement s;

    (void)state;
    begin_worker("w", 3600000);
    limit_queue("q", 2);
    assert_int_equal(push_fresh("a", "q"), 0);
    assert_int_equal(push_fresh("b", "q"), 0);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL); /* it is counted */
    execute("INSERT INTO tally VALUES ('q', 0, false, 4000000000000)");
    settle_op("w", reserve_one("w", "q", "a"), JOBQ_OP_DONE);
    assert_int_equal(push_fresh("c", "q"), 0);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL);
    settle_op("w", reserve_one("w", "q", "b"), JOBQ_OP_DEAD);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL);
    assert_int_equal(mend_job(store, JOBQ_MEND_FORGET, "b", false), 0);
    assert_int_equal(push_fresh("d", "q"), 0);
    assert_ok(jobq__store_clear(store, &clearing));
    assert_int_equal(push_fresh("e", "q"), 0);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL);
    s = settlement(reserve_one("w", "q", NULL), JOBQ_OP_DEAD);
    s.keep_ms = 1000;
    assert_int_equal(settle_with("w", &s), 0);
    shift(2000);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL);
    assert_int_equal(maintain_all().handled, 1);
    assert_int_equal(push_fresh("f", "q"), 0);
    assert_int_equal(push_fresh("more", "q"), JOBQ_EFULL);
}

/* ---- guards (rule B7) ------------------------------------------------------------------------ */

static int push_guarded(const char *id, const char *sql, const jobq_param *params, size_t n)
{
    const jobq_statement guard = {.text = TEXT(sql), .params = params, .param_count = n};
    jobq_push item = job_item(id, "q");

    item.guard = &guard;
    return jobq__store_push(store, &item, 1) < 0 ? jobq_error_code(jobq_error_last()) : item.result;
}

static void test_b7_values(void **state)
{
    const jobq_param params[] = {{.type = JOBQ_PARAM_INT, .integer = 5},
                                 {.type = JOBQ_PARAM_DOUBLE, .real = 0.5},
                                 {.type = JOBQ_PARAM_TEXT, .bytes = TEXT("2030-01-02")},
                                 {.type = JOBQ_PARAM_BYTES, .bytes = {"\0\xff", 2}},
                                 {.type = JOBQ_PARAM_NULL}};
    static const struct {
        const char *sql;
        int result;
    } rows[] = {
        {"SELECT n > 0 FROM stock WHERE n = $1", 0},
        {"SELECT n = $1 AND half = $2 AND day = $3 AND bytes = $4 AND $5::int IS NULL FROM stock",
         0},
        {"SELECT n FROM stock WHERE n > $1", JOBQ_EGUARD}, /* no row */
        {"SELECT NULL", JOBQ_EGUARD},
        {"SELECT 0", JOBQ_EGUARD},
        {"SELECT 0.00", JOBQ_EGUARD},
        {"SELECT ''", JOBQ_EGUARD},
        {"SELECT ''::bytea", JOBQ_EGUARD},
        {"SELECT 'f'", 0},
        {"SELECT half FROM stock", 0},
        {"SELECT 0.5::float8", 0},
        {"UPDATE stock SET n = n WHERE false", JOBQ_EGUARD},
    };

    (void)state;
    execute("CREATE TABLE IF NOT EXISTS public.stock(n int, half numeric, day date, bytes bytea); "
            "TRUNCATE public.stock; "
            "INSERT INTO public.stock VALUES (5, 0.5, '2030-01-02', '\\x00ff')");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int used = i == 1 ? 5 : i == 0 || i == 2 ? 1 : 0;
        char id[16];
        int rc;

        snprintf(id, sizeof(id), "job-%zu", i);
        rc = push_guarded(id, rows[i].sql, params, (size_t)used);
        if (rc != rows[i].result)
            fail_msg("%s: %d %s", rows[i].sql, rc, jobq_error_message(jobq_error_last()));
    }
    assert_int_equal(count_jobs("q").ready, 5);
    execute("DROP TABLE public.stock");
}

/* A host program's locale with a decimal comma changes nothing (rules B7, O1). */
static void test_b7_values_in_a_comma_locale(void **state)
{
    jobq_effect e = {.worker = TEXT("w"),
                     .queue = TEXT("q"),
                     .statement = {.text = TEXT("SELECT 0.25::float8")},
                     .out = &shown};
    const jobq_record *job;

    if (!jobq_test_comma_locale())
        skip();
    test_b7_values(state);
    begin_worker("w", 30000);
    job = reserve_one("w", "q", "job-0");
    e.id = job->id;
    e.token = job->token;
    assert_ok(jobq__store_effect(store, &e));
    assert_int_equal(e.value.type, JOBQ_PARAM_DOUBLE);
    assert_true(e.value.real > 0.24 && e.value.real < 0.26);
    setlocale(LC_ALL, "C");
}

#define OTHERS \
    "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'jobqueue'"

/* One that fails is a clear error; nothing is stored, no transaction stays open, and what comes
 * next works. */
static void test_b7_failures(void **state)
{
    static const char *const bad[] = {"SELECT 1/0",
                                      "SELEC 1",
                                      "SELECT nothing",
                                      "SELECT 1 FROM nowhere",
                                      "COMMIT",
                                      "ROLLBACK",
                                      "",
                                      "SELECT 1; SELECT 2",
                                      "COPY job TO STDOUT",
                                      "COPY job FROM STDIN",
                                      "SELECT $1"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const int rc = push_guarded("a", bad[i], NULL, 0);

        if (rc != JOBQ_EINVAL)
            fail_msg("%s: %d %s", bad[i], rc, jobq_error_message(jobq_error_last()));
        assert_said("guard");
        assert_int_equal(ask("SELECT count(*) " OTHERS " AND state LIKE 'idle in%'"), 0);
        assert_null(find_job("a"));
    }
    assert_int_equal(push_guarded("a", "SELECT 1", NULL, 0), 0);
}

/* What a guard has set for the session is set back with the end of its push. */
static void test_b7_settings(void **state)
{
    static const char *const set[] = {
        "SELECT set_config('statement_timeout', '86400000', false)",
        "SELECT set_config('default_transaction_read_only', 'on', false)",
        "SELECT set_config('search_path', 'nowhere', false)",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        const char id[] = {(char)('a' + i), '\0'};

        assert_int_equal(push_guarded(id, set[i], NULL, 0), 0);
    }
    assert_int_equal(
        push_guarded("d", "SELECT current_setting('statement_timeout') = '0'", NULL, 0), 0);
    assert_int_equal(push_fresh("e", "q"), 0);
}

/* A batch is one: what one guard spoils is not stored at all, what it refuses leaves the others. */
static void test_b7_batch(void **state)
{
    const jobq_statement yes = {.text = TEXT("SELECT true")}, no = {.text = TEXT("SELECT false")},
                         bad = {.text = TEXT("SELECT 1/0")};
    jobq_push items[3] = {job_item("a", "q"), job_item("b", "q"), job_item("c", "q")};

    (void)state;
    items[0].guard = &yes;
    items[1].guard = &bad;
    assert_code(jobq__store_push(store, items, 3), JOBQ_EINVAL);
    assert_null(find_job("a"));
    items[1].guard = &no;
    assert_ok(jobq__store_push(store, items, 3));
    assert_int_equal(items[0].result, 0);
    assert_int_equal(items[1].result, JOBQ_EGUARD);
    assert_int_equal(items[2].result, 0);
    assert_int_equal(push_guarded("a", "SELECT false", NULL, 0), JOBQ_EEXISTS);
}

/* ---- effects (rule O1) ----------------------------------------------------------------------- */

static int carry_out(const jobq_record *job, const char *sql, int64_t *value_out)
{
    jobq_effect e = {.worker = TEXT("w"),
                     .queue = TEXT("q"),
                     .id = job->id,
                     .token = job->token,
                     .statement = {.text = TEXT(sql)},
                     .out = &shown};
    int rc = jobq__store_effect(store, &e);

    if (value_out)
        *value_out = e.value.integer;
    return rc < 0 ? rc : e.result;
}

#define STILL_OURS                                                                        \
    "SELECT (current_setting('statement_timeout') = '0' AND current_user = session_user " \
    "AND current_setting('default_transaction_read_only') = 'off')::int"

static void test_o1_effect_and_stale_token(void **state)
{
    static const char *const settings[] = {
        "SET search_path = nowhere", "SELECT set_config('statement_timeout', '86400000', false)",
        "SET ROLE pg_read_all_stats", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"};
    jobq_record *job;
    int64_t value;

    (void)state;
    execute("CREATE TABLE IF NOT EXISTS public.ledger(n int PRIMARY KEY); TRUNCATE public.ledger");
    push_job("a", "q");
    begin_worker("w", 30000);
    job = reserve_one("w", "q", "a");
    assert_int_equal(carry_out(job, "INSERT INTO ledger VALUES (1), (2)", &value), 0);
    assert_int_equal(value, 2);
    assert_int_equal(carry_out(job, "UPDATE ledger SET n = n + 10 RETURNING n", &value), 0);
    assert_int_equal(value, 11);
    /* What fails is rolled back. */
    assert_code(carry_out(job, "INSERT INTO ledger VALUES (5), (5)", NULL), JOBQ_EINVAL);
    assert_said("effect is refused");
    assert_int_equal(ask("SELECT count(*) FROM public.ledger"), 2);
    /* What it has set is gone with it. */
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        assert_int_equal(carry_out(job, settings[i], NULL), 0);
        value = 0;
        assert_int_equal(carry_out(job, STILL_OURS, &value), 0);
        if (value != 1)
            fail_msg("\"%s\" stays", settings[i]);
    }
    assert_int_equal(push_fresh("b", "q"), 0);
    assert_int_equal(settle_op("w", job, JOBQ_OP_BACK), 0);
    assert_int_equal(carry_out(job, "INSERT INTO ledger VALUES (7)", NULL), JOBQ_ELEASE);
    job = reserve_one("w", "q", NULL);
    assert_int_equal(settle_op("w", job, JOBQ_OP_DONE), 0);
    assert_int_equal(carry_out(job, "INSERT INTO ledger VALUES (8)", NULL), JOBQ_ELEASE);
    assert_int_equal(ask("SELECT count(*) FROM public.ledger"), 2);
    execute("DROP TABLE public.ledger");
}

/* While an effect is under way nobody takes its job back or settles it, and maintenance does not
 * wait. */
static void test_o1_nobody_in_between(void **state)
{
    jobq_record *job;
    pid_t pid;

    (void)state;
    execute("DROP TABLE IF EXISTS public.ledger; CREATE TABLE public.ledger(n int)");
    push_job("a", "q");
    push_job("b", "q");
    begin_worker("w", 1000);
    assert_int_equal(reserve_jobs("w", "q", 2), 2);
    job = got.first;
    pid = fork();
    if (pid == 0) {
        store = contract_open(dsn);
        _exit(carry_out(job, "INSERT INTO ledger SELECT 1 FROM pg_sleep(1.5)", NULL) != 0);
    }
    wait_until(ask("SELECT count(*) " OTHERS " AND query LIKE '%pg_sleep%'") == 1, 20);
    shift(5000);
    {
        const int64_t began = jobq__clock_mono_ms();

        assert_int_equal(maintain_all().handled, 1);
        assert_true(jobq__clock_mono_ms() - began < 1000);
    }
    assert_int_equal(reserve_jobs("v", "q", 2), 1);
    expect_ids("b");
    reap(&pid, 1);
    assert_int_equal(ask("SELECT count(*) FROM public.ledger"), 1);
    assert_int_equal(maintain_all().handled, 1);
    reserve_one("v", "q", "a");
    execute("DROP TABLE public.ledger");
}

/* ---- statements for the caller's own transaction (rules B8, O1) ------------------------------ */

/* As any client sends them: everything is text. The row's last cell but one, and NULL: refused. */
static const char *run_statement(PGconn *client, const jobq_statement *s)
{
    static char answer[600];
    const char *values[20] = {0};
    char texts[20][300], sql[1000];
    PGresult *res;

    assert_true(s->param_count <= 20 && s->text.n < sizeof(sql));
    snprintf(sql, sizeof(sql), "%.*s", (int)s->text.n, (const char *)s->text.p);
    for (size_t i = 0; i < s->param_count; i++) {
        const jobq_param *p = &s->params[i];

        assert_true(p->type != JOBQ_PARAM_BYTES);
        if (p->type == JOBQ_PARAM_INT)
            snprintf(texts[i], sizeof(texts[i]), "%lld", (long long)p->integer);
        else if (p->type == JOBQ_PARAM_TEXT)
            snprintf(texts[i], sizeof(texts[i]), "%.*s", (int)p->bytes.n, (const char *)p->bytes.p);
        values[i] = p->type == JOBQ_PARAM_NULL ? NULL : texts[i];
    }
    res = PQexecParams(client, sql, (int)s->param_count, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(res) == PGRES_TUPLES_OK && PQnfields(res) == 2)
        snprintf(answer, sizeof(answer), "%s %s", PQgetvalue(res, 0, 0), PQgetvalue(res, 0, 1));
    else if (PQresultStatus(res) == PGRES_TUPLES_OK)
        snprintf(answer, sizeof(answer), "%s", PQgetvalue(res, 0, 0));
    else
        answer[0] = '\0';
    PQclear(res);
    return answer[0] ? answer : NULL;
}

static const char *push_by_statement(PGconn *client, const jobq_push *item)
{
    jobq_request r = {.push = item, .out = &shown};

    jobq__batch_reset(&shown);
    assert_ok(jobq__store_request(store, &r));
    return run_statement(client, &r.statement);
}

static void test_b8_statement_in_a_transaction(void **state)
{
    jobq_push item = job_item("a", "q");
    const jobq_record *job;
    PGconn *client;

    (void)state;
    limit_queue("full", 1);
    push_job("first", "full");
    item.unique = jobq__slice("k\0\xff", 3);
    item.body = jobq__slice("\x93\0\xff\\", 4);
    item.header = jobq__slice("\1m\x81\xa1t\5", 6);
    item.delay_ms = 60000;
    item.priority = 3;
    client = connect_client();
    say(client, "BEGIN");
    assert_string_equal(push_by_statement(client, &item), "a stored");
    say(client, "ROLLBACK");
    assert_null(find_job("a")); /* it never existed */
    say(client, "BEGIN");
    assert_string_equal(push_by_statement(client, &item), "a stored");
    assert_string_equal(push_by_statement(client, &item), "a duplicate");
    item.idempotent = true;
    assert_string_equal(push_by_statement(client, &item), "a held");
    item.id = TEXT("b");
    assert_string_equal(push_by_statement(client, &item), "a held");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    item.delay_ms = 90000;
    assert_string_equal(push_by_statement(client, &item), "a replaced");
    item = job_item("c", "full");
    assert_string_equal(push_by_statement(client, &item), "c full");
    say(client, "COMMIT");
    PQfinish(client);
    job = find_job("a");
    assert_int_equal(job->state, 1);
    assert_int_equal(job->priority, 3);
    assert_true(job->available_at_ms > store_now() + 80000);
    assert_int_equal(job->body.n, 4);
    assert_memory_equal(job->body.p, "\x93\0\xff\\", 4);
    assert_memory_equal(job->header.p, "\1m\x81\xa1t\5", 6);
    assert_memory_equal(job->unique.p, "k\0\xff", 3);
    assert_null(find_job("c"));
    item.guard = &(jobq_statement){.text = TEXT("SELECT 1")};
    assert_code(jobq__store_request(store, &(jobq_request){.push = &item, .out = &shown}),
                JOBQ_EUNSUPPORTED);
}

/* The commit wakes a worker that went idle after the statement. */
static void test_b8_statement_wakes(void **state)
{
    const jobq_slice q = TEXT("q");
    const jobq_wait w = {
        .queues = &q, .queue_count = 1, .timeout_ms = 20000, .poll_ms = 20000, .wake_fd = -1};
    const jobq_push item = job_item("a", "q");
    PGconn *client;
    int64_t began;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        store = contract_open(dsn);
        client = connect_client();
        say(client, "BEGIN");
        must(push_by_statement(client, &item) != NULL);
        usleep(400000);
        say(client, "COMMIT");
        _exit(0);
    }
    usleep(100000);
    began = jobq__clock_mono_ms();
    assert_int_equal(jobq__store_wait(store, &w), JOBQ_WAIT_JOBS);
    assert_true(jobq__clock_mono_ms() - began < 5000);
    reserve_one("w", "q", "a");
    reap(&pid, 1);
}

static jobq_settlement held_done(const char *id)
{
    jobq_push item = job_item(id, "q");

    item.unique = TEXT(id);
    assert_int_equal(push_item(&item), 0);
    return settlement(reserve_one("w", "q", id), JOBQ_OP_DONE);
}

static int push_follower(const char *id, const char *key)
{
    jobq_push item = job_item(id, "q");

    item.unique = TEXT(key);
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    return push_item(&item);
}

/* Rule B6: version 3 did not note on the holder's row that it has a follower. */
static void test_b6_follower_from_version_3(void **state)
{
    jobq_settlement s;

    (void)state;
    begin_worker("w", 30000);
    s = held_done("a");
    assert_int_equal(push_follower("next", "a"), 2);
    jobq__store_disconnect(store);
    execute("UPDATE job SET traced = false; UPDATE meta SET version = 3");
    assert_ok(jobq__store_schema(store));
    assert_int_equal(settle_with("w", &s), 0);
    assert_null(find_job("a"));
    reserve_one("w", "q", "next");
}

/* Such a push may be under way in the application's transaction: that is waited for. */
static void test_b6_follower_pushed_during_migration(void **state)
{
    jobq_settlement s;
    jobq_push next = job_item("next", "q");
    PGconn *client;
    pid_t pid;
    int bell[2];
    char byte;

    (void)state;
    begin_worker("w", 30000);
    s = held_done("a");
    jobq__store_disconnect(store);
    next.unique = TEXT("a");
    next.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(pipe(bell), 0);
    pid = fork();
    if (pid == 0) {
        store = contract_open(dsn);
        client = connect_client();
        say(client, "BEGIN");
        must(push_by_statement(client, &next) != NULL);
        say(client, "UPDATE job SET traced = false");
        must(write(bell[1], "", 1) == 1);
        wait_until(ask("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0, 20);
        say(client, "COMMIT");
        _exit(0);
    }
    assert_int_equal(read(bell[0], &byte, 1), 1);
    close(bell[0]);
    close(bell[1]);
    execute("UPDATE meta SET version = 3");
    assert_ok(jobq__store_schema(store));
    assert_int_equal(settle_with("w", &s), 0);
    reap(&pid, 1);
    reserve_one("w", "q", "next");
}

static void test_o1_done_in_a_transaction(void **state)
{
    jobq_settlement s;
    jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &shown};
    const jobq_record *job;
    PGconn *client;

    (void)state;
    execute("DROP TABLE IF EXISTS public.work; CREATE TABLE public.work(n int)");
    begin_worker("w", 30000);
    s = held_done("a");
    s.keep_ms = 100000;
    s.keep_bare = true;
    s.outcome = TEXT("it is done");
    s.history = TEXT("entry");
    assert_int_equal(push_follower("next", "a"), 2);
    client = connect_client();
    jobq__batch_reset(&shown);
    assert_ok(jobq__store_request(store, &r));
    say(client, "BEGIN; INSERT INTO public.work VALUES (1)");
    assert_string_equal(run_statement(client, &r.statement), "t");
    say(client, "ROLLBACK"); /* neither the work nor the end */
    assert_int_equal(find_job("a")->state, 2);
    say(client, "BEGIN; INSERT INTO public.work VALUES (1)");
    assert_string_equal(run_statement(client, &r.statement), "t");
    say(client, "COMMIT");
    job = find_job("a");
    assert_int_equal(job->state, 3);
    assert_int_equal(job->body.n, 0);
    assert_memory_equal(job->outcome.p, "it is done", 10);
    assert_int_equal(job->history_count, 1);
    assert_int_equal(settle_with("w", &s), JOBQ_ELEASE);
    /* The token is stale now: the application's transaction fails. */
    say(client, "BEGIN; INSERT INTO public.work VALUES (2)");
    assert_null(run_statement(client, &r.statement));
    assert_non_null(strstr(PQerrorMessage(client), "the lease of job a is lost"));
    assert_false(try_say(client, "INSERT INTO public.work VALUES (3)"));
    say(client, "COMMIT");
    assert_int_equal(ask("SELECT count(*) FROM public.work"), 1);
    PQfinish(client);
    maintain_all();
    reserve_one("w", "q", "next"); /* whose key it is now */
    execute("DROP TABLE public.work");
}

/* An old snapshot does not see the follower: then it is told to try again, and nobody is orphaned.
 * */
static void test_o1_done_under_an_old_snapshot(void **state)
{
    jobq_settlement s;
    jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &shown};
    PGconn *client;

    (void)state;
    begin_worker("w", 30000);
    s = held_done("a");
    jobq__batch_reset(&shown);
    assert_ok(jobq__store_request(store, &r));
    client = connect_client();
    say(client, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM job");
    assert_int_equal(push_follower("next", "a"), 2);
    assert_null(run_statement(client, &r.statement));
    assert_non_null(strstr(PQerrorMessage(client), "could not serialize"));
    say(client, "ROLLBACK");
    say(client, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_string_equal(run_statement(client, &r.statement), "t");
    say(client, "COMMIT");
    PQfinish(client);
    maintain_all();
    reserve_one("w", "q", "next");
}

/* ---- pushing in SQL, with the options -------------------------------------------------------- */

static void test_b8_sql_options(void **state)
{
    static const char *const refused[] = {
        "'{\"on_duplicate\": \"replace\"}'",
        "'{\"unique\": \"k\", \"on_duplicate\": \"sometimes\"}'",
        "'{\"unique\": \"k\", \"max_wait\": 5}'",
        "'{\"unique\": \"k\", \"unique_scope\": \"for_ever\"}'",
        "'{\"idempotent\": true}'",
        "'{\"id\": \"x\", \"idempotent_for\": 5}'",
        "'{\"track\": 1}'",
    };
    jobq__arena arena = {0};
    jobq__header h;
    PGconn *client = connect_client();
    char sql[300];

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        snprintf(sql, sizeof(sql), "SELECT push('q', 'n', '1', %s)", refused[i]);
        if (try_say(client, sql))
            fail_msg("%s was taken", sql);
    }
    say(client, "BEGIN");
#define ANSWER(options) \
    ask_text(client, "SELECT id || ' ' || result FROM push('q', 'n', '1', '" options "')")
    assert_string_equal(ANSWER("{\"id\": \"a\", \"unique\": \"k\", \"delay\": 60, \"track\": true, "
                               "\"unique_scope\": \"until_started\", \"idempotent\": true, "
                               "\"idempotent_for\": 90}"),
                        "a stored");
    assert_string_equal(ANSWER("{\"id\": \"a\", \"idempotent\": true}"), "a held");
    assert_string_equal(ANSWER("{\"id\": \"a\"}"), "a duplicate");
    assert_string_equal(ANSWER("{\"unique\": \"k\"}"), "a held");
    assert_string_equal(ANSWER("{\"unique\": \"k\", \"on_duplicate\": \"error\"}"), "a duplicate");
    assert_string_equal(ANSWER("{\"unique\": \"k\", \"on_duplicate\": \"replace\", \"delay\": 90, "
                               "\"max_wait\": 5, \"track\": true, \"unique_scope\": "
                               "\"until_started\", \"id\": \"b\", \"idempotent\": true}"),
                        "a replaced");
#undef ANSWER
    say(client, "COMMIT");
    PQfinish(client);
    assert_true(find_job("a")->available_at_ms <= store_now() + 5000);
    assert_int_equal(jobq__envelope_read(find_job("a")->header, &arena, &h), 0);
    assert_true(h.track && h.until_started);
    assert_int_equal(h.idempotent_for_ms, 3600000);
    jobq__arena_free(&arena);
}

/* ---- followers (rule B6) --------------------------------------------------------------------- */

/* The holder ends in every way there is: its follower takes the key and runs. */
static void test_b6_follower_on_every_end(void **state)
{
    enum { DONE, KEPT, DEAD, FREED, STATEMENT, CANCELLED, CLEARED, TAKEN_BACK_AND_DONE, WAYS };
    jobq_renewal renewal = {.worker = TEXT("w"), .lease_ms = 30000};

    (void)state;
    begin_worker("w", 30000);
    for (int way = 0; way < WAYS; way++) {
        char first[16], second[16];
        jobq_settlement s;
        jobq_push again;

        snprintf(first, sizeof(first), "first-%d", way);
        snprintf(second, sizeof(second), "second-%d", way);
        s = held_done(first);
        assert_int_equal(push_follower(second, first), 2);
        s.op = way == DEAD ? JOBQ_OP_DEAD : way == FREED ? JOBQ_OP_FREE_KEY : JOBQ_OP_DONE;
        s.keep_ms = way == KEPT ? 1000 : 0;
        if (way == CANCELLED || way == CLEARED) {
            s.op = JOBQ_OP_BACK;
            s.delay_ms = way == CLEARED ? 60000 : 0;
        }
        if (way == STATEMENT) {
            jobq_request r = {.worker = TEXT("w"), .done = &s, .out = &shown};
            PGconn *client = connect_client();

            jobq__batch_reset(&shown);
            assert_ok(jobq__store_request(store, &r));
            assert_non_null(run_statement(client, &r.statement));
            PQfinish(client);
        } else if (way == TAKEN_BACK_AND_DONE) {
            shift(40000);
            maintain_all();
            assert_code(jobq__store_renew(store, &renewal), JOBQ_ELEASE);
            assert_int_equal(settle_with("w", &s), JOBQ_ELEASE);
            s.token = reserve_one("w", "q", first)->token;
            assert_int_equal(settle_with("w", &s), 0);
        } else {
            assert_int_equal(settle_with("w", &s), 0);
        }
        if (way == CANCELLED) {
            jobq_cancelling c = {.id = TEXT(first), .reason = 11};

            assert_ok(jobq__store_cancel(store, &c));
            assert_int_equal(c.result, 0);
        } else if (way == CLEARED) {
            jobq_clearing c = {.queue = TEXT("q"), .limit = 1};

            assert_ok(jobq__store_clear(store, &c));
            assert_int_equal(c.cleared, 1);
            assert_null(find_job(first));
        }
        maintain_all();
        again = job_item("again", "q");
        again.unique = TEXT(first);
        assert_int_equal(push_item(&again), 1);
        assert_string_equal(again.holder, second);
        s.op = JOBQ_OP_DONE;
        assert_int_equal(settle_with("w", &s), way == FREED ? 0 : JOBQ_ELEASE);
        assert_int_equal(push_item(&again),
                         1); /* the end of one that had given it up takes nothing */
        assert_int_equal(settle_op("w", reserve_one("w", "q", second), JOBQ_OP_DONE), 0);
        assert_string_equal(contract_strays("q"), "");
    }
}

static void replace_for_a_while(int who, int64_t until_ms)
{
    char id[32];

    store = contract_open(dsn);
    for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
        char key[8];

        snprintf(id, sizeof(id), "%d-%d", who, i);
        snprintf(key, sizeof(key), "k%d", i % 3);
        must(push_follower(id, key) >= 0);
    }
    _exit(0);
}

static void work_for_a_while(const char *worker, int64_t until_ms)
{
    store = contract_open(dsn);
    begin_worker(worker, 30000);
    for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
        static const int ops[] = {JOBQ_OP_DONE, JOBQ_OP_DEAD, JOBQ_OP_BACK, JOBQ_OP_GIVE_BACK,
                                  JOBQ_OP_FREE_KEY};
        jobq_settlement s;

        maintain_all();
        if (reserve_jobs(worker, "q", 1) == 0)
            continue;
        s = settlement(got.first, ops[i % 5]);
        must(settle_with(worker, &s) == 0);
        s.op = JOBQ_OP_DONE;
        must(i % 5 != 4 || settle_with(worker, &s) == 0);
    }
    _exit(0);
}

/* Three keys, four who replace, three who work: at the end nobody follows one that is gone, and all
 * keys are free once everything is done. */
static void test_b6_crowd_of_followers(void **state)
{
    const int64_t until_ms = jobq__clock_mono_ms() + 3000;
    pid_t pids[7];

    (void)state;
    for (int i = 0; i < 7; i++) {
        char worker[8];

        snprintf(worker, sizeof(worker), "w%d", i);
        pids[i] = fork();
        if (pids[i] == 0 && i < 4)
            replace_for_a_while(i, until_ms);
        if (pids[i] == 0)
            work_for_a_while(worker, until_ms);
    }
    while (jobq__clock_mono_ms() < until_ms)
        assert_string_equal(contract_strays("q"), "");
    reap(pids, 7);
    assert_string_equal(contract_strays("q"), "");
    begin_worker("w", 30000);
    for (int empty = 0; empty < 2;) {
        maintain_all();
        if (reserve_jobs("w", "q", 1) == 0)
            empty++;
        else
            assert_int_equal(settle_op("w", got.first, JOBQ_OP_DONE), 0);
    }
    assert_int_equal(count_jobs("q").delayed + count_jobs("q").reserved, 0);
    assert_int_equal(ask("SELECT count(*) FROM job WHERE state = 0"), 0);
}

/* ---- retention (rule F4) --------------------------------------------------------------------- */

static void test_f4_collected_in_steps(void **state)
{
    jobq_maintenance m = {.limit = 10, .take_back = true};
    jobq_settlement s;
    char id[16];

    (void)state;
    begin_worker("w", 3600000);
    for (int i = 0; i < 25; i++) {
        snprintf(id, sizeof(id), "d%d", i);
        push_job(id, "q");
        s = settlement(reserve_one("w", "q", id), JOBQ_OP_DEAD);
        s.keep_ms = 10000;
        s.error = TEXT("why");
        s.history = TEXT("entry");
        assert_int_equal(settle_with("w", &s), 0);
    }
    push_job("for ever", "q");
    assert_int_equal(settle_op("w", reserve_one("w", "q", "for ever"), JOBQ_OP_DEAD), 0);
    assert_true(maintain_all().next_due_ms > store_now());
    shift(11000);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "d0", true), JOBQ_ELIMIT);
    for (int i = 0; i < 3; i++) {
        assert_ok(jobq__store_maintain(store, &m));
        assert_int_equal(m.handled, i < 2 ? 10 : 5);
        assert_int_equal(m.more, i < 2);
    }
    assert_int_equal(count_jobs("q").dead, 1);
    assert_int_equal(ask("SELECT count(*) FROM trace"), 0);
    assert_non_null(find_job("for ever"));
}

/* ---- looking for what is wrong (rule N5) ----------------------------------------------------- */

/* What is broken on purpose is found while traffic flows, and nothing else. */
static void test_n5_audit_finds(void **state)
{
    int64_t until_ms;
    char want[400], seq[32];
    jobq_settlement s;
    pid_t pid;

    (void)state;
    begin_worker("w", 3600000);
    push_job("none", "q");
    push_job("two", "q");
    push_job("ownerless", "q");
    assert_int_equal(reserve_jobs("w", "q", 3), 3);
    for (const jobq_record *r = got.first; r; r = r->next) {
        s = settlement(r, JOBQ_OP_BACK);
        s.delay_ms = memcmp(r->id.p, "two", 3) == 0 ? 0 : 3600000;
        if (memcmp(r->id.p, "ownerless", 3) != 0)
            assert_int_equal(settle_with("w", &s), 0);
    }
    settle_op("w", reserve_one("w", "q", "two"), JOBQ_OP_DEAD);
    assert_string_equal(contract_strays("q"), "");
    execute("DELETE FROM delayed WHERE seq = (SELECT seq FROM job WHERE id = 'none'); "
            "INSERT INTO ready(queue, rank, available_at, seq, size) "
            "SELECT queue, 0, 4000000000000, seq, 1 FROM job WHERE id = 'two'; "
            "UPDATE held SET worker = 999999; "
            "INSERT INTO delayed(due, seq, queue, rank, size) "
            "VALUES (4000000000000, 999999999, 'q', 9, 1)");
    pid = fork();
    until_ms = jobq__clock_mono_ms() + 2000;
    if (pid == 0) {
        store = contract_open(dsn);
        begin_worker("v", 30000);
        for (int i = 0; jobq__clock_mono_ms() < until_ms; i++) {
            jobq_push item;
            char id[16];

            snprintf(id, sizeof(id), "t%d", i);
            item = job_item(id, "q");
            item.priority = 9;
            item.delay_ms = i % 3 == 2;
            must(push_item(&item) == 0);
            maintain_all();
            if (reserve_jobs("v", "q", 1) == 1 && memcmp(got.first->id.p, "t", 1) == 0)
                must(settle_op("v", got.first, i % 2 ? JOBQ_OP_BACK : JOBQ_OP_DONE) == 0);
        }
        _exit(0);
    }
    snprintf(seq, sizeof(seq), "#999999999");
    snprintf(want, sizeof(want), "none/0 ownerless/4! two/17 %s/2 ", seq);
    while (jobq__clock_mono_ms() < until_ms) {
        const char *found = contract_strays("q");

        if (!strstr(found, "none/0 ") || !strstr(found, "ownerless/4! ") ||
            !strstr(found, "two/17 ") || !strstr(found, "#999999999/2 ") ||
            strlen(found) != strlen(want))
            fail_msg("found %s", found);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    execute(
        "DROP SCHEMA IF EXISTS spare CASCADE; TRUNCATE job, ready, taken, delayed, held, trace");
}

static void test_n5_examine_indexes(void **state)
{
    const char *problems;
    char sql[300];
    const char *start;
    jobq_examination e = {.out = &shown};

    (void)state;
    execute("DROP INDEX job_keep; ALTER TABLE held DROP CONSTRAINT held_pkey");
    problems = contract_remarks(JOBQ_REMARK_PROBLEM);
    assert_non_null(strstr(problems, "schema: the table job has no valid index on (keep_until)"));
    assert_non_null(strstr(problems, "schema: the table held has no valid index on (worker, seq)"));
    /* What is advised puts it right. */
    jobq__batch_reset(&shown);
    assert_ok(jobq__store_examine(store, &e));
    for (const jobq_remark *r = e.remarks; r; r = r->next) {
        start = r->advice ? strstr(r->advice, "carry out: ") : NULL;
        if (!start)
            continue;
        snprintf(sql, sizeof(sql), "%s", start + strlen("carry out: "));
        execute(sql);
    }
    assert_null(strstr(contract_remarks(JOBQ_REMARK_PROBLEM), "schema:"));
    execute("DROP TABLE minute");
    assert_non_null(strstr(contract_remarks(JOBQ_REMARK_PROBLEM), "the table minute is missing"));
}

static void test_n5_examine_settings(void **state)
{
    server *mine = postgres;
    jobq__store *owner = store;
    char text[500];
    const char *problems = contract_remarks(JOBQ_REMARK_PROBLEM);

    (void)state;
    /* As servers of tests are: what is confirmed is not on the disk. */
    assert_non_null(strstr(problems, "durability: fsync is off"));
    assert_non_null(strstr(problems, "durability: full_page_writes is off"));
    postgres = server_start_with("postgres", false,
                                 "-c fsync=on -c full_page_writes=on -c synchronous_commit=on "
                                 "-c autovacuum=off -c idle_in_transaction_session_timeout=600000");
    snprintf(text, sizeof(text), "%s?schema=%s", server_dsn(postgres), schema);
    store = contract_open(text);
    assert_string_equal(contract_remarks(JOBQ_REMARK_PROBLEM), "vacuum: autovacuum is off; ");
    assert_string_equal(contract_remarks(JOBQ_REMARK_NOTE), "");
    execute("ALTER ROLE jobqueue SET synchronous_commit = off");
    execute("ALTER ROLE jobqueue SET statement_timeout = 1000");
    jobq__store_free(store);
    snprintf(text, sizeof(text), "%s?schema=%s&listen=false", server_dsn(postgres), schema);
    store = contract_open(text);
    assert_non_null(strstr(contract_remarks(JOBQ_REMARK_PROBLEM), "synchronous_commit is off"));
    assert_non_null(strstr(contract_remarks(JOBQ_REMARK_NOTE), "listen: listen=false"));
    assert_non_null(strstr(contract_remarks(JOBQ_REMARK_NOTE), "statement_timeout is 1000 ms"));
    jobq__store_free(store);
    server_remove(postgres);
    postgres = mine;
    store = owner;
}

static void test_n5_examine_rights(void **state)
{
    jobq__store *owner = store;
    char sql[200], text[500];

    (void)state;
    execute("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN END $$");
    snprintf(
        sql, sizeof(sql),
        "GRANT USAGE ON SCHEMA %s TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA %s TO reader",
        schema, schema);
    execute(sql);
    snprintf(text, sizeof(text), "%s&user=reader&migrate=false", dsn);
    store = contract_open(text);
    assert_non_null(strstr(contract_remarks(JOBQ_REMARK_PROBLEM), "rights: this role may not"));
    jobq__store_free(store);
    store = owner;
    execute("DROP OWNED BY reader");
}

/* ---- an older schema ------------------------------------------------------------------------- */

/* What version 2 had besides its tables and has another form now. */
static const char version_2[] =
    "CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'; "
    "CREATE FUNCTION push_one(text, text, text, int, smallint, bigint, bigint, bytea, bytea, "
    "bytea, "
    "OUT result int, OUT holder text) LANGUAGE sql AS 'SELECT 0, NULL::text'; "
    "CREATE FUNCTION push_single(text, text, text, bigint, bigint, bigint, bytea, bytea, bytea, "
    "OUT result int, OUT holder text) LANGUAGE sql AS 'SELECT 0, NULL::text'; "
    "CREATE FUNCTION push_plain(text, text, text, bigint, bigint, bigint, bytea, bytea, boolean) "
    "RETURNS void LANGUAGE sql AS ''; "
    "CREATE FUNCTION cancel(text, bigint, bigint, bytea, bigint[], bytea[]) RETURNS int "
    "LANGUAGE sql AS 'SELECT 0'; "
    "CREATE FUNCTION settle_one(int, bigint[], bytea, bytea, bigint) RETURNS boolean LANGUAGE sql "
    "AS 'SELECT true'; "
    "CREATE VIEW jobqueue_jobs AS SELECT j.id, j.queue FROM job j; "
    "UPDATE meta SET version = 2; "
    "INSERT INTO queue(name) VALUES ('mail'); "
    "INSERT INTO job(available_at, enqueued_at, queue, version, rank, id, name, body, unique_key, "
    "state, reason, died_at, keep_until) SELECT 5, 5, 'mail', 1, 9, u.id, 'n', 'x', u.key, "
    "u.state, "
    "u.state / 4, CASE u.state WHEN 4 THEN 5 END, CASE u.state WHEN 3 THEN 6 END "
    "FROM (VALUES ('ready', 'k'::bytea, 0), ('done', NULL, 3), ('dead', 'k', 4)) u(id, key, "
    "state); "
    "INSERT INTO ready(available_at, seq, queue, size, rank) "
    "SELECT available_at, seq, queue, 1, rank FROM job WHERE id = 'ready'";

static void test_version_2(void **state)
{
    pgsql_store names = {0};
    jobq_push item = job_item("new", "mail");
    char sql[200], *tables;
    PGconn *client;

    (void)state;
    jobq__store_free(store);
    fresh_dsn();
    client = connect_client();
    snprintf(names.schema, sizeof(names.schema), "%s", schema);
    snprintf(sql, sizeof(sql), "CREATE SCHEMA %s", schema);
    say(client, sql);
    tables = jobq__pgsql_expand(&names, jobq__pgsql_tables_1);
    say(client, tables);
    jobq__free(tables);
    tables = jobq__pgsql_expand(&names, jobq__pgsql_tables_2);
    say(client, tables);
    jobq__free(tables);
    say(client, version_2);
    PQfinish(client);
    store = contract_open(dsn);
    assert_int_equal(count_jobs("mail").ready, 1);
    assert_int_equal(count_jobs("mail").dead, 1);
    item.unique = TEXT("k");
    item.on_duplicate = JOBQ_DUPLICATE_REPLACE;
    assert_int_equal(push_item(&item), 2);
    assert_string_equal(item.holder, "ready");
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead", false), JOBQ_EEXISTS);
    assert_int_equal(settle_op("w", reserve_one("w", "mail", "ready"), JOBQ_OP_DONE), 0);
    assert_int_equal(mend_job(store, JOBQ_MEND_RETRY, "dead", false), 0);
    assert_int_equal(maintain_all().handled, 1); /* the done one's time is over */
    assert_null(find_job("done"));
    assert_string_equal(contract_strays("mail"), "");
    assert_null(strstr(contract_remarks(JOBQ_REMARK_PROBLEM), "schema:"));
    limit_queue("mail", 1);
    assert_int_equal(push_fresh("more", "mail"), JOBQ_EFULL);
}

/* ---- outages --------------------------------------------------------------------------------- */

/* rule K2: what only looks leaves nothing unknown when the server is killed under it. */
static void test_k2_looking_is_no_write(void **state)
{
    const jobq_wait w = {.timeout_ms = 20000, .poll_ms = 200, .wake_fd = -1, .job = TEXT("a")};
    int64_t now_ms;
    PGconn *client;
    pid_t pid;

    (void)state;
    push_job("a", "q");
    client = connect_client();
    say(client, "CHECKPOINT");
    say(client, "BEGIN; LOCK TABLE job IN ACCESS EXCLUSIVE MODE");
    pid = fork();
    if (pid == 0) {
        wait_until(ask("SELECT count(*) " OTHERS " AND wait_event_type = 'Lock'") == 1, 20);
        server_kill(postgres);
        _exit(0);
    }
    assert_code(jobq__store_wait(store, &w), JOBQ_EIO);
    assert_true(jobq_error_is_retryable(jobq_error_last()));
    reap(&pid, 1);
    PQfinish(client);
    server_restart(postgres);
    wait_until(jobq__store_now(store, &now_ms) == 0, 20);
    assert_non_null(find_job("a"));
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(test_b4_many_pushers),
        ROW(test_b4_pushers_and_workers),
        ROW(test_b4_pushes_do_not_wait),
        ROW(test_b4_set_by_another),
        ROW(test_b4_through_a_crash),
        ROW(test_b4_room_again),
        ROW(test_b4_while_a_count_is_believed),
        ROW(test_b7_values),
        ROW(test_b7_values_in_a_comma_locale),
        ROW(test_b7_failures),
        ROW(test_b7_settings),
        ROW(test_b7_batch),
        ROW(test_o1_effect_and_stale_token),
        ROW(test_o1_nobody_in_between),
        ROW(test_b8_statement_in_a_transaction),
        ROW(test_b8_statement_wakes),
        ROW(test_o1_done_in_a_transaction),
        ROW(test_o1_done_under_an_old_snapshot),
        ROW(test_b8_sql_options),
        ROW(test_b6_follower_on_every_end),
        ROW(test_b6_crowd_of_followers),
        ROW(test_f4_collected_in_steps),
        ROW(test_n5_audit_finds),
        ROW(test_n5_examine_indexes),
        ROW(test_n5_examine_settings),
        ROW(test_n5_examine_rights),
        ROW(test_k2_looking_is_no_write),
        ROW(test_version_2),
        ROW(test_b6_follower_from_version_3),
        ROW(test_b6_follower_pushed_during_migration),
    };

    cmocka_set_test_filter(getenv("JOBQUEUE_TEST_ONLY"));
    return cmocka_run_group_tests_name("postgresql: guarantees", tests, NULL, NULL);
}
