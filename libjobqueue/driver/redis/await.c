/* SPDX-License-Identifier: MIT
 *
 * Waiting for the end of one job (rule N7). Who waits says so in the queue for a while; from then
 * on scripts tell in a stream of its own what ends there, and a blocking read hears of it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    LOOKED_AT = 40000,
    BLOCK_MS = 20000,
    AWAITED_MS = 3 * BLOCK_MS,
    CONTROL_MS = 800,
    UNKNOWN_MS = 1000, /* nobody tells where it stands */
    NO_QUEUE_MS = 100,
    ENTRY = 48,
    PLACE = 64
};

/* What the last look told. */
typedef struct {
    const jobq_wait *w;
    jobq_slice queue;
    bool ended;
    char place[PLACE], last[ENTRY];
} awaited;

static void keep(char *to, size_t room, jobq_slice text)
{
    snprintf(to, room, "%.*s", (int)text.n, (const char *)text.p);
}

static int look(rds_store *store, awaited *a)
{
    rds_value *values[2];
    rds_walk walk;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    jobq__redis_ask(store, "GET", ":control");
    jobq__redis_script(store, RDS_SCRIPT_STANDS, &a->queue, 1, 4);
    jobq__redis_word(&store->link, a->w->job.p, a->w->job.n);
    jobq__redis_number(&store->link, jobq__redis_id_time(a->w->job));
    jobq__redis_number(&store->link, LOOKED_AT);
    jobq__redis_number(&store->link, AWAITED_MS);
    rc = jobq__redis_round(store, values, 2, RDS_READS);
    for (size_t i = 0; i < 2 && rc == 0; i++)
        if (values[i]->type == RDS_ERROR)
            rc = jobq__redis_refused(store, values[i]);
    if (rc < 0)
        return rc;
    store->control = jobq__redis_number_of(values[0]);
    walk = (rds_walk){values[1], 0};
    a->ended = jobq__redis_int(&walk) != 0;
    keep(a->place, sizeof(a->place), jobq__redis_text(&walk));
    keep(a->last, sizeof(a->last), jobq__redis_text(&walk));
    return 0;
}

static int ask(rds_store *store, const awaited *a, rds_link *link)
{
    const int64_t deadline = jobq__redis_connect_deadline(store);
    int rc = 0;

    jobq__buf_reset(&store->scratch);
    jobq__redis_add_base(store, &store->scratch, a->queue);
    jobq__buf_adds(&store->scratch, ":ended");
    if (store->scratch.failed)
        return jobq__error_nomem();
    if (link->fd >= 0 && jobq__redis_is_stale(link))
        jobq__redis_hang_up(link);
    if (link->fd < 0)
        rc = jobq__redis_greet(store, link, false, jobq__slice(store->scratch.p, store->scratch.n),
                               deadline);
    if (rc < 0)
        return rc;
    jobq__redis_clear(link);
    jobq__redis_begin(link, 8);
    jobq__redis_words(link, "XREAD");
    jobq__redis_words(link, "COUNT");
    jobq__redis_words(link, "100");
    jobq__redis_words(link, "BLOCK");
    jobq__redis_number(link, BLOCK_MS);
    jobq__redis_words(link, "STREAMS");
    jobq__buf_reset(&store->scratch); /* the greeting may have used it */
    jobq__redis_add_base(store, &store->scratch, a->queue);
    jobq__buf_adds(&store->scratch, ":ended");
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    jobq__redis_words(link, a->last);
    return jobq__redis_send(link, deadline);
}

/* Is it one of those told, by its place or its id? */
static bool is_ours(const awaited *a, const rds_value *entry)
{
    const rds_value *fields = entry->count == 2 ? entry->item[1] : NULL;
    const rds_value *id = fields && fields->count == 2 ? fields->item[1] : NULL;

    if (!id || id->type != RDS_TEXT || fields->item[0]->type != RDS_TEXT)
        return true; /* whatever it is, a look says more */
    return strcmp(fields->item[0]->p, a->place) == 0 ||
           jobq__slice_equal(jobq__slice(id->p, id->n), a->w->job);
}

/* Another look is needed: its end was told, a whole page was (some may be gone), or the block is
 * over. Else the read goes on behind them. */
static bool wants_look(awaited *a, const rds_value *value)
{
    const rds_value *entries;

    if (value->count != 1 || value->item[0]->count != 2)
        return true;
    entries = value->item[0]->item[1];
    if (entries->count == 0 || entries->count >= 100)
        return true;
    for (size_t i = 0; i < entries->count; i++) {
        const rds_value *entry = entries->item[i];

        if (is_ours(a, entry))
            return true;
        keep(a->last, sizeof(a->last), jobq__slice(entry->item[0]->p, entry->item[0]->n));
    }
    return false;
}

