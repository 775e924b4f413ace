/* SPDX-License-Identifier: MIT
 *
 * See cluster.h.
 */
#include "harness/cluster.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/stores.h"

enum { SLOTS = 16384, TRIES = 600 };

const char *cluster_tell(const cluster *c, size_t node, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return store_admin(c->nodes[node], STORE_REDIS, text);
}

static bool is_well(const cluster *c, size_t node)
{
    const char *info = cluster_tell(c, node, "cluster info");

    return strstr(info, "cluster_state:ok") && strstr(info, "cluster_known_nodes:3") &&
           strstr(info, "cluster_slots_ok:16384");
}

void cluster_await(const cluster *c)
{
    for (size_t i = 0; i < CLUSTER_MASTERS; i++) {
        int tries = 0;

        while (!is_well(c, i)) {
            if (++tries > TRIES)
                fail_msg("the cluster does not come together");
            poll(NULL, 0, 50);
        }
    }
}

/* An equal share of the slots each. */
static void introduce(const cluster *c)
{
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        cluster_tell(c, (size_t)i, "cluster addslotsrange %d %d", i * SLOTS / CLUSTER_MASTERS,
                     (i + 1) * SLOTS / CLUSTER_MASTERS - 1);
        cluster_tell(c, (size_t)i, "cluster set-config-epoch %d", i + 1);
    }
    for (size_t i = 1; i < CLUSTER_MASTERS; i++)
        cluster_tell(c, 0, "cluster meet 127.0.0.1 %d", server_port(c->nodes[i]));
}

void cluster_start(cluster *c, bool clock, int node_timeout_ms, const char *arguments)
{
    char text[256];
    int at = snprintf(c->dsn, sizeof(c->dsn), "redis-cluster://");

    snprintf(text, sizeof(text), "--cluster-enabled yes --cluster-node-timeout %d %s",
             node_timeout_ms, arguments);
    for (size_t i = 0; i < CLUSTER_MASTERS; i++) {
        c->nodes[i] = server_start_with("redis", clock, text);
        at += snprintf(c->dsn + at, sizeof(c->dsn) - (size_t)at, "%s127.0.0.1:%d", i ? "," : "",
                       server_port(c->nodes[i]));
    }
    introduce(c);
    cluster_await(c);
}

void cluster_remove(cluster *c)
{
    for (size_t i = 0; i < CLUSTER_MASTERS; i++)
        server_remove(c->nodes[i]);
}

void cluster_shift(cluster *c, int64_t ms)
{
    for (size_t i = 0; i < CLUSTER_MASTERS; i++)
        server_shift(c->nodes[i], ms);
}

/* ---- slots ----------------------------------------------------------------------------------- */

int cluster_slot(const cluster *c, const char *key)
{
    return atoi(cluster_tell(c, 0, "cluster keyslot '%s'", key));
}

static void id_of(const cluster *c, size_t node, char *out, size_t size)
{
    snprintf(out, size, "%s", cluster_tell(c, node, "cluster myid"));
    out[strcspn(out, "\n")] = '\0';
}

/* Its own answer, not a redirection: "(error) MOVED" of the others. */
size_t cluster_owner(const cluster *c, int slot)
{
    for (size_t i = 0; i < CLUSTER_MASTERS; i++) {
        char id[64];
        const char *line;
        int first, last;

        id_of(c, i, id, sizeof(id));
        line = strstr(cluster_tell(c, i, "cluster nodes"), "myself");
        line = line ? strstr(line, "connected ") : NULL;
        for (line = line ? line + strlen("connected ") : NULL; line && *line && *line != '\n';) {
            char *end;

            first = last = (int)strtol(line, &end, 10);
            if (*end == '-')
                last = (int)strtol(end + 1, &end, 10);
            if (end == line)
                break;
            if (slot >= first && slot <= last)
                return i;
            line = *end == ' ' ? end + 1 : end;
        }
    }
    fail_msg("nobody has the slot %d", slot);
    return 0;
}

void cluster_announce(const cluster *c, int slot, size_t from, size_t to)
{
    char id[64];

    id_of(c, from, id, sizeof(id));
    cluster_tell(c, to, "cluster setslot %d importing %s", slot, id);
    id_of(c, to, id, sizeof(id));
    cluster_tell(c, from, "cluster setslot %d migrating %s", slot, id);
}

int cluster_send_keys(const cluster *c, int slot, size_t from, size_t to, int most)
{
    char keys[4096];
    int sent = 0;

    snprintf(keys, sizeof(keys), "%s",
             cluster_tell(c, from, "cluster getkeysinslot %d %d", slot, most));
    for (char *key = strtok(keys, "\n"); key; key = strtok(NULL, "\n")) {
        const char *answer;

        if (!*key)
            continue;
        answer = cluster_tell(c, from, "migrate 127.0.0.1 %d '%s' 0 5000",
                              server_port(c->nodes[to]), key);
        if (strncmp(answer, "OK", 2) != 0 && strncmp(answer, "NOKEY", 5) != 0)
            fail_msg("migrate %s: %s", key, answer);
        sent++;
    }
    return sent;
}

void cluster_conclude(const cluster *c, int slot, size_t to)
{
    char id[64];

    id_of(c, to, id, sizeof(id));
    cluster_tell(c, to, "cluster setslot %d node %s", slot, id);
    for (size_t i = 0; i < CLUSTER_MASTERS; i++)
        if (i != to)
            cluster_tell(c, i, "cluster setslot %d node %s", slot, id);
}
