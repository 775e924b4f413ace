/* SPDX-License-Identifier: MIT
 *
 * A write lock that was held for long: by a process that was stopped in the middle, a slow disk,
 * another program. Nobody could renew meanwhile, and who is the next to get the lock is chance. So
 * the time does not count against anybody: whoever notices it, waiting or as the holder, prolongs
 * the leases that were good when it began, for as long as their holders need to renew (rule C5:
 * after trouble everybody renews before anybody takes back).
 */
#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

/* SETTLE_US: after a stall, until all who waited have had the lock. Granted again only after
 * SETTLE_AGAIN_US: on a disk that is always slow jobs must come back, too. */
enum {
    STALL_US = 50000,       /* shorter than that is everyday life */
    RENEWALS_PER_LEASE = 3, /* rule C2; a shorter stall leaves time for the next renewal */
    SETTLE_US = 200000,
    SETTLE_AGAIN_US = 1000000
};

#define SPARE                                     \
    "UPDATE jobqueue_worker "                     \
    "SET alive_until=?2+lease/?4 "                \
    "WHERE boot=?1 AND taken=0 AND lease<=?3*?4 " \
    "AND alive_until>?2-?3 AND alive_until<?2+lease/?4"

static int spare_workers(sqlite_store *store, int64_t stall_us)
{
    sqlite3_stmt *stmt = jobq__sqlite_use(store, ST_SPARE, SPARE);

    if (!stmt)
        return jobq__error_code();
    jobq__sqlite_bind(stmt, 1, jobq__slice_text(store->boot));
    sqlite3_bind_int64(stmt, 2, jobq__clock_boot_ms());
    sqlite3_bind_int64(stmt, 3, stall_us / 1000);
    sqlite3_bind_int64(stmt, 4, RENEWALS_PER_LEASE);
    return jobq__sqlite_run(store, stmt);
}

/* The lock was asked for, and refused at the deadline: what follows has waited since. */
void jobq__sqlite_note_refused(sqlite_store *store, int64_t asked_us)
{
    if (store->waiting_us == 0)
        store->waiting_us = asked_us;
}

int jobq__sqlite_note_begun(sqlite_store *store, int64_t asked_us)
{
    int64_t stall_us;

    store->begun_us = jobq__clock_mono_us();
    stall_us = store->begun_us - (store->waiting_us ? store->waiting_us : asked_us);
    store->waiting_us = 0;
    if (stall_us < STALL_US)
        return 0;
    if (store->begun_us >= store->stalled_us + SETTLE_AGAIN_US || store->stalled_us == 0)
        store->stalled_us = store->begun_us;
    return spare_workers(store, stall_us);
}

int jobq__sqlite_note_held(sqlite_store *store)
{
    const int64_t held_us = jobq__clock_mono_us() - store->begun_us;

    return held_us < STALL_US ? 0 : spare_workers(store, held_us);
}

int64_t jobq__sqlite_settles_ms(const sqlite_store *store)
{
    const int64_t left_us = store->stalled_us + SETTLE_US - jobq__clock_mono_us();

    return store->stalled_us && left_us > 0 ? left_us / 1000 + 1 : 0;
}
