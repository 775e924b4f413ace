/* SPDX-License-Identifier: MIT
 *
 * Reads /proc/self. What cannot be read is taken to be fine.
 */
#include "worker/preflight.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"

/* Calls `look` for every entry of a folder of /proc until it says true. */
static bool walk(const char *path, bool (*look)(void *payload, int number), void *payload)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool found = false;

    while (folder && !found && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            found = look(payload, (int)strtol(entry->d_name, NULL, 10));
    if (folder)
        closedir(folder);
    return found;
}

static bool is_that_file(void *payload, int fd)
{
    const struct stat *wanted = payload;
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
}

int jobq__preflight_file(const char *file)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char path[4200];
    struct stat st;

    for (size_t i = 0; file && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", file, suffixes[i]);
        if (stat(path, &st) == 0 && walk("/proc/self/fd", is_that_file, &st))
            return jobq__error_set(
                JOBQ_EUNSUPPORTED,
                "this process has %s open elsewhere (another Queue, PDO, SQLite3): close it before "
                "a worker with processes > 0 starts",
                path);
    }
    return 0;
}

static bool count_entry(void *payload, int number)
{
    (void)number;
    ++*(int64_t *)payload;
    return false;
}

int64_t jobq__preflight_threads(void)
{
    int64_t n = 0;

    walk("/proc/self/task", count_entry, &n);
    return n > 1 ? n - 1 : 0;
}

static bool count_socket(void *payload, int fd)
{
    struct stat st;

    if (fd > STDERR_FILENO && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
        ++*(int64_t *)payload;
    return false;
}

int64_t jobq__preflight_sockets(void)
{
    int64_t n = 0;

    walk("/proc/self/fd", count_socket, &n);
    return n;
}
