/* SPDX-License-Identifier: MIT
 *
 * What people ask of running workers through the store: pause and resume, restart, cancel a job,
 * clear a queue (rules L1 to L3). Workers obey within a second, wherever they run.
 */
#ifndef JOBQUEUE_CONTROL_H
#define JOBQUEUE_CONTROL_H

#include <jobqueue/queue.h>

JOBQ_BEGIN_DECLS

/* Workers take no jobs of that queue (name NULL: of no queue at all) until it is resumed or ttl_ms
 * have passed (0 = until resumed, at most ten years); what runs ends as it would. Pushes are stored
 * as ever. Pausing again sets the new end. "All" is a pause of its own: a queue's own pause stays
 * when all are resumed, and a worker's option `force` ignores "all" alone. @since 0.1 */
JOBQ_API int jobq_queue_pause(jobq_queue *queue, const char *name, size_t n, int64_t ttl_ms);
/* Ends that pause; one that does not exist is fine. @since 0.1 */
JOBQ_API int jobq_queue_resume(jobq_queue *queue, const char *name, size_t n);
/* Is that queue paused, by its own pause or by "all"? until_ms_out (may be NULL): when the longer
 * one ends by the store's clock, 0 = when it is resumed. Returns 1, 0 or an error. @since 0.1 */
JOBQ_API int jobq_queue_is_paused(jobq_queue *queue, const char *name, size_t n,
                                  int64_t *until_ms_out);

/* Every worker that was made before finishes what runs and ends with code 0, to be started anew by
 * whoever watches over it. @since 0.1 */
JOBQ_API int jobq_queue_restart_workers(jobq_queue *queue);
/* The number of restarts asked for so far: a worker made with an older one ends. @since 0.1 */
JOBQ_API int64_t jobq_queue_generation(jobq_queue *queue);

enum { JOBQ_CANCELLED = 0, JOBQ_CANCEL_ASKED = 1 };
/* A waiting job is dead with the reason "cancelled" (JOBQ_CANCELLED). A running one is told so
 * (JOBQ_CANCEL_ASKED): jobq_job_is_cancelled() is true within a second, a normal return is done all
 * the same, a throw is dead; `hard` ends it by exception and kill as at its time limit.
 * JOBQ_ENOTFOUND: no waiting or running job has that id; JOBQ_EINVAL: none can. @since 0.1 */
JOBQ_API int jobq_queue_cancel(jobq_queue *queue, const char *id, size_t n, bool hard);

/* Removes every waiting job of a queue, ready and delayed, in bounded pages; what is reserved or
 * dead stays. progress as in jobq_queue_mend. Returns how many. @since 0.1 */
JOBQ_API int64_t jobq_queue_clear(jobq_queue *queue, const char *name, size_t n,
                                  int (*progress)(void *payload, int64_t done), void *payload);

JOBQ_END_DECLS
#endif
