/* SPDX-License-Identifier: MIT
 *
 * The DSN's options as the client library's: socket, TLS.
 */
#include <strings.h>

#include "driver/mysql/mysql.h"
#include "util/error.h"

const char *const jobq__mysql_own[] = {"socket", "tls", NULL};

bool jobq__mysql_takes(const char *name)
{
    for (size_t i = 0; jobq__mysql_own[i]; i++)
        if (strcmp(name, jobq__mysql_own[i]) == 0)
            return true;
    return false;
}

/* Without a driver's name: a mistake of the caller, not an answer of the server. */
static int refuse(const char *what)
{
    return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, NULL, 0,
                                  "mysql: %s (the dsn is "
                                  "mysql://USER:PASSWORD@HOST:PORT/DATABASE; options of its own: "
                                  "socket tls)",
                                  what);
}

static int read_switch(const char *value, bool *to)
{
    static const char *const words[] = {"off", "on", "false", "true", "no", "yes", "0", "1"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(value, words[i]) == 0) {
            *to = i % 2 == 1;
            return 0;
        }
    return refuse("the option tls takes on or off");
}

/* A certificate given asks for TLS; an explicit tls wins. */
int jobq__mysql_read_options(mysql_store *store)
{
    const jobq_driver_config *config = store->config;
    int rc = 0;

    store->tls = config->ca || config->cert || config->key;
    for (size_t i = 0; i < config->extra_count && rc == 0; i++)
        if (strcmp(config->extra[i].name, "socket") == 0)
            store->socket = config->extra[i].value;
        else
            rc = read_switch(config->extra[i].value, &store->tls);
    store->database = config->path.n ? config->path.p : "";
    store->database += store->database[0] == '/'; /* mysql:///name?socket=... */
    if (rc == 0 && !store->database[0])
        rc = refuse("the dsn names no database");
    if (rc == 0 && config->host.p && memchr(config->host.p, ',', config->host.n))
        rc = refuse("the dsn names several hosts, this store takes one");
    return rc;
}

int jobq__mysql_apply_options(const mysql_store *store, MYSQL *db)
{
    const jobq_driver_config *config = store->config;
    const my_bool on = 1, verify = config->verify;
    const unsigned int protocol = store->socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    const unsigned int never = 0;
    int failed = mysql_options(db, MYSQL_OPT_NONBLOCK, 0);

    failed |= mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    failed |= mysql_options(db, MYSQL_OPT_LOCAL_INFILE, &never);
    failed |= mysql_options(db, MYSQL_OPT_CONNECT_ATTR_RESET, NULL);
    failed |= mysql_options4(db, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "jobqueue");
    /* Not for "localhost" alone: its socket is where the client library expects it. */
    if (store->socket || config->port || !config->host.p ||
        strcmp(config->host.p, "localhost") != 0)
        failed |= mysql_options(db, MYSQL_OPT_PROTOCOL, &protocol);
    if (store->tls) {
        failed |= mysql_ssl_set(db, config->key, config->cert, config->ca, NULL, NULL);
        failed |= mysql_options(db, MYSQL_OPT_SSL_ENFORCE, &on);
        failed |= mysql_options(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    }
    return failed ? jobq__error_nomem() : 0;
}
