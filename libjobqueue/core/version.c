/* SPDX-License-Identifier: MIT
 *
 * The version as a running program sees it.
 */
#include <jobqueue/common.h>

const char *jobq_version(void)
{
    return JOBQ_VERSION;
}

int jobq_version_number(void)
{
    return JOBQ_VERSION_NUMBER;
}
