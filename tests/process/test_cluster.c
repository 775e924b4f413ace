/* SPDX-License-Identifier: MIT
 *
 * A worker with children on a Redis Cluster whose slots move and whose masters go (rules C5, D6,
 * K2; case B143).
 */
#include "harness/cluster.h"
#include "process/pool.h"

#include <poll.h>

#ifndef JOBQ_WITH_REDIS
#define JOBQ_WITH_REDIS 0
#endif

typedef struct {
    cluster redis;
    pool pool;
    int slot; /* of the queue "default" */
} site;

static int set_up(void **state)
{
    static site s;
    char dsn[300];

    memset(&s, 0, sizeof(s));
    cluster_start(&s.redis, false, 1000, "--appendonly yes --appendfsync always");
    snprintf(dsn, sizeof(dsn), "%s?read_timeout=10&connect_timeout=1&prefix=p", s.redis.dsn);
    s.slot = cluster_slot(&s.redis, "{p:default}");
    pool_open_at(&s.pool, dsn, NULL);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    site *s = *state;

    pool_close(&s->pool);
    cluster_remove(&s->redis);
    return 0;
}

/* Each job runs once, and the worker has nothing to complain about. */
static void test_k2_moving_slot(void **state)
{
    site *s = *state;
    pool *p = &s->pool;

    pool_push_many(p, "nap", 5, NULL, 600);
    pool_start(p, "processes=3");
    wait_until(pool_ledger(p, "end nap") > 20, 20);
    for (int i = 0; i < 4; i++) {
        size_t from = cluster_owner(&s->redis, s->slot), to = (from + 1) % CLUSTER_MASTERS;

        cluster_announce(&s->redis, s->slot, from, to);
        cluster_send_keys(&s->redis, s->slot, from, to, 2);
        poll(NULL, 0, 100);
        while (cluster_send_keys(&s->redis, s->slot, from, to, 100) > 0)
            ;
        cluster_conclude(&s->redis, s->slot, to);
        poll(NULL, 0, 100);
    }
    wait_until(pool_ledger(p, "end nap") == 600, 60);
    pool_push(p, "note", 0, NULL); /* to a worker that waits */
    wait_until(pool_ledger(p, "end note") == 1, 20);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 20), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 600);
    assert_false(pool_said(p, "error:"));
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
}

/* The server of the queue is killed and comes back with what it had confirmed. */
static void test_k2_lost_master(void **state)
{
    site *s = *state;
    pool *p = &s->pool;
    server *owner = s->redis.nodes[cluster_owner(&s->redis, s->slot)];

    pool_push_many(p, "nap", 20, NULL, 200);
    pool_start(p, "processes=2 max_reserve_failures=0");
    wait_until(pool_ledger(p, "end nap") > 20, 20);
    server_kill(owner);
    wait_until(pool_said(p, "error:"), 20);
    server_restart(owner);
    wait_until(pool_ledger(p, "end nap") >= 200, 60);
    pool_signal(p, SIGTERM);
    assert_int_equal(pool_wait(p, 40), 0);
    assert_int_equal(pool_ledger(p, "begin nap"), 200);
    cluster_await(&s->redis);
    assert_int_equal(pool_stat(p, JOBQ_STAT_BACKLOG), 0);
    assert_int_equal(pool_stat(p, JOBQ_STAT_DEAD), 0);
}

/* rule L1, L3: what people ask is heard, wherever its key and the queue's lie. */
static void test_l3_asked_of_workers(void **state)
{
    site *s = *state;
    pool *p = &s->pool;
    char id[64];

    pool_start(p, "processes=1");
    snprintf(id, sizeof(id), "%s", pool_push(p, "heeds", 20000, NULL));
    wait_until(pool_ledger(p, "begin heeds") == 1, 20);
    assert_int_equal(jobq_queue_cancel(p->queue, id, strlen(id), false), JOBQ_CANCEL_ASKED);
    wait_until(pool_ledger(p, "told") == 1, 5);
    assert_ok(jobq_queue_pause(p->queue, "default", 7, 0));
    wait_until(pool_said(p, "Paused"), 5);
    assert_ok(jobq_queue_restart_workers(p->queue));
    assert_int_equal(pool_wait(p, 40), 0);
    assert_true(pool_said(p, "restart requested"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_k2_moving_slot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_k2_lost_master, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_l3_asked_of_workers, set_up, tear_down),
    };

    if (!JOBQ_WITH_REDIS)
        return 0;
    return cmocka_run_group_tests_name("process/cluster", tests, NULL, NULL);
}
