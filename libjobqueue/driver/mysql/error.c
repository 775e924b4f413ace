/* SPDX-License-Identifier: MIT
 *
 * What the server's and the client library's error numbers mean for us: one table.
 */
#include <string.h>

#include "driver/mysql/mysql.h"
#include "util/error.h"

/* What becomes of the connection, and of the call. */
enum {
    KEEP = 0,
    AGAIN = 1,  /* rolled back; the same once more may well go through */
    BROKEN = 2, /* the connection is of no more use */
    LOST = 4    /* the answer was lost on the way: what was sent may have been done */
};

typedef struct {
    unsigned int number;
    int code, flags, effect;
    const char *hint; /* NULL: the server's words suffice */
} meaning;

static const meaning meanings[] = {
    /* refused for good */
    {1044, JOBQ_ECONF, JOBQ__FATAL, KEEP, NULL}, /* no right to the database */
    {1045, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL},
    {1049, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL}, /* unknown database */
    {1054, JOBQ_ECONF, JOBQ__FATAL, KEEP, "the tables are not those this library made"},
    {1064, JOBQ_ECONF, JOBQ__FATAL, KEEP, "the server must be MariaDB 10.6 or MySQL 8, or newer"},
    {1130, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL}, /* host not allowed */
    {1142, JOBQ_ECONF, JOBQ__FATAL, KEEP, NULL},   /* no right to the table */
    {1143, JOBQ_ECONF, JOBQ__FATAL, KEEP, NULL},
    {MYSQL_NO_TABLE, JOBQ_ECONF, JOBQ__FATAL, BROKEN, "run `jobqueue migrate`, or allow migrate"},
    {1227, JOBQ_ECONF, JOBQ__FATAL, KEEP, NULL}, /* needs a privilege */
    {1251, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL},
    {1286, JOBQ_ECONF, JOBQ__FATAL, KEEP, "the server must have InnoDB"},
    {1524, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL}, /* authentication plugin */
    {1665, JOBQ_ECONF, JOBQ__FATAL, KEEP, "set binlog_format to ROW or MIXED"},
    {1698, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL},
    {1820, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL}, /* password expired */
    {1862, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL},
    {2054, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL},
    {2058, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL},
    {2059, JOBQ_ECONF, JOBQ__FATAL, BROKEN, NULL}, /* authentication plugin of the client */
    {3159, JOBQ_ECONF, JOBQ__FATAL, BROKEN,
     "the server takes encrypted connections only: add "
     "tls=on to the dsn"},
    /* not now */
    {1040, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL}, /* too many connections */
    {1129, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL}, /* host blocked */
    {1203, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL},
    {1226, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL}, /* the user's limit */
    {2002, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL},
    {2003, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL},
    {2005, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL}, /* unknown host */
    {2012, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL},
    {2026, JOBQ_ECONNECT, JOBQ__RETRYABLE, BROKEN, NULL}, /* TLS */
    {1461, JOBQ_EBUSY, JOBQ__RETRYABLE, BROKEN, NULL},    /* max_prepared_stmt_count */
    {1020, JOBQ_EBUSY, JOBQ__RETRYABLE, AGAIN, NULL},
    {MYSQL_LOCK_WAIT, JOBQ_EBUSY, JOBQ__RETRYABLE, AGAIN, NULL}, /* lock wait timeout */
    {1213, JOBQ_EBUSY, JOBQ__RETRYABLE, AGAIN, NULL}, /* deadlock; Galera: certification failed */
    {1615, JOBQ_EBUSY, JOBQ__RETRYABLE, BROKEN | AGAIN, NULL}, /* prepare again */
    {1637, JOBQ_EBUSY, JOBQ__RETRYABLE, KEEP, NULL},
    {1243, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN | AGAIN, NULL}, /* unknown statement */
    /* broken */
    {1053, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL}, /* shutdown */
    {1080, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1152, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1158, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1159, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1160, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1161, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1184, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL},
    {1927, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL}, /* killed */
    {4031, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL}, /* idle too long */
    {2006, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN, NULL}, /* could not be sent */
    {2013, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN | LOST, NULL},
    {2014, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN | LOST, NULL},
    {2027, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN | LOST, NULL}, /* malformed packet */
    {2055, JOBQ_EIO, JOBQ__RETRYABLE, BROKEN | LOST, NULL},
    /* full, read-only, not in the cluster: nothing was changed */
    {1021, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL}, /* disk full */
    {1030, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL},
    {1047, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL},
    {1114, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL}, /* table full */
    {1290, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL}, /* read_only */
    {1317, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL}, /* KILL QUERY */
    {1792, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL},
    {1836, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL},
    {1969, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL}, /* max_statement_time */
    /* a value */
    {MYSQL_DUPLICATE, JOBQ_EEXISTS, 0, KEEP, NULL},
    {1118, JOBQ_EINVAL, 0, KEEP, NULL},
    {1264, JOBQ_EINVAL, 0, KEEP, NULL},
    {1292, JOBQ_EINVAL, 0, KEEP, NULL},
    {1301, JOBQ_ELIMIT, 0, KEEP, NULL},
    {1366, JOBQ_EINVAL, 0, KEEP, NULL},
    {1406, JOBQ_EINVAL, 0, KEEP, NULL},
    {1690, JOBQ_EINVAL, 0, KEEP, NULL},
    {1153, JOBQ_ELIMIT, 0, BROKEN, "max_allowed_packet is too small"},
    {2020, JOBQ_ELIMIT, 0, BROKEN, "max_allowed_packet is too small"},
    {2008, JOBQ_ENOMEM, 0, BROKEN, NULL},
};
static bool is_known(unsigned int number)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].number == number)
            return true;
    return false;
}

