/* SPDX-License-Identifier: MIT
 *
 * Waiting for news on a connection of its own: a plain blocking XREAD (it takes nothing) over the
 * streams of the queues and the streams of news, where scripts say what adds no entry: jobs given
 * and taken back, an earlier delayed job, a new priority, a change of control. The read stays under
 * way when the wait ends for another reason, and the next wait goes on with it. While it stood
 * before an exchange that found nothing more, not even a look is needed.
 *
 * On a Cluster no read spans two slots: each queue has a reader, and the prefix one for control.
 * Of very many queues the last ones are looked at now and then instead.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

enum { BLOCK_MS = 30000, ENTRY = 44, READERS = 32, MOVING_MS = 50 };
enum { NEWS = -1, CONTROL_NEWS = -2 }; /* instead of a priority; the first is look.lua's */

/* A stream that is read, and the last entry seen there. */
typedef struct {
    size_t queue; /* place in the caller's list */
    int64_t priority;
    char last[ENTRY];
} watched;

/* A connection with a read under way. */
typedef struct {
    rds_link link;
    bool asked;
    size_t first, count;     /* of the streams */
    uint32_t set, asked_set; /* hashes of the streams: of the last look, of the read */
} reader;

struct rds_news {
    reader readers[READERS];
    rds_link spare;      /* await.c */
    size_t reader_count; /* in use; the others are closed */
    bool all_read;       /* no stream is without a reader */
    bool moved;          /* a slot is on its way to another server */
    watched *streams;
    size_t count, room;
    uint32_t of;    /* hash of the queues */
    int64_t due_ms; /* monotonic clock: when the next delayed job is due; 0 = none */
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
        for (size_t i = 0; store->news && i < READERS; i++)
            store->news->readers[i].link.fd = -1;
        if (store->news)
            store->news->spare.fd = -1;
    }
    return store->news;
}

void jobq__redis_news_free(rds_news *news)
{
    if (!news)
        return;
    for (size_t i = 0; i < READERS; i++)
        jobq__redis_free_link(&news->readers[i].link);
    jobq__redis_free_link(&news->spare);
    jobq__free(news->streams);
    jobq__free(news);
}

rds_link *jobq__redis_spare_link(rds_store *store)
{
    return &store->news->spare;
}

static void drop(reader *r)
{
    jobq__redis_hang_up(&r->link);
    r->asked = false;
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
    row = &news->streams[news->count++];
    row->queue = queue;
    row->priority = priority;
    memset(row->last, 0, sizeof(row->last));
    memcpy(row->last, last.p, last.n < ENTRY ? last.n : ENTRY - 1);
    return 0;
}

typedef struct {
    const jobq_wait *w;
    size_t asked; /* queues looked at so far */
    bool ready;
} look_state;

static void ask_look(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    (void)with;
    jobq__redis_script(store, RDS_SCRIPT_LOOK, queues, n, 1);
    jobq__redis_number(&store->link, (int64_t)n);
}

static int read_look(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                     void *with)
{
    look_state *state = with;
    rds_news *news = store->news;
    rds_walk walk = {answer, 0};
    bool ready = jobq__redis_int(&walk) != 0;
    int64_t now = jobq__redis_int(&walk), due = jobq__redis_int(&walk);
    int64_t at = due > 0 ? jobq__clock_mono_ms() + due - now : 0;
    int rc = 0;

    (void)queues;
    if (at > 0 && (news->due_ms == 0 || at < news->due_ms))
        news->due_ms = at;
    state->ready = state->ready || ready || (due > 0 && due <= now);
    while (jobq__redis_more(&walk) && rc == 0) {
        size_t queue = state->asked + (size_t)jobq__redis_int(&walk);
        int64_t priority = jobq__redis_int(&walk);

        rc = watch(news, queue, priority, jobq__redis_text(&walk));
    }
    state->asked += n;
    return rc;
}

