/* SPDX-License-Identifier: MIT
 *
 * The small words the contract's tests are written in.
 */
#include "contract/contract.h"

#include <stdio.h>
#include <string.h>

#include "core/retry.h"
#include "util/clock.h"

jobq__store *store;
jobq_batch got;
static jobq_batch found;

jobq__store *contract_open(const char *dsn)
{
    jobq__store *opened = NULL;

    assert_ok(jobq__store_new(dsn, NULL, &opened));
    return opened;
}

int64_t store_now(void)
{
    int64_t now_ms = 0;

    assert_ok(jobq__store_now(store, &now_ms));
    return now_ms;
}

void skip_because(const char *why)
{
    print_message("skipped: %s\n", why);
    skip();
}

void need_feature(uint64_t feature, const char *what)
{
    char why[128];

    if (contract_has(feature))
        return;
    snprintf(why, sizeof(why), "%s has no %s", jobq__store_driver(store)->name, what);
    skip_because(why);
}

jobq_push job_item(const char *id, const char *queue)
{
    jobq_push item = {.id = TEXT(id),
                      .queue = TEXT(queue),
                      .name = TEXT("test"),
                      .body = TEXT("body"),
                      .version = 1};

    return item;
}

int push_item(jobq_push *item)
{
    assert_ok(jobq__store_push(store, item, 1));
    return item->result;
}

void push_job(const char *id, const char *queue)
{
    jobq_push item = job_item(id, queue);

    assert_int_equal(push_item(&item), 0);
}

void begin_worker(const char *worker, int64_t lease_ms)
{
    jobq_renewal r = {.worker = TEXT(worker),
                      .lease_ms = lease_ms,
                      .host = TEXT("host"),
                      .queues = TEXT("q\n"),
                      .names = TEXT("test@1\n"),
                      .pid = 1,
                      .processes = 1};

    assert_ok(jobq__store_renew(store, &r));
}

size_t reserve_jobs(const char *worker, const char *queue, size_t want)
{
    jobq_slice q = TEXT(queue);
    jobq_exchange x = {.worker = TEXT(worker),
                       .lease_ms = 30000,
                       .queues = &q,
                       .queue_count = 1,
                       .want = want,
                       .want_taken_back = want,
                       .out = &got};

    jobq__batch_reset(&got);
    assert_ok(jobq__store_exchange(store, &x));
    return got.count;
}

jobq_record *reserve_one(const char *worker, const char *queue, const char *id)
{
    assert_int_equal(reserve_jobs(worker, queue, 1), 1);
    if (id)
        expect_ids(id);
    return got.first;
}

jobq_settlement settlement(const jobq_record *record, int op)
{
    jobq_settlement s = {.token = record->token,
                         .id = record->id,
                         .queue = record->queue,
                         .op = (uint8_t)op,
                         .counters = record->counters};

    return s;
}

int settle_with(const char *worker, jobq_settlement *s)
{
    jobq_exchange x = {.worker = TEXT(worker), .lease_ms = 30000, .settle = s, .settle_count = 1};

    s->result = 77;
    assert_ok(jobq__store_exchange(store, &x));
    assert_true(x.settled);
    return s->result;
}

int settle_op(const char *worker, const jobq_record *record, int op)
{
    jobq_settlement s = settlement(record, op);

    return settle_with(worker, &s);
}

void expect_ids(const char *ids)
{
    char text[4096] = "";
    size_t used = 0;

    for (const jobq_record *r = got.first; r; r = r->next)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s", used ? " " : "",
                                 (int)r->id.n, (const char *)r->id.p);
    assert_string_equal(text, ids);
}

jobq_maintenance maintain_all(void)
{
    jobq_maintenance m = {.limit = 1000, .loss_cap = 10, .take_back = true};

    assert_ok(jobq__store_maintain(store, &m));
    return m;
}

const jobq_record *find_job(const char *id)
{
    int rc;

    jobq__batch_reset(&found);
    rc = jobq__store_find(store, (jobq_slice){0}, TEXT(id), &found);
    if (rc == JOBQ_ENOTFOUND)
        return NULL;
    assert_ok(rc);
    return found.first;
}

jobq_counts count_jobs(const char *queue)
{
    jobq_counts counts = {0};

    assert_ok(jobq__store_counts(store, TEXT(queue), &counts));
    return counts;
}

int mend_job(jobq__store *where, int what, const char *id, bool dry_run)
{
    jobq_slice ids[] = {TEXT(id)};
    int result = JOBQ_EBUG;
    jobq_mending m = {.what = what, .dry_run = dry_run, .ids = ids, .count = 1, .results = &result};

    assert_ok(jobq__store_mend(where, &m));
    return result;
}

void expect_reason_words(int64_t (*count_shown)(const char *where))
{
#define COUNT_REASON(value, name, word) +1
    static const int reasons = JOBQ__REASON_LIST(COUNT_REASON);
#undef COUNT_REASON
    char where[200], id[16];

    for (int reason = 0; reason <= reasons + 1; reason++) {
        const char *word = jobq__reason_word(reason);
        jobq_settlement s;

        snprintf(id, sizeof(id), "dead-%d", reason);
        push_job(id, "q");
        s = settlement(reserve_one("w", "q", id), JOBQ_OP_DEAD);
        s.reason = (uint8_t)reason;
        assert_int_equal(settle_with("w", &s), 0);
        if (reason == 0)
            snprintf(where, sizeof(where), "id='%s' AND reason IS NULL", id);
        else if (reason > reasons)
            snprintf(where, sizeof(where), "id='%s' AND reason='%d'", id, reason);
        else
            snprintf(where, sizeof(where), "id='%s' AND reason='%s'", id, word);
        if (count_shown(where) != 1)
            fail_msg("the view's word of reason %d is not \"%s\"", reason, word);
        assert_int_equal(word[0] != '\0', reason > 0 && reason <= reasons);
    }
}

/* rule N6: what people look for in a view. */
void store_one_of_each(jobq_push *json)
{
    jobq_push later = job_item("later", "mail");
    jobq_settlement s;

    json->header = TEXT("\1j");
    later.delay_ms = 100000;
    push_item(json);
    push_item(&later);
    push_job("held", "r");
    reserve_one("worker-1", "r", "held");
    push_job("dead", "d");
    s = settlement(reserve_one("w", "d", "dead"), JOBQ_OP_DEAD);
    s.reason = 1;
    assert_int_equal(settle_with("w", &s), 0);
}
