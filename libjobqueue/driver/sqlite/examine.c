/* SPDX-License-Identifier: MIT
 *
 * How the file stands (rule N5): what lies under it, who may write it, and, when it can be opened,
 * what is set and whether all of ours is in it. Nothing is changed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "driver/sqlite/sqlite.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    FREE_LEAST_MB = 64,
    WAL_LARGE_MB = 64, /* as journal_size_limit: what a checkpoint could not cut */
    SPARE_LARGE_MB = 64,
    CHECK_US = 2000000, /* so long the pages are looked through */
    CHECK_STEPS = 10000,
    ADVICE_MAX = 400
};

/* ---- the file system ------------------------------------------------------------------------- */

static int examine_disk(const sqlite_store *store, jobq_examination *e)
{
    const jobq__sqlite_disk *disk = jobq__sqlite_disk_of(store);

    if (!disk)
        return jobq__remark(e, JOBQ_REMARK_PROBLEM, "file", "make the file's folder accessible",
                            "%s: %s", store->folder, strerror(errno));
    return jobq__remark(e, disk->grade, "file", disk->advice, "%s lies on %s", store->path,
                        disk->name ? disk->name : "a local file system of a rare kind");
}

static int examine_room(const sqlite_store *store, jobq_examination *e)
{
    struct statvfs vfs;
    uint64_t free_mb;

    if (statvfs(store->folder, &vfs) != 0)
        return 0;
    free_mb = (uint64_t)vfs.f_bavail * vfs.f_frsize >> 20;
    if (free_mb < FREE_LEAST_MB || (vfs.f_blocks && vfs.f_bavail * 50 < vfs.f_blocks))
        return jobq__remark(e, JOBQ_REMARK_PROBLEM, "room",
                            "free some: on a full disk nothing can be pushed or settled",
                            "%" PRIu64 " MB are free on the disk of %s", free_mb, store->path);
    return jobq__remark(e, JOBQ_REMARK_OK, "room", NULL, "%" PRIu64 " MB are free", free_mb);
}

/* ---- who may write --------------------------------------------------------------------------- */

static int examine_owner(const char *path, const struct stat *own, jobq_examination *e)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return 0;
    if (access(path, R_OK | W_OK) != 0)
        return jobq__remark(e, JOBQ_REMARK_PROBLEM, "access",
                            "chown it to the owner of the database file",
                            "%s cannot be written by this user: %s", path, strerror(errno));
    if (st.st_uid != own->st_uid)
        return jobq__remark(e, JOBQ_REMARK_NOTE, "access",
                            "let all programs that use the store run as one user",
                            "%s belongs to user %u, the database file to user %u", path,
                            (unsigned)st.st_uid, (unsigned)own->st_uid);
    return 0;
}

static int examine_access(const sqlite_store *store, jobq_examination *e)
{
    struct stat st;
    int rc = 0;

    if (stat(store->path, &st) != 0)
        return errno == ENOENT
                   ? 0
                   : jobq__remark(e, JOBQ_REMARK_PROBLEM, "access", "make the file accessible",
                                  "%s: %s", store->path, strerror(errno));
    if (access(store->path, R_OK | W_OK) != 0)
        rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "access",
                          "give it to the user that programs and workers run as",
                          "%s cannot be written by this user: %s", store->path, strerror(errno));
    else if (access(store->folder, W_OK | X_OK) != 0)
        rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "access",
                          "let that user write the folder: the -wal and -shm files are made there",
                          "nothing can be made in %s by this user: %s", store->folder,
                          strerror(errno));
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "mode", "chmod 0600 it, unless that is meant",
                          "others than its owner may open %s (mode %04o)", store->path,
                          (unsigned)st.st_mode & 07777);
    rc = rc ? rc : examine_owner(store->wal_path, &st, e);
    return rc ? rc : examine_owner(store->shm_path, &st, e);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* *value_out: a text's address is the connection's until the next call; "" when there is none. */
