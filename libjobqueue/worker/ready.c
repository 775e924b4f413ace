/* SPDX-License-Identifier: MIT
 *
 * Alive is not ready (rule G5): the word that jobq_worker_ready reads, and the file of the option
 * ready_file, which exists exactly while the word is set. Written by the dispatcher (inline: by
 * the one process there is), and by the master when no dispatcher is left to do it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/error.h"
#include "worker/worker.h"

/* Absolute, because an inline handler may change the folder (rule D7). */
static char *absolute(const char *path)
{
    char folder[4096];
    size_t size;
    char *whole;

    if (*path == '/' || !getcwd(folder, sizeof(folder)))
        return jobq__strdup(path);
    size = strlen(folder) + strlen(path) + 2;
    whole = jobq__alloc(size);
    if (whole)
        snprintf(whole, size, "%s/%s", folder, path);
    return whole;
}

static int make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

/* Can the file be made later? Tried under another name, since whoever sees the real one may rely on
 * it; one that a killed worker left goes. */
static int try_file(const char *path)
{
    const size_t size = strlen(path) + 32;
    char *other = jobq__alloc(size);
    int rc;

    if (!other) {
        errno = ENOMEM;
        return -1;
    }
    snprintf(other, size, "%s.%ld", path, (long)getpid());
    rc = make_file(other);
    if (rc == 0)
        unlink(other);
    jobq__free(other);
    return rc == 0 && unlink(path) < 0 && errno != ENOENT ? -1 : rc;
}

int jobq__ready_begin(jobq_worker *worker)
{
    const char *const path = worker->run_conf->s.ready_file;
    char option[64];

    jobq__free(worker->ready_file);
    worker->ready_file = NULL;
    if (!path)
        return 0;
    worker->ready_file = absolute(path);
    if (!worker->ready_file)
        return jobq__error_nomem();
    if (try_file(worker->ready_file) < 0)
        return jobq__error_set_subject(
            JOBQ_EINVAL, "ready_file", 10, "%s \"%s\" could not be made: %s",
            jobq__conf_spell(worker->run_conf, "ready_file", option, sizeof(option)), path,
            strerror(errno));
    return 0;
}

bool jobq__ready_set(jobq_worker *worker, bool ready)
{
    if (atomic_exchange(&worker->shared.words->ready, ready) == (uint32_t)ready)
        return false;
    if (worker->ready_file && ready)
        make_file(worker->ready_file);
    else if (worker->ready_file)
        unlink(worker->ready_file);
    return true;
}
