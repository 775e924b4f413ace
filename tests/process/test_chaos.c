/* SPDX-License-Identifier: MIT
 *
 * Many workers with different leases on one store, hit at random: SIGKILL of children, dispatchers
 * and masters, SIGSTOP for longer than the lease. Then a count by id from ledgers outside of the
 * store: every job came through, and nothing a worker began that was not hit was begun again.
 *
 * Beside plain jobs there are those with unique keys (kept, replaced, until the start), delays,
 * guards, results and effects, and a capacity that comes and goes. Of them nothing may be left: no
 * key, no follower, no place taken, and each result is that of its own job (rules B4, B6, B7, N7).
 *
 * JOBQUEUE_CHAOS_SECONDS (default 5) and JOBQUEUE_CHAOS_WORKERS (default 4) say how long and how
 * many, JOBQUEUE_TEST_SEED repeats the dice.
 */
#include "harness/stores.h"
#include "process/crowd.h"
#include "process/pool.h"

#include <sys/wait.h>
#include <time.h>

#include "util/clock.h"

enum { MOST_WORKERS = 20, MOST_JOBS = 100000, MOST_HIT = 20000, SETTLE_SECONDS = 60 };
enum { KEYS = 12, MOST_TRACKED = 4000, TRACKED_LOOKED_AT = 300 };

/* What may happen to a worker. The first one is left in peace: nothing it begins is excused. */
enum { CALM, LOSES_CHILDREN, LOSES_MASTERS, SLEEPS, FATES };

typedef struct {
    pool pool;
    int fate;
    double lease;
    pid_t asleep; /* stopped until wake_ms */
    int64_t wake_ms;
} crew;

typedef struct {
    server *server;
    crew crews[MOST_WORKERS];
    int count, pushed, hits[FATES];
    unsigned seed;
    pid_t hit[MOST_HIT]; /* children that were killed, or whose worker was */
    int hit_count;
    bool lua; /* what guards are written in */
    int rich, tracked, full, refused, held, replaced, followers;
} field;

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);

    return text && text[0] ? atoi(text) : otherwise;
}

static void start_crew(crew *c)
{
    char options[160];

    snprintf(options, sizeof(options), "processes=2 lease=%g max_crashes=0 max_reserve_failures=0",
             c->lease);
    pool_start(&c->pool, options);
}

/* Leases of 1, 2 and 3 s; the calm one's is long, so that a busy machine cannot make it lapse. */
static void open_field(field *f, const char *dsn)
{
    server *const kept = f->server;

    memset(f, 0, sizeof(*f));
    f->server = kept;
    f->lua = strncmp(dsn, "redis", 5) == 0;
    setenv("JOBQUEUE_TEST_SHORT_LEASE", "1", 1);
    f->seed = (unsigned)number_of("JOBQUEUE_TEST_SEED", (int)time(NULL));
    f->count = number_of("JOBQUEUE_CHAOS_WORKERS", 4);
    f->count = f->count > MOST_WORKERS ? MOST_WORKERS : f->count < 2 ? 2 : f->count;
    print_message("seed %u (JOBQUEUE_TEST_SEED), %d workers\n", f->seed, f->count);
    for (int i = 0; i < f->count; i++) {
        crew *c = &f->crews[i];

        pool_open_at(&c->pool, dsn, NULL);
        c->fate = i % FATES;
        c->lease = c->fate == CALM ? 20 : 1 + i % 3;
        start_crew(c);
    }
}

static void close_field(field *f)
{
    for (int i = 0; i < f->count; i++)
        pool_close(&f->crews[i].pool);
    if (f->server)
        server_remove(f->server);
}

