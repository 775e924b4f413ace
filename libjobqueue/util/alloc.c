/* SPDX-License-Identifier: MIT
 *
 * malloc with a switch that makes it fail on purpose.
 */
#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local int64_t count, fail_at;
static _Thread_local int fail_sticky;

static int refuse(void)
{
    count++;
    if (fail_at == 0)
        return 0;
    if (fail_at > 1) {
        fail_at--;
        return 0;
    }
    if (!fail_sticky)
        fail_at = 0;
    return 1;
}

void *jobq__alloc(size_t n)
{
    return refuse() ? NULL : malloc(n ? n : 1);
}

void *jobq__zalloc(size_t n)
{
    return refuse() ? NULL : calloc(1, n ? n : 1);
}

void *jobq__realloc(void *p, size_t n)
{
    return refuse() ? NULL : realloc(p, n ? n : 1);
}

void *jobq__memdup(const void *p, size_t n)
{
    char *copy = jobq__alloc(n + 1);

    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

char *jobq__strdup(const char *s)
{
    return jobq__memdup(s, strlen(s));
}

void jobq__free(void *p)
{
    free(p);
}

void jobq__alloc_fail_at(int64_t n, int sticky)
{
    fail_at = n;
    fail_sticky = sticky;
}

int64_t jobq__alloc_count(void)
{
    return count;
}
