/* SPDX-License-Identifier: MIT
 *
 * The Redis driver: jobs in streams, one per queue and used priority, each with one consumer group.
 * doc/stores/redis.md shows the keys. Reserving is the native XREADGROUP; everything that has to
 * be one step is a Lua script (scripts/), which sees one queue: on a Cluster a queue is one slot.
 * One connection for calls (on a Cluster one to each master), one that waits for news (one for
 * each queue there).
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
    RDS_SCHEMA = 3, /* version of the layout */
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
/* Could the sentinels agree on another master? 0, or JOBQ_ECONNECT; in both cases what was said. */
int jobq__redis_ask_quorum(const jobq_driver_config *config, size_t *asked_out, size_t *silent_out,
                           char *said, size_t room, int64_t deadline_ms);

/* tls.c: non-blocking. */
int jobq__redis_tls_start(const jobq_driver_config *config, const char *host, rds_link *link,
                          int64_t deadline_ms);
void jobq__redis_tls_end(rds_tls *tls);
/* As send and recv: -1 with errno EAGAIN, *events_out = what to poll for. */
ssize_t jobq__redis_tls_write(rds_tls *tls, const void *p, size_t n, short *events_out);
ssize_t jobq__redis_tls_read(rds_tls *tls, void *p, size_t n, short *events_out);
bool jobq__redis_tls_pending(rds_tls *tls);

/* ---- the store (connect.c, call.c) ----------------------------------------------------------- */