/* The streams a reader has: on one server all, on a Cluster those of one queue, or the prefix's. */
static void share_out(rds_store *store)
{
    rds_news *news = store->news;
    size_t before = news->reader_count;
    reader *r = NULL;

    news->reader_count = 0;
    news->all_read = true;
    for (size_t i = 0; i < news->count; i++) {
        const watched *row = &news->streams[i];
        bool begins = !r || (store->cluster && (row->priority == NEWS));

        if (begins && news->reader_count == READERS) {
            news->all_read = false;
            break;
        }
        if (begins) {
            r = &news->readers[news->reader_count++];
            r->first = i;
            r->count = r->set = 0;
        }
        r->count++;
        r->set = r->set * 31 + (uint32_t)row->queue * 16 + (uint32_t)row->priority + 2;
    }
    for (size_t i = news->reader_count; i < before; i++)
        drop(&news->readers[i]);
}

/* The number and the last news of it. */
static void ask_control(rds_store *store)
{
    jobq__redis_ask(store, "GET", ":control");
    jobq__redis_begin(&store->link, 6);
    jobq__redis_words(&store->link, "XREVRANGE");
    jobq__redis_base_word(store, ":wake");
    jobq__redis_words(&store->link, "+");
    jobq__redis_words(&store->link, "-");
    jobq__redis_words(&store->link, "COUNT");
    jobq__redis_words(&store->link, "1");
}

static int read_control(rds_store *store, rds_value **values, void *with)
{
    const bool told = values[1]->count > 0;
    rds_walk walk = {told ? values[1]->item[0] : NULL, 0};

    (void)with;
    store->control = jobq__redis_number_of(values[0]);
    return watch(store->news, 0, CONTROL_NEWS,
                 told ? jobq__redis_text(&walk) : jobq__slice_text("0-0"));
}

static int look(rds_store *store, const jobq_wait *w, bool *ready_out)
{
    static const rds_visit visit = {.ask = ask_look,
                                    .read = read_look,
                                    .together = true,
                                    .before = 2,
                                    .read_before = read_control,
                                    .kind = RDS_READS};
    look_state state = {.w = w};
    rds_names queues = {(jobq_slice *)w->queues, w->queue_count};
    rds_news *news = store->news;
    int rc = jobq__redis_enter(store);

    news->count = 0;
    news->due_ms = 0;
    if (rc < 0)
        return rc;
    ask_control(store);
    rc = jobq__redis_visit(store, &visit, &queues, &state);
    if (rc < 0)
        return rc;
    share_out(store);
    *ready_out = state.ready;
    return 0;
}

/* ---- the blocking reads ---------------------------------------------------------------------- */

static void write_key(rds_store *store, const jobq_wait *w, const watched *row)
{
    jobq__buf_reset(&store->scratch);
    if (row->priority == CONTROL_NEWS)
        jobq__buf_add(&store->scratch, store->base.p, store->base.n);
    else
        jobq__redis_add_base(store, &store->scratch, w->queues[row->queue]);
    if (row->priority < 0)
        jobq__buf_adds(&store->scratch, ":wake");
    else
        jobq__buf_addf(&store->scratch, ":p%d", (int)row->priority);
}

static int send_read(rds_store *store, const jobq_wait *w, reader *r, int64_t deadline_ms)
{
    const watched *streams = store->news->streams + r->first;
    rds_link *link = &r->link;
    int rc;

    jobq__redis_clear(link);
    jobq__redis_begin(link, 6 + 2 * r->count);
    jobq__redis_words(link, "XREAD");
    jobq__redis_words(link, "COUNT");
    jobq__redis_words(link, "1");
    jobq__redis_words(link, "BLOCK");
    jobq__redis_number(link, BLOCK_MS);
    jobq__redis_words(link, "STREAMS");
    for (size_t i = 0; i < r->count; i++) {
        write_key(store, w, &streams[i]);
        if (store->scratch.failed)
            return jobq__error_nomem();
        jobq__redis_word(link, store->scratch.p, store->scratch.n);
    }
    for (size_t i = 0; i < r->count; i++)
        jobq__redis_words(link, streams[i].last);
    rc = jobq__redis_send(link, deadline_ms);
    r->asked = rc == 0;
    r->asked_set = r->set;
    return rc;
}

