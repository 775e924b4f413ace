/* SPDX-License-Identifier: MIT
 *
 * See pool.h. The handlers at the top run in children of the worker, the rest in the test.
 */
#include "process/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "harness/stores.h"
#include "util/clock.h"

/* ---- handlers -------------------------------------------------------------------------------- */

static const char *ledger_path, *pool_dsn = "";
static jobq_worker *running_worker;

/* One write per line, on a descriptor of its own: nothing a handler does to descriptors loses
 * it. */
static void note(const char *what, const char *name, const char *id)
{
    char line[512];
    int n = snprintf(line, sizeof(line), "%s %s %s %d\n", what, name, id, (int)getpid());
    int fd = open(ledger_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static int argument(const jobq_job *job)
{
    const char *key, *value;
    size_t key_n, value_n;
    char text[16] = "";

    if (jobq_job_context(job, 0, &key, &key_n, &value, &value_n) && value_n < sizeof(text))
        memcpy(text, value, value_n);
    return atoi(text);
}

void pool_write(const pool *p, const char *line)
{
    FILE *f = fopen(p->ledger, "a");

    if (!f || fprintf(f, "%s\n", line) < 0 || fclose(f) != 0)
        abort();
}

void pool_note(const char *what, const char *name, const char *id)
{
    note(what, name, id);
}

int pool_argument(const jobq_job *job)
{
    return argument(job);
}

static void pause_ms(int64_t ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

static int interrupted(jobq_job *job)
{
    switch (jobq_job_interrupted(job)) {
    case JOBQ_INTERRUPT_TIMEOUT:
        return JOBQ_ENDED_TIMED_OUT;
    case JOBQ_INTERRUPT_STOP:
        return JOBQ_ENDED_STOPPED;
    default:
        return JOBQ_ENDED_DONE;
    }
}

static int do_note(jobq_job *job, int arg)
{
    (void)job;
    (void)arg;
    return JOBQ_ENDED_DONE;
}

static int do_nap(jobq_job *job, int arg)
{
    const int64_t end_ms = jobq__clock_mono_ms() + arg;
    int ending = JOBQ_ENDED_DONE;

    while (ending == JOBQ_ENDED_DONE && jobq__clock_mono_ms() < end_ms) {
        pause_ms(5);
        ending = interrupted(job);
    }
    return ending;
}

static int do_sleepy(jobq_job *job, int arg)
{
    sleep((unsigned)arg);
    return interrupted(job);
}

static int do_deaf(jobq_job *job, int arg)
{
    const int64_t end_ms = jobq__clock_mono_ms() + arg;

    (void)job;
    while (jobq__clock_mono_ms() < end_ms)
        pause_ms(2);
    return JOBQ_ENDED_DONE;
}

static int do_stubborn(jobq_job *job, int arg)
{
    const int64_t end_ms = jobq__clock_mono_ms() + arg;

    while (jobq__clock_mono_ms() < end_ms) {
        pause_ms(2);
        if (interrupted(job) != JOBQ_ENDED_DONE)
            note("swallowed", jobq_job_name(job, NULL), jobq_job_id(job));
    }
    return JOBQ_ENDED_DONE;
}

static int do_exit(jobq_job *job, int arg)
{
    (void)job;
    exit(arg);
}

static int do_crash(jobq_job *job, int arg)
{
    const struct rlimit no_core = {0, 0};

    (void)job;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(arg, SIG_DFL);
    raise(arg);
    return JOBQ_ENDED_DONE;
}

static int do_fail(jobq_job *job, int arg)
{
    (void)arg;
    jobq_job_set_error(job, "Trouble", 7, "it went wrong", 13, NULL, 0, NULL, 0);
    return JOBQ_ENDED_FAILED;
}

/* Releases itself so often, then it is done. */
static int do_lets_go(jobq_job *job, int arg)
{
    if (jobq_job_get(job, JOBQ_JOB_RELEASES) >= arg)
        return JOBQ_ENDED_DONE;
    jobq_job_release(job, 0);
    return JOBQ_ENDED_RELEASED;
}

/* A failure that brings its own delay. */
static int do_later(jobq_job *job, int arg)
{
    jobq_job_set_error(job, "Later", 5, "busy", 4, NULL, 0, NULL, 0);
    jobq_job_settle(job, JOBQ_ENDED_FAILED, arg);
    return JOBQ_ENDED_FAILED;
}

static int do_hopeless(jobq_job *job, int arg)
{
    (void)arg;
    jobq_job_set_error(job, "Hopeless", 8, "never", 5, NULL, 0, NULL, 0);
    return JOBQ_ENDED_NOT_RETRYABLE;
}

static int do_gives_up(jobq_job *job, int arg)
{
    (void)arg;
    jobq_job_set_error(job, NULL, 0, "by hand", 7, NULL, 0, NULL, 0);
    jobq_job_fail(job);
    return JOBQ_ENDED_FAILED_BY_HANDLER;
}

static int do_soils(jobq_job *job, int arg)
{
    (void)arg;
    jobq_job_set_error(job, NULL, 0, "dirty", 5, NULL, 0, NULL, 0);
    return JOBQ_ENDED_CLEANUP_FAILED;
}

/* Each hand-out ends in another way; the ledger gets "attempt K ID PID". */
static int do_varies(jobq_job *job, int arg)
{
    char attempt[24];

    snprintf(attempt, sizeof(attempt), "%lld", (long long)jobq_job_get(job, JOBQ_JOB_ATTEMPT));
    note("attempt", attempt, jobq_job_id(job));
    switch (jobq_job_get(job, JOBQ_JOB_DELIVERIES)) {
    case 1:
        return do_fail(job, arg);
    case 2:
        return do_crash(job, SIGKILL);
    case 3:
        return do_lets_go(job, 1);
    default:
        return JOBQ_ENDED_DONE;
    }
}

/* Works for so long, then fails. */
static int do_spoil(jobq_job *job, int arg)
{
    const int ending = do_nap(job, arg);

    return ending == JOBQ_ENDED_DONE ? do_fail(job, arg) : ending;
}

/* Case B052: the three forked ones come back from the handler, too. */
static int do_forks(jobq_job *job, int arg)
{
    pid_t made[3];

    for (int i = 0; i < 3; i++) {
        made[i] = fork();
        if (made[i] == 0) {
            pause_ms(20 * i);
            return JOBQ_ENDED_DONE;
        }
    }
    for (int i = 0; i < 3; i++)
        waitpid(made[i], NULL, 0);
    note("waited", jobq_job_name(job, NULL), jobq_job_id(job));
    pause_ms(arg);
    return JOBQ_ENDED_DONE;
}

/* Rule D7: whatever number the library's pipes had is now this file. */
static int do_closes(jobq_job *job, int arg)
{
    char path[300];

    (void)job;
    (void)arg;
    snprintf(path, sizeof(path), "%s.reused", ledger_path);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (int i = 0; i < 64; i++)
        if (open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) < 0)
            abort();
    return JOBQ_ENDED_DONE;
}

static int do_program(jobq_job *job, int arg)
{
    char seconds[16];
    pid_t pid = fork();

    if (pid == 0) {
        snprintf(seconds, sizeof(seconds), "%d", 1 + arg / 1000);
        execl("/bin/sleep", "sleep", seconds, (char *)NULL);
        _exit(127);
    }
    note("program", jobq_job_name(job, NULL), jobq_job_id(job));
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        note("broken", jobq_job_name(job, NULL), jobq_job_id(job));
    return JOBQ_ENDED_DONE;
}

/* Touches so many MB, which stay. */
static int do_grow(jobq_job *job, int arg)
{
    const size_t n = (size_t)arg << 20;
    char *p = malloc(n);

    (void)job;
    for (size_t i = 0; p && i < n; i += 4096)
        ((volatile char *)p)[i] = 1;
    return JOBQ_ENDED_DONE;
}

/* Rule A5: the body is what was pushed, byte i = i * 7 of as many as the argument says. */
static int do_body(jobq_job *job, int arg)
{
    int format;
    size_t n;
    const unsigned char *p = jobq_job_body(job, &n, &format);

    if (format != JOBQ_FORMAT_JSON || n != (size_t)arg || p[0] != '"' || p[n - 1] != '"')
        return JOBQ_ENDED_FAILED_BY_HANDLER;
    for (size_t i = 1; i + 1 < n; i++)
        if (p[i] != 'a' + i * 7 % 26)
            return JOBQ_ENDED_FAILED_BY_HANDLER;
    return JOBQ_ENDED_DONE;
}

static int do_stops(jobq_job *job, int arg)
{
    (void)job;
    jobq_worker_stop(running_worker);
    pause_ms(arg);
    return JOBQ_ENDED_DONE;
}

/* Leaves SIGURG ignored and blocked behind. */
static int do_mutes(jobq_job *job, int arg)
{
    sigset_t urgent;

    (void)job;
    signal(SIGURG, SIG_IGN);
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    sigprocmask(SIG_BLOCK, &urgent, NULL);
    pause_ms(arg);
    return JOBQ_ENDED_DONE;
}

/* ---- handlers that print --------------------------------------------------------------------- */

static void put(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);

        if (done <= 0)
            return;
        p += done;
        n -= (size_t)done;
    }
}

