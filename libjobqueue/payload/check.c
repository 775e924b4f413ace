/* SPDX-License-Identifier: MIT
 *
 * Reading a body only to know that it can be read: what push does with every body, so that what it
 * accepts can be handed out (rule A5). Nothing is allocated for bodies with small maps.
 */
#include "payload/reader.h"
#include "util/error.h"

int jobq_payload_check(int format, const void *p, size_t n)
{
    jobq_reader r;
    jobq_token token;
    int rc;

    jobq__error_clear();
    jobq__reader_init(&r);
    jobq_reader_open(&r, format, p, n);
    do
        rc = jobq__reader_step(&r, &token);
    while (rc > 0);
    jobq__reader_fini(&r);
    return rc;
}
