/* SPDX-License-Identifier: MIT
 *
 * Storing jobs: one script for a batch. Under maxmemory its first write is refused, so nothing is
 * stored half.
 */
#include <stdio.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

/* ---- ids that a caller gave ------------------------------------------------------------------ */

static bool is_uuid7(jobq_slice id)
{
    const char *p = id.p;

    return id.n == 36 && p[8] == '-' && p[13] == '-' && p[14] == '7' && p[18] == '-';
}

/* The time in it, -1 = none. */
int64_t jobq__redis_id_time(jobq_slice id)
{
    const char *p = id.p;
    int64_t ms = 0;

    if (!is_uuid7(id))
        return -1;
    for (int i = 0; i < 13; i++) {
        int c = p[i] | 0x20, digit = c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - '0';

        if (i == 8)
            continue;
        if (digit < 0 || digit > 15 || (digit > 9 && c < 'a'))
            return -1;
        ms = ms * 16 + digit;
    }
    return ms;
}

/* A search looks at so many entries of the streams: it stands before every such push, so that what
 * waits must not make it long. */
enum { LOOKED_AT = 2000 };

typedef struct {
    jobq_push *items;
    size_t n, asked, share;
    bool cluster;
} look_up;

/* Scripts see every queue's index on one server, on a Cluster only that of their own. */
static bool needs_search(const jobq_push *item, bool cluster)
{
    return !item->fresh_id && (cluster || is_uuid7(item->id));
}

static void ask_known(rds_store *store, const jobq_slice *queues, size_t n, void *with)
{
    const look_up *l = with;

    jobq__redis_script(store, RDS_SCRIPT_KNOWN, queues, n, 1 + 2 * l->asked);
    jobq__redis_number(&store->link, (int64_t)l->share);
    for (size_t i = 0; i < l->n; i++)
        if (needs_search(&l->items[i], l->cluster)) {
            jobq__redis_word(&store->link, l->items[i].id.p, l->items[i].id.n);
            jobq__redis_number(&store->link, jobq__redis_id_time(l->items[i].id));
        }
}

static int read_known(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                      void *with)
{
    const look_up *l = with;
    rds_walk walk = {answer, 0};

    (void)store;
    (void)queues;
    (void)n;
    while (jobq__redis_more(&walk)) {
        int64_t place = jobq__redis_int(&walk);

        for (size_t i = 0; i < l->n; i++)
            if (needs_search(&l->items[i], l->cluster) && place-- == 0)
                l->items[i].result = JOBQ_EEXISTS;
    }
    return 0;
}

/* A repeated push with the id of one whose answer was lost (rule B5). */
static int search(rds_store *store, jobq_push *items, size_t n)
{
    static const rds_visit visit = {.ask = ask_known, .read = read_known, .kind = RDS_READS};
    look_up l = {.items = items, .n = n, .cluster = store->cluster != NULL};
    rds_names queues = {0};
    int rc;

    for (size_t i = 0; i < n; i++)
        l.asked += needs_search(&items[i], l.cluster);
    if (l.asked == 0)
        return 0;
    rc = jobq__redis_all_queues(store, &queues);
    l.share = jobq__redis_share(LOOKED_AT, queues.count);
    return rc ? rc : jobq__redis_visit(store, &visit, &queues, &l);
}

/* ---- the push -------------------------------------------------------------------------------- */

static void add_words(rds_store *store, const jobq_push *item, bool replacing)
{
    rds_link *link = &store->link;
    char priority[32] = {(char)('0' + item->priority)};

    if (replacing)
        snprintf(priority + 1, sizeof(priority) - 1, "r%lld",
                 (long long)(item->max_wait_ms > 0 ? item->max_wait_ms : 0));
    jobq__buf_reset(&store->scratch);
    jobq__redis_add_base(store, &store->scratch, item->queue);
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    jobq__redis_words(link, priority);
    jobq__redis_word(link, item->id.p, item->id.n);
    jobq__redis_number(link, item->at_ms > 0 ? item->at_ms : 0);
    jobq__redis_number(link, item->at_ms > 0 || item->delay_ms < 0 ? 0 : item->delay_ms);
    jobq__redis_word(link, item->unique.p ? item->unique.p : "", item->unique.n);
    jobq__buf_reset(&store->scratch);
    jobq__redis_write_job(&store->scratch, item);
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    if (store->scratch.failed)
        link->out.failed = true;
}

void jobq__redis_add_item(rds_store *store, const jobq_push *item)
{
    add_words(store, item, false);
}

void jobq__redis_add_replacing(rds_store *store, const jobq_push *item)
{
    add_words(store, item, item->unique.p && item->on_duplicate == JOBQ_DUPLICATE_REPLACE);
}

