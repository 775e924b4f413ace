/* SPDX-License-Identifier: MIT
 *
 * Waiting for news on a connection of its own: a plain blocking XREAD (it takes nothing) over the
 * streams of the queues and the stream of wake-ups, where scripts say what adds no entry: jobs
 * given and taken back, an earlier delayed job, a new priority. The read stays under way when the
 * wait ends for another reason, and the next wait goes on with it. While it stood before an
 * exchange that found nothing more, not even a look is needed.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

enum { BLOCK_MS = 30000, CONNECT_MS = 5000, ENTRY = 44 };

/* A stream that is read, and the last entry seen there. */
typedef struct {
    size_t queue; /* place in the caller's list; the first row is the stream of wake-ups */
    int64_t priority;
    char last[ENTRY];
} watched;

struct rds_news {
    rds_link link;
    bool asked; /* a read is under way */
    watched *streams;
    size_t count, room;
    uint32_t of;             /* hash of the queues */
    uint32_t set, asked_set; /* hashes of the streams: of the last look, of the read */
    int64_t due_ms;          /* monotonic clock: when the next delayed job is due; 0 = none */
};

static uint32_t hash_queues(const jobq_wait *w)
{
    uint32_t hash = (uint32_t)w->queue_count;

    for (size_t i = 0; i < w->queue_count; i++)
        hash = hash * 31 + jobq__redis_hash(w->queues[i]);
    return hash;
}

static rds_news *news_of(rds_store *store)
{
    if (!store->news) {
        store->news = jobq__zalloc(sizeof(*store->news));
        if (store->news)
            store->news->link.fd = -1;
    }
    return store->news;
}

void jobq__redis_news_free(rds_news *news)
{
    if (!news)
        return;
    jobq__redis_free_link(&news->link);
    jobq__free(news->streams);
    jobq__free(news);
}

static void drop(rds_news *news)
{
    jobq__redis_hang_up(&news->link);
    news->asked = false;
}

/* ---- the look -------------------------------------------------------------------------------- */

static int watch(rds_news *news, size_t queue, int64_t priority, jobq_slice last)
{
    watched *row;

    if (news->count == news->room) {
        size_t room = news->room ? news->room * 2 : 16;
        watched *streams = jobq__realloc(news->streams, room * sizeof(*streams));

        if (!streams)
            return jobq__error_nomem();
        news->streams = streams;
        news->room = room;
    }
    news->set = news->set * 31 + (uint32_t)queue * 16 + (uint32_t)priority;
    row = &news->streams[news->count++];
    row->queue = queue;
    row->priority = priority;
    memset(row->last, 0, sizeof(row->last));
    memcpy(row->last, last.p, last.n < ENTRY ? last.n : ENTRY - 1);
    return 0;
}

static int read_look(rds_news *news, const rds_value *answer, bool *ready_out)
{
    rds_walk walk = {answer, 0};
    bool ready = jobq__redis_int(&walk) != 0;
    int64_t now = jobq__redis_int(&walk), due = jobq__redis_int(&walk);
    int rc;

    news->count = news->set = 0;
    news->due_ms = due > 0 ? jobq__clock_mono_ms() + due - now : 0;
    rc = watch(news, 0, -1, jobq__redis_text(&walk));
    while (jobq__redis_more(&walk) && rc == 0) {
        size_t queue = (size_t)jobq__redis_int(&walk);
        int64_t priority = jobq__redis_int(&walk);

        rc = watch(news, queue, priority, jobq__redis_text(&walk));
    }
    *ready_out = ready || (due > 0 && due <= now);
    return rc;
}

static int look(rds_store *store, const jobq_wait *w, bool *ready_out)
{
    rds_value *answer;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_LOOK, w->queue_count);
    for (size_t i = 0; i < w->queue_count; i++)
        jobq__redis_word(&store->link, w->queues[i].p, w->queues[i].n);
    rc = jobq__redis_call(store, &answer, RDS_READS);
    return rc ? rc : read_look(store->news, answer, ready_out);
}

