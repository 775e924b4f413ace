/* SPDX-License-Identifier: MIT
 *
 * The file itself: made private (0600), on a local file system, and still the one that was opened.
 * It is only ever asked by name: opening and closing it beside SQLite would drop the POSIX locks
 * that SQLite holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "driver/sqlite/sqlite.h"
#include "util/error.h"

int jobq__sqlite_refuse(int code, int flags, int native, const sqlite_store *store,
                        const char *what)
{
    return jobq__error_set_driver(code, flags, "sqlite", native, "sqlite: %s: %s", store->path,
                                  what);
}

/* WAL needs shared memory and locks that work: no network file systems. */
static const char *network_name(long type)
{
    static const struct {
        long type;
        const char *name;
    } rows[] = {{0x6969, "NFS"},      {(long)0xff534d42, "CIFS"}, {(long)0xfe534d42, "SMB"},
                {0x517b, "SMB"},      {0x5346414f, "AFS"},        {0x01021997, "9p"},
                {0x73757245, "Coda"}, {0x0bd00bd0, "Lustre"},     {0x00c36400, "Ceph"},
                {0x01161970, "GFS2"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((uint32_t)rows[i].type == (uint32_t)type)
            return rows[i].name;
    return NULL;
}

static int check_file_system(const sqlite_store *store)
{
    struct statfs fs;
    const char *name;

    if (statfs(store->folder, &fs) != 0) {
        /* a wrong path: waiting will not help */
        bool missing = errno == ENOENT || errno == ENOTDIR;

        return jobq__sqlite_refuse(JOBQ_ECONNECT, missing ? JOBQ__FATAL : JOBQ__RETRYABLE, errno,
                                   store, missing ? "the folder does not exist" : strerror(errno));
    }
    name = network_name((long)fs.f_type);
    if (name)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "sqlite", 0,
                                      "sqlite: %s lies on a network file system (%s), where "
                                      "sqlite's locks are not safe: use a local disk, or a "
                                      "server store",
                                      store->path, name);
    return 0;
}

/* Made by us, so that its mode (which -wal and -shm inherit) is ours and not the umask's. */
static int create_file(const sqlite_store *store)
{
    int fd = open(store->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno == EEXIST ? 0
                               : jobq__sqlite_refuse(JOBQ_ECONNECT, JOBQ__RETRYABLE, errno, store,
                                                     strerror(errno));
    close(fd); /* no connection of ours can hold a lock on a file that was not there */
    return 0;
}

int jobq__sqlite_check_file(sqlite_store *store, bool create)
{
    struct stat st;
    int rc = check_file_system(store);

    if (rc < 0)
        return rc;
    if (stat(store->path, &st) != 0) {
        if (errno != ENOENT)
            return jobq__sqlite_refuse(JOBQ_ECONNECT, JOBQ__RETRYABLE, errno, store,
                                       strerror(errno));
        if (!create)
            return jobq__sqlite_refuse(
                JOBQ_ECONF, JOBQ__FATAL, 0, store,
                "the file does not exist (run `jobqueue migrate`, or allow migrate)");
        return create_file(store);
    }
    if (!S_ISREG(st.st_mode))
        return jobq__sqlite_refuse(JOBQ_ECONF, JOBQ__FATAL, 0, store,
                                   S_ISDIR(st.st_mode) ? "is a folder, not a file"
                                                       : "is not a file");
    return 0;
}

bool jobq__sqlite_is_same_file(const sqlite_store *store)
{
    struct stat st;

    return stat(store->path, &st) == 0 && st.st_dev == store->device && st.st_ino == store->inode;
}

int jobq__sqlite_remember_file(sqlite_store *store)
{
    struct stat st;

    if (stat(store->path, &st) != 0)
        return jobq__sqlite_refuse(JOBQ_ECONNECT, JOBQ__RETRYABLE, errno, store, strerror(errno));
    store->device = st.st_dev;
    store->inode = st.st_ino;
    return 0;
}
