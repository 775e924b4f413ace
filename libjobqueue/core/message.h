/* SPDX-License-Identifier: MIT
 *
 * Inside of a message, for message.c and push.c.
 */
#ifndef JOBQ_CORE_MESSAGE_H
#define JOBQ_CORE_MESSAGE_H

#include "core/conf_table.h"
#include "core/ident.h"
#include "core/queue.h"
#include "payload/envelope.h"
#include "util/clock.h"
#include "util/error.h"

struct jobq_message {
    jobq__buf name, body, header;
    jobq_writer *writer; /* NULL until asked for */
    bool body_given;
    int format;
    jobq_conf *options; /* scope push */
    jobq__arena texts;  /* the context's */
    jobq__pair *context;
    size_t context_count, context_room, context_bytes;
    bool guarded;
    jobq_statement guard; /* with what it points to in guard_arena */
    jobq__arena guard_arena;
    jobq_batch scratch; /* the statement that push_statement lent out */
    jobq_statement statement;
    /* after a push */
    char id[JOBQ__ID_SIZE];
    int result;
    struct jobq_error error;
};

/* Checks the message and fills the item, whose slices point into it. `queue` is used when the
 * message names none. */
int jobq__message_prepare(jobq_message *m, const char *queue, int64_t max_payload, jobq_push *item);

#endif
