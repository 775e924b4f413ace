/* SPDX-License-Identifier: MIT
 *
 * The desk: what dispatcher and inline loop have in common. Jobs come from the store (accept), lie
 * here (held), are given out (out), end (ended) and leave when the store has answered:
 *
 *     exchange --accept--> HELD --give--> OUT --result, death--> ENDED --exchange answered--> FREE
 *                           ^               |                      ^
 *                           +-- revoked ----+      (given back, expired, parked)
 *
 * Seats are the dispatcher's view of the children's slots; the inline loop has none.
 */
#ifndef JOBQ_WORKER_DESK_H
#define JOBQ_WORKER_DESK_H

#include "core/minutes.h"
#include "util/alloc.h"
#include "worker/step.h"
#include "worker/worker.h"

/* One reserve's records; lives while any of its jobs does, since their bodies lie in it. */
typedef struct jobq__parcel {
    struct jobq__parcel *next;
    jobq_batch batch;
    size_t jobs;
} jobq__parcel;

/* A running job that takes so long gets nothing more behind it. */
enum { JOBQ__LONG_MS = 100 };
/* Work a child is to have in hand. */
enum { JOBQ__WORK_US = 30000 };
/* So long a job runs before it is listed in the worker's record. */
enum { JOBQ__RUNNING_MS = 1000 };

enum { JOBQ__TICKET_FREE, JOBQ__TICKET_HELD, JOBQ__TICKET_OUT, JOBQ__TICKET_ENDED };

typedef struct jobq__ticket {
    struct jobq__ticket *next, *prev;
    jobq__handout *handout;
    /* NULL: the body is not here (taken over from an earlier dispatcher) */
    const jobq_record *record;
    jobq__parcel *parcel;
    int64_t held_since_ms;
    /* how it ended */
    jobq_ending ending;
    int64_t delay_ms, ran_us, ended_mono_ms;
    jobq_slice fault; /* encoded; in a result ring or own_fault */
    char *own_fault;
    jobq_slice outcome; /* encoded; in a result ring, the place for large ones or own_outcome */
    char *own_outcome;
    bool outcome_in_area;
    /* the newest that it said of itself, when the store has not been told; memory is kept */
    jobq__buf said;
    bool has_said, unsaid; /* unsaid: it ended before the store was told */
    jobq__verdict verdict;
    int status; /* the store's answer */
    uint8_t phase;
    bool judged;     /* verdict stands */
    bool tried;      /* it was in an exchange whose outcome is unknown */
    bool shared;     /* others ran in the child that died */
    bool known;      /* how it ended is known, but its child must be gone before it is settled */
    uint8_t cancel;  /* JOBQ_CANCEL_*: it is to end (rule L3) */
    bool bare;       /* settle without error text: the store refused it */
    bool lost;       /* its lease is lost */
    bool listed;     /* stands in the record's running list */
    bool shown;      /* "Processing" is out */
    bool ran;        /* its handler ran: counts for max_jobs */
    bool seated;     /* counted in its seat's unsettled */
    bool asked_done; /* it has its done statement: a refusal means done (rule O1) */
    bool key_wanted; /* it would begin now: its unique key is to be freed first (rule B6) ... */
    bool key_freed;  /* ... and is */
} jobq__ticket;

typedef struct {
    jobq__ticket *first, *last;
    size_t count;
} jobq__tickets;

void jobq__tickets_append(jobq__tickets *list, jobq__ticket *ticket);
void jobq__tickets_prepend(jobq__tickets *list, jobq__ticket *ticket);
void jobq__tickets_remove(jobq__tickets *list, jobq__ticket *ticket);