static void put_text(int fd, const char *text)
{
    put(fd, text, strlen(text));
}

/* So many lines "<ID 7 ID>", each in five pieces; every third one goes to stderr, too. */
static int do_prints(jobq_job *job, int arg)
{
    char number[32];

    for (int i = 0; i < arg; i++) {
        snprintf(number, sizeof(number), " %d ", i);
        for (int fd = 1; fd <= (i % 3 ? 1 : 2); fd++) {
            put_text(fd, "<");
            put_text(fd, jobq_job_id(job));
            put_text(fd, number);
            put_text(fd, jobq_job_id(job));
            put_text(fd, fd == 1 ? ">\n" : ">!\n");
        }
        if (i % 10 == 0)
            pause_ms(1);
    }
    return JOBQ_ENDED_DONE;
}

/* Through stdio, and the last line has no end. */
static int do_says(jobq_job *job, int arg)
{
    (void)arg;
    printf("said %s\ntail %s", jobq_job_id(job), jobq_job_id(job));
    return JOBQ_ENDED_DONE;
}

/* A line without an end, then nothing for so long. */
static int do_halts(jobq_job *job, int arg)
{
    printf("before %s", jobq_job_id(job));
    putchar('\n');
    put_text(1, "half a line of ");
    put_text(1, jobq_job_id(job));
    note("halted", jobq_job_name(job, NULL), jobq_job_id(job));
    return do_deaf(job, arg);
}

