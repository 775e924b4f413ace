/* SPDX-License-Identifier: MIT
 *
 * main for the fuzz targets where no fuzzer drives them: gives every file named, and every file of
 * the folders named, to the target once. Prints TAP with one line a folder or file; a crash ends
 * it.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input lies in a block of exactly its size, so that a sanitizer sees a read behind it. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *data;
    size_t n;

    if (!f || fstat(fileno(f), &st)) {
        printf("# %s: %s\n", path, strerror(errno));
        if (f)
            fclose(f);
        return -1;
    }
    data = malloc(st.st_size ? (size_t)st.st_size : 1);
    n = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
    fclose(f);
    if (data && n == (size_t)st.st_size)
        LLVMFuzzerTestOneInput(data, n);
    free(data);
    return data && n == (size_t)st.st_size ? 1 : -1;
}

static int replay_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    char name[4096];
    int files = 0;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (replay_file(name) < 0) {
            files = -1;
            break;
        }
        files++;
    }
    if (dir)
        closedir(dir);
    return dir ? files : replay_file(path);
}

int main(int argc, char **argv)
{
    int failed = 0;

    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        int files = replay_folder(argv[i]);

        printf("%sok %d - %s: %d inputs\n", files > 0 ? "" : "not ", i, argv[i], files);
        fflush(stdout);
        failed |= files <= 0;
    }
    return failed;
}
