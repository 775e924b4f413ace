/* SPDX-License-Identifier: MIT
 *
 * Each public header compiles alone, as C11 and as C++11, without a warning.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

static const char *setting(const char *name, const char *fallback)
{
    const char *value = getenv(name);

    return value && *value ? value : fallback;
}

static int compile(const char *compiler, const char *language, const char *header)
{
    char command[1024];

    snprintf(command, sizeof(command),
             "printf '#include <jobqueue/%s>\nint nothing;\n' | %s -x %s -Wall -Wextra -Wpedantic "
             "-Werror -I'%s/libjobqueue/include' -fsyntax-only -",
             header, compiler, language, setting("JOBQ_SRCDIR", "."));
    return system(command);
}

static void compile_folder(const char *folder)
{
    char path[512];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/libjobqueue/include/jobqueue/%s", setting("JOBQ_SRCDIR", "."),
             folder);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        size_t n = strlen(entry->d_name);
        char header[300];

        if (n < 2 || strcmp(entry->d_name + n - 2, ".h") != 0)
            continue;
        snprintf(header, sizeof(header), "%s%s", folder, entry->d_name);
        if (compile(setting("CC", "cc"), "c -std=c11", header) != 0 ||
            compile(setting("CXX", "c++"), "c++ -std=c++11", header) != 0)
            fail_msg("%s does not compile alone", header);
        count++;
    }
    closedir(dir);
    assert_true(count > 0);
}

static void compile_alone(void **state)
{
    (void)state;
    compile_folder("");
    compile_folder("sys/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(compile_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
