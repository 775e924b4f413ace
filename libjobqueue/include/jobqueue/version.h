/* SPDX-License-Identifier: MIT
 *
 * The one place where the version number stands; configure.ac and every package read it from here.
 */
#ifndef JOBQUEUE_VERSION_H
#define JOBQUEUE_VERSION_H

#define JOBQ_VERSION_MAJOR 0
#define JOBQ_VERSION_MINOR 1
#define JOBQ_VERSION_PATCH 0
#define JOBQ_VERSION "0.1.0"

/* For comparisons, as jobq_version_number() tells of the library. */
#define JOBQ_VERSION_NUMBER \
    (JOBQ_VERSION_MAJOR * 1000000 + JOBQ_VERSION_MINOR * 1000 + JOBQ_VERSION_PATCH)

#endif
