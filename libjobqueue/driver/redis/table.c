/* SPDX-License-Identifier: MIT
 *
 * The tables of the two drivers: one server (or whichever the sentinels name), and a Cluster.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

static const char *const own[] = {"db", NULL};

static bool takes(const char *name)
{
    return strcmp(name, "db") == 0;
}

/* Never called: without JOBQ_FEATURE_REQUEST the front refuses. */
static int refuse_request(void *handle, jobq_request *r)
{
    (void)handle;
    (void)r;
    return jobq__error_set(JOBQ_EUNSUPPORTED,
                           "the redis store has no transactions of the caller's");
}

/* All but what a Cluster cannot do: a batch over several queues goes to several servers. */
#define TABLE(driver_name, driver_schemes, more)                                                  \
    {                                                                                             \
        .abi = JOBQ_DRIVER_ABI, .size = sizeof(jobq_driver), .name = (driver_name),               \
        .schemes = (driver_schemes),                                                              \
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |             \
                    JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_EFFECT | (more),                           \
        .max_batch = RDS_BATCH, .max_body = (size_t)64 << 20,                                     \
        .options = "prefix ca cert key verify connect_timeout", .takes = takes, .own = own,       \
        .open = jobq__redis_open, .close = jobq__redis_close, .forget = jobq__redis_close,        \
        .schema = jobq__redis_schema, .push = jobq__redis_push, .exchange = jobq__redis_exchange, \
        .renew = jobq__redis_renew, .leave = jobq__redis_leave, .held = jobq__redis_held,         \
        .workers = jobq__redis_workers, .wait = jobq__redis_wait,                                 \
        .capacity = jobq__redis_capacity, .book = jobq__redis_book,                               \
        .minutes = jobq__redis_minutes, .audit = jobq__redis_audit,                               \
        .examine = jobq__redis_examine, .effect = jobq__redis_effect, .request = refuse_request,  \
        .maintain = jobq__redis_maintain, .find = jobq__redis_find, .list = jobq__redis_list,     \
        .counts = jobq__redis_counts, .queues = jobq__redis_queues, .mend = jobq__redis_mend,     \
        .control = jobq__redis_control, .cancel = jobq__redis_cancel,                             \
        .clear = jobq__redis_clear_queue, .now = jobq__redis_now,                                 \
    }

const jobq_driver jobq__redis_driver =
    TABLE("redis", "redis rediss redis+unix redis-sentinel", JOBQ_FEATURE_ATOMIC_BATCH);
const jobq_driver jobq__redis_cluster_driver =
    TABLE("redis-cluster", "redis-cluster rediss-cluster", 0);
