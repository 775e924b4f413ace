/* SPDX-License-Identifier: MIT
 *
 * Everything master, dispatcher and children share: one mapping made before the first fork. Rules:
 *   - words are atomics; a word has one writer unless its comment names a compare-and-swap;
 *   - nobody waits for a lock that another process holds, so any process may be killed at any
 *     moment;
 *   - the table of hand-outs (tokens) is a mapping of its own that children unmap.
 *
 *      dispatcher --- job ring ---> child          (one of each per slot)
 *      dispatcher <-- result ring -- child
 *      master ------- words -------- everybody
 */
#ifndef JOBQ_WORKER_SHARED_H
#define JOBQ_WORKER_SHARED_H

#include <stdatomic.h>

#include "core/ident.h"
#include "core/queue.h"
#include "core/retry.h"
#include "util/fd.h"

typedef _Atomic uint32_t jobq__word;
typedef _Atomic int64_t jobq__long;
typedef _Atomic uint64_t jobq__number;

/* ---- rings (ring.c) -----------------------------------------------------------------------------
 * One producer, one consumer, messages of any length in one piece, offsets that only grow:
 *
 *     | len | bytes ... padded to 8 | len | ... | WRAP |        data[offset % size]
 *            ^ tail (consumer)             ^ head (producer)
 *
 * A message is visible when head is stored (release) and its room is free when tail is stored. The
 * consumer may look ahead of tail with a cursor of its own: a result leaves the ring only when the
 * store has answered.
 */
typedef struct {
    jobq__number head, tail;
    uint32_t size;   /* bytes of data, a power of two */
    uint32_t offset; /* of data, from the slot's start */
} jobq__ring;

/* Room for n bytes in one piece, NULL when there is none now; then publish exactly that many. */
void *jobq__ring_reserve(jobq__ring *ring, char *base, size_t n);
void jobq__ring_publish(jobq__ring *ring, size_t n);
/* Producer: would n bytes more have room behind what is planned? *head starts as jobq__ring_head
 * and moves behind them. What fitted fits later, too, and when some of those before it are left
 * out. */
bool jobq__ring_fits(const jobq__ring *ring, uint64_t *head, size_t n);
uint64_t jobq__ring_head(const jobq__ring *ring);
/* The message at *cursor (start: tail), NULL at the end; moves the cursor behind it. */
const void *jobq__ring_look(const jobq__ring *ring, const char *base, uint64_t *cursor,
                            size_t *n_out);
/* Gives everything before the cursor back to the producer. */
void jobq__ring_release(jobq__ring *ring, uint64_t cursor);
bool jobq__ring_is_empty(const jobq__ring *ring);

/* ---- what travels in rings ----------------------------------------------------------------------
 * Fixed head, then the texts one behind the other in the order of the lengths. */
enum { JOBQ__MSG_JOB = 1, JOBQ__MSG_EVENT = 2 };

typedef struct {
    uint32_t kind; /* JOBQ__MSG_* */
    int32_t version;
    /* number, grows for the whole life of the worker; 0 with EVENT without a job */
    uint64_t handout;
    jobq_counters counters;
    int64_t fence, enqueued_at_ms, base_at_ms, taken_at_ms, taken_mono_ms;
    jobq_lease_token token; /* for what the job does in the store itself (rule O1) */
    jobq__policy policy;
    uint8_t priority;
    uint8_t body_in_area; /* the body lies at the start of the slot's big area */
    uint16_t seats;       /* so many may run in its child, all of this sort; 1 = it runs alone */
    /* event_n: event name, then data (see observe.c) */
    uint32_t id_n, queue_n, name_n, header_n, event_n;
    uint32_t data_n;
    uint64_t body_n;
} jobq__job_message;

/* The next of a message's texts, n bytes long. */
static inline jobq_slice jobq__message_text(const char **p, size_t n)
{
    jobq_slice text = {*p, n};

    *p += n;
    return text;
}

typedef struct {
    uint64_t handout;
    uint32_t ending;  /* jobq_ending */
    uint32_t fault_n; /* encoded fault (core/fault.h) that follows; 0 = none */
    int64_t delay_ms; /* -1 = none */
    int64_t ran_us;   /* handler time; -1 = it never started */
    int64_t ended_mono_ms;
    /* encoded outcome (core/outcome.h) behind the fault, or at the start of the slot's place for
     * large ones; 0 = none */
    uint32_t outcome_n;
    uint8_t outcome_in_area;
    uint8_t asked_done; /* it has its done statement (rule O1) */
} jobq__result_message;

