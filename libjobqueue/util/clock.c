/* SPDX-License-Identifier: MIT
 *
 * The system's clocks.
 */
#include "util/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t shift_wall_ms, shift_mono_ms;
static struct timespec held_at[CLOCK_BOOTTIME + 1];
static bool is_held;

static int64_t read_us(clockid_t which)
{
    struct timespec ts = held_at[which];

    if (!is_held)
        clock_gettime(which, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t jobq__clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000 + shift_wall_ms;
}

int64_t jobq__clock_mono_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000 + shift_mono_ms;
}

int64_t jobq__clock_boot_ms(void)
{
    return read_us(CLOCK_BOOTTIME) / 1000 + shift_mono_ms;
}

int64_t jobq__clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC) + shift_mono_ms * 1000;
}

void jobq__clock_boot_id(char out[37])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, 36);

    if (fd >= 0)
        close(fd);
    if (n != 36)
        memcpy(out, "00000000-0000-0000-0000-000000000000", 36);
    out[36] = '\0';
}

void jobq__clock_shift(int64_t wall_ms, int64_t mono_ms)
{
    shift_wall_ms += wall_ms;
    shift_mono_ms += mono_ms;
}

void jobq__clock_hold(bool hold)
{
    static const clockid_t all[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};

    for (size_t i = 0; hold && i < sizeof(all) / sizeof(all[0]); i++)
        clock_gettime(all[i], &held_at[all[i]]);
    is_held = hold;
}
