/* SPDX-License-Identifier: MIT
 *
 * For suites that need a store: one queue on the store of the round, messages in one line.
 */
#ifndef JOBQ_TESTS_CORE_STORE_H
#define JOBQ_TESTS_CORE_STORE_H

#include <jobqueue/inspect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

/* Every test of such a suite runs once per round. */
static const char *const store_rounds[] = {"memory", "sqlite"};

static inline int open_store(void **state, const char *round)
{
    static int number;
    char dsn[128] = "memory:";
    jobq_queue *queue = NULL;

    if (strcmp(round, "sqlite") == 0)
        snprintf(dsn, sizeof(dsn), "sqlite:%s/%d.db", jobq_test_folder(), number++);
    if (jobq_queue_new(dsn, NULL, &queue) < 0) {
        print_error("%s: %s\n", dsn, jobq_error_message(jobq_error_last()));
        return -1;
    }
    *state = queue;
    return 0;
}

static inline int open_memory(void **state)
{
    return open_store(state, store_rounds[0]);
}

static inline int open_sqlite(void **state)
{
    return open_store(state, store_rounds[1]);
}

static inline int close_store(void **state)
{
    jobq_queue_free(*state);
    return 0;
}

#define on_both(test)                                           \
    {#test " (memory)", test, open_memory, close_store, NULL},  \
    {                                                           \
#test " (sqlite)", test, open_sqlite, close_store, NULL \
    }

/* A message with that name, queue "q", the integer 7 as payload, and one option (may be NULL). */
static inline jobq_message *message(const char *name, const char *option, const char *value)
{
    jobq_message *m = jobq_message_new();

    assert_ok(jobq_message_set_name(m, name, strlen(name)));
    assert_ok(jobq_writer_int(jobq_message_payload(m), 7));
    assert_ok(jobq_conf_set(jobq_message_options(m), "queue", "q", 1));
    if (option)
        assert_ok(jobq_conf_set(jobq_message_options(m), option, value, strlen(value)));
    return m;
}

/* Pushes one and leaves its id in `id` (may be NULL). */
static inline void push(jobq_queue *queue, const char *name, const char *option, const char *value,
                        char id[129])
{
    jobq_message *m = message(name, option, value);

    assert_int_equal(assert_ok(jobq_queue_push(queue, m)), 0);
    if (id)
        strcpy(id, jobq_message_id(m));
    jobq_message_free(m);
}

static inline jobq_job *reserve(jobq_queue *queue)
{
    static const char *const names[] = {"q"};
    jobq_job *job = NULL;

    assert_ok(jobq_queue_reserve(queue, names, 1, 30000, &job));
    return job;
}

static inline int64_t stat(jobq_queue *queue, jobq_stat which)
{
    int64_t values[JOBQ_STATS];

    assert_ok(jobq_queue_stats(queue, "q", 1, values));
    return values[which];
}

#endif
