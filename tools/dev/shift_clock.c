/* SPDX-License-Identifier: MIT
 *
 * Preloaded into a server (tools/server --clock) or a worker: its wall clock is the host's plus the
 * nanoseconds that stand in the file SHIFT_CLOCK_FILE names (8 bytes, this machine's order). The
 * file is mapped, so a write to it moves the clock of every process at once. The monotonic clock
 * stays what it is, and waits until a wall time end when they would have ended.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
/* No wall time is that early, and no machine that long up: smaller times are monotonic ones. */
#define EARLIEST_WALL 1000000000

static const volatile int64_t *shift;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("SHIFT_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED)
        shift = map;
    if (fd >= 0)
        close(fd);
}

static void move(struct timespec *ts, int sign)
{
    int64_t ns = ts->tv_nsec + (shift ? sign * *shift : 0);

    ts->tv_sec += ns / SECOND;
    ns %= SECOND;
    if (ns < 0) {
        ns += SECOND;
        ts->tv_sec--;
    }
    ts->tv_nsec = ns;
}

/* The system call itself: memory allocators ask for the time before anything can be looked up. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);

    if (!rc && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        move(ts, 1);
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}

static struct timespec real_deadline(const struct timespec *deadline)
{
    struct timespec real = *deadline;

    if (real.tv_sec >= EARLIEST_WALL)
        move(&real, -1);
    return real;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec real = real_deadline(deadline);

    if (!next) {
        next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        if (!next)
            next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    }
    return next(cond, mutex, &real);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                            const struct timespec *restrict deadline)
{
    static int (*next)(pthread_mutex_t *, const struct timespec *);
    struct timespec real = real_deadline(deadline);

    if (!next)
        next = dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    return next(mutex, &real);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict deadline)
{
    static int (*next)(sem_t *, const struct timespec *);
    struct timespec real = real_deadline(deadline);

    if (!next)
        next = dlsym(RTLD_NEXT, "sem_timedwait");
    return next(sem, &real);
}
