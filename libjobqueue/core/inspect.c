/* SPDX-License-Identifier: MIT
 *
 * Finding and listing jobs. A page is one batch that its infos share; what they show is in info.c.
 */
#include "core/inspect.h"

#include <string.h>

#include "core/fault.h"
#include "core/follow.h"
#include "util/alloc.h"
#include "util/error.h"

struct jobq_list {
    jobq__page *page;
    jobq_info **infos;
    size_t count;
    const char *next, *last;
};

/* ---- making and freeing ---------------------------------------------------------------------- */

static void release_page(jobq__page *p)
{
    if (!p || --p->users > 0)
        return;
    jobq__batch_free(&p->batch);
    jobq__free(p);
}

static jobq__page *new_page(void)
{
    jobq__page *p = jobq__zalloc(sizeof(*p));

    if (p)
        p->users = 1;
    else
        jobq__error_nomem();
    return p;
}

static jobq_info *new_info(jobq__page *p, const jobq_record *record)
{
    jobq_info *info = jobq__zalloc(sizeof(*info));

    if (!info) {
        jobq__error_nomem();
        return NULL;
    }
    info->page = p;
    info->record = record;
    p->users++;
    return info;
}

void jobq_info_free(jobq_info *info)
{
    if (!info)
        return;
    release_page(info->page);
    jobq__arena_free(&info->arena);
    jobq__free(info);
}

void jobq_list_free(jobq_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        jobq_info_free(list->infos[i]);
    jobq__free(list->infos);
    release_page(list->page);
    jobq__free(list);
}

/* ---- finding --------------------------------------------------------------------------------- */

static int not_found(const char *id, size_t n)
{
    return jobq__error_set_subject(JOBQ_ENOTFOUND, id ? id : "", id ? n : 0,
                                   "no job has the id \"%.*s\"", (int)(n < 128 ? n : 128),
                                   id ? id : "");
}

/* In that queue; absent = any. */
int jobq__info_find(jobq_queue *queue, jobq_slice where, const char *id, size_t n,
                    jobq_info **info_out)
{
    jobq_info *info = NULL;
    jobq__page *p;
    int rc;

    if (jobq__check_id(id, n) < 0) /* such an id no job can have */
        return not_found(id, n);
    p = new_page();
    if (!p)
        return JOBQ_ENOMEM;
    rc = jobq__queue_note(queue,
                          jobq__store_find(queue->store, where, jobq__slice(id, n), &p->batch));
    if (rc == JOBQ_ENOTFOUND ||
        (rc == 0 && (!p->batch.first || jobq__queue_is_hidden(p->batch.first->queue))))
        rc = not_found(id, n);
    if (rc == 0 && !(info = new_info(p, p->batch.first)))
        rc = JOBQ_ENOMEM;
    release_page(p);
    if (rc == 0)
        *info_out = info;
    return rc;
}

int jobq_queue_find(jobq_queue *queue, const char *id, size_t n, jobq_info **info_out)
{
    jobq__error_clear();
    return jobq__info_find(queue, (jobq_slice){0}, id, n, info_out);
}

/* ---- of a hook ------------------------------------------------------------------------------- */

/* As it was when it died. */
static int set_death(jobq__page *p, jobq_record *record, const jobq__death *death)
{
    const jobq__fault fault = {.class_name = death->class_name, .message = death->message};
    jobq__buf buf = {0};

    record->state = JOBQ_DEAD;
    record->reason = (uint8_t)death->reason;
    record->died_at_ms = death->died_at_ms;
    record->error = (jobq_slice){0};
    if (jobq__fault_is_empty(&fault))
        return 0;
    jobq__fault_write(&buf, &fault);
    if (buf.n)
        record->error = jobq_batch_copy(&p->batch, buf.p, buf.n);
    jobq__buf_free(&buf);
    return record->error.p ? 0 : jobq__error_nomem();
}

/* The record of a job that is gone: what its hook tells. */
static jobq_record *make_record(jobq__page *p, const jobq_record *hook, const jobq__death *death)
{
    jobq_record *record = jobq_batch_add(&p->batch);
    const jobq_slice queue = jobq__follow_queue(hook->queue);

    if (!record)
        return NULL;
    record->id = death->id;
    record->name = jobq_batch_copy(&p->batch, hook->name.p, hook->name.n);
    record->queue = jobq_batch_copy(&p->batch, queue.p, queue.n);
    record->version = hook->version;
    record->enqueued_at_ms = hook->enqueued_at_ms;
    return record->name.p && record->queue.p ? record : NULL;
}