/* Items that one script stores: all of them, on a Cluster those of one queue. */
typedef struct {
    jobq_push **items;
    size_t count;
} push_group;

/* What was not stored. */
static int read_answer(rds_store *store, const rds_value *answer, const push_group *group)
{
    static const int results[] = {0, 1, 2, JOBQ_EEXISTS, JOBQ_EFULL, JOBQ_EGUARD};

    if (answer->type == RDS_ERROR)
        return jobq__redis_refused(store, answer);
    for (size_t i = 0; i + 2 < answer->count; i += 3) {
        rds_walk walk = {answer, i};
        size_t place = (size_t)jobq__redis_int(&walk);
        size_t result = (size_t)jobq__redis_int(&walk);
        jobq_slice holder = jobq__redis_text(&walk);
        jobq_push *item = place < group->count ? group->items[place] : NULL;

        if (!item || holder.n >= sizeof(item->holder) || result > 5)
            return jobq__redis_nonsense(store);
        item->result = results[result];
        memcpy(item->holder, holder.p, holder.n);
        item->holder[holder.n] = '\0';
    }
    return 0;
}

static bool goes_with(const rds_store *store, const push_group *group, const jobq_push *item)
{
    return !store->cluster || jobq__slice_equal(group->items[0]->queue, item->queue);
}

/* By queue, in the order given. */
static size_t sort_in(const rds_store *store, push_group *groups, jobq_push *items, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        size_t g = 0;

        if (items[i].result != 0)
            continue;
        while (g < count && !goes_with(store, &groups[g], &items[i]))
            g++;
        if (g == count) {
            count++;
            groups[g].items = g ? groups[g - 1].items + groups[g - 1].count : groups[0].items;
        }
        /* Room behind is the later groups': they move up by one. */
        memmove(groups[g].items + groups[g].count + 1, groups[g].items + groups[g].count,
                (size_t)(groups[count - 1].items + groups[count - 1].count -
                         (groups[g].items + groups[g].count)) *
                    sizeof(jobq_push *));
        for (size_t k = g + 1; k < count; k++)
            groups[k].items++;
        groups[g].items[groups[g].count++] = &items[i];
    }
    return count;
}

/* The names come into the list of queues before anything is in them. */
static void ask_listing(rds_store *store, const push_group *groups, size_t count)
{
    size_t words = 0;

    for (size_t g = 0; g < count; g++)
        words += groups[g].count;
    jobq__redis_begin(&store->link, 2 + words);
    jobq__redis_words(&store->link, "SADD");
    jobq__redis_base_word(store, ":queues");
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const jobq_slice queue = groups[g].items[i]->queue;
            const bool hidden = jobq__queue_is_hidden(queue);

            jobq__redis_word(&store->link, (const char *)queue.p + hidden, queue.n - hidden);
        }
}

static void ask_group(rds_store *store, const push_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (jobq__redis_is_special(group->items[i])) {
            jobq__redis_ask_admit(store, group->items, group->count);
            return;
        }
    jobq__redis_script(store, RDS_SCRIPT_PUSH, &group->items[0]->queue, 1,
                       1 + RDS_ITEM_WORDS * group->count);
    if (store->cluster)
        jobq__redis_words(&store->link, "");
    else
        jobq__redis_base_word(store, "");
    for (size_t i = 0; i < group->count; i++)
        jobq__redis_add_item(store, group->items[i]);
}

/* Some servers of a Cluster have stored theirs, another one has refused its own. */
static int stored_in_part(void)
{
    struct jobq_error cause;

    jobq__error_save(&cause);
    return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "redis", cause.native,
                                  "%s (other queues of the batch were stored)", cause.message);
}

static int send_items(rds_store *store, jobq_push *items, size_t n)
{
    push_group *groups = jobq__arena_alloc(&store->arena, n * sizeof(*groups));
    rds_value **values = jobq__arena_alloc(&store->arena, (n + 1) * sizeof(rds_value *));
    size_t count, good = 0;
    int rc, refused = 0;

    if (!groups || !values)
        return jobq__error_nomem();
    groups[0].items = jobq__arena_alloc(&store->arena, (n + 1) * sizeof(jobq_push *));
    if (!groups[0].items)
        return jobq__error_nomem();
    count = sort_in(store, groups, items, n);
    if (count == 0)
        return 0;
    ask_listing(store, groups, count);
    for (size_t g = 0; g < count; g++)
        ask_group(store, &groups[g]);
    rc = jobq__redis_round(store, values, 1 + count, RDS_WRITES);
    for (size_t g = 0; g < count && rc == 0; g++) {
        int one = read_answer(store, values[1 + g], &groups[g]);

        good += one == 0;
        refused = refused ? refused : one;
    }
    if (rc == 0 && refused && good)
        return stored_in_part();
    return rc ? rc : refused;
}

