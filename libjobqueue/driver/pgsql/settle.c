/* SPDX-License-Identifier: MIT
 *
 * Settlements on the wire. Those that only end a job travel as two arrays; the others with their
 * counters and texts, and with the jobs that follow them.
 */
#include <stdlib.h>

#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/error.h"

enum { OTHER_NUMBERS = 14 };

/* ---- settlements, sent ----------------------------------------------------------------------- */

static int64_t nonce_of(const jobq_lease_token *token)
{
    return (int64_t)token->word[2];
}

/* Only the end of a job. */
static bool is_plain(const jobq_settlement *s)
{
    return s->op == JOBQ_OP_DONE && s->keep_ms <= 0 && !s->follow;
}

/* Is one hand-out settled in both ways? Then the first one counts, so all go in order. */
static bool is_mixed(const jobq_settlement *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && !is_plain(&s[i]); k++)
            if (is_plain(&s[k]) && s[i].token.word[0] == s[k].token.word[0])
                return true;
    return false;
}

static void put_plain(pgsql_params *p, const jobq_settlement *s, size_t n, size_t plain,
                      bool nonces)
{
    if (plain == 0) {
        jobq__pgsql_null(p, PG_INT8_ARRAY);
        return;
    }
    jobq__pgsql_array(p, PG_INT8, plain);
    for (size_t i = 0; i < n; i++)
        if (is_plain(&s[i]))
            jobq__pgsql_put_int8(p, nonces ? nonce_of(&s[i].token) : (int64_t)s[i].token.word[0]);
    jobq__pgsql_end(p);
}

static void put_other(pgsql_params *p, const jobq_settlement *s)
{
    const jobq_counters *c = &s->counters;
    const int64_t numbers[] = {(int64_t)s->token.word[0],
                               nonce_of(&s->token),
                               s->op,
                               s->reason,
                               s->delay_ms,
                               s->keep_ms,
                               c->failures,
                               c->crashes,
                               c->releases,
                               c->losses,
                               c->exceptions,
                               c->parks,
                               c->parked_since_ms,
                               s->keep_bare};

    _Static_assert(sizeof(numbers) / sizeof(numbers[0]) == OTHER_NUMBERS, "as the function reads");
    for (size_t i = 0; i < OTHER_NUMBERS; i++)
        jobq__pgsql_put_int8(p, numbers[i]);
}

static void put_texts(pgsql_params *p, const jobq_settlement *s, size_t n, size_t others,
                      bool history)
{
    jobq__pgsql_array(p, PG_BYTEA, others);
    for (size_t i = 0; i < n; i++)
        if (others == n || !is_plain(&s[i]))
            jobq__pgsql_put_slice(p, history ? s[i].history : s[i].error);
    jobq__pgsql_end(p);
}

static void put_others(pgsql_params *p, const jobq_settlement *s, size_t n, size_t others)
{
    if (others == 0) {
        jobq__pgsql_null(p, PG_INT8_ARRAY);
        jobq__pgsql_null(p, PG_BYTEA_ARRAY);
        jobq__pgsql_null(p, PG_BYTEA_ARRAY);
        return;
    }
    jobq__pgsql_array(p, PG_INT8, others * OTHER_NUMBERS);
    for (size_t i = 0; i < n; i++)
        if (others == n || !is_plain(&s[i]))
            put_other(p, &s[i]);
    jobq__pgsql_end(p);
    put_texts(p, s, n, others, false);
    put_texts(p, s, n, others, true);
}

static size_t count_plain(const jobq_settlement *s, size_t n)
{
    size_t plain = 0;

    for (size_t i = 0; i < n; i++)
        plain += is_plain(&s[i]);
    return plain < n && is_mixed(s, n) ? 0 : plain;
}

void jobq__pgsql_put_settlements(pgsql_params *p, const jobq_settlement *s, size_t n)
{
    size_t plain = count_plain(s, n);

    put_plain(p, s, n, plain, false);
    put_plain(p, s, n, plain, true);
    put_others(p, s, n, n - plain);
}

/* They are numbered like put_others. */
void jobq__pgsql_put_outcomes(pgsql_params *p, const jobq_settlement *s, size_t n)
{
    const size_t others = n - count_plain(s, n);
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any |= s[i].outcome.p != NULL;
    if (!any) {
        jobq__pgsql_null(p, PG_BYTEA_ARRAY);
        return;
    }
    jobq__pgsql_array(p, PG_BYTEA, others);
    for (size_t i = 0; i < n; i++)
        if (others == n || !is_plain(&s[i]))
            jobq__pgsql_put_slice(p, s[i].outcome);
    jobq__pgsql_end(p);
}

