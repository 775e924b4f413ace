/* SPDX-License-Identifier: MIT
 *
 * Waiting until something may be ready, by two inotify descriptors.
 *
 * ring: IN_ATTRIB on the -shm file. A push through this library touches it after its commit, so
 * look at once.
 *
 * change: IN_MODIFY on the WAL. Somebody, perhaps another program, writes; the commit is visible
 * only later, when it is on the disk or that process has its next turn. So look again and again
 * with growing gaps. Also the folder: the file was replaced or is gone.
 *
 * Looks that found nothing make the next ones rarer, so that the traffic of other queues costs
 * little. Where inotify cannot be had, polling with growing gaps.
 */
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

#define LOOK                                                      \
    "SELECT EXISTS(SELECT 1 FROM jobqueue_ready WHERE queue=?1) " \
    "OR EXISTS(SELECT 1 FROM jobqueue_taken WHERE queue=?1), "    \
    "(SELECT due FROM jobqueue_delayed ORDER BY due LIMIT 1), "   \
    "(SELECT value FROM jobqueue_control WHERE name='control')"

#define JOB_STATE "SELECT state FROM jobqueue_job WHERE id=?1"

enum { SAFETY_US = 30 * 1000000, QUIET_US = 50000, FAR_MS = 1000000000 };

/* After a foreign write: microseconds from it at which to look. */
static const int64_t look_again_us[] = {200, 500, 1000, 2000, 5000, 10000};
enum { LOOKS = sizeof(look_again_us) / sizeof(look_again_us[0]) };
/* After these the gap is as long as the write is ago, at most the first; until the second. */
enum { LATE_GAP_US = 1000000, LATE_US = 10000000 };

/* ---- a look ---------------------------------------------------------------------------------- */

/* One statement, so one read transaction: a look must be cheap. 1: a job is ready. */
static int look_at(sqlite_store *store, int64_t queue, int64_t *due_out, int64_t *control_out)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_LOOK, LOOK);
    int rc;

    if (!stmt)
        return jobq__error_code();
    sqlite3_bind_int64(stmt, 1, queue);
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        rc = sqlite3_column_int(stmt, 0);
        *due_out = sqlite3_column_int64(stmt, 1);
        *control_out = sqlite3_column_int64(stmt, 2);
    }
    sqlite3_reset(stmt);
    return rc;
}

int jobq__sqlite_look(sqlite_store *store, const jobq_slice *queues, size_t count, int64_t *due_out,
                      int64_t *control_out)
{
    int rc = count ? 0 : look_at(store, 0, due_out, control_out);

    for (size_t i = 0; i < count && rc == 0; i++) {
        int64_t key;

        rc = jobq__sqlite_queue_key(store, queues[i], false, &key);
        if (rc == 0)
            rc = look_at(store, key, due_out, control_out);
    }
    return rc;
}

/* 1: the job that is waited for stands in no line any more; also when nobody waits for one: 0. */
static int look_at_job(sqlite_store *store, jobq_slice id)
{
    sqlite3_stmt *stmt = id.p ? jobq__sqlite_use(store, ST_JOB_STATE, JOB_STATE) : NULL;
    int rc;

    if (!stmt)
        return id.p ? jobq__error_code() : 0;
    jobq__sqlite_bind(stmt, 1, id);
    rc = jobq__sqlite_row(store, stmt);
    if (rc >= 0)
        rc = rc == 0 || sqlite3_column_int(stmt, 0) != SQL_LIVE;
    sqlite3_reset(stmt);
    return rc;
}

/* ---- inotify --------------------------------------------------------------------------------- */

void jobq__sqlite_wait_close(sqlite_store *store)
{
    if (store->ring_fd >= 0)
        close(store->ring_fd);
    if (store->change_fd >= 0)
        close(store->change_fd);
    store->ring_fd = store->change_fd = -1;
}

static void watch(sqlite_store *store)
{
    uint32_t folder_events = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;

    if (store->ring_fd >= 0)
        return;
    store->ring_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    store->change_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (store->ring_fd < 0 || store->change_fd < 0 ||
        inotify_add_watch(store->ring_fd, store->shm_path, IN_ATTRIB) < 0 ||
        inotify_add_watch(store->change_fd, store->wal_path, IN_MODIFY) < 0 ||
        inotify_add_watch(store->change_fd, store->folder, folder_events) < 0)
        jobq__sqlite_wait_close(store); /* then by polling */
}

