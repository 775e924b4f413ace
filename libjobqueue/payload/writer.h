/* SPDX-License-Identifier: MIT
 *
 * Of the writer, what the rest of the library may know.
 */
#ifndef JOBQ_PAYLOAD_WRITER_H
#define JOBQ_PAYLOAD_WRITER_H

#include <jobqueue/payload.h>

/* Nothing was written yet and nothing went wrong. */
bool jobq__writer_is_untouched(const jobq_writer *w);

#endif
