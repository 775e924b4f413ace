/* SPDX-License-Identifier: MIT
 *
 * See crowd.h.
 */
#include "process/crowd.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include "util/clock.h"

/* ---- processes ------------------------------------------------------------------------------- */

/* cmocka's failure would go on with the next test; this way it is an abort. */
static void leave_cmocka(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], SIG_DFL);
    setenv("CMOCKA_TEST_ABORT", "1", 1);
}

void crowd_start(crowd *c, pool *p, int n, void (*run)(pool *p, int number))
{
    *c = (crowd){.pool = p};
    jobq_queue_disconnect(p->queue);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        c->pids[c->count] = fork();
        assert_true(c->pids[c->count] >= 0);
        if (c->pids[c->count++] > 0)
            continue;
        leave_cmocka();
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test stops nobody */
        run(p, i);
        fflush(NULL);
        _exit(0);
    }
}

static bool has_ended(pid_t pid, int *status)
{
    return waitpid(pid, status, WNOHANG) == pid;
}

void crowd_wait(crowd *c, int seconds)
{
    for (int i = 0; i < c->count; i++) {
        int status = -1;

        wait_until(has_ended(c->pids[i], &status), seconds);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            pool_show(c->pool);
            fail_msg("process %d of the crowd ended with status %x", i, status);
        }
    }
}

void crowd_stop(pool *p)
{
    pool_write(p, "said stop");
}

bool crowd_is_stopped(const pool *p)
{
    return pool_ledger(p, "said stop") > 0;
}

int crowd_kill_children(pool *p, unsigned seed, int64_t for_ms, int ms, bool dispatcher)
{
    const int64_t end_ms = jobq__clock_mono_ms() + for_ms;
    int kills = 0;

    for (int i = 1; jobq__clock_mono_ms() < end_ms; i++) {
        pid_t children[16];
        const size_t n = pool_children(p, children, 16);
        const pid_t pid = dispatcher && i % 5 == 0 ? pool_dispatcher(p)
                          : n                      ? children[(size_t)rand_r(&seed) % n]
                                                   : 0;

        if (pid > 0 && kill(pid, SIGKILL) == 0)
            kills += !dispatcher || i % 5 != 0;
        usleep((useconds_t)ms * 1000);
    }
    return kills;
}

int64_t crowd_must(int64_t rc)
{
    if (rc >= 0)
        return rc;
    fprintf(stderr, "a process of the crowd: %s: %s\n", jobq_error_word((int)rc),
            jobq_error_message(jobq_error_last()));
    abort();
}

/* ---- what they do ---------------------------------------------------------------------------- */

int crowd_push(pool *p, const char *name, int arg, const char *options, char *id_out)
{
    jobq_message *m = pool_message(name, arg, options);
    const int rc = jobq_queue_push(p->queue, m);

    if (id_out)
        snprintf(id_out, 129, "%s", jobq_message_id(m) ? jobq_message_id(m) : "");
    jobq_message_free(m);
    return rc;
}

static bool is_alive(pool *p, const char *id, bool fresh_only)
{
    jobq_state state = JOBQ_STATES;
    bool fresh = false;
    jobq_info *info;

    if (jobq_queue_find(p->queue, id, strlen(id), &info) == 0) {
        state = (jobq_state)jobq_info_number(info, JOBQ_INFO_STATE);
        fresh = jobq_info_number(info, JOBQ_INFO_DELIVERIES) == 0;
        jobq_info_free(info);
    }
    return (state == JOBQ_READY || state == JOBQ_DELAYED || state == JOBQ_RESERVED) &&
           (fresh || !fresh_only);
}

/* Pages of three states; what stands in two of them has moved meanwhile. */
typedef struct {
    struct {
        char id[129], key[64];
    } jobs[600];
    int count;
} living;

static void look_at_state(pool *p, jobq_state state, living *l)
{
    jobq_list *list;

    assert_ok(jobq_queue_jobs(p->queue, "default", 7, state, 200, NULL, &list));
    for (size_t i = 0; i < jobq_list_count(list) && l->count < 600; i++) {
        const jobq_info *info = jobq_list_get(list, i);
        const char *key = jobq_info_text(info, JOBQ_INFO_UNIQUE, NULL);

        if (!key)
            continue;
        snprintf(l->jobs[l->count].id, 129, "%s", jobq_info_text(info, JOBQ_INFO_ID, NULL));
        snprintf(l->jobs[l->count++].key, 64, "%s", key);
    }
    jobq_list_free(list);
}

/* The first before and after the second: both lived at once, unless a replay deceives us, which it
 * does not twice. */
static bool live_at_once(pool *p, const char *a, const char *b, bool fresh_only)
{
    for (int i = 0; i < 3; i++)
        if (!is_alive(p, a, fresh_only) || !is_alive(p, b, fresh_only) ||
            !is_alive(p, a, fresh_only))
            return false;
    return true;
}

int crowd_count_pairs(pool *p, bool fresh_only)
{
    static living l;
    int pairs = 0;

    l.count = 0;
    look_at_state(p, JOBQ_READY, &l);
    look_at_state(p, JOBQ_DELAYED, &l);
    look_at_state(p, JOBQ_RESERVED, &l);
    for (int i = 0; i < l.count; i++)
        for (int k = i + 1; k < l.count; k++)
            if (strcmp(l.jobs[i].key, l.jobs[k].key) == 0 &&
                strcmp(l.jobs[i].id, l.jobs[k].id) != 0 &&
                live_at_once(p, l.jobs[i].id, l.jobs[k].id, fresh_only)) {
                print_message("%s and %s both have %s\n", l.jobs[i].id, l.jobs[k].id,
                              l.jobs[i].key);
                pairs++;
            }
    return pairs;
}

static void say_finding(void *payload, const jobq_finding *finding)
{
    (void)payload;
    if (finding->grade == JOBQ_FINDING_PROBLEM)
        print_message("audit: %s\n", finding->text);
}

int64_t crowd_audit(pool *p)
{
    return assert_ok(jobq_queue_audit(p->queue, say_finding, NULL, NULL));
}

int crowd_count_ids(const pool *p, const char *prefix)
{
    FILE *f = fopen(p->ledger, "r");
    char line[600], (*seen)[129] = calloc(20000, sizeof(*seen));
    int n = 0;

    while (f && n < 20000 && fgets(line, sizeof(line), f)) {
        int i = 0;

        if (strncmp(line, prefix, strlen(prefix)) != 0 ||
            sscanf(line, "%*s %*s %128s", seen[n]) != 1)
            continue;
        while (strcmp(seen[i], seen[n]) != 0)
            i++;
        n += i == n;
    }
    if (f)
        fclose(f);
    free(seen);
    return n;
}