static bool concerns(const sqlite_store *store, const struct inotify_event *event)
{
    const char *name = strrchr(store->path, '/');
    size_t n;

    name = name ? name + 1 : store->path;
    n = strlen(name);
    return event->len > 0 && strncmp(event->name, name, n) == 0 &&
           (event->name[n] == '\0' || strcmp(event->name + n, "-wal") == 0);
}

typedef struct {
    bool any, modified, replaced;
} changes;

static changes drain(const sqlite_store *store, int fd)
{
    _Alignas(struct inotify_event) char bytes[4096];
    changes seen = {false, false, false};
    ssize_t n;

    while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
        for (char *p = bytes; p < bytes + n;) {
            const struct inotify_event *event = (const void *)p;

            seen.any = true;
            seen.modified |= (event->mask & (IN_MODIFY | IN_Q_OVERFLOW)) != 0;
            seen.replaced |= (event->mask & IN_IGNORED) != 0 || concerns(store, event);
            p += sizeof(*event) + event->len;
        }
    return seen;
}

/* ---- the wait -------------------------------------------------------------------------------- */

typedef struct {
    const jobq_wait *w;
    int64_t end_us;  /* INT64_MAX = none */
    int64_t due_us;  /* when the next delayed job is due */
    int64_t look_us; /* the next look by plan */
    int64_t last_look_us;
    int64_t changed_us; /* begin of the schedule after a foreign write, 0 = none */
    int step;           /* in look_again_us; LOOKS = at its end */
    bool scheduled;     /* look_us is of the schedule: change_fd is not asked meanwhile */
    int fruitless;      /* looks in a row, close to each other, that found nothing */
    int64_t poll_ms;    /* gap of polling */
} waiting;

/* What the look found (JOBQ_WAIT_JOBS, JOBQ_WAIT_CONTROL), 0 = nothing. */
static int look(sqlite_store *store, waiting *v)
{
    int64_t due_ms = 0, now_us = jobq__clock_mono_us(), now_ms = jobq__clock_wall_ms();
    int64_t control = 0;
    int rc;

    store->deadline_us = now_us + store->timeout_ms * 1000;
    rc = jobq__sqlite_look(store, v->w->queues, v->w->queue_count, &due_ms, &control);
    rc = rc ? rc : look_at_job(store, v->w->job);
    if (rc != 0)
        return rc < 0 ? rc : JOBQ_WAIT_JOBS;
    if (v->w->job.p && v->w->queue_count == 0)
        due_ms = 0; /* who takes none is not woken for those that are due */
    if (due_ms > 0 && due_ms <= now_ms)
        return JOBQ_WAIT_JOBS;
    if (v->w->control && control != *v->w->control)
        return JOBQ_WAIT_CONTROL;
    v->due_us =
        due_ms > 0 && due_ms - now_ms < FAR_MS ? now_us + (due_ms - now_ms) * 1000 : INT64_MAX;
    v->fruitless = now_us - v->last_look_us > QUIET_US ? 1 : v->fruitless + 1;
    v->last_look_us = now_us;
    return 0;
}

/* Shortest gap to the next look: none at first, then so that looking stays well below 1 %
 * of a core. */
static int64_t gap_us(const waiting *v)
{
    return v->fruitless <= 8 ? 0 : v->fruitless <= 40 ? 1000 : 5000;
}

/* A commit that is slow to become visible makes no more signs. */
static int64_t late_gap_us(const waiting *v, int64_t now_us)
{
    const int64_t ago_us = now_us - v->changed_us;

    if (v->changed_us == 0 || ago_us >= LATE_US)
        return SAFETY_US;
    return ago_us < look_again_us[LOOKS - 1] ? look_again_us[LOOKS - 1]
           : ago_us < LATE_GAP_US            ? ago_us
                                             : LATE_GAP_US;
}

static void plan_next(const sqlite_store *store, waiting *v)
{
    int64_t now_us = jobq__clock_mono_us();

    if (store->ring_fd < 0) {
        v->look_us = now_us + jobq__poll_gap(&v->poll_ms, v->w->poll_ms) * 1000;
        return;
    }
    v->scheduled = v->step < LOOKS;
    if (v->scheduled) {
        v->look_us = v->changed_us + look_again_us[v->step++];
        return;
    }
    v->look_us = now_us + late_gap_us(v, now_us);
}

