/* SPDX-License-Identifier: MIT
 *
 * Storing jobs: one script for a batch. Under maxmemory its first write is refused, so nothing is
 * stored half.
 */
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

static bool needs_search(const jobq_push *item)
{
    return !item->fresh_id && is_uuid7(item->id);
}

/* A repeated push with the id of one whose answer was lost (rule B5). */
static int search(rds_store *store, jobq_push *items, size_t n)
{
    rds_value **values = jobq__arena_alloc(&store->arena, n * sizeof(rds_value *));
    size_t asked = 0;
    int rc;

    if (!values)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++) {
        if (!needs_search(&items[i]))
            continue;
        jobq__redis_script(store, RDS_SCRIPT_FIND, 3);
        jobq__redis_word(&store->link, items[i].id.p, items[i].id.n);
        jobq__redis_number(&store->link, jobq__redis_id_time(items[i].id));
        jobq__redis_number(&store->link, LOOKED_AT);
        asked++;
    }
    rc = asked ? jobq__redis_round(store, values, asked, RDS_READS) : 0;
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        if (!needs_search(&items[i]))
            continue;
        if (values[k]->type == RDS_ERROR)
            rc = jobq__redis_refused(store, values[k]);
        if (values[k]->count > 0)
            items[i].result = JOBQ_EEXISTS;
        k++;
    }
    return rc;
}

/* ---- the push -------------------------------------------------------------------------------- */

static void add_item(rds_store *store, const jobq_push *item)
{
    rds_link *link = &store->link;
    char priority = (char)('0' + item->priority);

    jobq__redis_word(link, item->queue.p, item->queue.n);
    jobq__redis_word(link, &priority, 1);
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

/* The i-th of those that were sent. */
static jobq_push *sent_item(jobq_push *items, size_t n, int64_t i)
{
    for (size_t k = 0; k < n; k++)
        if (items[k].result == 0 && i-- == 0)
            return &items[k];
    return NULL;
}

/* What was not stored, last first: so that places stay right. */
static int read_answer(rds_store *store, const rds_value *answer, jobq_push *items, size_t n)
{
    for (size_t i = answer->count; i >= 2; i -= 2) {
        rds_walk walk = {answer, i - 2};
        jobq_push *item = sent_item(items, n, jobq__redis_int(&walk));
        jobq_slice holder = jobq__redis_text(&walk);

        if (!item || holder.n >= sizeof(item->holder))
            return jobq__redis_nonsense(store);
        item->result = holder.n ? 1 : JOBQ_EEXISTS;
        memcpy(item->holder, holder.p, holder.n);
        item->holder[holder.n] = '\0';
    }
    return 0;
}

static int send_items(rds_store *store, jobq_push *items, size_t n)
{
    rds_value *answer;
    size_t count = 0;
    int rc;

    for (size_t i = 0; i < n; i++)
        count += items[i].result == 0;
    if (count == 0)
        return 0;
    jobq__redis_script(store, RDS_SCRIPT_PUSH, 7 * count);
    for (size_t i = 0; i < n; i++)
        if (items[i].result == 0)
            add_item(store, &items[i]);
    rc = jobq__redis_call(store, &answer, RDS_WRITES);
    return rc ? rc : read_answer(store, answer, items, n);
}

/* ---- ordinary jobs --------------------------------------------------------------------------- */

/* Nothing has to be checked, and all go into one stream. */
static bool is_plain(const jobq_push *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!items[i].fresh_id || items[i].unique.p || items[i].at_ms > 0 ||
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

/* Without a script, stored as one. 1 stored, 0 there is no such stream and nothing was stored, or
 * an error. A refused command (OOM) makes EXEC refuse all; its own words are the better ones. */
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
    for (size_t i = 0; i < commands && rc == 0; i++)
        if (values[i]->type == RDS_ERROR)
            return jobq__redis_refused(store, values[i]);
    if (rc < 0)
        return rc;
    last = values[commands - 1];
    if (n > 1 && last->count != n)
        return jobq__redis_nonsense(store);
    return (n > 1 ? last->item[0] : last)->type == RDS_TEXT;
}

int jobq__redis_push(void *handle, jobq_push *items, size_t n)
{
    rds_store *store = handle;
    int rc = jobq__redis_enter(store);

    for (size_t i = 0; i < n; i++)
        items[i].result = 0;
    if (rc == 0 && is_plain(items, n)) {
        rc = push_plain(store, items, n);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    rc = rc ? rc : search(store, items, n);
    return rc ? rc : send_items(store, items, n);
}
