/* SPDX-License-Identifier: MIT
 *
 * What a refusal means: by SQLSTATE, from the table below. Messages are the server's own, one line;
 * libpq puts no password into them.
 */
#include <stdio.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"
#include "util/error.h"

enum { R = JOBQ__RETRYABLE, F = JOBQ__FATAL };

/* The longest prefix wins: a whole state stands before its class. `drop`: the connection is of no
 * more use. */
static const struct {
    const char *state;
    int code, flags;
    bool drop;
} verdicts[] = {
    {"25006", JOBQ_EIO, R, true}, /* read only: perhaps a former primary, look for the new one */
    {"42501", JOBQ_ECONF, F, false},
    {"42P01", JOBQ_EIO, R, true}, /* somebody dropped our tables: see anew what is there */
    {"42883", JOBQ_EIO, R, true},
    {"3F000", JOBQ_EIO, R, true},
    {"26000", JOBQ_EIO, R, true}, /* our prepared statements are gone */
    {"0A000", JOBQ_EIO, R, true},
    {"57014", JOBQ_ETIMEOUT, R, false},
    {"55P03", JOBQ_EBUSY, R, false},
    {"08", JOBQ_EIO, R, true},
    {"22", JOBQ_EINVAL, 0, false},
    {"23", JOBQ_EINVAL, 0, false},
    {"25", JOBQ_EIO, R, true},
    {"28", JOBQ_ECONF, F, true},
    {"3D", JOBQ_ECONF, F, true},
    {"40", JOBQ_EBUSY, R, false},
    {"42", JOBQ_ECONF, F, false},
    {"53", JOBQ_EIO, R, false}, /* disk full, out of memory, too many connections */
    {"54", JOBQ_EINVAL, 0, false},
    {"57", JOBQ_EIO, R, true},
    {"", JOBQ_EIO, R, false},
};

static size_t find_verdict(const char *state)
{
    size_t i = 0;

    while (strncmp(state, verdicts[i].state, strlen(verdicts[i].state)) != 0)
        i++;
    return i;
}

/* The five characters as a number to base 36. */
static int64_t native_of(const char *state)
{
    int64_t n = 0;

    for (; *state; state++)
        n = n * 36 + (*state >= 'A' ? *state - 'A' + 10 : *state - '0');
    return n;
}

bool jobq__pgsql_state_is(const PGresult *res, const char *state)
{
    const char *got = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    return got && strcmp(got, state) == 0;
}

bool jobq__pgsql_is_transient(const PGresult *res)
{
    return jobq__pgsql_state_is(res, "40001") || jobq__pgsql_state_is(res, "40P01");
}

int jobq__pgsql_refused(pgsql_store *store, const PGresult *res, bool unsure)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    size_t i;

    if (!state) /* libpq's own words: the connection ended */
        return jobq__pgsql_broken(store, unsure);
    i = find_verdict(state);
    store->suspect |= verdicts[i].drop || PQstatus(store->conn) == CONNECTION_BAD;
    return jobq__error_set_driver(verdicts[i].code, verdicts[i].flags, "postgresql",
                                  native_of(state), "postgresql: %s (%s)", text ? text : "refused",
                                  state);
}

/* Classes of states that say nothing of the statement itself. */
static bool is_trouble(const char *state)
{
    static const char *const classes[] = {"08", "40", "53", "55P03", "57", "25006", "58", "XX"};

    if (strcmp(state, "08P01") == 0) /* another number of values than it has places */
        return false;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (strncmp(state, classes[i], strlen(classes[i])) == 0)
            return true;
    return false;
}

int jobq__pgsql_refused_foreign(pgsql_store *store, const PGresult *res, const char *what,
                                bool unsure)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);

    if (!state || is_trouble(state))
        return jobq__pgsql_refused(store, res, unsure);
    return jobq__error_set_driver(JOBQ_EINVAL, 0, "postgresql", native_of(state),
                                  "postgresql: the %s is refused: %s (%s)", what,
                                  text ? text : "refused", state);
}

int jobq__pgsql_broken(pgsql_store *store, bool unsure)
{
    const char *text = PQerrorMessage(store->conn); /* lines; the first one says it */

    store->suspect = true;
    if (unsure)
        return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "postgresql", 0,
                                      "postgresql: the connection ended before the answer came: "
                                      "whether it was done is unknown");
    return jobq__error_set_driver(JOBQ_EIO, JOBQ__RETRYABLE, "postgresql", 0,
                                  "postgresql: the connection ended: %.*s",
                                  (int)strcspn(text, "\n"), text);
}

int jobq__pgsql_late(pgsql_store *store, bool unsure)
{
    store->suspect = true;
    if (unsure)
        return jobq__error_set_driver(JOBQ_EUNKNOWN, 0, "postgresql", 0,
                                      "postgresql: no answer within %lld ms: whether it was done "
                                      "is unknown",
                                      (long long)store->read_ms);
    return jobq__error_set_driver(JOBQ_ETIMEOUT, JOBQ__RETRYABLE, "postgresql", 0,
                                  "postgresql: no answer within %lld ms",
                                  (long long)store->read_ms);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* libpq has no field for the SQLSTATE here; its verbose text has: "FATAL:  28P01: words". */
static const char *find_state(const char *message, char state[6])
{
    const char *p = message;

    while ((p = strstr(p, ":  ")) != NULL) {
        p += 3;
        if (strspn(p, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && p[5] == ':') {
            memcpy(state, p, 5);
            state[5] = '\0';
            return p + 7;
        }
    }
    return NULL;
}

/* libpq's own words, in one line. What it says of a value before it connects begins with
 * "invalid"; that and a password nobody gave do not pass. */
static int refuse_locally(const char *message, bool needs_password)
{
    bool lasting = needs_password || strncmp(message, "invalid ", 8) == 0;
    char line[512];
    size_t n = 0;

    for (; *message && n < sizeof(line) - 1; message++)
        if (*message != '\n' && *message != '\t')
            line[n++] = *message;
        else if (n && line[n - 1] != ' ')
            line[n++] = ' ';
    while (n > 0 && line[n - 1] == ' ')
        n--;
    return jobq__error_set_driver(lasting ? JOBQ_ECONF : JOBQ_ECONNECT,
                                  lasting ? JOBQ__FATAL : JOBQ__RETRYABLE, "postgresql", 0,
                                  "postgresql: %.*s", (int)n, line);
}

/* The last host's message: every line of it but the place in the server's source. */
int jobq__pgsql_refuse_dial(const char *message, bool needs_password)
{
    char state[6] = "";
    const char *words = find_state(message, state);
    size_t n = strcspn(words ? words : message, "\n");

    if (!words)
        return refuse_locally(message, needs_password);
    if (verdicts[find_verdict(state)].flags & JOBQ__FATAL)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "postgresql", native_of(state),
                                      "postgresql: %.*s (%s)", (int)n, words, state);
    return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "postgresql", native_of(state),
                                  "postgresql: %.*s (%s)", (int)n, words, state);
}