/* ---- the blocking read ----------------------------------------------------------------------- */

static void write_key(rds_store *store, const jobq_wait *w, const watched *row)
{
    jobq__buf_reset(&store->scratch);
    if (row->priority < 0) {
        jobq__buf_add(&store->scratch, store->base.p, store->base.n);
        jobq__buf_adds(&store->scratch, ":wake");
    } else {
        jobq__redis_add_base(store, &store->scratch, w->queues[row->queue]);
        jobq__buf_addf(&store->scratch, ":p%d", (int)row->priority);
    }
}

static int send_read(rds_store *store, const jobq_wait *w, int64_t deadline_ms)
{
    rds_news *news = store->news;
    rds_link *link = &news->link;
    int rc;

    jobq__redis_clear(link);
    jobq__redis_begin(link, 6 + 2 * news->count);
    jobq__redis_words(link, "XREAD");
    jobq__redis_words(link, "COUNT");
    jobq__redis_words(link, "1");
    jobq__redis_words(link, "BLOCK");
    jobq__redis_number(link, BLOCK_MS);
    jobq__redis_words(link, "STREAMS");
    for (size_t i = 0; i < news->count; i++) {
        write_key(store, w, &news->streams[i]);
        if (store->scratch.failed)
            return jobq__error_nomem();
        jobq__redis_word(link, store->scratch.p, store->scratch.n);
    }
    for (size_t i = 0; i < news->count; i++)
        jobq__redis_words(link, news->streams[i].last);
    rc = jobq__redis_send(link, deadline_ms);
    news->asked = rc == 0;
    news->of = hash_queues(w);
    news->asked_set = news->set;
    return rc;
}

/* A read that is under way over the same streams is as good as a new one: it began earlier. */
static int begin_read(rds_store *store, const jobq_wait *w)
{
    rds_news *news = store->news;
    int64_t limit = store->config->connect_timeout_ms;
    int64_t deadline = jobq__clock_mono_ms() + (limit > 0 ? limit : CONNECT_MS);
    int rc = 0;

    if (news->asked && news->of == hash_queues(w) && news->asked_set == news->set)
        return 0;
    if (news->asked || (news->link.fd >= 0 && jobq__redis_is_stale(&news->link)))
        drop(news);
    if (news->link.fd < 0)
        rc = jobq__redis_greet(store, &news->link, false, deadline);
    rc = rc ? rc : send_read(store, w, deadline);
    if (rc < 0)
        drop(news);
    return rc;
}

static watched *find_stream(rds_store *store, const jobq_wait *w, const rds_value *key)
{
    for (size_t i = 0; i < store->news->count; i++) {
        write_key(store, w, &store->news->streams[i]);
        if (store->scratch.n == key->n && memcmp(store->scratch.p, key->p, key->n) == 0)
            return &store->news->streams[i];
    }
    return NULL;
}

/* New entries: the read goes on behind them. False: something else has happened. */
static bool note_entries(rds_store *store, const jobq_wait *w, const rds_value *value)
{
    if (value->count == 0)
        return false;
    for (size_t i = 0; i < value->count; i++) {
        const rds_value *one = value->item[i];
        watched *row = one->count == 2 ? find_stream(store, w, one->item[0]) : NULL;
        const rds_value *entries = one->count == 2 ? one->item[1] : NULL;

        if (!row || row->priority < 0 || entries->count == 0 || entries->item[0]->count != 2 ||
            entries->item[0]->item[0]->type != RDS_TEXT || entries->item[0]->item[0]->n >= ENTRY)
            return false;
        memcpy(row->last, entries->item[0]->item[0]->p, entries->item[0]->item[0]->n + 1);
    }
    return true;
}