static const meaning unknown = {0, JOBQ_EIO, JOBQ__RETRYABLE, KEEP, NULL};

/* A certificate does not become right by waiting. */
static bool is_tls_settled(const char *text)
{
    static const char *const words[] = {"certif", "verif", "No such file", "does not support"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

static meaning look_up(unsigned int number, const char *text)
{
    meaning found = unknown;

    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].number == number)
            found = meanings[i];
    if (number == 2026 && is_tls_settled(text)) {
        found.code = JOBQ_ECONF;
        found.flags = JOBQ__FATAL;
    }
    return found;
}

static int say_timeout(const mysql_store *store)
{
    if (!store->db)
        return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "mysql", 0,
                                      "mysql: no connection within %lld ms",
                                      (long long)store->config->connect_timeout_ms);
    if (store->in_doubt && store->doubtful)
        return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "mysql", 0,
                                      "mysql: the server did not answer in time: it may have "
                                      "been stored or not");
    return jobq__error_set_driver(JOBQ_ETIMEOUT, JOBQ__RETRYABLE, "mysql", 0,
                                  "mysql: the server did not answer within %lld ms",
                                  (long long)store->config->read_timeout_ms);
}

static int say_lost(unsigned int number, const char *text)
{
    return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "mysql", number,
                                  "mysql: the answer was lost (%s): it may have been stored or not",
                                  text);
}

int jobq__mysql_say_lost(mysql_store *store)
{
    struct jobq_error saved;

    if (!store->in_doubt || !store->doubtful)
        return jobq__error_code();
    jobq__error_save(&saved);
    store->suspect = true;
    return say_lost((unsigned int)jobq_error_native(&saved), jobq_error_message(&saved));
}

int jobq__mysql_fail(mysql_store *store, unsigned int number, const char *text)
{
    meaning m = look_up(number, text);

    store->transient = (m.effect & AGAIN) && !store->timed_out;
    store->suspect |= (m.effect & BROKEN) || store->timed_out;
    if (store->timed_out)
        return say_timeout(store);
    if ((m.effect & LOST) && store->in_doubt && store->doubtful)
        return say_lost(number, text);
    return jobq__error_set_driver(m.code, m.flags, "mysql", number, "mysql: %s%s%s (%u)", text,
                                  m.hint ? ": " : "", m.hint ? m.hint : "", number);
}

/* Known, and not about what was said: any statement could have met it. */
static bool is_trouble(unsigned int number)
{
    const meaning m = look_up(number, "");

    return is_known(number) && m.code != JOBQ_ECONF && m.code != JOBQ_EEXISTS &&
           m.code != JOBQ_EINVAL && m.code != JOBQ_ELIMIT;
}

int jobq__mysql_refuse_foreign(mysql_store *store, const char *what, unsigned int number,
                               const char *text)
{
    if (store->timed_out || number < 1000 || (number >= 2000 && number < 3000) ||
        is_trouble(number))
        return jobq__error_code();
    store->suspect = false;
    return jobq__error_set_driver(JOBQ_EINVAL, 0, "mysql", number, "mysql: the %s is refused: %s",
                                  what, text);
}
