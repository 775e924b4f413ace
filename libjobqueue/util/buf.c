/* SPDX-License-Identifier: MIT
 *
 * Growing buffers and arenas.
 */
#include "util/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/alloc.h"
#include "util/str.h"

/* An arena begins small: a producer has one in each of its many messages. */
enum { ARENA_FIRST = 512, ARENA_CHUNK = 16 * 1024 };

bool jobq__buf_reserve(jobq__buf *b, size_t more)
{
    size_t cap = b->cap ? b->cap : 128;
    char *p;

    if (b->failed)
        return false;
    if (b->cap - b->n >= more)
        return true;
    while (cap - b->n < more)
        cap *= 2;
    p = jobq__realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void jobq__buf_add(jobq__buf *b, const void *p, size_t n)
{
    if (n == 0 || !jobq__buf_reserve(b, n))
        return;
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

void jobq__buf_addc(jobq__buf *b, char c)
{
    jobq__buf_add(b, &c, 1);
}

void jobq__buf_adds(jobq__buf *b, const char *s)
{
    jobq__buf_add(b, s, strlen(s));
}

void jobq__buf_addf(jobq__buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = jobq__vformat(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !jobq__buf_reserve(b, (size_t)n + 1))
        return;
    va_start(ap, fmt);
    jobq__vformat(b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

const char *jobq__buf_text(jobq__buf *b)
{
    if (!jobq__buf_reserve(b, 1))
        return "";
    b->p[b->n] = '\0';
    return b->p;
}

void jobq__buf_reset(jobq__buf *b)
{
    b->n = 0;
    b->failed = false;
}

void jobq__buf_free(jobq__buf *b)
{
    jobq__free(b->p);
    memset(b, 0, sizeof(*b));
}

struct jobq__arena_chunk {
    jobq__arena_chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static jobq__arena_chunk *add_chunk(jobq__arena *a, size_t n)
{
    size_t size = a->chunks ? a->chunks->size * 4 : ARENA_FIRST;
    jobq__arena_chunk *chunk;

    size = size > ARENA_CHUNK ? ARENA_CHUNK : size;
    size = size < n ? n : size;
    chunk = jobq__alloc(sizeof(*chunk) + size);
    if (!chunk)
        return NULL;
    chunk->used = 0;
    chunk->size = size;
    chunk->next = a->chunks;
    a->chunks = chunk;
    return chunk;
}

void *jobq__arena_alloc(jobq__arena *a, size_t n)
{
    size_t rounded = (n + 15) & ~(size_t)15;
    jobq__arena_chunk *chunk = a->chunks;
    void *p;

    if (rounded < n)
        return NULL;
    if (!chunk || chunk->size - chunk->used < rounded)
        chunk = add_chunk(a, rounded);
    if (!chunk)
        return NULL;
    p = chunk->bytes + chunk->used;
    chunk->used += rounded;
    memset(p, 0, rounded);
    return p;
}

void *jobq__arena_copy(jobq__arena *a, const void *p, size_t n)
{
    char *copy = jobq__arena_alloc(a, n + 1);

    if (copy && n)
        memcpy(copy, p, n);
    return copy;
}

void jobq__arena_reset(jobq__arena *a)
{
    jobq__arena_chunk *keep = NULL, *next;

    for (jobq__arena_chunk *chunk = a->chunks; chunk; chunk = next) {
        jobq__arena_chunk *drop = chunk;

        next = chunk->next;
        if (chunk->size <= ARENA_CHUNK && (!keep || chunk->size > keep->size)) {
            drop = keep;
            keep = chunk;
        }
        jobq__free(drop);
    }
    if (keep) {
        keep->next = NULL;
        keep->used = 0;
    }
    a->chunks = keep;
}

void jobq__arena_free(jobq__arena *a)
{
    while (a->chunks) {
        jobq__arena_chunk *chunk = a->chunks;

        a->chunks = chunk->next;
        jobq__free(chunk);
    }
}
