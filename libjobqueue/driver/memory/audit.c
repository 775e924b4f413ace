/* SPDX-License-Identifier: MIT
 *
 * Self-checks. A job here is one element with one state, so only a missing owner could be found.
 */
#include "driver/answers.h"
#include "driver/cursor.h"
#include "driver/memory/memory.h"

static int look_at(jobq_audit *a, const mem_job *job, jobq_stray ***link)
{
    jobq_slice id;

    if (job->state != MEM_RESERVED || job->worker) {
        a->seen[job->state]++;
        return 0;
    }
    id = jobq_batch_copy(a->out, job->id.p, job->id.n);
    return id.p ? jobq__stray_add(a, link, id, 0, 1u << job->state, true) : jobq__error_nomem();
}

int jobq__memory_audit(void *handle, jobq_audit *a)
{
    const mem_store *store = handle;
    jobq__cursor cursor;
    jobq_stray **link = &a->strays;
    size_t looked = 0;
    int rc = jobq__cursor_read(a->after, &cursor);

    a->strays = NULL;
    a->next = jobq__slice(NULL, 0);
    memset(a->seen, 0, sizeof(a->seen));
    for (const mem_job *job = store->first; job && rc == 0; job = job->next) {
        if (job->seq <= cursor.part[2] || !jobq__slice_equal(job->queue, a->queue))
            continue;
        if (looked++ == a->limit)
            return jobq__cursor_write(cursor.part, a->out, &a->next);
        rc = look_at(a, job, &link);
        cursor.part[2] = job->seq;
    }
    return rc;
}

int jobq__memory_examine(void *handle, jobq_examination *e)
{
    (void)handle;
    return jobq__remark(e, JOBQ_REMARK_NOTE, "durability",
                        "use a file (sqlite:) or a server for jobs that must not be lost",
                        "jobs live in the memory of this one process and end with it");
}
