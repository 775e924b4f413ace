/* SPDX-License-Identifier: MIT
 *
 * A Redis Cluster: who has which slot, a connection to each master in use, and round trips that
 * send every command to whoever has its key. Commands are gathered as for one server. A command
 * that was answered with MOVED, ASK, TRYAGAIN or NOSCRIPT has surely not been executed: it alone is
 * sent again. Everything else that breaks is an outage.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

enum { CLUSTER_PORT = 6379, PATIENCE_MS = 1000, AGAIN_MS = 20, AT_ONCE = 5, NOBODY = 0xffff };

typedef struct {
    rds_address address;
    rds_link link;
    bool master;    /* it has slots */
    bool lacking;   /* scripts: they are loaded with the next commands */
    size_t replies; /* awaited in this trip */
    rds_value **values;
} node;

struct rds_cluster {
    node **nodes;
    size_t count;
    uint16_t owner[RDS_SLOTS]; /* place of the node, NOBODY */
    bool known;                /* the table is there, and nothing says that it is out of date */
};

/* A command that has to be answered yet. */
typedef struct {
    size_t command;
    node *asked; /* ASK: by this one, once; NULL = by the slot's owner */
    node *sent_to;
    size_t reply; /* its place among the replies of that node */
} errand;

static int refuse(const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0, "redis: %s", what);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static node *find_node(rds_cluster *c, const rds_address *address)
{
    node **nodes, *one;

    for (size_t i = 0; i < c->count; i++)
        if (c->nodes[i]->address.port == address->port &&
            strcmp(c->nodes[i]->address.host, address->host) == 0)
            return c->nodes[i];
    one = c->count < NOBODY ? jobq__zalloc(sizeof(*one)) : NULL;
    nodes = one ? jobq__realloc(c->nodes, (c->count + 1) * sizeof(node *)) : NULL;
    if (!nodes) {
        jobq__free(one);
        return NULL;
    }
    one->address = *address;
    one->link.fd = -1;
    c->nodes = nodes;
    c->nodes[c->count++] = one;
    return one;
}

static size_t place_of(const rds_cluster *c, const node *one)
{
    size_t i = 0;

    while (c->nodes[i] != one)
        i++;
    return i;
}

static int connect_node(rds_store *store, node *one, int64_t deadline_ms)
{
    if (one->link.fd >= 0 && jobq__redis_is_stale(&one->link))
        jobq__redis_hang_up(&one->link);
    if (one->link.fd >= 0)
        return 0;
    return jobq__redis_greet_at(store, &one->link, true, &one->address, deadline_ms);
}

static int refuse_seeds(void)
{
    return refuse("the dsn names no servers (allowed: redis-cluster://host1:7000,host2:7001)");
}

/* Seeds are nodes that may have no slots. */
static int add_seeds(rds_cluster *c, const jobq_driver_config *config)
{
    const char *list = config->host.n ? config->host.p : "";
    rds_address address = {.port = config->port ? config->port : CLUSTER_PORT};

    if (!*list)
        return refuse_seeds();
    if (!memchr(list, ',', config->host.n)) { /* a single host has lost its port to the config */
        if (config->host.n >= sizeof(address.host))
            return refuse_seeds();
        memcpy(address.host, list, config->host.n + 1);
        return find_node(c, &address) ? 0 : jobq__error_nomem();
    }
    while (*list) {
        if (!jobq__redis_next_address(&list, CLUSTER_PORT, &address))
            return refuse_seeds();
        if (!find_node(c, &address))
            return jobq__error_nomem();
    }
    return 0;
}

int jobq__redis_cluster_open(rds_store *store)
{
    store->cluster = jobq__zalloc(sizeof(*store->cluster));
    if (!store->cluster)
        return jobq__error_nomem();
    memset(store->cluster->owner, 0xff, sizeof(store->cluster->owner));
    return add_seeds(store->cluster, store->config);
}

void jobq__redis_cluster_free(rds_cluster *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        jobq__redis_free_link(&c->nodes[i]->link);
        jobq__free(c->nodes[i]);
    }
    jobq__free(c->nodes);
    jobq__free(c);
}