/* ---- slots (slot.c) -----------------------------------------------------------------------------
 *
 *     FREE --master forks--> STARTING --child is ready--> LIVE
 *          --master reaped it--> DEAD --dispatcher has drained and judged--> FREE
 */
enum { JOBQ__SLOT_FREE, JOBQ__SLOT_STARTING, JOBQ__SLOT_LIVE, JOBQ__SLOT_DEAD };

/* A hand-out's record, in the child's slot at number % JOBQ__RECORDS: number << 2 | state. GIVEN ->
 * RUNNING is the child's compare-and-swap, GIVEN -> REVOKED the dispatcher's; RUNNING -> ENDED the
 * child's, after its result is in the ring. Whoever comes second knows it. */
enum { JOBQ__GIVEN, JOBQ__RUNNING, JOBQ__ENDED, JOBQ__REVOKED };
enum { JOBQ__RECORDS = 2048 };

/* What the dispatcher says about a hand-out that runs, at number % JOBQ__RECORDS: number << 3 and
 * these. LOST: its lease is lost; CANCELLED: people want it to end; FORCED: the master ends it. */
enum { JOBQ__MARK_LOST = 1, JOBQ__MARK_CANCELLED = 2, JOBQ__MARK_FORCED = 4 };

/* Why the master killed a child (kill_kind). */
enum { JOBQ__KILL_NONE, JOBQ__KILL_TIMEOUT, JOBQ__KILL_STOP };

enum { JOBQ__FATAL_TEXT = 8192 };

/* One running hand-out: child writes, master reads. */
typedef struct {
    jobq__number number; /* 0 = none; stored last */
    jobq__long since_ms, deadline_ms /* monotonic, 0 = none */, grace_ms;
    jobq__number delivered; /* the hand-out whose soft stop was thrown into it */
    jobq__long delivered_at_ms;
    /* soft stop: master writes kind, then the number, then sends SIGURG */
    jobq__word soft_kind; /* JOBQ_INTERRUPT_* */
    jobq__number soft_stop;
    jobq__long soft_at_ms;
    jobq__number asked_done; /* child: the hand-out that has its done statement */
} jobq__run;

/* The newest that a running job said of itself (rule N7): child writes, dispatcher reads. The child
 * never waits: an odd turn while it writes, the next even one behind it; whoever finds another turn
 * after reading than before has read nothing. */
enum { JOBQ__TELL_MAX = 1200 };
typedef struct {
    jobq__number turn, number;
    jobq__word n;
    char bytes[JOBQ__TELL_MAX]; /* encoded outcome */
} jobq__tell;

/* How a child waits (sleeping). BY_FD: it looks at other descriptors, too, and wants a byte in the
 * slot's pipe. */
enum { JOBQ__AWAKE, JOBQ__ASLEEP, JOBQ__BY_FD };

typedef struct {
    jobq__word state; /* the arrow's owner writes */
    /* Made before the first fork: how many hand-outs may run at once, and the pipe's write end,
     * the same number in all processes; -1 = none. */
    uint32_t seats;
    int bell_fd;
    jobq__word started; /* child: child.started listeners are through (it has survived its start) */
    _Atomic int32_t pid;         /* master */
    _Atomic int32_t wait_status; /* master, before DEAD: as from waitpid */
    jobq__word bell;             /* futex: raised by whoever has news for the child */
    jobq__word sleeping;         /* child: JOBQ__ASLEEP ...; who wakes it swaps BY_FD to AWAKE */
    jobq__word leave;            /* dispatcher or master: go after the running job */
    jobq__word vetoed;           /* child: a listener of `looping` wants no job to begin */
    jobq__word retiring;         /* child: gives up after the running job; give it nothing more */
    /* child, master: it will do so soon; its successor is started and waits until it has (G7) */
    jobq__word worn;
    jobq__run run;   /* the first seat's; see jobq__slot_run */
    jobq__word used; /* child: seats that have ever been taken */
    /* kill: master writes before kill() */
    jobq__word kill_kind;
    /* the hand-out that was over its own deadline (TIMEOUT) or running (STOP) */
    jobq__number killed;
    jobq__word fatal_n; /* child: length of the text below, stored last */
    char fatal[JOBQ__FATAL_TEXT];
    jobq__number records[JOBQ__RECORDS];
    jobq__number marks[JOBQ__RECORDS]; /* dispatcher */
    /* dispatcher: bytes of the big area in use; 0 when the child is done with it */
    jobq__long area_used;
    /* The place for large outcomes: child, when it is free: length, then the hand-out; dispatcher,
     * when the store has answered: 0 = free. */
    jobq__long out_n;
    jobq__number out_of;
    jobq__word told;     /* child: raised when a job said how far it is */
    jobq__long jobs_run; /* child: handlers it ran */
    jobq__ring jobs, results;
} jobq__slot;

