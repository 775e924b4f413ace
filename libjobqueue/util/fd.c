/* SPDX-License-Identifier: MIT
 *
 * Small descriptor helpers.
 */
#include "util/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever started us without a standard descriptor must not find our pipe under its number. */
static int move_up(int *fd)
{
    int higher;

    if (*fd > STDERR_FILENO)
        return 0;
    higher = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (higher < 0)
        return -1;
    close(*fd);
    *fd = higher;
    return 0;
}

int jobq__fd_pipe(int fds_out[2])
{
    int problem;

    if (pipe2(fds_out, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    if (move_up(&fds_out[0]) == 0 && move_up(&fds_out[1]) == 0)
        return 0;
    problem = errno;
    close(fds_out[0]);
    close(fds_out[1]);
    errno = problem;
    return -1;
}

void jobq__fd_ring(int fd)
{
    ssize_t n = write(fd, "", 1);

    (void)n; /* a full pipe is a doorbell that rings already */
}

void jobq__fd_drain(int fd)
{
    char bytes[256];

    while (read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
        ;
}

int jobq__fd_wait(int fd, int64_t timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, fd >= 0 ? 1 : 0,
                 timeout_ms < 0         ? -1
                 : timeout_ms > 3600000 ? 3600000
                                        : (int)timeout_ms);

    return n > 0 ? 1 : n;
}

bool jobq__fd_identify(int fd, jobq__fd_identity *out)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    out->device = (uint64_t)st.st_dev;
    out->inode = (uint64_t)st.st_ino;
    return true;
}

bool jobq__fd_is(int fd, const jobq__fd_identity *identity)
{
    jobq__fd_identity now;

    return jobq__fd_identify(fd, &now) && now.device == identity->device &&
           now.inode == identity->inode;
}