/* So many KB in lines of 1000 bytes. */
static int do_floods(jobq_job *job, int arg)
{
    char lines[16000];

    (void)job;
    memset(lines, 'f', sizeof(lines));
    for (size_t i = 999; i < sizeof(lines); i += 1000)
        lines[i] = '\n';
    for (int done = 0; done < arg; done += 16)
        put(1, lines, arg - done < 16 ? (size_t)(arg - done) * 1000 : sizeof(lines));
    return JOBQ_ENDED_DONE;
}

/* One line of so many bytes, no UTF-8 in it. */
static int do_long(jobq_job *job, int arg)
{
    char *p = malloc((size_t)arg);

    (void)job;
    for (int i = 0; i < arg; i++)
        p[i] = (char)(i % 255 == '\n' ? 255 : i % 255);
    put(1, p, (size_t)arg);
    put_text(1, "\n");
    free(p);
    return JOBQ_ENDED_DONE;
}

/* Leaves a process behind that holds its output open. */
static int do_leaves(jobq_job *job, int arg)
{
    pid_t pid;

    put_text(1, "begun by the child, ");
    pid = fork();
    if (pid == 0) {
        setsid();
        note("left", jobq_job_name(job, NULL), jobq_job_id(job));
        pause_ms(arg);
        put_text(1, "ended by what it left\n");
        pause_ms(60000);
        _exit(0);
    }
    return JOBQ_ENDED_DONE;
}

/* Rule D7: does as it likes with descriptors 1 and 2. */
static int do_replaces(jobq_job *job, int arg)
{
    char path[300];
    int fd;

    (void)arg;
    put_text(1, "still ours\n");
    snprintf(path, sizeof(path), "%s.reused", ledger_path);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    close(fd);
    close(2);
    printf("not ours %s\n", jobq_job_id(job));
    return JOBQ_ENDED_DONE;
}

