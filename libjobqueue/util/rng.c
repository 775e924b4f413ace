/* SPDX-License-Identifier: MIT
 *
 * getrandom in blocks of 256 bytes: one system call for sixteen ids.
 */
#include "util/rng.h"

#include <string.h>
#include <sys/random.h>

#include "util/clock.h"
#include "util/once.h"

static _Thread_local struct {
    unsigned char bytes[256];
    size_t left;
    int64_t stamp;
    uint64_t seed;
} pool;

/* splitmix64 (Steele, Lea, Flood 2014): small and good enough for jitter and test streams. */
static uint64_t mix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void refill(void)
{
    size_t have = 0;

    while (have < sizeof(pool.bytes)) {
        ssize_t n = getrandom(pool.bytes + have, sizeof(pool.bytes) - have, 0);

        if (n > 0)
            have += (size_t)n;
    }
    pool.left = sizeof(pool.bytes);
    pool.stamp = jobq__process_stamp();
}

void jobq__rng_bytes(void *p, size_t n)
{
    unsigned char *out = p;

    if (pool.seed) {
        for (size_t i = 0; i < n; i++)
            out[i] = (unsigned char)mix(&pool.seed);
        return;
    }
    while (n > 0) {
        size_t part;

        if (pool.left == 0 || pool.stamp != jobq__process_stamp())
            refill();
        part = n < pool.left ? n : pool.left;
        memcpy(out, pool.bytes + sizeof(pool.bytes) - pool.left, part);
        pool.left -= part;
        out += part;
        n -= part;
    }
}

uint64_t jobq__rng_u64(void)
{
    uint64_t value;

    jobq__rng_bytes(&value, sizeof(value));
    return value;
}

double jobq__rng_unit(void)
{
    return (double)(jobq__rng_u64() >> 11) / 9007199254740992.0;
}

void jobq__rng_seed(uint64_t seed)
{
    pool.seed = seed;
}
