/* SPDX-License-Identifier: MIT
 *
 * Ids: UUIDv7 text for jobs (RFC 9562, section 5.7, with a counter so that one process's ids
 * ascend), and host:pid:random for workers.
 */
#ifndef JOBQ_CORE_IDENT_H
#define JOBQ_CORE_IDENT_H

enum { JOBQ__UUID_SIZE = 37, JOBQ__WORKER_ID_SIZE = 65, JOBQ__ID_SIZE = 129 };

void jobq__ident_job(char out[JOBQ__UUID_SIZE]);
void jobq__ident_worker(char out[JOBQ__WORKER_ID_SIZE]);

#endif
