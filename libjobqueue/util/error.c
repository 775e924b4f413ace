/* SPDX-License-Identifier: MIT
 *
 * The thread's error record and the code table. Nothing here allocates, so recording an error
 * cannot fail.
 */
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/str.h"

static _Thread_local struct jobq_error record;

#define ROW(name, value, word, meaning) {value, word},
static const struct {
    int code;
    const char *word;
} words[] = {JOBQ_ERROR_LIST(ROW)};
#undef ROW

const char *jobq_error_word(int code)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (words[i].code == code)
            return words[i].word;
    return "unknown";
}

const jobq_error *jobq_error_last(void)
{
    return record.code ? &record : NULL;
}

int jobq_error_code(const jobq_error *err)
{
    return err ? err->code : 0;
}

const char *jobq_error_message(const jobq_error *err)
{
    return err ? err->message : "";
}

const char *jobq_error_driver(const jobq_error *err)
{
    return err && err->driver ? err->driver : "";
}

int64_t jobq_error_native(const jobq_error *err)
{
    return err ? err->native : 0;
}

bool jobq_error_is_retryable(const jobq_error *err)
{
    return err && (err->flags & JOBQ__RETRYABLE);
}

bool jobq_error_is_fatal(const jobq_error *err)
{
    return err && (err->flags & JOBQ__FATAL);
}

const char *jobq_error_subject(const jobq_error *err)
{
    return err ? err->subject : "";
}

/* Formats into the record through a copy, since an argument may be the old message itself. */
static void word_it(const char *fmt, va_list ap)
{
    char text[sizeof(record.message)];

    jobq__vformat(text, sizeof(text), fmt, ap);
    jobq__str_one_line(record.message, sizeof(record.message), text, strlen(text));
}

static int begin(int code, int flags, const char *driver, int64_t native)
{
    record.code = code;
    record.flags = flags;
    record.driver = driver;
    record.native = native;
    record.subject[0] = '\0';
    return code;
}

int jobq__error_set(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    word_it(fmt, ap);
    va_end(ap);
    return begin(code, 0, NULL, 0);
}

int jobq__error_set_subject(int code, const char *subject, size_t n, const char *fmt, ...)
{
    char copy[sizeof(record.subject)];
    va_list ap;

    jobq__str_one_line(copy, sizeof(copy), subject, n);
    va_start(ap, fmt);
    word_it(fmt, ap);
    va_end(ap);
    begin(code, 0, NULL, 0);
    memcpy(record.subject, copy, sizeof(copy));
    return code;
}

int jobq__error_set_driver(int code, int flags, const char *driver, int64_t native, const char *fmt,
                           ...)
{
    va_list ap;

    va_start(ap, fmt);
    word_it(fmt, ap);
    va_end(ap);
    return begin(code, flags, driver, native);
}

int jobq__error_nomem(void)
{
    return jobq__error_set(JOBQ_ENOMEM, "out of memory");
}

void jobq__error_clear(void)
{
    record.code = 0;
}

void jobq__error_save(struct jobq_error *copy)
{
    *copy = record;
}

int jobq__error_restore(const struct jobq_error *copy)
{
    record = *copy;
    return record.code;
}

int jobq__error_code(void)
{
    return record.code;
}
