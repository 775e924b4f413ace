/* SPDX-License-Identifier: MIT
 *
 * The connection, and the frame of every operation. It is never open across a fork: SQLite keeps
 * lock states in process memory that a child would inherit without holding the locks.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver/sqlite/sqlite.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

enum { MIN_LIBRARY = 3035000, MAX_BATCH = 4096, CHECKPOINT_FRAMES = 2000 };
#define MAX_BODY ((size_t)64 << 20)

static const char pragmas[] = "PRAGMA cache_size=-4000;"
                              "PRAGMA temp_store=MEMORY;"
                              "PRAGMA secure_delete=OFF;"
                              "PRAGMA journal_size_limit=67108864;";

/* ---- forks ----------------------------------------------------------------------------------- */

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite_store *stores;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static bool claim(sqlite_store *store)
{
    int idle = 0;

    return __atomic_compare_exchange_n(&store->busy, &idle, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void release(sqlite_store *store)
{
    __atomic_store_n(&store->busy, 0, __ATOMIC_RELEASE);
}

/* Closes what is open; it opens again on its next use, on both sides of the fork. */
static void before_fork(void)
{
    pthread_mutex_lock(&stores_lock);
    for (sqlite_store *store = stores; store; store = store->next)
        if (claim(store)) { /* else another thread is inside: its child forgets the handle */
            if (store->db)
                sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
            jobq__sqlite_disconnect(store);
            release(store);
        }
}

static void after_fork(void)
{
    pthread_mutex_unlock(&stores_lock);
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static void list_store(sqlite_store *store)
{
    pthread_once(&fork_once, install_fork_handlers);
    pthread_mutex_lock(&stores_lock);
    store->next = stores;
    store->link = &stores;
    if (stores)
        stores->link = &store->next;
    stores = store;
    pthread_mutex_unlock(&stores_lock);
}

static void unlist_store(sqlite_store *store)
{
    pthread_mutex_lock(&stores_lock);
    *store->link = store->next;
    if (store->next)
        store->next->link = store->link;
    pthread_mutex_unlock(&stores_lock);
}

/* ---- the connection -------------------------------------------------------------------------- */

/* Somebody else holds the lock: naps of 0.3 to 1.2 ms with jitter, growing to 5 ms, until
 * the deadline. */
static int wait_for_lock(void *payload, int count)
{
    const sqlite_store *store = payload;
    int64_t now_us = jobq__clock_mono_us(), nap_us;
    struct timespec nap = {0, 0};

    if (now_us >= store->deadline_us)
        return 0;
    nap_us = 300 + (int64_t)(jobq__rng_unit() * (count < 100 ? 900 : 4700));
    nap_us = nap_us < store->deadline_us - now_us ? nap_us : store->deadline_us - now_us;
    nap.tv_nsec = nap_us * 1000;
    nanosleep(&nap, NULL);
    return 1;
}

static bool is_wal(sqlite_store *store)
{
    sqlite3_stmt *stmt = NULL;
    bool wal = false;

    if (sqlite3_prepare_v2(store->db, "PRAGMA journal_mode=WAL", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        wal = sqlite3_column_type(stmt, 0) == SQLITE_TEXT &&
              strcmp((const char *)sqlite3_column_text(stmt, 0), "wal") == 0;
    sqlite3_finalize(stmt);
    return wal;
}

/* Changing the journal mode needs the file alone, and does not always ask the busy handler. */
static int set_wal(sqlite_store *store)
{
    int count = 0;

    while (!is_wal(store)) {
        int code = sqlite3_errcode(store->db) & 0xff;

        if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
            return jobq__sqlite_refuse(
                JOBQ_ECONF, JOBQ__FATAL, 0, store,
                "write-ahead logging is not possible here (is it a local disk?)");
        if ((code != SQLITE_BUSY && code != SQLITE_LOCKED) || !wait_for_lock(store, count++))
            return jobq__sqlite_fail(store, "opening");
    }
    return 0;
}

/* As SQLite's own automatic checkpoint, but left to the settlements of a worker as long as the file
 * does not grow large: neither a push nor the start of a job waits for one. */
static int checkpoint(void *payload, sqlite3 *db, const char *name, int frames)
{
    const sqlite_store *store = payload;

    if (frames >= (store->hurried ? 2 * CHECKPOINT_FRAMES : CHECKPOINT_FRAMES))
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK; /* the commit stands; a checkpoint that could not be is tried again */
}

static int set_up(sqlite_store *store, bool for_schema)
{
    int rc;

    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_handler(store->db, wait_for_lock, store);
    if (sqlite3_exec(store->db, pragmas, NULL, NULL, NULL) != SQLITE_OK)
        return jobq__sqlite_fail(store, "opening");
    rc = set_wal(store);
    if (rc < 0)
        return rc;
    sqlite3_wal_hook(store->db, checkpoint, store);
    rc = jobq__sqlite_set_sync(store, store->full_sync);
    if (rc == 0)
        rc = jobq__sqlite_remember_file(store);
    if (rc < 0)
        return rc;
    return store->migrate || for_schema ? jobq__sqlite_migrate(store)
                                        : jobq__sqlite_check_schema(store);
}

static int connect_store(sqlite_store *store, bool for_schema)
{
    int rc = jobq__sqlite_check_file(store, store->migrate || for_schema);

    if (rc < 0)
        return rc;
    if (sqlite3_open_v2(store->path, &store->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                        NULL))
        rc = jobq__sqlite_fail(store, "opening");
    else
        rc = set_up(store, for_schema);
    if (rc < 0)
        jobq__sqlite_disconnect(store);
    return rc;
}

void jobq__sqlite_disconnect(sqlite_store *store)
{
    for (size_t i = 0; i < ST_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
    sqlite3_close(store->db);
    store->db = NULL;
    store->suspect = false;
    store->queue_count = 0;
    jobq__sqlite_wait_close(store);
}

/* A write into a deleted file would be confirmed and lost, so this is asked at each call. */
static int check_still_there(sqlite_store *store)
{
    if (!store->db || jobq__sqlite_is_same_file(store))
        return 0;
    jobq__sqlite_disconnect(store);
    return jobq__sqlite_refuse(JOBQ_EIO, JOBQ__RETRYABLE, 0, store,
                               "the file was deleted or replaced while it was in use");
}

int jobq__sqlite_enter(sqlite_store *store, bool for_schema)
{
    int rc;

    while (!claim(store)) { /* only while another thread forks */
        struct timespec nap = {0, 100000};

        nanosleep(&nap, NULL);
    }
    store->deadline_us = jobq__clock_mono_us() + store->timeout_ms * 1000;
    rc = check_still_there(store);
    if (rc == 0 && !store->db)
        rc = connect_store(store, for_schema);
    if (rc < 0)
        release(store);
    return rc;
}

int jobq__sqlite_leave(sqlite_store *store, int rc)
{
    if (store->suspect) {
        struct jobq_error saved;

        jobq__error_save(&saved);
        jobq__sqlite_disconnect(store);
        jobq__error_restore(&saved);
    }
    release(store);
    return rc;
}

/* Rings by touching the -shm file. Not the -wal: touching that makes its next sync write the inode
 * too, a quarter of the push rate with synchronous=full. */
void jobq__sqlite_ring(const sqlite_store *store)
{
    utimensat(AT_FDCWD, store->shm_path, NULL, 0); /* failing costs a waiter some milliseconds */
}

/* ---- the driver's table ---------------------------------------------------------------------- */

static char *join(const char *p, size_t n, const char *suffix)
{
    size_t suffix_n = strlen(suffix);
    char *text = jobq__alloc(n + suffix_n + 1);

    if (text) {
        memcpy(text, p, n);
        memcpy(text + n, suffix, suffix_n + 1);
    }
    return text;
}

static bool set_paths(sqlite_store *store, jobq_slice path)
{
    const char *p = path.p;
    size_t folder_n = path.n;

    while (folder_n > 0 && p[folder_n - 1] != '/')
        folder_n--;
    store->path = join(p, path.n, "");
    store->wal_path = join(p, path.n, "-wal");
    store->shm_path = join(p, path.n, "-shm");
    store->folder = folder_n ? join(p, folder_n, "") : join(".", 1, "");
    return store->path && store->wal_path && store->shm_path && store->folder;
}

static void free_store(sqlite_store *store)
{
    jobq__free(store->path);
    jobq__free(store->wal_path);
    jobq__free(store->shm_path);
    jobq__free(store->folder);
    jobq__free(store);
}

static int check_config(const jobq_driver_config *config)
{
    const char *sync = config->synchronous;

    if (sqlite3_libversion_number() < MIN_LIBRARY)
        return jobq__error_set_driver(JOBQ_EUNSUPPORTED, JOBQ__FATAL, "sqlite", 0,
                                      "sqlite: the library is version %s, 3.35 or newer is needed",
                                      sqlite3_libversion());
    if (sync && strcmp(sync, "full") != 0 && strcmp(sync, "normal") != 0)
        return jobq__error_set_driver(
            JOBQ_ECONF, JOBQ__FATAL, "sqlite", 0,
            "sqlite: synchronous \"%s\" is unknown (allowed: full, normal)", sync);
    return 0;
}

static int open_store(const jobq_driver_config *config, void **store_out)
{
    sqlite_store *store;
    int rc = check_config(config);

    if (rc < 0)
        return rc;
    store = jobq__zalloc(sizeof(*store));
    if (!store)
        return jobq__error_nomem();
    store->ring_fd = store->change_fd = -1;
    store->migrate = config->migrate;
    store->full_sync = !config->synchronous || strcmp(config->synchronous, "normal") != 0;
    store->timeout_ms = config->read_timeout_ms > 0 ? config->read_timeout_ms : 5000;
    jobq__clock_boot_id(store->boot);
    if (!set_paths(store, config->path)) {
        free_store(store);
        return jobq__error_nomem();
    }
    list_store(store);
    *store_out = store;
    return 0;
}

static void close_store(void *handle)
{
    sqlite_store *store = handle;

    if (!store)
        return;
    unlist_store(store);
    jobq__sqlite_disconnect(store);
    free_store(store);
}

/* In a forked child. Usually the connection was closed before the fork; if not (a thread was
 * inside), its memory is left alone for ever: closing it would act on the parent's locks and
 * files. */
static void forget_store(void *handle)
{
    sqlite_store *store = handle;

    unlist_store(store);
    if (store->db)
        return;
    jobq__sqlite_wait_close(store);
    free_store(store);
}

static int make_schema(void *handle)
{
    sqlite_store *store = handle;
    int rc = jobq__sqlite_enter(store, true);

    if (rc < 0)
        return rc;
    return jobq__sqlite_leave(store, jobq__sqlite_migrate(store));
}

static int read_now(void *handle, int64_t *now_ms_out)
{
    sqlite_store *store = handle;
    sqlite3_stmt *stmt;
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    /* A real read: this is what ping measures. */
    stmt = jobq__sqlite_use(store, ST_QUEUES, SQL_QUEUES);
    rc = stmt ? jobq__sqlite_row(store, stmt) : jobq__error_code();
    if (rc > 0)
        sqlite3_reset(stmt);
    if (rc >= 0)
        *now_ms_out = jobq__clock_wall_ms();
    return jobq__sqlite_leave(store, rc < 0 ? rc : 0);
}

const jobq_driver jobq__sqlite_driver = {
    .abi = JOBQ_DRIVER_ABI,
    .size = sizeof(jobq_driver),
    .name = "sqlite",
    .schemes = "sqlite",
    .features = JOBQ_FEATURE_SHARED | JOBQ_FEATURE_WAKE | JOBQ_FEATURE_PRIORITY |
                JOBQ_FEATURE_DUE_ORDER | JOBQ_FEATURE_HOST_CLOCK | JOBQ_FEATURE_UNIQUE |
                JOBQ_FEATURE_ATOMIC_BATCH | JOBQ_FEATURE_FILE | JOBQ_FEATURE_EFFECT |
                JOBQ_FEATURE_REQUEST,
    .max_batch = MAX_BATCH,
    .max_body = MAX_BODY,
    .options = "synchronous",
    .open = open_store,
    .close = close_store,
    .forget = forget_store,
    .schema = make_schema,
    .push = jobq__sqlite_push,
    .exchange = jobq__sqlite_exchange,
    .renew = jobq__sqlite_renew,
    .leave = jobq__sqlite_leave_worker,
    .held = jobq__sqlite_held,
    .workers = jobq__sqlite_workers,
    .wait = jobq__sqlite_wait,
    .maintain = jobq__sqlite_maintain,
    .find = jobq__sqlite_find,
    .audit = jobq__sqlite_audit,
    .examine = jobq__sqlite_examine,
    .list = jobq__sqlite_list,
    .counts = jobq__sqlite_counts,
    .queues = jobq__sqlite_queues,
    .mend = jobq__sqlite_mend,
    .control = jobq__sqlite_control,
    .cancel = jobq__sqlite_cancel,
    .clear = jobq__sqlite_clear,
    .capacity = jobq__sqlite_capacity,
    .book = jobq__sqlite_book,
    .minutes = jobq__sqlite_minutes,
    .effect = jobq__sqlite_effect,
    .request = jobq__sqlite_request,
    .now = read_now,
};