typedef struct {
    jobq__slot *slot;
    jobq__tickets out;                  /* in the order given */
    jobq__ticket *cells[JOBQ__RECORDS]; /* by number % JOBQ__RECORDS */
    uint64_t cursor;                    /* results read so far */
    uint32_t told;                      /* what running jobs said of themselves, read so far */
    size_t unsettled;                   /* of them not yet answered for */
    int64_t rest_until_ms;
    /* how long its running hand-out has been running, 0 = none; where several run: since the last
     * of so many began that no other can */
    int64_t running_ms;
    uint64_t unread_from;    /* where the child has read to in its ring ... */
    int64_t unread_since_ms; /* ... and since when it has done nothing else there */
    bool stuck;           /* with something before it that it does not begin: gets nothing more */
    bool vetoed;          /* its listeners want no job to begin there */
    bool open;            /* LIVE, going to stay and not stuck: may be given jobs */
    bool standby;         /* would be open, but the one it is to replace still works */
    bool clearing;        /* kept free for a delicate job ... */
    bool clear_for_plain; /* ... or one that runs alone */
    size_t planned, planned_width; /* delicate ones that go to it now; so many may run in it */
    bool planned_alone;            /* ... and one of them is to have nothing announced behind it */
    uint64_t planned_head;         /* ... and so far they will fill its ring ... */
    bool planned_big;              /* ... and one of them its area */
    bool full;                     /* its ring or area had no room this round */
    bool news;                     /* something was put into its ring this round */
} jobq__seat;

/* Delicate jobs (delicate.c): the part that they are of those that come, how many begin in a while,
 * and what that is measured with. */
typedef struct {
    double part;
    bool known; /* some came: part means something */
    size_t pace, given;
    int64_t since_ms, given_ms; /* given_ms: the last one */
} jobq__delicate;

/* What people ask of the worker (control.c). */
typedef struct {
    /* the store's number, -1 = none yet: last heard of, of what we know of pauses, of wishes */
    int64_t told, read, marked;
    int64_t heard_ms, changed_ms; /* when we heard of any, when it was another one */
    bool woken;                   /* a wait said that the number is another */
    bool silent;  /* pauses that stand already were told of by an earlier dispatcher */
    bool for_one; /* run_next: a restart is the caller's business */
    /* of each queue: until when by the store's clock, 0 = until resumed; and what we do about it */
    int64_t *until_ms;
    bool *paused;
    jobq_slice *serve; /* those that are not paused, in order */
    size_t serve_count;
    jobq_batch batch;
} jobq__control;

/* A message for the next free child. */
typedef struct jobq__post {
    struct jobq__post *next;
    jobq__buf bytes;
} jobq__post;

typedef struct jobq__desk {
    jobq_worker *worker;
    jobq__store *store;
    jobq__words *words;
    jobq__observer *observer;
    const jobq__settings *settings;
    jobq_slice id;       /* the worker's */
    jobq_slice *queues;  /* all; reserved from are those of `control` */
    jobq_slice *hidden;  /* for each of them the queue of its failed hooks */
    jobq_slice *watched; /* room for both */
    bool asked_hooks;    /* since the start, at least once */
    int64_t hooks;       /* tickets of failed hooks, whatever their phase */
    /* failed hooks that were put back: is any still to come; by when the last one is due; when to
     * look again before that or after it; until when what is due may be one of them. 0 = not */
    bool hooks_away;
    int64_t hooks_until_ms, hooks_again_ms, hooks_late_ms;
    jobq__control control;
    jobq__ticket *tickets;
    size_t ticket_count;
    jobq__tickets unused, held, ended;
    size_t out;            /* tickets in phase OUT */
    int64_t ran;           /* ended ones whose handler ran, not yet answered for */
    size_t said_count;     /* running ones with something the store has not been told ... */
    int64_t said_ms;       /* ... and when it was told last */
    size_t keys_wanted;    /* held ones whose unique key is to be freed */
    jobq__tally *tally;    /* what happened, minute by minute (rule N1) */
    jobq__parcel *parcels; /* unused ones */
    jobq__seat *seats;
    size_t seat_count;
    /* exchange */
    jobq_settlement *settlements;
    jobq__ticket **settling;
    size_t settle_max;
    jobq__arena arena; /* texts of the exchange under way */
    jobq__buf buf;
    jobq_lease_token *running;
    jobq__buf names, queue_names;
    char host[256];
    jobq_batch scratch;
    /* clocks */
    int64_t now_ms;                  /* monotonic, read once per round */
    int64_t store_ms, store_mono_ms; /* store clock at a monotonic moment */
    double average_us;               /* of a handler; < 0 = unknown */
    jobq__delicate delicate;
    /* state */
    jobq__situation s;
    int64_t last_renew_ms, last_failure_ms, maintain_not_before_ms;
    int differs;  /* renewals in a row whose count was not ours */
    bool renewed; /* the record exists */
    bool list_changed;
    bool acquit; /* somebody stands in the list who has not begun: to be written at once */
    int64_t away_since_ms; /* the row's first failure */
    bool renewals_only;    /* in this row of failures: a renewal that succeeds ends it */
    bool ask_held;         /* an outcome is unknown: compare with what the store holds */
    bool ever_connected;
    int failure_exit; /* 1, or 2 when the failure is one of configuration */
    bool master_died;
    jobq__post *posts, *last_post;
    size_t post_count;
    jobq__seat *listener; /* who got the last one, and where it ends in its ring */
    uint64_t listener_head;
    /* which lines were written lately (rule F3) */
    struct {
        char name[64];
        int64_t at_ms;
    } lines[32];
    /* names that live workers announce, read at most once a second */
    jobq_batch announced;
    int64_t announced_at_ms;
} jobq__desk;

