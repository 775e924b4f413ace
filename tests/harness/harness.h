/* SPDX-License-Identifier: MIT
 *
 * Assertions every suite uses. cmocka needs its headers in this order.
 */
#ifndef JOBQ_TESTS_HARNESS_H
#define JOBQ_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jobqueue/error.h>

/* The call succeeds (>= 0) and says so; its result otherwise shown with the error's text. */
#define assert_ok(expr) jobq_test_ok((int64_t)(expr), #expr, __FILE__, __LINE__)
/* The call fails with exactly that code, and the thread's record agrees. */
#define assert_code(expr, code) jobq_test_code((int64_t)(expr), (code), #expr, __FILE__, __LINE__)
/* The last error's message contains the text. */
#define assert_said(text) jobq_test_said((text), __FILE__, __LINE__)

int64_t jobq_test_ok(int64_t rc, const char *expr, const char *file, int line);
void jobq_test_code(int64_t rc, int code, const char *expr, const char *file, int line);
void jobq_test_said(const char *text, const char *file, int line);

/* A fresh folder under the system's temporary folder, removed with everything in it when the
 * process that asked ends normally. Borrowed. */
const char *jobq_test_folder(void);
/* Sets a locale whose decimal sign is a comma, as a host program may; one that is not installed is
 * made. False: neither can be had here, and "C" is set. End with setlocale(LC_ALL, "C"). */
bool jobq_test_comma_locale(void);
/* Waits until the condition holds, at most `seconds`; says what it waited for when it fails. */
#define wait_until(condition, seconds)                                 \
    do {                                                               \
        int64_t wait_end = jobq_test_deadline(seconds);                \
        while (!(condition))                                           \
            jobq_test_pause(wait_end, #condition, __FILE__, __LINE__); \
    } while (0)
int64_t jobq_test_deadline(int seconds);
void jobq_test_pause(int64_t deadline, const char *condition, const char *file, int line);

#endif