/* ---- ordinary jobs --------------------------------------------------------------------------- */

/* Nothing has to be checked, and all go into one stream. */
static bool is_plain(const rds_store *store, const jobq_push *items, size_t n)
{
    if (store->cluster && n > 1) /* a transaction would not survive a slot that moves */
        return false;
    if (store->closed == jobq__redis_hash(items[0].queue))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!items[i].fresh_id || items[i].unique.p || items[i].guard || items[i].at_ms > 0 ||
            items[i].delay_ms > 0 || items[i].priority != items[0].priority ||
            !jobq__slice_equal(items[i].queue, items[0].queue))
            return false;
    return true;
}

static void add_plain(rds_store *store, const jobq_slice key, const jobq_push *item)
{
    rds_link *link = &store->link;

    jobq__redis_begin(link, 6);
    jobq__redis_word(link, "XADD", 4);
    jobq__redis_word(link, key.p, key.n);
    jobq__redis_word(link, "NOMKSTREAM", 10);
    jobq__redis_word(link, "*", 1);
    jobq__redis_word(link, "j", 1);
    jobq__buf_reset(&store->scratch);
    jobq__redis_write_job(&store->scratch, item);
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    if (store->scratch.failed)
        link->out.failed = true;
}

static void add_all(rds_store *store, const jobq_slice key, const jobq_push *items, size_t n)
{
    if (n > 1) {
        jobq__redis_begin(&store->link, 1);
        jobq__redis_words(&store->link, "MULTI");
    }
    for (size_t i = 0; i < n; i++)
        add_plain(store, key, &items[i]);
    if (n > 1) {
        jobq__redis_begin(&store->link, 1);
        jobq__redis_words(&store->link, "EXEC");
    }
}

/* What a stream says that is closed: its queue has a capacity, and a script counts (append in
 * scripts/lib.lua). */
static bool is_closed(const rds_value *value)
{
    if (value->type == RDS_LIST && value->count > 0)
        value = value->item[0];
    return value->type == RDS_ERROR && strstr(value->p, "last possible ID");
}

/* Without a script, stored as one. 1 stored; 0 there is no such stream, or it is closed: nothing
 * was stored; or an error. A refused command (OOM) makes EXEC refuse all; its own words are
 * better. */
static int push_plain(rds_store *store, const jobq_push *items, size_t n)
{
    size_t commands = n > 1 ? n + 2 : 1;
    rds_value **values = jobq__arena_alloc(&store->arena, commands * sizeof(rds_value *));
    const rds_value *last;
    jobq_slice key;
    int rc;

    jobq__buf_reset(&store->scratch);
    jobq__redis_add_base(store, &store->scratch, items[0].queue);
    jobq__buf_addf(&store->scratch, ":p%d", items[0].priority);
    key.n = store->scratch.n;
    key.p = jobq__arena_copy(&store->arena, store->scratch.p, key.n);
    if (!values || !key.p || store->scratch.failed)
        return jobq__error_nomem();
    add_all(store, key, items, n);
    rc = jobq__redis_round(store, values, commands, RDS_WRITES);
    if (rc < 0)
        return rc;
    last = values[commands - 1];
    if (is_closed(last)) {
        store->closed = jobq__redis_hash(items[0].queue);
        return 0;
    }
    for (size_t i = 0; i < commands; i++)
        if (values[i]->type == RDS_ERROR)
            return jobq__redis_refused(store, values[i]);
    if (n > 1 && last->count != n)
        return jobq__redis_nonsense(store);
    return (n > 1 ? last->item[0] : last)->type == RDS_TEXT;
}

/* The same id twice, which different servers would not notice. */
static bool has_twins(const jobq_push *items, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i && !items[i].fresh_id; k++)
            if (jobq__slice_equal(items[i].id, items[k].id))
                return true;
    return false;
}

static int push_singly(rds_store *store, jobq_push *items, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = search(store, &items[i], 1);
        rc = rc ? rc : send_items(store, &items[i], 1);
        if (rc < 0 && i > 0)
            rc = stored_in_part();
    }
    return rc;
}

int jobq__redis_push(void *handle, jobq_push *items, size_t n)
{
    rds_store *store = handle;
    int rc = jobq__redis_enter(store);

    for (size_t i = 0; i < n; i++)
        items[i].result = 0;
    if (rc == 0 && is_plain(store, items, n)) {
        rc = push_plain(store, items, n);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    if (rc == 0 && store->cluster && has_twins(items, n))
        return push_singly(store, items, n);
    rc = rc ? rc : search(store, items, n);
    return rc ? rc : send_items(store, items, n);
}
