/* SPDX-License-Identifier: MIT
 *
 * Names of keys. All keys of a queue begin with "{prefix:queue}", those of the prefix with
 * "{prefix}"; '%', braces and colons in the names are percent-encoded, so nothing collides and the
 * braces are a cluster's hash tag. A hidden queue shares that of the queue it belongs to:
 * "{prefix:queue}:hidden".
 */
#include <string.h>

#include "driver/redis/redis.h"

static void add_encoded(jobq__buf *out, jobq_slice name)
{
    static const char hex[] = "0123456789ABCDEF";
    const unsigned char *p = name.p;

    for (size_t i = 0; i < name.n; i++) {
        if (!memchr("%{}:", p[i], 4)) {
            jobq__buf_addc(out, (char)p[i]);
            continue;
        }
        jobq__buf_addc(out, '%');
        jobq__buf_addc(out, hex[p[i] >> 4]);
        jobq__buf_addc(out, hex[p[i] & 15]);
    }
}

void jobq__redis_add_base(const rds_store *store, jobq__buf *out, jobq_slice queue)
{
    const bool hidden = queue.n > 0 && *(const char *)queue.p == '\x01';

    if (!store->base.n) { /* the prefix itself */
        jobq__buf_addc(out, '{');
        add_encoded(out, queue);
        jobq__buf_addc(out, '}');
        return;
    }
    jobq__buf_add(out, store->base.p, store->base.n - 1);
    jobq__buf_addc(out, ':');
    add_encoded(out, jobq__slice((const char *)queue.p + hidden, queue.n - hidden));
    jobq__buf_addc(out, '}');
    if (hidden)
        jobq__buf_adds(out, ":hidden");
}

uint32_t jobq__redis_hash(jobq_slice queue)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < queue.n; i++)
        hash = (hash ^ ((const unsigned char *)queue.p)[i]) * 16777619u;
    return hash;
}