void jobq__redis_cluster_drop(rds_store *store)
{
    rds_cluster *c = store->cluster;

    for (size_t i = 0; i < c->count; i++)
        jobq__redis_hang_up(&c->nodes[i]->link);
    c->known = false;
}

bool jobq__redis_cluster_is_up(const rds_store *store)
{
    return store->cluster->known;
}

/* ---- the table of slots ---------------------------------------------------------------------- */

/* [first, last, [host, port, ...], replicas...]; without a host it is the one that was asked. */
static int read_range(rds_cluster *c, const node *asked, const rds_value *range)
{
    rds_walk walk = {range, 0}, server;
    int64_t first = jobq__redis_int(&walk), last = jobq__redis_int(&walk);
    rds_address address = asked->address;
    jobq_slice host;
    node *one;

    if (range->count < 3 || first < 0 || last >= RDS_SLOTS)
        return JOBQ_EPROTO;
    server = (rds_walk){range->item[2], 0};
    host = jobq__redis_text(&server);
    address.port = (int)jobq__redis_int(&server);
    if (host.n >= sizeof(address.host))
        return JOBQ_EPROTO;
    if (host.n) {
        memcpy(address.host, host.p, host.n);
        address.host[host.n] = '\0';
    }
    one = find_node(c, &address);
    if (!one)
        return jobq__error_nomem();
    one->master = true;
    for (int64_t slot = first; slot <= last; slot++)
        c->owner[slot] = (uint16_t)place_of(c, one);
    return 0;
}

static int read_table(rds_store *store, const node *asked, const rds_value *value)
{
    rds_cluster *c = store->cluster;
    int rc = 0;

    if (value->type == RDS_ERROR)
        return jobq__redis_refused(store, value);
    memset(c->owner, 0xff, sizeof(c->owner));
    for (size_t i = 0; i < c->count; i++)
        c->nodes[i]->master = false;
    for (size_t i = 0; i < value->count && rc == 0; i++)
        rc = read_range(c, asked, value->item[i]);
    if (rc == JOBQ_EPROTO)
        return jobq__redis_nonsense(store);
    c->known = rc == 0;
    return rc;
}

static int ask_table(rds_store *store, node *one, int64_t deadline_ms)
{
    rds_link *link = &one->link;
    rds_value *value;
    int rc = connect_node(store, one, deadline_ms);

    if (rc < 0)
        return rc;
    jobq__arena_reset(&link->arena);
    jobq__redis_begin(link, 2);
    jobq__redis_words(link, "CLUSTER");
    jobq__redis_words(link, "SLOTS");
    rc = jobq__redis_send(link, deadline_ms);
    rc = rc ? rc : jobq__redis_receive(link, 1, &value, deadline_ms);
    rc = rc ? rc : read_table(store, one, value);
    jobq__redis_clear(link);
    if (rc < 0)
        jobq__redis_hang_up(link);
    return rc;
}

/* Whoever answers first; one that is silent must not use up the time of the others. A refusal that
 * will never end is everybody's. */
static int load_table(rds_store *store)
{
    rds_cluster *c = store->cluster;
    int64_t deadline = jobq__redis_connect_deadline(store);
    int rc = JOBQ_ECONNECT;

    for (size_t i = 0; i < c->count && rc != 0; i++) {
        int64_t patience = jobq__clock_mono_ms() + PATIENCE_MS;

        rc = ask_table(store, c->nodes[i], patience < deadline ? patience : deadline);
        if (rc == JOBQ_ECONF || rc == JOBQ_ENOMEM)
            return rc;
    }
    return rc;
}

int jobq__redis_cluster_ready(rds_store *store, bool all)
{
    rds_cluster *c = store->cluster;
    int64_t deadline = jobq__redis_connect_deadline(store);
    int rc = c->known ? 0 : load_table(store);

    for (size_t i = 0; i < c->count && all && rc == 0; i++)
        if (c->nodes[i]->master)
            rc = connect_node(store, c->nodes[i], deadline);
    if (rc < 0)
        c->known = false; /* another one may have its slots by now */
    return rc;
}