/* ---- what follows ---------------------------------------------------------------------------- */

static void put_follow_numbers(pgsql_params *p, int64_t at, const jobq_push *follow)
{
    jobq__pgsql_put_int8(p, at);
    jobq__pgsql_put_int8(p, follow->version);
    jobq__pgsql_put_int8(p, JOBQ__TOP_PRIORITY - follow->priority);
    jobq__pgsql_put_int8(p, jobq__pgsql_due_of(follow));
}

static void put_follow_parts(pgsql_params *p, const jobq_push *follow)
{
    const jobq_slice parts[] = {follow->id,     follow->queue,  follow->name,
                                follow->unique, follow->header, follow->body};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        jobq__pgsql_put_slice(p, parts[i]);
}

void jobq__pgsql_put_follow(pgsql_params *p, const jobq_push *follow)
{
    if (!follow) {
        jobq__pgsql_null(p, PG_INT8_ARRAY);
        jobq__pgsql_null(p, PG_BYTEA_ARRAY);
        return;
    }
    jobq__pgsql_array(p, PG_INT8, 4);
    put_follow_numbers(p, 1, follow);
    jobq__pgsql_end(p);
    jobq__pgsql_array(p, PG_BYTEA, 6);
    put_follow_parts(p, follow);
    jobq__pgsql_end(p);
}

/* They are numbered like the settlements that travel with their counters; those with a follower
 * all do. */
static void put_all_follows(pgsql_params *p, const jobq_settlement *s, size_t n, bool numbers)
{
    const bool all = count_plain(s, n) == 0;
    int64_t at = 0;

    for (size_t i = 0; i < n; i++) {
        at += all || !is_plain(&s[i]);
        if (s[i].follow && numbers)
            put_follow_numbers(p, at, s[i].follow);
        else if (s[i].follow)
            put_follow_parts(p, s[i].follow);
    }
    jobq__pgsql_end(p);
}

void jobq__pgsql_put_follows(pgsql_params *p, const jobq_settlement *s, size_t n)
{
    size_t follows = 0;

    for (size_t i = 0; i < n; i++)
        follows += s[i].follow != NULL;
    if (follows == 0) {
        jobq__pgsql_put_follow(p, NULL);
        return;
    }
    jobq__pgsql_array(p, PG_INT8, follows * 4);
    put_all_follows(p, s, n, true);
    jobq__pgsql_array(p, PG_BYTEA, follows * 6);
    put_all_follows(p, s, n, false);
}

/* ---- settlements, answered ------------------------------------------------------------------- */

typedef struct {
    int64_t seq, nonce;
    bool used;
} settled;

static int compare_settled(const void *a, const void *b)
{
    const settled *left = a, *right = b;

    return left->seq < right->seq ? -1 : left->seq > right->seq;
}

static void judge(jobq_settlement *s, settled *list, size_t n)
{
    settled key = {.seq = (int64_t)s->token.word[0]};
    settled *found = n ? bsearch(&key, list, n, sizeof(*list), compare_settled) : NULL;

    s->result = JOBQ_ELEASE;
    /* As often as it was settled: progress, say, and then the end. */
    for (; found && found > list && found[-1].seq == key.seq; found--)
        ;
    for (; found && found < list + n && found->seq == key.seq; found++)
        if (!found->used && found->nonce == nonce_of(&s->token)) {
            found->used = true;
            s->result = 0;
            return;
        }
}

int jobq__pgsql_read_settled(pgsql_array *meta, jobq_exchange *x)
{
    size_t n = meta->count / 2;
    settled *list = jobq__alloc(n ? n * sizeof(*list) : 1);

    if (!list)
        return jobq__error_nomem();
    for (size_t i = 0; i < n; i++)
        list[i] = (settled){.seq = jobq__pgsql_array_int(meta)};
    for (size_t i = 0; i < n; i++)
        list[i].nonce = jobq__pgsql_array_int(meta);
    qsort(list, n, sizeof(*list), compare_settled);
    for (size_t i = 0; i < x->settle_count; i++)
        judge(&x->settle[i], list, n);
    jobq__free(list);
    return 0;
}
