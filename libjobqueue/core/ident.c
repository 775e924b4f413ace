/* SPDX-License-Identifier: MIT
 *
 * Ids. A job's id is UUIDv7 text: 48 bits of time, then a counter of 26 bits (rand_a and the top of
 * rand_b, RFC 9562 section 6.2, method 1) that starts anew at a random place each millisecond, then
 * 48 random bits. So the ids of one thread ascend even when the clock steps back, and a forked
 * child shares none of them.
 */
#include "core/ident.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/once.h"
#include "util/rng.h"

enum { COUNTER_BITS = 26 };

static _Thread_local struct {
    int64_t stamp, ms;
    uint32_t counter;
} last;

static void step_counter(void)
{
    int64_t now = jobq__clock_wall_ms(), stamp = jobq__process_stamp();

    if (stamp != last.stamp || now > last.ms) {
        last.ms = now > last.ms ? now : last.ms;
        last.stamp = stamp;
        last.counter = (uint32_t)(jobq__rng_u64() & ((1u << (COUNTER_BITS - 1)) - 1));
        return;
    }
    if (++last.counter == 1u << COUNTER_BITS) {
        last.ms++;
        last.counter = 0;
    }
}

static void put_hex(char *out, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void jobq__ident_job(char out[JOBQ__UUID_SIZE])
{
    unsigned char b[16];
    uint32_t high, low;

    step_counter();
    high = last.counter >> 14;
    low = last.counter & 0x3fff;
    for (int i = 0; i < 6; i++)
        b[i] = (unsigned char)(last.ms >> (40 - 8 * i));
    b[6] = (unsigned char)(0x70 | high >> 8);
    b[7] = (unsigned char)high;
    b[8] = (unsigned char)(0x80 | low >> 8);
    b[9] = (unsigned char)low;
    jobq__rng_bytes(b + 10, 6);
    put_hex(out, b, 4);
    put_hex(out + 9, b + 4, 2);
    put_hex(out + 14, b + 6, 2);
    put_hex(out + 19, b + 8, 2);
    put_hex(out + 24, b + 10, 6);
    out[8] = out[13] = out[18] = out[23] = '-';
    out[36] = '\0';
}

/* A host name is shown and stored: whatever else stands in it becomes '-'. */
static void tidy_host(char *host)
{
    for (; *host; host++)
        if (!((*host >= '0' && *host <= '9') || (*host >= 'a' && *host <= 'z') ||
              (*host >= 'A' && *host <= 'Z') || *host == '.'))
            *host = '-';
}

void jobq__ident_worker(char out[JOBQ__WORKER_ID_SIZE])
{
    char host[256] = "";
    unsigned char chance[6];
    char hex[sizeof(chance) * 2 + 1] = {0};

    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
        strcpy(host, "localhost");
    tidy_host(host);
    jobq__rng_bytes(chance, sizeof(chance));
    put_hex(hex, chance, sizeof(chance));
    snprintf(out, JOBQ__WORKER_ID_SIZE, "%.36s:%ld:%s", host, (long)getpid(), hex);
}