size_t jobq__redis_cluster_masters(const rds_store *store, rds_address *out, size_t most)
{
    const rds_cluster *c = store->cluster;
    size_t n = 0;

    for (size_t i = 0; i < c->count && n < most; i++)
        if (c->nodes[i]->master)
            out[n++] = c->nodes[i]->address;
    return n;
}

static node *owner_of(rds_store *store, jobq_slice key)
{
    rds_cluster *c = store->cluster;
    size_t place;

    if (!key.p) /* of no slot: whoever has the prefix's */
        key = jobq__slice(store->base.p, store->base.n);
    place = c->owner[jobq__redis_slot(key.p, key.n)];
    return place == NOBODY ? NULL : c->nodes[place];
}

static int refuse_slot(rds_store *store, jobq_slice key)
{
    store->cluster->known = false;
    return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", 0,
                                  "redis: no server of the Cluster has the slot of %.*s",
                                  (int)key.n, (const char *)key.p);
}

int jobq__redis_cluster_address(rds_store *store, jobq_slice key, rds_address *out)
{
    const node *one;
    int rc = store->cluster->known ? 0 : load_table(store);

    if (rc < 0)
        return rc;
    one = owner_of(store, key);
    if (!one)
        return refuse_slot(store, key);
    *out = one->address;
    return 0;
}

/* ---- what servers say about slots ------------------------------------------------------------ */

static bool says(const rds_value *value, const char *word)
{
    return value->type == RDS_ERROR && strncmp(value->p, word, strlen(word)) == 0;
}

/* "MOVED 3999 127.0.0.1:6381"; without a host it is the one that says so. NULL: not understood. */
static node *read_redirect(rds_cluster *c, const node *teller, const rds_value *value,
                           long *slot_out)
{
    const char *number = strchr(value->p, ' ');
    const char *place = number ? strchr(number + 1, ' ') : NULL;
    const char *colon = place ? strrchr(place, ':') : NULL;
    rds_address address = teller->address;

    if (!colon)
        return NULL;
    *slot_out = strtol(number, NULL, 10);
    address.port = (int)strtol(colon + 1, NULL, 10);
    place++;
    if (colon > place && (size_t)(colon - place) < sizeof(address.host)) {
        memcpy(address.host, place, (size_t)(colon - place));
        address.host[colon - place] = '\0';
    }
    return *slot_out < 0 || *slot_out >= RDS_SLOTS || address.port < 1 ? NULL
                                                                       : find_node(c, &address);
}

/* False: the answer stands. */
static bool is_sent_again(rds_store *store, errand *e, const rds_value *value)
{
    rds_cluster *c = store->cluster;
    long slot = 0;
    node *to;

    e->asked = NULL;
    if (says(value, "NOSCRIPT")) {
        e->sent_to->lacking = true;
        return true;
    }
    if (says(value, "TRYAGAIN"))
        return true;
    if (!says(value, "MOVED ") && !says(value, "ASK "))
        return false;
    to = read_redirect(c, e->sent_to, value, &slot);
    if (!to)
        return false;
    if (says(value, "ASK "))
        e->asked = to;
    else
        c->owner[slot] = (uint16_t)place_of(c, to);
    return true;
}

/* What a reader that waits was told. */
bool jobq__redis_cluster_note(rds_store *store, const rds_value *value)
{
    if (!store->cluster || (!says(value, "MOVED ") && !says(value, "ASK ") &&
                            !says(value, "TRYAGAIN") && !says(value, "CLUSTERDOWN")))
        return false;
    store->cluster->known = false;
    return true;
}

/* ---- round trips ----------------------------------------------------------------------------- */

static jobq_slice command_text(const rds_link *link, size_t i)
{
    size_t end = i + 1 < link->commands ? link->starts[i + 1] : link->out.n;

    return jobq__slice(link->out.p + link->starts[i], end - link->starts[i]);
}

