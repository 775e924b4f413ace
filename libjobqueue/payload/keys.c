/* SPDX-License-Identifier: MIT
 *
 * Finding equal keys: linear for small maps, an open-addressing index over SipHash-2-4 for large
 * ones. Memory follows the keys that were really read, never a declared count.
 */
#include "payload/keys.h"

#include <string.h>

#include "util/alloc.h"
#include "util/rng.h"

/* Low bits of a tag; a text's length stands above them. */
enum {
    TAG_INPUT = JOBQ__KEY_INPUT,
    TAG_HELD = JOBQ__KEY_HELD,
    TAG_INT = 2,
    TAG_UINT = 3,
    TAG_BITS = 2
};

enum { KEEP_BYTES = 64 * 1024 }; /* more than this is given back when the reader is opened anew */

void jobq__keys_init(jobq__keys *keys)
{
    keys->keys = keys->own;
    keys->cap = JOBQ__KEYS_INLINE;
    keys->count = 0;
    keys->slots = NULL;
    keys->slot_count = keys->slot_cap = 0;
    keys->seeded = false;
}

void jobq__keys_free(jobq__keys *keys)
{
    if (keys->keys != keys->own)
        jobq__free(keys->keys);
    jobq__free(keys->slots);
    jobq__keys_init(keys);
}

void jobq__keys_reset(jobq__keys *keys)
{
    if (keys->cap * sizeof(jobq__key) > KEEP_BYTES ||
        keys->slot_cap * sizeof(uint32_t) > KEEP_BYTES)
        jobq__keys_free(keys);
    keys->count = keys->slot_count = 0;
}

/* ---- what a key is --------------------------------------------------------------------------- */

