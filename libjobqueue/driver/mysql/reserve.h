/* SPDX-License-Identifier: MIT
 *
 * What the two ways of reserving have in common: the columns of a job, and how it is read.
 */
#ifndef JOBQ_DRIVER_MYSQL_RESERVE_H
#define JOBQ_DRIVER_MYSQL_RESERVE_H

#include "driver/mysql/mysql.h"

/* Behind them stand BODY and SIZE. */
#define JOB_COLUMNS \
    "seq, ranking, available_at, id, name, version, unique_key, " COUNTER_COLUMNS ", cancel, header"
enum {
    SEQ,
    RANKING,
    AVAILABLE_AT,
    ID,
    NAME,
    VERSION,
    UNIQUE,
    COUNTERS,
    CANCEL = 18,
    HEADER,
    BODY,
    SIZE
};

typedef struct {
    jobq_exchange *x;
    mysql_state *state;
    size_t count, bytes, taken_back;
    int64_t nonce;       /* + seq = a hand-out's */
    mysql_arg *seqs;     /* of what is taken, `want` of them; NULL = not asked for */
    jobq_record **large; /* whose body is still to be fetched, where it may be absent */
    size_t large_count;
    bool left; /* there may be more than was taken */
} reservation;

int64_t jobq__mysql_nonce(void);
int jobq__mysql_take(const mysql_statement *rows, bool taken_back, jobq_slice queue,
                     reservation *r);
/* In the transaction under way. */
int jobq__mysql_reserve(mysql_store *store, jobq_exchange *x, mysql_state *state);

#endif
