/* SPDX-License-Identifier: MIT
 *
 * Who holds a unique key (rule B6): said when a dead job cannot be put back. Stores look keys up at
 * a push alone, so the queue's jobs are looked through, within bounds.
 */
#include <string.h>

#include "core/inspect.h"
#include "util/error.h"

enum { PAGE = 1000, PAGES = 100 };

typedef struct {
    jobq_slice queue, unique;
    int pages; /* that may still be read */
    char *holder;
} search;

static bool look(search *s, const jobq_batch *page)
{
    for (const jobq_record *r = page->first; r; r = r->next)
        if (r->unique.p && jobq__slice_equal(r->unique, s->unique) && r->id.n <= 128) {
            memcpy(s->holder, r->id.p, r->id.n);
            s->holder[r->id.n] = '\0';
            return true;
        }
    return false;
}

/* 1 found, 0 not there, or an error. The cursor lies in the page before, so two take turns. */
static int search_state(jobq_queue *queue, search *s, int state)
{
    jobq_batch pages[2] = {{.count = 0}, {.count = 0}};
    jobq_listing l = {.queue = s->queue, .state = (uint8_t)state, .limit = PAGE, .keys_only = true};
    int rc = 0;

    for (int i = 0; rc == 0 && s->pages > 0; i = !i, s->pages--) {
        jobq__batch_reset(&pages[i]);
        /* cppcheck-suppress autoVariables ; read inside of this function only */
        l.out = &pages[i];
        l.next = (jobq_slice){0};
        rc = jobq__queue_note(queue, jobq__store_list(queue->store, &l));
        rc = rc < 0 ? rc : look(s, &pages[i]);
        l.after = l.next;
        if (!l.after.p)
            break;
    }
    jobq__batch_free(&pages[0]);
    jobq__batch_free(&pages[1]);
    return rc;
}

int jobq_queue_key_holder(jobq_queue *queue, const char *id, size_t n, char *holder_out)
{
    static const int states[] = {JOBQ_RESERVED, JOBQ_READY, JOBQ_DELAYED};
    search s = {.pages = PAGES, .holder = holder_out};
    jobq_info *info = NULL;
    int rc = jobq_queue_find(queue, id, n, &info);

    *holder_out = '\0';
    if (rc < 0)
        return rc == JOBQ_ENOTFOUND ? 0 : rc;
    s.queue = info->record->queue;
    s.unique = info->record->unique;
    for (size_t i = 0; rc == 0 && s.unique.p && i < sizeof(states) / sizeof(states[0]); i++)
        rc = search_state(queue, &s, states[i]);
    jobq_info_free(info);
    return rc < 0 ? rc : 0;
}
