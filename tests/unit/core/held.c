/* SPDX-License-Identifier: MIT
 *
 * What a held job can do: progress and results (N7), effects and the lent end (O1), fingerprints
 * (O2); and waiting for a job (N7).
 */
#include <jobqueue/jobqueue.h>

#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/loan.h"
#include "core/outcome.h"
#include "store.h"
#include "util/clock.h"
#include "util/sha256.h"

static jobq_info *look(jobq_queue *queue, const char *id)
{
    jobq_info *info = NULL;

    assert_ok(jobq_queue_find(queue, id, strlen(id), &info));
    return info;
}

static void track(jobq_queue *queue, char id[129])
{
    push(queue, "n", "track", "true", id);
}

/* ---- progress and result --------------------------------------------------------------------- */

static void shows_progress(void **state)
{
    jobq_queue *queue = *state;
    const char *note;
    double percent;
    jobq_info *info;
    jobq_job *job;
    char id[129], big[4000];

    push(queue, "n", NULL, NULL, id);
    job = reserve(queue);
    info = look(queue, id);
    assert_false(jobq_info_progress(info, &percent, &note));
    jobq_info_free(info);
    assert_code(jobq_job_progress(job, NAN, NULL, 0), JOBQ_EINVAL);
    assert_code(jobq_job_progress(job, -0.5, NULL, 0), JOBQ_EINVAL);
    assert_code(jobq_job_progress(job, 100.5, NULL, 0), JOBQ_EINVAL);
    assert_ok(jobq_job_progress(job, 12.5, "half an \xe2\x82\xac", 11));
    info = look(queue, id);
    assert_true(jobq_info_progress(info, &percent, &note));
    assert_true(percent == 12.5);
    assert_string_equal(note, "half an \xe2\x82\xac");
    jobq_info_free(info);
    memset(big, 'x', sizeof(big));
    assert_ok(jobq_job_progress(job, 100, big, sizeof(big)));
    info = look(queue, id);
    assert_true(jobq_info_progress(info, &percent, &note) && strlen(note) <= 1024);
    jobq_info_free(info);
    assert_ok(jobq_job_progress(job, 0, NULL, 0));
    info = look(queue, id);
    assert_true(jobq_info_progress(info, NULL, &note) && !note);
    jobq_info_free(info);
    assert_ok(jobq_job_done(job));
    assert_code(jobq_job_progress(job, 1, NULL, 0), JOBQ_ELEASE);
    jobq_job_free(job);
}

static void keeps_a_result(void **state)
{
    jobq_queue *queue = *state;
    const char *refusal, *note;
    const void *body;
    jobq_info *info;
    jobq_job *job;
    char id[129];
    size_t n;
    int format;

    track(queue, id);
    job = reserve(queue);
    assert_true(jobq_job_is_kept(job));
    assert_ok(jobq_job_progress(job, 50, "half", 4));
    assert_ok(jobq_job_set_result(job, JOBQ_FORMAT_JSON, "{\"sum\":7}", 9));
    assert_code(jobq_job_set_result(job, JOBQ_FORMAT_JSON, "{\"sum\"", 6), JOBQ_EPAYLOAD);
    assert_code(jobq_job_set_result(job, 5, "7", 1), JOBQ_EINVAL);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    info = look(queue, id);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DONE);
    body = jobq_info_result(info, &n, &format, &refusal);
    assert_int_equal(n, 9);
    assert_memory_equal(body, "{\"sum\":7}", 9);
    assert_int_equal(format, JOBQ_FORMAT_JSON);
    assert_null(refusal);
    assert_true(jobq_info_progress(info, NULL, &note)); /* the last one is kept beside it */
    assert_string_equal(note, "half");
    /* at least an hour */
    assert_true(jobq_info_number(info, JOBQ_INFO_KEPT_UNTIL_MS) - jobq__clock_wall_ms() > 3590000);
    jobq_info_free(info);
}