static int64_t until(const rds_store *store, const awaited *a, int64_t end_ms)
{
    const int64_t now = jobq__clock_mono_ms();
    int64_t span = a->place[0] == 'r' || !a->place[0] ? UNKNOWN_MS : BLOCK_MS + 1000;

    (void)store;
    if (a->w->control && span > CONTROL_MS)
        span = CONTROL_MS;
    return now + span < end_ms ? now + span : end_ms;
}

/* Sleeps until news came (JOBQ_WAIT_JOBS: look again), the descriptor is readable, or its end. */
static int sleep_on(const awaited *a, rds_link *link, int64_t deadline_ms)
{
    struct pollfd fds[2] = {{.fd = a->w->wake_fd, .events = POLLIN},
                            {.fd = link ? link->fd : -1, .events = POLLIN}};
    const int64_t left = deadline_ms - jobq__clock_mono_ms();
    int n = poll(fds, 2, left < 0 ? 0 : (int)left);

    if (n < 0)
        return jobq__refuse_wait("redis");
    return fds[0].revents ? JOBQ_WAIT_WOKEN : n > 0 ? JOBQ_WAIT_JOBS : JOBQ_WAIT_TIMEOUT;
}

/* JOBQ_WAIT_JOBS: look again; 0: read on. */
static int read_news(rds_store *store, awaited *a, const rds_value *value)
{
    if (value->type != RDS_ERROR)
        return wants_look(a, value) ? JOBQ_WAIT_JOBS : 0;
    if (!jobq__redis_cluster_note(store, value))
        return jobq__redis_refused(store, value);
    jobq__redis_hang_up(jobq__redis_spare_link(store));
    poll(NULL, 0, NO_QUEUE_MS); /* as long as the slot has no place nothing is told */
    return JOBQ_WAIT_JOBS;
}

/* Reads until something calls for a look: JOBQ_WAIT_JOBS. */
static int listen(rds_store *store, awaited *a, rds_link *link, int64_t end_ms)
{
    const int64_t deadline = until(store, a, end_ms);
    rds_value *value;
    int rc = ask(store, a, link);

    while (rc == 0) {
        rc = sleep_on(a, link, deadline);
        if (rc != JOBQ_WAIT_JOBS)
            break;
        rc = jobq__redis_peek(link, &value);
        if (rc > 0) {
            rc = read_news(store, a, value);
            jobq__arena_reset(&link->arena);
            if (rc > 0)
                return rc;
            rc = rc ? rc : ask(store, a, link);
        }
    }
    jobq__redis_hang_up(link); /* a read that is under way is of no use to the next */
    return rc == JOBQ_WAIT_TIMEOUT && jobq__clock_mono_ms() < end_ms ? JOBQ_WAIT_JOBS : rc;
}

/* Without its queue it may be anywhere: whoever waits looks now and then. */
static int pass_time(const jobq_wait *w, int64_t end_ms)
{
    const awaited a = {.w = w};
    const int64_t now = jobq__clock_mono_ms();
    const int64_t gap = w->poll_ms > 0 && w->poll_ms < NO_QUEUE_MS ? w->poll_ms : NO_QUEUE_MS;
    int rc = sleep_on(&a, NULL, now + gap < end_ms ? now + gap : end_ms);

    return rc == JOBQ_WAIT_TIMEOUT && jobq__clock_mono_ms() < end_ms ? JOBQ_WAIT_JOBS : rc;
}

int jobq__redis_await(rds_store *store, const jobq_wait *w)
{
    const int64_t start = jobq__clock_mono_ms();
    const int64_t end = w->timeout_ms < 0 ? start + ((int64_t)1 << 40) : start + w->timeout_ms;
    awaited a = {.w = w};
    int rc = JOBQ_WAIT_JOBS;

    if (!w->queues)
        return pass_time(w, end);
    a.queue = w->queues[0];
    while (rc == JOBQ_WAIT_JOBS) {
        rc = look(store, &a);
        if (rc < 0)
            return rc;
        if (a.ended)
            return JOBQ_WAIT_JOBS;
        if (w->control && *w->control != store->control)
            return JOBQ_WAIT_CONTROL;
        rc = listen(store, &a, jobq__redis_spare_link(store), end);
    }
    return rc;
}
