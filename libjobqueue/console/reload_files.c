/* SPDX-License-Identifier: MIT
 *
 * Files to be watched for `work --reload`. They are looked at by stat: that works on every file
 * system, also where notifications do not come through (network mounts, containers).
 */
#include <string.h>
#include <sys/stat.h>

#include "console/reload.h"
#include "util/alloc.h"

enum { MOST = 50000 };

typedef struct {
    uint64_t device, inode;
    int64_t size, changed_s, changed_ns;
} file_state; /* all zero: not there */

struct jobq__watched_file {
    char *path;
    file_state state;
};

static bool look_at(const char *path, file_state *out)
{
    struct stat st;

    memset(out, 0, sizeof(*out));
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *out = (file_state){st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    return true;
}

static bool is_known(const jobq__files *files, const char *path, size_t n)
{
    for (size_t i = 0; i < files->count; i++)
        if (strncmp(files->list[i].path, path, n) == 0 && files->list[i].path[n] == '\0')
            return true;
    return false;
}

static bool make_room(jobq__files *files)
{
    const size_t room = files->room ? files->room * 2 : 64;
    jobq__watched_file *grown;

    if (files->count < files->room)
        return true;
    grown = room > MOST ? NULL : jobq__realloc(files->list, room * sizeof(*grown));
    if (!grown)
        return false;
    files->list = grown;
    files->room = room;
    return true;
}

void jobq__files_add(jobq__files *files, const char *path, size_t n)
{
    jobq__watched_file file = {.path = NULL};

    if (is_known(files, path, n) || !make_room(files))
        return;
    file.path = jobq__memdup(path, n);
    if (file.path && look_at(file.path, &file.state))
        files->list[files->count++] = file;
    else
        jobq__free(file.path);
}

size_t jobq__files_look(jobq__files *files, const char **path_out)
{
    size_t changed = 0;
    file_state now;

    for (size_t i = 0; i < files->count; i++) {
        look_at(files->list[i].path, &now);
        if (memcmp(&now, &files->list[i].state, sizeof(now)) == 0)
            continue;
        files->list[i].state = now;
        if (changed++ == 0)
            *path_out = files->list[i].path;
    }
    return changed;
}

void jobq__files_free(jobq__files *files)
{
    for (size_t i = 0; i < files->count; i++)
        jobq__free(files->list[i].path);
    jobq__free(files->list);
    *files = (jobq__files){.list = NULL};
}