static void says_why_there_is_none(void **state)
{
    jobq_queue *queue = *state;
    const char *refusal;
    jobq_info *info;
    jobq_job *job;
    char id[129];

    track(queue, id);
    job = reserve(queue);
    jobq_job_refuse_result(job, "result: a Closure\ncannot be kept", 32);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    info = look(queue, id);
    assert_null(jobq_info_result(info, NULL, NULL, &refusal));
    assert_string_equal(refusal, "result: a Closure\ncannot be kept");
    jobq_info_free(info);
}

static void keeps_nothing_of_others(void **state)
{
    jobq_queue *queue = *state;
    jobq_info *info;
    jobq_job *job;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    job = reserve(queue);
    assert_false(jobq_job_is_kept(job));
    assert_ok(jobq_job_set_result(job, JOBQ_FORMAT_JSON, "7", 1));
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_code(jobq_queue_find(queue, id, strlen(id), &info), JOBQ_ENOTFOUND);
}

static void bounds_results(void **state)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_SNAKE);
    char text[130];
    jobq_queue *queue;
    jobq_job *job;

    (void)state;
    assert_ok(jobq_conf_set(conf, "max_payload", "50", 2));
    assert_ok(jobq_queue_new("memory:", conf, &queue));
    jobq_conf_free(conf);
    track(queue, text);
    job = reserve(queue);
    memset(text, '1', 64);
    assert_ok(jobq_job_set_result(job, JOBQ_FORMAT_JSON, text, 18));
    assert_code(jobq_job_set_result(job, JOBQ_FORMAT_JSON, text, 51), JOBQ_ELIMIT);
    assert_said("max_payload allows 50");
    jobq_job_free(job);
    jobq_queue_free(queue);
}

/* Rule E3: who waits for a job that was dropped is told so. */
static void tells_of_a_dropped_one(void **state)
{
    jobq_message *m = message("n", "track", "true");
    const char *refusal;
    jobq_info *info;

    assert_ok(jobq_conf_set(jobq_message_options(m), "expires", "@1", 2));
    assert_ok(jobq_conf_set(jobq_message_options(m), "on_expire", "drop", 4));
    assert_ok(jobq_queue_push(*state, m));
    assert_null(reserve(*state));
    info = look(*state, jobq_message_id(m));
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DONE);
    assert_null(jobq_info_result(info, NULL, NULL, &refusal));
    assert_string_equal(refusal, "expired before it started, and dropped");
    jobq_info_free(info);
    jobq_message_free(m);
}

/* A tracked job whose lease is lost shows and keeps nothing. */
static void refuses_progress_of_the_lost(void **state)
{
    jobq_queue *queue = *state;
    jobq_job *job;
    char id[129];

    track(queue, id);
    job = reserve(queue);
    ((jobq__loan *)(void *)job)->job.token.word[2] += 2; /* somebody else's */
    assert_code(jobq_job_progress(job, 5, NULL, 0), JOBQ_ELEASE);
    assert_true(jobq_job_is_lost(job));
    jobq_job_free(job);
}

static void reads_any_bytes(void **state)
{
    static const char *const bad[] = {"", "\xc0", "\x94\xc0\xc0\x00\xc0",
                                      "\x95\xc0\xc0\x05\xc0\xc0", "\x95\x01\xc0\x00\xc0\xc0"};
    const jobq__outcome full = {.has_percent = true,
                                .percent = 0.1,
                                .note = {"n", 1},
                                .format = JOBQ_FORMAT_JSON,
                                .body = {"", 0}};
    jobq__arena arena = {0};
    jobq__buf buf = {0};
    jobq__outcome out;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(
            jobq__outcome_read((jobq_slice){bad[i], i == 2 ? 5 : strlen(bad[i])}, &arena, &out));
    jobq__outcome_write(&buf, &full);
    assert_true(jobq__outcome_read((jobq_slice){buf.p, buf.n}, &arena, &out));
    assert_true(out.has_percent && out.percent == 0.1 && out.body.p && out.body.n == 0 &&
                !out.refusal.p && out.format == JOBQ_FORMAT_JSON);
    assert_string_equal(out.note.p, "n");
    for (size_t n = 0; n < buf.n; n++)
        assert_false(jobq__outcome_read((jobq_slice){buf.p, n}, &arena, &out));
    buf.p[0]++; /* a later version has a sixth value */
    jobq__buf_addc(&buf, '\xc3');
    assert_true(jobq__outcome_read((jobq_slice){buf.p, buf.n}, &arena, &out));
    jobq__arena_free(&arena);
    jobq__buf_free(&buf);
}

