/* SPDX-License-Identifier: MIT
 *
 * The Redis driver: jobs in streams, one per queue and used priority, each with one consumer group.
 * doc/stores/redis.md shows the keys. Reserving is the native XREADGROUP; everything that has to
 * be one step is a Lua script (scripts/). One connection for calls, one that waits for news.
 */
#ifndef JOBQ_DRIVER_REDIS_H
#define JOBQ_DRIVER_REDIS_H

#include <sys/types.h>

#include "driver/common.h"

enum {
    RDS_READY,
    RDS_DELAYED,
    RDS_RESERVED,
    RDS_DONE,
    RDS_DEAD,       /* as jobq_record.state */
    RDS_SCHEMA = 1, /* version of the layout */
    RDS_BATCH = 1000,
    RDS_PRIORITIES = 10,
};

/* ---- replies and the connection (reply.c, transport.c, tls.c) -------------------------------- */

typedef enum { RDS_TEXT, RDS_STATUS, RDS_ERROR, RDS_INTEGER, RDS_LIST, RDS_NIL } rds_type;

typedef struct rds_value {
    rds_type type;
    int64_t integer;
    const char *p; /* texts, statuses and errors, with a NUL behind; else NULL */
    size_t n;      /* bytes of them; else 0 */
    struct rds_value **item;
    size_t count; /* of a list; else 0 */
} rds_value;

typedef struct rds_tls rds_tls;

typedef struct {
    int fd; /* -1 = not connected */
    rds_tls *tls;
    void *reader;      /* hiredis' redisReader */
    jobq__arena arena; /* where replies lie until the next round */
    bool arena_failed;
    jobq__buf out;   /* commands, kept until they are answered */
    size_t out_sent; /* bytes of it that are on their way */
    size_t *starts;  /* where each command begins in it */
    size_t commands, commands_room;
} rds_link;

void *jobq__redis_reader_new(rds_link *link); /* NULL: no memory */
void jobq__redis_reader_free(void *reader);
int jobq__redis_reader_feed(void *reader, const char *p, size_t n);
/* 1 a reply, 0 more bytes are needed, -1 no protocol of Redis or no memory */
int jobq__redis_reader_next(void *reader, rds_value **value_out);

typedef struct {
    char host[256]; /* or the path of a Unix socket, with port 0 */
    int port;
} rds_address;

/* Connects until the deadline (monotonic clock) and says nothing yet; with a TLS handshake. */
int jobq__redis_dial(const jobq_driver_config *config, const rds_address *address, rds_link *link,
                     int64_t deadline_ms);
void jobq__redis_hang_up(rds_link *link);  /* forgets what was asked, too */
bool jobq__redis_is_stale(rds_link *link); /* closed by the other side while nothing was asked */

/* A command is begun with the number of its words, then each word is added. */
void jobq__redis_begin(rds_link *link, size_t words);
void jobq__redis_word(rds_link *link, const void *p, size_t n);
void jobq__redis_words(rds_link *link, const char *text); /* NUL-terminated */
void jobq__redis_number(rds_link *link, int64_t n);

/* Sends what was begun; 0 or an error. */
int jobq__redis_send(rds_link *link, int64_t deadline_ms);
/* Reads n replies. Signals do not end it. */
int jobq__redis_receive(rds_link *link, size_t n, rds_value **values, int64_t deadline_ms);
/* Reads one reply if it is there. 1 it is, 0 not yet. */
int jobq__redis_peek(rds_link *link, rds_value **value_out);
/* The words of all commands were answered: room for the next. */
void jobq__redis_clear(rds_link *link);

/* sentinel.c */
int jobq__redis_check_sentinels(const jobq_driver_config *config);
int jobq__redis_find_master(const jobq_driver_config *config, rds_address *out,
                            int64_t deadline_ms);

