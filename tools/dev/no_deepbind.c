/* SPDX-License-Identifier: MIT
 *
 * Preloaded by ./dev asan: PHP opens its extensions with RTLD_DEEPBIND, which a sanitizer's runtime
 * refuses.
 */
#include <dlfcn.h>

void *dlopen(const char *path, int flags)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

    return next(path, flags & ~RTLD_DEEPBIND);
}