/* desk.c */
int jobq__desk_new(jobq_worker *worker, jobq__handout *handouts, size_t n, jobq__desk **desk_out);
void jobq__desk_free(jobq__desk *desk);
jobq__ticket *jobq__desk_take(jobq__desk *desk); /* an unused ticket, NULL: none left */
/* of any phase: forgotten, its memory reused */
void jobq__desk_drop(jobq__desk *desk, jobq__ticket *ticket);
jobq__parcel *jobq__desk_parcel(jobq__desk *desk);
void jobq__desk_return_parcel(jobq__desk *desk, jobq__parcel *parcel);
int64_t jobq__desk_store_now(const jobq__desk *desk);
void jobq__desk_set_clock(jobq__desk *desk, int64_t store_ms);
/* before a call that may block so long */
void jobq__desk_beat(jobq__desk *desk, int64_t budget_ms);
void jobq__desk_count(jobq__desk *desk, int which, int64_t n);
/* true once per name and minute */
bool jobq__desk_say(jobq__desk *desk, const char *what, jobq_slice name);
void jobq__desk_situation(jobq__desk *desk); /* fills what inline and pool have in common */
/* carries out stop_reason, exit_code */
void jobq__desk_limits(jobq__desk *desk, const jobq__step *step);
int64_t jobq__desk_call_budget(const jobq__desk *desk);

/* handouts.c */
jobq__ticket *jobq__handout_accept(jobq__desk *desk, const jobq_record *record,
                                   jobq__parcel *parcel);
void jobq__handout_end(jobq__desk *desk, jobq__ticket *ticket, jobq_ending ending); /* to ENDED */
void jobq__handout_ran(jobq__desk *desk, jobq__ticket *ticket); /* its handler ran */
/* A copy of the fault, or one of our own wording. */
void jobq__handout_keep_fault(jobq__ticket *ticket, const jobq__fault *fault);
void jobq__handout_fault(jobq__ticket *ticket, const char *message);
void jobq__handout_judge(jobq__desk *desk, jobq__ticket *ticket); /* what becomes of it */
void jobq__handout_settlement(jobq__desk *desk, jobq__ticket *ticket, jobq_settlement *out);
/* status is set; ticket is gone afterwards */
void jobq__handout_answered(jobq__desk *desk, jobq__ticket *ticket);

/* hooks.c: failed hooks of dead jobs (rule F6) */
int jobq__hooks_new(jobq__desk *desk);
void jobq__hooks_free(jobq__desk *desk);
/* A hook's own limits instead of the dead job's. */
void jobq__hooks_limit(jobq__policy *policy);
/* May it run here? False: nobody here has use for it, the ticket is to end as done. */
bool jobq__hooks_are_run(const jobq__desk *desk, const jobq__handout *handout);
/* The push that owes the hook of a ticket that dies, in the desk's arena; NULL: none. */
const jobq_push *jobq__hooks_follow(jobq__desk *desk, const jobq__ticket *ticket,
                                    const jobq__fault *fault);
void jobq__hooks_died(jobq__desk *desk, const jobq__ticket *ticket); /* stored: it owes a hook */
void jobq__hooks_take_over(jobq__desk *desk); /* from a dispatcher that died */
/* Hidden queues were asked. */
void jobq__hooks_looked(jobq__desk *desk, const jobq_exchange *x, size_t got);
void jobq__hooks_situation(jobq__desk *desk); /* what the loop knows of them */
/* A hook's end, judged: it never becomes a dead job itself. */
void jobq__hooks_judged(jobq__ticket *ticket);
void jobq__hooks_answered(jobq__desk *desk, const jobq__ticket *ticket);
/* Those served and the hidden ones. */
const jobq_slice *jobq__hooks_watch(jobq__desk *desk, const jobq_slice *served, size_t *count);