/* Takes so long; how it ends when it hears that it is cancelled, DONE: it goes on. */
static int listen_for(jobq_job *job, int arg, int ending)
{
    const int64_t end_ms = jobq__clock_mono_ms() + arg;
    bool told = false;

    while (jobq__clock_mono_ms() < end_ms && !(told && ending != JOBQ_ENDED_DONE)) {
        pause_ms(5);
        if (!told && jobq_job_is_cancelled(job)) {
            note("told", jobq_job_name(job, NULL), jobq_job_id(job));
            told = true;
            pause_ms(ending == JOBQ_ENDED_DONE ? 0 : 1000);
        }
    }
    return told ? ending : JOBQ_ENDED_DONE;
}

static int do_told(jobq_job *job, int arg)
{
    return listen_for(job, arg, JOBQ_ENDED_DONE);
}

static int do_heeds(jobq_job *job, int arg)
{
    jobq_job_set_error(job, "Trouble", 7, "nobody wants it", 15, NULL, 0, NULL, 0);
    return listen_for(job, arg, JOBQ_ENDED_FAILED);
}

static int do_frees(jobq_job *job, int arg)
{
    return listen_for(job, arg, JOBQ_ENDED_RELEASED);
}

/* Progress, an effect, a result. A store that cannot be reached now changes nothing. */
static int do_shows(jobq_job *job, int arg)
{
    static const char sql[] = "SELECT 1", lua[] = "return 1";
    const char *text = strncmp(pool_dsn, "redis", 5) == 0 ? lua : sql;
    const jobq_statement statement = {{text, strlen(text)}, NULL, 0};
    char result[160];
    const int n = snprintf(result, sizeof(result), "\"%s\"", jobq_job_id(job));

    jobq_job_progress(job, 50, "half", 4);
    if (arg % 4 == 0)
        jobq_job_effect(job, &statement, NULL);
    if (jobq_job_is_kept(job) && jobq_job_set_result(job, JOBQ_FORMAT_JSON, result, (size_t)n) < 0)
        return JOBQ_ENDED_FAILED_BY_HANDLER;
    return do_deaf(job, arg);
}

/* So many processes that outlive their parent: whoever is process 1 gets them. */
static int do_orphans(jobq_job *job, int arg)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (int i = 0; i < arg; i++)
            if (fork() == 0) {
                pause_ms(20 * i);
                note("orphan", jobq_job_name(job, NULL), jobq_job_id(job));
                _exit(i);
            }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return JOBQ_ENDED_DONE;
}

static const struct {
    const char *name;
    int (*run)(jobq_job *job, int arg);
} handlers[] = {
    {"note", do_note},         {"nap", do_nap},           {"sleepy", do_sleepy},
    {"deaf", do_deaf},         {"stubborn", do_stubborn}, {"exit", do_exit},
    {"crash", do_crash},       {"fail", do_fail},         {"forks", do_forks},
    {"closes", do_closes},     {"program", do_program},   {"stops", do_stops},
    {"spoil", do_spoil},       {"grow", do_grow},         {"body", do_body},
    {"mutes", do_mutes},       {"prints", do_prints},     {"says", do_says},
    {"halts", do_halts},       {"floods", do_floods},     {"long", do_long},
    {"leaves", do_leaves},     {"replaces", do_replaces}, {"orphans", do_orphans},
    {"lets_go", do_lets_go},   {"later", do_later},       {"hopeless", do_hopeless},
    {"gives_up", do_gives_up}, {"soils", do_soils},       {"varies", do_varies},
    {"told", do_told},         {"heeds", do_heeds},       {"frees", do_frees},
    {"shows", do_shows},
};
enum { HANDLERS = sizeof(handlers) / sizeof(handlers[0]) };

static int handle(jobq_job *job, void *payload)
{
    const char *name = jobq_job_name(job, NULL);
    int ending = JOBQ_ENDED_UNKNOWN_NAME;

    (void)payload;
    note("begin", name, jobq_job_id(job));
    for (size_t i = 0; i < HANDLERS; i++)
        if (strcmp(handlers[i].name, name) == 0)
            ending = handlers[i].run(job, argument(job));
    if (ending == JOBQ_ENDED_DONE)
        note("end", name, jobq_job_id(job));
    return ending;
}

