/* SPDX-License-Identifier: MIT
 *
 * Answers that several stores put together alike: strays of an audit, minutes, statements for the
 * caller's own transaction. Everything lies in the batch's arena, whatever it was made of.
 */
#ifndef JOBQ_DRIVER_ANSWERS_H
#define JOBQ_DRIVER_ANSWERS_H

#include "driver/driver.h"

/* Adds a stray at *link and moves it on. id: in the arena already, or absent: a place without a
 * job, which then is called by its `seq`, "#17". JOBQ_ENOMEM. */
int jobq__stray_add(jobq_audit *a, jobq_stray ***link, jobq_slice id, int64_t seq, unsigned states,
                    bool ownerless);

/* Adds an empty minute at *link and moves it on. NULL: no memory, worded. */
jobq_minute *jobq__minute_add(jobq_minutes *m, jobq_minute ***link, int64_t minute);
/* Stores that keep a minute as numbered places: the counts from 0 on, the buckets from here on.
 * Others are those of a later version and left out. */
enum { JOBQ__MINUTE_BUCKETS_AT = 16 };
void jobq__minute_put(jobq_minute *minute, int64_t place, int64_t n);

/* The answer of a request: text and parameters are copied. JOBQ_ENOMEM. */
int jobq__request_answer(jobq_request *r, const char *text, const jobq_param *params, size_t count);

#endif
