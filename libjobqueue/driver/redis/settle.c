/* SPDX-License-Identifier: MIT
 *
 * Settling: the settlements of a batch by queue and stream, one script call per queue.
 */
#include "driver/redis/reserve.h"

#include <string.h>

#include "util/error.h"

enum { NO_GROUP = -1, REASONS = 256 };
#define LONGEST_MS ((int64_t)1 << 44)

/* One stream of the batch. */
typedef struct {
    jobq_slice queue;
    uint32_t hash;
    uint8_t priority;
    rds_entry low, high;
    size_t count, follows;
} settle_group;

struct rds_settling {
    settle_group *groups;
    size_t group_count;
    int *group_of;  /* of each settlement */
    size_t *order;  /* settlements in the order they were sent */
    size_t *starts; /* of each script in it */
    size_t scripts, sent;
};

static bool before(rds_entry a, rds_entry b)
{
    return a.ms < b.ms || (a.ms == b.ms && a.seq < b.seq);
}

static settle_group *find_group(rds_settling *s, jobq_slice queue, const rds_token *token)
{
    for (size_t i = s->group_count; i-- > 0;)
        if (s->groups[i].hash == token->queue && s->groups[i].priority == token->priority &&
            jobq__slice_equal(s->groups[i].queue, queue))
            return &s->groups[i];
    s->groups[s->group_count] = (settle_group){.queue = queue,
                                               .hash = token->queue,
                                               .priority = token->priority,
                                               .low = token->entry,
                                               .high = token->entry};
    return &s->groups[s->group_count++];
}

