/* SPDX-License-Identifier: MIT
 *
 * Assertions and small helpers of the suites.
 */
#include "harness/harness.h"

#include <ftw.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t jobq_test_ok(int64_t rc, const char *expr, const char *file, int line)
{
    if (rc < 0) {
        print_error("%s\n  = %lld (%s): %s\n", expr, (long long)rc, jobq_error_word((int)rc),
                    jobq_error_message(jobq_error_last()));
        _fail(file, line);
    }
    return rc;
}

void jobq_test_code(int64_t rc, int code, const char *expr, const char *file, int line)
{
    const jobq_error *err = jobq_error_last();

    if (rc != code || jobq_error_code(err) != code) {
        print_error("%s\n  = %lld (%s), record %d \"%s\"; wanted %d (%s)\n", expr, (long long)rc,
                    jobq_error_word((int)rc), jobq_error_code(err), jobq_error_message(err), code,
                    jobq_error_word(code));
        _fail(file, line);
    }
}

void jobq_test_said(const char *text, const char *file, int line)
{
    const char *message = jobq_error_message(jobq_error_last());

    if (!strstr(message, text)) {
        print_error("the error says \"%s\", wanted \"%s\" in it\n", message, text);
        _fail(file, line);
    }
}

static char folder[64];
static pid_t folder_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_folder(void)
{
    if (folder_owner == getpid())
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *jobq_test_folder(void)
{
    if (folder_owner != getpid()) {
        strcpy(folder, "/tmp/jobqueue-test-XXXXXX");
        if (!mkdtemp(folder))
            abort();
        folder_owner = getpid();
        atexit(remove_folder);
    }
    return folder;
}

bool jobq_test_comma_locale(void)
{
    char line[200];

    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    snprintf(line, sizeof(line), "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             jobq_test_folder());
    if (system(line) == 0) {
        setenv("LOCPATH", jobq_test_folder(), 1);
        if (setlocale(LC_ALL, "de_DE.UTF-8"))
            return true;
    }
    print_message("# no locale with a decimal comma here\n");
    setlocale(LC_ALL, "C");
    return false;
}

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t jobq_test_deadline(int seconds)
{
    return now_ms() + (int64_t)seconds * 1000;
}

void jobq_test_pause(int64_t deadline, const char *condition, const char *file, int line)
{
    struct timespec pause = {0, 2000000};

    if (now_ms() > deadline) {
        print_error("waited in vain until %s\n", condition);
        _fail(file, line);
    }
    nanosleep(&pause, NULL);
}
