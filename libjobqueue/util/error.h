/* SPDX-License-Identifier: MIT
 *
 * Setting the thread's error record. The lowest layer that knows the cause words it, once: one
 * line, lower case, naming the thing ("sqlite: database is locked (queue \"mail\")").
 */
#ifndef JOBQ_UTIL_ERROR_H
#define JOBQ_UTIL_ERROR_H

#include <jobqueue/error.h>

enum {
    JOBQ__RETRYABLE = 1,
    JOBQ__FATAL = 2,
    JOBQ__SCHEMA = 4 /* the store's tables are of another version than ours */
};

struct jobq_error {
    int code;
    int flags;
    int64_t native;
    const char *driver; /* static text */
    char message[1024];
    char subject[512];
};

/* Each returns `code`, so that a caller can `return jobq__error_set(...)`. The message is made one
 * line: control characters become spaces, bytes that are not UTF-8 become '?'. */
int jobq__error_set(int code, const char *fmt, ...) JOBQ_PRINTF(2, 3);
int jobq__error_set_subject(int code, const char *subject, size_t n, const char *fmt, ...)
    JOBQ_PRINTF(4, 5);
int jobq__error_set_driver(int code, int flags, const char *driver, int64_t native, const char *fmt,
                           ...) JOBQ_PRINTF(5, 6);
int jobq__error_nomem(void);                    /* JOBQ_ENOMEM */
void jobq__error_clear(void);                   /* on entry of every public call that can fail */
void jobq__error_save(struct jobq_error *copy); /* for carrying it across another call */
int jobq__error_restore(const struct jobq_error *copy);
int jobq__error_code(void); /* 0 when clear */

#endif
