/* SPDX-License-Identifier: MIT
 *
 * Inside of the front: shared by store.c (making one) and driver.c (the operations). Nobody else
 * includes it.
 */
#ifndef JOBQ_DRIVER_STORE_H
#define JOBQ_DRIVER_STORE_H

#include "driver/driver.h"

struct jobq__store {
    const jobq_driver *driver;
    jobq_driver_config config;
    jobq__arena arena;      /* the config's texts */
    const char *connection; /* its name */
    const char *given;      /* DSN with all there is */
    const char *shown;      /* the same without password */
    const char *file;       /* full path, NULL: no file */
    void *handle;           /* the driver's, NULL: not open */
    int64_t stamp;          /* process that opened it */
    bool schema_done;       /* made sure of by this handle */
};

#endif
