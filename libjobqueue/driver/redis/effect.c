/* SPDX-License-Identifier: MIT
 *
 * The caller's own texts: conditions of a push and work that is tied to a hand-out (rules B7, O1).
 * scripts/run.lua runs them; they travel as words, their values too.
 */
#include <inttypes.h>
#include <stdio.h>

#include "driver/redis/redis.h"
#include "util/error.h"
#include "util/str.h"

/* Redis knows texts only; NULL is the empty one. */
static void add_param(rds_link *link, const jobq_param *p)
{
    char number[40];

    switch (p->type) {
    case JOBQ_PARAM_INT:
        jobq__redis_number(link, p->integer);
        break;
    case JOBQ_PARAM_DOUBLE:
        jobq__str_put_double(number, 17, p->real);
        jobq__redis_words(link, number);
        break;
    case JOBQ_PARAM_TEXT:
    case JOBQ_PARAM_BYTES:
        jobq__redis_word(link, p->bytes.p ? p->bytes.p : "", p->bytes.n);
        break;
    default:
        jobq__redis_words(link, "");
    }
}

void jobq__redis_add_params(rds_store *store, const jobq_statement *statement)
{
    for (size_t i = 0; i < statement->param_count; i++)
        add_param(&store->link, &statement->params[i]);
}

/* ---- guards ---------------------------------------------------------------------------------- */

bool jobq__redis_is_special(const jobq_push *item)
{
    return item->guard || (item->unique.p && item->on_duplicate == JOBQ_DUPLICATE_REPLACE);
}

void jobq__redis_ask_admit(rds_store *store, jobq_push *const *items, size_t n)
{
    rds_link *link = &store->link;
    size_t words = 3 + RDS_ITEM_WORDS * n;

    for (size_t i = 0; i < n; i++)
        words += items[i]->guard ? 3 + items[i]->guard->param_count : 0;
    jobq__redis_script(store, RDS_SCRIPT_ADMIT, &items[0]->queue, 1, words);
    if (store->cluster)
        jobq__redis_words(link, "");
    else
        jobq__redis_base_word(store, "");
    jobq__redis_words(link, store->cluster ? "1" : "0");
    jobq__redis_number(link, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        jobq__redis_add_replacing(store, items[i]);
    for (size_t i = 0; i < n; i++) {
        const jobq_statement *guard = items[i]->guard;

        if (!guard)
            continue;
        jobq__redis_number(link, (int64_t)i);
        jobq__redis_word(link, guard->text.p, guard->text.n);
        jobq__redis_number(link, (int64_t)guard->param_count);
        jobq__redis_add_params(store, guard);
    }
}

/* ---- effects --------------------------------------------------------------------------------- */

static void ask_effect(rds_store *store, const jobq_effect *e, const rds_token *t)
{
    rds_link *link = &store->link;
    char entry[48], priority[2] = {(char)('0' + t->priority)};

    jobq__redis_script(store, RDS_SCRIPT_EFFECT, &e->queue, 1, 6 + e->statement.param_count);
    jobq__buf_reset(&store->scratch);
    jobq__buf_addc(&store->scratch, 'w');
    jobq__buf_add(&store->scratch, e->worker.p, e->worker.n);
    jobq__redis_word(link, store->scratch.p, store->scratch.n);
    jobq__redis_words(link, priority);
    snprintf(entry, sizeof(entry), "%" PRIu64 "-%" PRIu64, t->entry.ms, t->entry.seq);
    jobq__redis_words(link, entry);
    jobq__redis_number(link, t->count);
    jobq__redis_words(link, store->cluster ? "1" : "0");
    jobq__redis_word(link, e->statement.text.p, e->statement.text.n);
    jobq__redis_add_params(store, &e->statement);
    if (store->scratch.failed)
        link->out.failed = true;
}

static int read_effect(const rds_value *answer, jobq_effect *e)
{
    rds_walk walk = {answer, 0};
    jobq_slice kind, text;

    e->result = jobq__redis_int(&walk) ? JOBQ_ELEASE : 0;
    e->value = (jobq_param){.type = JOBQ_PARAM_NULL};
    if (e->result)
        return 0;
    kind = jobq__redis_text(&walk);
    switch (kind.n ? *(const char *)kind.p : 'n') {
    case 'i':
        e->value = (jobq_param){.type = JOBQ_PARAM_INT, .integer = jobq__redis_int(&walk)};
        break;
    case 'd':
        text = jobq__redis_text(&walk);
        e->value = (jobq_param){.type = JOBQ_PARAM_DOUBLE, .real = jobq__str_to_double(text.p)};
        break;
    case 't':
        text = jobq__redis_text(&walk);
        e->value.type = JOBQ_PARAM_BYTES;
        e->value.bytes = jobq_batch_copy(e->out, text.p, text.n);
        return e->value.bytes.p ? 0 : jobq__error_nomem();
    default:
        break;
    }
    return 0;
}

int jobq__redis_effect(void *handle, jobq_effect *e)
{
    rds_store *store = handle;
    rds_token token = jobq__redis_token_parts(e->token);
    rds_value *value;
    int rc = jobq__redis_enter(store);

    if (rc < 0)
        return rc;
    e->result = JOBQ_ELEASE;
    if (token.priority >= RDS_PRIORITIES || token.count == 0 ||
        token.queue != jobq__redis_hash(e->queue))
        return 0;
    ask_effect(store, e, &token);
    rc = jobq__redis_call(store, &value, RDS_WRITES);
    return rc ? rc : read_effect(value, e);
}
