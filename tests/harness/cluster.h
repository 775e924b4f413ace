/* SPDX-License-Identifier: MIT
 *
 * A Redis Cluster for tests: masters of harness/server.h that share the slots.
 */
#ifndef JOBQ_TESTS_CLUSTER_H
#define JOBQ_TESTS_CLUSTER_H

#include "harness/server.h"

enum { CLUSTER_MASTERS = 3 };

typedef struct {
    server *nodes[CLUSTER_MASTERS];
    char dsn[200]; /* "redis-cluster://127.0.0.1:23309,127.0.0.1:..." */
} cluster;

/* node_timeout_ms: after how long a silent node counts as failed. With a clock of its own (see
 * server_start) that must be longer than any shift. `arguments` go to each server. */
void cluster_start(cluster *c, bool clock, int node_timeout_ms, const char *arguments);
void cluster_remove(cluster *c);
void cluster_shift(cluster *c, int64_t ms);
/* Waits until each node says that all is well. */
void cluster_await(const cluster *c);

/* Has a node's own client execute a command; what it printed, as store_admin. */
const char *cluster_tell(const cluster *c, size_t node, const char *fmt, ...) JOBQ_PRINTF(3, 4);
int cluster_slot(const cluster *c, const char *key);
size_t cluster_owner(const cluster *c, int slot); /* of the slot: place of the node */
/* Moving a slot in steps: it is announced, its keys are sent (at most so many; the rest stays), and
 * everybody hears who has it. */
void cluster_announce(const cluster *c, int slot, size_t from, size_t to);
int cluster_send_keys(const cluster *c, int slot, size_t from, size_t to, int most); /* how many */
void cluster_conclude(const cluster *c, int slot, size_t to);

#endif