typedef enum {
    RDS_SCRIPT_ADMIT,
    RDS_SCRIPT_AUDIT,
    RDS_SCRIPT_BOOK,
    RDS_SCRIPT_CANCEL,
    RDS_SCRIPT_CAPACITY,
    RDS_SCRIPT_CLEAR,
    RDS_SCRIPT_CONTROL,
    RDS_SCRIPT_COUNTS,
    RDS_SCRIPT_DEAD,
    RDS_SCRIPT_DUE,
    RDS_SCRIPT_EFFECT,
    RDS_SCRIPT_ENLIST,
    RDS_SCRIPT_ENLISTED,
    RDS_SCRIPT_FIND,
    RDS_SCRIPT_HELD,
    RDS_SCRIPT_KNOWN,
    RDS_SCRIPT_LEAVE,
    RDS_SCRIPT_LIST,
    RDS_SCRIPT_LOOK,
    RDS_SCRIPT_MEND,
    RDS_SCRIPT_MINUTES,
    RDS_SCRIPT_PROBE,
    RDS_SCRIPT_PROMOTE,
    RDS_SCRIPT_PUSH,
    RDS_SCRIPT_RENEW,
    RDS_SCRIPT_RESERVE,
    RDS_SCRIPT_REVIVE,
    RDS_SCRIPT_SCHEMA,
    RDS_SCRIPT_SETTLE,
    RDS_SCRIPT_STANDS,
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
typedef struct rds_cluster rds_cluster;
typedef struct rds_known rds_known;

typedef struct {
    const jobq_driver_config *config;
    jobq__buf base;       /* "{prefix}" */
    rds_link link;        /* calls; on a Cluster only where they are gathered */
    rds_news *news;       /* what waits; wait.c */
    rds_cluster *cluster; /* NULL = one server */
    rds_known *known;     /* workers and queues that this handle serves; known.c */
    bool found_empty;     /* the last exchange left nothing ready behind */
    bool sentinel;        /* the master is to be asked for */
    int database;
    int64_t version; /* of the layout, at the last greeting; 0 = none */
    bool checked;
    int64_t started_at_ms; /* the server, by its clock */
    int64_t control;       /* as last told */
    int64_t next_due_ms;   /* as last told by what looks at queues; 0 = nothing */
    rds_current current;
    uint32_t closed;  /* hash of the queue that refused a push without a script; 0 = none */
    int64_t swept_ms; /* monotonic clock: last look for hand-outs without a worker, 0 = none */
    jobq__buf scratch;
    jobq__arena arena; /* of one call */
} rds_store;

int jobq__redis_open(const jobq_driver_config *config, void **store_out);
void jobq__redis_close(void *handle);

/* Connected and greeted. */
int jobq__redis_ready(rds_store *store);
/* The same, and the schema is there. */
int jobq__redis_enter(rds_store *store);
/* The same before work that asks since when servers run. */
int jobq__redis_enter_all(rds_store *store);
void jobq__redis_free_link(rds_link *link);
/* Greets the server that has the key (on a Cluster; NULL: any): with what the store wants to know
 * of it, or only as somebody who waits. */
int jobq__redis_greet(rds_store *store, rds_link *link, bool first, jobq_slice key,
                      int64_t deadline_ms);
int jobq__redis_greet_at(rds_store *store, rds_link *link, bool first, const rds_address *address,
                         int64_t deadline_ms);
int64_t jobq__redis_connect_deadline(const rds_store *store);
void jobq__redis_drop(rds_store *store); /* the connections for calls */
bool jobq__redis_is_up(const rds_store *store);

/* ---- what INFO says (server.c) --------------------------------------------------------------- */

/* The value of a line, up to its end; empty = it is not there. */
jobq_slice jobq__redis_info(const char *info, const char *name);
/* "Redis 7.0.15", "Valkey 8.1.1" */
void jobq__redis_name_server(const char *info, char *out, size_t room);
/* Is it a server for this store, and since when does it run? From INFO and TIME. An account that
 * may not ask for them is believed. */
int jobq__redis_check_server(rds_store *store, const rds_value *info, const rds_value *time);

/* table.c */
extern const jobq_driver jobq__redis_driver, jobq__redis_cluster_driver;

enum { RDS_READS = 0, RDS_WRITES = 1 };
/* One round trip of what was begun on the link for calls: `n` replies, none of which need be good.
 * Scripts the server does not know are loaded and run then. RDS_WRITES: an answer that is lost is
 * JOBQ_EUNKNOWN. */
int jobq__redis_round(rds_store *store, rds_value **values, size_t n, int kind);
/* One command; an error reply becomes an error. */
int jobq__redis_call(rds_store *store, rds_value **value_out, int kind);
/* A script over these queues: their bases are its keys, `words` words follow. No queue: the base of
 * the prefix is its key. On a Cluster one queue at most. */
void jobq__redis_script(rds_store *store, rds_script_id id, const jobq_slice *queues, size_t n,
                        size_t words);
/* A command with one key of the prefix, "{prefix}" and what is given; or that key alone. */
void jobq__redis_ask(rds_store *store, const char *command, const char *key);
void jobq__redis_base_word(rds_store *store, const char *key);
/* An error reply in the words of this library; the connection is dropped where that helps. */
int jobq__redis_refused(rds_store *store, const rds_value *value);
int jobq__redis_nonsense(rds_store *store); /* an answer that is none: JOBQ_EPROTO, dropped */

/* ---- all queues (queues.c) ------------------------------------------------------------------- */

typedef struct {
    jobq_slice *names; /* in the store's arena */
    size_t count;
} rds_names;
/* Every queue, each with the hidden one beside it. */
int jobq__redis_all_queues(rds_store *store, rds_names *out);

/* How much of a bounded search falls to each queue. */
size_t jobq__redis_share(size_t most, size_t queues);

/* One trip over queues, a script each. */
typedef struct {
    void (*ask)(rds_store *store, const jobq_slice *queues, size_t n, void *with);
    int (*read)(rds_store *store, const jobq_slice *queues, size_t n, const rds_value *answer,
                void *with);
    bool together; /* a script may have several queues, where that can be */
    /* So many commands stand before in the same trip; the reader of their answers. */
    size_t before;
    int (*read_before)(rds_store *store, rds_value **values, void *with);
    int kind; /* RDS_READS, RDS_WRITES */
} rds_visit;
int jobq__redis_visit(rds_store *store, const rds_visit *visit, const rds_names *queues,
                      void *with);
/* The `read` of scripts that answer nothing of interest. */
int jobq__redis_read_nothing(rds_store *store, const jobq_slice *queues, size_t n,
                             const rds_value *answer, void *with);

/* ---- what this handle serves (known.c) ------------------------------------------------------- */

typedef struct {
    char *id;
    size_t n;
    int64_t lease_ms, until_ms; /* as last renewed, by the store's clock; 0 = never */
    bool complete;              /* all queues where it may hold something are known */
} rds_worker;
rds_worker *jobq__redis_worker(rds_store *store, jobq_slice id, bool make); /* NULL: none */
int jobq__redis_know(rds_store *store, const jobq_slice *queues, size_t n);
void jobq__redis_known_queues(const rds_store *store, rds_names *out); /* borrowed */
void jobq__redis_known_free(rds_known *known);

/* keys.c */
void jobq__redis_add_base(const rds_store *store, jobq__buf *out, jobq_slice queue);
uint32_t jobq__redis_hash(jobq_slice queue);

/* ---- Cluster (cluster.c, slots.c) ------------------------------------------------------------ */

int jobq__redis_cluster_open(rds_store *store);
void jobq__redis_cluster_free(rds_cluster *cluster);
/* The table of slots is there; `all`: and every master has been greeted. */
int jobq__redis_cluster_ready(rds_store *store, bool all);
void jobq__redis_cluster_drop(rds_store *store); /* closes all, and asks anew who has what */
bool jobq__redis_cluster_is_up(const rds_store *store);
/* What stands in the store's link goes to whoever has the keys. As converse in call.c. */
int jobq__redis_cluster_converse(rds_store *store, rds_value **values, size_t n);
int jobq__redis_cluster_address(rds_store *store, jobq_slice key, rds_address *out);
size_t jobq__redis_cluster_masters(const rds_store *store, rds_address *out, size_t most);
/* MOVED to somebody: true when the reply said so. */
bool jobq__redis_cluster_note(rds_store *store, const rds_value *value);

enum { RDS_SLOTS = 16384 };
int jobq__redis_slot(const char *key, size_t n);
/* The key of a command in Redis' protocol: the first word with an opening brace first. */
jobq_slice jobq__redis_key_of(const char *command, size_t n);
/* Cuts the next "host:port" off a list; brackets of IPv6 addresses go. False: no address. */
bool jobq__redis_next_address(const char **list, int default_port, rds_address *out);

/* Walks over the elements of a list; what is missing is 0 or empty. */
typedef struct {
    const rds_value *list;
    size_t at;
} rds_walk;
bool jobq__redis_more(const rds_walk *walk);
int64_t jobq__redis_int(rds_walk *walk);
jobq_slice jobq__redis_text(rds_walk *walk);
int64_t jobq__redis_time(rds_walk *walk); /* TIME's two numbers, in milliseconds */

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
    uint8_t noted; /* JOBQ_CANCEL_*, since it was handed out */
} rds_stored;
/* Fills the record from it; 0 or JOBQ_ENOMEM. Flags for a token are answered. */
int jobq__redis_read_job(const rds_stored *stored, bool keys_only, jobq_batch *out, jobq_record *r,
                         uint8_t *flags_out);
