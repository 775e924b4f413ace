/* SPDX-License-Identifier: MIT
 *
 * The keys of the maps that are open in a reader. Two keys of one map are equal when they are the
 * same string, the same integer, or an integer and the string of its digits (rule A2). Few keys are
 * compared one by one without any allocation; many go through a hash index seeded at random, so
 * that chosen keys cannot make it slow. Open maps nest, so everything is a stack: the innermost
 * map's keys lie on top.
 */
#ifndef JOBQ_PAYLOAD_KEYS_H
#define JOBQ_PAYLOAD_KEYS_H

#include <jobqueue/payload.h>

enum { JOBQ__KEYS_INLINE = 32, JOBQ__KEYS_LINEAR = 16 };

/* Where a text key lies: its offset in bases[base] stays valid while the map is open. */
enum { JOBQ__KEY_INPUT = 0, JOBQ__KEY_HELD = 1 };

typedef struct {
    uint64_t word; /* the integer's bits, or the text's offset */
    uint64_t tag;  /* what it is, and the text's length */
} jobq__key;

/* One open map's part of the stacks. */
typedef struct {
    size_t first;      /* its keys: keys[first] .. keys[count - 1] */
    size_t index_at;   /* its index: slots[index_at] .. + index_size */
    size_t index_size; /* 0: compared one by one */
} jobq__key_mark;

typedef struct {
    jobq__key *keys; /* own[] or allocated */
    size_t count, cap;
    uint32_t *slots; /* position in the map's keys + 1, 0 = free */
    size_t slot_count, slot_cap;
    const char *bases[2];
    uint64_t seed[2];
    bool seeded;
    jobq__key own[JOBQ__KEYS_INLINE];
} jobq__keys;

void jobq__keys_init(jobq__keys *keys); /* must not be moved afterwards */
void jobq__keys_reset(jobq__keys *keys);
void jobq__keys_free(jobq__keys *keys);

void jobq__keys_begin(jobq__keys *keys, jobq__key_mark *mark);
/* Adds a key of the innermost map: 0, 1 when an equal one is there, JOBQ_ENOMEM (no record set). */
int jobq__keys_add(jobq__keys *keys, jobq__key_mark *mark, const jobq_token *key, int base,
                   size_t offset);
void jobq__keys_end(jobq__keys *keys, const jobq__key_mark *mark);

#endif
