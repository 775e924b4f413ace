/* SPDX-License-Identifier: MIT
 *
 * Which of a Cluster's slots a key lies in, and the words that Redis says about slots: pure.
 */
#include <string.h>

#include "driver/redis/redis.h"
#include "util/str.h"

enum { POLYNOMIAL = 0x1021, PORT_MAX = 65535 };

/* CRC-16 as Redis has it: "123456789" gives 0x31C3. */
static uint16_t crc16(const char *p, size_t n)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < n; i++) {
        crc ^= (uint16_t)((unsigned char)p[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (uint16_t)(crc << 1 ^ POLYNOMIAL) : (uint16_t)(crc << 1);
    }
    return crc;
}

/* Of what stands between the first opening and the next closing brace, if anything does. */
int jobq__redis_slot(const char *key, size_t n)
{
    const char *open = memchr(key, '{', n);
    const char *close = open ? memchr(open, '}', n - (size_t)(open - key)) : NULL;

    if (close && close > open + 1)
        return crc16(open + 1, (size_t)(close - open) - 1) % RDS_SLOTS;
    return crc16(key, n) % RDS_SLOTS;
}

/* "*3\r\n$3\r\nGET\r\n..." */
jobq_slice jobq__redis_key_of(const char *command, size_t n)
{
    const char *p = memchr(command, '\n', n), *end = command + n;

    while (p && ++p < end && *p == '$') {
        size_t length = 0;

        for (p++; p < end && *p >= '0' && *p <= '9'; p++)
            length = length * 10 + (size_t)(*p - '0');
        p += 2;
        if (p >= end || (size_t)(end - p) < length)
            break;
        if (length > 0 && *p == '{')
            return jobq__slice(p, length);
        p += length + 1;
    }
    return jobq__slice(NULL, 0);
}

bool jobq__redis_next_address(const char **list, int default_port, rds_address *out)
{
    size_t n = strcspn(*list, ","), host_n;
    const char *p = *list, *colon = NULL;
    int64_t port = default_port;

    *list += n + (p[n] == ',');
    for (size_t i = 0; i < n; i++)
        if (p[i] == ':' && (p[0] != '[' || p[i - 1] == ']'))
            colon = p + i;
    host_n = colon ? (size_t)(colon - p) : n;
    if (colon && (!jobq__str_int(colon + 1, n - host_n - 1, &port) || port < 1 || port > PORT_MAX))
        return false;
    if (host_n >= 2 && p[0] == '[' && p[host_n - 1] == ']') {
        p++;
        host_n -= 2;
    }
    if (host_n == 0 || host_n >= sizeof(out->host))
        return false;
    memcpy(out->host, p, host_n);
    out->host[host_n] = '\0';
    out->port = (int)port;
    return true;
}