/* tls.c: non-blocking. */
int jobq__redis_tls_start(const jobq_driver_config *config, rds_link *link, int64_t deadline_ms);
void jobq__redis_tls_end(rds_tls *tls);
/* As send and recv: -1 with errno EAGAIN, *events_out = what to poll for. */
ssize_t jobq__redis_tls_write(rds_tls *tls, const void *p, size_t n, short *events_out);
ssize_t jobq__redis_tls_read(rds_tls *tls, void *p, size_t n, short *events_out);
bool jobq__redis_tls_pending(rds_tls *tls);

/* ---- the store (connect.c, call.c) ----------------------------------------------------------- */

typedef enum {
    RDS_SCRIPT_COUNTS,
    RDS_SCRIPT_DEAD,
    RDS_SCRIPT_DUE,
    RDS_SCRIPT_FIND,
    RDS_SCRIPT_HELD,
    RDS_SCRIPT_LEAVE,
    RDS_SCRIPT_LIST,
    RDS_SCRIPT_LOOK,
    RDS_SCRIPT_MEND,
    RDS_SCRIPT_PROMOTE,
    RDS_SCRIPT_PUSH,
    RDS_SCRIPT_RENEW,
    RDS_SCRIPT_RESERVE,
    RDS_SCRIPT_SCHEMA,
    RDS_SCRIPT_SETTLE,
    RDS_SCRIPT_SWEEP,
    RDS_SCRIPT_TAKE_BACK,
    RDS_SCRIPT_WORKERS,
    RDS_SCRIPTS
} rds_script_id;

typedef struct {
    const char *name, *sha;
    size_t n;
    const char *text;
} rds_script;
extern const rds_script jobq__redis_scripts[RDS_SCRIPTS];

/* The stream that the next reservation reads natively, of those that are known. */
typedef struct {
    bool known;
    size_t queue; /* place in the caller's list */
    uint8_t priority;
    size_t queue_count;
    uint32_t queues_hash;
    int64_t body_bytes; /* of its jobs, a moving mean */
} rds_current;

typedef struct rds_news rds_news;

typedef struct {
    const jobq_driver_config *config;
    jobq__buf base;   /* "{prefix}" */
    rds_link link;    /* calls */
    rds_news *news;   /* the one that waits; wait.c */
    bool found_empty; /* the last exchange left nothing ready behind */
    bool sentinel;    /* the master is to be asked for */
    int database;
    int64_t version; /* of the layout, at the last greeting; 0 = none */
    bool checked;
    int64_t started_at_ms; /* the server, by its clock */
    rds_current current;
    int64_t swept_ms; /* monotonic clock: last look for hand-outs without a worker, 0 = none */
    jobq__buf scratch;
    jobq__arena arena; /* of one call */
} rds_store;

extern const jobq_driver jobq__redis_driver;

/* Connected and greeted. */
int jobq__redis_ready(rds_store *store);
/* The same, and the schema is there. */
int jobq__redis_enter(rds_store *store);
void jobq__redis_free_link(rds_link *link);
int jobq__redis_greet(rds_store *store, rds_link *link, bool first, int64_t deadline_ms);
void jobq__redis_drop(rds_store *store); /* the connection for calls */

enum { RDS_READS = 0, RDS_WRITES = 1 };
/* One round trip of what was begun on the link for calls: `n` replies, none of which need be good.
 * Scripts the server does not know are loaded and run then. RDS_WRITES: an answer that is lost is
 * JOBQ_EUNKNOWN. */
int jobq__redis_round(rds_store *store, rds_value **values, size_t n, int kind);
/* One command; an error reply becomes an error. */
int jobq__redis_call(rds_store *store, rds_value **value_out, int kind);
void jobq__redis_script(rds_store *store, rds_script_id id,
                        size_t words); /* words behind KEYS[1] */
/* ... with the base of a queue as KEYS[2] */
void jobq__redis_queue_script(rds_store *store, rds_script_id id, jobq_slice queue, size_t words);
/* An error reply in the words of this library; the connection is dropped where that helps. */
int jobq__redis_refused(rds_store *store, const rds_value *value);
int jobq__redis_nonsense(rds_store *store); /* an answer that is none: JOBQ_EPROTO, dropped */

