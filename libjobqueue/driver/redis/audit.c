/* SPDX-License-Identifier: MIT
 *
 * Does every job stand in exactly one state (rule F1)? scripts/audit.lua looks, a page at a time.
 */
#include <string.h>

#include "driver/answers.h"
#include "driver/redis/redis.h"
#include "util/error.h"

/* "part.place"; places are entries and numbers of scans. */
static bool is_cursor(jobq_slice text)
{
    const char *p = text.p;

    if (text.n < 2 || !memchr("9876543210rdoxin", p[0], 16) || p[1] != '.')
        return false;
    for (size_t i = 2; i < text.n; i++)
        if ((p[i] < '0' || p[i] > '9') && p[i] != '-')
            return false;
    return true;
}

static int read_stray(rds_walk *walk, jobq_audit *a, jobq_stray ***link)
{
    jobq_slice id = jobq__redis_text(walk);
    const unsigned states = (unsigned)jobq__redis_int(walk);
    const bool ownerless = jobq__redis_int(walk) != 0;

    id = jobq_batch_copy(a->out, id.p, id.n);
    return id.p ? jobq__stray_add(a, link, id, 0, states, ownerless) : jobq__error_nomem();
}

static int read_page(rds_store *store, const rds_value *value, jobq_audit *a)
{
    rds_walk walk = {value, 0}, strays;
    jobq_stray **link = &a->strays;
    jobq_slice next = jobq__redis_text(&walk);
    int rc = 0;

    if (value->count != 7)
        return jobq__redis_nonsense(store);
    for (int i = 0; i < 5; i++)
        a->seen[i] = jobq__redis_int(&walk);
    strays = (rds_walk){value->item[6], 0};
    while (jobq__redis_more(&strays) && rc == 0)
        rc = read_stray(&strays, a, &link);
    if (rc == 0 && next.n > 0) {
        a->next = jobq_batch_copy(a->out, next.p, next.n);
        rc = a->next.p ? 0 : jobq__error_nomem();
    }
    return rc;
}

int jobq__redis_audit(void *handle, jobq_audit *a)
{
    rds_store *store = handle;
    rds_value *value;
    int rc;

    a->next = jobq__slice(NULL, 0);
    a->strays = NULL;
    memset(a->seen, 0, sizeof(a->seen));
    if (a->after.p && !is_cursor(a->after))
        return jobq__refuse_cursor();
    rc = jobq__redis_enter(store);
    if (rc < 0)
        return rc;
    jobq__redis_script(store, RDS_SCRIPT_AUDIT, &a->queue, 1, 2);
    jobq__redis_number(&store->link, (int64_t)(a->limit < 1      ? 1
                                               : a->limit > 1000 ? 1000
                                                                 : a->limit));
    jobq__redis_word(&store->link, a->after.p ? a->after.p : "", a->after.n);
    rc = jobq__redis_call(store, &value, RDS_READS);
    return rc ? rc : read_page(store, value, a);
}