static int pragma(sqlite_store *store, const char *sql, int64_t *number_out, char text_out[16])
{
    sqlite3_stmt *stmt = NULL;
    int rc;

    if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return jobq__sqlite_fail(store, "looking at its settings");
    rc = jobq__sqlite_row(store, stmt);
    if (rc > 0) {
        *number_out = sqlite3_column_int64(stmt, 0);
        snprintf(text_out, 16, "%s", (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : 0;
}

static int examine_settings(sqlite_store *store, jobq_examination *e)
{
    char mode[16] = "";
    int64_t unused;
    int rc = pragma(store, "PRAGMA journal_mode", &unused, mode);

    if (rc == 0 && strcmp(mode, "wal") != 0)
        rc = jobq__remark(e, JOBQ_REMARK_PROBLEM, "journal",
                          "let no program set another journal_mode, and start the workers anew",
                          "journal_mode is %s: pushes and workers lock each other out", mode);
    if (rc == 0 && store->full_sync)
        rc = jobq__remark(e, JOBQ_REMARK_OK, "durability", NULL,
                          "what is confirmed is on the disk (journal_mode %s, synchronous full)",
                          mode);
    else if (rc == 0)
        rc = jobq__remark(e, JOBQ_REMARK_NOTE, "durability",
                          "take synchronous=normal out of the dsn if no job may be lost",
                          "synchronous is normal: a power cut may take the last moments' pushes");
    return rc;
}

static int examine_wal(const sqlite_store *store, jobq_examination *e)
{
    struct stat st;

    if (stat(store->wal_path, &st) != 0 || st.st_size >> 20 <= WAL_LARGE_MB)
        return 0;
    return jobq__remark(e, JOBQ_REMARK_NOTE, "wal",
                        "find the program that keeps a read transaction open: until it ends the "
                        "log cannot be merged",
                        "%s has grown to %" PRId64 " MB", store->wal_path,
                        (int64_t)st.st_size >> 20);
}

static int examine_pages(sqlite_store *store, jobq_examination *e)
{
    int64_t size = 0, count = 0, spare = 0, cache = 0;
    char text[16];
    int rc = pragma(store, "PRAGMA page_size", &size, text);
    bool wasteful, small;

    rc = rc ? rc : pragma(store, "PRAGMA page_count", &count, text);
    rc = rc ? rc : pragma(store, "PRAGMA freelist_count", &spare, text);
    rc = rc ? rc : pragma(store, "PRAGMA cache_size", &cache, text);
    if (rc < 0)
        return rc;
    wasteful = spare * size >> 20 >= SPARE_LARGE_MB && spare > count / 2;
    small = size < 4096;
    return jobq__remark(
        e, wasteful || small ? JOBQ_REMARK_NOTE : JOBQ_REMARK_OK, "pages",
        wasteful ? "that room is used again; VACUUM gives it back, while no worker runs"
        : small  ? "pages of 4096 are faster: PRAGMA journal_mode=delete, page_size=4096, VACUUM"
                 : NULL,
        "%" PRId64 " pages of %" PRId64 " bytes, %" PRId64 " of them unused, cache of %" PRId64
        " KB, SQLite %s",
        count, size, spare, cache < 0 ? -cache : cache * size / 1024, sqlite3_libversion());
}

/* ---- the schema ------------------------------------------------------------------------------ */

#define MODEL                                                          \
    "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL " \
    "ORDER BY type, name"
#define FOUND "SELECT sql FROM sqlite_master WHERE type=?1 AND name=?2"

/* What makes it anew, if that is short. */
static const char *repair_of(jobq_examination *e, const char *type, const char *name,
                             const char *sql, bool missing)
{
    char text[ADVICE_MAX];
    const int n =
        snprintf(text, sizeof(text), "%s%s%scarry out in the file: %s", missing ? "" : "drop that ",
                 missing ? "" : type, missing ? "" : ", then ", sql);

    if (n >= (int)sizeof(text))
        snprintf(text, sizeof(text),
                 "make a new store beside this one and take over what its "
                 "`sqlite3 NEW '.schema %s'` says",
                 name);
    return jobq_batch_copy(e->out, text, strlen(text) + 1).p;
}

/* Of tables only their presence: their text tells how often they were altered. */
static int compare(sqlite_store *store, sqlite3_stmt *model, sqlite3_stmt *found,
                   jobq_examination *e, int *wrong)
{
    const char *type = (const char *)sqlite3_column_text(model, 0);
    const char *name = (const char *)sqlite3_column_text(model, 1);
    const char *sql = (const char *)sqlite3_column_text(model, 2), *has = NULL, *advice;
    bool same;
    int rc;

    sqlite3_bind_text(found, 1, type, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(found, 2, name, -1, SQLITE_TRANSIENT);
    rc = jobq__sqlite_row(store, found);
    if (rc > 0)
        has = (const char *)sqlite3_column_text(found, 0);
    same = has && (strcmp(type, "table") == 0 || strcmp(has, sql) == 0);
    if (rc >= 0 && !same) {
        *wrong += 1;
        advice = repair_of(e, type, name, sql, has == NULL);
        rc = advice ? jobq__remark(e, JOBQ_REMARK_PROBLEM, "schema", advice, "the %s %s is %s",
                                   type, name, has ? "not the one that was made" : "missing")
                    : jobq__error_nomem();
    }
    sqlite3_reset(found);
    return rc < 0 ? rc : 0;
}

static int compare_all(sqlite_store *store, sqlite3 *model, jobq_examination *e)
{
    sqlite3_stmt *rows = NULL, *found = NULL;
    int wrong = 0, rc = 0;

    if (sqlite3_prepare_v2(model, MODEL, -1, &rows, NULL) != SQLITE_OK)
        return jobq__error_nomem();
    if (sqlite3_prepare_v2(store->db, FOUND, -1, &found, NULL) != SQLITE_OK)
        rc = jobq__sqlite_fail(store, "reading the schema");
    while (rc == 0 && sqlite3_step(rows) == SQLITE_ROW)
        rc = compare(store, rows, found, e, &wrong);
    sqlite3_finalize(rows);
    sqlite3_finalize(found);
    if (rc == 0 && wrong == 0)
        rc = jobq__remark(e, JOBQ_REMARK_OK, "schema", NULL,
                          "all tables, indexes, triggers and views are there");
    return rc;
}

/* The model is made by the same statements as the file was. */
static int examine_schema(sqlite_store *store, jobq_examination *e)
{
    sqlite3 *model = NULL;
    int rc;

    if (sqlite3_open(":memory:", &model) != SQLITE_OK ||
        jobq__sqlite_make_model(model) != SQLITE_OK)
        rc = jobq__error_nomem();
    else
        rc = compare_all(store, model, e);
    sqlite3_close(model);
    return rc;
}

/* ---- damage ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t end_us;
    bool stopped;
} check_time;

static int stop_in_time(void *payload)
{
    check_time *t = payload;

    t->stopped = jobq__clock_mono_us() >= t->end_us;
    return t->stopped;
}

/* 1: sound so far as it was looked at; 0: text_out says what is not. */
static int check_table(sqlite_store *store, const char *table, char text_out[200])
{
    char sql[120];
    sqlite3_stmt *stmt = NULL;
    int step;

    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA quick_check(%Q)", table);
    if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return 1;
    step = sqlite3_step(stmt);
    text_out[0] = '\0';
    if (step == SQLITE_ROW)
        snprintf(text_out, 200, "%s", (const char *)sqlite3_column_text(stmt, 0));
    else if (step != SQLITE_INTERRUPT)
        snprintf(text_out, 200, "%s", sqlite3_errmsg(store->db));
    sqlite3_finalize(stmt);
    return text_out[0] == '\0' || strcmp(text_out, "ok") == 0;
}

static int examine_damage(sqlite_store *store, jobq_examination *e)
{
    static const char *const tables[] = {"jobqueue_job",     "jobqueue_ready", "jobqueue_taken",
                                         "jobqueue_delayed", "jobqueue_held",  "jobqueue_error",
                                         "jobqueue_history"};
    check_time t = {jobq__clock_mono_us() + CHECK_US, false};
    char text[200] = "";
    bool sound = true;

    sqlite3_progress_handler(store->db, CHECK_STEPS, stop_in_time, &t);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && sound && !t.stopped; i++)
        sound = check_table(store, tables[i], text);
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    if (!sound)
        return jobq__remark(e, JOBQ_REMARK_PROBLEM, "damage",
                            "stop everything that uses the file, copy it, and get the jobs out of "
                            "it with `sqlite3 FILE .recover`",
                            "the file is damaged: %s", text);
    if (t.stopped)
        return jobq__remark(e, JOBQ_REMARK_OK, "damage", NULL,
                            "none was found in %d s (`PRAGMA quick_check` looks to the end)",
                            CHECK_US / 1000000);
    return jobq__remark(e, JOBQ_REMARK_OK, "damage", NULL, "none was found");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int examine_open(sqlite_store *store, jobq_examination *e)
{
    static int (*const checks[])(sqlite_store *, jobq_examination *) = {
        examine_settings, examine_schema, examine_pages, examine_damage};
    int rc = jobq__sqlite_enter(store, false);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && rc == 0; i++)
        rc = checks[i](store, e);
    rc = rc ? rc : examine_wal(store, e);
    return jobq__sqlite_leave(store, rc);
}

int jobq__sqlite_examine(void *handle, jobq_examination *e)
{
    sqlite_store *store = handle;
    int rc = examine_disk(store, e);

    rc = rc ? rc : examine_room(store, e);
    rc = rc ? rc : examine_access(store, e);
    return rc ? rc : examine_open(store, e);
}