/* told.c: what held jobs want of the store (rules N7, B6, O1) */
/* The outcome behind a result; in_area: in the seat's place for large ones. */
void jobq__told_outcome(jobq__desk *desk, const jobq__seat *seat, jobq__ticket *ticket,
                        const jobq__result_message *message, const char *behind, size_t n);
void jobq__told_keep(jobq__desk *desk, jobq__ticket *ticket, const jobq__buf *outcome); /* inline */
/* Its outcome is no longer needed. */
void jobq__told_drop(jobq__desk *desk, jobq__ticket *ticket);
void jobq__told_read(jobq__desk *desk, jobq__seat *seat); /* what running jobs said of themselves */
void jobq__told_note(jobq__desk *desk, jobq__ticket *ticket, const void *p, size_t n);
void jobq__told_forget(jobq__desk *desk, jobq__ticket *ticket); /* it has ended */
void jobq__told_unwant_keys(jobq__desk *desk);                  /* who begins is decided anew */
/* The held one's key is freed with an exchange of its own; false: it may not start now. */
bool jobq__told_free_key(jobq__desk *desk, jobq__ticket *ticket);
/* Tells the store at once what that one said; 0 or JOBQ_ELEASE: a store that is away is the loop's
 * business. */
int jobq__told_say(jobq__desk *desk, jobq__ticket *ticket);
/* Settlements of jobs that go on, behind the first n of the exchange; how many there are then. */
size_t jobq__told_settlements(jobq__desk *desk, size_t n);
bool jobq__told_is_one(const jobq_settlement *settlement);
void jobq__told_answered(jobq__desk *desk, jobq__ticket *ticket, const jobq_settlement *settlement);
void jobq__told_situation(jobq__desk *desk);
/* Has its done statement been asked for? */
bool jobq__told_asked_done(const jobq__desk *desk, const jobq__ticket *ticket);
/* A refused end that means that its own done statement was carried out: it is done. */
bool jobq__told_is_done(const jobq__ticket *ticket);
void jobq__told_book(jobq__desk *desk); /* what happened, to the store */

/* exchange.c */
int jobq__desk_exchange(jobq__desk *desk, int64_t want, int64_t want_taken_back);
int jobq__desk_renew(jobq__desk *desk, int64_t lease_ms, jobq__ticket *const *soon, size_t soon_n);
void jobq__desk_maintain(jobq__desk *desk);
/* all that step wants of the store */
void jobq__desk_call(jobq__desk *desk, const jobq__step *step, int64_t want_taken_back);
bool jobq__desk_is_waiting_out(const jobq__desk *desk); /* an outage: not yet time to try again */
void jobq__desk_wait_store(jobq__desk *desk, int64_t timeout_ms, int wake_fd);
bool jobq__desk_is_announced(jobq__desk *desk, const jobq__handout *handout);

int jobq__desk_fail(jobq__desk *desk, int rc);                /* notes a failed call; returns rc */
void jobq__desk_lose(jobq__desk *desk, jobq__ticket *ticket); /* its lease is lost */

/* control.c */
int jobq__control_new(jobq__desk *desk);
void jobq__control_free(jobq__desk *desk);
/* the number that came with an answer */
void jobq__control_told(jobq__desk *desk, int64_t number);
bool jobq__control_is_due(const jobq__desk *desk); /* something has changed: time to read it */
void jobq__control_situation(jobq__desk *desk);
void jobq__control_tick(jobq__desk *desk); /* pauses that have run out */
int jobq__control_read(jobq__desk *desk);  /* asks what has changed and acts on it */
/* For a handler that runs in this process: is its job to end? Asks now and then. */
void jobq__control_peek(jobq__desk *desk);
bool jobq__control_is_paused(const jobq__desk *desk, jobq_slice queue);
/* The job is to end; one that has not begun does so here. */
void jobq__control_cancel(jobq__desk *desk, jobq__ticket *ticket, uint8_t cancel);
void jobq__control_marks(jobq__desk *desk, const jobq_batch *held);
void jobq__control_stop_note(const jobq__desk *desk, char *out, size_t size);