static int dice(field *f, int n)
{
    return (int)((unsigned)rand_r(&f->seed) % (unsigned)n);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void book_hit(field *f, pid_t pid)
{
    if (f->hit_count < MOST_HIT)
        f->hit[f->hit_count++] = pid;
}

/* Everything that ever ran for this worker may be begun again. */
static void book_all(field *f, crew *c)
{
    pool_dispatcher(&c->pool); /* looks who is there */
    for (size_t i = 0; i < c->pool.known_count; i++)
        book_hit(f, c->pool.known[i]);
}

static void kill_child_or_dispatcher(field *f, crew *c)
{
    pid_t children[8];
    const size_t n = pool_children(&c->pool, children, 8);
    const pid_t dispatcher = pool_dispatcher(&c->pool);

    if (dice(f, 3) == 0 && dispatcher) { /* whose hand-outs are taken over: no excuse */
        kill(dispatcher, SIGKILL);
    } else if (n) {
        const pid_t child = children[dice(f, (int)n)];

        book_hit(f, child);
        kill(child, SIGKILL);
    }
}

static void kill_master(field *f, crew *c)
{
    book_all(f, c);
    pool_signal(&c->pool, SIGKILL);
    book_all(f, c);
    pool_wait(&c->pool, 20);
    start_crew(c);
}

static void put_to_sleep(field *f, crew *c)
{
    if (c->asleep)
        return;
    book_all(f, c);
    c->asleep = dice(f, 2) ? pool_dispatcher(&c->pool) : c->pool.pid;
    if (!c->asleep)
        return;
    kill(c->asleep, SIGSTOP);
    c->wake_ms = jobq__clock_mono_ms() + (int64_t)(c->lease * 1000) + dice(f, 1500);
}

static void wake_up(field *f, bool all)
{
    for (int i = 0; i < f->count; i++) {
        crew *c = &f->crews[i];

        if (!c->asleep || (!all && jobq__clock_mono_ms() < c->wake_ms))
            continue;
        book_all(f, c);
        kill(c->asleep, SIGCONT);
        c->asleep = 0;
    }
}

static void strike(field *f)
{
    static void (*const blows[FATES])(field *, crew *) = {NULL, kill_child_or_dispatcher,
                                                          kill_master, put_to_sleep};
    crew *c = &f->crews[dice(f, f->count)];

    if (!blows[c->fate])
        return;
    f->hits[c->fate]++;
    blows[c->fate](f, c);
}

static void push_some(field *f, int n)
{
    int rc;

    if (f->pushed + n > MOST_JOBS)
        return;
    /* A process that was put to sleep in the middle of a transaction holds SQLite's lock. */
    rc = pool_try_push_many(&f->crews[0].pool, "deaf", 15, "tries=0 backoff=0", n);
    wake_up(f, rc == JOBQ_EBUSY);
    if (rc != JOBQ_EBUSY)
        assert_in_range(rc, 0, n);
    f->full += rc >= 0 && rc < n; /* the capacity is small now and then */
    f->pushed += rc > 0 ? rc : 0;
}

/* ---- jobs with more to them ------------------------------------------------------------------ */

static void set_guard(field *f, jobq_message *m)
{
    const bool yes = dice(f, 2) != 0;
    const char *text = f->lua ? yes ? "return 1" : "return 0" : yes ? "SELECT 1" : "SELECT 0";
    const jobq_statement guard = {{text, strlen(text)}, NULL, 0};

    assert_ok(jobq_message_set_guard(m, &guard));
}

/* Of those with an id of ours one that replaces is told from one that is replaced. */
static jobq_message *make_rich(field *f, char id[40])
{
    static const char *const waits[] = {"", " delay=0.3", " delay=1.5 max_wait=1"};
    static const char *const keyed[] = {"keep", "keep unique_scope=until_started", "replace",
                                        "replace unique_scope=until_started"};
    char options[200];
    size_t n;

    if (dice(f, 4) == 0) {
        snprintf(id, 40, "track-%d", f->tracked);
        snprintf(options, sizeof(options), "tries=0 backoff=0 track=1 id=%s", id);
    } else {
        snprintf(id, 40, "rich-%d", f->rich++);
        n = (size_t)snprintf(options, sizeof(options), "tries=0 backoff=0 id=%s", id);
        n += (size_t)snprintf(options + n, sizeof(options) - n, " unique=k%d on_duplicate=%s",
                              dice(f, KEYS), keyed[dice(f, 4)]);
        snprintf(options + n, sizeof(options) - n, "%s", waits[dice(f, 3)]);
        if (!strstr(options, "replace") && strstr(options, " max_wait"))
            *strstr(options, " max_wait") = '\0';
    }
    return pool_message("shows", dice(f, 20), options);
}

static void book_rich(field *f, int rc, const jobq_message *m, const char *id)
{
    const bool own = strcmp(jobq_message_id(m), id) == 0;

    f->full += rc == JOBQ_EFULL;
    f->refused += rc == JOBQ_EGUARD;
    f->held += rc == 1;
    f->replaced += rc == 2 && !own;
    f->followers += rc == 2 && own;
    f->pushed += rc == 0 || (rc == 2 && own);
    f->tracked += rc == 0 && strncmp(id, "track", 5) == 0;
}

static void push_rich(field *f)
{
    char id[40];
    jobq_message *m;
    int rc;

    if (f->pushed >= MOST_JOBS || f->tracked >= MOST_TRACKED)
        return;
    m = make_rich(f, id);
    if (dice(f, 3) == 0)
        set_guard(f, m);
    rc = jobq_queue_push(f->crews[0].pool.queue, m);
    wake_up(f, rc == JOBQ_EBUSY);
    if (rc < 0 && rc != JOBQ_EBUSY && rc != JOBQ_EFULL && rc != JOBQ_EGUARD)
        fail_msg("%s: %s", jobq_error_word(rc), jobq_error_message(jobq_error_last()));
    book_rich(f, rc, m, id);
    jobq_message_free(m);
}

/* Plain jobs find room most of the time, too. */
static void change_capacity(field *f)
{
    static const int64_t values[] = {0, 0, 100000, 5};
    int rc;

    if (dice(f, 10))
        return;
    rc = jobq_queue_set_capacity(f->crews[0].pool.queue, "default", 7, values[dice(f, 4)]);
    wake_up(f, rc == JOBQ_EBUSY);
    assert_true(rc == 0 || rc == JOBQ_EBUSY);
}

static void rage(field *f, int seconds)
{
    const int64_t end_ms = jobq__clock_mono_ms() + seconds * 1000;

    while (jobq__clock_mono_ms() < end_ms) {
        push_some(f, 5 + dice(f, 5 * f->count));
        for (int i = 0; i < 3 + f->count; i++)
            push_rich(f);
        change_capacity(f);
        strike(f);
        wake_up(f, false);
        usleep((useconds_t)(50000 + dice(f, 150000)));
    }
    wake_up(f, true);
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* Every key can be had, and every place. */
static void check_free(field *f)
{
    pool *p = &f->crews[0].pool;

    assert_ok(jobq_queue_set_capacity(p->queue, "default", 7, KEYS));
    for (int i = 0; i < KEYS; i++) {
        char options[80];
        jobq_message *m;
        int rc;

        snprintf(options, sizeof(options), "unique=k%d", i);
        m = pool_message("note", 0, options);
        rc = jobq_queue_push(p->queue, m);
        if (rc != 0)
            fail_msg("k%d: %d, %s has it", i, rc, jobq_message_id(m));
        f->pushed++;
        jobq_message_free(m);
    }
    assert_ok(jobq_queue_set_capacity(p->queue, "default", 7, 0));
}

/* Its own id, whoever ran it how often. */
static void check_results(field *f)
{
    const int step = f->tracked / TRACKED_LOOKED_AT + 1;

    for (int i = 0; i < f->tracked; i += step) {
        char id[40], expected[48];
        jobq_info *info;
        const char *result;
        size_t n = 0;
        int format;

        snprintf(id, sizeof(id), "track-%d", i);
        snprintf(expected, sizeof(expected), "\"%s\"", id);
        assert_ok(jobq_queue_find(f->crews[0].pool.queue, id, strlen(id), &info));
        assert_int_equal(jobq_info_number(info, JOBQ_INFO_STATE), JOBQ_DONE);
        result = jobq_info_result(info, &n, &format, NULL);
        if (!result || n != strlen(expected) || memcmp(result, expected, n) != 0)
            fail_msg("%s has the result %.*s", id, (int)n, result ? result : "");
        jobq_info_free(info);
    }
}

/* Redis has no rows that go as a whole: what belongs to a job lies in several places. */
static void check_keys(field *f)
{
    static const char script[] =
        "eval \"local q = '{jobqueue:default}:' "
        "local n = redis.call('EXISTS', '{jobqueue:default}:taken', "
        "'{jobqueue:default}:cancel', '{jobqueue:default}:unique', '{jobqueue:default}:next') "
        "for _, name in ipairs({'trace', 'ids'}) do "
        "for _, field in ipairs(redis.call('HKEYS', q .. name)) do "
        "local id = name == 'ids' and field or field:sub(2) "
        "n = n + 1 - redis.call('HEXISTS', q .. 'rest', id) end end return n\" 0";

    if (f->lua)
        assert_string_equal(store_admin(f->server, STORE_REDIS, script), "0\n");
}

static void settle(field *f)
{
    pool *p = &f->crews[0].pool;

    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, SETTLE_SECONDS);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
    check_free(f);
    wait_until(pool_stat(p, JOBQ_STAT_BACKLOG) == 0, SETTLE_SECONDS);
    check_results(f);
    assert_int_equal(crowd_audit(p), 0);
    check_keys(f);
    for (int i = 0; i < f->count; i++)
        pool_signal(&f->crews[i].pool, SIGTERM);
    for (int i = 0; i < f->count; i++)
        assert_int_equal(pool_wait(&f->crews[i].pool, 30), 0);
}

/* ---- the count ------------------------------------------------------------------------------- */

typedef struct {
    char id[41];
    bool begun, hit;
    int crew, pid;
} event;

static int by_id(const void *a, const void *b)
{
    return strcmp(((const event *)a)->id, ((const event *)b)->id);
}

static bool was_hit(const field *f, int pid)
{
    for (int i = 0; i < f->hit_count; i++)
        if (f->hit[i] == pid)
            return true;
    return false;
}

/* All lines of all ledgers, sorted by job. */
static event *read_ledgers(const field *f, int *n_out)
{
    event *all = calloc(MOST_JOBS * 4, sizeof(*all));
    int n = 0;

    assert_non_null(all);
    for (int i = 0; i < f->count; i++) {
        FILE *in = fopen(f->crews[i].pool.ledger, "r");
        char what[16], name[16];
        int pid;

        while (in && n < MOST_JOBS * 4 &&
               fscanf(in, "%15s %15s %40s %d", what, name, all[n].id, &pid) == 4) {
            all[n].begun = strcmp(what, "begin") == 0;
            all[n].crew = i;
            all[n].pid = pid;
            all[n++].hit = was_hit(f, pid);
        }
        if (in)
            fclose(in);
    }
    qsort(all, (size_t)n, sizeof(*all), by_id);
    *n_out = n;
    return all;
}

/* Who began a job that two in peace began, and what those workers had to say about their leases. */
static void show_doubled(field *f, const event *first, int n)
{
    for (int i = 0; i < n; i++) {
        const crew *c = &f->crews[first[i].crew];
        char line[400];

        print_message("%s %s %d (lease %g s, fate %d)%s\n", first[i].begun ? "begin" : "end",
                      first[i].id, first[i].pid, c->lease, c->fate, first[i].hit ? ", hit" : "");
        snprintf(line, sizeof(line), "grep -a -e error: -e '%s' '%s' | tail -20 >&2", first[i].id,
                 c->pool.output);
        if (system(line) != 0)
            print_message("  it said nothing of that\n");
    }
}

static void count_by_id(field *f)
{
    int n, jobs = 0, again = 0, lost = 0, doubled = 0;
    event *all = read_ledgers(f, &n);

    for (int i = 0, next; i < n; i = next) {
        int begun = 0, ended = 0, in_peace = 0;

        for (next = i; next < n && strcmp(all[next].id, all[i].id) == 0; next++) {
            begun += all[next].begun;
            ended += !all[next].begun;
            in_peace += all[next].begun && !all[next].hit;
        }
        jobs++;
        again += begun > 1;
        lost += ended == 0;
        if (in_peace > 1 && ++doubled < 5) {
            print_message("%s was begun %d times, %d of them by workers in peace\n", all[i].id,
                          begun, in_peace);
            show_doubled(f, &all[i], next - i);
        }
    }
    free(all);
    print_message("%d jobs, %d begun again; hit: %d children or dispatchers, %d masters, %d "
                  "sleepers\n",
                  f->pushed, again, f->hits[LOSES_CHILDREN], f->hits[LOSES_MASTERS],
                  f->hits[SLEEPS]);
    print_message("%d tracked, %d replaced, %d followers, %d held, %d full, %d refused\n",
                  f->tracked, f->replaced, f->followers, f->held, f->full, f->refused);
    assert_int_equal(jobs, f->pushed);
    assert_int_equal(lost, 0);
    assert_int_equal(doubled, 0);
}

static void run_chaos(field *f, const char *dsn)
{
    open_field(f, dsn);
    rage(f, number_of("JOBQUEUE_CHAOS_SECONDS", 5));
    settle(f);
    count_by_id(f);
}

/* ---- on each store --------------------------------------------------------------------------- */

static field here;

static int set_up(void **state)
{
    here.server = server_start(store_word(*(store_kind *)*state), false);
    *state = &here;
    return 0;
}

static int tear_down(void **state)
{
    close_field(*state);
    return 0;
}

static void test_mixed(void **state)
{
    field *f = *state;

    run_chaos(f, server_dsn(f->server));
}

static void test_mixed_sqlite(void **state)
{
    static char dsn[200];

    (void)state;
    snprintf(dsn, sizeof(dsn), "sqlite:%s/chaos.db?synchronous=normal", jobq_test_folder());
    run_chaos(&here, dsn);
}

static int tear_down_file(void **state)
{
    (void)state;
    close_field(&here);
    return 0;
}

int main(void)
{
    static const store_test tests[] = {STORE_TEST(test_mixed)};
    const struct CMUnitTest on_file[] = {
        cmocka_unit_test_teardown(test_mixed_sqlite, tear_down_file)};
    const int failed = stores_run("process/chaos", tests, 1, set_up, tear_down);

    return failed + cmocka_run_group_tests_name("process/chaos", on_file, NULL, NULL);
}
