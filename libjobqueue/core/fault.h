/* SPDX-License-Identifier: MIT
 *
 * How an attempt went, as bytes (rule F5): the last error in full and the history's entries.
 * Drivers keep both as they are. Encoding cannot fail: what does not fit is cut at a character
 * boundary, what is not UTF-8 made visible, and without memory a fixed text stands in.
 *
 *     error    msgpack list [class, message, where, trace], <= 64 KiB
 *     entry    msgpack list [started_ms, ended_ms, worker, outcome, class, message],
 *              message <= 1 KiB; a seventh value, true, when other jobs ran in the process that
 *              died
 */
#ifndef JOBQ_CORE_FAULT_H
#define JOBQ_CORE_FAULT_H

#include <jobqueue/sys/driver.h>

#include "util/buf.h"

enum {
    JOBQ__FAULT_MAX = 65536,
    JOBQ__FAULT_CLASS = 255,
    JOBQ__FAULT_MESSAGE = 32768,
    JOBQ__FAULT_WHERE = 1024,
    JOBQ__FAULT_TRACE = 30720,
    JOBQ__ENTRY_MESSAGE = 1024
};

typedef struct {
    jobq_slice class_name, message, where, trace; /* absent = unknown */
} jobq__fault;

typedef struct {
    int64_t started_at_ms, ended_at_ms;
    jobq_slice worker, outcome, class_name, message;
    bool shared;
} jobq__entry;

bool jobq__fault_is_empty(const jobq__fault *fault);
/* Both replace what the buffer holds. */
void jobq__fault_write(jobq__buf *out, const jobq__fault *fault);
void jobq__entry_write(jobq__buf *out, const jobq__entry *entry);
/* The entry of an attempt whose worker's lease ran out, in two parts: between them a driver writes
 * the length of the worker's id as one byte and the id. Its time is when that was found. */
typedef struct {
    char head[20], tail[96];
    size_t tail_n;
} jobq__lost_entry;
void jobq__lost_entry_make(jobq__lost_entry *out, int64_t found_at_ms);
/* What fault_write left, or the fixed text when there was no memory for a byte. */
jobq_slice jobq__fault_bytes(const jobq__buf *out);
/* The text as it is kept: visible, at most `max` bytes and a NUL (out has max + 1), with a note of
 * both sizes when it was cut. Doing it again changes nothing. Returns the length. */
size_t jobq__fault_tidy(char *out, size_t max, jobq_slice text);
/* Slices point into the arena, NUL-terminated. False: unreadable (outputs empty). */
bool jobq__fault_read(jobq_slice bytes, jobq__arena *arena, jobq__fault *out);
bool jobq__entry_read(jobq_slice bytes, jobq__arena *arena, jobq__entry *out);

#endif