/* What a failed hook does besides standing in the ledger: by the dead job's argument. */
static int run_hook(jobq_job *job, const jobq_info *dead)
{
    const char *key = "", *value = "", *id = jobq_info_text(dead, JOBQ_INFO_ID, NULL);
    size_t key_n, value_n;
    int arg = 0;

    if (jobq_info_context(dead, 0, &key, &key_n, &value, &value_n))
        arg = atoi(value);
    note("hook", jobq_info_text(dead, JOBQ_INFO_REASON, NULL), id);
    switch (arg) {
    case POOL_HOOK_FAILS:
        return do_fail(job, 0);
    case POOL_HOOK_CRASHES:
        return do_crash(job, SIGSEGV);
    case POOL_HOOK_HANGS:
        return do_nap(job, 60000);
    case POOL_HOOK_IS_DEAF:
        return do_deaf(job, 60000);
    case POOL_HOOK_CLOSES: /* all descriptors */
        do_closes(job, 0);
        break;
    case POOL_HOOK_NAPS:
        return do_nap(job, 400);
    case POOL_HOOK_RECOVERS:
        if (jobq_job_get(job, JOBQ_JOB_FAILURES) > 0)
            break;
        pause_ms(300);
        return do_fail(job, 0);
    default:
        break;
    }
    note("hooked", jobq_job_queue(job, NULL), id);
    return JOBQ_ENDED_DONE;
}

/* Of a job named "exit" it takes the listener long. */
static void hear(const char *name, const jobq_job *job)
{
    note("event", name, jobq_job_id(job));
    if (strcmp(jobq_job_name(job, NULL), "exit") == 0)
        pause_ms(60000);
}

/* The loop over the step API, for the events that jobq_worker_run does not pass on. */
static int run_with_events(jobq_worker *worker)
{
    int code = 0, rc = jobq_worker_start(worker, NULL, 0, NULL, &code);
    jobq_event *event;
    jobq_job *job;

    if (rc < 0 || rc == JOBQ_ROLE_MASTER)
        return rc < 0 ? rc : code;
    while ((rc = jobq_worker_next(worker, &job, &event)) > 0) {
        if (rc == JOBQ_STEP_JOB)
            jobq_job_settle(job, (jobq_ending)handle(job, NULL), -1);
        else if (rc == JOBQ_STEP_HOOK)
            jobq_job_settle(job, (jobq_ending)run_hook(job, jobq_worker_dead(worker)), -1);
        else if ((job = jobq_event_job(event)))
            hear(jobq_event_name(event), job);
    }
    return jobq_worker_finish(worker);
}

/* ---- the worker's process -------------------------------------------------------------------- */

static void set_options(jobq_conf *conf, const char *options)
{
    char copy[512], *rest = copy, *word, *value;

    snprintf(copy, sizeof(copy), "%s", options ? options : "");
    while ((word = strtok_r(rest, " ", &rest))) {
        value = strchr(word, '=');
        assert_non_null(value);
        *value++ = '\0';
        assert_ok(jobq_conf_set(conf, word, value, strlen(value)));
    }
}

static void exit_at_start(void *payload)
{
    (void)payload;
    _exit(7);
}

/* 40 MB of its own. */
static void grow_at_start(void *payload)
{
    const size_t n = (size_t)40 << 20;
    char *p = malloc(n);

    (void)payload;
    for (size_t i = 0; p && i < n; i += 4096)
        ((volatile char *)p)[i] = 1;
}

static void retire_at_start(void *payload)
{
    static const char text[] = "a listener gave up";

    (void)payload;
    jobq_worker_retire(running_worker, text, sizeof(text) - 1);
}

/* Comes through its start and dies as soon as it has nothing to do, while the file is there. */
static void die_idle(void *payload)
{
    char path[300];

    (void)payload;
    snprintf(path, sizeof(path), "%s.deadly", ledger_path);
    if (access(path, F_OK) != 0)
        return;
    note("died", "child", "-");
    raise(SIGKILL);
}

static bool is_mode(const pool *p, const char *mode)
{
    return p->start_mode && strcmp(p->start_mode, mode) == 0;
}

static void linger_at_start(void *payload)
{
    struct timespec pause = {0, 700000000};

    (void)payload;
    nanosleep(&pause, NULL);
    note("born", "child", "-");
}

