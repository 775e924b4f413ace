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
static const char elsewhere[] =
    "move the file to a local disk, or use a server: locks and shared memory do not hold there";
static const char in_memory[] = "it lies in memory: a restart of the host empties it";
static const jobq__sqlite_disk disks[] = {
    {"NFS", elsewhere, 0x6969, JOBQ_REMARK_PROBLEM},
    {"SMB", elsewhere, 0x517b, JOBQ_REMARK_PROBLEM},
    {"CIFS", elsewhere, 0xff534d42, JOBQ_REMARK_PROBLEM},
    {"SMB", elsewhere, 0xfe534d42, JOBQ_REMARK_PROBLEM},
    {"AFS", elsewhere, 0x5346414f, JOBQ_REMARK_PROBLEM},
    {"9p", elsewhere, 0x01021997, JOBQ_REMARK_PROBLEM},
    {"Coda", elsewhere, 0x73757245, JOBQ_REMARK_PROBLEM},
    {"Lustre", elsewhere, 0x0bd00bd0, JOBQ_REMARK_PROBLEM},
    {"Ceph", elsewhere, 0x00c36400, JOBQ_REMARK_PROBLEM},
    {"GFS2", elsewhere, 0x01161970, JOBQ_REMARK_PROBLEM},
    {"FUSE", "make sure that it is a local disk with real locks and shared memory", 0x65735546,
     JOBQ_REMARK_NOTE},
    {"tmpfs", in_memory, 0x01021994, JOBQ_REMARK_NOTE},
    {"ramfs", in_memory, 0x858458f6, JOBQ_REMARK_NOTE},
    {"overlayfs", "in a container the jobs go with it: put the file on a volume", 0x794c7630,
     JOBQ_REMARK_NOTE},
    {"ext4", NULL, 0xef53, JOBQ_REMARK_OK},
    {"XFS", NULL, 0x58465342, JOBQ_REMARK_OK},
    {"Btrfs", NULL, 0x9123683e, JOBQ_REMARK_OK},
    {"ZFS", NULL, 0x2fc12fc1, JOBQ_REMARK_OK}};

const jobq__sqlite_disk *jobq__sqlite_disk_of(const sqlite_store *store)
{
    static const jobq__sqlite_disk other = {NULL, NULL, 0, JOBQ_REMARK_OK};
    struct statfs fs;

    if (statfs(store->folder, &fs) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof(disks) / sizeof(disks[0]); i++)
        if (disks[i].magic == (uint32_t)fs.f_type)
            return &disks[i];
    return &other;
}

static int check_file_system(const sqlite_store *store)
{
    const jobq__sqlite_disk *disk = jobq__sqlite_disk_of(store);

    if (!disk) {
        /* a wrong path: waiting will not help */
        bool missing = errno == ENOENT || errno == ENOTDIR;

        return jobq__sqlite_refuse(JOBQ_ECONNECT, missing ? JOBQ__FATAL : JOBQ__RETRYABLE, errno,
                                   store, missing ? "the folder does not exist" : strerror(errno));
    }
    if (disk->grade == JOBQ_REMARK_PROBLEM)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "sqlite", 0,
                                      "sqlite: %s lies on a network file system (%s), where "
                                      "sqlite's locks are not safe: use a local disk, or a "
                                      "server store",
                                      store->path, disk->name);
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