/* Nothing is sent before everybody who is needed is there. */
static int find_servers(rds_store *store, errand *errands, size_t n)
{
    int64_t deadline = jobq__redis_connect_deadline(store);
    int rc = 0;

    for (size_t i = 0; i < store->cluster->count; i++)
        store->cluster->nodes[i]->replies = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        jobq_slice text = command_text(&store->link, errands[i].command);
        jobq_slice key = jobq__redis_key_of(text.p, text.n);
        node *to = errands[i].asked ? errands[i].asked : owner_of(store, key);

        errands[i].sent_to = to;
        if (!to)
            return refuse_slot(store, key);
        if (to->replies++ == 0)
            rc = connect_node(store, to, deadline);
    }
    return rc;
}

static void add_scripts(node *to)
{
    for (size_t i = 0; i < RDS_SCRIPTS; i++) {
        jobq__redis_begin(&to->link, 3);
        jobq__redis_words(&to->link, "SCRIPT");
        jobq__redis_words(&to->link, "LOAD");
        jobq__redis_word(&to->link, jobq__redis_scripts[i].text, jobq__redis_scripts[i].n);
    }
    to->replies += RDS_SCRIPTS;
    to->lacking = false;
}

static void hand_over(rds_store *store, errand *e)
{
    const jobq_slice text = command_text(&store->link, e->command);
    node *to = e->sent_to;

    if (to->lacking)
        add_scripts(to);
    if (e->asked) {
        jobq__redis_begin(&to->link, 1);
        jobq__redis_words(&to->link, "ASKING");
        to->replies++;
    }
    e->reply = to->replies++;
    jobq__buf_add(&to->link.out, text.p, text.n);
}

static int receive_all(rds_store *store, int64_t deadline_ms)
{
    rds_cluster *c = store->cluster;
    int rc = 0;

    for (size_t i = 0; i < c->count && rc == 0; i++) {
        node *one = c->nodes[i];

        if (one->replies == 0)
            continue;
        one->values = jobq__arena_alloc(&store->arena, one->replies * sizeof(rds_value *));
        if (!one->values)
            return jobq__error_nomem();
        rc = jobq__redis_receive(&one->link, one->replies, one->values, deadline_ms);
        jobq__redis_clear(&one->link);
    }
    return rc;
}

static int trip(rds_store *store, errand *errands, size_t n, int64_t deadline_ms)
{
    rds_cluster *c = store->cluster;
    int rc = find_servers(store, errands, n);

    for (size_t i = 0; i < c->count && rc == 0; i++) {
        c->nodes[i]->replies = 0;
        jobq__redis_clear(&c->nodes[i]->link);
    }
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        hand_over(store, &errands[i]);
    store->link.out_sent = store->link.out.n; /* from now on it may have been done */
    for (size_t i = 0; i < c->count && rc == 0; i++)
        if (c->nodes[i]->replies)
            rc = jobq__redis_send(&c->nodes[i]->link, deadline_ms);
    return rc ? rc : receive_all(store, deadline_ms);
}

/* Keeps what was answered; how many have to be sent again. */
static size_t sort_out(rds_store *store, errand *errands, size_t n, rds_value **values)
{
    size_t again = 0;

    for (size_t i = 0; i < n; i++) {
        errand e = errands[i];

        values[e.command] = e.sent_to->values[e.reply];
        if (is_sent_again(store, &e, values[e.command]))
            errands[again++] = e;
    }
    return again;
}

int jobq__redis_cluster_converse(rds_store *store, rds_value **values, size_t n)
{
    rds_cluster *c = store->cluster;
    int64_t deadline = jobq__clock_mono_ms() + store->config->read_timeout_ms;
    errand *errands = jobq__arena_alloc(&store->arena, n * sizeof(*errands));
    int rc = 0;

    if (!errands || store->link.out.failed)
        return jobq__error_nomem();
    for (size_t i = 0; i < c->count; i++)
        jobq__arena_reset(&c->nodes[i]->link.arena);
    for (size_t i = 0; i < n; i++)
        errands[i] = (errand){.command = i};
    for (int round = 0; n > 0; round++) {
        rc = trip(store, errands, n, deadline);
        if (rc < 0)
            return rc;
        n = sort_out(store, errands, n, values);
        if (n > 0 && jobq__clock_mono_ms() >= deadline)
            return 0; /* what was said last is the answer */
        if (n > 0 && round >= AT_ONCE)
            poll(NULL, 0, AGAIN_MS);
    }
    return rc;
}
