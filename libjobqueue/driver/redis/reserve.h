/* SPDX-License-Identifier: MIT
 *
 * A reservation under way: exchange.c asks, reserve.c reads what came.
 */
#ifndef JOBQ_DRIVER_REDIS_RESERVE_H
#define JOBQ_DRIVER_REDIS_RESERVE_H

#include "driver/redis/redis.h"

/* What the batch was like before, and what has been read. */
typedef struct {
    rds_store *store;
    jobq_exchange *x;
    uint32_t queues_hash;
    jobq_record *first, *last; /* of the batch before */
    size_t count_before;
    size_t count, bytes, taken; /* handed out; taken back ones of them */
    jobq_slice *used;           /* priorities of each queue, as text */
    size_t over;                /* entries read beyond what was wanted */
    rds_token *excess;
    uint8_t last_priority;
    size_t last_queue;
    size_t from, span; /* the queues that are asked now */
    int64_t now_ms;    /* of the first server that answered */
    int64_t due_ms;    /* from its now until something is due; -1 = nothing known */
    bool recorded;     /* the worker's record stands where the native read took */
    bool begun;        /* a record was made, or one revived that had lapsed */
    bool exhausted;    /* nothing ready was left behind */
} rds_reservation;

/* settle.c: adds the scripts of a batch (how many: *scripts_out), and reads their answers. */
typedef struct rds_settling rds_settling;
int jobq__redis_settle_begin(rds_store *store, jobq_exchange *x, rds_settling **settling_out,
                             size_t *scripts_out);
int jobq__redis_settle_answers(rds_reservation *r, rds_settling *settling, rds_value **values);

/* As many as wanted, or bodies enough. */
bool jobq__redis_is_full(const rds_reservation *r);
/* COUNT of the native read. */
size_t jobq__redis_native_count(const rds_reservation *r);
/* A server's clock and what is due next by it. */
void jobq__redis_note_due(rds_reservation *r, int64_t now_ms, int64_t due_ms);
/* The answers of reserve.lua and of the native read. */
int jobq__redis_read_reserved(rds_reservation *r, const rds_value *value);
int jobq__redis_read_native(rds_reservation *r, const rds_value *value);
/* Gives back what was read beyond what was wanted ... */
void jobq__redis_unread_excess(rds_reservation *r);
/* ... or, since the call failed, everything; the batch is as before. */
void jobq__redis_unread_all(rds_reservation *r);

#endif