/* A token of another queue is none of this job's. */
static void sort_in(rds_settling *s, jobq_settlement *one, size_t i)
{
    rds_token token = jobq__redis_token_parts(one->token);
    settle_group *group;

    one->result = 0;
    s->group_of[i] = NO_GROUP;
    if (token.priority >= RDS_PRIORITIES || token.count == 0 ||
        token.queue != jobq__redis_hash(one->queue)) {
        one->result = JOBQ_ELEASE;
        return;
    }
    group = find_group(s, one->queue, &token);
    if (before(token.entry, group->low))
        group->low = token.entry;
    if (before(group->high, token.entry))
        group->high = token.entry;
    group->count++;
    group->follows += one->follow != NULL;
    s->group_of[i] = (int)(group - s->groups);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_i64(jobq__buf *out, int64_t value)
{
    for (int i = 0; i < 8; i++)
        jobq__buf_addc(out, (char)((uint64_t)value >> (8 * i)));
}

static void add_text(jobq__buf *out, jobq_slice text)
{
    uint32_t n = text.p ? (uint32_t)text.n : UINT32_MAX;

    for (int i = 0; i < 4; i++)
        jobq__buf_addc(out, (char)(n >> (8 * i)));
    jobq__buf_add(out, text.p, text.n);
}

static void add_changes(jobq__buf *out, const jobq_settlement *one, int64_t number)
{
    const jobq_counters *c = &one->counters;
    const int64_t values[] = {number,    c->failures,   c->crashes, c->releases,
                              c->losses, c->exceptions, c->parks,   c->parked_since_ms};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        add_i64(out, values[i]);
    add_text(out, one->error);
    add_text(out, one->history);
}

/* Most have nothing but their entry, some an index or a trace, which the id finds. */
static void add_done(jobq__buf *out, const jobq_settlement *one, uint8_t flags)
{
    if (!(flags & ~(RDS_HEADER | RDS_BODY))) {
        jobq__buf_addc(out, 'D');
    } else if (flags & (RDS_UNIQUE | RDS_MARKED)) {
        jobq__buf_addc(out, 'E');
    } else {
        jobq__buf_addc(out, 'F');
        jobq__buf_add(out, one->id.p, one->id.n);
    }
}

/* So that it fits into one number with the reason; 0 = for ever. */
static int64_t kept_for(const jobq_settlement *one)
{
    return one->keep_ms <= 0 ? 0 : one->keep_ms < LONGEST_MS ? one->keep_ms : LONGEST_MS;
}

/* What settle.lua calls an operation. */
static void write_op(jobq__buf *out, const jobq_settlement *one, uint8_t flags)
{
    const bool has_texts = one->error.p || one->history.p;

    switch (one->op) {
    case JOBQ_OP_DONE:
        if (one->keep_ms > 0) {
            jobq__buf_addc(out, one->keep_bare ? 'L' : 'K');
            add_changes(out, one, one->keep_ms);
            add_text(out, one->outcome);
        } else {
            add_done(out, one, flags);
        }
        break;
    case JOBQ_OP_BACK:
        jobq__buf_addc(out, 'B');
        add_changes(out, one, one->delay_ms);
        break;
    case JOBQ_OP_GIVE_BACK:
        jobq__buf_addc(out, flags & RDS_MARKED ? 'T' : 'G');
        if (has_texts)
            add_changes(out, one, 0);
        break;
    case JOBQ_OP_FREE_KEY:
        jobq__buf_addc(out, 'U');
        break;
    case JOBQ_OP_PROGRESS:
        jobq__buf_addc(out, 'P');
        jobq__buf_add(out, one->outcome.p, one->outcome.n);
        break;
    default:
        jobq__buf_addc(out, 'X');
        add_changes(out, one, one->reason + REASONS * kept_for(one));
        if (one->outcome.p)
            add_text(out, one->outcome);
    }
}

static void add_entry(rds_store *store, rds_entry entry)
{
    char text[48];
    size_t at = sizeof(text);

    for (int part = 0; part < 2; part++) {
        uint64_t n = part == 0 ? entry.seq : entry.ms;

        do {
            text[--at] = (char)('0' + n % 10);
            n /= 10;
        } while (n);
        if (part == 0)
            text[--at] = '-';
    }
    jobq__redis_word(&store->link, text + at, sizeof(text) - at);
}

static void add_one(rds_store *store, const jobq_settlement *one)
{
    rds_token token = jobq__redis_token_parts(one->token);

    add_entry(store, token.entry);
    jobq__redis_number(&store->link, token.count);
    jobq__buf_reset(&store->scratch);
    write_op(&store->scratch, one, token.flags);
    jobq__redis_word(&store->link, store->scratch.p, store->scratch.n);
    if (store->scratch.failed)
        store->link.out.failed = true;
}

static void add_group(rds_store *store, const jobq_exchange *x, rds_settling *s, size_t group)
{
    const settle_group *g = &s->groups[group];
    char priority = (char)('0' + g->priority);

    jobq__redis_word(&store->link, &priority, 1);
    add_entry(store, g->low);
    add_entry(store, g->high);
    jobq__redis_number(&store->link, (int64_t)g->count);
    for (size_t i = 0; i < x->settle_count; i++)
        if (s->group_of[i] == (int)group) {
            add_one(store, &x->settle[i]);
            s->order[s->sent++] = i;
        }
}

/* What follows the ends that this script settles. */
static void add_follows(rds_store *store, const jobq_exchange *x, const rds_settling *s,
                        size_t start)
{
    for (size_t i = start; i < s->sent; i++) {
        const jobq_push *follow = x->settle[s->order[i]].follow;

        if (!follow)
            continue;
        jobq__redis_number(&store->link, (int64_t)(i - start));
        jobq__redis_add_item(store, follow);
    }
}

static bool same_queue(const settle_group *a, const settle_group *b)
{
    return a->hash == b->hash && jobq__slice_equal(a->queue, b->queue);
}

/* One script for the queue of this group, unless an earlier one has had it. */
static void add_script(rds_store *store, const jobq_exchange *x, rds_settling *s, size_t first)
{
    size_t words = 3, groups = 0;

    for (size_t i = 0; i < first; i++)
        if (same_queue(&s->groups[i], &s->groups[first]))
            return;
    for (size_t i = first; i < s->group_count; i++)
        if (same_queue(&s->groups[i], &s->groups[first])) {
            words += 4 + 3 * s->groups[i].count + s->groups[i].follows * (1 + RDS_ITEM_WORDS);
            groups++;
        }
    s->starts[s->scripts++] = s->sent;
    jobq__redis_script(store, RDS_SCRIPT_SETTLE, &s->groups[first].queue, 1, words);
    jobq__buf_reset(&store->scratch);
    jobq__buf_addc(&store->scratch, 'w');
    jobq__buf_add(&store->scratch, x->worker.p, x->worker.n);
    jobq__redis_word(&store->link, store->scratch.p, store->scratch.n);
    jobq__redis_words(&store->link, x->queue_count ? "0" : "1"); /* those asked for say it */
    jobq__redis_number(&store->link, (int64_t)groups);
    for (size_t i = first; i < s->group_count; i++)
        if (same_queue(&s->groups[i], &s->groups[first]))
            add_group(store, x, s, i);
    add_follows(store, x, s, s->starts[s->scripts - 1]);
}

int jobq__redis_settle_begin(rds_store *store, jobq_exchange *x, rds_settling **settling_out,
                             size_t *scripts_out)
{
    size_t n = x->settle_count;
    rds_settling *s = jobq__arena_alloc(&store->arena, sizeof(*s));

    if (!s)
        return jobq__error_nomem();
    s->groups = jobq__arena_alloc(&store->arena, n * sizeof(*s->groups));
    s->group_of = jobq__arena_alloc(&store->arena, n * sizeof(*s->group_of));
    s->order = jobq__arena_alloc(&store->arena, n * sizeof(*s->order));
    s->starts = jobq__arena_alloc(&store->arena, n * sizeof(*s->starts));
    if (n && (!s->groups || !s->group_of || !s->order || !s->starts))
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        sort_in(s, &x->settle[i], i);
    for (size_t i = 0; i < s->group_count; i++)
        add_script(store, x, s, i);
    *settling_out = s;
    *scripts_out = s->scripts;
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What one queue refused another one may have done: which, nobody is told. */
static int refuse(rds_store *store, const rds_settling *s, rds_value **values,
                  const rds_value *refusal)
{
    struct jobq_error cause;
    int rc = jobq__redis_refused(store, refusal);

    for (size_t i = 0; i < s->scripts; i++)
        if (values[i]->type == RDS_LIST) {
            jobq__error_save(&cause);
            return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "redis", cause.native,
                                          "%s (other queues of the batch were settled)",
                                          cause.message);
        }
    return rc;
}

int jobq__redis_settle_answers(rds_reservation *r, rds_settling *s, rds_value **values)
{
    rds_store *store = r->store;
    jobq_exchange *x = r->x;

    for (size_t i = 0; i < s->scripts; i++)
        if (values[i]->type != RDS_LIST)
            return refuse(store, s, values, values[i]);
    for (size_t i = 0; i < s->scripts; i++) {
        rds_walk walk = {values[i], 0};
        int64_t now_ms = jobq__redis_int(&walk);

        jobq__redis_note_due(r, now_ms, jobq__redis_int(&walk));

        while (jobq__redis_more(&walk)) {
            size_t place = s->starts[i] + (size_t)jobq__redis_int(&walk);

            if (place >= s->sent)
                return jobq__redis_nonsense(store);
            x->settle[s->order[place]].result = JOBQ_ELEASE;
        }
    }
    return 0;
}