/* Has the read ended? JOBQ_WAIT_JOBS: yes; 0: it goes on. `on` = read on behind new entries. */
static int read_news(rds_store *store, const jobq_wait *w, bool on)
{
    rds_news *news = store->news;
    rds_value *value;
    int rc;

    rc = jobq__redis_peek(&news->link, &value);
    if (rc > 0) {
        news->asked = false;
        if (value->type == RDS_ERROR) /* UNBLOCKED at a failover: all is asked anew */
            rc = jobq__redis_refused(store, value);
        else if (on && note_entries(store, w, value))
            rc = send_read(store, w, jobq__clock_mono_ms() + store->config->read_timeout_ms);
        jobq__arena_reset(&news->link.arena);
        rc = rc < 0 ? rc : JOBQ_WAIT_JOBS;
    }
    if (rc < 0)
        drop(news);
    return rc;
}

/* ---- the wait -------------------------------------------------------------------------------- */

/* JOBQ_WAIT_TIMEOUT at the deadline, JOBQ_WAIT_JOBS when there is news. */
static int sleep_until(rds_store *store, const jobq_wait *w, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = store->news->link.fd, .events = POLLIN},
                               {.fd = w->wake_fd, .events = POLLIN}};
        int64_t left = deadline_ms - jobq__clock_mono_ms();
        int n, rc;

        n = poll(fds, 2, left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left);
        if (n < 0)
            return jobq__refuse_wait("redis");
        if (n > 0 && fds[1].revents)
            return JOBQ_WAIT_WOKEN;
        if (n > 0) {
            rc = read_news(store, w, true);
            if (rc != 0)
                return rc;
        }
        if (n == 0 && left <= 0)
            return JOBQ_WAIT_TIMEOUT;
    }
}

/* The read stood before an exchange that left nothing behind, and has not ended. */
static bool need_no_look(rds_store *store, const jobq_wait *w)
{
    rds_news *news = store->news;
    struct pollfd p = {.fd = news->link.fd, .events = POLLIN};

    if (news->asked && poll(&p, 1, 0) != 0 && read_news(store, w, false) < 0)
        jobq__error_clear(); /* it is asked anew */
    return store->found_empty && news->asked && news->of == hash_queues(w) &&
           (news->due_ms == 0 || news->due_ms > jobq__clock_mono_ms());
}

/* One look and one sleep. JOBQ_WAIT_TIMEOUT only at the end of the wait. */
static int wait_once(rds_store *store, const jobq_wait *w, int64_t end_ms, bool *again_out)
{
    rds_news *news = store->news;
    bool ready = false, due_first, looked = !need_no_look(store, w);
    int rc = looked ? look(store, w, &ready) : 0;

    *again_out = false;
    if (rc < 0 || ready)
        return rc < 0 ? rc : JOBQ_WAIT_JOBS;
    if (looked)
        rc = begin_read(store, w);
    if (rc < 0)
        return rc;
    due_first = news->due_ms > 0 && news->due_ms <= end_ms;
    rc = sleep_until(store, w, due_first ? news->due_ms : end_ms);
    if (rc == JOBQ_WAIT_TIMEOUT)
        return due_first ? JOBQ_WAIT_JOBS : JOBQ_WAIT_TIMEOUT;
    *again_out = rc == JOBQ_WAIT_JOBS && !news->asked; /* no entry: a look says what it is */
    return rc;
}

int jobq__redis_wait(void *handle, const jobq_wait *w)
{
    rds_store *store = handle;
    int64_t start = jobq__clock_mono_ms();
    int64_t end = w->timeout_ms < 0 ? start + ((int64_t)1 << 40) : start + w->timeout_ms;
    bool again;
    int rc;

    if (!news_of(store))
        return jobq__error_nomem();
    do {
        rc = wait_once(store, w, end, &again);
        store->found_empty = store->found_empty && !again && rc != JOBQ_WAIT_JOBS;
    } while (again);
    return rc;
}