/* a body, an outcome over a quarter go by the areas */
enum { JOBQ__JOB_RING = 256 * 1024, JOBQ__RESULT_RING = 256 * 1024 };

static inline uint64_t jobq__record_value(uint64_t number, unsigned state)
{
    return number << 2 | state;
}

/* ---- words for the whole worker -------------------------------------------------------------- */

/* How far a stop has gone. */
enum {
    JOBQ__GO,
    JOBQ__DRAIN /* running jobs finish */,
    JOBQ__HARD /* StopException, then the kill */
};

/* Why; the first one stands (compare-and-swap from 0). Order = precedence of the last line (rule
 * G4). */
#define JOBQ__STOP_LIST(X)                                             \
    X(NONE, "")                                                        \
    X(SIGNAL, "asked to shut down")                                    \
    X(RESTART, "restart requested")                                    \
    X(MAX_JOBS, "ran %lld job%s")                                      \
    X(MAX_TIME, "been going for %llds")                                \
    X(MEMORY, "using %lldMB")                                          \
    X(EMPTY, "Nothing left to do")                                     \
    X(ONCE, "ran one job")                                             \
    X(UNREADABLE, "the queue has been unreadable %lld time%s running") \
    X(UNUSABLE, "the store cannot be used")                            \
    X(NO_CHILD, "no child survives its start")
#define JOBQ__STOP_ENUM(name, text) JOBQ__STOP_##name,
enum { JOBQ__STOP_LIST(JOBQ__STOP_ENUM) JOBQ__STOPS };

typedef struct {
    /* master, signals, handlers (jobq_worker_stop): compare-and-swap upwards only */
    jobq__word stop;        /* JOBQ__GO ... */
    jobq__word stop_reason; /* JOBQ__STOP_* */
    jobq__long stop_number; /* the %lld of the reason */
    jobq__word paused;      /* master: USR2 1, CONT 0 */
    jobq__long generation;  /* restarts that were asked for before we began, -1 = not known yet */
    /* dispatcher */
    jobq__word ready;          /* serving: connected, not draining, not paused */
    jobq__word up;             /* it has reached the store and holds a record there */
    char stop_note[384];       /* what the last line adds to the reason; before that is set */
    jobq__word settled;        /* everything is settled or given up: children may go */
    _Atomic int32_t exit_code; /* what run returns, first non-zero stands */
    /* monotonic: hung if the clock passes it; renewed around every blocking call */
    jobq__long beat_until_ms;
    /* it waits on its bell: ring it; otherwise it looks by itself soon */
    jobq__word dispatcher_sleeping;
    jobq__word out;          /* hand-outs in children */
    jobq__long next_handout; /* number for the next one */
    jobq__long counters[JOBQ__COUNTERS];
    jobq__long jobs_run; /* handlers that ran (max_jobs counts these) */
    /* master */
    jobq__word dispatcher_starts;
    jobq__word master_sleeping; /* it waits for long: who begins a job swaps it to 0 and rings */
    char worker_id[JOBQ__WORKER_ID_SIZE];
    uint32_t processes, slot_count;
} jobq__words;

/* ---- hand-outs: master and dispatcher only; survives a dispatcher's death -------------------- */

enum {
    JOBQ__HANDOUT_NONE,
    JOBQ__HANDOUT_HELD /* reserved, in no child */,
    JOBQ__HANDOUT_OUT /* in a slot */
};

/* Its loss would count as a crash; its unique key is freed before it starts (rule B6); it was lost
 * before or took its process with it: none is announced behind it. */
enum { JOBQ__DELICATE_BLAME = 1, JOBQ__DELICATE_KEY = 2, JOBQ__DELICATE_ALONE = 4 };

typedef struct {
    jobq__word state; /* stored last when filled */
    uint32_t slot;    /* OUT: whose */
    uint64_t number;
    jobq_lease_token token;
    jobq_counters counters;
    jobq__policy policy;
    int64_t fence, enqueued_at_ms, base_at_ms, taken_at_ms, taken_mono_ms;
    int32_t version, handler; /* index of the announced handler, -1 = none */
    uint8_t priority, hook;   /* hook: a failed hook, from a hidden queue */
    uint8_t delicate;         /* JOBQ__DELICATE_*: only for a child that begins it soon */
    uint16_t seats;           /* so many of its sort may run in a child */
    uint16_t queue_n, name_n;
    char id[JOBQ__ID_SIZE], queue[131], name[256];
} jobq__handout;