/* A read that is under way over the same streams is as good as a new one: it began earlier. */
static int begin_read(rds_store *store, const jobq_wait *w, reader *r, bool same)
{
    int64_t deadline = jobq__redis_connect_deadline(store);
    int rc = 0;

    if (r->asked && same && r->asked_set == r->set)
        return 0;
    if (r->asked || (store->cluster && !same) || /* another server may have the first stream now */
        (r->link.fd >= 0 && jobq__redis_is_stale(&r->link)))
        drop(r);
    if (r->link.fd < 0) {
        write_key(store, w, &store->news->streams[r->first]);
        rc = jobq__redis_greet(store, &r->link, false,
                               jobq__slice(store->scratch.p, store->scratch.n), deadline);
    }
    rc = rc ? rc : send_read(store, w, r, deadline);
    if (rc < 0)
        drop(r);
    return rc;
}

static int begin_reads(rds_store *store, const jobq_wait *w)
{
    rds_news *news = store->news;
    const bool same = news->of == hash_queues(w);
    int rc = 0;

    for (size_t i = 0; i < news->reader_count && rc == 0; i++)
        rc = begin_read(store, w, &news->readers[i], same);
    news->of = hash_queues(w);
    return rc;
}

static watched *find_stream(rds_store *store, const jobq_wait *w, const reader *r,
                            const rds_value *key)
{
    for (size_t i = r->first; i < r->first + r->count; i++) {
        write_key(store, w, &store->news->streams[i]);
        if (store->scratch.n == key->n && memcmp(store->scratch.p, key->p, key->n) == 0)
            return &store->news->streams[i];
    }
    return NULL;
}

/* New entries: the read goes on behind them. False: something else has happened. */
static bool note_entries(rds_store *store, const jobq_wait *w, const reader *r,
                         const rds_value *value)
{
    if (value->count == 0)
        return false;
    for (size_t i = 0; i < value->count; i++) {
        const rds_value *one = value->item[i];
        watched *row = one->count == 2 ? find_stream(store, w, r, one->item[0]) : NULL;
        const rds_value *entries = one->count == 2 ? one->item[1] : NULL;

        if (!row || row->priority < 0 || entries->count == 0 || entries->item[0]->count != 2 ||
            entries->item[0]->item[0]->type != RDS_TEXT || entries->item[0]->item[0]->n >= ENTRY)
            return false;
        memcpy(row->last, entries->item[0]->item[0]->p, entries->item[0]->item[0]->n + 1);
    }
    return true;
}

/* Has the read ended? JOBQ_WAIT_JOBS: yes; 0: it goes on. `on` = read on behind new entries. */
static int read_news(rds_store *store, const jobq_wait *w, reader *r, bool on)
{
    rds_value *value;
    int rc = jobq__redis_peek(&r->link, &value);

    if (rc > 0) {
        r->asked = false;
        if (value->type == RDS_ERROR && jobq__redis_cluster_note(store, value)) {
            store->news->moved = true;
            drop(r);
            return JOBQ_WAIT_JOBS;
        }
        if (value->type == RDS_ERROR) /* UNBLOCKED at a failover: all is asked anew */
            rc = jobq__redis_refused(store, value);
        else if (on && note_entries(store, w, r, value))
            rc = send_read(store, w, r, jobq__clock_mono_ms() + store->config->read_timeout_ms);
        jobq__arena_reset(&r->link.arena);
        rc = rc < 0 ? rc : JOBQ_WAIT_JOBS;
    }
    if (rc < 0)
        drop(r);
    return rc;
}

/* ---- the wait -------------------------------------------------------------------------------- */

static bool all_asked(const rds_news *news)
{
    for (size_t i = 0; i < news->reader_count; i++)
        if (!news->readers[i].asked)
            return false;
    return news->reader_count > 0;
}

/* What those have to say whose connections are readable. */
static int read_all(rds_store *store, const jobq_wait *w, const struct pollfd *fds)
{
    rds_news *news = store->news;
    int rc = 0;

    for (size_t i = 0; i < news->reader_count && rc == 0; i++)
        if (fds[i].revents)
            rc = read_news(store, w, &news->readers[i], true);
    return rc;
}

