/* SPDX-License-Identifier: MIT
 *
 * The process stamp, raised in each forked child through pthread_atfork. The pid is part of it, so
 * that no two living processes have the same. A child made by a raw clone system call is not seen.
 */
#include "util/once.h"

#include <pthread.h>
#include <unistd.h>

static int64_t stamp;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static void renew(void)
{
    stamp = (stamp & ~(int64_t)0x7fffffff) + ((int64_t)1 << 31) + getpid();
}

static void install(void)
{
    renew();
    pthread_atfork(NULL, NULL, renew);
}

int64_t jobq__process_stamp(void)
{
    pthread_once(&installed, install);
    return stamp;
}