typedef struct {
    jobq__words *words; /* start of the mapping */
    char *slots;        /* slot i at slots + i * slot_size */
    size_t slot_size, size;
    char *areas; /* big area i at areas + i * area_size (MAP_NORESERVE) */
    size_t area_size;
    char *outs; /* places for large outcomes, likewise */
    size_t out_size;
    jobq__handout *handouts; /* NULL in children */
    size_t handout_count;
    int dispatcher_bell[2], master_bell[2]; /* doorbell pipes: [0] read, [1] write */
    /* of the write ends: checked before a child writes */
    jobq__fd_identity dispatcher_bell_id, master_bell_id;
    uint32_t seats;       /* of each slot */
    int (*slot_bells)[2]; /* a pipe per slot where seats > 1, else NULL */
} jobq__shared;

/* shared.c */
/* seats: how many hand-outs may run in a child at once */
int jobq__shared_new(jobq__shared *shared, uint32_t processes, uint32_t seats, size_t max_body,
                     size_t max_outcome);
void jobq__shared_free(jobq__shared *shared);
/* In a child: unmaps the table of hand-outs and every slot but its own, whose pipe alone stays
 * open. */
void jobq__shared_narrow(jobq__shared *shared, uint32_t slot);

static inline jobq__slot *jobq__slot_at(const jobq__shared *shared, uint32_t i)
{
    return (jobq__slot *)(void *)(shared->slots + (size_t)i * shared->slot_size);
}
static inline char *jobq__slot_base(jobq__slot *slot)
{
    return (char *)slot;
}
/* The i-th seat's; those but the first lie behind the rings. */
jobq__run *jobq__slot_run(const jobq__slot *slot, uint32_t i);
/* What the job on that seat said last; behind the runs. */
jobq__tell *jobq__slot_tell(const jobq__slot *slot, uint32_t i);
/* Where that hand-out runs, NULL = nowhere. */
jobq__run *jobq__slot_find(const jobq__slot *slot, uint64_t number);
uint32_t jobq__slot_running(const jobq__slot *slot); /* how many run */
uint64_t jobq__slot_oldest(const jobq__slot *slot);  /* the lowest number that runs, 0 = none */

/* slot.c */
void jobq__slot_clear(jobq__slot *slot); /* dispatcher, when it sets FREE; rings emptied */
/* raises the bell; futex call or a byte in the pipe only when the child sleeps */
void jobq__slot_wake(jobq__slot *slot);
/* Sleeps until the bell differs from `seen` or timeout_ms passed. */
void jobq__slot_sleep(jobq__slot *slot, uint32_t seen, int64_t timeout_ms);
/* child: GIVEN -> RUNNING; false: revoked */
bool jobq__slot_begin(jobq__slot *slot, uint64_t number);
/* dispatcher: GIVEN -> REVOKED; false: begun or ended */
bool jobq__slot_revoke(jobq__slot *slot, uint64_t number);
void jobq__slot_end(jobq__slot *slot, uint64_t number);              /* child: RUNNING -> ENDED */
unsigned jobq__slot_record(const jobq__slot *slot, uint64_t number); /* its state */
/* dispatcher: adds a mark; everybody: has it that one? */
void jobq__slot_mark(jobq__slot *slot, uint64_t number, unsigned mark);
bool jobq__slot_is_marked(const jobq__slot *slot, uint64_t number, unsigned mark);
/* child, dispatcher for a dead one: the big area is free again, its memory the system's */
void jobq__slot_return_area(jobq__slot *slot, char *area);
/* dispatcher: the same for the place of large outcomes */
void jobq__slot_return_out(jobq__slot *slot, char *out);
/* child: replaces what that seat's job said last; n at most JOBQ__TELL_MAX */
void jobq__slot_tell_write(jobq__slot *slot, uint32_t i, uint64_t number, const void *p, size_t n);
/* dispatcher: a copy of it (room for JOBQ__TELL_MAX); 0 = it is just being written, or nothing */
size_t jobq__slot_tell_read(const jobq__slot *slot, uint32_t i, uint64_t *number_out, void *out);
/* Asks for a stop: true if this call raised it to `level`. */
bool jobq__words_stop(jobq__words *words, uint32_t level, uint32_t reason, int64_t number);

#endif
