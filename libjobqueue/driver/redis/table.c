/* SPDX-License-Identifier: MIT
 *
 * The tables of the two drivers: one server (or whichever the sentinels name), and a Cluster.
 */
#include <string.h>

#include "driver/redis/redis.h"

static const char *const own[] = {"db", NULL};

static bool takes(const char *name)
{
    return strcmp(name, "db") == 0;
}

/* All but what a Cluster cannot do: a batch over several queues goes to several servers. */
#define TABLE(driver_name, driver_schemes, more)                                                  \
    {                                                                                             \
        .abi = JOBQ_DRIVER_ABI, .size = sizeof(jobq_driver), .name = (driver_name),               \
        .schemes = (driver_schemes),                                                              \
        .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |             \
                    JOBQ_FEATURE_UNIQUE | (more),                                                 \
        .max_batch = RDS_BATCH, .max_body = (size_t)64 << 20,                                     \
        .options = "prefix ca cert key verify connect_timeout", .takes = takes, .own = own,       \
        .open = jobq__redis_open, .close = jobq__redis_close, .forget = jobq__redis_close,        \
        .schema = jobq__redis_schema, .push = jobq__redis_push, .exchange = jobq__redis_exchange, \
        .renew = jobq__redis_renew, .leave = jobq__redis_leave, .held = jobq__redis_held,         \
        .workers = jobq__redis_workers, .wait = jobq__redis_wait,                                 \
        .maintain = jobq__redis_maintain, .find = jobq__redis_find, .list = jobq__redis_list,     \
        .counts = jobq__redis_counts, .queues = jobq__redis_queues, .mend = jobq__redis_mend,     \
        .control = jobq__redis_control, .cancel = jobq__redis_cancel,                             \
        .clear = jobq__redis_clear_queue, .now = jobq__redis_now,                                 \
    }

const jobq_driver jobq__redis_driver =
    TABLE("redis", "redis rediss redis+unix redis-sentinel", JOBQ_FEATURE_ATOMIC_BATCH);
const jobq_driver jobq__redis_cluster_driver =
    TABLE("redis-cluster", "redis-cluster rediss-cluster", 0);