/* JOBQ_WAIT_TIMEOUT at the deadline, JOBQ_WAIT_JOBS when there is news. */
static int sleep_until(rds_store *store, const jobq_wait *w, int64_t deadline_ms)
{
    const rds_news *news = store->news;
    struct pollfd fds[READERS + 1];

    for (;;) {
        int64_t left = deadline_ms - jobq__clock_mono_ms();
        int n, rc;

        fds[0] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
        for (size_t i = 0; i < news->reader_count; i++)
            fds[1 + i] = (struct pollfd){.fd = news->readers[i].link.fd, .events = POLLIN};
        n = poll(fds, 1 + news->reader_count, left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left);
        if (n < 0)
            return jobq__refuse_wait("redis");
        if (n > 0 && fds[0].revents)
            return JOBQ_WAIT_WOKEN;
        rc = n > 0 ? read_all(store, w, fds + 1) : 0;
        if (rc != 0)
            return rc;
        if (n == 0 && left <= 0)
            return JOBQ_WAIT_TIMEOUT;
    }
}

/* The reads stood before an exchange that left nothing behind, and have not ended. */
static bool need_no_look(rds_store *store, const jobq_wait *w)
{
    rds_news *news = store->news;

    for (size_t i = 0; i < news->reader_count; i++) {
        reader *r = &news->readers[i];
        struct pollfd p = {.fd = r->link.fd, .events = POLLIN};

        if (r->asked && poll(&p, 1, 0) != 0 && read_news(store, w, r, false) < 0)
            jobq__error_clear(); /* it is asked anew */
    }
    return store->found_empty && all_asked(news) && news->all_read && news->of == hash_queues(w) &&
           (news->due_ms == 0 || news->due_ms > jobq__clock_mono_ms());
}

static int look_first(rds_store *store, const jobq_wait *w, bool *ready_out)
{
    const bool looks = !need_no_look(store, w);
    int rc = looks ? look(store, w, ready_out) : 0;

    if (rc == 0 && w->control && *w->control != store->control)
        return JOBQ_WAIT_CONTROL;
    if (rc == 0 && *ready_out)
        return JOBQ_WAIT_JOBS;
    return rc || !looks ? rc : begin_reads(store, w);
}

/* When the sleep ends without news: at the end of the wait, when a delayed job is due, or for
 * another look at what nobody reads. */
static int64_t sleep_end(const rds_news *news, const jobq_wait *w, int64_t end_ms)
{
    int64_t now = jobq__clock_mono_ms(), end = end_ms;

    if (news->due_ms > 0 && news->due_ms < end)
        end = news->due_ms;
    if (!news->all_read && now + w->poll_ms < end)
        end = now + w->poll_ms;
    return end;
}

/* One look and one sleep. JOBQ_WAIT_TIMEOUT only at the end of the wait. */
static int wait_once(rds_store *store, const jobq_wait *w, int64_t end_ms, bool *again_out)
{
    rds_news *news = store->news;
    bool ready = false;
    int64_t end;
    int rc = look_first(store, w, &ready);

    *again_out = false;
    if (rc != 0)
        return rc;
    end = sleep_end(news, w, end_ms);
    rc = sleep_until(store, w, end);
    if (rc == JOBQ_WAIT_TIMEOUT && news->due_ms > 0 && news->due_ms <= end)
        return JOBQ_WAIT_JOBS;
    *again_out = rc == JOBQ_WAIT_TIMEOUT ? end < end_ms
                 : rc == JOBQ_WAIT_JOBS  ? !all_asked(news) /* no entry: a look says what it is */
                                         : false;
    if (news->moved) { /* there is nothing to be told as long as the slot has no place */
        poll(NULL, 0, MOVING_MS);
        news->moved = false;
    }
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
    if (w->job.p && w->queue_count == 0)
        return jobq__redis_await(store, w);
    do {
        rc = wait_once(store, w, end, &again);
        store->found_empty = store->found_empty && !again && rc != JOBQ_WAIT_JOBS;
    } while (again);
    return rc;
}