/* What a child does first of all in this mode; NULL = nothing. */
static void (*at_start(const pool *p))(void *payload)
{
    static const struct {
        const char *mode;
        void (*run)(void *payload);
    } rows[] = {{"exit", exit_at_start},
                {"fat", grow_at_start},
                {"slow", linger_at_start},
                {"retire", retire_at_start}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_mode(p, rows[i].mode))
            return rows[i].run;
    return NULL;
}

static void redirect(const pool *p)
{
    int fd = open(p->output, O_WRONLY | O_CREAT | O_APPEND, 0600);

    dup2(p->stdout_fd > 0 ? p->stdout_fd : fd, 1);
    dup2(p->stderr_fd > 0 ? p->stderr_fd : fd, 2);
    close(fd);
    if (p->stdout_fd < 0)
        close(1);
    if (p->stderr_fd < 0)
        close(2);
}

static void write_to_ledger(const pool *p)
{
    int fd = open(p->ledger, O_WRONLY | O_CREAT | O_APPEND, 0600);

    if (jobq_worker_set_output_fd(running_worker, fd) < 0)
        _exit(98);
    close(fd); /* the worker has its own */
}

/* All handlers but the one that is left out; each gets the same options. */
static void announce(const pool *p)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_HANDLER, JOBQ_STYLE_SNAKE);

    set_options(conf, p->handler_options);
    for (size_t i = 0; i < HANDLERS; i++)
        if (!p->without || strcmp(p->without, handlers[i].name) != 0)
            jobq_worker_handle(running_worker, handlers[i].name, strlen(handlers[i].name), 1,
                               p->plain && strcmp(p->plain, handlers[i].name) == 0 ? NULL : conf);
    jobq_conf_free(conf);
}

static int be_worker(const pool *p, const char *options)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_worker_hooks hooks = {.size = sizeof(hooks), .after_fork_child = at_start(p)};
    const char *by_default[] = {"default"}, *const *queues = by_default;
    size_t count = 1;
    int code;

    jobq_queue *queue = p->queue;

    if (p->queues[0])
        for (queues = p->queues, count = 0; count < 4 && queues[count]; count++)
            ;
    set_options(conf, "output=jobs");
    set_options(conf, options);
    ledger_path = p->ledger;
    pool_dsn = p->dsn;
    jobq__clock_shift(p->clock_wrong_ms, 0);
    if (p->worker_dsn[0] && jobq_queue_new(p->worker_dsn, NULL, &queue) < 0)
        return 99;
    if (jobq_worker_new(queue, conf, &running_worker) < 0)
        return 99;
    announce(p);
    if (is_mode(p, "dies"))
        hooks.idle_enter = die_idle;
    if (hooks.after_fork_child || hooks.idle_enter)
        jobq_worker_set_hooks(running_worker, &hooks);
    if (is_mode(p, "descriptor"))
        write_to_ledger(p);
    if (is_mode(p, "ignore-hup"))
        signal(SIGHUP, SIG_IGN);
    if (is_mode(p, "hooks")) {
        jobq_worker_set_failed(running_worker, true);
        code = run_with_events(running_worker);
    } else if (is_mode(p, "listen")) {
        jobq_worker_listen(running_worker, "job.crashed");
        jobq_worker_listen(running_worker, "job.retrying");
        code = run_with_events(running_worker);
    } else if (p->loop) {
        code = p->loop(running_worker);
    } else {
        code = jobq_worker_run(running_worker, queues, count, handle, NULL);
    }
    if (code < 0)
        fprintf(stderr, "error: %s\n", jobq_error_message(jobq_error_last()));
    fflush(stderr);
    return code < 0 ? 100 - code : code;
}

/* ---- the test's side ------------------------------------------------------------------------- */

void pool_open_at(pool *p, const char *dsn, const char *worker_dsn)
{
    static int n;

    memset(p, 0, sizeof(*p));
    snprintf(p->ledger, sizeof(p->ledger), "%s/%d.ledger", jobq_test_folder(), ++n);
    snprintf(p->output, sizeof(p->output), "%s/%d.output", jobq_test_folder(), n);
    snprintf(p->dsn, sizeof(p->dsn), "%s", dsn ? dsn : store_fresh());
    snprintf(p->worker_dsn, sizeof(p->worker_dsn), "%s", worker_dsn ? worker_dsn : "");
    if (!dsn && store_under_test() == STORE_SQLITE)
        snprintf(p->db, sizeof(p->db), "%.*s", (int)strcspn(p->dsn + 7, "?"), p->dsn + 7);
    assert_ok(jobq_queue_new(p->dsn, NULL, &p->queue));
    assert_ok(jobq_queue_migrate(p->queue));
}