/* reconcile.c */
/* The ticket of that hand-out, NULL = none of ours. */
jobq__ticket *jobq__desk_find(jobq__desk *desk, jobq_lease_token token);
void jobq__desk_reconcile(jobq__desk *desk); /* asks `held` and sorts out the difference */
void jobq__desk_give_up(jobq__desk *desk);   /* unsettled results are lost */

/* room.c */
int64_t jobq__room_depth(const jobq__desk *desk); /* how many jobs behind the running ones */
/* How many jobs of the sort that it has may run in that child at once. */
size_t jobq__room_width(const jobq__seat *seat);
bool jobq__room_may_take(const jobq__desk *desk, const jobq__seat *seat); /* open, not resting */
void jobq__room_look(jobq__desk *desk);          /* fills seats' state, room, idle, live */
bool jobq__seat_is_open(const jobq__seat *seat); /* LIVE and going to stay */
/* Has it room for that one? Jobs that run alone and others are never in a child together. */
bool jobq__room_for(const jobq__desk *desk, const jobq__seat *seat, const jobq__ticket *ticket,
                    int64_t depth);

/* give.c */
void jobq__give(jobq__desk *desk);
bool jobq__give_one(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket); /* false: no room */
/* Nothing happens when the child has begun it. */
void jobq__give_take_back_one(jobq__desk *desk, jobq__seat *seat, jobq__ticket *ticket);
void jobq__give_take_back(jobq__desk *desk); /* unstarted ones of all children become held */
/* held ones go back to the store */
void jobq__give_return_held(jobq__desk *desk, int64_t older_than_ms);
/* unstarted ones of paused queues go back to the store */
void jobq__give_back_paused(jobq__desk *desk);
void jobq__give_revoke_all(jobq__desk *desk, jobq__seat *seat);
void jobq__give_clear_strays(jobq__desk *desk, jobq__seat *seat);

/* delicate.c: jobs of which the store has to know before they start */
void jobq__delicate_give(jobq__desk *desk);
void jobq__delicate_relieve(jobq__desk *desk); /* takes back what stands behind a long one */
void jobq__delicate_keep_clear(jobq__desk *desk);
void jobq__delicate_situation(jobq__desk *desk);
void jobq__delicate_arrived(jobq__desk *desk, size_t delicate, size_t all); /* by one reserve */
/* That room, or less: no more of them than begin soon. */
int64_t jobq__delicate_room(const jobq__desk *desk, int64_t room);
/* So many times as long as others they may be held. */
int64_t jobq__delicate_patience(const jobq__desk *desk);
int64_t jobq__delicate_want_taken_back(const jobq__desk *desk);

/* message.c */
void jobq__message_fill(jobq__job_message *message, const jobq__ticket *ticket);
char *jobq__message_put_texts(char *p, const jobq__job_message *message,
                              const jobq__ticket *ticket);
bool jobq__message_is_big(const jobq__ticket *ticket); /* its body goes by the big area */
/* Has the child's ring, its area room for it behind those that are planned? *head moves then. */
bool jobq__message_fits(const jobq__desk *desk, const jobq__seat *seat, const jobq__ticket *ticket,
                        uint64_t *head);
/* false: no room now */
bool jobq__message_write(jobq__desk *desk, jobq__seat *seat, const jobq__ticket *ticket);

/* post.c: events */
void jobq__posts_deliver(jobq__desk *desk);
void jobq__posts_drop(jobq__desk *desk); /* the first one */
void jobq__posts_add(jobq__desk *desk, const char *event, const jobq__ticket *ticket,
                     int64_t took_ms, const jobq__fault *fault);

/* About no job; queue may be absent. */
void jobq__posts_say(jobq__desk *desk, const char *event, jobq_slice queue, const jobq__datum *data,
                     size_t n);

/* results.c */
void jobq__results_read(jobq__desk *desk);
void jobq__results_release(jobq__desk *desk); /* rings whose results are all answered for */
void jobq__results_deaths(jobq__desk *desk);
void jobq__results_take_over(jobq__desk *desk); /* an earlier dispatcher's table */
void jobq__results_orphans(jobq__desk *desk);   /* the master died: who is dead of its children? */

#endif
