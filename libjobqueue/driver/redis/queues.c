/* SPDX-License-Identifier: MIT
 *
 * Work that concerns every queue: their names, and one trip over them. On one server a script may
 * look at many of them, on a Cluster each has one of its own.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

enum { TOGETHER = 200 };

static bool hidden_name(rds_store *store, jobq_slice name, jobq_slice *out)
{
    char *p = jobq__arena_alloc(&store->arena, name.n + 2);

    if (!p)
        return false;
    p[0] = '\x01';
    memcpy(p + 1, name.p, name.n);
    *out = jobq__slice(p, name.n + 1);
    return true;
}

int jobq__redis_all_queues(rds_store *store, rds_names *out)
{
    rds_value *value;
    int rc;

    jobq__redis_ask(store, "SMEMBERS", ":queues");
    rc = jobq__redis_call(store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    out->count = 0;
    out->names = jobq__arena_alloc(&store->arena, (2 * value->count + 1) * sizeof(jobq_slice));
    if (!out->names)
        return jobq__error_nomem();
    for (size_t i = 0; i < value->count; i++) {
        const rds_value *name = value->item[i];
        jobq_slice *to = &out->names[out->count];

        to[0] = jobq__slice(jobq__arena_copy(&store->arena, name->p, name->n), name->n);
        if (!to[0].p || !hidden_name(store, to[0], &to[1]))
            return jobq__error_nomem();
        out->count += 2;
    }
    return 0;
}

static int read_before(rds_store *store, const rds_visit *visit, rds_value **values, void *with)
{
    for (size_t i = 0; i < visit->before; i++)
        if (values[i]->type == RDS_ERROR)
            return jobq__redis_refused(store, values[i]);
    return visit->before ? visit->read_before(store, values, with) : 0;
}

int jobq__redis_read_nothing(rds_store *store, const jobq_slice *queues, size_t n,
                             const rds_value *answer, void *with)
{
    (void)store;
    (void)queues;
    (void)n;
    (void)answer;
    (void)with;
    return 0;
}

int jobq__redis_visit(rds_store *store, const rds_visit *visit, const rds_names *queues, void *with)
{
    const size_t step = visit->together && !store->cluster ? TOGETHER : 1;
    size_t commands = visit->before + (queues->count + step - 1) / step;
    rds_value **values = jobq__arena_alloc(&store->arena, (commands + 1) * sizeof(rds_value *));
    int rc;

    if (!values)
        return jobq__error_nomem();
    if (commands == 0)
        return 0;
    for (size_t i = 0; i < queues->count; i += step)
        visit->ask(store, queues->names + i, queues->count - i < step ? queues->count - i : step,
                   with);
    rc = jobq__redis_round(store, values, commands, visit->kind);
    rc = rc ? rc : read_before(store, visit, values, with);
    values += visit->before;
    for (size_t i = 0; i < queues->count && rc == 0; i += step, values++)
        rc = (*values)->type == RDS_ERROR
                 ? jobq__redis_refused(store, *values)
                 : visit->read(store, queues->names + i,
                               queues->count - i < step ? queues->count - i : step, *values, with);
    return rc;
}

/* Every other name is a hidden queue, where hardly anything waits. */
size_t jobq__redis_share(size_t most, size_t queues)
{
    size_t share = most / (queues / 2 + 1);

    return share > 100 ? share : 100;
}