static int load_death(jobq_queue *queue, jobq__page *p, const jobq_record *hook, bool *gone)
{
    jobq__death death = {0};
    jobq_record *record;
    int rc;

    *gone = false;
    if (!jobq__follow_read(hook->body, &p->batch.arena, &death))
        return jobq__error_set(JOBQ_EPAYLOAD, "the failed hook \"%.*s\" cannot be read",
                               (int)hook->id.n, (const char *)hook->id.p);
    rc = jobq__queue_note(queue, jobq__store_find(queue->store, jobq__follow_queue(hook->queue),
                                                  death.id, &p->batch));
    record = rc == 0 ? p->batch.first : NULL;
    if (rc < 0 && rc != JOBQ_ENOTFOUND)
        return rc;
    jobq__error_clear();
    if (record && record->state == JOBQ_DEAD)
        return 0;
    *gone = !record;
    if (!record)
        record = make_record(p, hook, &death);
    return record ? set_death(p, record, &death) : jobq__error_nomem();
}

int jobq__info_of_death(jobq_queue *queue, const jobq_record *hook, jobq_info **info_out)
{
    jobq__page *p = new_page();
    jobq_info *info = NULL;
    bool gone = false;
    int rc = p ? load_death(queue, p, hook, &gone) : JOBQ_ENOMEM;

    if (rc == 0)
        info = new_info(p, p->batch.first);
    release_page(p);
    if (!info)
        return rc < 0 ? rc : JOBQ_ENOMEM;
    info->gone = gone;
    *info_out = info;
    return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int fill_list(jobq_list *list)
{
    size_t n = 0;

    for (const jobq_record *r = list->page->batch.first; r; r = r->next)
        n++;
    list->infos = jobq__zalloc((n ? n : 1) * sizeof(jobq_info *));
    if (!list->infos)
        return jobq__error_nomem();
    for (const jobq_record *r = list->page->batch.first; r; r = r->next) {
        list->infos[list->count] = new_info(list->page, r);
        if (!list->infos[list->count])
            return JOBQ_ENOMEM;
        list->count++;
    }
    return 0;
}

int jobq__list_load(jobq_queue *queue, const jobq_listing *wanted, jobq_list **list_out)
{
    jobq_listing l = *wanted;
    jobq_list *list = jobq__zalloc(sizeof(*list));
    int rc;

    if (!list)
        return jobq__error_nomem();
    list->page = new_page();
    rc = list->page ? 0 : JOBQ_ENOMEM;
    if (rc == 0) {
        l.out = &list->page->batch;
        rc = jobq__queue_note(queue, jobq__store_list(queue->store, &l));
    }
    if (rc == 0)
        rc = fill_list(list);
    if (rc == 0 && l.last.p &&
        !(list->last = jobq__arena_copy(&list->page->batch.arena, l.last.p, l.last.n)))
        rc = jobq__error_nomem();
    if (rc == 0 && l.next.p &&
        !(list->next = jobq__arena_copy(&list->page->batch.arena, l.next.p, l.next.n)))
        rc = jobq__error_nomem();
    if (rc < 0) {
        jobq_list_free(list);
        return rc;
    }
    *list_out = list;
    return 0;
}

int jobq__list_check(size_t limit)
{
    if (limit >= 1 && limit <= 1000)
        return 0;
    return jobq__error_set_subject(JOBQ_EINVAL, "limit", 5, "limit must be 1 to 1000, got %zu",
                                   limit);
}

int jobq_queue_jobs(jobq_queue *queue, const char *name, size_t n, jobq_state state, size_t limit,
                    const char *after, jobq_list **list_out)
{
    jobq_listing l = {.queue = jobq__slice(name, n),
                      .state = (uint8_t)state,
                      .limit = limit,
                      .after = jobq__slice_text(after)};
    int rc;

    jobq__error_clear();
    if ((unsigned)state >= JOBQ_STATES)
        return jobq__error_set_subject(
            JOBQ_EINVAL, "state", 5, "state must be ready, delayed, reserved, done or dead, got %d",
            (int)state);
    rc = jobq__check_queue(name, n);
    rc = rc < 0 ? rc : jobq__list_check(limit);
    return rc < 0 ? rc : jobq__list_load(queue, &l, list_out);
}

size_t jobq_list_count(const jobq_list *list)
{
    return list ? list->count : 0;
}

const jobq_info *jobq_list_get(const jobq_list *list, size_t i)
{
    return list && i < list->count ? list->infos[i] : NULL;
}

jobq_info *jobq_list_take(jobq_list *list, size_t i)
{
    jobq_info *info = list && i < list->count ? list->infos[i] : NULL;

    if (info)
        list->infos[i] = NULL;
    return info;
}

const char *jobq_list_next(const jobq_list *list)
{
    return list ? list->next : NULL;
}

const char *jobq_list_last(const jobq_list *list)
{
    return list ? list->last : NULL;
}
