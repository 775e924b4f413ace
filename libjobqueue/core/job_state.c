/* SPDX-License-Identifier: MIT
 *
 * The five states of a job and how it gets from one to another (drawn in doc/job-states.md).
 */
#include <jobqueue/inspect.h>

#include <string.h>

#include "util/error.h"

static const char *const words[JOBQ_STATES] = {[JOBQ_READY] = "ready",
                                               [JOBQ_DELAYED] = "delayed",
                                               [JOBQ_RESERVED] = "reserved",
                                               [JOBQ_DONE] = "done",
                                               [JOBQ_DEAD] = "dead"};

const char *jobq_state_word(jobq_state state)
{
    return (unsigned)state < JOBQ_STATES ? words[state] : "unknown";
}

int jobq_state_parse(const char *word, jobq_state *state_out)
{
    jobq__error_clear();
    for (int i = 0; word && i < JOBQ_STATES; i++) {
        if (strcmp(words[i], word) == 0) {
            *state_out = (jobq_state)i;
            return 0;
        }
    }
    return jobq__error_set_subject(
        JOBQ_EINVAL, "state", 5,
        "state must be ready, delayed, reserved, done or dead, got \"%.64s\"", word ? word : "");
}
