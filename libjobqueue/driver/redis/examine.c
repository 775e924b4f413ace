/* SPDX-License-Identifier: MIT
 *
 * What the servers say of how they are set up (rule N5): each master on a connection of its own,
 * what the account may do, the sentinels.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/error.h"

enum { MASTERS = 64, ANSWERS = 4, NEARLY = 90 };

typedef struct {
    rds_store *store;
    jobq_examination *e;
    rds_address address;
    const char *info, *config[2]; /* appendfsync, min-replicas-to-write; NULL = may not be asked */
    bool in_cluster;
} server_view;

/* ---- what INFO says -------------------------------------------------------------------------- */

/* The value of a line, ended by its NUL; "" = it is not there. */
static const char *line_of(const server_view *v, const char *name)
{
    const jobq_slice value = jobq__redis_info(v->info, name);
    const char *copy = jobq__arena_copy(&v->store->arena, value.p, value.n);

    return copy ? copy : "";
}

static bool is(const server_view *v, const char *name, const char *value)
{
    return strcmp(line_of(v, name), value) == 0;
}

/* In a Cluster it is said which server is meant. */
#define SAY(v, grade, check, advice, fmt, ...)                                           \
    ((v)->in_cluster ? jobq__remark((v)->e, grade, check, advice, "%s:%d: " fmt,         \
                                    (v)->address.host, (v)->address.port, ##__VA_ARGS__) \
                     : jobq__remark((v)->e, grade, check, advice, fmt, ##__VA_ARGS__))
#define OK JOBQ_REMARK_OK
#define NOTE JOBQ_REMARK_NOTE
#define PROBLEM JOBQ_REMARK_PROBLEM

static int check_eviction(server_view *v)
{
    const char *policy = line_of(v, "maxmemory_policy");

    if (strcmp(policy, "noeviction") == 0)
        return SAY(v, OK, "eviction", NULL, "maxmemory-policy is noeviction");
    return SAY(v, PROBLEM, "eviction",
               "set maxmemory-policy noeviction: a push is then refused when memory is short, and "
               "nothing is lost",
               "maxmemory-policy is %s: the server throws jobs away when memory is short", policy);
}

static int check_memory(server_view *v)
{
    const int64_t most = strtoll(line_of(v, "maxmemory"), NULL, 10);
    const int64_t used = strtoll(line_of(v, "used_memory"), NULL, 10);
    const char *advice = "raise maxmemory, or find out what fills it";

    if (most == 0)
        return SAY(v, OK, "memory", NULL, "%" PRId64 " MB are used, maxmemory is not set",
                   used >> 20);
    if (used >= most)
        return SAY(v, PROBLEM, "memory", advice,
                   "maxmemory is reached (%" PRId64 " MB): pushes are refused", most >> 20);
    if (used >= most / 100 * NEARLY)
        return SAY(v, NOTE, "memory", advice,
                   "%" PRId64 " of %" PRId64 " MB (maxmemory) are used: soon pushes are refused",
                   used >> 20, most >> 20);
    return SAY(v, OK, "memory", NULL, "%" PRId64 " of %" PRId64 " MB (maxmemory) are used",
               used >> 20, most >> 20);
}

static int check_durability(server_view *v)
{
    const char *sync = v->config[0];

    if (!is(v, "aof_enabled", "1"))
        return SAY(
            v, PROBLEM, "durability", "set appendonly yes and appendfsync everysec (or always)",
            "there is no append-only file: a restart loses what came after the last snapshot");
    if (!is(v, "aof_last_write_status", "ok"))
        return SAY(v, PROBLEM, "durability", "look into the server's log: is the disk full?",
                   "the last write to the append-only file failed");
    if (!sync)
        return SAY(v, NOTE, "durability", "see to appendfsync everysec or always",
                   "there is an append-only file; when it is synced this account may not ask");
    if (strcmp(sync, "no") == 0)
        return SAY(v, NOTE, "durability", "set appendfsync everysec or always",
                   "appendfsync is no: a power cut loses whatever the system had not yet written");
    return SAY(v, OK, "durability", NULL, "append-only file, appendfsync %s%s", sync,
               strcmp(sync, "always") == 0 ? "" : " (a power cut may lose the last second)");
}

static int check_snapshots(server_view *v)
{
    if (is(v, "rdb_last_bgsave_status", "ok"))
        return 0;
    return SAY(v, PROBLEM, "snapshots", "look into the server's log: is the disk full?",
               "the last snapshot failed: with stop-writes-on-bgsave-error the server refuses "
               "whatever writes");
}

static int check_replicas(server_view *v)
{
    const long replicas = strtol(line_of(v, "connected_slaves"), NULL, 10);

    if (!is(v, "role", "master"))
        return SAY(v, PROBLEM, "replicas", "name the master, or use redis-sentinel://",
                   "the server is a replica: it takes no jobs");
    if (replicas == 0)
        return SAY(v, OK, "replicas", NULL, "no replica is connected");
    if (!v->config[1] || strcmp(v->config[1], "0") != 0)
        return SAY(v, OK, "replicas", NULL, "%ld connected, min-replicas-to-write %s", replicas,
                   v->config[1] ? v->config[1] : "unknown");
    return SAY(
        v, NOTE, "replicas", "min-replicas-to-write 1 makes a master that is cut off refuse jobs",
        "%ld connected, min-replicas-to-write 0: a failover loses what the new master had not "
        "received, and a master that is cut off goes on taking jobs that will be lost",
        replicas);
}

static int check_all(server_view *v)
{
    char name[64];
    int rc;

    jobq__redis_name_server(v->info, name, sizeof(name));
    rc = SAY(v, OK, "version", NULL, "%s", name);
    rc = rc ? rc : check_eviction(v);
    rc = rc ? rc : check_memory(v);
    rc = rc ? rc : check_durability(v);
    rc = rc ? rc : check_snapshots(v);
    return rc ? rc : check_replicas(v);
}

/* ---- one server ------------------------------------------------------------------------------ */

static void ask_config(rds_link *link, const char *name)
{
    jobq__redis_begin(link, 3);
    jobq__redis_words(link, "CONFIG");
    jobq__redis_words(link, "GET");
    jobq__redis_words(link, name);
}

static const char *config_of(const rds_value *value)
{
    return value->count == 2 && value->item[1]->p ? value->item[1]->p : NULL;
}

static int check_slots(const server_view *v, const rds_value *value)
{
    const char *state = value->p ? strstr(value->p, "cluster_state:") : NULL;

    if (!state || strncmp(state, "cluster_state:ok", 16) == 0)
        return state ? SAY(v, OK, "cluster", NULL, "cluster_state is ok") : 0;
    return SAY(v, PROBLEM, "cluster", "redis-cli cluster nodes shows which masters are missing",
               "cluster_state is fail: some slots have no server");
}

static int look_at(server_view *v, rds_link *link)
{
    const int64_t deadline = jobq__redis_connect_deadline(v->store);
    rds_value *values[ANSWERS] = {NULL};
    int rc;

    jobq__redis_begin(link, 1);
    jobq__redis_words(link, "INFO");
    ask_config(link, "appendfsync");
    ask_config(link, "min-replicas-to-write");
    jobq__redis_begin(link, 2);
    jobq__redis_words(link, v->in_cluster ? "CLUSTER" : "ECHO");
    jobq__redis_words(link, "INFO");
    rc = jobq__redis_send(link, deadline);
    rc = rc ? rc : jobq__redis_receive(link, ANSWERS, values, deadline);
    if (rc < 0)
        return rc;
    if (!values[0] || values[0]->type != RDS_TEXT)
        return SAY(v, NOTE, "version", "allow +info to let it be looked at",
                   "this account may not ask the server how it is set up");
    v->info = values[0]->p;
    v->config[0] = config_of(values[1]);
    v->config[1] = config_of(values[2]);
    rc = check_all(v);
    return rc || !v->in_cluster ? rc : check_slots(v, values[3]);
}

static int visit(server_view *v, const rds_address *address)
{
    const int64_t deadline = jobq__redis_connect_deadline(v->store);
    const jobq_slice none = {0};
    rds_link link = {.fd = -1};
    int rc;

    if (address)
        v->address = *address;
    rc = address ? jobq__redis_greet_at(v->store, &link, false, address, deadline)
                 : jobq__redis_greet(v->store, &link, false, none, deadline);
    rc = rc ? rc : look_at(v, &link);
    jobq__redis_free_link(&link);
    if (rc == 0 || rc == JOBQ_ENOMEM || !address)
        return rc;
    return SAY(v, PROBLEM, "cluster", "see why that server is not reached", "%s",
               jobq_error_message(jobq_error_last()));
}

static int visit_all(server_view *v)
{
    rds_address masters[MASTERS];
    size_t n;
    int rc = 0;

    if (!v->in_cluster)
        return visit(v, NULL);
    n = jobq__redis_cluster_masters(v->store, masters, MASTERS);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = visit(v, &masters[i]);
    return rc;
}

/* ---- the layout, rights, sentinels ----------------------------------------------------------- */

static int check_layout(server_view *v)
{
    rds_value *value;
    int64_t version;
    int rc;

    jobq__redis_ask(v->store, "GET", ":schema");
    rc = jobq__redis_call(v->store, &value, RDS_READS);
    if (rc < 0)
        return rc;
    version = jobq__redis_read_version(value);
    if (version == RDS_SCHEMA)
        return jobq__remark(v->e, OK, "schema", NULL, "layout version %d", RDS_SCHEMA);
    if (version > RDS_SCHEMA)
        return jobq__remark(v->e, PROBLEM, "schema", "update the library",
                            "the layout is version %" PRId64 ", this library knows up to %d",
                            version, RDS_SCHEMA);
    return jobq__remark(v->e, version ? PROBLEM : NOTE, "schema", "run `jobqueue migrate`",
                        version ? "the layout is version %" PRId64 ", this library needs %d"
                                : "there is no jobqueue under this prefix yet (version %" PRId64
                                  " of %d)",
                        version, RDS_SCHEMA);
}

static int check_rights(server_view *v)
{
    rds_store *store = v->store;
    rds_value *value;
    int rc;

    jobq__redis_script(store, RDS_SCRIPT_PROBE, NULL, 0, 0);
    rc = jobq__redis_round(store, &value, 1, RDS_READS);
    if (rc < 0)
        return rc;
    if (value->type == RDS_ERROR) {
        jobq__redis_refused(store, value);
        return jobq__remark(v->e, PROBLEM, "rights", "doc/stores/redis.md says what it needs", "%s",
                            jobq_error_message(jobq_error_last()));
    }
    if (value->count == 0)
        return jobq__remark(v->e, OK, "rights", NULL, "the account may do what it has to");
    jobq__buf_reset(&store->scratch);
    for (size_t i = 0; i < value->count; i++)
        jobq__buf_addf(&store->scratch, "%s%.*s", i ? ", " : "",
                       (int)strcspn(value->item[i]->p ? value->item[i]->p : "", ":"),
                       value->item[i]->p ? value->item[i]->p : "");
    jobq__buf_addc(&store->scratch, '\0');
    if (store->scratch.failed)
        return jobq__error_nomem();
    return jobq__remark(v->e, PROBLEM, "rights",
                        "allow the account +@read +@write +@scripting +@connection +@transaction "
                        "+info +time and ~{PREFIX*",
                        "the account may not do: %s", store->scratch.p);
}

static int check_sentinels(server_view *v)
{
    size_t asked = 0, silent = 0;
    char said[200];
    int rc = jobq__redis_ask_quorum(v->store->config, &asked, &silent, said, sizeof(said),
                                    jobq__redis_connect_deadline(v->store));

    if (silent > 0)
        jobq__remark(v->e, NOTE, "sentinel", "see why they are not reached",
                     "%zu of %zu sentinels of the dsn do not answer", silent, asked);
    if (rc == 0)
        return jobq__remark(v->e, OK, "sentinel", NULL, "%s", said);
    return jobq__remark(v->e, PROBLEM, "sentinel",
                        "start as many sentinels as the quorum needs: without it nobody takes over",
                        "%s", said);
}

int jobq__redis_examine(void *handle, jobq_examination *e)
{
    rds_store *store = handle;
    server_view v = {.store = store, .e = e, .in_cluster = store->cluster != NULL};
    int rc = jobq__redis_ready(store);

    rc = rc ? rc : check_layout(&v);
    rc = rc ? rc : visit_all(&v);
    rc = rc ? rc : check_rights(&v);
    return rc || !store->sentinel ? rc : check_sentinels(&v);
}
