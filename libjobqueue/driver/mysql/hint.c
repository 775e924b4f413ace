/* SPDX-License-Identifier: MIT
 *
 * Hints: where the front of a line is, so that a claim under load need not walk over the entries
 * that earlier claims left behind. They are only used while claims come back large; every two
 * seconds, and after anything that may have put a job before them, a claim starts from the start.
 */
#include "driver/mysql/mysql.h"
#include "util/clock.h"

enum { FRESH_US = 2000000 };

mysql_hint *jobq__mysql_hint(mysql_store *store, jobq_slice queue)
{
    mysql_hint *hint;

    for (size_t i = 0; i < HINTS; i++)
        if (store->hints[i].queue.n == queue.n &&
            memcmp(store->hints[i].queue.name, queue.p, queue.n) == 0)
            return &store->hints[i];
    hint = &store->hints[store->next_hint++ % HINTS];
    memset(hint, 0, sizeof(*hint));
    hint->queue.n = queue.n < sizeof(hint->queue.name) ? queue.n : sizeof(hint->queue.name);
    memcpy(hint->queue.name, queue.p, hint->queue.n);
    return hint;
}

bool jobq__mysql_is_hint_good(const mysql_hint *hint)
{
    return hint->set && jobq__clock_mono_us() - hint->began_us <= FRESH_US;
}

void jobq__mysql_reset_hints(mysql_store *store)
{
    for (size_t i = 0; i < HINTS; i++)
        store->hints[i].set = false;
}