/* keys.c */
void jobq__redis_add_base(const rds_store *store, jobq__buf *out, jobq_slice queue);
uint32_t jobq__redis_hash(jobq_slice queue);

/* Walks over the elements of a list; what is missing is 0 or empty. */
typedef struct {
    const rds_value *list;
    size_t at;
} rds_walk;
bool jobq__redis_more(const rds_walk *walk);
int64_t jobq__redis_int(rds_walk *walk);
jobq_slice jobq__redis_text(rds_walk *walk);

/* ---- jobs (job.c) ---------------------------------------------------------------------------- */

/* Flags of j */
enum { RDS_GIVEN = 1, RDS_UNIQUE = 2, RDS_HEADER = 4, RDS_BODY = 8 };
/* Flags of a token beside those: it has stood elsewhere; it is marked as taken back */
enum { RDS_MORE = 16, RDS_MARKED = 32 };

typedef struct {
    uint64_t ms, seq;
} rds_entry;
bool jobq__redis_entry(jobq_slice text, rds_entry *out);

typedef struct {
    rds_entry entry;
    uint32_t count, queue; /* deliveries of the entry; hash of the queue */
    uint8_t priority, flags;
} rds_token;
jobq_lease_token jobq__redis_token(const rds_token *parts);
rds_token jobq__redis_token_parts(jobq_lease_token token);

/* A stored job as the store holds it. */
typedef struct {
    jobq_slice j, s, mark, entry; /* mark: counters since it was taken back; entry "" = at rest */
    uint8_t priority;
    int64_t count;
} rds_stored;
/* Fills the record from it; 0 or JOBQ_ENOMEM. Flags for a token are answered. */
int jobq__redis_read_job(const rds_stored *stored, bool keys_only, jobq_batch *out, jobq_record *r,
                         uint8_t *flags_out);
void jobq__redis_write_job(jobq__buf *out, const jobq_push *item);
/* The time in a UUIDv7, -1 = it is none. */
int64_t jobq__redis_id_time(jobq_slice id);

/* ---- operations ------------------------------------------------------------------------------ */

int jobq__redis_schema(void *handle);
void jobq__redis_ask_version(rds_store *store, rds_link *link); /* adds the command */
int jobq__redis_push(void *handle, jobq_push *items, size_t n);
int jobq__redis_exchange(void *handle, jobq_exchange *x);
/* settle.c: adds the scripts of a batch (how many: *scripts_out), and reads their answers. */
typedef struct rds_settling rds_settling;
int jobq__redis_settle_begin(rds_store *store, jobq_exchange *x, rds_settling **settling_out,
                             size_t *scripts_out);
int jobq__redis_settle_answers(rds_store *store, jobq_exchange *x, rds_settling *settling,
                               rds_value **values);
int jobq__redis_renew(void *handle, jobq_renewal *r);
int jobq__redis_leave(void *handle, jobq_slice worker);
int jobq__redis_held(void *handle, jobq_slice worker, jobq_batch *out);
int jobq__redis_workers(void *handle, jobq_batch *out);
int jobq__redis_wait(void *handle, const jobq_wait *w);
void jobq__redis_news_free(rds_news *news);
int jobq__redis_maintain(void *handle, jobq_maintenance *m);
int jobq__redis_find(void *handle, jobq_slice id, jobq_batch *out);
int jobq__redis_list(void *handle, jobq_listing *l);
int jobq__redis_counts(void *handle, jobq_slice queue, jobq_counts *counts_out);
int jobq__redis_queues(void *handle, jobq_batch *out);
int jobq__redis_ask_queues(rds_store *store, rds_value **names_out); /* until the next round */
int jobq__redis_mend(void *handle, jobq_mending *m);
int jobq__redis_now(void *handle, int64_t *now_ms_out);

#endif