/* While the gap since the last look lasts the ring is not asked. */
static int poll_once(const sqlite_store *store, const waiting *v, struct pollfd fds[3])
{
    int64_t now_us = jobq__clock_mono_us();
    int64_t until = v->look_us < v->due_us ? v->look_us : v->due_us;
    int64_t allowed_us = v->last_look_us + gap_us(v);
    bool ring_masked = now_us < allowed_us;

    until = v->end_us < until ? v->end_us : until;
    until = ring_masked && allowed_us < until ? allowed_us : until;
    fds[0] = (struct pollfd){.fd = v->w->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = ring_masked ? -1 : store->ring_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = v->scheduled ? -1 : store->change_fd, .events = POLLIN};
    return jobq__poll_us(fds, 3, until - now_us);
}

static int file_changed(sqlite_store *store)
{
    jobq__sqlite_wait_close(store);
    if (jobq__sqlite_is_same_file(store)) {
        watch(store);
        return 0;
    }
    store->suspect = true;
    return jobq__error_set_driver(
        JOBQ_EIO, JOBQ__RETRYABLE, "sqlite", 0,
        "sqlite: %s: the file was deleted or replaced while it was in use", store->path);
}

static void begin_schedule(waiting *v)
{
    v->changed_us = jobq__clock_mono_us();
    v->step = v->fruitless > 12 ? LOOKS - 1 : 0;
}

/* What the descriptors said: an error, or 0 with *look_now. */
static int read_signs(sqlite_store *store, waiting *v, const struct pollfd fds[3], bool *look_now)
{
    int64_t now_us = jobq__clock_mono_us();
    changes seen = {false, false, false};

    if (fds[1].revents)
        *look_now = drain(store, store->ring_fd).any;
    if (fds[2].revents)
        seen = drain(store, store->change_fd);
    if (seen.replaced) {
        *look_now = true;
        return file_changed(store);
    }
    if (seen.modified && !*look_now) {
        begin_schedule(v);
        plan_next(store, v);
    }
    if (now_us >= v->look_us)
        *look_now = true;
    return 0;
}

/* One round after a fruitless look. */
enum { ROUND_AGAIN, ROUND_LOOK, ROUND_WOKEN, ROUND_END, ROUND_DUE };

static int wait_round(sqlite_store *store, waiting *v)
{
    struct pollfd fds[3];
    bool look_now = false;
    int64_t now_us;
    int n = poll_once(store, v, fds), rc;

    if (n < 0)
        return jobq__refuse_wait("sqlite");
    if (fds[0].revents)
        return ROUND_WOKEN;
    rc = read_signs(store, v, fds, &look_now);
    if (rc < 0)
        return rc;
    now_us = jobq__clock_mono_us();
    if (look_now)
        return ROUND_LOOK;
    return now_us >= v->due_us ? ROUND_DUE : now_us >= v->end_us ? ROUND_END : ROUND_AGAIN;
}

static int wait_loop(sqlite_store *store, waiting *v)
{
    static const int answers[] = {[ROUND_WOKEN] = JOBQ_WAIT_WOKEN,
                                  [ROUND_END] = JOBQ_WAIT_TIMEOUT,
                                  [ROUND_DUE] = JOBQ_WAIT_JOBS};

    for (;;) {
        int rc = look(store, v);

        if (rc != 0)
            return rc;
        plan_next(store, v);
        do
            rc = wait_round(store, v);
        while (rc == ROUND_AGAIN);
        if (rc != ROUND_LOOK)
            return rc < 0 ? rc : answers[rc];
        /* The schedule's last look: what comes from now on begins a new one. */
        if (v->scheduled && v->step == LOOKS && drain(store, store->change_fd).replaced)
            rc = file_changed(store);
        if (rc < 0)
            return rc;
    }
}

int jobq__sqlite_wait(void *handle, const jobq_wait *w)
{
    sqlite_store *store = handle;
    waiting v = {.w = w, .end_us = INT64_MAX, .due_us = INT64_MAX, .step = LOOKS};
    changes seen;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    if (w->timeout_ms >= 0)
        v.end_us = jobq__clock_mono_us() + (w->timeout_ms < FAR_MS ? w->timeout_ms : FAR_MS) * 1000;
    watch(store);
    drain(store, store->ring_fd);
    seen = drain(store, store->change_fd);
    if (seen.modified) /* mostly by ourselves, so without the first looks */
        v.changed_us = jobq__clock_mono_us();
    if (seen.replaced)
        rc = file_changed(store);
    return jobq__sqlite_leave(store, rc ? rc : wait_loop(store, &v));
}
