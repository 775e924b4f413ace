/* SPDX-License-Identifier: MIT
 *
 * What follows a death (rule F6): the dead job's failed hook is owed as a job of its own, in a
 * queue beside the dead job's that people cannot name. It has the dead job's name and version, so
 * that whoever runs such jobs takes it, its time limit when one was pushed, and a small body:
 *
 *     msgpack map {id, reason, died (ms since 1970), class, message}; what is unknown is left out
 */
#ifndef JOBQ_CORE_FOLLOW_H
#define JOBQ_CORE_FOLLOW_H

#include <jobqueue/sys/driver.h>

#include "core/fault.h"
#include "util/buf.h"

enum { JOBQ__FOLLOW_MESSAGE = 1024 };

typedef struct {
    jobq_slice id, queue, name, header; /* of the dead job; queue without the mark */
    int32_t version;
    int reason; /* JOBQ__REASON_* */
    int64_t died_at_ms;
    jobq_slice class_name, message; /* of its last error, absent = none */
} jobq__death;

/* The push of that death's hook, in the arena. NULL: no memory. */
const jobq_push *jobq__follow_make(jobq__arena *arena, const jobq__death *death);
/* The same with class and message of an encoded error (core/fault.h) when they are not given. */
const jobq_push *jobq__follow_settle(jobq__arena *arena, jobq__death *death, jobq_slice error);
/* id, reason, time, class and message back from a hook's body, in the arena; the rest is left
 * alone. False: unreadable. */
bool jobq__follow_read(jobq_slice body, jobq__arena *arena, jobq__death *out);
/* The hidden queue beside that one, written to `out` (queue.n + 1 bytes). */
jobq_slice jobq__follow_hide(char *out, jobq_slice queue);
/* The dead job's queue: without the mark. */
jobq_slice jobq__follow_queue(jobq_slice hidden);

#endif
