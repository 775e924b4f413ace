/* SPDX-License-Identifier: MIT
 *
 * Error codes and the record of the calling thread's last error. A function that returns int
 * returns >= 0 on success (with the meaning its comment gives) and one of the negative codes below
 * on failure; one that returns a pointer returns NULL. The record is cleared on entry of every
 * public call that can fail and set by every one that does.
 */
#ifndef JOBQUEUE_ERROR_H
#define JOBQUEUE_ERROR_H

#include <jobqueue/common.h>

JOBQ_BEGIN_DECLS

/* name, value, word (stable, for programs), meaning (for doc/errors.md). Numbers that are missing
 * are kept for parts that do not exist yet. */
#define JOBQ_ERROR_LIST(X)                                                                         \
    X(JOBQ_EINVAL, -1, "invalid_argument", "a value is of the wrong form or out of its range")     \
    X(JOBQ_ENOMEM, -2, "out_of_memory", "memory could not be had")                                 \
    X(JOBQ_ECONF, -3, "configuration",                                                             \
      "an option or DSN is unknown, misplaced or not usable here")                                 \
    X(JOBQ_EUNSUPPORTED, -4, "unsupported", "the store or this build cannot do that")              \
    X(JOBQ_ECONNECT, -5, "connect", "the store could not be reached")                              \
    X(JOBQ_EIO, -6, "io", "the store failed while doing it; nothing was changed")                  \
    X(JOBQ_ETIMEOUT, -7, "timeout", "the store did not answer in time; nothing was changed")       \
    X(JOBQ_EINTR, -8, "interrupted", "a signal ended the wait")                                    \
    X(JOBQ_EPROTO, -9, "protocol", "the store answered something that makes no sense")             \
    X(JOBQ_EBUSY, -10, "busy",                                                                     \
      "somebody else held the store until the deadline; nothing was changed")                      \
    X(JOBQ_EEXISTS, -11, "duplicate", "a job with that id, or that unique key, exists already")    \
    X(JOBQ_ENOTFOUND, -12, "not_found", "no such job, queue or command")                           \
    X(JOBQ_ELEASE, -13, "lease_lost", "the lease token is no longer current; nothing was changed") \
    X(JOBQ_ELIMIT, -14, "limit", "a size or count is above its limit")                             \
    X(JOBQ_EFULL, -15, "queue_full", "the queue holds as many jobs as its capacity allows")        \
    X(JOBQ_EGUARD, -16, "guard_refused", "the guard of the push was not true; nothing was stored") \
    X(JOBQ_EPAYLOAD, -17, "payload", "the payload cannot be queued or cannot be read")             \
    X(JOBQ_EUNKNOWN, -18, "outcome_unknown", "the answer was lost: it may have happened or not")   \
    X(JOBQ_ECALLBACK, -19, "callback", "the caller's own function failed; its error is passed up") \
    X(JOBQ_EFORKED, -20, "forked", "the object belongs to the process that made it")               \
    X(JOBQ_EPENDING, -23, "pending", "the job had not ended when the wait for it was over")        \
    X(JOBQ_EDEAD, -24, "job_dead", "the job that was waited for is dead")                          \
    X(JOBQ_EBUG, -22, "bug", "an internal rule was broken; please report it")

#define JOBQ__ERROR_ENUM(name, value, word, meaning) name = (value),
enum { JOBQ_OK = 0, JOBQ_ERROR_LIST(JOBQ__ERROR_ENUM) };

typedef struct jobq_error jobq_error;

/* The calling thread's last error, NULL when the last public call succeeded. Borrowed: valid until
 * the next public call of this thread. @since 0.1 */
JOBQ_API const jobq_error *jobq_error_last(void);

/* All accessors accept NULL (they answer 0, "" or false). Messages are one line, lower case, and
 * never hold a password. @since 0.1 */
JOBQ_API int jobq_error_code(const jobq_error *err);
JOBQ_API const char *jobq_error_message(const jobq_error *err);
JOBQ_API const char *jobq_error_driver(const jobq_error *err); /* "" when no driver was involved */
/* errno or the client library's code; of JOBQ_EFULL the queue's capacity */
JOBQ_API int64_t jobq_error_native(const jobq_error *err);
JOBQ_API bool jobq_error_is_retryable(const jobq_error *err); /* the same call may succeed later */
JOBQ_API bool jobq_error_is_fatal(const jobq_error *err);     /* configuration: it never will */
/* What the error is about: the job id (EEXISTS, EUNKNOWN, EGUARD, ELEASE, EDEAD, EPENDING), the
 * queue (EFULL), the payload path (EPAYLOAD), the option (ECONF, EINVAL). "" when there is
 * nothing of the kind. */
JOBQ_API const char *jobq_error_subject(const jobq_error *err);

/* The stable word of a code ("lease_lost"), "unknown" for a number that is none. @since 0.1 */
JOBQ_API const char *jobq_error_word(int code);

JOBQ_END_DECLS
#endif
