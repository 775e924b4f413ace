/* SPDX-License-Identifier: MIT
 *
 * The floor for Redis: streams. A push is one XADD, in bulk a pipeline of them. An exchange is one
 * trip: a script that looks up the batch in the pending list, compares owner and delivery count
 * (the fence) and removes it, and behind it the XREADGROUP for the next one.
 *
 *     floor_redis HOST:PORT JOBS PHASE...
 */
#include "floor.h"

#include <hiredis/hiredis.h>

#define STREAM "{floor}:9"

static const char settle_script[] =
    "local from, to = ARGV[2], ARGV[#ARGV] "
    "local p = redis.call('XPENDING', KEYS[1], 'workers', from, to, #ARGV - 1, ARGV[1]) "
    "local mine = {} "
    "for i = 1, #p do if p[i][4] == 1 then mine[p[i][1]] = true end end "
    "local ids = {} "
    "for i = 2, #ARGV do if mine[ARGV[i]] then ids[#ids + 1] = ARGV[i] end end "
    "if #ids > 0 then "
    "redis.call('XACK', KEYS[1], 'workers', unpack(ids)) "
    "redis.call('XDEL', KEYS[1], unpack(ids)) end "
    "return #ids";

static redisContext *redis;
static char script_sha[41];
static char held[BATCH][48];
static size_t held_length[BATCH];
static int held_count;

static redisReply *next_reply(void)
{
    void *reply = NULL;

    if (redisGetReply(redis, &reply) != REDIS_OK)
        fail("reading", redis->errstr);
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
        fail("answer", ((redisReply *)reply)->str);
    return reply;
}

static void open_redis(const char *address)
{
    char host[256];
    int port = 0;
    redisReply *reply;

    if (sscanf(address, "%255[^:]:%d", host, &port) != 2)
        fail(address, "not HOST:PORT");
    redis = redisConnect(host, port);
    if (!redis || redis->err)
        fail(address, redis ? redis->errstr : "no memory");
    held_count = 0;
    if (script_sha[0])
        return;
    redisAppendCommand(redis, "SCRIPT LOAD %s", settle_script);
    reply = next_reply();
    snprintf(script_sha, sizeof(script_sha), "%s", reply->str);
    freeReplyObject(reply);
}

static void close_redis(void)
{
    redisFree(redis);
    redis = NULL;
}

static void reset_redis(void)
{
    held_count = 0;
    redisAppendCommand(redis, "DEL " STREAM);
    redisAppendCommand(redis, "XGROUP CREATE " STREAM " workers 0 MKSTREAM");
    freeReplyObject(next_reply());
    freeReplyObject(next_reply());
}

static void append_add(const floor_job *job)
{
    const char *argv[] = {"XADD", STREAM, "*", "i", job->id, "n", "noop", "b", job->body};
    const size_t length[] = {4, sizeof(STREAM) - 1, 1, 1, ID, 1, 4, 1, BODY};

    redisAppendCommandArgv(redis, 9, argv, length);
}

static void push(const floor_job *job)
{
    append_add(job);
    freeReplyObject(next_reply());
}

static void push_bulk(const floor_job *jobs, int n)
{
    for (int i = 0; i < n; i++)
        append_add(&jobs[i]);
    for (int i = 0; i < n; i++)
        freeReplyObject(next_reply());
}

/* [[stream, [[id, [field, value ...]] ...]]], or nil */
static int take_entries(const redisReply *reply, floor_job *got)
{
    const redisReply *entries;

    held_count = 0;
    if (reply->type != REDIS_REPLY_ARRAY)
        return 0;
    entries = reply->element[0]->element[1];
    for (size_t i = 0; i < entries->elements; i++) {
        const redisReply *entry = entries->element[i], *fields = entry->element[1];

        held_length[i] = entry->element[0]->len;
        memcpy(held[i], entry->element[0]->str, held_length[i]);
        memcpy(got[i].id, fields->element[1]->str, ID);
        memcpy(got[i].body, fields->element[5]->str, BODY);
    }
    held_count = (int)entries->elements;
    return held_count;
}

static void append_settle(void)
{
    const char *argv[BATCH + 5] = {"EVALSHA", script_sha, "1", STREAM, "floor"};
    size_t length[BATCH + 5] = {7, 40, 1, sizeof(STREAM) - 1, 5};

    for (int i = 0; i < held_count; i++) {
        argv[5 + i] = held[i];
        length[5 + i] = held_length[i];
    }
    redisAppendCommandArgv(redis, 5 + held_count, argv, length);
}

static int exchange(floor_job *got)
{
    redisReply *reply;
    int settled = held_count, n;

    if (settled)
        append_settle();
    redisAppendCommand(redis, "XREADGROUP GROUP workers floor COUNT %d STREAMS " STREAM " >",
                       BATCH);
    if (settled) {
        reply = next_reply();
        if (reply->integer != settled)
            fail("settling", "a lease was lost");
        freeReplyObject(reply);
    }
    reply = next_reply();
    n = take_entries(reply, got);
    freeReplyObject(reply);
    return n;
}

static void listen_redis(bool waiting)
{
    (void)waiting;
}

static int await(floor_job *got)
{
    redisReply *reply;
    int n;

    redisAppendCommand(redis,
                       "XREADGROUP GROUP workers floor COUNT 1 BLOCK 1000 STREAMS " STREAM " >");
    reply = next_reply();
    n = take_entries(reply, got);
    freeReplyObject(reply);
    return n;
}

int main(int argc, char **argv)
{
    static const floor_store store = {
        .name = "redis",
        .singles = 20000,
        .fresh = 2000,
        .open = open_redis,
        .reset = reset_redis,
        .push = push,
        .push_bulk = push_bulk,
        .exchange = exchange,
        .listen = listen_redis,
        .await = await,
        .close = close_redis,
    };

    return run_floor(&store, argc, argv);
}