/* ---- effects (rule O1) ----------------------------------------------------------------------- */

static const char *file_of(jobq_queue *queue)
{
    return strchr(jobq_queue_dsn(queue), ':') + 1;
}

static int64_t ask(jobq_queue *queue, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    int64_t value;

    assert_int_equal(sqlite3_open(file_of(queue), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    value = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

static void carries_out_effects(void **state)
{
    const jobq_param params[] = {{.type = JOBQ_PARAM_TEXT, .bytes = {"paid", 4}},
                                 {.type = JOBQ_PARAM_INT, .integer = 5}};
    const jobq_statement insert = {{"INSERT INTO ledger VALUES (?1, ?2)", 34}, params, 2},
                         read = {{"SELECT what FROM ledger", 23}, NULL, 0},
                         bad = {{"INSERT INTO nowhere VALUES (1)", 30}, NULL, 0};
    jobq_queue *queue = *state;
    jobq_param value;
    jobq_job *job;
    char id[129];

    push(queue, "n", NULL, NULL, id);
    job = reserve(queue);
    ask(queue, "CREATE TABLE ledger (what, n)");
    assert_ok(jobq_job_effect(job, &insert, &value));
    assert_int_equal(value.type, JOBQ_PARAM_INT);
    assert_int_equal(value.integer, 1); /* rows changed */
    assert_ok(jobq_job_effect(job, &read, &value));
    assert_int_equal(value.type, JOBQ_PARAM_TEXT);
    assert_memory_equal(value.bytes.p, "paid", 4);
    assert_true(jobq_job_effect(job, &bad, NULL) < 0);
    assert_ok(jobq_job_effect(job, &insert, NULL)); /* a bad one spoils nothing */
    ((jobq__loan *)(void *)job)->job.token.word[2] += 2;
    assert_code(jobq_job_effect(job, &insert, NULL), JOBQ_ELEASE);
    assert_true(jobq_job_is_lost(job));
    assert_int_equal(ask(queue, "SELECT count(*) FROM ledger"), 2);
    jobq_job_free(job);
}

static void has_no_effect_in_memory(void **state)
{
    const jobq_statement one = {{"SELECT 1", 8}, NULL, 0};
    const jobq_statement *given;
    jobq_job *job;

    push(*state, "n", NULL, NULL, NULL);
    job = reserve(*state);
    assert_code(jobq_job_effect(job, &one, NULL), JOBQ_EUNSUPPORTED);
    assert_code(jobq_job_done_statement(job, JOBQ_PLACEHOLDER_OWN, &given), JOBQ_EUNSUPPORTED);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

/* ---- the end, lent out (rule O1) ------------------------------------------------------------- */

static int carry_out(sqlite3 *db, const jobq_statement *s)
{
    sqlite3_stmt *stmt = NULL;
    int step;

    assert_int_equal(sqlite3_prepare_v2(db, s->text.p, (int)s->text.n, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_bind_parameter_count(stmt), s->param_count);
    for (int i = 0; i < (int)s->param_count; i++) {
        const jobq_param *p = &s->params[i];

        if (p->type == JOBQ_PARAM_INT)
            sqlite3_bind_int64(stmt, i + 1, p->integer);
        else if (p->type == JOBQ_PARAM_TEXT)
            sqlite3_bind_text(stmt, i + 1, p->bytes.p, (int)p->bytes.n, SQLITE_TRANSIENT);
        else if (p->type == JOBQ_PARAM_BYTES)
            sqlite3_bind_blob(stmt, i + 1, p->bytes.p, (int)p->bytes.n, SQLITE_TRANSIENT);
    }
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
    }
    sqlite3_finalize(stmt);
    return step;
}

/* The application's writes and the job's end in one transaction; what is refused then is done. */
static void ends_in_the_callers_transaction(void **state)
{
    jobq_queue *queue = *state;
    const jobq_statement *statement;
    sqlite3 *db = NULL;
    jobq_info *info;
    jobq_job *job;
    char id[129];
    size_t n;

    track(queue, id);
    job = reserve(queue);
    assert_ok(jobq_job_set_result(job, JOBQ_FORMAT_JSON, "42", 2));
    assert_ok(jobq_job_done_statement(job, JOBQ_PLACEHOLDER_QUESTION, &statement));
    assert_int_equal(sqlite3_open(file_of(queue), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(carry_out(db, statement), SQLITE_DONE);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    info = look(queue, id);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_RESERVED);
    jobq_info_free(info);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(carry_out(db, statement), SQLITE_DONE);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    info = look(queue, id);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DONE);
    assert_non_null(jobq_info_result(info, &n, NULL, NULL));
    assert_int_equal(n, 2);
    jobq_info_free(info);
    assert_ok(jobq_job_done(job)); /* the refusal means done */
    jobq_job_free(job);
    sqlite3_close(db);
    push(queue, "n", NULL, NULL, NULL); /* and the handle goes on */
    job = reserve(queue);
    assert_non_null(job);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
}

/* ---- fingerprints (rule O2) ------------------------------------------------------------------ */

/* The examples of FIPS 180-4's companion, and one of a million. */
static void hashes_as_the_standard_says(void **state)
{
    static const struct {
        const char *text, *sum;
    } rows[] = {
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {NULL, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    unsigned char sum[JOBQ__SHA256_SIZE];
    char text[65];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        jobq__sha256 h;

        jobq__sha256_begin(&h);
        if (rows[i].text)
            jobq__sha256_add(&h, rows[i].text, strlen(rows[i].text));
        for (int k = 0; !rows[i].text && k < 100000; k++)
            jobq__sha256_add(&h, "aaaaaaaaaa", 10);
        jobq__sha256_end(&h, sum);
        for (size_t k = 0; k < sizeof(sum); k++)
            snprintf(text + 2 * k, 3, "%02x", sum[k]);
        assert_string_equal(text, rows[i].sum);
    }
}

static void tells_equal_work(void **state)
{
    jobq_queue *queue = *state;
    char first[65];
    jobq_job *job;

    push(queue, "mail", NULL, NULL, NULL);
    push(queue, "mail", "version", "2", NULL);
    push(queue, "mail", "tries", "9", NULL);
    job = reserve(queue);
    strcpy(first, jobq_job_fingerprint(job));
    /* sha256 of "mail" 00 "1" 00 07 */
    assert_string_equal(first, "803a0422219d220a0badea933a954cd139fdbeaba4d21d7795e0c984f2054d23");
    jobq_job_free(job);
    job = reserve(queue);
    assert_string_not_equal(jobq_job_fingerprint(job), first);
    jobq_job_free(job);
    job = reserve(queue);
    assert_string_equal(jobq_job_fingerprint(job), first);
    jobq_job_free(job);
}

/* ---- waiting for a job (rule N7) ------------------------------------------------------------- */

static int wait_for(jobq_queue *queue, const char *id, int64_t ms, jobq_info **info)
{
    *info = NULL;
    return jobq_queue_wait(queue, id, strlen(id), ms, info);
}

static void waits_for_every_end(void **state)
{
    jobq_queue *queue = *state;
    jobq_info *info;
    jobq_job *job;
    char id[129], dead[129], gone[129];
    size_t n;

    assert_code(wait_for(queue, "nobody", 0, &info), JOBQ_ENOTFOUND);
    assert_code(wait_for(queue, "\x01", 0, &info), JOBQ_ENOTFOUND);
    assert_code(wait_for(queue, "a", -1, &info), JOBQ_EINVAL);
    track(queue, id);
    assert_code(wait_for(queue, id, 0, &info), JOBQ_EPENDING);
    assert_code(wait_for(queue, id, 30, &info), JOBQ_EPENDING);
    assert_said("had not ended after 0.03 s");
    assert_string_equal(jobq_error_subject(jobq_error_last()), id);
    job = reserve(queue);
    assert_code(wait_for(queue, id, 30, &info), JOBQ_EPENDING);
    assert_ok(jobq_job_set_result(job, JOBQ_FORMAT_JSON, "42", 2));
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_ok(wait_for(queue, id, 60000, &info));
    assert_non_null(jobq_info_result(info, &n, NULL, NULL));
    jobq_info_free(info);
    push(queue, "n", "track", "true", dead);
    job = reserve(queue);
    assert_ok(jobq_job_fail(job));
    jobq_job_free(job);
    assert_code(wait_for(queue, dead, 60000, &info), JOBQ_EDEAD);
    assert_said("is dead (failed_by_handler)");
    assert_string_equal(jobq_info_text(info, JOBQ_INFO_REASON, NULL), "failed_by_handler");
    jobq_info_free(info);
    push(queue, "n", NULL, NULL, gone);
    job = reserve(queue);
    assert_ok(jobq_job_done(job));
    jobq_job_free(job);
    assert_code(wait_for(queue, gone, 60000, &info), JOBQ_ENOTFOUND); /* it was not kept */
}

/* Another process ends it while we wait; ready jobs of the queue do not end the wait. */
static void hears_of_the_end(void **state)
{
    jobq_queue *queue = *state;
    int64_t started;
    jobq_info *info;
    pid_t child;
    char id[129], other[129];
    int status;

    track(queue, id);
    push(queue, "n", NULL, NULL, other);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        jobq_job *job = reserve(queue);

        usleep(300000);
        status = job && strcmp(jobq_job_id(job), id) == 0 && jobq_job_done(job) == 0 ? 0 : 1;
        jobq_job_free(job);
        jobq_queue_disconnect(queue); /* a checker of memory looks at what is left */
        _exit(status);
    }
    started = jobq__clock_mono_ms();
    assert_ok(wait_for(queue, id, 60000, &info));
    assert_true(jobq__clock_mono_ms() - started < 20000);
    assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DONE);
    jobq_info_free(info);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void heard(int number)
{
    (void)number;
}

static void hears_signals(void **state)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 100000}}, never = {0};
    struct sigaction action = {.sa_handler = heard}, before;
    jobq_info *info;
    char id[129];

    track(*state, id);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_code(wait_for(*state, id, 60000, &info), JOBQ_EINTR);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
}

#define on_sqlite(test)                             \
    {                                               \
#test, test, open_sqlite, close_store, NULL \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        on_both(shows_progress),
        on_both(keeps_a_result),
        on_both(says_why_there_is_none),
        on_both(keeps_nothing_of_others),
        on_both(tells_of_a_dropped_one),
        cmocka_unit_test(bounds_results),
        on_both(refuses_progress_of_the_lost),
        cmocka_unit_test(reads_any_bytes),
        on_sqlite(carries_out_effects),
        {"has_no_effect_in_memory", has_no_effect_in_memory, open_memory, close_store, NULL},
        on_sqlite(ends_in_the_callers_transaction),
        cmocka_unit_test(hashes_as_the_standard_says),
        on_both(tells_equal_work),
        on_both(waits_for_every_end),
        on_sqlite(hears_of_the_end),
        on_both(hears_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