void jobq__redis_write_job(jobq__buf *out, const jobq_push *item);
/* The seven words of an item as scripts take them. */
enum { RDS_ITEM_WORDS = 7 };
void jobq__redis_add_item(rds_store *store, const jobq_push *item);
/* The words of an item that may replace what holds its key (admit.lua). */
void jobq__redis_add_replacing(rds_store *store, const jobq_push *item);
/* One with a guard, or one that replaces: its batch is a script's of its own. */
bool jobq__redis_is_special(const jobq_push *item);
void jobq__redis_ask_admit(rds_store *store, jobq_push *const *items, size_t n);
/* Values of a statement as words. */
void jobq__redis_add_params(rds_store *store, const jobq_statement *statement);
/* The time in a UUIDv7, -1 = it is none. */
int64_t jobq__redis_id_time(jobq_slice id);

/* ---- operations ------------------------------------------------------------------------------ */

int jobq__redis_schema(void *handle);
/* The version of the layout that an answer to GET {prefix}:schema tells. */
int64_t jobq__redis_read_version(const rds_value *value);
int64_t jobq__redis_number_of(const rds_value *value); /* 0 = none */
int jobq__redis_push(void *handle, jobq_push *items, size_t n);
int jobq__redis_exchange(void *handle, jobq_exchange *x);
int jobq__redis_renew(void *handle, jobq_renewal *r);
int jobq__redis_leave(void *handle, jobq_slice worker);
int jobq__redis_held(void *handle, jobq_slice worker, jobq_batch *out);
int jobq__redis_workers(void *handle, jobq_batch *out);
int jobq__redis_wait(void *handle, const jobq_wait *w);
void jobq__redis_news_free(rds_news *news);
rds_link *jobq__redis_spare_link(rds_store *store); /* of the wait for one job */
int jobq__redis_maintain(void *handle, jobq_maintenance *m);
int jobq__redis_find(void *handle, jobq_slice queue, jobq_slice id, jobq_batch *out);
int jobq__redis_list(void *handle, jobq_listing *l);
int jobq__redis_counts(void *handle, jobq_slice queue, jobq_counts *counts_out);
int jobq__redis_queues(void *handle, jobq_batch *out);
int jobq__redis_mend(void *handle, jobq_mending *m);
int jobq__redis_control(void *handle, jobq_control *c);
int jobq__redis_cancel(void *handle, jobq_cancelling *c);
int jobq__redis_clear_queue(void *handle, jobq_clearing *c);
int jobq__redis_capacity(void *handle, jobq_limit *l);
int jobq__redis_book(void *handle, const jobq_minute *minutes, size_t n);
int jobq__redis_minutes(void *handle, jobq_minutes *m);
int jobq__redis_audit(void *handle, jobq_audit *a);
int jobq__redis_examine(void *handle, jobq_examination *e);
int jobq__redis_effect(void *handle, jobq_effect *e);
int jobq__redis_await(rds_store *store, const jobq_wait *w); /* the end of one job */
int jobq__redis_now(void *handle, int64_t *now_ms_out);
int jobq__redis_read_clock(rds_store *store, int64_t *now_ms_out); /* once entered */

#endif
