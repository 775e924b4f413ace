/* SPDX-License-Identifier: MIT
 *
 * Replies: hiredis' reader, made to build our values in the connection's arena.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "driver/redis/redis.h"

enum { ELEMENTS_MAX = 1 << 22 };

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static rds_value *make(const redisReadTask *task, rds_type type)
{
    rds_link *link = task->privdata;
    rds_value *value = jobq__arena_alloc(&link->arena, sizeof(*value));

    if (!value) {
        link->arena_failed = true;
        return NULL;
    }
    value->type = type;
    if (task->parent)
        ((rds_value *)task->parent->obj)->item[task->idx] = value;
    return value;
}

static void *fail(const redisReadTask *task)
{
    ((rds_link *)task->privdata)->arena_failed = true;
    return NULL;
}

static void *make_text(const redisReadTask *task, char *p, size_t n)
{
    rds_value *value = make(task, task->type == REDIS_REPLY_ERROR    ? RDS_ERROR
                                  : task->type == REDIS_REPLY_STATUS ? RDS_STATUS
                                                                     : RDS_TEXT);

    if (!value)
        return NULL;
    value->p = jobq__arena_copy(&((rds_link *)task->privdata)->arena, p, n);
    value->n = n;
    return value->p ? value : fail(task);
}

static void *make_list(const redisReadTask *task, element_count n)
{
    rds_value *value = make(task, RDS_LIST);

    if (!value || n <= 0)
        return value;
    if (n > ELEMENTS_MAX) /* no store of ours: the size is only claimed */
        return NULL;
    value->item =
        jobq__arena_alloc(&((rds_link *)task->privdata)->arena, (size_t)n * sizeof(rds_value *));
    value->count = (size_t)n;
    return value->item ? value : fail(task);
}

static void *make_integer(const redisReadTask *task, long long integer)
{
    rds_value *value = make(task, RDS_INTEGER);

    if (value)
        value->integer = integer;
    return value;
}

static void *make_nil(const redisReadTask *task)
{
    return make(task, RDS_NIL);
}

#if HIREDIS_MAJOR >= 1
/* Of the third protocol, which nobody asked for: without these the reader makes up addresses. */
static void *make_double(const redisReadTask *task, double number, char *p, size_t n)
{
    (void)number;
    return make_text(task, p, n);
}

static void *make_bool(const redisReadTask *task, int truth)
{
    return make_integer(task, truth != 0);
}
#endif

static void drop_nothing(void *value)
{
    (void)value; /* the arena's */
}

void *jobq__redis_reader_new(rds_link *link)
{
    static redisReplyObjectFunctions functions = {
        .createString = make_text,
        .createArray = make_list,
        .createInteger = make_integer,
        .createNil = make_nil,
#if HIREDIS_MAJOR >= 1
        .createDouble = make_double,
        .createBool = make_bool,
#endif
        .freeObject = drop_nothing
    };
    redisReader *reader = redisReaderCreateWithFunctions(&functions);

    if (reader) {
        reader->privdata = link;
        reader->maxbuf = 1 << 20; /* kept between replies */
    }
    return reader;
}

void jobq__redis_reader_free(void *reader)
{
    if (reader)
        redisReaderFree(reader);
}

int jobq__redis_reader_feed(void *reader, const char *p, size_t n)
{
    return redisReaderFeed(reader, p, n) == REDIS_OK ? 0 : -1;
}

int jobq__redis_reader_next(void *reader, rds_value **value_out)
{
    void *value = NULL;

    if (redisReaderGetReply(reader, &value) != REDIS_OK)
        return -1;
    if (!value)
        return 0;
    *value_out = value;
    return 1;
}

/* ---- walking over a list --------------------------------------------------------------------- */

bool jobq__redis_more(const rds_walk *walk)
{
    return walk->list && walk->at < walk->list->count;
}

static const rds_value *step(rds_walk *walk)
{
    return jobq__redis_more(walk) ? walk->list->item[walk->at++] : NULL;
}

int64_t jobq__redis_number_of(const rds_value *value)
{
    uint64_t n = 0;

    if (value->type == RDS_INTEGER)
        return value->integer;
    if (value->type == RDS_TEXT && value->n < 32) {
        for (size_t i = 0; i < value->n && value->p[i] >= '0' && value->p[i] <= '9'; i++)
            n = n * 10 + (uint64_t)(value->p[i] - '0');
    }
    return n <= INT64_MAX ? (int64_t)n : 0; /* no number of ours is that large */
}

int64_t jobq__redis_int(rds_walk *walk)
{
    const rds_value *value = step(walk);

    return value ? jobq__redis_number_of(value) : 0;
}

/* The answer to TIME. */
int64_t jobq__redis_time(rds_walk *walk)
{
    const int64_t seconds = jobq__redis_int(walk), us = jobq__redis_int(walk);

    return seconds >= 0 && seconds < INT64_MAX / 2000 ? seconds * 1000 + us % 1000000 / 1000 : 0;
}

jobq_slice jobq__redis_text(rds_walk *walk)
{
    const rds_value *value = step(walk);

    return value && (value->type == RDS_TEXT || value->type == RDS_STATUS)
               ? jobq__slice(value->p, value->n)
               : jobq__slice("", 0);
}