void pool_open(pool *p)
{
    pool_open_at(p, NULL, NULL);
}

void pool_close(pool *p)
{
    if (p->pid) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }
    jobq_queue_free(p->queue);
    p->queue = NULL;
}

int pool_set_up(void **state)
{
    static pool p;

    pool_open(&p);
    *state = &p;
    return 0;
}

int pool_tear_down(void **state)
{
    pool_close(*state);
    return 0;
}

static void add_body(jobq_message *m, size_t n)
{
    char *p = malloc(n);

    p[0] = p[n - 1] = '"';
    for (size_t i = 1; i + 1 < n; i++)
        p[i] = (char)('a' + i * 7 % 26);
    assert_ok(jobq_message_set_body(m, JOBQ_FORMAT_JSON, p, n));
    free(p);
}

jobq_message *pool_message(const char *name, int arg, const char *options)
{
    jobq_message *m = jobq_message_new();
    char text[16];
    const int n = snprintf(text, sizeof(text), "%d", arg);

    assert_non_null(m);
    assert_ok(jobq_message_set_name(m, name, strlen(name)));
    assert_ok(jobq_message_add_context(m, "arg", 3, text, (size_t)n));
    set_options(jobq_message_options(m), options);
    if (strcmp(name, "body") == 0)
        add_body(m, (size_t)arg);
    return m;
}

const char *pool_push(pool *p, const char *name, int arg, const char *options)
{
    static char id[129];
    jobq_message *m = pool_message(name, arg, options);

    assert_ok(jobq_queue_push(p->queue, m));
    snprintf(id, sizeof(id), "%s", jobq_message_id(m));
    jobq_message_free(m);
    return id;
}

int pool_try_push_many(pool *p, const char *name, int arg, const char *options, int n)
{
    jobq_message **all = calloc((size_t)n, sizeof(*all));
    int rc;

    for (int i = 0; i < n; i++)
        all[i] = pool_message(name, arg, options);
    rc = jobq_queue_push_many(p->queue, all, (size_t)n);
    for (int i = 0; i < n; i++)
        jobq_message_free(all[i]);
    free(all);
    return rc;
}

void pool_push_many(pool *p, const char *name, int arg, const char *options, int n)
{
    assert_int_equal(assert_ok(pool_try_push_many(p, name, arg, options, n)), n);
}

/* Process 1 of a namespace of its own, as in a container; our process stays outside and ends as it
 * does. */
static void become_init(void)
{
    int status;
    pid_t pid;

    if (unshare(CLONE_NEWPID) != 0 || (pid = fork()) < 0)
        _exit(97);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* cmocka's would go on with the next test, in a process of the worker. */
static void restore_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], SIG_DFL);
}

void pool_start(pool *p, const char *options)
{
    jobq_queue_disconnect(p->queue);
    p->known_count = 0;
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        setpgid(0, 0);
        restore_signals();
        redirect(p);
        if (is_mode(p, "pid1"))
            become_init();
        exit(be_worker(p, options));
    }
    setpgid(p->pid, p->pid);
}

int pool_wait(pool *p, int seconds)
{
    const int64_t end_ms = jobq__clock_mono_ms() + seconds * 1000;
    int status = 0;

    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        pool_dispatcher(p); /* remembers who is there */
        if (jobq__clock_mono_ms() > end_ms) {
            pool_show(p);
            fail_msg("the worker did not end within %d s", seconds);
        }
        pause_ms(5);
    }
    p->pid = 0;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

int pool_run(pool *p, const char *options)
{
    pool_start(p, options);
    return pool_wait(p, 60);
}

void pool_signal(pool *p, int number)
{
    assert_int_equal(kill(p->pid, number), 0);
}

int pool_ledger(const pool *p, const char *prefix)
{
    FILE *f = fopen(p->ledger, "r");
    char line[600];
    int n = 0;

    while (f && fgets(line, sizeof(line), f))
        n += strncmp(line, prefix, strlen(prefix)) == 0;
    if (f)
        fclose(f);
    return n;
}

