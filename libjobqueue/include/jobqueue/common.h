/* SPDX-License-Identifier: MIT
 *
 * What every public header needs: the export mark, the version, C linkage. Text and bytes travel as
 * pointer + length everywhere; a NUL byte inside is an ordinary byte. Spans are int64_t
 * milliseconds (suffix _ms), instants are milliseconds since 1970 by the store's clock (suffix
 * _at_ms; 0 = none).
 */
#ifndef JOBQUEUE_COMMON_H
#define JOBQUEUE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jobqueue/version.h>

#ifdef __cplusplus
#define JOBQ_BEGIN_DECLS extern "C" {
#define JOBQ_END_DECLS }
#else
#define JOBQ_BEGIN_DECLS
#define JOBQ_END_DECLS
#endif

#if defined(__GNUC__) && defined(JOBQ_BUILDING)
#define JOBQ_API __attribute__((visibility("default")))
#else
#define JOBQ_API
#endif

#if defined(__GNUC__)
#define JOBQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define JOBQ_PRINTF(fmt, args)
#endif

JOBQ_BEGIN_DECLS

/* The library's version as text, e.g. "0.1.0". Never NULL. Any thread. @since 0.1 */
JOBQ_API const char *jobq_version(void);

/* The same as JOBQ_VERSION_NUMBER has it. Below that number the library that was loaded is older
 * than the headers that a program was compiled with, and may lack what it calls. Any thread.
 * @since 0.1 */
JOBQ_API int jobq_version_number(void);

/* Name of the i-th driver built in ("sqlite", "memory", ...), NULL past the end. @since 0.1 */
JOBQ_API const char *jobq_driver_name(size_t i);

JOBQ_END_DECLS
#endif
