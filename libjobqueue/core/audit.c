/* SPDX-License-Identifier: MIT
 *
 * The conservation audit (rules F1, N5): every job stands in exactly one state. It goes through the
 * queues page by page; each page is one look of the store, so that traffic beside it does not show.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/follow.h"
#include "core/inspect.h"
#include "util/error.h"
#include "util/str.h"

enum { PAGE = 500, STATES_TEXT = 64 };

typedef struct {
    jobq_queue *queue;
    void (*found)(void *payload, const jobq_finding *finding);
    int (*progress)(void *payload, int64_t looked_at);
    void *payload;
    int64_t looked_at, problems;
    int64_t seen[JOBQ_STATES]; /* of the queue at hand */
} audit;

static void say(audit *a, jobq_finding_grade grade, const char *text, const char *advice)
{
    const jobq_finding finding = {grade, "audit", text, advice};

    a->problems += grade == JOBQ_FINDING_PROBLEM;
    a->found(a->payload, &finding);
}

/* ---- strays ---------------------------------------------------------------------------------- */

/* "ready and dead" */
static const char *name_states(unsigned states, char out[STATES_TEXT])
{
    size_t n = 0;

    out[0] = '\0';
    for (int i = 0; i < JOBQ_STATES; i++)
        if (states & 1U << i)
            n += (size_t)snprintf(out + n, STATES_TEXT - n, "%s%s", n ? " and " : "",
                                  jobq_state_word((jobq_state)i));
    return out;
}

static bool is_one(unsigned states)
{
    return states && !(states & (states - 1));
}

static void say_stray(audit *a, const jobq_stray *stray)
{
    const jobq_slice queue = jobq__follow_queue(stray->queue);
    const char *of = jobq__queue_is_hidden(stray->queue) ? "the failed hook" : "job";
    char states[STATES_TEXT], what[STATES_TEXT + 64], text[600];
    const char *advice = "keep the store as it is and report it with its version and what was done";

    if (stray->ownerless) {
        snprintf(what, sizeof(what), "is reserved by no worker that is known");
        advice = "nothing takes it back: cancel it by force, or push its work again";
    } else if (!stray->states) {
        snprintf(what, sizeof(what), "stands in no state");
    } else if (is_one(stray->states)) {
        snprintf(what, sizeof(what), "stands as %s, and there is no such job",
                 name_states(stray->states, states));
    } else {
        snprintf(what, sizeof(what), "stands in more than one state: %s",
                 name_states(stray->states, states));
    }
    snprintf(text, sizeof(text), "%s \"%.*s\" of queue \"%.*s\" %s", of, (int)stray->id.n,
             stray->id.p ? (const char *)stray->id.p : "", (int)queue.n, (const char *)queue.p,
             what);
    say(a, JOBQ_FINDING_PROBLEM, text, advice);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void take_page(audit *a, const jobq_audit *page)
{
    for (int i = 0; i < JOBQ_STATES; i++) {
        a->seen[i] += page->seen[i];
        a->looked_at += page->seen[i];
    }
    for (const jobq_stray *stray = page->strays; stray; stray = stray->next) {
        a->looked_at++;
        say_stray(a, stray);
    }
}

/* The cursor lies in the page before, so two batches take turns. */
static int audit_queue(audit *a, jobq_slice queue)
{
    jobq_batch pages[2] = {{.count = 0}, {.count = 0}};
    jobq_audit page = {.queue = queue, .limit = PAGE};
    int rc = 0;

    for (int i = 0; rc == 0; i = !i) {
        jobq__batch_reset(&pages[i]);
        /* cppcheck-suppress autoVariables ; read inside of this function only */
        page.out = &pages[i];
        page.strays = NULL;
        page.next = (jobq_slice){0};
        memset(page.seen, 0, sizeof(page.seen));
        rc = jobq__queue_note(a->queue, jobq__store_audit(a->queue->store, &page));
        if (rc == 0)
            take_page(a, &page);
        if (rc == 0 && a->progress && a->progress(a->payload, a->looked_at) != 0)
            rc = jobq__error_set(JOBQ_ECALLBACK, "stopped after %" PRId64 " job%s", a->looked_at,
                                 jobq__plural(a->looked_at));
        page.after = page.next;
        if (!page.after.p)
            break;
    }
    jobq__batch_free(&pages[0]);
    jobq__batch_free(&pages[1]);
    return rc;
}

/* A queue and the hidden one beside it, whose hooks are jobs, too. */
static int audit_name(audit *a, const char *name)
{
    const int64_t before = a->problems;
    char hidden[JOBQ__QUEUE_SIZE + 1], text[400];
    int rc = strlen(name) < JOBQ__QUEUE_SIZE
                 ? audit_queue(a, jobq__follow_hide(hidden, jobq__slice_text(name)))
                 : 0;

    memset(a->seen, 0, sizeof(a->seen));
    rc = rc < 0 ? rc : audit_queue(a, jobq__slice_text(name));
    if (rc < 0)
        return rc;
    snprintf(text, sizeof(text),
             "queue \"%s\": %" PRId64 " ready, %" PRId64 " delayed, %" PRId64 " reserved, %" PRId64
             " done, %" PRId64 " dead%s",
             name, a->seen[JOBQ_READY], a->seen[JOBQ_DELAYED], a->seen[JOBQ_RESERVED],
             a->seen[JOBQ_DONE], a->seen[JOBQ_DEAD],
             a->problems == before ? "; each in one state" : "");
    say(a, JOBQ_FINDING_OK, text, NULL);
    return 0;
}

int64_t jobq_queue_audit(jobq_queue *queue,
                         void (*found)(void *payload, const jobq_finding *finding),
                         int (*progress)(void *payload, int64_t looked_at), void *payload)
{
    audit a = {.queue = queue, .found = found, .progress = progress, .payload = payload};
    char **names;
    size_t count;
    int rc;

    jobq__error_clear();
    if (!queue || !found)
        return jobq__error_set(JOBQ_EINVAL, "a queue and a function for findings are needed");
    rc = jobq_queue_names(queue, &names, &count);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = audit_name(&a, names[i]);
    jobq_names_free(names, count);
    if (rc < 0)
        return rc;
    jobq__error_clear();
    return a.problems;
}