/* All digits, no needless zero in front, at most 2^64-1. */
static bool plain_digits(const char *p, size_t n, uint64_t *out)
{
    uint64_t value = 0;

    if (n == 0 || n > 20 || (p[0] == '0' && n > 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(p[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

/* The integer whose decimal form the text is, exactly as PHP and JSON would print it. */
static bool text_integer(const char *p, size_t n, jobq__key *out)
{
    bool negative = n > 0 && p[0] == '-';
    uint64_t value;

    if (!plain_digits(p + negative, n - negative, &value))
        return false;
    if (negative && (value == 0 || value > (uint64_t)INT64_MAX + 1))
        return false;
    out->word = negative ? 0 - value : value;
    out->tag = !negative && value > INT64_MAX ? TAG_UINT : TAG_INT;
    return true;
}

static jobq__key make_key(const jobq_token *token, int base, size_t offset)
{
    jobq__key key;

    if (token->kind == JOBQ_INT) {
        key.word = (uint64_t)token->as.integer;
        key.tag = TAG_INT;
    } else if (token->kind == JOBQ_UINT) {
        key.word = token->as.unsigned_integer;
        key.tag = TAG_UINT;
    } else if (!text_integer(token->as.text.p, token->as.text.n, &key)) {
        key.word = offset;
        key.tag = (uint64_t)token->as.text.n << TAG_BITS | (uint64_t)base;
    }
    return key;
}

static bool is_text(jobq__key key)
{
    return !(key.tag & 2);
}

static const char *key_text(const jobq__keys *keys, jobq__key key)
{
    return keys->bases[key.tag & 1] + key.word;
}

static bool same_key(const jobq__keys *keys, jobq__key a, jobq__key b)
{
    if (!is_text(a) || !is_text(b))
        return a.tag == b.tag && a.word == b.word;
    return a.tag >> TAG_BITS == b.tag >> TAG_BITS &&
           !memcmp(key_text(keys, a), key_text(keys, b), a.tag >> TAG_BITS);
}

/* ---- SipHash-2-4 ----------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

static uint64_t sip_hash(const uint64_t seed[2], const char *p, size_t n)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    uint64_t word, last = (uint64_t)n << 56;
    size_t whole = n & ~(size_t)7;

    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, p + i, 8);
        sip_word(v, word);
    }
    for (size_t i = whole; i < n; i++)
        last |= (uint64_t)(unsigned char)p[i] << 8 * (i - whole);
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t hash_key(const jobq__keys *keys, jobq__key key)
{
    if (is_text(key))
        return sip_hash(keys->seed, key_text(keys, key), key.tag >> TAG_BITS);
    return sip_hash(keys->seed, (const char *)&key, sizeof(key));
}

/* ---- the index of a large map ---------------------------------------------------------------- */

/* The slot that holds an equal key, or the free one where it belongs. */
static uint32_t *find_slot(jobq__keys *keys, const jobq__key_mark *mark, jobq__key key)
{
    size_t mask = mark->index_size - 1;
    uint32_t *slots = keys->slots + mark->index_at;
    size_t i = hash_key(keys, key) & mask;

    while (slots[i] && !same_key(keys, keys->keys[mark->first + slots[i] - 1], key))
        i = (i + 1) & mask;
    return &slots[i];
}

static bool reserve_slots(jobq__keys *keys, size_t wanted)
{
    size_t cap = keys->slot_cap ? keys->slot_cap : 64;
    uint32_t *slots;

    if (wanted <= keys->slot_cap)
        return true;
    while (cap < wanted)
        cap *= 2;
    slots = jobq__realloc(keys->slots, cap * sizeof(*slots));
    if (!slots)
        return false;
    keys->slots = slots;
    keys->slot_cap = cap;
    return true;
}

/* Builds the innermost map's index anew with room for twice the keys it has. */
static bool build_index(jobq__keys *keys, jobq__key_mark *mark)
{
    size_t size = mark->index_size ? mark->index_size * 2 : (size_t)4 * JOBQ__KEYS_LINEAR;

    if (!reserve_slots(keys, mark->index_at + size))
        return false;
    if (!keys->seeded)
        jobq__rng_bytes(keys->seed, sizeof(keys->seed));
    keys->seeded = true;
    mark->index_size = size;
    keys->slot_count = mark->index_at + size;
    memset(keys->slots + mark->index_at, 0, size * sizeof(uint32_t));
    for (size_t i = mark->first; i < keys->count; i++)
        *find_slot(keys, mark, keys->keys[i]) = (uint32_t)(i - mark->first + 1);
    return true;
}

static bool reserve_key(jobq__keys *keys)
{
    jobq__key *more;

    if (keys->count < keys->cap)
        return true;
    more =
        jobq__realloc(keys->keys == keys->own ? NULL : keys->keys, keys->cap * 2 * sizeof(*more));
    if (!more)
        return false;
    if (keys->keys == keys->own)
        memcpy(more, keys->own, sizeof(keys->own));
    keys->keys = more;
    keys->cap *= 2;
    return true;
}

static bool find_linear(const jobq__keys *keys, const jobq__key_mark *mark, jobq__key key)
{
    for (size_t i = mark->first; i < keys->count; i++)
        if (same_key(keys, keys->keys[i], key))
            return true;
    return false;
}

void jobq__keys_begin(jobq__keys *keys, jobq__key_mark *mark)
{
    mark->first = keys->count;
    mark->index_at = keys->slot_count;
    mark->index_size = 0;
}

int jobq__keys_add(jobq__keys *keys, jobq__key_mark *mark, const jobq_token *token, int base,
                   size_t offset)
{
    jobq__key key = make_key(token, base, offset);
    size_t n = keys->count - mark->first;
    uint32_t *slot = NULL;

    if (!reserve_key(keys))
        return JOBQ_ENOMEM;
    if (n >= JOBQ__KEYS_LINEAR && n * 2 >= mark->index_size && !build_index(keys, mark))
        return JOBQ_ENOMEM;
    if (mark->index_size)
        slot = find_slot(keys, mark, key);
    if (slot ? *slot != 0 : find_linear(keys, mark, key))
        return 1;
    if (slot)
        *slot = (uint32_t)(n + 1);
    keys->keys[keys->count++] = key;
    return 0;
}

void jobq__keys_end(jobq__keys *keys, const jobq__key_mark *mark)
{
    keys->count = mark->first;
    keys->slot_count = mark->index_at;
}
