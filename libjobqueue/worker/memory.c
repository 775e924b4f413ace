/* SPDX-License-Identifier: MIT
 *
 * Private memory, from /proc/self/smaps_rollup.
 */
#include "worker/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind "KEY:" in the text, 0 when it is not there. */
static int64_t find_number(const char *text, const char *key)
{
    const char *p = strstr(text, key);

    return p ? strtoll(p + strlen(key), NULL, 10) : 0;
}

int64_t jobq__memory_private_kb(void)
{
    static const char *const keys[] = {
        "\nPrivate_Clean:", "\nPrivate_Dirty:", "\nPrivate_Hugetlb:"};
    int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    int64_t sum = 0;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        sum += find_number(text, keys[i]);
    return sum;
}
