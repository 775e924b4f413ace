/* SPDX-License-Identifier: MIT
 *
 * SHA-256, written after FIPS 180-4; the words of the standard's tables follow from its section
 * 4.2.2 (cube roots of the first 64 primes) and 5.3.3 (square roots of the first eight).
 */
#include "util/sha256.h"

#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = BLOCK - 8 };

static const uint32_t k[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* The message schedule, section 6.2.2 step 1. */
static void schedule(uint32_t w[ROUNDS], const unsigned char *p)
{
    for (int t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int t = 16; t < ROUNDS; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];

        w[t] = w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void take_block(jobq__sha256 *h, const unsigned char *p)
{
    uint32_t w[ROUNDS], s[8]; /* a to h of the standard */

    schedule(w, p);
    memcpy(s, h->state, sizeof(s));
    for (int t = 0; t < ROUNDS; t++) {
        const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        const uint32_t one =
            s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice + k[t] + w[t];
        const uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;

        memmove(s + 1, s, 7 * sizeof(s[0]));
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        h->state[i] += s[i];
}

void jobq__sha256_begin(jobq__sha256 *h)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memcpy(h->state, start, sizeof(start));
    h->bytes = 0;
}

void jobq__sha256_add(jobq__sha256 *h, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t held = h->bytes % BLOCK, part;

    h->bytes += n;
    for (; n > 0; p += part, n -= part, held = 0) {
        part = n < BLOCK - held ? n : BLOCK - held;
        memcpy(h->block + held, p, part);
        if (held + part == BLOCK)
            take_block(h, h->block);
    }
}

void jobq__sha256_end(jobq__sha256 *h, unsigned char out[JOBQ__SHA256_SIZE])
{
    static const unsigned char mark = 0x80, none[BLOCK];
    const uint64_t bits = h->bytes * 8;
    unsigned char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    jobq__sha256_add(h, &mark, 1);
    jobq__sha256_add(h, none, (BLOCK + LENGTH_AT - h->bytes % BLOCK) % BLOCK);
    jobq__sha256_add(h, length, sizeof(length));
    for (int i = 0; i < JOBQ__SHA256_SIZE; i++)
        out[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}