pid_t pool_runner(const pool *p, const char *prefix)
{
    FILE *f = fopen(p->ledger, "r");
    char line[600];
    pid_t pid = 0;

    while (f && !pid && fgets(line, sizeof(line), f))
        if (strncmp(line, prefix, strlen(prefix)) == 0)
            pid = (pid_t)atoi(strrchr(line, ' '));
    if (f)
        fclose(f);
    return pid;
}

int pool_runners(const pool *p, const char *prefix)
{
    FILE *f = fopen(p->ledger, "r");
    char line[600];
    int seen[1024], n = 0;

    while (f && n < 1024 && fgets(line, sizeof(line), f)) {
        int i = 0;

        if (strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        seen[n] = atoi(strrchr(line, ' '));
        while (seen[i] != seen[n])
            i++;
        n += i == n;
    }
    if (f)
        fclose(f);
    return n;
}

enum { OUTPUT_MAX = 16 << 20 };

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, OUTPUT_MAX);

    if (f) {
        text[fread(text, 1, OUTPUT_MAX - 1, f)] = '\0';
        fclose(f);
    }
    return text;
}

char *pool_output(const pool *p)
{
    return read_whole(p->output);
}

bool pool_said(const pool *p, const char *text)
{
    char *all = read_whole(p->output);
    const bool found = strstr(all, text) != NULL;

    free(all);
    return found;
}

void pool_show(const pool *p)
{
    char *output = read_whole(p->output), *ledger = read_whole(p->ledger);

    fprintf(stderr, "--- output\n%s--- ledger\n%s---\n", output, ledger); /* print_message cuts */
    free(output);
    free(ledger);
}

int64_t pool_stat(pool *p, jobq_stat which)
{
    int64_t values[JOBQ_STATS];

    assert_ok(jobq_queue_stats(p->queue, "default", 7, values));
    return values[which];
}

const char *pool_job(pool *p, const char *id)
{
    static char text[200];
    jobq_info *info;

    if (jobq_queue_find(p->queue, id, strlen(id), &info) < 0)
        return "gone";
    snprintf(text, sizeof(text), "%s %lld %lld %lld",
             jobq_state_word((jobq_state)jobq_info_number(info, JOBQ_INFO_STATE)),
             (long long)jobq_info_number(info, JOBQ_INFO_FAILURES),
             (long long)jobq_info_number(info, JOBQ_INFO_CRASHES),
             (long long)jobq_info_number(info, JOBQ_INFO_DELIVERIES));
    jobq_info_free(info);
    return text;
}

/* ---- who is there ---------------------------------------------------------------------------- */

static void remember(pool *p, pid_t pid)
{
    for (size_t i = 0; i < p->known_count; i++)
        if (p->known[i] == pid)
            return;
    if (p->known_count < sizeof(p->known) / sizeof(p->known[0]))
        p->known[p->known_count++] = pid;
}

/* Living processes whose parent is the master, by what `want` says of them. */
static size_t find_processes(pool *p, bool want_dispatcher, pid_t *out, size_t max)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    size_t n = 0;

    while (folder && (entry = readdir(folder))) {
        char path[64], state;
        int pid, parent, group;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%.20s/stat", entry->d_name);
        if (atoi(entry->d_name) <= 0 || !(f = fopen(path, "r")))
            continue;
        if (fscanf(f, "%d (%*[^)]) %c %d %d", &pid, &state, &parent, &group) == 4 &&
            parent == p->pid && state != 'Z') {
            remember(p, pid);
            if ((group == p->pid) == want_dispatcher && n < max)
                out[n++] = pid;
        }
        fclose(f);
    }
    if (folder)
        closedir(folder);
    return n;
}

bool pool_kill(pid_t pid)
{
    return pid > 0 && kill(pid, SIGKILL) == 0;
}

pid_t pool_dispatcher(pool *p)
{
    pid_t pid = 0;

    return find_processes(p, true, &pid, 1) ? pid : 0;
}

size_t pool_children(pool *p, pid_t *out, size_t max)
{
    return find_processes(p, false, out, max);
}

bool pool_is_all_gone(const pool *p)
{
    for (size_t i = 0; i < p->known_count; i++)
        if (kill(p->known[i], 0) == 0)
            return false;
    return true;
}
